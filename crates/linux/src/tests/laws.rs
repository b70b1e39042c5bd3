use proptest::prelude::*;
use serde_json::{Value, json};

use super::{base, desired_of, fabric_vrf, host, layer2, plan, settle};
use crate::{
    Desired, Domain, LinkId, Step, model::apply_to_model, object::Kind, owned::Owner,
    plan::LinkChange,
};

const VRFS: [(&str, u32); 3] = [("red", 10001), ("blue", 10002), ("green", 10003)];

/// Any config over a small world, so that two of them share and fight over names and numbers.
fn config() -> impl Strategy<Value = Value> {
    let vrf = (any::<bool>(), 0u32..3, 0u32..4, any::<bool>());
    let segment = (
        any::<bool>(),
        0u32..4,
        0usize..4,
        1400u16..1402,
        any::<bool>(),
    );
    (
        proptest::array::uniform3(vrf),
        proptest::array::uniform4(segment),
        1500u16..1503,
        (1u8..3, any::<bool>()),
        (any::<bool>(), 0u8..3),
        proptest::array::uniform2((0u8..5, 1400u16..1402)),
    )
        .prop_map(|(vrfs, segments, trunk_mtu, (vtep, second_nic), sessions, ports)| {
            let mut config = base();
            config["underlay"]["trunk"]["mtu"] = trunk_mtu.into();
            config["underlay"]["vtep"] = format!("198.51.100.{vtep}").into();
            if second_nic {
                config["underlay"]["nics"] = json!(["eth1", "eth2"]);
            }
            let mut tables: Vec<u32> = vec![10001, 10002, 10003];
            let mut vnis: Vec<u32> = vec![2000, 2001, 2002, 2003];
            let mut names = vec!["cluster"];
            for ((name, _), (present, table, vni, loopback)) in VRFS.into_iter().zip(vrfs) {
                if !present {
                    continue;
                }
                let table = tables.remove(table as usize % tables.len());
                let vni = vnis.remove(vni as usize % vnis.len());
                let mut vrf = fabric_vrf(name, table, vni);
                if loopback {
                    vrf["loopbacks"] = json!({format!("lo.{name}"): {"ipAddresses": ["203.0.113.1/32", "2001:db8:f::1/128"]}});
                    vrf["gres"] = json!({format!("gre.{name}"): {
                        "sourceAddress": "203.0.113.1", "destinationAddress": format!("203.0.113.{}", vni % 7 + 9),
                        "sourceInterface": format!("lo.{name}"), "layer": "layer2", "encapsulationKey": table,
                    }});
                }
                config["fabricVRFs"][name] = vrf;
                names.push(name);
            }
            let mut l2vnis: Vec<u32> = vec![5000, 5001, 5002, 5003];
            for (vlan, (present, vni, vrf, mtu, suppress)) in (100u16..).zip(segments) {
                if !present {
                    continue;
                }
                let vni = l2vnis.remove(vni as usize % l2vnis.len());
                let mut segment = layer2(vlan, vni, names.get(vrf).copied());
                segment["mtu"] = mtu.into();
                segment["neighSuppression"] = suppress.into();
                if let Some(tunnel) = names.get(vrf).filter(|_| suppress) {
                    // Where that VRF has no tunnel, the rule is noted and nothing comes of it.
                    segment["mirrorAcls"] = json!([{
                        "direction": if mtu == 1400 { "ingress" } else { "egress" },
                        "trafficMatch": {"srcPrefix": format!("10.{vni}.0.0/16", vni = vni % 200)},
                        "mirrorDestination": format!("gre.{tunnel}"),
                    }, {
                        "direction": "ingress", "trafficMatch": {}, "mirrorDestination": format!("gre.{tunnel}"),
                    }]);
                }
                config["layer2s"][vlan.to_string()] = segment;
            }
            host_ends(&mut config, sessions, ports);
            config
        })
}

/// Pairs of devices to the host: a session of a VRF and a passthrough that share an address pool, and ports of segments.
fn host_ends(config: &mut Value, (in_vrf, passthrough): (bool, u8), ports: [(u8, u16); 2]) {
    let session = |name: &str, host: u8| {
        json!({
            "source": name, "devices": {"host": format!("host-{name}"), "router": format!("pe-{name}")}, "mtu": 1400 + u16::from(host),
            "hostAddresses": [format!("100.96.0.{host}/24"), format!("fd00::{host}/64")],
            "routerAddresses": ["100.96.0.1/24", "fd00::1/64"], "remoteAs": {"asn": 64515},
        })
    };
    if in_vrf && !config["fabricVRFs"]["red"].is_null() {
        config["fabricVRFs"]["red"]["hostSession"] = session("7", 9);
    }
    if passthrough > 0 {
        config["passthroughs"]["a/b"] = session("8", passthrough + 1);
    }
    for (vni, (how, mtu)) in (6000u32..).zip(ports) {
        let own = format!("br-hs-{vni}");
        let master = match how {
            0 => continue,
            1 => None,
            2 => Some((own.as_str(), true)),
            3 => Some(("docker0", false)),
            _ => Some(("br-missing", false)),
        };
        let mut port = json!({"device": format!("host-{vni}")});
        if let Some((name, create)) = master {
            port["master"] = json!({"name": name, "type": "linux-bridge", "create": create});
        }
        config["layer2s"][format!("vni-{vni}")] = json!({
            "vni": vni, "mtu": mtu, "hostPort": port,
            "devices": {"bridge": format!("br-pe-{vni}"), "vxlan": format!("vx.{vni}"), "accessPort": format!("pe-{vni}")},
        });
    }
}

