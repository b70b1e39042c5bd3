//! What stages read: objects by kind and name, in parts, and what other stages made of them.

use std::{marker::PhantomData, sync::Arc};

use api::{meta::LabelSelector, selvedge::SettingsSpec, tcaas::NetworkSpec, value::Vni};

pub(crate) use crate::memo::View;
use crate::{
    last_good,
    lower::{self, ResolvedVrf},
    memo::{Input, Part, Parts, Query, Registered},
    problem::{self, Problem},
    snapshot::{Key, Kind, Meta, Object, ObjectRef, Resource, Visitor, age, kinds, visit},
};

impl<R: Resource + Registered> Input for R {
    type Key = Key;
    type Value = Object<R::Spec, R::Status>;

    fn differing(before: &Self::Value, now: &Self::Value) -> Parts {
        let Object { meta, spec, status } = before;
        [*meta != now.meta, *spec != now.spec, *status != now.status]
    }
}

/// What Kubernetes knows about objects of a kind.
struct MetaPart<R>(PhantomData<R>);
impl<R: Resource + Registered> Part for MetaPart<R> {
    type Of = R;
    type Value = Arc<Meta>;
    const PART: usize = 0;
    fn of(object: &Object<R::Spec, R::Status>) -> Arc<Meta> {
        Arc::clone(&object.meta)
    }
}

/// What authors of a kind want.
struct SpecPart<R>(PhantomData<R>);
impl<R: Resource + Registered> Part for SpecPart<R> {
    type Of = R;
    type Value = Arc<R::Spec>;
    const PART: usize = 1;
    fn of(object: &Object<R::Spec, R::Status>) -> Arc<R::Spec> {
        Arc::clone(&object.spec)
    }
}

/// What was reported about objects of a kind.
struct StatusPart<R>(PhantomData<R>);
impl<R: Resource + Registered> Part for StatusPart<R> {
    type Of = R;
    type Value = Option<Arc<R::Status>>;
    const PART: usize = 2;
    fn of(object: &Object<R::Spec, R::Status>) -> Option<Arc<R::Status>> {
        object.status.clone()
    }
}

/// What is known of an object that could not be read, or only in part.
#[derive(Clone, Debug)]
pub(crate) struct Unread {
    /// What Kubernetes knows about it, where it is among no others.
    pub(crate) meta: Option<Arc<Meta>>,
    /// What is wrong with it.
    pub(crate) problems: Arc<Vec<Problem>>,
}

/// Objects that could not be read, or only in part.
pub(crate) struct Unreadable;
impl Input for Unreadable {
    type Key = ObjectRef;
    type Value = Unread;
    fn differing(before: &Unread, now: &Unread) -> Parts {
        let Unread { meta, problems } = before;
        [*meta != now.meta, *problems != now.problems, false]
    }
}

/// What Kubernetes knows about objects that could not be read.
struct UnreadMetaPart;
impl Part for UnreadMetaPart {
    type Of = Unreadable;
    type Value = Option<Arc<Meta>>;
    const PART: usize = 0;
    fn of(unread: &Unread) -> Option<Arc<Meta>> {
        unread.meta.clone()
    }
}

/// What is wrong with them.
struct UnreadProblemsPart;
impl Part for UnreadProblemsPart {
    type Of = Unreadable;
    type Value = Arc<Vec<Problem>>;
    const PART: usize = 1;
    fn of(unread: &Unread) -> Arc<Vec<Problem>> {
        Arc::clone(&unread.problems)
    }
}

/// The objects of which nothing but the metadata could be read.
pub(crate) struct AllUnread;
impl Query for AllUnread {
    type Key = ();
    type Value = Arc<Vec<ObjectRef>>;
    fn compute(view: &View<'_>, (): &()) -> Arc<Vec<ObjectRef>> {
        let subjects = view.keys::<Unreadable>();
        let unread = subjects.iter();
        // One that is in effect as it last was is there for all others.
        let unread = unread.filter(|subject| {
            view.unread_meta(subject).is_some() && view.meta_of(subject).is_none()
        });
        Arc::new(unread.cloned().collect())
    }
}

/// The settings in effect: those of the object named `default`. Without one it is what the last revision has: a deletion does not mean
/// the defaults. Where there is no revision either, it is the defaults.
pub(crate) struct Settings;
impl Query for Settings {
    type Key = ();
    type Value = Arc<SettingsSpec>;
    fn compute(view: &View<'_>, (): &()) -> Arc<SettingsSpec> {
        let spec = view.spec::<kinds::Settings>(&Key::named("default"));
        let spec = spec.or_else(|| last_good::settings(view));
        spec.unwrap_or_default()
    }
}

/// An object with its age.
pub(crate) struct Aged<R: Resource> {
    pub(crate) key: Key,
    pub(crate) meta: Arc<Meta>,
    pub(crate) spec: Arc<R::Spec>,
}

