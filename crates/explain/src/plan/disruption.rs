//! What a change does to what already runs: the disruption class of each change.
//!
//! The classes are those of `frr::diff` and `linux::diff`, which the agent applies; `ring1_plan_disruption` compares them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use api::tcaas::{NodeNetworkConfigSpec, node_network_config::Neighbor};
use serde::Serialize;
use serde_json::Value;

use super::{Change, ChangeKind, Group};
use crate::element::Element;

/// How much a change disturbs what already runs, the least first.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::EnumIter,
)]
#[serde(rename_all = "camelCase")]
pub enum Disruption {
    /// Sessions and devices stay; routes may change.
    #[default]
    None,
    /// Something is added; what was there stays.
    Additive,
    /// A BGP session is closed.
    SessionReset,
    /// Something that may carry packets is removed, or is made again.
    Rebuild,
}

impl fmt::Display for Disruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Additive => "additive",
            Self::SessionReset => "session reset",
            Self::Rebuild => "data-plane rebuild",
        })
    }
}

/// What a change does to what already runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effect {
    /// How much.
    pub disruption: Disruption,
    /// To what.
    pub to: String,
    /// Number of BGP sessions that are closed.
    #[serde(skip_serializing_if = "is_zero")]
    pub sessions: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What is disturbed, and on which nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Disturbed {
    /// The nodes.
    pub nodes: BTreeSet<String>,
    /// What is disturbed on one of them or more.
    pub what: BTreeSet<String>,
}

/// What is disturbed by all changes, by class.
pub(super) fn disturbed(groups: &[Group]) -> BTreeMap<Disruption, Disturbed> {
    let mut all: BTreeMap<Disruption, Disturbed> = BTreeMap::new();
    for group in groups {
        for node in &group.nodes {
            for effect in group.on(node).flat_map(|change| &change.effects) {
                let disturbed = all.entry(effect.disruption).or_default();
                if !disturbed.nodes.contains(node) {
                    disturbed.nodes.insert(node.clone());
                }
                if !disturbed.what.contains(&effect.to) {
                    disturbed.what.insert(effect.to.clone());
                }
            }
        }
    }
    all
}

/// The effects of a change between two configs of a node, the most severe first.
pub(super) fn effects(
    change: &Change,
    old: &NodeNetworkConfigSpec,
    new: &NodeNetworkConfigSpec,
) -> Vec<Effect> {
    let mut effects = match (change.kind, &change.was, &change.becomes) {
        (ChangeKind::Added, ..) => vec![of_element(change, added(&change.element))],
        (ChangeKind::Removed, ..) => vec![of_element(change, removed(&change.element))],
        (ChangeKind::Changed, Some(was), Some(becomes)) => match change.element {
            Element::Underlay => of_underlay(was, becomes, old, new),
            _ => vec![of_element(change, changed(&change.element, was, becomes))],
        },
        (ChangeKind::Changed, ..) => vec![of_element(change, Disruption::Rebuild)],
    };
    effects.sort_by(|one, other| other.cmp(one));
    effects
}

fn of_element(change: &Change, disruption: Disruption) -> Effect {
    Effect {
        disruption,
        to: change.text.clone(),
        // The sessions of a removed router are elements of their own.
        sessions: usize::from(
            disruption == Disruption::SessionReset
                && !(change.kind == ChangeKind::Removed
                    && matches!(change.element, Element::HostRouter { .. })),
        ),
    }
}

fn added(element: &Element) -> Disruption {
    match element {
        // Its uplinks are taken from the host.
        Element::Underlay => Disruption::Rebuild,
        Element::Peer { .. }
        | Element::Vrf { .. }
        | Element::Table { .. }
        | Element::RouteTarget { .. }
        | Element::Import { .. }
        | Element::Export { .. }
        | Element::Route { .. }
        | Element::Session { .. }
        | Element::HostSession { .. }
        | Element::Passthrough { .. }
        | Element::VniSegment { .. }
        | Element::VniGateway { .. }
        | Element::Aggregate { .. }
        | Element::Loopback { .. }
        | Element::Tunnel { .. }
        | Element::Steering { .. }
        | Element::Segment { .. }
        | Element::Gateway { .. }
        | Element::HostInterface { .. }
        | Element::HostAddress { .. }
        | Element::HostRoute { .. }
        | Element::HostVlan { .. }
        | Element::HostLoopback { .. }
        | Element::HostRouting
        | Element::HostRouter { .. }
        | Element::HostPeer { .. }
        | Element::HostNetwork { .. }
        | Element::HostVni { .. }
        | Element::HostBfdProfile { .. }
        | Element::HostRaw { .. } => Disruption::Additive,
        Element::DeniedImport { .. } | Element::DeniedExport { .. } | Element::Mirror { .. } => {
            Disruption::None
        }
    }
}

