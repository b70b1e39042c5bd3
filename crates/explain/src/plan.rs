//! What changes between two compilations: element by element, with the objects that cause it and those that it affects.

mod alike;
mod disruption;
mod platform;
mod withdrawn;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{meta::Labels, selvedge::Rollout, tcaas::NodeNetworkConfigSpec, value::Mtu};
use compiler::{
    NodeConfig,
    mirror::NodeMirrors,
    node::{self, Fabric, Shared},
    rollout::{
        Removal, guard,
        waves::{self, Member},
    },
    snapshot::{Key, Kind, ObjectRef, Snapshot},
};
use serde::Serialize;
use serde_json::{Value, json};

pub use self::{
    disruption::{Disruption, Disturbed, Effect},
    platform::{PlatformChanges, PlatformName},
};
use crate::{
    element::{Element, Elements, elements, filtered},
    provenance::{Field, Trace},
};

/// What changes between two compilations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// Groups of nodes on which the same changes, each with its changes.
    pub groups: Vec<Group>,
    /// How much changes in total, over all nodes.
    pub total: Total,
    /// What is disturbed of what already runs, by class.
    pub disruptions: BTreeMap<Disruption, Disturbed>,
    /// The objects that the user has changed.
    pub edits: Vec<Edit>,
    /// All objects that cause a change.
    pub behind: BTreeSet<ObjectRef>,
    /// What it affects.
    pub radius: Radius,
    /// The nodes whose forwarding changes, in the order of the rollout: each wave waits for the one before it.
    pub waves: Vec<Vec<String>>,
    /// The nodes whose forwarding does not change, such as those on which only mirrors do: they are in no wave, and are written at once.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub at_once: BTreeSet<String>,
    /// The nodes whose config must be approved before it is published, each with what the config would take away: they are in no wave.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub needs_approval: BTreeMap<String, Removal>,
    /// What the settings of the rollout do to these waves, other than to order them: that they wait, and for what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What changes beside nodes: objects of other programs.
    #[serde(skip_serializing_if = "PlatformChanges::is_empty")]
    pub platform: PlatformChanges,
}

/// How much changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Total {
    /// Number of added elements.
    pub added: usize,
    /// Number of changed elements.
    pub changed: usize,
    /// Number of removed elements.
    pub removed: usize,
    /// Number of BGP sessions that are closed.
    #[serde(skip_serializing_if = "disruption::is_zero")]
    pub session_resets: usize,
    /// Number of changes that take routes away from a VRF that stays.
    #[serde(skip_serializing_if = "disruption::is_zero")]
    pub withdrawals: usize,
    /// Number of changes that rebuild a part of the data plane.
    #[serde(skip_serializing_if = "disruption::is_zero")]
    pub rebuilds: usize,
}

/// The blast radius of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Radius {
    /// Number of nodes that change.
    pub nodes: usize,
    /// Number of all nodes after the change.
    pub of_nodes: usize,
    /// The intents and hand-written low-level objects that an element changes for on some node.
    pub tenants: BTreeSet<ObjectRef>,
    /// The namespaces of all objects that cause it.
    pub namespaces: BTreeSet<String>,
}

/// Nodes on which the same changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// Their names.
    pub nodes: Vec<String>,
    /// What changes on each of them.
    pub changes: Vec<Change>,
    /// What each of them has for itself, such as its addresses: as many changes on one as on the other.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, Vec<Change>>,
}

/// One change of one element.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What happens to it.
    #[serde(rename = "change")]
    pub kind: ChangeKind,
    /// The element.
    pub element: Element,
    /// The element, in words.
    pub text: String,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<Value>,
    /// What it becomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub becomes: Option<Value>,
    /// What it does to what already runs, the most severe first.
    pub effects: Vec<Effect>,
    /// Whether it takes routes away from a VRF that stays, although sessions and devices stay too.
    #[serde(skip_serializing_if = "is_false")]
    pub withdraws: bool,
    /// The objects that define the element, before or after.
    pub behind: Vec<Cause>,
}

