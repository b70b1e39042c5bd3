//! Values that are well formed and cannot work: special-purpose addresses, gateways that are no host of their network, and MAC addresses
//! that no interface has.

use std::net::IpAddr;

use api::{
    selvedge::SettingsSpec,
    tcaas::{Layer2NetworkConfigurationSpec, NetworkSpec, PrefixAction},
    value::{HostCidr, Prefix},
};

use super::low_level::LowLevelObject;
use crate::{
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
    special::{self, Use},
};

type Fault = (String, problem::Kind);

/// What is wrong with the values of a hand-written object.
pub(super) fn problems(subject: &ObjectRef, object: &LowLevelObject) -> Vec<Problem> {
    let faults = match object {
        LowLevelObject::Layer2(object) => of_segment(&object.spec),
        LowLevelObject::Bgp(object) => {
            let peers = object.spec.loopback_peer.iter();
            let ips = peers.flat_map(|peer| &peer.ips).enumerate();
            let faults = ips.filter_map(|(place, ip)| {
                let kind = special::unfit_address(*ip, Use::OnLink)?;
                Some((format!("spec.loopbackPeer.ips[{place}]"), kind))
            });
            faults.collect()
        }
        LowLevelObject::MirrorTarget(object) => {
            let kind = collector(object.spec.destination_ip);
            kind.map(|kind| ("spec.destinationIP".to_owned(), kind))
                .into_iter()
                .collect()
        }
        LowLevelObject::Vrf(_) | LowLevelObject::MirrorSelector(_) => Vec::new(),
    };
    let problem = |(field, kind)| Problem::new(subject.clone(), field, kind);
    faults.into_iter().map(problem).collect()
}

fn of_segment(spec: &Layer2NetworkConfigurationSpec) -> Vec<Fault> {
    let gateways = spec.anycast_gateways.iter().enumerate();
    let gateways = gateways.filter_map(|(place, gateway)| {
        let kind = of_gateway(*gateway)?;
        Some((format!("spec.anycastGateways[{place}]"), kind))
    });
    let mac = spec.anycast_mac.and_then(special::unfit_mac);
    let mac = mac.map(|kind| ("spec.anycastMac".to_owned(), kind));
    let networks = spec.node_ips.iter().flat_map(|ips| &ips.networks);
    let networks = networks.enumerate().filter_map(|(place, network)| {
        let kind = special::unfit(network.net(), Use::OnLink)?;
        Some((format!("spec.nodeIPs.networks[{place}]"), kind))
    });
    gateways.chain(mac).chain(networks).collect()
}

/// Why an address is no gateway: hosts of its network have no way to it.
fn of_gateway(gateway: HostCidr) -> Option<problem::Kind> {
    if let Some(kind) = special::unfit_address(gateway.addr(), Use::OnLink) {
        return Some(kind);
    }
    let (net, network) = (gateway.net(), gateway.prefix());
    let others = net.max_prefix_len() - net.prefix_len();
    let message = match others {
        0 => format!(
            "{gateway} is a network of one address, in which no host could reach the gateway: give it the prefix length of the segment"
        ),
        // Both addresses of a network of two are hosts; IPv6 has no broadcast address.
        1 => return None,
        _ if !gateway.is_ipv4() => return None,
        _ if net.addr() == net.network() => format!(
            "{gateway} is the address of {network} itself, which no host has: choose another address of it"
        ),
        _ if net.addr() == net.broadcast() => format!(
            "{gateway} is the broadcast address of {network}, which no host has: choose another address of it"
        ),
        _ => return None,
    };
    Some(problem::Kind::RuleBroken { message })
}

/// Why no tunnel can lead to an address.
pub(super) fn collector(address: IpAddr) -> Option<problem::Kind> {
    special::unfit_address(address, Use::Routed)
}

