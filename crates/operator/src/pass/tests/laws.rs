//! Ring 2, a law of passes: what is stored after each is all that the next one knows. Nodes stop answering, are held, break, come and go; they
//! report late, about older configs, and about revisions that they do not have; mirrors change at any time, and operators start anew.

use std::collections::BTreeSet;

use api::tcaas::{NetworkConfigRevisionStatus, NodeNetworkConfigSpec};
use compiler::{rollout::stored::Lane, rollout::waves};
use proptest::prelude::*;

use super::{mirrors, *};

/// How long a simulated node needs to answer.
const ANSWER: Time = 3;
const DEADLINE: Time = 20;
/// How long an agent counts as alive after it was heard of, and how often each is heard of.
const LIFETIME: Time = 15;
const RENEWAL: Time = 5;

/// Something that happens to the cluster.
#[derive(Clone, Debug)]
enum Event {
    Silent(usize),
    Alive(usize),
    Hold(usize),
    /// A node fails from now on, or is repaired.
    Break(usize),
    Join(bool),
    Delete(usize),
    /// The segment of one rack changes: which one, and whether the change works.
    Edit(bool, bool),
    /// A mirror comes or goes.
    Mirror,
    /// A node repeats what it said about the config that it had before.
    Late(usize),
    /// A node says that it has a revision that nobody knows.
    Other(usize),
    Restart,
    Wait(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let node = || 0..8_usize;
    prop_oneof![
        1 => node().prop_map(Event::Silent),
        2 => node().prop_map(Event::Alive),
        1 => node().prop_map(Event::Hold),
        1 => node().prop_map(Event::Break),
        1 => any::<bool>().prop_map(Event::Join),
        1 => node().prop_map(Event::Delete),
        2 => (any::<bool>(), prop::bool::weighted(0.6)).prop_map(|(rack, works)| Event::Edit(rack, works)),
        2 => Just(Event::Mirror),
        2 => node().prop_map(Event::Late),
        1 => node().prop_map(Event::Other),
        1 => Just(Event::Restart),
        5 => (1..12_u8).prop_map(Event::Wait),
    ]
}

/// A config that a node was given.
#[derive(Clone, Debug)]
struct Told {
    spec: NodeNetworkConfigSpec,
    lane: Lane,
    /// When the operator says that it was published, and when it was.
    published_at: String,
    at: Time,
    generation: i64,
    /// What the node has said about it.
    answer: Option<bool>,
    /// Whether the node changes what it forwards by.
    changes: bool,
    status: Value,
}

#[derive(Clone, Debug, Default)]
struct Node {
    is_alive: bool,
    is_held: bool,
    is_broken: bool,
    rack: &'static str,
    free_since: Time,
    answers_since: Option<Time>,
    told: Option<Told>,
    /// What it forwards by.
    runs: Option<String>,
}

impl Node {
    fn can_answer(&self) -> bool {
        self.is_alive && !self.is_held
    }

    /// Whether it is changing, as far as anybody must wait for it.
    fn is_changing(&self, now: Time) -> bool {
        self.told.as_ref().is_some_and(|told| {
            let published_at = stored::time(&told.published_at).expect("a time");
            told.changes && told.answer.is_none() && now < published_at + DEADLINE
        })
    }
}

/// What a node forwards by: its segments.
fn forwarding(spec: &NodeNetworkConfigSpec) -> String {
    let segments = spec.layer2s.iter();
    let segments = segments.map(|(vlan, segment)| format!("{vlan}: {:?}", segment.mtu));
    segments.collect::<Vec<_>>().join(", ")
}

/// What does not work has an odd MTU.
fn works(spec: &NodeNetworkConfigSpec) -> bool {
    let mut segments = spec.layer2s.values();
    segments.all(|segment| segment.mtu.get() % 2 == 0)
}

struct Cluster {
    compiler: Compiler,
    nodes: BTreeMap<String, Node>,
    now: Time,
    listens_since: Time,
    edits: u32,
    /// How many nodes there have been: a name is not used again.
    joined: u32,
    is_mirrored: bool,
    /// The revisions that were complete once.
    complete: BTreeSet<String>,
}

impl Cluster {
    fn new(racks: &[bool], allowed: u32) -> Self {
        let mut compiler = Compiler::default();
        let rollout = json!({
            "maxUnavailable": allowed, "progressDeadline": format!("{DEADLINE}s"), "soakTime": "2s",
        });
        let settings = json!({"spec": {"rollout": rollout}});
        put(&mut compiler, Kind::Settings, "default", &settings);
        mirrors::tunnel(&mut compiler, (0..20).map(|number| format!("n{number:02}")));
        let mut cluster = Self {
            compiler,
            nodes: BTreeMap::new(),
            now: 1000,
            listens_since: 0,
            edits: 0,
            joined: 0,
            is_mirrored: false,
            complete: BTreeSet::new(),
        };
        for rack in racks {
            cluster.join(*rack);
        }
        cluster.edit(false, true);
        cluster.edit(true, true);
        cluster
    }

