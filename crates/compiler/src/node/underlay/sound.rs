//! Whether an Underlay makes sense by itself.

use std::collections::BTreeSet;

use api::{
    meta::LabelSelector,
    openperouter::{
        Contradiction, Neighbor as WantedNeighbor, NeighborAddressFamily, NeighborFamily,
        UnderlaySpec, VtepSource,
    },
    tcaas::node_network_config::{AddressFamilyName, Neighbor, RemoteAs},
    value::{HostCidr, IfName, Prefix},
};

use super::{InClearText, contradictions::NodesByUnderlay, neighbor::neighbor};
use crate::{
    last_good::{InRevision as _, LastRevision},
    names,
    problem::{self, Problem},
    revision,
    snapshot::{Key, Kind, ObjectRef, kinds},
    special::{self, Use},
    view::{View, reference},
};

/// What was found while an Underlay was checked.
pub(super) struct Sound {
    pub(super) endpoint: Endpoint,
    pub(super) neighbors: Vec<Neighbor>,
    pub(super) in_clear_text: Vec<InClearText>,
}

/// Where the tunnel endpoints of nodes come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// A pool of addresses.
    pub(super) pool: Option<Prefix>,
    /// A second pool, of the other address family.
    pub(super) other_pool: Option<Prefix>,
    /// A device of the node that has an address.
    pub(super) device: Option<IfName>,
}

impl Endpoint {
    /// What an Underlay says; otherwise the field that is wrong, and why.
    fn of(spec: &UnderlaySpec) -> Result<Self, (&'static str, String)> {
        let source = spec.vtep();
        let pools = match source.map_err(|error| ("spec.evpn", error.to_string()))? {
            Some(VtepSource::Pools(pools)) => pools,
            Some(VtepSource::Device(device)) => {
                return Ok(Self {
                    device: Some(device.clone()),
                    ..Self::default()
                });
            }
            None => return Ok(Self::default()),
        };
        let mut pools = pools.iter().map(|pool| pool.prefix());
        let endpoint = Self {
            pool: pools.next(),
            other_pool: pools.next(),
            device: None,
        };
        let mut families = endpoint.pools().map(Prefix::is_ipv4);
        let is_twice = families
            .next()
            .is_some_and(|first| families.any(|other| other == first));
        if is_twice {
            let message = "the pools must be of different address families".to_owned();
            return Err(("spec.tunnelEndpoint.cidrs[1]", message));
        }
        Ok(endpoint)
    }

    /// The pools.
    pub(super) fn pools(&self) -> impl Iterator<Item = Prefix> + use<> {
        self.pool.into_iter().chain(self.other_pool)
    }

    /// Whether nodes have a tunnel endpoint.
    pub(super) fn is_any(&self) -> bool {
        self.pool.is_some() || self.device.is_some()
    }

    /// Whether nodes have a tunnel endpoint of this family. That of a device is an IPv4 address.
    pub(super) fn has(&self, ipv4: bool) -> bool {
        self.pools().any(|pool| pool.is_ipv4() == ipv4) || (ipv4 && self.device.is_some())
    }
}

