//! FRR's own shell: the way in and out of its configuration, with a deadline on every call.
//!
//! Argument lists are visible to every process of the machine, so a line with a password never goes through vtysh: it is
//! given to bgpd itself, over the socket that vtysh uses as well (`send_secret`). What FRR prints about a refused
//! line repeats the line; passwords are cut out before it becomes part of an error.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use frr::Batch;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    process::Command,
    time,
};

use crate::{
    daemons::{self, Instance},
    program,
};

/// How long a question may take that is not part of an apply.
pub(crate) const ASK_PATIENCE: Duration = Duration::from_secs(5);
/// How long vtysh may take to show everything.
const SHOW_PATIENCE: Duration = Duration::from_secs(20);
/// How long one line of a change may take at most, besides the time in which FRR must answer at all.
const LINE_PATIENCE: Duration = Duration::from_millis(50);
/// How long an answer may take at most, however steadily it comes.
const ANSWER_PATIENCE: Duration = Duration::from_mins(1);

/// What FRR says while one daemon does not know yet what another, or the kernel, has already done.
const PASSING: [&str; 2] = [
    "Please unconfigure l3vni",
    "Only inactive VRFs can be deleted",
];

/// Words after which a line of FRR holds a secret.
const SECRET_WORDS: [&str; 4] = ["password", "key", "key-string", "secret"];

/// Why FRR rejected a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The shell failed, or FRR refused a line.
    #[error(transparent)]
    Shell(#[from] program::Error),
    /// A daemon could not be reached over its socket.
    #[error("failed to reach {}", socket.display())]
    Socket {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// A daemon did not answer in time.
    #[error("{} did not answer within {patience:?}", socket.display())]
    Silent {
        /// Its socket.
        socket: PathBuf,
        /// How long it had.
        patience: Duration,
    },
    /// A daemon did not show its configuration.
    #[error("{daemon} does not show its configuration")]
    Unread {
        /// The daemon.
        daemon: &'static str,
    },
    /// A daemon refused a line with a password. What it said is left out: it repeats the line.
    #[error("bgpd refused to set the password of {line}")]
    Password {
        /// The line, without its password.
        line: String,
    },
}

impl Error {
    /// Whether the same line may be taken a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Shell(program::Error::Failed { message, .. }) => {
                PASSING.iter().any(|text| message.contains(text))
            }
            _ => false,
        }
    }

    /// What FRR says about a line that it refuses; nothing if it was not asked, or did not answer.
    pub(crate) fn refusal(&self) -> Option<String> {
        match self {
            Self::Shell(program::Error::Failed { message, .. }) => Some(message.clone()),
            Self::Password { .. } => Some(self.to_string()),
            Self::Shell(program::Error::Deadline { .. } | program::Error::Run { .. })
            | Self::Silent { .. }
            | Self::Socket { .. }
            | Self::Unread { .. } => None,
        }
    }

    /// Whether FRR did not answer in time.
    pub(crate) fn is_silence(&self) -> bool {
        match self {
            Self::Shell(program::Error::Deadline { .. }) | Self::Silent { .. } => true,
            Self::Shell(program::Error::Run { .. } | program::Error::Failed { .. })
            | Self::Socket { .. }
            | Self::Unread { .. }
            | Self::Password { .. } => false,
        }
    }
}

