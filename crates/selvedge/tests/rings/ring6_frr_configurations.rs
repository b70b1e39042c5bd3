//! Ring 6, FRRConfigurations in a cluster: written to a real API server, merged by the operator, applied by the agent, seen at leaves
//! that know nothing of Selvedge, and told in the objects.

use std::{collections::BTreeMap, time::Instant};

use anyhow::Context as _;
use lab::{
    control_plane::{ControlPlane, User},
    fabric::Fabric,
    host::{Running, Signal},
    parts::{self, Kubernetes, Tree},
};
use serde_json::Value;

use crate::{
    ring4_safety::NODE,
    ring6_cut_off::PATIENCE,
    ring6_host_router::{DEVICES, workload},
    support::{Daemon, SELVEDGE, agent_role, install_crds, progress, start_agent},
};

const LEAVES: [(&str, u32); 2] = [("leaf1", 64500), ("leaf2", 64501)];
const USER: &str = "agent";

/// Devices of the node. VRF `blue` comes later.
const HAS: &str = "l3:2000:red:1100 l2:1000";
const LATER: &str = "l3:3000:blue:1200";

/// A session with a leaf, in an object of its own, which also announces these prefixes.
fn session(leaf: &str, address: &str, asn: u32, prefixes: &str) -> String {
    object(
        &format!("session-{leaf}"),
        &format!(
            "    - asn: 64600
      prefixes: [100.65.0.1/32{prefixes}]
      neighbors:
      - address: {address}
        asn: {asn}
        localASN: 64601
        connectTime: 1s
        addressFamilies: [unicast, evpn]
        toAdvertise: {{allowed: {{mode: all}}}}
        toReceive: {{allowed: {{mode: all}}}}"
        ),
    )
}

/// An object that says something of EVPN in the default VRF.
fn evpn(name: &str, evpn: &str) -> String {
    object(name, &format!("    - {{asn: 64600, evpn: {evpn}}}"))
}

/// The values of the layer 2 VNI.
fn segment(name: &str, values: &str) -> String {
    evpn(name, &format!("{{l2vnis: [{{vni: 1000, {values}}}]}}"))
}

/// A VRF with its layer 3 VNI.
fn vrf(vrf: &str, prefix: &str, l3vni: &str) -> String {
    object(
        vrf,
        &format!(
            "    - {{asn: 64600, vrf: {vrf}, prefixes: [{prefix}], evpn: {{l3vni: {{advertisePrefixes: [unicast], {l3vni}}}}}}}"
        ),
    )
}

fn object(name: &str, router: &str) -> String {
    format!(
        "apiVersion: frrk8s.metallb.io/v1beta1
kind: FRRConfiguration
metadata: {{name: {name}, namespace: selvedge-system}}
spec:
  bgp:
    routers:
{router}
---
"
    )
}

struct World {
    // The order of the fields is the order in which they end.
    agent: Running,
    operator: Daemon,
    plane: ControlPlane,
    fabric: Fabric,
}

