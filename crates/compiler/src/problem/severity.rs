//! The severity of each problem.

use serde::Serialize;

use super::Kind;

/// Severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// The object, or a part of it, is not in effect.
    Error,
    /// The object is in effect, but not all of its fields.
    Warning,
}

impl Kind {
    /// Its severity.
    #[expect(
        clippy::too_many_lines,
        reason = "every kind is listed, so that a new one does not compile before it is decided"
    )]
    pub fn severity(&self) -> Severity {
        match self {
            Self::NotCompiledYet { .. }
            | Self::NoEffect { .. }
            | Self::SettingsDeleted { .. }
            | Self::DeletedKept { .. }
            | Self::AddressKept { .. }
            | Self::DestinationLeftOut { .. }
            | Self::DestinationKept { .. }
            | Self::RouteTargetShared { .. }
            | Self::DevicesAreOneResource { .. }
            | Self::PartOfASegment { .. }
            | Self::UnderlaysMayMeet { .. }
            | Self::HostBits { .. }
            | Self::VniMeansTwo { .. }
            | Self::InlinePassword
            | Self::RawNotAllowed
            | Self::LeftOutByFrr { .. }
            | Self::VrfShared { .. }
            | Self::BridgeShared { .. }
            | Self::NamespaceNotUsed { .. }
            | Self::VtepFamilies { .. } => Severity::Warning,
            Self::Unreadable { .. }
            | Self::UnknownField { .. }
            | Self::RuleBroken { .. }
            | Self::Duplicate { .. }
            | Self::MissingReference { .. }
            | Self::UnreadableReference { .. }
            | Self::ReferenceNotInEffect { .. }
            | Self::InvalidSelector { .. }
            | Self::BreaksAnother { .. }
            | Self::LineTwice { .. }
            | Self::SeqTwice { .. }
            | Self::NoDestination { .. }
            | Self::DestinationsRequired { .. }
            | Self::NetworkLacks { .. }
            | Self::VrfIncomplete { .. }
            | Self::VrfDisagrees { .. }
            | Self::VrfNameTaken { .. }
            | Self::VrfTaken { .. }
            | Self::NeedsDaemon { .. }
            | Self::VtepFamilyMissing { .. }
            | Self::NoVtepOnDevice { .. }
            | Self::VtepDeviceOutside { .. }
            | Self::FrrTooOld { .. }
            | Self::VrfNotOnNode { .. }
            | Self::VlanTaken { .. }
            | Self::VniTaken { .. }
            | Self::DeviceNameTaken { .. }
            | Self::DeviceNameReserved { .. }
            | Self::NetworksOverlap { .. }
            | Self::NameTooLong { .. }
            | Self::SecondUnderlay { .. }
            | Self::NeighborInVtepPool { .. }
            | Self::VtepPoolsOverlap { .. }
            | Self::NoUnderlay { .. }
            | Self::PoolExhausted { .. }
            | Self::AddressTaken { .. }
            | Self::NoHostAddress { .. }
            | Self::TooFewAddresses { .. }
            | Self::NetworkTaken { .. }
            | Self::PoolTaken { .. }
            | Self::NeedsLegacyFlavour { .. }
            | Self::NoVniRange { .. }
            | Self::NoVniLeft { .. }
            | Self::MtuTooLarge { .. }
            | Self::MtuTooSmall { .. }
            | Self::NoGateway { .. }
            | Self::SourceAmbiguous { .. }
            | Self::PrefixInTwoVrfs { .. }
            | Self::SourcesTooDeep { .. }
            | Self::NetworkHasVni { .. }
            | Self::VrfWithoutFabric { .. }
            | Self::PrefixByTwoNextHops { .. }
            | Self::NextHopOutside { .. }
            | Self::NodeIpsRequired { .. }
            | Self::HostRouteTaken { .. }
            | Self::InterfaceNotFound { .. }
            | Self::InterfaceInUse { .. }
            | Self::SriovSeveralVrfs { .. }
            | Self::PeerTaken { .. }
            | Self::PeeringWithoutGateway { .. }
            | Self::PeeringNowhere { .. }
            | Self::NoWayToPeer { .. }
            | Self::TimersDoNotFit { .. }
            | Self::WorkloadAsRequired { .. }
            | Self::GatewayRequired { .. }
            | Self::InboundHasPool { .. }
            | Self::InboundsApart { .. }
            | Self::TrunkRequired { .. }
            | Self::LowLevelConflict { .. }
            | Self::MirrorVrfLoopbacks { .. }
            | Self::MirrorVrfMissing { .. }
            | Self::LoopbackMissing { .. }
            | Self::LoopbackNotOnNode { .. }
            | Self::LoopbackDisagrees { .. }
            | Self::LoopbackNameReserved { .. }
            | Self::NoPool { .. }
            | Self::WrongReference { .. }
            | Self::NothingToMirror { .. }
            | Self::MirrorOfItself { .. }
            | Self::MatchesNothing { .. }
            | Self::AddressGivenTwice { .. }
            | Self::TunnelTaken { .. }
            | Self::TunnelFamilies { .. }
            | Self::TunnelToItself { .. }
            | Self::SpecialAddress { .. }
            | Self::SpecialMac { .. }
            | Self::NeverAnnounced { .. }
            | Self::NoEvpnNeighbor { .. }
            | Self::NotCompiledKept { .. }
            | Self::TrunkNotOfTwo { .. }
            | Self::ConfigurationsDisagree(_)
            | Self::FilterNameTaken { .. }
            | Self::EvpnNeighborRequired { .. }
            | Self::L3VniWithNeighbors { .. }
            | Self::NameTaken { .. }
            | Self::NameGenerated { .. } => Severity::Error,
        }
    }
}
