//! The condition of a revision: whether all nodes have confirmed it, and why not.

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::NetworkConfigRevisionStatus,
};

use super::{
    stored,
    waves::{Phase, Time},
};
use crate::status::shortened;

/// The conditions of a revision with this status.
pub fn conditions(
    status: &NetworkConfigRevisionStatus,
    phase: Phase,
    before: &NetworkConfigRevisionStatus,
    now: Time,
) -> Conditions {
    // Nodes that keep their config until an approval do not delay the others, but are not ready.
    let reason = match phase {
        Phase::Complete if status.unapproved_message.is_some() => Phase::Unapproved,
        phase => phase,
    };
    let outcome = match reason {
        Phase::Complete => ConditionStatus::True,
        Phase::Progressing | Phase::Soaking | Phase::Paused | Phase::Unapproved | Phase::Failed => {
            ConditionStatus::False
        }
    };
    let same = before.conditions.get("Ready");
    let same = same.filter(|before| before.status == outcome);
    let since = same.and_then(|before| before.last_transition_time.clone());
    let ready = Condition {
        kind: "Ready".to_owned(),
        status: outcome,
        observed_generation: None,
        last_transition_time: Some(since.unwrap_or_else(|| stored::text(now))),
        reason: reason.to_string(),
        message: shortened(message(status, reason)),
    };
    Conditions(vec![ready])
}

fn message(status: &NetworkConfigRevisionStatus, reason: Phase) -> String {
    match reason {
        Phase::Complete => "all available nodes have confirmed it".to_owned(),
        Phase::Progressing => match &status.wave {
            Some(wave) => format!("nodes of this wave are changing: {wave}"),
            None => "nodes are changing".to_owned(),
        },
        Phase::Soaking => {
            "a wave has confirmed it; the next one waits for the soak time".to_owned()
        }
        Phase::Paused => {
            "Settings.rollout.pause is set, or Settings default is missing or cannot be read"
                .to_owned()
        }
        Phase::Unapproved => {
            let why = status.unapproved_message.as_deref();
            format!(
                "{}; it waits for an approval",
                why.unwrap_or("it removes too much")
            )
        }
        Phase::Failed => {
            let node = status.failed_node.as_deref().unwrap_or("unknown");
            let why = status.failed_message.as_deref();
            format!("node {node}: {}", why.unwrap_or("no reason reported"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> NetworkConfigRevisionStatus {
        NetworkConfigRevisionStatus {
            wave: Some("canary".to_owned()),
            failed_node: Some("n1".to_owned()),
            failed_message: Some("bgpd is down".to_owned()),
            ..NetworkConfigRevisionStatus::default()
        }
    }

    fn ready(
        status: &NetworkConfigRevisionStatus,
        phase: Phase,
        before: &NetworkConfigRevisionStatus,
        now: Time,
    ) -> Condition {
        let conditions = conditions(status, phase, before, now);
        conditions.get("Ready").expect("a condition").clone()
    }

    #[test]
    fn a_revision_that_a_node_did_not_take_names_node_and_reason() {
        let ready = ready(&status(), Phase::Failed, &status(), 7);
        assert_eq!(ready.status, ConditionStatus::False);
        assert_eq!(ready.reason, "Failed");
        assert_eq!(ready.message, "node n1: bgpd is down");
    }

    #[test]
    fn a_revision_that_waits_for_an_approval_says_what_it_removes() {
        let held = NetworkConfigRevisionStatus {
            unapproved_message: Some("it removes 3 of 4 VRFs".to_owned()),
            ..status()
        };
        // Others may have confirmed all that they can have.
        for phase in [Phase::Unapproved, Phase::Complete] {
            let ready = ready(&held, phase, &status(), 7);
            assert_eq!(ready.status, ConditionStatus::False);
            assert_eq!(ready.reason, "Unapproved");
            assert_eq!(
                ready.message,
                "it removes 3 of 4 VRFs; it waits for an approval"
            );
        }
    }

    #[test]
    fn the_time_is_that_of_the_last_change_of_the_status() {
        let mut before = status();
        before.conditions = conditions(&before, Phase::Progressing, &status(), 10);
        let time = |phase, now| ready(&status(), phase, &before, now).last_transition_time;
        assert_eq!(time(Phase::Progressing, 20), Some(stored::text(10)));
        assert_eq!(time(Phase::Failed, 20), Some(stored::text(10)));
        assert_eq!(time(Phase::Complete, 20), Some(stored::text(20)));
    }
}
