//! `selvedge render`

use std::{fs, path::Path};

use anyhow::{Context, bail};
use api::tcaas::NodeNetworkConfigSpec;
use compiler::{Compilation, compile};
use frr::{FrrVersion, UnknownVersion};

use super::{compile::unknown_node, problems};
use crate::{
    args::{Domain, Format, Render, Rendering},
    input::World,
    output::{self, Verdict},
};

pub(super) fn run(args: &Render) -> anyhow::Result<Verdict> {
    let version = match &args.frr_version {
        Some(text) => Some(version(text)?),
        None => None,
    };
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let has_errors = problems::show(Format::Table, &world, &compilation)?;
    if let Some(directory) = &args.directory {
        write_all(directory, version, &world, &compilation)?;
    }
    if let Some(node) = &args.node {
        let Some(config) = compilation.nodes.get(node) else {
            bail!("{}", unknown_node(node, &compilation));
        };
        let spec = config.spec(&compilation.revision.fingerprint);
        match (args.what, args.domain) {
            (Rendering::Frr, Domain::Router) => {
                output::text(&frr_conf(node, version, &world, &spec)?);
            }
            (Rendering::Frr, Domain::Host) => {
                let Some(conf) = host_frr_conf(node, version, &world, &spec)? else {
                    bail!(
                        "the host of node {node} runs no FRR: no FRRConfiguration selects the node"
                    );
                };
                output::text(&conf);
            }
            (Rendering::Linux, domain) => output::text(&kernel(domain, &spec)?),
        }
    }
    Ok(if has_errors {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}

/// A version of FRR that Selvedge writes for.
fn version(text: &str) -> anyhow::Result<FrrVersion> {
    let supported = FrrVersion::SUPPORTED.map(|known| known.to_string());
    let supported = format!("the supported versions are {}", supported.join(", "));
    let version: FrrVersion = match text.parse() {
        Ok(version) => version,
        Err(UnknownVersion::TooOld(_)) => anyhow::bail!("--frr-version {text}: {supported}"),
        Err(UnknownVersion::Missing(_)) => {
            anyhow::bail!("--frr-version {text} is not a version such as 10.7; {supported}")
        }
    };
    if FrrVersion::SUPPORTED.contains(&version) {
        return Ok(version);
    }
    let mut older = FrrVersion::SUPPORTED.iter().rev();
    let same = older.find(|known| **known < version);
    let same =
        same.map(|same| format!("; a node with FRR {version} gets the configuration of {same}"));
    anyhow::bail!(
        "--frr-version {text}: {supported}{}",
        same.unwrap_or_default()
    )
}

/// Writes the files of all nodes, a directory for each.
fn write_all(
    directory: &Path,
    version: Option<FrrVersion>,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<()> {
    for (node, config) in &compilation.nodes {
        let spec = config.spec(&compilation.revision.fingerprint);
        let own = directory.join(node);
        fs::create_dir_all(&own).with_context(|| format!("failed to create {}", own.display()))?;
        let files = [
            ("frr.conf", frr_conf(node, version, world, &spec)),
            ("linux-router.txt", kernel(Domain::Router, &spec)),
            ("linux-host.txt", kernel(Domain::Host, &spec)),
        ];
        for (name, text) in files {
            let text = text.with_context(|| format!("node {node}"))?;
            let file = own.join(name);
            fs::write(&file, text)
                .with_context(|| format!("failed to write {}", file.display()))?;
        }
        if let Some(text) = host_frr_conf(node, version, world, &spec)? {
            let file = own.join("frr-host.conf");
            fs::write(&file, text)
                .with_context(|| format!("failed to write {}", file.display()))?;
        }
    }
    let nodes = output::counted(compilation.nodes.len(), "node");
    output::note(&format!(
        "wrote the files of {nodes} to {}",
        directory.display()
    ));
    Ok(())
}

fn frr_conf(
    node: &str,
    version: Option<FrrVersion>,
    world: &World,
    spec: &NodeNetworkConfigSpec,
) -> anyhow::Result<String> {
    let version = version_of(node, version, world)?;
    let config =
        frr::desired(spec, &frr::hidden(spec), version).map_err(|refused| joined(&refused))?;
    Ok(frr::print(&config, version, &spec.revision))
}

/// The configuration of the host's FRR, with what is left out said as notes; `None` where the host runs none.
fn host_frr_conf(
    node: &str,
    version: Option<FrrVersion>,
    world: &World,
    spec: &NodeNetworkConfigSpec,
) -> anyhow::Result<Option<String>> {
    let Some(router) = &spec.host_router else {
        return Ok(None);
    };
    let version = version_of(node, version, world)?;
    let desired = frr::host::desired(router, &frr::hidden(spec), version);
    for field in &desired.unsupported {
        output::note(&format!(
            "not supported, VRF {}: {}",
            field.vrf, field.message
        ));
    }
    for line in &desired.refused_raw {
        output::note(&format!(
            "refused, {}, line {}: {}",
            line.source, line.line, line.message
        ));
    }
    Ok(Some(frr::print(&desired.config, version, "host")))
}

/// The version to write for: the one that is asked for, the one that the node reports, or the newest.
fn version_of(
    node: &str,
    version: Option<FrrVersion>,
    world: &World,
) -> anyhow::Result<FrrVersion> {
    Ok(match (version, world.snapshot.frr_version(node)) {
        (Some(version), _) => version,
        (None, Some(text)) => text
            .parse()
            .with_context(|| format!("node {node} reports FRR {text}"))?,
        (None, None) => FrrVersion::NEWEST,
    })
}

fn kernel(domain: Domain, spec: &NodeNetworkConfigSpec) -> anyhow::Result<String> {
    let desired = linux::desired(spec).map_err(|refused| joined(&refused))?;
    let domain = match domain {
        Domain::Router => linux::Domain::Router,
        Domain::Host => linux::Domain::Host,
    };
    let texts = |values: &std::collections::BTreeSet<_>| {
        values
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<String>>()
            .join(" ")
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let links: Vec<Vec<String>> = desired
        .links
        .iter()
        .filter(|(id, _)| id.domain == domain)
        .map(|(id, link)| {
            vec![
                id.name.clone(),
                link.kind.to_string(),
                or_none(link.master.clone()),
                or_none(link.mtu.map(|mtu| mtu.to_string())),
                or_none(link.mac.map(|mac| mac.to_string())),
                texts(&link.addresses),
            ]
        })
        .collect();
    let mut text = vec![output::table(
        &["LINK", "KIND", "MASTER", "MTU", "MAC", "ADDRESSES"],
        &links,
    )];
    if domain == linux::Domain::Router {
        text.push(format!(
            "\nnics moved in: {}\naddresses of lo: {}\n",
            texts_of(&desired.nics),
            texts(&desired.loopback)
        ));
    }
    let routes: Vec<Vec<String>> = desired
        .routes
        .iter()
        .filter(|(id, _)| id.domain == domain)
        .map(|(id, route)| {
            vec![
                id.table.to_string(),
                id.prefix.to_string(),
                route.to_string(),
                id.metric.to_string(),
            ]
        })
        .collect();
    if !routes.is_empty() {
        text.push(format!(
            "\n{}",
            output::table(&["TABLE", "ROUTE", "ACTION", "METRIC"], &routes)
        ));
    }
    let rules = desired.rules.iter().filter(|rule| rule.domain == domain);
    text.push(listing("rules", rules));
    let filters = desired.filters.iter();
    let filters = filters.filter(|filter| filter.link.domain == domain);
    text.push(listing("tc filters", filters));
    // What cannot be had of mirrors is no part of what is rendered, and is not passed over.
    text.push(listing("not supported", desired.unmirrored.iter()));
    Ok(text.concat())
}

/// Things of one sort, one in a line; nothing where there are none.
fn listing<T: ToString>(heading: &str, things: impl Iterator<Item = T>) -> String {
    let lines: Vec<String> = things
        .map(|one| format!("  {}\n", one.to_string()))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{heading}:\n{}", lines.concat())
}

fn texts_of(names: &std::collections::BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(" ")
}

fn joined<T: ToString>(refused: &[T]) -> anyhow::Error {
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    anyhow::anyhow!("not supported: {}", lines.join("; "))
}
