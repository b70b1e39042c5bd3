//! From low-level objects to the config of each node: complete, with no choice left to the node.

mod addresses;
mod checks;
mod claims;
mod cluster;
mod group;
mod layer2;
mod mtu;
mod overlay;
mod peers;
mod selection;
mod steering;
mod stored;
mod underlay;
mod vrf_lines;
mod vrfs;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    meta::SecretReference,
    selvedge::Health,
    tcaas::{
        NodeNetworkConfigSpec,
        node_network_config::{
            BgpPeer, CONTRACT_VERSION, HostInterface, HostLoopback, HostSession, HostVlan, Layer2,
            StaticRoute, Vrf,
        },
    },
    value::{HostCidr, IfName, Mtu},
};

use self::group::{Group, Named};
pub(crate) use self::{
    checks::{
        AllLacking, Carriers, FoundOnNodes, InterfaceFault, InterfaceFaults, NotesNodesOutside,
        PeeringsInEffect, ProblemsOfGroup, interface_problem, is_idle, no_canary, selects_no_node,
    },
    claims::ClaimsFor,
    cluster::problems as problems_of_cluster,
    group::{
        BuiltFor, FirstNode, HasOverlay, MembersOf, NamesOfTables, NumbersFor, SteeringFor, Tables,
        TablesFor, TablesInUse, problems_without_nodes, too_few_tables, unreached,
    },
    mtu::{UplinkMtuOf, VrfMtuOf},
    overlay::{
        AddressesOfSession, MeaningsByVni, NetworksOfSession, OverlayOf, RanksOf, SegmentsByVni,
        SessionAddressesFor, SessionMembers, SessionNetworks, SessionsInUse, all as all_overlays,
        is_overlay, means_two,
    },
    peers::{WrongWithPeering, ends_of_trunk, maximum_prefixes},
    selection::{
        AskedKeys, Facet, Facets, NodesBySignature, Requirements, SelectsNoNode, Signature,
        SignatureOf, SignaturesByLabel, signature,
    },
    stored::{ProgressOf, PublishedOf, TakenBack, told_progress},
    underlay::{
        AddressesOfPool, Contradictions, FrrOf, HasBothFamilies, HoldersByAddress, NodesByUnderlay,
        PlanOf, PlansFor, Refused, SelectedPlans, UnderlaysByVni, is_older_frr, mixed_families,
        place, plans_of_nodes, router_addresses, trunk_faults, underlays_that_may_meet,
    },
    vrfs::{NumbersOfAll, SaidOf, StoredByVni},
};
pub use self::{
    steering::{Consumer, Reason, consumers},
    stored::forwards_the_same,
    underlay::{Fabric, InClearText, MovedPassword, NodeUnderlay, underlay_for},
};
use crate::{
    fingerprint::{self, Deferred, Digest},
    host_router::{self, AnyConfigurations, NodeHostRouter},
    memo::Query,
    mirror::{self, HasMirrors, NodeMirrors},
    snapshot::{Key, ObjectRef, Snapshot},
    view::View,
};

/// The config of one node. What it shares with its like is one value in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// How the node is connected to the fabric.
    pub underlay: Option<NodeUnderlay>,
    /// Its addresses on segments, by the name of the segment's object.
    pub addresses: BTreeMap<String, Vec<HostCidr>>,
    /// What is mirrored on it.
    pub mirrors: NodeMirrors,
    /// The router of the host, where an `FRRConfiguration` selects the node.
    pub host_router: Option<NodeHostRouter>,
    /// MTU of its VRFs, where its uplinks carry less than the largest.
    pub vrf_mtu: Option<Mtu>,
    /// What its uplinks carry, where that is known.
    pub uplink_mtu: Option<mtu::UplinkMtu>,
    /// Its addresses on the host sessions of its group, in their order; none where a session has no address left.
    pub sessions: Vec<Vec<HostCidr>>,
    /// What all nodes of its group have.
    pub shared: Arc<Shared>,
    /// The revision in which the node's content last changed, where that is not the newest: its stored config has the same content.
    pub revision: Option<Arc<str>>,
}

