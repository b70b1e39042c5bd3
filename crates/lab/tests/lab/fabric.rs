//! A fabric whose nodes the test itself configures, as an agent would.

use std::time::{Duration, Instant};

use selvedge_lab::Ping;
use selvedge_lab::control_plane::ControlPlane;
use selvedge_lab::fabric::{Builder, Fabric};
use selvedge_lab::parts::{self, Kubernetes, Tree};
use selvedge_lab::topology::LeafVrf;

use crate::progress;

const VNI: u32 = 10200;

/// Two leaves with a node each, and a VRF behind the second.
pub(crate) fn two_leaves() -> anyhow::Result<Builder> {
    let internet = LeafVrf {
        name: "internet".to_owned(),
        vni: VNI,
        route_target: "64500:10200".to_owned(),
        prefixes: vec!["203.0.113.0/24".parse()?, "2001:db8:f::/48".parse()?],
    };
    Ok(Fabric::builder()
        .leaf("leaf1", 64512)
        .leaf("leaf2", 64513)
        .node("n1", &["leaf1"])
        .node("n2", &["leaf2"])
        .vrf("leaf2", internet))
}

fn start(plan: Builder) -> anyhow::Result<Fabric> {
    parts::prepare_machine(&progress)?;
    let tree = Tree::for_guests(&progress)?;
    Ok(plan.start(&tree, &progress)?)
}

/// Makes a node an EVPN router with the VRF `red`, in a namespace of its own, as Selvedge's agent does it.
fn configure(fabric: &Fabric, node: &str, leaf: &str, number: u8) -> anyhow::Result<()> {
    let link = fabric.link(node, leaf)?;
    let (near, far) = link.seen_from(node).expect("the link has two ends");
    let (nic, address, peer) = (&near.interface, near.ipv4, far.ipv4.addr());
    let vtep = format!("10.255.0.{number}");
    let asn = 64600 + u32::from(number);
    let space = fabric.at(node)?;
    space.script(&format!(
        "ip netns add selvedge
         ip link set {nic} netns selvedge
         ip link add l2.red type veth peer name red0 netns selvedge
         ip link set l2.red up
         exec ip netns exec selvedge bash -euc '
           ip link set lo up; ip link set {nic} up
           ip address add {address} dev {nic}; ip address add {vtep}/32 dev lo
           sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
           ip link add red type vrf table 10001; ip link set red up
           ip link add br.red type bridge; ip link set br.red master red addrgenmode none; ip link set br.red up
           ip link add vx.red type vxlan id {VNI} dstport 4789 local {vtep} nolearning
           ip link set vx.red master br.red addrgenmode none; ip link set vx.red up
           ip link set red0 master red up
           ip address add 192.0.2.{gateway}/26 dev red0
           ip address add 2001:db8:{number}::1/64 dev red0 nodad'",
        gateway = u32::from(number) * 64 + 1,
    ))?;
    space.netns("selvedge").start_frr(&format!(
        "frr defaults datacenter
vrf red
 vni {VNI}
exit-vrf
router bgp {asn}
 bgp router-id {vtep}
 no bgp default ipv4-unicast
 no bgp ebgp-requires-policy
 neighbor {peer} remote-as external
 neighbor {peer} timers 1 3
 neighbor {peer} timers connect 1
 neighbor {peer} bfd
 address-family ipv4 unicast
  neighbor {peer} activate
  network {vtep}/32
 exit-address-family
 address-family l2vpn evpn
  neighbor {peer} activate
  advertise-all-vni
 exit-address-family
exit
router bgp {asn} vrf red
 bgp router-id {vtep}
 address-family ipv4 unicast
  redistribute connected
 exit-address-family
 address-family ipv6 unicast
  redistribute connected
 exit-address-family
 address-family l2vpn evpn
  rd {vtep}:2
  route-target import 64500:10200
  route-target export 64500:10200
  advertise ipv4 unicast
  advertise ipv6 unicast
 exit-address-family
exit
"
    ))?;
    Ok(())
}

/// Configures a node and plugs a workload into it.
fn settle(fabric: &mut Fabric, node: &str, leaf: &str, number: u8) -> anyhow::Result<()> {
    configure(fabric, node, leaf, number)?;
    let host = u32::from(number) * 64 + 2;
    let addresses = [
        format!("192.0.2.{host}/26").parse()?,
        format!("2001:db8:{number}::2/64").parse()?,
    ];
    let gateways = [
        format!("192.0.2.{}", host - 1).parse()?,
        format!("2001:db8:{number}::1").parse()?,
    ];
    fabric.workload(&format!("w{number}"), node, "l2.red", &addresses, &gateways)?;
    Ok(())
}

/// Two nodes with a workload each, and the time until the first whole ping from one to the other.
fn ready(plan: Builder) -> anyhow::Result<Fabric> {
    let start_time = Instant::now();
    let mut fabric = start(plan)?;
    settle(&mut fabric, "n1", "leaf1", 1)?;
    settle(&mut fabric, "n2", "leaf2", 2)?;
    eprintln!(
        "nodes configured after {:.1} s",
        start_time.elapsed().as_secs_f64()
    );
    for target in [
        "192.0.2.130",
        "203.0.113.77",
        "2001:db8:2::2",
        "2001:db8:f::77",
    ] {
        comes_back(&fabric, target);
        eprintln!(
            "{target} answers after {:.1} s",
            start_time.elapsed().as_secs_f64()
        );
    }
    Ok(fabric)
}

