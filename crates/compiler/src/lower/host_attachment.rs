//! A `Layer2Attachment` on a device of the node: a VLAN, addresses of the node where it wants them, and routes by next hops.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{
        DestinationSpec, Layer2AttachmentSpec, Layer2NetworkConfigurationSpec, MatchedDestination,
        NetworkSpec, StaticRoute,
    },
    value::{IfName, Prefix, VlanId},
};

use super::{
    intent::{Attachment, Author, LoweredIntent},
    layer2_attachment::{default_mtu, node_ips, sriov_devices},
    mtu,
    reach::{self, Used},
    routing::{generated_name, subnets},
};
use crate::{
    Severity, names,
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::{View, reference},
};

/// What the attachment becomes; `None` when something is wrong with it, with the reason in `problems`.
pub(super) fn lower(
    view: &View<'_>,
    author: &Author<'_>,
    spec: &Layer2AttachmentSpec,
    network: &NetworkSpec,
    parent: &IfName,
    problems: &mut Vec<Problem>,
) -> Option<LoweredIntent> {
    let subject = author.subject;
    let mut report = |field: &str, kind| problems.push(Problem::new(subject.clone(), field, kind));
    let network_ref = || ObjectRef::named(Kind::Network, &spec.network_ref);
    let Some(vlan) = network.vlan else {
        let (network, what) = (network_ref(), "vlan");
        let kind = problem::Kind::NetworkLacks { network, what };
        report("spec.networkRef", kind);
        return None;
    };
    if let Some(vni) = network.vni {
        let network = network_ref();
        let kind = problem::Kind::NetworkHasVni { network, vni };
        report("spec.networkRef", kind);
        return None;
    }
    let what = "is for attachments over the fabric and has no effect with interfaceRef";
    let unused = [
        (spec.bgp.as_ref().is_some_and(|bgp| bgp.enabled), "bgp"),
        (!spec.routes.is_empty(), "routes"),
        (!spec.communities.is_empty(), "communities"),
    ];
    for (_, field) in unused.into_iter().filter(|(used, _)| *used) {
        let what = format!("{field} {what}");
        let kind = problem::Kind::NoEffect { what };
        report(&format!("spec.{field}"), kind);
    }
    let node_ips = node_ips(subject, spec, network)
        .map_err(|problem| problems.push(*problem))
        .ok()?;
    let (matched, static_routes) = match &spec.destinations {
        None => (Vec::new(), Vec::new()),
        Some(selector) => routes(view, subject, selector, network, problems)?,
    };
    if !static_routes.is_empty() && node_ips.is_none() {
        let kind = problem::Kind::NodeIpsRequired;
        problems.push(Problem::new(subject.clone(), "spec.nodeIPs", kind));
        return None;
    }
    let name = generated_name(subject, &vlan.to_string());
    let layer2 = Layer2NetworkConfigurationSpec {
        id: vlan,
        mtu: spec.mtu.unwrap_or_else(default_mtu),
        vni: None,
        anycast_mac: None,
        anycast_gateways: Vec::new(),
        advertise_neighbors: false,
        create_mac_vlan_interface: false,
        neigh_suppression: None,
        disable_segmentation: false,
        vrf: None,
        node_selector: spec.node_selector.clone(),
        interface_ref: Some(parent.clone()),
        interface_name: spec.interface_name.clone(),
        node_ips,
        static_routes,
    };
    if let Err(kind) = mtu::check(&layer2) {
        problems.push(Problem::new(subject.clone(), "spec.mtu", kind));
        return None;
    }
    Some(LoweredIntent {
        objects: vec![author.object(name, layer2)],
        attachment: Some(Attachment {
            interface: Some(interface(spec, vlan)),
            sriov: sriov_devices(spec, network.vlan),
            matched: Arc::new(matched),
            ..Attachment::default()
        }),
        service: None,
    })
}

fn interface(spec: &Layer2AttachmentSpec, vlan: VlanId) -> IfName {
    let own = spec.interface_name.clone();
    own.unwrap_or_else(|| names::access_port(vlan))
}

