//! Raw configuration.

use serde_json::json;

use super::*;

/// A router with a neighbor and these texts.
fn with_raw(texts: &[&str]) -> HostRouter {
    let mut value = with_neighbor(&json!({"advertise": {"prefixes": ["10.0.0.0/8"]}}));
    let raw = texts
        .iter()
        .zip(1..)
        .map(|(lines, number)| json!({"source": format!("ns/raw-{number}"), "lines": lines}));
    value["raw"] = raw.collect();
    router(value)
}

fn merged(texts: &[&str]) -> Desired {
    desired(&with_raw(texts), &Secrets::new(), FrrVersion::NEWEST)
}

/// What is refused of one text, as `line: message`.
fn refused(text: &str) -> Vec<String> {
    let made = merged(&[text]);
    let refused = made.refused_raw.iter();
    refused
        .map(|it| format!("{}: {}", it.line, it.message))
        .collect()
}

#[test]
fn a_route_map_is_hooked_into_behind_what_is_generated() {
    let made = merged(&[
        "ip prefix-list extra permit 198.51.100.0/24 le 32\nroute-map 192.0.2.1-out permit 4000\n match ip address prefix-list extra\n \
         set metric 7\n",
    ]);
    assert_eq!(made.refused_raw, []);
    let map: Name = "192.0.2.1-out".parse().unwrap();
    let (last, entry) = made.config.route_maps[&map].last_key_value().unwrap();
    assert_eq!((*last, entry.set_metric), (4000, Some(7)));
    assert!(text(&made).contains("ip prefix-list extra seq 5 permit 198.51.100.0/24 le 32\n"));
}

#[test]
fn parts_work_in_whatever_order_they_are_written() {
    let activates = "router bgp 64512\n address-family ipv4 unicast\n  neighbor 192.0.2.77 activate\n  neighbor 192.0.2.77 route-map m in\n";
    let creates = "router bgp 64512\n neighbor 192.0.2.77 remote-as 7\n neighbor 192.0.2.77 port 1790\nroute-map m permit 10\n";
    let (one, other) = (merged(&[activates, creates]), merged(&[creates, activates]));
    assert_eq!(one.refused_raw, []);
    assert_eq!(one.config, other.config);
    assert!(text(&one).contains("  neighbor 192.0.2.77 activate\n"));
    let in_one = merged(&[&format!("{activates}{creates}")]);
    assert_eq!(in_one.config, one.config);
}

#[test]
fn what_is_generated_is_refused_with_its_line() {
    assert_eq!(
        refused("! a comment\nroute-map 192.0.2.1-out permit 3000\n set metric 7\n"),
        [
            "2: route-map 192.0.2.1-out permit 3000: entries of 192.0.2.1-out below 4000 are generated: use a higher number",
            "3: set metric 7: stands in a block that is refused",
        ]
    );
    assert_eq!(
        refused(
            "ip prefix-list 192.0.2.1-allowed-ipv4 permit any\nip prefix-list 192.0.2.1-allowed-ipv4 seq 4000000 permit any"
        ),
        [
            "1: ip prefix-list 192.0.2.1-allowed-ipv4 permit any: 192.0.2.1-allowed-ipv4 is generated: give the rule a number below 1000000",
            "2: ip prefix-list 192.0.2.1-allowed-ipv4 seq 4000000 permit any: 192.0.2.1-allowed-ipv4 is generated: give the rule a number \
             below 1000000",
        ]
    );
    assert_eq!(
        refused("no route-map 192.0.2.1-out\nno router bgp 64512"),
        [
            "1: no route-map 192.0.2.1-out: raw configuration adds lines and takes none back",
            "2: no router bgp 64512: raw configuration adds lines and takes none back",
        ]
    );
}

#[test]
fn what_is_not_of_bgp_is_refused() {
    let why = "raw configuration is of BGP, route maps, lists and BFD alone";
    for line in [
        "log file /etc/passwd",
        "log stdout debugging",
        "debug bgp updates",
        "hostname other",
        "line vty",
        "interface eth0",
        "ip route 10.0.0.0/8 192.0.2.9",
        "ip nht resolve-via-default",
        "service integrated-vtysh-config",
    ] {
        assert_eq!(refused(line), [format!("1: {line}: {why}")]);
    }
}

#[test]
fn what_the_grammar_does_not_know_is_refused_where_it_stands() {
    let message = "the grammar of FRR 10.7 that is supported has no such line here";
    assert_eq!(
        refused(
            "router bgp 64512\n neighbour 192.0.2.9 remote-as 5\n neighbor 192.0.2.1 wings\nrm -rf /\n"
        ),
        [
            format!("2: neighbour 192.0.2.9 remote-as 5: {message}"),
            format!("3: neighbor 192.0.2.1 wings: {message}"),
            format!("4: rm -rf /: {message}"),
        ]
    );
    assert_eq!(
        refused("router bgp 64512\n neighbor 192.0.2.9 port 5\nrouter bgp 7\n"),
        [
            "2: neighbor 192.0.2.9 port 5: there is no neighbor 192.0.2.9 here",
            "3: router bgp 7: the router of this VRF has AS 64512",
        ]
    );
}

#[test]
fn a_password_in_a_refused_line_is_cut_out() {
    let lines = refused(
        "router bgp 64512\n neighbor 192.0.2.9 password hunter2\n neighbor 192.0.2.1 password two words\n",
    );
    assert_eq!(lines.len(), 2);
    assert!(!lines.concat().contains("hunter2"));
    assert!(!lines.concat().contains("words"), "{lines:?}");
    assert!(
        lines[0].starts_with("2: neighbor 192.0.2.9 password …: "),
        "{lines:?}"
    );
}

#[test]
fn a_session_that_an_object_gives_a_password_keeps_it() {
    let mut router = with_raw(&[
        "router bgp 64512\n neighbor 192.0.2.1 password other\n no neighbor 192.0.2.1 password\n neighbor 192.0.2.1 remote-as 7\n \
         neighbor 192.0.2.1 timers 1 3\n",
    ]);
    let secret: SecretReference = serde_json::from_value(json!({"name": "tor"})).unwrap();
    let bgp = router.routers.values_mut().next().unwrap();
    bgp.neighbors[0].password_secret = Some(secret.clone());
    let secrets = Secrets::from([(secret, Password::new("hunter2").unwrap())]);
    let made = desired(&router, &secrets, FrrVersion::NEWEST);
    let lines: Vec<u32> = made.refused_raw.iter().map(|it| it.line).collect();
    assert_eq!(lines, [2, 3, 4]);
    let text = text(&made);
    assert!(text.contains("password hunter2\n") && text.contains("remote-as 64513\n"));
    assert!(text.contains("timers 1 3\n"));
}

#[test]
fn a_wildcard_that_the_version_lacks_is_refused_in_raw_configuration_too() {
    let router = with_raw(&[
        "router bgp 64512 vrf red\n address-family l2vpn evpn\n  route-target import *:9\n",
    ]);
    let old = desired(&router, &Secrets::new(), FrrVersion::V8_4);
    assert_eq!(old.refused_raw.len(), 1);
    assert_eq!(
        old.refused_raw[0].message,
        "route-target import *:9: FRR 8.4 cannot import the route target *:9"
    );
    assert_eq!(
        desired(&router, &Secrets::new(), FrrVersion::NEWEST).refused_raw,
        []
    );
}
