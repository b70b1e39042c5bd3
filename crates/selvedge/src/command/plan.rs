//! `selvedge plan`

mod difference;
mod story;

use std::{path::Path, sync::Arc};

use anyhow::Context as _;
use explain::{
    plan::{Plan, edits, plan},
    provenance::Trace,
    running::Running,
};
use serde::Serialize;
use serde_json::Value;

use self::story::story;
use super::problems;
use crate::{
    args::{Format, Plan as Args},
    input::{self, World},
    output::{self, Verdict},
};

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let stored = super::stored(&args.input)?;
    anyhow::ensure!(
        stored.is_empty() || args.input.paths.is_empty(),
        "a plan starts from files (-f) or from a cluster (--context, --kubeconfig), not from both"
    );
    let before = input::read_over(&args.input.paths, Arc::clone(&stored))?;
    anyhow::ensure!(
        args.input.paths.is_empty() || !before.is_empty(),
        "{}",
        super::nothing_in(&args.input.paths)
    );
    let mut after = input::read_over(&args.to, stored)?;
    after.check_changes(&before.snapshot);
    after.keep_unread(&before.snapshot);
    anyhow::ensure!(
        !after.is_empty() && (!after.origins.is_empty() || !after.unknown.is_empty()),
        "--to contains no object of Selvedge and no Node: a plan to remove everything is not made; check the path"
    );
    // What cannot be read may be any object: without it, a plan would remove what it stands for.
    if !before.unknown.is_empty() || !after.unknown.is_empty() {
        let unread = if before.unknown.is_empty() {
            &after
        } else {
            &before
        };
        return no_plan(args.output, unread);
    }
    // As a cluster would: who has an address, a number or a last good state keeps it.
    let old = Running::new(&before.snapshot);
    let new = old.after(&after.snapshot);
    let has_errors = new.compilation.has_errors();
    let mut plan = plan(
        &Trace::new(&old.snapshot, &old.compilation),
        &Trace::new(&new.snapshot, &new.compilation),
    );
    plan.edits = edits(&before.snapshot, &after.snapshot);
    let fingerprint = &new.compilation.revision.fingerprint;
    let answer = || Answer {
        version: VERSION,
        revision: Some(compiler::revision::object_name(fingerprint)),
        plan: Some(&plan),
        problems: problems::values(&after, &new.compilation.problems),
    };
    if args.output == Format::Table {
        problems::show(Format::Table, &after, &new.compilation)?;
        output::text(&story(&plan, [&before, &after]));
    } else {
        output::document(args.output, &answer())?;
    }
    if let Some(path) = &args.save {
        let text = serde_json::to_string_pretty(&answer())?;
        std::fs::write(path, text)
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    if let Some(line) = after.passed_over() {
        output::note(&line);
    }
    // An edit that changes no node, such as one of the rollout, is to be applied as well.
    let is_change = !plan.is_empty() || !plan.platform.is_empty() || !plan.edits.is_empty();
    Ok(if has_errors {
        Verdict::Problems
    } else if args.detailed_exitcode && is_change {
        Verdict::Changes
    } else {
        Verdict::Fine
    })
}

/// Version of the form of plans for programs. It changes with every change that is more than a further field.
const VERSION: u32 = 1;

/// The revision that a saved plan leads to.
pub(super) fn saved_revision(path: &Path) -> anyhow::Result<String> {
    let place = path.display();
    let text = std::fs::read(path).with_context(|| format!("failed to read {place}"))?;
    let plan: Value = serde_json::from_slice(&text)
        .with_context(|| format!("{place} is not a plan of selvedge plan --save"))?;
    anyhow::ensure!(
        plan.get("version")
            .is_some_and(|version| *version == VERSION),
        "{place} is not a plan of version {VERSION}; save it again with this selvedge"
    );
    let revision = plan.get("revision").and_then(Value::as_str);
    let revision = revision.with_context(|| format!("{place} names no revision"))?;
    Ok(revision.to_owned())
}

/// A plan for programs: what changes, and what is wrong.
#[derive(Serialize)]
struct Answer<'a> {
    version: u32,
    /// Name of the NetworkConfigRevision that the plan leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[serde(flatten)]
    plan: Option<&'a Plan>,
    problems: Vec<Value>,
}

/// The end of a plan that cannot be made. What is wrong with other objects is not said: it may follow from what is not known.
fn no_plan(format: Format, unread: &World) -> anyhow::Result<Verdict> {
    let said = &unread.snapshot.unreadable;
    if format == Format::Table {
        problems::lines(unread, said);
    } else {
        let answer = Answer {
            version: VERSION,
            revision: None,
            plan: None,
            problems: problems::values(unread, said),
        };
        output::document(format, &answer)?;
    }
    output::note("no plan: some documents cannot be read; correct the errors above");
    Ok(Verdict::Problems)
}
