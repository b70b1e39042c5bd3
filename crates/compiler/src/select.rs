//! Which nodes an object is for, and whether two objects can ever meet on one.

use std::collections::{BTreeMap, BTreeSet};

use api::meta::{LabelOperator, LabelSelector, Labels};

/// Whether a node with these labels is selected; no selector selects every node.
pub fn selects(selector: Option<&LabelSelector>, labels: &Labels) -> bool {
    selector.is_none_or(|selector| selector.matches(labels))
}

/// Whether some node could be selected by both. False only where no labels can satisfy the two at once.
pub fn may_meet(one: Option<&LabelSelector>, other: Option<&LabelSelector>) -> bool {
    let mut wanted: BTreeMap<&str, Wanted<'_>> = BTreeMap::new();
    for selector in [one, other].into_iter().flatten() {
        for (key, value) in &selector.match_labels {
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
    wanted.values().all(Wanted::is_possible)
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

/// Items that nodes are selected for, found by label instead of being asked one by one: most selectors want one value of a label,
/// and most nodes do not have it.
pub struct Index<'a, T> {
    items: Vec<(Option<&'a LabelSelector>, T)>,
    /// Places of items that want this value of this label.
    by_label: BTreeMap<(&'a str, &'a str), Vec<usize>>,
    /// Places of items that cannot be found by a label.
    others: Vec<usize>,
}

impl<'a, T: Copy> Index<'a, T> {
    /// An index of items in their order.
    pub fn new(items: impl Iterator<Item = (Option<&'a LabelSelector>, T)>) -> Self {
        let items: Vec<_> = items.collect();
        let mut by_label: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
        let mut others = Vec::new();
        for (place, (selector, _)) in items.iter().enumerate() {
            let label = selector.and_then(|selector| selector.match_labels.first_key_value());
            match label {
                Some((key, value)) => by_label.entry((key, value)).or_default().push(place),
                None => others.push(place),
            }
        }
        Self {
            items,
            by_label,
            others,
        }
    }

    /// The items that a node with these labels is selected for, in their order.
    pub fn of(&self, labels: &Labels) -> Vec<T> {
        let found = labels
            .iter()
            .filter_map(|(key, value)| self.by_label.get(&(key.as_str(), value.as_str())));
        let mut places: Vec<usize> = self.others.iter().chain(found.flatten()).copied().collect();
        places.sort_unstable();
        let items = places.into_iter().filter_map(|place| self.items.get(place));
        items
            .filter(|(selector, _)| selects(*selector, labels))
            .map(|(_, item)| *item)
            .collect()
    }
}

/// The labels that selectors ask for.
pub fn asked<'s>(selectors: impl Iterator<Item = &'s LabelSelector>) -> BTreeSet<String> {
    let mut asked = BTreeSet::new();
    for selector in selectors {
        let expressions = selector.match_expressions.iter();
        let expressions = expressions.map(|requirement| &requirement.key);
        for key in selector.match_labels.keys().chain(expressions) {
            if !asked.contains(key) {
                asked.insert(key.clone());
            }
        }
    }
    asked
}

/// Nodes with the same labels, as far as any selector asks for them: they get the same config but for their addresses.
///
/// Labels that nobody asks for, such as the host name, would make every node a group of its own.
pub fn groups<'n>(
    nodes: impl Iterator<Item = (&'n str, &'n Labels)>,
    asked: &BTreeSet<String>,
) -> BTreeMap<Labels, Vec<&'n str>> {
    let mut groups: BTreeMap<Vec<(&str, &str)>, Vec<&str>> = BTreeMap::new();
    for (name, labels) in nodes {
        let asked = asked.iter().filter_map(|key| labels.get_key_value(key));
        let asked = asked.map(|(key, value)| (key.as_str(), value.as_str()));
        groups.entry(asked.collect()).or_default().push(name);
    }
    let owned = |labels: Vec<(&str, &str)>| -> Labels {
        let labels = labels.into_iter();
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
        labels.collect()
    };
    let groups = groups.into_iter();
    groups
        .map(|(labels, nodes)| (owned(labels), nodes))
        .collect()
}

#[cfg(test)]
mod tests {
    use api::meta::LabelRequirement;

    use super::*;

    fn labels(key: &str, value: &str) -> LabelSelector {
        LabelSelector {
            match_labels: [(key.to_owned(), value.to_owned())].into(),
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

    #[test]
    fn an_index_finds_what_asking_one_by_one_finds_and_in_the_same_order() {
        let selectors = [
            Some(labels("group", "a")),
            None,
            Some(expression("group", LabelOperator::Exists, &[])),
            Some(labels("group", "b")),
            Some(LabelSelector::default()),
            Some(labels("rack", "a")),
        ];
        let items = || {
            selectors
                .iter()
                .zip(0..)
                .map(|(selector, place)| (selector.as_ref(), place))
        };
        let index = Index::new(items());
        for node in [
            vec![],
            vec![("group", "a")],
            vec![("group", "b"), ("rack", "a")],
        ] {
            let node: Labels = node
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect();
            let asked = items()
                .filter(|(selector, _)| selects(*selector, &node))
                .map(|(_, place)| place);
            assert_eq!(index.of(&node), asked.collect::<Vec<i32>>(), "{node:?}");
        }
    }

    #[test]
    fn labels_that_nobody_asks_for_do_not_tell_nodes_apart() {
        let node = |host: &str| {
            Labels::from([
                ("host".to_owned(), host.to_owned()),
                ("group".to_owned(), "a".to_owned()),
            ])
        };
        let (one, two) = (node("one"), node("two"));
        let selector = labels("group", "a");
        let groups = groups(
            [("one", &one), ("two", &two)].into_iter(),
            &asked([&selector].into_iter()),
        );
        assert_eq!(groups.into_values().collect::<Vec<_>>(), [["one", "two"]]);
    }
}
