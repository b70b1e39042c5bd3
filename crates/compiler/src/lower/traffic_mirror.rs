//! A `TrafficMirror` becomes mirror selectors: one for the segment of an attachment, or, for a service, one for each VRF and each
//! network of addresses that it has.

use std::sync::Arc;

use api::{
    meta::TypedObjectReference,
    tcaas::{
        GROUP, MatchPrefix, MirrorDirection, MirrorSelectorSpec, MirrorSourceKind,
        MirrorTargetSpec, Protocol, TrafficMatch, TrafficMirrorSpec,
    },
    value::{Prefix, VrfName},
};
use ipnet::IpNet;

use super::{
    addresses::plain,
    intent::{self, Author, Intent, LoweredIntent, Terms},
    low_level::{LowLevel, LowLevelObject},
    merge::{Merged, MergedIntent},
    routing::generated_name,
    scope::Scope,
};
use crate::{
    allocate::share::Claim,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

impl Intent for kinds::TrafficMirror {
    const VRF_FIELD: &'static str = "spec.collector";

    fn terms(spec: &TrafficMirrorSpec) -> Terms<'_> {
        let collector = ObjectRef::named(Kind::Collector, &spec.collector);
        Terms::naming([mirrored(spec), collector])
    }

    fn scope_field(scope: &Scope) -> &'static str {
        match scope {
            Scope::Copies { .. } => "spec.source",
            _ => "spec",
        }
    }

    fn claim(_view: &View<'_>, _subject: &ObjectRef) -> Option<Claim> {
        None
    }

    fn is_needed(object: &LowLevelObject) -> bool {
        matches!(object, LowLevelObject::MirrorSelector(_))
    }

    fn lower(
        view: &View<'_>,
        author: &Author<'_>,
        spec: &TrafficMirrorSpec,
        problems: &mut Vec<Problem>,
    ) -> Option<LoweredIntent> {
        let mut wrong = Vec::new();
        let mut report = |field: &str, kind| wrong.push(author.problem(field, kind));
        let collector = ObjectRef::named(Kind::Collector, &spec.collector);
        let target = target(&view.get::<Merged>(&collector), &spec.collector);
        if !view.exists(&collector) {
            report("spec.collector", view.missing(collector));
        } else if target.is_none() {
            let kind = problem::Kind::ReferenceNotInEffect { target: collector };
            report("spec.collector", kind);
        }
        let traffic = spec.traffic_match.clone().unwrap_or_default();
        if let Err(message) = check(&traffic) {
            let message = message.to_owned();
            report("spec.trafficMatch", problem::Kind::RuleBroken { message });
        }
        let request = Request {
            subject: author.subject,
            spec,
            traffic,
            target,
        };
        let selectors = request
            .selectors(view)
            .map_err(|(field, kind)| report(field, kind))
            .ok();
        let is_sound = wrong.is_empty();
        problems.append(&mut wrong);
        let selectors = selectors.filter(|_| is_sound)?;
        Some(LoweredIntent {
            objects: author.objects(selectors),
            ..LoweredIntent::default()
        })
    }
}

/// The tunnel that a collector has.
fn target(collector: &MergedIntent, name: &str) -> Option<Arc<LowLevel<MirrorTargetSpec>>> {
    collector.objects.iter().find_map(|object| match object {
        LowLevelObject::MirrorTarget(target) if target.name == name => Some(Arc::clone(target)),
        LowLevelObject::Layer2(_)
        | LowLevelObject::Vrf(_)
        | LowLevelObject::Bgp(_)
        | LowLevelObject::MirrorTarget(_)
        | LowLevelObject::MirrorSelector(_) => None,
    })
}

