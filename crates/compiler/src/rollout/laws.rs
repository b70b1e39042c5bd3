//! Ring 2, laws of rollouts: a simulated cluster in which nodes confirm, fail, turn bad, stop answering, come and go, edits touch some of them, and
//! the operator starts anew with every pass.

use std::collections::{BTreeMap, BTreeSet};

use api::selvedge::{Canary, CountOrPercent, Rollout};
use api::value::Seconds;
use proptest::prelude::*;
use worlds::laws;

use super::{
    Progress,
    waves::{Decision, Member, Phase, Reason, State, Time, count, decide},
};

/// How long a simulated node needs to confirm.
const ANSWER: Time = 3;

/// The deadline of the simulated rollouts.
const DEADLINE: u32 = 20;

/// How long an agent counts as alive after it was heard of, and how often each is heard of.
const LIFETIME: Time = 15;
const RENEWAL: Time = 5;

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the events of a node come in any combination"
)]
struct Node {
    domain: u8,
    is_control_plane: bool,
    is_alive: bool,
    is_held: bool,
    /// Since when it is neither silent nor held.
    free_since: Time,
    /// Since when the operator knows that, if it does.
    answers_since: Option<Time>,
    /// Whether it fails with whatever it has got since.
    is_broken: bool,
    /// The revision in which its content changed last.
    wants: u32,
    /// The revision of its stored config, and when that was published.
    published: (u32, Time),
    /// The revision that it runs.
    runs: u32,
    /// Whether it got that as one of the first, while it was alive.
    is_canary: bool,
    /// What it said last: the revision that it is about, and whether it has taken it.
    report: Option<(u32, bool)>,
}

impl Node {
    fn new(domain: u8) -> Self {
        Self {
            domain,
            is_control_plane: false,
            is_alive: true,
            is_held: false,
            free_since: 0,
            answers_since: Some(0),
            is_broken: false,
            wants: 1,
            published: (0, 0),
            runs: 0,
            is_canary: false,
            report: None,
        }
    }

    /// Whether it says by now how it takes what it has got.
    fn answers(&self, now: Time) -> bool {
        let since = self.published.1.max(self.free_since);
        self.is_alive && !self.is_held && now >= since + ANSWER
    }
}

/// Something that happens to the cluster.
#[derive(Clone, Debug)]
enum Event {
    Silent(usize),
    Alive(usize),
    Join(u8),
    Delete(usize),
    Hold(usize),
    /// A node fails from now on, or is repaired.
    Break(usize),
    /// A new revision: whether it works, and which nodes it touches.
    Edit(bool, u16),
    Pause(bool),
    /// Another operator leads, which has heard of no agent: all that have a Lease may be alive.
    Restart,
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (0..12_usize).prop_map(Event::Silent),
        3 => (0..12_usize).prop_map(Event::Alive),
        1 => (0..3_u8).prop_map(Event::Join),
        1 => (0..12_usize).prop_map(Event::Delete),
        1 => (0..12_usize).prop_map(Event::Hold),
        1 => (0..12_usize).prop_map(Event::Break),
        2 => (any::<bool>(), any::<u16>()).prop_map(|(works, nodes)| Event::Edit(works, nodes)),
        1 => any::<bool>().prop_map(Event::Pause),
        1 => Just(Event::Restart),
        4 => (1..30_u8).prop_map(Event::Wait),
    ]
}

fn size() -> impl Strategy<Value = CountOrPercent> {
    prop_oneof![
        (0..4_u32).prop_map(CountOrPercent::Count),
        (0..=100_u8).prop_map(CountOrPercent::Percent),
    ]
}

fn settings() -> impl Strategy<Value = Rollout> {
    (size(), size(), 0..8_u32).prop_map(|(max_unavailable, canary, soak)| Rollout {
        max_unavailable,
        canary: Canary {
            size: canary,
            node_selector: None,
        },
        soak_time: Seconds::new(soak),
        progress_deadline: Seconds::new(DEADLINE),
        order: vec!["1".to_owned()],
        ..Rollout::default()
    })
}

fn node() -> impl Strategy<Value = Node> {
    let alive = prop::bool::weighted(0.85);
    let control_plane = prop::bool::weighted(0.2);
    (0..3_u8, control_plane, alive).prop_map(|(domain, is_control_plane, is_alive)| Node {
        is_control_plane,
        is_alive,
        answers_since: is_alive.then_some(0),
        ..Node::new(domain)
    })
}

struct Cluster {
    settings: Rollout,
    nodes: BTreeMap<String, Node>,
    /// The newest revision, whether it works, and what is stored of its rollout.
    revision: u32,
    works: bool,
    state: State,
    now: Time,
    /// The nodes that the newest revision was tried on: those that counted as alive when they got it as the first.
    tried: BTreeSet<String>,
    /// How many nodes its canary had at most: nodes come and go.
    canary: usize,
    /// Whether a node has failed with the newest revision, be it for a reason of its own.
    has_failed: bool,
    joined: usize,
    /// When the operator began to listen.
    listens_since: Time,
}

