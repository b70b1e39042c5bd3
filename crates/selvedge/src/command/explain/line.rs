//! A line of frr.conf, and the elements of the node that it was written for.

use std::collections::BTreeSet;

use api::tcaas::NodeNetworkConfigSpec;
use compiler::Compilation;
use explain::{
    element::{Element, Elements, elements},
    provenance::Trace,
    query::Query,
};
use frr::{FrrConfig, FrrVersion, Part, PlacedLine, config::Name, names};

use super::Asked;
use crate::{args::Ask, input::World, output::Verdict};

/// Answers a question that is a line of the node's frr.conf; `None` where the node has no such line.
pub(super) fn asked(
    args: &Ask,
    node: &str,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Option<Asked>> {
    let question = args.thing.join(" ");
    let config = super::known(node, compilation)?;
    let spec = config.spec(&compilation.revision.fingerprint);
    let Ok(conf) = frr::desired(&spec, &frr::hidden(&spec), FrrVersion::NEWEST) else {
        return Ok(None);
    };
    let filters = Filter::all(&spec);
    let lines = Line::find(&conf, &question, &filters);
    if lines.is_empty() {
        return Ok(None);
    }
    let elements = elements(&spec);
    let trace = Trace::new(&world.snapshot, compilation);
    let found: BTreeSet<Element> = lines
        .iter()
        .flat_map(|line| line.elements(&elements))
        .collect();
    let found = found.into_iter();
    let found = found.map(|one| (one.clone(), trace.claims(node, &one)));
    Ok(Some(Asked {
        thing: Query::Name(question.clone()),
        question: format!("{question:?} in frr.conf"),
        found: found.collect(),
        elements,
    }))
}

/// Whether a question begins as a line of frr.conf does.
pub(super) fn is_statement(args: &Ask, compilation: &Compilation) -> bool {
    let question = args.thing.join(" ");
    let first = question.split_whitespace().next();
    let printed = printed(args, compilation).unwrap_or_default();
    let mut lines = printed.lines();
    lines.any(|line| first.is_some() && line.split_whitespace().next() == first)
}

/// What to say of a line that no element is behind: of one that every frr.conf has, or of one that no node has; nothing of what is no line.
pub(super) fn without_element(args: &Ask, compilation: &Compilation) -> Option<(Verdict, String)> {
    let question = args.thing.join(" ");
    let wanted: Vec<&str> = question.split_whitespace().collect();
    let printed = printed(args, compilation)?;
    let mut lines = printed.lines();
    if lines.any(|line| line.split_whitespace().eq(wanted.iter().copied())) {
        let text = format!("{question:?} is in every frr.conf: it comes from no object");
        return Some((Verdict::Fine, text));
    }
    if wanted.len() < 3 || !is_statement(args, compilation) {
        return None;
    }
    let place = args.node.as_deref().unwrap_or("any node");
    let text = format!("{question:?} is no line of frr.conf on {place}");
    Some((Verdict::Problems, text))
}

/// The frr.conf of the node that is asked about, or of the first.
fn printed(args: &Ask, compilation: &Compilation) -> Option<String> {
    let asked = args.node.as_ref();
    let mut nodes = compilation.nodes.iter();
    let (_, config) = nodes.find(|(node, _)| asked.is_none_or(|asked| asked == *node))?;
    let spec = config.spec(&compilation.revision.fingerprint);
    let conf = frr::desired(&spec, &frr::hidden(&spec), FrrVersion::NEWEST).ok()?;
    Some(frr::print(&conf, FrrVersion::NEWEST, &spec.revision))
}

/// A line and what it is part of.
struct Line<'a> {
    words: Vec<&'a str>,
    part: Part,
    /// The filter that the line is part of, or leads to.
    filter: Option<&'a Filter>,
    /// The prefixes of the list that the line's entry of a route map matches, each with its bounds.
    matched: BTreeSet<String>,
}

impl<'a> Line<'a> {
    /// Every place where the line stands: one text can be part of several things.
    fn find(conf: &FrrConfig, wanted: &'a str, filters: &'a [Filter]) -> Vec<Self> {
        let words: Vec<&str> = wanted.split_whitespace().collect();
        let placed = frr::placed_lines(conf, FrrVersion::NEWEST).into_iter();
        let placed =
            placed.filter(|placed| placed.line.split_whitespace().eq(words.iter().copied()));
        let line = |placed: PlacedLine| {
            let is_of = |word: &str| {
                let mut filters = filters.iter();
                filters.find(|filter| names::is_part_of(word, &filter.map))
            };
            let own = match &placed.part {
                Part::PrefixList(list) => is_of(list.as_str()),
                Part::RouteMap { map, .. } => is_of(map.as_str()),
                Part::Node | Part::Vrf(_) => None,
            };
            Self {
                words: words.clone(),
                // A line of BGP names the route map that it leads to.
                filter: own.or_else(|| words.iter().find_map(|word| is_of(word))),
                matched: matched(conf, &placed.part),
                part: placed.part,
            }
        };
        placed.map(line).collect()
    }

