//! A simulated fleet: the agents of many nodes in one thread, over one watch. Each reports as the real agent does, and does nothing else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    selvedge::AGENT_LEASES,
    tcaas::{
        NodeNetworkConfig, NodeNetworkConfigStatus,
        node_network_config::{ConfigStatus, DEGRADED, HEALTHY, Timings},
    },
};
use futures::{StreamExt as _, stream};
use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kube::{
    Api, Client,
    api::{ApiResource, Object, Patch, PatchParams},
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event},
    },
};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::{Semaphore, oneshot},
    task::AbortHandle,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::server::Server;

/// Who the agents are to the API server.
const FIELD_MANAGER: &str = "selvedge-agent";
/// Between two renewals of an agent's Lease, as the real agent has it.
const RENEWAL: Duration = Duration::from_secs(20);
/// How long a healthy node takes to apply a config and to confirm it.
const APPLY: Duration = Duration::from_millis(200);
/// How often a flapping node is well and unwell again after each config.
const FLAPS: u32 = 5;
/// After this long without a renewal, the machine is too slow for so many Leases.
const LATE: Duration = Duration::from_secs(40);
/// How many reports and renewals are under way at most. Each real agent sends its own: reports hold up no renewal.
const REPORTS_AT_ONCE: usize = 32;
const LEASES_AT_ONCE: usize = 4;
/// How long a request may take, and how often it is tried.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
const ATTEMPTS: u32 = 5;
/// What a failing node says, and what a lying node says that it runs.
pub(super) const REASON: &str = "bgpd does not start";
pub(super) const LIE: &str = "1111111111";

/// What a node does with the configs that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    /// It confirms them.
    Healthy,
    /// It confirms them after so long.
    Slow(Duration),
    /// It refuses all but the one that it has confirmed.
    Failing,
    /// It reports nothing and renews no Lease.
    Silent,
    /// It confirms them, and is unwell and well again a few times.
    Flapping,
    /// It confirms a revision that it was not given.
    Lying,
}

/// A config as far as it matters here.
type Config = Object<Told, Reported>;

#[derive(Clone, Debug, Default, Deserialize)]
struct Told {
    revision: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reported {
    #[serde(default)]
    config_status: ConfigStatus,
    observed_revision: Option<String>,
    observed_generation: Option<i64>,
    confirmed_revision: Option<String>,
}

/// What one config is told from another by.
type Version = (String, i64);

/// What was seen of the fleet, in the order in which the API server stored it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The nodes that were given each revision.
    pub(super) told: BTreeMap<String, BTreeSet<String>>,
    /// How many nodes had a config at the same time that they had not answered yet, silent nodes aside.
    pub(super) most_in_flight: usize,
    /// How many renewals of Leases came so late that a node may have counted as silent.
    pub(super) late_leases: usize,
    in_flight: BTreeSet<String>,
    answered: BTreeMap<String, Version>,
}

#[derive(Debug)]
struct Shared {
    behaviours: Mutex<BTreeMap<String, Behaviour>>,
    seen: Mutex<Seen>,
}

/// Running agents; they end when it is dropped.
pub(super) struct Fleet {
    shared: Arc<Shared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fleet {
    /// Starts the agents of these nodes.
    pub(super) fn start(
        server: &Server,
        nodes: impl IntoIterator<Item = (String, Behaviour)>,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared {
            behaviours: Mutex::new(nodes.into_iter().collect()),
            seen: Mutex::default(),
        });
        let (end, ended) = oneshot::channel();
        let (kept, config) = (Arc::clone(&shared), server.config()?);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let client = Client::try_from(config).expect("a client");
                let agents = Arc::new(Agents {
                    client,
                    shared: kept,
                    reports: Semaphore::new(REPORTS_AT_ONCE),
                    renewals: Semaphore::new(LEASES_AT_ONCE),
                });
                let watching = Arc::clone(&agents).watch();
                tokio::select! {
                    () = agents.renew() => {}
                    () = watching => {}
                    _ = ended => {}
                }
            });
        });
        Ok(Self {
            shared,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// From now on, a node does something else with what it gets.
    pub(super) fn set(&self, node: &str, behaviour: Behaviour) {
        lock(&self.shared.behaviours).insert(node.to_owned(), behaviour);
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.shared.seen)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ended = thread.join();
        }
    }
}

struct Agents {
    client: Client,
    shared: Arc<Shared>,
    reports: Semaphore,
    renewals: Semaphore,
}