impl Sound {
    pub(super) fn check(
        subject: &ObjectRef,
        spec: &UnderlaySpec,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let UnderlaySpec {
            node_selector,
            // `Fabric` has them.
            asn: _,
            graceful_restart: _,
            // `UnderlaySpec::devices` reads both spellings.
            nics: _,
            interfaces: _,
            // `Plan` has it.
            routeridcidr: _,
            // `UnderlaySpec::vtep` reads both spellings.
            evpn: _,
            tunnel_endpoint: _,
            isis,
            srv6,
            neighbors: wanted_neighbors,
        } = spec;
        let mut report =
            |field: &str, kind| problems.push(Problem::new(subject.clone(), field, kind));
        let broken = |error: Contradiction| problem::Kind::RuleBroken {
            message: error.to_string(),
        };
        if let Some(Err(error)) = node_selector.as_ref().map(LabelSelector::check) {
            report("spec.nodeSelector", problem::Kind::InvalidSelector(error));
            return None;
        }
        let mut is_refused = false;
        for (_, field, what) in [
            (isis.is_some(), "spec.isis", "IS-IS"),
            (srv6.is_some(), "spec.srv6", "SRv6"),
        ]
        .into_iter()
        .filter(|(is_asked, ..)| *is_asked)
        {
            is_refused = true;
            let kind = problem::Kind::NeedsDaemon {
                what,
                daemon: "isisd",
            };
            report(field, kind);
        }
        let endpoint = Endpoint::of(spec);
        let endpoint = endpoint.map_err(|(field, message)| {
            report(field, problem::Kind::RuleBroken { message });
        });
        let endpoint = endpoint.ok()?;
        for (field, written, network) in ignored_bits(spec) {
            report(&field, problem::Kind::HostBits { written, network });
        }
        if let Some(peer) = named_twice(wanted_neighbors) {
            let message = format!("two neighbors have the same {peer}: keep one of them");
            report("spec.neighbors", problem::Kind::RuleBroken { message });
            return None;
        }
        let (mut neighbors, mut in_clear_text) = (Vec::new(), Vec::new());
        for (index, wanted) in wanted_neighbors.iter().enumerate() {
            let field = format!("spec.neighbors[{index}]");
            for (part, kind) in idle_parts(spec, wanted) {
                report(&format!("{field}.{part}"), kind);
            }
            match neighbor(subject, spec, &endpoint, wanted) {
                // A session without an address family never comes up.
                Ok(neighbor) if neighbor.address_families.is_empty() => {}
                Ok(neighbor) => {
                    in_clear_text.extend(wanted.password.as_ref().map(|password| InClearText {
                        place: neighbors.len(),
                        password: password.clone(),
                    }));
                    neighbors.push(neighbor);
                }
                Err(error) => {
                    report(&field, broken(error));
                    return None;
                }
            }
        }
        for (field, what) in unannounced(spec, &endpoint, &neighbors) {
            report(field, problem::Kind::NoEffect { what });
        }
        (!is_refused).then_some(Self {
            endpoint,
            neighbors,
            in_clear_text,
        })
    }

    /// Values with which no node could join the fabric, each with its field.
    pub(super) fn unfit(&self, spec: &UnderlaySpec) -> Vec<(String, problem::Kind)> {
        let router_ids = spec.routeridcidr.prefix();
        let pools = [
            (Some(router_ids), "spec.routeridcidr", Use::OnLink),
            (self.endpoint.pool, vtep_field(spec), Use::Routed),
            (
                self.endpoint.other_pool,
                "spec.tunnelEndpoint.cidrs[1]",
                Use::Routed,
            ),
        ];
        let pools = pools.into_iter().filter_map(|(pool, field, used)| {
            let kind = special::unfit(pool?.net(), used)?;
            Some((field.to_owned(), kind))
        });
        let devices = spec.devices().filter_map(|nic| {
            let kind = problem::Kind::DeviceNameReserved {
                name: nic.to_string(),
                what: names::reserved_device(nic)?.to_owned(),
            };
            Some(("spec.nics".to_owned(), kind))
        });
        let neighbors = spec.neighbors.iter().enumerate();
        let neighbors = neighbors.filter_map(|(place, neighbor)| {
            let kind = special::unfit_address(neighbor.address?, Use::OnLink)?;
            Some((format!("spec.neighbors[{place}].address"), kind))
        });
        // A session is the only way by which EVPN routes come and go.
        let has_evpn = |neighbor: &Neighbor| {
            let families = &neighbor.address_families;
            families.contains(&AddressFamilyName::L2vpnEvpn)
        };
        let needs_evpn = self.endpoint.is_any();
        let lacks_evpn = needs_evpn && !self.neighbors.iter().any(has_evpn);
        let evpn = lacks_evpn.then(|| {
            let field = "spec.neighbors".to_owned();
            (field, problem::Kind::NoEvpnNeighbor)
        });
        pools.chain(devices).chain(neighbors).chain(evpn).collect()
    }

