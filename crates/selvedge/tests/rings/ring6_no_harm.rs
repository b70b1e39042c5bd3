//! Ring 6, no harm to the fabric: what leaves learn from a node, with real daemons on both sides.

use std::time::Duration;

use anyhow::Context as _;
use lab::{
    fabric::Fabric,
    parts::{self, Tree},
    topology::LeafVrf,
};
use serde_json::{Value, json};

use crate::{
    ring4::config,
    support::{SELVEDGE, progress},
};

const NODE: &str = "worker-3";
const LEAVES: [&str; 2] = ["leaf1", "leaf2"];
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a route that must not come is waited for, once others have come.
const GRACE: Duration = Duration::from_secs(3);

/// A node behind two leaves that has the shipped example's config, with one change of the VRF m2m_enc.
fn start(change: impl FnOnce(&mut Value)) -> anyhow::Result<Fabric> {
    parts::prepare_machine(&progress)?;
    let tree = Tree::for_guests(&progress)?;
    let vrf = |name: &str, vni: u32, prefix: &str| -> anyhow::Result<LeafVrf> {
        Ok(LeafVrf {
            name: name.to_owned(),
            vni,
            route_target: format!("64500:{vni}"),
            prefixes: vec![prefix.parse()?],
        })
    };
    let fabric = Fabric::builder()
        .leaf("leaf1", 64512)
        .leaf("leaf2", 64513)
        .node(NODE, &LEAVES)
        .vrf("leaf2", vrf("m2m_enc", 10100, "192.0.2.0/24")?)
        .vrf("leaf2", vrf("third", 10300, "203.0.113.128/25")?)
        .start(&tree, &progress)?;
    fabric.hand_in(SELVEDGE.as_ref())?;
    let mut config = config(&[])?;
    let (mut nics, mut neighbors) = (Vec::new(), Vec::new());
    for leaf in LEAVES {
        let link = fabric.link(NODE, leaf)?;
        let (near, far) = link.seen_from(NODE).context("the link has two ends")?;
        nics.push(near.interface.clone());
        neighbors.push(json!({
            "address": far.ipv4.addr(), "remoteAs": {"external": true}, "connectTime": 1,
            "addressFamilies": ["ipv4Unicast", "l2vpnEvpn"], "allowOwnAs": true,
        }));
    }
    config["spec"]["underlay"]["nics"] = json!(nics);
    config["spec"]["underlay"]["neighbors"] = json!(neighbors);
    change(&mut config["spec"]["fabricVRFs"]["m2m_enc"]);
    let node = fabric.at(NODE)?;
    node.write("/run/config.json", &config.to_string())?;
    node.run(&["/share/selvedge", "agent", "--config", "/run/config.json"])?;
    Ok(fabric)
}

/// The address of a leaf as the node sees it.
fn address_of(fabric: &Fabric, leaf: &str) -> anyhow::Result<String> {
    let link = fabric.link(NODE, leaf)?;
    let (_, far) = link.seen_from(NODE).context("the link has two ends")?;
    Ok(far.ipv4.addr().to_string())
}

/// The routes of a family that a leaf has from the node, as text.
fn from_node(fabric: &Fabric, leaf: &str, family: &str) -> anyhow::Result<String> {
    let link = fabric.link(NODE, leaf)?;
    let (near, _) = link.seen_from(NODE).context("the link has two ends")?;
    let node = near.ipv4.addr();
    let command = format!("show bgp {family} neighbors {node} routes json");
    let mut answer = fabric.frr_json(leaf, &command)?;
    let answer = answer.as_object_mut().context("an object")?;
    // The leaf names itself.
    answer.remove("routerId");
    answer.remove("bgpLocalRouterId");
    Ok(Value::Object(answer.clone()).to_string())
}

fn eventually(what: &str, mut is_so: impl FnMut() -> anyhow::Result<bool>) {
    let done = Fabric::eventually(PATIENCE, || is_so().ok().filter(|so| *so));
    assert!(done.is_some(), "{what}");
}

