//! All queries and indexes: what is computed from objects, in the order in which it goes down and back.

use strum::EnumCount as _;

use crate::{
    host_router, last_good,
    lower::{
        addresses, bgp_neighbor, inbound, intent, layer2_attachment, low_level, merge, network,
        reach, scope, vrf,
    },
    memo::{self, Registered},
    mirror, node,
    platform::{self, ipam, sriov},
    problems, revision,
    snapshot::{self, Kind},
    status,
    view::{AllUnread, Settings, Unreadable},
    writes,
};

/// The places of inputs that are no objects come after those of the kinds.
const UNREADABLE: usize = Kind::COUNT;
const PROBLEMS_NOW: usize = Kind::COUNT + 1;
const ABSENT_FOR: usize = Kind::COUNT + 2;
const TAKEN_BACK: usize = Kind::COUNT + 3;
const FIRST: usize = Kind::COUNT + 4;

impl Registered for Unreadable {
    const PLACE: usize = UNREADABLE;
    const NAME: &'static str = "Unreadable";
}

impl Registered for problems::ProblemsNow {
    const PLACE: usize = PROBLEMS_NOW;
    const NAME: &'static str = "ProblemsNow";
}

impl Registered for platform::state::AbsentFor {
    const PLACE: usize = ABSENT_FOR;
    const NAME: &'static str = "AbsentFor";
}

impl Registered for node::TakenBack {
    const PLACE: usize = TAKEN_BACK;
    const NAME: &'static str = "TakenBack";
}

