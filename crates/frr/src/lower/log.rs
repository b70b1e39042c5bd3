//! The log.

use crate::{config::Log, text::Statement};

/// The lines of the log.
pub(crate) fn log(log: &Log) -> Vec<Statement> {
    let Log { stdout, debug } = log;
    let stdout = stdout.iter().flat_map(|level| {
        [
            Statement::value("log stdout".to_owned(), level.as_str()),
            Statement::value("log timestamp precision".to_owned(), 3),
        ]
    });
    let debug = debug
        .iter()
        .map(|topic| Statement::new(format!("debug {}", topic.as_str())));
    stdout.chain(debug).collect()
}
