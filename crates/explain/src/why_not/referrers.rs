//! Which objects refer to what a query asks about, which objects use them, and what those need.

use std::cell::Cell;

use api::{
    meta::LabelSelector,
    selvedge::VrfNumbers,
    tcaas::MirrorTargetSpec,
    value::{IfName, Prefix},
};
use compiler::{
    lower::{self, Terms},
    names,
    snapshot::{IntentKind, Key, Kind, ObjectRef, Objects, Snapshot},
};
use ipnet::IpNet;

use crate::{provenance::Trace, query::Query};

fn refs<'a, S, T>(
    kind: Kind,
    objects: &'a Objects<S, T>,
    matches: impl Fn(&Key, &S) -> bool + 'a,
) -> impl Iterator<Item = ObjectRef> + 'a {
    let matching = objects
        .iter()
        .filter(move |(key, object)| matches(key, &object.spec));
    matching.map(move |(key, _)| ObjectRef {
        kind,
        key: key.clone(),
    })
}

/// The objects that define or refer to what a query asks about.
pub(super) fn of(trace: &Trace<'_>, query: &Query) -> Vec<ObjectRef> {
    let snapshot = trace.snapshot;
    match query {
        Query::Object(object) => existing(trace, object).into_iter().collect(),
        Query::Prefix(net) => of_prefix(trace, *net),
        Query::Vrf(name) => of_vrf(snapshot, |vrf| vrf == name),
        Query::RouteTarget(target) => {
            let same = |own: Option<api::value::RouteTarget>| {
                own.is_some_and(|own| own.to_string() == *target)
            };
            let vrfs = refs(Kind::Vrf, &snapshot.vrfs, |_, spec| same(spec.route_target));
            let written = &snapshot.vrf_route_configurations;
            let written = refs(Kind::VrfRouteConfiguration, written, |_, spec| {
                same(spec.route_target)
            });
            let l3vnis = refs(Kind::L3Vni, &snapshot.l3vnis, |_, spec| {
                let mut targets = spec.export_rts.iter().chain(&spec.import_rts);
                targets.any(|own| same(Some(*own)))
            });
            let mut found: Vec<ObjectRef> = vrfs.chain(written).chain(l3vnis).collect();
            found.extend(numbered(snapshot, |numbers| same(numbers.route_target)));
            found
        }
        Query::Vlan(vlan) => of_vlan(snapshot, *vlan),
        Query::Vni(vni) => of_vni(trace, *vni),
        Query::Number(number) => {
            let vlan = u16::try_from(*number).map(|vlan| of_vlan(snapshot, vlan));
            let mut found = vlan.unwrap_or_default();
            found.extend(of_vni(trace, *number));
            found
        }
        Query::Table(_) => Vec::new(),
        Query::Interface(name) => of_interface(trace, name),
        Query::Name(name) => {
            let mut found = of_vrf(snapshot, |vrf| vrf == name);
            found.extend(of_interface(trace, name));
            let named = objects(snapshot);
            found.extend(
                named
                    .into_iter()
                    .filter(|object| *object.key.name == **name),
            );
            found
        }
    }
}

fn of_vlan(snapshot: &Snapshot, vlan: u16) -> Vec<ObjectRef> {
    let networks = refs(Kind::Network, &snapshot.networks, move |_, spec| {
        spec.vlan.is_some_and(|own| own.get() == vlan)
    });
    let written = &snapshot.layer2_network_configurations;
    let written = refs(Kind::Layer2NetworkConfiguration, written, move |_, spec| {
        spec.id.get() == vlan
    });
    networks.chain(written).collect()
}

