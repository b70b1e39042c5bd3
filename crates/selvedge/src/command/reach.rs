//! `selvedge reach`: which attachments reach which other attachments and Destinations, and through which VRF.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use api::tcaas::Layer2NetworkConfigurationSpec;
use compiler::{Compilation, Snapshot, snapshot::Key};
use explain::running::Running;
use serde_json::json;

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
    let old = Running::new(&before.snapshot);
    let ways = Ways::of(&old.snapshot, &old.compilation, args.node.as_deref())?;
    if args.to.is_empty() {
        problems::show_beside(&before, &old.compilation);
        print(args.output, &ways)?;
        return Ok(verdict(&old.compilation));
    }
    let after = input::read_over(&args.to, stored)?;
    let new = old.after(&after.snapshot);
    problems::show_beside(&after, &new.compilation);
    let then = Ways::of(&new.snapshot, &new.compilation, args.node.as_deref())?;
    compare(args.output, &ways, &then)?;
    Ok(verdict(&new.compilation))
}

fn verdict(compilation: &Compilation) -> Verdict {
    if compilation.has_errors() {
        Verdict::Problems
    } else {
        Verdict::Fine
    }
}

/// What reaches what.
#[derive(Default)]
struct Ways {
    /// For each attachment what it reaches, each with the VRF.
    of: BTreeMap<String, BTreeSet<(String, String)>>,
}

impl Ways {
    fn of(
        snapshot: &Snapshot,
        compilation: &Compilation,
        node: Option<&str>,
    ) -> anyhow::Result<Self> {
        let config = match node {
            Some(node) => match compilation.nodes.get(node) {
                Some(config) => Some(config),
                None => bail!("{}", unknown_node(node, compilation)),
            },
            None => None,
        };
        let is_there =
            |segment: &str| config.is_none_or(|config| config.shared.segments.contains(segment));
        // The VRF that routes an attachment's segment.
        let mut homes: BTreeMap<&str, String> = BTreeMap::new();
        let segments = compilation.objects.of::<Layer2NetworkConfigurationSpec>();
        for (_, object) in segments.filter(|(name, one)| one.is_generated() && is_there(name)) {
            if let Some(vrf) = &object.spec.vrf {
                homes.insert(&object.source.key.name, vrf.to_string());
            }
        }
        let mut ways = Self::default();
        for (from, home) in &homes {
            let reached = ways.of.entry((*from).to_owned()).or_default();
            for (to, vrf) in homes.iter().filter(|(to, vrf)| *to != from && *vrf == home) {
                reached.insert((format!("Layer2Attachment {to}"), vrf.clone()));
            }
            let attachment = compilation.attachment(from);
            let matched = attachment.map(|attachment| attachment.matched.iter());
            for matched in matched.into_iter().flatten() {
                let destination = snapshot.destinations.get(&Key::named(&matched.name));
                let vrf = destination.and_then(|one| one.spec.vrf_ref.as_ref());
                let vrf = vrf.and_then(|vrf| snapshot.vrfs.get(&Key::named(vrf)));
                let vrf = vrf.map_or_else(|| "next hop".to_owned(), |vrf| vrf.spec.vrf.to_string());
                reached.insert((format!("Destination {}", matched.name), vrf));
            }
        }
        Ok(ways)
    }

    /// Attachments that reach the same by the same VRFs, together.
    fn alike(&self) -> BTreeMap<&BTreeSet<(String, String)>, Vec<String>> {
        let mut alike: BTreeMap<_, Vec<String>> = BTreeMap::new();
        for (from, reached) in &self.of {
            alike.entry(reached).or_default().push(from.clone());
        }
        alike
    }
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
            let folds = names::folded(&names);
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
            json!({"from": from, "reaches": reached.collect::<Vec<_>>()})
        });
        return output::stream(format, values);
    }
    if ways.of.is_empty() {
        output::text("no attachment is routed\n");
        return Ok(());
    }
    let mut rows = Vec::new();
    if output::is_all() {
        for (from, reached) in &ways.of {
            rows.extend(
                reached
                    .iter()
                    .map(|(to, vrf)| vec![from.clone(), vrf.clone(), to.clone()]),
            );
        }
    } else {
        for (from, to) in merged(ways) {
            for (vrf, to) in to {
                rows.push(vec![names::folded(&from), vrf, to]);
            }
        }
    }
    let head = [
        ("FROM", Column::Wrapped),
        ("VIA", Column::Whole),
        ("REACHES", Column::Wrapped),
    ];
    output::text(&output::table_of(&head, &rows));
    Ok(())
}

/// Attachments of one segment group: those that reach each other and the same besides are one row.
fn merged(ways: &Ways) -> Vec<(Vec<String>, BTreeMap<String, String>)> {
    // From an attachment to itself there is always a way: with it, members of one VRF reach the same.
    let mut whole = Ways::default();
    for (from, reached) in &ways.of {
        let mut reached = reached.clone();
        let vrfs: BTreeSet<String> = reached
            .iter()
            .filter(|(to, _)| to.starts_with("Layer2Attachment"))
            .map(|(_, vrf)| vrf.clone())
            .collect();
        for vrf in vrfs {
            reached.insert((format!("Layer2Attachment {from}"), vrf));
        }
        whole.of.insert(from.clone(), reached);
    }
    let mut rows: Vec<(Vec<String>, BTreeMap<String, String>)> = whole
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
    let flat = |ways: &Ways| -> BTreeSet<(String, String, String)> {
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
    if format != Format::Table {
        let value = |(from, to, vrf): &&(String, String, String)| {
            let (kind, name) = to.split_once(' ').unwrap_or_default();
            json!({"from": from, "kind": kind, "name": name, "vrf": vrf})
        };
        let value = json!({
            "added": won.iter().map(value).collect::<Vec<_>>(),
            "removed": lost.iter().map(value).collect::<Vec<_>>(),
        });
        return output::documents(format, &[value]);
    }
    let mut text = Vec::new();
    for (sign, style, ways) in [("+", Style::Green, &won), ("-", Style::Red, &lost)] {
        let mut alike: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for (from, to, vrf) in ways {
            alike.entry((to, vrf)).or_default().push(from.clone());
        }
        for ((to, vrf), from) in alike {
            let line = format!("{sign} {} reaches {to} via {vrf}", names::folded(&from));
            text.push(format!("{}\n", styled(style, &output::wrapped(&line, 4))));
        }
    }
    let total = format!(
        "{} added, {} removed, {} as before\n",
        counted(won.len(), "path"),
        lost.len(),
        old.intersection(&new).count()
    );
    text.push(total);
    output::text(&text.concat());
    Ok(())
}
