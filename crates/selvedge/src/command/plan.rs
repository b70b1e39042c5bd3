//! `selvedge plan`

use compiler::{
    compile,
    plan::{ChangeKind, Group, Plan, plan},
};

use super::problems;
use crate::{
    args::{Format, Plan as Args},
    input,
    output::{self, Style, Verdict, styled},
};

/// How many node names are shown before the rest is only counted.
const NAMES: usize = 6;

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let (before, after) = (input::read(&args.input.paths)?, input::read(&args.to)?);
    let old = compile(&before.snapshot);
    let new = compile(&after.snapshot);
    let has_errors = new.has_errors() || !after.unknown.is_empty();
    let plan = plan(&old, &new);
    if args.output == Format::Table {
        problems::show(Format::Table, &after, &new)?;
        output::text(&story(&plan));
    } else {
        output::documents(args.output, &[&plan])?;
    }
    Ok(if has_errors {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}

fn story(plan: &Plan) -> String {
    if plan.is_empty() {
        return "nothing changes on any node\n".to_owned();
    }
    let mut text: Vec<String> = plan.groups.iter().map(group).collect();
    let behind: Vec<String> = plan.behind.iter().map(ToString::to_string).collect();
    text.push(format!(
        "{} to add, {} to change, {} to remove, on {} of {} nodes, one node after another\n",
        plan.count(ChangeKind::Added),
        plan.count(ChangeKind::Changed),
        plan.count(ChangeKind::Removed),
        plan.touched(),
        plan.nodes,
    ));
    if !behind.is_empty() {
        text.push(format!("behind it: {}\n", behind.join(", ")));
    }
    text.concat()
}

fn group(group: &Group) -> String {
    let names: Vec<&str> = group.nodes.iter().map(String::as_str).take(NAMES).collect();
    let more = group.nodes.len().saturating_sub(NAMES);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let mut text = vec![format!(
        "{}\n",
        styled(Style::Bold, &format!("{}{more}", names.join(", ")))
    )];
    for change in &group.changes {
        let (sign, style) = match change.kind {
            ChangeKind::Added => ("+", Style::Green),
            ChangeKind::Changed => ("~", Style::Yellow),
            ChangeKind::Removed => ("-", Style::Red),
        };
        let behind: Vec<String> = change.behind.iter().map(ToString::to_string).collect();
        let behind = if behind.is_empty() {
            String::new()
        } else {
            format!("   {}", behind.join(", "))
        };
        let line = styled(style, &format!("  {sign} {}", change.element));
        text.push(format!("{line}{}\n", styled(Style::Dim, &behind)));
    }
    text.push("\n".to_owned());
    text.concat()
}
