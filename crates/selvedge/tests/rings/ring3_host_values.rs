//! Ring 3, values of FRRConfigurations: what the compile accepts of them, every supported FRR takes.

use std::sync::Arc;

use api::{selvedge::SettingsSpec, tcaas::node_network_config::HostRouter};
use compiler::{
    host_router,
    problem::Severity,
    snapshot::{Key, Kind, ObjectRef},
};
use frr::{FrrConfig, Secrets, host, print};
use lab::parts::{self, Release};
use serde_json::{Value, json};

use crate::{ring3_host_router::Daemons, support::progress};

/// An object with one router, which has these fields besides.
fn with_router(fields: &Value) -> Value {
    let mut router = json!({"asn": 64512, "prefixes": ["10.0.0.0/24", "2001:db8:1::/48"]});
    merge(&mut router, fields);
    json!({"bgp": {"routers": [router], "bfdProfiles": []}})
}

/// An object with one neighbor, which has these fields besides.
fn with_neighbor(fields: &Value) -> Value {
    let mut neighbor = json!({"address": "192.0.2.1", "asn": 64513});
    merge(&mut neighbor, fields);
    with_router(&json!({"neighbors": [neighbor]}))
}

fn with_profile(fields: &Value) -> Value {
    let mut object = with_neighbor(&json!({"bfdProfile": fields["name"]}));
    object["bgp"]["bfdProfiles"] = json!([fields]);
    object
}

fn with_evpn(evpn: &Value) -> Value {
    let neighbor = json!({"address": "192.0.2.1", "asn": 64512, "addressFamilies": ["evpn"]});
    with_router(&json!({"neighbors": [neighbor], "evpn": evpn}))
}

/// Adds fields; one without a value is taken out.
fn merge(object: &mut Value, fields: &Value) {
    let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) else {
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
}

