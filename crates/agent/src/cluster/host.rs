//! The objects that tell of the host's router: the FRRNodeState of the node, and a BGPSessionState for each session.
//!
//! The agent may write these objects and not list them: which ones there are stands in an annotation of the FRRNodeState, which is written
//! before a BGPSessionState is made and after one is deleted.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{
    frrk8s::{BgpSessionState, BgpSessionStateStatus, FrrNodeState, FrrNodeStateStatus},
    selvedge::AGENT_LEASES,
};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{sync::watch, time};

use super::{Cluster, REQUEST_PATIENCE};
use crate::{
    config::hex,
    daemons::Instance,
    host::{Change, Limits, Report, Session, Status, cut, without_passwords},
    report::{FIELD_MANAGER, chain},
    vtysh,
};

const API_VERSION: &str = "frrk8s.metallb.io/v1beta1";
/// Names of the BGPSessionStates of the node.
const SESSIONS: &str = "selvedge.dev/sessions";
/// The labels that users of these objects select by.
const LABELS: [&str; 3] = [
    "frrk8s.metallb.io/node",
    "frrk8s.metallb.io/peer",
    "frrk8s.metallb.io/vrf",
];
/// Between two reports: changes come in groups.
const SPACING: Duration = Duration::from_millis(500);
/// Before another attempt: the first pause and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The longest running configuration that is reported: an object of the API server has a limit.
const LONGEST_CONFIG: usize = 256 * 1024;
/// The longest error of FRR that is reported.
const LONGEST_ERROR: usize = 4096;
/// FRR's VRF that is none.
const DEFAULT_VRF: &str = "default";

/// What the API server is known to have.
#[derive(Debug, Default)]
struct Written {
    /// Whether it was read which sessions there are.
    is_known: bool,
    owner: Option<Value>,
    /// The names in the annotation.
    names: BTreeSet<String>,
    sessions: BTreeMap<String, BgpSessionStateStatus>,
    state: Option<FrrNodeStateStatus>,
    /// What the FRRNodeState was made from.
    latest: Option<(Status, Option<Change>, Limits)>,
    /// Whether the objects were removed, since there is no such router.
    is_removed: bool,
}

struct Objects<'a> {
    node: &'a str,
    states: Api<FrrNodeState>,
    sessions: Api<BgpSessionState>,
    nodes: Api<Node>,
}

