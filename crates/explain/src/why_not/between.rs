//! From one attachment or service to another: by the tables of the node, what they take over from each other, and who announces the
//! network that is asked about.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    tcaas::{
        Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec,
        node_network_config::{ActionType, Filter, PolicyRoute, PrefixMatcher, Vrf},
    },
    value::ImportRouteTarget,
};
use compiler::{
    Compilation,
    snapshot::{Key, Kind, ObjectRef},
};
use ipnet::IpNet;

use super::{Obstacle, Walk, obstacle::Leaving, of, referrers};

/// An end of the traffic that is asked about.
pub(super) struct Side {
    networks: Vec<IpNet>,
    /// Whether it has segments; without, workloads send through the cluster VRF.
    has_segments: bool,
    /// The VRFs in which its segments have their gateways.
    segment_vrfs: BTreeSet<String>,
    /// The VRFs that announce it.
    routing_vrfs: BTreeSet<String>,
    /// The VRFs whose own routes lead to it.
    pub(super) holders: BTreeSet<String>,
}

impl Side {
    /// The VRFs that it is in, or that announce it.
    fn vrfs(&self) -> BTreeSet<String> {
        self.segment_vrfs
            .union(&self.routing_vrfs)
            .cloned()
            .collect()
    }
}

/// The VRFs that announce what each route target imports, on any node.
pub(super) type Announced = BTreeMap<ImportRouteTarget, BTreeSet<String>>;

/// Finds them. Nodes with the same config are read once.
pub(super) fn announced(compilation: &Compilation) -> Announced {
    let mut seen = BTreeSet::new();
    let mut announced = Announced::new();
    for node in compilation.nodes.values() {
        if !seen.insert(Arc::as_ptr(&node.shared)) {
            continue;
        }
        for (name, vrf) in &node.shared.fabric_vrfs {
            for target in &vrf.evpn_export_route_targets {
                let vrfs = announced
                    .entry(ImportRouteTarget::from(*target))
                    .or_default();
                vrfs.insert(name.clone());
            }
        }
    }
    announced
}

/// What is made of an object: its segments and its routing, each by its name.
pub(super) type Made<'a> = (
    Vec<(&'a String, &'a Layer2NetworkConfigurationSpec)>,
    Vec<(&'a String, &'a VrfRouteConfigurationSpec)>,
);

