//! The loop: applies what changed to the compiler, runs one debounced pass and writes what differs.

use std::{
    error::Error as _,
    future, mem,
    time::{Duration, Instant},
};

use compiler::{
    Compilation, Compiler, Kind, Severity,
    rollout::{stored, waves::Time},
};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use strum::IntoEnumIterator;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::{JoinSet, spawn_blocking},
    time::sleep,
};

use crate::{
    kinds::{Incomplete, Kinds},
    leases::{self, Agents, Renewal},
    pass::Pass,
    publish::Writer,
    watch::{self, Change},
};

/// Delay between the first change and the pass: a `kubectl apply` of many objects causes one pass.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// Delay before a failed pass is repeated; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Why the operator stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A watch ended.
    #[error("a watch ended")]
    WatchEnded,
    /// The compiler panicked.
    #[error("failed to compile")]
    Compile(#[source] tokio::task::JoinError),
}

/// Runs the control plane until the process ends.
pub async fn run(client: Client) -> Result<(), Error> {
    let mut cluster = Cluster::watch(&client);
    let mut compiler = Compiler::default();
    let (mut retry, mut due) = (None, None);
    loop {
        let delay = retry.into_iter().chain(due).min();
        cluster.wait(&mut compiler, delay).await?;
        let start = Instant::now();
        let time = Timestamp::now();
        let seconds = u64::try_from(time.as_second()).unwrap_or(0);
        let agents = mem::take(&mut cluster.agents);
        // A full compile takes longer than the watches may wait.
        let computed = spawn_blocking(move || {
            let is_alive = |node: &str| agents.is_alive(node, start);
            let pass = Pass::compute(&mut compiler, is_alive, seconds);
            (compiler, agents, pass)
        });
        let pass;
        (compiler, cluster.agents, pass) = computed.await.map_err(Error::Compile)?;
        let wait = |at: Time| Duration::from_secs(at.saturating_sub(seconds).max(1));
        due = pass.step.again_at.map(wait);
        let computed_in = start.elapsed();
        let (snapshot, compilation) = compiler.compile();
        let mut writer = Writer::new(&client);
        let result = writer
            .publish(snapshot, compilation, &pass, &stored::text(seconds))
            .await;
        retry = match result {
            Ok(()) => {
                report(compilation, &pass, &writer, computed_in);
                None
            }
            Err(error) => {
                let source = error.source().map(ToString::to_string);
                let source = source.unwrap_or_default();
                let delay = retry.map_or(FIRST_RETRY, |last: Duration| (last * 2).min(LAST_RETRY));
                tracing::warn!(%error, source, retry_in = ?delay, "pass failed");
                Some(delay)
            }
        };
        cluster.stored(writer, &mut compiler);
    }
}

/// The kinds that a compile reads.
fn watched() -> impl Iterator<Item = Kind> {
    Kind::iter().filter(|kind| !matches!(kind, Kind::FrrNodeState | Kind::BgpSessionState))
}

/// The objects of the API server, as the watches report them.
struct Cluster {
    kinds: Kinds,
    changes: UnboundedReceiver<(Kind, Change)>,
    tasks: JoinSet<()>,
    agents: Agents,
    renewals: UnboundedReceiver<Renewal>,
    /// Why nothing is published, as it was logged last.
    incomplete: Option<Incomplete>,
}

impl Cluster {
    fn watch(client: &Client) -> Self {
        let (queue, changes) = unbounded_channel();
        let mut tasks = JoinSet::new();
        watch::start(client, watched(), &queue, &mut tasks);
        let renewals = leases::watch(client, &mut tasks);
        Self {
            kinds: Kinds::new(watched()),
            changes,
            tasks,
            agents: Agents::default(),
            renewals,
            incomplete: None,
        }
    }

    /// Waits until objects have changed, an agent is alive again, or so much time has passed, and all objects are known.
    async fn wait(
        &mut self,
        compiler: &mut Compiler,
        delay: Option<Duration>,
    ) -> Result<(), Error> {
        let is_due = async {
            match delay {
                Some(delay) => sleep(delay).await,
                None => future::pending().await,
            }
        };
        let mut is_due = std::pin::pin!(is_due);
        while !compiler.has_changed() {
            tokio::select! {
                received = self.receive(compiler) => if received? { break },
                () = &mut is_due => break,
            }
        }
        loop {
            sleep(DEBOUNCE).await;
            while let Ok((kind, change)) = self.changes.try_recv() {
                self.kinds.apply(kind, change, compiler);
            }
            let Err(incomplete) = self.kinds.complete() else {
                self.incomplete = None;
                return Ok(());
            };
            if self.incomplete.as_ref() != Some(&incomplete) {
                tracing::info!(reason = %incomplete, "nothing is published");
                self.incomplete = Some(incomplete);
            }
            self.receive(compiler).await?;
        }
    }

    /// Waits for a change and applies it. True if an agent is alive again.
    async fn receive(&mut self, compiler: &mut Compiler) -> Result<bool, Error> {
        let change = tokio::select! {
            change = self.changes.recv() => change,
            Some(renewal) = self.renewals.recv() => {
                return Ok(self.agents.seen(renewal, Instant::now()));
            }
            _ = self.tasks.join_next() => None,
        };
        let (kind, change) = change.ok_or(Error::WatchEnded)?;
        self.kinds.apply(kind, change, compiler);
        Ok(false)
    }

    /// Gives the compiler what was written, so that the events of the watches about it change nothing.
    fn stored(&mut self, writer: Writer<'_>, compiler: &mut Compiler) {
        for prepared in writer.stored {
            self.kinds.put(prepared, compiler);
        }
    }
}

fn report(compilation: &Compilation, pass: &Pass, writer: &Writer<'_>, computed_in: Duration) {
    for (node, removal) in &compilation.removals {
        tracing::warn!(
            node,
            "config not published: it would remove {removal}; `selvedge rollout approve` approves it"
        );
    }
    let problems = compilation.problems.iter();
    let errors = problems.filter(|problem| problem.severity() == Severity::Error);
    tracing::info!(
        revision = compiler::revision::object_name(&compilation.revision.fingerprint),
        nodes = pass.step.status.total,
        ready = pass.step.status.ready,
        errors = errors.count(),
        written = writer.written,
        deleted = writer.deleted,
        reported = writer.reported,
        published = ?writer.nodes,
        computed_in = ?computed_in,
        "pass"
    );
}
