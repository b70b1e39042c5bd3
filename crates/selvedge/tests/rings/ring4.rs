//! Ring 4, the kernel: a config is applied to a real kernel and a real FRR; the second plan is empty.

use std::time::Duration;

use anyhow::Context as _;
use lab::{
    fabric::{Builder, Fabric},
    host::Output,
    parts::{self, Release, Tree},
};
use serde_json::{Value, json};

use crate::{
    ring4_safety::{cut_off_agent, end, metrics, plugged, preview},
    support::{SELVEDGE, progress, repository, selvedge},
};

/// A node that is connected to a leaf, without any cluster.
pub(crate) struct Node {
    pub(crate) fabric: Fabric,
}

impl Node {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::start_with(Release::Forky, |plan| plan)
    }

    /// A node with the FRR of a release of Debian.
    pub(crate) fn start_on(release: Release) -> anyhow::Result<Self> {
        Self::start_with(release, |plan| plan)
    }

    /// A node that can lose its power alone.
    pub(crate) fn start_in_a_guest_of_its_own() -> anyhow::Result<Self> {
        Self::start_with(Release::Forky, Builder::guest_per_node)
    }

    fn start_with(release: Release, more: impl FnOnce(Builder) -> Builder) -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests_of(release, &progress)?;
        let plan = Fabric::builder()
            .leaf("leaf1", 64512)
            .node("worker-3", &["leaf1"]);
        let fabric = more(plan).start(&tree, &progress)?;
        fabric.hand_in(SELVEDGE.as_ref())?;
        Ok(Self { fabric })
    }

    /// Applies a config and returns what the program says.
    pub(crate) fn apply(&self, config: &Value) -> anyhow::Result<Output> {
        let node = self.fabric.at("worker-3")?;
        node.write("/run/config.json", &config.to_string())?;
        Ok(node.output(
            &["/share/selvedge", "agent", "--config", "/run/config.json"],
            "",
        )?)
    }

    /// Applies a config, which must succeed; the second time there is nothing to do.
    pub(crate) fn becomes(&self, config: &Value) -> anyhow::Result<String> {
        let first = self.apply(config)?.ok()?;
        let second = self.apply(config)?.ok()?;
        assert_eq!(second.trim(), "nothing to do", "after: {first}");
        Ok(first.trim().to_owned())
    }

    /// Applies a config until it stays; how many attempts that took. Only the death of a daemon is a reason for another.
    fn becomes_within(&self, most: usize, config: &Value) -> anyhow::Result<usize> {
        for attempt in 1..=most {
            let before = self.daemons()?;
            let first = self.apply(config)?.ok();
            let second = self.apply(config)?.ok();
            match (first, second) {
                (Ok(_), Ok(second)) if second.trim() == "nothing to do" => return Ok(attempt),
                (first, second) => {
                    let said = format!("attempt {attempt}: {first:?}, {second:?}");
                    let died = before != self.daemons()? || said.contains("started zebra");
                    anyhow::ensure!(died, "no daemon died, and the config did not stay: {said}");
                    eprintln!("{said}");
                }
            }
        }
        anyhow::bail!("not applied in {most} attempts")
    }

    /// The host's devices with their addresses, without what the kernel gives by itself.
    pub(crate) fn links_of_host(&self) -> anyhow::Result<String> {
        self.script(
            "ip -br address | awk '{for (i = 3; i <= NF; i++) if ($i !~ /^fe80/) print $1, $i}'",
        )
    }

    /// FRR's daemons of the node.
    pub(crate) fn daemons(&self) -> anyhow::Result<String> {
        let daemons = self.script("pidof mgmtd zebra staticd bfdd bgpd || true")?;
        Ok(daemons.trim().to_owned())
    }

    pub(crate) fn script(&self, script: &str) -> anyhow::Result<String> {
        Ok(self.fabric.at("worker-3")?.script(script)?)
    }

    /// The devices of both namespaces.
    pub(crate) fn links(&self) -> anyhow::Result<String> {
        self.script("ip -br link | awk '{print \"host\", $1}'; ip -n selvedge -br link | awk '{print \"router\", $1}'")
    }
}

/// The config of the node in a world made of the shipped example, without the given attachments.
pub(crate) fn config(without: &[&str]) -> anyhow::Result<Value> {
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
    let mut config = configs
        .into_iter()
        .next()
        .ok_or_else(|| anyhow::anyhow!("there is no config"))?;
    // The example's neighbor is not the lab's leaf: sessions are for the tests that are about them.
    config["spec"]["health"] = json!({"sessions": false, "confirmDeadline": "30s"});
    Ok(config)
}

/// How often a change may be tried. A zebra of FRR 10.3 does not always survive that VRFs come and go: the attempt then fails, and the
/// node is as it was.
fn attempts(release: Release) -> usize {
    if release.frr_version() == "10.3" {
        6
    } else {
        1
    }
}

#[test]
fn every_supported_version_of_frr_is_configured_by_least_change() -> anyhow::Result<()> {
    for release in Release::ALL {
        let node = Node::start_on(release)?;
        let version = node.script("/usr/lib/frr/bgpd -v | head -1")?;
        let is_it = version.contains(&format!("version {}", release.frr_version()));
        assert!(is_it, "{release} has {version}");
        let (mut all, mut less) = (
            plugged(&node.fabric, &[])?,
            plugged(&node.fabric, &["shop"])?,
        );
        // A leaf of FRR 10.3 with BFD opens no session to a node without.
        for config in [&mut all, &mut less] {
            config["spec"]["underlay"]["neighbors"][0]["bfd"] = json!({});
            // How long a session takes is not what this is about.
            config["spec"]["health"]["confirmDeadline"] = "60s".into();
        }
        for (what, config) in [("first", &less), ("more", &all), ("less", &less)] {
            let attempts = node.becomes_within(attempts(release), config)?;
            eprintln!("{}: {what}: attempts: {attempts}", version.trim());
        }
        // A daemon that was started again opens its session anew.
        let mut session = String::new();
        let established = Fabric::eventually(Duration::from_mins(1), || {
            let summary = node.fabric.frr_json("leaf1", "show bgp summary json");
            session = summary.ok()?["ipv4Unicast"]["peers"].to_string();
            session.contains("Established").then_some(())
        });
        assert!(established.is_some(), "{release}: {session}");
    }
    Ok(())
}

