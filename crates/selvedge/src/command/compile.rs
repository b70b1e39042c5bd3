//! `selvedge compile`

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    net::IpAddr,
    sync::Arc,
};

use anyhow::bail;
use api::value::Asn;
use compiler::{
    Compilation, Kind, NodeConfig, ObjectRef, Snapshot, Status, compile, lower::LowLevelObject,
    revision,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::problems;
use crate::{
    args::{Compile, Format, What},
    input::World,
    names,
    output::{self, Verdict},
    suggest::nearest,
};

pub(super) fn run(args: &Compile) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let mut compilation = compile(&world.snapshot);
    if let Some(node) = &args.node {
        if !compilation.nodes.contains_key(node) {
            bail!("{}", unknown_node(node, &compilation));
        }
        compilation.nodes.retain(|name, _| name == node);
    }
    let has_errors = compilation.has_errors() || !world.unknown.is_empty();
    match (args.what, args.output) {
        (What::Problems, Format::Table) if is_sound(&world, &compilation) => {
            output::text("no errors and no warnings\n");
        }
        (What::Problems, format) => {
            problems::show(format, &world, &compilation)?;
        }
        (What::All | What::Nodes, Format::Table) => {
            let summary = output::wrapped(&summary(&compilation), 2);
            output::text(&output::capped(&summary, output::ROWS - 1));
            problems::show(Format::Table, &world, &compilation)?;
        }
        (what, Format::Table) => {
            problems::show(Format::Table, &world, &compilation)?;
            let documents = documents(what, &world, &compilation);
            output::text(&output::capped(&list(documents), output::ROWS - 1));
        }
        (what, format) => {
            // Programs read the output; what is missing from it is said to people.
            problems::beside(&world, &compilation);
            output::stream(format, documents(what, &world, &compilation))?;
        }
    }
    if let Some(line) = world.passed_over() {
        output::note(&line);
    }
    Ok(if has_errors {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}

/// Whether there is nothing to say about any object.
fn is_sound(world: &World, compilation: &Compilation) -> bool {
    compilation.problems.is_empty() && world.unknown.is_empty()
}

/// What to say about a node that is not in the input.
pub(super) fn unknown_node(node: &str, compilation: &Compilation) -> String {
    if let Some(near) = nearest(node, compilation.nodes.keys().map(String::as_str)) {
        return format!("no Node {node:?} in the input; did you mean {near}?");
    }
    let names: Vec<String> = compilation.nodes.keys().cloned().collect();
    match names.as_slice() {
        [] => format!("no Node {node:?} in the input, nor any other; add Node objects to it"),
        names => {
            let shown = names::brief(names, 200);
            format!("no Node {node:?} in the input; the nodes are {shown}")
        }
    }
}

/// Documents by kind and name, with the state of those that have one, or the intent that they come from; those of one kind that are alike
/// in this are one row.
fn list(documents: impl Iterator<Item = Value>) -> String {
    let mut kinds: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for document in documents {
        let text = |path: &str| document.pointer(path).and_then(Value::as_str);
        let kind = text("/kind").unwrap_or_default().to_owned();
        let name = text("/metadata/name").unwrap_or_default();
        let name = match text("/metadata/namespace") {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        let names = kinds.entry((kind, state(&document))).or_default();
        names.push(name);
    }
    // What the other columns leave: a name is cut at its end rather than broken.
    let longest =
        |texts: &mut dyn Iterator<Item = &str>| texts.map(|one| one.chars().count()).max();
    let of_kinds = longest(&mut kinds.keys().map(|(kind, _)| kind.as_str()));
    let of_states = longest(&mut kinds.keys().flat_map(|(_, state)| state.split(' ')));
    let others =
        of_kinds.unwrap_or_default() + of_states.unwrap_or_default() + "COUNT".len() + GAPS;
    let room = output::width().map_or(usize::MAX, |width| width.saturating_sub(others).max(NODES));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ((kind, state), names) in kinds {
        let number = names.len().to_string();
        if output::is_all() {
            let each = names.into_iter();
            rows.extend(each.map(|name| vec![kind.clone(), name, "1".to_owned(), state.clone()]));
        } else {
            let names = names::in_lines(&names, room, NAMES);
            rows.push(vec![kind, names, number, state]);
        }
    }
    let mut head = vec![
        ("KIND", output::Column::Whole),
        ("NAMES", output::Column::Wrapped),
        ("COUNT", output::Column::Whole),
    ];
    let has_state = |row: &Vec<String>| row.last().is_some_and(|state| state != NO_STATE);
    if rows.iter().any(has_state) {
        head.push(("STATE", output::Column::Wrapped));
    } else {
        for row in &mut rows {
            row.truncate(head.len());
        }
    }
    format!(
        "{}\n-o yaml and -o json print the whole objects\n",
        output::table_of(&head, &rows)
    )
}

/// The columns between those of a list, and the comma behind a name.
const GAPS: usize = 7;
/// How many lines the names of a row take.
const NAMES: usize = 2;
/// The state of an object that has none.
const NO_STATE: &str = "–";

/// The conditions of an object that are not true, or that all are; nothing of an object without a status.
fn state(document: &Value) -> String {
    let Some(status) = document.get("status") else {
        let source = document.pointer("/metadata/annotations/selvedge.dev~1generated-from");
        let kind = source
            .and_then(Value::as_str)
            .and_then(|source| source.split_once('/'));
        return kind.map_or_else(|| NO_STATE.to_owned(), |(kind, _)| format!("from {kind}"));
    };
    let conditions = status.get("conditions").and_then(Value::as_array);
    let of =
        |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let conditions = conditions.into_iter().flatten();
    let wrong: Vec<String> = conditions
        .clone()
        .filter(|condition| condition["status"] != "True")
        .map(|condition| format!("{}: {}", of(condition, "type"), of(condition, "reason")))
        .collect();
    match (wrong.as_slice(), conditions.count()) {
        ([], 0) => NO_STATE.to_owned(),
        ([], _) => "all conditions true".to_owned(),
        (wrong, _) => wrong.join(", "),
    }
}

/// The documents of a compilation, each made when it is asked for.
pub(super) fn documents<'a>(
    what: What,
    world: &'a World,
    compilation: &'a Compilation,
) -> impl Iterator<Item = Value> + 'a {
    let is = |part: What| what == What::All || what == part;
    let of = |wanted: bool| wanted.then_some(compilation).into_iter();
    let low_levels = of(is(What::Lowlevel)).flat_map(|all| all.objects.iter().map(low_level));
    let revision = of(is(What::Revision)).map(|all| {
        let name = revision::object_name(&all.revision.fingerprint);
        let spec = all.revision.spec(&all.objects);
        object(Kind::NetworkConfigRevision, &name, &spec)
    });
    let nodes = of(is(What::Nodes)).flat_map(|all| {
        all.nodes.iter().map(|(node, config)| {
            let spec = config.spec(&all.revision.fingerprint);
            object(Kind::NodeNetworkConfig, node, &spec)
        })
    });
    let platform = of(is(What::Platform))
        .flat_map(|all| all.platform.values().map(|object| object.manifest()));
    let statuses = of(is(What::Status)).flat_map(|_| statuses(&world.snapshot));
    let problems = of(what == What::All).flat_map(|all| problems::values(world, &all.problems));
    low_levels
        .chain(revision)
        .chain(nodes)
        .chain(platform)
        .chain(statuses)
        .chain(problems)
}

fn object<S: Serialize>(kind: Kind, name: &str, spec: &S) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name}, "spec": spec})
}

