//! Ring 2: a review says what a change would bring, and changes nothing.

use proptest::sample::Index;
use worlds::{edit, edited, varied};

use super::{harm::running, *};
use crate::compiler::{Change, Review};

fn put(document: &Value) -> Change {
    let prepared = Prepared::read(document).expect("an object of ours");
    Change::Put(Box::new(prepared))
}

proptest! {
    #![proptest_config(laws(128))]

    /// What a review says is what a compile says after the change, and after the review everything is as it was before.
    #[test]
    fn a_review_says_what_a_change_brings_and_changes_nothing(
        world in varied(), other in varied(), edit in edit(), which in any::<Index>(), is_deleted in any::<bool>(),
    ) {
        let mut cluster = running(&world);
        let written: Vec<Value> = world.iter().filter_map(|one| cluster.document_like(one)).collect();
        let changed = if is_deleted { (!written.is_empty()).then(|| which.get(&written).clone()) } else { edited(&edit, &written, &other) };
        let Some(document) = changed else { return Ok(()) };
        let Insertion::Object(subject) = Snapshot::default().insert(&document) else { return Ok(()) };
        let change = if is_deleted { Change::Delete(subject.clone()) } else { put(&document) };

        let (snapshot, compilation) = cluster.compiler.compile();
        let (before, compiled, problems) = (snapshot.clone(), bytes(compilation), Arc::clone(&compilation.problems));
        let writes = cluster.compiler.writes().clone();
        let review = cluster.compiler.review(change);
        prop_assert!(*cluster.compiler.snapshot() == before, "the objects are others now");
        prop_assert_eq!(bytes(cluster.compiler.compile().1), compiled);
        prop_assert!(*cluster.compiler.writes() == writes, "something else is to be written now");

        if is_deleted {
            cluster.remove(&subject);
        } else {
            cluster.put(&document);
        }
        let after = &cluster.compiler.compile().1.problems;
        let own = after.iter().filter(|one| one.subject == subject);
        prop_assert_eq!(review.own, own.cloned().collect::<Vec<_>>());
        let others = after.iter().filter(|one| one.subject != subject && !problems.contains(one));
        prop_assert_eq!(review.others, others.cloned().collect::<Vec<_>>());
    }
}

const GROUP: &str = "openpe.openperouter.github.io/v1alpha1";

fn fabric() -> Vec<Value> {
    let node = |name: &str, rack: &str| {
        let metadata = json!({"name": name, "labels": {"rack": rack}});
        json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    };
    let underlay = json!({
        "asn": 64512, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
        "neighbors": [{"asn": 64500, "address": "192.0.2.1"}],
    });
    let metadata = json!({"name": "fabric", "namespace": "default"});
    let underlay = object(GROUP, "Underlay", metadata, underlay);
    vec![
        node("n1", "r1"),
        node("n2", "r2"),
        underlay,
        l3vni("red", 5001, "red", None),
    ]
}

fn l3vni(name: &str, vni: u32, vrf: &str, rack: Option<&str>) -> Value {
    let mut spec = json!({"vrf": vrf, "vni": vni});
    if let Some(rack) = rack {
        spec["nodeSelector"] = json!({"matchLabels": {"rack": rack}});
    }
    let metadata = json!({"name": name, "namespace": "default"});
    object(GROUP, "L3VNI", metadata, spec)
}

fn reasons(problems: &[Problem]) -> Vec<&'static str> {
    problems.iter().map(|one| one.kind.reason()).collect()
}

#[test]
fn a_new_object_is_reviewed_before_it_is_there() {
    let mut cluster = running(&fabric());
    let review = cluster
        .compiler
        .review(put(&l3vni("blue", 5001, "blue", Some("r2"))));
    assert_eq!(reasons(&review.own), ["VniTaken"]);
    assert_eq!(review.others, []);
    let fine = put(&l3vni("blue", 5002, "blue", None));
    assert_eq!(cluster.compiler.review(fine), Review::default());
}

#[test]
fn an_edit_that_would_stop_another_object_says_which() {
    let mut world = fabric();
    world.push(l3vni("blue", 5002, "blue", None));
    let mut cluster = running(&world);
    // An Underlay without a tunnel endpoint takes both VRFs off their nodes.
    let mut bare = cluster.document_like(&world[2]).expect("it is there");
    bare["spec"]["evpn"] = Value::Null;
    let review = cluster.compiler.review(put(&bare));
    let said: Vec<String> = review.own.iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|one| one.contains("L3VNI"))
            || review
                .others
                .iter()
                .any(|one| one.subject.kind == Kind::L3Vni),
        "{said:?} {:?}",
        review.others
    );
}

#[test]
fn what_is_wrong_with_others_already_speaks_against_no_change() {
    let mut world = fabric();
    world.push(l3vni("broken", 5001, "broken", None));
    let mut cluster = running(&world);
    let fine = put(&l3vni("blue", 5002, "blue", None));
    assert_eq!(cluster.compiler.review(fine), Review::default());
}

#[test]
fn two_underlays_are_compared_although_no_node_is_there_that_both_select() {
    let mut cluster = running(&fabric());
    let mut second = fabric().remove(2);
    second["metadata"]["name"] = json!("second");
    second["spec"]["nodeSelector"] = json!({"matchLabels": {"rack": "r9"}});
    let review = cluster.compiler.review(put(&second));
    let meets = |one: &Problem| one.kind.reason() == "UnderlaysMayMeet";
    assert!(review.own.iter().any(meets), "{:?}", review.own);
    assert!(review.others.iter().any(meets), "{:?}", review.others);
    second["spec"]["nodeSelector"] = json!({"matchLabels": {"rack": "r1"}});
    let review = cluster.compiler.review(put(&second));
    assert_eq!(reasons(&review.own), ["SecondUnderlay"]);
}
