//! Objects of other programs on a real API server: made when their kinds are there, kept as they must be, removed with their intent.

use serde_json::{Value, json};

use super::{
    cluster::{Cluster, TCAAS, for_a_while, object, start_operator, without_operator},
    server::{Mode, eventually},
};

const METALLB: &str = include_str!("../../../../../tests/platform/metallb.yaml");

const INBOUND: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: metallb-system}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: transfer}
spec: {ipv4: {cidr: 203.0.113.0/28}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Inbound
metadata: {name: web}
spec: {networkRef: transfer, count: 2, advertisement: {type: bgp}}
";

fn metallb(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "metallb.io/v1beta1", "kind": kind,
        "metadata": {"name": name, "namespace": "metallb-system"},
    })
}

/// Waits until an object has exactly this spec, and carries our label and what it was made from.
fn until_spec(cluster: &Cluster<'_>, kind: &str, spec: &Value) -> anyhow::Result<()> {
    let mut last = None;
    let found = eventually(&format!("{kind} web has its spec"), || {
        last = cluster.server.get(&metallb(kind, "web"))?;
        let is_right = last.as_ref().is_some_and(|object| {
            let metadata = &object["metadata"];
            object["spec"] == *spec
                && metadata["labels"]["app.kubernetes.io/managed-by"] == "selvedge"
                && metadata["annotations"]["selvedge.dev/generated-from"] == "Inbound/web"
        });
        Ok(is_right.then_some(()))
    });
    found.map_err(|error| error.context(format!("it is {last:?}")))
}

/// Deletes the definitions, whatever came of a test: they belong to no other.
struct Definitions<'a>(&'a Cluster<'a>);

impl Definitions<'_> {
    fn install(&self) -> anyhow::Result<()> {
        self.0.server.apply(METALLB)?;
        eventually("MetalLB's kinds are served", || {
            Ok(self
                .0
                .server
                .list("metallb.io/v1beta1", "IPAddressPool")
                .ok())
        })?;
        Ok(())
    }
}

impl Drop for Definitions<'_> {
    fn drop(&mut self) {
        for plural in ["ipaddresspools", "bgpadvertisements", "l2advertisements"] {
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.metallb.io")},
            });
            // One that was never installed need not be deleted.
            let _deleted = self.0.server.delete(&definition);
            let gone = || Ok(self.0.server.get(&definition)?.is_none().then_some(()));
            eventually("the definition is gone", gone).expect("an API server that deletes");
        }
    }
}

#[test]
fn an_inbound_waits_for_metallb_gets_its_objects_and_takes_them_with_it() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let definitions = Definitions(cluster);
        cluster.server.apply(INBOUND)?;
        let _operator = start_operator(cluster.server.operator_kubeconfig(), &[])?;
        let inbound = ("Inbound", "web");
        cluster.until_condition(inbound, ["PlatformReady", "False", "KindNotServed"])?;
        cluster.until_condition(inbound, ["Ready", "False", "KindNotServed"])?;

        // Another's object has a name that we need.
        let mut theirs = metallb("BGPAdvertisement", "web");
        theirs["spec"] = json!({"ipAddressPools": ["theirs"]});
        definitions.install()?;
        let created = cluster.server.create(&theirs, Mode::Real)?;
        created.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let pool = json!({
            "addresses": ["203.0.113.1/32", "203.0.113.2/32"],
            "autoAssign": true, "avoidBuggyIPs": false,
        });
        until_spec(cluster, "IPAddressPool", &pool)?;
        cluster.until_condition(inbound, ["Ready", "False", "NameTaken"])?;
        let kept = cluster.server.get(&theirs)?.unwrap_or_default();
        assert_eq!(kept["spec"]["ipAddressPools"], json!(["theirs"]));
        cluster.server.delete(&theirs)?;
        let advertisement = json!({
            "ipAddressPools": ["web"], "aggregationLength": 32, "aggregationLengthV6": 128,
        });
        until_spec(cluster, "BGPAdvertisement", &advertisement)?;
        cluster.until_condition(inbound, ["Ready", "True", ""])?;

        let edit = json!({"spec": {"addresses": ["192.0.2.0/24"]}});
        cluster
            .server
            .edit(&metallb("IPAddressPool", "web"), &edit)?;
        until_spec(cluster, "IPAddressPool", &pool)?;
        cluster.server.delete(&metallb("IPAddressPool", "web"))?;
        until_spec(cluster, "IPAddressPool", &pool)?;

        // What is wrong with an intent costs it nothing that it has.
        let missing = json!({"spec": {"networkRef": "nothing"}});
        cluster.server.edit(&object("Inbound", "web"), &missing)?;
        cluster.until_condition(inbound, ["Resolved", "False", "MissingReference"])?;
        for_a_while("its pool stays", || {
            Ok(cluster
                .server
                .get(&metallb("IPAddressPool", "web"))?
                .is_some())
        })?;
        cluster.server.delete(&object("Inbound", "web"))?;
        eventually("its objects go with it", || {
            let pools = cluster.server.list("metallb.io/v1beta1", "IPAddressPool")?;
            let all = cluster
                .server
                .list("metallb.io/v1beta1", "BGPAdvertisement")?;
            Ok((pools.is_empty() && all.is_empty()).then_some(()))
        })?;
        assert!(cluster.server.list(TCAAS, "Inbound")?.is_empty());
        Ok(())
    })
}
