//! `selvedge compile`

use std::{collections::BTreeMap, sync::Arc};

use anyhow::bail;
use compiler::{
    Compilation, Kind, compile,
    lower::{LowLevel, LowLevelObjects},
    revision,
    status::{self, Statuses},
};
use explain::why_not::similar;
use serde::Serialize;
use serde_json::{Value, json};

use super::problems;
use crate::{
    args::{Compile, Format, What},
    input::{self, World},
    output::{self, Verdict},
};

pub(super) fn run(args: &Compile) -> anyhow::Result<Verdict> {
    let world = input::read(&args.input.paths)?;
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
        documents.extend(lowlevel(
            Kind::Layer2NetworkConfiguration,
            &compilation.lowered.layer2,
        ));
        documents.extend(lowlevel(
            Kind::VrfRouteConfiguration,
            &compilation.lowered.vrf,
        ));
        documents.extend(lowlevel(Kind::BgpPeering, &compilation.lowered.bgp));
        documents.extend(lowlevel(
            Kind::MirrorTarget,
            &compilation.lowered.mirror_targets,
        ));
        documents.extend(lowlevel(
            Kind::MirrorSelector,
            &compilation.lowered.mirror_selectors,
        ));
    }
    if all || what == What::Revision {
        let name = revision::object_name(&compilation.revision.fingerprint);
        documents.push(object(
            Kind::NetworkConfigRevision,
            &name,
            &compilation.revision.spec(),
        ));
    }
    if all || what == What::Nodes {
        for (node, config) in &compilation.nodes {
            let spec = config.spec(&compilation.revision.fingerprint);
            documents.push(object(Kind::NodeNetworkConfig, node, &spec));
        }
    }
    if all || what == What::Platform {
        let platform = compilation.platform.iter();
        documents.extend(platform.map(|object| object.manifest()));
    }
    if all || what == What::Status {
        documents.extend(statuses(&status::fold(
            &world.snapshot,
            compilation,
            &BTreeMap::new(),
        )));
    }
    if all {
        documents.extend(problems::values(world, compilation));
    }
    documents
}

fn object<S: Serialize>(kind: Kind, name: &str, spec: &S) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name}, "spec": spec})
}

fn lowlevel<S: Serialize>(kind: Kind, objects: &LowLevelObjects<S>) -> Vec<Value> {
    let write = |(name, low): (&String, &Arc<LowLevel<S>>)| {
        let mut value = object(kind, name, &low.spec);
        if low.is_generated()
            && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert(
                "annotations".to_owned(),
                json!({"selvedge.dev/generated-from": low.source}),
            );
        }
        value
    };
    objects.iter().map(write).collect()
}

fn statuses(statuses: &Statuses) -> Vec<Value> {
    let write = |(subject, status): (&compiler::ObjectRef, &Value)| {
        json!({
            "apiVersion": subject.kind.api_version(),
            "kind": subject.kind.to_string(),
            "metadata": {"name": subject.key.name},
            "status": status,
        })
    };
    statuses.0.iter().map(write).collect()
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
                underlay.map_or_else(|| "–".to_owned(), |underlay| underlay.asn.to_string()),
                or_none(vtep.unwrap_or_default()),
                or_none(vrfs.join(" ")),
                or_none(vlans.join(" ")),
            ]
        })
        .collect();
    let lowered = &compilation.lowered;
    let counts = [
        counts(&lowered.layer2),
        counts(&lowered.vrf),
        counts(&lowered.bgp),
        counts(&lowered.mirror_targets),
        counts(&lowered.mirror_selectors),
    ];
    let low_level: usize = counts.iter().map(|(all, _)| all).sum();
    let generated: usize = counts.iter().map(|(_, generated)| generated).sum();
    format!(
        "revision {}   {} low-level objects, {generated} of them generated   {} nodes\n\n{}",
        revision::object_name(&compilation.revision.fingerprint),
        low_level,
        compilation.nodes.len(),
        output::table(&["NODE", "ASN", "VTEP", "VRFS", "VLANS"], &rows),
    )
}

/// How many objects there are, and how many of them are generated.
fn counts<S>(objects: &LowLevelObjects<S>) -> (usize, usize) {
    let generated = objects.values().filter(|object| object.is_generated());
    (objects.len(), generated.count())
}
