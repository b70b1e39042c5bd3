//! The diff step: two configurations → the least lines that turn one into the other, in a safe order. Pure.
//!
//! # The order, and why
//! 1. Definitions are added and changed (prefix lists, community lists, BFD profiles, route maps), so that nothing ever
//!    uses what is not there. A filter is widened before the route it is for appears.
//! 2. BGP instances that go, or must be made anew, are taken down: others stop importing from them, their VNI goes,
//!    then they go as a whole with one line, the default instance last, because FRR refuses it before the others.
//! 3. New instances of another AS than the default instance's are made, empty; then VRFs, then BGP instances, are added and changed. Filters come before `activate`, and `activate` goes first.
//! 4. Definitions that nothing uses any more are removed.
//! 5. `no vrf` waits until the kernel's device is gone ([`Change::after_devices`]): FRR refuses it before.
//!
//! # Sequence numbers
//! [`crate::desired`] numbers list entries by their content, so adding or removing one touches that entry alone. An entry that runs under
//! another number, because two contents met on one, keeps the number that it has ([`with_numbers_of`]).

mod block;
mod change;
mod numbers;

use std::collections::{BTreeMap, BTreeSet};

use api::value::IfName;

use self::block::Writer;
pub use self::{
    change::{Batch, Change, Disruption, Line, RouterChange, Session, Step},
    numbers::with_numbers_of,
};
use crate::{
    config::{Bgp, FrrConfig, IpFamily, Name, NeighborFamily, Peer, RouteMap, Vrf},
    lower,
    text::Statement,
    version::FrrVersion,
};

/// The lines that turn a running `running` into `desired`.
///
/// # Guarantees
/// * `diff(c, c)` is empty.
/// * The lines mean the same in every supported version.
/// * A line that closes a session is marked, and [`Change::resets`] names the session.
pub fn diff(running: &FrrConfig, desired: &FrrConfig) -> Change {
    let desired = &*with_numbers_of(running, desired);
    let mut writer = Writer::default();
    definitions_set(&mut writer, running, desired);
    let remaining = take_down(&mut writer, running, desired);
    for (vrf, bgp) in lower::declared_first(desired) {
        if !remaining.bgp.contains_key(vrf) {
            writer.declare(lower::enter_instance(vrf.as_ref(), bgp));
        }
    }
    vrfs(&mut writer, &remaining, desired);
    instances(&mut writer, &remaining, desired);
    definitions_removed(&mut writer, running, desired);
    let mut change = writer.finish();
    for name in running.vrfs.keys() {
        let lives = desired.bgp.contains_key(&Some(name.clone()));
        if !desired.vrfs.contains_key(name) && !lives {
            change
                .after_devices
                .push(Step::root(format!("no vrf {name}")));
        }
    }
    change.clears = clears(running, desired);
    change.router = match (running.bgp.get(&None), desired.bgp.get(&None)) {
        (Some(old), Some(new)) if old.asn != new.asn => RouterChange::Replaced,
        (Some(_), None) => RouterChange::Ends,
        (None, Some(_)) if running.bgp.is_empty() => RouterChange::Begins,
        _ => RouterChange::None,
    };
    change
}

/// What the lines of a diff look like does not depend on the version; that of the newest is taken.
fn features() -> crate::version::Features {
    FrrVersion::NEWEST.features()
}

fn lists(config: &FrrConfig) -> Vec<lower::List> {
    let mut lists = lower::prefix_lists(config, IpFamily::V4);
    lists.extend(lower::prefix_lists(config, IpFamily::V6));
    lists.extend(lower::community_lists(config));
    lists
}

fn entries(lists: Vec<lower::List>) -> Vec<Statement> {
    lists.into_iter().flat_map(|list| list.entries).collect()
}

/// Takes out the entries whose value moves to another number, and gives back the lines that remove them: FRR refuses a
/// value that stands in a prefix list already, and silently ignores one in a community list.
fn take_moved(old: &mut [lower::List], new: &[lower::List]) -> Vec<String> {
    let value = |entry: &Statement| entry.line.strip_prefix(entry.key()).map(str::to_owned);
    let by_name: BTreeMap<&str, &lower::List> = new
        .iter()
        .map(|list| (list.remove.as_str(), list))
        .collect();
    let mut lines = Vec::new();
    for list in old {
        let Some(new) = by_name.get(list.remove.as_str()) else {
            continue;
        };
        let places: BTreeMap<Option<String>, &str> = new
            .entries
            .iter()
            .map(|entry| (value(entry), entry.key()))
            .collect();
        list.entries.retain(|entry| {
            let moved = places
                .get(&value(entry))
                .is_some_and(|slot| *slot != entry.key());
            if moved {
                lines.push(entry.undone());
            }
            !moved
        });
    }
    lines
}

