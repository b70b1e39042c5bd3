//! Whether the packets of segments fit the devices that carry them, as far as nodes have reported those.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::value::IfName;

use super::{NodeConfig, Shared};
use crate::{
    problem::{self, Problem},
    revision::Content,
    snapshot::{Key, Snapshot},
};

/// What VXLAN adds to a packet: the packet's own Ethernet header, its header and UDP's; the outer IP header comes to it.
const VXLAN: u32 = 14 + 8 + 8;

/// A device that carries packets of a segment, and how large they can be.
struct Carrier<'a> {
    most: u32,
    device: &'a str,
    node: &'a str,
}

/// Says which segments have packets that do not fit. Nothing else comes of it: a config must not follow what nodes report.
pub(super) fn check(
    content: &Content,
    snapshot: &Snapshot,
    configs: &BTreeMap<String, NodeConfig>,
    problems: &mut Vec<Problem>,
) {
    if snapshot.node_network_statuses.is_empty() {
        return;
    }
    // Nodes of a group have the same segments, which are compared with the narrowest of their devices.
    let mut groups: BTreeMap<(*const Shared, Option<&str>), (&Shared, Carrier<'_>)> =
        BTreeMap::new();
    for (node, config) in configs {
        for (parent, carrier) in carriers(snapshot, node, config) {
            let key = (Arc::as_ptr(&config.shared), parent);
            match groups.get_mut(&key) {
                Some((_, known)) if known.most <= carrier.most => {}
                _ => drop(groups.insert(key, (&config.shared, carrier))),
            }
        }
    }
    for ((_, parent), (shared, carrier)) in groups {
        for object in shared
            .segments
            .iter()
            .filter_map(|name| content.layer2.get(name))
        {
            let on = object.spec.interface_ref.as_ref();
            let mtu = object.spec.mtu;
            if on.map(IfName::as_str) != parent || u32::from(mtu.get()) <= carrier.most {
                continue;
            }
            let kind = problem::Kind::MtuTooLarge {
                mtu,
                most: carrier.most,
                device: carrier.device.to_owned(),
                node: carrier.node.to_owned(),
            };
            problems.push(Problem::new(object.source.clone(), "spec.mtu", kind));
        }
    }
}

/// The devices of a node that carry segments: for those over the fabric the narrowest uplink, and others under their name.
fn carriers<'a>(
    snapshot: &'a Snapshot,
    node: &'a str,
    config: &'a NodeConfig,
) -> Vec<(Option<&'a str>, Carrier<'a>)> {
    let report = snapshot.node_network_statuses.get(&Key::named(node));
    let report = report.and_then(|report| report.status.as_ref());
    let carrier = |device: &'a str, added: u32| {
        let mut interfaces = report?.interfaces.iter();
        let seen = interfaces.find(|seen| seen.name == device)?;
        let most = seen.mtu?.saturating_sub(added);
        Some(Carrier { most, device, node })
    };
    let underlay = config.underlay.as_ref();
    let uplinks = underlay.into_iter().flat_map(|underlay| {
        let outer = match underlay.vtep {
            Some(IpAddr::V6(_)) => 40,
            Some(IpAddr::V4(_)) | None => 20,
        };
        let nics = underlay.nics.iter();
        nics.filter_map(move |nic| carrier(nic.as_str(), VXLAN + outer))
    });
    let uplink = uplinks.min_by_key(|carrier| carrier.most);
    let parents = config.shared.host_vlans.values();
    let parents = parents.filter_map(|vlan| {
        let parent = vlan.parent.as_str();
        Some((Some(parent), carrier(parent, 0)?))
    });
    uplink
        .map(|uplink| (None, uplink))
        .into_iter()
        .chain(parents)
        .collect()
}
