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
