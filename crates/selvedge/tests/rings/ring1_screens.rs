//! Ring 1, screens: what the commands print on a cluster of 300 nodes in six racks, at 80 and at 120 columns.
//!
//! Each file of `tests/screens` is a command line and all that it prints. `UPDATE_GOLDENS=1` writes what it prints now; look at it as a
//! user before you keep it.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use serde_json::Value;
use worlds::racks::{Names, racks};

use crate::support::{SELVEDGE, repository};

/// The lines of a screen.
const ROWS: usize = 40;

/// Each screen with its command line.
const SCREENS: [(&str, &str); 32] = [
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
    ("where-address-of-a-node", "where -f cluster 10.122.0.4"),
    ("where-unused-address", "where -f cluster 10.122.0.200"),
    ("where-attachment", "where -f cluster l2a/video-front"),
    ("where-vrf", "where -f cluster vrf billing"),
    ("where-name", "where -f cluster video-front"),
    ("where-vtep", "where -f cluster 100.65.0.1"),
    ("where-unknown", "where -f cluster bilings"),
    ("explain-underlay", "explain -f cluster ul/rack-2"),
    ("explain-vrf-everywhere", "explain -f cluster vrf billing"),
    ("plan-vni", "plan -f cluster --to vni"),
    ("plan-settings", "plan -f cluster --to slower"),
    ("compile-lowlevel", "compile -f cluster --what lowlevel"),
    ("compile-status", "compile -f cluster --what status"),
    ("ipam", "ipam -f cluster"),
    ("ipam-network", "ipam -f cluster video-front"),
];

