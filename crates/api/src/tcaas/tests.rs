//! Every kind reads and writes all of its fields, and the texts it is made of.

use std::{collections::BTreeSet, fmt::Debug};

use kube::{CustomResourceExt, Resource};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::*;
use crate::crds::definition;

/// The examples round trip, and together have every field that the kind's schema knows.
fn full<K>(examples: &[Value])
where
    K: CustomResourceExt
        + Resource<DynamicType = ()>
        + JsonSchema
        + Serialize
        + DeserializeOwned
        + Debug
        + PartialEq,
{
    assert_eq!(K::group(&()), GROUP);
    assert_eq!(K::version(&()), VERSION);
    let kind = K::kind(&());
    let mut shown = BTreeSet::new();
    for example in examples {
        let mut object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": kind, "metadata": {"name": "example"},
        });
        let fields = object.as_object_mut().expect("an object");
        fields.extend(
            example
                .as_object()
                .expect("an example is an object")
                .clone(),
        );
        let read: K = serde_json::from_value(object.clone()).expect("an example is read");
        assert_eq!(
            serde_json::to_value(&read).expect("an object is JSON"),
            object,
            "{kind}"
        );
        show("", example, &mut shown);
    }
    let schema = definition::<K>()
        .spec
        .versions
        .remove(0)
        .schema
        .and_then(|s| s.open_api_v3_schema);
    let mut known = BTreeSet::new();
    know(
        "",
        &serde_json::to_value(schema.expect("a schema")).expect("a schema is JSON"),
        &mut known,
    );
    let missing: Vec<_> = known.difference(&shown).collect();
    assert!(missing.is_empty(), "no example of {kind} shows {missing:?}");
}

/// Examples of a kind whose status repeats the spec in effect.
fn in_effect(mut examples: Vec<Value>) -> Vec<Value> {
    for example in &mut examples {
        let spec = example["spec"].clone();
        if let Some(status) = example.get_mut("status") {
            status["inEffect"] = spec;
        }
    }
    examples
}

fn show(path: &str, value: &Value, paths: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        paths.insert(format!("{path}.{name}"));
        show(&format!("{path}.{name}"), value, paths);
    }
    for item in value.as_array().into_iter().flatten() {
        show(path, item, paths);
    }
}

fn know(path: &str, schema: &Value, paths: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        paths.insert(format!("{path}.{name}"));
        know(&format!("{path}.{name}"), property, paths);
    }
    if schema["items"].is_object() {
        know(path, &schema["items"], paths);
    }
}

fn conditions() -> Value {
    json!([{
        "type": "Ready", "status": "True", "observedGeneration": 3, "lastTransitionTime": "2026-02-18T10:30:00Z", "reason": "Applied",
        "message": "in effect on 3 nodes",
    }])
}

fn selector() -> Value {
    json!({
        "matchLabels": {"zone": "secure"},
        "matchExpressions": [{"key": "rack", "operator": "In", "values": ["a", "b"]}],
    })
}

fn loopbacks() -> Value {
    json!([{"name": "lo.mir", "poolRef": pool()}])
}

fn pool() -> Value {
    json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "mirror-source-ips", "namespace": "ipam"})
}

fn addresses() -> Value {
    json!({"ipv4": ["203.0.113.1", "203.0.113.2"], "ipv6": ["2001:db8:200::1", "2001:db8:200::2"]})
}

fn items() -> Value {
    json!([{"cidr": "198.51.100.0/24", "seq": 10, "ge": 25, "le": 32, "action": "permit"}, {"cidr": "::/0", "action": "deny"}])
}

fn matched() -> Value {
    json!([{"name": "m2m-enc-routes", "vrf": "m2m_enc"}, {"name": "upstream"}])
}

#[test]
fn vrf_is_full() {
    full::<Vrf>(&in_effect(vec![json!({
        "spec": {"vrf": "m2m_enc", "vni": 10100, "routeTarget": "64500:10100", "loopbacks": loopbacks()},
        "status": {
            "observedGeneration": 3, "referenceCount": 2, "vni": 10100, "routeTarget": "64500:10100", "conditions": conditions(),
        },
    })]));
}

