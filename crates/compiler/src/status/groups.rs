//! Where objects are in effect, and how far the nodes there are.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    memo::{Index, Query},
    node::{self, BuiltFor, NodesBySignature, Reason, Shared, Signature},
    rollout::Progress,
    snapshot::{Key, ObjectRef},
    view::View,
};

/// Nodes that share their config: those of a signature that take part in the overlay, or those that do not.
pub(crate) type Group = (Signature, bool);

/// What the nodes of a group share.
pub(super) fn shared(view: &View<'_>, (signature, has_vtep): &Group) -> Arc<Shared> {
    let built = view.get::<BuiltFor>(signature);
    Arc::clone(if *has_vtep {
        &built.shared
    } else {
        &built.bare
    })
}

/// Whether a group has nodes at all.
pub(super) fn has_nodes(view: &View<'_>, group: &Group) -> bool {
    view.get::<GroupProgress>(group).total > 0
}

fn nodes(view: &View<'_>, (signature, has_vtep): &Group) -> Vec<Arc<str>> {
    let nodes = view.who::<NodesBySignature>(signature);
    let names = nodes.iter().map(|node| &node.name);
    let is_of_group = |node: &&Arc<str>| node::place(view, signature, node).has_vtep() == *has_vtep;
    names.filter(is_of_group).cloned().collect()
}

/// The groups that have something of each low-level object, by the object's name.
pub(crate) struct GroupsByObject;
impl Index for GroupsByObject {
    type Source = Signature;
    type Key = String;
    type Item = Group;
    fn sources(view: &View<'_>) -> Vec<Signature> {
        view.all_keys::<NodesBySignature>().to_vec()
    }
    fn entries(view: &View<'_>, signature: &Signature) -> Vec<(String, Group)> {
        let built = view.get::<BuiltFor>(signature);
        let mut entries = Vec::new();
        for (shared, has_vtep) in [(&built.shared, true), (&built.bare, false)] {
            let names = shared.segments.iter().chain(&shared.routing);
            let names = names.chain(&shared.peerings);
            let group = (signature.clone(), has_vtep);
            entries.extend(names.map(|name| (name.clone(), group.clone())));
        }
        entries
    }
}

/// How far the nodes of a group are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(super) total: usize,
    pub(super) ready: usize,
    /// How many failed.
    pub(super) failures: usize,
    /// The first that failed, by name.
    pub(super) failed: Option<Arc<str>>,
}

impl Count {
    /// Counts a node.
    pub(super) fn node(&mut self, node: &Arc<str>, progress: Progress) {
        match progress {
            Progress::Ready => self.ready += 1,
            Progress::Failed => {
                self.failures += 1;
                self.failed.get_or_insert_with(|| Arc::clone(node));
            }
            Progress::Ongoing | Progress::Queued | Progress::Unapproved => {}
        }
    }

    /// Adds the nodes of another group.
    pub(super) fn add(&mut self, other: Self) {
        self.total += other.total;
        self.ready += other.ready;
        self.failures += other.failures;
        self.failed = [self.failed.take(), other.failed]
            .into_iter()
            .flatten()
            .min();
    }
}

/// How far the nodes of each group are.
pub(crate) struct GroupProgress;
impl Query for GroupProgress {
    type Key = Group;
    type Value = Count;
    fn compute(view: &View<'_>, group: &Group) -> Count {
        let mut count = Count::default();
        for node in nodes(view, group) {
            count.total += 1;
            count.node(&node, node::told_progress(view, &Key::named(&*node)));
        }
        count
    }
}

/// How far the nodes are that have something of these objects.
pub(super) fn progress<'n>(
    view: &View<'_>,
    names: impl Iterator<Item = &'n str>,
    is_on: impl Fn(&Shared) -> bool,
) -> Count {
    let groups = names.flat_map(|name| {
        let groups = view.who::<GroupsByObject>(&name.to_owned());
        groups.to_vec()
    });
    let groups: BTreeSet<Group> = groups.collect();
    let mut sum = Count::default();
    for group in groups.iter().filter(|group| is_on(&shared(view, group))) {
        sum.add(view.get::<GroupProgress>(group));
    }
    sum
}

/// Why the traffic of each object is routed by its source, with the first node of each group where it is.
pub(crate) struct SteeringBySubject;
impl Index for SteeringBySubject {
    type Source = Signature;
    type Key = ObjectRef;
    type Item = (Arc<str>, Reason);
    fn sources(view: &View<'_>) -> Vec<Signature> {
        view.all_keys::<NodesBySignature>().to_vec()
    }
    fn entries(view: &View<'_>, signature: &Signature) -> Vec<(ObjectRef, (Arc<str>, Reason))> {
        let built = view.get::<BuiltFor>(signature);
        if built.shared.steering.is_empty() {
            return Vec::new();
        }
        let Some(first) = nodes(view, &(signature.clone(), true)).into_iter().next() else {
            return Vec::new();
        };
        let steering = built.shared.steering.iter();
        let entry = |(subject, reason): (&ObjectRef, &Reason)| {
            (subject.clone(), (Arc::clone(&first), reason.clone()))
        };
        steering.map(entry).collect()
    }
}
