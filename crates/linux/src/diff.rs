//! From what is desired and what is observed to the plan.
//!
//! The plan is made while a [`model`] of the kernel runs along: each step is decided on what the steps
//! before it leave behind, so that a delete which takes other links with it is followed by their return, and nothing
//! else. The order and its reasons are in [`plan`](crate::plan).

mod link;
mod mirror;
mod remove;

use std::{borrow::Cow, collections::BTreeSet, net::IpAddr};

use crate::{
    desired::{Desired, DesiredLink, Timing},
    model,
    object::{Domain, Family, Kind, LinkId, Payload, Route, Rule, TABLE_LOCAL},
    observed::{Observed, ObservedLink},
    owned::{self, Owner},
    plan::{LinkChange, Note, Plan, Stage, Step},
    sysctl::SysctlId,
};

/// A foreign object that stands where one of ours should be. Nothing is planned while there is one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A link that we did not make has a name that we need.
    #[error("{id} is a {kind} that Selvedge did not make; rename or remove it")]
    LinkTaken {
        /// The foreign link.
        id: LinkId,
        /// What it is.
        kind: Kind,
    },
    /// A NIC's name exists in both namespaces.
    #[error(
        "{name} exists in the host's and in the router's namespace; rename or remove one of them"
    )]
    NicTwice {
        /// The name.
        name: String,
    },
    /// A NIC has more addresses than can be remembered over its move.
    #[error(
        "{name} has too many addresses to be moved safely ({count}); remove those that are not needed"
    )]
    NicAddresses {
        /// The NIC.
        name: String,
        /// How many.
        count: usize,
    },
    /// A NIC belongs to a bond or bridge of the host, which would lose it.
    #[error(
        "{name} is a member of {master}; take it out of {master} or name another NIC in the Underlay"
    )]
    NicMember {
        /// The NIC.
        name: String,
        /// The bond or bridge.
        master: String,
    },
    /// The kernel moves no link of this kind into another namespace.
    #[error(
        "{name} is a {kind}, which the kernel does not move into another namespace; name its members in the Underlay"
    )]
    NicImmovable {
        /// The link.
        name: String,
        /// What it is.
        kind: Kind,
    },
}

/// The steps from what is to what should be, or whatever stands in their way.
pub fn diff(desired: &Desired, observed: &Observed) -> Result<Plan, Vec<Conflict>> {
    let (possible, notes) = possible(desired, observed);
    let conflicts = conflicts(&possible, observed);
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let mut differ = Differ {
        desired: &possible,
        now: observed.clone(),
        stage: Stage::MirrorTeardown,
        plan: Plan::default(),
    };
    for note in notes {
        differ.plan.note(note);
    }
    differ.mirror_teardown();
    differ.stage = Stage::BeforeFrr;
    differ.before_frr();
    differ.stage = Stage::AfterFrr;
    differ.after_frr();
    differ.stage = Stage::MirrorSetup;
    differ.mirror_setup();
    differ.stage = Stage::NicRestore;
    differ.nic_restore();
    Ok(differ.plan)
}

