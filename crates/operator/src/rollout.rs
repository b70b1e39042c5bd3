//! What is published to nodes in a pass, and what is stored about it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    selvedge::{OnFailure, Rollout},
    tcaas::{
        NetworkConfigRevisionSpec, NetworkConfigRevisionStatus, NodeNetworkConfigSpec,
        NodeNetworkConfigStatus, node_network_config::ConfigStatus,
    },
};
use compiler::{
    Compilation, Kind, NodeConfig, ObjectRef, Snapshot, Writes, problem,
    revision::{self, stored as stored_revision},
    rollout::{
        Progress, guard, ready,
        stored::{self, Lane},
        waves::{self, Agent, Decision, Failure, Member, State, Time},
    },
    snapshot::{Key, Object},
};

pub(crate) type Revision = Object<NetworkConfigRevisionSpec, NetworkConfigRevisionStatus>;

/// A config that is written now.
#[derive(Clone, Debug)]
pub(crate) struct Publication {
    pub(crate) node: String,
    pub(crate) spec: NodeNetworkConfigSpec,
    /// How it reaches its node. Absent where nothing but the router of the host differs from what is stored: then the stored config stays one
    /// that was published when and how it was.
    pub(crate) lane: Option<Lane>,
    /// When the node got what it has still to answer, if that was before.
    pub(crate) published_at: Option<String>,
}

/// What is done about nodes in a pass.
#[derive(Debug)]
pub(crate) struct Step {
    /// The configs that are written now, in this order.
    pub(crate) publish: Vec<Publication>,
    /// How far the rollout is: the status of the newest revision.
    pub(crate) status: NetworkConfigRevisionStatus,
    /// Revisions that are kept no longer.
    pub(crate) outdated: Vec<ObjectRef>,
    /// Configs of machines that were given back, and whose Node is gone: what they held is free.
    pub(crate) removed: Vec<ObjectRef>,
    /// When the last retry of the revision was requested.
    pub(crate) retry: Option<String>,
    /// The nodes that have not confirmed what they must have.
    pub(crate) unanswered: BTreeSet<String>,
    /// When the next pass is due, if nothing changes before.
    pub(crate) again_at: Option<Time>,
}

/// Everything that a step is decided on.
pub(crate) struct Cluster<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) compilation: &'a Compilation,
    pub(crate) writes: &'a Writes,
    pub(crate) progress: &'a BTreeMap<String, Progress>,
    /// The revision before the newest that all nodes had confirmed, with all that it has.
    pub(crate) last_valid: Option<Arc<NetworkConfigRevisionSpec>>,
    pub(crate) now: Time,
}

/// The revisions before the newest that all nodes had confirmed, the last one first.
pub(crate) fn valid(snapshot: &Snapshot, newest: &str) -> Vec<Key> {
    let others = snapshot.network_config_revisions.iter();
    let others = others.filter(|(_, one)| one.spec.revision != newest);
    let valid = others.filter(|(_, one)| {
        let status = one.status.as_ref();
        status.is_some_and(|status| status.completed_at.is_some() && !status.is_invalid)
    });
    let mut valid: Vec<(&Key, &Revision)> = valid.collect();
    valid.sort_by_key(|(key, one)| Reverse((sequence(one), *key)));
    valid.into_iter().map(|(key, _)| key.clone()).collect()
}