/// What is asked of clusters whose nodes have names that say nothing of their place.
const OTHER_NAMES: [&str; 20] = [
    "validate -f cluster",
    "compile -f cluster",
    "compile -f cluster --what nodes",
    "compile -f cluster --what status",
    "plan -f cluster --to changed",
    "plan -f cluster --to renumbered",
    "plan -f cluster --to vni",
    "explain -f cluster Destination/billing-backbone",
    "explain -f cluster l2a/video-front",
    "explain -f cluster vrf billing",
    "explain -f cluster 172.16.0.0/24",
    "why-not -f cluster l2a/storage-front",
    "why-not -f cluster vlan 999",
    "reach -f cluster",
    "reach -f cluster --to changed",
    "where -f cluster vrf billing",
    "where -f cluster vlan 222",
    "where -f cluster 172.16.0.0/24",
    "where -f cluster l2a/video-front",
    "ipam -f cluster",
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
fn clusters(directory: &Path, names: Names) -> anyhow::Result<()> {
    let cluster = racks(6, 50, names);
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
    // A tenant's segment on other nodes, a wider MTU, a Destination that moves to another VRF and one with one more prefix.
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
        if is(object, "Destination", "mail-partners")
            && let Some(prefixes) = object["spec"]["prefixes"].as_array_mut()
        {
            prefixes.push("192.0.2.0/24".into());
        }
    });
    write(&directory.join("changed"), &changed)?;
    let renumbered = edited(&|object| {
        if is(object, "Underlay", "rack-3") {
            object["spec"]["asn"] = 64_703.into();
        }
    });
    write(&directory.join("renumbered"), &renumbered)?;
    let vni = edited(&|object| {
        if is(object, "VRF", "video") {
            object["spec"]["vni"] = 9_999.into();
        }
    });
    write(&directory.join("vni"), &vni)?;
    let slower = edited(&|object| {
        if object["kind"] == "Settings" {
            object["spec"]["rollout"]["maxUnavailable"] = "2%".into();
        }
    });
    write(&directory.join("slower"), &slower)?;
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
    clusters(directory.path(), Names::Numbered)?;
    let goldens = repository("tests/screens");
    fs::create_dir_all(&goldens)?;
    let mut wrong = Vec::new();
    for (name, line) in SCREENS {
        for columns in [80, 120] {
            let (told, code) = told(directory.path(), line, columns)?;
            let at = format!("{name} at {columns}");
            let faults = faults(&told, columns).into_iter();
            wrong.extend(faults.map(|fault| format!("{at}: {fault}")));
            let screen = format!(
                "$ COLUMNS={columns} selvedge {line}\n{}\nexit {}\n",
                told.join("\n"),
                code
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

/// What a command prints on a screen of so many columns, and its exit code.
fn told(directory: &Path, line: &str, columns: usize) -> anyhow::Result<(Vec<String>, i32)> {
    let output = Command::new(SELVEDGE)
        .args(line.split_whitespace())
        .current_dir(directory)
        .env("COLUMNS", columns.to_string())
        .output()?;
    let told = [output.stderr, output.stdout].concat();
    let told = String::from_utf8(told)?;
    // What it took differs from run to run.
    let told = told.lines().map(without_times).collect();
    Ok((told, output.status.code().unwrap_or(-1)))
}

/// What is wrong with a screen: lines that are too long, or too many.
fn faults(told: &[String], columns: usize) -> Vec<String> {
    let lengths = told.iter().map(|line| (line.chars().count(), line));
    let wide = lengths.filter(|(length, _)| *length > columns);
    let mut faults: Vec<String> = wide
        .map(|(length, line)| format!("{length} columns: {line}"))
        .collect();
    if told.len() > ROWS {
        faults.push(format!("{} lines:\n{}", told.len(), told.join("\n")));
    }
    faults
}

/// Asks everything of a cluster whose nodes are called so, at the width of a small terminal.
fn screens_of(names: Names) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    clusters(directory.path(), names)?;
    let mut wrong = Vec::new();
    for line in OTHER_NAMES {
        let (told, code) = told(directory.path(), line, 80)?;
        anyhow::ensure!((0..2).contains(&code), "{line}: {}", told.join("\n"));
        let faults = faults(&told, 80).into_iter();
        wrong.extend(faults.map(|fault| format!("{line}: {fault}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn screens_of_nodes_with_random_names_can_be_read() -> anyhow::Result<()> {
    screens_of(Names::Random)
}

#[test]
fn screens_of_nodes_with_the_names_of_a_cloud_can_be_read() -> anyhow::Result<()> {
    screens_of(Names::Addresses)
}

/// The addresses of nodes on the segment of `video-front`, as the compile has them, by node.
fn node_addresses(directory: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let output = Command::new(SELVEDGE)
        .args("compile -f cluster --what nodes -o json".split_whitespace())
        .current_dir(directory)
        .output()?;
    let nodes: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let mut found = BTreeMap::new();
    for node in &nodes {
        let interface = &node["spec"]["layer2s"]["222"]["hostInterface"];
        if let (Some(name), Some(address)) = (
            node["metadata"]["name"].as_str(),
            interface["addresses"][0].as_str(),
        ) {
            found.insert(name.to_owned(), address.to_owned());
        }
    }
    anyhow::ensure!(found.len() == 30, "{} nodes have an address", found.len());
    Ok(found)
}

#[test]
fn no_answer_gives_the_address_of_one_node_to_another() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    clusters(directory.path(), Names::Numbered)?;
    let addresses = node_addresses(directory.path())?;
    let questions = [
        "where -f cluster --all l2a/video-front",
        "where -f cluster video-front",
        "where -f cluster 10.122.0.0/20",
        "where -f cluster 10.122.0.200",
        "explain -f cluster --all l2a/video-front",
        "why-not -f cluster --all l2a/video-front",
    ];
    for question in questions {
        let (told, _) = told(directory.path(), question, 200)?;
        let told = told.join("\n");
        // The range of all is said; an address with its length would be that of one node.
        for address in addresses.values() {
            assert!(!told.contains(address.as_str()), "{question}: {told}");
        }
        assert!(told.contains("one per node"), "{question}: {told}");
    }
    for (node, address) in addresses.iter().step_by(7) {
        let host = address.split('/').next().unwrap_or_default();
        let (told, _) = told(directory.path(), &format!("where -f cluster {host}"), 200)?;
        let told = told.join("\n");
        let line = told.lines().find(|line| line.contains(address.as_str()));
        assert!(line.is_some_and(|line| line.contains(node)), "{told}");
    }
    Ok(())
}

#[test]
fn an_answer_for_programs_has_the_address_of_each_node() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    clusters(directory.path(), Names::Numbered)?;
    let addresses = node_addresses(directory.path())?;
    let json = |line: &str| -> anyhow::Result<Value> {
        let (told, _) = told(directory.path(), line, 200)?;
        Ok(serde_json::from_str(&told.join("\n"))?)
    };
    let answer = json("where -f cluster l2a/video-front -o json")?;
    for (node, address) in &addresses {
        let mut elements = answer.as_array().into_iter().flatten();
        let own = elements.find(|one| one["element"]["address"] == **address);
        assert_eq!(
            own.map(|one| &one["nodes"]),
            Some(&serde_json::json!([node]))
        );
    }
    let answer = json("explain -f cluster l2a/video-front -o json")?;
    let answers = answer.as_array().into_iter().flatten();
    let elements = answers.flat_map(|one| one["elements"].as_array().into_iter().flatten());
    let own = elements.filter(|one| one["element"]["kind"] == "hostAddress");
    let of_nodes: Vec<&Value> = own.map(|one| &one["ofNodes"]).collect();
    for (node, address) in &addresses {
        let is_there = of_nodes.iter().any(|one| one[node][0] == **address);
        assert!(is_there, "{node} {address}: {of_nodes:#?}");
    }
    Ok(())
}

fn without_times(line: &str) -> String {
    match line.split_once("compiled in ") {
        Some((before, _)) => format!("{before}compiled in … ms"),
        None => line.to_owned(),
    }
}
