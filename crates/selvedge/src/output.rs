//! The one place that prints.

mod live;
mod table;

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde::Serialize;
use serde_json::Value;

pub(crate) use self::{
    live::{Frame, Live},
    table::{Column, table, table_of, table_width},
};
use crate::args::{Format, Screen};

/// What a command came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Fine,
    /// Something is wrong with what was given.
    Problems,
    /// All is well, and something changes.
    Changes,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Fine => Self::SUCCESS,
            Verdict::Problems => Self::from(1),
            Verdict::Changes => Self::from(2),
        }
    }
}

/// Prints help, or what is wrong with how the program was called.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    let is_written = error.print().is_ok();
    if error.use_stderr() || !is_written {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// Prints why a command could not do its work.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    let text = format!("{}: {error:#}", styled(Style::Red, "error"));
    note(&wrapped(&without_numbers(&text), 2));
    let _end = finish(Verdict::Problems);
    ExitCode::from(2)
}

/// A message without the numbers that the system has for its errors.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        found.push_str(part.split_once(')').map_or(part, |(_, after)| after));
    }
    found
}

/// Writes what is left, and gives the exit code: 2 where the output could not be written.
pub(crate) fn finish(verdict: Verdict) -> ExitCode {
    let mut out = out();
    out.flush();
    let sink = std::mem::replace(&mut out.sink, Sink::None);
    let failed = match sink {
        Sink::Pager(mut pager) => {
            drop(pager.stdin.take());
            let _code = pager.wait();
            None
        }
        Sink::Direct(_) | Sink::Screen(_) | Sink::None => out.failed.take(),
    };
    drop(out);
    match failed {
        None => verdict.into(),
        Some(error) => {
            if error.kind() != io::ErrorKind::BrokenPipe {
                let error = without_numbers(&error.to_string());
                note(&format!("error: failed to write the output: {error}"));
            }
            ExitCode::from(2)
        }
    }
}

/// Where the output goes.
enum Sink {
    /// Straight to standard output.
    Direct(BufWriter<io::Stdout>),
    /// Kept until it is longer than the screen, or until the end.
    Screen(String),
    /// To a pager.
    Pager(Child),
    /// Nowhere any more.
    None,
}

struct Out {
    sink: Sink,
    /// The first error of a write; nothing is written after it.
    failed: Option<io::Error>,
}

impl Out {
    fn write(&mut self, text: &str) {
        if self.failed.is_some() {
            return;
        }
        let written = match &mut self.sink {
            Sink::Direct(stdout) => stdout.write_all(text.as_bytes()),
            Sink::Screen(kept) => {
                kept.push_str(text);
                let lines = kept.lines().count();
                if terminal_rows().is_some_and(|rows| lines >= rows) {
                    self.turn_pages();
                    Ok(())
                } else {
                    Ok(())
                }
            }
            Sink::Pager(pager) => match &mut pager.stdin {
                Some(stdin) => stdin.write_all(text.as_bytes()),
                None => Ok(()),
            },
            Sink::None => Ok(()),
        };
        self.failed = written.err();
    }

    /// Writes the buffered output, and all that follows, to a pager; to standard output without a pager.
    fn turn_pages(&mut self) {
        let Sink::Screen(kept) = std::mem::replace(&mut self.sink, Sink::None) else {
            return;
        };
        let pager = std::env::var("PAGER").unwrap_or_else(|_unset| "less".to_owned());
        let mut words = pager.split_whitespace();
        let child = words.next().map(|program| {
            let mut command = Command::new(program);
            command.args(words).stdin(Stdio::piped());
            if std::env::var_os("LESS").is_none() {
                // Colours as they are, no pages for less than a screen, and the text stays when the pager ends.
                command.env("LESS", "FRX");
            }
            command.spawn()
        });
        self.sink = match child {
            Some(Ok(pager)) => Sink::Pager(pager),
            Some(Err(_)) | None => Sink::Direct(BufWriter::new(io::stdout())),
        };
        self.write(&kept);
    }

    fn flush(&mut self) {
        if let Sink::Screen(kept) = &mut self.sink {
            let kept = std::mem::take(kept);
            self.sink = Sink::Direct(BufWriter::new(io::stdout()));
            self.write(&kept);
        }
        if let Sink::Direct(stdout) = &mut self.sink
            && let Err(error) = stdout.flush()
        {
            self.failed.get_or_insert(error);
        }
    }
}

static SCREEN: OnceLock<Screen> = OnceLock::new();

