//! Routers of the host out of a small world.

use api::tcaas::node_network_config::HostRouter;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};

const PREFIXES: [&str; 6] = [
    "10.0.0.0/8",
    "10.1.0.0/16",
    "192.0.2.1/32",
    "0.0.0.0/0",
    "2001:db8::/32",
    "2001:db8:1::/48",
];

fn prefixes() -> impl Strategy<Value = Vec<&'static str>> {
    vec(select(PREFIXES.to_vec()), 0..4)
}

fn flags(names: &'static [&'static str]) -> impl Strategy<Value = Map<String, Value>> {
    vec(any::<bool>(), names.len()).prop_map(move |values| {
        let set = names.iter().zip(values).filter(|(_, value)| *value);
        set.map(|(name, _)| ((*name).to_owned(), true.into()))
            .collect()
    })
}

fn advertise() -> impl Strategy<Value = Value> {
    let communities = select(vec!["64512:1", "64512:2", "large:1:2:3"]);
    let hops = any::<bool>();
    (
        prefixes(),
        vec((1_u32..4, prefixes()), 0..3),
        vec((communities, prefixes()), 0..3),
        hops,
    )
        .prop_map(|(prefixes, preferences, communities, hops)| {
            let preferences = preferences.iter().map(|(preference, prefixes)| {
                json!({"localPreference": preference, "prefixes": prefixes})
            });
            let communities = communities
                .iter()
                .map(|(community, prefixes)| json!({"community": community, "prefixes": prefixes}));
            let mut advertise = json!({
                "prefixes": prefixes,
                "localPreferences": preferences.collect::<Vec<_>>(),
                "communities": communities.collect::<Vec<_>>(),
            });
            if hops {
                advertise["nextHopIpv4"] = "192.0.2.9".into();
                advertise["nextHopIpv6"] = "2001:db8::9".into();
            }
            advertise
        })
}

fn receive() -> impl Strategy<Value = Value> {
    let prefix = (select(PREFIXES.to_vec()), option::of(1_u8..=128));
    (any::<bool>(), vec(prefix, 0..4)).prop_map(|(all, prefixes)| {
        let prefixes = prefixes.iter().map(|(prefix, le)| match le {
            Some(le) => json!({"prefix": prefix, "le": le}),
            None => json!({"prefix": prefix}),
        });
        json!({"all": all, "prefixes": prefixes.collect::<Vec<_>>()})
    })
}

fn neighbor() -> impl Strategy<Value = Value> {
    let peer = select(vec![
        json!({"address": "192.0.2.1"}),
        json!({"address": "192.0.2.3"}),
        json!({"address": "2001:db8::1"}),
        json!({"interface": "eth1"}),
    ]);
    let remote = select(vec![
        json!({"asn": 64513}),
        json!({"asn": 64512}),
        json!({"external": true}),
        json!({"internal": true}),
    ]);
    let flags = flags(&[
        "ipv4",
        "ipv6",
        "evpn",
        "ebgpMultiHop",
        "disableConnectedCheck",
        "gracefulRestart",
    ]);
    let numbers = (
        option::of(0_u16..3),
        option::of(0_u16..20),
        option::of(0_u16..60),
        option::of(1_u16..4),
    );
    let texts = (
        option::of(select(vec!["lo", "192.0.2.200"])),
        option::of(select(vec!["fast", "not a name"])),
        option::of(select(vec!["known", "unknown"])),
        option::of(select(vec![64_512_u32, 64_600])),
    );
    (peer, remote, flags, numbers, texts, advertise(), receive()).prop_map(
        |(peer, remote, flags, numbers, texts, advertise, receive)| {
            let mut neighbor = Value::Object(flags);
            let all = neighbor.as_object_mut().unwrap();
            all.extend(peer.as_object().unwrap().clone());
            let mut set = |name: &str, value: Option<Value>| {
                if let Some(value) = value {
                    all.insert(name.to_owned(), value);
                }
            };
            set("remoteAs", Some(remote));
            set("port", numbers.0.map(Into::into));
            set("keepaliveTime", numbers.1.map(Into::into));
            set("holdTime", numbers.2.map(Into::into));
            set("connectTime", numbers.3.map(Into::into));
            set("source", texts.0.map(Into::into));
            set("bfdProfile", texts.1.map(Into::into));
            set("passwordSecret", texts.2.map(|name| json!({"name": name})));
            set("localAs", texts.3.map(Into::into));
            set("advertise", Some(advertise));
            set("receive", Some(receive));
            neighbor
        },
    )
}

