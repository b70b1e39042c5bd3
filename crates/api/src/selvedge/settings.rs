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

/// What holds for the whole cluster. There is one object, named `default`; everything in it may be left out.
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
    /// The VRF of the cluster itself: what is attached to several VRFs lives in it and is leaked to each.
    #[serde(default, rename = "clusterVRF")]
    pub cluster_vrf: ClusterVrf,
    /// The VRF through which the nodes are managed. Without it there is none.
    #[serde(
        default,
        rename = "managementVRF",
        skip_serializing_if = "Option::is_none"
    )]
    pub management_vrf: Option<ManagementVrf>,
    /// BGP neighbors that every node's router has in the cluster VRF, such as the node's own CNI.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub cluster_neighbors: Vec<ClusterNeighbor>,
    /// Networks of the cluster that every node announces in the cluster VRF, such as the pods' and the services'.
    #[serde(default, rename = "exportCIDRs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub export_cidrs: Vec<Prefix>,
    /// VNI and route target of VRFs, by VRF name, for objects that do not say them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, VrfNumbers>", extend(
        "maxProperties" = 1024,
        "x-kubernetes-validations" = rules([(
            "self.all(name, name.matches('^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,11}$'))",
            "every key must be a VRF name of at most 12 letters, digits, '_', '.' or '-'",
        )]),
    ))]
    pub vrfs: BTreeMap<VrfName, VrfNumbers>,
    /// The link between a node and its router.
    #[serde(default)]
    pub trunk: Trunk,
    /// VNIs for networks that have none of their own. Without it such a network cannot be attached over the fabric.
    #[serde(
        default,
        rename = "l2VniRange",
        skip_serializing_if = "Option::is_none"
    )]
    pub l2_vni_range: Option<VniRange>,
    /// Numbers of the kernel's route tables that VRFs get.
    #[serde(default)]
    pub route_tables: RouteTables,
    /// MAC address of every anycast gateway. The default is locally administered and the same in every cluster; give clusters that
    /// share a segment different ones.
    #[serde(default = "anycast_mac", rename = "anycastMAC")]
    #[schemars(extend("x-kubernetes-validations" = rules([(
        "!self.matches('^.[13579bdfBDF]')",
        "must be a unicast address: the second digit must be even",
    )])))]
    pub anycast_mac: MacAddress,
    /// What BGP sessions with workloads use where nothing else is said.
    #[serde(default)]
    pub bgp: BgpSettings,
    /// Addresses for the links between a node and its router that carry a VNI's host session.
    #[serde(default)]
    pub host_sessions: HostSessions,
    /// Which routes of a VRF the prefixes of a `Destination` import: the prefix itself, or longer ones inside of it as well.
    #[serde(default)]
    pub import_match: ImportMatch,
    /// Which kind of host-based networking the cluster has.
    #[serde(default)]
    pub hbn_flavour: HbnFlavour,
    /// Which `FRRConfiguration`s count.
    #[serde(default)]
    pub frr_configurations: FrrConfigurations,
    /// How changes reach the nodes.
    #[serde(default)]
    pub rollout: Rollout,
    /// What a node checks before it keeps a change.
    #[serde(default)]
    pub health: Health,
    /// Where objects for other programs are written.
    #[serde(default)]
    pub platform: Platform,
    /// Namespace of the `IPAddressClaim`s. Without it the operator's own is meant.
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

/// The VRF of the cluster itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterVrf {
    /// Its name.
    #[serde(default = "cluster_name")]
    pub name: VrfName,
    /// Its VXLAN network identifier. Without it the VRF stays on its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Its route target.
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

/// The VRF through which the nodes are managed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagementVrf {
    /// Its name.
    pub name: VrfName,
    /// Its VXLAN network identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Its route target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
}

/// A BGP neighbor that every node's router has in the cluster VRF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "has(self.address) != has(self.interface)",
    "exactly one of address and interface must be set",
)])))]
pub struct ClusterNeighbor {
    /// Its address. Exactly one of `address` and `interface` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Address>")]
    pub address: Option<IpAddr>,
    /// The interface it is found on. Exactly one of `address` and `interface` must be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Address the router speaks from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Address>")]
    pub update_source: Option<IpAddr>,
    /// AS number of the neighbor.
    #[serde(rename = "remoteASN")]
    pub remote_asn: Asn,
    /// AS number the router shows to the neighbor. Without it the router's own.
    #[serde(default, rename = "localASN", skip_serializing_if = "Option::is_none")]
    pub local_asn: Option<Asn>,
    /// How long a session survives without a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<Seconds>,
    /// How often a sign of life is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<Seconds>,
    /// Interval of BFD in milliseconds. Without it there is no BFD.
    #[serde(
        default,
        rename = "bfdMinTimer",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 50, max = 60000))]
    pub bfd_min_timer: Option<u32>,
    /// Whether IPv4 routes are exchanged.
    #[serde(default = "yes")]
    pub ipv4: bool,
    /// Whether IPv6 routes are exchanged.
    #[serde(default = "yes")]
    pub ipv6: bool,
    /// Secret with the session's password under the key `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<SecretReference>,
}

fn yes() -> bool {
    true
}

/// VNI and route target of a VRF.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VrfNumbers {
    /// Its VXLAN network identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vni: Option<Vni>,
    /// Its route target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_target: Option<RouteTarget>,
}

