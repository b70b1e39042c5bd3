//! Copies of bgpd's routes, which carry the packets when zebra takes the routes away.

use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    route::{RouteAttribute, RouteFlags, RouteMessage, RouteNextHopFlags, RouteProtocol},
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

    async fn routes(&self, protocol: RouteProtocol) -> Result<Vec<RouteMessage>, RequestError> {
        let mut routes = Vec::new();
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let mut request = RouteMessage::default();
            request.header.address_family = family;
            request.header.protocol = protocol;
            let request = RouteNetlinkMessage::GetRoute(request);
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
    use super::*;

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
