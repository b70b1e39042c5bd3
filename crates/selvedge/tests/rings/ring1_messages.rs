//! Ring 1, messages: a mistake is described in words of YAML and of the field, never in those of this program.

use std::collections::BTreeSet;

use compiler::Snapshot;
use serde_json::{Value, json};

use crate::{
    data,
    ring1_plan::{CLUSTER, table},
    support::selvedge,
};

/// Words of the readers and of Rust.
const FOREIGN: [&str; 12] = [
    "invalid type",
    "invalid value",
    "expected",
    "struct ",
    " enum",
    "variant",
    "tuple",
    "u32",
    "u16",
    "i64",
    "usize",
    "DuplicateKeyPolicy",
];

#[test]
fn no_value_of_a_wrong_form_is_described_in_words_of_this_program() -> anyhow::Result<()> {
    let mut tried = BTreeSet::new();
    let mut messages = BTreeSet::new();
    for file in data::rules()? {
        for case in &file.cases {
            let mut paths = Vec::new();
            fields(&case.accepted, "", &mut paths);
            for path in paths.iter().filter(|path| path.starts_with("/spec")) {
                let kind = data::text(&case.accepted, "/kind");
                // Items of a list are alike.
                let alike: Vec<&str> = path
                    .split('/')
                    .filter(|step| step.parse::<usize>().is_err())
                    .collect();
                if !tried.insert(format!("{} {kind} {}", file.name, alike.join("/"))) {
                    continue;
                }
                for wrong in [
                    json!("x"),
                    json!("7"),
                    json!(-7),
                    json!(1.5),
                    json!(true),
                    json!(null),
                    json!([7]),
                    json!({"x": 7}),
                ] {
                    let mut document = case.accepted.clone();
                    let field = document.pointer_mut(path);
                    *field.ok_or_else(|| anyhow::anyhow!("{path}"))? = wrong;
                    let mut snapshot = Snapshot::default();
                    snapshot.insert(&document);
                    let problems = snapshot.unreadable.iter();
                    messages.extend(problems.map(|problem| problem.kind.to_string()));
                }
            }
        }
    }
    assert!(tried.len() > 300, "{} fields were tried", tried.len());
    assert!(messages.len() > 100, "{} messages", messages.len());
    let is_foreign = |message: &&String| FOREIGN.iter().any(|word| message.contains(word));
    let foreign: Vec<&String> = messages.iter().filter(is_foreign).collect();
    assert!(foreign.is_empty(), "{foreign:#?}");
    Ok(())
}

/// The paths of all fields of a document.
fn fields(value: &Value, path: &str, found: &mut Vec<String>) {
    if !path.is_empty() {
        found.push(path.to_owned());
    }
    match value {
        Value::Object(fields_of) => {
            for (name, field) in fields_of {
                let name = name.replace('~', "~0").replace('/', "~1");
                fields(field, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                fields(item, &format!("{path}/{place}"), found);
            }
        }
        _ => {}
    }
}

/// An edit, and the one error that is said of it.
const EDITS: [(&str, &str, &str); 6] = [
    (
        "cidr: 198.51.100.0/26",
        "cidr: 198.51.100.0/33",
        "Network a-net spec.ipv4.cidr: \"198.51.100.0/33\" is not a network in CIDR notation, such as 192.0.2.0/24",
    ),
    (
        "count: 2",
        "count: \"2\"",
        "Inbound web spec.count: must be a whole number from 0 to 4294967295, not text (\"2\"): remove the quotes",
    ),
    (
        "prefixes: [192.0.2.0/24]",
        "prefixes: 192.0.2.0/24",
        "Destination meters spec.prefixes: must be a list, not text (\"192.0.2.0/24\")",
    ),
    (
        "spec: {vrfRef: m2m, prefixes: [192.0.2.0/24]}",
        "spec: [m2m, 192.0.2.0/24]",
        "Destination meters spec: must be a map, not a list",
    ),
    (
        "nodeIPs: {enabled: true}",
        "nodeIPs: [true]",
        "Layer2Attachment a spec.nodeIPs: must be a map, not a list",
    ),
    (
        "neighbors: [{asn: 64512, address: 192.168.11.2}]",
        "neighbors: [{asn: 64512, address: 192.168.11.2}, {asn: 64513, address: 192.168.11.2}]",
        "spec.neighbors: two neighbors have the same address 192.168.11.2: keep one of them",
    ),
];

#[test]
fn a_mistake_is_said_once_with_its_value_and_what_to_do() -> anyhow::Result<()> {
    for (from, to, said) in EDITS {
        let edited = CLUSTER.replacen(from, to, 1);
        anyhow::ensure!(edited != CLUSTER, "{from} is there");
        let (text, _) = table(CLUSTER, &edited)?;
        assert!(text.contains(said), "{to}: {text}");
        assert_eq!(text.matches("error: ").count(), 1, "{to}: {text}");
        assert!(text.contains("nothing changes on any node"), "{to}: {text}");
    }
    let settings = "apiVersion: selvedge.dev/v1alpha1\nkind: Settings\nmetadata: {name: default}\n";
    let share = format!("{settings}spec: {{rollout: {{maxUnavailable: 200%}}}}\n");
    let output = selvedge(&["validate", "-f", "-"], &share)?;
    let text = String::from_utf8(output.stderr)?;
    let said = "\"200%\" is not a whole number and not a share from \"0%\" to \"100%\"";
    assert!(text.contains(said), "{text}");
    let twice = format!("{settings}spec:\n  rollout: {{}}\n  rollout: {{}}\n");
    let output = selvedge(&["validate", "-f", "-"], &twice)?;
    let text = String::from_utf8(output.stderr)?;
    let said = "error: <stdin>:6:3: field rollout appears twice in one map\n  first: <stdin>:5:3\n";
    assert!(text.contains(said), "{text}");
    Ok(())
}
