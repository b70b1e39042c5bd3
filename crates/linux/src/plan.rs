//! The plan: ordered steps as values, before and after the change of FRR's configuration.
//!
//! Why the order is what it is:
//!
//! 1. **The namespace first**, its settings and rules next: links made later inherit `default` settings, and no packet
//!    should pass before the rule for local addresses is behind the one for VRFs. That rule is first copied, then
//!    removed from its old place: without any, the namespace would not receive packets for its own addresses.
//! 2. **Deletes that make way** before anything of the stage is made: what cannot be changed in place (VNI, table, VLAN, parent,
//!    tunnel endpoint) is deleted and made again, and the kernel holds a VNI, a VLAN of a parent or a tunnel's ends only once.
//! 3. **Uplinks, then VRF, then bridge, then pairs, then VXLAN and VLAN**: each is a master or parent of what follows.
//! 4. **Master before addresses**: putting a link that is up into a VRF flushes its IPv6 addresses.
//! 5. **Settings of a link before it is up**: duplicate detection of an anycast gateway must never have begun.
//! 6. **FRR.** The VXLAN and bridge of an L3 VNI exist by now but are down: FRR reads the router MAC when they come up, and would take
//!    a VNI it does not know for a segment.
//! 7. **L3 VNIs up, then segments, then the host's interfaces and routes, then policy rules**, which may point to new tables.
//! 8. **What is no longer wanted goes last**: FRR has stopped referring to it. Rules before the tables they point to,
//!    VXLAN and VLAN before pairs before bridge before VRF, NICs back to the host, the namespace at the very end.
//!
//! Around all this, **mirrors**: filters and tunnels that are no longer wanted go before anything else, filters first; tunnels and then
//! filters come at the end, when the links they need are there. These steps stand apart, because one that fails fails nothing else.
//! The same holds for what a NIC gets back in the host besides its plain addresses: alias, MTU, settings, what else addresses have, and
//! routes, which need the addresses, come last of all.
//!
//! Within a link, stale addresses go before new ones come: removing the first IPv4 address of a network takes the others of that
//! network with it. A MAC address that is already right is never written again: FRR would withdraw and send again
//! every route of the segment.

mod note;

use std::fmt;

use api::value::MacAddress;
use ipnet::IpNet;

pub use self::note::Note;
use crate::{
    desired::DesiredLink,
    filter::{Filter, FilterId},
    nic::{HostAddress, HostRoute},
    object::{AddrGen, BridgePort, Family, LinkId, Route, RouteId, Rule},
    sysctl::SysctlId,
};

/// Ordered steps from what is to what should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    mirror_teardown: Vec<Step>,
    before: Vec<Step>,
    after: Vec<Step>,
    mirror_setup: Vec<Step>,
    nic_restore: Vec<Step>,
    notes: Vec<Note>,
}

/// Which part of a plan a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Before everything: mirrors that are no longer wanted.
    MirrorTeardown,
    /// Before FRR's configuration is changed.
    BeforeFrr,
    /// After it.
    AfterFrr,
    /// After everything: mirrors.
    MirrorSetup,
    /// After that: what NICs of the host had before they were moved.
    NicRestore,
}

impl Plan {
    /// The steps to be done before FRR's configuration is changed.
    pub fn before_frr(&self) -> &[Step] {
        &self.before
    }

    /// The steps to be done after it.
    pub fn after_frr(&self) -> &[Step] {
        &self.after
    }

    /// The steps of mirrors to be done before all others. One that fails fails nothing else.
    pub fn mirror_teardown(&self) -> &[Step] {
        &self.mirror_teardown
    }

    /// The steps of mirrors to be done after all others. One that fails fails nothing else.
    pub fn mirror_setup(&self) -> &[Step] {
        &self.mirror_setup
    }

    /// The steps that give NICs back what the host knows of them. One that fails fails nothing else: the network around the
    /// node may have changed since.
    pub fn nic_restore(&self) -> &[Step] {
        &self.nic_restore
    }

