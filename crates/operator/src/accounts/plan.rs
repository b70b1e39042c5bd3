//! What the agent of a node may do, as objects, and what is to be written so that it is so. Pure.

use std::collections::{BTreeMap, BTreeSet};

use api::selvedge::{AGENT_ACCOUNT, AGENT_LEASES};
use compiler::platform::PlatformKind;
use kube::api::{ObjectMeta, Preconditions};
use serde_json::{Value, json};

use super::Secret;
use crate::platform::{
    MANAGED_BY, OURS, Operation, Write, based_on, differs,
    store::{Known, Listed, Name, Store},
};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const FRR_GROUP: &str = "frrk8s.metallb.io";
const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

const ACCOUNTS: PlatformKind = kind("v1", "ServiceAccount", "serviceaccounts");
const ROLES: PlatformKind = kind(RBAC, "Role", "roles");
const BINDINGS: PlatformKind = kind(RBAC, "RoleBinding", "rolebindings");
const CLUSTER_ROLES: PlatformKind = kind(RBAC, "ClusterRole", "clusterroles");
const CLUSTER_BINDINGS: PlatformKind = kind(RBAC, "ClusterRoleBinding", "clusterrolebindings");

/// The kinds, in the order in which they are written: roles before what binds them; the account comes last, so that an agent that
/// has a token may do all that it needs.
pub(super) const KINDS: [PlatformKind; 5] =
    [CLUSTER_ROLES, ROLES, CLUSTER_BINDINGS, BINDINGS, ACCOUNTS];

/// Selects our objects.
pub(super) const SELECTOR: &str =
    "app.kubernetes.io/managed-by=selvedge,app.kubernetes.io/component=agent-account";
const COMPONENT: &str = "app.kubernetes.io/component";
const AGENT_OBJECT: &str = "agent-account";

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str) -> PlatformKind {
    PlatformKind {
        api_version,
        kind,
        plural,
    }
}

/// The node whose agent an object with this name is for.
pub(super) fn node(name: &str) -> Option<&str> {
    name.strip_prefix(AGENT_ACCOUNT)?.strip_prefix('-')
}

/// The name of all objects for the agent of a node.
fn name(node: &str) -> String {
    format!("{AGENT_ACCOUNT}-{node}")
}

/// What is to be written for a node, in this order; nothing is known if a kind is not known as it is now. Without Secrets, the node
/// has no agent.
pub(super) fn writes(
    store: &Store,
    namespaces: &BTreeSet<String>,
    node: &str,
    secrets: Option<&BTreeSet<Secret>>,
) -> Option<Vec<Write>> {
    let wanted = secrets.map_or_else(BTreeMap::new, |secrets| wanted(node, secrets));
    let mut writes = Vec::new();
    for kind in KINDS {
        let listed = match store.get(kind)? {
            Known::Listed(listed) if listed.failing.is_none() => listed,
            Known::Listed(_) | Known::NotListed(_) | Known::NotServed => return None,
        };
        let places = namespaces.iter().cloned().map(Some);
        let places = places.chain([None, Some(AGENT_LEASES.to_owned())]);
        let stored = places.map(|place| (place, name(node)));
        let stored = stored.filter(|name| listed.objects.contains_key(name));
        let wanted = wanted.get(&kind);
        let names = wanted.into_iter().flat_map(BTreeMap::keys).cloned();
        let names: BTreeSet<Name> = names.chain(stored).collect();
        for name in names {
            let content = wanted.and_then(|wanted| wanted.get(&name));
            writes.extend(write(kind, listed, name, content));
        }
    }
    Some(writes)
}

/// What makes one object what it must be; nothing, if it is.
fn write(
    kind: PlatformKind,
    listed: &Listed,
    name: Name,
    content: Option<&Value>,
) -> Option<Write> {
    let stored = listed.objects.get(&name);
    let operation = match (stored, content) {
        (Some(stored), Some(content)) if differs(stored, content) => {
            Operation::Apply(based_on(&stored.metadata, content))
        }
        (None, Some(content)) => {
            // Version 0 is that of an object that does not exist.
            let nothing = ObjectMeta {
                resource_version: Some("0".to_owned()),
                ..ObjectMeta::default()
            };
            Operation::Create(based_on(&nothing, content))
        }
        (Some(stored), None) if stored.metadata.deletion_timestamp.is_none() => {
            Operation::Delete(Preconditions {
                uid: stored.metadata.uid.clone(),
                resource_version: stored.metadata.resource_version.clone(),
            })
        }
        (Some(_), _) | (None, None) => return None,
    };
    let (namespace, name) = name;
    Some(Write {
        identity: (kind.api_version, kind.kind, namespace, name),
        kind,
        served: kind.api_version,
        content: content.cloned().unwrap_or_default(),
        operation,
    })
}

