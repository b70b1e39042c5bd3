//! Entries of zebra as the kernel announces, dumps, takes and removes them.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use api::value::MacAddress;
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage},
    neighbour::{
        NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourHeader, NeighbourMessage,
        NeighbourState,
    },
    route::RouteProtocol,
};
use rtnetlink::{
    packet_core::{
        NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NetlinkMessage, NetlinkPayload,
    },
    sys::{
        AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE,
    },
};

use super::{
    Connection, Error, Kernel, RequestError, message::Message, namespace::Namespace, read,
};
use crate::{
    Domain, Kind,
    learned::{Entry, Origin},
};

/// Multicast groups as bits: links, neighbors (which bridges' entries are, too).
const GROUPS: u32 = 1 | 1 << 2;
/// Size of the receive buffer: about ten thousand notifications while the reader is busy.
const RECEIVE_BUFFER: u32 = 4 << 20;
/// What the kernel says when it had more to announce than the socket could hold.
const NO_BUFFER_SPACE: i32 = 105;
/// FRR's own name for itself as the maker of neighbors.
const ZEBRA: u8 = 11;
/// `NUD_NOARP` and `NUD_PERMANENT`.
const FLOODED: u16 = 0x40 | 0x80;

/// What the kernel announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// An entry was made or changed.
    Made(Entry, Origin),
    /// An entry was deleted.
    Gone(Entry),
    /// A device is down or gone.
    Down(u32),
    /// Something was missed: everything is to be looked at anew.
    Missed,
}

/// The entries of the router's namespace.
pub struct Learned {
    socket: TokioSocket,
    pub(super) connection: Connection,
    /// VXLAN devices by index.
    vxlans: BTreeMap<u32, String>,
    queue: VecDeque<Announced>,
}

impl fmt::Debug for Learned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learned")
            .field("vxlans", &self.vxlans)
            .finish_non_exhaustive()
    }
}

impl Kernel {
    /// The entries of the router's namespace, if it exists now. Must be called on the runtime that will use them.
    pub async fn learned(&self) -> Result<Option<Learned>, Error> {
        let failed = |source| Error::OpenNamespace {
            name: self.name.clone(),
            source,
        };
        let Some(namespace) = Namespace::named(&self.name).map_err(failed)? else {
            return Ok(None);
        };
        let runtime = tokio::runtime::Handle::current();
        let socket = namespace.run(move || {
            let _context = runtime.enter();
            open()
        });
        let socket = socket.await.and_then(|socket| socket).map_err(failed)?;
        let connection = namespace.connect(Domain::Router).await.map_err(failed)?;
        Ok(Some(Learned {
            socket,
            connection,
            vxlans: BTreeMap::new(),
            queue: VecDeque::new(),
        }))
    }
}

fn open() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    // A smaller buffer is acceptable.
    let _as_is = socket.socket_mut().set_rx_buf_sz(RECEIVE_BUFFER);
    socket.socket_mut().bind(&SocketAddr::new(0, GROUPS))?;
    Ok(socket)
}

impl Learned {
    /// Waits for the next announcement. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Announced {
        loop {
            if let Some(announced) = self.queue.pop_front() {
                return announced;
            }
            match self.socket.recv_from_full().await {
                Ok((bytes, _)) => self.take(&bytes),
                Err(error) if error.raw_os_error() == Some(NO_BUFFER_SPACE) => {
                    return Announced::Missed;
                }
                // Nothing is announced any more.
                Err(_) => std::future::pending().await,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let Ok(message) = NetlinkMessage::<Message>::deserialize(rest) else {
                self.queue.push_back(Announced::Missed);
                return;
            };
            let length = usize::try_from(message.header.length).unwrap_or(usize::MAX);
            if let NetlinkPayload::InnerMessage(Message(inner)) = &message.payload {
                let announced = self.announced(inner);
                self.queue.extend(announced);
            }
            rest = rest
                .get(length.next_multiple_of(4).max(4)..)
                .unwrap_or_default();
        }
    }

    fn announced(&mut self, message: &RouteNetlinkMessage) -> Option<Announced> {
        match message {
            RouteNetlinkMessage::NewNeighbour(message) => {
                let (entry, origin) = entry(message, &self.vxlans)?;
                Some(Announced::Made(entry, origin))
            }
            RouteNetlinkMessage::DelNeighbour(message) => {
                let (entry, _) = entry(message, &self.vxlans)?;
                Some(Announced::Gone(entry.id()))
            }
            RouteNetlinkMessage::NewLink(link) => {
                let index = link.header.index;
                if let Some(name) = vxlan_name(link) {
                    self.vxlans.insert(index, name);
                }
                let is_down = !link.header.flags.contains(LinkFlags::Up);
                is_down.then_some(Announced::Down(index))
            }
            // A port that leaves its bridge is announced as a link of the bridge that goes.
            RouteNetlinkMessage::DelLink(link)
                if link.header.interface_family != AddressFamily::Bridge =>
            {
                self.vxlans.remove(&link.header.index);
                Some(Announced::Down(link.header.index))
            }
            _ => None,
        }
    }