memo::tables! {
    from FIRST;
    queries {
        Settings: Settings,
        AllUnread: AllUnread,
        AnyAbsent: platform::state::AnyAbsent,
        // What references resolve to.
        ResolvedVrfs: vrf::Resolved,
        ResolvedVrf: vrf::ResolvedOf,
        ChosenDestinations: reach::Chosen,
        Reach: reach::ReachOf,
        WantedVni: network::WantedVni,
        NetworkVnis: network::NetworkVnis,
        NetworkVni: network::VniOf,
        WorkloadIps: bgp_neighbor::WorkloadIps,
        // Who has which addresses.
        AddressClaims: addresses::ClaimsOn,
        AddressIslands: addresses::Islands,
        SharedOut: addresses::SharedOut,
        NodeShare: addresses::NodeShareOf,
        AddressedSegments: addresses::AddressedSegments,
        TakenAddresses: addresses::TakenOf,
        // Low-level objects.
        AllIntents: intent::AllIntents,
        Lower: intent::Lower,
        Merged: merge::Merged,
        AnyWaits: problems::AnyWaits,
        WantedHashes: merge::WantedHashes,
        ContestedNames: merge::ContestedNames<false>,
        ContestedNamesAbove: merge::ContestedNames<true>,
        HandWritten: low_level::HandWritten,
        InEffect: merge::InEffect,
        AttachmentAlone: layer2_attachment::LoweredAlone,
        WholeRevision: revision::parts::Whole,
        LastRevision: last_good::LastRevision,
        RevisionBase: revision::BaseOfAll,
        // Groups of nodes.
        Signature: node::SignatureOf,
        Requirements: node::Requirements,
        AskedLabels: node::AskedKeys,
        SelectsNoNode: node::SelectsNoNode,
        Members: node::MembersOf,
        FirstNode: node::FirstNode,
        HasOverlay: node::HasOverlay,
        VrfSaid: node::SaidOf,
        VrfNumbers: node::NumbersOfAll,
        GroupNumbers: node::NumbersFor,
        GroupClaims: node::ClaimsFor,
        Steering: node::SteeringFor,
        NamesOfRouteTables: node::NamesOfTables,
        RouteTables: node::Tables,
        GroupTables: node::TablesFor,
        WrongWithPeering: node::WrongWithPeering,
        Built: node::BuiltFor,
        // Nodes.
        UnderlayPlan: node::PlanOf,
        UnderlayContradictions: node::Contradictions,
        BothVtepFamilies: node::HasBothFamilies,
        SelectedUnderlays: node::SelectedPlans,
        RefusedUnderlays: node::Refused,
        GroupUnderlays: node::PlansFor,
        PoolAddresses: node::AddressesOfPool,
        VrfMtu: node::VrfMtuOf,
        UplinkMtu: node::UplinkMtuOf,
        OverlayObject: node::OverlayOf,
        SessionNetworks: node::SessionNetworks,
        NetworksOfSession: node::NetworksOfSession,
        SessionMembers: node::SessionMembers,
        FrrOf: node::FrrOf,
        RanksOfSession: node::RanksOf,
        AddressesOfSession: node::AddressesOfSession,
        SessionAddresses: node::SessionAddressesFor,
        NodeForwarding: node::ForwardingOf,
        AllMirrors: mirror::AllMirrors,
        HasMirrors: mirror::HasMirrors,
        ReadConfiguration: host_router::ReadOf,
        AnyConfigurations: host_router::AnyConfigurations,
        HostGroupOfNode: host_router::GroupOf,
        MergedConfigurations: host_router::MergedFor,
        HostRouters: host_router::RouterFor,
        NodeMirrors: mirror::MirrorsOf,
        HasExtras: node::HasExtras,
        NodeConfig: node::ConfigOf,
        // Back: what is wrong, how far nodes are, statuses, objects of other programs.
        PublishedConfig: node::PublishedOf,
        NodeProgress: node::ProgressOf,
        GroupProgress: status::GroupProgress,
        FabricProgress: status::FabricProgress,
        HostReports: status::HostReports,
        UnattachedOf: status::UnattachedOf,
        NotesNodesOutside: node::NotesNodesOutside,
        GroupCarriers: node::Carriers,
        FoundOnNodes: node::FoundOnNodes,
        NodesWithoutAddress: node::AllLacking,
        GroupProblems: node::ProblemsOfGroup,
        PeeringsInEffect: node::PeeringsInEffect,
        ObjectProblems: problems::ProblemsOf,
        AllProblems: problems::AllProblems,
        AllWithStatus: status::AllWithStatus,
        Status: status::StatusOf,
        Platform: platform::PlatformOf,
        NodeClaims: platform::ClaimsOf,
        HasClaims: platform::HasClaims,
        UnstoredObjects: writes::UnstoredOf,
        StaleObjects: writes::StaleOf,
        StatusToWrite: writes::StatusToWrite,
    }
    indexes {
        DestinationsByLabel: reach::DestinationsByLabel,
        AttachmentsByNetwork: network::AttachmentsByNetwork,
        ServedAttachments: network::ServedAttachments,
        VnisInUse: network::VnisInUse,
        PeerAddressesInUse: bgp_neighbor::PeerAddressesInUse,
        PoolsByName: inbound::PoolsByName,
        SriovDevicesByResource: sriov::DevicesByResource,
        ConsumersByPool: addresses::ConsumersByPool,
        NodesByLabel: addresses::NodesByLabel,
        Withheld: addresses::Withheld,
        StoredByOwner: low_level::StoredByOwner,
        HandWrittenByScope: scope::HandWrittenByScope,
        NodesByUnderlay: node::NodesByUnderlay,
        UnderlaysByVni: node::UnderlaysByVni,
        MeaningsByVni: node::MeaningsByVni,
        SegmentsByVni: node::SegmentsByVni,
        RunningTunnels: scope::RunningTunnels,
        RunningRules: scope::RunningRules,
        WantedNames: merge::WantedNames,
        YieldingToIntents: merge::YieldingToIntents,
        Facets: node::Facets,
        NodesBySignature: node::NodesBySignature,
        SignaturesByLabel: node::SignaturesByLabel,
        TablesInUse: node::TablesInUse,
        HoldersByAddress: node::HoldersByAddress,
        SessionsInUse: node::SessionsInUse,
        AddressesByClaim: ipam::AddressesByClaim,
        ClaimsByNode: ipam::ClaimsByNode,
        StoredByVni: node::StoredByVni,
        HeldVnis: network::HeldVnis,
        GivenByAddress: mirror::GivenByAddress,
        InterfaceFaults: node::InterfaceFaults,
        ConfigurationsByLabel: host_router::ConfigurationsByLabel,
        NodesByHostGroup: host_router::NodesByGroup,
        GroupsByConfiguration: host_router::GroupsByConfiguration,
        Problems: problems::Problems,
        GroupsByObject: status::GroupsByObject,
        SteeringBySubject: status::SteeringBySubject,
        MirrorsOnNodes: status::MirrorsOnNodes,
        SignaturesByFabricObject: status::SignaturesByFabricObject,
        ReferencesByName: status::ReferencesByName,
        SelectorsInUse: status::SelectorsInUse,
        SelectionsByDestination: status::SelectionsByDestination,
    }
}

/// The tables of all stages, without objects.
pub(crate) fn all_tables() -> Vec<Box<dyn memo::Table>> {
    let mut all = snapshot::input_tables();
    all.push(memo::input_table::<Unreadable>());
    all.push(memo::input_table::<problems::ProblemsNow>());
    all.push(memo::input_table::<platform::state::AbsentFor>());
    all.push(memo::input_table::<node::TakenBack>());
    all.extend(tables());
    all
}
