//! `Settings`: what holds for the whole cluster.

use std::{collections::BTreeMap, net::IpAddr};

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CountOrPercent, Platform};
use crate::{
    meta::{Conditions, LabelSelector, SecretReference},
    schema::{Address, rules},
    value::{Asn, HostCidr, IfName, MacAddress, Prefix, RouteTarget, Seconds, Vni, VrfName},
};

/// Cluster-wide settings. There is exactly one object, named `default`; every field is optional.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "selvedge.dev",
    version = "v1alpha1",
    kind = "Settings",
    plural = "settings",
    status = "SettingsStatus",
    derive = "PartialEq",
    category = "selvedge",
    validation = Rule::new("self.metadata.name == 'default'").message("there is one Settings object, and its name must be default"),
    printcolumn = r#"{"name":"MaxUnavailable","type":"string","jsonPath":".spec.rollout.maxUnavailable"}"#,
    printcolumn = r#"{"name":"Paused","type":"boolean","jsonPath":".spec.rollout.pause"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct SettingsSpec {
    /// VRF of the cluster itself. Segments that reach several VRFs are in it, and routes are leaked between it and each of these VRFs.
    #[serde(default, rename = "clusterVRF")]
    pub cluster_vrf: ClusterVrf,
    /// VRF for management of the nodes. Default: none.
    #[serde(
        default,
        rename = "managementVRF",
        skip_serializing_if = "Option::is_none"
    )]
    pub management_vrf: Option<ManagementVrf>,
    /// BGP neighbors of the router on every node in the cluster VRF, such as the CNI of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub cluster_neighbors: Vec<ClusterNeighbor>,
    /// Networks of the cluster that every node announces in the cluster VRF, such as the pod and service networks.
    #[serde(default, rename = "exportCIDRs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub export_cidrs: Vec<Prefix>,
    /// Default VNI and route target of VRFs, by VRF name, for objects that do not set them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, VrfNumbers>", extend(
        "maxProperties" = 1024,
        "x-kubernetes-validations" = rules([(
            "self.all(name, name.matches('^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,11}$'))",
            "every key must be a VRF name of at most 12 letters, digits, '_', '.' or '-'",
        )]),
    ))]
    pub vrfs: BTreeMap<VrfName, VrfNumbers>,
    /// Link between the namespaces of the host and the router on every node.
    #[serde(default)]
    pub trunk: Trunk,
    /// Range of VNIs that are allocated to networks without `spec.vni`. Default: none; such networks can then not be attached over the
    /// fabric.
    #[serde(
        default,
        rename = "l2VniRange",
        skip_serializing_if = "Option::is_none"
    )]
    pub l2_vni_range: Option<VniRange>,
    /// Range of kernel routing tables that are allocated to VRFs. Default: 10000–19999.
    #[serde(default)]
    pub route_tables: RouteTables,
    /// MAC address of all anycast gateways. Default: `02:00:5e:00:01:01`, the same in every cluster. Clusters that share a segment need
    /// different addresses.
    #[serde(default = "anycast_mac", rename = "anycastMAC")]
    #[schemars(extend("x-kubernetes-validations" = rules([(
        "!self.matches('^.[13579bdfBDF]')",
        "must be a unicast address: the second digit must be even",
    )])))]
    pub anycast_mac: MacAddress,
    /// Defaults for BGP sessions with workloads.
    #[serde(default)]
    pub bgp: BgpSettings,
    /// Addresses for host sessions of `L3VNI`s and `L3Passthrough`s.
    #[serde(default)]
    pub host_sessions: HostSessions,
    /// Routes that a prefix of a `Destination` imports: `Exact` (only the prefix itself) or `OrLonger` (also more specific prefixes).
    /// Default: `Exact`.
    #[serde(default)]
    pub import_match: ImportMatch,
    /// Kind of host-based networking: `frr`, or `legacy-frr` for clusters in which tenants run load balancers with their own class.
    /// Default: `frr`.
    #[serde(default)]
    pub hbn_flavour: HbnFlavour,
    /// Selection of the `FRRConfiguration`s that are used.
    #[serde(default)]
    pub frr_configurations: FrrConfigurations,
    /// Rollout of changes to the nodes.
    #[serde(default)]
    pub rollout: Rollout,
    /// Health checks that must pass before a node confirms a change.
    #[serde(default)]
    pub health: Health,
    /// Namespaces and formats of generated objects for other programs, such as MetalLB.
    #[serde(default)]
    pub platform: Platform,
    /// Namespace of the generated `IPAddressClaim`s. Default: the namespace of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub ipam_namespace: Option<String>,
}

