//! Errors as texts for logs.

use std::error::Error;

/// An error with all its causes.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    if let Some(answer) = answer(error) {
        return answer;
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(answer) = answer(error) {
            return answer;
        }
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}

/// What the API server answered, where an error is such an answer. The library would print all of its fields.
fn answer(error: &(dyn Error + 'static)) -> Option<String> {
    match error.downcast_ref::<kube::Error>()? {
        kube::Error::Api(status) => Some(format!("{} ({})", status.message, status.code)),
        _ => None,
    }
}
