//! One pass without the API server: what must be written, given all objects.

use std::collections::BTreeMap;

use api::tcaas::NetworkConfigRevisionStatus;
use compiler::{
    Compiler, Snapshot, Writes, revision,
    rollout::{
        Progress, stored,
        waves::{self, Decision, Member, Time},
    },
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
    /// When the next pass is due, if nothing changes before.
    pub(crate) again_at: Option<Time>,
}

impl Pass {
    /// Compiles what changed and collects what must be written.
    pub(crate) fn compute(
        compiler: &mut Compiler,
        is_alive: impl Fn(&str) -> bool,
        now: Time,
    ) -> Self {
        let writes = compiler.writes().clone();
        let mut progress = compiler.progress().clone();
        for (node, _) in writes.nodes.iter().filter(|(_, is_direct)| **is_direct) {
            // It forwards as it must; what differs waits for no wave.
            progress.insert(node.clone(), Progress::Ready);
        }
        let (snapshot, compilation) = compiler.compile();
        let fingerprint = &compilation.revision.fingerprint;
        let key = Key::named(&revision::object_name(fingerprint));
        let stored = snapshot.network_config_revisions.get(&key);
        let before = stored.and_then(|stored| stored.status.as_deref().cloned());
        let before = before.unwrap_or_default();
        let settings = snapshot.settings().rollout;
        let state = stored::state(&before);
        let of_revision = (fingerprint.as_str(), &state);
        let members = stored::members(snapshot, &settings, &progress, of_revision, is_alive);
        let Decision {
            publish,
            phase,
            state,
            again_at,
        } = waves::decide(&settings, &members, &state, now);
        let error_message = |node: &str| error_message(snapshot, node);
        let mut rollout = stored::status(&state, phase, &members, &before, error_message);
        let removal = compilation.removals.first_key_value();
        rollout.unapproved_message = removal
            .map(|(node, removal)| format!("the new config of node {node} would remove {removal}"));
        Self {
            next: next(&writes, &members, publish),
            writes,
            rollout,
            again_at,
        }
    }
}

