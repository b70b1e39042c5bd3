//! Sessions with workloads, and what carries them in the host, from peerings.

use api::tcaas::BgpPeeringSpec;
use compiler::{
    names,
    snapshot::{Kind, age},
};

use super::{
    Claim, Draft, Low, OnNode, Trace,
    intent::{Ask, AttachmentAsk},
};

type Peering<'a> = Low<'a, BgpPeeringSpec>;

const KIND: Kind = Kind::BgpPeering;

impl OnNode<'_> {
    /// The peerings that are in effect on the node, in the order in which they are served.
    fn peerings(&self) -> Vec<Peering<'_>> {
        let all = self.trace.compilation.lowered.bgp.iter();
        let here = all.filter(|(name, _)| self.config.shared.peerings.contains(*name));
        let mut here: Vec<_> = here
            .map(|(name, object)| (KIND, name.as_str(), &**object))
            .collect();
        here.sort_by_key(|(_, name, object)| (age(&object.meta), *name));
        here
    }

    pub(super) fn session(&self, vrf: &str, peer: &str) -> Vec<Claim> {
        let claim = |low: Peering<'_>| {
            let mut draft = match &low.2.spec.peering_vlan {
                Some(segment) => self.on_segment(low, &segment.name, (vrf, peer))?,
                None => self
                    .on_loopback(low, peer)
                    .filter(|_| self.is_cluster(vrf))?,
            };
            draft.session(low);
            Some(draft.done())
        };
        // Of two that want one session the first has it.
        self.peerings()
            .into_iter()
            .find_map(claim)
            .into_iter()
            .collect()
    }

    /// The claim of a peering on a segment: whoever is in the network of its gateway may speak.
    fn on_segment(
        &self,
        low: Peering<'_>,
        segment: &str,
        (vrf, peer): (&str, &str),
    ) -> Option<Draft<'_>> {
        let segment = self.segments().find(|(_, name, _)| *name == segment)?;
        let spec = &segment.2.spec;
        let mut gateways = spec.anycast_gateways.iter();
        let has_peer = gateways.any(|gateway| gateway.prefix().to_string() == peer);
        if !has_peer || spec.vrf.as_ref().is_none_or(|own| own.as_str() != vrf) {
            return None;
        }
        let mut draft = self.networks_of(segment);
        draft.claim.by = low.2.source.clone();
        draft.low(
            low,
            "spec.peeringVlan",
            Ask::Attachment(AttachmentAsk::Sessions),
        );
        Some(draft)
    }

    /// The claim of a peering over loopbacks of the host.
    fn on_loopback(&self, low: Peering<'_>, peer: &str) -> Option<Draft<'_>> {
        let ips = low.2.spec.loopback_peer.iter().flat_map(|peer| &peer.ips);
        let mut ips = ips.enumerate();
        let (place, _) = ips.find(|(_, ip)| ip.to_string() == peer)?;
        let mut draft = self.draft(low.2);
        let path = format!("spec.loopbackPeer.ips[{place}]");
        draft.low(low, path, Ask::Attachment(AttachmentAsk::Sessions));
        if low.2.spec.node_selector.is_some() {
            draft.low(low, "spec.nodeSelector", Ask::Nodes);
        }
        Some(draft)
    }

    /// The way from the router to a peer on the host.
    pub(super) fn route_to_peer(&self, prefix: &str) -> Vec<Claim> {
        let address = prefix.split('/').next().unwrap_or_default();
        let claim = |low: Peering<'_>| {
            let mut draft = self.on_loopback(low, address)?;
            draft.own(Trace::setting("spec.trunk.addresses"));
            Some(draft.done())
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
        draft.low(
            low,
            "spec.loopbackPeer",
            Ask::Attachment(AttachmentAsk::Sessions),
        );
        if low.2.spec.node_selector.is_some() {
            draft.low(low, "spec.nodeSelector", Ask::Nodes);
        }
        vec![draft.done()]
    }
}

impl Draft<'_> {
    /// Names what a peering says about its sessions.
    fn session(&mut self, low: Peering<'_>) {
        let spec = &low.2.spec;
        self.low(low, "spec.remoteASN", Ask::WorkloadAs);
        if spec.enable_bfd {
            self.low(
                low,
                "spec.enableBFD",
                Ask::Attachment(AttachmentAsk::Sessions),
            );
        }
        let set = [
            (
                spec.hold_time.is_some(),
                "spec.holdTime",
                AttachmentAsk::HoldTime,
            ),
            (
                spec.keepalive_time.is_some(),
                "spec.keepaliveTime",
                AttachmentAsk::KeepaliveTime,
            ),
            (
                spec.maximum_prefixes.is_some(),
                "spec.maximumPrefixes",
                AttachmentAsk::MaximumPrefixes,
            ),
        ];
        for (_, path, ask) in set.into_iter().filter(|(is_set, ..)| *is_set) {
            self.low(low, path, Ask::Attachment(ask));
        }
        if !spec.import.is_empty() {
            self.low(low, "spec.import", Ask::AllOwn);
        }
        if !spec.export.is_empty() {
            self.low(low, "spec.export", Ask::AllReached);
        }
    }
}
