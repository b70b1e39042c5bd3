//! Links: made, changed, moved, deleted.

use std::{
    net::IpAddr,
    os::fd::{AsFd, AsRawFd},
};

use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{
        AfSpecInet6, AfSpecUnspec, GreIOFlags, In6AddrGenMode, InfoBridgePort, InfoData, InfoGre,
        InfoGre6, InfoKind, InfoPortData, InfoPortKind, InfoVeth, InfoVlan, InfoVrf, InfoVxlan,
        LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
    },
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::{Connection, RequestError, namespace::Namespace};
use crate::{
    desired::{DesiredLink, IPV6_MIN_MTU},
    object::{AddrGen, BridgePort, Gre, Kind, Payload},
    owned::GROUP_MADE,
    plan::LinkChange,
};

/// Indices that a new link refers to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Below {
    /// The parent of a VLAN, or the link a tunnel's outer packets follow.
    pub(super) parent: Option<u32>,
}

/// Makes a link: down, marked as ours in the same message.
///
/// A bridge gets its MTU later: one that is given here the kernel takes for its own, and changes it with the ports.
pub(super) async fn create(
    connection: &Connection,
    name: &str,
    link: &DesiredLink,
    below: Below,
    other: Option<&Namespace>,
) -> Result<(), RequestError> {
    let mut message = named(name);
    if let Some(mtu) = link.mtu
        && link.kind != Kind::Bridge
    {
        message.attributes.push(LinkAttribute::Mtu(mtu));
    }
    if let Some(mac) = link.mac {
        let bytes = mac.bytes().to_vec();
        message.attributes.push(LinkAttribute::Address(bytes));
    }
    if let (Kind::Vlan { .. }, Some(parent)) = (&link.kind, below.parent) {
        message.attributes.push(LinkAttribute::Link(parent));
    }
    let (kind, data) = info(&link.kind, below, other);
    let mut infos = vec![LinkInfo::Kind(kind)];
    infos.extend(data.map(LinkInfo::Data));
    message.attributes.push(LinkAttribute::LinkInfo(infos));
    let request = RouteNetlinkMessage::NewLink(message);
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
}

/// Gives a new link what cannot be said while it is made.
pub(super) async fn complete(
    connection: &Connection,
    index: u32,
    link: &DesiredLink,
    master: Option<u32>,
) -> Result<(), RequestError> {
    let mut message = at(index);
    let alias = LinkAttribute::IfAlias(link.alias.clone());
    message.attributes.push(alias);
    if let (Kind::Bridge, Some(mtu)) = (&link.kind, link.mtu) {
        message.attributes.push(LinkAttribute::Mtu(mtu));
    }
    if link.addr_gen == AddrGen::None && link.mtu.is_none_or(|mtu| mtu >= IPV6_MIN_MTU) {
        message.attributes.push(addr_gen(link.addr_gen));
    }
    message
        .attributes
        .extend(master.map(LinkAttribute::Controller));
    let request = RouteNetlinkMessage::SetLink(message);
    connection.change(request, 0).await?;
    match link.port {
        Some(port) => set_port(connection, index, port).await,
        None => Ok(()),
    }
}

/// Changes one thing about a link. `master` is the index of the new master, if the change names one.
pub(super) async fn set(
    connection: &Connection,
    index: u32,
    change: &LinkChange,
    master: Option<u32>,
) -> Result<(), RequestError> {
    let mut message = at(index);
    let attribute = match change {
        LinkChange::Up => {
            message.header.flags = LinkFlags::Up;
            message.header.change_mask = LinkFlags::Up;
            None
        }
        LinkChange::Alias(alias) => Some(LinkAttribute::IfAlias(alias.clone())),
        LinkChange::Mtu(mtu) => Some(LinkAttribute::Mtu(*mtu)),
        LinkChange::Mac(mac) => Some(LinkAttribute::Address(mac.bytes().to_vec())),
        LinkChange::AddrGen(mode) => Some(addr_gen(*mode)),
        LinkChange::Master(_) => Some(LinkAttribute::Controller(master.unwrap_or_default())),
        LinkChange::Port(port) => return set_port(connection, index, *port).await,
    };
    message.attributes.extend(attribute);
    let request = RouteNetlinkMessage::SetLink(message);
    connection.change(request, 0).await
}

/// Moves a link into another namespace and marks it, in one message: there is no instant between the two.
pub(super) async fn move_to(
    connection: &Connection,
    index: u32,
    namespace: &Namespace,
    group: u32,
    alias: Option<&str>,
) -> Result<(), RequestError> {
    let mut message = at(index);
    message.attributes = vec![
        LinkAttribute::NetNsFd(namespace.as_fd().as_raw_fd()),
        LinkAttribute::Group(group),
    ];
    let alias = alias.map(|alias| LinkAttribute::IfAlias(alias.to_owned()));
    message.attributes.extend(alias);
    let request = RouteNetlinkMessage::SetLink(message);
    connection.change(request, 0).await
}

