//! The merge of parts: what two of them contradict each other in, and their union.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    frrk8s::BfdProfile,
    value::{IfName, Peer, Vni},
};

use super::part::{
    Advertise, At, Evpn, Given, Neighbor, Part, PasswordSource, Receive, Router, Session, VniValues,
};

/// Something in which a part contradicts what others add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Where the part has it.
    pub(super) field: String,
    /// The object that has the other, by its place among the objects of the merge.
    pub(super) by: u32,
    /// What it is.
    pub(super) what: Contradiction,
}

/// A contradiction of two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// Two values for one setting.
    Values {
        /// The setting, as users of this API know the mistake.
        what: &'static str,
        own: String,
        theirs: String,
        /// Where the other object has its value.
        field: String,
    },
    /// One VNI for two purposes.
    Vni(Vni),
    /// Two neighbors whose filters would have one name.
    Name(String),
    /// A layer 3 VNI in the VRF of a neighbor.
    L3VniWithNeighbors(IfName),
}

/// What a VNI is used for: the VRF, and whether it is a layer 3 VNI.
type Purpose<'a> = (&'a IfName, bool);

/// Parts that are merged one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct Merge {
    pub(super) part: Part,
    /// The VNIs of all routers, each with its VRF and layer.
    vnis: BTreeMap<Vni, (IfName, bool, u32)>,
    /// The names that filters of neighbors begin with.
    names: BTreeMap<String, (IfName, Peer, u32)>,
}

impl Merge {
    /// In what a part contradicts the parts so far. Nothing: it can be added.
    pub(super) fn conflicts(&self, part: &Part) -> Vec<Conflict> {
        let mut found = Vec::new();
        for (name, profile) in &part.profiles {
            let known = self.part.profiles.get(name);
            if let Some(known) = known.filter(|known| !is_same(&known.value, &profile.value)) {
                let what = "multiple BFD profiles of one name";
                let values = (format!("{name:?}"), "other values".to_owned());
                found.push(conflict(known, profile.at.field(""), "", what, values));
            }
        }
        for (vrf, router) in &part.routers {
            if let Some(known) = self.part.routers.get(vrf) {
                of_router(vrf, known, router, &mut found);
            }
            self.of_names(vrf, router, &mut found);
            self.of_all_vnis(vrf, router, &mut found);
        }
        for (vni, (vrf, is_l3), at) in vnis(part) {
            if let Some((known_vrf, known_l3, by)) = self.vnis.get(&vni)
                && (known_vrf, *known_l3) != (vrf, is_l3)
            {
                let (field, what) = (at.field("vni"), Contradiction::Vni(vni));
                let by = *by;
                found.push(Conflict { field, by, what });
            }
        }
        found
    }

    /// FRR advertises the VNIs of a host in one router.
    fn of_all_vnis(&self, vrf: &IfName, router: &Router, found: &mut Vec<Conflict>) {
        let name = "advertiseVNIs";
        let all = |router: &Router| {
            let given = router.evpn.advertise_vnis.clone();
            given.filter(|_| router.evpn.advertises_all())
        };
        let Some(own) = all(router) else { return };
        let others = self.part.routers.iter().filter(|(other, _)| *other != vrf);
        for (other, known) in others {
            if let Some(known) = all(known) {
                let values = (format!("All in VRF {vrf}"), format!("All in VRF {other}"));
                let what = "VNIs advertised by more than one router";
                found.push(conflict(&known, own.at.field(name), name, what, values));
            }
        }
    }

    fn of_names(&self, vrf: &IfName, router: &Router, found: &mut Vec<Conflict>) {
        for (peer, neighbor) in &router.neighbors {
            for name in names_of_filters(vrf, peer) {
                if let Some((known_vrf, known, by)) = self.names.get(&name)
                    && (known_vrf, known) != (vrf, peer)
                {
                    let name_of_peer = match peer {
                        Peer::Address(_) => "address",
                        Peer::Interface(_) => "interface",
                    };
                    let field = neighbor.given.at.field(name_of_peer);
                    let (by, what) = (*by, Contradiction::Name(name));
                    found.push(Conflict { field, by, what });
                }
            }
        }
    }

