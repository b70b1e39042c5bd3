//! Ring 6, Underlays, L3VNIs, L2VNIs and L3Passthroughs on packets: two racks with a ToR and an AS number each, BGP speakers on
//! the hosts of nodes, and the addresses of intents that these speakers announce.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use lab::{
    Ping,
    control_plane::{ControlPlane, User},
    fabric::Fabric,
    host::Running,
    parts::{self, Kubernetes, Tree},
    topology::LeafVrf,
};
use serde_json::Value;

use crate::support::{Daemon, SELVEDGE, agent_role, install_crds, preview, progress, start_agent};

const PATIENCE: Duration = Duration::from_secs(90);
/// How long a route that must not come is waited for, once others have come.
const GRACE: Duration = Duration::from_secs(3);

/// Nodes with their rack. n3 has a NIC to each ToR, so that a label alone moves it.
const NODES: [(&str, &str); 3] = [("n1", "rack-1"), ("n2", "rack-2"), ("n3", "rack-1")];
/// NIC and address of each node in the network of a rack: ToR, NIC, node, address.
const LINKS: [(&str, &str, &str, &str); 4] = [
    ("tor1", "toswitch", "n1", "192.168.1.1/24"),
    ("tor2", "toswitch2", "n2", "192.168.2.2/24"),
    ("tor1", "toswitch", "n3", "192.168.1.3/24"),
    ("tor2", "toswitch2", "n3", "192.168.2.3/24"),
];

/// The multi-rack example of the proposal with an AS number for each rack and each ToR, and the other kinds on top of it.
const OBJECTS: &str = r#"
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: underlay-rack-1, namespace: default}
spec:
  nodeSelector: {matchLabels: {topology.kubernetes.io/rack: rack-1}}
  asn: 64512
  evpn: {vtepcidr: 100.65.1.0/24}
  nics: [toswitch]
  neighbors: [{asn: 64500, address: 192.168.1.254, connectTime: 1s}]
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: underlay-rack-2, namespace: default}
spec:
  nodeSelector: {matchLabels: {topology.kubernetes.io/rack: rack-2}}
  asn: 64513
  evpn: {vtepcidr: 100.65.2.0/24}
  nics: [toswitch2]
  neighbors: [{asn: 64501, address: 192.168.2.254, connectTime: 1s}]
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {name: tenant-a-rack-1, namespace: default}
spec:
  nodeSelector: {matchLabels: {topology.kubernetes.io/rack: rack-1}}
  vrf: tenant-a
  vni: 5001
  vxlanport: 4789
  hostsession: {asn: 64512, hostasn: 64600}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {name: tenant-a-rack-2, namespace: default}
spec:
  nodeSelector: {matchLabels: {topology.kubernetes.io/rack: rack-2}}
  vrf: tenant-a
  vni: 5002
  vxlanport: 4789
  hostsession: {asn: 64513, hostasn: 64600}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {name: tenant-b, namespace: default}
spec:
  vrf: tenant-b
  vni: 6001
  importRTs: ["64500:6001"]
  exportRTs: ["64500:6001"]
  hostsession: {asn: 64512, hostasn: 64601}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {name: tenant-c-rack-1, namespace: default}
spec:
  nodeSelector: {matchLabels: {topology.kubernetes.io/rack: rack-1}}
  vrf: tenant-c
  vni: 6002
  hostsession: {asn: 64512, hostasn: 64603}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3VNI
metadata: {name: tenant-c-rack-2, namespace: default}
spec:
  nodeSelector: {matchLabels: {topology.kubernetes.io/rack: rack-2}}
  vrf: tenant-c
  vni: 6002
  hostsession: {asn: 64513, hostasn: 64603}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L2VNI
metadata: {name: app-network, namespace: default}
spec:
  vni: 10100
  vxlanport: 4789
  hostmaster: {type: bridge, autocreate: true}
  l2gatewayip: 10.100.0.1/24
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: L3Passthrough
metadata: {name: edge-passthrough, namespace: default}
spec:
  nodeSelector: {matchLabels: {node-role.kubernetes.io/edge: ""}}
  hostsession: {asn: 64512, hostasn: 64700}
