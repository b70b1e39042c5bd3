//! Low-level objects: what intents become, and what people write themselves.

use std::{collections::BTreeMap, fmt, sync::Arc};

use api::{
    meta::LabelSelector,
    tcaas::{
        BgpPeeringSpec, Layer2NetworkConfigurationSpec, MirrorSelectorSpec, MirrorTargetSpec,
        VrfRouteConfigurationSpec,
    },
};
use serde::Serialize;

use super::{
    filter_lines,
    scope::{Scope, Scoped, running},
    values,
};
use crate::{
    fingerprint::{self, Digest},
    last_good::InRevision,
    memo::{Index, Query, Registered},
    names,
    problem::{self, Problem},
    problems,
    snapshot::{Key, Kind, Meta, ObjectRef, Resource, kinds},
    view::{AllUnread, View},
};

/// A low-level object: generated from an intent, or written by a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LowLevel<S> {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// The intent it is generated from, or the object itself.
    pub source: ObjectRef,
    /// When the source was created; decides who is older.
    #[serde(skip)]
    pub created: Option<String>,
    /// What tells the source from a later object of the same name.
    #[serde(skip)]
    pub uid: Option<String>,
    /// What the nodes get.
    pub spec: S,
    /// Fingerprint of that.
    #[serde(skip)]
    pub(crate) digest: Digest,
}

impl<S: Serialize> LowLevel<S> {
    fn new(source: &ObjectRef, meta: &Meta, name: String, spec: S) -> Self {
        Self {
            name,
            source: source.clone(),
            created: meta.created.clone(),
            uid: meta.uid.clone(),
            digest: fingerprint::of(&spec),
            spec,
        }
    }
}

impl<S> LowLevel<S> {
    /// Whether it is generated from an intent.
    pub fn is_generated(&self) -> bool {
        !is_low_level(self.source.kind)
    }

    /// Whether it is an intent's: generated from one now, or named as those are. A revision does not say who wrote its objects.
    pub(crate) fn is_of_intent(&self) -> bool {
        self.is_generated() || names::is_generated(&self.name)
    }

    /// Sorts older objects first, then by name.
    pub fn order(&self) -> (bool, Option<&str>, &str) {
        (
            self.created.is_none(),
            self.created.as_deref(),
            self.name.as_str(),
        )
    }

    /// Sorts older objects first.
    pub fn age(&self) -> (bool, Option<&str>) {
        (self.created.is_none(), self.created.as_deref())
    }
}

/// What the author of a low-level object wants.
pub trait LowLevelSpec: Serialize + Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The kind of object.
    const KIND: Kind;
    /// The object among those of all kinds.
    fn wrap(object: Arc<LowLevel<Self>>) -> LowLevelObject;
    /// The object, if it is of this kind.
    fn of(object: &LowLevelObject) -> Option<&Arc<LowLevel<Self>>>;
    /// The nodes it is for.
    fn node_selector(&self) -> Option<&LabelSelector>;
}

macro_rules! low_level {
    ($($variant:ident: $kind:ident => $spec:ty;)*) => {
        /// A low-level object of any kind.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum LowLevelObject {
            $(
                #[doc = concat!("Of the kind `", stringify!($kind), "`.")]
                $variant(Arc<LowLevel<$spec>>),
            )*
        }

        /// The kinds that intents become.
        const KINDS: [Kind; [$(Kind::$kind),*].len()] = [$(Kind::$kind),*];

        $(
            impl LowLevelSpec for $spec {
                const KIND: Kind = Kind::$kind;
                fn wrap(object: Arc<LowLevel<Self>>) -> LowLevelObject {
                    LowLevelObject::$variant(object)
                }
                fn of(object: &LowLevelObject) -> Option<&Arc<LowLevel<Self>>> {
                    if let LowLevelObject::$variant(object) = object {
                        Some(object)
                    } else {
                        None
                    }
                }
                fn node_selector(&self) -> Option<&LabelSelector> {
                    NodeSelector::node_selector(self)
                }
            }
        )*

        impl LowLevelObject {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$variant(_) => Kind::$kind,)* }
            }

            /// Its name.
            pub fn name(&self) -> &str {
                match self { $(Self::$variant(object) => &object.name,)* }
            }

            /// The intent it is generated from, or the object itself.
            pub fn source(&self) -> &ObjectRef {
                match self { $(Self::$variant(object) => &object.source,)* }
            }

            /// What tells the source from a later object of the same name.
            pub fn uid(&self) -> Option<&str> {
                match self { $(Self::$variant(object) => object.uid.as_deref(),)* }
            }

            /// Whether it is generated from an intent.
            pub fn is_generated(&self) -> bool {
                !is_low_level(self.source().kind)
            }

            /// Sorts older objects first.
            pub(crate) fn age(&self) -> (bool, Option<&str>) {
                match self { $(Self::$variant(object) => object.age(),)* }
            }

            /// Fingerprint of what the nodes get.
            pub(crate) fn digest(&self) -> Digest {
                match self { $(Self::$variant(object) => object.digest,)* }
            }

            /// The nodes it is for.
            pub fn node_selector(&self) -> Option<&LabelSelector> {
                match self { $(Self::$variant(object) => LowLevelSpec::node_selector(&object.spec),)* }
            }

            /// What it configures, and no other may where they meet.
            pub(crate) fn scopes(&self) -> Vec<Scope> {
                match self { $(Self::$variant(object) => Scoped::scopes(&object.spec),)* }
            }

            /// What the nodes get, as it is written.
            pub fn spec(&self) -> serde_json::Value {
                let spec = match self { $(Self::$variant(object) => serde_json::to_value(&object.spec),)* };
                spec.unwrap_or_else(|error| unreachable!("an object that was read from JSON is JSON: {error}"))
            }

        }

        /// Whether the stored object of the same name wants the same.
        pub(crate) fn is_stored(view: &View<'_>, object: &LowLevelObject) -> bool {
            match object {
                $(LowLevelObject::$variant(object) => {
                    let stored = view.spec::<kinds::$kind>(&Key::named(&object.name));
                    stored.is_some_and(|stored| *stored == object.spec)
                })*
            }
        }

        /// All low-level objects as they are stored, as references.
        fn stored_objects(view: &View<'_>) -> Vec<ObjectRef> {
            let mut all = Vec::new();
            $(all.extend(view.all::<kinds::$kind>());)*
            all
        }

        /// A low-level object as it is stored, as that of a source.
        pub(super) fn stored(view: &View<'_>, subject: &ObjectRef, source: &ObjectRef) -> Option<LowLevelObject> {
            $(
                if subject.kind == Kind::$kind {
                    return stored_as::<kinds::$kind>(view, &subject.key, source);
                }
            )*
            None
        }
    };
}

