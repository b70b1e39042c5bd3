//! A kernel on paper: what each step does to an [`Observed`], side effects included.
//!
//! [`diff`](crate::diff()) lets it run along, so that it sees what a delete took with it before it decides on the next
//! step; the laws are tested on it. It knows the traps that a plan must respect: a VLAN is deleted with its parent and a veth
//! with its peer, a new master flushes IPv6 addresses, a move flushes all, an MTU is passed up to VLANs. Where the kernel
//! may or may not do a thing (removing an address takes others of its network along only if it came first), it
//! assumes the worst; adding an address that is there already does no harm.

use std::collections::BTreeSet;

use ipnet::IpNet;

use crate::{
    desired::DesiredLink,
    filter::{Filter, FilterId, ObservedFilter},
    object::{BridgePort, Domain, Family, Kind, LinkId, Route, Rule, TABLE_LOCAL},
    observed::{Observed, ObservedLink, ObservedNamespace},
    owned::Owner,
    plan::{LinkChange, Step},
    sysctl::SysctlId,
};

/// A step that a kernel would refuse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {why}")]
pub struct Impossible {
    step: String,
    why: &'static str,
}

/// Does a step on the model, or says why a kernel would refuse it.
pub fn apply_to_model(now: &mut Observed, step: &Step) -> Result<(), Impossible> {
    let refusal = refusal(now, step);
    effect(now, step);
    match refusal {
        None => Ok(()),
        Some(why) => Err(Impossible {
            step: step.to_string(),
            why,
        }),
    }
}

fn refusal(now: &Observed, step: &Step) -> Option<&'static str> {
    let link = |id: &LinkId| now.links.get(id);
    match step {
        Step::CreateNamespace { .. } => now.namespace.is_some().then_some("it exists"),
        Step::DeleteNamespace { .. } => now.namespace.is_none().then_some("there is none"),
        Step::TakeNic { name, .. } => move_refusal(now, &LinkId::host(name), &LinkId::router(name)),
        Step::ReturnNic { name } => move_refusal(now, &LinkId::router(name), &LinkId::host(name)),
        Step::ReleaseNic { name } => link(&LinkId::host(name))
            .is_none_or(|nic| nic.owner != Owner::Moved)
            .then_some("it is not ours to release"),
        Step::CreateLink { id, link } => creation_refusal(now, id, link),
        Step::SetLink { id, change } => match (link(id), change) {
            (None, _) => Some("there is no such link"),
            (Some(link), LinkChange::Up) => match &link.kind {
                Kind::Vlan {
                    parent: Some(parent),
                    ..
                } => now
                    .links
                    .get(&id.sibling(parent))
                    .is_none_or(|parent| !parent.up)
                    .then_some("its parent is down"),
                _ => None,
            },
            (_, LinkChange::Master(Some(master))) => link(&id.sibling(master))
                .is_none()
                .then_some("there is no such master"),
            (Some(link), LinkChange::Port(_)) => {
                link.port.is_none().then_some("it is no bridge port")
            }
            _ => None,
        },
        Step::RestoreAddress { nic, .. } => link(&LinkId::host(nic))
            .is_none()
            .then_some("there is no such link"),
        Step::RestoreRoute(route) => link(&LinkId::host(&route.device))
            .is_none_or(|nic| !nic.up)
            .then_some("its link is not there or down"),
        Step::DeleteLink { id } => link(id)
            .is_none_or(|link| link.owner != Owner::Ours)
            .then_some("it is not ours to delete"),
        Step::AddAddress { id, .. } => link(id).is_none().then_some("there is no such link"),
        Step::DeleteAddress { id, address } => link(id)
            .is_none_or(|link| !link.addresses.contains(address))
            .then_some("it is not there"),
        Step::AddRoute { id, .. } => now.routes.contains_key(id).then_some("it exists"),
        Step::DeleteRoute { id, .. } => (!now.routes.contains_key(id)).then_some("it is not there"),
        Step::AddRule(rule) => now.rules.contains_key(rule).then_some("it exists"),
        Step::DeleteRule(rule) => (!now.rules.contains_key(rule)).then_some("it is not there"),
        Step::SetSysctl { id, .. } => {
            let link_of = |name: &String| LinkId {
                domain: id.domain,
                name: name.clone(),
            };
            let gone = id
                .link
                .as_ref()
                .is_some_and(|name| link(&link_of(name)).is_none());
            gone.then_some("its link is not there")
        }
        Step::AddHook { link: id } => match link(id) {
            None => Some("there is no such link"),
            Some(_) => now.hooks.contains(id).then_some("it exists"),
        },
        Step::AddFilter { priority, filter } => {
            if !now.hooks.contains(&filter.link) {
                Some("there is no hook")
            } else if link(&filter.link.sibling(&filter.to)).is_none() {
                Some("there is no such tunnel")
            } else {
                let taken = now.filters.contains_key(&place(*priority, filter));
                taken.then_some("the priority is taken")
            }
        }
        Step::DeleteFilter { id, .. } => {
            let ours = matches!(now.filters.get(id), Some(ObservedFilter::Ours { .. }));
            (!ours).then_some("it is not ours to delete")
        }
    }
}