fn low_level(low: &LowLevelObject) -> Value {
    let mut value = object(low.kind(), low.name(), &low.spec());
    if low.is_generated()
        && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert(
            "annotations".to_owned(),
            json!({"selvedge.dev/generated-from": low.source()}),
        );
    }
    value
}

/// Its name, and its namespace if it has one.
fn metadata(subject: &ObjectRef) -> Value {
    let name = &subject.key.name;
    match &subject.key.namespace {
        Some(namespace) => json!({"name": name, "namespace": namespace}),
        None => json!({"name": name}),
    }
}

fn statuses(snapshot: &Snapshot) -> Vec<Value> {
    let statuses = compiler::statuses(snapshot);
    let write = |(subject, status): (&ObjectRef, &Arc<Status>)| {
        json!({
            "apiVersion": subject.kind.api_version(),
            "kind": subject.kind.to_string(),
            "metadata": metadata(subject),
            "status": status.to_value(),
        })
    };
    statuses.iter().map(write).collect()
}

/// The nodes of a compilation; those that are alike are one row.
pub(super) fn summary(compilation: &Compilation) -> String {
    let low_level = compilation.objects.iter().count();
    let generated = compilation.objects.iter();
    let generated = generated.filter(|object| object.is_generated()).count();
    let head = format!(
        "revision {}   {}, {generated} generated   {}",
        revision::object_name(&compilation.revision.fingerprint),
        output::counted(low_level, "low-level object"),
        output::counted(compilation.nodes.len(), "node"),
    );
    format!("{}\n\n{}", output::wrapped(&head, 2), nodes(compilation))
}