low_level! {
    Layer2: Layer2NetworkConfiguration => Layer2NetworkConfigurationSpec;
    Vrf: VrfRouteConfiguration => VrfRouteConfigurationSpec;
    Bgp: BgpPeering => BgpPeeringSpec;
    MirrorTarget: MirrorTarget => MirrorTargetSpec;
    MirrorSelector: MirrorSelector => MirrorSelectorSpec;
}

impl LowLevelObject {
    /// The segment, if it is one.
    pub(crate) fn layer2(&self) -> Option<&Arc<LowLevel<Layer2NetworkConfigurationSpec>>> {
        LowLevelSpec::of(self)
    }

    /// The routing, if it is some.
    pub(crate) fn vrf(&self) -> Option<&Arc<LowLevel<VrfRouteConfigurationSpec>>> {
        LowLevelSpec::of(self)
    }
}

impl LowLevelObject {
    /// The rule of a mirror, if it is one.
    pub(crate) fn mirror_selector(&self) -> Option<&Arc<LowLevel<MirrorSelectorSpec>>> {
        LowLevelSpec::of(self)
    }
}

/// Whether objects of this kind are what intents become.
pub fn is_low_level(kind: Kind) -> bool {
    KINDS.contains(&kind)
}

/// The nodes that an object is for.
trait NodeSelector {
    fn node_selector(&self) -> Option<&LabelSelector>;
}

impl NodeSelector for Layer2NetworkConfigurationSpec {
    fn node_selector(&self) -> Option<&LabelSelector> {
        self.node_selector.as_ref()
    }
}

impl NodeSelector for VrfRouteConfigurationSpec {
    fn node_selector(&self) -> Option<&LabelSelector> {
        self.node_selector.as_ref()
    }
}

impl NodeSelector for BgpPeeringSpec {
    fn node_selector(&self) -> Option<&LabelSelector> {
        self.node_selector.as_ref()
    }
}

/// Mirrors are wherever their source is.
impl NodeSelector for MirrorTargetSpec {
    fn node_selector(&self) -> Option<&LabelSelector> {
        None
    }
}

impl NodeSelector for MirrorSelectorSpec {
    fn node_selector(&self) -> Option<&LabelSelector> {
        None
    }
}

