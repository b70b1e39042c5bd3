//! `L3VNI`, `L2VNI` and `L3Passthrough`: what each comes to before it meets a node.

mod build;
mod hosts;
mod meanings;
mod sessions;

use std::sync::Arc;

use api::{
    meta::LabelSelector,
    openperouter::{
        BridgeKind, BridgeSource, Contradiction, HostSession, L2VniSpec, L3PassthroughSpec,
        L3VniSpec, UnderlayAddressFamily,
    },
    selvedge::SettingsSpec,
    tcaas::{
        NodeNetworkConfigSpec,
        node_network_config::{HostMaster, HostMasterKind, RemoteAs},
    },
    value::{
        Asn, HostCidr, IfName, PeVrfName, Prefix, RouteTarget, Vni, WrittenIpv4Prefix,
        WrittenIpv6Prefix,
    },
};

pub(super) use self::{
    build::{Builder, Place, Slot, router_address},
    hosts::{Hosts, of_node as hosts_of_node},
    sessions::Networks,
};
pub(crate) use self::{
    hosts::{AddressesOfSession, RanksOf, SessionAddressesFor},
    meanings::{MeaningsByVni, SegmentsByVni, means_two},
    sessions::{NetworksOfSession, SessionMembers, SessionNetworks, SessionsInUse},
};
use crate::{
    memo::Query,
    names,
    problem::{self, Problem},
    problems,
    snapshot::{Kind, Meta, ObjectRef, kinds},
    special::{self, Use},
    view::View,
};

/// An object of one of these kinds that makes sense by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Overlay {
    /// The object.
    pub(crate) subject: ObjectRef,
    /// When it was created; decides who is older.
    created: Option<String>,
    /// The nodes that it is for.
    pub(crate) node_selector: Option<LabelSelector>,
    /// What nodes get.
    pub(crate) wants: Wants,
}

/// What an object wants of the nodes that it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// A VRF in the fabric.
    L3(L3),
    /// A segment in the fabric.
    L2(L2),
    /// A session of the host in the fabric's own table.
    Passthrough(Session),
}

/// A VRF in the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct L3 {
    pub(super) vrf: String,
    pub(super) vni: Vni,
    pub(super) port: u16,
    pub(super) family: Option<UnderlayAddressFamily>,
    pub(super) session: Option<Session>,
    pub(super) imports: Vec<RouteTarget>,
    pub(super) exports: Vec<RouteTarget>,
}

/// A segment in the fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct L2 {
    pub(super) vni: Vni,
    pub(super) port: u16,
    pub(super) family: Option<UnderlayAddressFamily>,
    /// The VRF of the gateways, where there are any.
    pub(super) vrf: Option<String>,
    /// The field that names the VRF.
    pub(super) vrf_field: &'static str,
    pub(super) gateways: Vec<HostCidr>,
    pub(super) master: Option<HostMaster>,
}

/// The field that names the VRF of a segment whose spec does not.
pub(super) const NAME: &str = "metadata.name";

/// A session with a BGP speaker on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(super) asn: Asn,
    pub(super) remote_as: RemoteAs,
    /// Its networks, one of each family; none where it gets them from the pool of the settings.
    pub(super) networks: Vec<Prefix>,
}

impl Session {
    /// The field that decides which networks it has.
    pub(super) fn field(&self) -> &'static str {
        if self.networks.is_empty() {
            "spec.hostsession"
        } else {
            "spec.hostsession.localcidr"
        }
    }
}

impl Overlay {
    /// Sorts older objects first, then by name.
    pub(super) fn order(&self) -> (bool, Option<&str>, &ObjectRef) {
        let created = self.created.as_deref();
        (created.is_none(), created, &self.subject)
    }

    /// Sorts older objects first.
    pub(super) fn age(&self) -> (bool, Option<&str>) {
        (self.created.is_none(), self.created.as_deref())
    }

    /// Whether it needs a tunnel endpoint.
    pub(super) fn needs_vtep(&self) -> bool {
        match self.wants {
            Wants::L3(_) | Wants::L2(_) => true,
            Wants::Passthrough(_) => false,
        }
    }

