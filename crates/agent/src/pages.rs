//! What the agent shows over HTTP: metrics and health.

use endpoint::{Answer, Pages, Question};

use tokio::sync::watch;

use crate::{
    daemons::Instance,
    host::{self, Report},
    metrics::Metrics,
    watchdog::Watchdog,
};

/// What is shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) metrics: Metrics,
    pub(crate) watchdog: Watchdog,
    /// The host's router, and what it reports.
    pub(crate) host: (Instance, watch::Receiver<Report>),
}

impl Pages for Shown {
    async fn answer(&self, question: Question) -> Answer {
        match question.path.as_str() {
            "/metrics" => Answer::Text(self.metrics.text() + &self.of_host().await),
            "/healthz" => Answer::verdict(self.watchdog.liveness()),
            "/readyz" => Answer::verdict(self.metrics.readiness()),
            _ => Answer::NotFound("/metrics, /healthz or /readyz"),
        }
    }
}

impl Shown {
    /// The metrics of the host's router, where the node has one.
    async fn of_host(&self) -> String {
        let (instance, reports) = &self.host;
        let report = reports.borrow().clone();
        if !report.is_there() {
            return String::new();
        }
        host::metrics::text(instance, &report.status).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemons::Paths;

    #[tokio::test]
    async fn metrics_and_health_are_answered_and_all_else_is_refused() {
        let metrics = Metrics::default();
        let journal = crate::journal::Journal::default();
        metrics.show(crate::machine::Machine::new(journal).status(), None);
        let watchdog = Watchdog::start().unwrap();
        let (_reports, reported) = watch::channel(Report::default());
        let host = (Instance::host(&Paths::default()), reported);
        let shown = Shown {
            metrics,
            watchdog,
            host,
        };
        let ask = async |path: &str| {
            let path = path.to_owned();
            shown.answer(Question { path, bearer: None }).await
        };
        let Answer::Text(text) = ask("/metrics").await else {
            panic!("no text");
        };
        assert!(text.contains("selvedge_agent_state"));
        assert_eq!(ask("/healthz").await, Answer::verdict(Ok(())));
        let why = "unconfigured".to_owned();
        assert_eq!(ask("/readyz").await, Answer::Unavailable(why));
        assert!(matches!(ask("/vtysh").await, Answer::NotFound(_)));
    }
}
