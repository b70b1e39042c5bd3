//! Groups of nodes that have the same but for their addresses: which objects are for them, and what comes of those.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    selvedge::{Health, RouteTables, SettingsSpec},
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, VrfRouteConfigurationSpec,
        node_network_config::{HostVlan, Layer2},
    },
    value::IfName,
};

use super::{
    Shared,
    claims::{Claims, ClaimsFor, Wanted},
    cluster, layer2,
    overlay::{self, Overlay},
    peers::{self, WrongWithPeering},
    selection::{self, Member, NodesBySignature, Signature},
    steering::{self, Steering},
    underlay,
    vrfs::{self, Numbers, NumbersOfAll},
};
use crate::{
    allocate, fingerprint,
    lower::{LowLevel, LowLevelObject, intent, low_level, merge, networks},
    memo::{Index, Query},
    problem::{self, Problem},
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

/// A named low-level object that is for the nodes at hand.
pub(super) type Named<'a, S> = (&'a str, &'a Arc<LowLevel<S>>);

/// Nodes that get the same config but for their addresses.
pub(super) struct Group<'a> {
    /// The first of the nodes, by name; absent where there are none at all.
    pub(super) node: Option<&'a str>,
    /// Whether the group's Underlay gives its nodes a VTEP.
    pub(super) has_overlay: bool,
    pub(super) layer2: Vec<Named<'a, Layer2NetworkConfigurationSpec>>,
    pub(super) vrf: Vec<Named<'a, VrfRouteConfigurationSpec>>,
    pub(super) bgp: Vec<Named<'a, BgpPeeringSpec>>,
    pub(super) overlays: Vec<&'a Arc<Overlay>>,
    /// Segments that want what another runs, by the name of their object.
    pub(super) challengers: &'a BTreeSet<String>,
}

impl Group<'_> {
    /// What of it is for nodes that take part in no overlay: VLANs on devices of their own, and sessions in the fabric's own table.
    pub(super) fn without_overlay(&self) -> Self {
        let layer2 = self.layer2.iter().copied();
        let on_devices = layer2.filter(|(_, object)| object.spec.interface_ref.is_some());
        let overlays = self.overlays.iter().copied();
        Self {
            node: self.node,
            has_overlay: self.has_overlay,
            layer2: on_devices.collect(),
            vrf: Vec::new(),
            bgp: Vec::new(),
            overlays: overlays.filter(|one| !one.needs_vtep()).collect(),
            challengers: self.challengers,
        }
    }
}

/// The objects for a group of nodes: the one that uses a resource before others that need it, then the older first; routing in its merge
/// order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members {
    layer2: Vec<Arc<LowLevel<Layer2NetworkConfigurationSpec>>>,
    vrf: Vec<Arc<LowLevel<VrfRouteConfigurationSpec>>>,
    bgp: Vec<Arc<LowLevel<BgpPeeringSpec>>>,
    overlays: Vec<Arc<Overlay>>,
    /// Segments that want what another runs, by the name of their object.
    challengers: BTreeSet<String>,
}

impl Members {
    /// The overlay objects.
    pub(crate) fn overlays(&self) -> &[Arc<Overlay>] {
        &self.overlays
    }

    /// Whether an overlay object is among them.
    pub(super) fn has_overlay(&self, subject: &ObjectRef) -> bool {
        self.overlays.iter().any(|one| one.subject == *subject)
    }

    /// Whether routing of a VRF is among them.
    pub(super) fn has_vrf(&self, vrf: &str) -> bool {
        self.vrf.iter().any(|one| one.spec.vrf.as_str() == vrf)
    }

    /// A segment, by its name.
    pub(super) fn segment(&self, name: &str) -> Option<&LowLevel<Layer2NetworkConfigurationSpec>> {
        let segment = self.layer2.iter().find(|one| one.name == name);
        segment.map(|one| &**one)
    }

    fn of(view: &View<'_>, objects: impl Iterator<Item = LowLevelObject>, nodes: &[Key]) -> Self {
        let mut members = Self::default();
        for object in objects {
            match object {
                LowLevelObject::Layer2(object) => members.layer2.push(object),
                LowLevelObject::Vrf(object) => members.vrf.push(object),
                LowLevelObject::Bgp(object) => members.bgp.push(object),
                // They are wherever their source is.
                LowLevelObject::MirrorTarget(_) | LowLevelObject::MirrorSelector(_) => {}
            }
        }
        // The object that uses a resource is served before others that need it.
        let last = layer2::challengers(view, &members.layer2, nodes);
        members.layer2.sort_by(|a, b| {
            (last.contains(&a.name), a.order()).cmp(&(last.contains(&b.name), b.order()))
        });
        members.challengers = last;
        members
            .vrf
            .sort_by(|a, b| (a.spec.seq, &a.name).cmp(&(b.spec.seq, &b.name)));
        let last = peers::challengers(view, &members.bgp, nodes);
        members.bgp.sort_by(|a, b| {
            (last.contains(&a.name), a.order()).cmp(&(last.contains(&b.name), b.order()))
        });
        members
    }