/// 02: locally administered, unicast.
const ANYCAST_MAC: MacAddress = MacAddress::new([0x02, 0x00, 0x5e, 0x00, 0x01, 0x01]);

fn anycast_mac() -> MacAddress {
    ANYCAST_MAC
}

impl Default for SettingsSpec {
    /// What an empty object means.
    fn default() -> Self {
        Self {
            cluster_vrf: ClusterVrf::default(),
            management_vrf: None,
            cluster_neighbors: Vec::new(),
            export_cidrs: Vec::new(),
            vrfs: BTreeMap::new(),
            trunk: Trunk::default(),
            l2_vni_range: None,
            route_tables: RouteTables::default(),
            anycast_mac: ANYCAST_MAC,
            bgp: BgpSettings::default(),
            host_sessions: HostSessions::default(),
            import_match: ImportMatch::default(),
            hbn_flavour: HbnFlavour::default(),
            frr_configurations: FrrConfigurations::default(),
            rollout: Rollout::default(),
            health: Health::default(),
            platform: Platform::default(),
            ipam_namespace: None,
        }
    }
}

/// VRF of the cluster itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVrf {
    /// Name of the VRF, at most 12 characters. Default: `cluster`.
    #[serde(default = "cluster_name")]
    pub name: VrfName,
    /// VXLAN network identifier (VNI) of the VRF, 1–16777215. Default: none, the VRF is local to each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target for import and export of the VRF, such as `64512:2002`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
}

fn cluster_name() -> VrfName {
    "cluster".parse().expect("a VRF name")
}

impl Default for ClusterVrf {
    fn default() -> Self {
        Self {
            name: cluster_name(),
            vni: None,
            route_target: None,
        }
    }
}

/// VRF for management of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagementVrf {
    /// Name of the VRF, at most 12 characters.
    pub name: VrfName,
    /// VXLAN network identifier (VNI) of the VRF, 1–16777215.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target for import and export of the VRF, such as `64512:2002`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
}

/// A BGP neighbor of the router on every node in the cluster VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.address) != has(self.interface)",
    "exactly one of address and interface must be set",
)])))]
pub struct ClusterNeighbor {
    /// IP address of the neighbor. Exactly one of `address` and `interface` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Address>")]
    pub address: Option<IpAddr>,
    /// Interface of an unnumbered session. Exactly one of `address` and `interface` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Source address of the session. Default: chosen by the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Address>")]
    pub update_source: Option<IpAddr>,
    /// AS number of the neighbor, 1–4294967295.
    #[serde(rename = "remoteASN")]
    pub remote_asn: Asn,
    /// Local AS number towards the neighbor. Default: the AS number of the router.
    #[serde(default, rename = "localASN", skip_serializing_if = "Option::is_none")]
    pub local_asn: Option<Asn>,
    /// Hold time: the session is closed after this long without a message. `0s` (never) or `3s` to `65535s`, such as `90s`. Default:
    /// `180s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// Keepalive interval, at most the hold time, such as `30s`. Default: `60s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Interval of BFD packets in milliseconds, 50–60000. Default: no BFD.
    #[serde(
        default,
        rename = "bfdMinTimer",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 50, max = 60000))]
    pub bfd_min_timer: Option<u32>,
    /// Exchanges IPv4 routes on the session. Default: true.
    #[serde(default = "yes")]
    pub ipv4: bool,
    /// Exchanges IPv6 routes on the session. Default: true.
    #[serde(default = "yes")]
    pub ipv6: bool,
    /// Secret with the TCP MD5 password of the session under the key `password`. Default: no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
}

