//! Addresses.

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::IpNet;
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, CacheInfo},
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};

use super::{Connection, RequestError};
use crate::HostAddress;

/// The number for a time without end.
const FOR_EVER: u32 = u32::MAX;

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

/// The addresses that have more than an address and a length, by the names of their links.
pub(super) async fn dump_special(
    connection: &Connection,
    names: &BTreeMap<u32, String>,
) -> Result<BTreeMap<String, Vec<HostAddress>>, RequestError> {
    let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    let mut found: BTreeMap<String, Vec<HostAddress>> = BTreeMap::new();
    for object in connection.dump(request).await? {
        let RouteNetlinkMessage::NewAddress(message) = object else {
            continue;
        };
        let Some(name) = names.get(&message.header.index) else {
            continue;
        };
        let special = special(&message, name).filter(HostAddress::is_special);
        if let Some(address) = special {
            found.entry(name.clone()).or_default().push(address);
        }
    }
    Ok(found)
}

fn special(message: &AddressMessage, link: &str) -> Option<HostAddress> {
    let (mut local, mut remote, mut label) = (None, None, None);
    let (mut flags, mut times) = (AddressFlags::empty(), CacheInfo::default());
    (times.ifa_valid, times.ifa_preferred) = (FOR_EVER, FOR_EVER);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => remote = Some(*ip),
            AddressAttribute::Label(text) => label = Some(text.clone()),
            AddressAttribute::Flags(bits) => flags = *bits,
            AddressAttribute::CacheInfo(info) => times = *info,
            _ => {}
        }
    }
    // The kernel makes these by itself again: from announcements of routers, and of every link.
    let is_automatic = flags.intersects(AddressFlags::Managetempaddr | AddressFlags::StablePrivacy)
        || remote.is_some_and(|it| matches!(it, IpAddr::V6(it) if it.is_unicast_link_local()));
    let own = local.or(remote).filter(|_| !is_automatic)?;
    let ends = |time: u32| (time != FOR_EVER).then_some(time);
    Some(HostAddress {
        address: IpNet::new(own, message.header.prefix_len).ok()?,
        peer: remote.filter(|remote| *remote != own),
        label: label.filter(|label| label != link),
        no_prefix_route: flags.contains(AddressFlags::Noprefixroute),
        no_dad: flags.contains(AddressFlags::Nodad),
        valid: ends(times.ifa_valid),
        preferred: ends(times.ifa_preferred),
    })
}

/// Replaces a plain address by what it was on the host.
pub(super) async fn restore(
    connection: &Connection,
    index: u32,
    address: &HostAddress,
) -> Result<(), RequestError> {
    // Peer and label of an address cannot be changed. If it is not there, adding it is all there is to do.
    let _gone = delete(connection, index, address.address).await;
    let mut message = message(index, address.address);
    if let Some(peer) = address.peer {
        message.attributes.pop();
        message.attributes.push(AddressAttribute::Address(peer));
    }
    message
        .attributes
        .extend(address.label.clone().map(AddressAttribute::Label));
    let mut flags = AddressFlags::empty();
    if address.no_prefix_route {
        flags |= AddressFlags::Noprefixroute;
    }
    if address.no_dad {
        flags |= AddressFlags::Nodad;
    }
    if address.valid.is_none() {
        flags |= AddressFlags::Permanent;
        message.header.flags = AddressHeaderFlags::Permanent;
    }
    message.attributes.push(AddressAttribute::Flags(flags));
    let mut times = CacheInfo::default();
    times.ifa_valid = address.valid.unwrap_or(FOR_EVER);
    times.ifa_preferred = address.preferred.unwrap_or(FOR_EVER);
    message.attributes.push(AddressAttribute::CacheInfo(times));
    let request = RouteNetlinkMessage::NewAddress(message);
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
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