fn removed(element: &Element) -> Disruption {
    match element {
        Element::Underlay
        | Element::Vrf { .. }
        | Element::HostSession { .. }
        | Element::Passthrough { .. }
        | Element::VniSegment { .. }
        | Element::VniGateway { .. }
        | Element::Loopback { .. }
        | Element::Tunnel { .. }
        | Element::Steering { .. }
        | Element::Segment { .. }
        | Element::Gateway { .. }
        | Element::HostInterface { .. }
        | Element::HostAddress { .. }
        | Element::HostRoute { .. }
        | Element::HostVlan { .. }
        | Element::HostLoopback { .. } => Disruption::Rebuild,
        // Sessions of a router of the host go with it.
        Element::Peer { .. }
        | Element::Session { .. }
        | Element::HostPeer { .. }
        | Element::HostRouter { .. } => Disruption::SessionReset,
        // A table goes with its VRF.
        Element::Table { .. }
        | Element::RouteTarget { .. }
        | Element::Import { .. }
        | Element::DeniedImport { .. }
        | Element::Export { .. }
        | Element::DeniedExport { .. }
        | Element::Aggregate { .. }
        | Element::Route { .. }
        | Element::Mirror { .. }
        | Element::HostRouting
        | Element::HostNetwork { .. }
        | Element::HostVni { .. }
        | Element::HostBfdProfile { .. }
        | Element::HostRaw { .. } => Disruption::None,
    }
}

fn changed(element: &Element, was: &Value, becomes: &Value) -> Disruption {
    let differs = |field: &&str| was.get(*field) != becomes.get(*field);
    let resets = |fields: &[&str]| {
        if fields.iter().any(differs) {
            Disruption::SessionReset
        } else {
            Disruption::None
        }
    };
    match element {
        Element::Peer { .. } => resets(&PEER_RESETS),
        Element::HostPeer { .. } => resets(&HOST_PEER_RESETS),
        // FRR has no other way to change them than to remove the router and to add it again, or to close its sessions.
        Element::HostRouter { .. } => resets(&["asn", "routerId"]),
        Element::Session { .. } => {
            let has = |value: &Value, family: &str| value.get(family).is_some();
            let is_family = |family: &&str| has(was, family) != has(becomes, family);
            match resets(&SESSION_RESETS) {
                Disruption::None if FAMILIES.iter().any(is_family) => Disruption::SessionReset,
                other => other,
            }
        }
        Element::HostSession { .. } | Element::Passthrough { .. } => {
            let rebuilds = ["devices", "hostAddresses", "routerAddresses", "mtu"];
            if rebuilds.iter().any(differs) {
                Disruption::Rebuild
            } else {
                resets(&["remoteAs", "localAs"])
            }
        }
        Element::Gateway { .. } | Element::VniGateway { .. }
            if !["vrf", "macAddress"].iter().any(differs) =>
        {
            of_addresses(&was["ipAddresses"], &becomes["ipAddresses"])
        }
        Element::Loopback { .. } => of_addresses(&was["ipAddresses"], &becomes["ipAddresses"]),
        Element::HostLoopback { .. } => of_addresses(&was["addresses"], &becomes["addresses"]),
        // A setting of a bridge port, and of what FRR announces.
        Element::Segment { .. }
            if !names(was, becomes).any(|field| {
                !["neighSuppression", "routeTarget"].contains(&field) && differs(&field)
            }) =>
        {
            Disruption::None
        }
        Element::Underlay
        | Element::Vrf { .. }
        | Element::Table { .. }
        | Element::Tunnel { .. }
        | Element::Steering { .. }
        | Element::Segment { .. }
        | Element::VniSegment { .. }
        | Element::Gateway { .. }
        | Element::VniGateway { .. }
        | Element::HostInterface { .. }
        | Element::HostAddress { .. }
        | Element::HostRoute { .. }
        | Element::HostVlan { .. } => Disruption::Rebuild,
        Element::RouteTarget { .. }
        | Element::Import { .. }
        | Element::DeniedImport { .. }
        | Element::Export { .. }
        | Element::DeniedExport { .. }
        | Element::Aggregate { .. }
        | Element::Route { .. }
        | Element::Mirror { .. }
        | Element::HostRouting
        | Element::HostNetwork { .. }
        | Element::HostVni { .. }
        | Element::HostBfdProfile { .. }
        | Element::HostRaw { .. } => Disruption::None,
    }
}

/// The fields of a fabric peer on which BGP agrees when a session starts.
const PEER_RESETS: [&str; 7] = [
    "remoteAs",
    "port",
    "ebgpMultiHop",
    "passwordSecret",
    "password",
    "fromVtep",
    "addressFamilies",
];
/// The same of a peer of the host.
const HOST_PEER_RESETS: [&str; 11] = [
    "remoteAs",
    "localAs",
    "source",
    "port",
    "ebgpMultiHop",
    "disableConnectedCheck",
    "passwordSecret",
    "password",
    "ipv4",
    "ipv6",
    "evpn",
];
/// The same of a session in a VRF.
const SESSION_RESETS: [&str; 4] = ["remoteAsn", "multihop", "passwordSecret", "updateSource"];
const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