/// The part of the desired state that is possible: parts that need a missing device or bridge of the host, or a tunnel name that
/// a foreign link has, are noted and left out.
fn possible<'a>(desired: &'a Desired, observed: &Observed) -> (Cow<'a, Desired>, Vec<Note>) {
    let mut possible = Cow::Borrowed(desired);
    let unmirrored = desired.unmirrored.iter().cloned();
    let mut notes: Vec<Note> = unmirrored.map(Note::Unmirrored).collect();
    notes.extend(desired.unattached.iter().cloned().map(Note::Unattached));
    masters(&mut possible, observed, &mut notes);
    mirror::free_names(&mut possible, observed, &mut notes);
    for (id, link) in &desired.links {
        let Kind::Vlan {
            parent: Some(parent),
            ..
        } = &link.kind
        else {
            continue;
        };
        let below = id.sibling(parent);
        if id.domain != Domain::Host || desired.links.contains_key(&below) {
            continue;
        }
        let Some(seen) = observed.links.get(&below) else {
            notes.push(Note::ParentMissing {
                link: id.clone(),
                parent: parent.clone(),
            });
            let desired = possible.to_mut();
            desired.links.remove(id);
            forget_routes(desired, id);
            continue;
        };
        if !seen.up {
            notes.push(Note::ParentDown {
                link: id.clone(),
                parent: parent.clone(),
            });
            forget_routes(possible.to_mut(), id);
        }
        if link.mtu.is_some_and(|mtu| mtu > seen.mtu) {
            notes.push(Note::ParentMtu {
                link: id.clone(),
                parent: parent.clone(),
                mtu: seen.mtu,
            });
            if let Some(desired) = possible.to_mut().links.get_mut(id) {
                desired.mtu = Some(seen.mtu);
            }
        }
    }
    (possible, notes)
}

/// Ports in the host stay without a bridge that the host does not have.
fn masters(possible: &mut Cow<'_, Desired>, observed: &Observed, notes: &mut Vec<Note>) {
    let in_host = |(id, _): &(&LinkId, &DesiredLink)| id.domain == Domain::Host;
    let ports: Vec<(LinkId, String, String)> = possible
        .links
        .iter()
        .filter(in_host)
        .filter_map(|(id, link)| {
            let master = link.master.clone()?;
            let made = possible.links.contains_key(&id.sibling(&master));
            (!made).then(|| (id.clone(), owned::what(&link.alias).to_owned(), master))
        })
        .collect();
    for (link, of, master) in ports {
        let note = match observed.links.get(&link.sibling(&master)) {
            // A bridge of ours under this name goes: no other segment has it made.
            Some(seen) if seen.kind == Kind::Bridge && seen.owner != Owner::Ours => continue,
            Some(seen) if seen.owner != Owner::Ours => Note::MasterUnfit {
                link: link.clone(),
                of,
                master,
                kind: seen.kind.clone(),
            },
            Some(_) | None => Note::MasterMissing {
                link: link.clone(),
                of,
                master,
            },
        };
        notes.push(note);
        if let Some(port) = possible.to_mut().links.get_mut(&link) {
            port.master = None;
        }
    }
}

/// A route of the host needs the link it goes through to be up.
fn forget_routes(desired: &mut Desired, link: &LinkId) {
    desired.routes.retain(|route, way| {
        let through = matches!(way, Route::Via { device, .. } if *device == link.name);
        route.domain != link.domain || !through
    });
}

fn conflicts(desired: &Desired, observed: &Observed) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for id in desired.links.keys() {
        if let Some(link) = observed.links.get(id)
            && link.owner != Owner::Ours
        {
            conflicts.push(Conflict::LinkTaken {
                id: id.clone(),
                kind: link.kind.clone(),
            });
        }
    }
    for name in &desired.nics {
        let in_host = observed.links.get(&LinkId::host(name));
        if in_host.is_some() && observed.links.contains_key(&LinkId::router(name)) {
            conflicts.push(Conflict::NicTwice { name: name.clone() });
        }
        if let Some(nic) = in_host
            && owned::remember(&addresses_of(nic)).is_none()
        {
            conflicts.push(Conflict::NicAddresses {
                name: name.clone(),
                count: nic.addresses.len(),
            });
        }
        conflicts.extend(in_host.and_then(|nic| unfit(name, nic)));
    }
    conflicts
}

/// Why a link of the host cannot become an uplink, if it cannot.
fn unfit(name: &str, nic: &ObservedLink) -> Option<Conflict> {
    let name = name.to_owned();
    if let Some(master) = nic.master.clone() {
        return Some(Conflict::NicMember { name, master });
    }
    let is_bond =
        matches!(&nic.kind, Kind::Other(kind) if matches!(kind.as_str(), "bond" | "team"));
    let is_local = matches!(nic.kind, Kind::Bridge | Kind::Vrf { .. } | Kind::Loopback);
    let kind = nic.kind.clone();
    (is_bond || is_local).then_some(Conflict::NicImmovable { name, kind })
}

