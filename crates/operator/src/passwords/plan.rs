//! The Secrets as objects, and what is to be written so that they are as they must be. Pure.

use std::collections::BTreeMap;

use api::selvedge::AGENT_LEASES;
use compiler::platform::PlatformKind;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::api::{ObjectMeta, Preconditions};
use serde_json::{Value, json};

use super::{Passwords, Wanted};
use crate::platform::{MANAGED_BY, OURS, Operation, Write, based_on};

/// Selects our Secrets.
pub(super) const SELECTOR: &str =
    "app.kubernetes.io/managed-by=selvedge,app.kubernetes.io/component=agent-password";
const COMPONENT: &str = "app.kubernetes.io/component";
const PASSWORD: &str = "agent-password";

/// How the annotations of a config begin that say which version of a Secret there is.
const NOTE: &str = "passwords.selvedge.dev/";

const SECRETS: PlatformKind = PlatformKind {
    api_version: "v1",
    kind: "Secret",
    plural: "secrets",
};
const CONFIGS: PlatformKind = PlatformKind {
    api_version: "network.t-caas.telekom.com/v1alpha1",
    kind: "NodeNetworkConfig",
    plural: "nodenetworkconfigs",
};

/// What is to be written, by the name of the Secret.
pub(super) fn writes(
    stored: &BTreeMap<String, Secret>,
    wanted: &Passwords,
) -> Vec<(String, Write)> {
    let mut writes = Vec::new();
    for (name, wanted) in wanted {
        let operation = operation(stored.get(name), name, wanted);
        writes.extend(operation.map(|operation| (name.clone(), write(name, operation))));
    }
    let stale = stored
        .iter()
        .filter(|(name, _)| !wanted.contains_key(*name));
    writes.extend(stale.map(|(name, secret)| {
        let stored = Preconditions {
            uid: secret.metadata.uid.clone(),
            resource_version: secret.metadata.resource_version.clone(),
        };
        (name.clone(), write(name, Operation::Delete(stored)))
    }));
    writes
}

fn operation(stored: Option<&Secret>, name: &str, wanted: &Wanted) -> Option<Operation> {
    let password = wanted.password.as_ref()?.reveal().as_bytes();
    let Some(stored) = stored else {
        // Version 0 is that of an object that does not exist: a Secret of another program stays unchanged.
        let nothing = ObjectMeta {
            resource_version: Some("0".to_owned()),
            ..ObjectMeta::default()
        };
        return Some(Operation::Create(based_on(
            &nothing,
            &secret(name, password),
        )));
    };
    let data = stored.data.as_ref();
    let has = data.and_then(|data| data.get("password"));
    let is_same = has.is_some_and(|has| has.0 == password);
    let is_due = wanted.is_in_effect && !is_same;
    is_due.then(|| Operation::Apply(based_on(&stored.metadata, &secret(name, password))))
}

fn secret(name: &str, password: &[u8]) -> Value {
    json!({
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {
            "name": name,
            "namespace": AGENT_LEASES,
            "labels": {MANAGED_BY: OURS, COMPONENT: PASSWORD},
        },
        "type": "kubernetes.io/basic-auth",
        "data": {"password": ByteString(password.to_vec())},
    })
}

fn write(name: &str, operation: Operation) -> Write {
    Write {
        identity: (
            SECRETS.api_version,
            SECRETS.kind,
            Some(AGENT_LEASES.to_owned()),
            name.to_owned(),
        ),
        kind: SECRETS,
        served: SECRETS.api_version,
        // It is shown where something goes wrong.
        content: Value::Null,
        operation,
    }
}

/// Notes in the metadata of configs which version of a Secret there is: an agent that sees another version reads it.
pub(super) fn notes(stored: &[Secret], wanted: &Passwords) -> Vec<Write> {
    let mut versions: BTreeMap<&str, BTreeMap<String, &str>> = BTreeMap::new();
    for secret in stored {
        let metadata = &secret.metadata;
        let (Some(name), Some(version)) = (&metadata.name, &metadata.resource_version) else {
            continue;
        };
        let Some(wanted) = wanted.get(name) else {
            continue;
        };
        let hash = name.rsplit('-').next().unwrap_or_default();
        let versions = versions.entry(&wanted.node).or_default();
        versions.insert(format!("{NOTE}{hash}"), version);
    }
    let note = |(node, versions): (&str, BTreeMap<String, &str>)| Write {
        identity: (CONFIGS.api_version, CONFIGS.kind, None, node.to_owned()),
        kind: CONFIGS,
        served: CONFIGS.api_version,
        content: Value::Null,
        operation: Operation::Merge(json!({"metadata": {"annotations": versions}})),
    };
    versions.into_iter().map(note).collect()
}
