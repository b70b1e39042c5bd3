//! Ring 4, the kernel: a config is applied to a real kernel and a real FRR; the second plan is empty.

use std::time::Duration;

use lab::{
    fabric::Fabric,
    host::Output,
    parts::{self, Tree},
};
use serde_json::{Value, json};

use crate::support::{SELVEDGE, progress, repository, selvedge};

/// A node that is plugged into a leaf, without any cluster.
struct Node {
    fabric: Fabric,
}

impl Node {
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let fabric = Fabric::builder()
            .leaf("leaf1", 64512)
            .node("worker-3", &["leaf1"])
            .start(&tree, &progress)?;
        fabric.hand_in(SELVEDGE.as_ref())?;
        Ok(Self { fabric })
    }

    /// Applies a config and returns what the program says.
    fn apply(&self, config: &Value) -> anyhow::Result<Output> {
        let node = self.fabric.at("worker-3")?;
        node.write("/run/config.json", &config.to_string())?;
        Ok(node.output(
            &["/share/selvedge", "agent", "--config", "/run/config.json"],
            "",
        )?)
    }

    /// Applies a config, which must succeed; the second time there is nothing to do.
    fn becomes(&self, config: &Value) -> anyhow::Result<String> {
        let first = self.apply(config)?.ok()?;
        let second = self.apply(config)?.ok()?;
        assert_eq!(second.trim(), "nothing to do", "after: {first}");
        Ok(first.trim().to_owned())
    }

    fn script(&self, script: &str) -> anyhow::Result<String> {
        Ok(self.fabric.at("worker-3")?.script(script)?)
    }

    /// The devices of both namespaces.
    fn links(&self) -> anyhow::Result<String> {
        self.script("ip -br link | awk '{print \"host\", $1}'; ip -n selvedge -br link | awk '{print \"router\", $1}'")
    }
}

/// The config of the node in a world made of the shipped example, without the given attachments.
fn config(without: &[&str]) -> anyhow::Result<Value> {
    let example = std::fs::read_to_string(repository("examples/two-tenants.yaml"))?;
    let left_out = |document: &&str| {
        let of = |name: &&str| {
            document.contains("kind: Layer2Attachment")
                && document.contains(&format!("{{name: {name}}}"))
        };
        !without.iter().any(of)
    };
    let world: Vec<&str> = example.split("---\n").filter(left_out).collect();
    let arguments = [
        "compile", "-f", "-", "--what", "nodes", "--node", "worker-3", "-o", "json",
    ];
    let output = selvedge(&arguments, &world.join("---\n"))?;
    anyhow::ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let configs: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    configs
        .into_iter()
        .next()
        .ok_or_else(|| anyhow::anyhow!("there is no config"))
}

#[test]
fn a_second_plan_is_empty_after_every_apply() -> anyhow::Result<()> {
    let node = Node::start()?;
    let (all, less, none) = (
        config(&[])?,
        config(&["shop"])?,
        config(&["shop", "billing"])?,
    );

    eprintln!("bare: {}", node.becomes(&none)?);
    let bare = node.links()?;
    eprintln!("one attachment: {}", node.becomes(&less)?);
    let before = node.links()?;
    eprintln!("two attachments: {}", node.becomes(&all)?);
    let whole = node.links()?;
    assert_ne!(whole, before);

    // What somebody breaks is mended, and only that.
    node.script("ip -n selvedge link delete vx.10300")?;
    let mended = node.becomes(&all)?;
    assert!(
        mended.contains(", 0 FRR lines"),
        "only the kernel was broken: {mended}"
    );
    assert_eq!(sorted(&node.links()?), sorted(&whole));
    node.script("vtysh -N router -c 'configure terminal' -c 'router bgp 64514' -c 'neighbor 192.168.12.2 shutdown'")?;
    node.script(
        "vtysh -N router -c 'configure terminal' -c 'no route-map internet:evpn permit 10'",
    )?;
    let mended = node.becomes(&all)?;
    assert!(
        mended.starts_with("0 kernel steps"),
        "only FRR was changed: {mended}"
    );

    // A killed agent leaves nothing that the next one cannot bring to its end.
    node.becomes(&less)?;
    for tenths in 1..8 {
        let kill = format!(
            "timeout --signal=KILL 0.{tenths} /share/selvedge agent --config /run/config.json || true"
        );
        node.fabric
            .at("worker-3")?
            .write("/run/config.json", &all.to_string())?;
        node.script(&kill)?;
        node.becomes(if tenths % 2 == 0 { &less } else { &all })?;
    }

    node.becomes(&less)?;
    assert_eq!(
        sorted(&node.links()?),
        sorted(&before),
        "what the attachment made is gone, and nothing else"
    );
    node.becomes(&none)?;
    assert_eq!(sorted(&node.links()?), sorted(&bare));

    a_new_as_is_a_new_router(&node, &all)?;
    someone_elses_device_is_named_and_left_alone(&node, &all, &none)
}

