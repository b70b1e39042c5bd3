//! `selvedge plan`

mod difference;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use anyhow::Context as _;
use compiler::rollout::Removal;
use explain::{
    element::Element,
    plan::{
        Cause, Change, ChangeKind, Disruption, Disturbed, Group, Plan, PlatformChanges,
        PlatformName, plan,
    },
    provenance::{Field, Trace},
    running::Running,
};

use serde::Serialize;
use serde_json::Value;

use self::difference::{of_each_node, of_one};
use super::{elements, problems};
use crate::{
    args::{Format, Plan as Args},
    input::{self, World},
    names,
    output::{self, Style, Verdict, counted, styled},
};

/// How many names are shown before the rest is only counted.
const NAMES: usize = 6;
/// How many objects behind one change are shown before the rest is only counted.
const OBJECTS: usize = 2;
/// The widest that the column of elements gets.
const WIDTH: usize = 72;

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    let stored = super::stored(&args.input)?;
    anyhow::ensure!(
        stored.is_empty() || args.input.paths.is_empty(),
        "a plan starts from files (-f) or from a cluster (--context, --kubeconfig), not from both"
    );
    let before = input::read_over(&args.input.paths, Arc::clone(&stored))?;
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
    let plan = plan(
        &Trace::new(&old.snapshot, &old.compilation),
        &Trace::new(&new.snapshot, &new.compilation),
    );
    let fingerprint = &new.compilation.revision.fingerprint;
    let answer = || Answer {
        version: VERSION,
        revision: Some(compiler::revision::object_name(fingerprint)),
        plan: Some(&plan),
        problems: problems::values(&after, &new.compilation.problems),
    };
    if args.output == Format::Table {
        problems::show(Format::Table, &after, &new.compilation)?;
        output::text(&output::wrapped(&story(&plan), 6));
    } else {
        output::documents(args.output, &[answer()])?;
    }
    if let Some(path) = &args.save {
        let text = serde_json::to_string_pretty(&answer())?;
        std::fs::write(path, text)
            .with_context(|| format!("failed to write {}", path.display()))?;
    }
    if let Some(line) = after.passed_over() {
        output::note(&line);
    }
    let is_change = !plan.is_empty() || !plan.platform.is_empty();
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
        output::documents(format, &[answer])?;
    }
    output::note("no plan: some documents cannot be read; correct the errors above");
    Ok(Verdict::Problems)
}

fn story(plan: &Plan) -> String {
    if plan.is_empty() {
        return format!(
            "{}nothing changes on any node\n",
            platform(&plan.platform).concat()
        );
    }
    let mut text: Vec<String> = groups(&plan.groups);
    let total = &plan.total;
    text.push(format!(
        "{}\n",
        styled(
            Style::Bold,
            &format!(
                "{} to add, {} to change, {} to remove",
                total.added, total.changed, total.removed
            )
        )
    ));
    let radius = &plan.radius;
    let tenants = radius.tenants.iter().map(ToString::to_string);
    let tenants = match radius.tenants.len() {
        0 => "no intent".to_owned(),
        number => format!("{}: {}", counted(number, "intent"), listed(tenants, NAMES)),
    };
    let nodes = format!("{} of {}", radius.nodes, counted(radius.of_nodes, "node"));
    text.push(format!("touches  {nodes}; {tenants}\n"));
    let namespaces = radius.namespaces.iter().cloned();
    if !radius.namespaces.is_empty() {
        text.push(format!("in       {}\n", listed(namespaces, NAMES)));
    }
    text.extend(disruptions(plan));
    text.extend(platform(&plan.platform));
    text.extend(approvals(&plan.needs_approval));
    if plan.waves.is_empty() {
        if !plan.at_once.is_empty() {
            let line = "rollout  no waves: forwarding does not change; written at once\n";
            text.push(line.to_owned());
        }
    } else {
        text.push(format!("rollout  {}\n", waves(&plan.waves)));
        if !plan.at_once.is_empty() {
            let at_once = nodes_of(plan.at_once.iter());
            text.push(format!("at once  {at_once}: forwarding does not change\n"));
        }
    }
    let notes = plan.notes.iter();
    text.extend(notes.map(|note| styled(Style::Red, &format!("         {note}\n"))));
    text.concat()
}

