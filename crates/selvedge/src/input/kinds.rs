//! Documents whose kind or group is not ours: what their author is likely to mean.

use compiler::Kind;
use serde_json::Value;
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
        return Found {
            field: "",
            message: format!("{field} is missing: not a Kubernetes object"),
            hint: hint
                .or_else(|| Some("an object begins with apiVersion, kind and metadata".to_owned())),
        };
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
    if is_known {
        // The version is wrong: the message says which is right.
        return Found {
            field: "apiVersion",
            message,
            hint: None,
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
pub(super) fn misspelled_group(document: &Value) -> Option<Found> {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let (group, _) = api_version.split_once('/')?;
    let mut groups: Vec<&str> = written_kinds()
        .map(|known| known.group_version().0)
        .collect();
    groups.dedup();
    let near = nearest(group, groups.into_iter())?;
    let known = written_kinds().filter(|known| known.group_version().0 == near);
    let name = nearest(kind, known.map(<&str>::from))?;
    let known = written_kinds()
        .find(|known| <&str>::from(known) == name && known.group_version().0 == near)?;
    let object = document.pointer("/metadata/name").and_then(Value::as_str);
    Some(Found {
        field: "apiVersion",
        message: format!(
            "{kind} {}: skipped, {group} is not a group of Selvedge",
            object.unwrap_or_default()
        ),
        hint: Some(format!(
            "did you mean apiVersion: {} and kind: {known}?",
            known.api_version()
        )),
    })
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
