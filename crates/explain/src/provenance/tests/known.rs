//! Worlds on which laws have failed.

use super::*;

const SETTINGS: &str = "selvedge.dev/v1alpha1";

fn named(kind: &str, name: &str, spec: Value) -> Value {
    object(TCAAS, kind, json!({"name": name}), spec)
}

/// A node in the fabric.
fn node() -> Vec<Value> {
    let underlay = json!({
        "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/29"},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    let fabric = "openpe.openperouter.github.io/v1alpha1";
    vec![
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0"}}),
        object(fabric, "Underlay", json!({"name": "u"}), underlay),
    ]
}

/// A hand-written object of VRF v1 that imports a prefix, with or without the numbers of the VRF.
fn routing(name: &str, import: &str, numbers: bool) -> Value {
    let import = json!([{"cidr": import, "action": "permit"}]);
    let mut spec = json!({"vrf": "v1", "seq": 1, "import": import});
    if numbers {
        spec["vni"] = json!(1);
        spec["routeTarget"] = json!("1:1");
    }
    named("VRFRouteConfiguration", name, spec)
}

/// Every field behind every element matters, and each claim is enough without the others.
fn holds(world: &[Value]) -> Result<(), TestCaseError> {
    let before = snapshot(world);
    let compilation = compile(&before);
    let trace = Trace::new(&before, &compilation);
    for one in all(&compilation) {
        all_matter(world, &one)?;
        let (node, element, _) = one;
        let claims = trace.claims(&node, &element);
        for claim in &claims {
            let after = alone(world.to_vec(), &compilation, &claims, claim);
            let is_made = of_node(&after, &node).contains_key(&element);
            prop_assert!(is_made, "{} alone does not make {element}", claim.by);
        }
    }
    Ok(())
}

#[test]
fn numbers_of_a_vrf_that_an_object_and_the_settings_give_are_two_ways() -> Result<(), TestCaseError>
{
    let settings = json!({"vrfs": {"v1": {"vni": 1, "routeTarget": "1:1"}}});
    let mut world = node();
    world.push(object(
        SETTINGS,
        "Settings",
        json!({"name": "default"}),
        settings,
    ));
    world.push(routing("routing0", "192.0.0.0/24", true));
    world.push(routing("routing1", "192.0.1.0/24", false));
    holds(&world)
}

#[test]
fn numbers_of_a_vrf_that_two_objects_give_are_two_ways() -> Result<(), TestCaseError> {
    let mut world = node();
    world.push(routing("routing0", "192.0.0.0/24", true));
    world.push(routing("routing1", "192.0.1.0/24", false));
    world.push(routing("routing2", "192.0.2.0/24", true));
    holds(&world)?;
    let snapshot = snapshot(&world);
    let compilation = compile(&snapshot);
    let element = Element::Import {
        vrf: "cluster".to_owned(),
        from: "v1".to_owned(),
        prefix: "192.0.1.0/24".to_owned(),
    };
    let claims = Trace::new(&snapshot, &compilation).claims("n0", &element);
    let providers: Vec<Vec<&str>> = claims
        .iter()
        .map(|claim| {
            let fields = claim.fields().into_iter();
            let numbers = fields.filter(|field| field.path == "spec.vni");
            numbers.map(|field| &*field.object.key.name).collect()
        })
        .collect();
    assert_eq!(providers, [["routing0"], ["routing2"]]);
    Ok(())
}

#[test]
fn the_oldest_object_decides_a_number_also_where_it_is_on_no_node() -> Result<(), TestCaseError> {
    let mut world = node();
    let mut elsewhere = routing("routing0", "192.0.0.0/24", true);
    elsewhere["spec"]["nodeSelector"] = json!({"matchLabels": {"group": "other"}});
    world.push(elsewhere);
    world.push(routing("routing1", "192.0.1.0/24", true));
    holds(&world)?;
    world.push(routing("routing2", "192.0.2.0/24", false));
    holds(&world)
}

/// Without the Outbound, the PodNetwork would get the Network as a whole, and the Inbound would be rejected.
#[test]
fn an_intent_that_waits_for_the_network_does_not_disprove_a_claim() -> Result<(), TestCaseError> {
    let service = |kind: &str, name: &str, count: Option<u32>| {
        let zone = json!({"matchLabels": {"zone": "dc"}});
        let mut spec = json!({"networkRef": "net", "destinations": zone});
        if let Some(count) = count {
            spec["count"] = json!(count);
        }
        named(kind, name, spec)
    };
    let mut world = node();
    world.extend([
        named(
            "VRF",
            "v1",
            json!({"vrf": "v1", "vni": 1, "routeTarget": "1:1"}),
        ),
        object(
            TCAAS,
            "Destination",
            json!({"name": "dc", "labels": {"zone": "dc"}}),
            json!({"vrfRef": "v1", "prefixes": ["192.0.2.0/24"]}),
        ),
        named("Network", "net", json!({"ipv4": {"cidr": "10.2.0.0/28"}})),
        service("Inbound", "c", Some(2)),
        service("Outbound", "a", Some(2)),
        service("PodNetwork", "b", None),
    ]);
    let element = Element::Import {
        vrf: "v1".to_owned(),
        from: "cluster".to_owned(),
        prefix: "10.2.0.0/28".to_owned(),
    };
    let snapshot = snapshot(&world);
    let compilation = compile(&snapshot);
    let claims = Trace::new(&snapshot, &compilation).claims("n0", &element);
    let by: Vec<Kind> = claims.iter().map(|claim| claim.by.kind).collect();
    assert_eq!(by, [Kind::Inbound, Kind::Outbound]);
    holds(&world)
}

#[test]
fn networks_of_workloads_come_from_the_settings() -> Result<(), TestCaseError> {
    let settings = json!({"bgp": {"workloadCIDRs": ["169.254.200.0/24"]}});
    let mut world = node();
    world.push(object(
        SETTINGS,
        "Settings",
        json!({"name": "default"}),
        settings,
    ));
    let snapshot = snapshot(&world);
    let compilation = compile(&snapshot);
    let claims = Trace::new(&snapshot, &compilation).claims("n0", &Element::Underlay);
    let fields = format!("{claims:?}");
    prop_assert!(fields.contains("spec.bgp.workloadCIDRs"), "{}", fields);
    holds(&world)
}