/// The Destinations that are selected, and the routes by their next hops.
fn routes(
    view: &View<'_>,
    subject: &ObjectRef,
    selector: &LabelSelector,
    network: &NetworkSpec,
    problems: &mut Vec<Problem>,
) -> Option<(Vec<MatchedDestination>, Vec<StaticRoute>)> {
    if let Err(error) = selector.check() {
        let kind = problem::Kind::InvalidSelector(error);
        problems.push(Problem::new(subject.clone(), "spec.destinations", kind));
        return None;
    }
    let mut report = |kind| {
        problems.push(Problem::new(subject.clone(), "spec.destinations", kind));
    };
    let (runs, used) = (reach::runs(view, subject), Used::by(view, subject));
    let chosen = view.destinations(selector);
    let (mut keys, new): (Vec<&Key>, Vec<&Key>) =
        chosen.iter().partition(|key| !runs || used.has(view, key));
    keys.extend(new.iter().copied());
    let mut taken = Taken::default();
    let (mut is_broken, mut left_out) = (false, Vec::new());
    for key in keys {
        let Some(destination) = view.spec::<kinds::Destination>(key) else {
            continue;
        };
        let faults = taken.add(key, &destination, network);
        let fault = faults
            .iter()
            .find(|fault| fault.severity() == Severity::Error);
        match fault {
            // No author is harmed by a Destination of another: one that was never used is left out.
            Some(fault) if new.contains(&key) => {
                let why = fault.to_string();
                left_out.push((reference(Kind::Destination, key), why));
            }
            _ => {
                is_broken |= fault.is_some();
                faults.into_iter().for_each(&mut report);
            }
        }
    }
    let unread = reach::unread(view, selector).into_iter();
    left_out.extend(unread.map(|one| (one, "it cannot be read".to_owned())));
    taken.matched.sort_by(|a, b| a.name.cmp(&b.name));
    if taken.matched.is_empty() && !is_broken {
        // Routes go with the Destinations that they came from. An attachment that never ran waits.
        let left_out = left_out
            .into_iter()
            .map(|(destination, _)| destination)
            .next();
        report(problem::Kind::NoDestination { left_out });
        is_broken = !runs;
    } else {
        for (destination, why) in left_out {
            report(problem::Kind::DestinationLeftOut { destination, why });
        }
    }
    let routes = taken.routes.into_iter();
    let routes = routes.map(|(prefix, (next_hop, _))| StaticRoute { prefix, next_hop });
    (!is_broken).then(|| (taken.matched, routes.collect()))
}

/// The Destinations that are used, with the routes by their next hops.
#[derive(Default)]
struct Taken {
    matched: Vec<MatchedDestination>,
    routes: BTreeMap<Prefix, (IpAddr, ObjectRef)>,
}

impl Taken {
    /// Adds a Destination, unless something is wrong with it; returns what is to be said about it.
    fn add(
        &mut self,
        key: &Key,
        destination: &DestinationSpec,
        network: &NetworkSpec,
    ) -> Vec<problem::Kind> {
        let mut said = Vec::new();
        let mut routes = Vec::new();
        let name = reference(Kind::Destination, key);
        for result in by_next_hop(key, destination, network) {
            match result {
                Ok((prefix, next_hop)) => match self.routes.get(&prefix) {
                    Some((holder, other)) if *holder != next_hop => {
                        said.push(problem::Kind::PrefixByTwoNextHops {
                            prefix: prefix.to_string(),
                            destination: Box::new(name.clone()),
                            other: Box::new(other.clone()),
                        });
                    }
                    _ => routes.push((prefix, (next_hop, name.clone()))),
                },
                Err(kind) => said.push(kind),
            }
        }
        if said.iter().all(|kind| kind.severity() != Severity::Error) {
            self.matched.push(MatchedDestination {
                name: key.name.to_string(),
                vrf: None,
            });
            self.routes.extend(routes);
        }
        said
    }
}

/// The routes of one Destination, each prefix by the next hop of its family.
fn by_next_hop<'a>(
    key: &'a Key,
    destination: &'a DestinationSpec,
    network: &'a NetworkSpec,
) -> Vec<Result<(Prefix, IpAddr), problem::Kind>> {
    let Some(next_hop) = &destination.next_hop else {
        let destination = reference(Kind::Destination, key);
        return vec![Err(problem::Kind::VrfWithoutFabric { destination })];
    };
    let ipv4 = next_hop.ipv4.map(IpAddr::V4);
    let ipv6 = next_hop.ipv6.map(IpAddr::V6);
    let subnets = subnets(network);
    let route = |prefix: &Prefix| {
        let Some(next_hop) = (if prefix.is_ipv4() { ipv4 } else { ipv6 }) else {
            let family = if prefix.is_ipv4() { "ipv4" } else { "ipv6" };
            let what =
                format!("Destination {key} has no nextHop.{family}, so no route leads to {prefix}");
            return Err(problem::Kind::NoEffect { what });
        };
        if subnets
            .iter()
            .any(|subnet| subnet.net().contains(&next_hop))
        {
            return Ok((*prefix, next_hop));
        }
        Err(problem::Kind::NextHopOutside {
            next_hop: next_hop.to_string(),
            prefix: prefix.to_string(),
        })
    };
    destination.prefixes.iter().map(route).collect()
}
