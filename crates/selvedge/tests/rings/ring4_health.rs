//! Ring 4, the targets of `Settings.health`: what was reached before a change is reached after it, or the change is rolled back.

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{
    ring4::{Node, config},
    ring4_safety::{is_at, while_trying},
};

const TARGET: &str = "198.18.9.1";

/// A namespace behind the host that has the target, and the host's default route.
fn start_target(node: &Node) -> anyhow::Result<()> {
    node.script(&format!(
        "ip netns add target
ip link add probed type veth peer name far netns target
ip address add 198.18.9.2/24 dev probed; ip link set probed up
ip -n target address add {TARGET}/24 dev far; ip -n target link set far up
until ping -c 1 -W 1 {TARGET}; do sleep 0.2; done
ip route replace default via {TARGET}"
    ))?;
    Ok(())
}

#[test]
fn a_change_after_which_a_target_is_not_reached_is_rolled_back_and_one_that_was_not_reached_before_is_not_missed()
-> anyhow::Result<()> {
    let node = Node::start()?;
    start_target(&node)?;
    let less = config(&["shop"])?;
    node.apply(&less)?.ok()?;
    let health = |more: Value| {
        let mut health = json!({"sessions": false, "gateways": false, "confirmDeadline": "15s", "timeout": "1s"});
        let fields = health.as_object_mut().expect("an object");
        fields.extend(more.as_object().cloned().unwrap_or_default());
        health
    };
    let cut = "ip -n target link set far down";
    for (what, target, lose) in [
        (
            "TCP",
            json!({"reachability": [{"host": TARGET, "port": 9}]}),
            cut,
        ),
        ("ICMP", json!({"icmp": [{"host": TARGET}]}), cut),
        ("gateway", json!({"gateways": true}), cut),
        (
            "gateway",
            json!({"gateways": true}),
            "ip route delete default",
        ),
    ] {
        let mut all = config(&[])?;
        all["spec"]["health"] = health(target);
        let said = while_trying(&node, &all, &format!("{lose}; wait $agent || true"))?;
        let expected = format!("{what} {TARGET}");
        assert!(said.contains(&expected), "{what}, {lose}: {said}");
        is_at(&node, &less).with_context(|| format!("{what}, {lose}: {said}"))?;

        // It was away before the change, and is not missed.
        if lose == cut {
            node.apply(&all)?
                .ok()
                .with_context(|| format!("{what} was away before"))?;
            node.apply(&less)?.ok()?;
        }

        // It stays, and the change does.
        node.script(&format!(
            "ip -n target link set far up
until ping -c 1 -W 1 {TARGET}; do sleep 0.2; done
ip route replace default via {TARGET}"
        ))?;
        node.apply(&all)?
            .ok()
            .with_context(|| format!("{what} is reached"))?;
        node.apply(&less)?.ok()?;
    }
    Ok(())
}
