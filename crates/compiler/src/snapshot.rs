//! The input of a compile: all objects, all nodes, earlier allocations; owned, sorted, immutable, serialisable.
//!
//! Objects come in as JSON and are parsed here, so that the cluster and a file are read by the same code. An object that
//! cannot be read becomes a [`Problem`] of its own and harms no other.

mod documents;
mod kind;
mod metadata;
mod pool;
mod read;
#[cfg(test)]
mod tests;
mod words;

use std::{collections::BTreeMap, fmt, sync::Arc};

use api::{
    meta::Labels,
    openperouter::{OverlayStatus, UnderlaySpec},
    selvedge::{SettingsSpec, SettingsStatus},
    tcaas,
};
use serde::{Deserialize as _, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

pub(crate) use self::pool::VrfPool;
pub use self::{
    kind::{Class, IntentKind, Kind, Lookup, Role},
    read::{REQUIRED, is_secret},
    words::{SECRET, misfit, shape},
};
use crate::{
    memo::{self, Memo},
    platform::ipam,
    problem::Problem,
};

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace and name.
    pub key: Key,
}

/// Namespace and name of an object. They are shared, since objects are named wherever something is said of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace, where its kind has one.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of a cluster-scoped object.
    pub fn named(name: impl AsRef<str>) -> Self {
        Self {
            namespace: None,
            name: name.as_ref().into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl ObjectRef {
    /// A cluster-scoped object of this kind and name.
    pub fn named(kind: Kind, name: impl AsRef<str>) -> Self {
        Self {
            kind,
            key: Key::named(name),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

impl Serialize for ObjectRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.kind, self.key))
    }
}

/// The version of FRR in what a node reports of its config and of itself.
pub(crate) fn frr_version<'a>(
    of_config: Option<&'a tcaas::NodeNetworkConfigStatus>,
    of_node: Option<&'a tcaas::NodeNetworkStatusStatus>,
) -> Option<&'a str> {
    let of_config = of_config.and_then(|status| status.frr_version.as_deref());
    let of_node = || of_node?.capabilities.as_ref()?.frr_version.as_deref();
    of_config.or_else(of_node)
}

impl Snapshot {
    /// The version of FRR that a node reports.
    pub fn frr_version(&self, node: &str) -> Option<&str> {
        let node = Key::named(node);
        let config = self.node_network_configs.get(&node);
        let report = self.node_network_statuses.get(&node);
        frr_version(
            config.and_then(|config| config.status.as_deref()),
            report.and_then(|report| report.status.as_deref()),
        )
    }

    /// Forgets when nodes have reported: the same report, written once more, is no change.
    pub(crate) fn forget_times_of_reports(&mut self) {
        for config in self.node_network_configs.values_mut() {
            if let Some(status) = &mut config.status {
                Arc::make_mut(status).last_update = None;
            }
        }
        for report in self.node_network_statuses.values_mut() {
            if let Some(status) = &mut report.status {
                Arc::make_mut(status).last_updated = None;
            }
        }
    }
}

/// One object of the input. Its parts are shared with whatever was compiled from them.
#[derive(Debug, PartialEq, Eq)]
pub struct Object<S, T> {
    /// What Kubernetes knows about it.
    pub meta: Arc<Meta>,
    /// What its author wants.
    pub spec: Arc<S>,
    /// What was reported last; read for earlier allocations and nothing else.
    pub status: Option<Arc<T>>,
}

impl<S, T> Clone for Object<S, T> {
    fn clone(&self) -> Self {
        Self {
            meta: Arc::clone(&self.meta),
            spec: Arc::clone(&self.spec),
            status: self.status.clone(),
        }
    }
}

/// A kind of object, with the types of its parts.
pub trait Resource: 'static {
    /// The kind.
    const KIND: Kind;
    /// What authors write.
    type Spec: Serialize + PartialEq + fmt::Debug + Send + Sync + 'static;
    /// What is reported.
    type Status: Serialize + DeserializeOwned + PartialEq + fmt::Debug + Send + Sync + 'static;
    /// All objects of the kind.
    fn objects(snapshot: &Snapshot) -> &Objects<Self::Spec, Self::Status>;
}

