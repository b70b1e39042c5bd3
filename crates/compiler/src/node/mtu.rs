//! Whether the packets of segments and VRFs fit the devices that carry them, as far as nodes have reported those.

use std::{collections::BTreeMap, net::IpAddr};

use api::{
    tcaas::{NodeNetworkConfigSpec, NodeNetworkStatusStatus},
    value::{IfName, Mtu},
};

use super::{NodeUnderlay, Shared, group::Members, signature, underlay::place};
use crate::{
    memo::Query,
    problem::{self, Problem},
    snapshot::{Key, kinds},
    view::View,
};

/// What VXLAN adds to a packet: the packet's own Ethernet header, its header and UDP's; the outer IP header comes to it.
const VXLAN: u32 = 14 + 8 + 8;

/// MTU of an uplink that no node has reported: that of Ethernet.
const UNKNOWN: u32 = 1500;

/// What every link with IPv6 carries.
const IPV6_LEAST: u32 = 1280;

/// A device that carries packets of a segment, and how large they can be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Carrier {
    most: u32,
    mtu: u32,
    node: String,
    device: String,
}

/// The narrowest device of all nodes of a group: for segments over the fabric under none, for others under their device.
pub(super) type Narrowest = BTreeMap<Option<String>, Carrier>;

/// A device of a node, where the node has reported its MTU.
fn carrier(
    node: &str,
    report: &NodeNetworkStatusStatus,
    device: &str,
    added: u32,
) -> Option<Carrier> {
    let mut interfaces = report.interfaces.iter();
    let seen = interfaces.find(|seen| seen.name == device)?;
    let mtu = seen.mtu?;
    Some(Carrier {
        most: mtu.saturating_sub(added),
        mtu,
        node: node.to_owned(),
        device: device.to_owned(),
    })
}

/// What the fabric adds to the packets of a node.
fn added(underlay: &NodeUnderlay) -> u32 {
    let outer = match underlay.vtep {
        Some(IpAddr::V6(_)) => 40,
        Some(IpAddr::V4(_)) | None => 20,
    };
    VXLAN + outer
}

/// An MTU of so many bytes, where devices can have it; otherwise the nearest.
fn nearest(bytes: u32) -> Option<Mtu> {
    let bytes = bytes.clamp(IPV6_LEAST, Mtu::MAX.get().into());
    Mtu::try_from(i64::from(bytes)).ok()
}

/// The narrowest uplink of a node.
fn uplink(
    node: &str,
    report: &NodeNetworkStatusStatus,
    underlay: &NodeUnderlay,
) -> Option<Carrier> {
    let nics = underlay.fabric.nics.iter();
    let added = added(underlay);
    let uplinks = nics.filter_map(|nic| carrier(node, report, nic.as_str(), added));
    uplinks.min_by_key(|carrier| carrier.most)
}

/// The MTU of a node's VRFs, where its uplinks carry less than the largest.
///
/// No object gives a VRF an MTU, so it follows what the node reports: a larger packet would be lost without a message to its sender. A
/// node whose report is missing keeps its MTU, and where it has none yet, its uplinks count as those of Ethernet.
pub(crate) struct VrfMtuOf;
impl Query for VrfMtuOf {
    type Key = Key;
    type Value = Option<Mtu>;
    fn compute(view: &View<'_>, node: &Key) -> Option<Mtu> {
        let signature = signature(view, node)?;
        let underlay = place(view, &signature, &node.name).underlay?;
        let report = view.status::<kinds::NodeNetworkStatus>(node);
        let uplink = report.and_then(|report| uplink(&node.name, &report, &underlay));
        let in_use = || in_use(&*view.spec::<kinds::NodeNetworkConfig>(node)?);
        let mtu = match uplink {
            Some(uplink) => nearest(uplink.most),
            None => in_use().or_else(|| nearest(UNKNOWN - added(&underlay))),
        };
        mtu.filter(|mtu| *mtu < Mtu::MAX)
    }
}

