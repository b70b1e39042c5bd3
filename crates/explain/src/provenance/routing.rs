//! VRFs and what is in them, from routing objects.

use api::{
    selvedge::VrfNumbers,
    tcaas::{PrefixAction, PrefixItem, VrfRouteConfigurationSpec},
    value::{Prefix, RouteTarget, Vni, VrfName},
};
use compiler::snapshot::Kind;

use super::{Claim, ClaimBuilder, Low, OnNode, Trace, intent::Aspect};
use crate::element::{EVERYTHING, range};

pub(super) type Routing<'a> = Low<'a, VrfRouteConfigurationSpec>;

const KIND: Kind = Kind::VrfRouteConfiguration;

/// A number without which a VRF is on no node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    Vni,
    RouteTarget,
}

/// The value of a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Vni(Vni),
    RouteTarget(RouteTarget),
}

impl Number {
    const ALL: [Self; 2] = [Self::Vni, Self::RouteTarget];

    /// The field that gives it, of routing objects, of VRFs and in the settings.
    fn field(self) -> &'static str {
        match self {
            Self::Vni => "vni",
            Self::RouteTarget => "routeTarget",
        }
    }

    fn ask(self, vrf: &VrfName) -> Aspect<'_> {
        match self {
            Self::Vni => Aspect::VrfVni(vrf),
            Self::RouteTarget => Aspect::VrfTarget(vrf),
        }
    }

    fn of(self, spec: &VrfRouteConfigurationSpec) -> Option<Value> {
        match self {
            Self::Vni => spec.vni.map(Value::Vni),
            Self::RouteTarget => spec.route_target.map(Value::RouteTarget),
        }
    }

    fn of_settings(self, vrf: &VrfNumbers) -> Option<Value> {
        match self {
            Self::Vni => vrf.vni.map(Value::Vni),
            Self::RouteTarget => vrf.route_target.map(Value::RouteTarget),
        }
    }
}

/// What gives a VRF a number.
#[derive(Clone, Copy)]
enum Provider<'a> {
    Object(Routing<'a>),
    Settings,
}

