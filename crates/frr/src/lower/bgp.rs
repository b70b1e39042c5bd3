//! BGP instances.

use std::collections::BTreeMap;

use api::value::{Asn, IfName, ImportRouteTarget, RouteDistinguisher, RouteTarget, Vni};

use crate::{
    config::{
        Advertise, Bgp, Evpn, FamilySwitch, FrrConfig, GracefulRestart, IpFamily, Neighbor,
        NeighborBfd, NeighborFamily, Peer, Unicast, VniTargets, derived_target,
    },
    text::{Block, Statement},
    version::Features,
};

/// How often FRR takes our own AS where `allowas-in` says no number; it prints none then.
pub(crate) const ALLOWAS_IN_DEFAULT: u8 = 3;

/// The instances that must be there, empty, before anything else is said of VRFs and BGP: those of another AS than the default
/// instance's, and that one before them.
///
/// FRR makes the instance of a VRF by itself, with the AS of another, as soon as its VNI is up or another VRF imports from it; 8.4 then
/// refuses to give it its own AS.
pub(crate) fn declared_first(config: &FrrConfig) -> Vec<(&Option<IfName>, &Bgp)> {
    let Some(default) = config.bgp.get(&None) else {
        return Vec::new();
    };
    let of_other_as = |bgp: &Bgp| bgp.asn != default.asn;
    let mut first: Vec<_> = config.bgp.iter().collect();
    if first.iter().any(|(_, bgp)| of_other_as(bgp)) {
        first.retain(|(vrf, bgp)| vrf.is_none() || of_other_as(bgp));
        return first;
    }
    Vec::new()
}

/// The line that opens the block of a BGP instance.
pub(crate) fn enter_instance(vrf: Option<&IfName>, bgp: &Bgp) -> String {
    match vrf {
        None => format!("router bgp {}", bgp.asn),
        Some(vrf) => format!("router bgp {} vrf {vrf}", bgp.asn),
    }
}

/// The block of one BGP instance.
pub(crate) fn instance(vrf: Option<&IfName>, bgp: &Bgp, features: Features) -> Block {
    let key = vrf.map_or_else(
        || "router bgp".to_owned(),
        |vrf| format!("router bgp vrf {vrf}"),
    );
    let enter = enter_instance(vrf, bgp);
    let mut statements = header(bgp);
    for (peer, neighbor) in &bgp.neighbors {
        statements.extend(session(peer, neighbor, features));
    }
    if let Some(limit) = bgp.listen_limit {
        statements.push(Statement::value("bgp listen limit".to_owned(), limit));
    }
    for (range, group) in &bgp.listen_ranges {
        // Members join only when the group is complete, and none joins a group that is going.
        let listen = Statement::new(format!("bgp listen range {range} peer-group {group}"))
            .slot(format!("bgp listen range {range}"))
            .undo_first()
            .late();
        statements.push(listen);
    }
    let families = [
        unicast(IpFamily::V4, &bgp.ipv4),
        unicast(IpFamily::V6, &bgp.ipv6),
        evpn(bgp),
    ];
    Block {
        key,
        remove: Some(format!("no {enter}")),
        statements,
        blocks: families
            .into_iter()
            .filter(|family| !family.is_empty())
            .collect(),
        ..Block::new(enter, "exit")
    }
}

fn header(bgp: &Bgp) -> Vec<Statement> {
    let unless_default = |line: &str| Statement::new(format!("no {line}")).undo(line.to_owned());
    let mut statements = Vec::new();
    if let Some(id) = bgp.router_id {
        statements.push(Statement::value("bgp router-id".to_owned(), id).resets());
    }
    if !bgp.ebgp_requires_policy {
        statements.push(unless_default("bgp ebgp-requires-policy"));
    }
    if !bgp.default_ipv4_unicast {
        statements.push(unless_default("bgp default ipv4-unicast"));
    }
    statements.extend(graceful_restart(bgp.graceful_restart));
    if bgp.multipath_relax {
        statements.push(Statement::new(
            "bgp bestpath as-path multipath-relax".to_owned(),
        ));
    }
    if !bgp.network_import_check {
        statements.push(unless_default("bgp network import-check"));
    }
    statements
}

