//! Mirrors: tunnels and the filters that copy into them.

use std::{borrow::Cow, collections::BTreeSet};

use super::Differ;
use crate::{
    desired::{Desired, Timing},
    filter::{Filter, FilterId, ObservedFilter},
    object::{Family, Kind, LinkId},
    observed::Observed,
    owned::{FILTER_PRIORITIES, Owner},
    plan::{Note, Step},
};

/// Leaves out tunnels whose names foreign links have, and the filters that copy into them.
pub(super) fn free_names(
    possible: &mut Cow<'_, Desired>,
    observed: &Observed,
    notes: &mut Vec<Note>,
) {
    let tunnels = possible.links.iter();
    let tunnels = tunnels.filter(|(_, desired)| desired.timing == Timing::Mirror);
    let taken: Vec<(LinkId, Kind)> = tunnels
        .filter_map(|(id, _)| Some((id, observed.links.get(id)?)))
        .filter(|(_, seen)| seen.owner != Owner::Ours)
        .map(|(id, seen)| (id.clone(), seen.kind.clone()))
        .collect();
    for (link, kind) in taken {
        let desired = possible.to_mut();
        desired.links.remove(&link);
        desired
            .filters
            .retain(|filter| filter.link.sibling(&filter.to) != link);
        notes.push(Note::TunnelTaken { link, kind });
    }
}

impl Differ<'_> {
    /// Removes the filters and then the tunnels that are no longer wanted, or are to be made anew.
    pub(super) fn mirror_teardown(&mut self) {
        let desired = self.desired;
        let tunnels = self.now.ours().filter(|(id, seen)| {
            let stays = |desired: &crate::DesiredLink| desired.kind == seen.kind;
            matches!(seen.kind, Kind::Gre(_)) && !desired.links.get(id).is_some_and(stays)
        });
        let tunnels: BTreeSet<LinkId> = tunnels.map(|(id, _)| id.clone()).collect();
        self.delete_filters(&tunnels);
        for id in tunnels {
            self.push(Step::DeleteLink { id });
        }
    }

    /// Makes tunnels, and then the filters that copy into them.
    pub(super) fn mirror_setup(&mut self) {
        for (id, desired) in self.in_order() {
            if desired.timing == Timing::Mirror {
                self.link(id, desired);
                self.up(id, desired);
            }
        }
        // A tunnel that was made anew has left its filters behind.
        self.delete_filters(&BTreeSet::new());
        let there: BTreeSet<&Filter> = self.now.filters.values().filter_map(copies).collect();
        let wished = self.desired.filters.iter();
        let missing: Vec<&Filter> = wished.filter(|filter| !there.contains(filter)).collect();
        for filter in missing {
            if !self.now.links.contains_key(&filter.link) {
                continue;
            }
            if !self.now.hooks.contains(&filter.link) {
                let link = filter.link.clone();
                self.push(Step::AddHook { link });
            }
            if let Some(priority) = self.free_priority(filter) {
                let filter = Box::new(filter.clone());
                self.push(Step::AddFilter { priority, filter });
            }
        }
    }

    /// Deletes our filters that are not desired, that say what another says, or that copy into a tunnel that will go.
    /// Those on a link that will go itself go with it.
    fn delete_filters(&mut self, tunnels: &BTreeSet<LinkId>) {
        let mut kept: BTreeSet<&Filter> = BTreeSet::new();
        let mut stale: Vec<(FilterId, Family)> = Vec::new();
        for (id, seen) in &self.now.filters {
            let ObservedFilter::Ours { family, copies } = seen else {
                continue;
            };
            let stays = copies.as_ref().is_some_and(|filter| {
                self.desired.filters.contains(filter)
                    && !tunnels.contains(&id.link.sibling(&filter.to))
                    && kept.insert(filter)
            });
            let link = self.now.links.get(&id.link);
            let goes = !self.desired.links.contains_key(&id.link)
                && link.is_some_and(|link| link.owner == Owner::Ours);
            if !stays && !goes {
                stale.push((id.clone(), *family));
            }
        }
        for (id, family) in stale {
            self.push(Step::DeleteFilter { id, family });
        }
    }

    /// The first priority at which nothing hangs yet.
    fn free_priority(&self, filter: &Filter) -> Option<u16> {
        let mut id = FilterId {
            link: filter.link.clone(),
            hook: filter.hook,
            priority: 0,
        };
        FILTER_PRIORITIES.into_iter().find(|priority| {
            id.priority = *priority;
            !self.now.filters.contains_key(&id)
        })
    }
}

fn copies(seen: &ObservedFilter) -> Option<&Filter> {
    match seen {
        ObservedFilter::Ours { copies, .. } => copies.as_ref(),
        ObservedFilter::Foreign => None,
    }
}