impl Agents {
    fn behaviour(&self, node: &str) -> Behaviour {
        let behaviours = lock(&self.shared.behaviours);
        *behaviours.get(node).unwrap_or(&Behaviour::Healthy)
    }

    /// Renews the Leases of all nodes that are not silent, one after another over the time that a round takes.
    async fn renew(&self) {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), AGENT_LEASES);
        let mut renewed: BTreeMap<String, Instant> = BTreeMap::new();
        loop {
            let start = Instant::now();
            let behaviours = lock(&self.shared.behaviours).clone();
            let pause = RENEWAL / u32::try_from(behaviours.len()).unwrap_or(u32::MAX).max(1);
            let alive = behaviours.into_iter().zip(0_u32..);
            let alive = alive.filter(|((_, behaviour), _)| *behaviour != Behaviour::Silent);
            let renewals = stream::iter(alive).map(|((node, _), index)| {
                let leases = &leases;
                async move {
                    sleep_until(start + pause * index).await;
                    let lease = json!({
                        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                        "metadata": {"name": node, "namespace": AGENT_LEASES},
                        "spec": {
                            "holderIdentity": node,
                            "leaseDurationSeconds": 60,
                            "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
                        },
                    });
                    let params = PatchParams::apply(FIELD_MANAGER).force();
                    let patch = Patch::Apply(&lease);
                    request(&self.renewals, || leases.patch(&node, &params, &patch)).await;
                    node
                }
            });
            let mut renewals = renewals.buffered(LEASES_AT_ONCE);
            while let Some(node) = renewals.next().await {
                let now = Instant::now();
                let before = renewed.insert(node, now);
                if before.is_some_and(|before| now - before > LATE) {
                    lock(&self.shared.seen).late_leases += 1;
                }
            }
            sleep_until(start + RENEWAL).await;
        }
    }

    /// Lets each node answer each config that it gets.
    async fn watch(self: Arc<Self>) {
        let resource = ApiResource::erase::<NodeNetworkConfig>(&());
        let api: Api<Config> = Api::all_with(self.client.clone(), &resource);
        let events = watcher::watcher(api, watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events);
        let mut answering: BTreeMap<String, (Version, AbortHandle)> = BTreeMap::new();
        while let Some(event) = events.next().await {
            let config = match event {
                Ok(Event::Apply(config) | Event::InitApply(config)) => config,
                Ok(Event::Init | Event::InitDone | Event::Delete(_)) => continue,
                Err(error) => {
                    eprintln!("the fleet's watch: {error}");
                    continue;
                }
            };
            let node = config.metadata.name.clone().unwrap_or_default();
            let generation = config.metadata.generation.unwrap_or_default();
            let told = (config.spec.revision.clone(), generation);
            let behaviour = self.behaviour(&node);
            lock(&self.shared.seen).note(&node, &told, config.status.as_ref(), behaviour);
            if answering
                .get(&node)
                .is_some_and(|(known, _)| *known == told)
            {
                continue;
            }
            let confirmed = config.status.and_then(|status| status.confirmed_revision);
            let agents = Arc::clone(&self);
            let (name, version) = (node.clone(), told.clone());
            let answer = async move { agents.answer(&name, version, confirmed, behaviour).await };
            let answer = tokio::spawn(answer).abort_handle();
            // A node has one config, and works on the newest.
            if let Some((_, before)) = answering.insert(node, (told, answer)) {
                before.abort();
            }
        }
    }

    /// What a node says about a config.
    async fn answer(
        &self,
        node: &str,
        (revision, generation): Version,
        confirmed: Option<String>,
        behaviour: Behaviour,
    ) {
        let of = |config_status| {
            let before = confirmed.as_deref();
            status(config_status, &revision, generation, before)
        };
        let report = |status: NodeNetworkConfigStatus| self.report(node, status);
        let (trying, done) = (ConfigStatus::Provisioning, ConfigStatus::Provisioned);
        match behaviour {
            Behaviour::Silent => {}
            Behaviour::Healthy => {
                report(of(trying)).await;
                sleep(APPLY).await;
                report(of(done)).await;
            }
            Behaviour::Slow(time) => {
                report(of(trying)).await;
                sleep(time).await;
                report(of(done)).await;
            }
            Behaviour::Failing => {
                report(of(trying)).await;
                sleep(APPLY).await;
                if confirmed.as_ref() == Some(&revision) {
                    return report(of(done)).await;
                }
                report(of(ConfigStatus::Invalid)).await;
            }
            Behaviour::Flapping => {
                for _ in 0..=FLAPS {
                    report(of(trying)).await;
                    sleep(APPLY).await;
                    report(of(done)).await;
                    sleep(APPLY).await;
                }
            }
            Behaviour::Lying => {
                report(status(done, LIE, generation, None)).await;
            }
        }
    }

    async fn report(&self, node: &str, mut status: NodeNetworkConfigStatus) {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        status.last_update = Some(now.to_string());
        let patch = Patch::Apply(json!({
            "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "NodeNetworkConfig",
            "metadata": {"name": node}, "status": status,
        }));
        let params = PatchParams::apply(FIELD_MANAGER).force();
        // The answer to a status is the whole config: nothing of it is read.
        let resource = ApiResource::erase::<NodeNetworkConfig>(&());
        let api: Api<Config> = Api::all_with(self.client.clone(), &resource);
        request(&self.reports, || api.patch_status(node, &params, &patch)).await;
    }
}

