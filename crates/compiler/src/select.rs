//! Which nodes an object is for, and whether two objects can ever meet on one.

use std::collections::{BTreeMap, BTreeSet};

use api::meta::{LabelOperator, LabelSelector, Labels};

use crate::snapshot::{Key, Snapshot};

/// Whether a node with these labels is selected; no selector selects every node.
pub fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    selector.is_none_or(|selector| selector.matches(labels))
}

/// Whether some node could be selected by both. False only where no labels can satisfy the two at once.
pub fn may_meet(one: Option<&LabelSelector>, other: Option<&LabelSelector>) -> bool {
    // Most selectors that never meet want different values of one label.
    if let (Some(one), Some(other)) = (one, other) {
        let differs = |(key, value): (&String, &String)| {
            let others = other.match_labels.get(key);
            others.is_some_and(|other| other != value)
        };
        if one.match_labels.iter().any(differs) {
            return false;
        }
    }
    wanted(one, other).values().all(Wanted::is_possible)
}

/// Labels of a node that both would select, such as `rack=r1, !gpu`; nothing where there can be none.
pub fn witness(one: Option<&LabelSelector>, other: Option<&LabelSelector>) -> Option<String> {
    if !may_meet(one, other) {
        return None;
    }
    let wanted = wanted(one, other);
    let labels = wanted.iter().filter_map(|(key, wanted)| {
        let mut allowed = wanted.allowed.iter().flatten();
        let value = allowed.find(|value| !wanted.refused.contains(*value));
        match value {
            Some(value) => Some(format!("{key}={value}")),
            None if wanted.present && wanted.refused.is_empty() => Some(format!("{key}=<any>")),
            None if wanted.present => Some(format!("{key}=<any other>")),
            None if wanted.absent => Some(format!("!{key}")),
            // Not to have the label is enough.
            None => None,
        }
    });
    let labels: Vec<String> = labels.collect();
    Some(if labels.is_empty() {
        "any labels".to_owned()
    } else {
        labels.join(", ")
    })
}

fn wanted<'a>(
    one: Option<&'a LabelSelector>,
    other: Option<&'a LabelSelector>,
) -> BTreeMap<&'a str, Wanted<'a>> {
    let mut wanted: BTreeMap<&str, Wanted<'_>> = BTreeMap::new();
    for selector in [one, other].into_iter().flatten() {
        for (key, value) in &*selector.match_labels {
            wanted
                .entry(key)
                .or_default()
                .narrow([value.as_str()].into());
        }
        for requirement in &selector.match_expressions {
            let wanted = wanted.entry(&requirement.key).or_default();
            let values = || requirement.values.iter().map(String::as_str).collect();
            match requirement.operator {
                LabelOperator::In => wanted.narrow(values()),
                LabelOperator::NotIn => wanted.refused.extend(values()),
                LabelOperator::Exists => wanted.present = true,
                LabelOperator::DoesNotExist => wanted.absent = true,
            }
        }
    }
    wanted
}

/// What a node's label must be like.
#[derive(Default)]
struct Wanted<'a> {
    allowed: Option<BTreeSet<&'a str>>,
    refused: BTreeSet<&'a str>,
    present: bool,
    absent: bool,
}

impl<'a> Wanted<'a> {
    fn narrow(&mut self, values: BTreeSet<&'a str>) {
        self.present = true;
        self.allowed = Some(match self.allowed.take() {
            Some(allowed) => &allowed & &values,
            None => values,
        });
    }

    fn is_possible(&self) -> bool {
        let some_value = self
            .allowed
            .as_ref()
            .is_none_or(|allowed| !allowed.is_subset(&self.refused));
        !(self.present && self.absent) && some_value
    }
}

/// The Destinations that a selector chooses, by name.
pub fn destinations<'a>(
    snapshot: &'a Snapshot,
    selector: &LabelSelector,
) -> impl Iterator<Item = &'a Key> {
    let all = snapshot.destinations.iter();
    let chosen = all.filter(|(_, one)| selector.matches(&one.meta.labels));
    chosen.map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api::meta::LabelRequirement;

    use super::*;

    fn labels(key: &str, value: &str) -> LabelSelector {
        LabelSelector {
            match_labels: Arc::new([(key.to_owned(), value.to_owned())].into()),
            ..LabelSelector::default()
        }
    }

    fn expression(key: &str, operator: LabelOperator, values: &[&str]) -> LabelSelector {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let requirement = LabelRequirement {
            key: key.to_owned(),
            operator,
            values,
        };
        LabelSelector {
            match_expressions: vec![requirement],
            ..LabelSelector::default()
        }
    }

    #[test]
    fn selectors_that_want_different_values_of_one_label_never_meet() {
        let (a, b) = (labels("group", "a"), labels("group", "b"));
        assert!(!may_meet(Some(&a), Some(&b)));
        assert!(may_meet(Some(&a), Some(&a)));
        assert!(may_meet(Some(&a), None));
        assert!(
            may_meet(Some(&a), Some(&labels("rack", "b"))),
            "a node may have both labels"
        );
    }

    #[test]
    fn labels_that_two_selectors_choose_are_found() {
        use LabelOperator::{DoesNotExist, Exists, In, NotIn};
        let witness = |one: &LabelSelector, other: &LabelSelector| witness(Some(one), Some(other));
        let rack = labels("rack", "r1");
        assert_eq!(witness(&rack, &labels("rack", "r2")), None);
        assert_eq!(
            witness(&rack, &labels("zone", "a")).as_deref(),
            Some("rack=r1, zone=a")
        );
        let others = expression("rack", NotIn, &["r2"]);
        assert_eq!(witness(&rack, &others).as_deref(), Some("rack=r1"));
        let some = expression("rack", In, &["r1", "r2"]);
        assert_eq!(
            witness(&some, &expression("rack", NotIn, &["r1"])).as_deref(),
            Some("rack=r2")
        );
        let none = expression("gpu", DoesNotExist, &[]);
        assert_eq!(witness(&none, &rack).as_deref(), Some("!gpu, rack=r1"));
        assert_eq!(witness(&none, &expression("gpu", Exists, &[])), None);
        let all = LabelSelector::default();
        assert_eq!(
            super::witness(Some(&all), None).as_deref(),
            Some("any labels")
        );
    }

    #[test]
    fn expressions_are_compared_as_sets() {
        use LabelOperator::{DoesNotExist, Exists, In, NotIn};
        let a = labels("group", "a");
        assert!(!may_meet(
            Some(&a),
            Some(&expression("group", NotIn, &["a"]))
        ));
        assert!(!may_meet(
            Some(&a),
            Some(&expression("group", DoesNotExist, &[]))
        ));
        assert!(may_meet(Some(&a), Some(&expression("group", Exists, &[]))));
        assert!(may_meet(
            Some(&a),
            Some(&expression("group", In, &["a", "b"]))
        ));
        assert!(!may_meet(
            Some(&expression("group", In, &["c"])),
            Some(&expression("group", In, &["a", "b"]))
        ));
        assert!(may_meet(
            Some(&expression("group", NotIn, &["c"])),
            Some(&expression("group", DoesNotExist, &[]))
        ));
    }
}
