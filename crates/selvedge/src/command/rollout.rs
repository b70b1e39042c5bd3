//! `selvedge rollout`

pub(super) mod view;

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use anyhow::{Context, anyhow, bail};
use api::{
    selvedge::{Settings, SettingsSpec},
    tcaas::{NetworkConfigRevision, NetworkConfigRevisionStatus, NodeNetworkConfig},
};
use compiler::rollout::stored;
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    args::{Approve, Cluster, Format, History, Rollout, RolloutStatus},
    output::{self, Verdict, table},
};

/// Whose changes these are, for the API server.
const FIELD_MANAGER: &str = "selvedge-cli";

/// How often a rollout that is watched is looked at.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(args: Rollout) -> anyhow::Result<Verdict> {
    let runtime = super::runtime()?;
    match args {
        Rollout::Status(args) => runtime.block_on(status(&args)),
        Rollout::Pause(cluster) => runtime.block_on(pause(&cluster, true)),
        Rollout::Resume(cluster) => runtime.block_on(pause(&cluster, false)),
        Rollout::Retry(cluster) => runtime.block_on(retry(&cluster)),
        Rollout::Approve(args) => runtime.block_on(approve(&args)),
        Rollout::History(args) => runtime.block_on(history(&args)),
    }
}

/// A revision, with how far its rollout is.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    revision: String,
    #[serde(flatten)]
    status: NetworkConfigRevisionStatus,
}

impl From<NetworkConfigRevision> for Shown {
    fn from(revision: NetworkConfigRevision) -> Self {
        Self {
            revision: revision.name_any(),
            status: revision.status.unwrap_or_default(),
        }
    }
}

/// All revisions, the newest first.
pub(super) async fn revisions(client: &Client) -> anyhow::Result<Vec<Shown>> {
    let api: Api<NetworkConfigRevision> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.context("failed to list NetworkConfigRevisions")?;
    let mut revisions: Vec<Shown> = list.into_iter().map(Shown::from).collect();
    revisions.sort_by_key(|one| Reverse(one.status.sequence));
    Ok(revisions)
}

async fn newest(client: &Client) -> anyhow::Result<Shown> {
    let newest = revisions(client).await?.into_iter().next();
    newest.ok_or_else(|| {
        anyhow!("there is no NetworkConfigRevision: has the operator run in this cluster?")
    })
}

async fn status(args: &RolloutStatus) -> anyhow::Result<Verdict> {
    let client = super::client(&args.cluster).await?;
    if args.watch {
        let read = async || {
            let shown = newest(&client).await?;
            let nodes = waiting_nodes(&client).await?;
            let frame = view::frame(&shown, &nodes, args.all);
            Ok((frame, ended(&shown)))
        };
        return super::watch::follow(INTERVAL, read).await;
    }
    let shown = newest(&client).await?;
    match args.output {
        Format::Table => {
            let nodes = waiting_nodes(&client).await?;
            output::text(&view::screen(&shown, &nodes, args.all));
        }
        Format::Yaml | Format::Json => output::documents(args.output, &[&shown])?,
    }
    Ok(verdict(&shown))
}

pub(super) fn verdict(shown: &Shown) -> Verdict {
    match shown.status.phase.as_deref() {
        Some("Failed" | "Unapproved") => Verdict::Problems,
        _ => Verdict::Fine,
    }
}

/// What a rollout came to, if nothing more happens in it by itself. One that is paused goes on when it is resumed.
pub(super) fn ended(shown: &Shown) -> Option<Verdict> {
    let phase = shown.status.phase.as_deref();
    let has_ended = matches!(phase, Some("Complete" | "Failed" | "Unapproved"));
    has_ended.then(|| verdict(shown))
}

/// A list as the API server prints it for `kubectl get`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Printed {
    column_definitions: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Column {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Row {
    cells: Vec<Value>,
}

/// The nodes that do not run their config, by what they do with it. Read as `kubectl get` does: whole configs of many nodes would be large.
pub(super) async fn waiting_nodes(
    client: &Client,
) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let request = http::Request::get(NodeNetworkConfig::url_path(&(), None))
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .context("failed to ask for NodeNetworkConfigs")?;
    let nodes: Printed = client
        .request(request)
        .await
        .context("failed to list NodeNetworkConfigs")?;
    let place = |wanted: &str| {
        let mut columns = nodes.column_definitions.iter();
        columns.position(|column| column.name == wanted)
    };
    let (Some(name), Some(status)) = (place("Name"), place("Status")) else {
        bail!(
            "the NodeNetworkConfig of this cluster has no column Status; are its definitions old?"
        );
    };
    let mut waiting: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &nodes.rows {
        let cell = |place: usize| row.cells.get(place).and_then(Value::as_str);
        let status = cell(status).unwrap_or("not answered");
        if status != "provisioned" {
            let name = cell(name).unwrap_or_default().to_owned();
            waiting.entry(status.to_owned()).or_default().push(name);
        }
    }
    Ok(waiting)
}