/// A change that a user makes by hand.
fn damage() -> impl Strategy<Value = (usize, u8)> {
    (any::<usize>(), 0u8..6)
}

proptest! {
    #![proptest_config(worlds::laws(300))]

    #[test]
    fn every_plan_is_possible_and_a_second_one_is_empty(
        configs in prop::collection::vec(config(), 1..4),
        damages in prop::collection::vec(damage(), 0..4),
    ) {
        let mut now = host();
        for config in configs {
            let desired = desired_of(config);
            settle(&desired, &mut now);
            for (which, how) in &damages {
                spoil(&mut now, *which, *how);
            }
            settle(&desired, &mut now);
        }
        settle(&Desired::default(), &mut now);
        prop_assert_eq!(now.ours().count(), 0);
        prop_assert_eq!(now.links.len(), host().links.len());
    }

    #[test]
    fn an_apply_that_is_cut_short_is_finished_by_the_next(from in config(), to in config(), cut in any::<prop::sample::Index>()) {
        let mut now = host();
        settle(&desired_of(from), &mut now);
        let desired = desired_of(to);
        let first = plan(&desired, &now);
        for step in first.steps().take(cut.index(first.len() + 1)) {
            apply_to_model(&mut now, step).unwrap();
        }
        settle(&desired, &mut now);
    }

    #[test]
    fn removing_one_element_touches_only_its_objects(config in config(), which in any::<prop::sample::Index>()) {
        let keys: Vec<String> = config["layer2s"].as_object().unwrap().keys().cloned().collect();
        prop_assume!(!keys.is_empty());
        let key = &keys[which.index(keys.len())];
        let mut less = config.clone();
        less["layer2s"].as_object_mut().unwrap().remove(key);
        let mut now = host();
        settle(&desired_of(config.clone()), &mut now);
        let devices = config["layer2s"][key]["devices"].as_object().unwrap();
        let mut own: Vec<LinkId> = devices.values().map(|name| LinkId::router(name.as_str().unwrap())).collect();
        let segment = &config["layer2s"][key];
        let in_host = [&segment["hostInterface"]["name"], &segment["hostPort"]["device"], &segment["hostPort"]["master"]["name"]];
        own.extend(in_host.into_iter().filter_map(Value::as_str).map(LinkId::host));
        for step in settle(&desired_of(less), &mut now).steps() {
            match step {
                Step::DeleteLink { id } => prop_assert!(own.contains(id), "{step}"),
                Step::DeleteFilter { id, .. } => prop_assert!(own.contains(&id.link), "{step}"),
                Step::DeleteRoute { id, .. } => prop_assert_eq!(id.domain, Domain::Host),
                other => prop_assert!(false, "{}", other),
            }
        }
    }
}

fn spoil(now: &mut crate::Observed, which: usize, how: u8) {
    let ours: Vec<LinkId> = now.ours().map(|(id, _)| id.clone()).collect();
    let Some(id) = ours.get(which % ours.len().max(1)).cloned() else {
        return;
    };
    match how {
        0 => {
            let _refused = apply_to_model(now, &Step::DeleteLink { id });
        }
        1 => {
            let change = LinkChange::Mtu(1300);
            let _refused = apply_to_model(now, &Step::SetLink { id, change });
        }
        2 => {
            let change = LinkChange::Master(None);
            let _refused = apply_to_model(now, &Step::SetLink { id, change });
        }
        5 => {
            let gone = now
                .filters
                .keys()
                .nth(which % now.filters.len().max(1))
                .cloned();
            gone.map(|id| now.filters.remove(&id));
        }
        3 => {
            if let Some(link) = now.links.get_mut(&id) {
                link.addresses.clear();
                link.addresses.insert("10.9.9.9/24".parse().unwrap());
            }
        }
        _ => {
            if let Some(link) = now.links.get_mut(&id)
                && !matches!(link.kind, Kind::Veth { .. })
            {
                link.up = false;
                assert_eq!(link.owner, Owner::Ours);
            }
        }
    }
}