/// An object that causes a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The object.
    pub by: ObjectRef,
    /// The fields, of it and of what it refers to, that define the element.
    pub fields: BTreeSet<Field>,
}

/// A change of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Edit {
    /// The object.
    pub object: ObjectRef,
    /// Whether it is new, changed or gone.
    pub change: ChangeKind,
    /// The fields that differ, of a changed object: old and new value by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, (Value, Value)>,
}

/// The objects that differ between two sets of manifests, and in which fields.
pub fn edits(before: &Snapshot, after: &Snapshot) -> Vec<Edit> {
    let edited = before.edited(after).into_iter();
    let edit = |object: ObjectRef| {
        let written = |snapshot: &Snapshot| {
            let document = snapshot.document(&object)?;
            let labels = document.pointer("/metadata/labels");
            Some(json!({"metadata": {"labels": labels}, "spec": document.get("spec")}))
        };
        let (was, becomes) = (written(before), written(after));
        let mut fields = BTreeMap::new();
        let change = match (&was, &becomes) {
            (Some(was), Some(becomes)) => {
                different("", was, becomes, &mut fields);
                ChangeKind::Changed
            }
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
        };
        Edit {
            object,
            change,
            fields,
        }
    };
    edited.map(edit).collect()
}

/// The smallest fields in which two values differ.
fn different(
    path: &str,
    was: &Value,
    becomes: &Value,
    fields: &mut BTreeMap<String, (Value, Value)>,
) {
    if was == becomes {
        return;
    }
    if let (Value::Array(one), Value::Array(other)) = (was, becomes)
        && is_in_place(one, other)
    {
        for (place, (was, becomes)) in one.iter().zip(other).enumerate() {
            different(&format!("{path}[{place}]"), was, becomes, fields);
        }
        return;
    }
    let (Value::Object(one), Value::Object(other)) = (was, becomes) else {
        fields.insert(path.to_owned(), (was.clone(), becomes.clone()));
        return;
    };
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        let of =
            |fields: &serde_json::Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        different(&path, &of(one), &of(other), fields);
    }
}

/// Whether two lists of objects differ inside their items, and the items have kept their places.
fn is_in_place(one: &[Value], other: &[Value]) -> bool {
    if one.len() != other.len() || !one.iter().chain(other).all(Value::is_object) {
        return false;
    }
    let pairs = one.iter().zip(other);
    let changed = pairs.filter(|(was, becomes)| was != becomes);
    let gone = one.iter().filter(|item| !other.contains(item));
    changed.count() == gone.count()
}

/// What happens to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The element is added.
    Added,
    /// The element stays with another value.
    Changed,
    /// The element is removed.
    Removed,
}

impl Plan {
    /// Whether nothing changes on any node.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl Group {
    /// All changes on one of its nodes.
    pub fn on<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a Change> {
        self.changes
            .iter()
            .chain(self.own.get(node).into_iter().flatten())
    }
}

impl Total {
    fn count(&mut self, change: &Change) {
        match change.kind {
            ChangeKind::Added => self.added += 1,
            ChangeKind::Changed => self.changed += 1,
            ChangeKind::Removed => self.removed += 1,
        }
        let mut effects = change.effects.iter();
        let is_rebuilt = effects.any(|effect| effect.disruption == Disruption::Rebuild);
        self.rebuilds += usize::from(is_rebuilt);
        self.withdrawals += usize::from(change.withdraws);
    }
}

