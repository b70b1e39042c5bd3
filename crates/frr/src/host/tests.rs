use api::tcaas::node_network_config::HostRouter;
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{PrefixRule, RouteMapAction},
    diff, parse, print,
    secret::Password,
};

mod numbers;
mod raw;
mod refused;

fn router(value: Value) -> HostRouter {
    serde_json::from_value(value).unwrap()
}

fn made(value: Value) -> Desired {
    desired(&router(value), &Secrets::new(), FrrVersion::NEWEST)
}

fn text(desired: &Desired) -> String {
    print(&desired.config, FrrVersion::NEWEST, "r")
}

/// A router with one neighbor that has these settings besides.
fn with_neighbor(settings: &Value) -> Value {
    let mut neighbor = json!({"address": "192.0.2.1", "remoteAs": {"asn": 64513}, "ipv4": true});
    neighbor
        .as_object_mut()
        .unwrap()
        .extend(settings.as_object().unwrap().clone());
    json!({"routers": {"default": {"asn": 64512, "neighbors": [neighbor]}}})
}

#[test]
fn what_is_printed_parses_to_itself() {
    let router = with_neighbor(&json!({
        "advertise": {"prefixes": ["10.0.0.0/24"], "localPreferences": [{"localPreference": 5, "prefixes": ["10.0.0.0/24"]}]},
        "receive": {"all": true},
    }));
    let desired = made(router);
    let parsed = parse(&text(&desired), FrrVersion::NEWEST);
    assert_eq!(parsed.unknown, []);
    assert_eq!(parsed.config, desired.config);
    assert!(diff(&parsed.config, &desired.config).is_empty());
}

#[test]
fn a_session_waits_for_its_password() {
    let router = router(with_neighbor(
        &json!({"passwordSecret": {"name": "tor", "namespace": "frr"}}),
    ));
    let without = desired(&router, &Secrets::new(), FrrVersion::NEWEST);
    assert_eq!(without.config.bgp[&None].neighbors.len(), 0);
    assert_eq!(without.held_back.len(), 1);
    let secret = without.held_back[0].secret.clone();
    let secrets = Secrets::from([(secret, Password::new("hunter2").unwrap())]);
    let with = desired(&router, &secrets, FrrVersion::NEWEST);
    assert_eq!(with.held_back, []);
    assert!(text(&with).contains("neighbor 192.0.2.1 password hunter2\n"));
}

fn messages(desired: &Desired) -> Vec<&str> {
    let messages = desired.unsupported.iter();
    messages.map(|field| field.message.as_str()).collect()
}

fn evpn(settings: &Value) -> Value {
    let mut router = with_neighbor(&json!({"evpn": true}));
    let bgp = router["routers"]["default"].as_object_mut().unwrap();
    bgp.extend(settings.as_object().unwrap().clone());
    router
}

#[test]
fn a_wildcard_route_target_that_the_version_lacks_is_named_with_the_version() {
    let l3vni = router(
        json!({"routers": {"red": {"asn": 64512, "l3vni": {"vni": 7, "importRTs": ["*:999", "64512:7"]}}}}),
    );
    let old = desired(&l3vni, &Secrets::new(), FrrVersion::V8_4);
    assert_eq!(
        messages(&old),
        [
            "FRR 8.4 cannot import the route target *:999 in a layer 3 VNI: name the administrator, or use a newer FRR"
        ]
    );
    assert_eq!(old.unsupported[0].vrf.as_str(), "red");
    assert_eq!(old.unsupported[0].vni.map(Vni::get), Some(7));
    // The rest works.
    let red = Some("red".parse().unwrap());
    assert_eq!(old.config.bgp[&red].evpn.import_targets.len(), 1);
    for version in [FrrVersion::V10_3, FrrVersion::V10_7] {
        let new = desired(&l3vni, &Secrets::new(), version);
        assert_eq!(new.unsupported, []);
        assert_eq!(new.config.bgp[&red].evpn.import_targets.len(), 2);
    }
    let l2vni =
        evpn(&json!({"advertiseAllVNIs": true, "l2vnis": [{"vni": 9, "importRTs": ["*:999"]}]}));
    for version in FrrVersion::SUPPORTED {
        let made = desired(&router(l2vni.clone()), &Secrets::new(), version);
        assert_eq!(made.unsupported.len(), 1, "{version}");
        assert_eq!(
            messages(&made),
            [format!(
                "FRR {version} cannot import the route target *:999 in a layer 2 VNI: name the administrator"
            )]
        );
    }
}