impl<'a> Cluster<'a> {
    /// Decides what is done about nodes now.
    pub(crate) fn step(&self, agent: impl Fn(&str) -> Agent) -> Step {
        let settings = self.settings();
        let before = self.before();
        let retry_at = before.retried_at.as_deref().and_then(stored::time);
        let mut state = stored::state(&before);
        let is_retried = |failure: &Failure| retry_at.is_some_and(|at| at >= failure.at);
        if state.failure.as_ref().is_some_and(is_retried) {
            state.failure = None;
        }
        let last_valid = self.last_valid.as_deref();
        let approval = self.annotation(stored::APPROVED);
        let is_approved = approval.is_some_and(|one| before.spent_approval.as_ref() != Some(one));
        let mut members = self.members(&settings, &state, retry_at, agent);
        if is_approved {
            for member in members.values_mut() {
                if member.progress == Progress::Unapproved {
                    member.progress = Progress::Queued;
                }
            }
        }
        let mut joining = self.joining(&state, last_valid);
        joining.retain(|node| members.get(node).is_some_and(|member| !member.is_held));
        for node in &joining {
            members.remove(node);
        }
        let too_much = last_valid.filter(|_| !is_approved && state.completed_at.is_none());
        let too_much =
            too_much.and_then(|last_valid| self.too_much(&settings, last_valid, &members));
        let decision = waves::decide(&settings, &members, &state, self.now, too_much.is_some());
        let mut publish = self.newest_configs(&decision.publish, Lane::Wave);
        for one in &mut publish {
            if decision.canaries.contains(&one.node) {
                one.lane = Some(Lane::Canary);
            }
        }
        let failure = decision.state.failure.as_ref();
        let is_valid = decision.state.completed_at.is_some();
        let rolls_back = settings.on_failure == OnFailure::Rollback && !is_valid;
        let back = match failure.filter(|_| rolls_back) {
            Some(failure) => self.to_roll_back(&settings, &members, &state, failure),
            None => Vec::new(),
        };
        let mut direct = self.direct(&members);
        direct.retain(|one| !back.contains(&one.node));
        publish.extend(direct);
        match last_valid {
            _ if is_valid => publish.extend(self.newest_configs(&joining, Lane::Joining)),
            Some(last_valid) if !(joining.is_empty() && back.is_empty()) => {
                let spec = last_valid;
                let nodes = stored_revision::nodes(spec, self.snapshot, self.compilation);
                let of = |names: &[String], lane| configs(&nodes, &spec.revision, names, lane);
                publish.extend(of(&joining, Lane::Joining));
                publish.extend(of(&back, Lane::Wave));
            }
            _ => {}
        }
        publish.extend(self.host_routers(&members, &publish));
        let removal = self.compilation.removals.first_key_value();
        let removal = removal
            .filter(|_| !is_approved)
            .map(|(node, removal)| format!("the new config of node {node} would remove {removal}"));
        let unapproved = too_much.map(|too_much| too_much.to_string()).or(removal);
        let mut status = self.status(&decision, &members, &joining, &before, unapproved);
        status.waves = waves::progress_of_waves(&settings, &members, &before, self.now);
        status.conditions = ready::conditions(&status, decision.phase, &before, self.now);
        Step {
            publish,
            status,
            outdated: self.outdated(&settings, last_valid),
            removed: self.removed(),
            retry: before.retry,
            unanswered: self.unanswered(),
            again_at: decision.again_at,
        }
    }

    /// What the revision removes too much of. What it takes from nodes is judged before the first of them has it.
    fn too_much(
        &self,
        settings: &Rollout,
        last_valid: &NetworkConfigRevisionSpec,
        members: &BTreeMap<String, Member>,
    ) -> Option<guard::TooMuch> {
        let max_removal = settings.max_removal;
        let has_begun = members.values().any(|member| member.is_published);
        guard::too_much(max_removal, last_valid, self.compilation).or_else(|| {
            let (snapshot, compilation) = (self.snapshot, self.compilation);
            let taken = || guard::too_much_on_nodes(max_removal, snapshot, compilation);
            if has_begun { None } else { taken() }
        })
    }

