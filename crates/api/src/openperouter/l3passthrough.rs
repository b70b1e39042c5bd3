//! A session to the host in the fabric's own routing table.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostSession, OverlayStatus, schema};
use crate::meta::LabelSelector;

/// A BGP session between the selected nodes' hosts and the fabric itself, without any encapsulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "openpe.openperouter.github.io",
    version = "v1alpha1",
    kind = "L3Passthrough",
    plural = "l3passthroughs",
    namespaced,
    status = "OverlayStatus",
    derive = "PartialEq",
    shortname = "l3pt",
    category = "selvedge",
    printcolumn = r#"{"name": "Host-ASN", "type": "integer", "jsonPath": ".spec.hostsession.hostasn"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "integer", "jsonPath": ".status.nodes.matched"}"#,
    printcolumn = r#"{"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Accepted\")].status"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct L3PassthroughSpec {
    /// Nodes the object applies to; absent or empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::node_selector")]
    pub node_selector: Option<LabelSelector>,
    /// The session between host and fabric; equal AS numbers make it internal.
    pub hostsession: HostSession,
}
