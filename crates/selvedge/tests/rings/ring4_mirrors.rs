//! Ring 4, mirrors: what is copied, and what a mirror that cannot be made costs.

use std::time::Duration;

use lab::fabric::Fabric;
use serde_json::{Value, json};

use crate::ring4::{Node, config};

/// A node whose segment has a workload, another port, and a collector behind its VRF.
struct Mirrored {
    node: Node,
    plain: Value,
}

impl Mirrored {
    fn start() -> anyhow::Result<Self> {
        let mut node = Node::start()?;
        let plain = config(&["shop"])?;
        node.becomes(&plain)?;
        let addresses = ["198.18.7.1/24".parse()?, "fd77::1/64".parse()?];
        node.fabric
            .workload("workload", "worker-3", "l2.billing", &addresses, &[])?;
        node.script(
            "set -e
            ip netns add probe
            ip -n selvedge link add probe type veth peer name eth0 netns probe
            ip -n selvedge link set probe master l2.234 up
            ip -n probe address add 198.18.7.2/24 dev eth0
            ip -n probe address add fd77::2/64 dev eth0 nodad
            ip -n probe link set eth0 up
            ip netns add collector
            ip -n selvedge link add collector type veth peer name eth0 netns collector
            ip -n selvedge link set collector master m2m_enc up
            ip -n selvedge address add 198.18.8.1/24 dev collector
            ip -n collector address add 198.18.8.2/24 dev eth0
            ip -n collector link set eth0 up
            ip -n collector route add 203.0.113.1/32 via 198.18.8.1",
        )?;
        Ok(Self { node, plain })
    }

    /// The node's config with these rules of the segment, and a tunnel to the collector.
    fn config(&self, acls: &Value) -> Value {
        let mut config = self.plain.clone();
        let spec = &mut config["spec"];
        spec["fabricVRFs"]["m2m_enc"]["loopbacks"] =
            json!({"lo.mir": {"ipAddresses": ["203.0.113.1/32"]}});
        spec["fabricVRFs"]["m2m_enc"]["gres"] = json!({"gre.01234567": {
            "sourceAddress": "203.0.113.1", "destinationAddress": "198.18.8.2", "sourceInterface": "lo.mir",
            "layer": "layer3", "encapsulationKey": 1001,
        }});
        spec["layer2s"]["234"]["mirrorAcls"] = acls.clone();
        config
    }

    /// How many copies arrive of five pings from the other port to the workload.
    fn copies(&self, target: &str) -> anyhow::Result<u64> {
        let ping = format!("ip netns exec probe ping -q -i 0.2 -W 5 -c 5 {target}");
        // The first finds out who is where.
        let warm = format!("ip netns exec probe ping -q -W 5 -c 1 {target}");
        self.node.script(&warm)?;
        let before = self.received()?;
        self.node.script(&ping)?;
        let _enough = Fabric::eventually(Duration::from_secs(3), || {
            self.received().ok().filter(|now| *now >= before + 5)
        });
        // One too many would come by now.
        std::thread::sleep(Duration::from_millis(300));
        Ok(self.received()? - before)
    }

    fn received(&self) -> anyhow::Result<u64> {
        let text = self.node.script("ip -n collector -s -j link show copies")?;
        let links: Value = serde_json::from_str(&text)?;
        let packets = &links[0]["stats64"]["rx"]["packets"];
        packets
            .as_u64()
            .ok_or_else(|| anyhow::anyhow!("no counter in {text}"))
    }

    fn filters(&self) -> anyhow::Result<String> {
        self.node.script(
            "tc -n selvedge filter show dev vlan.234 ingress; tc -n selvedge filter show dev vlan.234 egress",
        )
    }
}

fn acl(direction: &str, packets: &Value) -> Value {
    json!({"direction": direction, "trafficMatch": packets, "mirrorDestination": "gre.01234567"})
}

#[test]
fn mirrors_copy_what_passes_from_port_to_port_and_fail_nothing() -> anyhow::Result<()> {
    let mirrored = Mirrored::start()?;
    let node = &mirrored.node;
    let requests = json!({"srcPrefix": "198.18.7.2/32", "protocol": "icmp"});
    let to_workload = mirrored.config(&json!([acl("ingress", &requests)]));

    a_kernel_that_cannot_copy_fails_no_node(&mirrored, &to_workload)?;
    node.becomes(&to_workload)?;
    node.script(
        "set -e
        ip -n collector link add copies type gre local 198.18.8.2 remote 203.0.113.1 key 1001
        ip -n collector link set copies up",
    )?;
    assert_eq!(mirrored.copies("198.18.7.1")?, 5, "{}", mirrored.filters()?);
    let from_workload = mirrored.config(&json!([acl("egress", &requests)]));
    node.becomes(&from_workload)?;
    assert_eq!(
        mirrored.copies("198.18.7.1")?,
        0,
        "no request comes from the workload"
    );

    // Everything, both families, and two rules that both copy the same packet.
    node.becomes(&mirrored.config(&json!([acl("ingress", &json!({}))])))?;
    assert!(mirrored.copies("198.18.7.1")? >= 5);
    assert!(mirrored.copies("fd77::1")? >= 5);
    let twice = json!([
        acl("ingress", &requests),
        acl("ingress", &json!({"dstPrefix": "198.18.7.1"}))
    ]);
    node.becomes(&mirrored.config(&twice))?;
    assert_eq!(
        mirrored.copies("198.18.7.1")?,
        10,
        "{}",
        mirrored.filters()?
    );

    only_our_own_filters_go(&mirrored, &twice)
}

/// Without the action that copies, the node is as it should be, but for its mirror, which is told of.
fn a_kernel_that_cannot_copy_fails_no_node(
    mirrored: &Mirrored,
    config: &Value,
) -> anyhow::Result<()> {
    let node = &mirrored.node;
    node.script("modprobe -a ip_gre sch_ingress cls_flower; cat /proc/sys/kernel/modprobe > /run/modprobe; echo /bin/false > /proc/sys/kernel/modprobe")?;
    let mut more = config.clone();
    more["spec"]["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": ["192.0.2.53/32"]});
    let said = node.apply(&more)?.ok()?;
    assert!(
        said.contains("not mirrored: failed to add filter"),
        "{said}"
    );
    let made = node.links()?;
    assert!(
        made.contains("host bgp.01234567"),
        "all else is made: {made}"
    );
    let again = node.apply(&more)?.ok()?;
    assert!(again.contains(", 0 FRR lines; not mirrored"), "{again}");
    node.script("cat /run/modprobe > /proc/sys/kernel/modprobe")?;
    node.becomes(&more)?;
    Ok(())
}

fn only_our_own_filters_go(mirrored: &Mirrored, acls: &Value) -> anyhow::Result<()> {
    let node = &mirrored.node;
    node.becomes(&mirrored.plain)?;
    let none = mirrored.filters()?;
    assert_eq!(none.trim(), "", "nothing of ours is left");
    node.script(
        "set -e
        tc -n selvedge filter add dev vlan.234 egress pref 10 protocol ip flower ip_proto udp
        tc -n selvedge filter add dev vlan.234 egress pref 32768 protocol ip flower ip_proto tcp",
    )?;
    let foreign = mirrored.filters()?;
    node.becomes(&mirrored.config(acls))?;
    assert_eq!(
        mirrored.copies("198.18.7.1")?,
        10,
        "{}",
        mirrored.filters()?
    );
    node.becomes(&mirrored.plain)?;
    assert_eq!(mirrored.filters()?, foreign);
    assert!(!node.links()?.contains("gre."), "the tunnel is gone");
    Ok(())
}
