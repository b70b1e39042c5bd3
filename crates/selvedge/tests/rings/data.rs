//! The data that several rings read: the examples of the source documents, and the rules of each kind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::Value;

use crate::support::repository;

/// One example of a source document, as `tests/seeds/index.yaml` tells of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Example {
    /// Its file below `tests/seeds`.
    pub(crate) file: String,
    /// `apiVersion/kind` of its objects.
    pub(crate) kinds: Vec<String>,
    /// What must be there beside it, as `kind/name`.
    #[serde(default)]
    pub(crate) refers: Vec<String>,
}

impl Example {
    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        seeds().join(&self.file)
    }

    /// Its objects.
    pub(crate) fn objects(&self) -> anyhow::Result<Vec<Value>> {
        objects(&self.path())
    }
}

/// Every example there is.
pub(crate) fn examples() -> anyhow::Result<Vec<Example>> {
    let path = seeds().join("index.yaml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_saphyr::from_str(&text)?)
}

/// What the examples refer to.
pub(crate) fn referred() -> anyhow::Result<Vec<Value>> {
    objects(&seeds().join("support.yaml"))
}

/// The directory of the examples.
pub(crate) fn seeds() -> PathBuf {
    repository("tests/seeds")
}

/// The rules of one kind.
#[derive(Debug)]
pub(crate) struct RuleFile {
    /// Its path below `tests/rules`, for messages.
    pub(crate) name: String,
    /// Its cases.
    pub(crate) cases: Vec<RuleCase>,
}

/// One rule, by an object that it takes and one that it does not.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RuleCase {
    /// Message of the rule.
    pub(crate) rule: String,
    /// An object that is taken.
    pub(crate) accepted: Value,
    /// The same object after a change that is taken.
    pub(crate) accepted_update: Option<Value>,
    /// An object that is not taken.
    pub(crate) refused: Option<Value>,
    /// The accepted object after a change that is not taken.
    pub(crate) refused_update: Option<Value>,
    /// A part of what the API server says when it refuses.
    pub(crate) message: String,
}

/// Every rule there is, by file.
pub(crate) fn rules() -> anyhow::Result<Vec<RuleFile>> {
    let root = repository("tests/rules");
    let mut files = Vec::new();
    for folder in listed(&root)? {
        for path in listed(&folder)? {
            let text = fs::read_to_string(&path)?;
            let cases =
                serde_saphyr::from_str(&text).with_context(|| path.display().to_string())?;
            let name = path.strip_prefix(&root)?.display().to_string();
            files.push(RuleFile { name, cases });
        }
    }
    Ok(files)
}

/// What a folder holds, in order of names.
pub(crate) fn listed(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

/// The objects of a file.
pub(crate) fn objects(path: &Path) -> anyhow::Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(&text).with_context(|| path.display().to_string())?;
    Ok(documents)
}

/// A field of an object that is a text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// `kind/name` of an object.
pub(crate) fn name(object: &Value) -> String {
    format!(
        "{}/{}",
        text(object, "/kind"),
        text(object, "/metadata/name")
    )
}
