use super::*;
use crate::config::{Peer, RemoteAs};

fn read(text: &str) -> Parsed {
    parse(text, FrrVersion::NEWEST)
}

#[test]
fn what_frr_adds_by_itself_is_passed_over() {
    let text = "Building configuration...\n\nCurrent configuration:\n!\nfrr version 10.7.1\n\
        frr defaults traditional\nhostname node\nlog syslog informational\nno ip forwarding\n\
        no ipv6 forwarding\nservice integrated-vtysh-config\n!\nend\n";
    let Parsed { config, unknown } = read(text);
    assert_eq!(unknown, []);
    assert_eq!(
        config,
        FrrConfig {
            resolve_via_default: true,
            ..FrrConfig::default()
        }
    );
}

#[test]
fn a_line_nobody_asked_for_is_handed_back_with_its_context() {
    let text = "frr defaults datacenter\nrouter bgp 64512\n neighbor 192.0.2.1 remote-as 1\n \
        neighbor 192.0.2.1 shutdown\n address-family ipv4 unicast\n  neighbor 192.0.2.9 activate\n \
        exit-address-family\nexit\nrouter ospf\n passive-interface default\nexit\n";
    let found: Vec<String> = read(text).unknown.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "frr defaults datacenter",
            "router bgp 64512 / address-family ipv4 unicast / neighbor 192.0.2.9 activate",
            "router ospf",
            "router ospf / passive-interface default",
        ]
    );
}

#[test]
fn a_secret_in_an_unknown_line_is_not_shown() {
    let text = "router bgp 64512\n neighbor nobody password hunter2\nexit\n";
    let unknown = read(text).unknown;
    assert_eq!(unknown.len(), 1);
    assert!(!format!("{unknown:?}{}", unknown[0]).contains("hunter2"));
    assert!(unknown[0].line.contains("hunter2"));
}

#[test]
fn lines_of_interfaces_terminals_and_keys_are_taken_back_by_what_frr_accepts() {
    let text = "enable password hunter2\nzebra nexthop-group keep 5\ninterface eth1\n ip address 192.0.2.1/24\n shutdown\nexit\n\
        key chain K\n key 1\n  key-string hunter2\n exit\nexit\nline vty\n exec-timeout 5 0\nexit\n";
    let steps = read(text).unknown;
    let steps = steps.iter().filter_map(UnknownLine::removal).collect();
    let change = crate::Change {
        steps,
        ..crate::Change::default()
    };
    let [crate::Batch::Commands(commands)] = &change.batches()[..] else {
        panic!("one batch")
    };
    assert_eq!(
        *commands,
        [
            "configure terminal",
            "no enable password",
            "no zebra nexthop-group keep 5",
            "interface eth1",
            "no ip address 192.0.2.1/24",
            "no shutdown",
            "exit",
            "no key chain K",
            "line vty",
            "no exec-timeout",
            "exit",
        ]
    );
}

#[test]
fn a_line_nobody_asked_for_is_taken_back_in_its_block_and_a_block_as_a_whole() {
    let text = "router bgp 64512\n neighbor 192.0.2.1 shutdown\n no neighbor 192.0.2.1 enforce-first-as\n \
        neighbor 192.0.2.1 password hunter2\nexit\nrouter ospf\n passive-interface default\nexit\n";
    let steps: Vec<Step> = read(text)
        .unknown
        .iter()
        .filter_map(UnknownLine::removal)
        .collect();
    let change = crate::Change {
        steps,
        ..crate::Change::default()
    };
    let [crate::Batch::Commands(commands)] = &change.batches()[..] else {
        panic!("one batch")
    };
    assert_eq!(
        *commands,
        [
            "configure terminal",
            "router bgp 64512",
            "no neighbor 192.0.2.1 shutdown",
            "neighbor 192.0.2.1 enforce-first-as",
            "no neighbor 192.0.2.1 password",
            "exit",
            "no router ospf",
        ]
    );
}

#[test]
fn a_line_of_an_outer_block_closes_the_inner_one() {
    let text = "router bgp 64512\n neighbor 192.0.2.1 remote-as external\n address-family ipv4 unicast\n  \
        neighbor 192.0.2.1 activate\n neighbor 192.0.2.1 port 1179\nvrf red\n vni 7\n";
    let Parsed { config, unknown } = read(text);
    assert_eq!(unknown, []);
    let peer = Peer::Address("192.0.2.1".parse().unwrap());
    let neighbor = &config.bgp[&None].neighbors[&peer];
    assert_eq!(
        (neighbor.port, neighbor.remote_as),
        (Some(1179), Some(RemoteAs::External))
    );
    assert!(config.bgp[&None].ipv4.neighbors[&peer].activate);
    assert_eq!(config.vrfs.len(), 1);
}

#[test]
fn values_stand_in_the_form_frr_gives_back() {
    let read = |text: &str| read(text).config;
    let list = |line: &str| read(&format!("ip prefix-list p seq 5 permit {line}\n"));
    assert_eq!(list("10.0.0.0/8 ge 8 le 32"), list("10.0.0.0/8 le 32"));
    assert_eq!(list("10.0.0.0/8 ge 9 le 32"), list("10.0.0.0/8 ge 9"));
    assert_eq!(list("10.0.0.0/8 le 8"), list("10.0.0.0/8"));
    let bgp = |line: &str| {
        read(&format!(
            "router bgp 1\n neighbor 192.0.2.1 remote-as 2\n neighbor 192.0.2.1 {line}\n"
        ))
    };
    assert_eq!(bgp("ebgp-multihop"), bgp("ebgp-multihop 255"));
    assert_eq!(bgp("timers 40 80"), bgp("timers 26 80"));
    let map = |line: &str| read(&format!("route-map m permit 1\n {line}\n"));
    assert_eq!(
        map("set community no-export"),
        map("set community 65535:65281")
    );
    assert_eq!(
        map("set community 1:2 1:1 additive"),
        map("set community 1:1 1:2 additive")
    );
}

#[test]
fn refusals_of_frr_are_refusals_here() {
    for text in [
        "router bgp 1\nexit\nrouter bgp 1 vrf red\nexit\nno router bgp 1\n",
        "router bgp 1\nexit\nvrf red\n vni 7\nexit-vrf\nrouter bgp 1 vrf red\nexit\nno router bgp 1 vrf red\n",
        "router bgp 1\nexit\nno router bgp 2\n",
        "router bgp 1\nexit\nrouter bgp 2\n",
        "vrf red\n ip route 10.0.0.0/8 blackhole\n ip route 10.0.0.0/8 192.0.2.1\nexit-vrf\n",
    ] {
        assert_eq!(read(text).unknown.len(), 1, "{text}");
    }
}
