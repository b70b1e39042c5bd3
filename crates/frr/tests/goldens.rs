//! One realistic node, printed for every supported version and compared with the stored text.
//!
//! `UPDATE_GOLDENS=1 cargo test -p selvedge-frr --test goldens` writes the texts anew; read them before committing.
#![expect(clippy::unwrap_used, reason = "a test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its goldens; the room itself does not"
)]

use std::{fs, path::PathBuf};

use api::{meta::SecretReference, tcaas::NodeNetworkConfigSpec};
use selvedge_frr::{FrrConfig, FrrVersion, Password, Secrets, desired, diff, parse, print};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/goldens")
        .join(name)
}

fn node() -> NodeNetworkConfigSpec {
    let text = fs::read_to_string(path("node.json")).unwrap();
    serde_json::from_str(&text).unwrap()
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

fn config(version: FrrVersion) -> FrrConfig {
    desired(&node(), &secrets(), version).unwrap()
}

#[test]
fn node_prints_as_stored_for_every_version() {
    for version in FrrVersion::SUPPORTED {
        let text = print(&config(version), version, &node().revision);
        let file = path(&format!("node-{version}.conf"));
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
    for version in FrrVersion::SUPPORTED {
        let text = fs::read_to_string(path(&format!("running-{version}.txt"))).unwrap();
        let parsed = parse(&text, version);
        assert_eq!(parsed.unknown, []);
        assert_eq!(parsed.config, config(version));
    }
}

#[test]
fn stored_text_parses_to_the_config_it_was_printed_from() {
    for version in FrrVersion::SUPPORTED {
        let text = fs::read_to_string(path(&format!("node-{version}.conf"))).unwrap();
        let parsed = parse(&text, version);
        assert_eq!(parsed.unknown, []);
        assert_eq!(parsed.config, config(version));
        assert!(diff(&parsed.config, &config(version)).is_empty());
    }
}
