//! `selvedge why-not`

use ::explain::{
    element::Element,
    provenance::Trace,
    query::Query,
    why_not::{Obstacle, reach, why_not},
};
use api::meta::Labels;
use compiler::{Compilation, compile, snapshot::Key};
use serde_json::{Value, json};

use super::{
    elements,
    explain::{
        self, Asked,
        answer::{self, Answer, Part},
    },
    groups::{named, text},
    problems,
};
use crate::{
    args::{Ask, Format},
    input::{At, World},
    names,
    output::{self, Style, Verdict, styled},
};

/// How many further obstacles are shown.
const OTHERS: usize = 5;
/// How many different answers are shown for nodes of which none is named.
const ANSWERS: usize = 3;

pub(super) fn run(args: &Ask) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    problems::lines(&world, &[]);
    let trace = Trace::new(&world.snapshot, &compilation);
    let mut missing: Vec<(Vec<String>, Missing)> = Vec::new();
    let mut there = There::default();
    for nodes in explain::nodes(args, &world, &compilation)? {
        let Some(node) = nodes.first() else { continue };
        match answer(args, node, &world, &trace)? {
            Reply::Ways(ways) => there.add_ways(nodes, ways),
            // Of a node there are no elements to name.
            Reply::There(asked) if asked.found.is_empty() => there.add_ways(nodes, Vec::new()),
            Reply::There(asked) => answer::add(&mut there.answers, nodes, &asked),
            Reply::Missing(found) => {
                let same = missing.iter_mut().find(|(_, known)| known.is_like(&found));
                match same {
                    Some((known, _)) => known.extend(nodes),
                    None => missing.push((nodes, found)),
                }
            }
        }
    }
    for (nodes, found) in &mut missing {
        found.generalize(&world, nodes);
    }
    let question = question(args, &world, &trace)?;
    if args.output == Format::Table {
        let text = output::wrapped(&story(&world, &compilation, &missing, &there), 4);
        output::text(&output::capped(&text, output::ROWS - 1));
    } else {
        let missing = missing.iter();
        let missing = missing.map(|(nodes, missing)| (nodes, Vec::new(), &missing.obstacles[..]));
        let there = there.replies(&compilation);
        let there = there
            .iter()
            .map(|(nodes, found)| (nodes, found.clone(), [].as_slice()));
        let values = missing.chain(there).map(|(nodes, found, obstacles)| {
            let obstacles = obstacles.iter();
            let mut value = json!({
                "question": question,
                "nodes": nodes,
                "found": found,
                "obstacles": obstacles.map(|one| exact(&world, one)).collect::<Vec<_>>(),
            });
            if let (Some(fields), [node]) = (value.as_object_mut(), nodes.as_slice()) {
                fields.insert("node".to_owned(), node.as_str().into());
            }
            value
        });
        output::stream(args.output, values)?;
    }
    Ok(if missing.is_empty() {
        Verdict::Fine
    } else {
        Verdict::Problems
    })
}

/// The answer for one node.
enum Reply {
    /// One reaches the other, through these VRFs.
    Ways(Vec<String>),
    /// It is configured.
    There(Asked),
    /// It is not, or not completely.
    Missing(Missing),
}

fn answer(args: &Ask, node: &str, world: &World, trace: &Trace<'_>) -> anyhow::Result<Reply> {
    if let Some((from, to)) = ends(args, world, trace)? {
        return Ok(match reach(trace, node, &from, &to) {
            Ok(ways) => Reply::Ways(ways),
            Err(obstacles) => Reply::Missing(Missing {
                heading: format!("{from} does not reach {to} from"),
                obstacles,
            }),
        });
    }
    let asked = explain::asked(&args.thing.join(" "), node, world, trace.compilation)?;
    let found = asked.found.iter();
    let found: Vec<Element> = found.map(|(element, _)| element.clone()).collect();
    let obstacles = why_not(trace, node, &asked.thing, &found, &asked.elements);
    if obstacles.is_empty() {
        return Ok(Reply::There(asked));
    }
    let is_partly = !found.is_empty() && matches!(asked.thing, Query::Object(_));
    let not = if is_partly { "not completely" } else { "not" };
    Ok(Reply::Missing(Missing {
        heading: format!("{} is {not} on", asked.question),
        obstacles,
    }))
}