/// The addresses a NIC must keep: those it has, and those it is remembered to have had before it was moved.
fn addresses_of(nic: &ObservedLink) -> BTreeSet<ipnet::IpNet> {
    let mut addresses = match nic.owner {
        Owner::Moved => owned::remembered(nic.alias.as_deref()),
        Owner::Ours | Owner::Foreign => BTreeSet::new(),
    };
    let own = nic.addresses.iter().copied();
    addresses.extend(own.filter(|address| !owned::is_automatic(address)));
    addresses
}

/// Something of which the kernel holds one in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KernelUnique {
    Vni(Domain, u32, u16),
    Vlan(Domain, String, u16),
    Table(Domain, u32),
    Tunnel(Domain, Payload, IpAddr, IpAddr, Option<u32>),
}

/// What a link occupies besides its name.
pub(crate) fn kernel_unique(domain: Domain, kind: &Kind) -> Option<KernelUnique> {
    match kind {
        Kind::Vxlan { vni, port, .. } => Some(KernelUnique::Vni(domain, *vni, *port)),
        Kind::Vlan { parent, id } => Some(KernelUnique::Vlan(domain, parent.clone()?, *id)),
        Kind::Vrf { table } => Some(KernelUnique::Table(domain, *table)),
        Kind::Gre(gre) => Some(KernelUnique::Tunnel(
            domain,
            gre.payload,
            gre.local,
            gre.remote,
            gre.key,
        )),
        _ => None,
    }
}

/// A plan in the making, and the kernel as it will be after the steps so far.
struct Differ<'a> {
    desired: &'a Desired,
    now: Observed,
    stage: Stage,
    plan: Plan,
}

