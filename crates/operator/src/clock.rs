//! A clock for leases: it goes on while the process is stopped and while the machine sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A moment, as the time since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(pub(crate) Duration);

impl Moment {
    /// The moment at which this is called.
    pub(crate) fn now() -> Self {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Self(Duration::new(seconds, nanoseconds))
    }

    /// The moment this much later.
    pub(crate) fn after(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }

    /// How long it is from now until this moment; nothing once it has come.
    pub(crate) fn remaining(self) -> Option<Duration> {
        let remaining = self.0.checked_sub(Self::now().0)?;
        (!remaining.is_zero()).then_some(remaining)
    }
}
