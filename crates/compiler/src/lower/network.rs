//! The VNI of each `Network` that has or needs one, and who attaches which Network.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{tcaas::NetworkSpec, value::Vni};

use super::{intent::Lower, is_over_the_fabric, low_level::StoredByOwner};
use crate::{
    allocate,
    memo::{Index, Query},
    names,
    problem::{self, Problem},
    problems,
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{View, reference},
};

/// An attachment as its Network sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Whether it makes a segment over the fabric.
    pub(crate) is_over_the_fabric: bool,
}

/// The attachments of each Network.
pub(crate) struct AttachmentsByNetwork;
impl Index for AttachmentsByNetwork {
    type Source = Key;
    type Key = String;
    type Item = Attached;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Layer2Attachment>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(String, Attached)> {
        let spec = view.spec::<kinds::Layer2Attachment>(key);
        let entry = spec.map(|spec| {
            let attached = Attached {
                is_over_the_fabric: is_over_the_fabric(&spec),
            };
            (spec.network_ref.clone(), attached)
        });
        entry.into_iter().collect()
    }
}

/// The attachments in effect that are not on a device of the node, by their Network. One that keeps what it was has the Network that it had.
pub(crate) struct ServedAttachments;
impl Index for ServedAttachments {
    type Source = Key;
    type Key = String;
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Layer2Attachment>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(String, ())> {
        let subject = reference(Kind::Layer2Attachment, key);
        let is_well = view.get::<Lower>(&subject).lowered.is_some();
        let now = view.spec::<kinds::Layer2Attachment>(key);
        let served = if is_well && !problems::waits(view, &subject) {
            now
        } else if view.has::<StoredByOwner>(&Some(subject)) {
            let status = view.status::<kinds::Layer2Attachment>(key);
            let last = status.and_then(|status| status.in_effect.clone());
            last.or(now)
        } else {
            None
        };
        let served = served.filter(|spec| spec.interface_ref.is_none());
        let entry = served.map(|spec| (spec.network_ref.clone(), ()));
        entry.into_iter().collect()
    }
}

/// Whether an attachment in effect has a Network on nodes over the fabric.
pub(super) fn is_attached(view: &View<'_>, name: &str, network: &NetworkSpec) -> bool {
    network.managed && view.has::<ServedAttachments>(&name.to_owned())
}

/// What a Network wants of the VNIs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    /// This one.
    Own(Vni),
    /// Any of the range; with the one that it was given before.
    Any(Option<Vni>),
}

/// What each Network wants of the VNIs, with its age.
pub(crate) struct WantedVni;
impl Query for WantedVni {
    type Key = Key;
    type Value = Option<(Wanted, (bool, Option<String>))>;
    fn compute(view: &View<'_>, key: &Key) -> Self::Value {
        let spec = view.network(&key.name)?;
        let created = view.meta::<kinds::Network>(key)?.created.clone();
        let age = (created.is_none(), created);
        if let Some(vni) = spec.vni {
            return Some((Wanted::Own(vni), age));
        }
        let attachments = || view.who::<AttachmentsByNetwork>(&key.name.to_string());
        let needs_one = spec.managed
            && spec.vlan.is_some()
            && attachments().iter().any(|one| one.is_over_the_fabric);
        let status = view.status::<kinds::Network>(key);
        let before = status.and_then(|status| status.vni);
        needs_one.then_some((Wanted::Any(before), age))
    }
}

/// The Networks that run each VNI: their status says so, and they still want it.
pub(crate) struct HeldVnis;
impl Index for HeldVnis {
    type Source = Key;
    type Key = Vni;
    type Item = ObjectRef;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Network>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(Vni, ObjectRef)> {
        let spec = view.spec::<kinds::Network>(key);
        let status = view.status::<kinds::Network>(key);
        let held = status.and_then(|status| status.vni);
        let wanted = spec.and_then(|spec| spec.vni);
        let held = held.filter(|held| wanted.is_none_or(|wanted| wanted == *held));
        let entry = held.map(|vni| (vni, reference(Kind::Network, key)));
        entry.into_iter().collect()
    }
}

