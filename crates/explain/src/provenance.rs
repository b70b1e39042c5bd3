//! Where each element of a node's config comes from: which fields of which low-level objects, and which fields of intents are
//! behind those.
//!
//! The compile itself carries none of this: it is found afterwards, for the one element that a user asks about. Laws on random
//! worlds check it: changing a named field changes its element, and each claim is enough without the others.

mod host_router;
mod intent;
mod mirror;
mod neighbor;
mod overlay;
mod routing;
mod segment;
mod session;
mod steering;
#[cfg(test)]
pub(crate) mod tests;
mod underlay;

use std::{collections::BTreeSet, fmt, sync::Arc};

use api::{meta::Labels, selvedge::SettingsSpec, value::VrfName};
use compiler::{
    Compilation, NodeConfig, Snapshot,
    lower::LowLevel,
    select::selects,
    snapshot::{Key, Kind, ObjectRef},
};
use serde::Serialize;

use self::intent::Aspect;
pub(crate) use self::intent::is_kept;
use crate::element::Element;

/// A field of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Field {
    /// The object.
    pub object: ObjectRef,
    /// Path of the field, such as `spec.prefixes[0]`.
    #[serde(rename = "field")]
    pub path: String,
}

impl Field {
    fn new(object: ObjectRef, path: impl Into<String>) -> Self {
        let path = path.into();
        Self { object, path }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.object, self.path)
    }
}

/// A field that an element comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Source {
    /// The field.
    #[serde(flatten)]
    pub field: Field,
    /// The fields that it comes from itself; none where a person has written it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub behind: BTreeSet<Field>,
}

/// One way in which an element comes to be. It takes all of its sources; where there are several claims, each of them would do alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Claim {
    /// The object that asks for the element: an intent, or a person's own low-level object.
    pub by: ObjectRef,
    /// The fields that it comes from.
    pub sources: BTreeSet<Source>,
}

impl Claim {
    /// The fields of hand-written objects that the claim rests on.
    pub fn fields(&self) -> BTreeSet<&Field> {
        let own = self
            .sources
            .iter()
            .filter(|source| source.behind.is_empty());
        let own = own.map(|source| &source.field);
        let behind = self.sources.iter().flat_map(|source| &source.behind);
        own.chain(behind).collect()
    }
}

/// A world and what came of it, ready to be asked.
pub struct Trace<'a> {
    /// The world.
    pub snapshot: &'a Snapshot,
    /// What came of it.
    pub compilation: &'a Compilation,
    /// The settings in effect.
    settings: Arc<SettingsSpec>,
}

impl<'a> Trace<'a> {
    /// Makes a world ready to be asked.
    pub fn new(snapshot: &'a Snapshot, compilation: &'a Compilation) -> Self {
        Self {
            snapshot,
            compilation,
            settings: Arc::clone(&compilation.revision.settings),
        }
    }

    /// The claims for an element of a node; none where the node has no such element.
    pub fn claims(&self, node: &str, element: &Element) -> Vec<Claim> {
        let Some(config) = self.compilation.nodes.get(node) else {
            return Vec::new();
        };
        let Some(object) = self.snapshot.nodes.get(&Key::named(node)) else {
            return Vec::new();
        };
        let on_node = OnNode {
            trace: self,
            labels: &object.meta.labels,
            config,
        };
        let mut claims = on_node.claims(element);
        claims.sort();
        claims.dedup();
        claims
    }

    /// Whether a person has set a setting to something other than what holds anyway.
    fn sets<T: PartialEq>(&self, of: impl Fn(&SettingsSpec) -> &T) -> bool {
        of(&self.settings) != of(&SettingsSpec::default())
    }

    fn setting(path: impl Into<String>) -> Field {
        Field::new(ObjectRef::named(Kind::Settings, "default"), path)
    }

    /// A setting of a VRF; a name with dots stands in brackets.
    fn vrf_setting(vrf: &VrfName, what: &str) -> Field {
        let name = vrf.as_str();
        if name.contains('.') {
            return Self::setting(format!("spec.vrfs[{name:?}].{what}"));
        }
        Self::setting(format!("spec.vrfs.{name}.{what}"))
    }
}

/// The node that is asked about.
struct OnNode<'a> {
    trace: &'a Trace<'a>,
    labels: &'a Labels,
    config: &'a NodeConfig,
}

