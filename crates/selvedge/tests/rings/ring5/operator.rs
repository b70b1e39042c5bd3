//! The operator against a real API server. No agent runs: the test answers for the nodes.

use std::{thread, time::Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::server::{A_WHILE, Server, eventually, with_server};
use crate::{
    data::{self, text},
    support::Daemon,
};

const TCAAS: &str = "network.t-caas.telekom.com/v1alpha1";

/// Two nodes with an underlay, and a tenant's attachment that reaches a VRF.
const WORLD: &str = "
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
const SENSORS: &str = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: sensors}
spec: {networkRef: sensors-net, interfaceName: sensors, destinations: {matchLabels: {zone: secure}}}
";

const SENSORS_NET: &str = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: sensors-net}
spec: {ipv4: {cidr: 198.51.100.0/26}, vlan: 235, vni: 10235}
";

/// The cluster, with the operator running.
pub(super) struct Cluster<'a> {
    pub(super) server: &'a Server,
    _operator: Daemon,
}

/// Gives a test a cluster in which the world is declared and the operator runs.
pub(super) fn with_cluster(
    test: impl FnOnce(&Cluster<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    with_server(|server| {
        server.apply(WORLD)?;
        let kubeconfig = server.plane.kubeconfig("admin")?;
        let kubeconfig = kubeconfig.display().to_string();
        let cluster = Cluster {
            server,
            _operator: Daemon::start_here(&["operator", "--kubeconfig", &kubeconfig])?,
        };
        // Not handed on as an error: the operator shows its log where a test panics.
        test(&cluster).expect("the operator does what it should");
        Ok(())
    })
}

impl Cluster<'_> {
    fn all(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        self.server.list(TCAAS, kind)
    }

    pub(super) fn names(&self, kind: &str) -> anyhow::Result<Vec<String>> {
        let names = self.all(kind)?;
        Ok(names
            .iter()
            .map(|object| text(object, "/metadata/name").to_owned())
            .collect())
    }

    fn get(&self, kind: &str, name: &str) -> anyhow::Result<Value> {
        let object = object(kind, name);
        let found = self.server.get(&object)?;
        found.with_context(|| format!("{kind} {name} is not there"))
    }

    /// What intents became: the generated low-level objects, by `kind/name`.
    fn generated(&self) -> anyhow::Result<Vec<String>> {
        let mut all = self.all("Layer2NetworkConfiguration")?;
        all.extend(self.all("VRFRouteConfiguration")?);
        Ok(all.iter().map(data::name).collect())
    }

    fn until_generated(&self, wanted: &[&str]) -> anyhow::Result<()> {
        let mut last = Vec::new();
        eventually(&format!("{wanted:?} are generated"), || {
            last = self.generated()?;
            Ok((last == wanted).then_some(()))
        })
        .with_context(|| format!("there are {last:?}"))
    }

    /// Waits until these nodes and no others were told something.
    pub(super) fn until_told(&self, wanted: &[&str]) -> anyhow::Result<()> {
        eventually(&format!("{wanted:?} are told"), || {
            Ok((self.names("NodeNetworkConfig")? == wanted).then_some(()))
        })
    }

    /// The revision that a node was told.
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

    /// Answers for every node, as it is told, until all run one revision.
    fn roll_out(&self, nodes: &[&str]) -> anyhow::Result<()> {
        for (count, node) in (1..).zip(nodes) {
            eventually(&format!("{node} is told"), || {
                Ok((self.names("NodeNetworkConfig")?.len() >= count).then_some(()))
            })?;
            self.answer(node, &self.revision(node)?)?;
        }
        Ok(())
    }

    /// The versions of all objects: each write changes one.
    fn versions(&self) -> anyhow::Result<Vec<String>> {
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
    fn until_condition(&self, intent: (&str, &str), wanted: [&str; 3]) -> anyhow::Result<()> {
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

/// Makes sure that for a while something stays as it is.
fn for_a_while(what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = Instant::now() + A_WHILE;
    while Instant::now() < end {
        anyhow::ensure!(holds()?, "for a while not: {what}");
        thread::sleep(A_WHILE / 15);
    }
    Ok(())
}

fn object(kind: &str, name: &str) -> Value {
    json!({"apiVersion": TCAAS, "kind": kind, "metadata": {"name": name}})
}

const BILLING: [&str; 2] = [
    "Layer2NetworkConfiguration/layer2attachment-billing-234",
    "VRFRouteConfiguration/layer2attachment-billing-m2m",
];

#[test]
fn nodes_are_told_one_after_another_and_an_old_answer_does_not_count() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.until_told(&["n1"])?;
        let one_only = || Ok(cluster.names("NodeNetworkConfig")? == ["n1"]);
        for_a_while("only n1 is told", one_only)?;

        let first = cluster.revision("n1")?;
        let revisions = cluster.all("NetworkConfigRevision")?;
        let known: Vec<&str> = revisions
            .iter()
            .map(|revision| text(revision, "/spec/revision"))
            .collect();
        assert!(known.contains(&first.as_str()), "{first} is in {known:?}");

        cluster.answer("n1", "0000000000000000")?;
        for_a_while("an answer to another revision does not count", one_only)?;
        cluster.answer("n1", &first)?;
        cluster.until_told(&["n1", "n2"])?;
        assert_eq!(cluster.revision("n2")?, first);
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "False", ""])?;
        cluster.answer("n2", &first)?;
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "True", ""])?;

        // Another revision: both nodes still hold their answers to the first one.
        let mtu = json!({"spec": {"mtu": 1400}});
        cluster
            .server
            .edit(&object("Layer2Attachment", "billing"), &mtu)?;
        let second = eventually("n1 is told another revision", || {
            Ok(Some(cluster.revision("n1")?).filter(|revision| *revision != first))
        })?;
        for_a_while("n2 waits for n1's new answer", || {
            Ok(cluster.revision("n2")? == first)
        })?;
        cluster.answer("n1", &second)?;
        eventually("n2 is told as well", || {
            Ok((cluster.revision("n2")? == second).then_some(()))
        })
    })
}

