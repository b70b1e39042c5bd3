//! The segments of a group of nodes.

mod networks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    selvedge::SettingsSpec,
    tcaas::{
        Layer2NetworkConfigurationSpec, NodeNetworkConfigSpec,
        node_network_config::{
            HostInterface, HostVlan, Irb, Layer2, Layer2Devices, NextHop, StaticRoute,
        },
    },
    value::{IfName, MacAddress, Prefix, VlanId, Vni, VrfName},
};

use rustc_hash::FxHashMap;

use self::networks::{Networks, Table};
use super::{
    Group,
    claims::{Others, SEGMENTS},
};
use crate::{
    lower::{LowLevel, mtu, scope},
    names,
    problem::{self, Problem},
    select::may_meet,
    snapshot::{Key, Kind, ObjectRef, kinds},
    special,
    view::View,
};

type Segment = LowLevel<Layer2NetworkConfigurationSpec>;

/// The segments that have their VLAN, VNI, device name and networks to themselves.
///
/// One that needs what another has is left out.
pub(super) struct Claimed<'a> {
    settings: &'a SettingsSpec,
    group: &'a Group<'a>,
    /// Who has the VNI of a VRF, wherever that is.
    vrf_vnis: &'a BTreeMap<Vni, ObjectRef>,
    holders: FxHashMap<Exclusive, Vec<&'a Segment>>,
    networks: Networks<'a>,
}

impl<'a> Claimed<'a> {
    pub(super) fn new(
        settings: &'a SettingsSpec,
        group: &'a Group<'a>,
        vrf_vnis: &'a BTreeMap<Vni, ObjectRef>,
    ) -> Self {
        let mut holders = FxHashMap::default();
        holders.reserve(3 * group.layer2.len());
        Self {
            settings,
            group,
            vrf_vnis,
            holders,
            networks: Networks::new(settings, group.node),
        }
    }

    /// Whose segment has a VNI.
    pub(super) fn holder(&self, vni: Vni) -> Option<&'a ObjectRef> {
        let holders = self.holders.get(&Exclusive::Vni(vni))?;
        holders.first().map(|one| &one.source)
    }

    /// Adds a segment, unless another or an object of another kind has what it wants. Gives back its networks.
    pub(super) fn take(
        &mut self,
        object: &'a Segment,
        others: &Others<'_>,
    ) -> Result<Vec<(Table, Prefix)>, Box<Problem>> {
        let wanted = wanted(&object.spec);
        let node = self.group.node;
        // On a real node two selected objects do meet; without nodes they might.
        let meet = |a: &Segment, b: &Segment| {
            node.is_some() || may_meet(a.spec.node_selector.as_ref(), b.spec.node_selector.as_ref())
        };
        if let Err(kind) = mtu::check(&object.spec) {
            let problem = Problem::new(object.source.clone(), "spec.mtu", kind);
            return Err(Box::new(problem));
        }
        let refused = reserved_device(self.settings, self.group, object, &wanted);
        if let Some(problem) = refused.or_else(|| without_mac(self.settings, object)) {
            return Err(Box::new(problem));
        }
        let taken = wanted.iter().find_map(|claim| {
            // A VNI is one VRF's or one segment's, wherever the two are.
            if let Exclusive::Vni(vni) = claim
                && let Some(by) = self.vrf_vnis.get(vni).or_else(|| others.vnis.get(vni))
            {
                return Some((claim, by));
            }
            let mut holders = self.holders.get(claim)?.iter();
            let holder = holders.find(|holder| meet(holder, object))?;
            Some((claim, &holder.source))
        });
        if let Some((claim, by)) = taken {
            let (field, kind) = claim.taken(object, by.clone(), node.map(str::to_owned));
            let problem = Problem::new(object.source.clone(), field, kind);
            return Err(Box::new(problem));
        }
        if let Some(taken) = others.devices.taken(&devices(&object.spec), SEGMENTS) {
            let field = if object.is_generated() {
                "spec.networkRef"
            } else {
                "spec.vni"
            };
            let problem = Problem::new(object.source.clone(), field, taken.kind(node));
            return Err(Box::new(problem));
        }
        let own = networks::of(self.settings, &object.spec);
        let networks = &self.networks;
        let taken = networks
            .is_trunks(object, &own, self.group.has_overlay)
            .or_else(|| networks.taken(object, &own, meet))
            .or_else(|| networks.is_overlays(object, &own, others.addressed));
        if let Some(problem) = taken {
            return Err(Box::new(problem));
        }
        self.networks.insert(object, own.clone());
        for claim in wanted {
            self.holders.entry(claim).or_default().push(object);
        }
        Ok(own)
    }
}