    /// Adds a part without conflicts.
    pub(super) fn add(&mut self, part: &Part, by: u32) {
        for (name, profile) in &part.profiles {
            let profiles = &mut self.part.profiles;
            profiles
                .entry(name.clone())
                .or_insert_with(|| profile.of(by));
        }
        for (vni, (vrf, is_l3), _) in vnis(part) {
            self.vnis
                .entry(vni)
                .or_insert_with(|| (vrf.clone(), is_l3, by));
        }
        for (vrf, router) in &part.routers {
            for peer in router.neighbors.keys() {
                for name in names_of_filters(vrf, peer) {
                    let names = &mut self.names;
                    names
                        .entry(name)
                        .or_insert_with(|| (vrf.clone(), peer.clone(), by));
                }
            }
            if let Some(known) = self.part.routers.get_mut(vrf) {
                known.add(router, by);
            } else {
                let router = router.of(by);
                self.part.routers.insert(vrf.clone(), router);
            }
        }
    }
}

/// How the names of a neighbor's filters begin. One that ends with `-denied` would meet the list of what is always blocked.
fn names_of_filters(vrf: &IfName, peer: &Peer) -> [String; 2] {
    let name = match vrf.as_str() {
        super::DEFAULT_VRF => peer.to_string(),
        vrf => format!("{peer}-{vrf}"),
    };
    let denied = format!("{name}-denied");
    [name, denied]
}

/// The VNIs of a part.
fn vnis(part: &Part) -> impl Iterator<Item = (Vni, Purpose<'_>, At)> {
    part.routers.iter().flat_map(|(vrf, router)| {
        let l2 = router.evpn.l2vnis.iter();
        let l2 = l2.map(move |(vni, values)| (*vni, (vrf, false), values.given.at));
        let l3 = router.evpn.l3vni.iter();
        l2.chain(l3.map(move |(vni, values)| (*vni, (vrf, true), values.given.at)))
    })
}

/// Whether two profiles of one name mean the same: a mode that is not given is off.
fn is_same(one: &BfdProfile, other: &BfdProfile) -> bool {
    let completed = |profile: &BfdProfile| BfdProfile {
        echo_mode: Some(profile.echo_mode.unwrap_or(false)),
        passive_mode: Some(profile.passive_mode.unwrap_or(false)),
        ..profile.clone()
    };
    completed(one) == completed(other)
}

fn conflict<T>(
    known: &Given<T>,
    field: String,
    name: &str,
    what: &'static str,
    (own, theirs): (String, String),
) -> Conflict {
    Conflict {
        field,
        by: known.by,
        what: Contradiction::Values {
            what,
            own,
            theirs,
            field: known.at.field(name),
        },
    }
}

/// Compares two values of one setting. One that is absent contradicts nothing.
fn compare<T: PartialEq + ToString>(
    known: Option<&Given<T>>,
    own: Option<&Given<T>>,
    name: &'static str,
    what: &'static str,
    found: &mut Vec<Conflict>,
) {
    if let Some((known, own)) = known.zip(own)
        && known.value != own.value
    {
        let values = (own.value.to_string(), known.value.to_string());
        found.push(conflict(known, own.at.field(name), name, what, values));
    }
}

fn of_router(vrf: &IfName, known: &Router, own: &Router, found: &mut Vec<Conflict>) {
    compare(
        Some(&known.asn),
        Some(&own.asn),
        "asn",
        "different asns",
        found,
    );
    let what = "different router ids";
    compare(known.id.as_ref(), own.id.as_ref(), "id", what, found);
    of_evpn(&known.evpn, &own.evpn, found);
    let l3vni = |router: &Router| router.evpn.l3vni.as_ref().map(|(_, one)| one.given.clone());
    let neighbor = |router: &Router| {
        router
            .neighbors
            .values()
            .next()
            .map(|one| one.given.clone())
    };
    let both = [
        l3vni(own).zip(neighbor(known)),
        neighbor(own).zip(l3vni(known)),
    ];
    for (own, known) in both.into_iter().flatten() {
        found.push(Conflict {
            field: own.at.field(""),
            by: known.by,
            what: Contradiction::L3VniWithNeighbors(vrf.clone()),
        });
    }
    for (peer, neighbor) in &own.neighbors {
        if let Some(known) = known.neighbors.get(peer) {
            of_session(&known.session, &neighbor.session, found);
            of_advertise(&known.advertise, &neighbor.advertise, found);
        }
    }
}