fn comes_back(fabric: &Fabric, target: &str) {
    let back = Fabric::eventually(Duration::from_secs(30), || {
        fabric
            .ping("w1", target, 2)
            .is_ok_and(Ping::whole)
            .then_some(())
    });
    if back.is_none() {
        for leaf in ["leaf1", "leaf2", "n1", "n2"] {
            let Ok(space) = fabric.at(leaf) else { continue };
            let shown = space.run(&[
                "vtysh",
                "-N",
                "router",
                "-c",
                "show bgp l2vpn evpn",
                "-c",
                "show bgp summary",
            ]);
            eprintln!(
                "{leaf}: {}",
                shown.unwrap_or_else(|error| format!("{error}"))
            );
        }
    }
    assert!(back.is_some(), "{target} does not answer");
}

#[test]
fn packets_cross_the_fabric_and_a_cut_link_stops_them() -> anyhow::Result<()> {
    let mut fabric = ready(two_leaves()?)?;
    assert!(
        fabric.ping("internet", "192.0.2.66", 2)?.whole(),
        "the host behind the leaf reaches the workload"
    );

    let capture = fabric.at("leaf2")?.capture("n2", "udp port 4789")?;
    assert!(fabric.ping("w1", "192.0.2.130", 3)?.whole());
    let seen = Fabric::eventually(Duration::from_secs(5), || {
        (capture.stdout().matches("ICMP echo request").count() >= 3).then_some(())
    });
    assert!(
        seen.is_some(),
        "the pings are seen in VXLAN: {}{}",
        capture.stdout(),
        capture.stderr()
    );

    let summary = fabric.frr_json("leaf1", "show bgp l2vpn evpn summary json")?;
    assert_eq!(summary["peerCount"], 2, "{summary}");
    assert_eq!(
        fabric.frr_json("n1", "show bgp l2vpn evpn summary json")?["peerCount"],
        1
    );

    fabric.cut("leaf1", "n1")?;
    assert_eq!(fabric.ping("w1", "192.0.2.130", 3)?.received, 0);
    let start = Instant::now();
    fabric.mend("n1", "leaf1")?;
    comes_back(&fabric, "192.0.2.130");
    eprintln!(
        "mended link carries packets after {:.1} s",
        start.elapsed().as_secs_f64()
    );
    drop(capture);
    comes_back_after_a_reboot(&mut fabric)
}

fn comes_back_after_a_reboot(fabric: &mut Fabric) -> anyhow::Result<()> {
    let start = Instant::now();
    fabric
        .at("n1")?
        .script("echo kept > /var/lib/selvedge/journal; sync; echo lost > /run/lost")?;
    fabric.reboot("n1")?;
    assert_eq!(
        fabric.at("n1")?.read("/var/lib/selvedge/journal")?,
        "kept\n"
    );
    assert!(fabric.at("n1")?.read("/run/lost").is_err());
    settle(fabric, "n1", "leaf1", 1)?;
    comes_back(fabric, "192.0.2.130");
    eprintln!(
        "rebooted node carries packets after {:.1} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

#[test]
fn nodes_reach_the_control_plane_over_the_management_network() -> anyhow::Result<()> {
    let fabric = start(two_leaves()?)?;
    let kubernetes = Kubernetes::prepare(&progress)?;
    let plane = ControlPlane::builder(&kubernetes)
        .inside(fabric.namespace(), fabric.control_plane_address())
        .start()?;
    eprintln!(
        "control plane beside the fabric ready after {:.1} s",
        plane.ready_after().as_secs_f64()
    );
    plane.kubectl(
        &[
            "create",
            "configmap",
            "greeting",
            "--from-literal=text=hello",
        ],
        "",
    )?;
    let kubectl = fabric.hand_in(&kubernetes.program("kubectl"))?;
    let kubeconfig = fabric.hand_in(&plane.kubeconfig("admin")?)?;
    for node in ["n1", "n2"] {
        let start = Instant::now();
        let get = [
            &kubectl,
            "--kubeconfig",
            &kubeconfig,
            "get",
            "configmap",
            "greeting",
            "--output=jsonpath={.data.text}",
        ];
        assert_eq!(fabric.at(node)?.run(&get)?, "hello");
        eprintln!(
            "kubectl on {node} took {:.1} s",
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

#[test]
fn a_node_with_a_guest_of_its_own_is_gone_when_killed() -> anyhow::Result<()> {
    let mut fabric = ready(two_leaves()?.spine("spine1", 64500).guest_per_node())?;
    comes_back_after_a_reboot(&mut fabric)?;
    let full_size =
        fabric
            .at("w1")?
            .run(&["ping", "-c", "2", "-M", "do", "-s", "1420", "192.0.2.130"]);
    assert!(
        full_size.is_ok(),
        "frames of full size cross between guests: {full_size:?}"
    );
    fabric.kill("n2")?;
    assert!(fabric.at("n2").is_err());
    assert_eq!(fabric.ping("w1", "192.0.2.130", 3)?.received, 0);
    assert!(
        fabric.ping("w1", "203.0.113.1", 3)?.whole(),
        "the rest of the fabric lives on"
    );
    Ok(())
}
