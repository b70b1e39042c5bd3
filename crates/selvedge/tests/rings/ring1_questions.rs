//! Ring 1, questions: what people ask about a node, and what they read.
//!
//! Each file of `tests/questions` is a command line and all that it prints. `UPDATE_GOLDENS=1` writes what it prints now; read it before
//! you keep it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::support::{SELVEDGE, repository};

#[test]
fn every_question_is_answered_as_it_is_written() -> anyhow::Result<()> {
    let update = std::env::var_os("UPDATE_GOLDENS").is_some();
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(repository("tests/questions"))? {
        let path = entry?.path();
        // The others are what is asked about.
        if path.extension().is_some_and(|end| end == "txt") {
            files.push(path);
        }
    }
    files.sort();
    assert!(files.len() > 12, "questions are missing");
    let mut wrong = Vec::new();
    for file in files {
        let told = fs::read_to_string(&file)?;
        let answered = answered(&told, &file)?;
        if update {
            fs::write(&file, &answered)?;
        } else if told != answered {
            wrong.push(format!("{}\n{answered}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// The question with what is printed for it, and how the program ends.
fn answered(told: &str, file: &Path) -> anyhow::Result<String> {
    let line = told.lines().next().unwrap_or_default();
    let words = line
        .strip_prefix("$ selvedge ")
        .ok_or_else(|| anyhow::anyhow!("{}: no question", file.display()))?;
    // What stands between quotes is one word.
    let mut arguments: Vec<&str> = Vec::new();
    for (place, part) in words.split('\'').enumerate() {
        if place % 2 == 1 {
            arguments.push(part);
        } else {
            arguments.extend(part.split_whitespace());
        }
    }
    let output = Command::new(SELVEDGE)
        .args(&arguments)
        .current_dir(repository(""))
        .output()?;
    Ok(format!(
        "{line}\n{}{}exit {}\n",
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
        output.status.code().unwrap_or(-1),
    ))
}
