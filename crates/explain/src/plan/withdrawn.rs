//! Which changes take routes away from VRFs that stay: fewer pass their filters, or what made them is gone. Sessions and devices stay, so
//! that no class of disruption names it, and traffic stops all the same.

use std::{collections::BTreeSet, ops::RangeInclusive};

use api::tcaas::{NodeNetworkConfigSpec, node_network_config::Vrf};
use ipnet::IpNet;
use serde_json::Value;

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
        let none = Value::Null;
        let was = change.was.as_ref().unwrap_or(&none);
        let becomes = change.becomes.as_ref().unwrap_or(&none);
        change.withdraws = match (&change.element, change.kind) {
            (
                Element::Import { vrf, from, .. } | Element::DeniedImport { vrf, from, .. },
                ChangeKind::Added | ChangeKind::Removed,
            ) if !gone.contains(vrf) && !gone.contains(from) => narrows(&rules, &change.element),
            (
                Element::Export { vrf, .. } | Element::DeniedExport { vrf, .. },
                ChangeKind::Added | ChangeKind::Removed,
            ) if !gone.contains(vrf) => narrows(&rules, &change.element),
            (Element::RouteTarget { vrf, .. }, _) => {
                !gone.contains(vrf)
                    && of_targets(change, old.vrfs().find(|it| it.devices.vrf.as_str() == vrf))
            }
            (Element::HostVni { vrf, .. }, ChangeKind::Added) => {
                let router = old.host_router.as_ref();
                let mut routers = router.iter().flat_map(|it| &it.routers);
                let all = routers.any(|(name, it)| name.as_str() == vrf && it.advertise_all_vnis);
                // It was advertised before, with what FRR derives.
                all && loses(&Value::Null, becomes, &VNI)
            }
            (Element::HostVni { .. }, ChangeKind::Changed) => loses(was, becomes, &VNI),
            (Element::HostPeer { .. }, ChangeKind::Changed) => {
                let [advertised, accepted] = ["/advertise/prefixes", "/receive/prefixes"]
                    .map(|path| lost(was.pointer(path), becomes.pointer(path)));
                let all = |value: &Value| value.pointer("/receive/all").is_some();
                let is_narrower = if all(was) {
                    !all(becomes)
                } else {
                    accepted && !all(becomes)
                };
                advertised || is_narrower
            }
            (Element::HostRouter { .. }, ChangeKind::Changed) => {
                let is_off = |field: &str| was.get(field).is_some() && becomes.get(field).is_none();
                is_off("advertiseAllVNIs")
                    || is_off("advertiseSVI")
                    || lost(was.get("imports"), becomes.get("imports"))
            }
            (
                Element::HostVni { vrf, .. }
                | Element::Aggregate { vrf, .. }
                | Element::Route { vrf, .. }
                | Element::HostNetwork { vrf, .. },
                ChangeKind::Removed,
            ) => !gone.contains(vrf),
            _ => false,
        };
    }
}

/// What identifies the routes of a VNI, and chooses those that it takes. FRR derives what is not set.
const VNI: [&str; 3] = ["rd", "importRTs", "exportRTs"];

/// Whether a value of one of these fields goes: where none was set, that which FRR derives.
fn loses(was: &Value, becomes: &Value, fields: &[&str]) -> bool {
    fields.iter().any(|field| {
        let (was, becomes) = (was.get(field), becomes.get(field));
        match was {
            None => becomes.is_some(),
            Some(Value::Array(_)) => lost(was, becomes),
            Some(_) => was != becomes,
        }
    })
}

/// Whether an item of a list is not in the other.
fn lost(was: Option<&Value>, becomes: Option<&Value>) -> bool {
    let items =
        |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let becomes = items(becomes);
    items(was).iter().any(|item| !becomes.contains(item))
}

