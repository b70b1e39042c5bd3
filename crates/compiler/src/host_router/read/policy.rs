//! Prefixes that are advertised to a neighbor and accepted from it.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    frrk8s::{self, AllowedIn, AllowedOut, FilterMode, NextHop, PrefixSelector},
    tcaas::node_network_config::AcceptedPrefix,
    value::{HostCidr, MatchLength, Prefix},
};

use super::{Misfit, Reader, neighbor::Named};
use crate::host_router::part::{Advertise, Given, Receive};

impl Named<'_> {
    /// Whether the session has the family of a prefix or an address.
    fn has(&self, is_ipv4: bool) -> bool {
        if is_ipv4 {
            self.has_ipv4
        } else {
            self.has_ipv6
        }
    }

    fn field(&self, name: &str) -> String {
        self.at.field(name)
    }
}

impl Reader<'_> {
    /// Notes a value of a family that the object does not give its neighbor; another object may. The first of each family is enough.
    fn fits(
        &mut self,
        neighbor: &Named<'_>,
        field: impl FnOnce() -> String,
        is_ipv4: bool,
        value: &impl ToString,
    ) {
        let is_known = |one: &Misfit| {
            (&one.vrf, &one.peer, one.needs_ipv6) == (neighbor.of.vrf, &neighbor.peer, !is_ipv4)
        };
        if neighbor.has(is_ipv4) || self.contribution.misfits.iter().any(is_known) {
            return;
        }
        self.contribution.misfits.push(Misfit {
            vrf: neighbor.of.vrf.clone(),
            peer: neighbor.peer.clone(),
            field: field(),
            value: value.to_string(),
            needs_ipv6: !is_ipv4,
        });
    }

    pub(super) fn advertise(
        &mut self,
        neighbor: &Named<'_>,
        wanted: &frrk8s::Advertise,
    ) -> Advertise {
        let frrk8s::Advertise {
            allowed: AllowedOut { prefixes, mode },
            next_hop,
            with_local_pref,
            with_community,
        } = wanted;
        let mut advertise = Advertise::default();
        match mode {
            // Of the object's own router alone; a family that the session lacks is left out.
            FilterMode::All => advertise.prefixes.clone_from(neighbor.of.prefixes),
            FilterMode::Filtered => {
                for (index, written) in prefixes.iter().enumerate() {
                    let field =
                        || neighbor.field(&format!("toAdvertise.allowed.prefixes[{index}]"));
                    let prefix = self.prefix(field, *written);
                    self.fits(neighbor, field, prefix.is_ipv4(), &prefix);
                    if neighbor.of.prefixes.contains(&prefix) {
                        advertise.prefixes.insert(prefix);
                    } else {
                        let message = format!(
                            "{prefix} is not among the prefixes of the router: add it there, or take it out here"
                        );
                        self.rule(field(), message);
                    }
                }
            }
        }
        self.next_hop(neighbor, next_hop, &mut advertise);
        let mut values = BTreeSet::new();
        for (index, entry) in with_local_pref.iter().enumerate() {
            let frrk8s::LocalPrefPrefixes {
                prefixes,
                local_pref,
            } = entry;
            let name = format!("toAdvertise.withLocalPref[{index}]");
            let marked = self.marked(neighbor, &name, prefixes, &advertise.prefixes);
            if !values.insert(*local_pref) {
                let message = format!(
                    "local preference {} has two entries: merge them",
                    local_pref.get()
                );
                self.rule(neighbor.field(&format!("{name}.localPref")), message);
            }
            for prefix in marked {
                let given = Given::new(*local_pref, neighbor.at);
                let known = advertise.preferences.insert(prefix, given);
                if let Some(known) = known.filter(|known| known.value != *local_pref) {
                    let message = format!(
                        "{prefix} has two local preferences, {} and {}: keep one",
                        known.value.get(),
                        local_pref.get()
                    );
                    self.rule(neighbor.field(&name), message);
                }
            }
        }
        let mut communities = BTreeMap::new();
        for (index, entry) in with_community.iter().enumerate() {
            let frrk8s::CommunityPrefixes {
                prefixes,
                community,
            } = entry;
            let name = format!("toAdvertise.withCommunity[{index}]");
            let marked = self.marked(neighbor, &name, prefixes, &advertise.prefixes);
            if communities.insert(*community, marked).is_some() {
                let message = format!("community {community} has two entries: merge them");
                self.rule(neighbor.field(&format!("{name}.community")), message);
            }
        }
        advertise.communities = communities;
        advertise
    }

    /// The prefixes that get a local preference or a community: each must be advertised.
    fn marked(
        &mut self,
        neighbor: &Named<'_>,
        name: &str,
        prefixes: &[HostCidr],
        advertised: &BTreeSet<Prefix>,
    ) -> BTreeSet<Prefix> {
        if prefixes.is_empty() {
            let message = "needs at least one prefix";
            self.rule(neighbor.field(&format!("{name}.prefixes")), message);
        }
        let mut marked = BTreeSet::new();
        for (index, written) in prefixes.iter().enumerate() {
            let field = || neighbor.field(&format!("{name}.prefixes[{index}]"));
            let prefix = self.prefix(field, *written);
            self.fits(neighbor, field, prefix.is_ipv4(), &prefix);
            if !advertised.contains(&prefix) {
                let message = format!(
                    "associated to non existing prefix: {prefix} is not advertised to this neighbor"
                );
                self.rule(field(), message);
            }
            if !marked.insert(prefix) {
                self.rule(
                    field(),
                    format!("{prefix} is listed twice: keep one of them"),
                );
            }
        }
        marked
    }

    fn next_hop(&mut self, neighbor: &Named<'_>, wanted: &NextHop, advertise: &mut Advertise) {
        let NextHop { ipv4, ipv6 } = wanted;
        let hops = [
            ("ipv4", ipv4.map(IpAddr::V4)),
            ("ipv6", ipv6.map(IpAddr::V6)),
        ];
        for (name, hop) in hops {
            let Some(hop) = hop else {
                continue;
            };
            let field = || neighbor.field(&format!("toAdvertise.nextHop.{name}"));
            self.fits(neighbor, field, hop.is_ipv4(), &hop);
            if !is_next_hop(hop) {
                let message =
                    format!("{hop} is no next hop: give a global unicast address of this family");
                self.rule(field(), message);
            }
        }
        advertise.next_hop_ipv4 = ipv4.map(|hop| Given::new(hop, neighbor.at));
        advertise.next_hop_ipv6 = ipv6.map(|hop| Given::new(hop, neighbor.at));
    }

    pub(super) fn receive(&mut self, neighbor: &Named<'_>, wanted: &frrk8s::Receive) -> Receive {
        let frrk8s::Receive {
            allowed: AllowedIn { prefixes, mode },
        } = wanted;
        let mut receive = Receive {
            all: *mode == FilterMode::All,
            prefixes: BTreeSet::new(),
        };
        if receive.all {
            return receive;
        }
        for (index, selector) in prefixes.iter().enumerate() {
            let PrefixSelector { prefix, le, ge } = selector;
            let name = format!("toReceive.allowed.prefixes[{index}]");
            let field = || neighbor.field(&format!("{name}.prefix"));
            let prefix = self.prefix(field, *prefix);
            self.fits(neighbor, field, prefix.is_ipv4(), &prefix);
            let (own, most) = (prefix.net().prefix_len(), prefix.net().max_prefix_len());
            let (least, longest) = (ge.map(MatchLength::get), le.map(MatchLength::get));
            if least.is_some_and(|ge| ge < own) {
                let message = format!("ge must be at least the length of {prefix}, {own}");
                self.rule(neighbor.field(&format!("{name}.ge")), message);
            }
            let lower = least.unwrap_or(own).max(own);
            if longest.is_some_and(|le| le < lower) {
                let message =
                    format!("le must be at least {lower}, the length of the prefix or ge");
                self.rule(neighbor.field(&format!("{name}.le")), message);
            }
            for (name_of, length) in [("ge", least), ("le", longest)] {
                if length.is_some_and(|length| length > most) {
                    let message = format!(
                        "{name_of} must be at most {most}, as {prefix} is a network of that family"
                    );
                    self.rule(neighbor.field(&format!("{name}.{name_of}")), message);
                }
            }
            receive.prefixes.insert(AcceptedPrefix {
                prefix,
                ge: *ge,
                le: *le,
            });
        }
        receive
    }
}

/// Whether FRR takes an address as the next hop of routes that it sends.
fn is_next_hop(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(one) => !one.is_loopback() && (1..224).contains(&one.octets()[0]),
        IpAddr::V6(one) => {
            let is_special = one.is_unspecified() || one.is_loopback() || one.is_multicast();
            !is_special && !one.is_unicast_link_local() && one.to_ipv4_mapped().is_none()
        }
    }
}
