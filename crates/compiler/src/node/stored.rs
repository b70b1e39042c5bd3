//! What a node's stored config says beside what it must be, and how far the node is with it.

use std::sync::Arc;

use api::tcaas::NodeNetworkConfigSpec;

use super::{NodeConfig, config};
use crate::{
    memo::{Input, Parts, Query},
    mirror,
    rollout::{self, Progress, Removal},
    snapshot::{Key, kinds},
    view::View,
};

/// Whether two configs of a node differ in nothing that a revision has: mirrors copy, the router of the host is not part of the fabric, and the
/// name of its Underlay is a memory of the operator.
pub fn forwards_the_same(one: &NodeNetworkConfigSpec, other: &NodeNetworkConfigSpec) -> bool {
    if one.host_router != other.host_router {
        let other = NodeNetworkConfigSpec {
            host_router: one.host_router.clone(),
            ..other.clone()
        };
        return forwards_the_same(one, &other);
    }
    let source = |spec: &NodeNetworkConfigSpec| spec.underlay.as_ref()?.source.clone();
    if source(one) == source(other) {
        return mirror::without(one) == mirror::without(other);
    }
    let mut renamed = other.clone();
    if let Some(underlay) = &mut renamed.underlay {
        underlay.source = source(one);
    }
    mirror::without(one) == mirror::without(&renamed)
}

/// What is published for a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// Its config, and the revision that it names: that of the stored config, if that forwards as the node must.
    pub(crate) config: Option<Arc<NodeConfig>>,
    /// Whether the stored config is the same, but perhaps for the router of the host.
    pub(crate) is_stored: bool,
    /// Whether the stored config has another router of the host.
    pub(crate) has_other_host_router: bool,
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
        let mut wanted = config.spec(&stored.revision);
        let has_other_host_router = stored.host_router != wanted.host_router;
        // It is written by itself, whatever else the node waits for.
        wanted.host_router.clone_from(&stored.host_router);
        let is_stored = *stored == wanted;
        let forwards_the_same = is_stored || forwards_the_same(&stored, &wanted);
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
            has_other_host_router,
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
        let meta = view.meta::<kinds::NodeNetworkConfig>(node);
        let generations = meta.and_then(|meta| rollout::stored::generations(&meta));
        let status = view.status::<kinds::NodeNetworkConfig>(node);
        rollout::answered(&revision, generations.as_ref(), status.as_deref())
    }
}

/// The node that could not apply the revision as it is compiled now, by its name. It may have what it had before.
pub(crate) struct TakenBack;
impl Input for TakenBack {
    type Key = Key;
    type Value = ();
    fn differing((): &(), (): &()) -> Parts {
        [false; 3]
    }
}

/// How far a node is, as statuses tell it: where the revision was rolled back, it failed, until something else is compiled.
pub(crate) fn told_progress(view: &View<'_>, node: &Key) -> Progress {
    let progress = view.get::<ProgressOf>(node);
    if progress == Progress::Queued && view.keys::<TakenBack>().contains(node) {
        return Progress::Failed;
    }
    progress
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_name_of_an_underlay_is_nothing_that_a_node_forwards_by() {
        let config = |source: &str, asn: u32| -> NodeNetworkConfigSpec {
            let spec = json!({"revision": "r", "underlay": {
                "source": source, "namespace": "selvedge", "asn": asn, "routerId": "192.0.2.1", "nics": ["eth1"],
                "routerMac": "02:54:c6:33:64:01", "trunk": {"host": "hbn", "router": "hbn", "mtu": 9000},
            }});
            serde_json::from_value(spec).expect("a config")
        };
        let running = config("ns/old", 64512);
        assert!(forwards_the_same(&running, &config("ns/new", 64512)));
        assert!(!forwards_the_same(&running, &config("ns/new", 64513)));
        let without = NodeNetworkConfigSpec {
            underlay: None,
            ..running.clone()
        };
        assert!(!forwards_the_same(&running, &without));
    }
}