fn of_session(known: &Session, own: &Session, found: &mut Vec<Conflict>) {
    let Session {
        remote_as,
        local_as,
        source,
        port,
        hold_time,
        keepalive_time,
        connect_time,
        ebgp_multi_hop,
        graceful_restart,
        bfd_profile,
        password,
    } = known;
    macro_rules! compare_all {
        ($($field:ident $name:literal $what:literal;)+) => {
            $(compare($field.as_ref(), own.$field.as_ref(), $name, $what, found);)+
        };
    }
    compare_all! {
        remote_as "asn" "multiple asns specified";
        local_as "localASN" "multiple localASNs specified";
        source "sourceaddress" "multiple source addresses specified";
        port "port" "multiple ports specified";
        hold_time "holdTime" "multiple hold times specified";
        keepalive_time "keepaliveTime" "multiple keepalive times specified";
        connect_time "connectTime" "multiple connect times specified";
        ebgp_multi_hop "ebgpMultiHop" "conflicting ebgp-multihop specified";
        graceful_restart "enableGracefulRestart" "conflicting graceful restart specified";
        bfd_profile "bfdProfile" "multiple bfd profiles specified";
    }
    if let Some((known, own)) = password.as_ref().zip(own.password.as_ref())
        && !known.value.agrees(&own.value)
    {
        let field = |one: &Given<PasswordSource>| match one.value {
            PasswordSource::Clear(_) => "password",
            PasswordSource::Secret(_) => "passwordSecret",
        };
        let said = |one: &Given<PasswordSource>| match &one.value {
            PasswordSource::Clear(_) => "one in clear text".to_owned(),
            PasswordSource::Secret(secret) => format!("that of Secret {secret}"),
        };
        let (own_field, values) = (own.at.field(field(own)), (said(own), said(known)));
        let what = "multiple passwords specified";
        found.push(conflict(known, own_field, field(known), what, values));
    }
}

fn of_advertise(known: &Advertise, own: &Advertise, found: &mut Vec<Conflict>) {
    let next_hops = (known.next_hop_ipv4.as_ref(), own.next_hop_ipv4.as_ref());
    let name = "toAdvertise.nextHop.ipv4";
    let what = "multiple IPv4 next hops specified";
    compare(next_hops.0, next_hops.1, name, what, found);
    let next_hops = (known.next_hop_ipv6.as_ref(), own.next_hop_ipv6.as_ref());
    let name = "toAdvertise.nextHop.ipv6";
    let what = "multiple IPv6 next hops specified";
    compare(next_hops.0, next_hops.1, name, what, found);
    for (prefix, own) in &own.preferences {
        let known = known.preferences.get(prefix);
        if let Some(known) = known.filter(|known| known.value != own.value) {
            let said = |one: u32| format!("{one} for {prefix}");
            let values = (said(own.value.get()), said(known.value.get()));
            let (name, what) = (
                "toAdvertise.withLocalPref",
                "multiple local preferences specified",
            );
            found.push(conflict(known, own.at.field(name), name, what, values));
        }
    }
}

fn of_evpn(known: &Evpn, own: &Evpn, found: &mut Vec<Conflict>) {
    if let Some((known, own)) = known
        .advertise_vnis
        .as_ref()
        .zip(own.advertise_vnis.as_ref())
        && known.value != own.value
    {
        let values = (format!("{:?}", own.value), format!("{:?}", known.value));
        let (name, what) = ("advertiseVNIs", "different advertiseVNIs");
        found.push(conflict(known, own.at.field(name), name, what, values));
    }
    let svi = (known.advertise_svi.as_ref(), own.advertise_svi.as_ref());
    compare(
        svi.0,
        svi.1,
        "advertiseSVI",
        "different advertiseSVI",
        found,
    );
    let of_vni = |known: &VniValues, own: &VniValues, found: &mut Vec<Conflict>| {
        compare(
            known.rd.as_ref(),
            own.rd.as_ref(),
            "rd",
            "different RD values",
            found,
        );
    };
    for (vni, own) in &own.l2vnis {
        if let Some(known) = known.l2vnis.get(vni) {
            of_vni(known, own, found);
        }
    }
    if let Some(((known_vni, known), (own_vni, own))) = known.l3vni.as_ref().zip(own.l3vni.as_ref())
    {
        if known_vni == own_vni {
            of_vni(known, own, found);
        } else {
            let values = (own_vni.to_string(), known_vni.to_string());
            let (name, what) = ("vni", "different l3vni numbers");
            let field = own.given.at.field(name);
            found.push(conflict(&known.given, field, name, what, values));
        }
    }
}

