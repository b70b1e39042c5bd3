//! Allocations that are not stored yet, and what must not use them before they are.
//!
//! An operator that starts anew knows addresses from statuses. One that reached a node, or another program, and is in no status would be
//! withheld from its owner, which would get another.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use compiler::{Compilation, ObjectRef, Snapshot, lower::LowLevelObject, status::Status};
use serde_json::Value;

/// The fields of statuses that hold addresses.
const ADDRESSES: [&str; 2] = ["addresses", "nodeAddresses"];

/// Whether a status holds other addresses than the one that is stored.
pub(super) fn differ(status: &Value, stored: &Value) -> bool {
    ADDRESSES
        .iter()
        .any(|field| status.get(field) != stored.get(field))
}

/// The objects whose addresses are not stored, of those whose status is to be written.
pub(crate) fn unstored(
    snapshot: &Snapshot,
    statuses: &BTreeMap<ObjectRef, Arc<Status>>,
) -> BTreeSet<ObjectRef> {
    let is_unstored = |(subject, status): &(&ObjectRef, &Arc<Status>)| {
        let stored = snapshot.stored_status(subject);
        let stored = stored.map(|(_, status)| status).unwrap_or_default();
        differ(&status.to_value(), &stored)
    };
    let unstored = statuses.iter().filter(is_unstored);
    unstored.map(|(subject, _)| subject.clone()).collect()
}

/// The nodes that have something of these objects in the config that they are to get.
pub(super) fn users<'a>(
    compilation: &'a Compilation,
    unstored: &BTreeSet<ObjectRef>,
) -> BTreeSet<&'a str> {
    if unstored.is_empty() {
        return BTreeSet::new();
    }
    let objects = compilation.objects.iter();
    let objects = objects.filter(|object| unstored.contains(object.source()));
    let names: BTreeSet<&str> = objects.map(LowLevelObject::name).collect();
    let nodes = compilation.nodes.iter().filter(|(_, config)| {
        let shared = &config.shared;
        let mut objects = shared.segments.iter().chain(&shared.routing);
        objects.any(|name| names.contains(name.as_str()))
    });
    nodes.map(|(node, _)| node.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use compiler::{Compiler, Kind};
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_use_an_unstored_address_if_the_object_that_has_it_is_for_them() {
        let mut compiler = Compiler::default();
        let mut put = |kind: Kind, metadata: Value, spec: Value| {
            compiler.insert(&json!({
                "apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": metadata, "spec": spec,
            }));
        };
        for rack in ["a", "b"] {
            put(
                Kind::Node,
                json!({"name": rack, "labels": {"rack": rack}}),
                json!({}),
            );
        }
        let underlay = json!({
            "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
            "neighbors": [{"asn": 64512, "address": "192.168.11.2"}],
        });
        put(
            Kind::Underlay,
            json!({"name": "all", "namespace": "default"}),
            underlay,
        );
        let vrf = json!({"vrf": "m2m", "vni": 10100, "routeTarget": "64500:10100"});
        put(Kind::Vrf, json!({"name": "m2m"}), vrf);
        put(
            Kind::Destination,
            json!({"name": "meters", "labels": {"zone": "secure"}}),
            json!({"vrfRef": "m2m", "prefixes": ["192.0.2.0/24"]}),
        );
        let network = json!({"ipv4": {"cidr": "203.0.113.0/28"}});
        put(Kind::Network, json!({"name": "transfer"}), network);
        let inbound = json!({
            "networkRef": "transfer", "count": 2, "advertisement": {"type": "bgp"},
            "destinations": {"matchLabels": {"zone": "secure"}},
            "nodeSelector": {"matchLabels": {"rack": "b"}},
        });
        put(Kind::Inbound, json!({"name": "web"}), inbound);

        let statuses = compiler.writes().statuses.clone();
        let (snapshot, compilation) = compiler.compile();
        let unstored = unstored(snapshot, &statuses);
        assert_eq!(unstored, [ObjectRef::named(Kind::Inbound, "web")].into());
        assert_eq!(users(compilation, &unstored), ["b"].into());
        assert!(users(compilation, &BTreeSet::new()).is_empty());
    }
}
