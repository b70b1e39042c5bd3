//! Prefix lists, community lists and route maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::ParseIntError,
};

use api::value::Asn;

use super::{
    Context, Outcome,
    words::{community, flag, value},
};
use crate::config::{
    FrrConfig, IpFamily, MatchCommunity, Name, PrefixRange, PrefixRule, RouteMapAction,
    RouteMapEntry, SetCommunity,
};

pub(super) fn root(config: &mut FrrConfig, negated: bool, words: &[&str]) -> Option<Outcome> {
    match words {
        ["ip" | "ipv6", "nht", "resolve-via-default"] => {
            config.resolve_via_default = !negated;
        }
        ["ip", "prefix-list", rest @ ..] => prefix_list(config, IpFamily::V4, negated, rest)?,
        ["ipv6", "prefix-list", rest @ ..] => prefix_list(config, IpFamily::V6, negated, rest)?,
        ["bgp", "community-list", "standard", rest @ ..] => {
            community_list(&mut config.community_lists, negated, rest)?;
        }
        ["bgp", "large-community-list", "standard", rest @ ..] => {
            community_list(&mut config.large_community_lists, negated, rest)?;
        }
        ["route-map", name] if negated => {
            config.route_maps.remove(&name.parse::<Name>().ok()?);
        }
        ["route-map", name, action, seq] => {
            return route_map(config, negated, name, action, seq);
        }
        _ => return None,
    }
    Some(Outcome::Done)
}

fn prefix_list(
    config: &mut FrrConfig,
    family: IpFamily,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let (name, words) = words.split_first()?;
    let key = (family, name.parse::<Name>().ok()?);
    match (negated, words) {
        (true, []) => {
            config.prefix_lists.remove(&key);
        }
        (true, ["seq", seq, ..]) => {
            let list = config.prefix_lists.entry(key.clone()).or_default();
            list.remove(&seq.parse().ok()?);
            if list.is_empty() {
                config.prefix_lists.remove(&key);
            }
        }
        (false, ["seq", seq, action, prefixes @ ..]) => {
            let rule = prefix_rule(family, action, prefixes)?;
            let list = config.prefix_lists.entry(key).or_default();
            insert(list, seq.parse().ok()?, rule)?;
        }
        (false, [action, prefixes @ ..]) => {
            let rule = prefix_rule(family, action, prefixes)?;
            append(config.prefix_lists.entry(key).or_default(), rule)?;
        }
        _ => return None,
    }
    Some(())
}

fn prefix_rule(family: IpFamily, action: &str, words: &[&str]) -> Option<PrefixRule> {
    let action = self::action(action)?;
    let (prefix, ge, le) = match words {
        ["any"] => return Some(PrefixRule::any(action)),
        [prefix] => (prefix, None, None),
        [prefix, "ge", ge] => (prefix, Some(ge), None),
        [prefix, "le", le] => (prefix, None, Some(le)),
        [prefix, "ge", ge, "le", le] | [prefix, "le", le, "ge", ge] => (prefix, Some(ge), Some(le)),
        _ => return None,
    };
    let prefix = prefix.parse().ok()?;
    let range = PrefixRange::new(prefix, length(ge).ok()?, length(le).ok()?)?;
    (IpFamily::of(prefix) == family).then_some(PrefixRule {
        action,
        range: Some(range),
    })
}

fn action(word: &str) -> Option<RouteMapAction> {
    match word {
        "permit" => Some(RouteMapAction::Permit),
        "deny" => Some(RouteMapAction::Deny),
        _ => None,
    }
}

/// As FRR: a value stands in a list once.
fn insert<T: Eq>(list: &mut BTreeMap<u32, T>, seq: u32, value: T) -> Option<()> {
    let elsewhere = list
        .iter()
        .any(|(other, present)| *other != seq && *present == value);
    (!elsewhere).then(|| {
        list.insert(seq, value);
    })
}

/// As FRR: an entry without a number comes last, at the next multiple of five. One that is there already stays where it is.
fn append<T: Eq>(list: &mut BTreeMap<u32, T>, value: T) -> Option<()> {
    if list.values().any(|present| *present == value) {
        return Some(());
    }
    let last = list.keys().next_back().copied().unwrap_or_default();
    let next = (last - last % 5).checked_add(5)?;
    list.insert(next, value);
    Some(())
}

/// A length that may be absent, but not unreadable.
fn length(word: Option<&&str>) -> Result<Option<u8>, ParseIntError> {
    word.map(|word| word.parse()).transpose()
}

fn community_list(
    lists: &mut BTreeMap<Name, crate::config::CommunityList>,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let (name, words) = words.split_first()?;
    let name = name.parse::<Name>().ok()?;
    match (negated, words) {
        (true, []) => {
            lists.remove(&name);
        }
        (true, ["seq", seq, ..]) => {
            let list = lists.entry(name.clone()).or_default();
            list.remove(&seq.parse().ok()?);
            if list.is_empty() {
                lists.remove(&name);
            }
        }
        (false, ["seq", seq, "permit", one]) => {
            let one = community(one)?;
            insert(lists.entry(name).or_default(), seq.parse().ok()?, one)?;
        }
        (false, ["permit", one]) => {
            let one = community(one)?;
            append(lists.entry(name).or_default(), one)?;
        }
        _ => return None,
    }
    Some(())
}