    /// Whether nodes can have the Underlay: nothing is unfit, or they run it as it is. What runs is never taken away for what an earlier
    /// version accepted.
    pub(super) fn is_fit(&self, view: &View<'_>, key: &Key, spec: &UnderlaySpec) -> bool {
        self.unfit(spec).is_empty() || runs_as_it_is(view, key, spec)
    }
}

/// Whether nodes run an Underlay as it is: the last revision has the same.
pub(super) fn runs_as_it_is(view: &View<'_>, key: &Key, spec: &UnderlaySpec) -> bool {
    let runs = view.has::<NodesByUnderlay>(&key.to_string());
    let last = || view.get::<LastRevision>(&());
    let last = || last().and_then(|last| kinds::Underlay::last(&last, key));
    runs && last().is_some_and(|last| last == revision::underlay(spec))
}

/// Pools of tunnel endpoints that no session announces, each with its field.
fn unannounced(
    spec: &UnderlaySpec,
    endpoint: &Endpoint,
    neighbors: &[Neighbor],
) -> Vec<(&'static str, String)> {
    let fields = [vtep_field(spec), "spec.tunnelEndpoint.cidrs[1]"];
    let pools = endpoint.pools().zip(fields);
    let unannounced = pools.filter_map(|(pool, field)| {
        let (family, name) = if pool.is_ipv4() {
            (AddressFamilyName::Ipv4Unicast, "ipv4unicast")
        } else {
            (AddressFamilyName::Ipv6Unicast, "ipv6unicast")
        };
        let carries = |one: &Neighbor| one.address_families.contains(&family);
        let what = format!(
            "no neighbor has the address family {name}, so no session announces the tunnel endpoints: add it to spec.neighbors[].addressFamilies of one, unless the fabric knows the way to {pool}"
        );
        (!neighbors.iter().any(carries)).then_some((field, what))
    });
    unannounced.collect()
}

/// An address, or a device, that two neighbors have, whatever way it is written.
fn named_twice(neighbors: &[WantedNeighbor]) -> Option<String> {
    let (mut addresses, mut devices) = (BTreeSet::new(), BTreeSet::new());
    neighbors.iter().find_map(|neighbor| {
        let address = neighbor.address.filter(|one| !addresses.insert(*one));
        let device = neighbor.interface.as_ref();
        let device = device.filter(|one| !devices.insert(*one));
        let address = address.map(|one| format!("address {one}"));
        address.or_else(|| device.map(|one| format!("interface {one}")))
    })
}

/// Networks with bits that are ignored, each with its field.
fn ignored_bits(spec: &UnderlaySpec) -> Vec<(String, HostCidr, Prefix)> {
    let router_ids = spec.routeridcidr;
    let ids = ("spec.routeridcidr", router_ids.with_ignored_bits());
    let ids = ids
        .1
        .map(|bits| (ids.0.to_owned(), bits, router_ids.prefix()));
    let Ok(Some(VtepSource::Pools(pools))) = spec.vtep() else {
        return ids.into_iter().collect();
    };
    let pools = pools.iter().enumerate().filter_map(|(place, pool)| {
        let field = match place {
            0 => vtep_field(spec).to_owned(),
            _ => format!("spec.tunnelEndpoint.cidrs[{place}]"),
        };
        Some((field, pool.with_ignored_bits()?, pool.prefix()))
    });
    ids.into_iter().chain(pools).collect()
}

/// The field that has the pool of VTEPs.
pub(super) fn vtep_field(spec: &UnderlaySpec) -> &'static str {
    if spec.evpn.is_some() {
        "spec.evpn.vtepcidr"
    } else {
        "spec.tunnelEndpoint.cidrs[0]"
    }
}

