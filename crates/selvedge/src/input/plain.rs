//! A fast reader for the YAML that manifests are written in: maps and lists by indentation, values of one line.
//!
//! **Guarantee:** it reads a document as the full reader does, or not at all. Whatever is unusual (anchors, tags, texts of several lines,
//! escapes, tabs, duplicate keys, and every mistake) is left to the full reader, which is some fifteen times slower.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

/// Deeper documents are left to the full reader, which has a limit.
const DEPTH: usize = 40;

/// A document, if it is of the plain form.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let is_plain = content.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !is_plain || content.starts_with('%') {
            return None;
        }
        lines.push(Line {
            indent: line.len() - content.len(),
            text: content.trim_end_matches(' '),
        });
    }
    let first = lines.first()?.indent;
    let mut reader = Reader { lines, at: 0 };
    let value = reader.node(first, 0)?;
    (reader.at == reader.lines.len()).then_some(value)
}

#[derive(Clone, Copy)]
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

struct Reader<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn line(&self) -> Option<Line<'a>> {
        self.lines.get(self.at).copied()
    }

    /// What begins at the current line, which is indented so far.
    fn node(&mut self, indent: usize, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        let line = self.line()?;
        if is_item(line.text) {
            return self.list(indent, depth);
        }
        if entry(line.text).is_some() {
            return self.map(indent, depth);
        }
        // A document of one value.
        self.at += 1;
        inline(line.text)
    }

    fn map(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut fields = Map::new();
        while let Some(line) = self.line().filter(|line| line.indent >= indent) {
            if line.indent > indent || is_item(line.text) {
                return None;
            }
            let (key, rest) = entry(line.text)?;
            self.at += 1;
            let value = if is_nothing(rest) {
                self.below(indent, depth, true)?
            } else {
                self.single(rest, indent)?
            };
            if fields.insert(key.to_owned(), value).is_some() {
                return None;
            }
        }
        Some(Value::Object(fields))
    }

    fn list(&mut self, indent: usize, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while let Some(line) = self.line().filter(|line| line.indent >= indent) {
            if line.indent > indent {
                return None;
            }
            let Some(rest) = line.text.strip_prefix('-').filter(|_| is_item(line.text)) else {
                break;
            };
            let content = rest.trim_start_matches(' ');
            if is_nothing(content) {
                self.at += 1;
                items.push(self.below(indent, depth, false)?);
                continue;
            }
            if is_item(content) || entry(content).is_some() {
                // The item goes on as if it stood on a line of its own.
                let inner = indent + line.text.len() - content.len();
                let place = self.lines.get_mut(self.at)?;
                *place = Line {
                    indent: inner,
                    text: content,
                };
                items.push(self.node(inner, depth + 1)?);
            } else {
                self.at += 1;
                items.push(self.single(content, indent)?);
            }
        }
        Some(Value::Array(items))
    }

    /// What stands below a key or a dash: on deeper lines, or, below a key, items as far out as the key.
    fn below(&mut self, indent: usize, depth: usize, is_key: bool) -> Option<Value> {
        match self.line() {
            Some(line) if line.indent > indent => {
                let value = self.node(line.indent, depth + 1)?;
                self.is_outside(indent).then_some(value)
            }
            Some(line) if is_key && line.indent == indent && is_item(line.text) => {
                self.list(indent, depth + 1)
            }
            _ => Some(Value::Null),
        }
    }

    /// A value on the line of its key or dash, which does not go on below.
    fn single(&self, text: &str, indent: usize) -> Option<Value> {
        self.is_outside(indent).then(|| inline(text)).flatten()
    }

    fn is_outside(&self, indent: usize) -> bool {
        self.line().is_none_or(|line| line.indent <= indent)
    }
}

fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Whether nothing but a comment is there.
fn is_nothing(text: &str) -> bool {
    text.is_empty() || text.starts_with('#')
}

/// The key and the rest of a line that begins with a plain key.
fn entry(text: &str) -> Option<(&str, &str)> {
    let length = text.bytes().position(|byte| !is_of_key(byte))?;
    let (key, rest) = text.split_at_checked(length)?;
    let rest = rest.strip_prefix(':')?;
    let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic()) && !is_word(key);
    if !is_key || !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    Some((key, rest.trim_start_matches(' ')))
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/')
}

