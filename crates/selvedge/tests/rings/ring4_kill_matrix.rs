//! Ring 4, the kill matrix: an agent is killed, or its node powered off, at each stage of a change. The agent is first stopped there, so
//! that the stage is proven; the node is at the confirmed config afterwards, and its journal says why.

use serde_json::Value;

use crate::{
    ring4::Node,
    ring4_safety::{NODE, nothing, plugged, preview, returns_by_itself},
};

const ATTEMPTS: usize = 5;
/// What the journal says of a trial that a crash of the agent, or of the node, has ended.
const AGENT_ENDED: &str = "the agent ended before the config was confirmed";
const REBOOTED: &str = "the node was rebooted before the config was confirmed";

/// Where a change is, as a shell sees it from the host's namespace. What is asked again and again starts no program where it can.
const STAGES: &str = r#"
is_trying() { [[ -e $state/journal && $(< $state/journal) == *'"trying"'* ]]; }
has_namespace() { [ -e /run/netns/selvedge ]; }
has_nic() { [ -e /sys/class/net/eth1 ]; }
has_bgpd() { pidof bgpd > /dev/null; }
devices() { cut -s -d: -f1 /proc/$zebra/net/dev | sort; }
state=/var/lib/selvedge
zebra=$(pidof zebra || true)
[ -z "$zebra" ] || before=$(devices)"#;

/// A stage of a change.
#[derive(Clone, Copy)]
struct Stage {
    what: &'static str,
    /// The condition for which the agent is stopped.
    begins: &'static str,
    /// What must still be so once it is stopped.
    lasts: &'static str,
    /// Whether the node is then neither at the old nor at the new config.
    is_between: bool,
}

const NOT_ANNOUNCED: Stage = Stage {
    what: "first boot, not announced",
    begins: "[ -e /run/selvedge/agent.lock ]",
    lasts: "! is_trying && ! has_namespace",
    is_between: false,
};
const ANNOUNCED: Stage = Stage {
    what: "first boot, announced",
    begins: "is_trying",
    lasts: "is_trying && ! has_namespace",
    is_between: false,
};
const NAMESPACE_CREATED: Stage = Stage {
    what: "first boot, namespace created",
    begins: "has_namespace",
    lasts: "is_trying && has_namespace && ! has_bgpd",
    is_between: true,
};
const NIC_MOVED: Stage = Stage {
    what: "first boot, NIC moved",
    begins: "! has_nic",
    lasts: "is_trying && ! has_nic && ! has_bgpd",
    is_between: true,
};
const VRF_REMOVED: Stage = Stage {
    what: "VRF removed",
    begins: r#"[ "$(devices)" != "$before" ]"#,
    lasts: "is_trying && has_bgpd",
    is_between: true,
};
const UNDERLAY_REMOVED: Stage = Stage {
    what: "underlay removed, FRR stopped",
    begins: "! has_bgpd",
    lasts: "is_trying && has_namespace && ! has_nic",
    is_between: true,
};
const UNDERLAY_RETURNED: Stage = Stage {
    what: "underlay returned, FRR started",
    begins: "has_bgpd",
    lasts: "is_trying && has_namespace && ! has_nic",
    is_between: true,
};

/// A config with much time for what is applied in full: only what happens on the way is tested.
fn config(node: &Node, without: &[&str]) -> anyhow::Result<Value> {
    let mut config = plugged(&node.fabric, without)?;
    config["spec"]["health"]["confirmDeadline"] = "60s".into();
    Ok(config)
}

