//! EVPN of one router.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{absent, schema};
use crate::value::{ImportRouteTarget, RouteDistinguisher, RouteTarget, Vni};

/// EVPN settings of a router. Absent fields can be set by another object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evpn {
    /// VNIs that are advertised to EVPN neighbors: `All` or `Disabled`. Default: `Disabled`.
    #[serde(
        rename = "advertiseVNIs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub advertise_vnis: Option<VniAdvertisement>,
    /// Advertises IP and MAC address of the devices of the node in the segments.
    #[serde(
        rename = "advertiseSVI",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub advertise_svi: Option<bool>,
    /// Layer 2 VNIs with explicit route distinguisher or route targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2vnis: Vec<L2Vni>,
    /// Layer 3 VNI of the VRF of the router. Only valid for a router without neighbors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l3vni: Option<L3Vni>,
}

/// Which VNIs are advertised.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline)]
pub enum VniAdvertisement {
    /// None.
    Disabled,
    /// All that the node has.
    All,
}

/// Route distinguisher and route targets of a layer 2 VNI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct L2Vni {
    /// VXLAN network identifier (VNI), 1–16777215.
    pub vni: Vni,
    /// Route distinguisher, such as `64512:1000` or `192.0.2.1:1000`. Default: derived from router ID and VNI.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::route_distinguisher")]
    pub rd: Option<RouteDistinguisher>,
    /// Route targets of imported routes; `*:number` matches any administrator. Default: derived from AS number and VNI.
    #[serde(rename = "importRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::import_route_targets")]
    pub import_rts: Vec<ImportRouteTarget>,
    /// Route targets of exported routes. Default: derived from AS number and VNI.
    #[serde(rename = "exportRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::export_route_targets")]
    pub export_rts: Vec<RouteTarget>,
}

/// Layer 3 VNI of a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct L3Vni {
    /// VXLAN network identifier (VNI), 1–16777215.
    pub vni: Vni,
    /// Route distinguisher, such as `64512:2000` or `192.0.2.1:2000`. Default: derived from router ID and VNI.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::route_distinguisher")]
    pub rd: Option<RouteDistinguisher>,
    /// Route targets of imported routes; `*:number` matches any administrator. Default: derived from AS number and VNI.
    #[serde(rename = "importRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::import_route_targets")]
    pub import_rts: Vec<ImportRouteTarget>,
    /// Route targets of exported routes. Default: derived from AS number and VNI.
    #[serde(rename = "exportRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::export_route_targets")]
    pub export_rts: Vec<RouteTarget>,
    /// Prefixes of the router that are advertised as EVPN type 5 routes. Only `unicast` is supported.
    #[schemars(length(min = 1, max = 1))]
    pub advertise_prefixes: BTreeSet<AdvertisedPrefixes>,
}

/// Prefixes that are advertised as EVPN type 5 routes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AdvertisedPrefixes {
    /// The unicast prefixes of the router.
    Unicast,
}
