//! Ring 4, the host's router: a second FRR in the host's namespace, changed line by line under a peer that counts.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use lab::{fabric::Fabric, parts::Release};
use serde_json::{Value, json};

use crate::{
    ring4::Node,
    ring4_safety::{NODE, cut_off_agent, end},
};

pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Address of the host and of its peer.
pub(crate) const HOST: &str = "198.19.0.1";
pub(crate) const PEER: &str = "198.19.0.2";
const PASSWORD: &str = "hunter2";

/// A peer in a namespace of its own beside the node's host, which accepts everything.
pub(crate) fn start_peer(fabric: &Fabric, password: Option<&str>) -> anyhow::Result<()> {
    let space = fabric.at(NODE)?;
    space.script(&format!(
        "ip netns add peer
ip link add uplink type veth peer name far netns peer
ip address add {HOST}/24 dev uplink; ip link set uplink up
ip -n peer address add {PEER}/24 dev far; ip -n peer link set far up; ip -n peer link set lo up"
    ))?;
    start_peer_daemons(fabric, password)
}

fn start_peer_daemons(fabric: &Fabric, password: Option<&str>) -> anyhow::Result<()> {
    let space = fabric.at(NODE)?;
    space.script(
        "install -d -o frr -g frr /run/frr/peer /etc/frr/peer; touch /etc/frr/peer/vtysh.conf
for daemon in mgmtd zebra bgpd; do
  [ -x /usr/lib/frr/$daemon ] || continue
  ip netns exec peer /usr/lib/frr/$daemon -d -N peer -P 0 -i /run/frr/peer/$daemon.pid > /run/peer.log 2>&1
done",
    )?;
    let password = password.map(|it| format!(" neighbor {HOST} password {it}\n"));
    let config = format!(
        "router bgp 64601
 no bgp ebgp-requires-policy
 neighbor {HOST} remote-as 64600
 neighbor {HOST} timers 1 3
 neighbor {HOST} timers connect 1
{} address-family ipv4 unicast
  neighbor {HOST} soft-reconfiguration inbound
 exit-address-family
end
",
        password.unwrap_or_default()
    );
    space.write("/run/peer.conf", &config)?;
    space.script("vtysh -N peer -f /run/peer.conf")?;
    Ok(())
}

fn script(fabric: &Fabric, script: &str) -> anyhow::Result<String> {
    Ok(fabric.at(NODE)?.script(script)?)
}

/// What the peer has of the host.
pub(crate) fn peer(fabric: &Fabric) -> anyhow::Result<Value> {
    let said = script(fabric, "vtysh -N peer -c 'show bgp neighbors json'")?;
    let said: Value = serde_json::from_str(&said)?;
    Ok(said[HOST].clone())
}

/// Waits until the peer has this many prefixes of the host.
pub(crate) fn prefixes_arrive(fabric: &Fabric, count: u64) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let there = Fabric::eventually(PATIENCE, || {
        last = peer(fabric).ok()?;
        let family = &last["addressFamilyInfo"]["ipv4Unicast"];
        let is_up = last["bgpState"] == "Established";
        (is_up && family["acceptedPrefixCounter"] == count).then_some(())
    });
    there.with_context(|| {
        let running = script(fabric, "vtysh -N host -c 'show running-config'");
        let state = &last["bgpState"];
        format!("{count} prefixes: {state} {last}: {running:?}")
    })
}

pub(crate) fn prefix(number: usize) -> String {
    format!("203.0.{}.{}/32", 113 + number / 256, number % 256)
}

/// A config with nothing but the host's router, which announces so many prefixes to the peer.
pub(crate) fn config(count: usize) -> Value {
    let prefixes: Vec<String> = (0..count).map(prefix).collect();
    with_networks(&prefixes)
}

