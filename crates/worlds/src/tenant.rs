//! Tenants with their intents, on a few nodes.

use proptest::{prelude::*, sample::subsequence};
use serde_json::{Value, json};

use crate::{TCAAS, object};

/// A tenant's numbers. Their ranges are small, so that tenants conflict with each other.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Number of its VRF, which gives the VRF's name, VNI and route target.
    pub vrf: u32,
    /// VLAN of its Network.
    pub vlan: u16,
    /// VNI of its Network, counted from 100; absent: from the range of the settings.
    pub vni: Option<u32>,
    /// Second octet of its Network's prefix.
    pub subnet: u8,
    /// Group of nodes that its attachment selects; absent: all.
    pub group: Option<u8>,
    /// How many addresses its Inbound and its Outbound want, and whether it has a PodNetwork.
    pub services: (u32, u32, bool),
    /// Whether its nodes get addresses, it is on a device of the node, and workloads run BGP.
    pub ways: (bool, bool, bool),
    /// Which of its objects are missing, by their order in [`objects`].
    pub missing: Vec<usize>,
}

/// A random tenant.
pub fn tenant() -> impl Strategy<Value = Tenant> {
    (
        1_u32..5,
        1_u16..5,
        prop::option::weighted(0.8, 1_u32..6),
        0_u8..6,
        prop::option::of(0_u8..3),
        (0_u32..6, 0_u32..6, prop::bool::weighted(0.2)),
        any::<(bool, bool, bool)>(),
        subsequence((0..4).collect::<Vec<usize>>(), 0..2),
    )
        .prop_map(
            |(vrf, vlan, vni, subnet, group, services, ways, missing)| Tenant {
                vrf,
                vlan,
                vni,
                subnet,
                group,
                services,
                ways,
                missing,
            },
        )
}

/// The objects of a tenant, which are named after its number: VRF, Destination, Network, Layer2Attachment, then its services.
pub fn objects(number: usize, tenant: &Tenant) -> Vec<Value> {
    let name = format!("t{number}");
    let vrf = tenant.vrf;
    let mut network = json!({
        "ipv4": {"cidr": format!("10.{}.0.0/28", tenant.subnet)},
        "vlan": tenant.vlan,
    });
    if let Some(vni) = tenant.vni {
        network["vni"] = json!(100 + vni);
    }
    let mut attachment = json!({
        "networkRef": name,
        "interfaceName": name,
        "destinations": {"matchLabels": {"zone": format!("z{vrf}")}},
    });
    let (addresses, on_device, has_bgp) = tenant.ways;
    if addresses {
        attachment["nodeIPs"] = json!({"enabled": true});
    }
    if has_bgp {
        attachment["bgp"] = json!({"enabled": true, "workloadAS": "65100"});
    }
    if on_device && tenant.vni.is_none() {
        attachment["interfaceRef"] = json!("bond0");
        attachment["destinations"] = json!(null);
    }
    if let Some(group) = tenant.group {
        attachment["nodeSelector"] = json!({"matchLabels": {"group": format!("g{group}")}});
    }
    let objects = [
        object(
            TCAAS,
            "VRF",
            json!({"name": name}),
            json!({"vrf": format!("v{vrf}"), "vni": vrf, "routeTarget": format!("1:{vrf}")}),
        ),
        object(
            TCAAS,
            "Destination",
            json!({"name": name, "labels": {"zone": format!("z{vrf}")}}),
            json!({"vrfRef": name, "prefixes": [format!("192.0.{}.0/24", tenant.subnet)]}),
        ),
        object(TCAAS, "Network", json!({"name": name}), network),
        object(TCAAS, "Layer2Attachment", json!({"name": name}), attachment),
    ];
    let present = objects
        .into_iter()
        .enumerate()
        .filter(|(place, _)| !tenant.missing.contains(place));
    let mut objects: Vec<Value> = present.map(|(_, object)| object).collect();
    objects.extend(services(number, tenant));
    objects
}

/// Services of a tenant. Inbounds of two tenants use one Network, which has few addresses.
fn services(number: usize, tenant: &Tenant) -> Vec<Value> {
    let (inbound, outbound, pods) = tenant.services;
    let name = format!("t{number}");
    let destinations = json!({"matchLabels": {"zone": format!("z{}", tenant.vrf)}});
    let service = |kind: &str, network: usize, count: Option<u32>| {
        let mut spec = json!({"networkRef": format!("t{network}"), "destinations": destinations});
        if let Some(count) = count {
            spec["count"] = json!(count);
        }
        object(TCAAS, kind, json!({"name": name}), spec)
    };
    let mut services = Vec::new();
    if inbound > 0 {
        let mut announced = service("Inbound", number / 2, Some(inbound));
        if tenant.ways.2 {
            announced["spec"]["disableLoadBalancer"] = json!(true);
            let spec = json!({"allowedInbounds": [{"name": name}], "workloadAS": "65100"});
            services.push(object(TCAAS, "BGPNeighbor", json!({"name": name}), spec));
        }
        services.push(announced);
    }
    if outbound > 0 {
        services.push(service("Outbound", number, Some(outbound)));
    }
    if pods {
        services.push(service("PodNetwork", number, None));
    }
    services
}

/// A world of a few nodes, underlays and tenants, some of which lack objects.
pub fn world() -> impl Strategy<Value = Vec<Value>> {
    let nodes = prop::collection::vec(0_u8..3, 0..5);
    let underlays = prop::collection::vec(prop::option::of(0_u8..3), 0..3);
    let tenants = prop::collection::vec(tenant(), 0..6);
    (nodes, underlays, tenants, any::<bool>()).prop_map(|(nodes, underlays, tenants, range)| {
        let mut world = Vec::new();
        for (number, group) in nodes.into_iter().enumerate() {
            let labels = json!({"group": format!("g{group}"), "host": number.to_string()});
            let metadata = json!({"name": format!("n{number}"), "labels": labels});
            world.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
        }
        for (number, group) in underlays.into_iter().enumerate() {
            let mut spec = json!({
                "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/29"},
                "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
            });
            if let Some(group) = group {
                spec["nodeSelector"] = json!({"matchLabels": {"group": format!("g{group}")}});
            }
            let metadata = json!({"name": format!("u{number}"), "namespace": "default"});
            world.push(object(
                "openpe.openperouter.github.io/v1alpha1",
                "Underlay",
                metadata,
                spec,
            ));
        }
        if range {
            let trunk = json!({"addresses": ["169.254.1.1/31"]});
            let spec = json!({"l2VniRange": {"first": 103, "last": 106}, "trunk": trunk});
            world.push(object(
                "selvedge.dev/v1alpha1",
                "Settings",
                json!({"name": "default"}),
                spec,
            ));
        }
        for (number, tenant) in tenants.iter().enumerate() {
            world.extend(objects(number, tenant));
        }
        world
    })
}
