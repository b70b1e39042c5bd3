//! From one `FRRConfiguration` to the part that it contributes, with everything that can be judged without the others.

mod neighbor;
mod policy;
mod raw;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    frrk8s::{self, Bgp, FrrConfigurationSpec, Vrf},
    meta::LabelSelector,
    selvedge::SettingsSpec,
    value::{HostCidr, IfName, Peer, Prefix},
};

pub(super) use self::raw::has_password;
use super::{
    default_vrf, is_used,
    merge::{Contradiction, Merge},
    part::{At, Evpn, Given, Part, Router, VniValues},
    versions,
};
use crate::{
    problem::{self, Problem},
    snapshot::ObjectRef,
    special::{self, Use},
};

/// What an object contributes, and what is wrong with it by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// Absent while something is wrong with it.
    pub(super) contribution: Option<Contribution>,
    pub(crate) problems: Vec<Problem>,
}

/// What an object contributes to the nodes that it selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contribution {
    pub(super) part: Part,
    /// What needs an address family that the object itself does not give its neighbor.
    pub(super) misfits: Vec<Misfit>,
    /// Neighbors without unicast family that have a field which is for unicast alone.
    pub(super) unicast_fields: Vec<UnicastField>,
    /// Raw configuration, with its priority.
    pub(super) raw: Option<(i64, String)>,
}

/// A field of a neighbor that is for unicast alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnicastField {
    pub(super) vrf: IfName,
    pub(super) peer: Peer,
    pub(super) field: String,
}

/// A value of an address family that a neighbor does not have by its own object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) vrf: IfName,
    pub(super) peer: Peer,
    pub(super) field: String,
    /// The value.
    pub(super) value: String,
    /// The family that it needs.
    pub(super) needs_ipv6: bool,
}

/// Reads an object.
pub(super) fn read(
    subject: &ObjectRef,
    spec: &FrrConfigurationSpec,
    settings: &SettingsSpec,
) -> Read {
    let FrrConfigurationSpec {
        bgp,
        raw,
        node_selector,
    } = spec;
    let mut reader = Reader {
        subject,
        settings,
        is_broken: false,
        problems: Vec::new(),
        contribution: Contribution::default(),
    };
    reader.selector(node_selector.as_ref());
    if let Some(bgp) = bgp {
        reader.bgp(bgp);
    }
    if let Some(raw) = raw {
        reader.raw(raw);
    }
    Read {
        contribution: (!reader.is_broken).then_some(reader.contribution),
        problems: reader.problems,
    }
}

/// What is found while an object is read.
struct Reader<'a> {
    subject: &'a ObjectRef,
    settings: &'a SettingsSpec,
    is_broken: bool,
    problems: Vec<Problem>,
    contribution: Contribution,
}

/// What the entries of an object say of one another.
struct Context<'a> {
    /// The prefixes of the object's routers, by VRF.
    prefixes: BTreeMap<IfName, BTreeSet<Prefix>>,
    bgp: &'a Bgp,
}