impl View<'_> {
    /// What Kubernetes knows about an object.
    pub(crate) fn meta<R: Resource + Registered>(&self, key: &Key) -> Option<Arc<Meta>> {
        self.part::<MetaPart<R>>(key)
    }

    /// What the author of an object wants.
    pub(crate) fn spec<R: Resource + Registered>(&self, key: &Key) -> Option<Arc<R::Spec>> {
        self.part::<SpecPart<R>>(key)
    }

    /// What was reported about an object.
    pub(crate) fn status<R: Resource + Registered>(&self, key: &Key) -> Option<Arc<R::Status>> {
        self.part::<StatusPart<R>>(key).flatten()
    }

    /// What Kubernetes knows about an object whose kind is known only now.
    pub(crate) fn meta_of(&self, subject: &ObjectRef) -> Option<Arc<Meta>> {
        struct OfKind<'a, 'm>(&'a View<'m>);
        impl Visitor for OfKind<'_, '_> {
            type Out = Option<Arc<Meta>>;
            fn visit<R: Resource + Registered>(self, key: &Key) -> Self::Out {
                self.0.meta::<R>(key)
            }
        }
        visit(subject, OfKind(self))
    }

    /// Whether an object is there and can be read.
    pub(crate) fn exists(&self, subject: &ObjectRef) -> bool {
        self.meta_of(subject).is_some()
    }

    /// All objects of a kind, as references.
    pub(crate) fn all<R: Resource + Registered>(&self) -> Vec<ObjectRef> {
        let keys = self.keys::<R>();
        let subject = |key: &Key| ObjectRef {
            kind: R::KIND,
            key: key.clone(),
        };
        keys.iter().map(subject).collect()
    }

    /// All objects of a kind in the order in which they are served: the older first, then by name.
    pub(crate) fn by_age<R: Resource + Registered>(&self) -> Vec<Aged<R>> {
        let keys = self.keys::<R>();
        let object = |key: &Key| {
            let (meta, spec) = (self.meta::<R>(key)?, self.spec::<R>(key)?);
            let key = key.clone();
            Some(Aged { key, meta, spec })
        };
        let mut objects: Vec<Aged<R>> = keys.iter().filter_map(object).collect();
        objects.sort_by(|a, b| (age(&a.meta), &a.key).cmp(&(age(&b.meta), &b.key)));
        objects
    }

    /// What is wrong with an object that could not be read, or only in part.
    pub(crate) fn unreadable(&self, subject: &ObjectRef) -> Arc<Vec<Problem>> {
        self.part::<UnreadProblemsPart>(subject).unwrap_or_default()
    }

    /// What Kubernetes knows about an object that could not be read.
    pub(crate) fn unread_meta(&self, subject: &ObjectRef) -> Option<Arc<Meta>> {
        self.part::<UnreadMetaPart>(subject).flatten()
    }

    /// What Kubernetes knows about an object, whether or not it could be read.
    pub(crate) fn stored_meta(&self, subject: &ObjectRef) -> Option<Arc<Meta>> {
        let meta = self.meta_of(subject);
        // Hardly ever is there one that could not be read.
        if meta.is_some() || self.get::<AllUnread>(&()).is_empty() {
            return meta;
        }
        self.unread_meta(subject)
    }

    /// Why an object that another refers to is not in effect: it does not exist, cannot be read, or something is wrong with it.
    pub(crate) fn missing(&self, target: ObjectRef) -> problem::Kind {
        let unreadable = self.unreadable(&target);
        let mut unreadable = unreadable.iter();
        if unreadable.any(|problem| matches!(problem.kind, problem::Kind::Unreadable { .. })) {
            problem::Kind::UnreadableReference { target }
        } else if self.exists(&target) {
            problem::Kind::ReferenceNotInEffect { target }
        } else {
            problem::Kind::MissingReference { target }
        }
    }

    /// The settings in effect.
    pub(crate) fn settings(&self) -> Arc<SettingsSpec> {
        self.get::<Settings>(&())
    }

    /// A VRF that can be used.
    pub(crate) fn vrf(&self, key: &Key) -> Option<Arc<ResolvedVrf>> {
        self.get::<lower::vrf::ResolvedOf>(key)
    }

    /// The Destinations that a selector chooses, by name.
    pub(crate) fn destinations(&self, selector: &LabelSelector) -> Arc<Vec<Key>> {
        self.get::<lower::reach::Chosen>(selector)
    }

    /// A Network that can be used.
    pub(crate) fn network(&self, name: &str) -> Option<Arc<NetworkSpec>> {
        let spec = self.spec::<kinds::Network>(&Key::named(name))?;
        lower::values::of_network(&spec).is_empty().then_some(spec)
    }

    /// The VNI of a Network.
    pub(crate) fn network_vni(&self, network: &str) -> Option<Vni> {
        self.get::<lower::network::VniOf>(&network.to_owned())
    }
}

/// A reference to an object of a kind.
pub(crate) fn reference(kind: Kind, key: &Key) -> ObjectRef {
    ObjectRef {
        kind,
        key: key.clone(),
    }
}
