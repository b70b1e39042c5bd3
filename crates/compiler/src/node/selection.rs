//! Which objects are for which nodes: found through an index of labels, so that one object for one node splits one node off.
//!
//! Nodes with the same signature fulfil the same requirements of all selectors, so the same objects are for them.

use std::{
    collections::BTreeSet,
    hash::{Hash, Hasher},
    slice,
    sync::Arc,
};

use api::{
    meta::{LabelOperator, LabelRequirement, LabelSelector, Labels},
    tcaas::VrfRouteConfigurationSpec,
};

use super::overlay::{self, Overlay, OverlayOf};
use crate::{
    lower::{LowLevel, LowLevelObject, intent, low_level, merge},
    memo::{Index, Query},
    snapshot::{Key, Kind, Meta, ObjectRef, kinds},
    view::View,
};

/// What objects are looked up by. The order of the variants is that of the ranges which are read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Facet {
    /// A value of a label without which the object is for no node.
    Label(String, String),
    /// The VRF that routing is in.
    Vrf(String),
    /// Objects that no label can rule out.
    Everywhere,
    /// Routing with loopbacks.
    Loopbacks,
    /// Tunnels of mirrors.
    MirrorTargets,
    /// Rules of mirrors.
    MirrorSelectors,
    /// A further requirement of a selector.
    Requirement(LabelRequirement),
    /// What comes after everything else.
    End,
}

/// An object that nodes are selected for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selected {
    Object(LowLevelObject),
    Underlay(Key, Arc<Meta>, Option<LabelSelector>),
    Overlay(Arc<Overlay>),
}

impl Selected {
    pub(super) fn vrf(&self) -> Option<&Arc<LowLevel<VrfRouteConfigurationSpec>>> {
        self.object().and_then(LowLevelObject::vrf)
    }

    pub(crate) fn object(&self) -> Option<&LowLevelObject> {
        match self {
            Self::Object(object) => Some(object),
            Self::Underlay(..) | Self::Overlay(_) => None,
        }
    }

    pub(super) fn overlay(&self) -> Option<&Arc<Overlay>> {
        match self {
            Self::Overlay(overlay) => Some(overlay),
            Self::Object(_) | Self::Underlay(..) => None,
        }
    }

    fn selector(&self) -> Option<&LabelSelector> {
        match self {
            Self::Object(object) => object.node_selector(),
            Self::Underlay(_, _, selector) => selector.as_ref(),
            Self::Overlay(overlay) => overlay.node_selector.as_ref(),
        }
    }
}

/// All objects in effect, and Underlays, by what they are looked up by.
pub(crate) struct Facets;
impl Index for Facets {
    type Source = ObjectRef;
    type Key = Facet;
    type Item = Selected;
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let mut sources = intent::all(view).to_vec();
        sources.extend(low_level::hand_written(view).iter().cloned());
        sources.extend(view.all::<kinds::Underlay>());
        sources.extend(overlay::all(view));
        sources
    }
    fn entries(view: &View<'_>, source: &ObjectRef) -> Vec<(Facet, Selected)> {
        if source.kind == Kind::Underlay {
            return underlay(view, &source.key);
        }
        if overlay::is_overlay(source.kind) {
            let planned = view.get::<OverlayOf>(source);
            return planned.plan.iter().flat_map(of_overlay).collect();
        }
        if source.kind.intent().is_some() {
            let merged = view.get::<merge::Merged>(source);
            return merged.objects.iter().flat_map(facets).collect();
        }
        let written = merge::in_effect(view, source);
        written.iter().flat_map(facets).collect()
    }
}

fn underlay(view: &View<'_>, key: &Key) -> Vec<(Facet, Selected)> {
    let spec = view.spec::<kinds::Underlay>(key);
    let meta = view.meta::<kinds::Underlay>(key);
    let (Some(spec), Some(meta)) = (spec, meta) else {
        return Vec::new();
    };
    let selector = spec.node_selector.clone();
    let selected = Selected::Underlay(key.clone(), meta, selector);
    let facets = by_selector(spec.node_selector.as_ref()).into_iter();
    facets.map(|facet| (facet, selected.clone())).collect()
}

fn of_overlay(overlay: &Arc<Overlay>) -> Vec<(Facet, Selected)> {
    let mut facets = by_selector(overlay.node_selector.as_ref());
    facets.extend(overlay.vrf().map(|vrf| Facet::Vrf(vrf.to_owned())));
    let selected = Selected::Overlay(Arc::clone(overlay));
    let facets = facets.into_iter();
    facets.map(|facet| (facet, selected.clone())).collect()
}

fn facets(object: &LowLevelObject) -> Vec<(Facet, Selected)> {
    let facets = match object {
        LowLevelObject::MirrorTarget(_) => vec![Facet::MirrorTargets],
        LowLevelObject::MirrorSelector(_) => vec![Facet::MirrorSelectors],
        LowLevelObject::Layer2(_) | LowLevelObject::Bgp(_) => by_selector(object.node_selector()),
        LowLevelObject::Vrf(routing) => {
            let mut facets = by_selector(object.node_selector());
            facets.push(Facet::Vrf(routing.spec.vrf.to_string()));
            if !routing.spec.loopbacks.is_empty() {
                facets.push(Facet::Loopbacks);
            }
            facets
        }
    };
    let selected = Selected::Object(object.clone());
    let facets = facets.into_iter();
    facets.map(|facet| (facet, selected.clone())).collect()
}

