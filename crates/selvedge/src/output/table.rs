//! Tables: aligned columns under a head, within the width of the screen.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets::NOTHING};

use super::{Style, styled, width};

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
    let widths = widths(head, rows);
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// What is between two columns.
const GAP: usize = 2;
/// The least width of a column that is wrapped.
const LEAST: usize = 12;

fn widths(head: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let length = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = head.iter().map(|name| length(name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(cell));
        }
    }
    widths
}

/// How each column behaves on a screen of so many columns: where it is too narrow for those that are to stay whole, the widest of them are
/// wrapped too.
fn behaviours(head: &[(&str, Column)], widths: &[usize], screen: usize) -> Vec<Column> {
    let mut columns: Vec<Column> = head.iter().map(|(_, column)| *column).collect();
    loop {
        let least = columns
            .iter()
            .zip(widths)
            .map(|(column, width)| match column {
                Column::Whole => *width,
                Column::Wrapped => (*width).min(LEAST),
            });
        let least: usize = least.sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let whole = columns.iter_mut().zip(widths);
        let widest = whole
            .filter(|(column, _)| **column == Column::Whole)
            .max_by_key(|(_, width)| **width);
        match widest {
            Some((column, _)) if least > screen => *column = Column::Wrapped,
            _ => return columns,
        }
    }
}

/// Rows as aligned columns under a head.
pub(crate) fn table_of(head: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let names: Vec<&str> = head.iter().map(|(name, _)| *name).collect();
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(names.iter().copied());
    table.add_rows(rows.iter().map(|row| row.iter().map(String::as_str)));
    table.set_content_arrangement(ContentArrangement::Disabled);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    if let Some(screen) = width().filter(|screen| table_width(&names, rows) > *screen) {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // The padding behind the last column is cut.
        table.set_width(u16::try_from(screen + GAP).unwrap_or(u16::MAX));
        let behaviours = behaviours(head, &widths(&names, rows), screen);
        for (column, behaviour) in table.column_iter_mut().zip(behaviours) {
            if behaviour == Column::Whole {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
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
