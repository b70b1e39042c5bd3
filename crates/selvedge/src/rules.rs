//! The rules of a kind's own definition, checked without an API server: the same rules from the same place.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{LazyLock, Mutex, PoisonError},
};

use api::crds::Served;
use compiler::{
    Kind, ObjectRef, Problem, problem,
    snapshot::{REQUIRED, SECRET, is_secret, misfit},
};
use kube_cel::{CompiledSchema, ErrorKind, ValidationError, Validator, compile_schema};
use regex::Regex;
use serde_json::{Map, Value};

/// The definition of one kind, as the API server gets it.
struct Definition {
    schema: &'static Value,
    rules: CompiledSchema,
    /// Whether some rule compares an object with what it was.
    compares: bool,
}

/// The schema of one kind, made when it is first needed: to make them all would take longer than to check an object.
fn schema(kind: Kind) -> Option<&'static Value> {
    static MADE: Mutex<BTreeMap<Kind, Option<&'static Value>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    *made.entry(kind).or_insert_with(|| {
        let schema = make_schema(kind)?;
        Some(Box::leak(Box::new(schema)))
    })
}

fn make_schema(kind: Kind) -> Option<Value> {
    let is_wanted = |served: &Served| {
        let (group, _) = kind.group_version();
        served.group == group && served.kind == kind.to_string()
    };
    let definition = api::crds::served()
        .into_iter()
        .find(is_wanted)?
        .definition();
    let version = definition
        .spec
        .versions
        .into_iter()
        .find(|version| version.name == kind.group_version().1)?;
    serde_json::to_value(version.schema?.open_api_v3_schema?).ok()
}

/// The fields of every object of Kubernetes.
const OBJECT: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// The fields of the metadata of every object.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The fields that a kind has at a path, such as `spec.neighbors[0]`; none where it takes any.
pub(crate) fn fields(kind: Kind, path: &str) -> Vec<&'static str> {
    match path {
        "metadata" => return METADATA.to_vec(),
        "" if kind.is_borrowed() => return OBJECT.to_vec(),
        _ => {}
    }
    let mut schema = schema(kind);
    let path = path.replace('[', ".[");
    for step in path.split('.').filter(|step| !step.is_empty()) {
        schema = schema.and_then(|schema| {
            if step.starts_with('[') && step.trim_matches(['[', ']']).parse::<usize>().is_ok() {
                return schema.get("items");
            }
            let step = step.trim_matches(['[', ']', '"']);
            let own = schema.get("properties").and_then(|fields| fields.get(step));
            own.or_else(|| schema.get("additionalProperties"))
        });
    }
    let fields = schema.and_then(|schema| schema.get("properties")?.as_object());
    fields.map_or_else(Vec::new, |fields| {
        fields.keys().map(String::as_str).collect()
    })
}

/// Checks objects against the definitions of their kinds. Each definition is compiled when it is first needed.
#[derive(Default)]
pub(crate) struct Rules {
    definitions: BTreeMap<Kind, Option<Definition>>,
    validator: LazyValidator,
}

struct LazyValidator(LazyLock<Validator>);

