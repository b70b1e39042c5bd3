//! Routes of our protocol, and those of the host that go with a NIC.

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{
        RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteNextHop,
        RouteNextHopFlags, RouteProtocol, RouteScope, RouteType, RouteVia,
    },
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::{Connection, RequestError, address::family};
use crate::{
    HostHop, HostRoute,
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
    let Attributes {
        prefix,
        table,
        metric,
        hops,
        ..
    } = attributes(&message, names)?;
    let hop = hops.into_iter().next();
    let route = match message.header.kind {
        RouteType::Unreachable => Route::Unreachable,
        RouteType::BlackHole => Route::Blackhole,
        _ => {
            let Hop {
                gateway, device, ..
            } = hop?;
            Route::Via {
                gateway: gateway?,
                device,
            }
        }
    };
    let id = RouteId {
        domain: connection.domain,
        table,
        prefix,
        metric,
    };
    Some((id, route))
}

/// What the attributes of a route say.
struct Attributes {
    prefix: IpNet,
    table: u32,
    metric: u32,
    source: Option<IpAddr>,
    mtu: Option<u32>,
    /// The ways it takes, as far as their devices have names.
    hops: Vec<Hop>,
}

/// One of the ways that a route takes.
struct Hop {
    gateway: Option<IpAddr>,
    device: String,
    on_link: bool,
    /// Less one.
    weight: u8,
}

fn attributes(message: &RouteMessage, names: &BTreeMap<u32, String>) -> Option<Attributes> {
    let mut table = u32::from(message.header.table);
    let mut prefix = match message.header.address_family {
        AddressFamily::Inet => IpNet::V4(Ipv4Net::default()),
        _ => IpNet::V6(Ipv6Net::default()),
    };
    let (mut metric, mut source, mut mtu) = (0, None, None);
    let (mut gateway, mut device) = (None, None);
    let mut hops = Vec::new();
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(id) => table = *id,
            RouteAttribute::Priority(priority) => metric = *priority,
            RouteAttribute::Destination(destination) => {
                let length = message.header.destination_prefix_length;
                prefix = IpNet::new(address(destination)?, length).ok()?;
            }
            RouteAttribute::Gateway(via) => gateway = address(via),
            RouteAttribute::Via(RouteVia::Inet6(via)) => gateway = Some(IpAddr::V6(*via)),
            RouteAttribute::PrefSource(from) => source = address(from),
            RouteAttribute::Oif(index) => device = names.get(index).cloned(),
            RouteAttribute::Metrics(metrics) => {
                mtu = metrics.iter().find_map(|metric| match metric {
                    RouteMetric::Mtu(mtu) => Some(*mtu),
                    _ => None,
                });
            }
            RouteAttribute::MultiPath(paths) => {
                hops.extend(paths.iter().filter_map(|path| hop(path, names)));
            }
            _ => {}
        }
    }
    hops.extend(device.map(|device| Hop {
        gateway,
        device,
        on_link: message.header.flags.contains(RouteFlags::Onlink),
        weight: 0,
    }));
    Some(Attributes {
        prefix,
        table,
        metric,
        source,
        mtu,
        hops,
    })
}

fn hop(path: &RouteNextHop, names: &BTreeMap<u32, String>) -> Option<Hop> {
    let gateway = path
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            RouteAttribute::Gateway(via) => address(via),
            RouteAttribute::Via(RouteVia::Inet6(via)) => Some(IpAddr::V6(*via)),
            _ => None,
        });
    Some(Hop {
        gateway,
        device: names.get(&path.interface_index)?.clone(),
        on_link: path.flags.contains(RouteNextHopFlags::Onlink),
        weight: path.hops,
    })
}

/// The unicast routes of the host, of any protocol.
pub(super) async fn dump_host(
    connection: &Connection,
    names: &BTreeMap<u32, String>,
) -> Result<Vec<HostRoute>, RequestError> {
    let mut routes = Vec::new();
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        let objects = connection
            .dump(RouteNetlinkMessage::GetRoute(request))
            .await?;
        routes.extend(objects.iter().filter_map(|object| host(object, names)));
    }
    routes.sort();
    Ok(routes)
}

fn host(object: &RouteNetlinkMessage, names: &BTreeMap<u32, String>) -> Option<HostRoute> {
    let RouteNetlinkMessage::NewRoute(message) = object else {
        return None;
    };
    let read = attributes(message, names).filter(|it| {
        message.header.kind == RouteType::Unicast && it.table != crate::object::TABLE_LOCAL
    });
    let read = read?;
    let mut hops = read.hops.into_iter();
    let first = hops.next()?;
    let more = hops.map(|hop| HostHop {
        gateway: hop.gateway,
        device: hop.device,
        on_link: hop.on_link,
        weight: hop.weight,
    });
    Some(HostRoute {
        gateway: first.gateway,
        destination: read.prefix,
        device: first.device,
        table: read.table,
        metric: read.metric,
        protocol: message.header.protocol.into(),
        source: read.source,
        on_link: first.on_link,
        mtu: read.mtu,
        weight: first.weight,
        more: more.collect(),
    })
}

/// Makes a route of the host again, as it was; `devices` are the indices of the links of its ways, in their order.
pub(super) async fn restore(
    connection: &Connection,
    route: &HostRoute,
    devices: &[u32],
) -> Result<(), RequestError> {
    let mut message = RouteMessage::default();
    message.header.address_family = family(route.destination.addr());
    message.header.destination_prefix_length = route.destination.prefix_len();
    message.header.protocol = RouteProtocol::from(route.protocol);
    message.header.table = u8::try_from(route.table).unwrap_or_default();
    message.header.kind = RouteType::Unicast;
    message.header.scope = match route.gateway {
        Some(_) => RouteScope::Universe,
        None => RouteScope::Link,
    };
    message.attributes = vec![
        RouteAttribute::Table(route.table),
        RouteAttribute::Priority(route.metric),
    ];
    if route.destination.prefix_len() > 0 {
        let destination = RouteAttribute::Destination(value(route.destination.addr()));
        message.attributes.push(destination);
    }
    let gateway = |gateway: IpAddr| match (route.destination, gateway) {
        (IpNet::V4(_), IpAddr::V6(via)) => RouteAttribute::Via(RouteVia::Inet6(via)),
        (_, gateway) => RouteAttribute::Gateway(value(gateway)),
    };
    if route.more.is_empty() {
        if route.on_link {
            message.header.flags = RouteFlags::Onlink;
        }
        let device = devices.iter().map(|index| RouteAttribute::Oif(*index));
        message.attributes.extend(device);
        message.attributes.extend(route.gateway.map(gateway));
    } else {
        let hops = route.apart().zip(devices).map(|(hop, index)| {
            let mut path = RouteNextHop::default();
            path.interface_index = *index;
            path.hops = hop.weight;
            if hop.on_link {
                path.flags = RouteNextHopFlags::Onlink;
            }
            path.attributes = hop.gateway.map(gateway).into_iter().collect();
            path
        });
        let paths = RouteAttribute::MultiPath(hops.collect());
        message.attributes.push(paths);
    }
    let metrics = route
        .mtu
        .map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)]));
    message.attributes.extend(metrics);
    let source = route
        .source
        .map(|source| RouteAttribute::PrefSource(value(source)));
    message.attributes.extend(source);
    let request = RouteNetlinkMessage::NewRoute(message);
    connection.change(request, NLM_F_CREATE | NLM_F_EXCL).await
}

fn value(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

fn address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some(IpAddr::V4(*address)),
        RouteAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        _ => None,
    }
}

/// Adds a route. It never replaces one: another with the same key belongs to another program.
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
