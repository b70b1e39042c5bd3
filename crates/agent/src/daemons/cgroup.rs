//! The control group of FRR's daemons: what ends the agent's does not end them.

use std::{collections::BTreeSet, fs, io, path::Path, time::Duration};

use tokio::time;

use super::process::Daemon;

/// The kernel's number of the file system of control groups, version 2.
const CGROUP2: rustix::fs::FsWord = 0x6367_7270;

/// How long the kernel may take to clean up after the last process of a group, and the pause between two looks.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(20);

/// Puts the daemons into the group, which is made if it is missing, unless they are in it. Returns what users should know: daemons that
/// stay in the agent's group end with the agent.
pub(super) fn own(group: &Path, daemons: &[Daemon]) -> Option<String> {
    let moved = is_hierarchy(group).and_then(|()| {
        fs::create_dir_all(group)?;
        let procs = group.join("cgroup.procs");
        let members = fs::read_to_string(&procs)?;
        let members: BTreeSet<&str> = members.lines().collect();
        let pids = daemons
            .iter()
            .map(|daemon| (daemon, daemon.pid.to_string()));
        let mut strangers = pids.filter(|(_, pid)| !members.contains(pid.as_str()));
        strangers.try_for_each(|(daemon, pid)| match fs::write(&procs, pid) {
            // One that has ended meanwhile is missed elsewhere.
            Err(error) if daemon.is_alive() => Err(error),
            _ => Ok(()),
        })
    });
    let error = moved.err()?;
    let group = group.display();
    Some(format!(
        "FRR stays in the agent's control group and stops with it: {group} cannot be used: {error}"
    ))
}

/// Removes the group of daemons that have ended.
pub(super) async fn remove(group: &Path) -> io::Result<()> {
    let removed = async {
        loop {
            match fs::remove_dir(group) {
                // A process that has ended is in its group until the kernel has cleaned up after it.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    time::sleep(POLL).await;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                outcome => return outcome,
            }
        }
    };
    let outcome = time::timeout(PATIENCE, removed).await;
    outcome.unwrap_or_else(|_elapsed| Err(io::ErrorKind::ResourceBusy.into()))
}

/// Whether a directory is, or would be, a control group: elsewhere, writing there would look like success.
fn is_hierarchy(group: &Path) -> io::Result<()> {
    let parent = group.parent().unwrap_or(group);
    if rustix::fs::statfs(parent)?.f_type == CGROUP2 {
        return Ok(());
    }
    let message = format!(
        "{} is no hierarchy of control groups (version 2)",
        parent.display()
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_directory_that_is_no_control_group_is_reported_and_left_alone() {
        let directory = tempfile::TempDir::new().unwrap();
        let group = directory.path().join("selvedge-frr");
        let note = own(&group, &[]).unwrap();
        assert!(note.contains("no hierarchy of control groups"), "{note}");
        assert!(!group.exists());
        remove(&group).await.unwrap();
    }
}