/// Sends a request until it is answered, as the real agent does. One that waits to be tried again keeps no other from being sent.
async fn request<T, F: Future<Output = kube::Result<T>>>(
    permits: &Semaphore,
    send: impl Fn() -> F,
) {
    for attempt in 1..=ATTEMPTS {
        let permit = permits.acquire().await;
        let answer = timeout(REQUEST_PATIENCE, send()).await;
        drop(permit);
        match answer {
            Ok(Ok(_)) => return,
            // The object of a status is gone.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => return,
            Ok(Err(error)) => eprintln!("a simulated agent: {error}"),
            Err(_elapsed) => eprintln!("a simulated agent: no answer"),
        }
        sleep(APPLY * attempt).await;
    }
}

/// The status of a config as the real agent writes it.
fn status(
    config_status: ConfigStatus,
    revision: &str,
    generation: i64,
    before: Option<&str>,
) -> NodeNetworkConfigStatus {
    let is_done = config_status == ConfigStatus::Provisioned;
    let is_failed = config_status == ConfigStatus::Invalid;
    let (revision, before) = (Some(revision.to_owned()), before.map(str::to_owned));
    let running = if is_done { revision.clone() } else { before };
    let condition = |kind: &str, status, reason: &str| Condition {
        kind: kind.to_owned(),
        status,
        observed_generation: Some(generation),
        last_transition_time: None,
        reason: reason.to_owned(),
        message: String::new(),
    };
    NodeNetworkConfigStatus {
        config_status,
        last_update: None,
        observed_revision: revision.clone(),
        observed_generation: Some(generation),
        last_applied_revision: revision.filter(|_| is_done || is_failed),
        running_revision: running.clone(),
        confirmed_revision: running,
        error_message: is_failed.then(|| REASON.to_owned()),
        timings: is_done.then_some(Timings {
            apply_milliseconds: 100,
            confirm_milliseconds: 200,
        }),
        as_number: Some(64514),
        frr_version: Some("10.7.1".to_owned()),
        host_router: None,
        unattached: Vec::new(),
        conditions: Conditions(vec![
            condition(HEALTHY, ConditionStatus::True, "ChecksPassed"),
            condition(DEGRADED, ConditionStatus::False, "Complete"),
        ]),
    }
}

impl Seen {
    /// Notes a config with its status. A node that has answered a config once is not changing any more, whatever it says later.
    fn note(
        &mut self,
        node: &str,
        told: &Version,
        status: Option<&Reported>,
        behaviour: Behaviour,
    ) {
        let (revision, generation) = told;
        let nodes = self.told.entry(revision.clone()).or_default();
        nodes.insert(node.to_owned());
        let answer = status.filter(|status| {
            status.observed_revision.as_ref() == Some(revision)
                && status.observed_generation == Some(*generation)
        });
        let is_answer = |status: &Reported| match status.config_status {
            ConfigStatus::Provisioned | ConfigStatus::Invalid => true,
            ConfigStatus::Untouched | ConfigStatus::Provisioning | ConfigStatus::Removed => false,
        };
        if answer.is_some_and(is_answer) {
            self.answered.insert(node.to_owned(), told.clone());
        }
        if self.answered.get(node) == Some(told) || behaviour == Behaviour::Silent {
            self.in_flight.remove(node);
        } else {
            self.in_flight.insert(node.to_owned());
        }
        self.most_in_flight = self.most_in_flight.max(self.in_flight.len());
    }
}
