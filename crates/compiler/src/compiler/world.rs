//! A memo, and what is taken out of it after each change.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use super::Writes;
use crate::{
    Compilation,
    lower::{
        LowLevelObject, MergedIntent,
        addresses::{AddressedSegments, NodeShareOf},
        bgp_neighbor::WorkloadIps,
        intent,
        low_level::{self, StoredByOwner},
        merge,
        network::NetworkVnis,
        vrf,
    },
    memo::{Memo, Query},
    node::{ConfigOf, ForwardingOf, HasExtras, ProgressOf, PublishedOf, TakenBack},
    platform::{self, ClaimsOf, HasClaims, Identity, PlatformObject, PlatformObjects, PlatformOf},
    problem::Problem,
    problems::AllProblems,
    revision::{self, BaseOfAll, Revision},
    rollout::Progress,
    snapshot::{Key, Kind, ObjectRef, Snapshot, fill, kinds},
    status::{AllWithStatus, Status, StatusOf},
    view::{Unread, Unreadable, reference},
    writes::{StaleOf, StatusToWrite, UnstoredOf},
};

/// A memo, and what was taken out of it.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) memo: Memo,
    pub(super) compilation: Compilation,
    /// What each intent needs of the platform.
    platform: BTreeMap<ObjectRef, PlatformObjects>,
    /// What each node needs of it.
    claims: BTreeMap<ObjectRef, PlatformObjects>,
    /// Who wants each object of the platform: two may want the same.
    wanted: BTreeMap<Identity, BTreeMap<ObjectRef, Arc<PlatformObject>>>,
    pub(super) statuses: BTreeMap<ObjectRef, Arc<Status>>,
    pub(super) progress: BTreeMap<String, Progress>,
    /// Hand-written objects that are in effect.
    written: BTreeMap<ObjectRef, Arc<LowLevelObject>>,
    /// Intents that something is wrong with.
    kept: BTreeSet<ObjectRef>,
    pub(super) writes: Writes,
    /// Objects that are here and cannot be read, so that they have no status.
    pub(super) unread: BTreeSet<ObjectRef>,
    taken: Taken,
    pub(super) seen: Seen,
    /// Whether there are stored configs of nodes, and mirrors or routers of hosts.
    mode: (bool, bool),
}

/// What was taken out since the last compile.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    statuses: bool,
    progress: bool,
    writes: bool,
}

impl World {
    pub(super) fn new(mut memo: Memo, snapshot: &Snapshot) -> Self {
        fill(&mut memo, snapshot);
        let mut unreadable: BTreeMap<&ObjectRef, Vec<Problem>> = BTreeMap::new();
        for problem in &snapshot.unreadable {
            let of_subject = unreadable.entry(&problem.subject).or_default();
            of_subject.push(problem.clone());
        }
        for (subject, problems) in unreadable {
            let unread = Unread {
                meta: snapshot
                    .unread
                    .get(subject)
                    .map(|one| Arc::clone(&one.meta)),
                problems: Arc::new(problems),
            };
            memo.set::<Unreadable>(subject, Some(unread));
        }
        Self::of(memo)
    }

    /// Of which nothing was taken out yet.
    fn of(memo: Memo) -> Self {
        Self {
            memo,
            compilation: Compilation::default(),
            platform: BTreeMap::new(),
            claims: BTreeMap::new(),
            wanted: BTreeMap::new(),
            statuses: BTreeMap::new(),
            progress: BTreeMap::new(),
            written: BTreeMap::new(),
            kept: BTreeSet::new(),
            writes: Writes::default(),
            unread: BTreeSet::new(),
            taken: Taken::default(),
            seen: Seen::default(),
            mode: (false, false),
        }
    }

    /// Releases all values that were requested from the memo, and the values that only they need.
    pub(super) fn release(&mut self) {
        let mut memo = mem::replace(&mut self.memo, Memo::new(Vec::new()));
        memo.unroot_everything();
        memo.sweep();
        *self = Self::of(memo);
    }

    /// Takes what has changed out of the memo.
    pub(super) fn update(&mut self) {
        self.taken = Taken::default();
        self.update_objects();
        self.update_nodes();
        self.update_platform();
        let (memo, compilation) = (&self.memo, &mut self.compilation);
        compilation.vrfs = memo.root::<vrf::Resolved>(&()).vrfs;
        compilation.network_vnis = memo.root::<NetworkVnis>(&()).vnis;
        compilation.workload_ips = memo.root::<WorkloadIps>(&());
        compilation.problems = memo.root::<AllProblems>(&());
        let base = memo.root::<BaseOfAll>(&());
        compilation.revision = Revision::new(&base, &compilation.objects);
    }

