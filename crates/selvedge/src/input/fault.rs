//! Why a text cannot be read, in words of its author: a tab, a quote, a leftover of a template. The readers' own words stay inside.

mod bytes;
mod json;

use serde_saphyr::granit_parser::{ErrorKind, Parser};

pub(super) use self::{
    bytes::of_bytes,
    json::{is_comment, of_json},
};
use super::place::{Place, Tree};

/// Why a document cannot be read. Its place is counted from the first line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where; absent where a text as a whole is meant.
    pub(crate) place: Option<Place>,
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: Option<String>,
    /// Where the same stands for the first time.
    pub(crate) first: Option<Place>,
}

impl Fault {
    fn at(place: Place, message: impl Into<String>, hint: &str) -> Self {
        Self {
            place: Some(place),
            message: message.into(),
            hint: Some(hint.to_owned()),
            first: None,
        }
    }

    /// More levels than the limit.
    pub(super) fn too_deep(place: Option<Place>, limit: usize) -> Self {
        let message =
            format!("exceeds the limit of {limit} levels of nested maps and lists in one file");
        let hint = "an object of Kubernetes has far fewer: check its brackets and indentation";
        Self {
            place,
            message,
            hint: Some(hint.to_owned()),
            first: None,
        }
    }

    /// The same, with lines that are counted from another one.
    pub(super) fn after_line(mut self, lines: usize) -> Self {
        for place in [&mut self.place, &mut self.first].into_iter().flatten() {
            place.line += lines;
        }
        self
    }
}

/// A field that stands twice in one map.
fn twice(text: &str) -> Option<Fault> {
    let twice = Tree::of(text)?.twice()?;
    let message = format!("field {} appears twice in one map", twice.key);
    Some(Fault {
        first: Some(twice.first),
        ..Fault::at(twice.second, message, "keep one of the two")
    })
}

/// What is wrong with YAML that the reader refuses at a place.
pub(super) fn of_yaml(text: &str, at: Option<Place>) -> Fault {
    if let Some(fault) = of_document(text) {
        return fault;
    }
    if let Some(fault) = twice(text) {
        return fault;
    }
    let first = Parser::new_from_str(text).find_map(Result::err);
    let start = Place { line: 1, column: 1 };
    let Some(error) = first else {
        return of_form(text, at.unwrap_or(start));
    };
    let marker = error.marker();
    let place = Place {
        line: marker.line().max(1),
        column: marker.col() + 1,
    };
    of_kind(text, error.kind(), place)
}

/// What is wrong with YAML that is correct, and that no object of Kubernetes is written in.
fn of_form(text: &str, place: Place) -> Fault {
    let line = line(text, place.line);
    let words = line.split_inclusive(' ').scan(1, |column, word| {
        let start = *column;
        *column += word.chars().count();
        Some((start, word.trim_end()))
    });
    for (column, word) in words {
        let place = Place { column, ..place };
        if word.starts_with('!') {
            let message = format!("the tag {}: no object of Kubernetes has one", cut(word));
            return Fault::at(place, message, "remove the tag");
        }
        if word == "?" {
            let message = "a key behind a question mark";
            return Fault::at(place, message, "write \"key: value\" on one line");
        }
    }
    if line.chars().nth(place.column - 1) == Some('*') {
        let message = "an alias inside of the value that it refers to";
        return Fault::at(place, message, "write the value itself");
    }
    Fault::at(
        place,
        "a value of an unusual form",
        "write maps with keys of text, lists, texts, numbers, true or false",
    )
}

