//! What intents become, joined with people's own objects: whoever needs a name or a scope that somebody else has yields.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    mem,
    sync::Arc,
};

use api::{
    selvedge::SettingsSpec,
    tcaas::{BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec},
};

use super::{
    Contribution, INTENTS, LowLevel, LowLevelObjects, Lowered, Service, contribution::kept, timers,
};
use crate::{
    problem::{self, Problem},
    snapshot::{self, Key, Kind, Meta, ObjectRef, Objects, Snapshot},
};

/// What lowering an intent gave, and what stands for it among all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// What it would become.
    made: Option<Arc<Contribution>>,
    /// What is wrong with it.
    problems: Vec<Problem>,
    /// What it contributes: that, or what it contributed last.
    joined: Option<Arc<Contribution>>,
    /// Whom it gets into the way of, or who is in its way.
    refusals: Vec<Problem>,
}

impl Outcome {
    /// Whether something keeps it from becoming anything.
    pub(super) fn is_broken(&self) -> bool {
        self.made.is_none()
    }

    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().chain(&self.refusals)
    }
}

/// What intents are lowered from and joined with.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) settings: &'a SettingsSpec,
}

/// What is different among low-level objects.
#[derive(Debug)]
pub(crate) enum Touched {
    /// Anything may be.
    All,
    /// Only this.
    These(Differences),
}

/// Intents that may have become something else, and the objects that came of that.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) intents: BTreeSet<ObjectRef>,
    pub(crate) layer2: Vec<Pair<Layer2NetworkConfigurationSpec>>,
    pub(crate) vrf: Vec<Pair<VrfRouteConfigurationSpec>>,
    pub(crate) bgp: Vec<Pair<BgpPeeringSpec>>,
}

/// An object as it was and as it is.
pub(crate) type Pair<S> = (Option<Arc<LowLevel<S>>>, Option<Arc<LowLevel<S>>>);

impl Differences {
    fn add(&mut self, before: Option<&Contribution>, now: Option<&Contribution>) {
        let nothing = Contribution::default();
        let (before, now) = (before.unwrap_or(&nothing), now.unwrap_or(&nothing));
        pairs(&before.layer2, &now.layer2, &mut self.layer2);
        pairs(&before.vrf, &now.vrf, &mut self.vrf);
        pairs(&before.bgp, &now.bgp, &mut self.bgp);
    }
}

fn pairs<S>(
    before: &[(String, Arc<LowLevel<S>>)],
    now: &[(String, Arc<LowLevel<S>>)],
    pairs: &mut Vec<Pair<S>>,
) {
    fn of<'a, S>(
        objects: &'a [(String, Arc<LowLevel<S>>)],
        name: &String,
    ) -> Option<&'a Arc<LowLevel<S>>> {
        let found = objects.iter().find(|(other, _)| other == name);
        found.map(|(_, object)| object)
    }
    for (name, object) in now {
        let known = of(before, name);
        if !known.is_some_and(|known| Arc::ptr_eq(known, object)) {
            pairs.push((known.cloned(), Some(Arc::clone(object))));
        }
    }
    let gone = before.iter().filter(|(name, _)| of(now, name).is_none());
    pairs.extend(gone.map(|(_, object)| (Some(Arc::clone(object)), None)));
}

impl Lowered {
    /// Lowers the touched intents again and puts what they become in the place of what they were.
    ///
    /// Nothing if somebody gets into somebody's way: who yields can only be told when all stand in their order.
    pub(super) fn join_these(
        &mut self,
        world: World<'_>,
        touched: &BTreeSet<ObjectRef>,
    ) -> Option<Touched> {
        let mut before = BTreeMap::new();
        for subject in touched {
            if let Some(outcome) = self.leave(subject) {
                before.insert(subject, outcome);
            }
        }
        let mut differences = Differences::default();
        for kind in INTENTS {
            let mut refused = Vec::new();
            for subject in touched.iter().filter(|one| one.kind == kind) {
                let known = before.get(subject);
                self.enter(world, subject, (known, true), &mut refused);
                if self.is_contested || !refused.is_empty() {
                    return None;
                }
                let now = self.outcomes.get(subject);
                let joined = |one: &'_ Outcome| one.joined.clone();
                differences.add(
                    known.and_then(joined).as_deref(),
                    now.and_then(joined).as_deref(),
                );
            }
        }
        differences.intents.clone_from(touched);
        Some(Touched::These(differences))
    }

