//! The clusters that are measured: groups of nodes, each with VRFs and segments of its own.

pub mod overlay;

use serde_json::{Value, json};

pub use crate::TCAAS;

/// Groups of nodes at full size: 10,000 nodes, 1,000 VRFs, 5,000 attachments.
pub const FULL_SIZE: u32 = 200;
/// Nodes of a group.
pub const NODES_PER_GROUP: u32 = 50;
/// VRFs that the nodes of a group have.
pub const VRFS_PER_GROUP: u32 = 5;
/// Segments of each VRF.
pub const SEGMENTS_PER_VRF: u32 = 5;

/// An intent that carries its name as a label.
#[expect(
    clippy::needless_pass_by_value,
    reason = "values are made for the call"
)]
pub fn object(kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name, "labels": {"zone": name}});
    json!({"apiVersion": TCAAS, "kind": kind, "metadata": metadata, "spec": spec})
}

/// Nodes and their Underlay.
pub fn nodes(groups: u32) -> Vec<Value> {
    let mut world = vec![json!({
        "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay",
        "metadata": {"name": "fabric", "namespace": "default"},
        "spec": {"asn": 64514, "routeridcidr": "10.0.0.0/12", "nics": ["eth1"], "evpn": {"vtepcidr": "100.64.0.0/12"},
                 "neighbors": [{"asn": 64512, "address": "192.0.2.1"}]},
    })];
    for group in 0..groups {
        for node in 0..NODES_PER_GROUP {
            let name = format!("node-{group}-{node}");
            let labels = json!({"group": group.to_string(), "kubernetes.io/hostname": name});
            world.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}));
        }
    }
    world
}

/// Selects the nodes of a group.
pub fn selector(group: u32) -> Value {
    json!({"matchLabels": {"group": group.to_string()}})
}

/// A subnet for each number.
pub fn subnet(number: u32) -> String {
    format!("10.{}.{}.0/24", number / 256, number % 256)
}

/// What tenants declare: VRFs and destinations, networks and attachments.
pub fn intents(groups: u32) -> Vec<Value> {
    let mut world = nodes(groups);
    for group in 0..groups {
        for vrf in 0..VRFS_PER_GROUP {
            let number = group * VRFS_PER_GROUP + vrf;
            let name = format!("v{number}");
            let spec = json!({"vrf": name, "vni": 1_000_000 + number, "routeTarget": format!("64500:{number}")});
            world.push(object("VRF", &name, spec));
            let destination = object(
                "Destination",
                &name,
                json!({"vrfRef": name, "prefixes": [format!("172.{}.{}.0/24", number / 256, number % 256)]}),
            );
            world.push(destination);
            for segment in 0..SEGMENTS_PER_VRF {
                let number = number * SEGMENTS_PER_VRF + segment;
                let vlan = 1 + vrf * SEGMENTS_PER_VRF + segment;
                let network = format!("n{number}");
                world.push(object(
                    "Network",
                    &network,
                    json!({"ipv4": {"cidr": subnet(number)}, "vlan": vlan, "vni": 10_000 + number}),
                ));
                world.push(object("Layer2Attachment", &network, json!({
                    "networkRef": network, "interfaceName": format!("n{vlan}"), "nodeSelector": selector(group),
                    "destinations": {"matchLabels": {"zone": name}},
                })));
            }
        }
    }
    world
}

/// The same with services, and with more destinations: at full size 2,000 Inbounds, 1,000 Outbounds, 2,000 Destinations more.
pub fn services(groups: u32) -> Vec<Value> {
    let mut world = intents(groups);
    for group in 0..groups {
        for vrf in 0..VRFS_PER_GROUP {
            let number = group * VRFS_PER_GROUP + vrf;
            let name = format!("v{number}");
            for more in 0..2_u32 {
                let third = 100 + more;
                let prefix = format!("{third}.{}.{}.0/24", number / 256, number % 256);
                let spec = json!({"vrfRef": name, "prefixes": [prefix]});
                let metadata = json!({"name": format!("{name}-{more}"), "labels": {"zone": name}});
                world.push(json!({"apiVersion": TCAAS, "kind": "Destination", "metadata": metadata, "spec": spec}));
            }
            for service in 0..3_u32 {
                let network = format!("n{}", number * SEGMENTS_PER_VRF + service);
                let kind = if service < 2 { "Inbound" } else { "Outbound" };
                world.push(object(
                    kind,
                    &network,
                    json!({
                        "networkRef": network, "count": 4, "nodeSelector": selector(group),
                        "destinations": {"matchLabels": {"zone": name}},
                    }),
                ));
            }
        }
    }
    world
}
