//! What is mirrored, the tunnels for it and where they start, from selectors and targets.

use std::collections::BTreeSet;

use api::tcaas::{MirrorSelectorSpec, MirrorTargetSpec, VrfLoopback, node_network_config::Gre};
use compiler::{
    mirror::Rule,
    platform::ipam,
    snapshot::{Kind, ObjectRef},
};

use super::{Claim, ClaimBuilder, Field, Low, OnNode, Source, Trace, intent::Aspect};
use crate::element::{self, Element};

type Selector<'a> = Low<'a, MirrorSelectorSpec>;
type Target<'a> = Low<'a, MirrorTargetSpec>;

/// The fields behind the routing of a collector's mirror VRF.
pub(super) fn behind_collector(
    trace: &Trace<'_>,
    subject: &ObjectRef,
    aspect: Aspect<'_>,
) -> BTreeSet<Field> {
    let collector = trace.snapshot.collectors.get(&subject.key);
    let vrf = collector.map(|collector| {
        let vrf = &collector.spec.mirror_vrf.name;
        ObjectRef::named(Kind::Vrf, vrf)
    });
    let object = vrf
        .as_ref()
        .and_then(|vrf| trace.snapshot.vrfs.get(&vrf.key));
    let (Some(vrf), Some(object)) = (vrf, object) else {
        // It is there because it was there, for as long as its intent is.
        return [Field::new(subject.clone(), "metadata.name")].into();
    };
    let spec = &object.spec;
    let number = |name, what: &str, says: bool| {
        if says {
            Field::new(vrf.clone(), format!("spec.{what}"))
        } else {
            Trace::vrf_setting(name, what)
        }
    };
    match aspect {
        Aspect::Vrf(_) => {
            let reference = Field::new(subject.clone(), "spec.mirrorVRF.name");
            [reference, Field::new(vrf, "spec.vrf")].into()
        }
        Aspect::VrfVni(name) => [number(name, "vni", spec.vni.is_some())].into(),
        Aspect::VrfTarget(name) => {
            [number(name, "routeTarget", spec.route_target.is_some())].into()
        }
        _ => BTreeSet::new(),
    }
}

