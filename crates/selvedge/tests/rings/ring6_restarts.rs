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
    support::{SELVEDGE, progress},
};

const PATIENCE: Duration = Duration::from_mins(1);
/// A host behind the leaf, in the VRF of the workload.
const FAR: &str = "192.0.2.77";
/// Packets of a stream: a hundred a second for fifteen seconds.
const PACKETS: u32 = 1500;

struct World {
    agent: Running,
    fabric: Fabric,
}

impl World {
    /// A node with a workload that reaches a host behind the leaf, kept by an agent in a control group of its own.
    fn start(bfd: bool) -> anyhow::Result<Self> {
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
        fabric.hand_in(SELVEDGE.as_ref())?;
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
    fn whole(&self) -> anyhow::Result<()> {
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
    fn lost_by(&self, act: &str) -> anyhow::Result<u32> {
        let count = PACKETS.to_string();
        let stream = ["ping", "-i", "0.01", "-c", &count, "-W", "2", FAR];
        let stream = self.fabric.at("w1")?.start(&stream)?;
        std::thread::sleep(Duration::from_secs(3));
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

fn config(fabric: &Fabric, bfd: bool) -> anyhow::Result<Value> {
    let mut config = plugged(fabric, &["shop"])?;
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

#[test]
fn no_packet_is_lost_when_the_agent_or_a_daemon_dies() -> anyhow::Result<()> {
    for bfd in [false, true] {
        let world = World::start(bfd)?;
        for (what, act) in [
            ("zebra", "kill -9 $(pidof zebra)"),
            ("bgpd", "kill -9 $(pidof bgpd)"),
            ("bfdd", "kill -9 $(pidof bfdd)"),
            (
                "agent with its control group",
                "echo 1 > /sys/fs/cgroup/agent/cgroup.kill",
            ),
        ] {
            let lost = world.lost_by(act)?;
            eprintln!("BFD {bfd}, {what} killed: {lost} of {PACKETS} packets lost");
            world.whole()?;
        }
    }
    Ok(())
}
