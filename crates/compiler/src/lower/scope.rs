//! Intents and hand-written low-level objects do not share a scope: a VRF, a VLAN or VNI, a session, a tunnel, what is copied from a
//! segment into a tunnel. The one that runs keeps it.

mod running;

use std::{fmt, net::IpAddr, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{
        BgpPeeringSpec, GreProtocol, Layer2NetworkConfigurationSpec, MirrorDirection,
        MirrorTargetSpec, VrfLoopback, VrfRouteConfigurationSpec,
    },
    value::{IfName, VlanId, Vni, VrfName},
};

pub(crate) use self::running::{
    RunningRules, RunningTunnels, challengers, in_last_revision, last_of, running, runs,
    runs_tunnel,
};
use super::{
    intent,
    low_level::{self, HandWritten, LowLevelObject, LowLevelSpec},
};
use crate::{
    memo::Index,
    problem::{self, Problem},
    select::may_meet,
    snapshot::{Key, Kind, Meta, ObjectRef, age, kinds},
    view::View,
};

/// What one object configures, and no other may where they meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    Vrf(VrfName),
    Vlan(VlanId),
    Vni(Vni),
    /// A VLAN on a device of the host's own.
    HostVlan(IfName, VlanId),
    /// Sessions on a segment, by the segment's object.
    Segment(String),
    /// Sessions with an address on a loopback.
    Peer(IpAddr),
    /// A tunnel for mirrored traffic: what the kernel tells tunnels apart by.
    Tunnel {
        vrf: VrfName,
        loopback: IfName,
        destination: IpAddr,
        key: Option<u32>,
        protocol: GreProtocol,
    },
    /// What is copied of an object's traffic, in one direction, into the tunnel of a target.
    Copies {
        source: String,
        direction: MirrorDirection,
        target: String,
    },
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vrf(vrf) => write!(f, "VRF {:?}", vrf.as_str()),
            Self::Vlan(vlan) => write!(f, "VLAN {vlan}"),
            Self::Vni(vni) => write!(f, "VNI {vni}"),
            Self::HostVlan(device, vlan) => write!(f, "VLAN {vlan} on {:?}", device.as_str()),
            Self::Segment(name) => write!(f, "BGP on {name}"),
            Self::Peer(address) => write!(f, "BGP with {address}"),
            Self::Tunnel {
                vrf, destination, ..
            } => write!(f, "the tunnel to {destination} in VRF {:?}", vrf.as_str()),
            Self::Copies {
                source,
                direction,
                target,
            } => {
                let direction = match direction {
                    MirrorDirection::Ingress => "ingress",
                    MirrorDirection::Egress => "egress",
                };
                write!(f, "the {direction} of {source} that {target} gets")
            }
        }
    }
}

impl Scope {
    /// The field of an object that puts it into the scope.
    fn field(&self, kind: Kind) -> &'static str {
        if let Some(kind) = kind.intent() {
            return intent::scope_field(kind, self);
        }
        match self {
            Self::Vrf(_) => "spec.vrf",
            Self::Vlan(_) | Self::HostVlan(..) => "spec.id",
            Self::Vni(_) => "spec.vni",
            Self::Segment(_) => "spec.peeringVlan",
            Self::Peer(_) => "spec.loopbackPeer",
            Self::Tunnel { .. } => "spec.destinationIP",
            Self::Copies { .. } => "spec.mirrorSource",
        }
    }
}

/// A low-level object that has scopes on the nodes it selects.
pub(crate) trait Scoped {
    fn scopes(&self) -> Vec<Scope>;
}

impl Scoped for Layer2NetworkConfigurationSpec {
    fn scopes(&self) -> Vec<Scope> {
        if let Some(parent) = &self.interface_ref {
            return vec![Scope::HostVlan(parent.clone(), self.id)];
        }
        let vni = self.vni.map(Scope::Vni);
        let vlan = Some(Scope::Vlan(self.id));
        [vlan, vni].into_iter().flatten().collect()
    }
}

impl Scoped for VrfRouteConfigurationSpec {
    fn scopes(&self) -> Vec<Scope> {
        vec![Scope::Vrf(self.vrf.clone())]
    }
}

impl Scoped for BgpPeeringSpec {
    fn scopes(&self) -> Vec<Scope> {
        let segment = self.peering_vlan.iter();
        let segment = segment.map(|segment| Scope::Segment(segment.name.clone()));
        let peers = self.loopback_peer.iter().flat_map(|peer| &peer.ips);
        segment.chain(peers.copied().map(Scope::Peer)).collect()
    }
}

/// A hand-written object in one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    source: ObjectRef,
    created: Option<String>,
    node_selector: Option<LabelSelector>,
    /// Whether it runs in this scope: the last revision has it there, or, for a mirror, some node's config.
    runs: bool,
}

impl Holder {
    /// Whether it only lies in what the scope is.
    fn is_guest_in(&self, scope: &Scope) -> bool {
        matches!(scope, Scope::Vrf(_)) && self.source.kind == Kind::Layer2NetworkConfiguration
    }
}

