//! What goes: first what blocks the change, last what is no longer wanted.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{Differ, kernel_unique, link::rank};
use crate::{
    desired::DesiredLink,
    object::{Domain, LinkId, TABLE_LOCAL},
    observed::ObservedLink,
    owned::{self, Owner},
    plan::{LinkChange, Step},
    sysctl::SysctlId,
};

impl Differ<'_> {
    /// Deletes what cannot stay while the links of this stage are made: links of another kind under their names, and
    /// links that hold a number they need. What only a later stage replaces carries packets until then.
    pub(super) fn make_way(&mut self, in_stage: impl Fn(&DesiredLink) -> bool) {
        let desired = self.desired;
        let replaced = |id: &LinkId, seen: &ObservedLink| {
            (desired.links.get(id)).is_none_or(|desired| desired.kind != seen.kind)
        };
        let slots: BTreeSet<_> = desired
            .links
            .iter()
            .filter(|(id, desired)| {
                in_stage(desired) && (self.now.links.get(id)).is_none_or(|seen| replaced(id, seen))
            })
            .filter_map(|(id, desired)| kernel_unique(id.domain, &desired.kind))
            .collect();
        let doomed = self.ours_in_reverse(|id, seen| {
            replaced(id, seen)
                && (desired.links.get(id).is_some_and(&in_stage)
                    || kernel_unique(id.domain, &seen.kind)
                        .is_some_and(|slot| slots.contains(&slot)))
        });
        self.delete_links(doomed);
    }

    /// Removes what is no longer wanted.
    pub(super) fn remove(&mut self) {
        let rules: Vec<_> = self
            .now
            .rules
            .iter()
            .filter(|(rule, owner)| **owner == Owner::Ours && !self.desired.rules.contains(rule))
            // Put back at its old place in a namespace that is not ours: see `local_rules`.
            .filter(|(rule, _)| rule.table != TABLE_LOCAL || rule.priority != 0)
            .map(|(rule, _)| rule.clone())
            .collect();
        for rule in rules {
            self.push(Step::DeleteRule(rule));
        }
        let doomed = self.ours_in_reverse(|id, _| !self.desired.links.contains_key(id));
        self.delete_links(doomed);
        let routes: Vec<_> = self
            .now
            .routes
            .iter()
            .filter(|(id, _)| !self.desired.routes.contains_key(id))
            .map(|(id, route)| (*id, route.clone()))
            .collect();
        for (id, route) in routes {
            self.push(Step::DeleteRoute { id, route });
        }
        self.stale_loopback();
        self.return_nics();
        if self.desired.namespace.is_none() {
            self.delete_namespace();
        }
    }

    fn ours_in_reverse(&self, which: impl Fn(&LinkId, &ObservedLink) -> bool) -> Vec<LinkId> {
        let mut links: Vec<_> = self
            .now
            .ours()
            .filter(|(id, link)| which(id, link))
            .collect();
        links.sort_by_key(|(id, link)| Reverse((rank(&link.kind), *id)));
        links.into_iter().map(|(id, _)| id.clone()).collect()
    }

    fn delete_links(&mut self, links: Vec<LinkId>) {
        for id in links {
            // One may have gone with another: a veth with its peer, a VLAN with its parent.
            if self.now.links.contains_key(&id) {
                self.push(Step::DeleteLink { id });
            }
        }
    }

    /// Removes an old tunnel endpoint once no tunnel uses it. In a foreign namespace its owner is unknown, so it stays.
    fn stale_loopback(&mut self) {
        let id = LinkId::router("lo");
        if self.namespace_owner() != Some(Owner::Ours) {
            return;
        }
        let Some(lo) = self.now.links.get(&id) else {
            return;
        };
        let stale: Vec<_> = lo
            .addresses
            .difference(&self.desired.loopback)
            .filter(|address| !owned::is_automatic(address))
            .copied()
            .collect();
        for address in stale {
            self.push(Step::DeleteAddress {
                id: id.clone(),
                address,
            });
        }
    }

    /// Returns NICs that are no longer used: moved back, set up, with their addresses, and then released.
    fn return_nics(&mut self) {
        let moved = |differ: &Self, domain| -> Vec<String> {
            differ
                .now
                .links_in(domain)
                .filter(|(id, link)| {
                    link.owner == Owner::Moved && !differ.desired.nics.contains(&id.name)
                })
                .map(|(id, _)| id.name.clone())
                .collect()
        };
        for name in moved(self, Domain::Router) {
            self.push(Step::ReturnNic { name });
        }
        for name in moved(self, Domain::Host) {
            self.bring_back(&LinkId::host(&name));
            self.push(Step::ReleaseNic { name });
        }
    }

    /// Gives NICs that are in the host again what they had there.
    pub(super) fn nic_restore(&mut self) {
        for (name, memory) in self.now.nic_memory.clone() {
            let id = LinkId::host(&name);
            let Some(nic) = self.now.links.get(&id) else {
                continue;
            };
            if self.desired.nics.contains(&name) {
                continue;
            }
            let alias = memory
                .alias
                .filter(|alias| nic.alias.as_ref() != Some(alias));
            let mtu = memory.mtu.filter(|mtu| *mtu != nic.mtu);
            let changes = alias.map(LinkChange::Alias).into_iter();
            for change in changes.chain(mtu.map(LinkChange::Mtu)) {
                let id = id.clone();
                self.push(Step::SetLink { id, change });
            }
            for (path, value) in memory.settings {
                let setting = SysctlId {
                    domain: Domain::Host,
                    link: Some(name.clone()),
                    path,
                };
                self.push(Step::SetSysctl { id: setting, value });
            }
            for address in memory.addresses {
                let nic = name.clone();
                self.push(Step::RestoreAddress { nic, address });
            }
            for route in memory.routes {
                self.push(Step::RestoreRoute(route));
            }
        }
    }

    fn delete_namespace(&mut self) {
        let Some(namespace) = &self.now.namespace else {
            return;
        };
        if namespace.owner == Owner::Ours {
            let name = namespace.name.clone();
            self.push(Step::DeleteNamespace { name });
        }
    }
}
