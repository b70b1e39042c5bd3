//! `selvedge demo`: what was declared, what each node gets, who can reach whom; on one screen.

use std::{collections::BTreeMap, time::Instant};

use anyhow::Context;
use api::tcaas::Layer2NetworkConfigurationSpec;
use compiler::{Compilation, compile, revision};
use frr::FrrVersion;

use super::problems;
use crate::{
    args::Format,
    input::World,
    output::{self, Style, Verdict, styled, table},
};

const EXAMPLE: &str = include_str!("../../../../examples/two-tenants.yaml");

pub(super) fn run() -> anyhow::Result<Verdict> {
    let mut world = World::default();
    world.add("examples/two-tenants.yaml", EXAMPLE);
    let start = Instant::now();
    let compilation = compile(&world.snapshot);
    let took = start.elapsed();
    if problems::show(Format::Table, &world, &compilation)? {
        return Ok(Verdict::Problems);
    }
    let heading = |text: &str| styled(Style::Bold, text);
    let story = [
        format!(
            "{}  examples/two-tenants.yaml\n\n",
            heading("What was declared")
        ),
        declared(&world, &compilation),
        format!(
            "\n{}  revision {}, compiled in {:.1} ms\n\n",
            heading("What each node gets"),
            revision::object_name(&compilation.revision.fingerprint),
            took.as_secs_f64() * 1000.0,
        ),
        nodes(&compilation)?,
        format!(
            "\n{}  from a workload on the left to the networks on top\n\n",
            heading("Who can reach whom")
        ),
        reach(&world, &compilation),
        styled(
            Style::Dim,
            "\nNext: selvedge compile -f examples --what lowlevel\n      selvedge render -f examples --node worker-1\n",
        ),
    ];
    output::text(&story.concat());
    Ok(Verdict::Fine)
}

fn declared(world: &World, compilation: &Compilation) -> String {
    let rows: Vec<Vec<String>> = world
        .snapshot
        .layer2_attachments
        .iter()
        .map(|(key, object)| {
            let attachment = compilation.attachment(&key.name);
            let attachment = attachment.cloned().unwrap_or_default();
            let destinations: Vec<String> = attachment
                .matched
                .iter()
                .map(|matched| matched.name.clone())
                .collect();
            let nodes = match &object.spec.node_selector {
                None => "all".to_owned(),
                Some(selector) => selector
                    .match_labels
                    .iter()
                    .map(|(k, v)| format!("{k}={v}"))
                    .collect::<Vec<_>>()
                    .join(","),
            };
            let gateway = attachment
                .anycast
                .and_then(|anycast| anycast.gatewayv4)
                .map(|gateway| gateway.to_string());
            vec![
                key.name.to_string(),
                object.spec.network_ref.clone(),
                nodes,
                destinations.join(" "),
                attachment
                    .interface
                    .map(|name| name.to_string())
                    .unwrap_or_default(),
                gateway.unwrap_or_default(),
            ]
        })
        .collect();
    table(
        &[
            "ATTACHMENT",
            "NETWORK",
            "NODES",
            "REACHES",
            "INTERFACE",
            "GATEWAY",
        ],
        &rows,
    )
}

fn nodes(compilation: &Compilation) -> anyhow::Result<String> {
    let mut rows = Vec::new();
    for (node, config) in &compilation.nodes {
        let spec = config.spec(&compilation.revision.fingerprint);
        let text = frr::desired(&spec, &frr::hidden(&spec), FrrVersion::NEWEST)
            .map(|config| frr::print(&config, FrrVersion::NEWEST, &spec.revision))
            .ok()
            .context("the example uses something that FRR cannot do")?;
        let kernel = linux::desired(&spec)
            .ok()
            .context("the example uses something that the kernel cannot do")?;
        let segments = config
            .shared
            .layer2s
            .values()
            .filter_map(|segment| Some(format!("{}→{}", segment.vlan?, segment.vni)));
        let vrfs = config
            .shared
            .fabric_vrfs
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        let vtep = spec
            .underlay
            .as_ref()
            .and_then(|underlay| underlay.vtep)
            .map(|vtep| vtep.to_string());
        rows.push(vec![
            node.clone(),
            vtep.unwrap_or_default(),
            vrfs,
            segments.collect::<Vec<_>>().join(" "),
            format!(
                "{} links, {} routes",
                kernel.links.len(),
                kernel.routes.len()
            ),
            format!("{} lines", text.lines().count()),
        ]);
    }
    Ok(table(
        &["NODE", "VTEP", "VRFS", "VLAN→VNI", "KERNEL", "FRR"],
        &rows,
    ))
}

/// What is routed in each VRF, and so who reaches whom: a workload reaches what the VRF of its gateway routes.
fn reach(world: &World, compilation: &Compilation) -> String {
    let mut homes: BTreeMap<&str, String> = BTreeMap::new();
    let segments = compilation.objects.of::<Layer2NetworkConfigurationSpec>();
    for (_, object) in segments.filter(|(_, object)| object.is_generated()) {
        if let Some(vrf) = &object.spec.vrf {
            homes.insert(&object.source.key.name, vrf.to_string());
        }
    }
    let destinations: Vec<(&str, Option<String>)> = world
        .snapshot
        .destinations
        .iter()
        .map(|(key, object)| {
            let vrf = object.spec.vrf_ref.as_ref().and_then(|name| {
                let vrf = world
                    .snapshot
                    .vrfs
                    .get(&compiler::snapshot::Key::named(name))?;
                Some(vrf.spec.vrf.to_string())
            });
            (&*key.name, vrf)
        })
        .collect();
    let head: Vec<&str> = std::iter::once("FROM")
        .chain(homes.keys().copied())
        .chain(destinations.iter().map(|(name, _)| *name))
        .collect();
    let mark = |from: &str, to: &str, vrf: Option<&String>, home: &String| {
        if from == to {
            "same segment".to_owned()
        } else if vrf == Some(home) {
            format!("via {home}")
        } else {
            "–".to_owned()
        }
    };
    let rows: Vec<Vec<String>> = homes
        .iter()
        .map(|(from, home)| {
            let segments = homes
                .iter()
                .map(|(to, vrf)| mark(from, to, Some(vrf), home));
            let prefixes = destinations
                .iter()
                .map(|(to, vrf)| mark(from, to, vrf.as_ref(), home));
            std::iter::once((*from).to_owned())
                .chain(segments)
                .chain(prefixes)
                .collect()
        })
        .collect();
    table(&head, &rows)
}
