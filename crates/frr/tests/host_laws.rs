//! The laws of the host's router over all of its configs.

#![expect(clippy::unwrap_used, reason = "a test")]
#![expect(
    clippy::indexing_slicing,
    reason = "a test that finds nothing where it looks shall fail"
)]

#[path = "laws/host.rs"]
mod strategy;

use std::collections::{BTreeMap, BTreeSet};

use api::{
    meta::SecretReference,
    tcaas::node_network_config::{HostRouter, RawLines},
};
use proptest::{collection::vec, prelude::*};
use selvedge_frr::{
    Batch, Change, FrrConfig, FrrVersion, Parsed, Password, Secrets,
    config::{IpFamily, Name, Vrf},
    diff,
    host::{self, Desired, names},
    parse, print, with_numbers_of,
};

fn secrets() -> Secrets {
    let known = SecretReference {
        name: Some("known".to_owned()),
        namespace: None,
    };
    Secrets::from([(known, Password::new("not-a-secret").unwrap())])
}

fn desired(router: &HostRouter) -> Desired {
    host::desired(router, &secrets(), FrrVersion::NEWEST)
}

/// A running FRR that was booted with `config` and then got the lines of `change`.
fn apply(config: &FrrConfig, change: &Change) -> Parsed {
    let mut text = print(config, FrrVersion::NEWEST, "r");
    for batch in change
        .batches()
        .iter()
        .chain(&change.batches_after_devices())
    {
        let lines = match batch {
            Batch::Commands(lines) => lines.iter().skip(1).cloned().collect(),
            Batch::Secret { path, line } => [path.as_slice(), &[line.reveal()]].concat(),
        };
        text.push_str("end\n");
        text.push_str(&lines.join("\n"));
        text.push('\n');
    }
    parse(&text, FrrVersion::NEWEST)
}

/// FRR 10 keeps an empty block of a VRF once something stood in it; it says nothing while the VRF lives in BGP.
fn without_empty_blocks(mut config: FrrConfig) -> FrrConfig {
    let FrrConfig { vrfs, bgp, .. } = &mut config;
    vrfs.retain(|name, vrf| *vrf != Vrf::default() || !bgp.contains_key(&Some(name.clone())));
    config
}

/// The names of a neighbor's lists and maps, as users of the API know them.
fn names_of(router: &HostRouter) -> (BTreeSet<String>, BTreeSet<(IpFamily, String)>) {
    let (mut maps, mut lists) = (BTreeSet::new(), BTreeSet::new());
    for (vrf, bgp) in &router.routers {
        for neighbor in &bgp.neighbors {
            let peer = match (&neighbor.address, &neighbor.interface) {
                (Some(address), _) => address.to_string(),
                (None, Some(device)) => device.to_string(),
                (None, None) => continue,
            };
            let id = if vrf.as_str() == "default" {
                peer
            } else {
                format!("{peer}-{vrf}")
            };
            let family = match (neighbor.ipv4, neighbor.ipv6, neighbor.address) {
                (true, true, _) | (false, false, None) => "dual",
                (true, false, _) => "ipv4",
                (false, false, Some(address)) if address.is_ipv4() => "ipv4",
                (false, true, _) | (false, false, Some(_)) => "ipv6",
            };
            maps.extend([format!("{id}-out"), format!("{id}-in")]);
            for (of, ip, afi) in [(IpFamily::V4, "ip", "ipv4"), (IpFamily::V6, "ipv6", "ipv6")] {
                let has = |prefixes: &BTreeSet<api::value::Prefix>| {
                    prefixes.iter().any(|prefix| IpFamily::of(*prefix) == of)
                };
                lists.insert((of, format!("{id}-allowed-{afi}")));
                lists.insert((of, format!("{id}-inpl-{family}")));
                if has(&router.always_block) {
                    lists.insert((of, format!("{id}-denied-inpl-{family}")));
                }
                for it in &neighbor.advertise.local_preferences {
                    if has(&it.prefixes) {
                        let preference = it.local_preference;
                        lists.insert((of, format!("{id}-{preference}-{ip}-localpref-prefixes")));
                    }
                }
                for it in &neighbor.advertise.communities {
                    if has(&it.prefixes) {
                        let community = it.community;
                        lists.insert((of, format!("{id}-{community}-{ip}-community-prefixes")));
                    }
                }
            }
        }
    }
    (maps, lists)
}