/// The same with these prefixes.
pub(crate) fn with_networks(prefixes: &[String]) -> Value {
    json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "NodeNetworkConfig",
        "metadata": {"name": NODE},
        "spec": {
            "revision": "host", "health": {"confirmDeadline": "8s", "gateways": false},
            "hostRouter": {
                "configurations": [{"namespace": "selvedge-system", "name": "a", "generation": 1}],
                "routers": {"default": {
                    "asn": 64600, "routerId": HOST, "networks": prefixes,
                    "neighbors": [neighbor(PEER, prefixes)],
                }},
            },
        },
    })
}

pub(crate) fn neighbor(address: &str, prefixes: &[String]) -> Value {
    json!({
        "address": address, "remoteAs": {"asn": 64601}, "ipv4": true, "connectTime": 1,
        "keepaliveTime": 1, "holdTime": 3,
        "advertise": {"prefixes": prefixes}, "receive": {"all": true},
    })
}

fn router(config: &mut Value) -> &mut Value {
    &mut config["spec"]["hostRouter"]["routers"]["default"]
}

/// The same config without a router of the host.
fn without(config: &Value) -> Value {
    let mut none = config.clone();
    none["spec"]
        .as_object_mut()
        .expect("a spec")
        .remove("hostRouter");
    none
}

/// The messages that the peer has received from the host: updates, and how often the session came up.
fn received(fabric: &Fabric) -> anyhow::Result<(u64, u64)> {
    let peer = peer(fabric)?;
    let number = |value: &Value| value.as_u64().context("a number");
    Ok((
        number(&peer["messageStats"]["updatesRecv"])?,
        number(&peer["connectionsEstablished"])?,
    ))
}

/// Makes the peer write down what it is told, and counts the prefixes that are withdrawn meanwhile.
pub(crate) fn count_withdrawals(fabric: &Fabric) -> anyhow::Result<()> {
    script(
        fabric,
        "touch /run/updates.log; chown frr /run/updates.log; chmod 666 /run/updates.log
vtysh -N peer -c 'configure terminal' -c 'log file /run/updates.log debugging' -c 'log timestamp precision 6' -c 'debug bgp updates in'",
    )?;
    Ok(())
}

pub(crate) fn withdrawals(fabric: &Fabric) -> anyhow::Result<u64> {
    let count = script(
        fabric,
        "grep -ciE 'withdrawn|unreach' /run/updates.log || true",
    )?;
    Ok(count.trim().parse()?)
}

/// The daemons of the host's instance, by name.
fn daemons(fabric: &Fabric) -> anyhow::Result<String> {
    let found = script(
        fabric,
        "pgrep -af -- '-N host ' | grep -c /usr/lib/frr || true",
    )?;
    Ok(found.trim().to_owned())
}

#[test]
fn the_hosts_router_starts_and_ends_with_its_config_on_every_version() -> anyhow::Result<()> {
    for release in Release::ALL {
        let node = Node::start_on(release)?;
        start_peer(&node.fabric, None)?;
        // Routes of others, with the numbers that FRR itself uses.
        let foreign = "ip route show 192.0.2.0/24; ip route show 192.0.2.128/25";
        node.script(
            "ip link add foreign type dummy; ip link set foreign up
ip route add 192.0.2.0/24 dev foreign proto bird; ip route add 192.0.2.128/25 dev foreign proto static",
        )?;
        let before = node.script(foreign)?;
        let said = node.becomes(&config(3))?;
        eprintln!("{release}: {said}");
        prefixes_arrive(&node.fabric, 3)?;
        let listens = node
            .script("ss -Hltnp | grep -E 'bgpd|zebra|mgmtd|bfdd|staticd' | grep -v peer || true")?;
        assert!(
            !listens.contains(":179 ") || !listens.contains(HOST),
            "{listens}"
        );
        let on_host = node.script("ss -Hltn")?;
        assert!(!on_host.contains(":179 "), "it does not listen: {on_host}");
        let group = node.script("cat /proc/$(pgrep -f 'bgpd.*-N host')/cgroup")?;
        assert!(group.contains("selvedge-frr-host"), "{group}");
        assert_eq!(node.script(foreign)?, before, "{release}");

        // The peer's instance and the host's end and begin apart.
        node.becomes(&without(&config(3)))?;
        assert_eq!(daemons(&node.fabric)?, "0");
        let left = node.script("ls -d /run/frr/host /etc/frr/host /var/lib/selvedge/host* /run/selvedge/host* 2> /dev/null || true")?;
        assert_eq!(left, "", "{release}");
        assert_eq!(node.script(foreign)?, before, "{release}");
        peer(&node.fabric)?;
        node.becomes(&config(2))?;
        prefixes_arrive(&node.fabric, 2)?;
        let space = node.fabric.at(NODE)?;
        space.run(&["/share/selvedge", "agent", "cleanup"])?;
        assert_eq!(
            daemons(&node.fabric)?,
            "0",
            "cleanup ends the host's router"
        );
    }
    Ok(())
}

