//! The way in and out of a node: sessions of the cluster VRF with speakers on the host, and the VRF through which nodes are managed.

use std::collections::BTreeMap;

use api::{
    selvedge::{ClusterNeighbor, SettingsSpec},
    tcaas::node_network_config::{
        Action, ActionType, AddressFamily, BfdProfile, BgpPeer, Filter, FilterItem, Matcher,
        PrefixMatcher, StaticRoute, Vrf, VrfImport,
    },
    value::Prefix,
};
use ipnet::{Ipv4Net, Ipv6Net};

use super::{
    peers, router_addresses,
    vrfs::{self, plain_vrf},
};
use crate::{
    lower::timers,
    names,
    problem::{self, Problem},
    snapshot::{Kind, ObjectRef},
};

/// The sessions of the cluster VRF with neighbors that the settings name, with the routes to those, and what is wrong with the others.
#[derive(Debug, Default)]
struct Neighbors {
    peers: Vec<BgpPeer>,
    routes: Vec<StaticRoute>,
    problems: Vec<Problem>,
}

impl Neighbors {
    fn new(settings: &SettingsSpec) -> Self {
        let mut found = Self::default();
        for (place, neighbor) in settings.cluster_neighbors.iter().enumerate() {
            let field = format!("spec.clusterNeighbors[{place}]");
            if let Err((part, kind)) = found.add(settings, neighbor) {
                let subject = ObjectRef::named(Kind::Settings, "default");
                let problem = Problem::new(subject, format!("{field}{part}"), kind);
                found.problems.push(problem);
            }
        }
        found
    }

    fn add(
        &mut self,
        settings: &SettingsSpec,
        neighbor: &ClusterNeighbor,
    ) -> Result<(), (&'static str, problem::Kind)> {
        let ClusterNeighbor {
            address,
            interface,
            update_source,
            remote_asn,
            local_asn,
            hold_time,
            keepalive_time,
            bfd_min_timer,
            ipv4,
            ipv6,
            password_secret,
        } = neighbor;
        let route = way_to(settings, neighbor)?;
        if !timers::can_be(*keepalive_time, *hold_time) {
            return Err((".holdTime", problem::Kind::TimersDoNotFit));
        }
        if !ipv4 && !ipv6 {
            let message =
                "a session without an address family is never established: set ipv4 or ipv6";
            return Err(("", rule(message)));
        }
        if *local_asn == Some(*remote_asn) {
            let message =
                "must differ from remoteASN: FRR shows another number on external sessions only";
            return Err((".localASN", rule(message)));
        }
        let everything = || Some(Filter::default_to(ActionType::Accept));
        let family = || AddressFamily {
            export_filter: everything(),
            import_filter: everything(),
            max_prefixes: None,
        };
        let is_same = |one: &BgpPeer| (one.address, &one.interface) == (*address, interface);
        if self.peers.iter().any(is_same) {
            let field = if address.is_some() {
                ".address"
            } else {
                ".interface"
            };
            let message = "is that of another neighbor above: FRR has one session with each";
            return Err((field, rule(message)));
        }
        // One behind the host's end of the trunk is a hop further away.
        let multihop = route.is_some().then_some(peers::LOOPBACK_HOPS);
        self.routes.extend(route);
        self.peers.push(BgpPeer {
            address: *address,
            interface: interface.clone(),
            listen_range: None,
            remote_asn: *remote_asn,
            local_as: *local_asn,
            ipv4: ipv4.then(family),
            ipv6: ipv6.then(family),
            bfd_profile: bfd_min_timer.map(|min_interval| BfdProfile { min_interval }),
            multihop,
            hold_time: *hold_time,
            keepalive_time: *keepalive_time,
            password_secret: password_secret.clone(),
            update_source: None,
            source_address: *update_source,
        });
        Ok(())
    }
}

fn rule(message: &str) -> problem::Kind {
    let message = message.to_owned();
    problem::Kind::RuleBroken { message }
}

