//! Changes as the kernel announces them: links, addresses, rules, filters, settings of the router, and our own routes.
//!
//! A notification only means that something changed; the next observation finds out what. Routes of other protocols change
//! by the thousand and are ignored. So are foreign links of the host, which
//! are created with every pod, except a new bridge, which a segment may wait for. An overrun of the socket counts as a change: something was missed.

use std::{io, sync::Arc};

use netlink_packet_route::{
    RouteNetlinkMessage,
    link::{InfoKind, LinkAttribute, LinkInfo},
    route::RouteProtocol,
};
use rtnetlink::{
    packet_core::{NetlinkMessage, NetlinkPayload},
    sys::{
        AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE,
    },
};
use tokio::{sync::Notify, task::JoinHandle};

use super::{Error, Kernel, namespace::Namespace};
use crate::{Domain, owned::Owner};

/// Multicast groups as bits: links, IPv4 addresses, IPv4 routes, IPv4 rules, IPv6 addresses, IPv6 routes, traffic control, IPv6 rules.
const GROUPS: u32 = 1 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 3 | 1 << 18;
/// Besides these, in the router's namespace: settings such as forwarding. In the host's they are announced with every link of a pod.
const SETTINGS: u32 = 1 << 23 | 1 << 24;

/// Announcements of changes, until this value is dropped.
#[derive(Debug)]
pub struct Changes {
    notify: Arc<Notify>,
    tasks: Vec<JoinHandle<()>>,
}

impl Changes {
    /// Waits until something has changed since the last call.
    pub async fn next(&self) {
        self.notify.notified().await;
    }

    /// Whether a socket is gone, so that not every change is announced any more. Its end was announced as a change.
    pub fn is_over(&self) -> bool {
        self.tasks.iter().any(JoinHandle::is_finished)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl Kernel {
    /// Announces every change in the host's namespace, also of links, addresses and routes that are not ours.
    pub fn changes_of_host(&self) -> Result<Changes, Error> {
        let socket = open(GROUPS).map_err(Error::OpenHost)?;
        let notify = Arc::new(Notify::new());
        let listen = listen(socket, |_| true, Arc::clone(&notify));
        let tasks = vec![tokio::spawn(listen)];
        Ok(Changes { notify, tasks })
    }

    /// Announces changes in both namespaces, as far as they exist now and concern what is ours.
    pub async fn changes(&self) -> Result<Changes, Error> {
        let notify = Arc::new(Notify::new());
        let mut tasks = Vec::new();
        let failed = |source| Error::OpenNamespace {
            name: self.name.clone(),
            source,
        };
        let router = Namespace::named(&self.name).map_err(failed)?;
        let both = [
            (Domain::Host, Some(self.host_namespace.clone()), GROUPS),
            (Domain::Router, router, GROUPS | SETTINGS),
        ];
        for (domain, namespace, groups) in both {
            let Some(namespace) = namespace else { continue };
            let runtime = tokio::runtime::Handle::current();
            let socket = namespace.run(move || {
                let _context = runtime.enter();
                open(groups)
            });
            let socket = socket.await.and_then(|socket| socket).map_err(failed)?;
            let concerns = move |bytes: &[u8]| concerns_us(bytes, domain);
            tasks.push(tokio::spawn(listen(socket, concerns, Arc::clone(&notify))));
        }
        Ok(Changes { notify, tasks })
    }
}

fn open(groups: u32) -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    socket.socket_mut().bind(&SocketAddr::new(0, groups))?;
    Ok(socket)
}

async fn listen(socket: TokioSocket, concerns: impl Fn(&[u8]) -> bool, notify: Arc<Notify>) {
    loop {
        match socket.recv_from_full().await {
            Ok((bytes, _)) => {
                if concerns(&bytes) {
                    notify.notify_one();
                }
            }
            // The kernel had more to say than the socket could hold.
            Err(error) if error.raw_os_error() == Some(105) => notify.notify_one(),
            Err(_) => break,
        }
    }
    notify.notify_one();
}

/// Whether any of these messages may be about something of ours.
fn concerns_us(bytes: &[u8], domain: Domain) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) else {
            // What cannot be read may be anything.
            return true;
        };
        let length = usize::try_from(message.header.length).unwrap_or(usize::MAX);
        if let NetlinkPayload::InnerMessage(inner) = &message.payload
            && is_ours(inner, domain)
        {
            return true;
        }
        rest = rest
            .get(length.next_multiple_of(4).max(4)..)
            .unwrap_or_default();
    }
    false
}

fn is_ours(message: &RouteNetlinkMessage, domain: Domain) -> bool {
    use RouteNetlinkMessage as Message;
    match message {
        Message::NewRoute(route) | Message::DelRoute(route) => {
            route.header.protocol == RouteProtocol::from(crate::owned::PROTOCOL)
        }
        Message::NewLink(link) | Message::DelLink(link) if domain == Domain::Host => {
            let group = link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Group(group) => Some(*group),
                _ => None,
            });
            group.is_some_and(|group| Owner::of_group(group) != Owner::Foreign)
                || is_new_bridge(message)
        }
        // Addresses of pods' links come with the pods; ours are looked at every half minute, too.
        Message::NewAddress(address) if domain == Domain::Host => !address
            .attributes
            .iter()
            .any(|it| matches!(it, netlink_packet_route::address::AddressAttribute::Address(ip) if is_link_local(*ip))),
        _ => true,
    }
}

/// Whether a bridge was made just now: only then the kernel says that everything about a link has changed.
fn is_new_bridge(message: &RouteNetlinkMessage) -> bool {
    let RouteNetlinkMessage::NewLink(link) = message else {
        return false;
    };
    link.header.change_mask.bits() == u32::MAX
        && link.attributes.iter().any(|attribute| {
            matches!(attribute, LinkAttribute::LinkInfo(infos) if infos.contains(&LinkInfo::Kind(InfoKind::Bridge)))
        })
}

fn is_link_local(address: std::net::IpAddr) -> bool {
    matches!(address, std::net::IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::{LinkFlags, LinkMessage};

    use super::*;

    fn announced(kind: InfoKind, change: u32, group: u32) -> RouteNetlinkMessage {
        let mut link = LinkMessage::default();
        link.header.change_mask = LinkFlags::from_bits_retain(change);
        link.attributes = vec![
            LinkAttribute::Group(group),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)]),
        ];
        RouteNetlinkMessage::NewLink(link)
    }

    #[test]
    fn of_the_hosts_foreign_links_only_new_bridges_concern_us() {
        let concerns = |kind, change, group| is_ours(&announced(kind, change, group), Domain::Host);
        assert!(concerns(InfoKind::Bridge, u32::MAX, 0));
        assert!(!concerns(InfoKind::Bridge, 0, 0));
        assert!(!concerns(InfoKind::Veth, u32::MAX, 0));
        assert!(concerns(InfoKind::Veth, 0, crate::owned::GROUP_MADE));
    }
}
