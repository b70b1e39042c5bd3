//! The status of an object as it is written: with the transition times of its conditions.

use compiler::{
    Kind, ObjectRef, Snapshot,
    snapshot::{Meta, Objects},
};
use serde::Serialize;
use serde_json::{Value, json};

/// The status with a transition time on each condition: the old one where the condition's status is the same.
pub(crate) fn timed(mut status: Value, before: &Value, now: &str) -> Value {
    let Some(conditions) = status.get_mut("conditions").and_then(Value::as_array_mut) else {
        return status;
    };
    for condition in conditions {
        let same = before
            .get("conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .find(|old| {
                ["type", "status"]
                    .iter()
                    .all(|field| old.get(field) == condition.get(field))
            });
        let time = same
            .and_then(|old| old.get("lastTransitionTime"))
            .cloned()
            .unwrap_or_else(|| json!(now));
        if let Some(fields) = condition.as_object_mut() {
            fields.insert("lastTransitionTime".to_owned(), time);
        }
    }
    status
}

/// The metadata of a stored object whose status the operator writes, and its status.
pub(crate) fn stored<'a>(snapshot: &'a Snapshot, subject: &ObjectRef) -> Option<(&'a Meta, Value)> {
    fn find<'a, S, T: Serialize>(
        objects: &'a Objects<S, T>,
        subject: &ObjectRef,
    ) -> Option<(&'a Meta, Value)> {
        let object = objects.get(&subject.key)?;
        let status = object.status.as_deref().map(serde_json::to_value);
        let status = status.and_then(Result::ok).unwrap_or_default();
        Some((&object.meta, status))
    }
    match subject.kind {
        Kind::Settings => find(&snapshot.settings, subject),
        Kind::Vrf => find(&snapshot.vrfs, subject),
        Kind::Network => find(&snapshot.networks, subject),
        Kind::Destination => find(&snapshot.destinations, subject),
        Kind::Layer2Attachment => find(&snapshot.layer2_attachments, subject),
        Kind::Inbound => find(&snapshot.inbounds, subject),
        Kind::Outbound => find(&snapshot.outbounds, subject),
        Kind::PodNetwork => find(&snapshot.pod_networks, subject),
        Kind::BgpNeighbor => find(&snapshot.bgp_neighbors, subject),
        Kind::Collector => find(&snapshot.collectors, subject),
        Kind::TrafficMirror => find(&snapshot.traffic_mirrors, subject),
        Kind::Layer2NetworkConfiguration => find(&snapshot.layer2_network_configurations, subject),
        Kind::VrfRouteConfiguration => find(&snapshot.vrf_route_configurations, subject),
        Kind::BgpPeering => find(&snapshot.bgp_peerings, subject),
        Kind::MirrorTarget => find(&snapshot.mirror_targets, subject),
        Kind::MirrorSelector => find(&snapshot.mirror_selectors, subject),
        Kind::Node
        | Kind::Underlay
        | Kind::L3Vni
        | Kind::L2Vni
        | Kind::L3Passthrough
        | Kind::NetworkConfigRevision
        | Kind::NodeNetworkConfig
        | Kind::NodeNetworkStatus
        | Kind::FrrConfiguration
        | Kind::FrrNodeState
        | Kind::BgpSessionState
        | Kind::MultiPodNetwork
        | Kind::IpAddressClaim
        | Kind::IpAddress => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_did_not_change_keeps_its_time() {
        let wanted =
            json!({"conditions": [{"type": "Ready", "status": "True", "message": "new words"}]});
        let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]});
        let timed = timed(wanted, &before, "now");
        assert_eq!(timed["conditions"][0]["lastTransitionTime"], "then");
        assert_eq!(
            super::timed(timed.clone(), &timed, "now"),
            timed,
            "nothing to write the second time"
        );
    }

    #[test]
    fn a_condition_that_changed_gets_the_time_of_now() {
        let wanted = json!({"conditions": [{"type": "Ready", "status": "False"}]});
        let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "then"}]});
        assert_eq!(
            timed(wanted, &before, "now")["conditions"][0]["lastTransitionTime"],
            "now"
        );
    }

    #[test]
    fn times_come_from_the_status_that_the_object_carries() {
        let status = json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        ]});
        let vrf = json!({
            "apiVersion": Kind::Vrf.api_version(), "kind": "VRF", "metadata": {"name": "a", "uid": "u"},
            "spec": {"vrf": "a", "vni": 7}, "status": status,
        });
        let mut snapshot = Snapshot::default();
        snapshot.insert(&vrf);
        let subject = ObjectRef::named(Kind::Vrf, "a");
        let (meta, before) = stored(&snapshot, &subject).expect("it is stored");
        assert_eq!(meta.uid.as_deref(), Some("u"));
        let wanted = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        let timed = timed(wanted, &before, "now");
        let time = &timed["conditions"][0]["lastTransitionTime"];
        assert_eq!(time, "2026-01-01T00:00:00Z");
    }
}