    /// The VRF that it needs.
    pub(crate) fn vrf(&self) -> Option<&str> {
        match &self.wants {
            Wants::L3(l3) => Some(&l3.vrf),
            Wants::L2(l2) => l2.vrf.as_deref(),
            Wants::Passthrough(_) => None,
        }
    }

    /// The VNI that it needs.
    pub(super) fn vni(&self) -> Option<Vni> {
        match &self.wants {
            Wants::L3(l3) => Some(l3.vni),
            Wants::L2(l2) => Some(l2.vni),
            Wants::Passthrough(_) => None,
        }
    }

    /// Its port on the host, where that belongs to a bridge of the host.
    pub(crate) fn port_of_bridge(&self) -> Option<IfName> {
        match &self.wants {
            Wants::L2(l2) => {
                let master = l2.master.as_ref().filter(|master| !master.create);
                master.map(|_| names::host_port(l2.vni))
            }
            Wants::L3(_) | Wants::Passthrough(_) => None,
        }
    }

    /// Its session with the host.
    pub(super) fn session(&self) -> Option<&Session> {
        match &self.wants {
            Wants::L3(l3) => l3.session.as_ref(),
            Wants::L2(_) => None,
            Wants::Passthrough(session) => Some(session),
        }
    }
}

/// Whether a node runs an object as it is.
pub(super) fn runs(config: &NodeNetworkConfigSpec, overlay: &Overlay) -> bool {
    let key = Some(overlay.subject.key.to_string());
    match &overlay.wants {
        Wants::L3(l3) => {
            let vrf = config.fabric_vrfs.get(&l3.vrf);
            vrf.is_some_and(|vrf| vrf.source == key && vrf.vni == Some(l3.vni))
        }
        Wants::L2(l2) => {
            let segment = config.layer2s.get(&build::segment_key(l2.vni));
            segment.is_some_and(|segment| {
                let gateways = segment.irb.iter().flat_map(|irb| &irb.ip_addresses);
                let vrf = segment.irb.as_ref().map(|irb| &irb.vrf);
                segment.source == key && gateways.eq(&l2.gateways) && vrf == l2.vrf.as_ref()
            })
        }
        Wants::Passthrough(_) => key.is_some_and(|key| config.passthroughs.contains_key(&key)),
    }
}

/// All objects of these kinds.
pub(crate) fn all(view: &View<'_>) -> Vec<ObjectRef> {
    let mut all = view.all::<kinds::L3Vni>();
    all.extend(view.all::<kinds::L2Vni>());
    all.extend(view.all::<kinds::L3Passthrough>());
    all
}

/// Whether objects of a kind are of these kinds.
pub(crate) const fn is_overlay(kind: Kind) -> bool {
    matches!(kind, Kind::L3Vni | Kind::L2Vni | Kind::L3Passthrough)
}

/// What an object comes to, and what is wrong with it by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) plan: Option<Arc<Overlay>>,
    pub(crate) problems: Vec<Problem>,
}

/// What each object of these kinds comes to before it meets a node.
pub(crate) struct OverlayOf;
impl Query for OverlayOf {
    type Key = ObjectRef;
    type Value = Arc<Planned>;
    fn compute(view: &View<'_>, subject: &ObjectRef) -> Arc<Planned> {
        let Some(meta) = view.meta_of(subject) else {
            return Arc::default();
        };
        let settings = view.settings();
        let mut check = Check {
            subject,
            settings: &settings,
            is_broken: false,
            problems: Vec::new(),
        };
        let key = &subject.key;
        let (selector, wants) = match subject.kind {
            Kind::L3Vni => view
                .spec::<kinds::L3Vni>(key)
                .map(|spec| (spec.node_selector.clone(), check.l3(&spec).map(Wants::L3))),
            Kind::L2Vni => view
                .spec::<kinds::L2Vni>(key)
                .map(|spec| (spec.node_selector.clone(), check.l2(&spec).map(Wants::L2))),
            _ => view.spec::<kinds::L3Passthrough>(key).map(|spec| {
                let session = check.passthrough(&spec);
                (spec.node_selector.clone(), session.map(Wants::Passthrough))
            }),
        }
        .unwrap_or_default();
        check.selector(selector.as_ref());
        let is_in_effect = !check.is_broken && !problems::waits(view, subject);
        let plan = wants.filter(|_| is_in_effect).map(|wants| {
            Arc::new(Overlay {
                subject: subject.clone(),
                created: Meta::clone(&meta).created,
                node_selector: selector,
                wants,
            })
        });
        Arc::new(Planned {
            plan,
            problems: check.problems,
        })
    }
}

