//! A config of a node that the API server refuses is reported on the revision and on the node.

use serde_json::{Value, json};

use super::{
    cluster::{Cluster, object, start_operator, without_operator},
    fleet_rollout::newest,
    server::{Mode, eventually},
};
use crate::data::text;

/// Refuses the config of one node, by any writer.
const REFUSAL: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-n1}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [network.t-caas.telekom.com]
      apiVersions: [v1alpha1]
      operations: [CREATE, UPDATE]
      resources: [nodenetworkconfigs]
  validations:
  - expression: object.metadata.name != 'n1'
    message: refused by policy
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-n1}
spec: {policyName: refuse-n1, validationActions: [Deny]}
";

fn message(cluster: &Cluster<'_>) -> anyhow::Result<String> {
    let revision = newest(cluster)?;
    Ok(text(&revision, "/status/unwrittenMessage").to_owned())
}

/// Whether an object has an event that says so.
fn is_reported(cluster: &Cluster<'_>, kind: &str, name: &str) -> anyhow::Result<bool> {
    let events = cluster.server.list("events.k8s.io/v1", "Event")?;
    let is_it = |event: &Value| {
        event["regarding"]["kind"] == kind
            && event["regarding"]["name"] == name
            && event["reason"] == "WriteFailed"
            && text(event, "/note").contains("refused by policy")
    };
    Ok(events.iter().any(is_it))
}

#[test]
fn a_config_that_is_refused_is_reported_on_its_revision_and_its_node() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let plane = &cluster.server.plane;
        plane.kubectl(&["apply", "-f", "-"], REFUSAL)?;
        let kubeconfig = cluster.server.operator_kubeconfig();
        // A policy counts as soon as every part of the API server has seen it.
        let mut config = object("NodeNetworkConfig", "n1");
        config["spec"] = json!({"revision": "aa"});
        eventually("the policy is in force", || {
            let answer = cluster.server.create(&config, Mode::Dry)?;
            let refusal = answer.err().map(|refusal| refusal.message);
            let is_meant = |text: &String| text.contains("refused by policy");
            Ok(refusal.filter(is_meant).map(drop))
        })?;
        let _operator = start_operator(kubeconfig, &[])?;
        let check = || -> anyhow::Result<()> {
            eventually("the revision says so", || {
                let message = message(cluster)?;
                let is_meant = message.starts_with("NodeNetworkConfig n1 could not be written")
                    && message.contains("refused by policy");
                Ok(is_meant.then_some(()))
            })?;
            let revision = newest(cluster)?;
            let name = text(&revision, "/metadata/name");
            eventually("both have an event", || {
                let on_node = is_reported(cluster, "Node", "n1")?;
                let on_revision = is_reported(cluster, "NetworkConfigRevision", name)?;
                Ok((on_node && on_revision).then_some(()))
            })
        };
        let checked = check();
        let gone = [
            "delete",
            "validatingadmissionpolicybinding,validatingadmissionpolicy",
            "refuse-n1",
        ];
        plane.kubectl(&gone, "")?;
        checked.expect("it is reported");
        cluster
            .until_configured(&["n1"])
            .expect("it is tried again");
        eventually("the revision no longer says so", || {
            Ok(message(cluster)?.is_empty().then_some(()))
        })
        .expect("its status is as usual");
        Ok(())
    })
}