/// FRR says that these take effect with the next session. 10.7 closes the sessions for a new restart time, and for no other of them.
fn graceful_restart(restart: GracefulRestart) -> impl Iterator<Item = Statement> {
    let GracefulRestart {
        on_all_sessions,
        restart_time,
        stale_path_time,
        preserve_fw_state,
    } = restart;
    let word = |rest: &str| format!("bgp graceful-restart{rest}");
    let default = GracefulRestart::default();
    [
        (stale_path_time != default.stale_path_time)
            .then(|| Statement::value(word(" stalepath-time"), stale_path_time)),
        (restart_time != default.restart_time)
            .then(|| Statement::value(word(" restart-time"), restart_time))
            .map(Statement::resets),
        on_all_sessions.then(|| Statement::new(word(""))),
        preserve_fw_state.then(|| Statement::new(word(" preserve-fw-state"))),
    ]
    .into_iter()
    .flatten()
}

fn session(peer: &Peer, neighbor: &Neighbor, features: Features) -> Vec<Statement> {
    let Neighbor {
        remote_as,
        local_as,
        description,
        bfd,
        password,
        port,
        ebgp_multihop,
        update_source,
        timers,
        connect_time,
        extended_nexthop,
        disable_connected_check,
        graceful_restart,
        ttl_security,
        switches,
    } = neighbor;
    let word = |rest: &str| format!("neighbor {peer} {rest}");
    let mut lines = declaration(peer, *remote_as);
    lines.extend(local_as.map(|asn| {
        let slot = word("local-as");
        Statement::new(format!("{slot} {asn} no-prepend replace-as"))
            .undo(format!("no {slot}"))
            .slot(slot)
            .resets()
    }));
    lines.extend(
        description
            .as_ref()
            .map(|text| Statement::value(word("description"), text)),
    );
    if let Some(bfd) = bfd {
        lines.extend(bfd_lines(peer, bfd));
    }
    lines.extend(
        password
            .clone()
            .map(|password| Statement::new(word("password")).secret(password).resets()),
    );
    lines.extend(port.map(|port| Statement::value(word("port"), port).resets()));
    lines.extend(ebgp_multihop.map(|hops| {
        let multihop = word("ebgp-multihop");
        if hops == u8::MAX && !features.prints_multihop_255 {
            Statement::new(multihop).resets()
        } else {
            Statement::value(multihop, hops).resets()
        }
    }));
    lines.extend(
        update_source
            .as_ref()
            .map(|source| Statement::value(word("update-source"), source).resets()),
    );
    if *disable_connected_check {
        lines.push(Statement::new(word("disable-connected-check")).resets());
    }
    lines.extend(timers.map(|timers| Statement::value(word("timers"), timers)));
    lines.extend(connect_time.map(|seconds| Statement::value(word("timers connect"), seconds)));
    if *extended_nexthop {
        lines.push(Statement::new(word("capability extended-nexthop")).resets());
    }
    // Its `no` wants the value.
    lines.extend(ttl_security.map(|hops| {
        let slot = word("ttl-security hops");
        Statement::new(format!("{slot} {hops}")).slot(slot).resets()
    }));
    for switch in switches {
        lines.push(Statement::new(word(switch.as_str())).resets());
    }
    // It takes effect with the next session.
    if *graceful_restart {
        lines.push(Statement::new(word("graceful-restart")));
    }
    lines.into_iter().map(|line| line.of(peer)).collect()
}

fn bfd_lines(peer: &Peer, bfd: &NeighborBfd) -> Vec<Statement> {
    let NeighborBfd {
        profile,
        check_control_plane,
    } = bfd;
    let word = |rest: &str| format!("neighbor {peer} {rest}");
    let mut lines = vec![Statement::new(word("bfd"))];
    lines.extend(
        profile
            .as_ref()
            .map(|name| Statement::value(word("bfd profile"), name)),
    );
    if *check_control_plane {
        lines.push(Statement::new(word("bfd check-control-plane-failure")));
    }
    lines
}

