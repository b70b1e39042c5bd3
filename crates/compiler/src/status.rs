//! What is reported back: problems and the nodes' answers, computed into the status of each object.

mod conditions;
mod fabric;
mod groups;
mod host_router;
mod intents;
mod low_level;
mod mirror;
mod references;

use std::sync::Arc;

use api::{
    frrk8s::FrrConfigurationStatus,
    openperouter::OverlayStatus,
    selvedge::SettingsStatus,
    tcaas::{
        BgpNeighborStatus, BgpPeeringStatus, CollectorStatus, DestinationStatus, InboundStatus,
        Layer2AttachmentStatus, Layer2NetworkConfigurationStatus, MirrorSelectorStatus,
        MirrorTargetStatus, NetworkStatus, OutboundStatus, PodNetworkStatus, TrafficMirrorStatus,
        VrfRouteConfigurationStatus, VrfStatus,
    },
};
use serde_json::Value;

pub(crate) use self::{
    conditions::shortened,
    fabric::{FabricProgress, SignaturesByFabricObject, UnattachedOf},
    groups::{GroupProgress, GroupsByObject, SteeringBySubject},
    host_router::HostReports,
    mirror::MirrorsOnNodes,
    references::{ReferencesByName, SelectionsByDestination, SelectorsInUse},
};
use crate::{
    last_good::InStatus,
    lower::vrf,
    memo::Query,
    problems::ProblemsOf,
    snapshot::{Key, Kind, Meta, ObjectRef, kinds},
    view::View,
};

macro_rules! statuses {
    ($($kind:ident: $type:ty,)*) => {
        /// The status of an object. Times are left out: the writer of a status knows when it changed.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each variant is the status of the kind it names")]
        pub enum Status {
            $($kind(Box<$type>),)*
        }

        impl Status {
            /// The status as it is written.
            pub fn to_value(&self) -> Value {
                let value = match self { $(Self::$kind(status) => serde_json::to_value(status),)* };
                value.unwrap_or_else(|error| unreachable!("a status is JSON: {error}"))
            }

            /// Whether an object has this status already, whenever its conditions became what they are.
            pub(crate) fn is_stored(&self, view: &View<'_>, key: &Key) -> bool {
                match self {
                    $(Self::$kind(status) => {
                        let stored = view.status::<kinds::$kind>(key);
                        stored.is_some_and(|stored| {
                            let mut stored = <$type>::clone(&stored);
                            for condition in &mut stored.conditions.0 {
                                condition.last_transition_time = None;
                            }
                            **status == stored
                        })
                    })*
                }
            }
        }

        /// All objects of kinds that have a status.
        pub(crate) struct AllWithStatus;
        impl Query for AllWithStatus {
            type Key = ();
            type Value = Arc<Vec<ObjectRef>>;
            fn compute(view: &View<'_>, (): &()) -> Arc<Vec<ObjectRef>> {
                let mut all = Vec::new();
                $(all.extend(view.all::<kinds::$kind>());)*
                Arc::new(all)
            }
        }
    };
}

statuses! {
    Settings: SettingsStatus,
    Underlay: OverlayStatus,
    L3Vni: OverlayStatus,
    L2Vni: OverlayStatus,
    L3Passthrough: OverlayStatus,
    Vrf: VrfStatus,
    Network: NetworkStatus,
    Destination: DestinationStatus,
    Layer2Attachment: Layer2AttachmentStatus,
    Inbound: InboundStatus,
    Outbound: OutboundStatus,
    PodNetwork: PodNetworkStatus,
    BgpNeighbor: BgpNeighborStatus,
    Collector: CollectorStatus,
    TrafficMirror: TrafficMirrorStatus,
    Layer2NetworkConfiguration: Layer2NetworkConfigurationStatus,
    VrfRouteConfiguration: VrfRouteConfigurationStatus,
    BgpPeering: BgpPeeringStatus,
    MirrorTarget: MirrorTargetStatus,
    MirrorSelector: MirrorSelectorStatus,
    FrrConfiguration: FrrConfigurationStatus,
}

/// The object that a status is for.
struct Subject<'a> {
    object: &'a ObjectRef,
    meta: &'a Meta,
}

impl Subject<'_> {
    fn key(&self) -> &Key {
        &self.object.key
    }
}

/// The status of each object that has one.
pub(crate) struct StatusOf;
impl Query for StatusOf {
    type Key = ObjectRef;
    type Value = Option<Arc<Status>>;
    fn compute(view: &View<'_>, object: &ObjectRef) -> Option<Arc<Status>> {
        let meta = view.meta_of(object)?;
        let subject = Subject {
            object,
            meta: &meta,
        };
        status(view, &subject).map(Arc::new)
    }
}