fn yes() -> bool {
    true
}

/// Default VNI and route target of a VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfNumbers {
    /// VXLAN network identifier (VNI) of the VRF, 1–16777215.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Route target for import and export of the VRF, such as `64512:2002`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
}

/// Link between the namespaces of the host and the router, which carries all VLANs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trunk {
    /// Name of the device on both ends of the link. Default: `hbn`.
    #[serde(default = "trunk_name")]
    pub name: IfName,
    /// Addresses of the host end of the link, with prefix length /31, /30 or /127. The router has the other address of each network.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub addresses: Vec<HostCidr>,
}

fn trunk_name() -> IfName {
    "hbn".parse().expect("an interface name")
}

impl Default for Trunk {
    fn default() -> Self {
        Self {
            name: trunk_name(),
            addresses: Vec::new(),
        }
    }
}

/// A range of VNIs, both ends inclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.first <= self.last",
    "last must not be smaller than first",
)])))]
pub struct VniRange {
    /// First VNI of the range, inclusive.
    pub first: Vni,
    /// Last VNI of the range, inclusive.
    pub last: Vni,
}

/// A range of kernel routing tables, both ends inclusive. It must not contain 253–255.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([
    ("self.first <= self.last", "last must not be smaller than first"),
    (
        "self.last < 253 || self.first > 255",
        "the range must not contain 253, 254 and 255: they are the kernel's default, main and local tables",
    ),
])))]
pub struct RouteTables {
    /// First table of the range, inclusive. Default: 10000.
    #[serde(default = "first_table")]
    #[schemars(range(min = 1))]
    pub first: u32,
    /// Last table of the range, inclusive. Default: 19999.
    #[serde(default = "last_table")]
    #[schemars(range(min = 1))]
    pub last: u32,
}

fn first_table() -> u32 {
    10_000
}

fn last_table() -> u32 {
    19_999
}

impl Default for RouteTables {
    fn default() -> Self {
        Self {
            first: first_table(),
            last: last_table(),
        }
    }
}

/// Defaults for BGP sessions with workloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpSettings {
    /// AS number of workloads whose object does not set `workloadAS`. Default: none, such objects are rejected.
    #[serde(
        default,
        rename = "workloadAS",
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_as: Option<Asn>,
    /// Networks from which each `BGPNeighbor` gets a workload address per address family, the same on every node. The addresses are
    /// local to the node. At most one network per address family. Default: `169.254.128.0/24` and `fd00:5e1f:ed6e::/64`.
    #[serde(default = "workload_cidrs", rename = "workloadCIDRs")]
    #[schemars(length(max = 2))]
    pub workload_cidrs: Vec<Prefix>,
}

/// Addresses that mean something on their own machine only.
fn workload_cidrs() -> Vec<Prefix> {
    let networks = ["169.254.128.0/24", "fd00:5e1f:ed6e::/64"];
    networks
        .map(|network| network.parse().expect("a network"))
        .to_vec()
}

impl Default for BgpSettings {
    fn default() -> Self {
        Self {
            workload_as: None,
            workload_cidrs: workload_cidrs(),
        }
    }
}

/// Addresses of host sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSessions {
    /// Networks from which host sessions without `localcidr` get their networks: a /24 (IPv4) and a /64 (IPv6) per session and 253
    /// nodes, or the whole network if it is smaller. One network per listed address family. With an empty list every host session must
    /// set `localcidr`. Default: `100.96.0.0/12` and `fd00:5e1f:5e55::/48`.
    #[serde(default = "session_cidrs")]
    #[schemars(length(max = 16))]
    pub cidrs: Vec<Prefix>,
}

/// Shared address space and a unique local network, neither of which the fabric is likely to route.
fn session_cidrs() -> Vec<Prefix> {
    let networks = ["100.96.0.0/12", "fd00:5e1f:5e55::/48"];
    networks
        .map(|network| network.parse().expect("a network"))
        .to_vec()
}

