//! Compiling again and again: after a change only that is computed again which depends on it. The result is always that of a full
//! compile.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use serde_json::Value;

use crate::{
    Compilation,
    last_good::{self, Last, LastRevision},
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
    memo::{Memo, Query, Registered},
    mirror::HasMirrors,
    node::{ConfigOf, ForwardingOf, ProgressOf, PublishedOf},
    platform::{self, ClaimsOf, HasClaims, Identity, PlatformObject, PlatformObjects, PlatformOf},
    problem::{Problem, Severity},
    problems::{AllProblems, Problems, ProblemsNow, ProblemsOf},
    revision::{BaseOfAll, Revision},
    rollout::Progress,
    snapshot::{Insertion, Key, Kind, ObjectRef, Resource, Snapshot, Visitor, fill, kinds, visit},
    stages,
    status::{AllWithStatus, Status, StatusOf},
    view::{Unread, Unreadable, reference},
    writes::{StaleOf, StatusToWrite, UnstoredOf},
};

/// All objects as they are now, and what they compile into.
#[derive(Debug)]
pub struct Compiler {
    snapshot: Snapshot,
    worlds: Worlds,
}

/// What objects compile into: as they are, and with broken ones as they were.
#[derive(Debug)]
pub(crate) struct Worlds {
    /// Objects that came, changed or went since the last compile.
    changed: BTreeSet<ObjectRef>,
    /// What they compile into as they are.
    as_written: World,
    /// The same with broken hand-written objects as they were before they broke, where there are any.
    restored: Option<Restoration>,
    is_current: bool,
}

/// A memo, and what was taken out of it.
#[derive(Clone, Debug)]
struct World {
    memo: Memo,
    compilation: Compilation,
    /// What each intent needs of the platform.
    platform: BTreeMap<ObjectRef, PlatformObjects>,
    /// What each node needs of it.
    claims: BTreeMap<ObjectRef, PlatformObjects>,
    /// Who wants each object of the platform: two may want the same.
    wanted: BTreeMap<Identity, BTreeMap<ObjectRef, Arc<PlatformObject>>>,
    statuses: BTreeMap<ObjectRef, Arc<Status>>,
    progress: BTreeMap<String, Progress>,
    /// Hand-written objects that are in effect.
    written: BTreeMap<ObjectRef, Arc<LowLevelObject>>,
    /// Intents that something is wrong with.
    kept: BTreeSet<ObjectRef>,
    writes: Writes,
    /// Objects that are here and cannot be read, so that they have no status.
    unread: BTreeSet<ObjectRef>,
    taken: Taken,
    seen: Seen,
    /// Whether there are stored configs of nodes, and mirrors.
    mode: (bool, bool),
}

/// An object that was read and is not yet among the others.
#[derive(Debug)]
pub struct Prepared {
    subject: ObjectRef,
    new: Snapshot,
}

impl Prepared {
    /// Reads a document; what it is where it is no object of ours.
    pub fn read(document: &Value) -> Result<Self, Insertion> {
        let mut new = Snapshot::default();
        match new.insert(document) {
            Insertion::Object(subject) => Ok(Self { subject, new }),
            other @ (Insertion::Foreign(_)
            | Insertion::Misplaced { .. }
            | Insertion::Unknown(_)) => Err(other),
        }
    }

    /// The object that it is.
    pub fn subject(&self) -> &ObjectRef {
        &self.subject
    }
}

/// What differs from what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Generated objects that are not stored as they must be, by the intent.
    pub objects: BTreeMap<ObjectRef, Arc<Vec<LowLevelObject>>>,
    /// Generated objects that are stored and not made any more, by the intent that they were made from.
    pub stale: BTreeMap<ObjectRef, Arc<Vec<ObjectRef>>>,
    /// Nodes whose stored config is not the one that they must have, each with whether nothing but mirrors differs.
    pub nodes: BTreeMap<String, bool>,
    /// Statuses that objects do not have yet.
    pub statuses: BTreeMap<ObjectRef, Arc<Status>>,
}