/// Whether a route target of a VRF that was there is taken away, or replaces those that FRR derives.
fn of_targets(change: &Change, before: Option<&Vrf>) -> bool {
    let Some(before) = before.filter(|vrf| vrf.vni.is_some()) else {
        return false;
    };
    let (was, becomes) = (change.was.as_ref(), change.becomes.as_ref());
    let is_new = |way: &str| {
        let has = |value: Option<&Value>| {
            let ways = value.and_then(Value::as_array);
            ways.is_some_and(|ways| ways.iter().any(|one| one == way))
        };
        has(becomes) && !has(was)
    };
    let is_first_import = is_new("import") && before.evpn_import_route_targets.is_empty();
    let is_first_export = is_new("export") && before.evpn_export_route_targets.is_empty();
    lost(was, becomes) || is_first_import || is_first_export
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
    use serde_json::json;

    use super::*;
    use crate::element::elements;

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

    fn of_json(fields: &Value) -> NodeNetworkConfigSpec {
        serde_json::from_value(fields.clone()).expect("a config")
    }

    /// What withdraws routes between two routers of a host.
    fn of_host(old: Value, new: Value) -> Vec<String> {
        let spec = |bgp: Value| {
            of_json(&json!({"revision": "r", "hostRouter": {"routers": {"default": bgp}}}))
        };
        withdrawing(&spec(old), &spec(new))
    }

    fn withdrawing(old: &NodeNetworkConfigSpec, new: &NodeNetworkConfigSpec) -> Vec<String> {
        let (mut was, mut becomes) = (elements(old), elements(new));
        let all: BTreeSet<Element> = was.keys().chain(becomes.keys()).cloned().collect();
        let changed = all.into_iter().filter_map(|element| {
            let (was, becomes) = (was.remove(&element), becomes.remove(&element));
            let kind = match (&was, &becomes) {
                (Some(one), Some(other)) if one == other => return None,
                (Some(_), Some(_)) => ChangeKind::Changed,
                (None, _) => ChangeKind::Added,
                (Some(_), None) => ChangeKind::Removed,
            };
            let text = element.to_string();
            Some(Change {
                kind,
                element,
                text,
                was,
                becomes,
                effects: Vec::new(),
                withdraws: false,
                behind: Vec::new(),
            })
        });
        let mut changes: Vec<Change> = changed.collect();
        mark(&mut changes, old, new);
        let marked = changes.into_iter().filter(|change| change.withdraws);
        marked.map(|change| change.text).collect()
    }

    #[test]
    fn other_targets_of_a_vni_withdraw_its_routes_and_further_ones_do_not() {
        let router =
            |l2vni: Value| json!({"asn": 64512, "advertiseAllVNIs": true, "l2vnis": [l2vni]});
        let auto = || json!({"asn": 64512, "advertiseAllVNIs": true});
        let own =
            || router(json!({"vni": 300, "rd": "1:1", "importRTs": ["1:1"], "exportRTs": ["2:2"]}));
        assert_eq!(of_host(auto(), own()).len(), 1, "what FRR derives goes");
        assert_eq!(of_host(own(), auto()).len(), 1);
        let other =
            router(json!({"vni": 300, "rd": "1:2", "importRTs": ["1:1"], "exportRTs": ["2:2"]}));
        assert_eq!(of_host(own(), other).len(), 1);
        let more = router(
            json!({"vni": 300, "rd": "1:1", "importRTs": ["1:1", "1:3"], "exportRTs": ["2:2"]}),
        );
        assert!(of_host(own(), more.clone()).is_empty());
        assert_eq!(of_host(more, own()).len(), 1);
        assert_eq!(
            of_host(auto(), json!({"asn": 64512})).len(),
            1,
            "no VNI is advertised"
        );
        let l3 = |vni: u32| json!({"asn": 64512, "l3vni": {"vni": vni}});
        assert_eq!(of_host(l3(5), l3(6)).len(), 1);
    }

    #[test]
    fn a_narrower_filter_of_a_session_withdraws_routes() {
        let router = |session: Value| {
            let mut peer =
                json!({"address": "192.0.2.1", "remoteAs": {"asn": 64513}, "ipv4": true});
            let fields = session.as_object().cloned().unwrap_or_default();
            peer.as_object_mut().expect("a peer").extend(fields);
            json!({"asn": 64512, "neighbors": [peer]})
        };
        let sends = |prefixes: &[&str]| router(json!({"advertise": {"prefixes": prefixes}}));
        assert_eq!(of_host(sends(&["10.0.0.0/24"]), sends(&[])).len(), 1);
        assert!(of_host(sends(&[]), sends(&["10.0.0.0/24"])).is_empty());
        let all = || router(json!({"receive": {"all": true}}));
        let one = || router(json!({"receive": {"prefixes": [{"prefix": "10.0.0.0/24"}]}}));
        assert_eq!(of_host(all(), one()).len(), 1);
        assert!(of_host(one(), all()).is_empty());
    }

    #[test]
    fn the_first_route_target_of_a_vrf_replaces_the_derived_one() {
        let spec = |import: &[&str]| {
            of_json(&json!({"revision": "r", "fabricVRFs": {"red": {
                "devices": {"vrf": "red", "bridge": "br.red", "vxlan": "vx.red"},
                "vni": 100, "table": 100, "mtu": 1500, "evpnImportRouteTargets": import,
            }}}))
        };
        let first = withdrawing(&spec(&[]), &spec(&["1:1"]));
        assert_eq!(first.len(), 1, "{first:?}");
        assert!(withdrawing(&spec(&["1:1"]), &spec(&["1:1", "1:2"])).is_empty());
    }
}
