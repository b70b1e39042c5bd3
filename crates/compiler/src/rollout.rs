//! How configs reach nodes: how far each node is, what needs an approval, and which nodes are next. Pure: the operator carries it out.

pub mod guard;
#[cfg(test)]
mod laws;
pub mod ready;
pub mod stored;
pub mod waves;

use std::ops::RangeInclusive;

use api::tcaas::{
    NodeNetworkConfigSpec, NodeNetworkConfigStatus, node_network_config::ConfigStatus,
};

use serde::Serialize;

/// What is known about one node of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Its config is published and confirmed.
    Ready,
    /// Its config is published and not answered yet.
    Ongoing,
    /// Its config is published, and the node could not apply it.
    Failed,
    /// Its config is not published yet.
    Queued,
    /// Its config is not published before an approval: it would take away too much.
    Unapproved,
}

/// What a config would take away from its node. Such a config is not published without an approval: a mistake that no other check finds must
/// not cut a node off.
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

/// What a config would take away from a node with this stored config, if that needs an approval.
pub fn removal(wanted: &NodeNetworkConfigSpec, stored: &NodeNetworkConfigSpec) -> Option<Removal> {
    if stored.underlay.is_some() && wanted.underlay.is_none() {
        return Some(Removal::Underlay);
    }
    let has_vrfs = |spec: &NodeNetworkConfigSpec| spec.vrfs().next().is_some();
    (has_vrfs(stored) && !has_vrfs(wanted)).then_some(Removal::AllVrfs)
}

/// How far a node is whose stored config is the wanted one, by its answer.
///
/// A status counts only if it is about this revision and one of these generations: an answer to an older config is no answer. Mirrors change
/// the config and not its revision; the generation tells such configs apart. Generations that differ in the router of the host alone are one.
pub(crate) fn answered(
    revision: &str,
    generations: Option<&RangeInclusive<i64>>,
    status: Option<&NodeNetworkConfigStatus>,
) -> Progress {
    let answer = status.filter(|status| {
        let observed = status.observed_generation;
        let of_generation = generations
            .is_none_or(|known| observed.is_some_and(|observed| known.contains(&observed)));
        let of_revision = status.observed_revision.as_deref() == Some(revision);
        of_revision && of_generation
    });
    match answer.map(|status| status.config_status) {
        Some(ConfigStatus::Provisioned) => Progress::Ready,
        Some(ConfigStatus::Invalid) => Progress::Failed,
        Some(ConfigStatus::Untouched | ConfigStatus::Provisioning | ConfigStatus::Removed)
        | None => Progress::Ongoing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror;
    use serde_json::json;

    fn status(config_status: ConfigStatus, observed: &str) -> NodeNetworkConfigStatus {
        let observed_revision = Some(observed.to_owned());
        NodeNetworkConfigStatus {
            config_status,
            observed_revision,
            observed_generation: Some(2),
            ..NodeNetworkConfigStatus::default()
        }
    }

    #[test]
    fn an_answer_to_an_older_revision_is_no_answer() {
        let of = |status: Option<NodeNetworkConfigStatus>| {
            answered("new", Some(&(2..=2)), status.as_ref())
        };
        let answer = |config_status, observed| Some(status(config_status, observed));
        let stale = answer(ConfigStatus::Provisioned, "old");
        assert_eq!(of(stale), Progress::Ongoing);
        let stale = answer(ConfigStatus::Invalid, "old");
        assert_eq!(of(stale), Progress::Ongoing);
        let ready = answer(ConfigStatus::Provisioned, "new");
        assert_eq!(of(ready), Progress::Ready);
        let failed = answer(ConfigStatus::Invalid, "new");
        assert_eq!(of(failed), Progress::Failed);
        assert_eq!(of(None), Progress::Ongoing);
    }

    #[test]
    fn an_answer_to_the_same_revision_with_other_mirrors_is_no_answer() {
        let answer = NodeNetworkConfigStatus {
            observed_generation: Some(1),
            ..status(ConfigStatus::Provisioned, "new")
        };
        assert_eq!(
            answered("new", Some(&(2..=2)), Some(&answer)),
            Progress::Ongoing
        );
    }

    #[test]
    fn an_answer_to_the_same_revision_with_another_router_of_the_host_is_an_answer() {
        let of = |observed| {
            let answer = NodeNetworkConfigStatus {
                observed_generation: Some(observed),
                ..status(ConfigStatus::Provisioned, "new")
            };
            answered("new", Some(&(2..=4)), Some(&answer))
        };
        assert_eq!([2, 3, 4].map(of), [Progress::Ready; 3]);
        assert_eq!(
            of(1),
            Progress::Ongoing,
            "what came before is another config"
        );
        assert_eq!(of(5), Progress::Ongoing, "no config has this generation");
    }

    #[test]
    fn a_config_without_its_mirrors_is_what_changes_forwarding() {
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
        let mirrored = vrf("10.0.0.0/8", true);
        assert_ne!(mirrored, plain);
        assert_eq!(*mirror::without(&mirrored), plain);
        let other = vrf("10.1.0.0/16", true);
        assert_ne!(*mirror::without(&other), plain, "forwarding changes too");
    }
}
