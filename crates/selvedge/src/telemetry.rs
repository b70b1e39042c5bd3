//! What the daemons log, and how.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Logs to standard error. `SELVEDGE_LOG` sets the filter; `SELVEDGE_LOG_FORMAT=json` makes each line a JSON object.
pub(crate) fn init() {
    let filter = EnvFilter::try_from_env("SELVEDGE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    if std::env::var_os("SELVEDGE_LOG_FORMAT").is_some_and(|format| format == "json") {
        log.json().flatten_event(true).init();
    } else {
        log.init();
    }
}