/// The lines that make a session or group.
fn declaration(peer: &Peer, remote_as: Option<crate::config::RemoteAs>) -> Vec<Statement> {
    let made = |line: String| {
        Statement::new(line)
            .slot(format!("neighbor {peer}"))
            .declares()
            .resets()
    };
    match (peer, remote_as) {
        (Peer::Group(name), remote_as) => {
            let mut lines = vec![made(format!("neighbor {name} peer-group"))];
            lines.extend(
                remote_as.map(|asn| {
                    Statement::value(format!("neighbor {name} remote-as"), asn).resets()
                }),
            );
            lines
        }
        (Peer::Interface(name), Some(asn)) => vec![
            made(format!("neighbor {name} interface remote-as {asn}"))
                .undo(format!("no neighbor {name} interface")),
        ],
        (Peer::Interface(name), None) => vec![made(format!("neighbor {name} interface"))],
        (Peer::Address(address), Some(asn)) => vec![
            made(format!("neighbor {address} remote-as {asn}"))
                .undo(format!("no neighbor {address}")),
        ],
        // FRR has no address without an AS or a group.
        (Peer::Address(_), None) => Vec::new(),
    }
}

fn unicast(family: IpFamily, unicast: &Unicast) -> Block {
    let Unicast {
        networks,
        aggregates,
        redistribute,
        neighbors,
        import_route_map,
        import_vrfs,
        maximum_paths,
    } = unicast;
    let mut lines: Vec<Statement> = networks
        .iter()
        .map(|prefix| Statement::new(format!("network {prefix}")))
        .collect();
    lines.extend(
        aggregates
            .iter()
            .map(|prefix| Statement::new(format!("aggregate-address {prefix}"))),
    );
    for (source, map) in redistribute {
        let slot = format!("redistribute {}", source.as_str());
        lines.push(match map {
            // Writing the line again without a map would leave the map on it.
            None => Statement::new(slot).undo_first(),
            Some(map) => Statement::value(slot, format!("route-map {map}")),
        });
    }
    lines.extend(neighbor_families(neighbors));
    lines.extend(maximum_paths.map(|paths| Statement::value("maximum-paths".to_owned(), paths)));
    // The map first, so that nothing comes in unfiltered; taken back in the opposite order.
    lines.extend(
        import_route_map
            .as_ref()
            .map(|map| Statement::value("import vrf route-map".to_owned(), map)),
    );
    lines.extend(
        import_vrfs
            .iter()
            .map(|vrf| Statement::new(format!("import vrf {vrf}"))),
    );
    Block {
        statements: lines,
        ..Block::new(
            format!("address-family {} unicast", family.afi()),
            "exit-address-family",
        )
    }
}

fn neighbor_families(neighbors: &BTreeMap<Peer, NeighborFamily>) -> Vec<Statement> {
    neighbors
        .iter()
        .flat_map(|(peer, family)| {
            let NeighborFamily {
                activate,
                next_hop_self,
                allowas_in,
                maximum_prefix,
                route_map_in,
                route_map_out,
                prefix_list_in,
                prefix_list_out,
                weight,
                switches,
            } = family;
            let word = |rest: &str| format!("neighbor {peer} {rest}");
            let allowas = |times: u8| {
                let line = match times {
                    ALLOWAS_IN_DEFAULT => word("allowas-in"),
                    times => word(&format!("allowas-in {times}")),
                };
                Statement::new(line)
                    .slot(word("allowas-in"))
                    .undo(format!("no {}", word("allowas-in")))
            };
            let map = |name: &crate::config::Name, way: &str| {
                Statement::new(word(&format!("route-map {name} {way}")))
                    .slot(word(&format!("route-map {way}")))
            };
            let list = |name: &crate::config::Name, way: &str| {
                Statement::new(word(&format!("prefix-list {name} {way}")))
                    .slot(word(&format!("prefix-list {way}")))
            };
            let switch = |switch: &FamilySwitch| {
                let line = Statement::new(word(switch.as_str()));
                match switch {
                    FamilySwitch::RouteReflectorClient => line.resets(),
                    _ => line,
                }
            };
            let switches: Vec<Statement> = switches.iter().map(switch).collect();
            [
                // Last, so that the filters are there before the first route.
                activate.then(|| Statement::new(word("activate")).late().resets()),
                next_hop_self.then(|| Statement::new(word("next-hop-self force"))),
                allowas_in.map(allowas),
                maximum_prefix.map(|limit| Statement::value(word("maximum-prefix"), limit)),
                prefix_list_in.as_ref().map(|name| list(name, "in")),
                prefix_list_out.as_ref().map(|name| list(name, "out")),
                route_map_in.as_ref().map(|name| map(name, "in")),
                route_map_out.as_ref().map(|name| map(name, "out")),
                weight.map(|weight| Statement::value(word("weight"), weight)),
            ]
            .into_iter()
            .flatten()
            .chain(switches)
            .map(|line| line.of(peer))
        })
        .collect()
}