fn definitions_set(writer: &mut Writer, running: &FrrConfig, desired: &FrrConfig) {
    writer.statements(&[], &lower::log(&running.log), &lower::log(&desired.log));
    let tracking = |config| lower::next_hop_tracking(config, features());
    writer.statements(&[], &tracking(running), &tracking(desired));
    let (mut old, new) = (lists(running), lists(desired));
    for line in take_moved(&mut old, &new) {
        writer.root(line);
    }
    writer.added(&[], &entries(old), &entries(new));
    if let Some(profiles) = lower::bfd(&desired.bfd_profiles) {
        let old = lower::bfd(&running.bfd_profiles).unwrap_or_else(|| profiles.emptied());
        writer.inner_blocks_set(&old, &profiles);
    }
    for (name, map) in &desired.route_maps {
        let empty = RouteMap::new();
        let old = lower::route_map_entries(name, running.route_maps.get(name).unwrap_or(&empty));
        writer.blocks(&[], &old, &lower::route_map_entries(name, map));
    }
}

fn definitions_removed(writer: &mut Writer, running: &FrrConfig, desired: &FrrConfig) {
    for name in running.route_maps.keys() {
        if !desired.route_maps.contains_key(name) {
            writer.root(format!("no route-map {name}"));
        }
    }
    let kept: BTreeMap<String, lower::List> = lists(desired)
        .into_iter()
        .map(|list| (list.remove.clone(), list))
        .collect();
    let mut old = lists(running);
    // Those are gone already.
    take_moved(&mut old, &lists(desired));
    for list in old {
        match kept.get(&list.remove) {
            None => writer.root(list.remove),
            Some(new) => writer.removed(&[], &list.entries, &new.entries),
        }
    }
    if let Some(old) = lower::bfd(&running.bfd_profiles) {
        let new = lower::bfd(&desired.bfd_profiles).unwrap_or_else(|| old.emptied());
        writer.inner_blocks_removed(&old, &new);
    }
}

/// Removes the instances that go or change their AS, and gives back what is left running.
fn take_down(writer: &mut Writer, running: &FrrConfig, desired: &FrrConfig) -> FrrConfig {
    let same = |vrf: &Option<IfName>, bgp: &Bgp| {
        desired.bgp.get(vrf).is_some_and(|new| new.asn == bgp.asn)
    };
    // Without the default instance there is no other: FRR refuses to remove it before them.
    let all = running.bgp.get(&None).is_some_and(|bgp| !same(&None, bgp));
    let going: BTreeSet<Option<IfName>> = running
        .bgp
        .iter()
        .filter(|(vrf, bgp)| all || !same(vrf, bgp))
        .map(|(vrf, _)| vrf.clone())
        .collect();
    let mut remaining = running.clone();
    for (vrf, bgp) in &mut remaining.bgp {
        if going.contains(vrf) {
            continue;
        }
        for family in IpFamily::BOTH {
            bgp.unicast_mut(family)
                .import_vrfs
                .retain(|source| !going.contains(&Some(source.clone())));
        }
        if let Some(old) = running.bgp.get(vrf) {
            writer.instance(vrf.as_ref(), Some(old), bgp);
        }
    }
    for (name, vrf) in &mut remaining.vrfs {
        if going.contains(&Some(name.clone())) {
            let without = Vrf {
                vni: None,
                static_routes: vrf.static_routes.clone(),
            };
            writer.vrf(name, vrf, &without);
            *vrf = without;
        }
    }
    for vrf in going.iter().rev() {
        if let Some(bgp) = remaining.bgp.remove(vrf) {
            writer.instance_removed(vrf.as_ref(), &bgp, desired.bgp.contains_key(vrf));
        }
    }
    remaining
}

fn vrfs(writer: &mut Writer, running: &FrrConfig, desired: &FrrConfig) {
    let empty = Vrf::default();
    for (name, vrf) in &running.vrfs {
        // A block that is empty already has nothing to take back. FRR 10 keeps one once something stood in it.
        if !desired.vrfs.contains_key(name) && *vrf != empty {
            writer.vrf(name, vrf, &empty);
        }
    }
    for (name, vrf) in &desired.vrfs {
        match running.vrfs.get(name) {
            Some(old) => writer.vrf(name, old, vrf),
            None => writer.new_vrf(name, vrf),
        }
    }
}