#[test]
fn the_as_of_the_peer_is_the_local_one_where_the_version_supports_it() {
    let router = router(with_neighbor(&json!({"localAs": 64513})));
    let local_as = |made: &Desired| {
        let neighbors = &made.config.bgp[&None].neighbors;
        neighbors.values().map(|one| one.local_as).next().flatten()
    };
    let old = desired(&router, &Secrets::new(), FrrVersion::V8_4);
    assert_eq!(local_as(&old), None);
    assert_eq!(
        messages(&old),
        [
            "FRR 8.4 cannot give neighbor 192.0.2.1 its own AS as the local one: use another, or a newer FRR"
        ]
    );
    for version in [FrrVersion::V10_3, FrrVersion::V10_7] {
        let new = desired(&router, &Secrets::new(), version);
        assert_eq!(new.unsupported, []);
        assert_eq!(
            local_as(&new).map(|asn| asn.to_string()),
            Some("64513".to_owned())
        );
    }
}

#[test]
fn a_vni_that_cannot_take_effect_is_said_and_left_out() {
    let l2vni = made(evpn(&json!({"l2vnis": [{"vni": 9, "rd": "64512:9"}]})));
    assert!(messages(&l2vni)[0].contains("set advertiseVNIs to All"));
    assert!(!text(&l2vni).contains("vni 9"));
    let l3vni = made(json!({"routers": {"default": {"asn": 64512, "l3vni": {"vni": 9}}}}));
    assert!(messages(&l3vni)[0].contains("no layer 3 VNI in the default VRF"));
    assert!(!text(&l3vni).contains("vni 9"));
}

#[test]
fn a_vni_of_which_nothing_is_said_has_no_block() {
    let l2vnis =
        json!([{"vni": 9}, {"vni": 10, "importRTs": ["64512:10"], "exportRTs": ["64512:10"]}]);
    let made = made(evpn(&json!({"advertiseAllVNIs": true, "l2vnis": l2vnis})));
    assert!(!text(&made).contains(" vni "));
}

/// FRR forgets the target that it derives by itself as soon as another comes.
#[test]
fn the_derived_route_target_is_written_last_in_file_and_change() {
    let with = |targets: Value| {
        let l2vni = json!({"vni": 1000, "importRTs": targets, "exportRTs": targets});
        made(evpn(&json!({"advertiseAllVNIs": true, "l2vnis": [l2vni]})))
    };
    let both = with(json!(["64512:1000", "64512:1001"]));
    let lines = "   route-target import 64512:1001\n   route-target import 64512:1000\n   \
                 route-target export 64512:1001\n   route-target export 64512:1000\n";
    assert!(text(&both).contains(lines), "{}", text(&both));
    let derived = with(json!(["64512:1000"]));
    let change = diff(&derived.config, &both.config).to_string();
    assert!(change.contains(lines), "{change}");
    // Back: the derived one goes first, and FRR derives it again when nothing else is left.
    let back = diff(&both.config, &derived.config).to_string();
    assert!(back.contains("no vni 1000\n"), "{back}");
}

/// FRR prints its targets in order, whichever came first.
#[test]
fn a_running_configuration_with_the_derived_route_target_first_has_both() {
    let targets = json!(["64512:1000", "64512:1001"]);
    let l2vni = json!({"vni": 1000, "importRTs": targets, "exportRTs": targets});
    let both = made(evpn(&json!({"advertiseAllVNIs": true, "l2vnis": [l2vni]})));
    let running = [("import", "1001", "1000"), ("export", "1001", "1000")]
        .iter()
        .fold(text(&both), |text, (way, first, second)| {
            let line = |target| format!("   route-target {way} 64512:{target}\n");
            let (written, shown) = (line(*first) + &line(*second), line(*second) + &line(*first));
            assert!(text.contains(&written), "{text}");
            text.replace(&written, &shown)
        });
    let running = parse(&running, FrrVersion::NEWEST).config;
    assert!(diff(&running, &both.config).is_empty());
}

