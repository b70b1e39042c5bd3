//! Which object gets what exists once on a node: names and VNIs of VRFs, VNIs and VLANs of segments, devices and networks.
//!
//! The objects of all kinds are served one after another, and each gets everything that it wants or nothing: the one that runs on the nodes
//! first, then the older. Where no two want the same, the order decides nothing, and no config of a node is read.

mod overlays;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    selvedge::SettingsSpec,
    tcaas::{Layer2NetworkConfigurationSpec, NodeNetworkConfigSpec, VrfRouteConfigurationSpec},
    value::{IfName, Prefix, RouteTarget, Vni},
};

use rustc_hash::FxHashMap;

use super::{
    group::{FirstNode, Group, HasOverlay, MembersOf, Named, NumbersFor},
    layer2,
    overlay::{self, Networks, NetworksOfSession, Overlay, Wants},
    selection::{NodesBySignature, Signature},
    underlay::{Plan, PlansFor},
    vrfs::{self, Numbers},
};
use crate::{
    lower::LowLevel,
    memo::Query,
    names,
    prefixes::PrefixMap,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef, kinds},
    view::View,
};

type Routing = LowLevel<VrfRouteConfigurationSpec>;

/// What the objects of a group of nodes get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// VNI and route target of the VRFs of routing objects.
    pub(super) numbers: Numbers,
    /// The segments, by the name of their object.
    pub(super) segments: BTreeSet<String>,
    /// The overlay objects.
    pub(super) overlays: BTreeMap<ObjectRef, Held>,
    /// Why the others get nothing.
    pub(super) problems: Vec<Problem>,
}

/// What an overlay object gets beside its VRF and its VNI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// Whether its VXLAN starts from the second tunnel endpoint of the node.
    pub(super) from_other_vtep: bool,
    /// The networks of its host session.
    pub(super) networks: Networks,
}

/// What the objects get on the nodes of a signature that have a VTEP, or on those that have none.
pub(crate) struct ClaimsFor;
impl Query for ClaimsFor {
    type Key = (Signature, bool);
    type Value = Arc<Claims>;
    fn compute(view: &View<'_>, (signature, has_vtep): &(Signature, bool)) -> Arc<Claims> {
        let settings = view.settings();
        let members = view.get::<MembersOf>(signature);
        let first = view.get::<FirstNode>(signature);
        let mut group = members.group(first.as_deref(), view.get::<HasOverlay>(signature));
        if !has_vtep {
            group = group.without_overlay();
        }
        let numbers = view.get::<NumbersFor>(signature);
        let plans = view.get::<PlansFor>(signature);
        let networks = |subject: &ObjectRef| view.get::<NetworksOfSession>(subject);
        let wanted = Wanted {
            settings: &settings,
            group: &group,
            numbers: &numbers,
            plans: &plans,
            networks: &networks,
        };
        let configs = || {
            let nodes = view.who::<NodesBySignature>(signature);
            let nodes = nodes.iter();
            nodes
                .filter_map(|node| view.spec::<kinds::NodeNetworkConfig>(&node.key()))
                .collect()
        };
        Arc::new(wanted.decided(configs))
    }
}

/// What is wanted on the nodes of a group.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) settings: &'a SettingsSpec,
    pub(super) group: &'a Group<'a>,
    pub(super) numbers: &'a Numbers,
    pub(super) plans: &'a [Arc<Plan>],
    pub(super) networks: &'a dyn Fn(&ObjectRef) -> Option<Arc<Networks>>,
}

/// An object, or the routing objects of one VRF.
enum Claimant<'a> {
    Vrf(VrfClaim<'a>),
    Segment(Named<'a, Layer2NetworkConfigurationSpec>),
    Overlay(&'a Arc<Overlay>),
}

/// What the routing objects of one VRF want.
struct VrfClaim<'a> {
    name: &'a str,
    vni: Vni,
    target: RouteTarget,
    objects: Vec<&'a Routing>,
}

impl VrfClaim<'_> {
    fn is_of_intent(&self) -> bool {
        self.objects.iter().any(|one| one.is_of_intent())
    }
}

impl<'a> Claimant<'a> {
    /// Whether a node runs it as it is.
    fn runs(&self, config: &NodeNetworkConfigSpec) -> bool {
        match self {
            Self::Vrf(claim) => {
                let vrf = config.fabric_vrfs.get(claim.name);
                // The VRF of an intent is never one with that of an overlay object.
                vrf.is_some_and(|vrf| {
                    let is_its = vrf.source.is_none() || !claim.is_of_intent();
                    vrf.vni == Some(claim.vni) && is_its
                })
            }
            Self::Segment((_, object)) => layer2::has_segment(config, &object.spec),
            Self::Overlay(overlay) => overlay::runs(config, overlay),
        }
    }

