//! How long calls may take while a config is applied.
//!
//! A change is confirmed or taken back within one deadline, so what waits for an answer waits for a part of what is left of it. Work
//! that goes on is not cut off: only waits are.

use std::time::{Duration, Instant};

use crate::config::Config;

/// A call may always take this long, also when the time is over: otherwise a busy node would never get its config back.
const LEAST: Duration = Duration::from_secs(1);

/// How long the calls of one apply may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    silence: Duration,
    /// When the apply should be over; `None` if nothing waits for that.
    until: Option<Instant>,
}

impl Patience {
    /// For an apply of this config that should take no longer than this.
    pub(crate) fn new(config: &Config, limit: Option<Duration>) -> Self {
        Self {
            silence: config.silence(),
            until: limit.and_then(|limit| Instant::now().checked_add(limit)),
        }
    }

    /// How long a call may take now that otherwise may take this long.
    pub(crate) fn at_most(self, most: Duration) -> Duration {
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(most, |left| left.max(LEAST).min(most))
    }

    /// How long FRR may not answer now.
    pub(crate) fn silence(self) -> Duration {
        self.at_most(self.silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_no_longer_than_what_is_left_and_always_has_a_second() {
        let config = Config::empty();
        let long = Duration::from_mins(1);
        assert_eq!(Patience::new(&config, None).at_most(long), long);
        let some = Patience::new(&config, Some(Duration::from_secs(10)));
        assert!(some.at_most(long) <= Duration::from_secs(10));
        assert_eq!(some.silence(), config.silence());
        let over = Patience::new(&config, Some(Duration::ZERO));
        assert_eq!((over.at_most(long), over.silence()), (LEAST, LEAST));
        let short = Duration::from_millis(20);
        assert_eq!(over.at_most(short), short);
    }
}
