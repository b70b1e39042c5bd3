use super::*;
use crate::parse;

fn config(text: &str) -> FrrConfig {
    let parsed = parse(text, FrrVersion::NEWEST);
    assert_eq!(parsed.unknown, []);
    parsed.config
}

const SESSION: &str = "router bgp 1\n neighbor 192.0.2.1 remote-as 2\n";

fn session(lines: &str) -> FrrConfig {
    config(&format!("{SESSION}{lines}"))
}

#[test]
fn a_filter_comes_before_the_session_that_uses_it_and_goes_after() {
    let without = session("");
    let with = session(
        " address-family ipv4 unicast\n  neighbor 192.0.2.1 activate\n  neighbor 192.0.2.1 route-map m in\n \
         exit-address-family\nexit\nip prefix-list p seq 5 permit 10.0.0.0/8\nroute-map m permit 10\n \
         match ip address prefix-list p\nexit\n",
    );
    assert_eq!(
        diff(&without, &with).to_string(),
        "ip prefix-list p seq 5 permit 10.0.0.0/8\nroute-map m permit 10\n match ip address prefix-list p\nexit\n\
         router bgp 1\n address-family ipv4 unicast\n  neighbor 192.0.2.1 route-map m in\n  \
         neighbor 192.0.2.1 activate\n exit\nexit\n"
    );
    assert_eq!(
        diff(&with, &without).to_string(),
        "router bgp 1\n address-family ipv4 unicast\n  no neighbor 192.0.2.1 activate\n  \
         no neighbor 192.0.2.1 route-map m in\n exit\nexit\nno route-map m\nno ip prefix-list p\n"
    );
}

#[test]
fn what_closes_a_session_is_announced_and_nothing_else_is() {
    let quiet = [
        " neighbor 192.0.2.1 timers 3 9\n",
        " neighbor 192.0.2.1 timers connect 5\n",
        " neighbor 192.0.2.1 bfd\n",
        " neighbor 192.0.2.3 remote-as 4\n neighbor 192.0.2.3 password x\n",
        " address-family ipv4 unicast\n  neighbor 192.0.2.1 route-map m in\n",
        " address-family ipv4 unicast\n  network 10.0.0.0/8\n",
    ];
    for lines in quiet {
        let change = diff(&session(""), &session(lines));
        assert!(change.disruption() < Disruption::SessionReset, "{lines}");
        assert_eq!(change.resets.len(), 0, "{lines}");
    }
    let peer = Some(Peer::Address("192.0.2.1".parse().unwrap()));
    let loud = [
        (" neighbor 192.0.2.1 password x\n", peer.clone()),
        (" neighbor 192.0.2.1 remote-as 3\n", peer.clone()),
        (" neighbor 192.0.2.1 ebgp-multihop 2\n", peer.clone()),
        (" neighbor 192.0.2.1 update-source lo\n", peer.clone()),
        (
            " address-family ipv6 unicast\n  neighbor 192.0.2.1 activate\n",
            peer,
        ),
        (" bgp router-id 192.0.2.7\n", None),
    ];
    for (lines, peer) in loud {
        let change = diff(&session(""), &session(lines));
        assert_eq!(change.disruption(), Disruption::SessionReset, "{lines}");
        assert_eq!(
            change.resets,
            BTreeSet::from([Session { vrf: None, peer }]),
            "{lines}"
        );
    }
}

#[test]
fn a_session_that_goes_takes_its_lines_along() {
    let with = session(
        " neighbor 192.0.2.3 remote-as 4\n neighbor 192.0.2.3 bfd\n address-family ipv4 unicast\n  \
         neighbor 192.0.2.3 activate\n  neighbor 192.0.2.3 allowas-in\n",
    );
    let change = diff(&with, &session(""));
    assert_eq!(
        change.to_string(),
        "router bgp 1\n no neighbor 192.0.2.3\nexit\n"
    );
}

#[test]
fn a_vrf_that_goes_is_first_imported_by_nobody_and_carried_by_nothing() {
    let one = "vrf red\n vni 7\nexit-vrf\nrouter bgp 1\nexit\nrouter bgp 1 vrf red\nexit\nrouter bgp 1 vrf top\n";
    let with = config(&format!(
        "{one} address-family ipv4 unicast\n  import vrf red\n"
    ));
    let without = config("router bgp 1\nexit\nrouter bgp 1 vrf top\n");
    assert_eq!(
        diff(&with, &without).to_string(),
        "router bgp 1 vrf top\n address-family ipv4 unicast\n  no import vrf red\n exit\nexit\n\
         vrf red\n no vni 7\nexit\nno router bgp 1 vrf red\n! after the devices are gone\nno vrf red\n"
    );
}

#[test]
fn another_as_makes_every_instance_anew() {
    let of = |asn: u32| {
        config(&format!(
            "vrf red\n vni 7\nexit-vrf\nrouter bgp {asn}\nexit\nrouter bgp {asn} vrf red\n bgp router-id 1.1.1.1\n"
        ))
    };
    assert_eq!(diff(&of(1), &of(2)).router, RouterChange::Replaced);
    assert_eq!(
        diff(&of(1), &of(2)).to_string(),
        "vrf red\n no vni 7\nexit\nno router bgp 1 vrf red\nno router bgp 1\nvrf red\n vni 7\nexit\n\
         router bgp 2\nexit\nrouter bgp 2 vrf red\n bgp router-id 1.1.1.1\nexit\n"
    );
}