fn names<'a>(one: &'a Value, other: &'a Value) -> impl Iterator<Item = &'a str> {
    let fields = [one, other].into_iter().filter_map(Value::as_object);
    fields.flatten().map(|(name, _)| name.as_str())
}

/// Addresses of a device: one that is removed may be in use.
fn of_addresses(was: &Value, becomes: &Value) -> Disruption {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (was, becomes) = (list(was), list(becomes));
    if was.iter().all(|address| becomes.contains(address)) {
        Disruption::Additive
    } else {
        Disruption::Rebuild
    }
}

/// What follows from other values of the underlay itself, its peers aside.
fn of_underlay(
    was: &Value,
    becomes: &Value,
    old: &NodeNetworkConfigSpec,
    new: &NodeNetworkConfigSpec,
) -> Vec<Effect> {
    let mut effects = BTreeSet::new();
    let mut add = |disruption, to: String, sessions: usize| {
        effects.insert(Effect {
            disruption,
            to,
            sessions,
        })
    };
    let fields: BTreeSet<&str> = names(was, becomes).collect();
    for field in fields {
        if was.get(field) == becomes.get(field) {
            continue;
        }
        match field {
            "asn" => add(
                Disruption::SessionReset,
                format!("{EVERY_SESSION} (AS number)"),
                sessions(old),
            ),
            "routerId" => add(
                Disruption::SessionReset,
                format!("{EVERY_SESSION} (router ID)"),
                sessions(old),
            ),
            "vtep" => {
                for peer in sessions_from_vtep(old, new) {
                    add(Disruption::SessionReset, format!("underlay peer {peer}"), 1);
                }
                add(Disruption::Rebuild, "every VXLAN (VTEP)".to_owned(), 0)
            }
            "routerMac" => add(
                Disruption::Rebuild,
                "the bridge of every VRF (router MAC)".to_owned(),
                0,
            ),
            "nics" => add(Disruption::Rebuild, "the uplinks".to_owned(), 0),
            "namespace" => add(Disruption::Rebuild, "the router's namespace".to_owned(), 0),
            "trunk" => add(Disruption::Rebuild, "the trunk".to_owned(), 0),
            // FRR 10.7 closes every session when its restart time changes.
            "gracefulRestart" if restart_time(was) != restart_time(becomes) => add(
                Disruption::SessionReset,
                format!("{EVERY_SESSION} (graceful restart time)"),
                sessions(old),
            ),
            // The agent and FRR read them without touching a session or a device.
            "source" | "workloadNetworks" | "gracefulRestart" => {
                add(Disruption::None, "underlay".to_owned(), 0)
            }
            other => add(Disruption::Rebuild, format!("underlay ({other})"), 0),
        };
    }
    effects.into_iter().collect()
}

fn restart_time(underlay: &Value) -> Option<&Value> {
    underlay.pointer("/gracefulRestart/restartTime")
}

/// What an effect on all sessions of a node is called.
const EVERY_SESSION: &str = "every BGP session";

/// Number of BGP sessions that a node is configured for.
fn sessions(spec: &NodeNetworkConfigSpec) -> usize {
    let fabric = spec.underlay.iter().map(|one| one.neighbors.len());
    let vrfs = spec
        .vrfs()
        .map(|vrf| vrf.bgp_peers.len() + usize::from(vrf.host_session.is_some()));
    fabric.chain(vrfs).sum::<usize>() + spec.passthroughs.len()
}

/// The BGP sessions that changes on one node close: each once, where a change of all of them is among the changes.
pub(super) fn session_resets<'a>(changes: impl Iterator<Item = &'a Change>) -> usize {
    let effects = changes.flat_map(|change| &change.effects);
    let (mut every, mut single) = (0, 0);
    for effect in effects {
        if effect.to.starts_with(EVERY_SESSION) {
            every = every.max(effect.sessions);
        } else {
            single += effect.sessions;
        }
    }
    every.max(single)
}

/// The peers whose sessions start from the VTEP, before and after.
fn sessions_from_vtep(old: &NodeNetworkConfigSpec, new: &NodeNetworkConfigSpec) -> Vec<String> {
    let peers = |spec: &NodeNetworkConfigSpec| -> BTreeSet<String> {
        let neighbors = spec.underlay.iter().flat_map(|one| &one.neighbors);
        let from_vtep = neighbors.filter(|neighbor| neighbor.from_vtep);
        from_vtep.filter_map(Neighbor::peer).collect()
    };
    peers(old).intersection(&peers(new)).cloned().collect()
}