impl Cluster {
    fn members(&self) -> BTreeMap<String, Member> {
        let member = |(name, node): (&String, &Node)| {
            let (revision, published_at) = node.published;
            let progress = match node.report {
                _ if revision < node.wants => Progress::Queued,
                Some((of, true)) if of == revision => Progress::Ready,
                Some((of, false)) if of == revision => Progress::Failed,
                Some(_) | None => Progress::Ongoing,
            };
            let member = Member {
                progress,
                published_at: Some(published_at),
                has_answered: node.report.is_some_and(|(of, _)| of == revision),
                is_published: revision == self.revision
                    && self.state.completed_at.is_none_or(|at| published_at >= at),
                is_canary: node.is_canary,
                is_alive: node.is_alive || self.now < self.listens_since + LIFETIME,
                answers_since: node.answers_since,
                is_held: node.is_held,
                domain: node.domain.to_string(),
                is_control_plane: node.is_control_plane,
                can_be_canary: true,
            };
            (name.clone(), member)
        };
        self.nodes.iter().map(member).collect()
    }

    /// One pass of the operator: what is stored is all that it knows.
    fn pass(&mut self) -> Result<Decision, TestCaseError> {
        let (now, works) = (self.now, self.works);
        for node in self.nodes.values_mut() {
            let revision = node.published.0;
            if node.answers(now) {
                // What an older revision came to does not depend on the newest one.
                let works = works || revision != self.revision;
                let is_taken = !node.is_broken && (works || node.runs == revision);
                node.report = Some((revision, is_taken));
                if is_taken {
                    node.runs = revision;
                }
            }
            if node.is_alive && now >= self.listens_since + RENEWAL {
                node.answers_since.get_or_insert(now);
            }
        }
        let members = self.members();
        let failed = |member: &Member| member.is_published && member.progress == Progress::Failed;
        let has_failed = members.values().any(failed);
        self.has_failed |= has_failed;
        let canary = count(self.settings.canary.size, members.len()).max(1);
        self.canary = self.canary.max(canary);
        let decision = decide(&self.settings, &members, &self.state, self.now, false);
        // One that no node had to change for is valid from the start.
        let is_valid = self.state.completed_at.is_some();
        let is_still = |node: &String| {
            let member = &members[node];
            let at = member.published_at.unwrap_or_default();
            member.has_answered || self.now >= at + Time::from(DEADLINE)
        };
        let begins = decision.publish.iter().any(is_still);
        for node in &decision.publish {
            let member = &members[node];
            prop_assert_eq!(member.progress, Progress::Queued, "{} needs nothing", node);
            prop_assert!(!member.is_held, "{} is held", node);
            let node_of = self.nodes.get_mut(node).expect("a node");
            node_of.published = (self.revision, self.now);
            node_of.is_canary = decision.canaries.contains(node);
            if decision.canaries.contains(node) {
                self.tried.insert(node.clone());
            } else {
                prop_assert!(
                    works || is_valid || !members[node].is_alive,
                    "{} gets what works nowhere",
                    node
                );
            }
        }
        let failure = decision.state.failure.as_ref();
        let failure = failure.filter(|_| self.state.failure.is_none());
        if let Some(silent) = failure.filter(|failure| failure.reason == Reason::Silent) {
            prop_assert!(self.tried.contains(&silent.node) && !members[&silent.node].is_alive);
            self.has_failed = true;
        }
        if has_failed || decision.phase == Phase::Failed {
            prop_assert!(decision.publish.is_empty(), "a node has failed with it");
        }
        self.state = decision.state.clone();
        self.check(&decision, begins)?;
        Ok(decision)
    }

    /// `begins` says whether a node begins to change that was not changing anyway.
    fn check(&self, decision: &Decision, begins: bool) -> Result<(), TestCaseError> {
        let members = self.members();
        let in_flight = members.values().filter(|member| {
            let is_late = member
                .published_at
                .is_some_and(|at| self.now >= at + Time::from(DEADLINE));
            match member.progress {
                Progress::Ongoing => (member.is_alive && !member.is_held) || !is_late,
                // It is changing to what it will not keep.
                Progress::Queued => !member.has_answered && !is_late,
                Progress::Ready | Progress::Failed | Progress::Unapproved => false,
            }
        });
        let allowed = count(self.settings.max_unavailable, members.len()).max(1);
        if begins {
            prop_assert!(
                in_flight.count() <= allowed,
                "more than {} in flight",
                allowed
            );
        }
        prop_assert!(
            self.works || self.state.completed_at.is_some() || self.tried.len() <= self.canary,
            "a revision that works nowhere was tried on {:?}, the canary is {}",
            self.tried,
            self.canary
        );
        if self.settings.pause {
            prop_assert!(decision.publish.is_empty(), "it is paused");
        }
        Ok(())
    }