#[test]
fn network_is_full() {
    full::<Network>(&in_effect(vec![json!({
        "spec": {
            "ipv4": {"cidr": "198.51.100.0/24", "prefixLength": 28},
            "ipv6": {"cidr": "2001:db8:100::/48", "prefixLength": 64},
            "allocationPool": {"ipv4": "private/cndtag", "ipv6": "global/cndtag"},
            "vlan": 234, "vni": 10234, "managed": false,
        },
        "status": {
            "observedGeneration": 3, "referenceCount": 4, "vni": 10234,
            "allocatedSlices": [{"name": "vlan100", "ipv4": "198.51.100.0/28", "ipv6": "2001:db8:100::/64"}],
            "conditions": conditions(),
        },
    })]));
}

#[test]
fn a_network_is_managed_unless_it_says_otherwise() {
    let spec: NetworkSpec = serde_json::from_value(json!({"vlan": 1520})).expect("a network");
    assert!(spec.managed);
}

#[test]
fn destination_is_full() {
    let status = json!({"observedGeneration": 3, "referenceCount": 3, "conditions": conditions()});
    full::<Destination>(&in_effect(vec![
        json!({"spec": {"vrfRef": "m2m-enc", "prefixes": ["198.51.100.0/27", "::/0"]}, "status": status}),
        json!({"spec": {"nextHop": {"ipv4": "198.51.100.1", "ipv6": "2001:db8:100::1"}, "prefixes": ["0.0.0.0/0"]}}),
    ]));
}

#[test]
fn layer2_attachment_is_full() {
    full::<Layer2Attachment>(&in_effect(vec![json!({
        "spec": {
            "networkRef": "secure-net", "destinations": selector(), "nodeSelector": selector(), "interfaceRef": "bond0",
            "interfaceName": "xyz", "mtu": 1500, "disableAnycast": true, "disableNeighborSuppression": true,
            "bgp": {
                "enabled": true, "advertiseTransferNetwork": true, "holdTime": "1m30s", "keepaliveTime": "30s",
                "maximumPrefixes": 10, "workloadAS": "64512",
            },
            "sriov": {"enabled": true},
            "nodeIPs": {"enabled": true, "reservedForPods": 4},
            "routes": [{"prefixes": ["198.51.100.64/26"]}],
            "communities": ["64500:999", "4200000000:1:2"],
        },
        "status": {
            "observedGeneration": 3, "interfaceName": "l2.xyz", "sriovVlanID": 123,
            "anycast": {"mac": "aa:bb:cc:dd:ee:ff", "gateway": "2001:db8::1/64", "gatewayv4": "198.51.100.129/25"},
            "nodeAddresses": {"node-1": {"ipv4": ["198.51.100.130"], "ipv6": ["2001:db8::2"]}},
            "bgp": {
                "asNumber": "64501", "neighborIPs": ["198.51.100.129/25"], "neighborASNumber": 64501, "workloadASNumber": 64512,
                "holdTime": "1m30s", "keepaliveTime": "30s", "maximumPrefixes": 10,
            },
            "matchedDestinations": matched(), "conditions": conditions(),
        },
    })]));
}

#[test]
fn inbound_is_full() {
    full::<Inbound>(&in_effect(vec![
        json!({
            "spec": {
                "networkRef": "ingress-net", "destinations": selector(), "nodeSelector": selector(), "count": 2, "poolName": "my-pool",
                "tenantLoadBalancerClass": "my-lb-class", "advertisement": {"type": "l2"}, "disableLoadBalancer": true,
                "disableAggregation": true, "communities": ["64500:999"],
            },
            "status": {
                "observedGeneration": 3, "addresses": addresses(), "poolName": "my-pool", "matchedDestinations": matched(),
                "conditions": conditions(),
            },
        }),
        json!({"spec": {"networkRef": "ingress-net", "addresses": addresses(), "advertisement": {"type": "bgp"}}}),
    ]));
}

