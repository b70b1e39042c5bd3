//! Pairs of devices to the host: sessions with its BGP speaker, and ports of segments.

use serde_json::{Value, json};

use super::{base, desired_of, fabric_vrf, host, parse, plan, settle, texts};
use crate::{
    Conflict, Desired, LinkId, Note, Observed, ObservedLink, Step, desired::desired, diff::diff,
    model::apply_to_model, object::Kind, owned::Owner, plan::LinkChange,
};

fn session(host: &str, router: &str, network: u8) -> Value {
    json!({
        "source": "L3VNI default/red", "devices": {"host": host, "router": router}, "mtu": 1450,
        "hostAddresses": [format!("100.96.{network}.3/24"), format!("fd00:{network}::3/64")],
        "routerAddresses": [format!("100.96.{network}.1/24"), format!("fd00:{network}::1/64")],
        "remoteAs": {"asn": 64515},
    })
}

fn segment(master: Option<Value>) -> Value {
    let mut port = json!({"device": "host-210"});
    if let Some(master) = master {
        port["master"] = master;
    }
    json!({
        "vni": 210, "mtu": 1450, "hostPort": port,
        "devices": {"bridge": "br-pe-210", "vxlan": "vx.210", "accessPort": "pe-210"},
    })
}

fn with_segment(master: Option<Value>) -> Desired {
    let mut config = base();
    config["layer2s"]["vni-210"] = segment(master);
    desired_of(config)
}

fn bridge(name: &str, create: bool) -> Value {
    json!({"name": name, "type": "linux-bridge", "create": create})
}

fn settled(desired: &Desired) -> Observed {
    let mut now = host();
    settle(desired, &mut now);
    now
}

fn refusals(config: Value) -> Vec<String> {
    let refused = desired(&parse(config)).unwrap_err();
    refused.into_iter().map(|one| one.path).collect()
}

#[test]
fn a_host_session_is_a_pair_with_its_addresses_after_it_joined_the_vrf() {
    let mut config = base();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    let mut now = settled(&desired_of(config.clone()));
    config["fabricVRFs"]["red"]["hostSession"] = session("host-100", "pe-100", 7);
    let plan = settle(&desired_of(config.clone()), &mut now);
    let before: Vec<_> = plan.before_frr().iter().map(ToString::to_string).collect();
    assert_eq!(
        before,
        [
            "create link host/host-100: veth to router/pe-100",
            "set link host/host-100 up",
            "add address 100.96.7.3/24 to host/host-100",
            "add address fd00:7::3/64 to host/host-100",
            "set link router/pe-100 alias \"selvedge:L3VNI default/red\"",
            "set link router/pe-100 master red",
            "set link router/pe-100 mtu 1450",
            "set link router/pe-100 up",
            "add address 100.96.7.1/24 to router/pe-100",
            "add address fd00:7::1/64 to router/pe-100",
        ]
    );
    assert_eq!(plan.after_frr(), []);
    assert_eq!(now.links[&LinkId::host("host-100")].mtu, 1450);
    // Another program takes the router end out of the VRF, which flushes its IPv6 address.
    let change = LinkChange::Master(None);
    let id = LinkId::router("pe-100");
    apply_to_model(&mut now, &Step::SetLink { id, change }).unwrap();
    assert_eq!(
        texts(&settle(&desired_of(config), &mut now)),
        [
            "set link router/pe-100 master red",
            "add address fd00:7::1/64 to router/pe-100"
        ]
    );
}

#[test]
fn passthroughs_are_pairs_without_a_vrf_and_go_with_their_session() {
    let mut config = base();
    let mut now = settled(&desired_of(config.clone()));
    config["passthroughs"] = json!({
        "a/one": session("pt-host-aaaaaaa", "pt-ns-aaaaaaa", 1),
        "a/two": session("pt-host-bbbbbbb", "pt-ns-bbbbbbb", 2),
    });
    settle(&desired_of(config), &mut now);
    for name in ["pt-ns-aaaaaaa", "pt-ns-bbbbbbb"] {
        let link = &now.links[&LinkId::router(name)];
        assert_eq!((link.master.as_ref(), link.mtu), (None, 1450));
        assert_eq!(link.addresses.len(), 2);
    }
    assert_eq!(
        texts(&settle(&desired_of(base()), &mut now)),
        [
            "delete link router/pt-ns-bbbbbbb",
            "delete link router/pt-ns-aaaaaaa"
        ]
    );
}

