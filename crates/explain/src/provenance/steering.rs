//! Source-based routing: the source, the destination, and the other VRF that leads to the same addresses.

use std::collections::{BTreeMap, BTreeSet};

use api::{tcaas::PrefixItem, value::Prefix};
use compiler::{
    names,
    node::{Consumer, consumers},
    prefixes::{Overlap, overlaps},
    snapshot::ObjectRef,
};

use super::{Claim, ClaimBuilder, OnNode, intent::Aspect, routing::Routing};
use crate::element::ANYWHERE;

/// What an author says about a VRF: the VRF, the author, and what.
type Author<'a> = (&'a str, Option<&'a ObjectRef>);

/// All routing of a node, ready to be asked about its sources.
struct Sources<'a> {
    routing: Vec<Routing<'a>>,
    consumers: BTreeMap<Author<'a>, Consumer<'a>>,
    /// An overlap of what two VRFs lead to, for each VRF and family.
    overlaps: BTreeMap<(&'a str, bool), Overlap<(&'a str, bool)>>,
}

impl OnNode<'_> {
    /// The claims for a local VRF: of all objects whose traffic it routes.
    pub(super) fn local_vrf(&self, local: &str) -> Vec<Claim> {
        let config = self.config.shared.cluster_vrf.as_ref();
        let routes = config.into_iter().flat_map(|vrf| &vrf.policy_routes);
        let leading = routes.filter(|route| route.next_hop.vrf.as_deref() == Some(local));
        let sources = leading.filter_map(|route| route.traffic_match.src_prefix);
        let sources: BTreeSet<String> = sources.map(|source| source.to_string()).collect();
        let claims = sources.iter();
        let claims = claims.flat_map(|source| self.steering(local, source, ANYWHERE));
        // The local VRF is there for any source, so no single source is behind it.
        let from_anywhere = |mut claim: Claim| {
            let sources = &mut claim.sources;
            sources.retain(|source| !source.field.path.starts_with("spec.export["));
            claim
        };
        claims.map(from_anywhere).collect()
    }

    /// The claims for a rule.
    pub(super) fn steering(&self, local: &str, source: &str, destination: &str) -> Vec<Claim> {
        let fabric = || self.config.shared.fabric_vrfs.keys();
        let Some(vrf) = fabric().find(|vrf| names::local_vrf(vrf).as_str() == local) else {
            return Vec::new();
        };
        let Ok(source) = source.parse::<Prefix>() else {
            return Vec::new();
        };
        let written = self.written(vrf, source);
        if !written.is_empty() {
            return written;
        }
        let sources = Sources::new(fabric().flat_map(|vrf| self.routing(vrf)).collect());
        let authors = sources.consumers.iter();
        let of_vrf = authors.filter(|((name, _), _)| *name == vrf.as_str());
        let claims = |(author, consumer): (&Author<'_>, &Consumer<'_>)| {
            let claims = sources.claims(self, (*author, consumer), source, destination);
            claims.unwrap_or_default()
        };
        of_vrf.flat_map(claims).collect()
    }

    /// The claims of `sbrPrefixes` of hand-written objects.
    fn written(&self, vrf: &str, source: Prefix) -> Vec<Claim> {
        let mut claims = Vec::new();
        for low in self.routing(vrf) {
            let prefixes = low.2.spec.sbr_prefixes.iter().enumerate();
            for (place, _) in prefixes.filter(|(_, own)| **own == source) {
                for mut draft in self.in_vrf(low) {
                    draft.low_level(
                        low,
                        format!("spec.sbrPrefixes[{place}]"),
                        Aspect::Own(source),
                    );
                    claims.push(draft.build());
                }
            }
        }
        claims
    }
}

impl<'a> Sources<'a> {
    fn new(routing: Vec<Routing<'a>>) -> Self {
        let consumers = consumers(routing.iter().map(|(_, _, object)| *object));
        let imports = consumers.iter().flat_map(|((vrf, _), consumer)| {
            let imports = consumer.imports.iter();
            imports.map(move |prefix| (*prefix, (*vrf, prefix.is_ipv4())))
        });
        Self {
            overlaps: overlaps(imports),
            consumers,
            routing,
        }
    }

