//! Consequences of a problem: which object it conflicts with, and whether the object keeps its last valid state.

use super::{Kind, Problem, Severity};
use crate::snapshot::{Kind as ObjectKind, ObjectRef};

impl Problem {
    /// Whether it stops an object that is in effect. A removed Destination is withdrawn on purpose, a node that would lose its overlay waits
    /// for an approval, and mirrored traffic belongs to its author: a mirror keeps no traffic alive.
    pub(crate) fn is_harm(&self) -> bool {
        let is_on_purpose = matches!(
            self.kind,
            Kind::NoDestination { .. } | Kind::NoUnderlay { .. } | Kind::NothingToMirror { .. }
        );
        self.severity() == Severity::Error && !is_on_purpose && !self.is_about_what_is_mirrored()
    }

    /// Whether something is wrong with what a mirror copies, and not with where it copies it to.
    fn is_about_what_is_mirrored(&self) -> bool {
        let sources = [
            (ObjectKind::TrafficMirror, "spec.source"),
            (ObjectKind::MirrorSelector, "spec.mirrorSource"),
        ];
        let mut sources = sources.into_iter();
        sources.any(|(kind, field)| self.subject.kind == kind && self.field.starts_with(field))
    }
}

impl Kind {
    /// The object that has the resource that this one needs.
    pub fn rival(&self) -> Option<&ObjectRef> {
        match self {
            Self::VrfDisagrees { other: by, .. }
            | Self::VlanTaken { by, .. }
            | Self::VniTaken { by, .. }
            | Self::DeviceNameTaken { by, .. }
            | Self::AddressTaken { by, .. }
            | Self::NetworkTaken { by, .. }
            | Self::PoolTaken { by, .. }
            | Self::LowLevelConflict { by, .. }
            | Self::LoopbackDisagrees { other: by, .. }
            | Self::VtepPoolsOverlap { by, .. }
            | Self::TunnelTaken { by } => Some(by),
            Self::NetworksOverlap { by, .. }
            | Self::VrfTaken { by, .. }
            | Self::SourceAmbiguous { by, .. }
            | Self::HostRouteTaken { by, .. }
            | Self::PeerTaken { by, .. }
            | Self::FilterNameTaken { by, .. }
            | Self::L3VniWithNeighbors { by, .. } => Some(by),
            Self::ConfigurationsDisagree(disagreement) => Some(&disagreement.other),
            _ => None,
        }
    }