impl OnNode<'_> {
    /// The routing objects of a VRF that are for the node.
    pub(super) fn routing(&self, vrf: &str) -> Vec<Routing<'_>> {
        let all = self
            .trace
            .compilation
            .objects
            .of::<VrfRouteConfigurationSpec>();
        let here = all.filter(|(_, object)| {
            object.spec.vrf.as_str() == vrf && self.is_selected(object.spec.node_selector.as_ref())
        });
        here.map(|(name, object)| (KIND, name.as_str(), &**object))
            .collect()
    }

    pub(super) fn vrf(&self, vrf: &str) -> Vec<Claim> {
        self.of_vrf(vrf, Some(Number::Vni), |draft, is_cluster| {
            if is_cluster && self.trace.settings.cluster_vrf.vni.is_some() {
                draft.own(Trace::setting("spec.clusterVRF.vni"));
            }
        })
    }

    pub(super) fn table(&self, vrf: &str) -> Vec<Claim> {
        self.of_vrf(vrf, None, |draft, _| {
            if self.trace.sets(|settings| &settings.route_tables) {
                draft.own(Trace::setting("spec.routeTables"));
            }
        })
    }

    pub(super) fn route_target(&self, vrf: &str) -> Vec<Claim> {
        self.of_vrf(vrf, Some(Number::RouteTarget), |draft, is_cluster| {
            if is_cluster {
                draft.own(Trace::setting("spec.clusterVRF.routeTarget"));
            }
        })
    }

    /// The claims of all objects that bring a VRF to the node. `valued` is the number whose value is asked for; `more` adds what else
    /// is, and gets whether it is the cluster's VRF.
    fn of_vrf(
        &self,
        vrf: &str,
        valued: Option<Number>,
        more: impl Fn(&mut ClaimBuilder<'_>, bool),
    ) -> Vec<Claim> {
        if self.is_cluster(vrf) {
            let Some(mut draft) = self.overlay() else {
                return Vec::new();
            };
            if self.trace.sets(|settings| &settings.cluster_vrf.name) {
                draft.own(Trace::setting("spec.clusterVRF.name"));
            }
            more(&mut draft, true);
            return vec![draft.build()];
        }
        if self.is_management(vrf) {
            let draft = self.overlay().map(|mut draft| {
                draft.own(Trace::setting("spec.managementVRF.name"));
                if let Some(number) = valued {
                    let field = format!("spec.managementVRF.{}", number.field());
                    draft.own(Trace::setting(field));
                }
                draft.build()
            });
            return draft.into_iter().collect();
        }
        if self.config.shared.local_vrfs.contains_key(vrf) {
            return self.local_vrf(vrf);
        }
        let mut claims = Vec::new();
        for low in self.routing(vrf) {
            // A neighbor's networks are in VRFs that its Inbounds bring to the node.
            if low.2.source.kind == Kind::BgpNeighbor {
                continue;
            }
            for mut draft in self.with_numbers(low, valued) {
                more(&mut draft, false);
                claims.push(draft.build());
            }
        }
        claims.extend(match valued {
            Some(Number::RouteTarget) => self.overlay_target(vrf),
            Some(Number::Vni) => self.overlay_vrf(vrf, true),
            None => self.overlay_vrf(vrf, false),
        });
        claims
    }

    /// Begins the claims of one routing object: it brings its VRF to the node.
    pub(super) fn in_vrf(&self, low: Routing<'_>) -> Vec<ClaimBuilder<'_>> {
        self.with_numbers(low, None)
    }

    /// Begins the claims of one routing object in its VRF, which must have its numbers. What the object does not say itself, others
    /// have to: where several do, each of them is enough, and there is a claim with each.
    fn with_numbers(&self, low: Routing<'_>, valued: Option<Number>) -> Vec<ClaimBuilder<'_>> {
        let (_, _, object) = low;
        let vrf = &object.spec.vrf;
        let missing = Number::ALL.into_iter();
        let missing = missing.filter(|number| number.of(&object.spec).is_none());
        let missing: Vec<(Number, Vec<Provider<'_>>)> = missing
            .map(|number| {
                let mut providers = self.providers(vrf, number);
                if Some(number) == valued {
                    let value = self.decisive(vrf, number).map(|(_, value)| value);
                    providers.retain(|(_, own)| Some(*own) == value);
                }
                let providers = providers.into_iter().map(|(provider, _)| provider);
                (number, providers.collect())
            })
            .collect();
        let ways = missing.iter().map(|(_, providers)| providers.len()).max();
        let draft = |way| {
            let mut draft = self.draft(object);
            draft.low_level(low, "spec.vrf", Aspect::Vrf(vrf));
            draft.nodes(low);
            for (number, providers) in &missing {
                // Where one number has fewer providers than the other, they are named again.
                if let Some(provider) = providers.iter().cycle().nth(way) {
                    draft.number(vrf, *number, *provider);
                    if let Provider::Object(provider) = provider {
                        draft.low_level(*provider, "spec.vrf", Aspect::Vrf(vrf));
                    }
                }
            }
            if let Some(number) = valued {
                draft.value(low, number, self.decisive(vrf, number));
            }
            draft
        };
        (0..ways.unwrap_or_default().max(1)).map(draft).collect()
    }

    /// The routing objects that say a number of a VRF. On which nodes does not matter: a VRF has one number on all.
    fn saying(&self, vrf: &VrfName, number: Number) -> impl Iterator<Item = (Routing<'_>, Value)> {
        let all = self
            .trace
            .compilation
            .objects
            .of::<VrfRouteConfigurationSpec>();
        let of_vrf = all.filter(move |(_, object)| object.spec.vrf == *vrf);
        of_vrf.filter_map(move |(name, object)| {
            let value = number.of(&object.spec)?;
            Some(((KIND, name.as_str(), &**object), value))
        })
    }

    /// The number that the settings have for a VRF.
    fn in_settings(&self, vrf: &VrfName, number: Number) -> Option<(Provider<'_>, Value)> {
        let numbers = self.trace.settings.vrfs.get(vrf)?;
        Some((Provider::Settings, number.of_settings(numbers)?))
    }

    /// Everything that gives a VRF a number.
    fn providers(&self, vrf: &VrfName, number: Number) -> Vec<(Provider<'_>, Value)> {
        let saying = self.saying(vrf, number);
        let saying = saying.map(|(low, value)| (Provider::Object(low), value));
        saying.chain(self.in_settings(vrf, number)).collect()
    }

    /// What decides the value of a number: the oldest object that says one, else the settings.
    fn decisive(&self, vrf: &VrfName, number: Number) -> Option<(Provider<'_>, Value)> {
        let saying = self.saying(vrf, number);
        let oldest = saying.min_by_key(|((_, _, object), _)| object.order());
        let oldest = oldest.map(|(low, value)| (Provider::Object(low), value));
        oldest.or_else(|| self.in_settings(vrf, number))
    }

    /// What a VRF takes from the cluster's VRF is what it announces; what the cluster's takes is what objects import.
    pub(super) fn import(&self, vrf: &str, from: &str, prefix: &str) -> Vec<Claim> {
        if prefix == EVERYTHING {
            let management = [vrf, from].into_iter().find(|one| self.is_management(one));
            return management.map_or_else(
                || self.local_vrf(vrf),
                |management| self.of_vrf(management, None, |_, _| {}),
            );
        }
        if self.is_cluster(from) {
            return self.export(vrf, prefix);
        }
        self.claims_of(from, |draft, low| {
            let spec = &low.2.spec;
            let aspect = |prefix| Aspect::Reached(&spec.vrf, prefix);
            let import = ("import", spec.import.as_slice(), PrefixAction::Permit);
            let found = draft.items(low, import, prefix, aspect);
            // Of a generated object only the settings widen an import.
            if found && low.2.is_generated() && prefix.contains(' ') {
                draft.own(Trace::setting("spec.importMatch"));
            }
            found
        })
    }

    pub(super) fn export(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        if self.is_cluster(vrf) {
            return self.cluster_export(prefix);
        }
        let mut claims = self.claims_of(vrf, |draft, low| {
            draft.communities(low, prefix);
            for other in self.tagging(low, vrf, prefix) {
                draft.own_communities(other);
            }
            let export = ("export", low.2.spec.export.as_slice(), PrefixAction::Permit);
            draft.items(low, export, prefix, Aspect::Own)
        });
        claims.extend(self.announced_source(vrf, prefix));
        claims.extend(self.gateway_export(vrf, prefix));
        claims
    }

    /// The deny items of an import. Like permitted ones, those from the cluster's VRF are what the VRF does not announce.
    pub(super) fn denied_import(&self, vrf: &str, from: &str, prefix: &str) -> Vec<Claim> {
        if self.is_cluster(from) {
            return self.denied_export(vrf, prefix);
        }
        self.claims_of(from, |draft, low| {
            let spec = &low.2.spec;
            let import = ("import", spec.import.as_slice(), PrefixAction::Deny);
            draft.items(low, import, prefix, |prefix| {
                Aspect::Reached(&spec.vrf, prefix)
            })
        })
    }

    /// The deny items of an export.
    pub(super) fn denied_export(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        self.claims_of(vrf, |draft, low| {
            let export = ("export", low.2.spec.export.as_slice(), PrefixAction::Deny);
            draft.items(low, export, prefix, Aspect::Own)
        })
    }

    /// The objects whose communities the routes of an item of this object carry as well: they permit more lengths of the same
    /// prefix, and are merged with it.
    fn tagging(&self, low: Routing<'_>, vrf: &str, prefix: &str) -> Vec<Routing<'_>> {
        let only_permits = |spec: &VrfRouteConfigurationSpec| {
            let mut items = spec.export.iter();
            items.all(|item| item.action == PrefixAction::Permit)
        };
        let spec = &low.2.spec;
        let mut items = spec.export.iter();
        let item = items.find(|item| range(&item.cidr, item.ge, item.le) == prefix);
        let Some(item) = item.filter(|_| only_permits(spec)) else {
            return Vec::new();
        };
        let own = item.lengths();
        let is_around = |other: &PrefixItem| {
            let lengths = other.lengths();
            let is_same = range(&other.cidr, other.ge, other.le) == prefix;
            other.cidr == item.cidr
                && !is_same
                && lengths.start() <= own.start()
                && own.end() <= lengths.end()
        };
        let mut tagging = self.routing(vrf);
        tagging.retain(|(_, name, object)| {
            *name != low.1
                && object.spec.seq == spec.seq
                && only_permits(&object.spec)
                && object.spec.export.iter().any(is_around)
        });
        tagging
    }

    /// The claims of all routing objects of a VRF that say something; `says` names it.
    fn claims_of(
        &self,
        vrf: &str,
        says: impl Fn(&mut ClaimBuilder<'_>, Routing<'_>) -> bool,
    ) -> Vec<Claim> {
        let mut claims = Vec::new();
        for low in self.routing(vrf) {
            for mut draft in self.in_vrf(low) {
                if says(&mut draft, low) {
                    claims.push(draft.build());
                }
            }
        }
        claims
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
        vec![draft.build()]
    }

    /// A static route: the way to a peer on the host.
    pub(super) fn route(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        if self.is_cluster(vrf) {
            return self.route_to_peer(prefix);
        }
        Vec::new()
    }

    /// A network that is announced as a whole. Those of services are in the cluster VRF, whichever VRFs the services reach.
    pub(super) fn aggregate(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        if !self.is_cluster(vrf) {
            return self.aggregate_in(vrf, prefix);
        }
        let vrfs = self.config.shared.fabric_vrfs.keys();
        let routing = vrfs.flat_map(|vrf| self.routing(vrf));
        let of_services = routing.filter(|low| low.2.is_generated());
        let claims = of_services.filter_map(|low| {
            let mut aggregates = low.2.spec.aggregate.iter().enumerate();
            let (place, cidr) = aggregates.find(|(_, cidr)| cidr.to_string() == prefix)?;
            let mut draft = self.draft(low.2);
            draft.low_level(low, format!("spec.aggregate[{place}]"), Aspect::Own(*cidr));
            draft.nodes(low);
            Some(draft.build())
        });
        claims.collect()
    }

    fn aggregate_in(&self, vrf: &str, prefix: &str) -> Vec<Claim> {
        self.claims_of(vrf, |draft, low| {
            let aggregate = low.2.spec.aggregate.iter().enumerate();
            let mut found = false;
            for (place, cidr) in aggregate.filter(|(_, cidr)| cidr.to_string() == prefix) {
                draft.low_level(low, format!("spec.aggregate[{place}]"), Aspect::Own(*cidr));
                found = true;
            }
            found
        })
    }
}

/// Whether a prefix, which may go on with a range of lengths, is this one.
fn is_of(prefix: Prefix, text: &str) -> bool {
    text.split(' ').next() == Some(&prefix.to_string())
}

impl ClaimBuilder<'_> {
    fn nodes(&mut self, low: Routing<'_>) {
        if low.2.spec.node_selector.is_some() {
            self.low_level(low, "spec.nodeSelector", Aspect::Nodes);
        }
    }

    /// Names what gives a VRF a number.
    fn number(&mut self, vrf: &VrfName, number: Number, provider: Provider<'_>) {
        match provider {
            Provider::Object(low) => {
                self.low_level(low, format!("spec.{}", number.field()), number.ask(vrf));
            }
            Provider::Settings => self.own(Trace::vrf_setting(vrf, number.field())),
        }
    }

    /// Names what decides the value of a number. A generated object that agrees decides for itself, because an
    /// intent that disagrees is rejected; of hand-written objects that disagree, the oldest decides.
    fn value(&mut self, low: Routing<'_>, number: Number, decisive: Option<(Provider<'_>, Value)>) {
        let (_, _, object) = low;
        let own = number.of(&object.spec);
        match decisive {
            Some((_, value)) if object.is_generated() && own == Some(value) => {
                self.number(&object.spec.vrf, number, Provider::Object(low));
            }
            Some((provider, _)) => self.number(&object.spec.vrf, number, provider),
            None => {}
        }
    }

    /// Names the lines of a list that do this with these routes; whether there are any.
    pub(super) fn items<'p>(
        &mut self,
        low: Routing<'_>,
        (list, items, action): (&str, &[PrefixItem], PrefixAction),
        prefix: &str,
        aspect: impl Fn(Prefix) -> Aspect<'p>,
    ) -> bool {
        let same = |item: &PrefixItem| {
            item.action == action && range(&item.cidr, item.ge, item.le) == prefix
        };
        let mut found = false;
        for (place, item) in items.iter().enumerate().filter(|(_, item)| same(item)) {
            self.low_level(low, format!("spec.{list}[{place}].cidr"), aspect(item.cidr));
            found = true;
        }
        found
    }

    fn communities(&mut self, low: Routing<'_>, prefix: &str) {
        let spec = &low.2.spec;
        let is_permitted = |item: &PrefixItem| {
            item.action == PrefixAction::Permit && range(&item.cidr, item.ge, item.le) == prefix
        };
        if spec.export.iter().any(is_permitted) {
            self.own_communities(low);
        }
    }

    /// Names the communities of an object.
    fn own_communities(&mut self, low: Routing<'_>) {
        let spec = &low.2.spec;
        if spec.community.is_some() {
            self.low_level(low, "spec.community", Aspect::Communities);
        }
        if !spec.communities.is_empty() {
            self.low_level(low, "spec.communities", Aspect::Communities);
        }
    }
}
