//! `selvedge compile`

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use anyhow::bail;
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
    let room = output::width().map_or(usize::MAX, |width| (width / 2).max(NODES));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for ((kind, state), names) in kinds {
        let number = names.len().to_string();
        if output::is_all() {
            let each = names.into_iter();
            rows.extend(each.map(|name| vec![kind.clone(), name, "1".to_owned(), state.clone()]));
        } else {
            rows.push(vec![kind, names::brief(&names, room), number, state]);
        }
    }
    let head = [
        ("KIND", output::Column::Whole),
        ("NAMES", output::Column::Wrapped),
        ("COUNT", output::Column::Whole),
        ("STATE", output::Column::Wrapped),
    ];
    format!(
        "{}\n-o yaml and -o json print the whole objects\n",
        output::table_of(&head, &rows)
    )
}

/// The conditions of an object that are not true, or that all are; nothing of an object without a status.
fn state(document: &Value) -> String {
    let Some(status) = document.get("status") else {
        let source = document.pointer("/metadata/annotations/selvedge.dev~1generated-from");
        let kind = source
            .and_then(Value::as_str)
            .and_then(|source| source.split_once('/'));
        return kind.map_or_else(|| "–".to_owned(), |(kind, _)| format!("from {kind}"));
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
        ([], 0) => "–".to_owned(),
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
    let mut shapes: BTreeMap<Shape<'_>, Members> = BTreeMap::new();
    for (node, config) in &compilation.nodes {
        let mut shape = Shape::of(config);
        if output::is_all() {
            shape.node = Some(node);
        }
        let members = shapes.entry(shape).or_default();
        members.names.push(node.clone());
        let underlay = config.underlay.as_ref();
        members
            .vteps
            .extend(underlay.and_then(|underlay| underlay.vtep));
    }
    let mut shapes: Vec<(Shape<'_>, Members)> = shapes.into_iter().collect();
    shapes.sort_by(|(_, one), (_, other)| one.names.cmp(&other.names));
    // Each form is shorter; the first that fits the screen is shown.
    let width = output::width().unwrap_or(usize::MAX);
    let rows = |step: Step| -> Vec<Vec<String>> {
        let rows = shapes
            .iter()
            .map(|(shape, members)| row(shape, members, step));
        rows.collect()
    };
    let fits = |step: &Step| output::table_width(&HEAD, &rows(*step)) <= width;
    let step = Step::ALL.into_iter().find(fits).unwrap_or(Step::Short);
    let low_level = compilation.objects.iter().count();
    let generated = compilation.objects.iter();
    let generated = generated.filter(|object| object.is_generated()).count();
    let head = format!(
        "revision {}   {}, {generated} generated   {}",
        revision::object_name(&compilation.revision.fingerprint),
        output::counted(low_level, "low-level object"),
        output::counted(compilation.nodes.len(), "node"),
    );
    format!(
        "{}\n\n{}",
        output::wrapped(&head, 2),
        output::table(&HEAD, &rows(step)),
    )
}

const HEAD: [&str; 6] = ["NODES", "COUNT", "ASN", "VTEP", "VRFS", "VLANS"];

/// The columns of nodes where the screen is narrow.
const NODES: usize = 24;

/// How much of a row is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    All,
    FewVrfs,
    FewNodes,
    FirstVtep,
    Short,
}

impl Step {
    const ALL: [Self; 5] = [
        Self::All,
        Self::FewVrfs,
        Self::FewNodes,
        Self::FirstVtep,
        Self::Short,
    ];
}

fn row(shape: &Shape<'_>, members: &Members, step: Step) -> Vec<String> {
    let nodes = if step >= Step::FewNodes {
        names::brief(&members.names, NODES)
    } else {
        names::folded(&members.names)
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
        [first, _, .., last] if step >= Step::Short => format!("{first} … {last}"),
        ranges => ranges.join(" "),
    };
    let vrfs = match step {
        Step::All => usize::MAX,
        Step::FewVrfs => 24,
        Step::FewNodes | Step::FirstVtep => 16,
        Step::Short => 10,
    };
    vec![
        nodes,
        members.names.len().to_string(),
        or_none(shape.asn.clone()),
        or_none(members.vteps(step < Step::FirstVtep)),
        or_none(output::fitted(&shape.vrfs, vrfs)),
        or_none(vlans),
    ]
}

/// What makes nodes alike.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shape<'a> {
    asn: String,
    vrfs: Vec<String>,
    vlans: Vec<String>,
    /// The node itself, where each is wanted.
    node: Option<&'a String>,
}

impl Shape<'_> {
    fn of(config: &NodeConfig) -> Self {
        let asn = config
            .underlay
            .as_ref()
            .map(|underlay| underlay.fabric.asn.to_string());
        Self {
            asn: asn.unwrap_or_default(),
            vrfs: config.shared.fabric_vrfs.keys().cloned().collect(),
            vlans: config.shared.layer2s.keys().cloned().collect(),
            node: None,
        }
    }
}

/// Nodes that are alike.
#[derive(Default)]
struct Members {
    names: Vec<String>,
    vteps: BTreeSet<IpAddr>,
}

impl Members {
    /// The tunnel endpoints: the first, and the last if the width allows it.
    fn vteps(&self, has_room: bool) -> String {
        match (self.vteps.first(), self.vteps.last()) {
            (Some(first), Some(last)) if first != last && has_room => format!("{first}–{last}"),
            (Some(first), Some(last)) if first != last => format!("{first}…"),
            (Some(one), _) => one.to_string(),
            (None, _) => String::new(),
        }
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "–".to_owned()
    } else {
        text
    }
}
