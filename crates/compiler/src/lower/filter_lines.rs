//! Filters that people write: no two lines may say something about the same prefixes, or have the same place.
//!
//! In both cases the order in the list would decide between permit and deny, and a tool that sorts or appends changes what passes.
//! Lines of one network with different lengths (`ge`, `le`) are different lines: one denies the default route and permits what is
//! longer. The definition of the kind cannot check it: a rule that compares all pairs exceeds the API server's cost limit, and the
//! keys of a list may not be optional fields.

use std::collections::BTreeMap;

use api::{
    tcaas::PrefixItem,
    value::{Prefix, Seq},
};

use super::low_level::LowLevelObject;
use crate::{
    problem::{self, Problem},
    snapshot::ObjectRef,
};

/// What is wrong with the filters of an object.
pub(super) fn problems(subject: &ObjectRef, object: &LowLevelObject) -> Vec<Problem> {
    let filters = match object {
        LowLevelObject::Vrf(object) => [
            ("spec.import", &object.spec.import),
            ("spec.export", &object.spec.export),
        ],
        LowLevelObject::Bgp(object) => [
            ("spec.import", &object.spec.import),
            ("spec.export", &object.spec.export),
        ],
        LowLevelObject::Layer2(_)
        | LowLevelObject::MirrorTarget(_)
        | LowLevelObject::MirrorSelector(_) => return Vec::new(),
    };
    let problems = filters.into_iter().flat_map(|(field, lines)| {
        let of_filter = of_filter(field, lines).into_iter();
        of_filter.map(|(field, kind)| Problem::new(subject.clone(), field, kind))
    });
    problems.collect()
}

fn of_filter(field: &str, lines: &[PrefixItem]) -> Vec<(String, problem::Kind)> {
    let mut by_prefixes: BTreeMap<(Prefix, u8, u8), usize> = BTreeMap::new();
    let mut by_seq = BTreeMap::new();
    let mut found = Vec::new();
    let place = |index: usize| format!("{field}[{index}]");
    for (index, line) in lines.iter().enumerate() {
        let first = *by_prefixes.entry(prefixes(line)).or_insert(index);
        if first != index {
            let other = place(first);
            found.push((place(index), problem::Kind::LineTwice { other }));
        }
        let Some(seq) = line.seq.map(Seq::get) else {
            continue;
        };
        let first = *by_seq.entry(seq).or_insert(index);
        if first != index {
            let other = place(first);
            let kind = problem::Kind::SeqTwice { seq, other };
            found.push((format!("{}.seq", place(index)), kind));
        }
    }
    found
}

/// The network of a line, and the shortest and longest prefix lengths that it means.
fn prefixes(line: &PrefixItem) -> (Prefix, u8, u8) {
    let own = line.cidr.net().prefix_len();
    let longest = line.cidr.net().max_prefix_len();
    let (least, most) = match (line.ge, line.le) {
        (None, None) => (own, own),
        (Some(ge), None) => (ge, longest),
        (None, Some(le)) => (own, le),
        (Some(ge), Some(le)) => (ge, le),
    };
    (line.cidr, least, most)
}
