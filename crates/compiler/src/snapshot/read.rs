//! From JSON to a typed object, with the path of whatever does not fit.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Map, Value};

use super::{Key, Kind, Object, ObjectRef, Objects, Partial, metadata, words};
use crate::problem::{self, Problem};

/// What is said of a field that must be there and is not.
pub const REQUIRED: &str = "is required";

/// Namespace and name of a document; or why it names no object.
pub(super) fn key(kind: Kind, document: &Value) -> Result<Key, &'static str> {
    let metadata = match document.get("metadata") {
        None | Some(Value::Null) => return Err("metadata.name is missing"),
        Some(Value::Object(metadata)) => metadata,
        Some(_) => return Err("metadata must be a map"),
    };
    let text = |field: &str| {
        metadata
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let default = kind.default_namespace();
    let namespace = default.map(|default| text("namespace").unwrap_or(default).into());
    let name = text("name").ok_or_else(|| match metadata.get("name") {
        None | Some(Value::Null | Value::String(_)) => "metadata.name is missing",
        Some(_) => "metadata.name must be text: put it in quotes",
    })?;
    Ok(Key {
        namespace,
        name: name.into(),
    })
}

/// Reads a document into `objects`, or, where its spec cannot be read, the rest into `unread`; and what is wrong with it into `problems`.
pub(super) fn object<S, T>(
    kind: Kind,
    document: &Value,
    objects: &mut Objects<S, T>,
    problems: &mut Vec<Problem>,
    unread: &mut BTreeMap<ObjectRef, Partial>,
) where
    S: DeserializeOwned,
    T: DeserializeOwned,
{
    let Ok(key) = key(kind, document) else {
        return;
    };
    let subject = ObjectRef {
        kind,
        key: key.clone(),
    };
    let mut report =
        |field: String, kind| problems.push(Problem::new(subject.clone(), field, kind));

    let Entry::Vacant(place) = objects.entry(key) else {
        report(String::new(), problem::Kind::Duplicate);
        return;
    };
    let known = ["apiVersion", "kind", "metadata", "spec", "status"];
    for field in document
        .as_object()
        .into_iter()
        .flat_map(Map::keys)
        .filter(|field| !known.contains(&field.as_str()))
    {
        if !kind.is_borrowed() {
            report(field.clone(), problem::Kind::UnknownField);
        }
    }
    let empty = Value::Object(Map::new());
    let spec = match document.get("spec") {
        Some(spec) if kind != Kind::Node && !spec.is_null() => spec,
        _ => &empty,
    };
    let spec = parse::<S>("spec", spec);
    let status = document
        .get("status")
        // A Node reports often, and nothing that is read here.
        .filter(|value| kind != Kind::Node && !value.is_null())
        .map(|value| parse::<T>("status", value));
    let (spec, status) = (
        spec.take(kind, &mut report),
        status.and_then(|status| status.take(kind, &mut report)),
    );
    let (meta, faults) = metadata::read(kind, document);
    let is_sound = faults.is_empty();
    for (field, message) in faults {
        report(field, problem::Kind::Unreadable { message });
    }
    let meta = Arc::new(meta);
    let Some(spec) = spec.filter(|_| is_sound) else {
        let status = document.get("status").cloned().unwrap_or_default();
        let status = Arc::new(status);
        unread.insert(subject, Partial { meta, status });
        return;
    };
    place.insert(Object {
        meta,
        spec: Arc::new(spec),
        status: status.map(Arc::new),
    });
}

/// A part of a document, as far as it could be read.
struct Parsed<T> {
    value: Result<T, Vec<Fault>>,
    unknown: Vec<String>,
}

/// A field, and what is wrong with it.
type Fault = (String, String);

impl<T> Parsed<T> {
    fn take(self, kind: Kind, report: &mut impl FnMut(String, problem::Kind)) -> Option<T> {
        if !kind.is_borrowed() {
            for field in self.unknown {
                report(field, problem::Kind::UnknownField);
            }
        }
        let faults = match self.value {
            Ok(value) => return Some(value),
            Err(faults) => faults,
        };
        for (field, message) in faults {
            report(field, problem::Kind::Unreadable { message });
        }
        None
    }
}

/// The most faults that are found in one part of a document.
const MOST: usize = 50;