/// What all nodes of a group have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Segments, by VLAN.
    pub layer2s: BTreeMap<String, Layer2>,
    /// The cluster's VRF.
    pub cluster_vrf: Option<Arc<Vrf>>,
    /// VRFs of the fabric, by name.
    pub fabric_vrfs: BTreeMap<String, Arc<Vrf>>,
    /// VRFs of the nodes alone, by name.
    pub local_vrfs: BTreeMap<String, Arc<Vrf>>,
    /// VLANs on devices of the host's own, by device.
    pub host_vlans: BTreeMap<String, HostVlan>,
    /// Loopbacks of the host, by device.
    pub host_loopbacks: BTreeMap<String, HostLoopback>,
    /// What nodes check before they keep a config.
    pub health: Health,
    /// The peerings that are in effect here, by name.
    pub peerings: BTreeSet<String>,
    /// Sessions of the host in the fabric's own table, by their object.
    pub passthroughs: BTreeMap<String, HostSession>,
    /// The host sessions, of which each node has addresses of its own.
    pub(crate) sessions: Vec<overlay::Slot>,
    /// The overlay objects that are in effect here.
    pub overlays: BTreeSet<ObjectRef>,
    /// The objects that interfaces in the host's namespace come from, by device.
    pub host_devices: BTreeMap<String, String>,
    /// Objects whose traffic is routed by its source here, and why.
    pub steering: BTreeMap<ObjectRef, Reason>,
    /// The segments that are in effect here, by the name of their object: what the node must have before they count as applied.
    pub segments: BTreeSet<String>,
    /// The routing that is for these nodes, by the name of its object.
    pub routing: BTreeSet<String>,
    /// The segments on which nodes have addresses, by the name of their object.
    pub addressed: BTreeSet<String>,
    /// What [`Self::digest`] has made.
    pub(crate) digest: Deferred,
}

impl Shared {
    /// Fingerprint of what nodes get of this.
    fn digest(&self) -> Digest {
        self.digest.get(|| {
            fingerprint::of(&(
                &self.layer2s,
                &self.cluster_vrf,
                &self.fabric_vrfs,
                &self.local_vrfs,
                &self.host_vlans,
                &self.host_loopbacks,
                &self.passthroughs,
                &self.health,
            ))
        })
    }
}

