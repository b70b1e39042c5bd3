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
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::sleep,
};

/// Delay before a failed watch is started again.
const RETRY: Duration = Duration::from_secs(5);

/// The agents that have been heard of.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    /// The time that each Lease names, and when it was first seen here: clocks of nodes differ.
    renewed: BTreeMap<String, (Option<String>, Instant)>,
}

/// A Lease: the node, and when its agent renewed it by the node's clock.
pub(crate) type Renewal = (String, Option<String>);

impl Agents {
    /// Notes that a Lease was seen; true if its agent was not alive before.
    pub(crate) fn seen(&mut self, (node, time): Renewal, now: Instant) -> bool {
        let was_alive = self.is_alive(&node, now);
        let known = self.renewed.get(&node);
        if known.is_none_or(|(known, _)| *known != time) {
            self.renewed.insert(node, (time, now));
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

/// Starts a watch of all Leases of agents.
pub(crate) fn watch(client: &Client, tasks: &mut JoinSet<()>) -> UnboundedReceiver<Renewal> {
    let (queue, renewals) = unbounded_channel();
    let leases: Api<Lease> = Api::namespaced(client.clone(), AGENT_LEASES);
    tasks.spawn(async move {
        loop {
            let mut events =
                std::pin::pin!(watcher::watcher(leases.clone(), watcher::Config::default()));
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
                let renewal = (lease.name_any(), time.map(|time| time.0.to_string()));
                if queue.send(renewal).is_err() {
                    return;
                }
            }
            sleep(RETRY).await;
        }
    });
    renewals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_alive_while_it_renews_its_lease() {
        let mut agents = Agents::default();
        let start = Instant::now();
        let renewal = |time: &str| ("n1".to_owned(), Some(time.to_owned()));
        assert!(agents.seen(renewal("1"), start), "it was unknown");
        assert!(agents.is_alive("n1", start));
        assert!(!agents.is_alive("n2", start));
        // A watch that starts anew reports the same renewal once more.
        let later = start + AGENT_LEASE_LIFETIME;
        assert!(!agents.seen(renewal("1"), later));
        assert!(!agents.is_alive("n1", later));
        assert!(agents.seen(renewal("2"), later), "it is back");
        assert!(agents.is_alive("n1", later));
    }
}
