//! A revision that removes much of what the last one configured waits for an approval: a mistake in one place must not empty a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use api::{
    selvedge::CountOrPercent,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, NetworkConfigRevisionSpec,
        NodeNetworkConfigSpec, RevisionEntry, VrfRouteConfigurationSpec,
        node_network_config::{Layer2, Vrf},
    },
};

use super::waves;
use crate::{
    Compilation,
    lower::{LowLevelObjects, LowLevelSpec},
    node::NodeConfig,
    snapshot::{Key, Kind, ObjectRef, Snapshot},
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

/// What a node carries of the overlay.
#[derive(Clone, Copy, Debug)]
struct Carried<'a> {
    layer2s: &'a BTreeMap<String, Layer2>,
    vrfs: &'a BTreeMap<String, Arc<Vrf>>,
}

impl<'a> Carried<'a> {
    fn stored(config: &'a NodeNetworkConfigSpec) -> Self {
        Self {
            layer2s: &config.layer2s,
            vrfs: &config.fabric_vrfs,
        }
    }

    fn compiled(config: &'a NodeConfig) -> Self {
        Self {
            layer2s: &config.shared.layer2s,
            vrfs: &config.shared.fabric_vrfs,
        }
    }

    /// Its segments, by VNI: a segment that gets another VLAN is the same.
    fn segments(self) -> BTreeSet<String> {
        let segments = self.layer2s.values();
        segments.map(|one| one.vni.to_string()).collect()
    }

    fn vrfs(self) -> BTreeSet<String> {
        self.vrfs.keys().cloned().collect()
    }
}

/// What a node has and what it is to have; nothing where that is the same.
type Change<'a> = (Carried<'a>, Option<Carried<'a>>);

/// What is taken too much of from the nodes that have it, by what they have now. A selector that matches no node any more removes no object.
pub fn too_much_on_nodes(
    max_removal: CountOrPercent,
    snapshot: &Snapshot,
    after: &Compilation,
) -> Option<TooMuch> {
    let stored = snapshot.node_network_configs.iter();
    let changes = stored.filter_map(|(key, config)| {
        let wanted = after.nodes.get(&*key.name)?;
        // One that names a revision forwards as the stored one does.
        let differs = wanted.revision.is_none();
        let wanted = differs.then(|| Carried::compiled(wanted));
        Some((Carried::stored(&config.spec), wanted))
    });
    judge(max_removal, &changes.collect::<Vec<_>>())
}

/// The same of two compilations of which the first one is on the nodes.
pub fn too_much_between(
    max_removal: CountOrPercent,
    before: &Compilation,
    after: &Compilation,
) -> Option<TooMuch> {
    let nodes = before.nodes.iter().filter_map(|(node, before)| {
        let after = after.nodes.get(node)?;
        let differs = !Arc::ptr_eq(&before.shared, &after.shared);
        let wanted = differs.then(|| Carried::compiled(after));
        Some((Carried::compiled(before), wanted))
    });
    judge(max_removal, &nodes.collect::<Vec<_>>())
}

fn judge(max_removal: CountOrPercent, nodes: &[Change<'_>]) -> Option<TooMuch> {
    let segments = || taken(max_removal, "layer 2 segments", nodes, Carried::segments);
    segments().or_else(|| taken(max_removal, "VRFs", nodes, Carried::vrfs))
}

/// Of each element it counts what share of its nodes loses it.
fn taken<'a>(
    max_removal: CountOrPercent,
    what: &'static str,
    nodes: &[Change<'a>],
    elements: impl Fn(Carried<'a>) -> BTreeSet<String>,
) -> Option<TooMuch> {
    /// What an element counts that all its nodes lose.
    const WHOLE: usize = 1_000_000;
    let mut lost: BTreeMap<String, usize> = BTreeMap::new();
    for (before, after) in nodes {
        let Some(after) = after else { continue };
        let kept = elements(*after);
        let gone = elements(*before).into_iter();
        for element in gone.filter(|element| !kept.contains(element)) {
            *lost.entry(element).or_default() += 1;
        }
    }
    // Most changes take nothing away, and need no count of what there is.
    if lost.is_empty() {
        return None;
    }
    let mut carriers: BTreeMap<String, usize> = BTreeMap::new();
    for (before, _) in nodes {
        for element in elements(*before) {
            *carriers.entry(element).or_default() += 1;
        }
    }
    let shares = lost.iter().filter_map(|(element, lost)| {
        let carriers = carriers.get(element)?;
        (lost * WHOLE).checked_div(*carriers)
    });
    let (removed, of) = (shares.sum::<usize>() / WHOLE, carriers.len());
    let allowed = allowed(max_removal, of);
    (removed > allowed).then_some(TooMuch {
        what,
        place: Place::Nodes,
        removed,
        of,
        allowed,
    })
}