#[test]
fn a_leaf_learns_nothing_of_the_fabric_through_a_node() -> anyhow::Result<()> {
    let fabric =
        start(|vrf| vrf["evpnExportFilter"] = json!({"defaultAction": {"type": "accept"}}))?;
    let loopbacks = ["10.254.0.1", "10.254.0.2"];
    // The node has what it must not pass on, and the leaves have what it announces itself.
    for loopback in loopbacks {
        eventually("the node learns the loopbacks of both leaves", || {
            let route = format!("ip -n selvedge route show {loopback}");
            Ok(!fabric.at(NODE)?.script(&route)?.trim().is_empty())
        });
    }
    eventually("the node learns the routes of the VRF behind leaf2", || {
        let routes = fabric
            .at(NODE)?
            .script("ip -n selvedge route show vrf m2m_enc 192.0.2.0/24")?;
        Ok(!routes.trim().is_empty())
    });
    for leaf in LEAVES {
        eventually("a leaf learns the VTEP of the node", || {
            Ok(from_node(&fabric, leaf, "ipv4 unicast")?.contains("100.65.0.3/32"))
        });
        eventually("a leaf learns the networks of the node's VRF", || {
            Ok(from_node(&fabric, leaf, "l2vpn evpn")?.contains("198.51.100.128"))
        });
    }
    std::thread::sleep(GRACE);
    for leaf in LEAVES {
        let unicast = from_node(&fabric, leaf, "ipv4 unicast")?;
        for loopback in loopbacks {
            assert!(
                !unicast.contains(loopback),
                "{leaf} has {loopback} from the node: {unicast}"
            );
        }
        let evpn = from_node(&fabric, leaf, "l2vpn evpn")?;
        assert!(
            !evpn.contains("192.0.2.0"),
            "{leaf} has a route of leaf2 from the node: {evpn}"
        );
    }
    // The route maps are what keeps them back: without one the leaf has what it must not have.
    let without = |leaf: &str, family: &str, map: &str| -> anyhow::Result<()> {
        let leaf = address_of(&fabric, leaf)?;
        fabric.at(NODE)?.script(&format!(
            "vtysh -N router -c 'configure terminal' -c 'router bgp 64514' -c 'address-family {family}' \
             -c 'no neighbor {leaf} route-map {map} out'"
        ))?;
        Ok(())
    };
    without("leaf2", "ipv4 unicast", "fabric-out")?;
    eventually("a node without the route map is transit", || {
        Ok(from_node(&fabric, "leaf2", "ipv4 unicast")?.contains("10.254.0.1/32"))
    });
    without("leaf1", "l2vpn evpn", "fabric-evpn-out")?;
    eventually("a node without the route map for EVPN is transit", || {
        Ok(from_node(&fabric, "leaf1", "l2vpn evpn")?.contains("192.0.2.0"))
    });
    Ok(())
}

/// A workload that announces an address of its segment with a route target of another VRF, with well-known communities and with
/// the node's mark for routes of the fabric. Its own community 65200:7 shows that communities travel.
const SPEAKER: &str = "
frr defaults traditional
route-map forged permit 1
 set community 65200:7 no-export blackhole
 set extcommunity rt 64500:10300
 set large-community 64514:0:1
exit
router bgp 65200
 bgp router-id 198.51.100.140
 no bgp ebgp-requires-policy
 no bgp network import-check
 neighbor 198.51.100.129 remote-as 64514
 neighbor 198.51.100.129 timers connect 1
 address-family ipv4 unicast
  network 198.51.100.200/32
  neighbor 198.51.100.129 route-map forged out
 exit-address-family
exit
";

#[test]
fn a_workload_attaches_no_route_target_and_no_well_known_community() -> anyhow::Result<()> {
    let mut fabric = start(|vrf| {
        let everything = json!({"defaultAction": {"type": "accept"}});
        vrf["evpnExportFilter"] = everything.clone();
        vrf["bgpPeers"] = json!([{
            "listenRange": "198.51.100.128/25", "remoteAsn": 65200,
            "ipv4": {"importFilter": everything, "exportFilter": everything, "maxPrefixes": 10},
        }]);
    })?;
    let gateway = ["198.51.100.129".parse()?];
    let address = ["198.51.100.140/25".parse()?];
    fabric.workload("w1", NODE, "l2.billing", &address, &gateway)?;
    fabric.at("w1")?.start_frr(SPEAKER)?;
    let at_leaf = |vrf: &str| {
        fabric.frr_json(
            "leaf2",
            &format!("show bgp vrf {vrf} ipv4 unicast 198.51.100.200/32 json"),
        )
    };
    let mut route = Value::Null;
    eventually("the workload's route reaches its VRF on the leaf", || {
        route = at_leaf("m2m_enc")?;
        Ok(route["paths"][0].is_object())
    });
    let text = route.to_string();
    assert!(text.contains("65200:7"), "communities travel: {text}");
    for forged in [
        "64500:10300",
        "no-export",
        "noExport",
        "blackhole",
        "64514:0:1",
    ] {
        assert!(!text.contains(forged), "{forged} travels: {text}");
    }
    std::thread::sleep(GRACE);
    let other = at_leaf("third")?;
    assert!(
        !other["paths"][0].is_object(),
        "another VRF takes the route: {other}"
    );
    Ok(())
}