/// Compares two snapshots and their compilations.
pub fn plan(before: &Trace<'_>, after: &Trace<'_>) -> Plan {
    let (old, new) = (&before.compilation.nodes, &after.compilation.nodes);
    let mut sides = [Side::new(before), Side::new(after)];
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    let mut known: BTreeMap<Alike, Option<String>> = BTreeMap::new();
    for node in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        if old.get(node) == new.get(node) {
            continue;
        }
        let passwords = changed_passwords(&sides, node);
        let like = if passwords.is_empty() {
            Alike::of(old.get(node), new.get(node))
        } else {
            None
        };
        if let Some(key) = like.as_ref().and_then(|like| known.get(like)) {
            if let Some(group) = key.as_ref().and_then(|key| groups.get_mut(key)) {
                group.nodes.push(node.clone());
            }
            continue;
        }
        let changes = changes(&mut sides, node, &passwords);
        let is_shared = |change: &Change| {
            !change.is_of_one_node() && !sides[1].is_of_node(node, &change.element)
        };
        let like = like.filter(|_| changes.iter().all(is_shared));
        if changes.is_empty() {
            known.extend(like.map(|like| (like, None)));
            continue;
        }
        let alike: Vec<Change> = changes.iter().map(Change::of_any_node).collect();
        let key = serde_json::to_string(&alike)
            .unwrap_or_else(|error| unreachable!("a change is JSON: {error}"));
        known.extend(like.map(|like| (like, Some(key.clone()))));
        let is_own = |change: &Change| change.is_of_one_node();
        let (own, shared): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_own);
        let group = groups.entry(key).or_insert_with(|| Group {
            nodes: Vec::new(),
            changes: shared,
            own: BTreeMap::new(),
        });
        group.nodes.push(node.clone());
        if !own.is_empty() {
            group.own.insert(node.clone(), own);
        }
    }
    let mut groups = alike::merged(groups.into_values());
    groups.sort_by(|one, other| one.nodes.cmp(&other.nodes));
    let mut plan = summarize(groups);
    plan.radius.of_nodes = new.len();
    let removals = &after.compilation.removals;
    let touched = plan.groups.iter().flat_map(|group| &group.nodes).cloned();
    let touched = touched.filter(|node| !removals.contains_key(node));
    let (at_once, gated): (_, BTreeSet<String>) =
        touched.partition(|node| has_same_forwarding(old.get(node), new.get(node)));
    plan.at_once = at_once;
    let settings = after.snapshot.settings();
    let none = Labels::new();
    let member = |name: String| {
        let node = after.snapshot.nodes.get(&Key::named(&name));
        let labels = node.map_or(&none, |node| &node.meta.labels);
        (name, Member::queued(labels, &settings.rollout))
    };
    let members = gated.into_iter().map(member).collect();
    plan.waves = waves::planned(&settings.rollout, &members, new.len());
    plan.needs_approval.clone_from(removals);
    plan.notes = notes(&settings.rollout, before, after, &members);
    plan.platform = PlatformChanges::between(before.compilation, after.compilation);
    plan
}

/// What decides on the changes of a node whose own part stays: nodes that are equal in it change alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alike([Shape; 2]);

/// Where a config comes from, besides addresses of the node: values in memory that nodes share, and numbers.
type Shape = (*const Shared, Option<*const Fabric>, [Option<Mtu>; 3]);

impl Alike {
    /// Nothing where the node's own part changes, or has a say in what else is on the node.
    fn of(old: Option<&Arc<NodeConfig>>, new: Option<&Arc<NodeConfig>>) -> Option<Self> {
        let (old, new) = (old?, new?);
        let is_own_as_before = old.underlay == new.underlay
            && old.addresses == new.addresses
            && old.sessions == new.sessions
            && old.host_router == new.host_router
            && [old, new]
                .iter()
                .all(|config| config.mirrors == NodeMirrors::default());
        let shape = |config: &NodeConfig| {
            let underlay = config.underlay.as_ref();
            let fabric = underlay.map(|underlay| Arc::as_ptr(&underlay.fabric));
            let uplink = config.uplink_mtu;
            let uplink = [
                uplink.map(|uplink| uplink.overlay),
                uplink.map(|uplink| uplink.plain),
            ];
            let [overlay, plain] = uplink;
            (
                Arc::as_ptr(&config.shared),
                fabric,
                [config.vrf_mtu, overlay, plain],
            )
        };
        is_own_as_before.then(|| Self([old, new].map(|config| shape(config))))
    }
}