#[test]
fn a_vni_block_follows_advertise_all_vni_and_goes_before_it() {
    let l2vnis = json!([{"vni": 1000, "rd": "64512:9"}]);
    let with = made(evpn(&json!({"advertiseAllVNIs": true, "l2vnis": l2vnis})));
    let without = made(evpn(&json!({})));
    let at = |text: &str, line: &str| text.find(line).unwrap();
    let change = diff(&without.config, &with.config).to_string();
    assert!(at(&change, "advertise-all-vni") < at(&change, "vni 1000"));
    let boot = text(&with);
    assert!(at(&boot, "advertise-all-vni") < at(&boot, "vni 1000"));
    let change = diff(&with.config, &without.config).to_string();
    assert!(at(&change, "no vni 1000") < at(&change, "no advertise-all-vni"));
}

#[test]
fn a_vni_of_a_vrf_stands_before_the_first_router() {
    let made = made(
        json!({"routers": {"default": {"asn": 64512}, "red": {"asn": 64512, "l3vni": {"vni": 7}}}}),
    );
    for version in FrrVersion::SUPPORTED {
        let text = print(&made.config, version, "r");
        assert!(text.find("vrf red\n vni 7").unwrap() < text.find("router bgp").unwrap());
    }
}

#[test]
fn a_changed_vni_disturbs_no_session() {
    let with = |rd: &str, targets: Value| {
        let l2vnis = json!([{"vni": 1000, "rd": rd, "importRTs": targets}]);
        made(evpn(&json!({"advertiseAllVNIs": true, "l2vnis": l2vnis}))).config
    };
    let none = made(evpn(&json!({"advertiseAllVNIs": true}))).config;
    let (one, other) = (
        with("64512:9", json!(["64512:1"])),
        with("64512:8", json!(["64512:2", "64512:1"])),
    );
    for (from, to) in [(&none, &one), (&one, &other), (&other, &none)] {
        let change = diff(from, to);
        assert!(!change.is_empty());
        assert_eq!(change.resets.len(), 0, "{change}");
    }
}

#[test]
fn a_neighbor_has_evpn_whether_or_not_its_router_says_anything_of_it() {
    let made = made(with_neighbor(&json!({"ipv4": false, "evpn": true})));
    let bgp = &made.config.bgp[&None];
    assert_eq!(bgp.evpn.neighbors.len(), 1);
    assert_eq!(bgp.ipv4.neighbors.len() + bgp.ipv6.neighbors.len(), 0);
}

#[test]
fn what_the_host_must_have_is_listed() {
    let made = made(json!({"routers": {
        "default": {"asn": 64512, "advertiseAllVNIs": true, "l2vnis": [{"vni": 10}], "neighbors": [
            {"interface": "eth1", "remoteAs": {"external": true}},
            {"address": "192.0.2.1", "remoteAs": {"external": true}, "source": "lo"},
        ]},
        "red": {"asn": 64512, "l3vni": {"vni": 7}},
    }}));
    let needs = made.needs.iter();
    let needs: Vec<String> = needs
        .map(|it| format!("{} {:?} {}", it.vrf, it.kind, it.name))
        .collect();
    assert_eq!(
        needs,
        [
            "default Interface eth1",
            "default Interface lo",
            "default L2vni 10",
            "red Vrf red",
            "red L3vni 7",
        ]
    );
}

#[test]
fn a_text_with_a_line_break_is_no_line() {
    let name = "x\n neighbor 192.0.2.9 remote-as 5";
    let mut router = with_neighbor(&json!({"bfdProfile": name}));
    router["bfdProfiles"] = json!([{"name": name}]);
    let made = made(router);
    assert_eq!(made.unsupported.len(), 2);
    assert!(!text(&made).contains("192.0.2.9"));
}