/// What is known of an object whose spec could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// What Kubernetes knows about it.
    pub meta: Arc<Meta>,
    /// Its status, as it is stored.
    pub status: Arc<Value>,
}

/// What Kubernetes knows about an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// Its labels.
    pub labels: Labels,
    /// Its annotations that are ours; others change often and mean nothing here.
    pub annotations: Labels,
    /// When it was created; absent for an object that is in no cluster yet.
    pub created: Option<String>,
    /// How often its spec has changed.
    pub generation: Option<i64>,
    /// What tells it from a later object of the same name.
    pub uid: Option<String>,
    /// The intent it was generated from.
    pub owner: Option<ObjectRef>,
}

/// Something to do with a kind as a type.
pub(crate) trait Visitor {
    /// What comes of it.
    type Out;
    /// Does it.
    fn visit<R: Resource + memo::Registered>(self, key: &Key) -> Self::Out;
}

/// Objects of one kind.
pub type Objects<S, T = Value> = BTreeMap<Key, Object<S, T>>;

/// Objects in the order in which they are served: the older first, then by name; what is in no cluster yet comes last.
pub fn by_age<S, T>(objects: &Objects<S, T>) -> Vec<(&Key, &Object<S, T>)> {
    let mut sorted: Vec<_> = objects.iter().collect();
    sorted.sort_by_key(|(key, object)| (age(&object.meta), *key));
    sorted
}

/// Sorts older objects first.
pub fn age(meta: &Meta) -> (bool, Option<&str>) {
    (meta.created.is_none(), meta.created.as_deref())
}

/// What a Kubernetes Node is to the compiler: a name with labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, Serialize)]
pub struct NodeSpec {}

