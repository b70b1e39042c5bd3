//! VNIs that mean one thing on some nodes and another on others.
//!
//! Each node for itself is well. But a VNI is a number of the whole fabric: FRR derives route targets from it, and a node takes in
//! what comes with the route target of a VNI that it has, whatever the AS number in it.

use api::value::Vni;

use super::{OverlayOf, Wants};
use crate::{
    memo::Index,
    node::{
        group::MembersOf,
        selection::{NodesBySignature, Signature},
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
    if same.len() < 2 {
        return None;
    }
    same.sort();
    let (_, _, own) = same.iter().find(|(_, one, _)| one == subject)?;
    let older = same.iter().take_while(|(_, one, _)| one != subject);
    let mut others = older.filter(|(_, _, other)| other != own);
    let (_, other, theirs) = others.find(|(_, other, _)| !meet(view, subject, other))?;
    let kind = problem::Kind::VniMeansTwo {
        vni,
        own: own.to_string(),
        theirs: theirs.to_string(),
        other: Box::new(other.clone()),
    };
    Some(Problem::new(subject.clone(), "spec.vni", kind))
}

/// Whether a node is there that both objects select.
fn meet(view: &View<'_>, one: &ObjectRef, other: &ObjectRef) -> bool {
    let signatures = view.all_keys::<NodesBySignature>();
    let mut signatures = signatures.iter();
    signatures.any(|signature: &Signature| {
        let members = view.get::<MembersOf>(signature);
        let has = |wanted: &ObjectRef| members.overlays().iter().any(|one| one.subject == *wanted);
        has(one) && has(other)
    })
}
