//! From a field of a generated low-level object to the fields of the intent, and of what it refers to, that it is made of.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use api::{
    tcaas::{AddressLists, DestinationSpec, Layer2AttachmentSpec, NetworkSpec, VrfSpec},
    value::{Prefix, VrfName},
};
use compiler::{
    lower::{self, Terms},
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};

use super::{Field, Trace, neighbor};

/// An aspect of an intent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aspect<'a> {
    /// On which nodes.
    Nodes,
    /// Which VRF; the cluster's own where several are reached.
    Vrf(&'a VrfName),
    /// The VNI of a VRF.
    VrfVni(&'a VrfName),
    /// The route target of a VRF.
    VrfTarget(&'a VrfName),
    /// A loopback of a VRF, by name.
    Loopback(&'a VrfName, &'a str),
    /// A prefix that is reached through a VRF.
    Reached(&'a VrfName, Prefix),
    /// Everything that is reached.
    AllReached,
    /// Anything of a family that is reached.
    AnyReached(bool),
    /// A prefix of the intent's own: of its network, of its addresses, or behind its workloads.
    Own(Prefix),
    /// All networks of its own.
    AllOwn,
    /// What is tagged onto its routes.
    Communities,
    /// A field of an attachment.
    Attachment(AttachmentAspect),
    /// The network that a gateway, or the nodes' addresses, are of.
    Network(Prefix),
    /// A route of the nodes.
    NodeRoute(Prefix),
    /// The AS of workloads.
    WorkloadAs,
}

/// An aspect of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttachmentAspect {
    Vlan,
    Vni,
    Mtu,
    GatewayMac,
    NeighborSuppression,
    InterfaceRef,
    InterfaceName,
    NodeIps,
    Sessions,
    HoldTime,
    KeepaliveTime,
    MaximumPrefixes,
}

/// The fields of intents, and of what they refer to, that are behind an aspect.
pub(super) fn behind(
    trace: &Trace<'_>,
    subject: &ObjectRef,
    aspect: Aspect<'_>,
) -> BTreeSet<Field> {
    if subject.kind == Kind::Collector {
        return super::mirror::behind_collector(trace, subject, aspect);
    }
    if subject.kind == Kind::BgpNeighbor
        && let Some(fields) = neighbor::behind(trace, subject, aspect)
    {
        return fields;
    }
    let Some(intent) = Intent::find(trace.snapshot, subject) else {
        return [Field::new(subject.clone(), "spec")].into();
    };
    if is_kept(trace, subject) {
        // It is there because it was there, for as long as its intent is.
        return [Field::new(subject.clone(), "metadata.name")].into();
    }
    intent.behind(trace, aspect).into_iter().collect()
}

/// Whether what an intent contributes is what it contributed before something was wrong with it.
pub(crate) fn is_kept(trace: &Trace<'_>, subject: &ObjectRef) -> bool {
    let compilation = trace.compilation;
    if subject.kind == Kind::Layer2Attachment {
        return compilation.attachment(&subject.key.name).is_none();
    }
    let service = compilation.service(subject);
    service.is_some_and(|service| !service.is_sound)
}

/// What an intent of a Network says.
struct Intent<'a> {
    subject: &'a ObjectRef,
    network_ref: &'a str,
    terms: Terms<'a>,
    attachment: Option<&'a Layer2AttachmentSpec>,
}

impl<'a> Intent<'a> {
    fn find(snapshot: &'a Snapshot, subject: &'a ObjectRef) -> Option<Self> {
        let terms = lower::terms(snapshot, subject)?;
        let attachment = snapshot.layer2_attachments.get(&subject.key);
        let attachment = attachment.filter(|_| subject.kind == Kind::Layer2Attachment);
        Some(Self {
            subject,
            network_ref: terms.network?,
            terms,
            attachment: attachment.map(|attachment| &*attachment.spec),
        })
    }

    fn behind(&self, trace: &Trace<'_>, aspect: Aspect<'_>) -> Vec<Field> {
        match aspect {
            Aspect::Nodes => self.if_set(self.terms.nodes.is_some(), "spec.nodeSelector"),
            Aspect::Communities => {
                self.if_set(!self.terms.communities.is_empty(), "spec.communities")
            }
            Aspect::Vrf(vrf) => self.vrf(trace, vrf),
            Aspect::VrfVni(vrf) => self.number(trace, vrf, "vni", |spec| spec.vni.is_some()),
            Aspect::VrfTarget(vrf) => self.number(trace, vrf, "routeTarget", |spec| {
                spec.route_target.is_some()
            }),
            Aspect::Loopback(vrf, name) => {
                let vrfs = self.vrfs(trace, vrf).into_iter();
                let with = vrfs.filter(|(_, _, spec)| {
                    let mut own = spec.loopbacks.iter();
                    own.any(|own| own.name.as_str() == name)
                });
                with.map(|(_, vrf, _)| Field::new(vrf, "spec.loopbacks"))
                    .collect()
            }
            Aspect::Reached(vrf, prefix) => {
                let mut fields = self.reached(trace, Some(vrf), prefix);
                fields.extend(self.extra(prefix));
                fields
            }
            Aspect::AllReached => self.prefixes(trace, |_| true),
            Aspect::AnyReached(ipv4) => self.prefixes(trace, |prefix| prefix.is_ipv4() == ipv4),
            Aspect::Own(prefix) => self.own(trace, prefix),
            Aspect::AllOwn => {
                let mut fields = self.networks(trace, |_| true);
                fields.extend(self.if_set(!self.terms.routes.is_empty(), "spec.routes"));
                fields
            }
            Aspect::Network(network) => self.networks(trace, |cidr| cidr == network),
            Aspect::NodeRoute(prefix) => self.node_route(trace, prefix),
            Aspect::WorkloadAs => {
                let bgp = self.attachment.and_then(|spec| spec.bgp.as_ref());
                if bgp.is_some_and(|bgp| bgp.workload_as.is_some()) {
                    return vec![self.field("spec.bgp.workloadAS")];
                }
                vec![Trace::setting("spec.bgp.workloadAS")]
            }
            Aspect::Attachment(aspect) => match self.attachment {
                Some(spec) => self.attachment(trace, spec, aspect),
                None => Vec::new(),
            },
        }
    }

    fn field(&self, path: impl Into<String>) -> Field {
        Field::new(self.subject.clone(), path)
    }

    fn if_set(&self, is_set: bool, path: &str) -> Vec<Field> {
        is_set.then(|| self.field(path)).into_iter().collect()
    }

    fn network(&self, trace: &Trace<'a>) -> Option<&'a NetworkSpec> {
        let network = trace.snapshot.networks.get(&Key::named(self.network_ref));
        network.map(|network| &*network.spec)
    }

    fn of_network(&self, path: &str) -> [Field; 2] {
        let network = ObjectRef::named(Kind::Network, self.network_ref);
        [Field::new(network, path), self.field("spec.networkRef")]
    }

    /// The CIDRs of the Network that are asked for.
    fn networks(&self, trace: &Trace<'_>, wanted: impl Fn(Prefix) -> bool) -> Vec<Field> {
        let Some(network) = self.network(trace) else {
            return Vec::new();
        };
        let families = [
            (&network.ipv4, "spec.ipv4.cidr"),
            (&network.ipv6, "spec.ipv6.cidr"),
        ];
        let found = families.into_iter().filter(|(family, _)| {
            let family = family.as_ref();
            family.is_some_and(|family| wanted(family.cidr))
        });
        found.flat_map(|(_, path)| self.of_network(path)).collect()
    }

    /// The Destinations that are selected and used, by name: one whose VRF is not in effect is left out, unless it was used before.
    fn destinations(&self, trace: &Trace<'a>) -> Vec<(ObjectRef, &'a DestinationSpec)> {
        let Some(selector) = self.terms.destinations else {
            return Vec::new();
        };
        let merged = trace.compilation.intents.get(self.subject);
        let attachment = merged.and_then(|merged| merged.attachment.as_ref());
        let service = merged.and_then(|merged| merged.service.as_ref());
        let matched = attachment.map(|one| &one.matched);
        let matched = matched.or_else(|| service.map(|one| &one.matched));
        let is_matched = |key: &Key| {
            let mut matched = matched.into_iter().flat_map(|matched| matched.iter());
            matched.any(|one| one.name == *key.name)
        };
        let is_used = |key: &Key, spec: &DestinationSpec| {
            let vrf = spec.vrf_ref.as_ref().map(Key::named);
            let is_there = |vrf: &Key| trace.compilation.vrfs.contains_key(vrf);
            vrf.as_ref().is_none_or(is_there) || is_matched(key)
        };
        let all = trace.snapshot.destinations.iter();
        let selected = all.filter(|(_, object)| selector.matches(&object.meta.labels));
        selected
            .filter(|(key, object)| is_used(key, &object.spec))
            .map(|(key, object)| {
                let (kind, key) = (Kind::Destination, key.clone());
                (ObjectRef { kind, key }, &*object.spec)
            })
            .collect()
    }

    /// The VRFs of a name that selected Destinations are behind, each with its Destination.
    fn vrfs(&self, trace: &Trace<'a>, name: &VrfName) -> Vec<(Field, ObjectRef, &'a VrfSpec)> {
        let mut found = Vec::new();
        for (destination, spec) in self.destinations(trace) {
            let Some(key) = spec.vrf_ref.as_ref().map(Key::named) else {
                continue;
            };
            if let Some(vrf) = trace.snapshot.vrfs.get(&key)
                && vrf.spec.vrf == *name
            {
                let reference = Field::new(destination, "spec.vrfRef");
                let kind = Kind::Vrf;
                found.push((reference, ObjectRef { kind, key }, &*vrf.spec));
            }
        }
        found
    }

    fn vrf(&self, trace: &Trace<'_>, name: &VrfName) -> Vec<Field> {
        let mut fields = vec![self.field("spec.destinations")];
        for (reference, vrf, _) in self.vrfs(trace, name) {
            fields.extend([reference, Field::new(vrf, "spec.vrf")]);
        }
        fields
    }

    /// A number of a VRF: its own, or that of the settings.
    fn number(
        &self,
        trace: &Trace<'_>,
        name: &VrfName,
        what: &str,
        says: impl Fn(&VrfSpec) -> bool,
    ) -> Vec<Field> {
        let of = |(_, vrf, spec): (Field, ObjectRef, &VrfSpec)| {
            if says(spec) {
                Field::new(vrf, format!("spec.{what}"))
            } else {
                Trace::vrf_setting(name, what)
            }
        };
        self.vrfs(trace, name).into_iter().map(of).collect()
    }

    /// All prefixes of Destinations that lead to such a one.
    fn prefixes(&self, trace: &Trace<'_>, wanted: impl Fn(&Prefix) -> bool) -> Vec<Field> {
        let mut fields = vec![self.field("spec.destinations")];
        let destinations = self.destinations(trace).into_iter();
        let leading = destinations.filter(|(_, spec)| spec.prefixes.iter().any(&wanted));
        fields.extend(leading.map(|(object, _)| Field::new(object, "spec.prefixes")));
        fields
    }

    /// A prefix of Destinations, of one VRF or of any.
    fn reached(&self, trace: &Trace<'_>, vrf: Option<&VrfName>, prefix: Prefix) -> Vec<Field> {
        let mut fields = Vec::new();
        for (destination, spec) in self.destinations(trace) {
            let name = spec.vrf_ref.as_ref().map(Key::named);
            let name = name.and_then(|key| trace.snapshot.vrfs.get(&key));
            let name = name.map(|object| &object.spec.vrf);
            if vrf.is_some() && name != vrf {
                continue;
            }
            let places = spec.prefixes.iter().enumerate();
            for (place, _) in places.filter(|(_, own)| **own == prefix) {
                let path = format!("spec.prefixes[{place}]");
                fields.push(Field::new(destination.clone(), path));
            }
        }
        if !fields.is_empty() {
            fields.push(self.field("spec.destinations"));
        }
        fields
    }

    /// A prefix behind the workloads.
    fn extra(&self, prefix: Prefix) -> Vec<Field> {
        let mut fields = Vec::new();
        for (place, route) in self.terms.routes.iter().enumerate() {
            let prefixes = route.prefixes.iter().enumerate();
            for (inner, _) in prefixes.filter(|(_, own)| **own == prefix) {
                let path = format!("spec.routes[{place}].prefixes[{inner}]");
                fields.push(self.field(path));
            }
        }
        fields
    }

    fn own(&self, trace: &Trace<'_>, prefix: Prefix) -> Vec<Field> {
        let mut fields = self.networks(trace, |cidr| cidr == prefix);
        fields.extend(self.extra(prefix));
        let net = prefix.net();
        let is_service = matches!(self.subject.kind, Kind::Inbound | Kind::Outbound);
        if !is_service || net.prefix_len() < net.max_prefix_len() {
            return fields;
        }
        if let Some(lists) = self.terms.addresses {
            fields.extend(self.named_address(lists, net.addr()));
        } else {
            fields.push(self.field("spec.count"));
            fields.extend(self.networks(trace, |cidr| cidr.net().contains(&net)));
        }
        fields
    }

    fn named_address(&self, lists: &AddressLists, address: IpAddr) -> Option<Field> {
        let ipv4 = |own: &Ipv4Addr| IpAddr::V4(*own) == address;
        let ipv6 = |own: &Ipv6Addr| IpAddr::V6(*own) == address;
        let ipv4 = lists.ipv4.iter().position(ipv4);
        let path = ipv4.map(|place| format!("spec.addresses.ipv4[{place}]"));
        let ipv6 = lists.ipv6.iter().position(ipv6);
        let path = path.or_else(|| ipv6.map(|place| format!("spec.addresses.ipv6[{place}]")));
        path.map(|path| self.field(path))
    }

    /// A route of the nodes: what a Destination leads to, by its next hop or by the gateway of the segment.
    fn node_route(&self, trace: &Trace<'_>, prefix: Prefix) -> Vec<Field> {
        let mut fields = self.reached(trace, None, prefix);
        let family = if prefix.is_ipv4() { "ipv4" } else { "ipv6" };
        for (destination, spec) in self.destinations(trace) {
            if spec.prefixes.contains(&prefix) && spec.next_hop.is_some() {
                let path = format!("spec.nextHop.{family}");
                fields.push(Field::new(destination, path));
            }
        }
        let over_the_fabric = self
            .attachment
            .is_some_and(|spec| spec.interface_ref.is_none());
        if over_the_fabric {
            let same = |cidr: Prefix| cidr.is_ipv4() == prefix.is_ipv4();
            fields.extend(self.networks(trace, same));
        }
        fields
    }

    fn attachment(
        &self,
        trace: &Trace<'_>,
        spec: &Layer2AttachmentSpec,
        aspect: AttachmentAspect,
    ) -> Vec<Field> {
        let bgp = spec.bgp.as_ref();
        match aspect {
            AttachmentAspect::Vlan => self.of_network("spec.vlan").to_vec(),
            AttachmentAspect::Vni => {
                let network = self.network(trace);
                if network.is_some_and(|network| network.vni.is_some()) {
                    return self.of_network("spec.vni").to_vec();
                }
                let range = Trace::setting("spec.l2VniRange");
                vec![range, self.field("spec.networkRef")]
            }
            AttachmentAspect::Mtu => self.if_set(spec.mtu.is_some(), "spec.mtu"),
            AttachmentAspect::GatewayMac => {
                let is_set = trace.sets(|settings| &settings.anycast_mac);
                let field = is_set.then(|| Trace::setting("spec.anycastMAC"));
                field.into_iter().collect()
            }
            AttachmentAspect::NeighborSuppression => self.if_set(
                spec.disable_neighbor_suppression,
                "spec.disableNeighborSuppression",
            ),
            AttachmentAspect::InterfaceRef => {
                self.if_set(spec.interface_ref.is_some(), "spec.interfaceRef")
            }
            AttachmentAspect::InterfaceName => {
                self.if_set(spec.interface_name.is_some(), "spec.interfaceName")
            }
            AttachmentAspect::NodeIps => self.if_set(spec.node_ips.is_some(), "spec.nodeIPs"),
            AttachmentAspect::Sessions => self.if_set(bgp.is_some(), "spec.bgp.enabled"),
            AttachmentAspect::HoldTime => self.if_set(
                bgp.is_some_and(|bgp| bgp.hold_time.is_some()),
                "spec.bgp.holdTime",
            ),
            AttachmentAspect::KeepaliveTime => self.if_set(
                bgp.is_some_and(|bgp| bgp.keepalive_time.is_some()),
                "spec.bgp.keepaliveTime",
            ),
            AttachmentAspect::MaximumPrefixes => self.if_set(
                bgp.is_some_and(|bgp| bgp.maximum_prefixes.is_some()),
                "spec.bgp.maximumPrefixes",
            ),
        }
    }
}
