//! Events about rollouts: each transition of a revision's stored status is reported once, by the operator that stored it.

use std::{collections::BTreeMap, time::Duration};

use api::tcaas::NetworkConfigRevisionStatus;
use compiler::{
    Compilation, Kind, ObjectRef, Snapshot, revision, rollout::waves::Phase, snapshot::Key,
};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use tokio::{task::JoinSet, time::timeout};

use crate::{errors::chain, pass::Pass, publish::Written, request::Sender};

/// How long the API server may take for an event.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes the text of an event may have.
const LONGEST_NOTE: usize = 1000;
/// How many events of one kind a pass reports: the status of the revision counts all.
const MOST_NOTES: usize = 10;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Transition {
    /// One word for programs.
    reason: &'static str,
    is_warning: bool,
    note: String,
    /// The node that it is about, beside the revision.
    node: Option<String>,
}

impl Transition {
    fn new(reason: &'static str, note: impl Into<String>) -> Self {
        Self {
            reason,
            is_warning: false,
            note: note.into(),
            node: None,
        }
    }

    fn warning(reason: &'static str, note: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            ..Self::new(reason, note)
        }
    }
}

/// Reports events, without delaying other work.
pub(crate) struct Events {
    recorder: Recorder,
    tasks: JoinSet<()>,
    /// What could not be written for a while, as it was reported last.
    lasting: BTreeMap<ObjectRef, String>,
}

impl Events {
    pub(crate) fn new(client: Client, identity: &str) -> Self {
        let reporter = Reporter {
            controller: "selvedge-operator".to_owned(),
            instance: Some(identity.to_owned()),
        };
        Self {
            recorder: Recorder::new(client, reporter),
            tasks: JoinSet::new(),
            lasting: BTreeMap::new(),
        }
    }

    /// Reports what has changed in the status of the newest revision, if a pass has stored it. Each waits while the API server wants no
    /// request.
    pub(crate) fn revision_written(
        &mut self,
        snapshot: &Snapshot,
        compilation: &Compilation,
        pass: &Pass,
        written: &Written,
        sender: &Sender,
    ) {
        while self.tasks.try_join_next().is_some() {}
        let name = revision::object_name(&compilation.revision.fingerprint);
        let revision = ObjectRef::named(Kind::NetworkConfigRevision, name);
        if !written.has_status_of(&revision) {
            return;
        }
        let stored = snapshot.network_config_revisions.get(&revision.key);
        let before = stored.and_then(|stored| stored.status.as_deref().cloned());
        for transition in transitions(&before.unwrap_or_default(), &pass.step.status) {
            let mut subjects = vec![reference(snapshot, &revision)];
            let node = transition.node.as_ref();
            let node = node.map(|name| ObjectRef::named(Kind::Node, name));
            subjects.extend(node.map(|node| reference(snapshot, &node)));
            for subject in subjects {
                self.publish(&transition, subject, sender);
            }
        }
    }

    /// Reports what could not be written for a while, and why: on the node whose config it is, or on the newest revision, which may be
    /// what is not stored.
    pub(crate) fn unwritten(
        &mut self,
        snapshot: &Snapshot,
        compilation: &Compilation,
        pass: &Pass,
        sender: &Sender,
    ) {
        let is_new = |(subject, message): &(&ObjectRef, &String)| {
            self.lasting.get(*subject) != Some(*message)
        };
        let new = pass.lasting.iter().filter(is_new).take(MOST_NOTES);
        let new: Vec<(ObjectRef, String)> = new
            .map(|(subject, message)| (subject.clone(), message.clone()))
            .collect();
        for (subject, message) in new {
            let about = if subject.kind == Kind::NodeNetworkConfig {
                ObjectRef::named(Kind::Node, &*subject.key.name)
            } else {
                let name = revision::object_name(&compilation.revision.fingerprint);
                ObjectRef::named(Kind::NetworkConfigRevision, name)
            };
            let transition = Transition::warning("WriteFailed", message);
            self.publish(&transition, reference(snapshot, &about), sender);
        }
        self.lasting.clone_from(&pass.lasting);
    }

    fn publish(&mut self, transition: &Transition, subject: ObjectReference, sender: &Sender) {
        let Transition {
            reason,
            is_warning,
            note,
            ..
        } = transition;
        let mut note = note.clone();
        note.truncate(note.floor_char_boundary(LONGEST_NOTE));
        let event = Event {
            type_: if *is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: (*reason).to_owned(),
            note: Some(note),
            action: "Rollout".to_owned(),
            secondary: None,
        };
        let (recorder, sender) = (self.recorder.clone(), sender.clone());
        self.tasks.spawn(async move {
            sender.pause_over().await;
            match timeout(PATIENCE, recorder.publish(&event, &subject)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(error = chain(&error), "an event could not be reported");
                }
                Err(_elapsed) => tracing::warn!("an event could not be reported in time"),
            }
        });
    }
}