    /// The NICs that are moved into the router's namespace.
    pub fn taken_nics(&self) -> impl Iterator<Item = &str> {
        self.before.iter().filter_map(|step| match step {
            Step::TakeNic { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// NICs that the host does not have, and that are not in the router's namespace.
    pub fn missing_nics(&self) -> impl Iterator<Item = &str> {
        self.notes().iter().filter_map(|note| match note {
            Note::NicMissing(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The steps of mirrors.
    pub fn mirrors(&self) -> impl Iterator<Item = &Step> {
        self.mirror_teardown.iter().chain(&self.mirror_setup)
    }

    /// The steps that must not fail.
    pub fn essential(&self) -> impl Iterator<Item = &Step> {
        self.before.iter().chain(&self.after)
    }

    /// All steps, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.mirror_teardown
            .iter()
            .chain(self.essential())
            .chain(&self.mirror_setup)
            .chain(&self.nic_restore)
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps().count()
    }

    /// Whether there is nothing to do. Notes do not count: nothing can be done about them.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What this kernel or this node cannot give us.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The most severe disruption of all steps.
    pub fn disruption(&self) -> Disruption {
        self.steps()
            .map(Step::disruption)
            .max()
            .unwrap_or(Disruption::None)
    }

    pub(crate) fn push(&mut self, stage: Stage, step: Step) {
        match stage {
            Stage::MirrorTeardown => self.mirror_teardown.push(step),
            Stage::BeforeFrr => self.before.push(step),
            Stage::AfterFrr => self.after.push(step),
            Stage::MirrorSetup => self.mirror_setup.push(step),
            Stage::NicRestore => self.nic_restore.push(step),
        }
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }
}

/// How much a step disturbs what already runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disruption {
    /// Nothing notices.
    None,
    /// Something comes; what was there stays.
    Additive,
    /// Something that may carry packets goes, or is made anew.
    Rebuild,
}

/// One change of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a named namespace that outlives us.
    CreateNamespace {
        /// Its name below `/run/netns`.
        name: String,
    },
    /// Remove it.
    DeleteNamespace {
        /// Its name below `/run/netns`.
        name: String,
    },
    /// Move a NIC from the host into the router's namespace, and remember its addresses on it.
    TakeNic {
        /// The NIC.
        name: String,
        /// Its alias from now on, which holds the addresses.
        alias: String,
    },
    /// Move a NIC back to the host. It stays marked until it has its addresses again.
    ReturnNic {
        /// The NIC.
        name: String,
    },
    /// Forget a NIC that is back in the host with its addresses.
    ReleaseNic {
        /// The NIC.
        name: String,
    },
    /// Make a link with everything but its addresses, and leave it down. A veth is made with its other end.
    CreateLink {
        /// Where, and its name.
        id: LinkId,
        /// What it should be.
        link: Box<DesiredLink>,
    },
    /// Change one thing about a link.
    SetLink {
        /// Which link.
        id: LinkId,
        /// What changes.
        change: LinkChange,
    },
    /// Delete a link that we made, and with it whatever stands on it.
    DeleteLink {
        /// Which link.
        id: LinkId,
    },
    /// Add an address.
    AddAddress {
        /// To which link.
        id: LinkId,
        /// The address.
        address: IpNet,
    },
    /// Remove an address.
    DeleteAddress {
        /// From which link.
        id: LinkId,
        /// The address.
        address: IpNet,
    },
    /// Add a route.
    AddRoute {
        /// Its key.
        id: RouteId,
        /// What it does.
        route: Route,
    },
    /// Remove a route of ours.
    DeleteRoute {
        /// Its key.
        id: RouteId,
        /// What it does.
        route: Route,
    },
    /// Replace a plain address of a NIC of the host by what it was before the NIC was moved. It is not ours.
    RestoreAddress {
        /// The NIC.
        nic: String,
        /// What it was.
        address: HostAddress,
    },
    /// Add a route of the host that went with its NIC. It is not ours.
    RestoreRoute(HostRoute),
    /// Add a rule.
    AddRule(Rule),
    /// Remove a rule.
    DeleteRule(Rule),
    /// Write a kernel setting.
    SetSysctl {
        /// Which.
        id: SysctlId,
        /// What it should be.
        value: String,
    },
    /// Make it possible to hang filters on a link.
    AddHook {
        /// Which link.
        link: LinkId,
    },
    /// Add a filter.
    AddFilter {
        /// Its priority.
        priority: u16,
        /// What it copies.
        filter: Box<Filter>,
    },
    /// Remove a filter of ours.
    DeleteFilter {
        /// Its place.
        id: FilterId,
        /// Its family.
        family: Family,
    },
}

/// One change of a link that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// Set it up.
    Up,
    /// Its alias.
    Alias(String),
    /// Its MTU.
    Mtu(u32),
    /// Its hardware address.
    Mac(MacAddress),
    /// How it gets its link-local address.
    AddrGen(AddrGen),
    /// Its bridge or VRF.
    Master(Option<String>),
    /// What its bridge does on it.
    Port(BridgePort),
}

impl Step {
    /// How much the step disturbs what already runs.
    pub fn disruption(&self) -> Disruption {
        match self {
            Self::SetSysctl { .. }
            | Self::ReleaseNic { .. }
            | Self::AddHook { .. }
            | Self::AddFilter { .. }
            | Self::DeleteFilter { .. } => Disruption::None,
            Self::SetLink { change, .. } => match change {
                LinkChange::Alias(_) | LinkChange::AddrGen(_) | LinkChange::Port(_) => {
                    Disruption::None
                }
                LinkChange::Up => Disruption::Additive,
                LinkChange::Mtu(_) | LinkChange::Mac(_) | LinkChange::Master(_) => {
                    Disruption::Rebuild
                }
            },
            Self::CreateNamespace { .. }
            | Self::CreateLink { .. }
            | Self::AddAddress { .. }
            | Self::AddRoute { .. }
            | Self::RestoreAddress { .. }
            | Self::RestoreRoute(_)
            | Self::AddRule(_) => Disruption::Additive,
            Self::DeleteNamespace { .. }
            | Self::TakeNic { .. }
            | Self::ReturnNic { .. }
            | Self::DeleteLink { .. }
            | Self::DeleteAddress { .. }
            | Self::DeleteRoute { .. }
            | Self::DeleteRule(_) => Disruption::Rebuild,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateNamespace { name } => write!(f, "create namespace {name}"),
            Self::DeleteNamespace { name } => write!(f, "delete namespace {name}"),
            Self::TakeNic { name, .. } => write!(f, "move nic {name} from host to router"),
            Self::ReturnNic { name } => write!(f, "move nic {name} from router to host"),
            Self::ReleaseNic { name } => write!(f, "release nic {name}"),
            Self::CreateLink { id, link } => {
                write!(f, "create link {id}: {}", link.kind)?;
                match &link.master {
                    Some(master) => write!(f, " master {master}"),
                    None => Ok(()),
                }
            }
            Self::SetLink { id, change } => write!(f, "set link {id} {change}"),
            Self::DeleteLink { id } => write!(f, "delete link {id}"),
            Self::AddAddress { id, address } => write!(f, "add address {address} to {id}"),
            Self::DeleteAddress { id, address } => {
                write!(f, "delete address {address} from {id}")
            }
            Self::AddRoute { id, route } => write!(f, "add route {id}: {route}"),
            Self::DeleteRoute { id, route } => write!(f, "delete route {id}: {route}"),
            Self::RestoreAddress { nic, address } => {
                write!(f, "restore address {address} of nic {nic}")
            }
            Self::RestoreRoute(route) => write!(f, "restore route {route}"),
            Self::AddRule(rule) => write!(f, "add rule {rule}"),
            Self::DeleteRule(rule) => write!(f, "delete rule {rule}"),
            Self::SetSysctl { id, value } => write!(f, "set {id} to {value}"),
            Self::AddHook { link } => write!(f, "add hook for filters to {link}"),
            Self::AddFilter { priority, filter } => {
                write!(f, "add filter {filter} priority {priority}")
            }
            Self::DeleteFilter { id, .. } => write!(f, "delete filter {id}"),
        }
    }
}

impl fmt::Display for LinkChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => f.write_str("up"),
            Self::Alias(alias) => write!(f, "alias {alias:?}"),
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::Mac(mac) => write!(f, "address {mac}"),
            Self::AddrGen(AddrGen::None) => f.write_str("addrgenmode none"),
            Self::AddrGen(AddrGen::Kernel) => f.write_str("addrgenmode eui64"),
            Self::Master(Some(master)) => write!(f, "master {master}"),
            Self::Master(None) => f.write_str("nomaster"),
            Self::Port(port) => {
                let word = |on| if on { "on" } else { "off" };
                write!(
                    f,
                    "neigh_suppress {} learning {} hairpin {}",
                    word(port.neigh_suppress),
                    word(port.learning),
                    word(port.hairpin)
                )
            }
        }
    }
}
