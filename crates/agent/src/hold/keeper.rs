//! Holds what zebra deletes while bgpd is away. A thread of its own: the loop of the agent may be at work elsewhere.

use std::{
    collections::BTreeSet,
    io,
    net::IpAddr,
    pin::Pin,
    thread,
    time::{Duration, Instant},
};

use api::value::MacAddress;
use linux::{
    learned::{Known, Settled},
    netlink::{Announced, Kernel, Learned, RequestError},
};
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    time,
};

use super::{Act, Hold, has_end_of_rib};
use crate::{
    config::Time,
    daemons::{self, Daemon, Instance},
    report, vtysh,
};

/// Between two looks whether bgpd has received everything.
const LOOK: Duration = Duration::from_secs(1);
/// How long zebra and the kernel may take for what bgpd has received.
const SETTLE: Duration = Duration::from_secs(5);
/// How long the kernel may take for all of a hold's changes.
const KERNEL_PATIENCE: Duration = Duration::from_secs(10);

/// How long until what cannot be removed is tried again.
const LATER: Duration = Duration::from_secs(30);
/// What zebra is asked for what it knows.
const QUESTIONS: [&str; 5] = [
    "show evpn vni json",
    "show evpn mac vni all json",
    "show evpn arp-cache vni all json",
    "show evpn rmac vni all json",
    "show evpn next-hops vni all json",
];

type Wait = Pin<Box<dyn Future<Output = ()>>>;

/// A bgpd whose end would be an accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The process.
    pub(crate) daemon: Daemon,
    /// The zebra that has its routes.
    pub(crate) zebra: Option<Daemon>,
    /// How long at most something is held when it dies.
    pub(crate) limit: Duration,
}

/// The thread that holds, until this value is dropped.
#[derive(Debug)]
pub(crate) struct Keeper {
    _stop: oneshot::Sender<()>,
}

