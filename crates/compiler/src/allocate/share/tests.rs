use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use worlds::laws;

fn prefixes() -> Vec<Prefix> {
    ["192.0.2.0/28", "2001:db8::/125"]
        .iter()
        .map(|text| text.parse().expect("a network"))
        .collect()
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| ip(text)).collect()
}

fn new(want: Want) -> Claim {
    Claim {
        want,
        held: Vec::new(),
    }
}

fn of_v4(claims: &[Claim]) -> Vec<Grant> {
    share(
        &["192.0.2.0/29".parse().expect("a network")],
        claims,
        BTreeSet::new,
    )
}

#[test]
fn named_addresses_are_served_before_counted_ones() {
    let grants = of_v4(&[
        new(Want::Count(2)),
        new(Want::These(ips(&["192.0.2.2"]))),
        new(Want::Together(ips(&["192.0.2.1"]))),
    ]);
    assert_eq!(grants[0].addresses, ips(&["192.0.2.3", "192.0.2.4"]));
    assert!(grants.iter().all(|grant| grant.refusals.is_empty()));
}

#[test]
fn gateways_are_shared_and_other_addresses_are_not() {
    let gateway = || new(Want::Together(ips(&["192.0.2.1"])));
    let grants = of_v4(&[gateway(), gateway(), new(Want::These(ips(&["192.0.2.1"])))]);
    assert_eq!(grants[0].addresses, grants[1].addresses);
    let taken = Refusal::Taken {
        address: ip("192.0.2.1"),
        by: 0,
    };
    assert_eq!(grants[2].refusals, [taken]);
}

#[test]
fn a_holder_keeps_what_an_older_newcomer_names() {
    let holder = Claim {
        want: Want::Count(1),
        held: ips(&["192.0.2.1"]),
    };
    let grants = of_v4(&[new(Want::These(ips(&["192.0.2.1"]))), holder]);
    assert_eq!(grants[1].addresses, ips(&["192.0.2.1"]));
    assert!(grants[0].addresses.is_empty());
}

#[test]
fn shrinking_releases_from_the_top() {
    let holder = Claim {
        want: Want::Count(1),
        held: ips(&["192.0.2.5", "192.0.2.3"]),
    };
    assert_eq!(of_v4(&[holder])[0].addresses, ips(&["192.0.2.3"]));
}

#[test]
fn the_rest_leaves_nothing_for_those_who_come_later() {
    let grants = of_v4(&[
        new(Want::Count(1)),
        new(Want::Rest { held: false }),
        new(Want::Count(1)),
    ]);
    assert_eq!(grants[0].addresses, ips(&["192.0.2.1"]));
    assert_eq!(grants[2].refusals, [Refusal::Whole { by: 1 }]);
    let grants = of_v4(&[
        new(Want::These(ips(&["192.0.2.1"]))),
        new(Want::Rest { held: true }),
    ]);
    let taken = Refusal::Taken {
        address: ip("192.0.2.1"),
        by: 1,
    };
    assert_eq!(grants[0].refusals, [taken]);
}

#[test]
fn what_a_node_still_announces_is_not_given_to_the_next() {
    let prefix = "192.0.2.0/29".parse().expect("a network");
    let grants = share(&[prefix], &[new(Want::Count(1))], || {
        ips(&["192.0.2.1"]).into_iter().collect()
    });
    assert_eq!(grants[0].addresses, ips(&["192.0.2.2"]));
}

