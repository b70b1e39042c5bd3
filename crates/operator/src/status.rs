//! The status of an object as it is written: with the transition times of its conditions.

use serde_json::{Value, json};

/// The status with a transition time on each condition: the old one where the condition's status is the same.
pub(crate) fn timed(mut status: Value, before: &Value, now: &str) -> Value {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return status;
    };
    for condition in conditions {
        let same = before
            .get("conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find(|old| {
                ["type", "status"]
                    .iter()
                    .all(|field| old.get(field) == condition.get(field))
            });
        let time = same
            .and_then(|old| old.get("lastTransitionTime"))
            .cloned()
            .unwrap_or_else(|| json!(now));
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("lastTransitionTime".to_owned(), time);
        }
    }
    status
}

/// How a status differs from the one that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// Not at all.
    None,
    /// In what the object holds, or has in effect: it is read by the next compile.
    Allocations,
    /// In a condition.
    Conditions,
    /// In numbers and messages only.
    Counts,
}

/// The parts of a status that are computed from other objects and read by nothing.
const REPORTS: [&str; 5] = [
    "conditions",
    "observedGeneration",
    "referenceCount",
    "nodes",
    "problems",
];

/// How a status without times differs from the one that is stored.
pub(crate) fn difference(status: &Value, stored: &Value) -> Difference {
    let empty = serde_json::Map::new();
    let fields = |value: &'_ Value| value.as_object().unwrap_or(&empty).clone();
    let (mut status, mut stored) = (fields(status), fields(stored));
    let take = |name: &str| {
        let (new, old) = (status.remove(name), stored.remove(name));
        (new.unwrap_or_default(), old.unwrap_or_default())
    };
    let reports = REPORTS.map(take);
    if status != stored {
        return Difference::Allocations;
    }
    let [(new, old), others @ ..] = reports;
    let conditions = |list: &Value, fields: &[&str]| -> Vec<Value> {
        let of = |condition: &Value| {
            let of = |field: &&str| condition.get(field).cloned().unwrap_or_default();
            fields.iter().map(of).collect()
        };
        list.as_array().into_iter().flatten().map(of).collect()
    };
    let outcome = ["type", "status", "reason"];
    if conditions(&new, &outcome) != conditions(&old, &outcome) {
        return Difference::Conditions;
    }
    let rest = ["message", "observedGeneration"];
    let is_same = conditions(&new, &rest) == conditions(&old, &rest)
        && others.iter().all(|(new, old)| new == old);
    if is_same {
        return Difference::None;
    }
    Difference::Counts
}

/// Says in a status that something which is made from the object could not be written.
pub(crate) fn not_written(status: &mut Value, message: &str) {
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|condition| condition["type"] == "Ready");
    if let Some(fields) = ready.and_then(Value::as_object_mut) {
        for (field, value) in [
            ("status", "False"),
            ("reason", "WriteFailed"),
            ("message", message),
        ] {
            fields.insert(field.to_owned(), json!(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use compiler::{Kind, ObjectRef, Snapshot};

    use super::*;

    #[test]
    fn a_condition_that_did_not_change_keeps_its_time() {
        let wanted =
            json!({"conditions": [{"type": "Ready", "status": "True", "message": "new words"}]});
        let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]});
        let timed = timed(wanted, &before, "now");
        assert_eq!(timed["conditions"][0]["lastTransitionTime"], "then");
        assert_eq!(
            super::timed(timed.clone(), &timed, "now"),
            timed,
            "nothing to write the second time"
        );
    }

    #[test]
    fn allocations_come_before_conditions_and_those_before_counts() {
        let status = |address: &str, ready: &str, message: &str| {
            let ready =
                json!({"type": "Ready", "status": ready, "reason": "R", "message": message});
            json!({"addresses": [address], "referenceCount": 1, "conditions": [ready]})
        };
        let stored = timed(status("a", "False", "1 of 2"), &Value::Null, "now");
        let of = |status: Value| difference(&status, &stored);
        assert_eq!(of(status("a", "False", "1 of 2")), Difference::None);
        assert_eq!(of(status("b", "True", "2 of 2")), Difference::Allocations);
        assert_eq!(of(status("a", "True", "2 of 2")), Difference::Conditions);
        assert_eq!(of(status("a", "False", "0 of 2")), Difference::Counts);
        let mut refused = status("a", "True", "2 of 2");
        not_written(&mut refused, "because");
        assert_eq!(of(refused.clone()), Difference::Conditions);
        let ready = json!({"type": "Ready", "status": "False", "reason": "WriteFailed", "message": "because"});
        assert_eq!(refused["conditions"], json!([ready]));
    }

    #[test]
    fn a_condition_that_changed_gets_the_time_of_now() {
        let wanted = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]});
        assert_eq!(
            timed(wanted, &before, "now")["conditions"][0]["lastTransitionTime"],
            "now"
        );
    }

    #[test]
    fn times_come_from_the_status_that_the_object_carries() {
        let status = json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]});
        let vrf = json!({
            "apiVersion": Kind::Vrf.api_version(), "kind": "VRF", "metadata": {"name": "a", "uid": "u"},
            "spec": {"vrf": "a", "vni": 7}, "status": status,
        });
        let mut snapshot = Snapshot::default();
        snapshot.insert(&vrf);
        let subject = ObjectRef::named(Kind::Vrf, "a");
        let (meta, before) = snapshot.stored_status(&subject).expect("it is stored");
        assert_eq!(meta.uid.as_deref(), Some("u"));
        let wanted = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let timed = timed(wanted, &before, "now");
        let time = &timed["conditions"][0]["lastTransitionTime"];
        assert_eq!(time, "2026-01-01T00:00:00Z");
    }
}
