//! What health is, and when a change has made it worse. Pure: [`crate::probe`] measures.
//!
//! A change is confirmed when nothing is worse than it was before. What was broken before may stay broken, so that a fix
//! on a broken node is not taken back; what worked must work again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use api::tcaas::{NodeNetworkConfigSpec, node_network_config::AddressFamilyName};

/// One property of a node that is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// An uplink NIC is present and has carrier.
    Uplink(String),
    /// A daemon of the router's FRR runs.
    Daemon(String),
    /// An interface named in the settings is up.
    Interface(String),
    /// An uplink BGP session is established, and the peer takes part in the address family.
    Session(String, AddressFamilyName),
    /// Prefixes of the address family were received over an uplink session.
    Prefixes(String, AddressFamilyName),
    /// A fresh request reaches the API server.
    ApiServer,
    /// A default gateway of the host, behind this interface, answers an ICMP echo request.
    Gateway(IpAddr, String),
    /// A TCP connection to host and port is answered.
    Tcp(String, u16),
    /// A host answers an ICMP echo request.
    Icmp(String),
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uplink(name) => write!(f, "uplink {name}"),
            Self::Daemon(name) => write!(f, "daemon {name}"),
            Self::Interface(name) => write!(f, "interface {name}"),
            Self::Session(peer, family) => {
                write!(f, "BGP session with {peer} for {}", name(*family))
            }
            Self::Prefixes(peer, family) => {
                write!(f, "{} prefixes from {peer}", name(*family))
            }
            Self::ApiServer => f.write_str("API server"),
            Self::Gateway(address, interface) => write!(f, "gateway {address} on {interface}"),
            Self::Tcp(host, port) => write!(f, "TCP {host}:{port}"),
            Self::Icmp(host) => write!(f, "ICMP {host}"),
        }
    }
}

fn name(family: AddressFamilyName) -> &'static str {
    match family {
        AddressFamilyName::Ipv4Unicast => "IPv4",
        AddressFamilyName::Ipv6Unicast => "IPv6",
        AddressFamilyName::L2vpnEvpn => "EVPN",
    }
}

/// The outcome of all checks at one time: passed, or why not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health(BTreeMap<Check, Result<(), String>>);

impl Health {
    /// Enters the outcome of a check.
    pub fn insert(&mut self, check: Check, outcome: Result<(), String>) {
        self.0.insert(check, outcome);
    }

    /// The checks that failed, with the reason.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter_map(|(check, outcome)| {
            let why = outcome.as_ref().err()?;
            Some(format!("{check}: {why}"))
        })
    }

    /// The checks that passed, by their names.
    pub fn passed(&self) -> BTreeSet<String> {
        let passed = self.0.iter().filter(|(_, outcome)| outcome.is_ok());
        passed.map(|(check, _)| check.to_string()).collect()
    }

    /// Whether a check fails that is one of these.
    pub fn fails_any_of(&self, passed: &BTreeSet<String>) -> bool {
        let mut failed = self.0.iter().filter(|(_, outcome)| outcome.is_err());
        failed.any(|(check, _)| passed.contains(&check.to_string()))
    }

    fn sessions(&self) -> impl Iterator<Item = bool> {
        let is_session = |check: &Check| matches!(check, Check::Session(..));
        let sessions = self.0.iter().filter(move |(check, _)| is_session(check));
        sessions.map(|(_, outcome)| outcome.is_ok())
    }

    /// The gateways of one IP version that answer.
    fn gateways(&self, is_ipv4: bool) -> impl Iterator<Item = &Check> {
        let passed = self.0.iter().filter(|(_, outcome)| outcome.is_ok());
        passed.map(|(check, _)| check).filter(
            move |check| matches!(check, Check::Gateway(address, _) if address.is_ipv4() == is_ipv4),
        )
    }
}

impl FromIterator<(Check, Result<(), String>)> for Health {
    fn from_iter<I: IntoIterator<Item = (Check, Result<(), String>)>>(outcomes: I) -> Self {
        Self(outcomes.into_iter().collect())
    }
}

/// What is worse now than in the baseline; empty means that the change can be confirmed.
///
/// A session that is new need not come up by itself: its peer may come later. But a router that had an established session,
/// or that did not exist before, has at least one now. Another gateway may take the place of one that answered.
pub fn regressions(baseline: &Health, now: &Health) -> Vec<String> {
    let mut worse = Vec::new();
    for (check, outcome) in &now.0 {
        let Err(why) = outcome else { continue };
        let before = baseline.0.get(check);
        let is_worse = match check {
            // The agent itself starts them: a config under which one does not run is not in effect.
            Check::Daemon(_) => true,
            Check::Session(..) | Check::Prefixes(..) => before.is_some_and(Result::is_ok),
            _ => before.is_none_or(Result::is_ok),
        };
        if is_worse {
            worse.push(format!("{check}: {why}"));
        }
    }
    for is_ipv4 in [true, false] {
        let lost = baseline.gateways(is_ipv4);
        let lost = lost.filter(|check| !now.0.contains_key(check));
        if now.gateways(is_ipv4).next().is_none() {
            worse
                .extend(lost.map(|check| format!("{check}: the host has no route to it any more")));
        }
    }
    let was_up = baseline.sessions().any(|established| established);
    let is_new = baseline.sessions().next().is_none();
    let has_sessions = now.sessions().next().is_some();
    let is_up = now.sessions().any(|established| established);
    if has_sessions && !is_up && (was_up || is_new) && worse.is_empty() {
        let down: Vec<String> = now.failures().collect();
        worse.push(format!(
            "no uplink BGP session is established ({})",
            down.join("; ")
        ));
    }
    worse
}

