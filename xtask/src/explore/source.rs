//! The laws of the workspace, found in its source: the tests in `proptest!` blocks.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// A package with laws.
pub(super) struct Package {
    pub(super) name: String,
    /// The options of cargo that choose the targets which the laws are in.
    pub(super) targets: BTreeSet<String>,
    /// Names of functions, without their modules.
    pub(super) laws: BTreeSet<String>,
}

/// All packages that have laws.
pub(super) fn packages() -> anyhow::Result<Vec<Package>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut packages = Vec::new();
    for root in entries(&folder)? {
        let mut files = Vec::new();
        for part in ["src", "tests"] {
            sources(&root.join(part), &mut files)?;
        }
        let (mut targets, mut laws) = (BTreeSet::new(), BTreeSet::new());
        for file in files {
            let found = of(&read(&file)?);
            if !found.is_empty() {
                targets.extend(target(&root, &file));
                laws.extend(found);
            }
        }
        if !laws.is_empty() {
            let name = name(&read(&root.join("Cargo.toml"))?);
            let name = name.with_context(|| format!("{} has no name", root.display()))?;
            packages.push(Package {
                name,
                targets,
                laws,
            });
        }
    }
    anyhow::ensure!(!packages.is_empty(), "no laws in {}", folder.display());
    Ok(packages)
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let context = || format!("failed to read {}", folder.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).with_context(context)? {
        entries.push(entry.with_context(context)?.path());
    }
    entries.sort();
    Ok(entries)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for path in entries(folder)? {
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The option that chooses the target which a file is part of.
fn target(root: &Path, file: &Path) -> Option<String> {
    match file.strip_prefix(root.join("tests")) {
        Ok(in_tests) => {
            let first = in_tests.iter().next().map(Path::new)?;
            Some(format!("--test={}", first.file_stem()?.to_str()?))
        }
        Err(_) if root.join("src/lib.rs").exists() => Some("--lib".to_owned()),
        Err(_) => Some("--bins".to_owned()),
    }
}

/// The name of a package, from its manifest.
fn name(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// The tests in `proptest!` blocks of a source file. rustfmt puts the end of a block under its beginning.
fn of(source: &str) -> Vec<String> {
    let mut laws = Vec::new();
    let mut end: Option<String> = None;
    let mut is_test = false;
    for line in source.lines() {
        let text = line.trim_start();
        let indent = line.get(..line.len() - text.len()).unwrap_or_default();
        match &end {
            None if text == "proptest! {" => end = Some(format!("{indent}}}")),
            None => {}
            Some(end_line) if line == end_line => end = None,
            Some(_) if text == "#[test]" => is_test = true,
            Some(_) => {
                if let Some(rest) = text.strip_prefix("fn ").filter(|_| is_test) {
                    laws.extend(rest.split('(').next().map(str::to_owned));
                    is_test = false;
                }
            }
        }
    }
    laws
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_the_tests_of_blocks() {
        let source = "
#[test]
fn no_law() {}

mod tests {
    proptest! {
        #![proptest_config(laws(1))]

        /// Documented.
        #[test]
        fn a_law(x in 0..1) {
            fn helper() {}
        }

        #[test]
        fn another(
            x in 0..1
        ) {}
    }

    #[test]
    fn no_law_either() {}
}
";
        assert_eq!(of(source), ["a_law", "another"]);
    }

    #[test]
    fn a_file_is_part_of_a_target() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/frr");
        let target = |file: &str| target(&root, &root.join(file));
        assert_eq!(target("src/diff.rs").as_deref(), Some("--lib"));
        assert_eq!(target("tests/laws.rs").as_deref(), Some("--test=laws"));
        assert_eq!(target("tests/laws/a.rs").as_deref(), Some("--test=laws"));
    }

    #[test]
    fn the_laws_of_the_workspace_are_found() {
        let packages = packages().expect("the workspace");
        let names: Vec<&str> = packages.iter().map(|one| one.name.as_str()).collect();
        let known = [
            "selvedge-api",
            "selvedge-compiler",
            "selvedge-explain",
            "selvedge-frr",
            "selvedge-linux",
            "selvedge",
        ];
        for name in known {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
    }
}