    pub(super) fn group<'a>(&'a self, node: Option<&'a str>, has_overlay: bool) -> Group<'a> {
        fn named<S>(objects: &[Arc<LowLevel<S>>]) -> Vec<Named<'_, S>> {
            let objects = objects.iter();
            objects.map(|one| (one.name.as_str(), one)).collect()
        }
        Group {
            node,
            has_overlay,
            layer2: named(&self.layer2),
            vrf: named(&self.vrf),
            bgp: named(&self.bgp),
            overlays: self.overlays.iter().collect(),
            challengers: &self.challengers,
        }
    }

    /// Whose objects here need an overlay.
    fn sources(&self) -> BTreeSet<&ObjectRef> {
        let over_the_fabric = self
            .layer2
            .iter()
            .filter(|object| object.spec.interface_ref.is_none());
        let segments = over_the_fabric.map(|object| &object.source);
        // Routing without a segment: what services announce.
        let routing = self.vrf.iter().map(|object| &object.source);
        let services = routing.filter(|source| source.kind.is_service());
        let neighbors = self.bgp.iter().map(|object| &object.source);
        let neighbors = neighbors.filter(|source| source.kind == Kind::BgpNeighbor);
        let overlays = self.overlays.iter().filter(|one| one.needs_vtep());
        let overlays = overlays.map(|one| &one.subject);
        let all = segments.chain(services).chain(neighbors);
        all.chain(overlays).collect()
    }
}

/// The objects that are for the nodes of a signature.
pub(crate) struct MembersOf;
impl Query for MembersOf {
    type Key = Signature;
    type Value = Arc<Members>;
    fn compute(view: &View<'_>, signature: &Signature) -> Arc<Members> {
        let objects = selection::selected(view, signature, |one| one.object().cloned());
        let nodes = view.who::<NodesBySignature>(signature);
        let nodes: Vec<Key> = nodes.iter().map(Member::key).collect();
        let mut members = Members::of(view, objects.into_iter(), &nodes);
        let is_sound = |one: &Arc<LowLevel<_>>| view.get::<WrongWithPeering>(&one.name).is_empty();
        members.bgp.retain(is_sound);
        members.overlays = selection::selected(view, signature, |one| one.overlay().cloned());
        members.overlays.sort_by(|a, b| a.order().cmp(&b.order()));
        Arc::new(members)
    }
}

/// Whether the Underlay of the nodes of a signature gives some of them a VTEP.
pub(crate) struct HasOverlay;
impl Query for HasOverlay {
    type Key = Signature;
    type Value = bool;
    fn compute(view: &View<'_>, signature: &Signature) -> bool {
        let nodes = view.who::<NodesBySignature>(signature);
        nodes
            .iter()
            .any(|node| underlay::place(view, signature, &node.name).has_vtep())
    }
}

/// The first node of each signature, by name.
pub(crate) struct FirstNode;
impl Query for FirstNode {
    type Key = Signature;
    type Value = Option<Arc<str>>;
    fn compute(view: &View<'_>, signature: &Signature) -> Option<Arc<str>> {
        let nodes = view.who::<NodesBySignature>(signature);
        nodes.first().map(|node| Arc::clone(&node.name))
    }
}

/// The numbers that concern a group: of its VRFs, and who has the VNIs of its segments.
pub(crate) struct NumbersFor;
impl Query for NumbersFor {
    type Key = Signature;
    type Value = Arc<Numbers>;
    fn compute(view: &View<'_>, signature: &Signature) -> Arc<Numbers> {
        let all = &view.get::<NumbersOfAll>(&()).numbers;
        let members = view.get::<MembersOf>(signature);
        let mut numbers = Numbers::default();
        for object in &members.vrf {
            let name = object.spec.vrf.as_str();
            if let Some(of_vrf) = all.vrfs.get(name) {
                numbers.vrfs.insert(name.to_owned(), *of_vrf);
            }
        }
        for vni in members.layer2.iter().filter_map(|one| one.spec.vni) {
            if let Some(holder) = all.holders.get(&vni) {
                numbers.holders.insert(vni, holder.clone());
            }
        }
        Arc::new(numbers)
    }
}

