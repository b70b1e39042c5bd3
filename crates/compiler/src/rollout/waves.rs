//! Which nodes get their configs now: a canary first, then one failure domain after another, control-plane nodes last and one by one.
//!
//! Pure, and without memory of its own: everything it needs is stored in the cluster, so that an operator that starts anew goes on where
//! the last one was.

mod groups;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    meta::Labels,
    selvedge::{CountOrPercent, Rollout},
};

pub use self::groups::progress_of_waves;
use super::Progress;
use crate::select;

/// A point in time, in seconds.
pub type Time = u64;

/// A node, as far as it matters to a rollout.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are facts about a node, and each may hold beside every other"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// How far it is with its config.
    pub progress: Progress,
    /// When its stored config was published.
    pub published_at: Option<Time>,
    /// Whether its stored config is one of this rollout.
    pub is_published: bool,
    /// Whether it got that config as one of the first, while its agent was alive: its silence counts against the revision.
    pub is_canary: bool,
    /// Whether it has said how it takes its stored config, whatever that is.
    pub has_answered: bool,
    /// Whether its agent has renewed its Lease lately.
    pub is_alive: bool,
    /// Since when an answer of it can be expected; nothing if that is not known yet.
    pub answers_since: Option<Time>,
    /// Whether its config is frozen by a person.
    pub is_held: bool,
    /// Its failure domain.
    pub domain: String,
    /// Whether it carries the cluster's control plane.
    pub is_control_plane: bool,
    /// Whether it can be among the first.
    pub can_be_canary: bool,
}

/// What is known of the agent of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Whether it has been heard of lately.
    pub is_alive: bool,
    /// Since when it answers and is not frozen, as far as that was seen: it may have been without an answer before.
    pub answers_since: Option<Time>,
}

impl Agent {
    /// One that was never silent.
    pub const ALIVE: Self = Self {
        is_alive: true,
        answers_since: Some(0),
    };
}

/// Labels of nodes that carry the control plane.
const CONTROL_PLANE: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

impl Member {
    /// A node with these labels that waits for a config.
    pub fn queued(labels: &Labels, settings: &Rollout) -> Self {
        let selector = settings.canary.node_selector.as_ref();
        Self {
            progress: Progress::Queued,
            published_at: None,
            is_published: false,
            is_canary: false,
            has_answered: true,
            is_alive: true,
            answers_since: Some(0),
            is_held: false,
            domain: (labels.get(&settings.failure_domain_label))
                .map_or_else(String::new, ToString::to_string),
            is_control_plane: CONTROL_PLANE
                .iter()
                .any(|label| labels.contains_key(*label)),
            can_be_canary: selector.is_none_or(|selector| select::selects(Some(selector), labels)),
        }
    }
}

/// What is remembered of a rollout from one decision to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Why nothing of it is published any more.
    pub failure: Option<Failure>,
    /// The wave that is being published.
    pub wave: Option<String>,
    /// Since when the next wave waits.
    pub soaking_since: Option<Time>,
    /// When this rollout of the revision began: the same content may have had others before.
    pub started_at: Option<Time>,
    /// When all nodes had confirmed it. A revision that was complete once is valid for ever.
    pub completed_at: Option<Time>,
}

/// The node that did not take a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The node.
    pub node: String,
    /// What is wrong.
    pub reason: Reason,
    /// When that was found.
    pub at: Time,
}

/// Why a node counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It reports so.
    Reported,
    /// Its agent could answer, and has not done so before the deadline.
    NoAnswer,
    /// It got the revision as one of the first, and its agent has fallen silent.
    Silent,
}

/// Nodes that are changed together. Each wave waits for the one before.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, strum::Display)]
enum Wave {
    /// The first nodes, on which a revision is tried.
    #[strum(to_string = "canary")]
    Canary,
    /// The nodes of a failure domain, by its place in the order and its name.
    #[strum(to_string = "failure domain {name:?}")]
    Domain { place: usize, name: String },
    /// One node of the control plane.
    #[strum(to_string = "control-plane node {0:?}")]
    ControlPlane(String),
    /// Nodes whose agent does not answer: they are published to when nothing else is left.
    #[strum(to_string = "silent nodes")]
    Silent,
    /// One node of the control plane whose agent does not answer: they are not published to together, since all may answer again at once.
    #[strum(to_string = "silent control-plane node {0:?}")]
    SilentControlPlane(String),
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The nodes whose config is published now.
    pub publish: Vec<String>,
    /// Those of them that are the first, and whose agents are alive.
    pub canaries: BTreeSet<String>,
    /// Why no more is published, or that everything is.
    pub phase: Phase,
    /// What is to be remembered.
    pub state: State,
    /// When to decide again, if nothing happens before.
    pub again_at: Option<Time>,
}