/// Fields of a neighbor that are accepted and have no effect, or should be left out.
fn idle_parts(spec: &UnderlaySpec, wanted: &WantedNeighbor) -> Vec<(&'static str, problem::Kind)> {
    let not_yet = |what| problem::Kind::NotCompiledYet { what };
    let mut found = Vec::new();
    if wanted.hostasn.is_some() {
        let what = "hostasn is accepted for older manifests and ignored".to_owned();
        found.push(("hostasn", problem::Kind::NoEffect { what }));
    }
    let interface = wanted.interface.as_ref();
    if let Some(interface) = interface.filter(|one| !spec.devices().any(|nic| nic == *one)) {
        let what = format!(
            "{:?} is not in spec.nics: only these devices are in the router's namespace, so no session over it is established",
            interface.as_str()
        );
        found.push(("interface", problem::Kind::NoEffect { what }));
    }
    if wanted.ebgp_multi_hop == Some(true) {
        let remote_as = wanted.remote_as().ok().map(RemoteAs::from);
        let is_internal =
            remote_as.is_some_and(|remote| remote.internal || remote.asn == Some(spec.asn));
        let why = if interface.is_some() {
            Some(
                "a session over a device is one hop long: give the address of the neighbor instead of its interface",
            )
        } else if is_internal {
            Some("an internal session may be any number of hops long: leave it out")
        } else {
            None
        };
        let what = why.map(str::to_owned);
        found.extend(what.map(|what| ("ebgpMultiHop", problem::Kind::NoEffect { what })));
    }
    let minimum_ttl = wanted.bfd.as_ref().map(api::openperouter::Bfd::minimum_ttl);
    if matches!(minimum_ttl, Some(Ok(Some(_)))) && wanted.ebgp_multi_hop != Some(true) {
        let what = "a session that is one hop long has no other TTL than 255: set ebgpMultiHop, or leave this out".to_owned();
        found.push(("bfd.minimumTtl", problem::Kind::NoEffect { what }));
    }
    if wanted.password.is_some() {
        found.push(("password", problem::Kind::InlinePassword));
    }
    let mut families = wanted.address_families.iter();
    if families.any(is_vpn) {
        let what = if is_vpn_alone(wanted) {
            VPN_ALONE
        } else {
            "a VPN address family"
        };
        found.push(("addressFamilies", not_yet(what)));
    }
    found
}

const VPN_ALONE: &str = "a session with VPN address families alone";

fn is_vpn(family: &NeighborAddressFamily) -> bool {
    match family.kind {
        NeighborFamily::Ipv4Vpn | NeighborFamily::Ipv6Vpn => true,
        NeighborFamily::Ipv4Unicast | NeighborFamily::Ipv6Unicast | NeighborFamily::Evpn => false,
    }
}

/// Whether nothing is made of a neighbor.
fn is_vpn_alone(neighbor: &WantedNeighbor) -> bool {
    let families = &neighbor.address_families;
    !families.is_empty() && families.iter().all(is_vpn)
}

/// Fields that are not compiled and take the place of what the Underlay had when it was last in effect: its nodes would lose a session. In an
/// Underlay that was never in effect they take nothing away.
pub(super) fn replaces_what_runs(view: &View<'_>, key: &Key, spec: &UnderlaySpec) -> Vec<Problem> {
    if !spec.neighbors.iter().any(is_vpn_alone) {
        return Vec::new();
    }
    let last = view.get::<LastRevision>(&());
    let Some(last) = last.and_then(|last| kinds::Underlay::last(&last, key)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut report = |field: String, what| {
        let kind = problem::Kind::NotCompiledKept { what };
        found.push(Problem::new(reference(Kind::Underlay, key), field, kind));
    };
    for (place, neighbor) in spec.neighbors.iter().enumerate() {
        let had_session = |last: &WantedNeighbor| {
            let is_same =
                (last.address, &last.interface) == (neighbor.address, &neighbor.interface);
            is_same && !is_vpn_alone(last)
        };
        if is_vpn_alone(neighbor) && last.neighbors.iter().any(had_session) {
            report(
                format!("spec.neighbors[{place}].addressFamilies"),
                VPN_ALONE,
            );
        }
    }
    found
}
