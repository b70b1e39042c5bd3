//! Notices when a user or another program changes FRR's configuration.
//!
//! vtysh announces to every daemon that it enters its configuration mode, and mostly that it leaves it. One daemon writes
//! down the commands it is given: staticd, which is given few, and never a password. While a user is in configuration
//! mode, lines may come at any time that only other daemons receive; FRR is then looked at again and again.
//!
//! A vtysh for one other daemon only (`vtysh -d bgpd`) is not in that log. Every vtysh of the instance reads one file when
//! it starts, and that is seen: FRR is looked at after it, and every second while a vtysh for one daemon runs.

use std::{io, path::Path, time::Duration};

use tokio::time::{self, Instant};

use crate::tail::Tail;

/// Between two looks after the configuration mode was entered.
const LOOK: Duration = Duration::from_millis(400);
/// The same for a user who stays in it: most lines are given at once by a vtysh that ends without saying so.
const LATER_LOOK: Duration = Duration::from_secs(1);
/// How long after the configuration mode was entered that is.
const STAYS: Duration = Duration::from_secs(5);
/// After this long, a configuration mode that no user has left is taken for forgotten.
const FORGOTTEN: Duration = Duration::from_mins(2);

/// The log of commands, read from where it ended before.
#[derive(Debug)]
pub(crate) struct CommandLog {
    tail: Tail,
    /// Until when a user is taken to be in configuration mode.
    configuring: Option<Instant>,
    /// When the next look is due meanwhile.
    look: Instant,
    /// When the next look is due because a vtysh was started.
    shell: Option<Instant>,
    /// How often the agent itself has entered the configuration mode since the log was last read.
    own: usize,
}

impl CommandLog {
    /// Begins to watch the log, and the file that every vtysh of the instance reads; what is in the log already is passed over.
    pub(crate) fn open(path: &Path, shells: &Path) -> io::Result<Self> {
        let tail = Tail::open(path)?;
        if let Err(error) = tail.watch_opens_of(shells) {
            tracing::warn!(%error, "a vtysh for one daemon is not noticed");
        }
        Ok(Self {
            tail,
            configuring: None,
            look: Instant::now(),
            shell: None,
            own: 0,
        })
    }

    /// How often the agent itself has entered the configuration mode since the last check.
    pub(crate) fn expect(&mut self, own: usize) {
        self.own = own;
    }

    /// Waits until FRR's configuration may have been changed.
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        loop {
            let due = self.configuring.map(|_| self.look);
            let due = due.into_iter().chain(self.shell).min();
            // At a fixed time: questions of others are in the log, too, and must not put it off.
            let look = async move {
                match due {
                    Some(at) => time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                is_shell = self.tail.touched() => if is_shell? {
                    self.shell.get_or_insert_with(|| Instant::now() + LOOK);
                },
                () = look => {
                    let now = Instant::now();
                    self.configuring = self.configuring.filter(|until| now < *until);
                    let stays = self.configuring.is_some_and(|until| now + FORGOTTEN > until + STAYS);
                    self.look = now + if stays { LATER_LOOK } else { LOOK };
                    if self.shell.is_some_and(|at| at <= now) {
                        self.shell = serves_one_daemon().then(|| now + LATER_LOOK);
                    }
                    return Ok(());
                }
            }
            if self.read()? {
                self.look = Instant::now() + LOOK;
                return Ok(());
            }
        }
    }

    /// Reads what is new; whether it enters or leaves the configuration mode.
    fn read(&mut self) -> io::Result<bool> {
        let text = self.tail.read()?;
        let mut changed = false;
        for line in text.lines() {
            // `… vty[36]@(config)# end`
            let Some((_, command)) = line.rsplit_once(['#', '>']) else {
                continue;
            };
            match command.trim() {
                command if enters(command) && self.own > 0 => self.own -= 1,
                command if enters(command) => {
                    self.configuring = Some(Instant::now() + FORGOTTEN);
                    changed = true;
                }
                "end" => {
                    self.configuring = None;
                    changed = true;
                }
                _ => {}
            }
        }
        Ok(changed)
    }
}

/// Whether a vtysh runs for one daemon only.
fn serves_one_daemon() -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    let mut command_lines = entries.filter_map(|entry| {
        let process = entry.ok()?.path();
        let name = std::fs::read(process.join("comm")).ok()?;
        (name == b"vtysh\n").then(|| std::fs::read(process.join("cmdline")).ok())?
    });
    command_lines.any(|words| names_a_daemon(&words))
}

/// Whether the words of a command line, each with a zero byte at its end, hold the option for one daemon.
fn names_a_daemon(words: &[u8]) -> bool {
    let mut words = words.split(|byte| *byte == 0);
    words.any(|word| word.starts_with(b"-d") || word.starts_with(b"--d"))
}

