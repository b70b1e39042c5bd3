//! Commands that read a cluster, against a real API server with the operator. No agent runs: the test answers for the nodes.

use super::cluster::{Cluster, SENSORS, SENSORS_NET, with_cluster};
use crate::support::selvedge;

/// Runs a command on the cluster; its exit code and all it says.
fn run(cluster: &Cluster<'_>, arguments: &[&str], stdin: &str) -> anyhow::Result<(i32, String)> {
    let kubeconfig = cluster.server.plane.kubeconfig("admin")?;
    let kubeconfig = kubeconfig.display().to_string();
    let mut all = arguments.to_vec();
    all.extend(["--kubeconfig", &kubeconfig]);
    let output = selvedge(&all, stdin)?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.code().unwrap_or(-1), String::from_utf8(text)?))
}

#[test]
fn offline_commands_read_a_cluster_and_what_would_be_applied_to_it() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.roll_out(&["n1", "n2"])?;
        let (code, text) = run(cluster, &["validate"], "")?;
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("valid"), "{text}");
        let (code, text) = run(cluster, &["explain", "--node", "n1", "vrf m2m"], "")?;
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("Layer2Attachment billing"), "{text}");

        // What has been rolled out already is no change.
        let network = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: billing-net}
spec: {ipv4: {cidr: 198.51.100.128/25}, vlan: VLAN, vni: 10234}
";
        let same = network.replace("VLAN", "234");
        let (code, text) = run(cluster, &["plan", "--to", "-"], &same)?;
        assert_eq!((code, text.as_str()), (0, "nothing changes on any node\n"));
        let other = network.replace("VLAN", "300");
        let (code, text) = run(cluster, &["plan", "--to", "-"], &other)?;
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("touches  2 of 2 nodes"), "{text}");
        assert!(text.contains("234") && text.contains("300"), "{text}");

        // Files are checked against what the cluster has.
        let (code, text) = run(cluster, &["validate", "-f", "-"], SENSORS)?;
        assert_eq!(code, 1, "{text}");
        assert!(text.contains("sensors-net"), "{text}");
        let both = format!("{SENSORS}---{SENSORS_NET}");
        let (code, text) = run(cluster, &["validate", "-f", "-"], &both)?;
        assert_eq!(code, 0, "{text}");

        let (code, text) = run(cluster, &["plan", "-f", "-", "--to", "-"], &both)?;
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("not from both"), "{text}");
        Ok(())
    })
}
