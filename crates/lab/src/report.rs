//! What the lab shows by itself: the logs, when a test that owns it fails.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread;

use crate::process::tail;

/// An error with everything that led to it, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

/// Prints the end of every log in a folder if the thread is panicking: the folder is about to go.
#[expect(
    clippy::print_stderr,
    reason = "the value that knows the logs is being dropped by a failing test"
)]
pub(crate) fn if_panicking(folder: &Path) {
    if !thread::panicking() {
        return;
    }
    let mut logs: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    for path in logs {
        let text = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        if !text.trim().is_empty() {
            eprintln!("--- {} ---\n{}", path.display(), tail(&text, 15));
        }
    }
}
