//! Ring 1, plans: what a cluster does with a change beside its nodes, and what it does not take.

use crate::ring1_plan::{CLUSTER, planned, table};

#[test]
fn a_field_that_cannot_be_changed_is_refused_as_the_api_server_does_it() -> anyhow::Result<()> {
    for (from, to, said) in [
        (
            "interfaceName: a, nodeIPs",
            "interfaceName: other, nodeIPs",
            "Layer2Attachment a spec: interfaceName cannot be set, changed or removed after creation",
        ),
        (
            "interfaceName: a, nodeIPs",
            "interfaceName: a, sriov: {enabled: true}, nodeIPs",
            "Layer2Attachment a spec: sriov.enabled cannot be changed after creation",
        ),
        (
            "spec: {vrf: m2m,",
            "spec: {vrf: other,",
            "VRF m2m spec: vrf cannot be changed; create another VRF object",
        ),
    ] {
        let edited = CLUSTER.replacen(from, to, 1);
        anyhow::ensure!(edited != CLUSTER, "{from} is there");
        let (text, is_fine) = table(CLUSTER, &edited)?;
        assert!(text.contains(said) && !is_fine, "{to}: {text}");
        assert!(text.contains("nothing changes on any node"), "{to}: {text}");
    }
    let (text, is_fine) = table(CLUSTER, CLUSTER)?;
    assert!(is_fine, "{text}");
    Ok(())
}

#[test]
fn a_plan_names_objects_of_other_programs() -> anyhow::Result<()> {
    let deleted: Vec<&str> = CLUSTER.split("\n---\n").collect();
    let (_, deleted) = deleted
        .split_last()
        .ok_or_else(|| anyhow::anyhow!("no document"))?;
    let (text, _) = table(CLUSTER, &deleted.join("\n---\n"))?;
    let said = "platform 2 to delete: BGPAdvertisement metallb-system/web, IPAddressPool metallb-system/web\n";
    assert!(text.contains(said), "{text}");
    let edited = CLUSTER.replace("count: 2", "count: 3");
    let (text, _) = table(CLUSTER, &edited)?;
    let said = "platform 1 to change: IPAddressPool metallb-system/web\n";
    assert!(text.contains(said), "{text}");
    let plan = planned(CLUSTER, &edited)?;
    let pool = serde_json::json!([{
        "apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool", "namespace": "metallb-system", "name": "web",
    }]);
    assert_eq!(plan["platform"]["changed"], pool, "{plan:#}");
    // What runs for an Inbound that something is wrong with stays.
    let broken = CLUSTER.replace("{networkRef: a-net, count", "{networkRef: typo, count");
    let (text, _) = table(CLUSTER, &broken)?;
    assert!(!text.contains("platform"), "{text}");
    Ok(())
}

#[test]
fn a_plan_says_why_a_rollout_waits() -> anyhow::Result<()> {
    let settings = |rollout: &str| {
        format!(
            "{CLUSTER}---\napiVersion: selvedge.dev/v1alpha1\nkind: Settings\nmetadata: {{name: default}}\nspec: {{rollout: {rollout}}}\n"
        )
    };
    for (rollout, said) in [
        ("{pause: true}", "paused by Settings.spec.rollout.pause"),
        (
            "{canary: {nodeSelector: {matchLabels: {no: such}}}}",
            "Settings.spec.rollout.canary.nodeSelector matches no node that changes",
        ),
        (
            "{maxRemoval: 0}",
            "it removes 1 of 1 layer 2 segments; rollout.maxRemoval allows 0: no node is written before approval",
        ),
    ] {
        let running = settings(rollout);
        let segment = "kind: Layer2Attachment\nmetadata: {name: a}";
        let documents = running.split("\n---\n");
        let rest: Vec<&str> = documents.filter(|one| !one.contains(segment)).collect();
        let (text, _) = table(&running, &rest.join("\n---\n"))?;
        assert!(text.contains(said), "{text}");
    }
    Ok(())
}

#[test]
fn a_plan_shows_what_is_different_in_a_list() -> anyhow::Result<()> {
    let trunk = |address: &str| {
        format!(
            "{CLUSTER}---\napiVersion: selvedge.dev/v1alpha1\nkind: Settings\nmetadata: {{name: default}}\nspec: {{trunk: {{addresses: [{address}, \"fd00:100::/127\"]}}}}\n"
        )
    };
    let (text, _) = table(&trunk("169.254.100.0/31"), &trunk("169.254.101.0/31"))?;
    let said = "trunk hostAddresses -169.254.100.0/31, +169.254.101.0/31";
    assert!(text.contains(said), "{text}");
    Ok(())
}

#[test]
fn renaming_an_underlay_waits_for_no_wave() -> anyhow::Result<()> {
    for (from, to) in [
        ("{name: fabric, namespace", "{name: renamed, namespace"),
        ("namespace: selvedge-system", "namespace: elsewhere"),
    ] {
        let renamed = CLUSTER.replacen(from, to, 1);
        anyhow::ensure!(renamed != CLUSTER, "{from} is there");
        let plan = planned(CLUSTER, &renamed)?;
        assert_eq!(plan["waves"], serde_json::json!([]), "{to}: {plan:#}");
        let all = serde_json::json!(["n1", "n2", "n3"]);
        assert_eq!(plan["atOnce"], all, "{to}: {plan:#}");
        let (text, _) = table(CLUSTER, &renamed)?;
        let said = "disrupts nothing that runs (none)\nrollout  no waves: forwarding does not change; written at once\n";
        assert!(text.contains(said), "{to}: {text}");
    }
    Ok(())
}
