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
  + VRF m2m_enc takes 198.51.100.0/26 from cluster                    Layer2Attachment sensors (destinations networkRef), Network sensors-net (ipv4.cidr) and 2 more
  + VRF m2m_enc announces 198.51.100.0/26                             Layer2Attachment sensors (destinations networkRef), Network sensors-net (ipv4.cidr) and 2 more
  + traffic from 198.51.100.0/26 to anywhere is routed by s-m2m_enc   Layer2Attachment sensors (destinations networkRef), Destination meters (prefixes prefixes[0] vrfRef) and 5 more
  + VLAN 235                                                          Layer2Attachment sensors (networkRef), Network sensors-net (vlan vni)
  ~ VLAN 300: mtu 9000 → 8000                                         Layer2Attachment shop (mtu networkRef nodeSelector), Network web-net (vlan vni)
  + VLAN 235 gateway                                                  Layer2Attachment sensors (destinations networkRef), Network sensors-net (ipv4.cidr vlan) and 2 more
  + VLAN 235 interface l2.sensors                                     Layer2Attachment sensors (interfaceName networkRef), Network sensors-net (vlan)

6 to add, 1 to change, 0 to remove
touches  1 of 3 nodes; 2 intents: Layer2Attachment sensors, Layer2Attachment shop
rollout  1 wave: worker-3
"
    );
    let exact = selvedge(&["plan", "-f", &before, "--to", &after, "-o", "json"], "")?;
    let exact: serde_json::Value = serde_json::from_slice(&exact.stdout)?;
    let plan = &exact[0];
    assert_eq!(
        plan["total"],
        serde_json::json!({"added": 6, "changed": 1, "removed": 0})
    );
    assert_eq!(plan["radius"]["nodes"], 1);
    assert_eq!(plan["waves"], serde_json::json!([["worker-3"]]));
    let changes = plan["groups"][0]["changes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let mtu = changes.iter().find(|change| change["change"] == "changed");
    let mtu = mtu.ok_or_else(|| anyhow::anyhow!("nothing is changed"))?;
    assert_eq!(
        mtu["element"],
        serde_json::json!({"kind": "segment", "vlan": 300})
    );
    assert_eq!(
        (&mtu["was"]["mtu"], &mtu["becomes"]["mtu"]),
        (&9000.into(), &8000.into())
    );
    let fields = mtu["behind"][0]["fields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let field = serde_json::json!({"object": "Layer2Attachment/shop", "field": "spec.mtu"});
    assert!(fields.contains(&field), "{fields:?}");
    let same = selvedge(&["plan", "-f", &before, "--to", &before], "")?;
    assert_eq!(
        String::from_utf8(same.stdout)?,
        "nothing changes on any node\n"
    );
    Ok(())
}