    /// What one author says for a rule: its source, what it reaches, and the overlap that makes the rule needed.
    fn claims(
        &self,
        on_node: &OnNode<'_>,
        ((vrf, author), consumer): (Author<'a>, &Consumer<'a>),
        source: Prefix,
        destination: &str,
    ) -> Option<Vec<Claim>> {
        if !consumer.sources.contains(&source) {
            return None;
        }
        let family = |prefix: &&Prefix| prefix.is_ipv4() == source.is_ipv4();
        let mut reached = consumer.imports.iter().filter(family);
        let goes = |prefix: &&Prefix| destination == ANYWHERE || prefix.to_string() == destination;
        let reached = *reached.find(goes)?;
        let overlap = self.overlaps.get(&(vrf, source.is_ipv4()))?;
        let lows = || self.of((vrf, author));
        let first = lows().next()?;
        let claim = |mut draft: ClaimBuilder<'_>| {
            for low in lows() {
                draft.line(low, ("export", &low.2.spec.export), source);
                if destination == ANYWHERE {
                    draft.anything(low, source.is_ipv4());
                } else {
                    draft.line(low, ("import", &low.2.spec.import), reached);
                }
            }
            for (vrf, prefix) in [
                (vrf, overlap.prefix),
                (overlap.other.0, overlap.other_prefix),
            ] {
                self.import_of(vrf, prefix, &mut draft);
            }
            if destination != ANYWHERE {
                self.another_way(vrf, source, &mut draft);
            }
            draft.build()
        };
        Some(on_node.in_vrf(first).into_iter().map(claim).collect())
    }

    /// The objects of an author.
    fn of(&self, (vrf, author): Author<'a>) -> impl Iterator<Item = Routing<'a>> {
        let all = self.routing.iter().copied();
        all.filter(move |(_, _, object)| {
            let by = object.is_generated().then_some(&object.source);
            object.spec.vrf.as_str() == vrf && by == author
        })
    }

    /// Names one line that leads to a prefix through a VRF.
    fn import_of(&self, vrf: &str, prefix: Prefix, draft: &mut ClaimBuilder<'_>) {
        let mut authors = self.consumers.iter();
        let found = authors
            .find(|((name, _), consumer)| *name == vrf && consumer.imports.contains(&prefix));
        for low in found.into_iter().flat_map(|(author, _)| self.of(*author)) {
            draft.line(low, ("import", &low.2.spec.import), prefix);
        }
    }

    /// The sources of source-based routing are distinguished by destination: names another VRF that the source reaches.
    fn another_way(&self, vrf: &str, source: Prefix, draft: &mut ClaimBuilder<'_>) {
        let mut authors = self.consumers.iter();
        let found = authors.find(|((name, _), consumer)| {
            let mut reached = consumer.imports.iter();
            *name != vrf
                && consumer.sources.contains(&source)
                && reached.any(|prefix| prefix.is_ipv4() == source.is_ipv4())
        });
        for low in found.into_iter().flat_map(|(author, _)| self.of(*author)) {
            draft.line(low, ("export", &low.2.spec.export), source);
        }
    }
}

impl ClaimBuilder<'_> {
    /// Names what is reached, where it does not matter what.
    fn anything(&mut self, low: Routing<'_>, ipv4: bool) {
        let mut import = low.2.spec.import.iter();
        if import.any(|item| item.cidr.is_ipv4() == ipv4) {
            self.low_level(low, "spec.import", Aspect::AnyReached(ipv4));
        }
    }

    /// Names the lines of a prefix, whatever lengths they match.
    fn line(&mut self, low: Routing<'_>, (list, items): (&str, &[PrefixItem]), prefix: Prefix) {
        let vrf = &low.2.spec.vrf;
        let places = items.iter().enumerate();
        for (place, _) in places.filter(|(_, item)| item.cidr == prefix) {
            let path = format!("spec.{list}[{place}].cidr");
            if list == "import" {
                self.low_level(low, path, Aspect::Reached(vrf, prefix));
            } else {
                self.low_level(low, path, Aspect::Own(prefix));
            }
        }
    }
}
