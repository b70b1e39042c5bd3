//! VRFs and what is in them, from routing objects.

use api::{
    tcaas::{PrefixItem, VrfRouteConfigurationSpec},
    value::Prefix,
};
use compiler::snapshot::{Kind, age};

use super::{Claim, Draft, Low, OnNode, Trace, intent::Ask};
use crate::element::{EVERYTHING, range};

pub(super) type Routing<'a> = Low<'a, VrfRouteConfigurationSpec>;

const KIND: Kind = Kind::VrfRouteConfiguration;

impl OnNode<'_> {
    /// The routing objects of a VRF that are for the node.
    pub(super) fn routing(&self, vrf: &str) -> Vec<Routing<'_>> {
        let all = self.trace.compilation.lowered.vrf.iter();
        let here = all.filter(|(_, object)| {
            object.spec.vrf.as_str() == vrf && self.is_selected(object.spec.node_selector.as_ref())
        });
        here.map(|(name, object)| (KIND, name.as_str(), &**object))
            .collect()
    }

    pub(super) fn vrf(&self, vrf: &str) -> Vec<Claim> {
        self.of_vrf(vrf, |draft, low| match low {
            Some(low) => draft.vni(low),
            None if self.trace.settings.cluster_vrf.vni.is_some() => {
                draft.own(Trace::setting("spec.clusterVRF.vni"));
            }
            None => {}
        })
    }

    pub(super) fn table(&self, vrf: &str) -> Vec<Claim> {
        self.of_vrf(vrf, |draft, _| {
            if self.trace.sets(|settings| &settings.route_tables) {
                draft.own(Trace::setting("spec.routeTables"));
            }
        })
    }

    pub(super) fn route_target(&self, vrf: &str) -> Vec<Claim> {
        self.of_vrf(vrf, |draft, low| match low {
            Some(low) => draft.target(low),
            None => draft.own(Trace::setting("spec.clusterVRF.routeTarget")),
        })
    }

    /// Everybody who brings a VRF to the node. `more` adds what else is asked; it gets no object for the cluster's VRF.
    fn of_vrf(&self, vrf: &str, more: impl Fn(&mut Draft<'_>, Option<Routing<'_>>)) -> Vec<Claim> {
        if self.is_cluster(vrf) {
            let Some(mut draft) = self.overlay() else {
                return Vec::new();
            };
            if self.trace.sets(|settings| &settings.cluster_vrf.name) {
                draft.own(Trace::setting("spec.clusterVRF.name"));
            }
            more(&mut draft, None);
            return vec![draft.done()];
        }
        if self.config.shared.local_vrfs.contains_key(vrf) {
            return self.local_vrf(vrf);
        }
        let claim = |low: Routing<'_>| {
            let mut draft = self.in_vrf(low);
            more(&mut draft, Some(low));
            draft.done()
        };
        // A neighbor's networks are in VRFs that its Inbounds bring to the node.
        let routing = self.routing(vrf).into_iter();
        let routing = routing.filter(|(_, _, object)| object.source.kind != Kind::BgpNeighbor);
        routing.map(claim).collect()
    }

    /// Begins the claim of one routing object: it brings its VRF to the node.
    pub(super) fn in_vrf(&self, low: Routing<'_>) -> Draft<'_> {
        let (_, _, object) = low;
        let mut draft = self.draft(object);
        draft.low(low, "spec.vrf", Ask::Vrf(&object.spec.vrf));
        draft.nodes(low);
        // A VRF is not there before somebody says its numbers.
        if object.spec.vni.is_none() {
            draft.vni(low);
        }
        if object.spec.route_target.is_none() {
            draft.target(low);
        }
        draft
    }

    /// What a VRF takes from the cluster's is what it announces; what the cluster's takes is what people import.
    pub(super) fn import(&self, vrf: &str, from: &str, prefix: &str) -> Vec<Claim> {
        if prefix == EVERYTHING {
            return self.local_vrf(vrf);
        }
        if self.is_cluster(from) {
            return self.export(vrf, prefix);
        }
        let claim = |low: Routing<'_>| {
            let spec = &low.2.spec;
            let mut draft = self.in_vrf(low);
            let ask = |prefix| Ask::Reached(&spec.vrf, prefix);
            let found = draft.items(low, ("import", &spec.import), prefix, ask);
            found.then(|| draft.done())
        };
        self.routing(from).into_iter().filter_map(claim).collect()
    }

    pub(super) fn export(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        if self.is_cluster(vrf) {
            return self.cluster_export(prefix);
        }
        let claim = |low: Routing<'_>| {
            let spec = &low.2.spec;
            let mut draft = self.in_vrf(low);
            let found = draft.items(low, ("export", &spec.export), prefix, Ask::Own);
            draft.communities(low, prefix);
            found.then(|| draft.done())
        };
        let written = self.routing(vrf).into_iter().filter_map(claim);
        written.chain(self.announced_source(vrf, prefix)).collect()
    }

    fn cluster_export(&self, prefix: &str) -> Vec<Claim> {
        let Some(mut draft) = self.overlay() else {
            return Vec::new();
        };
        draft.own(Trace::setting("spec.clusterVRF.vni"));
        let cidrs = self.trace.settings.export_cidrs.iter().enumerate();
        for (place, _) in cidrs.filter(|(_, cidr)| is_of(**cidr, prefix)) {
            draft.own(Trace::setting(format!("spec.exportCIDRs[{place}]")));
        }
        vec![draft.done()]
    }

    /// A static route: a network that is announced as a whole, or the way to a peer on the host.
    pub(super) fn route(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        if self.is_cluster(vrf) {
            return self.route_to_peer(prefix);
        }
        let claim = |low: Routing<'_>| {
            let mut draft = self.in_vrf(low);
            let aggregate = low.2.spec.aggregate.iter().enumerate();
            let mut found = false;
            for (place, cidr) in aggregate.filter(|(_, cidr)| cidr.to_string() == prefix) {
                draft.low(low, format!("spec.aggregate[{place}]"), Ask::Own(*cidr));
                found = true;
            }
            found.then(|| draft.done())
        };
        self.routing(vrf).into_iter().filter_map(claim).collect()
    }
}