#[test]
fn one_prefix_more_is_one_change_of_each_list_and_withdraws_nothing() -> anyhow::Result<()> {
    for release in Release::ALL {
        let node = Node::start_on(release)?;
        start_peer(&node.fabric, None)?;
        node.becomes(&config(500))?;
        prefixes_arrive(&node.fabric, 500)?;
        count_withdrawals(&node.fabric)?;
        let (_, sessions) = received(&node.fabric)?;
        // One that sorts before all others.
        let mut more = config(500);
        for list in [
            "/spec/hostRouter/routers/default/networks",
            "/spec/hostRouter/routers/default/neighbors/0/advertise/prefixes",
        ] {
            let list = more.pointer_mut(list).and_then(Value::as_array_mut);
            list.context("a list")?.insert(0, "100.64.0.1/32".into());
        }
        let start = Instant::now();
        let said = node.apply(&more)?.ok()?;
        prefixes_arrive(&node.fabric, 501)?;
        eprintln!(
            "{release}: {} s: {}",
            start.elapsed().as_secs_f64(),
            said.trim()
        );
        let lines = said
            .split(" FRR lines")
            .next()
            .and_then(|it| it.split(", ").last());
        let lines: u32 = lines.context("a number of lines")?.trim().parse()?;
        assert!(lines <= 3, "{release}: {said}");
        assert!(!said.contains("closed"), "{said}");
        std::thread::sleep(Duration::from_secs(6));
        assert_eq!(withdrawals(&node.fabric)?, 0, "{release}");
        let (_, after) = received(&node.fabric)?;
        assert_eq!(after, sessions, "{release}: no session was reset");
        assert_eq!(node.apply(&more)?.ok()?.trim(), "nothing to do");
        // What counts withdrawals sees the one that is meant.
        node.apply(&config(500))?.ok()?;
        prefixes_arrive(&node.fabric, 500)?;
        assert_eq!(withdrawals(&node.fabric)?, 1, "{release}");
    }
    Ok(())
}

