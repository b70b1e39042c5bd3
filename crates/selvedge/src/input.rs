//! From files to a snapshot: every document with where it came from, so that a message can say so.

mod checks;
mod fault;
mod files;
mod json;
mod kinds;
mod null;
mod place;
mod plain;
mod set_aside;
mod split;
mod yaml;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fmt, fs,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use anyhow::Context;
use compiler::{Insertion, Kind, ObjectRef, Prepared, Snapshot, snapshot::shape};
use serde_json::{Map, Value};

use self::{
    fault::Fault,
    files::Files,
    null::{null_fields, without_null_fields},
    place::{Step, Tree},
    set_aside::SetAside,
    split::Part,
};
pub(crate) use self::{files::files, place::Place};
use crate::rules::Rules;

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

    /// Whether a field is written in the document.
    pub(crate) fn has(&self, field: &str) -> bool {
        let around = field.rsplit_once('.').map_or("", |(around, _)| around);
        self.text.is_some() && self.at(field) != self.at(around)
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
    /// Paths that were given, and below which no document is.
    empty: Vec<PathBuf>,
    /// How many documents there are, read or not.
    documents: usize,
    /// Documents that were not read as objects.
    set_aside: Vec<SetAside>,
    rules: Rules,
    node_labels: OnceLock<NodeLabels>,
    /// The objects of the cluster that the documents are applied to.
    cluster: Stored,
}

/// The labels that nodes have, each with its values.
pub(crate) type NodeLabels = BTreeMap<String, BTreeSet<String>>;

/// The objects of a cluster, as the API server stores them.
pub(crate) type Stored = Arc<BTreeMap<ObjectRef, Value>>;

/// Reads manifests from files, directories and standard input, which may have none.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<World> {
    read_any(paths, Stored::default())
}

/// Reads manifests that are applied to a cluster: its other objects are there too. A path without manifests is likely to be a wrong one.
pub(crate) fn read_over(paths: &[PathBuf], cluster: Stored) -> anyhow::Result<World> {
    let world = read_any(paths, cluster)?;
    anyhow::ensure!(world.empty.is_empty(), "{}", nothing_in(&world.empty));
    Ok(world)
}

fn read_any(paths: &[PathBuf], cluster: Stored) -> anyhow::Result<World> {
    let mut world = World {
        cluster,
        ..World::default()
    };
    let mut files = Files::default();
    let mut is_input_read = false;
    for path in paths {
        let (documents, again) = (world.documents, files.again.len());
        if path.as_os_str() == "-" {
            if std::mem::replace(&mut is_input_read, true) {
                files.again.push(path.clone());
            } else {
                world.add_bytes("<stdin>", files::standard_input()?);
            }
        } else {
            for file in files.below(path)? {
                let bytes = files::bytes_of(&file)?;
                world.add_bytes(&file.display().to_string(), bytes);
            }
        }
        if world.documents == documents && files.again.len() == again {
            world.empty.push(path.clone());
        }
    }
    given_again(&files.again);
    world.add_stored();
    Ok(world)
}

/// Says which files were given more than once; each is read once.
fn given_again(files: &[PathBuf]) {
    let more = match files.len() {
        0 => return,
        1 => String::new(),
        number => format!(" and {}", crate::output::counted(number - 1, "more file")),
    };
    let first = files.first().map(|file| file.display().to_string());
    let first = first.unwrap_or_default();
    let verb = if files.len() == 1 { "is" } else { "are" };
    let line = format!("{first}{more} {verb} given more than once, and read once");
    crate::output::note(&crate::output::wrapped(&line, 4));
}

/// What to say of paths in which there is no object.
pub(crate) fn nothing_in(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match names.as_slice() {
        [] => "the cluster has no objects that Selvedge reads".to_owned(),
        [one] if one == "-" => "standard input is empty".to_owned(),
        names => format!(
            "no object in {}: expected *.yaml, *.yml or *.json files with Kubernetes objects",
            names.join(", ")
        ),
    }
}

/// The documents of files and directories as they are, lists taken apart; for kinds that are no input of the compiler.
pub(crate) fn documents(paths: &[PathBuf]) -> anyhow::Result<Vec<Value>> {
    let mut found = Vec::new();
    for path in paths {
        for file in files(path)? {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("failed to read {}", file.display()))?;
            // What is no YAML is an error of `read`.
            for document in yaml::read(&text, yaml::Form::of(&file.display().to_string()))
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
        self.origins.is_empty()
            && self.unknown.is_empty()
            && self.misplaced.is_empty()
            && self.foreign.is_empty()
    }

    fn add_bytes(&mut self, file: &str, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.add(file, text.strip_prefix('\u{feff}').unwrap_or(&text)),
            Err(not_utf8) => {
                self.documents += 1;
                let fault = fault::of_bytes(not_utf8.as_bytes(), not_utf8.utf8_error());
                self.refuse(Origin::of_file(&file.into()), fault);
            }
        }
    }

    /// Adds the documents of one text.
    pub(crate) fn add(&mut self, file: &str, text: &str) {
        let documents = yaml::read(text, yaml::Form::of(file));
        self.documents += documents.len();
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
                        self.check_names(&object, &document);
                    }
                    Entry::Occupied(_) => self.copies.entry(object).or_default().push(origin),
                }
            }
            Insertion::Foreign(kind) => {
                self.set_aside.extend(SetAside::of(&origin, &document));
                match kinds::misspelled(&document) {
                    Some(found) => self.unknown.push(unread(origin, found)),
                    None => *self.foreign.entry(kind).or_default() += 1,
                }
            }
            Insertion::Misplaced { message, .. } => {
                self.set_aside.extend(SetAside::of(&origin, &document));
                if let Some(found) = kinds::misspelled(&document) {
                    self.unknown.push(unread(origin, found));
                } else {
                    let found = kinds::misplaced(&document, message);
                    self.misplaced.push(unread(origin, found));
                }
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

    /// Whether it has an object of a kind, in effect or not.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        let mut objects = self.origins.range(ObjectRef::named(kind, "")..);
        objects
            .next()
            .is_some_and(|(object, _)| object.kind == kind)
    }

    /// The labels that nodes have.
    pub(crate) fn node_labels(&self) -> &NodeLabels {
        self.node_labels.get_or_init(|| {
            let mut known = NodeLabels::new();
            let nodes = self.snapshot.nodes.values();
            for (key, value) in nodes.flat_map(|node| &node.meta.labels) {
                let values = known.entry(key.clone()).or_default();
                values.insert(value.clone());
            }
            known
        })
    }

    /// Whether it has objects and no Node, so that nothing is known of what they become on nodes.
    pub(crate) fn has_no_node(&self) -> bool {
        !self.origins.is_empty() && !self.has(Kind::Node)
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
