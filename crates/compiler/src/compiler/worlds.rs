//! What objects compile into as they are written, and with those that something is wrong with as they last were.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    sync::Arc,
};

use super::world::World;
use crate::{
    Compilation,
    last_good::{self, LastRevision, Sources},
    lower::{
        intent::{self, Lower},
        low_level::{self, StoredByOwner, is_low_level},
        merge,
    },
    memo::{Memo, Registered},
    platform::state::{Absent, AbsentFor},
    problem::{self, Problem, Severity},
    problems::{self, AllProblems, Now, Problems, ProblemsNow, ProblemsOf},
    snapshot::{Key, Kind, ObjectRef, Resource, Snapshot, Visitor, visit},
    stages,
    view::{Unread, Unreadable},
    writes::UnstoredOf,
};

/// What objects compile into: as they are, and with broken ones as they were.
#[derive(Debug)]
pub(super) struct Worlds {
    /// Objects that came, changed or went since the last compile.
    changed: BTreeSet<ObjectRef>,
    /// What they compile into as they are.
    as_written: World,
    /// The same with broken hand-written objects as they were before they broke, where there are any.
    restored: Option<Restoration>,
    pub(super) is_current: bool,
}

#[derive(Debug)]
struct Restoration {
    world: World,
    kept: Kept,
}

/// What is as it last was.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// Objects that are as they were last in effect.
    objects: BTreeSet<ObjectRef>,
    /// Those of them whose edit, or deletion, would stop objects of other authors.
    for_others: BTreeSet<ObjectRef>,
    /// Objects that an object which was deleted stays for: they say what they would lack.
    needing_deleted: BTreeSet<ObjectRef>,
    /// Intents that keep what they became last, and new hand-written objects that are not in effect, each with what is wrong with what it
    /// would become.
    waiting: BTreeMap<ObjectRef, Arc<Vec<Problem>>>,
}

impl Kept {
    fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.waiting.is_empty()
    }
}

impl Worlds {
    pub(super) fn new(snapshot: &Snapshot) -> Self {
        Self {
            changed: BTreeSet::new(),
            as_written: World::new(Memo::new(stages::all_tables()), snapshot),
            restored: None,
            is_current: false,
        }
    }

    /// Notes that an object came, changed or went.
    pub(super) fn note(&mut self, snapshot: &Snapshot, subject: &ObjectRef) {
        if self.is_current {
            // Values that were not requested since the last change are dropped before the next.
            self.as_written.memo.sweep();
        }
        set(&mut self.as_written.memo, snapshot, subject);
        self.changed.insert(subject.clone());
        self.is_current = false;
    }

    /// Notes what an object lacks on the platform.
    pub(super) fn note_absent(&mut self, subject: &ObjectRef, absent: Option<&Arc<Vec<Absent>>>) {
        let restored = self.restored.as_mut().map(|restored| &mut restored.world);
        for world in iter::once(&mut self.as_written).chain(restored) {
            if self.is_current {
                world.memo.sweep();
            }
            world.memo.set::<AbsentFor>(subject, absent.cloned());
        }
        self.is_current = false;
    }

    pub(super) fn compile(&mut self, snapshot: &Snapshot) {
        if !self.is_current {
            self.settle_all(snapshot);
            self.current_mut().update();
            self.is_current = true;
        }
    }

    /// Everything that is wrong with the objects as they are. Nothing else is brought up to date.
    pub(super) fn problems(&mut self, snapshot: &Snapshot) -> Arc<Vec<Problem>> {
        if !self.is_current {
            self.settle_all(snapshot);
        }
        self.current().memo.view().get::<AllProblems>(&())
    }

    /// Decides which objects are as they are, and which as they last were.
    fn settle_all(&mut self, snapshot: &Snapshot) {
        self.restored = self.restore(snapshot);
        if self.restored.is_some() {
            // Values without readers are not kept.
            self.as_written.release();
        }
        self.changed.clear();
    }

    pub(super) fn current(&self) -> &World {
        match &self.restored {
            Some(restored) => &restored.world,
            None => &self.as_written,
        }
    }

    pub(super) fn current_mut(&mut self) -> &mut World {
        match &mut self.restored {
            Some(restored) => &mut restored.world,
            None => &mut self.as_written,
        }
    }