/// How far a rollout is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::EnumString, strum::EnumIter)]
pub enum Phase {
    /// Nodes are being changed.
    Progressing,
    /// A wave is complete; the next one waits for the soak time.
    Soaking,
    /// A person has paused it.
    Paused,
    /// It removes so much that a person must approve it.
    Unapproved,
    /// A node did not take it.
    Failed,
    /// Every node that can have it has confirmed it.
    Complete,
}

/// Decides what is published. Nothing of a revision that needs an approval.
pub fn decide(
    settings: &Rollout,
    members: &BTreeMap<String, Member>,
    before: &State,
    now: Time,
    needs_approval: bool,
) -> Decision {
    let rollout = Waves {
        settings,
        members,
        is_valid: before.completed_at.is_some(),
        now,
    };
    let mut state = before.clone();
    // A failure of a revision that was complete once is one of the node: it is over when the node is well.
    if state.failure.is_none() || state.completed_at.is_some() {
        state.failure = rollout.failure();
    }
    let held = |phase, state| Decision {
        publish: Vec::new(),
        canaries: BTreeSet::new(),
        phase,
        state,
        again_at: rollout.next_deadline(),
    };
    if state.failure.is_some() {
        return held(Phase::Failed, state);
    }
    let has_begun = members.values().any(|member| member.is_published);
    let Some(wave) = rollout.current() else {
        // What no node has got is not complete, even if all that would get it wait for an approval.
        let mut members = members.values();
        let is_unapproved = members.any(|member| member.progress == Progress::Unapproved);
        if is_unapproved && !has_begun && before.completed_at.is_none() {
            return held(Phase::Unapproved, state);
        }
        let completed_at = before.completed_at.filter(|_| !has_begun);
        let state = State {
            completed_at: completed_at.or(Some(now)),
            started_at: before.started_at,
            ..State::default()
        };
        return held(Phase::Complete, state);
    };
    if settings.pause {
        return held(Phase::Paused, state);
    }
    if needs_approval {
        return held(Phase::Unapproved, state);
    }
    let name = wave.to_string();
    if has_begun && state.wave.as_ref() != Some(&name) {
        let since = *state.soaking_since.get_or_insert(now);
        let until = since + Time::from(settings.soak_time.get());
        if now < until {
            let held = held(Phase::Soaking, state);
            return Decision {
                again_at: Some(held.again_at.map_or(until, |at| at.min(until))),
                ..held
            };
        }
    }
    state.wave = Some(name);
    state.soaking_since = None;
    let publish = rollout.publish(&wave);
    let is_canary = |node: &&String| {
        let member = members.get(*node);
        wave == Wave::Canary && member.is_some_and(|member| member.is_alive)
    };
    Decision {
        canaries: publish.iter().filter(is_canary).cloned().collect(),
        publish,
        ..held(Phase::Progressing, state)
    }
}

/// Which nodes change together and in what order, if each confirms what it gets.
pub fn planned(
    settings: &Rollout,
    members: &BTreeMap<String, Member>,
    nodes: usize,
) -> Vec<Vec<String>> {
    let rollout = Waves {
        settings,
        members,
        is_valid: false,
        now: 0,
    };
    let allowed = count(settings.max_unavailable, nodes).max(1);
    let candidates = rollout.candidates();
    let mut canary = rollout.first(candidates);
    canary.truncate(allowed);
    let mut waves: BTreeMap<Wave, Vec<&String>> = BTreeMap::new();
    for (node, member) in members {
        let wave = if canary.contains(&(node, member)) {
            Wave::Canary
        } else {
            rollout.wave(node, member)
        };
        waves.entry(wave).or_default().push(node);
    }
    let batches = waves.values().flat_map(|nodes| nodes.chunks(allowed));
    batches
        .map(|nodes| nodes.iter().copied().cloned().collect())
        .collect()
}

/// The number of nodes that a setting means, of so many.
pub fn count(setting: CountOrPercent, of: usize) -> usize {
    match setting {
        CountOrPercent::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
        CountOrPercent::Percent(share) => of * usize::from(share) / 100,
    }
}

struct Waves<'a> {
    settings: &'a Rollout,
    members: &'a BTreeMap<String, Member>,
    /// Whether the revision was complete once.
    is_valid: bool,
    now: Time,
}

type Named<'a> = (&'a String, &'a Member);