fn of_kind(text: &str, kind: &ErrorKind, place: Place) -> Fault {
    let line = line(text, place.line);
    let character = line.chars().nth(place.column - 1);
    match kind {
        ErrorKind::RecursionLimitExceeded => Fault::too_deep(Some(place), super::yaml::DEPTH),
        _ if line.starts_with('%') => Fault::at(
            Place { column: 1, ..place },
            "a directive of YAML (a line that begins with %)",
            "remove the line",
        ),
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::DocumentIndicatorInQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => of_quotes(text, place),
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidUnicodeEscape => Fault::at(
            place,
            "a backslash in double quotes begins an escape, and this one is unknown",
            "write two backslashes for one, or use single quotes",
        ),
        ErrorKind::UnknownAnchor | ErrorKind::MissingAnchorOrAliasName => Fault::at(
            place,
            "a value that begins with * or & refers to an anchor that is not in this document",
            "put the value in quotes if it is text; an anchor of another document is unknown here: write its value again",
        ),
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofImplicitFlowMapping => {
            Fault::at(place, "a bracket is opened and not closed", "close it")
        }
        ErrorKind::MisplacedFlowCollectionEnd | ErrorKind::MismatchedFlowCollectionEnd { .. } => {
            Fault::at(
                place,
                "a closing bracket that matches no opening one",
                "remove it, or open it first",
            )
        }
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => {
            Fault::at(
                place,
                "a comma or a closing bracket is missing",
                "separate entries with commas, and close every bracket",
            )
        }
        _ if matches!(character, Some('@' | '`' | '%'))
            && !line.trim_start().starts_with("```") =>
        {
            Fault::at(
                place,
                format!("a value that begins with {}", character.unwrap_or_default()),
                "put the value in quotes",
            )
        }
        _ => of_lines(text, place),
    }
}

/// What is wrong with lines around a place.
fn of_lines(text: &str, place: Place) -> Fault {
    if let Some(place) = unbalanced(text, place.line) {
        return Fault::at(place, "a bracket is opened and not closed", "close it");
    }
    for number in [place.line, place.line.saturating_sub(1)] {
        let line = line(text, number);
        let place = Place {
            line: number,
            column: 1,
        };
        if let Some(fault) = of_separator(line, place) {
            return fault;
        }
        if let Some(column) = opened(line) {
            let place = Place {
                line: number,
                column,
            };
            return of_quotes(text, place);
        }
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let content = content.trim_start_matches("- ");
        let key = content.split(':').next().unwrap_or_default();
        let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let after = content.get(key.len()..).unwrap_or_default();
        let place = Place {
            line: number,
            column: indent + 1,
        };
        if is_key && after.starts_with(':') && after.len() > 1 && !after.starts_with(": ") {
            return Fault::at(
                place,
                format!("no space after {key}:"),
                "add a space after the colon",
            );
        }
        if is_key
            && after
                .strip_prefix(": ")
                .is_some_and(|value| value.contains(": "))
        {
            return Fault::at(
                place,
                format!("the value of {key} has a colon in it"),
                "put the value in quotes",
            );
        }
        let is_comment = content.starts_with('#');
        if !content.is_empty()
            && !is_comment
            && !content.contains(':')
            && !line.trim_start().starts_with('-')
        {
            return Fault::at(
                place,
                format!(
                    "{:?} is neither \"key: value\" nor an item of a list",
                    cut(content)
                ),
                "add the colon after the key, or the dash before the item",
            );
        }
    }
    let own = line(text, place.line);
    let indent = own.len() - own.trim_start().len();
    let place = Place {
        line: place.line,
        column: indent + 1,
    };
    Fault::at(
        place,
        "wrong indentation",
        "fields of one map, and items of one list, begin in the same column",
    )
}

/// What is wrong with a line between two documents.
fn of_separator(line: &str, place: Place) -> Option<Fault> {
    if line.starts_with("---") || line.bytes().all(|byte| byte == b'-') && !line.is_empty() {
        let message = format!("{:?} does not separate documents", cut(line));
        let remedy = "write three dashes and nothing else: ---";
        return Some(Fault::at(place, message, remedy));
    }
    line.trim_start().starts_with("```").then(|| {
        let remedy = "remove the lines that begin with ```";
        Fault::at(place, "a line of Markdown", remedy)
    })
}

/// The first bracket that is opened up to a line, and not closed there.
fn unbalanced(text: &str, last: usize) -> Option<Place> {
    let mut open = Vec::new();
    for (line, content) in (1..=last).zip(text.lines()) {
        let mut quote = None;
        for (column, character) in (1..).zip(content.chars()) {
            match (quote, character) {
                (None, '#') => break,
                (None, '"' | '\'') => quote = Some(character),
                (Some(mark), character) if mark == character => quote = None,
                (None, '[' | '{') => open.push(Place { line, column }),
                (None, ']' | '}') => {
                    open.pop();
                }
                _ => {}
            }
        }
    }
    open.first().copied()
}