/// The question in words.
fn question(args: &Ask, world: &World, trace: &Trace<'_>) -> anyhow::Result<String> {
    if let Some((from, to)) = ends(args, world, trace)? {
        return Ok(format!("from {from} to {to}"));
    }
    let query = explain::parse(&args.thing.join(" "))?;
    Ok(query
        .resolved(&world.snapshot, trace.compilation)
        .to_string())
}

/// `from A to B`, where that is asked.
fn ends(args: &Ask, world: &World, trace: &Trace<'_>) -> anyhow::Result<Option<(Query, Query)>> {
    let words = args.thing.join(" ");
    let ends = words.strip_prefix("from ");
    let Some((from, to)) = ends.and_then(|ends| ends.split_once(" to ")) else {
        return Ok(None);
    };
    let parse = |text: &str| {
        let query = explain::parse(text)?;
        anyhow::Ok(query.resolved(&world.snapshot, trace.compilation))
    };
    Ok(Some((parse(from)?, parse(to)?)))
}

/// What is configured.
#[derive(Default)]
struct There {
    answers: Vec<Answer>,
    /// The VRFs through which one reaches the other.
    ways: Vec<(Vec<String>, Vec<String>)>,
}

impl There {
    fn add_ways(&mut self, nodes: Vec<String>, ways: Vec<String>) {
        match self.ways.iter_mut().find(|(_, known)| *known == ways) {
            Some((known, _)) => known.extend(nodes),
            None => self.ways.push((nodes, ways)),
        }
    }

    /// Nodes with all that is configured on them.
    fn replies(&self, compilation: &Compilation) -> Vec<(Vec<String>, Vec<String>)> {
        let answers = self.answers.iter().map(|Answer { nodes, parts }| {
            let parts: Vec<&Part> = parts.iter().collect();
            (nodes.clone(), in_words(compilation, nodes, &parts))
        });
        answers.chain(self.ways.iter().cloned()).collect()
    }

    /// The same, for people: what several groups of nodes have in common once.
    fn sections(&self, compilation: &Compilation) -> Vec<(Vec<String>, Vec<String>)> {
        let sections = answer::sections(&self.answers).into_iter();
        let sections = sections.map(|(nodes, parts)| {
            let parts: Vec<&Part> = parts.iter().collect();
            let words = in_words(compilation, &nodes, &parts);
            (nodes, words)
        });
        sections.chain(self.ways.iter().cloned()).collect()
    }
}

fn in_words(compilation: &Compilation, nodes: &[String], parts: &[&Part]) -> Vec<String> {
    let texts = parts.iter().flat_map(|part| {
        if let [_] = nodes {
            let exact = part.exact.iter();
            return exact
                .map(|(element, _)| (element, element.to_string()))
                .collect::<Vec<_>>();
        }
        vec![(&part.element, text(compilation, &part.element, nodes))]
    });
    elements::lines(texts)
}

/// Why something is missing.
struct Missing {
    /// The answer without the nodes that it is for.
    heading: String,
    obstacles: Vec<Obstacle>,
}

impl Missing {
    /// Whether another node has the same answer. The labels of nodes that a selector does not match differ, and mean the same.
    fn is_like(&self, other: &Self) -> bool {
        fn same(one: &Obstacle, other: &Obstacle) -> bool {
            match (one, other) {
                (
                    Obstacle::NotSelected {
                        object, selector, ..
                    },
                    Obstacle::NotSelected {
                        object: other_object,
                        selector: other_selector,
                        ..
                    },
                ) => object == other_object && selector == other_selector,
                (one, other) => one == other,
            }
        }
        let obstacles = self.obstacles.iter().zip(&other.obstacles);
        self.heading == other.heading
            && self.obstacles.len() == other.obstacles.len()
            && obstacles.into_iter().all(|(one, other)| same(one, other))
    }

    /// Puts in the labels of all nodes that the answer is for: those that they have in common, and all values of those that the
    /// selector names.
    fn generalize(&mut self, world: &World, nodes: &[String]) {
        if nodes.len() < 2 {
            return;
        }
        let nodes = nodes.iter();
        let nodes = nodes.filter_map(|node| world.snapshot.nodes.get(&Key::named(node)));
        let of_nodes: Vec<&Labels> = nodes.map(|node| &node.meta.labels).collect();
        for obstacle in &mut self.obstacles {
            let Obstacle::NotSelected {
                selector, labels, ..
            } = obstacle
            else {
                continue;
            };
            let values = |name: &String| -> Vec<String> {
                let values = of_nodes.iter();
                let values = values.filter_map(|labels| labels.get(name).cloned());
                values.collect()
            };
            labels.retain(|name, value| {
                let all = values(name);
                let is_common = all.len() == of_nodes.len() && all.iter().all(|one| one == value);
                if !is_common && selector.contains(name.as_str()) {
                    *value = names::brief(&all, VALUES).replace(", ", " or ");
                }
                is_common || selector.contains(name.as_str())
            });
        }
    }
}