/// What the settings of the rollout do to the nodes that wait for it.
fn notes(
    settings: &Rollout,
    before: &Trace<'_>,
    after: &Trace<'_>,
    members: &BTreeMap<String, Member>,
) -> Vec<String> {
    if members.is_empty() {
        return Vec::new();
    }
    let mut notes = Vec::new();
    if settings.pause {
        let note = "paused by Settings.spec.rollout.pause: no node is written before it is resumed";
        notes.push(note.to_owned());
    }
    let (last, next) = (before.compilation, after.compilation);
    let revision = last.revision.spec(&last.objects);
    let max_removal = settings.max_removal;
    let too_much = guard::too_much(max_removal, &revision, next)
        .or_else(|| guard::too_much_between(max_removal, last, next));
    if let Some(too_much) = too_much {
        notes.push(format!("{too_much}: no node is written before approval"));
    }
    let has_canary = members.values().any(|member| member.can_be_canary);
    if !has_canary {
        let note = "Settings.spec.rollout.canary.nodeSelector matches no node that changes: the rollout starts with any of them";
        notes.push(note.to_owned());
    }
    notes
}

/// Whether two configs of a node differ in nothing that it forwards by.
fn has_same_forwarding(old: Option<&Arc<NodeConfig>>, new: Option<&Arc<NodeConfig>>) -> bool {
    let without_mirrors = |config: &Arc<NodeConfig>| {
        let config = NodeConfig {
            mirrors: NodeMirrors::default(),
            ..NodeConfig::clone(config)
        };
        config.content()
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            node::forwards_the_same(&without_mirrors(old), &without_mirrors(new))
        }
        (None, _) | (_, None) => false,
    }
}

/// A plan of these groups, with what follows from them.
fn summarize(groups: Vec<Group>) -> Plan {
    let mut plan = Plan::default();
    for group in &groups {
        plan.radius.nodes += group.nodes.len();
        for node in &group.nodes {
            for change in group.on(node) {
                plan.total.count(change);
            }
            plan.total.session_resets += disruption::session_resets(group.on(node));
        }
        let own = group.own.values().flatten();
        for behind in group.changes.iter().chain(own).flat_map(|one| &one.behind) {
            let objects = behind.fields.iter().map(|field| &field.object);
            let namespaces =
                objects.filter_map(|object| object.key.namespace.as_deref().map(str::to_owned));
            plan.radius.namespaces.extend(namespaces);
            if !matches!(behind.by.kind, Kind::Underlay | Kind::Settings) {
                plan.radius.tenants.insert(behind.by.clone());
            }
            plan.behind.insert(behind.by.clone());
        }
    }
    plan.disruptions = disruption::disturbed(&groups);
    plan.groups = groups;
    plan
}

impl Change {
    /// Whether it is about something that no other node has.
    fn is_of_one_node(&self) -> bool {
        matches!(
            self.element,
            Element::HostAddress { .. }
                | Element::Underlay
                | Element::HostSession { .. }
                | Element::Passthrough { .. }
        )
    }

    /// The change without what no other node has: what nodes of one group have in common.
    fn of_any_node(&self) -> Self {
        let mut change = self.clone();
        if self.is_of_one_node() {
            (change.was, change.becomes) = (None, None);
            change.text.clear();
            change.effects.clear();
        }
        change.element = change.element.of_any_node();
        change
    }
}

/// One of the two worlds. Nodes that share their config share what is behind it.
struct Side<'a> {
    trace: &'a Trace<'a>,
    known: BTreeMap<(*const (), Element), Vec<Cause>>,
}

impl<'a> Side<'a> {
    fn new(trace: &'a Trace<'a>) -> Self {
        let known = BTreeMap::new();
        Self { trace, known }
    }

