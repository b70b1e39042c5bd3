//! The image that the manifests run: what `deploy/Containerfile` makes is what they call. Nothing is built here.

use anyhow::Context as _;
use serde_json::Value;

use crate::{
    data::text,
    support::{AGENT, selvedge},
};

const CONTAINERFILE: &str = include_str!("../../../../deploy/Containerfile");
const OPERATOR: &str = include_str!("../../../../deploy/operator.yaml");
const TOOLCHAIN: &str = include_str!("../../../../rust-toolchain.toml");
const IMAGE: &str = "selvedge:latest";

/// The containers of the workloads in a text.
fn containers(manifests: &str) -> anyhow::Result<Vec<Value>> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(manifests)?;
    let containers = objects.iter().filter_map(|object| {
        let containers = object.pointer("/spec/template/spec/containers")?;
        containers.as_array()
    });
    Ok(containers.flatten().cloned().collect())
}

/// What follows an instruction of the Containerfile, in its last stage.
fn instruction(name: &str) -> anyhow::Result<&'static str> {
    let mut lines = CONTAINERFILE.lines().rev();
    let found = lines.find_map(|line| line.strip_prefix(name));
    found
        .map(str::trim)
        .with_context(|| format!("no {name} in the Containerfile"))
}

#[test]
fn the_image_has_what_the_manifests_call() -> anyhow::Result<()> {
    let entry: Vec<String> = serde_json::from_str(instruction("ENTRYPOINT")?)?;
    let copied = instruction("COPY")?.rsplit(' ').next();
    assert_eq!(Some(entry.join(" ").as_str()), copied);
    assert!(copied.is_some_and(|path| path.ends_with("/selvedge")));
    let mut called = Vec::new();
    for container in [containers(OPERATOR)?, containers(AGENT)?].concat() {
        assert_eq!(text(&container, "/image"), IMAGE);
        // The image's own program is run.
        assert!(container["command"].is_null(), "{container}");
        let arguments: Vec<String> = serde_json::from_value(container["args"].clone())?;
        let mut known: Vec<&str> = arguments.iter().map(String::as_str).collect();
        known.push("--help");
        let output = selvedge(&known, "")?;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        called.push(arguments[0].clone());
    }
    assert_eq!(called, ["operator", "agent"]);
    Ok(())
}

#[test]
fn the_image_is_built_with_the_pinned_compiler_and_has_frr_where_agents_start_it()
-> anyhow::Result<()> {
    let pinned = TOOLCHAIN.lines().find_map(|line| {
        let version = line.strip_prefix("channel = ")?;
        version.trim_matches('"').rsplit_once('.')
    });
    let (pinned, _patch) = pinned.context("a version")?;
    assert!(
        CONTAINERFILE.contains(&format!("\nFROM rust:{pinned}-")),
        "rust {pinned}"
    );
    for command in CONTAINERFILE
        .lines()
        .filter(|line| line.contains(" build "))
    {
        assert!(command.contains(IMAGE), "{command}");
    }
    // Debian's package has them in the agent's default directory.
    assert_eq!(
        agent::Paths::default().daemons.to_str(),
        Some("/usr/lib/frr")
    );
    assert!(CONTAINERFILE.contains("--no-install-recommends frr "));
    Ok(())
}
