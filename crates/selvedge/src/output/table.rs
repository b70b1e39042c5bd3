//! Tables: aligned columns under a head, within the width of the screen.

use comfy_table::{ContentArrangement, Table, presets::NOTHING};

use super::{Style, printed, styled, width, wrapped_at};

/// How a column behaves where the screen is too narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// It keeps its width: names, numbers, addresses.
    Whole,
    /// Its texts go on in further lines: lists and sentences.
    Wrapped,
}

/// Rows as aligned columns under a head; the last column gives way where the screen is narrow.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let last = head.len().saturating_sub(1);
    let head: Vec<(&str, Column)> = (0..)
        .zip(head)
        .map(|(place, name)| {
            let column = if place == last {
                Column::Wrapped
            } else {
                Column::Whole
            };
            (*name, column)
        })
        .collect();
    table_of(&head, rows)
}

/// The columns that a table takes without wrapping anything.
pub(crate) fn table_width(head: &[&str], rows: &[Vec<String>]) -> usize {
    let widths = widths(head, rows, length);
    widths.iter().sum::<usize>() + gaps(&widths)
}

/// What is between two columns.
const GAP: usize = 2;

fn gaps(widths: &[usize]) -> usize {
    GAP * widths.len().saturating_sub(1)
}

/// The columns of the longest line of a text.
fn length(text: &str) -> usize {
    let lines = text.lines().map(printed);
    lines.max().unwrap_or_default()
}

/// The columns of the longest word of a text.
fn longest_word(text: &str) -> usize {
    let words = text.split_whitespace().map(printed);
    words.max().unwrap_or_default() + indent(text)
}

/// How far the lines of a cell go in that continue one: where several lines stand in it, to tell them apart.
fn indent(cell: &str) -> usize {
    if cell.contains('\n') { GAP } else { 0 }
}

/// The width of each column, by the widest of its cells.
fn widths(head: &[&str], rows: &[Vec<String>], of: impl Fn(&str) -> usize) -> Vec<usize> {
    let mut widths: Vec<usize> = head.iter().map(|name| length(name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(of(cell));
        }
    }
    widths
}

/// The width of each column on a screen of so many columns. A word is broken only where the screen is narrower than the words of a row.
fn fitting(head: &[(&str, Column)], rows: &[Vec<String>], screen: usize) -> Vec<usize> {
    let names: Vec<&str> = head.iter().map(|(name, _)| *name).collect();
    let natural = widths(&names, rows, length);
    let words = widths(&names, rows, longest_word);
    let room = screen.saturating_sub(gaps(&natural));
    let columns = head.iter().zip(natural.iter().zip(&words));
    let mut fitting: Vec<usize> = columns
        .map(|((_, column), (natural, word))| match column {
            Column::Whole => *natural,
            Column::Wrapped => *word,
        })
        .collect();
    // Where not even the words fit, the widest column gives way.
    while fitting.iter().sum::<usize>() > room {
        let widest = fitting.iter_mut().max();
        match widest.filter(|width| **width > 1) {
            Some(width) => *width -= 1,
            None => break,
        }
    }
    // What is left goes to the narrowest of those that want more.
    let mut left = room.saturating_sub(fitting.iter().sum());
    while left > 0 {
        let columns = fitting.iter_mut().zip(&natural);
        let wanting = columns.filter(|(width, natural)| **width < **natural);
        match wanting.min_by_key(|(width, _)| **width) {
            Some((width, _)) => *width += 1,
            None => break,
        }
        left -= 1;
    }
    fitting
}

/// A cell in lines of so many columns: at words, and inside those words that are longer.
fn in_lines(cell: &str, width: usize) -> String {
    let mut text = String::new();
    let indent = indent(cell);
    let room = width.saturating_sub(indent).max(1);
    for word in cell.split_inclusive([' ', '\n']) {
        let mut rest = word;
        while rest.trim_end().chars().count() > room {
            let end = rest.char_indices().nth(room);
            let (part, after) = rest.split_at(end.map_or(rest.len(), |(end, _)| end));
            text.push_str(part);
            text.push('\n');
            rest = after;
        }
        text.push_str(rest);
    }
    wrapped_at(&text, indent, width)
}

/// Rows as aligned columns under a head.
pub(crate) fn table_of(head: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let names: Vec<&str> = head.iter().map(|(name, _)| *name).collect();
    let widths = match width().filter(|screen| table_width(&names, rows) > *screen) {
        Some(screen) => fitting(head, rows, screen),
        None => vec![usize::MAX; head.len()],
    };
    let rows = rows.iter().map(|row| -> Vec<String> {
        let cells = row.iter().zip(&widths);
        cells.map(|(cell, width)| in_lines(cell, *width)).collect()
    });
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(names.iter().copied());
    table.add_rows(rows);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    let mut text = String::new();
    for (number, line) in lines.enumerate() {
        let line = if number == 0 {
            styled(Style::Dim, &line)
        } else {
            line
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_broken_inside_a_word_only_where_the_word_is_longer() {
        assert_eq!(in_lines("pool-b2x, pool-c9k", 9), "pool-b2x,\npool-c9k");
        assert_eq!(in_lines("abcdef gh", 4), "abcd\nef\ngh");
        assert_eq!(in_lines("one two", usize::MAX), "one two");
    }

    #[test]
    fn columns_that_may_be_wrapped_share_what_the_others_leave() {
        let head = [
            ("A", Column::Whole),
            ("B", Column::Wrapped),
            ("C", Column::Wrapped),
        ];
        let rows = [vec![
            "whole".to_owned(),
            "one two three four".to_owned(),
            "five".to_owned(),
        ]];
        assert_eq!(fitting(&head, &rows, 24), [5, 11, 4]);
        assert_eq!(fitting(&head, &rows, 9), [2, 2, 1]);
    }
}
