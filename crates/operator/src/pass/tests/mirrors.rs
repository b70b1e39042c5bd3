//! Mirrors change while a revision is rolled out: they say nothing about how nodes take it.

use compiler::rollout::stored::Lane;

use super::*;

/// Three nodes on a fabric with a segment, and a tunnel that mirrors could use.
fn fabric() -> Compiler {
    let mut compiler = three_nodes();
    let nodes = ["a", "b", "c"].map(str::to_owned);
    tunnel(&mut compiler, nodes.into_iter());
    segment(&mut compiler, 5);
    compiler
}

/// A fabric with a tunnel that mirrors could use on these nodes.
pub(super) fn tunnel(compiler: &mut Compiler, nodes: impl Iterator<Item = String>) {
    underlay(compiler, 64514);
    for (number, node) in nodes.enumerate() {
        let name = format!("mirror-lo.mir-{node}");
        let pool = json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "sources"});
        let spec = json!({
            "address": format!("10.99.0.{}", number + 1), "prefix": 32, "claimRef": {"name": name}, "poolRef": pool,
        });
        let metadata = json!({"name": name, "namespace": "selvedge-system"});
        let parts = json!({"metadata": metadata, "spec": spec});
        put(compiler, Kind::IpAddress, &name, &parts);
    }
    let pool =
        json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "sources"});
    let spec = json!({
        "vrf": "mirror", "vni": 99001, "routeTarget": "65000:99001", "seq": 100, "import": [],
        "export": [{"cidr": "0.0.0.0/0", "action": "deny"}],
        "loopbacks": [{"name": "lo.mir", "poolRef": pool}],
    });
    let parts = json!({"spec": spec});
    put(compiler, Kind::VrfRouteConfiguration, "mirror", &parts);
    let spec = json!({
        "type": "l3gre", "destinationIP": "10.250.0.100", "key": 7, "destinationVrf": "mirror", "sourceLoopback": "lo.mir",
    });
    put(
        compiler,
        Kind::MirrorTarget,
        "collector",
        &json!({"spec": spec}),
    );
}

/// Copies what comes in on the segment.
pub(super) fn mirror(compiler: &mut Compiler) {
    let group = "network.t-caas.telekom.com";
    let spec = json!({
        "mirrorTarget": {"apiGroup": group, "kind": "MirrorTarget", "name": "collector"},
        "mirrorSource": {"apiGroup": group, "kind": "Layer2NetworkConfiguration", "name": "vlan5"},
        "direction": "ingress",
    });
    put(
        compiler,
        Kind::MirrorSelector,
        "copy",
        &json!({"spec": spec}),
    );
}

/// A second segment begins its rollout at 200, and its canary has reported this.
fn with_canary(report: &str) -> Compiler {
    let (mut compiler, mut now) = (fabric(), 100);
    complete(&mut compiler, &mut now);
    segment(&mut compiler, 6);
    let pass = pass_at(&mut compiler, 1000);
    assert_eq!(pass.nodes(), ["a"]);
    publish(&mut compiler, &pass, 1000, report);
    compiler
}

fn published(pass: &Pass, node: &str) -> (Lane, Option<String>) {
    let mut publish = pass.step.publish.iter();
    let one = publish.find(|one| one.node == node).expect("it is written");
    assert!(!one.spec.fabric_vrfs["mirror"].gres.is_empty(), "a mirror");
    let lane = one.lane.expect("it is no router of a host");
    (lane, one.published_at.clone())
}

#[test]
fn a_mirror_on_a_canary_that_has_not_answered_is_no_answer_and_no_delay() {
    let mut compiler = with_canary("provisioning");
    mirror(&mut compiler);
    let pass = pass_at(&mut compiler, 1100);
    assert_eq!(pass.step.status.phase.as_deref(), Some("Progressing"));
    assert_eq!(pass.step.status.ongoing, 1, "{:?}", pass.step.status);
    let canary = published(&pass, "a");
    assert_eq!(canary, (Lane::Canary, Some(stored::text(1000))));
    let mut nodes = pass.nodes();
    nodes.sort_unstable();
    assert_eq!(nodes, ["a"], "the others get the mirror in their wave");
    publish(&mut compiler, &pass, 1100, "provisioning");
    assert!(pass_at(&mut compiler, 1101).nodes().is_empty());
    // The deadline is that of the wave.
    assert!(pass_at(&mut compiler, 1300).step.status.is_invalid);
}

#[test]
fn a_canary_that_fails_after_a_mirror_was_added_fails_its_revision() {
    let mut compiler = with_canary("provisioning");
    mirror(&mut compiler);
    let pass = pass_at(&mut compiler, 1100);
    publish(&mut compiler, &pass, 1100, "invalid");
    let pass = pass_at(&mut compiler, 1101);
    assert!(pass.step.status.is_invalid);
    assert_eq!(pass.step.status.failed_node.as_deref(), Some("a"));
}

#[test]
fn a_mirror_on_a_canary_that_failed_neither_confirms_it_nor_tries_it_again() {
    let mut compiler = with_canary("invalid");
    mirror(&mut compiler);
    let pass = pass_at(&mut compiler, 1001);
    assert!(pass.step.status.is_invalid);
    assert_eq!(pass.nodes(), ["a"], "it goes back, once");
    assert!(!pass.step.publish[0].spec.layer2s.contains_key("6"));
}

#[test]
fn a_mirror_on_a_confirmed_canary_leaves_it_confirmed_and_no_other_is_taken() {
    let mut compiler = with_canary("provisioned");
    assert!(pass_at(&mut compiler, 1001).nodes().is_empty(), "it soaks");
    mirror(&mut compiler);
    let pass = pass_at(&mut compiler, 1002);
    assert_eq!(pass.nodes(), ["a"]);
    assert_eq!(published(&pass, "a"), (Lane::Confirmed, None));
    publish(&mut compiler, &pass, 1002, "provisioning");
    let pass = pass_at(&mut compiler, 1003);
    assert_eq!(pass.step.status.phase.as_deref(), Some("Soaking"));
    assert_eq!(pass_at(&mut compiler, 1020).nodes(), ["b"]);
    // That it turns bad counts.
    store_in(&mut compiler, "a", "invalid");
    let pass = pass_at(&mut compiler, 1021);
    assert_eq!(pass.step.status.failed_node.as_deref(), Some("a"));
}

#[test]
fn a_mirror_reaches_all_nodes_at_once_while_nothing_is_rolled_out() {
    let (mut compiler, mut now) = (fabric(), 100);
    complete(&mut compiler, &mut now);
    mirror(&mut compiler);
    let pass = pass_at(&mut compiler, 1000);
    assert_eq!(pass.nodes(), ["a", "b", "c"]);
    assert_eq!(published(&pass, "b"), (Lane::Direct, None));
    publish(&mut compiler, &pass, 1000, "invalid");
    let pass = pass_at(&mut compiler, 1001);
    assert!(!pass.step.status.is_invalid, "it is none of the revision");
}

/// Another report of a node about the config that it has.
fn store_in(compiler: &mut Compiler, node: &str, report: &str) {
    let config = &compiler.snapshot().node_network_configs[&Key::named(node)];
    let spec = serde_json::to_value(&config.spec).expect("a spec");
    let status = json!({
        "configStatus": report, "observedRevision": config.spec.revision, "errorMessage": report,
    });
    let metadata = json!({"name": node, "annotations": config.meta.annotations});
    let parts = json!({"metadata": metadata, "spec": spec, "status": status});
    put(compiler, Kind::NodeNetworkConfig, node, &parts);
}
