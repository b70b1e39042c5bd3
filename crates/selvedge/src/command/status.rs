//! `selvedge status`

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::Context;
use compiler::{Kind, snapshot::Class};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::{
    node,
    rollout::{self, Shown, view},
};
use crate::{
    args::{Format, Status as Args},
    output::{self, Frame, Style, Verdict, counted, styled, table},
};

const NO_REVISION: &str = "no revision has been published; does the operator run?";

/// How many objects that are not ready are shown where not all are asked for.
const OBJECTS: usize = 20;

/// How often a cluster that is watched is read: all its objects, which the operator reports about as often.
const INTERVAL: Duration = Duration::from_secs(3);

/// The state of a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    /// Absent before the operator has published anything.
    rollout: Option<Shown>,
    /// The nodes that do not run their config, by what they do with it.
    nodes: BTreeMap<String, Vec<String>>,
    /// The machines whose Node was deleted, and that still hold their addresses.
    deleted_nodes: BTreeSet<String>,
    kinds: BTreeMap<String, Count>,
    not_ready: Vec<NotReady>,
}

/// How many objects of a kind there are, and how many of them are ready.
#[derive(Debug, Default, Serialize)]
struct Count {
    objects: usize,
    ready: usize,
}

/// An object that is not ready.
#[derive(Debug, Serialize)]
struct NotReady {
    object: String,
    reason: String,
    message: String,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Verdict> {
    super::runtime()?.block_on(async {
        let client = super::client(&args.cluster).await?;
        if args.watch {
            let read = async || {
                let state = read(&client).await?;
                let ended = state.rollout.as_ref().and_then(rollout::ended);
                Ok((frame(&state, args.all), ended))
            };
            return super::watch::follow(INTERVAL, read).await;
        }
        show(&read(&client).await?, args)
    })
}

fn show(state: &State, args: &Args) -> anyhow::Result<Verdict> {
    match args.output {
        Format::Table => output::text(&output::wrapped(&screen(state, args.all), 4)),
        Format::Yaml | Format::Json => output::documents(args.output, &[state])?,
    }
    let has_failed = state.rollout.as_ref().map(rollout::verdict) == Some(Verdict::Problems);
    Ok(if has_failed || !state.not_ready.is_empty() {
        Verdict::Problems
    } else {
        Verdict::Fine
    })
}

fn frame(state: &State, all: bool) -> Frame {
    let rollout = state.rollout.as_ref();
    let rollout = rollout.map_or_else(|| NO_REVISION.to_owned(), view::line);
    let not_ready = counted(state.not_ready.len(), "object");
    Frame {
        screen: screen(state, all),
        line: format!("{rollout}; {not_ready} not ready"),
    }
}

/// Whether objects of a kind are written by people and say whether they are ready.
fn says_ready(kind: Kind) -> bool {
    match kind.class() {
        Class::Node | Class::Result | Class::Report | Class::Claim | Class::Address => false,
        Class::Settings
        | Class::Underlay
        | Class::Overlay
        | Class::HostRouter
        | Class::Referenced
        | Class::Intent(_)
        | Class::LowLevel
        | Class::NotCompiled => true,
    }
}

async fn read(client: &Client) -> anyhow::Result<State> {
    let kinds = operator::watched().filter(|kind| says_ready(*kind));
    let objects = operator::objects(client, kinds).await?;
    let mut state = State {
        rollout: rollout::revisions(client).await?.into_iter().next(),
        nodes: rollout::waiting_nodes(client).await?,
        deleted_nodes: node::deleted(client).await?,
        kinds: BTreeMap::new(),
        not_ready: Vec::new(),
    };
    for object in &objects {
        state.add(object)?;
    }
    Ok(state)
}

impl State {
    fn add(&mut self, object: &Value) -> anyhow::Result<()> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str);
        // What intents became is part of their own status.
        if object.pointer("/metadata/ownerReferences").is_some() {
            return Ok(());
        }
        let kind = text("/kind").unwrap_or_default();
        let name = text("/metadata/name").unwrap_or_default();
        let name = match text("/metadata/namespace") {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        };
        let conditions = object.pointer("/status/conditions").cloned();
        let conditions: Vec<Condition> = conditions
            .map(serde_json::from_value)
            .transpose()
            .with_context(|| format!("failed to read the conditions of {name}"))?
            .unwrap_or_default();
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64);
        let ready = conditions.into_iter().find(|one| one.type_ == "Ready");
        let ready = ready.filter(|one| one.observed_generation >= generation);
        let count = self.kinds.entry(kind.to_owned()).or_default();
        count.objects += 1;
        match ready {
            Some(ready) if ready.status == "True" => count.ready += 1,
            Some(Condition {
                reason, message, ..
            }) => self.not_ready.push(NotReady {
                object: name,
                reason,
                message,
            }),
            None => self.not_ready.push(NotReady {
                object: name,
                reason: "NotSeen".to_owned(),
                message:
                    "it has no status: the operator does not run, or does not serve this kind yet"
                        .to_owned(),
            }),
        }
        Ok(())
    }
}

fn screen(state: &State, all: bool) -> String {
    let mut text = vec![match &state.rollout {
        Some(rollout) => view::screen(rollout, &state.nodes, all),
        None => format!("{NO_REVISION}\n"),
    }];
    if !state.deleted_nodes.is_empty() {
        let names: Vec<&str> = state.deleted_nodes.iter().map(String::as_str).collect();
        text.push(format!(
            "deleted, and still holding their addresses: {}\n  `selvedge node forget NAME` frees them, once the machine is off or cleaned up\n",
            names.join(", ")
        ));
    }
    let rows = state.kinds.iter().map(|(kind, count)| {
        let Count { objects, ready } = count;
        let style = if ready == objects {
            Style::Green
        } else {
            Style::Red
        };
        let ready = styled(style, &format!("{ready}/{objects}"));
        vec![kind.clone(), ready]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        text.push(format!("\n{}", table(&["KIND", "READY"], &rows)));
    }
    if !state.not_ready.is_empty() {
        let number = counted(state.not_ready.len(), "object");
        let head = styled(Style::Red, &format!("{number} not ready"));
        text.push(format!("\n{head}\n"));
    }
    let shown = if all { usize::MAX } else { OBJECTS };
    let lines = state.not_ready.iter().take(shown).map(|one| {
        let NotReady {
            object,
            reason,
            message,
        } = one;
        format!("  {object}  {reason}: {message}\n")
    });
    text.extend(lines);
    match state.not_ready.len().saturating_sub(shown) {
        0 => {}
        more => text.push(format!("  and {more} more (--all shows them)\n")),
    }
    text.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_counts_the_objects_that_are_not_ready() {
        let mut state = State {
            rollout: None,
            nodes: BTreeMap::new(),
            deleted_nodes: BTreeSet::new(),
            kinds: BTreeMap::new(),
            not_ready: Vec::new(),
        };
        let line = |state: &State| frame(state, false).line;
        assert_eq!(line(&state), format!("{NO_REVISION}; 0 objects not ready"));
        state.not_ready.push(NotReady {
            object: "Network billing-net".to_owned(),
            reason: "Pending".to_owned(),
            message: "0 of 2 nodes".to_owned(),
        });
        let frame = frame(&state, false);
        assert_eq!(frame.line, format!("{NO_REVISION}; 1 object not ready"));
        assert!(
            frame
                .screen
                .contains("Network billing-net  Pending: 0 of 2 nodes")
        );
    }
}