/// What is routed by its source in a group. Without an overlay that is nothing.
pub(crate) struct SteeringFor;
impl Query for SteeringFor {
    type Key = Signature;
    type Value = Arc<Steering>;
    fn compute(view: &View<'_>, signature: &Signature) -> Arc<Steering> {
        if !view.get::<HasOverlay>(signature) {
            return Arc::default();
        }
        let members = view.get::<MembersOf>(signature);
        let claims = view.get::<ClaimsFor>(&(signature.clone(), true));
        let nodes = view.who::<NodesBySignature>(signature);
        let runs = |source, prefix, vrf: &str| {
            let mut nodes = nodes.iter();
            nodes.any(|node| {
                let config = view.spec::<kinds::NodeNetworkConfig>(&node.key());
                config.is_some_and(|config| steering::runs(&config, source, prefix, vrf))
            })
        };
        let group = members.group(None, true);
        Arc::new(Steering::find(&group, &claims.numbers, &runs))
    }
}

/// The route tables that configs of nodes have, each with the VRF's device.
pub(crate) struct TablesInUse;
impl Index for TablesInUse {
    type Source = Key;
    type Key = (String, u32);
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::NodeNetworkConfig>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<((String, u32), ())> {
        let config = view.spec::<kinds::NodeNetworkConfig>(node);
        let vrfs = config.iter().flat_map(|config| config.vrfs());
        let tables = vrfs.map(|vrf| ((vrf.devices.vrf.to_string(), vrf.table), ()));
        tables.collect()
    }
}

/// The names of VRFs that need a route table.
pub(crate) struct NamesOfTables;
impl Query for NamesOfTables {
    type Key = ();
    type Value = Arc<BTreeSet<String>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let mut names = vrfs::names_of_vrfs(view);
        let settings = view.settings();
        names.insert(settings.cluster_vrf.name.to_string());
        names.extend(
            settings
                .management_vrf
                .iter()
                .map(|vrf| vrf.name.to_string()),
        );
        for signature in view.all_keys::<NodesBySignature>().iter() {
            names.extend(view.get::<SteeringFor>(signature).names());
        }
        Arc::new(names)
    }
}

/// What is wrong with the range of route tables.
pub(crate) fn too_few_tables(view: &View<'_>) -> Option<Problem> {
    let (names, tables) = (view.get::<NamesOfTables>(&()), view.get::<Tables>(&()));
    let lacks = names.iter().find(|name| !tables.contains_key(*name))?;
    let range = &view.settings().route_tables;
    let message = format!(
        "{} VRFs need a table each, and {} to {} has none left for VRF {lacks:?}: widen the range",
        names.len(),
        range.first,
        range.last
    );
    let kind = problem::Kind::RuleBroken { message };
    let subject = ObjectRef::named(Kind::Settings, "default");
    Some(Problem::new(subject, "spec.routeTables", kind))
}

/// A route table for each VRF name, the same on every node; what a node already uses stays.
pub(crate) struct Tables;
impl Query for Tables {
    type Key = ();
    type Value = Arc<BTreeMap<String, u32>>;
    fn compute(view: &View<'_>, (): &()) -> Self::Value {
        let settings = view.settings();
        let names = view.get::<NamesOfTables>(&());
        let mut before: BTreeMap<String, u32> = BTreeMap::new();
        for (vrf, table) in view.all_keys::<TablesInUse>().iter() {
            before.entry(vrf.clone()).or_insert(*table);
        }
        let names = names.iter().map(String::as_str).collect();
        // No table is allocated from a range that is refused.
        let range = &settings.route_tables;
        let default = RouteTables::default();
        let is_sound = range.first <= range.last && (range.last < 253 || range.first > 255);
        let range = if is_sound { range } else { &default };
        // The kernel's own tables, which no range may allocate.
        let usable = |table: &u32| !(253..=255).contains(table);
        let tables = allocate::numbers((range.first, range.last), &names, &before, usable);
        Arc::new(tables)
    }
}

