//! Ring 1: the documentation. Its pages are in the summary, its links lead somewhere, its commands exist and print what is
//! shown, and its manifests are valid.
//!
//! `UPDATE_DOCS=1 cargo test -p selvedge --test rings -- ring1_docs` writes what commands print now; read it before you keep it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;

use crate::{
    data,
    support::{SELVEDGE, repository, selvedge},
};

/// Pages outside of `docs` whose links and commands are tested as well.
const OTHER_PAGES: [&str; 8] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "examples/README.md",
    "examples/cluster/README.md",
    "examples/host-evpn/README.md",
    "examples/racks-12/README.md",
    "examples/vlans-on-bonds/README.md",
];

/// The objects that the manifests of the how-tos refer to.
const BASE: &str = "docs/how-to/base.yaml";

/// A page by its path in the repository.
type Pages = BTreeMap<String, String>;

fn pages() -> anyhow::Result<Pages> {
    let mut pages = Pages::new();
    add_pages(Path::new("docs"), &mut pages)?;
    for page in OTHER_PAGES {
        let path = repository(page);
        let text = fs::read_to_string(&path).with_context(|| page.to_owned())?;
        pages.insert(page.to_owned(), text);
    }
    Ok(pages)
}

fn add_pages(folder: &Path, pages: &mut Pages) -> anyhow::Result<()> {
    for path in data::listed(&repository(&folder.display().to_string()))? {
        let name = path.file_name().context("a file has a name")?;
        let short = folder.join(name);
        if path.is_dir() {
            add_pages(&short, pages)?;
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.insert(short.display().to_string(), fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[test]
fn the_summary_lists_every_page_once() -> anyhow::Result<()> {
    let pages = pages()?;
    let summary = &pages["docs/SUMMARY.md"];
    let listed: Vec<String> = links(summary)
        .into_iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let present: BTreeSet<&String> = pages
        .keys()
        .filter(|page| page.starts_with("docs/") && *page != "docs/SUMMARY.md")
        .filter(|page| !is_listed_elsewhere(page))
        .collect();
    let missing: Vec<_> = present.difference(&once).collect();
    let unknown: Vec<_> = once.difference(&present).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "missing in docs/SUMMARY.md: {missing:?}; not there: {unknown:?}"
    );
    Ok(())
}

/// Kinds and decision records have generated lists of their own.
fn is_listed_elsewhere(page: &str) -> bool {
    let name = page.rsplit('/').next().unwrap_or_default();
    let is_record = page.starts_with("docs/adr/") && name != "README.md";
    let is_kind = page.starts_with("docs/reference/")
        && !["cli.md", "kinds.md", "problems.md"].contains(&name);
    is_record || is_kind
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() -> anyhow::Result<()> {
    let pages = pages()?;
    let mut dead = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                joined(page, file)
            };
            if !repository(&target).exists() {
                dead.push(format!("{page}: {link}: no such file"));
            } else if !anchor.is_empty() {
                let headings = pages.get(&target).map(|text| anchors(text));
                if headings.is_none_or(|headings| !headings.contains(anchor)) {
                    dead.push(format!("{page}: {link}: no such heading"));
                }
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    Ok(())
}

/// Targets of the links of a page, without those in code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let outside_of_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for part in outside_of_code.split("](").skip(1) {
            links.extend(part.split(')').next().map(str::to_owned));
        }
    }
    links
}

/// A path as it is written in a page, from the root of the repository.
fn joined(page: &str, file: &str) -> String {
    let folder = Path::new(page).parent().unwrap_or_else(|| Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.display().to_string()
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let headings = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    headings
        .map(|heading| {
            let kept = heading
                .chars()
                .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// One command of a console block, with the lines that it prints there.
struct Shown {
    command: String,
    /// Absent where the page shows only the command.
    output: Option<String>,
}

/// A page as its texts and, between them, its console blocks.
fn console_blocks(text: &str) -> Vec<(String, Vec<Shown>)> {
    let mut blocks = Vec::new();
    for block in text.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let mut shown: Vec<Shown> = Vec::new();
        for line in block.split_inclusive('\n') {
            if let Some(command) = line.strip_prefix("$ ") {
                let command = command.trim_end().to_owned();
                shown.push(Shown {
                    command,
                    output: None,
                });
            } else if let Some(last) = shown.last_mut() {
                last.output.get_or_insert_default().push_str(line);
            }
        }
        blocks.push((block.to_owned(), shown));
    }
    blocks
}

/// The arguments of a command of this program.
fn arguments(command: &str) -> Option<Vec<&str>> {
    let command = command.split(" #").next().unwrap_or_default().trim();
    let command = command
        .strip_prefix("cargo run --release -- ")
        .or_else(|| command.strip_prefix("selvedge "))?;
    let is_pipe = command.contains(['|', '>', '"', '\'', '$']);
    (!is_pipe).then(|| command.split_whitespace().collect())
}

#[test]
fn commands_of_the_pages_exist() -> anyhow::Result<()> {
    let mut unknown = Vec::new();
    for (page, text) in pages()? {
        for shown in console_blocks(&text).into_iter().flat_map(|it| it.1) {
            let command = shown.command.split(" #").next().unwrap_or_default();
            let mut words = command.split_whitespace();
            let program = words.next().unwrap_or_default();
            if program != "selvedge" {
                continue;
            }
            let words: Vec<&str> = words.collect();
            let commands: Vec<&str> = words
                .iter()
                .copied()
                .take_while(|word| !word.starts_with('-'))
                .collect();
            // As many words as are commands: what follows them are values.
            let depth = (1..=commands.len().min(2)).rev().find(|depth| {
                let help = [commands.get(..*depth).unwrap_or_default(), &["--help"]].concat();
                selvedge(&help, "").is_ok_and(|output| output.status.success())
            });
            let Some(depth) = depth else {
                unknown.push(format!("{page}: {command}"));
                continue;
            };
            let help = [commands.get(..depth).unwrap_or_default(), &["--help"]].concat();
            let help = String::from_utf8(selvedge(&help, "")?.stdout)?;
            for flag in words.iter().filter(|word| word.starts_with('-')) {
                let flag = flag.split('=').next().unwrap_or_default();
                let is_known = *flag == *"-"
                    || help
                        .split(|c: char| c.is_whitespace() || c == ',' || c == '=')
                        .any(|word| word == flag);
                if !is_known {
                    unknown.push(format!("{page}: {command}: {flag}"));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    Ok(())
}

#[test]
fn commands_of_the_pages_print_what_is_shown() -> anyhow::Result<()> {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (page, text) in pages()? {
        let mut updated = text.clone();
        for (block, commands) in console_blocks(&text) {
            let mut printed = String::new();
            for shown in &commands {
                writeln!(printed, "$ {}", shown.command)?;
                let Some(output) = &shown.output else {
                    continue;
                };
                match runnable(&shown.command) {
                    Some(arguments) if !output.contains('…') => {
                        printed.push_str(&run(&arguments)?);
                        seen += 1;
                    }
                    _ => printed.push_str(output),
                }
                // A blank line before the next command.
                if output.ends_with("\n\n") && !printed.ends_with("\n\n") {
                    printed.push('\n');
                }
            }
            if printed != block {
                wrong.push(format!("{page}:\n{block}\nprints now:\n{printed}"));
                updated = updated.replace(&block, &printed);
            }
        }
        if update && updated != text {
            fs::write(repository(&page), updated)?;
        }
    }
    assert!(seen >= 6, "{seen} commands were run");
    assert!(
        update || wrong.is_empty(),
        "run the tests with UPDATE_DOCS=1\n{}",
        wrong.join("\n\n")
    );
    Ok(())
}

/// The arguments of a command that reads nothing but files of the repository.
fn runnable(command: &str) -> Option<Vec<&str>> {
    let arguments = arguments(command)?;
    let reads_files = |flag: &str| ["-f", "--file", "--to"].contains(&flag);
    let files: Vec<&str> = arguments
        .windows(2)
        .filter_map(|pair| match pair {
            [flag, value] if reads_files(flag) => Some(*value),
            _ => None,
        })
        .collect();
    let is_demo = arguments.first() == Some(&"demo");
    let all_there = !files.is_empty() && files.iter().all(|file| repository(file).exists());
    (is_demo || all_there).then_some(arguments)
}

/// What a command prints in the root of the repository, problems first, without measured times.
pub(crate) fn run(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(SELVEDGE)
        .args(arguments)
        .current_dir(repository("."))
        .env_remove("COLUMNS")
        .env("NO_COLOR", "1")
        .output()?;
    let printed = String::from_utf8([output.stderr, output.stdout].concat())?;
    let is_over = output.status.code().is_some_and(|code| code <= 2);
    anyhow::ensure!(is_over, "{arguments:?}: {}\n{printed}", output.status);
    let lines = printed.split_inclusive('\n').map(without_time);
    Ok(lines.collect())
}

/// A line without the time that was measured.
fn without_time(line: &str) -> String {
    match line.split_once(", compiled in ") {
        Some((before, _)) => format!("{before}\n"),
        None => line.to_owned(),
    }
}

#[test]
fn manifests_of_the_how_tos_are_valid_without_a_warning() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let base = repository(BASE).display().to_string();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (page, text) in pages()? {
        let apart = ["docs/openperouter.md", "docs/selector-conflicts.md"];
        if !page.starts_with("docs/") || apart.contains(&page.as_str()) {
            continue;
        }
        let blocks: Vec<&str> = text
            .split("```yaml\n")
            .skip(1)
            .map(|block| block.split("```").next().unwrap_or_default())
            .collect();
        if blocks.is_empty() {
            continue;
        }
        seen += blocks.len();
        let manifests = folder.path().join("manifests.yaml");
        fs::write(&manifests, blocks.join("---\n"))?;
        let manifests = manifests.display().to_string();
        let output = selvedge(&["validate", "-f", &base, "-f", &manifests], "")?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_clean = !messages.contains("error") && !messages.contains("warning");
        if !output.status.success() || !is_clean {
            wrong.push(format!("{page}:\n{messages}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 8, "{seen} manifests");
    Ok(())
}

#[test]
fn every_example_is_valid_without_a_warning_and_configures_its_nodes() -> anyhow::Result<()> {
    let mut seen = 0;
    for path in data::listed(&repository("examples"))? {
        if path.extension().is_some_and(|it| it == "md") {
            continue;
        }
        seen += 1;
        let shown = path.display().to_string();
        let output = selvedge(&["validate", "-f", &shown], "")?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_clean = !messages.contains("error:") && !messages.contains("warning:");
        assert!(output.status.success() && is_clean, "{shown}:\n{messages}");
        let arguments = ["compile", "-f", &shown, "--what", "nodes", "-o", "json"];
        let output = selvedge(&arguments, "")?;
        let nodes: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{shown}: {}", String::from_utf8_lossy(&output.stderr)))?;
        assert!(!nodes.to_string().is_empty(), "{shown}: no node");
    }
    assert!(seen >= 4, "{seen} examples");
    Ok(())
}
