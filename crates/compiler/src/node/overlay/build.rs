//! What the nodes of a group get of the objects that are for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    openperouter::UnderlayAddressFamily,
    selvedge::SettingsSpec,
    tcaas::node_network_config::{
        Action, ActionType, AddressFamilyName, Filter, FilterItem, HostDevices, HostPort,
        HostSession, Irb, Layer2, Layer2Devices, Matcher, PrefixMatcher, Redistribute, Vrf,
    },
    value::{HostCidr, IfName, MacAddress, Mtu, Prefix, Vni},
};

use super::{Contest, L2, L3, Overlay, Session, Wants, sessions::Networks};
use crate::{
    names,
    node::{group::Group, underlay::Plan, vrfs},
    prefixes::PrefixMap,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
};

/// Key of a segment of an `L2VNI` in the config of a node.
pub(super) fn segment_key(vni: Vni) -> String {
    format!("vni-{vni}")
}

/// MTU of what is carried by a VXLAN over IPv4 where nothing is known of the uplinks, which then have the 1,500 bytes of Ethernet.
const OVERLAY_MTU: i64 = 1450;
/// MTU of what is not encapsulated, in the same case.
const PLAIN_MTU: i64 = 1500;

fn mtu(bytes: i64) -> Mtu {
    Mtu::try_from(bytes).unwrap_or(Mtu::MAX)
}

/// A host session of a group, whose addresses each node has its own of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The object of the session.
    pub(in crate::node) subject: ObjectRef,
    /// Where it is in the config of a node.
    pub(in crate::node) place: Place,
    /// Its networks of each family.
    pub(in crate::node) networks: Networks,
}

/// Where a host session is in the config of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a VRF of the fabric, by its name.
    Vrf(String),
    /// Among the passthroughs, by its key.
    Passthrough(String),
}

/// Adds what overlay objects make to what the nodes of a group have.
pub(in crate::node) struct Builder<'a> {
    pub(in crate::node) group: &'a Group<'a>,
    pub(in crate::node) tables: &'a BTreeMap<String, u32>,
    pub(in crate::node) plans: &'a [Arc<Plan>],
    pub(in crate::node) networks: &'a dyn Fn(&ObjectRef) -> Option<Arc<Networks>>,
    pub(in crate::node) contest: &'a Contest,
    pub(in crate::node) problems: &'a mut Vec<Problem>,
    /// The objects in effect.
    pub(in crate::node) in_effect: BTreeSet<ObjectRef>,
    /// The sessions in effect.
    pub(in crate::node) sessions: Vec<Slot>,
    vnis: BTreeMap<Vni, ObjectRef>,
    vrfs: BTreeMap<String, ObjectRef>,
    /// The networks in which the host has addresses.
    host: PrefixMap<ObjectRef>,
    /// The networks in which the router has addresses in a VRF, by the VRF.
    routed: BTreeMap<String, PrefixMap<ObjectRef>>,
}

impl<'a> Builder<'a> {
    pub(in crate::node) fn new(
        settings: &'a SettingsSpec,
        group: &'a Group<'a>,
        tables: &'a BTreeMap<String, u32>,
        plans: &'a [Arc<Plan>],
        networks: &'a dyn Fn(&ObjectRef) -> Option<Arc<Networks>>,
        contest: &'a Contest,
        problems: &'a mut Vec<Problem>,
    ) -> Self {
        let mut host = PrefixMap::default();
        let settings_ref = ObjectRef::named(Kind::Settings, "default");
        for end in &settings.trunk.addresses {
            host.insert(end.prefix(), settings_ref.clone());
        }
        for plan in plans {
            let pools = plan.vtep_pools();
            pools.for_each(|pool| host.insert(pool, plan.subject.clone()));
        }
        let mut routed: BTreeMap<String, PrefixMap<ObjectRef>> = BTreeMap::new();
        for (_, object) in &group.layer2 {
            for network in crate::lower::networks(&object.spec) {
                host.insert(network, object.source.clone());
            }
            let vrf = object.spec.vrf.as_ref().map(ToString::to_string);
            let of_vrf = routed.entry(vrf.unwrap_or_default()).or_default();
            for gateway in &object.spec.anycast_gateways {
                of_vrf.insert(gateway.prefix(), object.source.clone());
            }
        }
        Self {
            group,
            tables,
            plans,
            networks,
            contest,
            problems,
            in_effect: BTreeSet::new(),
            sessions: Vec::new(),
            vnis: names::settings_vnis(settings)
                .map(|vni| (vni, settings_ref.clone()))
                .collect(),
            vrfs: BTreeMap::new(),
            host,
            routed,
        }
    }

