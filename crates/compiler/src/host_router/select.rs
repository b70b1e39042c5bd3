//! Which objects select which nodes. Nodes that the same objects select are a group, and share one router.
//!
//! These groups are none of those that share forwarding: an author that writes an object for every node must not take those apart.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use api::meta::{LabelOperator, LabelSelector, Labels};

use super::is_used;
use crate::{
    memo::{Index, Query},
    snapshot::{Key, kinds},
    view::View,
};

/// The objects that select the nodes of a group, by name. It is asked for often, so its hash is made once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostGroup(u64, Arc<Vec<Key>>);

impl Hash for HostGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl HostGroup {
    fn new(mut keys: Vec<Key>) -> Self {
        keys.sort();
        keys.dedup();
        let mut hasher = rustc_hash::FxHasher::default();
        keys.hash(&mut hasher);
        Self(hasher.finish(), Arc::new(keys))
    }

    /// The objects.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.1
    }
}

impl PartialOrd for HostGroup {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HostGroup {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, &self.1).cmp(&(other.0, &other.1))
    }
}

/// Whether there is an object that nodes may have something of.
pub(crate) struct AnyConfigurations;
impl Query for AnyConfigurations {
    type Key = ();
    type Value = bool;
    fn compute(view: &View<'_>, (): &()) -> bool {
        let settings = view.settings();
        let keys = view.keys::<kinds::FrrConfiguration>();
        let mut keys = keys.iter();
        keys.any(|key| is_used(&settings, key.namespace.as_deref()))
    }
}

/// An object with the nodes that it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selecting {
    key: Key,
    selector: Option<LabelSelector>,
}

/// Objects by a label that their nodes must have; those that no single label can rule out are under none.
pub(crate) struct ConfigurationsByLabel;
impl Index for ConfigurationsByLabel {
    type Source = Key;
    type Key = Option<(String, String)>;
    type Item = Selecting;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::FrrConfiguration>().to_vec()
    }
    fn entries(view: &View<'_>, key: &Key) -> Vec<(Self::Key, Selecting)> {
        let Some(spec) = view.spec::<kinds::FrrConfiguration>(key) else {
            return Vec::new();
        };
        let selector = spec.node_selector.clone();
        let is_sound = selector.as_ref().is_none_or(|one| one.check().is_ok());
        if !is_sound || !is_used(&view.settings(), key.namespace.as_deref()) {
            return Vec::new();
        }
        let labels = labels(selector.as_ref());
        let selecting = Selecting {
            key: key.clone(),
            selector,
        };
        labels
            .into_iter()
            .map(|label| (label, selecting.clone()))
            .collect()
    }
}

/// The labels of which a node must have one to be selected; none where that can be distinguished by no label.
fn labels(selector: Option<&LabelSelector>) -> Vec<Option<(String, String)>> {
    let Some(selector) = selector else {
        return vec![None];
    };
    if let Some((key, value)) = selector.match_labels.iter().next() {
        return vec![Some((key.clone(), value.clone()))];
    }
    let mut expressions = selector.match_expressions.iter();
    let Some(one) = expressions.find(|one| one.operator == LabelOperator::In) else {
        return vec![None];
    };
    let mut values = one.values.clone();
    values.sort();
    values.dedup();
    values
        .into_iter()
        .map(|value| Some((one.key.clone(), value)))
        .collect()
}

/// The group of each node; none where nothing selects it.
pub(crate) struct GroupOf;
impl Query for GroupOf {
    type Key = Key;
    type Value = Option<HostGroup>;
    fn compute(view: &View<'_>, node: &Key) -> Option<HostGroup> {
        let meta = view.meta::<kinds::Node>(node)?;
        let labels: &Labels = &meta.labels;
        let of_labels = labels
            .iter()
            .map(|(key, value)| Some((key.clone(), value.clone())));
        let mut keys = Vec::new();
        for label in of_labels.chain([None]) {
            for one in view.who::<ConfigurationsByLabel>(&label).iter() {
                if one
                    .selector
                    .as_ref()
                    .is_none_or(|selector| selector.matches(labels))
                {
                    keys.push(one.key.clone());
                }
            }
        }
        (!keys.is_empty()).then(|| HostGroup::new(keys))
    }
}

/// The nodes of each group, by name.
pub(crate) struct NodesByGroup;
impl Index for NodesByGroup {
    type Source = Key;
    type Key = HostGroup;
    type Item = Arc<str>;
    fn sources(view: &View<'_>) -> Vec<Key> {
        if view.get::<AnyConfigurations>(&()) {
            view.keys::<kinds::Node>().to_vec()
        } else {
            Vec::new()
        }
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(HostGroup, Arc<str>)> {
        let group = view.get::<GroupOf>(node);
        let entry = group.map(|group| (group, Arc::clone(&node.name)));
        entry.into_iter().collect()
    }
}

/// The groups that each object is for.
pub(crate) struct GroupsByConfiguration;
impl Index for GroupsByConfiguration {
    type Source = HostGroup;
    type Key = Key;
    type Item = HostGroup;
    fn sources(view: &View<'_>) -> Vec<HostGroup> {
        view.all_keys::<NodesByGroup>().to_vec()
    }
    fn entries(_: &View<'_>, group: &HostGroup) -> Vec<(Key, HostGroup)> {
        let keys = group.keys().iter();
        keys.map(|key| (key.clone(), group.clone())).collect()
    }
}
