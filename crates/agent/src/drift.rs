//! Notices that the node may differ from its config: the kernel announces a change, FRR is configured by hand, a daemon ends or does
//! not answer.
//!
//! A sign is noted in a value and not in a future: what else happens meanwhile ends the wait for signs, and loses none of them.

use linux::netlink::Changes;
use tokio::{
    task::JoinHandle,
    time::{self, Duration, Instant},
};

use crate::{
    command_log::CommandLog,
    daemons::{self, Daemon, Instance},
    vtysh,
};

/// Between two questions whether FRR's daemons are there.
const QUESTION: Duration = Duration::from_secs(5);
/// Changes come in groups; one look is enough for a group.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Between two looks at the name of the namespace: the kernel does not announce that a name is taken away.
const NAME: Duration = Duration::from_millis(250);
/// Between two attempts to read a log that cannot be read.
const RETRY: Duration = Duration::from_secs(1);

/// Where signs of drift come from, and since when there is one.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    /// Announcements of the kernel.
    pub(crate) changes: Option<Changes>,
    /// The commands that FRR was given.
    pub(crate) commands: Option<CommandLog>,
    /// The namespace whose changes are announced, by its inode.
    pub(crate) namespace: Option<u64>,
    /// The daemons that ran when they were last compared.
    daemons: Vec<Daemon>,
    question: Question,
    /// When the first sign was noted that no look has followed yet.
    noted: Option<Instant>,
}

impl Signs {
    /// Notes a sign: the node is to be looked at.
    pub(crate) fn note(&mut self) {
        self.noted.get_or_insert_with(Instant::now);
    }

    /// Takes the daemons that run now, after they were started or stopped on purpose.
    pub(crate) fn expect(&mut self, running: Vec<Daemon>) {
        self.daemons = running;
    }

    /// Compares the daemons that run now with those that ran before. The end of one is a sign, also if nothing waited for it.
    pub(crate) fn compare(&mut self, running: Vec<Daemon>) {
        if self.daemons.iter().any(|known| !running.contains(known)) {
            tracing::warn!("a daemon of FRR has ended");
            self.note();
        }
        self.daemons = running;
    }

    /// Waits until the node is to be looked at. A call that is dropped before its end loses no sign: the next one returns in its
    /// place. FRR is asked over its sockets.
    pub(crate) async fn next(&mut self, frr: &Instance) {
        if self.noted.is_none() {
            tokio::select! {
                () = changed(self.changes.as_ref()) => {}
                () = configured(self.commands.as_mut()) => {}
                () = ended(&self.daemons) => self.daemons.retain(Daemon::is_alive),
                () = self.question.silence(frr, &self.daemons) => {}
                () = renamed(frr, self.namespace) => {
                    tracing::warn!("the network namespace of the router is another one");
                    // One look for one change.
                    self.namespace = None;
                }
            }
        }
        let noted = *self.noted.get_or_insert_with(Instant::now);
        time::sleep_until(noted + DEBOUNCE).await;
        self.noted = None;
    }
}

async fn changed(changes: Option<&Changes>) {
    match changes {
        Some(changes) => changes.next().await,
        None => std::future::pending().await,
    }
}

async fn configured(commands: Option<&mut CommandLog>) {
    let noticed = match commands {
        Some(commands) => commands.next().await,
        None => std::future::pending().await,
    };
    if let Err(error) = noticed {
        tracing::warn!(%error, "the log of FRR's commands cannot be read");
        time::sleep(RETRY).await;
    }
}

/// Waits until the name of a known namespace is that of another one, or of none.
async fn renamed(frr: &Instance, known: Option<u64>) {
    if known.is_none() {
        return std::future::pending().await;
    }
    while frr.inode() == known {
        time::sleep(NAME).await;
    }
}

async fn ended(daemons: &[Daemon]) {
    match daemons::exits(daemons).await {
        Ok(()) => tracing::warn!("a daemon of FRR has ended"),
        Err(error) => tracing::warn!(%error, "the daemons of FRR cannot be watched"),
    }
}

/// The question whether FRR's daemons are there. It is asked beside everything else: what happens meanwhile does not put it off.
#[derive(Debug, Default)]
struct Question {
    due: Option<Instant>,
    /// Tells whether a daemon does not answer, when all were asked.
    asked: Option<JoinHandle<bool>>,
}

