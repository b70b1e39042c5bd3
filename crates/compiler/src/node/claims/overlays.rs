//! What `L3VNI`s, `L2VNI`s and `L3Passthrough`s get.

use api::{
    openperouter::UnderlayAddressFamily,
    tcaas::node_network_config::{AddressFamilyName, HostMaster, HostMasterKind},
    value::{IfName, Prefix, Vni},
};

use super::{Held, Served, VrfHolder, VrfOf, conflict, disagrees, vrf_devices};
use crate::{
    names,
    node::overlay::{L2, L3, NAME, Networks, Overlay, Session, Wants},
    problem::{self, Problem},
    snapshot::ObjectRef,
};

impl Served<'_> {
    /// Serves an object, which runs on the nodes or does not.
    pub(super) fn overlay(&mut self, overlay: &Overlay, runs: bool) {
        let held = match &overlay.wants {
            Wants::L3(l3) => self.l3(overlay, l3, runs),
            Wants::L2(l2) => self.l2(overlay, l2, runs),
            Wants::Passthrough(session) => self.passthrough(overlay, session),
        };
        if let Some(held) = held {
            self.claims.overlays.insert(overlay.subject.clone(), held);
        }
    }

    fn refuse<T>(&mut self, overlay: &Overlay, field: &str, kind: problem::Kind) -> Option<T> {
        self.report(Problem::new(overlay.subject.clone(), field, kind));
        None
    }

    fn l3(&mut self, overlay: &Overlay, l3: &L3, runs: bool) -> Option<Held> {
        let from_other_vtep = self.family(overlay, l3.family)?;
        self.free_of_intents(overlay, &l3.vrf, "spec.vrf", runs)?;
        let held = self.vrfs.get(&l3.vrf);
        let is_joined = held.is_some_and(|held| held.vni == Some(l3.vni));
        let refused = held.and_then(|held| match held.of {
            VrfOf::Intent => Some(("spec.vrf", conflict(&l3.vrf, &held.by))),
            VrfOf::HandWritten if is_joined => None,
            VrfOf::HandWritten => Some(("spec.vni", disagrees(&l3.vrf, &held.by))),
            VrfOf::L3Vni => {
                let kind = problem::Kind::VrfTaken {
                    vrf: l3.vrf.clone(),
                    by: Box::new(held.by.clone()),
                    node: self.node(),
                };
                Some(("spec.vrf", kind))
            }
            VrfOf::L2Vni => None,
        });
        if let Some((field, kind)) = refused {
            return self.refuse(overlay, field, kind);
        }
        if !is_joined {
            self.vni(overlay, l3.vni)?;
        }
        self.device(overlay, &l3.vrf, "spec.vrf")?;
        let mut devices = vrf_devices(&l3.vrf);
        devices.push(names::router_port(l3.vni));
        self.free_devices(overlay, &devices, &l3.vrf, "spec.vrf")?;
        let networks = match &l3.session {
            Some(session) => self.session(overlay, session, Some(&l3.vrf))?,
            None => Networks::new(),
        };
        self.shares_vrf(overlay, &l3.vrf, "spec.vrf");
        self.devices.insert(devices, &l3.vrf, &overlay.subject);
        self.vnis.insert(l3.vni, overlay.subject.clone());
        let holder = VrfHolder {
            by: overlay.subject.clone(),
            vni: Some(l3.vni),
            of: VrfOf::L3Vni,
        };
        self.vrfs.insert(l3.vrf.clone(), holder);
        Some(Held {
            from_other_vtep,
            networks,
        })
    }

    fn l2(&mut self, overlay: &Overlay, l2: &L2, runs: bool) -> Option<Held> {
        let from_other_vtep = self.family(overlay, l2.family)?;
        if let Some(master) = &l2.master {
            self.device(overlay, master.name.as_str(), "spec.hostmaster")?;
        }
        self.vni(overlay, l2.vni)?;
        let devices = vec![
            names::vni_bridge(l2.vni),
            names::l2_vxlan(l2.vni),
            names::router_port(l2.vni),
        ];
        self.free_devices(overlay, &devices, "", "spec.vni")?;
        if let Some(vrf) = &l2.vrf {
            self.gateways(overlay, l2, vrf, runs)?;
        }
        if let Some(master) = &l2.master {
            self.shares_bridge(overlay, master);
        }
        self.devices.insert(devices, "", &overlay.subject);
        self.vnis.insert(l2.vni, overlay.subject.clone());
        Some(Held {
            from_other_vtep,
            networks: Networks::new(),
        })
    }

    /// The networks of a segment's gateways in its VRF.
    fn gateways(&mut self, overlay: &Overlay, l2: &L2, vrf: &str, runs: bool) -> Option<()> {
        self.free_of_intents(overlay, vrf, l2.vrf_field, runs)?;
        let held = self.vrfs.get(vrf);
        if let Some(held) = held.filter(|held| held.of == VrfOf::Intent) {
            let kind = conflict(vrf, &held.by);
            return self.refuse(overlay, l2.vrf_field, kind);
        }
        let is_new = held.is_none();
        let taken = l2.gateways.iter().find_map(|gateway| {
            let network = gateway.prefix();
            let (other, by) = self.overlap(Some(vrf), network)?;
            Some((network, other, by.clone()))
        });
        if let Some((network, other, by)) = taken {
            let field = if l2.gateways.len() > 1 {
                "spec.l2gatewayips"
            } else {
                "spec.l2gatewayip"
            };
            let kind = problem::Kind::NetworksOverlap {
                network,
                other,
                by: Box::new(by),
                vrf: Some(vrf.to_owned()),
                node: self.node(),
            };
            return self.refuse(overlay, field, kind);
        }
        self.shares_vrf(overlay, vrf, l2.vrf_field);
        if is_new {
            self.device(overlay, vrf, l2.vrf_field)?;
            let devices = vrf_devices(vrf);
            self.free_devices(overlay, &devices, vrf, l2.vrf_field)?;
            self.devices.insert(devices, vrf, &overlay.subject);
            let holder = VrfHolder {
                by: overlay.subject.clone(),
                vni: None,
                of: VrfOf::L2Vni,
            };
            self.vrfs.insert(vrf.to_owned(), holder);
        }
        for gateway in &l2.gateways {
            let network = gateway.prefix();
            self.of_overlays
                .insert(Some(vrf), network, &overlay.subject);
        }
        Some(())
    }

    /// Warns where a VRF has objects of two namespaces, and one of them is in it by its own name alone.
    fn shares_vrf(&mut self, overlay: &Overlay, vrf: &str, field: &str) {
        let subject = &overlay.subject;
        let is_named_like_it = field == NAME;
        let other = if is_named_like_it {
            self.vrfs.get(vrf).map(|held| &held.by)
        } else {
            self.named_like_vrfs.get(vrf)
        };
        let namespace = |one: &ObjectRef| one.key.namespace.clone();
        let is_apart = |other: &&ObjectRef| {
            let both = namespace(subject).zip(namespace(other));
            both.is_some_and(|(own, theirs)| own != theirs)
        };
        if let Some(by) = other.filter(is_apart).cloned() {
            let kind = problem::Kind::VrfShared {
                vrf: vrf.to_owned(),
                by: Box::new(by),
                node: self.node(),
            };
            self.report(Problem::new(subject.clone(), field, kind));
        }
        if is_named_like_it {
            let named = self.named_like_vrfs.entry(vrf.to_owned());
            named.or_insert_with(|| subject.clone());
        }
    }

    /// Warns where two segments are attached to one bridge of Linux.
    fn shares_bridge(&mut self, overlay: &Overlay, master: &HostMaster) {
        if master.kind != HostMasterKind::LinuxBridge {
            return;
        }
        let first = self.bridges.entry(master.name.clone());
        let first = first.or_insert_with(|| overlay.subject.clone());
        if *first == overlay.subject {
            return;
        }
        let kind = problem::Kind::BridgeShared {
            bridge: master.name.to_string(),
            by: Box::new(first.clone()),
            node: self.node(),
        };
        self.report(Problem::new(
            overlay.subject.clone(),
            "spec.hostmaster",
            kind,
        ));
    }

    fn passthrough(&mut self, overlay: &Overlay, session: &Session) -> Option<Held> {
        let plan = self.wanted.plans.first()?;
        if session.asn != plan.fabric.asn {
            let is_internal = session.remote_as.internal;
            let is_own = |asn| asn == session.asn || asn == plan.fabric.asn;
            if is_internal || session.remote_as.asn.is_some_and(is_own) {
                let message = format!(
                    "AS {} differs from AS {} of {}, which FRR allows on external sessions only: use that number, or another hostasn",
                    session.asn, plan.fabric.asn, plan.subject
                );
                let kind = problem::Kind::RuleBroken { message };
                return self.refuse(overlay, "spec.hostsession.asn", kind);
            }
        }
        let networks = self.session(overlay, session, None)?;
        Some(Held {
            from_other_vtep: false,
            networks,
        })
    }

    /// The networks of a session, in a VRF or in the fabric's own table.
    fn session(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        vrf: Option<&str>,
    ) -> Option<Networks> {
        // Why it has none is said elsewhere.
        let networks = (self.wanted.networks)(&overlay.subject)?;
        let mut networks = Networks::clone(&networks);
        if vrf.is_none() {
            self.keep_families(overlay, session, &mut networks)?;
            self.apart_from_neighbors(overlay, session, &networks)?;
        }
        let taken = networks.iter().flatten().find_map(|network| {
            let on_host = self.overlap(None, *network).map(|found| (found, false));
            let in_vrf = || self.overlap(Some(vrf?), *network);
            let taken = on_host.or_else(|| in_vrf().map(|found| (found, true)));
            let ((other, by), is_in_vrf) = taken?;
            Some((*network, other, by.clone(), is_in_vrf))
        });
        if let Some((network, other, by, is_in_vrf)) = taken {
            let kind = problem::Kind::NetworksOverlap {
                network,
                other,
                by: Box::new(by),
                vrf: vrf.filter(|_| is_in_vrf).map(str::to_owned),
                node: self.node(),
            };
            return self.refuse(overlay, session.field(), kind);
        }
        for network in networks.iter().flatten() {
            let by = &overlay.subject;
            self.of_overlays.insert(None, *network, by);
            if vrf.is_some() {
                self.of_overlays.insert(vrf, *network, by);
            }
        }
        Some(networks)
    }

    /// Whether no network of a passthrough has the address of a neighbor of the fabric: both are in the same table, and the router would look
    /// for the neighbor on the host.
    fn apart_from_neighbors(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        networks: &Networks,
    ) -> Option<()> {
        let plan = self.wanted.plans.first()?;
        let neighbors = plan.fabric.neighbors.iter();
        let mut addresses = neighbors.filter_map(|neighbor| neighbor.address);
        let inside = addresses.find_map(|address| {
            let mut networks = networks.iter().flatten();
            let network = networks.find(|network| network.net().contains(&address))?;
            Some((address, *network))
        });
        let Some((address, network)) = inside else {
            return Some(());
        };
        let message = format!(
            "{network} has {address}, a neighbor of {}, which the router would look for on the host: use another network",
            plan.subject
        );
        self.refuse(
            overlay,
            session.field(),
            problem::Kind::RuleBroken { message },
        )
    }

    /// Leaves out the families of a passthrough that no session with the fabric carries.
    fn keep_families(
        &mut self,
        overlay: &Overlay,
        session: &Session,
        networks: &mut Networks,
    ) -> Option<()> {
        let carries = |ipv4: bool| {
            let family = if ipv4 {
                AddressFamilyName::Ipv4Unicast
            } else {
                AddressFamilyName::Ipv6Unicast
            };
            let plans = self.wanted.plans.iter();
            let mut neighbors = plans.flat_map(|plan| &plan.fabric.neighbors);
            neighbors.any(|neighbor| neighbor.address_families.contains(&family))
        };
        let is_ipv4 = |family: &Vec<Prefix>| family.iter().any(|one| one.is_ipv4());
        let (kept, left): (Networks, Networks) = std::mem::take(networks)
            .into_iter()
            .partition(|family| carries(is_ipv4(family)));
        for family in left.iter().filter(|_| !session.networks.is_empty()) {
            let (field, name) = if is_ipv4(family) {
                ("ipv4", "ipv4unicast")
            } else {
                ("ipv6", "ipv6unicast")
            };
            let what = format!(
                "no neighbor of the Underlay has the address family {name}: add it to spec.neighbors[].addressFamilies of one"
            );
            let field = format!("spec.hostsession.localcidr.{field}");
            let kind = problem::Kind::NoEffect { what };
            self.report(Problem::new(overlay.subject.clone(), field, kind));
        }
        *networks = kept;
        if networks.is_empty() {
            let message = "no session with the fabric carries an address family of this session";
            let message = message.to_owned();
            let kind = problem::Kind::RuleBroken { message };
            return self.refuse(overlay, "spec.hostsession", kind);
        }
        Some(())
    }

    /// Whether the VXLAN of an object starts from the node's second tunnel endpoint.
    fn family(&mut self, overlay: &Overlay, family: Option<UnderlayAddressFamily>) -> Option<bool> {
        let Some(family) = family else {
            return Some(false);
        };
        let ipv4 = family == UnderlayAddressFamily::Ipv4;
        let plan = self.wanted.plans.first().into_iter();
        let pools = plan.flat_map(|plan| plan.vtep_pools());
        let place = pools.enumerate().find(|(_, pool)| pool.is_ipv4() == ipv4);
        if let Some((place, _)) = place {
            return Some(place > 0);
        }
        let kind = problem::Kind::VtepFamilyMissing {
            family: if ipv4 { "IPv4" } else { "IPv6" },
            node: self.node().unwrap_or_default(),
        };
        self.refuse(overlay, "spec.underlayAddressFamily", kind)
    }

    fn vni(&mut self, overlay: &Overlay, vni: Vni) -> Option<()> {
        let Some(by) = self.holder(vni).cloned() else {
            return Some(());
        };
        let node = self.node();
        self.refuse(
            overlay,
            "spec.vni",
            problem::Kind::VniTaken { vni, by, node },
        )
    }

    /// Whether a VRF is not that of an intent: an object that does not run there never takes one.
    fn free_of_intents(
        &mut self,
        overlay: &Overlay,
        vrf: &str,
        field: &str,
        runs: bool,
    ) -> Option<()> {
        let mut routing = self.wanted.group.vrf.iter();
        let intent = routing.find(|(_, one)| one.spec.vrf.as_str() == vrf && one.is_of_intent());
        let intent = intent.filter(|_| !runs && self.wanted.numbers.has(vrf));
        let Some((_, intent)) = intent else {
            return Some(());
        };
        self.refuse(overlay, field, conflict(vrf, &intent.source))
    }

    /// Whether a VRF or a bridge can have a device of its name: an uplink of that name moves from the host to the namespace of the VRFs.
    fn device(&mut self, overlay: &Overlay, name: &str, field: &str) -> Option<()> {
        let mut nics = self.wanted.plans.iter().flat_map(|plan| &plan.fabric.nics);
        if !nics.any(|nic: &IfName| nic.as_str() == name) {
            return Some(());
        }
        let kind = problem::Kind::DeviceNameReserved {
            name: name.to_owned(),
            what: "an uplink of the node".to_owned(),
        };
        self.refuse(overlay, field, kind)
    }

    /// Whether devices that belong to a VRF, or to a segment alone, have names of their own.
    fn free_devices(
        &mut self,
        overlay: &Overlay,
        devices: &[IfName],
        of: &str,
        field: &str,
    ) -> Option<()> {
        let Some(taken) = self.devices.taken(devices, of) else {
            return Some(());
        };
        let kind = taken.kind(self.wanted.group.node);
        self.refuse(overlay, field, kind)
    }

    /// A network with addresses of this one, on the host or in a VRF, with its holder.
    fn overlap(&self, vrf: Option<&str>, network: Prefix) -> Option<(Prefix, &ObjectRef)> {
        let of_segments = self.of_segments.overlap(vrf, network);
        of_segments.or_else(|| self.of_overlays.overlap(vrf, network))
    }
}
