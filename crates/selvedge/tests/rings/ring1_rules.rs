//! Ring 1, the rules of each kind: `selvedge validate` refuses what the API server refuses, without one.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    data::{self, RuleCase, RuleFile},
    support::selvedge,
};

/// A problem as `selvedge validate` writes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Problem {
    #[serde(default)]
    object: String,
    #[serde(default)]
    pub(crate) field: String,
    reason: String,
    message: String,
}

impl Problem {
    /// Whether the object alone is to blame, and not what is missing around it.
    fn is_of_the_object_alone(&self) -> bool {
        matches!(
            self.reason.as_str(),
            "Unreadable" | "RuleBroken" | "UnknownField" | "Unknown"
        )
    }
}

/// What `selvedge validate` says about each of many objects, in the order of the objects.
pub(crate) fn validate(objects: &[&Value]) -> anyhow::Result<Vec<Vec<Problem>>> {
    // A kind of which there is one object only goes alone; the others get names of their own.
    let is_alone = objects.iter().any(|object| object["kind"] == "Settings");
    let size = if is_alone { 1 } else { objects.len().max(1) };
    let mut found = Vec::new();
    for part in objects.chunks(size) {
        let mut input = String::new();
        let mut names = BTreeMap::new();
        for (number, object) in part.iter().enumerate() {
            let mut object = (*object).clone();
            if !is_alone {
                let name = format!("case-{number}");
                object["metadata"]["name"] = json!(name);
                names.insert(name, number);
            }
            writeln!(input, "---\n{object}")?;
        }
        let output = selvedge(&["validate", "-o", "json", "-f", "-"], &input)?;
        let problems: Vec<Problem> = serde_json::from_slice(&output.stdout)?;
        let mut of_objects: Vec<Vec<Problem>> = part.iter().map(|_| Vec::new()).collect();
        for problem in problems.into_iter().filter(Problem::is_of_the_object_alone) {
            let name = problem.object.rsplit('/').next().unwrap_or_default();
            let number = names.get(name).copied().unwrap_or_default();
            of_objects[number].push(problem);
        }
        found.extend(of_objects);
    }
    Ok(found)
}

/// Runs every case of a file that has the object, and collects what is wrong.
fn check<'a>(
    file: &'a RuleFile,
    object: impl Fn(&'a RuleCase) -> Option<&'a Value>,
    verdict: impl Fn(&RuleCase, &[Problem]) -> Option<String>,
) -> anyhow::Result<(usize, Vec<String>)> {
    let cases: Vec<(&RuleCase, &Value)> = file
        .cases
        .iter()
        .filter_map(|case| Some((case, object(case)?)))
        .collect();
    let objects: Vec<&Value> = cases.iter().map(|(_, object)| *object).collect();
    let mut failures = Vec::new();
    for ((case, _), problems) in cases.iter().zip(validate(&objects)?) {
        if let Some(failure) = verdict(case, &problems) {
            failures.push(format!("{}: {}: {failure}", file.name, case.rule));
        }
    }
    Ok((cases.len(), failures))
}

#[test]
fn what_the_rules_accept_is_accepted_without_a_server() -> anyhow::Result<()> {
    let accepted = |_: &RuleCase, problems: &[Problem]| {
        (!problems.is_empty()).then(|| format!("{problems:?}"))
    };
    let mut failures = Vec::new();
    for file in data::rules()? {
        failures.extend(check(&file, |case| Some(&case.accepted), accepted)?.1);
        failures.extend(check(&file, |case| case.accepted_update.as_ref(), accepted)?.1);
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[test]
fn what_the_rules_refuse_is_refused_without_a_server() -> anyhow::Result<()> {
    let refused = |case: &RuleCase, problems: &[Problem]| {
        let said = |problem: &Problem| format!("{}: {}", problem.field, problem.message);
        // Where the server's message begins with a field, ours is at that field.
        let path = case.message.split(':').next().unwrap_or_default();
        let is_path = path.starts_with("spec") && !path.contains(' ');
        let is_named = |problem: &Problem| {
            !problem.field.is_empty() && (!is_path || problem.field.starts_with(path))
        };
        // A rule of the object as a whole is at no field.
        let is_said = |problem: &Problem| problem.message.contains(&case.message);
        if problems.iter().any(is_named) || problems.iter().any(is_said) {
            return None;
        }
        let said: Vec<String> = problems.iter().map(said).collect();
        Some(format!("expected {:?}, got {said:?}", case.message))
    };
    let (mut failures, mut count) = (Vec::new(), 0);
    for file in data::rules()? {
        let (checked, found) = check(&file, |case| case.refused.as_ref(), refused)?;
        count += checked;
        failures.extend(found);
    }
    assert!(count > 400, "{count} cases");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

#[test]
fn every_rule_has_a_refused_object_or_a_refused_change() -> anyhow::Result<()> {
    let mut changes = 0;
    for file in data::rules()? {
        for case in &file.cases {
            let RuleCase {
                refused,
                refused_update,
                ..
            } = case;
            let name = format!("{}: {}", file.name, case.rule);
            assert!(refused.is_some() != refused_update.is_some(), "{name}");
            changes += usize::from(refused_update.is_some());
        }
    }
    // Rules about a change need the object before it: only the API server has both, and ring 5 asks it.
    assert!(changes > 0);
    Ok(())
}
