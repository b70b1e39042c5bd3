//! The FRR instances of a node: where each of them runs, and where its files are.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use super::{Paths, process};

/// One of the FRR instances that Selvedge runs on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    domain: Domain,
    paths: Paths,
}

/// The routing domain of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Domain {
    /// The router's network namespace, by name.
    Router(String),
    /// The host's own network namespace, which is the agent's.
    Host,
}

impl Instance {
    /// The instance that routes for the router domain, in the network namespace of this name.
    pub(crate) fn router(paths: &Paths, namespace: &str) -> Self {
        Self {
            domain: Domain::Router(namespace.to_owned()),
            paths: paths.clone(),
        }
    }

    /// The instance in the host's own network namespace.
    pub(crate) fn host(paths: &Paths) -> Self {
        Self {
            domain: Domain::Host,
            paths: paths.clone(),
        }
    }

    /// Name of the instance, as FRR's programs take it.
    pub(crate) fn name(&self) -> &'static str {
        match self.domain {
            Domain::Router(_) => "router",
            Domain::Host => "host",
        }
    }

    /// Where things are on this node.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Whether it runs in the host's own network namespace, where others may have daemons of their own.
    pub(crate) fn is_host(&self) -> bool {
        self.domain == Domain::Host
    }

    /// The namespace as people know it.
    pub(crate) fn namespace(&self) -> &str {
        match &self.domain {
            Domain::Router(name) => name,
            Domain::Host => "host",
        }
    }

    /// The file of the network namespace; absent for the agent's own.
    pub(super) fn namespace_file(&self) -> Option<PathBuf> {
        match &self.domain {
            Domain::Router(name) => Some(Path::new("/run/netns").join(name)),
            Domain::Host => None,
        }
    }

    /// The inode of the network namespace; `None` if it does not exist.
    pub(crate) fn inode(&self) -> Option<u64> {
        let file = self.namespace_file();
        let file = file.unwrap_or_else(|| "/proc/self/ns/net".into());
        Some(fs::metadata(file).ok()?.ino())
    }

    /// The directory of its sockets and process ids.
    pub(crate) fn sockets(&self) -> PathBuf {
        self.paths.run.join(self.name())
    }

    /// The directory of its configuration, which stays empty: the agent configures it.
    pub(crate) fn etc(&self) -> PathBuf {
        self.paths.etc.join(self.name())
    }

    /// The configuration that a fresh FRR is given.
    pub(crate) fn frr_conf(&self) -> PathBuf {
        self.paths.state.join(self.file("frr.conf"))
    }

    /// The file that every vtysh of the instance reads when it starts.
    pub(crate) fn shells(&self) -> PathBuf {
        self.etc().join("vtysh.conf")
    }

    /// The commands that staticd was given: they show when a user configures FRR by hand.
    pub(crate) fn command_log(&self) -> PathBuf {
        self.paths.runtime.join(self.file("frr-commands.log"))
    }

    /// What bgpd writes of its sessions.
    pub(crate) fn event_log(&self) -> PathBuf {
        self.paths.runtime.join(self.file("bgp-events.log"))
    }

    /// What a daemon prints when it starts.
    pub(super) fn output(&self, daemon: &str) -> PathBuf {
        let name = format!("{daemon}.log");
        self.paths.runtime.join(self.file(&name))
    }

    /// The control group of the daemons.
    pub(super) fn cgroup(&self) -> PathBuf {
        match self.domain {
            Domain::Router(_) => self.paths.cgroup.clone(),
            Domain::Host => {
                let mut name = self.paths.cgroup.clone().into_os_string();
                name.push("-host");
                name.into()
            }
        }
    }

    /// The name of a file in a directory that all instances share.
    fn file(&self, name: &str) -> String {
        match self.domain {
            Domain::Router(_) => name.to_owned(),
            Domain::Host => format!("host-{name}"),
        }
    }

    /// The daemons of FRR that run in the namespace and are not of this instance.
    pub(crate) fn foreign(&self) -> Vec<process::Daemon> {
        let Some(inode) = self.inode() else {
            return Vec::new();
        };
        let others = process::others(&super::names(), self.name());
        others
            .into_iter()
            .filter(|it| it.namespace == inode)
            .collect()
    }

    /// Removes what the daemons left in directories that root owns.
    pub(crate) fn remove_files(&self) -> io::Result<()> {
        let outputs = super::names().into_iter().map(|name| self.output(name));
        let logs = [self.command_log(), self.event_log(), self.frr_conf()];
        for path in outputs.chain(logs) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_instances_of_a_node_share_no_file_and_no_control_group() {
        let paths = Paths::default();
        let (router, host) = (Instance::router(&paths, "selvedge"), Instance::host(&paths));
        let files = |it: &Instance| {
            [
                it.sockets(),
                it.etc(),
                it.frr_conf(),
                it.shells(),
                it.command_log(),
                it.event_log(),
                it.output("bgpd"),
                it.cgroup(),
            ]
        };
        for (of_router, of_host) in files(&router).iter().zip(files(&host)) {
            assert_ne!(*of_router, of_host);
        }
        assert_eq!(router.frr_conf(), Path::new("/var/lib/selvedge/frr.conf"));
        let own = fs::metadata("/proc/self/ns/net").unwrap().ino();
        assert_eq!(host.inode(), Some(own));
    }
}