/// The route tables of a group's VRFs, local ones included.
pub(crate) struct TablesFor;
impl Query for TablesFor {
    type Key = Signature;
    type Value = Arc<BTreeMap<String, u32>>;
    fn compute(view: &View<'_>, signature: &Signature) -> Self::Value {
        let all = view.get::<Tables>(&());
        let members = view.get::<MembersOf>(signature);
        let settings = view.settings();
        let cluster = settings.cluster_vrf.name.to_string();
        let management = settings.management_vrf.iter();
        let management = management.map(|vrf| vrf.name.to_string());
        let vrfs = members.vrf.iter().map(|one| one.spec.vrf.to_string());
        let of_overlays = members.overlays.iter().filter_map(|one| one.vrf());
        let vrfs = vrfs.chain(of_overlays.map(str::to_owned));
        let steering = view.get::<SteeringFor>(signature);
        let names = vrfs.chain(steering.names()).chain([cluster]);
        let names = names.chain(management);
        let tables = names.filter_map(|name| {
            let table = *all.get(&name)?;
            Some((name, table))
        });
        Arc::new(tables.collect())
    }
}

/// What the nodes of a group have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Built {
    pub(crate) shared: Arc<Shared>,
    /// What those of its nodes have that take part in no overlay.
    pub(crate) bare: Arc<Shared>,
    pub(crate) problems: Vec<Problem>,
}

impl Built {
    /// What those of its nodes have that have a VTEP, or those that have none.
    pub(super) fn shared(&self, has_vtep: bool) -> &Arc<Shared> {
        if has_vtep { &self.shared } else { &self.bare }
    }
}

/// What the nodes of a group have.
pub(crate) struct BuiltFor;
impl Query for BuiltFor {
    type Key = Signature;
    type Value = Arc<Built>;
    fn compute(view: &View<'_>, signature: &Signature) -> Arc<Built> {
        let settings = view.settings();
        let members = view.get::<MembersOf>(signature);
        let first = view.get::<FirstNode>(signature);
        let group = members.group(first.as_deref(), view.get::<HasOverlay>(signature));
        let tables = view.get::<TablesFor>(signature);
        let steering = view.get::<SteeringFor>(signature);
        let claims = |has_vtep| view.get::<ClaimsFor>(&(signature.clone(), has_vtep));
        let mut problems = steering.problems.clone();
        let inputs = Inputs {
            settings: &settings,
            steering: &steering,
            tables: &tables,
        };
        let (bare_group, bare_claims) = (group.without_overlay(), claims(false));
        let bare = inputs.without_overlay(&bare_group, &bare_claims, &mut problems);
        let bare = finished(bare, &settings.health);
        let shared = if group.has_overlay {
            let claims = claims(true);
            problems.extend_from_slice(&claims.problems);
            let shared = inputs.shared(&group, &claims, &mut problems);
            finished(shared, &settings.health)
        } else {
            problems.extend_from_slice(&bare_claims.problems);
            Arc::clone(&bare)
        };
        Arc::new(Built {
            shared,
            bare,
            problems,
        })
    }
}

/// Adds what every node has.
fn finished(mut shared: Shared, health: &Health) -> Arc<Shared> {
    shared.health = health.clone();
    Arc::new(shared)
}

/// Without nodes there is nothing to build, but what cannot stand together is still said.
pub(crate) fn problems_without_nodes(view: &View<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !view.keys::<kinds::Node>().is_empty() {
        return problems;
    }
    let intents = intent::all(view);
    let intents = intents.iter();
    let generated = intents.flat_map(|one| view.get::<merge::Merged>(one).objects.clone());
    let written = low_level::hand_written(view);
    let written = written.iter().filter_map(|one| merge::in_effect(view, one));
    let members = Members::of(view, generated.chain(written), &[]);
    let group = members.group(None, false);
    let numbers = &view.get::<NumbersOfAll>(&()).numbers;
    let wanted = Wanted {
        settings: &view.settings(),
        group: &group,
        numbers,
        plans: &[],
        networks: &|_| None,
    };
    problems.extend(wanted.decided(Vec::new).problems);
    let runs = |_, _, _: &str| false;
    problems.extend(Steering::find(&group, numbers, &runs).problems);
    problems
}

/// What the config of a group is made from, beside its objects.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    settings: &'a SettingsSpec,
    steering: &'a Steering,
    tables: &'a BTreeMap<String, u32>,
}

