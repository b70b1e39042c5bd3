//! The host's router in the cases that users of the FRRConfiguration API have today. `<case>.json` is the config, `<case>.today.conf` what
//! those users run with it, `<case>.conf` what we print for the newest FRR.
//!
//! `UPDATE_GOLDENS=1 cargo test -p selvedge-frr --test host` writes the latter anew; read them before committing.
#![expect(clippy::unwrap_used, reason = "a test")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads its goldens; the crate itself does not"
)]
#![expect(
    clippy::indexing_slicing,
    reason = "a test that finds nothing where it looks shall fail"
)]

#[path = "host/meaning.rs"]
mod meaning;

use std::{fs, path::PathBuf};

use api::tcaas::node_network_config::HostRouter;
use meaning::Meaning;
use selvedge_frr::{
    FrrVersion, Secrets, diff,
    host::{self, Desired},
    parse, print,
};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/host")
}

fn read(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_default()
}

/// The names of all cases.
fn cases() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut cases: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    cases.sort();
    cases
}

fn desired(case: &str, version: FrrVersion) -> Desired {
    let router: HostRouter = serde_json::from_str(&read(&format!("{case}.json"))).unwrap();
    host::desired(&router, &Secrets::new(), version)
}

fn printed(case: &str, version: FrrVersion) -> String {
    print(&desired(case, version).config, version, case)
}

#[test]
fn every_case_means_what_its_users_run_today() {
    assert_eq!(cases().len(), 30);
    for case in cases() {
        let made = desired(&case, FrrVersion::NEWEST);
        assert_eq!(made.unsupported, [], "{case}");
        assert_eq!(made.refused_raw, [], "{case}");
        let today = Meaning::of(&read(&format!("{case}.today.conf")));
        for version in FrrVersion::SUPPORTED {
            let mut text = printed(&case, version);
            // What is a default of a version is not written.
            for line in ["ip nht resolve-via-default", "ipv6 nht resolve-via-default"] {
                if !text.contains(&format!("\n{line}\n")) {
                    text.extend([line, "\n"]);
                }
            }
            assert_eq!(Meaning::of(&text), today, "{case} {version}\n{text}");
        }
    }
}

#[test]
fn every_case_prints_as_stored() {
    for case in cases() {
        let text = printed(&case, FrrVersion::NEWEST);
        let file = format!("{case}.conf");
        if std::env::var("UPDATE_GOLDENS").is_ok() {
            fs::write(folder().join(&file), &text).unwrap();
        }
        let stored = read(&file);
        assert!(
            text == stored,
            "{file} differs; UPDATE_GOLDENS=1 rewrites it\n{text}"
        );
    }
}

#[test]
fn what_is_run_today_is_read_as_the_same_configuration_but_for_numbers() {
    for case in cases() {
        let parsed = parse(&read(&format!("{case}.today.conf")), FrrVersion::NEWEST);
        assert_eq!(parsed.unknown, [], "{case}");
        let ours = desired(&case, FrrVersion::NEWEST).config;
        assert_eq!(parsed.config.bgp, ours.bgp, "{case}");
        assert_eq!(parsed.config.vrfs, ours.vrfs, "{case}");
        assert_eq!(parsed.config.bfd_profiles, ours.bfd_profiles, "{case}");
        assert_eq!(parsed.config.log, ours.log, "{case}");
        let lists = |config: &selvedge_frr::FrrConfig| -> Vec<_> {
            config.prefix_lists.keys().cloned().collect()
        };
        assert_eq!(lists(&parsed.config), lists(&ours), "{case}");
        let maps = |config: &selvedge_frr::FrrConfig| -> Vec<_> {
            config.route_maps.keys().cloned().collect()
        };
        assert_eq!(maps(&parsed.config), maps(&ours), "{case}");
    }
}

/// From what users run today to what we run, and back: nobody's session is closed by our numbers.
#[test]
fn taking_over_what_runs_today_closes_no_session() {
    for case in cases() {
        let running = parse(&read(&format!("{case}.today.conf")), FrrVersion::NEWEST).config;
        let change = diff(&running, &desired(&case, FrrVersion::NEWEST).config);
        assert_eq!(change.resets.len(), 0, "{case}\n{change}");
    }
}