    fn config(&self, node: &str) -> Option<&'a NodeConfig> {
        let config = self.trace.compilation.nodes.get(node);
        config.map(|config| &**config)
    }

    fn spec(&self, node: &str) -> NodeNetworkConfigSpec {
        let config = self.config(node).map(NodeConfig::content);
        config.unwrap_or_default()
    }

    /// Whether what is behind an element may be another on each node.
    fn is_of_node(&self, node: &str, element: &Element) -> bool {
        match element {
            Element::Underlay
            | Element::Peer { .. }
            | Element::Loopback { .. }
            | Element::Tunnel { .. }
            | Element::Mirror { .. }
            | Element::HostRouting
            | Element::HostRouter { .. }
            | Element::HostPeer { .. }
            | Element::HostNetwork { .. }
            | Element::HostVni { .. }
            | Element::HostBfdProfile { .. }
            | Element::HostRaw { .. } => true,
            Element::Vrf { vrf }
            | Element::Table { vrf }
            | Element::RouteTarget { vrf, .. }
            | Element::Export { vrf, .. }
            | Element::DeniedExport { vrf, .. } => self.config(node).is_none_or(|config| {
                !config.shared.fabric_vrfs.contains_key(vrf) || !config.mirrors.loopbacks.is_empty()
            }),
            _ => false,
        }
    }

    fn behind(&mut self, node: &str, element: &Element) -> Vec<Cause> {
        let Some(config) = self.config(node) else {
            return Vec::new();
        };
        let trace = self.trace;
        let find = || {
            let claims = trace.claims(node, element).into_iter();
            let of = |claim: crate::provenance::Claim| Cause {
                fields: claim.fields().into_iter().cloned().collect(),
                by: claim.by,
            };
            claims.map(of).collect::<Vec<Cause>>()
        };
        if self.is_of_node(node, element) {
            return find();
        }
        let shared = Arc::as_ptr(&config.shared).cast::<()>();
        let known = self.known.entry((shared, element.of_any_node()));
        known.or_insert_with(find).clone()
    }
}

