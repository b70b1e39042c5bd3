//! EVPN of one router.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{absent, schema};
use crate::value::{ImportRouteTarget, RouteDistinguisher, RouteTarget, Vni};

/// EVPN of one router. What is absent is no opinion; another object may have one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evpn {
    /// Whether VNIs are advertised to EVPN neighbors; absent acts as `Disabled`.
    #[serde(
        rename = "advertiseVNIs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub advertise_vnis: Option<VniAdvertisement>,
    /// Whether address and MAC of the node's own devices in the segments are advertised.
    #[serde(
        rename = "advertiseSVI",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub advertise_svi: Option<bool>,
    /// Layer-2 VNIs whose distinguisher or targets are not the automatic ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub l2vnis: Vec<L2Vni>,
    /// The layer-3 VNI of the router's VRF. Only a router without neighbors can have one.
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

/// Distinguisher and targets of a layer-2 VNI.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct L2Vni {
    /// VXLAN network identifier.
    pub vni: Vni,
    /// Route distinguisher, such as `64512:1000` or `192.0.2.1:1000`; without it, the automatic one.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::route_distinguisher")]
    pub rd: Option<RouteDistinguisher>,
    /// Route targets of the routes to import; `*:number` takes any administrator. Without any, the automatic one.
    #[serde(rename = "importRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::import_route_targets")]
    pub import_rts: Vec<ImportRouteTarget>,
    /// Route targets that exported routes carry; without any, the automatic one.
    #[serde(rename = "exportRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::export_route_targets")]
    pub export_rts: Vec<RouteTarget>,
}

/// The layer-3 VNI of a VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct L3Vni {
    /// VXLAN network identifier.
    pub vni: Vni,
    /// Route distinguisher, such as `64512:2000` or `192.0.2.1:2000`; without it, the automatic one.
    #[serde(
        default,
        deserialize_with = "absent::text",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::route_distinguisher")]
    pub rd: Option<RouteDistinguisher>,
    /// Route targets of the routes to import; `*:number` takes any administrator. Without any, the automatic one.
    #[serde(rename = "importRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::import_route_targets")]
    pub import_rts: Vec<ImportRouteTarget>,
    /// Route targets that exported routes carry; without any, the automatic one.
    #[serde(rename = "exportRTs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::export_route_targets")]
    pub export_rts: Vec<RouteTarget>,
    /// Which of the router's prefixes are advertised as EVPN routes.
    #[schemars(length(min = 1, max = 1))]
    pub advertise_prefixes: BTreeSet<AdvertisedPrefixes>,
}

/// Prefixes that become EVPN routes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum AdvertisedPrefixes {
    /// The unicast prefixes of the router.
    Unicast,
}
