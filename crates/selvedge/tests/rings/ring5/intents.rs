//! Intents from their creation until nothing is left of them, on a real API server: stories of ring 1, with everything that was generated
//! compared with what the story expects. No agent runs: the test answers for the nodes.

use anyhow::Context as _;
use lab::parts::ClusterApiVersion;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, TCAAS, for_a_while, start_operator},
    programs::{Program, Programs},
    server::{Mode, eventually, with_server},
};
use crate::{
    data::{self, text},
    support::repository,
};

/// What is deleted at the end, in this order: claims of mirrors are released by nodes that still have the rest.
const INTENTS: [&str; 7] = [
    "TrafficMirror",
    "Collector",
    "BGPNeighbor",
    "Inbound",
    "Outbound",
    "PodNetwork",
    "Layer2Attachment",
];

/// A story in a cluster with these programs.
struct Story<'a> {
    cluster: &'a Cluster<'a>,
    programs: &'a Programs<'a>,
    input: Vec<Value>,
    platform: Vec<Value>,
    low_level: Vec<Value>,
}

/// Fields that the definitions of other programs set by default.
pub(super) fn defaults(kind: &str) -> Value {
    match kind {
        "IPAddressPool" => json!({"avoidBuggyIPs": false}),
        "BGPAdvertisement" => json!({"aggregationLength": 32, "aggregationLengthV6": 128}),
        "Egress" => json!({"sessionAffinity": "ClientIP"}),
        "SriovNetwork" => json!({"logLevel": "info"}),
        _ => json!({}),
    }
}

/// Reads a story. Where the cluster has the older IPAM version, that is what it must be written in.
fn read(name: &str, programs: &[Program]) -> anyhow::Result<[Vec<Value>; 3]> {
    let folder = repository("tests/cases").join(name);
    let read = |file: &str| -> anyhow::Result<Vec<Value>> {
        let path = folder.join(file);
        let mut objects = Vec::new();
        if path.exists() {
            objects = data::objects(&path)?;
        }
        if programs.contains(&Program::Ipam(ClusterApiVersion::V1Beta1)) {
            for object in &mut objects {
                if text(object, "/apiVersion") == "ipam.cluster.x-k8s.io/v1beta2" {
                    object["apiVersion"] = json!("ipam.cluster.x-k8s.io/v1beta1");
                }
            }
        }
        Ok(objects)
    };
    let mut input = read("input.yaml")?;
    // Rollouts have tests of their own.
    let rollout = json!({"soakTime": "0s", "maxUnavailable": "100%", "maxRemoval": "100%"});
    let settings = input.iter_mut().find(|object| object["kind"] == "Settings");
    match settings {
        Some(settings) => settings["spec"]["rollout"] = rollout,
        None => input.push(json!({
            "apiVersion": "selvedge.dev/v1alpha1", "kind": "Settings",
            "metadata": {"name": "default"}, "spec": {"rollout": rollout},
        })),
    }
    Ok([input, read("platform.yaml")?, read("lowlevel.yaml")?])
}

/// Runs a story: its intents wait for the kinds of these programs, get their objects, are ready, and take all of it with them.
fn run(name: &str, programs: &[Program]) -> anyhow::Result<()> {
    let [input, platform, low_level] = read(name, programs)?;
    with_server(|server| {
        let cluster = Cluster { server };
        let installed = Programs::new(server)?;
        let _operator = start_operator(server.operator_kubeconfig(), &[])?;
        let story = Story {
            cluster: &cluster,
            programs: &installed,
            input,
            platform,
            low_level,
        };
        let check = || -> anyhow::Result<()> {
            story.create()?;
            if !programs.is_empty() {
                story.until_kinds_are_missed()?;
            }
            for program in programs {
                installed.install(*program)?;
            }
            story.give_addresses()?;
            story.until_ready()?;
            story.compare()?;
            story.delete()
        };
        check()
            .with_context(|| name.to_owned())
            .expect("the story holds");
        Ok(())
    })
}

