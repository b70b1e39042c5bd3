//! What goes wrong around the operator harms only what depends on it.

use std::time::Duration;

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    cluster::{
        BILLING, Cluster, SENSORS, SENSORS_NET, for_a_while, object, start_operator,
        without_operator,
    },
    proxy::Proxy,
    server::{eventually, within},
};
use crate::{
    data::{self, text},
    support::selvedge,
};

const SENSORS_GENERATED: [&str; 2] = [
    "Layer2NetworkConfiguration/layer2attachment-sensors-235",
    "VRFRouteConfiguration/layer2attachment-sensors-m2m",
];

/// Refuses one object, by any writer.
const REFUSAL: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: refuse-billing}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [network.t-caas.telekom.com]
      apiVersions: [v1alpha1]
      operations: [CREATE, UPDATE]
      resources: [layer2networkconfigurations]
  validations:
  - expression: object.metadata.name != 'layer2attachment-billing-234'
    message: refused by policy
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: refuse-billing}
spec: {policyName: refuse-billing, validationActions: [Deny]}
";

fn refuses(cluster: &Cluster<'_>) -> anyhow::Result<bool> {
    let billing = json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "Layer2NetworkConfiguration",
        "metadata": {"name": "layer2attachment-billing-234"},
        "spec": {"id": 234, "mtu": 1500, "vni": 10234},
    });
    let answer = cluster.server.create(&billing, super::server::Mode::Dry)?;
    Ok(answer.is_err())
}

#[test]
fn a_refused_object_holds_up_no_other_and_its_intent_says_why() -> anyhow::Result<()> {
    without_operator(|cluster| {
        cluster
            .server
            .plane
            .kubectl(&["apply", "-f", "-"], REFUSAL)?;
        eventually("the policy is in force", || {
            Ok(refuses(cluster)?.then_some(()))
        })?;
        let kubeconfig = cluster.server.operator_kubeconfig();
        let operator = start_operator(kubeconfig, &[])?;
        let check = || -> anyhow::Result<()> {
            cluster.server.apply(SENSORS)?;
            cluster.server.apply(SENSORS_NET)?;
            // All but the one object is written, and a node gets its config.
            cluster.until_generated(&[SENSORS_GENERATED[0], BILLING[1], SENSORS_GENERATED[1]])?;
            cluster.until_configured(&["n1"])?;
            let billing = ("Layer2Attachment", "billing");
            cluster.until_condition(billing, ["Ready", "False", "WriteFailed"])?;
            // A request that the API server takes too long for may fail for another reason, and is tried again.
            let status = |name| -> anyhow::Result<String> {
                Ok(cluster.get("Layer2Attachment", name)?["status"].to_string())
            };
            eventually("it says why", || {
                Ok(status("billing")?
                    .contains("refused by policy")
                    .then_some(()))
            })?;
            eventually("the other intent has no failure", || {
                Ok((!status("sensors")?.contains("WriteFailed")).then_some(()))
            })?;
            let log = operator.log()?;
            let refusals = log
                .lines()
                .filter(|line| line.contains("write failed") && line.contains("refused by policy"));
            let attempts = refusals.count();
            assert!((1..15).contains(&attempts), "{attempts} attempts");
            Ok(())
        };
        let checked = check();
        let gone = [
            "delete",
            "validatingadmissionpolicybinding,validatingadmissionpolicy",
            "refuse-billing",
        ];
        cluster.server.plane.kubectl(&gone, "")?;
        checked.expect("only the refused object suffers");
        let all = [
            BILLING[0],
            SENSORS_GENERATED[0],
            BILLING[1],
            SENSORS_GENERATED[1],
        ];
        cluster.until_generated(&all).expect("it is tried again");
        eventually("the intent no longer says so", || {
            let status = cluster.get("Layer2Attachment", "billing")?["status"].to_string();
            Ok((!status.contains("WriteFailed")).then_some(()))
        })
        .expect("its status is as usual");
        Ok(())
    })
}