/// New instances first: others may import from them.
fn instances(writer: &mut Writer, running: &FrrConfig, desired: &FrrConfig) {
    let (kept, new): (Vec<_>, Vec<_>) = desired
        .bgp
        .iter()
        .partition(|(vrf, _)| running.bgp.contains_key(*vrf));
    for (vrf, bgp) in new.into_iter().chain(kept) {
        writer.instance(vrf.as_ref(), running.bgp.get(vrf), bgp);
    }
}

/// A filter that changed under a session it belongs to: bgpd would look at it only after its delay of five seconds, so
/// the session is refreshed now. What a session uses under a new name, bgpd sees at once.
fn clears(running: &FrrConfig, desired: &FrrConfig) -> Vec<String> {
    let changed = changed_maps(running, desired);
    let mut lines = Vec::new();
    for (vrf, bgp) in &desired.bgp {
        let Some(old) = running.bgp.get(vrf).filter(|old| old.asn == bgp.asn) else {
            continue;
        };
        let families = [
            ("ipv4 unicast", &old.ipv4.neighbors, &bgp.ipv4.neighbors),
            ("ipv6 unicast", &old.ipv6.neighbors, &bgp.ipv6.neighbors),
            ("l2vpn evpn", &old.evpn.neighbors, &bgp.evpn.neighbors),
        ];
        for (family, old, new) in families {
            let vrf = vrf
                .as_ref()
                .map_or_else(String::new, |vrf| format!("vrf {vrf} "));
            lines.extend(family_clears(&format!("{vrf}{family}"), old, new, &changed));
        }
    }
    lines
}

fn family_clears(
    scope: &str,
    old: &BTreeMap<Peer, NeighborFamily>,
    new: &BTreeMap<Peer, NeighborFamily>,
    changed: &BTreeSet<&Name>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (peer, family) in new {
        let Some(before) = old.get(peer) else {
            continue;
        };
        let who = match peer {
            Peer::Group(name) => format!("peer-group {name}"),
            Peer::Interface(_) | Peer::Address(_) => peer.to_string(),
        };
        for (way, before, map) in [
            ("in", &before.route_map_in, &family.route_map_in),
            ("out", &before.route_map_out, &family.route_map_out),
        ] {
            if before == map && map.as_ref().is_some_and(|map| changed.contains(map)) {
                lines.push(format!("clear bgp {scope} {who} soft {way}"));
            }
        }
    }
    lines
}

/// Route maps that decide differently: by their own entries, by a list they use, or by a map they call.
fn changed_maps<'a>(running: &FrrConfig, desired: &'a FrrConfig) -> BTreeSet<&'a Name> {
    let list_changed = |entry: &crate::config::RouteMapEntry| {
        let prefixes = entry
            .match_prefix_list
            .as_ref()
            .is_some_and(|list| running.prefix_lists.get(list) != desired.prefix_lists.get(list));
        let standard = [
            entry
                .match_community
                .as_ref()
                .map(|community| &community.list),
            entry.delete_communities.as_ref(),
        ];
        let large = [
            entry
                .match_large_community
                .as_ref()
                .map(|community| &community.list),
            entry.delete_large_communities.as_ref(),
        ];
        prefixes
            || standard
                .into_iter()
                .flatten()
                .any(|list| running.community_lists.get(list) != desired.community_lists.get(list))
            || large.into_iter().flatten().any(|list| {
                running.large_community_lists.get(list) != desired.large_community_lists.get(list)
            })
    };
    let mut changed: BTreeSet<&Name> = desired
        .route_maps
        .iter()
        .filter(|(name, map)| {
            running.route_maps.get(*name) != Some(*map) || map.values().any(list_changed)
        })
        .map(|(name, _)| name)
        .collect();
    loop {
        let before = changed.len();
        for (name, map) in &desired.route_maps {
            let calls = |name: &Name| changed.contains(name);
            if map
                .values()
                .any(|entry| entry.call.as_ref().is_some_and(calls))
            {
                changed.insert(name);
            }
        }
        if changed.len() == before {
            return changed;
        }
    }
}

#[cfg(test)]
mod tests;