/// What was taken out since the last compile.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    statuses: bool,
    progress: bool,
    writes: bool,
}

#[derive(Debug)]
struct Restoration {
    world: World,
    kept: Kept,
}

/// What is as it last was.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// Objects that are as the last revision has them.
    objects: BTreeSet<ObjectRef>,
    /// Intents that keep what they became last, each with what is wrong with what it would become.
    intents: BTreeMap<ObjectRef, Arc<Vec<Problem>>>,
}

impl Kept {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.intents.is_empty()
    }
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new(Snapshot::default())
    }
}

impl Compiler {
    /// A compiler of these objects.
    pub fn new(snapshot: Snapshot) -> Self {
        let worlds = Worlds::new(&snapshot);
        Self { snapshot, worlds }
    }

    /// All objects as they are now.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Whether something has changed since the last compile.
    pub fn has_changed(&self) -> bool {
        !self.worlds.is_current
    }

    /// Adds a document, or puts it in the place of the same object.
    pub fn insert(&mut self, document: &Value) -> Insertion {
        match Prepared::read(document) {
            Ok(prepared) => {
                let subject = prepared.subject.clone();
                self.put(prepared);
                Insertion::Object(subject)
            }
            Err(insertion) => insertion,
        }
    }

    /// Adds an object, or puts it in the place of the same object.
    pub fn put(&mut self, Prepared { subject, new }: Prepared) {
        let is_same = self.snapshot.has_same(&new, &subject)
            && self.unreadable(&subject).eq(new.unreadable.iter());
        if !is_same {
            self.snapshot.remove(&subject);
            self.snapshot.absorb(new);
            self.worlds.note(&self.snapshot, &subject);
        }
    }

    /// Takes an object out.
    pub fn remove(&mut self, subject: &ObjectRef) {
        if self.snapshot.remove(subject) {
            self.worlds.note(&self.snapshot, subject);
        }
    }

    fn unreadable(&self, subject: &ObjectRef) -> impl Iterator<Item = &Problem> {
        let unreadable = self.snapshot.unreadable.iter();
        unreadable.filter(move |problem| problem.subject == *subject)
    }

    /// All objects, and what they compile into.
    pub fn compile(&mut self) -> (&Snapshot, &Compilation) {
        self.worlds.compile(&self.snapshot);
        (&self.snapshot, &self.worlds.current().compilation)
    }

    /// The statuses that objects have now. Times are left out: the writer of a status knows when it changed.
    pub fn statuses(&mut self) -> &BTreeMap<ObjectRef, Arc<Status>> {
        self.compile();
        let world = self.worlds.current_mut();
        world.update_statuses();
        &world.statuses
    }

    /// What must be written so that the cluster is as it was compiled.
    pub fn writes(&mut self) -> &Writes {
        self.compile();
        let world = self.worlds.current_mut();
        world.update_statuses();
        world.update_progress();
        world.update_writes();
        &world.writes
    }

    /// How far each node is with its config.
    pub fn progress(&mut self) -> &BTreeMap<String, Progress> {
        self.compile();
        let world = self.worlds.current_mut();
        world.update_progress();
        &world.progress
    }
}

/// What objects compile into that will not change.
pub(crate) fn compile_once(snapshot: &Snapshot) -> Compilation {
    let mut world = World::new(Memo::once(stages::all_tables()), snapshot);
    world.update();
    let last = world.memo.view().get::<LastRevision>(&());
    if world.to_keep(snapshot, last.as_deref()).is_empty() {
        return world.compilation;
    }
    // Objects are put back as they were before they broke: those do change.
    drop(world);
    let mut worlds = Worlds::new(snapshot);
    worlds.compile(snapshot);
    match worlds.restored {
        Some(restored) => restored.world.compilation,
        None => worlds.as_written.compilation,
    }
}

