//! Ring 2: what a mistake may cost in a running cluster: nothing.

use proptest::sample::Index;

use super::{
    changes::{Cluster, varied},
    *,
};

/// How an object of a running cluster is edited.
#[derive(Clone, Debug)]
enum Edit {
    /// It becomes what it is in another world.
    Replace(Index),
    /// A field becomes that of another object of its kind.
    Copy(Index, Index, Index),
    /// A field becomes something that cannot be meant.
    Spoil(Index, Index, u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    prop_oneof![
        1 => index().prop_map(Edit::Replace),
        5 => (index(), index(), index()).prop_map(|(one, other, field)| Edit::Copy(one, other, field)),
        2 => (index(), index(), any::<u8>()).prop_map(|(one, field, how)| Edit::Spoil(one, field, how)),
    ]
}

/// The paths of all values of a document that are neither lists nor objects.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{path}/{}", name.replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                leaves(value, &format!("{path}/{place}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.push(path.to_owned());
        }
    }
}

fn leaves_of(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    leaves(&document["spec"], "/spec", &mut found);
    found
}

/// The object as it is edited; nothing where that cannot be done.
fn edited(edit: &Edit, written: &[Value], other: &[Value]) -> Option<Value> {
    if written.is_empty() {
        return None;
    }
    match edit {
        Edit::Replace(one) => {
            let one = one.get(written);
            let same = |other: &&Value| {
                other["kind"] == one["kind"]
                    && other["metadata"]["name"] == one["metadata"]["name"]
                    && other["metadata"]["namespace"] == one["metadata"]["namespace"]
            };
            let mut new = other.iter().find(same)?.clone();
            new["metadata"] = one["metadata"].clone();
            Some(new)
        }
        Edit::Copy(one, another, field) => {
            let one = one.get(written);
            let of_kind = |other: &&Value| other["kind"] == one["kind"];
            let like: Vec<&Value> = written.iter().chain(other).filter(of_kind).collect();
            let another = another.get(&like);
            let fields = leaves_of(another);
            if fields.is_empty() {
                return None;
            }
            let field = field.get(&fields);
            let mut new = one.clone();
            *new.pointer_mut(field)? = another.pointer(field)?.clone();
            Some(new)
        }
        Edit::Spoil(one, field, how) => {
            let mut new = one.get(written).clone();
            let fields = leaves_of(&new);
            if fields.is_empty() {
                return None;
            }
            let nonsense = [
                json!("no-such"),
                json!(0),
                json!(-1),
                json!({}),
                json!(null),
            ];
            let field: &String = field.get(&fields);
            *new.pointer_mut(field)? = nonsense[usize::from(*how) % nonsense.len()].clone();
            Some(new)
        }
    }
}

/// The cluster of these objects, in which everything is published and nothing is left to write.
fn running(world: &[Value]) -> Cluster {
    let mut cluster = Cluster::default();
    for document in world {
        cluster.put(document);
    }
    for _ in 0..3 {
        cluster.publish();
    }
    cluster.store();
    cluster.answer(true);
    cluster
}

proptest! {
    #![proptest_config(laws(192))]

    /// Whoever runs something keeps it: an edit that ends in an error of the edited object changes the config of no node.
    #[test]
    fn an_edit_that_ends_in_an_error_changes_no_node(world in varied(), other in varied(), edit in edit()) {
        let mut cluster = running(&world);
        let before = cluster.compiler.compile().1.nodes.clone();
        let written: Vec<Value> = world.iter().filter_map(|one| cluster.document_like(one)).collect();
        let Some(new) = edited(&edit, &written, &other) else { return Ok(()) };
        let Insertion::Object(subject) = Snapshot::default().insert(&new) else { return Ok(()) };
        let had = cluster.mistakes(&subject);
        // The API server stores no intent that cannot be read.
        let is_unread = !snapshot(std::slice::from_ref(&new)).unread.is_empty();
        if is_unread && subject.kind.intent().is_some() {
            return Ok(());
        }
        let new_spec = new["spec"].to_string();
        cluster.put(&new);
        let mistakes = cluster.mistakes(&subject);
        if mistakes.is_empty() || !had.is_empty() {
            return Ok(());
        }
        for (node, config) in &cluster.compiler.compile().1.nodes {
            let text = |config: &Arc<NodeConfig>| serde_json::to_string_pretty(&config.content()).expect("a config is JSON");
            let (now, then) = (text(config), before.get(node).map(text).unwrap_or_default());
            let lost: Vec<&str> = then.lines().filter(|line| !now.contains(line)).collect();
            let new: Vec<&str> = now.lines().filter(|line| !then.contains(line)).collect();
            let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            prop_assert!(now == then, "{} changed {}: {:?} became {:?}, though {:?}; it is {}", subject, node, lost, new, mistakes, new_spec);
        }
    }
}