impl NodeConfig {
    /// The Secrets that it refers to.
    pub fn password_secrets(&self) -> impl Iterator<Item = SecretReference> + '_ {
        let fabric = self.underlay.iter();
        let fabric = fabric.flat_map(NodeUnderlay::password_secrets);
        let Shared {
            cluster_vrf,
            fabric_vrfs,
            local_vrfs,
            ..
        } = &*self.shared;
        let vrfs = fabric_vrfs.values().chain(local_vrfs.values());
        let peers = vrfs.chain(cluster_vrf).flat_map(|vrf| &vrf.bgp_peers);
        let host = self.host_router.iter();
        let host = host.flat_map(NodeHostRouter::password_secrets);
        let peers = peers.filter_map(|peer| peer.password_secret.clone());
        fabric.chain(peers).chain(host)
    }

    /// The passwords that stand in clear text in objects, each with the Secret of this node that it goes into.
    pub fn moved_passwords(&self, snapshot: &Snapshot) -> Vec<MovedPassword> {
        let underlay = self.underlay.as_ref();
        let mut moved = underlay.map_or_else(Vec::new, |one| one.moved_passwords(snapshot));
        let host = self.host_router.iter();
        moved.extend(host.flat_map(NodeHostRouter::moved_passwords));
        moved
    }

    /// The config as it is published, where the newest revision is this one.
    pub fn spec(&self, newest: &str) -> NodeNetworkConfigSpec {
        let Shared {
            layer2s,
            cluster_vrf,
            fabric_vrfs,
            local_vrfs,
            host_vlans,
            host_loopbacks,
            passthroughs,
            health,
            sessions,
            overlays: _,
            peerings: _,
            host_devices: _,
            steering: _,
            segments: _,
            routing: _,
            addressed: _,
            digest: _,
        } = &*self.shared;
        let mut layer2s = layer2s.clone();
        for interface in layer2s
            .values_mut()
            .filter_map(|segment| segment.host_interface.as_mut())
        {
            let HostInterface {
                name,
                addresses,
                routes,
            } = interface;
            self.own(name.as_str(), addresses, routes);
        }
        let mut host_vlans = host_vlans.clone();
        host_vlans.retain(|_, vlan| !self.is_uplink(&vlan.parent));
        for (device, vlan) in &mut host_vlans {
            self.own(device, &mut vlan.addresses, &mut vlan.routes);
        }
        let mut spec = NodeNetworkConfigSpec {
            contract_version: CONTRACT_VERSION,
            revision: self.revision.as_deref().unwrap_or(newest).to_owned(),
            underlay: self.underlay.as_ref().map(NodeUnderlay::spec),
            layer2s,
            cluster_vrf: cluster_vrf.clone(),
            fabric_vrfs: fabric_vrfs.clone(),
            local_vrfs: local_vrfs.clone(),
            host_vlans,
            host_loopbacks: host_loopbacks.clone(),
            passthroughs: match &self.underlay {
                Some(_) => passthroughs.clone(),
                None => BTreeMap::new(),
            },
            host_router: self.host_router.as_ref().map(|one| Arc::clone(&one.router)),
            health: health.clone(),
        };
        if let (Some(cluster), Some(underlay)) = (&mut spec.cluster_vrf, &self.underlay) {
            let is_own = |peer: &BgpPeer| peer.local_as == Some(underlay.fabric.asn);
            if cluster.bgp_peers.iter().any(is_own) {
                let peers = Arc::make_mut(cluster).bgp_peers.iter_mut();
                peers
                    .filter(|peer| is_own(peer))
                    .for_each(|peer| peer.local_as = None);
            }
        }
        for (slot, hosts) in sessions.iter().zip(&self.sessions) {
            self.session(&mut spec, slot, hosts);
        }
        if let Some(uplink) = self.uplink_mtu {
            let segments = spec.layer2s.values_mut();
            for segment in segments.filter(|segment| segment.host_port.is_some()) {
                segment.mtu = uplink.overlay;
            }
        }
        if let Some(mtu) = self.vrf_mtu {
            for vrf in spec.vrfs_mut().filter(|vrf| vrf.devices.vxlan.is_some()) {
                Arc::make_mut(vrf).mtu = mtu;
            }
        }
        self.mirrors.insert_into(&mut spec);
        spec
    }

    /// Whether an overlay object is in effect on the node.
    pub(crate) fn has_overlay(&self, subject: &ObjectRef) -> bool {
        let mut sessions = self.shared.sessions.iter().zip(&self.sessions);
        let lacks = |(slot, hosts): (&overlay::Slot, &Vec<HostCidr>)| {
            slot.subject == *subject && hosts.is_empty()
        };
        self.shared.overlays.contains(subject) && !sessions.any(lacks)
    }

    /// Puts the node's own addresses into a host session; a node that has none has no session.
    fn session(&self, spec: &mut NodeNetworkConfigSpec, slot: &overlay::Slot, hosts: &[HostCidr]) {
        let asn = self.underlay.as_ref().map(|underlay| underlay.fabric.asn);
        let complete = |session: &mut HostSession, mtu: Option<Mtu>| {
            session.host_addresses = hosts.to_vec();
            let routers = hosts.iter().copied().filter_map(overlay::router_address);
            session.router_addresses = routers.collect();
            session.mtu = mtu.unwrap_or(session.mtu);
            session.local_as = session.local_as.filter(|local| Some(*local) != asn);
        };
        let uplink = self.uplink_mtu;
        match &slot.place {
            overlay::Place::Vrf(name) => {
                let Some(vrf) = spec.fabric_vrfs.get_mut(name) else {
                    return;
                };
                let vrf = Arc::make_mut(vrf);
                match &mut vrf.host_session {
                    Some(session) if !hosts.is_empty() => {
                        complete(session, uplink.map(|uplink| uplink.overlay));
                    }
                    _ => vrf.host_session = None,
                }
            }
            overlay::Place::Passthrough(key) => match spec.passthroughs.get_mut(key) {
                Some(session) if !hosts.is_empty() => {
                    complete(session, uplink.map(|uplink| uplink.plain));
                }
                _ => drop(spec.passthroughs.remove(key)),
            },
        }
    }

    /// The content of the config: all of it but the revision that it names.
    pub fn content(&self) -> NodeNetworkConfigSpec {
        NodeNetworkConfigSpec {
            revision: String::new(),
            ..self.spec("")
        }
    }

    /// Puts in the node's own addresses; routes whose next hop they do not reach are left out.
    fn own(&self, device: &str, addresses: &mut Vec<HostCidr>, routes: &mut Vec<StaticRoute>) {
        let object = self.shared.host_devices.get(device);
        let own = object.and_then(|object| self.addresses.get(object));
        *addresses = own.cloned().unwrap_or_default();
        routes.retain(|route| {
            let next_hop = route.next_hop.as_ref().and_then(|hop| hop.address);
            let reaches = |next_hop| addresses.iter().any(|own| own.net().contains(&next_hop));
            next_hop.is_some_and(reaches)
        });
    }

    /// Whether the router has this device.
    fn is_uplink(&self, device: &IfName) -> bool {
        let underlay = self.underlay.as_ref();
        underlay.is_some_and(|underlay| underlay.fabric.nics.contains(device))
    }
}