/// Objects with values at the end of what there is.
#[expect(clippy::too_many_lines, reason = "a table")]
fn extremes() -> Vec<Value> {
    let mut all = Vec::new();
    let sessions = [
        json!({"asn": 4_294_967_295_u32}),
        json!({"asn": 1}),
        json!({"asn": 23456}),
        json!({"localASN": 1}),
        json!({"localASN": 64513}),
        json!({"localASN": 64512}),
        json!({"asn": 64512, "localASN": 7}),
        json!({"asn": null, "dynamicASN": "external", "localASN": 7}),
        json!({"port": 0}),
        json!({"port": 65535}),
        json!({"holdTime": "0s", "keepaliveTime": "0s"}),
        json!({"holdTime": "2s", "keepaliveTime": "1s"}),
        json!({"holdTime": "3s", "keepaliveTime": "3s"}),
        json!({"holdTime": "3s", "keepaliveTime": "4s"}),
        json!({"holdTime": "180s", "keepaliveTime": "0s"}),
        json!({"holdTime": "65535s", "keepaliveTime": "65535s"}),
        json!({"holdTime": "65536s", "keepaliveTime": "1s"}),
        json!({"connectTime": "0s"}),
        json!({"connectTime": "1s"}),
        json!({"connectTime": "65535s"}),
        json!({"ebgpMultiHop": true}),
        json!({"asn": 64512, "ebgpMultiHop": true}),
        json!({"enableGracefulRestart": true}),
        json!({"sourceaddress": "lo"}),
        json!({"sourceaddress": "192.0.2.9"}),
        json!({"sourceaddress": "2001:db8::9"}),
        json!({"sourceaddress": "0.0.0.0"}),
        json!({"sourceaddress": "224.0.0.1"}),
        json!({"sourceaddress": "255.255.255.255"}),
        json!({"sourceaddress": "::"}),
        json!({"sourceaddress": "ff02::1"}),
        json!({"address": "0.0.0.0"}),
        json!({"address": "0.0.0.1"}),
        json!({"address": "127.0.0.2"}),
        json!({"address": "169.254.0.9"}),
        json!({"address": "240.0.0.1"}),
        json!({"address": "255.255.255.255"}),
        json!({"address": "fe80::1"}),
        json!({"address": "::2"}),
        json!({"address": "2001:db8::1"}),
        json!({"address": "2001:db8::1", "dualStackAddressFamily": true}),
        json!({"address": "::ffff:192.0.2.1"}),
        json!({"address": "ff02::1"}),
        json!({"address": null, "interface": "eth0.100"}),
        json!({"address": null, "interface": "a_b-c.d"}),
        json!({"address": null, "interface": "interface"}),
        json!({"address": null, "interface": "10"}),
        json!({"address": null, "interface": "192.0.2.7"}),
        json!({"address": null, "interface": "fe80::7"}),
        json!({"address": null, "interface": "e+1"}),
        json!({"address": null, "interface": "e@1"}),
        json!({"address": null, "interface": "br#1"}),
        json!({"address": null, "interface": "!eth"}),
        json!({"address": null, "interface": "eth?"}),
        json!({"address": null, "interface": "a|b"}),
    ];
    all.extend(sessions.iter().map(with_neighbor));
    for hop in [
        "0.0.0.0",
        "0.0.0.1",
        "10.0.0.1",
        "127.0.0.1",
        "169.254.1.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ] {
        all.push(with_neighbor(
            &json!({"toAdvertise": {"nextHop": {"ipv4": hop}}}),
        ));
    }
    for hop in [
        "::",
        "::1",
        "::2",
        "fe80::1",
        "fec0::1",
        "fd00::1",
        "2001:db8::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::1",
    ] {
        let fields =
            json!({"dualStackAddressFamily": true, "toAdvertise": {"nextHop": {"ipv6": hop}}});
        all.push(with_neighbor(&fields));
    }
    for community in [
        "0:0",
        "0:1",
        "1:0",
        "65535:0",
        "65535:1",
        "65535:2",
        "65535:6",
        "65535:7",
        "65535:666",
        "65535:65281",
        "65535:65282",
        "65535:65283",
        "65535:65284",
        "65535:65535",
        "large:0:0:0",
        "large:4294967295:4294967295:4294967295",
    ] {
        let marked = json!([{"community": community, "prefixes": ["10.0.0.0/24"]}]);
        all.push(with_neighbor(
            &json!({"toAdvertise": {"allowed": {"mode": "all"}, "withCommunity": marked}}),
        ));
    }
    for preference in [0, 1, u32::MAX] {
        let preferred =
            json!([{"localPref": preference, "prefixes": ["10.0.0.0/24", "2001:db8:1::/48"]}]);
        let fields = json!({"dualStackAddressFamily": true, "toAdvertise": {"allowed": {"mode": "all"}, "withLocalPref": preferred}});
        all.push(with_neighbor(&fields));
    }
    for accepted in [
        json!({"prefix": "0.0.0.0/0", "le": 32}),
        json!({"prefix": "0.0.0.0/0", "ge": 1, "le": 1}),
        json!({"prefix": "0.0.0.0/0"}),
        json!({"prefix": "10.0.0.0/24", "ge": 24}),
        json!({"prefix": "10.0.0.0/24", "le": 24}),
        json!({"prefix": "10.0.0.0/24", "ge": 24, "le": 24}),
        json!({"prefix": "10.0.0.1/32", "ge": 32, "le": 32}),
        json!({"prefix": "10.0.0.0/24", "ge": 23}),
        json!({"prefix": "10.0.0.0/24", "le": 33}),
        json!({"prefix": "::/0", "le": 128}),
        json!({"prefix": "::/0", "ge": 128}),
        json!({"prefix": "2001:db8::/32", "ge": 33, "le": 128}),
    ] {
        let fields = json!({"dualStackAddressFamily": true, "toReceive": {"allowed": {"prefixes": [accepted]}}});
        all.push(with_neighbor(&fields));
    }
    for id in [
        "0.0.0.0",
        "0.0.0.1",
        "1.0.0.1",
        "127.0.0.1",
        "169.254.0.1",
        "223.255.255.255",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ] {
        all.push(with_router(&json!({"id": id})));
    }
    for prefix in [
        "0.0.0.0/0",
        "::/0",
        "0.0.0.0/8",
        "127.0.0.1/32",
        "169.254.0.0/16",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "255.255.255.255/32",
        "::1/128",
        "fe80::/10",
        "fe80::/64",
        "fe80::1/128",
        "ff00::/8",
        "::ffff:10.0.0.0/104",
    ] {
        all.push(with_router(&json!({"prefixes": [prefix]})));
    }
    for asn in [1_u32, 23456, 65535, u32::MAX] {
        all.push(with_router(&json!({"asn": asn})));
    }
    for vrf in [
        "default",
        "red",
        "a-name-of-15-chr",
        "a-name-of-15-ch",
        "view",
        "all",
        "vrf",
        "10",
    ] {
        all.push(with_router(&json!({"vrf": vrf})));
    }
    let long = "n".repeat(63);
    for profile in [
        json!({"name": long}),
        json!({"name": "n".repeat(64)}),
        json!({"name": "a.b_c:d/e-f"}),
        json!({"name": "1"}),
        json!({"name": "profile"}),
        json!({"name": "bang!"}),
        json!({"name": "what?"}),
        json!({"name": "pipe|x"}),
        json!({"name": "two words"}),
        json!({"name": "n", "receiveInterval": 10, "transmitInterval": 10, "echoInterval": 10, "detectMultiplier": 2, "minimumTtl": 1}),
        json!({"name": "n", "receiveInterval": 60000, "transmitInterval": 60000, "echoInterval": 60000, "detectMultiplier": 255, "minimumTtl": 254}),
        json!({"name": "n", "echoMode": true, "passiveMode": true}),
    ] {
        all.push(with_profile(&profile));
    }
    for target in [
        "0:0",
        "0:1",
        "1:0",
        "65535:4294967295",
        "65536:65535",
        "4294967295:65535",
        "0.0.0.0:0",
        "255.255.255.255:65535",
        "1.2.3.4:5",
    ] {
        let vni = json!({"vni": 1000, "rd": target, "importRTs": [target], "exportRTs": [target]});
        all.push(with_evpn(&json!({"advertiseVNIs": "All", "l2vnis": [vni]})));
        let mut l3vni = with_evpn(&json!({"advertiseVNIs": "All"}));
        let mut vni = vni;
        vni["advertisePrefixes"] = json!(["unicast"]);
        let red = json!({"asn": 64512, "vrf": "red", "evpn": {"l3vni": vni}});
        l3vni["bgp"]["routers"]
            .as_array_mut()
            .expect("routers")
            .push(red);
        all.push(l3vni);
    }
    for vni in [1, 16_777_215] {
        all.push(with_evpn(&json!({"advertiseVNIs": "All", "advertiseSVI": true, "l2vnis": [{"vni": vni, "importRTs": ["1:1"]}]})));
    }
    let mut two = with_evpn(&json!({"advertiseVNIs": "All"}));
    let mut red = two["bgp"]["routers"][0].clone();
    red["vrf"] = json!("red");
    two["bgp"]["routers"]
        .as_array_mut()
        .expect("routers")
        .push(red);
    all.push(two);
    all
}