    fn join(&mut self, rack: bool) {
        let number = self.joined;
        self.joined += 1;
        let node = Node {
            is_alive: true,
            rack: if rack { "b" } else { "a" },
            answers_since: Some(self.now),
            ..Node::default()
        };
        let name = format!("n{number:02}");
        self.nodes.insert(name.clone(), node);
        self.put_node(&name);
    }

    fn put_node(&mut self, name: &str) {
        let node = &self.nodes[name];
        let mut metadata = json!({"name": name, "labels": {"rack": node.rack}});
        if node.is_held {
            metadata["annotations"] = json!({"selvedge.dev/hold": "repair"});
        }
        put(
            &mut self.compiler,
            Kind::Node,
            name,
            &json!({"metadata": metadata}),
        );
    }

    fn edit(&mut self, rack: bool, works: bool) {
        self.edits += 1;
        let mtu = 1400 + 2 * self.edits + u32::from(!works);
        let (vlan, rack) = if rack { (6, "b") } else { (5, "a") };
        let selector = json!({"matchLabels": {"rack": rack}});
        let spec = json!({"id": vlan, "vni": 10_000 + vlan, "mtu": mtu, "nodeSelector": selector});
        let (name, parts) = (format!("vlan{vlan}"), json!({"spec": spec}));
        put(
            &mut self.compiler,
            Kind::Layer2NetworkConfiguration,
            &name,
            &parts,
        );
    }

    /// Stores the config of a node with what the node says about it.
    fn store(&mut self, name: &str) {
        let told = self.nodes[name].told.clone().expect("a config");
        let annotations = json!({
            stored::PUBLISHED_AT: told.published_at, stored::LANE: told.lane.to_string(),
        });
        let metadata =
            json!({"name": name, "generation": told.generation, "annotations": annotations});
        let parts = json!({"metadata": metadata, "spec": told.spec, "status": told.status});
        put(&mut self.compiler, Kind::NodeNetworkConfig, name, &parts);
    }

    fn report(&mut self, name: &str, ok: bool, (revision, generation): (&str, i64)) {
        let report = if ok { "provisioned" } else { "invalid" };
        let told = self.nodes.get_mut(name).and_then(|node| node.told.as_mut());
        told.expect("a config").status = json!({
            "configStatus": report, "observedRevision": revision, "observedGeneration": generation,
            "errorMessage": report,
        });
        self.store(name);
    }