#[test]
fn a_change_of_prefixes_closes_no_session_whatever_the_session() {
    for settings in [
        json!({}),
        json!({"ebgpMultiHop": true}),
        json!({"bfdProfile": "fast", "gracefulRestart": true}),
    ] {
        let with = |prefixes: Value| {
            let mut settings = settings.clone();
            settings["advertise"] = json!({"prefixes": prefixes});
            let mut router = with_neighbor(&settings);
            router["bfdProfiles"] = json!([{"name": "fast"}]);
            router["routers"]["default"]["networks"] = prefixes;
            made(router).config
        };
        let change = diff(
            &with(json!(["10.0.0.0/8"])),
            &with(json!(["10.0.0.0/8", "11.0.0.0/8"])),
        );
        assert_eq!(change.n_lines(), 2, "{change}");
        assert_eq!(change.resets.len(), 0);
        assert_eq!(change.clears, ["clear bgp ipv4 unicast 192.0.2.1 soft out"]);
    }
}

#[test]
fn a_list_is_never_empty_on_its_way_between_nothing_and_something() {
    let with =
        |prefixes: Value| made(with_neighbor(&json!({"advertise": {"prefixes": prefixes}}))).config;
    let list = "ip prefix-list 192.0.2.1-allowed-ipv4 seq";
    let (nothing, some) = (with(json!([])), with(json!(["10.0.0.0/8"])));
    let number = some.prefix_lists[&(IpFamily::V4, "192.0.2.1-allowed-ipv4".parse().unwrap())]
        .keys()
        .next()
        .unwrap();
    assert_eq!(
        diff(&nothing, &some).to_string(),
        format!(
            "{list} {number} permit 10.0.0.0/8\nno {list} 4294967295 deny any\n! clear bgp ipv4 unicast 192.0.2.1 soft out\n"
        )
    );
    assert_eq!(
        diff(&some, &nothing).to_string(),
        format!(
            "{list} 4294967295 deny any\nno {list} {number} permit 10.0.0.0/8\n! clear bgp ipv4 unicast 192.0.2.1 soft out\n"
        )
    );
}

#[test]
fn a_change_of_one_family_touches_no_list_of_the_other() {
    let with = |prefixes: Value| {
        made(with_neighbor(
            &json!({"ipv6": true, "advertise": {"prefixes": prefixes}}),
        ))
        .config
    };
    let change = diff(
        &with(json!(["10.0.0.0/8", "2001:db8::/32"])),
        &with(json!(["10.0.0.0/8", "2001:db8::/32", "2001:db8:1::/48"])),
    );
    assert_eq!(change.n_lines(), 1);
    assert!(
        change
            .to_string()
            .starts_with("ipv6 prefix-list 192.0.2.1-allowed-ipv6 ")
    );
}

#[test]
fn entries_keep_their_numbers_while_communities_come() {
    let with = |communities: &[&str]| {
        let marked: Vec<Value> = communities
            .iter()
            .map(|community| json!({"community": community, "prefixes": ["10.0.0.0/8"]}))
            .collect();
        made(with_neighbor(
            &json!({"advertise": {"prefixes": ["10.0.0.0/8"], "communities": marked}}),
        ))
        .config
    };
    let (one, two) = (with(&["64512:9"]), with(&["64512:1", "64512:9"]));
    let map: Name = "192.0.2.1-out".parse().unwrap();
    for (number, entry) in &one.route_maps[&map] {
        assert_eq!(two.route_maps[&map].get(number), Some(entry));
    }
    let mut entries = two.route_maps[&map].iter();
    let deciding = entries.by_ref().find(|(_, entry)| !entry.on_match_next);
    assert_eq!(deciding.map(|(number, _)| *number), Some(3000));
    assert!(
        entries.all(|(_, entry)| !entry.on_match_next && entry.action == RouteMapAction::Permit)
    );
}

