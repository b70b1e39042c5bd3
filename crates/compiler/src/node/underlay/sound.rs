//! Whether an Underlay makes sense by itself.

use api::{
    meta::LabelSelector,
    openperouter::{
        Contradiction, Neighbor as WantedNeighbor, NeighborAddressFamily, NeighborFamily,
        UnderlaySpec, VtepSource,
    },
    tcaas::node_network_config::{AddressFamilyName, Neighbor},
    value::Prefix,
};

use super::{contradictions::NodesByUnderlay, neighbor::neighbor};
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
    pub(super) vteps: Option<Prefix>,
    pub(super) neighbors: Vec<Neighbor>,
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
        if isis.is_some() {
            report("spec.isis", problem::Kind::NotCompiledYet { what: "IS-IS" });
        }
        if srv6.is_some() {
            report("spec.srv6", problem::Kind::NotCompiledYet { what: "SRv6" });
        }
        let vteps = match spec.vtep() {
            Ok(Some(VtepSource::Pools(pools))) => {
                if pools.len() > 1 {
                    let what = "a second pool of VTEPs";
                    let kind = problem::Kind::NotCompiledYet { what };
                    report("spec.tunnelEndpoint.cidrs[1]", kind);
                }
                pools.first().copied()
            }
            Ok(Some(VtepSource::Device(_))) => {
                let what = VTEP_OF_DEVICE;
                report(VTEP_INTERFACE, problem::Kind::NotCompiledYet { what });
                None
            }
            Ok(None) => None,
            Err(error) => {
                report("spec.evpn", broken(error));
                return None;
            }
        };
        let mut neighbors = Vec::new();
        for (index, wanted) in wanted_neighbors.iter().enumerate() {
            let field = format!("spec.neighbors[{index}]");
            for (part, kind) in not_implemented(wanted) {
                report(&format!("{field}.{part}"), kind);
            }
            match neighbor(spec, vteps, wanted) {
                // A session without an address family never comes up.
                Ok(neighbor) if neighbor.address_families.is_empty() => {}
                Ok(neighbor) => neighbors.push(neighbor),
                Err(error) => {
                    report(&field, broken(error));
                    return None;
                }
            }
        }
        Some(Self { vteps, neighbors })
    }

    /// Values with which no node could join the fabric, each with its field.
    pub(super) fn unfit(&self, spec: &UnderlaySpec) -> Vec<(String, problem::Kind)> {
        let router_ids = Prefix::of(spec.routeridcidr.net().into());
        let pools = [
            (Some(router_ids), "spec.routeridcidr", Use::OnLink),
            (self.vteps, vtep_field(spec), Use::Routed),
        ];
        let pools = pools.into_iter().filter_map(|(pool, field, used)| {
            let kind = special::unfit(pool?.net(), used)?;
            Some((field.to_owned(), kind))
        });
        let devices = spec.devices().filter(|nic| names::is_reserved_device(nic));
        let devices = devices.map(|nic| {
            let kind = problem::Kind::DeviceNameReserved {
                name: nic.to_string(),
                what: "kept for other devices of the nodes".to_owned(),
            };
            ("spec.nics".to_owned(), kind)
        });
        let neighbors = spec.neighbors.iter().enumerate();
        let neighbors = neighbors.filter_map(|(place, neighbor)| {
            let kind = special::unfit_address(neighbor.address?, Use::OnLink)?;
            Some((format!("spec.neighbors[{place}].address"), kind))
        });
        // A session is the only way by which EVPN routes come and go. With SRv6 the tunnel endpoint is for another encapsulation as well.
        let has_evpn = |neighbor: &Neighbor| {
            let families = &neighbor.address_families;
            families.contains(&AddressFamilyName::L2vpnEvpn)
        };
        let needs_evpn = self.vteps.is_some() && spec.srv6.is_none();
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

/// The field that has the pool of VTEPs.
pub(super) fn vtep_field(spec: &UnderlaySpec) -> &'static str {
    if spec.evpn.is_some() {
        "spec.evpn.vtepcidr"
    } else {
        "spec.tunnelEndpoint.cidrs[0]"
    }
}

/// Fields of a neighbor that are accepted and have no effect.
fn not_implemented(wanted: &WantedNeighbor) -> Vec<(&'static str, problem::Kind)> {
    let not_yet = |what| problem::Kind::NotCompiledYet { what };
    let mut found = Vec::new();
    if wanted.hostasn.is_some() {
        let what = "hostasn is accepted for older manifests and ignored".to_owned();
        found.push(("hostasn", problem::Kind::NoEffect { what }));
    }
    if wanted.password.is_some() {
        found.push(("password", not_yet("a session password")));
    }
    if wanted.password_secret.is_some() {
        found.push(("passwordSecret", not_yet("a session password")));
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

const VTEP_INTERFACE: &str = "spec.evpn.vtepInterface";
const VTEP_OF_DEVICE: &str = "a VTEP that is an existing device's address";
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

/// Fields that are not compiled and take the place of what the Underlay had when it was last in effect: its nodes would lose their VTEPs, or
/// a session. In an Underlay that was never in effect they take nothing away.
pub(super) fn replaces_what_runs(view: &View<'_>, key: &Key, spec: &UnderlaySpec) -> Vec<Problem> {
    let has_device = |spec: &UnderlaySpec| matches!(spec.vtep(), Ok(Some(VtepSource::Device(_))));
    if !has_device(spec) && !spec.neighbors.iter().any(is_vpn_alone) {
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
    if has_device(spec) && matches!(last.vtep(), Ok(Some(VtepSource::Pools(_)))) {
        report(VTEP_INTERFACE.to_owned(), VTEP_OF_DEVICE);
    }
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
