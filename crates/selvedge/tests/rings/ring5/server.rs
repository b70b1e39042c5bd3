//! One API server for all tests of the ring, and a client that speaks JSON with it.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use http::{Method, Request, header::CONTENT_TYPE};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use lab::{control_plane::ControlPlane, parts::Kubernetes};
use serde_json::{Value, json};

use crate::{
    data::text,
    support::{OWN_NAMESPACE, account_kubeconfig, apply_roles, install_crds, progress},
};

/// How long anything may take that involves controllers: several times the longest pause of the operator between two attempts of a write,
/// which is 30 s.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// How long we watch something that must not happen.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1500);

/// Gives a test the API server to itself, with our kinds and no objects.
///
/// It is started by the first test, lives as long as a test runs or waits for it, and ends with the last one.
pub(crate) fn with_server(test: impl FnOnce(&Server) -> anyhow::Result<()>) -> anyhow::Result<()> {
    static SHARED: Mutex<Weak<Mutex<Server>>> = Mutex::new(Weak::new());
    let server = {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = shared.upgrade() {
            server
        } else {
            let server = Arc::new(Mutex::new(Server::start(&[])?));
            *shared = Arc::downgrade(&server);
            server
        }
    };
    let server = server.lock().unwrap_or_else(PoisonError::into_inner);
    server.clear()?;
    test(&server)
}

/// Gives a measurement an API server of its own, in which no controller writes to the Nodes: they have no kubelet.
#[cfg(feature = "bench-rollout")]
pub(super) fn with_quiet_server(
    measure: impl FnOnce(&Server) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    measure(&Server::start(&[
        "node-lifecycle-controller",
        "taint-eviction-controller",
        "ttl-controller",
    ])?)
}

/// An API server and a client of it.
pub(crate) struct Server {
    pub(crate) plane: ControlPlane,
    operator: tempfile::NamedTempFile,
    client: Client,
    runtime: tokio::runtime::Runtime,
    resources: Mutex<BTreeMap<(String, String), Resource>>,
    since: Instant,
}

/// How the objects of a kind are reached.
#[derive(Clone, Debug)]
struct Resource {
    plural: String,
    is_namespaced: bool,
}

/// Whether a request is only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everything is checked and nothing is stored.
    Dry,
    /// It is done.
    Real,
}

/// What the API server says when it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: u16,
    pub(crate) message: String,
    /// The fields it blames.
    pub(crate) fields: Vec<String>,
}

type Answer = anyhow::Result<Result<Value, Refusal>>;

impl Server {
    pub(super) fn start(absent_controllers: &[&'static str]) -> anyhow::Result<Self> {
        let since = Instant::now();
        let kubernetes = Kubernetes::prepare(&progress)?;
        let plane = ControlPlane::builder(&kubernetes)
            .without_controllers(absent_controllers)
            .start()?;
        let seconds = plane.ready_after().as_secs_f64();
        eprintln!("control plane start: {seconds:.1} s");
        install_crds(&plane)?;
        apply_roles(&plane)?;
        let operator = account_kubeconfig(&plane, "selvedge-operator", &[])?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let admin = plane.kubeconfig("admin")?;
        let config = runtime.block_on(configuration(&admin))?;
        let client = runtime.block_on(async { Client::try_from(config) })?;
        let server = Self {
            plane,
            operator,
            client,
            runtime,
            resources: Mutex::default(),
            since,
        };
        server.warm_up()?;
        Ok(server)
    }

    /// The kubeconfig of an operator, which may do what `deploy/rbac.yaml` says.
    pub(crate) fn operator_kubeconfig(&self) -> &Path {
        self.operator.path()
    }

    /// How the administrator reaches it.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        let path = self.plane.kubeconfig("admin")?;
        self.runtime.block_on(configuration(&path))
    }

    /// How the operator reaches it.
    pub(super) fn operator_config(&self) -> anyhow::Result<Config> {
        self.runtime.block_on(configuration(self.operator.path()))
    }