macro_rules! snapshot {
    ($($(#[$doc:meta])* $field:ident: $kind:ident => $spec:ty, $status:ty;)*) => {
        /// The kinds as types, for code that reads objects of one kind.
        pub mod kinds {
            $(
                #[doc = concat!("The kind `", stringify!($kind), "`.")]
                #[derive(Clone, Copy, Debug)]
                pub struct $kind;
            )*
        }

        $(
            impl Resource for kinds::$kind {
                const KIND: Kind = Kind::$kind;
                type Spec = $spec;
                type Status = $status;
                fn objects(snapshot: &Snapshot) -> &Objects<$spec, $status> {
                    &snapshot.$field
                }
            }
        )*

        $(
            impl memo::Registered for kinds::$kind {
                const PLACE: usize = Kind::$kind as usize;
                const NAME: &'static str = stringify!($kind);
            }
        )*

        /// A table of inputs for every kind, each at the place of its kind.
        pub(crate) fn input_tables() -> Vec<Box<dyn memo::Table>> {
            let mut tables = vec![$((Kind::$kind as usize, memo::input_table::<kinds::$kind>())),*];
            tables.sort_by_key(|(place, _)| *place);
            tables.into_iter().map(|(_, table)| table).collect()
        }

        /// Does something with the kind of an object, as a type.
        pub(crate) fn visit<V: Visitor>(subject: &ObjectRef, visitor: V) -> V::Out {
            match subject.kind {
                $(Kind::$kind => visitor.visit::<kinds::$kind>(&subject.key),)*
            }
        }

        /// Sets all objects of a snapshot as inputs.
        pub(crate) fn fill(memo: &mut Memo, snapshot: &Snapshot) {
            $(
                let objects = snapshot.$field.iter();
                memo.fill::<kinds::$kind>(objects.map(|(key, object)| (key, object.clone())));
            )*
        }

        /// All objects that a compile reads.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Snapshot {
            $($(#[$doc])* pub $field: Objects<$spec, $status>,)*
            /// What could not be read.
            pub unreadable: Vec<Problem>,
            /// What is known of objects that are among no others, since they could not be read.
            pub unread: BTreeMap<ObjectRef, Partial>,
        }

        impl Snapshot {
            /// Takes an object out, read or not, with what is wrong with it; false if it is not there.
            pub fn remove(&mut self, subject: &ObjectRef) -> bool {
                self.unreadable.retain(|problem| problem.subject != *subject);
                let was_unread = self.unread.remove(subject).is_some();
                was_unread | match subject.kind {
                    $(Kind::$kind => self.$field.remove(&subject.key).is_some(),)*
                }
            }

            /// One object, read or not, with what is wrong with it, as a snapshot of its own.
            pub(crate) fn only(&self, subject: &ObjectRef) -> Self {
                let mut only = Self::default();
                let unreadable = self.unreadable.iter();
                only.unreadable = unreadable.filter(|problem| problem.subject == *subject).cloned().collect();
                if let Some(partial) = self.unread.get(subject) {
                    only.unread.insert(subject.clone(), partial.clone());
                }
                match subject.kind {
                    $(Kind::$kind => {
                        if let Some(object) = self.$field.get(&subject.key) {
                            only.$field.insert(subject.key.clone(), object.clone());
                        }
                    })*
                }
                only
            }

            /// All objects that can be read, by kind.
            pub fn subjects(&self) -> impl Iterator<Item = ObjectRef> + '_ {
                let of = |kind, key: &Key| ObjectRef { kind, key: key.clone() };
                std::iter::empty()$(.chain(self.$field.keys().map(move |key| of(Kind::$kind, key))))*
            }

            /// Whether it has an object that can be read.
            pub(crate) fn has(&self, subject: &ObjectRef) -> bool {
                match subject.kind {
                    $(Kind::$kind => self.$field.contains_key(&subject.key),)*
                }
            }

            /// What Kubernetes knows about an object, and its status as it is stored.
            pub fn stored_status(&self, subject: &ObjectRef) -> Option<(&Meta, Value)> {
                fn of<'a, S, T: Serialize>(objects: &'a Objects<S, T>, key: &Key) -> Option<(&'a Meta, Value)> {
                    let object = objects.get(key)?;
                    let status = object.status.as_deref().map(serde_json::to_value);
                    Some((&object.meta, status.and_then(Result::ok).unwrap_or_default()))
                }
                match subject.kind {
                    $(Kind::$kind => of(&self.$field, &subject.key),)*
                }
            }

            /// Puts a status in the place of the one that an object has; nothing happens where the object is not there.
            pub fn set_status(&mut self, subject: &ObjectRef, status: &Value) {
                match subject.kind {
                    $(Kind::$kind => {
                        if let Some(object) = self.$field.get_mut(&subject.key) {
                            object.status = <$status>::deserialize(status).ok().map(Arc::new);
                        }
                    })*
                }
            }

            /// Takes over an object of another snapshot, or, where both have it and only the other has a status, its status.
            pub fn inherit(&mut self, other: &Self, subject: &ObjectRef) {
                if let Some(partial) = self.unread.get_mut(subject) {
                    if partial.status.is_null() {
                        let status = other.stored_status(subject).map(|(_, status)| status);
                        partial.status = Arc::new(status.unwrap_or_default());
                    }
                    return;
                }
                match subject.kind {
                    $(Kind::$kind => {
                        if let Some(object) = other.$field.get(&subject.key) {
                            let own = self.$field.entry(subject.key.clone());
                            let own = own.or_insert_with(|| object.clone());
                            own.status = own.status.take().or_else(|| object.status.clone());
                        }
                    })*
                }
            }

            /// What Kubernetes knows about an object that can be read.
            pub fn meta(&self, subject: &ObjectRef) -> Option<&Meta> {
                match subject.kind {
                    $(Kind::$kind => self.$field.get(&subject.key).map(|object| &*object.meta),)*
                }
            }

            /// The objects of which another snapshot has another spec or other labels, or that only one of the two has. What an object that
            /// cannot be read has is not known.
            pub fn edited(&self, other: &Self) -> Vec<ObjectRef> {
                fn of<S: PartialEq, T>(one: &Objects<S, T>, other: &Objects<S, T>) -> Vec<Key> {
                    let is_same = |a: &Object<S, T>, b: &Object<S, T>| a.spec == b.spec && a.meta.labels == b.meta.labels;
                    let is_edited = |(key, object): &(&Key, &Object<S, T>)| !other.get(*key).is_some_and(|other| is_same(object, other));
                    let edited = one.iter().filter(is_edited).map(|(key, _)| key.clone());
                    let added = other.keys().filter(|key| !one.contains_key(*key)).cloned();
                    edited.chain(added).collect()
                }
                let mut edited = Vec::new();
                $(
                    let keys = of(&self.$field, &other.$field).into_iter();
                    edited.extend(keys.map(|key| ObjectRef { kind: Kind::$kind, key }));
                )*
                edited.retain(|object| !self.unread.contains_key(object) && !other.unread.contains_key(object));
                edited
            }

            /// Whether both have the same object, or neither has it.
            pub(crate) fn has_same(&self, other: &Self, subject: &ObjectRef) -> bool {
                self.unread.get(subject) == other.unread.get(subject) && match subject.kind {
                    $(Kind::$kind => self.$field.get(&subject.key) == other.$field.get(&subject.key),)*
                }
            }

            /// Takes in everything that another has.
            pub(crate) fn absorb(&mut self, other: Self) {
                let Self { $($field,)* unreadable, unread } = other;
                $(self.$field.extend($field);)*
                self.unreadable.extend(unreadable);
                self.unread.extend(unread);
            }

            /// Reads an object of a known kind and adds it; what is wrong with it is kept as problems.
            fn store(&mut self, kind: Kind, value: &Value) {
                let Self { unreadable, unread, .. } = self;
                match kind {
                    $(Kind::$kind => read::object(kind, value, &mut self.$field, unreadable, unread),)*
                }
            }
        }
    };
}

snapshot! {
    /// The cluster's nodes.
    nodes: Node => NodeSpec, Value;
    /// Selvedge's own settings; at most one object named `default`.
    settings: Settings => SettingsSpec, SettingsStatus;
    /// How nodes are plugged into the fabric.
    underlays: Underlay => UnderlaySpec, OverlayStatus;
    /// L3 overlays with a session to the host.
    l3vnis: L3Vni => api::openperouter::L3VniSpec, OverlayStatus;
    /// L2 overlays with a leg on the host.
    l2vnis: L2Vni => api::openperouter::L2VniSpec, OverlayStatus;
    /// Sessions of the host straight into the fabric.
    l3passthroughs: L3Passthrough => api::openperouter::L3PassthroughSpec, OverlayStatus;
    /// Backbone VRFs.
    vrfs: Vrf => tcaas::VrfSpec, tcaas::VrfStatus;
    /// Pools.
    networks: Network => tcaas::NetworkSpec, tcaas::NetworkStatus;
    /// Routing targets.
    destinations: Destination => tcaas::DestinationSpec, tcaas::DestinationStatus;
    /// Segments on nodes.
    layer2_attachments: Layer2Attachment => tcaas::Layer2AttachmentSpec, tcaas::Layer2AttachmentStatus;
    /// Service addresses.
    inbounds: Inbound => tcaas::InboundSpec, tcaas::InboundStatus;
    /// Egress addresses.
    outbounds: Outbound => tcaas::OutboundSpec, tcaas::OutboundStatus;
    /// Workloads that announce routes.
    bgp_neighbors: BgpNeighbor => tcaas::BgpNeighborSpec, tcaas::BgpNeighborStatus;
    /// Additional pod networks.
    pod_networks: PodNetwork => tcaas::PodNetworkSpec, tcaas::PodNetworkStatus;
    /// Collectors of mirrored traffic.
    collectors: Collector => tcaas::CollectorSpec, tcaas::CollectorStatus;
    /// What to mirror.
    traffic_mirrors: TrafficMirror => tcaas::TrafficMirrorSpec, tcaas::TrafficMirrorStatus;
    /// Low-level segments, hand-written and generated.
    layer2_network_configurations: Layer2NetworkConfiguration => tcaas::Layer2NetworkConfigurationSpec, tcaas::Layer2NetworkConfigurationStatus;
    /// Low-level routing, hand-written and generated.
    vrf_route_configurations: VrfRouteConfiguration => tcaas::VrfRouteConfigurationSpec, tcaas::VrfRouteConfigurationStatus;
    /// Low-level BGP sessions, hand-written and generated.
    bgp_peerings: BgpPeering => tcaas::BgpPeeringSpec, tcaas::BgpPeeringStatus;
    /// Low-level mirror tunnels.
    mirror_targets: MirrorTarget => tcaas::MirrorTargetSpec, tcaas::MirrorTargetStatus;
    /// Low-level mirror rules.
    mirror_selectors: MirrorSelector => tcaas::MirrorSelectorSpec, tcaas::MirrorSelectorStatus;
    /// The last config of each node; the memory of per-node allocations.
    node_network_configs: NodeNetworkConfig => tcaas::NodeNetworkConfigSpec, tcaas::NodeNetworkConfigStatus;
    /// What each node has.
    node_network_statuses: NodeNetworkStatus => Value, tcaas::NodeNetworkStatusStatus;
    /// Earlier revisions.
    network_config_revisions: NetworkConfigRevision => tcaas::NetworkConfigRevisionSpec, tcaas::NetworkConfigRevisionStatus;
    /// What is too large for the revisions themselves.
    network_config_revision_parts: NetworkConfigRevisionPart => tcaas::NetworkConfigRevisionPartSpec, Value;
    /// Configurations of the host's router.
    frr_configurations: FrrConfiguration => api::frrk8s::FrrConfigurationSpec, api::frrk8s::FrrConfigurationStatus;
    /// States of host routers.
    frr_node_states: FrrNodeState => Value, Value;
    /// States of BGP sessions.
    bgp_session_states: BgpSessionState => Value, Value;
    /// Networks that pods plug into.
    multi_pod_networks: MultiPodNetwork => api::multinetwork::PodNetworkSpec, api::multinetwork::PodNetworkStatus;
    /// Claims of addresses, ours and other people's.
    ip_address_claims: IpAddressClaim => ipam::IpAddressClaimSpec, Value;
    /// Addresses that were given for claims.
    ip_addresses: IpAddress => ipam::IpAddressSpec, Value;
}

/// What became of a document that was given to a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// It is an object of ours.
    Object(ObjectRef),
    /// A foreign kind: `apiVersion/kind`.
    Foreign(String),
    /// A foreign kind with the name of one of ours, so that its group may be a mistake.
    Misplaced {
        /// `apiVersion/kind`.
        kind: String,
        /// What is likely to be meant.
        message: String,
    },
    /// Its kind is missing, or unknown in our own groups.
    Unknown(String),
}

