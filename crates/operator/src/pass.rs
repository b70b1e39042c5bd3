//! One pass without the API server: what must be written, given all objects.

use api::tcaas::NetworkConfigRevisionStatus;
use compiler::{
    Compiler, Snapshot, Writes,
    rollout::{self, Progress},
    snapshot::Key,
};

/// What a pass has to write.
#[derive(Debug)]
pub(crate) struct Pass {
    /// What differs from what is stored.
    pub(crate) writes: Writes,
    /// The nodes whose config is written now, in this order.
    pub(crate) next: Vec<String>,
    /// How far the rollout is: the status of the newest revision.
    pub(crate) rollout: NetworkConfigRevisionStatus,
}

impl Pass {
    /// Compiles what changed and collects what must be written.
    pub(crate) fn compute(compiler: &mut Compiler) -> Self {
        let writes = compiler.writes().clone();
        let progress = compiler.progress();
        // Configs that differ in mirrors only do not change forwarding: they are written at once.
        let direct = writes.nodes.iter().filter(|(_, is_direct)| **is_direct);
        let mut next: Vec<String> = direct.map(|(node, _)| node.clone()).collect();
        for node in rollout::next(progress) {
            if writes.nodes.get(node) == Some(&false) {
                next.push(node.to_owned());
            }
        }
        let count = |wanted| {
            let nodes = progress.values().filter(|node| **node == wanted);
            u32::try_from(nodes.count()).unwrap_or(u32::MAX)
        };
        let mut failed = progress.iter();
        let failed = failed.find(|(_, node)| **node == Progress::Failed);
        let mut rollout = NetworkConfigRevisionStatus {
            is_invalid: failed.is_some(),
            ready: count(Progress::Ready),
            ongoing: count(Progress::Ongoing),
            queued: count(Progress::Queued),
            failed: count(Progress::Failed),
            unapproved: count(Progress::Unapproved),
            total: u32::try_from(progress.len()).unwrap_or(u32::MAX),
            failed_node: failed.map(|(node, _)| node.clone()),
            ..NetworkConfigRevisionStatus::default()
        };
        let failed_node = rollout.failed_node.as_deref();
        rollout.failed_message =
            failed_node.and_then(|node| error_message(compiler.snapshot(), node));
        let (_, compilation) = compiler.compile();
        let removal = compilation.removals.first_key_value();
        rollout.unapproved_message = removal
            .map(|(node, removal)| format!("the new config of node {node} would remove {removal}"));
        Self {
            writes,
            next,
            rollout,
        }
    }
}

/// Why a node could not apply its config.
fn error_message(snapshot: &Snapshot, node: &str) -> Option<String> {
    let config = snapshot.node_network_configs.get(&Key::named(node))?;
    config.status.as_ref()?.error_message.clone()
}

#[cfg(test)]
mod tests {
    use compiler::{Kind, ObjectRef};
    use serde_json::{Value, json};

    use super::*;

    fn put(compiler: &mut Compiler, kind: Kind, name: &str, parts: &Value) {
        let mut document = json!({
            "apiVersion": kind.api_version(), "kind": kind.to_string(), "metadata": {"name": name},
        });
        for (part, value) in parts.as_object().into_iter().flatten() {
            document[part] = value.clone();
        }
        compiler.insert(&document);
    }

    /// Stores the config of a node, with what the node reports about it.
    fn store(compiler: &mut Compiler, node: &str, report: &str) {
        let (_, compilation) = compiler.compile();
        let config = compilation.nodes.get(node).expect("a config");
        let spec = config.spec(&compilation.revision.fingerprint);
        let status = json!({
            "configStatus": report, "observedRevision": spec.revision, "errorMessage": report,
        });
        let parts = json!({"spec": spec, "status": status});
        put(compiler, Kind::NodeNetworkConfig, node, &parts);
    }