/// The link between a node and its router, over which all VLANs run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trunk {
    /// Name of the link on both sides.
    #[serde(default = "trunk_name")]
    pub name: IfName,
    /// Addresses of the node's side, with prefix length. Each is in a network of two (/31, /30 or /127), whose other address is the router's.
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

/// A range of VNIs, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.first <= self.last",
    "last must not be smaller than first",
)])))]
pub struct VniRange {
    /// The first.
    pub first: Vni,
    /// The last.
    pub last: Vni,
}

/// A range of route tables, both ends included.
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
    /// The first.
    #[serde(default = "first_table")]
    #[schemars(range(min = 1))]
    pub first: u32,
    /// The last.
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

/// What BGP sessions with workloads use where nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BgpSettings {
    /// AS number of workloads whose object leaves it empty. Without it such an object cannot be served.
    #[serde(
        default,
        rename = "workloadAS",
        skip_serializing_if = "Option::is_none"
    )]
    pub workload_as: Option<Asn>,
    /// Networks that the addresses of workloads on a loopback of the node are taken from: each `BGPNeighbor` gets one of each family,
    /// the same on every node. No other machine sees them. At most one network of each family.
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

/// Addresses for host sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSessions {
    /// Networks that host sessions without a `localcidr` get their networks from: a /24 of an IPv4 network and a /64 of an IPv6 one for
    /// every 253 nodes, or the whole where it is smaller. Each session gets one network of each address family that is listed. With an
    /// empty list every host session must name its own networks.
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
    /// The route to the prefix itself.
    #[default]
    Exact,
    /// Routes to longer prefixes inside of it as well.
    OrLonger,
}

/// A kind of host-based networking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HbnFlavour {
    /// The node's router is Selvedge's own.
    #[default]
    Frr,
    /// FRR as older clusters run it, where tenants may bring a load balancer class of their own.
    LegacyFrr,
}

/// Which `FRRConfiguration`s count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrrConfigurations {
    /// Namespaces whose `FRRConfiguration`s count beside those of the operator's own; `*` means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "set"))]
    pub namespaces: Vec<String>,
}

/// How changes reach the nodes: canaries first, then one failure domain after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// How many nodes may be changing, or out of order, at the same time. A share is rounded down, but is at least one node.
    #[serde(default = "max_unavailable")]
    pub max_unavailable: CountOrPercent,
    /// The nodes that get a change first; the others wait until these have confirmed it.
    #[serde(default)]
    pub canary: Canary,
    /// Node label whose value is the node's failure domain.
    #[serde(default = "failure_domain_label")]
    #[schemars(length(min = 1, max = 317))]
    pub failure_domain_label: String,
    /// Failure domains in the order they get a change. Those that are not listed follow by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "set"))]
    pub order: Vec<String>,
    /// How long a wave waits after the one before has confirmed: a change that harms only after a while is seen before it spreads.
    #[serde(default = "soak_time")]
    pub soak_time: Seconds,
    /// Holds the rollout: no further node is told anything new.
    #[serde(default)]
    pub pause: bool,
    /// How long a node may take to confirm a change, from the moment it was told.
    #[serde(default = "progress_deadline")]
    pub progress_deadline: Seconds,
    /// What happens when a node does not take a change.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// How many revisions are kept.
    #[serde(default = "history_limit")]
    #[schemars(range(min = 2, max = 1000))]
    pub history_limit: u32,
    /// How much of what is configured a revision may remove without being approved.
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

/// The nodes that get a change first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// How many.
    #[serde(default = "canary_size")]
    pub size: CountOrPercent,
    /// Selects the nodes they are taken from, by label. Without it all nodes that the change touches.
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

/// What happens when a node does not take a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// All nodes go back to the last valid revision.
    #[default]
    Rollback,
    /// Nothing further happens until a person decides.
    Halt,
}

/// What a node checks before it keeps a change. A node that fails goes back to its last confirmed config by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules([(
    "self.confirmDeadline != '0' && duration(self.confirmDeadline) >= duration('5s')",
    "confirmDeadline must be at least 5s",
)])))]
pub struct Health {
    /// How long a change may stay unconfirmed before the node takes it back, at least 5 seconds.
    #[serde(default = "confirm_deadline")]
    pub confirm_deadline: Seconds,
    /// Whether a fresh request must reach the API server.
    #[serde(default = "yes")]
    pub api_server: bool,
    /// Whether the BGP sessions that were up before must be up again.
    #[serde(default = "yes")]
    pub sessions: bool,
    /// Interfaces that must be up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub interfaces: Vec<IfName>,
    /// Addresses that must be reached by TCP; a refused connection counts as reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub reachability: Vec<Reachability>,
    /// Addresses that must answer an ICMP echo request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub icmp: Vec<IcmpTarget>,
    /// Whether default gateways of the host that answered an ICMP echo request before must answer again.
    #[serde(default = "yes")]
    pub gateways: bool,
    /// How long one check may take.
    #[serde(default = "check_timeout")]
    pub timeout: Seconds,
    /// How often a failed check is tried again.
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

/// A place that must be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reachability {
    /// Name or address.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// TCP port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// How long the check may take; without it `timeout` of all checks counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
}

/// An address that must answer an ICMP echo request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IcmpTarget {
    /// Name or address.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// How long the check may take; without it `timeout` of all checks counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
}

/// What is known about the settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingsStatus {
    /// Generation of the object that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What holds for the object now.
    #[serde(default, skip_serializing_if = "Conditions::is_empty")]
    pub conditions: Conditions,
}
