//! What a rollout is decided on, as it is stored in the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use api::{
    meta::Conditions,
    selvedge::Rollout,
    tcaas::{
        NetworkConfigRevisionStatus, NodeNetworkConfigSpec, NodeNetworkConfigStatus,
        node_network_config::{HOLD_ANNOTATION, RETRY_ANNOTATION},
    },
};
use jiff::Timestamp;

use super::{
    Progress, answered,
    waves::{Agent, Failure, Member, Phase, Reason, State, Time},
};
use crate::snapshot::{Key, Meta, Object, Snapshot};

/// When a node's config was published: an annotation of its `NodeNetworkConfig`.
pub const PUBLISHED_AT: &str = "selvedge.dev/published-at";

/// How a node's config was published: an annotation of its `NodeNetworkConfig`.
pub const LANE: &str = "selvedge.dev/lane";

/// The first generation of a node's config since which nothing but the router of the host has changed: an annotation of its
/// `NodeNetworkConfig`.
pub const SAME_SINCE: &str = "selvedge.dev/same-since-generation";

/// Says that a revision is to be tried again: an annotation of its `NetworkConfigRevision`, with the time, and then of the configs that
/// are published.
pub const RETRY: &str = RETRY_ANNOTATION;

/// Says that a revision may remove what it removes: an annotation of its `NetworkConfigRevision`.
pub const APPROVED: &str = "selvedge.dev/approved";

/// The kinds that the API server served when a revision was made: an annotation of its `NetworkConfigRevision`.
pub const SERVED: &str = "selvedge.dev/served-kinds";

/// How a config reaches its node. A failure of one that waited for no wave does not count for its revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Lane {
    /// In its wave.
    Wave,
    /// In its wave, as one of the first, and its agent was alive.
    Canary,
    /// At once, because nothing has changed that the node forwards by, after it had confirmed what came in its wave.
    Confirmed,
    /// At once, because nothing has changed that the node forwards by.
    Direct,
    /// At once, because the node had none.
    Joining,
}

/// A stored config.
pub type NodeNetworkConfig = Object<NodeNetworkConfigSpec, NodeNetworkConfigStatus>;

/// When a stored config was published.
pub fn published_at(config: &NodeNetworkConfig) -> Option<Time> {
    time(config.meta.annotations.get(PUBLISHED_AT)?)
}

/// How far a node is with its stored config, whether or not that is the one it must have.
pub fn progress(config: &NodeNetworkConfig) -> Progress {
    let status = config.status.as_deref();
    answered(
        &config.spec.revision,
        generations(&config.meta).as_ref(),
        status,
    )
}

/// Whether a node has said how it takes its stored config.
fn has_answered(config: &NodeNetworkConfig) -> bool {
    progress(config) != Progress::Ongoing
}

/// How a stored config reached its node.
pub fn lane(config: &NodeNetworkConfig) -> Lane {
    let lane = config.meta.annotations.get(LANE);
    lane.and_then(|lane| lane.parse().ok())
        .unwrap_or(Lane::Wave)
}

/// The generations of a stored config that differ in nothing but the router of the host: the first and the newest.
pub fn generations(meta: &Meta) -> Option<RangeInclusive<i64>> {
    let newest = meta.generation?;
    let since = meta.annotations.get(SAME_SINCE);
    let since = since.and_then(|since| since.parse().ok());
    Some(since.unwrap_or(newest)..=newest)
}

/// A time as statuses have it.
pub fn text(time: Time) -> String {
    let seconds = i64::try_from(time).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    time.to_string()
}

/// The time that a text names; one before 1970 is no time of ours.
pub fn time(text: &str) -> Option<Time> {
    let time: Timestamp = text.parse().ok()?;
    Time::try_from(time.as_second()).ok()
}

/// Whether a node is frozen, by an annotation of its `Node` or of its `NodeNetworkConfig`.
fn is_held(meta: &Meta) -> bool {
    meta.annotations.contains_key(HOLD_ANNOTATION)
}

/// The nodes that are frozen.
pub fn held(snapshot: &Snapshot) -> BTreeSet<String> {
    let nodes = snapshot.nodes.iter().map(|(key, node)| (key, &node.meta));
    let configs = snapshot.node_network_configs.iter();
    let configs = configs.map(|(key, config)| (key, &config.meta));
    let held = nodes.chain(configs).filter(|(_, meta)| is_held(meta));
    held.map(|(key, _)| key.name.to_string()).collect()
}

