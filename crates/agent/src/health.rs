//! What health is, and when a change has made it worse. Pure: [`crate::probe`] measures.
//!
//! A change is confirmed when nothing is worse than it was before. What was broken before may stay broken, so that a fix
//! on a broken node is not taken back; what worked must work again.

use std::{collections::BTreeMap, fmt};

use api::tcaas::{NodeNetworkConfigSpec, node_network_config::Neighbor};

/// One property of a node that is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// An uplink NIC is present and has carrier.
    Uplink(String),
    /// An interface named in the settings is up.
    Interface(String),
    /// An uplink BGP session is established.
    Session(String),
    /// Prefixes were received over an uplink session.
    Prefixes(String),
    /// A fresh request reaches the API server.
    ApiServer,
    /// A default gateway of the host answers an ICMP echo request.
    Gateway(String),
    /// A TCP connection to host and port is answered.
    Tcp(String, u16),
    /// A host answers an ICMP echo request.
    Icmp(String),
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uplink(name) => write!(f, "uplink {name}"),
            Self::Interface(name) => write!(f, "interface {name}"),
            Self::Session(peer) => write!(f, "BGP session with {peer}"),
            Self::Prefixes(peer) => write!(f, "prefixes from {peer}"),
            Self::ApiServer => f.write_str("API server"),
            Self::Gateway(address) => write!(f, "gateway {address}"),
            Self::Tcp(host, port) => write!(f, "TCP {host}:{port}"),
            Self::Icmp(host) => write!(f, "ICMP {host}"),
        }
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

    fn sessions(&self) -> impl Iterator<Item = bool> {
        let is_session = |check: &Check| matches!(check, Check::Session(_));
        let sessions = self.0.iter().filter(move |(check, _)| is_session(check));
        sessions.map(|(_, outcome)| outcome.is_ok())
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
/// or that did not exist before, has at least one now.
pub fn regressions(baseline: &Health, now: &Health) -> Vec<String> {
    let mut worse = Vec::new();
    for (check, outcome) in &now.0 {
        let Err(why) = outcome else { continue };
        let before = baseline.0.get(check);
        let is_worse = match check {
            Check::Session(_) | Check::Prefixes(_) => before.is_some_and(Result::is_ok),
            _ => before.is_none_or(Result::is_ok),
        };
        if is_worse {
            worse.push(format!("{check}: {why}"));
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

/// The names under which FRR knows the uplink neighbors of a config.
pub fn uplink_neighbors(spec: &NodeNetworkConfigSpec) -> Vec<String> {
    let neighbors = spec.underlay.iter().flat_map(|it| &it.neighbors);
    neighbors.filter_map(Neighbor::peer).collect()
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
        Check::Session(peer.to_owned())
    }

    #[test]
    fn what_worked_must_work_again() {
        let before = health(&[(Check::ApiServer, true), (session("a"), true)]);
        let cut_off = health(&[(Check::ApiServer, false), (session("a"), true)]);
        assert_eq!(regressions(&before, &cut_off), ["API server: down"]);
        let down = health(&[(Check::ApiServer, true), (session("a"), false)]);
        assert_eq!(regressions(&before, &down), ["BGP session with a: down"]);
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
