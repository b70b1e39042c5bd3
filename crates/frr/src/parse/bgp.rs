//! BGP instances.

use std::collections::{BTreeMap, BTreeSet};

use api::value::{IfName, Prefix, Vni};

use super::{
    Context, Outcome,
    words::{self, flag, member, value},
};
use crate::{
    config::{
        Advertise, Bgp, FamilySwitch, FrrConfig, GracefulRestart, IpFamily, MaximumPrefix, Name,
        Neighbor, NeighborBfd, NeighborFamily, Peer, RedistributeSource, RemoteAs, SessionSwitch,
        Timers,
    },
    lower::ALLOWAS_IN_DEFAULT,
    secret::Password,
};

pub(super) fn root(config: &mut FrrConfig, negated: bool, words: &[&str]) -> Option<Outcome> {
    let (asn, vrf): (_, Option<IfName>) = match words {
        ["router", "bgp", asn] => (words::asn(asn)?, None),
        ["router", "bgp", asn, "vrf", vrf] => (words::asn(asn)?, Some(vrf.parse().ok()?)),
        _ => return None,
    };
    if negated {
        // As FRR: not before the others, not while it has a VNI, not by another AS.
        let last = vrf.is_some() || config.bgp.len() == 1;
        let carried = vrf
            .as_ref()
            .and_then(|vrf| config.vrfs.get(vrf))
            .is_some_and(|vrf| vrf.vni.is_some());
        let same = config.bgp.get(&vrf).is_some_and(|bgp| bgp.asn == asn);
        return (last && !carried && same).then(|| {
            config.bgp.remove(&vrf);
            Outcome::Done
        });
    }
    let bgp = config
        .bgp
        .entry(vrf.clone())
        .or_insert_with(|| Bgp::new(asn));
    if bgp.asn != asn {
        return None;
    }
    Some(Outcome::Open(Context::Bgp(vrf)))
}

pub(super) fn instance(
    bgp: &mut Bgp,
    vrf: Option<&IfName>,
    negated: bool,
    words: &[&str],
) -> Outcome {
    let family = |family| Outcome::Open(Context::Unicast(vrf.cloned(), family));
    match words {
        ["address-family", "ipv4", "unicast"] => return family(IpFamily::V4),
        ["address-family", "ipv6", "unicast"] => return family(IpFamily::V6),
        ["address-family", "l2vpn", "evpn"] => {
            return Outcome::Open(Context::Evpn(vrf.cloned()));
        }
        _ => {}
    }
    let understood = match words {
        ["neighbor", name, rest @ ..] => neighbor(bgp, name, negated, rest),
        ["bgp", rest @ ..] => header(bgp, negated, rest),
        _ => None,
    };
    understood.map_or(Outcome::Foreign, |()| Outcome::Done)
}

fn header(bgp: &mut Bgp, negated: bool, words: &[&str]) -> Option<()> {
    match words {
        ["router-id", rest @ ..] => value(&mut bgp.router_id, negated, rest),
        ["ebgp-requires-policy", rest @ ..] => flag(&mut bgp.ebgp_requires_policy, negated, rest),
        ["default", "ipv4-unicast", rest @ ..] => {
            flag(&mut bgp.default_ipv4_unicast, negated, rest)
        }
        ["bestpath", "as-path", "multipath-relax", rest @ ..] => {
            flag(&mut bgp.multipath_relax, negated, rest)
        }
        ["network", "import-check", rest @ ..] => {
            flag(&mut bgp.network_import_check, negated, rest)
        }
        ["graceful-restart", rest @ ..] => {
            graceful_restart(&mut bgp.graceful_restart, negated, rest)
        }
        ["listen", "limit", rest @ ..] => value(&mut bgp.listen_limit, negated, rest),
        ["listen", "range", range, "peer-group", group] => {
            let (range, group) = (range.parse::<Prefix>().ok()?, group.parse().ok()?);
            words::entry(&mut bgp.listen_ranges, negated, range, group);
            Some(())
        }
        _ => None,
    }
}