fn of_vni(trace: &Trace<'_>, vni: u32) -> Vec<ObjectRef> {
    let snapshot = trace.snapshot;
    let same = move |own: Option<api::value::Vni>| own.is_some_and(|own| own.get() == vni);
    let vrfs = refs(Kind::Vrf, &snapshot.vrfs, move |_, spec| same(spec.vni));
    let given = &trace.compilation.network_vnis;
    let networks = refs(Kind::Network, &snapshot.networks, move |key, spec| {
        same(spec.vni) || same(given.get(&*key.name).copied())
    });
    let segments = &snapshot.layer2_network_configurations;
    let segments = refs(
        Kind::Layer2NetworkConfiguration,
        segments,
        move |_, spec| same(spec.vni),
    );
    let routing = &snapshot.vrf_route_configurations;
    let routing = refs(Kind::VrfRouteConfiguration, routing, move |_, spec| {
        same(spec.vni)
    });
    let l3vnis = refs(Kind::L3Vni, &snapshot.l3vnis, move |_, spec| {
        spec.vni.get() == vni
    });
    let l2vnis = refs(Kind::L2Vni, &snapshot.l2vnis, move |_, spec| {
        spec.vni.get() == vni
    });
    let own = vrfs.chain(networks).chain(segments).chain(routing);
    let mut found: Vec<ObjectRef> = own.chain(l3vnis).chain(l2vnis).collect();
    found.extend(numbered(snapshot, |numbers| same(numbers.vni)));
    found
}

/// The objects of the VRFs that have such numbers from the Settings; the Settings themselves, where no object has the VRF.
fn numbered(snapshot: &Snapshot, is: impl Fn(&VrfNumbers) -> bool) -> Vec<ObjectRef> {
    let key = Key::named("default");
    let Some(settings) = snapshot.settings.get(&key) else {
        return Vec::new();
    };
    let cluster = &settings.spec.cluster_vrf;
    let of_cluster = VrfNumbers {
        vni: cluster.vni,
        route_target: cluster.route_target,
    };
    let mut found = Vec::new();
    if is(&of_cluster) {
        found.push(ObjectRef::named(Kind::Settings, "default"));
    }
    let of_vrfs = settings.spec.vrfs.iter();
    for (name, _) in of_vrfs.filter(|(_, numbers)| is(numbers)) {
        let mut objects = of_vrf(snapshot, |vrf| vrf == name.as_str());
        if objects.is_empty() {
            objects.push(ObjectRef::named(Kind::Settings, "default"));
        }
        found.extend(objects);
    }
    found
}

fn of_vrf(snapshot: &Snapshot, is: impl Fn(&str) -> bool + Copy) -> Vec<ObjectRef> {
    let vrfs = refs(Kind::Vrf, &snapshot.vrfs, move |_, spec| {
        is(spec.vrf.as_str())
    });
    let written = &snapshot.vrf_route_configurations;
    let written = refs(Kind::VrfRouteConfiguration, written, move |_, spec| {
        is(spec.vrf.as_str())
    });
    let l3vnis = refs(Kind::L3Vni, &snapshot.l3vnis, move |_, spec| {
        is(spec.vrf.as_str())
    });
    let l2vnis = refs(Kind::L2Vni, &snapshot.l2vnis, move |_, spec| {
        spec.vrf.as_ref().is_some_and(|vrf| is(vrf.as_str()))
    });
    vrfs.chain(written).chain(l3vnis).chain(l2vnis).collect()
}

