//! Ring 1, broken inputs: each file of `tests/broken` has one mistake, and the file beside it is all that `selvedge validate` prints.
//!
//! `UPDATE_GOLDENS=1` writes what it prints now; read it as a stranger before you keep it.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use crate::support::{SELVEDGE, repository, selvedge};

/// Words of the readers.
const FOREIGN: [&str; 8] = [
    "<input>",
    "DuplicateKeyPolicy",
    "budget",
    "while parsing",
    "EOF",
    "expected <",
    "simple key",
    "scalar",
];

fn inputs() -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(repository("tests/broken"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end != "txt") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[test]
fn every_mistake_is_described_as_it_is_written() -> anyhow::Result<()> {
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut wrong = Vec::new();
    let files = inputs()?;
    assert!(files.len() >= 60, "{} inputs", files.len());
    for file in files {
        let name = file.file_name().unwrap_or_default().display().to_string();
        let output = Command::new(SELVEDGE)
            .args(["validate", "-f", &format!("tests/broken/{name}")])
            .current_dir(repository(""))
            .output()?;
        let said = format!(
            "{}{}exit {}\n",
            String::from_utf8(output.stderr)?,
            String::from_utf8(output.stdout)?,
            output.status.code().unwrap_or(-1),
        );
        assert_ne!(output.status.code(), Some(0), "{name} is accepted");
        for word in FOREIGN {
            assert!(!said.contains(word), "{name}: {word:?} in {said}");
        }
        let golden = file.with_extension("txt");
        if update {
            fs::write(&golden, &said)?;
        } else if fs::read_to_string(&golden).unwrap_or_default() != said {
            wrong.push(format!("{name}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_mistake_at_the_end_of_five_megabytes_is_found_and_named() -> anyhow::Result<()> {
    let mut text = String::new();
    for node in 0..52_000 {
        write!(
            text,
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: worker-{node}\n  labels:\n    pool: blue\n    rack: r{}\n---\n",
            node % 40
        )?;
    }
    text.push_str(
        "apiVersion: network.t-caas.telekom.com/v1alpha1\nkind: Netwrok\nmetadata:\n  name: web\n",
    );
    assert!(text.len() > 5_000_000, "{} bytes", text.len());
    let lines = text.lines().count();
    let output = selvedge(&["validate", "-f", "-"], &text)?;
    let said = String::from_utf8(output.stderr)?;
    let place = format!("error: <stdin>:{}:1: ", lines - 2);
    assert!(said.starts_with(&place), "{said}");
    assert!(said.contains("did you mean Network?"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    Ok(())
}

#[test]
fn places_are_fields_of_their_own_in_json() -> anyhow::Result<()> {
    let text = fs::read_to_string(repository("tests/broken/vlan-out-of-range.yaml"))?;
    let output = selvedge(&["validate", "-o", "json", "-f", "-"], &text)?;
    let problems: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let problem = &problems[0];
    assert_eq!(problem["file"], "<stdin>");
    assert_eq!(problem["field"], "spec.vlan");
    let line = text.lines().position(|line| line.contains("vlan: 5000"));
    assert_eq!(problem["line"], line.unwrap_or_default() + 1);
    assert_eq!(problem["column"], 3);
    assert_eq!(problem["document"], 5);
    Ok(())
}
