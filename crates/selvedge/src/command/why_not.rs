//! `selvedge why-not`

use ::explain::{
    element::Element,
    provenance::Trace,
    query::Query,
    why_not::{Obstacle, reach, why_not},
};
use compiler::compile;
use serde_json::{Value, json};

use super::{elements, explain, groups::named};
use crate::{
    args::{Ask, Format},
    input::World,
    output::{self, Style, Verdict, styled},
};

/// How many further obstacles are shown.
const OTHERS: usize = 5;
/// How many different answers are shown for nodes of which none is named.
const ANSWERS: usize = 3;

pub(super) fn run(args: &Ask) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    explain::unread(&world);
    let trace = Trace::new(&world.snapshot, &compilation);
    let mut answers: Vec<(Vec<String>, Answer)> = Vec::new();
    for nodes in explain::nodes(args, &world, &compilation)? {
        let Some(node) = nodes.first() else { continue };
        let found = answer(args, node, &world, &trace)?;
        let same = answers.iter_mut().find(|(_, known)| known.is_like(&found));
        match same {
            Some((known, _)) => known.extend(nodes),
            None => answers.push((nodes, found)),
        }
    }
    // What is missing comes first.
    answers.sort_by_key(|(_, answer)| answer.obstacles.is_empty());
    let is_missing = answers
        .iter()
        .any(|(_, answer)| !answer.obstacles.is_empty());
    if args.output == Format::Table {
        let most = if output::is_all() {
            usize::MAX
        } else {
            ANSWERS
        };
        for (place, (nodes, answer)) in answers.iter().take(most).enumerate() {
            let between = if place == 0 { "" } else { "\n" };
            let text = if let Some((first, others)) = answer.obstacles.split_first() {
                story(&world, answer, nodes, first, others)
            } else {
                let found = answer.found.iter().map(|one| format!("  {one}\n"));
                let found: String = found.collect();
                format!("{} on {}\n{found}", answer.heading, named(nodes))
            };
            output::text(&format!("{between}{}", output::wrapped(&text, 4)));
        }
        let rest = answers.iter().skip(most);
        let rest: Vec<String> = rest.flat_map(|(nodes, _)| nodes.iter().cloned()).collect();
        if !rest.is_empty() {
            let text = format!(
                "\nother answers on {}; use --node NAME or --all\n",
                named(&rest)
            );
            output::text(&output::wrapped(&text, 2));
        }
    } else {
        let values = answers.iter().map(|(nodes, answer)| {
            let obstacles = answer.obstacles.iter();
            let mut value = json!({
                "question": answer.question,
                "nodes": nodes,
                "found": answer.found,
                "obstacles": obstacles.map(|one| exact(&world, one)).collect::<Vec<_>>(),
            });
            if let (Some(fields), [node]) = (value.as_object_mut(), nodes.as_slice()) {
                fields.insert("node".to_owned(), node.as_str().into());
            }
            value
        });
        output::stream(args.output, values)?;
    }
    Ok(if is_missing {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}

/// The answer for one node.
fn answer(args: &Ask, node: &str, world: &World, trace: &Trace<'_>) -> anyhow::Result<Answer> {
    let compilation = trace.compilation;
    if let Some((from, to)) = way(args) {
        let parse = |text: &str| {
            let query = Query::parse(text)?;
            anyhow::Ok(query.resolved(&world.snapshot, compilation))
        };
        let (from, to) = (parse(&from)?, parse(&to)?);
        let heading = format!("{from} does not reach {to} from");
        let question = format!("from {from} to {to}");
        return Ok(match reach(trace, node, &from, &to) {
            Ok(ways) => Answer::there(question, ways),
            Err(obstacles) => Answer::not(question, heading, obstacles),
        });
    }
    let asked = explain::asked(args, node, world, compilation)?;
    let found: Vec<Element> = asked
        .found
        .iter()
        .map(|(element, _)| element.clone())
        .collect();
    let obstacles = why_not(trace, node, &asked.thing, &found, &asked.elements);
    let question = asked.thing.to_string();
    if obstacles.is_empty() {
        return Ok(Answer::there(question, elements::lines(found.iter())));
    }
    let is_partly = !found.is_empty() && matches!(asked.thing, Query::Object(_));
    let not = if is_partly { "not completely" } else { "not" };
    let heading = format!("{question} is {not} on");
    Ok(Answer::not(question, heading, obstacles))
}

/// `from A to B`, where that is asked.
fn way(args: &Ask) -> Option<(String, String)> {
    let words = args.thing.join(" ");
    let (from, to) = words.strip_prefix("from ")?.split_once(" to ")?;
    Some((from.to_owned(), to.to_owned()))
}

struct Answer {
    question: String,
    /// The answer without the nodes that it is for.
    heading: String,
    /// What is there.
    found: Vec<String>,
    obstacles: Vec<Obstacle>,
}

impl Answer {
    fn there(question: String, found: Vec<String>) -> Self {
        Self {
            heading: "configured".to_owned(),
            question,
            found,
            obstacles: Vec::new(),
        }
    }

    fn not(question: String, heading: String, obstacles: Vec<Obstacle>) -> Self {
        Self {
            question,
            heading,
            found: Vec::new(),
            obstacles,
        }
    }

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
            && self.found == other.found
            && self.obstacles.len() == other.obstacles.len()
            && obstacles.into_iter().all(|(one, other)| same(one, other))
    }
}

fn story(
    world: &World,
    answer: &Answer,
    nodes: &[String],
    first: &Obstacle,
    others: &[Obstacle],
) -> String {
    let heading = format!("{} {}", answer.heading, named(nodes));
    let mut text = vec![format!("{}\n\n", styled(Style::Bold, &heading))];
    text.push(format!("{}{}\n", place(world, first), first));
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
fn place(world: &World, obstacle: &Obstacle) -> String {
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
        | Obstacle::ClaimOpen { object, .. }
        | Obstacle::Apart { object, .. }
        | Obstacle::Elsewhere { object } => Some(object),
        Obstacle::NotDefined { .. } => None,
    };
    let origin = object.and_then(|object| world.origins.get(object));
    origin
        .map(|origin| format!("{}: ", origin.at(field)))
        .unwrap_or_default()
}

fn exact(world: &World, obstacle: &Obstacle) -> Value {
    let mut value = serde_json::to_value(obstacle).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("message".to_owned(), obstacle.to_string().into());
        if let Some(remedy) = obstacle.remedy() {
            fields.insert("remedy".to_owned(), remedy.into());
        }
        let place = place(world, obstacle);
        if !place.is_empty() {
            fields.insert("place".to_owned(), place.trim_end_matches(": ").into());
        }
    }
    value
}