/// A further requirement of a selector.
#[derive(Clone, Copy)]
enum Further<'a> {
    Label(&'a String, &'a String),
    Expression(&'a LabelRequirement),
}

impl Further<'_> {
    fn is(self, requirement: &LabelRequirement) -> bool {
        match self {
            Self::Label(key, value) => {
                let is_label = requirement.operator == LabelOperator::In;
                is_label && requirement.key == *key && requirement.values == [value.as_str()]
            }
            Self::Expression(own) => own == requirement,
        }
    }

    fn requirement(self) -> LabelRequirement {
        match self {
            Self::Label(key, value) => LabelRequirement {
                key: key.clone(),
                operator: LabelOperator::In,
                values: vec![value.clone()],
            },
            Self::Expression(own) => own.clone(),
        }
    }
}

/// The values of a label of which a node must have one.
type OneOf<'a> = (&'a String, &'a [String]);

/// A selector taken apart: the values of one label, where it asks for certain values at all, and its further requirements.
fn parts(selector: &LabelSelector) -> (Option<OneOf<'_>>, impl Iterator<Item = Further<'_>>) {
    let LabelSelector {
        match_labels,
        match_expressions,
    } = selector;
    let first = match_labels.iter().next();
    let is_in = |one: &LabelRequirement| one.operator == LabelOperator::In;
    let of_expressions = match_expressions.iter().position(is_in);
    let of_expressions = of_expressions.filter(|_| first.is_none());
    let expression = of_expressions.and_then(|place| match_expressions.get(place));
    let label = first.map(|(key, value)| (key, slice::from_ref(value)));
    let label = label.or_else(|| expression.map(|one| (&one.key, one.values.as_slice())));
    let labels = match_labels.iter().skip(1);
    let labels = labels.map(|(key, value)| Further::Label(key, value));
    let expressions = match_expressions.iter().enumerate();
    let expressions = expressions.filter(move |(place, _)| Some(*place) != of_expressions);
    let expressions = expressions.map(|(_, one)| Further::Expression(one));
    (label, labels.chain(expressions))
}

fn by_selector(selector: Option<&LabelSelector>) -> Vec<Facet> {
    let Some(selector) = selector else {
        return vec![Facet::Everywhere];
    };
    let (label, further) = parts(selector);
    let further = further.map(Further::requirement);
    let mut facets: Vec<Facet> = further.map(Facet::Requirement).collect();
    match label {
        Some((key, values)) => {
            let of_value = |value: &String| Facet::Label(key.clone(), value.clone());
            facets.extend(values.iter().map(of_value));
        }
        None => facets.push(Facet::Everywhere),
    }
    facets
}

/// What of a node's labels selectors ask for.
///
/// It is asked for often, so its hash is made once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Signature(u64, Arc<SignatureParts>);

impl Hash for Signature {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SignatureParts {
    /// The labels that some object wants with just this value.
    labels: Vec<(String, String)>,
    /// The further requirements that hold.
    requirements: Vec<LabelRequirement>,
}

impl Signature {
    fn new(parts: SignatureParts) -> Self {
        let mut hasher = rustc_hash::FxHasher::default();
        parts.hash(&mut hasher);
        Self(hasher.finish(), Arc::new(parts))
    }

