//! A small cluster in which the operator runs. No agent runs: the test answers for the nodes.

use std::{path::Path, thread, time::Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::server::{A_WHILE, Server, eventually, with_server};
use crate::{
    data::{self, text},
    support::Daemon,
};

pub(super) const TCAAS: &str = "network.t-caas.telekom.com/v1alpha1";

/// Two nodes with an underlay, and a tenant's attachment that reaches a VRF.
pub(super) const WORLD: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
---
apiVersion: openpe.openperouter.github.io/v1alpha1
kind: Underlay
metadata: {name: all, namespace: default}
spec:
  asn: 64514
  nics: [eth1]
  evpn: {vtepcidr: 100.65.0.0/24}
  neighbors: [{asn: 64512, address: 192.168.11.2}]
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRF
metadata: {name: m2m}
spec: {vrf: m2m, vni: 10100, routeTarget: '64500:10100'}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: meters, labels: {zone: secure}}
spec: {vrfRef: m2m, prefixes: [192.0.2.0/24]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: billing-net}
spec: {ipv4: {cidr: 198.51.100.128/25}, vlan: 234, vni: 10234}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: billing}
spec: {networkRef: billing-net, interfaceName: billing, destinations: {matchLabels: {zone: secure}}}
";

/// A second tenant's attachment, without the Network that it names.
pub(super) const SENSORS: &str = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: sensors}
spec: {networkRef: sensors-net, interfaceName: sensors, destinations: {matchLabels: {zone: secure}}}
";

pub(super) const SENSORS_NET: &str = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: sensors-net}
spec: {ipv4: {cidr: 198.51.100.0/26}, vlan: 235, vni: 10235}
";

/// The cluster, with the operator running.
pub(super) struct Cluster<'a> {
    pub(super) server: &'a Server,
}