impl Cluster {
    /// Reports the host's router for as long as the agent runs.
    pub(super) async fn report_host(
        &self,
        client: Client,
        mut reports: watch::Receiver<Report>,
        mut sessions: watch::Receiver<Vec<Session>>,
        instance: Instance,
    ) {
        let objects = Objects {
            node: &self.node,
            states: Api::all(client.clone()),
            sessions: Api::namespaced(client.clone(), AGENT_LEASES),
            nodes: Api::all(client),
        };
        let mut restores = self.restores.subscribe();
        let mut written = Written::default();
        let mut pause = FIRST_PAUSE;
        loop {
            let report = reports.borrow_and_update().clone();
            let seen = sessions.borrow_and_update().clone();
            // Before the node's config is known, nothing is known to be stale.
            let done = if report.status.assigned.is_some() {
                objects.write(&report, &seen, &instance, &mut written).await
            } else {
                Ok(())
            };
            match done {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    time::sleep(SPACING).await;
                    tokio::select! {
                        Ok(()) = reports.changed() => {}
                        Ok(()) = sessions.changed() => {}
                        Ok(()) = restores.changed() => written = Written::default(),
                        else => return,
                    }
                }
                Err(error) => {
                    tracing::warn!(error, "the host's router is not reported");
                    written = Written::default();
                    time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

impl Objects<'_> {
    /// Makes the objects what they should be.
    async fn write(
        &self,
        report: &Report,
        sessions: &[Session],
        instance: &Instance,
        written: &mut Written,
    ) -> Result<(), String> {
        if !written.is_known {
            self.read(written).await?;
        }
        if !report.is_there() {
            return self.remove(written).await;
        }
        written.is_removed = false;
        let wanted: BTreeMap<String, &Session> = sessions
            .iter()
            .map(|session| (name(self.node, session), session))
            .collect();
        let mut names = written.names.clone();
        names.extend(wanted.keys().cloned());
        self.name_sessions(names, written).await?;
        for (name, session) in &wanted {
            self.session(name, session, written).await?;
        }
        for name in written.names.clone() {
            if !wanted.contains_key(&name) {
                self.delete_session(&name, written).await?;
            }
        }
        self.name_sessions(wanted.into_keys().collect(), written)
            .await?;
        let latest = (
            report.status.clone(),
            report.change.clone(),
            report.limits.clone(),
        );
        if written.latest.as_ref() == Some(&latest) {
            return Ok(());
        }
        let state = node_state(report, running_config(report, instance).await);
        written.latest = Some(latest);
        if written.state.as_ref() == Some(&state) {
            return Ok(());
        }
        let metadata = json!({"name": self.node});
        let patch = object("FRRNodeState", &metadata, "status", &json!(state));
        let patch = Patch::Apply(&patch);
        within(self.states.patch_status(self.node, &params(), &patch)).await?;
        written.state = Some(state);
        Ok(())
    }

    /// Reads which objects an earlier agent has made, and whose they are.
    async fn read(&self, written: &mut Written) -> Result<(), String> {
        let node = within(self.nodes.get_metadata_opt(self.node)).await?;
        let uid = node.and_then(|node| node.metadata.uid);
        written.owner = uid.map(
            |uid| json!([{"apiVersion": "v1", "kind": "Node", "name": self.node, "uid": uid}]),
        );
        let state = within(self.states.get_metadata_opt(self.node)).await?;
        let names = state.and_then(|state| state.annotations().get(SESSIONS).cloned());
        let names = names.unwrap_or_default();
        let names = names.split(',').filter(|name| !name.is_empty());
        written.names = names.map(str::to_owned).collect();
        written.is_known = true;
        Ok(())
    }

    /// Writes which sessions have an object, and the FRRNodeState if there is none.
    async fn name_sessions(
        &self,
        names: BTreeSet<String>,
        written: &mut Written,
    ) -> Result<(), String> {
        if written.state.is_some() && written.names == names {
            return Ok(());
        }
        let joined = names.iter().cloned().collect::<Vec<_>>().join(",");
        let metadata = json!({
            "name": self.node,
            "annotations": {SESSIONS: joined},
            "ownerReferences": written.owner,
        });
        let object = object("FRRNodeState", &metadata, "spec", &json!({}));
        let patch = Patch::Apply(&object);
        within(self.states.patch(self.node, &params(), &patch)).await?;
        written.names = names;
        written.state.get_or_insert_default();
        Ok(())
    }

    async fn session(
        &self,
        name: &str,
        session: &Session,
        written: &mut Written,
    ) -> Result<(), String> {
        let status = self.status(session);
        if written.sessions.get(name) == Some(&status) {
            return Ok(());
        }
        if !written.sessions.contains_key(name) {
            let values = [self.node, &status.peer, &status.vrf];
            let labels: BTreeMap<&str, &str> = LABELS.into_iter().zip(values).collect();
            let metadata = json!({
                "name": name, "labels": labels, "ownerReferences": written.owner,
            });
            let object = object("BGPSessionState", &metadata, "spec", &json!({}));
            let patch = Patch::Apply(&object);
            within(self.sessions.patch(name, &params(), &patch)).await?;
        }
        let metadata = json!({"name": name});
        let object = object("BGPSessionState", &metadata, "status", &json!(status));
        let patch = Patch::Apply(&object);
        within(self.sessions.patch_status(name, &params(), &patch)).await?;
        written.sessions.insert(name.to_owned(), status);
        Ok(())
    }

    fn status(&self, session: &Session) -> BgpSessionStateStatus {
        let vrf = Some(session.vrf.as_str()).filter(|vrf| *vrf != DEFAULT_VRF);
        BgpSessionStateStatus {
            bgp_status: serde_json::from_value(json!(session.state)).ok(),
            bfd_status: session.bfd.clone().unwrap_or_else(|| "N/A".to_owned()),
            node: self.node.to_owned(),
            peer: session.label(),
            vrf: vrf.unwrap_or_default().to_owned(),
        }
    }

    async fn delete_session(&self, name: &str, written: &mut Written) -> Result<(), String> {
        within(gone(self.sessions.delete(name, &DeleteParams::default()))).await?;
        written.sessions.remove(name);
        Ok(())
    }

    /// Removes all objects: the node has no such router.
    async fn remove(&self, written: &mut Written) -> Result<(), String> {
        if written.is_removed {
            return Ok(());
        }
        for name in written.names.clone() {
            self.delete_session(&name, written).await?;
        }
        within(gone(
            self.states.delete(self.node, &DeleteParams::default()),
        ))
        .await?;
        *written = Written {
            is_known: true,
            owner: written.owner.take(),
            is_removed: true,
            ..Written::default()
        };
        Ok(())
    }
}

/// What is applied: one part of an object.
fn object(kind: &str, metadata: &Value, part: &str, content: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, part: content})
}

/// The name of the object of a session: `NODE-` and sixteen hexadecimal digits.
fn name(node: &str, session: &Session) -> String {
    let digest = Sha256::digest(format!("{}\0{}", session.vrf, session.peer));
    let digits = hex(&digest);
    format!("{node}-{}", digits.get(..16).unwrap_or_default())
}

fn params() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

/// A request with its deadline.
async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    match time::timeout(REQUEST_PATIENCE, request).await {
        Ok(outcome) => outcome.map_err(|error| chain(&error)),
        Err(_elapsed) => Err("no answer".to_owned()),
    }
}

