//! VRFs outside of BGP.

use api::value::IfName;

use crate::{
    config::{IpFamily, Name, StaticRoute, Via, Vrf},
    text::{Block, Statement},
    version::Features,
};

/// The block of one VRF.
pub(crate) fn vrf(name: &IfName, vrf: &Vrf, features: Features) -> Block {
    let Vrf { vni, static_routes } = vrf;
    let vni = vni.map(|vni| {
        // FRR knows a VNI by its number alone, so both the old and the new value are named.
        Statement::new(format!("vni {vni}"))
            .slot("vni".to_owned())
            .undo_first()
    });
    let routes = static_routes
        .iter()
        .map(|(route, bfd)| static_route(route, bfd.as_ref()));
    let statements = if features.vni_before_routes {
        vni.into_iter().chain(routes).collect()
    } else {
        let mut statements: Vec<Statement> = routes.collect();
        statements.extend(vni);
        statements
    };
    let enter = format!("vrf {name}");
    Block {
        remove: Some(format!("no {enter}")),
        statements,
        ..Block::new(enter, "exit-vrf")
    }
}

/// A route that drops is set last and taken back first, because FRR refuses a prefix that is both dropped and routed.
fn static_route(route: &StaticRoute, bfd: Option<&Name>) -> Statement {
    let StaticRoute { prefix, via } = route;
    let ip = IpFamily::of(*prefix).ip();
    let route = match via {
        Via::Blackhole => return Statement::new(format!("{ip} route {prefix} blackhole")).late(),
        Via::Vrf(vrf) => format!("{ip} route {prefix} {vrf} nexthop-vrf {vrf}"),
        Via::Address(address, Some(vrf)) => {
            format!("{ip} route {prefix} {address} nexthop-vrf {vrf}")
        }
        Via::Address(address, None) => format!("{ip} route {prefix} {address}"),
    };
    match bfd {
        None => Statement::new(route).undo_first(),
        // Writing the route again without BFD would leave BFD on it.
        Some(profile) => Statement::new(format!("{route} bfd profile {profile}"))
            .undo(format!("no {route}"))
            .slot(route)
            .undo_first(),
    }
}
