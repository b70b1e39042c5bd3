//! What must be had before anything starts: Kubernetes programs, definitions of Cluster API, Debian trees, mdbook, programs of this machine.
//!
//! Each part is found, fetched or built by itself and kept in the user's cache directory. A part that cannot be had is
//! an error that says how to provide it; nothing is ever skipped.

mod cache;
mod cluster_api;
mod go;
mod kubernetes;
mod mdbook;
mod packages;
mod tree;

pub use cache::{Cache, Error as CacheError};
pub use cluster_api::{ClusterApi, Error as ClusterApiError, Version as ClusterApiVersion};
pub use go::Error as GoError;
pub use kubernetes::{Error as KubernetesError, Kubernetes};
pub use mdbook::{Error as MdbookError, Mdbook};
pub use packages::Error as PackagesError;
pub use tree::{Error as TreeError, Release, Tree};

use crate::Progress;

/// What the lab calls on this machine, besides the util-linux that every Linux has.
const PROGRAMS: [packages::Needed; 3] = [
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("openssl", "openssl"),
];

/// Makes sure that this machine has the programs that a control plane and a fabric are started with.
pub fn prepare_machine(progress: Progress<'_>) -> Result<(), PackagesError> {
    packages::ensure(&PROGRAMS, progress)
}
