//! A revision that removes much of what the last one configured waits for an approval: a mistake in one place must not empty a cluster.

mod nodes;

use std::{collections::BTreeSet, fmt};

use api::{
    selvedge::CountOrPercent,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, NetworkConfigRevisionSpec, RevisionEntry,
        VrfRouteConfigurationSpec,
    },
};

pub use self::nodes::{too_much_between, too_much_on_nodes};
use super::waves;
use crate::{
    Compilation,
    lower::{LowLevelObjects, LowLevelSpec},
    snapshot::{Key, Kind, ObjectRef},
};

/// Objects of one kind that a revision removes, more than `maxRemoval` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// What they are.
    what: &'static str,
    /// Where they are removed from.
    place: Place,
    removed: usize,
    of: usize,
    allowed: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cluster,
    /// All nodes that have them, or some of them: then a part is counted.
    Nodes,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            place,
            removed,
            of,
            allowed,
        } = self;
        match place {
            Place::Cluster => write!(f, "it removes {removed} of {of} {what}")?,
            Place::Nodes => write!(
                f,
                "it takes as much from nodes as {removed} of their {of} {what}"
            )?,
        }
        write!(f, "; rollout.maxRemoval allows {allowed}")
    }
}

/// How many of so many may be removed.
fn allowed(max_removal: CountOrPercent, of: usize) -> usize {
    match max_removal {
        CountOrPercent::Count(_) => waves::count(max_removal, of),
        // The last of a few can be removed without an approval.
        CountOrPercent::Percent(share) => waves::count(max_removal, of).max(share.min(1).into()),
    }
}

/// What a revision removes too many objects of, compared with the last one that nodes have.
pub fn too_much(
    max_removal: CountOrPercent,
    before: &NetworkConfigRevisionSpec,
    after: &Compilation,
) -> Option<TooMuch> {
    let judged = |what, of: usize, kept: usize| {
        let (removed, allowed) = (of - kept, allowed(max_removal, of));
        (removed > allowed).then_some(TooMuch {
            what,
            place: Place::Cluster,
            removed,
            of,
            allowed,
        })
    };
    let objects = &after.objects;
    let layer2 = before.layer2.iter().map(|one| one.name.as_str());
    let vrf = before.vrf.iter().map(|one| one.name.as_str());
    let bgp = before.bgp.iter().map(|one| one.name.as_str());
    let overlays = after.revision.overlays.iter();
    let overlays: BTreeSet<&ObjectRef> = overlays.map(|(subject, _)| subject).collect();
    let kept = |kind: Kind, before: &[RevisionEntry]| {
        let subject = |entry: &RevisionEntry| ObjectRef {
            kind,
            key: Key {
                namespace: entry.namespace.as_deref().map(Into::into),
                name: entry.name.as_str().into(),
            },
        };
        let kept = before.iter().filter(|one| overlays.contains(&subject(one)));
        kept.count()
    };
    let of_low_level = [
        (
            "layer 2 segments",
            before.layer2.len(),
            still::<Layer2NetworkConfigurationSpec>(layer2, objects),
        ),
        (
            "VRF route configurations",
            before.vrf.len(),
            still::<VrfRouteConfigurationSpec>(vrf, objects),
        ),
        (
            "BGP peerings",
            before.bgp.len(),
            still::<BgpPeeringSpec>(bgp, objects),
        ),
    ];
    let of_fabric = [
        ("L3VNIs", Kind::L3Vni, &before.l3vni),
        ("L2VNIs", Kind::L2Vni, &before.l2vni),
        ("L3Passthroughs", Kind::L3Passthrough, &before.passthrough),
    ]
    .map(|(what, kind, before)| (what, before.len(), kept(kind, before)));
    let kinds = of_low_level.into_iter().chain(of_fabric);
    let mut judged = kinds.filter_map(|(what, of, kept)| judged(what, of, kept));
    judged.next()
}

/// How many objects are still there.
fn still<'a, S: LowLevelSpec>(
    before: impl Iterator<Item = &'a str>,
    objects: &LowLevelObjects,
) -> usize {
    before
        .filter(|name| objects.get::<S>(name).is_some())
        .count()
}
