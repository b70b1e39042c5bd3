//! From intents to low-level objects: what people want, written in the words that nodes are configured in.
//!
//! Each generated object belongs to one intent and one scope (a VRF or a VLAN). An intent with a problem contributes what
//! it contributed last: the generated objects that are still in the snapshot.

mod addresses;
mod bgp_neighbor;
mod collector;
mod conflict;
mod contribution;
mod host_attachment;
mod inbound;
mod layer2_attachment;
mod network;
mod outbound;
mod pod_network;
mod premises;
mod reach;
mod routing;
mod service;
pub(crate) mod timers;
mod traffic_mirror;
mod vrf;

use std::{collections::BTreeMap, mem, net::IpAddr, sync::Arc};

use self::{
    addresses::Addresses,
    conflict::Hands,
    contribution::{Contribution, Made, handwritten, kept},
    premises::{Outcome, Premises},
    reach::Destinations,
};
pub use self::{
    addresses::NodeAddresses,
    contribution::{LowLevel, LowLevelObjects},
    premises::Before,
    service::Service,
    vrf::ResolvedVrf,
};
pub(crate) use self::{
    addresses::{networks, plain},
    contribution::is_low_level,
    traffic_mirror::check as check_traffic,
};
use crate::{
    problem::{self, Problem},
    snapshot::{Key, Kind, Meta, ObjectRef, Objects, Snapshot, by_age},
};
use api::{
    selvedge::SettingsSpec,
    tcaas::{
        Anycast, BgpPeeringSpec, Layer2AttachmentSpec, Layer2NetworkConfigurationSpec,
        MatchedDestination, MirrorSelectorSpec, MirrorTargetSpec, VrfRouteConfigurationSpec,
    },
    value::{IfName, VlanId, Vni},
};

/// Whether an attachment makes a segment over the fabric: neither on a device of the node, nor for SR-IOV devices alone.
fn is_over_the_fabric(spec: &Layer2AttachmentSpec) -> bool {
    let sriov = spec.sriov.as_ref().is_some_and(|sriov| sriov.enabled);
    spec.interface_ref.is_none() && (spec.interface_name.is_some() || !sriov)
}

/// Everything that intents become.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    /// Segments: generated ones and people's own.
    pub layer2: LowLevelObjects<Layer2NetworkConfigurationSpec>,
    /// Routing: generated and people's own.
    pub vrf: LowLevelObjects<VrfRouteConfigurationSpec>,
    /// BGP sessions with workloads: generated and people's own.
    pub bgp: LowLevelObjects<BgpPeeringSpec>,
    /// Tunnels for mirrored traffic: generated and people's own.
    pub mirror_targets: LowLevelObjects<MirrorTargetSpec>,
    /// What is mirrored: generated and people's own.
    pub mirror_selectors: LowLevelObjects<MirrorSelectorSpec>,
    /// VRFs that can be used.
    pub vrfs: BTreeMap<Key, ResolvedVrf>,
    /// VNIs that Networks got from the cluster's range, or have of their own.
    pub network_vnis: BTreeMap<String, Vni>,
    /// What each attachment came to, for its status.
    pub attachments: BTreeMap<String, Attachment>,
    /// What each Inbound, Outbound and PodNetwork came to.
    pub services: BTreeMap<ObjectRef, Service>,
    /// Destinations by label.
    destinations: Destinations,
    /// The addresses of nodes on segments.
    pub node_addresses: NodeAddresses,
    /// The addresses that workloads of each BGPNeighbor speak from.
    pub workload_ips: BTreeMap<String, Vec<IpAddr>>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    hands: Hands,
    /// What lowering each intent gave, and what it was based on, for the next time.
    outcomes: BTreeMap<ObjectRef, Outcome>,
    addresses: Addresses,
    pools: inbound::Pools,
}

/// What an attachment came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The interface on the nodes.
    pub interface: Option<IfName>,
    /// The VLAN of SR-IOV devices.
    pub sriov_vlan: Option<VlanId>,
    /// The gateway.
    pub anycast: Option<Anycast>,
    /// The destinations that its selector chose.
    pub matched: Vec<MatchedDestination>,
}

