//! Commands that read a cluster, against a real API server with the operator. No agent runs: the test answers for the nodes.

use super::{
    cluster::{Cluster, SENSORS, SENSORS_NET, with_cluster},
    server::eventually,
};
use crate::support::selvedge;

/// Runs a command on the cluster; its exit code and all it says.
pub(super) fn run(
    cluster: &Cluster<'_>,
    arguments: &[&str],
    stdin: &str,
) -> anyhow::Result<(i32, String)> {
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

#[test]
fn the_status_names_the_revision_and_each_object_that_is_not_ready() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.roll_out(&["n1", "n2"])?;
        let text = until(cluster, 0, &["Complete", "2 of 2 nodes"])?;
        assert!(text.contains("Layer2Attachment  1/1"), "{text}");
        assert!(!text.contains("not ready"), "{text}");

        cluster.server.apply(SENSORS)?;
        let not_ready = [
            "Layer2Attachment  1/2",
            "1 object not ready",
            "Layer2Attachment sensors  ",
            "sensors-net",
        ];
        until(cluster, 1, &not_ready)?;
        let before = cluster.revision("n1")?;
        cluster.server.apply(SENSORS_NET)?;
        until(cluster, 1, &["3 objects not ready", "0 of 2 nodes"])?;
        for node in ["n1", "n2"] {
            let published = eventually("the node gets the new revision", || {
                let revision = cluster.revision(node)?;
                Ok((revision != before).then_some(revision))
            })?;
            cluster.answer(node, &published)?;
        }
        until(cluster, 0, &["Layer2Attachment  2/2"])?;
        Ok(())
    })
}

/// Waits until `status` ends with this code and says all of this.
fn until(cluster: &Cluster<'_>, code: i32, wanted: &[&str]) -> anyhow::Result<String> {
    let mut last = (0, String::new());
    let found = eventually(&format!("the status says {wanted:?}"), || {
        last = run(cluster, &["status"], "")?;
        let says_all = wanted.iter().all(|text| last.1.contains(text));
        Ok((says_all && last.0 == code).then(|| last.1.clone()))
    });
    found.map_err(|error| error.context(format!("it says {last:?}")))
}
