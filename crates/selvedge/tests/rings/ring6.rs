//! Ring 6, the fabric: from a tenant's YAML to a ping. Agents in guests, packets counted.

use std::time::{Duration, Instant};

use lab::{
    Ping,
    control_plane::{ControlPlane, User},
    fabric::Fabric,
    host::Running,
    parts::{self, Kubernetes, Tree},
    topology::LeafVrf,
};

use crate::support::{Daemon, SELVEDGE, agent_role, install_crds, preview, progress, start_agent};

/// How long anything may take that involves guests.
const PATIENCE: Duration = Duration::from_mins(1);

const NODES: [(&str, &str); 2] = [("n1", "leaf1"), ("n2", "leaf2")];

/// A cluster of two nodes behind two leaves, with operator and agents running.
struct World {
    // The order of the fields is the order in which they end.
    agents: Vec<Running>,
    _operator: Daemon,
    plane: ControlPlane,
    fabric: Fabric,
}

impl World {
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let kubernetes = Kubernetes::prepare(&progress)?;
        let fabric = Fabric::builder()
            .leaf("leaf1", 64512)
            .leaf("leaf2", 64513)
            .node("n1", &["leaf1"])
            .node("n2", &["leaf2"])
            .vrf(
                "leaf2",
                leaf_vrf("m2m_enc", 10100, ["192.0.2.0/24", "2001:db8:f::/48"])?,
            )
            .vrf(
                "leaf2",
                leaf_vrf("third", 10300, ["203.0.113.0/24", "2001:db8:e::/48"])?,
            )
            .start(&tree, &progress)?;
        eprintln!("fabric start: {:.1} s", fabric.up_after().as_secs_f64());
        let plane = NODES
            .iter()
            .fold(ControlPlane::builder(&kubernetes), |plane, (node, _)| {
                plane.user(User::new(&agent_user(node), &[]))
            })
            .inside(fabric.namespace(), fabric.control_plane_address())
            .start()?;
        eprintln!(
            "control plane start: {:.1} s",
            plane.ready_after().as_secs_f64()
        );
        install_crds(&plane)?;
        let kubeconfig = plane.kubeconfig("admin")?;
        let operator = Daemon::start(
            fabric.namespace(),
            &["operator", "--kubeconfig", &kubeconfig.to_string_lossy()],
        )?;
        let mut world = Self {
            agents: Vec::new(),
            _operator: operator,
            plane,
            fabric,
        };
        world.fabric.hand_in(SELVEDGE.as_ref())?;
        for (node, leaf) in NODES {
            world.join(node, leaf)?;
        }
        Ok(world)
    }

    /// Makes a machine of the fabric a node of the cluster.
    fn join(&mut self, node: &str, leaf: &str) -> anyhow::Result<()> {
        let link = self.fabric.link(node, leaf)?;
        let (near, far) = link.seen_from(node).expect("the link has two ends");
        let (nic, peer) = (&near.interface, far.ipv4.addr());
        self.apply(&format!(
            "
apiVersion: v1
kind: Node
metadata: {{name: {node}, labels: {{kubernetes.io/hostname: {node}}}}}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {{name: {node}, namespace: default}}
spec:
  nodeSelector: {{matchLabels: {{kubernetes.io/hostname: {node}}}}}
  asn: 64514
  nics: [{nic}]
  evpn: {{vtepcidr: 100.65.0.0/24}}
  neighbors: [{{type: external, address: {peer}, connectTime: 1s}}]
---{}",
            agent_role(node, &agent_user(node), &["none"]),
        ))?;
        let agent = self.agent(node)?;
        self.agents.push(agent);
        Ok(())
    }

    fn agent(&self, node: &str) -> anyhow::Result<Running> {
        start_agent(&self.fabric, &self.plane, node, &agent_user(node))
    }

    fn apply(&self, manifests: &str) -> anyhow::Result<()> {
        self.plane
            .kubectl(&["apply", "--validate=strict", "-f", "-"], manifests)?;
        Ok(())
    }

    fn delete(&self, attachment: &str) -> anyhow::Result<()> {
        self.plane
            .kubectl(&["delete", "layer2attachment", attachment], "")?;
        Ok(())
    }

    fn get(&self, what: &str, path: &str) -> anyhow::Result<String> {
        Ok(self
            .plane
            .kubectl(&["get", what, &format!("--output=jsonpath={path}")], "")?)
    }

    /// Does something that leads to another revision, and waits until every node runs that one and has said so.
    fn change(&self, act: impl FnOnce(&Self) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let before = self.told()?;
        act(self)?;
        self.settled(&before)?;
        self.second_plans_are_empty()
    }

    /// The revision that each node was told.
    fn told(&self) -> anyhow::Result<Vec<String>> {
        let told = self.get(
            "nodenetworkconfigs",
            "{range .items[*]}{.spec.revision}{\"\\n\"}{end}",
        )?;
        Ok(told.lines().map(str::to_owned).collect())
    }

    /// Waits until all nodes run one revision that is none of `before`.
    fn settled(&self, before: &[String]) -> anyhow::Result<()> {
        let state = "{range .items[*]}{.spec.revision} {.status.observedRevision} {.status.configStatus} {.metadata.name} {.status.errorMessage}{\"\\n\"}{end}";
        let mut last = String::new();
        let done = Fabric::eventually(PATIENCE, || {
            last = self.get("nodenetworkconfigs", state).unwrap_or_default();
            let states: Vec<Vec<&str>> =
                last.lines().map(|line| line.split(' ').collect()).collect();
            let revision = states.first()?.first()?;
            let runs = |state: &Vec<&str>| state.starts_with(&[revision, revision, "provisioned"]);
            let is_new = !before.iter().any(|before| before == revision);
            (is_new && states.len() == NODES.len() && states.iter().all(runs)).then_some(())
        });
        anyhow::ensure!(
            done.is_some(),
            "nodes did not settle:\n{last}\n{}",
            self.diagnosis()
        );
        Ok(())
    }

    /// Plans once more on every node: nothing may be left to do.
    fn second_plans_are_empty(&self) -> anyhow::Result<()> {
        for (node, _) in NODES {
            let config = self
                .plane
                .kubectl(&["get", "nodenetworkconfig", node, "--output=json"], "")?;
            let said = preview(&self.fabric, node, &config)?;
            assert_eq!(said, "nothing to do", "on {node}");
        }
        Ok(())
    }

    fn diagnosis(&self) -> String {
        let agents = self
            .agents
            .iter()
            .map(|agent| format!("{}{}", agent.stdout(), agent.stderr()));
        agents.collect::<Vec<_>>().join("\n---\n")
    }

    fn reaches(&self, from: &str, target: &str) {
        let answered = Fabric::eventually(PATIENCE, || {
            self.fabric
                .ping(from, target, 2)
                .is_ok_and(Ping::whole)
                .then_some(())
        });
        if answered.is_none() {
            for (node, _) in NODES {
                eprintln!("{}", self.inspect(node));
            }
        }
        assert!(answered.is_some(), "{from} does not reach {target}");
    }

    fn inspect(&self, node: &str) -> String {
        let show = "ip -br link; ip -n selvedge -br link; ip -n selvedge -br address; ip -n selvedge route show table all | grep -v ^local; \
            ip -n selvedge -6 route show table all | grep -v -E '^(local|anycast|multicast)'; ip -n selvedge neigh; bridge -n selvedge fdb show; \
            vtysh -N router -c 'show bgp summary' -c 'show evpn vni' -c 'show bgp l2vpn evpn' -c 'show running-config' -c 'show ip route vrf all'";
        let Ok(space) = self.fabric.at(node) else {
            return String::new();
        };
        space.script(show).unwrap_or_else(|error| error.to_string())
    }

    fn does_not_reach(&self, from: &str, target: &str) {
        let ping = self.fabric.ping(from, target, 3).expect("ping runs");
        assert_eq!(
            (ping.sent, ping.received),
            (3, 0),
            "{from} reaches {target}"
        );
    }
}

