//! `selvedge reach`: which attachments and services reach which attachments and Destinations, and through which VRF.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use api::tcaas::{Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec};
use compiler::{Compilation, Kind, ObjectRef, Snapshot};
use explain::{provenance::Trace, running::Running, why_not};
use serde_json::{Value, json};

use super::{compile::unknown_node, problems};
use crate::{
    args::{Format, Reach},
    input, names,
    output::{self, Column, Style, Verdict, counted, styled},
};

pub(super) fn run(args: &Reach) -> anyhow::Result<Verdict> {
    let stored = super::stored(&args.input)?;
    let before = input::read_over(&args.input.paths, std::sync::Arc::clone(&stored))?;
    anyhow::ensure!(
        !before.is_empty(),
        "{}",
        super::nothing_in(&args.input.paths)
    );
    // Only a change needs to know what is stored.
    let old = if args.to.is_empty() {
        Running::as_it_is(before.snapshot.clone())
    } else {
        Running::new(&before.snapshot)
    };
    let ways = Ways::of(&old.snapshot, &old.compilation, args.node.as_deref())?;
    if args.to.is_empty() {
        let verdict = problems::beside(&before, &old.compilation);
        print(args.output, &ways)?;
        return Ok(verdict);
    }
    let after = input::read_over(&args.to, stored)?;
    let new = old.after(&after.snapshot);
    let verdict = problems::beside(&after, &new.compilation);
    let then = Ways::of(&new.snapshot, &new.compilation, args.node.as_deref())?;
    compare(args.output, &ways, &then)?;
    Ok(verdict)
}

/// What reaches what.
#[derive(Default)]
struct Ways {
    /// For each attachment and service what it reaches, each with the VRF.
    of: BTreeMap<ObjectRef, BTreeSet<(String, String)>>,
    /// The nodes that each attachment and service is on.
    nodes: BTreeMap<String, BTreeSet<String>>,
    /// The prefixes of each Destination that is reached.
    prefixes: BTreeMap<String, BTreeSet<String>>,
}

impl Ways {
    fn of(
        snapshot: &Snapshot,
        compilation: &Compilation,
        node: Option<&str>,
    ) -> anyhow::Result<Self> {
        if let Some(node) = node.filter(|node| !compilation.nodes.contains_key(*node)) {
            bail!("{}", unknown_node(node, compilation));
        }
        let mut ways = Self {
            nodes: places(compilation, node),
            ..Self::default()
        };
        let trace = Trace::new(snapshot, compilation);
        for (from, reached) in why_not::ways(&trace, node) {
            let of = ways.of.entry(from).or_default();
            for (to, vrf) in reached {
                if let Some(destination) = snapshot.destinations.get(&to.key)
                    && to.kind == Kind::Destination
                {
                    let prefixes = destination.spec.prefixes.iter();
                    let prefixes = prefixes.map(ToString::to_string).collect();
                    ways.prefixes.insert(to.key.name.to_string(), prefixes);
                }
                of.insert((to.to_string(), vrf.unwrap_or_else(|| "next hop".to_owned())));
            }
        }
        Ok(ways)
    }

    /// Attachments and services that reach the same by the same VRFs, together.
    fn alike(&self) -> BTreeMap<&BTreeSet<(String, String)>, Vec<ObjectRef>> {
        let mut alike: BTreeMap<_, Vec<ObjectRef>> = BTreeMap::new();
        for (from, reached) in &self.of {
            alike.entry(reached).or_default().push(from.clone());
        }
        alike
    }
}

/// The nodes on which each attachment and service is, of all or of one.
fn places(compilation: &Compilation, node: Option<&str>) -> BTreeMap<String, BTreeSet<String>> {
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |owner: &ObjectRef, node: &String| {
        let on = places.entry(written(owner)).or_default();
        on.insert(node.clone());
    };
    let segments = compilation.objects.of::<Layer2NetworkConfigurationSpec>();
    let segments: BTreeMap<&str, &ObjectRef> = segments
        .filter(|(_, object)| object.is_generated())
        .map(|(name, object)| (&**name, &object.source))
        .collect();
    let routing = compilation.objects.of::<VrfRouteConfigurationSpec>();
    let services: BTreeMap<&str, &ObjectRef> = routing
        .filter(|(_, object)| object.is_generated())
        .map(|(name, object)| (&**name, &object.source))
        .filter(|(_, source)| source.kind != Kind::Layer2Attachment)
        .collect();
    let nodes = compilation.nodes.iter();
    for (name, config) in nodes.filter(|(name, _)| node.is_none_or(|node| node == *name)) {
        let own = config.shared.segments.iter();
        for owner in own.filter_map(|one| segments.get(one.as_str())) {
            add(owner, name);
        }
        let own = config.shared.routing.iter();
        for owner in own.filter_map(|one| services.get(one.as_str())) {
            add(owner, name);
        }
    }
    places
}