    /// Whether an object that one of the labels leads to is for these nodes.
    fn fulfils(&self, selector: Option<&LabelSelector>) -> bool {
        selector.is_none_or(|selector| {
            let (_, mut further) = parts(selector);
            further.all(|one| self.1.requirements.iter().any(|held| one.is(held)))
        })
    }
}

/// The signature of each node.
pub(crate) struct SignatureOf;
impl Query for SignatureOf {
    type Key = Key;
    type Value = Option<Signature>;
    fn compute(view: &View<'_>, node: &Key) -> Option<Signature> {
        let meta = view.meta::<kinds::Node>(node)?;
        Some(signature_of(view, &meta.labels))
    }
}

fn signature_of(view: &View<'_>, labels: &Labels) -> Signature {
    let asked_keys = view.get::<AskedKeys>(&());
    let is_asked = |(key, value): &(&String, &String)| {
        asked_keys.contains(*key)
            && view.has::<Facets>(&Facet::Label((*key).clone(), (*value).clone()))
    };
    let asked = labels.iter().filter(is_asked);
    let labels_asked = asked.map(|(key, value)| (key.clone(), value.clone()));
    let requirements = view.get::<Requirements>(&());
    let requirements = requirements.iter();
    let held = requirements.filter(|requirement| requirement.holds(labels));
    Signature::new(SignatureParts {
        labels: labels_asked.collect(),
        requirements: held.cloned().collect(),
    })
}

/// The labels that selectors want with certain values.
pub(crate) struct AskedKeys;
impl Query for AskedKeys {
    type Key = ();
    type Value = Arc<BTreeSet<String>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<BTreeSet<String>> {
        let first = Facet::Label(String::new(), String::new());
        let facets = view.keys_in::<Facets>(&first, &Facet::Vrf(String::new()));
        let keys = facets.iter().filter_map(|facet| match facet {
            Facet::Label(key, _) => Some(key.clone()),
            Facet::Vrf(_)
            | Facet::Everywhere
            | Facet::Loopbacks
            | Facet::MirrorTargets
            | Facet::MirrorSelectors
            | Facet::Requirement(_)
            | Facet::End => None,
        });
        Arc::new(keys.collect())
    }
}

/// The further requirements of all selectors.
pub(crate) struct Requirements;
impl Query for Requirements {
    type Key = ();
    type Value = Arc<Vec<LabelRequirement>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<LabelRequirement>> {
        let first = Facet::Requirement(LabelRequirement {
            key: String::new(),
            operator: LabelOperator::In,
            values: Vec::new(),
        });
        let facets = view.keys_in::<Facets>(&first, &Facet::End);
        let requirements = facets.iter().filter_map(|facet| match facet {
            Facet::Requirement(requirement) => Some(requirement.clone()),
            Facet::Label(..)
            | Facet::Vrf(_)
            | Facet::Everywhere
            | Facet::Loopbacks
            | Facet::MirrorTargets
            | Facet::MirrorSelectors
            | Facet::End => None,
        });
        Arc::new(requirements.collect())
    }
}

/// The signature of a node that is there.
pub(crate) fn signature(view: &View<'_>, node: &Key) -> Option<Signature> {
    view.get::<SignatureOf>(node)
}

/// A node of a signature.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    /// When it was created; the older is served first.
    pub(crate) age: (bool, Option<String>),
    pub(crate) name: Arc<str>,
}

impl Member {
    /// The key of the node.
    pub(crate) fn key(&self) -> Key {
        Key {
            namespace: None,
            name: Arc::clone(&self.name),
        }
    }
}

/// The nodes of each signature, by name.
pub(crate) struct NodesBySignature;
impl Index for NodesBySignature {
    type Source = Key;
    type Key = Signature;
    type Item = Member;
    fn sources(view: &View<'_>) -> Vec<Key> {
        view.keys::<kinds::Node>().to_vec()
    }
    fn entries(view: &View<'_>, node: &Key) -> Vec<(Signature, Member)> {
        let Some((signature, meta)) = signature(view, node).zip(view.meta::<kinds::Node>(node))
        else {
            return Vec::new();
        };
        let created = meta.created.clone();
        let member = Member {
            age: (created.is_none(), created),
            name: Arc::clone(&node.name),
        };
        vec![(signature, member)]
    }
}

/// Signatures by the labels that they have; all of them under none.
pub(crate) struct SignaturesByLabel;
impl Index for SignaturesByLabel {
    type Source = Signature;
    type Key = Option<(String, String)>;
    type Item = Signature;
    fn sources(view: &View<'_>) -> Vec<Signature> {
        view.all_keys::<NodesBySignature>().to_vec()
    }
    fn entries(_: &View<'_>, signature: &Signature) -> Vec<(Self::Key, Signature)> {
        let labels = signature.1.labels.iter().cloned().map(Some);
        let labels = labels.chain([None]);
        labels.map(|label| (label, signature.clone())).collect()
    }
}

/// Whether a selector of an object in effect matches no node, where there are nodes.
pub(crate) struct SelectsNoNode;
impl Query for SelectsNoNode {
    type Key = LabelSelector;
    type Value = bool;
    fn compute(view: &View<'_>, selector: &LabelSelector) -> bool {
        let (label, _) = parts(selector);
        let keys = match label {
            Some((key, values)) => {
                let keys = values.iter();
                keys.map(|value| Some((key.clone(), value.clone())))
                    .collect()
            }
            None => vec![None],
        };
        let is_fulfilled = |signature: &Signature| signature.fulfils(Some(selector));
        let matches = |key: &_| view.who::<SignaturesByLabel>(key).iter().any(is_fulfilled);
        !view.keys::<kinds::Node>().is_empty() && !keys.iter().any(matches)
    }
}

/// Of what is for nodes with a signature, all that is of a sort.
pub(super) fn selected<T>(
    view: &View<'_>,
    signature: &Signature,
    of_sort: impl Fn(&Selected) -> Option<T>,
) -> Vec<T> {
    let labels = signature.1.labels.iter();
    let facets = labels.map(|(key, value)| Facet::Label(key.clone(), value.clone()));
    let mut selected = Vec::new();
    for facet in facets.chain([Facet::Everywhere]) {
        let items = view.who::<Facets>(&facet);
        selected.extend(items.iter().filter_map(|one| {
            let of_sort = of_sort(one)?;
            signature.fulfils(one.selector()).then_some(of_sort)
        }));
    }
    selected
}
