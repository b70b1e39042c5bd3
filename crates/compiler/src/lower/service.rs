//! What `Inbound`, `Outbound` and `PodNetwork` have in common: a Network with addresses, and routing in the VRFs they reach.

use std::{net::IpAddr, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{AddressLists, MatchedDestination, NetworkSpec, PrefixItem, VrfRouteConfigurationSpec},
    value::{Community, Prefix, VrfName},
};

use super::{
    addresses::{self, plain},
    network,
    reach::{self, Reach},
    routing::{self, generated_name, subnets},
    scope::Scope,
    values,
};
use crate::{
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
    view::View,
};

/// What a service came to, for the platform and for its status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// Whether it is valid. The platform objects of one that is not stay unchanged.
    pub is_sound: bool,
    /// The addresses it holds.
    pub addresses: AddressLists,
    /// Names of its pools on the platform.
    pub pools: Vec<String>,
    /// The Destinations that its selector chose.
    pub matched: Arc<Vec<MatchedDestination>>,
    /// What its pods reach: what the Destinations lead to, or what it says instead.
    pub reached: Vec<Prefix>,
    /// The subnets of its Network.
    pub subnets: Vec<Prefix>,
    /// Addresses of its Network that other objects have.
    pub reserved: Vec<IpAddr>,
}

/// The part of an intent that is the same in all three kinds.
pub(super) struct Request<'a> {
    pub(super) subject: &'a ObjectRef,
    pub(super) network_ref: &'a str,
    pub(super) destinations: Option<&'a LabelSelector>,
    pub(super) node_selector: Option<&'a LabelSelector>,
    pub(super) communities: &'a [Community],
}

/// What it refers to.
pub(super) struct Resolved {
    pub(super) network: Arc<NetworkSpec>,
    /// Empty for an intent without destinations, which no VRF knows.
    pub(super) reach: Arc<Reach>,
}

impl Request<'_> {
    /// Finds what the intent refers to. `None` when something is missing or broken: the problems say what.
    ///
    /// `wrong` is what is wrong with the intent so far; nothing is resolved if that is an error.
    pub(super) fn resolve(
        &self,
        view: &View<'_>,
        mut wrong: Vec<Problem>,
        problems: &mut Vec<Problem>,
    ) -> Option<Resolved> {
        let resolved = self.references(view, &mut wrong);
        let is_sound = is_sound(&wrong);
        problems.append(&mut wrong);
        resolved.filter(|_| is_sound)
    }

    /// Whether everything is there that the intent refers to, and `faults` is nothing that keeps it out of effect.
    pub(super) fn can_be_resolved(&self, view: &View<'_>, faults: Vec<Problem>) -> bool {
        self.resolve(view, faults, &mut Vec::new()).is_some()
    }

    fn references(&self, view: &View<'_>, problems: &mut Vec<Problem>) -> Option<Resolved> {
        let selects_well = match self.node_selector.map(LabelSelector::check) {
            Some(Err(error)) => {
                let kind = problem::Kind::InvalidSelector(error);
                problems.push(Problem::new(
                    self.subject.clone(),
                    "spec.nodeSelector",
                    kind,
                ));
                false
            }
            Some(Ok(())) | None => true,
        };
        let network = self.network(view, problems);
        let reach = match self.destinations {
            None => Some(Arc::default()),
            Some(selector) => {
                let reach = reach::resolve(view, self.subject, selector, problems);
                // One that never ran waits until something is selected.
                let runs = || reach::runs(view, self.subject);
                reach.filter(|reach| !reach.vrfs.is_empty() || runs())
            }
        };
        let (network, reach) = (network?, reach?);
        if !reach.vrfs.is_empty() {
            let settings = view.settings();
            let networks = subnets(&network).into_iter();
            let mut never = networks.filter_map(|one| values::never_announced(&settings, one));
            if let Some(kind) = never.next() {
                problems.push(Problem::new(self.subject.clone(), "spec.networkRef", kind));
                return None;
            }
        }
        selects_well.then_some(Resolved { network, reach })
    }

    fn network(&self, view: &View<'_>, problems: &mut Vec<Problem>) -> Option<Arc<NetworkSpec>> {
        let target = ObjectRef::named(Kind::Network, self.network_ref);
        let kind = match view.network(self.network_ref) {
            None => view.missing(target),
            Some(spec) if spec.ipv4.is_none() && spec.ipv6.is_none() => {
                problem::Kind::NetworkLacks {
                    network: target,
                    what: "ipv4 or ipv6",
                }
            }
            Some(spec) => return Some(spec),
        };
        problems.push(Problem::new(self.subject.clone(), "spec.networkRef", kind));
        None
    }

    /// Routing in each VRF that is reached.
    pub(super) fn routing(
        &self,
        reach: &Reach,
        import: &[Prefix],
        items: &[PrefixItem],
        aggregate: &[Prefix],
    ) -> Vec<(String, VrfRouteConfigurationSpec)> {
        let in_one = |(vrf, reached): (&VrfName, &reach::ReachedVrf)| {
            let exports = routing::Exports {
                items: items.to_vec(),
                aggregate: aggregate.to_vec(),
                communities: self.communities,
                node_selector: self.node_selector,
            };
            let name = generated_name(self.subject, vrf.as_str());
            (name, routing::routing(vrf, reached, import, exports))
        };
        reach.vrfs.iter().map(in_one).collect()
    }
}

