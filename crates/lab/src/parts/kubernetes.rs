//! The Kubernetes programs: taken from `KUBEBUILDER_ASSETS`, from the cache, or built from a small Go module.
//!
//! No distribution carries kube-apiserver. The Go module proxy carries all of it, at exactly the versions that the
//! module's `go.sum` names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::cache::{self, Cache};
use super::go;
use crate::Progress;
use crate::process::{self, run};

const GO_MOD: &str = include_str!("../../parts/kubernetes/go.mod");
const GO_SUM: &str = include_str!("../../parts/kubernetes/go.sum");
const PINS: &str = include_str!("../../parts/kubernetes/programs.go");

/// Program, Go package, and the name under which the Go tool leaves it. Quick ones first: an early error is a cheap one.
const PROGRAMS: [(&str, &str, &str); 6] = [
    ("etcd", "go.etcd.io/etcd/server/v3", "server"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl", "kubectl"),
    (
        "kube-scheduler",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "kube-scheduler",
    ),
    (
        "kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-controller-manager",
    ),
    (
        "kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-apiserver",
    ),
    ("kubelet", "k8s.io/kubernetes/cmd/kubelet", "kubelet"),
];

/// What can go wrong on the way to the Kubernetes programs.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache could not be used.
    #[error("failed to use the cache")]
    Cache(#[from] cache::Error),
    /// No Go tool is to be had.
    #[error(
        "failed to find a Go toolchain; KUBEBUILDER_ASSETS may name a folder with the programs instead"
    )]
    FindGo(#[from] go::Error),
    /// A file of the build could not be written.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The Go tool was not content.
    #[error(
        "failed to build {program}; is the Go module proxy reachable? `go env GOPROXY` names it"
    )]
    Build {
        /// The program.
        program: &'static str,
        /// What it said.
        #[source]
        source: process::Error,
    },
    /// The version of Kubernetes is not where it should be.
    #[error("go.mod names no version of k8s.io/kubernetes")]
    NoVersion,
}

/// A folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kubelet.
#[derive(Debug, Clone)]
pub struct Kubernetes {
    folder: PathBuf,
}

impl Kubernetes {
    /// Finds or builds the programs.
    pub fn prepare(progress: Progress<'_>) -> Result<Self, Error> {
        if let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
            match PROGRAMS
                .iter()
                .find(|(name, ..)| !folder.join(name).is_file())
            {
                None => return Ok(Self { folder }),
                Some((name, ..)) => progress(&format!(
                    "KUBEBUILDER_ASSETS has no {name}: using programs of our own"
                )),
            }
        }
        let folder = Cache::of_user()?.entry("kubernetes", &[GO_MOD, GO_SUM], |folder, _| {
            build(folder, progress)
        })?;
        Ok(Self { folder })
    }

    /// Where a program is.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn build(folder: &Path, progress: Progress<'_>) -> Result<(), Error> {
    let start = Instant::now();
    let module = folder.join("module");
    let write = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    fs::create_dir(&module).map_err(write(&module))?;
    for (name, text) in [
        ("go.mod", GO_MOD),
        ("go.sum", GO_SUM),
        ("programs.go", PINS),
    ] {
        fs::write(module.join(name), text).map_err(write(&module.join(name)))?;
    }
    let go = go::tool(&module, progress)?;
    let flags = linker_flags()?;
    for (index, (program, package, left_as)) in PROGRAMS.into_iter().enumerate() {
        progress(&format!(
            "building {program} ({} of {}, {} s so far; once, about seven minutes in all)",
            index + 1,
            PROGRAMS.len(),
            start.elapsed().as_secs()
        ));
        run(Command::new(&go)
            .current_dir(&module)
            .envs([
                ("CGO_ENABLED", "0"),
                ("GOTOOLCHAIN", "auto"),
                ("GOFLAGS", ""),
                ("GOWORK", "off"),
            ])
            .env("GOCACHE", module.join("cache"))
            .args(["build", "-trimpath", "-ldflags", &flags, "-o"])
            .arg(format!("{}/", folder.display()))
            .arg(package))
        .map_err(|source| Error::Build { program, source })?;
        let place = folder.join(program);
        fs::rename(folder.join(left_as), &place).map_err(write(&place))?;
    }
    // The build cache has grown to gigabytes and would never be used again.
    fs::remove_dir_all(&module).map_err(write(&module))?;
    progress(&format!(
        "built the Kubernetes programs in {} s",
        start.elapsed().as_secs()
    ));
    Ok(())
}

/// Without these the server calls itself v0.0.0 and takes its feature gates from there.
fn linker_flags() -> Result<String, Error> {
    let version = GO_MOD
        .lines()
        .find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "))
        .ok_or(Error::NoVersion)?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next(), numbers.next());
    let (major, minor) = major.zip(minor).ok_or(Error::NoVersion)?;
    let set = |name: &str, value: &str| format!("-X k8s.io/component-base/version.{name}={value}");
    Ok([
        "-s -w".to_owned(),
        set("gitVersion", version),
        set("gitMajor", major),
        set("gitMinor", minor),
    ]
    .join(" "))
}