    /// Compiles with objects that something is wrong with as they last were, where there are any that were well then.
    fn restore(&mut self, snapshot: &Snapshot) -> Option<Restoration> {
        let mut restored = self.restored.take();
        let revision = self.as_written.memo.view().get::<LastRevision>(&());
        let last = Sources {
            snapshot,
            revision: revision.as_deref(),
        };
        let own = self.as_written.to_keep(last);
        let mut kept = self.stabilize(&mut restored, last, own);
        let mut broken = self.stable(restored.as_ref(), &kept).victims(last, &kept);
        if !broken.is_empty() {
            let breaking = self.breaking(&mut restored, last, &kept, &mut broken);
            if let Some(breaking) = breaking {
                kept = self.stabilize(&mut restored, last, breaking);
            }
        }
        let mut restored = restored.filter(|_| !kept.is_empty())?;
        restored.carry_problems(&self.as_written, last, &broken);
        Some(restored)
    }

    /// What is left of a world in which these are kept.
    fn stable<'a>(&'a self, restored: Option<&'a Restoration>, kept: &Kept) -> &'a World {
        let restored = restored.filter(|_| !kept.is_empty());
        restored.map_or(&self.as_written, |restored| &restored.world)
    }

    /// Lets objects be as they last were, as far as they were well then, and lets those wait that cannot stand beside them; returns what is
    /// kept then.
    fn stabilize(
        &self,
        restored: &mut Option<Restoration>,
        last: Sources<'_>,
        mut kept: Kept,
    ) -> Kept {
        let mistaken = self
            .as_written
            .broken(|problem| problem.kind.is_mistake() || problem.subject.kind == Kind::Underlay);
        while !kept.is_empty() {
            let now = restored.get_or_insert_with(|| Restoration {
                world: self.as_written.clone(),
                kept: Kept::default(),
            });
            now.keep(&self.changed, last, kept.clone());
            // What was not well either stays as its author wants it. What its document says is wrong with it is so as it is now. An edit that
            // ends in what nodes lack, and in no mistake, is rolled back only if nodes lacked nothing before, or if it stops others.
            let is_document = |problem: &Problem| last.snapshot.unreadable.contains(problem);
            let still_wrong = now
                .world
                .broken(|problem| problem.kind.is_mistake() && !is_document(problem));
            let still_lacking = now
                .world
                .broken(|problem| problem.severity() == Severity::Error && !is_document(problem));
            let is_well = |subject: &&ObjectRef| {
                let still = if mistaken.contains(subject) || kept.for_others.contains(subject) {
                    &still_wrong
                } else {
                    &still_lacking
                };
                !still.contains(*subject)
            };
            let well: BTreeSet<ObjectRef> = kept.objects.iter().filter(is_well).cloned().collect();
            if well != kept.objects {
                kept.objects = well;
                if kept.is_empty() {
                    kept.waiting = self.as_written.must_wait(last);
                }
                continue;
            }
            // What cannot stand beside what is kept waits as well.
            let waiting = now.world.must_wait(last);
            if waiting.is_empty() {
                break;
            }
            kept.waiting.extend(waiting);
        }
        kept
    }

    /// What is to stay as it last was, so that an edit stops no object of another author that runs as it is: what is kept already, and the
    /// edits but for which some of these objects would be well. Leaves those objects in `broken`. Nothing where nothing was edited.
    fn breaking(
        &self,
        restored: &mut Option<Restoration>,
        last: Sources<'_>,
        kept: &Kept,
        broken: &mut Victims,
    ) -> Option<Kept> {
        let with = |edits: &BTreeSet<ObjectRef>| Kept {
            objects: kept.objects.union(edits).cloned().collect(),
            for_others: edits.clone(),
            needing_deleted: BTreeSet::new(),
            waiting: BTreeMap::new(),
        };
        let without_edits = |restored: &mut Option<Restoration>, edits: &BTreeSet<ObjectRef>| {
            let stable = self.stabilize(restored, last, with(edits));
            self.stable(restored.as_ref(), &stable)
                .victims(last, &stable)
        };
        let mut edits = last_good::edited(last);
        edits.retain(|edit| !kept.objects.contains(edit));
        if edits.is_empty() {
            broken.clear();
            return None;
        }
        let still = without_edits(restored, &edits);
        broken.retain(|victim, problem| !is_broken(&still, victim, problem));
        if broken.is_empty() {
            return Some(kept.clone());
        }
        // Edits that stop nothing are taken, those of older objects first. Of many that were made at once few stop something: they are found by
        // halves.
        let view = self.as_written.memo.view();
        let mut by_age: Vec<ObjectRef> = edits.iter().cloned().collect();
        by_age.sort_by_cached_key(|edit| {
            let meta = view.stored_meta(edit);
            let created = meta.and_then(|meta| meta.created.clone());
            (created.is_none(), created)
        });
        let mut suspects = vec![by_age];
        while let Some(mut some) = suspects.pop() {
            let taken: BTreeSet<ObjectRef> = some.iter().cloned().collect();
            edits.retain(|edit| !taken.contains(edit));
            let still = without_edits(restored, &edits);
            let mut victims = broken.iter();
            if victims.any(|(victim, problem)| is_broken(&still, victim, problem)) {
                edits.extend(taken);
                if some.len() > 1 {
                    let half = some.split_off(some.len() / 2);
                    suspects.extend([half, some]);
                }
            }
        }
        Some(with(&edits))
    }
}

