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

/// The resource of a kind.
pub(crate) fn of(kind: Kind) -> ApiResource {
    let (group, version) = kind.group_version();
    let name = kind.to_string();
    let gvk = GroupVersionKind::gvk(group, version, &name);
    match PLURALS.get(&(group.to_owned(), name)) {
        Some(plural) => ApiResource::from_gvk_with_plural(&gvk, plural),
        None => unreachable!("{kind} is in no definition"),
    }
}

/// The endpoint of all objects of a kind.
pub(crate) fn all(client: &Client, kind: Kind) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &of(kind))
}

/// The endpoint of one object of a kind.
pub(crate) fn at(client: &Client, kind: Kind, key: &Key) -> Api<DynamicObject> {
    match &key.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &of(kind)),
        None => all(client, kind),
    }
}