impl Worlds {
    fn new(snapshot: &Snapshot) -> Self {
        Self {
            changed: BTreeSet::new(),
            as_written: World::new(Memo::new(stages::all_tables()), snapshot),
            restored: None,
            is_current: false,
        }
    }

    /// Notes that an object came, changed or went.
    fn note(&mut self, snapshot: &Snapshot, subject: &ObjectRef) {
        if self.is_current {
            // What nobody asked for since the last change is dropped before the next.
            self.as_written.memo.sweep();
        }
        set(&mut self.as_written.memo, snapshot, subject);
        self.changed.insert(subject.clone());
        self.is_current = false;
    }

    fn compile(&mut self, snapshot: &Snapshot) {
        if !self.is_current {
            self.restored = self.restore(snapshot);
            match self.restored {
                // What nobody sees is not kept.
                Some(_) => self.as_written.release(),
                None => self.as_written.update(),
            }
            self.changed.clear();
            self.is_current = true;
        }
    }

    fn current(&self) -> &World {
        match &self.restored {
            Some(restored) => &restored.world,
            None => &self.as_written,
        }
    }

    fn current_mut(&mut self) -> &mut World {
        match &mut self.restored {
            Some(restored) => &mut restored.world,
            None => &mut self.as_written,
        }
    }

    /// Compiles with objects that something is wrong with as they last were, where there are any that were well then.
    fn restore(&mut self, snapshot: &Snapshot) -> Option<Restoration> {
        let mut restored = self.restored.take();
        let last = self.as_written.memo.view().get::<LastRevision>(&());
        let mut kept = self.as_written.to_keep(snapshot, last.as_deref());
        while !kept.is_empty() {
            let now = restored.get_or_insert_with(|| Restoration {
                world: self.as_written.clone(),
                kept: Kept::default(),
            });
            now.keep(snapshot, &self.changed, last.as_deref(), kept.clone());
            // What was not well either stays as its author wants it. What its document says is wrong with it is so as it is now.
            let is_document = |problem: &Problem| snapshot.unreadable.contains(problem);
            let still = now
                .world
                .broken(|problem| problem.kind.is_mistake() && !is_document(problem));
            let is_well = |subject: &ObjectRef| !still.contains(subject);
            if !kept.objects.iter().all(is_well) {
                kept.objects.retain(is_well);
                if kept.is_empty() {
                    kept.intents = self.as_written.must_wait();
                }
                continue;
            }
            // What cannot stand beside what is kept waits as well.
            let waiting = now.world.must_wait();
            if waiting.is_empty() {
                now.carry_problems(&self.as_written);
                now.world.update();
                return restored;
            }
            kept.intents.extend(waiting);
        }
        None
    }
}

impl Restoration {
    /// Lets these objects be as they last were, and all others as they are.
    fn keep(
        &mut self,
        snapshot: &Snapshot,
        changed: &BTreeSet<ObjectRef>,
        last: Option<&Last>,
        kept: Kept,
    ) {
        let memo = &mut self.world.memo;
        memo.sweep();
        for subject in changed.iter().chain(&self.kept.objects) {
            if !kept.objects.contains(subject) {
                set(memo, snapshot, subject);
            }
        }
        for subject in self.kept.objects.iter().chain(self.kept.intents.keys()) {
            if !kept.objects.contains(subject) && !kept.intents.contains_key(subject) {
                memo.set::<ProblemsNow>(subject, None);
            }
        }
        for subject in &kept.objects {
            set_unreadable(memo, snapshot, subject);
            if let Some(last) = last {
                last_good::set(memo, snapshot, last, subject);
            }
        }
        for (subject, problems) in &kept.intents {
            memo.set::<ProblemsNow>(subject, Some(Arc::clone(problems)));
        }
        let unread = kept.objects.iter().filter(|subject| !snapshot.has(subject));
        let unread: BTreeSet<ObjectRef> = unread.cloned().collect();
        if unread != self.world.unread {
            self.world.unread = unread;
            // Statuses come and go with it.
            self.world.seen.statuses = None;
            self.world.seen.to_write = None;
        }
        self.kept = kept;
    }

