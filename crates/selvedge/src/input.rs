//! From files to a snapshot: every document with where it came from, so that a message can say so.

mod set_aside;
mod yaml;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use compiler::{Insertion, ObjectRef, Prepared, Problem, Snapshot, problem, snapshot::shape};
use serde_json::Value;

use self::set_aside::SetAside;
use crate::rules::Rules;

/// Where a document came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    file: String,
    /// Which document of the file, from one; absent where it is the only one.
    document: Option<usize>,
    /// The line on which the document begins, where it is known.
    line: Option<usize>,
}

impl Origin {
    /// Where to look, as editors read it: file and line.
    pub(crate) fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file),
            None => self.to_string(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.document {
            Some(number) => write!(f, " (document {number})"),
            None => Ok(()),
        }
    }
}

/// Where objects come from that no document stands for.
const CLUSTER: &str = "the cluster";

/// Everything that was read.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// The objects.
    pub(crate) snapshot: Snapshot,
    /// Where each object came from.
    pub(crate) origins: BTreeMap<ObjectRef, Origin>,
    /// Documents that are no object at all, or of no known kind.
    pub(crate) unknown: Vec<(Origin, String)>,
    /// Documents of somebody else's kinds whose group may be a mistake.
    pub(crate) misplaced: Vec<(Origin, String)>,
    /// How many objects of somebody else's kinds were passed over, by kind.
    pub(crate) foreign: BTreeMap<String, usize>,
    /// Documents that were not read as objects.
    set_aside: Vec<SetAside>,
    rules: Rules,
    /// The objects of the cluster that the documents are applied to.
    cluster: Stored,
}

/// The objects of a cluster, as the API server stores them.
pub(crate) type Stored = Arc<BTreeMap<ObjectRef, Value>>;

/// Reads manifests from files, directories and standard input.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<World> {
    read_over(paths, Stored::default())
}

/// Reads manifests that are applied to a cluster: its other objects are there too.
pub(crate) fn read_over(paths: &[PathBuf], cluster: Stored) -> anyhow::Result<World> {
    let mut world = World {
        cluster,
        ..World::default()
    };
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("failed to read standard input")?;
            world.add("standard input", &text);
            continue;
        }
        for file in files(path)? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            world.add(&file.display().to_string(), &text);
        }
    }
    world.add_stored();
    Ok(world)
}

/// The documents of files and directories as they are, lists taken apart; for kinds that are no input of the compiler.
pub(crate) fn documents(paths: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            // What is no YAML is an error of `read`.
            for document in yaml::documents(&text).unwrap_or_default() {
                match document.get("items").and_then(Value::as_array) {
                    Some(items) => found.extend(items.iter().cloned()),
                    None => found.push(document),
                }
            }
        }
    }
    Ok(found)
}

/// The manifests below a path, in order of their names.
pub(crate) fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let kind = fs::metadata(path).with_context(|| format!("failed to read {}", path.display()))?;
    if !kind.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("failed to list {}", path.display()))? {
        entries.push(
            entry
                .with_context(|| format!("failed to list {}", path.display()))?
                .path(),
        );
    }
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        let is_manifest = entry
            .extension()
            .is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        if entry.is_dir() {
            found.extend(files(&entry)?);
        } else if is_manifest {
            found.push(entry);
        }
    }
    Ok(found)
}

impl World {
    /// A world without objects that knows the rules that this one has read.
    #[cfg(test)]
    pub(crate) fn emptied(self) -> Self {
        Self {
            rules: self.rules,
            ..Self::default()
        }
    }

    /// Adds the documents of one text.
    pub(crate) fn add(&mut self, file: &str, text: &str) {
        match yaml::documents(text) {
            Ok(documents) => {
                let several = documents.len() > 1;
                let lines = first_lines(text);
                // Where the two do not agree on what a document is, no line is better than a wrong one.
                let is_sure = lines.len() == documents.len();
                for (place, document) in documents.into_iter().enumerate() {
                    let origin = Origin {
                        file: file.to_owned(),
                        document: several.then_some(place + 1),
                        line: lines.get(place).copied().filter(|_| is_sure),
                    };
                    self.insert(origin, &document);
                }
            }
            Err(message) => {
                let origin = Origin {
                    file: file.to_owned(),
                    document: None,
                    line: None,
                };
                self.unknown.push((origin, message));
            }
        }
    }

