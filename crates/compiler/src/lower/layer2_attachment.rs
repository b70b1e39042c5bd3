//! A `Layer2Attachment` over the fabric becomes one segment, and routing in each VRF it reaches.

use api::{
    selvedge::SettingsSpec,
    tcaas::{
        Anycast, Layer2AttachmentSpec, Layer2AttachmentStatus, Layer2NetworkConfigurationSpec,
        MatchedDestination, NetworkSpec, VrfRouteConfigurationSpec,
    },
    value::{HostCidr, MacAddress, Mtu, Prefix, VlanId, Vni, VrfName},
};

use super::{
    Attachment, Lowered, Made, reach,
    routing::{self, generated_name, subnets},
};
use crate::{
    allocate, names,
    problem::{self, Problem},
    snapshot::{Key, Kind, Object, ObjectRef, Snapshot},
};

/// MTU of a segment whose author did not choose one.
const DEFAULT_MTU: i64 = 1500;

/// What the attachment becomes; `None` when something it needs is missing, with the reason in `problems`.
pub(super) fn lower(
    snapshot: &Snapshot,
    settings: &SettingsSpec,
    lowered: &Lowered,
    (subject, object): (
        &ObjectRef,
        &Object<Layer2AttachmentSpec, Layer2AttachmentStatus>,
    ),
    problems: &mut Vec<Problem>,
) -> Option<Made> {
    let spec = &object.spec;
    note_what_is_left_out(subject, spec, problems);
    let selector = spec.node_selector.as_ref();
    if let Some(Err(error)) = selector.map(api::meta::LabelSelector::check) {
        let kind = problem::Kind::InvalidSelector(error);
        problems.push(Problem::new(subject.clone(), "spec.nodeSelector", kind));
        return None;
    }
    let network = network(snapshot, subject, spec, problems)?;
    if spec.interface_ref.is_some() || !network.managed {
        return Some(Made::default());
    }
    let segment = segment(lowered, subject, spec, network, problems)?;
    let Some(selector) = &spec.destinations else {
        let kind = problem::Kind::DestinationsRequired;
        problems.push(Problem::new(subject.clone(), "spec.destinations", kind));
        return None;
    };
    let reach = reach::resolve(snapshot, &lowered.vrfs, subject, selector, problems)?;

    let subnets = subnets(network);
    let routing = reach.vrfs.iter().map(|(vrf, reached)| {
        let name = generated_name(subject, vrf.as_str());
        (name, routing(spec, vrf, reached, &subnets))
    });
    let name = generated_name(subject, &segment.vlan.to_string());
    Some(Made {
        vrf: routing.collect(),
        layer2: vec![(name, layer2(settings, spec, &segment, &reach))],
        attachment: attachment(settings, spec, &segment, reach.matched),
        ..Made::default()
    })
}

/// The segment: in the one VRF that it reaches, or, where it reaches several, in the cluster VRF, from which it is leaked to each.
fn layer2(
    settings: &SettingsSpec,
    spec: &Layer2AttachmentSpec,
    segment: &Segment,
    reach: &reach::Reach,
) -> Layer2NetworkConfigurationSpec {
    let mut vrfs = reach.vrfs.keys();
    let home = match (vrfs.next(), vrfs.next()) {
        (Some(only), None) => only,
        _ => &settings.cluster_vrf.name,
    };
    Layer2NetworkConfigurationSpec {
        id: segment.vlan,
        mtu: spec.mtu.unwrap_or_else(default_mtu),
        vni: Some(segment.vni),
        anycast_mac: segment.mac(settings),
        anycast_gateways: segment.gateways.clone(),
        advertise_neighbors: false,
        create_mac_vlan_interface: false,
        neigh_suppression: Some(!spec.disable_neighbor_suppression),
        disable_segmentation: false,
        vrf: Some(home.clone()),
        node_selector: spec.node_selector.clone(),
        interface_ref: None,
        interface_name: spec.interface_name.clone(),
        node_ips: None,
        static_routes: Vec::new(),
    }
}

