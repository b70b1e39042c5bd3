//! What the agent shows over HTTP: metrics and health.

use endpoint::{Answer, Pages, Question};

use crate::{metrics::Metrics, watchdog::Watchdog};

/// What is shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) metrics: Metrics,
    pub(crate) watchdog: Watchdog,
}

impl Pages for Shown {
    async fn answer(&self, question: Question) -> Answer {
        match question.path.as_str() {
            "/metrics" => Answer::Text(self.metrics.text()),
            "/healthz" => Answer::verdict(self.watchdog.liveness()),
            "/readyz" => Answer::verdict(self.metrics.readiness()),
            _ => Answer::NotFound("/metrics, /healthz or /readyz"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn metrics_and_health_are_answered_and_all_else_is_refused() {
        let metrics = Metrics::default();
        let journal = crate::journal::Journal::default();
        metrics.show(crate::machine::Machine::new(journal).status(), None);
        let watchdog = Watchdog::start().unwrap();
        let shown = Shown { metrics, watchdog };
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
