//! What a stored revision compiles into: the configs that nodes have in it, whatever objects say now.

use std::{collections::BTreeMap, sync::Arc};

use api::tcaas::{NetworkConfigRevisionSpec, RevisionEntry};
use serde::de::DeserializeOwned;

use crate::{
    Compilation, compile,
    node::NodeConfig,
    snapshot::{Key, Meta, Object, Objects, Snapshot},
};

/// The configs of nodes as a revision has them. Nodes, their labels and their allocations are as they are now, and so are mirrors
/// and the router of the host, which are no part of a revision: `compilation` is that of all objects as they are now.
pub fn nodes(
    revision: &NetworkConfigRevisionSpec,
    now: &Snapshot,
    compilation: &Compilation,
) -> BTreeMap<String, Arc<NodeConfig>> {
    let mut nodes = compile(&restored(revision, now)).nodes;
    for (name, config) in &mut nodes {
        let Some(of_now) = compilation.nodes.get(name) else {
            continue;
        };
        let config = Arc::make_mut(config);
        config.mirrors = of_now.mirrors.clone();
        config.host_router.clone_from(&of_now.host_router);
        for (object, addresses) in &mut config.addresses {
            if let Some(allocated) = of_now.addresses.get(object) {
                addresses.clone_from(allocated);
            }
        }
    }
    nodes
}

/// The objects of a revision as if they had been written by hand.
fn restored(revision: &NetworkConfigRevisionSpec, now: &Snapshot) -> Snapshot {
    let NetworkConfigRevisionSpec {
        revision: _,
        // What they have is in the lists.
        parts: _,
        layer2,
        vrf,
        bgp,
        underlay,
        l3vni,
        l2vni,
        passthrough,
        settings,
    } = revision;
    let layer2 = layer2.iter().map(|one| (named(&one.name), &one.spec));
    let vrf = vrf.iter().map(|one| (named(&one.name), &one.spec));
    let bgp = bgp.iter().map(|one| (named(&one.name), &one.spec));
    let settings = settings.iter().map(|spec| (named("default"), spec));
    Snapshot {
        nodes: now.nodes.clone(),
        node_network_configs: now.node_network_configs.clone(),
        node_network_statuses: now.node_network_statuses.clone(),
        ip_address_claims: now.ip_address_claims.clone(),
        ip_addresses: now.ip_addresses.clone(),
        layer2_network_configurations: as_they_were(layer2, &now.layer2_network_configurations),
        vrf_route_configurations: as_they_were(vrf, &now.vrf_route_configurations),
        bgp_peerings: as_they_were(bgp, &now.bgp_peerings),
        settings: as_they_were(settings, &now.settings),
        underlays: read(underlay, &now.underlays),
        l3vnis: read(l3vni, &now.l3vnis),
        l2vnis: read(l2vni, &now.l2vnis),
        l3passthroughs: read(passthrough, &now.l3passthroughs),
        ..Snapshot::default()
    }
}

fn named(name: &str) -> Key {
    Key::named(name)
}

/// Objects with these specs, as old as they are, and without owners: what they were made from does not count.
fn as_they_were<'a, S: Clone + 'a, T>(
    specs: impl Iterator<Item = (Key, &'a S)>,
    now: &Objects<S, T>,
) -> Objects<S, T> {
    let object = |(key, spec): (Key, &S)| {
        let meta = now.get(&key).map(|object| Meta::clone(&object.meta));
        let object = Object {
            meta: Arc::new(Meta {
                owner: None,
                ..meta.unwrap_or_default()
            }),
            spec: Arc::new(spec.clone()),
            status: None,
        };
        (key, object)
    };
    specs.map(object).collect()
}

fn read<S: DeserializeOwned + Clone, T>(
    entries: &[RevisionEntry],
    now: &Objects<S, T>,
) -> Objects<S, T> {
    let specs = entries.iter().filter_map(|entry| {
        let key = Key {
            namespace: entry.namespace.as_deref().map(Into::into),
            name: entry.name.as_str().into(),
        };
        // It was written from a spec of this type.
        let spec = serde_json::from_value::<S>(entry.spec.clone()).ok()?;
        Some((key, spec))
    });
    let specs: Vec<(Key, S)> = specs.collect();
    as_they_were(specs.iter().map(|(key, spec)| (key.clone(), spec)), now)
}