impl Snapshot {
    /// Adds one document.
    ///
    /// What is wrong inside an object of ours is kept in [`Snapshot::unreadable`]; only a document that cannot be
    /// attributed to an object is handed back as [`Insertion::Unknown`].
    pub fn insert(&mut self, document: &Value) -> Insertion {
        let text = |field: &str| {
            document
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version.is_empty() || kind.is_empty() {
            return Insertion::Unknown(
                "not a Kubernetes object: apiVersion and kind are needed".to_owned(),
            );
        }
        match Kind::find(api_version, kind) {
            Lookup::Ours(kind) => {
                let key = match read::key(kind, document) {
                    Ok(key) => key,
                    Err(why) => return Insertion::Unknown(format!("{kind}: {why}")),
                };
                self.store(kind, document);
                Insertion::Object(ObjectRef { kind, key })
            }
            Lookup::Foreign => Insertion::Foreign(format!("{api_version}/{kind}")),
            Lookup::Misplaced(message) => Insertion::Misplaced {
                kind: format!("{api_version}/{kind}"),
                message: of_object(kind, document, message),
            },
            Lookup::Unknown(message) => Insertion::Unknown(of_object(kind, document, message)),
        }
    }

    /// The settings in effect: those of the object named `default`, or the defaults.
    pub fn settings(&self) -> SettingsSpec {
        self.settings
            .get(&Key::named("default"))
            .map(|object| (*object.spec).clone())
            .unwrap_or_default()
    }
}

/// A message about a document, with the name that the document gives itself.
fn of_object(kind: &str, document: &Value, message: String) -> String {
    let name = document.pointer("/metadata/name").and_then(Value::as_str);
    match name {
        Some(name) => format!("{kind} {name}: {message}"),
        None => message,
    }
}
