//! One pass without the API server: what must be written, given all objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::tcaas::NodeNetworkConfigSpec;
use compiler::{
    Compiler, Kind, ObjectRef, Snapshot, Writes,
    rollout::{
        stored::Lane,
        waves::{Agent, Time},
    },
};

use crate::rollout::{Cluster, Publication, Step, valid};

/// What a pass has to write.
#[derive(Debug)]
pub(crate) struct Pass {
    /// What differs from what is stored.
    pub(crate) writes: Writes,
    /// What is done about nodes.
    pub(crate) step: Step,
    /// Intents that have something that could not be written before, each with what and why.
    pub(crate) unwritten: BTreeMap<ObjectRef, String>,
    /// Configs of nodes, revisions and their parts that could not be written for a while, each with why.
    pub(crate) lasting: BTreeMap<ObjectRef, String>,
    /// How many nodes have an agent that is not alive.
    pub(crate) silent_nodes: usize,
}

impl Pass {
    /// Compiles what changed and collects what must be written.
    pub(crate) fn compute(
        compiler: &mut Compiler,
        agent: impl Fn(&str) -> Agent,
        unwritten: BTreeMap<ObjectRef, String>,
        now: Time,
    ) -> Self {
        let mut writes = compiler.writes().clone();
        let statuses = compiler.statuses();
        for subject in unwritten.keys() {
            let status = statuses.get(subject).map(Arc::clone);
            let status = status.map(|status| (subject.clone(), status));
            writes.statuses.extend(status);
        }
        let progress = compiler.progress().clone();
        let (snapshot, compilation) = compiler.compile();
        let valid = valid(snapshot, &compilation.revision.fingerprint);
        // One whose parts are not all there cannot be returned to.
        let last_valid = valid.iter().find_map(|key| compiler.revision(key));
        let (snapshot, compilation) = compiler.compile();
        let cluster = Cluster {
            snapshot,
            compilation,
            writes: &writes,
            progress: &progress,
            last_valid,
            now,
        };
        let silent_nodes = progress.keys().filter(|node| !agent(node).is_alive).count();
        let step = cluster.step(agent);
        Self {
            writes,
            step,
            unwritten,
            lasting: BTreeMap::new(),
            silent_nodes,
        }
    }

    /// The same, where configs of nodes were deleted with their definition: first they are published as they were. Nothing changes on their
    /// nodes, so that nothing is waited for.
    pub(crate) fn with_unwritten(
        mut self,
        snapshot: &Snapshot,
        nodes: &BTreeSet<ObjectRef>,
    ) -> Self {
        let publish = &mut self.step.publish;
        publish
            .retain(|one| !nodes.contains(&ObjectRef::named(Kind::NodeNetworkConfig, &*one.node)));
        let again = nodes.iter().filter_map(|subject| {
            let stored = snapshot.node_network_configs.get(&subject.key)?;
            Some(Publication {
                node: subject.key.name.to_string(),
                spec: NodeNetworkConfigSpec::clone(&stored.spec),
                lane: Some(Lane::Direct),
                published_at: None,
            })
        });
        publish.extend(again);
        self
    }

    /// The same, where some objects could not be written for a while: the status of the revision says which config is the first of those.
    pub(crate) fn with_lasting(mut self, lasting: BTreeMap<ObjectRef, String>) -> Self {
        let mut configs = lasting
            .iter()
            .filter(|(subject, _)| subject.kind == Kind::NodeNetworkConfig);
        let first = configs.next();
        self.step.status.unwritten_message = first.map(|(_, message)| match configs.count() {
            0 => message.clone(),
            others => format!("{message}; and {others} more"),
        });
        self.lasting = lasting;
        self
    }
}

#[cfg(test)]
mod tests;