#[test]
fn another_as_of_the_router_is_announced() {
    let with = |asn: u32| {
        made(json!({"routers": {"default": {"asn": asn, "neighbors": [
            {"address": "192.0.2.1", "remoteAs": {"asn": 7}, "ipv4": true},
        ]}}}))
        .config
    };
    let change = diff(&with(64512), &with(64513));
    assert_eq!(change.router, crate::RouterChange::Replaced);
    assert_eq!(change.resets.len(), 1);
}

#[test]
fn times_reach_frr_as_given() {
    let with = |settings: Value| text(&made(with_neighbor(&settings)));
    assert!(with(json!({"holdTime": 180, "keepaliveTime": 30})).contains("timers 30 180\n"));
    // FRR itself sends keepalives three times in a hold time.
    assert!(with(json!({"holdTime": 90, "keepaliveTime": 60})).contains("timers 30 90\n"));
    assert!(with(json!({"connectTime": 60})).contains("timers connect 60\n"));
    assert!(!with(json!({})).contains("timers"));
}

#[test]
fn the_log_tells_what_was_asked_for() {
    for (level, line, debug) in [
        ("all", "log stdout debugging\n", true),
        ("debug", "log stdout debugging\n", true),
        ("info", "log stdout informational\n", false),
        ("warn", "log stdout warnings\n", false),
        ("error", "log stdout errors\n", false),
        ("none", "log stdout emergencies\n", false),
    ] {
        let text = text(&made(json!({"logLevel": level})));
        assert!(text.contains(line), "{text}");
        assert_eq!(text.contains("\ndebug bgp updates in\n"), debug);
    }
}

#[test]
fn a_filter_of_the_host_is_there_before_a_session_refers_to_it() {
    let empty = made(json!({})).config;
    let with = made(with_neighbor(
        &json!({"advertise": {"prefixes": ["10.0.0.0/8"]}}),
    ))
    .config;
    let change = diff(&empty, &with).to_string();
    let at = |line: &str| change.find(line).unwrap();
    let list = at("ip prefix-list 192.0.2.1-allowed-ipv4 seq");
    let (map, used) = (
        at("\nroute-map 192.0.2.1-out permit"),
        at("  neighbor 192.0.2.1 route-map 192.0.2.1-out out"),
    );
    assert!(list < map && map < used && used < at("  neighbor 192.0.2.1 activate"));
    let back = diff(&with, &empty).to_string();
    let at = |line: &str| back.find(line).unwrap();
    assert!(at("no router bgp 64512") < at("no route-map 192.0.2.1-out"));
    assert!(at("no route-map 192.0.2.1-out") < at("no ip prefix-list 192.0.2.1-allowed-ipv4"));
}

/// FRR ignores a prefix that is in the list under another number, and deletes by number whatever stands there. A rule moves only behind
/// one that denies, where its place matters.
#[test]
fn a_rule_that_moves_to_another_number_is_deleted_before_it_is_added() {
    let mut with = made(with_neighbor(
        &json!({"advertise": {"prefixes": ["10.0.0.0/8", "11.0.0.0/8"]}}),
    ))
    .config;
    let mut running = with.clone();
    let list = (
        IpFamily::V4,
        "192.0.2.1-allowed-ipv4".parse::<Name>().unwrap(),
    );
    let rules: Vec<_> = with.prefix_lists[&list].values().copied().rev().collect();
    running
        .prefix_lists
        .insert(list.clone(), (1..).zip(rules).collect());
    let deny = PrefixRule::any(RouteMapAction::Deny);
    let wanted = with.prefix_lists.get_mut(&list).unwrap();
    wanted.insert(5, deny);
    let change = diff(&running, &with).to_string();
    let (deleted, added): (Vec<_>, Vec<_>) = change
        .lines()
        .filter(|line| line.contains(" seq "))
        .partition(|line| line.starts_with("no "));
    assert_eq!((deleted.len(), added.len()), (2, 3), "{change}");
    let last_deleted = change.rfind("no ip prefix-list").unwrap();
    assert!(last_deleted < change.find("\nip prefix-list").unwrap());
}