    /// Low-level objects: what goes is taken out before what comes is put in, since a name may pass from one to another.
    fn update_objects(&mut self) {
        let (memo, seen, view) = (&self.memo, &mut self.seen, self.memo.view());
        let intents = pull::<merge::Merged>(memo, &mut seen.intents, intent::all(&view));
        let intents = intents.map(|subject, merged| (subject, Some(merged)));
        let intents = differences(&mut self.compilation.intents, intents);
        let written = low_level::hand_written(&view);
        let written = pull::<merge::InEffect>(memo, &mut seen.written, written);
        let written = differences(&mut self.written, written);
        let objects = &mut self.compilation.objects;
        for merged in intents.iter().filter_map(|(_, before, _)| before.as_ref()) {
            for object in &merged.objects {
                objects.remove(object);
            }
        }
        for object in written.iter().filter_map(|(_, before, _)| before.as_ref()) {
            objects.remove(object);
        }
        let generated = intents.iter().filter_map(|(_, _, now)| now.as_ref());
        let generated = generated.flat_map(|merged| merged.objects.iter().cloned());
        let by_hand = written.iter().filter_map(|(_, _, now)| now.as_ref());
        let by_hand = by_hand.map(|object| LowLevelObject::clone(object));
        objects.extend(generated.chain(by_hand));
        for (subject, _, now) in &intents {
            let is_kept = |merged: &Arc<MergedIntent>| platform::is_kept(subject, merged);
            if now.as_ref().is_some_and(is_kept) {
                self.kept.insert(subject.clone());
            } else {
                self.kept.remove(subject);
            }
        }
    }

    fn update_nodes(&mut self) {
        let (memo, seen, view) = (&self.memo, &mut self.seen, self.memo.view());
        let keys = view.keys::<kinds::Node>();
        // Without stored configs there is nothing to compare with, and without mirrors and routers of hosts nothing to add.
        let has_stored = !view.keys::<kinds::NodeNetworkConfig>().is_empty();
        let mode = (has_stored, memo.root::<HasExtras>(&()));
        if mem::replace(&mut self.mode, mode) != mode {
            seen.nodes = None;
        }
        let named = |key: Key, config| (key.name.to_string(), config);
        let removals = &mut self.compilation.removals;
        let configs = match mode {
            (true, _) => {
                let published = pull::<PublishedOf>(memo, &mut seen.nodes, keys);
                if published.is_everything {
                    removals.clear();
                    self.writes.host_routers.clear();
                }
                let host_routers = &mut self.writes.host_routers;
                for (key, published) in &published.values {
                    if published.has_other_host_router {
                        host_routers.insert(key.name.to_string());
                    } else {
                        host_routers.remove(&*key.name);
                    }
                    match published.removal {
                        Some(removal) => removals.insert(key.name.to_string(), removal),
                        None => removals.remove(&*key.name),
                    };
                }
                published.map(|key, published| named(key, published.config))
            }
            (false, has_extras) => {
                removals.clear();
                self.writes.host_routers.clear();
                if has_extras {
                    pull::<ConfigOf>(memo, &mut seen.nodes, keys).map(named)
                } else {
                    pull::<ForwardingOf>(memo, &mut seen.nodes, keys).map(named)
                }
            }
        };
        differences(&mut self.compilation.nodes, configs);
        let segments = memo.root::<AddressedSegments>(&());
        let shares = pull::<NodeShareOf>(memo, &mut seen.segments, segments);
        let shares = shares.map(|subject, share| {
            let addresses = Arc::clone(&share.addresses);
            (subject, (!addresses.is_empty()).then_some(addresses))
        });
        differences(&mut self.compilation.node_addresses, shares);
    }

