//! Follows the sessions of the host's router: bgpd writes each change of a state into a log, and is asked for all of them then.
//!
//! What bgpd writes there is switched on for the running daemon alone, over its socket: no line of the configuration says so.

use std::time::Duration;

use tokio::{sync::watch, time};

use super::sessions::{self, Session, read_sessions};
use crate::{
    daemons::{self, Daemon, Instance},
    report,
    tail::Tail,
    vtysh,
};

/// Changes come in groups; one look is enough for a group.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Between two looks without any sign of a change.
const RESYNC: Duration = Duration::from_secs(30);
/// Between two looks whether there is a bgpd.
const LOOK: Duration = Duration::from_millis(500);
/// What makes bgpd write changes of states.
const DEBUG: &str = "debug bgp neighbor-events";
/// The words with which bgpd writes a change of a state.
const CHANGES: [&str; 3] = ["went from", "ADJCHANGE", "BFD"];

/// Publishes the sessions for as long as the agent runs; none while there is no bgpd.
pub(super) async fn follow(instance: Instance, sessions: watch::Sender<Vec<Session>>) {
    let mut known: Option<Daemon> = None;
    let mut log: Option<Tail> = None;
    loop {
        let running = daemons::running(&instance);
        let bgpd = running.into_iter().find(|daemon| daemon.name == "bgpd");
        let Some(bgpd) = bgpd else {
            known = None;
            publish(&sessions, Vec::new());
            time::sleep(LOOK).await;
            continue;
        };
        if known.as_ref() != Some(&bgpd) {
            log = Tail::open(&instance.event_log())
                .inspect_err(|error| tracing::warn!(%error, "changes of sessions are seen late"))
                .ok();
            if !write_changes(&instance).await {
                time::sleep(LOOK).await;
                continue;
            }
            known = Some(bgpd.clone());
        }
        match ask(&instance).await {
            Ok(latest) => publish(&sessions, latest),
            Err(error) => tracing::debug!(error, "the sessions of the host's router are not known"),
        }
        let ended = [bgpd];
        tokio::select! {
            () = changed(log.as_mut()) => time::sleep(DEBOUNCE).await,
            _ = daemons::exits(&ended) => {}
            () = time::sleep(RESYNC) => {}
        }
    }
}

fn publish(sessions: &watch::Sender<Vec<Session>>, latest: Vec<Session>) {
    sessions.send_if_modified(|known| {
        let is_new = *known != latest;
        *known = latest;
        is_new
    });
}

/// Makes bgpd write each change of a state; whether it does.
async fn write_changes(instance: &Instance) -> bool {
    let commands = ["enable", DEBUG].map(str::to_owned);
    matches!(
        vtysh::tell_daemon(instance, "bgpd", &commands).await,
        Ok(Some(_))
    )
}

async fn ask(instance: &Instance) -> Result<Vec<Session>, String> {
    let answer = vtysh::ask_daemon(instance, "bgpd", sessions::NEIGHBORS).await;
    let answer = answer.map_err(|error| report::chain(&error))?;
    let answer = answer.ok_or("bgpd does not report its sessions")?;
    let sessions = read_sessions(&answer).map_err(|error| error.to_string())?;
    Ok(sessions
        .into_iter()
        .map(|counted| counted.session)
        .collect())
}

/// Waits until bgpd has written a change of a state.
async fn changed(log: Option<&mut Tail>) {
    let Some(log) = log else {
        return std::future::pending().await;
    };
    loop {
        let text = match log.touched().await {
            Ok(_) => log.read(),
            Err(error) => Err(error),
        };
        match text {
            Ok(text) if CHANGES.iter().any(|words| text.contains(words)) => return,
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, "the log of bgpd cannot be read");
                time::sleep(RESYNC).await;
            }
        }
    }
}