/// An attachment by its name, a service with its kind.
fn written(from: &ObjectRef) -> String {
    match from.kind {
        Kind::Layer2Attachment => from.key.to_string(),
        _ => from.to_string(),
    }
}

/// Attachments by their names and services with their kinds, in a few words.
fn listed(from: &[ObjectRef]) -> String {
    let mut kinds: BTreeMap<Kind, Vec<String>> = BTreeMap::new();
    for one in from {
        kinds.entry(one.kind).or_default().push(one.key.to_string());
    }
    let kinds = kinds.into_iter().map(|(kind, keys)| {
        let keys = names::brief(&keys, NAMES);
        match kind {
            Kind::Layer2Attachment => keys,
            _ => format!("{kind} {keys}"),
        }
    });
    kinds.collect::<Vec<_>>().join("; ")
}

/// What is reached by each VRF, in a few words.
fn by_vrf(reached: &BTreeSet<(String, String)>) -> BTreeMap<&str, String> {
    let mut vrfs: BTreeMap<&str, BTreeMap<&str, Vec<String>>> = BTreeMap::new();
    for (to, vrf) in reached {
        let (kind, name) = to.split_once(' ').unwrap_or(("", to));
        let of_vrf = vrfs.entry(vrf).or_default();
        of_vrf.entry(kind).or_default().push(name.to_owned());
    }
    let words = vrfs.into_iter().map(|(vrf, kinds)| {
        let kinds = kinds.into_iter().map(|(kind, names)| {
            let folds = names::brief(&names, NAMES);
            format!("{kind} {folds}")
        });
        (vrf, kinds.collect::<Vec<_>>().join("; "))
    });
    words.collect()
}

fn print(format: Format, ways: &Ways) -> anyhow::Result<()> {
    if format != Format::Table {
        let values = ways.of.iter().map(|(from, reached)| {
            let reached = reached.iter().map(|(to, vrf)| {
                let (kind, name) = to.split_once(' ').unwrap_or_default();
                json!({"kind": kind, "name": name, "vrf": vrf})
            });
            let reaches: Vec<Value> = reached.collect();
            json!({"from": from.key.to_string(), "fromKind": from.kind.to_string(), "reaches": reaches})
        });
        return output::stream(format, values);
    }
    if ways.of.is_empty() {
        output::text("no attachment and no service is on a node\n");
        return Ok(());
    }
    let mut rows = Vec::new();
    if output::is_all() {
        for (from, reached) in &ways.of {
            rows.extend(
                reached
                    .iter()
                    .map(|(to, vrf)| vec![written(from), vrf.clone(), to.clone()]),
            );
        }
    } else {
        for (from, to) in merged(ways) {
            for (vrf, to) in to {
                rows.push(vec![listed(&from), vrf, to]);
            }
        }
    }
    let head = [
        ("FROM", Column::Wrapped),
        ("VIA", Column::Whole),
        ("REACHES", Column::Wrapped),
    ];
    let mut table = String::new();
    if !rows.is_empty() {
        table = output::table_of(&head, &rows);
    }
    let alone = alone(ways);
    let table = output::capped(&table, output::ROWS - 1 - alone.lines().count());
    output::text(&format!("{table}{alone}"));
    Ok(())
}

/// Those that reach nothing, in a line: an answer without them would look as if they were forgotten.
fn alone(ways: &Ways) -> String {
    let alone = ways.of.iter().filter(|(_, reached)| reached.is_empty());
    let alone: Vec<ObjectRef> = alone.map(|(from, _)| from.clone()).collect();
    if alone.is_empty() {
        return String::new();
    }
    let line = format!("only inside their own segment: {}", listed(&alone));
    output::wrapped(&line, 4) + "\n"
}

/// Attachments and services that reach each other and the same besides are one row.
fn merged(ways: &Ways) -> Vec<(Vec<ObjectRef>, BTreeMap<String, String>)> {
    // From an attachment to itself there is always a way: with it, members of one VRF reach the same.
    let mut whole = Ways::default();
    for (from, reached) in &ways.of {
        let mut reached = reached.clone();
        let is_attachment = from.kind == Kind::Layer2Attachment;
        let vrfs: BTreeSet<String> = reached
            .iter()
            .filter(|(to, _)| is_attachment && to.starts_with("Layer2Attachment"))
            .map(|(_, vrf)| vrf.clone())
            .collect();
        for vrf in vrfs {
            reached.insert((from.to_string(), vrf));
        }
        whole.of.insert(from.clone(), reached);
    }
    let mut rows: Vec<(Vec<ObjectRef>, BTreeMap<String, String>)> = whole
        .alike()
        .into_iter()
        .map(|(reached, from)| {
            let vrfs = by_vrf(reached).into_iter();
            (from, vrfs.map(|(vrf, to)| (vrf.to_owned(), to)).collect())
        })
        .collect();
    rows.sort();
    rows
}

