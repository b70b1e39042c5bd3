//! Addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressMessage},
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_REPLACE};

use super::{Connection, RequestError};

/// All addresses, each with the index of its link.
pub(super) async fn dump(connection: &Connection) -> Result<Vec<(u32, IpNet)>, RequestError> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let objects = connection.dump(request).await?;
    Ok(objects.into_iter().filter_map(read).collect())
}

fn read(object: RouteNetlinkMessage) -> Option<(u32, IpNet)> {
    let RouteNetlinkMessage::NewAddress(message) = object else {
        return None;
    };
    let mut local = None;
    let mut address = None;
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            _ => {}
        }
    }
    // With a peer, `address` is the peer's.
    let net = IpNet::new(local.or(address)?, message.header.prefix_len).ok()?;
    Some((message.header.index, net))
}

/// Adds an address; one that is there already stays.
pub(super) async fn add(
    connection: &Connection,
    index: u32,
    address: IpNet,
) -> Result<(), RequestError> {
    let request = RouteNetlinkMessage::NewAddress(message(index, address));
    connection
        .change(request, NLM_F_CREATE | NLM_F_REPLACE)
        .await
}

/// Removes an address.
pub(super) async fn delete(
    connection: &Connection,
    index: u32,
    address: IpNet,
) -> Result<(), RequestError> {
    let request = RouteNetlinkMessage::DelAddress(message(index, address));
    connection.change(request, 0).await
}

fn message(index: u32, address: IpNet) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address.addr());
    message.header.index = index;
    message.header.prefix_len = address.prefix_len();
    message.attributes = vec![
        AddressAttribute::Local(address.addr()),
        AddressAttribute::Address(address.addr()),
    ];
    message
}

pub(super) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    }
}