fn attachment(
    settings: &SettingsSpec,
    spec: &Layer2AttachmentSpec,
    segment: &Segment,
    matched: Vec<MatchedDestination>,
) -> Attachment {
    let suffix = spec.interface_name.as_ref();
    let gateway = |ipv4: bool| {
        let mut gateways = segment.gateways.iter().copied();
        gateways.find(|gateway| gateway.is_ipv4() == ipv4)
    };
    Attachment {
        interface: suffix.and_then(|suffix| names::host_interface(suffix.as_str())),
        anycast: segment.mac(settings).map(|mac| Anycast {
            mac: Some(mac),
            gateway: gateway(false),
            gatewayv4: gateway(true),
        }),
        matched,
    }
}

fn default_mtu() -> Mtu {
    Mtu::try_from(DEFAULT_MTU).unwrap_or_else(|_| unreachable!("a constant in range"))
}

fn network<'a>(
    snapshot: &'a Snapshot,
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) -> Option<&'a NetworkSpec> {
    let found = snapshot
        .networks
        .get(&Key::named(&spec.network_ref))
        .map(|network| &network.spec);
    if found.is_none() {
        let kind = snapshot.missing(ObjectRef::named(Kind::Network, &spec.network_ref));
        problems.push(Problem::new(subject.clone(), "spec.networkRef", kind));
    }
    found
}

/// The numbers and addresses of a segment.
struct Segment {
    vlan: VlanId,
    vni: Vni,
    gateways: Vec<HostCidr>,
}

impl Segment {
    /// MAC address of the gateway, where there is one.
    fn mac(&self, settings: &SettingsSpec) -> Option<MacAddress> {
        (!self.gateways.is_empty()).then_some(settings.anycast_mac)
    }
}

fn segment(
    lowered: &Lowered,
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    network: &NetworkSpec,
    problems: &mut Vec<Problem>,
) -> Option<Segment> {
    let mut report = |field: &str, kind| problems.push(Problem::new(subject.clone(), field, kind));
    let lacks = |what| problem::Kind::NetworkLacks {
        network: ObjectRef::named(Kind::Network, &spec.network_ref),
        what,
    };
    let Some(vlan) = network.vlan else {
        report("spec.networkRef", lacks("vlan"));
        return None;
    };
    // Why a Network got no VNI stands on the Network.
    let vni = *lowered.network_vnis.get(&spec.network_ref)?;
    if let Some(suffix) = &spec.interface_name
        && names::host_interface(suffix.as_str()).is_none()
    {
        report(
            "spec.interfaceName",
            problem::Kind::NameTooLong {
                name: format!("l2.{suffix}"),
            },
        );
        return None;
    }
    let mut gateways = Vec::new();
    if !spec.disable_anycast {
        for prefix in subnets(network) {
            let Some(gateway) = allocate::gateway(prefix) else {
                report(
                    "spec.networkRef",
                    problem::Kind::NoGateway {
                        prefix: prefix.to_string(),
                    },
                );
                return None;
            };
            gateways.push(gateway);
        }
    }
    Some(Segment {
        vlan,
        vni,
        gateways,
    })
}

/// Routing in one VRF: the destinations' prefixes come in, the segment's own subnets go out, and further routes go both ways.
fn routing(
    spec: &Layer2AttachmentSpec,
    vrf: &VrfName,
    reached: &reach::ReachedVrf,
    subnets: &[Prefix],
) -> VrfRouteConfigurationSpec {
    let extra = spec.routes.iter().flat_map(|route| &route.prefixes);
    let extra: Vec<Prefix> = extra.copied().collect();
    let export: Vec<Prefix> = subnets.iter().chain(&extra).copied().collect();
    let exports = routing::Exports {
        items: routing::permit(&export),
        aggregate: Vec::new(),
        communities: &spec.communities,
        node_selector: spec.node_selector.as_ref(),
    };
    routing::routing(vrf, reached, &extra, exports)
}

/// What this version accepts and does nothing with: said, not passed over.
fn note_what_is_left_out(
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) {
    let mut note = |field: &str, what| {
        problems.push(Problem::new(
            subject.clone(),
            field,
            problem::Kind::NotCompiledYet { what },
        ));
    };
    if spec.interface_ref.is_some() {
        note("spec.interfaceRef", "an attachment to a device of the node");
    }
    if spec.bgp.as_ref().is_some_and(|bgp| bgp.enabled) {
        note("spec.bgp", "BGP with workloads");
    }
    if spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled) {
        note("spec.sriov", "SR-IOV");
    }
    if spec
        .node_ips
        .as_ref()
        .is_some_and(|node_ips| node_ips.enabled)
    {
        note("spec.nodeIPs", "addresses of nodes");
    }
}
