//! What is wrong with the input, as data: a user's mistake is never an error of the pass.

mod consequence;
mod remedy;
mod severity;
mod text;

use std::{fmt, net::IpAddr};

use api::{
    meta::InvalidSelector,
    value::{HostCidr, MacAddress, Mtu, Prefix, VlanId, Vni},
};
use serde::{Serialize, Serializer};

pub use self::severity::Severity;
use self::text::{
    after_vxlan, and_more, and_others, free_addresses, inside, none_has, on, table,
    that_can_be_used, unsupported,
};
use crate::snapshot::ObjectRef;

/// One thing that is wrong, or worth knowing, about one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The object that has the problem: the one whose author can correct it.
    pub subject: ObjectRef,
    /// Path of the field in that object, such as `spec.networkRef`.
    pub field: String,
    /// What it is.
    pub kind: Kind,
}

/// Two values for one setting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disagreement {
    /// The setting.
    pub what: &'static str,
    /// The value of the object that has the problem.
    pub own: String,
    /// The other value.
    pub theirs: String,
    /// The object that has the other value, and keeps it.
    pub other: ObjectRef,
    /// Path of the field in that object.
    pub field: String,
    /// A node where both meet.
    pub node: Option<String>,
}

/// A node whose FRR is older than what an object asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OlderFrr {
    /// The node.
    pub node: String,
    /// Its FRR.
    pub version: String,
    /// The first version that is new enough.
    pub needed: &'static str,
}