/// Whether some packet can be like this; the same words as the kinds' own definitions.
pub(crate) fn check(traffic: &TrafficMatch) -> Result<(), &'static str> {
    let has_ports = traffic.src_port.is_some() || traffic.dst_port.is_some();
    let protocol = traffic.protocol;
    if has_ports && !protocol.is_some_and(Protocol::has_ports) {
        return Err("srcPort and dstPort need protocol tcp, udp or sctp");
    }
    let prefixes = [traffic.src_prefix, traffic.dst_prefix];
    let of_prefixes = prefixes
        .into_iter()
        .flatten()
        .map(|prefix| prefix.prefix().is_ipv4());
    let of_prefixes: Vec<bool> = of_prefixes.collect();
    if let [src, dst] = of_prefixes.as_slice()
        && src != dst
    {
        return Err(
            "srcPrefix and dstPrefix must be of the same address family: no packet has both",
        );
    }
    let of_protocol = protocol.and_then(Protocol::is_ipv4);
    if of_protocol.is_some_and(|ipv4| of_prefixes.iter().any(|prefix| *prefix != ipv4)) {
        return Err(
            "protocol icmp is IPv4's and icmpv6 is IPv6's: no packet has both it and the prefix",
        );
    }
    Ok(())
}

type Selectors = Vec<(String, MirrorSelectorSpec)>;
/// The intent whose traffic is copied.
fn mirrored(spec: &TrafficMirrorSpec) -> ObjectRef {
    let kind = match spec.source.kind {
        MirrorSourceKind::Layer2Attachment => Kind::Layer2Attachment,
        MirrorSourceKind::Inbound => Kind::Inbound,
        MirrorSourceKind::Outbound => Kind::Outbound,
    };
    ObjectRef::named(kind, &spec.source.name)
}

type Refusal = (&'static str, problem::Kind);

/// A source that exists and comes to nothing: why is said on it.
fn not_in_effect(target: ObjectRef) -> Refusal {
    let kind = problem::Kind::ReferenceNotInEffect { target };
    ("spec.source.name", kind)
}

/// A mirror, and the tunnel that it copies into.
struct Request<'a> {
    subject: &'a ObjectRef,
    spec: &'a TrafficMirrorSpec,
    traffic: TrafficMatch,
    target: Option<Arc<LowLevel<MirrorTargetSpec>>>,
}

