//! Follows something in the cluster until it has ended.

use std::time::{Duration, Instant};

use crate::output::{self, Frame, Live, Verdict};

/// How long the cluster may be out of reach: a change of the network can cut it off for a while.
const PATIENCE: Duration = Duration::from_mins(2);

/// Reads and shows a state in this interval, until it says what it came to. A cluster that cannot be read the first time is an error at once.
pub(super) async fn follow(
    interval: Duration,
    read: impl AsyncFn() -> anyhow::Result<(Frame, Option<Verdict>)>,
) -> anyhow::Result<Verdict> {
    let mut live = Live::new();
    let mut read_at = None::<Instant>;
    let mut told = None;
    loop {
        match read().await {
            Ok((frame, ended)) => {
                read_at = Some(Instant::now());
                told = None;
                let is_open = live.show(frame);
                if let Some(verdict) = ended {
                    return Ok(verdict);
                }
                if !is_open {
                    // What it says then is about the output.
                    return Ok(Verdict::Fine);
                }
            }
            Err(error) => {
                if read_at.is_none_or(|at| at.elapsed() >= PATIENCE) {
                    return Err(error);
                }
                let line = format!("{error:#}; it is tried again");
                if told.as_ref() != Some(&line) {
                    live.leave();
                    output::note(&line);
                    told = Some(line);
                }
            }
        }
        tokio::time::sleep(interval).await;
    }
}