/// Objects that run as they are and that something is wrong with all the same, each with what it is.
type Victims = BTreeMap<ObjectRef, Problem>;

fn is_broken(victims: &Victims, victim: &ObjectRef, problem: &Problem) -> bool {
    let still = victims.get(victim);
    still.is_some_and(|still| still.kind.reason() == problem.kind.reason())
}

impl Restoration {
    /// Lets these objects be as they last were, and all others as they are.
    fn keep(&mut self, changed: &BTreeSet<ObjectRef>, last: Sources<'_>, kept: Kept) {
        let snapshot = last.snapshot;
        let memo = &mut self.world.memo;
        memo.sweep();
        for subject in changed.iter().chain(&self.kept.objects) {
            if !kept.objects.contains(subject) {
                set(memo, snapshot, subject);
            }
        }
        // What is wrong with objects as they were is to be seen, not what is wrong with them now.
        let objects = self.kept.objects.iter().chain(&self.kept.needing_deleted);
        for subject in objects.chain(self.kept.waiting.keys()) {
            if !kept.waiting.contains_key(subject) {
                memo.set::<ProblemsNow>(subject, None);
            }
        }
        for subject in &kept.objects {
            set_unreadable(memo, snapshot, subject);
            last_good::set(memo, last, subject);
        }
        for (subject, problems) in &kept.waiting {
            let now = Now {
                problems: Arc::clone(problems),
                waits: true,
            };
            memo.set::<ProblemsNow>(subject, Some(now));
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

    /// Lets objects that are as they were carry the problems of what they are now, or say what they would break. One that was deleted says that
    /// it stays, and the objects that it stays for say what they would lack.
    fn carry_problems(&mut self, as_written: &World, last: Sources<'_>, broken: &Victims) {
        let is_deleted = |subject: &&ObjectRef| last_good::is_deleted(last, subject);
        if self.kept.objects.iter().any(|subject| is_deleted(&subject)) {
            self.kept.needing_deleted = broken.keys().cloned().collect();
        }
        for subject in &self.kept.needing_deleted {
            let now = Now {
                problems: as_written.memo.view().get::<ProblemsOf>(subject),
                waits: false,
            };
            self.world.memo.set::<ProblemsNow>(subject, Some(now));
        }
        for subject in self.kept.objects.iter().filter(is_deleted) {
            let Some(needing) = broken.keys().next() else {
                continue;
            };
            let kind = problem::Kind::DeletedKept {
                by: Box::new(needing.clone()),
                others: broken.len() - 1,
            };
            let now = Now {
                problems: Arc::new(vec![Problem::new(subject.clone(), "", kind)]),
                waits: false,
            };
            self.world.memo.set::<ProblemsNow>(subject, Some(now));
        }
        for subject in self.kept.objects.iter().filter(|one| !is_deleted(one)) {
            let mut problems = as_written.memo.view().get::<ProblemsOf>(subject);
            let stops_others = self.kept.for_others.contains(subject);
            if let Some((victim, problem)) = broken.iter().next().filter(|_| stops_others) {
                let kind = problem::Kind::BreaksAnother {
                    victim: Box::new(victim.clone()),
                    others: broken.len() - 1,
                    why: problem.kind.to_string(),
                };
                let field = last_good::edited_field(last, subject);
                Arc::make_mut(&mut problems).push(Problem::new(subject.clone(), field, kind));
            }
            let now = Now {
                problems,
                waits: self.kept.waiting.contains_key(subject),
            };
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
        meta: snapshot
            .unread
            .get(subject)
            .map(|one| Arc::clone(&one.meta)),
        problems: Arc::new(problems),
    });
    memo.set::<Unreadable>(subject, unreadable);
}

impl World {
    /// What is to stay as it last was.
    fn to_keep(&self, last: Sources<'_>) -> Kept {
        let broken = self
            .broken(|problem| problem.kind.is_mistake() || problem.severity() == Severity::Error);
        let objects = last_good::otherwise(last, &broken);
        // Beside objects that are as they were, intents may be well that are not beside what those are now.
        let waiting = if objects.is_empty() {
            self.must_wait(last)
        } else {
            BTreeMap::new()
        };
        Kept {
            objects,
            for_others: BTreeSet::new(),
            needing_deleted: BTreeSet::new(),
            waiting,
        }
    }

    /// Objects that run as they are, or are as they last were, and that something is wrong with all the same.
    fn victims(&self, last: Sources<'_>, kept: &Kept) -> Victims {
        let view = self.memo.view();
        let is_harm = |problem: &&Problem| problem.is_harm();
        let subjects = view.all_keys::<Problems>();
        let found = subjects.iter().filter_map(|subject| {
            let problems = view.who::<Problems>(subject);
            let problem = problems.iter().filter(is_harm).min()?.clone();
            Some((subject.clone(), problem))
        });
        let waiting = kept.waiting.iter().filter_map(|(subject, problems)| {
            let problem = problems.iter().find(is_harm)?.clone();
            Some((subject.clone(), problem))
        });
        // That none of its nodes has the segment of a session is found last of all.
        let written = low_level::hand_written(&view);
        let peerings = written.iter().filter(|one| one.kind == Kind::BgpPeering);
        let idle = peerings.filter_map(|subject| {
            let problem = view
                .get::<ProblemsOf>(subject)
                .iter()
                .find(is_harm)?
                .clone();
            Some((subject.clone(), problem))
        });
        let mut victims: Victims = found.chain(waiting).chain(idle).collect();
        victims.retain(|subject, _| {
            let is_as_it_was =
                kept.objects.contains(subject) || last_good::is_as_it_was(last, subject);
            is_as_it_was && merge::generated(&view, subject.kind, &subject.key.name).is_none()
        });
        victims
    }

    /// Objects whose last good spec is stored and that something is wrong with.
    fn broken(&self, is_mistake: impl Fn(&Problem) -> bool) -> BTreeSet<ObjectRef> {
        let view = self.memo.view();
        let subjects = view.all_keys::<Problems>();
        let broken = subjects.iter().filter(|subject| {
            last_good::is_stored(subject.kind)
                && view.who::<Problems>(subject).iter().any(&is_mistake)
                && merge::generated(&view, subject.kind, &subject.key.name).is_none()
        });
        broken.cloned().collect()
    }

    /// Intents and new hand-written objects that must wait, each with why: they would become something, and something is wrong with that.
    /// Objects that lose a conflict come first, then those that lose to one in effect: others may need what they release. One
    /// that runs and was edited waits before one that is new.
    fn must_wait(&self, last: Sources<'_>) -> BTreeMap<ObjectRef, Arc<Vec<Problem>>> {
        let view = self.memo.view();
        let subjects = view.all_keys::<Problems>();
        let (mut yielding, mut wrong) = (BTreeMap::new(), BTreeMap::new());
        for subject in subjects.iter() {
            let is_written = is_low_level(subject.kind);
            if !is_written && subject.kind.intent().is_none() {
                continue;
            }
            let problems = view.get::<ProblemsOf>(subject);
            let is_wrong = problems.iter().any(|problem| problem.kind.is_mistake());
            if !is_wrong || problems::waits(&view, subject) {
                continue;
            }
            if is_written {
                let is_in_effect = merge::in_effect(&view, subject).is_some();
                if is_in_effect && last_good::is_new(last, subject) {
                    wrong.insert(subject.clone(), problems);
                }
            } else if view.get::<merge::Merged>(subject).is_held_back {
                if view.get::<Lower>(subject).lowered.is_some() {
                    yielding.insert(subject.clone(), problems);
                }
            } else if !view.get::<UnstoredOf>(subject).is_empty() {
                // One that runs as it is stays as it is.
                wrong.insert(subject.clone(), problems);
            }
        }
        // They are out of effect already; what others become may depend on that.
        if !yielding.is_empty() {
            return yielding;
        }
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
}

/// What objects compile into that will not change.
pub(crate) fn compile_once(snapshot: &Snapshot) -> Compilation {
    let mut world = World::new(Memo::once(stages::all_tables()), snapshot);
    world.update();
    let revision = world.memo.view().get::<LastRevision>(&());
    let last = Sources {
        snapshot,
        revision: revision.as_deref(),
    };
    let kept = world.to_keep(last);
    let is_settled = world.victims(last, &kept).is_empty() || last_good::edited(last).is_empty();
    if kept.is_empty() && is_settled {
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