fn out() -> MutexGuard<'static, Out> {
    static OUT: OnceLock<Mutex<Out>> = OnceLock::new();
    let open = || {
        let is_paged = SCREEN.get().is_some_and(|screen| !screen.paging.no_pager);
        let sink = if is_paged && !is_dumb() && io::stdout().is_terminal() {
            Sink::Screen(String::new())
        } else {
            Sink::Direct(BufWriter::new(io::stdout()))
        };
        Mutex::new(Out { sink, failed: None })
    };
    let out = OUT.get_or_init(open);
    out.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says how much of the output is wanted, before anything is printed.
pub(crate) fn on_screen(screen: Screen) {
    let _first = SCREEN.set(screen);
}

/// Whether everything is wanted, and nothing folded.
pub(crate) fn is_all() -> bool {
    SCREEN.get().is_some_and(|screen| screen.all)
}

/// Prints a text.
pub(crate) fn text(text: &str) {
    out().write(text);
}

/// Prints a line beside the output.
pub(crate) fn note(line: &str) {
    let mut out = out();
    // What comes before all output takes no pager away from it.
    if !matches!(&out.sink, Sink::Screen(kept) if kept.is_empty()) {
        out.flush();
    }
    drop(out);
    // Where this cannot be written, nothing else can be said either.
    let _written = writeln!(io::stderr(), "{line}");
}

/// Prints values one after the other, each a document of its own in YAML, a list in JSON. None of them is kept.
pub(crate) fn stream<T: Serialize>(
    format: Format,
    values: impl Iterator<Item = T>,
) -> anyhow::Result<()> {
    match format {
        Format::Json => {
            let mut is_first = true;
            for value in values {
                text(if is_first { "[\n" } else { ",\n" });
                is_first = false;
                let json = serde_json::to_string_pretty(&value)?;
                let lines: Vec<&str> = json.lines().collect();
                text(&format!("  {}", lines.join("\n  ")));
            }
            text(if is_first { "[]\n" } else { "\n]\n" });
        }
        Format::Yaml | Format::Table => {
            for value in values {
                text(&format!("---\n{}", yaml(&value)?));
            }
        }
    }
    Ok(())
}

/// Prints one value.
pub(crate) fn document<T: Serialize>(format: Format, value: &T) -> anyhow::Result<()> {
    match format {
        Format::Json => text(&format!("{}\n", serde_json::to_string_pretty(value)?)),
        Format::Yaml | Format::Table => text(&yaml(value)?),
    }
    Ok(())
}

/// Prints values, each a document of its own in YAML, a list in JSON.
pub(crate) fn documents<T: Serialize>(format: Format, values: &[T]) -> anyhow::Result<()> {
    stream(format, values.iter())
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

/// Whether colours are wanted: standard output is a terminal and NO_COLOR is unset or empty.
pub(crate) fn is_for_people() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        io::stdout().is_terminal() && !is_refused && !is_dumb()
    })
}

/// Whether the terminal can neither show colours nor turn pages.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|value| value == "dumb")
}

/// The columns that a line may have: `COLUMNS`, or those of the terminal; nothing where neither is known, or `--wide` is given.
pub(crate) fn width() -> Option<usize> {
    if SCREEN.get().is_some_and(|screen| screen.wide) {
        return None;
    }
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse::<usize>().ok());
    let columns = columns.filter(|columns| *columns > 0);
    columns.or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(usize::from(width.0))
    })
}

fn terminal_rows() -> Option<usize> {
    let (_, rows) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(rows.0))
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
    if text.is_empty() || !is_for_people() {
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

/// The lines of a screen: no answer without `--all` is longer.
pub(crate) const ROWS: usize = 40;

/// A text that fits a screen of so many lines: the lines behind it are only counted.
pub(crate) fn capped(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    if is_all() || lines.len() <= rows {
        return text.to_owned();
    }
    let shown = lines.get(..rows.saturating_sub(2)).unwrap_or_default();
    // An empty line at the end says nothing.
    let end = shown.iter().rposition(|line| !line.trim().is_empty());
    let shown = shown
        .get(..end.map_or(0, |end| end + 1))
        .unwrap_or_default();
    let more = counted(lines.len() - shown.len(), "more line");
    format!("{}\n… {more}; --all shows them\n", shown.join("\n"))
}

/// A number of things, in words.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        // The one kind whose name is a plural already.
        _ if thing.ends_with("Settings") => format!("{number} {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// A text in lines that fit the screen, at words; lines after the first are indented so far.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    match width() {
        Some(width) => wrapped_at(text, indent, width),
        None => text.to_owned(),
    }
}