async fn pause(cluster: &Cluster, pause: bool) -> anyhow::Result<Verdict> {
    let client = super::client(cluster).await?;
    let api: Api<Settings> = Api::all(client.clone());
    let known = api.get_metadata_opt("default").await;
    let known = known.context("failed to read Settings default")?;
    if known.is_none() && were_settings_deleted(&client).await? {
        bail!(
            "Settings default was deleted, and its last spec is in effect: new Settings with a pause alone would replace that by the \
             defaults; create Settings default again first"
        );
    }
    let settings = json!({
        "apiVersion": Settings::api_version(&()), "kind": Settings::kind(&()),
        "metadata": {"name": "default"}, "spec": {"rollout": {"pause": pause}},
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let written = api.patch("default", &params, &Patch::Apply(settings)).await;
    written.context("failed to write Settings default")?;
    output::text(if pause {
        "paused: no further node gets a new config; `selvedge rollout resume` continues it\n"
    } else {
        "resumed\n"
    });
    Ok(Verdict::Fine)
}

/// Whether the newest revision has settings that say something.
async fn were_settings_deleted(client: &Client) -> anyhow::Result<bool> {
    let api: Api<NetworkConfigRevision> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await;
    let list = list.context("failed to list NetworkConfigRevisions")?;
    let sequence =
        |one: &NetworkConfigRevision| one.status.as_ref().map_or(0, |status| status.sequence);
    let newest = list.into_iter().max_by_key(sequence);
    let settings = newest.and_then(|newest| newest.spec.settings);
    Ok(settings.is_some_and(|settings| settings != SettingsSpec::default()))
}

async fn retry(cluster: &Cluster) -> anyhow::Result<Verdict> {
    let client = super::client(cluster).await?;
    let Shown { revision, status } = newest(&client).await?;
    if status.failed_node.is_none() && status.failed == 0 {
        output::text(&format!("revision {revision} has not failed\n"));
        return Ok(Verdict::Problems);
    }
    annotate(&client, &revision, stored::RETRY).await?;
    output::text(&format!("revision {revision} is tried again\n"));
    Ok(Verdict::Fine)
}

async fn approve(args: &Approve) -> anyhow::Result<Verdict> {
    let wanted = match &args.plan {
        Some(path) => Some(super::plan::saved_revision(path)?),
        None => args.revision.clone(),
    };
    let client = super::client(&args.cluster).await?;
    let Shown { revision, status } = newest(&client).await?;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != revision) {
        bail!("revision {wanted} is not the newest; that is {revision}");
    }
    let Some(message) = status.unapproved_message else {
        output::text(&format!("revision {revision} needs no approval\n"));
        return Ok(Verdict::Problems);
    };
    annotate(&client, &revision, stored::APPROVED).await?;
    output::text(&format!("approved revision {revision}: {message}\n"));
    Ok(Verdict::Fine)
}

/// Writes the time into an annotation of a revision.
async fn annotate(client: &Client, revision: &str, annotation: &str) -> anyhow::Result<()> {
    let api: Api<NetworkConfigRevision> = Api::all(client.clone());
    let annotations = json!({annotation: Timestamp::now().to_string()});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let params = PatchParams::default();
    let written = api.patch_metadata(revision, &params, &patch).await;
    written.with_context(|| format!("failed to write NetworkConfigRevision {revision}"))?;
    Ok(())
}

async fn history(args: &History) -> anyhow::Result<Verdict> {
    let client = super::client(&args.cluster).await?;
    let revisions = revisions(&client).await?;
    match args.output {
        Format::Table => {}
        Format::Yaml | Format::Json => {
            output::documents(args.output, &revisions)?;
            return Ok(Verdict::Fine);
        }
    }
    let rows = revisions.iter().map(|Shown { revision, status }| {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        vec![
            status.sequence.to_string(),
            revision.clone(),
            text(&status.phase),
            format!("{}/{}", status.ready, status.total),
            text(&status.completed_at),
            text(&status.failed_node),
        ]
    });
    let head = [
        "NUMBER",
        "REVISION",
        "PHASE",
        "READY",
        "COMPLETED",
        "FAILED NODE",
    ];
    output::text(&table(&head, &rows.collect::<Vec<_>>()));
    Ok(Verdict::Fine)
}
