//! From one attachment or service to another: both are in a table that routes between them, or a Destination leads there.

use std::collections::BTreeSet;

use api::tcaas::{Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};
use compiler::snapshot::{Key, Kind, ObjectRef};
use ipnet::IpNet;

use super::{Obstacle, Walk, of, referrers};
use crate::query::Query;

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
        let (own, others) = (self.sources_in(from), self.announced_in(to));
        if let Some(vrf) = own.intersection(&others).next() {
            return Ok(format!("{from} and {to} are both in VRF {vrf}"));
        }
        let networks = self.networks(to);
        for net in &networks {
            for destination in referrers::destinations(self.trace, &Query::Prefix(*net)) {
                if let Ok(way) = self.destination_vrf(from, &destination) {
                    return Ok(format!("{way}, which holds {net} of {to}"));
                }
            }
        }
        Err(Box::new(Obstacle::Apart {
            object: from.clone(),
            vrfs: own.into_iter().collect(),
            other: to.clone(),
            other_vrfs: others.into_iter().collect(),
            networks: networks.iter().map(ToString::to_string).collect(),
            has_destinations: referrers::selects_destinations(from.kind),
        }))
    }

    /// The VRFs whose tables route what an object's workloads send.
    fn sources_in(&self, user: &ObjectRef) -> BTreeSet<String> {
        let of_segments = self.segment_vrfs(user);
        if of_segments.is_empty() {
            self.routing_vrfs(user)
        } else {
            of_segments
        }
    }

    /// The VRFs in which an object's networks are known.
    fn announced_in(&self, user: &ObjectRef) -> BTreeSet<String> {
        let mut vrfs = self.segment_vrfs(user);
        vrfs.extend(self.routing_vrfs(user));
        vrfs
    }

    fn segment_vrfs(&self, user: &ObjectRef) -> BTreeSet<String> {
        let segments = of::<Layer2NetworkConfigurationSpec>(&self.trace.compilation.objects, user);
        let vrfs = segments.iter().filter_map(|(_, one)| one.spec.vrf.as_ref());
        vrfs.map(ToString::to_string).collect()
    }

    fn routing_vrfs(&self, user: &ObjectRef) -> BTreeSet<String> {
        let routing = of::<VrfRouteConfigurationSpec>(&self.trace.compilation.objects, user);
        let vrfs = routing.iter().map(|(_, one)| one.spec.vrf.to_string());
        vrfs.collect()
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
