//! Each node's place in the fabric: its one Underlay, its VTEP and its router id.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use api::{
    meta::Labels,
    openperouter::{
        Bfd as WantedBfd, Contradiction, Neighbor as WantedNeighbor, NeighborFamily, UnderlaySpec,
        VtepSource,
    },
    tcaas::node_network_config::{
        AddressFamilyName, Bfd, GracefulRestart, Neighbor, RemoteAs, Trunk, Underlay,
    },
    value::{HostCidr, MacAddress, Mtu, Peer, PeerType, Prefix, RemoteAs as WantedAs},
};
use sha2::{Digest, Sha256};

use crate::{
    allocate::Pool,
    names,
    problem::{self, Problem},
    revision::Content,
    select::selects,
    snapshot::{Kind, ObjectRef, Snapshot, by_age},
};

/// MTU of the trunk: as large as a segment can be.
const TRUNK_MTU: Mtu = Mtu::MAX;

/// Each node's place in the fabric.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// The Underlay of each node that has one, with addresses of its own.
    pub(super) underlays: BTreeMap<String, Arc<Underlay>>,
    /// Why a node has none.
    pub(super) problems: Vec<Problem>,
}

impl Places {
    /// Whether a node takes part in the overlay.
    pub(super) fn has_vtep(&self, node: &str) -> bool {
        let underlay = self.underlays.get(node);
        underlay.is_some_and(|underlay| underlay.vtep.is_some())
    }

    /// Gives every node its Underlay.
    pub(super) fn assign(content: &Content, snapshot: &Snapshot) -> Self {
        let mut problems = Vec::new();
        let underlays = assign(content, snapshot, &mut problems);
        Self {
            underlays,
            problems,
        }
    }
}

fn assign(
    content: &Content,
    snapshot: &Snapshot,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, Arc<Underlay>> {
    let usable: Vec<Plan<'_>> = content
        .underlays
        .iter()
        .filter_map(|(subject, _, spec)| Plan::check(subject, spec, problems))
        .collect();
    let mut chosen: Vec<(&str, &Plan<'_>)> = Vec::new();
    for (key, node) in by_age(&snapshot.nodes) {
        let mut plans = usable
            .iter()
            .filter(|plan| selects(plan.spec.node_selector.as_ref(), &node.meta.labels));
        let Some(plan) = plans.next() else { continue };
        for other in plans {
            let kind = problem::Kind::SecondUnderlay {
                node: key.name.clone(),
                by: plan.subject.clone(),
            };
            problems.push(Problem::new(
                other.subject.clone(),
                "spec.nodeSelector",
                kind,
            ));
        }
        chosen.push((key.name.as_str(), plan));
    }
    let mut addresses = Addresses::recall(snapshot, &chosen);
    let mut assigned = BTreeMap::new();
    for (node, plan) in chosen {
        if let Some(underlay) = plan.for_node(content, node, &mut addresses, problems) {
            assigned.insert(node.to_owned(), Arc::new(underlay));
        }
    }
    assigned
}

/// The Underlay of a node with these labels: the oldest that makes sense and selects it.
pub fn underlay_of<'a>(
    snapshot: &'a Snapshot,
    labels: &Labels,
) -> Option<(ObjectRef, &'a UnderlaySpec)> {
    let mut of_node = by_age(&snapshot.underlays)
        .into_iter()
        .map(|(key, object)| {
            let (kind, key) = (Kind::Underlay, key.clone());
            (ObjectRef { kind, key }, &object.spec)
        });
    of_node.find(|(subject, spec)| {
        let makes_sense = Plan::check(subject, spec, &mut Vec::new()).is_some();
        makes_sense && selects(spec.node_selector.as_ref(), labels)
    })
}

/// An Underlay that makes sense.
struct Plan<'a> {
    subject: &'a ObjectRef,
    spec: &'a UnderlaySpec,
    vteps: Option<Prefix>,
    neighbors: Vec<Neighbor>,
}

impl<'a> Plan<'a> {
    fn check(
        subject: &'a ObjectRef,
        spec: &'a UnderlaySpec,
        problems: &mut Vec<Problem>,
    ) -> Option<Self> {
        let mut report =
            |field: &str, kind| problems.push(Problem::new(subject.clone(), field, kind));
        let broken = |error: Contradiction| problem::Kind::RuleBroken {
            message: error.to_string(),
        };
        if let Some(Err(error)) = spec
            .node_selector
            .as_ref()
            .map(api::meta::LabelSelector::check)
        {
            report("spec.nodeSelector", problem::Kind::InvalidSelector(error));
            return None;
        }
        if spec.isis.is_some() {
            report("spec.isis", problem::Kind::NotCompiledYet { what: "IS-IS" });
        }
        if spec.srv6.is_some() {
            report("spec.srv6", problem::Kind::NotCompiledYet { what: "SRv6" });
        }
        let vteps = match spec.vtep() {
            Ok(Some(VtepSource::Pools(pools))) => pools.first().copied(),
            Ok(Some(VtepSource::Device(_))) => {
                let what = "a VTEP that is an existing device's address";
                report(
                    "spec.evpn.vtepInterface",
                    problem::Kind::NotCompiledYet { what },
                );
                None
            }
            Ok(None) => None,
            Err(error) => {
                report("spec.evpn", broken(error));
                return None;
            }
        };
        let mut neighbors = Vec::new();
        for (index, wanted) in spec.neighbors.iter().enumerate() {
            let field = format!("spec.neighbors[{index}]");
            if wanted.password.is_some() || wanted.password_secret.is_some() {
                let what = "a session password";
                report(
                    &format!("{field}.password"),
                    problem::Kind::NotCompiledYet { what },
                );
            }
            match neighbor(spec, vteps, wanted) {
                Ok(neighbor) => neighbors.push(neighbor),
                Err(error) => {
                    report(&field, broken(error));
                    return None;
                }
            }
        }
        Some(Self {
            subject,
            spec,
            vteps,
            neighbors,
        })
    }