fn status(view: &View<'_>, subject: &Subject<'_>) -> Option<Status> {
    let status = match subject.object.kind {
        Kind::Settings => Status::Settings(Box::new(settings(view, subject))),
        Kind::Underlay => Status::Underlay(Box::new(fabric::status(view, subject))),
        Kind::L3Vni => Status::L3Vni(Box::new(fabric::status(view, subject))),
        Kind::L2Vni => Status::L2Vni(Box::new(fabric::status(view, subject))),
        Kind::L3Passthrough => Status::L3Passthrough(Box::new(fabric::status(view, subject))),
        Kind::Vrf => Status::Vrf(Box::new(vrf_status(view, subject))),
        Kind::Network => Status::Network(Box::new(network(view, subject))),
        Kind::Destination => Status::Destination(Box::new(destination(view, subject))),
        Kind::Layer2Attachment => {
            Status::Layer2Attachment(Box::new(intents::layer2_attachment(view, subject)))
        }
        Kind::Inbound => Status::Inbound(Box::new(intents::inbound(view, subject))),
        Kind::Outbound => Status::Outbound(Box::new(intents::outbound(view, subject))),
        Kind::PodNetwork => Status::PodNetwork(Box::new(intents::pod_network(view, subject))),
        Kind::BgpNeighbor => Status::BgpNeighbor(Box::new(intents::bgp_neighbor(view, subject))),
        Kind::Collector => Status::Collector(Box::new(mirror::collector(view, subject))),
        Kind::TrafficMirror => {
            Status::TrafficMirror(Box::new(mirror::traffic_mirror(view, subject)?))
        }
        Kind::Layer2NetworkConfiguration => {
            Status::Layer2NetworkConfiguration(Box::new(low_level::layer2(view, subject)?))
        }
        Kind::VrfRouteConfiguration => {
            Status::VrfRouteConfiguration(Box::new(low_level::vrf(view, subject)?))
        }
        Kind::BgpPeering => Status::BgpPeering(Box::new(low_level::bgp(view, subject)?)),
        Kind::MirrorTarget => Status::MirrorTarget(Box::new(mirror::target(view, subject)?)),
        Kind::MirrorSelector => Status::MirrorSelector(Box::new(mirror::selector(view, subject)?)),
        Kind::FrrConfiguration => {
            Status::FrrConfiguration(Box::new(host_router::status(view, subject)?))
        }
        Kind::Node
        | Kind::NetworkConfigRevision
        | Kind::NetworkConfigRevisionPart
        | Kind::NodeNetworkConfig
        | Kind::NodeNetworkStatus
        | Kind::FrrNodeState
        | Kind::BgpSessionState
        | Kind::MultiPodNetwork
        | Kind::IpAddressClaim
        | Kind::IpAddress => return None,
    };
    Some(status)
}

fn settings(view: &View<'_>, subject: &Subject<'_>) -> SettingsStatus {
    SettingsStatus {
        observed_generation: subject.meta.generation,
        conditions: conditions::validity(view, subject),
    }
}

fn vrf_status(view: &View<'_>, subject: &Subject<'_>) -> VrfStatus {
    let resolved = view.get::<vrf::ResolvedOf>(subject.key());
    VrfStatus {
        observed_generation: subject.meta.generation,
        reference_count: references::count(view, subject.object),
        vni: resolved.as_ref().map(|vrf| vrf.vni),
        route_target: resolved.as_ref().map(|vrf| vrf.route_target),
        in_effect: in_effect::<kinds::Vrf>(view, subject),
        conditions: conditions::validity(view, subject),
    }
}

fn network(view: &View<'_>, subject: &Subject<'_>) -> NetworkStatus {
    NetworkStatus {
        observed_generation: subject.meta.generation,
        reference_count: references::count(view, subject.object),
        vni: view.network_vni(&subject.key().name),
        allocated_slices: Vec::new(),
        in_effect: in_effect::<kinds::Network>(view, subject),
        conditions: conditions::validity(view, subject),
    }
}

fn destination(view: &View<'_>, subject: &Subject<'_>) -> DestinationStatus {
    DestinationStatus {
        observed_generation: subject.meta.generation,
        reference_count: references::selections(view, subject.key()),
        in_effect: in_effect::<kinds::Destination>(view, subject),
        conditions: conditions::validity(view, subject),
    }
}

/// The spec in effect: what the object says, or, while something is wrong with it, what was in effect before.
fn in_effect<R: InStatus>(view: &View<'_>, subject: &Subject<'_>) -> Option<Arc<R::Spec>> {
    let problems = view.get::<ProblemsOf>(subject.object);
    if problems.iter().any(|problem| problem.kind.is_mistake()) {
        let status = view.status::<R>(subject.key())?;
        return R::in_effect(&status);
    }
    view.spec::<R>(subject.key())
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
