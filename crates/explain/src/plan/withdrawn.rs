//! Which changes take routes away from VRFs that stay: fewer pass their filters, or what made them is gone. Sessions and devices stay, so
//! that no class of disruption names it, and traffic stops all the same.

use std::{collections::BTreeSet, ops::RangeInclusive};

use api::tcaas::NodeNetworkConfigSpec;
use ipnet::IpNet;

use super::{Change, ChangeKind, list};
use crate::element::{EVERYTHING, Element, filtered};

/// Marks these changes of a node.
pub(super) fn mark(
    changes: &mut [Change],
    old: &NodeNetworkConfigSpec,
    new: &NodeNetworkConfigSpec,
) {
    let removed = |change: &Change| match (&change.element, change.kind) {
        (Element::Vrf { vrf } | Element::HostRouter { vrf }, ChangeKind::Removed) => {
            Some(vrf.clone())
        }
        _ => None,
    };
    // A VRF that is gone, or that was not there before, is a change of its own.
    let gone: BTreeSet<String> = changes.iter().filter_map(removed).collect();
    let rules = [Rules::of(old), Rules::of(new)];
    for change in changes {
        change.withdraws = match (&change.element, change.kind) {
            (
                Element::Import { vrf, from, .. } | Element::DeniedImport { vrf, from, .. },
                ChangeKind::Added | ChangeKind::Removed,
            ) if !gone.contains(vrf) && !gone.contains(from) => narrows(&rules, &change.element),
            (
                Element::Export { vrf, .. } | Element::DeniedExport { vrf, .. },
                ChangeKind::Added | ChangeKind::Removed,
            ) if !gone.contains(vrf) => narrows(&rules, &change.element),
            (
                Element::RouteTarget { vrf, .. }
                | Element::Aggregate { vrf, .. }
                | Element::Route { vrf, .. }
                | Element::HostNetwork { vrf, .. },
                ChangeKind::Removed,
            ) => !gone.contains(vrf),
            _ => false,
        };
    }
}

/// Whether routes that an element is about passed before, and not all of them do after.
fn narrows([old, new]: &[Rules; 2], element: &Element) -> bool {
    let (list, Some(routes)) = (list(element), routes(element)) else {
        return false;
    };
    old.pass(&list, &routes) != Passing::None && new.pass(&list, &routes) != Passing::All
}

/// How many of some routes pass a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    None,
    Some,
    All,
}

/// The rules of all filters of a node in their order: the filter, its routes, and whether they pass.
struct Rules(Vec<(String, Routes, bool)>);

impl Rules {
    fn of(spec: &NodeNetworkConfigSpec) -> Self {
        let rules = spec.vrfs().flat_map(filtered);
        let rules = rules.filter_map(|(element, _)| {
            let is_accepted = matches!(element, Element::Import { .. } | Element::Export { .. });
            Some((list(&element), routes(&element)?, is_accepted))
        });
        Self(rules.collect())
    }

    fn pass(&self, list: &str, routes: &Routes) -> Passing {
        let own = self.0.iter().filter(|(name, ..)| name == list);
        let (mut passed, mut refused) = (false, false);
        for (_, rule, is_accepted) in own.filter(|(_, rule, _)| rule.overlaps(routes)) {
            let found = if *is_accepted {
                &mut passed
            } else {
                &mut refused
            };
            *found = true;
            if rule.contains(routes) {
                return match (passed, refused) {
                    (true, false) => Passing::All,
                    (true, true) => Passing::Some,
                    (false, _) => Passing::None,
                };
            }
        }
        if passed { Passing::Some } else { Passing::None }
    }
}

/// The routes that a rule matches.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Routes {
    All,
    Inside(IpNet, RangeInclusive<u8>),
}