/// What is found while an object is checked.
struct Check<'a> {
    subject: &'a ObjectRef,
    settings: &'a SettingsSpec,
    is_broken: bool,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn note(&mut self, field: &str, kind: problem::Kind) {
        let problem = Problem::new(self.subject.clone(), field, kind);
        self.problems.push(problem);
    }

    fn refuse(&mut self, field: &str, kind: problem::Kind) {
        self.is_broken = true;
        self.note(field, kind);
    }

    fn rule(&mut self, field: &str, message: impl Into<String>) {
        let message = message.into();
        self.refuse(field, problem::Kind::RuleBroken { message });
    }

    fn sound<T>(&mut self, field: &str, found: Result<T, Contradiction>) -> Option<T> {
        match found {
            Ok(found) => Some(found),
            Err(error) => {
                self.rule(field, error.to_string());
                None
            }
        }
    }

    fn selector(&mut self, selector: Option<&LabelSelector>) {
        if let Some(Err(error)) = selector.map(LabelSelector::check) {
            self.refuse("spec.nodeSelector", problem::Kind::InvalidSelector(error));
        }
    }

    fn l3(&mut self, spec: &L3VniSpec) -> Option<L3> {
        let L3VniSpec {
            // `selector` checks it.
            node_selector: _,
            vrf,
            vni,
            vxlanport,
            underlay_address_family,
            hostsession,
            export_rts,
            import_rts,
        } = spec;
        self.vrf(vrf);
        let session = match hostsession {
            Some(session) => Some(self.session(session)?),
            None => None,
        };
        if hostsession
            .as_ref()
            .is_some_and(|one| one.hostasn == Some(one.asn))
        {
            let message = "hostsession.hostasn must differ from hostsession.asn: the session of a VRF is external";
            self.rule("spec.hostsession.hostasn", message);
        }
        Some(L3 {
            vrf: vrf.to_string(),
            vni: *vni,
            port: vxlanport.get(),
            family: *underlay_address_family,
            session,
            imports: import_rts.clone(),
            exports: export_rts.clone(),
        })
    }

    fn l2(&mut self, spec: &L2VniSpec) -> Option<L2> {
        let L2VniSpec {
            node_selector: _,
            vni,
            vxlanport,
            underlay_address_family,
            vrf,
            // `gateways` reads both spellings.
            l2gatewayip: _,
            l2gatewayips: _,
            hostmaster,
        } = spec;
        let field = if spec.l2gatewayip.is_some() {
            "spec.l2gatewayip"
        } else {
            "spec.l2gatewayips"
        };
        let gateways = self.sound(field, spec.gateways())?.to_vec();
        for gateway in &gateways {
            self.gateway(field, *gateway);
        }
        if let Some(vrf) = vrf {
            self.vrf(vrf);
            if gateways.is_empty() {
                let what = "a segment without a gateway is in no VRF: set spec.l2gatewayip, or remove this field";
                let what = what.to_owned();
                self.note("spec.vrf", problem::Kind::NoEffect { what });
            }
        }
        let own = || names::vrf_of_object(self.settings, &self.subject.key.name);
        let vrf_field = if vrf.is_some() { "spec.vrf" } else { NAME };
        let vrf = vrf.as_ref().map_or_else(own, ToString::to_string);
        let master = match hostmaster {
            None => None,
            Some(wanted) => {
                let bridge = self.sound("spec.hostmaster", wanted.bridge())?;
                let kind = match bridge.kind {
                    BridgeKind::Linux => HostMasterKind::LinuxBridge,
                    BridgeKind::OpenVSwitch => {
                        let what = "the agent has no connection to OVSDB: the segment is made, and its port on the host is not attached to the bridge of Open vSwitch";
                        let what = what.to_owned();
                        self.note("spec.hostmaster.type", problem::Kind::NoEffect { what });
                        HostMasterKind::OvsBridge
                    }
                };
                let (name, create) = match bridge.source {
                    BridgeSource::Given(name) => (name.clone(), false),
                    BridgeSource::Own => (names::host_bridge(*vni), true),
                };
                if !create {
                    self.given_bridge(&name);
                }
                Some(HostMaster { name, kind, create })
            }
        };
        Some(L2 {
            vni: *vni,
            port: vxlanport.get(),
            family: *underlay_address_family,
            vrf: (!gateways.is_empty()).then_some(vrf),
            vrf_field,
            gateways,
            master,
        })
    }

    fn passthrough(&mut self, spec: &L3PassthroughSpec) -> Option<Session> {
        let L3PassthroughSpec {
            node_selector: _,
            hostsession,
        } = spec;
        self.session(hostsession)
    }

    fn session(&mut self, wanted: &HostSession) -> Option<Session> {
        let HostSession {
            asn,
            // `remote_as` reads both spellings.
            hostasn: _,
            hosttype: _,
            localcidr,
        } = wanted;
        let remote_as = self.sound("spec.hostsession", wanted.remote_as())?.into();
        let mut networks = Vec::new();
        if let Some(cidr) = localcidr {
            let ipv4 = |one: WrittenIpv4Prefix| ("ipv4", one.prefix(), one.with_ignored_bits());
            let ipv6 = |one: WrittenIpv6Prefix| ("ipv6", one.prefix(), one.with_ignored_bits());
            let both = [cidr.ipv4.map(ipv4), cidr.ipv6.map(ipv6)];
            for (family, network, written) in both.into_iter().flatten() {
                let field = format!("spec.hostsession.localcidr.{family}");
                if let Some(written) = written {
                    self.note(&field, problem::Kind::HostBits { written, network });
                }
                self.network(&field, network);
                networks.push(network);
            }
        } else if self.settings.host_sessions.cidrs.is_empty() {
            let message = "the session has no networks: set spec.hostsession.localcidr, or Settings.spec.hostSessions.cidrs";
            self.rule("spec.hostsession", message);
        }
        Some(Session {
            asn: *asn,
            remote_as,
            networks,
        })
    }

    /// The network of a session.
    fn network(&mut self, field: &str, prefix: Prefix) {
        if let Some(kind) = special::unfit(prefix.net(), Use::Routed) {
            self.refuse(field, kind);
        }
        if prefix.net().prefix_len() == prefix.net().max_prefix_len() {
            let message = "a session needs two addresses: use a network with one for the router and one for the host";
            self.rule(field, message);
        }
    }

    fn gateway(&mut self, field: &str, gateway: HostCidr) {
        let of_address = special::unfit_address(gateway.addr(), Use::Routed);
        // The network is announced, so nodes attract everything in it.
        let of_network = || special::unfit(gateway.prefix().net(), Use::Routed);
        if let Some(kind) = of_address.or_else(of_network) {
            self.refuse(field, kind);
        }
        let net = gateway.net();
        if net.prefix_len() == net.max_prefix_len() {
            let message = "a gateway needs the prefix length of its network: this prefix has one address only";
            self.rule(field, message);
        } else if !crate::allocate::Pool::new(gateway.prefix()).has_host(gateway.addr()) {
            let message = format!(
                "{} is no host address of {}: a gateway is neither the network's first nor its last address",
                gateway.addr(),
                gateway.prefix()
            );
            self.rule(field, message);
        }
    }

    fn vrf(&mut self, vrf: &PeVrfName) {
        let name = vrf.as_str();
        if let Some(by) = names::reserved_vrf(self.settings, name) {
            let name = name.to_owned();
            self.refuse("spec.vrf", problem::Kind::VrfNameTaken { name, by });
            return;
        }
        let device = IfName::from(vrf.clone());
        if names::is_reserved_device(&device) {
            let name = name.to_owned();
            let by = "names of this form are those of devices that Selvedge makes";
            self.refuse("spec.vrf", problem::Kind::VrfNameTaken { name, by });
        }
    }

    fn given_bridge(&mut self, name: &IfName) {
        let is_ours = names::is_own_bridge(name) || *name == self.settings.trunk.name;
        let what = if is_ours {
            Some("a device that Selvedge makes")
        } else {
            names::of_no_device(name)
        };
        if let Some(what) = what {
            let kind = problem::Kind::DeviceNameReserved {
                name: name.to_string(),
                what: what.to_owned(),
            };
            self.refuse("spec.hostmaster", kind);
        }
    }
}
