//! Ring 6, the host's router on packets: FRRConfigurations for two nodes are compiled, FRR in the host's own network runs what they come
//! to beside the devices of the reference configuration, and goes from one state to the next by the least change. The peers are leaves
//! that know nothing of Selvedge.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use anyhow::Context as _;
use api::tcaas::node_network_config::HostRouter;
use frr::{Batch, FrrVersion, Secrets, diff, host, parse, print};
use lab::{
    fabric::Fabric,
    parts::{self, Tree},
    space::{SPEAKER_INSTANCE, Space},
};
use serde_json::Value;

use crate::support::{progress, selvedge};

const PATIENCE: Duration = Duration::from_mins(1);
/// How long something that must not come is waited for, once others have come.
const GRACE: Duration = Duration::from_secs(3);

/// The devices that the host must have, as shipped.
pub(crate) const DEVICES: &str = include_str!("../../../../examples/host-evpn/host-evpn.sh");

/// The nodes, with their number.
const NODES: [(&str, u8); 2] = [("n1", 1), ("n2", 2)];

/// Objects for both nodes: each says a part.
const SHARED: &str = r#"
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {name: all-vnis, namespace: selvedge-system}
spec:
  bgp: {routers: [{asn: 64600, evpn: {advertiseVNIs: All}}]}
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {name: segment, namespace: selvedge-system}
spec:
  nodeSelector: {matchLabels: {segment: "yes"}}
  bgp:
    routers:
    - asn: 64600
      evpn: {l2vnis: [{vni: 1000, importRTs: ["64999:1000"], exportRTs: ["64999:1000"]}]}
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {name: more-targets, namespace: selvedge-system}
spec:
  nodeSelector: {matchLabels: {segment: "yes"}}
  bgp:
    routers:
    - asn: 64600
      evpn: {l2vnis: [{vni: 1000, importRTs: ["64999:1001"]}]}
---
"#;

/// Nodes and FRRConfigurations.
struct Objects(String);

