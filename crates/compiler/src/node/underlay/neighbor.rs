//! Sessions with the neighbors of an Underlay.

use std::net::IpAddr;

use api::{
    meta::SecretReference,
    openperouter::{
        Bfd as WantedBfd, Contradiction, Neighbor as WantedNeighbor, NeighborFamily, UnderlaySpec,
        UpdateSource,
    },
    tcaas::node_network_config::{AddressFamilyName, Bfd, Neighbor, RemoteAs},
    value::{Peer, Prefix, Seconds},
};

use super::sound::Endpoint;
use crate::snapshot::ObjectRef;

/// Keepalive time of a fabric session that has neither timers nor BFD.
const FABRIC_KEEPALIVE: Seconds = Seconds::new(3);
/// Hold time of a fabric session that has neither timers nor BFD.
const FABRIC_HOLD: Seconds = Seconds::new(9);
/// Time between attempts to connect where the Underlay gives none. FRR's own default is two minutes.
const FABRIC_CONNECT: Seconds = Seconds::new(10);

/// The session with a neighbor.
pub(super) fn neighbor(
    subject: &ObjectRef,
    spec: &UnderlaySpec,
    endpoint: &Endpoint,
    wanted: &WantedNeighbor,
) -> Result<Neighbor, Contradiction> {
    let WantedNeighbor {
        // `remote_as`, `peer`, `timers` and `connect_time` read them, in every spelling.
        asn: _,
        kind: _,
        address: _,
        interface: _,
        hold_time: _,
        keepalive_time: _,
        connect_time: _,
        hold_time_seconds: _,
        keepalive_time_seconds: _,
        connect_time_seconds: _,
        // `idle_parts` names them.
        hostasn: _,
        // `InClearText` has it.
        password: _,
        // `password_secret` reads it.
        password_secret: _,
        port,
        ebgp_multi_hop,
        bfd,
        update_source,
        // `families` reads them, and `idle_parts` names what it leaves out.
        address_families: _,
    } = wanted;
    let (address, interface) = match wanted.peer()? {
        Peer::Address(address) => (Some(address), None),
        Peer::Interface(interface) => (None, Some(interface)),
    };
    let remote_as = RemoteAs::from(wanted.remote_as()?);
    let timers = wanted
        .timers()?
        .map(|timers| (timers.keepalive, timers.hold));
    // A session that nothing else watches notices a dead peer by its timers.
    let timers = timers.or_else(|| bfd.is_none().then_some((FABRIC_KEEPALIVE, FABRIC_HOLD)));
    let connect_time = wanted.connect_time()?.unwrap_or(FABRIC_CONNECT);
    let seconds = |seconds: Seconds| u16::try_from(seconds.get()).unwrap_or(u16::MAX);
    Ok(Neighbor {
        address_families: families(endpoint, address, wanted),
        address,
        interface,
        remote_as,
        port: port
            .and_then(api::value::Port::explicit)
            .filter(|port| *port != 179),
        keepalive_time: timers.map(|(keepalive, _)| seconds(keepalive)),
        hold_time: timers.map(|(_, hold)| seconds(hold)),
        connect_time: Some(seconds(connect_time)),
        // A session over a device is one hop long. `idle_parts` says so.
        ebgp_multi_hop: ebgp_multi_hop.unwrap_or(false) && address.is_some(),
        allow_own_as: remote_as.external || remote_as.asn.is_some_and(|asn| asn != spec.asn),
        bfd: bfd.as_ref().map(bfd_of).transpose()?,
        password_secret: password_secret(subject, wanted)?,
        from_vtep: update_source
            .map(|UpdateSource::Vtep| starts_from_vtep(endpoint, address))
            .transpose()?
            .is_some(),
    })
}

/// Whether a session can start from the VTEP.
fn starts_from_vtep(endpoint: &Endpoint, address: Option<IpAddr>) -> Result<(), Contradiction> {
    let address = address.ok_or(Contradiction::Needs("updateSource", "address"))?;
    if !endpoint.is_any() {
        return Err(Contradiction::Needs("updateSource", "evpn.vtepcidr"));
    }
    // The session starts from the first of two endpoints.
    let is_ipv4 = endpoint.pool.is_none_or(Prefix::is_ipv4);
    if address.is_ipv4() == is_ipv4 {
        Ok(())
    } else {
        let needed = "an address of the family of the tunnel endpoint";
        Err(Contradiction::Needs("updateSource", needed))
    }
}

/// The Secret with the password of a session, in the namespace of the Underlay.
fn password_secret(
    subject: &ObjectRef,
    wanted: &WantedNeighbor,
) -> Result<Option<SecretReference>, Contradiction> {
    if wanted.password.is_some() && wanted.password_secret.is_some() {
        return Err(Contradiction::Both("password", "passwordSecret"));
    }
    let name = wanted.password_secret.clone();
    Ok(name.map(|name| SecretReference {
        name: Some(name),
        namespace: subject.key.namespace.as_deref().map(str::to_owned),
    }))
}

fn bfd_of(wanted: &WantedBfd) -> Result<Bfd, Contradiction> {
    let WantedBfd {
        receive_interval,
        transmit_interval,
        detect_multiplier,
        echo_interval,
        echo_mode,
        passive_mode,
        // `minimum_ttl()` reads both spellings.
        minimum_ttl: _,
        minimum_ttl_upper: _,
    } = wanted;
    let milliseconds = |interval: api::value::BfdInterval| interval.get().into();
    Ok(Bfd {
        receive_interval: receive_interval.map(milliseconds),
        transmit_interval: transmit_interval.map(milliseconds),
        detect_multiplier: detect_multiplier.map(api::value::BfdMultiplier::get),
        echo_interval: echo_interval.map(milliseconds),
        echo_mode: echo_mode.unwrap_or(false),
        passive_mode: passive_mode.unwrap_or(false),
        minimum_ttl: wanted.minimum_ttl()?.map(api::value::BfdTtl::get),
    })
}

/// Address families follow from the Underlay alone, so that the first overlay object resets no session.
fn families(
    endpoint: &Endpoint,
    address: Option<IpAddr>,
    wanted: &WantedNeighbor,
) -> Vec<AddressFamilyName> {
    let chosen = |family: NeighborFamily| {
        wanted
            .address_families
            .iter()
            .any(|wanted| wanted.kind == family)
    };
    let (ipv4, ipv6, evpn) = if wanted.address_families.is_empty() {
        let ipv4 = address.is_none_or(|address| address.is_ipv4()) || endpoint.has(true);
        let ipv6 = address.is_some_and(|address| address.is_ipv6()) || endpoint.has(false);
        (ipv4, ipv6, endpoint.is_any())
    } else {
        let [ipv4, ipv6] = [NeighborFamily::Ipv4Unicast, NeighborFamily::Ipv6Unicast].map(chosen);
        (ipv4, ipv6, chosen(NeighborFamily::Evpn))
    };
    let families = [
        (ipv4, AddressFamilyName::Ipv4Unicast),
        (ipv6, AddressFamilyName::Ipv6Unicast),
        (evpn, AddressFamilyName::L2vpnEvpn),
    ];
    families
        .into_iter()
        .filter(|(active, _)| *active)
        .map(|(_, family)| family)
        .collect()
}
