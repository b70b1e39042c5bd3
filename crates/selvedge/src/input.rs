//! From files to a snapshot: every document with where it came from, so that a message can say so.

mod fault;
mod json;
mod kinds;
mod null;
mod place;
mod plain;
mod set_aside;
mod split;
mod yaml;

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use anyhow::Context;
use compiler::{Insertion, Kind, ObjectRef, Prepared, Problem, Snapshot, problem, snapshot::shape};
use serde_json::{Map, Value};

pub(crate) use self::place::Place;
use self::{
    fault::Fault,
    null::{below, null_fields, without_null_fields},
    place::{Step, Tree},
    set_aside::SetAside,
    split::Part,
};
use crate::rules::{self, Rules};

/// Where a document came from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    file: Arc<str>,
    /// Which document of the file, from one; absent where it is the only one.
    document: Option<usize>,
    /// The text of the document, where there is one.
    text: Option<Arc<Text>>,
    /// The place of the object in the List that it is an item of.
    items: Vec<usize>,
}

/// The text of one document, and where its fields are.
#[derive(Debug)]
struct Text {
    file: Arc<str>,
    part: Part,
    tree: OnceLock<Option<Tree>>,
}

/// A place in a file, as editors read it: `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct At {
    pub(crate) file: Arc<str>,
    pub(crate) place: Option<Place>,
    /// Which document of the file, from one; absent where it is the only one.
    pub(crate) document: Option<usize>,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.place {
            Some(Place { line, column }) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

impl At {
    /// Its parts, for programs; those that are not known are absent.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::from_iter([("file".to_owned(), Value::from(&*self.file))]);
        let place = self.place;
        let parts = [
            ("document", self.document),
            ("line", place.map(|place| place.line)),
            ("column", place.map(|place| place.column)),
        ];
        let known = parts
            .into_iter()
            .filter_map(|(name, part)| Some((name, part?)));
        fields.extend(known.map(|(name, part)| (name.to_owned(), part.into())));
        fields
    }
}

impl Origin {
    fn of_file(file: &Arc<str>) -> Self {
        Self {
            file: Arc::clone(file),
            document: None,
            text: None,
            items: Vec::new(),
        }
    }

    /// Where a field is, such as `spec.neighbors[0].asn`; the document itself where the path is empty.
    pub(crate) fn at(&self, field: &str) -> At {
        let place = self.text.as_ref().map(|text| {
            let own = || text.file.get(text.part.bytes.clone()).and_then(Tree::of);
            let Some(tree) = text.tree.get_or_init(own) else {
                let line = text.part.line;
                return Place { line, column: 1 };
            };
            let mut path: Vec<Step<'_>> = Vec::new();
            for item in &self.items {
                path.extend([Step::Key("items"), Step::Item(*item)]);
            }
            path.extend(place::steps(field));
            let mut place = tree.find(&path);
            place.line += text.part.first_line - 1;
            place
        });
        self.with(place)
    }

    fn with(&self, place: Option<Place>) -> At {
        At {
            file: Arc::clone(&self.file),
            place,
            document: self.document,
        }
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        let key = |one: &Self| (Arc::clone(&one.file), one.document, one.items.clone());
        key(self) == key(other)
    }
}

/// A document that is not read as an object of ours, and why.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    pub(crate) at: At,
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// Where the same stands for the first time.
    pub(crate) first: Option<At>,
    origin: Origin,
}

impl Unread {
    /// The message without kind and name of the document, where it begins with them.
    pub(crate) fn nameless(&self) -> &str {
        let parts = self.message.split_once(": ");
        let is_name = |before: &str| before.split(' ').count() == 2 && !before.contains('"');
        parts.map_or(&self.message, |(before, after)| {
            if is_name(before) {
                after
            } else {
                &self.message
            }
        })
    }

    /// Whether it may be a document of this object: its text has the name, and the kind or none that is known.
    pub(crate) fn may_be(&self, object: &ObjectRef) -> bool {
        let Some(text) = &self.origin.text else {
            return true;
        };
        let text = text.file.get(text.part.bytes.clone()).unwrap_or_default();
        let names = kinds::written(text, "name");
        // Of an object without a readable name, any may be meant.
        let is_unnamed = names.is_empty() || self.message.contains("metadata.name");
        let has_name = is_unnamed || names.iter().any(|name| *name == &*object.key.name);
        has_name && self.may_have_kind(object.kind)
    }