/// Who runs a VNI, where that is not this object.
pub(super) fn vni_held_by_another(
    view: &View<'_>,
    vni: Vni,
    subject: &ObjectRef,
) -> Option<ObjectRef> {
    let holders = view.who::<HeldVnis>(&vni);
    let is_own = holders.contains(subject);
    let another = holders.first().filter(|_| !is_own);
    another.cloned()
}

/// The VNIs of all Networks, by name, and what is wrong with those that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vnis {
    pub(crate) vnis: Arc<BTreeMap<String, Vni>>,
    pub(crate) problems: Arc<Vec<Problem>>,
}

/// The VNIs of Networks: their own, the ones they were given before, or the next of the range.
///
/// A VNI is an identity across the whole fabric: of two that claim one, the one that runs it keeps it, then the older; the other carries the
/// problem.
pub(crate) struct NetworkVnis;
impl Query for NetworkVnis {
    type Key = ();
    type Value = Vnis;
    fn compute(view: &View<'_>, (): &()) -> Vnis {
        let mut problems = Vec::new();
        let vrfs = view.get::<super::vrf::Resolved>(&()).vrfs;
        let holder = vrfs
            .iter()
            .map(|(key, vrf)| (vrf.vni, reference(Kind::Vrf, key)));
        let mut holders: BTreeMap<Vni, ObjectRef> = holder.collect();
        for vni in names::settings_vnis(&view.settings()) {
            let settings = ObjectRef::named(Kind::Settings, "default");
            holders.entry(vni).or_insert(settings);
        }
        let mut vnis = BTreeMap::new();
        let keys = view.keys::<kinds::Network>();
        let wanted = keys
            .iter()
            .filter_map(|key| Some((key, view.get::<WantedVni>(key)?)));
        let mut own = Vec::new();
        let mut before: BTreeMap<&str, Option<Vni>> = BTreeMap::new();
        for (key, (wanted, age)) in wanted {
            match wanted {
                Wanted::Own(vni) => {
                    let subject = reference(Kind::Network, key);
                    let rival = vni_held_by_another(view, vni, &subject);
                    own.push((rival.is_some(), age, key, vni, rival));
                }
                Wanted::Any(vni) => drop(before.insert(&key.name, vni)),
            }
        }
        own.sort();
        for (_, _, key, vni, rival) in own {
            let subject = reference(Kind::Network, key);
            if let Some(by) = holders.get(&vni).cloned().or(rival) {
                let node = None;
                let kind = problem::Kind::VniTaken { vni, by, node };
                problems.push(Problem::new(subject, "spec.vni", kind));
                continue;
            }
            holders.insert(vni, subject);
            vnis.insert(key.name.to_string(), vni);
        }
        from_range(view, &holders, &before, &mut vnis, &mut problems);
        Vnis {
            vnis: Arc::new(vnis),
            problems: Arc::new(problems),
        }
    }
}

/// The VNI of one Network.
pub(crate) struct VniOf;
impl Query for VniOf {
    type Key = String;
    type Value = Option<Vni>;
    fn compute(view: &View<'_>, network: &String) -> Option<Vni> {
        view.get::<NetworkVnis>(&()).vnis.get(network).copied()
    }
}