fn route_map(
    config: &mut FrrConfig,
    negated: bool,
    name: &str,
    action: &str,
    seq: &str,
) -> Option<Outcome> {
    let (name, seq) = (name.parse::<Name>().ok()?, seq.parse().ok()?);
    let action = self::action(action)?;
    let map = config.route_maps.entry(name.clone()).or_default();
    if negated {
        map.remove(&seq);
        if map.is_empty() {
            config.route_maps.remove(&name);
        }
        return Some(Outcome::Done);
    }
    map.entry(seq)
        .or_insert_with(|| RouteMapEntry::new(action))
        .action = action;
    Some(Outcome::Open(Context::RouteMap(name, seq)))
}

pub(super) fn route_map_entry(
    config: &mut FrrConfig,
    name: &Name,
    seq: u16,
    negated: bool,
    words: &[&str],
) -> Option<()> {
    let rule = config.route_maps.get_mut(name)?.get_mut(&seq)?;
    match words {
        ["call", rest @ ..] => value(&mut rule.call, negated, rest),
        ["on-match", "next", rest @ ..] => flag(&mut rule.on_match_next, negated, rest),
        ["match", "source-vrf", rest @ ..] => value(&mut rule.match_source_vrf, negated, rest),
        [
            "match",
            ip @ ("ip" | "ipv6"),
            "address",
            "prefix-list",
            rest @ ..,
        ] => {
            let family = if *ip == "ip" {
                IpFamily::V4
            } else {
                IpFamily::V6
            };
            let mut list = None;
            value(&mut list, negated, rest)?;
            match list {
                Some(list) => rule.match_prefix_list = Some((family, list)),
                // Taking back the match of one family leaves that of the other.
                None if rule
                    .match_prefix_list
                    .as_ref()
                    .is_some_and(|(of, _)| *of == family) =>
                {
                    rule.match_prefix_list = None;
                }
                None => {}
            }
            Some(())
        }
        ["match", "community", rest @ ..] => matches(&mut rule.match_community, negated, rest),
        ["match", "large-community", rest @ ..] => {
            matches(&mut rule.match_large_community, negated, rest)
        }
        ["set", "community", rest @ ..] => sets(&mut rule.set_community, negated, rest),
        ["set", "large-community", rest @ ..] => sets(&mut rule.set_large_community, negated, rest),
        ["set", "local-preference", rest @ ..] => {
            value(&mut rule.set_local_preference, negated, rest)
        }
        ["set", "metric", rest @ ..] => value(&mut rule.set_metric, negated, rest),
        ["set", "ip", "next-hop", rest @ ..] => value(&mut rule.set_ipv4_next_hop, negated, rest),
        ["set", "ipv6", "next-hop", "global", rest @ ..] => {
            value(&mut rule.set_ipv6_next_hop, negated, rest)
        }
        ["set", "as-path", "prepend", rest @ ..] => prepends(&mut rule.prepend, negated, rest),
        ["set", "extcommunity", "none", rest @ ..] => {
            flag(&mut rule.delete_extended_communities, negated, rest)
        }
        ["set", "comm-list", list, "delete"] => {
            value(&mut rule.delete_communities, negated, &[list])
        }
        ["set", "large-comm-list", list, "delete"] => {
            value(&mut rule.delete_large_communities, negated, &[list])
        }
        _ => None,
    }
}

fn matches(target: &mut Option<MatchCommunity>, negated: bool, words: &[&str]) -> Option<()> {
    let (list, exact) = match (negated, words) {
        (true, _) => {
            *target = None;
            return Some(());
        }
        (false, [list]) => (list.parse().ok()?, false),
        (false, [list, "exact-match"]) => (list.parse().ok()?, true),
        _ => return None,
    };
    *target = Some(MatchCommunity { list, exact });
    Some(())
}

fn sets(target: &mut Option<SetCommunity>, negated: bool, words: &[&str]) -> Option<()> {
    let all = |words: &[&str]| -> Option<BTreeSet<_>> {
        words.iter().map(|word| community(word)).collect()
    };
    *target = match (negated, words) {
        (true, _) => None,
        (false, []) => return None,
        (false, ["none"]) => Some(SetCommunity::None),
        (false, [list @ .., "additive"]) => Some(SetCommunity::Add(all(list)?)),
        (false, list) => Some(SetCommunity::Replace(all(list)?)),
    };
    Some(())
}

fn prepends(target: &mut Vec<Asn>, negated: bool, words: &[&str]) -> Option<()> {
    *target = if negated {
        Vec::new()
    } else {
        let path = words.iter().map(|word| super::words::asn(word));
        path.collect::<Option<Vec<Asn>>>()?
    };
    (negated || !target.is_empty()).then_some(())
}