impl Routes {
    fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Inside(..), Self::All) => false,
            (Self::Inside(net, lengths), Self::Inside(other, others)) => {
                net.contains(other)
                    && lengths.contains(others.start())
                    && lengths.contains(others.end())
            }
        }
    }

    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inside(net, lengths), Self::Inside(other, others)) => {
                let is_inside = net.contains(other) || other.contains(net);
                let longest = net.prefix_len().max(other.prefix_len());
                let least = (*lengths.start()).max(*others.start()).max(longest);
                is_inside && least <= (*lengths.end()).min(*others.end())
            }
            _ => true,
        }
    }
}

/// The routes that an element of a filter is about, from its text: `10.0.0.0/8 ge 9 le 24`.
fn routes(element: &Element) -> Option<Routes> {
    let (Element::Import { prefix, .. }
    | Element::DeniedImport { prefix, .. }
    | Element::Export { prefix, .. }
    | Element::DeniedExport { prefix, .. }) = element
    else {
        return None;
    };
    if prefix == EVERYTHING {
        return Some(Routes::All);
    }
    let mut words = prefix.split(' ');
    let net: IpNet = words.next()?.parse().ok()?;
    let words: Vec<&str> = words.collect();
    let bound = |name: &str| {
        let mut pairs = words
            .chunks_exact(2)
            .filter(|pair| pair.first() == Some(&name));
        pairs.next()?.last()?.parse::<u8>().ok()
    };
    let (ge, le) = (bound("ge"), bound("le"));
    let (own, longest) = (net.prefix_len(), net.max_prefix_len());
    let open = if ge.is_some() { longest } else { own };
    let lengths = ge.unwrap_or(own)..=le.unwrap_or(open);
    Some(Routes::Inside(net, lengths))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(prefix: &str) -> Element {
        Element::Import {
            vrf: "cluster".to_owned(),
            from: "m2m".to_owned(),
            prefix: prefix.to_owned(),
        }
    }

    fn rules(rules: &[(&str, bool)]) -> Rules {
        let rule = |(prefix, is_accepted): &(&str, bool)| {
            let element = import(prefix);
            (
                list(&element),
                routes(&element).expect("routes"),
                *is_accepted,
            )
        };
        Rules(rules.iter().map(rule).collect())
    }

    fn is_withdrawn(old: &[(&str, bool)], new: &[(&str, bool)], prefix: &str) -> bool {
        narrows(&[rules(old), rules(new)], &import(prefix))
    }

    #[test]
    fn routes_are_withdrawn_where_fewer_pass_the_filter() {
        let one = [("10.0.0.0/8", true)];
        assert!(is_withdrawn(&one, &[], "10.0.0.0/8"));
        // What was never let through is not withdrawn.
        assert!(!is_withdrawn(&[], &[("10.0.0.0/8", false)], "10.0.0.0/8"));
        let denied = [("10.1.0.0/16", false), ("10.0.0.0/8 le 32", true)];
        let before = [("10.0.0.0/8 le 32", true)];
        assert!(is_withdrawn(&before, &denied, "10.1.0.0/16"));
        // Behind the rule that lets it through, a denial changes nothing.
        let behind = [("10.0.0.0/8 le 32", true), ("10.1.0.0/16", false)];
        assert!(!is_withdrawn(&before, &behind, "10.1.0.0/16"));
    }

    #[test]
    fn a_route_that_another_rule_still_lets_through_is_not_withdrawn() {
        let wider = [("10.0.0.0/8 le 32", true)];
        assert!(!is_withdrawn(&[("10.0.0.0/8", true)], &wider, "10.0.0.0/8"));
        assert!(is_withdrawn(
            &wider,
            &[("10.0.0.0/8", true)],
            "10.0.0.0/8 le 32"
        ));
        let everything = [(EVERYTHING, true)];
        assert!(!is_withdrawn(&wider, &everything, "10.0.0.0/8 le 32"));
        // A part that is denied is one that does not pass.
        let part = [("10.9.0.0/16", false), ("10.0.0.0/8 ge 9", true)];
        assert!(is_withdrawn(&wider, &part, "10.0.0.0/8 le 32"));
    }
}
