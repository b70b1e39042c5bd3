//! Named namespaces: found, entered, made and removed.
//!
//! A namespace is entered only by threads that are made for it and end in it; no thread of the program ever changes its
//! own. A new one is marked as ours before it gets its name, so that there is no instant at which a namespace of that name
//! exists and is not known to be ours.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::PathBuf,
    sync::Arc,
    thread,
};

use rustix::{
    mount::{MountPropagationFlags, UnmountFlags},
    thread::{LinkNameSpaceType, UnshareFlags},
};
use tokio::sync::oneshot;

use super::{Connection, Domain};

/// Where named namespaces live, by the convention of iproute2.
const DIRECTORY: &str = "/run/netns";
/// What `statfs` says of a namespace; a plain file at its place is one that was never finished.
const NSFS_MAGIC: u64 = 0x6e73_6673;

/// A namespace that is held open.
#[derive(Clone, Debug)]
pub(super) struct Namespace(Arc<File>);

impl Namespace {
    /// The one that the program runs in.
    pub(super) fn current() -> io::Result<Self> {
        File::open("/proc/self/ns/net").map(|file| Self(Arc::new(file)))
    }

    /// The one with this name, if there is one.
    pub(super) fn named(name: &str) -> io::Result<Option<Self>> {
        let file = match File::open(path(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // What `ip netns add` leaves when it is cut short has no rights at all.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            Err(error) => return Err(error),
        };
        let kind = rustix::fs::fstatfs(&file)?.f_type;
        let is_namespace = u64::try_from(kind).is_ok_and(|kind| kind == NSFS_MAGIC);
        Ok(is_namespace.then(|| Self(Arc::new(file))))
    }

    /// Runs something inside, on a thread of its own.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let namespace = self.clone();
        on_thread(move || {
            rustix::thread::move_into_link_name_space(
                namespace.0.as_fd(),
                Some(LinkNameSpaceType::Network),
            )?;
            Ok(work())
        })
        .await
    }

    /// A netlink socket inside.
    pub(super) async fn connect(&self, domain: Domain) -> io::Result<Connection> {
        let runtime = tokio::runtime::Handle::current();
        self.run(move || {
            let _context = runtime.enter();
            Connection::open(domain)
        })
        .await?
    }

    /// A new namespace without a name.
    pub(super) async fn unnamed() -> io::Result<Self> {
        on_thread(|| {
            // The thread shares nothing else; rustix withdrew the safe name because of `FILES`, which is not asked for.
            #[expect(
                deprecated,
                reason = "its successor is unsafe for the sake of other flags"
            )]
            rustix::thread::unshare(UnshareFlags::NEWNET)?;
            File::open("/proc/thread-self/ns/net").map(|file| Self(Arc::new(file)))
        })
        .await
    }

    /// Gives the namespace a name, under which it outlives us.
    pub(super) fn publish(&self, name: &str) -> io::Result<()> {
        share_directory()?;
        let path = path(name);
        // Not exclusively: a file that is not a namespace is left over from an interrupted creation.
        match File::create(&path) {
            Ok(_file) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
        let source = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(rustix::mount::mount_bind(source, &path)?)
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Takes away the name. The kernel ends the namespace when the last process has left it.
pub(super) fn unpublish(name: &str) -> io::Result<()> {
    let path = path(name);
    rustix::mount::unmount(&path, UnmountFlags::DETACH)?;
    fs::remove_file(path)
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(DIRECTORY).join(name)
}

/// Makes the directory a shared mount, as `ip netns` does: a name given here is then seen in other mount namespaces,
/// such as that of a container with FRR.
fn share_directory() -> io::Result<()> {
    let flags = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    fs::create_dir_all(DIRECTORY)?;
    if rustix::mount::mount_change(DIRECTORY, flags).is_err() {
        rustix::mount::mount_bind_recursive(DIRECTORY, DIRECTORY)?;
        rustix::mount::mount_change(DIRECTORY, flags)?;
    }
    Ok(())
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new()
        .name("namespace".into())
        .spawn(move || {
            // The receiver is gone only if the caller was cancelled.
            let _unheard = sender.send(work());
        })?;
    receiver
        .await
        .map_err(|_gone| io::Error::other("the thread ended without an answer"))?
}
