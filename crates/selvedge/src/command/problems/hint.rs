//! What the author is likely to mean: a field, a value or an object of a similar name.

use std::net::IpAddr;

use compiler::{Kind, Problem, problem, snapshot::REQUIRED};

use super::cause::NO_NODE;
use crate::{
    input::World,
    rules::{self, DUPLICATE_OF},
    suggest::nearest,
};

/// What to do, where a similar name is known.
pub(super) fn of(world: &World, problem: &Problem) -> Option<String> {
    match &problem.kind {
        problem::Kind::UnknownField => of_field(problem),
        problem::Kind::MissingReference { target } => {
            let same_kind = |known: &compiler::ObjectRef| known.kind == target.kind;
            let known = world.origins.keys().filter(|known| same_kind(known));
            let names: Vec<&str> = known.map(|known| &*known.key.name).collect();
            if let Some(near) = nearest(&target.key.name, names.iter().copied()) {
                return Some(format!("did you mean {near}?"));
            }
            let misplaced = world.misplaced.iter().find(|one| one.may_be(target))?;
            Some(format!(
                "correct the apiVersion of {target} in {}",
                misplaced.at
            ))
        }
        problem::Kind::NoEffect { what } if what.starts_with(NO_NODE) => {
            of_selector(world, problem)
        }
        problem::Kind::NoUnderlay { .. } => without(world, Kind::Underlay),
        problem::Kind::NoDestination { left_out: None } => without(world, Kind::Destination),
        problem::Kind::Unreadable { message } | problem::Kind::RuleBroken { message } => {
            let is_item = message.starts_with("must be a list, not text");
            let item = "write it as an item of a list: begin it with a dash";
            if message.starts_with(DUPLICATE_OF) {
                return Some("keep one of the two".to_owned());
            }
            if message == REQUIRED {
                let (parent, name) = problem.field.rsplit_once('.').unwrap_or_default();
                return Some(match parent {
                    "" => format!("write the fields of the object below {}", problem.field),
                    parent => format!("add {name} to {parent}"),
                });
            }
            of_choice(message)
                .or_else(|| of_quotes(message))
                .or_else(|| is_item.then(|| item.to_owned()))
        }
        _ => None,
    }
}

/// A label of nodes that is similar to one that a selector wants and no node has.
fn of_selector(world: &World, problem: &Problem) -> Option<String> {
    let document = world.snapshot.document(&problem.subject)?;
    let path = format!("/{}/matchLabels", problem.field.replace('.', "/"));
    let known = world.node_labels();
    let wanted = document.pointer(&path)?.as_object()?;
    wanted.iter().find_map(|(key, value)| {
        let Some(values) = known.get(key) else {
            let near = nearest(key, known.keys().map(String::as_str))?;
            return Some(format!("did you mean {near}?"));
        };
        let value = value.as_str().filter(|value| !values.contains(*value))?;
        let near = nearest(value, values.iter().map(String::as_str))?;
        Some(format!("did you mean {key}: {near}?"))
    })
}

/// What to do where the input has no object of a kind.
fn without(world: &World, kind: Kind) -> Option<String> {
    (!world.has(kind))
        .then(|| format!("the input has no {kind}: create one, or add its file with -f"))
}

/// Fields of an object's metadata that are often written beside it.
const METADATA: [&str; 4] = ["labels", "annotations", "name", "namespace"];