/// What is disturbed of what already runs, the most severe first; or that nothing is.
fn disruptions(plan: &Plan) -> Vec<String> {
    let all = plan.disruptions.iter().rev();
    let grave = all.filter(|(class, _)| match class {
        Disruption::SessionReset | Disruption::Rebuild => true,
        Disruption::None | Disruption::Additive => false,
    });
    let line = |(class, disturbed): (&Disruption, &Disturbed)| {
        let nodes = nodes_of(disturbed.nodes.iter());
        let what = listed(disturbed.what.iter().cloned(), NAMES);
        styled(
            Style::Red,
            &format!("disrupts {class} on {nodes}: {what}\n"),
        )
    };
    let lines: Vec<String> = grave.map(line).collect();
    if lines.is_empty() {
        let class = plan.disruptions.keys().max().copied().unwrap_or_default();
        return vec![format!("disrupts nothing that runs ({class})\n")];
    }
    lines
}

/// What changes of the objects of other programs.
fn platform(changes: &PlatformChanges) -> Vec<String> {
    let kinds = [
        ("create", &changes.created),
        ("change", &changes.changed),
        ("delete", &changes.deleted),
    ];
    let kinds = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let line = |(verb, names): (&str, &Vec<PlatformName>)| {
        let listed = listed(names.iter().map(ToString::to_string), NAMES);
        format!("platform {} to {verb}: {listed}\n", names.len())
    };
    kinds.map(line).collect()
}

/// The nodes that keep their config until the new one is approved, by what it removes.
fn approvals(removals: &BTreeMap<String, Removal>) -> Vec<String> {
    let mut nodes: BTreeMap<Removal, Vec<String>> = BTreeMap::new();
    for (node, removal) in removals {
        nodes.entry(*removal).or_default().push(node.clone());
    }
    let line = |(removal, nodes): (Removal, Vec<String>)| {
        let names = nodes_of(nodes.iter());
        let text = format!("approval {names}: removes {removal}; not published before approval\n");
        styled(Style::Red, &text)
    };
    nodes.into_iter().map(line).collect()
}

fn waves(waves: &[Vec<String>]) -> String {
    let one_by_one = waves.iter().all(|wave| wave.len() == 1);
    let names = waves.iter().map(|wave| nodes_of(wave.iter()));
    let how = if one_by_one && waves.len() > 1 {
        ", one node after another"
    } else {
        ""
    };
    let mark = if one_by_one { ", " } else { " | " };
    let shown: Vec<String> = names.clone().take(NAMES).collect();
    let more = and_more(waves.len().saturating_sub(NAMES));
    let number = counted(waves.len(), "wave");
    format!("{number}{how}: {}{more}", shown.join(mark))
}

/// Nodes in a few words, with their number where there are many.
fn nodes_of<'a>(nodes: impl Iterator<Item = &'a String>) -> String {
    let nodes: Vec<String> = nodes.cloned().collect();
    if nodes.len() <= 3 || output::is_all() {
        return nodes.join(", ");
    }
    let folds = names::folds(&nodes);
    let folded = listed(folds.into_iter(), NAMES);
    format!("{folded} ({})", counted(nodes.len(), "node"))
}

/// Names in a row; the last ones are only counted.
fn listed(names: impl Iterator<Item = String>, most: usize) -> String {
    let most = if output::is_all() { usize::MAX } else { most };
    let names: Vec<String> = names.collect();
    let more = and_more(names.len().saturating_sub(most));
    let shown: Vec<String> = names.into_iter().take(most).collect();
    format!("{}{more}", shown.join(", "))
}

fn and_more(number: usize) -> String {
    match number {
        0 => String::new(),
        number => format!(" and {number} more"),
    }
}

