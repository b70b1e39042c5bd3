//! What interfaces a node has, for its status.

use std::collections::{BTreeMap, BTreeSet};

use api::value::MacAddress;
use ipnet::IpNet;
use netlink_packet_route::link::State;

use super::{
    Connection, Error, Kernel, address, observe,
    read::{self, RawKind, RawLink},
    route,
};
use crate::{Domain, HostAddress, HostRoute, LinkId, object::Kind, owned::Owner};

/// An interface of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Where it is, and its name.
    pub id: LinkId,
    /// Whose it is.
    pub owner: Owner,
    /// What it is.
    pub kind: Kind,
    /// Hardware address.
    pub mac: Option<MacAddress>,
    /// Maximum transmission unit.
    pub mtu: u32,
    /// Whether it works.
    pub state: InterfaceState,
    /// The bridge, VRF or bond it belongs to.
    pub master: Option<String>,
    /// What belongs to it, if it is a bridge, VRF or bond.
    pub members: BTreeSet<String>,
    /// Its addresses.
    pub addresses: BTreeSet<IpNet>,
}

/// Whether an interface works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterfaceState {
    /// It does.
    Up,
    /// It is switched on and has no carrier, or is switched off.
    Down,
    /// Its driver does not say.
    Unknown,
}

pub(super) async fn interfaces(kernel: &Kernel) -> Result<Vec<Interface>, Error> {
    let router = kernel.router().await?;
    let host_links = links(&kernel.host).await?;
    let router_links = match &router {
        Some((_, connection)) => links(connection).await?,
        None => Vec::new(),
    };
    let mut interfaces = domain(&kernel.host, &host_links, &router_links).await?;
    if let Some((_, connection)) = &router {
        interfaces.extend(domain(connection, &router_links, &host_links).await?);
    }
    Ok(interfaces)
}

pub(super) async fn host_routes(kernel: &Kernel) -> Result<Vec<HostRoute>, Error> {
    let names = read::names(&links(&kernel.host).await?);
    let routes = route::dump_host(&kernel.host, &names).await;
    routes.map_err(|source| Error::Read {
        what: "routes",
        domain: Domain::Host,
        source,
    })
}

pub(super) async fn host_addresses(
    kernel: &Kernel,
) -> Result<BTreeMap<String, Vec<HostAddress>>, Error> {
    let names = read::names(&links(&kernel.host).await?);
    let addresses = address::dump_special(&kernel.host, &names).await;
    addresses.map_err(|source| Error::Read {
        what: "addresses",
        domain: Domain::Host,
        source,
    })
}

async fn links(connection: &Connection) -> Result<Vec<RawLink>, Error> {
    let failed = |source| Error::Read {
        what: "links",
        domain: connection.domain,
        source,
    };
    read::links(connection).await.map_err(failed)
}

async fn domain(
    connection: &Connection,
    own: &[RawLink],
    others: &[RawLink],
) -> Result<Vec<Interface>, Error> {
    let domain = connection.domain;
    let names = read::names(own);
    let failed = |source| Error::Read {
        what: "addresses",
        domain,
        source,
    };
    let mut addresses: BTreeMap<u32, BTreeSet<IpNet>> = BTreeMap::new();
    for (index, address) in address::dump(connection).await.map_err(failed)? {
        addresses.entry(index).or_default().insert(address);
    }
    let none = BTreeSet::new();
    let shown = own.iter().filter(|link| {
        let addresses = addresses.get(&link.index).unwrap_or(&none);
        !is_pod_end(domain, link, addresses)
    });
    let interface = |raw: &RawLink| Interface {
        id: LinkId {
            domain,
            name: raw.name.clone(),
        },
        owner: raw.owner,
        kind: observe::kind(domain, raw, &names, own, others),
        mac: raw.mac,
        mtu: raw.mtu,
        state: match raw.state {
            State::Up => InterfaceState::Up,
            State::Unknown if raw.up => InterfaceState::Unknown,
            _ => InterfaceState::Down,
        },
        master: raw.master.and_then(|index| names.get(&index).cloned()),
        members: own
            .iter()
            .filter(|member| member.master == Some(raw.index))
            .map(|member| member.name.clone())
            .collect(),
        addresses: addresses.get(&raw.index).cloned().unwrap_or_default(),
    };
    Ok(shown.map(interface).collect())
}

/// Whether a link is the host's end of a pod: a veth that Selvedge did not make, whose other end is in another namespace.
///
/// A node that is itself a container has such a link for its NIC. That one is in a network; the end of a pod has no address,
/// or one of its own for the pod to use as a gateway.
fn is_pod_end(domain: Domain, link: &RawLink, addresses: &BTreeSet<IpNet>) -> bool {
    let in_network = addresses
        .iter()
        .filter(|address| !crate::owned::is_automatic(address))
        .any(|address| address.prefix_len() < address.max_prefix_len());
    domain == Domain::Host
        && matches!(link.kind, RawKind::Veth)
        && link.owner == Owner::Foreign
        && link.link_elsewhere
        && !in_network
}
