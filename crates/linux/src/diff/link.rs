//! Links: made, changed in place, set up, given their addresses.

use super::Differ;
use crate::{
    desired::{Desired, DesiredLink},
    object::{Kind, LinkId},
    observed::ObservedLink,
    owned,
    plan::{LinkChange, Step},
};

impl<'a> Differ<'a> {
    /// The wished links, masters and parents before what hangs on them.
    pub(super) fn in_order(&self) -> Vec<(&'a LinkId, &'a DesiredLink)> {
        let desired: &'a Desired = self.desired;
        let mut links: Vec<_> = desired.links.iter().collect();
        links.sort_by_key(|(_, link)| rank(&link.kind));
        links
    }

    /// A link as it should be, but for its being up and its addresses.
    pub(super) fn link(&mut self, id: &LinkId, desired: &DesiredLink) {
        if let Some(seen) = self.now.links.get(id)
            && seen.kind != desired.kind
        {
            self.push(Step::DeleteLink { id: id.clone() });
        }
        if !self.now.links.contains_key(id) {
            self.push(Step::CreateLink {
                id: id.clone(),
                link: Box::new(desired.clone()),
            });
        }
        // One change at a time, each decided on what the one before left: a new master resets the bridge port.
        while let Some(change) = self
            .now
            .links
            .get(id)
            .and_then(|seen| next_change(desired, seen))
        {
            self.push(Step::SetLink {
                id: id.clone(),
                change,
            });
        }
        self.sysctls(Some(id));
    }

    /// A link up, with its addresses.
    pub(super) fn up(&mut self, id: &LinkId, desired: &DesiredLink) {
        let Some(seen) = self.now.links.get(id) else {
            return;
        };
        if let Kind::Vlan {
            parent: Some(parent),
            ..
        } = &desired.kind
            && let Some(below) = self.now.links.get(&id.sibling(parent))
            && !below.up
            && !self.desired.links.contains_key(&id.sibling(parent))
        {
            // The parent device is foreign and is not set up by Selvedge.
            return;
        }
        let stale: Vec<_> = seen
            .addresses
            .difference(&desired.addresses)
            .filter(|address| !desired.shared && !owned::is_automatic(address))
            .copied()
            .collect();
        if !seen.up {
            self.push(Step::SetLink {
                id: id.clone(),
                change: LinkChange::Up,
            });
        }
        for address in stale {
            // Removing one may have taken others of its network along.
            let still_there = self
                .now
                .links
                .get(id)
                .is_some_and(|link| link.addresses.contains(&address));
            if still_there {
                self.push(Step::DeleteAddress {
                    id: id.clone(),
                    address,
                });
            }
        }
        let missing = self
            .now
            .links
            .get(id)
            .map(|seen| &desired.addresses - &seen.addresses)
            .unwrap_or_default();
        for address in missing {
            self.push(Step::AddAddress {
                id: id.clone(),
                address,
            });
        }
    }
}

/// Which links come first when they are made; they go in the opposite order.
pub(super) fn rank(kind: &Kind) -> u8 {
    match kind {
        Kind::Loopback | Kind::Vrf { .. } | Kind::Other(_) => 0,
        Kind::Bridge => 1,
        Kind::Veth { .. } | Kind::Dummy => 2,
        Kind::Vxlan { .. } | Kind::Vlan { .. } | Kind::Gre(_) => 3,
    }
}

/// The first thing about a link that is not as it should be and can be changed in place.
fn next_change(desired: &DesiredLink, seen: &ObservedLink) -> Option<LinkChange> {
    // Before the alias that says who chose the bridge is overwritten.
    if leaves_master(desired, seen) {
        return Some(LinkChange::Master(None));
    }
    if seen.alias.as_deref() != Some(desired.alias.as_str()) {
        return Some(LinkChange::Alias(desired.alias.clone()));
    }
    if seen.addr_gen != desired.addr_gen {
        return Some(LinkChange::AddrGen(desired.addr_gen));
    }
    if let Some(mac) = desired.mac
        && seen.mac != Some(mac)
    {
        return Some(LinkChange::Mac(mac));
    }
    if seen.master != desired.master && !(desired.shared && desired.master.is_none()) {
        return Some(LinkChange::Master(desired.master.clone()));
    }
    if let Some(mtu) = desired.mtu
        && seen.mtu != mtu
    {
        return Some(LinkChange::Mtu(mtu));
    }
    if let Some(port) = desired.port
        && seen.port != Some(port)
    {
        return Some(LinkChange::Port(port));
    }
    None
}

/// Whether a link made for other programs is to leave the bridge that we put it into.
fn leaves_master(desired: &DesiredLink, seen: &ObservedLink) -> bool {
    let put_into = |alias| owned::put_into(alias).map(str::to_owned);
    let ours = put_into(seen.alias.as_deref());
    desired.shared
        && desired.master.is_none()
        && ours.is_some()
        && ours == seen.master
        && ours != put_into(Some(&desired.alias))
}