---
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec:
  trunk: {addresses: [169.254.100.0/31]}
  clusterNeighbors: [{address: 169.254.100.0, remoteASN: 64602}]
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: services}
spec: {vrf: services, vni: 10200, routeTarget: "64500:10200"}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: services, labels: {zone: services}}
spec: {vrfRef: services, prefixes: [198.51.100.128/25]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: ingress}
spec: {ipv4: {cidr: 203.0.113.32/28}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: egress}
spec: {ipv4: {cidr: 203.0.113.48/28}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: ingress}
spec:
  networkRef: ingress
  destinations: {matchLabels: {zone: services}}
  addresses: {ipv4: [203.0.113.33]}
  advertisement: {type: bgp}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Outbound
metadata: {name: egress}
spec:
  networkRef: egress
  destinations: {matchLabels: {zone: services}}
  addresses: {ipv4: [203.0.113.49, 203.0.113.50]}
"#;

struct World {
    // The order of the fields is the order in which they end.
    agents: Vec<Running>,
    operator: Daemon,
    plane: ControlPlane,
    fabric: Fabric,
}

impl World {
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let kubernetes = Kubernetes::prepare(&progress)?;
        let fabric = Fabric::builder()
            .leaf("tor1", 64500)
            .leaf("tor2", 64501)
            .node_with("n1", &[("toswitch", "tor1")])
            .node_with("n2", &[("toswitch2", "tor2")])
            .node_with("n3", &[("toswitch", "tor1"), ("toswitch2", "tor2")])
            .vrf("tor2", leaf_vrf("tenant-b", 6001, "192.0.2.0/24")?)
            .vrf("tor2", leaf_vrf("services", 10200, "198.51.100.128/25")?)
            .start(&tree, &progress)?;
        racks(&fabric)?;
        let plane = NODES
            .iter()
            .fold(ControlPlane::builder(&kubernetes), |plane, (node, _)| {
                plane.user(User::new(&agent_user(node), &[]))
            })
            .inside(fabric.namespace(), fabric.control_plane_address())
            .start()?;
        install_crds(&plane)?;
        let kubeconfig = plane.kubeconfig("admin")?;
        let operator = Daemon::start(
            fabric.namespace(),
            &["operator", "--kubeconfig", &kubeconfig.to_string_lossy()],
        )?;
        let mut world = Self {
            agents: Vec::new(),
            operator,
            plane,
            fabric,
        };
        world.fabric.hand_in(SELVEDGE.as_ref())?;
        for (node, rack) in NODES {
            world.join(node, rack)?;
        }
        Ok(world)
    }

    fn join(&mut self, node: &str, rack: &str) -> anyhow::Result<()> {
        let edge = if node == "n1" {
            ", node-role.kubernetes.io/edge: ''"
        } else {
            ""
        };
        self.apply(&format!(
            "
apiVersion: v1
kind: Node
metadata: {{name: {node}, labels: {{topology.kubernetes.io/rack: {rack}{edge}}}}}
---{}",
            agent_role(node, &agent_user(node), &["none"]),
        ))?;
        let agent = start_agent(&self.fabric, &self.plane, node, &agent_user(node))?;
        self.agents.push(agent);
        Ok(())
    }

    fn apply(&self, manifests: &str) -> anyhow::Result<()> {
        self.plane
            .kubectl(&["apply", "--validate=strict", "-f", "-"], manifests)?;
        Ok(())
    }

    fn config(&self, node: &str) -> anyhow::Result<Value> {
        let text = self
            .plane
            .kubectl(&["get", "nodenetworkconfig", node, "--output=json"], "")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Waits until a node runs a config of which something is true, and a second plan there is empty.
    fn runs(&self, node: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        let done = Fabric::eventually(PATIENCE, || {
            last = self.config(node).ok()?;
            let (spec, status) = (&last["spec"], &last["status"]);
            let applied = status["observedRevision"] == spec["revision"]
                && status["configStatus"] == "provisioned"
                && status["observedGeneration"] == last["metadata"]["generation"];
            (applied && wanted(spec)).then_some(())
        });
        if done.is_none() {
            let agents = self.agents.iter().map(Running::stderr);
            let agents = agents.collect::<Vec<_>>().join("\n---\n");
            let objects = self.plane.kubectl(
                &[
                    "get",
                    "underlays,l3vnis,l2vnis,l3passthroughs,inbounds,outbounds,settings",
                    "-A",
                    "-o",
                    "yaml",
                ],
                "",
            )?;
            anyhow::bail!(
                "{node} does not run it: {last:#}\n{agents}\n{}\n{objects}",
                self.operator.log()?
            );
        }
        let said = preview(&self.fabric, node, &last.to_string())?;
        assert_eq!(said, "nothing to do", "on {node}");
        Ok(last)
    }

    fn reaches(&self, from: &str, target: &str) {
        self.eventually(&format!("{from} reaches {target}"), || {
            Ok(self.fabric.ping(from, target, 2)?.whole())
        });
    }

    fn loses(&self, from: &str, target: &str) -> anyhow::Result<()> {
        let Ping { sent, received } = self.fabric.ping(from, target, 3)?;
        assert_eq!((sent, received), (3, 0), "{from} reaches {target}");
        Ok(())
    }

    /// The routers of these VTEPs from which a leaf has an EVPN route to a prefix in one of its VRFs.
    fn announcers(&self, leaf: &str, vrf: &str, prefix: &str) -> anyhow::Result<Vec<String>> {
        let command = format!("show bgp vrf {vrf} ipv4 unicast {prefix} json");
        let route = self.fabric.frr_json(leaf, &command)?;
        let paths = route["paths"].as_array().cloned().unwrap_or_default();
        let next_hops = paths
            .iter()
            .filter_map(|path| path["nexthops"][0]["ip"].as_str().map(str::to_owned));
        Ok(next_hops.collect())
    }

    fn eventually(&self, what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) {
        let done = Fabric::eventually(PATIENCE, || is_so().ok().filter(|so| *so));
        if done.is_none() {
            for (node, _) in NODES {
                eprintln!("=== {node}\n{}", self.inspect(node));
            }
            for tor in ["tor1", "tor2"] {
                let show = "ip -br address; ip route; vtysh -N router -c 'show bgp summary' -c 'show bgp l2vpn evpn' -c 'show ip route vrf all'";
                eprintln!("=== {tor}\n{}", self.at(tor, show));
            }
        }
        assert!(done.is_some(), "{what}");
    }

    fn at(&self, machine: &str, script: &str) -> String {
        let space = self.fabric.at(machine).map_err(anyhow::Error::from);
        let said = space.and_then(|space| Ok(space.script(script)?));
        said.unwrap_or_else(|error| format!("{error:#}"))
    }

    fn inspect(&self, node: &str) -> String {
        let show = "ip -br address; ip route; ip -n selvedge -br address; ip -n selvedge route show table all | grep -v ^local; \
            ip -n selvedge neigh; bridge -n selvedge fdb show; bridge -n selvedge link; bridge link; \
            vtysh -N router -c 'show bgp summary' -c 'show bgp vrf all summary' -c 'show evpn vni' -c 'show bgp l2vpn evpn' \
            -c 'show running-config' -c 'show ip route vrf all'; vtysh -N speaker -c 'show bgp summary' -c 'show ip bgp' || true";
        self.at(node, show)
    }
}

