//! Why a config could not be applied.

use std::{fmt, time::Duration};

use tokio::time;

use crate::{
    daemons, file,
    machine::{Fault, FrrFault},
    report, vtysh,
};

/// Why a config could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The config asks for something this node cannot do.
    #[error("not supported here: {}", .0.join("; "))]
    Unsupported(Vec<String>),
    /// An object that Selvedge did not make has the name of one that it needs.
    #[error("conflict: {}", .0.join("; "))]
    Conflict(Vec<String>),
    /// New uplinks are not there, so that none is moved.
    #[error("there is no NIC {}; nothing was changed; correct `nics` of the Underlay", .0.join(", "))]
    NoNic(Vec<String>),
    /// What ran before is not known, and the config is not what runs.
    #[error(
        "the journal of this node is lost, so that there would be no way back; nothing was changed; the config differs from what runs: {}; \
         ask for another attempt to have it tried all the same",
        .0.join("; ")
    )]
    NoWayBack(Vec<String>),
    /// The kernel could not be observed.
    #[error("failed to observe the kernel")]
    Observe(#[source] linux::netlink::Error),
    /// What NICs had before they were moved could not be stored or read.
    #[error("failed to remember what NICs had before they were moved")]
    Remember(#[source] file::Error),
    /// The kernel refused a step.
    #[error("failed to change the kernel")]
    Kernel(#[source] linux::netlink::ApplyError),
    /// FRR could not be brought up.
    #[error("failed to bring up FRR")]
    Daemons(#[source] daemons::Error),
    /// FRR refused a line.
    #[error("failed to configure FRR")]
    Frr(#[source] vtysh::Error),
    /// Daemons of FRR exited while they were configured.
    #[error("{} exited while FRR was configured", .0.join(", "))]
    Ended(Vec<&'static str>),
    /// Something took too long.
    #[error("failed to {operation} within {patience:?}")]
    Deadline {
        /// What was attempted.
        operation: &'static str,
        /// How long it had.
        patience: Duration,
    },
    /// Differences remain after everything was done.
    #[error("verification failed: differences remain: {differences}")]
    Verify {
        /// The differences.
        differences: String,
        /// Whether they are FRR's.
        of_frr: bool,
    },
}

impl Failure {
    /// The failure as the state machine judges it.
    pub(crate) fn fault(&self) -> Fault {
        let frr = match self {
            Self::Frr(error) if error.is_silence() => FrrFault::Silent,
            // FRR may show a line in another way than it was given: a fresh start would close every session for that.
            Self::Daemons(_)
            | Self::Frr(_)
            | Self::Ended(_)
            | Self::Verify { of_frr: true, .. } => FrrFault::Refused,
            Self::Unsupported(_)
            | Self::Conflict(_)
            | Self::NoNic(_)
            | Self::NoWayBack(_)
            | Self::Observe(_)
            | Self::Remember(_)
            | Self::Kernel(_)
            | Self::Deadline { .. }
            | Self::Verify { of_frr: false, .. } => FrrFault::None,
        };
        Fault {
            message: report::chain(self),
            permanent: matches!(
                self,
                Self::Unsupported(_) | Self::Conflict(_) | Self::NoWayBack(_)
            ),
            frr,
        }
    }
}

/// Everything in a config that cannot be done.
pub(super) fn unsupported<T: fmt::Display>(refused: &[T]) -> Failure {
    Failure::Unsupported(refused.iter().map(ToString::to_string).collect())
}

/// Gives an operation a deadline.
pub(super) async fn within<T>(
    operation: &'static str,
    patience: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match time::timeout(patience, work).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => Err(Failure::Deadline {
            operation,
            patience,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_frr_does_not_show_close_no_session_of_the_others() {
        let forgotten = |of_frr| Failure::Verify {
            differences: "router bgp 64512".to_owned(),
            of_frr,
        };
        for (failure, frr) in [
            (forgotten(true), FrrFault::Refused),
            (forgotten(false), FrrFault::None),
            (Failure::Ended(vec!["bgpd"]), FrrFault::Refused),
        ] {
            let fault = failure.fault();
            assert_eq!(fault.frr, frr, "{failure}");
            assert!(!fault.permanent, "{failure}");
        }
    }
}
