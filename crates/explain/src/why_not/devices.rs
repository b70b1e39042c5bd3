//! Devices that a node lacks, and tunnels that wait for an address.

use std::collections::BTreeSet;

use api::tcaas::{MirrorSelectorSpec, MirrorTargetSpec, NodeNetworkStatusStatus};
use compiler::{
    Problem,
    lower::LowLevel,
    problem,
    snapshot::{Key, Kind, ObjectRef},
};

use super::{Obstacle, Walk};
use crate::{element::Element, query::Query};

impl Walk<'_> {
    /// What the node last reported of its devices.
    fn report(&self) -> Option<&NodeNetworkStatusStatus> {
        let reports = &self.trace.snapshot.node_network_statuses;
        reports.get(&Key::named(self.node))?.status.as_deref()
    }

    /// The devices of the node that VLANs among these elements are on, and which the node does not report.
    pub(super) fn missing_devices(&self, found: &[Element]) -> Vec<Obstacle> {
        let Some(report) = self.report() else {
            return Vec::new();
        };
        let shared = &self.config.shared;
        let mut obstacles = Vec::new();
        for element in found {
            let (Element::HostVlan { name: device, .. }
            | Element::HostAddress { device, .. }
            | Element::HostRoute { device, .. }) = element
            else {
                continue;
            };
            let Some(vlan) = shared.host_vlans.get(device) else {
                continue;
            };
            let interface = vlan.parent.to_string();
            if report.interfaces.iter().any(|one| one.name == interface) {
                continue;
            }
            let name = shared.host_devices.get(device);
            let mut objects = self.trace.compilation.objects.iter();
            let author = objects.find(|one| {
                one.kind() == Kind::Layer2NetworkConfiguration
                    && Some(one.name()) == name.map(String::as_str)
            });
            let Some(author) = author else { continue };
            // The problem of the compile names the first of several nodes.
            let kind = problem::Kind::InterfaceNotFound {
                interface,
                node: self.node.to_owned(),
                others: 0,
            };
            let object = author.source().clone();
            let problem = Problem::new(object.clone(), "spec.interfaceRef", kind);
            obstacles.push(Obstacle::Problem { object, problem });
        }
        obstacles
    }

    /// A device that the node reports and no object names.
    pub(super) fn unused_device(&self, query: &Query) -> Option<Obstacle> {
        let (Query::Interface(name) | Query::Name(name)) = query else {
            return None;
        };
        let mut devices = self.report()?.interfaces.iter();
        devices.find(|device| device.name == *name)?;
        let report = ObjectRef::named(Kind::NodeNetworkStatus, self.node);
        let why = format!("reports the interface {name}, and no object refers to it");
        let remedy = format!(
            "name it in spec.interfaceRef of a Layer2Attachment, or in spec.nics of an Underlay: {name}"
        );
        Some(Obstacle::idle(&report, &why, Some(&remedy)))
    }

    pub(super) fn claim_open(&self, object: ObjectRef, claim: &str) -> Obstacle {
        let mut claims = self.config.mirrors.claims.iter();
        let claim_of_node = claims.find(|one| one.key.to_string() == claim);
        let pool = claim_of_node.map(|one| format!("{} {}", one.pool.kind, one.pool.name));
        Obstacle::ClaimOpen {
            object,
            claim: claim.to_owned(),
            pool: pool.unwrap_or_default(),
        }
    }

    /// The claim that one of these mirrors, or a mirror into one of these tunnels, waits for on the node.
    pub(super) fn open_claim(
        &self,
        object: &ObjectRef,
        mirrors: &[(&String, &LowLevel<MirrorSelectorSpec>)],
        targets: &[(&String, &LowLevel<MirrorTargetSpec>)],
    ) -> Option<Obstacle> {
        let objects = &self.trace.compilation.objects;
        let into_targets = objects.of::<MirrorSelectorSpec>().filter(|(_, selector)| {
            let target = &selector.spec.mirror_target.name;
            targets.iter().any(|(name, _)| *name == target)
        });
        let into_targets = into_targets.map(|(name, _)| name);
        let mut selectors = mirrors.iter().map(|(name, _)| *name).chain(into_targets);
        let missing = &self.config.mirrors.missing;
        let claim = selectors.find_map(|selector| missing.get(selector)?.as_ref())?;
        Some(self.claim_open(object.clone(), claim))
    }

    /// Why a tunnel that waits for nothing is not on the node: it is where something is copied into it.
    pub(super) fn unused_tunnel(
        &self,
        object: &ObjectRef,
        targets: &[(&String, &LowLevel<MirrorTargetSpec>)],
    ) -> Option<Obstacle> {
        let objects = &self.trace.compilation.objects;
        for (name, _) in targets {
            let mut tunnels = self.config.mirrors.tunnels.values();
            if tunnels.any(|(target, _)| target == *name) {
                continue;
            }
            let into: Vec<_> = objects
                .of::<MirrorSelectorSpec>()
                .filter(|(_, one)| one.spec.mirror_target.name == **name)
                .map(|(name, one)| (name, &**one))
                .collect();
            if into.is_empty() {
                let why = "has no mirror that copies into it: a tunnel is where something is copied into it";
                let remedy = if object.kind == Kind::Collector {
                    format!("add a TrafficMirror with spec.collector: {}", object.key)
                } else {
                    format!("add a MirrorSelector with spec.mirrorTarget.name: {name}")
                };
                return Some(Obstacle::idle(object, why, Some(&remedy)));
            }
            return self.no_source(object, &into);
        }
        None
    }

    /// A tunnel for whose mirrors the node has no source.
    fn no_source(
        &self,
        object: &ObjectRef,
        into: &[(&String, &LowLevel<MirrorSelectorSpec>)],
    ) -> Option<Obstacle> {
        let behind = self.source_elsewhere(into)?;
        let mirrors: BTreeSet<String> =
            into.iter().map(|(_, one)| one.source.to_string()).collect();
        let mirrors: Vec<String> = mirrors.into_iter().collect();
        let why = format!(
            "has its tunnel only where something is copied into it, and the source of {} is not on this node: {behind}",
            mirrors.join(", ")
        );
        Some(Obstacle::idle(object, &why, behind.remedy().as_deref()))
    }
}