/// Prints what is reached after a change and was not before, and the other way round.
fn compare(format: Format, before: &Ways, after: &Ways) -> anyhow::Result<()> {
    let flat = |ways: &Ways| -> BTreeSet<(ObjectRef, String, String)> {
        let of = ways.of.iter();
        let of = of.flat_map(|(from, reached)| {
            reached
                .iter()
                .map(|(to, vrf)| (from.clone(), to.clone(), vrf.clone()))
        });
        of.collect()
    };
    let (old, new) = (flat(before), flat(after));
    let lost: Vec<_> = old.difference(&new).collect();
    let won: Vec<_> = new.difference(&old).collect();
    let prefixes = differences(&before.prefixes, &after.prefixes);
    let nodes = differences(&before.nodes, &after.nodes);
    if format != Format::Table {
        let value = |(from, to, vrf): &&(ObjectRef, String, String)| {
            let (kind, name) = to.split_once(' ').unwrap_or_default();
            json!({
                "from": from.key.to_string(), "fromKind": from.kind.to_string(),
                "kind": kind, "name": name, "vrf": vrf,
            })
        };
        let sets = |all: &[Difference<'_>], what: &str| -> Vec<Value> {
            let values = all
                .iter()
                .map(|one| json!({what: one.name, "added": one.added, "removed": one.removed}));
            values.collect()
        };
        let value = json!({
            "added": won.iter().map(value).collect::<Vec<_>>(),
            "removed": lost.iter().map(value).collect::<Vec<_>>(),
            "prefixes": sets(&prefixes, "destination"),
            "nodes": sets(&nodes, "attachment"),
        });
        return output::documents(format, &[value]);
    }
    let mut text = Vec::new();
    for (sign, style, ways) in [("+", Style::Green, &won), ("-", Style::Red, &lost)] {
        let mut alike: BTreeMap<(&str, &str), Vec<ObjectRef>> = BTreeMap::new();
        for (from, to, vrf) in ways {
            alike.entry((to, vrf)).or_default().push(from.clone());
        }
        for ((to, vrf), from) in alike {
            let reaches = if from.len() == 1 { "reaches" } else { "reach" };
            let from = listed(&from);
            let line = format!("{sign} {from} {reaches} {to} via {vrf}");
            text.push(format!("{}\n", styled(style, &output::wrapped(&line, 4))));
        }
    }
    let stays = |one: &&Difference<'_>| one.is_on_both_sides;
    for one in prefixes.iter().filter(stays) {
        let line = format!("~ Destination {}: {}", one.name, one.in_words());
        text.push(styled(Style::Yellow, &output::wrapped(&line, 4)) + "\n");
    }
    for one in nodes.iter().filter(stays) {
        let line = format!("~ nodes of {}: {}", one.name, one.in_words());
        text.push(styled(Style::Yellow, &output::wrapped(&line, 4)) + "\n");
    }
    let changed = prefixes.iter().chain(&nodes).filter(stays).count();
    let of_same = match changed {
        0 => String::new(),
        1 => "; other prefixes or nodes of 1 object".to_owned(),
        changed => format!("; other prefixes or nodes of {changed} objects"),
    };
    let total = format!(
        "{} added, {} removed, {} as before{of_same}",
        counted(won.len(), "path"),
        lost.len(),
        old.intersection(&new).count()
    );
    let lines = output::capped(&text.concat(), output::ROWS - 3);
    output::text(&format!("{lines}{}\n", output::wrapped(&total, 4)));
    Ok(())
}

/// How many columns names take in a row.
const NAMES: usize = 60;

/// What a name has more or less after a change.
struct Difference<'a> {
    name: &'a str,
    added: Vec<String>,
    removed: Vec<String>,
    /// Whether the name is there before and after.
    is_on_both_sides: bool,
}

impl Difference<'_> {
    fn in_words(&self) -> String {
        let parts = [("+", &self.added), ("-", &self.removed)];
        let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
        let parts = parts.map(|(sign, names)| match names.len() {
            0..=3 => format!("{sign}{}", names::brief(names, NAMES)),
            number => format!("{sign}{} ({number})", names::brief(names, NAMES)),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// What differs between two maps of sets, by name.
fn differences<'a>(
    before: &'a BTreeMap<String, BTreeSet<String>>,
    after: &'a BTreeMap<String, BTreeSet<String>>,
) -> Vec<Difference<'a>> {
    let none = BTreeSet::new();
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differences = names.into_iter().map(|name| {
        let (old, new) = (before.get(name), after.get(name));
        let is_on_both_sides = old.is_some() && new.is_some();
        let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
        Difference {
            name,
            added: new.difference(old).cloned().collect(),
            removed: old.difference(new).cloned().collect(),
            is_on_both_sides,
        }
    });
    let is_different = |one: &Difference<'_>| !one.added.is_empty() || !one.removed.is_empty();
    differences.filter(is_different).collect()
}
