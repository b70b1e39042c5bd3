//! The loop: applies what changed to the compiler, runs one debounced pass and writes what differs.

use std::{
    collections::BTreeSet,
    future, mem,
    net::SocketAddr,
    panic,
    sync::Arc,
    time::{Duration, Instant},
};

use compiler::{
    Compilation, Compiler, Kind, ObjectRef, Severity, Snapshot,
    platform::PlatformKind,
    rollout::{stored, waves::Time},
};
use futures::{StreamExt as _, stream};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use strum::IntoEnumIterator;
use tokio::{
    sync::{
        mpsc::{self, UnboundedReceiver, unbounded_channel},
        watch as latest,
    },
    task::{JoinSet, spawn_blocking},
    time::{sleep, sleep_until},
};

use crate::{
    accounts::{self, Access},
    election::{Candidate, Election, Leadership},
    events::Events,
    in_cluster_ipam,
    kinds::{Incomplete, Kinds},
    leases::{self, Agents, News},
    metrics::Metrics,
    pages::{MetricsAlone, Shown, SnapshotRequest},
    pass::Pass,
    passwords::{self, Passwords},
    platform::{self, Platform},
    publish::{Memory, Writer, Written, allocations},
    request::{CONCURRENCY, Failure, Sender},
    watch::{self, Change},
    worker::Worker,
};

/// Delay between the first change and the pass: a `kubectl apply` of many objects causes one pass.
const DEBOUNCE: Duration = Duration::from_millis(100);

/// How the operator works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How operators agree on which of them writes.
    pub election: Election,
    /// Where metrics and health are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// Where metrics alone are served, if anywhere. Clients there take no places from the health checks.
    pub metrics_listen: Option<SocketAddr>,
    /// Whether claims of `InClusterIPPool`s get their addresses from this operator.
    pub in_cluster_ipam: bool,
}

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

/// Runs the control plane until `stop` is done. Writes that are under way are brought to their end, and the Lease is given back.
///
/// The client must not repeat requests by itself: the operator may no longer lead when it does.
pub async fn run(
    client: Client,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let (end, ending) = latest::channel(false);
    let (release, released) = latest::channel(false);
    let events = Events::new(client.clone(), &options.election.identity);
    let (candidate, leadership, restored) = Candidate::new(client.clone(), options.election);
    // In a task of its own: what takes the loop long, such as a snapshot of a large cluster, must not delay the renewal of the Lease.
    let mut renewal = JoinSet::new();
    renewal.spawn(candidate.run(is_set(released)));
    let metrics = Metrics::new(leadership.clone());
    let (snapshots, requests) = mpsc::channel(1);
    let mut tasks = JoinSet::new();
    let shown = Shown {
        client: client.clone(),
        metrics: metrics.clone(),
        snapshots: snapshots.clone(),
    };
    if let Some(address) = options.metrics_listen {
        tasks.spawn(endpoint::serve(address, MetricsAlone(shown.clone())));
    }
    if let Some(address) = options.listen {
        tasks.spawn(endpoint::serve(address, shown));
    }
    let sender = Sender::new(client.clone(), leadership.clone(), ending.clone());
    let worker = || Worker {
        client: client.clone(),
        sender: sender.waiting(),
        leadership: leadership.clone(),
        restored: restored.clone(),
    };
    if options.in_cluster_ipam {
        tasks.spawn(in_cluster_ipam::run(worker()));
    }
    let (access, wanted) = latest::channel(None);
    tasks.spawn(accounts::run(worker(), wanted));
    let (passwords, wanted) = latest::channel(None);
    tasks.spawn(passwords::run(worker(), wanted));
    let operator = async {
        let cluster = Cluster::watch(&client, leadership, &restored, requests);
        let mut operator = Operator {
            cluster,
            compiler: Compiler::default(),
            sender,
            memory: Memory::default(),
            metrics,
            events,
            access,
            passwords,
            ending,
        };
        let ended = operator.run().await;
        // The Lease is given back when nothing is written any more.
        release.send_replace(true);
        ended
    };
    let stop = async {
        stop.await;
        tracing::info!("the operator shuts down");
        end.send_replace(true);
    };
    let is_over = is_set(release.subscribe());
    let stop = async {
        tokio::select! {
            () = stop => {}
            () = is_over => {}
        }
    };
    let candidate = async {
        if let Some(Err(error)) = renewal.join_next().await
            && error.is_panic()
        {
            panic::resume_unwind(error.into_panic());
        }
    };
    let (ended, (), ()) = tokio::join!(operator, candidate, stop);
    drop(snapshots);
    ended
}

/// Tells a task what there must be, where that is something else than before.
fn send_if_new<T: PartialEq>(task: &latest::Sender<Option<Arc<T>>>, wanted: T) {
    task.send_if_modified(|before| {
        let is_new = before.as_deref() != Some(&wanted);
        if is_new {
            *before = Some(Arc::new(wanted));
        }
        is_new
    });
}