/// What the compile makes of an object that is alone on a node; nothing if it refuses the object.
fn compiled(spec: &Value) -> Option<HostRouter> {
    let spec = serde_json::from_value(spec.clone()).ok()?;
    let subject = ObjectRef {
        kind: Kind::FrrConfiguration,
        key: Key::named("one"),
    };
    let settings = SettingsSpec::default();
    let (router, problems) = host_router::merge_all(&[(subject, Arc::new(spec))], &settings);
    let is_refused = problems.iter().any(|one| one.severity() == Severity::Error);
    (!is_refused).then_some(router)
}

#[test]
fn what_the_compile_accepts_is_taken_by_every_version() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    let mut refused = Vec::new();
    let mut accepted = 0;
    for release in Release::ALL {
        let daemons = Daemons::of(release)?;
        let version = daemons.version;
        let nothing = FrrConfig::default();
        let start = || daemons.boot(&print(&nothing, version, "r"));
        let mut running = start()?;
        for spec in extremes() {
            let Some(router) = compiled(&spec) else {
                continue;
            };
            accepted += 1;
            let made = host::desired(&router, &Secrets::new(), version);
            // The compile warns of it where a node has reported such a version.
            let is_told = |message: &str| {
                let lacks = "8.4 cannot give neighbor 192.0.2.1 its own AS as the local one";
                message.contains(lacks)
            };
            refused.extend(
                made.unsupported
                    .iter()
                    .filter(|one| !is_told(&one.message))
                    .map(|one| format!("{version}: {spec}: {}", one.message)),
            );
            if let Err(why) = running.takes(&made.config)? {
                refused.push(format!("{version}: {spec}: {why}"));
                running = start()?;
            }
        }
    }
    assert!(accepted > 200, "{accepted}");
    assert_eq!(refused, [""; 0], "{}", refused.join("\n\n"));
    Ok(())
}