impl Default for LazyValidator {
    fn default() -> Self {
        Self(LazyLock::new(Validator::new))
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

impl Rules {
    /// Whether some rule of a kind compares an object with what it was.
    pub(crate) fn compare(&mut self, kind: Kind) -> bool {
        self.read(kind);
        let definition = self.definitions.get(&kind);
        let definition = definition.and_then(|definition| definition.as_ref());
        definition.is_some_and(|definition| definition.compares)
    }

    fn read(&mut self, kind: Kind) {
        self.definitions.entry(kind).or_insert_with(|| {
            let schema = schema(kind)?;
            Some(Definition {
                rules: compile_schema(schema),
                compares: schema.to_string().contains("oldSelf"),
                schema,
            })
        });
    }

    /// What rules of its kind an object breaks, beside what it was, where it was there before. Where the reader has found a value that it
    /// cannot read, `is_readable` is false.
    pub(crate) fn broken(
        &mut self,
        object: &ObjectRef,
        document: &Value,
        before: Option<&Value>,
        is_readable: bool,
    ) -> Vec<Problem> {
        self.read(object.kind);
        let Some(Some(definition)) = self.definitions.get(&object.kind) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        limits(definition.schema, document, "", &mut found);
        // Like the API server: a rule reads fields of the right form, and is not asked about others.
        if found.is_empty()
            && let Err(errors) =
                self.validator
                    .0
                    .validate_compiled(&definition.rules, document, before)
        {
            let errors = errors.as_slice().iter();
            // A rule that cannot be evaluated on a value that cannot be read says nothing new.
            let errors = errors.filter(|error| is_readable || is_evaluated(error));
            found.extend(errors.map(|error| definition.words(error, document)));
        }
        let problem = |(field, message)| {
            Problem::new(object.clone(), field, problem::Kind::RuleBroken { message })
        };
        found.into_iter().map(problem).collect()
    }
}

/// Whether a rule could be evaluated at all.
fn is_evaluated(error: &ValidationError) -> bool {
    error.kind != ErrorKind::EvaluationError
}

impl Definition {
    /// The field of a broken rule, and what is said of it.
    fn words(&self, error: &ValidationError, document: &Value) -> (String, String) {
        let message = if is_evaluated(error) {
            error.message.clone()
        } else {
            let said = message_of(self.schema, &error.rule);
            said.map_or_else(|| error.message.clone(), str::to_owned)
        };
        let field = error.field_path.clone();
        let value = document.pointer(&format!("/{}", field.replace('.', "/")));
        let doubled = value.and_then(|value| doubled(value, &message));
        let message = match (doubled, message.split_once(':')) {
            (Some(value), Some((what, remedy))) => format!("{what} {value}:{remedy}"),
            _ => message,
        };
        (field, message)
    }
}

/// The message that a schema has for a rule.
fn message_of<'a>(schema: &'a Value, rule: &str) -> Option<&'a str> {
    match schema {
        Value::Object(fields) => {
            if fields.get("rule").and_then(Value::as_str) == Some(rule) {
                return fields.get("message").and_then(Value::as_str);
            }
            fields.values().find_map(|value| message_of(value, rule))
        }
        Value::Array(items) => items.iter().find_map(|value| message_of(value, rule)),
        _ => None,
    }
}

/// The value that two items of a list have, where a message says that two of them have the same.
fn doubled(list: &Value, message: &str) -> Option<String> {
    let (_, field) = message.split_once(" have the same ")?;
    let field = field.split(|c: char| !c.is_alphanumeric()).next()?;
    let values = list.as_array()?.iter();
    let values = values.filter_map(|item| item.get(field)?.as_str());
    let mut seen = Vec::new();
    for value in values {
        let same = value.parse::<IpAddr>().map(|address| address.to_string());
        let same = same.unwrap_or_else(|_| value.to_owned());
        if seen.contains(&same) {
            return Some(value.to_owned());
        }
        seen.push(same);
    }
    None
}

/// What a schema says beside its CEL rules: types, sizes, ranges, patterns, what must be there and what only once.
fn limits(schema: &Value, value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    let before = found.len();
    shown_limits(schema, value, path, found);
    if is_secret(path) {
        let shown = value.as_str().map(|text| format!("{text:?} "));
        let own = found.iter_mut().skip(before);
        own.for_each(|(_, message)| {
            let hidden = shown.as_ref().map(|shown| message.replace(shown, ""));
            *message = hidden.unwrap_or_else(|| SECRET.to_owned());
        });
    }
}

