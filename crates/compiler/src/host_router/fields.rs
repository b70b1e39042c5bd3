//! Which fields of an object something on a node comes from.

use api::{
    frrk8s::UpdateSource,
    tcaas::node_network_config::{MissingDevice, MissingKind, UnsupportedField},
    value::{Peer, Vni},
};

use super::{
    ReadOf,
    part::{Given, Router},
};
use crate::{snapshot::Key, view::View};

/// The field of an object that a node cannot apply. Nothing if the object does not have it.
pub(crate) fn field_of(
    view: &View<'_>,
    key: &Key,
    UnsupportedField {
        vrf,
        vni,
        peer,
        message: _,
    }: &UnsupportedField,
) -> Option<String> {
    let read = view.get::<ReadOf>(key);
    let router = read.contribution.as_ref()?.part.routers.get(vrf)?;
    if let Some(vni) = vni {
        return of_vni(router, *vni);
    }
    let Some(peer) = peer else {
        return Some(router.asn.at.field(""));
    };
    let mut neighbors = router.neighbors.iter();
    let (_, neighbor) = neighbors.find(|(one, _)| one.to_string() == *peer)?;
    Some(neighbor.given.at.field(""))
}

fn of_vni(router: &Router, vni: Vni) -> Option<String> {
    let l2 = router.evpn.l2vnis.get(&vni);
    let l3 = router.evpn.l3vni.as_ref();
    let l3 = l3.filter(|(own, _)| *own == vni).map(|(_, values)| values);
    Some(l2.or(l3)?.given.at.field(""))
}

/// The field of an object that needs something which the host lacks. Nothing if the object does not need it.
pub(crate) fn field_that_needs(
    view: &View<'_>,
    key: &Key,
    missing: &MissingDevice,
) -> Option<String> {
    let MissingDevice { vrf, kind, name } = missing;
    let read = view.get::<ReadOf>(key);
    let router = read.contribution.as_ref()?.part.routers.get(vrf)?;
    match kind {
        MissingKind::Vrf => Some(router.asn.at.field("vrf")),
        MissingKind::L2vni | MissingKind::L3vni => {
            let vni = name
                .parse()
                .ok()
                .and_then(|number: i64| Vni::try_from(number).ok());
            of_vni(router, vni?)
        }
        MissingKind::Interface => {
            let mut neighbors = router.neighbors.iter();
            neighbors.find_map(|(peer, neighbor)| {
                let is_peer = matches!(peer, Peer::Interface(one) if one.as_str() == name);
                let is_source = |given: &&Given<UpdateSource>| {
                    matches!(&given.value, UpdateSource::Interface(one) if one.as_str() == name)
                };
                let source = neighbor.session.source.as_ref().filter(is_source);
                let source = source.map(|given| given.at.field("sourceaddress"));
                is_peer.then(|| neighbor.given.at.field("interface")).or(source)
            })
        }
    }
}