    fn report(&mut self, overlay: &Overlay, field: &str, kind: problem::Kind) {
        let problem = Problem::new(overlay.subject.clone(), field, kind);
        self.problems.push(problem);
    }

    fn node(&self) -> Option<String> {
        self.group.node.map(str::to_owned)
    }

    fn objects(&self) -> impl Iterator<Item = &'a Arc<Overlay>> + use<'a> {
        let contest = self.contest;
        let objects = self.group.overlays.iter();
        objects.filter(move |overlay| !contest.is_lost(overlay))
    }

    /// Adds the VRFs of `L3VNI`s.
    pub(in crate::node) fn vrfs(&mut self, fabric: &mut BTreeMap<String, Vrf>) {
        for overlay in self.objects() {
            if let Wants::L3(l3) = &overlay.wants
                && self.l3(overlay, l3, fabric).is_some()
            {
                self.vnis.insert(l3.vni, overlay.subject.clone());
                self.vrfs.insert(l3.vrf.clone(), overlay.subject.clone());
                self.in_effect.insert(overlay.subject.clone());
            }
        }
    }

    fn l3(&mut self, overlay: &Overlay, l3: &L3, fabric: &mut BTreeMap<String, Vrf>) -> Option<()> {
        let from_other_vtep = self.family(overlay, l3.family)?;
        self.vni(overlay, l3.vni)?;
        if let Some(by) = self.vrfs.get(&l3.vrf) {
            let kind = problem::Kind::VrfTaken {
                vrf: l3.vrf.clone(),
                by: Box::new(by.clone()),
                node: self.node(),
            };
            self.report(overlay, "spec.vrf", kind);
            return None;
        }
        self.device(overlay, &l3.vrf, "spec.vrf")?;
        let table = *self.tables.get(&l3.vrf)?;
        let session = match &l3.session {
            Some(session) => {
                let devices = HostDevices {
                    host: names::host_port(l3.vni),
                    router: names::router_port(l3.vni),
                };
                let place = Place::Vrf(l3.vrf.clone());
                Some(self.session(overlay, session, place, devices, OVERLAY_MTU)?)
            }
            None => None,
        };
        let vrf = fabric.entry(l3.vrf.clone()).or_insert_with(|| Vrf {
            evpn_export_filter: None,
            redistribute: Some(Redistribute {
                connected: Some(Filter::default_to(ActionType::Reject)),
                statics: None,
            }),
            ..vrfs::plain_vrf(&l3.vrf, table, true)
        });
        vrf.source = Some(overlay.subject.key.to_string());
        vrf.vni = Some(l3.vni);
        vrf.vxlan_port = l3.port;
        vrf.from_other_vtep = from_other_vtep;
        vrf.asn = l3.session.as_ref().map(|session| session.asn);
        vrf.host_session = session;
        for target in &l3.imports {
            let target = (*target).into();
            if !vrf.evpn_import_route_targets.contains(&target) {
                vrf.evpn_import_route_targets.push(target);
            }
        }
        for target in &l3.exports {
            if !vrf.evpn_export_route_targets.contains(target) {
                vrf.evpn_export_route_targets.push(*target);
            }
        }
        Some(())
    }

    /// Adds the segments of `L2VNI`s, and the VRFs of their gateways that no other object configures.
    pub(in crate::node) fn segments(
        &mut self,
        fabric: &mut BTreeMap<String, Vrf>,
        layer2s: &mut BTreeMap<String, Layer2>,
    ) {
        for overlay in self.objects() {
            let Wants::L2(l2) = &overlay.wants else {
                continue;
            };
            let Some(segment) = self.l2(overlay, l2, fabric) else {
                continue;
            };
            layer2s.insert(segment_key(l2.vni), segment);
            self.vnis.insert(l2.vni, overlay.subject.clone());
            self.in_effect.insert(overlay.subject.clone());
        }
    }

