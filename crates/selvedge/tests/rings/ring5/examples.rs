//! Every example of the source documents, given to a real API server.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::server::{Mode, Server, with_server};
use crate::data::{self, Example, text};

/// What the examples take for granted: a namespace, and kinds of Cluster API that are none of ours and may say what they like.
const AROUND: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: openperouter-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: inclusterippools.ipam.cluster.x-k8s.io}
spec:
  group: ipam.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: InClusterIPPool, plural: inclusterippools}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: infobloxippools.ipam.cluster.x-k8s.io}
spec:
  group: ipam.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: InfobloxIPPool, plural: infobloxippools}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

#[test]
fn every_example_of_the_source_documents_is_taken() -> anyhow::Result<()> {
    with_server(|server| {
        server.plane.kubectl(&["apply", "-f", "-"], AROUND)?;
        let wait = ["wait", "--for=condition=Established", "crd", "--all"];
        server.plane.kubectl(&wait, "")?;
        let (mut failures, mut taken, mut statuses) = (Vec::new(), 0, 0);
        for example in data::examples()? {
            for object in example.objects()? {
                let object = lifted(&object);
                match take(server, &object)? {
                    Ok(has_status) => {
                        taken += 1;
                        statuses += usize::from(has_status);
                    }
                    Err(failure) => failures.push(format!("{}: {failure}", example.file)),
                }
            }
        }
        // Other tests have the released definitions of pools.
        let pools = ["inclusterippools", "infobloxippools"];
        let pools = pools.map(|plural| format!("{plural}.ipam.cluster.x-k8s.io"));
        let [first, second] = &pools;
        let delete = ["delete", "crd", first, second];
        server.plane.kubectl(&delete, "")?;
        eprintln!("{taken} objects of examples, {statuses} statuses");
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        Ok(())
    })
}

/// Creates an object without its status, then gives it its status; whether it had one.
fn take(server: &Server, object: &Value) -> anyhow::Result<Result<bool, String>> {
    let mut without = object.clone();
    let status = without
        .as_object_mut()
        .and_then(|fields| fields.remove("status"));
    if let Err(refusal) = server.create(&without, Mode::Real)? {
        return Ok(Err(refusal.message));
    }
    // The status of a claim needs an allocation, and has a test of its own.
    let status = status.filter(|_| object["kind"] != "ResourceClaim");
    let result = match &status {
        Some(status) => match server.replace_status(object)? {
            Ok(stored) if keeps(&stored["status"], status) => Ok(true),
            Ok(stored) => Err(format!("status {status} became {}", stored["status"])),
            Err(refusal) => Err(format!("status: {}", refusal.message)),
        },
        None => Ok(false),
    };
    server.delete(object)?;
    Ok(result)
}

/// Whether everything of `wanted` is in `stored`. A field that is null is not there.
fn keeps(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (_, Value::Null) => true,
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| keeps(stored.get(name).unwrap_or(&Value::Null), wanted)),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored
                    .iter()
                    .zip(wanted)
                    .all(|(stored, wanted)| keeps(stored, wanted))
        }
        _ => stored == wanted,
    }
}

/// The object in the version that a released server takes.
fn lifted(object: &Value) -> Value {
    let mut object = object.clone();
    match (text(&object, "/apiVersion"), text(&object, "/kind")) {
        // The examples of the document spell their group in another way than its text.
        ("multinetwork.networking.k8s.io/v1", "PodNetwork") => {
            object["apiVersion"] = json!("multinetwork.networking.x-k8s.io/v1alpha1");
        }
        // What was under `basic` is on the device itself.
        ("resource.k8s.io/v1beta1", "ResourceSlice") => {
            object["apiVersion"] = json!("resource.k8s.io/v1");
            let devices = object["spec"]["devices"].as_array_mut();
            for device in devices
                .into_iter()
                .flatten()
                .filter_map(Value::as_object_mut)
            {
                if let Some(Value::Object(basic)) = device.remove("basic") {
                    device.extend(basic);
                }
            }
        }
        // What a request says is under `exactly`.
        ("resource.k8s.io/v1beta1", "ResourceClaim") => {
            object["apiVersion"] = json!("resource.k8s.io/v1");
            let requests = object
                .pointer_mut("/spec/devices/requests")
                .and_then(Value::as_array_mut);
            for request in requests.into_iter().flatten() {
                let mut exactly = request.clone();
                let name = exactly
                    .as_object_mut()
                    .and_then(|fields| fields.remove("name"));
                *request = json!({"name": name, "exactly": exactly});
            }
        }
        _ => {}
    }
    object
}

#[test]
fn both_spellings_of_the_group_of_pod_networks_are_one_object() -> anyhow::Result<()> {
    let examples = data::examples()?;
    let mut pairs = 0;
    for example in &examples {
        let Some(original) = example.file.strip_suffix("-variant-served-group.yaml") else {
            continue;
        };
        let original = format!("{original}.yaml");
        let is_original = |other: &&Example| other.file == original;
        let original = examples.iter().find(is_original).context("the original")?;
        let lift = |example: &Example| -> anyhow::Result<Vec<Value>> {
            Ok(example.objects()?.iter().map(lifted).collect())
        };
        assert_eq!(lift(original)?, lift(example)?, "{}", example.file);
        pairs += 1;
    }
    assert_eq!(pairs, 2);
    Ok(())
}

/// The example shows `status.devices` alone. A server takes an entry only for a device that was allocated for a request, so the request
/// comes from the document's other example of this claim, and the allocation from here.
#[test]
fn the_status_of_a_claim_is_taken_once_its_device_is_allocated() -> anyhow::Result<()> {
    with_server(|server| {
        let example = |file: &str| -> anyhow::Result<Value> {
            let object = data::objects(&data::seeds().join(file))?;
            Ok(lifted(object.first().context("an object")?))
        };
        let mut claim = example("004/05-resourceclaim-request.yaml")?;
        let devices = example("004/04-resourceclaim-status.yaml")?["status"]["devices"].clone();
        let created = server.create(&claim, Mode::Real)?;
        anyhow::ensure!(created.is_ok(), "{created:?}");
        let of_device = |field: &str| devices[0][field].clone();
        claim["status"] = json!({
            "allocation": {"devices": {"results": [{
                "request": "req-blue",
                "driver": of_device("driver"),
                "pool": of_device("pool"),
                "device": of_device("device"),
            }]}},
            "devices": devices,
        });
        let stored = server.replace_status(&claim)?;
        server.delete(&claim)?;
        let stored = stored.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        assert!(keeps(&stored["status"]["devices"], &devices), "{stored}");
        Ok(())
    })
}
