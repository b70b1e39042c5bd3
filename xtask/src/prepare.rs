//! `cargo xtask prepare`: everything that the tests run, fetched or built once and kept in the user's cache directory.

use std::time::Instant;

use anyhow::Context as _;
use lab::parts::{self, ClusterApi, ClusterApiVersion, Kubernetes, Mdbook, Release, Tree};

use crate::output::line;

/// Prepares all parts and prints what is where.
pub(crate) fn run() -> anyhow::Result<()> {
    let start = Instant::now();
    let progress = |text: &str| line(&format!("{:>5} s  {text}", start.elapsed().as_secs()));
    parts::prepare_machine(&progress).context("programs of this machine")?;
    // Guests fall back to an older release where the newest cannot be had; the others have no substitute.
    let trees = [
        Tree::prepare(Release::Bookworm, &progress),
        Tree::prepare(Release::Trixie, &progress),
        Tree::for_guests(&progress),
    ];
    for tree in trees {
        let tree = tree.context("Debian trees")?;
        let complaints = tree.complaints("hostname prepared\n").context("FRR")?;
        anyhow::ensure!(
            complaints.is_empty(),
            "FRR refuses a host name: {complaints:?}"
        );
        let version = tree.release().frr_version();
        progress(&format!("FRR {version} in {}", tree.root().display()));
    }
    let kubernetes = Kubernetes::prepare(&progress).context("Kubernetes programs")?;
    progress(&format!(
        "Kubernetes in {}",
        kubernetes.program("").display()
    ));
    for version in [ClusterApiVersion::V1Beta1, ClusterApiVersion::V1Beta2] {
        ClusterApi::prepare(version, &progress).context("definitions of Cluster API")?;
    }
    let mdbook = Mdbook::prepare(&progress).context("mdbook")?;
    progress(&format!("mdbook in {}", mdbook.program().display()));
    Ok(())
}