fn graceful_restart(restart: &mut GracefulRestart, negated: bool, words: &[&str]) -> Option<()> {
    let default = GracefulRestart::default();
    match (negated, words) {
        (_, []) => restart.on_all_sessions = !negated,
        (_, ["preserve-fw-state"]) => restart.preserve_fw_state = !negated,
        (false, ["restart-time", seconds]) => restart.restart_time = seconds.parse().ok()?,
        (false, ["stalepath-time", seconds]) => restart.stale_path_time = seconds.parse().ok()?,
        (true, ["restart-time", ..]) => restart.restart_time = default.restart_time,
        (true, ["stalepath-time", ..]) => restart.stale_path_time = default.stale_path_time,
        _ => return None,
    }
    Some(())
}

/// The session that a word names: a name means the group or device that was declared with it.
fn known(bgp: &Bgp, word: &str) -> Option<Peer> {
    let address = word.parse().ok().map(Peer::Address);
    let group = word.parse().ok().map(Peer::Group);
    let device = word.parse().ok().map(Peer::Interface);
    [address, group, device]
        .into_iter()
        .flatten()
        .find(|peer| bgp.neighbors.contains_key(peer))
}

fn remote_as(word: &str) -> Option<RemoteAs> {
    match word {
        "external" => Some(RemoteAs::External),
        "internal" => Some(RemoteAs::Internal),
        number => words::asn(number).map(RemoteAs::Number),
    }
}

fn neighbor(bgp: &mut Bgp, name: &str, negated: bool, words: &[&str]) -> Option<()> {
    match (negated, words) {
        (true, []) => remove(bgp, &Peer::Address(name.parse().ok()?)),
        (true, ["interface"]) => remove(bgp, &Peer::Interface(name.parse().ok()?)),
        (true, ["peer-group"]) => remove(bgp, &Peer::Group(name.parse().ok()?)),
        (false, ["peer-group"]) => {
            let group = Peer::Group(name.parse().ok()?);
            bgp.neighbors.entry(group).or_insert_with(Neighbor::group);
            Some(())
        }
        (false, ["interface", "remote-as", asn]) => {
            let asn = remote_as(asn)?;
            let peer = Peer::Interface(name.parse().ok()?);
            let session = bgp.neighbors.entry(peer).or_insert_with(Neighbor::group);
            session.remote_as = Some(asn);
            Some(())
        }
        (false, ["remote-as", asn]) => {
            let asn = remote_as(asn)?;
            // An address is declared by its AS, a group is declared before.
            let peer = match name.parse() {
                Ok(address) => Peer::Address(address),
                Err(_) => known(bgp, name)?,
            };
            let session = bgp.neighbors.entry(peer).or_insert_with(Neighbor::group);
            session.remote_as = Some(asn);
            Some(())
        }
        _ => {
            let peer = known(bgp, name)?;
            session(bgp.neighbors.get_mut(&peer)?, negated, words)
        }
    }
}

/// A session takes everything about it along.
fn remove(bgp: &mut Bgp, peer: &Peer) -> Option<()> {
    bgp.neighbors.remove(peer)?;
    bgp.ipv4.neighbors.remove(peer);
    bgp.ipv6.neighbors.remove(peer);
    bgp.evpn.neighbors.remove(peer);
    Some(())
}

