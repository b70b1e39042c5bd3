//! A `Layer2Attachment` over the fabric becomes one segment, and routing in each VRF it reaches.

use std::{collections::BTreeSet, sync::Arc};

use api::{
    meta::{LabelSelector, NameReference},
    selvedge::SettingsSpec,
    tcaas::{
        Anycast, BgpPeeringSpec, Layer2AttachmentSpec, Layer2AttachmentStatus,
        Layer2NetworkConfigurationSpec, MatchedDestination, NetworkSpec, NodeIps, PrefixAction,
        PrefixItem, StaticRoute, VrfRouteConfigurationSpec,
    },
    value::{HostCidr, MacAddress, Mtu, Prefix, VlanId, Vni, VrfName},
};

use super::{
    addresses, host_attachment,
    intent::{
        Attachment, Author, Intent, LoweredIntent, Outcome, SriovDevices, Terms, has_fitting_timers,
    },
    low_level::LowLevelObject,
    mtu, notes, reach,
    routing::{self, generated_name, of_destinations, permit, subnets},
    scope::Scope,
    values,
};
use crate::{
    allocate,
    allocate::share::Claim,
    memo::Query,
    names,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef, kinds},
    view::View,
};

/// MTU of a segment whose author did not choose one.
const DEFAULT_MTU: i64 = 1500;

impl Intent for kinds::Layer2Attachment {
    const VRF_FIELD: &'static str = "spec.destinations";
    const HOLD_TIME: &'static str = "spec.bgp.holdTime";

    fn terms(spec: &Layer2AttachmentSpec) -> Terms<'_> {
        Terms {
            network: Some(&spec.network_ref),
            destinations: spec.destinations.as_ref(),
            nodes: spec.node_selector.as_ref(),
            others: Vec::new(),
            routes: &spec.routes,
            communities: &spec.communities,
            addresses: None,
        }
    }

    fn scope_field(scope: &Scope) -> &'static str {
        match scope {
            Scope::Vrf(_) => Self::VRF_FIELD,
            Scope::Vlan(_) | Scope::HostVlan(..) | Scope::Vni(_) => "spec.networkRef",
            Scope::Segment(_) => "spec.bgp",
            _ => "spec",
        }
    }

    fn claim(view: &View<'_>, subject: &ObjectRef) -> Option<Claim> {
        addresses::of_attachment(view, &subject.key)
    }

    fn is_needed(object: &LowLevelObject) -> bool {
        matches!(object, LowLevelObject::Layer2(_))
    }

    fn is_servable(view: &View<'_>, subject: &ObjectRef, _: &Layer2AttachmentSpec) -> bool {
        let alone = view.get::<LoweredAlone>(subject);
        let lowered = alone.lowered.as_ref();
        lowered.is_some_and(|lowered| lowered.objects.iter().all(has_fitting_timers))
    }

    fn matched(status: &Layer2AttachmentStatus) -> Vec<MatchedDestination> {
        status.matched_destinations.clone()
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        _: &Layer2AttachmentSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        let share = addresses::share(view, author.subject);
        problems.extend(share.problems.iter().cloned());
        let alone = view.get::<LoweredAlone>(author.subject);
        problems.extend(alone.problems.iter().cloned());
        let lowered = alone.lowered.as_deref().cloned();
        lowered.filter(|_| share.problems.is_empty())
    }
}

/// What an attachment becomes if it gets the addresses that it needs. Only one that becomes something wants any.
pub(crate) struct LoweredAlone;
impl Query for LoweredAlone {
    type Key = ObjectRef;
    type Value = Arc<Outcome>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<Outcome> {
        let meta = view.meta::<kinds::Layer2Attachment>(&subject.key);
        let spec = view.spec::<kinds::Layer2Attachment>(&subject.key);
        let Some((meta, spec)) = meta.zip(spec) else {
            return Arc::default();
        };
        let author = Author {
            subject,
            meta: &meta,
        };
        let mut problems = Vec::new();
        let lowered = lower(view, &author, &spec, &mut problems).map(Arc::new);
        Arc::new(Outcome { lowered, problems })
    }
}

/// What the attachment becomes, wherever it is.
fn lower(
    view: &View<'_>,
    author: &Author<'_>,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) -> Option<LoweredIntent> {
    let subject = author.subject;
    notes::beside_sriov(view, subject, spec, problems);
    let selector = spec.node_selector.as_ref();
    if let Some(Err(error)) = selector.map(LabelSelector::check) {
        let kind = problem::Kind::InvalidSelector(error);
        problems.push(author.problem("spec.nodeSelector", kind));
        return None;
    }
    let network = network(view, author, spec, problems)?;
    if !network.managed {
        notes::unmanaged(subject, spec, problems);
        let sriov = sriov_devices(spec, network.vlan);
        return Some(LoweredIntent {
            attachment: Some(Attachment {
                sriov,
                ..Attachment::default()
            }),
            ..LoweredIntent::default()
        });
    }
    if let Some(parent) = &spec.interface_ref {
        return host_attachment::lower(view, author, spec, &network, parent, problems);
    }
    if !super::is_over_the_fabric(spec) {
        return sriov_only(author, spec, &network, problems);
    }
    over_the_fabric(view, author, spec, &network, problems)
}