/// The route to a neighbor that is not at the other end of the trunk.
fn way_to(
    settings: &SettingsSpec,
    neighbor: &ClusterNeighbor,
) -> Result<Option<StaticRoute>, (&'static str, problem::Kind)> {
    match (neighbor.address, &neighbor.interface) {
        (Some(address), None) => {
            let routers = router_addresses(settings);
            if routers.iter().any(|own| own.addr() == address) {
                let message =
                    "is the router's own address: set the address of the BGP speaker on the host";
                return Err((".address", rule(message)));
            }
            let mut ends = settings.trunk.addresses.iter();
            if ends.any(|end| end.net().contains(&address)) {
                return Ok(None);
            }
            let peer = address.to_string();
            let nowhere = (".address", problem::Kind::NoWayToPeer { peer });
            peers::by_trunk(settings, address).map(Some).ok_or(nowhere)
        }
        (None, Some(device)) if *device != settings.trunk.name => {
            let message = "the trunk is the only device between the host and the cluster VRF: set its name, or an address";
            Err((".interface", rule(message)))
        }
        (None, Some(_)) => Ok(None),
        (Some(_), Some(_)) | (None, None) => {
            let message = "exactly one of address and interface must be set";
            Err(("", rule(message)))
        }
    }
}

/// What is wrong with the neighbors and the management VRF of the settings.
pub(crate) fn problems(settings: &SettingsSpec) -> Vec<Problem> {
    let mut problems = Neighbors::new(settings).problems;
    let Some(management) = &settings.management_vrf else {
        return problems;
    };
    let mut report = |field: &str, kind| {
        let subject = ObjectRef::named(Kind::Settings, "default");
        problems.push(Problem::new(
            subject,
            format!("spec.managementVRF{field}"),
            kind,
        ));
    };
    if management.vni.is_none() {
        report(
            "",
            rule("has no vni, which a VRF in the fabric needs: set it"),
        );
    }
    if management.route_target.is_none() {
        let message = "has no routeTarget, which a VRF in the fabric needs: set it";
        report("", rule(message));
    }
    let name = management.name.as_str();
    let taken = if name == settings.cluster_vrf.name.as_str() {
        Some("it is the name of the cluster VRF")
    } else if name == settings.trunk.name.as_str() {
        Some("the trunk has a device of that name")
    } else {
        names::of_no_vrf(name)
    };
    if let Some(by) = taken {
        let name = name.to_owned();
        report(".name", problem::Kind::VrfNameTaken { name, by });
    }
    if let Some(vni) = management
        .vni
        .filter(|vni| settings.cluster_vrf.vni == Some(*vni))
    {
        let by = ObjectRef::named(Kind::Settings, "default");
        let node = None;
        report(".vni", problem::Kind::VniTaken { vni, by, node });
    }
    problems
}

/// Adds what the settings give every node: the sessions of the cluster VRF, and the VRF through which nodes are managed. The host reaches that
/// over the trunk and the cluster VRF, and it reaches what the cluster VRF exports.
pub(super) fn add(
    settings: &SettingsSpec,
    tables: &BTreeMap<String, u32>,
    cluster: &mut Vrf,
    fabric: &mut BTreeMap<String, Vrf>,
) {
    let neighbors = Neighbors::new(settings);
    cluster.bgp_peers = neighbors.peers;
    cluster.static_routes = neighbors.routes;
    let Some(management) = &settings.management_vrf else {
        return;
    };
    let name = management.name.as_str();
    let (Some(vni), Some(target), Some(table)) =
        (management.vni, management.route_target, tables.get(name))
    else {
        return;
    };
    if !problems(settings).is_empty() {
        return;
    }
    cluster.vrf_imports.push(VrfImport {
        from_vrf: name.to_owned(),
        filter: without_default_route(),
    });
    let exported = VrfImport {
        from_vrf: settings.cluster_vrf.name.to_string(),
        filter: vrfs::cluster_export(settings),
    };
    let vrf = Vrf {
        vni: Some(vni),
        evpn_import_route_targets: vec![target.into()],
        evpn_export_route_targets: vec![target],
        vrf_imports: vec![exported],
        ..plain_vrf(name, *table, true)
    };
    fabric.insert(name.to_owned(), vrf);
}

/// Everything but the default routes: what the cluster has no route to is not for the management network.
fn without_default_route() -> Filter {
    let mut filter = Filter::default_to(ActionType::Accept);
    let defaults = [Ipv4Net::default().into(), Ipv6Net::default().into()];
    filter.items = defaults
        .map(|net| FilterItem {
            matcher: Matcher {
                prefix: Some(PrefixMatcher {
                    prefix: Prefix::of(net),
                    ge: None,
                    le: None,
                }),
                bgp_community: None,
            },
            action: Action::new(ActionType::Reject),
        })
        .into();
    filter
}
