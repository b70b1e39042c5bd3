//! A text taken apart at its document marks. A line that begins with `---` ends a document wherever it stands, so the parts can be read
//! each for itself: a document with a syntax error harms no other one.

use std::ops::Range;

/// One document of a text, unread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Its bytes.
    pub(super) bytes: Range<usize>,
    /// The line on which its bytes begin, from one.
    pub(super) first_line: usize,
    /// The line on which its content begins, from one.
    pub(super) line: usize,
}

/// The documents of a text; those that hold nothing but comments are left out.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut open = Open::at(0, 1);
    let mut begin = 0;
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let end = begin + line.len();
        let after = ["---", "..."].into_iter().find_map(|mark| {
            let rest = line.strip_prefix(mark)?;
            let is_mark = rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']);
            is_mark.then_some(rest)
        });
        if let Some(rest) = after {
            open.close(begin, &mut parts);
            open = Open::at(end - rest.len(), number);
        }
        let content = after.unwrap_or(line).trim();
        if !content.is_empty() && !content.starts_with('#') {
            open.content.get_or_insert(number);
        }
        begin = end;
    }
    open.close(text.len(), &mut parts);
    parts
}

/// The document that is being read.
struct Open {
    begin: usize,
    first_line: usize,
    content: Option<usize>,
}

impl Open {
    fn at(begin: usize, first_line: usize) -> Self {
        Self {
            begin,
            first_line,
            content: None,
        }
    }

    fn close(&self, end: usize, parts: &mut Vec<Part>) {
        if let Some(line) = self.content {
            parts.push(Part {
                bytes: self.begin..end,
                first_line: self.first_line,
                line,
            });
        }
    }
}
