//! The definitions of Cluster API's IPAM kinds, as two of its releases have them: one that serves v1beta1, and one that serves v1beta2 as well.
//!
//! They are in Cluster API's Go module. Its hash is written down here, so that no service has to vouch for it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::cache::{self, Cache};
use super::go;
use crate::Progress;
use crate::process::{self, run};

const MODULE: &str = "sigs.k8s.io/cluster-api";

/// What the Go tool needs to work in a folder.
const GO_MOD: &str = "module selvedge.dev/lab/cluster-api\n\ngo 1.26.0\n";

/// The files of the definitions.
const FILES: [&str; 2] = [
    "ipam.cluster.x-k8s.io_ipaddressclaims.yaml",
    "ipam.cluster.x-k8s.io_ipaddresses.yaml",
];

/// The newest version of the IPAM kinds that a release serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `ipam.cluster.x-k8s.io/v1beta1`.
    V1Beta1,
    /// `ipam.cluster.x-k8s.io/v1beta2`; v1beta1 is served as well.
    V1Beta2,
}

/// A release of Cluster API.
struct Release {
    version: &'static str,
    /// Hash of the module, as in a `go.sum`.
    sum: &'static str,
    /// Where the definitions are in it.
    folder: &'static str,
}

impl Version {
    const fn release(self) -> Release {
        match self {
            Self::V1Beta1 => Release {
                version: "v1.10.9",
                sum: "h1:6vjjs4a8kF5oP+t6JqHGDIjyP36ZLgqAU+8EVGjmPyE=",
                folder: "config/crd/bases",
            },
            Self::V1Beta2 => Release {
                version: "v1.14.2",
                sum: "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
                folder: "core/config/crd/bases",
            },
        }
    }
}

/// What can go wrong on the way to the definitions.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache could not be used.
    #[error("failed to use the cache")]
    Cache(#[from] cache::Error),
    /// No Go tool is to be had.
    #[error("failed to find a Go toolchain")]
    FindGo(#[from] go::Error),
    /// The module could not be fetched.
    #[error(
        "failed to fetch {MODULE} {version}; is the Go module proxy reachable? `go env GOPROXY` names it"
    )]
    Fetch {
        /// The release.
        version: &'static str,
        /// What the Go tool said.
        #[source]
        source: process::Error,
    },
    /// The module is not the one that was released.
    #[error("{MODULE} {version} has the hash {found:?} instead of {expected:?}")]
    Hash {
        /// The release.
        version: &'static str,
        /// Hash of what was fetched.
        found: String,
        /// Hash of the release.
        expected: &'static str,
    },
    /// A file could not be read or written.
    #[error("failed to use {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// The definitions of the IPAM kinds of one release.
#[derive(Debug, Clone)]
pub struct ClusterApi {
    folder: PathBuf,
}

impl ClusterApi {
    /// Finds or fetches the definitions.
    pub fn prepare(version: Version, progress: Progress<'_>) -> Result<Self, Error> {
        let release = version.release();
        let recipe = [release.version, release.sum, release.folder];
        let name = format!("cluster-api-{}", release.version);
        let folder = Cache::of_user()?.entry(&name, &recipe, |folder, _| {
            fetch(&release, folder, progress)
        })?;
        Ok(Self { folder })
    }

    /// The definitions of `IPAddressClaim` and `IPAddress`, as YAML documents.
    pub fn definitions(&self) -> Result<String, Error> {
        let read = |name: &str| {
            let path = self.folder.join(name);
            fs::read_to_string(&path).map_err(|source| Error::File { path, source })
        };
        let documents: Result<Vec<String>, Error> = FILES.into_iter().map(read).collect();
        Ok(documents?.join("\n---\n"))
    }
}

fn fetch(release: &Release, folder: &Path, progress: Progress<'_>) -> Result<(), Error> {
    let &Release {
        version,
        sum,
        folder: place,
    } = release;
    progress(&format!("fetching {MODULE} {version} (once)"));
    let work = folder.join("module");
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { path, source }
    };
    fs::create_dir(&work).map_err(file(&work))?;
    let go_mod = work.join("go.mod");
    fs::write(&go_mod, GO_MOD).map_err(file(&go_mod))?;
    let go = go::tool(&work, progress)?;
    let answer = run(Command::new(&go)
        .current_dir(&work)
        .env("GOMODCACHE", work.join("cache"))
        .envs([
            ("GOTOOLCHAIN", "auto"),
            ("GOFLAGS", "-modcacherw"),
            ("GOWORK", "off"),
            ("GOSUMDB", "off"),
        ])
        .args(["mod", "download", "-json"])
        .arg(format!("{MODULE}@{version}")))
    .map_err(|source| Error::Fetch { version, source })?;
    let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
    let text = |field: &str| {
        answer
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("Sum") != sum {
        return Err(Error::Hash {
            version,
            found: text("Sum").to_owned(),
            expected: sum,
        });
    }
    for name in FILES {
        let from = Path::new(text("Dir")).join(place).join(name);
        fs::copy(&from, folder.join(name)).map_err(file(&from))?;
    }
    fs::remove_dir_all(&work).map_err(file(&work))
}
