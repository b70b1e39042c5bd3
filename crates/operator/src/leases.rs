//! Which agents are alive: each renews a Lease of its own.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::selvedge::{AGENT_LEASE_LIFETIME, AGENT_LEASES};
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    runtime::watcher::{self, Event},
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        watch as latest,
    },
    task::JoinSet,
    time::sleep,
};

/// Delay before a failed watch is started again.
const RETRY: Duration = Duration::from_secs(5);

/// The agents that have renewed a Lease.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    /// The time that each Lease names, and when it was first seen here: clocks of nodes differ.
    renewed: BTreeMap<String, (Option<String>, Instant)>,
}

/// A Lease, as its watch reported it.
#[derive(Debug)]
pub(crate) struct Renewal {
    node: String,
    /// When the agent renewed it, by the node's clock.
    time: Option<String>,
    /// When that was reported here.
    seen: Instant,
}

impl Agents {
    /// Notes that a Lease was seen; true if its agent was not alive before.
    pub(crate) fn seen(&mut self, renewal: Renewal) -> bool {
        let Renewal { node, time, seen } = renewal;
        let was_alive = self.is_alive(&node, seen);
        let known = self.renewed.get(&node);
        if known.is_none_or(|(known, _)| *known != time) {
            self.renewed.insert(node, (time, seen));
            return !was_alive;
        }
        false
    }

    /// Whether an agent has renewed its Lease lately.
    pub(crate) fn is_alive(&self, node: &str, now: Instant) -> bool {
        let renewed = self.renewed.get(node);
        renewed.is_some_and(|(_, seen)| now.duration_since(*seen) < AGENT_LEASE_LIFETIME)
    }
}

/// Starts a watch of all Leases of agents. When `restored` changes, they are listed again.
pub(crate) fn watch(
    client: &Client,
    mut restored: latest::Receiver<u64>,
    tasks: &mut JoinSet<()>,
) -> UnboundedReceiver<Renewal> {
    let (queue, renewals) = unbounded_channel();
    let leases: Api<Lease> = Api::namespaced(client.clone(), AGENT_LEASES);
    tasks.spawn(async move {
        loop {
            tokio::select! {
                is_queued = until_failure(leases.clone(), &queue) => if !is_queued {
                    return;
                },
                Ok(()) = restored.changed() => {}
            }
            sleep(RETRY).await;
        }
    });
    renewals
}

/// Queues renewals until the watch fails. False if the queue is closed.
async fn until_failure(leases: Api<Lease>, queue: &UnboundedSender<Renewal>) -> bool {
    let mut events = std::pin::pin!(watcher::watcher(leases, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let lease = match event {
            Ok(Event::InitApply(lease) | Event::Apply(lease)) => lease,
            Ok(Event::Init | Event::InitDone | Event::Delete(_)) => continue,
            Err(error) => {
                tracing::warn!(%error, "the Leases of agents cannot be watched");
                break;
            }
        };
        let spec = lease.spec.as_ref();
        let time = spec.and_then(|spec| spec.renew_time.as_ref());
        let renewal = Renewal {
            node: lease.name_any(),
            time: time.map(|time| time.0.to_string()),
            seen: Instant::now(),
        };
        if queue.send(renewal).is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_alive_while_it_renews_its_lease() {
        let mut agents = Agents::default();
        let start = Instant::now();
        let renewal = |time: &str, seen| Renewal {
            node: "n1".to_owned(),
            time: Some(time.to_owned()),
            seen,
        };
        assert!(agents.seen(renewal("1", start)), "it was unknown");
        assert!(agents.is_alive("n1", start));
        assert!(!agents.is_alive("n2", start));
        // A watch that starts anew reports the same renewal once more.
        let later = start + AGENT_LEASE_LIFETIME;
        assert!(!agents.seen(renewal("1", later)));
        assert!(!agents.is_alive("n1", later));
        assert!(agents.seen(renewal("2", later)), "it is back");
        assert!(agents.is_alive("n1", later));
    }
}
