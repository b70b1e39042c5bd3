//! Two realistic nodes, printed for every supported version and compared with the stored texts: `node` has workloads, `hosts` has
//! sessions with the host.
//!
//! `UPDATE_GOLDENS=1 cargo test -p selvedge-frr --test goldens` writes the texts anew; read them before committing.
#![expect(clippy::unwrap_used, reason = "a test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its goldens; the crate itself does not"
)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use api::{meta::SecretReference, tcaas::NodeNetworkConfigSpec};
use selvedge_frr::{
    FrrConfig, FrrVersion, Password, Secrets, desired, diff, parse, placed_lines, print,
};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/goldens")
        .join(name)
}

const NODES: [&str; 2] = ["node", "hosts"];

fn spec(node: &str) -> NodeNetworkConfigSpec {
    let text = fs::read_to_string(path(&format!("{node}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every node with every version.
fn all() -> impl Iterator<Item = (&'static str, FrrVersion)> {
    let versions = |node| FrrVersion::SUPPORTED.map(|version| (node, version));
    NODES.into_iter().flat_map(versions)
}

fn secrets() -> Secrets {
    let secret = |name: &str, namespace: Option<&str>, password: &str| {
        let reference = SecretReference {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
        };
        (reference, Password::new(password).unwrap())
    };
    Secrets::from([
        secret("tor-a", Some("selvedge-system"), "not-a-secret"),
        secret("workload", None, "not-a-secret-either"),
    ])
}

fn config(node: &str, version: FrrVersion) -> FrrConfig {
    desired(&spec(node), &secrets(), version).unwrap()
}

#[test]
fn nodes_print_as_stored_for_every_version() {
    for (node, version) in all() {
        let text = print(&config(node, version), version, &spec(node).revision);
        let file = path(&format!("{node}-{version}.conf"));
        if std::env::var("UPDATE_GOLDENS").is_ok() {
            fs::write(&file, &text).unwrap();
        }
        let stored = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            text == stored,
            "{} differs; UPDATE_GOLDENS=1 rewrites it\n{text}",
            file.display()
        );
    }
}

/// What the three versions answered to `show running-config` after a boot with the stored text.
#[test]
fn what_frr_made_of_the_stored_text_is_the_config_it_was_printed_from() {
    for (node, version) in all() {
        let text = fs::read_to_string(path(&format!("{node}-{version}.running.txt"))).unwrap();
        let parsed = parse(&text, version);
        assert_eq!(parsed.unknown, []);
        assert_eq!(parsed.config, config(node, version));
    }
}

#[test]
fn stored_text_parses_to_the_config_it_was_printed_from() {
    for (node, version) in all() {
        let text = fs::read_to_string(path(&format!("{node}-{version}.conf"))).unwrap();
        let parsed = parse(&text, version);
        assert_eq!(parsed.unknown, []);
        assert_eq!(parsed.config, config(node, version));
        assert!(diff(&parsed.config, &config(node, version)).is_empty());
    }
}

/// A bgpd that starts with a filter that is not there yet applies none, or denies all.
#[test]
fn no_filter_is_referred_to_before_it_is_there() {
    for (node, version) in all() {
        let text = print(&config(node, version), version, "r");
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let mut references = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let referred = match words.as_slice() {
                ["route-map", name, ..] | ["ip" | "ipv6", "prefix-list", name, ..] => {
                    known.insert(name);
                    continue;
                }
                ["match", "ip" | "ipv6", "address", "prefix-list", name]
                | [.., "route-map", name]
                | [.., "route-map", name, "in" | "out"] => name,
                _ => continue,
            };
            references += 1;
            assert!(known.contains(referred), "{node} {version}: {line}");
        }
        assert!(references > 0, "{node} {version}");
    }
}

#[test]
fn every_line_that_says_something_has_its_place() {
    for (node, version) in all() {
        let config = config(node, version);
        let placed = placed_lines(&config, version).into_iter();
        let placed: BTreeSet<String> = placed.map(|placed| placed.line).collect();
        let text = print(&config, version, "r");
        let says = |line: &&str| {
            let silent = ["!", "end", "frr defaults"];
            !line.is_empty()
                && !line.starts_with("exit")
                && !silent.iter().any(|it| line.starts_with(it))
        };
        for line in text.lines().map(str::trim).filter(says) {
            let is_there = placed.contains(line)
                || placed
                    .iter()
                    .any(|it| line.starts_with(it.as_str()) && it.ends_with("password"));
            assert!(is_there, "{node} {version}: {line}");
        }
    }
}
