//! The one writer of intents' statuses: compares, ignoring times, and writes what differs.

use std::collections::BTreeMap;

use compiler::{ObjectRef, status::Statuses};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{FIELD_MANAGER, resource};

/// Why a status could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the status of {subject}")]
pub(crate) struct Error {
    subject: ObjectRef,
    #[source]
    source: kube::Error,
}

/// Writes the statuses that differ from what the objects carry; returns how many.
pub(crate) async fn write(
    client: &Client,
    wanted: &Statuses,
    current: &BTreeMap<ObjectRef, Value>,
    now: &str,
) -> Result<usize, Error> {
    let mut written = 0;
    for (subject, status) in &wanted.0 {
        let before = current.get(subject).unwrap_or(&Value::Null);
        let status = timed(status, before, now);
        if status == *before {
            continue;
        }
        let patch = json!({
            "apiVersion": subject.kind.api_version(),
            "kind": subject.kind.to_string(),
            "metadata": {"name": subject.key.name},
            "status": status,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let api = resource::at(client, subject.kind, &subject.key);
        match api
            .patch_status(&subject.key.name, &params, &Patch::Apply(patch))
            .await
        {
            Ok(_) => written += 1,
            // It was deleted meanwhile: the next pass knows.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => {
                return Err(Error {
                    subject: subject.clone(),
                    source,
                });
            }
        }
    }
    Ok(written)
}

/// The status with a transition time on each condition: the old one where the condition's status is the same.
fn timed(status: &Value, before: &Value, now: &str) -> Value {
    let mut status = status.clone();
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
    use super::*;

    #[test]
    fn a_condition_that_did_not_change_keeps_its_time() {
        let wanted =
            json!({"conditions": [{"type": "Ready", "status": "True", "message": "new words"}]});
        let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]});
        let timed = timed(&wanted, &before, "now");
        assert_eq!(timed["conditions"][0]["lastTransitionTime"], "then");
        assert_eq!(
            super::timed(&timed, &timed, "now"),
            timed,
            "nothing to write the second time"
        );
    }

    #[test]
    fn a_condition_that_changed_gets_the_time_of_now() {
        let wanted = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]});
        assert_eq!(
            timed(&wanted, &before, "now")["conditions"][0]["lastTransitionTime"],
            "now"
        );
    }
}