/// Whether a command enters the configuration mode. FRR takes every abbreviation that is not also one of another command;
/// `con` is the shortest one here, because a look too many costs little and one too few leaves a change unseen.
fn enters(command: &str) -> bool {
    let abbreviates =
        |word: &str, whole: &str, least: usize| word.len() >= least && whole.starts_with(word);
    let mut words = command.split_whitespace();
    let is_configure = words
        .next()
        .is_some_and(|word| abbreviates(word, "configure", 3));
    // `terminal`, `terminal file-lock`, `exclusive` and their abbreviations.
    is_configure
        && words.all(|word| {
            ["terminal", "file-lock", "exclusive"]
                .iter()
                .any(|whole| abbreviates(word, whole, 1))
        })
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _};

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    /// A file like the one that every vtysh reads.
    fn shells(directory: &tempfile::TempDir) -> std::path::PathBuf {
        let path = directory.path().join("vtysh.conf");
        File::create(&path).unwrap();
        path
    }

    #[tokio::test]
    async fn the_start_of_a_vtysh_is_followed_by_a_look() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("commands.log");
        File::create(&path).unwrap();
        let shells = shells(&directory);
        let mut commands = CommandLog::open(&path, &shells).unwrap();
        assert!(time::timeout(SHORT, commands.next()).await.is_err());
        File::open(&shells).unwrap();
        time::timeout(2 * LOOK, commands.next())
            .await
            .unwrap()
            .unwrap();
        // It was no vtysh, so none runs that could still change something.
        assert!(
            time::timeout(2 * LATER_LOOK, commands.next())
                .await
                .is_err()
        );
    }

    #[test]
    fn a_vtysh_for_one_daemon_is_known_by_its_option() {
        for words in [
            "vtysh\0-N\0router\0-d\0bgpd\0",
            "vtysh\0--daemon=bgpd\0",
            "vtysh\0-dbgpd\0",
        ] {
            assert!(names_a_daemon(words.as_bytes()), "{words}");
        }
        for words in ["vtysh\0-N\0router\0-c\0show version\0", "vtysh\0"] {
            assert!(!names_a_daemon(words.as_bytes()), "{words}");
        }
    }

    #[tokio::test]
    async fn entering_and_leaving_configuration_mode_is_noticed_and_questions_are_not() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("commands.log");
        let mut log = File::create(&path).unwrap();
        writeln!(log, "STATIC: vty[1]@# configure terminal").unwrap();
        let mut commands = CommandLog::open(&path, &shells(&directory)).unwrap();
        let nothing = time::timeout(SHORT, commands.next()).await;
        assert!(nothing.is_err(), "what was there before does not count");
        writeln!(
            log,
            "STATIC: vty[1]@> enable\nSTATIC: vty[1]@# do write terminal"
        )
        .unwrap();
        assert!(time::timeout(SHORT, commands.next()).await.is_err());
        writeln!(log, "STATIC: [M7Q4P-46WDR] vty[36]@# configure terminal").unwrap();
        time::timeout(SHORT, commands.next())
            .await
            .unwrap()
            .unwrap();
        // As long as the mode is not left, there is another look after a while, also while others ask questions.
        let mut asking = time::interval(LOOK / 8);
        let ask = async {
            for _ in 0..32 {
                asking.tick().await;
                writeln!(log, "STATIC: vty[1]@# do write terminal").unwrap();
            }
        };
        tokio::select! {
            looked = commands.next() => looked.unwrap(),
            () = ask => panic!("questions put off the look"),
        }
        writeln!(log, "STATIC: [M7Q4P-46WDR] vty[36]@(config)# end").unwrap();
        time::timeout(SHORT, commands.next())
            .await
            .unwrap()
            .unwrap();
        assert!(time::timeout(2 * LOOK, commands.next()).await.is_err());
    }

    #[test]
    fn every_abbreviation_of_the_configuration_mode_is_recognised_and_other_commands_are_not() {
        for command in [
            "configure",
            "configure terminal",
            "conf",
            "conf t",
            "config t",
            "config term",
            "con t",
            "configure terminal file-lock",
        ] {
            assert!(enters(command), "{command}");
        }
        for command in [
            "",
            "enable",
            "co",
            "copy running-config startup-config",
            "conf x",
            "show configuration",
        ] {
            assert!(!enters(command), "{command}");
        }
    }

    #[tokio::test]
    async fn what_the_agent_itself_does_is_passed_over_and_what_others_do_meanwhile_is_not() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("commands.log");
        let mut log = File::create(&path).unwrap();
        let mut commands = CommandLog::open(&path, &shells(&directory)).unwrap();
        let mut enter = || writeln!(log, "STATIC: vty[1]@# configure terminal").unwrap();
        enter();
        commands.expect(1);
        assert!(time::timeout(SHORT, commands.next()).await.is_err());
        enter();
        enter();
        commands.expect(1);
        time::timeout(SHORT, commands.next())
            .await
            .unwrap()
            .unwrap();
    }
}