    /// Joins all intents again, in the order in which they are served; only the touched ones are lowered again.
    pub(super) fn join_all(&mut self, world: World<'_>, touched: &BTreeSet<ObjectRef>) -> Touched {
        let mut before = mem::take(&mut self.outcomes);
        self.layer2 = Arc::clone(&self.written.layer2);
        self.vrf = Arc::clone(&self.written.vrf);
        self.bgp = Arc::clone(&self.written.bgp);
        self.mirror_targets = Arc::clone(&self.written.mirror_targets);
        self.mirror_selectors = Arc::clone(&self.written.mirror_selectors);
        self.attachments.clear();
        self.services.clear();
        self.is_contested = false;
        let mut refused = Vec::new();
        for kind in INTENTS {
            for subject in by_age(world.snapshot, kind) {
                let known = before.remove(&subject);
                let is_touched = touched.contains(&subject);
                self.enter(world, &subject, (known.as_ref(), is_touched), &mut refused);
            }
        }
        self.is_contested |= !refused.is_empty();
        for ObjectRef { kind, key } in refused {
            match kind {
                Kind::Layer2NetworkConfiguration => {
                    drop(Arc::make_mut(&mut self.layer2).remove(&key.name));
                }
                Kind::VrfRouteConfiguration => {
                    drop(Arc::make_mut(&mut self.vrf).remove(&key.name));
                }
                Kind::MirrorTarget => {
                    drop(Arc::make_mut(&mut self.mirror_targets).remove(&key.name));
                }
                Kind::MirrorSelector => {
                    drop(Arc::make_mut(&mut self.mirror_selectors).remove(&key.name));
                }
                _ => drop(Arc::make_mut(&mut self.bgp).remove(&key.name)),
            }
        }
        Touched::All
    }

    /// Takes out what an intent contributes.
    fn leave(&mut self, subject: &ObjectRef) -> Option<Outcome> {
        fn of<S: Clone>(
            objects: &mut Arc<LowLevelObjects<S>>,
            joined: &[(String, Arc<LowLevel<S>>)],
        ) {
            for (name, _) in joined {
                Arc::make_mut(objects).remove(name);
            }
        }
        let outcome = self.outcomes.remove(subject)?;
        if let Some(joined) = &outcome.joined {
            of(&mut self.layer2, &joined.layer2);
            of(&mut self.vrf, &joined.vrf);
            of(&mut self.bgp, &joined.bgp);
            of(&mut self.mirror_targets, &joined.mirror_targets);
            of(&mut self.mirror_selectors, &joined.mirror_selectors);
        }
        match subject.kind {
            Kind::Layer2Attachment => drop(self.attachments.remove(&subject.key.name)),
            _ => drop(self.services.remove(subject)),
        }
        Some(outcome)
    }

    /// Adds what an intent becomes, or what it became before something was wrong with it. One that is gone adds nothing.
    fn enter(
        &mut self,
        world: World<'_>,
        subject: &ObjectRef,
        (known, is_touched): (Option<&Outcome>, bool),
        refused: &mut Vec<ObjectRef>,
    ) {
        let Some(meta) = self.hold(world.snapshot, subject) else {
            return;
        };
        let mut outcome = match known.filter(|_| !is_touched) {
            Some(known) => Outcome {
                made: known.made.clone(),
                problems: known.problems.clone(),
                ..Outcome::default()
            },
            None => self.outcome(world, (subject, meta), known),
        };
        let mut refusals = Vec::new();
        let taken = outcome.made.as_ref().and_then(|made| self.taken(made));
        if let Some(name) = &taken {
            let kind = problem::Kind::NameTaken { name: name.clone() };
            refusals.push(Problem::new(subject.clone(), "metadata.name", kind));
            self.is_contested = true;
        }
        let hands = &self.hands;
        let mut may_have = |made: &Contribution| {
            let intent = (subject, meta);
            hands.allow(world.snapshot, intent, made, (&mut refusals, refused))
        };
        let made = outcome.made.as_ref().filter(|_| taken.is_none());
        if let Some(made) = made.filter(|made| may_have(made)).cloned() {
            self.add(subject, &made);
            outcome.joined = Some(made);
        } else {
            let kept = kept(world.snapshot, subject).contribution(subject, meta);
            if may_have(&kept) {
                let joined = known.and_then(|known| known.joined.as_ref());
                let kept = match joined {
                    Some(joined) => kept.reusing(joined),
                    None => kept,
                };
                self.keep(&kept);
                outcome.joined = Some(Arc::new(kept));
            }
        }
        outcome.refusals = refusals;
        self.outcomes.insert(subject.clone(), outcome);
    }

    /// What lowering an intent gives.
    fn outcome(
        &self,
        world: World<'_>,
        (subject, meta): (&ObjectRef, &Meta),
        known: Option<&Outcome>,
    ) -> Outcome {
        let mut problems = Vec::new();
        let made = self.intent(world, subject, &mut problems).filter(|made| {
            let fit = made.bgp.iter().all(|(_, spec)| timers::fit(spec));
            if !fit {
                let field = timers::field(subject.kind);
                let kind = problem::Kind::TimersDoNotFit;
                problems.push(Problem::new(subject.clone(), field, kind));
            }
            fit
        });
        let made = made.map(|made| {
            let made = made.contribution(subject, meta);
            let known = known.and_then(|known| known.joined.as_ref());
            Arc::new(match known {
                Some(known) => made.reusing(known),
                None => made,
            })
        });
        Outcome {
            made,
            problems,
            ..Outcome::default()
        }
    }