    /// Nodes say how they take what they have got.
    fn answer(&mut self) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            let node = self.nodes.get_mut(&name).expect("a node");
            if node.is_alive && self.now >= self.listens_since + RENEWAL {
                node.answers_since.get_or_insert(self.now);
            }
            let (free_since, can_answer) = (node.free_since, node.can_answer());
            let Some(told) = node.told.as_mut().filter(|_| can_answer) else {
                continue;
            };
            let ok = works(&told.spec) && !node.is_broken;
            let is_time = self.now >= told.at.max(free_since) + ANSWER;
            if told.answer == Some(ok) || (told.answer.is_none() && !is_time) {
                continue;
            }
            told.answer = Some(ok);
            if ok {
                node.runs = Some(forwarding(&told.spec));
            }
            let (revision, generation) = (told.spec.revision.clone(), told.generation);
            self.report(&name, ok, (&revision, generation));
        }
    }

    fn pass(&mut self) -> Result<Pass, TestCaseError> {
        self.answer();
        let (now, listens_since) = (self.now, self.listens_since);
        let agent = |name: &str| {
            let node = self.nodes.get(name);
            let node = node.filter(|node| node.is_alive || now < listens_since + LIFETIME);
            Agent {
                is_alive: node.is_some(),
                answers_since: node.and_then(|node| node.answers_since),
            }
        };
        let pass = Pass::compute(&mut self.compiler, agent, BTreeMap::new(), now);
        let newest = self.store_revision(&pass);
        self.check_complete(&pass, &newest)?;
        let still: BTreeSet<String> = self
            .nodes
            .iter()
            .filter(|(_, node)| !node.is_changing(now))
            .map(|(name, _)| name.clone())
            .collect();
        let mut begins = false;
        for one in &pass.step.publish {
            let lane = one.lane.expect("no host has a router");
            let node = self.nodes.get_mut(&one.node).expect("its Node is there");
            prop_assert!(!node.is_held, "{} is held", one.node);
            let before = node.told.take();
            let is_same = before.as_ref().is_some_and(|told| told.spec == one.spec);
            prop_assert!(!is_same, "{} has that", one.node);
            let has_it = before
                .as_ref()
                .is_some_and(|told| told.spec.revision == newest);
            if pass.step.status.is_invalid && matches!(lane, Lane::Wave | Lane::Canary) && !has_it {
                prop_assert_ne!(&one.spec.revision, &newest, "it has failed on a node");
            }
            let is_undecided = before
                .as_ref()
                .is_some_and(|told| told.changes && told.answer.is_none());
            let changes = is_undecided || node.runs.as_ref() != Some(&forwarding(&one.spec));
            begins |= changes && lane != Lane::Joining && still.contains(&one.node);
            node.told = Some(Told {
                spec: one.spec.clone(),
                lane,
                published_at: one
                    .published_at
                    .clone()
                    .unwrap_or_else(|| stored::text(now)),
                at: now,
                generation: before.as_ref().map_or(1, |told| told.generation + 1),
                answer: None,
                changes: changes && lane != Lane::Joining,
                status: before.map_or(Value::Null, |told| told.status),
            });
            self.store(&one.node);
        }
        let changing = self
            .nodes
            .values()
            .filter(|node| node.is_changing(now))
            .count();
        let settings = self.compiler.snapshot().settings().rollout;
        let allowed = waves::count(settings.max_unavailable, self.nodes.len()).max(1);
        prop_assert!(
            !begins || changing <= allowed,
            "{changing} change, and {allowed} may"
        );
        Ok(pass)
    }

    /// Stores the newest revision with its status, and deletes outdated ones. Its name.
    fn store_revision(&mut self, pass: &Pass) -> String {
        let (_, compilation) = self.compiler.compile();
        let revision = &compilation.revision;
        let newest = revision.fingerprint.clone();
        let parts =
            json!({"spec": revision.spec(&compilation.objects), "status": pass.step.status});
        let name = revision::object_name(&newest);
        put(
            &mut self.compiler,
            Kind::NetworkConfigRevision,
            &name,
            &parts,
        );
        for outdated in &pass.step.outdated {
            self.compiler.remove(outdated);
        }
        newest
    }

    /// A revision is complete when all nodes that it was published to in its waves have confirmed it, but for those that cannot.
    fn check_complete(&mut self, pass: &Pass, newest: &str) -> Result<(), TestCaseError> {
        let NetworkConfigRevisionStatus { completed_at, .. } = &pass.step.status;
        if completed_at.is_none() || !self.complete.insert(newest.to_owned()) {
            return Ok(());
        }
        for (name, node) in &self.nodes {
            let told = node.told.as_ref();
            let told =
                told.filter(|told| told.spec.revision == newest && told.lane != Lane::Joining);
            let is_confirmed = told.is_none_or(|told| node.runs == Some(forwarding(&told.spec)));
            prop_assert!(
                is_confirmed || !node.can_answer(),
                "{name} has not confirmed it"
            );
        }
        Ok(())
    }

    fn happen(&mut self, event: &Event) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        let name = |number: usize| names.get(number % names.len().max(1)).cloned();
        let now = self.now;
        match event {
            Event::Silent(number) => {
                if let Some(node) = name(*number).and_then(|name| self.nodes.get_mut(&name)) {
                    (node.is_alive, node.answers_since) = (false, None);
                }
            }
            Event::Alive(number) => {
                let node = name(*number).and_then(|name| self.nodes.get_mut(&name));
                if let Some(node) = node.filter(|node| !node.is_alive) {
                    (node.is_alive, node.answers_since, node.free_since) = (true, Some(now), now);
                }
            }
            Event::Hold(number) => {
                if let Some(name) = name(*number) {
                    let node = self.nodes.get_mut(&name).expect("a node");
                    node.is_held = !node.is_held;
                    node.free_since = now;
                    node.answers_since = node.answers_since.map(|_| now);
                    self.put_node(&name);
                }
            }
            Event::Break(number) => {
                if let Some(node) = name(*number).and_then(|name| self.nodes.get_mut(&name)) {
                    node.is_broken = !node.is_broken;
                }
            }
            Event::Join(rack) => self.join(*rack),
            Event::Delete(number) => {
                if let Some(name) = name(*number).filter(|_| self.nodes.len() > 1) {
                    self.nodes.remove(&name);
                    self.compiler.remove(&ObjectRef::named(Kind::Node, name));
                }
            }
            Event::Edit(rack, works) => self.edit(*rack, *works),
            Event::Mirror => {
                self.is_mirrored = !self.is_mirrored;
                if self.is_mirrored {
                    mirrors::mirror(&mut self.compiler);
                } else {
                    self.compiler
                        .remove(&ObjectRef::named(Kind::MirrorSelector, "copy"));
                }
            }
            Event::Late(number) => self.lie(name(*number).as_deref(), |told| {
                (told.spec.revision.clone(), told.generation - 1)
            }),
            Event::Other(number) => {
                self.lie(name(*number).as_deref(), |told| {
                    ("feed".to_owned(), told.generation)
                });
            }
            Event::Restart => {
                self.compiler = Compiler::new(self.compiler.snapshot().clone());
                self.listens_since = now;
                for node in self.nodes.values_mut() {
                    node.answers_since = None;
                }
            }
            Event::Wait(seconds) => self.now += Time::from(*seconds),
        }
    }

    /// A node that has not answered yet says that it has taken something.
    fn lie(&mut self, name: Option<&str>, about: impl Fn(&Told) -> (String, i64)) {
        let told = name.and_then(|name| self.nodes.get(name)?.told.as_ref());
        let told = told.filter(|told| told.answer.is_none());
        if let (Some(name), Some((revision, generation))) = (name, told.map(about)) {
            self.report(name, true, (&revision, generation));
        }
    }

    /// What must hold when nothing happens any more.
    fn check_end(&mut self, last: &Pass) -> Result<(), TestCaseError> {
        let status = &last.step.status;
        let (_, compilation) = self.compiler.compile();
        let newest = compilation.revision.fingerprint.clone();
        let is_over = matches!(status.phase.as_deref(), Some("Complete" | "Failed"));
        let waits = |(name, node): (&String, &Node)| {
            let wanted = &compilation.nodes[name].spec(&newest);
            let told = node.told.as_ref().map(|told| forwarding(&told.spec));
            node.can_answer() && told != Some(forwarding(wanted))
        };
        let is_looked_at = |node: &Node| {
            let told = node.told.as_ref();
            let told = told.filter(|told| told.lane == Lane::Canary && told.answer.is_none());
            node.is_held && told.is_some_and(|told| told.spec.revision == newest)
        };
        // What only nodes would get that are silent or held is tried on none; and nothing goes on while the first that got it is held.
        let stands = self.nodes.values().any(is_looked_at);
        prop_assert!(
            is_over || stands || !self.nodes.iter().any(waits),
            "{status:?}"
        );
        let nodes = self.nodes.iter().filter(|(_, node)| node.can_answer());
        for (name, node) in nodes {
            let told = node.told.as_ref();
            if status.is_invalid {
                let has_it = told.is_some_and(|told| told.spec.revision == newest);
                // Nothing can be returned to before something was complete.
                prop_assert!(
                    !has_it || self.complete.is_empty(),
                    "{name} did not go back"
                );
            } else if status.phase.as_deref() == Some("Complete") {
                let wanted = &compilation.nodes[name].spec(&newest);
                let has_it = told.is_some_and(|told| forwarding(&told.spec) == forwarding(wanted));
                prop_assert!(has_it, "{name} is left out");
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(worlds::laws(60))]

    #[test]
    fn passes_keep_their_limits_believe_confirmed_reports_alone_and_come_to_an_end(
        racks in prop::collection::vec(any::<bool>(), 1..6),
        allowed in 1..4_u32,
        events in prop::collection::vec(event(), 0..30),
    ) {
        let mut cluster = Cluster::new(&racks, allowed);
        for event in &events {
            cluster.pass()?;
            cluster.happen(event);
        }
        let mut last = cluster.pass()?;
        let mut quiet = 0;
        for _ in 0..200 {
            let step = last.step.again_at.map_or(ANSWER, |at| at.saturating_sub(cluster.now));
            cluster.now += step.clamp(1, ANSWER);
            last = cluster.pass()?;
            let is_over = matches!(last.step.status.phase.as_deref(), Some("Complete" | "Failed"));
            let is_quiet = is_over && last.step.publish.is_empty();
            quiet = if is_quiet { quiet + 1 } else { 0 };
            // Longer than a deadline.
            if quiet > 10 {
                break;
            }
        }
        cluster.check_end(&last)?;
    }
}
