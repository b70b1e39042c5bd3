//! What is said of each kind of element, in one world that has them all.

use strum::EnumCount;

use super::*;

fn world() -> Vec<Value> {
    serde_json::from_str(include_str!("world.json")).expect("JSON")
}

#[test]
fn every_field_behind_each_kind_of_element_matters() {
    let world = world();
    let mut idle = Vec::new();
    for one in all(&compile(&snapshot(&world))) {
        if let Err(error) = all_matter(&world, &one) {
            idle.push(
                error
                    .to_string()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
    assert!(idle.is_empty(), "{idle:#?}");
}

#[test]
fn each_kind_of_element_is_explained_by_what_people_have_written() {
    let snapshot = snapshot(&world());
    let compilation = compile(&snapshot);
    assert_eq!(*compilation.problems, []);
    let trace = Trace::new(&snapshot, &compilation);
    let mut told = Vec::new();
    let mut kinds = BTreeSet::new();
    for (node, element, _) in all(&compilation) {
        kinds.insert(<&str>::from(&element));
        told.push(format!("{element}\n"));
        for claim in trace.claims(&node, &element) {
            let fields: Vec<String> = claim
                .fields()
                .into_iter()
                .map(ToString::to_string)
                .collect();
            told.push(format!("  {}\n", fields.join(", ")));
        }
    }
    assert_eq!(
        kinds.len(),
        Element::COUNT,
        "a kind of element is not in the world: {kinds:#?}"
    );
    let told = told.concat();
    assert!(
        told == include_str!("expected.txt"),
        "expected.txt says otherwise:\n{told}"
    );
}