/// All nodes, as far as they matter to the rollout of a revision.
pub fn members(
    snapshot: &Snapshot,
    settings: &Rollout,
    progress: &BTreeMap<String, Progress>,
    (revision, state): (&str, &State),
    agent: impl Fn(&str) -> Agent,
) -> BTreeMap<String, Member> {
    let member = |(name, progress): (&String, &Progress)| {
        let key = Key::named(name);
        let node = snapshot.nodes.get(&key)?;
        let queued = Member::queued(&node.meta.labels, settings);
        let stored = snapshot.node_network_configs.get(&key);
        let published_at = stored.and_then(published_at);
        let of_revision = stored.filter(|stored| stored.spec.revision == revision);
        let lane = of_revision.map(lane);
        let is_of_revision = matches!(lane, Some(Lane::Wave | Lane::Canary | Lane::Confirmed));
        // What it has confirmed is in no doubt while it takes in other mirrors.
        let has_confirmed = lane == Some(Lane::Confirmed) && *progress == Progress::Ongoing;
        let progress = if has_confirmed {
            Progress::Ready
        } else {
            *progress
        };
        // Of a revision that was complete, only what was published later counts: nodes whose labels have changed. Of one that had a rollout
        // before, only what came in this one.
        let since = state.completed_at.max(state.started_at);
        let is_newer = |since| published_at.is_some_and(|at| at >= since);
        let Agent {
            is_alive,
            answers_since,
        } = agent(name);
        let member = Member {
            progress,
            published_at,
            is_published: is_of_revision && since.is_none_or(is_newer),
            is_canary: lane == Some(Lane::Canary),
            has_answered: stored.is_none_or(has_answered),
            is_alive,
            answers_since,
            is_held: is_held(&node.meta) || stored.is_some_and(|stored| is_held(&stored.meta)),
            ..queued
        };
        Some((name.clone(), member))
    };
    progress.iter().filter_map(member).collect()
}

/// What is stored about the rollout of a revision.
pub fn state(status: &NetworkConfigRevisionStatus) -> State {
    let failure = status.failed_node.as_ref().filter(|_| status.is_invalid);
    State {
        failure: failure.map(|node| Failure {
            node: node.clone(),
            reason: Reason::Reported,
            at: status.failed_at.as_deref().and_then(time).unwrap_or(0),
        }),
        wave: status.wave.clone(),
        soaking_since: status.soaking_since.as_deref().and_then(time),
        started_at: status.started_at.as_deref().and_then(time),
        completed_at: status.completed_at.as_deref().and_then(time),
    }
}

/// What is to be stored about the rollout of a revision. Why a node failed is kept as it was found.
pub fn status(
    state: &State,
    phase: Phase,
    members: &BTreeMap<String, Member>,
    before: &NetworkConfigRevisionStatus,
    error_message: impl Fn(&str) -> Option<String>,
) -> NetworkConfigRevisionStatus {
    let count = |wanted| {
        let nodes = members.values().filter(|node| node.progress == wanted);
        u32::try_from(nodes.count()).unwrap_or(u32::MAX)
    };
    let failure = state.failure.as_ref();
    let is_known = failure.is_some() && before.failed_node.as_ref() == failure.map(|one| &one.node);
    let message = |failure: &Failure| match failure.reason {
        Reason::Reported => error_message(&failure.node),
        Reason::NoAnswer => {
            Some("its agent is alive and has not answered within progressDeadline".to_owned())
        }
        Reason::Silent => Some(
            "it was among the first that got the change, and its agent has fallen silent"
                .to_owned(),
        ),
    };
    let (failed_message, failed_at) = if is_known {
        (before.failed_message.clone(), before.failed_at.clone())
    } else {
        (failure.and_then(message), failure.map(|one| text(one.at)))
    };
    NetworkConfigRevisionStatus {
        phase: Some(phase.to_string()),
        wave: state.wave.clone(),
        waves: Vec::new(),
        soaking_since: state.soaking_since.map(text),
        started_at: state.started_at.map(text),
        spent_approval: before.spent_approval.clone(),
        retry: before.retry.clone(),
        retried_at: before.retried_at.clone(),
        completed_at: state.completed_at.map(text),
        is_invalid: failure.is_some() && state.completed_at.is_none(),
        ready: count(Progress::Ready),
        ongoing: count(Progress::Ongoing),
        queued: count(Progress::Queued),
        failed: count(Progress::Failed),
        unapproved: count(Progress::Unapproved),
        unapproved_message: None,
        unwritten_message: None,
        total: u32::try_from(members.len()).unwrap_or(u32::MAX),
        failed_node: failure.map(|one| one.node.clone()),
        failed_message,
        failed_at,
        conditions: Conditions::default(),
        sequence: before.sequence,
    }
}
