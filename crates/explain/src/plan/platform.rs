//! What changes of the objects that are written for other programs of the cluster.

use std::fmt;

use compiler::{Compilation, platform::PlatformObject};
use serde::Serialize;

/// Objects of other programs that a change creates, changes and deletes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlatformChanges {
    /// Those that are created.
    pub created: Vec<PlatformName>,
    /// Those that stay with other content.
    pub changed: Vec<PlatformName>,
    /// Those that are deleted.
    pub deleted: Vec<PlatformName>,
}

/// Names an object of another program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlatformName {
    /// Group and version.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace, where the kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl fmt::Display for PlatformName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl PlatformChanges {
    /// What is different after a change. What was made for an object that something is wrong with stays.
    pub(super) fn between(before: &Compilation, after: &Compilation) -> Self {
        let mut changes = Self::default();
        for (identity, object) in &after.platform {
            match before.platform.get(identity) {
                None => changes.created.push(name(object)),
                Some(was) if was != object => changes.changed.push(name(object)),
                Some(_) => {}
            }
        }
        let gone = before.platform.iter();
        let gone = gone.filter(|(identity, object)| {
            let is_kept = after.platform_keeps.contains(&object.owner);
            !after.platform.contains_key(*identity) && !is_kept
        });
        changes.deleted = gone.map(|(_, object)| name(object)).collect();
        changes
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        let Self {
            created,
            changed,
            deleted,
        } = self;
        created.is_empty() && changed.is_empty() && deleted.is_empty()
    }
}

fn name(object: &PlatformObject) -> PlatformName {
    PlatformName {
        api_version: object.api_version,
        kind: object.kind,
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}
