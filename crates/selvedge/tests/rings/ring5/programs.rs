//! Definitions of other programs on the API server: there as long as a test needs them.

use std::cell::RefCell;

use lab::parts::{ClusterApi, ClusterApiVersion};
use serde_json::{Value, json};

use super::server::{Server, eventually};
use crate::{data::text, support::progress};

/// A program whose kinds Selvedge reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    MetalLb,
    Coil,
    Calico,
    /// Calico's kinds as it stores them, for clusters without its API server.
    StoredCalico,
    /// The SR-IOV network operator, and the definitions of networks that pods attach to.
    Sriov,
    /// Cluster API, with the newest version of its IPAM kinds.
    Ipam(ClusterApiVersion),
    /// Pools of Cluster API's in-cluster IPAM provider.
    InClusterIpam,
}

impl Program {
    /// Its definitions.
    pub(crate) fn definitions(self) -> anyhow::Result<String> {
        let calico = include_str!("../../../../../tests/platform/calico.yaml");
        Ok(match self {
            Self::MetalLb => include_str!("../../../../../tests/platform/metallb.yaml").to_owned(),
            Self::Coil => include_str!("../../../../../tests/platform/coil.yaml").to_owned(),
            Self::Sriov => include_str!("../../../../../tests/platform/sriov.yaml").to_owned(),
            Self::InClusterIpam => {
                include_str!("../../../../../tests/platform/in-cluster-ipam.yaml").to_owned()
            }
            Self::Calico => calico.to_owned(),
            Self::StoredCalico => calico
                .replace("projectcalico.org", "crd.projectcalico.org")
                .replace("- name: v3", "- name: v1"),
            Self::Ipam(version) => ClusterApi::prepare(version, &progress)?.definitions()?,
        })
    }
}

/// Namespaces that objects of other programs are in.
pub(crate) const NAMESPACES: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: metallb-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: sriov-network-operator}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: tenants}}
";

/// Deletes definitions, whatever came of a test: they belong to no other.
pub(super) struct Programs<'a> {
    server: &'a Server,
    installed: RefCell<Vec<Value>>,
}

impl<'a> Programs<'a> {
    pub(super) fn new(server: &'a Server) -> anyhow::Result<Self> {
        server.plane.kubectl(&["apply", "-f", "-"], NAMESPACES)?;
        Ok(Self {
            server,
            installed: RefCell::default(),
        })
    }

    /// Installs the kinds of a program and waits until they are served.
    pub(super) fn install(&self, program: Program) -> anyhow::Result<()> {
        let definitions = program.definitions()?;
        let parsed: Vec<Value> = serde_saphyr::from_multiple(&definitions)?;
        self.installed.borrow_mut().extend(parsed.iter().cloned());
        let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.server.plane.kubectl(&apply, &definitions)?;
        for definition in &parsed {
            let (group, kind) = (text(definition, "/spec/group"), "/spec/names/kind");
            for version in versions(definition) {
                let api_version = format!("{group}/{version}");
                eventually("the kinds of a program are served", || {
                    Ok(self.server.list(&api_version, text(definition, kind)).ok())
                })?;
            }
        }
        Ok(())
    }

    /// All objects of the installed kinds that carry our label, in the newest version of each.
    pub(super) fn ours(&self) -> anyhow::Result<Vec<Value>> {
        let mut ours = Vec::new();
        for definition in self.installed.borrow().iter() {
            let newest = versions(definition).last().unwrap_or_default();
            let api_version = format!("{}/{newest}", text(definition, "/spec/group"));
            let kind = text(definition, "/spec/names/kind");
            let objects = self.server.list(&api_version, kind)?.into_iter();
            ours.extend(objects.filter(|object| {
                object["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "selvedge"
            }));
        }
        Ok(ours)
    }
}

/// The versions that a definition serves, in its order.
fn versions(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = definition["spec"]["versions"].as_array().into_iter();
    let served = versions.flatten().filter(|one| one["served"] == true);
    served.map(|one| text(one, "/name"))
}

impl Drop for Programs<'_> {
    fn drop(&mut self) {
        for definition in self.installed.borrow().iter() {
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": definition["metadata"]["name"]},
            });
            // One that was never installed need not be deleted.
            let _deleted = self.server.delete(&definition);
            let gone = || Ok(self.server.get(&definition)?.is_none().then_some(()));
            let gone = eventually("the definition is gone", gone);
            if !std::thread::panicking() {
                gone.expect("an API server that deletes");
            }
        }
    }
}