fn move_refusal(now: &Observed, from: &LinkId, to: &LinkId) -> Option<&'static str> {
    if now.namespace.is_none() {
        Some("there is no namespace")
    } else if now.links.contains_key(to) {
        Some("the name is taken there")
    } else {
        (!now.links.contains_key(from)).then_some("it is not there")
    }
}

fn place(priority: u16, filter: &Filter) -> FilterId {
    FilterId {
        link: filter.link.clone(),
        hook: filter.hook,
        priority,
    }
}

fn creation_refusal(now: &Observed, id: &LinkId, link: &DesiredLink) -> Option<&'static str> {
    let mut others = now
        .links
        .iter()
        .filter(|(other, _)| other.domain == id.domain);
    let clash = others.any(|(_, other)| {
        crate::diff::kernel_unique(id.domain, &other.kind)
            .is_some_and(|own| Some(own) == crate::diff::kernel_unique(id.domain, &link.kind))
    });
    let parent = match &link.kind {
        Kind::Vlan { parent, .. } => parent.as_ref(),
        _ => None,
    };
    let parent_mtu = parent.map(|name| now.links.get(&id.sibling(name)).map(|link| link.mtu));
    if id.domain == Domain::Router && now.namespace.is_none() {
        Some("there is no namespace")
    } else if now.links.contains_key(id) {
        Some("the name is taken")
    } else if clash {
        Some("its number is taken")
    } else if parent_mtu == Some(None) {
        Some("its parent is not there")
    } else if parent_mtu.flatten() < parent.and(link.mtu) {
        Some("its parent's MTU is smaller")
    } else {
        link.master
            .as_ref()
            .is_some_and(|name| !now.links.contains_key(&id.sibling(name)))
            .then_some("its master is not there")
    }
}