fn of_field(problem: &Problem) -> Option<String> {
    let (parent, name) = match problem.field.rsplit_once('.') {
        Some((parent, name)) => (parent, name),
        None => ("", problem.field.as_str()),
    };
    let kind = problem.subject.kind;
    let fields = rules::fields(kind, parent);
    match similar(kind, parent, name) {
        Some(Meant::Instead(near)) => return Some(format!("did you mean {near}?")),
        Some(Meant::Below(near)) if name != "labels" => {
            return Some(format!("{name} belongs below {near}: indent it more"));
        }
        Some(Meant::Below(_)) | None => {}
    }
    // A field of the spec that stands a level too high or too low.
    if METADATA.contains(&name) && parent != "metadata" {
        return Some(format!("{name} belongs below metadata"));
    }
    let elsewhere = ["", "spec"].into_iter();
    let mut elsewhere = elsewhere.filter(|place| *place != parent);
    let elsewhere = elsewhere.find(|place| {
        let fields = rules::fields(problem.subject.kind, place);
        fields.contains(&name)
    });
    match elsewhere {
        Some("") => Some(format!(
            "{name} belongs to the object itself: indent it less"
        )),
        Some(place) => Some(format!(
            "{name} belongs below {place}: check the indentation"
        )),
        None if fields.is_empty() => None,
        None if fields.len() <= 12 => Some(format!("the fields here are {}", fields.join(", "))),
        None => None,
    }
}

/// What the author of an unknown field may mean.
enum Meant {
    /// A field of a similar name.
    Instead(String),
    /// A field beside it, below which the unknown one belongs.
    Below(String),
}

/// The field that is likely to be missing because another one is unknown: that of a similar name, or the one below which it belongs.
pub(super) fn meant(kind: Kind, parent: &str, name: &str) -> Option<String> {
    similar(kind, parent, name).map(|meant| match meant {
        Meant::Instead(field) | Meant::Below(field) => field,
    })
}

fn similar(kind: Kind, parent: &str, name: &str) -> Option<Meant> {
    let fields = rules::fields(kind, parent);
    let near = nearest(name, fields.iter().copied());
    // One name may be a longer form of the other: destinationSelector, destinations.
    let is_longer = |long: &str, short: &str| {
        let short = short.strip_suffix('s').unwrap_or(short);
        short.len() >= LEAST && long.starts_with(short)
    };
    let longer = || {
        let mut fields = fields.iter();
        fields.find(|field| is_longer(name, field) || is_longer(field, name))
    };
    if let Some(field) = near.or_else(|| longer().copied()) {
        return Some(Meant::Instead(field.to_owned()));
    }
    let below = fields.iter().find(|field| {
        let path = match parent {
            "" => (**field).to_owned(),
            parent => format!("{parent}.{field}"),
        };
        !["spec", "metadata", "status"].contains(*field)
            && rules::fields(kind, &path).contains(&name)
    });
    below.map(|field| Meant::Below((*field).to_owned()))
}

/// The fewest letters that two forms of one name have in common.
const LEAST: usize = 5;

/// The nearest of the values that a message lists.
fn of_choice(message: &str) -> Option<String> {
    let (given, choices) = message.split_once(" is not a valid value; write one of ")?;
    let given = given.trim_matches('"');
    let choices = choices.split(", ").flat_map(|choice| choice.split(" or "));
    let near = nearest(given, choices.map(|choice| choice.trim_matches('"')))?;
    Some(format!("did you mean {near}?"))
}

/// Typographic quotes and template expressions are part of a value.
fn of_quotes(message: &str) -> Option<String> {
    if message.contains("{{") || message.contains("{%") {
        return Some("render the template first, such as with helm template".to_owned());
    }
    if message.contains("${") {
        return Some("replace the variable first, such as with envsubst".to_owned());
    }
    if let Some(address) = message.split('"').nth(1)
        && let Ok(address) = address.parse::<IpAddr>()
        && ["network", "prefix", "CIDR"]
            .iter()
            .any(|word| message.contains(word))
    {
        let (network, one) = if address.is_ipv4() {
            (24, 32)
        } else {
            (64, 128)
        };
        return Some(format!(
            "add the length of the prefix: {address}/{network} for a network, {address}/{one} for one address"
        ));
    }
    if message.contains('\u{a0}') {
        return Some("replace the no-break space behind the colon by a plain one".to_owned());
    }
    let is_typographic =
        message.contains(['\u{201c}', '\u{201d}', '\u{201e}', '\u{2018}', '\u{2019}']);
    let hint = "replace the typographic quotes by \" or '";
    is_typographic.then(|| hint.to_owned())
}