fn session(session: &mut Neighbor, negated: bool, words: &[&str]) -> Option<()> {
    match words {
        ["remote-as", ..] if negated => session.remote_as = None,
        ["local-as", rest @ ..] => {
            session.local_as = match (negated, rest) {
                (true, _) => None,
                (false, [asn, "no-prepend", "replace-as"]) => Some(words::asn(asn)?),
                _ => return None,
            };
        }
        ["bfd"] if negated => session.bfd = None,
        ["bfd"] => {
            session.bfd.get_or_insert_default();
        }
        ["bfd", "profile", rest @ ..] => {
            let mut profile = None;
            value(&mut profile, negated, rest)?;
            match (&mut session.bfd, negated) {
                (Some(bfd), _) => bfd.profile = profile,
                (None, true) => {}
                (none, false) => none.insert(NeighborBfd::default()).profile = profile,
            }
        }
        ["bfd", "check-control-plane-failure"] => match (&mut session.bfd, negated) {
            (Some(bfd), _) => bfd.check_control_plane = !negated,
            (None, true) => {}
            (none, false) => none.insert(NeighborBfd::default()).check_control_plane = true,
        },
        ["description", rest @ ..] => {
            session.description = if negated {
                None
            } else {
                Some(rest.join(" ").parse().ok()?)
            };
        }
        ["password", rest @ ..] => {
            session.password = match (negated, rest) {
                (true, _) => None,
                (false, [word]) => Some(Password::new(word).ok()?),
                _ => return None,
            };
        }
        ["port", rest @ ..] => value(&mut session.port, negated, rest)?,
        ["ebgp-multihop"] => session.ebgp_multihop = (!negated).then_some(u8::MAX),
        ["ebgp-multihop", rest @ ..] => value(&mut session.ebgp_multihop, negated, rest)?,
        ["update-source", rest @ ..] => value(&mut session.update_source, negated, rest)?,
        ["timers", "connect", rest @ ..] => value(&mut session.connect_time, negated, rest)?,
        ["timers", rest @ ..] => {
            session.timers = match (negated, rest) {
                (true, _) => None,
                (false, [keepalive, hold]) => {
                    Some(Timers::new(keepalive.parse().ok()?, hold.parse().ok()?)?)
                }
                _ => return None,
            };
        }
        ["capability", "extended-nexthop", rest @ ..] => {
            flag(&mut session.extended_nexthop, negated, rest)?;
        }
        ["disable-connected-check", rest @ ..] => {
            flag(&mut session.disable_connected_check, negated, rest)?;
        }
        ["graceful-restart", rest @ ..] => flag(&mut session.graceful_restart, negated, rest)?,
        ["ttl-security", "hops", rest @ ..] => value(&mut session.ttl_security, negated, rest)?,
        all => switch(
            &mut session.switches,
            SessionSwitch::ALL,
            SessionSwitch::as_str,
            negated,
            all,
        )?,
    }
    Some(())
}

/// A line about a session inside an address family.
fn neighbor_family(
    families: &mut BTreeMap<Peer, NeighborFamily>,
    peer: Peer,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let mut family = families.get(&peer).cloned().unwrap_or_default();
    match words {
        ["activate", rest @ ..] => flag(&mut family.activate, negated, rest)?,
        ["next-hop-self", "force", rest @ ..] => flag(&mut family.next_hop_self, negated, rest)?,
        ["allowas-in"] if !negated => family.allowas_in = Some(ALLOWAS_IN_DEFAULT),
        ["allowas-in", rest @ ..] => value(&mut family.allowas_in, negated, rest)?,
        ["maximum-prefix", rest @ ..] => {
            family.maximum_prefix = match (negated, rest) {
                (true, _) => None,
                (false, [limit]) => Some(MaximumPrefix {
                    limit: limit.parse().ok()?,
                    restart: None,
                }),
                (false, [limit, "restart", minutes]) => Some(MaximumPrefix {
                    limit: limit.parse().ok()?,
                    restart: Some(minutes.parse().ok()?),
                }),
                _ => return None,
            };
        }
        ["prefix-list", name, "in"] => value(&mut family.prefix_list_in, negated, &[name])?,
        ["prefix-list", name, "out"] => value(&mut family.prefix_list_out, negated, &[name])?,
        ["weight", rest @ ..] => value(&mut family.weight, negated, rest)?,
        ["route-map", name, "in"] => value(&mut family.route_map_in, negated, &[name])?,
        ["route-map", name, "out"] => value(&mut family.route_map_out, negated, &[name])?,
        all => switch(
            &mut family.switches,
            FamilySwitch::ALL,
            FamilySwitch::as_str,
            negated,
            all,
        )?,
    }
    let gone = family == NeighborFamily::default();
    words::entry(families, gone, peer, family);
    Some(())
}