impl Walk<'_> {
    /// An object as an end of traffic on this node.
    pub(super) fn side(&self, object: &ObjectRef) -> Side {
        let objects = &self.trace.compilation.objects;
        let segments = of::<Layer2NetworkConfigurationSpec>(objects, object).into_iter();
        let routing = of::<VrfRouteConfigurationSpec>(objects, object).into_iter();
        let segments = segments.map(|(name, one)| (name, &one.spec)).collect();
        let routing = routing.map(|(name, one)| (name, &one.spec)).collect();
        self.side_of(object, &(segments, routing))
    }

    /// The same, where what is made of the object is known.
    pub(super) fn side_of(&self, object: &ObjectRef, (segments, routing): &Made<'_>) -> Side {
        // A segment without a VRF is in the cluster VRF, if it is routed.
        let of_segment = |spec: &Layer2NetworkConfigurationSpec| {
            let is_routed = spec.interface_ref.is_none() && !spec.anycast_gateways.is_empty();
            let own = spec.vrf.as_ref().map(ToString::to_string);
            own.or_else(|| self.cluster().filter(|_| is_routed))
        };
        let segment_vrfs: BTreeSet<String> = segments
            .iter()
            .filter_map(|(_, one)| of_segment(one))
            .collect();
        let routing_vrfs: BTreeSet<String> =
            routing.iter().map(|(_, one)| one.vrf.to_string()).collect();
        let mut holders: BTreeSet<String> = segment_vrfs.union(&routing_vrfs).cloned().collect();
        let is_here = |name: &String| self.config.shared.routing.contains(name);
        if segments.is_empty() && routing.iter().any(|(name, _)| is_here(name)) {
            // On a node that has the service.
            holders.extend(self.cluster());
        }
        Side {
            networks: self.networks(object, segments),
            has_segments: !segments.is_empty(),
            segment_vrfs,
            routing_vrfs,
            holders,
        }
    }

    /// The VRFs that hold what a table of the node may lead to.
    pub(super) fn behind(&self, table: &str) -> BTreeSet<String> {
        let imports = self.vrf(table).map(|vrf| vrf.vrf_imports.iter());
        let imports = imports
            .into_iter()
            .flatten()
            .map(|one| one.from_vrf.as_str());
        let announced = self.announced();
        let mut behind = BTreeSet::new();
        for vrf in imports.chain([table]) {
            behind.insert(vrf.to_owned());
            let targets = self.vrf(vrf).map(|vrf| &vrf.evpn_import_route_targets);
            let announcing = targets.into_iter().flatten();
            behind.extend(
                announcing
                    .filter_map(|one| announced.get(one))
                    .flatten()
                    .cloned(),
            );
        }
        behind
    }

    /// The tables that may route what an end sends: its own, and those of the rules for sources of the cluster VRF.
    pub(super) fn possible_tables(&self, from: &Side) -> BTreeSet<String> {
        let mut tables = self.first_tables(from);
        let cluster = self.config.shared.cluster_vrf.as_ref();
        if let Some(cluster) = cluster.filter(|one| tables.contains(one.devices.vrf.as_str())) {
            let rules = cluster.policy_routes.iter();
            tables.extend(rules.filter_map(|rule| rule.next_hop.vrf.clone()));
        }
        tables
    }

    /// The VRF through which one end reaches another by the tables of the node, and the network that it holds; nothing where none leads
    /// there.
    pub(super) fn way(&self, from: &Side, to: &Side) -> Option<(String, IpNet)> {
        to.networks.iter().find_map(|net| {
            let mut tables = self.tables(from, *net).into_iter();
            let vrf = tables.find_map(|table| self.holder(&table, *net, &to.holders))?;
            Some((vrf, *net))
        })
    }

    /// Whether the tables of the node lead from an end to a network of a VRF. Segments that no table routes have routes of the host.
    pub(super) fn leads(&self, from: &Side, net: IpNet, vrf: &str) -> bool {
        let holders = BTreeSet::from([vrf.to_owned()]);
        let tables = self.tables(from, net);
        let mut leading = tables.iter();
        tables.is_empty() || leading.any(|table| self.holder(table, net, &holders).is_some())
    }

    /// How an intent or hand-written object reaches another one; or why it does not.
    pub(super) fn way_between(
        &self,
        from: &ObjectRef,
        to: &ObjectRef,
    ) -> Result<String, Box<Obstacle>> {
        let objects = &self.trace.compilation.objects;
        if !objects.iter().any(|object| object.source() == to) {
            return Err(Box::new(self.of_user(to, to)));
        }
        let (one, other) = (self.side(from), self.side(to));
        if let Some((vrf, net)) = self.way(&one, &other) {
            return Ok(if one.vrfs().contains(&vrf) {
                format!("{from} and {to} are both in VRF {vrf}")
            } else {
                format!("{from} reaches {to} through VRF {vrf}, which holds {net} of {to}")
            });
        }
        let networks = &other.networks;
        Err(Box::new(Obstacle::Apart {
            object: from.clone(),
            vrfs: one.vrfs().into_iter().collect(),
            other: to.clone(),
            other_vrfs: other.vrfs().into_iter().collect(),
            leaving: networks.iter().find_map(|net| self.leaving(from, *net)),
            networks: networks.iter().map(ToString::to_string).collect(),
            has_destinations: referrers::selects_destinations(from.kind),
        }))
    }

    /// The VRF whose own routes lead to a network from a table: the table itself, or one that it takes routes from.
    ///
    /// FRR does not pass on what a table has taken over itself.
    fn holder(&self, table: &str, net: IpNet, holders: &BTreeSet<String>) -> Option<String> {
        if self.holds(table, holders) {
            return Some(table.to_owned());
        }
        let mut imports = self.vrf(table)?.vrf_imports.iter();
        let import =
            imports.find(|one| self.holds(&one.from_vrf, holders) && takes(&one.filter, net))?;
        Some(import.from_vrf.clone())
    }

    /// Whether a VRF of the node is one of these, or takes in from the fabric what one of these announces.
    fn holds(&self, vrf: &str, holders: &BTreeSet<String>) -> bool {
        if holders.contains(vrf) {
            return true;
        }
        let own = self.vrf(vrf).map(|vrf| &vrf.evpn_import_route_targets);
        let announced = self.announced();
        let mut announcing = own
            .into_iter()
            .flatten()
            .filter_map(|one| announced.get(one));
        announcing.any(|vrfs| !vrfs.is_disjoint(holders))
    }

    /// The tables of the node that route what an object's workloads send to a network: that of the segment's VRF, or that of the
    /// cluster VRF, unless a rule sends packets of their source elsewhere.
    fn tables(&self, from: &Side, net: IpNet) -> BTreeSet<String> {
        let sources = &from.networks;
        let cluster = self.cluster();
        let of_table = |table: String| {
            if Some(&table) != cluster.as_ref() {
                return vec![table];
            }
            let by_source = sources.iter().filter_map(|source| self.rule(*source, net));
            let mut steered: Vec<String> = by_source.collect();
            if steered.is_empty() {
                steered.push(table);
            }
            steered
        };
        let tables = self.first_tables(from).into_iter();
        tables.flat_map(of_table).collect()
    }

    /// The tables that what an end sends enters first.
    fn first_tables(&self, from: &Side) -> BTreeSet<String> {
        if from.has_segments {
            from.segment_vrfs.clone()
        } else if from.networks.is_empty() {
            from.routing_vrfs.clone()
        } else {
            self.cluster().into_iter().collect()
        }
    }

    /// The VRF to which the first rule sends packets from one network to another.
    fn rule(&self, source: IpNet, net: IpNet) -> Option<String> {
        let cluster = self.config.shared.cluster_vrf.as_ref()?;
        let matches = |rule: &&PolicyRoute| {
            let TrafficSides { from, to } = TrafficSides::of(rule);
            let is_source = from.is_some_and(|own| own.contains(&source) || source.contains(&own));
            is_source && to.is_none_or(|own| own.contains(&net))
        };
        let rules = cluster.policy_routes.iter().filter(matches);
        rules.min_by_key(|rule| rule.priority)?.next_hop.vrf.clone()
    }

    /// The Destination by which packets to a network leave, the longest prefix first, where one that an object selects covers it.
    fn leaving(&self, from: &ObjectRef, net: IpNet) -> Option<Leaving> {
        let snapshot = self.trace.snapshot;
        let selector = referrers::selector(snapshot, from)?;
        let destinations = snapshot.destinations.iter();
        let selected = destinations.filter(|(_, one)| selector.matches(&one.meta.labels));
        let covering = selected.flat_map(|(key, one)| {
            let prefixes = one.spec.prefixes.iter().map(|prefix| prefix.net());
            let around = prefixes.filter(|own| own.contains(&net));
            around.map(move |prefix| (prefix, key, one))
        });
        let (prefix, key, destination) = covering.max_by_key(|(prefix, ..)| prefix.prefix_len())?;
        let vrf = destination.spec.vrf_ref.as_ref();
        let vrf = vrf.and_then(|vrf| snapshot.vrfs.get(&Key::named(vrf)));
        Some(Leaving {
            net: net.to_string(),
            prefix: prefix.to_string(),
            destination: ObjectRef {
                kind: Kind::Destination,
                key: key.clone(),
            },
            vrf: vrf.map(|vrf| vrf.spec.vrf.to_string()),
        })
    }

    fn vrf(&self, name: &str) -> Option<&Vrf> {
        let shared = &self.config.shared;
        let of_fabric = shared.fabric_vrfs.get(name);
        let found = of_fabric.or_else(|| shared.local_vrfs.get(name));
        let cluster = shared.cluster_vrf.as_ref();
        let cluster = cluster.filter(|vrf| vrf.devices.vrf.as_str() == name);
        found.or(cluster).map(|vrf| &**vrf)
    }

    /// The name of the cluster VRF, where the node has it.
    pub(super) fn cluster(&self) -> Option<String> {
        let cluster = self.config.shared.cluster_vrf.as_ref();
        cluster.map(|vrf| vrf.devices.vrf.to_string())
    }

    /// The networks of an object: those of its Network, or of its segment's gateways.
    fn networks(
        &self,
        user: &ObjectRef,
        segments: &[(&String, &Layer2NetworkConfigurationSpec)],
    ) -> Vec<IpNet> {
        let network = referrers::network(self.trace, user);
        let network = network.and_then(|key| self.trace.snapshot.networks.get(&key));
        let families =
            network.map(|network| [network.spec.ipv4.as_ref(), network.spec.ipv6.as_ref()]);
        let families = families.into_iter().flatten().flatten();
        let mut networks: Vec<IpNet> = families.map(|family| family.cidr.net()).collect();
        for (_, segment) in segments {
            let gateways = segment.anycast_gateways.iter();
            networks.extend(gateways.map(|gateway| gateway.prefix().net()));
        }
        networks.sort();
        networks.dedup();
        networks
    }
}

