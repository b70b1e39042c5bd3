//! What a revision takes from the nodes that have it, whatever becomes of the objects: a selector that matches no node any more, or a list of
//! prefixes that is emptied, removes no object.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    selvedge::CountOrPercent,
    tcaas::{
        NodeNetworkConfigSpec,
        node_network_config::{ActionType, BgpPeer, Filter, HostSession, Layer2, Vrf, VrfImport},
    },
    value::Prefix,
};

use super::{Place, TooMuch, allowed};
use crate::{Compilation, node::NodeConfig, snapshot::Snapshot};

/// What an element counts that a node loses completely.
const WHOLE: usize = 1_000_000;

/// What a node carries of the overlay.
#[derive(Clone, Copy, Debug)]
struct Carried<'a> {
    layer2s: &'a BTreeMap<String, Layer2>,
    cluster_vrf: Option<&'a Arc<Vrf>>,
    fabric_vrfs: &'a BTreeMap<String, Arc<Vrf>>,
    local_vrfs: &'a BTreeMap<String, Arc<Vrf>>,
    passthroughs: &'a BTreeMap<String, HostSession>,
}

impl<'a> Carried<'a> {
    fn stored(config: &'a NodeNetworkConfigSpec) -> Self {
        Self {
            layer2s: &config.layer2s,
            cluster_vrf: config.cluster_vrf.as_ref(),
            fabric_vrfs: &config.fabric_vrfs,
            local_vrfs: &config.local_vrfs,
            passthroughs: &config.passthroughs,
        }
    }

    fn compiled(config: &'a NodeConfig) -> Self {
        Self {
            layer2s: &config.shared.layer2s,
            cluster_vrf: config.shared.cluster_vrf.as_ref(),
            fabric_vrfs: &config.shared.fabric_vrfs,
            local_vrfs: &config.shared.local_vrfs,
            passthroughs: &config.shared.passthroughs,
        }
    }

    /// Its VRFs beside that of the cluster, by name.
    fn vrfs(self) -> impl Iterator<Item = (&'a String, &'a Arc<Vrf>)> {
        self.fabric_vrfs.iter().chain(self.local_vrfs)
    }

    fn vrf(self, name: &str) -> Option<&'a Arc<Vrf>> {
        let of_fabric = self.fabric_vrfs.get(name);
        of_fabric.or_else(|| self.local_vrfs.get(name))
    }

    /// What the cluster's VRF imports from a VRF.
    fn imports_from(self, name: &str) -> Option<&'a VrfImport> {
        let mut imports = self
            .cluster_vrf
            .into_iter()
            .flat_map(|vrf| &vrf.vrf_imports);
        imports.find(|import| import.from_vrf == name)
    }

    /// Its BGP sessions of a VRF that is there.
    fn sessions_of(self, name: &str) -> Option<BTreeSet<String>> {
        self.vrf(name).map(|vrf| sessions(name, vrf))
    }

    fn cluster_sessions(self) -> BTreeSet<String> {
        let cluster = self.cluster_vrf.map(|vrf| sessions("", vrf));
        cluster.unwrap_or_default()
    }
}

/// What is counted.
#[derive(Clone, Copy, Debug)]
enum Elements {
    /// By VNI: a segment that gets another VLAN is the same.
    Segments,
    /// By name. Of one that stays, the share of its routes that it loses counts.
    Vrfs,
    /// By VRF and peer, those of the host included. What goes with its VRF is counted there.
    Sessions,
}

impl Elements {
    const ALL: [Self; 3] = [Self::Segments, Self::Vrfs, Self::Sessions];

    fn what(self) -> &'static str {
        match self {
            Self::Segments => "layer 2 segments",
            Self::Vrfs => "VRFs",
            Self::Sessions => "BGP sessions",
        }
    }

    /// Those that a node has.
    fn of(self, node: Carried<'_>) -> BTreeSet<String> {
        match self {
            Self::Segments => node
                .layer2s
                .values()
                .map(|one| one.vni.to_string())
                .collect(),
            Self::Vrfs => node.vrfs().map(|(name, _)| name.clone()).collect(),
            Self::Sessions => {
                let of_vrfs = node.vrfs().flat_map(|(name, vrf)| sessions(name, vrf));
                let others = node.cluster_sessions().into_iter();
                let others = others.chain(node.passthroughs.keys().cloned());
                of_vrfs.chain(others).collect()
            }
        }
    }

    /// Those that a node loses, and how much of each.
    fn lost(self, before: Carried<'_>, after: Carried<'_>) -> BTreeMap<String, usize> {
        match self {
            Self::Segments => {
                let kept = self.of(after);
                let before = self.of(before).into_iter();
                let gone = before.filter(|element| !kept.contains(element));
                gone.map(|element| (element, WHOLE)).collect()
            }
            Self::Vrfs => {
                let lost = before.vrfs().map(|(name, _)| {
                    let lost = share_of_routes(name, before, after);
                    (name.clone(), lost.unwrap_or(WHOLE))
                });
                lost.filter(|(_, lost)| *lost > 0).collect()
            }
            Self::Sessions => {
                let of_vrfs = before.vrfs().flat_map(|(name, vrf)| {
                    let kept = after.sessions_of(name);
                    kept.map_or_else(BTreeSet::new, |kept| &sessions(name, vrf) - &kept)
                });
                let of_cluster = &before.cluster_sessions() - &after.cluster_sessions();
                let passthroughs = before.passthroughs.keys();
                let gone = passthroughs.filter(|name| !after.passthroughs.contains_key(*name));
                let gone = of_vrfs.chain(of_cluster).chain(gone.cloned());
                gone.map(|session| (session, WHOLE)).collect()
            }
        }
    }
}

