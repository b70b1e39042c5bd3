//! Our definitions in a real API server.

use serde_json::Value;

use super::server::{Mode, with_server};
use crate::{
    data::{self, text},
    support::{repository, selvedge},
};

#[test]
fn every_kind_is_served_without_a_warning() -> anyhow::Result<()> {
    // Warnings are errors where the definitions are installed.
    with_server(|server| {
        let definitions = server.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")?;
        for path in data::listed(&repository("deploy/crds"))? {
            let wanted = data::objects(&path)?;
            let name = wanted.first().map(data::name).unwrap_or_default();
            let served = definitions
                .iter()
                .find(|definition| data::name(definition) == name);
            let conditions = served.map(|served| &served["status"]["conditions"]);
            let holds = |kind: &str| {
                let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
                conditions
                    .filter(|condition| condition["type"] == kind)
                    .any(|condition| condition["status"] == "True")
            };
            assert!(holds("Established") && holds("NamesAccepted"), "{name}");
            assert!(!holds("NonStructuralSchema"), "{name}");
        }
        Ok(())
    })
}

#[test]
fn an_unknown_field_is_refused_by_kubectl_and_by_validate() -> anyhow::Result<()> {
    let objects = [
        "{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRF, metadata: {name: x}, spec: {vrf: a, vnii: 7}}",
        "{apiVersion: openpe.openperouter.github.io/v1alpha1, kind: L2VNI, metadata: {name: x}, spec: {vni: 7, vnii: 7}}",
        "{apiVersion: frrk8s.metallb.io/v1beta1, kind: FRRConfiguration, metadata: {name: x}, spec: {bgp: {routers: [{asn: 7, vnii: 7}]}}}",
        "{apiVersion: multinetwork.networking.x-k8s.io/v1alpha1, kind: PodNetwork, metadata: {name: x}, spec: {provider: foo.io/bar, vnii: 7}}",
        "{apiVersion: selvedge.dev/v1alpha1, kind: Settings, metadata: {name: default}, spec: {rollout: {vnii: 7}}}",
    ];
    with_server(|server| {
        for object in objects {
            let apply = ["apply", "--validate=strict", "-f", "-"];
            let refusal = server.plane.kubectl(&apply, object).err();
            let refusal = refusal.map(|error| format!("{:#}", anyhow::Error::from(error)));
            let refusal = refusal.unwrap_or_default();
            assert!(refusal.contains("unknown field"), "{object}: {refusal}");
            assert!(refusal.contains("vnii"), "{object}: {refusal}");

            let output = selvedge(&["validate", "-f", "-"], object)?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{object}: {said}");
            assert!(said.contains("vnii: unknown field"), "{object}: {said}");

            // Without the field it is fine: nothing else was wrong.
            let fine: Value =
                serde_saphyr::from_str(&object.replace(", vnii: 7", "").replace("vnii: 7", ""))?;
            let answer = server.create(&fine, Mode::Dry)?;
            assert!(answer.is_ok(), "{}: {answer:?}", text(&fine, "/kind"));
        }
        Ok(())
    })
}
