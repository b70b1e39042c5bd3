//! Ring 3, FRR: every configuration that we print is taken by every version of FRR that we print it for.

use std::fs;

use lab::parts::{self, Release, Tree};

use crate::support::{progress, repository};

#[test]
fn frr_accepts_every_golden_of_its_version() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    let goldens = goldens()?;
    let mut checked = 0;
    for release in Release::ALL {
        let tree = Tree::prepare(release, &progress)?;
        let version = release.frr_version();
        let of_version: Vec<_> = goldens
            .iter()
            .filter(|golden| golden.version == version)
            .collect();
        assert!(
            !of_version.is_empty(),
            "there is no golden for FRR {version}"
        );
        for golden in of_version {
            let complaints = tree.complaints(&golden.text)?;
            assert!(
                complaints.is_empty(),
                "FRR {version} refuses {}: {complaints:#?}",
                golden.name
            );
            checked += 1;
        }
        let complaints =
            tree.complaints("router bgp 64512\n neighbour 192.0.2.1 remote-as 64513\n")?;
        assert!(
            !complaints.is_empty(),
            "FRR {version} takes a line that is none: the check checks nothing"
        );
    }
    eprintln!("FRR accepts {checked} configurations");
    Ok(())
}

struct Golden {
    name: String,
    version: &'static str,
    text: String,
}

/// Configurations of the grammar's own tests and of the stories; their names end in `-<version>.conf` or are of the newest.
fn goldens() -> anyhow::Result<Vec<Golden>> {
    let mut goldens = Vec::new();
    let versions = Release::ALL.map(Release::frr_version);
    let newest = Release::Forky.frr_version();
    let mut folders = vec![
        repository("crates/frr/tests/goldens"),
        repository("crates/frr/tests/host"),
        repository("tests/cases"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.display().to_string();
            let Some(stem) = name.strip_suffix(".conf") else {
                continue;
            };
            let version = versions
                .into_iter()
                .find(|version| stem.ends_with(version))
                .unwrap_or(newest);
            goldens.push(Golden {
                text: fs::read_to_string(&path)?,
                name,
                version,
            });
        }
    }
    Ok(goldens)
}
