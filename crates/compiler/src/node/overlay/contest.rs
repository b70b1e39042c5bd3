//! Which object gets a VRF or a VNI that objects of both groups of kinds need on the nodes of a group: the one that runs there, then the older. The VRF of
//! an intent is the intent's.

use std::{collections::BTreeMap, sync::Arc};

use api::{tcaas::NodeNetworkConfigSpec, value::Vni};

use super::{Overlay, Wants};
use crate::{
    lower::LowLevel,
    node::{group::Group, vrfs::Numbers},
    problem::{self, Problem},
    snapshot::ObjectRef,
};

/// What came of it.
#[derive(Debug, Default)]
pub(in crate::node) struct Contest {
    /// The VRFs of routing objects, without those that lose a conflict.
    pub(in crate::node) numbers: Numbers,
    /// The VNIs that overlay objects have against segments.
    pub(in crate::node) vnis: BTreeMap<Vni, ObjectRef>,
    /// The overlay objects that lose a conflict.
    lost: Vec<ObjectRef>,
}

/// Whether a node runs an object as it is.
pub(in crate::node) fn runs(config: &NodeNetworkConfigSpec, overlay: &Overlay) -> bool {
    let key = Some(overlay.subject.key.to_string());
    match &overlay.wants {
        Wants::L3(l3) => {
            let vrf = config.fabric_vrfs.get(&l3.vrf);
            vrf.is_some_and(|vrf| vrf.source == key && vrf.vni == Some(l3.vni))
        }
        Wants::L2(l2) => {
            let segment = config.layer2s.get(&super::build::segment_key(l2.vni));
            segment.is_some_and(|segment| {
                let gateways = segment.irb.iter().flat_map(|irb| &irb.ip_addresses);
                let vrf = segment.irb.as_ref().map(|irb| &irb.vrf);
                segment.source == key && gateways.eq(&l2.gateways) && vrf == l2.vrf.as_ref()
            })
        }
        Wants::Passthrough(_) => key.is_some_and(|key| config.passthroughs.contains_key(&key)),
    }
}

/// What nodes of a group run.
pub(in crate::node) struct Running<'a> {
    pub(in crate::node) configs: &'a dyn Fn() -> Vec<Arc<NodeNetworkConfigSpec>>,
}

impl Running<'_> {
    fn any(&self, runs: impl Fn(&NodeNetworkConfigSpec) -> bool) -> bool {
        (self.configs)().iter().any(|config| runs(config))
    }
}

impl Contest {
    pub(in crate::node) fn new(
        group: &Group<'_>,
        numbers: &Numbers,
        running: &Running<'_>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut contest = Self {
            numbers: numbers.clone(),
            ..Self::default()
        };
        for overlay in group.overlays {
            if let Wants::L3(l3) = &overlay.wants
                && let Some((vni, _)) = contest.numbers.vrfs.get(&l3.vrf).copied()
            {
                let generated = routing(group, &l3.vrf).any(LowLevel::is_of_intent);
                if generated || vni != l3.vni {
                    contest.vrf(group, overlay, &l3.vrf, generated, running, problems);
                }
            }
            contest.vni(group, overlay, running, problems);
        }
        contest
    }

    /// Whether an object loses a conflict with one of the other kinds.
    pub(super) fn is_lost(&self, overlay: &Overlay) -> bool {
        self.lost.contains(&overlay.subject)
    }

    fn vrf(
        &mut self,
        group: &Group<'_>,
        overlay: &Overlay,
        vrf: &str,
        generated: bool,
        running: &Running<'_>,
        problems: &mut Vec<Problem>,
    ) {
        let has_vrf = |config: &NodeNetworkConfigSpec| {
            let vrf = config.fabric_vrfs.get(vrf);
            vrf.is_some_and(|vrf| vrf.source.is_none())
        };
        let is_older = || {
            let mut others = routing(group, vrf);
            others.all(|other| overlay.age() < other.age())
        };
        let wins = running.any(|config| runs(config, overlay))
            || (!generated && !running.any(has_vrf) && is_older());
        let kind = |by: &ObjectRef| {
            if generated {
                problem::Kind::LowLevelConflict {
                    scope: format!("VRF {vrf:?}"),
                    by: by.clone(),
                }
            } else {
                problem::Kind::VrfDisagrees {
                    vrf: vrf.to_owned(),
                    what: "vni",
                    other: by.clone(),
                }
            }
        };
        if wins {
            let losers = routing(group, vrf).map(|object| &object.source);
            problems.extend(losers.map(|source| {
                let field = crate::node::vrfs::field(source, "spec.vrf");
                Problem::new(source.clone(), field, kind(&overlay.subject))
            }));
            self.numbers.vrfs.remove(vrf);
        } else {
            let by = routing(group, vrf).next().map(|object| &object.source);
            let field = if generated { "spec.vrf" } else { "spec.vni" };
            problems.extend(by.map(|by| Problem::new(overlay.subject.clone(), field, kind(by))));
            self.lost.push(overlay.subject.clone());
        }
    }

    fn vni(
        &mut self,
        group: &Group<'_>,
        overlay: &Overlay,
        running: &Running<'_>,
        problems: &mut Vec<Problem>,
    ) {
        let Some(vni) = overlay.vni() else { return };
        let is_own = |vrf: &str| matches!(&overlay.wants, Wants::L3(l3) if l3.vrf == vrf);
        let mut vrfs = self.numbers.vrfs.iter();
        let vrf = vrfs.find(|(name, (other, _))| *other == vni && !is_own(name));
        let vrf = vrf.map(|(name, _)| name.clone());
        let segment = group
            .layer2
            .iter()
            .find(|(_, one)| one.spec.vni == Some(vni));
        let rival = match (&vrf, segment) {
            (Some(vrf), _) => routing(group, vrf)
                .next()
                .map(|one| (&one.source, one.age())),
            (None, Some((_, segment))) => Some((&segment.source, segment.age())),
            (None, None) => None,
        };
        let Some((by, age)) = rival else { return };
        let has_vni = |config: &NodeNetworkConfigSpec| {
            let mut vrfs = config.fabric_vrfs.values();
            let mut segments = config.layer2s.values();
            vrfs.any(|vrf| vrf.vni == Some(vni) && vrf.source.is_none())
                || segments.any(|segment| segment.vni == vni && segment.source.is_none())
        };
        let taken = |by: &ObjectRef| problem::Kind::VniTaken {
            vni,
            by: by.clone(),
            node: group.node.map(str::to_owned),
        };
        let wins = running.any(|config| runs(config, overlay))
            || (!running.any(has_vni) && overlay.age() < age);
        if !wins {
            let subject = overlay.subject.clone();
            problems.push(Problem::new(subject, "spec.vni", taken(by)));
            self.lost.push(overlay.subject.clone());
            return;
        }
        if let Some(vrf) = vrf {
            let losers = routing(group, &vrf).map(|object| &object.source);
            problems.extend(losers.map(|source| {
                let field = crate::node::vrfs::field(source, "spec.vni");
                Problem::new(source.clone(), field, taken(&overlay.subject))
            }));
            self.numbers.vrfs.remove(&vrf);
        }
        self.vnis.insert(vni, overlay.subject.clone());
    }
}

/// The routing objects of a VRF in a group.
fn routing<'a>(
    group: &'a Group<'a>,
    vrf: &'a str,
) -> impl Iterator<Item = &'a LowLevel<api::tcaas::VrfRouteConfigurationSpec>> {
    let objects = group.vrf.iter().map(|(_, object)| &***object);
    objects.filter(move |object| object.spec.vrf.as_str() == vrf)
}