/// The devices of a segment in the namespace of the router.
pub(super) fn devices(spec: &Layer2NetworkConfigurationSpec) -> Vec<IfName> {
    if spec.interface_ref.is_some() {
        return Vec::new();
    }
    let vxlan = spec.vni.map(names::l2_vxlan);
    let others = [names::l2_bridge(spec.id), names::access_port(spec.id)];
    vxlan.into_iter().chain(others).collect()
}

/// What a segment wants, of which there is one on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Contested {
    Exclusive(Exclusive),
    Network(Table, Prefix),
    HostRoute(Prefix),
}

/// Segments that want what another runs and do not run it themselves.
pub(super) fn challengers(
    view: &View<'_>,
    segments: &[Arc<Segment>],
    nodes: &[Key],
) -> BTreeSet<String> {
    let settings = view.settings();
    let wanted = |spec: &Layer2NetworkConfigurationSpec| {
        let exclusive = wanted(spec).into_iter().map(Contested::Exclusive);
        let networks = networks::of(&settings, spec).into_iter();
        let networks = networks.map(|(table, prefix)| Contested::Network(table, prefix));
        let routes = spec.static_routes.iter();
        let routes = routes.map(|route| Contested::HostRoute(route.prefix));
        exclusive.chain(networks).chain(routes).collect()
    };
    let meet = |one: &Contested, other: &Contested| match (one, other) {
        (Contested::Network(table, one), Contested::Network(other_table, other)) => {
            table == other_table && networks::overlap(*one, *other)
        }
        _ => one == other,
    };
    let is_here = |spec: &Layer2NetworkConfigurationSpec| {
        let configs = nodes.iter();
        let mut configs = configs.filter_map(|node| view.spec::<kinds::NodeNetworkConfig>(node));
        configs.any(|config| has_segment(&config, spec))
    };
    let segments = segments.iter().map(|one| &**one);
    scope::challengers::<kinds::Layer2NetworkConfiguration, _>(
        view, segments, wanted, meet, is_here,
    )
}

/// Whether a config has the segment of an object.
pub(super) fn has_segment(
    config: &NodeNetworkConfigSpec,
    spec: &Layer2NetworkConfigurationSpec,
) -> bool {
    let device = host_device(spec);
    if let Some(parent) = &spec.interface_ref {
        let vlan = device.and_then(|device| config.host_vlans.get(device.as_str()));
        return vlan.is_some_and(|vlan| vlan.parent == *parent && vlan.vlan == spec.id);
    }
    let segment = config.layer2s.get(&spec.id.to_string());
    segment.is_some_and(|segment| {
        let gateways = segment.irb.iter().flat_map(|irb| &irb.ip_addresses);
        let interface = segment.host_interface.as_ref();
        Some(segment.vni) == spec.vni
            && gateways.eq(&spec.anycast_gateways)
            && interface.map(|interface| &interface.name) == device.as_ref()
    })
}

/// Something that two segments on one node cannot share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Exclusive {
    Vlan(VlanId),
    Vni(Vni),
    /// A VLAN on a device of the host's own.
    HostVlan(IfName, VlanId),
    HostDevice(IfName),
}

