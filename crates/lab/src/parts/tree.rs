//! Debian trees: what guests boot from, and where each supported version of FRR lives.
//!
//! Nothing of FRR is installed on the machine itself: its package would start daemons there.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::cache::{self, Cache};
use super::packages::{self, Needed};
use crate::Progress;
use crate::process::{self, line, run};

/// What a tree is made with. A change here makes new trees.
const PROGRAMS: [Needed; 2] = [("debootstrap", "debootstrap"), ("patchelf", "patchelf")];
const NETWORK: &str = "frr iproute2 iputils-ping kmod procps tcpdump ethtool";
const KERNEL: &str = "user-mode-linux";
const CONTAINERS: &str = "runc containerd containernetworking-plugins";

/// The first program of a guest: it only brings in what the lab handed over, so that trees need not change with the lab.
/// Newer mount programs know hostfs's option by name, older kernels only take the bare path.
const INIT: &str = r#"#!/bin/sh
mount -t hostfs none /share -o "hostfs=$share" || mount -t hostfs none /share -o "$share"
exec /bin/bash /share/init
"#;

/// No daemon is started while packages are installed.
const POLICY: &str = "#!/bin/sh\nexit 101\n";

/// Places in the read-only tree on which the lab mounts something.
const MOUNT_POINTS: [&str; 8] = [
    "share",
    "lab",
    "usr/lib/modules",
    "var/lib/frr",
    "var/lib/selvedge",
    "etc/selvedge",
    "etc/cni",
    "opt/cni",
];

/// A release of Debian, and with it a version of FRR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Release {
    /// FRR 8.4, the oldest supported; without a kernel of its own.
    Bookworm,
    /// FRR 10.3, and user-mode-linux 6.12.
    Trixie,
    /// FRR 10.7, user-mode-linux 7.2 and containerd: what guests run.
    Forky,
}

impl Release {
    /// Every release, oldest FRR first.
    pub const ALL: [Self; 3] = [Self::Bookworm, Self::Trixie, Self::Forky];

    /// The version of FRR that it carries.
    pub fn frr_version(self) -> &'static str {
        match self {
            Self::Bookworm => "8.4",
            Self::Trixie => "10.3",
            Self::Forky => "10.7",
        }
    }

    fn packages(self) -> String {
        match self {
            Self::Bookworm => format!("{NETWORK} frr-pythontools"),
            Self::Trixie => format!("{NETWORK} {KERNEL}"),
            Self::Forky => format!("{NETWORK} {KERNEL} {CONTAINERS}"),
        }
    }

    /// The debootstrap script: older debootstraps know no `forky`, and sid's script does it.
    fn script(self) -> &'static str {
        match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
            Self::Forky => "sid",
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bookworm => "bookworm",
            Self::Trixie => "trixie",
            Self::Forky => "forky",
        })
    }
}

/// What can go wrong on the way to a tree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The cache could not be used.
    #[error("failed to use the cache")]
    Cache(#[from] cache::Error),
    /// This machine lacks programs.
    #[error("failed to get the programs that make a tree")]
    Packages(#[from] packages::Error),
    /// A step of making the tree was not content.
    #[error("failed to {step} for the Debian tree {release}; is a Debian mirror reachable?")]
    Make {
        /// The step.
        step: &'static str,
        /// The tree.
        release: Release,
        /// What the program said.
        #[source]
        source: process::Error,
    },
    /// A file of the tree could not be touched.
    #[error("failed to {what} {}", path.display())]
    File {
        /// The operation.
        what: &'static str,
        /// Its object.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The grammar check itself did not run.
    #[error("failed to run vtysh of the Debian tree {release}")]
    Check {
        /// The tree.
        release: Release,
        /// What the program said.
        #[source]
        source: process::Error,
    },
}

/// A Debian tree with FRR; from [`Release::Trixie`] on also with a user-mode-linux kernel.
#[derive(Debug, Clone)]
pub struct Tree {
    release: Release,
    root: PathBuf,
    /// The tree that has the guest kernel: this one, or another.
    kernel: PathBuf,
}

impl Tree {
    /// Finds or makes the tree of a release.
    pub fn prepare(release: Release, progress: Progress<'_>) -> Result<Self, Error> {
        let packages = release.packages();
        let recipe = [release.script(), &packages, INIT, &MOUNT_POINTS.join(" ")];
        let root =
            Cache::of_user()?.entry(&format!("tree-{release}"), &recipe, |folder, place| {
                make(release, folder, place, progress)
            })?;
        let kernel = root.clone();
        Ok(Self {
            release,
            root,
            kernel,
        })
    }

    /// The tree of a release as guests boot it: one without a kernel gets that of the newest. There is no fallback: a test
    /// names the version of FRR that it is about.
    pub fn for_guests_of(release: Release, progress: Progress<'_>) -> Result<Self, Error> {
        let tree = Self::prepare(release, progress)?;
        match release {
            Release::Trixie | Release::Forky => Ok(tree),
            Release::Bookworm => {
                let Self { kernel, .. } = Self::prepare(Release::Forky, progress)?;
                Ok(Self { kernel, ..tree })
            }
        }
    }

    /// The tree that guests boot from, with the newest FRR.
    pub fn for_guests(progress: Progress<'_>) -> Result<Self, Error> {
        Self::for_guests_of(Release::Forky, progress)
    }

    /// Where the tree is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The release that it is a tree of.
    pub fn release(&self) -> Release {
        self.release
    }

    /// The guest kernel, made runnable from outside the tree.
    pub fn kernel(&self) -> PathBuf {
        self.kernel.join("lab/linux")
    }

    /// The modules of the guest kernel.
    pub fn modules(&self) -> PathBuf {
        self.kernel.join("usr/lib/uml/modules")
    }

    /// Asks this version of FRR whether it takes a configuration: its complaints, none when it does.
    pub fn complaints(&self, frr_conf: &str) -> Result<Vec<String>, Error> {
        let file = |what| {
            move |source| Error::File {
                what,
                path: self.root.join("tmp"),
                source,
            }
        };
        let mut conf = tempfile::Builder::new()
            .prefix("frr-conf-")
            .tempfile_in(self.root.join("tmp"))
            .map_err(file("create a file in"))?;
        conf.write_all(frr_conf.as_bytes())
            .map_err(file("write a file in"))?;
        let mut command = if rustix::process::geteuid().is_root() {
            Command::new("chroot")
        } else {
            let mut unshare = Command::new("unshare");
            unshare.args(["--user", "--map-root-user", "chroot"]);
            unshare
        };
        let inside = Path::new("/tmp").join(conf.path().file_name().unwrap_or_default());
        command
            .arg(&self.root)
            .args(["/usr/bin/vtysh", "-C", "-f"])
            .arg(inside);
        let ask = |source| Error::Check {
            release: self.release,
            source,
        };
        let output = command.output().map_err(|source| {
            ask(process::Error::Start {
                command: line(&command),
                source,
            })
        })?;
        // vtysh ends with 2 after a line it does not know; anything else that is not 0 is not an answer.
        if output.status.code() != Some(2) {
            process::checked(&command, &output).map_err(ask)?;
            return Ok(Vec::new());
        }
        let said = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&said)
            .lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect())
    }
}

