//! Documents whose kind or group is not ours: what their author is likely to mean.

use std::collections::BTreeSet;

use compiler::Kind;
use serde_json::{Map, Value};
use strum::IntoEnumIterator;

use crate::suggest::nearest;

/// What is wrong with what a document says of itself.
pub(super) struct Found {
    /// The field that is wrong.
    pub(super) field: &'static str,
    pub(super) message: String,
    /// What to do.
    pub(super) hint: Option<String>,
}

/// The kinds that users write.
fn written_kinds() -> impl Iterator<Item = Kind> {
    Kind::iter().filter(|kind| !kind.is_borrowed())
}

/// A document that is no object, or of no kind of our groups. The message is the compiler's.
pub(super) fn unknown(document: &Value, message: String) -> Found {
    let Some(fields) = document.as_object() else {
        let what = compiler::snapshot::shape(document);
        return Found {
            field: "",
            message: format!("a document must be an object with apiVersion and kind, not {what}"),
            hint: document.is_array().then(|| {
                "write each object as a document of its own, with a line of --- between them"
                    .to_owned()
            }),
        };
    };
    let text = |field: &str| fields.get(field).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    for field in ["apiVersion", "kind"] {
        if text(field).is_some_and(|text| !text.is_empty()) {
            continue;
        }
        return lacks(fields, field, kind);
    }
    let (Some(api_version), Some(kind)) = (api_version, kind) else {
        return Found {
            field: "",
            message,
            hint: None,
        };
    };
    if message.contains("metadata") {
        return of_metadata(message);
    }
    let group = api_version.split('/').next().unwrap_or_default();
    let of_group = || written_kinds().filter(move |known| known.group_version().0 == group);
    let is_known = of_group().any(|known| <&str>::from(known) == kind);
    // The version is wrong or missing, or a group is one of ours: the message ends with what to write.
    let remedy = message
        .split_once("; write ")
        .or_else(|| message.split_once(": write "));
    if let Some((what, _)) = remedy.filter(|_| is_known || !api_version.contains('/')) {
        // Without a slash, the text is the version of the core group, or a group without a version.
        let own = api_version.split_once('/').map_or("", |(group, _)| group);
        let is_named = |known: &Kind| <&str>::from(known) == kind;
        let served = Kind::iter().find(|known| known.group_version().0 == own && is_named(known));
        let ours = || written_kinds().find(|known| known.group_version().0 == api_version);
        let served = served.or_else(ours).map(Kind::api_version);
        return Found {
            field: "apiVersion",
            message: what.to_owned(),
            hint: served.map(|served| format!("write apiVersion: {served}")),
        };
    }
    let names: Vec<&str> = of_group().map(<&str>::from).collect();
    let all: Vec<&str> = written_kinds().map(<&str>::from).collect();
    let hint = match nearest(kind, names.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => match nearest(kind, all.iter().copied())
            .and_then(|near| written_kinds().find(|known| <&str>::from(known) == near))
        {
            Some(known) => format!("did you mean {known} of {}?", known.api_version()),
            None => format!("the kinds of this group are {}", names.join(", ")),
        },
    };
    let name = document.pointer("/metadata/name").and_then(Value::as_str);
    let name = name
        .map(|name| format!("{kind} {name}: "))
        .unwrap_or_default();
    Found {
        field: "kind",
        message: format!("{name}unknown kind {kind} in {group}"),
        hint: Some(hint),
    }
}

/// An object without its apiVersion or its kind.
fn lacks(fields: &Map<String, Value>, field: &str, kind: Option<&str>) -> Found {
    let near = fields
        .keys()
        .find(|key| *key != field && key.eq_ignore_ascii_case(field));
    let of_kind = || {
        let kind = written_kinds().find(|known| Some(<&str>::from(known)) == kind)?;
        Some(format!("write apiVersion: {}", kind.api_version()))
    };
    let hint = match near {
        Some(near) => Some(format!("write {field} instead of {near}")),
        None if field == "apiVersion" => of_kind(),
        None => None,
    };
    Found {
        field: "",
        message: format!("{field} is missing: not a Kubernetes object"),
        hint: hint
            .or_else(|| Some("an object begins with apiVersion, kind and metadata".to_owned())),
    }
}

