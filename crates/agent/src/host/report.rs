//! What the node says about the host's router. Pure.

use api::{
    frrk8s::ObservedConfiguration,
    tcaas::node_network_config::{HostRouterStatus, MissingDevice},
};

use super::{
    HostConfig,
    apply::{Limits, Outcome},
    machine::Status,
};

/// The longest error that is reported.
const LONGEST: usize = 4096;

/// The state of the host's router, for the status of the node's config and for its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// What the machine says.
    pub(crate) status: Status,
    /// What of the running config is not in effect.
    pub(crate) limits: Limits,
    /// Devices and VNIs that the host lacks.
    pub(crate) missing: Vec<MissingDevice>,
    /// The last change of FRR.
    pub(crate) change: Option<Change>,
}

/// A change of FRR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// When it was made, as the API writes times.
    pub(crate) at: String,
    /// How long it took, in milliseconds.
    pub(crate) milliseconds: u32,
    /// Why it failed, if it did.
    pub(crate) error: Option<String>,
}

impl Change {
    /// A change that was made at this time.
    pub(crate) fn new(at: String, outcome: Result<&Outcome, String>) -> Self {
        let took = outcome.as_ref().map_or(0, |it| it.took.as_millis());
        Self {
            at,
            milliseconds: u32::try_from(took).unwrap_or(u32::MAX),
            error: outcome.err(),
        }
    }

    /// Whether the next apply that succeeds takes its place, even if that changes nothing: what failed has gone.
    pub(crate) fn is_over(&self) -> bool {
        self.error.is_some()
    }
}

impl Report {
    /// Whether the node has a router in the host's namespace, or should have.
    pub(crate) fn is_there(&self) -> bool {
        let has = |config: &Option<_>| {
            let config: Option<&std::sync::Arc<HostConfig>> = config.as_ref();
            config.is_some_and(|it| it.router.is_some())
        };
        has(&self.status.running) || has(&self.status.assigned)
    }

    /// The objects that FRR runs.
    pub(crate) fn configurations(&self) -> Vec<ObservedConfiguration> {
        let running = self.status.running.as_ref();
        let router = running.and_then(|it| it.router.as_ref());
        router.map_or_else(Vec::new, |router| router.configurations.clone())
    }

    /// Why the latest config is not in effect, sessions that wait for a password included.
    pub(crate) fn error(&self) -> Option<String> {
        let errors = self.status.error.iter().chain(&self.limits.held_back);
        let errors: Vec<&str> = errors.map(String::as_str).collect();
        (!errors.is_empty()).then(|| cut(&errors.join("; "), LONGEST))
    }

    /// The part of the status of the node's config; none where there is no such router.
    pub(crate) fn of_config(&self) -> Option<HostRouterStatus> {
        self.is_there().then(|| HostRouterStatus {
            configurations: self.configurations(),
            error: self.error(),
            refused_raw: self.limits.refused_raw.clone(),
            unsupported: self.limits.unsupported.clone(),
            missing: self.missing.clone(),
        })
    }
}

/// A text of at most so many bytes; one that is cut says so.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    const SAID: &str = "\n! truncated";
    if text.len() <= longest {
        return text.to_owned();
    }
    let mut end = longest.saturating_sub(SAID.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{SAID}", text.get(..end).unwrap_or_default())
}

/// A running configuration without the words after `password`.
pub(crate) fn without_passwords(text: &str) -> String {
    let line = |line: &str| match line.split_once("password ") {
        Some((before, _)) => format!("{before}password <retracted>"),
        None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_running_configuration_shows_no_password_and_a_long_one_says_that_it_was_cut() {
        let text = "router bgp 1\n neighbor 192.0.2.1 password hunter2\nend";
        assert_eq!(
            without_passwords(text),
            "router bgp 1\n neighbor 192.0.2.1 password <retracted>\nend"
        );
        assert_eq!(cut(text, 1000), text);
        let short = cut("ääääääääääääääää", 20);
        assert!(
            short.len() <= 20 && short.ends_with("! truncated"),
            "{short}"
        );
    }

    #[test]
    fn a_node_without_such_a_router_reports_none_and_an_error_names_what_waits() {
        let mut report = Report::default();
        assert_eq!(report.of_config(), None);
        report.status.assigned = Some(Arc::new(HostConfig {
            router: Some(Arc::default()),
            secrets: Vec::new(),
        }));
        report.limits.held_back = vec!["the session with 192.0.2.1 waits".to_owned()];
        let error = report.of_config().unwrap().error.unwrap();
        assert!(error.contains("192.0.2.1"), "{error}");
    }
}