/// The running configuration, as each daemon has it, one after the other. vtysh asks them the same; its start alone takes
/// longer than all their answers.
pub(crate) async fn running_config(
    instance: &Instance,
    patience: Duration,
) -> Result<String, Error> {
    let mut text = String::new();
    for daemon in daemons::names() {
        let questions = ["enable", "do write terminal"].map(str::to_owned);
        match converse(instance, daemon, &questions, patience).await {
            Ok(Some(answer)) => text.push_str(&answer),
            Ok(None) => return Err(Error::Unread { daemon }),
            // Like vtysh: it does not run, or this version has no such daemon.
            Err(Error::Socket { source, .. }) if is_absent(&source) => {}
            Err(error) => return Err(error),
        }
        // A block that a daemon has not closed is not the next one's.
        text.push_str("\nend\n");
    }
    Ok(text)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// Gives FRR a batch: commands to one vtysh, a line with a password to bgpd itself. Returns what FRR says, without what is secret: it
/// takes some lines with an error, and does not keep them.
pub(crate) async fn send(
    instance: &Instance,
    batch: &Batch,
    patience: Duration,
) -> Result<String, Error> {
    match batch {
        Batch::Commands(commands) => vtysh(instance, commands, patience).await,
        Batch::Secret { path, line } => {
            send_secret(instance, path, line, patience).await?;
            Ok(String::new())
        }
    }
}

fn for_lines(patience: Duration, lines: usize) -> Duration {
    patience + LINE_PATIENCE * u32::try_from(lines).unwrap_or(u32::MAX)
}

/// Loads a file as at a fresh boot. Errors of single lines are left to the comparison that follows.
pub(crate) async fn load(
    instance: &Instance,
    file: &Path,
    patience: Duration,
) -> Result<(), Error> {
    // A file that cannot be read is vtysh's to complain about.
    let lines = std::fs::read(file).map_or(0, |text| text.split(|byte| *byte == b'\n').count());
    let mut shell = Command::new("vtysh");
    shell.args(["-N", instance.name(), "-f"]).arg(file);
    let most = for_lines(patience, lines);
    match program::output_of_work(&mut shell, patience, most).await {
        Ok(_) | Err(program::Error::Failed { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn vtysh(
    instance: &Instance,
    commands: &[String],
    patience: Duration,
) -> Result<String, Error> {
    let mut shell = Command::new("vtysh");
    shell.args(["-N", instance.name()]);
    for command in commands {
        shell.arg("-c").arg(command);
    }
    let most = for_lines(patience, commands.len());
    let output = program::output_of_work(&mut shell, patience, most).await;
    let said = output.map(|said| without_secrets(&said));
    said.map_err(|error| match error {
        program::Error::Failed { program, message } => Error::Shell(program::Error::Failed {
            program,
            message: without_secrets(&message),
        }),
        other => Error::Shell(other),
    })
}

/// A text of FRR without what follows a word that announces a secret.
fn without_secrets(text: &str) -> String {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let at = words.iter().position(|word| SECRET_WORDS.contains(word));
        match at.and_then(|at| words.get(..=at)) {
            Some(shown) => format!("{} <hidden>", shown.join(" ")),
            None => line.to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Gives a line with a password to bgpd, over its socket: nothing of it is visible to other processes.
async fn send_secret(
    instance: &Instance,
    path: &[String],
    line: &frr::Line,
    patience: Duration,
) -> Result<(), Error> {
    let enter = ["enable", "configure terminal"].map(str::to_owned);
    let block = enter.iter().chain(path).cloned();
    let commands: Vec<String> = block.chain([line.reveal()]).collect();
    match converse(instance, "bgpd", &commands, patience).await? {
        Some(_) => Ok(()),
        None => Err(Error::Password {
            line: line.to_string(),
        }),
    }
}

/// The version that a running daemon has; vtysh would tell its own.
pub(crate) async fn daemon_version(
    instance: &Instance,
    daemon: &str,
    patience: Duration,
) -> Result<String, Error> {
    let question = ["show version".to_owned()];
    let answer = converse(instance, daemon, &question, patience).await;
    answer.map(Option::unwrap_or_default)
}

/// Whether a daemon answers. It writes this question into no log.
pub(crate) async fn is_there(instance: &Instance, daemon: &str) -> Result<(), Error> {
    let question = ["echo PING".to_owned()];
    converse(instance, daemon, &question, ASK_PATIENCE).await?;
    Ok(())
}

/// The answer of one daemon to a question; `None` if it does not know the question.
pub(crate) async fn ask_daemon(
    instance: &Instance,
    daemon: &str,
    question: &str,
) -> Result<Option<String>, Error> {
    converse(instance, daemon, &[question.to_owned()], ASK_PATIENCE).await
}

/// Gives commands to one daemon; what it answers, or `None` if it refuses one.
pub(crate) async fn tell_daemon(
    instance: &Instance,
    daemon: &str,
    commands: &[String],
) -> Result<Option<String>, Error> {
    converse(instance, daemon, commands, ASK_PATIENCE).await
}

/// The running configuration as a user sees it, with passwords.
pub(crate) async fn show_running(instance: &Instance) -> Result<String, Error> {
    let mut shell = Command::new("vtysh");
    shell.args(["-N", instance.name(), "-c", "show running-config"]);
    Ok(program::output(&mut shell, SHOW_PATIENCE).await?)
}

/// Gives commands to one daemon over the socket that vtysh uses; `None` if it refuses one.
///
/// The protocol is vtysh's: a command ends with a zero byte; the answer ends with three zero bytes and the result. A daemon is silent if
/// nothing comes of it for as long as `patience`: a long answer takes longer.
async fn converse(
    instance: &Instance,
    daemon: &str,
    commands: &[String],
    patience: Duration,
) -> Result<Option<String>, Error> {
    let socket = instance.sockets().join(format!("{daemon}.vty"));
    let talk = async {
        let stream = in_time(patience, UnixStream::connect(&socket)).await?;
        let mut stream = BufReader::new(stream);
        let mut answers = String::new();
        for command in commands {
            let (answer, result) = ask(&mut stream, command, patience).await?;
            if result != 0 {
                return Ok(None);
            }
            answers.push_str(&answer);
        }
        Ok(Some(answers))
    };
    let outcome = in_time(ANSWER_PATIENCE.max(patience), talk).await;
    outcome.map_err(|source| match source.kind() {
        io::ErrorKind::TimedOut => Error::Silent { socket, patience },
        _ => Error::Socket { socket, source },
    })
}

/// Gives a part of a conversation a deadline.
async fn in_time<T>(
    patience: Duration,
    part: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let outcome = time::timeout(patience, part).await;
    outcome.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
}

async fn ask(
    stream: &mut BufReader<UnixStream>,
    command: &str,
    patience: Duration,
) -> io::Result<(String, u8)> {
    let question = [command.as_bytes(), &[0]].concat();
    in_time(patience, stream.write_all(&question)).await?;
    let mut answer = Vec::new();
    let mut zeros = 0;
    loop {
        let part = in_time(patience, stream.fill_buf()).await?;
        if part.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut used, mut result) = (0, None);
        for byte in part {
            used += 1;
            match (*byte, zeros) {
                (byte, 3..) => {
                    result = Some(byte);
                    break;
                }
                (0, _) => zeros += 1,
                (byte, _) => {
                    zeros = 0;
                    answer.push(byte);
                }
            }
        }
        stream.consume(used);
        if let Some(result) = result {
            return Ok((String::from_utf8_lossy(&answer).into_owned(), result));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn a_long_answer_takes_longer_than_a_daemon_may_be_silent() {
        const PAUSE: Duration = Duration::from_millis(60);
        let run = tempfile::TempDir::new().unwrap();
        let paths = daemons::Paths {
            run: run.path().to_owned(),
            ..daemons::Paths::default()
        };
        let host = Instance::host(&paths);
        std::fs::create_dir(host.sockets()).unwrap();
        let socket = host.sockets().join("bgpd.vty");
        let listener = tokio::net::UnixListener::bind(socket).unwrap();
        let _bgpd = tokio::spawn(async move {
            for stops in [false, true] {
                let (mut stream, _) = listener.accept().await.unwrap();
                for _ in 0..8 {
                    stream.write_all(b"neighbor\n").await.unwrap();
                    time::sleep(PAUSE).await;
                }
                if stops {
                    time::sleep(Duration::from_mins(1)).await;
                }
                stream.write_all(&[0; 4]).await.unwrap();
            }
        });
        let question = ["do write terminal".to_owned()];
        let answer = converse(&host, "bgpd", &question, 4 * PAUSE).await;
        assert_eq!(answer.unwrap().unwrap().lines().count(), 8);
        let silence = converse(&host, "bgpd", &question, 4 * PAUSE).await;
        assert!(silence.unwrap_err().is_silence());
    }

    #[tokio::test]
    async fn what_runs_is_read_from_every_daemon_and_one_that_is_silent_is_named_in_time() {
        let run = tempfile::TempDir::new().unwrap();
        let paths = daemons::Paths {
            run: run.path().to_owned(),
            ..daemons::Paths::default()
        };
        let host = Instance::host(&paths);
        let instance = host.sockets();
        std::fs::create_dir(&instance).unwrap();
        let serve = |daemon: &str, line: &'static str| {
            let listener = tokio::net::UnixListener::bind(instance.join(daemon)).unwrap();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut question = [0; 64];
                    while stream.read(&mut question).await.is_ok_and(|read| read > 0) {
                        if question.starts_with(b"do write") {
                            stream.write_all(line.as_bytes()).await.unwrap();
                        }
                        stream.write_all(&[0; 4]).await.unwrap();
                    }
                }
            })
        };
        let _zebra = serve("zebra.vty", "vrf red\n vni 10");
        let _staticd = serve("staticd.vty", "ip route 192.0.2.0/24 blackhole");
        let text = running_config(&host, ASK_PATIENCE).await.unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let expected = [
            "end",
            "vrf red",
            " vni 10",
            "end",
            "ip route 192.0.2.0/24 blackhole",
            "end",
            "end",
            "end",
        ];
        assert_eq!(lines, expected);

        let _stopped = tokio::net::UnixListener::bind(instance.join("bgpd.vty")).unwrap();
        let patience = Duration::from_millis(50);
        let error = running_config(&host, patience).await.unwrap_err();
        assert!(error.is_silence());
        let error = error.to_string();
        assert!(error.contains("bgpd.vty did not answer within"), "{error}");
    }

    #[test]
    fn a_refusal_does_not_repeat_the_password() {
        let said = "% Unknown command: neighbor 192.0.2.1 password hunter2\nline 3: neighbor 192.0.2.1 remote-as 1";
        assert_eq!(
            without_secrets(said),
            "% Unknown command: neighbor 192.0.2.1 password <hidden>\nline 3: neighbor 192.0.2.1 remote-as 1"
        );
    }
}