fn of_interface(trace: &Trace<'_>, name: &str) -> Vec<ObjectRef> {
    let snapshot = trace.snapshot;
    let suffix = name.strip_prefix("l2.");
    let is_own = |own: Option<&IfName>, device: Option<&IfName>| {
        let wanted = if device.is_some() { Some(name) } else { suffix };
        let is_named = wanted.is_some() && own.map(IfName::as_str) == wanted;
        is_named || device.is_some_and(|device| device.as_str() == name)
    };
    let attachments = refs(
        Kind::Layer2Attachment,
        &snapshot.layer2_attachments,
        |_, spec| is_own(spec.interface_name.as_ref(), spec.interface_ref.as_ref()),
    );
    let written = &snapshot.layer2_network_configurations;
    let written = refs(Kind::Layer2NetworkConfiguration, written, |_, spec| {
        is_own(spec.interface_name.as_ref(), spec.interface_ref.as_ref())
    });
    let underlays = refs(Kind::Underlay, &snapshot.underlays, |_, spec| {
        spec.nics.iter().any(|nic| nic.as_str() == name)
    });
    let mut found: Vec<ObjectRef> = attachments.chain(written).chain(underlays).collect();
    let tunnels = trace.compilation.objects.of::<MirrorTargetSpec>();
    let tunnels = tunnels.filter(|(target, one)| {
        let device = names::mirror_tunnel(target, one.spec.kind);
        device.as_str() == name || one.spec.source_loopback.as_str() == name
    });
    found.extend(tunnels.map(|(_, one)| one.source.clone()));
    let number = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.parse().ok());
    if let Some(vlan) = number("l2.").or_else(|| number("vlan.")) {
        found.extend(of_vlan(snapshot, vlan));
    }
    if let Some(vni) = name.strip_prefix("vx.").and_then(|rest| rest.parse().ok()) {
        found.extend(of_vni(trace, vni));
    }
    found.extend(of_vrf(snapshot, |vrf| {
        let devices = [
            names::vrf_bridge(vrf),
            names::vrf_vxlan(vrf),
            names::local_vrf(vrf),
        ];
        vrf == name || devices.iter().any(|device| device.as_str() == name)
    }));
    found
}

/// The objects with the longest prefix that covers this one.
fn of_prefix(trace: &Trace<'_>, net: IpNet) -> Vec<ObjectRef> {
    let longest = longest(trace, net);
    with_prefix(trace, |own| {
        own.net().contains(&net) && Some(own.net().prefix_len()) == longest
    })
}

/// The length of the longest prefix of any object that covers this one.
pub(super) fn longest(trace: &Trace<'_>, net: IpNet) -> Option<u8> {
    let longest = Cell::new(None);
    with_prefix(trace, |own| {
        if own.net().contains(&net) {
            longest.set(longest.get().max(Some(own.net().prefix_len())));
        }
        false
    });
    longest.get()
}

fn with_prefix(trace: &Trace<'_>, is: impl Fn(Prefix) -> bool + Copy) -> Vec<ObjectRef> {
    let snapshot = trace.snapshot;
    let destinations = refs(Kind::Destination, &snapshot.destinations, move |_, spec| {
        spec.prefixes.iter().any(|own| is(*own))
    });
    let networks = refs(Kind::Network, &snapshot.networks, move |_, spec| {
        let mut families = [&spec.ipv4, &spec.ipv6].into_iter().flatten();
        families.any(|family| is(family.cidr))
    });
    let attachments = refs(
        Kind::Layer2Attachment,
        &snapshot.layer2_attachments,
        move |_, spec| {
            spec.routes
                .iter()
                .flat_map(|route| &route.prefixes)
                .any(|own| is(*own))
        },
    );
    let routing = &snapshot.vrf_route_configurations;
    let routing = refs(Kind::VrfRouteConfiguration, routing, move |_, spec| {
        let items = spec.import.iter().chain(&spec.export).map(|item| item.cidr);
        let others = spec.aggregate.iter().chain(&spec.sbr_prefixes).copied();
        items.chain(others).any(is)
    });
    let segments = &snapshot.layer2_network_configurations;
    let segments = refs(
        Kind::Layer2NetworkConfiguration,
        segments,
        move |_, spec| {
            let gateways = spec.anycast_gateways.iter().map(|own| own.prefix());
            let routes = spec.static_routes.iter().map(|route| route.prefix);
            gateways.chain(routes).any(is)
        },
    );
    let intents = destinations.chain(networks).chain(attachments);
    intents.chain(routing).chain(segments).collect()
}

