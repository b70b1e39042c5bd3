use std::net::IpAddr;

use api::value::MacAddress;

use super::*;

const LIMIT: Duration = Duration::from_mins(2);
const MAC: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);

fn seconds(seconds: u64) -> Time {
    Duration::from_secs(seconds)
}

fn neighbor(device: u32) -> Entry {
    Entry::Neighbor {
        device,
        address: IpAddr::from([10, 254, 0, 1]),
        mac: Some(MAC),
    }
}

fn port(device: u32) -> Entry {
    Entry::Port {
        device,
        mac: MAC,
        vlan: None,
    }
}

/// A hold of an agent that has found zebra's entries and nothing of an earlier agent.
fn following(entries: &[Entry]) -> Hold {
    let mut hold = Hold::new(LIMIT);
    for entry in entries {
        hold.made(*entry, Origin::Zebra);
    }
    hold.end();
    hold
}

#[test]
fn what_zebra_deletes_while_bgpd_runs_is_meant() {
    let mut hold = following(&[port(7)]);
    assert_eq!(hold.gone(port(7), seconds(5)), None);
    assert_eq!(hold.until(), None);
    assert_eq!(hold.died(seconds(10), LIMIT), [], "that was long before");
}

#[test]
fn what_zebra_deletes_because_bgpd_died_is_put_back_also_if_the_deletion_is_seen_first() {
    let mut hold = following(&[port(7), neighbor(8)]);
    assert_eq!(hold.gone(port(7), seconds(5)), None);
    let now = seconds(5) + Duration::from_millis(20);
    assert_eq!(hold.died(now, LIMIT), [Act::PutBack(port(7))]);
    // The kernel says first that the neighbor has failed, and then that it is deleted; both without its MAC.
    hold.made(neighbor(8).id(), Origin::Other);
    let put_back = Some(Act::PutBack(neighbor(8)));
    assert_eq!(hold.gone(neighbor(8).id(), now), put_back);
    assert_eq!(
        hold.gone(neighbor(8).id(), now),
        put_back,
        "as often as it is deleted"
    );
    assert_eq!(
        hold.gone(neighbor(9).id(), now),
        None,
        "that one is unknown"
    );
    assert_eq!(hold.until(), Some(now + LIMIT));
    assert_eq!(hold.n_put_back(), 2);
}

#[test]
fn what_came_back_before_the_death_is_noticed_is_left_alone() {
    let mut hold = following(&[port(7)]);
    hold.gone(port(7), seconds(5));
    hold.made(port(7), Origin::Zebra);
    assert_eq!(hold.died(seconds(5), LIMIT), []);
}

#[test]
fn until_the_end_every_deletion_is_put_back_and_none_afterwards() {
    let mut hold = following(&[port(7), neighbor(8)]);
    hold.died(seconds(5), LIMIT);
    hold.gone(port(7), seconds(5));
    // bgpd is back and zebra has made it anew, and deletes it again because bgpd has not received everything yet.
    hold.made(port(7), Origin::Zebra);
    let put_back = Some(Act::PutBack(port(7)));
    assert_eq!(hold.gone(port(7), seconds(9)), put_back);
    assert_eq!(hold.until(), Some(seconds(5) + LIMIT));
    hold.end();
    assert_eq!((hold.until(), hold.n_put_back()), (None, 0));
    assert_eq!(hold.gone(port(7), seconds(15)), None);
}

#[test]
fn a_bgpd_that_dies_again_and_again_is_held_for_no_longer() {
    let mut hold = following(&[port(7)]);
    hold.died(seconds(5), LIMIT);
    hold.gone(port(7), seconds(5));
    for second in 6..20 {
        hold.made(port(7), Origin::Zebra);
        hold.died(seconds(second), LIMIT);
    }
    assert_eq!(hold.until(), Some(seconds(5) + LIMIT));
}

#[test]
fn nothing_is_held_on_a_device_that_goes_down() {
    let mut hold = following(&[port(7), neighbor(8)]);
    hold.died(seconds(5), LIMIT);
    hold.gone(port(7), seconds(5));
    hold.gone(neighbor(8).id(), seconds(5));
    assert_eq!(hold.down(7), [Act::Remove(port(7))]);
    assert_eq!(hold.gone(port(7), seconds(6)), None);
    assert_eq!(hold.n_put_back(), 1);
}

#[test]
fn what_was_missed_is_found_by_a_look_at_everything() {
    let mut hold = following(&[port(7), neighbor(8)]);
    hold.died(seconds(5), LIMIT);
    let found = [(neighbor(8), Origin::Zebra), (port(9), Origin::Zebra)];
    assert_eq!(hold.found(&found, seconds(5)), [Act::PutBack(port(7))]);
    assert_eq!(hold.gone(port(9), seconds(6)), Some(Act::PutBack(port(9))));
}

#[test]
fn an_entry_that_zebra_gave_up_to_somebody_else_is_not_put_back() {
    let mut hold = following(&[neighbor(8)]);
    hold.made(neighbor(8), Origin::Other);
    hold.died(seconds(5), LIMIT);
    assert_eq!(hold.gone(neighbor(8).id(), seconds(5)), None);
}

#[test]
fn an_agent_that_starts_looks_for_what_another_has_left() {
    let mut hold = Hold::new(LIMIT);
    assert_eq!(hold.until(), Some(LIMIT));
    hold.made(port(7), Origin::Zebra);
    assert_eq!(hold.gone(port(7), seconds(1)), None, "bgpd has not died");
}

#[test]
fn bgpd_has_received_all_when_every_neighbor_has_ended_every_family() {
    let neighbor = |state: &str, evpn: bool| {
        serde_json::json!({
            "bgpState": state,
            "addressFamilyInfo": {"ipv4Unicast": {}, "l2VpnEvpn": {}},
            "gracefulRestartInfo": {"endOfRibRecv": {"ipv4Unicast": true, "l2VpnEvpn": evpn}},
        })
    };
    let ask = |one: Value, other: Value| {
        let answer = serde_json::json!({"10.0.0.1": one, "10.0.0.2": other});
        has_end_of_rib(&answer.to_string())
    };
    let done = neighbor("Established", true);
    assert!(ask(done.clone(), done.clone()));
    assert!(!ask(done.clone(), neighbor("Established", false)));
    assert!(!ask(done.clone(), neighbor("Active", true)));
    let mut host = neighbor("Active", false);
    host["nbrDesc"] = "passthrough default/one".into();
    assert!(ask(done.clone(), host), "a speaker on the host may be away");
    assert!(!has_end_of_rib("{}"), "its configuration is not loaded yet");
    assert!(!has_end_of_rib("% no such thing"));
}