impl Objects {
    fn new() -> Self {
        let mut text = SHARED.to_owned();
        for (node, number) in NODES {
            let _ = write!(
                text,
                "apiVersion: v1
kind: Node
metadata: {{name: {node}, labels: {{kubernetes.io/hostname: {node}, segment: \"yes\"}}}}
---
apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {{name: distinguisher-{node}, namespace: selvedge-system}}
spec:
  nodeSelector: {{matchLabels: {{kubernetes.io/hostname: {node}}}}}
  bgp: {{routers: [{{asn: 64600, evpn: {{l2vnis: [{{vni: 1000, rd: \"192.0.2.{number}:1000\"}}]}}}}]}}
---
"
            );
        }
        Self(text)
    }

    /// A session of a node with a leaf, in an object of its own.
    fn session(mut self, node: &str, number: u8, leaf: &str, address: &str, asn: u32) -> Self {
        let _ = write!(
            self.0,
            "apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {{name: session-{node}-{leaf}, namespace: selvedge-system}}
spec:
  nodeSelector: {{matchLabels: {{kubernetes.io/hostname: {node}}}}}
  bgp:
    routers:
    - asn: 64600
      prefixes: [100.65.0.{number}/32]
      neighbors:
      - address: {address}
        asn: {asn}
        localASN: 6460{number}
        connectTime: 1s
        addressFamilies: [unicast, evpn]
        toAdvertise: {{allowed: {{mode: all}}}}
        toReceive: {{allowed: {{mode: all}}}}
---
"
        );
        self
    }

    /// An object that says something of EVPN in the default VRF of one node.
    fn evpn(mut self, name: &str, node: &str, evpn: &str) -> Self {
        let _ = write!(
            self.0,
            "apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {{name: {name}-{node}, namespace: selvedge-system}}
spec:
  nodeSelector: {{matchLabels: {{kubernetes.io/hostname: {node}}}}}
  bgp: {{routers: [{{asn: 64600, evpn: {evpn}}}]}}
---
"
        );
        self
    }

    /// A VRF of one node with its layer 3 VNI and the prefix that it announces.
    fn vrf(mut self, vrf: &str, node: &str, number: u8, l3vni: &str) -> Self {
        let _ = write!(
            self.0,
            "apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {{name: {vrf}-{node}, namespace: selvedge-system}}
spec:
  nodeSelector: {{matchLabels: {{kubernetes.io/hostname: {node}}}}}
  bgp:
    routers:
    - asn: 64600
      vrf: {vrf}
      prefixes: [{prefix}]
      evpn: {{l3vni: {{advertisePrefixes: [unicast], {l3vni}}}}}
---
",
            prefix = network(vrf, number),
        );
        self
    }

    /// The routers of the nodes, and what the compiler says.
    fn compiled(&self) -> anyhow::Result<(BTreeMap<String, HostRouter>, String)> {
        let arguments = ["compile", "-f", "-", "--what", "nodes", "-o", "json"];
        let output = selvedge(&arguments, &self.0)?;
        let checked = selvedge(&["validate", "-f", "-"], &self.0)?;
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        let nodes: Vec<Value> =
            serde_json::from_slice(&output.stdout).with_context(|| said.clone())?;
        let mut routers = BTreeMap::new();
        for node in nodes {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            let router = serde_json::from_value(node["spec"]["hostRouter"].clone())
                .with_context(|| format!("{name} has no router: {said}"))?;
            routers.insert(name.to_owned(), router);
        }
        Ok((routers, said))
    }

    fn routers(&self) -> anyhow::Result<BTreeMap<String, HostRouter>> {
        let (routers, said) = self.compiled()?;
        assert!(!said.contains("error"), "{said}");
        Ok(routers)
    }
}

/// The network of a workload in a VRF of a node.
fn network(vrf: &str, number: u8) -> String {
    let tenant = if vrf == "red" { 1 } else { 2 };
    format!("10.{tenant}.{number}.0/24")
}

struct World {
    fabric: Fabric,
}

impl World {
    /// Two leaves and two nodes. The first node hangs on both leaves. Devices are there, FRR is not.
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let fabric = Fabric::builder()
            .leaf("leaf1", 64500)
            .leaf("leaf2", 64501)
            .node("n1", &["leaf1", "leaf2"])
            .node("n2", &["leaf1"])
            .start(&tree, &progress)?;
        for (leaf, asn) in [("leaf1", 64500), ("leaf2", 64501)] {
            // A busy machine is no broken link.
            let script = format!(
                "vtysh -N router -c 'configure terminal' -c 'router bgp {asn}' -c 'no neighbor fabric bfd'"
            );
            fabric.at(leaf)?.script(&script)?;
        }
        let world = Self { fabric };
        for (node, number) in NODES {
            let space = world.at(node)?;
            space.write("/run/host-evpn.sh", DEVICES)?;
            space.script(&format!(
                "sh /run/host-evpn.sh up 100.65.0.{number} l3:2000:red:1100 l3:3000:blue:1200 l2:1000 l2:1001
                 {}{}",
                workload("red", number, None),
                workload("blue", number, None),
            ))?;
            space.script(&workload("segment", number, Some("br1000")))?;
        }
        Ok(world)
    }

    fn at(&self, machine: &str) -> anyhow::Result<&Space> {
        Ok(self.fabric.at(machine)?)
    }

    /// The address of a leaf on its link to a node.
    fn leaf_address(&self, leaf: &str, node: &str) -> anyhow::Result<String> {
        let link = self.fabric.link(leaf, node)?;
        let (_, far) = link.seen_from(node).context("a link of the node")?;
        Ok(far.ipv4.addr().to_string())
    }

    /// The sessions that are there from the start: of each node with the first leaf.
    fn objects(&self) -> anyhow::Result<Objects> {
        let mut objects = Objects::new();
        for (node, number) in NODES {
            let address = self.leaf_address("leaf1", node)?;
            objects = objects.session(node, number, "leaf1", &address, 64500);
        }
        Ok(objects)
    }

    /// Boots FRR on the hosts of the nodes.
    fn boot(&self, objects: &Objects) -> anyhow::Result<()> {
        for (node, router) in objects.routers()? {
            let desired = host::desired(&router, &Secrets::new(), FrrVersion::NEWEST);
            assert_eq!(desired.unsupported, [], "{node}");
            let conf = print(&desired.config, FrrVersion::NEWEST, "test");
            self.at(&node)?.start_speaker(&conf)?;
            self.established(&node, "leaf1");
        }
        Ok(())
    }

    /// Brings the running FRRs from where they are to these objects, by the least change.
    fn becomes(&self, objects: &Objects) -> anyhow::Result<()> {
        for (node, router) in objects.routers()? {
            let wanted = host::desired(&router, &Secrets::new(), FrrVersion::NEWEST).config;
            let running = || -> anyhow::Result<_> {
                let text = self.vtysh(&node, &["show running-config"])?;
                Ok(parse(&text, FrrVersion::NEWEST).config)
            };
            let change = diff(&running()?, &wanted);
            // Only a session that goes is closed.
            for closed in &change.resets {
                let peer = closed.peer.as_ref().context("all sessions are closed")?;
                let stays = wanted.bgp[&closed.vrf].neighbors.contains_key(peer);
                assert!(!stays, "{node}: {change}");
            }
            let (batches, clears) = (change.batches(), change.clear_batches());
            for batch in batches.iter().chain(&clears) {
                let Batch::Commands(commands) = batch else {
                    anyhow::bail!("there are no passwords");
                };
                let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
                self.vtysh(&node, &commands)?;
            }
            // The VRFs are the host's: their empty blocks stay as long as their devices.
            let left = diff(&running()?, &wanted);
            assert_eq!(left.steps, [], "{node}: {change}\nleaves\n{left}");
        }
        Ok(())
    }

    fn vtysh(&self, node: &str, commands: &[&str]) -> anyhow::Result<String> {
        let mut argv = vec!["vtysh", "-N", SPEAKER_INSTANCE];
        for command in commands {
            argv.extend(["-c", command]);
        }
        Ok(self.at(node)?.run(&argv)?)
    }

    /// How often the session of a node with a leaf came up and went down; `None` while it is not up.
    fn session(&self, node: &str, leaf: &str) -> Option<(u64, u64)> {
        let address = self.leaf_address(leaf, node).ok()?;
        let show = format!("show bgp neighbors {address} json");
        let json: Value = serde_json::from_str(&self.vtysh(node, &[&show]).ok()?).ok()?;
        let peer = &json[&address];
        (peer["bgpState"] == "Established").then(|| {
            let count = |field: &str| peer[field].as_u64().unwrap_or_default();
            (count("connectionsEstablished"), count("connectionsDropped"))
        })
    }

    fn established(&self, node: &str, leaf: &str) {
        self.eventually(&format!("{node} has a session with {leaf}"), || {
            Ok(self.session(node, leaf).is_some())
        });
    }

    /// The EVPN routes that a leaf has from a node, as it prints them with their communities.
    fn at_peer(&self, leaf: &str, kind: &str) -> anyhow::Result<String> {
        let show = format!("show bgp l2vpn evpn route type {kind}");
        Ok(self
            .at(leaf)?
            .run(&["vtysh", "-N", "router", "-c", &show])?)
    }

    fn sees(&self, leaf: &str, kind: &str, wanted: &[&str]) {
        let what = format!("{leaf} has a route of type {kind} with {wanted:?}");
        self.eventually(&what, || {
            let routes = self.at_peer(leaf, kind)?;
            Ok(wanted.iter().all(|text| routes.contains(text)))
        });
    }

    fn eventually(&self, what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) {
        let done = Fabric::eventually(PATIENCE, || is_so().ok().filter(|so| *so));
        if done.is_none() {
            for (node, _) in NODES {
                let show = "ip -br address; ip route show table all | grep -v ^local; bridge fdb show; vtysh -N speaker -c 'show running-config' \
                     -c 'show bgp summary' -c 'show bgp l2vpn evpn' -c 'show evpn vni' -c 'show vrf vni' || true";
                eprintln!("=== {node}\n{}", self.inspect(node, show));
            }
            for leaf in ["leaf1", "leaf2"] {
                let show = "vtysh -N router -c 'show bgp summary' -c 'show bgp l2vpn evpn'";
                eprintln!("=== {leaf}\n{}", self.inspect(leaf, show));
            }
        }
        assert!(done.is_some(), "{what}");
    }

    fn inspect(&self, machine: &str, script: &str) -> String {
        let said = self.at(machine).and_then(|space| Ok(space.script(script)?));
        said.unwrap_or_else(|error| format!("{error:#}"))
    }

    /// Whether the workload of the first node reaches that of the second, in a VRF or in the segment.
    fn reaches(&self, place: &str) -> anyhow::Result<bool> {
        let target = address(place, 2);
        let script = format!("ip netns exec {place} ping -n -q -c 2 -i 0.2 -W 1 {target}");
        let output = self.at("n1")?.output(&["bash", "-c", &script], "")?;
        Ok(output.status == 0)
    }

    fn connects(&self, place: &str) {
        self.eventually(&format!("workloads in {place} reach each other"), || {
            self.reaches(place)
        });
    }

    fn separates(&self, place: &str) -> anyhow::Result<()> {
        std::thread::sleep(GRACE);
        assert!(
            !self.reaches(place)?,
            "workloads in {place} reach each other"
        );
        Ok(())
    }
}

/// The address of a workload.
fn address(place: &str, number: u8) -> String {
    match place {
        "segment" => format!("10.9.0.{number}"),
        vrf => network(vrf, number).replace(".0/24", ".10"),
    }
}

/// A workload of a node: in a VRF behind a link of its own, or on a bridge.
pub(crate) fn workload(place: &str, number: u8, bridge: Option<&str>) -> String {
    let own = address(place, number);
    let (host, after) = if let Some(bridge) = bridge {
        (
            format!("ip link set h-{place} master {bridge}"),
            String::new(),
        )
    } else {
        let gateway = network(place, number).replace(".0/24", ".1");
        (
            format!(
                "ip link set h-{place} master {place}; ip address add {gateway}/24 dev h-{place}"
            ),
            format!("ip -n {place} route add default via {gateway}"),
        )
    };
    format!(
        "ip netns add {place}
         ip link add h-{place} type veth peer name eth0 netns {place}
         {host}
         ip link set h-{place} up
         ip -n {place} link set lo up
         ip -n {place} address add {own}/24 dev eth0
         ip -n {place} link set eth0 up
         {after}
"
    )
}

#[test]
fn objects_for_some_nodes_compose_and_change_without_disturbing_sessions() -> anyhow::Result<()> {
    let world = World::start()?;
    world.boot(&world.objects()?)?;
    // What several objects say of one VNI, with the distinguisher of the node, is seen at the peer.
    for number in [1, 2] {
        let vtep = format!("[100.65.0.{number}]");
        let distinguisher = format!("Route Distinguisher: 192.0.2.{number}:1000");
        world.sees(
            "leaf1",
            "multicast",
            &[&vtep, &distinguisher, "RT:64999:1000"],
        );
    }
    for (node, number) in NODES {
        let text = world.vtysh(node, &["show running-config"])?;
        for line in [
            &format!("   rd 192.0.2.{number}:1000"),
            "   route-target import 64999:1000",
            "   route-target import 64999:1001",
            "   route-target export 64999:1000",
        ] {
            assert!(text.contains(line), "{node}: {line}: {text}");
        }
    }
    // Traffic on layer 2, and the routes that lead it.
    world.connects("segment");
    world.sees(
        "leaf1",
        "macip",
        &[
            "Route Distinguisher: 192.0.2.1:1000",
            "100.65.0.1",
            "RT:64999:1000",
        ],
    );
    let before: Vec<_> = NODES.map(|(node, _)| world.session(node, "leaf1")).to_vec();

    // One VNI more, other values, a neighbor more; and back.
    let more = |world: &World| -> anyhow::Result<Objects> {
        let mut objects = world.objects()?;
        for (node, number) in NODES {
            let vni = format!(
                "{{l2vnis: [{{vni: 1001, rd: \"192.0.2.{number}:1\", importRTs: [\"64999:7\"], exportRTs: [\"64999:7\"]}}]}}"
            );
            objects = objects.evpn("more", node, &vni);
        }
        Ok(objects)
    };
    world.becomes(&more(&world)?)?;
    world.sees(
        "leaf1",
        "multicast",
        &["Route Distinguisher: 192.0.2.1:1\n", "RT:64999:7"],
    );
    let changed = |world: &World| -> anyhow::Result<Objects> {
        let objects = more(world)?;
        let text = objects
            .0
            .replace("192.0.2.1:1\"", "192.0.2.1:2\"")
            .replace("64999:7", "64999:8");
        Ok(Objects(text))
    };
    world.becomes(&changed(&world)?)?;
    world.sees(
        "leaf1",
        "multicast",
        &["Route Distinguisher: 192.0.2.1:2\n", "RT:64999:8"],
    );
    let address = world.leaf_address("leaf2", "n1")?;
    let second = changed(&world)?.session("n1", 1, "leaf2", &address, 64501);
    world.becomes(&second)?;
    world.established("n1", "leaf2");
    world.sees("leaf2", "multicast", &["[100.65.0.1]"]);
    world.becomes(&world.objects()?)?;
    world.eventually("leaf1 has no route of the VNI that went", || {
        Ok(!world.at_peer("leaf1", "multicast")?.contains("RT:64999:8"))
    });
    world.connects("segment");
    let after: Vec<_> = NODES.map(|(node, _)| world.session(node, "leaf1")).to_vec();
    assert_eq!(after, before, "sessions with leaf1: came up, went down");
    Ok(())
}

#[test]
fn vrfs_reach_each_other_over_layer_3_vnis_where_their_route_targets_match() -> anyhow::Result<()> {
    let world = World::start()?;
    let vrfs = |world: &World, red: &str, blue: [&str; 2]| -> anyhow::Result<Objects> {
        let mut objects = world.objects()?;
        for ((node, number), blue) in NODES.into_iter().zip(blue) {
            let red = format!("vni: 2000, rd: \"192.0.2.{number}:2000\", {red}");
            let blue = format!("vni: 3000, rd: \"192.0.2.{number}:3000\", {blue}");
            objects = objects
                .vrf("red", node, number, &red)
                .vrf("blue", node, number, &blue);
        }
        Ok(objects)
    };
    let red = r#"importRTs: ["64999:2000"], exportRTs: ["64999:2000"]"#;
    // Each side of blue exports what the other does not import.
    let apart = [
        r#"importRTs: ["64999:31"], exportRTs: ["64999:31"]"#,
        r#"importRTs: ["64999:32"], exportRTs: ["64999:32"]"#,
    ];
    world.boot(&vrfs(&world, red, apart)?)?;
    world.sees(
        "leaf1",
        "prefix",
        &[
            "10.1.1.0",
            "10.2.2.0",
            "Route Distinguisher: 192.0.2.1:2000",
            "RT:64999:2000",
            "RT:64999:32",
        ],
    );
    world.connects("red");
    world.separates("blue")?;
    let has = |vrf: &str| -> anyhow::Result<bool> {
        let show = format!("show ip route vrf {vrf} {} json", network(vrf, 2));
        Ok(world
            .vtysh("n1", &[&show])?
            .contains("\"protocol\":\"bgp\""))
    };
    assert!(has("red")? && !has("blue")?);
    let before: Vec<_> = NODES.map(|(node, _)| world.session(node, "leaf1")).to_vec();

    // A wildcard takes the number of any administrator, on both sides.
    let any = [
        r#"importRTs: ["*:32"], exportRTs: ["64999:31"]"#,
        r#"importRTs: ["*:31"], exportRTs: ["65001:32"]"#,
    ];
    world.becomes(&vrfs(&world, red, any)?)?;
    world.connects("blue");
    // And away again.
    world.becomes(&vrfs(&world, red, apart)?)?;
    world.eventually("blue is apart again", || Ok(!world.reaches("blue")?));
    world.connects("red");

    // What is wrong changes nothing that is right.
    let right = vrfs(&world, red, apart)?;
    let (routers, _) = right.compiled()?;
    for wrong in [
        // A VNI twice.
        r"{l2vnis: [{vni: 2000}]}",
        // No route distinguisher.
        r#"{l2vnis: [{vni: 1001, rd: "1.2:3"}]}"#,
        // A route target that cannot be exported.
        r#"{l2vnis: [{vni: 1001, exportRTs: ["*:3"]}]}"#,
        // A layer 3 VNI in the router of the underlay.
        r"{l3vni: {vni: 4000, advertisePrefixes: [unicast]}}",
    ] {
        let (with, said) = vrfs(&world, red, apart)?
            .evpn("wrong", "n1", wrong)
            .compiled()?;
        assert!(said.contains("wrong-n1"), "{wrong}: {said}");
        assert_eq!(with["n1"].routers, routers["n1"].routers, "{wrong}");
        assert_eq!(with["n2"].routers, routers["n2"].routers, "{wrong}");
    }
    let after: Vec<_> = NODES.map(|(node, _)| world.session(node, "leaf1")).to_vec();
    assert_eq!(after, before, "sessions with leaf1: came up, went down");
    Ok(())
}
