//! The API server: the node's config as it comes, passwords, and the probe.

mod account;
mod host;
mod lease;
mod node;
mod restored;
mod secrets;

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use api::tcaas::{
    NodeNetworkConfig, NodeNetworkConfigSpec, NodeNetworkConfigStatus,
    node_network_config::{HOLD_ANNOTATION, RETRY_ANNOTATION},
};
use futures::{
    StreamExt as _,
    future::{BoxFuture, FutureExt as _},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event},
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time,
};

pub use self::account::own_account;
use self::secrets::Passwords;
use crate::{
    config::Config,
    daemons::Instance,
    host::{Report, Session},
    machine::Assigned,
    once::refusal,
    probe::ApiServer,
    report::{Lost, chain, write_all},
    run::Options,
};

/// How long a connection may take to come up, and an answer to come.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
const READ_PATIENCE: Duration = Duration::from_secs(70);
/// How long the API server keeps a watch before it is asked again; shorter than the wait for an answer, so that a dead
/// connection is noticed.
const WATCH_SECONDS: u32 = 60;
/// How long one request may take.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// Before Secrets that could not be read are asked for again.
const SECRET_PAUSE: Duration = Duration::from_secs(5);

/// Before another attempt to make a client.
const CLIENT_PAUSE: Duration = Duration::from_secs(5);

/// Says how the API server is reached; asked anew for each connection, because files and tokens change.
pub type Connect = Arc<dyn Fn() -> BoxFuture<'static, Result<kube::Config, String>> + Send + Sync>;

/// What there is to be reported of the host's router.
pub(crate) struct OfHost {
    /// Its state.
    pub(crate) reports: watch::Receiver<Report>,
    /// Its sessions.
    pub(crate) sessions: watch::Receiver<Vec<Session>>,
}

/// The cluster as one node sees it. Nothing of it is needed to restore a node, so nothing here ends the agent.
#[derive(Clone)]
pub(crate) struct Cluster {
    connect: Connect,
    node: String,
    /// Where Secrets are whose reference names no namespace.
    secrets: String,
    /// Keys of taints that are removed when the first config is confirmed.
    startup_taints: Vec<String>,
    /// The file with the token of the node's own account, if the agent works with that.
    token: Option<PathBuf>,
    /// The API server has refused the token.
    refused: Arc<Notify>,
    /// Counts how often the API server returns older versions.
    restores: watch::Sender<u64>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    pub(crate) fn new(connect: Connect, options: &Options) -> Self {
        Self {
            connect,
            node: options.node.clone(),
            secrets: options.secrets_namespace.clone(),
            startup_taints: options.startup_taints.clone(),
            token: options.own_account.then(|| options.paths.token()),
            refused: Arc::new(Notify::new()),
            restores: watch::Sender::new(0),
        }
    }

    async fn config(&self) -> Result<kube::Config, String> {
        let mut config = (self.connect)().await?;
        config.connect_timeout = Some(CONNECT_PATIENCE);
        config.read_timeout = Some(READ_PATIENCE);
        config.write_timeout = Some(REQUEST_PATIENCE);
        Ok(config)
    }

    /// A client with the account that the agent works with.
    async fn client(&self) -> Result<Client, String> {
        let mut config = self.config().await?;
        if let Some(token) = &self.token {
            config = own_account(config, &self.node, token).await?;
        }
        Client::try_from(config).map_err(|error| chain(&error))
    }

    /// Communicates with the API server for as long as the agent runs: configs in, reports out.
    pub(crate) async fn serve(
        self,
        assigned: mpsc::Sender<Assigned>,
        reports: watch::Receiver<Option<NodeNetworkConfigStatus>>,
        host: OfHost,
        options: Options,
    ) {
        let client = loop {
            match self.client().await {
                Ok(client) => break client,
                Err(error) => {
                    tracing::warn!(error, "cannot connect to the API server");
                    time::sleep(CLIENT_PAUSE).await;
                }
            }
        };
        let api: Api<NodeNetworkConfig> = Api::all(client.clone());
        let (hold, holds) = watch::channel(None);
        let (config, configs) = mpsc::channel(1);
        let (object, reported_to) = watch::channel(String::new());
        futures::join!(
            self.watch(client.clone(), config, object),
            self.watch_hold(client.clone(), hold),
            node::with_hold(configs, holds, assigned),
            self.remove_taints(client.clone(), reports.clone()),
            self.renew_lease(client.clone()),
            self.renew_token(),
            self.report_inventory(client.clone(), options.paths.clone(), options.namespace),
            self.report_host(
                client,
                host.reports,
                host.sessions,
                Instance::host(&options.paths)
            ),
            write_all(
                api,
                self.node.clone(),
                reports,
                Lost {
                    object: reported_to,
                    restores: self.restores.subscribe(),
                },
            ),
        );
    }

