//! Worlds with intents, hand-written objects, mirrors and both address families.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{mirrors, with_hand_written};

/// A world with intents, hand-written objects, mirrors and both address families.
pub fn everything() -> impl Strategy<Value = Vec<Value>> {
    let families = prop::collection::vec(0_u8..3, 6);
    let mirrors = prop::option::of(mirrors::mirrors());
    (with_hand_written(), mirrors, families, any::<bool>()).prop_map(
        |(mut world, mirrors, families, apart)| {
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
        },
    )
}
