//! Which agents are alive: each renews a Lease of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use api::selvedge::{AGENT_LEASE_LIFETIME, AGENT_LEASES};
use compiler::rollout::waves::{Agent, Time};
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
    hearing: Hearing,
    heard: BTreeMap<String, Heard>,
    /// The nodes that were frozen in the last pass.
    held: BTreeSet<String>,
    /// When the first of them may have been silent for too long.
    next_silence: Option<Instant>,
}

/// Whether renewals are reported here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hearing {
    /// Nothing was listed yet.
    #[default]
    Unknown,
    /// All renewals are.
    Works,
    /// None has been since this moment.
    Fails(Instant),
}

/// What has been heard of an agent.
#[derive(Debug)]
struct Heard {
    /// The time that its Lease names: clocks of nodes differ.
    time: Option<String>,
    /// When that time was first seen here.
    seen: Instant,
    /// Since when it can answer: a Lease that was only listed may be one of an agent that is gone.
    answers_since: Option<Instant>,
    /// Whether it is known that it has fallen silent.
    is_silent: bool,
}

impl Heard {
    fn silent_at(&self) -> Instant {
        self.seen + AGENT_LEASE_LIFETIME
    }
}

/// What the watch of Leases reports.
#[derive(Debug)]
pub(crate) enum News {
    /// A Lease.
    Renewal(Renewal),
    /// All Leases were reported.
    Listed,
    /// The watch does not work.
    Failed,
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
    /// Takes in what the watch reports; the node whose agent was not alive before and is now.
    pub(crate) fn take_in(&mut self, news: News, now: Instant) -> Option<String> {
        match news {
            News::Renewal(renewal) => return self.seen(renewal),
            News::Listed => self.hearing = Hearing::Works,
            News::Failed if !matches!(self.hearing, Hearing::Fails(_)) => {
                self.hearing = Hearing::Fails(now);
            }
            News::Failed => {}
        }
        None
    }

    /// Whether it is known which agents have Leases, or that this cannot be known. Before that, none is known to be silent.
    pub(crate) fn are_known(&self) -> bool {
        self.hearing != Hearing::Unknown
    }

    /// Notes that a Lease was seen; the node, if its agent was not alive before.
    fn seen(&mut self, renewal: Renewal) -> Option<String> {
        let Renewal { node, time, seen } = renewal;
        let known = self.heard.get(&node);
        if known.is_some_and(|known| known.time == time) {
            return None;
        }
        let was_alive = known.is_some_and(|known| seen < known.silent_at());
        let since = known.map(|known| known.answers_since.filter(|_| was_alive));
        let heard = Heard {
            time,
            seen,
            // The first time that is seen is that of the list; only another one shows that the agent runs.
            answers_since: since.map(|since| since.unwrap_or(seen)),
            is_silent: false,
        };
        let silent_at = heard.silent_at();
        let next = self.next_silence.map_or(silent_at, |at| at.min(silent_at));
        self.next_silence = Some(next);
        self.heard.insert(node.clone(), heard);
        (!was_alive).then_some(node)
    }

    /// Whether an agent has renewed its Lease lately. While renewals are not reported, none falls silent.
    pub(crate) fn is_alive(&self, node: &str, now: Instant) -> bool {
        let until = match self.hearing {
            Hearing::Fails(since) => since.min(now),
            Hearing::Unknown | Hearing::Works => now,
        };
        let heard = self.heard.get(node);
        heard.is_some_and(|heard| until < heard.silent_at())
    }

    /// What is known of an agent; `time` is the time of now.
    pub(crate) fn agent(&self, node: &str, now: Instant, time: Time) -> Agent {
        let since = self.heard.get(node).and_then(|heard| heard.answers_since);
        let since = since.map(|since| now.duration_since(since).as_secs());
        Agent {
            is_alive: self.is_alive(node, now),
            answers_since: since.map(|elapsed| time.saturating_sub(elapsed)),
        }
    }

    /// Notes which nodes are frozen. One that no longer is can answer from now on.
    pub(crate) fn hold(&mut self, held: BTreeSet<String>, now: Instant) {
        for node in self.held.difference(&held) {
            if let Some(heard) = self.heard.get_mut(node) {
                heard.answers_since = heard.answers_since.map(|_| now);
            }
        }
        self.held = held;
    }

    /// When to ask next which agents have fallen silent.
    pub(crate) fn next_silence(&self) -> Option<Instant> {
        self.next_silence
            .filter(|_| !matches!(self.hearing, Hearing::Fails(_)))
    }

    /// The nodes whose agents have fallen silent since this was asked last.
    pub(crate) fn fallen_silent(&mut self, now: Instant) -> Vec<String> {
        let mut silent = Vec::new();
        let mut next: Option<Instant> = None;
        for (node, heard) in &mut self.heard {
            let at = heard.silent_at();
            if at > now {
                next = Some(next.map_or(at, |next| next.min(at)));
            } else if !heard.is_silent {
                heard.is_silent = true;
                silent.push(node.clone());
            }
        }
        self.next_silence = next;
        silent
    }
}