/// What a step changes.
pub(crate) fn effect(now: &mut Observed, step: &Step) {
    match step {
        Step::CreateNamespace { name } => create_namespace(now, name),
        Step::DeleteNamespace { .. } => delete_namespace(now),
        Step::TakeNic { name, alias } => {
            move_link(now, &LinkId::host(name), LinkId::router(name));
            if let Some(nic) = now.links.get_mut(&LinkId::router(name)) {
                nic.owner = Owner::Moved;
                nic.alias = Some(alias.clone());
            }
        }
        Step::ReturnNic { name } => move_link(now, &LinkId::router(name), LinkId::host(name)),
        Step::ReleaseNic { name } => {
            if let Some(nic) = now.links.get_mut(&LinkId::host(name)) {
                nic.owner = Owner::Foreign;
                nic.alias = None;
            }
        }
        Step::CreateLink { id, link } => create_link(now, id, link),
        Step::SetLink { id, change } => set_link(now, id, change),
        Step::DeleteLink { id } => delete_link(now, id),
        Step::AddAddress { id, address } => {
            if let Some(link) = now.links.get_mut(id) {
                link.addresses.insert(*address);
            }
        }
        Step::DeleteAddress { id, address } => {
            if let Some(link) = now.links.get_mut(id) {
                let same_network = |other: &IpNet| {
                    address.addr().is_ipv4()
                        && other.trunc() == address.trunc()
                        && address.prefix_len() < 32
                };
                link.addresses
                    .retain(|other| other != address && !same_network(other));
            }
        }
        Step::AddRoute { id, route } => {
            now.routes.insert(*id, route.clone());
        }
        Step::DeleteRoute { id, .. } => {
            now.routes.remove(id);
        }
        // What is not ours is no part of the model, but that this is back is.
        Step::RestoreAddress { nic, address } => {
            if let Some(memory) = now.nic_memory.get_mut(nic) {
                memory.addresses.retain(|other| other != address);
            }
        }
        Step::RestoreRoute(route) => {
            if let Some(memory) = now.nic_memory.get_mut(&route.device) {
                memory.routes.retain(|other| other != route);
            }
        }
        Step::AddRule(rule) => {
            now.rules.insert(rule.clone(), Owner::Ours);
        }
        Step::DeleteRule(rule) => {
            now.rules.remove(rule);
        }
        Step::SetSysctl { id, value } => {
            // Those of the host are given back with their NIC.
            let nic = id.link.as_ref().filter(|_| id.domain == Domain::Host);
            if let Some(memory) = nic.and_then(|nic| now.nic_memory.get_mut(nic)) {
                memory.settings.remove(&id.path);
            } else {
                now.sysctls.insert(id.clone(), Some(value.clone()));
            }
        }
        Step::AddHook { link } => {
            now.hooks.insert(link.clone());
        }
        Step::AddFilter { priority, filter } => {
            let ours = ObservedFilter::Ours {
                family: filter.family,
                copies: Some((**filter).clone()),
            };
            now.filters.insert(place(*priority, filter), ours);
        }
        Step::DeleteFilter { id, .. } => {
            now.filters.remove(id);
        }
    }
}

fn create_namespace(now: &mut Observed, name: &str) {
    now.namespace = Some(ObservedNamespace {
        name: name.to_owned(),
        owner: Owner::Ours,
    });
    let lo = ObservedLink::fresh(Owner::Foreign, Kind::Loopback);
    now.links.insert(LinkId::router("lo"), lo);
    for family in Family::BOTH {
        let local = Rule::all(Domain::Router, family, 0, TABLE_LOCAL);
        now.rules.insert(local, Owner::Foreign);
    }
}

fn delete_namespace(now: &mut Observed) {
    now.namespace = None;
    let links: Vec<LinkId> = now
        .links_in(Domain::Router)
        .map(|(id, _)| id.clone())
        .collect();
    for id in links {
        delete_link(now, &id);
    }
    now.routes.retain(|id, _| id.domain != Domain::Router);
    now.rules.retain(|rule, _| rule.domain != Domain::Router);
    now.sysctls.retain(|id, _| id.domain != Domain::Router);
}

fn move_link(now: &mut Observed, from: &LinkId, to: LinkId) {
    if let Some(mut link) = now.links.remove(from) {
        link.addresses = BTreeSet::new();
        link.up = false;
        link.master = None;
        link.port = None;
        now.links.insert(to, link);
    }
}

fn create_link(now: &mut Observed, id: &LinkId, desired: &DesiredLink) {
    let port = is_bridge(now, id, desired.master.as_deref()).then_some(BridgePort::DEFAULT);
    let link = ObservedLink {
        owner: Owner::Ours,
        kind: desired.kind.clone(),
        alias: Some(desired.alias.clone()),
        mtu: desired.mtu.unwrap_or(1500),
        mac: desired.mac,
        up: false,
        master: desired.master.clone(),
        addr_gen: desired.addr_gen,
        port: desired.port.or(port),
        addresses: BTreeSet::new(),
    };
    if let Kind::Veth { peer: Some(peer) } = &desired.kind {
        let kind = Kind::Veth {
            peer: Some(id.clone()),
        };
        now.links
            .insert(peer.clone(), ObservedLink::fresh(Owner::Ours, kind));
    }
    now.links.insert(id.clone(), link);
}