    fn happen(&mut self, event: &Event) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        let name = |number: usize| names.get(number % names.len().max(1));
        match event {
            Event::Silent(number) => {
                if let Some(node) = name(*number).and_then(|name| self.nodes.get_mut(name)) {
                    node.is_alive = false;
                    node.answers_since = None;
                }
            }
            Event::Alive(number) => {
                if let Some(node) = name(*number).and_then(|name| self.nodes.get_mut(name)) {
                    if !node.is_alive {
                        node.free_since = self.now;
                        node.answers_since = Some(self.now);
                    }
                    node.is_alive = true;
                }
            }
            Event::Hold(number) => {
                if let Some(node) = name(*number).and_then(|name| self.nodes.get_mut(name)) {
                    node.is_held = !node.is_held;
                    node.free_since = self.now;
                    node.answers_since = node.answers_since.map(|_| self.now);
                }
            }
            Event::Join(domain) => {
                self.joined += 1;
                let node = Node {
                    wants: self.revision,
                    ..Node::new(*domain)
                };
                self.nodes.insert(format!("joined{}", self.joined), node);
            }
            Event::Delete(number) => {
                if let Some(name) = name(*number) {
                    self.nodes.remove(name);
                    self.tried.remove(name);
                }
            }
            Event::Break(number) => {
                if let Some(node) = name(*number).and_then(|name| self.nodes.get_mut(name)) {
                    node.is_broken = !node.is_broken;
                }
            }
            Event::Edit(works, touched) => {
                self.revision += 1;
                self.works = *works;
                self.has_failed = false;
                for (number, node) in self.nodes.values_mut().enumerate() {
                    // What has not worked is changed in any case.
                    if touched & (1 << (number % 16)) != 0 || node.runs < node.wants {
                        node.wants = self.revision;
                    }
                }
                self.state = State::default();
                self.tried.clear();
                self.canary = 0;
            }
            Event::Restart => {
                self.listens_since = self.now;
                for node in self.nodes.values_mut() {
                    node.answers_since = None;
                }
            }
            Event::Pause(is_paused) => self.settings.pause = *is_paused,
            Event::Wait(seconds) => self.now += Time::from(*seconds),
        }
    }
}

proptest! {
    #![proptest_config(laws(2000))]

    #[test]
    fn a_rollout_keeps_its_limits_and_ends(
        settings in settings(),
        nodes in prop::collection::vec(node(), 1..12),
        works in any::<bool>(),
        events in prop::collection::vec(event(), 0..40),
    ) {
        let named = nodes.into_iter().enumerate();
        let mut cluster = Cluster {
            settings,
            nodes: named.map(|(number, node)| (format!("n{number:02}"), node)).collect(),
            revision: 1,
            works,
            state: State::default(),
            now: 1000,
            tried: BTreeSet::new(),
            canary: 0,
            has_failed: false,
            joined: 0,
            listens_since: 0,
        };
        for event in &events {
            cluster.pass()?;
            cluster.happen(event);
        }
        // From here on nothing happens but time.
        cluster.settings.pause = false;
        let mut last = cluster.pass()?;
        for _ in 0..400 {
            let step = last.again_at.map_or(1, |at| at.saturating_sub(cluster.now));
            cluster.now += step.clamp(1, ANSWER);
            last = cluster.pass()?;
        }
        // What cannot be tried on any node is not complete.
        let is_touched = |node: &Node| node.wants == cluster.revision;
        let can_answer = |node: &Node| node.is_alive && !node.is_held;
        let mut nodes = cluster.nodes.values();
        let could_be_tried = nodes.any(|node| is_touched(node) && can_answer(node));
        let ends = matches!(last.phase, Phase::Complete | Phase::Failed);
        // A person has put it on hold, and looks at what it does there.
        let waits = |name: &String| {
            let node = &cluster.nodes[name];
            node.is_held && node.report.is_none_or(|(of, _)| of != cluster.revision)
        };
        let is_looked_at = cluster.tried.iter().any(waits);
        prop_assert!(ends || !could_be_tried || is_looked_at, "{:?}", last);
        if !ends && is_looked_at {
            prop_assert!(last.publish.is_empty());
        } else if !ends {
            let confirmed = cluster.members();
            let mut confirmed = confirmed.values();
            let is_confirmed = |member: &Member| {
                member.is_published && member.progress == Progress::Ready
            };
            prop_assert!(!confirmed.any(is_confirmed), "{:?}", last);
        } else if last.phase == Phase::Complete {
            for (name, member) in cluster.members() {
                // A node that fails a revision after that was complete fails alone.
                let is_broken = cluster.nodes.get(&name).is_some_and(|node| node.is_broken);
                let is_done = match member.progress {
                    Progress::Ready => true,
                    Progress::Failed => !cluster.works || is_broken,
                    Progress::Ongoing | Progress::Queued | Progress::Unapproved => false,
                };
                prop_assert!(is_done || !member.is_alive || member.is_held, "{} is left out", name);
            }
        } else {
            let may_fail = !cluster.works || cluster.has_failed;
            prop_assert!(may_fail, "a revision that works failed: {:?}", last.state.failure);
        }
    }
}