impl Reader<'_> {
    fn note(&mut self, field: impl Into<String>, kind: problem::Kind) {
        let problem = Problem::new(self.subject.clone(), field, kind);
        self.problems.push(problem);
    }

    fn refuse(&mut self, field: impl Into<String>, kind: problem::Kind) {
        self.is_broken = true;
        self.note(field, kind);
    }

    fn rule(&mut self, field: impl Into<String>, message: impl Into<String>) {
        let message = message.into();
        self.refuse(field, problem::Kind::RuleBroken { message });
    }

    fn no_effect(&mut self, field: impl Into<String>, what: impl Into<String>) {
        self.note(field, problem::Kind::NoEffect { what: what.into() });
    }

    fn selector(&mut self, selector: Option<&LabelSelector>) {
        if let Some(Err(error)) = selector.map(LabelSelector::check) {
            self.refuse("spec.nodeSelector", problem::Kind::InvalidSelector(error));
        }
    }

    /// The network that is written; host bits are cut off.
    fn prefix(&mut self, field: impl FnOnce() -> String, written: HostCidr) -> Prefix {
        let network = written.prefix();
        if network.net().addr() != written.addr() {
            self.note(field(), problem::Kind::HostBits { written, network });
        }
        network
    }

    fn bgp(&mut self, bgp: &Bgp) {
        let Bgp {
            routers,
            bfd_profiles,
        } = bgp;
        self.profiles(bfd_profiles);
        let mut prefixes: BTreeMap<IfName, BTreeSet<Prefix>> = BTreeMap::new();
        for router in routers {
            let known = prefixes.entry(vrf_of(router.vrf())).or_default();
            known.extend(router.prefixes.iter().map(|one| one.prefix()));
        }
        let context = Context { prefixes, bgp };
        let mut merge = Merge::default();
        for (place, router) in (0..).zip(routers) {
            let vrf = vrf_of(router.vrf());
            // Entries of one object, and of one peer, are merged as those of several objects are.
            for router in self.router(place, &vrf, router, &context) {
                let part = Part {
                    routers: BTreeMap::from([(vrf.clone(), router)]),
                    profiles: BTreeMap::new(),
                };
                let conflicts = merge.conflicts(&part);
                if conflicts.is_empty() {
                    merge.add(&part, 0);
                }
                for conflict in conflicts {
                    self.rule(conflict.field, within_object(conflict.what));
                }
            }
        }
        self.contribution.part.routers = merge.part.routers;
    }

    fn profiles(&mut self, profiles: &[frrk8s::BfdProfile]) {
        for (place, profile) in (0..).zip(profiles) {
            let at = At::Profile(place);
            let name = &profile.name;
            let is_word = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.:/-".contains(&byte));
            if !is_word || !(1..=63).contains(&name.len()) {
                let message =
                    "a name of a BFD profile has 1 to 63 letters, digits, and characters of _./:-";
                self.rule(at.field("name"), message);
            } else if self.contribution.part.profiles.contains_key(name) {
                let message =
                    format!("two BFD profiles have the same name {name:?}: keep one of them");
                self.rule(at.field("name"), message);
            } else {
                let given = Given::new(profile.clone(), at);
                let profiles = &mut self.contribution.part.profiles;
                profiles.insert(name.clone(), given);
            }
        }
    }

    fn router(
        &mut self,
        place: u32,
        vrf: &IfName,
        wanted: &frrk8s::Router,
        context: &Context<'_>,
    ) -> Vec<Router> {
        let frrk8s::Router {
            asn,
            id,
            // The caller has read it.
            vrf: _,
            neighbors,
            prefixes,
            imports,
            evpn,
        } = wanted;
        let at = At::Router(place);
        if let Some(id) = id
            && let Some(kind) = special::unfit_address((*id).into(), Use::OnLink)
        {
            self.refuse(at.field("id"), kind);
        }
        let mut own = BTreeSet::new();
        for (index, written) in prefixes.iter().enumerate() {
            let field = || at.field(&format!("prefixes[{index}]"));
            let prefix = self.prefix(field, *written);
            if matches!(prefix.net().addr(), IpAddr::V6(one) if one.is_unicast_link_local()) {
                let message = format!("FRR announces no link-local network: take {prefix} out");
                self.rule(field(), message);
            }
            own.insert(prefix);
        }
        let imports = self.imports(at, vrf, imports, context);
        let mut all = own.clone();
        for import in &imports {
            all.extend(context.prefixes.get(import).into_iter().flatten());
        }
        let evpn = match evpn {
            Some(evpn) => self.evpn(place, vrf, evpn),
            None => Evpn::default(),
        };
        let router = Router {
            asn: Given::new(*asn, at),
            id: id.map(|id| Given::new(id, at)),
            prefixes: own,
            imports,
            neighbors: BTreeMap::new(),
            evpn,
        };
        let mut routers = vec![router];
        for (index, neighbor) in (0..).zip(neighbors) {
            let of = neighbor::Of {
                vrf,
                asn: *asn,
                prefixes: &all,
                profiles: &context.bgp.bfd_profiles,
            };
            let read = self.neighbor(At::Neighbor(place, index), neighbor, &of);
            routers.extend(read.map(|neighbor| Router {
                asn: Given::new(*asn, at),
                id: None,
                prefixes: BTreeSet::new(),
                imports: BTreeSet::new(),
                neighbors: BTreeMap::from([neighbor]),
                evpn: Evpn::default(),
            }));
        }
        routers
    }

    fn imports(
        &mut self,
        at: At,
        vrf: &IfName,
        imports: &[frrk8s::Import],
        context: &Context<'_>,
    ) -> BTreeSet<IfName> {
        let mut read = BTreeSet::new();
        for (index, import) in imports.iter().enumerate() {
            let field = at.field(&format!("imports[{index}].vrf"));
            let imported = vrf_of(import.vrf());
            if imported == *vrf {
                let message = "a router cannot import its own VRF: take it out of imports";
                self.rule(field, message);
            } else if context.prefixes.contains_key(&imported) {
                read.insert(imported);
            } else {
                let message = format!(
                    "VRF {imported} has no router in this object: add one, or take it out of imports"
                );
                self.rule(field, message);
            }
        }
        read
    }

    fn evpn(&mut self, router: u32, vrf: &IfName, wanted: &frrk8s::Evpn) -> Evpn {
        let frrk8s::Evpn {
            advertise_vnis,
            advertise_svi,
            l2vnis,
            l3vni,
        } = wanted;
        let at = At::Evpn(router);
        let mut evpn = Evpn {
            advertise_vnis: advertise_vnis.map(|value| Given::new(value, at)),
            advertise_svi: advertise_svi.map(|value| Given::new(value, at)),
            ..Evpn::default()
        };
        for (index, l2vni) in (0..).zip(l2vnis) {
            let frrk8s::L2Vni {
                vni,
                rd,
                import_rts,
                export_rts,
            } = l2vni;
            let at = At::L2Vni(router, index);
            let values = VniValues {
                given: Given::new((), at),
                rd: rd.map(|rd| Given::new(rd, at)),
                imports: self.targets(at, "importRTs", import_rts),
                exports: self.targets(at, "exportRTs", export_rts),
            };
            for (field, kind) in versions::wildcards_of_l2vni(at, &values) {
                self.note(field, kind);
            }
            match evpn.l2vnis.get_mut(vni) {
                None => {
                    evpn.l2vnis.insert(*vni, values);
                }
                Some(known) => {
                    let other = known.rd.as_ref().zip(rd.as_ref());
                    if let Some((known, own)) = other.filter(|(known, own)| known.value != **own) {
                        let message = format!(
                            "different RD values: {own} here, and {} in {}",
                            known.value,
                            known.at.field("rd")
                        );
                        self.rule(at.field("rd"), message);
                    }
                    known.rd = known.rd.take().or(values.rd);
                    known.imports.extend(values.imports);
                    known.exports.extend(values.exports);
                }
            }
        }
        if let Some(l3vni) = l3vni {
            let frrk8s::L3Vni {
                vni,
                rd,
                import_rts,
                export_rts,
                advertise_prefixes,
            } = l3vni;
            let at = At::L3Vni(router);
            if *vrf == default_vrf() {
                let message = "evpn.l3vni has no effect in the default VRF: give the router a vrf";
                self.rule(at.field(""), message);
            }
            if rd.is_some_and(|rd| rd.to_string() == "0:0") {
                let message =
                    "FRR 8.4 takes 0:0 for none: give another route distinguisher, or leave it out";
                self.rule(at.field("rd"), message);
            }
            if advertise_prefixes.is_empty() {
                let message = "advertisePrefixes must say which prefixes are advertised: [unicast]";
                self.rule(at.field("advertisePrefixes"), message);
            }
            let values = VniValues {
                given: Given::new((), at),
                rd: rd.map(|rd| Given::new(rd, at)),
                imports: self.targets(at, "importRTs", import_rts),
                exports: self.targets(at, "exportRTs", export_rts),
            };
            evpn.l3vni = Some((*vni, values));
        }
        evpn
    }

    /// Route targets; one that is listed twice counts once.
    fn targets<T: Ord + Copy + ToString>(
        &mut self,
        at: At,
        name: &str,
        listed: &[T],
    ) -> BTreeSet<T> {
        let mut targets = BTreeSet::new();
        for target in listed {
            if !targets.insert(*target) {
                let what = format!("{} is listed twice: it counts once", target.to_string());
                self.no_effect(at.field(name), what);
            }
        }
        targets
    }

    /// Whether Secrets in a namespace may be used.
    fn is_used(&self, namespace: Option<&str>) -> bool {
        is_used(self.settings, namespace)
    }
}

/// What two entries of one object contradict each other in.
fn within_object(contradiction: Contradiction) -> String {
    match contradiction {
        Contradiction::Values {
            what,
            own,
            theirs,
            field,
        } => format!("{what}: {own} here, and {theirs} in {field}"),
        Contradiction::Vni(vni) => format!("duplicate VNI {vni}: a VNI has one purpose on a node"),
        Contradiction::Name(name) => format!(
            "the filters of two neighbors would have one name, {name:?}: choose another name for the VRF, or for the interface of one of them"
        ),
        Contradiction::L3VniWithNeighbors(vrf) => format!(
            "evpn.l3vni goes on a router without neighbors, and VRF {vrf} has neighbors: \
             move the neighbors to the default VRF's router"
        ),
    }
}

/// The device of a VRF.
fn vrf_of(vrf: Vrf<'_>) -> IfName {
    match vrf {
        Vrf::Default => default_vrf(),
        Vrf::Named(name) => name.clone(),
    }
}