impl Story<'_> {
    /// Creates everything but the addresses that claims get.
    fn create(&self) -> anyhow::Result<()> {
        let objects = self.input.iter();
        for object in objects.filter(|object| !is_address(object)) {
            self.created(object)?;
        }
        Ok(())
    }

    /// Gives each claim its address, as a provider does.
    fn give_addresses(&self) -> anyhow::Result<()> {
        for address in self.input.iter().filter(|object| is_address(object)) {
            let claim = json!({
                "apiVersion": address["apiVersion"], "kind": "IPAddressClaim",
                "metadata": {
                    "name": address["spec"]["claimRef"]["name"],
                    "namespace": address["metadata"]["namespace"],
                },
            });
            eventually("the claim is there", || {
                self.cluster.answer_all()?;
                self.cluster.server.get(&claim)
            })?;
            self.created(address)?;
        }
        Ok(())
    }

    fn created(&self, object: &Value) -> anyhow::Result<()> {
        let created = self.cluster.server.create(object, Mode::Real)?;
        created.map_err(|refusal| anyhow::anyhow!("{object}: {}", refusal.message))?;
        Ok(())
    }

    fn intents(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_kind = |kind| {
            let of_kind = move |object: &&Value| {
                object["kind"] == kind && text(object, "/apiVersion") == TCAAS
            };
            self.input.iter().filter(of_kind)
        };
        let intents = INTENTS.into_iter().flat_map(of_kind);
        intents.map(|object| (text(object, "/kind"), text(object, "/metadata/name")))
    }

    /// Status and reason of the condition Ready of an intent.
    fn ready(&self, (kind, name): (&str, &str)) -> anyhow::Result<(String, String)> {
        let intent = self.cluster.get(kind, name)?;
        let conditions = intent["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        let ready = conditions.find(|condition| condition["type"] == "Ready");
        let field = |name| ready.map(|ready| text(ready, name).to_owned());
        Ok((
            field("/status").unwrap_or_default(),
            field("/reason").unwrap_or_default(),
        ))
    }

    /// Waits until each intent that needs an object of another program says that its kind is missing, and it stays so though all nodes have
    /// what they need.
    fn until_kinds_are_missed(&self) -> anyhow::Result<()> {
        let needs = |intent: &(&str, &str)| {
            let source = format!("{}/{}", intent.0, intent.1);
            let mut platform = self.platform.iter();
            intent.0 == "TrafficMirror"
                || platform.any(|object| {
                    object["metadata"]["annotations"]["selvedge.dev/generated-from"] == source
                })
        };
        let needing: Vec<_> = self.intents().filter(needs).collect();
        anyhow::ensure!(!needing.is_empty(), "no intent needs anything");
        for intent in needing {
            let mut last = Default::default();
            eventually("the intent misses the kind", || {
                self.cluster.answer_all()?;
                last = self.ready(intent)?;
                let missing = ("False".to_owned(), "KindNotServed".to_owned());
                Ok((last == missing).then_some(()))
            })
            .with_context(|| format!("{intent:?} is {last:?}"))?;
            for_a_while("it does not say that it is ready", || {
                Ok(self.ready(intent)?.0 == "False")
            })?;
        }
        Ok(())
    }

    fn until_ready(&self) -> anyhow::Result<()> {
        for intent in self.intents() {
            let mut last = Default::default();
            eventually("the intent is ready", || {
                self.cluster.answer_all()?;
                last = self.ready(intent)?;
                Ok((last.0 == "True").then_some(()))
            })
            .with_context(|| format!("{intent:?} is {last:?}"))?;
        }
        Ok(())
    }

    /// Compares everything that was made with what the story expects, field by field.
    fn compare(&self) -> anyhow::Result<()> {
        let key = |object: &Value| {
            let part = |pointer| text(object, pointer).to_owned();
            [
                part("/apiVersion"),
                part("/kind"),
                part("/metadata/namespace"),
                part("/metadata/name"),
            ]
        };
        let mut expected: Vec<Value> = self.platform.clone();
        for object in &mut expected {
            let defaults = defaults(text(object, "/kind"));
            if let (Some(spec), Value::Object(defaults)) =
                (object["spec"].as_object_mut(), defaults)
            {
                spec.extend(defaults);
            }
            object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "selvedge"});
        }
        let stored = self.programs.ours()?;
        let mut found: Vec<Value> = stored.iter().map(without_bookkeeping).collect();
        expected.sort_by_key(key);
        found.sort_by_key(key);
        assert_eq!(found, expected);
        for object in &self.low_level {
            let (kind, name) = (text(object, "/kind"), text(object, "/name"));
            let generated = self.cluster.get(kind, name)?;
            assert_eq!(generated["spec"], object["spec"], "{kind} {name}");
            let owner = &generated["metadata"]["ownerReferences"][0];
            let owner = format!("{}/{}", text(owner, "/kind"), text(owner, "/name"));
            assert_eq!(owner, text(object, "/source"), "{kind} {name}");
        }
        for_a_while("nothing is written again", || {
            Ok(self.programs.ours()? == stored)
        })
    }

    /// Deletes the intents, one kind after another, and waits until nothing is left that was made for them.
    fn delete(&self) -> anyhow::Result<()> {
        let intents: Vec<_> = self.intents().collect();
        for kind in INTENTS {
            let of_kind = intents.iter().filter(|intent| intent.0 == kind);
            for (_, name) in of_kind.clone() {
                self.cluster
                    .server
                    .delete(&super::cluster::object(kind, name))?;
            }
            let sources: Vec<String> = of_kind
                .map(|(kind, name)| format!("{kind}/{name}"))
                .collect();
            let mut left = Vec::new();
            eventually("nothing is left of the intents", || {
                self.cluster.answer_all()?;
                left = self.programs.ours()?;
                left.retain(|object| {
                    let source = &object["metadata"]["annotations"]["selvedge.dev/generated-from"];
                    let is_claim = object["kind"] == "IPAddressClaim";
                    sources.iter().any(|one| source == one) || (is_claim && kind == "TrafficMirror")
                });
                Ok(left.is_empty().then_some(()))
            })
            .with_context(|| format!("{kind}: {left:?} are left"))?;
        }
        let left: Vec<_> = self.programs.ours()?.iter().map(data::name).collect();
        anyhow::ensure!(left.is_empty(), "{left:?} are left");
        eventually("what was generated is gone", || {
            let low_level = self.low_level.iter();
            for object in low_level {
                let (kind, name) = (text(object, "/kind"), text(object, "/name"));
                if self.cluster.get(kind, name).is_ok() {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        })
    }
}

fn is_address(object: &Value) -> bool {
    object["kind"] == "IPAddress"
}

/// An object as the story has it: without what the API server notes about it.
fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    let ours = ["name", "namespace", "labels", "annotations"];
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| ours.contains(&field.as_str()));
    }
    object
}