#[test]
fn a_bridge_of_its_own_is_made_with_a_segment_and_goes_while_the_segment_stays() {
    let mut now = settled(&desired_of(base()));
    let own = with_segment(Some(bridge("br-hs-210", true)));
    assert_eq!(
        texts(&settle(&own, &mut now)),
        [
            "create link host/br-hs-210: bridge",
            "set link host/br-hs-210 up",
            "create link router/br-pe-210: bridge",
            "set link router/br-pe-210 up",
            "create link host/host-210: veth to router/pe-210 master br-hs-210",
            "set link host/host-210 up",
            "set link router/pe-210 alias \"selvedge:l2 vni 210\"",
            "set link router/pe-210 addrgenmode none",
            "set link router/pe-210 master br-pe-210",
            "set link router/pe-210 mtu 1450",
            "set link router/pe-210 up",
            "create link router/vx.210: vxlan id 210 dstport 4789 local 198.51.100.1 master br-pe-210",
            "set link router/vx.210 up",
        ]
    );
    let none = with_segment(None);
    settle(&none, &mut now);
    assert!(!now.links.contains_key(&LinkId::host("br-hs-210")));
    assert_eq!(now.links[&LinkId::host("host-210")].master, None);
    settle(&own, &mut now);
    settle(&desired_of(base()), &mut now);
    assert_eq!(now, settled(&desired_of(base())));
}

#[test]
fn a_bridge_of_the_host_is_used_where_it_is_there_and_neither_made_nor_removed() {
    let attached = with_segment(Some(bridge("docker0", false)));
    let mut now = host();
    let first = settle(&attached, &mut now);
    assert_eq!(first.notes(), []);
    let port = LinkId::host("host-210");
    assert_eq!(now.links[&port].master.as_deref(), Some("docker0"));
    let docker = now.links[&LinkId::host("docker0")].clone();
    // No longer wanted there: the port leaves the bridge, and the bridge stays as it was.
    settle(&with_segment(None), &mut now);
    assert_eq!(now.links[&port].master, None);
    settle(&Desired::default(), &mut now);
    assert_eq!(now.links[&LinkId::host("docker0")], docker);
}

#[test]
fn a_bridge_that_is_missing_is_noted_and_used_as_soon_as_it_is_there() {
    let wished = with_segment(Some(bridge("br-late", false)));
    let mut now = host();
    let first = settle(&wished, &mut now);
    let [note] = first.notes() else {
        panic!("one note")
    };
    assert_eq!(
        note.to_string(),
        "host/host-210 (l2 vni 210) is not attached: there is no bridge br-late"
    );
    assert!(now.links[&LinkId::router("vx.210")].up);
    let late = ObservedLink::fresh(Owner::Foreign, Kind::Bridge);
    now.links.insert(LinkId::host("br-late"), late);
    let second = settle(&wished, &mut now);
    assert_eq!(texts(&second), ["set link host/host-210 master br-late"]);
    assert_eq!(second.notes(), []);
}

#[test]
fn what_is_no_bridge_of_the_kernel_is_noted_and_left_alone() {
    let mut now = host();
    let unfit = settle(&with_segment(Some(bridge("eth2", false))), &mut now);
    assert!(matches!(unfit.notes(), [Note::MasterUnfit { .. }]));
    let ovs = json!({"name": "br-ovs", "type": "ovs-bridge", "create": true});
    let ovs = settle(&with_segment(Some(ovs)), &mut now);
    let [note @ Note::Unattached(_)] = ovs.notes() else {
        panic!("one note")
    };
    let text = note.to_string();
    assert!(text.starts_with("layer2s.vni-210.hostPort.master: host-210 is not attached: br-ovs"));
    assert!(text.contains("Open vSwitch"));
    assert!(!now.links.contains_key(&LinkId::host("br-ovs")));
}

