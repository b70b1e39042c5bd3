//! Equal VRFs of nodes are one value in memory.
//!
//! The stored configs of a large cluster are the largest part of what the operator holds, and most nodes have the VRFs of their
//! neighbors.

use std::{collections::BTreeMap, sync::Arc};

use api::tcaas::{NodeNetworkConfigSpec, node_network_config::Vrf};

use crate::fingerprint::{self, Digest};

/// Below this number of VRFs the pool is not cleared.
const MINIMUM: usize = 1024;

/// The VRFs that configs of nodes have.
#[derive(Clone, Debug, Default)]
pub(crate) struct VrfPool {
    vrfs: BTreeMap<Digest, Arc<Vrf>>,
    /// How many VRFs were in use when the unused ones were last removed.
    in_use: usize,
}

impl VrfPool {
    /// Puts the pool's values in the place of equal ones.
    pub(crate) fn share(&mut self, config: &mut Arc<NodeNetworkConfigSpec>) {
        // A config that others hold already is shared as a whole.
        let Some(config) = Arc::get_mut(config) else {
            return;
        };
        if self.vrfs.len() > MINIMUM.max(2 * self.in_use) {
            self.vrfs.retain(|_, vrf| Arc::strong_count(vrf) > 1);
            self.in_use = self.vrfs.len();
        }
        for vrf in config.vrfs_mut() {
            let pooled = self.vrfs.entry(fingerprint::of(vrf));
            *vrf = Arc::clone(pooled.or_insert_with(|| Arc::clone(vrf)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(table: usize) -> Arc<NodeNetworkConfigSpec> {
        let vrf = json!({"table": table, "devices": {"vrf": "red"}, "mtu": 1500});
        let config = json!({"revision": "r", "fabricVRFs": {"red": vrf}});
        Arc::new(serde_json::from_value(config).unwrap())
    }

    #[test]
    fn equal_vrfs_are_one_value_and_different_ones_are_not() {
        let mut pool = VrfPool::default();
        let mut configs = [config(50), config(50), config(51)];
        for config in &mut configs {
            pool.share(config);
        }
        let [one, same, other] = configs.each_ref().map(|config| &config.fabric_vrfs["red"]);
        assert!(Arc::ptr_eq(one, same));
        assert_eq!((one.table, other.table), (50, 51));
    }

    #[test]
    fn vrfs_that_no_config_has_are_removed() {
        let mut pool = VrfPool::default();
        let mut kept = config(1);
        pool.share(&mut kept);
        for table in 2..=MINIMUM + 2 {
            pool.share(&mut config(table));
        }
        let left: Vec<u32> = pool.vrfs.values().map(|vrf| vrf.table).collect();
        assert_eq!(left.len(), 2, "the one that is in use, and the newest");
        assert!(left.contains(&1));
    }
}