fn reference(snapshot: &Snapshot, subject: &ObjectRef) -> ObjectReference {
    let meta = snapshot.meta(subject);
    let Key { namespace, name } = &subject.key;
    ObjectReference {
        api_version: Some(subject.kind.api_version()),
        kind: Some(subject.kind.to_string()),
        name: Some(name.to_string()),
        namespace: namespace.as_ref().map(ToString::to_string),
        uid: meta.and_then(|meta| meta.uid.clone()),
        ..ObjectReference::default()
    }
}

/// What has happened between two statuses of a revision.
fn transitions(
    before: &NetworkConfigRevisionStatus,
    now: &NetworkConfigRevisionStatus,
) -> Vec<Transition> {
    let phase = |status: &NetworkConfigRevisionStatus| -> Option<Phase> {
        status.phase.as_deref()?.parse().ok()
    };
    let mut transitions = Vec::new();
    let (was, is) = (phase(before), phase(now));
    if was != is {
        if was == Some(Phase::Paused) {
            transitions.push(Transition::new("RolloutResumed", "no longer paused"));
        }
        let total = now.total;
        match is {
            Some(Phase::Progressing)
                if matches!(was, None | Some(Phase::Complete | Phase::Unapproved)) =>
            {
                let note = format!(
                    "{} of {total} nodes change",
                    total.saturating_sub(now.ready)
                );
                transitions.push(Transition::new("RolloutStarted", note));
            }
            Some(Phase::Progressing) if was == Some(Phase::Failed) => {
                transitions.push(Transition::new("RolloutRetried", "it is tried again"));
            }
            Some(Phase::Paused) => {
                let note = "Settings.rollout.pause is set";
                transitions.push(Transition::new("RolloutPaused", note));
            }
            Some(Phase::Failed) => transitions.push(failed(now)),
            Some(Phase::Complete) => {
                let note = format!("{} of {total} nodes have confirmed it", now.ready);
                transitions.push(Transition::new("RolloutComplete", note));
            }
            // What it needs an approval for is reported below.
            Some(Phase::Progressing | Phase::Soaking | Phase::Unapproved) | None => {}
        }
    }
    if let Some(message) = now.unapproved_message.as_ref()
        && before.unapproved_message.as_ref() != Some(message)
    {
        transitions.push(Transition::warning("ApprovalNeeded", message));
    }
    if let Some(message) = now.unwritten_message.as_ref()
        && before.unwritten_message.is_none()
    {
        transitions.push(Transition::warning("WriteFailed", message));
    }
    transitions
}

fn failed(status: &NetworkConfigRevisionStatus) -> Transition {
    let node = status.failed_node.clone();
    let name = node.as_deref().unwrap_or("a node");
    let why = status.failed_message.as_deref();
    let note = format!("{name}: {}", why.unwrap_or("it did not confirm the change"));
    Transition {
        node,
        ..Transition::warning("RolloutFailed", note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(phase: &str) -> NetworkConfigRevisionStatus {
        NetworkConfigRevisionStatus {
            phase: (!phase.is_empty()).then(|| phase.to_owned()),
            ready: 1,
            total: 3,
            ..NetworkConfigRevisionStatus::default()
        }
    }

    fn reasons(before: &str, now: &str) -> Vec<&'static str> {
        let transitions = transitions(&status(before), &status(now));
        transitions.iter().map(|one| one.reason).collect()
    }

    #[test]
    fn every_transition_of_a_rollout_is_reported_once() {
        for (before, now, expected) in [
            ("", "Progressing", vec!["RolloutStarted"]),
            ("Progressing", "Progressing", vec![]),
            ("Progressing", "Soaking", vec![]),
            ("Soaking", "Progressing", vec![]),
            ("Progressing", "Failed", vec!["RolloutFailed"]),
            ("Failed", "Progressing", vec!["RolloutRetried"]),
            ("Progressing", "Paused", vec!["RolloutPaused"]),
            ("Paused", "Progressing", vec!["RolloutResumed"]),
            (
                "Paused",
                "Complete",
                vec!["RolloutResumed", "RolloutComplete"],
            ),
            ("Complete", "Complete", vec![]),
        ] {
            assert_eq!(reasons(before, now), expected, "{before} to {now}");
        }
    }

    #[test]
    fn a_failure_names_the_node_and_what_must_be_approved_is_named_once() {
        let mut now = status("Failed");
        now.failed_node = Some("n1".to_owned());
        now.failed_message = Some("bgpd is down".to_owned());
        now.unapproved_message = Some("n2 would lose its Underlay".to_owned());
        now.unwritten_message = Some("the config of n3 is refused".to_owned());
        let reported = transitions(&status("Progressing"), &now);
        assert_eq!(reported[0].note, "n1: bgpd is down");
        assert_eq!(reported[0].node.as_deref(), Some("n1"));
        assert_eq!(reported[1].reason, "ApprovalNeeded");
        assert_eq!(reported[2].note, "the config of n3 is refused");
        assert!(reported.iter().all(|one| one.is_warning));
        assert!(transitions(&now, &now).is_empty());
    }
}