/// The same; what is found shows the value.
fn shown_limits(schema: &Value, value: &Value, path: &str, found: &mut Vec<(String, String)>) {
    if let Some(wanted) = another_type(schema, value) {
        found.push((path.to_owned(), misfit(wanted, value)));
        return;
    }
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    let mut refuse = |message: String| found.push((path.to_owned(), message));
    let size = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    match value {
        Value::Number(number) => {
            if let Some(wanted) = outside(schema, number) {
                refuse(format!("must be {wanted}, not {number}"));
            }
        }
        Value::String(text) => {
            let (least, most) = (limit("minLength"), limit("maxLength"));
            let length = size(text.chars().count());
            if length == 0 && least.is_some_and(|least| least > 0) {
                refuse("must not be empty".to_owned());
                return;
            }
            if let Some(wanted) = beyond(length, (least, most), "character") {
                refuse(format!("must have {wanted}, not {length}"));
            }
            let pattern = schema.get("pattern").and_then(Value::as_str);
            if let Some(pattern) = pattern.filter(|pattern| !matches(pattern, text)) {
                refuse(format!("{text:?} {}", of_pattern(pattern)));
            }
        }
        Value::Array(list) => {
            let (least, most) = (limit("minItems"), limit("maxItems"));
            let length = size(list.len());
            if let Some(wanted) = beyond(length, (least, most), "item") {
                refuse(format!("must have {wanted}, not {length}"));
            }
            items(schema, list, path, found);
        }
        Value::Object(fields) => {
            let (least, most) = (limit("minProperties"), limit("maxProperties"));
            let length = size(fields.len());
            if let Some(wanted) = beyond(length, (least, most), "key") {
                refuse(format!("must have {wanted}, not {length}"));
            }
            properties(schema, fields, path, found);
        }
        Value::Null | Value::Bool(_) => {}
    }
    let choices = schema.get("enum").and_then(Value::as_array);
    if let Some(choices) = choices.filter(|choices| !choices.contains(value)) {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        found.push((
            path.to_owned(),
            format!(
                "{value} is not a valid value; write one of {}",
                choices.join(", ")
            ),
        ));
    }
}

/// The range that a number is outside of.
fn outside(schema: &Value, number: &serde_json::Number) -> Option<String> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (least, most) = (limit("minimum"), limit("maximum"));
    let number = number.as_f64()?;
    let is_outside =
        least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most);
    is_outside.then(|| match (least, most) {
        (Some(least), Some(most)) => format!("a number from {least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
    })
}

/// How many a size that is too small or too large should be.
fn beyond(size: u64, (least, most): (Option<u64>, Option<u64>), what: &str) -> Option<String> {
    let count =
        |number: u64| crate::output::counted(usize::try_from(number).unwrap_or(usize::MAX), what);
    if let Some(least) = least.filter(|least| size < *least) {
        return Some(format!("at least {}", count(least)));
    }
    let most = most.filter(|most| size > *most)?;
    Some(format!("at most {}", count(most)))
}

