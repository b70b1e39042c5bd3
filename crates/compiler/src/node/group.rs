//! Groups of nodes that have the same but for their addresses: which objects are for them, and what comes of those.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    meta::Labels,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec,
        node_network_config::HostVlan,
    },
    value::IfName,
};

use super::{
    Shared, layer2,
    memo::{Known, Premises},
    peers,
    steering::Steering,
    vrfs,
};
use crate::{
    lower::LowLevel,
    problem::{self, Problem},
    revision::Content,
    select::Index,
    snapshot::{Kind, ObjectRef, age},
};

/// A named low-level object that is for the nodes at hand.
pub(super) type Selected<'a, S> = (&'a str, &'a Arc<LowLevel<S>>);

/// Nodes that get the same config but for their addresses.
pub(super) struct Group<'a> {
    pub(super) nodes: &'a Arc<Vec<String>>,
    /// Whether the group's Underlay gives its nodes a VTEP.
    pub(super) has_overlay: bool,
    pub(super) layer2: Vec<Selected<'a, Layer2NetworkConfigurationSpec>>,
    pub(super) vrf: Vec<Selected<'a, VrfRouteConfigurationSpec>>,
    pub(super) bgp: Vec<Selected<'a, BgpPeeringSpec>>,
}

impl<'a> Group<'a> {
    pub(super) fn build(
        &self,
        content: &Content,
        numbers: &vrfs::Numbers,
        (steering, mut problems): (Steering<'a>, Vec<Problem>),
        tables: &BTreeMap<String, u32>,
    ) -> Known {
        let bare = Arc::new(without_overlay(content, self, &mut problems));
        let shared = if self.has_overlay {
            let shared = shared(content, self, numbers, &steering, tables, &mut problems);
            Arc::new(shared)
        } else {
            Arc::clone(&bare)
        };
        let steered = steering.vrfs();
        Known {
            premises: self.premises(),
            tables: self.tables(content.settings.cluster_vrf.name.as_str(), &steered, tables),
            steered: steered.into_iter().map(str::to_owned).collect(),
            shared,
            bare,
            problems,
        }
    }
}

/// What nodes of a group have that take part in no overlay: VLANs on devices of their own.
fn without_overlay(content: &Content, group: &Group<'_>, problems: &mut Vec<Problem>) -> Shared {
    let mut group = Group {
        nodes: group.nodes,
        has_overlay: group.has_overlay,
        layer2: group.layer2.clone(),
        vrf: Vec::new(),
        bgp: Vec::new(),
    };
    group
        .layer2
        .retain(|(_, object)| object.spec.interface_ref.is_some());
    if group.layer2.is_empty() {
        return Shared::default();
    }
    let claimed = layer2::claims(&group, &BTreeMap::new(), problems);
    let vlans = layer2::host_vlans(content, &group, &claimed, problems);
    let mut shared = Shared::default();
    shared.host_interfaces(&group, vlans, problems);
    shared
}

impl Shared {
    /// Takes in the VLANs on devices of the host's own, and the routes of all interfaces in the host's namespace.
    fn host_interfaces(
        &mut self,
        group: &Group<'_>,
        vlans: Vec<(&str, IfName, HostVlan)>,
        problems: &mut Vec<Problem>,
    ) {
        for (name, device, vlan) in vlans {
            self.segments.insert(name.to_owned());
            self.host_devices
                .insert(device.to_string(), name.to_owned());
            self.host_vlans.insert(device.to_string(), vlan);
        }
        let in_effect = self.segments.iter().map(String::as_str).collect();
        let routes = layer2::host_routes(group, &in_effect, problems);
        let devices = self.host_devices.clone();
        let of = |device: &str| {
            let routes = routes.get(devices.get(device)?.as_str());
            routes.cloned()
        };
        for (device, vlan) in &mut self.host_vlans {
            vlan.routes = of(device).unwrap_or_default();
        }
        for interface in self
            .layer2s
            .values_mut()
            .filter_map(|segment| segment.host_interface.as_mut())
        {
            interface.routes = of(interface.name.as_str()).unwrap_or_default();
        }
    }
}

fn shared(
    content: &Content,
    group: &Group<'_>,
    numbers: &vrfs::Numbers,
    steering: &Steering<'_>,
    tables: &BTreeMap<String, u32>,
    problems: &mut Vec<Problem>,
) -> Shared {
    let cluster = content.settings.cluster_vrf.name.as_str();
    let (mut cluster_vrf, mut fabric_vrfs) = vrfs::build(content, group, numbers, tables);
    let claimed = layer2::claims(group, &numbers.holders, problems);
    let known = |vrf: &str| vrf == cluster || fabric_vrfs.contains_key(vrf);
    let segments = layer2::build(content, group, &claimed, known, problems);
    let in_cluster: Vec<_> = segments
        .iter()
        .filter(|(_, _, segment)| segment.irb.as_ref().is_some_and(|irb| irb.vrf == cluster))
        .map(|(name, source, segment)| (*name, *source, segment))
        .collect();
    cluster_vrf.policy_routes = steering.policy_routes(&in_cluster, problems);
    let vrfs = peers::Vrfs {
        cluster_name: cluster,
        cluster: &mut cluster_vrf,
        fabric: &mut fabric_vrfs,
    };
    let (host_loopbacks, peerings) = peers::build(content, group, &segments, vrfs, problems);
    let routing = group.vrf.iter().map(|(name, _)| (*name).to_owned());
    let in_effect = segments.iter().map(|(name, ..)| (*name).to_owned());
    let host_devices = segments.iter().filter_map(|(name, _, segment)| {
        let interface = segment.host_interface.as_ref()?;
        Some((interface.name.to_string(), (*name).to_owned()))
    });
    let vlans = layer2::host_vlans(content, group, &claimed, problems);
    let mut shared = Shared {
        segments: in_effect.collect(),
        routing: routing.collect(),
        host_devices: host_devices.collect(),
        host_vlans: BTreeMap::new(),
        host_loopbacks,
        peerings: peerings.into_iter().map(str::to_owned).collect(),
        layer2s: segments
            .into_iter()
            .map(|(_, _, segment)| (segment.vlan.to_string(), segment))
            .collect(),
        cluster_vrf: Some(cluster_vrf),
        fabric_vrfs,
        local_vrfs: steering.local_vrfs(cluster, tables),
        steering: steering.why.clone(),
    };
    shared.host_interfaces(group, vlans, problems);
    shared
}

pub(super) fn selectors(content: &Content) -> impl Iterator<Item = &api::meta::LabelSelector> {
    let layer2 = content
        .layer2
        .values()
        .filter_map(|object| object.spec.node_selector.as_ref());
    let vrf = content
        .vrf
        .values()
        .filter_map(|object| object.spec.node_selector.as_ref());
    let bgp = content
        .bgp
        .values()
        .filter_map(|object| object.spec.node_selector.as_ref());
    let underlays = content
        .underlays
        .iter()
        .filter_map(|(_, _, spec)| spec.node_selector.as_ref());
    layer2.chain(vrf).chain(bgp).chain(underlays)
}

/// All objects, so that those of a group of nodes are found without asking every one.
pub(super) struct Indexes<'a> {
    layer2: Index<'a, Selected<'a, Layer2NetworkConfigurationSpec>>,
    vrf: Index<'a, Selected<'a, VrfRouteConfigurationSpec>>,
    bgp: Index<'a, Selected<'a, BgpPeeringSpec>>,
}