/// Why no machine can have an address of a Network. Link-local IPv4 networks can be attached; they cannot be announced.
pub(crate) fn of_network(spec: &NetworkSpec) -> Vec<(&'static str, problem::Kind)> {
    let families = [
        (&spec.ipv4, "spec.ipv4.cidr"),
        (&spec.ipv6, "spec.ipv6.cidr"),
    ];
    let faults = families.into_iter().filter_map(|(family, field)| {
        let kind = special::unfit(family.as_ref()?.cidr.net(), Use::OnLink)?;
        Some((field, kind))
    });
    faults.collect()
}

/// Why no node announces a network: every export of a node leaves out what means something on that node, or on one link, alone.
pub(super) fn never_announced(settings: &SettingsSpec, network: Prefix) -> Option<problem::Kind> {
    if let Some(kind) = special::unfit(network.net(), Use::Routed) {
        return Some(kind);
    }
    let trunk = settings.trunk.addresses.iter().map(|end| end.prefix());
    let trunk = trunk.map(|other| (other, "Settings.spec.trunk.addresses"));
    let workloads = settings.bgp.workload_cidrs.iter().copied();
    let workloads = workloads.map(|other| (other, "Settings.spec.bgp.workloadCIDRs"));
    let mut of_nodes = trunk.chain(workloads);
    let (other, field) = of_nodes.find(|(other, _)| other.net().contains(&network.net()))?;
    Some(problem::Kind::NeverAnnounced {
        network,
        other,
        field,
    })
}

/// Lines of hand-written routing that permit what no node announces: they are passed over.
pub(crate) fn idle_exports(settings: &SettingsSpec, object: &LowLevelObject) -> Vec<Problem> {
    let Some(object) = object.vrf() else {
        return Vec::new();
    };
    let lines = object.spec.export.iter().enumerate();
    let lines = lines.filter(|(_, line)| line.action == PrefixAction::Permit);
    let lines = lines.map(|(place, line)| (format!("spec.export[{place}].cidr"), line.cidr));
    let aggregates = object.spec.aggregate.iter().enumerate();
    let aggregates = aggregates.map(|(place, cidr)| (format!("spec.aggregate[{place}]"), *cidr));
    let idle = lines.chain(aggregates).filter_map(|(field, cidr)| {
        let never = never_announced(settings, cidr)?;
        // Around such a network, a line permits others as well.
        let is_around = matches!(
            never,
            problem::Kind::SpecialAddress {
                is_inside: false,
                ..
            }
        );
        let what = format!("the line has no effect: {never}");
        let kind = problem::Kind::NoEffect { what };
        (!is_around).then(|| Problem::new(object.source.clone(), field, kind))
    });
    idle.collect()
}

/// Values of the settings that cannot work. What is wrong with the trunk is said apart.
pub(crate) fn of_settings(settings: &SettingsSpec) -> Vec<Problem> {
    let mac = special::unfit_mac(settings.anycast_mac);
    let mac = mac.map(|kind| ("spec.anycastMAC".to_owned(), kind));
    let workloads = settings.bgp.workload_cidrs.iter().enumerate();
    let workloads = workloads.filter_map(|(place, network)| {
        let kind = special::unfit(network.net(), Use::OnLink)?;
        Some((format!("spec.bgp.workloadCIDRs[{place}]"), kind))
    });
    let of_list = |field: &'static str, networks: &[Prefix]| {
        let networks = networks.iter().enumerate();
        let unfit = networks.filter_map(|(place, network)| {
            let kind = special::unfit(network.net(), Use::Routed)?;
            Some((format!("{field}[{place}]"), kind))
        });
        unfit.collect::<Vec<_>>()
    };
    let sessions = of_list("spec.hostSessions.cidrs", &settings.host_sessions.cidrs);
    let exports = of_list("spec.exportCIDRs", &settings.export_cidrs);
    let problem = |(field, kind)| {
        let subject = ObjectRef::named(Kind::Settings, "default");
        Problem::new(subject, field, kind)
    };
    let all = mac.into_iter().chain(workloads);
    all.chain(sessions).chain(exports).map(problem).collect()
}