/// What is said of a text that does not match a pattern: patterns of our kinds in words.
fn of_pattern(pattern: &str) -> String {
    const WORDS: [(&str, &str); 12] = [
        (
            "^(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?)$",
            "is not a duration such as 30s, 5m or 1h30m",
        ),
        (
            "^[0-9]{1,10}:[0-9]{1,10}(:[0-9]{1,10})?$",
            "is not a community such as 64500:100 or 64500:1:2",
        ),
        (
            "^[0-9a-fA-F:.]+/[0-9]{1,3}$",
            "is not a prefix such as 192.0.2.0/24 or 2001:db8::/64",
        ),
        (
            "^([0-9]{1,10}|([0-9]{1,3}\\.){3}[0-9]{1,3}):[0-9]{1,10}$",
            "is not a route target or route distinguisher such as 64500:100 or 192.0.2.1:100",
        ),
        (
            "^(([0-9]{1,10}|([0-9]{1,3}\\.){3}[0-9]{1,3}):[0-9]{1,10}|\\*:[0-9]{1,10})$",
            "is not a route target such as 64500:100, 192.0.2.1:100 or *:100",
        ),
        (
            "^([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$",
            "is not a MAC address such as 02:00:5e:00:53:01",
        ),
        (
            "^[0-9a-f]{2}\\.([0-9a-f]{4}\\.){4}[0-9a-f]{2}$",
            "is not an IS-IS network entity title such as 49.0001.0000.0000.0001.00",
        ),
        (
            "^[a-zA-Z0-9_][a-zA-Z0-9_.-]*$",
            "may have letters, digits, '_', '.' and '-', and begins with none of '.' and '-'",
        ),
        (
            "^[a-zA-Z][a-zA-Z0-9_.-]*$",
            "may have letters, digits, '_', '.' and '-', and begins with a letter",
        ),
        (
            "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            "may have lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
        ),
        (
            "^[!-~]+$",
            "must be text of one line: letters, digits and ASCII signs, without spaces",
        ),
        (
            "^([!-~]([ -~]*[!-~])?)?$",
            "must be text of one line: letters, digits and ASCII signs, without spaces at its ends",
        ),
    ];
    let known = WORDS.iter().find(|(known, _)| *known == pattern);
    known.map_or_else(
        || format!("must match {pattern}"),
        |(_, words)| (*words).to_owned(),
    )
}

/// The type that a value should have, where it has another.
fn another_type(schema: &Value, value: &Value) -> Option<&'static str> {
    let wanted = schema.get("type").and_then(Value::as_str)?;
    let (fits, words) = match wanted {
        "object" => (value.is_object(), "a map"),
        "array" => (value.is_array(), "a list"),
        "string" => (value.is_string(), "text"),
        "boolean" => (value.is_boolean(), "true or false"),
        "integer" => (value.is_i64() || value.is_u64(), "a whole number"),
        "number" => (value.is_number(), "a number"),
        _ => return None,
    };
    (!fits).then_some(words)
}

/// What is said of an item that a list has twice, before the path of the first.
pub(crate) const DUPLICATE_OF: &str = "duplicate of ";

fn items(schema: &Value, list: &[Value], path: &str, found: &mut Vec<(String, String)>) {
    if let Some(schema) = schema.get("items") {
        for (index, item) in list.iter().enumerate() {
            limits(schema, item, &format!("{path}[{index}]"), found);
        }
    }
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let keys: Vec<&str> = match text("x-kubernetes-list-type") {
        Some("set") => Vec::new(),
        Some("map") => schema
            .get("x-kubernetes-list-map-keys")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect(),
        _ => return,
    };
    let identity = |item: &Value| -> Value {
        if keys.is_empty() {
            return item.clone();
        }
        let of_item = keys.iter().map(|key| {
            (
                (*key).to_owned(),
                item.get(key).cloned().unwrap_or_default(),
            )
        });
        Value::Object(of_item.collect())
    };
    let mut seen = Vec::new();
    for (index, item) in list.iter().map(identity).enumerate() {
        if let Some(first) = seen.iter().position(|known| *known == item) {
            found.push((
                format!("{path}[{index}]"),
                format!("{DUPLICATE_OF}{path}[{first}]: {item}"),
            ));
        }
        seen.push(item);
    }
}

fn properties(
    schema: &Value,
    fields: &Map<String, Value>,
    path: &str,
    found: &mut Vec<(String, String)>,
) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            found.push((below(name), REQUIRED.to_owned()));
        }
    }
    let known = schema.get("properties");
    let others = schema.get("additionalProperties");
    for (name, field) in fields {
        if let Some(schema) = known.and_then(|known| known.get(name)).or(others) {
            limits(schema, field, &below(name), found);
        }
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    static COMPILED: Mutex<BTreeMap<String, Option<Regex>>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let regex = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).ok());
    regex.as_ref().is_none_or(|regex| regex.is_match(text))
}
