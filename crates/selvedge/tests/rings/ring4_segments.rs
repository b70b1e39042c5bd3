//! Ring 4, L2VNIs and L3VNIs on a real kernel: two segments in one VRF, one of them behind a bridge that the host has or lacks, and changes of
//! bridge, gateway, VRF and tunnel endpoint in place. After each the second plan is empty.

use std::time::Duration;

use lab::fabric::Fabric;
use serde_json::Value;

use crate::{ring4::Node, ring4_safety::cut_off_agent, support::selvedge};

/// What changes in this test.
#[derive(Clone, Copy)]
struct World {
    vteps: &'static str,
    /// The VRF of the segment `data`.
    vrf: &'static str,
    /// The gateway of the segment `app`.
    gateway: &'static str,
    /// The host master of the segment `data`.
    master: &'static str,
}

const FIRST: World = World {
    vteps: "100.65.0.0/24",
    vrf: "tenant",
    gateway: "10.100.0.1/24",
    master: "{type: bridge, name: br-storage}",
};

fn config(node: &Node, world: World) -> anyhow::Result<Value> {
    let link = node.fabric.link("worker-3", "leaf1")?;
    let (_, far) = link.seen_from("worker-3").expect("the link has two ends");
    let World {
        vteps,
        vrf,
        gateway,
        master,
    } = world;
    let objects = format!(
        "
apiVersion: v1
kind: Node
metadata: {{name: worker-3}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {{name: fabric, namespace: default}}
spec:
  asn: 64601
  nics: [eth1]
  evpn: {{vtepcidr: {vteps}}}
  neighbors: [{{type: external, address: {leaf}, connectTime: 1s}}]
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {{name: tenant, namespace: default}}
spec: {{vrf: tenant, vni: 5001, hostsession: {{asn: 64601, hostasn: 64700}}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {{name: other, namespace: default}}
spec: {{vrf: other, vni: 5002}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L2VNI
metadata: {{name: app, namespace: default}}
spec: {{vrf: tenant, vni: 10100, hostmaster: {{autocreate: true}}, l2gatewayip: {gateway}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L2VNI
metadata: {{name: data, namespace: default}}
spec: {{vrf: {vrf}, vni: 10101, hostmaster: {master}, l2gatewayip: 10.101.0.1/24}}
",
        leaf = far.ipv4.addr()
    );
    let arguments = [
        "compile", "-f", "-", "--what", "nodes", "--node", "worker-3", "-o", "json",
    ];
    let output = selvedge(&arguments, &objects)?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{said}");
    let configs: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    Ok(configs[0].clone())
}

/// Number and master of a device; the words `none` where it has no master.
fn device(node: &Node, space: &str, name: &str) -> anyhow::Result<(String, String)> {
    let shown = node.script(&format!("ip {space} -o link show dev {name}"))?;
    let number = shown.split(':').next().unwrap_or_default().to_owned();
    let mut words = shown
        .split_whitespace()
        .skip_while(|word| *word != "master");
    let master = words.nth(1).unwrap_or("none").to_owned();
    Ok((number, master))
}

/// The IPv4 addresses of a device of the router.
fn addresses(node: &Node, name: &str) -> anyhow::Result<String> {
    let script =
        format!("ip -n selvedge -o -4 address show dev {name} scope global | awk '{{print $4}}'");
    Ok(node.script(&script)?.trim().to_owned())
}

const ROUTER: &str = "-n selvedge";

#[test]
fn segments_change_bridge_gateway_vrf_and_endpoint_in_place() -> anyhow::Result<()> {
    let node = Node::start()?;
    // Names like ours, and bridges of the host's own.
    node.script("ip link add host-foo type dummy; ip link add br-pe-foo type bridge")?;
    node.becomes(&config(&node, FIRST)?)?;
    for (segment, gateway) in [("10100", "10.100.0.1/24"), ("10101", "10.101.0.1/24")] {
        let bridge = format!("br-pe-{segment}");
        assert_eq!(device(&node, ROUTER, &bridge)?.1, "tenant");
        assert_eq!(addresses(&node, &bridge)?, gateway);
    }
    assert_eq!(device(&node, "", "host-10100")?.1, "br-hs-10100");
    assert_eq!(device(&node, "", "host-10101")?.1, "none", "no bridge yet");
    let leg = node.script("ip -n selvedge -o -6 address show dev pe-5001 scope global")?;
    assert!(
        !leg.trim().is_empty(),
        "the leg joined a VRF and lost its IPv6 address"
    );

    the_bridge_of_the_host_is_used_and_left(&node)?;
    gateway_and_vrf_change_in_place(&node)?;
    another_endpoint_is_on_every_vxlan(&node)?;

    let left =
        node.script("ip link show host-foo; ip link show br-pe-foo; ip link show br-storage")?;
    assert_eq!(left.matches("mtu").count(), 3, "{left}");
    Ok(())
}

fn the_bridge_of_the_host_is_used_and_left(node: &Node) -> anyhow::Result<()> {
    node.script("ip link add br-storage type bridge; ip link set br-storage up")?;
    node.becomes(&config(node, FIRST)?)?;
    let (port, master) = device(node, "", "host-10101")?;
    assert_eq!(master, "br-storage");
    let own = World {
        master: "{autocreate: true}",
        ..FIRST
    };
    node.becomes(&config(node, own)?)?;
    assert_eq!(
        device(node, "", "host-10101")?,
        (port.clone(), "br-hs-10101".to_owned())
    );
    node.script("ip link show br-storage")?;
    node.becomes(&config(node, FIRST)?)?;
    assert_eq!(
        device(node, "", "host-10101")?,
        (port, "br-storage".to_owned())
    );
    let own = node.script("ip link show br-hs-10101 2>&1 || true")?;
    assert!(own.contains("does not exist"), "{own}");
    // A port that another program takes out of its bridge is put back.
    node.script("ip link set host-10101 nomaster")?;
    node.becomes(&config(node, FIRST)?)?;
    assert_eq!(device(node, "", "host-10101")?.1, "br-storage");
    Ok(())
}

fn gateway_and_vrf_change_in_place(node: &Node) -> anyhow::Result<()> {
    let (app, _) = device(node, ROUTER, "br-pe-10100")?;
    let (data, _) = device(node, ROUTER, "br-pe-10101")?;
    let mac = |name: &str| {
        node.script(&format!(
            "ip -n selvedge -br link show {name} | awk '{{print $3}}'"
        ))
    };
    let before = mac("br-pe-10100")?;
    let changed = World {
        gateway: "10.102.0.1/24",
        vrf: "other",
        ..FIRST
    };
    node.becomes(&config(node, changed)?)?;
    assert_eq!(
        device(node, ROUTER, "br-pe-10100")?,
        (app, "tenant".to_owned())
    );
    assert_eq!(addresses(node, "br-pe-10100")?, "10.102.0.1/24");
    assert_eq!(mac("br-pe-10100")?, before);
    assert_eq!(
        device(node, ROUTER, "br-pe-10101")?,
        (data, "other".to_owned())
    );
    assert_eq!(addresses(node, "br-pe-10101")?, "10.101.0.1/24");
    let routes = node.script("ip -n selvedge route show vrf tenant")?;
    assert!(!routes.contains("10.101.0.0/24"), "{routes}");
    node.becomes(&config(node, FIRST)?)?;
    assert_eq!(device(node, ROUTER, "br-pe-10101")?.1, "tenant");
    Ok(())
}

fn another_endpoint_is_on_every_vxlan(node: &Node) -> anyhow::Result<()> {
    let moved = World {
        vteps: "100.66.0.0/24",
        ..FIRST
    };
    node.becomes(&config(node, moved)?)?;
    let loopback = addresses(node, "lo")?;
    assert!(
        loopback.contains("100.66.0.") && !loopback.contains("100.65.0."),
        "{loopback}"
    );
    let tunnels = node.script("ip -n selvedge -d -o link show type vxlan")?;
    assert_eq!(tunnels.matches(" local 100.66.0.").count(), 4, "{tunnels}");
    assert_eq!(tunnels.matches(" local 100.65.0.").count(), 0, "{tunnels}");
    node.becomes(&config(node, FIRST)?)?;
    Ok(())
}

/// How many seconds ago the workload of [`a_silent_workload_keeps_its_route`] was heard of, and the state of its entry.
fn heard_of(node: &Node) -> anyhow::Result<(u32, String)> {
    let shown = node.script("ip -n selvedge -s -4 neighbor show to 10.100.0.9 dev br-pe-10100")?;
    let mut words = shown.split_whitespace().skip_while(|word| *word != "used");
    let confirmed = words.nth(1).and_then(|used| used.split('/').nth(1));
    let state = shown
        .split_whitespace()
        .last()
        .unwrap_or_default()
        .to_owned();
    let confirmed = confirmed.ok_or_else(|| anyhow::anyhow!("no entry: {shown}"))?;
    Ok((confirmed.parse()?, state))
}

/// R64: the bridge forgets a workload that says nothing, and FRR withdraws its route. The agent lets the kernel ask it.
///
/// An entry is believed for six to eighteen seconds here. Within five seconds after a probe the kernel would ask again by itself.
#[test]
fn a_silent_workload_keeps_its_route() -> anyhow::Result<()> {
    let node = Node::start()?;
    node.apply(&config(&node, FIRST)?)?.ok()?;
    node.script(
        "ip netns add work
        ip link add work0 type veth peer name w0 netns work
        ip link set work0 master br-hs-10100 up
        ip -n work address add 10.100.0.9/24 dev w0
        ip -n work link set w0 up
        ip netns exec selvedge sysctl -q -w net.ipv4.neigh.br-pe-10100.base_reachable_time_ms=12000
        ip netns exec work ping -q -c 3 -W 2 10.100.0.1",
    )?;
    let silent = Fabric::eventually(Duration::from_secs(30), || {
        let (heard, state) = heard_of(&node).ok()?;
        (state == "STALE" && heard >= 4).then_some(heard)
    });
    let silent = silent.expect("the workload says nothing");
    let agent = cut_off_agent(&node)?;
    let again = Fabric::eventually(Duration::from_mins(1), || {
        let (heard, _) = heard_of(&node).ok()?;
        (heard < silent).then_some(heard)
    });
    assert!(again.is_some(), "nobody asked: {:?}", heard_of(&node)?);
    drop(agent);
    Ok(())
}
