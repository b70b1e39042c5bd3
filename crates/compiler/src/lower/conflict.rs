//! Intents and people's own low-level objects do not share a scope: a VRF, a VLAN or VNI, a session, a tunnel, what is copied from a
//! segment into a tunnel. Whoever has it keeps it.

mod mirrors;

use std::{collections::BTreeMap, fmt, net::IpAddr, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{
        BgpPeeringSpec, GreProtocol, Layer2NetworkConfigurationSpec, MirrorDirection,
        VrfRouteConfigurationSpec,
    },
    value::{IfName, VlanId, Vni, VrfName},
};

use super::{Contribution, LowLevel, LowLevelObjects, written::Written};
use crate::{
    last_good::{self, Last},
    problem::{self, Problem},
    select::may_meet,
    snapshot::{Key, Kind, Meta, ObjectRef, Objects, Snapshot, age},
};

/// What one object configures, and no other may where they meet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
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
        match (self, kind) {
            (Self::Vrf(_), Kind::VrfRouteConfiguration) => "spec.vrf",
            (Self::Vrf(_), Kind::Collector) => "spec.mirrorVRF.name",
            (Self::Vrf(_), Kind::BgpNeighbor) => "spec.allowedInbounds",
            (Self::Vrf(_), _) => "spec.destinations",
            (Self::Vlan(_) | Self::HostVlan(..), Kind::Layer2NetworkConfiguration) => "spec.id",
            (Self::Vni(_), Kind::Layer2NetworkConfiguration) => "spec.vni",
            (Self::Vlan(_) | Self::HostVlan(..) | Self::Vni(_), _) => "spec.networkRef",
            (Self::Segment(_), Kind::BgpPeering) => "spec.peeringVlan",
            (Self::Peer(_), Kind::BgpPeering) => "spec.loopbackPeer",
            (Self::Segment(_), _) => "spec.bgp",
            (Self::Peer(_), _) => "spec",
            (Self::Tunnel { .. }, Kind::MirrorTarget) => "spec.destinationIP",
            (Self::Tunnel { .. }, _) => "spec.address",
            (Self::Copies { .. }, Kind::MirrorSelector) => "spec.mirrorSource",
            (Self::Copies { .. }, _) => "spec.source",
        }
    }
}

/// A low-level object that has scopes on the nodes it selects.
pub(super) trait Scoped {
    fn scopes(&self) -> Vec<Scope>;
    fn node_selector(&self) -> Option<&LabelSelector>;
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

    fn node_selector(&self) -> Option<&LabelSelector> {
        self.node_selector.as_ref()
    }
}

impl Scoped for VrfRouteConfigurationSpec {
    fn scopes(&self) -> Vec<Scope> {
        vec![Scope::Vrf(self.vrf.clone())]
    }

    fn node_selector(&self) -> Option<&LabelSelector> {
        self.node_selector.as_ref()
    }
}

impl Scoped for BgpPeeringSpec {
    fn scopes(&self) -> Vec<Scope> {
        let segment = self.peering_vlan.iter();
        let segment = segment.map(|segment| Scope::Segment(segment.name.clone()));
        let peers = self.loopback_peer.iter().flat_map(|peer| &peer.ips);
        segment.chain(peers.copied().map(Scope::Peer)).collect()
    }

    fn node_selector(&self) -> Option<&LabelSelector> {
        self.node_selector.as_ref()
    }
}

/// A hand-written object in one scope.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hand {
    source: ObjectRef,
    meta: Meta,
    node_selector: Option<LabelSelector>,
    /// Whether the last revision has it in this scope, or, for a mirror, some node's config.
    runs: bool,
}

/// People's own low-level objects, by what they configure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hands {
    by_scope: BTreeMap<Scope, Vec<Hand>>,
}

impl Hands {
    pub(super) fn new(snapshot: &Snapshot, written: &Written) -> Self {
        let mut hands = Self::default();
        let last = last_good::last(snapshot);
        let last = last.as_ref();
        hands.add(&written.layer2, &last.map(Last::layer2).unwrap_or_default());
        hands.add(&written.vrf, &last.map(Last::vrf).unwrap_or_default());
        hands.add(&written.bgp, &last.map(Last::bgp).unwrap_or_default());
        hands.add(&written.mirror_targets, &mirrors::told_targets(snapshot));
        hands.add(
            &written.mirror_selectors,
            &mirrors::told_selectors(snapshot),
        );
        hands
    }

