//! Ring 2, laws of provenance on random worlds, and what is said of each kind of element.

mod kinds;
mod matter;
mod mutation;

use std::collections::BTreeMap;

use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

use self::matter::all_matter;
use super::*;
use crate::{
    compile,
    element::{Elements, elements},
    tests::{TCAAS, laws, object, snapshot, world},
};

fn of_node(compilation: &Compilation, node: &str) -> Elements {
    let config = compilation.nodes.get(node);
    config
        .map(|config| elements(&config.spec("")))
        .unwrap_or_default()
}

/// Objects that people write by hand, and settings that matter to nodes.
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
    }
    object(
        "selvedge.dev/v1alpha1",
        "Settings",
        json!({"name": "default"}),
        spec,
    )
}

/// Intents' fields that the worlds of other laws leave out.
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

/// A world of intents and of what people write by hand; the settings are named once.
pub(crate) fn worlds() -> impl Strategy<Value = Vec<Value>> {
    (world(), by_hand(), any::<u8>()).prop_map(|(world, by_hand, choices)| {
        let mut world = dressed(world, choices);
        world.retain(|document| document["kind"] != "Settings");
        world.extend(by_hand);
        world
    })
}

/// All elements of all nodes.
fn all(compilation: &Compilation) -> Vec<(String, Element, Value)> {
    let of = |node: &String| {
        let elements = of_node(compilation, node).into_iter();
        let node = node.clone();
        elements
            .map(move |(element, value)| (node.clone(), element, value))
            .collect::<Vec<_>>()
    };
    compilation.nodes.keys().flat_map(of).collect()
}

/// One element of a world, of a kind that is drawn first, so that rare kinds are not drowned by common ones.
fn drawn(
    compilation: &Compilation,
    kind: Index,
    element: Index,
) -> Option<(String, Element, Value)> {
    let mut kinds: BTreeMap<&'static str, Vec<(String, Element, Value)>> = BTreeMap::new();
    for one in all(compilation) {
        kinds.entry((&one.1).into()).or_default().push(one);
    }
    let kinds: Vec<Vec<_>> = kinds.into_values().collect();
    if kinds.is_empty() {
        return None;
    }
    let of_kind: &Vec<_> = kind.get(&kinds);
    Some(element.get(of_kind).clone())
}

/// A neighbor that allows an Inbound, and announces its network.
fn neighborhood() -> Vec<Value> {
    let fabric = "openpe.openperouter.github.io/v1alpha1";
    let named = |name: &str| json!({"name": name});
    let zone = json!({"matchLabels": {"zone": "dc"}});
    let settings =
        json!({"trunk": {"addresses": ["169.254.1.0/31"]}, "bgp": {"workloadAS": 65100}});
    let underlay = json!({
        "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    let inbound = json!({
        "networkRef": "lb", "count": 2, "destinations": zone,
        "disableLoadBalancer": true, "disableAggregation": true,
    });
    let neighbor = json!({
        "allowedInbounds": [{"name": "lb"}], "advertiseTransferNetwork": true,
        "holdTime": "90s", "keepaliveTime": "30s", "maximumPrefixes": 10,
    });
    let destination = json!({"name": "dc", "labels": {"zone": "dc"}});
    vec![
        json!({"apiVersion": "v1", "kind": "Node", "metadata": named("n0")}),
        object(
            "selvedge.dev/v1alpha1",
            "Settings",
            named("default"),
            settings,
        ),
        object(fabric, "Underlay", named("u"), underlay),
        object(
            TCAAS,
            "VRF",
            named("m2m"),
            json!({"vrf": "m2m", "vni": 10, "routeTarget": "1:10"}),
        ),
        object(
            TCAAS,
            "Destination",
            destination,
            json!({"vrfRef": "m2m", "prefixes": ["10.0.0.0/8"]}),
        ),
        object(
            TCAAS,
            "Network",
            named("lb"),
            json!({"ipv4": {"cidr": "198.51.100.0/28"}}),
        ),
        object(TCAAS, "Inbound", named("lb"), inbound),
        object(TCAAS, "BGPNeighbor", named("lb"), neighbor),
    ]
}

#[test]
fn a_neighbor_is_behind_its_sessions_and_its_network() {
    let world = snapshot(&neighborhood());
    let compilation = compile(&world);
    let trace = Trace::new(&world, &compilation);
    let by = ObjectRef::named(Kind::BgpNeighbor, "lb");
    let of_neighbor = |(node, element, _): &(String, Element, Value)| {
        trace
            .claims(node, element)
            .iter()
            .any(|claim| claim.by == by)
    };
    let kinds: BTreeSet<&'static str> = all(&compilation)
        .iter()
        .filter(|one| of_neighbor(one))
        .map(|(_, element, _)| element.into())
        .collect();
    for kind in [
        "loopback {name} on the host",
        "VRF {vrf} session with {peer}",
        "VRF {vrf} announces {prefix}",
    ] {
        assert!(kinds.contains(kind), "{kinds:?}");
    }
}

#[test]
fn what_a_neighbor_makes_changes_with_every_field_that_is_behind_it() -> Result<(), TestCaseError> {
    let world = neighborhood();
    for one in all(&compile(&snapshot(&world))) {
        all_matter(&world, &one)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(laws(192))]

    #[test]
    fn every_element_comes_from_fields_of_objects(world in worlds()) {
        let snapshot = snapshot(&world);
        let compilation = compile(&snapshot);
        let trace = Trace::new(&snapshot, &compilation);
        for (node, element, _) in all(&compilation) {
            let claims = trace.claims(&node, &element);
            prop_assert!(!claims.is_empty(), "nobody is behind {element} on {node}");
            for claim in claims {
                prop_assert!(!claim.fields().is_empty(), "{} says nothing for {element} on {node}", claim.by);
            }
        }
    }

    #[test]
    fn whoever_is_behind_an_element_would_do_alone(
        world in worlds(), kind in any::<Index>(), element in any::<Index>(), choose in any::<Index>()
    ) {
        let before = snapshot(&world);
        let compilation = compile(&before);
        let Some((node, element, _)) = drawn(&compilation, kind, element) else { return Ok(()) };
        let claims = Trace::new(&before, &compilation).claims(&node, &element);
        let claim = choose.get(&claims);
        let needed: BTreeSet<&ObjectRef> = claim.fields().into_iter().map(|field| &field.object).chain([&claim.by]).collect();
        let others: Vec<&ObjectRef> = claims.iter().map(|other| &other.by).filter(|by| !needed.contains(by)).collect();
        let mut alone = world;
        alone.retain(|document| !others.iter().any(|other| mutation::is(document, other)));
        let after = compile(&snapshot(&alone));
        prop_assert!(of_node(&after, &node).contains_key(&element), "{} alone does not make {element} on {node}", claim.by);
    }
}

proptest! {
    #![proptest_config(laws(24))]

    #[test]
    fn an_element_changes_with_every_field_that_is_behind_it(world in worlds(), kind in any::<Index>(), element in any::<Index>()) {
        if let Some(drawn) = drawn(&compile(&snapshot(&world)), kind, element) {
            all_matter(&world, &drawn)?;
        }
    }
}
