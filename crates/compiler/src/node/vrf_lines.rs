//! Lines of several hand-written objects of one VRF that stand at the same place and contradict each other.

use std::sync::Arc;

use api::tcaas::{PrefixItem, VrfRouteConfigurationSpec};

use crate::{
    lower::{LowLevel, scope::running},
    problem::{self, Problem},
    select::may_meet,
    snapshot::{Kind, kinds},
    view::View,
};

type Routing = LowLevel<VrfRouteConfigurationSpec>;

/// What is wrong with objects whose lines say otherwise than those of another with the same `seq`: no number says which comes first. The one
/// that runs keeps its lines, then the older.
pub(super) fn contradictions(view: &View<'_>, objects: &[&Arc<Routing>]) -> Vec<Problem> {
    let written = objects.iter().copied();
    let written = written.filter(|one| one.source.kind == Kind::VrfRouteConfiguration);
    let mut written: Vec<&Arc<Routing>> = written.collect();
    if written.len() < 2 {
        return Vec::new();
    }
    written.sort_by_cached_key(|one| {
        let before = running::<kinds::VrfRouteConfiguration>(view, one);
        let runs = before.is_some_and(|before| *before == one.spec);
        let order = (one.created.is_none(), one.created.clone(), one.name.clone());
        (!runs, order)
    });
    let mut problems = Vec::new();
    for (place, one) in written.iter().enumerate() {
        let before = written.iter().take(place);
        let mut rivals = before.filter(|other| {
            let selectors = (&one.spec.node_selector, &other.spec.node_selector);
            one.spec.seq == other.spec.seq && may_meet(selectors.0.as_ref(), selectors.1.as_ref())
        });
        problems.extend(rivals.find_map(|rival| contradiction(one, rival)));
    }
    problems
}

/// The first line of an object that contradicts one of another.
fn contradiction(one: &Routing, other: &Routing) -> Option<Problem> {
    let directions = [
        ("import", &one.spec.import, &other.spec.import),
        ("export", &one.spec.export, &other.spec.export),
    ];
    directions.into_iter().find_map(|(direction, own, others)| {
        let contradicts = |line: &PrefixItem, of_other: &PrefixItem| {
            let matches = |item: &PrefixItem| (item.cidr, item.ge, item.le);
            matches(line) == matches(of_other) && line.action != of_other.action
        };
        let mut own = own.iter().enumerate();
        own.find_map(|(place, line)| {
            let rival = others.iter().position(|rival| contradicts(line, rival))?;
            let kind = problem::Kind::SeqTwice {
                seq: u32::from(one.spec.seq.get()),
                other: format!("{} (spec.{direction}[{rival}])", other.source),
            };
            let field = format!("spec.{direction}[{place}]");
            Some(Problem::new(one.source.clone(), field, kind))
        })
    })
}