fn is_bridge(now: &Observed, id: &LinkId, master: Option<&str>) -> bool {
    master.is_some_and(|name| {
        now.links
            .get(&id.sibling(name))
            .is_some_and(|link| link.kind == Kind::Bridge)
    })
}

fn set_link(now: &mut Observed, id: &LinkId, change: &LinkChange) {
    let bridge_port = match change {
        LinkChange::Master(master) => is_bridge(now, id, master.as_deref()),
        _ => false,
    };
    let Some(link) = now.links.get_mut(id) else {
        return;
    };
    match change {
        LinkChange::Up => link.up = true,
        LinkChange::Alias(alias) => link.alias = Some(alias.clone()),
        LinkChange::Mac(mac) => link.mac = Some(*mac),
        LinkChange::AddrGen(mode) => link.addr_gen = *mode,
        LinkChange::Port(port) => link.port = Some(*port),
        LinkChange::Master(master) => {
            link.master.clone_from(master);
            link.port = bridge_port.then_some(BridgePort::DEFAULT);
            flush(link);
        }
        LinkChange::Mtu(mtu) => {
            link.mtu = *mtu;
            for (_, other) in now
                .links
                .iter_mut()
                .filter(|(other, _)| other.domain == id.domain)
            {
                if matches!(&other.kind, Kind::Vlan { parent: Some(parent), .. } if *parent == id.name)
                {
                    other.mtu = other.mtu.min(*mtu);
                }
            }
        }
    }
}

/// A link that goes down for an instant keeps its IPv4 addresses only.
fn flush(link: &mut ObservedLink) {
    link.addresses.retain(|address| address.addr().is_ipv4());
}

fn delete_link(now: &mut Observed, id: &LinkId) {
    let Some(link) = now.links.remove(id) else {
        return;
    };
    now.routes.retain(|route, target| {
        let device = match target {
            Route::Via { device, .. } => Some(device),
            _ => None,
        };
        route.domain != id.domain || device.is_none_or(|device| *device != id.name)
    });
    let first = SysctlId {
        domain: id.domain,
        link: Some(id.name.clone()),
        path: String::new(),
    };
    let settings: Vec<SysctlId> = now
        .sysctls
        .range(first..)
        .map(|(sysctl, _)| sysctl)
        .take_while(|sysctl| sysctl.domain == id.domain && sysctl.link.as_ref() == Some(&id.name))
        .cloned()
        .collect();
    for sysctl in settings {
        now.sysctls.remove(&sysctl);
    }
    delete_filters(now, id);
    if let Kind::Veth { peer: Some(peer) } = &link.kind {
        delete_link(now, peer);
    }
    // Nothing of ours stands on these.
    if matches!(
        link.kind,
        Kind::Vxlan { .. } | Kind::Vlan { .. } | Kind::Gre(_)
    ) {
        return;
    }
    let above: Vec<LinkId> = now
        .links_in(id.domain)
        .filter(|(_, other)| match &other.kind {
            Kind::Vlan {
                parent: Some(parent),
                ..
            } => *parent == id.name,
            _ => false,
        })
        .map(|(other, _)| other.clone())
        .collect();
    for other in above {
        delete_link(now, &other);
    }
    for (other, port) in &mut now.links {
        if other.domain == id.domain && port.master.as_deref() == Some(id.name.as_str()) {
            port.master = None;
            port.port = None;
            flush(port);
        }
        if let Kind::Gre(gre) = &mut port.kind
            && other.domain == id.domain
            && gre.device.as_ref() == Some(&id.name)
        {
            gre.device = None;
        }
    }
}

/// Filters go with their link; those that copy into it stay, and copy nothing.
fn delete_filters(now: &mut Observed, id: &LinkId) {
    now.hooks.remove(id);
    now.filters.retain(|place, _| place.link != *id);
    for (place, seen) in &mut now.filters {
        if let ObservedFilter::Ours { copies, .. } = seen
            && place.link.domain == id.domain
            && copies.as_ref().is_some_and(|filter| filter.to == id.name)
        {
            *copies = None;
        }
    }
}