    fn router_ids(&self) -> Prefix {
        Prefix::of(self.spec.routeridcidr.net().into())
    }

    fn for_node<'n>(
        &self,
        content: &Content,
        node: &'n str,
        addresses: &mut Addresses<'n>,
        problems: &mut Vec<Problem>,
    ) -> Option<Underlay> {
        let mut give = |field: &str, pool: Prefix| {
            let given = addresses.give(pool, node);
            if given.is_none() {
                let wanted = format!("node {node:?}");
                let kind = problem::Kind::PoolExhausted {
                    pool: pool.to_string(),
                    wanted,
                };
                problems.push(Problem::new(self.subject.clone(), field, kind));
            }
            given
        };
        let IpAddr::V4(router_id) = give("spec.routeridcidr", self.router_ids())? else {
            return None;
        };
        let vtep = match self.vteps {
            Some(pool) => Some(give("spec.evpn.vtepcidr", pool)?),
            None => None,
        };
        Some(Underlay {
            namespace: names::ROUTER_NAMESPACE.to_owned(),
            asn: self.spec.asn,
            router_id,
            nics: self.spec.devices().cloned().collect(),
            vtep,
            router_mac: router_mac(vtep.unwrap_or(IpAddr::V4(router_id))),
            trunk: trunk(content),
            neighbors: self.neighbors.clone(),
            graceful_restart: self
                .spec
                .graceful_restart
                .as_ref()
                .map(|restart| GracefulRestart {
                    restart_time: restart.restart_time_seconds.get(),
                    stale_path_time: restart.stale_path_time_seconds.get(),
                }),
        })
    }
}

fn neighbor(
    spec: &UnderlaySpec,
    vteps: Option<Prefix>,
    wanted: &WantedNeighbor,
) -> Result<Neighbor, Contradiction> {
    let (address, interface) = match wanted.peer()? {
        Peer::Address(address) => (Some(address), None),
        Peer::Interface(interface) => (None, Some(interface)),
    };
    let none = RemoteAs {
        asn: None,
        external: false,
        internal: false,
    };
    let remote_as = match wanted.remote_as()? {
        WantedAs::Number(asn) => RemoteAs {
            asn: Some(asn),
            ..none
        },
        WantedAs::Type(PeerType::External) => RemoteAs {
            external: true,
            ..none
        },
        WantedAs::Type(PeerType::Internal) => RemoteAs {
            internal: true,
            ..none
        },
    };
    let timers = wanted.timers()?;
    let seconds = |seconds: u32| u16::try_from(seconds).unwrap_or(u16::MAX);
    Ok(Neighbor {
        address_families: families(vteps, address, wanted),
        address,
        interface,
        remote_as,
        port: wanted
            .port
            .and_then(api::value::Port::explicit)
            .filter(|port| *port != 179),
        keepalive_time: timers.map(|timers| seconds(timers.keepalive.get())),
        hold_time: timers.map(|timers| seconds(timers.hold.get())),
        connect_time: wanted.connect_time()?.map(|time| seconds(time.get())),
        ebgp_multi_hop: wanted.ebgp_multi_hop.unwrap_or(false),
        allow_own_as: remote_as.external || remote_as.asn.is_some_and(|asn| asn != spec.asn),
        bfd: wanted.bfd.as_ref().map(bfd).transpose()?,
        password_secret: None,
    })
}

fn bfd(wanted: &WantedBfd) -> Result<Bfd, Contradiction> {
    Ok(Bfd {
        receive_interval: wanted
            .receive_interval
            .map(|interval| interval.get().into()),
        transmit_interval: wanted
            .transmit_interval
            .map(|interval| interval.get().into()),
        detect_multiplier: wanted.detect_multiplier.map(api::value::BfdMultiplier::get),
        echo_interval: wanted.echo_interval.map(|interval| interval.get().into()),
        echo_mode: wanted.echo_mode.unwrap_or(false),
        passive_mode: wanted.passive_mode.unwrap_or(false),
        minimum_ttl: wanted.minimum_ttl()?.map(api::value::BfdTtl::get),
    })
}