fn wanted(spec: &Layer2NetworkConfigurationSpec) -> Vec<Exclusive> {
    let device = host_device(spec).map(Exclusive::HostDevice);
    if let Some(parent) = &spec.interface_ref {
        let vlan = Exclusive::HostVlan(parent.clone(), spec.id);
        return [Some(vlan), device].into_iter().flatten().collect();
    }
    let vni = spec.vni.map(Exclusive::Vni);
    [Some(Exclusive::Vlan(spec.id)), vni, device]
        .into_iter()
        .flatten()
        .collect()
}

impl Exclusive {
    fn host_device(&self) -> Option<&IfName> {
        match self {
            Self::HostDevice(name) => Some(name),
            Self::Vlan(_) | Self::Vni(_) | Self::HostVlan(..) => None,
        }
    }

    fn taken(
        &self,
        object: &Segment,
        by: ObjectRef,
        node: Option<String>,
    ) -> (&'static str, problem::Kind) {
        // An intent has its numbers from its Network.
        let field = |own| {
            if object.is_generated() {
                "spec.networkRef"
            } else {
                own
            }
        };
        match self {
            Self::Vlan(vlan) | Self::HostVlan(_, vlan) => (
                field("spec.id"),
                problem::Kind::VlanTaken {
                    vlan: *vlan,
                    by,
                    node,
                },
            ),
            Self::Vni(vni) => (
                field("spec.vni"),
                problem::Kind::VniTaken {
                    vni: *vni,
                    by,
                    node,
                },
            ),
            Self::HostDevice(name) => (
                "spec.interfaceName",
                problem::Kind::DeviceNameTaken {
                    name: name.to_string(),
                    by,
                    node,
                },
            ),
        }
    }
}

/// Interface of the segment in the host's namespace.
pub(super) fn host_device(spec: &Layer2NetworkConfigurationSpec) -> Option<IfName> {
    let name = spec.interface_name.as_ref();
    names::host_device(spec.id, spec.interface_ref.is_some(), name)
}

/// What is wrong with a segment whose interface in the host's namespace would have the name of a device that is there already.
fn reserved_device(
    settings: &SettingsSpec,
    group: &Group<'_>,
    object: &Segment,
    wanted: &[Exclusive],
) -> Option<Problem> {
    let device = wanted.iter().find_map(Exclusive::host_device)?;
    let what = if device.as_str() == "lo" {
        "the loopback of every node"
    } else if group.has_overlay && *device == settings.trunk.name {
        "the trunk to the router"
    } else if Some(device) == object.spec.interface_ref.as_ref() {
        "the device that the VLAN is on"
    } else {
        names::of_no_device(device)?
    };
    let kind = problem::Kind::DeviceNameReserved {
        name: device.to_string(),
        what: what.to_owned(),
    };
    Some(Problem::new(
        object.source.clone(),
        "spec.interfaceName",
        kind,
    ))
}

/// What is wrong with a segment whose gateway has no MAC address: the settings have none that an interface can have.
fn without_mac(settings: &SettingsSpec, object: &Segment) -> Option<Problem> {
    let mac = gateway_mac(settings, &object.spec);
    let has_gateway = gateway_vrf(settings, &object.spec).is_some();
    special::unfit_mac(mac).filter(|_| has_gateway).map(|_| {
        let target = ObjectRef::named(Kind::Settings, "default");
        let kind = problem::Kind::ReferenceNotInEffect { target };
        Problem::new(object.source.clone(), "", kind)
    })
}