#[test]
fn an_inbound_is_announced_by_bgp_unless_it_says_otherwise() {
    for spec in [
        json!({"networkRef": "a", "count": 1}),
        json!({"networkRef": "a", "count": 1, "advertisement": {}}),
    ] {
        let spec: InboundSpec = serde_json::from_value(spec).expect("an inbound");
        assert_eq!(spec.advertisement.kind, AdvertisementType::Bgp);
    }
}

#[test]
fn outbound_is_full() {
    full::<Outbound>(&in_effect(vec![
        json!({
            "spec": {
                "networkRef": "egress-net", "destinations": selector(), "nodeSelector": selector(), "replicas": 2, "count": 3,
                "egressDestinations": ["198.51.100.0/24"], "disableAggregation": true, "communities": ["64500:999"],
            },
            "status": {
                "observedGeneration": 3, "addresses": addresses(), "matchedDestinations": matched(), "conditions": conditions(),
            },
        }),
        json!({"spec": {"networkRef": "egress-net", "addresses": addresses()}}),
    ]));
}

#[test]
fn bgp_neighbor_is_full() {
    full::<BgpNeighbor>(&in_effect(vec![json!({
        "spec": {
            "allowedInbounds": [{"name": "bgp-transfer"}], "advertiseTransferNetwork": true, "holdTime": "1m30s",
            "keepaliveTime": "30s", "maximumPrefixes": 10, "workloadAS": "64512",
        },
        "status": {
            "observedGeneration": 3, "asNumber": "64501", "neighborIPs": ["2001:db8:1::192/127", "2001:db8:1::194/127"],
            "neighborASNumber": 124, "workloadASNumber": 123, "holdTime": "1m30s", "keepaliveTime": "30s", "maximumPrefixes": 10,
            "workloadIPs": ["169.254.128.1", "fd00:5e1f:ed6e::1"], "conditions": conditions(),
        },
    })]));
}