fn agent_user(node: &str) -> String {
    format!("selvedge-agent-{node}")
}

fn leaf_vrf(name: &str, vni: u32, prefix: &str) -> anyhow::Result<LeafVrf> {
    Ok(LeafVrf {
        name: name.to_owned(),
        vni,
        route_target: format!("64500:{vni}"),
        prefixes: vec![prefix.parse()?],
    })
}

/// Makes the links of each ToR to its nodes one network, as the example has it: one address of the ToR for a whole rack. The ToRs
/// do without BFD, which takes a busy machine for a broken link between them.
fn racks(fabric: &Fabric) -> anyhow::Result<()> {
    for (number, tor) in [(1, "tor1"), (2, "tor2")] {
        let asn = 64499 + number;
        fabric.at(tor)?.script(&format!(
            "ip link add rack mtu 9000 up type bridge
             ip address add 192.168.{number}.254/24 dev rack
             vtysh -N router -c 'configure terminal' -c 'router bgp {asn}' -c 'no neighbor fabric bfd' -c 'bgp listen range 192.168.{number}.0/24 peer-group fabric'"
        ))?;
    }
    for (tor, nic, node, address) in LINKS {
        fabric.at(tor)?.script(&format!(
            "ip address flush dev {node}; ip link set {node} master rack"
        ))?;
        fabric.at(node)?.script(&format!(
            "ip address flush dev {nic}; ip address add {address} dev {nic}"
        ))?;
    }
    Ok(())
}

