//! What `L3VNI`s, `L2VNI`s and `L3Passthrough`s bring to a node.

use std::collections::BTreeSet;

use api::{
    meta::LabelSelector,
    openperouter::{HostSession, L2VniSpec, L3VniSpec},
};
use compiler::{
    names,
    snapshot::{Key, Kind, ObjectRef},
};

use super::{Claim, ClaimBuilder, Field, OnNode, Trace};

impl OnNode<'_> {
    /// The objects of a kind that are in effect on the node.
    fn overlays(&self, kind: Kind) -> impl Iterator<Item = &ObjectRef> {
        let overlays = self.config.shared.overlays.iter();
        overlays.filter(move |subject| subject.kind == kind)
    }

    fn l3vnis(&self, vrf: &str) -> impl Iterator<Item = (&ObjectRef, &L3VniSpec)> {
        let of_vrf = self.overlays(Kind::L3Vni).filter_map(|subject| {
            let object = self.trace.snapshot.l3vnis.get(&subject.key)?;
            Some((subject, &*object.spec))
        });
        of_vrf.filter(move |(_, spec)| spec.vrf.as_str() == vrf)
    }

    fn l2vnis(&self) -> impl Iterator<Item = (&ObjectRef, &L2VniSpec)> {
        self.overlays(Kind::L2Vni).filter_map(|subject| {
            let object = self.trace.snapshot.l2vnis.get(&subject.key)?;
            Some((subject, &*object.spec))
        })
    }

    /// Begins the claim of an object.
    fn of_overlay(
        &self,
        by: &ObjectRef,
        selector: Option<&LabelSelector>,
        paths: &[&str],
    ) -> ClaimBuilder<'_> {
        let mut draft = ClaimBuilder {
            trace: self.trace,
            claim: Claim {
                by: by.clone(),
                sources: BTreeSet::new(),
            },
        };
        let selector = selector.map(|_| "spec.nodeSelector");
        for path in paths.iter().copied().chain(selector) {
            draft.own(Field::new(by.clone(), path));
        }
        draft
    }

    /// The claims of the objects that bring a VRF to the node.
    pub(super) fn overlay_vrf(&self, vrf: &str, with_numbers: bool) -> Vec<Claim> {
        let of_l3 = self.l3vnis(vrf).map(|(by, spec)| {
            let mut paths = vec!["spec.vrf"];
            if with_numbers {
                paths.push("spec.vni");
            }
            if with_numbers && spec.hostsession.is_some() {
                paths.push("spec.hostsession.asn");
            }
            let draft = self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            draft.build()
        });
        let of_l2 = self.l2vnis().filter_map(|(by, spec)| {
            let has_gateway = spec.gateways().is_ok_and(|gateways| !gateways.is_empty());
            let (name, path) = match &spec.vrf {
                Some(vrf) => (vrf.to_string(), "spec.vrf"),
                None => (
                    names::vrf_of_object(&self.trace.settings, &by.key.name),
                    "metadata.name",
                ),
            };
            let is_of_vrf = has_gateway && name == vrf;
            let paths = [path, gateway_field(spec)];
            let draft = || self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            is_of_vrf.then(|| draft().build())
        });
        let mut claims: Vec<Claim> = of_l3.collect();
        // Where a VNI gives the VRF its numbers, segments only lie in it.
        if claims.is_empty() {
            claims.extend(of_l2);
        }
        claims
    }

    pub(super) fn overlay_target(&self, vrf: &str) -> Vec<Claim> {
        let claims = self.l3vnis(vrf).map(|(by, spec)| {
            let set = [
                (!spec.import_rts.is_empty(), "spec.importRTs"),
                (!spec.export_rts.is_empty(), "spec.exportRTs"),
            ];
            let set = set.into_iter().filter(|(is_set, _)| *is_set);
            let paths: Vec<&str> = set.map(|(_, path)| path).collect();
            let draft = self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            draft.build()
        });
        claims.collect()
    }

    pub(super) fn host_session(&self, vrf: &str) -> Vec<Claim> {
        let claims = self.l3vnis(vrf).map(|(by, spec)| {
            let paths = ["spec.vni", "spec.vrf"];
            let mut draft = self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            if let Some(session) = &spec.hostsession {
                draft.host_session(by, session);
            }
            draft.build()
        });
        claims.collect()
    }

    pub(super) fn passthrough(&self, name: &str) -> Vec<Claim> {
        let here = self.overlays(Kind::L3Passthrough);
        let here = here.filter(|subject| subject.key.to_string() == name);
        let claims = here.filter_map(|by| {
            let key: &Key = &by.key;
            let spec = &self.trace.snapshot.l3passthroughs.get(key)?.spec;
            let paths = ["spec.hostsession.asn"];
            let mut draft = self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            draft.host_session(by, &spec.hostsession);
            Some(draft.build())
        });
        claims.collect()
    }

    pub(super) fn vni_segment(&self, vni: u32) -> Vec<Claim> {
        let here = self.l2vnis().filter(|(_, spec)| spec.vni.get() == vni);
        let claims = here.map(|(by, spec)| {
            let mut paths = vec!["spec.vni"];
            if spec.hostmaster.is_some() {
                paths.push("spec.hostmaster");
            }
            let draft = self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            draft.build()
        });
        claims.collect()
    }

    pub(super) fn vni_gateway(&self, vni: u32) -> Vec<Claim> {
        let here = self.l2vnis().filter(|(_, spec)| spec.vni.get() == vni);
        let claims = here.map(|(by, spec)| {
            let vrf = if spec.vrf.is_some() {
                "spec.vrf"
            } else {
                "metadata.name"
            };
            let paths = ["spec.vni", gateway_field(spec), vrf];
            let draft = self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            draft.build()
        });
        claims.collect()
    }

    /// The claims of the segments whose gateway has a network that a VRF announces.
    pub(super) fn gateway_export(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        let claims = self.l2vnis().filter_map(|(by, spec)| {
            let gateways = spec.gateways().ok()?;
            let has_prefix = gateways
                .iter()
                .any(|one| one.prefix().to_string() == prefix);
            let is_of_vrf = spec.vrf.as_ref().is_some_and(|own| own.as_str() == vrf);
            let paths = [gateway_field(spec), "spec.vrf"];
            let draft = || self.of_overlay(by, spec.node_selector.as_ref(), &paths);
            (has_prefix && is_of_vrf).then(|| draft().build())
        });
        claims.collect()
    }
}

impl ClaimBuilder<'_> {
    /// Names what decides the speaker of a session, and its networks, or their pool where it is set.
    fn host_session(&mut self, by: &ObjectRef, session: &HostSession) {
        let cidr = session.localcidr.as_ref();
        let set = [
            (session.hostasn.is_some(), "spec.hostsession.hostasn"),
            (session.hosttype.is_some(), "spec.hostsession.hosttype"),
            (
                cidr.is_some_and(|cidr| cidr.ipv4.is_some()),
                "spec.hostsession.localcidr.ipv4",
            ),
            (
                cidr.is_some_and(|cidr| cidr.ipv6.is_some()),
                "spec.hostsession.localcidr.ipv6",
            ),
        ];
        for (_, path) in set.into_iter().filter(|(is_set, _)| *is_set) {
            self.own(Field::new(by.clone(), path));
        }
        if cidr.is_none() && self.trace.sets(|settings| &settings.host_sessions) {
            self.own(Trace::setting("spec.hostSessions.cidrs"));
        }
    }
}

fn gateway_field(spec: &L2VniSpec) -> &'static str {
    if spec.l2gatewayip.is_some() {
        "spec.l2gatewayip"
    } else {
        "spec.l2gatewayips"
    }
}
