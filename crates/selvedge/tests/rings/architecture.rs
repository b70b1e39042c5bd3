//! The architecture: which crates may depend on which, what a pure crate may not depend on, and that every file is declared.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::repository;

/// The dependencies that each crate may have. `selvedge` may have all; external crates are not listed.
const MAY_USE: [(&str, &[&str]); 11] = [
    ("selvedge-api", &[]),
    ("selvedge-compiler", &["selvedge-api"]),
    ("selvedge-explain", &["selvedge-api", "selvedge-compiler"]),
    ("selvedge-frr", &["selvedge-api"]),
    ("selvedge-linux", &["selvedge-api"]),
    (
        "selvedge-operator",
        &["selvedge-api", "selvedge-compiler", "selvedge-endpoint"],
    ),
    (
        "selvedge-agent",
        &[
            "selvedge-api",
            "selvedge-endpoint",
            "selvedge-frr",
            "selvedge-linux",
        ],
    ),
    ("selvedge-endpoint", &[]),
    ("selvedge-lab", &[]),
    // For tests only: no crate but `selvedge` could use it, and none does.
    ("selvedge-worlds", &[]),
    ("xtask", &["selvedge-lab"]),
];

/// Crates without IO, and the packages that would give them IO.
const PURE: [&str; 5] = [
    "selvedge-api",
    "selvedge-compiler",
    "selvedge-explain",
    "selvedge-frr",
    "selvedge-linux",
];
const IO: [&str; 9] = [
    "tokio",
    "kube-client",
    "kube-runtime",
    "hyper",
    "tower",
    "rustls",
    "rtnetlink",
    "reqwest",
    "nix",
];

#[test]
fn crates_depend_only_on_the_crates_they_may() {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(repository("Cargo.toml"))
        .no_deps()
        .exec()
        .expect("cargo metadata");
    let crates: BTreeSet<String> = metadata
        .packages
        .iter()
        .map(|package| package.name.to_string())
        .collect();
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.into();
    for package in &metadata.packages {
        let name = package.name.as_str();
        if name == "selvedge" {
            continue;
        }
        let allowed = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no entry in MAY_USE"));
        for dependency in &package.dependencies {
            let is_crate = crates.contains(&dependency.name);
            let is_used = dependency.kind == cargo_metadata::DependencyKind::Normal;
            assert!(
                !is_crate || !is_used || allowed.contains(&dependency.name.as_str()),
                "{name} uses {}, which it may not",
                dependency.name
            );
        }
    }
}

#[test]
fn pure_crates_depend_on_no_io() {
    for krate in PURE {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--package",
                krate,
                "--edges",
                "normal",
                "--prefix",
                "none",
                "--format",
                "{p}",
                "--offline",
            ])
            .current_dir(repository("."))
            .output()
            .expect("cargo tree runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let tree = String::from_utf8_lossy(&output.stdout);
        for package in tree.lines().filter_map(|line| line.split(' ').next()) {
            assert!(!IO.contains(&package), "{krate} depends on {package}");
        }
    }
}

#[test]
fn every_source_file_is_declared() {
    let mut declared = BTreeSet::new();
    let mut present = BTreeSet::new();
    for folder in ["crates", "xtask"] {
        walk(&repository(folder), &mut |file| {
            if file.extension().is_some_and(|end| end == "rs") {
                present.insert(file.to_owned());
            }
        });
    }
    for file in present.iter().filter(|file| is_root(file)) {
        declare(
            file,
            file.parent().expect("a file is in a folder"),
            &mut declared,
        );
    }
    let forgotten: Vec<_> = present.difference(&declared).collect();
    assert!(forgotten.is_empty(), "no module declares {forgotten:?}");
    assert!(
        declared.len() > 100,
        "the workspace has more than {} files",
        declared.len()
    );
}