/// How many changes of a group of nodes are shown before the rest is only counted, and of how many groups.
const CHANGES: usize = 8;
const GROUPS: usize = 3;
/// Up to how many lines a plan is shown whole.
const SMALL: usize = 30;

fn group(group: &Group, most: usize) -> String {
    let names = nodes_of(group.nodes.iter());
    let mut lines = folded(lines(group));
    if lines.len() > most {
        // What disturbs is never among those that are only counted.
        lines.sort_by_key(|line| !line.is_grave);
    }
    let most = most.max(
        lines
            .iter()
            .filter(|line| line.is_grave)
            .count()
            .min(most.saturating_mul(2)),
    );
    let mut text = vec![format!("{}\n", styled(Style::Bold, &names))];
    let widths = lines.iter().map(|line| line.text.chars().count());
    let width = widths.max().unwrap_or_default().min(WIDTH);
    for line in lines.iter().take(most) {
        let (sign, style) = match line.kind {
            ChangeKind::Added => ("+", Style::Green),
            ChangeKind::Changed => ("~", Style::Yellow),
            ChangeKind::Removed => ("-", Style::Red),
        };
        let start = format!("  {sign} {}", line.text);
        let behind = behind(&line.behind);
        let Some(screen) = output::width() else {
            let padding = " ".repeat(width.saturating_sub(line.text.chars().count()));
            let behind = styled(Style::Dim, &behind);
            text.push(format!("{}{padding}{behind}\n", styled(style, &start)));
            continue;
        };
        // What does not fit behind a change is left out: --wide and -o json have it.
        let length = start.chars().count();
        let padding = (width + 4).min(screen / 2).saturating_sub(length);
        let start = format!("{start}{}", " ".repeat(padding));
        let left = screen.saturating_sub(start.chars().count());
        let behind = [behind, objects(&line.behind)]
            .into_iter()
            .find(|behind| behind.chars().count() <= left);
        let behind = styled(Style::Dim, &behind.unwrap_or_default());
        let start = if behind.is_empty() {
            start.trim_end()
        } else {
            &start
        };
        text.push(format!("{}{behind}\n", styled(style, start)));
    }
    if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
        text.push(format!(
            "  and {}; --all shows them\n",
            counted(more, "more change")
        ));
    }
    text.push("\n".to_owned());
    text.concat()
}

/// The groups of a plan: all of a small one, else the first, and how many more there are.
fn groups(groups: &[Group]) -> Vec<String> {
    let lines: usize = groups.iter().map(|group| lines(group).len() + 2).sum();
    if output::is_all() || lines <= SMALL {
        return groups.iter().map(|one| group(one, usize::MAX)).collect();
    }
    let mut text: Vec<String> = groups
        .iter()
        .take(GROUPS)
        .map(|one| group(one, CHANGES))
        .collect();
    let rest = groups.iter().skip(GROUPS);
    let nodes: Vec<&String> = rest.clone().flat_map(|group| &group.nodes).collect();
    if !nodes.is_empty() {
        let changes: usize = rest.map(lines_of).sum();
        let names = nodes_of(nodes.into_iter());
        text.push(format!(
            "{names}\n  {}; --all shows them\n\n",
            counted(changes, "change")
        ));
    }
    text
}

fn lines_of(group: &Group) -> usize {
    folded(lines(group)).len()
}

/// A change as it is shown, or several that differ in a prefix only.
struct Line {
    kind: ChangeKind,
    text: String,
    /// Whether it disturbs what runs.
    is_grave: bool,
    behind: Vec<Cause>,
}

/// Changes, each with its text.
type Texts<'a> = Vec<(&'a Change, String)>;

