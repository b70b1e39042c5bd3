//! From what the objects of a node add up to, to the router in its config.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    frrk8s::{FrrCommunity, ObservedConfiguration},
    selvedge::SettingsSpec,
    tcaas::node_network_config::{
        HostAdvertise, HostBgp, HostNeighbor, HostReceive, HostRouter, HostVni, MarkedPrefixes,
        PreferredPrefixes, RawLines,
    },
    value::{Asn, LocalPreference, Peer, Prefix, RemoteAs, Vni},
};

use super::{
    part::{Advertise, Neighbor, PasswordSource, Receive, Router, Session, VniValues},
    validate::{Member, Merged, contributions},
};
use crate::{names, snapshot::ObjectRef};

/// The port of BGP, which is no setting.
const BGP_PORT: u16 = 179;

/// The router of the nodes that these objects are for.
pub(super) fn host_router(
    members: &[Member],
    merged: &Merged,
    settings: &SettingsSpec,
) -> HostRouter {
    let Merged {
        part,
        in_effect,
        problems: _,
    } = merged;
    let mut configurations = Vec::new();
    let mut raw = Vec::new();
    for (_, member, contribution) in contributions(members, in_effect) {
        configurations.push(observed(&member.subject, member.generation));
        if let Some((priority, lines)) = &contribution.raw {
            raw.push((*priority, identity(&member.subject), lines));
        }
    }
    configurations.sort();
    raw.sort();
    let raw = raw
        .into_iter()
        .map(|(_, (namespace, name), lines)| RawLines {
            source: format!("{namespace}/{name}"),
            lines: lines.clone(),
        });
    let routers = part.routers.iter();
    HostRouter {
        configurations,
        problems: Vec::new(),
        log_level: settings.frr_configurations.log_level,
        always_block: settings
            .frr_configurations
            .always_block
            .iter()
            .copied()
            .collect(),
        routers: routers
            .map(|(vrf, one)| (vrf.clone(), router(one)))
            .collect(),
        bfd_profiles: part
            .profiles
            .values()
            .map(|one| one.value.clone())
            .collect(),
        raw: raw.collect(),
    }
}

/// Namespace and name of an object; one without a namespace counts as one in the namespace of the operator.
pub(crate) fn identity(subject: &ObjectRef) -> (String, String) {
    let namespace = subject.key.namespace.as_deref();
    let namespace = namespace.unwrap_or(names::OWN_NAMESPACE);
    (namespace.to_owned(), subject.key.name.to_string())
}

/// An object as a node sees it.
pub(crate) fn observed(subject: &ObjectRef, generation: Option<i64>) -> ObservedConfiguration {
    let (namespace, name) = identity(subject);
    ObservedConfiguration {
        namespace,
        name,
        generation: generation.unwrap_or(0),
    }
}

fn router(merged: &Router) -> HostBgp {
    let Router {
        asn,
        id,
        prefixes,
        imports,
        neighbors,
        evpn,
    } = merged;
    let neighbors = neighbors.iter();
    HostBgp {
        asn: asn.value,
        router_id: id.as_ref().map(|id| id.value),
        neighbors: neighbors
            .map(|(peer, one)| neighbor(asn.value, peer, one))
            .collect(),
        networks: prefixes.clone(),
        imports: imports.clone(),
        advertise_all_vnis: evpn.advertises_all(),
        advertise_svi: evpn.advertises_svi(),
        // FRR knows a VNI by its number only while all are advertised.
        l2vnis: if evpn.advertises_all() {
            evpn.l2vnis.iter().map(vni).collect()
        } else {
            Vec::new()
        },
        l3vni: evpn
            .l3vni
            .as_ref()
            .map(|(number, values)| vni((number, values))),
    }
}

fn vni((vni, values): (&Vni, &VniValues)) -> HostVni {
    let VniValues {
        given: _,
        rd,
        imports,
        exports,
    } = values;
    HostVni {
        vni: *vni,
        rd: rd.as_ref().map(|rd| rd.value),
        import_rts: imports.clone(),
        export_rts: exports.clone(),
    }
}

