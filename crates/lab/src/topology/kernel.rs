//! Kernel configuration of routers, and of the hosts behind them, as scripts.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{LeafVrf, Router};

impl Router {
    /// Forwarding, the loopback, and bridge and VXLAN of each VRF.
    pub(crate) fn script(&self) -> String {
        let loopback = self.loopback;
        let mut lines = vec![
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1".to_owned(),
            format!("ip address add {loopback}/32 dev lo"),
        ];
        for (table, LeafVrf { name, vni, .. }) in (1000..).zip(&self.vrfs) {
            lines.extend([
                format!("ip link add name {name} up type vrf table {table}"),
                format!("ip link add br{vni} type bridge"),
                format!("ip link set br{vni} master {name} addrgenmode none"),
                format!("ip link set br{vni} up"),
                format!("ip link add vx{vni} type vxlan id {vni} dstport 4789 local {loopback} nolearning"),
                format!("ip link set vx{vni} master br{vni} addrgenmode none"),
                format!("ip link set vx{vni} up"),
            ]);
        }
        lines.join("\n")
    }
}

impl LeafVrf {
    /// The host behind the VRF: it has every address of the prefixes, and sends from the first.
    pub(crate) fn host_script(&self, gateways: [IpAddr; 2]) -> String {
        let mut lines = Vec::new();
        for gateway in gateways {
            let same_family = |prefix: &&IpNet| prefix.addr().is_ipv4() == gateway.is_ipv4();
            let mut source = String::new();
            for prefix in self
                .prefixes
                .iter()
                .filter(same_family)
                .filter(|prefix| prefix.prefix_len() > 0)
            {
                let first = prefix.hosts().next().unwrap_or_else(|| prefix.addr());
                lines.push(format!("ip route add local {prefix} dev lo"));
                // The kernel looks for duplicates of an IPv6 address later, and takes it as a source only then.
                let nodad = if first.is_ipv6() { " nodad" } else { "" };
                lines.push(format!(
                    "ip address add {} dev lo{nodad}",
                    IpNet::from(first)
                ));
                if source.is_empty() {
                    source = format!(" src {first}");
                }
            }
            lines.push(format!("ip route add default via {gateway}{source}"));
        }
        lines.join("\n")
    }
}
