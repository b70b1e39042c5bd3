//! Sessions with workloads, and what carries them in the host, from peerings.

use api::tcaas::BgpPeeringSpec;
use compiler::{names, snapshot::Kind};

use super::{
    Claim, ClaimBuilder, Low, OnNode, Trace,
    intent::{Aspect, AttachmentAspect},
};

type Peering<'a> = Low<'a, BgpPeeringSpec>;

const KIND: Kind = Kind::BgpPeering;

impl OnNode<'_> {
    /// The peerings that are in effect on the node, in the order in which they are served.
    fn peerings(&self) -> Vec<Peering<'_>> {
        let all = self.trace.compilation.objects.of::<BgpPeeringSpec>();
        let here = all.filter(|(name, _)| self.config.shared.peerings.contains(*name));
        let mut here: Vec<_> = here
            .map(|(name, object)| (KIND, name.as_str(), &**object))
            .collect();
        here.sort_by_key(|(_, _, object)| object.order());
        here
    }

    /// The claim of a neighbor that the settings give the cluster VRF.
    fn cluster_neighbor(&self, peer: &str) -> Option<ClaimBuilder<'_>> {
        let mut neighbors = self.trace.settings.cluster_neighbors.iter().enumerate();
        let (place, _) = neighbors.find(|(_, neighbor)| {
            let address = neighbor.address.map(|address| address.to_string());
            let device = || neighbor.interface.as_ref().map(ToString::to_string);
            address.or_else(device).as_deref() == Some(peer)
        })?;
        let mut draft = self.overlay()?;
        draft.own(Trace::setting(format!("spec.clusterNeighbors[{place}]")));
        Some(draft)
    }

    pub(super) fn session(&self, vrf: &str, peer: &str) -> Vec<Claim> {
        let neighbor = self.cluster_neighbor(peer);
        if let Some(draft) = neighbor.filter(|_| self.is_cluster(vrf)) {
            return vec![draft.build()];
        }
        let claim = |low: Peering<'_>| {
            let mut draft = match &low.2.spec.peering_vlan {
                Some(segment) => self.on_segment(low, &segment.name, (vrf, peer))?,
                None => self
                    .on_loopback(low, peer)
                    .filter(|_| self.is_cluster(vrf))?,
            };
            draft.session(low);
            Some(draft.build())
        };
        // Of two that want one session the first has it.
        self.peerings()
            .into_iter()
            .find_map(claim)
            .into_iter()
            .collect()
    }

    /// The claim of a peering on a segment: every address of the gateway's network may open a session.
    fn on_segment(
        &self,
        low: Peering<'_>,
        segment: &str,
        (vrf, peer): (&str, &str),
    ) -> Option<ClaimBuilder<'_>> {
        let segment = self.segments().find(|(_, name, _)| *name == segment)?;
        let spec = &segment.2.spec;
        let mut gateways = spec.anycast_gateways.iter();
        let has_peer = gateways.any(|gateway| gateway.prefix().to_string() == peer);
        let is_here = match &spec.vrf {
            Some(own) => own.as_str() == vrf,
            None => self.is_cluster(vrf),
        };
        if !has_peer || !is_here {
            return None;
        }
        let mut draft = self.networks_of(segment);
        draft.claim.by = low.2.source.clone();
        draft.low_level(
            low,
            "spec.peeringVlan",
            Aspect::Attachment(AttachmentAspect::Sessions),
        );
        Some(draft)
    }

    /// The claim of a peering over loopbacks of the host.
    fn on_loopback(&self, low: Peering<'_>, peer: &str) -> Option<ClaimBuilder<'_>> {
        let ips = low.2.spec.loopback_peer.iter().flat_map(|peer| &peer.ips);
        let mut ips = ips.enumerate();
        let (place, _) = ips.find(|(_, ip)| ip.to_string() == peer)?;
        let mut draft = self.draft(low.2);
        let path = format!("spec.loopbackPeer.ips[{place}]");
        draft.low_level(low, path, Aspect::Attachment(AttachmentAspect::Sessions));
        if low.2.spec.node_selector.is_some() {
            draft.low_level(low, "spec.nodeSelector", Aspect::Nodes);
        }
        Some(draft)
    }

    /// The way from the router to a peer on the host.
    pub(super) fn route_to_peer(&self, prefix: &str) -> Vec<Claim> {
        let address = prefix.split('/').next().unwrap_or_default();
        if let Some(mut draft) = self.cluster_neighbor(address) {
            draft.own(Trace::setting("spec.trunk.addresses"));
            return vec![draft.build()];
        }
        let claim = |low: Peering<'_>| {
            let mut draft = self.on_loopback(low, address)?;
            draft.own(Trace::setting("spec.trunk.addresses"));
            Some(draft.build())
        };
        self.peerings()
            .into_iter()
            .find_map(claim)
            .into_iter()
            .collect()
    }

    pub(super) fn loopback(&self, device: &str) -> Vec<Claim> {
        let mut peerings = self.peerings().into_iter();
        let Some(low) = peerings.find(|(_, name, _)| names::peer_loopback(name).as_str() == device)
        else {
            return Vec::new();
        };
        let mut draft = self.draft(low.2);
        draft.low_level(
            low,
            "spec.loopbackPeer",
            Aspect::Attachment(AttachmentAspect::Sessions),
        );
        if low.2.spec.node_selector.is_some() {
            draft.low_level(low, "spec.nodeSelector", Aspect::Nodes);
        }
        vec![draft.build()]
    }
}

impl ClaimBuilder<'_> {
    /// Names what a peering says about its sessions.
    fn session(&mut self, low: Peering<'_>) {
        let spec = &low.2.spec;
        self.low_level(low, "spec.remoteASN", Aspect::WorkloadAs);
        if spec.enable_bfd {
            self.low_level(
                low,
                "spec.enableBFD",
                Aspect::Attachment(AttachmentAspect::Sessions),
            );
        }
        let set = [
            (
                spec.hold_time.is_some(),
                "spec.holdTime",
                AttachmentAspect::HoldTime,
            ),
            (
                spec.keepalive_time.is_some(),
                "spec.keepaliveTime",
                AttachmentAspect::KeepaliveTime,
            ),
            (
                spec.maximum_prefixes.is_some(),
                "spec.maximumPrefixes",
                AttachmentAspect::MaximumPrefixes,
            ),
        ];
        for (_, path, aspect) in set.into_iter().filter(|(is_set, ..)| *is_set) {
            self.low_level(low, path, Aspect::Attachment(aspect));
        }
        if !spec.import.is_empty() {
            self.low_level(low, "spec.import", Aspect::AllOwn);
        }
        if !spec.export.is_empty() {
            self.low_level(low, "spec.export", Aspect::AllReached);
        }
    }
}
