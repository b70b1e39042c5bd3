//! The node's place in the fabric, from its Underlay and the settings of the trunk.

use std::collections::BTreeSet;

use api::openperouter::UnderlaySpec;
use compiler::snapshot::ObjectRef;

use super::{Claim, ClaimBuilder, Field, OnNode, Trace};

impl OnNode<'_> {
    /// Begins the claim of the node's Underlay.
    fn underlay_draft(&self) -> Option<(ClaimBuilder<'_>, ObjectRef, &UnderlaySpec)> {
        let by = self.config.underlay.as_ref()?.fabric.source.clone();
        let spec = &*self.trace.snapshot.underlays.get(&by.key)?.spec;
        let mut draft = ClaimBuilder {
            trace: self.trace,
            claim: Claim {
                by: by.clone(),
                sources: BTreeSet::new(),
            },
        };
        if spec.node_selector.is_some() {
            draft.own(Field::new(by.clone(), "spec.nodeSelector"));
        }
        Some((draft, by, spec))
    }

    pub(super) fn underlay(&self) -> Vec<Claim> {
        let Some((mut draft, by, spec)) = self.underlay_draft() else {
            return Vec::new();
        };
        let set = [
            (true, "spec.asn"),
            (!spec.nics.is_empty(), "spec.nics"),
            (!spec.interfaces.is_empty(), "spec.interfaces"),
            (spec.graceful_restart.is_some(), "spec.gracefulRestart"),
        ];
        for (_, path) in set.into_iter().filter(|(is_set, _)| *is_set) {
            draft.own(Field::new(by.clone(), path));
        }
        draft.own(Field::new(by.clone(), "spec.routeridcidr"));
        draft.overlay(&by, spec);
        if self.trace.sets(|settings| &settings.trunk) {
            draft.own(Trace::setting("spec.trunk"));
        }
        if self.trace.sets(|settings| &settings.bgp.workload_cidrs) {
            draft.own(Trace::setting("spec.bgp.workloadCIDRs"));
        }
        vec![draft.build()]
    }

    pub(super) fn underlay_peer(&self, peer: &str) -> Vec<Claim> {
        let Some((mut draft, by, spec)) = self.underlay_draft() else {
            return Vec::new();
        };
        let place = spec.neighbors.iter().position(|neighbor| {
            let address = neighbor.address.as_ref().map(ToString::to_string);
            let device = neighbor.interface.as_ref().map(ToString::to_string);
            address.or(device).as_deref() == Some(peer)
        });
        if let Some(place) = place {
            draft.own(Field::new(by, format!("spec.neighbors[{place}]")));
        }
        vec![draft.build()]
    }

    /// Begins the claim of what every node with a VTEP has.
    pub(super) fn overlay(&self) -> Option<ClaimBuilder<'_>> {
        let (mut draft, by, spec) = self.underlay_draft()?;
        draft.overlay(&by, spec);
        Some(draft)
    }
}

impl ClaimBuilder<'_> {
    fn overlay(&mut self, by: &ObjectRef, spec: &UnderlaySpec) {
        if spec.evpn.is_some() {
            self.own(Field::new(by.clone(), "spec.evpn"));
        }
        if spec.tunnel_endpoint.is_some() {
            self.own(Field::new(by.clone(), "spec.tunnelEndpoint"));
        }
    }
}
