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
mod join;
mod layer2_attachment;
pub(crate) mod mtu;
mod network;
mod notes;
mod outbound;
mod pod_network;
mod premises;
mod reach;
mod routing;
mod service;
pub(crate) mod timers;
mod traffic_mirror;
mod vrf;
mod written;

use std::{collections::BTreeMap, mem, net::IpAddr, sync::Arc};

use self::{
    addresses::Addresses,
    conflict::Hands,
    contribution::{Contribution, Made},
    join::{Outcome, World},
    premises::{Premises, differing},
    reach::Destinations,
    written::Written,
};
pub use self::{
    addresses::NodeAddresses,
    contribution::{LowLevel, LowLevelObjects},
    service::Service,
    vrf::ResolvedVrf,
};
pub(crate) use self::{
    addresses::{networks, plain},
    contribution::is_low_level,
    join::{Differences, Pair, Touched},
    traffic_mirror::check as check_traffic,
};
use crate::{
    changes::Changes,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, Objects, Snapshot},
};
use api::{
    meta::LabelSelector,
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
    pub layer2: Arc<LowLevelObjects<Layer2NetworkConfigurationSpec>>,
    /// Routing: generated and people's own.
    pub vrf: Arc<LowLevelObjects<VrfRouteConfigurationSpec>>,
    /// BGP sessions with workloads: generated and people's own.
    pub bgp: Arc<LowLevelObjects<BgpPeeringSpec>>,
    /// Tunnels for mirrored traffic: generated and people's own.
    pub mirror_targets: Arc<LowLevelObjects<MirrorTargetSpec>>,
    /// What is mirrored: generated and people's own.
    pub mirror_selectors: Arc<LowLevelObjects<MirrorSelectorSpec>>,
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
    /// The addresses that workloads of each BGPNeighbor speak from.
    pub workload_ips: BTreeMap<String, Vec<IpAddr>>,
    written: Written,
    hands: Hands,
    /// What lowering each intent gave.
    outcomes: BTreeMap<ObjectRef, Outcome>,
    /// Whether somebody is in somebody's way among all objects.
    is_contested: bool,
    addresses: Addresses,
    pools: inbound::Pools,
    vrf_problems: Vec<Problem>,
    vni_problems: Vec<Problem>,
    destination_problems: Vec<Problem>,
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

/// The kinds of intents that become low-level objects, each after those whose results it looks at.
const INTENTS: [Kind; 7] = [
    Kind::Layer2Attachment,
    Kind::Inbound,
    Kind::Outbound,
    Kind::PodNetwork,
    Kind::BgpNeighbor,
    Kind::Collector,
    Kind::TrafficMirror,
];

/// What tells whether people's own mirrors run, in the way of intents.
const RUNNING_MIRRORS: [Kind; 6] = [
    Kind::NodeNetworkConfig,
    Kind::Collector,
    Kind::TrafficMirror,
    Kind::MirrorTarget,
    Kind::Layer2NetworkConfiguration,
    Kind::VrfRouteConfiguration,
];

/// Who may have a VNI that a newcomer must not get.
const VNI_HOLDERS: [Kind; 3] = [
    Kind::NodeNetworkConfig,
    Kind::Layer2NetworkConfiguration,
    Kind::VrfRouteConfiguration,
];

/// What stands in the words of low-level objects, so that who wrote it counts.
const LOW_LEVEL: [Kind; 6] = [
    Kind::Layer2NetworkConfiguration,
    Kind::VrfRouteConfiguration,
    Kind::BgpPeering,
    Kind::MirrorTarget,
    Kind::MirrorSelector,
    Kind::NetworkConfigRevision,
];

impl Lowered {
    /// The addresses of nodes on segments.
    pub fn node_addresses(&self) -> &NodeAddresses {
        self.addresses.nodes()
    }

    /// Turns every intent into low-level objects and joins them with people's own. What no change touches is not made again.
    pub(crate) fn update(
        &mut self,
        snapshot: &Snapshot,
        settings: &SettingsSpec,
        changes: Changes<'_>,
    ) -> Touched {
        let mut has_other_hands = self.written.update(snapshot, changes);
        if has_other_hands
            || changes.touch(Kind::NetworkConfigRevision)
            || (self.written.has_mirrors() && changes.touch_any(&RUNNING_MIRRORS))
        {
            let then = mem::replace(&mut self.hands, Hands::new(snapshot, &self.written));
            has_other_hands |= then != self.hands;
        }
        let premises = self.premises(snapshot, settings, changes);
        let touched = premises.touched(snapshot, self, changes);
        self.workload_ips = bgp_neighbor::workload_ips(snapshot, settings);
        let world = World { snapshot, settings };
        let is_contested = self.is_contested
            || changes.is_all()
            || has_other_hands
            || (!self.hands.is_empty() && changes.touch_any(&LOW_LEVEL));
        if !is_contested && let Some(differences) = self.join_these(world, &touched) {
            return differences;
        }
        self.join_all(world, &touched)
    }

    /// Brings up to date what intents are lowered from; says what of it changed.
    fn premises(
        &mut self,
        snapshot: &Snapshot,
        settings: &SettingsSpec,
        changes: Changes<'_>,
    ) -> Premises {
        let mut premises = Premises {
            destinations: self.destinations.update(snapshot, changes),
            ..Premises::default()
        };
        if changes.touch(Kind::Vrf) {
            self.vrf_problems.clear();
            let vrfs = vrf::resolve(snapshot, settings, &mut self.vrf_problems);
            let then = mem::replace(&mut self.vrfs, vrfs);
            let mut vrfs = differing(&then, &self.vrfs);
            vrfs.extend(changes.of(Kind::Vrf).cloned());
            premises.vrfs(snapshot, &vrfs);
        }
        if changes.touch_any(&[Kind::Vrf, Kind::Destination]) {
            self.destination_problems = reach::problems(snapshot, self);
        }
        if changes.touch_any(&[Kind::Vrf, Kind::Network, Kind::Layer2Attachment])
            || (changes.touch_any(&VNI_HOLDERS) && network::has_newcomers(snapshot))
        {
            self.vni_problems.clear();
            let vnis = network::vnis(snapshot, settings, &self.vrfs, &mut self.vni_problems);
            let then = mem::replace(&mut self.network_vnis, vnis);
            premises.networks = differing(&then, &self.network_vnis);
        }
        let input = addresses::Input {
            snapshot,
            destinations: &self.destinations,
            vrfs: &self.vrfs,
            written: &self.written.layer2,
        };
        let addresses = self.addresses.update(input, changes);
        premises.networks.extend(addresses.networks);
        premises.consumers = addresses.consumers;
        if changes.touch(Kind::Inbound) {
            let then = mem::replace(&mut self.pools, inbound::pools(snapshot));
            premises.pools = differing(&then, &self.pools);
        }
        premises
    }

    /// What one intent becomes; `None` when something is wrong, with the reason in `problems`.
    fn intent(
        &self,
        World { snapshot, settings }: World<'_>,
        subject: &ObjectRef,
        problems: &mut Vec<Problem>,
    ) -> Option<Made> {
        let (key, addresses) = (&subject.key, &self.addresses);
        match subject.kind {
            Kind::Layer2Attachment => {
                let mut refused = addresses.of(subject).problems;
                let is_refused = !refused.is_empty();
                problems.append(&mut refused);
                let intent = (subject, snapshot.layer2_attachments.get(key)?);
                layer2_attachment::lower(snapshot, settings, self, intent, problems)
                    .filter(|_| !is_refused)
            }
            Kind::Inbound => {
                let intent = (subject, snapshot.inbounds.get(key)?);
                inbound::lower(snapshot, settings, self, addresses, intent, problems)
            }
            Kind::Outbound => {
                let intent = (subject, snapshot.outbounds.get(key)?);
                outbound::lower(snapshot, self, addresses, intent, problems)
            }
            Kind::PodNetwork => {
                let intent = (subject, snapshot.pod_networks.get(key)?);
                pod_network::lower(snapshot, self, addresses, intent, problems)
            }
            Kind::BgpNeighbor => {
                let intent = (subject, &snapshot.bgp_neighbors.get(key)?.spec);
                bgp_neighbor::lower(snapshot, settings, self, addresses, intent, problems)
            }
            Kind::Collector => {
                let spec = &snapshot.collectors.get(key)?.spec;
                collector::lower(snapshot, self, subject, spec, problems)
            }
            Kind::TrafficMirror => {
                let spec = &snapshot.traffic_mirrors.get(key)?.spec;
                traffic_mirror::lower(snapshot, self, subject, spec, problems)
            }
            _ => None,
        }
    }

    /// The Destinations that a selector chooses, by name.
    pub(crate) fn chosen<'a>(
        &self,
        snapshot: &'a Snapshot,
        selector: &LabelSelector,
    ) -> impl Iterator<Item = &'a Key> {
        let chosen = self.destinations.select(snapshot, selector);
        chosen.into_iter().map(|(key, _)| key)
    }

    /// Intents that become nothing as they are now.
    #[cfg(test)]
    pub(crate) fn held_back(&self) -> impl Iterator<Item = &ObjectRef> {
        let held_back = self.outcomes.iter().filter(|(_, one)| one.is_broken());
        held_back.map(|(subject, _)| subject)
    }

    /// What is wrong.
    pub(crate) fn problems(&self, snapshot: &Snapshot) -> Vec<Problem> {
        let of_intents = self.outcomes.values().flat_map(Outcome::problems);
        let all = self.vrf_problems.iter().chain(&self.vni_problems);
        let all = all.chain(self.written.broken.values());
        let all = all.chain(&self.destination_problems);
        let all = all.chain(self.addresses.node_problems());
        let all = all.chain(of_intents);
        let mut problems = all.cloned().collect();
        not_compiled_yet(snapshot, &mut problems);
        notes::not_made(snapshot, &snapshot.settings(), &mut problems);
        problems
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