fn over_the_fabric(
    view: &View<'_>,
    author: &Author<'_>,
    spec: &Layer2AttachmentSpec,
    network: &NetworkSpec,
    problems: &mut Vec<Problem>,
) -> Option<LoweredIntent> {
    let (subject, settings) = (author.subject, view.settings());
    let mut segment = segment(view, subject, spec, network, problems)?;
    let reach = match &spec.destinations {
        Some(selector) => {
            let reach = reach::resolve(view, subject, selector, problems)?;
            let reach = reach.or_last(view, subject)?;
            if reach.vrfs.is_empty() {
                // It was in no VRF that could route.
                segment.gateways.clear();
            }
            reach
        }
        // Without a gateway there is nothing that a VRF could route: the segment is layer 2 only.
        None if segment.gateways.is_empty() => {
            notes::without_vrf(subject, spec, problems);
            Arc::default()
        }
        None => {
            let kind = problem::Kind::DestinationsRequired;
            problems.push(author.problem("spec.destinations", kind));
            return None;
        }
    };
    if sriov_devices(spec, network.vlan).is_some() && reach.vrfs.len() > 1 {
        let vrfs = reach.vrfs.len();
        let kind = problem::Kind::SriovSeveralVrfs { vrfs };
        problems.push(author.problem("spec.destinations", kind));
        return None;
    }
    let node_ips = node_ips(subject, spec, network)
        .map_err(|problem| problems.push(*problem))
        .ok()?;

    let subnets = subnets(network);
    if !reach.vrfs.is_empty() {
        let never = never_announced(&settings, spec, &subnets);
        if !never.is_empty() {
            let never = never.into_iter();
            problems.extend(never.map(|(field, kind)| author.problem(field, kind)));
            return None;
        }
    }
    let bgp = match &spec.destinations {
        Some(_) if reach.vrfs.is_empty() => None,
        _ => bgp(&settings, subject, spec, &segment, &reach, &subnets)
            .map_err(|problem| problems.push(*problem))
            .ok()?,
    };
    let routing = reach.vrfs.iter().map(|(vrf, reached)| {
        let name = generated_name(subject, vrf.as_str());
        (name, routing(spec, vrf, reached, &subnets))
    });
    if spec.disable_anycast && !subnets.is_empty() {
        notes::without_gateway(subject, &reach, problems);
    }
    let layer2 = layer2(&settings, spec, &segment, &reach, node_ips);
    if let Err(kind) = mtu::check(&layer2) {
        problems.push(author.problem("spec.mtu", kind));
        return None;
    }
    let name = generated_name(subject, &segment.vlan.to_string());
    let mut objects = vec![author.object(name, layer2)];
    objects.extend(author.objects(routing));
    objects.extend(author.objects(bgp));
    Some(LoweredIntent {
        objects,
        attachment: Some(Attachment {
            sriov: sriov_devices(spec, network.vlan),
            ..attachment(&settings, spec, &segment, Arc::clone(&reach.matched))
        }),
        service: None,
    })
}

/// Whether workloads may open sessions: not where their packets pass the node by.
pub(super) fn has_bgp(spec: &Layer2AttachmentSpec) -> bool {
    let sriov = spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled);
    !sriov && spec.bgp.as_ref().is_some_and(|bgp| bgp.enabled)
}

