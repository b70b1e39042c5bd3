use std::fmt::Write as _;

use serde_json::Value;

use super::{Form, LIMITS, Limits, read_within};

fn documents_within(text: &str, limits: Limits) -> Result<Vec<Value>, String> {
    let words = |fault: super::Fault| {
        let line = fault.place.map(|place| place.line).unwrap_or_default();
        let hint = fault.hint.unwrap_or_default();
        format!("line {line}: {}; {hint}", fault.message)
    };
    let read = read_within(text, Form::Yaml, limits).into_iter();
    read.map(|(_, value)| value.map_err(words)).collect()
}

fn documents(text: &str) -> Result<Vec<Value>, String> {
    documents_within(text, LIMITS)
}

fn refused(text: &str, limits: Limits) -> String {
    documents_within(text, limits).expect_err("a limit is exceeded")
}

#[test]
fn a_file_has_more_than_a_thousand_documents() {
    let mut text = String::new();
    for number in 0..3_000 {
        writeln!(text, "---\nkind: Node\nmetadata: {{name: n{number}}}").expect("text grows");
    }
    assert_eq!(documents(&text).map(|found| found.len()), Ok(3_000));
}

#[test]
fn a_list_has_fifty_thousand_items() {
    let mut text = "kind: List\nitems:\n".to_owned();
    for number in 0..50_000 {
        writeln!(text, "- {{kind: Node, metadata: {{name: n{number}}}}}").expect("text grows");
    }
    let found = documents(&text).expect("no limit is exceeded");
    let items = found[0]["items"].as_array().map(Vec::len);
    assert_eq!(items, Some(50_000));
}

#[test]
fn comments_and_aliases_are_allowed_in_any_number() {
    let comments = "  # a comment\n".repeat(2_000);
    let uses = "- *one\n".repeat(2_000);
    let text = format!("anchor: &one {{a: 1}}\nlist:\n{comments}{uses}");
    let found = documents(&text).expect("no limit is exceeded");
    assert_eq!(found[0]["list"].as_array().map(Vec::len), Some(2_000));
}

#[test]
fn a_limit_that_is_exceeded_is_named() {
    let few = Limits {
        documents: 2,
        values: 10,
        bytes: 100,
        aliases: 2,
        expanded: 8,
        ..LIMITS
    };
    assert_eq!(
        refused("a: 1\n---\na: 1\n---\na: 1\n", few),
        "line 4: exceeds the limit of 2 documents in one file; split it into several files"
    );
    assert_eq!(
        refused(&"- a\n".repeat(20), few),
        "line 10: exceeds the limit of 10 values in one file; split it into several files"
    );
    assert_eq!(
        refused(&format!("a: {}", "b".repeat(200)), few),
        "line 1: exceeds the limit of 100 bytes of keys and values in one file; split it into several files"
    );
    assert_eq!(
        refused("- &a 1\n- *a\n- *a\n- *a\n", few),
        "line 4: exceeds the limit of 2 aliases in one file; split it into several files"
    );
    assert_eq!(
        refused(
            "- &a [1, 2, 3]\n- *a\n- *a\n",
            Limits { values: 100, ..few }
        ),
        "line 3: exceeds the limit of 8 values from expanded aliases in one file; split it into several files"
    );
}

#[test]
fn nesting_has_a_limit_and_an_object_of_kubernetes_is_below_it() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(documents(&nested(64)).is_ok());
    assert_eq!(
        refused(&nested(65), LIMITS),
        "line 1: exceeds the limit of 64 levels of nested maps and lists in one file; an object of Kubernetes has far fewer: check its brackets and indentation"
    );
}

#[test]
fn text_that_is_no_yaml_is_shown_with_its_place() {
    assert_eq!(
        documents("a: [1\n"),
        Err("line 1: a bracket is opened and not closed; close it".to_owned())
    );
}

#[test]
fn a_document_with_a_mistake_harms_no_other() {
    let found = read_within("a: 1\n---\na: [\n---\na: 3\n", Form::Yaml, LIMITS);
    let read: Vec<bool> = found.iter().map(|(_, value)| value.is_ok()).collect();
    assert_eq!(read, [true, false, true]);
}

#[test]
fn json_is_read_as_json_and_its_mistakes_are_those_of_json() {
    assert_eq!(
        documents("{\"a\": [1, 2]}\n---\n[\"b\"]").map(|found| found.len()),
        Ok(2)
    );
    assert_eq!(
        documents("{\"a\": 1\n \"b\": 2}"),
        Err("line 2: a comma is missing between two values; add the comma".to_owned())
    );
    assert_eq!(
        documents("{\"a\": 1,\n \"a\": 2}"),
        Err("line 2: field a appears twice in one map; keep one of the two".to_owned())
    );
}