#[test]
fn an_empty_workload_as_is_one_that_is_not_said() {
    let read = |text: &str| {
        let spec = json!({"allowedInbounds": [{"name": "a"}], "workloadAS": text});
        serde_json::from_value::<BgpNeighborSpec>(spec)
            .map(|spec| spec.workload_as.map(crate::value::Asn::get))
    };
    assert_eq!(read("").expect("empty"), None);
    assert_eq!(read("4294967295").expect("the last"), Some(u32::MAX));
    for text in [
        "0",
        "4294967296",
        "-1",
        "+1",
        "AS1",
        " 1",
        "99999999999999999999",
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn pod_network_is_full() {
    full::<PodNetwork>(&in_effect(vec![json!({
        "spec": {
            "networkRef": "pod-extra-net", "destinations": selector(), "nodeSelector": selector(),
            "routes": [{"prefixes": ["198.51.100.64/26"]}], "communities": ["64500:999"],
        },
        "status": {
            "observedGeneration": 3, "matchedDestinations": matched(), "ipPools": ["example-pool"], "conditions": conditions(),
        },
    })]));
}

#[test]
fn collector_is_full() {
    full::<Collector>(&in_effect(vec![json!({
        "spec": {"address": "192.0.2.100", "protocol": "l3gre", "key": 1001, "mirrorVRF": {"name": "mirror-vrf"}},
        "status": {
            "observedGeneration": 3, "greInterface": "gre.mir", "referenceCount": 2, "activeNodes": 3, "conditions": conditions(),
        },
    })]));
}

#[test]
fn traffic_mirror_is_full() {
    full::<TrafficMirror>(&in_effect(vec![json!({
        "spec": {
            "source": {"kind": "Layer2Attachment", "name": "vlan100"}, "collector": "prod-collector", "direction": "ingress",
            "trafficMatch": {
                "srcPrefix": "203.0.113.0/24", "dstPrefix": "0.0.0.0/0", "protocol": "tcp", "srcPort": 1024, "dstPort": 443,
            },
        },
        "status": {"observedGeneration": 3, "activeNodes": 3, "conditions": conditions()},
    })]));
}

#[test]
fn a_plain_address_matches_itself_alone() {
    let match_prefix = |text: &str| text.parse::<MatchPrefix>().map(|prefix| prefix.to_string());
    assert_eq!(
        match_prefix("203.0.113.1").expect("an address"),
        "203.0.113.1/32"
    );
    assert_eq!(
        match_prefix("2001:db8::1").expect("an address"),
        "2001:db8::1/128"
    );
    assert_eq!(
        match_prefix("203.0.113.0/24").expect("a network"),
        "203.0.113.0/24"
    );
    for text in ["203.0.113.1/24", "any", ""] {
        assert!(match_prefix(text).is_err(), "{text}");
    }
}

#[test]
fn layer2_network_configuration_is_full() {
    full::<Layer2NetworkConfiguration>(&[json!({
        "spec": {
            "id": 100, "mtu": 9000, "vni": 10100, "anycastMac": "aa:bb:cc:dd:ee:ff", "anycastGateways": ["198.51.100.1/24"],
            "advertiseNeighbors": true, "createMacVLANInterface": true, "neighSuppression": false, "disableSegmentation": true,
            "vrf": "m2m_enc", "nodeSelector": selector(), "interfaceRef": "bond0", "interfaceName": "vlan.100",
            "nodeIPs": {"enabled": true, "networks": ["198.51.100.0/24"], "reservedForPods": 4},
            "staticRoutes": [{"prefix": "0.0.0.0/0", "nextHop": "198.51.100.1"}],
        },
        "status": {
            "observedGeneration": 3, "nodeAddresses": {"node-1": {"ipv4": ["198.51.100.2"]}}, "conditions": conditions(),
        },
    })]);
}

#[test]
fn vrf_route_configuration_is_full() {
    full::<VrfRouteConfiguration>(&[
        json!({
            "spec": {
                "vrf": "mirror", "vni": 99001, "routeTarget": "65000:99001", "seq": 100, "import": items(), "export": items(),
                "aggregate": ["10.0.0.0/8"], "sbrPrefixes": ["10.250.4.0/24"], "communities": ["64500:1"],
                "nodeSelector": selector(), "loopbacks": loopbacks(),
            },
            "status": {"observedGeneration": 3, "conditions": conditions()},
        }),
        json!({"spec": {"vrf": "mirror", "seq": 65534, "community": "64500:1"}}),
    ]);
    for order in [0, 65535, -1] {
        assert!(MergeOrder::try_from(order).is_err(), "{order}");
    }
}

#[test]
fn bgp_peering_is_full() {
    full::<BgpPeering>(&[
        json!({
            "spec": {
                "peeringVlan": {"name": "vlan100"}, "remoteASN": 65511, "enableBFD": true, "maximumPrefixes": 5, "holdTime": "3s",
                "keepaliveTime": "1s", "import": items(), "export": items(), "nodeSelector": selector(),
            },
            "status": {"observedGeneration": 3, "conditions": conditions()},
        }),
        json!({"spec": {"loopbackPeer": {"ips": ["192.0.2.1", "2001:db8::1"]}, "remoteASN": 65511}}),
    ]);
}

#[test]
fn mirror_target_is_full() {
    full::<MirrorTarget>(&in_effect(vec![json!({
        "spec": {
            "type": "l2gre", "destinationIP": "10.250.0.100", "key": 1001, "destinationVrf": "mirror", "sourceLoopback": "lo.mir",
        },
        "status": {"observedGeneration": 3, "activeSelectors": 1, "activeNodes": 2, "conditions": conditions()},
    })]));
}

#[test]
fn mirror_selector_is_full() {
    full::<MirrorSelector>(&in_effect(vec![json!({
        "spec": {
            "trafficMatch": {
                "srcPrefix": "10.100.0.0/16", "dstPrefix": "10.0.0.0/8", "protocol": "udp", "srcPort": 53, "dstPort": 53,
            },
            "mirrorTarget": {"apiGroup": GROUP, "kind": "MirrorTarget", "name": "collector-prod", "namespace": "none"},
            "mirrorSource": {"apiGroup": GROUP, "kind": "VRFRouteConfiguration", "name": "external", "namespace": "none"},
            "direction": "egress",
        },
        "status": {"observedGeneration": 3, "activeNodes": 2, "conditions": conditions()},
    })]));
}

#[test]
fn network_config_revision_is_full() {
    let other = json!([{"name": "rack-1", "namespace": "selvedge", "spec": {"asn": 64512}}]);
    let settings = serde_json::to_value(crate::selvedge::SettingsSpec::default()).expect("JSON");
    full::<NetworkConfigRevision>(&[json!({
        "spec": {
            "revision": "0123456789abcdef", "parts": ["0123456789abcdef0123456789abcdef"],
            "layer2": [{"name": "vlan100", "spec": {"id": 100, "mtu": 1500, "vni": 10100}}],
            "vrf": [{"name": "mirror", "spec": {"vrf": "mirror", "seq": 1}}],
            "bgp": [{"name": "peer", "spec": {"peeringVlan": {"name": "vlan100"}, "remoteASN": 65511}}],
            "underlay": other, "l3vni": other, "l2vni": other, "passthrough": other, "settings": settings,
        },
        "status": {
            "phase": "Failed", "wave": "canary", "sequence": 4, "soakingSince": "2026-02-18T10:29:00Z",
            "startedAt": "2026-02-18T10:20:00Z", "spentApproval": "2026-01-01T00:00:00Z", "retry": "2", "retriedAt": "2026-02-18T10:27:00Z",
            "completedAt": "2026-02-18T10:28:00Z", "isInvalid": true, "ready": 1, "ongoing": 2, "queued": 3, "failed": 1, "unapproved": 1, "total": 8, "failedNode": "node-1",
            "failedMessage": "no session came up", "failedAt": "2026-02-18T10:30:00Z", "unapprovedMessage": "n2 would lose its Underlay",
            "unwrittenMessage": "NodeNetworkConfig n3 could not be written",
            "waves": [{"name": "canary", "ready": 1, "total": 1}],
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "Failed", "message": "n1: no session came up",
                "lastTransitionTime": "2026-02-18T10:30:00Z", "observedGeneration": 1,
            }],
        },
    })]);
}

