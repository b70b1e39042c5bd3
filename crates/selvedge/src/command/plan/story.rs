//! A plan as people read it.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{ObjectRef, rollout::Removal};
use explain::{
    element::Element,
    plan::{
        Cause, Change, ChangeKind, Disruption, Edit, Group, Plan, PlatformChanges, PlatformName,
    },
};

use super::difference::{of_each_node, of_field, of_one};
use crate::{
    command::{elements, explain::objects},
    input::World,
    names,
    output::{self, Style, counted, styled},
};

/// How many names are shown before the rest is only counted.
const NAMES: usize = 6;
/// How many objects behind one change are shown before the rest is only counted.
const OBJECTS: usize = 2;
/// The most columns that the names of nodes take.
const NODES: usize = 50;

/// How much is shown of a plan.
#[derive(Clone, Copy)]
struct Limits {
    /// How many groups of nodes.
    groups: usize,
    /// How many changes of each group.
    changes: usize,
    /// How many names in a row.
    names: usize,
}

impl Limits {
    const fn of(groups: usize, changes: usize, names: usize) -> Self {
        Self {
            groups,
            changes,
            names,
        }
    }
}

/// The first with which a plan fits a screen is taken.
const LIMITS: [Limits; 7] = [
    Limits::of(3, 8, NAMES),
    Limits::of(2, 6, NAMES),
    Limits::of(2, 4, NAMES),
    Limits::of(2, 2, 4),
    Limits::of(1, 4, 4),
    Limits::of(1, 2, 3),
    Limits::of(1, 1, 2),
];

pub(super) fn story(plan: &Plan, worlds: [&World; 2]) -> String {
    if plan.is_empty() {
        let mut text = edits(plan, worlds, NAMES);
        text.extend(platform(&plan.platform, NAMES));
        text.push("nothing changes on any node\n".to_owned());
        return output::wrapped(&text.concat(), 6);
    }
    let groups = plan.groups.iter();
    let mut groups: Vec<Lines<'_>> = groups.map(|one| (one, folded(lines(one)))).collect();
    if !output::is_all() {
        // Those that are only counted are never those that disturb the most.
        groups.sort_by_key(|(group, lines)| std::cmp::Reverse((gravest(lines), group.nodes.len())));
    }
    let mut text = String::new();
    for limits in LIMITS {
        let mut whole = edits(plan, worlds, limits.names);
        if !whole.is_empty() {
            whole.push("\n".to_owned());
        }
        whole.extend(of_groups(plan, &groups, limits));
        whole.push(summary(plan, limits.names));
        text = output::wrapped(&whole.concat(), 6);
        if output::is_all() || text.lines().count() < output::ROWS {
            break;
        }
    }
    text
}

/// A group of nodes, and what changes on each of them.
type Lines<'a> = (&'a Group, Vec<Line>);

/// How grave the gravest changes of a group are, and how many lines they take.
fn gravest(lines: &[Line]) -> (Gravity, usize) {
    let gravities = || lines.iter().map(|line| line.gravity);
    let worst = gravities().max().unwrap_or_default();
    (worst, gravities().filter(|one| *one == worst).count())
}

