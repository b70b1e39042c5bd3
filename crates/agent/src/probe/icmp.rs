//! One ICMP echo request and its reply.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    sync::atomic::{AtomicU16, Ordering},
    time::{Duration, Instant},
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, sockopt,
    sockopt::Timeout,
};

const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;

/// Numbers requests, so that no reply is taken for another's.
static SEQUENCE: AtomicU16 = AtomicU16::new(1);

/// Sends an echo request and waits for the reply. A link-local address needs the interface it is on.
pub(super) async fn echo(
    address: IpAddr,
    interface: Option<String>,
    patience: Duration,
) -> Result<(), String> {
    let exchange = move || exchange(address, interface.as_deref(), patience);
    match tokio::task::spawn_blocking(exchange).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => Err("no reply".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn exchange(address: IpAddr, interface: Option<&str>, patience: Duration) -> io::Result<()> {
    let sequence = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let identifier = u16::try_from(std::process::id() & 0xffff).unwrap_or_default();
    let socket = open(address)?;
    let request = request(address, identifier, sequence);
    let scope = interface.filter(|_| is_link_local(address));
    let to = target(address, scope);
    rustix::net::sendto(&socket, &request, SendFlags::empty(), &to)?;
    let deadline = Instant::now() + patience;
    let mut buffer = [0_u8; 1500];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        sockopt::set_socket_timeout(&socket, Timeout::Recv, Some(left))?;
        let (length, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let packet = buffer.get(..length).unwrap_or_default();
        if is_reply(address, packet, identifier, sequence) {
            return Ok(());
        }
    }
}

fn open(address: IpAddr) -> io::Result<OwnedFd> {
    let (family, protocol) = match address {
        IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
        IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(
        family,
        SocketType::RAW,
        flags,
        Some(protocol),
    )?)
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// The address to send to; a link-local one is meant on the given interface.
fn target(address: IpAddr, interface: Option<&str>) -> SocketAddr {
    let index = |name: &str| {
        let text = std::fs::read_to_string(format!("/sys/class/net/{name}/ifindex"));
        text.ok()?.trim().parse().ok()
    };
    match address {
        IpAddr::V4(address) => (address, 0).into(),
        IpAddr::V6(address) => {
            let scope = interface.and_then(index).unwrap_or(0);
            std::net::SocketAddrV6::new(address, 0, 0, scope).into()
        }
    }
}

fn request(address: IpAddr, identifier: u16, sequence: u16) -> Vec<u8> {
    let kind = match address {
        IpAddr::V4(_) => ECHO_REQUEST,
        IpAddr::V6(_) => ECHO_REQUEST_V6,
    };
    let mut packet = vec![kind, 0, 0, 0];
    packet.extend(identifier.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend(*b"selvedge");
    // The kernel computes the checksum of ICMPv6 itself.
    let sum = checksum(&packet).to_be_bytes();
    if let (IpAddr::V4(_), Some(field)) = (address, packet.get_mut(2..4)) {
        field.copy_from_slice(&sum);
    }
    packet
}

fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        [high] => u32::from(*high) << 8,
        _ => 0,
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

/// Whether a packet is the reply to our request. IPv4 packets come with their header.
fn is_reply(address: IpAddr, packet: &[u8], identifier: u16, sequence: u16) -> bool {
    let (body, kind) = match address {
        IpAddr::V4(_) => {
            let length = usize::from(packet.first().copied().unwrap_or(0) & 0x0f) * 4;
            (packet.get(length..).unwrap_or_default(), ECHO_REPLY)
        }
        IpAddr::V6(_) => (packet, ECHO_REPLY_V6),
    };
    let [id0, id1] = identifier.to_be_bytes();
    let [seq0, seq1] = sequence.to_be_bytes();
    match body {
        [first, 0, _, _, rest @ ..] if *first == kind => rest.starts_with(&[id0, id1, seq0, seq1]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_checksum_that_sums_to_nothing() {
        let packet = request("192.0.2.1".parse().unwrap(), 0x1234, 7);
        assert_eq!(checksum(&packet), 0);
    }

    #[test]
    fn only_the_reply_to_this_request_counts() {
        let v6: IpAddr = "::1".parse().unwrap();
        let reply = [129, 0, 0, 0, 0x12, 0x34, 0, 7, 1];
        assert!(is_reply(v6, &reply, 0x1234, 7));
        assert!(!is_reply(v6, &reply, 0x1234, 8));
        let request = [128, 0, 0, 0, 0x12, 0x34, 0, 7, 1];
        assert!(!is_reply(v6, &request, 0x1234, 7), "our own request");
        assert!(!is_reply("127.0.0.1".parse().unwrap(), &[], 1, 1));
    }
}
