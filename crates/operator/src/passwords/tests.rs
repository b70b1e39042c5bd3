use k8s_openapi::ByteString;
use serde_json::json;

use super::{plan::*, *};
use crate::platform::{Operation, Write};

fn wanted(password: Option<&str>, is_in_effect: bool) -> Wanted {
    Wanted {
        node: "n1".to_owned(),
        password: password.map(|text| text.parse().expect("a password")),
        is_in_effect,
    }
}

fn stored(name: &str, password: &str) -> (String, Secret) {
    let secret = json!({
        "metadata": {"name": name, "namespace": AGENT_LEASES, "uid": "u", "resourceVersion": "7"},
        "data": {"password": ByteString(password.as_bytes().to_vec())},
    });
    let secret = serde_json::from_value(secret).expect("a Secret");
    (name.to_owned(), secret)
}

fn shown(writes: &[(String, Write)]) -> Vec<String> {
    let one = |(name, write): &(String, Write)| {
        let what = match &write.operation {
            Operation::Create(content) => format!("create {}", content["data"]["password"]),
            Operation::Apply(content) => format!("apply {}", content["data"]["password"]),
            Operation::Delete(_) => "delete".to_owned(),
            other => panic!("{other:?}"),
        };
        format!("{name}: {what}")
    };
    writes.iter().map(one).collect()
}

#[test]
fn a_password_comes_into_a_secret_changes_with_its_object_and_goes_with_it() {
    let name = "selvedge-agent-n1-password-0";
    let none = BTreeMap::new();
    let now = Passwords::from([(name.to_owned(), wanted(Some("one"), true))]);
    let made = writes(&none, &now);
    assert_eq!(shown(&made), [format!("{name}: create \"b25l\"")]);
    let there = BTreeMap::from([stored(name, "one")]);
    assert_eq!(shown(&writes(&there, &now)), [""; 0]);
    let changed = Passwords::from([(name.to_owned(), wanted(Some("two"), true))]);
    let applied = writes(&there, &changed);
    assert_eq!(shown(&applied), [format!("{name}: apply \"dHdv\"")]);
    let gone = writes(&there, &Passwords::new());
    assert_eq!(shown(&gone), [format!("{name}: delete")]);
}

#[test]
fn a_password_that_is_not_in_effect_changes_no_secret_that_is_there() {
    let name = "selvedge-agent-n1-password-0";
    let there = BTreeMap::from([stored(name, "one")]);
    for unknown in [wanted(Some("two"), false), wanted(None, false)] {
        let now = Passwords::from([(name.to_owned(), unknown)]);
        assert_eq!(shown(&writes(&there, &now)), [""; 0]);
    }
    let now = Passwords::from([(name.to_owned(), wanted(Some("two"), false))]);
    let missing = writes(&BTreeMap::new(), &now);
    assert_eq!(shown(&missing), [format!("{name}: create \"dHdv\"")]);
}

#[test]
fn a_config_says_which_version_of_each_secret_there_is() {
    let name = "selvedge-agent-n1-password-0a";
    let now = Passwords::from([(name.to_owned(), wanted(Some("one"), true))]);
    let there: Vec<Secret> = [stored(name, "one"), stored("another", "x")]
        .into_iter()
        .map(|(_, secret)| secret)
        .collect();
    let notes = notes(&there, &now);
    let [note] = notes.as_slice() else {
        panic!("one node, one note: {notes:?}");
    };
    assert_eq!(note.identity.3, "n1");
    let change = json!({"metadata": {"annotations": {"passwords.selvedge.dev/0a": "7"}}});
    assert_eq!(note.operation, Operation::Merge(change));
}

#[test]
fn no_text_of_what_is_wanted_shows_a_password() {
    let now = wanted(Some("not-to-be-seen"), true);
    assert!(!format!("{now:?}").contains("not-to-be-seen"));
}