impl Question {
    /// Waits until a daemon does not answer.
    async fn silence(&mut self, frr: &Instance, daemons: &[Daemon]) {
        if daemons.is_empty() && self.asked.is_none() {
            return std::future::pending().await;
        }
        loop {
            if let Some(asked) = &mut self.asked {
                let is_silent = asked.await.unwrap_or_default();
                self.asked = None;
                self.due = None;
                if is_silent {
                    return;
                }
            }
            let due = *self.due.get_or_insert_with(|| Instant::now() + QUESTION);
            time::sleep_until(due).await;
            let names = daemons.iter().map(|daemon| daemon.name.clone()).collect();
            self.asked = Some(tokio::spawn(is_silent(frr.clone(), names)));
        }
    }
}

/// Whether one of the daemons does not answer in time.
async fn is_silent(frr: Instance, names: Vec<String>) -> bool {
    for name in names {
        if let Err(error) = vtysh::is_there(&frr, &name).await
            && error.is_silence()
        {
            tracing::warn!(%error, "a daemon of FRR is silent");
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::Write as _,
        os::unix::process::CommandExt as _,
        process::{Command, Stdio},
    };

    use super::*;

    const MOMENT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(5);

    fn nowhere() -> Instance {
        let paths = daemons::Paths {
            run: "/nowhere".into(),
            ..daemons::Paths::default()
        };
        Instance::router(&paths, "nowhere")
    }

    /// Waits for signs in short pieces, as a loop does to which other things happen all the time; whether there was one.
    async fn in_pieces(signs: &mut Signs) -> bool {
        let until = Instant::now() + LONG;
        while Instant::now() < until {
            if time::timeout(MOMENT, signs.next(&nowhere())).await.is_ok() {
                return true;
            }
        }
        false
    }

    #[tokio::test]
    async fn a_command_is_followed_by_a_look_also_when_other_events_come_at_the_same_moment() {
        let directory = tempfile::TempDir::new().unwrap();
        let [log, shells] = ["commands.log", "vtysh.conf"].map(|name| directory.path().join(name));
        File::create(&shells).unwrap();
        let mut written = File::create(&log).unwrap();
        let mut signs = Signs {
            commands: Some(CommandLog::open(&log, &shells).unwrap()),
            ..Signs::default()
        };
        let nothing = time::timeout(10 * MOMENT, signs.next(&nowhere())).await;
        assert!(nothing.is_err());
        // Its end: while a user stays in configuration mode there are more looks.
        writeln!(written, "STATIC: vty[1]@(config)# end").unwrap();
        assert!(in_pieces(&mut signs).await);
        let nothing = time::timeout(10 * MOMENT, signs.next(&nowhere())).await;
        assert!(nothing.is_err(), "one look for one sign");
    }

    #[tokio::test]
    async fn a_namespace_that_lost_its_name_is_followed_by_one_look() {
        let mut signs = Signs {
            namespace: Some(1),
            ..Signs::default()
        };
        assert!(in_pieces(&mut signs).await);
        let nothing = time::timeout(10 * MOMENT, signs.next(&nowhere())).await;
        assert!(nothing.is_err(), "one look for one change");
    }

    #[tokio::test]
    async fn the_end_of_a_daemon_is_followed_by_a_look_whenever_it_came() {
        let directory = tempfile::TempDir::new().unwrap();
        let start = || {
            Command::new("/bin/sh")
                .arg0(directory.path().join("bgpd"))
                .args(["-c", "read line", "-N", "router"])
                .stdin(Stdio::piped())
                .spawn()
                .unwrap()
        };
        let find = || daemons::found_in(directory.path());
        let mut child = start();
        while find().is_empty() {
            time::sleep(MOMENT).await;
        }
        let mut signs = Signs::default();
        signs.compare(find());
        let nothing = time::timeout(10 * MOMENT, signs.next(&nowhere())).await;
        assert!(nothing.is_err());
        // While the wait for signs is ended again and again.
        child.kill().unwrap();
        assert!(in_pieces(&mut signs).await);
        child.wait().unwrap();

        // While nothing waits for signs, and another daemon is there before the next look.
        let mut child = start();
        while find().is_empty() {
            time::sleep(MOMENT).await;
        }
        signs.compare(find());
        child.kill().unwrap();
        child.wait().unwrap();
        signs.compare(find());
        assert!(in_pieces(&mut signs).await);
        let nothing = time::timeout(10 * MOMENT, signs.next(&nowhere())).await;
        assert!(nothing.is_err(), "one look for one end");
    }
}
