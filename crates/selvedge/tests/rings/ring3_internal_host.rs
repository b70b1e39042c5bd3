//! Ring 3, a host and a fabric that are both of the node's own AS: BGP passes no routes between two such sessions by itself.

use std::{sync::Arc, time::Duration};

use lab::{
    fabric::Fabric,
    host::{Host, LocalHost},
    namespace::Namespace,
    parts::{self, Release, Tree},
    space::Space,
};

use crate::support::{progress, selvedge};

const PATIENCE: Duration = Duration::from_mins(1);

/// A node whose leaf and whose host are of its own AS. It has one network from each side.
const OBJECTS: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: fabric, namespace: default}
spec: {asn: 64512, nics: [leaf], neighbors: [{type: internal, address: 192.168.1.254, connectTime: 1s}]}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3Passthrough
metadata: {name: host, namespace: default}
spec: {hostsession: {asn: 64512, hosttype: internal, localcidr: {ipv4: 198.18.7.0/24}}}
";

/// A speaker of the same AS with one address of a network of its own.
fn speaker(router: &str, network: &str) -> String {
    format!(
        "router bgp 64512
 no bgp network import-check
 neighbor {router} remote-as internal
 neighbor {router} timers connect 1
 address-family ipv4 unicast
  network {network}
 exit-address-family
"
    )
}

#[test]
fn a_host_and_a_fabric_of_the_nodes_own_as_reach_each_other_on_every_version() -> anyhow::Result<()>
{
    parts::prepare_machine(&progress)?;
    for release in Release::ALL {
        let tree = Tree::prepare(release, &progress)?;
        let share = tempfile::tempdir()?;
        let namespace = Arc::new(Namespace::new(share.path())?);
        let machine: Arc<dyn Host> = Arc::new(LocalHost::new(namespace, tree.root(), share));
        let [leaf, node, host] = ["leaf", "node", "host"].map(|name| Space::new(&machine, name));
        let (leaf, node, host) = (leaf?, node?, host?);
        for (end, wire) in [(&leaf, "leaf"), (&host, "host")] {
            let veth = format!(
                "link add name {wire} netns {} type veth peer name eth0 netns {}",
                node.pid(),
                end.pid()
            );
            machine.run(&["ip", "-batch", "-"], &veth)?.ok()?;
        }
        // The addresses of the only node on the session's network: the router has the first, the host the next.
        node.up("leaf", &["192.168.1.1/24".parse()?])?;
        node.up("host", &["198.18.7.1/24".parse()?])?;
        leaf.up("eth0", &["192.168.1.254/24".parse()?])?;
        host.up("eth0", &["198.18.7.2/24".parse()?])?;
        leaf.run(&["ip", "address", "add", "192.0.2.1/24", "dev", "lo"])?;
        host.run(&["ip", "address", "add", "203.0.113.3/32", "dev", "lo"])?;
        node.script("echo 1 > /proc/sys/net/ipv4/ip_forward")?;

        let version = release.frr_version();
        let render = ["render", "-f", "-", "--node", "n1", "--what", "frr"];
        let render = [&render[..], &["--frr-version", version]].concat();
        let rendered = selvedge(&render, OBJECTS)?;
        let said = String::from_utf8_lossy(&rendered.stderr).into_owned();
        anyhow::ensure!(rendered.status.success(), "{said}");
        node.start_frr(&String::from_utf8(rendered.stdout)?)?;
        leaf.start_frr(&speaker("192.168.1.1", "192.0.2.0/24"))?;
        host.start_frr(&speaker("198.18.7.1", "203.0.113.3/32"))?;

        let shown = |space: &Space| {
            let show = "vtysh -N router -c 'show bgp summary' -c 'show ip bgp' -c 'show running-config'; ip route";
            space.script(show).unwrap_or_default()
        };
        // The host has learned the network of the leaf, and the leaf the address of the host: the answer finds its way.
        let there = Fabric::eventually(PATIENCE, || {
            let ping = "ping -q -c 2 -i 0.2 -W 1 -I 203.0.113.3 192.0.2.1";
            host.script(ping).ok()
        });
        let all = [&leaf, &node, &host].map(shown).join("\n===\n");
        assert!(there.is_some(), "FRR {version}: {all}");
    }
    Ok(())
}
