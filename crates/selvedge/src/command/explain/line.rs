//! A line of frr.conf, and the elements of the node that it was written for.

use compiler::Compilation;
use explain::{
    element::{Element, Elements, elements},
    provenance::Trace,
    query::Query,
};
use frr::{FrrVersion, Secrets};

use super::Asked;
use crate::{args::Ask, input::World};

/// Answers a question that is a line of the node's frr.conf; nothing, where it is none.
pub(super) fn asked(
    args: &Ask,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Option<Asked>> {
    let question = args.thing.join(" ");
    if Query::parse(&question).is_ok() {
        return Ok(None);
    }
    let config = super::known(&args.node, world, compilation)?;
    let spec = config.spec(&compilation.revision.fingerprint);
    let Ok(conf) = frr::desired(&spec, &Secrets::new(), FrrVersion::NEWEST) else {
        return Ok(None);
    };
    let conf = frr::print(&conf, FrrVersion::NEWEST, &spec.revision);
    let Some(line) = Line::find(&conf, &question) else {
        return Ok(None);
    };
    let elements = elements(&spec);
    let trace = Trace::new(&world.snapshot, compilation);
    let found = line.elements(&elements).into_iter();
    let found = found.map(|one| (one.clone(), trace.claims(&args.node, &one)));
    Ok(Some(Asked {
        thing: Query::Name(question.clone()),
        question: format!("{question:?} in frr.conf"),
        found: found.collect(),
        elements,
    }))
}

/// A line and the block that it stands in.
struct Line<'a> {
    words: Vec<&'a str>,
    block: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn find(conf: &'a str, wanted: &str) -> Option<Self> {
        let wanted: Vec<&str> = wanted.split_whitespace().collect();
        let mut block = Vec::new();
        for line in conf.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if !line.starts_with([' ', '!']) && !line.starts_with("exit") {
                block.clone_from(&words);
            }
            if words == wanted {
                return Some(Self { words, block });
            }
        }
        None
    }

    /// The elements that the line is there for: by what it names, and the VRF that it is about.
    fn elements(&self, all: &Elements) -> Vec<Element> {
        let named = self
            .words
            .iter()
            .filter_map(|word| Self::thing(word, &self.words));
        let named: Vec<Element> = named.flat_map(|thing| thing.elements(all)).collect();
        let is_of_filter =
            |element: &Element| self.filter().is_some_and(|filter| filter.is(element));
        if self.filter().is_some() {
            let of_filter = |from: &[Element]| -> Vec<Element> {
                from.iter()
                    .filter(|one| is_of_filter(one))
                    .cloned()
                    .collect()
            };
            let exact = of_filter(&named);
            if !exact.is_empty() {
                return exact;
            }
            let whole = of_filter(&all.keys().cloned().collect::<Vec<_>>());
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

    /// What a word of the line speaks of.
    fn thing(word: &str, words: &[&str]) -> Option<Query> {
        let after = |before: &str| words.windows(2).any(|pair| pair == [before, word]);
        match Query::parse(word).ok()? {
            Query::Number(number) if after("vni") => Some(Query::Vni(number)),
            thing @ (Query::Prefix(_) | Query::RouteTarget(_)) => Some(thing),
            _ => None,
        }
    }

    /// The VRF of the block, or the one that the line names.
    fn vrf(&self) -> Option<&str> {
        let of = |words: &[&'a str]| {
            let pair = words.windows(2).find(|pair| pair.first() == Some(&"vrf"));
            pair.and_then(|pair| pair.last().copied())
        };
        let filter = self.filter().map(|filter| filter.vrf);
        filter
            .or_else(|| of(&self.block))
            .or_else(|| of(&self.words))
    }

    /// The filter that the line is part of, or leads to.
    fn filter(&self) -> Option<Filter<'a>> {
        let mut words = self.words.iter().chain(&self.block);
        words.find_map(|word| Filter::named(word))
    }
}

/// A list of rules, known by its name: `<vrf>:evpn` or `<vrf>:import:<from>`.
struct Filter<'a> {
    vrf: &'a str,
    /// Where the routes come from; absent for what goes into the fabric.
    from: Option<&'a str>,
}

impl<'a> Filter<'a> {
    fn named(word: &'a str) -> Option<Self> {
        let mut parts = word.split(':');
        let (vrf, what) = (parts.next()?, parts.next()?);
        match what {
            "evpn" => Some(Self { vrf, from: None }),
            "import" => Some(Self {
                vrf,
                from: Some(parts.next()?),
            }),
            _ => None,
        }
    }

    fn is(&self, element: &Element) -> bool {
        match (element, self.from) {
            (Element::Export { vrf, .. }, None) => vrf == self.vrf,
            (Element::Import { vrf, from, .. }, Some(wanted)) => vrf == self.vrf && from == wanted,
            _ => false,
        }
    }
}
