//! How the addresses of one network are shared out among all who want some: one pass, the same for every kind of consumer.
//!
//! A holder of an address keeps it. Then come requests for certain addresses, then requests for any, each in the order of
//! service. No request is served in part: all of it, in each family, or nothing beyond what the object holds.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::value::Prefix;

use super::Pool;

/// What one consumer wants, and what it was given before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What it wants.
    pub want: Want,
    /// What it was given before.
    pub held: Vec<IpAddr>,
}

/// What a consumer wants of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// These addresses, which others that want them in this way may have too: gateways.
    Together(Vec<IpAddr>),
    /// These addresses for itself.
    These(Vec<IpAddr>),
    /// So many addresses of each family.
    Count(u32),
    /// One address of each family.
    One {
        /// How many of the last addresses it leaves alone.
        spare: u32,
    },
    /// Every address that no other object holds, except gateways.
    Rest {
        /// Whether it had them before, so that any of them may be in use.
        held: bool,
    },
}

/// What a consumer gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Its addresses, IPv4 first, sorted.
    pub addresses: Vec<IpAddr>,
    /// Why it does not get all that it wants.
    pub refusals: Vec<Refusal>,
}

/// Why a consumer does not get what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The address is not a host address of the network.
    NoHost(IpAddr),
    /// Another object has the address.
    Taken {
        /// The address.
        address: IpAddr,
        /// Place of who has it among the claims.
        by: usize,
    },
    /// There are not enough addresses.
    TooFew {
        /// The network.
        prefix: Prefix,
        /// How many more are needed.
        missing: u32,
        /// How many are free.
        free: u32,
    },
    /// Another object has the whole network.
    Whole {
        /// Place of who has it among the claims.
        by: usize,
    },
}

/// Shares out the addresses of a network with these prefixes, one for each family.
///
/// `claims` are in the order of service. An address of `withheld` is not given to a request for any address.
pub fn share(
    prefixes: &[Prefix],
    claims: &[impl Borrow<Claim>],
    withheld: impl FnOnce() -> BTreeSet<IpAddr>,
) -> Vec<Grant> {
    let claims: Vec<&Claim> = claims.iter().map(Borrow::borrow).collect();
    let mut shares = Shares {
        pools: prefixes.iter().map(|prefix| Pool::new(*prefix)).collect(),
        claims: &claims,
        holders: BTreeMap::new(),
        whole: None,
        grants: vec![Grant::default(); claims.len()],
    };
    for (place, claim) in claims.iter().enumerate() {
        shares.keep(place, claim);
    }
    shares.whole = claims
        .iter()
        .position(|claim| claim.want == Want::Rest { held: true });
    for (place, claim) in claims.iter().enumerate() {
        if let Want::Together(addresses) | Want::These(addresses) = &claim.want {
            shares.fix(place, addresses);
        }
    }
    let is_short = |(place, claim): (usize, &&Claim)| {
        let count = claim.want.count();
        count.is_some_and(|count| shares.missing(place, count).iter().any(|more| *more > 0))
    };
    if claims.iter().enumerate().any(is_short) {
        for address in withheld() {
            shares.occupy(address);
        }
    }
    for (place, claim) in claims.iter().enumerate() {
        match claim.want {
            Want::Count(count) => shares.count(place, count, 0),
            Want::One { spare } => shares.count(place, 1, spare),
            Want::Rest { .. } => match shares.whole {
                Some(by) if by != place => shares.refuse(place, Refusal::Whole { by }),
                _ => shares.whole = Some(place),
            },
            Want::Together(_) | Want::These(_) => {}
        }
    }
    for grant in &mut shares.grants {
        grant.addresses.sort_unstable();
    }
    shares.grants
}

impl Want {
    /// How many addresses of each family it wants, whichever they are.
    fn count(&self) -> Option<u32> {
        match self {
            Self::Count(count) => Some(*count),
            Self::One { .. } => Some(1),
            Self::Together(_) | Self::These(_) | Self::Rest { .. } => None,
        }
    }
}

struct Shares<'a> {
    pools: Vec<Pool>,
    claims: &'a [&'a Claim],
    /// Who has which address.
    holders: BTreeMap<IpAddr, usize>,
    /// The object that has all addresses that no other has.
    whole: Option<usize>,
    grants: Vec<Grant>,
}