impl OnNode<'_> {
    /// The rule that copies traffic.
    pub(super) fn mirror(&self, element: &Element) -> Vec<Claim> {
        let rules = self.config.mirrors.rules.iter();
        let rules = rules.filter(|rule| element::mirror(&rule.place, &rule.acl) == *element);
        let claim = |rule: &Rule| {
            let selector = self.selector(&rule.selector)?;
            let mut draft = self.selected(selector);
            draft.named(selector, "spec.direction", "spec.direction");
            if selector.2.spec.traffic_match.is_some() {
                draft.named(selector, "spec.trafficMatch", "spec.trafficMatch");
            }
            Some(draft.build())
        };
        rules.filter_map(claim).collect()
    }

    /// A tunnel: each rule that copies something into it would do.
    pub(super) fn tunnel(&self, vrf: &str, device: &str) -> Vec<Claim> {
        let into = |rule: &Rule| rule.acl.mirror_destination.as_str() == device;
        let key = (vrf.to_owned(), device.to_owned());
        let Some((_, gre)) = self.config.mirrors.tunnels.get(&key) else {
            return Vec::new();
        };
        self.starts(into, |draft, target| {
            draft.named(target, "spec.type", "spec.protocol");
            draft.named(target, "spec.destinationIP", "spec.address");
            if gre.encapsulation_key.is_some() {
                draft.named(target, "spec.key", "spec.key");
            }
        })
    }

    /// The loopback that tunnels start on.
    pub(super) fn mirror_source(&self, vrf: &str, loopback: &str) -> Vec<Claim> {
        let starts_there = |gre: &Gre| {
            let start = gre.source_interface.as_ref();
            start.is_some_and(|start| start.as_str() == loopback)
        };
        let tunnels = self.config.mirrors.tunnels.iter();
        let there = tunnels.filter(|((home, _), (_, gre))| home == vrf && starts_there(gre));
        let devices: BTreeSet<&str> = there.map(|((_, device), _)| device.as_str()).collect();
        let into = |rule: &Rule| devices.contains(rule.acl.mirror_destination.as_str());
        let mut claims = self.starts(into, |_, _| {});
        claims.extend(self.loopback_of_routing(vrf, loopback));
        claims
    }

    /// A loopback that routing gives to every node which has its VRF.
    fn loopback_of_routing(&self, vrf: &str, loopback: &str) -> Vec<Claim> {
        let mut claims = Vec::new();
        for low in self.routing(vrf) {
            let spec = &low.2.spec;
            let is_wanted = |own: &VrfLoopback| {
                own.name.as_str() == loopback && self.is_claimed(&own.pool_ref.name)
            };
            let Some(place) = spec.loopbacks.iter().position(is_wanted) else {
                continue;
            };
            if low.2.source.kind == Kind::Collector {
                continue;
            }
            for mut draft in self.in_vrf(low) {
                let path = format!("spec.loopbacks[{place}]");
                draft.low_level(low, path, Aspect::Loopback(&spec.vrf, loopback));
                if let Some(given) = self.given(vrf, loopback) {
                    draft.own(Field::new(given, "spec.address"));
                }
                claims.push(draft.build());
            }
        }
        claims
    }

    /// Whether the node has a claim of a pool.
    fn is_claimed(&self, pool: &str) -> bool {
        let mut claims = self.config.mirrors.claims.iter();
        claims.any(|claim| claim.pool.name == pool)
    }

    /// The announcement of where tunnels start.
    pub(super) fn announced_source(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        let announced = |address| api::value::Prefix::host(address).to_string() == prefix;
        let sources = self.config.mirrors.loopbacks.iter();
        let mut sources =
            sources.filter(|((home, _), address)| home == vrf && announced(**address));
        let source = sources.next();
        source.map_or_else(Vec::new, |((_, loopback), _)| {
            self.mirror_source(vrf, loopback)
        })
    }

    /// Claims of the rules whose tunnels start somewhere.
    fn starts(
        &self,
        into: impl Fn(&Rule) -> bool,
        more: impl Fn(&mut ClaimBuilder<'_>, Target<'_>),
    ) -> Vec<Claim> {
        let claim = |rule: &Rule| {
            let selector = self.selector(&rule.selector)?;
            let target = self.target(&selector.2.spec.mirror_target.name)?;
            let mut draft = self.selected(selector);
            draft.named(target, "spec.destinationVrf", "spec.mirrorVRF.name");
            draft.named(target, "spec.sourceLoopback", "spec.mirrorVRF.name");
            let spec = &target.2.spec;
            let start = (spec.destination_vrf.as_str(), spec.source_loopback.as_str());
            if let Some(given) = self.given(start.0, start.1) {
                draft.own(Field::new(given, "spec.address"));
            }
            more(&mut draft, target);
            Some(draft.build())
        };
        let rules = self.config.mirrors.rules.iter().filter(|rule| into(rule));
        rules.filter_map(claim).collect()
    }

    /// The object that gives the address of a loopback.
    fn given(&self, vrf: &str, loopback: &str) -> Option<ObjectRef> {
        let mirrors = &self.config.mirrors;
        let own = mirrors
            .loopbacks
            .get(&(vrf.to_owned(), loopback.to_owned()))?;
        let claims = mirrors.claims.iter();
        let mut given = claims.filter_map(|claim| ipam::given_in(self.trace.snapshot, claim));
        given
            .find(|(_, address)| address == own)
            .map(|(object, _)| object)
    }

    fn selector(&self, name: &str) -> Option<Selector<'_>> {
        let object = self.trace.compilation.objects.get(name)?;
        Some((Kind::MirrorSelector, &object.name, object))
    }

    fn target(&self, name: &str) -> Option<Target<'_>> {
        let object = self.trace.compilation.objects.get(name)?;
        Some((Kind::MirrorTarget, &object.name, object))
    }

    /// Begins the claim of a selector: what is copied, and where to.
    fn selected(&self, low: Selector<'_>) -> ClaimBuilder<'_> {
        let mut draft = self.draft(low.2);
        draft.named(low, "spec.mirrorSource", "spec.source");
        draft.named(low, "spec.mirrorTarget", "spec.collector");
        draft
    }
}

impl ClaimBuilder<'_> {
    /// Names a field of a low-level object and, where that is generated, the field of the intent that it is copied from.
    fn named<S>(&mut self, (kind, name, object): Low<'_, S>, path: &str, of_intent: &str) {
        let behind = object.is_generated().then(|| {
            let intent = object.source.clone();
            Field::new(intent, of_intent)
        });
        self.claim.sources.insert(Source {
            field: Field::new(ObjectRef::named(kind, name), path),
            behind: behind.into_iter().collect(),
        });
    }
}
