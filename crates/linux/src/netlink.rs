//! The kernel itself: observed and changed through netlink.
//!
//! [`Kernel::observe`] is one dump of links, addresses, rules and our own routes for each namespace, the filters of the
//! router's links, and a handful of small files. [`Kernel::apply`] does steps one by one and stops at the first that fails, naming it. Both work on a
//! current-thread runtime; what must happen inside another namespace happens on a thread made for it.

mod address;
mod apply;
mod capability;
mod connection;
mod copies;
mod filter;
mod inventory;
mod learned;
mod link;
mod message;
mod namespace;
mod notify;
mod observe;
mod read;
mod refresh;
mod route;
mod rule;
mod sysctl;

use std::{collections::BTreeMap, io};

pub use self::{
    capability::Capability,
    connection::RequestError,
    inventory::{Interface, InterfaceState},
    learned::{Announced, Learned},
    notify::Changes,
    refresh::Neighbors,
};
use self::{connection::Connection, namespace::Namespace};
use crate::{Domain, HostAddress, HostRoute, LinkId, Observed, Step};

/// Both namespaces of this node.
///
/// The router's namespace may come and go; it is looked up anew for each observation and each apply, and nothing is held
/// of it in between.
#[derive(Debug)]
pub struct Kernel {
    name: String,
    host: Connection,
    host_namespace: Namespace,
}

/// Why the kernel could not be observed or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host's namespace could not be opened.
    #[error("failed to open the host's network namespace")]
    OpenHost(#[source] io::Error),
    /// The router's namespace could not be opened.
    #[error("failed to open network namespace {name}")]
    OpenNamespace {
        /// Its name.
        name: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The router's namespace could not be made.
    #[error("failed to make network namespace {name}")]
    MakeNamespace {
        /// Its name.
        name: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The router's namespace could not be removed.
    #[error("failed to remove network namespace {name}")]
    RemoveNamespace {
        /// Its name.
        name: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The router's namespace is not there.
    #[error("there is no network namespace {name}")]
    NoNamespace {
        /// Its name.
        name: String,
    },
    /// Objects could not be read.
    #[error("failed to read {what} in {domain}")]
    Read {
        /// What was read.
        what: &'static str,
        /// Where.
        domain: Domain,
        /// What went wrong.
        #[source]
        source: RequestError,
    },
    /// Kernel settings could not be read or written.
    #[error("failed to access kernel settings in {domain}")]
    Sysctl {
        /// Where.
        domain: Domain,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The kernel refused a change.
    #[error("failed to change {domain}")]
    Change {
        /// Where.
        domain: Domain,
        /// What went wrong.
        #[source]
        source: RequestError,
    },
    /// A link that a step needs is not there.
    #[error("there is no link {id}")]
    NoLink {
        /// Which.
        id: LinkId,
    },
    /// A link that should be deleted does not carry our mark.
    #[error("{id} is not ours")]
    NotOurs {
        /// Which.
        id: LinkId,
    },
}

/// The step that failed, and why. The steps before it are done, those after it are not.
#[derive(Debug, thiserror::Error)]
#[error("failed to {step}")]
pub struct ApplyError {
    /// The step.
    pub step: Box<Step>,
    /// How many steps were done before it.
    pub done: usize,
    /// What went wrong.
    #[source]
    pub source: Error,
}

impl Kernel {
    /// Opens the namespace the program runs in, and remembers the name of the router's, which need not exist yet.
    pub fn open(router_namespace: &str) -> Result<Self, Error> {
        Ok(Self {
            name: router_namespace.to_owned(),
            host: Connection::open(Domain::Host).map_err(Error::OpenHost)?,
            host_namespace: Namespace::current().map_err(Error::OpenHost)?,
        })
    }

    /// What both namespaces hold.
    pub async fn observe(&self) -> Result<Observed, Error> {
        observe::observe(self).await
    }

    /// Does the steps in order and stops at the first that fails.
    pub async fn apply(&self, steps: &[Step]) -> Result<(), ApplyError> {
        apply::apply(self, steps).await
    }

    /// Does as many of the steps as can be done, and returns those that failed. What needs a link that could not be made is
    /// left out.
    pub async fn attempt(&self, steps: &[Step]) -> Vec<ApplyError> {
        apply::attempt(self, steps).await
    }

    /// The interfaces of both namespaces, for people and for the control plane; pods' ends are left out.
    pub async fn interfaces(&self) -> Result<Vec<Interface>, Error> {
        inventory::interfaces(self).await
    }

    /// The unicast routes of the host, of any protocol, without those to its own addresses.
    pub async fn host_routes(&self) -> Result<Vec<HostRoute>, Error> {
        inventory::host_routes(self).await
    }

    /// The addresses of links of the host that have more than an address and a length, by link.
    pub async fn host_addresses(&self) -> Result<BTreeMap<String, Vec<HostAddress>>, Error> {
        inventory::host_addresses(self).await
    }

    /// The settings of a link of the host that are not those of a new link, by their paths below `/proc/sys`.
    pub async fn host_settings(&self, link: &str) -> Result<BTreeMap<String, String>, Error> {
        let read = sysctl::of_link(&self.host_namespace, link).await;
        read.map_err(|source| Error::Sysctl {
            domain: Domain::Host,
            source,
        })
    }

    /// The router's namespace and a socket in it, if it exists.
    async fn router(&self) -> Result<Option<(Namespace, Connection)>, Error> {
        let failed = |source| Error::OpenNamespace {
            name: self.name.clone(),
            source,
        };
        let Some(namespace) = Namespace::named(&self.name).map_err(failed)? else {
            return Ok(None);
        };
        let connection = namespace.connect(Domain::Router).await.map_err(failed)?;
        Ok(Some((namespace, connection)))
    }
}