impl Shares<'_> {
    /// Leaves a consumer what it held, as far as it still wants it: of a count, the lowest.
    fn keep(&mut self, place: usize, claim: &Claim) {
        let mut held = claim.held.clone();
        held.sort_unstable();
        held.dedup();
        match &claim.want {
            Want::Together(wanted) | Want::These(wanted) => {
                held.retain(|address| wanted.contains(address));
                for address in held {
                    self.give(place, address);
                }
            }
            Want::Count(_) | Want::One { .. } => {
                for ipv4 in [true, false] {
                    let mut left = claim.want.count().unwrap_or(0);
                    for address in held.iter().filter(|address| address.is_ipv4() == ipv4) {
                        if left > 0 && self.give(place, *address) {
                            left -= 1;
                        }
                    }
                }
            }
            Want::Rest { .. } => {}
        }
    }

    /// Gives a newcomer the addresses it names: all of them, or none.
    fn fix(&mut self, place: usize, wanted: &[IpAddr]) {
        let had = self.addresses(place);
        let new = wanted.iter().filter(|address| !had.contains(address));
        let mut new: Vec<IpAddr> = new.copied().collect();
        new.sort_unstable();
        new.dedup();
        let refusals: Vec<Refusal> = new
            .iter()
            .filter_map(|address| self.obstacle(place, *address))
            .collect();
        if refusals.is_empty() {
            for address in new {
                self.give(place, address);
            }
        } else {
            for refusal in refusals {
                self.refuse(place, refusal);
            }
        }
    }

    /// Gives a newcomer the lowest free addresses, of each family or of none; the last `spare` are not for it.
    fn count(&mut self, place: usize, count: u32, spare: u32) {
        let missing = self.missing(place, count);
        if missing.iter().all(|more| *more == 0) {
            return;
        }
        if let Some(by) = self.whole {
            self.refuse(place, Refusal::Whole { by });
            return;
        }
        let short: Vec<Refusal> = self
            .pools
            .iter_mut()
            .zip(&missing)
            .filter(|(_, more)| **more > 0)
            .filter_map(|(pool, more)| {
                let free = pool.free();
                let has_room = free >= u128::from(*more) && pool.has_room(spare);
                (!has_room).then(|| Refusal::TooFew {
                    prefix: pool.prefix(),
                    missing: *more,
                    free: u32::try_from(free).unwrap_or(u32::MAX),
                })
            })
            .collect();
        if !short.is_empty() {
            for refusal in short {
                self.refuse(place, refusal);
            }
            return;
        }
        let taken: Vec<IpAddr> = self
            .pools
            .iter_mut()
            .zip(missing)
            .flat_map(|(pool, more)| (0..more).map_while(|_| pool.take_lowest()))
            .collect();
        for address in taken {
            self.holders.insert(address, place);
            if let Some(grant) = self.grants.get_mut(place) {
                grant.addresses.push(address);
            }
        }
    }

    /// How many addresses a consumer still lacks, for each prefix.
    fn missing(&self, place: usize, count: u32) -> Vec<u32> {
        let has = |pool: &Pool| {
            let of_family = self.addresses(place).iter();
            let of_family = of_family.filter(|address| pool.has_host(**address));
            u32::try_from(of_family.count()).unwrap_or(u32::MAX)
        };
        self.pools
            .iter()
            .map(|pool| count.saturating_sub(has(pool)))
            .collect()
    }

    /// Why an address cannot be allocated.
    fn obstacle(&self, place: usize, address: IpAddr) -> Option<Refusal> {
        if !self.pools.iter().any(|pool| pool.has_host(address)) {
            return Some(Refusal::NoHost(address));
        }
        match self.holders.get(&address) {
            Some(by) if self.may_share(place, *by) => None,
            Some(by) => Some(Refusal::Taken { address, by: *by }),
            // The holder of the rest does not get gateways: they may be needed at any time.
            None if self.may_share(place, place) => None,
            None => self.whole.map(|by| Refusal::Taken { address, by }),
        }
    }

    /// Allocates an address, if it is free.
    fn give(&mut self, place: usize, address: IpAddr) -> bool {
        let free = self.obstacle(place, address).is_none();
        if free {
            self.occupy(address);
            self.holders.entry(address).or_insert(place);
            if let Some(grant) = self.grants.get_mut(place) {
                grant.addresses.push(address);
            }
        }
        free
    }

    fn occupy(&mut self, address: IpAddr) {
        for pool in &mut self.pools {
            pool.take(address);
        }
    }

    fn may_share(&self, one: usize, other: usize) -> bool {
        let is_together = |place: usize| {
            let claim = self.claims.get(place);
            claim.is_some_and(|claim| matches!(claim.want, Want::Together(_)))
        };
        is_together(one) && is_together(other)
    }

    fn addresses(&self, place: usize) -> &[IpAddr] {
        self.grants
            .get(place)
            .map_or(&[], |grant| grant.addresses.as_slice())
    }

    fn refuse(&mut self, place: usize, refusal: Refusal) {
        if let Some(grant) = self.grants.get_mut(place) {
            grant.refusals.push(refusal);
        }
    }
}

#[cfg(test)]
mod tests;
