//! The one place that prints.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use serde::Serialize;
use serde_json::Value;

use crate::args::Format;

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Fine,
    /// Something is wrong with what was given.
    Problems,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fine => Self::SUCCESS,
            Verdict::Problems => Self::from(1),
        }
    }
}

/// Prints help, or what is wrong with how the program was called.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A reader that went away is no reason to fail.
    let _written = error.print();
    if error.use_stderr() {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints why a command could not do its work.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    note(&format!("error: {error:#}"));
    ExitCode::from(2)
}

/// Prints a text.
pub(crate) fn text(text: &str) {
    // A reader that went away, such as `head`, is no reason to panic.
    let _written = write!(std::io::stdout(), "{text}");
}

/// Prints a line for people beside the output.
pub(crate) fn note(line: &str) {
    let _written = writeln!(std::io::stderr(), "{line}");
}

/// Prints values, each a document of its own in YAML, a list in JSON.
pub(crate) fn documents<T: Serialize>(format: Format, values: &[T]) -> anyhow::Result<()> {
    match format {
        Format::Json => text(&format!("{}\n", serde_json::to_string_pretty(values)?)),
        Format::Yaml | Format::Table => {
            for value in values {
                text(&format!("---\n{}", yaml(value)?));
            }
        }
    }
    Ok(())
}

/// A value as YAML.
pub(crate) fn yaml<T: Serialize>(value: &T) -> anyhow::Result<String> {
    // Through JSON, so that keys come in one order and types write themselves as the API server sees them.
    let value: Value = serde_json::to_value(value)?;
    let mut text = serde_saphyr::to_string(&value)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Whether standard output is read by a person.
pub(crate) fn is_for_people() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// How a text stands out, where a person reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

/// A text that stands out on a terminal, and is plain elsewhere.
pub(crate) fn styled(style: Style, text: &str) -> String {
    if !is_for_people() {
        return text.to_owned();
    }
    let code = match style {
        Style::Bold => "1",
        Style::Dim => "2",
        Style::Red => "31",
        Style::Green => "32",
        Style::Yellow => "33",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// A number of things, in words.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// Rows as aligned columns under a head.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let columns = head.len();
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells
            .chain(head.get(column).map(|cell| cell.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| {
            let padding = width.saturating_sub(cell.chars().count());
            format!("{cell}{}", " ".repeat(padding))
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = styled(Style::Dim, line(head.to_vec()).trim_end()) + "\n";
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
    }
    text
}