impl Keeper {
    /// Starts for the router's namespace as it is now. `bgpd` is `None` while it is stopped on purpose.
    pub(crate) fn start(
        namespace: &str,
        frr: Instance,
        bgpd: watch::Receiver<Option<Expected>>,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let namespace = namespace.to_owned();
        thread::Builder::new().name("hold".into()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(keep(&namespace, frr, bgpd, stopped)),
                Err(error) => tracing::warn!(%error, "cannot hold routes if bgpd crashes"),
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

async fn keep(
    namespace: &str,
    frr: Instance,
    bgpd: watch::Receiver<Option<Expected>>,
    mut stopped: oneshot::Receiver<()>,
) {
    let opened = async {
        let kernel = Kernel::open(namespace)?;
        kernel.learned().await
    };
    let learned = match opened.await {
        Ok(Some(learned)) => learned,
        Ok(None) => return,
        Err(error) => {
            let error = report::chain(&error);
            tracing::warn!(error, "cannot hold routes if bgpd crashes");
            return;
        }
    };
    let limit = bgpd.borrow().as_ref().map_or(Duration::ZERO, |it| it.limit);
    let mut work = Work {
        learned,
        frr,
        bgpd,
        hold: Hold::new(limit),
        started: Instant::now(),
        exit: Box::pin(std::future::pending()),
        zebra_exit: Box::pin(std::future::pending()),
        bgpd_died: false,
        received_all: Box::pin(std::future::pending()),
    };
    work.look().await;
    work.follow().await;
    work.received_all = Box::pin(received_all(work.frr.clone()));
    loop {
        let until = work.hold.until();
        let limit = async {
            match until {
                Some(until) => time::sleep(until.saturating_sub(work.started.elapsed())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // Also when it was dropped.
            _ = &mut stopped => return,
            () = &mut work.zebra_exit => work.zebra_died().await,
            () = &mut work.exit => work.died().await,
            announced = work.learned.next() => work.take(announced).await,
            changed = work.bgpd.changed() => match changed {
                Ok(()) => work.follow().await,
                Err(_) => return,
            },
            () = &mut work.received_all => work.end("bgpd has received End-of-RIB from all neighbors").await,
            () = limit => work.end("bgpd was away for too long").await,
        }
    }
}

struct Work {
    learned: Learned,
    frr: Instance,
    bgpd: watch::Receiver<Option<Expected>>,
    hold: Hold,
    started: Instant,
    /// The end of the bgpd that is expected to run.
    exit: Wait,
    /// The end of its zebra.
    zebra_exit: Wait,
    /// Whether what is held is held because bgpd died: only then are its routes copied.
    bgpd_died: bool,
    /// Until bgpd has received everything, after it died.
    received_all: Wait,
}

impl Work {
    fn now(&self) -> Time {
        self.started.elapsed()
    }

    /// Another bgpd runs, or it is ended on purpose.
    async fn follow(&mut self) {
        let expected = self.bgpd.borrow_and_update().clone();
        self.exit = Box::pin(std::future::pending());
        self.zebra_exit = Box::pin(std::future::pending());
        let Some(Expected { daemon, zebra, .. }) = expected else {
            return self.end("bgpd is stopped on purpose").await;
        };
        self.exit = exit(daemon);
        if let Some(zebra) = zebra {
            self.zebra_exit = exit(zebra);
        }
        if self.hold.is_holding() && self.bgpd_died {
            // A zebra that was started meanwhile has taken over the routes, and may still take some for stale.
            self.copy_routes().await;
        }
    }

    async fn died(&mut self) {
        self.exit = Box::pin(std::future::pending());
        let expected = self.bgpd.borrow().clone();
        let Some(Expected { limit, zebra, .. }) = expected else {
            return;
        };
        self.bgpd_died = true;
        let acts = self.hold.died(self.now(), limit);
        self.perform(acts).await;
        self.received_all = Box::pin(received_all(self.frr.clone()));
        tracing::warn!("bgpd has exited unexpectedly; its routes are held");
        // Without zebra, no routes are removed.
        if zebra.is_some_and(|it| it.is_alive()) {
            self.copy_routes().await;
        }
    }

    /// The next zebra may delete what it finds, and bgpd does not always give it anew. A zebra that starts takes copies for
    /// routes of its own and prefers them to bgpd's: they go before it does.
    async fn zebra_died(&mut self) {
        self.zebra_exit = Box::pin(std::future::pending());
        let expected = self.bgpd.borrow().clone();
        let Some(Expected { limit, .. }) = expected else {
            return;
        };
        let was_holding = self.hold.is_holding();
        let acts = self.hold.died(self.now(), limit);
        self.perform(acts).await;
        self.received_all = Box::pin(received_all(self.frr.clone()));
        tracing::warn!("zebra has exited unexpectedly; the routes of bgpd are held");
        if was_holding && let Err(error) = within(self.learned.remove_copies()).await {
            tracing::warn!(error, "failed to remove the copies of bgpd's routes");
        }
    }

    async fn copy_routes(&self) {
        match within(self.learned.copy_routes()).await {
            Ok(copied) => tracing::info!(copied, "the routes of bgpd are held"),
            Err(error) => tracing::warn!(error, "failed to hold the routes of bgpd"),
        }
    }

    async fn take(&mut self, announced: Announced) {
        let acts = match announced {
            Announced::Made(entry, origin) => {
                self.hold.made(entry, origin);
                return;
            }
            Announced::Gone(entry) => self.hold.gone(entry, self.now()).into_iter().collect(),
            Announced::Down(device) => self.hold.down(device),
            Announced::Missed => return self.look().await,
        };
        self.perform(acts).await;
    }

    /// Looks at everything.
    async fn look(&mut self) {
        match within(self.learned.dump()).await {
            Ok(found) => {
                let acts = self.hold.found(&found, self.now());
                self.perform(acts).await;
            }
            Err(error) => tracing::warn!(error, "cannot read the entries of zebra"),
        }
    }

    async fn perform(&self, acts: Vec<Act>) {
        for act in acts {
            let outcome = match &act {
                Act::PutBack(entry) => within(self.learned.put_back(entry)).await,
                Act::Remove(entry) => within(self.learned.remove(entry)).await,
            };
            if let Err(error) = outcome {
                tracing::warn!(?act, error, "cannot hold an entry of zebra");
            }
        }
    }

    /// Removes restored entries that have no owner any more.
    async fn end(&mut self, why: &str) {
        if self.hold.until().is_none() {
            return;
        }
        let held = self.hold.n_put_back();
        self.hold.end();
        self.bgpd_died = false;
        self.received_all = Box::pin(std::future::pending());
        let settled = async {
            let mut known = self.ask_zebra().await?;
            known.gateways = within(self.learned.gateways()).await?;
            within(settle(&mut self.learned, &known)).await
        };
        match settled.await {
            Ok((settled, copies)) => {
                let (removed, adopted) = (settled.leftovers.len(), settled.adopted.len());
                let needed = settled.needed.len();
                if needed > 0 {
                    tracing::info!(
                        why,
                        held,
                        removed,
                        adopted,
                        needed,
                        copies,
                        "held entries are still used by routes of bgpd"
                    );
                    self.hold.settle_later(self.now() + LATER);
                } else {
                    tracing::info!(
                        why,
                        held,
                        removed,
                        adopted,
                        copies,
                        "all held routes are released"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(why, error, "held routes cannot be removed yet");
                self.hold.settle_later(self.now() + LATER);
            }
        }
    }

    async fn ask_zebra(&self) -> Result<Known, String> {
        let mut known = Known::default();
        for question in QUESTIONS {
            let answer = vtysh::ask_daemon(&self.frr, "zebra", question).await;
            let answer = answer.map_err(|error| report::chain(&error))?;
            let unreadable = || format!("the answer to `{question}` cannot be read");
            let answer = answer.ok_or_else(unreadable)?;
            // Without a bgpd, zebra has no EVPN and no answer.
            if answer.trim().is_empty() {
                continue;
            }
            let answer: Value = serde_json::from_str(&answer).map_err(|_error| unreadable())?;
            collect(&answer, &mut known);
            let index = |name: &str| self.learned.vxlan(name);
            known.flooded.extend(flooded_to(&answer, index));
        }
        Ok(known)
    }
}

/// Removes entries that are unknown or not needed, and returns to zebra those that it has adopted; with the number of copied routes.
async fn settle(learned: &mut Learned, known: &Known) -> Result<(Settled, usize), RequestError> {
    let found = learned.dump().await?;
    let settled = linux::learned::settle(&found, known);
    for entry in &settled.adopted {
        learned.hand_over(entry).await?;
    }
    for entry in &settled.leftovers {
        learned.remove(entry).await?;
    }
    let copies = learned.remove_copies().await?;
    Ok((settled, copies))
}

/// Waits for the end of a daemon.
fn exit(daemon: Daemon) -> Wait {
    Box::pin(async move {
        if let Err(error) = daemons::exits(&[daemon]).await {
            tracing::warn!(%error, "cannot watch a daemon");
            std::future::pending::<()>().await;
        }
    })
}

/// Waits until bgpd has received End-of-RIB from all its neighbors, zebra is there, and zebra and the kernel know it.
async fn received_all(frr: Instance) {
    loop {
        time::sleep(LOOK).await;
        let answer = vtysh::ask_daemon(&frr, "bgpd", "show bgp neighbors json").await;
        if let Ok(Some(answer)) = answer
            && has_end_of_rib(&answer)
            && vtysh::daemon_version(&frr, "zebra", vtysh::ASK_PATIENCE)
                .await
                .is_ok()
        {
            break;
        }
    }
    time::sleep(SETTLE).await;
}

/// Every MAC and address in an answer of zebra: as a name or as a value, its versions differ.
fn collect(answer: &Value, known: &mut Known) {
    let mut take = |text: &str| {
        known.macs.extend(text.parse::<MacAddress>());
        known.addresses.extend(text.parse::<IpAddr>());
    };
    match answer {
        Value::String(text) => take(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, known)),
        Value::Object(values) => {
            values.keys().for_each(|key| take(key));
            values.values().for_each(|value| collect(value, known));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The endpoints that zebra floods to, in its answer to `show evpn vni json`.
fn flooded_to(answer: &Value, index: impl Fn(&str) -> Option<u32>) -> BTreeSet<(u32, IpAddr)> {
    let vnis = answer.as_object().into_iter().flat_map(|it| it.values());
    let of_vni = |vni: &Value| {
        let device = vni["vxlanIf"].as_str().and_then(&index);
        let endpoints = vni["remoteVteps"].as_array().cloned().unwrap_or_default();
        let addresses = endpoints
            .into_iter()
            .filter_map(|it| it.as_str()?.parse().ok());
        let flooded = addresses.filter_map(move |address| Some((device?, address)));
        flooded.collect::<Vec<_>>()
    };
    vnis.flat_map(of_vni).collect()
}

async fn within<T>(work: impl Future<Output = Result<T, RequestError>>) -> Result<T, String> {
    match time::timeout(KERNEL_PATIENCE, work).await {
        Ok(outcome) => outcome.map_err(|error| report::chain(&error)),
        Err(_elapsed) => Err(format!("no answer within {KERNEL_PATIENCE:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_zebra_knows_is_read_from_its_answers() {
        let answer = serde_json::json!({
            "10": {"vxlanIf": "vx.10", "remoteVteps": ["10.254.0.1"]},
            "20": {"vxlanIf": "vx.20", "numRemoteVteps": 0},
            "30": {"rmacs": {"02:00:00:00:00:01": {"vtepIp": "10.254.0.2"}}},
        });
        let index = |name: &str| (name == "vx.10").then_some(7);
        let addresses = [1, 2].map(|last| IpAddr::from([10, 254, 0, last]));
        let [first, _] = addresses;
        assert_eq!(flooded_to(&answer, index), BTreeSet::from([(7, first)]));
        let mut known = Known::default();
        collect(&answer, &mut known);
        assert_eq!(known.addresses, BTreeSet::from(addresses));
        let mac = MacAddress::new([2, 0, 0, 0, 0, 1]);
        assert_eq!(known.macs, BTreeSet::from([mac]));
    }
}
