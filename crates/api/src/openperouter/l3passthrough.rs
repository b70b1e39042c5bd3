//! A session to the host in the fabric's own routing table.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostSession, OverlayStatus, schema};
use crate::meta::LabelSelector;

/// A BGP session between the hosts of the selected nodes and the fabric, without encapsulation.
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
    /// Selects the nodes by label. Default, also for an empty selector: all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::node_selector")]
    pub node_selector: Option<LabelSelector>,
    /// BGP session between host and router. With equal AS numbers it is iBGP.
    pub hostsession: HostSession,
}
