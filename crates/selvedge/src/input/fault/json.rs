//! What is wrong with JSON.

use super::{Fault, Place, line, of_document, twice};

/// Whether JSON ends at a comment.
pub(in crate::input) fn is_comment(text: &str, error: &serde_json::Error) -> bool {
    let rest = line(text, error.line()).get(error.column().saturating_sub(1)..);
    rest.is_some_and(|rest| rest.starts_with("//") || rest.starts_with("/*"))
}

/// What is wrong with JSON that its reader refuses.
pub(in crate::input) fn of_json(text: &str, error: &serde_json::Error) -> Fault {
    let place = Place {
        line: error.line().max(1),
        column: error.column().max(1),
    };
    if let Some(fault) = of_document(text) {
        return fault;
    }
    let said = error.to_string();
    if said.contains("too deep") || said.contains("recursion limit") {
        return Fault::too_deep(Some(place), super::super::yaml::DEPTH);
    }
    if let Some(key) = said.strip_prefix("duplicate field ") {
        // The place of both is known where the rest is correct.
        return twice(text).unwrap_or_else(|| {
            let key = key.split(" at line ").next().unwrap_or_default();
            let message = format!("field {key} appears twice in one map");
            Fault::at(place, message, "keep one of the two")
        });
    }
    let (message, hint) = words(text, error, &said, place);
    Fault::at(place, message, hint)
}

fn words(
    text: &str,
    error: &serde_json::Error,
    said: &str,
    place: Place,
) -> (&'static str, &'static str) {
    let own = line(text, place.line);
    let character = own
        .get(place.column - 1..)
        .and_then(|rest| rest.chars().next());
    let has = |words: &str| said.contains(words);
    if is_comment(text, error) {
        ("a comment", "JSON has no comments: remove it")
    } else if character == Some('\'') {
        ("a text in single quotes", "JSON needs double quotes")
    } else if has("trailing comma") {
        (
            "a comma before a closing bracket",
            "JSON allows none there: remove it",
        )
    } else if has("EOF while parsing a string") {
        ("a quote is opened and not closed", "add the closing quote")
    } else if has("EOF while parsing") {
        (
            "the text ends inside a map or list",
            "a closing bracket is missing; was the file cut off?",
        )
    } else if has("trailing characters") {
        (
            "there is more text after the end of the object",
            "put several objects into a List, or separate them with lines of ---",
        )
    } else if has("expected `,` or") {
        ("a comma is missing between two values", "add the comma")
    } else if has("expected `:`") {
        ("a colon is missing between a key and its value", "add it")
    } else if has("key must be a string") {
        (
            "a key without quotes",
            "JSON needs double quotes around keys",
        )
    } else if has("expected ident") || has("expected value") {
        (
            "a value that is neither a number, true, false, null nor text in quotes",
            "put it in double quotes if it is text",
        )
    } else if has("number") {
        (
            "a number in a form that JSON does not have",
            "write decimal digits without a leading zero or plus",
        )
    } else if has("surrogate") || has("unicode") || has("hex escape") {
        (
            "a \\u escape that is no character",
            "write the character itself",
        )
    } else if has("invalid escape") {
        (
            "a backslash that begins no escape",
            "write two backslashes for one",
        )
    } else if has("control character") {
        (
            "a line break or control character inside a text",
            "write \\n for a line break",
        )
    } else {
        (
            "not valid JSON",
            "check quotes, commas and brackets here and on the line before",
        )
    }
}