    fn update_platform(&mut self) {
        let (memo, seen, view) = (&self.memo, &mut self.seen, self.memo.view());
        let objects = pull::<PlatformOf>(memo, &mut seen.platform, intent::all(&view));
        let objects = objects.map(|subject, objects| (subject, Some(objects)));
        let mut changed = differences(&mut self.platform, objects);
        let nodes = if memo.root::<HasClaims>(&()) {
            let nodes = view.keys::<kinds::Node>();
            let mut all = view.keys::<kinds::NodeNetworkConfig>().to_vec();
            all.retain(|key| nodes.binary_search(key).is_err());
            all.extend(nodes.iter().cloned());
            Arc::new(all)
        } else {
            Arc::default()
        };
        let claims = pull::<ClaimsOf>(memo, &mut seen.claims, nodes).map(|key, claims| {
            let subject = reference(Kind::NodeNetworkConfig, &key);
            (subject, Some(claims))
        });
        changed.extend(differences(&mut self.claims, claims));
        let mut touched = BTreeSet::new();
        for (subject, before, now) in &changed {
            for object in before.iter().flat_map(|before| before.iter()) {
                let identity = object.identity();
                let wanted = self.wanted.entry(identity.clone()).or_default();
                wanted.remove(subject);
                touched.insert(identity);
            }
            for object in now.iter().flat_map(|now| now.iter()) {
                let identity = object.identity();
                let wanted = self.wanted.entry(identity.clone()).or_default();
                wanted.insert(subject.clone(), Arc::clone(object));
                touched.insert(identity);
            }
        }
        let objects = &mut self.compilation.platform;
        for identity in touched {
            let wanted = self.wanted.get(&identity);
            if let Some((_, object)) = wanted.and_then(|wanted| wanted.last_key_value()) {
                objects.insert(identity, Arc::clone(object));
            } else {
                self.wanted.remove(&identity);
                objects.remove(&identity);
            }
        }
        let unreadable = view.keys::<Unreadable>();
        let unread = unreadable.iter().filter(|subject| {
            let problems = view.unreadable(subject);
            problems.iter().any(platform::is_kept_unread)
        });
        let keeps = &mut self.compilation.platform_keeps;
        keeps.clone_from(&self.kept);
        keeps.extend(unread.cloned());
    }

    pub(super) fn update_statuses(&mut self) {
        if mem::replace(&mut self.taken.statuses, true) {
            return;
        }
        self.note_taken_back();
        let (memo, seen, unread) = (&self.memo, &mut self.seen, &self.unread);
        let keys = memo.root::<AllWithStatus>(&());
        // An object that could not be read has no status of ours.
        let of_read = |subject: ObjectRef, status: Option<Arc<Status>>| {
            let status = status.filter(|_| !unread.contains(&subject));
            (subject, status)
        };
        let statuses = pull::<StatusOf>(memo, &mut seen.statuses, Arc::clone(&keys));
        differences(&mut self.statuses, statuses.map(of_read));
        let writes = pull::<StatusToWrite>(memo, &mut seen.to_write, keys);
        differences(&mut self.writes.statuses, writes.map(of_read));
    }

    /// Notes which node could not apply what is compiled now. Only here both are known: the revision, and what is stored about it.
    fn note_taken_back(&mut self) {
        let name = revision::object_name(&self.compilation.revision.fingerprint);
        let view = self.memo.view();
        let status = view.status::<kinds::NetworkConfigRevision>(&Key::named(name));
        let status = status.filter(|status| status.is_invalid);
        let failed = status.and_then(|status| Some(Key::named(status.failed_node.clone()?)));
        let known = view.keys::<TakenBack>();
        if known.iter().eq(&failed) {
            return;
        }
        for node in known.iter() {
            self.memo.set::<TakenBack>(node, None);
        }
        if let Some(node) = failed {
            self.memo.set::<TakenBack>(&node, Some(()));
        }
    }

    pub(super) fn update_writes(&mut self) {
        if mem::replace(&mut self.taken.writes, true) {
            return;
        }
        let (memo, seen, view) = (&self.memo, &mut self.seen, self.memo.view());
        let unstored = pull::<UnstoredOf>(memo, &mut seen.unstored, intent::all(&view));
        let unstored = unstored.map(|subject, objects| (subject, filled(objects)));
        differences(&mut self.writes.objects, unstored);
        let owners = view.all_keys::<StoredByOwner>();
        let stale = pull::<StaleOf>(memo, &mut seen.owners, owners);
        let stale = stale.filter_map(|owner, stale| Some((owner?, filled(stale))));
        differences(&mut self.writes.stale, stale);
        let queued = self.progress.iter();
        let queued = queued.filter(|(_, progress)| **progress == Progress::Queued);
        let nodes = queued.map(|(node, _)| {
            let config = self.compilation.nodes.get(node);
            let is_direct = config.is_some_and(|config| config.revision.is_some());
            (node.clone(), is_direct)
        });
        self.writes.nodes = nodes.collect();
    }