/// Hand-written objects by what they configure. Segments are also among those of the VRF that they lie in.
pub(crate) struct HandWrittenByScope;
impl Index for HandWrittenByScope {
    type Source = ObjectRef;
    type Key = Scope;
    type Item = Arc<Holder>;
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        low_level::hand_written(view).to_vec()
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<(Scope, Arc<Holder>)> {
        let Some(object) = view.get::<HandWritten>(subject) else {
            return Vec::new();
        };
        let before = running::scopes(view, &object);
        let holder = |runs| {
            Arc::new(Holder {
                source: subject.clone(),
                created: object.age().1.map(str::to_owned),
                node_selector: object.node_selector().cloned(),
                runs,
            })
        };
        let scopes = object.scopes().into_iter();
        let scopes = scopes.map(|scope| {
            let runs = before.contains(&scope);
            (scope, holder(runs))
        });
        let home = object.layer2().and_then(|segment| {
            let vrf = segment.spec.vrf.clone()?;
            let before = last_of::<kinds::Layer2NetworkConfiguration>(view, segment);
            let runs = before.is_some_and(|before| before.vrf.as_ref() == Some(&vrf));
            Some((Scope::Vrf(vrf), holder(runs)))
        });
        scopes.chain(home).collect()
    }
}

/// What comes of it where an intent and hand-written objects want the same scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether the intent must wait.
    pub(super) waits: bool,
    /// The problems of the intent, or, where it does not wait, of the hand-written objects that lose the conflict.
    pub(super) problems: Vec<Problem>,
}

/// Who loses the conflict: the intent, or the hand-written objects that conflict with an older intent.
pub(super) fn contend(
    view: &View<'_>,
    subject: &ObjectRef,
    meta: &Meta,
    objects: &[LowLevelObject],
) -> Verdict {
    let mut meetings = Vec::new();
    for object in objects {
        let mut before = None;
        for scope in object.scopes() {
            for holder in view.who::<HandWrittenByScope>(&scope).iter() {
                if !may_meet(object.node_selector(), holder.node_selector.as_ref()) {
                    continue;
                }
                // A segment is in a VRF that another object makes: it keeps no intent out, and stays where it is.
                if holder.is_guest_in(&scope) {
                    if !holder.runs {
                        meetings.push((scope.clone(), holder.source.clone(), false));
                    }
                    continue;
                }
                let before = before.get_or_insert_with(|| scopes_before(view, subject, object));
                let intent_waits = match (before.contains(&scope), holder.runs) {
                    (true, false) => false,
                    (false, true) => true,
                    (false, false) if !can_run(view, holder, subject) => false,
                    (true, true) | (false, false) => {
                        let created = &holder.created;
                        (created.is_none(), created.as_deref()) < age(meta)
                    }
                };
                meetings.push((scope.clone(), holder.source.clone(), intent_waits));
            }
        }
    }
    let waits = meetings.iter().any(|(_, _, intent_waits)| *intent_waits);
    let mut problems = Vec::new();
    for (scope, holder, intent_waits) in meetings {
        // An intent that waits for one object refuses no other.
        let (loser, by) = match (intent_waits, waits) {
            (true, _) => (subject.clone(), holder),
            (false, true) => continue,
            (false, false) => (holder, subject.clone()),
        };
        let field = scope.field(loser.kind);
        let scope = scope.to_string();
        let kind = problem::Kind::LowLevelConflict { scope, by };
        problems.push(Problem::new(loser, field, kind));
    }
    Verdict { waits, problems }
}

/// Whether a hand-written object could be in effect without this intent. A tunnel needs its VRF with the loopback: where the intent
/// alone would make them, a target that keeps the intent out keeps itself out.
fn can_run(view: &View<'_>, holder: &Holder, intent: &ObjectRef) -> bool {
    let Some(LowLevelObject::MirrorTarget(target)) = view.get::<HandWritten>(&holder.source) else {
        return true;
    };
    let MirrorTargetSpec {
        destination_vrf,
        source_loopback,
        ..
    } = &target.spec;
    let has_loopback = |loopbacks: &[VrfLoopback]| {
        let mut loopbacks = loopbacks.iter();
        loopbacks.any(|loopback| loopback.name == *source_loopback)
    };
    let written = view.who::<HandWrittenByScope>(&Scope::Vrf(destination_vrf.clone()));
    let is_written = written.iter().any(|routing| {
        let routing = view.get::<HandWritten>(&routing.source);
        let routing = routing.as_ref().and_then(VrfRouteConfigurationSpec::of);
        routing.is_some_and(|routing| has_loopback(&routing.spec.loopbacks))
    });
    let collectors = view.keys::<kinds::Collector>();
    let mut others = collectors.iter().filter(|key| **key != intent.key);
    is_written
        || others.any(|key| {
            let collector = view.spec::<kinds::Collector>(key);
            let vrf = collector.and_then(|collector| {
                view.spec::<kinds::Vrf>(&Key::named(&collector.mirror_vrf.name))
            });
            vrf.is_some_and(|vrf| vrf.vrf == *destination_vrf && has_loopback(&vrf.loopbacks))
        })
}

/// The scopes that an intent's object has as it is stored, or, where a person wrote another over it, as nodes run it.
fn scopes_before(view: &View<'_>, subject: &ObjectRef, object: &LowLevelObject) -> Vec<Scope> {
    let stored = ObjectRef::named(object.kind(), object.name());
    let Some(meta) = view.meta_of(&stored) else {
        return Vec::new();
    };
    match &meta.owner {
        Some(owner) if owner == subject => {
            let before = low_level::stored(view, &stored, subject);
            before.map(|before| before.scopes()).unwrap_or_default()
        }
        None if runs(view, object) => object.scopes(),
        Some(_) | None => Vec::new(),
    }
}
