//! `L3VNI`s, `L2VNI`s and `L3Passthrough`s that contend for VRFs, VNIs and networks, with each other and with other objects.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::object;

const GROUP: &str = "openpe.openperouter.github.io/v1alpha1";

/// Some objects of these kinds.
pub fn overlays() -> impl Strategy<Value = Vec<Value>> {
    let vrfs = (1_u32..6, 1_u32..6, 0_u8..6, any::<[bool; 4]>());
    let vrfs = prop::collection::vec(vrfs, 0..3);
    let segments = (1_u32..6, 1_u32..6, 0_u8..4, any::<[bool; 4]>());
    let segments = prop::collection::vec(segments, 0..3);
    let passthroughs = prop::collection::vec((0_u8..6, any::<[bool; 2]>()), 0..2);
    (vrfs, segments, passthroughs).prop_map(|(vrfs, segments, passthroughs)| {
        let vrfs = vrfs.into_iter().enumerate();
        let vrfs = vrfs.map(|(number, vrf)| l3vni(number, vrf));
        let segments = segments.into_iter().enumerate();
        let segments = segments.map(|(number, segment)| l2vni(number, segment));
        let passthroughs = passthroughs.into_iter().enumerate();
        let passthroughs = passthroughs.map(|(number, one)| passthrough(number, one));
        vrfs.chain(segments).chain(passthroughs).collect()
    })
}

/// Networks of a session: those of the pool, one that overlaps others, or one with addresses for a single node.
fn session(choice: u8, hostasn: u32) -> Value {
    let mut session = json!({"asn": 64514, "hostasn": hostasn});
    match choice {
        0 | 1 => {}
        2 => session["localcidr"] = json!({"ipv4": "192.168.40.0/31"}),
        3 => session["localcidr"] = json!({"ipv4": "192.168.40.0/24", "ipv6": "fd00:40::/64"}),
        other => {
            session["localcidr"] = json!({"ipv4": format!("192.168.{other}.0/24")});
        }
    }
    session
}

fn l3vni(
    number: usize,
    (vrf, vni, choice, [shared, leads, selects, targets]): (u32, u32, u8, [bool; 4]),
) -> Value {
    // Some are VRFs of other objects, some of these kinds alone.
    let letter = if shared { "v" } else { "w" };
    let mut spec = json!({"vrf": format!("{letter}{vrf}"), "vni": vni});
    if leads {
        spec["hostsession"] = session(choice, 64600);
    }
    if selects {
        spec["nodeSelector"] = json!({"matchLabels": {"group": "g1"}});
    }
    if targets {
        spec["importRTs"] = json!(["1:7"]);
        spec["exportRTs"] = json!(["1:8"]);
    }
    let metadata = json!({"name": format!("l3-{number}"), "namespace": "default"});
    object(GROUP, "L3VNI", metadata, spec)
}

fn l2vni(
    number: usize,
    (vni, vrf, gateway, [shared, named, selects, own]): (u32, u32, u8, [bool; 4]),
) -> Value {
    let mut spec = json!({"vni": vni});
    if gateway > 0 {
        spec["l2gatewayip"] = json!(format!("10.{}.0.1/16", 60 + gateway));
    }
    if named {
        let letter = if shared { "v" } else { "w" };
        spec["vrf"] = json!(format!("{letter}{vrf}"));
    }
    if selects {
        spec["nodeSelector"] = json!({"matchLabels": {"group": "g0"}});
    }
    spec["hostmaster"] = if own {
        json!({"autocreate": true})
    } else {
        json!({"name": "br0"})
    };
    let metadata = json!({"name": format!("l2-{number}"), "namespace": "default"});
    object(GROUP, "L2VNI", metadata, spec)
}

fn passthrough(number: usize, (choice, [selects, other]): (u8, [bool; 2])) -> Value {
    let mut spec = json!({"hostsession": session(choice, 64700)});
    if selects {
        spec["nodeSelector"] = json!({"matchLabels": {"group": "g1"}});
    }
    if other {
        spec["hostsession"]["asn"] = json!(64999);
    }
    let metadata = json!({"name": format!("pass-{number}"), "namespace": "default"});
    object(GROUP, "L3Passthrough", metadata, spec)
}
