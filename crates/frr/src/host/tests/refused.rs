//! What is left out with a line that FRR does not take.

use api::tcaas::node_network_config::{RefusedLine, UnsupportedField};

use super::*;

fn refused(path: &[&str], line: &str) -> Refusal {
    Refusal {
        path: path.iter().map(|&block| block.to_owned()).collect(),
        line: line.to_owned(),
        why: "% no\n".to_owned(),
    }
}

fn two_sessions() -> HostRouter {
    let session = |address: &str| {
        json!({"address": address, "remoteAs": {"asn": 64513}, "ipv4": true, "bfdProfile": "fast",
               "advertise": {"prefixes": ["10.0.0.0/24"]}})
    };
    let neighbors = [session("192.0.2.1"), session("192.0.2.2")];
    router(json!({
        "routers": {
            "default": {
                "asn": 64512, "neighbors": neighbors, "networks": ["10.0.0.0/24", "10.0.1.0/24"], "advertiseAllVNIs": true,
                "l2vnis": [{"vni": 1000, "importRTs": ["64512:9"]}, {"vni": 1001, "importRTs": ["64512:9"]}],
            },
            "red": {"asn": 64512, "l3vni": {"vni": 7}, "imports": ["default"], "neighbors": [session("192.0.2.1")]},
        },
        "bfdProfiles": [{"name": "fast"}],
    }))
}

/// The router without what a line is of, and what is reported.
fn without(mut router: HostRouter, refusal: &Refusal) -> Option<(HostRouter, LeftOut)> {
    let mut left_out = LeftOut::default();
    let (secrets, version) = (Secrets::new(), FrrVersion::NEWEST);
    let is_known = leave_out(&mut router, refusal, &secrets, version, &mut left_out);
    is_known.then_some((router, left_out))
}

#[test]
fn a_refused_line_takes_its_own_part_out_and_nothing_else() {
    let bgp = "router bgp 64512";
    let red = "router bgp 64512 vrf red";
    let ipv4 = "address-family ipv4 unicast";
    let evpn = "address-family l2vpn evpn";
    let whole = serde_json::to_value(two_sessions()).unwrap();
    let cases = [
        // A session goes with its filters, whichever of its lines it is.
        (
            refused(&[bgp], "neighbor 192.0.2.2 remote-as 64513"),
            "/routers/default/neighbors/1",
            Some("192.0.2.2"),
        ),
        (
            refused(&[bgp, ipv4], "neighbor 192.0.2.1 activate"),
            "/routers/default/neighbors/0",
            Some("192.0.2.1"),
        ),
        (
            refused(
                &["route-map 192.0.2.2-out permit 3000"],
                "set ip next-hop 0.0.0.0",
            ),
            "/routers/default/neighbors/1",
            Some("192.0.2.2"),
        ),
        (
            refused(
                &[],
                "ip prefix-list 192.0.2.1-red-allowed-ipv4 seq 9 permit 10.0.0.0/24",
            ),
            "/routers/red/neighbors/0",
            Some("192.0.2.1"),
        ),
        (
            refused(&[bgp, ipv4], "network 10.0.1.0/24"),
            "/routers/default/networks/1",
            None,
        ),
        (
            refused(&[red, ipv4], "import vrf default"),
            "/routers/red/imports/0",
            None,
        ),
        (
            refused(&[bgp, evpn, "vni 1001"], "route-target import 64512:9"),
            "/routers/default/l2vnis/1",
            None,
        ),
        (refused(&["vrf red"], "vni 7"), "/routers/red/l3vni", None),
        (
            refused(&["bfd", "profile fast"], "detect-multiplier 1"),
            "/bfdProfiles/0",
            Some("192.0.2.1"),
        ),
    ];
    for (refusal, gone, peer) in cases {
        let (left, left_out) = without(two_sessions(), &refusal).expect("its part is known");
        let mut expected = whole.clone();
        let (list, last) = gone.rsplit_once('/').unwrap();
        let parent = expected.pointer_mut(list).unwrap();
        match last.parse::<usize>() {
            Ok(place) => {
                parent.as_array_mut().unwrap().remove(place);
            }
            Err(_) => {
                parent.as_object_mut().unwrap().remove(last);
            }
        }
        let expected: HostRouter = serde_json::from_value(expected).unwrap();
        assert_eq!(left, expected, "{refusal:?}");
        let UnsupportedField {
            peer: of, message, ..
        } = &left_out.fields[0];
        assert_eq!(of.as_deref(), peer);
        assert!(
            message.starts_with("FRR refuses ") && message.ends_with(": % no"),
            "{message}"
        );
    }
}

#[test]
fn a_refused_line_of_raw_configuration_is_left_out_with_its_number() {
    let raw = |lines: &str| {
        let mut router = two_sessions();
        router.raw = vec![api::tcaas::node_network_config::RawLines {
            source: "a/b".to_owned(),
            lines: lines.to_owned(),
        }];
        router
    };
    let listen = "bgp listen range 10.9.0.0/16 peer-group absent";
    let lines = format!("router bgp 64512\n  {listen}\n neighbor 192.0.2.9 remote-as 7");
    let (left, left_out) = without(raw(&lines), &refused(&["router bgp 64512"], listen)).unwrap();
    assert_eq!(
        left.raw[0].lines,
        "router bgp 64512\n\n neighbor 192.0.2.9 remote-as 7"
    );
    let RefusedLine {
        source,
        line,
        message,
    } = &left_out.raw[0];
    assert_eq!((source.as_str(), *line), ("a/b", 2));
    assert!(message.ends_with(": % no"), "{message}");

    // The lines behind one that opens a block would be of another.
    let map = "route-map mine permit 10\n set metric 7";
    let (left, _) = without(raw(map), &refused(&["route-map mine permit 10"], "")).unwrap();
    assert_eq!(left.raw[0].lines, "");

    // FRR has it in other words than the object.
    let list = "ip prefix-list mine permit 10.0.0.0/8 le 24 ge 9";
    let said = "ip prefix-list mine seq 5 permit 10.0.0.0/8 ge 9 le 24";
    let (left, left_out) = without(raw(list), &refused(&[], said)).unwrap();
    assert_eq!(left.raw, []);
    assert_eq!(left_out.raw[0].source, "a/b");
}

#[test]
fn a_line_of_nobody_leaves_the_router_as_it_is() {
    for refusal in [
        refused(&["router bgp 64512"], "no bgp ebgp-requires-policy"),
        refused(&["router bgp 64512"], "no neighbor 192.0.2.1"),
        refused(&[], "log stdout informational"),
        refused(
            &["router bgp 64512 vrf blue"],
            "neighbor 192.0.2.1 remote-as 1",
        ),
    ] {
        assert_eq!(without(two_sessions(), &refusal), None, "{refusal:?}");
    }
}
