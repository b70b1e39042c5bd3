//! What the operator counts and measures, in the text format of Prometheus.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use api::tcaas::NetworkConfigRevisionStatus;
use compiler::{Compilation, Kind, Severity, revision, rollout::waves::Phase};
use endpoint::Exposition;
use strum::IntoEnumIterator;

use crate::{
    election::Leadership,
    pass::Pass,
    publish::{Memory, Totals},
};

/// A pass that takes longer than this hangs.
const LONGEST_PASS: Duration = Duration::from_mins(10);

/// What is known about the operator's work, shared with the endpoint that shows it.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    leadership: Leadership,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Debug, Default)]
struct Shown {
    /// Why nothing can be compiled yet.
    incomplete: Option<String>,
    /// Since when a pass runs.
    pass_since: Option<Instant>,
    passes: u64,
    compile: Duration,
    pass: Duration,
    frozen: BTreeSet<Kind>,
    totals: Totals,
    failing: BTreeMap<Kind, usize>,
    unknown_fields: BTreeSet<(Kind, String)>,
    compiled: Option<Compiled>,
    silent_nodes: usize,
}

/// What the last pass came to.
#[derive(Debug)]
struct Compiled {
    revision: String,
    /// Size of the revision in the API server's store.
    revision_bytes: usize,
    rollout: NetworkConfigRevisionStatus,
    /// Problems by severity and reason.
    problems: BTreeMap<(&'static str, &'static str), usize>,
}