/// Turns every intent into low-level objects and joins them with people's own.
///
/// What did not change since `before` is not made again.
pub fn lower(snapshot: &Snapshot, settings: &SettingsSpec, before: Option<Before<'_>>) -> Lowered {
    let mut lowered = Lowered::default();
    let known = before.map(|before| before.lowered);
    lowered.layer2 = handwritten(
        Kind::Layer2NetworkConfiguration,
        &snapshot.layer2_network_configurations,
        known.map(|known| &known.layer2),
    );
    lowered.vrf = handwritten(
        Kind::VrfRouteConfiguration,
        &snapshot.vrf_route_configurations,
        known.map(|known| &known.vrf),
    );
    lowered.bgp = handwritten(
        Kind::BgpPeering,
        &snapshot.bgp_peerings,
        known.map(|known| &known.bgp),
    );
    lowered.mirror_targets = handwritten(
        Kind::MirrorTarget,
        &snapshot.mirror_targets,
        known.map(|known| &known.mirror_targets),
    );
    lowered.mirror_selectors = handwritten(
        Kind::MirrorSelector,
        &snapshot.mirror_selectors,
        known.map(|known| &known.mirror_selectors),
    );
    lowered.destinations = Destinations::new(snapshot);
    lowered.hands = Hands::new(snapshot, &lowered);
    lowered.vrfs = vrf::resolve(snapshot, settings, &mut lowered.problems);
    lowered.network_vnis = network::vnis(snapshot, settings, &lowered.vrfs, &mut lowered.problems);
    let mut addresses = addresses::allocate(snapshot, &lowered);
    lowered.node_addresses = mem::take(&mut addresses.nodes);
    lowered.problems.append(&mut addresses.node_problems);
    lowered.pools = inbound::pools(snapshot);
    let premises = Premises::new(snapshot, &lowered, &addresses, before);
    lowered.attachments(snapshot, settings, &addresses, &premises);
    lowered.inbounds(snapshot, settings, &addresses, &premises);
    lowered.outbounds(snapshot, &addresses, &premises);
    lowered.pod_networks(snapshot, &addresses, &premises);
    lowered.bgp_neighbors(snapshot, settings, &addresses);
    lowered.mirrors(snapshot);
    lowered.addresses = addresses;
    mem::take(&mut lowered.hands).remove_refused(&mut lowered);
    not_compiled_yet(snapshot, &mut lowered.problems);
    lowered
}

