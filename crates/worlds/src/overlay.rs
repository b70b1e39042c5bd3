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

/// Names that a VRF, or an object that a VRF is named after, can have and that something else has already, or that look like it.
const ODD_NAMES: [&str; 16] = [
    "lo", "hbn", "cluster", "default", "s-a", "host-10", "br-pe-10", "eth1", "all", "none", "br",
    "a.b", "mgmt", "vx", "pe", "tenant-a",
];

/// A small cluster with objects of the fabric whose names and values are at the edge of what is accepted.
pub fn odd_overlays() -> impl Strategy<Value = Vec<Value>> {
    let segments = prop::collection::vec((0..ODD_NAMES.len(), 0_u8..5, any::<[bool; 2]>()), 0..4);
    let vrfs = prop::collection::vec((0..ODD_NAMES.len(), 0_u8..6, any::<[bool; 2]>()), 0..3);
    let passthroughs = prop::collection::vec((0_u8..6, any::<[bool; 2]>()), 0..2);
    let versions = prop::collection::vec(0..FRR_VERSIONS.len(), 2);
    let parts = (segments, vrfs, passthroughs, versions, any::<[bool; 7]>());
    parts.prop_map(|(segments, vrfs, passthroughs, versions, odd)| {
        let mut world = odd_cluster(&versions, odd);
        for (number, (name, gateway, [named, own])) in segments.into_iter().enumerate() {
            let mut segment = l2vni(number, (20, 1, gateway, [false, false, false, own]));
            segment["spec"]["vni"] = json!(20 + number);
            if named {
                segment["spec"]["vrf"] = json!(ODD_NAMES[name]);
            } else {
                segment["metadata"]["name"] = json!(ODD_NAMES[name]);
            }
            world.push(segment);
        }
        for (number, (name, choice, [leads, targets])) in vrfs.into_iter().enumerate() {
            let mut vrf = l3vni(number, (1, 1, choice, [false, leads, false, targets]));
            vrf["spec"]["vrf"] = json!(ODD_NAMES[name]);
            vrf["spec"]["vni"] = json!(40 + number);
            world.push(vrf);
        }
        let passthroughs = passthroughs.into_iter().enumerate();
        world.extend(passthroughs.map(|(number, one)| passthrough(number, one)));
        world
    })
}

const FRR_VERSIONS: [Option<&str>; 4] = [None, Some("8.4.4"), Some("10.3"), Some("10.7.1")];

fn odd_cluster(
    versions: &[usize],
    [ipv6, dual, device, hops, twice, managed, exports]: [bool; 7],
) -> Vec<Value> {
    let pools = match (ipv6, dual) {
        (_, true) => json!(["100.65.0.0/24", "fd00:65::/64"]),
        (true, false) => json!(["fd00:65::/64"]),
        (false, false) => json!(["100.65.0.0/24"]),
    };
    let mut neighbor = json!({"asn": 64512, "ebgpMultiHop": hops});
    if device {
        neighbor["interface"] = json!("eth1");
    } else {
        neighbor["address"] = json!("192.0.2.1");
    }
    let underlay = json!({
        "asn": 64514, "nics": ["eth1"], "tunnelEndpoint": {"cidrs": pools}, "neighbors": [neighbor],
    });
    let metadata = json!({"name": "fabric", "namespace": "default"});
    let mut world = vec![object(GROUP, "Underlay", metadata, underlay)];
    let speaker = json!({"address": "169.254.100.100", "remoteASN": 64700, "ipv4": true});
    let mut settings = json!({"clusterNeighbors": if twice { json!([speaker, speaker]) } else { json!([speaker]) }});
    if managed {
        settings["managementVRF"] = json!({"name": "mgmt", "vni": 900, "routeTarget": "64512:900"});
    }
    if exports {
        settings["clusterVRF"] = json!({"vni": 901, "routeTarget": "64512:901"});
        settings["exportCIDRs"] = json!(["127.0.0.0/8", "10.200.0.0/16"]);
    }
    world.push(object(
        "selvedge.dev/v1alpha1",
        "Settings",
        json!({"name": "default"}),
        settings,
    ));
    for (number, version) in versions.iter().enumerate() {
        let metadata =
            json!({"name": format!("n{number}"), "labels": {"group": format!("g{number}")}});
        world.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
        if let Some(version) = FRR_VERSIONS[*version] {
            let mut config = object(
                crate::TCAAS,
                "NodeNetworkConfig",
                json!({"name": format!("n{number}")}),
                json!({"revision": ""}),
            );
            config["status"] = json!({"frrVersion": version});
            world.push(config);
        }
    }
    world
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