/// How many columns the values of one label take.
const VALUES: usize = 30;
/// How many lines of what is configured are shown.
const LINES: usize = 12;

/// What is missing comes first.
fn story(
    world: &World,
    compilation: &Compilation,
    missing: &[(Vec<String>, Missing)],
    there: &There,
) -> String {
    let is_all = output::is_all();
    let most = if is_all { usize::MAX } else { ANSWERS };
    let lines = if is_all { usize::MAX } else { LINES };
    let mut text: Vec<String> = Vec::new();
    for (nodes, missing) in missing.iter().take(most) {
        text.push(of_missing(world, missing, nodes));
    }
    let rest = missing.iter().skip(most);
    let rest: Vec<String> = rest.flat_map(|(nodes, _)| nodes.iter().cloned()).collect();
    if !rest.is_empty() {
        let nodes = named(&rest);
        text.push(format!(
            "other answers on {nodes}; use --node NAME or --all\n"
        ));
    }
    let mut shown = 0;
    for (nodes, found) in there.sections(compilation) {
        if shown >= lines {
            text.push(format!("more on {}; --all shows it\n", named(&nodes)));
            continue;
        }
        let mut section = format!("configured on {}\n", named(&nodes));
        let room = lines - shown;
        for line in found.iter().take(room) {
            section = format!("{section}  {line}\n");
        }
        if let Some(more) = found.len().checked_sub(room).filter(|more| *more > 0) {
            section = format!("{section}  and {more} more\n");
        }
        shown += found.len();
        text.push(section);
    }
    text.join("\n")
}

fn of_missing(world: &World, missing: &Missing, nodes: &[String]) -> String {
    let heading = format!("{} {}", missing.heading, named(nodes));
    let mut text = vec![format!("{}\n\n", styled(Style::Bold, &heading))];
    let Some((first, others)) = missing.obstacles.split_first() else {
        return text.concat();
    };
    let place = place(world, first).map(|at| format!("{at}: "));
    text.push(format!("{}{first}\n", place.unwrap_or_default()));
    if let Some(remedy) = first.remedy() {
        text.push(format!("  hint: {remedy}\n"));
    }
    if !others.is_empty() {
        text.push("\nother objects that could configure it here:\n".to_owned());
        for other in others.iter().take(OTHERS) {
            let line = other.to_string();
            let line = line.lines().next().unwrap_or_default();
            text.push(format!("  {line}\n"));
        }
    }
    if others.len() > OTHERS {
        text.push(format!("  and {} more\n", others.len() - OTHERS));
    }
    text.concat()
}

/// Where the object is written that the obstacle is about.
fn place(world: &World, obstacle: &Obstacle) -> Option<At> {
    let field = match obstacle {
        Obstacle::Problem { problem, .. } => problem.field.as_str(),
        _ => "",
    };
    let object = match obstacle {
        Obstacle::Problem { problem, .. } => Some(&problem.subject),
        Obstacle::Unused { object, .. }
        | Obstacle::Unmanaged { object, .. }
        | Obstacle::NoEffect { object, .. }
        | Obstacle::NotSelected { object, .. }
        | Obstacle::NoOverlay { object, .. }
        | Obstacle::DestinationNotSelected { object, .. }
        | Obstacle::LongerThanImported { object, .. }
        | Obstacle::Idle { object, .. }
        | Obstacle::NoRoute { object, .. }
        | Obstacle::Denied { object, .. }
        | Obstacle::ClaimOpen { object, .. }
        | Obstacle::Apart { object, .. }
        | Obstacle::Elsewhere { object } => Some(object),
        Obstacle::NotDefined { .. } => None,
    };
    let origin = world.origins.get(object?)?;
    Some(origin.at(field))
}

fn exact(world: &World, obstacle: &Obstacle) -> Value {
    let mut value = serde_json::to_value(obstacle).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("message".to_owned(), obstacle.to_string().into());
        if let Some(remedy) = obstacle.remedy() {
            fields.insert("remedy".to_owned(), remedy.into());
        }
        if let Some(at) = place(world, obstacle) {
            fields.insert("place".to_owned(), at.to_string().into());
            fields.extend(at.fields());
        }
    }
    value
}