/// Where a config is applied: what waits here, waits for something, and not for ever.
const APPLY_PATH: [&str; 8] = [
    "crates/agent/src/reconcile.rs",
    "crates/agent/src/reconcile",
    "crates/agent/src/daemons.rs",
    "crates/agent/src/daemons",
    "crates/agent/src/frr_shell.rs",
    "crates/agent/src/vtysh.rs",
    "crates/agent/src/program.rs",
    "crates/linux/src/netlink",
];

/// A pause stands in a loop that looks for an event, and is short; the loop is given up at a deadline.
#[test]
fn no_wait_of_an_apply_is_fixed_or_endless() {
    let mut files = Vec::new();
    for path in APPLY_PATH {
        let path = repository(path);
        if path.is_dir() {
            walk(&path, &mut |file| files.push(file.to_owned()));
        } else {
            files.push(path);
        }
    }
    let mut pauses = 0;
    for file in &files {
        let text = fs::read_to_string(file).expect("a file of the repository");
        let (text, _tests) = text.split_once("#[cfg(test)]").unwrap_or((&text, ""));
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            if !line.contains("sleep(") {
                continue;
            }
            pauses += 1;
            let place = format!("{}:{}", file.display(), index + 1);
            assert!(line.contains("sleep(POLL)"), "{place}: a fixed pause");
            let around = lines.iter().take(index + 12).skip(index.saturating_sub(12));
            let is_bounded =
                |line: &&&str| line.contains("< deadline") || line.contains("time::timeout(");
            assert!(
                around.filter(is_bounded).count() > 0,
                "{place}: no deadline beside the pause"
            );
        }
        let poll = lines.iter().find(|line| line.starts_with("const POLL"));
        let is_short = poll.is_none_or(|it| {
            let digits: String = it.chars().filter(char::is_ascii_digit).collect();
            it.contains("from_millis") && digits.parse::<u32>().is_ok_and(|it| it <= 50)
        });
        assert!(is_short, "{}: {poll:?}", file.display());
    }
    assert!(pauses >= 4, "the pauses were not found: {pauses}");
}

fn walk(folder: &Path, visit: &mut impl FnMut(&Path)) {
    let entries = fs::read_dir(folder).expect("a folder of the repository");
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            walk(&path, visit);
        } else {
            visit(&path);
        }
    }
}

/// Whether cargo finds the file by itself.
fn is_root(file: &Path) -> bool {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_name)
            .and_then(|name| name.to_str())
            .unwrap_or_default()
            .to_owned()
    };
    let is_package =
        |folder: Option<&Path>| folder.is_some_and(|folder| folder.join("Cargo.toml").exists());
    let folder = file.parent();
    let above = folder.and_then(Path::parent);
    let of_targets = |folder: &str| matches!(folder, "tests" | "examples" | "benches");
    let is_main = matches!(name(Some(file)).as_str(), "lib.rs" | "main.rs");
    if is_package(above) {
        of_targets(&name(folder)) || is_main
    } else {
        // A target of several files has a folder of its own.
        is_main && of_targets(&name(above)) && is_package(above.and_then(Path::parent))
    }
}

/// Adds a file, whose modules are in `own`, and all that its `mod` lines lead to.
fn declare(file: &Path, own: &Path, declared: &mut BTreeSet<PathBuf>) {
    if !declared.insert(file.to_owned()) {
        return;
    }
    let text = fs::read_to_string(file).expect("every declared module has a file");
    let folder = file.parent().expect("a file is in a folder");
    let mut given = None;
    for line in text.lines().map(str::trim) {
        if let Some(path) = line
            .strip_prefix("#[path = \"")
            .and_then(|rest| rest.strip_suffix("\"]"))
        {
            given = Some(folder.join(path));
            continue;
        }
        let words = line
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub(super) ")
            .trim_start_matches("pub ");
        let Some(module) = words
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(';'))
        else {
            continue;
        };
        match given.take() {
            // A file that is named by its path has its modules beside it.
            Some(path) => declare(
                &path,
                path.parent().expect("a file is in a folder"),
                declared,
            ),
            None => declare(
                &own.join(format!("{module}.rs")),
                &own.join(module),
                declared,
            ),
        }
    }
}