pub(super) fn unicast(
    bgp: &mut Bgp,
    family: IpFamily,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    if let ["neighbor", name, rest @ ..] = words {
        let peer = known(bgp, name)?;
        return neighbor_family(&mut bgp.unicast_mut(family).neighbors, peer, negated, rest);
    }
    let unicast = bgp.unicast_mut(family);
    match words {
        ["network", prefix] => member(&mut unicast.networks, negated, prefix),
        ["aggregate-address", prefix] => member(&mut unicast.aggregates, negated, prefix),
        ["redistribute", source, rest @ ..] => {
            let source = match *source {
                "connected" => RedistributeSource::Connected,
                "kernel" => RedistributeSource::Kernel,
                "static" => RedistributeSource::Static,
                _ => return None,
            };
            let map: Option<Name> = match rest {
                [] => None,
                ["route-map", name] => Some(name.parse().ok()?),
                _ => return None,
            };
            // FRR keeps the map of a line that is written again without one.
            let map = map.or_else(|| unicast.redistribute.get(&source).cloned().flatten());
            words::entry(&mut unicast.redistribute, negated, source, map);
            Some(())
        }
        ["import", "vrf", "route-map", rest @ ..] => {
            value(&mut unicast.import_route_map, negated, rest)
        }
        ["maximum-paths", rest @ ..] => value(&mut unicast.maximum_paths, negated, rest),
        ["import", "vrf", vrf] => member(&mut unicast.import_vrfs, negated, vrf),
        _ => None,
    }
}

pub(super) fn evpn(bgp: &mut Bgp, vrf: Option<&IfName>, negated: bool, words: &[&str]) -> Outcome {
    if let ["vni", number] = words {
        let Some(number) = words::vni(number) else {
            return Outcome::Foreign;
        };
        if negated {
            bgp.evpn.vnis.remove(&number);
            return Outcome::Done;
        }
        bgp.evpn.vnis.entry(number).or_default();
        return Outcome::Open(Context::Vni(vrf.cloned(), number));
    }
    let understood = match words {
        ["neighbor", name, rest @ ..] => known(bgp, name)
            .and_then(|peer| neighbor_family(&mut bgp.evpn.neighbors, peer, negated, rest)),
        ["advertise-all-vni", rest @ ..] => flag(&mut bgp.evpn.advertise_all_vni, negated, rest),
        ["advertise-svi-ip", rest @ ..] => flag(&mut bgp.evpn.advertise_svi_ip, negated, rest),
        ["rd", rest @ ..] => value(&mut bgp.evpn.rd, negated, rest),
        ["advertise", "ipv4", "unicast", rest @ ..] => {
            advertise(&mut bgp.evpn.advertise_ipv4, negated, rest)
        }
        ["advertise", "ipv6", "unicast", rest @ ..] => {
            advertise(&mut bgp.evpn.advertise_ipv6, negated, rest)
        }
        ["route-target", "import", target] => member(&mut bgp.evpn.import_targets, negated, target),
        ["route-target", "export", target] => member(&mut bgp.evpn.export_targets, negated, target),
        _ => None,
    };
    understood.map_or(Outcome::Foreign, |()| Outcome::Done)
}

fn advertise(target: &mut Option<Advertise>, negated: bool, words: &[&str]) -> Option<()> {
    let route_map = match words {
        [] => None,
        ["route-map", name] => Some(name.parse().ok()?),
        _ => return None,
    };
    *target = (!negated).then_some(Advertise { route_map });
    Some(())
}

pub(super) fn vni(bgp: &mut Bgp, vni: Vni, negated: bool, words: &[&str]) -> Option<()> {
    let targets = bgp.evpn.vnis.get_mut(&vni)?;
    match words {
        ["rd", rest @ ..] => value(&mut targets.rd, negated, rest),
        ["route-target", "import", target] => member(&mut targets.import, negated, target),
        ["route-target", "export", target] => member(&mut targets.export, negated, target),
        _ => None,
    }
}

/// Turns a switch on or off by its words.
fn switch<T: Copy + Ord>(
    switches: &mut BTreeSet<T>,
    all: &[T],
    words_of: fn(T) -> &'static str,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let words = words.join(" ");
    let switch = *all.iter().find(|switch| words_of(**switch) == words)?;
    if negated {
        switches.remove(&switch);
    } else {
        switches.insert(switch);
    }
    Some(())
}