    /// All entries.
    pub async fn dump(&mut self) -> Result<Vec<(Entry, Origin)>, RequestError> {
        let links = read::links(&self.connection).await?;
        let vxlans = links
            .into_iter()
            .filter(|link| matches!(&link.kind, read::RawKind::Known(Kind::Vxlan { .. })));
        self.vxlans = vxlans.map(|link| (link.index, link.name)).collect();
        let mut found = Vec::new();
        for family in [
            AddressFamily::Bridge,
            AddressFamily::Inet,
            AddressFamily::Inet6,
        ] {
            let mut request = NeighbourMessage::default();
            request.header.family = family;
            let request = RouteNetlinkMessage::GetNeighbour(request);
            let objects = self.connection.dump(request).await?;
            found.extend(objects.iter().filter_map(|object| match object {
                RouteNetlinkMessage::NewNeighbour(message) => entry(message, &self.vxlans),
                _ => None,
            }));
        }
        Ok(found)
    }

    /// The index of a VXLAN device.
    pub fn vxlan(&self, name: &str) -> Option<u32> {
        let mut found = self.vxlans.iter().filter(|(_, it)| *it == name);
        found.next().map(|(index, _)| *index)
    }

    /// Puts an entry back, marked. One that zebra has made meanwhile stays.
    pub async fn put_back(&self, entry: &Entry) -> Result<(), RequestError> {
        let flags = match entry {
            _ if entry.is_flooded() => NLM_F_CREATE | NLM_F_APPEND,
            Entry::Endpoint { .. } | Entry::Port { .. } => NLM_F_CREATE | NLM_F_EXCL,
            // The kernel may be asking for the address already; packets wait for the answer.
            Entry::Neighbor { .. } => NLM_F_CREATE | NLM_F_REPLACE,
        };
        let request = RouteNetlinkMessage::NewNeighbour(message(entry));
        match self.connection.change(request, flags).await {
            Err(error) if error.errno() == Some(17) => Ok(()),
            outcome => outcome,
        }
    }

    /// Makes an entry that was put back like zebra's own.
    pub async fn hand_over(&self, entry: &Entry) -> Result<(), RequestError> {
        let mut message = message(entry);
        message.header.flags |= NeighbourFlags::ExtLearned;
        message.header.state = match entry {
            Entry::Endpoint { .. } | Entry::Port { .. } => NeighbourState::Reachable,
            Entry::Neighbor { .. } => NeighbourState::Noarp,
        };
        let request = RouteNetlinkMessage::NewNeighbour(message);
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.connection.change(request, flags).await
    }

    /// Removes an entry; a missing entry is not an error.
    pub async fn remove(&self, entry: &Entry) -> Result<(), RequestError> {
        let request = RouteNetlinkMessage::DelNeighbour(message(entry));
        match self.connection.change(request, 0).await {
            // No such entry, no such device.
            Err(error) if matches!(error.errno(), Some(2 | 6 | 19)) => Ok(()),
            outcome => outcome,
        }
    }
}

fn vxlan_name(link: &LinkMessage) -> Option<String> {
    let is_vxlan = link.attributes.iter().any(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.contains(&LinkInfo::Kind(InfoKind::Vxlan)),
        _ => false,
    });
    let name = link.attributes.iter().find_map(|it| match it {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    name.filter(|_| is_vxlan)
}

/// The entry of a message; `None` for one of a bridge that is not behind a VXLAN device.
fn entry(message: &NeighbourMessage, vxlans: &BTreeMap<u32, String>) -> Option<(Entry, Origin)> {
    let NeighbourHeader {
        family,
        ifindex: device,
        state,
        flags,
        ..
    } = message.header;
    let (mut mac, mut address, mut vlan) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::LinkLayerAddress(bytes) => {
                mac = bytes.as_slice().try_into().ok().map(MacAddress::new);
            }
            NeighbourAttribute::Destination(destination) => address = ip(destination),
            NeighbourAttribute::Vlan(id) => vlan = Some(*id),
            _ => {}
        }
    }
    let by_zebra = flags.intersects(NeighbourFlags::ExtLearned | NeighbourFlags::Sticky);
    let is_permanent = state == NeighbourState::Permanent;
    match (family, address) {
        (AddressFamily::Bridge, _) if !vxlans.contains_key(&device) => None,
        (AddressFamily::Bridge, Some(endpoint)) => {
            let mac = mac?;
            let entry = Entry::Endpoint {
                device,
                mac,
                endpoint,
            };
            Some((entry, Origin::Zebra))
        }
        // Of the device itself, and not of its bridge: kernel 6.12 announces the entry of a tunnel once more, without its endpoint.
        (AddressFamily::Bridge, None) if flags.contains(NeighbourFlags::Own) => None,
        (AddressFamily::Bridge, None) => {
            let mac = mac?;
            let origin = match state {
                _ if by_zebra => Origin::Zebra,
                NeighbourState::Reachable | NeighbourState::Stale => Origin::Held,
                _ => Origin::Other,
            };
            Some((Entry::Port { device, mac, vlan }, origin))
        }
        (AddressFamily::Inet | AddressFamily::Inet6, Some(address)) => {
            let origin = match (by_zebra && mac.is_some(), is_permanent) {
                (true, true) => Origin::Held,
                (true, false) => Origin::Zebra,
                (false, _) => Origin::Other,
            };
            let entry = Entry::Neighbor {
                device,
                address,
                mac,
            };
            Some((entry, origin))
        }
        _ => None,
    }
}

