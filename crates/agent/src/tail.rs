//! A log of a daemon, read from where it ended before, as soon as something is written.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, SeekFrom},
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use tokio::io::unix::AsyncFd;

/// The log is emptied when it has become longer than this.
const LONGEST: u64 = 1 << 20;

/// A log that a daemon appends to.
#[derive(Debug)]
pub(crate) struct Tail {
    file: File,
    notify: AsyncFd<OwnedFd>,
}

impl Tail {
    /// Begins to watch the log; what is in it already is passed over.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(&fd, path, WatchFlags::MODIFY)?;
        let mut file = File::options().read(true).write(true).open(path)?;
        file.seek(SeekFrom::End(0))?;
        shorten(&mut file)?;
        // The descriptor is owned and never replaced while it is registered.
        #[expect(
            deprecated,
            reason = "its successor is unsafe for the sake of descriptors that others may close"
        )]
        let notify = AsyncFd::new(fd)?;
        Ok(Self { file, notify })
    }

    /// Notices as well when this file is opened.
    pub(crate) fn watch_opens_of(&self, path: &Path) -> io::Result<()> {
        inotify::add_watch(self.notify.get_ref(), path, WatchFlags::OPEN)?;
        Ok(())
    }

    /// Waits until the log is written or the other file is opened; whether it was opened.
    pub(crate) async fn touched(&self) -> io::Result<bool> {
        let mut ready = self.notify.readable().await?;
        match events(self.notify.get_ref()) {
            Ok(is_opened) => Ok(is_opened),
            Err(_nothing_left) => {
                ready.clear_ready();
                Ok(false)
            }
        }
    }

    /// Reads what is new.
    pub(crate) fn read(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        shorten(&mut self.file)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Takes what the kernel has noticed; whether a file was opened.
fn events(fd: &OwnedFd) -> Result<bool, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(fd, &mut buffer);
    let mut is_opened = reader.next()?.events().contains(ReadFlags::OPEN);
    while !reader.is_buffer_empty() {
        is_opened |= reader.next()?.events().contains(ReadFlags::OPEN);
    }
    Ok(is_opened)
}

/// Empties the log if it is too long and was read; the daemon appends to it.
fn shorten(file: &mut File) -> io::Result<()> {
    if file.stream_position()? > LONGEST {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
    }
    Ok(())
}