    fn add<S: Scoped>(&mut self, objects: &LowLevelObjects<S>, last: &BTreeMap<&str, &S>) {
        for (name, object) in objects {
            let before = last.get(name.as_str());
            let before = before.map(|before| before.scopes()).unwrap_or_default();
            for scope in object.spec.scopes() {
                let runs = before.contains(&scope);
                self.by_scope.entry(scope).or_default().push(Hand {
                    source: object.source.clone(),
                    meta: object.meta.clone(),
                    node_selector: object.spec.node_selector().cloned(),
                    runs,
                });
            }
        }
    }

    /// Whether nobody wrote anything.
    pub(super) fn is_empty(&self) -> bool {
        self.by_scope.is_empty()
    }

    /// Whether an intent can have what it would become. Where it cannot, it carries the problem; where a hand-written object stands in
    /// the way of an intent that was there before, that one does, and is kept out.
    pub(super) fn allow(
        &self,
        snapshot: &Snapshot,
        (subject, meta): (&ObjectRef, &Meta),
        made: &Contribution,
        (problems, refused): (&mut Vec<Problem>, &mut Vec<ObjectRef>),
    ) -> bool {
        if self.by_scope.is_empty() {
            return true;
        }
        let intent = (subject, meta);
        let layer2 = &snapshot.layer2_network_configurations;
        let vrf = &snapshot.vrf_route_configurations;
        let mut meetings = self.meetings(intent, layer2, &made.layer2);
        meetings.extend(self.meetings(intent, vrf, &made.vrf));
        meetings.extend(self.meetings(intent, &snapshot.bgp_peerings, &made.bgp));
        let targets = &snapshot.mirror_targets;
        meetings.extend(self.meetings(intent, targets, &made.mirror_targets));
        let selectors = &snapshot.mirror_selectors;
        meetings.extend(self.meetings(intent, selectors, &made.mirror_selectors));
        let waits = meetings.iter().any(|meeting| meeting.intent_waits);
        for Meeting {
            scope,
            hand,
            intent_waits,
        } in meetings
        {
            // An intent that waits for one object refuses no other.
            let (loser, by) = match (intent_waits, waits) {
                (true, _) => (subject.clone(), hand),
                (false, true) => continue,
                (false, false) => (hand, subject.clone()),
            };
            if loser != *subject {
                refused.push(loser.clone());
            }
            let field = scope.field(loser.kind);
            let scope = scope.to_string();
            let kind = problem::Kind::LowLevelConflict { scope, by };
            problems.push(Problem::new(loser, field, kind));
        }
        !waits
    }

    /// Where what an intent would become meets hand-written objects, and who yields.
    fn meetings<S: Scoped, T>(
        &self,
        (subject, meta): (&ObjectRef, &Meta),
        present: &Objects<S, T>,
        made: &[(String, Arc<LowLevel<S>>)],
    ) -> Vec<Meeting> {
        let mut meetings = Vec::new();
        for (name, object) in made {
            let spec = &object.spec;
            let before = present.get(&Key::named(name));
            let before = before.filter(|before| before.meta.owner.as_ref() == Some(subject));
            let before = before.map(|before| before.spec.scopes());
            let before = before.unwrap_or_default();
            for scope in spec.scopes() {
                let hands = self.by_scope.get(&scope).into_iter().flatten();
                for hand in
                    hands.filter(|hand| may_meet(spec.node_selector(), hand.node_selector.as_ref()))
                {
                    let intent_waits = match (before.contains(&scope), hand.runs) {
                        (true, false) => false,
                        (false, true) => true,
                        _ => age(&hand.meta) < age(meta),
                    };
                    meetings.push(Meeting {
                        scope: scope.clone(),
                        hand: hand.source.clone(),
                        intent_waits,
                    });
                }
            }
        }
        meetings
    }
}

/// An intent and a hand-written object in one scope.
struct Meeting {
    scope: Scope,
    hand: ObjectRef,
    intent_waits: bool,
}
