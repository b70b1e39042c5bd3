//! `selvedge why-not`

use ::explain::{
    element::Element,
    provenance::Trace,
    query::Query,
    why_not::{Obstacle, reach, why_not},
};
use compiler::compile;
use serde_json::{Value, json};

use super::explain;
use crate::{
    args::{Ask, Format},
    input::World,
    output::{self, Style, Verdict, styled},
};

/// How many others that speak of the thing are shown.
const OTHERS: usize = 5;

pub(super) fn run(args: &Ask) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let trace = Trace::new(&world.snapshot, &compilation);
    let node = &args.node;
    if let Some((from, to)) = way(args) {
        explain::known(node, &world, &compilation)?;
        let parse = |text: &str| {
            let query = Query::parse(text)?;
            anyhow::Ok(query.resolved(&world.snapshot, &compilation))
        };
        let (from, to) = (parse(&from)?, parse(&to)?);
        let heading = format!("{from} does not reach {to} from {node}");
        let question = format!("from {from} to {to}");
        return match reach(&trace, node, &from, &to) {
            Ok(ways) => answer(args, &world, &Answer::there(question, ways)),
            Err(obstacles) => answer(args, &world, &Answer::not(question, heading, obstacles)),
        };
    }
    let asked = explain::asked(args, &world, &compilation)?;
    let found: Vec<Element> = asked
        .found
        .iter()
        .map(|(element, _)| element.clone())
        .collect();
    let obstacles = why_not(&trace, node, &asked.thing, &found, &asked.elements);
    let question = asked.thing.to_string();
    if obstacles.is_empty() {
        let found = found.iter().map(ToString::to_string).collect();
        return answer(args, &world, &Answer::there(question, found));
    }
    let is_partly = !found.is_empty() && matches!(asked.thing, Query::Object(_));
    let not = if is_partly { "not wholly" } else { "not" };
    let heading = format!("{question} is {not} on {node}");
    answer(args, &world, &Answer::not(question, heading, obstacles))
}

/// `from A to B`, where that is asked.
fn way(args: &Ask) -> Option<(String, String)> {
    let words = args.thing.join(" ");
    let (from, to) = words.strip_prefix("from ")?.split_once(" to ")?;
    Some((from.to_owned(), to.to_owned()))
}

struct Answer {
    question: String,
    heading: String,
    /// What is there.
    found: Vec<String>,
    obstacles: Vec<Obstacle>,
}

impl Answer {
    fn there(question: String, found: Vec<String>) -> Self {
        Self {
            heading: "nothing stands in the way".to_owned(),
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
}

fn answer(args: &Ask, world: &World, answer: &Answer) -> anyhow::Result<Verdict> {
    let obstacles = &answer.obstacles;
    if args.output != Format::Table {
        let value = json!({
            "node": args.node,
            "question": answer.question,
            "found": answer.found,
            "obstacles": obstacles.iter().map(|one| exact(world, one)).collect::<Vec<_>>(),
        });
        output::documents(args.output, &[value])?;
    } else if let Some((first, others)) = obstacles.split_first() {
        output::text(&story(world, &answer.heading, first, others));
    } else {
        let found = answer.found.iter().map(|one| format!("  {one}\n"));
        let found: String = found.collect();
        output::text(&format!("{} on {}\n{found}", answer.heading, args.node));
    }
    Ok(if obstacles.is_empty() {
        Verdict::Fine
    } else {
        Verdict::Problems
    })
}

fn story(world: &World, heading: &str, first: &Obstacle, others: &[Obstacle]) -> String {
    let mut text = vec![format!("{}\n\n", styled(Style::Bold, heading))];
    text.push(format!("{}{}\n", place(world, first), first));
    if let Some(remedy) = first.remedy() {
        text.push(format!("  hint: {remedy}\n"));
    }
    if !others.is_empty() {
        text.push("\nothers that could bring it here:\n".to_owned());
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

/// Where the object is written that stands in the way.
fn place(world: &World, obstacle: &Obstacle) -> String {
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
        .map(|origin| format!("{}: ", origin.place()))
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