#[test]
fn attachments_and_neighbors_from_creation_to_deletion() -> anyhow::Result<()> {
    run("attachment-in-two-vrfs", &[])?;
    run("bgp-neighbor", &[])
}

#[test]
fn inbounds_from_creation_to_deletion() -> anyhow::Result<()> {
    run("inbound-dual-stack", &[Program::MetalLb])?;
    run("inbound-on-selected-nodes", &[Program::MetalLb])
}

#[test]
fn outbounds_from_creation_to_deletion() -> anyhow::Result<()> {
    run("outbound-dual-stack", &[Program::Coil, Program::Calico])?;
    run(
        "calico-objects-as-it-stores-them",
        &[Program::Coil, Program::StoredCalico],
    )
}

#[test]
fn pod_networks_from_creation_to_deletion() -> anyhow::Result<()> {
    run("pod-network-in-a-vrf", &[Program::Calico])
}

#[test]
fn attachments_with_sriov_devices_from_creation_to_deletion() -> anyhow::Result<()> {
    run("sriov-on-a-bond", &[Program::Sriov])?;
    run("sriov-network-attachment-definition", &[Program::Sriov])?;
    run("sriov-resource-by-device-and-nodes", &[Program::Sriov])
}

#[test]
fn traffic_mirrors_from_creation_to_deletion_in_both_versions_of_ipam() -> anyhow::Result<()> {
    for version in [ClusterApiVersion::V1Beta2, ClusterApiVersion::V1Beta1] {
        run(
            "traffic-mirrors-of-an-attachment-and-an-outbound",
            &[Program::Coil, Program::Calico, Program::Ipam(version)],
        )?;
    }
    Ok(())
}
