//! MetalLB allocates the addresses of an `Inbound` and announces them.

use api::{
    meta::LabelSelector,
    selvedge::Platform,
    tcaas::{AdvertisementType, InboundSpec},
    value::Prefix,
};
use serde::Serialize;
use serde_json::json;

use super::PlatformObject;
use crate::{
    lower::{Service, plain},
    snapshot::ObjectRef,
};

const API_VERSION: &str = "metallb.io/v1beta1";

pub(super) const KINDS: super::Kinds = (
    API_VERSION,
    &[
        ("IPAddressPool", "ipaddresspools"),
        ("BGPAdvertisement", "bgpadvertisements"),
        ("L2Advertisement", "l2advertisements"),
    ],
);

/// What a `BGPAdvertisement` and an `L2Advertisement` have in common.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Advertisement<'a> {
    ip_address_pools: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    node_selectors: Option<[&'a LabelSelector; 1]>,
}

/// The pool of an Inbound and its advertisement; nothing for one without a pool.
pub(crate) fn inbound(
    settings: &Platform,
    subject: &ObjectRef,
    spec: &InboundSpec,
    service: &Service,
) -> Vec<PlatformObject> {
    let Some(pool) = service.pools.first() else {
        return Vec::new();
    };
    let object = |kind, name: &str, spec| PlatformObject {
        api_version: API_VERSION,
        kind,
        namespace: Some(settings.metallb.namespace.clone()),
        name: name.to_owned(),
        owner: subject.clone(),
        body: json!({ "spec": spec }),
        annotations: json!({}),
    };
    let addresses: Vec<Prefix> = plain(&service.addresses).map(Prefix::host).collect();
    let advertisement = Advertisement {
        ip_address_pools: [pool],
        node_selectors: spec.node_selector.as_ref().map(|selector| [selector]),
    };
    let kind = match spec.advertisement.kind {
        AdvertisementType::Bgp => "BGPAdvertisement",
        AdvertisementType::L2 => "L2Advertisement",
    };
    vec![
        object(
            "IPAddressPool",
            pool,
            json!({"addresses": addresses, "autoAssign": true}),
        ),
        object(kind, &subject.key.name, json!(advertisement)),
    ]
}
