//! Who refers to what, whether or not anything else is wrong with it.

use api::meta::LabelSelector;

use crate::{
    lower::intent,
    memo::Index,
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

/// The objects that name each VRF and each Network.
pub(crate) struct ReferencesByName;
impl Index for ReferencesByName {
    type Source = ObjectRef;
    type Key = (Kind, String);
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let mut sources = view.all::<kinds::Destination>();
        sources.extend(intent::all(view).iter().cloned());
        sources
    }
    fn entries(view: &View<'_>, source: &ObjectRef) -> Vec<((Kind, String), ())> {
        let name = if source.kind == Kind::Destination {
            let spec = view.spec::<kinds::Destination>(&source.key);
            spec.and_then(|spec| Some((Kind::Vrf, spec.vrf_ref.clone()?)))
        } else {
            intent::network(view, source).map(|name| (Kind::Network, name))
        };
        name.into_iter().map(|name| (name, ())).collect()
    }
}

/// How many objects name a VRF or a Network.
pub(super) fn count(view: &View<'_>, object: &ObjectRef) -> u32 {
    let users = view.who::<ReferencesByName>(&(object.kind, object.key.name.to_string()));
    u32::try_from(users.len()).unwrap_or(u32::MAX)
}

/// The selectors of Destinations that objects have. Many have the same one, which is asked once.
pub(crate) struct SelectorsInUse;
impl Index for SelectorsInUse {
    type Source = ObjectRef;
    type Key = LabelSelector;
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        intent::all(view).to_vec()
    }
    fn entries(view: &View<'_>, source: &ObjectRef) -> Vec<(LabelSelector, ())> {
        let selector = intent::destinations(view, source);
        let selector = selector.filter(|selector| selector.check().is_ok());
        selector
            .into_iter()
            .map(|selector| (selector, ()))
            .collect()
    }
}

/// How many objects select each Destination, by selector.
pub(crate) struct SelectionsByDestination;
impl Index for SelectionsByDestination {
    type Source = LabelSelector;
    type Key = Key;
    type Item = u32;
    fn sources(view: &View<'_>) -> Vec<LabelSelector> {
        view.all_keys::<SelectorsInUse>().to_vec()
    }
    fn entries(view: &View<'_>, selector: &LabelSelector) -> Vec<(Key, u32)> {
        let users = view.who::<SelectorsInUse>(selector).len();
        let users = u32::try_from(users).unwrap_or(u32::MAX);
        let chosen = view.destinations(selector);
        chosen.iter().map(|key| (key.clone(), users)).collect()
    }
}

/// How many objects select a Destination.
pub(super) fn selections(view: &View<'_>, key: &Key) -> u32 {
    let users = view.who::<SelectionsByDestination>(key);
    users
        .iter()
        .fold(0, |sum, users| sum.saturating_add(*users))
}