proptest! {
    #![proptest_config(worlds::laws(100))]

    #[test]
    fn what_is_printed_parses_to_itself(router in strategy::host_router()) {
        for version in FrrVersion::SUPPORTED {
            let config = host::desired(&router, &secrets(), version).config;
            let text = print(&config, version, "r");
            let parsed = parse(&text, version);
            prop_assert_eq!(parsed.unknown, []);
            prop_assert_eq!(&parsed.config, &config, "{}", text);
        }
    }

    #[test]
    fn the_lines_of_a_diff_lead_from_one_router_to_the_other(
        running in strategy::host_router(),
        wanted in strategy::host_router(),
    ) {
        let (running, wanted) = (desired(&running).config, desired(&wanted).config);
        let change = diff(&running, &wanted);
        let Parsed { config, unknown } = apply(&running, &change);
        prop_assert_eq!(unknown, [], "{}", change);
        prop_assert!(diff(&config, &wanted).is_empty(), "{}\nleaves\n{}", change, diff(&config, &wanted));
        let expected = with_numbers_of(&running, &wanted).into_owned();
        prop_assert_eq!(without_empty_blocks(config), expected, "{}", change);
    }

    #[test]
    fn all_names_are_those_that_users_know(router in strategy::host_router()) {
        let config = desired(&router).config;
        let (maps, lists) = names_of(&router);
        let made = config.route_maps.keys().map(ToString::to_string);
        prop_assert_eq!(made.collect::<BTreeSet<_>>(), maps);
        let made = config.prefix_lists.keys().map(|(family, name)| (*family, name.to_string()));
        prop_assert_eq!(made.collect::<BTreeSet<_>>(), lists);
        for entry in config.route_maps.values().flat_map(BTreeMap::keys) {
            prop_assert!(*entry < names::FIRST_RAW_ENTRY);
        }
        for rule in config.prefix_lists.values().flat_map(BTreeMap::keys) {
            prop_assert!(*rule >= names::FIRST_GENERATED_RULE);
        }
    }

    /// One prefix more for one neighbor: one rule, and the one that stood for "nothing" goes with it.
    #[test]
    fn one_prefix_more_is_one_rule_in_the_list_that_gets_it(router in strategy::host_router()) {
        let mut more = router.clone();
        let new = "198.18.7.0/24".parse().unwrap();
        let mut id = None;
        for (vrf, bgp) in &mut more.routers {
            if let Some(neighbor) = bgp.neighbors.last_mut().filter(|_| id.is_none()) {
                neighbor.advertise.prefixes.insert(new);
                let peer = neighbor.address.map(|it| it.to_string());
                let peer = peer.or_else(|| neighbor.interface.as_ref().map(ToString::to_string)).unwrap();
                id = Some(if vrf.as_str() == "default" { peer } else { format!("{peer}-{vrf}") });
            }
        }
        let (before, after) = (desired(&router).config, desired(&more).config);
        let change = diff(&before, &after);
        let Some(id) = id else {
            prop_assert!(change.is_empty());
            return Ok(());
        };
        let list = (IpFamily::V4, format!("{id}-allowed-ipv4").parse::<Name>().unwrap());
        let was_empty = before.prefix_lists[&list].contains_key(&u32::MAX);
        prop_assert_eq!(change.n_lines(), 1 + usize::from(was_empty), "{}", change);
        prop_assert_eq!(change.resets.len(), 0);
        // At no moment is the list without what both have: what is new comes first.
        let first = change.steps[0].lines[0].to_string();
        prop_assert!(first.starts_with("ip prefix-list ") && first.ends_with("permit 198.18.7.0/24"), "{}", first);
    }

    /// Whatever stands in raw configuration, what is generated stays.
    #[test]
    fn raw_configuration_changes_nothing_that_is_generated(
        router in strategy::host_router(),
        lines in vec(strategy::raw_line(), 0..30),
    ) {
        let mut with = router.clone();
        with.raw = vec![RawLines { source: "ns/raw".to_owned(), lines: lines.join("\n") }];
        let (without, with) = (desired(&router), desired(&with));
        for (name, map) in &without.config.route_maps {
            for (number, entry) in map {
                prop_assert_eq!(with.config.route_maps[name].get(number), Some(entry));
            }
        }
        for (name, list) in &without.config.prefix_lists {
            for (number, rule) in list {
                prop_assert_eq!(with.config.prefix_lists[name].get(number), Some(rule));
            }
        }
        for (vrf, bgp) in &without.config.bgp {
            for (peer, session) in &bgp.neighbors {
                let now = &with.config.bgp[vrf].neighbors[peer];
                prop_assert_eq!(&now.password, &session.password);
                prop_assert_eq!(now.remote_as, session.remote_as);
            }
        }
        let text = print(&with.config, FrrVersion::NEWEST, "r");
        let parsed = parse(&text, FrrVersion::NEWEST);
        prop_assert_eq!(parsed.unknown, []);
        prop_assert_eq!(&parsed.config, &with.config, "{}", text);
        prop_assert_eq!(with.config.log, without.config.log);
    }

    #[test]
    fn any_raw_text_is_read(text in "(?s).{0,200}") {
        let router = HostRouter {
            raw: vec![RawLines { source: "ns/raw".to_owned(), lines: text }],
            ..HostRouter::default()
        };
        desired(&router);
    }
}