fn stored_as<R>(view: &View<'_>, key: &Key, source: &ObjectRef) -> Option<LowLevelObject>
where
    R: Resource + Registered,
    R::Spec: LowLevelSpec,
{
    let (spec, meta) = (view.spec::<R>(key)?, view.stored_meta(source)?);
    let spec = R::Spec::clone(&spec);
    let object = LowLevel::new(source, &meta, key.name.to_string(), spec);
    Some(LowLevelSpec::wrap(Arc::new(object)))
}

/// The object that a source becomes under a name.
pub(super) fn generated<S: LowLevelSpec>(
    source: &ObjectRef,
    meta: &Meta,
    name: String,
    spec: S,
) -> LowLevelObject {
    S::wrap(Arc::new(LowLevel::new(source, meta, name, spec)))
}

/// Low-level objects by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LowLevelObjects(BTreeMap<(Kind, String), LowLevelObject>);

impl LowLevelObjects {
    /// The objects of a kind, by name.
    pub fn of<S: LowLevelSpec>(&self) -> impl Iterator<Item = (&String, &Arc<LowLevel<S>>)> {
        let first = (S::KIND, String::new());
        let of_kind = self.0.range(first..);
        let of_kind = of_kind.take_while(|((kind, _), _)| *kind == S::KIND);
        of_kind.filter_map(|((_, name), object)| Some((name, S::of(object)?)))
    }

    /// One object.
    pub fn get<S: LowLevelSpec>(&self, name: &str) -> Option<&Arc<LowLevel<S>>> {
        self.any(S::KIND, name).and_then(S::of)
    }

    /// One object of a kind that is known only now.
    pub fn any(&self, kind: Kind, name: &str) -> Option<&LowLevelObject> {
        self.0.get(&(kind, name.to_owned()))
    }

    /// All objects, by kind and name.
    pub fn iter(&self) -> impl Iterator<Item = &LowLevelObject> {
        self.0.values()
    }

    /// Puts objects in. The first ones are sorted once, which is faster than a search for the place of each.
    pub(crate) fn extend(&mut self, objects: impl Iterator<Item = LowLevelObject>) {
        let named = objects.map(|object| ((object.kind(), object.name().to_owned()), object));
        if self.0.is_empty() {
            self.0 = named.collect();
        } else {
            self.0.extend(named);
        }
    }

    pub(crate) fn remove(&mut self, object: &LowLevelObject) {
        self.0.remove(&(object.kind(), object.name().to_owned()));
    }
}

/// Low-level objects as they are stored, by the intent that they were generated from; under none those that people wrote.
pub(crate) struct StoredByOwner;
impl Index for StoredByOwner {
    type Source = ObjectRef;
    type Key = Option<ObjectRef>;
    type Item = ObjectRef;
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        stored_objects(view)
    }
    fn entries(view: &View<'_>, subject: &ObjectRef) -> Vec<(Option<ObjectRef>, ObjectRef)> {
        let meta = view.meta_of(subject);
        let entry = meta.map(|meta| (meta.owner.clone(), subject.clone()));
        entry.into_iter().collect()
    }
}

/// The low-level objects that people wrote.
pub(crate) fn hand_written(view: &View<'_>) -> Arc<Vec<ObjectRef>> {
    view.who::<StoredByOwner>(&None)
}

/// Whether people wrote low-level objects, whether or not they can be read.
pub(super) fn are_any_hand_written(view: &View<'_>) -> bool {
    let unread = view.get::<AllUnread>(&());
    !hand_written(view).is_empty() || unread.iter().any(|subject| is_low_level(subject.kind))
}

/// A hand-written low-level object, if it is valid by itself: a broken node selector would select nothing without
/// a word. One that is new and ends in an error waits as a whole. One that runs as it is stays, also with a value that an earlier version
/// accepted.
pub(crate) struct HandWritten;
impl Query for HandWritten {
    type Key = ObjectRef;
    type Value = Option<LowLevelObject>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Option<LowLevelObject> {
        let object = stored(view, subject, subject)?;
        let is_own = view.meta_of(subject)?.owner.is_none();
        let is_well = is_own
            && wrong_selector(subject, &object).is_none()
            && (faults(subject, &object).is_empty() || runs_as_it_is(view, &object));
        (is_well && !problems::waits(view, subject)).then_some(object)
    }
}

/// What is wrong with an object that a person wrote, whatever others there are.
pub(crate) fn own_problems(view: &View<'_>, subject: &ObjectRef) -> Vec<Problem> {
    let Some(object) = stored(view, subject, subject) else {
        return Vec::new();
    };
    let mut problems = faults(subject, &object);
    problems.extend(wrong_selector(subject, &object));
    problems
}

fn faults(subject: &ObjectRef, object: &LowLevelObject) -> Vec<Problem> {
    let mut faults = filter_lines::problems(subject, object);
    faults.extend(values::problems(subject, object));
    faults
}

fn wrong_selector(subject: &ObjectRef, object: &LowLevelObject) -> Option<Problem> {
    let error = object.node_selector()?.check().err()?;
    let kind = problem::Kind::InvalidSelector(error);
    Some(Problem::new(subject.clone(), "spec.nodeSelector", kind))
}

/// Whether the last revision has an object as it is. Mirrors are in none.
fn runs_as_it_is(view: &View<'_>, object: &LowLevelObject) -> bool {
    fn is_same<R: InRevision>(view: &View<'_>, object: &LowLevel<R::Spec>) -> bool
    where
        R::Spec: PartialEq,
    {
        running::<R>(view, object).is_some_and(|last| *last == object.spec)
    }
    match object {
        LowLevelObject::Layer2(one) => is_same::<kinds::Layer2NetworkConfiguration>(view, one),
        LowLevelObject::Vrf(one) => is_same::<kinds::VrfRouteConfiguration>(view, one),
        LowLevelObject::Bgp(one) => is_same::<kinds::BgpPeering>(view, one),
        LowLevelObject::MirrorTarget(_) | LowLevelObject::MirrorSelector(_) => false,
    }
}