    /// Sorts older objects first.
    fn age(&self) -> (bool, Option<&'a str>) {
        match self {
            Self::Vrf(claim) => {
                let ages = claim.objects.iter().map(|one| one.age());
                ages.min().unwrap_or((true, None))
            }
            Self::Segment((_, object)) => object.age(),
            Self::Overlay(overlay) => overlay.age(),
        }
    }

    /// Sorts what has the same age.
    fn rank(&self) -> u8 {
        match self {
            Self::Vrf(_) => 0,
            Self::Segment(_) => 1,
            Self::Overlay(overlay) => match overlay.wants {
                Wants::L3(_) => 2,
                Wants::L2(_) => 3,
                Wants::Passthrough(_) => 4,
            },
        }
    }
}

impl<'a> Wanted<'a> {
    /// Decides who gets what. The configs of the nodes are read where two objects want the same.
    pub(super) fn decided(
        self,
        configs: impl FnOnce() -> Vec<Arc<NodeNetworkConfigSpec>>,
    ) -> Claims {
        let claimants = self.claimants();
        let served = self.served(&claimants, |_| false);
        if !served.is_contested {
            return served.claims;
        }
        let configs = configs();
        if configs.is_empty() {
            return served.claims;
        }
        let runs = |one: &Claimant<'_>| configs.iter().any(|config| one.runs(config));
        self.served(&claimants, runs).claims
    }

    fn claimants(self) -> Vec<Claimant<'a>> {
        let mut vrfs: BTreeMap<&str, Vec<&Routing>> = BTreeMap::new();
        for (_, object) in &self.group.vrf {
            let of_vrf = vrfs.entry(object.spec.vrf.as_str()).or_default();
            of_vrf.push(object);
        }
        let vrfs = vrfs.into_iter().filter_map(|(name, objects)| {
            let (vni, target) = *self.numbers.vrfs.get(name)?;
            Some(Claimant::Vrf(VrfClaim {
                name,
                vni,
                target,
                objects,
            }))
        });
        let segments = self.group.layer2.iter().copied().map(Claimant::Segment);
        let overlays = self.group.overlays.iter().copied().map(Claimant::Overlay);
        vrfs.chain(segments).chain(overlays).collect()
    }

    fn served(
        self,
        claimants: &[Claimant<'a>],
        runs: impl Fn(&Claimant<'a>) -> bool,
    ) -> Served<'a> {
        let mut order: Vec<(bool, &Claimant<'a>)> =
            claimants.iter().map(|one| (runs(one), one)).collect();
        // A stable sort: among equals the order of the group stays.
        order.sort_by_cached_key(|(runs, one)| {
            let is_challenger = match one {
                Claimant::Segment((name, _)) => self.group.challengers.contains(*name),
                Claimant::Vrf(_) | Claimant::Overlay(_) => false,
            };
            (!runs, is_challenger, one.age(), one.rank())
        });
        let mut served = Served::new(self);
        for (runs, claimant) in order {
            match claimant {
                Claimant::Vrf(claim) => served.vrf(claim),
                Claimant::Segment((name, object)) => served.segment(name, object),
                Claimant::Overlay(overlay) => served.overlay(overlay, runs),
            }
        }
        served
    }
}

/// Who has a VRF.
struct VrfHolder {
    by: ObjectRef,
    vni: Option<Vni>,
    of: VrfOf,
}

/// What the holder of a VRF is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VrfOf {
    Intent,
    HandWritten,
    L3Vni,
    /// It has gateways in the VRF.
    L2Vni,
}

/// Networks in which a node has addresses, each with its holder.
#[derive(Default)]
pub(super) struct Addressed {
    host: PrefixMap<ObjectRef>,
    vrfs: BTreeMap<String, PrefixMap<ObjectRef>>,
}

impl Addressed {
    fn insert(&mut self, vrf: Option<&str>, network: Prefix, by: &ObjectRef) {
        let map = match vrf {
            Some(vrf) => self.vrfs.entry(vrf.to_owned()).or_default(),
            None => &mut self.host,
        };
        map.insert(network, by.clone());
    }