/// Takes a value that is not there yet.
fn take<T: Clone>(known: &mut Option<Given<T>>, own: Option<&Given<T>>, by: u32) {
    if known.is_none() {
        *known = own.map(|own| own.of(by));
    }
}

impl Router {
    fn of(&self, by: u32) -> Self {
        let mut router = Self {
            asn: self.asn.of(by),
            id: None,
            prefixes: BTreeSet::new(),
            imports: BTreeSet::new(),
            neighbors: BTreeMap::new(),
            evpn: Evpn::default(),
        };
        router.add(self, by);
        router
    }

    fn add(&mut self, own: &Self, by: u32) {
        let Self {
            // All have the same.
            asn: _,
            id,
            prefixes,
            imports,
            neighbors,
            evpn,
        } = own;
        take(&mut self.id, id.as_ref(), by);
        self.prefixes.extend(prefixes);
        self.imports.extend(imports.iter().cloned());
        for (peer, neighbor) in neighbors {
            match self.neighbors.get_mut(peer) {
                Some(known) => known.add(neighbor, by),
                None => {
                    self.neighbors.insert(peer.clone(), neighbor.of(by));
                }
            }
        }
        self.evpn.add(evpn, by);
    }
}

impl Neighbor {
    fn of(&self, by: u32) -> Self {
        let mut neighbor = Self {
            given: self.given.of(by),
            session: Session::default(),
            is_dual_stack: false,
            unicast: false,
            evpn: false,
            advertise: Advertise::default(),
            receive: Receive::default(),
        };
        neighbor.add(self, by);
        neighbor
    }

    fn add(&mut self, own: &Self, by: u32) {
        let Self {
            given: _,
            session,
            is_dual_stack,
            unicast,
            evpn,
            advertise,
            receive,
        } = own;
        self.session.add(session, by);
        self.is_dual_stack |= is_dual_stack;
        self.unicast |= unicast;
        self.evpn |= evpn;
        self.advertise.add(advertise, by);
        let Receive { all, prefixes } = receive;
        self.receive.all |= all;
        self.receive.prefixes.extend(prefixes);
    }
}

impl Session {
    fn add(&mut self, own: &Self, by: u32) {
        macro_rules! take_all {
            ($($field:ident)+) => {
                let Self { $($field),+ } = own;
                $(take(&mut self.$field, $field.as_ref(), by);)+
            };
        }
        take_all!(remote_as local_as source port hold_time keepalive_time connect_time ebgp_multi_hop graceful_restart
            bfd_profile password);
    }
}

impl Advertise {
    fn add(&mut self, own: &Self, by: u32) {
        let Self {
            prefixes,
            next_hop_ipv4,
            next_hop_ipv6,
            preferences,
            communities,
        } = own;
        self.prefixes.extend(prefixes);
        take(&mut self.next_hop_ipv4, next_hop_ipv4.as_ref(), by);
        take(&mut self.next_hop_ipv6, next_hop_ipv6.as_ref(), by);
        for (prefix, preference) in preferences {
            let known = self.preferences.entry(*prefix);
            known.or_insert_with(|| preference.of(by));
        }
        for (community, prefixes) in communities {
            let known = self.communities.entry(*community).or_default();
            known.extend(prefixes);
        }
    }
}

impl Evpn {
    fn add(&mut self, own: &Self, by: u32) {
        let Self {
            advertise_vnis,
            advertise_svi,
            l2vnis,
            l3vni,
        } = own;
        take(&mut self.advertise_vnis, advertise_vnis.as_ref(), by);
        take(&mut self.advertise_svi, advertise_svi.as_ref(), by);
        for (vni, values) in l2vnis {
            match self.l2vnis.get_mut(vni) {
                Some(known) => known.add(values, by),
                None => {
                    self.l2vnis.insert(*vni, values.of(by));
                }
            }
        }
        if let Some((vni, values)) = l3vni {
            match &mut self.l3vni {
                Some((_, known)) => known.add(values, by),
                none => *none = Some((*vni, values.of(by))),
            }
        }
    }
}

impl VniValues {
    fn of(&self, by: u32) -> Self {
        Self {
            given: self.given.of(by),
            rd: self.rd.as_ref().map(|rd| rd.of(by)),
            imports: self.imports.clone(),
            exports: self.exports.clone(),
        }
    }

    fn add(&mut self, own: &Self, by: u32) {
        take(&mut self.rd, own.rd.as_ref(), by);
        self.imports.extend(&own.imports);
        self.exports.extend(&own.exports);
    }
}