    fn l2(
        &mut self,
        overlay: &Overlay,
        l2: &L2,
        fabric: &mut BTreeMap<String, Vrf>,
    ) -> Option<Layer2> {
        let from_other_vtep = self.family(overlay, l2.family)?;
        self.vni(overlay, l2.vni)?;
        if let Some(vrf) = &l2.vrf {
            self.gateways(overlay, l2, vrf, fabric)?;
        }
        let irb = l2.vrf.as_ref().map(|vrf| Irb {
            vrf: vrf.clone(),
            mac_address: gateway_mac(l2.vni),
            ip_addresses: l2.gateways.clone(),
        });
        Some(Layer2 {
            source: Some(overlay.subject.key.to_string()),
            vni: l2.vni,
            vlan: None,
            route_target: None,
            mtu: mtu(OVERLAY_MTU),
            neigh_suppression: true,
            irb,
            mirror_acls: Vec::new(),
            disable_segmentation: false,
            devices: Layer2Devices {
                bridge: names::vni_bridge(l2.vni),
                vxlan: names::l2_vxlan(l2.vni),
                access_port: names::router_port(l2.vni),
            },
            vxlan_port: l2.port,
            from_other_vtep,
            host_port: Some(HostPort {
                device: names::host_port(l2.vni),
                master: l2.master.clone(),
            }),
            host_interface: None,
        })
    }

    /// Puts the networks of a segment's gateways into its VRF, which is created where no other object configures it.
    fn gateways(
        &mut self,
        overlay: &Overlay,
        l2: &L2,
        vrf: &str,
        fabric: &mut BTreeMap<String, Vrf>,
    ) -> Option<()> {
        let field = if l2.gateways.len() > 1 {
            "spec.l2gatewayips"
        } else {
            "spec.l2gatewayip"
        };
        let mut routing = self.group.vrf.iter();
        let intent = routing.find(|(_, one)| one.spec.vrf.as_str() == vrf && one.is_of_intent());
        if let Some((_, intent)) = intent {
            let kind = problem::Kind::LowLevelConflict {
                scope: format!("VRF {vrf:?}"),
                by: intent.source.clone(),
            };
            self.report(overlay, l2.vrf_field, kind);
            return None;
        }
        let of_vrf = self.routed.entry(vrf.to_owned()).or_default();
        let taken = l2.gateways.iter().find_map(|gateway| {
            let (other, by) = of_vrf.overlap(gateway.prefix())?;
            Some((gateway.prefix(), other, by.clone()))
        });
        if let Some((network, other, by)) = taken {
            let kind = problem::Kind::NetworksOverlap {
                network,
                other,
                by: Box::new(by),
                vrf: Some(vrf.to_owned()),
                node: self.node(),
            };
            self.report(overlay, field, kind);
            return None;
        }
        if !fabric.contains_key(vrf) {
            self.device(overlay, vrf, l2.vrf_field)?;
            let table = *self.tables.get(vrf)?;
            let made = Vrf {
                redistribute: None,
                ..vrfs::plain_vrf(vrf, table, false)
            };
            fabric.insert(vrf.to_owned(), made);
        }
        let made = fabric.get_mut(vrf)?;
        let of_vrf = self.routed.entry(vrf.to_owned()).or_default();
        for gateway in &l2.gateways {
            of_vrf.insert(gateway.prefix(), overlay.subject.clone());
            announce(made, gateway.prefix());
        }
        Some(())
    }

    /// The passthroughs.
    pub(in crate::node) fn passthroughs(&mut self) -> BTreeMap<String, HostSession> {
        let mut passthroughs = BTreeMap::new();
        for overlay in self.objects() {
            let Wants::Passthrough(session) = &overlay.wants else {
                continue;
            };
            if let Some(made) = self.passthrough(overlay, session) {
                passthroughs.insert(overlay.subject.key.to_string(), made);
                self.in_effect.insert(overlay.subject.clone());
            }
        }
        passthroughs
    }

    fn passthrough(&mut self, overlay: &Overlay, session: &Session) -> Option<HostSession> {
        let plan = self.plans.first()?;
        if session.asn != plan.fabric.asn {
            let is_internal = session.remote_as.internal;
            let is_own = |asn| asn == session.asn || asn == plan.fabric.asn;
            if is_internal || session.remote_as.asn.is_some_and(is_own) {
                let message = format!(
                    "AS {} differs from AS {} of {}, which FRR allows on external sessions only: use that number, or another hostasn",
                    session.asn, plan.fabric.asn, plan.subject
                );
                let kind = problem::Kind::RuleBroken { message };
                self.report(overlay, "spec.hostsession.asn", kind);
                return None;
            }
        }
        let (host, router) = names::passthrough_devices(&overlay.subject.key.to_string());
        let place = Place::Passthrough(overlay.subject.key.to_string());
        let devices = HostDevices { host, router };
        let made = self.session(overlay, session, place, devices, PLAIN_MTU)?;
        Some(HostSession {
            local_as: Some(session.asn),
            ..made
        })
    }

