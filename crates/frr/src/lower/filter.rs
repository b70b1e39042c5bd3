//! Prefix lists, community lists and route maps.

use std::collections::BTreeMap;

use crate::{
    config::{FrrConfig, IpFamily, MatchCommunity, Name, RouteMapEntry, SetCommunity},
    text::{Block, Statement},
};

/// A list of one-line entries and the line that removes all of them.
pub(crate) struct List {
    pub(crate) remove: String,
    pub(crate) entries: Vec<Statement>,
}

/// All prefix lists of a family, in FRR's order.
pub(crate) fn prefix_lists(config: &FrrConfig, family: IpFamily) -> Vec<List> {
    config
        .prefix_lists
        .iter()
        .filter(|((of, _), _)| *of == family)
        .map(|((_, name), list)| {
            let rules = list.iter().map(|(seq, rule)| (*seq, rule.to_string()));
            entries(&format!("{} prefix-list", family.ip()), name, rules)
        })
        .collect()
}

/// All community lists, the standard ones first.
pub(crate) fn community_lists(config: &FrrConfig) -> Vec<List> {
    [
        ("bgp community-list standard", &config.community_lists),
        (
            "bgp large-community-list standard",
            &config.large_community_lists,
        ),
    ]
    .into_iter()
    .flat_map(|(kind, lists)| {
        lists.iter().map(move |(name, list)| {
            let rules = list.iter().map(|(seq, it)| (*seq, format!("permit {it}")));
            entries(kind, name, rules)
        })
    })
    .collect()
}

fn entries(kind: &str, name: &Name, rules: impl Iterator<Item = (u32, String)>) -> List {
    let entries = rules
        .map(|(seq, rule)| {
            Statement::new(format!("{kind} {name} seq {seq} {rule}"))
                .slot(format!("{kind} {name} seq {seq}"))
        })
        .collect();
    List {
        remove: format!("no {kind} {name}"),
        entries,
    }
}

/// The entries of one route map.
pub(crate) fn route_map_entries(name: &Name, map: &BTreeMap<u16, RouteMapEntry>) -> Vec<Block> {
    map.iter()
        .map(|(seq, entry)| {
            let enter = format!("route-map {name} {} {seq}", entry.action);
            Block {
                key: format!("route-map {name} {seq}"),
                remove: Some(format!("no {enter}")),
                statements: statements(entry),
                ..Block::new(enter, "exit")
            }
        })
        .collect()
}

/// FRR sorts the lines of an entry by their words, with `on-match` between `match` and `set`.
fn statements(entry: &RouteMapEntry) -> Vec<Statement> {
    let RouteMapEntry {
        action: _,
        match_prefix_list,
        match_community,
        match_large_community,
        match_source_vrf,
        call,
        on_match_next,
        set_community,
        set_large_community,
        set_local_preference,
        set_metric,
        set_ipv4_next_hop,
        set_ipv6_next_hop,
        prepend,
        delete_communities,
        delete_large_communities,
        delete_extended_communities,
    } = entry;
    let slot = |word: &str| word.to_owned();
    [
        call.as_ref().map(|map| Statement::value(slot("call"), map)),
        match_community
            .as_ref()
            .map(|community| matches("match community", community)),
        match_prefix_list.as_ref().map(|(family, list)| {
            Statement::value(format!("match {} address prefix-list", family.ip()), list)
        }),
        match_large_community
            .as_ref()
            .map(|community| matches("match large-community", community)),
        match_source_vrf.as_ref().map(|vrf| {
            // The one `match` whose `no` wants the value.
            Statement::new(format!("match source-vrf {vrf}")).slot(slot("match source-vrf"))
        }),
        on_match_next.then(|| Statement::new(slot("on-match next"))),
        (!prepend.is_empty()).then(|| {
            let path: Vec<String> = prepend.iter().map(ToString::to_string).collect();
            Statement::value(slot("set as-path prepend"), path.join(" "))
        }),
        delete_communities
            .as_ref()
            .map(|list| deletes("set comm-list", list)),
        set_community
            .as_ref()
            .map(|community| sets("set community", community)),
        delete_extended_communities.then(|| Statement::new(slot("set extcommunity none"))),
        set_ipv4_next_hop.map(|hop| Statement::value(slot("set ip next-hop"), hop)),
        // The one `set` whose `no` wants the value.
        set_ipv6_next_hop.map(|hop| {
            Statement::new(format!("set ipv6 next-hop global {hop}"))
                .slot(slot("set ipv6 next-hop global"))
        }),
        delete_large_communities
            .as_ref()
            .map(|list| deletes("set large-comm-list", list)),
        set_large_community
            .as_ref()
            .map(|community| sets("set large-community", community)),
        set_local_preference.map(|value| Statement::value(slot("set local-preference"), value)),
        set_metric.map(|value| Statement::value(slot("set metric"), value)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn matches(word: &str, community: &MatchCommunity) -> Statement {
    let MatchCommunity { list, exact } = community;
    let exact = if *exact { " exact-match" } else { "" };
    Statement::value(word.to_owned(), format!("{list}{exact}"))
}

fn deletes(word: &str, list: &Name) -> Statement {
    Statement::new(format!("{word} {list} delete")).slot(word.to_owned())
}

fn sets(word: &str, community: &SetCommunity) -> Statement {
    let list = |communities: &std::collections::BTreeSet<_>| {
        let words: Vec<String> = communities.iter().map(ToString::to_string).collect();
        words.join(" ")
    };
    let value = match community {
        SetCommunity::None => "none".to_owned(),
        SetCommunity::Replace(communities) => list(communities),
        SetCommunity::Add(communities) => format!("{} additive", list(communities)),
    };
    Statement::value(word.to_owned(), value)
}