#[test]
fn a_write_that_is_never_answered_holds_up_no_other() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let proxy = Proxy::start(cluster.server)?;
        // As an admission webhook that hangs.
        proxy.hold("/layer2networkconfigurations/layer2attachment-billing");
        cluster.server.apply(SENSORS_NET)?;
        cluster.server.apply(SENSORS)?;
        let _operator = start_operator(proxy.kubeconfig(), &[])?;
        let check = || -> anyhow::Result<()> {
            let patience = Duration::from_mins(1);
            within(patience, "the first node has a config", || {
                let names = cluster.names("NodeNetworkConfig")?;
                Ok((names == ["n1"]).then_some(()))
            })?;
            let generated = [SENSORS_GENERATED[0], BILLING[1], SENSORS_GENERATED[1]];
            cluster.until_generated(&generated)?;
            let mut last = Value::Null;
            let told = within(patience, "the intent says why", || {
                last = cluster.get("Layer2Attachment", "billing")?["status"].clone();
                let text = last.to_string();
                let is_told = text.contains("WriteFailed") && text.contains("no answer");
                Ok(is_told.then_some(()))
            });
            told.with_context(|| last.to_string())
        };
        check().expect("only that object suffers");
        proxy.release();
        let all = [
            BILLING[0],
            SENSORS_GENERATED[0],
            BILLING[1],
            SENSORS_GENERATED[1],
        ];
        within(Duration::from_mins(1), "it is tried again", || {
            Ok((cluster.generated()? == all).then_some(()))
        })
        .expect("it is written");
        Ok(())
    })
}

#[test]
fn an_api_server_that_fails_for_one_kind_harms_only_that_kind() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let proxy = Proxy::start(cluster.server)?;
        let _operator = start_operator(proxy.kubeconfig(), &[])?;
        cluster.until_generated(&BILLING)?;
        cluster.until_configured(&["n1"])?;
        proxy.fail("/layer2networkconfigurations", 503);
        proxy.cut();
        // Another intent comes: its other object is written, statuses are, and the rollout goes on.
        cluster.server.apply(SENSORS_NET)?;
        cluster.server.apply(SENSORS)?;
        let check = || -> anyhow::Result<()> {
            cluster.until_condition(("Layer2Attachment", "sensors"), ["Resolved", "True", ""])?;
            cluster.until_generated(&[BILLING[0], BILLING[1], SENSORS_GENERATED[1]])?;
            eventually("n1 has both", || {
                let config = cluster.get("NodeNetworkConfig", "n1")?.to_string();
                Ok(config.contains("10235").then_some(()))
            })?;
            cluster.answer("n1", &cluster.revision("n1")?)?;
            cluster.until_configured(&["n1", "n2"])
        };
        check().expect("only that kind suffers");
        proxy.heal();
        let all = [
            BILLING[0],
            SENSORS_GENERATED[0],
            BILLING[1],
            SENSORS_GENERATED[1],
        ];
        cluster
            .until_generated(&all)
            .expect("the kind is trusted again");
        Ok(())
    })
}

#[test]
fn an_api_server_that_has_too_many_requests_gets_none_for_as_long_as_it_asks() -> anyhow::Result<()>
{
    const RETRY_AFTER: Duration = Duration::from_secs(3);
    // What is under way when the answer comes cannot be taken back.
    const UNDER_WAY: Duration = Duration::from_millis(500);
    without_operator(|cluster| {
        let proxy = Proxy::start(cluster.server)?;
        proxy.throttle("/nodenetworkconfigs/n1", 2, RETRY_AFTER);
        let _operator = start_operator(proxy.kubeconfig(), &[])?;
        cluster
            .until_configured(&["n1"])
            .expect("it is tried again");
        let writes = proxy.writes();
        let is_refused = |code: u16| code == 429;
        let refused = writes.iter().filter(|one| is_refused(one.code));
        assert_eq!(refused.count(), 2, "{writes:?}");
        // Every writer waits, not only the one that was refused.
        for refused in writes.iter().filter(|one| is_refused(one.code)) {
            let end = RETRY_AFTER.saturating_sub(Duration::from_millis(50));
            let pause = refused.at + UNDER_WAY..refused.at + end;
            let during: Vec<_> = writes
                .iter()
                .filter(|one| pause.contains(&one.at))
                .collect();
            assert!(during.is_empty(), "{during:?} came after {refused:?}");
        }
        Ok(())
    })
}