    /// A session without its addresses, which are each node's own.
    fn session(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        place: Place,
        devices: HostDevices,
        bytes: i64,
    ) -> Option<HostSession> {
        // Why it has none is said elsewhere.
        let networks = (self.networks)(&overlay.subject)?;
        let mut networks = Networks::clone(&networks);
        if matches!(place, Place::Passthrough(_)) {
            self.keep_families(overlay, session, &mut networks)?;
            self.apart_from_neighbors(overlay, session, &networks)?;
        }
        let vrf = match &place {
            Place::Vrf(vrf) => Some(vrf.clone()),
            Place::Passthrough(_) => None,
        };
        let of_vrf = vrf.as_ref().and_then(|vrf| self.routed.get(vrf));
        let taken = networks.iter().flatten().find_map(|network| {
            let on_host = self.host.overlap(*network).map(|found| (found, false));
            let in_vrf = of_vrf.and_then(|of_vrf| of_vrf.overlap(*network));
            let taken = on_host.or_else(|| in_vrf.map(|found| (found, true)));
            let ((other, by), is_in_vrf) = taken?;
            Some((*network, other, by.clone(), is_in_vrf))
        });
        if let Some((network, other, by, is_in_vrf)) = taken {
            let field = if session.networks.is_empty() {
                "spec.hostsession"
            } else {
                "spec.hostsession.localcidr"
            };
            let kind = problem::Kind::NetworksOverlap {
                network,
                other,
                by: Box::new(by),
                vrf: vrf.filter(|_| is_in_vrf),
                node: self.node(),
            };
            self.report(overlay, field, kind);
            return None;
        }
        for network in networks.iter().flatten() {
            self.host.insert(*network, overlay.subject.clone());
            if let Some(vrf) = &vrf {
                let of_vrf = self.routed.entry(vrf.clone()).or_default();
                of_vrf.insert(*network, overlay.subject.clone());
            }
        }
        self.sessions.push(Slot {
            subject: overlay.subject.clone(),
            place,
            networks,
        });
        Some(HostSession {
            source: overlay.subject.to_string(),
            devices,
            mtu: mtu(bytes),
            host_addresses: Vec::new(),
            router_addresses: Vec::new(),
            remote_as: session.remote_as,
            local_as: None,
        })
    }

    /// Whether no network of a passthrough has the address of a neighbor of the fabric: both are in the same table, and the router would look
    /// for the neighbor on the host.
    fn apart_from_neighbors(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        networks: &Networks,
    ) -> Option<()> {
        let plan = self.plans.first()?;
        let neighbors = plan.fabric.neighbors.iter();
        let mut addresses = neighbors.filter_map(|neighbor| neighbor.address);
        let inside = addresses.find_map(|address| {
            let mut networks = networks.iter().flatten();
            let network = networks.find(|network| network.net().contains(&address))?;
            Some((address, *network))
        });
        let Some((address, network)) = inside else {
            return Some(());
        };
        let message = format!(
            "{network} has {address}, a neighbor of {}, which the router would look for on the host: use another network",
            plan.subject
        );
        let field = if session.networks.is_empty() {
            "spec.hostsession"
        } else {
            "spec.hostsession.localcidr"
        };
        self.report(overlay, field, problem::Kind::RuleBroken { message });
        None
    }