impl Metrics {
    pub(crate) fn new(leadership: Leadership) -> Self {
        let starting = Shown {
            incomplete: Some("the operator is starting".to_owned()),
            ..Shown::default()
        };
        Self {
            leadership,
            shown: Arc::new(Mutex::new(starting)),
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Shown) -> T) -> T {
        change(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes why nothing can be compiled.
    pub(crate) fn is_incomplete(&self, reason: String) {
        self.with(|shown| shown.incomplete = Some(reason));
    }

    /// Notes that a pass begins.
    pub(crate) fn pass_begins(&self) {
        self.with(|shown| {
            shown.pass_since = Some(Instant::now());
            shown.incomplete = None;
        });
    }

    /// Notes what was compiled.
    pub(crate) fn compiled(&self, compilation: &Compilation, pass: &Pass, took: Duration) {
        let name = revision::object_name(&compilation.revision.fingerprint);
        let mut problems = BTreeMap::new();
        for problem in compilation.problems.iter() {
            let severity = match problem.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            *problems
                .entry((severity, problem.kind.reason()))
                .or_default() += 1;
        }
        // The size changes with the revision only, and takes a while to find out: probes do not wait for it.
        let known = self.with(|shown| {
            let known = shown.compiled.as_ref();
            let known = known.filter(|one| one.revision == name);
            known.map(|one| one.revision_bytes)
        });
        let revision_bytes = known.unwrap_or_else(|| {
            let spec = compilation.revision.spec(&compilation.objects);
            serde_json::to_vec(&spec).map_or(0, |bytes| bytes.len())
        });
        self.with(|shown| {
            shown.compile = took;
            shown.silent_nodes = pass.silent_nodes;
            shown.compiled = Some(Compiled {
                revision: name,
                revision_bytes,
                rollout: pass.step.status.clone(),
                problems,
            });
        });
    }

    /// Notes how many nodes have an agent that is not alive. It may stop answering when no pass is due.
    pub(crate) fn silent_nodes(&self, count: usize) {
        self.with(|shown| shown.silent_nodes = count);
    }

    /// Notes that a pass has ended.
    pub(crate) fn pass_ends(&self, memory: &Memory, frozen: &BTreeSet<Kind>) {
        self.with(|shown| {
            let since = shown.pass_since.take();
            shown.pass = since.map_or(Duration::ZERO, |since| since.elapsed());
            shown.passes += 1;
            shown.frozen.clone_from(frozen);
            shown.totals = memory.totals.clone();
            shown.failing = memory.backoffs.by_kind();
            let fields = memory.backoffs.unknown_fields();
            shown.unknown_fields = fields.map(|(kind, field)| (kind, field.clone())).collect();
        });
    }

    /// Whether the loop moves on, or why not.
    pub(crate) fn liveness(&self) -> Result<(), String> {
        let since = self.with(|shown| shown.pass_since);
        match since.map(|since| since.elapsed()) {
            Some(standing) if standing > LONGEST_PASS => {
                Err(format!("a pass has taken {} s so far", standing.as_secs()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether this operator could lead, or why not.
    pub(crate) fn readiness(&self) -> Result<(), String> {
        match self.with(|shown| shown.incomplete.clone()) {
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> String {
        let mut text = Exposition::new("selvedge_operator_");
        text.head("info", "gauge", "Version of the operator.");
        text.labelled("info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        let is_leading = u8::from(self.leadership.remaining().is_some());
        text.value("leader", "gauge", "1 if this operator writes.", is_leading);
        self.with(|shown| {
            shown.passes(&mut text);
            shown.writes(&mut text);
            if let Some(compiled) = &shown.compiled {
                compiled.show(&mut text);
                let help = "Nodes whose agent is not alive.";
                text.value("silent_nodes", "gauge", help, shown.silent_nodes);
            }
        });
        text.into_text()
    }
}

impl Shown {
    fn passes(&self, text: &mut Exposition) {
        text.value("passes_total", "counter", "Passes.", self.passes);
        let help = "Time of the last compile.";
        text.value("compile_seconds", "gauge", help, self.compile.as_secs_f64());
        let help = "Time of the last pass: compile and writes.";
        text.value("pass_seconds", "gauge", help, self.pass.as_secs_f64());
        let help = "1 for a kind that cannot be watched: its objects stay as they were, and none is written.";
        text.head("frozen", "gauge", help);
        for kind in &self.frozen {
            text.labelled("frozen", &[("kind", &kind.to_string())], 1);
        }
        let is_unready = u8::from(self.incomplete.is_some());
        let help = "1 if nothing is compiled, because a kind was never listed.";
        text.value("incomplete", "gauge", help, is_unready);
    }

    fn writes(&self, text: &mut Exposition) {
        let by_kind = |text: &mut Exposition, name: &str, counts: &BTreeMap<Kind, u64>| {
            for (kind, count) in counts {
                text.labelled(name, &[("kind", &kind.to_string())], count);
            }
        };
        text.head("writes_total", "counter", "Writes that were done.");
        by_kind(text, "writes_total", &self.totals.written);
        text.head("write_errors_total", "counter", "Writes that failed.");
        by_kind(text, "write_errors_total", &self.totals.failed);
        let help = "Writes that have failed and wait to be tried again.";
        text.head("failing_writes", "gauge", help);
        for (kind, count) in &self.failing {
            text.labelled("failing_writes", &[("kind", &kind.to_string())], count);
        }
        let help = "1 for a field that the definition of its kind in the cluster lacks.";
        text.head("unknown_field", "gauge", help);
        for (kind, field) in self.unknown_fields.union(&self.totals.dropped) {
            let labels = [("kind", &*kind.to_string()), ("field", field)];
            text.labelled("unknown_field", &labels, 1);
        }
    }
}

impl Compiled {
    fn show(&self, text: &mut Exposition) {
        let rollout = &self.rollout;
        text.head("revision_info", "gauge", "The newest revision.");
        text.labelled("revision_info", &[("revision", &self.revision)], 1);
        let help = "Size of the newest revision.";
        text.value("revision_bytes", "gauge", help, self.revision_bytes);
        let help = "1 for the phase of the newest revision's rollout, 0 for all others.";
        text.head("rollout_phase", "gauge", help);
        for phase in Phase::iter().map(|phase| phase.to_string()) {
            let is_it = u8::from(rollout.phase.as_ref() == Some(&phase));
            text.labelled("rollout_phase", &[("phase", &phase)], is_it);
        }
        text.head("nodes", "gauge", "Nodes by how far they are.");
        for (state, count) in [
            ("ready", rollout.ready),
            ("ongoing", rollout.ongoing),
            ("queued", rollout.queued),
            ("failed", rollout.failed),
            ("unapproved", rollout.unapproved),
        ] {
            text.labelled("nodes", &[("state", state)], count);
        }
        let help = "Problems of objects.";
        text.head("problems", "gauge", help);
        for ((severity, reason), count) in &self.problems {
            let labels = [("severity", *severity), ("reason", reason)];
            text.labelled("problems", &labels, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use compiler::{Compiler, rollout::waves::Agent};

    use super::*;

    #[test]
    fn metrics_have_help_and_type_alerts_name_them_and_the_operator_is_ready_once_it_compiles() {
        let metrics = Metrics::new(Leadership::none());
        assert!(metrics.readiness().is_err());
        metrics.pass_begins();
        let mut compiler = Compiler::default();
        let pass = Pass::compute(&mut compiler, |_| Agent::ALIVE, BTreeMap::new(), 100);
        let (_, compilation) = compiler.compile();
        metrics.compiled(compilation, &pass, Duration::from_millis(5));
        let mut memory = Memory::default();
        memory.totals.written.insert(Kind::Vrf, 7);
        metrics.pass_ends(&memory, &[Kind::Network].into());
        assert_eq!((metrics.readiness(), metrics.liveness()), (Ok(()), Ok(())));
        assert!(metrics.text().contains("silent_nodes 0\n"));
        metrics.silent_nodes(2);
        let text = metrics.text();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}");
        }
        let alerts = include_str!("../../../deploy/alerts.yaml");
        let words = alerts.split(|it: char| !it.is_ascii_lowercase() && it != '_');
        for name in words.filter(|word| word.starts_with("selvedge_operator_")) {
            assert!(text.contains(&format!("# TYPE {name} ")), "{name}: {text}");
        }
        for line in [
            "selvedge_operator_leader 0",
            "selvedge_operator_silent_nodes 2",
            "selvedge_operator_compile_seconds 0.005",
            "selvedge_operator_writes_total{kind=\"VRF\"} 7",
            "selvedge_operator_frozen{kind=\"Network\"} 1",
            "selvedge_operator_rollout_phase{phase=\"Complete\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
    }
}
