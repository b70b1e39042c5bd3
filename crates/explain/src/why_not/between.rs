//! From one attachment or service to another: by the tables of the node, what they take over from each other, and who announces the
//! network that is asked about.

use std::collections::BTreeSet;

use api::{
    tcaas::{
        Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec,
        node_network_config::{ActionType, Filter, PolicyRoute, Vrf},
    },
    value::ImportRouteTarget,
};
use compiler::snapshot::{Key, Kind, ObjectRef};
use ipnet::IpNet;

use super::{Obstacle, Walk, obstacle::Leaving, of, referrers};

impl Walk<'_> {
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
        let networks = self.networks(to);
        let holders = self.holders(to);
        for net in &networks {
            for table in self.tables(from, *net) {
                let Some(vrf) = self.holder(&table, *net, &holders) else {
                    continue;
                };
                return Ok(if self.vrfs_of(from).contains(&vrf) {
                    format!("{from} and {to} are both in VRF {vrf}")
                } else {
                    format!("{from} reaches {to} through VRF {vrf}, which holds {net} of {to}")
                });
            }
        }
        Err(Box::new(Obstacle::Apart {
            object: from.clone(),
            vrfs: self.vrfs_of(from).into_iter().collect(),
            other: to.clone(),
            other_vrfs: self.vrfs_of(to).into_iter().collect(),
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
            imports.find(|one| takes(&one.filter, net) && self.holds(&one.from_vrf, holders))?;
        Some(import.from_vrf.clone())
    }

    /// Whether a VRF of the node is one of these, or takes in from the fabric what one of these announces.
    fn holds(&self, vrf: &str, holders: &BTreeSet<String>) -> bool {
        if holders.contains(vrf) {
            return true;
        }
        let own = self.vrf(vrf).map(|vrf| &vrf.evpn_import_route_targets);
        let own: Vec<&ImportRouteTarget> = own.into_iter().flatten().collect();
        let mut nodes = self.trace.compilation.nodes.values();
        !own.is_empty()
            && nodes.any(|node| {
                let announcing = node.shared.fabric_vrfs.iter();
                let mut announcing = announcing.filter(|(name, _)| holders.contains(*name));
                announcing.any(|(_, other)| {
                    let mut targets = other.evpn_export_route_targets.iter();
                    targets.any(|target| own.contains(&&ImportRouteTarget::from(*target)))
                })
            })
    }

    /// The tables of the node that route what an object's workloads send to a network: that of the segment's VRF, or that of the
    /// cluster VRF, unless a rule sends packets of their source elsewhere.
    fn tables(&self, from: &ObjectRef, net: IpNet) -> BTreeSet<String> {
        let of_segments = self.segment_vrfs(from);
        let has_segments =
            !of::<Layer2NetworkConfigurationSpec>(&self.trace.compilation.objects, from).is_empty();
        let sources = self.networks(from);
        let tables = if has_segments {
            of_segments
        } else if sources.is_empty() {
            self.routing_vrfs(from)
        } else {
            self.cluster().into_iter().collect()
        };
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
        tables.into_iter().flat_map(of_table).collect()
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

    /// The VRFs whose own routes lead to an object: those of its segments and those that announce it, and the cluster VRF of a node
    /// that has the service.
    fn holders(&self, to: &ObjectRef) -> BTreeSet<String> {
        let mut vrfs = self.vrfs_of(to);
        let objects = &self.trace.compilation.objects;
        let routing = of::<VrfRouteConfigurationSpec>(objects, to);
        let is_service = of::<Layer2NetworkConfigurationSpec>(objects, to).is_empty();
        let shared = &self.config.shared;
        let is_here = |name: &String| shared.routing.contains(name);
        if is_service && routing.iter().any(|(name, _)| is_here(name)) {
            vrfs.extend(self.cluster());
        }
        vrfs
    }

    /// The VRFs that an object is in, or that announce it.
    fn vrfs_of(&self, user: &ObjectRef) -> BTreeSet<String> {
        let mut vrfs = self.segment_vrfs(user);
        vrfs.extend(self.routing_vrfs(user));
        vrfs
    }

    /// The VRFs in which an object's segments have their gateways; one without a VRF is in the cluster VRF.
    fn segment_vrfs(&self, user: &ObjectRef) -> BTreeSet<String> {
        let segments = of::<Layer2NetworkConfigurationSpec>(&self.trace.compilation.objects, user);
        let of_segment = |spec: &Layer2NetworkConfigurationSpec| {
            let is_routed = spec.interface_ref.is_none() && !spec.anycast_gateways.is_empty();
            let own = spec.vrf.as_ref().map(ToString::to_string);
            own.or_else(|| self.cluster().filter(|_| is_routed))
        };
        let vrfs = segments.iter().filter_map(|(_, one)| of_segment(&one.spec));
        vrfs.collect()
    }

    fn routing_vrfs(&self, user: &ObjectRef) -> BTreeSet<String> {
        let routing = of::<VrfRouteConfigurationSpec>(&self.trace.compilation.objects, user);
        let vrfs = routing.iter().map(|(_, one)| one.spec.vrf.to_string());
        vrfs.collect()
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
    fn cluster(&self) -> Option<String> {
        let cluster = self.config.shared.cluster_vrf.as_ref();
        cluster.map(|vrf| vrf.devices.vrf.to_string())
    }

    /// The networks of an object: those of its Network, or of its segment's gateways.
    fn networks(&self, user: &ObjectRef) -> Vec<IpNet> {
        let needs = referrers::needs(self.trace, user);
        let network = needs.iter().find(|need| need.kind == Kind::Network);
        let network = network.map(|network| Key::clone(&network.key));
        let network = network.and_then(|key| self.trace.snapshot.networks.get(&key));
        let families =
            network.map(|network| [network.spec.ipv4.as_ref(), network.spec.ipv6.as_ref()]);
        let families = families.into_iter().flatten().flatten();
        let mut networks: Vec<IpNet> = families.map(|family| family.cidr.net()).collect();
        let segments = of::<Layer2NetworkConfigurationSpec>(&self.trace.compilation.objects, user);
        for (_, segment) in segments {
            let gateways = segment.spec.anycast_gateways.iter();
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

/// Whether a filter lets a route to a network pass, or one to a network around it.
fn takes(filter: &Filter, net: IpNet) -> bool {
    let is_around = |prefix: IpNet| prefix.contains(&net);
    let mut accepted = filter.items.iter().filter(|item| {
        let is_accepted = item.action.kind == ActionType::Accept;
        let prefix = item.matcher.prefix.as_ref();
        is_accepted && prefix.is_none_or(|own| is_around(own.prefix.net()))
    });
    accepted.next().is_some() || filter.default_action.kind == ActionType::Accept
}