/// What follows from all changes.
fn summary(plan: &Plan, most: usize) -> String {
    let mut text = vec![format!("{}\n", styled(Style::Bold, &total(plan)))];
    let radius = &plan.radius;
    let tenants: BTreeSet<&ObjectRef> = radius.tenants.iter().collect();
    let tenants = match radius.tenants.len() {
        0 => "no intent".to_owned(),
        number => format!("{}: {}", counted(number, "intent"), objects(&tenants)),
    };
    let nodes = format!("{} of {}", radius.nodes, counted(radius.of_nodes, "node"));
    text.push(format!("touches  {nodes}; {tenants}\n"));
    if !radius.namespaces.is_empty() {
        let namespaces: Vec<String> = radius.namespaces.iter().cloned().collect();
        let word = match namespaces.len() {
            1 => "namespace",
            _ => "namespaces",
        };
        let namespaces = listed(namespaces.into_iter(), most);
        text.push(format!("         through objects in {word} {namespaces}\n"));
    }
    text.extend(disruptions(plan, most));
    text.extend(platform(&plan.platform, most));
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

/// How much changes over all nodes.
fn total(plan: &Plan) -> String {
    let total = &plan.total;
    let mut text = format!(
        "{} to add, {} to change, {} to remove",
        total.added, total.changed, total.removed
    );
    let resets = total.session_resets;
    if resets > 0 {
        text = format!("{text}; {} reset", counted(resets, "BGP session"));
    }
    if total.rebuilds > 0 {
        text = format!("{text}; {}", counted(total.rebuilds, "data-plane rebuild"));
    }
    if total.withdrawals > 0 {
        text = format!("{text}; {} withdrawn", counted(total.withdrawals, "route"));
    }
    text
}

/// The sign of a change and how it stands out.
fn sign(kind: ChangeKind) -> (&'static str, Style) {
    match kind {
        ChangeKind::Added => ("+", Style::Green),
        ChangeKind::Changed => ("~", Style::Yellow),
        ChangeKind::Removed => ("-", Style::Red),
    }
}

/// The objects that the user has changed, each with old and new values and its place.
fn edits(plan: &Plan, [before, after]: [&World; 2], most: usize) -> Vec<String> {
    let most = if output::is_all() { usize::MAX } else { most };
    let mut text = Vec::new();
    let mut edits: Vec<&Edit> = plan.edits.iter().collect();
    if edits.len() > most {
        // What is new is counted before what changes or goes.
        edits.sort_by_key(|edit| edit.change == ChangeKind::Added);
    }
    for Edit {
        object,
        change,
        fields,
    } in edits.into_iter().take(most)
    {
        let (sign, style) = sign(*change);
        let first = fields.first_key_value();
        // A field that is gone has a place only where it was.
        let is_gone = first.is_some_and(|(_, (_, becomes))| becomes.is_null());
        let world = match change {
            ChangeKind::Removed => before,
            ChangeKind::Changed if is_gone => before,
            ChangeKind::Added | ChangeKind::Changed => after,
        };
        let first = first.map_or("", |(path, _)| path.as_str());
        let origin = world.origins.get(object);
        let place = origin.map(|origin| format!("   {}", origin.at(first)));
        let place = styled(Style::Dim, &place.unwrap_or_default());
        let fields = fields
            .iter()
            .map(|(path, (was, becomes))| of_field(path, was, becomes));
        let fields = listed(fields, 2);
        let separator = if fields.is_empty() { "" } else { " " };
        let line = styled(style, &format!("{sign} {object}{separator}{fields}"));
        text.push(format!("{line}{place}\n"));
    }
    if let Some(more) = plan.edits.len().checked_sub(most).filter(|more| *more > 0) {
        text.push(format!("and {}\n", counted(more, "more edited object")));
    }
    text
}

/// What is disturbed of what already runs, the most severe first; or that nothing is. What is disturbed on the same nodes is one line.
fn disruptions(plan: &Plan, names: usize) -> Vec<String> {
    let groups = || plan.groups.iter();
    let of_class = |class| -> (String, Vec<(String, &String)>) {
        let pairs = groups().flat_map(|group| disturbed(group, class));
        (format!("disrupts {class}"), pairs.collect())
    };
    let withdrawn = groups().flat_map(withdrawn).collect();
    let mut text = Vec::new();
    for (title, pairs) in [
        of_class(Disruption::Rebuild),
        of_class(Disruption::SessionReset),
        ("withdraws routes".to_owned(), withdrawn),
    ] {
        let mut nodes: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
        for (what, node) in pairs {
            nodes.entry(what).or_default().insert(node);
        }
        let mut whats: BTreeMap<BTreeSet<&String>, Vec<String>> = BTreeMap::new();
        for (what, nodes) in nodes {
            whats.entry(nodes).or_default().push(what);
        }
        let mut whats: Vec<_> = whats.into_iter().collect();
        whats.sort_by_key(|(nodes, _)| std::cmp::Reverse(nodes.len()));
        let most = if output::is_all() { usize::MAX } else { PLACES };
        for (nodes, what) in whats.iter().take(most) {
            let nodes = nodes_of(nodes.iter().copied());
            let what = listed(what.iter().cloned(), names);
            let line = format!("{title} on {nodes}: {what}\n");
            text.push(styled(Style::Red, &line));
        }
        let rest = whats.iter().skip(most);
        let rest: BTreeSet<&String> = rest.flat_map(|(nodes, _)| nodes.iter().copied()).collect();
        if !rest.is_empty() {
            let nodes = nodes_of(rest.into_iter());
            let line = format!("         and more on {nodes}; --all shows it\n");
            text.push(styled(Style::Red, &line));
        }
    }
    if text.is_empty() {
        let class = plan.disruptions.keys().max().copied().unwrap_or_default();
        return vec![format!("disrupts nothing that runs ({class})\n")];
    }
    text
}

/// How many sets of nodes are shown with what is disturbed on them.
const PLACES: usize = 3;

/// What a group of nodes has disturbed, each with its nodes; addresses of several nodes together.
fn disturbed(group: &Group, class: Disruption) -> Vec<(String, &String)> {
    let mut found = Vec::new();
    for node in &group.nodes {
        for change in group.on(node) {
            let effects = change.effects.iter();
            for effect in effects.filter(|effect| effect.disruption == class) {
                let what = match &change.element {
                    Element::HostAddress { device, .. } if group.nodes.len() > 1 => {
                        format!("{device} addresses")
                    }
                    _ => effect.to.clone(),
                };
                found.push((what, node));
            }
        }
    }
    found
}

/// The changes of a group of nodes that take routes away, each with its nodes.
fn withdrawn(group: &Group) -> Vec<(String, &String)> {
    let of_node = |node: &String| -> Vec<String> {
        let changes = group.on(node).filter(|change| change.withdraws);
        changes.map(|change| change.text.clone()).collect()
    };
    let nodes = group.nodes.iter();
    let pairs = nodes.flat_map(|node| of_node(node).into_iter().map(move |what| (what, node)));
    pairs.collect()
}

/// What changes of the objects of other programs.
fn platform(changes: &PlatformChanges, most: usize) -> Vec<String> {
    let kinds = [
        ("create", &changes.created),
        ("change", &changes.changed),
        ("delete", &changes.deleted),
    ];
    let kinds = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let line = |(verb, names): (&str, &Vec<PlatformName>)| {
        let listed = listed(names.iter().map(ToString::to_string), most);
        format!("platform {} to {verb}: {listed}\n", names.len())
    };
    kinds.map(line).collect()
}

/// The nodes that keep their config until the new one is approved, by what that takes away.
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

/// How many waves are shown where they have many nodes each.
const WAVES: usize = 4;

fn waves(waves: &[Vec<String>]) -> String {
    let one_by_one = waves.iter().all(|wave| wave.len() == 1);
    let names = waves.iter().map(|wave| nodes_of(wave.iter()));
    let how = if one_by_one && waves.len() > 1 {
        ", one node after another"
    } else {
        ""
    };
    let mark = if one_by_one { ", " } else { " | " };
    let most = if output::is_all() {
        usize::MAX
    } else if one_by_one {
        NAMES
    } else {
        WAVES
    };
    let shown: Vec<String> = names.take(most).collect();
    let more = and_more(waves.len().saturating_sub(most));
    let number = counted(waves.len(), "wave");
    format!("{number}{how}: {}{more}", shown.join(mark))
}

/// Nodes in a few words, with their number where there are many.
fn nodes_of<'a>(nodes: impl Iterator<Item = &'a String>) -> String {
    let nodes: Vec<String> = nodes.cloned().collect();
    if output::is_all() {
        return nodes.join(", ");
    }
    let names = names::brief(&nodes, NODES);
    match nodes.len() {
        0..=3 => names,
        number => format!("{names} ({})", counted(number, "node")),
    }
}

