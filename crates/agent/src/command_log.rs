//! Notices when a user or another program changes FRR's configuration.
//!
//! vtysh announces to every daemon that it enters and leaves its configuration mode. One daemon writes down the commands
//! it is given: staticd, which is given few, and never a password. While a user is in configuration mode, lines may
//! come at any time that only other daemons hear of; FRR is then looked at every second.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    os::fd::OwnedFd,
    path::Path,
    time::Duration,
};

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::{
    io::unix::AsyncFd,
    time::{self, Instant},
};

/// Between two looks while a user is in configuration mode.
const LOOK: Duration = Duration::from_secs(1);
/// After this long, a configuration mode that no user has left is taken for forgotten.
const FORGOTTEN: Duration = Duration::from_mins(2);
/// The log is emptied when it has become longer than this.
const LONGEST: u64 = 1 << 20;

/// The log of commands, read from where it ended before.
#[derive(Debug)]
pub(crate) struct CommandLog {
    file: File,
    notify: AsyncFd<OwnedFd>,
    /// Until when a user is taken to be in configuration mode.
    configuring: Option<Instant>,
}

impl CommandLog {
    /// Begins to watch; what is in the log already is passed over.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&fd, path, WatchFlags::MODIFY)?;
        let mut file = File::options().read(true).write(true).open(path)?;
        if file.seek(SeekFrom::End(0))? > LONGEST {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
        }
        // The descriptor is owned and never replaced while it is registered.
        #[expect(
            deprecated,
            reason = "its successor is unsafe for the sake of descriptors that others may close"
        )]
        let notify = AsyncFd::new(fd)?;
        Ok(Self {
            file,
            notify,
            configuring: None,
        })
    }

    /// Passes over what was written since the last look: our own commands.
    pub(crate) fn skip(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::End(0)).map(drop)
    }

    /// Waits until FRR's configuration may have been changed.
    pub(crate) async fn next(&mut self) -> io::Result<()> {
        loop {
            let look = async {
                match self.configuring {
                    Some(_) => time::sleep(LOOK).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ready = self.notify.readable() => {
                    let mut ready = ready?;
                    let mut events = [0; 4096];
                    // Which event it was does not matter: there is one file.
                    if rustix::io::read(self.notify.get_ref(), &mut events).is_err() {
                        ready.clear_ready();
                    }
                }
                () = look => {
                    self.configuring = self.configuring.filter(|until| Instant::now() < *until);
                    return Ok(());
                }
            }
            if self.read()? {
                return Ok(());
            }
        }
    }

    /// Reads what is new; whether it enters or leaves the configuration mode.
    fn read(&mut self) -> io::Result<bool> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut changed = false;
        for line in text.lines() {
            // `… vty[36]@(config)# end`
            let Some((_, command)) = line.rsplit_once(['#', '>']) else {
                continue;
            };
            match command.trim() {
                "configure" | "configure terminal" | "conf t" => {
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    #[tokio::test]
    async fn entering_and_leaving_configuration_mode_is_noticed_and_questions_are_not() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("commands.log");
        let mut log = File::create(&path).unwrap();
        writeln!(log, "STATIC: vty[1]@# configure terminal").unwrap();
        let mut commands = CommandLog::open(&path).unwrap();
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
        // As long as the mode is not left, there is another look each second.
        time::timeout(2 * LOOK, commands.next())
            .await
            .unwrap()
            .unwrap();
        writeln!(log, "STATIC: [M7Q4P-46WDR] vty[36]@(config)# end").unwrap();
        time::timeout(SHORT, commands.next())
            .await
            .unwrap()
            .unwrap();
        assert!(time::timeout(2 * LOOK, commands.next()).await.is_err());
    }
}
