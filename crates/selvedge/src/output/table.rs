//! Tables: aligned columns under a head, within the width of the screen.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets::NOTHING};

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

/// Rows as aligned columns under a head.
pub(crate) fn table_of(head: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(head.iter().map(|(name, _)| *name));
    table.add_rows(rows.iter().map(|row| row.iter().map(String::as_str)));
    table.set_content_arrangement(ContentArrangement::Disabled);
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // One column more: the padding at the end of lines is cut.
        table.set_width(u16::try_from(width + 1).unwrap_or(u16::MAX));
    }
    for (column, (_, behaviour)) in table.column_iter_mut().zip(head) {
        column.set_padding((0, 2));
        if *behaviour == Column::Whole {
            column.set_constraint(ColumnConstraint::ContentWidth);
        } else {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(14)));
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