/// Names in a row; the last ones are only counted.
pub(super) fn listed(names: impl Iterator<Item = String>, most: usize) -> String {
    let most = if output::is_all() { usize::MAX } else { most };
    let names: Vec<String> = names.collect();
    let more = and_more(names.len().saturating_sub(most));
    let shown: Vec<String> = names.into_iter().take(most).collect();
    format!("{}{more}", shown.join(", "))
}

pub(super) fn and_more(number: usize) -> String {
    match number {
        0 => String::new(),
        number => format!(" and {number} more"),
    }
}

/// Up to how many lines a plan is shown whole.
const SMALL: usize = 24;

/// The changes of a group of nodes, by the objects that they come from.
fn of_group(plan: &Plan, (group, lines): &Lines<'_>, most: usize) -> String {
    let names = nodes_of(group.nodes.iter());
    let mut lines: Vec<&Line> = lines.iter().collect();
    if lines.len() > most {
        // What disturbs is never among those that are only counted.
        lines.sort_by_key(|line| std::cmp::Reverse(line.gravity));
    }
    let is_grave = |line: &&&Line| line.gravity > Gravity::Withdrawal;
    let grave = lines.iter().filter(is_grave).count();
    let most = most.max(grave.min(most.saturating_mul(2)));
    let mut text = vec![format!("{}\n", styled(Style::Bold, &names))];
    let mut causes: Vec<(String, Vec<&Line>)> = Vec::new();
    for line in lines.iter().copied().take(most) {
        let cause = because(&plan.edits, &line.behind);
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, lines)) => lines.push(line),
            None => causes.push((cause, vec![line])),
        }
    }
    for (cause, lines) in causes {
        if !cause.is_empty() {
            let line = format!("  because of {cause}");
            text.push(format!("{}\n", styled(Style::Dim, &line)));
        }
        for line in lines {
            let (sign, style) = sign(line.kind);
            let line = styled(style, &format!("    {sign} {}", line.text));
            text.push(format!("{line}\n"));
        }
    }
    if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
        text.push(format!(
            "    and {}; --all shows them\n",
            counted(more, "more change")
        ));
    }
    text.push("\n".to_owned());
    text.concat()
}

