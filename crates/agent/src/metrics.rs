//! What the agent counts and measures, in the text format of Prometheus.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use api::tcaas::NodeNetworkConfigSpec;
use endpoint::Exposition;

use crate::{
    config::Config,
    machine::{State, Status},
};

/// The state of the agent as it was last reported, shared with the endpoint that shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Arc<Mutex<Option<Shown>>>);

#[derive(Clone, Debug)]
struct Shown {
    status: Status,
    frr_version: Option<String>,
}

const STATES: [(State, &str); 6] = [
    (State::Unassigned, "unconfigured"),
    (State::Trying, "trying"),
    (State::Confirmed, "confirmed"),
    (State::Rejected, "rejected"),
    (State::Restoring, "restoring"),
    (State::Held, "held"),
];

impl Metrics {
    /// Replaces what is shown.
    pub(crate) fn show(&self, status: Status, frr_version: Option<String>) {
        let shown = Shown {
            status,
            frr_version,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown);
    }

    fn shown(&self) -> Option<Shown> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether the node runs its config, confirmed; or why not.
    pub(crate) fn readiness(&self) -> Result<(), String> {
        let Some(Shown { status, .. }) = self.shown() else {
            return Err("the agent is starting".to_owned());
        };
        match (status.state, &status.running) {
            (State::Confirmed, Some(_)) => Ok(()),
            (state, _) => Err(status.error.unwrap_or_else(|| name(state).to_owned())),
        }
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = Text(Exposition::new("selvedge_agent_"));
        if let Some(Shown {
            status,
            frr_version,
        }) = self.shown()
        {
            text.info(&status, frr_version.as_deref());
            text.counters(&status);
            text.gauges(&status);
        }
        text.0.into_text()
    }
}

fn name(state: State) -> &'static str {
    let found = STATES.iter().find(|(other, _)| *other == state);
    found.map_or("unknown", |(_, name)| name)
}

struct Text(Exposition);

impl Text {
    fn value(&mut self, name: &str, kind: &str, help: &str, value: impl fmt::Display) {
        self.0.value(name, kind, help, value);
    }

    fn info(&mut self, status: &Status, frr_version: Option<&str>) {
        let text = &mut self.0;
        text.head("info", "gauge", "Versions of the agent and of FRR.");
        let versions = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("frr_version", frr_version.unwrap_or_default()),
        ];
        text.labelled("info", &versions, 1);
        let revision = |config: &Option<Arc<Config>>| {
            let spec: Option<&NodeNetworkConfigSpec> = config.as_ref().map(|it| &it.spec);
            spec.map(|spec| spec.revision.clone()).unwrap_or_default()
        };
        text.head(
            "revision_info",
            "gauge",
            "Revision of the node's config, of the running and of the confirmed one.",
        );
        let [observed, running, confirmed] =
            [&status.assigned, &status.running, &status.confirmed].map(revision);
        let revisions = [
            ("observed", observed.as_str()),
            ("running", &running),
            ("confirmed", &confirmed),
        ];
        text.labelled("revision_info", &revisions, 1);
        text.head(
            "state",
            "gauge",
            "1 for the state of the node, 0 for all others.",
        );
        for (state, name) in STATES {
            let is_it = u8::from(state == status.state);
            text.labelled("state", &[("state", name)], is_it);
        }
    }

    fn counters(&mut self, status: &Status) {
        let counters = status.counters;
        for (name, help, value) in [
            (
                "confirmed_total",
                "Configs confirmed by health.",
                counters.confirmed,
            ),
            (
                "taken_back_total",
                "Configs rolled back because a health check failed.",
                counters.taken_back,
            ),
            (
                "restored_total",
                "Restores of the confirmed config.",
                counters.restored,
            ),
            ("repaired_total", "Repairs of drift.", counters.repaired),
            (
                "failed_applies_total",
                "Applies that failed.",
                counters.failed,
            ),
        ] {
            self.value(name, "counter", help, value);
        }
    }

    fn gauges(&mut self, status: &Status) {
        let failing = status.unhealthy.len();
        self.value(
            "failing_checks",
            "gauge",
            "Health checks that fail.",
            failing,
        );
        let help = "Parts of the config that the node lacks.";
        self.value("missing_parts", "gauge", help, status.notes.len());
        let Some(timings) = status.timings else {
            return;
        };
        let help = "Time from the journal entry of the last confirmed config until it was applied.";
        self.value("apply_seconds", "gauge", help, timings.apply.as_secs_f64());
        let help =
            "Time from the journal entry of the last confirmed config until it was confirmed.";
        let confirm = timings.confirm.as_secs_f64();
        self.value("confirm_seconds", "gauge", help, confirm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{journal::Journal, machine::Machine};

    #[test]
    fn metrics_have_help_and_type_alerts_name_them_and_the_state_is_one_of_all() {
        let metrics = Metrics::default();
        assert_eq!(metrics.text(), "");
        assert!(metrics.readiness().is_err());
        metrics.show(
            Machine::new(Journal::default()).status(),
            Some("10.3".to_owned()),
        );
        let text = metrics.text();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
        let alerts = include_str!("../../../deploy/alerts.yaml");
        let words = alerts.split(|it: char| !it.is_ascii_lowercase() && it != '_');
        for name in words.filter(|word| word.starts_with("selvedge_agent_")) {
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}: {text}");
        }
        assert!(text.contains("selvedge_agent_state{state=\"unconfigured\"} 1"));
        assert!(text.contains("selvedge_agent_state{state=\"confirmed\"} 0"));
        assert!(text.contains("frr_version=\"10.3\""));
        assert_eq!(metrics.readiness(), Err("unconfigured".to_owned()));
    }
}