    /// A network with addresses of this one in a VRF, or on the host, with its holder.
    pub(super) fn overlap(
        &self,
        vrf: Option<&str>,
        network: Prefix,
    ) -> Option<(Prefix, &ObjectRef)> {
        match vrf {
            Some(vrf) => self.vrfs.get(vrf)?.overlap(network),
            None => self.host.overlap(network),
        }
    }
}

/// The devices in the namespace of the router, each with what it belongs to.
#[derive(Default)]
pub(super) struct Devices(FxHashMap<IfName, (Arc<str>, ObjectRef)>);

/// A device that another object has.
pub(super) struct TakenDevice {
    name: IfName,
    by: ObjectRef,
}

/// What devices of segments belong to: their VLANs and VNIs tell them from each other.
pub(super) const SEGMENTS: &str = "segments";

impl Devices {
    fn insert(&mut self, devices: Vec<IfName>, of: &str, by: &ObjectRef) {
        let of: Arc<str> = of.into();
        for device in devices {
            let holder = || (Arc::clone(&of), by.clone());
            self.0.entry(device).or_insert_with(holder);
        }
    }

    /// The first of some devices that belongs to something else.
    pub(super) fn taken(&self, devices: &[IfName], of: &str) -> Option<TakenDevice> {
        devices.iter().find_map(|device| {
            let (holder, by) = self.0.get(device)?;
            (**holder != *of).then(|| TakenDevice {
                name: device.clone(),
                by: by.clone(),
            })
        })
    }
}

impl TakenDevice {
    pub(super) fn kind(self, node: Option<&str>) -> problem::Kind {
        problem::Kind::DeviceNameTaken {
            name: self.name.to_string(),
            by: self.by,
            node: node.map(str::to_owned),
        }
    }
}

/// The devices of a VRF in the fabric.
fn vrf_devices(vrf: &str) -> Vec<IfName> {
    let device = vrf.parse().ok();
    let bridge = names::vrf_bridge(vrf);
    device
        .into_iter()
        .chain([bridge, names::vrf_vxlan(vrf)])
        .collect()
}

/// What objects of other kinds than segments have.
pub(super) struct Others<'s> {
    pub(super) vnis: &'s BTreeMap<Vni, ObjectRef>,
    pub(super) devices: &'s Devices,
    pub(super) addressed: &'s Addressed,
}

/// What the objects have so far.
struct Served<'a> {
    wanted: Wanted<'a>,
    /// Holders of the VNIs of the settings, of VRFs and of overlay objects.
    vnis: BTreeMap<Vni, ObjectRef>,
    vrfs: BTreeMap<String, VrfHolder>,
    /// Segments in VRFs that they do not name: they have the name of the VRF.
    named_like_vrfs: BTreeMap<String, ObjectRef>,
    /// Bridges of hosts, each with the first segment that is attached to it.
    bridges: BTreeMap<IfName, ObjectRef>,
    segments: layer2::Claimed<'a>,
    devices: Devices,
    /// What segments, the trunk and the Underlay have.
    of_segments: Addressed,
    of_overlays: Addressed,
    claims: Claims,
    /// Whether an object gets nothing because another has what it wants.
    is_contested: bool,
}

impl<'a> Served<'a> {
    fn new(wanted: Wanted<'a>) -> Self {
        let Wanted {
            settings,
            group,
            numbers,
            plans,
            ..
        } = wanted;
        let by = ObjectRef::named(Kind::Settings, "default");
        let mut of_segments = Addressed::default();
        for end in &settings.trunk.addresses {
            of_segments.insert(None, end.prefix(), &by);
        }
        for plan in plans {
            let pools = plan.vtep_pools();
            pools.for_each(|pool| of_segments.insert(None, pool, &plan.subject));
        }
        let vnis = names::settings_vnis(settings).map(|vni| (vni, by.clone()));
        let mut devices = Devices::default();
        for plan in plans {
            devices.insert(plan.fabric.nics.clone(), "", &plan.subject);
        }
        let management = settings.management_vrf.iter().map(|vrf| &vrf.name);
        for vrf in management.chain([&settings.cluster_vrf.name]) {
            devices.insert(vrf_devices(vrf.as_str()), vrf.as_str(), &by);
        }
        devices.insert(vec![settings.trunk.name.clone()], "", &by);
        Self {
            devices,
            wanted,
            vnis: vnis.collect(),
            vrfs: BTreeMap::new(),
            named_like_vrfs: BTreeMap::new(),
            bridges: BTreeMap::new(),
            segments: layer2::Claimed::new(settings, group, &numbers.holders),
            of_segments,
            of_overlays: Addressed::default(),
            claims: Claims::default(),
            is_contested: false,
        }
    }