    pub(super) fn update_progress(&mut self) {
        if mem::replace(&mut self.taken.progress, true) {
            return;
        }
        let keys = self.memo.view().keys::<kinds::Node>();
        let progress = pull::<ProgressOf>(&self.memo, &mut self.seen.progress, keys);
        if progress.is_everything {
            self.progress.clear();
        }
        let progress = progress.values.into_iter();
        let progress = progress.map(|(key, progress)| (key.name.to_string(), progress));
        self.progress.extend(progress);
    }
}

/// The keys for which values were taken out of the memo: the same as long as they are at the same address.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    intents: Keys<ObjectRef>,
    written: Keys<ObjectRef>,
    nodes: Keys<Key>,
    segments: Keys<ObjectRef>,
    platform: Keys<ObjectRef>,
    claims: Keys<Key>,
    pub(super) statuses: Keys<ObjectRef>,
    pub(super) to_write: Keys<ObjectRef>,
    unstored: Keys<ObjectRef>,
    owners: Keys<Option<ObjectRef>>,
    progress: Keys<Key>,
}

pub(super) type Keys<K> = Option<Arc<Vec<K>>>;

/// Values that were taken out of the memo: those of all keys, or those that may have changed.
struct Pulled<K, V> {
    values: Vec<(K, V)>,
    is_everything: bool,
}

impl<K, V> Pulled<K, V> {
    fn map<L, W>(self, mut change: impl FnMut(K, V) -> (L, W)) -> Pulled<L, W> {
        self.filter_map(|key, value| Some(change(key, value)))
    }

    fn filter_map<L, W>(self, mut change: impl FnMut(K, V) -> Option<(L, W)>) -> Pulled<L, W> {
        let values = self.values.into_iter();
        Pulled {
            values: values
                .filter_map(|(key, value)| change(key, value))
                .collect(),
            is_everything: self.is_everything,
        }
    }
}

/// Takes values out of the memo: all of these, or, where the keys are those of the last time, those that may be others now.
fn pull<Q: Query>(
    memo: &Memo,
    seen: &mut Keys<Q::Key>,
    keys: Arc<Vec<Q::Key>>,
) -> Pulled<Q::Key, Q::Value> {
    let marked = memo.marked::<Q>();
    let are_same = |seen: &Arc<Vec<Q::Key>>| Arc::ptr_eq(seen, &keys);
    let is_everything = !seen.as_ref().is_some_and(are_same);
    let wanted = if is_everything {
        memo.unroot_all::<Q>();
        keys.to_vec()
    } else {
        marked
    };
    *seen = Some(keys);
    let value = |key| {
        let value = memo.root::<Q>(&key);
        (key, value)
    };
    Pulled {
        values: wanted.into_iter().map(value).collect(),
        is_everything,
    }
}

/// A list, if something is in it.
fn filled<T>(list: Arc<Vec<T>>) -> Option<Arc<Vec<T>>> {
    (!list.is_empty()).then_some(list)
}

/// A value that came, changed or went: its key, what it was and what it is.
type Difference<K, T> = (K, Option<Arc<T>>, Option<Arc<T>>);

/// Puts what is there now in the place of what was, and says what is different. What is the same is still at its address. Of what is
/// not named nothing is left if everything is named.
fn differences<K: Ord + Clone, T>(
    known: &mut BTreeMap<K, Arc<T>>,
    pulled: Pulled<K, Option<Arc<T>>>,
) -> Vec<Difference<K, T>> {
    let Pulled {
        values: now,
        is_everything,
    } = pulled;
    let mut differences = Vec::new();
    if known.is_empty() {
        let now = now.into_iter();
        let now = now.filter_map(|(key, value)| Some((key, value?)));
        *known = now.collect();
        let known = known.iter();
        let new = known.map(|(key, value)| (key.clone(), None, Some(Arc::clone(value))));
        return new.collect();
    }
    if is_everything {
        let present = now.iter().filter(|(_, value)| value.is_some());
        let present: BTreeSet<&K> = present.map(|(key, _)| key).collect();
        known.retain(|key, value| {
            let stays = present.contains(key);
            if !stays {
                differences.push((key.clone(), Some(Arc::clone(value)), None));
            }
            stays
        });
    }
    for (key, value) in now {
        let before = match &value {
            Some(value) => match known.get_mut(&key) {
                Some(known) if Arc::ptr_eq(known, value) => continue,
                Some(known) => Some(mem::replace(known, Arc::clone(value))),
                None => known.insert(key.clone(), Arc::clone(value)),
            },
            None => known.remove(&key),
        };
        if before.is_some() || value.is_some() {
            differences.push((key, before, value));
        }
    }
    differences
}