/// Takes our mark off a link.
pub(super) async fn release(connection: &Connection, index: u32) -> Result<(), RequestError> {
    let mut message = at(index);
    message.attributes = vec![
        LinkAttribute::Group(0),
        LinkAttribute::IfAlias(String::new()),
    ];
    let request = RouteNetlinkMessage::SetLink(message);
    connection.change(request, 0).await
}

/// Writes the alias of a link.
pub(super) async fn set_alias(
    connection: &Connection,
    index: u32,
    alias: &str,
) -> Result<(), RequestError> {
    let change = LinkChange::Alias(alias.to_owned());
    set(connection, index, &change, None).await
}

/// Deletes a link.
pub(super) async fn delete(connection: &Connection, index: u32) -> Result<(), RequestError> {
    let request = RouteNetlinkMessage::DelLink(at(index));
    connection.change(request, 0).await
}

/// What a bridge does on a port is said in a message of its own: the kernel takes it only in the form of a "new" link.
async fn set_port(
    connection: &Connection,
    index: u32,
    port: BridgePort,
) -> Result<(), RequestError> {
    let mut message = at(index);
    let data = InfoPortData::BridgePort(vec![
        InfoBridgePort::HairpinMode(port.hairpin),
        InfoBridgePort::Learning(port.learning),
        InfoBridgePort::NeighSupress(port.neigh_suppress),
    ]);
    message.attributes = vec![LinkAttribute::LinkInfo(vec![
        LinkInfo::PortKind(InfoPortKind::Bridge),
        LinkInfo::PortData(data),
    ])];
    let request = RouteNetlinkMessage::NewLink(message);
    connection.change(request, 0).await
}

fn at(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Group(GROUP_MADE),
    ];
    message
}

fn addr_gen(mode: AddrGen) -> LinkAttribute {
    let mode = match mode {
        AddrGen::None => In6AddrGenMode::None,
        AddrGen::Kernel => In6AddrGenMode::Eui64,
    };
    LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(
        mode,
    )])])
}

fn info(kind: &Kind, below: Below, other: Option<&Namespace>) -> (InfoKind, Option<InfoData>) {
    match kind {
        Kind::Vrf { table } => (
            InfoKind::Vrf,
            Some(InfoData::Vrf(vec![InfoVrf::TableId(*table)])),
        ),
        Kind::Bridge => (InfoKind::Bridge, None),
        Kind::Vxlan {
            vni,
            port,
            local,
            learning,
        } => {
            let mut data = vec![
                InfoVxlan::Id(*vni),
                InfoVxlan::Port(*port),
                InfoVxlan::Learning(*learning),
            ];
            data.extend(local.map(|local| match local {
                IpAddr::V4(local) => InfoVxlan::Local(local),
                IpAddr::V6(local) => InfoVxlan::Local6(local),
            }));
            (InfoKind::Vxlan, Some(InfoData::Vxlan(data)))
        }
        Kind::Vlan { id, .. } => (
            InfoKind::Vlan,
            Some(InfoData::Vlan(vec![InfoVlan::Id(*id)])),
        ),
        Kind::Veth { peer } => {
            let mut message = peer
                .as_ref()
                .map_or_else(LinkMessage::default, |peer| named(&peer.name));
            let namespace =
                other.map(|namespace| LinkAttribute::NetNsFd(namespace.as_fd().as_raw_fd()));
            message.attributes.extend(namespace);
            (
                InfoKind::Veth,
                Some(InfoData::Veth(InfoVeth::Peer(message))),
            )
        }
        Kind::Dummy => (InfoKind::Dummy, None),
        Kind::Gre(gre) => tunnel(gre, below),
        Kind::Loopback => (InfoKind::Other("loopback".into()), None),
        Kind::Other(word) => (InfoKind::Other(word.clone()), None),
    }
}

/// A tunnel, in the words of its family. The same attributes under two types.
fn tunnel(gre: &Gre, below: Below) -> (InfoKind, Option<InfoData>) {
    macro_rules! attributes {
        ($type:ident, $local:expr, $remote:expr) => {{
            let mut data = vec![$type::Local($local), $type::Remote($remote)];
            data.extend(below.parent.map($type::Link));
            if let Some(key) = gre.key {
                data.push($type::IFlags(GreIOFlags::Key));
                data.push($type::OFlags(GreIOFlags::Key));
                data.push($type::IKey(key));
                data.push($type::OKey(key));
            }
            data
        }};
    }
    match (gre.local, gre.remote, gre.payload) {
        (IpAddr::V4(local), IpAddr::V4(remote), payload) => {
            let data = attributes!(InfoGre, local, remote);
            match payload {
                Payload::Frames => (InfoKind::GreTap, Some(InfoData::GreTap(data))),
                Payload::Packets => (InfoKind::GreTun, Some(InfoData::GreTun(data))),
            }
        }
        (IpAddr::V6(local), IpAddr::V6(remote), payload) => {
            let data = attributes!(InfoGre6, local, remote);
            match payload {
                Payload::Frames => (InfoKind::GreTap6, Some(InfoData::GreTap6(data))),
                Payload::Packets => (InfoKind::GreTun6, Some(InfoData::GreTun6(data))),
            }
        }
        // The desired refuses ends of two families.
        _ => (InfoKind::GreTun, None),
    }
}