fn wrapped_at(text: &str, indent: usize, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let own = line.len() - line.trim_start_matches(' ').len();
        let mut current = " ".repeat(own);
        let mut used = own;
        let mut has_word = false;
        for word in line.trim_start_matches(' ').split(' ') {
            let shortened = short_path(word, width.saturating_sub(own + indent));
            let word = shortened.as_deref().unwrap_or(word);
            let length = printed(word);
            if has_word && used + 1 + length > width {
                lines.push(current.trim_end().to_owned());
                current = " ".repeat(own + indent);
                used = own + indent;
                has_word = false;
            }
            if word.is_empty() && !has_word {
                continue;
            }
            if has_word {
                current.push(' ');
                used += 1;
            }
            current.push_str(word);
            used += length;
            has_word = true;
        }
        lines.push(current);
    }
    lines.join("\n")
}

/// The end of a path that does not fit so many columns: directories are left out from its beginning.
fn short_path(word: &str, columns: usize) -> Option<String> {
    let mut more = printed(word)
        .checked_sub(columns)
        .filter(|more| *more > 0)?;
    if !word.contains('/') {
        return None;
    }
    // The mark takes a column itself.
    more += 1;
    let mut short = String::new();
    let (mut is_escape, mut dropped, mut is_cut) = (false, 0, false);
    for character in word.chars() {
        is_escape |= character == '\u{1b}';
        let is_dropped = !is_escape && !is_cut && (dropped < more || character != '/');
        if is_dropped {
            dropped += 1;
        } else {
            if !is_escape && !is_cut {
                short.push('…');
                is_cut = true;
            }
            short.push(character);
        }
        is_escape &= character != 'm';
    }
    // A name that is too long by itself is shown whole.
    is_cut.then_some(short)
}

/// The columns that a text takes, colours aside.
fn printed(text: &str) -> usize {
    let mut columns = 0;
    let mut is_escape = false;
    for character in text.chars() {
        match (is_escape, character) {
            (false, '\u{1b}') => is_escape = true,
            (true, 'm') => is_escape = false,
            (true, _) => {}
            (false, _) => columns += 1,
        }
    }
    columns
}

/// Names in a row that fit so many columns; the last ones are only counted.
pub(crate) fn fitted(names: &[String], columns: usize) -> String {
    let whole = names.join(" ");
    if whole.chars().count() <= columns {
        return whole;
    }
    let mut shown = String::new();
    for (number, name) in names.iter().enumerate() {
        let more = format!("+{}", names.len() - number);
        let length = shown.chars().count() + name.chars().count() + 2 + more.chars().count();
        if number > 0 && length > columns {
            return format!("{shown}{more}");
        }
        shown.push_str(name);
        shown.push(' ');
    }
    shown.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_things_reads_as_one_says_it() {
        assert_eq!(counted(1, "more Network"), "1 more Network");
        assert_eq!(counted(2, "Network"), "2 Networks");
        assert_eq!(counted(2, "more Settings"), "2 more Settings");
    }

    #[test]
    fn a_text_is_wrapped_at_words_and_no_line_is_longer() {
        let text = "error: a.yaml:1:2: Network web spec.vlan: must be one of these\n  hint: remove the quotes around it";
        let wrapped = wrapped_at(text, 2, 40);
        assert!(
            wrapped.lines().all(|line| line.chars().count() <= 40),
            "{wrapped}"
        );
        assert_eq!(
            wrapped.split_whitespace().collect::<Vec<_>>(),
            text.split_whitespace().collect::<Vec<_>>()
        );
        assert_eq!(wrapped_at(text, 2, 400), text);
    }

    #[test]
    fn of_a_path_that_does_not_fit_the_end_is_shown() {
        let text = "error: /srv/users/clusters/production/fabric/networks.yaml:12:3: Network web";
        assert_eq!(
            wrapped_at(text, 4, 40),
            "error: …/fabric/networks.yaml:12:3:\n    Network web"
        );
        let styled = "\u{1b}[2m/srv/users/clusters/production/a.yaml:1:1\u{1b}[0m";
        assert_eq!(wrapped_at(styled, 4, 24), "\u{1b}[2m…/a.yaml:1:1\u{1b}[0m");
        let name = "a-file-with-a-very-long-name-in-this-directory.yaml:1:1";
        assert_eq!(wrapped_at(name, 4, 24), name);
    }

    #[test]
    fn names_that_do_not_fit_are_counted() {
        let names: Vec<String> = (0..20).map(|number| format!("v{number}")).collect();
        assert_eq!(fitted(&names, 14), "v0 v1 v2 +17");
        assert_eq!(fitted(&names[..2], 14), "v0 v1");
    }
}
