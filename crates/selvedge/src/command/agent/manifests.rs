//! `selvedge agent --manifests`: a node that is kept at what files say, without a cluster.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use agent::{Config, ResolvedSecret, journal::Store, machine::Assigned};
use api::{meta::SecretReference, tcaas::node_network_config::HOLD_ANNOTATION};
use compiler::{Kind, Severity};
use explain::running::Running;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{self, Instant},
};

use crate::{command::problems, input};

/// Between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);
/// Before files that gave no config are read again as they are: what failed may pass by itself.
const RETRY: Duration = Duration::from_secs(5);

/// Files, and the node that is to be what they say.
pub(super) struct Manifests {
    pub(super) paths: Vec<PathBuf>,
    pub(super) node: String,
    /// Namespace of Secrets whose reference names none.
    pub(super) secrets_namespace: String,
    /// Directory of the agent's journal: what the node runs keeps its numbers.
    pub(super) state: PathBuf,
    /// What the files compiled into when they were last without an error.
    running: Option<Running>,
}

/// What is looked at to see whether files have changed: name, time, size.
type Fingerprint = Vec<(PathBuf, Option<SystemTime>, u64)>;

impl Manifests {
    pub(super) fn new(
        paths: &[PathBuf],
        node: &str,
        secrets_namespace: &str,
        state: PathBuf,
    ) -> Self {
        Self {
            paths: paths.to_vec(),
            node: node.to_owned(),
            secrets_namespace: secrets_namespace.to_owned(),
            state,
            running: None,
        }
    }

