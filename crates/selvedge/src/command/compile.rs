//! `selvedge compile`

use std::sync::Arc;

use anyhow::bail;
use compiler::{
    Compilation, Kind, ObjectRef, Snapshot, Status, compile, lower::LowLevelObject, revision,
};
use explain::why_not::similar;
use serde::Serialize;
use serde_json::{Value, json};

use super::problems;
use crate::{
    args::{Compile, Format, What},
    input::World,
    output::{self, Verdict},
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
        (What::All, Format::Table) => {
            output::text(&summary(&compilation));
            problems::show(Format::Table, &world, &compilation)?;
        }
        (what, format) => {
            if format == Format::Table {
                problems::show(Format::Table, &world, &compilation)?;
            }
            output::documents(format, &documents(what, &world, &compilation))?;
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
    let names = || compilation.nodes.keys().map(String::as_str);
    let similar = similar(node, names());
    let known = match similar.as_slice() {
        [] => names().take(10).map(str::to_owned).collect(),
        similar => similar.to_vec(),
    };
    match known.as_slice() {
        [] => format!(
            "there is no Node {node:?}, nor any other, in the input; add Node objects to it"
        ),
        known => format!(
            "there is no Node {node:?} in the input; it has {}",
            known.join(", ")
        ),
    }
}

pub(super) fn documents(what: What, world: &World, compilation: &Compilation) -> Vec<Value> {
    let all = what == What::All;
    let mut documents = Vec::new();
    if all || what == What::Lowlevel {
        documents.extend(compilation.objects.iter().map(low_level));
    }
    if all || what == What::Revision {
        let name = revision::object_name(&compilation.revision.fingerprint);
        documents.push(object(
            Kind::NetworkConfigRevision,
            &name,
            &compilation.revision.spec(&compilation.objects),
        ));
    }
    if all || what == What::Nodes {
        for (node, config) in &compilation.nodes {
            let spec = config.spec(&compilation.revision.fingerprint);
            documents.push(object(Kind::NodeNetworkConfig, node, &spec));
        }
    }
    if all || what == What::Platform {
        let platform = compilation.platform.values();
        documents.extend(platform.map(|object| object.manifest()));
    }
    if all || what == What::Status {
        documents.extend(statuses(&world.snapshot));
    }
    if all {
        documents.extend(problems::values(world, &compilation.problems));
    }
    documents
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

fn statuses(snapshot: &Snapshot) -> Vec<Value> {
    let statuses = compiler::statuses(snapshot);
    let write = |(subject, status): (&ObjectRef, &Arc<Status>)| {
        json!({
            "apiVersion": subject.kind.api_version(),
            "kind": subject.kind.to_string(),
            "metadata": {"name": subject.key.name},
            "status": status.to_value(),
        })
    };
    statuses.iter().map(write).collect()
}

pub(super) fn summary(compilation: &Compilation) -> String {
    let rows: Vec<Vec<String>> = compilation
        .nodes
        .iter()
        .map(|(node, config)| {
            let underlay = config.underlay.as_ref();
            let vtep = underlay
                .and_then(|underlay| underlay.vtep)
                .map(|vtep| vtep.to_string());
            let vrfs: Vec<&str> = config
                .shared
                .fabric_vrfs
                .keys()
                .map(String::as_str)
                .collect();
            let vlans: Vec<&str> = config.shared.layer2s.keys().map(String::as_str).collect();
            let or_none = |text: String| {
                if text.is_empty() {
                    "–".to_owned()
                } else {
                    text
                }
            };
            vec![
                node.clone(),
                underlay.map_or_else(
                    || "–".to_owned(),
                    |underlay| underlay.fabric.asn.to_string(),
                ),
                or_none(vtep.unwrap_or_default()),
                or_none(vrfs.join(" ")),
                or_none(vlans.join(" ")),
            ]
        })
        .collect();
    let low_level = compilation.objects.iter().count();
    let generated = compilation.objects.iter();
    let generated = generated.filter(|object| object.is_generated()).count();
    format!(
        "revision {}   {} low-level objects, {generated} of them generated   {} nodes\n\n{}",
        revision::object_name(&compilation.revision.fingerprint),
        low_level,
        compilation.nodes.len(),
        output::table(&["NODE", "ASN", "VTEP", "VRFS", "VLANS"], &rows),
    )
}