/// The sessions that workloads may open on the segment. They announce parts of its network and the extra routes, and learn where the
/// destinations are.
fn bgp(
    settings: &SettingsSpec,
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    segment: &Segment,
    reach: &reach::Reach,
    subnets: &[Prefix],
) -> Result<Option<(String, BgpPeeringSpec)>, Box<Problem>> {
    let Some(bgp) = spec.bgp.as_ref().filter(|_| has_bgp(spec)) else {
        return Ok(None);
    };
    let refuse = |field: &str, kind| Box::new(Problem::new(subject.clone(), field, kind));
    let Some(remote_asn) = bgp.workload_as.or(settings.bgp.workload_as) else {
        let kind = problem::Kind::WorkloadAsRequired;
        return Err(refuse("spec.bgp.workloadAS", kind));
    };
    if segment.gateways.is_empty() {
        return Err(refuse("spec.bgp", problem::Kind::GatewayRequired));
    }
    let own = subnets.iter().map(|subnet| PrefixItem {
        le: Some(subnet.net().max_prefix_len()),
        ..permit_one(*subnet)
    });
    let extra = spec.routes.iter().flat_map(|route| &route.prefixes);
    let mut import: Vec<PrefixItem> = own.collect();
    import.extend(extra.map(|prefix| permit_one(*prefix)));
    let prefixes: BTreeSet<Prefix> = reach
        .vrfs
        .values()
        .flat_map(|reached| reached.prefixes.iter().copied())
        .collect();
    let scope = segment.vlan.to_string();
    let peering = BgpPeeringSpec {
        peering_vlan: Some(NameReference {
            name: generated_name(subject, &scope),
        }),
        loopback_peer: None,
        remote_asn,
        enable_bfd: false,
        maximum_prefixes: bgp.maximum_prefixes,
        hold_time: bgp.hold_time,
        keepalive_time: bgp.keepalive_time,
        import,
        export: of_destinations(
            &prefixes.into_iter().collect::<Vec<_>>(),
            settings.import_match,
        ),
        node_selector: spec.node_selector.clone(),
    };
    Ok(Some((generated_name(subject, &scope), peering)))
}

/// For SR-IOV devices alone nodes need nothing: pods get the VLAN by their virtual function.
fn sriov_only(
    author: &Author<'_>,
    spec: &Layer2AttachmentSpec,
    network: &NetworkSpec,
    problems: &mut Vec<Problem>,
) -> Option<LoweredIntent> {
    let Some(vlan) = network.vlan else {
        let network = ObjectRef::named(Kind::Network, &spec.network_ref);
        let what = "vlan";
        let kind = problem::Kind::NetworkLacks { network, what };
        problems.push(author.problem("spec.networkRef", kind));
        return None;
    };
    Some(LoweredIntent {
        attachment: Some(Attachment {
            sriov: sriov_devices(spec, Some(vlan)),
            ..Attachment::default()
        }),
        ..LoweredIntent::default()
    })
}

/// The SR-IOV devices, where the attachment is for them and there is a VLAN that they carry.
pub(super) fn sriov_devices(
    spec: &Layer2AttachmentSpec,
    vlan: Option<VlanId>,
) -> Option<SriovDevices> {
    let enabled = spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled);
    vlan.filter(|_| enabled).map(|vlan| SriovDevices {
        vlan,
        interface_ref: spec.interface_ref.clone(),
        node_selector: spec.node_selector.clone(),
    })
}

/// Addresses of the nodes, where the attachment wants them. It is a problem when the network has none to give.
pub(super) fn node_ips(
    subject: &ObjectRef,
    spec: &Layer2AttachmentSpec,
    network: &NetworkSpec,
) -> Result<Option<NodeIps>, Box<Problem>> {
    let Some(wanted) = spec.node_ips.as_ref().filter(|wanted| wanted.enabled) else {
        return Ok(None);
    };
    let networks = subnets(network);
    if networks.is_empty() {
        let kind = problem::Kind::NetworkLacks {
            network: ObjectRef::named(Kind::Network, &spec.network_ref),
            what: "ipv4",
        };
        let problem = Problem::new(subject.clone(), "spec.nodeIPs", kind);
        return Err(Box::new(problem));
    }
    let reserved = wanted.reserved_for_pods.unwrap_or_default();
    if let Some(net) = networks
        .iter()
        .find(|net| hosts(**net) <= u128::from(reserved))
    {
        let message = format!(
            "{reserved} addresses are reserved for pods, so {net} has none for the nodes: reserve fewer, or use a larger Network"
        );
        let kind = problem::Kind::RuleBroken { message };
        let problem = Problem::new(subject.clone(), "spec.nodeIPs.reservedForPods", kind);
        return Err(Box::new(problem));
    }
    Ok(Some(NodeIps {
        enabled: true,
        networks,
        reserved_for_pods: wanted.reserved_for_pods,
    }))
}

/// The number of host addresses of a network.
fn hosts(net: Prefix) -> u128 {
    let bits = u32::from(net.net().max_prefix_len() - net.net().prefix_len());
    let all = 1_u128.checked_shl(bits).unwrap_or(u128::MAX);
    if bits < 2 { all } else { all - 2 }
}

/// Routes of a node with an address on the segment: what is reached from the segment is reached by its gateway.
fn host_routes(segment: &Segment, reach: &reach::Reach) -> Vec<StaticRoute> {
    let prefixes: BTreeSet<Prefix> = reach
        .vrfs
        .values()
        .flat_map(|reached| reached.prefixes.iter().copied())
        .collect();
    let by_gateway = |prefix: Prefix| {
        let mut gateways = segment.gateways.iter();
        let gateway = gateways.find(|gateway| gateway.is_ipv4() == prefix.is_ipv4())?;
        (gateway.prefix() != prefix).then_some(StaticRoute {
            prefix,
            next_hop: gateway.addr(),
        })
    };
    prefixes.into_iter().filter_map(by_gateway).collect()
}