/// The uplink neighbors of a config: the name under which FRR knows each, and its address families.
pub fn uplink_neighbors(spec: &NodeNetworkConfigSpec) -> Vec<(String, &[AddressFamilyName])> {
    let neighbors = spec.underlay.iter().flat_map(|it| &it.neighbors);
    neighbors
        .filter_map(|it| Some((it.peer()?, &*it.address_families)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(outcomes: &[(Check, bool)]) -> Health {
        let outcomes = outcomes.iter().cloned();
        outcomes
            .map(|(check, good)| (check, good.then_some(()).ok_or_else(|| "down".to_owned())))
            .collect()
    }

    fn session(peer: &str) -> Check {
        Check::Session(peer.to_owned(), AddressFamilyName::Ipv4Unicast)
    }

    #[test]
    fn what_worked_must_work_again() {
        let before = health(&[(Check::ApiServer, true), (session("a"), true)]);
        let cut_off = health(&[(Check::ApiServer, false), (session("a"), true)]);
        assert_eq!(regressions(&before, &cut_off), ["API server: down"]);
        let down = health(&[(Check::ApiServer, true), (session("a"), false)]);
        assert_eq!(
            regressions(&before, &down),
            ["BGP session with a for IPv4: down"]
        );
        assert!(regressions(&before, &before).is_empty());
    }

    #[test]
    fn what_was_broken_may_stay_broken() {
        let before = health(&[(Check::ApiServer, false), (session("a"), false)]);
        assert!(regressions(&before, &before).is_empty());
        let better = health(&[(Check::ApiServer, true), (session("a"), false)]);
        assert!(regressions(&before, &better).is_empty());
    }

    #[test]
    fn no_config_is_confirmed_while_a_daemon_does_not_run() {
        let health = |runs| health(&[(Check::Daemon("zebra".to_owned()), runs)]);
        for before in [true, false] {
            let worse = regressions(&health(before), &health(false));
            assert_eq!(worse, ["daemon zebra: down"]);
            assert!(regressions(&health(before), &health(true)).is_empty());
        }
    }

    #[test]
    fn a_family_that_is_lost_is_worse_although_the_session_is_up() {
        let with = |evpn| {
            let of_evpn = Check::Session("a".to_owned(), AddressFamilyName::L2vpnEvpn);
            health(&[(session("a"), true), (of_evpn, evpn)])
        };
        let worse = regressions(&with(true), &with(false));
        assert_eq!(worse, ["BGP session with a for EVPN: down"]);
        assert!(regressions(&with(false), &with(false)).is_empty());
        // The config asks for it no more.
        let without = health(&[(session("a"), true)]);
        assert!(regressions(&with(true), &without).is_empty());
    }

    #[test]
    fn a_gateway_that_answered_is_missed_unless_another_one_answers() {
        let gateway = |address: &str, interface: &str| {
            Check::Gateway(address.parse().unwrap(), interface.to_owned())
        };
        let (one, other) = (gateway("192.0.2.1", "eth0"), gateway("192.0.2.2", "eth0"));
        let before = health(&[(one.clone(), true)]);
        let worse = regressions(&before, &Health::default());
        assert_eq!(
            worse,
            ["gateway 192.0.2.1 on eth0: the host has no route to it any more"]
        );
        assert!(regressions(&before, &health(&[(other.clone(), true)])).is_empty());
        assert_eq!(regressions(&before, &health(&[(other, false)])).len(), 2);
        // One of the other IP version is no replacement, and one that did not answer is not missed.
        let ipv6 = health(&[(gateway("fe80::1", "eth0"), true)]);
        assert_eq!(regressions(&before, &ipv6).len(), 1);
        let silent = health(&[(one, false)]);
        assert!(regressions(&silent, &Health::default()).is_empty());
        // The same link-local address on two interfaces is two gateways.
        let both = [("eth0", true), ("eth1", true)].map(|(on, up)| (gateway("fe80::1", on), up));
        let half = [("eth0", true), ("eth1", false)].map(|(on, up)| (gateway("fe80::1", on), up));
        let worse = regressions(&health(&both), &health(&half));
        assert_eq!(worse, ["gateway fe80::1 on eth1: down"]);
    }

    #[test]
    fn a_new_session_may_stay_down_beside_one_that_is_up() {
        let before = health(&[(session("a"), true)]);
        let more = health(&[(session("a"), true), (session("b"), false)]);
        assert!(regressions(&before, &more).is_empty());
    }

    #[test]
    fn replacing_all_sessions_by_dead_ones_is_worse() {
        let before = health(&[(session("a"), true)]);
        let replaced = health(&[(session("b"), false)]);
        let worse = regressions(&before, &replaced);
        assert!(worse.iter().any(|text| text.contains("no uplink BGP")));
    }

    #[test]
    fn the_first_router_of_a_node_needs_one_session() {
        let before = health(&[(Check::ApiServer, true)]);
        let first = |up| health(&[(Check::ApiServer, true), (session("a"), up)]);
        assert!(!regressions(&before, &first(false)).is_empty());
        assert!(regressions(&before, &first(true)).is_empty());
    }

    #[test]
    fn a_probe_without_a_baseline_must_pass() {
        let now = health(&[(Check::Tcp("gw".to_owned(), 443), false)]);
        assert_eq!(regressions(&Health::default(), &now), ["TCP gw:443: down"]);
    }
}
