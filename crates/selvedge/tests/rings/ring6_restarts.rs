//! Ring 6, restarts: what a stream of packets loses when the agent or a daemon of FRR dies.

use std::time::Duration;

use anyhow::Context as _;
use lab::{
    fabric::Fabric,
    host::Running,
    parts::{self, Tree},
    topology::LeafVrf,
};
use serde_json::{Value, json};

use crate::{
    ring4_safety::{NODE, agent_in_a_group_of_its_own, plugged},
    support::{program, progress},
};

const PATIENCE: Duration = Duration::from_mins(1);
/// A host behind the leaf, in the VRF of the workload.
const FAR: &str = "192.0.2.77";
/// Packets of a stream: a hundred a second for fifteen seconds, which is longer than anything is held after bgpd's death.
pub(crate) const PACKETS: u32 = 1500;

pub(crate) struct World {
    pub(crate) agent: Running,
    pub(crate) fabric: Fabric,
}

impl World {
    /// A node with a workload that reaches a host behind the leaf, kept by an agent in a control group of its own.
    pub(crate) fn start(bfd: bool) -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let vrf = LeafVrf {
            name: "m2m_enc".to_owned(),
            vni: 10100,
            route_target: "64500:10100".to_owned(),
            prefixes: vec!["192.0.2.0/24".parse()?],
        };
        let mut fabric = Fabric::builder()
            .leaf("leaf1", 64512)
            .node(NODE, &["leaf1"])
            .vrf("leaf1", vrf)
            .start(&tree, &progress)?;
        fabric.hand_in(&program())?;
        let config = config(&fabric, bfd)?;
        let node = fabric.at(NODE)?;
        node.write("/run/config.json", &config.to_string())?;
        node.run(&["/share/selvedge", "agent", "--config", "/run/config.json"])?;
        let gateways = ["198.51.100.129".parse()?];
        let own = ["198.51.100.150/25".parse()?];
        fabric.workload("w1", NODE, "l2.billing", &own, &gateways)?;
        let agent = agent_in_a_group_of_its_own(&fabric)?;
        agent.wait_for("agent starts", PATIENCE)?;
        let world = Self { agent, fabric };
        world.whole()?;
        Ok(world)
    }

    /// Waits until packets pass and nothing is left to do.
    pub(crate) fn whole(&self) -> anyhow::Result<()> {
        let passes = Fabric::eventually(PATIENCE, || {
            let ping = self.fabric.ping("w1", FAR, 3).ok()?;
            ping.whole().then_some(())
        });
        passes.with_context(|| format!("no packet passes: {}", self.agent.stderr()))?;
        // The agent looks at its own changes once more.
        std::thread::sleep(Duration::from_secs(3));
        Ok(())
    }

    /// How many packets of a stream are lost when this is done in the middle of it.
    pub(crate) fn lost_by(&self, act: &str) -> anyhow::Result<u32> {
        let count = PACKETS.to_string();
        let stream = ["ping", "-i", "0.01", "-c", &count, "-W", "2", FAR];
        let stream = self.fabric.at("w1")?.start(&stream)?;
        std::thread::sleep(Duration::from_secs(1));
        self.fabric.at(NODE)?.script(act)?;
        let output = stream.wait(PATIENCE)?;
        let (_, summary) = output
            .stdout
            .split_once("ping statistics ---")
            .context("no summary")?;
        let mut numbers = summary
            .split(|it: char| !it.is_ascii_digit())
            .filter_map(|it| it.parse::<u32>().ok());
        let (sent, received) = (numbers.next(), numbers.next());
        let (sent, received) = sent.zip(received).context("no numbers")?;
        assert_eq!(sent, PACKETS, "{summary}");
        Ok(sent - received)
    }
}

pub(crate) fn config(fabric: &Fabric, bfd: bool) -> anyhow::Result<Value> {
    let mut config = plugged(fabric, &["shop"])?;
    // A workload that never opens its session: bgpd does not know whether it will.
    config["spec"]["fabricVRFs"]["m2m_enc"]["bgpPeers"] =
        json!([{"address": "198.51.100.151", "remoteAsn": 65001, "ipv4": {}}]);
    if bfd {
        config["spec"]["underlay"]["neighbors"][0]["bfd"] = json!({});
    } else {
        let link = fabric.link(NODE, "leaf1")?;
        let (near, _) = link.seen_from(NODE).context("the link has two ends")?;
        fabric.at("leaf1")?.script(&format!(
            "vtysh -N router -c 'configure terminal' -c 'router bgp 64512' -c 'no neighbor fabric bfd' -c 'no neighbor {} bfd'",
            near.ipv4.addr()
        ))?;
    }
    Ok(config)
}

/// What is killed, how, and how many packets may be lost without and with BFD.
///
/// The leaf keeps the routes of a node whose bgpd dies, and so does the node; what zebra deletes, the agent puts back. With
/// BFD, the leaf does not wait for a restart: it withdraws the routes when the BFD session ends, which it does with zebra,
/// bgpd and bfdd.
const KILLS: [(&str, &str, [u32; 2]); 5] = [
    ("zebra", "kill -9 $(pidof zebra)", [0, SECONDS]),
    ("bgpd", "kill -9 $(pidof bgpd)", [IN_BETWEEN, SECONDS]),
    (
        "zebra and bgpd",
        "kill -9 $(pidof zebra) $(pidof bgpd)",
        [IN_BETWEEN, SECONDS],
    ),
    ("bfdd", "kill -9 $(pidof bfdd)", [0, SECONDS]),
    (
        "agent with its control group",
        "echo 1 > /sys/fs/cgroup/agent/cgroup.kill",
        [0, 0],
    ),
];
/// Packets may come between a deletion by zebra and its repair: half a millisecond later in a guest at rest, twelve under load.
const IN_BETWEEN: u32 = 5;
/// Packets of six seconds. A guest is one emulated CPU: a start of bgpd takes a second there.
const SECONDS: u32 = 600;

#[test]
fn no_kill_loses_packets_unless_bfd_tells_the_leaf() -> anyhow::Result<()> {
    for (index, bfd) in [false, true].into_iter().enumerate() {
        let world = World::start(bfd)?;
        for (what, act, most) in KILLS {
            let lost = world.lost_by(act)?;
            let most = most.get(index).copied().unwrap_or_default();
            eprintln!("BFD {bfd}, {what} killed: {lost} of {PACKETS} packets lost");
            assert!(lost <= most, "BFD {bfd}, {what}: {lost} lost");
            world.whole()?;
            nothing_is_held(&world)
                .with_context(|| format!("BFD {bfd}, {what}: {}", world.agent.stderr()))?;
        }
    }
    Ok(())
}

/// Waits until nothing is left of what the agent put in the place of zebra's entries and routes.
fn nothing_is_held(world: &World) -> anyhow::Result<()> {
    let held = "ip -n selvedge route show table all proto eigrp
ip -n selvedge neighbor | grep 'extern_learn.*PERMANENT' || true
ip netns exec selvedge bridge fdb show brport vx.m2m_enc | grep -v 'permanent\\|extern_learn' || true";
    let node = world.fabric.at(NODE)?;
    let mut left = String::new();
    let none = Fabric::eventually(PATIENCE, || {
        left = node.script(held).ok()?;
        left.trim().is_empty().then_some(())
    });
    none.with_context(|| format!("still held: {left}"))
}