/// The intents that say such things.
fn intents_with(snapshot: &Snapshot, is: impl Fn(&Terms<'_>) -> bool) -> Vec<ObjectRef> {
    let mut intents = lower::all_intents(snapshot);
    intents.retain(|intent| lower::terms(snapshot, intent).is_some_and(|terms| is(&terms)));
    intents
}

/// The Destinations that a query asks about, or whose prefixes cover it.
pub(super) fn destinations(trace: &Trace<'_>, query: &Query) -> Vec<ObjectRef> {
    let mut found = match query {
        Query::Prefix(net) => with_prefix(trace, |own| own.net().contains(net)),
        query => of(trace, query),
    };
    found.retain(|object| object.kind == Kind::Destination);
    found
}

/// Whether an object configures nodes by itself.
pub(super) fn is_user(object: &ObjectRef) -> bool {
    object.kind.intent().is_some() || lower::is_low_level(object.kind)
}

/// An intent's selector of Destinations.
pub(super) fn selector<'a>(snapshot: &'a Snapshot, user: &ObjectRef) -> Option<&'a LabelSelector> {
    lower::terms(snapshot, user)?.destinations
}

/// The objects that configure nodes by using an object; or the object that nothing refers to, and what could.
pub(super) fn users(
    trace: &Trace<'_>,
    object: &ObjectRef,
) -> Result<Vec<ObjectRef>, (ObjectRef, String)> {
    let snapshot = trace.snapshot;
    let name = &object.key.name;
    let found: Vec<ObjectRef> = if object.kind == Kind::Network {
        intents_with(snapshot, |terms| terms.network == Some(&**name))
    } else if let Some(destination) = snapshot.destinations.get(&object.key)
        && object.kind == Kind::Destination
    {
        let labels = &destination.meta.labels;
        intents_with(snapshot, |terms| {
            let selector = terms.destinations;
            selector.is_some_and(|selector| selector.matches(labels))
        })
    } else if object.kind == Kind::Vrf {
        return of_vrf_users(trace, object);
    } else {
        vec![object.clone()]
    };
    if !found.is_empty() {
        return Ok(found);
    }
    let by = if object.kind == Kind::Network {
        format!("a Layer2Attachment, Inbound, Outbound or PodNetwork with spec.networkRef: {name}")
    } else {
        let labels = snapshot.destinations.get(&object.key);
        let labels = labels.map(|one| super::obstacle::labels_text(&one.meta.labels));
        let labels = labels.unwrap_or_default();
        format!("an intent whose spec.destinations selects it; it has {labels}")
    };
    Err((object.clone(), by))
}

fn of_vrf_users(trace: &Trace<'_>, vrf: &ObjectRef) -> Result<Vec<ObjectRef>, (ObjectRef, String)> {
    let name = &vrf.key.name;
    let destinations = refs(
        Kind::Destination,
        &trace.snapshot.destinations,
        |_, spec| spec.vrf_ref.as_deref() == Some(&**name),
    );
    let of_each: Vec<_> = destinations.map(|one| users(trace, &one)).collect();
    let mut found = intents_with(trace.snapshot, |terms| terms.others.contains(vrf));
    found.extend(of_each.iter().flatten().flatten().cloned());
    if !found.is_empty() {
        return Ok(found);
    }
    match of_each.into_iter().find_map(Result::err) {
        Some(unused) => Err(unused),
        None => Err((
            vrf.clone(),
            format!(
                "a Destination with spec.vrfRef: {name}, or a Collector with spec.mirrorVRF.name: {name}"
            ),
        )),
    }
}

/// What an intent needs: its Network, the Destinations that it selects, their VRFs, and other objects that it names.
pub(super) fn needs(trace: &Trace<'_>, user: &ObjectRef) -> Vec<ObjectRef> {
    let snapshot = trace.snapshot;
    let Some(terms) = lower::terms(snapshot, user) else {
        return Vec::new();
    };
    let network = terms.network;
    let network = network.map(|network| ObjectRef::named(Kind::Network, network));
    let mut needs: Vec<ObjectRef> = network.into_iter().chain(terms.others).collect();
    let selector = terms.destinations;
    for (key, destination) in &snapshot.destinations {
        if selector.is_some_and(|selector| selector.matches(&destination.meta.labels)) {
            let (kind, key) = (Kind::Destination, key.clone());
            needs.push(ObjectRef { kind, key });
            let vrf = destination.spec.vrf_ref.as_ref();
            needs.extend(vrf.map(|vrf| ObjectRef::named(Kind::Vrf, vrf)));
        }
    }
    needs
}