impl<'a> Waves<'a> {
    fn deadline(&self, member: &Member) -> Option<Time> {
        let published_at = member.published_at?;
        Some(published_at + Time::from(self.settings.progress_deadline.get()))
    }

    fn is_late(&self, member: &Member) -> bool {
        let deadline = self.deadline(member);
        deadline.is_some_and(|deadline| self.now >= deadline)
    }

    /// When a node that can answer must have done so: it has the whole time from when it could.
    fn answer_due(&self, member: &Member) -> Option<Time> {
        let since = member.answers_since?.max(member.published_at?);
        Some(since + Time::from(self.settings.progress_deadline.get()))
    }

    fn is_overdue(&self, member: &Member) -> bool {
        let due = self.answer_due(member);
        Self::can_answer(member) && due.is_some_and(|due| self.now >= due)
    }

    /// The first node of the rollout that failed. A node whose agent does not answer proves nothing about its config, unless it is one of the
    /// first that had it: a revision that cuts a node off from the API server silences its agent.
    fn failure(&self) -> Option<Failure> {
        let lacks_canary = self.lacking(&self.candidates()) > 0;
        let failed = self.members.iter().find_map(|(node, member)| {
            let reason = match member.progress {
                Progress::Failed => Reason::Reported,
                Progress::Ongoing if self.is_overdue(member) => Reason::NoAnswer,
                Progress::Ongoing | Progress::Ready
                    if lacks_canary && self.is_lost(member) && self.is_late(member) =>
                {
                    Reason::Silent
                }
                Progress::Ongoing | Progress::Ready | Progress::Queued | Progress::Unapproved => {
                    return None;
                }
            };
            member.is_published.then_some((node, reason))
        });
        failed.map(|(node, reason)| Failure {
            node: node.clone(),
            reason,
            at: self.now,
        })
    }

    /// When the next node that has not answered is late.
    fn next_deadline(&self) -> Option<Time> {
        let waiting = self.members.values();
        let waiting = waiting.filter(|member| {
            self.is_in_flight(member) || self.is_elsewhere(member) || self.is_lost(member)
        });
        let deadlines = waiting.filter_map(|member| {
            if self.is_elsewhere(member) || !Self::can_answer(member) {
                return self.deadline(member);
            }
            // Where it is not known since when it could answer, that is known by then.
            let latest = self.now + Time::from(self.settings.progress_deadline.get());
            Some(self.answer_due(member).unwrap_or(latest))
        });
        deadlines.filter(|deadline| *deadline > self.now).min()
    }

    /// Whether an answer can be expected of a node.
    fn can_answer(member: &Member) -> bool {
        member.is_alive && !member.is_held
    }

    /// Whether a revision is tried on a node: what it does there decides whether others get it.
    fn is_tried_on(&self, member: &Member) -> bool {
        !self.is_valid && member.is_published && member.is_canary
    }

    /// Whether a node on which the revision is tried has fallen silent.
    fn is_lost(&self, member: &Member) -> bool {
        self.is_tried_on(member) && !member.is_alive && !member.is_held
    }

    /// Whether a node is changing now. One that cannot answer is waited for until its deadline.
    fn is_in_flight(&self, member: &Member) -> bool {
        let is_given_up = !Self::can_answer(member) && self.is_late(member);
        member.progress == Progress::Ongoing && !is_given_up
    }

    /// Whether a node is changing to something that it will not keep: to what it had before, or to a change that another one followed. It is
    /// waited for until its deadline, and may get another config meanwhile.
    fn is_elsewhere(&self, member: &Member) -> bool {
        let is_due = self.deadline(member).is_some_and(|at| self.now < at);
        let is_other = matches!(member.progress, Progress::Queued | Progress::Unapproved);
        is_other && !member.has_answered && is_due
    }

    fn is_queued(member: &Member) -> bool {
        member.progress == Progress::Queued && !member.is_held
    }

    /// Whether a node is part of the rollout: its config is of it, or it waits for one.
    fn is_in(member: &Member) -> bool {
        member.is_published || member.progress == Progress::Queued
    }

    fn is_confirmed(member: &Member) -> bool {
        member.is_published && member.progress == Progress::Ready
    }