    fn insert(&mut self, origin: Origin, document: &Value) {
        // `kubectl get -o yaml` writes lists.
        let is_list = document
            .get("kind")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.ends_with("List"));
        match document.get("items").filter(|_| is_list) {
            Some(Value::Array(items)) => {
                for item in items {
                    self.insert(origin.clone(), item);
                }
                return;
            }
            // An empty list may be written so.
            Some(Value::Null) => return,
            Some(other) => {
                let what = shape(other);
                let message = format!("items of a List must be a list of objects, not {what}");
                self.unknown.push((origin, message));
                return;
            }
            None => {}
        }
        // Like the API server: a field that is null is not there.
        let document = self.applied(without_null_fields(document));
        let known = self.snapshot.unreadable.len();
        match self.snapshot.insert(&document) {
            Insertion::Object(object) => {
                // Of an object that appears twice the first one counts, and its rules were checked.
                if let Entry::Vacant(place) = self.origins.entry(object.clone()) {
                    place.insert(origin);
                    self.check_rules(&object, &document, known);
                }
            }
            Insertion::Foreign(kind) => {
                self.set_aside
                    .extend(SetAside::of(&origin, &document, &kind));
                *self.foreign.entry(kind).or_default() += 1;
            }
            Insertion::Misplaced { kind, message } => {
                self.set_aside
                    .extend(SetAside::of(&origin, &document, &message));
                *self.foreign.entry(kind).or_default() += 1;
                self.misplaced.push((origin, message));
            }
            Insertion::Unknown(message) => {
                self.set_aside
                    .extend(SetAside::of(&origin, &document, &message));
                self.unknown.push((origin, message));
            }
        }
    }

    /// A document as the API server would store it: an object that is there keeps what its author does not write.
    fn applied(&self, mut document: Value) -> Value {
        let Ok(prepared) = Prepared::read(&document) else {
            return document;
        };
        let Some(stored) = self.cluster.get(prepared.subject()) else {
            return document;
        };
        let metadata = document.get_mut("metadata").and_then(Value::as_object_mut);
        let known = stored.get("metadata");
        if let (Some(metadata), Some(known)) = (metadata, known) {
            for field in ["uid", "creationTimestamp", "generation", "ownerReferences"] {
                let known = known.get(field).cloned();
                metadata.extend(known.map(|known| (field.to_owned(), known)));
            }
        }
        if let (Some(fields), Some(status)) = (document.as_object_mut(), stored.get("status")) {
            fields.insert("status".to_owned(), status.clone());
        }
        document
    }

    /// Adds the objects of the cluster that no document stands for. The API server has checked their rules.
    fn add_stored(&mut self) {
        for (subject, document) in &*self.cluster {
            if let Entry::Vacant(place) = self.origins.entry(subject.clone()) {
                self.snapshot.insert(document);
                place.insert(Origin {
                    file: CLUSTER.to_owned(),
                    document: None,
                    line: None,
                });
            }
        }
    }

    /// Adds what rules of its kind the object breaks, except where the reader has already said so: in its problems from `known` on.
    fn check_rules(&mut self, object: &ObjectRef, document: &Value, known: usize) {
        let mut said = self.snapshot.unreadable.split_off(known);
        let is_unreadable =
            |problem: &Problem| matches!(problem.kind, problem::Kind::Unreadable { .. });
        let is_readable = !said.iter().any(is_unreadable);
        let broken = self.rules.broken(object, document, None, is_readable);
        let is_said = |problem: &Problem| said.iter().any(|said| said.field == problem.field);
        let (_, new): (Vec<_>, Vec<_>) = broken.into_iter().partition(is_said);
        // The reader looks into a list for the fields of a map; that it is none says it all.
        said.retain(|said| {
            let is_inside = |problem: &Problem| {
                let inside = said.field.strip_prefix(&problem.field);
                inside.is_some_and(|inside| inside.starts_with('['))
            };
            !is_unreadable(said) || !new.iter().any(is_inside)
        });
        self.snapshot.unreadable.extend(said);
        self.snapshot.unreadable.extend(new);
    }

    /// Adds what the API server would refuse of objects that are there before: changes of fields that cannot be changed. The rules are those
    /// of the definitions that it gets.
    pub(crate) fn check_changes(&mut self, before: &Snapshot) {
        let mut refused = Vec::new();
        for object in self.origins.keys() {
            if !self.rules.compare(object.kind) || before.meta(object).is_none() {
                continue;
            }
            let documents = (before.document(object), self.snapshot.document(object));
            let (Some(was), Some(becomes)) = documents else {
                continue;
            };
            if was.get("spec") != becomes.get("spec") {
                refused.extend(self.rules.broken(object, &becomes, Some(&was), true));
            }
        }
        refused.retain(|problem| !self.snapshot.unreadable.contains(problem));
        self.snapshot.unreadable.extend(refused);
    }

    /// One line on what was passed over, if anything was.
    pub(crate) fn passed_over(&self) -> Option<String> {
        let total: usize = self.foreign.values().sum();
        let kinds: Vec<String> = self
            .foreign
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        (total > 0).then(|| format!("passed over {total} of other kinds: {}", kinds.join(", ")))
    }
}

/// A document as the API server stores it: a field that is null is not there. A label without a value is left to be refused: without it,
/// a selector would select everything.
fn without_null_fields(value: &Value) -> Value {
    let is_map_of_strings = |name: &str| matches!(name, "labels" | "annotations" | "matchLabels");
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, field)| !field.is_null())
                .map(|(name, field)| match field {
                    Value::Object(_) if is_map_of_strings(name) => (name.clone(), field.clone()),
                    _ => (name.clone(), without_null_fields(field)),
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(without_null_fields).collect()),
        other => other.clone(),
    }
}

/// The lines on which the documents of a text begin, from one; those that hold nothing but comments are left out.
fn first_lines(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines()) {
        let mark = line.strip_prefix("---");
        let mark = mark.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        is_open &= mark.is_none();
        let content = mark.unwrap_or(line).trim();
        if !is_open && !content.is_empty() && !content.starts_with('#') {
            lines.push(number);
            is_open = true;
        }
    }
    lines
}