fn vni(numbers: std::ops::Range<u32>) -> impl Strategy<Value = Value> {
    let targets = |texts: &[&'static str]| vec(select(texts.to_vec()), 0..3);
    (
        numbers,
        option::of(select(vec!["64512:9", "192.0.2.9:4"])),
        targets(&["64512:1000", "64512:7", "*:9"]),
        targets(&["64512:1000", "64512:7"]),
    )
        .prop_map(|(vni, rd, imports, exports)| {
            json!({"vni": vni, "rd": rd, "importRTs": imports, "exportRTs": exports})
        })
}

fn router() -> impl Strategy<Value = Value> {
    (
        (64_512_u32..64_514, option::of(Just("192.0.2.250"))),
        vec(neighbor(), 0..4),
        prefixes(),
        vec(select(vec!["default", "red", "blue"]), 0..3),
        flags(&["advertiseAllVNIs", "advertiseSVI"]),
        vec(vni(1000..1003), 0..3),
        option::of(vni(2000..2002)),
    )
        .prop_map(|((asn, id), neighbors, networks, imports, flags, l2, l3)| {
            let mut router = Value::Object(flags);
            router["asn"] = asn.into();
            router["routerId"] = id.into();
            router["neighbors"] = neighbors.into();
            router["networks"] = networks.into();
            router["imports"] = imports.into();
            router["l2vnis"] = l2.into();
            router["l3vni"] = l3.into();
            router
        })
        .boxed()
}

/// A router of the host without raw configuration, sound or not.
pub(crate) fn host_router() -> impl Strategy<Value = HostRouter> {
    let others = proptest::collection::btree_map(select(vec!["red", "blue"]), router(), 0..2);
    let blocked = vec(select(vec!["10.96.0.0/16", "fd00::/8"]), 0..2);
    let level = select(vec!["all", "info", "none"]);
    (option::of((router(), others)), blocked, level).prop_map(|(routers, blocked, level)| {
        let routers = routers.map(|(default, mut others)| {
            others.insert("default", default);
            others
        });
        let value = json!({
            "logLevel": level,
            "alwaysBlock": blocked,
            "routers": routers.unwrap_or_default(),
            "bfdProfiles": [{"name": "fast", "receiveInterval": 100, "echoMode": true}],
        });
        serde_json::from_value(value).unwrap()
    })
}

/// Lines of raw configuration that try to change what is generated, among others.
pub(crate) fn raw_line() -> impl Strategy<Value = &'static str> {
    select(vec![
        "route-map 192.0.2.1-out permit 3000",
        "route-map 192.0.2.1-out permit 4000",
        "route-map 192.0.2.1-in deny 1",
        "no route-map 192.0.2.1-out",
        " set local-preference 7",
        " match ip address prefix-list own",
        " set as-path prepend 64512 64512",
        "exit",
        "ip prefix-list 192.0.2.1-allowed-ipv4 seq 5 permit 172.16.0.0/12",
        "ip prefix-list 192.0.2.1-allowed-ipv4 seq 4294967295 permit any",
        "ip prefix-list 192.0.2.1-allowed-ipv4 permit any",
        "no ip prefix-list 192.0.2.1-allowed-ipv4",
        "ip prefix-list own permit 10.0.0.0/8 le 24 ge 9",
        "router bgp 64512",
        "router bgp 64513",
        "no router bgp 64512",
        " neighbor 192.0.2.1 remote-as 5",
        " neighbor 192.0.2.1 password other",
        " no neighbor 192.0.2.1 password",
        " no neighbor 192.0.2.1",
        " neighbor 192.0.2.77 remote-as 6",
        " address-family ipv4 unicast",
        "  neighbor 192.0.2.1 activate",
        "  neighbor 192.0.2.77 activate",
        "  network 172.16.0.0/12",
        " address-family l2vpn evpn",
        "  vni 1000",
        "   route-target import *:9",
        "   route-target import 64512:1000",
        "vrf red",
        " vni 7",
        " ip route 10.0.0.0/8 blackhole",
        "line vty",
        "interface eth0",
        "log stdout debugging",
        "end",
        "shutdown",
    ])
}