#[test]
fn a_router_that_begins_or_ends_needs_a_fresh_frr_and_a_fresh_one_not_twice() {
    let none = config("");
    let vrf_alone = config("router bgp 1 vrf red\n");
    let router = config("router bgp 1\nexit\nrouter bgp 1 vrf red\n");
    for (running, desired, change, needs) in [
        (&none, &router, RouterChange::Begins, [true, false]),
        (&vrf_alone, &router, RouterChange::None, [false, false]),
        (&router, &none, RouterChange::Ends, [true, true]),
        (&router, &vrf_alone, RouterChange::Ends, [true, true]),
        (&none, &vrf_alone, RouterChange::None, [false, false]),
        (&router, &router, RouterChange::None, [false, false]),
    ] {
        let found = diff(running, desired).router;
        assert_eq!(found, change);
        assert_eq!([false, true].map(|it| found.needs_fresh_frr(it)), needs);
    }
}

#[test]
fn a_changed_filter_is_looked_at_by_the_sessions_that_have_it() {
    let with = |prefix: &str| {
        config(&format!(
            "ip prefix-list p seq 5 permit {prefix}\nroute-map inner permit 1\n match ip address prefix-list p\nexit\n\
             route-map m permit 1\n call inner\nexit\nrouter bgp 1\n{0} remote-as 2\n address-family ipv4 unicast\n{0} activate\n\
             {0} route-map m out\n",
            " neighbor 192.0.2.1"
        ))
    };
    let change = diff(&with("10.0.0.0/8"), &with("11.0.0.0/8"));
    assert_eq!(change.clears, ["clear bgp ipv4 unicast 192.0.2.1 soft out"]);
    assert_eq!(change.n_lines(), 1);
    assert_eq!(change.disruption(), Disruption::None);
}

#[test]
fn a_password_is_a_batch_of_its_own_and_in_nothing_else() {
    let change = diff(
        &session(""),
        &session(" neighbor 192.0.2.1 password hunter2\n"),
    );
    assert!(change.has_secret());
    let [Batch::Secret { path, line }] = &change.batches()[..] else {
        panic!("one line to be kept secret: {change}")
    };
    assert_eq!(line.reveal(), "neighbor 192.0.2.1 password hunter2");
    assert_eq!(path.len(), 1);
    assert!(!format!("{change}{change:?}{:?}", change.batches()).contains("hunter2"));
}

#[test]
fn a_new_session_has_its_password_before_it_can_come_up() {
    let text = "router bgp 1\n no bgp default ipv4-unicast\n neighbor g peer-group\n neighbor g remote-as 3\n neighbor g password b\n\
        \x20neighbor 192.0.2.1 remote-as 2\n neighbor 192.0.2.1 password a\n bgp listen range 10.0.0.0/8 peer-group g\n\
        \x20address-family ipv4 unicast\n  neighbor g activate\n  neighbor 192.0.2.1 activate\n";
    let change = diff(&config(""), &config(text));
    let batches = change.batches();
    let last_secret = batches
        .iter()
        .rposition(|batch| matches!(batch, Batch::Secret { .. }))
        .unwrap();
    let comes_up =
        |line: &String| line.ends_with(" activate") || line.starts_with("bgp listen range");
    let first_up = batches
        .iter()
        .position(|batch| matches!(batch, Batch::Commands(lines) if lines.iter().any(comes_up)))
        .unwrap();
    assert!(last_secret < first_up, "{batches:?}");
}

#[test]
fn a_long_change_is_cut_into_batches_that_lead_into_their_own_blocks() {
    let routes = |count: u32| {
        let lines =
            (0..count).map(|n| format!(" ip route 10.{}.{}.0/24 blackhole\n", n / 250, n % 250));
        config(&format!("vrf red\n{}exit-vrf\n", lines.collect::<String>()))
    };
    let change = diff(&routes(1), &routes(2501));
    let batches = change.batches();
    assert_eq!(batches.len(), 3);
    for batch in batches {
        let Batch::Commands(lines) = batch else {
            panic!("nothing is secret")
        };
        assert_eq!(lines[..2], ["configure terminal", "vrf red"]);
        assert_eq!(lines.last().unwrap(), "exit");
    }
}

/// FRR makes the instance of a VRF by itself when another imports from it or its VNI is up, and 8.4 then refuses it another AS.
#[test]
fn an_instance_of_another_as_is_there_before_anything_can_make_it_with_the_wrong_one() {
    let without = config("router bgp 1\nexit\n");
    let with = config(
        "router bgp 1\nexit\nrouter bgp 1 vrf blue\n address-family ipv4 unicast\n  import vrf red\n exit-address-family\nexit\n\
         router bgp 2 vrf red\n bgp router-id 192.0.2.7\nexit\nvrf red\n vni 7\nexit-vrf\n",
    );
    let change = diff(&without, &with);
    assert_eq!(
        change.to_string(),
        "router bgp 2 vrf red\nexit\nvrf red\n vni 7\nexit\nrouter bgp 1 vrf blue\n address-family ipv4 unicast\n  \
         import vrf red\n exit\nexit\nrouter bgp 2 vrf red\n bgp router-id 192.0.2.7\nexit\n"
    );
    assert_eq!(change.resets.len(), 0);
    let boot = crate::print(&with, FrrVersion::V8_4, "r");
    let at = |line: &str| boot.find(line).unwrap();
    assert!(at("router bgp 1\n") < at("router bgp 2 vrf red\n"));
    assert!(at("router bgp 2 vrf red\n") < at("import vrf red\n"));
}