/// Starts a change and stops the agent at this stage. An agent that went on too far is killed, and the change is started again.
fn stopped_at(node: &Node, (old, new): (&Value, &Value), stage: Stage) -> anyhow::Result<()> {
    let Stage {
        what,
        begins,
        lasts,
        is_between,
    } = stage;
    let script = format!(
        r"{STAGES}
rm -f /run/selvedge/agent.lock
/share/selvedge agent --config /run/config.json > /run/agent.out 2>&1 & agent=$!
echo $agent > /run/agent.pid
until {begins}; do kill -0 $agent || {{ echo over; cat /run/agent.out; exit; }}; done
kill -STOP $agent
until [[ $(< /proc/$agent/stat) == *') T '* ]]; do kill -0 $agent || {{ echo over; exit; }}; done
if {lasts}; then echo stopped in time; else kill -KILL $agent; echo too late; fi"
    );
    let mut said = String::new();
    for attempt in 1..=ATTEMPTS {
        node.fabric
            .at(NODE)?
            .write("/run/config.json", &new.to_string())?;
        said = node.script(&script)?;
        if said.contains("stopped in time") {
            if is_between {
                for config in [old, new] {
                    assert_ne!(preview(node, config)?, "nothing to do", "{what}");
                }
            }
            eprintln!("{what}: met in attempt {attempt}");
            return Ok(());
        }
        node.apply(old)?.ok()?;
    }
    anyhow::bail!("{what}: not met in {ATTEMPTS} attempts: {said}")
}

/// How often the journal gives this reason for a config that was rolled back.
fn reasons(node: &Node, reason: &str) -> anyhow::Result<usize> {
    let journal = node.script("cat /var/lib/selvedge/journal 2> /dev/null || true")?;
    Ok(journal.matches(reason).count())
}

/// An agent is killed at a stage; the next one brings the old config back, without an API server, and the journal says why.
fn killed_at(node: &Node, (old, new): (&Value, &Value), stage: Stage) -> anyhow::Result<()> {
    stopped_at(node, (old, new), stage)?;
    let before = reasons(node, AGENT_ENDED)?;
    node.script("kill -KILL $(cat /run/agent.pid)")?;
    returns_by_itself(node, old)?;
    let is_announced = stage.lasts.starts_with("is_trying");
    let after = before + usize::from(is_announced);
    assert_eq!(reasons(node, AGENT_ENDED)?, after, "{}", stage.what);
    Ok(())
}

#[test]
fn an_agent_killed_at_each_stage_of_a_change_leaves_the_confirmed_config() -> anyhow::Result<()> {
    let node = Node::start()?;
    let (all, less) = (config(&node, &[])?, config(&node, &["shop"])?);
    let none = nothing();
    let bare = node.links_of_host()?;
    for stage in [NOT_ANNOUNCED, ANNOUNCED, NAMESPACE_CREATED, NIC_MOVED] {
        killed_at(&node, (&none, &less), stage)?;
        assert_eq!(node.links_of_host()?, bare, "{}", stage.what);
        assert_eq!(node.daemons()?, "", "{}", stage.what);
    }
    node.apply(&all)?.ok()?;
    killed_at(&node, (&all, &less), VRF_REMOVED)?;
    killed_at(&node, (&all, &none), UNDERLAY_REMOVED)?;
    node.apply(&none)?.ok()?;
    killed_at(&node, (&none, &all), UNDERLAY_RETURNED)?;
    assert_eq!(node.links_of_host()?, bare);
    Ok(())
}

#[test]
fn a_node_powered_off_at_a_stage_of_a_change_comes_up_with_the_confirmed_config()
-> anyhow::Result<()> {
    let mut node = Node::start_in_a_guest_of_its_own()?;
    let less = config(&node, &["shop"])?;
    let none = nothing();
    let bare = node.links_of_host()?;
    powered_off_at(&mut node, (&none, &less), NIC_MOVED)?;
    assert_eq!(node.links_of_host()?, bare, "the NIC is the host's again");
    node.apply(&less)?.ok()?;
    powered_off_at(&mut node, (&less, &none), UNDERLAY_REMOVED)
}

fn powered_off_at(
    node: &mut Node,
    (old, new): (&Value, &Value),
    stage: Stage,
) -> anyhow::Result<()> {
    stopped_at(node, (old, new), stage)?;
    let before = reasons(node, REBOOTED)?;
    node.fabric.reboot(NODE)?;
    node.script("grep -q '\"trying\"' /var/lib/selvedge/journal")?;
    returns_by_itself(node, old)?;
    assert_eq!(reasons(node, REBOOTED)?, before + 1, "{}", stage.what);
    Ok(())
}