impl<'a> Indexes<'a> {
    pub(super) fn new(content: &'a Content, nodes: &'a Arc<Vec<String>>) -> Self {
        let Group {
            nodes: _,
            has_overlay: _,
            layer2,
            vrf,
            bgp,
        } = everything(content, nodes);
        let layer2 = layer2
            .into_iter()
            .map(|one| (one.1.spec.node_selector.as_ref(), one));
        let vrf = vrf
            .into_iter()
            .map(|one| (one.1.spec.node_selector.as_ref(), one));
        let bgp = bgp
            .into_iter()
            .map(|one| (one.1.spec.node_selector.as_ref(), one));
        Self {
            layer2: Index::new(layer2),
            vrf: Index::new(vrf),
            bgp: Index::new(bgp),
        }
    }

    pub(super) fn group(
        &self,
        labels: &Labels,
        nodes: &'a Arc<Vec<String>>,
        has_overlay: bool,
    ) -> Group<'a> {
        Group {
            nodes,
            has_overlay,
            layer2: self.layer2.of(labels),
            vrf: self.vrf.of(labels),
            bgp: self.bgp.of(labels),
        }
    }
}

/// A group that everything is for; the older objects first, routing in its merge order.
pub(super) fn everything<'a>(content: &'a Content, nodes: &'a Arc<Vec<String>>) -> Group<'a> {
    let mut layer2: Vec<_> = content
        .layer2
        .iter()
        .map(|(name, object)| (name.as_str(), object))
        .collect();
    layer2.sort_by(|(a_name, a), (b_name, b)| (age(&a.meta), a_name).cmp(&(age(&b.meta), b_name)));
    let mut vrf: Vec<_> = content
        .vrf
        .iter()
        .map(|(name, object)| (name.as_str(), object))
        .collect();
    vrf.sort_by_key(|(name, object)| (object.spec.seq, *name));
    let mut bgp: Vec<_> = content
        .bgp
        .iter()
        .map(|(name, object)| (name.as_str(), object))
        .collect();
    bgp.sort_by(|(a_name, a), (b_name, b)| (age(&a.meta), a_name).cmp(&(age(&b.meta), b_name)));
    Group {
        nodes,
        has_overlay: false,
        layer2,
        vrf,
        bgp,
    }
}

/// Says which overlay objects are for nodes of which none has an overlay.
pub(super) fn unreached<'a>(
    groups: impl Iterator<Item = &'a Premises>,
    problems: &mut Vec<Problem>,
) {
    let (overlay, none): (Vec<_>, Vec<_>) = groups.partition(|group| group.has_overlay);
    let mut waiting: BTreeMap<&ObjectRef, usize> = BTreeMap::new();
    for group in none {
        for source in group.sources() {
            *waiting.entry(source).or_default() += group.nodes.len();
        }
    }
    if waiting.is_empty() {
        return;
    }
    for source in overlay.into_iter().flat_map(Premises::sources) {
        waiting.remove(source);
    }
    for (source, nodes) in waiting {
        let kind = problem::Kind::NoUnderlay { nodes };
        problems.push(Problem::new(source.clone(), "spec.nodeSelector", kind));
    }
}

impl Premises {
    /// Whose objects here need an overlay.
    fn sources(&self) -> BTreeSet<&ObjectRef> {
        let over_the_fabric = self
            .layer2
            .iter()
            .filter(|object| object.spec.interface_ref.is_none());
        let segments = over_the_fabric.map(|object| &object.source);
        // Routing without a segment: what services announce.
        let routing = self.vrf.iter().map(|object| &object.source);
        let services = routing.filter(|source| {
            matches!(
                source.kind,
                Kind::Inbound | Kind::Outbound | Kind::PodNetwork
            )
        });
        let neighbors = self.bgp.iter().map(|object| &object.source);
        let neighbors = neighbors.filter(|source| source.kind == Kind::BgpNeighbor);
        segments.chain(services).chain(neighbors).collect()
    }
}
