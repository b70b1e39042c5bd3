//! Ring 1: the page about plans for programs has every field that plans have, and no other.

use std::{collections::BTreeSet, fs};

use anyhow::Context as _;
use serde_json::Value;

use crate::support::{repository, selvedge};

const PAGE: &str = "docs/plan-json.md";
/// Values of any form.
const OPAQUE: [&str; 3] = [".was", ".becomes", "edits[].fields"];
/// Maps whose keys are names.
const MAPS: [&str; 3] = ["groups[].own", "disruptions", "needsApproval"];

#[test]
fn the_page_about_plans_has_all_their_fields() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str, text: &str| -> anyhow::Result<String> {
        let path = folder.path().join(name);
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let at = |path: &str| repository(path).display().to_string();
    let tenants = at("examples/two-tenants.yaml");
    let text = fs::read_to_string(&tenants)?;
    let documents: Vec<&str> = text.split("\n---\n").collect();
    let without = |kind: &str| {
        let kind = format!("kind: {kind}\n");
        let kept = documents.iter().filter(|one| !one.contains(&kind));
        kept.copied().collect::<Vec<_>>().join("\n---\n")
    };
    let renumbered = file("asn.yaml", &text.replace("asn: 64514", "asn: 64599"))?;
    let renamed = file(
        "renamed.yaml",
        &text.replace("{name: rack-b,", "{name: rack-c,"),
    )?;
    let no_underlay = file("no-underlay.yaml", &without("Underlay"))?;
    let no_vrf = file("no-vrf.yaml", &without("VRF"))?;
    let paused = file(
        "paused.yaml",
        "apiVersion: selvedge.dev/v1alpha1\nkind: Settings\nmetadata: {name: default}\nspec: {rollout: {pause: true}}\n",
    )?;
    let cache = at("docs/getting-started/cache.yaml");
    let cluster = at("examples/cluster");
    let unresolved = at("tests/cases/no-vni-range/input.yaml");
    let twice = at("tests/cases/vlan-twice-on-a-node/input.yaml");

    let plans: [&[&str]; 9] = [
        &[
            "-f", &tenants, "--to", &tenants, "--to", &cache, "--to", &paused,
        ],
        &["-f", &tenants, "--to", &renumbered],
        &["-f", &tenants, "--to", &no_underlay],
        &["-f", &tenants, "--to", &no_vrf],
        &["-f", &cluster, "--to", &tenants],
        &["-f", &tenants, "--to", &cluster],
        &["-f", &tenants, "--to", &twice],
        &["-f", &tenants, "--to", &renamed],
        &["-f", &unresolved, "--to", &unresolved],
    ];
    let saved = folder.path().join("plan.json");
    let mut seen = BTreeSet::new();
    for arguments in plans {
        let path = saved.display().to_string();
        let arguments = [&["plan", "--save", &path], arguments].concat();
        let output = selvedge(&arguments, "")?;
        let read = fs::read(&saved)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        fs::remove_file(&saved)?;
        fields("", &serde_json::from_slice(&read)?, &mut seen);
    }
    let page = fs::read_to_string(repository(PAGE))?;
    let documented: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let missing: Vec<_> = seen.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&seen).collect();
    assert!(missing.is_empty(), "{PAGE} does not have {missing:#?}");
    assert!(unknown.is_empty(), "no plan has {unknown:#?}");
    Ok(())
}

/// The paths of all fields of a value, with `[]` for entries of lists and `*` for keys of maps.
fn fields(path: &str, value: &Value, seen: &mut BTreeSet<String>) {
    if OPAQUE.iter().any(|end| path.ends_with(end)) {
        return;
    }
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                let name = if MAPS.contains(&path) { "*" } else { name };
                let inner = match path {
                    "" => name.to_owned(),
                    // These have the fields of others.
                    "groups[].own" => "groups[].changes".to_owned(),
                    "platform" if name != "created" => {
                        seen.insert(format!("platform.{name}"));
                        "platform.created".to_owned()
                    }
                    _ => format!("{path}.{name}"),
                };
                if name != "*" {
                    seen.insert(inner.clone());
                }
                if path.ends_with(".element") && name != "kind" {
                    seen.remove(&inner);
                    continue;
                }
                fields(&inner, value, seen);
            }
        }
        Value::Array(items) => {
            for item in items {
                fields(&format!("{path}[]"), item, seen);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