impl Shared {
    /// Takes in the VLANs on devices of the host's own, and the routes of all interfaces in the host's namespace.
    fn host_interfaces(
        &mut self,
        group: &Group<'_>,
        vlans: Vec<(&str, IfName, HostVlan)>,
        problems: &mut Vec<Problem>,
    ) {
        for (name, device, vlan) in vlans {
            self.segments.insert(name.to_owned());
            self.host_devices
                .insert(device.to_string(), name.to_owned());
            self.host_vlans.insert(device.to_string(), vlan);
        }
        let on_host: BTreeSet<&String> = self.host_devices.values().collect();
        let segments = group.layer2.iter();
        let addressed = segments.filter(|(_, object)| !networks(&object.spec).is_empty());
        let addressed = addressed.map(|(name, _)| (*name).to_owned());
        self.addressed = addressed.filter(|name| on_host.contains(name)).collect();
        let in_effect = self.segments.iter().map(String::as_str).collect();
        let routes = layer2::host_routes(group, &in_effect, problems);
        let devices = self.host_devices.clone();
        let of = |device: &str| {
            let routes = routes.get(devices.get(device)?.as_str());
            routes.cloned()
        };
        for (device, vlan) in &mut self.host_vlans {
            vlan.routes = of(device).unwrap_or_default();
        }
        for interface in self
            .layer2s
            .values_mut()
            .filter_map(|segment| segment.host_interface.as_mut())
        {
            interface.routes = of(interface.name.as_str()).unwrap_or_default();
        }
    }
}

impl Inputs<'_> {
    /// What nodes of a group have that take part in no overlay.
    fn without_overlay(
        self,
        group: &Group<'_>,
        claims: &Claims,
        problems: &mut Vec<Problem>,
    ) -> Shared {
        let mut overlays = overlay::Builder::new(&group.overlays, self.tables, claims);
        let mut shared = Shared {
            passthroughs: overlays.passthroughs(),
            overlays: overlays.in_effect,
            sessions: overlays.sessions,
            ..Shared::default()
        };
        if !group.layer2.is_empty() {
            let vlans = layer2::host_vlans(self.settings, group, &claims.segments, problems);
            shared.host_interfaces(group, vlans, problems);
        }
        shared
    }

    /// What nodes of a group have that have a VTEP.
    fn shared(self, group: &Group<'_>, claims: &Claims, problems: &mut Vec<Problem>) -> Shared {
        let Self {
            settings,
            steering,
            tables,
        } = self;
        let cluster_name = settings.cluster_vrf.name.as_str();
        let (mut cluster_vrf, mut fabric_vrfs) =
            vrfs::build(settings, group, &claims.numbers, tables);
        cluster::add(settings, tables, &mut cluster_vrf, &mut fabric_vrfs);
        let mut overlays = overlay::Builder::new(&group.overlays, tables, claims);
        overlays.vrfs(&mut fabric_vrfs);
        // The VRF of an intent is never that of an object of another kind with the same name.
        let has_vrf = |object: &LowLevel<_>, vrf: &str| {
            let is_there = fabric_vrfs.contains_key(vrf);
            vrf == cluster_name || is_there && (!object.is_of_intent() || claims.numbers.has(vrf))
        };
        let segments = layer2::build(settings, group, &claims.segments, has_vrf, problems);
        let in_cluster: Vec<_> = segments
            .iter()
            .filter(|(_, _, segment)| {
                segment
                    .irb
                    .as_ref()
                    .is_some_and(|irb| irb.vrf == cluster_name)
            })
            .map(|(name, source, segment)| (*name, *source, segment))
            .collect();
        problems.extend(parts_of_segments(group, &segments));
        cluster_vrf.policy_routes = steering.policy_routes(&in_cluster, problems);
        let vrfs = peers::Vrfs {
            cluster_name,
            cluster: &mut cluster_vrf,
            fabric: &mut fabric_vrfs,
        };
        let (host_loopbacks, peerings) = peers::build(settings, group, &segments, vrfs, problems);
        let routing = group.vrf.iter().map(|(name, _)| (*name).to_owned());
        let in_effect = segments.iter().map(|(name, ..)| (*name).to_owned());
        let host_devices = segments.iter().filter_map(|(name, _, segment)| {
            let interface = segment.host_interface.as_ref()?;
            Some((interface.name.to_string(), (*name).to_owned()))
        });
        let vlans = layer2::host_vlans(settings, group, &claims.segments, problems);
        let (segment_names, host_devices): (BTreeSet<String>, BTreeMap<String, String>) =
            (in_effect.collect(), host_devices.collect());
        let mut layer2s: BTreeMap<String, Layer2> = segments
            .into_iter()
            .map(|(_, _, segment)| (vlan_key(&segment), segment))
            .collect();
        overlays.segments(&mut fabric_vrfs, &mut layer2s);
        let passthroughs = overlays.passthroughs();
        let (in_effect, sessions) = (overlays.in_effect, overlays.sessions);
        let mut shared = Shared {
            passthroughs,
            sessions,
            overlays: in_effect,
            segments: segment_names,
            routing: routing.collect(),
            host_devices,
            host_vlans: BTreeMap::new(),
            host_loopbacks,
            health: Health::default(),
            peerings: peerings.into_iter().map(str::to_owned).collect(),
            layer2s,
            cluster_vrf: Some(Arc::new(cluster_vrf)),
            fabric_vrfs: (fabric_vrfs.into_iter())
                .map(|(name, vrf)| (name, Arc::new(vrf)))
                .collect(),
            local_vrfs: steering.local_vrfs(cluster_name, tables),
            steering: steering.why.clone(),
            addressed: BTreeSet::new(),
            digest: fingerprint::Deferred::default(),
        };
        shared.host_interfaces(group, vlans, problems);
        shared
    }
}