    /// Sends on each config of the node as it comes, and which object it is, for as long as the receiver runs.
    async fn watch(
        &self,
        client: Client,
        assigned: mpsc::Sender<Assigned>,
        reported_to: watch::Sender<String>,
    ) {
        let resource = ApiResource::erase::<NodeNetworkConfig>(&());
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let only_mine = watcher::Config::default()
            .fields(&format!("metadata.name={}", self.node))
            .timeout(WATCH_SECONDS);
        let events = restored::follow(api, only_mine, self.restores.subscribe());
        let mut events = std::pin::pin!(events);
        let mut latest: Option<DynamicObject> = None;
        let mut incomplete = false;
        let mut passwords = Passwords::default();
        loop {
            let next = time::timeout(SECRET_PAUSE, events.next());
            match next.await {
                Ok(Some(Ok(Event::Apply(object) | Event::InitApply(object)))) => {
                    latest = Some(object);
                }
                Ok(Some(Ok(Event::Delete(_)))) => {
                    tracing::warn!("the node's config was deleted; configuration unchanged");
                    continue;
                }
                Ok(Some(Ok(Event::Init | Event::InitDone))) => continue,
                Ok(Some(Err(error))) => {
                    tracing::warn!(%error, "watch failed; configuration unchanged");
                    continue;
                }
                Ok(None) => return,
                Err(_elapsed) if !incomplete => continue,
                Err(_elapsed) => {}
            }
            let Some(object) = &latest else { continue };
            let uid = object.uid().unwrap_or_default();
            let config = self.decode(&client, object, &mut passwords).await;
            incomplete = !config.unread.is_empty();
            if assigned.send(config).await.is_err() {
                return;
            }
            reported_to.send_if_modified(|known| {
                let is_new = *known != uid;
                *known = uid;
                is_new
            });
        }
    }

    /// The config in an object, with the passwords that can be read.
    async fn decode(
        &self,
        client: &Client,
        object: &DynamicObject,
        passwords: &mut Passwords,
    ) -> Assigned {
        let text = object.data.get("spec").cloned().unwrap_or_default();
        let version = text
            .get("contractVersion")
            .and_then(serde_json::Value::as_u64);
        let revision = text.get("revision").and_then(serde_json::Value::as_str);
        let spec: Result<NodeNetworkConfigSpec, _> = serde_json::from_value(text.clone());
        let mut refused = None;
        let spec = spec.unwrap_or_else(|error| {
            refused = Some(format!("cannot decode the config: {error}"));
            NodeNetworkConfigSpec {
                revision: revision.unwrap_or_default().to_owned(),
                contract_version: version
                    .and_then(|version| u32::try_from(version).ok())
                    .unwrap_or_default(),
                ..NodeNetworkConfigSpec::default()
            }
        });
        let mut config = Config {
            uid: object.uid().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            spec,
            secrets: Vec::new(),
        };
        let wanted = config.references();
        let (secrets, unread) = passwords.read(client, object, wanted, &self.secrets).await;
        config.secrets = secrets;
        Assigned {
            refusal: refusal(&config.spec).or(refused),
            retry: object.annotations().get(RETRY_ANNOTATION).cloned(),
            hold: object.annotations().get(HOLD_ANNOTATION).cloned(),
            unread,
            config: Arc::new(config),
        }
    }
}

impl ApiServer for Cluster {
    /// A connection of its own for each request: one that is open already says nothing about a new one.
    fn reach(&self) -> BoxFuture<'_, Result<(), String>> {
        async {
            let client = Client::try_from(self.config().await?);
            let api: Api<NodeNetworkConfig> = Api::all(client.map_err(|error| chain(&error))?);
            // An answer of the API server is enough, whatever it is, and whatever the account may do.
            match api.get_metadata_opt(&self.node).await {
                Ok(_) | Err(kube::Error::Api(_)) => Ok(()),
                Err(error) => Err(chain(&error)),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;
    use crate::daemons::Paths;

    /// A server that keeps its connections open and counts them.
    async fn server(connections: Arc<AtomicUsize>) -> std::net::SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                        let answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}";
                        stream.write_all(answer).await.unwrap();
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn each_attempt_to_reach_the_api_server_opens_a_connection_of_its_own() {
        let connections = Arc::new(AtomicUsize::new(0));
        let address = server(Arc::clone(&connections)).await;
        let url = format!("http://{address}");
        let connect: Connect = Arc::new(move || {
            let config = kube::Config::new(url.parse().unwrap());
            async { Ok(config) }.boxed()
        });
        let options = Options {
            node: "n1".to_owned(),
            paths: Paths::default(),
            namespace: "selvedge".to_owned(),
            secrets_namespace: "default".to_owned(),
            own_account: false,
            report_only: false,
            startup_taints: Vec::new(),
            listen: None,
        };
        let cluster = Cluster::new(connect, &options);
        for count in 1..=3 {
            assert_eq!(cluster.reach().await, Ok(()));
            assert_eq!(connections.load(Ordering::Relaxed), count);
        }
    }
}