#[test]
fn a_write_that_meets_another_writers_is_made_anew_from_what_is_stored() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let proxy = Proxy::start(cluster.server)?;
        let operator = start_operator(proxy.kubeconfig(), &[])?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        let before = cluster.revision("n1")?;
        // The config is on its way when another writer changes the object.
        proxy.hold("/nodenetworkconfigs/n1");
        let billing = object("Layer2Attachment", "billing");
        let change = json!({"spec": {"mtu": 1400}});
        cluster.server.edit(&billing, &change)?;
        proxy.until_held().expect("the operator writes");
        let note = json!({"metadata": {"annotations": {"example.com/note": "kept"}}});
        let n1 = object("NodeNetworkConfig", "n1");
        cluster.server.edit(&n1, &note)?;
        let sent = proxy.writes().len();
        proxy.release();
        eventually("the change is there", || {
            Ok((cluster.revision("n1")? != before).then_some(()))
        })
        .expect("the write is tried again");
        let writes = proxy.writes();
        let to_n1 = writes.iter().skip(sent);
        let to_n1 = to_n1.filter(|one| one.path.contains("/nodenetworkconfigs/n1"));
        let codes: Vec<u16> = to_n1.map(|one| one.code).collect();
        assert_eq!(codes, [409, 200], "{writes:?}");
        let stored = cluster.get("NodeNetworkConfig", "n1")?;
        let note = &stored["metadata"]["annotations"]["example.com/note"];
        assert_eq!(note, "kept", "what others wrote is left alone");
        let status = cluster.get("Layer2Attachment", "billing")?["status"].to_string();
        assert!(
            !status.contains("WriteFailed"),
            "a conflict is no failure: {status}"
        );
        drop(operator);
        Ok(())
    })
}

#[test]
fn watches_that_break_are_trusted_again_without_an_event() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let proxy = Proxy::start(cluster.server)?;
        let operator = start_operator(proxy.kubeconfig(), &[])?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        let first = cluster.revision("n1")?;
        proxy.fail("/apis/network.t-caas.telekom.com", 503);
        proxy.cut();
        eventually("the operator notices", || {
            let log = operator.log()?;
            Ok(log
                .contains("watch failed kind=NetworkConfigRevision")
                .then_some(()))
        })?;
        proxy.heal();
        // One kind has an event; all others are as quiet as before.
        let billing = object("Layer2Attachment", "billing");
        cluster
            .server
            .edit(&billing, &json!({"spec": {"mtu": 1400}}))?;
        eventually("n1 gets the change", || {
            Ok((cluster.revision("n1")? != first).then_some(()))
        })
        .expect("watches are trusted again");
        Ok(())
    })
}

#[test]
fn an_operator_restarted_in_the_middle_of_a_rollout_goes_on_with_it() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let kubeconfig = cluster.server.operator_kubeconfig();
        let quick = [
            "--lease-duration",
            "3s",
            "--renew-deadline",
            "2s",
            "--retry-period",
            "1s",
        ];
        let operator = start_operator(kubeconfig, &quick)?;
        cluster.until_configured(&["n1"])?;
        let config = cluster.get("NodeNetworkConfig", "n1")?;
        operator.signal(Signal::KILL)?;
        let _restarted = start_operator(kubeconfig, &quick)?;
        let version = |config: &Value| text(config, "/metadata/resourceVersion").to_owned();
        for_a_while("n1 keeps its config, and n2 waits", || {
            let now = cluster.get("NodeNetworkConfig", "n1")?;
            Ok(version(&now) == version(&config) && cluster.names("NodeNetworkConfig")? == ["n1"])
        })
        .expect("the rollout is where it was");
        cluster.answer("n1", text(&config, "/spec/revision"))?;
        cluster
            .until_configured(&["n1", "n2"])
            .expect("the rollout goes on");
        let revisions = cluster.all("NetworkConfigRevision")?;
        assert_eq!(revisions.len(), 1);
        assert_eq!(cluster.revision("n2")?, text(&config, "/spec/revision"));
        Ok(())
    })
}

