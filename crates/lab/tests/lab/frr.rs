//! Every supported version of FRR is there, and is what it says it is.

use selvedge_lab::parts::{Release, Tree};

use crate::progress;

#[test]
fn each_version_of_frr_knows_its_grammar() -> anyhow::Result<()> {
    for release in Release::ALL {
        let tree = Tree::prepare(release, &progress)?;
        let good =
            tree.complaints("router bgp 64512\n neighbor 192.0.2.1 remote-as 64513\nexit\n")?;
        assert_eq!(good, Vec::<String>::new(), "{release}");
        let bad =
            tree.complaints("router bgp 64512\n neighbor nonsense of the worst kind\nexit\n")?;
        assert!(
            bad.iter().any(|line| line.contains("nonsense")),
            "{release}: {bad:?}"
        );
    }
    Ok(())
}

#[test]
fn the_fabric_speaks_what_its_routers_understand() -> anyhow::Result<()> {
    let plan = crate::fabric::two_leaves()?.spine("spine1", 64500);
    for release in [Release::Trixie, Release::Forky] {
        let tree = Tree::prepare(release, &progress)?;
        for router in plan.topology().routers() {
            let text = plan.topology().frr_conf(&router);
            assert_eq!(
                tree.complaints(&text)?,
                Vec::<String>::new(),
                "{release}: {text}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_newer_word_is_refused_by_the_older_version() -> anyhow::Result<()> {
    let text = "router bgp 64512\n neighbor 192.0.2.1 remote-as auto\nexit\n";
    assert!(
        !Tree::prepare(Release::Bookworm, &progress)?
            .complaints(text)?
            .is_empty()
    );
    assert!(
        Tree::prepare(Release::Forky, &progress)?
            .complaints(text)?
            .is_empty()
    );
    Ok(())
}