fn changes(sides: &mut [Side<'_>; 2], node: &str, passwords: &BTreeSet<String>) -> Vec<Change> {
    let [before, after] = &*sides;
    let (old, new) = (before.spec(node), after.spec(node));
    // Most of a node is as before, and its elements are the same on both sides. A config has no password.
    let [from, to] = if passwords.is_empty() {
        without_common(&old, &new)
    } else {
        [old.clone(), new.clone()]
    };
    let (mut was, mut becomes): (Elements, Elements) = (elements(&from), elements(&to));
    for (elements, shown) in [(&mut was, "(hidden)"), (&mut becomes, "(hidden, changed)")] {
        for value in elements.values_mut() {
            let secret = value.pointer("/passwordSecret/name");
            let secret = secret.and_then(Value::as_str);
            if secret.is_some_and(|secret| passwords.contains(secret))
                && let Value::Object(fields) = value
            {
                fields.insert("password".to_owned(), shown.into());
            }
        }
    }
    let all: BTreeSet<Element> = was.keys().chain(becomes.keys()).cloned().collect();
    let mut changes = Vec::new();
    let mut change = |kind, element: Element, was, becomes| {
        let behind = sides.iter_mut().map(|side| side.behind(node, &element));
        let mut all: Vec<Cause> = Vec::new();
        for cause in behind.flatten() {
            alike::add(&mut all, cause);
        }
        let mut change = Change {
            kind,
            text: element.to_string(),
            element,
            was,
            becomes,
            effects: Vec::new(),
            withdraws: false,
            behind: all,
        };
        change.effects = disruption::effects(&change, &old, &new);
        changes.push(change);
    };
    for element in all {
        let (was, becomes) = (was.remove(&element), becomes.remove(&element));
        let kind = match (&was, &becomes) {
            (Some(one), Some(other)) if one == other => continue,
            (Some(_), Some(_)) => ChangeKind::Changed,
            (None, _) => ChangeKind::Added,
            (Some(_), None) => ChangeKind::Removed,
        };
        change(kind, element, was, becomes);
    }
    for (element, was, becomes) in reordered(&from, &to) {
        change(
            ChangeKind::Changed,
            element,
            Some(was.into()),
            Some(becomes.into()),
        );
    }
    withdrawn::mark(&mut changes, &from, &to);
    changes
}

/// Two configs without the parts that are the same in both.
fn without_common(
    old: &NodeNetworkConfigSpec,
    new: &NodeNetworkConfigSpec,
) -> [NodeNetworkConfigSpec; 2] {
    [(old, new), (new, old)].map(|(own, other)| {
        let NodeNetworkConfigSpec {
            contract_version,
            revision,
            underlay,
            layer2s,
            cluster_vrf,
            fabric_vrfs,
            local_vrfs,
            host_vlans,
            host_loopbacks,
            passthroughs,
            host_router,
            health,
        } = own;
        NodeNetworkConfigSpec {
            contract_version: *contract_version,
            revision: revision.clone(),
            underlay: unlike(underlay.as_ref(), other.underlay.as_ref()),
            layer2s: without(layer2s, &other.layer2s),
            cluster_vrf: unlike(cluster_vrf.as_ref(), other.cluster_vrf.as_ref()),
            fabric_vrfs: without(fabric_vrfs, &other.fabric_vrfs),
            local_vrfs: without(local_vrfs, &other.local_vrfs),
            host_vlans: without(host_vlans, &other.host_vlans),
            host_loopbacks: without(host_loopbacks, &other.host_loopbacks),
            passthroughs: without(passthroughs, &other.passthroughs),
            host_router: unlike(host_router.as_ref(), other.host_router.as_ref()),
            health: health.clone(),
        }
    })
}

fn unlike<T: Clone + PartialEq>(own: Option<&T>, other: Option<&T>) -> Option<T> {
    own.filter(|_| own != other).cloned()
}

fn without<K: Clone + Ord, V: Clone + PartialEq>(
    own: &BTreeMap<K, V>,
    other: &BTreeMap<K, V>,
) -> BTreeMap<K, V> {
    let unlike = own
        .iter()
        .filter(|(name, value)| other.get(name) != Some(value));
    unlike
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// The Secrets in which a node finds another password than before. It stands in clear text in an object, and no plan shows it.
fn changed_passwords([before, after]: &[Side<'_>; 2], node: &str) -> BTreeSet<String> {
    let moved = |side: &Side<'_>| {
        let config = side.config(node).into_iter();
        let moved = config.flat_map(|config| config.moved_passwords(side.trace.snapshot));
        let known = moved.filter_map(|one| Some((one.secret.name?, one.password?)));
        known.collect::<BTreeMap<String, _>>()
    };
    let (was, becomes) = (moved(before), moved(after));
    let changed = was.into_iter().filter(|(secret, password)| {
        let now = becomes.get(secret);
        now.is_some_and(|now| now != password)
    });
    changed.map(|(secret, _)| secret).collect()
}

/// Rules of filters that are the same as before, but at another place among those that stay.
fn reordered(
    old: &NodeNetworkConfigSpec,
    new: &NodeNetworkConfigSpec,
) -> Vec<(Element, usize, usize)> {
    let rules = |spec: &NodeNetworkConfigSpec| -> Vec<(Element, Value)> {
        spec.vrfs().flat_map(filtered).collect()
    };
    let (old, new) = (rules(old), rules(new));
    let was: BTreeSet<String> = old.iter().map(text).collect();
    let becomes: BTreeSet<String> = new.iter().map(text).collect();
    let staying = |rules: &[(Element, Value)], others: &BTreeSet<String>| {
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let mut staying: Vec<(Element, usize)> = Vec::new();
        for rule in rules.iter().filter(|rule| others.contains(&text(rule))) {
            let place = places.entry(list(&rule.0)).or_default();
            staying.push((rule.0.clone(), *place));
            *place += 1;
        }
        staying
    };
    // Of two rules for the same routes, the first decides.
    let first = |rules: Vec<(Element, usize)>| {
        let mut places = BTreeMap::new();
        for (element, place) in rules {
            places.entry(element).or_insert(place);
        }
        places
    };
    let before = first(staying(&old, &becomes));
    let after = first(staying(&new, &was)).into_iter();
    let moved = after.filter_map(|(element, becomes)| {
        let was = *before.get(&element)?;
        (was != becomes).then_some((element, was, becomes))
    });
    moved.collect()
}

fn text((element, action): &(Element, Value)) -> String {
    format!("{element} {action}")
}

/// The list that a rule stands in.
fn list(element: &Element) -> String {
    match element {
        Element::Import { vrf, from, .. } | Element::DeniedImport { vrf, from, .. } => {
            format!("{vrf} {from}")
        }
        Element::Export { vrf, .. } | Element::DeniedExport { vrf, .. } => vrf.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