impl Default for HostSessions {
    fn default() -> Self {
        Self {
            cidrs: session_cidrs(),
        }
    }
}

/// Which routes a prefix of a `Destination` imports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImportMatch {
    /// Only the prefix itself.
    #[default]
    Exact,
    /// The prefix and all more specific prefixes.
    OrLonger,
}

/// A kind of host-based networking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HbnFlavour {
    /// The router of the node is managed by Selvedge.
    #[default]
    Frr,
    /// FRR as in older clusters, in which tenants can run load balancers with their own class.
    LegacyFrr,
}

/// Selection of the `FRRConfiguration`s that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrrConfigurations {
    /// Namespaces whose `FRRConfiguration`s are used, in addition to the namespace of the operator. `*` means all namespaces. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
    /// Applies `spec.raw` of `FRRConfiguration`s. Default: false, such objects have a problem and the rest of them is used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_raw: bool,
    /// Networks that no neighbor of an `FRRConfiguration` is believed, nor any part of them, such as the networks of pods and services.
    /// Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub always_block: Vec<Prefix>,
    /// Log level of FRR on the host: `all`, `debug`, `info`, `warn`, `error` or `none`. Default: `info`.
    #[serde(default, skip_serializing_if = "LogLevel::is_default")]
    pub log_level: LogLevel,
}

/// Log level of FRR.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum LogLevel {
    /// Everything; the same as `debug`.
    All,
    /// Messages of level debugging and above, and what FRR says about events, updates and keepalives.
    Debug,
    /// Messages of level informational and above.
    #[default]
    Info,
    /// Messages of level warnings and above.
    Warn,
    /// Messages of level errors and above.
    Error,
    /// Messages of level emergencies alone.
    None,
}

impl LogLevel {
    /// Whether it is the level that holds where none is given.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Rollout of changes to the nodes: the canary first, then one failure domain after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "!has(self.progressDeadline) || self.progressDeadline.matches('[1-9]')",
    "progressDeadline must be longer than 0s: no node can confirm a change in no time",
)])))]
pub struct Rollout {
    /// Maximum number of nodes that may be changing or failed at the same time, as a number or a percentage. A percentage is rounded
    /// down to at least one node. Default: `10%`.
    #[serde(default = "max_unavailable")]
    pub max_unavailable: CountOrPercent,
    /// Nodes that get a change first. The other nodes get it after these have confirmed it.
    #[serde(default)]
    pub canary: Canary,
    /// Node label whose value is the failure domain of the node. Default: `topology.kubernetes.io/zone`.
    #[serde(default = "failure_domain_label")]
    #[schemars(length(min = 1, max = 317))]
    pub failure_domain_label: String,
    /// Order of the failure domains. Failure domains that are not listed follow in alphabetical order. Default: alphabetical order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "set"))]
    pub order: Vec<String>,
    /// Waiting time between the confirmation of one wave and the start of the next, such as `5m`, so that late failures are detected.
    /// Default: `10s`.
    #[serde(default = "soak_time")]
    pub soak_time: Seconds,
    /// Pauses the rollout: no further node gets a change. Default: false.
    #[serde(default)]
    pub pause: bool,
    /// Time within which a node must confirm a change, such as `10m`, longer than 0s. Default: `5m`.
    #[serde(default = "progress_deadline")]
    pub progress_deadline: Seconds,
    /// Reaction to a node that fails to apply a change: `rollback` or `halt`. Default: `rollback`.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Number of revisions to keep, 2–1000. Default: 10.
    #[serde(default = "history_limit")]
    #[schemars(range(min = 2, max = 1000))]
    pub history_limit: u32,
    /// Maximum share of the configured elements that a revision may remove without approval, as a number or a percentage. Default:
    /// `30%`.
    #[serde(default = "max_removal")]
    pub max_removal: CountOrPercent,
}

fn max_unavailable() -> CountOrPercent {
    CountOrPercent::Percent(10)
}

fn failure_domain_label() -> String {
    "topology.kubernetes.io/zone".to_owned()
}