fn neighbor(asn: Asn, peer: &Peer, merged: &Neighbor) -> HostNeighbor {
    let Neighbor {
        given: _,
        session,
        is_dual_stack,
        unicast,
        evpn,
        advertise,
        receive,
    } = merged;
    let Session {
        remote_as,
        local_as,
        source,
        port,
        hold_time,
        keepalive_time,
        connect_time,
        ebgp_multi_hop,
        graceful_restart,
        bfd_profile,
        password,
    } = session;
    let (address, interface) = match peer {
        Peer::Address(address) => (Some(*address), None),
        Peer::Interface(name) => (None, Some(name.clone())),
    };
    let is_ipv6 = address.is_some_and(|address| address.is_ipv6());
    let (has_ipv4, has_ipv6) = (*is_dual_stack || !is_ipv6, *is_dual_stack || is_ipv6);
    let remote_as = remote_as
        .as_ref()
        .map_or(RemoteAs::Number(asn), |one| one.value);
    let is_set =
        |flag: &Option<super::part::Given<bool>>| flag.as_ref().is_some_and(|one| one.value);
    let password_secret = password.as_ref().and_then(|one| match &one.value {
        // Each node has a Secret of its own for it.
        PasswordSource::Clear(_) => None,
        PasswordSource::Secret(secret) => Some(secret.clone()),
    });
    let port = port.as_ref().map(|port| port.value);
    HostNeighbor {
        address,
        interface,
        remote_as: remote_as.into(),
        local_as: local_as.as_ref().map(|one| one.value),
        source: source.as_ref().map(|one| one.value.clone()),
        port: port.filter(|port| *port != BGP_PORT),
        keepalive_time: keepalive_time.as_ref().map(|one| one.value),
        hold_time: hold_time.as_ref().map(|one| one.value),
        connect_time: connect_time.as_ref().map(|one| one.value),
        ebgp_multi_hop: is_set(ebgp_multi_hop),
        disable_connected_check: is_ipv6
            && !is_dual_stack
            && !is_set(ebgp_multi_hop)
            && is_external(asn, remote_as),
        graceful_restart: is_set(graceful_restart),
        bfd_profile: bfd_profile.as_ref().map(|one| one.value.clone()),
        password_secret,
        ipv4: *unicast && has_ipv4,
        ipv6: *unicast && has_ipv6,
        evpn: *evpn,
        advertise: if *unicast {
            advertised(advertise, has_ipv4, has_ipv6)
        } else {
            HostAdvertise::default()
        },
        receive: if *unicast {
            accepted(receive, has_ipv4, has_ipv6)
        } else {
            HostReceive::default()
        },
    }
}

fn is_external(asn: Asn, remote_as: RemoteAs) -> bool {
    match remote_as {
        RemoteAs::Number(remote) => remote != asn,
        RemoteAs::Type(kind) => kind == api::value::PeerType::External,
    }
}

fn advertised(merged: &Advertise, has_ipv4: bool, has_ipv6: bool) -> HostAdvertise {
    let Advertise {
        prefixes,
        next_hop_ipv4,
        next_hop_ipv6,
        preferences,
        communities,
    } = merged;
    let has = |prefix: &Prefix| if prefix.is_ipv4() { has_ipv4 } else { has_ipv6 };
    let of = |prefixes: &BTreeSet<Prefix>| {
        let prefixes = prefixes.iter().copied();
        prefixes
            .filter(|one| has(one))
            .collect::<BTreeSet<Prefix>>()
    };
    let mut by_preference: BTreeMap<LocalPreference, BTreeSet<Prefix>> = BTreeMap::new();
    for (prefix, preference) in preferences.iter().filter(|(prefix, _)| has(prefix)) {
        let prefixes = by_preference.entry(preference.value).or_default();
        prefixes.insert(*prefix);
    }
    let preference = |(local_preference, prefixes)| PreferredPrefixes {
        local_preference,
        prefixes,
    };
    let communities = communities.iter();
    let community = |(community, prefixes): (&FrrCommunity, &BTreeSet<Prefix>)| MarkedPrefixes {
        community: *community,
        prefixes: of(prefixes),
    };
    HostAdvertise {
        prefixes: of(prefixes),
        next_hop_ipv4: next_hop_ipv4.as_ref().map(|one| one.value),
        next_hop_ipv6: next_hop_ipv6.as_ref().map(|one| one.value),
        local_preferences: by_preference.into_iter().map(preference).collect(),
        communities: communities
            .map(community)
            .filter(|one| !one.prefixes.is_empty())
            .collect(),
    }
}

fn accepted(merged: &Receive, has_ipv4: bool, has_ipv6: bool) -> HostReceive {
    let Receive { all, prefixes } = merged;
    if *all {
        return HostReceive {
            all: true,
            prefixes: BTreeSet::new(),
        };
    }
    let prefixes = prefixes.iter().copied();
    let has = |ipv4: bool| if ipv4 { has_ipv4 } else { has_ipv6 };
    HostReceive {
        all: false,
        prefixes: prefixes.filter(|one| has(one.prefix.is_ipv4())).collect(),
    }
}