impl OnNode<'_> {
    fn claims(&self, element: &Element) -> Vec<Claim> {
        match element {
            Element::Underlay => self.underlay(),
            Element::Peer { peer } => self.underlay_peer(peer),
            Element::Vrf { vrf } => self.vrf(vrf),
            Element::Table { vrf } => self.table(vrf),
            Element::RouteTarget { vrf, .. } => self.route_target(vrf),
            Element::Import { vrf, from, prefix } => self.import(vrf, from, prefix),
            Element::DeniedImport { vrf, from, prefix } => self.denied_import(vrf, from, prefix),
            Element::Export { vrf, prefix } => self.export(vrf, prefix),
            Element::DeniedExport { vrf, prefix } => self.denied_export(vrf, prefix),
            Element::Route { vrf, prefix } => self.route(vrf, prefix),
            Element::Session { vrf, peer } => self.session(vrf, peer),
            Element::HostSession { vrf } => self.host_session(vrf),
            Element::Passthrough { name } => self.passthrough(name),
            Element::VniSegment { vni } => self.vni_segment(*vni),
            Element::VniGateway { vni } => self.vni_gateway(*vni),
            Element::Aggregate { vrf, prefix } => self.aggregate(vrf, prefix),
            Element::HostLoopback { name } => self.loopback(name),
            Element::Steering {
                source,
                destination,
                vrf,
            } => self.steering(vrf, source, destination),
            Element::Segment { vlan } => self.segment(*vlan),
            Element::Gateway { vlan } => self.gateway(*vlan),
            Element::HostInterface { name, .. } => self.host_interface(name),
            Element::HostAddress { device, address } => self.host_address(device, address),
            Element::HostRoute { device, prefix } => self.host_route(device, prefix),
            Element::HostVlan { name, .. } => self.host_vlan(name),
            Element::Loopback { vrf, name } => self.mirror_source(vrf, name),
            Element::Tunnel { vrf, name } => self.tunnel(vrf, name),
            Element::Mirror { .. } => self.mirror(element),
            Element::HostRouting => self.host_routing(),
            Element::HostRouter { vrf } => self.host_router(vrf),
            Element::HostPeer { vrf, peer } => self.host_peer(vrf, peer),
            Element::HostNetwork { vrf, prefix } => self.host_network(vrf, prefix),
            Element::HostVni { vrf, vni } => self.host_vni(vrf, *vni),
            Element::HostBfdProfile { name } => self.host_bfd_profile(name),
            Element::HostRaw { source } => self.host_raw(source),
        }
    }

    fn is_cluster(&self, vrf: &str) -> bool {
        vrf == self.trace.settings.cluster_vrf.name.as_str()
    }

    fn is_management(&self, vrf: &str) -> bool {
        let management = self.trace.settings.management_vrf.as_ref();
        management.is_some_and(|management| management.name.as_str() == vrf)
    }

    /// Begins a claim of a low-level object, or of the intent that it is generated from.
    fn draft<S>(&self, object: &LowLevel<S>) -> ClaimBuilder<'_> {
        ClaimBuilder {
            trace: self.trace,
            claim: Claim {
                by: object.source.clone(),
                sources: BTreeSet::new(),
            },
        }
    }

    /// Whether the node is selected.
    fn is_selected(&self, selector: Option<&api::meta::LabelSelector>) -> bool {
        selects(selector, self.labels)
    }
}

/// A low-level object: its kind and name with what it says.
type Low<'a, S> = (Kind, &'a str, &'a LowLevel<S>);

/// A claim that is being gathered.
struct ClaimBuilder<'a> {
    trace: &'a Trace<'a>,
    claim: Claim,
}

impl ClaimBuilder<'_> {
    /// Names a field of a low-level object, with what is behind it.
    fn low_level<S>(
        &mut self,
        (kind, name, object): Low<'_, S>,
        path: impl Into<String>,
        aspect: Aspect<'_>,
    ) {
        let field = Field::new(ObjectRef::named(kind, name), path);
        let mut behind = BTreeSet::new();
        if object.is_generated() {
            behind = intent::behind(self.trace, &object.source, aspect);
            // A value that no object sets comes from no field.
            if behind.is_empty() {
                return;
            }
        }
        self.claim.sources.insert(Source { field, behind });
    }

    /// Names a field that a person has written.
    fn own(&mut self, field: Field) {
        let behind = BTreeSet::new();
        self.claim.sources.insert(Source { field, behind });
    }

    fn build(self) -> Claim {
        self.claim
    }
}