/// The BGP sessions of a VRF.
fn sessions(name: &str, vrf: &Vrf) -> BTreeSet<String> {
    let host = vrf
        .host_session
        .iter()
        .map(|session| session.source.clone());
    let peers = vrf.bgp_peers.iter().filter_map(BgpPeer::peer);
    let all = host.chain(peers);
    all.map(|peer| format!("{name} {peer}")).collect()
}

/// How much of its routes a VRF loses; nothing where the VRF itself is gone.
fn share_of_routes(name: &str, before: Carried<'_>, after: Carried<'_>) -> Option<usize> {
    let [(old, old_import), (new, new_import)] =
        [before, after].map(|node| (node.vrf(name), node.imports_from(name)));
    let (old, new) = (old?, new?);
    if (Arc::ptr_eq(old, new) || old == new) && old_import == new_import {
        return Some(0);
    }
    let (old, new) = (routes(old, old_import), routes(new, new_import));
    let lost = old.difference(&new).count();
    Some((lost * WHOLE).checked_div(old.len()).unwrap_or_default())
}

/// A route of a VRF, and what it is for; of a filter without a prefix, all routes.
type Route<'a> = (&'static str, &'a str, Option<Prefix>);

/// What a VRF imports, has and exports, to the fabric and to the cluster's VRF.
fn routes<'a>(vrf: &'a Vrf, to_cluster: Option<&'a VrfImport>) -> BTreeSet<Route<'a>> {
    let imports = vrf.vrf_imports.iter();
    let imports = imports.map(|import| ("import", import.from_vrf.as_str(), &import.filter));
    let to_cluster = to_cluster.map(|import| ("to the cluster", "", &import.filter));
    let filtered = imports.chain(to_cluster).flat_map(|(what, vrf, filter)| {
        let accepted = accepted(filter);
        accepted.map(move |prefix| (what, vrf, prefix))
    });
    let statics = vrf.static_routes.iter();
    let statics = statics.map(|route| ("static", "", Some(route.prefix)));
    // The sources of tunnels come and go with mirrors, which need no approval.
    let loopbacks = vrf.loopbacks.values().flat_map(|one| &one.ip_addresses);
    let own: BTreeSet<Prefix> = loopbacks.map(|address| address.prefix()).collect();
    let exports = vrf.evpn_export_filter.iter().flat_map(accepted);
    let exports = exports.filter(|prefix| prefix.is_none_or(|prefix| !own.contains(&prefix)));
    let exports = exports.map(|prefix| ("export", "", prefix));
    filtered.chain(statics).chain(exports).collect()
}

fn accepted(filter: &Filter) -> impl Iterator<Item = Option<Prefix>> {
    let items = filter.items.iter();
    let items = items.filter(|item| item.action.kind == ActionType::Accept);
    let prefixes = items.map(|item| item.matcher.prefix.map(|one| one.prefix));
    let others = filter.default_action.kind == ActionType::Accept;
    prefixes.chain(others.then_some(None))
}

/// What a node has and what it is to have; nothing where that is the same.
type Change<'a> = (Carried<'a>, Option<Carried<'a>>);

/// What is taken too much of from the nodes that have it, by what they have now.
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
    let mut all = Elements::ALL.into_iter();
    all.find_map(|elements| taken(max_removal, elements, nodes))
}

/// Of each element it counts what share of its nodes loses it.
fn taken(max_removal: CountOrPercent, elements: Elements, nodes: &[Change<'_>]) -> Option<TooMuch> {
    let mut lost: BTreeMap<String, usize> = BTreeMap::new();
    for (before, after) in nodes {
        let Some(after) = after else { continue };
        for (element, much) in elements.lost(*before, *after) {
            *lost.entry(element).or_default() += much;
        }
    }
    // Most changes take nothing away, and need no count of what there is.
    if lost.is_empty() {
        return None;
    }
    let mut carriers: BTreeMap<String, usize> = BTreeMap::new();
    for (before, _) in nodes {
        for element in elements.of(*before) {
            *carriers.entry(element).or_default() += 1;
        }
    }
    let shares = lost.iter().filter_map(|(element, lost)| {
        let carriers = carriers.get(element)?;
        lost.checked_div(*carriers)
    });
    let (shares, of) = (shares.sum::<usize>(), carriers.len());
    let allowed = allowed(max_removal, of);
    // Where nothing may be removed, a part counts as well.
    let removed = match allowed {
        0 => shares.div_ceil(WHOLE),
        _ => shares / WHOLE,
    };
    (removed > allowed).then_some(TooMuch {
        what: elements.what(),
        place: Place::Nodes,
        removed,
        of,
        allowed,
    })
}