    fn node(&self) -> Option<String> {
        self.wanted.group.node.map(str::to_owned)
    }

    fn report(&mut self, problem: Problem) {
        self.is_contested |= is_conflict(&problem.kind);
        self.claims.problems.push(problem);
    }

    /// Who has a VNI.
    fn holder(&self, vni: Vni) -> Option<&ObjectRef> {
        let holder = self.vnis.get(&vni);
        holder.or_else(|| self.segments.holder(vni))
    }

    fn vrf(&mut self, claim: &VrfClaim<'_>) {
        if let Some((own, kind)) = self.refused_vrf(claim) {
            let problems = claim.objects.iter().map(|object| {
                let field = vrfs::field(&object.source, own);
                Problem::new(object.source.clone(), field, kind.clone())
            });
            problems.for_each(|problem| self.report(problem));
            return;
        }
        let numbers = (claim.vni, claim.target);
        self.claims
            .numbers
            .vrfs
            .insert(claim.name.to_owned(), numbers);
        let Some(by) = claim.objects.first().map(|one| &one.source) else {
            return;
        };
        self.devices.insert(vrf_devices(claim.name), claim.name, by);
        self.vnis.entry(claim.vni).or_insert_with(|| by.clone());
        let of = if claim.is_of_intent() {
            VrfOf::Intent
        } else {
            VrfOf::HandWritten
        };
        let holder = VrfHolder {
            by: by.clone(),
            vni: Some(claim.vni),
            of,
        };
        let held = self.vrfs.get(claim.name);
        if held.is_none_or(|held| held.of != VrfOf::L3Vni) {
            self.vrfs.insert(claim.name.to_owned(), holder);
        }
    }

    /// Why routing objects do not get their VRF, with the field of a hand-written one.
    fn refused_vrf(&self, claim: &VrfClaim<'_>) -> Option<(&'static str, problem::Kind)> {
        if let Some(held) = self.vrfs.get(claim.name) {
            if claim.is_of_intent() {
                return Some(("spec.vrf", conflict(claim.name, &held.by)));
            }
            if held.vni == Some(claim.vni) {
                return None;
            }
            if held.vni.is_some() {
                return Some(("spec.vrf", disagrees(claim.name, &held.by)));
            }
        }
        if let Some(by) = self.holder(claim.vni) {
            let kind = problem::Kind::VniTaken {
                vni: claim.vni,
                by: by.clone(),
                node: self.node(),
            };
            return Some(("spec.vni", kind));
        }
        let taken = self.devices.taken(&vrf_devices(claim.name), claim.name)?;
        Some(("spec.vrf", taken.kind(self.wanted.group.node)))
    }

    fn segment(&mut self, name: &str, object: &'a LowLevel<Layer2NetworkConfigurationSpec>) {
        let others = Others {
            vnis: &self.vnis,
            devices: &self.devices,
            addressed: &self.of_overlays,
        };
        let taken = self.segments.take(object, &others);
        let Ok(networks) = taken.map_err(|problem| self.report(*problem)) else {
            return;
        };
        let devices = layer2::devices(&object.spec);
        self.devices.insert(devices, SEGMENTS, &object.source);
        for (table, network) in networks {
            let vrf = table.vrf();
            self.of_segments.insert(vrf, network, &object.source);
        }
        self.claims.segments.insert(name.to_owned());
    }
}

/// Whether an object lacks something because another has it.
fn is_conflict(kind: &problem::Kind) -> bool {
    matches!(
        kind,
        problem::Kind::LowLevelConflict { .. }
            | problem::Kind::VrfDisagrees { .. }
            | problem::Kind::VrfTaken { .. }
            | problem::Kind::VniTaken { .. }
            | problem::Kind::VlanTaken { .. }
            | problem::Kind::DeviceNameTaken { .. }
            | problem::Kind::NetworksOverlap { .. }
    )
}

fn conflict(vrf: &str, by: &ObjectRef) -> problem::Kind {
    problem::Kind::LowLevelConflict {
        scope: format!("VRF {vrf:?}"),
        by: by.clone(),
    }
}

fn disagrees(vrf: &str, by: &ObjectRef) -> problem::Kind {
    problem::Kind::VrfDisagrees {
        vrf: vrf.to_owned(),
        what: "vni",
        other: by.clone(),
    }
}