/// A value of one line, with a comment behind it or without.
fn inline(text: &str) -> Option<Value> {
    let (value, rest) = match text.as_bytes().first()? {
        b'"' | b'\'' => {
            let (value, rest) = quoted(text)?;
            (Value::String(value.to_owned()), rest)
        }
        b'{' | b'[' => flow(text, 0)?,
        _ => {
            let end = text.find(" #").unwrap_or(text.len());
            let (plain, _) = text.split_at_checked(end)?;
            let plain = plain.trim_end_matches(' ');
            let is_more = plain.contains(": ") || plain.ends_with(':');
            return (!is_more).then(|| scalar(plain)).flatten();
        }
    };
    let is_end = rest.trim_start_matches(' ').is_empty() || rest.trim_start().starts_with('#');
    let is_apart = rest.is_empty() || rest.starts_with(' ');
    (is_end && is_apart).then_some(value)
}

/// A text in quotes without escapes, and what stands behind it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let mark = text.chars().next()?;
    let (content, rest) = text.strip_prefix(mark)?.split_once(mark)?;
    let is_escaped = content.contains('\\') || rest.starts_with(mark);
    (!is_escaped).then_some((content, rest))
}

/// A map or list in braces, all on one line, and what stands behind it.
fn flow(text: &str, depth: usize) -> Option<(Value, &str)> {
    if depth > DEPTH {
        return None;
    }
    match text.as_bytes().first()? {
        b'"' | b'\'' => {
            let (value, rest) = quoted(text)?;
            Some((Value::String(value.to_owned()), rest))
        }
        b'[' => {
            let mut rest = text.strip_prefix('[')?.trim_start_matches(' ');
            let mut items = Vec::new();
            if let Some(rest) = rest.strip_prefix(']') {
                return Some((Value::Array(items), rest));
            }
            loop {
                let (item, after) = flow(rest, depth + 1)?;
                items.push(item);
                match next(after, ']')? {
                    (true, after) => return Some((Value::Array(items), after)),
                    (false, after) => rest = after,
                }
            }
        }
        b'{' => {
            let mut rest = text.strip_prefix('{')?.trim_start_matches(' ');
            let mut fields = Map::new();
            if let Some(rest) = rest.strip_prefix('}') {
                return Some((Value::Object(fields), rest));
            }
            loop {
                let (key, after) = entry(rest)?;
                if after.is_empty() {
                    return None;
                }
                let (value, after) = flow(after, depth + 1)?;
                if fields.insert(key.to_owned(), value).is_some() {
                    return None;
                }
                match next(after, '}')? {
                    (true, after) => return Some((Value::Object(fields), after)),
                    (false, after) => rest = after,
                }
            }
        }
        _ => {
            let end = text.find([',', ']', '}', '[', '{'])?;
            let (plain, rest) = text.split_at_checked(end)?;
            let plain = plain.trim_end_matches(' ');
            let is_more = plain.contains(": ") || plain.ends_with(':') || plain.contains(" #");
            let is_open = rest.starts_with(['[', '{']);
            (!is_more && !is_open && !plain.is_empty())
                .then(|| scalar(plain))
                .flatten()
                .map(|value| (value, rest))
        }
    }
}

/// What stands behind an item: whether the list or map ends there, and the rest.
fn next(after: &str, close: char) -> Option<(bool, &str)> {
    let after = after.trim_start_matches(' ');
    if let Some(rest) = after.strip_prefix(close) {
        return Some((true, rest));
    }
    let rest = after.strip_prefix(',')?.trim_start_matches(' ');
    // A comma before the end is legal, and rare.
    (!rest.is_empty() && !rest.starts_with([close, ',', '#'])).then_some((false, rest))
}

/// What a text without quotes is.
fn scalar(text: &str) -> Option<Value> {
    let first = *text.as_bytes().first()?;
    if first.is_ascii_alphabetic() {
        return match text {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => Some(Value::Null),
            word if is_word(word) => None,
            word => Some(Value::String(word.to_owned())),
        };
    }
    if let Some(number) = integer(text) {
        return Some(number.into());
    }
    // An address or a prefix.
    let is_dotted = text.bytes().filter(|byte| *byte == b'.').count() >= 2;
    let is_address = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'/'));
    (first.is_ascii_digit() && is_dotted && is_address).then(|| Value::String(text.to_owned()))
}

/// A whole number in its common form.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_common = digits == "0" && digits == text
        || digits.len() <= 15
            && digits.starts_with(|first: char| matches!(first, '1'..='9'))
            && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_common.then(|| text.parse().ok()).flatten()
}

/// Words that YAML, in one of its versions, takes for something else than text.
fn is_word(text: &str) -> bool {
    const WORDS: [&str; 13] = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "infinity", "nan", "t",
    ];
    text.len() <= 8 && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}