/// A deletion; what is not there need not be deleted.
async fn gone<T>(
    deletion: impl Future<Output = Result<T, kube::Error>>,
) -> Result<(), kube::Error> {
    match deletion.await {
        Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(()),
        outcome => outcome.map(drop),
    }
}

async fn running_config(report: &Report, instance: &Instance) -> String {
    let running = report.status.running.as_ref();
    if running.is_none_or(|config| config.router.is_none()) {
        return String::new();
    }
    match vtysh::show_running(instance).await {
        Ok(text) => cut(&without_passwords(&text), LONGEST_CONFIG),
        Err(error) => format!("! not known: {}", chain(&error)),
    }
}

fn node_state(report: &Report, running_config: String) -> FrrNodeStateStatus {
    let assigned = report.status.assigned.as_ref();
    let router = assigned.and_then(|config| config.router.as_ref());
    let problems = router.map_or_else(Vec::new, |router| router.problems.clone());
    let running = report.status.running.as_ref();
    let running = running.and_then(|config| config.router.as_ref());
    let config_hash = running.map(|router| {
        let bytes = serde_json::to_vec(&**router).unwrap_or_default();
        hex(&Sha256::digest(bytes))
    });
    let change = report.change.as_ref();
    let failed = change.and_then(|change| change.error.clone());
    let rejected = &report.limits.rejected;
    let rejected = (!rejected.is_empty()).then(|| cut(&rejected.join("; "), LONGEST_ERROR));
    let refused = report.limits.refused_raw.iter();
    FrrNodeStateStatus {
        running_config,
        last_conversion_result: result((!problems.is_empty()).then(|| problems.join("; "))),
        last_reload_result: result(failed.or_else(|| report.error()).or(rejected)),
        configurations: report.configurations(),
        config_hash: config_hash.unwrap_or_default(),
        last_reload_time: change.map(|change| change.at.clone()),
        last_reload_milliseconds: change.map(|change| change.milliseconds),
        refused_lines: refused
            .map(|line| format!("{} line {}: {}", line.source, line.line, line.message))
            .collect(),
    }
}

/// A result in the words that users of these objects know.
fn result(error: Option<String>) -> String {
    error.map_or_else(|| "success".to_owned(), |error| format!("failed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::host::HostConfig;

    #[test]
    fn a_session_has_one_name_which_begins_with_its_node() {
        let session = |vrf: &str, peer: &str| Session {
            vrf: vrf.to_owned(),
            peer: peer.to_owned(),
            ..Session::default()
        };
        let one = name("n1", &session("default", "192.0.2.1"));
        assert_eq!(one, name("n1", &session("default", "192.0.2.1")));
        assert_ne!(one, name("n1", &session("red", "192.0.2.1")));
        let digits = one.strip_prefix("n1-").unwrap();
        assert!(digits.len() == 16 && digits.bytes().all(|it| it.is_ascii_hexdigit()));
    }

    fn config(problems: &[&str]) -> Arc<HostConfig> {
        let router = serde_json::json!({"problems": problems});
        Arc::new(HostConfig {
            router: serde_json::from_value(router).unwrap(),
            secrets: Vec::new(),
        })
    }

    #[test]
    fn a_state_is_good_again_when_the_last_bad_object_is_gone() {
        let results = |report: &Report| {
            let state = node_state(report, String::new());
            [state.last_conversion_result, state.last_reload_result]
        };
        let success = ["success", "success"].map(str::to_owned);
        let mut report = Report::default();
        report.status.assigned = Some(config(&["b contradicts a"]));
        report.status.running = Some(config(&[]));
        report.status.error = Some("line 3 is refused".to_owned());
        let change = |error: Option<&str>| Change {
            at: String::new(),
            milliseconds: 0,
            error: error.map(str::to_owned),
        };
        report.change = Some(change(Some("line 3")));
        let bad = ["failed: b contradicts a", "failed: line 3"].map(str::to_owned);
        assert_eq!(results(&report), bad);
        assert!(report.change.as_ref().is_some_and(Change::is_over));

        // The apply of what is left changes nothing in FRR.
        report.status.assigned = Some(config(&[]));
        report.status.error = None;
        report.change = Some(change(None));
        assert_eq!(results(&report), success);
        assert!(!report.change.as_ref().is_some_and(Change::is_over));
    }

    #[test]
    fn what_frr_refuses_of_an_object_is_in_the_result_and_stops_no_other() {
        let mut report = Report::default();
        let said = "FRR refuses \"neighbor 192.0.2.1 remote-as 5\": % no".to_owned();
        report.limits.rejected.push(said.clone());
        let state = node_state(&report, String::new());
        assert_eq!(state.last_reload_result, format!("failed: {said}"));
        assert_eq!(report.error(), None);
    }

    #[test]
    fn results_are_success_or_failed_with_the_real_error() {
        assert_eq!(result(None), "success");
        let why = "FRR refused: line 3".to_owned();
        assert_eq!(result(Some(why)), "failed: FRR refused: line 3");
    }
}