/// The nodes whose configs are written now. Configs that differ in mirrors only do not change forwarding: they wait for no wave.
fn next(writes: &Writes, members: &BTreeMap<String, Member>, publish: Vec<String>) -> Vec<String> {
    let is_held = |node: &String| members.get(node).is_some_and(|member| member.is_held);
    let direct = writes.nodes.iter().filter(|(_, is_direct)| **is_direct);
    let direct = direct.map(|(node, _)| node.clone());
    let mut next: Vec<String> = direct.filter(|node| !is_held(node)).collect();
    for node in publish {
        if writes.nodes.get(&node) == Some(&false) {
            next.push(node);
        }
    }
    next
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

    /// Stores the config of a node that was published at this time, with what the node reports about it.
    fn store_at(compiler: &mut Compiler, node: &str, time: Time, report: &str) {
        let (_, compilation) = compiler.compile();
        let config = compilation.nodes.get(node).expect("a config");
        let spec = config.spec(&compilation.revision.fingerprint);
        let status = json!({
            "configStatus": report, "observedRevision": spec.revision, "errorMessage": report,
        });
        let annotations = json!({stored::PUBLISHED_AT: stored::text(time)});
        let metadata = json!({"name": node, "annotations": annotations});
        let parts = json!({"metadata": metadata, "spec": spec, "status": status});
        put(compiler, Kind::NodeNetworkConfig, node, &parts);
    }

    fn store(compiler: &mut Compiler, node: &str, report: &str) {
        store_at(compiler, node, 0, report);
    }

    /// A pass at this time, with the revision and its status stored.
    fn pass_at(compiler: &mut Compiler, now: Time) -> Pass {
        let pass = Pass::compute(compiler, |_| true, now);
        let (_, compilation) = compiler.compile();
        let revision = &compilation.revision;
        let name = revision::object_name(&revision.fingerprint);
        let spec = revision.spec(&compilation.objects);
        let parts = json!({"spec": spec, "status": pass.rollout});
        put(compiler, Kind::NetworkConfigRevision, &name, &parts);
        pass
    }

    fn three_nodes() -> Compiler {
        let mut compiler = Compiler::default();
        for node in ["a", "b", "c"] {
            put(&mut compiler, Kind::Node, node, &json!({}));
        }
        compiler
    }

    #[test]
    fn a_canary_confirms_and_soaks_before_others_follow_until_one_fails() {
        let mut compiler = three_nodes();
        let pass = pass_at(&mut compiler, 100);
        assert_eq!(pass.next, ["a"]);
        assert_eq!((pass.rollout.queued, pass.rollout.total), (3, 3));
        assert_eq!(pass.rollout.wave.as_deref(), Some("canary"));

        store_at(&mut compiler, "a", 100, "provisioning");
        let pass = pass_at(&mut compiler, 101);
        assert!(pass.next.is_empty(), "{:?}", pass.next);
        assert_eq!((pass.rollout.ongoing, pass.rollout.queued), (1, 2));
        assert_eq!(pass.again_at, Some(400), "then it is late");

        store_at(&mut compiler, "a", 100, "provisioned");
        let pass = pass_at(&mut compiler, 105);
        assert!(pass.next.is_empty(), "{:?}", pass.next);
        assert_eq!(pass.rollout.phase.as_deref(), Some("Soaking"));
        assert_eq!(pass.again_at, Some(115));
        let pass = pass_at(&mut compiler, 115);
        assert_eq!(pass.next, ["b"]);
        assert_eq!((pass.rollout.ready, pass.rollout.queued), (1, 2));

        store_at(&mut compiler, "b", 115, "invalid");
        let pass = pass_at(&mut compiler, 116);
        assert!(pass.next.is_empty(), "{:?}", pass.next);
        assert!(pass.rollout.is_invalid);
        assert_eq!(pass.rollout.failed_node.as_deref(), Some("b"));
        assert_eq!(pass.rollout.failed_message.as_deref(), Some("invalid"));
        // The same input is not tried again, whatever the node says later.
        store_at(&mut compiler, "b", 115, "provisioned");
        let pass = pass_at(&mut compiler, 200);
        assert!(pass.rollout.is_invalid && pass.next.is_empty());
        assert_eq!(pass.rollout.failed_message.as_deref(), Some("invalid"));
    }

    #[test]
    fn a_node_that_never_answers_fails_the_revision_at_the_deadline_and_not_before() {
        let mut compiler = three_nodes();
        pass_at(&mut compiler, 100);
        store_at(&mut compiler, "a", 100, "provisioning");
        assert!(!pass_at(&mut compiler, 399).rollout.is_invalid);
        let pass = pass_at(&mut compiler, 400);
        assert!(pass.rollout.is_invalid);
        let message = pass.rollout.failed_message.expect("a message");
        assert!(message.contains("progressDeadline"), "{message}");
    }

    #[test]
    fn a_revision_that_was_complete_stays_valid_when_a_node_fails_later() {
        let mut compiler = three_nodes();
        for (node, time) in [("a", 100), ("b", 120), ("c", 140)] {
            pass_at(&mut compiler, time);
            store_at(&mut compiler, node, time, "provisioned");
        }
        let pass = pass_at(&mut compiler, 150);
        assert_eq!(pass.rollout.phase.as_deref(), Some("Complete"));
        store_at(&mut compiler, "c", 140, "invalid");
        let pass = pass_at(&mut compiler, 1000);
        assert!(!pass.rollout.is_invalid);
        assert_eq!((pass.rollout.ready, pass.rollout.failed), (2, 1));
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
        assert!(pass_at(&mut compiler, 100).next.is_empty());

        // The selector is edited, and a new node comes.
        put_underlay(&mut compiler, "2");
        let labels = json!({"metadata": {"name": "b", "labels": {"rack": "2"}}});
        put(&mut compiler, Kind::Node, "b", &labels);
        let pass = pass_at(&mut compiler, 100);
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
        let pass = pass_at(&mut compiler, 100);
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
        let pass = pass_at(&mut compiler, 100);
        let subject = ObjectRef::named(Kind::Vrf, "m2m");
        let status = pass.writes.statuses.get(&subject).expect("a status");
        let status = crate::status::timed(status.to_value(), &Value::Null, "2026-01-01T00:00:00Z");
        let stored = json!({"spec": spec, "status": status});
        put(&mut compiler, Kind::Vrf, "m2m", &stored);
        assert!(pass_at(&mut compiler, 100).writes.statuses.is_empty());
        // The event of the watch about the write changes nothing.
        put(&mut compiler, Kind::Vrf, "m2m", &stored);
        assert!(!compiler.has_changed());
    }
}
