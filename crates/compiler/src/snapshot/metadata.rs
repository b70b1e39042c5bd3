//! The metadata of a document, checked as the API server checks it: a file is read by the same rules as a cluster.

use api::meta::{Labels, is_dns_name, is_framed, is_label_key, is_label_value};
use serde_json::{Map, Value};

use super::{Kind, Lookup, Meta, ObjectRef, words};

/// How the names of annotations begin that mean something to Selvedge.
const OUR_ANNOTATIONS: &str = "selvedge.dev/";

/// A field of the metadata, and what is wrong with it.
pub(super) type Fault = (String, String);

/// What Kubernetes knows about an object, as far as it can be read, and what is wrong with it.
pub(super) fn read(kind: Kind, document: &Value) -> (Meta, Vec<Fault>) {
    let empty = Map::new();
    let metadata = document.get("metadata").and_then(Value::as_object);
    let mut reader = Reader {
        fields: metadata.unwrap_or(&empty),
        faults: Vec::new(),
    };
    reader.names(kind);
    let created = reader.text("creationTimestamp");
    if let Some(time) = created.as_deref().filter(|time| !is_time(time)) {
        let message = format!("{time:?} is not a time such as \"2026-01-31T12:00:00Z\"");
        reader.fault("creationTimestamp", message);
    }
    let labels = reader.labels();
    let meta = Meta {
        labels,
        annotations: reader.annotations(),
        created,
        generation: reader.generation(),
        uid: reader.text("uid"),
        owner: reader.owner(),
    };
    (meta, reader.faults)
}

struct Reader<'a> {
    fields: &'a Map<String, Value>,
    faults: Vec<Fault>,
}

impl<'a> Reader<'a> {
    fn fault(&mut self, field: &str, message: impl Into<String>) {
        self.faults
            .push((format!("metadata.{field}"), message.into()));
    }

    /// A field that is there; like the API server, a field that is null is not.
    fn field(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Option<String> {
        let value = self.field(name)?;
        if value.as_str().is_none() {
            let message = words::misfit("text", value);
            self.fault(name, message);
        }
        value.as_str().map(str::to_owned)
    }

    fn names(&mut self, kind: Kind) {
        let name = self.text("name").unwrap_or_default();
        if !is_dns_name(&name) {
            let message = format!(
                "{name:?} is not the name of an object: at most 253 lower-case letters, digits, '-' and '.', \
                 and a letter or digit at both ends of each part"
            );
            self.fault("name", message);
        }
        // The API server drops the namespace of an object that is in none.
        let namespace = self.text("namespace").filter(|_| kind.is_namespaced());
        if let Some(namespace) = namespace.filter(|one| !one.is_empty() && !is_label(one)) {
            let message = format!(
                "{namespace:?} is not the name of a namespace: at most 63 lower-case letters, digits and '-', \
                 and a letter or digit at both ends"
            );
            self.fault("namespace", message);
        }
    }

    /// The entries of a map of strings; those that are none are faults.
    fn entries(&mut self, name: &str) -> Vec<(&'a String, &'a str)> {
        let Some(value) = self.field(name) else {
            return Vec::new();
        };
        let Some(entries) = value.as_object() else {
            let message = words::misfit("a map", value);
            self.fault(name, message);
            return Vec::new();
        };
        let mut read = Vec::new();
        for (key, value) in entries {
            match value {
                Value::String(text) => read.push((key, text.as_str())),
                Value::Null => {
                    let message = "has no value: write one, or remove the line";
                    self.fault(&entry(name, key), message);
                }
                other => {
                    let message = words::misfit("text", other);
                    self.fault(&entry(name, key), message);
                }
            }
        }
        read
    }

    fn labels(&mut self) -> Labels {
        let entries = self.entries("labels");
        for (key, value) in &entries {
            if !is_label_key(key) {
                self.fault(&entry("labels", key), not_qualified(key));
            } else if !is_label_value(value) {
                let message = format!(
                    "{value:?} is not the value of a label: at most 63 letters, digits, '-', '_' and '.', \
                     and a letter or digit at both ends"
                );
                self.fault(&entry("labels", key), message);
            }
        }
        let labels = entries.into_iter();
        labels
            .map(|(key, value)| (key.clone(), value.to_owned()))
            .collect()
    }

    /// The annotations that are ours; all are checked.
    fn annotations(&mut self) -> Labels {
        let mut ours = Labels::new();
        for (key, value) in self.entries("annotations") {
            // The API server compares keys of annotations in lower case.
            if !is_label_key(&key.to_lowercase()) {
                self.fault(&entry("annotations", key), not_qualified(key));
            }
            if key.starts_with(OUR_ANNOTATIONS) {
                ours.insert(key.clone(), value.to_owned());
            }
        }
        ours
    }

    fn generation(&mut self) -> Option<i64> {
        let value = self.field("generation")?;
        if value.as_i64().is_none() {
            self.fault("generation", "must be an integer");
        }
        value.as_i64()
    }

    /// The intent that the object was generated from.
    fn owner(&mut self) -> Option<ObjectRef> {
        let value = self.field("ownerReferences")?;
        let Some(owners) = value.as_array() else {
            self.fault("ownerReferences", "must be a list");
            return None;
        };
        let mut found = None;
        for (index, owner) in owners.iter().enumerate() {
            let text = |name: &str| owner.get(name).and_then(Value::as_str);
            let (Some(api_version), Some(kind), Some(name)) =
                (text("apiVersion"), text("kind"), text("name"))
            else {
                let message = "must have the strings apiVersion, kind and name";
                self.fault(&format!("ownerReferences[{index}]"), message);
                continue;
            };
            let is_controller = match owner.get("controller") {
                Some(Value::Bool(is_controller)) => *is_controller,
                None | Some(Value::Null) => false,
                Some(_) => {
                    let field = format!("ownerReferences[{index}].controller");
                    self.fault(&field, "must be true or false");
                    false
                }
            };
            if !is_controller || found.is_some() {
                continue;
            }
            found = match Kind::find(api_version, kind) {
                Lookup::Ours(kind) => Some(ObjectRef::named(kind, name)),
                Lookup::Foreign | Lookup::Misplaced(_) | Lookup::Unknown(_) => None,
            };
        }
        found
    }
}

/// Path of an entry of a map, whatever its key holds.
fn entry(field: &str, key: &str) -> String {
    format!("{field}[{key:?}]")
}

fn not_qualified(key: &str) -> String {
    format!(
        "{key:?} is not a key: at most 63 letters, digits, '-', '_' and '.', and a letter or digit at both ends; \
         before it, if anything, a DNS name and '/'"
    )
}

/// A DNS label as of RFC 1123.
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.len() <= 63 && is_framed(text, is_inner)
}

/// Whether a text has the form of a time as of RFC 3339.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == form,
    };
    let (seconds, rest) = (bytes.get(..19), bytes.get(19..).unwrap_or_default());
    let form = b"0000-00-00T00:00:00";
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let zone = match rest.split_first() {
        Some((b'.', fraction)) => {
            let end = fraction.iter().position(|byte| !byte.is_ascii_digit());
            let (digits, zone) = fraction.split_at(end.unwrap_or(fraction.len()));
            if is_digits(digits) { zone } else { b"" }
        }
        _ => rest,
    };
    let has_zone = match zone {
        b"Z" => true,
        [b'+' | b'-', hours @ .., b':', m1, m2] => {
            hours.len() == 2 && is_digits(hours) && is_digits(&[*m1, *m2])
        }
        _ => false,
    };
    has_zone && seconds.is_some_and(|seconds| seconds.iter().zip(form).all(fits))
}