    /// Lets objects that are as they were carry the problems of what they are now.
    fn carry_problems(&mut self, as_written: &World) {
        for subject in &self.kept.objects {
            let now = as_written.memo.view().get::<ProblemsOf>(subject);
            self.world.memo.set::<ProblemsNow>(subject, Some(now));
        }
    }
}

/// Sets an object as it is, with what is wrong with it.
fn set(memo: &mut Memo, snapshot: &Snapshot, subject: &ObjectRef) {
    struct Set<'a>(&'a mut Memo, &'a Snapshot);
    impl Visitor for Set<'_> {
        type Out = ();
        fn visit<R: Resource + Registered>(self, key: &Key) {
            let object = R::objects(self.1).get(key).cloned();
            self.0.set::<R>(key, object);
        }
    }
    visit(subject, Set(memo, snapshot));
    set_unreadable(memo, snapshot, subject);
}

/// Sets what is wrong with an object that cannot be read, or only in part.
fn set_unreadable(memo: &mut Memo, snapshot: &Snapshot, subject: &ObjectRef) {
    let problems = snapshot.unreadable.iter();
    let problems = problems.filter(|problem| problem.subject == *subject);
    let problems: Vec<Problem> = problems.cloned().collect();
    let unreadable = (!problems.is_empty()).then(|| Unread {
        meta: snapshot.unread.get(subject).cloned(),
        problems: Arc::new(problems),
    });
    memo.set::<Unreadable>(subject, unreadable);
}