fn ip(address: &NeighbourAddress) -> Option<IpAddr> {
    match address {
        NeighbourAddress::Inet(address) => Some(IpAddr::V4(*address)),
        NeighbourAddress::Inet6(address) => Some(IpAddr::V6(*address)),
        NeighbourAddress::Other(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(bytes.as_slice())
                .ok()
                .map(|it| Ipv4Addr::from(it).into()),
            16 => <[u8; 16]>::try_from(bytes.as_slice())
                .ok()
                .map(|it| Ipv6Addr::from(it).into()),
            _ => None,
        },
        _ => None,
    }
}

/// An entry as it is put back, and removed.
fn message(entry: &Entry) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    let header = &mut message.header;
    header.ifindex = entry.device();
    let lower = |mac: MacAddress| NeighbourAttribute::LinkLayerAddress(mac.bytes().to_vec());
    match *entry {
        Entry::Endpoint { mac, endpoint, .. } => {
            header.family = AddressFamily::Bridge;
            header.flags = NeighbourFlags::Own;
            if entry.is_flooded() {
                header.state = NeighbourState::Other(FLOODED);
            } else {
                header.flags |= NeighbourFlags::ExtLearned;
                header.state = NeighbourState::Reachable;
            }
            let endpoint = NeighbourAttribute::Destination(endpoint.into());
            message.attributes = vec![lower(mac), endpoint];
        }
        Entry::Port { mac, vlan, .. } => {
            header.family = AddressFamily::Bridge;
            header.flags = NeighbourFlags::Controller;
            header.state = NeighbourState::Reachable;
            message.attributes = vec![lower(mac)];
            let vlan = vlan.map(NeighbourAttribute::Vlan);
            message.attributes.extend(vlan);
        }
        Entry::Neighbor { address, mac, .. } => {
            header.family = super::address::family(address);
            header.flags = NeighbourFlags::ExtLearned;
            header.state = NeighbourState::Permanent;
            message.attributes = vec![
                NeighbourAttribute::Destination(address.into()),
                NeighbourAttribute::Protocol(RouteProtocol::from(ZEBRA)),
            ];
            message.attributes.extend(mac.map(lower));
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_that_was_put_back_is_read_as_held_and_one_of_zebra_as_zebras() {
        let vxlans = BTreeMap::from([(7, "vx".to_owned())]);
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        let address = IpAddr::from([10, 254, 0, 1]);
        let port = Entry::Port {
            device: 7,
            mac,
            vlan: Some(1),
        };
        let neighbor = Entry::Neighbor {
            device: 8,
            address,
            mac: Some(mac),
        };
        for held in [port, neighbor] {
            let mut put_back = message(&held);
            // The kernel does not repeat these flags.
            put_back.header.flags -= NeighbourFlags::Controller;
            assert_eq!(entry(&put_back, &vxlans), Some((held, Origin::Held)));
            put_back.header.flags |= NeighbourFlags::ExtLearned;
            put_back.header.state = NeighbourState::Noarp;
            assert_eq!(entry(&put_back, &vxlans), Some((held, Origin::Zebra)));
        }
        let mut of_tunnel = message(&port);
        of_tunnel.header.flags = NeighbourFlags::Own;
        assert_eq!(entry(&of_tunnel, &vxlans), None, "of no bridge");
        let elsewhere = BTreeMap::new();
        assert_eq!(entry(&message(&port), &elsewhere), None, "a learned MAC");
        let mut deleted = message(&neighbor);
        deleted.header.state = NeighbourState::Failed;
        deleted.attributes.truncate(2);
        let read = entry(&deleted, &vxlans).map(|(entry, origin)| (entry.id(), origin));
        assert_eq!(read, Some((neighbor.id(), Origin::Other)));
    }
}
