//! What one node has of the router that it shares with others: Secrets of its own for passwords in clear text, and a router ID where its
//! addresses give it none.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use api::{
    frrk8s::{FrrConfigurationSpec, Neighbor},
    meta::SecretReference,
    tcaas::node_network_config::{HostNeighbor, HostRouter},
    value::{IfName, Password, Peer},
};
use sha2::{Digest as _, Sha256};

use super::{
    AnyConfigurations, GroupOf, RouterFor,
    part::{Part, PasswordSource},
    read::has_password,
};
use crate::{
    names,
    node::MovedPassword,
    snapshot::{Key, kinds},
    view::View,
};

/// A password in clear text in an object, with the session that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InClearText {
    vrf: IfName,
    peer: Peer,
    password: Password,
}

/// The passwords in clear text that objects add up to.
pub(super) fn in_clear_text(part: &Part) -> Vec<InClearText> {
    let mut found = Vec::new();
    for (vrf, router) in &part.routers {
        for (peer, neighbor) in &router.neighbors {
            let given = neighbor.session.password.as_ref();
            if let Some(PasswordSource::Clear(password)) = given.map(|one| &one.value) {
                found.push(InClearText {
                    vrf: vrf.clone(),
                    peer: peer.clone(),
                    password: password.clone(),
                });
            }
        }
    }
    found
}

/// The router of the host of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeHostRouter {
    /// As it is in the config of the node.
    pub router: Arc<HostRouter>,
    /// Passwords in clear text, each with its Secret.
    moved: Arc<Vec<(SecretReference, Password)>>,
}

impl NodeHostRouter {
    /// The Secrets that the node reads for its sessions.
    pub(crate) fn password_secrets(&self) -> impl Iterator<Item = SecretReference> + '_ {
        let neighbors = self.router.routers.values().flat_map(|one| &one.neighbors);
        neighbors.filter_map(|neighbor| neighbor.password_secret.clone())
    }

    /// The passwords in clear text, each with the Secret that it goes into.
    pub(crate) fn moved_passwords(&self) -> impl Iterator<Item = MovedPassword> + '_ {
        self.moved.iter().map(|(secret, password)| {
            let known = Some(password.clone()).filter(|one| !one.is_hidden());
            MovedPassword {
                secret: secret.clone(),
                is_in_effect: known.is_some(),
                password: known,
            }
        })
    }
}

/// The router of the host of a node; nothing where no object selects it.
pub(crate) fn of_node(view: &View<'_>, node: &Key) -> Option<NodeHostRouter> {
    if !view.get::<AnyConfigurations>(&()) {
        return None;
    }
    let group = view.get::<GroupOf>(node)?;
    let shared = view.get::<RouterFor>(&group);
    let mut router = Arc::clone(&shared.router);
    let mut moved = Vec::new();
    for one in shared.passwords.iter() {
        let peer = format!("{} {}", one.vrf, one.peer);
        let secret = SecretReference {
            name: Some(names::moved_host_password(&node.name, &peer)),
            namespace: Some(names::OWN_NAMESPACE.to_owned()),
        };
        let bgp = Arc::make_mut(&mut router).routers.get_mut(&one.vrf);
        let neighbors = bgp.into_iter().flat_map(|bgp| &mut bgp.neighbors);
        for neighbor in neighbors.filter(|neighbor| is_with(neighbor, &one.peer)) {
            neighbor.password_secret = Some(secret.clone());
        }
        moved.push((secret, one.password.clone()));
    }
    let lacks = shared
        .router
        .routers
        .values()
        .any(|one| one.router_id.is_none());
    if lacks && let Some(id) = derived_id(view, node) {
        let routers = Arc::make_mut(&mut router).routers.values_mut();
        for bgp in routers {
            bgp.router_id = bgp.router_id.or(Some(id));
        }
    }
    Some(NodeHostRouter {
        router,
        moved: Arc::new(moved),
    })
}

fn is_with(neighbor: &HostNeighbor, peer: &Peer) -> bool {
    match peer {
        Peer::Address(address) => neighbor.address == Some(*address),
        Peer::Interface(name) => neighbor.interface.as_ref() == Some(name),
    }
}