    /// A node on which objects meet that cannot be in effect together.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::VlanTaken { node, .. }
            | Self::VniTaken { node, .. }
            | Self::FilterNameTaken { node, .. }
            | Self::EvpnNeighborRequired { node, .. }
            | Self::L3VniWithNeighbors { node, .. } => node.as_deref(),
            Self::ConfigurationsDisagree(disagreement) => disagreement.node.as_deref(),
            _ => None,
        }
    }

    /// Whether an object with this problem keeps its last valid state: the spec itself is wrong. A device or an address that a node lacks
    /// is not a mistake in the spec, and stops the object on that node only.
    #[expect(
        clippy::too_many_lines,
        reason = "a table with one entry for each kind; in parts it would need a catch-all, which a new kind falls into"
    )]
    pub fn is_mistake(&self) -> bool {
        match self {
            Self::Unreadable { .. }
            | Self::RuleBroken { .. }
            | Self::MissingReference { .. }
            | Self::UnreadableReference { .. }
            | Self::ReferenceNotInEffect { .. }
            | Self::InvalidSelector(_)
            | Self::DestinationsRequired
            | Self::NetworkLacks { .. }
            | Self::VrfIncomplete { .. }
            | Self::VrfDisagrees { .. }
            | Self::VrfNameTaken { .. }
            | Self::VrfTaken { .. }
            | Self::NeedsDaemon { .. }
            | Self::VlanTaken { .. }
            | Self::VniTaken { .. }
            | Self::DeviceNameTaken { .. }
            | Self::DeviceNameReserved { .. }
            | Self::NetworksOverlap { .. }
            | Self::NameTooLong { .. }
            | Self::AddressTaken { .. }
            | Self::NoHostAddress { .. }
            | Self::TooFewAddresses { .. }
            | Self::NetworkTaken { .. }
            | Self::PoolTaken { .. }
            | Self::NeedsLegacyFlavour { .. }
            | Self::NoVniRange
            | Self::NoVniLeft
            | Self::MtuTooSmall { .. }
            | Self::NoGateway { .. }
            | Self::SourceAmbiguous { .. }
            | Self::PrefixInTwoVrfs { .. }
            | Self::SourcesTooDeep { .. }
            | Self::NetworkHasVni { .. }
            | Self::VrfWithoutFabric { .. }
            | Self::PrefixByTwoNextHops { .. }
            | Self::NextHopOutside { .. }
            | Self::NodeIpsRequired
            | Self::HostRouteTaken { .. }
            | Self::InterfaceInUse { .. }
            | Self::SriovSeveralVrfs { .. }
            | Self::PeerTaken { .. }
            | Self::PeeringWithoutGateway { .. }
            | Self::NoWayToPeer { .. }
            | Self::TimersDoNotFit
            | Self::WorkloadAsRequired
            | Self::GatewayRequired
            | Self::InboundHasPool { .. }
            | Self::InboundsApart { .. }
            | Self::TrunkRequired
            | Self::LowLevelConflict { .. }
            | Self::MirrorVrfLoopbacks { .. }
            | Self::MirrorVrfMissing { .. }
            | Self::LoopbackMissing { .. }
            | Self::LoopbackDisagrees { .. }
            | Self::LoopbackNameReserved { .. }
            | Self::NoPool { .. }
            | Self::WrongReference { .. }
            | Self::NothingToMirror { .. }
            | Self::MirrorOfItself { .. }
            | Self::MatchesNothing { .. }
            | Self::TunnelTaken { .. }
            | Self::NameTaken { .. }
            | Self::NameGenerated { .. }
            | Self::BreaksAnother { .. }
            | Self::LineTwice { .. }
            | Self::SeqTwice { .. }
            | Self::NeighborInVtepPool { .. }
            | Self::VtepPoolsOverlap { .. }
            | Self::SecondUnderlay { .. }
            | Self::SpecialAddress { .. }
            | Self::SpecialMac { .. }
            | Self::NeverAnnounced { .. }
            | Self::NoEvpnNeighbor
            | Self::NotCompiledKept { .. }
            | Self::ConfigurationsDisagree(_)
            | Self::FilterNameTaken { .. }
            | Self::EvpnNeighborRequired { .. }
            | Self::L3VniWithNeighbors { .. }
            | Self::TrunkNotOfTwo { .. } => true,
            Self::UnknownField
            | Self::VtepFamilyMissing { .. }
            | Self::NoVtepOnDevice { .. }
            | Self::VtepDeviceOutside { .. }
            | Self::FrrTooOld { .. }
            | Self::UnderlaysMayMeet { .. }
            | Self::HostBits { .. }
            | Self::VniMeansTwo { .. }
            | Self::InlinePassword
            | Self::RawNotAllowed
            | Self::LeftOutByFrr { .. }
            | Self::VrfShared { .. }
            | Self::BridgeShared { .. }
            | Self::NamespaceNotUsed { .. }
            | Self::Duplicate
            | Self::SettingsDeleted
            | Self::DeletedKept { .. }
            | Self::AddressKept { .. }
            | Self::NoDestination { .. }
            | Self::DestinationLeftOut { .. }
            | Self::DestinationKept { .. }
            | Self::VrfNotOnNode { .. }
            | Self::NoUnderlay { .. }
            | Self::PoolExhausted { .. }
            | Self::MtuTooLarge { .. }
            | Self::InterfaceNotFound { .. }
            | Self::PeeringNowhere { .. }
            | Self::LoopbackNotOnNode { .. }
            | Self::AddressGivenTwice { .. }
            | Self::TunnelFamilies { .. }
            | Self::TunnelToItself { .. }
            | Self::RouteTargetShared { .. }
            | Self::PartOfASegment { .. }
            | Self::VtepFamilies { .. }
            | Self::DevicesAreOneResource { .. }
            | Self::NotCompiledYet { .. }
            | Self::NoEffect { .. } => false,
        }
    }
}