fn evpn(bgp: &Bgp) -> Block {
    let Evpn {
        neighbors,
        advertise_all_vni,
        advertise_svi_ip,
        vnis,
        advertise_ipv4,
        advertise_ipv6,
        rd,
        import_targets,
        export_targets,
    } = &bgp.evpn;
    let mut lines = neighbor_families(neighbors);
    if *advertise_all_vni {
        lines.push(Statement::new("advertise-all-vni".to_owned()));
    }
    if *advertise_svi_ip {
        lines.push(Statement::new("advertise-svi-ip".to_owned()));
    }
    for (family, advertise) in [
        (IpFamily::V4, advertise_ipv4),
        (IpFamily::V6, advertise_ipv6),
    ] {
        let slot = format!("advertise {} unicast", family.afi());
        lines.extend(advertise.as_ref().map(|Advertise { route_map }| {
            match route_map {
                None => Statement::new(slot),
                Some(map) => Statement::new(format!("{slot} route-map {map}"))
                    .undo(format!("no {slot}"))
                    .slot(slot),
            }
        }));
    }
    lines.extend(rd.map(distinguisher));
    lines.extend(
        import_targets
            .iter()
            .map(|target| targets("import", target)),
    );
    lines.extend(
        export_targets
            .iter()
            .map(|target| targets("export", target)),
    );
    let blocks = vnis.iter().map(|(vni, it)| vni_block(bgp.asn, *vni, it));
    Block {
        statements: lines,
        blocks: blocks.collect(),
        ..Block::new(
            "address-family l2vpn evpn".to_owned(),
            "exit-address-family",
        )
    }
}

/// A VNI. FRR does not store the target that it derives by itself while it has no other, and forgets it when another comes: so that
/// one is last.
fn vni_block(asn: Asn, vni: Vni, targets_of: &VniTargets) -> Block {
    let VniTargets { rd, import, export } = targets_of;
    let derived = derived_target(asn, vni);
    let is_derived = |target: &RouteTarget| Some(*target) == derived;
    let mut imports: Vec<ImportRouteTarget> = import.iter().copied().collect();
    imports
        .sort_by_key(|target| matches!(target, ImportRouteTarget::Exactly(it) if is_derived(it)));
    let mut exports: Vec<RouteTarget> = export.iter().copied().collect();
    exports.sort_by_key(is_derived);
    let mut statements: Vec<Statement> = rd.iter().copied().map(distinguisher).collect();
    statements.extend(imports.iter().map(|target| targets("import", target)));
    statements.extend(exports.iter().map(|target| targets("export", target)));
    let enter = format!("vni {vni}");
    Block {
        remove: Some(format!("no {enter}")),
        statements,
        ..Block::new(enter, "exit-vni")
    }
}

/// FRR takes another value in place of the old one.
fn distinguisher(rd: RouteDistinguisher) -> Statement {
    Statement::new(format!("rd {rd}")).slot("rd".to_owned())
}

fn targets(way: &str, target: impl std::fmt::Display) -> Statement {
    Statement::new(format!("route-target {way} {target}"))
}