/// Done when a flag is set.
async fn is_set(mut flag: latest::Receiver<bool>) {
    // A sender that is gone sets it as well.
    let _set = flag.wait_for(|is_set| *is_set).await;
}

/// The loop, and what it remembers.
struct Operator {
    cluster: Cluster,
    compiler: Compiler,
    sender: Sender,
    memory: Memory,
    metrics: Metrics,
    events: Events,
    /// What agents may read.
    access: latest::Sender<Option<Arc<Access>>>,
    passwords: latest::Sender<Option<Arc<Passwords>>>,
    ending: latest::Receiver<bool>,
}

impl Operator {
    async fn run(&mut self) -> Result<(), Error> {
        let mut due = None;
        loop {
            let next = self.memory.next(&self.cluster.frozen).into_iter();
            let next = next.chain(self.cluster.platform.next());
            let next = next.filter(|_| self.sender.is_leading());
            // What is to be written again is not before the API server takes it.
            let open_at = Instant::now() + self.sender.pause();
            let next = next.map(|at| at.max(open_at));
            let next = next.chain(self.cluster.kinds.next_given_up());
            let next = next.map(|at| at.saturating_duration_since(Instant::now()));
            let delay = next.chain(due).min();
            let ending = is_set(self.ending.clone());
            tokio::select! {
                waited = self.cluster.wait(&mut self.compiler, &self.metrics, delay) => waited?,
                () = ending => return Ok(()),
            }
            due = self.pass().await?;
        }
    }

    /// Compiles, and writes what differs if this operator leads. When the next pass is due, if nothing changes before.
    async fn pass(&mut self) -> Result<Option<Duration>, Error> {
        self.metrics.pass_begins();
        let start = Instant::now();
        let time = Timestamp::now();
        let seconds = u64::try_from(time.as_second()).unwrap_or(0);
        let mut compiler = mem::take(&mut self.compiler);
        let mut agents = mem::take(&mut self.cluster.agents);
        let unwritten = self.memory.backoffs.by_source();
        let lasting = self.memory.backoffs.lasting();
        let configs = self.cluster.kinds.unwritten(Kind::NodeNetworkConfig);
        let configs: BTreeSet<ObjectRef> = configs.cloned().collect();
        // A full compile takes longer than the watches may wait.
        let computed = spawn_blocking(move || {
            agents.hold(stored::held(compiler.snapshot()), start);
            let agent = |node: &str| agents.agent(node, start, seconds);
            let pass = Pass::compute(&mut compiler, agent, unwritten, seconds);
            let pass = pass.with_unwritten(compiler.snapshot(), &configs);
            (compiler, agents, pass.with_lasting(lasting))
        });
        let pass;
        (self.compiler, self.cluster.agents, pass) = computed.await.map_err(Error::Compile)?;
        let computed_in = start.elapsed();
        self.cluster.unanswered.clone_from(&pass.step.unanswered);
        let (snapshot, compilation) = self.compiler.compile();
        self.metrics.compiled(compilation, &pass, computed_in);
        let frozen = &self.cluster.frozen;
        // An operator that does not lead compiles all the same: when it does, it can write at once.
        if !self.sender.is_leading() {
            self.metrics.pass_ends(&self.memory, frozen);
            return Ok(None);
        }
        let known = [Kind::Node, Kind::NodeNetworkConfig];
        if !known.iter().any(|kind| frozen.contains(kind)) {
            let wanted = accounts::access(snapshot, compilation);
            send_if_new(&self.access, wanted);
            let wanted = passwords::wanted(snapshot, compilation);
            send_if_new(&self.passwords, wanted);
        }
        let mut writer = Writer {
            sender: &self.sender,
            memory: &mut self.memory,
            frozen,
            written: Written::default(),
            slow: Vec::new(),
        };
        let now = stored::text(seconds);
        let kinds = &self.cluster.kinds;
        writer
            .publish(snapshot, kinds, compilation, &pass, &now)
            .await;
        let written = writer.written;
        report(compilation, &pass, &written, frozen, computed_in);
        if self.sender.is_leading() {
            let (events, sender) = (&mut self.events, &self.sender);
            events.revision_written(snapshot, compilation, &pass, &written, sender);
            events.unwritten(snapshot, compilation, &pass, sender);
        }
        self.metrics.pass_ends(&self.memory, frozen);
        let mut is_cut_short = written.is_cut_short;
        // The counts of nodes differ now, and no event of a watch says so.
        let has_published = !written.nodes.is_empty();
        self.cluster.stored(written, &mut self.compiler);
        is_cut_short |= self.write_platform(&pass).await;
        let wait = |at: Time| Duration::from_secs(at.saturating_sub(seconds).max(1));
        let again = pass.step.again_at.map(wait).into_iter();
        let is_paused = is_cut_short && self.sender.is_leading();
        let pause = is_paused.then(|| self.sender.pause());
        // So do the intents of what could be written at last, or not any more: their statuses are those of the beginning of this pass.
        let has_news = has_published || self.memory.backoffs.by_source() != pass.unwritten;
        let news = has_news.then_some(Duration::ZERO);
        Ok(again.chain(pause).chain(news).min())
    }
}