    /// Whether it may be a document of this kind.
    pub(crate) fn may_have_kind(&self, kind: Kind) -> bool {
        let Some(text) = &self.origin.text else {
            return true;
        };
        let text = text.file.get(text.part.bytes.clone()).unwrap_or_default();
        let kinds = kinds::written(text, "kind");
        let kind: &str = kind.into();
        let is_kind = |written: &&str| {
            *written == kind || crate::suggest::nearest(written, [kind].into_iter()).is_some()
        };
        // A kind that nothing knows may be any.
        let is_known = |written: &&str| kinds::is_known(written);
        kinds.iter().any(is_kind) || !kinds.iter().any(is_known)
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
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
    /// Where further copies of an object are.
    pub(crate) copies: BTreeMap<ObjectRef, Vec<Origin>>,
    /// Documents that are no object at all, or of no known kind.
    pub(crate) unknown: Vec<Unread>,
    /// Documents of other kinds whose group may be a mistake.
    pub(crate) misplaced: Vec<Unread>,
    /// How many objects of other kinds were skipped, by kind.
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
            let bytes = bytes(std::io::stdin(), MOST).context("failed to read standard input")?;
            world.add_bytes("<stdin>", bytes);
            continue;
        }
        for file in files(path)? {
            let bytes = bytes_of(&file)?;
            world.add_bytes(&file.display().to_string(), bytes);
        }
    }
    world.add_stored();
    Ok(world)
}

/// The most bytes that are read from one place. A device such as `/dev/zero` has no end.
const MOST: u64 = 1 << 30;

fn bytes_of(file: &Path) -> anyhow::Result<Vec<u8>> {
    let failed = || format!("failed to read {}", file.display());
    bytes(fs::File::open(file).with_context(failed)?, MOST).with_context(failed)
}

fn bytes(from: impl Read, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() as u64 <= most,
        "it is larger than {} MiB",
        most >> 20
    );
    Ok(bytes)
}