/// Address families follow from the Underlay alone, so that the first overlay object resets no session.
fn families(
    vteps: Option<Prefix>,
    address: Option<IpAddr>,
    wanted: &WantedNeighbor,
) -> Vec<AddressFamilyName> {
    let chosen = |family: NeighborFamily| {
        wanted
            .address_families
            .iter()
            .any(|wanted| wanted.kind == family)
    };
    let (ipv4, ipv6, evpn) = if wanted.address_families.is_empty() {
        let vtep_is_ipv4 = vteps.map(Prefix::is_ipv4);
        let ipv4 = address.is_none_or(|address| address.is_ipv4()) || vtep_is_ipv4 == Some(true);
        let ipv6 = address.is_some_and(|address| address.is_ipv6()) || vtep_is_ipv4 == Some(false);
        (ipv4, ipv6, vteps.is_some())
    } else {
        let [ipv4, ipv6] = [NeighborFamily::Ipv4Unicast, NeighborFamily::Ipv6Unicast].map(chosen);
        (ipv4, ipv6, chosen(NeighborFamily::Evpn))
    };
    let families = [
        (ipv4, AddressFamilyName::Ipv4Unicast),
        (ipv6, AddressFamilyName::Ipv6Unicast),
        (evpn, AddressFamilyName::L2vpnEvpn),
    ];
    families
        .into_iter()
        .filter(|(active, _)| *active)
        .map(|(_, family)| family)
        .collect()
}

fn trunk(content: &Content) -> Trunk {
    let trunk = &content.settings.trunk;
    Trunk {
        host: trunk.name.clone(),
        router: trunk.name.clone(),
        mtu: TRUNK_MTU,
        host_addresses: trunk.addresses.clone(),
        router_addresses: trunk
            .addresses
            .iter()
            .filter_map(|address| other_end(*address))
            .collect(),
    }
}

/// The other address of a network of two.
fn other_end(address: HostCidr) -> Option<HostCidr> {
    let net = address.net();
    let other = net.hosts().find(|host| *host != net.addr())?;
    ipnet::IpNet::new(other, net.prefix_len())
        .ok()
        .map(HostCidr::new)
}

/// The router MAC that EVPN announces: locally administered, and different wherever the address is.
fn router_mac(address: IpAddr) -> MacAddress {
    let [a, b, c, d] = match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(address) => {
            let hash = Sha256::digest(address.octets());
            std::array::from_fn(|i| hash.get(i).copied().unwrap_or_default())
        }
    };
    MacAddress::new([0x02, 0x54, a, b, c, d])
}

/// The addresses of all pools, by node. Whoever had one keeps it.
struct Addresses<'a> {
    pools: BTreeMap<Prefix, Pool>,
    held: BTreeMap<(&'a str, Prefix), IpAddr>,
}

impl<'a> Addresses<'a> {
    /// Takes the addresses that nodes had before, so that no newcomer gets one of them: not those of a node that is gone either, or of
    /// one that has changed its Underlay, for as long as its config says them.
    fn recall(snapshot: &'a Snapshot, chosen: &[(&str, &Plan<'_>)]) -> Self {
        let mut addresses = Self {
            pools: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        let plans: BTreeMap<&str, &Plan<'_>> = chosen.iter().copied().collect();
        let mut left_behind = Vec::new();
        for (key, config) in by_age(&snapshot.node_network_configs) {
            let Some(underlay) = &config.spec.underlay else {
                continue;
            };
            let plan = plans.get(key.name.as_str());
            let router_ids = plan.map(|plan| plan.router_ids());
            let router_id = Some((router_ids, IpAddr::V4(underlay.router_id)));
            let vteps = plan.and_then(|plan| plan.vteps);
            let vtep = underlay.vtep.map(|vtep| (vteps, vtep));
            for (pool, address) in [router_id, vtep].into_iter().flatten() {
                let own = pool.filter(|pool| addresses.pool(*pool).take(address));
                if let Some(pool) = own {
                    addresses.held.insert((&key.name, pool), address);
                } else {
                    left_behind.push(address);
                }
            }
        }
        if left_behind.is_empty() {
            return addresses;
        }
        let pools = chosen.iter().map(|(_, plan)| plan);
        let pools = pools.flat_map(|plan| [Some(plan.router_ids()), plan.vteps]);
        for pool in pools.flatten().collect::<BTreeSet<Prefix>>() {
            for address in &left_behind {
                addresses.pool(pool).take(*address);
            }
        }
        addresses
    }

    fn pool(&mut self, pool: Prefix) -> &mut Pool {
        self.pools.entry(pool).or_insert_with(|| Pool::new(pool))
    }

    fn give(&mut self, pool: Prefix, node: &'a str) -> Option<IpAddr> {
        let key = (node, pool);
        if let Some(address) = self.held.get(&key) {
            return Some(*address);
        }
        let address = self.pool(pool).take_lowest()?;
        self.held.insert(key, address);
        Some(address)
    }
}
