//! Every definition is what an API server takes, and describes each field.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

/// Calls `look` with every property of every schema, and where it is.
fn each_property(look: &mut impl FnMut(&str, &Value)) {
    for definition in all() {
        let kind = definition.spec.names.kind.clone();
        for version in definition.spec.versions {
            let schema = version
                .schema
                .and_then(|validation| validation.open_api_v3_schema)
                .expect("a schema");
            let schema = serde_json::to_value(schema).expect("a schema is JSON");
            walk(&kind, &schema, look);
        }
    }
}

/// Calls `look` with every description of every schema, also those of whole objects and of items.
fn each_description(look: &mut impl FnMut(&str, &str)) {
    for definition in all() {
        let kind = definition.spec.names.kind.clone();
        let definition = serde_json::to_value(definition).expect("a definition is JSON");
        each_text(&kind, &definition["spec"]["versions"], look);
    }
}

fn each_text(path: &str, value: &Value, look: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "description" => look(path, text),
                    _ => each_text(&format!("{path}.{name}"), field, look),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_text(path, item, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn walk(path: &str, schema: &Value, look: &mut impl FnMut(&str, &Value)) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        look(&path, property);
        walk(&path, property, look);
    }
    for nested in ["items", "additionalProperties"] {
        if schema[nested].is_object() {
            walk(&format!("{path}[]"), &schema[nested], look);
        }
    }
}

#[test]
fn every_field_has_a_description_of_whole_sentences() {
    let mut poor = Vec::new();
    each_property(&mut |path, property| {
        let text = property["description"].as_str().unwrap_or_default();
        if !text.ends_with('.') || text.contains(" \n") {
            poor.push(format!("{path}: {text:?}"));
        }
    });
    assert!(poor.is_empty(), "{}", poor.join("\n"));
}

/// Fewer words than this only repeat the name of the field.
const FEWEST_WORDS: usize = 4;

#[test]
fn no_description_has_fewer_than_four_words() {
    let mut short = Vec::new();
    each_description(&mut |path, text| {
        if text.split_whitespace().count() < FEWEST_WORDS {
            short.push(format!("{path}: {text:?}"));
        }
    });
    assert!(
        short.is_empty(),
        "{} descriptions:\n{}",
        short.len(),
        short.join("\n")
    );
}

#[test]
fn no_description_has_the_syntax_of_rustdoc() {
    let mut leaks = Vec::new();
    each_description(&mut |path, text| {
        let is_leak = ["[`", "`]", "](", "crate::", "self::", "super::", "```"]
            .iter()
            .any(|syntax| text.contains(syntax));
        if is_leak {
            leaks.push(format!("{path}: {text:?}"));
        }
    });
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
}

/// Words that hide who does what, or that are images for what has a name.
const VAGUE_WORDS: [&str; 12] = [
    "whoever", "somebody", "someone", "nobody", "told", "shall", "speaks", "fares", "ours",
    "house", "room", "said",
];

#[test]
fn descriptions_are_plain_technical_english() {
    let mut vague = Vec::new();
    each_description(&mut |path, text| {
        let lower = text.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_alphabetic());
        if words.any(|word| VAGUE_WORDS.contains(&word)) {
            vague.push(format!("{path}: {text:?}"));
        }
    });
    assert!(vague.is_empty(), "{}", vague.join("\n"));
}

#[test]
fn every_field_has_a_type_and_none_is_nullable() {
    let mut wrong = Vec::new();
    each_property(&mut |path, property| {
        let typed = property["type"].is_string() || property["x-kubernetes-int-or-string"] == true;
        if !typed
            || property["nullable"] == true
            || !property["anyOf"].is_null()
            || !property["oneOf"].is_null()
        {
            wrong.push(path.to_owned());
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn formats_are_those_that_kubernetes_knows() {
    let mut formats = BTreeSet::new();
    each_property(&mut |_, property| {
        formats.extend(property["format"].as_str().map(str::to_owned));
    });
    let known: BTreeSet<String> = ["byte", "cidr", "date-time", "int32", "int64"]
        .map(str::to_owned)
        .into();
    assert!(formats.is_subset(&known), "{formats:?}");
}

#[test]
fn names_are_unique_and_the_kinds_belong_together() {
    let mut names = BTreeSet::new();
    for definition in all() {
        let spec = definition.spec;
        assert!(
            names.insert(format!("{}/{}", spec.group, spec.names.plural)),
            "{} twice",
            spec.names.plural
        );
        for short in spec.names.short_names.iter().flatten() {
            assert!(
                names.insert(format!("{}/{short}", spec.group)),
                "{short} twice"
            );
        }
        assert_eq!(
            spec.names.categories.as_deref(),
            Some(&["selvedge".to_owned()][..]),
            "{}",
            spec.names.kind
        );
    }
}

#[test]
fn every_kind_with_a_life_has_a_status_that_is_written_apart_and_all_say_their_age() {
    for definition in all() {
        let kind = definition.spec.names.kind;
        for version in definition.spec.versions {
            let status = version
                .subresources
                .and_then(|subresources| subresources.status);
            // A part of revisions never changes: it is named after its content.
            let has_life = kind != "NetworkConfigRevisionPart";
            assert_eq!(status.is_some(), has_life, "status of {kind}");
            let columns = version.additional_printer_columns.unwrap_or_default();
            assert!(
                columns.iter().any(|column| column.name == "Age"),
                "{kind} does not say its age"
            );
        }
    }
}

#[test]
fn conditions_are_merged_by_type() {
    each_property(&mut |path, property| {
        if path.ends_with(".status.conditions") {
            assert_eq!(property["x-kubernetes-list-type"], "map", "{path}");
            assert_eq!(
                property["x-kubernetes-list-map-keys"],
                serde_json::json!(["type"]),
                "{path}"
            );
        }
    });
}

#[test]
fn no_definition_has_what_an_api_server_forbids_in_a_schema() {
    // Of the fields of `JSONSchemaProps`, those that its validation refuses.
    const FORBIDDEN: [&str; 7] = [
        "patternProperties",
        "definitions",
        "dependencies",
        "additionalItems",
        "deprecated",
        "id",
        "$ref",
    ];
    let mut found = Vec::new();
    each_property(&mut |path, property| {
        for word in FORBIDDEN {
            if !property[word].is_null() {
                found.push(format!("{path}: {word}"));
            }
        }
    });
    assert!(found.is_empty(), "{}", found.join("\n"));
}