/// The groups of a plan: all of a small one, else the first, and how many more there are.
fn of_groups(plan: &Plan, groups: &[Lines<'_>], limits: Limits) -> Vec<String> {
    let size = |(_, lines): &Lines<'_>| lines.len();
    let lines: usize = groups.iter().map(|group| size(group) + 3).sum();
    if output::is_all() || lines <= SMALL {
        let groups = groups.iter();
        return groups.map(|one| of_group(plan, one, usize::MAX)).collect();
    }
    let mut text: Vec<String> = groups
        .iter()
        .take(limits.groups)
        .map(|one| of_group(plan, one, limits.changes))
        .collect();
    let rest = groups.get(limits.groups..).unwrap_or_default();
    let nodes: Vec<&String> = rest.iter().flat_map(|(group, _)| &group.nodes).collect();
    if !nodes.is_empty() {
        let names = nodes_of(nodes.into_iter());
        let what = match rest {
            [one] => counted(size(one), "change"),
            groups => {
                let sizes = groups.iter().map(size);
                let (least, most) = (sizes.clone().min(), sizes.max());
                let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
                let range = if least == most {
                    counted(most, "change")
                } else {
                    format!("{least} to {most} changes")
                };
                format!("{} groups of nodes with {range} each", groups.len())
            }
        };
        let names = styled(Style::Bold, &names);
        text.push(format!("{names}\n    {what}; --all shows them\n\n"));
    }
    text
}

/// A change as it is shown, or several that differ in a prefix only.
struct Line {
    kind: ChangeKind,
    text: String,
    gravity: Gravity,
    behind: Vec<Cause>,
}

/// How much a change disturbs what runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gravity {
    #[default]
    None,
    /// It takes routes away.
    Withdrawal,
    /// It closes a session.
    Reset,
    /// It rebuilds a part of the data plane.
    Rebuild,
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
            gravity: gravity(change),
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
                    gravity: gravity(first),
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
    Some(format!("{:?} {head}{}", change.kind, mark(change)))
}

/// The gravity of the gravest effect of a change.
fn gravity(change: &Change) -> Gravity {
    let worst = change.effects.iter().map(|effect| effect.disruption).max();
    match worst {
        Some(Disruption::Rebuild) => Gravity::Rebuild,
        Some(Disruption::SessionReset) => Gravity::Reset,
        _ if change.withdraws => Gravity::Withdrawal,
        Some(Disruption::None | Disruption::Additive) | None => Gravity::None,
    }
}

/// The mark of a change that disturbs what runs.
fn mark(change: &Change) -> String {
    match gravity(change) {
        Gravity::Rebuild => format!(" [{}]", Disruption::Rebuild),
        Gravity::Reset => format!(" [{}]", Disruption::SessionReset),
        Gravity::Withdrawal => " [route withdrawn]".to_owned(),
        Gravity::None => String::new(),
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

/// The objects that a change comes from, with their fields: those that the user has changed, where they are behind it; else those that
/// request it.
fn because(edits: &[Edit], behind: &[Cause]) -> String {
    let fields = || behind.iter().flat_map(|cause| &cause.fields);
    let is_requester = |edit: &Edit| behind.iter().any(|cause| cause.by == edit.object);
    let is_object = |edit: &Edit| fields().any(|field| field.object == edit.object);
    let has_field = |edit: &Edit| {
        fields().any(|field| {
            let is_part = |path: &String| {
                path.starts_with(&field.path) || field.path.starts_with(path.as_str())
            };
            field.object == edit.object && edit.fields.keys().any(is_part)
        })
    };
    let tests: [&dyn Fn(&Edit) -> bool; 3] = [&has_field, &is_requester, &is_object];
    let edited = tests.into_iter().find_map(|is_behind| {
        let found: Vec<&Edit> = edits.iter().filter(|edit| is_behind(edit)).collect();
        (!found.is_empty()).then_some(found)
    });
    if let Some(edited) = edited {
        let texts = edited.into_iter().map(|edit| {
            let fields: BTreeSet<&str> = edit.fields.keys().map(|path| short(path)).collect();
            let fields: Vec<&str> = fields.into_iter().collect();
            if fields.is_empty() {
                edit.object.to_string()
            } else {
                format!("{} ({})", edit.object, fields.join(" "))
            }
        });
        return listed(texts, OBJECTS);
    }
    let by: BTreeSet<String> = behind.iter().map(|cause| cause.by.to_string()).collect();
    listed(by.into_iter(), OBJECTS)
}

/// The field of the spec that a path leads through.
fn short(path: &str) -> &str {
    let path = path.strip_prefix("spec.").unwrap_or(path);
    path.split(['.', '[']).next().unwrap_or(path)
}