    /// Lists every kind that was defined, all at once: the first list of a kind takes the server most of a second.
    fn warm_up(&self) -> anyhow::Result<()> {
        let mut lists = tokio::task::JoinSet::new();
        for (api_version, kind) in self.defined()? {
            let plural = self.resource(&api_version, &kind)?.plural;
            let path = format!("{}/{plural}", root(&api_version));
            let request = Request::builder().uri(path).body(Vec::new())?;
            let client = self.client.clone();
            lists.spawn_on(
                async move { client.request::<Value>(request).await },
                self.runtime.handle(),
            );
        }
        self.runtime.block_on(async {
            while let Some(listed) = lists.join_next().await {
                listed??;
            }
            anyhow::Ok(())
        })
    }

    /// Every kind that was defined here, with its `apiVersion`.
    fn defined(&self) -> anyhow::Result<Vec<(String, String)>> {
        let definitions = self.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")?;
        let of = |definition: &Value| {
            let version = text(definition, "/spec/versions/0/name");
            let api_version = format!("{}/{version}", text(definition, "/spec/group"));
            (api_version, text(definition, "/spec/names/kind").to_owned())
        };
        Ok(definitions.iter().map(of).collect())
    }

    /// Creates an object. Unknown fields are refused.
    pub(crate) fn create(&self, object: &Value, mode: Mode) -> Answer {
        let path = format!("{}?{}", self.place(object)?, mode.query());
        self.send(Method::POST, &path, Some(object))
    }

    /// Replaces an object by another of its name, whatever its version.
    pub(crate) fn replace(&self, object: &Value, mode: Mode) -> Answer {
        let path = format!("{}?{}", self.path(object)?, mode.query());
        self.send(Method::PUT, &path, Some(&self.as_newest(object)?))
    }

    /// Replaces the status of an object.
    pub(crate) fn replace_status(&self, object: &Value) -> Answer {
        let path = format!("{}/status?{}", self.path(object)?, Mode::Real.query());
        self.send(Method::PUT, &path, Some(&self.as_newest(object)?))
    }

    /// Merges something into an object, as somebody who edits it.
    pub(crate) fn edit(&self, object: &Value, change: &Value) -> anyhow::Result<()> {
        let answer = self.send(Method::PATCH, &self.path(object)?, Some(change))?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        Ok(())
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, object: &Value) -> anyhow::Result<()> {
        let answer = self.send(Method::DELETE, &self.path(object)?, None)?;
        answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        Ok(())
    }

    /// An object, if it is there.
    pub(crate) fn get(&self, object: &Value) -> anyhow::Result<Option<Value>> {
        match self.send(Method::GET, &self.path(object)?, None)? {
            Ok(object) => Ok(Some(object)),
            Err(refusal) if refusal.code == 404 => Ok(None),
            Err(refusal) => anyhow::bail!("{}", refusal.message),
        }
    }

    /// All objects of a kind, everywhere.
    pub(crate) fn list(&self, api_version: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
        let plural = self.resource(api_version, kind)?.plural;
        let path = format!("{}/{plural}", root(api_version));
        let answer = self.send(Method::GET, &path, None)?;
        let mut list = answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let mut items: Vec<Value> = serde_json::from_value(list["items"].take())?;
        for item in &mut items {
            item["apiVersion"] = json!(api_version);
            item["kind"] = json!(kind);
        }
        Ok(items)
    }

