//! Ring 1, the language: texts that a user or a developer reads use plain technical English.
//!
//! The words below are images, or hide who does what. The descriptions of the CRDs have a test of their own in `api`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde_json::Value;

use crate::{data, support::repository};

/// Words and phrases that no text has, in lower case.
const VAGUE: [&str; 30] = [
    "whoever",
    "somebody",
    "somebody's",
    "someone",
    "nobody",
    "nobody's",
    "anybody",
    "shall",
    "told",
    "befalls",
    "befall",
    "house",
    "doors",
    "speaks of",
    "speak of",
    "spoke of",
    "spoken to",
    "in the way",
    "in its way",
    "let go",
    "lets go",
    "letting go",
    "this room",
    "people's own",
    "those who",
    "nothing is wrong",
    "sign of life",
    "is none of",
    "keeps what it has",
    "stands still",
];

/// Texts with one of these words that are right as they are: the word, and a part of the text.
const EXCEPTIONS: [(&str, &str); 1] = [
    // The account of Linux.
    ("nobody", "user nobody"),
];

/// Sources whose text is not written for readers: they are the lists of such words.
const LISTS: [&str; 1] = ["crates/selvedge/tests/rings/ring1_words.rs"];

/// The vague words of a text, each with the words around it.
fn vague(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let lower = text.to_lowercase();
    let mut found = Vec::new();
    for phrase in VAGUE {
        for (at, _) in lower.match_indices(phrase) {
            let is_part = |c: char| c.is_alphanumeric() || "-_/'".contains(c);
            let (before, after) = (&lower[..at], &lower[at + phrase.len()..]);
            if before.ends_with(is_part) || after.starts_with(is_part) {
                continue;
            }
            let start = lower.floor_char_boundary(at.saturating_sub(40));
            let end = lower.floor_char_boundary(at + phrase.len() + 40);
            let around = &lower[start..end];
            let is_right = |(word, part): &(&str, &str)| *word == phrase && around.contains(part);
            if !EXCEPTIONS.iter().any(is_right) {
                found.push(format!("{phrase:?} in \"… {around} …\""));
            }
        }
    }
    found
}

/// All files below a directory of the repository with one of these endings, by their path from the root.
fn files(folder: &str, endings: &[&str]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for path in data::listed(&repository(&folder.display().to_string()))? {
            let short = folder.join(path.file_name().context("a file has a name")?);
            if path.is_dir() {
                folders.push(short);
                continue;
            }
            let name = short.to_string_lossy().into_owned();
            if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push((short, fs::read_to_string(&path)?));
            }
        }
    }
    anyhow::ensure!(!found.is_empty(), "no files in {folder}");
    Ok(found)
}

fn report(path: &Path, text: &str, wrong: &mut Vec<String>) {
    for one in vague(text) {
        wrong.push(format!("{}: {one}", path.display()));
    }
}

#[test]
fn pages_help_and_the_reference_use_plain_words() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    // `docs/reference` has the texts of `--help`, of the CRDs and of all problems.
    let mut pages = files("docs", &[".md"])?;
    pages.retain(|(path, _)| !path.starts_with("docs/adr"));
    pages.extend(files("examples", &[".md", ".yaml"])?);
    pages.extend(files("deploy", &[".yaml"])?);
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        pages.push((page.into(), fs::read_to_string(repository(page))?));
    }
    assert!(pages.len() > 60, "{} pages", pages.len());
    for (path, text) in pages {
        report(&path, &text, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn problems_conditions_and_screens_use_plain_words() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, _) in files("tests/cases", &["problems.yaml", "status.yaml"])? {
        for object in data::objects(&repository(&path.display().to_string()))? {
            let mut texts = Vec::new();
            messages(&object, &mut texts);
            seen += texts.len();
            for text in texts {
                report(&path, text, &mut wrong);
            }
        }
    }
    assert!(seen > 1000, "{seen} messages");
    for folder in ["tests/broken", "tests/screens"] {
        for (path, text) in files(folder, &[".txt"])? {
            report(&path, &text, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The messages and remedies in an object.
fn messages<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == "message" || name == "remedy" => texts.push(text),
                    _ => messages(value, texts),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| messages(item, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn logs_messages_and_comments_of_the_sources_use_plain_words() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    let mut sources = files("crates", &[".rs"])?;
    sources.extend(files("xtask", &[".rs"])?);
    sources.retain(|(path, _)| {
        let path = path.to_string_lossy();
        let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
        !is_test && !LISTS.contains(&path.as_ref())
    });
    assert!(sources.len() > 200, "{} sources", sources.len());
    for (path, source) in sources {
        let source = source.split("\nmod tests {").next().unwrap_or_default();
        for text in texts(source) {
            report(&path, &text, &mut wrong);
        }
    }
    assert!(
        wrong.is_empty(),
        "{} in all\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Ok(())
}

/// The comments and string literals of a source, without its code. A block of comment lines is one text.
fn texts(source: &str) -> Vec<String> {
    let (mut texts, mut comment) = (Vec::new(), String::new());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("//") {
            let end = after.find('\n').unwrap_or(after.len());
            comment.push_str(after[..end].trim_start_matches(['/', '!']));
            comment.push(' ');
            rest = &after[end..];
            continue;
        }
        if !first.is_whitespace() && !comment.is_empty() {
            texts.push(std::mem::take(&mut comment));
        }
        let (text, after) = match first {
            '"' => literal(&rest[1..]),
            // A quote as a character does not begin a text.
            '\'' if rest.starts_with("'\"'") => (None, &rest[3..]),
            '\'' if rest.starts_with("'\\\"'") => (None, &rest[4..]),
            _ => (None, &rest[first.len_utf8()..]),
        };
        texts.extend(text);
        rest = after;
    }
    texts.push(comment);
    texts
}

/// The text of a literal behind its first quote, and what follows it.
fn literal(source: &str) -> (Option<String>, &str) {
    let mut text = String::new();
    let mut characters = source.char_indices();
    while let Some((at, one)) = characters.next() {
        match one {
            '"' => return (Some(text), &source[at + 1..]),
            '\\' => {
                text.push(' ');
                characters.next();
            }
            one => text.push(one),
        }
    }
    (Some(text), "")
}

#[test]
fn the_check_of_words_finds_them_in_comments_and_texts_only() {
    let source = "/// Whoever\n/// asks.\nfn told() { let room = '\"'; log(\"a line \\\n nobody wants\") } // shall";
    let found: Vec<String> = texts(source).iter().flat_map(|text| vague(text)).collect();
    let words: Vec<&str> = found
        .iter()
        .filter_map(|one| one.split('"').nth(1))
        .collect();
    assert_eq!(words, ["whoever", "nobody", "shall"]);
    assert!(vague("runs as the user nobody").is_empty());
    assert!(vague("the way in the ways: house-keeping, retold").is_empty());
}