impl Lowered {
    fn attachments(
        &mut self,
        snapshot: &Snapshot,
        settings: &SettingsSpec,
        addresses: &Addresses,
        premises: &Premises<'_>,
    ) {
        for (key, object) in by_age(&snapshot.layer2_attachments) {
            let subject = ObjectRef {
                kind: Kind::Layer2Attachment,
                key: key.clone(),
            };
            let spec = &object.spec;
            let known = premises.known(&subject, &spec.network_ref, spec.destinations.as_ref());
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                let mut refused = addresses.of(&subject).problems;
                let is_refused = !refused.is_empty();
                problems.append(&mut refused);
                let intent = (&subject, object);
                layer2_attachment::lower(snapshot, settings, lowered, intent, problems)
                    .filter(|_| !is_refused)
            };
            self.intent(snapshot, (&subject, &object.meta), known, lower);
        }
    }

    fn inbounds(
        &mut self,
        snapshot: &Snapshot,
        settings: &SettingsSpec,
        addresses: &Addresses,
        premises: &Premises<'_>,
    ) {
        for (key, object) in by_age(&snapshot.inbounds) {
            let subject = ObjectRef {
                kind: Kind::Inbound,
                key: key.clone(),
            };
            let pool = object
                .status
                .as_ref()
                .and_then(|status| status.pool_name.clone());
            self.hold(&subject, addresses, pool.into_iter().collect());
            let spec = &object.spec;
            let known = premises.known(&subject, &spec.network_ref, spec.destinations.as_ref());
            let known = known.filter(|_| premises.has_pool_as_before(spec, &key.name));
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                let intent = (&subject, object);
                inbound::lower(snapshot, settings, lowered, addresses, intent, problems)
            };
            self.intent(snapshot, (&subject, &object.meta), known, lower);
        }
    }

    fn outbounds(&mut self, snapshot: &Snapshot, addresses: &Addresses, premises: &Premises<'_>) {
        for (key, object) in by_age(&snapshot.outbounds) {
            let subject = ObjectRef {
                kind: Kind::Outbound,
                key: key.clone(),
            };
            self.hold(&subject, addresses, Vec::new());
            let spec = &object.spec;
            let known = premises.known(&subject, &spec.network_ref, spec.destinations.as_ref());
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                let intent = (&subject, object);
                outbound::lower(snapshot, lowered, addresses, intent, problems)
            };
            self.intent(snapshot, (&subject, &object.meta), known, lower);
        }
    }

    fn pod_networks(
        &mut self,
        snapshot: &Snapshot,
        addresses: &Addresses,
        premises: &Premises<'_>,
    ) {
        for (key, object) in by_age(&snapshot.pod_networks) {
            let subject = ObjectRef {
                kind: Kind::PodNetwork,
                key: key.clone(),
            };
            let pools = object.status.as_ref().map(|status| status.ip_pools.clone());
            self.hold(&subject, addresses, pools.unwrap_or_default());
            let spec = &object.spec;
            let known = premises.known(&subject, &spec.network_ref, spec.destinations.as_ref());
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                let intent = (&subject, object);
                pod_network::lower(snapshot, lowered, addresses, intent, problems)
            };
            self.intent(snapshot, (&subject, &object.meta), known, lower);
        }
    }

    fn bgp_neighbors(
        &mut self,
        snapshot: &Snapshot,
        settings: &SettingsSpec,
        addresses: &Addresses,
    ) {
        self.workload_ips = bgp_neighbor::workload_ips(snapshot, settings);
        for (key, object) in by_age(&snapshot.bgp_neighbors) {
            let subject = ObjectRef {
                kind: Kind::BgpNeighbor,
                key: key.clone(),
            };
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                let intent = (&subject, &object.spec);
                bgp_neighbor::lower(snapshot, settings, lowered, addresses, intent, problems)
            };
            self.intent(snapshot, (&subject, &object.meta), None, lower);
        }
    }

    /// Collectors before what is mirrored to them.
    fn mirrors(&mut self, snapshot: &Snapshot) {
        for (key, object) in by_age(&snapshot.collectors) {
            let subject = ObjectRef {
                kind: Kind::Collector,
                key: key.clone(),
            };
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                collector::lower(snapshot, lowered, &subject, &object.spec, problems)
            };
            self.intent(snapshot, (&subject, &object.meta), None, lower);
        }
        for (key, object) in by_age(&snapshot.traffic_mirrors) {
            let subject = ObjectRef {
                kind: Kind::TrafficMirror,
                key: key.clone(),
            };
            let lower = |lowered: &Self, problems: &mut Vec<Problem>| {
                traffic_mirror::lower(snapshot, lowered, &subject, &object.spec, problems)
            };
            self.intent(snapshot, (&subject, &object.meta), None, lower);
        }
    }

    /// Notes what a service holds, whatever else is wrong with it.
    fn hold(&mut self, subject: &ObjectRef, addresses: &Addresses, pools: Vec<String>) {
        let service = Service {
            addresses: addresses.of(subject).addresses,
            pools,
            ..Service::default()
        };
        self.services.insert(subject.clone(), service);
    }

    /// Adds what one intent becomes, or what it became before something was wrong with it.
    fn intent(
        &mut self,
        snapshot: &Snapshot,
        (subject, meta): (&ObjectRef, &Meta),
        known: Option<&Outcome>,
        lower: impl FnOnce(&Self, &mut Vec<Problem>) -> Option<Made>,
    ) {
        let outcome = known.cloned().unwrap_or_else(|| {
            let mut problems = Vec::new();
            let made = lower(self, &mut problems).filter(|made| {
                let fit = made.bgp.iter().all(|(_, spec)| timers::fit(spec));
                if !fit {
                    let field = timers::field(subject.kind);
                    let kind = problem::Kind::TimersDoNotFit;
                    problems.push(Problem::new(subject.clone(), field, kind));
                }
                fit
            });
            Outcome {
                made: made.map(|made| Arc::new(made.contribution(subject, meta))),
                problems,
            }
        });
        self.outcomes.insert(subject.clone(), outcome.clone());
        let Outcome { made, mut problems } = outcome;
        let taken = made.as_ref().and_then(|made| self.taken(made));
        if let Some(name) = &taken {
            let kind = problem::Kind::NameTaken { name: name.clone() };
            problems.push(Problem::new(subject.clone(), "metadata.name", kind));
        }
        let made = made.filter(|_| taken.is_none());
        let mut hands = mem::take(&mut self.hands);
        let mut may_have =
            |made: &Contribution| hands.allow(snapshot, (subject, meta), made, &mut problems);
        if let Some(made) = made.filter(|made| may_have(made)) {
            self.add(subject, &made);
        } else {
            let kept = kept(snapshot, subject).contribution(subject, meta);
            if may_have(&kept) {
                self.keep(kept);
            }
        }
        self.hands = hands;
        self.problems.append(&mut problems);
    }

    /// A name that is needed and that somebody else's object has.
    fn taken(&self, made: &Contribution) -> Option<String> {
        fn of<S>(
            made: &[(String, Arc<LowLevel<S>>)],
            there: &LowLevelObjects<S>,
        ) -> Option<String> {
            let mut names = made.iter().map(|(name, _)| name);
            names.find(|name| there.contains_key(*name)).cloned()
        }
        of(&made.layer2, &self.layer2)
            .or_else(|| of(&made.vrf, &self.vrf))
            .or_else(|| of(&made.bgp, &self.bgp))
            .or_else(|| of(&made.mirror_targets, &self.mirror_targets))
            .or_else(|| of(&made.mirror_selectors, &self.mirror_selectors))
    }

    fn add(&mut self, source: &ObjectRef, made: &Contribution) {
        match source.kind {
            Kind::Layer2Attachment => {
                let name = source.key.name.clone();
                self.attachments.insert(name, made.attachment.clone());
            }
            Kind::Inbound | Kind::Outbound | Kind::PodNetwork => {
                self.services.insert(source.clone(), made.service.clone());
            }
            _ => {}
        }
        self.layer2.extend(made.layer2.iter().cloned());
        self.vrf.extend(made.vrf.iter().cloned());
        self.bgp.extend(made.bgp.iter().cloned());
        let targets = made.mirror_targets.iter().cloned();
        self.mirror_targets.extend(targets);
        let selectors = made.mirror_selectors.iter().cloned();
        self.mirror_selectors.extend(selectors);
    }

    /// Keeps what the intent contributed before it had a problem.
    fn keep(&mut self, kept: Contribution) {
        fn of<S>(objects: &mut LowLevelObjects<S>, kept: Vec<(String, Arc<LowLevel<S>>)>) {
            for (name, object) in kept {
                objects.entry(name).or_insert(object);
            }
        }
        of(&mut self.layer2, kept.layer2);
        of(&mut self.vrf, kept.vrf);
        of(&mut self.bgp, kept.bgp);
        of(&mut self.mirror_targets, kept.mirror_targets);
        of(&mut self.mirror_selectors, kept.mirror_selectors);
    }
}

/// Kinds that are served and checked, and of which nothing is made yet.
fn not_compiled_yet(snapshot: &Snapshot, problems: &mut Vec<Problem>) {
    fn note<S, T>(kind: Kind, objects: &Objects<S, T>, problems: &mut Vec<Problem>) {
        for (key, object) in objects {
            if object.meta.owner.is_none() {
                let subject = ObjectRef {
                    kind,
                    key: key.clone(),
                };
                problems.push(Problem::new(
                    subject,
                    "",
                    problem::Kind::NotCompiledYet { what: "this kind" },
                ));
            }
        }
    }
    note(Kind::L3Vni, &snapshot.l3vnis, problems);
    note(Kind::L2Vni, &snapshot.l2vnis, problems);
    note(Kind::L3Passthrough, &snapshot.l3passthroughs, problems);
    note(
        Kind::FrrConfiguration,
        &snapshot.frr_configurations,
        problems,
    );
    note(
        Kind::MultiPodNetwork,
        &snapshot.multi_pod_networks,
        problems,
    );
}