/// What crashed the tool that users have today: the route maps of a live session go, and another family comes.
#[test]
fn a_live_neighbor_goes_from_unicast_to_evpn_and_back_without_a_pause_or_a_crash()
-> anyhow::Result<()> {
    const UNICAST: &str = "ipv4Unicast";
    const EVPN: &str = "l2VpnEvpn";
    for release in Release::ALL {
        let node = Node::start_on(release)?;
        start_peer(&node.fabric, None)?;
        node.script(&format!(
            "vtysh -N peer -c 'configure terminal' -c 'router bgp 64601' -c 'address-family l2vpn evpn' -c 'neighbor {HOST} activate'"
        ))?;
        let with = |families: &[&str]| {
            let mut config = config(3);
            let neighbor = &mut router(&mut config)["neighbors"][0];
            neighbor["ipv4"] = families.contains(&UNICAST).into();
            neighbor["evpn"] = families.contains(&EVPN).into();
            config
        };
        node.becomes(&with(&[UNICAST]))?;
        prefixes_arrive(&node.fabric, 3)?;
        let processes = "pgrep -f '/usr/lib/frr/[a-z]* .*-N host ' | sort";
        let before = node.script(processes)?;
        for families in [&[EVPN][..], &[UNICAST, EVPN], &[EVPN], &[UNICAST]] {
            // One apply, and the next one at once.
            node.becomes(&with(families))?;
            let mut last = Value::Null;
            let negotiated = Fabric::eventually(PATIENCE, || {
                last = peer(&node.fabric).ok()?;
                let spoken = &last["neighborCapabilities"]["multiprotocolExtensions"];
                let is_spoken = |family: &str| {
                    spoken[family]["advertisedAndReceived"] == true
                        || spoken[family]["advertisedAndReceived"] == "true"
                };
                let is_it = [UNICAST, EVPN]
                    .iter()
                    .all(|family| is_spoken(family) == families.contains(family));
                (last["bgpState"] == "Established" && is_it).then_some(())
            });
            negotiated.with_context(|| format!("{release}: {families:?}: {last}"))?;
        }
        prefixes_arrive(&node.fabric, 3)?;
        assert_eq!(
            node.script(processes)?,
            before,
            "{release}: no daemon ended"
        );
    }
    Ok(())
}

#[test]
fn what_is_broken_by_hand_or_dies_comes_back_and_a_reboot_keeps_the_password() -> anyhow::Result<()>
{
    let mut node = Node::start_in_a_guest_of_its_own()?;
    start_peer(&node.fabric, Some(PASSWORD))?;
    let mut with_password = config(3);
    router(&mut with_password)["neighbors"][0]["passwordSecret"] =
        json!({"name": "peer", "namespace": "selvedge-system"});
    let waiting = node.apply(&with_password)?;
    assert!(
        waiting.stderr.contains("waits for a password"),
        "{}",
        waiting.stderr
    );

    // The agent that has read the Secret keeps it on its disk; here the test does what that agent would do.
    store_password(&node.fabric, &with_password)?;
    let agent = cut_off_agent(&node)?;
    agent.wait_for("agent starts", PATIENCE)?;
    prefixes_arrive(&node.fabric, 3).with_context(|| agent.stderr())?;
    for (what, act, whole) in [
        (
            "a line",
            "vtysh -N host -c 'configure terminal' -c 'router bgp 64600' -c 'neighbor 198.19.0.9 remote-as 1'",
            "! vtysh -N host -c 'show running-config' | grep -q 198.19.0.9",
        ),
        (
            "a network",
            "vtysh -N host -c 'configure terminal' -c 'router bgp 64600' -c 'address-family ipv4 unicast' -c 'no network 203.0.113.1/32'",
            "vtysh -N host -c 'show running-config' | grep -q 'network 203.0.113.1/32'",
        ),
    ] {
        let milliseconds = crate::ring4_safety::repair_time(&node.fabric, act, whole)?;
        eprintln!("{what}: repaired after {milliseconds} ms");
        assert!(milliseconds <= 2500, "{what}: {milliseconds} ms");
    }
    // Every daemon that this version needs, in whatever order.
    let of_host = node.script("ls /usr/lib/frr | grep -xE 'mgmtd|zebra|staticd|bfdd|bgpd'")?;
    assert_eq!(of_host.lines().count(), 5, "{of_host}");
    for daemon in of_host.lines() {
        let of = format!("pgrep -f '/usr/lib/frr/{daemon} .*-N host'");
        let before = node.script(&of)?;
        node.script(&format!("kill -KILL {}", before.trim()))?;
        let after = Fabric::eventually(PATIENCE, || {
            node.script(&of).ok().filter(|pid| *pid != before)
        });
        anyhow::ensure!(after.is_some(), "{daemon} is not back: {}", agent.stderr());
        prefixes_arrive(&node.fabric, 3).with_context(|| agent.stderr())?;
    }
    let leaked = node
        .script("grep -l hunter2 /proc/[0-9]*/cmdline /run/selvedge/*.log 2> /dev/null || true")?;
    assert_eq!(leaked, "");
    end(&node, &agent)?;

    // No API server, and a new kernel.
    node.fabric.reboot(NODE)?;
    start_peer(&node.fabric, Some(PASSWORD))?;
    let agent = cut_off_agent(&node)?;
    prefixes_arrive(&node.fabric, 3).with_context(|| agent.stderr())?;
    end(&node, &agent)
}

