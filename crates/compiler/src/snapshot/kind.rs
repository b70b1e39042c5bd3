//! The kinds a snapshot knows.

use strum::IntoEnumIterator;

use crate::{names, platform::ipam};

/// A kind of object that a snapshot holds.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::EnumCount,
    strum::EnumIter,
    strum::IntoStaticStr,
)]
#[expect(missing_docs, reason = "each variant is the kind it names")]
pub enum Kind {
    Node,
    Settings,
    Underlay,
    #[strum(serialize = "L3VNI")]
    L3Vni,
    #[strum(serialize = "L2VNI")]
    L2Vni,
    L3Passthrough,
    #[strum(serialize = "VRF")]
    Vrf,
    Network,
    Destination,
    Layer2Attachment,
    Inbound,
    Outbound,
    #[strum(serialize = "BGPNeighbor")]
    BgpNeighbor,
    PodNetwork,
    Collector,
    TrafficMirror,
    Layer2NetworkConfiguration,
    #[strum(serialize = "VRFRouteConfiguration")]
    VrfRouteConfiguration,
    #[strum(serialize = "BGPPeering")]
    BgpPeering,
    MirrorTarget,
    MirrorSelector,
    NetworkConfigRevision,
    NetworkConfigRevisionPart,
    NodeNetworkConfig,
    NodeNetworkStatus,
    #[strum(serialize = "FRRConfiguration")]
    FrrConfiguration,
    #[strum(serialize = "FRRNodeState")]
    FrrNodeState,
    #[strum(serialize = "BGPSessionState")]
    BgpSessionState,
    #[strum(serialize = "PodNetwork")]
    MultiPodNetwork,
    #[strum(serialize = "IPAddressClaim")]
    IpAddressClaim,
    #[strum(serialize = "IPAddress")]
    IpAddress,
}

/// A kind of intent, in the order of service: each after those whose results it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::EnumIter)]
#[expect(missing_docs, reason = "each variant is the kind it names")]
pub enum IntentKind {
    Layer2Attachment,
    Inbound,
    Outbound,
    PodNetwork,
    BgpNeighbor,
    Collector,
    TrafficMirror,
}

/// What objects of a kind are to a compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// They become low-level objects.
    Intent(IntentKind),
    /// Intents refer to them.
    Referenced,
    /// Nodes get them.
    LowLevel,
    /// A node.
    Node,
    /// The settings.
    Settings,
    /// What nodes have of the fabric.
    Underlay,
    /// Nodes get them, in the fabric that their Underlay plugs them into.
    Overlay,
    /// Nodes get them, for the router of the host.
    HostRouter,
    /// They are accepted, and nothing is made of them.
    NotCompiled,
    /// The operator writes them from what was compiled.
    Result,
    /// Nodes write them.
    Report,
    /// The operator asks for an address.
    Claim,
    /// The answer.
    Address,
}

/// What intents of a kind have of a Network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A segment, with its gateways.
    Attachment,
    /// Addresses, and objects on the platform that use them.
    Service,
    /// Nothing.
    Other,
}

impl IntentKind {
    /// What it has of a Network.
    pub const fn role(self) -> Role {
        match self {
            Self::Layer2Attachment => Role::Attachment,
            Self::Inbound | Self::Outbound | Self::PodNetwork => Role::Service,
            Self::BgpNeighbor | Self::Collector | Self::TrafficMirror => Role::Other,
        }
    }

    /// Whether it needs a pool of the platform over its Network.
    pub(crate) const fn needs_pool(self) -> bool {
        match self {
            Self::Outbound | Self::PodNetwork => true,
            Self::Layer2Attachment
            | Self::Inbound
            | Self::BgpNeighbor
            | Self::Collector
            | Self::TrafficMirror => false,
        }
    }

    /// Whether it selects Destinations.
    pub const fn selects_destinations(self) -> bool {
        match self {
            Self::Layer2Attachment | Self::Inbound | Self::Outbound | Self::PodNetwork => true,
            Self::BgpNeighbor | Self::Collector | Self::TrafficMirror => false,
        }
    }

    /// Whether it is lowered from what other intents became, and so after them.
    pub const fn is_above(self) -> bool {
        match self {
            Self::Layer2Attachment
            | Self::Inbound
            | Self::Outbound
            | Self::PodNetwork
            | Self::Collector => false,
            Self::BgpNeighbor | Self::TrafficMirror => true,
        }
    }
}

