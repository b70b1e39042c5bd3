//! Ring 6, restarts: what a stream of packets loses when the agent or a daemon of FRR dies.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use lab::{
    fabric::Fabric,
    host::Running,
    parts::{self, Release, Tree},
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
/// A host that the leaf bridges into the segment of the workload, and the device that leads there.
const BRIDGED: &str = "02:00:00:00:02:77";
const SEGMENT: &str = "vx.10234";

pub(crate) struct World {
    pub(crate) agent: Running,
    pub(crate) fabric: Fabric,
}

impl World {
    /// A node with a workload that reaches a host behind the leaf, kept by an agent in a control group of its own.
    pub(crate) fn start(bfd: bool) -> anyhow::Result<Self> {
        Self::start_on(Release::Forky, bfd)
    }

    fn start_on(release: Release, bfd: bool) -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests_of(release, &progress)?;
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
        world.bridge_a_host()?;
        world.whole()?;
        Ok(world)
    }

    /// Makes the leaf announce the MAC of a host in the segment of the workload.
    fn bridge_a_host(&self) -> anyhow::Result<()> {
        self.fabric.at("leaf1")?.script(&format!(
            "local=$(ip -d link show vx10100 | grep -o 'local [0-9.]*' | cut -d' ' -f2)
            ip link add br10234 type bridge; ip link set br10234 addrgenmode none up
            ip link add vx10234 type vxlan id 10234 dstport 4789 local $local nolearning
            ip link set vx10234 master br10234 addrgenmode none; ip link set vx10234 up
            ip link add port type veth peer name host; ip link set host up; ip link set port master br10234 up
            bridge fdb add {BRIDGED} dev port master dynamic"
        ))?;
        Ok(())
    }

    /// Whether the bridge of the node and its tunnel know the host that the leaf bridges.
    fn is_bridged(&self) -> anyhow::Result<bool> {
        let show = format!("ip netns exec selvedge bridge fdb show dev {SEGMENT}");
        let entries = self.fabric.at(NODE)?.script(&show)?;
        let has = |word: &str| {
            let mut own = entries.lines().filter(|it| it.starts_with(BRIDGED));
            own.any(|entry| entry.contains(word))
        };
        Ok(has(" master ") && has(" self "))
    }

    fn diagnosis(&self) -> String {
        let show = |host: &str, script: &str| match self.fabric.at(host) {
            Ok(space) => space
                .script(script)
                .unwrap_or_else(|error| error.to_string()),
            Err(error) => error.to_string(),
        };
        let evpn = "vtysh -N router -c 'show evpn mac vni all' -c 'show bgp l2vpn evpn'";
        let entries = format!("ip netns exec selvedge bridge fdb show dev {SEGMENT}; {evpn}");
        [
            self.agent.stderr(),
            show(NODE, &entries),
            show("leaf1", evpn),
        ]
        .join("\n")
    }

    /// The agent dies, and another is started.
    fn restart_agent(&mut self) -> anyhow::Result<()> {
        self.agent = agent_in_a_group_of_its_own(&self.fabric)?;
        self.agent.wait_for("agent starts", PATIENCE)?;
        Ok(())
    }

    /// Waits until packets pass and nothing is left to do.
    pub(crate) fn whole(&self) -> anyhow::Result<()> {
        let passes = Fabric::eventually(PATIENCE, || {
            let ping = self.fabric.ping("w1", FAR, 3).ok()?;
            (ping.whole() && self.is_bridged().ok()?).then_some(())
        });
        passes.with_context(|| format!("not whole: {}", self.diagnosis()))?;
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
/// How many seconds an entry may be away: on a busy machine a guest does nothing at all for a part of one. Without a hold it would be
/// away until bgpd is back, ten times as long.
const LONGEST_GAP: f64 = 1.0;
/// Packets of six seconds. A guest is one emulated CPU: a start of bgpd takes a second there.
const SECONDS: u32 = 600;

#[test]
fn no_kill_loses_packets_unless_bfd_tells_the_leaf() -> anyhow::Result<()> {
    for (index, bfd) in [false, true].into_iter().enumerate() {
        let mut world = World::start(bfd)?;
        for (what, act, most) in KILLS {
            let monitor = Monitor::start(&world)?;
            let lost = world.lost_by(act)?;
            let most = most.get(index).copied().unwrap_or_default();
            eprintln!("BFD {bfd}, {what} killed: {lost} of {PACKETS} packets lost");
            assert!(lost <= most, "BFD {bfd}, {what}: {lost} lost");
            if what == "bgpd" {
                let (deleted, longest) = monitor.assert_held();
                eprintln!(
                    "{deleted} entries were deleted and put back, the last after {longest:.3} s"
                );
            }
            world.whole()?;
            nothing_is_held(&world.fabric)
                .with_context(|| format!("BFD {bfd}, {what}: {}", world.agent.stderr()))?;
        }
        if !bfd {
            an_agent_killed_during_a_hold_leaves_nothing_behind(&mut world)?;
        }
    }
    Ok(())
}

#[test]
fn what_zebra_has_from_bgpd_stays_with_every_supported_version_of_frr() -> anyhow::Result<()> {
    // The newest is killed above.
    for release in [Release::Bookworm, Release::Trixie] {
        let world = World::start_on(release, false)?;
        let monitor = Monitor::start(&world)?;
        let look = format!(
            "for i in $(seq 300); do ip -n selvedge route get {FAR} vrf m2m_enc > /dev/null 2>&1 || echo missing; sleep 0.03; done; echo end"
        );
        let look = world.fabric.at(NODE)?.start(&["bash", "-c", &look])?;
        // What the leaf does is up to its version, too; the node keeps what it has.
        let lost = world.lost_by("kill -9 $(pidof bgpd)")?;
        eprintln!("{release}, bgpd killed: {lost} of {PACKETS} packets lost");
        assert_eq!(
            look.wait(PATIENCE)?.stdout.trim(),
            "end",
            "{release}: a route"
        );
        let (deleted, longest) = monitor.assert_held();
        assert!(
            deleted > 0,
            "{release}: zebra deleted nothing, or nothing was announced"
        );
        eprintln!(
            "{release}: {deleted} entries were deleted and put back, the last after {longest:.3} s"
        );
        world.whole()?;
        nothing_is_held(&world.fabric).with_context(|| world.agent.stderr())?;
    }
    Ok(())
}

/// The next agent finds in the kernel what the first has put back, and settles it.
fn an_agent_killed_during_a_hold_leaves_nothing_behind(world: &mut World) -> anyhow::Result<()> {
    world.restart_agent()?;
    world.whole()?;
    let node = world.fabric.at(NODE)?;
    let held = node.script(
        "kill -9 $(pidof bgpd)
        for i in $(seq 100); do ip -n selvedge route show table all proto eigrp | grep -q . && break; sleep 0.05; done
        echo 1 > /sys/fs/cgroup/agent/cgroup.kill
        ip -n selvedge route show table all proto eigrp",
    )?;
    assert_ne!(
        held.trim(),
        "",
        "the agent was killed before it held anything"
    );
    world.restart_agent()?;
    world.whole()?;
    nothing_is_held(&world.fabric).with_context(|| world.agent.stderr())
}

/// What the kernel announces about the MACs behind the tunnels of a node.
struct Monitor(Running);

impl Monitor {
    fn start(world: &World) -> anyhow::Result<Self> {
        let command = ["ip", "netns", "exec", "selvedge"];
        let command = [&command[..], &["bridge", "-timestamp", "monitor", "fdb"]].concat();
        Ok(Self(world.fabric.at(NODE)?.start(&command)?))
    }

    /// Every MAC that was deleted was there again at once; how many were, and the longest time that one was away.
    fn assert_held(self) -> (usize, f64) {
        let text = self.0.stdout();
        let mut away: BTreeMap<String, f64> = BTreeMap::new();
        let (mut deleted, mut longest) = (0, 0_f64);
        let mut at = None;
        for entry in text.lines() {
            if let Some(time) = entry.strip_prefix("Timestamp: ") {
                at = second_of_day(time);
            }
            let Some(at) = at else { continue };
            // Who made it, and how sure the kernel is of it, may be different afterwards.
            let key = |entry: &str| {
                let words = entry.split(' ');
                let words = words.filter(|it| !matches!(*it, "extern_learn" | "offload" | "stale"));
                words.collect::<Vec<_>>().join(" ")
            };
            if let Some(entry) = entry.strip_prefix("Deleted ") {
                deleted += 1;
                away.entry(key(entry)).or_insert(at);
            } else if let Some(since) = away.remove(&key(entry)) {
                let gap = (at - since).rem_euclid(86_400.0);
                longest = longest.max(gap);
                assert!(gap <= LONGEST_GAP, "{entry} was away for {gap} s:\n{text}");
            }
        }
        assert!(away.is_empty(), "not put back: {away:?}\n{text}");
        (deleted, longest)
    }
}

/// The seconds of a time such as `Mon Nov 16 23:36:00 2026 687840 usec`.
fn second_of_day(text: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, _, _, time, _, microseconds, "usec"] = words[..] else {
        return None;
    };
    let mut parts = time.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let whole = hours.mul_add(3600.0, minutes.mul_add(60.0, seconds));
    Some(whole + microseconds.parse::<f64>().ok()? / 1e6)
}

/// Waits until nothing is left of what the agent put in the place of zebra's entries and routes.
pub(crate) fn nothing_is_held(fabric: &Fabric) -> anyhow::Result<()> {
    let held = "ip -n selvedge route show table all proto eigrp
ip -n selvedge neighbor | grep 'extern_learn.*PERMANENT' || true
ip netns exec selvedge bridge fdb show brport vx.m2m_enc | grep -v 'permanent\\|extern_learn' || true";
    let node = fabric.at(NODE)?;
    let mut left = String::new();
    let none = Fabric::eventually(PATIENCE, || {
        left = node.script(held).ok()?;
        left.trim().is_empty().then_some(())
    });
    none.with_context(|| format!("still held: {left}"))
}
