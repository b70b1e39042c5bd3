//! Ring 1: the picture of the README is the screen of `selvedge demo`. `UPDATE_DOCS=1` draws it.

use std::fmt::Write as _;

use crate::{ring1_docs::run, ring1_docs_reference::keep, support::repository};

/// Width and height of a character, in pixels.
const CELL: (usize, usize) = (8, 19);
/// Space around the text, in pixels.
const MARGIN: usize = 16;

#[test]
fn the_picture_of_the_demo_is_its_screen() -> anyhow::Result<()> {
    let screen = format!("$ selvedge demo\n{}", run(&["demo"])?);
    keep(&repository("docs/images/demo.svg"), &drawn(&screen)?)
}

/// A terminal with this text, as SVG.
fn drawn(screen: &str) -> anyhow::Result<String> {
    let lines: Vec<&str> = screen.lines().collect();
    let columns = lines.iter().map(|line| line.chars().count()).max();
    let (width, height) = (
        columns.unwrap_or_default() * CELL.0 + 2 * MARGIN,
        lines.len() * CELL.1 + 2 * MARGIN,
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e222a\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"13\" \
         fill=\"#d7dae0\" xml:space=\"preserve\">\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let baseline = MARGIN + (number + 1) * CELL.1 - 5;
        let length = line.chars().count() * CELL.0;
        let text = line
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        if !text.is_empty() {
            writeln!(
                svg,
                "<text x=\"{MARGIN}\" y=\"{baseline}\" textLength=\"{length}\" lengthAdjust=\"spacing\">{text}</text>"
            )?;
        }
    }
    svg.push_str("</g>\n</svg>\n");
    Ok(svg)
}