fn make(
    release: Release,
    folder: &Path,
    place: &Path,
    progress: Progress<'_>,
) -> Result<(), Error> {
    packages::ensure(&PROGRAMS, progress)?;
    let start = Instant::now();
    progress(&format!(
        "making the Debian tree {release} (once, one or two minutes)"
    ));
    let step = |step| {
        move |source| Error::Make {
            step,
            release,
            source,
        }
    };
    // What they mount in the tree goes with them, also when they are killed half-way.
    let apart = || {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "--"]);
        command
    };
    run(apart()
        .args(["debootstrap", "--variant=minbase", &release.to_string()])
        .arg(folder)
        .arg("")
        .arg(format!(
            "/usr/share/debootstrap/scripts/{}",
            release.script()
        )))
    .map_err(step("debootstrap"))?;
    write(&folder.join("usr/sbin/policy-rc.d"), POLICY)?;
    let apt = |arguments: &[&str]| {
        run(apart()
            .arg("chroot")
            .arg(folder)
            .args([
                "env",
                "DEBIAN_FRONTEND=noninteractive",
                "LC_ALL=C",
                "apt-get",
                "--yes",
                "--quiet",
            ])
            .args(arguments))
    };
    // debootstrap has just left the package lists. Fetching them again would bring nothing, and fail where a mirror's
    // list of a moving release is past its date.
    let packages = release.packages();
    progress(&format!("installing in {release}: {packages}"));
    let mut install = vec!["install", "--no-install-recommends"];
    install.extend(packages.split(' '));
    apt(&install).map_err(step("install packages"))?;
    apt(&["clean"]).map_err(step("clean up"))?;
    for point in MOUNT_POINTS {
        create_dir(&folder.join(point))?;
    }
    write(&folder.join("lab/init"), INIT)?;
    if packages.contains(KERNEL) {
        kernel(release, folder, place)?;
    }
    progress(&format!(
        "made the Debian tree {release} in {} s",
        start.elapsed().as_secs()
    ));
    Ok(())
}

/// Puts the modules where modprobe looks for them, and makes a copy of the kernel that finds the tree's own libc.
fn kernel(release: Release, folder: &Path, place: &Path) -> Result<(), Error> {
    let at = |what, path: &Path| {
        let path = path.to_owned();
        move |source| Error::File { what, path, source }
    };
    let modules = folder.join("usr/lib/uml/modules");
    for version in fs::read_dir(&modules).map_err(at("list", &modules))? {
        let name = version.map_err(at("list", &modules))?.file_name();
        create_dir(&folder.join("lib/modules"))?;
        let link = folder.join("lib/modules").join(&name);
        let target = Path::new("/usr/lib/uml/modules").join(&name);
        symlink(target, &link).map_err(at("link", &link))?;
    }
    let kernel = folder.join("lab/linux");
    fs::copy(folder.join("usr/bin/linux.uml"), &kernel)
        .map_err(at("copy the kernel to", &kernel))?;
    run(Command::new("patchelf")
        .arg("--set-interpreter")
        .arg(place.join("lib64/ld-linux-x86-64.so.2"))
        .arg("--set-rpath")
        .arg(place.join("lib/x86_64-linux-gnu"))
        .arg(&kernel))
    .map_err(|source| Error::Make {
        step: "patch the kernel",
        release,
        source,
    })?;
    Ok(())
}

fn create_dir(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| Error::File {
        what: "create",
        path: path.to_owned(),
        source,
    })
}

fn write(path: &Path, script: &str) -> Result<(), Error> {
    fs::write(path, script)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(|source| Error::File {
            what: "write",
            path: path.to_owned(),
            source,
        })
}