/// The VLANs on devices of the host's own, each with the name of its object and its device.
pub(super) fn host_vlans<'a>(
    settings: &SettingsSpec,
    group: &Group<'a>,
    claimed: &BTreeSet<String>,
    problems: &mut Vec<Problem>,
) -> Vec<(&'a str, IfName, HostVlan)> {
    let mut vlans = Vec::new();
    for (name, object) in group
        .layer2
        .iter()
        .filter(|(name, _)| claimed.contains(*name))
    {
        let spec = &object.spec;
        let (Some(parent), Some(device)) = (&spec.interface_ref, host_device(spec)) else {
            continue;
        };
        let mut report = |field: &str, kind| {
            problems.push(Problem::new(object.source.clone(), field, kind));
        };
        if group.has_overlay && *parent == settings.trunk.name {
            let kind = problem::Kind::InterfaceInUse {
                interface: parent.to_string(),
                why: "is the trunk to the router".to_owned(),
            };
            report("spec.interfaceRef", kind);
            continue;
        }
        if spec.vni.is_some() || spec.vrf.is_some() || !spec.anycast_gateways.is_empty() {
            let what = "vni, vrf and anycastGateways are for the fabric and have no effect with interfaceRef";
            let what = what.to_owned();
            report("spec.interfaceRef", problem::Kind::NoEffect { what });
        }
        let vlan = HostVlan {
            parent: parent.clone(),
            vlan: spec.id,
            mtu: spec.mtu,
            addresses: Vec::new(),
            routes: Vec::new(),
        };
        vlans.push((*name, device, vlan));
    }
    vlans
}

/// The routes that each object in effect gives the host, by the object's name; of two to one prefix the older object's.
pub(super) fn host_routes<'a>(
    group: &Group<'a>,
    in_effect: &BTreeSet<&str>,
    problems: &mut Vec<Problem>,
) -> BTreeMap<&'a str, Vec<StaticRoute>> {
    let node = group.node.map(str::to_owned);
    let mut holders: BTreeMap<Prefix, &ObjectRef> = BTreeMap::new();
    let mut routes: BTreeMap<&str, Vec<StaticRoute>> = BTreeMap::new();
    for (name, object) in group
        .layer2
        .iter()
        .filter(|(name, _)| in_effect.contains(name))
    {
        let field = if object.is_generated() {
            "spec.destinations"
        } else {
            "spec.staticRoutes"
        };
        let mut report = |kind| problems.push(Problem::new(object.source.clone(), field, kind));
        let networks = crate::lower::networks(&object.spec);
        for route in &object.spec.static_routes {
            let (prefix, next_hop) = (route.prefix, route.next_hop);
            if networks.is_empty() {
                report(problem::Kind::NodeIpsRequired);
                break;
            }
            if !networks.iter().any(|net| net.net().contains(&next_hop)) {
                report(problem::Kind::NextHopOutside {
                    next_hop: next_hop.to_string(),
                    prefix: prefix.to_string(),
                });
                continue;
            }
            if let Some(by) = holders.get(&prefix) {
                report(problem::Kind::HostRouteTaken {
                    prefix: prefix.to_string(),
                    by: Box::new((*by).clone()),
                    node: node.clone().unwrap_or_default(),
                });
                continue;
            }
            holders.insert(prefix, &object.source);
            routes.entry(name).or_default().push(StaticRoute {
                prefix,
                next_hop: Some(NextHop {
                    address: Some(next_hop),
                    vrf: None,
                }),
                bfd_profile: None,
            });
        }
    }
    routes
}

/// The segments that a group of nodes has, each with the name of its object.
pub(super) fn build<'a>(
    settings: &SettingsSpec,
    group: &Group<'a>,
    claimed: &BTreeSet<String>,
    has_vrf: impl Fn(&Segment, &str) -> bool,
    problems: &mut Vec<Problem>,
) -> Vec<(&'a str, &'a ObjectRef, Layer2)> {
    let mut segments = Vec::new();
    for (name, object) in group
        .layer2
        .iter()
        .filter(|(name, object)| claimed.contains(*name) && object.spec.interface_ref.is_none())
    {
        if let Some(vrf) = object
            .spec
            .vrf
            .as_ref()
            .filter(|vrf| !has_vrf(object, vrf.as_str()))
        {
            let node = group.node.unwrap_or_default().to_owned();
            let kind = problem::Kind::VrfNotOnNode {
                vrf: vrf.to_string(),
                node,
            };
            let field = if object.is_generated() {
                "spec.destinations"
            } else {
                "spec.vrf"
            };
            problems.push(Problem::new(object.source.clone(), field, kind));
            continue;
        }
        note_what_has_no_effect(settings, object, problems);
        let made = segment(settings, &object.spec);
        segments.extend(made.map(|segment| (*name, &object.source, segment)));
    }
    segments
}

