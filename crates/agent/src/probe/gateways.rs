//! The default gateways of the host's namespace.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Gateways with the interface they are behind, as the kernel lists them.
pub(super) fn of_host() -> BTreeSet<(IpAddr, String)> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut gateways = ipv4(&read("/proc/net/route"));
    gateways.extend(ipv6(&read("/proc/net/ipv6_route")));
    gateways
}

/// `/proc/net/route`: interface, destination and gateway in the byte order of the machine.
fn ipv4(text: &str) -> BTreeSet<(IpAddr, String)> {
    let gateway = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [interface, destination, gateway, .., mask, _, _, _] = words.as_slice() else {
            return None;
        };
        let gateway = u32::from_str_radix(gateway, 16).ok()?;
        let is_default = *destination == "00000000" && *mask == "00000000" && gateway != 0;
        let address = IpAddr::from(Ipv4Addr::from(gateway.to_ne_bytes()));
        is_default.then(|| (address, (*interface).to_owned()))
    };
    text.lines().skip(1).filter_map(gateway).collect()
}

/// `/proc/net/ipv6_route`: destination, its length, source, its length, gateway, …, interface.
fn ipv6(text: &str) -> BTreeSet<(IpAddr, String)> {
    let gateway = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, _, _, gateway, .., interface] = words.as_slice() else {
            return None;
        };
        let gateway = u128::from_str_radix(gateway, 16).ok()?;
        let zero = destination.bytes().all(|digit| digit == b'0');
        let is_default = zero && *length == "00" && gateway != 0;
        let address = IpAddr::from(Ipv6Addr::from(gateway));
        is_default.then(|| (address, (*interface).to_owned()))
    };
    text.lines().filter_map(gateway).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_are_read_from_what_the_kernel_prints() {
        let text = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        let expected = ("172.17.0.1".parse().unwrap(), "eth0".to_owned());
        assert_eq!(ipv4(text).into_iter().collect::<Vec<_>>(), [expected]);
        let zero = "0".repeat(32);
        let text = format!(
            "{zero} 00 {zero} 00 20010db8000000000000000000000001 00000400 00000001 00000000 00000003 bond0\n\
             fe800000000000000000000000000000 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001 bond0\n\
             {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200 lo\n"
        );
        let expected = ("2001:db8::1".parse().unwrap(), "bond0".to_owned());
        assert_eq!(ipv6(&text).into_iter().collect::<Vec<_>>(), [expected]);
        let twice = text.clone() + &text.replace("bond0", "bond1");
        assert_eq!(
            ipv6(&twice).len(),
            2,
            "the same address behind two interfaces"
        );
    }
}
