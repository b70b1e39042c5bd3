//! VRFs outside of BGP, and BFD profiles.

use std::net::IpAddr;

use api::value::{IfName, Prefix};

use super::{
    Context, Outcome,
    words::{flag, vni},
};
use crate::config::{BfdProfile, FrrConfig, IpFamily, Name, StaticRoute, Via};

pub(super) fn root(config: &mut FrrConfig, negated: bool, words: &[&str]) -> Option<Outcome> {
    match words {
        ["vrf", name] => {
            let name: IfName = name.parse().ok()?;
            if negated {
                config.vrfs.remove(&name);
                return Some(Outcome::Done);
            }
            config.vrfs.entry(name.clone()).or_default();
            Some(Outcome::Open(Context::Vrf(name)))
        }
        ["bfd"] if !negated => Some(Outcome::Open(Context::Bfd)),
        _ => None,
    }
}

pub(super) fn vrf(
    config: &mut FrrConfig,
    name: &IfName,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let vrf = config.vrfs.get_mut(name)?;
    match words {
        ["vni", number] => {
            let number = vni(number)?;
            vrf.vni = (!negated).then_some(number);
            Some(())
        }
        [ip @ ("ip" | "ipv6"), "route", prefix, rest @ ..] => {
            let prefix: Prefix = prefix.parse().ok()?;
            if IpFamily::of(prefix).ip() != *ip {
                return None;
            }
            let (via, bfd) = next_hop(rest)?;
            let route = StaticRoute { prefix, via };
            super::words::entry(&mut vrf.static_routes, negated, route, bfd);
            // As FRR: a prefix is dropped or routed, not both.
            vrf.contradictions().is_empty().then_some(())
        }
        _ => None,
    }
}

fn next_hop(words: &[&str]) -> Option<(Via, Option<Name>)> {
    let (words, bfd) = match words {
        [rest @ .., "bfd", "profile", profile] => (rest, Some(profile.parse().ok()?)),
        all => (all, None),
    };
    let via = match words {
        ["blackhole"] => Via::Blackhole,
        [word] => Via::Address(word.parse().ok()?, None),
        [word, "nexthop-vrf", vrf] => match word.parse::<IpAddr>() {
            Ok(address) => Via::Address(address, Some(vrf.parse().ok()?)),
            Err(_) if word == vrf => Via::Vrf(vrf.parse().ok()?),
            Err(_) => return None,
        },
        _ => return None,
    };
    Some((via, bfd))
}

pub(super) fn bfd(config: &mut FrrConfig, negated: bool, words: &[&str]) -> Outcome {
    let ["profile", name] = words else {
        return Outcome::Foreign;
    };
    let Ok(name) = name.parse::<Name>() else {
        return Outcome::Foreign;
    };
    if negated {
        config.bfd_profiles.remove(&name);
        return Outcome::Done;
    }
    config.bfd_profiles.entry(name.clone()).or_default();
    Outcome::Open(Context::BfdProfile(name))
}

pub(super) fn bfd_profile(
    config: &mut FrrConfig,
    name: &Name,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let profile = config.bfd_profiles.get_mut(name)?;
    let default = BfdProfile::default();
    let number = |target: &mut u32, word: &str| {
        *target = word.parse().ok()?;
        Some(())
    };
    let small = |target: &mut u8, default: u8, rest: &[&str]| {
        *target = match (negated, rest) {
            (true, _) => default,
            (false, [word]) => word.parse().ok()?,
            _ => return None,
        };
        Some(())
    };
    match words {
        ["detect-multiplier", rest @ ..] => small(
            &mut profile.detect_multiplier,
            default.detect_multiplier,
            rest,
        ),
        ["minimum-ttl", rest @ ..] => small(&mut profile.minimum_ttl, default.minimum_ttl, rest),
        ["receive-interval", word] => number(&mut profile.receive_interval, word),
        ["transmit-interval", word] => number(&mut profile.transmit_interval, word),
        ["echo", "receive-interval", word] => number(&mut profile.echo_receive_interval, word),
        ["echo", "transmit-interval", word] => number(&mut profile.echo_transmit_interval, word),
        ["echo-mode", rest @ ..] => flag(&mut profile.echo_mode, negated, rest),
        ["passive-mode", rest @ ..] => flag(&mut profile.passive_mode, negated, rest),
        _ => None,
    }
}