/// The documents of files and directories as they are, lists taken apart; for kinds that are no input of the compiler.
pub(crate) fn documents(paths: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            // What is no YAML is an error of `read`.
            for document in yaml::read(&text)
                .into_iter()
                .filter_map(|(_, value)| value.ok())
            {
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

    /// Whether no document was found, readable or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.origins.is_empty() && self.unknown.is_empty() && self.foreign.is_empty()
    }

    fn add_bytes(&mut self, file: &str, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.add(file, text.strip_prefix('\u{feff}').unwrap_or(&text)),
            Err(_not_utf8) => {
                let fault = Fault::of_all(
                    "the file is not text in UTF-8",
                    "manifests are YAML or JSON in UTF-8; is it compressed, or in another encoding?",
                );
                self.refuse(Origin::of_file(&file.into()), fault);
            }
        }
    }

    /// Adds the documents of one text.
    pub(crate) fn add(&mut self, file: &str, text: &str) {
        let documents = yaml::read(text);
        let several = documents.len() > 1;
        let file: Arc<str> = file.into();
        let text: Arc<str> = text.into();
        for (number, (part, value)) in (1..).zip(documents) {
            let origin = Origin {
                document: several.then_some(number),
                text: Some(Arc::new(Text {
                    file: Arc::clone(&text),
                    part,
                    tree: OnceLock::new(),
                })),
                ..Origin::of_file(&file)
            };
            match value {
                Ok(value) => self.insert(origin, value),
                Err(fault) => self.refuse(origin, fault),
            }
        }
    }

    /// Keeps why a text is not read.
    fn refuse(&mut self, origin: Origin, fault: Fault) {
        self.unknown.push(Unread {
            at: origin.with(fault.place),
            message: fault.message,
            hint: fault.hint,
            first: fault.first.map(|place| origin.with(Some(place))),
            origin,
        });
    }

    fn insert(&mut self, origin: Origin, document: Value) {
        // `kubectl get -o yaml` writes lists.
        let is_list = document
            .get("kind")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind.ends_with("List"));
        let is_list = is_list && document.get("items").is_some();
        let mut document = document;
        match document
            .get_mut("items")
            .filter(|_| is_list)
            .map(Value::take)
        {
            Some(Value::Array(items)) => {
                for (place, item) in items.into_iter().enumerate() {
                    let mut origin = origin.clone();
                    origin.items.push(place);
                    self.insert(origin, item);
                }
                return;
            }
            // An empty list may be written so.
            Some(Value::Null) => return,
            Some(other) => {
                let what = shape(&other);
                let fault = Fault {
                    place: origin.at("items").place,
                    message: format!("items of a List must be a list of objects, not {what}"),
                    hint: None,
                    first: None,
                };
                self.refuse(origin, fault);
                return;
            }
            None => {}
        }
        // Like the API server: a field that is null is not there.
        let mut nulls = Vec::new();
        null_fields("", &document, &mut nulls);
        if !nulls.is_empty() {
            document = without_null_fields(&document);
        }
        let document = self.applied(document);
        let known = self.snapshot.unreadable.len();
        match self.snapshot.insert(&document) {
            Insertion::Object(object) => {
                // Of an object that appears twice the first one counts, and its rules were checked.
                match self.origins.entry(object.clone()) {
                    Entry::Vacant(place) => {
                        place.insert(origin);
                        self.check_rules(&object, &document, known);
                        self.check_nulls(&object, &nulls);
                    }
                    Entry::Occupied(_) => self.copies.entry(object).or_default().push(origin),
                }
            }
            Insertion::Foreign(kind) => {
                self.set_aside.extend(SetAside::of(&origin, &document));
                *self.foreign.entry(kind).or_default() += 1;
                if let Some(found) = kinds::misspelled_group(&document) {
                    let found = unread(origin, found);
                    self.misplaced.push(found);
                }
            }
            Insertion::Misplaced { kind, message } => {
                self.set_aside.extend(SetAside::of(&origin, &document));
                *self.foreign.entry(kind).or_default() += 1;
                let found = kinds::Found {
                    field: "apiVersion",
                    message,
                    hint: None,
                };
                self.misplaced.push(unread(origin, found));
            }
            Insertion::Unknown(message) => {
                self.set_aside.extend(SetAside::of(&origin, &document));
                let found = kinds::unknown(&document, message);
                self.unknown.push(unread(origin, found));
            }
        }
    }

    /// A document as the API server would store it: an object that is there keeps what its author does not write.
    fn applied(&self, mut document: Value) -> Value {
        if self.cluster.is_empty() {
            return document;
        }
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
                place.insert(Origin::of_file(&CLUSTER.into()));
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
        // The reader looks into a list for the fields of a map; the type error alone is enough.
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

    /// Adds fields that are null and that no kind of this name has: another value would not be accepted.
    fn check_nulls(&mut self, object: &ObjectRef, nulls: &[(String, String)]) {
        for (parent, name) in nulls {
            let fields = rules::fields(object.kind, parent);
            if fields.is_empty() || fields.contains(&name.as_str()) {
                continue;
            }
            let field = below(parent, name);
            let problem = Problem::new(object.clone(), field, problem::Kind::UnknownField);
            self.snapshot.unreadable.push(problem);
        }
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

    /// One line on what was skipped, if anything was.
    pub(crate) fn passed_over(&self) -> Option<String> {
        let total: usize = self.foreign.values().sum();
        let kinds: Vec<String> = self
            .foreign
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        (total > 0).then(|| {
            let objects = crate::output::counted(total, "object");
            let line = format!("skipped {objects} of other kinds: {}", kinds.join(", "));
            crate::output::wrapped(&line, 4)
        })
    }
}

/// A document that is not read, with what was found of it.
fn unread(origin: Origin, found: kinds::Found) -> Unread {
    Unread {
        at: origin.at(found.field),
        message: found.message,
        hint: found.hint,
        first: None,
        origin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_read_up_to_a_limit() {
        let error = bytes(std::io::repeat(0), 2 << 20).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 2 MiB");
        assert_eq!(bytes(&b"kind: Node"[..], 10).unwrap(), b"kind: Node");
    }
}
