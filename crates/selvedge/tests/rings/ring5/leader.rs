//! Two operators: one leads, and the other takes over.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, for_a_while, object, start_operator, without_operator},
    proxy::{Passed, Proxy},
    server::eventually,
};
use crate::{data::text, support::OWN_NAMESPACE};

/// Short times, so that tests need not wait.
const QUICK: [&str; 6] = [
    "--lease-duration",
    "4s",
    "--renew-deadline",
    "2s",
    "--retry-period",
    "1s",
];
const LEASE_DURATION: Duration = Duration::from_secs(4);
const RETRY_PERIOD: Duration = Duration::from_secs(1);

fn lease(cluster: &Cluster<'_>) -> anyhow::Result<Value> {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "selvedge-operator", "namespace": OWN_NAMESPACE},
    });
    Ok(cluster.server.get(&lease)?.unwrap_or_default())
}

fn holder(cluster: &Cluster<'_>) -> anyhow::Result<String> {
    Ok(text(&lease(cluster)?, "/spec/holderIdentity").to_owned())
}

/// Waits until an operator other than this one leads; which.
fn until_another_leads(cluster: &Cluster<'_>, before: &str) -> anyhow::Result<String> {
    eventually("another operator leads", || {
        let holder = holder(cluster)?;
        Ok((!holder.is_empty() && holder != before).then_some(holder))
    })
}

/// Changes what nodes must have.
fn change(cluster: &Cluster<'_>, mtu: u32) -> anyhow::Result<()> {
    let billing = object("Layer2Attachment", "billing");
    cluster
        .server
        .edit(&billing, &json!({"spec": {"mtu": mtu}}))
}

/// How many writes there were to such a path, without statuses.
fn to(writes: &[Passed], path: &str) -> usize {
    let objects = writes.iter().filter(|one| !one.path.contains("/status"));
    objects.filter(|one| one.path.contains(path)).count()
}

#[test]
fn a_leader_that_was_stopped_past_its_lease_lands_no_write() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let (first, second) = (Proxy::start(cluster.server)?, Proxy::start(cluster.server)?);
        let old = start_operator(first.kubeconfig(), &QUICK)?;
        let leader = until_another_leads(cluster, "")?;
        cluster
            .roll_out(&["n1", "n2"])
            .expect("both nodes have a config");
        let new = start_operator(second.kubeconfig(), &QUICK)?;

        // The leader has sent the config of a node, which is on its way, and is stopped.
        first.hold("/nodenetworkconfigs/n1");
        change(cluster, 1400)?;
        first.until_held().expect("the leader writes");
        old.signal(Signal::STOP)?;
        let before = cluster.revision("n1")?;
        let follower = until_another_leads(cluster, &leader).expect("the other one takes over");
        let written = eventually("the new leader has written", || {
            Ok(Some(cluster.get("NodeNetworkConfig", "n1")?)
                .filter(|config| text(config, "/spec/revision") != before))
        })
        .expect("the change is rolled out");

        // What was on its way arrives.
        let sent = first.writes().len();
        first.release();
        let late = eventually("the late write is answered", || {
            Ok(first.writes().get(sent).cloned())
        })?;
        assert_eq!(
            (late.code, late.method.as_str()),
            (409, "PATCH"),
            "{late:?}"
        );
        let now = cluster.get("NodeNetworkConfig", "n1")?;
        assert_eq!(
            now["metadata"]["resourceVersion"],
            written["metadata"]["resourceVersion"]
        );

        // The old leader goes on, with a change that it has not seen yet.
        let sent = first.writes().len();
        change(cluster, 1300)?;
        old.signal(Signal::CONT)?;
        let quiet = for_a_while("the old leader writes nothing", || {
            Ok(first.writes().len() == sent)
        });
        quiet
            .with_context(|| format!("{:?}", &first.writes()[sent..]))
            .expect("it knows that its time is over");
        assert_eq!(holder(cluster)?, follower);
        drop((old, new));
        Ok(())
    })
}

#[test]
fn a_leader_that_is_killed_is_followed_within_the_lease_time_and_nothing_is_written_twice()
-> anyhow::Result<()> {
    without_operator(|cluster| {
        let (first, second) = (Proxy::start(cluster.server)?, Proxy::start(cluster.server)?);
        let old = start_operator(first.kubeconfig(), &QUICK)?;
        let leader = until_another_leads(cluster, "")?;
        let new = start_operator(second.kubeconfig(), &QUICK)?;
        cluster.until_configured(&["n1"])?;
        cluster.until_condition(("Layer2Attachment", "billing"), ["Resolved", "True", ""])?;
        for_a_while("only the leader writes", || Ok(second.writes().is_empty()))
            .expect("the other one is silent");
        let config = cluster.get("NodeNetworkConfig", "n1")?;

        let killed = Instant::now();
        old.signal(Signal::KILL)?;
        until_another_leads(cluster, &leader).expect("the other one takes over");
        let after = killed.elapsed();
        // The last renewal was before the kill; the follower looks once in every period.
        let latest = LEASE_DURATION + 2 * RETRY_PERIOD;
        assert!(after <= latest, "taken over after {after:?}");
        eprintln!("taken over {after:?} after the leader was killed");

        cluster.answer("n1", text(&config, "/spec/revision"))?;
        cluster
            .until_configured(&["n1", "n2"])
            .expect("the rollout goes on");
        let writes = second.writes();
        for path in [
            "/nodenetworkconfigs/n1",
            "/layer2networkconfigurations/",
            "/vrfrouteconfigurations/",
            "/networkconfigrevisions/",
        ] {
            assert_eq!(to(&writes, path), 0, "{path}: {writes:?}");
        }
        assert_eq!(to(&writes, "/nodenetworkconfigs/n2"), 1, "{writes:?}");
        let now = cluster.get("NodeNetworkConfig", "n1")?;
        assert_eq!(
            now["metadata"]["generation"],
            config["metadata"]["generation"]
        );
        drop((old, new));
        Ok(())
    })
}

#[test]
fn an_operator_that_ends_gives_the_lease_back() -> anyhow::Result<()> {
    without_operator(|cluster| {
        let kubeconfig = cluster.server.operator_kubeconfig();
        let mut old = start_operator(kubeconfig, &[])?;
        let leader = until_another_leads(cluster, "")?;
        let new = start_operator(kubeconfig, &[])?;
        cluster.until_configured(&["n1"])?;
        let asked = Instant::now();
        old.signal(Signal::TERM)?;
        assert!(old.wait()?.success(), "{}", old.log()?);
        until_another_leads(cluster, &leader).expect("the other one takes over");
        let after = asked.elapsed();
        // With the default times it would be 15 seconds.
        assert!(after < Duration::from_secs(8), "taken over after {after:?}");
        let transitions = lease(cluster)?["spec"]["leaseTransitions"].as_i64();
        assert_eq!(transitions.context("a number")?, 1);
        drop(new);
        Ok(())
    })
}