    /// Sends a config when the files have changed and have then been left alone for one look, for as long as the agent
    /// lives. Files that give none are read again from time to time.
    pub(super) async fn watch(mut self, assigned: mpsc::Sender<Assigned>) {
        let (mut read, mut seen) = (None, None);
        let (mut sent, mut retry): (Option<Assigned>, Option<Instant>) = (None, None);
        loop {
            let now = self.fingerprint();
            let is_due = read != seen || retry.is_some_and(|at| at <= Instant::now());
            if Some(&now) == seen.as_ref() && is_due {
                let config = self.config();
                retry = config.refusal.is_some().then(|| Instant::now() + RETRY);
                read.clone_from(&seen);
                if sent.as_ref() != Some(&config) {
                    if let Some(refusal) = &config.refusal {
                        tracing::error!("{refusal}");
                    }
                    sent = Some(config.clone());
                    if assigned.send(config).await.is_err() {
                        return;
                    }
                }
            }
            seen = Some(now);
            time::sleep(LOOK).await;
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        let files = self.paths.iter().flat_map(|path| {
            // A path that cannot be read is one without files; reading it says why.
            input::files(path).unwrap_or_default()
        });
        let look = |file: PathBuf| {
            let metadata = fs::metadata(&file).ok();
            let time = metadata.as_ref().and_then(|it| it.modified().ok());
            (file, time, metadata.map_or(0, |it| it.len()))
        };
        files.map(look).collect()
    }

    /// The node's config, or why the files give none. Files are one author: with any error in them the node stays as it is.
    pub(super) fn config(&mut self) -> Assigned {
        self.compile().unwrap_or_else(|error| Assigned {
            refusal: Some(format!("{error:#}; configuration unchanged")),
            ..Assigned::new(Arc::new(Config::empty()))
        })
    }

    fn compile(&mut self) -> anyhow::Result<Assigned> {
        let documents = input::documents(&self.paths)?;
        let mut world = input::read(&self.paths)?;
        let has_config = world
            .snapshot
            .subjects()
            .any(|it| it.kind == Kind::NodeNetworkConfig && *it.key.name == *self.node);
        if let Some(config) = self.confirmed()?.filter(|_| !has_config) {
            world.snapshot.insert(&config);
        }
        if let Some(unread) = world.unknown.first() {
            anyhow::bail!("{unread}");
        }
        let running = match &self.running {
            Some(running) => running.after(&world.snapshot),
            None => Running::new(&world.snapshot),
        };
        let problems = running.compilation.problems.iter();
        let errors: Vec<String> = problems
            .filter(|problem| problem.severity() == Severity::Error)
            .map(|problem| problems::line(&world, problem))
            .collect();
        anyhow::ensure!(errors.is_empty(), "{}", errors.join("; "));
        let Some(compiled) = running.compilation.nodes.get(&self.node) else {
            anyhow::bail!(
                "the files define no Node {:?}; add one with its labels",
                self.node
            );
        };
        let spec = compiled.spec(&running.compilation.revision.fingerprint);
        let mut config = Config {
            spec,
            ..Config::empty()
        };
        let moved = compiled.moved_passwords(&running.snapshot);
        let mut unread = BTreeMap::new();
        for reference in config.references() {
            // What an Underlay has in clear text is in no Secret here.
            let moved = moved.iter().find(|one| one.secret == reference);
            let moved = moved.and_then(|one| one.password.as_ref());
            let moved = moved.map(|password| password.reveal().to_owned());
            match moved.map_or_else(|| self.password(&documents, &reference), Ok) {
                Ok(password) => config.secrets.push(ResolvedSecret {
                    reference,
                    password,
                }),
                Err(why) => {
                    unread.insert(reference, why);
                }
            }
        }
        self.running = Some(Running::new(&running.snapshot));
        Ok(Assigned {
            hold: self.hold(&documents),
            unread,
            ..Assigned::new(Arc::new(config))
        })
    }

    /// The config that the node runs, as the object that a cluster would have. Without it the node would get other numbers.
    fn confirmed(&self) -> anyhow::Result<Option<Value>> {
        let found = Store::new(&self.state, "").load()?;
        let confirmed = found.and_then(|found| found.journal.confirmed);
        Ok(confirmed.map(|confirmed| {
            json!({
                "apiVersion": Kind::NodeNetworkConfig.api_version(), "kind": "NodeNetworkConfig",
                "metadata": {"name": self.node}, "spec": confirmed.spec,
            })
        }))
    }

    fn password(&self, documents: &[Value], wanted: &SecretReference) -> Result<String, String> {
        let namespace = wanted.namespace.as_ref();
        let namespace = namespace.unwrap_or(&self.secrets_namespace);
        let secrets = documents.iter().filter(|it| is_kind(it, "Secret"));
        let mut secrets =
            secrets.filter_map(|it| serde_json::from_value::<Secret>(it.clone()).ok());
        let found = secrets.find(|secret| {
            let own = secret.metadata.namespace.as_ref();
            secret.metadata.name == wanted.name
                && own.unwrap_or(&self.secrets_namespace) == namespace
        });
        let secret = found.ok_or_else(|| format!("the files define no Secret {wanted}"))?;
        let text = secret.string_data.unwrap_or_default();
        let bytes = secret.data.unwrap_or_default();
        let bytes = bytes
            .get("password")
            .and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
        text.get("password")
            .map(String::as_str)
            .or(bytes)
            .map(|text| text.trim_end_matches('\n').to_owned())
            .ok_or_else(|| format!("Secret {wanted} has no text under the key password"))
    }

    fn hold(&self, documents: &[Value]) -> Option<String> {
        let is_own = |it: &&Value| {
            let name = it.pointer("/metadata/name").and_then(Value::as_str);
            is_kind(it, "Node") && name == Some(&self.node)
        };
        let annotations = documents
            .iter()
            .find(is_own)?
            .pointer("/metadata/annotations")?;
        let value = annotations.get(HOLD_ANNOTATION)?;
        value.as_str().map(ToOwned::to_owned)
    }
}

fn is_kind(document: &Value, kind: &str) -> bool {
    document.get("kind").and_then(Value::as_str) == Some(kind)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: worker-1}
";

    fn manifests(directory: &Path) -> Manifests {
        Manifests::new(
            &[directory.join("files")],
            "worker-1",
            "selvedge-system",
            directory.join("state"),
        )
    }