#[test]
fn what_the_host_has_and_rules_by_source_settle() -> anyhow::Result<()> {
    let node = Node::start()?;
    let plain = config(&["shop"])?;
    let mut more = plain.clone();
    let spec = more.pointer_mut("/spec").expect("a config has a spec");
    spec["hostVLANs"]["vlan.500"] = json!({
        "parent": "bond7", "vlan": 500, "mtu": 1500, "addresses": ["198.51.100.2/24", "2001:db8:500::2/64"],
        "routes": [
            {"prefix": "203.0.113.0/24", "nextHop": {"address": "198.51.100.1"}},
            {"prefix": "2001:db8:f::/48", "nextHop": {"address": "2001:db8:500::1"}},
        ],
    });
    spec["hostLoopbacks"]["bgp.01234567"] = json!({"addresses": ["192.0.2.53/32"]});
    spec["localVRFs"]["s-m2m_enc"] = json!({
        "table": 10777, "devices": {"vrf": "s-m2m_enc"}, "mtu": 1500,
        "vrfImports": [{"fromVrf": "m2m_enc", "filter": {"defaultAction": {"type": "accept"}}}],
    });
    let route = |source: &str, destination: &str| {
        json!({
            "trafficMatch": {"srcPrefix": source, "dstPrefix": destination},
            "nextHop": {"vrf": "s-m2m_enc"}, "priority": 121, "interfaces": ["l2.234"],
        })
    };
    spec["clusterVRF"]["policyRoutes"] = json!([
        route("192.0.2.0/24", "10.0.0.0/8"),
        route("2001:db8::/64", "fd00::/8"),
    ]);

    // Without the device below, all else is made.
    node.becomes(&more)?;
    assert!(!node.links()?.contains("vlan.500"));
    let rules = node.script("ip -n selvedge rule; ip -n selvedge -6 rule")?;
    assert!(
        rules.contains("from 192.0.2.0/24 to 10.0.0.0/8 iif l2.234"),
        "{rules}"
    );
    assert!(
        rules.contains("from 192.0.2.0/24 to 10.0.0.0/8 iif hbn"),
        "{rules}"
    );
    assert!(
        rules.contains("from 2001:db8::/64 to fd00::/8 iif cluster"),
        "{rules}"
    );

    node.script("ip link add bond7 type dummy")?;
    node.becomes(&more)?;
    node.script("ip link set bond7 mtu 1400 up")?;
    node.becomes(&more)?;
    let host =
        node.script("ip route; ip -6 route; ip link show vlan.500; ip addr show bgp.01234567")?;
    assert!(
        host.contains("203.0.113.0/24 via 198.51.100.1 dev vlan.500"),
        "{host}"
    );
    assert!(
        host.contains("2001:db8:f::/48 via 2001:db8:500::1 dev vlan.500"),
        "{host}"
    );
    assert!(host.contains("mtu 1400"), "{host}");
    assert!(host.contains("192.0.2.53/32"), "{host}");

    node.becomes(&plain)?;
    let left = node.links()?;
    assert!(
        !left.contains("vlan.500") && !left.contains("bgp.") && !left.contains("s-m2m"),
        "{left}"
    );
    assert!(
        left.contains("bond7"),
        "what is somebody else's stays: {left}"
    );
    Ok(())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

fn a_new_as_is_a_new_router(node: &Node, config: &Value) -> anyhow::Result<()> {
    let mut other = config.clone();
    *other
        .pointer_mut("/spec/underlay/asn")
        .expect("the node has an underlay") = 64777.into();
    let said = node.becomes(&other)?;
    assert!(said.contains("started"), "{said}");
    node.becomes(config)?;
    Ok(())
}

fn someone_elses_device_is_named_and_left_alone(
    node: &Node,
    all: &Value,
    none: &Value,
) -> anyhow::Result<()> {
    node.becomes(none)?;
    node.script("ip link add name l2.shop type dummy")?;
    let refused = node.apply(all)?;
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("l2.shop") && refused.stderr.contains("did not make"),
        "{}",
        refused.stderr
    );
    let gone = Fabric::eventually(Duration::from_secs(1), || {
        node.script("ip -d link show l2.shop")
            .is_ok_and(|text| text.contains("dummy"))
            .then_some(())
    });
    assert!(gone.is_some(), "the device is still there");
    node.script("ip link delete l2.shop")?;
    node.becomes(all)?;
    Ok(())
}