/// A session of a speaker on the host of a node.
struct Session<'a> {
    /// The router's address.
    router: String,
    remote_as: u64,
    local_as: u32,
    /// The addresses that the speaker announces in this session; they are the host's own.
    announced: &'a [&'a str],
}

/// The FRR configuration of a speaker on a host.
fn speaker(sessions: &[Session<'_>]) -> String {
    let mut lists = vec!["frr defaults traditional".to_owned()];
    let mut bgp = vec![
        "router bgp 65000".to_owned(),
        "no bgp ebgp-requires-policy".to_owned(),
    ];
    let mut family = vec!["address-family ipv4 unicast".to_owned()];
    for Session {
        router,
        remote_as,
        local_as,
        announced,
    } in sessions
    {
        let name = format!("to-{local_as}");
        bgp.extend([
            format!("neighbor {router} remote-as {remote_as}"),
            format!("neighbor {router} local-as {local_as} no-prepend replace-as"),
            format!("neighbor {router} timers 1 3"),
            format!("neighbor {router} timers connect 1"),
        ]);
        family.extend([
            // The speakers of other nodes have the same AS number.
            format!("neighbor {router} allowas-in"),
            format!("neighbor {router} prefix-list {name} out"),
        ]);
        lists.push(format!("ip prefix-list {name} deny 0.0.0.0/32"));
        for address in *announced {
            lists.push(format!("ip prefix-list {name} permit {address}/32"));
            family.push(format!("network {address}/32"));
        }
    }
    let end = ["exit-address-family".to_owned(), "exit".to_owned()];
    [&lists[..], &bgp, &family, &end].concat().join("\n") + "\n"
}

/// The address of the router in a session of a node's config.
fn router_of(session: &Value) -> anyhow::Result<String> {
    let address = session["routerAddresses"][0]
        .as_str()
        .with_context(|| format!("no address in {session}"))?;
    Ok(address.split('/').next().unwrap_or_default().to_owned())
}

impl World {
    /// Starts a speaker on the host of a node, with the addresses that it announces on the host's loopback.
    fn speak(&self, node: &str, sessions: &[Session<'_>]) -> anyhow::Result<()> {
        let host = self.fabric.at(node)?;
        for address in sessions.iter().flat_map(|session| session.announced) {
            host.run(&[
                "ip",
                "address",
                "add",
                &format!("{address}/32"),
                "dev",
                "lo",
            ])?;
        }
        Ok(host.start_speaker(&speaker(sessions))?)
    }

    /// The session of a VRF, for a speaker of this AS number.
    fn session<'a>(
        config: &Value,
        vrf: &str,
        local_as: u32,
        announced: &'a [&'a str],
    ) -> anyhow::Result<Session<'a>> {
        let vrf = &config["spec"]["fabricVRFs"][vrf];
        let asn = vrf["asn"].as_u64();
        Ok(Session {
            router: router_of(&vrf["hostSession"])?,
            remote_as: asn
                .or_else(|| config["spec"]["underlay"]["asn"].as_u64())
                .context("an AS number")?,
            local_as,
            announced,
        })
    }
}