/// The two ends of the traffic that a rule is for.
struct TrafficSides {
    from: Option<IpNet>,
    to: Option<IpNet>,
}

impl TrafficSides {
    fn of(rule: &PolicyRoute) -> Self {
        let traffic = &rule.traffic_match;
        Self {
            from: traffic.src_prefix.map(|own| own.prefix().net()),
            to: traffic.dst_prefix.map(|own| own.prefix().net()),
        }
    }
}

/// Whether a filter lets a route to a network pass, or one to a network around it. The first rule for the route itself decides.
fn takes(filter: &Filter, net: IpNet) -> bool {
    let mut is_around = false;
    for item in &filter.items {
        let is_accepted = item.action.kind == ActionType::Accept;
        match &item.matcher.prefix {
            None => return is_accepted,
            Some(own) if !own.prefix.net().contains(&net) => {}
            Some(own) if has_length(own, net.prefix_len()) => return is_accepted,
            Some(_) => is_around |= is_accepted,
        }
    }
    is_around || filter.default_action.kind == ActionType::Accept
}

/// Whether a rule is for routes of a length.
fn has_length(rule: &PrefixMatcher, length: u8) -> bool {
    let net = rule.prefix.net();
    let (own, longest) = (net.prefix_len(), net.max_prefix_len());
    let open = if rule.ge.is_some() { longest } else { own };
    (rule.ge.unwrap_or(own)..=rule.le.unwrap_or(open)).contains(&length)
}