/// What is wrong with the metadata, at the field that the message is about.
fn of_metadata(message: String) -> Found {
    let field = if message.contains("metadata.name must") {
        "metadata.name"
    } else {
        "metadata"
    };
    let hint = message.contains("is missing");
    Found {
        field,
        message,
        hint: hint.then(|| "add a name: metadata: {name: web}".to_owned()),
    }
}

/// A document of another group that is nearly one of ours.
pub(super) fn misspelled(document: &Value) -> Option<Found> {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let name = document.pointer("/metadata/name").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    let node: &str = Kind::Node.into();
    let Some((group, _)) = api_version.split_once('/') else {
        nearest(kind, [node].into_iter())?;
        return Some(Found {
            field: "kind",
            message: format!("{kind} {name}: unknown kind {kind} in {api_version}"),
            hint: Some(format!("did you mean {node}?")),
        });
    };
    let known = similar(group, kind)?;
    let kind_too = if <&str>::from(known) == kind {
        String::new()
    } else {
        format!(" and kind: {known}")
    };
    Some(Found {
        field: "apiVersion",
        message: format!("{kind} {name}: {group} is not a group of Selvedge"),
        hint: Some(format!(
            "did you mean apiVersion: {}{kind_too}?",
            known.api_version()
        )),
    })
}

/// The kind whose group and name are like these.
fn similar(group: &str, kind: &str) -> Option<Kind> {
    let groups: BTreeSet<&str> = written_kinds()
        .map(|known| known.group_version().0)
        .collect();
    let near = nearest(group, groups.into_iter())?;
    let of_group = written_kinds().filter(|known| known.group_version().0 == near);
    let of_group: Vec<Kind> = of_group.collect();
    let named = |name: &str| {
        of_group
            .iter()
            .copied()
            .find(|known| <&str>::from(known) == name)
    };
    named(kind).or_else(|| named(nearest(kind, of_group.iter().map(<&str>::from))?))
}

/// A document of a foreign group with the name of one of our kinds. The message is the compiler's.
pub(super) fn misplaced(document: &Value, message: String) -> Found {
    let kind = document.get("kind").and_then(Value::as_str);
    let named = written_kinds().filter(|known| Some(<&str>::from(known)) == kind);
    let versions: Vec<String> = named.map(Kind::api_version).collect();
    let versions = versions.join(" or ");
    Found {
        field: "apiVersion",
        message,
        hint: Some(format!(
            "write apiVersion: {versions} if the object is for Selvedge"
        )),
    }
}

/// Whether some kind that users write has this name.
pub(super) fn is_known(kind: &str) -> bool {
    Kind::iter().any(|known| <&str>::from(known) == kind)
}

/// The values of a field with this name, wherever in a text it stands; for texts that cannot be read.
pub(super) fn written<'a>(text: &'a str, field: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for (start, _) in text.match_indices(field) {
        let before = text.get(..start).unwrap_or_default();
        let is_start = before.ends_with([' ', '\n', '\t', '{', ',', '"', '-']) || before.is_empty();
        let rest = text.get(start + field.len()..).unwrap_or_default();
        let rest = rest.strip_prefix('"').unwrap_or(rest);
        let Some(rest) = rest.strip_prefix(':').filter(|_| is_start) else {
            continue;
        };
        let end = rest.find(['\n', ',', '}']).unwrap_or(rest.len());
        let value = rest.get(..end).unwrap_or_default().trim();
        let value = value.trim_matches(['"', '\'', '*', '&']);
        if !value.is_empty() {
            values.push(value);
        }
    }
    values
}
