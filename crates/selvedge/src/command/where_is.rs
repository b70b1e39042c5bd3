//! `selvedge where`: on which nodes something is, and which objects it comes from.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{ObjectRef, compile};
use explain::{
    element::{Element, elements},
    provenance::Trace,
    query::Query,
};
use serde_json::json;

use super::{explain::of_object, groups::groups};
use crate::{
    args::{Format, Where},
    names,
    output::{self, Column, Verdict},
};

pub(super) fn run(args: &Where) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let query = Query::parse(&args.query.join(" "))?.resolved(&world.snapshot, &compilation);
    let trace = Trace::new(&world.snapshot, &compilation);
    let mut found: BTreeMap<Element, (BTreeSet<ObjectRef>, Vec<String>)> = BTreeMap::new();
    for nodes in groups(&compilation, Some(&query)) {
        let Some(node) = nodes.first() else { continue };
        let Some(config) = compilation.nodes.get(node) else {
            continue;
        };
        let elements = elements(&config.content());
        let claims = |element: &Element| trace.claims(node, element);
        let of_query: Vec<_> = match &query {
            Query::Object(object) => of_object(object, &elements, claims),
            query => {
                let of_query = query.elements(&elements).into_iter();
                of_query.map(|one| (one.clone(), claims(&one))).collect()
            }
        };
        for (element, claims) in of_query {
            let (by, on) = found.entry(element).or_default();
            by.extend(claims.into_iter().map(|claim| claim.by));
            on.extend(nodes.iter().cloned());
        }
    }
    if found.is_empty() {
        output::note(&format!(
            "{query} is on no node; selvedge why-not shows the reason"
        ));
        return Ok(Verdict::Problems);
    }
    if args.output == Format::Table {
        let rows: Vec<Vec<String>> = found
            .iter()
            .map(|(element, (by, nodes))| {
                let by: Vec<String> = by.iter().map(ToString::to_string).collect();
                vec![
                    element.to_string(),
                    names::folded(nodes),
                    nodes.len().to_string(),
                    by.join(", "),
                ]
            })
            .collect();
        let head = [
            ("WHAT", Column::Wrapped),
            ("NODES", Column::Wrapped),
            ("COUNT", Column::Whole),
            ("FROM", Column::Wrapped),
        ];
        output::text(&output::table_of(&head, &rows));
    } else {
        let values = found.iter().map(|(element, (by, nodes))| {
            json!({"element": element, "text": element.to_string(), "nodes": nodes, "by": by})
        });
        output::stream(args.output, values)?;
    }
    Ok(Verdict::Fine)
}