impl Request<'_> {
    fn selectors(&self, view: &View<'_>) -> Result<Selectors, Refusal> {
        let mirrored = mirrored(self.spec);
        if !view.exists(&mirrored) {
            return Err(("spec.source.name", view.missing(mirrored)));
        }
        match self.spec.source.kind {
            MirrorSourceKind::Layer2Attachment => self.of_attachment(view, mirrored),
            MirrorSourceKind::Inbound | MirrorSourceKind::Outbound => {
                self.of_service(view, mirrored)
            }
        }
    }

    fn of_attachment(&self, view: &View<'_>, mirrored: ObjectRef) -> Result<Selectors, Refusal> {
        let spec = view.spec::<kinds::Layer2Attachment>(&mirrored.key);
        let network = spec
            .as_ref()
            .and_then(|spec| view.spec::<kinds::Network>(&Key::named(&spec.network_ref)));
        let spec = spec.as_ref();
        let why = if spec.is_some_and(|spec| spec.interface_ref.is_some()) {
            Some("it is on a device of the node")
        } else if spec.is_some_and(|spec| !super::is_over_the_fabric(spec)) {
            Some("packets of its SR-IOV devices bypass the router of the node")
        } else if network.is_some_and(|network| !network.managed) {
            Some("its Network is not managed")
        } else {
            None
        };
        if let Some(why) = why {
            let kind = problem::Kind::NothingToMirror { mirrored, why };
            return Err(("spec.source", kind));
        }
        let merged = view.get::<Merged>(&mirrored);
        let segments = merged.objects.iter().filter_map(LowLevelObject::layer2);
        let segment = segments.min_by_key(|segment| &segment.name);
        let segment = segment.ok_or_else(|| not_in_effect(mirrored))?;
        let kind = Kind::Layer2NetworkConfiguration;
        let selector = self.selector(kind, &segment.name, self.traffic.clone());
        let scope = segment.spec.id.to_string();
        Ok(vec![(generated_name(self.subject, &scope), selector)])
    }

    fn of_service(&self, view: &View<'_>, mirrored: ObjectRef) -> Result<Selectors, Refusal> {
        if intent::destinations(view, &mirrored).is_none() {
            let why = "it has no spec.destinations, so no VRF knows its addresses";
            let kind = problem::Kind::NothingToMirror { mirrored, why };
            return Err(("spec.source", kind));
        }
        let merged = view.get::<Merged>(&mirrored);
        let routing = merged.objects.iter().filter_map(LowLevelObject::vrf);
        let mut routing: Vec<(&str, &VrfName)> = routing
            .map(|object| (object.name.as_str(), &object.spec.vrf))
            .collect();
        routing.sort_unstable();
        let mirror_vrf = self
            .target
            .as_ref()
            .map(|target| &target.spec.destination_vrf);
        if let Some((_, vrf)) = routing.iter().find(|(_, vrf)| Some(*vrf) == mirror_vrf) {
            let vrf = vrf.to_string();
            return Err(("spec.source", problem::Kind::MirrorOfItself { vrf }));
        }
        let service = merged.service.as_ref();
        let addresses = service
            .into_iter()
            .flat_map(|service| plain(&service.addresses));
        let own = IpNet::aggregate(&addresses.map(IpNet::from).collect());
        if routing.is_empty() || own.is_empty() {
            return Err(not_in_effect(mirrored));
        }
        let matches: Vec<(Prefix, TrafficMatch)> = own
            .into_iter()
            .filter_map(|net| Some((Prefix::of(net), self.narrowed(net)?)))
            .collect();
        if matches.is_empty() {
            let kind = problem::Kind::MatchesNothing { mirrored };
            return Err(("spec.trafficMatch", kind));
        }
        let selectors = routing.into_iter().flat_map(|(name, vrf)| {
            matches.iter().map(move |(own, traffic)| {
                let kind = Kind::VrfRouteConfiguration;
                let scope = scope(vrf, *own);
                let selector = self.selector(kind, name, traffic.clone());
                (generated_name(self.subject, &scope), selector)
            })
        });
        Ok(selectors.collect())
    }

    /// What of the match concerns these addresses of the source: they are where packets go to, or, on the way out, come from.
    fn narrowed(&self, own: IpNet) -> Option<TrafficMatch> {
        let mut traffic = self.traffic.clone();
        let side = match self.spec.direction {
            MirrorDirection::Ingress => &mut traffic.dst_prefix,
            MirrorDirection::Egress => &mut traffic.src_prefix,
        };
        let narrow = match side.map(|wanted| wanted.prefix().net()) {
            None => own,
            Some(wanted) if wanted.contains(&own) => own,
            Some(wanted) if own.contains(&wanted) => wanted,
            Some(_) => return None,
        };
        *side = Some(MatchPrefix::from(Prefix::of(narrow)));
        check(&traffic).is_ok().then_some(traffic)
    }

    fn selector(&self, kind: Kind, name: &str, traffic: TrafficMatch) -> MirrorSelectorSpec {
        let reference = |kind: Kind, name: &str| TypedObjectReference {
            api_group: Some(GROUP.to_owned()),
            kind: kind.to_string(),
            name: name.to_owned(),
            namespace: None,
        };
        MirrorSelectorSpec {
            traffic_match: (traffic != TrafficMatch::default()).then_some(traffic),
            mirror_target: reference(Kind::MirrorTarget, &self.spec.collector),
            mirror_source: reference(kind, name),
            direction: self.spec.direction,
        }
    }
}

fn scope(vrf: &VrfName, own: Prefix) -> String {
    let net = own.net();
    if net.prefix_len() == net.max_prefix_len() {
        return format!("{vrf}-{}", net.addr());
    }
    format!("{vrf}-{}-{}", net.addr(), net.prefix_len())
}