/// Reads a part of a document. The reader stops at the first fault: what is faulty is taken out, and the rest is read again, so that all
/// faults are found at once.
fn parse<T: DeserializeOwned>(part: &str, value: &Value) -> Parsed<T> {
    // The reader would take a list for the fields of a map, in their order.
    if !value.is_object() {
        let message = words::misfit("a map", value);
        let value = Err(vec![(part.to_owned(), message)]);
        let unknown = Vec::new();
        return Parsed { value, unknown };
    }
    let mut unknown = Vec::new();
    let mut fault = match read::<T>(value, &mut unknown) {
        Ok(read) => {
            let unknown = unknown.iter().map(|path| field_path(part, path)).collect();
            return Parsed {
                value: Ok(read),
                unknown,
            };
        }
        Err(fault) => fault,
    };
    let mut rest = Rest::of(value);
    let mut faults: Vec<Fault> = Vec::new();
    while faults.len() < MOST {
        let (path, message) = fault;
        let place = rest.place(&path);
        // What was taken out is missing.
        let is_new = !(message == REQUIRED && rest.is_taken(&place));
        if is_new {
            faults.push((field_path(part, &place), message));
        }
        // What is missing cannot be taken out, and what lacks it can.
        let parent = path.rsplit_once('.').map(|(parent, _)| parent.to_owned());
        let is_out = rest.take(&path) || parent.is_some_and(|parent| rest.take(&parent));
        if !is_out {
            break;
        }
        let mut ignored = Vec::new();
        let read = read::<T>(&rest.value, &mut ignored);
        unknown.extend(ignored.iter().map(|path| rest.place(path)));
        match read {
            Ok(_) => break,
            Err(next) => fault = next,
        }
    }
    let mut fields: Vec<String> = Vec::new();
    for path in unknown {
        let field = field_path(part, &path);
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    Parsed {
        value: Err(faults),
        unknown: fields,
    }
}

/// One pass over a value: the value, or the path of the first fault and its message; and the paths of fields that no one reads.
fn read<T: DeserializeOwned>(value: &Value, unknown: &mut Vec<String>) -> Result<T, Fault> {
    let mut track = serde_path_to_error::Track::new();
    let deserializer =
        serde_path_to_error::Deserializer::new(value.into_deserializer(), &mut track);
    let result = serde_ignored::deserialize(deserializer, |path| unknown.push(path.to_string()));
    result.map_err(|error: serde_json::Error| {
        let (path, message) = (track.path().to_string(), error.to_string());
        // The reader stands at the object that lacks the field; what is wrong is the field.
        let missing = message
            .strip_prefix("missing field `")
            .and_then(|rest| rest.strip_suffix('`'));
        let own = at(value, &path);
        match missing {
            Some(name) => (format!("{path}.{name}"), REQUIRED.to_owned()),
            // What stands there may be one all the same.
            None if is_secret(&path) && !message.starts_with("\"(hidden)\"") => {
                (path, words::SECRET.to_owned())
            }
            None if message.starts_with("invalid IP") => {
                let written = own.map(ToString::to_string).unwrap_or_default();
                let message =
                    format!("{written} is not an IP address, such as 192.0.2.1 or 2001:db8::1");
                (path, message)
            }
            None => {
                let message = words::worded(&message, own);
                (path, message)
            }
        }
    })
}

/// What is left of a value.
struct Rest {
    value: Value,
    /// For each list that items were taken out of, by its path in the whole value: the places of those that are left.
    left: BTreeMap<String, Vec<usize>>,
    /// What was taken out, by its path in the whole value.
    taken: BTreeSet<String>,
}

impl Rest {
    fn of(value: &Value) -> Self {
        Self {
            value: value.clone(),
            left: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    /// The path in the whole value of what has a path in the rest.
    fn place(&self, path: &str) -> String {
        let mut whole = String::new();
        for step in steps(path) {
            let left = self.left.get(&whole);
            let place = left.and_then(|left| left.get(step.parse::<usize>().ok()?));
            let step = place.map_or(step, usize::to_string);
            let point = if whole.is_empty() { "" } else { "." };
            whole = format!("{whole}{point}{step}");
        }
        whole
    }

    fn is_taken(&self, place: &str) -> bool {
        self.taken.contains(place)
    }

    /// Takes out what has a path in the rest; false where nothing has.
    fn take(&mut self, path: &str) -> bool {
        let place = self.place(path);
        let mut way: Vec<String> = steps(path).collect();
        let Some(last) = way.pop() else {
            return false;
        };
        let around = way
            .iter()
            .try_fold(&mut self.value, |value, step| match value {
                Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
                other => other.get_mut(step),
            });
        let is_out = match around {
            Some(Value::Object(fields)) => fields.remove(&last).is_some(),
            Some(Value::Array(items)) => {
                let Some(index) = last.parse().ok().filter(|index| *index < items.len()) else {
                    return false;
                };
                let places = (0..items.len()).collect();
                items.remove(index);
                let list = self.place(&way.join("."));
                self.left.entry(list).or_insert(places).remove(index);
                true
            }
            _ => false,
        };
        if is_out {
            self.taken.insert(place);
        }
        is_out
    }
}

/// The steps of a path such as `neighbors[0].address` or `neighbors.0.address`.
fn steps(path: &str) -> impl Iterator<Item = String> {
    let path = path.replace('[', ".").replace(']', "");
    let steps: Vec<String> = path
        .split('.')
        .filter(|step| !step.is_empty() && *step != "?")
        .map(str::to_owned)
        .collect();
    steps.into_iter()
}

/// Whether a value is not to be shown, by its path.
pub fn is_secret(path: &str) -> bool {
    path.ends_with("password")
}

/// The value at a path such as `neighbors[0].address`.
fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

/// `spec` and `neighbors.0.asn` as `spec.neighbors[0].asn`; the two readers write paths in two ways.
fn field_path(part: &str, path: &str) -> String {
    let mut written = part.to_owned();
    for step in path
        .split('.')
        .filter(|step| !step.is_empty() && *step != "?")
    {
        if step.bytes().all(|b| b.is_ascii_digit()) {
            written.extend(["[", step, "]"]);
        } else {
            written.push('.');
            written.push_str(step);
        }
    }
    written
}