/// Key of a segment of a VLAN in the config of a node.
fn vlan_key(segment: &Layer2) -> String {
    segment
        .vlan
        .map(|vlan| vlan.to_string())
        .unwrap_or_default()
}

/// Says where the network of a service is a part of a segment's in one VRF: its aggregate is the longer prefix, and drops what it has no host
/// route for.
fn parts_of_segments(group: &Group<'_>, segments: &[(&str, &ObjectRef, Layer2)]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (_, object) in &group.vrf {
        let vrf = object.spec.vrf.as_str();
        for aggregate in &object.spec.aggregate {
            let around = segments.iter().find_map(|(_, source, segment)| {
                let irb = segment.irb.as_ref().filter(|irb| irb.vrf == vrf)?;
                let mut gateways = irb.ip_addresses.iter().map(|gateway| gateway.prefix());
                let other = gateways
                    .find(|other| other != aggregate && other.net().contains(&aggregate.net()))?;
                Some((other, *source))
            });
            let Some((other, by)) = around else { continue };
            let kind = problem::Kind::PartOfASegment {
                network: *aggregate,
                other: other.to_string(),
                by: Box::new(by.clone()),
                vrf: vrf.to_owned(),
            };
            let field = if object.is_generated() {
                "spec.networkRef"
            } else {
                "spec.aggregate"
            };
            problems.push(Problem::new(object.source.clone(), field, kind));
        }
    }
    problems
}

/// Says which overlay objects are for nodes of which none has an overlay.
pub(crate) fn unreached(view: &View<'_>) -> Vec<Problem> {
    let signatures = view.all_keys::<NodesBySignature>();
    let has_overlay = |signature: &&Signature| view.get::<HasOverlay>(signature);
    let (overlay, none): (Vec<_>, Vec<_>) = signatures.iter().partition(has_overlay);
    let mut waiting: BTreeMap<ObjectRef, usize> = BTreeMap::new();
    for signature in none {
        let nodes = view.who::<NodesBySignature>(signature).len();
        let members = view.get::<MembersOf>(signature);
        // A passthrough needs an Underlay, and no VTEP.
        let is_outside = view.get::<underlay::PlansFor>(signature).is_empty();
        let passthroughs = members.overlays.iter().filter(|one| !one.needs_vtep());
        let passthroughs = passthroughs.filter(|_| is_outside).map(|one| &one.subject);
        for source in members.sources().into_iter().chain(passthroughs) {
            *waiting.entry(source.clone()).or_default() += nodes;
        }
    }
    if waiting.is_empty() {
        return Vec::new();
    }
    for signature in signatures.iter() {
        let members = view.get::<MembersOf>(signature);
        let is_inside = !view.get::<underlay::PlansFor>(signature).is_empty();
        let passthroughs = members.overlays.iter().filter(|one| !one.needs_vtep());
        for one in passthroughs.filter(|_| is_inside) {
            waiting.remove(&one.subject);
        }
    }
    for signature in overlay {
        for source in view.get::<MembersOf>(signature).sources() {
            waiting.remove(source);
        }
    }
    let waiting = waiting.into_iter();
    let problem = |(source, nodes): (ObjectRef, usize)| {
        let needs = if source.kind == Kind::L3Passthrough {
            "an Underlay"
        } else {
            "an Underlay with a VTEP"
        };
        let kind = problem::Kind::NoUnderlay { nodes, needs };
        Problem::new(source, "spec.nodeSelector", kind)
    };
    waiting.map(problem).collect()
}