/// Starts a watch of all Leases of agents. When `restored` changes, they are listed again.
pub(crate) fn watch(
    client: &Client,
    mut restored: latest::Receiver<u64>,
    tasks: &mut JoinSet<()>,
) -> UnboundedReceiver<News> {
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
async fn until_failure(leases: Api<Lease>, queue: &UnboundedSender<News>) -> bool {
    let mut events = std::pin::pin!(watcher::watcher(leases, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let lease = match event {
            Ok(Event::InitApply(lease) | Event::Apply(lease)) => lease,
            Ok(Event::InitDone) => {
                if queue.send(News::Listed).is_err() {
                    return false;
                }
                continue;
            }
            Ok(Event::Init | Event::Delete(_)) => continue,
            Err(error) => {
                tracing::warn!(%error, "the Leases of agents cannot be watched");
                return queue.send(News::Failed).is_ok();
            }
        };
        let spec = lease.spec.as_ref();
        let time = spec.and_then(|spec| spec.renew_time.as_ref());
        let renewal = Renewal {
            node: lease.name_any(),
            time: time.map(|time| time.0.to_string()),
            seen: Instant::now(),
        };
        if queue.send(News::Renewal(renewal)).is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renewal(node: &str, time: &str, seen: Instant) -> Renewal {
        Renewal {
            node: node.to_owned(),
            time: Some(time.to_owned()),
            seen,
        }
    }

    #[test]
    fn an_agent_is_alive_while_it_renews_its_lease() {
        let mut agents = Agents::default();
        let start = Instant::now();
        let n1 = || Some("n1".to_owned());
        let seen = agents.seen(renewal("n1", "1", start));
        assert_eq!(seen, n1(), "it was unknown");
        assert!(agents.is_alive("n1", start));
        assert!(!agents.is_alive("n2", start));
        // A watch that starts anew reports the same renewal once more.
        let later = start + AGENT_LEASE_LIFETIME;
        assert_eq!(agents.seen(renewal("n1", "1", later)), None);
        assert!(!agents.is_alive("n1", later));
        let seen = agents.seen(renewal("n1", "2", later));
        assert_eq!(seen, n1(), "it is back");
        assert!(agents.is_alive("n1", later));
    }

    #[test]
    fn no_agent_falls_silent_while_renewals_are_not_reported() {
        let (mut agents, start) = (Agents::default(), Instant::now());
        assert!(!agents.are_known());
        agents.take_in(News::Renewal(renewal("n1", "1", start)), start);
        agents.take_in(News::Listed, start);
        assert!(agents.are_known());
        let later = start + AGENT_LEASE_LIFETIME * 2;
        agents.take_in(News::Failed, start + AGENT_LEASE_LIFETIME / 2);
        agents.take_in(News::Failed, later);
        assert!(agents.is_alive("n1", later));
        assert_eq!(agents.next_silence(), None);
        // What was renewed in the meantime is in the list.
        agents.take_in(News::Renewal(renewal("n1", "1", later)), later);
        agents.take_in(News::Listed, later);
        assert!(!agents.is_alive("n1", later));
        assert_eq!(agents.fallen_silent(later), ["n1"]);
    }

    #[test]
    fn an_agent_can_answer_since_its_first_sign_of_life_after_a_silence_a_start_or_a_hold() {
        let (mut agents, start) = (Agents::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let since = |agents: &Agents, now: u64| {
            let agent = agents.agent("n1", at(now), 1000 + now);
            agent.answers_since
        };
        agents.seen(renewal("n1", "1", at(0)));
        let listed = agents.agent("n1", at(1), 1001);
        assert!(listed.is_alive, "it may be");
        assert_eq!(listed.answers_since, None, "nothing was heard of it");
        for (time, seen) in [("2", 10), ("3", 30), ("4", 50)] {
            agents.seen(renewal("n1", time, at(seen)));
            assert_eq!(since(&agents, seen), Some(1010));
        }
        // It was away for longer than its Lease lasts.
        agents.seen(renewal("n1", "5", at(500)));
        assert_eq!(since(&agents, 505), Some(1500));
        agents.hold(["n1".to_owned()].into(), at(510));
        agents.seen(renewal("n1", "6", at(520)));
        agents.hold(BTreeSet::new(), at(530));
        assert_eq!(since(&agents, 540), Some(1530));
    }

    #[test]
    fn agents_that_fall_silent_are_noticed_once_when_their_leases_run_out() {
        let (mut agents, start) = (Agents::default(), Instant::now());
        assert_eq!(agents.next_silence(), None);
        let half = AGENT_LEASE_LIFETIME / 2;
        agents.seen(renewal("n1", "1", start));
        agents.seen(renewal("n2", "1", start));
        assert_eq!(agents.next_silence(), Some(start + half * 2));
        agents.seen(renewal("n1", "2", start + half));
        assert!(agents.fallen_silent(start + half).is_empty());
        assert_eq!(agents.fallen_silent(start + half * 2), ["n2"]);
        assert!(agents.fallen_silent(start + half * 2).is_empty());
        assert_eq!(agents.next_silence(), Some(start + half * 3));
        assert_eq!(agents.fallen_silent(start + half * 3), ["n1"]);
        assert_eq!(agents.next_silence(), None, "all are silent");
        agents.seen(renewal("n2", "2", start + half * 4));
        assert_eq!(agents.fallen_silent(start + half * 6), ["n2"], "once more");
    }
}