impl Operator {
    /// Writes what intents need of other programs, and says what is not there yet. Whether some of it was not sent.
    async fn write_platform(&mut self, pass: &Pass) -> bool {
        let Cluster {
            platform, frozen, ..
        } = &mut self.cluster;
        let statuses = self.compiler.writes().statuses.clone();
        let (snapshot, compilation) = self.compiler.compile();
        let unstored = allocations::unstored(snapshot, &statuses);
        let mut step = platform.step(compilation, &unstored, frozen, Instant::now());
        if pass.step.status.unapproved_message.is_some() {
            step = platform.without_losses(step);
        }
        let has_written = !step.writes.is_empty();
        let sender = &self.sender;
        let sent = step.writes.into_iter().map(|write| async move {
            let answer = sender.send_platform(&write).await;
            (write, answer)
        });
        let mut sent = stream::iter(sent).buffer_unordered(CONCURRENCY);
        let mut is_cut_short = false;
        while let Some((write, answer)) = sent.next().await {
            is_cut_short |= answer.as_ref().is_err_and(Failure::ends_pass);
            platform.answered(&write, answer, Instant::now());
        }
        if has_written {
            step = platform.step(compilation, &unstored, frozen, Instant::now());
        }
        self.compiler.set_absent(step.absent);
        is_cut_short
    }
}

/// The kinds that a compile reads.
pub fn watched() -> impl Iterator<Item = Kind> {
    Kind::iter().filter(|kind| !matches!(kind, Kind::FrrNodeState | Kind::BgpSessionState))
}

/// The objects of the API server, as the watches report them.
struct Cluster {
    kinds: Kinds,
    changes: UnboundedReceiver<(Kind, Change)>,
    /// The objects of other programs that are ours.
    platform: Platform,
    platform_changes: UnboundedReceiver<(PlatformKind, platform::Change)>,
    tasks: JoinSet<()>,
    agents: Agents,
    renewals: UnboundedReceiver<News>,
    /// The nodes that had not confirmed their config in the last pass: whether their agents are alive decides what is next.
    unanswered: BTreeSet<String>,
    leadership: Leadership,
    requests: mpsc::Receiver<SnapshotRequest>,
    /// The kinds that were frozen in the last pass.
    frozen: BTreeSet<Kind>,
    /// Why nothing is published, as it was logged last.
    incomplete: Option<Incomplete>,
}

impl Cluster {
    fn watch(
        client: &Client,
        leadership: Leadership,
        restored: &latest::Receiver<u64>,
        requests: mpsc::Receiver<SnapshotRequest>,
    ) -> Self {
        let (queue, changes) = unbounded_channel();
        let mut tasks = JoinSet::new();
        watch::start(client, watched(), &queue, restored, &mut tasks);
        let renewals = leases::watch(client, restored.clone(), &mut tasks);
        let platform_changes = platform::watch::start(client, restored, &mut tasks);
        Self {
            kinds: Kinds::new(watched()),
            changes,
            platform: Platform::default(),
            platform_changes,
            tasks,
            agents: Agents::default(),
            renewals,
            unanswered: BTreeSet::new(),
            leadership,
            requests,
            frozen: BTreeSet::new(),
            incomplete: None,
        }
    }