    #[test]
    fn nodes_get_their_configs_one_after_another_until_one_fails() {
        let mut compiler = Compiler::default();
        for node in ["a", "b", "c"] {
            put(&mut compiler, Kind::Node, node, &json!({}));
        }
        let pass = Pass::compute(&mut compiler);
        assert_eq!(pass.next, ["a"]);
        assert_eq!((pass.rollout.queued, pass.rollout.total), (3, 3));

        store(&mut compiler, "a", "provisioning");
        let pass = Pass::compute(&mut compiler);
        assert!(pass.next.is_empty(), "{:?}", pass.next);
        assert_eq!((pass.rollout.ongoing, pass.rollout.queued), (1, 2));

        store(&mut compiler, "a", "provisioned");
        let pass = Pass::compute(&mut compiler);
        assert_eq!(pass.next, ["b"]);
        assert_eq!((pass.rollout.ready, pass.rollout.queued), (1, 2));

        store(&mut compiler, "b", "invalid");
        let pass = Pass::compute(&mut compiler);
        assert!(pass.next.is_empty(), "{:?}", pass.next);
        assert!(pass.rollout.is_invalid);
        assert_eq!(pass.rollout.failed_node.as_deref(), Some("b"));
        assert_eq!(pass.rollout.failed_message.as_deref(), Some("invalid"));
    }

    #[test]
    fn a_config_that_would_empty_its_node_is_not_written_and_holds_up_no_other_node() {
        let mut compiler = Compiler::default();
        let underlay = |selects: &str| {
            json!({"spec": {
                "nodeSelector": {"matchLabels": {"rack": selects}},
                "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
                "neighbors": [{"asn": 64512, "address": "192.168.11.2"}],
            }})
        };
        let put_underlay = |compiler: &mut Compiler, selects: &str| {
            let mut document = json!({
                "apiVersion": Kind::Underlay.api_version(), "kind": "Underlay",
                "metadata": {"name": "fabric", "namespace": "default"},
            });
            document["spec"] = underlay(selects)["spec"].clone();
            compiler.insert(&document);
        };
        let labels = json!({"metadata": {"name": "a", "labels": {"rack": "1"}}});
        put(&mut compiler, Kind::Node, "a", &labels);
        put_underlay(&mut compiler, "1");
        store(&mut compiler, "a", "provisioned");
        assert!(Pass::compute(&mut compiler).next.is_empty());

        // The selector is edited, and a new node comes.
        put_underlay(&mut compiler, "2");
        let labels = json!({"metadata": {"name": "b", "labels": {"rack": "2"}}});
        put(&mut compiler, Kind::Node, "b", &labels);
        let pass = Pass::compute(&mut compiler);
        assert_eq!(
            pass.next,
            ["b"],
            "a keeps its config, and b does not wait for it"
        );
        assert!(!pass.writes.nodes.contains_key("a"));
        assert_eq!((pass.rollout.unapproved, pass.rollout.queued), (1, 1));
        assert_eq!(
            pass.rollout.unapproved_message.as_deref(),
            Some("the new config of node a would remove its Underlay")
        );

        // Deleting the stored config is how somebody approves it.
        compiler.remove(&ObjectRef::named(Kind::NodeNetworkConfig, "a"));
        let pass = Pass::compute(&mut compiler);
        assert_eq!(
            (pass.next, pass.rollout.unapproved),
            (vec!["a".to_owned()], 0)
        );
    }

    #[test]
    fn a_status_that_was_stored_is_not_written_again() {
        let mut compiler = Compiler::default();
        let spec = json!({"vrf": "m2m", "vni": 7, "routeTarget": "64500:7"});
        put(&mut compiler, Kind::Vrf, "m2m", &json!({"spec": spec}));
        let pass = Pass::compute(&mut compiler);
        let subject = ObjectRef::named(Kind::Vrf, "m2m");
        let status = pass.writes.statuses.get(&subject).expect("a status");
        let status = crate::status::timed(status.to_value(), &Value::Null, "2026-01-01T00:00:00Z");
        let stored = json!({"spec": spec, "status": status});
        put(&mut compiler, Kind::Vrf, "m2m", &stored);
        assert!(Pass::compute(&mut compiler).writes.statuses.is_empty());
        // The event of the watch about the write changes nothing.
        put(&mut compiler, Kind::Vrf, "m2m", &stored);
        assert!(!compiler.has_changed());
    }
}