/// Gives the networks that need a VNI and have none of their own one of the range.
fn from_range(
    view: &View<'_>,
    holders: &BTreeMap<Vni, ObjectRef>,
    wanted: &BTreeMap<&str, Option<Vni>>,
    vnis: &mut BTreeMap<String, Vni>,
    problems: &mut Vec<Problem>,
) {
    let mut names: BTreeSet<&str> = wanted.keys().copied().collect();
    let known = wanted.iter();
    let known = known.filter_map(|(name, vni)| Some(((*name).to_owned(), vni.as_ref()?.get())));
    let mut before: BTreeMap<String, u32> = known.collect();
    if before.len() < names.len() {
        recall(view, &names, &mut before);
    }
    let as_vni = |number: u32| Vni::try_from(i64::from(number)).ok();
    let settings = view.settings();
    let range = settings.l2_vni_range.as_ref();
    // A segment that runs is never renumbered: what it was given stays, also where the range moves away.
    let mut outside: BTreeSet<Vni> = BTreeSet::new();
    let is_inside = |vni: &Vni| range.is_some_and(|range| (range.first..=range.last).contains(vni));
    for (name, vni) in wanted
        .iter()
        .filter_map(|(name, vni)| Some((*name, (*vni)?)))
    {
        if is_inside(&vni) || holders.contains_key(&vni) || !outside.insert(vni) {
            continue;
        }
        names.remove(name);
        vnis.insert(name.to_owned(), vni);
        let what = format!(
            "it keeps VNI {vni}, which nodes use and which is outside of Settings.spec.l2VniRange: set spec.vni to {vni}"
        );
        let subject = ObjectRef::named(Kind::Network, name);
        problems.push(Problem::new(
            subject,
            "spec.vni",
            problem::Kind::NoEffect { what },
        ));
    }
    let free = |number: &u32| {
        as_vni(*number).is_some_and(|vni| !holders.contains_key(&vni) && !outside.contains(&vni))
    };
    let numbers = range.map_or_else(BTreeMap::new, |range| {
        allocate::numbers((range.first.get(), range.last.get()), &names, &before, free)
    });
    for name in names {
        if let Some(vni) = numbers.get(name).and_then(|number| as_vni(*number)) {
            vnis.insert(name.to_owned(), vni);
        } else {
            let subject = ObjectRef::named(Kind::Network, name);
            let kind = match range {
                Some(_) => problem::Kind::NoVniLeft,
                None => problem::Kind::NoVniRange,
            };
            problems.push(Problem::new(subject, "spec.vni", kind));
        }
    }
}

/// Adds what is known of VNIs besides statuses: the one of a network whose status was lost; and, so that no newcomer gets them, those
/// of low-level objects, and those that configs of nodes have and whose network is gone.
fn recall(view: &View<'_>, names: &BTreeSet<&str>, before: &mut BTreeMap<String, u32>) {
    for key in view.keys::<kinds::Layer2NetworkConfiguration>().iter() {
        let owner = view.meta::<kinds::Layer2NetworkConfiguration>(key);
        let owner = owner.and_then(|meta| meta.owner.clone());
        let attachment = owner.and_then(|owner| view.spec::<kinds::Layer2Attachment>(&owner.key));
        let Some(network) = attachment.map(|attachment| attachment.network_ref.clone()) else {
            continue;
        };
        let has_none = names.contains(network.as_str()) && !before.contains_key(&network);
        if !has_none {
            continue;
        }
        let spec = view.spec::<kinds::Network>(&Key::named(&network));
        let vlan = spec.and_then(|spec| spec.vlan);
        let object = view.spec::<kinds::Layer2NetworkConfiguration>(key);
        let object = object.filter(|object| vlan == Some(object.id));
        if let Some(vni) = object.and_then(|object| object.vni) {
            before.insert(network, vni.get());
        }
    }
    let mut known: BTreeSet<u32> = before.values().copied().collect();
    for vni in view.keys_in::<VnisInUse>(&0, &u32::MAX).iter() {
        if known.insert(*vni) {
            // Nothing is called so: it is a place for the number alone.
            before.insert(format!("VNI {vni}"), *vni);
        }
    }
}

/// The VNIs that low-level objects and configs of nodes have.
pub(crate) struct VnisInUse;
impl Index for VnisInUse {
    type Source = ObjectRef;
    type Key = u32;
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let mut sources = view.all::<kinds::Layer2NetworkConfiguration>();
        sources.extend(view.all::<kinds::VrfRouteConfiguration>());
        sources.extend(view.all::<kinds::NodeNetworkConfig>());
        sources
    }
    fn entries(view: &View<'_>, source: &ObjectRef) -> Vec<(u32, ())> {
        let key = &source.key;
        let vnis: Vec<Vni> = if source.kind == Kind::NodeNetworkConfig {
            let spec = view.spec::<kinds::NodeNetworkConfig>(key);
            let layer2s = spec.iter().flat_map(|spec| spec.layer2s.values());
            layer2s.map(|one| one.vni).collect()
        } else if source.kind == Kind::VrfRouteConfiguration {
            let spec = view.spec::<kinds::VrfRouteConfiguration>(key);
            spec.and_then(|spec| spec.vni).into_iter().collect()
        } else {
            let spec = view.spec::<kinds::Layer2NetworkConfiguration>(key);
            spec.and_then(|spec| spec.vni).into_iter().collect()
        };
        vnis.into_iter().map(|vni| (vni.get(), ())).collect()
    }
}
