//! Addresses that are allocated to no newcomer although no object that is served has them.

use std::{collections::BTreeSet, net::IpAddr};

use api::{tcaas::NodeNetworkConfigSpec, value::Prefix};

use crate::{
    lower::low_level::StoredByOwner,
    memo::Index,
    snapshot::{Key, Kind, ObjectRef, kinds},
    view::View,
};

/// The addresses that configs of nodes have or announce, that objects announce whose owner cannot be read or is going, and next hops,
/// which routers have without a declaration.
pub(crate) struct Withheld;
impl Index for Withheld {
    type Source = ObjectRef;
    type Key = IpAddr;
    type Item = ();
    fn sources(view: &View<'_>) -> Vec<ObjectRef> {
        let mut sources = view.all::<kinds::NodeNetworkConfig>();
        sources.extend(view.all::<kinds::VrfRouteConfiguration>());
        sources.extend(view.all::<kinds::Destination>());
        sources
    }
    fn entries(view: &View<'_>, source: &ObjectRef) -> Vec<(IpAddr, ())> {
        let key = &source.key;
        let addresses = if source.kind == Kind::NodeNetworkConfig {
            let config = view.spec::<kinds::NodeNetworkConfig>(key);
            config.map(|config| in_config(&config))
        } else if source.kind == Kind::VrfRouteConfiguration {
            Some(announced_without_owner(view, key))
        } else {
            next_hops(view, key)
        };
        let addresses = addresses.into_iter().flatten();
        addresses.map(|address| (address, ())).collect()
    }
}

/// The withheld addresses in some prefixes.
pub(super) fn within(view: &View<'_>, prefixes: &[Prefix]) -> BTreeSet<IpAddr> {
    let mut all = BTreeSet::new();
    for prefix in prefixes {
        let net = prefix.net();
        let inside = view.keys_in::<Withheld>(&net.network(), &net.broadcast());
        all.extend(inside.iter());
    }
    all
}

/// The host routes that the stored objects of an intent announce.
pub(super) fn announced(view: &View<'_>, subject: &ObjectRef) -> Vec<IpAddr> {
    let stored = view.who::<StoredByOwner>(&Some(subject.clone()));
    let routing = stored.iter();
    let routing = routing.filter(|one| one.kind == Kind::VrfRouteConfiguration);
    routing
        .flat_map(|one| announced_in(view, &one.key))
        .collect()
}

fn announced_in(view: &View<'_>, key: &Key) -> Vec<IpAddr> {
    let spec = view.spec::<kinds::VrfRouteConfiguration>(key);
    let export = spec.iter().flat_map(|spec| &spec.export);
    export.filter_map(|item| host(item.cidr)).collect()
}

/// What an object announces whose owner is not there.
fn announced_without_owner(view: &View<'_>, key: &Key) -> Vec<IpAddr> {
    let meta = view.meta::<kinds::VrfRouteConfiguration>(key);
    let owner = meta.and_then(|meta| meta.owner.clone());
    match owner.filter(|owner| owner.kind.is_service()) {
        Some(owner) if !view.exists(&owner) => announced_in(view, key),
        Some(_) | None => Vec::new(),
    }
}

fn next_hops(view: &View<'_>, key: &Key) -> Option<Vec<IpAddr>> {
    let destination = view.spec::<kinds::Destination>(key)?;
    let next_hop = destination.next_hop.as_ref()?;
    let ipv4 = next_hop.ipv4.map(IpAddr::V4);
    let ipv6 = next_hop.ipv6.map(IpAddr::V6);
    Some(ipv4.into_iter().chain(ipv6).collect())
}

/// The addresses that a node has itself, and those that it announces in each VRF.
fn in_config(config: &NodeNetworkConfigSpec) -> Vec<IpAddr> {
    let segments = config.layer2s.values();
    let interfaces = segments.filter_map(|segment| segment.host_interface.as_ref());
    let over_the_fabric = interfaces.flat_map(|interface| &interface.addresses);
    let on_devices = config.host_vlans.values().flat_map(|one| &one.addresses);
    let own = over_the_fabric.chain(on_devices).map(|one| one.addr());
    let vrfs = config.fabric_vrfs.values();
    let filters = vrfs.filter_map(|vrf| vrf.evpn_export_filter.as_ref());
    let items = filters.flat_map(|filter| &filter.items);
    let prefixes = items.filter_map(|item| item.matcher.prefix);
    let hosts = prefixes.filter_map(|matcher| host(matcher.prefix));
    own.chain(hosts).collect()
}

/// The one address of a host route.
fn host(prefix: Prefix) -> Option<IpAddr> {
    let net = prefix.net();
    (net.prefix_len() == net.max_prefix_len()).then(|| net.addr())
}