/// What the uplinks of a node carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UplinkMtu {
    /// Inside of a VXLAN.
    pub overlay: Mtu,
    /// Without encapsulation.
    pub plain: Mtu,
}

/// The MTU of the uplinks of a node. A node whose report is missing keeps its MTU, and where it has none yet, its uplinks count as those of
/// Ethernet.
pub(crate) struct UplinkMtuOf;
impl Query for UplinkMtuOf {
    type Key = Key;
    type Value = Option<UplinkMtu>;
    fn compute(view: &View<'_>, node: &Key) -> Option<UplinkMtu> {
        let signature = signature(view, node)?;
        let underlay = place(view, &signature, &node.name).underlay?;
        let report = view.status::<kinds::NodeNetworkStatus>(node);
        if let Some(uplink) = report.and_then(|report| uplink(&node.name, &report, &underlay)) {
            return Some(UplinkMtu {
                overlay: nearest(uplink.most)?,
                plain: nearest(uplink.mtu)?,
            });
        }
        let config = view.spec::<kinds::NodeNetworkConfig>(node);
        let config = config.as_deref();
        let sessions = config.into_iter().flat_map(NodeNetworkConfigSpec::vrfs);
        let sessions = sessions.filter_map(|vrf| vrf.host_session.as_ref());
        let segments = config
            .into_iter()
            .flat_map(|config| config.layer2s.values());
        let segments = segments.filter(|segment| segment.host_port.is_some());
        let overlay = sessions.map(|session| session.mtu);
        let overlay = overlay.chain(segments.map(|segment| segment.mtu)).min();
        let plain = config
            .into_iter()
            .flat_map(|config| config.passthroughs.values());
        let plain = plain.map(|one| one.mtu).min();
        Some(UplinkMtu {
            overlay: overlay.or_else(|| nearest(UNKNOWN - added(&underlay)))?,
            plain: plain.or_else(|| nearest(UNKNOWN))?,
        })
    }
}

/// The MTU that the VRFs of a config have.
fn in_use(config: &NodeNetworkConfigSpec) -> Option<Mtu> {
    let in_fabric = config.vrfs().filter(|vrf| vrf.devices.vxlan.is_some());
    in_fabric.map(|vrf| vrf.mtu).min()
}

/// Adds the devices of a node that carry segments.
pub(super) fn add(
    narrowest: &mut Narrowest,
    node: &str,
    report: &NodeNetworkStatusStatus,
    underlay: Option<&NodeUnderlay>,
    shared: &Shared,
) {
    let uplink = underlay.and_then(|underlay| uplink(node, report, underlay));
    let uplink = uplink.map(|uplink| (None, uplink));
    let parents = shared.host_vlans.values();
    let parents = parents.filter_map(|vlan| {
        let parent = vlan.parent.to_string();
        let carrier = carrier(node, report, &parent, 0)?;
        Some((Some(parent), carrier))
    });
    for (parent, carrier) in uplink.into_iter().chain(parents) {
        match narrowest.get(&parent) {
            Some(known) if known.most <= carrier.most => {}
            _ => drop(narrowest.insert(parent, carrier)),
        }
    }
}

/// Says which segments have packets that do not fit. Nothing else comes of it: the MTU of a segment is its author's.
pub(super) fn problems(narrowest: &Narrowest, members: &Members, shared: &Shared) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (parent, carrier) in narrowest {
        let segments = shared.segments.iter();
        for object in segments.filter_map(|name| members.segment(name)) {
            let on = object.spec.interface_ref.as_ref();
            let mtu = object.spec.mtu;
            if on.map(IfName::as_str) != parent.as_deref() || u32::from(mtu.get()) <= carrier.most {
                continue;
            }
            let kind = problem::Kind::MtuTooLarge {
                mtu,
                most: carrier.most,
                device_mtu: carrier.mtu,
                device: carrier.device.clone(),
                node: carrier.node.clone(),
            };
            problems.push(Problem::new(object.source.clone(), "spec.mtu", kind));
        }
    }
    problems
}