impl World {
    /// A node behind two leaves, with the devices of the reference configuration and a workload in each network.
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let kubernetes = Kubernetes::prepare(&progress)?;
        let builder = LEAVES
            .iter()
            .fold(Fabric::builder(), |fabric, (leaf, asn)| {
                fabric.leaf(leaf, *asn)
            });
        let fabric = builder
            .node(NODE, &LEAVES.map(|(leaf, _)| leaf))
            .start(&tree, &progress)?;
        for (leaf, asn) in LEAVES {
            // A busy machine is no broken link.
            fabric.at(leaf)?.script(&format!(
                "vtysh -N router -c 'configure terminal' -c 'router bgp {asn}' -c 'no neighbor fabric bfd'"
            ))?;
        }
        let plane = ControlPlane::builder(&kubernetes)
            .user(User::new(USER, &[]))
            .inside(fabric.namespace(), fabric.control_plane_address())
            .start()?;
        install_crds(&plane)?;
        let operator = Self::operator(&plane, &fabric)?;
        let node = format!("apiVersion: v1\nkind: Node\nmetadata: {{name: {NODE}}}\n");
        let role = agent_role(NODE, USER, &["none"]);
        plane.kubectl(&["apply", "-f", "-"], &format!("{node}---{role}"))?;
        fabric.hand_in(SELVEDGE.as_ref())?;
        let space = fabric.at(NODE)?;
        space.write("/run/host-evpn.sh", DEVICES)?;
        space.script(&format!(
            "sh /run/host-evpn.sh up 100.65.0.1 {HAS}\n{}\n{}",
            workload("red", 1, None),
            workload("segment", 1, Some("br1000"))
        ))?;
        let agent = start_agent(&fabric, &plane, NODE, USER)?;
        Ok(Self {
            agent,
            operator,
            plane,
            fabric,
        })
    }

    fn operator(plane: &ControlPlane, fabric: &Fabric) -> anyhow::Result<Daemon> {
        let kubeconfig = plane.kubeconfig("admin")?;
        let operator = ["operator", "--kubeconfig", &kubeconfig.to_string_lossy()];
        Daemon::start(fabric.namespace(), &operator)
    }

    /// What the FRR of the host runs.
    fn running(&self) -> anyhow::Result<String> {
        let show = ["vtysh", "-N", "host", "-c", "show running-config"];
        Ok(self.fabric.at(NODE)?.run(&show)?)
    }

    /// The session with a leaf.
    fn session(&self, leaf: &str, asn: u32, prefixes: &str) -> anyhow::Result<String> {
        Ok(session(leaf, &self.leaf_address(leaf)?, asn, prefixes))
    }

    /// The address of a leaf on its link to the node.
    fn leaf_address(&self, leaf: &str) -> anyhow::Result<String> {
        let link = self.fabric.link(leaf, NODE)?;
        let (_, far) = link.seen_from(NODE).context("a link of the node")?;
        Ok(far.ipv4.addr().to_string())
    }

    /// Writes objects, and waits until leaves have what they come to.
    fn write(
        &self,
        what: &str,
        objects: &str,
        seen: impl Fn() -> anyhow::Result<(bool, String)>,
    ) -> anyhow::Result<()> {
        let apply = ["apply", "--validate=strict", "-f", "-"];
        self.timed(what, &apply, objects, seen)
    }

    /// Deletes an object, and waits until leaves have what is left.
    fn delete(
        &self,
        what: &str,
        object: &str,
        seen: impl Fn() -> anyhow::Result<(bool, String)>,
    ) -> anyhow::Result<()> {
        let delete = [
            "delete",
            "frrconfiguration",
            "-n",
            "selvedge-system",
            object,
        ];
        self.timed(what, &delete, "", seen)
    }

    fn timed(
        &self,
        what: &str,
        arguments: &[&str],
        objects: &str,
        seen: impl Fn() -> anyhow::Result<(bool, String)>,
    ) -> anyhow::Result<()> {
        self.plane.kubectl(arguments, objects)?;
        let start = Instant::now();
        self.until(what, seen)?;
        eprintln!(
            "{what}: {:.2} s after the write",
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }

    /// Waits until this holds, and else says what was seen last and how everything is.
    fn until(
        &self,
        what: &str,
        seen: impl Fn() -> anyhow::Result<(bool, String)>,
    ) -> anyhow::Result<()> {
        let mut last = String::new();
        let done = Fabric::eventually(PATIENCE, || {
            let (holds, now) = seen().unwrap_or_else(|error| (false, format!("{error:#}")));
            last = now;
            holds.then_some(())
        });
        done.with_context(|| format!("not so: {what}\n{last}\n{}", self.diagnosis()))
    }

    fn diagnosis(&self) -> String {
        let show = "ip -br address; bridge fdb show; vtysh -N host -c 'show running-config' -c 'show bgp summary' \
            -c 'show bgp l2vpn evpn' -c 'show evpn vni' || true";
        let node = self.fabric.at(NODE).map_err(anyhow::Error::from);
        let node = node.and_then(|node| Ok(node.script(show)?));
        let objects = self.plane.kubectl(
            &[
                "get",
                "frrconfigurations,nodenetworkconfigs",
                "-A",
                "-o",
                "yaml",
            ],
            "",
        );
        format!(
            "{node:?}\n{objects:?}\n{}\n{}",
            self.operator.log().unwrap_or_default(),
            self.agent.stderr()
        )
    }

    /// The EVPN routes of a kind that a leaf has, with all of these texts and none of those.
    fn routes(
        &self,
        leaf: &str,
        kind: &str,
        wanted: &[&str],
        unwanted: &[&str],
    ) -> anyhow::Result<(bool, String)> {
        let show = format!("show bgp l2vpn evpn route type {kind}");
        let routes = ["vtysh", "-N", "router", "-c", &show];
        let routes = self.fabric.at(leaf)?.run(&routes)?;
        let has = |text: &&str| routes.contains(*text);
        let holds = wanted.iter().all(has) && !unwanted.iter().any(has);
        Ok((holds, routes))
    }

    /// Whether a leaf has a prefix from the host itself: leaves tell each other what they have.
    fn has_prefix(&self, leaf: &str, prefix: &str, wanted: bool) -> anyhow::Result<(bool, String)> {
        let show = format!("show bgp ipv4 unicast {prefix} json");
        let route = self.fabric.frr_json(leaf, &show)?;
        let link = self.fabric.link(leaf, NODE)?;
        let (near, _) = link.seen_from(NODE).context("a link of the node")?;
        let node = near.ipv4.addr().to_string();
        let paths = route["paths"].as_array();
        let has = paths
            .into_iter()
            .flatten()
            .any(|path| path["peer"]["peerId"] == *node);
        Ok((has == wanted, route.to_string()))
    }

    /// How often the session with a leaf came up and went down.
    fn resets(&self, leaf: &str) -> anyhow::Result<(u64, u64)> {
        let address = self.leaf_address(leaf)?;
        let show = format!("show bgp neighbors {address} json");
        let said = self
            .fabric
            .at(NODE)?
            .run(&["vtysh", "-N", "host", "-c", &show])?;
        let said: Value = serde_json::from_str(&said)?;
        let count = |field: &str| said[&address][field].as_u64().context("a number");
        Ok((
            count("connectionsEstablished")?,
            count("connectionsDropped")?,
        ))
    }

    fn get(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let get = ["get", "-n", "selvedge-system", "-o", "json"];
        let text = self.plane.kubectl(&[&get[..], arguments].concat(), "")?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Waits until an object has these conditions, all of its current generation; what it says.
    fn says(&self, name: &str, wanted: &[(&str, Option<&str>)]) -> anyhow::Result<Value> {
        let read = || self.get(&["frrconfiguration", name]);
        self.until(&format!("{name} says {wanted:?}"), || {
            let object = read()?;
            let status = &object["status"];
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let holds = wanted.iter().all(|(kind, wanted)| {
                let own = conditions.iter().find(|one| one["type"] == *kind);
                let is_current = own.is_none_or(|own| {
                    own["observedGeneration"] == object["metadata"]["generation"]
                });
                is_current && own.and_then(|own| own["status"].as_str()) == *wanted
            });
            let is_current = status["observedGeneration"] == object["metadata"]["generation"];
            Ok((holds && is_current, status.to_string()))
        })?;
        Ok(read()?["status"].clone())
    }

    fn is_applied(&self, name: &str) -> anyhow::Result<()> {
        let wanted = [
            ("Accepted", Some("True")),
            ("Applied", Some("True")),
            ("Ready", Some("True")),
            ("DevicesMissing", None),
        ];
        let status = self.says(name, &wanted)?;
        let nodes = &status["nodes"];
        assert_eq!(
            (&nodes["matched"], &nodes["applied"]),
            (&1.into(), &1.into())
        );
        Ok(())
    }

    /// Waits until these are the sessions that the cluster is told of, all of them up.
    fn told_sessions(&self, leaves: &[&str]) -> anyhow::Result<()> {
        let wanted: anyhow::Result<BTreeMap<String, String>> = leaves
            .iter()
            .map(|leaf| Ok((self.leaf_address(leaf)?, "Established".to_owned())))
            .collect();
        let wanted = wanted?;
        self.until(&format!("the sessions are those with {leaves:?}"), || {
            let found = self.get(&["bgpsessionstates"])?;
            let items = found["items"].as_array().cloned().unwrap_or_default();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let told: BTreeMap<String, String> = items
                .iter()
                .map(|one| {
                    (
                        text(&one["status"]["peer"]),
                        text(&one["status"]["bgpStatus"]),
                    )
                })
                .collect();
            Ok((told == wanted, format!("{told:?}")))
        })
    }

    /// Waits until the state of the node shows a running configuration with and without these lines.
    fn told_config(&self, wanted: &[&str], unwanted: &[&str]) -> anyhow::Result<()> {
        self.until(
            &format!("the node tells of {wanted:?}, not of {unwanted:?}"),
            || {
                let state = self.get(&["frrnodestate", NODE])?;
                let status = &state["status"];
                let running = status["runningConfig"].as_str().unwrap_or_default();
                let holds = status["lastConversionResult"] == "success"
                    && status["lastReloadResult"] == "success"
                    && wanted.iter().all(|line| running.contains(line))
                    && !unwanted.iter().any(|line| running.contains(line));
                Ok((holds, state.to_string()))
            },
        )
    }
}

const OWN: &str = r#"rd: "192.0.2.1:1000", importRTs: ["64999:1000"], exportRTs: ["64999:1000"]"#;
const CHANGED: &str =
    r#"rd: "192.0.2.1:1001", importRTs: ["64999:1000"], exportRTs: ["64999:1001"]"#;
const RED: &str = r#"vni: 2000, rd: "192.0.2.1:2000", exportRTs: ["64999:2000"]"#;
const RED_CHANGED: &str = r#"vni: 2000, rd: "192.0.2.1:2001", exportRTs: ["64999:2001"]"#;
const BLUE: &str = r#"vni: 3000, rd: "192.0.2.1:3000", exportRTs: ["64999:3000"]"#;

#[test]
fn configurations_written_to_the_cluster_are_at_the_peers_and_told_in_their_objects()
-> anyhow::Result<()> {
    let mut world = World::start()?;
    what_several_objects_say_is_at_both_leaves(&world)?;
    let before = world.resets("leaf1")?;
    assert_eq!(before.1, 0, "the session went down");
    values_change_in_place(&world)?;
    a_contradiction_changes_nothing_and_says_so(&mut world)?;
    what_the_host_lacks_is_told_and_heals(&world)?;
    what_is_removed_is_withdrawn_and_nothing_else(&world)?;
    assert_eq!(
        world.resets("leaf1")?,
        before,
        "sessions with leaf1: came up, went down"
    );
    Ok(())
}

fn what_several_objects_say_is_at_both_leaves(world: &World) -> anyhow::Result<()> {
    let mut objects = evpn("all-vnis", "{advertiseVNIs: All}");
    for (leaf, asn) in LEAVES {
        objects += &world.session(leaf, asn, "")?;
    }
    objects += &segment("segment", OWN);
    objects += &vrf("red", "10.1.1.0/24", RED);
    world.write("the first configuration", &objects, || {
        // The bridge learns the workload from what it sends.
        let ask = "ip netns exec segment ping -q -c 1 -W 1 10.9.0.99 || true";
        world.fabric.at(NODE)?.script(ask)?;
        let of_segment = ["Route Distinguisher: 192.0.2.1:1000", "RT:64999:1000"];
        world.routes("leaf1", "macip", &of_segment, &[])
    })?;
    for (leaf, _) in LEAVES {
        let of_segment = ["Route Distinguisher: 192.0.2.1:1000", "RT:64999:1000"];
        let of_red = [
            "Route Distinguisher: 192.0.2.1:2000",
            "10.1.1.0",
            "RT:64999:2000",
        ];
        for (kind, wanted) in [
            ("macip", &of_segment[..]),
            ("multicast", &of_segment),
            ("prefix", &of_red),
        ] {
            world.until(&format!("{leaf} has {wanted:?}"), || {
                world.routes(leaf, kind, wanted, &[])
            })?;
        }
        world.until(&format!("{leaf} has the VTEP"), || {
            world.has_prefix(leaf, "100.65.0.1/32", true)
        })?;
    }
    for name in [
        "all-vnis",
        "session-leaf1",
        "session-leaf2",
        "segment",
        "red",
    ] {
        world.is_applied(name)?;
    }
    world.told_sessions(&["leaf1", "leaf2"])?;
    world.told_config(&["rd 192.0.2.1:1000", "vrf red\n vni 2000"], &[])
}

fn values_change_in_place(world: &World) -> anyhow::Result<()> {
    let changed = segment("segment", CHANGED);
    world.write("other values of a layer 2 VNI", &changed, || {
        let wanted = ["Route Distinguisher: 192.0.2.1:1001", "RT:64999:1001"];
        let unwanted = ["Route Distinguisher: 192.0.2.1:1000"];
        world.routes("leaf1", "macip", &wanted, &unwanted)
    })?;
    let changed = vrf("red", "10.1.1.0/24", RED_CHANGED);
    world.write("other values of a layer 3 VNI", &changed, || {
        let wanted = ["Route Distinguisher: 192.0.2.1:2001", "RT:64999:2001"];
        let unwanted = ["Route Distinguisher: 192.0.2.1:2000"];
        world.routes("leaf1", "prefix", &wanted, &unwanted)
    })?;
    let more = world.session("leaf1", 64500, ", 203.0.113.0/24")?;
    world.write("one prefix more", &more, || {
        world.has_prefix("leaf1", "203.0.113.0/24", true)
    })?;
    // It is the prefix of one object, for the session of that object.
    let (is_absent, route) = world.has_prefix("leaf2", "203.0.113.0/24", false)?;
    assert!(is_absent, "{route}");
    let less = world.session("leaf1", 64500, "")?;
    world.write("one prefix less", &less, || {
        world.has_prefix("leaf1", "203.0.113.0/24", false)
    })?;
    for name in ["segment", "red", "session-leaf1"] {
        world.is_applied(name)?;
    }
    world.told_config(
        &["rd 192.0.2.1:1001", "rd 192.0.2.1:2001"],
        &["rd 192.0.2.1:1000", "rd 192.0.2.1:2000", "203.0.113.0/24"],
    )
}

fn a_contradiction_changes_nothing_and_says_so(world: &mut World) -> anyhow::Result<()> {
    let wrong = segment("other-values", r#"rd: "192.0.2.1:7""#);
    let apply = ["apply", "--validate=strict", "-f", "-"];
    world.plane.kubectl(&apply, &wrong)?;
    let status = world.says("other-values", &[("Accepted", Some("False"))])?;
    let problem = &status["problems"][0];
    assert_eq!(problem["reason"], "ConfigurationsDisagree", "{status}");
    assert_eq!(problem["other"], "selvedge-system/segment", "{status}");
    world.is_applied("segment")?;
    let (holds, routes) =
        world.routes("leaf1", "macip", &["192.0.2.1:1001"], &["192.0.2.1:7\n"])?;
    assert!(holds, "{routes}");
    new_programs_beside_a_bad_object_change_nothing(world)?;
    let delete = ["delete", "frrconfiguration", "-n", "selvedge-system"];
    world
        .plane
        .kubectl(&[&delete[..], &["other-values"]].concat(), "")?;
    Ok(())
}

/// Operator and agent begin anew while an object is wrong: its problem is said again, and BGP stays as it is.
fn new_programs_beside_a_bad_object_change_nothing(world: &mut World) -> anyhow::Result<()> {
    let resets = |world: &World| -> anyhow::Result<Vec<(u64, u64)>> {
        LEAVES.iter().map(|(leaf, _)| world.resets(leaf)).collect()
    };
    let before = (resets(world)?, world.running()?);
    world.agent.signal(Signal::TERM);
    world.agent.wait(PATIENCE)?;
    world.operator = World::operator(&world.plane, &world.fabric)?;
    world.agent = start_agent(&world.fabric, &world.plane, NODE, USER)?;
    // Both have taken up their work when they bring a change to the peer.
    let more = world.session("leaf1", 64500, ", 203.0.113.0/24")?;
    world.write("one prefix more after a new start", &more, || {
        world.has_prefix("leaf1", "203.0.113.0/24", true)
    })?;
    let less = world.session("leaf1", 64500, "")?;
    world.write("one prefix less after a new start", &less, || {
        world.has_prefix("leaf1", "203.0.113.0/24", false)
    })?;
    assert_eq!((resets(world)?, world.running()?), before);
    let status = world.says("other-values", &[("Accepted", Some("False"))])?;
    let problem = &status["problems"][0];
    assert_eq!(problem["reason"], "ConfigurationsDisagree", "{status}");
    Ok(())
}

fn what_the_host_lacks_is_told_and_heals(world: &World) -> anyhow::Result<()> {
    let apply = ["apply", "--validate=strict", "-f", "-"];
    let blue = vrf("blue", "10.2.1.0/24", BLUE);
    world.plane.kubectl(&apply, &blue)?;
    let lacks = [("Accepted", Some("True")), ("DevicesMissing", Some("True"))];
    let status = world.says("blue", &lacks)?;
    let said = status.to_string();
    assert!(said.contains("the host has no VRF device"), "{said}");
    world.is_applied("red")?;
    world.fabric.at(NODE)?.script(&format!(
        "sh /run/host-evpn.sh up 100.65.0.1 {LATER}\n{}",
        workload("blue", 1, None)
    ))?;
    world.is_applied("blue")?;
    world.until("leaf1 has the prefix of blue", || {
        let wanted = [
            "Route Distinguisher: 192.0.2.1:3000",
            "10.2.1.0",
            "RT:64999:3000",
        ];
        world.routes("leaf1", "prefix", &wanted, &[])
    })
}

fn what_is_removed_is_withdrawn_and_nothing_else(world: &World) -> anyhow::Result<()> {
    world.delete("a layer 3 VNI is gone", "red", || {
        let unwanted = ["Route Distinguisher: 192.0.2.1:2001"];
        world.routes(
            "leaf1",
            "prefix",
            &["Route Distinguisher: 192.0.2.1:3000"],
            &unwanted,
        )
    })?;
    // FRR advertises the VNI further, with values of its own.
    world.delete("the values of a layer 2 VNI are gone", "segment", || {
        world.routes("leaf1", "multicast", &["[100.65.0.1]"], &["192.0.2.1:1001"])
    })?;
    world.delete("a session is gone", "session-leaf2", || {
        world.has_prefix("leaf2", "100.65.0.1/32", false)
    })?;
    world.told_sessions(&["leaf1"])?;
    world.told_config(
        &["vrf blue\n vni 3000"],
        &["vrf red\n vni 2000", "rd 192.0.2.1:1001"],
    )?;
    world.is_applied("session-leaf1")
}
