//! Ring 4, a node without a cluster: it is kept at what files say.

use std::time::Duration;

use anyhow::Context as _;
use lab::fabric::Fabric;

use crate::{
    ring4::{Node, config},
    ring4_safety::{NODE, is_at},
    support::repository,
};

const PATIENCE: Duration = Duration::from_mins(1);
/// The example's neighbor is not the lab's leaf: sessions are for the tests that are about them.
const SETTINGS: &str = "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec: {health: {sessions: false, confirmDeadline: 30s}}
";

#[test]
fn a_node_is_kept_at_what_its_files_say() -> anyhow::Result<()> {
    let node = Node::start()?;
    let space = node.fabric.at(NODE)?;
    let example = std::fs::read_to_string(repository("examples/two-tenants.yaml"))?;
    let (shop, rest): (Vec<&str>, Vec<&str>) = example.split("---\n").partition(|document| {
        document.contains("kind: Layer2Attachment") && document.contains("{name: shop}")
    });
    space.script("mkdir -p /run/manifests")?;
    space.write("/run/manifests/settings.yaml", SETTINGS)?;
    space.write("/run/manifests/rest.yaml", &rest.join("---\n"))?;
    let agent = [
        "/share/selvedge",
        "agent",
        "--node",
        NODE,
        "--manifests",
        "/run/manifests",
    ];
    let agent = space.start(&agent)?;
    let (all, less) = (config(&[])?, config(&["shop"])?);
    is_at(&node, &less).with_context(|| agent.stderr())?;

    space.write("/run/manifests/shop.yaml", &shop.concat())?;
    is_at(&node, &all).with_context(|| agent.stderr())?;

    // With a mistake in any file the node stays as it is, and says why.
    space.write("/run/manifests/shop.yaml", "kind: [")?;
    let complains = Fabric::eventually(PATIENCE, || {
        agent.stderr().contains("shop.yaml").then_some(())
    });
    complains.context("the mistake is not in the log")?;
    std::thread::sleep(Duration::from_secs(3));
    is_at(&node, &all)?;
    // It is still kept at that state.
    space.script("ip -n selvedge link delete vx.10300")?;
    is_at(&node, &all)?;

    space.script("rm /run/manifests/shop.yaml")?;
    is_at(&node, &less).with_context(|| agent.stderr())
}
