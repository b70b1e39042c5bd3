//! What the nodes of a group get of the objects that are for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    tcaas::node_network_config::{
        Action, ActionType, Filter, FilterItem, HostDevices, HostPort, HostSession, Irb, Layer2,
        Layer2Devices, Matcher, PrefixMatcher, Redistribute, Vrf,
    },
    value::{HostCidr, MacAddress, Mtu, Prefix, Vni},
};

use super::{L2, L3, Overlay, Session, Wants, sessions::Networks};
use crate::{
    names,
    node::{
        claims::{Claims, Held},
        vrfs,
    },
    snapshot::ObjectRef,
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
    overlays: &'a [&'a Arc<Overlay>],
    tables: &'a BTreeMap<String, u32>,
    claims: &'a Claims,
    /// The objects in effect.
    pub(in crate::node) in_effect: BTreeSet<ObjectRef>,
    /// The sessions in effect.
    pub(in crate::node) sessions: Vec<Slot>,
}

impl<'a> Builder<'a> {
    pub(in crate::node) fn new(
        overlays: &'a [&'a Arc<Overlay>],
        tables: &'a BTreeMap<String, u32>,
        claims: &'a Claims,
    ) -> Self {
        Self {
            overlays,
            tables,
            claims,
            in_effect: BTreeSet::new(),
            sessions: Vec::new(),
        }
    }

    /// The objects that get what they want.
    fn objects(&self) -> impl Iterator<Item = (&'a Overlay, &'a Held)> + use<'a> {
        let claims = self.claims;
        let objects = self.overlays.iter();
        objects.filter_map(|overlay| {
            let held = claims.overlays.get(&overlay.subject)?;
            Some((&***overlay, held))
        })
    }

    /// Adds the VRFs of `L3VNI`s.
    pub(in crate::node) fn vrfs(&mut self, fabric: &mut BTreeMap<String, Vrf>) {
        for (overlay, held) in self.objects() {
            if let Wants::L3(l3) = &overlay.wants {
                self.l3(overlay, l3, held, fabric);
            }
        }
    }

    fn l3(&mut self, overlay: &Overlay, l3: &L3, held: &Held, fabric: &mut BTreeMap<String, Vrf>) {
        // The settings say that there are too few tables.
        let Some(table) = self.tables.get(&l3.vrf) else {
            return;
        };
        let session = l3.session.as_ref().map(|session| {
            let devices = HostDevices {
                host: names::host_port(l3.vni),
                router: names::router_port(l3.vni),
            };
            let place = Place::Vrf(l3.vrf.clone());
            self.session(overlay, session, held, place, devices, OVERLAY_MTU)
        });
        let vrf = fabric.entry(l3.vrf.clone()).or_insert_with(|| Vrf {
            evpn_export_filter: None,
            redistribute: Some(Redistribute {
                connected: Some(Filter::default_to(ActionType::Reject)),
                statics: None,
            }),
            ..vrfs::plain_vrf(&l3.vrf, *table, true)
        });
        vrf.source = Some(overlay.subject.key.to_string());
        vrf.vni = Some(l3.vni);
        vrf.vxlan_port = l3.port;
        vrf.from_other_vtep = held.from_other_vtep;
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
        self.in_effect.insert(overlay.subject.clone());
    }

    /// Adds the segments of `L2VNI`s, and the VRFs of their gateways that no other object configures.
    pub(in crate::node) fn segments(
        &mut self,
        fabric: &mut BTreeMap<String, Vrf>,
        layer2s: &mut BTreeMap<String, Layer2>,
    ) {
        for (overlay, held) in self.objects() {
            if let Wants::L2(l2) = &overlay.wants
                && let Some(segment) = self.l2(overlay, l2, held, fabric)
            {
                layer2s.insert(segment_key(l2.vni), segment);
                self.in_effect.insert(overlay.subject.clone());
            }
        }
    }

    fn l2(
        &self,
        overlay: &Overlay,
        l2: &L2,
        held: &Held,
        fabric: &mut BTreeMap<String, Vrf>,
    ) -> Option<Layer2> {
        if let Some(vrf) = &l2.vrf {
            self.gateways(l2, vrf, fabric)?;
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
            from_other_vtep: held.from_other_vtep,
            host_port: Some(HostPort {
                device: names::host_port(l2.vni),
                master: l2.master.clone(),
            }),
            host_interface: None,
        })
    }

    /// Announces the networks of a segment's gateways in its VRF, which is created where no other object configures it.
    fn gateways(&self, l2: &L2, vrf: &str, fabric: &mut BTreeMap<String, Vrf>) -> Option<()> {
        let table = *self.tables.get(vrf)?;
        let made = fabric.entry(vrf.to_owned()).or_insert_with(|| Vrf {
            redistribute: None,
            ..vrfs::plain_vrf(vrf, table, false)
        });
        for gateway in &l2.gateways {
            announce(made, gateway.prefix());
        }
        Some(())
    }

    /// The passthroughs.
    pub(in crate::node) fn passthroughs(&mut self) -> BTreeMap<String, HostSession> {
        let mut passthroughs = BTreeMap::new();
        for (overlay, held) in self.objects() {
            let Wants::Passthrough(session) = &overlay.wants else {
                continue;
            };
            let key = overlay.subject.key.to_string();
            let (host, router) = names::passthrough_devices(&key);
            let devices = HostDevices { host, router };
            let place = Place::Passthrough(key.clone());
            let made = self.session(overlay, session, held, place, devices, PLAIN_MTU);
            let made = HostSession {
                local_as: Some(session.asn),
                ..made
            };
            passthroughs.insert(key, made);
            self.in_effect.insert(overlay.subject.clone());
        }
        passthroughs
    }

    /// A session without its addresses, which are each node's own.
    fn session(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        held: &Held,
        place: Place,
        devices: HostDevices,
        bytes: i64,
    ) -> HostSession {
        self.sessions.push(Slot {
            subject: overlay.subject.clone(),
            place,
            networks: held.networks.clone(),
        });
        HostSession {
            source: overlay.subject.to_string(),
            devices,
            mtu: mtu(bytes),
            host_addresses: Vec::new(),
            router_addresses: Vec::new(),
            remote_as: session.remote_as,
            local_as: None,
        }
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