fn agent_user(node: &str) -> String {
    format!("selvedge-agent-{node}")
}

fn leaf_vrf(name: &str, vni: u32, prefixes: [&str; 2]) -> anyhow::Result<LeafVrf> {
    Ok(LeafVrf {
        name: name.to_owned(),
        vni,
        route_target: format!("64500:{vni}"),
        prefixes: prefixes
            .into_iter()
            .map(str::parse)
            .collect::<Result<_, _>>()?,
    })
}

/// A tenant's VRF with a destination, a network and its attachment.
fn tenant(vrf: &str, vni: u32, prefixes: &str, vlan: u16, ipv4: &str, ipv6: &str) -> String {
    let name = vrf.replace('_', "-");
    format!(
        "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {{name: {name}}}
spec: {{vrf: {vrf}, vni: {vni}, routeTarget: \"64500:{vni}\"}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {{name: {name}, labels: {{zone: {name}}}}}
spec: {{vrfRef: {name}, prefixes: [{prefixes}]}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {{name: {name}}}
spec: {{ipv4: {{cidr: {ipv4}}}, ipv6: {{cidr: \"{ipv6}\"}}, vlan: {vlan}, vni: {l2vni}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {{name: {name}}}
spec:
  networkRef: {name}
  interfaceName: {name}
  destinations: {{matchLabels: {{zone: {name}}}}}
",
        l2vni = vni + u32::from(vlan),
    )
}

fn inventories(world: &World) -> anyhow::Result<Vec<Vec<String>>> {
    NODES
        .iter()
        .map(|(node, _)| inventory(world, node))
        .collect()
}

/// Everything of the kernel and FRR on a node that has a name, one line each.
fn inventory(world: &World, node: &str) -> anyhow::Result<Vec<String>> {
    let script = "ip -br link | awk '{print \"host link\", $1}'
        ip -n selvedge -br link | awk '{print \"router link\", $1}'
        ip -n selvedge -br address | awk '{for (i = 3; i <= NF; i++) if ($i !~ /^fe80/) print \"router address\", $1, $i}'
        ip -n selvedge rule; ip -n selvedge -6 rule
        ip -n selvedge route show table all proto 176; ip -n selvedge -6 route show table all proto 176
        vtysh -N router -c 'show running-config' | grep -v -e '^!' -e '^Building' -e '^Current' -e '^$'";
    let text = world.fabric.at(node)?.script(script)?;
    Ok(text
        .lines()
        .map(|line| line.replace("@NONE", "").trim_end().to_owned())
        .collect())
}

#[test]
fn a_tenants_yaml_becomes_a_ping_across_the_fabric_and_its_deletion_leaves_nothing()
-> anyhow::Result<()> {
    let mut world = World::start()?;
    world.settled(&[])?;
    let bare = inventories(&world)?;

    let third = tenant(
        "third",
        10300,
        "203.0.113.0/24",
        235,
        "198.51.100.0/26",
        "2001:db8:300::/64",
    );
    world.change(|world| world.apply(&third))?;
    let before = inventories(&world)?;

    let start = Instant::now();
    let secure = tenant(
        "m2m_enc",
        10100,
        "192.0.2.0/24",
        234,
        "198.51.100.128/25",
        "2001:db8:100::/64",
    );
    world.change(|world| world.apply(&secure))?;
    eprintln!(
        "intent to configured nodes: {:.1} s",
        start.elapsed().as_secs_f64()
    );
    plug_in_workloads(&mut world)?;
    world.reaches("w1", "198.51.100.142");
    eprintln!(
        "intent to first ping: {:.1} s",
        start.elapsed().as_secs_f64()
    );
    what_is_declared_is_reached_and_nothing_else(&world);
    let ready = "{.status.conditions[?(@.type==\"Ready\")].message}";
    assert_eq!(
        world.get("layer2attachment/m2m-enc", ready)?,
        "applied on 2 nodes"
    );

    a_restarted_agent_disturbs_nothing(&mut world)?;

    world.change(|world| world.delete("m2m-enc"))?;
    assert_eq!(
        inventories(&world)?,
        before,
        "each node has exactly what it had before the attachment"
    );
    world.reaches("t1", "198.51.100.12");
    world.change(|world| world.delete("third"))?;
    assert_eq!(
        inventories(&world)?,
        bare,
        "each node has exactly what it had before any attachment"
    );
    Ok(())
}

/// Workloads w1 and w2 in the segment of `m2m_enc`, t1 and t2 in that of `third`, one of each on every node.
fn plug_in_workloads(world: &mut World) -> anyhow::Result<()> {
    for (number, (node, _)) in (1..).zip(NODES) {
        let secure = [
            format!("198.51.100.{}/25", 140 + number).parse()?,
            format!("2001:db8:100::{number}0/64").parse()?,
        ];
        let gateways = ["198.51.100.129".parse()?, "2001:db8:100::1".parse()?];
        world.fabric.workload(
            &format!("w{number}"),
            node,
            "l2.m2m-enc",
            &secure,
            &gateways,
        )?;
        let third = [
            format!("198.51.100.{}/26", 10 + number).parse()?,
            format!("2001:db8:300::{number}0/64").parse()?,
        ];
        let gateways = ["198.51.100.1".parse()?, "2001:db8:300::1".parse()?];
        world
            .fabric
            .workload(&format!("t{number}"), node, "l2.third", &third, &gateways)?;
    }
    Ok(())
}

fn what_is_declared_is_reached_and_nothing_else(world: &World) {
    // Over the L2 VNI, the anycast gateway, and over the L3 VNI behind a leaf; both families.
    for (from, other) in [
        ("w1", "2001:db8:100::20"),
        ("w2", "198.51.100.141"),
        ("w2", "2001:db8:100::10"),
    ] {
        world.reaches(from, other);
    }
    for target in [
        "198.51.100.129",
        "2001:db8:100::1",
        "192.0.2.77",
        "2001:db8:f::77",
    ] {
        world.reaches("w1", target);
        world.reaches("w2", target);
    }
    // Workload, gateway and what is behind the leaf in the other VRF, on the same node and on the other. Each target is reached
    // by a workload of its own VRF, so that it is known to be there.
    let third = [
        ("t2", "198.51.100.11"),
        ("t1", "198.51.100.12"),
        ("t1", "198.51.100.1"),
        ("t1", "203.0.113.77"),
        ("t2", "2001:db8:300::10"),
        ("t1", "2001:db8:300::1"),
        ("t1", "2001:db8:e::77"),
    ];
    let secure = [
        ("w2", "198.51.100.141"),
        ("w1", "198.51.100.129"),
        ("w1", "192.0.2.77"),
        ("w1", "2001:db8:100::1"),
    ];
    for (stranger, targets) in [("w1", third.as_slice()), ("t1", secure.as_slice())] {
        for (owner, target) in targets {
            world.reaches(owner, target);
            world.does_not_reach(stranger, target);
        }
    }
}

/// Kills the agent of a node under a ping of a hundred packets a second, starts it again, and counts.
fn a_restarted_agent_disturbs_nothing(world: &mut World) -> anyhow::Result<()> {
    let ping = world.fabric.at("w1")?.start(&[
        "ping",
        "-i",
        "0.01",
        "-c",
        "1000",
        "-W",
        "2",
        "192.0.2.77",
    ])?;
    std::thread::sleep(Duration::from_secs(2));
    let old = world.agents.remove(0);
    old.signal(lab::host::Signal::KILL);
    old.wait(PATIENCE)?;
    let new = world.agent("n1")?;
    new.wait_for("agent starts", PATIENCE)?;
    world.agents.insert(0, new);
    let output = ping.wait(PATIENCE)?;
    assert!(
        output
            .stdout
            .contains("1000 packets transmitted, 1000 received"),
        "{}",
        output.stdout
    );
    Ok(())
}