/// One thing that people do.
#[derive(Clone, Debug)]
enum Step {
    Want(u8, Want),
    Delete(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let named = prop::collection::btree_set(1_u8..15, 1..3).prop_map(|hosts| {
        hosts
            .into_iter()
            .map(|host| ip(&format!("192.0.2.{host}")))
            .collect::<Vec<_>>()
    });
    let want = prop_oneof![
        6 => (0_u32..5).prop_map(Want::Count),
        2 => (0_u32..4).prop_map(|spare| Want::One { spare }),
        2 => named.prop_map(Want::These),
    ];
    // A consumer of one kind never becomes one of the other.
    let gateway = Just(Want::Together(ips(&["192.0.2.1", "2001:db8::1"])));
    prop_oneof![
        4 => (0_u8..10, want).prop_map(|(name, want)| Step::Want(name, want)),
        1 => (10_u8..12, gateway).prop_map(|(name, want)| Step::Want(name, want)),
        1 => (0_u8..12).prop_map(Step::Delete),
    ]
}

fn number(count: u32) -> usize {
    usize::try_from(count).expect("small")
}

fn wants_still(want: &Want, before: &[IpAddr], address: IpAddr) -> bool {
    match want {
        Want::Together(wanted) | Want::These(wanted) => wanted.contains(&address),
        Want::Count(_) | Want::One { .. } => {
            let count = &want.count().expect("a count");
            let lower = before.iter();
            let lower =
                lower.filter(|other| other.is_ipv4() == address.is_ipv4() && **other < address);
            lower.count() < number(*count)
        }
        Want::Rest { .. } => false,
    }
}

/// How many host addresses the prefixes have.
const CAPACITY: [(bool, usize); 2] = [(true, 14), (false, 7)];

fn check(claims: &BTreeMap<u8, Claim>, grants: &BTreeMap<u8, Grant>) -> Result<(), TestCaseError> {
    let mut alone: BTreeMap<IpAddr, u8> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (name, grant) in grants {
        let claim = &claims[name];
        for address in &grant.addresses {
            all.insert(*address);
            prop_assert!(Pool::new(prefixes()[usize::from(address.is_ipv6())]).has_host(*address));
            if !matches!(claim.want, Want::Together(_)) {
                prop_assert_eq!(alone.insert(*address, *name), None, "{} twice", address);
            }
        }
        for address in &claim.held {
            let stays = grant.addresses.contains(address);
            prop_assert_eq!(
                stays,
                wants_still(&claim.want, &claim.held, *address),
                "{} of {}",
                address,
                name
            );
        }
        if !grant.refusals.is_empty() {
            prop_assert!(
                grant
                    .addresses
                    .iter()
                    .all(|address| claim.held.contains(address)),
                "a part was given"
            );
        } else if let Some(count) = claim.want.count() {
            for (ipv4, _) in CAPACITY {
                let has = grant
                    .addresses
                    .iter()
                    .filter(|address| address.is_ipv4() == ipv4);
                prop_assert_eq!(has.count(), number(count));
            }
        }
    }
    for (name, address) in grants
        .iter()
        .flat_map(|(name, grant)| grant.addresses.iter().map(move |a| (name, a)))
    {
        if matches!(claims[name].want, Want::Together(_)) {
            prop_assert!(!alone.contains_key(address), "a gateway is allocated");
        }
    }
    // Nothing leaks: a rejected request could really not be served.
    for (name, grant) in grants {
        let spare = match claims[name].want {
            Want::One { spare } => number(spare),
            _ => 0,
        };
        for refusal in &grant.refusals {
            match refusal {
                Refusal::TooFew {
                    prefix,
                    missing,
                    free,
                } => {
                    prop_assert!(
                        number(*free) < number(*missing) + spare,
                        "{} were free",
                        free
                    );
                    let (_, capacity) = CAPACITY[usize::from(!prefix.is_ipv4())];
                    let used = all
                        .iter()
                        .filter(|address| address.is_ipv4() == prefix.is_ipv4());
                    // Smaller requests that are served later may have found free addresses.
                    let wanted = number(*missing) + spare;
                    prop_assert!(capacity - used.count() < wanted, "{} were free", prefix);
                }
                Refusal::Taken { address, .. } => prop_assert!(all.contains(address)),
                Refusal::NoHost(address) => prop_assert!(false, "{} is a host", address),
                Refusal::Whole { .. } => prop_assert!(false, "no request is for everything"),
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(laws(64))]

    #[test]
    fn addresses_are_never_given_twice_never_lost_and_never_moved(
        steps in prop::collection::vec(step(), 1..120)
    ) {
        let mut claims: BTreeMap<u8, Claim> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Want(name, want) => {
                    claims.entry(name).or_insert_with(|| new(Want::Count(0))).want = want;
                }
                Step::Delete(name) => {
                    claims.remove(&name);
                }
            }
            let ordered: Vec<Claim> = claims.values().cloned().collect();
            let grants: BTreeMap<u8, Grant> =
                claims.keys().copied().zip(share(&prefixes(), &ordered, BTreeSet::new)).collect();
            check(&claims, &grants)?;
            for (name, grant) in grants {
                if let Some(claim) = claims.get_mut(&name) {
                    claim.held = grant.addresses;
                }
            }
        }
        let all = [new(Want::Count(7))];
        let fresh = share(&prefixes(), &all, BTreeSet::new);
        prop_assert_eq!(fresh[0].addresses.len(), 14, "everything is free without holders");
    }
}