#[test]
fn what_other_programs_do_with_a_port_that_is_left_to_them_stays() {
    let wished = with_segment(None);
    let mut now = settled(&wished);
    let port = now.links.get_mut(&LinkId::host("host-210")).unwrap();
    port.master = Some("docker0".to_owned());
    port.addresses.insert("192.0.2.77/24".parse().unwrap());
    assert_eq!(texts(&plan(&wished, &now)), Vec::<String>::new());
    let own = with_segment(Some(bridge("br-hs-210", true)));
    let mut now = settled(&own);
    let bridge = now.links.get_mut(&LinkId::host("br-hs-210")).unwrap();
    bridge.addresses.insert("192.0.2.77/24".parse().unwrap());
    assert_eq!(texts(&plan(&own, &now)), Vec::<String>::new());
}

#[test]
fn a_foreign_link_of_a_wanted_name_is_a_conflict() {
    for name in ["host-210", "br-hs-210"] {
        let mut now = settled(&desired_of(base()));
        let foreign = ObservedLink::fresh(Owner::Foreign, Kind::Bridge);
        now.links.insert(LinkId::host(name), foreign);
        let conflicts = diff(&with_segment(Some(bridge("br-hs-210", true))), &now).unwrap_err();
        assert!(matches!(&conflicts[..], [Conflict::LinkTaken { id, .. }] if id.name == name));
    }
}

#[test]
fn the_second_tunnel_endpoint_is_on_the_loopback_and_carries_what_asks_for_it() {
    let mut config = base();
    config["underlay"]["otherVtep"] = "2001:db8::1".into();
    config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
    config["fabricVRFs"]["blue"] = fabric_vrf("blue", 10002, 2001);
    config["fabricVRFs"]["blue"]["fromOtherVtep"] = true.into();
    config["layer2s"]["vni-210"] = segment(None);
    config["layer2s"]["vni-210"]["fromOtherVtep"] = true.into();
    let desired = desired_of(config);
    assert_eq!(desired.loopback.len(), 2);
    let local = |name: &str| match desired.links[&LinkId::router(name)].kind {
        Kind::Vxlan { local, .. } => local.unwrap().to_string(),
        ref other => panic!("{other}"),
    };
    assert_eq!(local("vx.red"), "198.51.100.1");
    assert_eq!(local("vx.blue"), "2001:db8::1");
    assert_eq!(local("vx.210"), "2001:db8::1");
    let mut now = settled(&desired);
    settle(&desired_of(base()), &mut now);
    assert_eq!(now.links[&LinkId::router("lo")].addresses.len(), 1);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut config = base();
        config["fabricVRFs"]["red"] = fabric_vrf("red", 10001, 2000);
        config["layer2s"]["vni-210"] = segment(None);
        change(&mut config);
        refusals(config)
    };
    let segment = "layer2s.vni-210";
    assert_eq!(
        with(&|it| it["layer2s"]["vni-210"]["vlan"] = 7.into()),
        [segment]
    );
    let portless = |it: &mut Value| {
        let segment = it["layer2s"]["vni-210"].as_object_mut().unwrap();
        segment.remove("hostPort");
    };
    assert_eq!(with(&portless), [segment]);
    let interface = json!({"name": "l2.210", "addresses": []});
    assert_eq!(
        with(&|it| it["layer2s"]["vni-210"]["hostInterface"] = interface.clone()),
        ["layer2s.vni-210.hostInterface"]
    );
    assert_eq!(
        with(&|it| it["layer2s"]["vni-210"]["fromOtherVtep"] = true.into()),
        ["layer2s.vni-210.devices"]
    );
    assert_eq!(
        with(&|it| it["fabricVRFs"]["red"]["fromOtherVtep"] = true.into()),
        ["fabricVRFs.red.vni"]
    );
    assert_eq!(
        with(&|it| it["underlay"]["otherVtep"] = "198.51.100.9".into()),
        ["underlay.otherVtep"]
    );
    let mut strange = session("host-100", "pe-100", 1);
    strange["routerAddresses"] = json!(["100.97.0.1/24"]);
    assert_eq!(
        with(&|it| it["fabricVRFs"]["red"]["hostSession"] = strange.clone()),
        ["fabricVRFs.red.hostSession"]
    );
    let twice = session("host-210", "pe-100", 1);
    assert_eq!(
        with(&|it| it["passthroughs"]["a/b"] = twice.clone()),
        ["layer2s.vni-210.hostPort"]
    );
}
