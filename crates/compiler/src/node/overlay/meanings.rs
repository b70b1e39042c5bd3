//! VNIs that mean one thing on some nodes and another on others.
//!
//! Each node for itself is well. But a VNI is a number of the whole fabric: FRR derives route targets from it, and a node takes in
//! what comes with the route target of a VNI that it has, whatever the AS number in it.

use api::value::Vni;

use super::{OverlayOf, Wants};
use crate::{
    lower::{LowLevelObject, intent, low_level, merge},
    memo::Index,
    node::{
        group::{Members, MembersOf},
        selection::{Facet, Facets, NodesBySignature},
        vrfs::NumbersOfAll,
    },
    problem::{self, Problem},
    snapshot::ObjectRef,
    view::View,
};

/// What a VNI is to an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
    /// A VRF.
    Vrf(String),
    /// A segment, in the VRF of its gateways.
    Segment(Option<String>),
}

impl std::fmt::Display for Meaning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vrf(vrf) => write!(f, "VRF {vrf:?}"),
            Self::Segment(Some(vrf)) => write!(f, "a segment in VRF {vrf:?}"),
            Self::Segment(None) => f.write_str("a segment in no VRF"),
        }
    }
}

/// The objects of each VNI, the older first, each with what the VNI is to it.
pub(crate) struct MeaningsByVni;
impl Index for MeaningsByVni {
    type Source = ObjectRef;
    type Key = Vni;
    type Item = ((bool, Option<String>), ObjectRef, Meaning);
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        super::all(view)
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<(Vni, Self::Item)> {
        let planned = view.get::<OverlayOf>(subject);
        let meant = planned.plan.as_ref().and_then(|plan| {
            let meaning = match &plan.wants {
                Wants::L3(l3) => Meaning::Vrf(l3.vrf.clone()),
                Wants::L2(l2) => Meaning::Segment(l2.vrf.clone()),
                Wants::Passthrough(_) => return None,
            };
            let age = (plan.created.is_none(), plan.created.clone());
            Some((plan.vni()?, (age, subject.clone(), meaning)))
        });
        meant.into_iter().collect()
    }
}

/// Says that the VNI of an object is something else to an older one on other nodes. Where both are on one node, the conflict is said.
pub(crate) fn means_two(view: &View<'_>, subject: &ObjectRef) -> Option<Problem> {
    let vni = view.get::<OverlayOf>(subject).plan.as_ref()?.vni()?;
    let mut same = view.who::<MeaningsByVni>(&vni).to_vec();
    same.sort();
    let (_, _, own) = same.iter().find(|(_, one, _)| one == subject)?;
    let older = same.iter().take_while(|(_, one, _)| one != subject);
    let older = older.filter(|(_, _, other)| other != own);
    let mut older = older.map(|(_, other, theirs)| (other.clone(), theirs.clone()));
    let is_apart = |other: &ObjectRef| !meet(view, subject, |members| members.has_overlay(other));
    let (other, theirs) = older
        .find(|(other, _)| is_apart(other))
        .or_else(|| of_a_segment(view, subject, vni, own))
        .or_else(|| of_a_vrf(view, subject, vni, own))?;
    let kind = problem::Kind::VniMeansTwo {
        vni,
        own: own.to_string(),
        theirs: theirs.to_string(),
        other: Box::new(other),
    };
    Some(Problem::new(subject.clone(), "spec.vni", kind))
}

/// The segments of Networks and of hand-written objects, by VNI: the name of the low-level object, its author and the VRF.
pub(crate) struct SegmentsByVni;
impl Index for SegmentsByVni {
    type Source = ObjectRef;
    type Key = Vni;
    type Item = (String, ObjectRef, Option<String>);
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let mut sources = intent::all(view).to_vec();
        sources.extend(low_level::hand_written(view).iter().cloned());
        sources
    }
    fn entries(view: &View<'_>, source: &ObjectRef) -> Vec<(Vni, Self::Item)> {
        let objects = if source.kind.intent().is_some() {
            view.get::<merge::Merged>(source).objects.clone()
        } else {
            let written = merge::in_effect(view, source);
            written.into_iter().collect()
        };
        let segments = objects.iter().filter_map(|object| match object {
            LowLevelObject::Layer2(object) => {
                let vrf = object.spec.vrf.as_ref().map(ToString::to_string);
                let item = (object.name.clone(), object.source.clone(), vrf);
                Some((object.spec.vni?, item))
            }
            LowLevelObject::Vrf(_)
            | LowLevelObject::Bgp(_)
            | LowLevelObject::MirrorTarget(_)
            | LowLevelObject::MirrorSelector(_) => None,
        });
        segments.collect()
    }
}

/// What the VNI is to a segment of the other group of kinds on other nodes.
fn of_a_segment(
    view: &View<'_>,
    subject: &ObjectRef,
    vni: Vni,
    own: &Meaning,
) -> Option<(ObjectRef, Meaning)> {
    let segments = view.who::<SegmentsByVni>(&vni);
    segments.iter().find_map(|(name, source, vrf)| {
        let theirs = Meaning::Segment(vrf.clone());
        let is_apart = || !meet(view, subject, |members| members.segment(name).is_some());
        (theirs != *own && is_apart()).then(|| (source.clone(), theirs))
    })
}

/// What the VNI is to a VRF of the other group of kinds on other nodes.
fn of_a_vrf(
    view: &View<'_>,
    subject: &ObjectRef,
    vni: Vni,
    own: &Meaning,
) -> Option<(ObjectRef, Meaning)> {
    let numbers = view.get::<NumbersOfAll>(&());
    let mut vrfs = numbers.numbers.vrfs.iter();
    let (vrf, _) = vrfs.find(|(_, (other, _))| *other == vni)?;
    let theirs = Meaning::Vrf(vrf.clone());
    if theirs == *own || meet(view, subject, |members| members.has_vrf(vrf)) {
        return None;
    }
    let objects = view.who::<Facets>(&Facet::Vrf(vrf.clone()));
    let mut routing = objects.iter().filter_map(|one| one.vrf());
    Some((routing.next()?.source.clone(), theirs))
}

/// Whether a node is there that the object selects, and that has the other.
fn meet(view: &View<'_>, one: &ObjectRef, has_other: impl Fn(&Members) -> bool) -> bool {
    let signatures = view.all_keys::<NodesBySignature>();
    let mut signatures = signatures.iter();
    signatures.any(|signature| {
        let members = view.get::<MembersOf>(signature);
        members.has_overlay(one) && has_other(&members)
    })
}