/// The table of nodes: each form is shorter, and the first that fits the screen is taken.
fn nodes(compilation: &Compilation) -> String {
    let width = output::width().unwrap_or(usize::MAX);
    let by_asn = shapes(compilation, false);
    let of_any_asn = shapes(compilation, true);
    let rows = |form: Form| -> Vec<Vec<String>> {
        let shapes = if form.is_of_any_asn() {
            &of_any_asn
        } else {
            &by_asn
        };
        let rows = shapes.iter();
        rows.map(|(shape, members)| row(shape, members, form))
            .collect()
    };
    let table = |form: Form| output::table_of(&form.head(), &rows(form));
    let fits = |form: &Form| {
        let rows = rows(*form);
        let head: Vec<&str> = form.head().into_iter().map(|(name, _)| name).collect();
        let is_wide = || output::table_width(&head, &rows) > width;
        let is_long = rows.len() >= LINES
            || form.wraps() && output::table_of(&form.head(), &rows).lines().count() > LINES;
        output::is_all() || !is_long && (form.wraps() || !is_wide())
    };
    table(Form::ALL.into_iter().find(fits).unwrap_or(Form::Short))
}

/// The lines of a screen that the table of nodes may take.
const LINES: usize = output::ROWS - 3;

/// The nodes of each shape, by their first names.
fn shapes(compilation: &Compilation, is_of_any_asn: bool) -> Vec<(Shape<'_>, Members)> {
    // Nodes that share their config differ in nothing else.
    let mut alike: BTreeMap<_, (&NodeConfig, Members)> = BTreeMap::new();
    for (node, config) in &compilation.nodes {
        let fabric = config.underlay.as_ref();
        let asn = fabric.map(|underlay| underlay.fabric.asn);
        let key = (
            Arc::as_ptr(&config.shared),
            asn.filter(|_| !is_of_any_asn),
            output::is_all().then_some(node),
        );
        let known = alike.entry(key);
        let (_, members) = known.or_insert_with(|| (config, Members::default()));
        members.names.push(node.clone());
        members.asns.extend(asn);
        members
            .vteps
            .extend(fabric.and_then(|underlay| underlay.vtep));
    }
    let mut shapes: BTreeMap<Shape<'_>, Members> = BTreeMap::new();
    for ((_, asn, node), (config, members)) in alike {
        let shape = Shape {
            asn,
            vrfs: config.shared.fabric_vrfs.keys().cloned().collect(),
            vlans: config.shared.layer2s.keys().cloned().collect(),
            node,
        };
        let known = shapes.entry(shape).or_default();
        known.names.extend(members.names);
        known.asns.extend(members.asns);
        known.vteps.extend(members.vteps);
    }
    let mut shapes: Vec<(Shape<'_>, Members)> = shapes.into_iter().collect();
    for (_, members) in &mut shapes {
        members.names.sort();
    }
    shapes.sort_by(|(_, one), (_, other)| one.names.cmp(&other.names));
    shapes
}

/// The columns of nodes where the screen is narrow.
const NODES: usize = 24;
/// The same where a row may take several lines.
const WIDE_NODES: usize = 28;
/// How many lines they take there.
const FOLDS: usize = 3;

/// How the table of nodes is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// Everything, each row a line.
    All,
    /// The last VRFs are only counted.
    FewVrfs,
    /// The names of nodes are shortened.
    FewNodes,
    /// Everything but the VTEPs; rows that differ in the AS number only are one, and lists go on in further lines.
    AnyAsn,
    /// The same, with the last VRFs only counted.
    AnyAsnFewVrfs,
    /// Each row a line, with what it takes left out.
    Short,
}