/// FRR is upgraded on disk while its daemons run: what is reported and written for is the version that runs.
#[test]
fn the_version_of_frr_is_that_of_the_running_daemons() -> anyhow::Result<()> {
    let node = Node::start_on(Release::Forky)?;
    let mut good = plugged(&node.fabric, &[])?;
    good["spec"]["health"]["confirmDeadline"] = "60s".into();
    node.apply(&good)?.ok()?;
    node.script(
        "printf '#!/bin/sh\necho zebra version 8.4.4\n' > /run/zebra; chmod 755 /run/zebra
mount --bind /run/zebra /usr/lib/frr/zebra
/usr/lib/frr/zebra -v | grep -q 8.4.4",
    )?;
    let agent = cut_off_agent(&node)?;
    let mut shown = String::new();
    let version = Fabric::eventually(Duration::from_mins(1), || {
        shown = metrics(&node).ok()?;
        let (_, version) = shown.split_once("frr_version=\"")?;
        let (version, _) = version.split_once('"')?;
        (!version.is_empty()).then(|| version.to_owned())
    });
    let version = version.with_context(|| format!("{shown}\n{}", agent.stderr()))?;
    assert_eq!(version, Release::Forky.frr_version());
    // Lines for the version on disk would be differences.
    assert_eq!(preview(&node, &good)?, "nothing to do");
    end(&node, &agent)
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
    let running = "vtysh -N router -c 'show running-config'";
    let untouched = node.script(running)?;
    node.script("vtysh -N router -c 'configure terminal' -c 'router bgp 64514' -c 'neighbor 192.168.12.2 shutdown'")?;
    node.script(
        "vtysh -N router -c 'configure terminal' -c 'no route-map internet:evpn permit 10'",
    )?;
    let typed = node.script(running)?;
    assert!(
        typed.contains("neighbor 192.168.12.2 shutdown") && typed != untouched,
        "{typed}"
    );
    let mended = node.becomes(&all)?;
    assert!(
        mended.starts_with("0 kernel steps"),
        "only FRR was changed: {mended}"
    );
    assert_eq!(node.script(running)?, untouched);

    node.becomes(&less)?;
    assert_eq!(
        sorted(&node.links()?),
        sorted(&before),
        "what the attachment made is gone, and nothing else"
    );
    node.becomes(&none)?;
    assert_eq!(sorted(&node.links()?), sorted(&bare));

    devices_that_go_in_any_order_end_no_daemon(&node, &all)?;
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

    a_vrf_without_a_matching_route_drops(&node)?;

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

/// What is not in its own table is unreachable for a VRF, although the main table and another VRF have it.
fn a_vrf_without_a_matching_route_drops(node: &Node) -> anyhow::Result<()> {
    let vrfs = node.script("ip -n selvedge -br link show type vrf | awk '{print $1}'")?;
    let vrfs: Vec<&str> = vrfs.lines().collect();
    assert!(vrfs.len() >= 3, "{vrfs:?}");
    for (network, address) in [
        ("198.18.99.0/24", "198.18.99.1"),
        ("2001:db8:99::/48", "2001:db8:99::1"),
    ] {
        for owner in &vrfs {
            node.script(&format!(
                "ip -n selvedge route add {network} dev lo; ip -n selvedge route add {network} dev {owner} vrf {owner}
                ip -n selvedge route get {address} > /dev/null; ip -n selvedge route get {address} vrf {owner} > /dev/null"
            ))?;
            for vrf in vrfs.iter().filter(|it| *it != owner) {
                let said = node.script(&format!(
                    "ip -n selvedge route get {address} vrf {vrf} 2>&1 || true"
                ))?;
                let drops = ["No route to host", "unreachable"];
                assert!(drops.iter().any(|it| said.contains(it)), "{vrf}: {said}");
            }
            node.script(&format!(
                "ip -n selvedge route delete {network} dev lo; ip -n selvedge route delete {network} vrf {owner}"
            ))?;
        }
    }
    Ok(())
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Bridges, VRFs and VNIs that go one by one and come back with the next apply.
fn devices_that_go_in_any_order_end_no_daemon(node: &Node, config: &Value) -> anyhow::Result<()> {
    node.becomes(config)?;
    let before = node.daemons()?;
    let whole = node.links()?;
    for kinds in [
        ["vxlan", "bridge", "vrf"],
        ["vrf", "bridge", "vxlan"],
        ["bridge", "vrf", "vxlan"],
    ] {
        for kind in kinds {
            node.script(&format!(
                "for device in $(ip -n selvedge -br link show type {kind} | awk '{{print $1}}' | cut -d@ -f1); do ip -n selvedge link delete $device; done"
            ))?;
        }
        node.becomes(config)?;
        assert_eq!(sorted(&node.links()?), sorted(&whole), "{kinds:?}");
        assert_eq!(node.daemons()?, before, "{kinds:?}: a daemon ended");
    }
    Ok(())
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
