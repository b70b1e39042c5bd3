//! How problems are shown to people: where, what, and what to do.

use compiler::{Compilation, Problem, Severity};
use serde_json::{Value, json};

use crate::{
    args::Format,
    input::World,
    output::{self, Style, styled},
};

/// Prints every problem to where people look, and whether there is an error among them.
pub(super) fn show(
    format: Format,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<bool> {
    let has_errors = compilation.has_errors() || !world.unknown.is_empty();
    if format == Format::Table {
        lines(world, &compilation.problems);
    } else {
        output::documents(format, &values(world, &compilation.problems))?;
    }
    Ok(has_errors)
}

/// Prints documents that are no objects, and problems.
pub(super) fn lines(world: &World, problems: &[Problem]) {
    for (origin, message) in &world.unknown {
        output::note(&format!(
            "{}: {origin}: {message}",
            styled(Style::Red, "error")
        ));
    }
    for (origin, message) in &world.misplaced {
        output::note(&format!(
            "{}: {origin}: {message}",
            styled(Style::Yellow, "warning")
        ));
    }
    for problem in problems {
        output::note(&line(world, problem));
    }
}

/// Problems as values, with the files they come from.
pub(super) fn values(world: &World, problems: &[Problem]) -> Vec<Value> {
    let unknown = world.unknown.iter().map(|(origin, message)| {
        json!({"file": origin.to_string(), "severity": "error", "reason": "Unknown", "message": message})
    });
    let misplaced = world.misplaced.iter().map(|(origin, message)| {
        json!({"file": origin.to_string(), "severity": "warning", "reason": "Misplaced", "message": message})
    });
    let known = problems.iter().map(|problem| {
        let mut value = serde_json::to_value(problem).unwrap_or_default();
        if let (Some(fields), Some(origin)) =
            (value.as_object_mut(), world.origins.get(&problem.subject))
        {
            fields.insert("file".to_owned(), origin.to_string().into());
        }
        value
    });
    unknown.chain(misplaced).chain(known).collect()
}

pub(super) fn line(world: &World, problem: &Problem) -> String {
    let severity = match problem.severity() {
        Severity::Error => styled(Style::Red, "error"),
        Severity::Warning => styled(Style::Yellow, "warning"),
    };
    let origin = world
        .origins
        .get(&problem.subject)
        .map(|origin| format!("{origin}: "))
        .unwrap_or_default();
    let remedy = problem
        .kind
        .remedy()
        .map(|remedy| format!("\n  hint: {remedy}"))
        .unwrap_or_default();
    format!("{severity}: {origin}{problem}{remedy}")
}
