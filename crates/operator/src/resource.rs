//! How each kind is reached at the API server.

use std::{collections::BTreeMap, sync::LazyLock};

use compiler::Kind;
use kube::{
    Api, Client,
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
};

use compiler::snapshot::Key;

/// Plural names by group and kind, as our own definitions give them; those of others are written down.
static PLURALS: LazyLock<BTreeMap<(String, String), String>> = LazyLock::new(|| {
    let definitions = api::crds::all()
        .into_iter()
        .map(|definition| definition.spec);
    let ours = definitions.map(|spec| ((spec.group, spec.names.kind), spec.names.plural));
    let borrowed = [
        (Kind::Node, "nodes"),
        (Kind::IpAddressClaim, "ipaddressclaims"),
        (Kind::IpAddress, "ipaddresses"),
    ];
    let borrowed = borrowed.map(|(kind, plural)| {
        let group = kind.group_version().0.to_owned();
        ((group, kind.to_string()), plural.to_owned())
    });
    ours.chain(borrowed).collect()
});

/// The versions of a kind that a cluster may serve, the one that is preferred first.
pub(crate) fn versions(kind: Kind) -> impl Iterator<Item = &'static str> {
    let (_, newest) = kind.group_version();
    std::iter::once(newest).chain(kind.older_versions().iter().copied())
}

/// The resource of a kind.
pub(crate) fn of(kind: Kind) -> ApiResource {
    in_version(kind, kind.group_version().1)
}

fn in_version(kind: Kind, version: &str) -> ApiResource {
    let (group, _) = kind.group_version();
    let name = kind.to_string();
    let gvk = GroupVersionKind::gvk(group, version, &name);
    match PLURALS.get(&(group.to_owned(), name)) {
        Some(plural) => ApiResource::from_gvk_with_plural(&gvk, plural),
        None => unreachable!("{kind} is in no definition"),
    }
}

/// The endpoint of all objects of a kind in one of its versions.
pub(crate) fn all(client: &Client, kind: Kind, version: &str) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &in_version(kind, version))
}

/// The endpoint of one object of a kind.
pub(crate) fn at(client: &Client, kind: Kind, key: &Key) -> Api<DynamicObject> {
    match &key.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &of(kind)),
        None => Api::all_with(client.clone(), &of(kind)),
    }
}