impl Form {
    const ALL: [Self; 6] = [
        Self::All,
        Self::FewVrfs,
        Self::FewNodes,
        Self::AnyAsn,
        Self::AnyAsnFewVrfs,
        Self::Short,
    ];

    /// Whether nodes with different AS numbers are one row.
    fn is_of_any_asn(self) -> bool {
        self >= Self::AnyAsn
    }

    /// Whether a row may take several lines.
    fn wraps(self) -> bool {
        matches!(self, Self::AnyAsn | Self::AnyAsnFewVrfs | Self::Short)
    }

    fn head(self) -> Vec<(&'static str, output::Column)> {
        use output::Column::{Whole, Wrapped};
        let nodes = if self.wraps() { Wrapped } else { Whole };
        let mut head = vec![("NODES", nodes), ("COUNT", Whole), ("ASN", Whole)];
        if !self.is_of_any_asn() {
            head.push(("VTEP", Whole));
        }
        head.extend([("VRFS", Wrapped), ("VLANS", Wrapped)]);
        head
    }
}

fn row(shape: &Shape<'_>, members: &Members, form: Form) -> Vec<String> {
    let names = match form {
        Form::All | Form::FewVrfs => names::folded(&members.names),
        Form::AnyAsn | Form::AnyAsnFewVrfs => names::in_lines(&members.names, WIDE_NODES, FOLDS),
        Form::FewNodes | Form::Short => names::brief(&members.names, NODES),
    };
    let vlans = names::folds(&shape.vlans);
    let vlans: Vec<&str> = vlans
        .iter()
        .map(|fold| fold.trim_matches(['[', ']']))
        .collect();
    let vlans = match vlans.as_slice() {
        [ranges] => ranges.split(',').collect(),
        _ => vlans,
    };
    let vlans = match vlans.as_slice() {
        [first, _, .., last] if form == Form::Short => format!("{first} … {last}"),
        ranges => ranges.join(" "),
    };
    let vrfs = match form {
        Form::All | Form::AnyAsn => usize::MAX,
        Form::FewVrfs => 24,
        Form::FewNodes | Form::AnyAsnFewVrfs => 16,
        Form::Short => 10,
    };
    let mut row = vec![
        names,
        members.names.len().to_string(),
        or_none(first_and_last(&members.asns)),
    ];
    if !form.is_of_any_asn() {
        row.push(or_none(members.vteps(form < Form::FewNodes)));
    }
    row.extend([or_none(output::fitted(&shape.vrfs, vrfs)), or_none(vlans)]);
    row
}

/// What makes nodes alike.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shape<'a> {
    asn: Option<Asn>,
    vrfs: Vec<String>,
    vlans: Vec<String>,
    /// The node itself, where each is wanted.
    node: Option<&'a String>,
}

/// Nodes that are alike.
#[derive(Default)]
struct Members {
    names: Vec<String>,
    asns: BTreeSet<Asn>,
    vteps: BTreeSet<IpAddr>,
}

impl Members {
    /// The tunnel endpoints: the first, and the last if the width allows it.
    fn vteps(&self, has_room: bool) -> String {
        match (self.vteps.first(), self.vteps.last()) {
            (Some(first), Some(last)) if first != last && !has_room => format!("{first}…"),
            _ => first_and_last(&self.vteps),
        }
    }
}

/// The first and the last of several values.
fn first_and_last<T: Display + Ord>(values: &BTreeSet<T>) -> String {
    match (values.first(), values.last()) {
        (Some(first), Some(last)) if first != last => format!("{first}–{last}"),
        (Some(one), _) => one.to_string(),
        (None, _) => String::new(),
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "–".to_owned()
    } else {
        text
    }
}
