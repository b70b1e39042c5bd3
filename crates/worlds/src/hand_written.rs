//! Low-level objects and settings that users write by hand, beside intents.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{TCAAS, object, world};

/// Hand-written low-level objects, and settings that nodes depend on.
fn by_hand() -> impl Strategy<Value = Vec<Value>> {
    let routing = (1_u32..5, 0_u8..6, 0_u8..6, any::<[bool; 4]>());
    let routing = prop::collection::vec(routing, 0..3);
    let segments = prop::collection::vec((1_u16..5, 1_u32..5, any::<[bool; 4]>()), 0..2);
    let sessions = prop::collection::vec((any::<bool>(), 0_u8..2), 0..2);
    (routing, segments, sessions, any::<[bool; 4]>()).prop_map(
        |(routing, segments, sessions, settings)| {
            let mut documents: Vec<Value> = Vec::new();
            for (number, routing) in routing.into_iter().enumerate() {
                documents.push(written_routing(number, routing));
            }
            for (number, segment) in segments.into_iter().enumerate() {
                documents.push(written_segment(number, segment));
            }
            for (number, (on_vlan, peer)) in sessions.into_iter().enumerate() {
                let mut spec = json!({
                    "remoteASN": 65100, "enableBFD": true,
                    "import": [{"cidr": "10.9.0.0/24", "action": "permit"}],
                });
                if on_vlan {
                    spec["peeringVlan"] = json!({"name": format!("segment{peer}")});
                } else {
                    spec["loopbackPeer"] = json!({"ips": [format!("10.99.0.{peer}")]});
                }
                let metadata = json!({"name": format!("session{number}")});
                documents.push(object(TCAAS, "BGPPeering", metadata, spec));
            }
            documents.push(written_settings(settings));
            documents
        },
    )
}

fn written_routing(
    number: usize,
    (vrf, import, export, [numbers, aggregate, steers, tags]): (u32, u8, u8, [bool; 4]),
) -> Value {
    let mut spec = json!({
        "vrf": format!("v{vrf}"), "seq": number + 1,
        "import": [{"cidr": format!("192.0.{import}.0/24"), "action": "permit"}],
        "export": [{"cidr": format!("10.{export}.0.0/28"), "action": "permit", "le": 32}],
    });
    if numbers {
        spec["vni"] = json!(vrf);
        spec["routeTarget"] = json!(format!("1:{vrf}"));
    }
    if aggregate {
        spec["aggregate"] = json!([format!("10.{export}.0.0/28")]);
    }
    if steers {
        spec["sbrPrefixes"] = json!([format!("10.8.{export}.0/24")]);
    }
    if tags {
        spec["communities"] = json!(["64500:1"]);
        spec["nodeSelector"] = json!({"matchLabels": {"group": "g1"}});
    }
    let metadata = json!({"name": format!("routing{number}")});
    object(TCAAS, "VRFRouteConfiguration", metadata, spec)
}

fn written_segment(
    number: usize,
    (vlan, vrf, [device, addresses, quiet, named]): (u16, u32, [bool; 4]),
) -> Value {
    let mut spec = json!({"id": 100 + vlan, "mtu": 1500});
    if device {
        spec["interfaceRef"] = json!("bond0");
        spec["nodeIPs"] = json!({"enabled": true, "networks": ["10.20.0.0/24"]});
        spec["staticRoutes"] = json!([{"prefix": "10.30.0.0/16", "nextHop": "10.20.0.1"}]);
    } else {
        spec["vni"] = json!(700 + u32::from(vlan));
        spec["vrf"] = json!(format!("v{vrf}"));
        spec["anycastGateways"] = json!(["10.21.0.1/24"]);
        spec["neighSuppression"] = json!(quiet);
        spec["nodeIPs"] = json!({"enabled": addresses});
    }
    if named {
        spec["interfaceName"] = json!(format!("seg{number}"));
    }
    let metadata = json!({"name": format!("segment{number}")});
    object(TCAAS, "Layer2NetworkConfiguration", metadata, spec)
}

fn written_settings([range, trunk, cluster, mac]: [bool; 4]) -> Value {
    let mut spec = json!({"vrfs": {"v1": {"vni": 1, "routeTarget": "1:1"}}});
    if range {
        spec["l2VniRange"] = json!({"first": 103, "last": 106});
        spec["routeTables"] = json!({"first": 5000, "last": 5999});
    }
    if trunk {
        spec["trunk"] = json!({"name": "trunk", "addresses": ["169.254.1.0/31"]});
    }
    if cluster {
        spec["clusterVRF"] = json!({"name": "base", "vni": 99, "routeTarget": "1:99"});
        spec["exportCIDRs"] = json!(["10.244.0.0/16"]);
    }
    if mac {
        spec["anycastMAC"] = json!("02:11:22:33:44:55");
        spec["importMatch"] = json!("OrLonger");
    }
    object(
        "selvedge.dev/v1alpha1",
        "Settings",
        json!({"name": "default"}),
        spec,
    )
}

/// The world with fields of intents set that [`world`] leaves out.
fn dressed(mut world: Vec<Value>, choices: u8) -> Vec<Value> {
    for document in &mut world {
        let kind = document["kind"].as_str().map(str::to_owned);
        let spec = &mut document["spec"];
        match kind.as_deref() {
            Some("Layer2Attachment") if choices & 16 != 0 => {
                spec["bgp"] = json!({"enabled": true, "workloadAS": "65101", "holdTime": "90s", "maximumPrefixes": 9});
            }
            Some("Layer2Attachment") if choices & 1 != 0 => {
                spec["mtu"] = json!(9000);
                spec["disableNeighborSuppression"] = json!(true);
                spec["communities"] = json!(["64500:7"]);
                spec["routes"] = json!([{"prefixes": ["10.77.0.0/24"]}]);
            }
            Some("Destination") if choices & 2 != 0 => {
                spec["prefixes"] = json!([spec["prefixes"][0], "198.18.0.0/15"]);
            }
            Some("VRF") if choices & 4 != 0 && spec["vrf"] == "v1" => {
                spec["vni"].take();
            }
            Some("Inbound") if choices & 8 != 0 => {
                spec["count"].take();
                spec["addresses"] = json!({"ipv4": ["10.0.0.9", "10.1.0.9"]});
            }
            _ => {}
        }
    }
    world.iter_mut().for_each(without_nulls);
    world
}

fn without_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(without_nulls);
    }
}

/// A world of intents and hand-written objects, with one Settings object.
pub fn with_hand_written() -> impl Strategy<Value = Vec<Value>> {
    (world(), by_hand(), any::<u8>()).prop_map(|(world, by_hand, choices)| {
        let mut world = dressed(world, choices);
        world.retain(|document| document["kind"] != "Settings");
        world.extend(by_hand);
        world
    })
}