impl Resolved {
    /// What the Destinations lead to, in all VRFs.
    pub(super) fn reached(&self) -> Vec<Prefix> {
        let mut reached: Vec<Prefix> = Vec::new();
        for prefix in self.reach.vrfs.values().flat_map(|vrf| &vrf.prefixes) {
            if !reached.contains(prefix) {
                reached.push(*prefix);
            }
        }
        reached
    }
}

/// What goes out for single addresses: a host route for each, and, unless the author does not want it, the network they come from.
pub(super) struct Announced {
    pub(super) items: Vec<PrefixItem>,
    /// The networks that are announced as a whole.
    pub(super) aggregate: Vec<Prefix>,
}

/// What goes out for addresses of a Network.
///
/// A network that an attachment has on nodes is announced from there: an aggregate, which drops what it has no better route for, would
/// cut off the others on the segment.
pub(super) fn announced(
    view: &View<'_>,
    request: &Request<'_>,
    resolved: &Resolved,
    disable_aggregation: bool,
    problems: &mut Vec<Problem>,
) -> Option<Announced> {
    let network = &resolved.network;
    let is_attached = network::is_attached(view, request.network_ref, network);
    let share = addresses::share(view, request.subject);
    let mut prefixes: Vec<Prefix> = plain(&share.addresses).map(Prefix::host).collect();
    let hosts = prefixes.clone();
    let has_addresses = |subnet: &Prefix| {
        let mut hosts = hosts.iter();
        hosts.any(|host| host.is_ipv4() == subnet.is_ipv4())
    };
    let mut aggregate: Vec<Prefix> = subnets(network)
        .into_iter()
        .filter(|subnet| !disable_aggregation && !hosts.contains(subnet) && has_addresses(subnet))
        .collect();
    prefixes.extend(&aggregate);
    if is_attached {
        aggregate.clear();
    }
    if prefixes.len() > routing::MAX_LINES && !resolved.reach.vrfs.is_empty() {
        let most = routing::MAX_LINES;
        let message = format!("a VRF takes at most {most} routes of one object, networks included");
        let kind = problem::Kind::RuleBroken { message };
        problems.push(Problem::new(request.subject.clone(), "spec.count", kind));
        return None;
    }
    Some(Announced {
        items: routing::permit(&prefixes),
        aggregate,
    })
}

/// What is wrong where not exactly one of `count` and `addresses` is set; the same words as the kind's own definition.
pub(super) fn count_or_addresses(
    subject: &ObjectRef,
    count: Option<u32>,
    addresses: Option<&AddressLists>,
) -> Option<Problem> {
    let message = "exactly one of count and addresses must be set".to_owned();
    (count.is_some() == addresses.is_some()).then(|| {
        Problem::new(
            subject.clone(),
            "spec",
            problem::Kind::RuleBroken { message },
        )
    })
}

/// The field that puts a service into a scope.
pub(super) fn scope_field(scope: &Scope) -> &'static str {
    match scope {
        Scope::Vrf(_) => "spec.destinations",
        _ => "spec",
    }
}

/// Whether nothing of what was found keeps an intent out of effect.
fn is_sound(problems: &[Problem]) -> bool {
    let mut problems = problems.iter();
    problems.all(|problem| !problem.kind.is_mistake())
}
