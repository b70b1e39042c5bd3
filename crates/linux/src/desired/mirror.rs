//! Mirrors: tunnels, and the filters that copy into them.
//!
//! A mirror never makes a config impossible: an impossible one is reported, and everything else is configured.

use std::collections::BTreeMap;

use api::{
    tcaas::{
        MirrorDirection, Protocol, TrafficMatch,
        node_network_config::{Gre as GreConfig, GreLayer, Layer2, MirrorAcl, Vrf},
    },
    value::IfName,
};
use ipnet::IpNet;

use super::{Builder, DesiredLink, Timing, Unsupported, policy::number};
use crate::{
    filter::{Filter, Hook},
    object::{Family, Gre, Kind, LinkId, Payload},
};

impl Builder<'_> {
    /// After all else, which has the first say on names.
    pub(super) fn mirrors(&mut self, vrfs: &[(String, &Vrf)], layer2s: &BTreeMap<String, Layer2>) {
        for (path, vrf) in vrfs {
            for (name, gre) in &vrf.gres {
                self.gre(&format!("{path}.gres.{name}"), vrf, name, gre);
            }
        }
        for (key, layer2) in layer2s {
            // On the access port and not on the bridge, which frames from port to port never pass. What the
            // workload receives is what its port sends.
            let link = LinkId::router(&layer2.devices.access_port);
            let hook = |direction| match direction {
                MirrorDirection::Ingress => Hook::Egress,
                MirrorDirection::Egress => Hook::Ingress,
            };
            self.acls(&format!("layer2s.{key}"), &link, &layer2.mirror_acls, hook);
        }
        for (path, vrf) in vrfs {
            // Towards the fabric: what comes in here is on its way to the workload.
            let hook = |direction| match direction {
                MirrorDirection::Ingress => Hook::Ingress,
                MirrorDirection::Egress => Hook::Egress,
            };
            match &vrf.devices.vxlan {
                Some(vxlan) => self.acls(path, &LinkId::router(vxlan), &vrf.mirror_acls, hook),
                None if vrf.mirror_acls.is_empty() => {}
                None => self.unmirrored(
                    format!("{path}.mirrorAcls"),
                    "the VRF has no VXLAN to mirror from",
                ),
            }
        }
    }

    fn unmirrored(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.desired.unmirrored.push(Unsupported {
            path: path.into(),
            why: why.into(),
        });
    }

    fn gre(&mut self, path: &str, vrf: &Vrf, name: &str, gre: &GreConfig) {
        let GreConfig {
            destination_address,
            source_address,
            source_interface,
            layer,
            encapsulation_key,
        } = gre;
        if let Err(why) = name.parse::<IfName>() {
            self.unmirrored(path, why.to_string());
            return;
        }
        let id = LinkId::router(name);
        if name == "lo" || self.desired.nics.contains(name) || self.desired.links.contains_key(&id)
        {
            self.unmirrored(path, format!("the name {id} is used twice"));
            return;
        }
        if source_address.is_ipv4() != destination_address.is_ipv4() {
            let why = "sourceAddress and destinationAddress are of different families";
            self.unmirrored(path, why);
            return;
        }
        if let Some(source) = source_interface
            && !vrf.loopbacks.contains_key(source.as_str())
        {
            let why = format!("the VRF has no loopback {source}");
            self.unmirrored(format!("{path}.sourceInterface"), why);
            return;
        }
        let kind = Kind::Gre(Gre {
            payload: match layer {
                GreLayer::Layer2 => Payload::Frames,
                GreLayer::Layer3 => Payload::Packets,
            },
            local: *source_address,
            remote: *destination_address,
            key: *encapsulation_key,
            device: source_interface.as_ref().map(ToString::to_string),
        });
        let what = format!("tunnel of {}", vrf.devices.vrf);
        let link = DesiredLink {
            master: Some(vrf.devices.vrf.to_string()),
            ..DesiredLink::new(kind, &what, Timing::Mirror)
        };
        self.desired.links.insert(id, link);
    }

    fn acls(
        &mut self,
        path: &str,
        link: &LinkId,
        acls: &[MirrorAcl],
        hook: impl Fn(MirrorDirection) -> Hook,
    ) {
        for (i, acl) in acls.iter().enumerate() {
            let path = format!("{path}.mirrorAcls.{i}");
            let MirrorAcl {
                traffic_match,
                mirror_destination,
                direction,
            } = acl;
            let to = mirror_destination.as_str();
            let tunnel = self.desired.links.get(&link.sibling(to));
            if !tunnel.is_some_and(|tunnel| matches!(tunnel.kind, Kind::Gre(_))) {
                self.unmirrored(
                    format!("{path}.mirrorDestination"),
                    format!("there is no tunnel {to}"),
                );
                continue;
            }
            let filters = filters(link, hook(*direction), traffic_match, to);
            if filters.is_empty() {
                let why = "no packet can match this";
                self.unmirrored(format!("{path}.trafficMatch"), why);
            }
            self.desired.filters.extend(filters);
        }
    }
}

/// One filter for each family, and for each protocol with ports where ports are asked for without one.
fn filters(link: &LinkId, hook: Hook, packets: &TrafficMatch, to: &str) -> Vec<Filter> {
    let TrafficMatch {
        src_prefix,
        dst_prefix,
        src_port,
        dst_port,
        protocol,
    } = packets;
    let src = src_prefix.map(|prefix| prefix.prefix().net());
    let dst = dst_prefix.map(|prefix| prefix.prefix().net());
    let has_ports = src_port.or(*dst_port).is_some();
    let protocols = match *protocol {
        None if has_ports => vec![
            Some(Protocol::Tcp),
            Some(Protocol::Udp),
            Some(Protocol::Sctp),
        ],
        protocol => vec![protocol],
    };
    let mut filters = Vec::new();
    for family in Family::BOTH {
        let is_of = |net: Option<IpNet>| net.is_none_or(|net| Family::of(net.addr()) == family);
        for protocol in &protocols {
            let fits = protocol.is_none_or(|protocol| {
                let is_of = protocol.is_ipv4();
                let is_of = is_of.is_none_or(|is_ipv4| is_ipv4 == (family == Family::V4));
                is_of && (protocol.has_ports() || !has_ports)
            });
            if !fits || !is_of(src) || !is_of(dst) {
                continue;
            }
            filters.push(Filter {
                link: link.clone(),
                hook,
                family,
                // A network of everything says no more than the family does.
                src: src.filter(|net| net.prefix_len() > 0),
                dst: dst.filter(|net| net.prefix_len() > 0),
                protocol: protocol.map(number),
                src_port: *src_port,
                dst_port: *dst_port,
                to: to.to_owned(),
            });
        }
    }
    filters
}
