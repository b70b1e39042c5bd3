//! The one place that prints.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is a program for people at a terminal"
)]

/// Prints a line.
pub(crate) fn line(text: &str) {
    println!("{text}");
}

/// Prints an error with everything that led to it.
pub(crate) fn error(error: &anyhow::Error) {
    eprintln!("error: {error:#}");
}