    /// The elements that the line is there for: by what it names, and the VRF that it is about.
    fn elements(&self, all: &Elements) -> Vec<Element> {
        let named = self
            .words
            .iter()
            .filter_map(|word| Self::thing(word, &self.words));
        let named: Vec<Element> = named.flat_map(|thing| thing.elements(all)).collect();
        if let Some(filter) = self.filter {
            let of_filter = |from: &[Element]| -> Vec<Element> {
                from.iter().filter(|one| filter.is(one)).cloned().collect()
            };
            let exact = of_filter(&named);
            if !exact.is_empty() {
                return exact;
            }
            let mut whole = of_filter(&all.keys().cloned().collect::<Vec<_>>());
            if !self.matched.is_empty() {
                whole.retain(|one| self.is_matched(one));
            }
            if !whole.is_empty() {
                return whole;
            }
        }
        let Some(vrf) = self.vrf() else {
            return if named.is_empty() {
                vec![Element::Underlay]
            } else {
                named
            };
        };
        let of_vrf = Query::Vrf(vrf.to_owned()).elements(all);
        let both: Vec<Element> = named
            .into_iter()
            .filter(|one| of_vrf.contains(one))
            .collect();
        if both.is_empty() {
            let vrf = vrf.to_owned();
            return vec![Element::Vrf { vrf }];
        }
        both
    }

    /// Whether the block of a route map that the line stands in is for the routes of an element.
    fn is_matched(&self, element: &Element) -> bool {
        match element {
            Element::Export { prefix, .. }
            | Element::DeniedExport { prefix, .. }
            | Element::Import { prefix, .. }
            | Element::DeniedImport { prefix, .. } => self.matched.contains(prefix),
            _ => false,
        }
    }

    /// The meaning of a word of the line.
    fn thing(word: &str, words: &[&str]) -> Option<Query> {
        let after = |before: &str| words.windows(2).any(|pair| pair == [before, word]);
        match Query::parse(word).ok()? {
            Query::Number(number) if after("vni") => Some(Query::Vni(number)),
            thing @ (Query::Prefix(_) | Query::RouteTarget(_)) => Some(thing),
            _ => None,
        }
    }

    /// The VRF that the line is about.
    fn vrf(&self) -> Option<&str> {
        match (self.filter, &self.part) {
            (Some(filter), _) => Some(&filter.vrf),
            (None, Part::Vrf(vrf)) => Some(vrf.as_ref()),
            (None, Part::Node | Part::PrefixList(_) | Part::RouteMap { .. }) => None,
        }
    }
}

/// The prefixes that an entry of a route map matches, as elements write them.
fn matched(conf: &FrrConfig, part: &Part) -> BTreeSet<String> {
    let Part::RouteMap { map, entry } = part else {
        return BTreeSet::new();
    };
    let entry = conf.route_maps.get(map).and_then(|map| map.get(entry));
    let list = entry.and_then(|entry| conf.prefix_lists.get(entry.match_prefix_list.as_ref()?));
    let rules = list.into_iter().flat_map(|list| list.values());
    let ranges = rules.filter_map(|rule| rule.range);
    ranges.map(|range| range.to_string()).collect()
}

/// A filter of a node, under the name that its route map has in FRR.
struct Filter {
    map: Name,
    vrf: String,
    /// Where the routes come from; absent for what goes into the fabric.
    from: Option<String>,
}

impl Filter {
    /// The filters of a node whose rules are elements.
    fn all(spec: &NodeNetworkConfigSpec) -> Vec<Self> {
        let device = |name: &str| {
            let keyed = spec
                .fabric_vrfs
                .get(name)
                .or_else(|| spec.local_vrfs.get(name));
            let device = keyed.map(|vrf| vrf.devices.vrf.clone());
            device.or_else(|| name.parse().ok())
        };
        let mut filters = Vec::new();
        for vrf in spec.vrfs() {
            let own = &vrf.devices.vrf;
            filters.push(Self {
                map: names::evpn_export(own),
                vrf: own.to_string(),
                from: None,
            });
            for import in &vrf.vrf_imports {
                filters.extend(device(&import.from_vrf).map(|source| Self {
                    map: names::import_from(own, &source),
                    vrf: own.to_string(),
                    from: Some(import.from_vrf.clone()),
                }));
            }
        }
        filters
    }

    fn is(&self, element: &Element) -> bool {
        match (element, &self.from) {
            (Element::Export { vrf, .. } | Element::DeniedExport { vrf, .. }, None) => {
                *vrf == self.vrf
            }
            (
                Element::Import { vrf, from, .. } | Element::DeniedImport { vrf, from, .. },
                Some(wanted),
            ) => *vrf == self.vrf && from == wanted,
            _ => false,
        }
    }
}