/// The router ID of a node that is known to have no IPv4 address which FRR would take: made of its name, so that it stays the same. One that
/// the node has got stays.
fn derived_id(view: &View<'_>, node: &Key) -> Option<Ipv4Addr> {
    let derived = id_of(&node.name);
    let stored = view.spec::<kinds::NodeNetworkConfig>(node);
    let stored = stored.and_then(|stored| stored.host_router.clone());
    let has = stored.is_some_and(|stored| {
        let mut routers = stored.routers.values();
        routers.any(|one| one.router_id == Some(derived))
    });
    if has {
        return Some(derived);
    }
    let report = view.status::<kinds::NodeNetworkStatus>(node)?;
    let of_host = report
        .interfaces
        .iter()
        .filter(|one| one.namespace.is_none());
    let addresses = of_host.flat_map(|one| &one.addresses).map(|one| one.addr());
    let is_usable = |address: IpAddr| match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(_) => false,
    };
    let (has_any, has_usable) = addresses.fold((false, false), |(_, usable), address| {
        (true, usable || is_usable(address))
    });
    (has_any && !has_usable).then_some(derived)
}

/// A spec that was stored without its passwords, with those that the same sessions have now.
pub(crate) fn with_passwords(
    mut last: Arc<FrrConfigurationSpec>,
    now: &FrrConfigurationSpec,
) -> Arc<FrrConfigurationSpec> {
    let raw = now.raw.as_ref();
    if let Some(raw) = raw.filter(|raw| has_password(&raw.raw_config))
        && last.raw.is_none()
    {
        Arc::make_mut(&mut last).raw = Some(raw.clone());
    }
    let is_hidden = |one: &Neighbor| one.password.as_ref().is_some_and(Password::is_hidden);
    let routers = |spec: &FrrConfigurationSpec| spec.bgp.clone().map(|bgp| bgp.routers);
    let stored = routers(&last).unwrap_or_default();
    let mut neighbors = stored.iter().flat_map(|one| &one.neighbors);
    if !neighbors.any(is_hidden) {
        return last;
    }
    let mut known = BTreeMap::new();
    for router in routers(now).unwrap_or_default() {
        for neighbor in &router.neighbors {
            if let Some(password) = &neighbor.password {
                known.insert((router.vrf.clone(), neighbor.peer().ok()), password.clone());
            }
        }
    }
    let bgp = Arc::make_mut(&mut last).bgp.iter_mut();
    for router in bgp.flat_map(|bgp| &mut bgp.routers) {
        for neighbor in router.neighbors.iter_mut().filter(|one| is_hidden(one)) {
            let session = (router.vrf.clone(), neighbor.peer().ok());
            if let Some(password) = known.get(&session) {
                neighbor.password = Some(password.clone());
            }
        }
    }
    last
}

/// A spec as statuses have it: of a password in clear text it has that there is one, and nothing else.
pub(crate) fn without_passwords(mut spec: Arc<FrrConfigurationSpec>) -> Arc<FrrConfigurationSpec> {
    let raw = spec.raw.as_ref();
    if raw.is_some_and(|raw| has_password(&raw.raw_config)) {
        // It has no effect.
        Arc::make_mut(&mut spec).raw = None;
    }
    let bgp = spec.bgp.iter();
    let mut neighbors = bgp
        .flat_map(|bgp| &bgp.routers)
        .flat_map(|one| &one.neighbors);
    if neighbors.any(|one| one.password.is_some()) {
        let bgp = Arc::make_mut(&mut spec).bgp.iter_mut();
        let routers = bgp.flat_map(|bgp| &mut bgp.routers);
        for neighbor in routers.flat_map(|one| &mut one.neighbors) {
            neighbor.password = neighbor.password.as_ref().map(|_| Password::hidden());
        }
    }
    spec
}

/// A router ID made of a name, which is an address that hosts may have: not in 0.0.0.0/8, 127.0.0.0/8 or 224.0.0.0/3.
fn id_of(node: &str) -> Ipv4Addr {
    let hash: [u8; 32] = Sha256::digest(node.as_bytes()).into();
    let [first, second, third, fourth, ..] = hash;
    let first = match first % 222 + 1 {
        127 => 223,
        other => other,
    };
    Ipv4Addr::new(first, second, third, fourth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_router_id_made_of_a_name_is_stable_and_an_address_that_a_host_can_have() {
        for number in 0..2_000 {
            let name = format!("node-{number}");
            let id = id_of(&name);
            let first = id.octets()[0];
            assert!((1..=223).contains(&first) && first != 127, "{id}");
            assert_eq!(id, id_of(&name));
        }
    }
}
