//! Mirrors: their VRFs, collectors, selectors and the addresses of their tunnels.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{TCAAS, object};

const POOL: &str = "mirror-source-ips";

fn pool() -> Value {
    json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": POOL})
}

fn loopbacks() -> Value {
    json!([{"name": "lo.mir", "poolRef": pool()}])
}

/// The mirror VRFs: one of a Collector, one written by hand. They are part of the revision.
pub fn mirror_vrfs() -> Vec<Value> {
    let numbers = |vrf: &str, number: u32| json!({"vrf": vrf, "vni": number, "routeTarget": format!("1:{number}")});
    let mut vrf = numbers("mirror", 900);
    vrf["loopbacks"] = loopbacks();
    let mut by_hand = numbers("tap", 901);
    by_hand["seq"] = json!(1);
    by_hand["loopbacks"] = json!([{"name": "lo.tap", "poolRef": pool()}]);
    by_hand["nodeSelector"] = json!({"matchLabels": {"group": "g0"}});
    vec![
        object(TCAAS, "VRF", json!({"name": "mirror"}), vrf),
        object(
            TCAAS,
            "VRFRouteConfiguration",
            json!({"name": "tap"}),
            by_hand,
        ),
        collector("192.0.2.9"),
    ]
}

/// A Collector at this address.
pub fn collector(address: &str) -> Value {
    let spec = json!({"address": address, "protocol": "l3gre", "mirrorVRF": {"name": "mirror"}});
    object(TCAAS, "Collector", json!({"name": "c"}), spec)
}

/// The address that IPAM gives a node for its tunnels in a mirror VRF.
pub fn address(node: usize, vrf: &str, last: u8) -> Value {
    let claim = format!(
        "{vrf}-lo.{}-n{node}",
        if vrf == "tap" { "tap" } else { "mir" }
    );
    let metadata = json!({"name": format!("given-{claim}"), "namespace": "selvedge-system"});
    let spec = json!({
        "claimRef": {"name": claim}, "poolRef": pool(), "prefix": 32,
        "address": format!("10.99.0.{last}"),
    });
    object("ipam.cluster.x-k8s.io/v1beta2", "IPAddress", metadata, spec)
}

/// Objects of mirrors, some of them with references to missing objects: sources, targets and addresses of nodes.
pub fn mirrors() -> impl Strategy<Value = Vec<Value>> {
    let kinds = ["Layer2Attachment", "Inbound", "Outbound"];
    let of_intents = (0..kinds.len(), 0_usize..6, any::<(bool, bool)>());
    let of_intents = prop::collection::vec(of_intents, 0..5);
    let by_hand = prop::collection::vec((0_usize..6, 1_u16..5, any::<(bool, bool)>()), 0..4);
    let targets = prop::collection::vec((any::<bool>(), 0_u32..3), 0..4);
    let addresses = prop::collection::btree_map((0_usize..5, any::<bool>()), 1_u8..8, 0..8);
    (of_intents, by_hand, targets, addresses).prop_map(move |(intents, by_hand, targets, addresses)| {
        let direction = |ingress| if ingress { "ingress" } else { "egress" };
        let mut all = Vec::new();
        for (number, (kind, tenant, (ingress, narrow))) in intents.into_iter().enumerate() {
            let mut spec = json!({
                "source": {"kind": kinds[kind], "name": format!("t{tenant}")},
                "collector": "c", "direction": direction(ingress),
            });
            if narrow {
                spec["trafficMatch"] = json!({"srcPrefix": "10.0.0.0/9", "protocol": "tcp"});
            }
            let name = json!({"name": format!("m{number}")});
            all.push(object(TCAAS, "TrafficMirror", name, spec));
        }
        for (number, (tenant, vlan, (ingress, segment))) in by_hand.into_iter().enumerate() {
            let (kind, scope) = if segment {
                ("Layer2NetworkConfiguration", vlan.to_string())
            } else {
                ("VRFRouteConfiguration", format!("v{vlan}"))
            };
            let spec = json!({
                "mirrorTarget": {"kind": "MirrorTarget", "name": format!("x{}", number % 3)},
                "mirrorSource": {"kind": kind, "name": format!("layer2attachment-t{tenant}-{scope}")},
                "direction": direction(ingress),
            });
            all.push(object(TCAAS, "MirrorSelector", json!({"name": format!("s{number}")}), spec));
        }
        for (number, (l2, key)) in targets.into_iter().enumerate() {
            let spec = json!({
                "type": if l2 { "l2gre" } else { "l3gre" }, "destinationIP": "192.0.2.8", "key": key,
                "destinationVrf": "tap", "sourceLoopback": "lo.tap",
            });
            all.push(object(TCAAS, "MirrorTarget", json!({"name": format!("x{number}")}), spec));
        }
        for ((node, by_hand), last) in addresses {
            all.push(address(node, if by_hand { "tap" } else { "mirror" }, last));
        }
        all
    })
}

/// A world with the mirror VRFs and these objects.
pub fn with(world: &[Value], more: &[Value]) -> Vec<Value> {
    [world, &mirror_vrfs(), more].concat()
}
