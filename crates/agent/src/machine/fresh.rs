//! Fresh starts of FRR outside of a change. Each puts off the next one, longer each time: a daemon that is busy after its start looks
//! like one that is silent, and would never come to an end of its work.

use std::time::Duration;

use crate::config::Time;

/// The pause after the first one; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_mins(30);
/// How long after that pause they are remembered.
const MEMORY: Duration = Duration::from_mins(10);

/// The fresh starts of late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FreshStarts {
    count: u32,
    last: Time,
}

impl FreshStarts {
    fn next(&self) -> Time {
        let doubled = self.count.checked_sub(1);
        let pause = doubled.map(|doubled| FIRST_PAUSE * 2_u32.saturating_pow(doubled.min(16)));
        self.last + pause.unwrap_or_default().min(LONGEST_PAUSE)
    }

    /// Counts one, if the time for it has come; whether it has.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        let is_due = now >= self.next();
        if is_due {
            self.count += 1;
            self.last = now;
        }
        is_due
    }

    /// Forgets them when the last one was long ago.
    pub(super) fn forget(&mut self, now: Time) {
        if self.count > 0 && now > self.next() + MEMORY {
            *self = Self::default();
        }
    }

    /// What users should know of them. One alone has mended something.
    pub(super) fn note(&self) -> Option<String> {
        let count = self.count;
        (count > 1).then(|| {
            format!("a daemon of FRR did not answer, and FRR was restarted {count} times; the next restart is delayed")
        })
    }
}
