//! Ring 1, screens: what the commands print on a cluster of 300 nodes in six racks, at 80 and at 120 columns.
//!
//! Each file of `tests/screens` is a command line and all that it prints. `UPDATE_GOLDENS=1` writes what it prints now; look at it as a
//! user before you keep it.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::support::{SELVEDGE, repository};

/// The lines of a screen, a head and an empty line included.
const ROWS: usize = 50;

/// Each screen with its command line. `{old}` is the cluster, `{new}` the cluster after a change.
const SCREENS: [(&str, &str); 18] = [
    ("demo", "demo"),
    ("validate", "validate -f cluster"),
    ("validate-broken", "validate -f broken"),
    ("compile", "compile -f cluster"),
    ("plan", "plan -f cluster --to changed"),
    ("plan-asn", "plan -f cluster --to renumbered"),
    ("plan-nothing", "plan -f cluster --to cluster"),
    (
        "explain-destination",
        "explain -f cluster Destination/billing-backbone",
    ),
    ("explain-attachment", "explain -f cluster l2a/video-front"),
    (
        "explain-vrf",
        "explain -f cluster --node dc1-r1-w01 vrf billing",
    ),
    ("explain-prefix", "explain -f cluster 172.16.0.0/24"),
    ("why-not", "why-not -f cluster l2a/storage-front"),
    ("why-not-vlan", "why-not -f cluster vlan 999"),
    ("reach", "reach -f cluster"),
    ("reach-change", "reach -f cluster --to changed"),
    ("where-vlan", "where -f cluster vlan 214"),
    ("where-address", "where -f cluster 10.100.0.17"),
    ("ipam", "ipam -f cluster"),
];

/// Writes a cluster as files, each object a document.
fn write(directory: &Path, files: &[(&str, Vec<Value>)]) -> anyhow::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, objects) in files {
        let mut text = String::new();
        for object in objects {
            text.push_str("---\n");
            text.push_str(serde_saphyr::to_string(object)?.trim_end());
            text.push('\n');
        }
        fs::write(directory.join(name), text)?;
    }
    Ok(())
}

/// The cluster with another one for each kind of change.
fn clusters(directory: &Path) -> anyhow::Result<()> {
    let cluster = worlds::racks::racks(6, 50);
    write(&directory.join("cluster"), &cluster)?;
    let edited = |edit: &dyn Fn(&mut Value)| -> Vec<(&'static str, Vec<Value>)> {
        let mut edited = cluster.clone();
        for object in edited.iter_mut().flat_map(|(_, objects)| objects) {
            edit(object);
        }
        edited
    };
    let is = |object: &Value, kind: &str, name: &str| {
        object["kind"] == kind && object["metadata"]["name"] == name
    };
    // A tenant's segment on more nodes, a wider MTU, and a Destination that moves to another VRF.
    let changed = edited(&|object| {
        if is(object, "Layer2Attachment", "storage-front") {
            object["spec"]["nodeSelector"] =
                serde_json::json!({"matchLabels": {"topology.example.com/rack": "r2"}});
        }
        if is(object, "Layer2Attachment", "mail-front") {
            object["spec"]["mtu"] = 9000.into();
        }
        if is(object, "Destination", "portal-partners") {
            object["spec"]["vrfRef"] = "video".into();
        }
    });
    write(&directory.join("changed"), &changed)?;
    let renumbered = edited(&|object| {
        if is(object, "Underlay", "rack-3") {
            object["spec"]["asn"] = 64_703.into();
        }
    });
    write(&directory.join("renumbered"), &renumbered)?;
    // One VRF that all of a tenant needs, and one slip in many places.
    let broken = edited(&|object| {
        if is(object, "VRF", "billing") {
            object["spec"]["vni"] = "many".into();
        }
        if object["kind"] == "Underlay" {
            object["spec"]["neighbours"] = serde_json::json!([]);
        }
    });
    write(&directory.join("broken"), &broken)
}

#[test]
fn every_screen_of_three_hundred_nodes_can_be_read() -> anyhow::Result<()> {
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let directory = tempfile::tempdir()?;
    clusters(directory.path())?;
    let goldens = repository("tests/screens");
    fs::create_dir_all(&goldens)?;
    let mut wrong = Vec::new();
    for (name, line) in SCREENS {
        for columns in [80, 120] {
            let output = Command::new(SELVEDGE)
                .args(line.split_whitespace())
                .current_dir(directory.path())
                .env("COLUMNS", columns.to_string())
                .output()?;
            let told = format!(
                "{}{}",
                String::from_utf8(output.stderr)?,
                String::from_utf8(output.stdout)?
            );
            // What it took differs from run to run.
            let told: Vec<String> = told.lines().map(without_times).collect();
            for line in &told {
                let length = line.chars().count();
                if length > columns {
                    wrong.push(format!("{name} at {columns}: {length} columns: {line}"));
                }
            }
            if told.len() > ROWS {
                wrong.push(format!("{name} at {columns}: {} lines", told.len()));
            }
            let screen = format!(
                "$ COLUMNS={columns} selvedge {line}\n{}\nexit {}\n",
                told.join("\n"),
                output.status.code().unwrap_or(-1)
            );
            let golden = goldens.join(format!("{name}-{columns}.txt"));
            if update {
                fs::write(&golden, &screen)?;
            } else if fs::read_to_string(&golden).unwrap_or_default() != screen {
                wrong.push(format!("{}\n{screen}", golden.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn without_times(line: &str) -> String {
    match line.split_once("compiled in ") {
        Some((before, _)) => format!("{before}compiled in … ms"),
        None => line.to_owned(),
    }
}