    /// Creates every object of a text for good.
    pub(crate) fn apply(&self, manifests: &str) -> anyhow::Result<()> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(manifests)?;
        for object in objects {
            let answer = self.create(&object, Mode::Real)?;
            answer.map_err(|refusal| anyhow::anyhow!("{object}: {}", refusal.message))?;
        }
        Ok(())
    }

    /// Creates many objects for good, some at the same time.
    pub(crate) fn create_all(&self, objects: &[Value]) -> anyhow::Result<()> {
        use futures::{StreamExt as _, TryStreamExt as _, stream};
        let paths = objects.iter().map(|object| self.place(object));
        let paths = paths.collect::<anyhow::Result<Vec<String>>>()?;
        let requests = paths.into_iter().zip(objects).map(|(path, object)| async {
            let request = Request::post(path).header(CONTENT_TYPE, "application/json");
            let request = request.body(serde_json::to_vec(object)?)?;
            anyhow::Ok(self.client.request::<Value>(request).await?)
        });
        let created = stream::iter(requests).buffer_unordered(32);
        let created = created.try_for_each(|_| async { Ok(()) });
        self.runtime.block_on(created)
    }

    /// Removes every object of every kind that was defined, every Node, and every Lease of ours.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        let mut kinds = self.defined()?;
        kinds.push(("v1".to_owned(), "Node".to_owned()));
        kinds.push(("coordination.k8s.io/v1".to_owned(), "Lease".to_owned()));
        for (api_version, kind) in kinds {
            for object in self.list(&api_version, &kind)? {
                if kind == "Lease" && text(&object, "/metadata/namespace") != OWN_NAMESPACE {
                    continue;
                }
                // The collector of garbage may have been faster.
                let _gone = self.delete(&object);
            }
        }
        Ok(())
    }

    fn as_newest(&self, object: &Value) -> anyhow::Result<Value> {
        let newest = self.get(object)?.context("the object is gone")?;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = newest["metadata"]["resourceVersion"].clone();
        Ok(object)
    }

    /// The path of an object.
    fn path(&self, object: &Value) -> anyhow::Result<String> {
        let name = text(object, "/metadata/name");
        Ok(format!("{}/{name}", self.place(object)?))
    }

    /// The path of the objects among which this one is.
    fn place(&self, object: &Value) -> anyhow::Result<String> {
        let api_version = text(object, "/apiVersion");
        let Resource {
            plural,
            is_namespaced,
        } = self.resource(api_version, text(object, "/kind"))?;
        let root = root(api_version);
        let namespace = match text(object, "/metadata/namespace") {
            "" => "default",
            namespace => namespace,
        };
        Ok(if is_namespaced {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        })
    }

    fn resource(&self, api_version: &str, kind: &str) -> anyhow::Result<Resource> {
        let wanted = (api_version.to_owned(), kind.to_owned());
        let mut known = self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(resource) = known.get(&wanted) {
            return Ok(resource.clone());
        }
        let all = self.send(Method::GET, &root(api_version), None)?;
        let all = all.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
        let found = all["resources"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|resource| resource["kind"] == kind && !text(resource, "/name").contains('/'))
            .with_context(|| format!("{api_version} serves no {kind}"))?;
        let resource = Resource {
            plural: text(found, "/name").to_owned(),
            is_namespaced: found["namespaced"] == true,
        };
        known.insert(wanted, resource.clone());
        Ok(resource)
    }

    fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Answer {
        let content = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(CONTENT_TYPE, content)
            .body(
                body.map(serde_json::to_vec)
                    .transpose()?
                    .unwrap_or_default(),
            )?;
        match self.runtime.block_on(self.client.request(request)) {
            Ok(answer) => Ok(Ok(answer)),
            Err(kube::Error::Api(status)) => {
                let causes = status.details.iter().flat_map(|details| &details.causes);
                Ok(Err(Refusal {
                    code: status.code,
                    // What is wrong with the object as a whole is at no field.
                    fields: causes
                        .map(|cause| cause.field.replace("<nil>", ""))
                        .collect(),
                    message: status.message.clone(),
                }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let seconds = self.since.elapsed().as_secs_f64();
        eprintln!("ring 5 with its API server: {seconds:.1} s");
    }
}

impl Mode {
    fn query(self) -> &'static str {
        match self {
            Self::Dry => "fieldValidation=Strict&dryRun=All",
            Self::Real => "fieldValidation=Strict",
        }
    }
}

async fn configuration(kubeconfig: &Path) -> anyhow::Result<Config> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    Ok(Config::from_custom_kubeconfig(kubeconfig, &options).await?)
}

fn root(api_version: &str) -> String {
    if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    }
}

/// Waits until something is so; what it comes to.
pub(crate) fn eventually<T>(
    what: &str,
    probe: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    within(PATIENCE, what, probe)
}

/// The same for what takes longer.
pub(crate) fn within<T>(
    patience: Duration,
    what: &str,
    mut probe: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = probe()? {
            return Ok(found);
        }
        anyhow::ensure!(Instant::now() < deadline, "in {patience:?} not: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