#[test]
fn what_an_intent_becomes_is_its_own_and_goes_with_it() -> anyhow::Result<()> {
    with_cluster(|cluster| {
        cluster.until_generated(&BILLING)?;
        let uid = cluster.get("Layer2Attachment", "billing")?["metadata"]["uid"].clone();
        for name in BILLING {
            let (kind, name) = name.split_once('/').context("kind and name")?;
            let owners = &cluster.get(kind, name)?["metadata"]["ownerReferences"];
            assert_eq!(owners.as_array().map(Vec::len), Some(1), "{name}: {owners}");
            let owner = &owners[0];
            assert_eq!(
                (
                    &owner["kind"],
                    &owner["name"],
                    &owner["uid"],
                    &owner["controller"]
                ),
                (
                    &json!("Layer2Attachment"),
                    &json!("billing"),
                    &uid,
                    &json!(true)
                ),
                "{name}"
            );
        }
        cluster.roll_out(&["n1", "n2"])?;
        cluster.until_condition(("Layer2Attachment", "billing"), ["Ready", "True", ""])?;
        eventually("the revision counts both nodes", || {
            let revisions = cluster.all("NetworkConfigRevision")?;
            let counts = revisions.iter().map(|revision| &revision["status"]);
            let is_done = |status: &Value| {
                status["ready"] == 2 && status["total"] == 2 && status["isInvalid"] == false
            };
            Ok(counts.into_iter().any(is_done).then_some(()))
        })?;
        let before = cluster.versions()?;
        for_a_while("who has nothing to say writes nothing", || {
            Ok(cluster.versions()? == before)
        })?;

        // Somebody edits what was generated.
        let (kind, name) = BILLING[0].split_once('/').context("kind and name")?;
        let before = cluster.get(kind, name)?["spec"].clone();
        cluster.server.edit(
            &object(kind, name),
            &json!({"spec": {"mtu": 1300, "vni": 77}}),
        )?;
        eventually("the edit is undone", || {
            Ok((cluster.get(kind, name)?["spec"] == before).then_some(()))
        })?;
        // Somebody deletes what was generated.
        cluster.server.delete(&object(kind, name))?;
        cluster.until_generated(&BILLING)?;

        // What a person wrote is left alone, also when the intent goes.
        cluster.server.apply(
            "{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2NetworkConfiguration, \
             metadata: {name: by-hand}, spec: {id: 500, mtu: 1500, vni: 10500}}",
        )?;
        cluster
            .server
            .delete(&object("Layer2Attachment", "billing"))?;
        cluster.until_generated(&["Layer2NetworkConfiguration/by-hand"])?;
        for_a_while("nothing comes back, and nothing else goes", || {
            Ok(cluster.generated()? == ["Layer2NetworkConfiguration/by-hand"])
        })
    })
}

#[test]
fn a_problem_stays_with_its_object_and_what_worked_keeps_working() -> anyhow::Result<()> {
    const BOTH: [&str; 4] = [
        BILLING[0],
        "Layer2NetworkConfiguration/layer2attachment-sensors-235",
        BILLING[1],
        "VRFRouteConfiguration/layer2attachment-sensors-m2m",
    ];
    with_cluster(|cluster| {
        let (billing, sensors) = (
            ("Layer2Attachment", "billing"),
            ("Layer2Attachment", "sensors"),
        );
        cluster.until_generated(&BILLING)?;
        cluster.server.apply(SENSORS)?;
        cluster.until_condition(sensors, ["Resolved", "False", "MissingReference"])?;
        cluster.until_condition(billing, ["Resolved", "True", ""])?;
        assert_eq!(cluster.generated()?, BILLING);

        // What was missing comes.
        cluster.server.apply(SENSORS_NET)?;
        cluster.until_condition(sensors, ["Resolved", "True", ""])?;
        cluster.until_generated(&BOTH)?;

        // And goes again: the problem is told, and what was generated stays.
        let specs = || -> anyhow::Result<Vec<Value>> {
            let mut all = cluster.all("Layer2NetworkConfiguration")?;
            all.extend(cluster.all("VRFRouteConfiguration")?);
            Ok(all.iter().map(|object| object["spec"].clone()).collect())
        };
        let before = specs()?;
        cluster.server.delete(&object("Network", "sensors-net"))?;
        cluster.until_condition(sensors, ["Resolved", "False", "MissingReference"])?;
        for_a_while("what was generated stays", || {
            Ok(cluster.generated()? == BOTH && specs()? == before)
        })?;
        cluster.until_condition(billing, ["Resolved", "True", ""])
    })
}
