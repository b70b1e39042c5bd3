//! Ring 3, the book: mdbook renders the documentation without a warning, and every link of the result leads somewhere.
//!
//! Pages that have generated lists of their own (kinds, decision records) become subchapters of these lists. Links to files
//! outside of `docs` lead to the repository.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Component, Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use lab::parts::Mdbook;

use crate::{
    data,
    support::{progress, repository},
};

/// Where files outside of the book are read.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Chapters whose pages are listed by a page of their own, with the directory of these pages.
const LISTED: [(&str, &str); 2] = [
    ("reference/kinds.md", "reference"),
    ("adr/README.md", "adr"),
];

#[test]
fn the_book_is_built_without_a_warning_and_its_links_lead_somewhere() -> anyhow::Result<()> {
    let mdbook = Mdbook::prepare(&progress)?;
    let source = tempfile::tempdir()?;
    let docs = repository("docs").canonicalize()?;
    copy(&docs, Path::new(""), source.path())?;
    let summary = source.path().join("SUMMARY.md");
    fs::write(&summary, complete(&fs::read_to_string(&summary)?, &docs)?)?;

    let book = repository("target/book");
    if book.exists() {
        fs::remove_dir_all(&book)?;
    }
    fs::create_dir_all(&book)?;
    let book = book.canonicalize()?;
    let output = Command::new(mdbook.program())
        .arg("build")
        .arg(source.path())
        .arg("--dest-dir")
        .arg(&book)
        .output()?;
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let complaints: Vec<&str> = messages
        .lines()
        .filter(|line| !line.trim_start().starts_with("INFO"))
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));

    let pages = rendered(&book)?;
    assert!(pages.len() > 80, "the book has only {} pages", pages.len());
    let dead = dead_links(&book, &pages);
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    Ok(())
}

/// Copies the pages; links that leave `docs` lead to the repository instead.
fn copy(docs: &Path, folder: &Path, target: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(target.join(folder))?;
    for path in data::listed(&docs.join(folder))? {
        let short = folder.join(path.file_name().context("a file has a name")?);
        if path.is_dir() {
            copy(docs, &short, target)?;
        } else if path.extension().is_some_and(|it| it == "md") && !path.ends_with("SUMMARY.md") {
            let text = fs::read_to_string(&path)?;
            fs::write(target.join(&short), with_links(&text, folder))?;
        } else {
            fs::copy(&path, target.join(&short))?;
        }
    }
    Ok(())
}

/// A page with the links that the book needs: out of `docs` to the repository, and to the names that pages have in the book.
fn with_links(text: &str, folder: &Path) -> String {
    let mut parts = text.split("](");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (link, rest) = part.split_once(')').unwrap_or((part, ""));
        let link = match outside(folder, link) {
            Some(path) => format!("{REPOSITORY}{path}"),
            // mdbook makes the page index.html of a README, and does not follow with links.
            None if !link.contains("://") => link.replace("README.md", "index.md"),
            None => link.to_owned(),
        };
        page.extend(["](", link.as_str(), ")", rest]);
    }
    page
}

/// The path in the repository of a link that leaves `docs`.
fn outside(folder: &Path, link: &str) -> Option<String> {
    if !link.starts_with("../") {
        return None;
    }
    let mut path = PathBuf::from("docs").join(folder);
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            other => path.push(other),
        }
    }
    (!path.starts_with("docs")).then(|| path.display().to_string())
}

/// The summary with a subchapter for each page that a generated list has.
fn complete(summary: &str, docs: &Path) -> anyhow::Result<String> {
    let mut complete = String::new();
    for line in summary.split_inclusive('\n') {
        complete.push_str(line);
        let Some((_, folder)) = LISTED
            .iter()
            .find(|(list, _)| line.contains(&format!("]({list})")))
        else {
            continue;
        };
        for path in data::listed(&docs.join(folder))? {
            let name = path.file_name().context("a file has a name")?;
            let link = format!("{folder}/{}", name.to_string_lossy());
            if summary.contains(&format!("]({link})")) {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            let title = text.lines().find_map(|line| line.strip_prefix("# "));
            let title = title.with_context(|| format!("{link} has no title"))?;
            complete.extend(["  - [", title, "](", link.as_str(), ")\n"]);
        }
    }
    Ok(complete)
}

/// What a rendered page has: its links and its anchors.
struct Rendered {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

fn rendered(book: &Path) -> anyhow::Result<BTreeMap<PathBuf, Rendered>> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![book.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in data::listed(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "html") {
                let text = fs::read_to_string(&path)?;
                // Links of the page for unknown addresses are relative to the root of a server.
                if path.ends_with("404.html") {
                    continue;
                }
                let links = [values(&text, "href"), values(&text, "src")].concat();
                let anchors = values(&text, "id").into_iter().collect();
                pages.insert(path, Rendered { links, anchors });
            }
        }
    }
    Ok(pages)
}

/// The values of an attribute.
fn values(html: &str, attribute: &str) -> Vec<String> {
    let start = format!(" {attribute}=\"");
    let parts = html.split(&start).skip(1);
    let values = parts.filter_map(|part| part.split('"').next());
    values.map(|value| value.replace("&amp;", "&")).collect()
}

fn dead_links(book: &Path, pages: &BTreeMap<PathBuf, Rendered>) -> Vec<String> {
    let mut dead = Vec::new();
    for (page, Rendered { links, .. }) in pages {
        for link in links {
            if link.contains("://") || link.starts_with("data:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() {
                page.clone()
            } else {
                let folder = page.parent().unwrap_or(book);
                folder.join(file)
            };
            let Ok(target) = target.canonicalize() else {
                dead.push(format!("{}: {link}: no such file", page.display()));
                continue;
            };
            let is_there = target.starts_with(book)
                && (anchor.is_empty()
                    || pages
                        .get(&target)
                        .is_none_or(|page| page.anchors.contains(anchor)));
            if !is_there {
                dead.push(format!("{}: {link}: no such heading", page.display()));
            }
        }
    }
    dead
}