#[test]
fn racks_tenants_segments_and_services_work_on_packets_and_a_label_moves_one_node()
-> anyhow::Result<()> {
    let start = Instant::now();
    let mut world = World::start()?;
    world.apply(OBJECTS)?;
    let has_all = |spec: &Value| {
        spec["fabricVRFs"]["services"].is_object() && spec["fabricVRFs"]["tenant-b"].is_object()
    };
    let n1 = world.runs("n1", has_all)?;
    let n2 = world.runs("n2", has_all)?;
    let n3 = world.runs("n3", has_all)?;
    eprintln!("all nodes run: {:.1} s", start.elapsed().as_secs_f64());

    let passthrough = &n1["spec"]["passthroughs"]["default/edge-passthrough"];
    let trunk = "169.254.100.1".to_owned();
    world.speak(
        "n1",
        &[
            World::session(&n1, "tenant-a", 64600, &["203.0.113.1"])?,
            World::session(&n1, "tenant-b", 64601, &["203.0.113.2"])?,
            Session {
                router: router_of(passthrough)?,
                remote_as: 64512,
                local_as: 64700,
                announced: &["203.0.113.3"],
            },
            Session {
                router: trunk,
                remote_as: 64512,
                local_as: 64602,
                announced: &["203.0.113.33", "203.0.113.49"],
            },
        ],
    )?;
    for (node, config, address) in [("n2", &n2, "203.0.113.5"), ("n3", &n3, "203.0.113.6")] {
        world.speak(
            node,
            &[World::session(config, "tenant-a", 64600, &[address])?],
        )?;
    }

    hosts_exchange_routes_over_their_sessions(&world)?;
    vrfs_in_two_ases_meet_by_their_vni(&world, &n1, &n2);
    passthrough_is_the_fabrics_own_table(&world)?;
    segments_are_stretched_across_racks(&mut world)?;
    addresses_of_intents_are_where_they_are_announced(&world, &n1)?;
    a_label_moves_one_node(&mut world)?;
    eprintln!("whole: {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn hosts_exchange_routes_over_their_sessions(world: &World) -> anyhow::Result<()> {
    // Within the rack, in both directions, over VNI 5001.
    world.reaches("n3", "203.0.113.1");
    world.reaches("n1", "203.0.113.6");
    // Behind the leaf of the other rack.
    world.reaches("n1", "192.0.2.77");
    world.reaches("tenant-b", "203.0.113.2");
    // Another VNI of the same VRF name is another network; another tenant is, too.
    std::thread::sleep(GRACE);
    for (node, address) in [("n2", "203.0.113.1"), ("n3", "203.0.113.2")] {
        let route = world.at(node, &format!("ip route show {address}"));
        assert_eq!(route.trim(), "", "{node} has a route to {address}");
    }
    world.loses("tenant-b", "203.0.113.1")
}

/// FRR makes route targets of AS number and VNI, and looks for routes by the VNI alone.
fn vrfs_in_two_ases_meet_by_their_vni(world: &World, n1: &Value, n2: &Value) {
    for (node, other, asn) in [("n1", n2, 64512), ("n2", n1, 64513)] {
        let host = &other["spec"]["fabricVRFs"]["tenant-c"]["hostSession"]["hostAddresses"][0];
        let host = host.as_str().unwrap_or_default().split('/').next();
        let host = host.unwrap_or_default();
        world.eventually(&format!("{node} has the host {host} in tenant-c"), || {
            let show = format!("show bgp vrf tenant-c ipv4 unicast {host}/32 json");
            let route = world.fabric.at(node)?.frr_json(&show)?;
            Ok(route["paths"][0]["valid"] == true)
        });
        let router = format!(
            "vtysh -N router -c 'show running-config' | grep 'router bgp {asn} vrf tenant-c'"
        );
        assert_ne!(world.at(node, &router).trim(), "", "{node} is in AS {asn}");
    }
}

fn passthrough_is_the_fabrics_own_table(world: &World) -> anyhow::Result<()> {
    // The ToR of the other rack answers from its loopback, which the host has learned from the fabric.
    world.eventually("tor2 reaches the host of n1 in the fabric's table", || {
        let ping = "ping -q -c 2 -W 1 -I 10.254.0.2 203.0.113.3";
        Ok(world.fabric.at("tor2")?.script(ping).is_ok())
    });
    // The ToR's own rack reaches tor2 by its own links: the node is no transit.
    let tor1 = world
        .fabric
        .frr_json("tor1", "show bgp ipv4 unicast 10.254.0.2/32 json")?;
    let paths = tor1["paths"].as_array().map_or(0, Vec::len);
    assert_eq!(paths, 1, "tor1 learns tor2 through a node: {tor1}");
    Ok(())
}

fn segments_are_stretched_across_racks(world: &mut World) -> anyhow::Result<()> {
    for (number, (node, _)) in (1..).zip(NODES) {
        let address = [format!("10.100.0.1{number}/24").parse()?];
        let gateway = ["10.100.0.1".parse()?];
        let name = format!("w{number}");
        world
            .fabric
            .workload(&name, node, "br-hs-10100", &address, &gateway)?;
    }
    world.reaches("w1", "10.100.0.12");
    world.reaches("w2", "10.100.0.13");
    for workload in ["w1", "w2", "w3"] {
        world.reaches(workload, "10.100.0.1");
    }
    Ok(())
}

fn addresses_of_intents_are_where_they_are_announced(
    world: &World,
    n1: &Value,
) -> anyhow::Result<()> {
    world.reaches("services", "203.0.113.33");
    // The source address of the Outbound is what the host behind the leaf sees, and answers.
    let host = world.fabric.at("services")?;
    let seen = host.capture("eth0", "icmp[icmptype] == icmp-echo")?;
    world.eventually("the Outbound's address is answered behind the leaf", || {
        let ping = "ping -q -c 2 -W 1 -I 203.0.113.49 198.51.100.177";
        Ok(world.fabric.at("n1")?.script(ping).is_ok())
    });
    let seen = seen.stdout();
    assert!(seen.contains("203.0.113.49 > 198.51.100.177"), "{seen}");
    // Only the node that has the address announces it, or the network that it is from.
    let vtep = n1["spec"]["underlay"]["vtep"].as_str().context("a VTEP")?;
    for prefix in [
        "203.0.113.33/32",
        "203.0.113.32/28",
        "203.0.113.49/32",
        "203.0.113.48/28",
    ] {
        let from = world.announcers("tor2", "services", prefix)?;
        assert!(
            from.iter().all(|next_hop| next_hop == vtep),
            "{prefix}: {from:?}"
        );
    }
    let aggregate = world.announcers("tor2", "services", "203.0.113.32/28")?;
    assert_eq!(aggregate, [vtep], "the aggregate comes with the live route");
    world.at("n1", "vtysh -N speaker -c 'configure terminal' -c 'router bgp 65000' -c 'neighbor 169.254.100.1 shutdown'");
    world.eventually("addresses are withdrawn with their speaker", || {
        let host = world.announcers("tor2", "services", "203.0.113.33/32")?;
        let aggregate = world.announcers("tor2", "services", "203.0.113.32/28")?;
        Ok(host.is_empty() && aggregate.is_empty())
    });
    world.loses("services", "203.0.113.33")
}

fn a_label_moves_one_node(world: &mut World) -> anyhow::Result<()> {
    let generation = |node: &str| -> anyhow::Result<Value> {
        Ok(world.config(node)?["metadata"]["generation"].clone())
    };
    let others = [generation("n1")?, generation("n2")?];
    let untouched = world.fabric.at("w1")?.start(&[
        "ping",
        "-i",
        "0.05",
        "-c",
        "200",
        "-W",
        "2",
        "10.100.0.12",
    ])?;
    let label = "topology.kubernetes.io/rack=rack-2";
    world
        .plane
        .kubectl(&["label", "--overwrite", "node", "n3", label], "")?;
    let n3 = world.runs("n3", |spec| {
        spec["underlay"]["source"] == "default/underlay-rack-2"
    })?;
    assert_eq!(n3["spec"]["underlay"]["nics"][0], "toswitch2");
    assert_eq!(
        others,
        [generation("n1")?, generation("n2")?],
        "only n3 is written"
    );
    let output = untouched.wait(PATIENCE)?;
    assert!(
        output
            .stdout
            .contains("200 packets transmitted, 200 received"),
        "{}",
        output.stdout
    );
    // The NIC of the old rack is the host's again, with its address.
    let nic = world.at("n3", "ip -br address show dev toswitch");
    assert!(nic.contains("192.168.1.3/24"), "{nic}");
    let vteps = world.at("n3", "ip -n selvedge -br address show dev lo");
    assert!(
        vteps.contains("100.65.2.") && !vteps.contains("100.65.1."),
        "{vteps}"
    );
    world.reaches("w3", "10.100.0.11");
    world.reaches("w3", "10.100.0.12");
    // The VRF has the VNI of the other rack now.
    let session = World::session(&n3, "tenant-a", 64600, &[])?;
    let command = format!(
        "vtysh -N speaker -c 'configure terminal' -c 'router bgp 65000' -c 'neighbor {0} remote-as {1}' \
         -c 'neighbor {0} local-as 64600 no-prepend replace-as' -c 'neighbor {0} timers 1 3' \
         -c 'neighbor {0} timers connect 1' -c 'address-family ipv4 unicast' -c 'neighbor {0} allowas-in' \
         -c 'neighbor {0} prefix-list to-64600 out'",
        session.router, session.remote_as
    );
    world.fabric.at("n3")?.script(&command)?;
    world.reaches("n3", "203.0.113.5");
    world.reaches("n2", "203.0.113.6");
    Ok(())
}
