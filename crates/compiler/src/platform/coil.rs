//! Coil runs the gateways of an `Outbound`: pods that send on what other pods send them, under an address of their own.

use std::collections::BTreeMap;

use api::{meta::LabelSelector, selvedge::Platform, tcaas::OutboundSpec, value::Prefix};
use serde::Serialize;
use serde_json::{Value, json};

use super::{PlatformObject, calico};
use crate::{lower::Service, names, snapshot::ObjectRef};

const API_VERSION: &str = "coil.cybozu.com/v2";

pub(super) const KINDS: super::Kinds = (API_VERSION, &[("Egress", "egresses")]);

/// UDP port on which a gateway and its clients send each other packets.
pub(super) const TUNNEL_PORT: u16 = 5555;

#[derive(Serialize)]
struct Egress<'a> {
    destinations: &'a [Prefix],
    replicas: u32,
    template: PodTemplate,
}

#[derive(Serialize)]
struct PodTemplate {
    metadata: TemplateMetadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Value>,
}

#[derive(Serialize)]
struct TemplateMetadata {
    annotations: BTreeMap<&'static str, String>,
}

/// The gateways of an Outbound. They get their addresses from its pools, by annotation.
pub(crate) fn outbound(
    settings: &Platform,
    subject: &ObjectRef,
    spec: &OutboundSpec,
    service: &Service,
) -> PlatformObject {
    let egress = Egress {
        destinations: &service.reached,
        replicas: spec.replicas.unwrap_or_else(|| spare_one(service)),
        template: PodTemplate {
            metadata: TemplateMetadata {
                annotations: calico::pool_annotations(service),
            },
            spec: spec.node_selector.as_ref().map(pod_spec),
        },
    };
    PlatformObject {
        api_version: API_VERSION,
        kind: "Egress",
        namespace: Some(settings.coil.namespace.clone()),
        name: names::label(&subject.key.name),
        owner: subject.clone(),
        body: json!({ "spec": egress }),
        annotations: json!({}),
    }
}

/// One gateway fewer than there are addresses, so that one that is being replaced finds one; but at least one gateway.
fn spare_one(service: &Service) -> u32 {
    let families = [service.addresses.ipv4.len(), service.addresses.ipv6.len()];
    let least = families.into_iter().filter(|count| *count > 0).min();
    let least = least.unwrap_or_default();
    u32::try_from(least.saturating_sub(1).max(1)).unwrap_or(u32::MAX)
}

/// Gateways run on the nodes that announce their addresses.
fn pod_spec(selector: &LabelSelector) -> Value {
    let labels = selector.match_labels.iter();
    let labels =
        labels.map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]}));
    let expressions = selector.match_expressions.iter().map(|one| json!(one));
    let expressions: Vec<Value> = labels.chain(expressions).collect();
    json!({
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": expressions}],
        }}},
        "containers": [{"name": "egress"}],
    })
}
