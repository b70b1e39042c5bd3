use kube::api::DynamicObject;

use super::{
    plan::{KINDS, writes},
    *,
};
use crate::platform::{self, Operation, Write};

fn secrets(of: &[(&str, &str)]) -> BTreeSet<Secret> {
    let owned = |(namespace, name): &(&str, &str)| ((*namespace).to_owned(), (*name).to_owned());
    of.iter().map(owned).collect()
}

/// Accounts whose kinds have been listed and are empty.
fn listed() -> Accounts {
    let mut accounts = Accounts::new(latest::channel(None).1);
    for kind in KINDS {
        accounts.apply(kind, Change::ListStarted(kind.api_version));
        accounts.apply(kind, Change::ListCompleted);
    }
    accounts
}

fn plan(accounts: &Accounts, node: &str, of: Option<&BTreeSet<Secret>>) -> Vec<Write> {
    writes(&accounts.objects.store, &accounts.namespaces, node, of).expect("all kinds are known")
}

/// Stores what is written, as the API server would.
fn perform(accounts: &mut Accounts, writes: &[Write]) {
    for write in writes {
        let change = match &write.operation {
            Operation::Create(content) | Operation::Apply(content) => {
                let mut content = content.clone();
                let fields = serde_json::json!({
                    "manager": crate::FIELD_MANAGER, "operation": "Apply",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:rules": {}},
                });
                if content.get("rules").is_some() {
                    content["metadata"]["managedFields"] = serde_json::json!([fields]);
                }
                let object: DynamicObject = serde_json::from_value(content).expect("an object");
                Change::Applied(Box::new(object))
            }
            Operation::Delete(_) => {
                let (_, _, namespace, name) = &write.identity;
                let listed = accounts.objects.store.get(write.kind);
                let Some(platform::store::Known::Listed(listed)) = listed else {
                    panic!("it is listed");
                };
                let stored = &listed.objects[&(namespace.clone(), name.clone())];
                Change::Deleted(stored.clone())
            }
            other => panic!("{other:?}"),
        };
        accounts.apply(write.kind, change);
    }
}

/// Kind and namespace of what is written.
fn shown(writes: &[Write]) -> Vec<String> {
    let one = |write: &Write| {
        let (_, kind, namespace, name) = &write.identity;
        assert_eq!(name, "selvedge-agent-n1");
        format!("{kind} {}", namespace.as_deref().unwrap_or("-"))
    };
    writes.iter().map(one).collect()
}

#[test]
fn roles_come_before_what_binds_them_and_the_account_comes_last() {
    let accounts = listed();
    let passwords = secrets(&[("selvedge-system", "leaf"), ("tenant", "peer")]);
    let writes = plan(&accounts, "n1", Some(&passwords));
    let order = [
        "ClusterRole -",
        "Role selvedge-system",
        "Role tenant",
        "ClusterRoleBinding -",
        "RoleBinding selvedge-system",
        "RoleBinding tenant",
        "ServiceAccount selvedge-system",
    ];
    assert_eq!(shown(&writes), order);
}

#[test]
fn every_rule_of_an_agent_names_its_own_objects() {
    let passwords = secrets(&[("selvedge-system", "leaf"), ("tenant", "peer")]);
    let writes = plan(&listed(), "n1", Some(&passwords));
    let rules = writes.iter().flat_map(|write| {
        let rules = write.content.get("rules").and_then(|it| it.as_array());
        rules.cloned().unwrap_or_default()
    });
    let mut named = BTreeSet::new();
    for rule in rules {
        if rule["resources"][0] == "bgpsessionstates" {
            // What it names is decided by a policy; it must not read those of others.
            assert_eq!(
                rule["verbs"],
                serde_json::json!(["create", "patch", "delete"])
            );
            continue;
        }
        let names = rule["resourceNames"].as_array().cloned();
        let names = names.unwrap_or_default();
        assert!(!names.is_empty(), "{rule} is about all objects");
        named.extend(names.iter().map(ToString::to_string));
    }
    let own = ["\"leaf\"", "\"n1\"", "\"peer\""].map(str::to_owned);
    assert_eq!(named, own.into());
}

#[test]
fn what_is_there_is_not_written_again_and_a_secret_that_is_read_no_longer_is_taken_away() {
    let mut accounts = listed();
    let both = secrets(&[("selvedge-system", "leaf"), ("tenant", "peer")]);
    let written = plan(&accounts, "n1", Some(&both));
    perform(&mut accounts, &written);
    assert_eq!(shown(&plan(&accounts, "n1", Some(&both))), [""; 0]);
    let none = BTreeSet::new();
    let less = plan(&accounts, "n1", Some(&none));
    let expected = ["Role selvedge-system", "Role tenant", "RoleBinding tenant"];
    assert_eq!(shown(&less), expected);
    assert!(matches!(less[0].operation, Operation::Apply(_)));
    assert!(matches!(less[1].operation, Operation::Delete(_)));
}

#[test]
fn a_node_that_is_forgotten_loses_its_account_and_every_role() {
    let mut accounts = listed();
    let passwords = secrets(&[("tenant", "peer")]);
    let written = plan(&accounts, "n1", Some(&passwords));
    perform(&mut accounts, &written);
    let gone = plan(&accounts, "n1", None);
    assert_eq!(gone.len(), written.len());
    let is_deletion = |write: &Write| matches!(write.operation, Operation::Delete(_));
    assert!(gone.iter().all(is_deletion));
    perform(&mut accounts, &gone);
    assert_eq!(shown(&plan(&accounts, "n1", None)), [""; 0]);
}

#[test]
fn nothing_is_done_while_a_kind_is_not_known_as_it_is() {
    let mut accounts = listed();
    let [first, ..] = KINDS;
    accounts.apply(first, Change::Failed("no answer".to_owned()));
    let none = BTreeSet::new();
    let writes = writes(
        &accounts.objects.store,
        &accounts.namespaces,
        "n1",
        Some(&none),
    );
    assert!(writes.is_none());
}

#[test]
fn only_nodes_that_something_changed_for_are_looked_at() {
    let mut accounts = listed();
    let access = |nodes: &[(&str, &[(&str, &str)])]| -> Arc<Access> {
        let nodes = nodes.iter();
        let one = nodes.map(|(node, of)| ((*node).to_owned(), secrets(of)));
        Arc::new(one.collect())
    };
    accounts.set(&access(&[("n1", &[]), ("n2", &[])]));
    assert_eq!(accounts.unsettled, ["n1", "n2"].map(str::to_owned).into());
    accounts.unsettled.clear();
    accounts.set(&access(&[("n1", &[("a", "b")]), ("n2", &[])]));
    assert_eq!(accounts.unsettled, ["n1"].map(str::to_owned).into());
}
