//! Every rule of every kind, asked of a real API server: it takes one object and refuses the other, for the reason it should.

use serde_json::Value;

use super::server::{Mode, Refusal, Server, with_server};
use crate::{
    data::{self, RuleCase},
    ring1_rules::{Problem, validate},
};

#[test]
fn every_rule_takes_its_good_object_and_refuses_its_bad_one() -> anyhow::Result<()> {
    with_server(|server| {
        let (mut failures, mut count) = (Vec::new(), 0);
        for file in data::rules()? {
            for case in &file.cases {
                count += 1;
                if let Some(failure) = check(server, case)? {
                    failures.push(format!("{}: {}: {failure}", file.name, case.rule));
                }
            }
        }
        eprintln!("{count} rules");
        assert!(
            failures.is_empty(),
            "{} of {count}:\n{}",
            failures.len(),
            failures.join("\n")
        );
        Ok(())
    })
}

fn check(server: &Server, case: &RuleCase) -> anyhow::Result<Option<String>> {
    if let Err(refusal) = server.create(&case.accepted, Mode::Dry)? {
        return Ok(Some(format!("not accepted: {}", refusal.message)));
    }
    if let Some(refused) = &case.refused {
        let failure = wrong(server.create(refused, Mode::Dry)?, case);
        if failure.is_some() {
            return Ok(failure);
        }
    }
    if case.accepted_update.is_none() && case.refused_update.is_none() {
        return Ok(None);
    }
    // A change needs something that is there.
    if let Err(refusal) = server.create(&case.accepted, Mode::Real)? {
        return Ok(Some(format!("not accepted: {}", refusal.message)));
    }
    let failure = check_updates(server, case);
    server.delete(&case.accepted)?;
    failure
}

fn check_updates(server: &Server, case: &RuleCase) -> anyhow::Result<Option<String>> {
    if let Some(update) = &case.accepted_update
        && let Err(refusal) = server.replace(update, Mode::Dry)?
    {
        return Ok(Some(format!("change not accepted: {}", refusal.message)));
    }
    match &case.refused_update {
        Some(update) => Ok(wrong(server.replace(update, Mode::Dry)?, case)),
        None => Ok(None),
    }
}

/// What is wrong with an answer that should be a refusal.
fn wrong(answer: Result<Value, Refusal>, case: &RuleCase) -> Option<String> {
    match answer {
        Ok(_) => Some("not refused".to_owned()),
        Err(refusal) if refusal.code == 422 && refusal.message.contains(&case.message) => None,
        Err(refusal) => Some(format!(
            "expected {:?}, got {} {}",
            case.message, refusal.code, refusal.message
        )),
    }
}

#[test]
fn validate_blames_a_field_that_the_api_server_blames() -> anyhow::Result<()> {
    with_server(|server| {
        let mut failures = Vec::new();
        for file in data::rules()? {
            let cases: Vec<(&RuleCase, &Value)> = file
                .cases
                .iter()
                .filter_map(|case| Some((case, case.refused.as_ref()?)))
                .collect();
            let objects: Vec<&Value> = cases.iter().map(|(_, object)| *object).collect();
            for ((case, object), problems) in cases.iter().zip(validate(&objects)?) {
                let Err(refusal) = server.create(object, Mode::Dry)? else {
                    continue;
                };
                let ours = |field: &String| {
                    problems
                        .iter()
                        .any(|problem: &Problem| problem.field == *field)
                };
                if !refusal.fields.iter().any(ours) {
                    let ours: Vec<_> = problems.iter().map(|problem| &problem.field).collect();
                    let theirs = &refusal.fields;
                    let name = format!("{}: {}", file.name, case.rule);
                    failures.push(format!("{name}: we say {ours:?}, the server {theirs:?}"));
                }
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        Ok(())
    })
}
