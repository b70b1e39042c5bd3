//! Who is told next. Pure: the operator only obeys.

#[cfg(test)]
mod laws;
pub mod stored;
pub mod waves;

use api::tcaas::{
    NodeNetworkConfigSpec, NodeNetworkConfigStatus, node_network_config::ConfigStatus,
};

use serde::Serialize;

use crate::{mirror, snapshot::Object};

/// What a node was told, and what it answered.
pub type Told = Object<NodeNetworkConfigSpec, NodeNetworkConfigStatus>;

/// What is known about one node of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It runs what it shall run, and has said so.
    Ready,
    /// It was told and has not answered yet.
    Ongoing,
    /// It was told and could not do it.
    Failed,
    /// It has not been told yet.
    Queued,
    /// It is not told before somebody approves what its config would take away.
    Unapproved,
}

/// What a config would take away from its node. Such a config is not published before somebody approves it: a mistake that no other check
/// finds must not cut a node off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::Display)]
#[serde(rename_all = "camelCase")]
pub enum Removal {
    /// Its place in the fabric: NICs go back to the host, and the router's namespace is deleted.
    #[strum(to_string = "its Underlay")]
    Underlay,
    /// Every VRF: it takes no part in the overlay any more.
    #[strum(to_string = "all its VRFs")]
    AllVrfs,
}

/// What a config would take away from a node that was told another one, if that needs an approval.
pub fn removal(wanted: &NodeNetworkConfigSpec, told: &NodeNetworkConfigSpec) -> Option<Removal> {
    if told.underlay.is_some() && wanted.underlay.is_none() {
        return Some(Removal::Underlay);
    }
    let has_vrfs = |spec: &NodeNetworkConfigSpec| spec.vrfs().next().is_some();
    (has_vrfs(told) && !has_vrfs(wanted)).then_some(Removal::AllVrfs)
}

/// How far a node is.
///
/// A status counts only when it is about the config that the node was told: an answer to an older one is no answer. Mirrors change
/// the config and not its revision; the generation tells such configs apart.
pub fn progress(wanted: &NodeNetworkConfigSpec, told: Option<&Told>) -> Progress {
    match told.filter(|told| *told.spec == *wanted) {
        Some(told) => answered(
            &wanted.revision,
            told.meta.generation,
            told.status.as_deref(),
        ),
        None => Progress::Queued,
    }
}

/// How far a node is that was told what it must have: by its answer to the config of a revision and a generation.
pub(crate) fn answered(
    revision: &str,
    generation: Option<i64>,
    status: Option<&NodeNetworkConfigStatus>,
) -> Progress {
    let answer = status.filter(|status| {
        let of_generation = status.observed_generation == generation;
        let of_revision = status.observed_revision.as_deref() == Some(revision);
        of_revision && (of_generation || generation.is_none())
    });
    match answer.map(|status| status.config_status) {
        Some(ConfigStatus::Provisioned) => Progress::Ready,
        Some(ConfigStatus::Invalid) => Progress::Failed,
        Some(ConfigStatus::Untouched | ConfigStatus::Provisioning) | None => Progress::Ongoing,
    }
}

/// Whether a node runs the wanted revision and lacks only changes of mirrors, which wait for nobody: they change no forwarding.
pub fn is_direct(wanted: &NodeNetworkConfigSpec, told: &NodeNetworkConfigSpec) -> bool {
    let same = wanted.revision == told.revision && wanted != told;
    same && mirror::without(wanted) == mirror::without(told)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::snapshot::Meta;
    use serde_json::json;

    fn spec(revision: &str) -> NodeNetworkConfigSpec {
        NodeNetworkConfigSpec {
            revision: revision.to_owned(),
            ..NodeNetworkConfigSpec::default()
        }
    }

    fn status(config_status: ConfigStatus, observed: &str) -> NodeNetworkConfigStatus {
        let observed_revision = Some(observed.to_owned());
        NodeNetworkConfigStatus {
            config_status,
            observed_revision,
            observed_generation: Some(2),
            ..NodeNetworkConfigStatus::default()
        }
    }

    fn told(revision: &str, status: Option<NodeNetworkConfigStatus>) -> Told {
        Told {
            meta: Arc::new(Meta {
                generation: Some(2),
                ..Meta::default()
            }),
            spec: Arc::new(spec(revision)),
            status: status.map(Arc::new),
        }
    }

    #[test]
    fn an_answer_to_an_older_revision_is_no_answer() {
        let new = spec("new");
        let of = |told: Told| progress(&new, Some(&told));
        let answer = |config_status, observed| Some(status(config_status, observed));
        let stale = || answer(ConfigStatus::Provisioned, "old");
        assert_eq!(of(told("old", stale())), Progress::Queued);
        assert_eq!(of(told("new", stale())), Progress::Ongoing);
        let ready = answer(ConfigStatus::Provisioned, "new");
        assert_eq!(of(told("new", ready)), Progress::Ready);
        let failed = answer(ConfigStatus::Invalid, "new");
        assert_eq!(of(told("new", failed)), Progress::Failed);
        assert_eq!(of(told("new", None)), Progress::Ongoing);
    }

    #[test]
    fn an_answer_to_the_same_revision_with_other_mirrors_is_no_answer() {
        let answer = NodeNetworkConfigStatus {
            observed_generation: Some(1),
            ..status(ConfigStatus::Provisioned, "new")
        };
        let told = told("new", Some(answer));
        assert_eq!(progress(&spec("new"), Some(&told)), Progress::Ongoing);
    }

    #[test]
    fn mirrors_alone_wait_for_nobody() {
        let vrf = |export: &str, mirrors: bool| {
            let accept = |prefix: &str| json!({"matcher": {"prefix": {"prefix": prefix}}, "action": {"type": "accept"}});
            let mut items = vec![accept(export)];
            let mut vrf = json!({
                "vni": 9, "table": 10009, "devices": {"vrf": "mirror"}, "mtu": 9000,
                "evpnExportFilter": {"defaultAction": {"type": "reject"}},
            });
            if mirrors {
                items.insert(0, accept("10.99.0.1/32"));
                vrf["loopbacks"] = json!({"lo.mir": {"ipAddresses": ["10.99.0.1/32"]}});
                vrf["gres"] = json!({"gre.1": {"destinationAddress": "192.0.2.1", "sourceAddress": "10.99.0.1"}});
                vrf["mirrorAcls"] = json!([{"trafficMatch": {}, "mirrorDestination": "gre.1", "direction": "egress"}]);
            }
            vrf["evpnExportFilter"]["items"] = json!(items);
            let spec = json!({"revision": "r", "fabricVRFs": {"mirror": vrf}});
            serde_json::from_value::<NodeNetworkConfigSpec>(spec).expect("a spec")
        };
        let plain = vrf("10.0.0.0/8", false);
        assert!(is_direct(&vrf("10.0.0.0/8", true), &plain));
        assert!(is_direct(&plain, &vrf("10.0.0.0/8", true)));
        assert!(
            !is_direct(&vrf("10.1.0.0/16", true), &plain),
            "forwarding changes too"
        );
        assert!(!is_direct(&plain, &plain), "nothing to tell");
        let other = NodeNetworkConfigSpec {
            revision: "s".to_owned(),
            ..vrf("10.0.0.0/8", true)
        };
        assert!(!is_direct(&other, &plain), "another revision has its turn");
    }
}