/// Whether a prefix, which may go on with a range of lengths, is this one.
fn is_of(prefix: Prefix, text: &str) -> bool {
    text.split(' ').next() == Some(&prefix.to_string())
}

impl Draft<'_> {
    fn nodes(&mut self, low: Routing<'_>) {
        if low.2.spec.node_selector.is_some() {
            self.low(low, "spec.nodeSelector", Ask::Nodes);
        }
    }

    /// Names the lines of a list that speak of these routes; whether there are any.
    pub(super) fn items<'p>(
        &mut self,
        low: Routing<'_>,
        (list, items): (&str, &[PrefixItem]),
        prefix: &str,
        ask: impl Fn(Prefix) -> Ask<'p>,
    ) -> bool {
        let same = |item: &PrefixItem| range(&item.cidr, item.ge, item.le) == prefix;
        let mut found = false;
        for (place, item) in items.iter().enumerate().filter(|(_, item)| same(item)) {
            self.low(low, format!("spec.{list}[{place}].cidr"), ask(item.cidr));
            found = true;
        }
        found
    }

    fn communities(&mut self, low: Routing<'_>, prefix: &str) {
        let spec = &low.2.spec;
        let is_permitted = |item: &PrefixItem| {
            item.action == api::tcaas::PrefixAction::Permit
                && range(&item.cidr, item.ge, item.le) == prefix
        };
        if !spec.export.iter().any(is_permitted) {
            return;
        }
        if spec.community.is_some() {
            self.low(low, "spec.community", Ask::Communities);
        }
        if !spec.communities.is_empty() {
            self.low(low, "spec.communities", Ask::Communities);
        }
    }

    /// Names who gives a VRF a number: the oldest object that says one, or the settings. An object that says the same speaks for itself.
    fn number<T: PartialEq>(
        &mut self,
        low: Routing<'_>,
        (what, ask): (&str, Ask<'_>),
        number: impl Fn(&VrfRouteConfigurationSpec) -> Option<T>,
    ) {
        let (_, _, own) = low;
        let vrf = &own.spec.vrf;
        let all = self.trace.compilation.lowered.vrf.iter();
        let saying = all.filter(|(_, object)| object.spec.vrf == *vrf);
        let saying = saying.filter(|(_, object)| number(&object.spec).is_some());
        let path = format!("spec.{what}");
        match saying.min_by_key(|(name, object)| (age(&object.meta), *name)) {
            Some((_, object)) if number(&object.spec) == number(&own.spec) => {
                self.low(low, path, ask);
            }
            Some((name, object)) => {
                let other = (KIND, name.as_str(), &**object);
                self.low(other, path, ask);
                self.low(other, "spec.vrf", Ask::Vrf(vrf));
            }
            None => self.own(Trace::vrf_setting(vrf, what)),
        }
    }

    fn vni(&mut self, low: Routing<'_>) {
        let ask = Ask::VrfVni(&low.2.spec.vrf);
        self.number(low, ("vni", ask), |spec| spec.vni);
    }

    fn target(&mut self, low: Routing<'_>) {
        let ask = Ask::VrfTarget(&low.2.spec.vrf);
        self.number(low, ("routeTarget", ask), |spec| spec.route_target);
    }
}
