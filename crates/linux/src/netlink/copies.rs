//! Copies of bgpd's routes, which carry the packets when zebra takes the routes away.

use std::{collections::BTreeSet, net::IpAddr};

use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{
        RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHopFlags, RouteProtocol,
        RouteVia,
    },
};
use rtnetlink::packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::{Learned, RequestError};
use crate::learned::{METRIC, MOST_ROUTES, PROTOCOL};

impl Learned {
    /// Copies the routes of bgpd, of all tables; returns how many there are. The originals are preferred as long as they are
    /// there.
    pub async fn copy_routes(&self) -> Result<usize, RequestError> {
        let mut copied = 0;
        for route in self.routes(RouteProtocol::Bgp).await? {
            let request = RouteNetlinkMessage::NewRoute(copy(route));
            match self
                .connection
                .change(request, NLM_F_CREATE | NLM_F_EXCL)
                .await
            {
                Ok(()) => copied += 1,
                // It is there from an earlier death, or its way has just gone.
                Err(RequestError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(copied)
    }

    /// Removes all copies; returns how many there were.
    pub async fn remove_copies(&self) -> Result<usize, RequestError> {
        let mut removed = 0;
        for mut route in self.routes(RouteProtocol::from(PROTOCOL)).await? {
            route.attributes.retain(is_of_the_way);
            let request = RouteNetlinkMessage::DelRoute(route);
            match self.connection.change(request, 0).await {
                Ok(()) => removed += 1,
                // It went with its device.
                Err(RequestError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// The gateways of bgpd's routes, each with the index of its device.
    pub async fn gateways(&self) -> Result<BTreeSet<(u32, IpAddr)>, RequestError> {
        let mut gateways = BTreeSet::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let request = request(family, RouteProtocol::Bgp);
            let take = |object| {
                if let RouteNetlinkMessage::NewRoute(route) = object
                    && route.header.protocol == RouteProtocol::Bgp
                {
                    gateways.extend(gateways_of(&route));
                }
            };
            self.connection.dump_each(request, take).await?;
        }
        Ok(gateways)
    }

    async fn routes(&self, protocol: RouteProtocol) -> Result<Vec<RouteMessage>, RequestError> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let request = request(family, protocol);
            let objects = self.connection.dump_at_most(request, MOST_ROUTES).await?;
            routes.extend(objects.into_iter().filter_map(|object| match object {
                RouteNetlinkMessage::NewRoute(route) if route.header.protocol == protocol => {
                    Some(route)
                }
                _ => None,
            }));
        }
        Ok(routes)
    }
}

fn request(family: AddressFamily, protocol: RouteProtocol) -> RouteNetlinkMessage {
    let mut request = RouteMessage::default();
    request.header.address_family = family;
    request.header.protocol = protocol;
    RouteNetlinkMessage::GetRoute(request)
}

fn gateways_of(route: &RouteMessage) -> Vec<(u32, IpAddr)> {
    let one = |attributes: &[RouteAttribute], device: Option<u32>| {
        let own = attributes.iter().find_map(|it| match it {
            RouteAttribute::Oif(device) => Some(*device),
            _ => None,
        });
        let address = attributes.iter().find_map(|it| match it {
            RouteAttribute::Gateway(RouteAddress::Inet(address))
            | RouteAttribute::Via(RouteVia::Inet(address)) => Some(IpAddr::V4(*address)),
            RouteAttribute::Gateway(RouteAddress::Inet6(address))
            | RouteAttribute::Via(RouteVia::Inet6(address)) => Some(IpAddr::V6(*address)),
            _ => None,
        });
        device.or(own).zip(address)
    };
    let several = route.attributes.iter().flat_map(|it| match it {
        RouteAttribute::MultiPath(hops) => hops.as_slice(),
        _ => &[],
    });
    let several = several.filter_map(|hop| one(&hop.attributes, Some(hop.interface_index)));
    several.chain(one(&route.attributes, None)).collect()
}

/// A route as a copy: the same way, spelled out instead of by the number of zebra's next hop, which may go before the route.
fn copy(mut route: RouteMessage) -> RouteMessage {
    route.header.protocol = RouteProtocol::from(PROTOCOL);
    route.header.flags &= RouteFlags::Onlink;
    route.attributes.retain(is_of_the_way);
    let mut metric = None;
    for attribute in &mut route.attributes {
        match attribute {
            RouteAttribute::Priority(priority) => metric = Some(*priority),
            RouteAttribute::MultiPath(hops) => {
                for hop in hops {
                    hop.flags &= RouteNextHopFlags::Onlink;
                }
            }
            _ => {}
        }
    }
    route
        .attributes
        .retain(|it| !matches!(it, RouteAttribute::Priority(_)));
    let metric = METRIC | (metric.unwrap_or_default() & !METRIC);
    route.attributes.push(RouteAttribute::Priority(metric));
    route
}

fn is_of_the_way(attribute: &RouteAttribute) -> bool {
    matches!(
        attribute,
        RouteAttribute::Destination(_)
            | RouteAttribute::Gateway(_)
            | RouteAttribute::Via(_)
            | RouteAttribute::Oif(_)
            | RouteAttribute::MultiPath(_)
            | RouteAttribute::PrefSource(_)
            | RouteAttribute::Table(_)
            | RouteAttribute::Priority(_)
            | RouteAttribute::EncapType(_)
            | RouteAttribute::Encap(_)
    )
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::route::RouteNextHop;

    use super::*;

    #[test]
    fn the_gateways_of_a_route_are_read_with_their_devices() {
        let [first, second] = [1, 2].map(|last| [10, 254, 0, last]);
        let mut route = RouteMessage::default();
        let gateway =
            |address: [u8; 4]| RouteAttribute::Gateway(RouteAddress::Inet(address.into()));
        route.attributes = vec![gateway(first), RouteAttribute::Oif(6)];
        assert_eq!(gateways_of(&route), [(6, IpAddr::from(first))]);
        let mut hops = [RouteNextHop::default(), RouteNextHop::default()];
        for (hop, (device, address)) in hops.iter_mut().zip([(7, first), (8, second)]) {
            hop.interface_index = device;
            hop.attributes = vec![gateway(address)];
        }
        route.attributes = vec![RouteAttribute::MultiPath(hops.to_vec())];
        let both = [(7, IpAddr::from(first)), (8, IpAddr::from(second))];
        assert_eq!(gateways_of(&route), both);
    }

    #[test]
    fn a_copy_takes_the_same_way_without_the_next_hop_of_zebra_and_is_preferred_least() {
        let mut route = RouteMessage::default();
        route.header.protocol = RouteProtocol::Bgp;
        route.header.flags = RouteFlags::Onlink | RouteFlags::Dead;
        route.attributes = vec![
            RouteAttribute::Table(4001),
            RouteAttribute::Priority(20),
            RouteAttribute::NhId(23),
            RouteAttribute::Oif(6),
        ];
        let copy = copy(route);
        assert_eq!(u8::from(copy.header.protocol), PROTOCOL);
        assert_eq!(copy.header.flags, RouteFlags::Onlink);
        assert_eq!(
            copy.attributes,
            [
                RouteAttribute::Table(4001),
                RouteAttribute::Oif(6),
                RouteAttribute::Priority(0xff00_0014),
            ]
        );
    }
}