    /// Leaves out the families of a passthrough that no session with the fabric carries.
    fn keep_families(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        networks: &mut Networks,
    ) -> Option<()> {
        let carries = |ipv4: bool| {
            let family = if ipv4 {
                AddressFamilyName::Ipv4Unicast
            } else {
                AddressFamilyName::Ipv6Unicast
            };
            let mut neighbors = self.plans.iter().flat_map(|plan| &plan.fabric.neighbors);
            neighbors.any(|neighbor| neighbor.address_families.contains(&family))
        };
        let is_ipv4 = |family: &Vec<Prefix>| family.iter().any(|one| one.is_ipv4());
        let (kept, left): (Networks, Networks) = std::mem::take(networks)
            .into_iter()
            .partition(|family| carries(is_ipv4(family)));
        for family in left.iter().filter(|_| !session.networks.is_empty()) {
            let (field, name) = if is_ipv4(family) {
                ("ipv4", "ipv4unicast")
            } else {
                ("ipv6", "ipv6unicast")
            };
            let what = format!(
                "no neighbor of the Underlay has the address family {name}: add it to spec.neighbors[].addressFamilies of one"
            );
            let field = format!("spec.hostsession.localcidr.{field}");
            self.report(overlay, &field, problem::Kind::NoEffect { what });
        }
        *networks = kept;
        if networks.is_empty() {
            let message = "no session with the fabric carries an address family of this session";
            let message = message.to_owned();
            let kind = problem::Kind::RuleBroken { message };
            self.report(overlay, "spec.hostsession", kind);
            return None;
        }
        Some(())
    }

    /// Whether the VXLAN of an object starts from the node's second tunnel endpoint.
    fn family(&mut self, overlay: &Overlay, family: Option<UnderlayAddressFamily>) -> Option<bool> {
        let Some(family) = family else {
            return Some(false);
        };
        let ipv4 = family == UnderlayAddressFamily::Ipv4;
        let pools = self
            .plans
            .first()
            .into_iter()
            .flat_map(|plan| plan.vtep_pools());
        let place = pools.enumerate().find(|(_, pool)| pool.is_ipv4() == ipv4);
        if let Some((place, _)) = place {
            return Some(place > 0);
        }
        let kind = problem::Kind::VtepFamilyMissing {
            family: if ipv4 { "IPv4" } else { "IPv6" },
            node: self.group.node.unwrap_or_default().to_owned(),
        };
        self.report(overlay, "spec.underlayAddressFamily", kind);
        None
    }

    fn vni(&mut self, overlay: &Overlay, vni: Vni) -> Option<()> {
        let Some(by) = self.vnis.get(&vni) else {
            return Some(());
        };
        let kind = problem::Kind::VniTaken {
            vni,
            by: by.clone(),
            node: self.node(),
        };
        self.report(overlay, "spec.vni", kind);
        None
    }

    /// Whether a VRF can have a device of its name: an uplink has its own in the same namespace.
    fn device(&mut self, overlay: &Overlay, vrf: &str, field: &str) -> Option<()> {
        let mut nics = self.plans.iter().flat_map(|plan| &plan.fabric.nics);
        if !nics.any(|nic: &IfName| nic.as_str() == vrf) {
            return Some(());
        }
        let kind = problem::Kind::DeviceNameReserved {
            name: vrf.to_owned(),
            what: "an uplink of the node".to_owned(),
        };
        self.report(overlay, field, kind);
        None
    }
}

/// Lets the network of a gateway out of its VRF, where the VRF is in the fabric.
fn announce(vrf: &mut Vrf, network: Prefix) {
    let item = FilterItem {
        matcher: Matcher {
            prefix: Some(PrefixMatcher {
                prefix: network,
                ge: None,
                le: None,
            }),
            bgp_community: None,
        },
        action: Action::new(ActionType::Accept),
    };
    let redistributed = vrf.redistribute.as_mut();
    let connected = redistributed.and_then(|one| one.connected.as_mut());
    let exported = vrf.evpn_export_filter.as_mut();
    for filter in connected.into_iter().chain(exported) {
        let is_open = filter.default_action.kind == ActionType::Accept;
        if !is_open && !filter.items.contains(&item) {
            filter.items.push(item.clone());
        }
    }
}

/// The MAC address of a segment's gateway: that of the peer project, so that nodes of both can share a segment.
fn gateway_mac(vni: Vni) -> MacAddress {
    let [a, b, c, d] = (vni.get() + 1).to_be_bytes();
    MacAddress::new([0x00, 0xf3, a, b, c, d])
}

/// The router's address in the network of a host's.
pub(in crate::node) fn router_address(host: HostCidr) -> Option<HostCidr> {
    let router = crate::allocate::gateway(host.prefix())?;
    let is_other = |address: IpAddr| address != host.addr();
    is_other(router.addr()).then_some(router)
}