/// Domains whose groups have kinds with names such as `Network`, `PodNetwork` or `Settings` of their own.
const OTHERS: [&str; 11] = [
    "k8s.io",
    "x-k8s.io",
    "kubernetes.io",
    "openshift.io",
    "gke.io",
    "cloud.google.com",
    "crossplane.io",
    "upbound.io",
    "cattle.io",
    "harvesterhci.io",
    "k-orc.cloud",
];

/// What an `apiVersion` and a `kind` mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A kind that a snapshot holds.
    Ours(Kind),
    /// A kind of a foreign group.
    Foreign,
    /// A kind of a foreign group with the name of one of ours, probably a mistake; with a remedy.
    Misplaced(String),
    /// No kind, or no version, of one of our groups; with what to do.
    Unknown(String),
}

impl Kind {
    /// Group and version the kind is served in.
    pub const fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("", "v1"),
            Self::Settings => ("selvedge.dev", "v1alpha1"),
            Self::Underlay | Self::L3Vni | Self::L2Vni | Self::L3Passthrough => {
                ("openpe.openperouter.github.io", "v1alpha1")
            }
            Self::FrrConfiguration | Self::FrrNodeState | Self::BgpSessionState => {
                ("frrk8s.metallb.io", "v1beta1")
            }
            Self::MultiPodNetwork => ("multinetwork.networking.x-k8s.io", "v1alpha1"),
            Self::IpAddressClaim | Self::IpAddress => (ipam::GROUP, ipam::VERSION),
            Self::Vrf
            | Self::Network
            | Self::Destination
            | Self::Layer2Attachment
            | Self::Inbound
            | Self::Outbound
            | Self::BgpNeighbor
            | Self::PodNetwork
            | Self::Collector
            | Self::TrafficMirror
            | Self::Layer2NetworkConfiguration
            | Self::VrfRouteConfiguration
            | Self::BgpPeering
            | Self::MirrorTarget
            | Self::MirrorSelector
            | Self::NetworkConfigRevision
            | Self::NetworkConfigRevisionPart
            | Self::NodeNetworkConfig
            | Self::NodeNetworkStatus => ("network.t-caas.telekom.com", "v1alpha1"),
        }
    }

    /// Older versions in which a cluster may serve the kind in place of the one above. What is read of it is the same in all of them.
    pub const fn older_versions(self) -> &'static [&'static str] {
        match self {
            Self::IpAddressClaim | Self::IpAddress => ipam::OLDER_VERSIONS,
            Self::Node
            | Self::Settings
            | Self::Underlay
            | Self::L3Vni
            | Self::L2Vni
            | Self::L3Passthrough
            | Self::FrrConfiguration
            | Self::FrrNodeState
            | Self::BgpSessionState
            | Self::MultiPodNetwork
            | Self::Vrf
            | Self::Network
            | Self::Destination
            | Self::Layer2Attachment
            | Self::Inbound
            | Self::Outbound
            | Self::BgpNeighbor
            | Self::PodNetwork
            | Self::Collector
            | Self::TrafficMirror
            | Self::Layer2NetworkConfiguration
            | Self::VrfRouteConfiguration
            | Self::BgpPeering
            | Self::MirrorTarget
            | Self::MirrorSelector
            | Self::NetworkConfigRevision
            | Self::NetworkConfigRevisionPart
            | Self::NodeNetworkConfig
            | Self::NodeNetworkStatus => &[],
        }
    }

    /// What objects of this kind are to a compile.
    pub const fn class(self) -> Class {
        match self {
            Self::Layer2Attachment => Class::Intent(IntentKind::Layer2Attachment),
            Self::Inbound => Class::Intent(IntentKind::Inbound),
            Self::Outbound => Class::Intent(IntentKind::Outbound),
            Self::PodNetwork => Class::Intent(IntentKind::PodNetwork),
            Self::BgpNeighbor => Class::Intent(IntentKind::BgpNeighbor),
            Self::Collector => Class::Intent(IntentKind::Collector),
            Self::TrafficMirror => Class::Intent(IntentKind::TrafficMirror),
            Self::Vrf | Self::Network | Self::Destination => Class::Referenced,
            Self::Layer2NetworkConfiguration
            | Self::VrfRouteConfiguration
            | Self::BgpPeering
            | Self::MirrorTarget
            | Self::MirrorSelector => Class::LowLevel,
            Self::Node => Class::Node,
            Self::Settings => Class::Settings,
            Self::Underlay => Class::Underlay,
            Self::L3Vni | Self::L2Vni | Self::L3Passthrough => Class::Overlay,
            Self::FrrConfiguration => Class::HostRouter,
            Self::MultiPodNetwork => Class::NotCompiled,
            Self::NetworkConfigRevision
            | Self::NetworkConfigRevisionPart
            | Self::NodeNetworkConfig => Class::Result,
            Self::NodeNetworkStatus | Self::FrrNodeState | Self::BgpSessionState => Class::Report,
            Self::IpAddressClaim => Class::Claim,
            Self::IpAddress => Class::Address,
        }
    }

    /// Which intent it is, if it becomes low-level objects.
    pub const fn intent(self) -> Option<IntentKind> {
        match self.class() {
            Class::Intent(kind) => Some(kind),
            Class::Referenced
            | Class::LowLevel
            | Class::Node
            | Class::Settings
            | Class::Underlay
            | Class::Overlay
            | Class::HostRouter
            | Class::NotCompiled
            | Class::Result
            | Class::Report
            | Class::Claim
            | Class::Address => None,
        }
    }

    /// What objects of this kind have of a Network.
    pub fn role(self) -> Role {
        self.intent().map_or(Role::Other, IntentKind::role)
    }

    /// Whether objects of this kind have addresses of a Network, and objects on the platform that use them.
    pub fn is_service(self) -> bool {
        self.role() == Role::Service
    }

    /// `apiVersion` of the kind.
    pub fn api_version(self) -> String {
        match self.group_version() {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        matches!(
            self,
            Self::Underlay
                | Self::L3Vni
                | Self::L2Vni
                | Self::L3Passthrough
                | Self::FrrConfiguration
                | Self::BgpSessionState
                | Self::IpAddressClaim
                | Self::IpAddress
        )
    }

    /// The namespace of an object in a file that names none; none for objects that live in no namespace.
    pub const fn default_namespace(self) -> Option<&'static str> {
        match self {
            Self::FrrConfiguration => Some(names::OWN_NAMESPACE),
            other if other.is_namespaced() => Some("default"),
            _ => None,
        }
    }

    /// Whether the kind is foreign: we read the fields that we need and report no problems of it.
    pub const fn is_borrowed(self) -> bool {
        matches!(self, Self::Node | Self::IpAddressClaim | Self::IpAddress)
    }

    /// Whether a cluster may do without the kind.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::IpAddressClaim | Self::IpAddress)
    }

    /// The meaning of a kind in a foreign group.
    ///
    /// A name that one of our kinds has is likely a wrong group. It is not in groups of Kubernetes and of platforms that have kinds of such
    /// names themselves ([`OTHERS`]), and not for names that are not ours.
    fn elsewhere(group: &str, kind: &str) -> Lookup {
        let is_below = |domain: &&str| {
            let before = group.strip_suffix(*domain);
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        let has_name = |one: &Self| !one.is_borrowed() && <&str>::from(one) == kind;
        let named: Vec<String> = Self::iter()
            .filter(has_name)
            .map(Self::api_version)
            .collect();
        if named.is_empty() || OTHERS.iter().any(is_below) {
            return Lookup::Foreign;
        }
        let group = if group.is_empty() {
            "the core group of Kubernetes"
        } else {
            group
        };
        Lookup::Misplaced(format!(
            "{kind} in {group} is ignored; Selvedge reads {kind} in {}",
            named.join(" and in ")
        ))
    }

    /// What this `apiVersion` and `kind` mean.
    pub fn find(api_version: &str, kind: &str) -> Lookup {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        // The source document spells the group of its PodNetwork in two ways; both mean the served one.
        let (group, version) = match (group, version) {
            ("multinetwork.networking.k8s.io", "v1") => {
                ("multinetwork.networking.x-k8s.io", "v1alpha1")
            }
            other => other,
        };
        let of_group = || Self::iter().filter(move |known| known.group_version().0 == group);
        // A group of ours without its version.
        if group.is_empty()
            && let Some(ours) = Self::iter()
                .find(|known| !known.is_borrowed() && known.group_version().0 == version)
        {
            return Lookup::Unknown(format!(
                "apiVersion {api_version} has no version: write {}",
                ours.api_version()
            ));
        }
        if let Some(known) = of_group().find(|known| <&str>::from(known) == kind) {
            return match known.group_version() {
                (_, served) if served == version => Lookup::Ours(known),
                // What we read of it is the same in every version.
                (ipam::GROUP, _) => Lookup::Ours(known),
                _ => Lookup::Unknown(format!(
                    "{api_version}: {kind} is served in {}; write that version",
                    known.api_version()
                )),
            };
        }
        if of_group().all(Self::is_borrowed) {
            return Self::elsewhere(group, kind);
        }
        let known: Vec<&str> = of_group().map(Into::into).collect();
        Lookup::Unknown(format!(
            "unknown kind {kind} in {group}; it has {}",
            known.join(", ")
        ))
    }
}