/// The segment: in the one VRF that it reaches, or, where it reaches several, in the cluster VRF, from which it is leaked to each.
/// Where it reaches none it is in none.
fn layer2(
    settings: &SettingsSpec,
    spec: &Layer2AttachmentSpec,
    segment: &Segment,
    reach: &reach::Reach,
    node_ips: Option<NodeIps>,
) -> Layer2NetworkConfigurationSpec {
    let mut vrfs = reach.vrfs.keys();
    let home = match (vrfs.next(), vrfs.next()) {
        (None, _) => None,
        (Some(only), None) => Some(only.clone()),
        (Some(_), Some(_)) => Some(settings.cluster_vrf.name.clone()),
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
        vrf: home,
        node_selector: spec.node_selector.clone(),
        interface_ref: None,
        interface_name: spec.interface_name.clone(),
        static_routes: match node_ips {
            Some(_) => host_routes(segment, reach),
            None => Vec::new(),
        },
        node_ips,
    }
}

fn attachment(
    settings: &SettingsSpec,
    spec: &Layer2AttachmentSpec,
    segment: &Segment,
    matched: Arc<Vec<MatchedDestination>>,
) -> Attachment {
    let suffix = spec.interface_name.as_ref();
    let gateway = |ipv4: bool| {
        let mut gateways = segment.gateways.iter().copied();
        gateways.find(|gateway| gateway.is_ipv4() == ipv4)
    };
    Attachment {
        interface: suffix.and_then(|suffix| names::host_interface(suffix.as_str())),
        sriov: None,
        anycast: segment.mac(settings).map(|mac| Anycast {
            mac: Some(mac),
            gateway: gateway(false),
            gatewayv4: gateway(true),
        }),
        matched,
    }
}

pub(super) fn default_mtu() -> Mtu {
    Mtu::try_from(DEFAULT_MTU).unwrap_or_else(|_| unreachable!("a constant in range"))
}

fn network(
    view: &View<'_>,
    author: &Author<'_>,
    spec: &Layer2AttachmentSpec,
    problems: &mut Vec<Problem>,
) -> Option<Arc<NetworkSpec>> {
    let found = view.network(&spec.network_ref);
    if found.is_none() {
        let kind = view.missing(ObjectRef::named(Kind::Network, &spec.network_ref));
        problems.push(author.problem("spec.networkRef", kind));
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
    view: &View<'_>,
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
    let Some(vni) = view.network_vni(&spec.network_ref) else {
        // Why it got no VNI stands on the Network.
        let target = ObjectRef::named(Kind::Network, &spec.network_ref);
        let kind = problem::Kind::ReferenceNotInEffect { target };
        report("spec.networkRef", kind);
        return None;
    };
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
    let mut items = permit(&export);
    if has_bgp(spec) {
        let bgp = spec.bgp.as_ref();
        let transfer = bgp.is_some_and(|bgp| bgp.advertise_transfer_network);
        let own = items.iter_mut().filter(|item| subnets.contains(&item.cidr));
        for item in own {
            announced(item, transfer);
        }
    }
    let exports = routing::Exports {
        items,
        aggregate: Vec::new(),
        communities: &spec.communities,
        node_selector: spec.node_selector.as_ref(),
    };
    routing::routing(vrf, reached, &extra, exports)
}

/// Networks of an attachment that no node announces, each with the field that asks for it.
fn never_announced(
    settings: &SettingsSpec,
    spec: &Layer2AttachmentSpec,
    subnets: &[Prefix],
) -> Vec<(String, problem::Kind)> {
    let own = subnets
        .iter()
        .map(|subnet| ("spec.networkRef".to_owned(), *subnet));
    let routes = spec.routes.iter().enumerate();
    let routes = routes.flat_map(|(place, route)| {
        let prefixes = route.prefixes.iter().enumerate();
        prefixes.map(move |(prefix, network)| {
            (format!("spec.routes[{place}].prefixes[{prefix}]"), *network)
        })
    });
    let never = own.chain(routes).filter_map(|(field, network)| {
        let kind = values::never_announced(settings, network)?;
        Some((field, kind))
    });
    never.collect()
}

/// What workloads announce of a network goes out, and the network itself where its author wants it.
fn announced(item: &mut PrefixItem, transfer: bool) {
    let net = item.cidr.net();
    if net.prefix_len() == net.max_prefix_len() {
        return;
    }
    item.le = Some(net.max_prefix_len());
    item.ge = (!transfer).then(|| net.prefix_len() + 1);
}

fn permit_one(cidr: Prefix) -> PrefixItem {
    PrefixItem {
        cidr,
        seq: None,
        ge: None,
        le: None,
        action: PrefixAction::Permit,
    }
}
