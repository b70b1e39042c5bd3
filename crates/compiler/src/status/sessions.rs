//! What workloads need to know to open their sessions.

use std::collections::BTreeSet;

use api::{
    tcaas::{AttachmentBgpStatus, BgpNeighborStatus, BgpPeeringSpec},
    value::{Asn, HostCidr},
};

use super::Fold;
use crate::{
    node::NodeConfig,
    snapshot::{Key, Kind, Meta, ObjectRef},
};

impl Fold<'_> {
    pub(super) fn bgp_neighbor(&self, key: &Key, meta: &Meta) -> BgpNeighborStatus {
        let subject = ObjectRef {
            kind: Kind::BgpNeighbor,
            key: key.clone(),
        };
        let workload_ips = self.compilation.lowered.workload_ips.get(&key.name);
        let workload_ips = workload_ips.cloned().unwrap_or_default();
        let has = |end: &HostCidr| workload_ips.iter().any(|ip| ip.is_ipv4() == end.is_ipv4());
        let peering = self.peering(&subject);
        let spec = peering.map(|(_, spec)| spec);
        let asn = self.router_asn(peering);
        let trunk = self.holders(peering).find_map(|node| {
            let trunk = &node.underlay.as_ref()?.trunk;
            Some(trunk.router_addresses.clone())
        });
        BgpNeighborStatus {
            observed_generation: meta.generation,
            as_number: asn,
            neighbor_ips: trunk.into_iter().flatten().filter(has).collect(),
            workload_ips: workload_ips.clone(),
            neighbor_as_number: asn,
            workload_as_number: spec.map(|spec| spec.remote_asn),
            hold_time: spec.and_then(|spec| spec.hold_time),
            keepalive_time: spec.and_then(|spec| spec.keepalive_time),
            maximum_prefixes: spec.and_then(|spec| spec.maximum_prefixes),
            conditions: self.application(Kind::BgpNeighbor, key, meta),
        }
    }

    /// Workloads of a segment dial its gateway.
    pub(super) fn attachment_bgp(&self, key: &Key) -> Option<AttachmentBgpStatus> {
        let subject = ObjectRef {
            kind: Kind::Layer2Attachment,
            key: key.clone(),
        };
        let peering = self.peering(&subject)?;
        let (_, spec) = peering;
        let asn = self.router_asn(Some(peering));
        let attachment = self.compilation.lowered.attachments.get(&key.name);
        let anycast = attachment.and_then(|attachment| attachment.anycast.as_ref());
        let gateways = anycast.map(|anycast| [anycast.gatewayv4, anycast.gateway]);
        Some(AttachmentBgpStatus {
            as_number: asn,
            neighbor_ips: gateways.into_iter().flatten().flatten().collect(),
            neighbor_as_number: asn,
            workload_as_number: Some(spec.remote_asn),
            hold_time: spec.hold_time,
            keepalive_time: spec.keepalive_time,
            maximum_prefixes: spec.maximum_prefixes,
        })
    }

    /// The sessions that an intent has made.
    fn peering(&self, subject: &ObjectRef) -> Option<(&str, &BgpPeeringSpec)> {
        let mut peerings = self.compilation.lowered.bgp.iter();
        let (name, object) = peerings.find(|(_, object)| object.source == *subject)?;
        Some((name, &object.spec))
    }

    /// The nodes that have these sessions.
    fn holders(
        &self,
        peering: Option<(&str, &BgpPeeringSpec)>,
    ) -> impl Iterator<Item = &NodeConfig> {
        let name = peering.map(|(name, _)| name.to_owned());
        let nodes = self.compilation.nodes.values();
        nodes.filter(move |node| {
            let name = name.as_ref();
            name.is_some_and(|name| node.shared.peerings.contains(name))
        })
    }

    /// The AS of the routers that have these sessions, where it is one.
    fn router_asn(&self, peering: Option<(&str, &BgpPeeringSpec)>) -> Option<Asn> {
        let underlays = self
            .holders(peering)
            .filter_map(|node| node.underlay.as_ref());
        let asns: BTreeSet<Asn> = underlays.map(|underlay| underlay.asn).collect();
        asns.first().copied().filter(|_| asns.len() == 1)
    }
}