    /// Waits until objects have changed, an agent is alive again, this operator leads, or so much time has passed, and all objects are known.
    async fn wait(
        &mut self,
        compiler: &mut Compiler,
        metrics: &Metrics,
        delay: Option<Duration>,
    ) -> Result<(), Error> {
        let is_due = async {
            match delay {
                Some(delay) => sleep(delay).await,
                None => future::pending().await,
            }
        };
        let mut is_due = std::pin::pin!(is_due);
        while !compiler.has_changed() && self.kinds.frozen() == self.frozen {
            let silence = self.agents.next_silence();
            let silence = async {
                match silence {
                    Some(at) => sleep_until(at.into()).await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                received = self.receive(compiler, metrics) => if received? { break },
                () = silence => if self.fallen_silent(compiler, metrics) { break },
                () = &mut is_due => break,
            }
        }
        loop {
            sleep(DEBOUNCE).await;
            while let Ok((kind, change)) = self.changes.try_recv() {
                self.kinds.apply(kind, change, compiler);
            }
            while let Ok((kind, change)) = self.platform_changes.try_recv() {
                self.platform.apply(kind, change);
            }
            self.take_renewals();
            self.kinds.give_up(Instant::now(), compiler);
            self.kinds.accept_undefined(compiler.snapshot());
            let Err(incomplete) = self.kinds.complete() else {
                if !self.agents.are_known() {
                    self.receive(compiler, metrics).await?;
                    continue;
                }
                self.frozen = self.kinds.frozen();
                self.incomplete = None;
                return Ok(());
            };
            if self.incomplete.as_ref() != Some(&incomplete) {
                tracing::info!(reason = %incomplete, "nothing is published");
                metrics.is_incomplete(incomplete.to_string());
                self.incomplete = Some(incomplete);
            }
            self.receive(compiler, metrics).await?;
        }
    }

    /// Waits for a change and applies it. True if a pass is due that no change of an object causes: an agent is alive again, this operator
    /// leads now, or something of another program has changed.
    async fn receive(&mut self, compiler: &mut Compiler, metrics: &Metrics) -> Result<bool, Error> {
        let change = tokio::select! {
            change = self.changes.recv() => change,
            Some(news) = self.renewals.recv() => {
                let back = self.renewed(news);
                return Ok(self.agents_changed(&back, compiler, metrics));
            }
            is_leading = self.leadership.changed() => return Ok(is_leading),
            Some((kind, change)) = self.platform_changes.recv() => {
                return Ok(self.platform.apply(kind, change));
            }
            Some(request) = self.requests.recv() => {
                // A client that has gone away needs no answer.
                let _answered = request.send(documents(compiler.snapshot()));
                return Ok(false);
            }
            _ = self.tasks.join_next() => None,
        };
        let (kind, change) = change.ok_or(Error::WatchEnded)?;
        self.kinds.apply(kind, change, compiler);
        Ok(false)
    }

    /// Takes in a renewal and all others that wait: agents that are alive again at the same time cause one pass. The nodes of those.
    fn renewed(&mut self, news: News) -> Vec<String> {
        let mut back = Vec::from_iter(self.agents.take_in(news, Instant::now()));
        back.extend(self.take_renewals());
        back
    }

    /// Takes in the renewals that wait; the nodes whose agents are alive again.
    fn take_renewals(&mut self) -> Vec<String> {
        let mut back = Vec::new();
        while let Ok(news) = self.renewals.try_recv() {
            back.extend(self.agents.take_in(news, Instant::now()));
        }
        back
    }

    /// Notes which agents have fallen silent. True if a pass is due.
    fn fallen_silent(&mut self, compiler: &Compiler, metrics: &Metrics) -> bool {
        let silent = self.agents.fallen_silent(Instant::now());
        self.agents_changed(&silent, compiler, metrics)
    }

    /// Counts silent agents anew if some of them have changed. True if a pass is due: of nodes that have confirmed what they must have, it
    /// does not matter.
    fn agents_changed(&self, nodes: &[String], compiler: &Compiler, metrics: &Metrics) -> bool {
        if nodes.is_empty() {
            return false;
        }
        let now = Instant::now();
        let all = compiler.snapshot().nodes.keys();
        let silent = all.filter(|node| !self.agents.is_alive(&node.name, now));
        metrics.silent_nodes(silent.count());
        nodes.iter().any(|node| self.unanswered.contains(node))
    }

    /// Gives the compiler what was written, so that the events of the watches about it change nothing.
    fn stored(&mut self, written: Written, compiler: &mut Compiler) {
        for seen in written.stored {
            self.kinds.put(seen, compiler);
        }
    }
}

/// All objects as documents of YAML, each of which is JSON on one line.
fn documents(snapshot: &Snapshot) -> String {
    let documents = snapshot
        .documents()
        .map(|document| format!("---\n{document}\n"));
    documents.collect()
}

fn report(
    compilation: &Compilation,
    pass: &Pass,
    written: &Written,
    frozen: &BTreeSet<Kind>,
    computed_in: Duration,
) {
    for (node, removal) in &compilation.removals {
        tracing::warn!(
            node,
            "config not published: it would remove {removal}; `selvedge rollout approve` approves it"
        );
    }
    let problems = compilation.problems.iter();
    let errors = problems.filter(|problem| problem.severity() == Severity::Error);
    let frozen: Vec<String> = frozen.iter().map(ToString::to_string).collect();
    tracing::info!(
        revision = compiler::revision::object_name(&compilation.revision.fingerprint),
        nodes = pass.step.status.total,
        ready = pass.step.status.ready,
        errors = errors.count(),
        written = written.objects,
        deleted = written.deleted,
        reported = written.reported.len(),
        failed = written.failed,
        published = ?written.nodes,
        ?frozen,
        is_cut_short = written.is_cut_short,
        computed_in = ?computed_in,
        "pass"
    );
}