/// What can be wrong. The variant's name is the reason that conditions and metrics carry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error, strum::IntoStaticStr)]
pub enum Kind {
    /// The object cannot be read.
    #[error("{message}")]
    Unreadable {
        /// Message of the reader.
        message: String,
    },
    /// The object has a field that its kind does not know.
    #[error("unknown field")]
    UnknownField,
    /// A rule of the object's own kind does not hold.
    #[error("{message}")]
    RuleBroken {
        /// Message of the rule.
        message: String,
    },
    /// The object appears twice in the input.
    #[error("appears more than once in the input; the first one is used")]
    Duplicate,
    /// A reference names an object that does not exist.
    #[error("{target} does not exist")]
    MissingReference {
        /// The object that does not exist.
        target: ObjectRef,
    },
    /// A reference names an object that cannot be read.
    #[error("{target} cannot be read")]
    UnreadableReference {
        /// The object that cannot be read.
        target: ObjectRef,
    },
    /// A reference names an object that is itself rejected.
    #[error("{target} is itself rejected")]
    ReferenceNotInEffect {
        /// The object that is not in effect.
        target: ObjectRef,
    },
    /// A selector is invalid.
    #[error("{0}")]
    InvalidSelector(InvalidSelector),
    /// An edit would stop an object of another author that is in effect on nodes.
    #[error(
        "this edit would stop {victim}{}, so the spec before it stays in effect: {why}",
        and_more(*.others)
    )]
    BreaksAnother {
        /// The first of the objects.
        victim: Box<ObjectRef>,
        /// How many more there are.
        others: usize,
        /// What would be wrong with it.
        why: String,
    },
    /// The Settings of the cluster were deleted.
    #[error("was deleted: its last spec stays in effect, and rollouts are paused")]
    SettingsDeleted,
    /// Two lines of a filter match the same prefixes.
    #[error("matches the same prefixes as {other}: one of the two lines has no effect")]
    LineTwice {
        /// Path of the first of them.
        other: String,
    },
    /// Two lines of a filter have the same sequence number.
    #[error("seq {seq} is also used by {other}: the order of the two lines is undefined")]
    SeqTwice {
        /// The number.
        seq: u32,
        /// Path of the first of them.
        other: String,
    },
    /// A selector selects no Destination that can be used.
    #[error("selects no Destination{}", that_can_be_used(.left_out.as_ref()))]
    NoDestination {
        /// One that is selected and cannot be used.
        left_out: Option<ObjectRef>,
    },
    /// A selected Destination cannot be used, and was not used before.
    #[error("{destination} is left out: {why}")]
    DestinationLeftOut {
        /// The Destination.
        destination: ObjectRef,
        /// Why it cannot be used.
        why: String,
    },
    /// A selected Destination that was used before is now rejected.
    #[error("{destination} is rejected: the configuration from its last valid spec is kept")]
    DestinationKept {
        /// The Destination.
        destination: ObjectRef,
    },
    /// An attachment over the fabric has no `spec.destinations`.
    #[error(
        "an attachment over the fabric with a gateway needs spec.destinations: they determine the VRF of the gateway"
    )]
    DestinationsRequired,
    /// A Network has no field that an object which uses it needs.
    #[error("{network} has no {what}, which this object needs")]
    NetworkLacks {
        /// The network.
        network: ObjectRef,
        /// The missing field.
        what: &'static str,
    },
    /// A VRF has no VNI or no route target, neither in its own spec nor in Settings.
    #[error("VRF {vrf:?} has no {what}, neither here nor in Settings")]
    VrfIncomplete {
        /// Name of the VRF.
        vrf: String,
        /// The missing field.
        what: &'static str,
    },
    /// Two objects set different values for one VRF.
    #[error("{other} already gives VRF {vrf:?} another {what}")]
    VrfDisagrees {
        /// Name of the VRF.
        vrf: String,
        /// The field they disagree on.
        what: &'static str,
        /// The older object.
        other: ObjectRef,
    },
    /// The name of a VRF is reserved or in use.
    #[error("VRF name {name:?} is taken: {by}")]
    VrfNameTaken {
        /// The name.
        name: String,
        /// What holds it.
        by: &'static str,
    },
    /// A feature needs a daemon of FRR that nodes do not run.
    #[error(
        "{what} needs {daemon}, but the router of a node runs only zebra, bgpd, bfdd and staticd"
    )]
    NeedsDaemon {
        /// The feature.
        what: &'static str,
        /// The daemon.
        daemon: &'static str,
    },
    /// Two objects configure the same VRF on a node.
    #[error("VRF {vrf:?} is already configured by {by}{}", on(.node.as_ref()))]
    VrfTaken {
        /// Name of the VRF.
        vrf: String,
        /// The object that configures it.
        by: Box<ObjectRef>,
        /// A node that both select.
        node: Option<String>,
    },
    /// A VRF has objects of two namespaces, and one of them is in it because it has the same name.
    #[error(
        "VRF {vrf:?} is also that of {by}{}: one table routes both. A segment without spec.vrf is in the VRF of its name",
        on(.node.as_ref())
    )]
    VrfShared {
        /// Name of the VRF.
        vrf: String,
        /// The other object.
        by: Box<ObjectRef>,
        /// A node that both select.
        node: Option<String>,
    },
    /// Two segments are attached to one bridge of the host.
    #[error(
        "bridge {bridge:?} of the host is also that of {by}{}: without VLAN filtering it joins both segments, and on two nodes they are a loop",
        on(.node.as_ref())
    )]
    BridgeShared {
        /// Name of the bridge.
        bridge: String,
        /// The other object.
        by: Box<ObjectRef>,
        /// A node that both select.
        node: Option<String>,
    },
    /// A node has no tunnel endpoint of an address family.
    #[error("node {node:?} has no {family} tunnel endpoint")]
    VtepFamilyMissing {
        /// The family.
        family: &'static str,
        /// The node.
        node: String,
    },
    /// The device whose address is the tunnel endpoint of a node has no address.
    #[error("node {node:?} has reported no IPv4 address on {device:?}")]
    NoVtepOnDevice {
        /// The device.
        device: String,
        /// The node.
        node: String,
    },
    /// The device whose address would be the tunnel endpoint of a node is in the namespace of the host, and no uplink.
    #[error(
        "{device:?} of node {node:?} is in the host's namespace, and the router in another: no tunnel can end at its address"
    )]
    VtepDeviceOutside {
        /// The device.
        device: String,
        /// The node.
        node: String,
    },
    /// A node could match two Underlays.
    #[error("{other} selects nodes with {labels} as well; a node has one Underlay")]
    UnderlaysMayMeet {
        /// The other Underlay.
        other: Box<ObjectRef>,
        /// Labels that both select.
        labels: String,
    },
    /// A segment is in a VRF that its node does not have.
    #[error("VRF {vrf:?} is not on node {node:?}")]
    VrfNotOnNode {
        /// Name of the VRF.
        vrf: String,
        /// A node without it.
        node: String,
    },
    /// A VLAN is used twice on a node.
    #[error("VLAN {vlan} is already used by {by}{}", on(.node.as_ref()))]
    VlanTaken {
        /// The VLAN.
        vlan: VlanId,
        /// The object that has it.
        by: ObjectRef,
        /// A node that both select; absent where only a future node could match both.
        node: Option<String>,
    },
    /// A VNI is used twice.
    #[error("VNI {vni} is already used by {by}{}", on(.node.as_ref()))]
    VniTaken {
        /// The VNI.
        vni: Vni,
        /// The object that has it.
        by: ObjectRef,
        /// A node that both select; absent where the conflict is in the whole fabric.
        node: Option<String>,
    },
    /// The FRR of a node is too old for what an Underlay asks for.
    #[error(
        "node {node:?} runs FRR {version}, which has no {what}: it has no configuration over the fabric"
    )]
    FrrTooOld {
        /// The node.
        node: String,
        /// Its FRR.
        version: String,
        /// What it lacks.
        what: &'static str,
        /// The first version that has it.
        needed: &'static str,
    },
    /// FRR does not support a value of an `FRRConfiguration`.
    #[error("{what} is left out: {}", unsupported(.older.as_deref()))]
    LeftOutByFrr {
        /// The value.
        what: String,
        /// A node whose FRR is too old for it; absent where no version supports it.
        older: Option<Box<OlderFrr>>,
        /// What the author can write instead.
        instead: &'static str,
    },
    /// A VNI has different meanings on different nodes.
    #[error(
        "VNI {vni} is {own} here, and {theirs} in {other} on other nodes: both use the route target of the VNI, so each imports the routes of the other"
    )]
    VniMeansTwo {
        /// The VNI.
        vni: Vni,
        /// What it is here.
        own: String,
        /// What it is there.
        theirs: String,
        /// The older object.
        other: Box<ObjectRef>,
    },
    /// A device name is used twice on a node.
    #[error("device name {name:?} is already used by {by}{}", on(.node.as_ref()))]
    DeviceNameTaken {
        /// The name.
        name: String,
        /// The object that has it.
        by: ObjectRef,
        /// A node that both select.
        node: Option<String>,
    },
    /// An interface would have the name of a device that Selvedge does not create.
    #[error("{name:?} is {what}, and an interface needs a name of its own")]
    DeviceNameReserved {
        /// The name.
        name: String,
        /// What has it.
        what: String,
    },
    /// Two segments have overlapping networks where one table routes both.
    #[error("{network} overlaps {other} of {by}, and {} routes both{}", table(.vrf.as_ref()), on(.node.as_ref()))]
    NetworksOverlap {
        /// The network.
        network: Prefix,
        /// The other segment's.
        other: Prefix,
        /// The older object.
        by: Box<ObjectRef>,
        /// The VRF that routes both; absent where the host does.
        vrf: Option<String>,
        /// A node that both select; absent where only a future node could match both.
        node: Option<String>,
    },
    /// The device name that is derived from this field is too long.
    #[error("device name {name:?} is longer than 15 bytes")]
    NameTooLong {
        /// The name that would be made.
        name: String,
    },
    /// A node is selected by two Underlays.
    #[error("node {node:?} already has {by}; a node has one Underlay")]
    SecondUnderlay {
        /// The node.
        node: String,
        /// The Underlay that holds it.
        by: ObjectRef,
    },
    /// A neighbor has an address that a node could get as its VTEP.
    #[error("{address}, a neighbor of {neighbor_of}, is inside {pool}, the VTEP pool of {pool_of}")]
    NeighborInVtepPool {
        /// The neighbor.
        address: IpAddr,
        /// The Underlay that has the neighbor.
        neighbor_of: Box<ObjectRef>,
        /// The pool.
        pool: Prefix,
        /// The Underlay that has the pool.
        pool_of: Box<ObjectRef>,
    },
    /// Two Underlays have different VTEP pools that overlap, so two nodes could get the same VTEP.
    #[error("the VTEP pool {pool} overlaps {other} of {by}: two nodes could get the same VTEP")]
    VtepPoolsOverlap {
        /// The pool.
        pool: Prefix,
        /// The other Underlay's.
        other: Prefix,
        /// The Underlay that keeps its pool.
        by: ObjectRef,
    },
    /// None of the nodes that an object of the fabric selects has the Underlay that it needs.
    #[error("{} {needs}", none_has(*nodes))]
    NoUnderlay {
        /// How many nodes are selected.
        nodes: usize,
        /// What the object needs of them.
        needs: &'static str,
    },
    /// A pool has no address left.
    #[error("{pool} has no address left for {wanted}")]
    PoolExhausted {
        /// The pool.
        pool: String,
        /// What needs an address.
        wanted: String,
    },
    /// An address that the object needs is already used by another object.
    #[error("{address} is already used by {by}")]
    AddressTaken {
        /// The address.
        address: IpAddr,
        /// The object that has it.
        by: ObjectRef,
    },
    /// An address is not a host address of its network.
    #[error("{address} is not a host address of {network}")]
    NoHostAddress {
        /// The address.
        address: IpAddr,
        /// The network, with its prefix of the address's family.
        network: String,
    },
    /// A network has too few free addresses.
    #[error("{prefix} has {}, and {missing} more are needed", free_addresses(*.free))]
    TooFewAddresses {
        /// The network's prefix.
        prefix: Prefix,
        /// How many are needed beside those that the object holds.
        missing: u32,
        /// How many are free.
        free: u32,
    },
    /// Another object uses the whole network, or has the platform's pool for it.
    #[error("Network {network} is used exclusively by {by}")]
    NetworkTaken {
        /// Name of the network.
        network: String,
        /// The object that has it.
        by: ObjectRef,
    },
    /// Two objects need a pool with the same name.
    #[error("the pool {name:?} is already created for {by}")]
    PoolTaken {
        /// Name of the pool.
        name: String,
        /// The object that has it.
        by: ObjectRef,
    },
    /// The field needs another flavour of host-based networking.
    #[error("{what} needs Settings.spec.hbnFlavour: legacy-frr")]
    NeedsLegacyFlavour {
        /// The field.
        what: &'static str,
    },
    /// A Network of the fabric has no VNI, and the settings have no range to allocate one from.
    #[error(
        "this Network has no VNI, and Settings.spec.l2VniRange, from which one would be allocated, is not set"
    )]
    NoVniRange,
    /// All VNIs of the range in the settings are in use.
    #[error("all VNIs of Settings.spec.l2VniRange are in use")]
    NoVniLeft,
    /// The packets of a segment are larger than the MTU of its devices.
    #[error(
        "packets of {mtu} bytes do not fit {device:?} of node {node:?}, which has an MTU of {device_mtu}{}",
        after_vxlan(*.device_mtu, *.most)
    )]
    MtuTooLarge {
        /// The segment's MTU.
        mtu: Mtu,
        /// The device's MTU.
        device_mtu: u32,
        /// What fits, without what the fabric adds.
        most: u32,
        /// The narrowest device.
        device: String,
        /// Its node.
        node: String,
    },
    /// The MTU of a segment with IPv6 addresses is too small for IPv6.
    #[error("an MTU of {mtu} bytes is below the {least} that IPv6 needs")]
    MtuTooSmall {
        /// The segment's MTU.
        mtu: Mtu,
        /// What is needed.
        least: u16,
    },
    /// A network has too few addresses for a gateway.
    #[error("{prefix} has no address for a gateway: the network has one address only")]
    NoGateway {
        /// The network.
        prefix: String,
    },
    /// Traffic from one source to one destination would use two VRFs.
    #[error(
        "traffic {traffic} would go through VRF {vrf:?} and, for {by}, through VRF {other_vrf:?}"
    )]
    SourceAmbiguous {
        /// Where the traffic comes from, and where it goes.
        traffic: String,
        /// The VRF that this object asks for.
        vrf: String,
        /// The VRF it goes through.
        other_vrf: String,
        /// The other object.
        by: Box<ObjectRef>,
    },
    /// One object reaches the same prefix through two VRFs.
    #[error(
        "{prefix} is behind VRF {vrf:?} ({destination}) and behind VRF {other_vrf:?} ({other})"
    )]
    PrefixInTwoVrfs {
        /// The prefix.
        prefix: String,
        /// A VRF.
        vrf: String,
        /// The Destination with the prefix in that VRF.
        destination: Box<ObjectRef>,
        /// The other VRF.
        other_vrf: String,
        /// The Destination with the prefix in the other VRF.
        other: Box<ObjectRef>,
    },
    /// Too many sources of source-based routing are nested.
    #[error("more than {most} sources of source-based routing are nested inside {around}")]
    SourcesTooDeep {
        /// The source around them.
        around: String,
        /// The maximum number.
        most: usize,
    },
    /// A Network with a VNI is attached to a device of the node.
    #[error(
        "{network} has VNI {vni}, which is for the fabric, but this attachment is on a device of the node"
    )]
    NetworkHasVni {
        /// The network.
        network: ObjectRef,
        /// Its VNI.
        vni: Vni,
    },
    /// An attachment to a device of the node selects a Destination behind a VRF.
    #[error(
        "{destination} is behind a VRF, which an attachment to a device of the node does not reach"
    )]
    VrfWithoutFabric {
        /// The Destination.
        destination: ObjectRef,
    },
    /// Two Destinations have one prefix with different next hops.
    #[error("{destination} and {other} lead to {prefix} by different next hops")]
    PrefixByTwoNextHops {
        /// The prefix.
        prefix: String,
        /// One of them.
        destination: Box<ObjectRef>,
        /// The other.
        other: Box<ObjectRef>,
    },
    /// A next hop cannot be reached from the segment.
    #[error("{next_hop}, the next hop to {prefix}, is in none of the segment's networks")]
    NextHopOutside {
        /// The next hop.
        next_hop: String,
        /// Where it leads.
        prefix: String,
    },
    /// Routes by next hops need addresses of the nodes.
    #[error("routes by next hops need an address of the node on the segment")]
    NodeIpsRequired,
    /// Two objects configure a route to one prefix on a node.
    #[error("{by} already gives node {node:?} a route to {prefix}")]
    HostRouteTaken {
        /// The prefix.
        prefix: String,
        /// The older object.
        by: Box<ObjectRef>,
        /// A node that both select.
        node: String,
    },
    /// A node does not have the device that carries the VLAN.
    #[error("node {node:?} has no interface {interface:?}{}", and_others(*.others))]
    InterfaceNotFound {
        /// The device.
        interface: String,
        /// The first node without it.
        node: String,
        /// How many more nodes lack it.
        others: usize,
    },
    /// The device belongs to the router.
    #[error("{interface:?} {why}, which carries no VLAN of the host")]
    InterfaceInUse {
        /// The device.
        interface: String,
        /// What it is used for.
        why: String,
    },
    /// An SR-IOV attachment with an interface on the nodes reaches several VRFs.
    #[error(
        "an attachment with SR-IOV and interfaceName reaches one VRF, but this one reaches {vrfs}"
    )]
    SriovSeveralVrfs {
        /// How many.
        vrfs: usize,
    },
    /// Two peerings configure the same session.
    #[error("{by} already has the sessions with {peer} in VRF {vrf:?}")]
    PeerTaken {
        /// The peer, or the network that peers are in.
        peer: String,
        /// The VRF.
        vrf: String,
        /// The older object.
        by: Box<ObjectRef>,
    },
    /// A peering is on a segment without a gateway in a VRF.
    #[error("{segment} has no gateway in a VRF, which the sessions of peers need")]
    PeeringWithoutGateway {
        /// The segment.
        segment: ObjectRef,
    },
    /// A peering selects nodes, none of which has its segment.
    #[error("none of the selected nodes has {segment}")]
    PeeringNowhere {
        /// The segment.
        segment: ObjectRef,
    },
    /// The router cannot reach a peer on the host.
    #[error("the router cannot reach {peer}: the trunk has no address of that family")]
    NoWayToPeer {
        /// The peer.
        peer: String,
    },
    /// The timers of BGP are out of range.
    #[error("holdTime must be 0 or 3–65535 seconds, and keepaliveTime must not exceed it")]
    TimersDoNotFit,
    /// The AS number of the workloads is not set.
    #[error("the AS number of the workloads is set neither here nor in Settings")]
    WorkloadAsRequired,
    /// There is no gateway with which workloads could open a session.
    #[error(
        "the sessions of workloads need a gateway: disableAnycast is set, or the Network has no addresses"
    )]
    GatewayRequired,
    /// The load balancer announces the addresses that workloads should announce.
    #[error("{inbound} has a pool of the load balancer, which announces its addresses by itself")]
    InboundHasPool {
        /// The Inbound.
        inbound: ObjectRef,
    },
    /// Inbounds of one neighbor are on different nodes.
    #[error(
        "{inbound} and {other} select different nodes, but the Inbounds of one neighbor must select the same nodes"
    )]
    InboundsApart {
        /// An Inbound.
        inbound: ObjectRef,
        /// The first of the list.
        other: Box<ObjectRef>,
    },
    /// There is no link over which workloads would open their sessions.
    #[error("workloads open their sessions over the trunk, which has no address")]
    TrunkRequired,
    /// An intent and a hand-written low-level object configure the same resource.
    #[error("{scope} is configured by {by}; an intent and a low-level object cannot share it")]
    LowLevelConflict {
        /// What both configure.
        scope: String,
        /// The object that has it.
        by: ObjectRef,
    },
    /// A mirror VRF does not have exactly one loopback, at which tunnels start.
    #[error("{vrf} has {loopbacks} loopbacks, a mirror VRF has exactly one")]
    MirrorVrfLoopbacks {
        /// The VRF.
        vrf: ObjectRef,
        /// How many it has.
        loopbacks: usize,
    },
    /// The tunnel of a mirror is in a VRF that no object configures.
    #[error("there is no VRFRouteConfiguration of VRF {vrf:?}")]
    MirrorVrfMissing {
        /// Name of the VRF.
        vrf: String,
    },
    /// The tunnel of a mirror starts on a loopback that no object configures.
    #[error("no VRFRouteConfiguration gives VRF {vrf:?} a loopback {loopback:?}")]
    LoopbackMissing {
        /// Name of the VRF.
        vrf: String,
        /// The loopback.
        loopback: String,
    },
    /// The tunnel of a mirror starts on a loopback that the node does not have.
    #[error("no VRFRouteConfiguration gives VRF {vrf:?} a loopback {loopback:?} on node {node:?}")]
    LoopbackNotOnNode {
        /// Name of the VRF.
        vrf: String,
        /// The loopback.
        loopback: String,
        /// A node without it.
        node: String,
    },
    /// Two objects take the addresses of one loopback from different pools.
    #[error("{other} already takes the addresses of loopback {loopback:?} from another pool")]
    LoopbackDisagrees {
        /// The loopback.
        loopback: String,
        /// The older object.
        other: ObjectRef,
    },
    /// The name of a loopback is reserved for other devices.
    #[error("loopback {loopback:?} has a name that is reserved for other devices of the node")]
    LoopbackNameReserved {
        /// The loopback.
        loopback: String,
    },
    /// A reference does not name an address pool.
    #[error("{kind} {name} is not an address pool: apiGroup is missing")]
    NoPool {
        /// Kind of the reference.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A reference names an object of the wrong kind.
    #[error("refers to {found}, but must refer to {wanted}")]
    WrongReference {
        /// Where it leads.
        found: String,
        /// Where it must lead.
        wanted: &'static str,
    },
    /// The source of a mirror is not on the fabric.
    #[error("traffic of {mirrored} does not pass the fabric side of the nodes: {why}")]
    NothingToMirror {
        /// Its source.
        mirrored: ObjectRef,
        /// Why.
        why: &'static str,
    },
    /// A mirror would copy its own copies.
    #[error("the copies are sent through VRF {vrf:?}, so they would be copied again")]
    MirrorOfItself {
        /// The VRF.
        vrf: String,
    },
    /// The match of a mirror excludes all addresses of its source.
    #[error("{mirrored} has no address that this matches")]
    MatchesNothing {
        /// Its source.
        mirrored: ObjectRef,
    },
    /// A provider allocated one address to two nodes.
    #[error("{address} is already allocated by {by}")]
    AddressGivenTwice {
        /// The address.
        address: IpAddr,
        /// The other object with the address.
        by: ObjectRef,
    },
    /// A node uses an address that its pool no longer allocates to it.
    #[error(
        "node {node:?} keeps its address {address}: {pool} has allocated none for IPAddressClaim {claim}"
    )]
    AddressKept {
        /// The address.
        address: IpAddr,
        /// The node.
        node: String,
        /// The claim that is open.
        claim: String,
        /// The pool.
        pool: String,
    },
    /// Two tunnels have the same source, destination and key.
    #[error("{by} already has a tunnel with this source, destination and key")]
    TunnelTaken {
        /// The object that has it.
        by: ObjectRef,
    },
    /// A tunnel's two ends are of different families.
    #[error(
        "the tunnel would start at {source_address} and end at {destination}: addresses of one family are needed"
    )]
    TunnelFamilies {
        /// Where it would start.
        source_address: IpAddr,
        /// Where it would end.
        destination: IpAddr,
    },
    /// A tunnel would end where it starts.
    #[error(
        "{address} is the address that the tunnel starts at on node {node:?}: the copies would never leave the node"
    )]
    TunnelToItself {
        /// The address.
        address: IpAddr,
        /// The node.
        node: String,
    },
    /// Two different VRFs have the same route target.
    #[error(
        "{other} has route target {target} too: each of the two VRFs imports the routes of the other"
    )]
    RouteTargetShared {
        /// The route target.
        target: String,
        /// The older object.
        other: ObjectRef,
    },
    /// The network of a service is a part of a segment's network, in one VRF.
    #[error(
        "{network} is a part of {other} of {by}, and VRF {vrf:?} has both: packets to workloads of that segment with an address of {network} are dropped"
    )]
    PartOfASegment {
        /// The service's network.
        network: Prefix,
        /// The segment's.
        other: String,
        /// The object of the segment.
        by: Box<ObjectRef>,
        /// The VRF.
        vrf: String,
    },
    /// The object was deleted, and another object needs it.
    #[error("was deleted: its last spec stays in effect, because {by}{} needs it", and_more(*.others))]
    DeletedKept {
        /// An object that needs it.
        by: Box<ObjectRef>,
        /// How many others do.
        others: usize,
    },
    /// A user created an object with the name of one that an intent already generates.
    #[error("{by} already generates an object with this name")]
    NameGenerated {
        /// The intent.
        by: Box<ObjectRef>,
    },
    /// An existing object has the name of one that an intent would generate.
    #[error("{name:?} exists and is not generated from this object")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// An address or a network is reserved for another purpose than unicast.
    #[error("{value} {} {range}: {what}", inside(*.is_inside))]
    SpecialAddress {
        /// The address or network.
        value: String,
        /// The reserved range.
        range: String,
        /// What its addresses are.
        what: &'static str,
        /// Whether it is inside of the range; else it is around it.
        is_inside: bool,
    },
    /// The MAC address cannot be used for an interface.
    #[error("{mac} is {what}, which no interface can have")]
    SpecialMac {
        /// The MAC address.
        mac: MacAddress,
        /// What it is.
        what: &'static str,
    },
    /// A network that should be announced is inside of a network that nodes never announce.
    #[error("{network} is inside of {other} ({field}), which no node announces")]
    NeverAnnounced {
        /// The network.
        network: Prefix,
        /// The network around it.
        other: Prefix,
        /// The field that has the network around it.
        field: &'static str,
    },
    /// Nodes get a VTEP, but no session exchanges EVPN routes.
    #[error(
        "no neighbor exchanges EVPN routes, so nodes with a VTEP could not reach any VRF or segment"
    )]
    NoEvpnNeighbor,
    /// An edit replaces the configuration in use with a field that this version does not compile.
    #[error("{what} is not compiled by this version, so the spec before this edit stays in effect")]
    NotCompiledKept {
        /// What it is.
        what: &'static str,
    },
    /// The address of the router on the trunk cannot be derived from that of the node.
    #[error(
        "{address} is not in a network of two addresses, so the address of the router does not follow from it"
    )]
    TrunkNotOfTwo {
        /// The node's address.
        address: String,
    },
    /// Nodes with the same VNI have VTEPs of different address families.
    #[error(
        "nodes of {other} have VTEPs of the other address family, and both have VNI {vni}{}: they cannot exchange packets",
        and_more(*.others)
    )]
    VtepFamilies {
        /// An Underlay with VTEPs of the other family.
        other: ObjectRef,
        /// The first VNI that nodes of both have.
        vni: Vni,
        /// How many more there are.
        others: usize,
    },
    /// Virtual functions of different devices have the same resource name.
    #[error(
        "its SR-IOV devices and those of {other_device} ({other}) are one resource {resource:?}: a pod may get a device of the other"
    )]
    DevicesAreOneResource {
        /// The resource of both.
        resource: String,
        /// The device of the other one.
        other_device: String,
        /// The other attachment.
        other: ObjectRef,
    },
    /// Two `FRRConfiguration`s give one setting of a node two values.
    #[error("{}: {} here, and {} in {} {}{}", .0.what, .0.own, .0.theirs, .0.other, .0.field, on(.0.node.as_ref()))]
    ConfigurationsDisagree(Box<Disagreement>),
    /// The filters of two neighbors of the host's router would have one name.
    #[error("the filters of this neighbor would have the name {name:?}, which those of a neighbor of {by} have{}", on(.node.as_ref()))]
    FilterNameTaken {
        /// The name.
        name: String,
        /// The object that has the other neighbor.
        by: Box<ObjectRef>,
        /// A node that both select.
        node: Option<String>,
    },
    /// EVPN settings are on a router of the host that has no EVPN neighbor.
    #[error(
        "{what} needs a neighbor with address family evpn, and the router of VRF {vrf:?} has none{}",
        on(.node.as_ref())
    )]
    EvpnNeighborRequired {
        /// The setting.
        what: &'static str,
        /// VRF of the router.
        vrf: String,
        /// A node without such a neighbor.
        node: Option<String>,
    },
    /// A layer 3 VNI and neighbors are on one router of the host.
    #[error(
        "a router with l3vni has no neighbors, and VRF {vrf:?} would have both with {by}{}",
        on(.node.as_ref())
    )]
    L3VniWithNeighbors {
        /// VRF of the router.
        vrf: String,
        /// The object that has the other of the two.
        by: Box<ObjectRef>,
        /// A node that both select.
        node: Option<String>,
    },
    /// Raw FRR configuration is not allowed.
    #[error(
        "raw FRR configuration is not allowed in this cluster: the rest of the object is used without it"
    )]
    RawNotAllowed,
    /// An `FRRConfiguration` is in a namespace that is not used.
    #[error(
        "FRRConfigurations in namespace {namespace:?} are not used: no node gets anything of this object"
    )]
    NamespaceNotUsed {
        /// The namespace.
        namespace: String,
    },
    /// A password is in clear text in an object that is not a Secret.
    #[error("a password in clear text: every user who can read this object can read it")]
    InlinePassword,
    /// A network has host bits that are not zero.
    #[error("{written} is read as {network}: the host bits are ignored")]
    HostBits {
        /// What is written.
        written: HostCidr,
        /// The network.
        network: Prefix,
    },
    /// The field is accepted and validated, but this version does not compile it.
    #[error("{what} is accepted but not compiled by this version")]
    NotCompiledYet {
        /// What it is.
        what: &'static str,
    },
    /// The field has no effect as it is used here.
    #[error("{what}")]
    NoEffect {
        /// What and why.
        what: String,
    },
}

impl Kind {
    /// One word for programs: the name of the variant.
    pub fn reason(&self) -> &'static str {
        self.into()
    }
}

impl Problem {
    /// A problem of `subject`, at a field of it.
    pub fn new(subject: ObjectRef, field: impl Into<String>, kind: Kind) -> Self {
        Self {
            subject,
            field: field.into(),
            kind,
        }
    }

    /// Its severity.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)?;
        if !self.field.is_empty() {
            write!(f, " {}", self.field)?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Written<'a> {
            object: &'a ObjectRef,
            #[serde(skip_serializing_if = "str::is_empty")]
            field: &'a str,
            severity: Severity,
            reason: &'static str,
            message: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            remedy: Option<String>,
        }
        Written {
            object: &self.subject,
            field: &self.field,
            severity: self.severity(),
            reason: self.kind.reason(),
            message: self.kind.to_string(),
            remedy: self.kind.remedy(),
        }
        .serialize(serializer)
    }
}