impl World {
    fn new(mut memo: Memo, snapshot: &Snapshot) -> Self {
        fill(&mut memo, snapshot);
        let mut unreadable: BTreeMap<&ObjectRef, Vec<Problem>> = BTreeMap::new();
        for problem in &snapshot.unreadable {
            let of_subject = unreadable.entry(&problem.subject).or_default();
            of_subject.push(problem.clone());
        }
        for (subject, problems) in unreadable {
            let unread = Unread {
                meta: snapshot.unread.get(subject).cloned(),
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

    /// What is to stay as it last was.
    fn to_keep(&self, snapshot: &Snapshot, last: Option<&Last>) -> Kept {
        // An Underlay whose pool is too small for some nodes is as it was for those that had addresses.
        let broken = self.broken(|problem| {
            problem.kind.is_mistake()
                || problem.subject.kind == Kind::Underlay && problem.severity() == Severity::Error
        });
        let objects = last.map(|last| last_good::otherwise(snapshot, last, &broken));
        Kept {
            objects: objects.unwrap_or_default(),
            intents: self.must_wait(),
        }
    }

    /// Objects whose last good state is in revisions and that something is wrong with.
    fn broken(&self, is_mistake: impl Fn(&Problem) -> bool) -> BTreeSet<ObjectRef> {
        let view = self.memo.view();
        let subjects = view.all_keys::<Problems>();
        let broken = subjects.iter().filter(|subject| {
            last_good::is_in_revisions(subject.kind)
                && view.who::<Problems>(subject).iter().any(&is_mistake)
                && merge::generated(&view, subject.kind, &subject.key.name).is_none()
        });
        broken.cloned().collect()
    }

    /// Intents that must wait, each with why: they would become something, and something is wrong with that. Those that lose to one which
    /// stands come first: what they let go of may be what others lack. One that runs and was edited waits before one that is new.
    fn must_wait(&self) -> BTreeMap<ObjectRef, Arc<Vec<Problem>>> {
        let view = self.memo.view();
        let subjects = view.all_keys::<Problems>();
        let wrong = subjects.iter().filter_map(|subject| {
            subject.kind.intent()?;
            let problems = view.get::<ProblemsOf>(subject);
            let is_wrong = problems.iter().any(|problem| problem.kind.is_mistake());
            let is_held_back = || view.get::<merge::Merged>(subject).is_held_back;
            // One that runs as it is stays as it is.
            let is_new = || !view.get::<UnstoredOf>(subject).is_empty();
            (is_wrong && !is_held_back() && is_new()).then(|| (subject.clone(), problems))
        });
        let mut wrong: BTreeMap<ObjectRef, Arc<Vec<Problem>>> = wrong.collect();
        let runs = |intent: &ObjectRef| {
            let stored = view.who::<StoredByOwner>(&Some(intent.clone()));
            !stored.is_empty()
        };
        if wrong.keys().any(runs) {
            wrong.retain(|intent, _| runs(intent));
        }
        let stands = |rival: &ObjectRef| !wrong.contains_key(rival);
        let loses = |problems: &Arc<Vec<Problem>>| {
            let mut rivals = problems.iter().filter_map(|problem| problem.kind.rival());
            rivals.all(stands)
        };
        let losers: BTreeMap<_, _> = wrong
            .iter()
            .filter(|(_, problems)| loses(problems))
            .map(|(intent, problems)| (intent.clone(), Arc::clone(problems)))
            .collect();
        if !losers.is_empty() {
            return losers;
        }
        // They are in each other's way: the one that is served last waits.
        let last = wrong
            .into_iter()
            .max_by_key(|(intent, _)| intent::rank(&view, intent));
        last.into_iter().collect()
    }

    /// Lets go of everything that was taken out of the memo, and of what is in the memo for that alone.
    fn release(&mut self) {
        let mut memo = mem::replace(&mut self.memo, Memo::new(Vec::new()));
        memo.unroot_everything();
        memo.sweep();
        *self = Self::of(memo);
    }

    /// Takes what has changed out of the memo.
    fn update(&mut self) {
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
        for merged in intents.iter().filter_map(|(_, _, now)| now.as_ref()) {
            for object in &merged.objects {
                objects.insert(object.clone());
            }
        }
        for object in written.iter().filter_map(|(_, _, now)| now.as_ref()) {
            objects.insert(LowLevelObject::clone(object));
        }
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
        // Without stored configs there is nothing to compare with, and without mirrors nothing to add.
        let has_stored = !view.keys::<kinds::NodeNetworkConfig>().is_empty();
        let mode = (has_stored, memo.root::<HasMirrors>(&()));
        if mem::replace(&mut self.mode, mode) != mode {
            seen.nodes = None;
        }
        let named = |key: Key, config| (key.name.to_string(), config);
        let configs = match mode {
            (true, _) => {
                let published = pull::<PublishedOf>(memo, &mut seen.nodes, keys);
                published.map(|key, published| named(key, published.config))
            }
            (false, true) => pull::<ConfigOf>(memo, &mut seen.nodes, keys).map(named),
            (false, false) => pull::<ForwardingOf>(memo, &mut seen.nodes, keys).map(named),
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
            view.keys::<kinds::Node>()
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

    fn update_statuses(&mut self) {
        if mem::replace(&mut self.taken.statuses, true) {
            return;
        }
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

    fn update_writes(&mut self) {
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

    fn update_progress(&mut self) {
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
struct Seen {
    intents: Keys<ObjectRef>,
    written: Keys<ObjectRef>,
    nodes: Keys<Key>,
    segments: Keys<ObjectRef>,
    platform: Keys<ObjectRef>,
    claims: Keys<Key>,
    statuses: Keys<ObjectRef>,
    to_write: Keys<ObjectRef>,
    unstored: Keys<ObjectRef>,
    owners: Keys<Option<ObjectRef>>,
    progress: Keys<Key>,
}

type Keys<K> = Option<Arc<Vec<K>>>;

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