    fn write(directory: &Path, name: &str, text: &str) {
        fs::create_dir_all(directory.join("files")).unwrap();
        fs::write(directory.join("files").join(name), text).unwrap();
    }

    #[test]
    fn files_become_the_config_of_the_node_with_its_hold() {
        let directory = tempfile::TempDir::new().unwrap();
        write(directory.path(), "node.yaml", NODE);
        let mut manifests = manifests(directory.path());
        let assigned = manifests.config();
        assert_eq!(assigned.refusal, None);
        assert_eq!(assigned.hold, None);
        let held = NODE.replace(
            "{name: worker-1}",
            "{name: worker-1, annotations: {selvedge.dev/hold: maintenance}}",
        );
        write(directory.path(), "node.yaml", &held);
        assert_eq!(manifests.config().hold.as_deref(), Some("maintenance"));
    }

    #[test]
    fn a_mistake_in_any_file_leaves_the_node_as_it_is() {
        let directory = tempfile::TempDir::new().unwrap();
        let mut manifests = manifests(directory.path());
        let refusal = manifests.config().refusal.unwrap();
        assert!(refusal.contains("failed to read"), "{refusal}");
        write(directory.path(), "node.yaml", NODE);
        write(directory.path(), "network.yaml", "kind: [");
        let refusal = manifests.config().refusal.unwrap();
        assert!(refusal.contains("network.yaml"), "{refusal}");
        assert!(refusal.contains("configuration unchanged"), "{refusal}");
        let network = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: blue}
spec: {vlan: 9999}
";
        write(directory.path(), "network.yaml", network);
        let refusal = manifests.config().refusal.unwrap();
        assert!(refusal.contains("9999"), "{refusal}");
        fs::remove_file(directory.path().join("files/network.yaml")).unwrap();
        assert_eq!(manifests.config().refusal, None);
        write(
            directory.path(),
            "node.yaml",
            &NODE.replace("worker-1", "worker-2"),
        );
        let refusal = manifests.config().refusal.unwrap();
        assert!(refusal.contains("no Node \"worker-1\""), "{refusal}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_passes_by_itself_is_followed_by_another_attempt() {
        let directory = tempfile::TempDir::new().unwrap();
        write(directory.path(), "node.yaml", NODE);
        // Damaged until the agent has put its copy in place; the files stay as they are.
        let journal = directory.path().join("state/journal");
        fs::create_dir(directory.path().join("state")).unwrap();
        fs::write(&journal, "damaged").unwrap();
        let (sender, mut assigned) = mpsc::channel(1);
        tokio::spawn(manifests(directory.path()).watch(sender));
        let refusal = assigned.recv().await.unwrap().refusal.unwrap();
        assert!(refusal.contains("not a journal"), "{refusal}");
        let again = time::timeout(4 * RETRY, assigned.recv()).await;
        assert!(again.is_err(), "the same refusal is said once");
        fs::remove_file(&journal).unwrap();
        let config = time::timeout(4 * RETRY, assigned.recv()).await.unwrap();
        assert_eq!(config.unwrap().refusal, None);
    }

    #[test]
    fn passwords_are_read_from_secrets_among_the_files() {
        let directory = tempfile::TempDir::new().unwrap();
        let manifests = manifests(directory.path());
        let reference = |name: &str| SecretReference {
            name: Some(name.to_owned()),
            namespace: None,
        };
        let secret = |name: &str, data: Value| {
            let mut secret =
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
            secret
                .as_object_mut()
                .unwrap()
                .extend(data.as_object().unwrap().clone());
            secret
        };
        let documents = [
            secret("plain", json!({"stringData": {"password": "hunter2"}})),
            secret("coded", json!({"data": {"password": "aHVudGVyMgo="}})),
            secret("empty", json!({})),
        ];
        let password = |name: &str| manifests.password(&documents, &reference(name));
        assert_eq!(password("plain").unwrap(), "hunter2");
        assert_eq!(password("coded").unwrap(), "hunter2");
        assert!(password("empty").unwrap_err().contains("key password"));
        assert!(password("none").unwrap_err().contains("no Secret"));
    }
}