    fn fingerprint(&self) -> &'a str {
        &self.compilation.revision.fingerprint
    }

    /// How changes reach nodes. Settings that were deleted or cannot be read do not say, and then nothing new is published: a pause must not
    /// end because of a mistake.
    fn settings(&self) -> Rollout {
        let subject = ObjectRef::named(Kind::Settings, "default");
        if let Some(settings) = self.snapshot.settings.get(&subject.key) {
            return settings.spec.rollout.clone();
        }
        let mut problems = self.compilation.problems.iter();
        let is_deleted = problems.any(|one| matches!(one.kind, problem::Kind::SettingsDeleted));
        let is_unread = self.snapshot.unread.contains_key(&subject);
        let revisions = self.snapshot.network_config_revisions.values();
        let last = revisions.max_by_key(|one| sequence(one));
        let phase = last.and_then(|last| last.status.as_ref()?.phase.as_deref());
        Rollout {
            pause: is_deleted || is_unread || phase == Some("Paused"),
            ..Rollout::default()
        }
    }

    /// The newest revision, as it is stored.
    fn newest(&self) -> Option<&'a Revision> {
        let key = Key::named(revision::object_name(self.fingerprint()));
        self.snapshot.network_config_revisions.get(&key)
    }

    fn annotation(&self, name: &str) -> Option<&'a String> {
        self.newest()?.meta.annotations.get(name)
    }

    /// What is stored about this rollout of the newest revision, with a retry that was requested since.
    ///
    /// Content that becomes the newest again has a rollout of its own: what an earlier one came to, and what was approved then, is over. When
    /// a retry is requested is when it is seen: clocks of people differ.
    fn before(&self) -> NetworkConfigRevisionStatus {
        let stored = self
            .newest()
            .and_then(|one| one.status.as_deref().cloned())
            .unwrap_or_default();
        let retry = self.annotation(stored::RETRY).cloned();
        let now = Some(stored::text(self.now));
        // The order in which revisions became the newest does not depend on clocks.
        let others = self.others().map(|(_, one)| sequence(one));
        let newest_other = others.max().unwrap_or(0);
        if stored.sequence <= newest_other {
            return NetworkConfigRevisionStatus {
                sequence: newest_other + 1,
                started_at: now,
                spent_approval: self.annotation(stored::APPROVED).cloned(),
                retry,
                ..NetworkConfigRevisionStatus::default()
            };
        }
        if retry.is_none() || retry == stored.retry {
            return stored;
        }
        NetworkConfigRevisionStatus {
            retry,
            retried_at: now,
            ..stored
        }
    }

    fn others(&self) -> impl Iterator<Item = (&'a Key, &'a Revision)> {
        let revisions = self.snapshot.network_config_revisions.iter();
        revisions.filter(|(_, one)| one.spec.revision != self.fingerprint())
    }

    /// All nodes. One that had not taken the revision before a retry was requested is queued again.
    fn members(
        &self,
        settings: &Rollout,
        state: &State,
        retry_at: Option<Time>,
        agent: impl Fn(&str) -> Agent,
    ) -> BTreeMap<String, Member> {
        let mut progress = self.progress.clone();
        for (node, config) in self.direct_nodes() {
            // It has what it forwards by, and waits for no wave. Whether it took that is what it says about its stored config.
            progress.insert(node.clone(), stored::progress(config));
        }
        let of_revision = (self.fingerprint(), state);
        let mut members = stored::members(self.snapshot, settings, &progress, of_revision, agent);
        for member in members.values_mut() {
            let is_before_retry = retry_at.is_some_and(|at| member.published_at < Some(at));
            let is_untaken = match member.progress {
                Progress::Failed => true,
                Progress::Ongoing => member.is_published,
                Progress::Ready => member.is_canary && !member.is_alive,
                Progress::Queued | Progress::Unapproved => false,
            };
            if is_before_retry {
                member.is_canary = false;
            }
            if is_before_retry && is_untaken {
                member.progress = Progress::Queued;
            }
        }
        members
    }

    fn unanswered(&self) -> BTreeSet<String> {
        let nodes = self.progress.iter();
        let nodes = nodes.filter(|(_, progress)| **progress != Progress::Ready);
        nodes.map(|(node, _)| node.clone()).collect()
    }

    /// Nodes without a config that need not wait for a wave: they have nothing to lose, and a valid revision is there.
    fn joining(
        &self,
        state: &State,
        last_valid: Option<&NetworkConfigRevisionSpec>,
    ) -> Vec<String> {
        if state.completed_at.is_none() && last_valid.is_none() {
            return Vec::new();
        }
        let configs = &self.snapshot.node_network_configs;
        let nodes = self.progress.iter();
        let queued = nodes.filter(|(_, progress)| **progress == Progress::Queued);
        let names = queued.map(|(node, _)| node);
        let joining = names.filter(|node| !configs.contains_key(&Key::named(node)));
        joining.cloned().collect()
    }

    /// The nodes whose stored config differs in nothing that they forward by, with that config.
    fn direct_nodes(&self) -> impl Iterator<Item = (&'a String, &'a stored::NodeNetworkConfig)> {
        let configs = &self.snapshot.node_network_configs;
        let nodes = self.writes.nodes.iter();
        let direct = nodes.filter(|(_, is_direct)| **is_direct);
        direct.filter_map(|(node, _)| Some((node, configs.get(&Key::named(node))?)))
    }

    /// Configs that differ in nothing that nodes forward by, such as mirrors: they wait for no wave.
    ///
    /// Such a change answers nothing: a node that has still to confirm its revision stays in its wave, with the deadline that it had. One that
    /// could not apply its config, or gets it in its wave, gets the change with that.
    fn direct(&self, members: &BTreeMap<String, Member>) -> Vec<Publication> {
        let has_confirmed = |config: &stored::NodeNetworkConfig| {
            matches!(stored::lane(config), Lane::Direct | Lane::Confirmed)
        };
        let direct = self.direct_nodes().filter_map(|(node, config)| {
            let member = members.get(node).filter(|member| !member.is_held)?;
            let (lane, published_at) = match member.progress {
                Progress::Ongoing => {
                    let published_at = config.meta.annotations.get(stored::PUBLISHED_AT);
                    (stored::lane(config), published_at.cloned())
                }
                Progress::Ready if member.is_published => (Lane::Confirmed, None),
                Progress::Ready => (Lane::Direct, None),
                // It runs what it forwards by; what failed was a change such as this one, or the node itself.
                Progress::Failed if !member.is_published && has_confirmed(config) => {
                    (Lane::Direct, None)
                }
                Progress::Failed | Progress::Queued | Progress::Unapproved => return None,
            };
            let mut config = self.newest_configs(std::slice::from_ref(node), lane);
            config.pop().map(|config| Publication {
                published_at,
                ..config
            })
        });
        direct.collect()
    }

    /// Stored configs with the router of the host that nodes must have, whatever else they wait for.
    fn host_routers(
        &self,
        members: &BTreeMap<String, Member>,
        published: &[Publication],
    ) -> Vec<Publication> {
        let published: BTreeSet<&str> = published.iter().map(|one| one.node.as_str()).collect();
        let is_held = |node: &str| members.get(node).is_some_and(|member| member.is_held);
        let nodes = self.writes.host_routers.iter();
        let nodes = nodes.filter(|node| !published.contains(node.as_str()) && !is_held(node));
        let publication = |node: &String| {
            let stored = self.snapshot.node_network_configs.get(&Key::named(node))?;
            let config = self.compilation.nodes.get(node)?;
            let host_router = config.host_router.as_ref();
            Some(Publication {
                node: node.clone(),
                spec: NodeNetworkConfigSpec {
                    host_router: host_router.map(|one| Arc::clone(&one.router)),
                    ..NodeNetworkConfigSpec::clone(&stored.spec)
                },
                lane: None,
                published_at: None,
            })
        };
        nodes.filter_map(publication).collect()
    }

    fn newest_configs(&self, nodes: &[String], lane: Lane) -> Vec<Publication> {
        configs(&self.compilation.nodes, self.fingerprint(), nodes, lane)
    }

    /// The nodes that go back to the last valid revision now: those that got the failed one in this rollout, not more at a time than may be
    /// changing; nodes of the control plane when no other is left, and one at a time.
    fn to_roll_back(
        &self,
        settings: &Rollout,
        members: &BTreeMap<String, Member>,
        state: &State,
        failure: &Failure,
    ) -> Vec<String> {
        let configs = &self.snapshot.node_network_configs;
        let deadline = Time::from(settings.progress_deadline.get());
        let is_in_wave = |config: &stored::NodeNetworkConfig| {
            let is_in_wave = matches!(stored::lane(config), Lane::Wave | Lane::Canary);
            is_in_wave && stored::progress(config) == Progress::Ongoing
        };
        // Those that go back already, and those that have not answered an earlier change.
        let is_busy = |config: &&stored::NodeNetworkConfig| {
            let published_at = stored::published_at(config);
            let is_recent = published_at.is_some_and(|at| self.now < at + deadline);
            is_recent && config.spec.revision != self.fingerprint() && is_in_wave(config)
        };
        let allowed = waves::count(settings.max_unavailable, self.progress.len()).max(1);
        let busy = configs.values().filter(is_busy).count();
        let mut nodes: Vec<(&Key, &stored::NodeNetworkConfig)> = (configs.iter())
            .filter(|(key, config)| {
                let member = members.get(&*key.name);
                let is_free = member.is_some_and(|member| !member.is_held);
                let is_of_rollout = stored::published_at(config) >= state.started_at;
                config.spec.revision == self.fingerprint() && is_of_rollout && is_free
            })
            .collect();
        // Those that are changing anyway come first: with the others, more would change than may. One that failed runs the old config
        // already.
        nodes.sort_by_key(|(key, config)| match stored::progress(config) {
            Progress::Ongoing if is_in_wave(config) => 0,
            _ if *key.name == *failure.node => 1,
            Progress::Failed => 2,
            Progress::Ongoing | Progress::Ready | Progress::Queued | Progress::Unapproved => 3,
        });
        let is_control_plane = |(key, _): &(&Key, _)| {
            let member = members.get(&*key.name);
            member.is_some_and(|member| member.is_control_plane)
        };
        if nodes.iter().all(is_control_plane) {
            nodes.truncate(usize::from(busy == 0));
        } else {
            nodes.retain(|node| !is_control_plane(node));
            nodes.truncate(allowed.saturating_sub(busy));
        }
        let names = nodes.into_iter().map(|(key, _)| key.name.to_string());
        names.collect()
    }

    fn status(
        &self,
        decision: &Decision,
        members: &BTreeMap<String, Member>,
        joining: &[String],
        before: &NetworkConfigRevisionStatus,
        unapproved: Option<String>,
    ) -> NetworkConfigRevisionStatus {
        let error_message = |node: &str| error_message(self.snapshot, node);
        let Decision { state, phase, .. } = decision;
        let mut status = stored::status(state, *phase, members, before, error_message);
        let joining = u32::try_from(joining.len()).unwrap_or(u32::MAX);
        status.queued += joining;
        status.total += joining;
        status.unapproved_message = unapproved;
        status
    }

    /// Configs that no machine has: its agent has said so, and its Node is gone.
    fn removed(&self) -> Vec<ObjectRef> {
        let configs = self.snapshot.node_network_configs.iter();
        let removed = configs.filter(|(key, config)| {
            let status = config.status.as_ref();
            let is_removed =
                |status: &NodeNetworkConfigStatus| status.config_status == ConfigStatus::Removed;
            !self.snapshot.nodes.contains_key(key) && status.is_some_and(|one| is_removed(one))
        });
        let subject = |(key, _): (&Key, _)| ObjectRef::named(Kind::NodeNetworkConfig, &*key.name);
        removed.map(subject).collect()
    }

    /// Revisions that are more than are kept. The newest, the last valid one, and those that a node has, stay.
    fn outdated(
        &self,
        settings: &Rollout,
        last_valid: Option<&NetworkConfigRevisionSpec>,
    ) -> Vec<ObjectRef> {
        let configs = self.snapshot.node_network_configs.values();
        let mut needed: BTreeSet<&str> = configs.map(|one| one.spec.revision.as_str()).collect();
        needed.extend(last_valid.map(|one| one.revision.as_str()));
        let mut others: Vec<(&Key, &Revision)> = self.others().collect();
        others.sort_by_key(|(key, one)| (sequence(one), *key));
        let limit = usize::try_from(settings.history_limit).unwrap_or(usize::MAX);
        let surplus = (others.len() + 1).saturating_sub(limit);
        let is_needed = |one: &Revision| needed.contains(one.spec.revision.as_str());
        let surplus = others
            .into_iter()
            .filter(|(_, one)| !is_needed(one))
            .take(surplus);
        let subject =
            |(key, _): (&Key, &Revision)| ObjectRef::named(Kind::NetworkConfigRevision, &*key.name);
        surplus.map(subject).collect()
    }
}

fn sequence(revision: &Revision) -> u32 {
    revision.status.as_ref().map_or(0, |status| status.sequence)
}

fn configs(
    nodes: &BTreeMap<String, Arc<NodeConfig>>,
    revision: &str,
    names: &[String],
    lane: Lane,
) -> Vec<Publication> {
    let publication = |node: &String| {
        let spec = nodes.get(node)?.spec(revision);
        Some(Publication {
            node: node.clone(),
            spec,
            lane: Some(lane),
            published_at: None,
        })
    };
    names.iter().filter_map(publication).collect()
}

/// Why a node could not apply its config.
fn error_message(snapshot: &Snapshot, node: &str) -> Option<String> {
    let config = snapshot.node_network_configs.get(&Key::named(node))?;
    config.status.as_ref()?.error_message.clone()
}