    /// Notes what a service holds, whatever else is wrong with it. What Kubernetes knows of an intent, if it is there.
    fn hold<'s>(&mut self, snapshot: &'s Snapshot, subject: &ObjectRef) -> Option<&'s Meta> {
        let key = &subject.key;
        let (meta, pools) = match subject.kind {
            Kind::Inbound => {
                let object = snapshot.inbounds.get(key)?;
                let status = object.status.as_ref();
                let pool = status.and_then(|status| status.pool_name.clone());
                (&object.meta, pool.into_iter().collect())
            }
            Kind::Outbound => (&snapshot.outbounds.get(key)?.meta, Vec::new()),
            Kind::PodNetwork => {
                let object = snapshot.pod_networks.get(key)?;
                let pools = object.status.as_ref().map(|status| status.ip_pools.clone());
                (&object.meta, pools.unwrap_or_default())
            }
            Kind::Layer2Attachment => return Some(&snapshot.layer2_attachments.get(key)?.meta),
            Kind::BgpNeighbor => return Some(&snapshot.bgp_neighbors.get(key)?.meta),
            Kind::Collector => return Some(&snapshot.collectors.get(key)?.meta),
            Kind::TrafficMirror => return Some(&snapshot.traffic_mirrors.get(key)?.meta),
            _ => return None,
        };
        let service = Service {
            addresses: self.addresses.of(subject).addresses,
            pools,
            ..Service::default()
        };
        self.services.insert(subject.clone(), service);
        Some(meta)
    }

    /// A name that is needed and that somebody else's object has.
    fn taken(&self, made: &Contribution) -> Option<String> {
        fn of<S>(
            made: &[(String, Arc<LowLevel<S>>)],
            there: &LowLevelObjects<S>,
        ) -> Option<String> {
            let mut names = made.iter().map(|(name, _)| name);
            names.find(|name| there.contains_key(*name)).cloned()
        }
        of(&made.layer2, &self.layer2)
            .or_else(|| of(&made.vrf, &self.vrf))
            .or_else(|| of(&made.bgp, &self.bgp))
            .or_else(|| of(&made.mirror_targets, &self.mirror_targets))
            .or_else(|| of(&made.mirror_selectors, &self.mirror_selectors))
    }

    fn add(&mut self, source: &ObjectRef, made: &Contribution) {
        match source.kind {
            Kind::Layer2Attachment => {
                let name = source.key.name.clone();
                self.attachments.insert(name, made.attachment.clone());
            }
            Kind::Inbound | Kind::Outbound | Kind::PodNetwork => {
                self.services.insert(source.clone(), made.service.clone());
            }
            _ => {}
        }
        self.keep(made);
    }

    /// Adds objects, but for those whose name somebody else has.
    fn keep(&mut self, made: &Contribution) {
        fn of<S: Clone>(
            objects: &mut Arc<LowLevelObjects<S>>,
            made: &[(String, Arc<LowLevel<S>>)],
        ) -> bool {
            let mut is_contested = false;
            for (name, object) in made {
                match Arc::make_mut(objects).entry(name.clone()) {
                    Entry::Occupied(_) => is_contested = true,
                    Entry::Vacant(free) => drop(free.insert(Arc::clone(object))),
                }
            }
            is_contested
        }
        self.is_contested |= [
            of(&mut self.layer2, &made.layer2),
            of(&mut self.vrf, &made.vrf),
            of(&mut self.bgp, &made.bgp),
            of(&mut self.mirror_targets, &made.mirror_targets),
            of(&mut self.mirror_selectors, &made.mirror_selectors),
        ]
        .contains(&true);
    }
}

/// The intents of a kind in the order in which they are served.
fn by_age(snapshot: &Snapshot, kind: Kind) -> Vec<ObjectRef> {
    fn of<S, T>(kind: Kind, objects: &Objects<S, T>) -> Vec<ObjectRef> {
        let sorted = snapshot::by_age(objects).into_iter();
        let subject = |(key, _): (&Key, _)| ObjectRef {
            kind,
            key: key.clone(),
        };
        sorted.map(subject).collect()
    }
    match kind {
        Kind::Layer2Attachment => of(kind, &snapshot.layer2_attachments),
        Kind::Inbound => of(kind, &snapshot.inbounds),
        Kind::Outbound => of(kind, &snapshot.outbounds),
        Kind::PodNetwork => of(kind, &snapshot.pod_networks),
        Kind::BgpNeighbor => of(kind, &snapshot.bgp_neighbors),
        Kind::Collector => of(kind, &snapshot.collectors),
        Kind::TrafficMirror => of(kind, &snapshot.traffic_mirrors),
        _ => Vec::new(),
    }
}
