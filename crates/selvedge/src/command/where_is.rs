//! `selvedge where`: on which nodes something is, and which objects it comes from.

use std::collections::{BTreeMap, BTreeSet};

use ::explain::{element::Element, query::Query};
use compiler::{Compilation, ObjectRef, compile};
use serde_json::json;

use super::{
    elements::lines,
    explain::{self, Answers, answer::Part, asked, not_found},
    groups::{addresses, text},
    problems,
};
use crate::{
    args::{Format, Where},
    names,
    output::{self, Column, Verdict, counted},
};

pub(super) fn run(args: &Where) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let verdict = problems::beside(&world, &compilation);
    let question = args.query.join(" ");
    let query = explain::parse(&question)?;
    let mut answers = Answers::default();
    for nodes in explain::of_all_nodes(&question, &world, &compilation)? {
        let Some(node) = nodes.first() else { continue };
        let mut asked = asked(&question, node, &world, &compilation)?;
        if args.output == Format::Table {
            asked.keep_requested();
        }
        answers.add(nodes, &asked);
    }
    if answers.is_empty() {
        let text = not_found(None, &args.query, &world, &compilation);
        output::note(&output::wrapped(&text, 2));
        return Ok(Verdict::Problems);
    }
    let sections = answers.sections();
    if args.output == Format::Table {
        let mut whole = String::new();
        for named in NAMED {
            whole = table(&compilation, &query, &sections, named);
            if output::is_all() || whole.lines().count() < output::ROWS - 1 {
                break;
            }
        }
        let mut text = output::capped(&whole, output::ROWS - 2);
        if sections.iter().any(|(nodes, _)| is_shortened(nodes)) {
            text.push_str("--wide shows the nodes behind …\n");
        }
        output::text(&text);
        return Ok(verdict);
    }
    let mut found: BTreeMap<Element, (BTreeSet<&ObjectRef>, Vec<&String>)> = BTreeMap::new();
    for (nodes, parts) in &sections {
        for (part, node) in parts
            .iter()
            .flat_map(|part| nodes.iter().map(move |node| (part, node)))
        {
            for element in of_node(&compilation, &part.element, node) {
                let (by, on) = found.entry(element).or_default();
                by.extend(requesters(part));
                on.push(node);
            }
        }
    }
    let values = found.iter().map(|(element, (by, nodes))| {
        json!({"element": element, "text": element.to_string(), "nodes": nodes, "by": by})
    });
    output::stream(args.output, values)?;
    Ok(verdict)
}

fn requesters(part: &Part) -> BTreeSet<&ObjectRef> {
    part.claims.iter().map(|claim| &claim.by).collect()
}

/// An element as a node has it.
fn of_node(compilation: &Compilation, element: &Element, node: &str) -> Vec<Element> {
    let Element::HostAddress { device, address } = element else {
        return vec![element.clone()];
    };
    let own = addresses(compilation, node, device, address).into_iter();
    let own = own.map(|own| Element::HostAddress {
        device: device.clone(),
        address: own.to_string(),
    });
    own.collect()
}

/// How many elements of the same nodes and objects are named: the first that fits a screen is taken.
const NAMED: [usize; 5] = [usize::MAX, 12, 6, 4, 2];
/// The fewest columns that nodes take.
const NODES: usize = 20;
/// How many lines they take: they are the answer.
const LINES: usize = 4;

/// The names of nodes as a row has them.
fn named_nodes(nodes: &[String]) -> String {
    match output::width() {
        Some(width) => names::in_lines(nodes, (width / 3).max(NODES), LINES),
        None => names::folded(nodes),
    }
}

/// Whether a row does not name all of these nodes.
fn is_shortened(nodes: &[String]) -> bool {
    named_nodes(nodes) != names::folded(nodes)
}

/// What is on the same nodes because of the same objects is one row.
fn table(
    compilation: &Compilation,
    query: &Query,
    sections: &[(Vec<String>, Vec<Part>)],
    named: usize,
) -> String {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (nodes, parts) in sections {
        let mut by_requester: Vec<(BTreeSet<&ObjectRef>, Vec<&Part>)> = Vec::new();
        for part in parts {
            let by = requesters(part);
            match by_requester.iter_mut().find(|(known, _)| *known == by) {
                Some((_, known)) => known.push(part),
                None => by_requester.push((by, vec![part])),
            }
        }
        for (by, parts) in by_requester {
            let texts = parts.iter().map(|part| {
                let what = text(compilation, &part.element, nodes);
                (&part.element, with_role(query, part, what))
            });
            let mut what = lines(texts);
            if let Some(more) = what.len().checked_sub(named).filter(|more| *more > 1) {
                what.truncate(named);
                what.push(format!("and {}", counted(more, "more element")));
            }
            rows.push(vec![
                what.join("\n"),
                named_nodes(nodes),
                nodes.len().to_string(),
                explain::objects(&by),
            ]);
        }
    }
    let head = [
        ("WHAT", Column::Wrapped),
        ("NODES", Column::Wrapped),
        ("COUNT", Column::Whole),
        ("FROM", Column::Wrapped),
    ];
    output::table_of(&head, &rows)
}

/// The underlay with what the address that is asked about is to it.
fn with_role(query: &Query, part: &Part, what: String) -> String {
    let (Query::Prefix(net), Element::Underlay) = (query, &part.element) else {
        return what;
    };
    let address = net.addr().to_string();
    let roles = [
        ("vtep", "VTEP"),
        ("otherVtep", "VTEP"),
        ("routerId", "router ID"),
    ];
    let values = part.exact.iter().map(|(_, value)| value);
    let is = |field: &str| values.clone().any(|value| value[field] == *address);
    match roles.into_iter().find(|(field, _)| is(field)) {
        Some((_, role)) => format!("{role} of the underlay"),
        None => what,
    }
}