/// Writes the last good config of the host's router to the disk, as an agent does that has read the Secret.
fn store_password(fabric: &Fabric, config: &Value) -> anyhow::Result<()> {
    let secret = json!({
        "reference": {"name": "peer", "namespace": "selvedge-system"}, "password": PASSWORD,
    });
    let good = json!({"router": config["spec"]["hostRouter"], "secrets": [secret]});
    let boot = script(fabric, "cat /proc/sys/kernel/random/boot_id")?;
    let body = json!({"bootId": boot.trim(), "stored": {"good": good}}).to_string();
    let space = fabric.at(NODE)?;
    space.write("/run/body", &body)?;
    space.script(
        "sum=$(sha256sum < /run/body | cut -d' ' -f1)
{ echo \"selvedge-host-router 1 $sum\"; cat /run/body; } > /var/lib/selvedge/host-router; rm /run/body",
    )?;
    Ok(())
}

#[test]
fn what_frr_does_not_take_is_left_out_with_its_error_and_everything_else_is_applied()
-> anyhow::Result<()> {
    let node = Node::start()?;
    start_peer(&node.fabric, None)?;
    node.becomes(&config(3))?;
    prefixes_arrive(&node.fabric, 3)?;
    let (_, sessions) = received(&node.fabric)?;

    let mut raw = config(4);
    raw["spec"]["hostRouter"]["raw"] = json!([{
        "source": "selvedge-system/raw",
        "lines": "route-map mine permit 10\n set metric 7\nexit\nline vty\n access-class x\n",
    }]);
    let done = node.apply(&raw)?;
    assert_eq!(done.status, 0, "{}", done.stderr);
    assert!(
        done.stderr.contains("selvedge-system/raw line 4"),
        "{}",
        done.stderr
    );
    prefixes_arrive(&node.fabric, 4)?;
    let running = node.script("vtysh -N host -c 'show running-config'")?;
    assert!(!running.contains("access-class"), "{running}");

    // FRR says only when it gets them that a range of peers cannot be of a group that does not exist, and that a second router cannot
    // advertise the VNIs of the host.
    let mut bad = config(5);
    bad["spec"]["hostRouter"]["raw"] = json!([{
        "source": "selvedge-system/raw",
        "lines": "router bgp 64600\n bgp listen range 198.18.99.0/24 peer-group absent\nexit\nroute-map mine permit 10\n set metric 7\n",
    }]);
    router(&mut bad)["advertiseAllVNIs"] = json!(true);
    bad["spec"]["hostRouter"]["routers"]["red"] =
        json!({"asn": 64600, "advertiseAllVNIs": true, "networks": ["198.51.100.0/24"]});
    let done = node.apply(&bad)?;
    eprintln!("{}", done.stderr);
    assert_eq!(done.status, 0, "{} {}", done.stdout, done.stderr);
    for said in [
        "selvedge-system/raw line 2: FRR refuses \"bgp listen range 198.18.99.0/24 peer-group absent\": ",
        "FRR refuses \"advertise-all-vni\": ",
        "unconfigure EVPN",
    ] {
        assert!(done.stderr.contains(said), "{said}: {}", done.stderr);
    }
    prefixes_arrive(&node.fabric, 5)?;
    let running = node.script("vtysh -N host -c 'show running-config'")?;
    assert!(!running.contains("listen range"), "{running}");
    assert!(running.contains("network 198.51.100.0/24"), "{running}");
    assert_eq!(running.matches("advertise-all-vni").count(), 1, "{running}");
    assert!(running.contains("route-map mine permit 10"), "{running}");
    assert_eq!(received(&node.fabric)?.1, sessions, "no session was reset");

    Ok(())
}

/// FRR 10.7.1 hides the last instance of a router that exchanged routes with VRFs instead of deleting it, and bgpd crashes when another
/// one is added.
#[test]
fn a_router_that_went_with_its_vrfs_is_whole_when_it_comes_again() -> anyhow::Result<()> {
    let node = Node::start_on(Release::Forky)?;
    start_peer(&node.fabric, None)?;
    let mut with = config(3);
    router(&mut with)["imports"] = json!(["red"]);
    let routers = &mut with["spec"]["hostRouter"]["routers"];
    routers["red"] = json!({"asn": 64600, "networks": ["198.51.101.0/24"]});
    routers["blue"] =
        json!({"asn": 64600, "networks": ["198.51.102.0/24"], "imports": ["default"]});
    let mut none = with.clone();
    none["spec"]["hostRouter"]["routers"] = json!({});
    let is_whole = |said: &str| {
        prefixes_arrive(&node.fabric, 3).with_context(|| said.to_owned())?;
        let running = node.script("vtysh -N host -c 'show running-config'")?;
        for line in [
            "import vrf red",
            "import vrf default",
            "network 198.51.101.0/24",
        ] {
            assert!(running.contains(line), "{line}: {running}\n{said}");
        }
        anyhow::Ok(())
    };
    is_whole(&node.becomes(&with)?)?;
    node.becomes(&none)?;
    let routers =
        node.script("vtysh -N host -c 'show running-config' | grep -c '^router' || true")?;
    assert_eq!(routers.trim(), "0");
    is_whole(&node.becomes(&with)?)?;

    // The same by hand: the router goes, and in the second round another one comes, so that bgpd crashes when it is read.
    let removal = "vtysh -N host -c 'configure terminal' -c 'router bgp 64600 vrf blue' -c 'address-family ipv4 unicast' -c 'no import vrf default'
vtysh -N host -c 'configure terminal' -c 'no router bgp 64600 vrf blue' -c 'router bgp 64600' -c 'address-family ipv4 unicast' -c 'no import vrf red'
vtysh -N host -c 'configure terminal' -c 'no router bgp 64600 vrf red' -c 'no router bgp 64600'";
    let again = "vtysh -N host -c 'configure terminal' -c 'router bgp 64600' -c 'neighbor 198.19.0.9 remote-as 1'";
    for by_hand in [removal.to_owned(), format!("{removal}\n{again}")] {
        node.script(&by_hand)?;
        let bgpd = node.script("pgrep -f '/usr/lib/frr/bgpd .*-N host'")?;
        let done = node.apply(&with)?;
        assert_eq!(done.status, 0, "{}", done.stderr);
        assert!(!done.stderr.contains("FRR refuses"), "{}", done.stderr);
        let after = node.script("pgrep -f '/usr/lib/frr/bgpd .*-N host'")?;
        assert_ne!(after, bgpd, "FRR was started anew");
        is_whole(&done.stderr)?;
        assert_eq!(node.apply(&with)?.ok()?.trim(), "nothing to do");
    }
    Ok(())
}

#[test]
fn another_frr_of_the_host_is_not_touched_and_named() -> anyhow::Result<()> {
    let node = Node::start()?;
    let space = node.fabric.at(NODE)?;
    space.script(
        "install -d -o frr -g frr /run/frr/mine /etc/frr/mine
for daemon in mgmtd zebra; do /usr/lib/frr/$daemon -d -N mine -P 0 -i /run/frr/mine/$daemon.pid > /run/mine.log 2>&1; done",
    )?;
    let refused = node.apply(&config(1))?;
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("another FRR runs"),
        "{}",
        refused.stderr
    );
    assert_eq!(daemons(&node.fabric)?, "0");
    node.script("pgrep -f -- '-N mine' > /dev/null")?;
    node.script("kill $(pgrep -f -- '-N mine'); sleep 1")?;
    node.becomes(&config(1))?;
    Ok(())
}