#[test]
fn a_definition_that_is_older_than_the_operator_is_named_and_harms_only_its_kind()
-> anyhow::Result<()> {
    const NAME: &str = "vrfs.network.t-caas.telekom.com";
    const FIELD: &str =
        "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/referenceCount";
    without_operator(|cluster| {
        let kubectl =
            |arguments: &[&str], stdin: &str| cluster.server.plane.kubectl(arguments, stdin);
        let older = json!([{"op": "remove", "path": FIELD}]).to_string();
        kubectl(&["patch", "crd", NAME, "--type=json", "-p", &older], "")?;
        let kubeconfig = cluster.server.operator_kubeconfig();
        let operator = start_operator(kubeconfig, &[])?;
        let check = || -> anyhow::Result<()> {
            eventually("the operator names the field", || {
                let log = operator.log()?;
                let mut lines = log.lines().filter(|line| line.contains("VRF m2m"));
                Ok(lines
                    .any(|line| line.contains("lacks status.referenceCount"))
                    .then_some(()))
            })?;
            cluster.until_condition(("Network", "billing-net"), ["Ready", "True", ""])?;
            cluster.until_generated(&BILLING)?;
            cluster.until_configured(&["n1"])?;
            for_a_while("it is not tried all the time", || {
                let attempts = operator
                    .log()?
                    .matches("lacks status.referenceCount")
                    .count();
                Ok(attempts < 12)
            })
        };
        let checked = check();
        let definitions = String::from_utf8(selvedge(&["crds"], "")?.stdout)?;
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        kubectl(&apply, &definitions)?;
        checked.expect("only VRFs suffer");
        cluster
            .until_condition(("VRF", "m2m"), ["Ready", "True", ""])
            .expect("its status is written once the definition is as new");
        Ok(())
    })
}

#[test]
fn a_definition_that_is_deleted_and_created_again_changes_no_node() -> anyhow::Result<()> {
    const NAME: &str = "destinations.network.t-caas.telekom.com";
    without_operator(|cluster| {
        let kubeconfig = cluster.server.operator_kubeconfig();
        let operator = start_operator(kubeconfig, &[])?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        let specs = || -> anyhow::Result<Vec<Value>> {
            let configs = cluster.all("NodeNetworkConfig")?;
            Ok(configs
                .iter()
                .map(|config| config["spec"].clone())
                .collect())
        };
        let before = specs()?;
        let meters = cluster.get("Destination", "meters")?;
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": NAME},
        });
        let stored = cluster.server.get(&definition)?.context("the definition")?;
        cluster.server.delete(&definition)?;
        eventually("the definition is gone", || {
            Ok(cluster.server.get(&definition)?.is_none().then_some(()))
        })?;
        let check = || -> anyhow::Result<()> {
            eventually("the operator notices", || {
                Ok(operator.log()?.contains("stay in effect").then_some(()))
            })?;
            // Other kinds are served as before.
            cluster.server.apply(
                "{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRF, metadata: {name: new}, \
                 spec: {vrf: new, vni: 10101, routeTarget: '64500:10101'}}",
            )?;
            cluster.until_condition(("VRF", "new"), ["Ready", "True", ""])?;
            for_a_while("no node is changed", || Ok(specs()? == before))?;
            let billing = cluster.get("Layer2Attachment", "billing")?["status"].to_string();
            anyhow::ensure!(!billing.contains("NoDestination"), "{billing}");
            Ok(())
        };
        let checked = check();
        let anew = json!({
            "apiVersion": definition["apiVersion"], "kind": definition["kind"],
            "metadata": {"name": NAME}, "spec": stored["spec"],
        });
        cluster
            .server
            .plane
            .kubectl(&["create", "-f", "-"], &anew.to_string())?;
        let wait = ["wait", "--for=condition=Established", "crd", NAME];
        cluster.server.plane.kubectl(&wait, "")?;
        checked.expect("losing a definition changes nothing");
        let again = json!({
            "apiVersion": meters["apiVersion"], "kind": meters["kind"],
            "metadata": {"name": "meters", "labels": meters["metadata"]["labels"]},
            "spec": meters["spec"],
        });
        eventually("the object is stored again", || {
            let answer = cluster.server.create(&again, super::server::Mode::Real)?;
            Ok(answer.is_ok().then_some(()))
        })?;
        cluster
            .until_condition(("Destination", "meters"), ["Ready", "True", ""])
            .expect("the kind is served again");
        assert_eq!(specs()?, before, "{}", data::name(&again));
        Ok(())
    })
}
