//! The link between a node's own namespace and its router's, which all Underlays have from the settings.

use std::net::IpAddr;

use api::{
    selvedge::SettingsSpec,
    tcaas::node_network_config::Trunk,
    value::{HostCidr, Mtu},
};
use ipnet::IpNet;

use super::contradictions::NodesByUnderlay;
use crate::{
    names,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef},
    special::{self, Use},
    view::{View, reference},
};

/// MTU of the trunk: as large as a segment can be.
const TRUNK_MTU: Mtu = Mtu::MAX;

/// The trunk of every node.
pub(super) fn link(settings: &SettingsSpec) -> Trunk {
    let trunk = &settings.trunk;
    Trunk {
        host: trunk.name.clone(),
        router: trunk.name.clone(),
        mtu: TRUNK_MTU,
        host_addresses: trunk.addresses.clone(),
        router_addresses: router_addresses(settings),
    }
}

/// The router's ends of the trunk.
pub(crate) fn router_addresses(settings: &SettingsSpec) -> Vec<HostCidr> {
    let addresses = settings.trunk.addresses.iter();
    let ends = addresses.filter_map(|address| {
        let other = other_end(*address)?;
        IpNet::new(other, address.net().prefix_len()).ok()
    });
    ends.map(HostCidr::new).collect()
}

/// The other address of a network of two.
fn other_end(address: HostCidr) -> Option<IpAddr> {
    let net = address.net();
    net.hosts().find(|host| *host != net.addr())
}

/// Whether the network of an address has exactly two host addresses, one of which it is; the other one is the router's.
fn is_one_of_two(address: HostCidr) -> bool {
    let net = address.net();
    let of_two = if address.is_ipv4() {
        30..=31
    } else {
        127..=127
    };
    of_two.contains(&net.prefix_len()) && net.hosts().any(|host| host == net.addr())
}

/// What is wrong with the trunk, whatever else is on nodes.
pub(crate) fn trunk_faults(settings: &SettingsSpec) -> Vec<Problem> {
    let trunk = &settings.trunk;
    let mut faults = Vec::new();
    let mut report = |field: String, kind| {
        let subject = ObjectRef::named(Kind::Settings, "default");
        faults.push(Problem::new(subject, field, kind));
    };
    let reserved = if trunk.name.as_str() == settings.cluster_vrf.name.as_str() {
        Some("the cluster VRF")
    } else {
        names::reserved_device(&trunk.name)
    };
    if let Some(what) = reserved {
        let kind = problem::Kind::DeviceNameReserved {
            name: trunk.name.to_string(),
            what: what.to_owned(),
        };
        report("spec.trunk.name".to_owned(), kind);
    }
    for (place, address) in trunk.addresses.iter().enumerate() {
        let not_of_two = || {
            (!is_one_of_two(*address)).then(|| problem::Kind::TrunkNotOfTwo {
                address: address.to_string(),
            })
        };
        let unfit = special::unfit_address(address.addr(), Use::OnLink).or_else(not_of_two);
        if let Some(kind) = unfit {
            report(format!("spec.trunk.addresses[{place}]"), kind);
        }
    }
    faults
}

/// What keeps an Underlay from nodes that do not run it yet: its trunk or the cluster VRF cannot be as the settings say. Nodes that run it
/// keep it.
pub(super) fn not_in_effect(view: &View<'_>, underlay: &Key) -> Option<Problem> {
    let runs = || view.has::<NodesByUnderlay>(&underlay.to_string());
    let settings = view.settings();
    let can_be = trunk_faults(&settings).is_empty()
        && names::of_no_vrf(settings.cluster_vrf.name.as_str()).is_none();
    if can_be || runs() {
        return None;
    }
    let kind = problem::Kind::ReferenceNotInEffect {
        target: ObjectRef::named(Kind::Settings, "default"),
    };
    let subject = reference(Kind::Underlay, underlay);
    Some(Problem::new(subject, "", kind))
}