/// The VRF that the gateway of a segment is in, where there is a gateway. Without a VRF of its own that is the cluster VRF: so it is
/// for sessions on the segment, and a gateway in no VRF would be in the fabric's own table.
fn gateway_vrf<'a>(
    settings: &'a SettingsSpec,
    spec: &'a Layer2NetworkConfigurationSpec,
) -> Option<&'a VrfName> {
    let vrf = spec.vrf.as_ref().unwrap_or(&settings.cluster_vrf.name);
    (!spec.anycast_gateways.is_empty()).then_some(vrf)
}

/// The MAC address of a segment's gateway.
fn gateway_mac(settings: &SettingsSpec, spec: &Layer2NetworkConfigurationSpec) -> MacAddress {
    spec.anycast_mac.unwrap_or(settings.anycast_mac)
}

fn segment(settings: &SettingsSpec, spec: &Layer2NetworkConfigurationSpec) -> Option<Layer2> {
    let vni = spec.vni?;
    let irb = gateway_vrf(settings, spec).map(|vrf| Irb {
        vrf: vrf.to_string(),
        mac_address: gateway_mac(settings, spec),
        ip_addresses: spec.anycast_gateways.clone(),
    });
    Some(Layer2 {
        source: None,
        vni,
        vlan: Some(spec.id),
        route_target: None,
        mtu: spec.mtu,
        neigh_suppression: spec.neigh_suppression.unwrap_or_else(|| irb.is_some()),
        irb,
        mirror_acls: Vec::new(),
        // A node that cannot do it refuses the whole config.
        disable_segmentation: false,
        devices: Layer2Devices {
            bridge: names::l2_bridge(spec.id),
            vxlan: names::l2_vxlan(vni),
            access_port: names::access_port(spec.id),
        },
        vxlan_port: 4789,
        from_other_vtep: false,
        host_port: None,
        host_interface: host_device(spec).map(|name| HostInterface {
            name,
            addresses: Vec::new(),
            routes: Vec::new(),
        }),
    })
}

/// Fields that have no effect as they are used: reported, not ignored.
fn note_what_has_no_effect(settings: &SettingsSpec, object: &Segment, problems: &mut Vec<Problem>) {
    let spec = &object.spec;
    let mut note = |field: &str, what: &str| {
        let what = what.to_owned();
        let kind = problem::Kind::NoEffect { what };
        problems.push(Problem::new(object.source.clone(), field, kind));
    };
    // The router announces every neighbor that the gateway knows, and the gateway learns those that announce themselves. What is
    // asked for is there, unless nothing of it reaches the fabric.
    let cluster = &settings.cluster_vrf;
    let vrf = gateway_vrf(settings, spec);
    let is_local = vrf == Some(&cluster.name) && cluster.vni.is_none();
    if spec.advertise_neighbors && vrf.is_none() {
        let what = "this needs a gateway: set spec.anycastGateways, or remove this field";
        note("spec.advertiseNeighbors", what);
    } else if spec.advertise_neighbors && is_local {
        let what = "the cluster VRF is not in the fabric: set Settings.spec.clusterVRF.vni and routeTarget, or remove this field";
        note("spec.advertiseNeighbors", what);
    }
    if spec.create_mac_vlan_interface {
        let what = "the node has the interface l2.<interfaceName>, which macvlans can be made on: set spec.interfaceName instead";
        note("spec.createMacVLANInterface", what);
    }
    if spec.disable_segmentation {
        let what = "disableSegmentation";
        let kind = problem::Kind::NotCompiledYet { what };
        let field = "spec.disableSegmentation";
        problems.push(Problem::new(object.source.clone(), field, kind));
    }
}
