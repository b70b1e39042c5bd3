//! What the lab shows by itself: the logs, when a test that owns it fails.

use std::fs;
use std::path::Path;
use std::thread;

use crate::process::tail;

/// Prints the end of every log in a folder if the thread is panicking: the folder is about to go.
pub(crate) fn logs_if_panicking(folder: &Path) {
    if !thread::panicking() {
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut logs: Vec<_> = entries.map(|entry| entry.path()).collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    for path in logs {
        let text = fs::read(&path).unwrap_or_default();
        text_if_panicking(&path.display().to_string(), &String::from_utf8_lossy(&text));
    }
}

/// Prints the end of a text if the thread is panicking.
#[expect(
    clippy::print_stderr,
    reason = "the value that knows the text is being dropped by a failing test"
)]
pub(crate) fn text_if_panicking(title: &str, text: &str) {
    if thread::panicking() && !text.trim().is_empty() {
        eprintln!("--- {title} ---\n{}", tail(text, 15));
    }
}