/// Changes as lines; those that differ in a prefix only are one.
fn folded(lines: Texts<'_>) -> Vec<Line> {
    let mut found: Vec<(Option<String>, Texts<'_>)> = Vec::new();
    for (change, text) in lines {
        let key = alike(change);
        match found
            .iter_mut()
            .find(|(known, _)| key.is_some() && *known == key)
        {
            Some((_, known)) => known.push((change, text)),
            None => found.push((key, vec![(change, text)])),
        }
    }
    let mut lines = Vec::new();
    for (_, changes) in found {
        let single = |(change, text): &(&Change, String)| Line {
            kind: change.kind,
            text: format!("{text}{}", mark(change)),
            is_grave: !mark(change).is_empty(),
            behind: change.behind.clone(),
        };
        let elements: Vec<&Element> = changes.iter().map(|(change, _)| &change.element).collect();
        match (changes.first(), elements::several(&elements)) {
            (Some((first, _)), Some(text)) => {
                let mut behind: Vec<Cause> = Vec::new();
                for cause in changes.iter().flat_map(|(change, _)| &change.behind) {
                    match behind.iter_mut().find(|known| known.by == cause.by) {
                        Some(known) => known.fields.extend(cause.fields.iter().cloned()),
                        None => behind.push(cause.clone()),
                    }
                }
                lines.push(Line {
                    kind: first.kind,
                    text: format!("{text}{}", mark(first)),
                    is_grave: !mark(first).is_empty(),
                    behind,
                });
            }
            _ => lines.extend(changes.iter().map(single)),
        }
    }
    lines
}

/// What a change of many of its kind begins with.
fn alike(change: &Change) -> Option<String> {
    let is_whole = change.kind != ChangeKind::Changed;
    let head = elements::alike(&change.element).filter(|_| is_whole)?.0;
    Some(format!("{:?} {head}", change.kind))
}

/// The mark of a change that disturbs what runs.
fn mark(change: &Change) -> String {
    let worst = change.effects.iter().map(|effect| effect.disruption).max();
    match worst {
        Some(class @ (Disruption::SessionReset | Disruption::Rebuild)) => format!(" [{class}]"),
        Some(Disruption::None | Disruption::Additive) | None => String::new(),
    }
}

/// The objects that request a change, without their fields.
fn objects(behind: &[Cause]) -> String {
    let objects: BTreeSet<String> = behind.iter().map(|cause| cause.by.to_string()).collect();
    let text = listed(objects.into_iter(), 1);
    if text.is_empty() {
        text
    } else {
        format!("   {text}")
    }
}

/// What changes on each node of a group, each change with its words; values that differ by node are shown once.
fn lines(group: &Group) -> Vec<(&Change, String)> {
    let shared = group.changes.iter();
    let shared = shared.map(|change| (change, of_one(change)));
    let own = group.own.values().next().into_iter().flatten();
    let own = own.enumerate().map(|(place, change)| {
        let nodes = group.own.iter();
        let nodes = nodes.filter_map(|(node, changes)| Some((node.as_str(), changes.get(place)?)));
        let nodes: Vec<(&str, &Change)> = nodes.collect();
        (change, of_each_node(change, &nodes))
    });
    let mut lines: Vec<_> = shared.chain(own).collect();
    lines.sort_by(|(one, _), (other, _)| one.element.cmp(&other.element));
    lines
}

fn behind(behind: &[Cause]) -> String {
    if behind.is_empty() {
        return String::new();
    }
    let fields: BTreeSet<&Field> = behind.iter().flat_map(|one| &one.fields).collect();
    let mut objects: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for field in fields {
        let fields = objects.entry(field.object.to_string()).or_default();
        fields.push(field.path.strip_prefix("spec.").unwrap_or(&field.path));
    }
    let asking: Vec<String> = behind.iter().map(|one| one.by.to_string()).collect();
    // Requesting objects come first, then the objects that they reference; the VRF comes last.
    let mut objects: Vec<(String, Vec<&str>)> = objects.into_iter().collect();
    objects.sort_by_key(|(object, fields)| {
        let only_vrf = fields.iter().all(|field| ["vrf", "vrfRef"].contains(field));
        (!asking.contains(object), only_vrf)
    });
    let texts = objects.into_iter().map(|(object, fields)| {
        let fields = fields.join(" ");
        format!("{object} ({fields})")
    });
    format!("   {}", listed(texts, OBJECTS))
}