#[cfg(test)]
mod tests {
    use api::tcaas::node_network_config::{Action, FilterItem, Matcher};

    use super::*;

    fn filter(items: &[(&str, Option<u8>, ActionType)]) -> Filter {
        let mut filter = Filter::default_to(ActionType::Reject);
        for (prefix, le, kind) in items {
            let prefix = PrefixMatcher {
                prefix: prefix.parse().expect("a prefix"),
                ge: None,
                le: *le,
            };
            filter.items.push(FilterItem {
                matcher: Matcher {
                    prefix: Some(prefix),
                    bgp_community: None,
                },
                action: Action {
                    kind: *kind,
                    modify_route: None,
                },
            });
        }
        filter
    }

    #[test]
    fn a_route_that_the_first_rule_for_it_denies_is_not_taken() {
        let all = ("10.0.0.0/8", Some(32), ActionType::Accept);
        let one = ("10.1.0.0/16", None, ActionType::Reject);
        let net: IpNet = "10.1.0.0/16".parse().expect("a network");
        assert!(takes(&filter(&[all]), net));
        assert!(!takes(&filter(&[one, all]), net));
        assert!(takes(&filter(&[all, one]), net));
        // A route to a network around it leads there as well.
        assert!(takes(
            &filter(&[("10.0.0.0/8", None, ActionType::Accept)]),
            net
        ));
        assert!(!takes(&filter(&[]), net));
    }
}
