//! Whether the packets of segments fit the devices that carry them, as far as nodes have reported those.

use std::{collections::BTreeMap, net::IpAddr};

use api::{tcaas::NodeNetworkStatusStatus, value::IfName};

use super::{NodeUnderlay, Shared, group::Members};
use crate::problem::{self, Problem};

/// What VXLAN adds to a packet: the packet's own Ethernet header, its header and UDP's; the outer IP header comes to it.
const VXLAN: u32 = 14 + 8 + 8;

/// A device that carries packets of a segment, and how large they can be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Carrier {
    most: u32,
    node: String,
    device: String,
}

/// The narrowest device of all nodes of a group: for segments over the fabric under none, for others under their device.
pub(super) type Narrowest = BTreeMap<Option<String>, Carrier>;

/// Adds the devices of a node that carry segments.
pub(super) fn add(
    narrowest: &mut Narrowest,
    node: &str,
    report: &NodeNetworkStatusStatus,
    underlay: Option<&NodeUnderlay>,
    shared: &Shared,
) {
    let carrier = |device: &str, added: u32| {
        let mut interfaces = report.interfaces.iter();
        let seen = interfaces.find(|seen| seen.name == device)?;
        Some(Carrier {
            most: seen.mtu?.saturating_sub(added),
            node: node.to_owned(),
            device: device.to_owned(),
        })
    };
    let uplinks = underlay.into_iter().flat_map(|underlay| {
        let outer = match underlay.vtep {
            Some(IpAddr::V6(_)) => 40,
            Some(IpAddr::V4(_)) | None => 20,
        };
        let nics = underlay.fabric.nics.iter();
        nics.filter_map(move |nic| carrier(nic.as_str(), VXLAN + outer))
    });
    let uplink = uplinks.min_by_key(|carrier| carrier.most);
    let uplink = uplink.map(|uplink| (None, uplink));
    let parents = shared.host_vlans.values();
    let parents = parents.filter_map(|vlan| {
        let parent = vlan.parent.to_string();
        let carrier = carrier(&parent, 0)?;
        Some((Some(parent), carrier))
    });
    for (parent, carrier) in uplink.into_iter().chain(parents) {
        match narrowest.get(&parent) {
            Some(known) if known.most <= carrier.most => {}
            _ => drop(narrowest.insert(parent, carrier)),
        }
    }
}

/// Says which segments have packets that do not fit. Nothing else comes of it: a config must not follow what nodes report.
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
                device: carrier.device.clone(),
                node: carrier.node.clone(),
            };
            problems.push(Problem::new(object.source.clone(), "spec.mtu", kind));
        }
    }
    problems
}
