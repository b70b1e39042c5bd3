//! Ring 1, plans: what a person reads before a change.

use std::{fs, io::Write as _};

use crate::support::{repository, selvedge};

#[test]
fn a_plan_says_what_changes_where_and_who_is_behind_it() -> anyhow::Result<()> {
    let example = fs::read_to_string(repository("examples/two-tenants.yaml"))?;
    let everywhere = "  destinations: {matchLabels: {zone: secure}}\n  nodeSelector: {matchLabels: {workers: blue}}";
    anyhow::ensure!(
        example.contains(everywhere) && example.contains("mtu: 9000"),
        "the example has changed"
    );
    let changed = example
        .replace(everywhere, "  destinations: {matchLabels: {zone: secure}}")
        .replace("mtu: 9000", "mtu: 8000");
    let mut after = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    after.write_all(changed.as_bytes())?;
    let after = after.path().display().to_string();
    let before = repository("examples/two-tenants.yaml")
        .display()
        .to_string();

    let output = selvedge(&["plan", "-f", &before, "--to", &after], "")?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8(output.stdout)?,
        "worker-3
  + VRF m2m_enc takes 198.51.100.0/26 from cluster   Layer2Attachment sensors
  + VRF m2m_enc announces 198.51.100.0/26   Layer2Attachment sensors
  + traffic from 198.51.100.0/26 to anywhere is routed by s-m2m_enc   Layer2Attachment sensors
  + VLAN 235   Layer2Attachment sensors
  ~ VLAN 300   Layer2Attachment shop
  + VLAN 235 gateway   Layer2Attachment sensors
  + VLAN 235 interface l2.sensors   Layer2Attachment sensors

6 to add, 1 to change, 0 to remove, on 1 of 3 nodes, one node after another
behind it: Layer2Attachment sensors, Layer2Attachment shop
"
    );
    let same = selvedge(&["plan", "-f", &before, "--to", &before], "")?;
    assert_eq!(
        String::from_utf8(same.stdout)?,
        "nothing changes on any node\n"
    );
    Ok(())
}
