//! Worlds with intents, hand-written objects, objects of the fabric, mirrors and both address families.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{mirrors, overlays, with_hand_written};

/// A world with intents, hand-written objects, objects of the fabric, mirrors and both address families.
pub fn everything() -> impl Strategy<Value = Vec<Value>> {
    let families = prop::collection::vec(0_u8..3, 6);
    let mirrors = prop::option::of(mirrors::mirrors());
    let overlays = prop::option::of(overlays());
    let parts = (
        with_hand_written(),
        mirrors,
        families,
        overlays,
        any::<bool>(),
    );
    parts.prop_map(|(mut world, mirrors, families, overlays, apart)| {
        world.extend(overlays.unwrap_or_default());
        let networks = world.iter_mut().filter(|one| one["kind"] == "Network");
        for (network, family) in networks.zip(families) {
            let cidr = network["spec"]["ipv4"]["cidr"].as_str().unwrap_or_default();
            let subnet = cidr.split('.').nth(1).unwrap_or_default().to_owned();
            if family > 0 {
                network["spec"]["ipv6"] = json!({"cidr": format!("fd00:{subnet}::/124")});
            }
            if family > 1 {
                network["spec"]
                    .as_object_mut()
                    .expect("a spec")
                    .remove("ipv4");
            }
        }
        let mut underlays = world.iter_mut().filter(|one| one["kind"] == "Underlay");
        if let Some(underlay) = underlays.next().filter(|_| apart) {
            underlay["spec"]["evpn"]["vtepcidr"] = json!("100.66.0.0/30");
            underlay["spec"]["nics"] = json!(["eth1", "eth2"]);
        }
        match mirrors {
            Some(mirrors) => mirrors::with(&world, &mirrors),
            None => world,
        }
    })
}

/// A world whose networks overlap in more ways, whose objects are of different age, and some of whose destinations are next hops, which
/// attachments on devices of the nodes use.
pub fn varied() -> impl Strategy<Value = Vec<Value>> {
    (everything(), prop::collection::vec(any::<u8>(), 64)).prop_map(|(mut world, choices)| {
        for (document, choice) in world.iter_mut().zip(choices.into_iter().cycle()) {
            if choice % 4 > 0 {
                let created = format!("2026-01-0{}T00:00:00Z", choice % 4);
                document["metadata"]["creationTimestamp"] = json!(created);
            }
            if let Some(cidr) = document["spec"]["ipv4"]["cidr"].as_str() {
                let net = cidr.trim_end_matches("/28");
                let length = [28, 28, 29, 30, 14][usize::from(choice / 4) % 5];
                let first = if length == 14 { "10.0.0.0" } else { net };
                document["spec"]["ipv4"]["cidr"] = json!(format!("{first}/{length}"));
            }
            if document["kind"] == "Destination" && choice > 200 {
                let prefixes = document["spec"]["prefixes"].clone();
                let next_hop = json!({"ipv4": format!("10.{}.0.{}", choice % 6, 1 + choice % 5)});
                document["spec"] = json!({"nextHop": next_hop, "prefixes": prefixes});
                document["metadata"]["labels"] = json!({"zone": format!("z{}", choice % 2)});
            }
            if document["spec"].get("interfaceRef").is_some() && choice % 8 > 0 {
                let zone = format!("z{}", choice % 2);
                document["spec"]["destinations"] = json!({"matchLabels": {"zone": zone}});
                document["spec"]["nodeIPs"] = json!({"enabled": choice % 16 > 0});
            }
        }
        world
    })
}
