//! Addresses of loopbacks that were given by a pool, and those that nodes run: what a node runs stays, and is given to no other.

use std::net::IpAddr;

use super::{loopback::WantedBy, place::GivenByAddress};
use crate::{
    platform::ipam::AddressClaim,
    problem::{self, Problem},
    snapshot::{Key, ObjectRef, kinds},
    special::{self, Use},
    view::View,
};

/// What is wrong with an address that was given to a node: no router leads to it, or another node has it.
pub(super) fn unusable_address(
    view: &View<'_>,
    node: &Key,
    vrf: &str,
    given: &(ObjectRef, IpAddr),
) -> Option<Problem> {
    let (by, address) = given;
    match special::unfit_address(*address, Use::Routed) {
        Some(kind) => Some(Problem::new(by.clone(), "spec.address", kind)),
        None => given_to_another(view, node, vrf, given),
    }
}

/// What is wrong where an address was given to another node as well, which has it: the node that runs it, then the first by name.
fn given_to_another(
    view: &View<'_>,
    node: &Key,
    vrf: &str,
    (by, address): &(ObjectRef, IpAddr),
) -> Option<Problem> {
    let holders = view.who::<GivenByAddress>(&(vrf.to_owned(), *address));
    let runs = |(holder, _): &&(String, ObjectRef)| {
        holders.len() > 1 && runs_address(view, &Key::named(holder), vrf, *address)
    };
    let (holder, first) = holders.iter().find(runs).or_else(|| holders.first())?;
    (**holder != *node.name).then(|| {
        let kind = problem::Kind::AddressGivenTwice {
            address: *address,
            by: first.clone(),
        };
        Problem::new(by.clone(), "spec.address", kind)
    })
}

/// Whether the config of a node has an address on a loopback of a VRF.
fn runs_address(view: &View<'_>, node: &Key, vrf: &str, address: IpAddr) -> bool {
    let config = view.spec::<kinds::NodeNetworkConfig>(node);
    let vrf = config
        .as_ref()
        .and_then(|config| config.fabric_vrfs.get(vrf));
    let loopbacks = vrf.into_iter().flat_map(|vrf| vrf.loopbacks.values());
    let mut addresses = loopbacks.flat_map(|loopback| &loopback.ip_addresses);
    addresses.any(|own| own.addr() == address)
}

/// Says that a node keeps an address for which nothing is given any more: its pool was changed, or the object that gave it is gone.
pub(super) fn kept(
    view: &View<'_>,
    node: &Key,
    wanted_by: &WantedBy,
    claim: &AddressClaim,
    address: IpAddr,
) -> Problem {
    let kind = problem::Kind::AddressKept {
        address,
        node: node.name.to_string(),
        claim: claim.key.to_string(),
        pool: format!("{} {}", claim.pool.kind, claim.pool.name),
    };
    wanted_by.problem(view, "poolRef", kind)
}

/// The address that a node has on a loopback, unless it was given to another node since. It stays while the claim for it is open: a provider
/// that starts again, or another pool, takes no mirror away.
pub(super) fn address_in_use(
    view: &View<'_>,
    node: &Key,
    vrf: &str,
    loopback: &str,
) -> Option<IpAddr> {
    let config = view.spec::<kinds::NodeNetworkConfig>(node)?;
    let loopback = config.fabric_vrfs.get(vrf)?.loopbacks.get(loopback)?;
    let address = loopback.ip_addresses.first()?.addr();
    let given = view.who::<GivenByAddress>(&(vrf.to_owned(), address));
    let is_own = given.iter().all(|(holder, _)| **holder == *node.name);
    is_own.then_some(address)
}