/// The config of a node that is there.
pub(crate) fn config(view: &View<'_>, node: &Key) -> Option<Arc<NodeConfig>> {
    // Where nothing is mirrored, and no host has a router, there is nothing to add.
    if view.get::<HasExtras>(&()) {
        view.get::<ConfigOf>(node)
    } else {
        view.get::<ForwardingOf>(node)
    }
}

/// Whether nodes have something that changes no forwarding in the fabric.
pub(crate) struct HasExtras;
impl Query for HasExtras {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        view.get::<HasMirrors>(&()) || view.get::<AnyConfigurations>(&())
    }
}

/// The config of each node that is there, with its mirrors and the router of its host.
pub(crate) struct ConfigOf;
impl Query for ConfigOf {
    type Key = Key;
    type Value = Option<Arc<NodeConfig>>;
    fn compute(view: &View<'_>, node: &Key) -> Option<Arc<NodeConfig>> {
        let forwarding = view.get::<ForwardingOf>(node)?;
        let mirrors = if view.get::<HasMirrors>(&()) {
            mirror::of_node(view, node)
        } else {
            NodeMirrors::default()
        };
        Some(Arc::new(NodeConfig {
            mirrors,
            host_router: host_router::of_node(view, node),
            ..NodeConfig::clone(&forwarding)
        }))
    }
}

/// The config of each node that is there, without mirrors and without the router of its host: what changes forwarding.
pub(crate) struct ForwardingOf;
impl Query for ForwardingOf {
    type Key = Key;
    type Value = Option<Arc<NodeConfig>>;
    fn compute(view: &View<'_>, node: &Key) -> Option<Arc<NodeConfig>> {
        let signature = signature(view, node)?;
        let built = view.get::<BuiltFor>(&signature);
        let place = place(view, &signature, &node.name);
        // A node that got no address, because a pool is used up, can have no overlay.
        let shared = built.shared(place.has_vtep());
        let sessions = if shared.sessions.is_empty() {
            Vec::new()
        } else {
            let hosts = view.get::<SessionAddressesFor>(&(signature.clone(), place.has_vtep()));
            overlay::hosts_of_node(&hosts, &node.name)
        };
        let is_carried = !shared.overlays.is_empty();
        Some(Arc::new(NodeConfig {
            addresses: addresses::of_node(view, &node.name, shared),
            sessions,
            uplink_mtu: is_carried.then(|| view.get::<UplinkMtuOf>(node)).flatten(),
            underlay: place.underlay,
            mirrors: NodeMirrors::default(),
            host_router: None,
            vrf_mtu: view.get::<VrfMtuOf>(node),
            shared: Arc::clone(shared),
            revision: None,
        }))
    }
}

impl NodeConfig {
    /// What tells the content of this config from every other. It is made of the fingerprints of what nodes share.
    pub fn fingerprint(&self) -> String {
        let Self {
            underlay,
            addresses,
            mirrors,
            vrf_mtu,
            uplink_mtu,
            sessions,
            shared,
            // It is published at once and by itself.
            host_router: _,
            revision: _,
        } = self;
        let place = underlay
            .as_ref()
            .map(|one| (one.router_id, one.vtep, &one.vtep_interface, one.other_vtep));
        let own = fingerprint::of(&(place, addresses, mirrors.content()));
        let fabric = underlay.as_ref().map(|one| ("fabric", one.fabric.digest));
        let mtu = vrf_mtu.map(|mtu| ("vrfMtu", fingerprint::of(&mtu)));
        let uplink =
            uplink_mtu.map(|mtu| ("uplinkMtu", fingerprint::of(&(mtu.overlay, mtu.plain))));
        let hosts = (!sessions.is_empty()).then(|| ("sessions", fingerprint::of(sessions)));
        let parts = [("shared", shared.digest()), ("own", own)].into_iter();
        let parts = parts.chain(fabric).chain(mtu).chain(uplink).chain(hosts);
        crate::names::hex(&fingerprint::of_parts(parts))
    }
}