fn soak_time() -> Seconds {
    Seconds::new(10)
}

fn progress_deadline() -> Seconds {
    Seconds::new(300)
}

fn history_limit() -> u32 {
    10
}

fn max_removal() -> CountOrPercent {
    CountOrPercent::Percent(30)
}

impl Default for Rollout {
    fn default() -> Self {
        Self {
            max_unavailable: max_unavailable(),
            canary: Canary::default(),
            failure_domain_label: failure_domain_label(),
            order: Vec::new(),
            soak_time: soak_time(),
            pause: false,
            progress_deadline: progress_deadline(),
            on_failure: OnFailure::default(),
            history_limit: history_limit(),
            max_removal: max_removal(),
        }
    }
}

/// Nodes that get a change first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// Number of canary nodes, as a number or a percentage. Default: 1.
    #[serde(default = "canary_size")]
    pub size: CountOrPercent,
    /// Selects by label the nodes from which the canary is chosen. Default: all nodes that the change affects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
}

fn canary_size() -> CountOrPercent {
    CountOrPercent::Count(1)
}

impl Default for Canary {
    fn default() -> Self {
        Self {
            size: canary_size(),
            node_selector: None,
        }
    }
}

/// Reaction to a node that fails to apply a change: `rollback` or `halt`. Default: `rollback`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Roll all nodes back to the last valid revision.
    #[default]
    Rollback,
    /// Stop the rollout until a user decides.
    Halt,
}

/// Health checks that must pass before a node confirms a change. A node that fails rolls back to its last confirmed config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.confirmDeadline != '0' && duration(self.confirmDeadline) >= duration('5s')",
    "confirmDeadline must be at least 5s",
)])))]
pub struct Health {
    /// Time within which a change must be confirmed before the node rolls it back, at least `5s`. Default: `30s`.
    #[serde(default = "confirm_deadline")]
    pub confirm_deadline: Seconds,
    /// Requires that a new request reaches the API server. Default: true.
    #[serde(default = "yes")]
    pub api_server: bool,
    /// Requires that BGP sessions that were established before the change are established again. Default: true.
    #[serde(default = "yes")]
    pub sessions: bool,
    /// Interfaces of the host that must be up, such as `bond0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub interfaces: Vec<IfName>,
    /// Hosts that must be reachable by TCP. A refused connection counts as reachable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub reachability: Vec<Reachability>,
    /// Hosts that must answer ICMP echo requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub icmp: Vec<IcmpTarget>,
    /// Requires that default gateways of the host that answered ICMP echo requests before the change answer again. Default: true.
    #[serde(default = "yes")]
    pub gateways: bool,
    /// Timeout of one check, such as `5s`. Default: `3s`.
    #[serde(default = "check_timeout")]
    pub timeout: Seconds,
    /// Number of retries of a failed check, 0–100. Default: 3.
    #[serde(default = "check_retries")]
    #[schemars(range(max = 100))]
    pub retries: u32,
}

fn confirm_deadline() -> Seconds {
    Seconds::new(30)
}

fn check_timeout() -> Seconds {
    Seconds::new(3)
}

fn check_retries() -> u32 {
    3
}

impl Health {
    /// Whether nothing differs from the defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Health {
    fn default() -> Self {
        Self {
            confirm_deadline: confirm_deadline(),
            api_server: true,
            sessions: true,
            interfaces: Vec::new(),
            reachability: Vec::new(),
            icmp: Vec::new(),
            gateways: true,
            timeout: check_timeout(),
            retries: check_retries(),
        }
    }
}

/// A host that must be reachable by TCP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reachability {
    /// DNS name or IP address of the host.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// TCP port of the host, 1–65535.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Timeout of this check. Default: `health.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
}

/// A host that must answer ICMP echo requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IcmpTarget {
    /// DNS name or IP address of the host.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// Timeout of this check. Default: `health.timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
}

/// Observed state of the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsStatus {
    /// `metadata.generation` of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object, such as `Ready`.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