/// All objects for the agent of a node.
fn wanted(node: &str, secrets: &BTreeSet<Secret>) -> BTreeMap<PlatformKind, BTreeMap<Name, Value>> {
    let mut wanted: BTreeMap<PlatformKind, BTreeMap<Name, Value>> = BTreeMap::new();
    let mut add = |kind: PlatformKind, namespace: Option<&str>, body: Value| {
        let name = (namespace.map(str::to_owned), name(node));
        let object = manifest(kind, &name, body);
        wanted.entry(kind).or_default().insert(name, object);
    };
    add(ACCOUNTS, Some(AGENT_LEASES), json!({}));
    add(CLUSTER_ROLES, None, json!({"rules": own_objects(node)}));
    add(CLUSTER_BINDINGS, None, binding(node, CLUSTER_ROLES));
    let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    by_namespace.entry(AGENT_LEASES).or_default();
    for (namespace, name) in secrets {
        by_namespace.entry(namespace).or_default().push(name);
    }
    for (namespace, secrets) in by_namespace {
        let lease = (namespace == AGENT_LEASES).then(|| {
            let verbs = ["get", "create", "patch"];
            rule("coordination.k8s.io", &["leases"], &[node], &verbs)
        });
        let sessions = (namespace == AGENT_LEASES).then(session_states);
        let passwords = (!secrets.is_empty()).then(|| rule("", &["secrets"], &secrets, &["get"]));
        let rules = lease.into_iter().chain(sessions).chain(passwords);
        let rules: Vec<Value> = rules.collect();
        add(ROLES, Some(namespace), json!({ "rules": rules }));
        add(BINDINGS, Some(namespace), binding(node, ROLES));
    }
    wanted
}

/// The rule for the states of BGP sessions. Their names depend on the sessions, so that no rule can name them: a
/// ValidatingAdmissionPolicy (`deploy/agent.yaml`) lets an agent write those of its own node alone. It reads none.
fn session_states() -> Value {
    json!({
        "apiGroups": [FRR_GROUP],
        "resources": ["bgpsessionstates", "bgpsessionstates/status"],
        "verbs": ["create", "patch", "delete"],
    })
}

/// The rules for objects of the cluster that are named like the node.
fn own_objects(node: &str) -> [Value; 5] {
    let ours = |resources: &[&str], verbs: &[&str]| {
        rule("network.t-caas.telekom.com", resources, &[node], verbs)
    };
    let statuses = ["nodenetworkstatuses", "nodenetworkstatuses/status"];
    [
        ours(&["nodenetworkconfigs"], &["get", "list", "watch"]),
        ours(&["nodenetworkconfigs/status"], &["get", "patch"]),
        ours(&statuses, &["get", "create", "patch"]),
        rule(
            FRR_GROUP,
            &["frrnodestates", "frrnodestates/status"],
            &[node],
            &["get", "create", "patch", "delete"],
        ),
        // The annotation selvedge.dev/hold, and the taint that is removed when the first config is confirmed.
        rule("", &["nodes"], &[node], &["get", "list", "watch", "patch"]),
    ]
}

fn rule(group: &str, resources: &[&str], names: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "resourceNames": names, "verbs": verbs})
}

fn binding(node: &str, role: PlatformKind) -> Value {
    let account = json!({"kind": "ServiceAccount", "name": name(node), "namespace": AGENT_LEASES});
    json!({
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": role.kind, "name": name(node)},
        "subjects": [account],
    })
}

fn manifest(kind: PlatformKind, (namespace, name): &Name, body: Value) -> Value {
    let labels = [(MANAGED_BY, OURS), (COMPONENT, AGENT_OBJECT)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: namespace.clone(),
        labels: Some(labels.into()),
        ..ObjectMeta::default()
    };
    let mut manifest = json!({
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
    });
    if let (Some(manifest), Value::Object(body)) = (manifest.as_object_mut(), body) {
        manifest.extend(body);
    }
    manifest
}