/// The Network that an intent uses.
pub(super) fn network(trace: &Trace<'_>, user: &ObjectRef) -> Option<Key> {
    let terms = lower::terms(trace.snapshot, user)?;
    let named = terms.network.map(Key::named);
    named.or_else(|| {
        let mut others = terms.others.iter();
        let other = others.find(|other| other.kind == Kind::Network)?;
        Some(other.key.clone())
    })
}

/// All objects that configure nodes, by themselves or through others, readable or not.
pub(super) fn objects(snapshot: &Snapshot) -> Vec<ObjectRef> {
    let unreadable = snapshot.unreadable.iter();
    let unreadable = unreadable.map(|problem| problem.subject.clone());
    let all = snapshot.subjects().chain(unreadable);
    all.filter(|object| {
        let is_used = matches!(object.kind, Kind::Network | Kind::Destination | Kind::Vrf);
        is_used || is_user(object)
    })
    .collect()
}

/// The object itself, whether it can be read or not; or, for one that is generated and not stored, what it is generated from.
fn existing(trace: &Trace<'_>, object: &ObjectRef) -> Option<ObjectRef> {
    let snapshot = trace.snapshot;
    let unreadable = snapshot.unreadable.iter();
    let unreadable = unreadable.map(|problem| problem.subject.clone());
    let mut all = snapshot.subjects().chain(unreadable);
    let found = all.find(|known| known == object);
    found.or_else(|| {
        let generated = trace.compilation.objects.any(object.kind, &object.key.name);
        generated.map(|generated| generated.source().clone())
    })
}

/// The object whose author wrote what a low-level object says: the intent it is generated from, or itself.
pub(super) fn author(trace: &Trace<'_>, object: &ObjectRef) -> ObjectRef {
    let generated = trace.compilation.objects.any(object.kind, &object.key.name);
    if let Some(generated) = generated.filter(|_| lower::is_low_level(object.kind)) {
        return generated.source().clone();
    }
    let stored = trace.snapshot.stored_status(object);
    let owner = stored.and_then(|(meta, _)| meta.owner.clone());
    let owner = owner.filter(|owner| existing(trace, owner).is_some());
    owner
        .filter(|_| lower::is_low_level(object.kind))
        .unwrap_or_else(|| object.clone())
}

/// The object that has the selector by which another one is put on nodes: itself, or one that it names.
pub(super) fn selecting(
    trace: &Trace<'_>,
    user: &ObjectRef,
    selector: &LabelSelector,
) -> ObjectRef {
    let snapshot = trace.snapshot;
    let is_own = |one: &ObjectRef| {
        lower::terms(snapshot, one).is_some_and(|terms| terms.nodes == Some(selector))
    };
    if is_own(user) {
        return user.clone();
    }
    let mut needs = needs(trace, user).into_iter();
    needs.find(is_own).unwrap_or_else(|| user.clone())
}

/// Whether objects of a kind select Destinations.
pub(super) fn selects_destinations(kind: Kind) -> bool {
    let intent = kind.intent();
    intent.is_some_and(IntentKind::selects_destinations)
}

/// The field that an object lacks to configure something on nodes.
pub(super) fn lacks(snapshot: &Snapshot, user: &ObjectRef) -> Option<&'static str> {
    let attachment = snapshot.layer2_attachments.get(&user.key);
    let attachment = attachment.filter(|_| user.kind == Kind::Layer2Attachment);
    let sriov = attachment.and_then(|attachment| attachment.spec.sriov.as_ref());
    if sriov.is_some_and(|sriov| sriov.enabled) {
        return Some("spec.interfaceName");
    }
    let terms = lower::terms(snapshot, user)?;
    let is_lacking = selects_destinations(user.kind) && terms.destinations.is_none();
    is_lacking.then_some("spec.destinations")
}
