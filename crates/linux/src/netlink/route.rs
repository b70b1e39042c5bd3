//! Routes of our protocol.

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteType},
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::{Connection, RequestError, address::family};
use crate::{
    object::{Route, RouteId},
    owned::PROTOCOL,
};

/// Our routes. The kernel is asked for our protocol alone, and what it sends is looked at once more.
pub(super) async fn dump(
    connection: &Connection,
    names: &BTreeMap<u32, String>,
) -> Result<Vec<(RouteId, Route)>, RequestError> {
    let mut routes = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        request.header.protocol = RouteProtocol::from(PROTOCOL);
        let objects = connection
            .dump(RouteNetlinkMessage::GetRoute(request))
            .await?;
        routes.extend(
            objects
                .into_iter()
                .filter_map(|object| read(connection, names, object)),
        );
    }
    Ok(routes)
}

fn read(
    connection: &Connection,
    names: &BTreeMap<u32, String>,
    object: RouteNetlinkMessage,
) -> Option<(RouteId, Route)> {
    let RouteNetlinkMessage::NewRoute(message) = object else {
        return None;
    };
    if u8::from(message.header.protocol) != PROTOCOL {
        return None;
    }
    let mut table = u32::from(message.header.table);
    let mut prefix = match message.header.address_family {
        AddressFamily::Inet => IpNet::V4(Ipv4Net::default()),
        _ => IpNet::V6(Ipv6Net::default()),
    };
    let mut metric = 0;
    let (mut gateway, mut device) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(id) => table = *id,
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::Destination(destination) => {
                let length = message.header.destination_prefix_length;
                prefix = IpNet::new(address(destination)?, length).ok()?;
            }
            RouteAttribute::Gateway(via) => gateway = address(via),
            RouteAttribute::Oif(index) => device = names.get(index).cloned(),
            _ => {}
        }
    }
    let route = match message.header.kind {
        RouteType::Unreachable => Route::Unreachable,
        RouteType::BlackHole => Route::Blackhole,
        _ => Route::Via {
            gateway: gateway?,
            device: device?,
        },
    };
    let id = RouteId {
        domain: connection.domain,
        table,
        prefix,
        metric,
    };
    Some((id, route))
}

fn address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// Adds a route. It never replaces one: another with the same key is somebody else's.
pub(super) async fn add(
    connection: &Connection,
    id: &RouteId,
    route: &Route,
    device: Option<u32>,
) -> Result<(), RequestError> {
    let request = RouteNetlinkMessage::NewRoute(message(id, route, device));
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
}

/// Removes a route of ours.
pub(super) async fn delete(
    connection: &Connection,
    id: &RouteId,
    route: &Route,
    device: Option<u32>,
) -> Result<(), RequestError> {
    let request = RouteNetlinkMessage::DelRoute(message(id, route, device));
    connection.change(request, 0).await
}

fn message(id: &RouteId, route: &Route, device: Option<u32>) -> RouteMessage {
    let value = |address: IpAddr| match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    };
    let mut message = RouteMessage::default();
    message.header.address_family = family(id.prefix.addr());
    message.header.destination_prefix_length = id.prefix.prefix_len();
    message.header.protocol = RouteProtocol::from(PROTOCOL);
    message.header.table = u8::try_from(id.table).unwrap_or_default();
    message.attributes = vec![
        RouteAttribute::Table(id.table),
        RouteAttribute::Priority(id.metric),
    ];
    if id.prefix.prefix_len() > 0 {
        let destination = RouteAttribute::Destination(value(id.prefix.addr()));
        message.attributes.push(destination);
    }
    message.header.kind = match route {
        Route::Unreachable => RouteType::Unreachable,
        Route::Blackhole => RouteType::BlackHole,
        Route::Via { gateway, .. } => {
            message
                .attributes
                .push(RouteAttribute::Gateway(value(*gateway)));
            RouteType::Unicast
        }
    };
    message.attributes.extend(device.map(RouteAttribute::Oif));
    message
}