    /// The nodes that may be the first; all where none of the chosen ones changes.
    fn candidates(&self) -> Vec<Named<'a>> {
        let all: Vec<Named<'a>> = self
            .members
            .iter()
            .filter(|(_, m)| Self::is_in(m))
            .collect();
        let chosen = all.iter().copied().filter(|(_, m)| m.can_be_canary);
        let chosen: Vec<Named<'a>> = chosen.collect();
        if chosen.is_empty() { all } else { chosen }
    }

    /// How many more nodes must confirm before the canary is complete.
    fn lacking(&self, candidates: &[Named<'_>]) -> usize {
        // Nodes that did not answer when they would have got it prove nothing.
        let can_confirm = |member: &Member| {
            Self::can_answer(member) || Self::is_confirmed(member) || self.is_tried_on(member)
        };
        let possible = candidates.iter().filter(|(_, m)| can_confirm(m)).count();
        let in_all = self.members.values().filter(|m| Self::is_in(m)).count();
        let wanted = count(self.settings.canary.size, in_all);
        let wanted = wanted.min(possible).max(1);
        let confirmed = candidates.iter().filter(|(_, m)| Self::is_confirmed(m));
        let lacking = wanted.saturating_sub(confirmed.count());
        // What silences a node after it has confirmed is found while no others are well with it.
        let confirmed = || self.members.values().filter(|m| Self::is_confirmed(m));
        if lacking == 0 && confirmed().any(|member| self.is_lost(member)) {
            let alive = confirmed().filter(|member| member.is_alive).count();
            return wanted.saturating_sub(alive);
        }
        lacking
    }

    /// The wave of a node that is not among the first.
    fn wave(&self, node: &str, member: &Member) -> Wave {
        match (member.is_alive, member.is_control_plane) {
            (false, true) => return Wave::SilentControlPlane(node.to_owned()),
            (false, false) => return Wave::Silent,
            (true, true) => return Wave::ControlPlane(node.to_owned()),
            (true, false) => {}
        }
        Wave::Domain {
            place: self.place(member),
            name: member.domain.clone(),
        }
    }

    /// The place of a node's failure domain in the order.
    fn place(&self, member: &Member) -> usize {
        let order = &self.settings.order;
        let place = order.iter().position(|domain| *domain == member.domain);
        place.unwrap_or(order.len())
    }

    /// The first wave that is not complete; none if all are.
    fn current(&self) -> Option<Wave> {
        let is_open = |member: &Member| Self::is_queued(member) || self.is_in_flight(member);
        let open = self.members.iter().filter(|(_, member)| is_open(member));
        let first = open.map(|(node, member)| self.wave(node, member)).min();
        let candidates = self.candidates();
        // What no node has confirmed is not complete, even if no answer is expected any more.
        let is_unconfirmed = |(_, member): &Named<'_>| !Self::is_confirmed(member);
        let is_open = first.is_some() || (!self.is_valid && candidates.iter().any(is_unconfirmed));
        if is_open && self.lacking(&candidates) > 0 {
            return Some(Wave::Canary);
        }
        first
    }

    /// The candidates that are still to become canaries, in the order of their waves. None takes the place of one that has the revision and
    /// cannot say how it takes it.
    fn first(&self, mut candidates: Vec<Named<'a>>) -> Vec<Named<'a>> {
        let is_waited_for = |member: &Member| {
            self.is_lost(member) || (self.is_tried_on(member) && !Self::is_confirmed(member))
        };
        let trying = candidates
            .iter()
            .filter(|(_, m)| self.is_in_flight(m) || is_waited_for(m));
        let lacking = self.lacking(&candidates).saturating_sub(trying.count());
        candidates.retain(|(_, member)| Self::is_queued(member));
        candidates.sort_by_cached_key(|(node, member)| self.wave(node, member));
        candidates.truncate(lacking);
        candidates
    }

    /// The nodes of a wave that are published to now.
    fn publish(&self, wave: &Wave) -> Vec<String> {
        let is_changing = |member: &&Member| self.is_in_flight(member) || self.is_elsewhere(member);
        let all = self.members.values().filter(is_changing).count();
        let allowed = count(self.settings.max_unavailable, self.members.len()).max(1);
        let mut free = allowed.saturating_sub(all);
        let nodes: Vec<Named<'_>> = match wave {
            Wave::Canary => self.first(self.candidates()),
            wave => {
                let nodes = self.members.iter();
                let nodes = nodes.filter(|(node, member)| self.wave(node, member) == *wave);
                nodes
                    .filter(|(_, member)| Self::is_queued(member))
                    .collect()
            }
        };
        let next = nodes.into_iter().filter(|(_, member)| {
            // One that is changing anyway is one of those that may be, unless those are too many: mirrors reach all nodes at once.
            if self.is_elsewhere(member) {
                return all <= allowed;
            }
            let has_place = free > 0;
            free = free.saturating_sub(1);
            has_place
        });
        next.map(|(node, _)| node.clone()).collect()
    }
}