/// Gives a test a cluster in which the world is declared and the operator runs.
pub(super) fn with_cluster(
    test: impl FnOnce(&Cluster<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    with_server(|server| {
        let cluster = Cluster { server };
        server.apply(WORLD)?;
        let _operator = start_operator(server.operator_kubeconfig(), &[])?;
        // Not handed on as an error: the operator shows its log where a test panics.
        test(&cluster).expect("the operator does what it should");
        Ok(())
    })
}

/// Gives a test a cluster in which the world is declared and no operator runs. What fails in it shows the logs of the operators it starts.
pub(super) fn without_operator(
    test: impl FnOnce(&Cluster<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    with_server(|server| {
        server.apply(WORLD)?;
        test(&Cluster { server })
    })
}

impl Cluster<'_> {
    pub(super) fn all(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        self.server.list(TCAAS, kind)
    }

    pub(super) fn names(&self, kind: &str) -> anyhow::Result<Vec<String>> {
        let names = self.all(kind)?;
        Ok(names
            .iter()
            .map(|object| text(object, "/metadata/name").to_owned())
            .collect())
    }

    pub(super) fn get(&self, kind: &str, name: &str) -> anyhow::Result<Value> {
        let object = object(kind, name);
        let found = self.server.get(&object)?;
        found.with_context(|| format!("{kind} {name} is not there"))
    }

    /// What intents became: the generated low-level objects, by `kind/name`.
    pub(super) fn generated(&self) -> anyhow::Result<Vec<String>> {
        let mut all = self.all("Layer2NetworkConfiguration")?;
        all.extend(self.all("VRFRouteConfiguration")?);
        Ok(all.iter().map(data::name).collect())
    }

    pub(super) fn until_generated(&self, wanted: &[&str]) -> anyhow::Result<()> {
        let mut last = Vec::new();
        eventually(&format!("{wanted:?} are generated"), || {
            last = self.generated()?;
            Ok((last == wanted).then_some(()))
        })
        .with_context(|| format!("there are {last:?}"))
    }

    /// Waits until these nodes and no others have a config.
    pub(super) fn until_configured(&self, wanted: &[&str]) -> anyhow::Result<()> {
        eventually(&format!("{wanted:?} have a config"), || {
            Ok((self.names("NodeNetworkConfig")? == wanted).then_some(()))
        })
    }

    /// The revision of a node's config.
    pub(super) fn revision(&self, node: &str) -> anyhow::Result<String> {
        let config = self.get("NodeNetworkConfig", node)?;
        Ok(text(&config, "/spec/revision").to_owned())
    }

    /// Answers for a node that it runs a revision.
    pub(super) fn answer(&self, node: &str, revision: &str) -> anyhow::Result<()> {
        let mut config = self.get("NodeNetworkConfig", node)?;
        config["status"] = json!({
            "configStatus": "provisioned",
            "observedRevision": revision,
            "observedGeneration": config["metadata"]["generation"],
        });
        let answer = self.server.replace_status(&config)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        Ok(())
    }

    /// Answers for every node that it runs what it has got.
    pub(super) fn answer_all(&self) -> anyhow::Result<()> {
        for config in self.all("NodeNetworkConfig")? {
            let observed = &config["status"]["observedGeneration"];
            if *observed != config["metadata"]["generation"] {
                let name = text(&config, "/metadata/name");
                // It may have been written again in the meantime.
                let _answered = self.answer(name, text(&config, "/spec/revision"));
            }
        }
        Ok(())
    }

    /// Answers for every node, as it gets its config, until all run one revision.
    pub(super) fn roll_out(&self, nodes: &[&str]) -> anyhow::Result<()> {
        for (count, node) in (1..).zip(nodes) {
            eventually(&format!("{node} has a config"), || {
                Ok((self.names("NodeNetworkConfig")?.len() >= count).then_some(()))
            })?;
            self.answer(node, &self.revision(node)?)?;
        }
        Ok(())
    }

    /// The versions of all objects: each write changes one.
    pub(super) fn versions(&self) -> anyhow::Result<Vec<String>> {
        let mut versions = Vec::new();
        for kind in [
            "VRF",
            "Network",
            "Destination",
            "Layer2Attachment",
            "Layer2NetworkConfiguration",
            "VRFRouteConfiguration",
            "NetworkConfigRevision",
            "NodeNetworkConfig",
        ] {
            versions.extend(self.all(kind)?.iter().map(|object| {
                let version = text(object, "/metadata/resourceVersion");
                format!("{} {version}", data::name(object))
            }));
        }
        Ok(versions)
    }

    /// Waits until a condition of an intent has this status and reason.
    pub(super) fn until_condition(
        &self,
        intent: (&str, &str),
        wanted: [&str; 3],
    ) -> anyhow::Result<()> {
        let [kind, status, reason] = wanted;
        let mut last = Value::Null;
        eventually(&format!("{intent:?} has {wanted:?}"), || {
            last = self.get(intent.0, intent.1)?["status"]["conditions"].clone();
            let holds = last.as_array().into_iter().flatten().any(|condition| {
                condition["type"] == kind
                    && condition["status"] == status
                    && (reason.is_empty() || condition["reason"] == reason)
            });
            Ok(holds.then_some(()))
        })
        .with_context(|| format!("it has {last}"))
    }
}

/// Starts an operator that reaches the API server as a kubeconfig says.
pub(super) fn start_operator(kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<Daemon> {
    let kubeconfig = kubeconfig.display().to_string();
    let mut arguments = vec!["operator", "--kubeconfig", &kubeconfig];
    if !flags.contains(&"--listen") {
        arguments.extend(["--listen", "none"]);
    }
    arguments.extend(flags);
    Daemon::start_here(&arguments)
}

/// Makes sure that for a while something stays as it is.
pub(super) fn for_a_while(
    what: &str,
    holds: impl Fn() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let end = Instant::now() + A_WHILE;
    while Instant::now() < end {
        anyhow::ensure!(holds()?, "for a while not: {what}");
        thread::sleep(A_WHILE / 15);
    }
    Ok(())
}

pub(super) fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": TCAAS, "kind": kind, "metadata": {"name": name}})
}

pub(super) const BILLING: [&str; 2] = [
    "Layer2NetworkConfiguration/layer2attachment-billing-234",
    "VRFRouteConfiguration/layer2attachment-billing-m2m",
];