fn of_quotes(text: &str, place: Place) -> Fault {
    let lines = (1..).zip(text.lines()).take(place.line);
    let mut lines: Vec<(usize, &str)> = lines.collect();
    lines.reverse();
    let found = lines
        .iter()
        .find_map(|(number, line)| Some((*number, opened(line)?)));
    let Some((line, column)) = found else {
        return Fault::at(
            place,
            "there is text behind a closing quote",
            "put the whole value in quotes; a quote inside of it is written twice ('') or as \\\"",
        );
    };
    Fault::at(
        Place { line, column },
        "a quote is opened and not closed",
        "add the closing quote",
    )
}

/// The column of a quote that is opened on a line and not closed.
fn opened(line: &str) -> Option<usize> {
    let mut open: Option<(char, usize)> = None;
    let mut before = ' ';
    for (column, character) in (1..).zip(line.chars()) {
        match (open, character) {
            (None, '#') if before == ' ' => return None,
            // A quote inside a word is a letter.
            (None, '"' | '\'') if " [{,:-(".contains(before) => open = Some((character, column)),
            (Some((mark, _)), mark_again) if mark == mark_again && before != '\\' => open = None,
            _ => {}
        }
        before = character;
    }
    open.map(|(_, column)| column)
}

/// What is wrong with a text that a reader accepts as one value, though it is no manifest.
pub(super) fn of_page(text: &str) -> Option<Fault> {
    let page = text.trim_start().starts_with('<');
    let place = Place { line: 1, column: 1 };
    let hint = "write the manifest itself to the file; a download may have given an error page";
    page.then(|| Fault::at(place, "the text is HTML or XML, not YAML or JSON", hint))
}

/// What is wrong with a document as a whole, whatever reader stumbles over it.
fn of_document(text: &str) -> Option<Fault> {
    let mut tab = None;
    for (number, line) in (1..).zip(text.lines()) {
        let content = line.trim_start();
        let column = |byte: usize| {
            line.get(..byte)
                .map_or(1, |before| before.chars().count() + 1)
        };
        let place = |byte: usize| Place {
            line: number,
            column: column(byte),
        };
        let is_control = |c: char| c.is_control() && !matches!(c, '\t' | '\r');
        if let Some((byte, character)) = line.char_indices().find(|(_, c)| is_control(*c)) {
            let message = format!("a control character (U+{:04X})", u32::from(character));
            return Some(Fault::at(place(byte), message, "remove it"));
        }
        if content.starts_with('#') {
            continue;
        }
        let expressions = [("{{", "}}"), ("{%", "%}")].into_iter();
        let expression = expressions.filter_map(|(open, close)| Some((line.find(open)?, close)));
        if let Some((byte, close)) = expression.min() {
            let end = line.find(close).map_or(line.len(), |end| end + 2);
            let expression = line.get(byte..end.max(byte)).unwrap_or_default();
            return Some(Fault::at(
                place(byte),
                format!("{} is a template expression, not YAML", cut(expression)),
                "render the template first, such as with helm template",
            ));
        }
        let marks = ["<<<<<<<", ">>>>>>>", "======="];
        if marks.iter().any(|mark| line.starts_with(mark)) {
            return Some(Fault::at(
                place(0),
                "a mark of a merge conflict",
                "resolve the conflict, and remove the lines with <<<<<<<, ======= and >>>>>>>",
            ));
        }
        let indent = line.get(..line.len() - content.len()).unwrap_or_default();
        let is_odd = |c: char| c.is_whitespace() && !c.is_ascii();
        if let Some(byte) = indent.find(is_odd).filter(|_| !content.is_empty()) {
            return Some(Fault::at(
                place(byte),
                "a no-break space or another unusual space in the indentation",
                "YAML is indented with plain spaces: replace it",
            ));
        }
        if let Some(byte) = indent.find('\t').filter(|_| !content.is_empty()) {
            tab.get_or_insert_with(|| place(byte));
        }
    }
    let tab = tab.filter(|_| !text.trim_start().starts_with(['{', '[']));
    tab.map(|place| {
        Fault::at(
            place,
            "a tab in the indentation",
            "YAML is indented with spaces: replace the tab",
        )
    })
}

fn line(text: &str, number: usize) -> &str {
    text.lines()
        .nth(number.saturating_sub(1))
        .unwrap_or_default()
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
