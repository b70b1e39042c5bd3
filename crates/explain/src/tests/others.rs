//! Ring 2: what an edit in a running cluster does to objects of other authors.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use worlds::{edit, edited, laws, varied};

use super::*;
use crate::{element::elements, plan::plan, provenance::Trace, running::Running};

/// What other authors than this one contribute.
fn of_others<'a>(running: &'a Running, subject: &ObjectRef) -> BTreeMap<(Kind, &'a str), Value> {
    let objects = running.compilation.objects.iter();
    let others = objects.filter(|object| object.source() != subject);
    let entry = |object: &'a LowLevelObject| ((object.kind(), object.name()), json!(object.spec()));
    others.map(entry).collect()
}

/// What the author of an object has done wrong.
fn mistakes(running: &Running, subject: &ObjectRef) -> usize {
    let problems = running.compilation.problems.iter();
    let mistakes = problems.filter(|one| one.subject == *subject && one.kind.is_mistake());
    mistakes.count()
}

proptest! {
    #![proptest_config(laws(96))]

    /// Whatever an object is edited into: an illegal edit changes nothing that others contribute, and the plan is empty; a legal one
    /// changes on nodes only what the plan lists, each with the objects behind it.
    #[test]
    fn an_edit_changes_others_only_where_it_is_legal_and_the_plan_names_them(world in varied(), other in varied(), edit in edit()) {
        let Some(new) = edited(&edit, &world, &other) else { return Ok(()) };
        let Insertion::Object(subject) = Snapshot::default().insert(&new) else { return Ok(()) };
        let is_unread = snapshot(std::slice::from_ref(&new)).subjects().next().is_none();
        // The API server stores no intent that cannot be read.
        if is_unread && subject.kind.intent().is_some() {
            return Ok(());
        }
        let before = Running::new(&snapshot(&world));
        let is_same = |one: &Value| matches!(Snapshot::default().insert(one), Insertion::Object(known) if known == subject);
        let mut documents: Vec<Value> = world.iter().filter(|one| !is_same(one)).cloned().collect();
        documents.push(new);
        let after = before.after(&snapshot(&documents));
        let plan = plan(&Trace::new(&before.snapshot, &before.compilation), &Trace::new(&after.snapshot, &after.compilation));
        if mistakes(&after, &subject) > 0 && mistakes(&before, &subject) == 0 {
            prop_assert_eq!(of_others(&before, &subject), of_others(&after, &subject), "{} is edited into a mistake", subject);
            prop_assert!(plan.is_empty(), "{} is edited into a mistake: {:?}", subject, plan.groups);
            return Ok(());
        }
        for (node, config) in &after.compilation.nodes {
            let was = before.compilation.nodes.get(node).map(|config| elements(&config.content())).unwrap_or_default();
            let is = elements(&config.content());
            let differs = |element: &&crate::element::Element| was.get(*element) != is.get(*element);
            let changed: BTreeSet<_> = was.keys().chain(is.keys()).filter(differs).collect();
            let group = plan.groups.iter().find(|group| group.nodes.contains(node));
            let named: Vec<_> = group.into_iter().flat_map(|group| group.on(node)).collect();
            for element in changed {
                let change = named.iter().find(|change| change.element == *element);
                let is_named = change.is_some_and(|change| !change.behind.is_empty());
                prop_assert!(is_named, "{} changed {:?} on {}, which the plan does not name: {:?}", subject, element, node, named);
            }
        }
    }
}
