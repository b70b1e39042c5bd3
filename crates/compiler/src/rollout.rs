//! Who is told next. Pure: the operator only obeys.

use std::collections::{BTreeMap, BTreeSet};

use api::tcaas::{
    NodeNetworkConfigSpec, NodeNetworkConfigStatus, node_network_config::ConfigStatus,
};

/// What is known about one node of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It runs what it shall run, and has said so.
    Ready,
    /// It was told and has not answered yet.
    Ongoing,
    /// It was told and could not do it.
    Failed,
    /// It has not been told yet.
    Queued,
}

/// How far a node is.
///
/// A status counts only when it speaks of the config that the node was told: an answer to an older one is no answer.
pub fn progress(
    wanted: &NodeNetworkConfigSpec,
    told: Option<&NodeNetworkConfigSpec>,
    status: Option<&NodeNetworkConfigStatus>,
) -> Progress {
    if told != Some(wanted) {
        return Progress::Queued;
    }
    let answer =
        status.filter(|status| status.observed_revision.as_ref() == Some(&wanted.revision));
    match answer.map(|status| status.config_status) {
        Some(ConfigStatus::Provisioned) => Progress::Ready,
        Some(ConfigStatus::Invalid) => Progress::Failed,
        Some(ConfigStatus::Untouched | ConfigStatus::Provisioning) | None => Progress::Ongoing,
    }
}

/// The nodes to tell now: one after another, and nobody while one is busy or has failed.
pub fn next(progress: &BTreeMap<String, Progress>) -> Vec<&str> {
    if progress
        .values()
        .any(|node| matches!(node, Progress::Ongoing | Progress::Failed))
    {
        return Vec::new();
    }
    let queued = progress
        .iter()
        .filter(|(_, node)| **node == Progress::Queued);
    queued.map(|(name, _)| name.as_str()).take(1).collect()
}

/// The order in which nodes that change are told, if each does what it is told: waves, each of which waits for the one before.
pub fn waves(nodes: &BTreeSet<String>) -> Vec<Vec<String>> {
    let mut queued: BTreeMap<String, Progress> = nodes
        .iter()
        .map(|node| (node.clone(), Progress::Queued))
        .collect();
    let mut waves = Vec::new();
    loop {
        let wave: Vec<String> = next(&queued).into_iter().map(str::to_owned).collect();
        if wave.is_empty() {
            return waves;
        }
        // A node that is ready holds up nobody and need not be asked again.
        for node in &wave {
            queued.remove(node);
        }
        waves.push(wave);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(revision: &str) -> NodeNetworkConfigSpec {
        NodeNetworkConfigSpec {
            revision: revision.to_owned(),
            ..NodeNetworkConfigSpec::default()
        }
    }

    fn status(config_status: ConfigStatus, observed: &str) -> NodeNetworkConfigStatus {
        let observed_revision = Some(observed.to_owned());
        NodeNetworkConfigStatus {
            config_status,
            observed_revision,
            ..NodeNetworkConfigStatus::default()
        }
    }

    #[test]
    fn an_answer_to_an_older_revision_is_no_answer() {
        let (old, new) = (spec("old"), spec("new"));
        let stale = status(ConfigStatus::Provisioned, "old");
        assert_eq!(progress(&new, Some(&old), Some(&stale)), Progress::Queued);
        assert_eq!(progress(&new, Some(&new), Some(&stale)), Progress::Ongoing);
        assert_eq!(
            progress(
                &new,
                Some(&new),
                Some(&status(ConfigStatus::Provisioned, "new"))
            ),
            Progress::Ready
        );
        assert_eq!(
            progress(
                &new,
                Some(&new),
                Some(&status(ConfigStatus::Invalid, "new"))
            ),
            Progress::Failed
        );
        assert_eq!(progress(&new, Some(&new), None), Progress::Ongoing);
    }

    #[test]
    fn nodes_are_told_one_after_another_and_a_failure_stops_the_rest() {
        let world = |nodes: &[(&str, Progress)]| {
            nodes
                .iter()
                .map(|(name, p)| ((*name).to_owned(), *p))
                .collect()
        };
        let queued: BTreeMap<_, _> = world(&[
            ("a", Progress::Ready),
            ("b", Progress::Queued),
            ("c", Progress::Queued),
        ]);
        assert_eq!(next(&queued), ["b"]);
        assert!(next(&world(&[("a", Progress::Ongoing), ("b", Progress::Queued)])).is_empty());
        assert!(next(&world(&[("a", Progress::Failed), ("b", Progress::Queued)])).is_empty());
        assert!(next(&world(&[("a", Progress::Ready)])).is_empty());
    }
}
