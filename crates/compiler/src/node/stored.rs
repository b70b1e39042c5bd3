//! What a node's stored config says beside what it must be, and how far the node is with it.

use std::sync::Arc;

use super::{NodeConfig, config};
use crate::{
    memo::Query,
    mirror,
    rollout::{self, Progress, Removal},
    snapshot::{Key, kinds},
    view::View,
};

/// What is published for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// Its config, and the revision that it names: that of the stored config, if that forwards as the node must. Mirrors do not change
    /// forwarding.
    pub(crate) config: Option<Arc<NodeConfig>>,
    /// Whether the stored config is the same.
    pub(crate) is_stored: bool,
    /// What the config takes away, if it must be approved before it is published.
    pub(crate) removal: Option<Removal>,
}

/// What is published for each node that is there.
pub(crate) struct PublishedOf;
impl Query for PublishedOf {
    type Key = Key;
    type Value = Published;
    fn compute(view: &View<'_>, node: &Key) -> Published {
        let Some(config) = config(view, node) else {
            return Published::default();
        };
        let Some(stored) = view.spec::<kinds::NodeNetworkConfig>(node) else {
            return Published {
                config: Some(config),
                ..Published::default()
            };
        };
        let wanted = config.spec(&stored.revision);
        let is_stored = *stored == wanted;
        let forwards_the_same = is_stored || mirror::without(&stored) == mirror::without(&wanted);
        let removal = rollout::removal(&wanted, &stored);
        let config = if forwards_the_same {
            Arc::new(NodeConfig {
                revision: Some(stored.revision.as_str().into()),
                ..NodeConfig::clone(&config)
            })
        } else {
            config
        };
        Published {
            config: Some(config),
            is_stored,
            removal,
        }
    }
}

/// How far each node is.
pub(crate) struct ProgressOf;
impl Query for ProgressOf {
    type Key = Key;
    type Value = Progress;
    fn compute(view: &View<'_>, node: &Key) -> Progress {
        let published = view.get::<PublishedOf>(node);
        if published.removal.is_some() {
            return Progress::Unapproved;
        }
        let config = published.config.filter(|_| published.is_stored);
        let Some(revision) = config.and_then(|config| config.revision.clone()) else {
            return Progress::Queued;
        };
        let generation = view.meta::<kinds::NodeNetworkConfig>(node);
        let generation = generation.and_then(|meta| meta.generation);
        let status = view.status::<kinds::NodeNetworkConfig>(node);
        rollout::answered(&revision, generation, status.as_deref())
    }
}