#[test]
fn network_config_revision_part_is_full() {
    full::<NetworkConfigRevisionPart>(&[json!({"spec": {"data": "eJyrVkosKMhJVbJSqAYAGl8D3g=="}})]);
}

#[test]
fn a_revision_is_written_as_a_whole() {
    let definition = definition::<NetworkConfigRevision>();
    let text = serde_json::to_value(definition).expect("JSON");
    let spec = &text["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    assert_eq!(spec["x-kubernetes-map-type"], "atomic");
    assert_eq!(
        spec["properties"]["vrf"]["items"]["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"],
        true
    );
}

#[test]
fn node_network_status_is_full() {
    full::<NodeNetworkStatus>(&[json!({
        "spec": {},
        "status": {
            "interfaces": [
                {
                    "name": "bond0", "mac": "aa:bb:cc:dd:ee:f1", "mtu": 9000, "state": "up", "type": "bond",
                    "members": ["ens5f0np0", "ens5f1np1"], "addresses": ["10.0.0.1/24"],
                },
                {"name": "vlan.234", "state": "down", "type": "vlan", "parent": "bond0", "vlanID": 234},
                {"name": "ens6", "namespace": "selvedge", "state": "up", "type": "physical"},
            ],
            "capabilities": {
                "kernelVersion": "6.12.41", "frrVersion": "10.3", "kernel": ["vrf", "vxlan"],
                "missing": [{"name": "flower", "message": "No such file or directory"}],
            },
            "routes": [{"destination": "0.0.0.0/0", "gateway": "192.168.1.1", "interface": "eth0", "table": "main"}],
            "lastUpdated": "2026-02-18T10:30:00Z", "conditions": conditions(),
        },
    })]);
}

#[test]
fn short_names_do_not_hide_a_kind() {
    let singular: BTreeSet<_> = crds()
        .into_iter()
        .filter_map(|definition| definition.spec.names.singular)
        .collect();
    for definition in crds() {
        assert_eq!(
            definition.spec.scope, "Cluster",
            "{}",
            definition.spec.names.kind
        );
        for short in definition.spec.names.short_names.into_iter().flatten() {
            assert!(!singular.contains(&short), "{short} is another kind");
        }
    }
}
