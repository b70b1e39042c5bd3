//! A text that changes: redrawn in its place on a terminal, one line for each change elsewhere.

use std::io::{self, IsTerminal};

use super::{out, printed, terminal_rows, width, wrapped_at};

/// The lines and columns of a terminal that does not tell them.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

/// What is shown of something at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// What a person sees: all of it.
    pub(crate) screen: String,
    /// The same in one line, for logs.
    pub(crate) line: String,
}

/// Shows one frame after another.
#[derive(Debug)]
pub(crate) struct Live {
    is_redrawn: bool,
    /// How many lines of the terminal the last frame takes.
    lines: usize,
    /// The line of the last frame.
    last: Option<String>,
}

impl Live {
    /// Redraws where standard output is a terminal that can.
    pub(crate) fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|value| value == "dumb");
        Self {
            is_redrawn: io::stdout().is_terminal() && !is_dumb,
            lines: 0,
            last: None,
        }
    }

    /// Shows a frame. Whether the output still takes text.
    pub(crate) fn show(&mut self, frame: Frame) -> bool {
        let mut out = out();
        if let Some(text) = self.text(frame, terminal_rows(), width()) {
            out.write(&text);
            out.flush();
        }
        out.failed.is_none()
    }

    /// Lets the last frame stay where it is: something else is printed below it.
    pub(crate) fn leave(&mut self) {
        self.lines = 0;
    }

    /// What is printed for a frame: nothing where it shows what the last one did.
    fn text(
        &mut self,
        frame: Frame,
        rows: Option<usize>,
        columns: Option<usize>,
    ) -> Option<String> {
        let Frame { screen, line } = frame;
        if !self.is_redrawn {
            let is_new = self.last.as_ref() != Some(&line);
            let text = is_new.then(|| format!("{line}\n"));
            self.last = Some(line);
            return text;
        }
        // The same text is drawn anew as well: the size of the terminal may have changed.
        let lines = fitted(&screen, rows.unwrap_or(ROWS), columns.unwrap_or(COLUMNS));
        let start = redraw(self.lines);
        self.lines = lines.len();
        Some(format!("{start}{}\n", lines.join("\n")))
    }
}

/// Moves to the first of so many lines that were printed last, and clears from there.
fn redraw(lines: usize) -> String {
    match lines {
        0 => String::new(),
        lines => format!("\u{1b}[{lines}A\r\u{1b}[J"),
    }
}

/// The lines of a text on a terminal: none is wider, and all can be redrawn.
fn fitted(text: &str, rows: usize, columns: usize) -> Vec<String> {
    let wrapped = wrapped_at(text.trim_end(), 4, columns);
    let mut lines: Vec<String> = wrapped.lines().map(|line| cut(line, columns)).collect();
    // The cursor is on the line after the last one.
    let most = rows.saturating_sub(1).max(1);
    if lines.len() > most {
        lines.truncate(most.saturating_sub(1));
        lines.push("…".to_owned());
    }
    lines
}

/// The beginning of a line that is too long because of one long word.
fn cut(line: &str, columns: usize) -> String {
    if printed(line) <= columns {
        return line.to_owned();
    }
    let mut cut = String::new();
    let (mut used, mut is_escape) = (0, false);
    for character in line.chars() {
        is_escape |= character == '\u{1b}';
        if is_escape {
            // What ends a colour is kept, wherever it is.
            cut.push(character);
            is_escape = character != 'm';
        } else {
            used += 1;
            if used <= columns {
                cut.push(character);
            }
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(is_redrawn: bool) -> Live {
        Live {
            is_redrawn,
            lines: 0,
            last: None,
        }
    }

    fn frame(screen: &str, line: &str) -> Frame {
        Frame {
            screen: screen.to_owned(),
            line: line.to_owned(),
        }
    }

    #[test]
    fn a_terminal_shows_the_next_frame_in_the_place_of_the_last() {
        let mut live = live(true);
        let first = live.text(frame("a\nb\n", "x"), Some(24), Some(80));
        assert_eq!(first.as_deref(), Some("a\nb\n"));
        let second = live.text(frame("c\n", "x"), Some(24), Some(80));
        assert_eq!(second.as_deref(), Some("\u{1b}[2A\r\u{1b}[Jc\n"));
        let third = live.text(frame("d\n", "x"), Some(24), Some(80));
        assert_eq!(third.as_deref(), Some("\u{1b}[1A\r\u{1b}[Jd\n"));
    }

    #[test]
    fn without_a_terminal_each_change_is_one_line() {
        let mut live = live(false);
        let mut told = |line: &str| live.text(frame("a\nb\n", line), None, None);
        assert_eq!(told("0 of 2").as_deref(), Some("0 of 2\n"));
        assert_eq!(told("0 of 2"), None);
        assert_eq!(told("1 of 2").as_deref(), Some("1 of 2\n"));
        assert_eq!(told("0 of 2").as_deref(), Some("0 of 2\n"));
    }

    #[test]
    fn a_frame_never_takes_more_lines_than_can_be_redrawn() {
        let mut live = live(true);
        let long = format!("one two three {}\n", "w".repeat(30));
        let screen = long.repeat(20);
        let text = live.text(frame(&screen, ""), Some(10), Some(12));
        let text = text.expect("a frame");
        assert_eq!(live.lines, 9);
        assert_eq!(text.lines().count(), 9);
        assert!(text.lines().all(|line| printed(line) <= 12), "{text}");
        assert_eq!(text.lines().last(), Some("…"));
    }

    #[test]
    fn a_line_that_is_cut_ends_its_colour() {
        let line = "\u{1b}[31mabcdef\u{1b}[0m";
        assert_eq!(cut(line, 3), "\u{1b}[31mabc\u{1b}[0m");
        assert_eq!(cut(line, 6), line);
    }
}