impl Differ<'_> {
    fn push(&mut self, step: Step) {
        model::effect(&mut self.now, &step);
        self.plan.push(self.stage, step);
    }

    fn before_frr(&mut self) {
        if let Some(name) = &self.desired.namespace
            && self.now.namespace.is_none()
        {
            self.push(Step::CreateNamespace { name: name.clone() });
        }
        self.make_way(|desired| desired.timing <= Timing::Split);
        self.local_rules();
        self.sysctls(None);
        self.nics();
        self.loopback();
        for (id, desired) in self.in_order() {
            if desired.timing <= Timing::Split {
                self.link(id, desired);
            }
            if desired.timing == Timing::Before {
                self.up(id, desired);
            }
        }
        self.routes(Domain::Router);
    }

    fn after_frr(&mut self) {
        for (id, desired) in self.in_order() {
            if desired.timing == Timing::Split {
                self.up(id, desired);
            }
        }
        self.make_way(|desired| desired.timing == Timing::After);
        for (id, desired) in self.in_order() {
            if desired.timing == Timing::After {
                self.link(id, desired);
                self.up(id, desired);
            }
        }
        self.routes(Domain::Host);
        self.rules();
        self.remove();
    }

    /// Settings of the namespace, or of one link.
    fn sysctls(&mut self, link: Option<&LinkId>) {
        let first = SysctlId {
            domain: link.map_or(Domain::Router, |link| link.domain),
            link: link.map(|link| link.name.clone()),
            path: String::new(),
        };
        let (domain, name) = (first.domain, first.link.clone());
        let wished = self
            .desired
            .sysctls
            .range(first..)
            .take_while(|(id, _)| id.domain == domain && id.link == name);
        for (id, value) in wished {
            match self.now.sysctls.get(id) {
                Some(Some(seen)) if seen == value => {}
                Some(None) => self.plan.note(Note::SysctlMissing(id.clone())),
                _ => self.push(Step::SetSysctl {
                    id: id.clone(),
                    value: value.clone(),
                }),
            }
        }
    }

    /// The rule for local addresses: a copy behind the rule for VRFs first, then the original goes; and the other way
    /// round when the domain is given back in a namespace that stays.
    fn local_rules(&mut self) {
        if self.now.namespace.is_none() {
            return;
        }
        for family in Family::BOTH {
            let first = Rule::all(Domain::Router, family, 0, TABLE_LOCAL);
            let wished = self.desired.rules.iter().find(|rule| {
                rule.table == TABLE_LOCAL && rule.family == family && rule.domain == Domain::Router
            });
            if let Some(wished) = wished {
                if !self.now.rules.contains_key(wished) {
                    self.push(Step::AddRule(wished.clone()));
                }
                if self.now.rules.contains_key(&first) {
                    self.push(Step::DeleteRule(first));
                }
                continue;
            }
            let copied = self.now.rules.iter().any(|(rule, owner)| {
                *owner == Owner::Ours
                    && rule.table == TABLE_LOCAL
                    && rule.family == family
                    && rule.priority != 0
            });
            if copied
                && !self.now.rules.contains_key(&first)
                && self.namespace_owner() == Some(Owner::Foreign)
            {
                self.push(Step::AddRule(first));
            }
        }
    }

    fn namespace_owner(&self) -> Option<Owner> {
        self.now.namespace.as_ref().map(|namespace| namespace.owner)
    }

    /// Uplinks: moved in with their addresses, and up.
    fn nics(&mut self) {
        for name in &self.desired.nics {
            if let Some(nic) = self.now.links.get(&LinkId::host(name)) {
                // A NIC whose addresses do not fit was a conflict.
                if let Some(alias) = owned::remember(&addresses_of(nic)) {
                    self.push(Step::TakeNic {
                        name: name.clone(),
                        alias,
                    });
                }
            }
            let id = LinkId::router(name);
            if self.now.links.contains_key(&id) {
                self.bring_back(&id);
            } else {
                self.plan.note(Note::NicMissing(name.clone()));
            }
        }
    }

    /// A NIC up, with the addresses it had before it was moved.
    fn bring_back(&mut self, id: &LinkId) {
        let Some(nic) = self.now.links.get(id) else {
            return;
        };
        let missing = match nic.owner {
            Owner::Moved => &owned::remembered(nic.alias.as_deref()) - &nic.addresses,
            Owner::Ours | Owner::Foreign => BTreeSet::new(),
        };
        if !nic.up {
            self.push(Step::SetLink {
                id: id.clone(),
                change: LinkChange::Up,
            });
        }
        for address in missing {
            self.push(Step::AddAddress {
                id: id.clone(),
                address,
            });
        }
    }

    /// The router's loopback: up, with the tunnel endpoint, before any tunnel needs it.
    fn loopback(&mut self) {
        let id = LinkId::router("lo");
        if self.desired.namespace.is_none() {
            return;
        }
        let Some(lo) = self.now.links.get(&id) else {
            return;
        };
        let missing = &self.desired.loopback - &lo.addresses;
        if !lo.up {
            self.push(Step::SetLink {
                id: id.clone(),
                change: LinkChange::Up,
            });
        }
        for address in missing {
            self.push(Step::AddAddress {
                id: id.clone(),
                address,
            });
        }
    }

    fn routes(&mut self, domain: Domain) {
        for (id, route) in &self.desired.routes {
            if id.domain != domain || self.now.routes.get(id) == Some(route) {
                continue;
            }
            if let Some(stale) = self.now.routes.get(id) {
                let route = stale.clone();
                self.push(Step::DeleteRoute { id: *id, route });
            }
            self.push(Step::AddRoute {
                id: *id,
                route: route.clone(),
            });
        }
    }

    fn rules(&mut self) {
        for rule in &self.desired.rules {
            if !self.now.rules.contains_key(rule) {
                self.push(Step::AddRule(rule.clone()));
            }
        }
    }
}
