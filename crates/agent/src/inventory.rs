//! What the node has: its interfaces, routes and abilities, as a `NodeNetworkStatus`. Pure; [`crate::cluster`] writes it.

use std::{collections::BTreeSet, net::IpAddr};

use api::{
    meta::{Condition, ConditionStatus, Conditions},
    tcaas::{
        NodeNetworkStatusStatus,
        node_network_status::{
            Capabilities, InterfaceType, LinkState, MissingCapability, NodeInterface, NodeRoute,
        },
    },
    value::{HostCidr, Prefix, VlanId},
};
use ipnet::IpNet;
use linux::{
    Domain, HostRoute, Kind,
    netlink::{Capability, Interface, InterfaceState},
    object::TABLE_MAIN,
    owned::Owner,
};

/// How many routes are reported: an object of the API server has a limit.
const MOST_ROUTES: usize = 1000;

/// Bridges that container runtimes make for pods, which are not the node's own network.
const POD_BRIDGES: [&str; 3] = ["cni0", "docker0", "podman0"];

/// What was found out about a node.
#[derive(Clone, Debug)]
pub(crate) struct Inventory {
    /// Interfaces of both namespaces, without pods' ends.
    pub(crate) interfaces: Vec<Interface>,
    /// Routes of the host.
    pub(crate) routes: Vec<HostRoute>,
    /// What the kernel can do.
    pub(crate) kernel: Vec<Capability>,
    /// Release of the kernel.
    pub(crate) kernel_version: Option<String>,
    /// Version of FRR, or why it is not known.
    pub(crate) frr_version: Result<String, String>,
}

/// The report. `namespace` is the name of the router's.
pub(crate) fn status(inventory: &Inventory, namespace: &str) -> NodeNetworkStatusStatus {
    let mut interfaces: Vec<NodeInterface> = inventory
        .interfaces
        .iter()
        .filter(|it| is_of_node(it))
        .map(|it| interface(it, namespace))
        .collect();
    interfaces.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    let in_host: BTreeSet<String> = interfaces
        .iter()
        .filter(|it| it.namespace.is_none())
        .map(|it| it.name.clone())
        .collect();
    for interface in &mut interfaces {
        // Ends of pods are members of bridges, and left out there as well.
        interface.members.retain(|member| in_host.contains(member));
    }
    let shown =
        |route: &HostRoute| in_host.contains(&route.device) && !is_local(&route.destination);
    let ways = inventory.routes.iter().flat_map(HostRoute::apart);
    let mut routes: Vec<NodeRoute> = ways.filter(shown).map(|it| route(&it)).collect();
    let excess = routes.len().saturating_sub(MOST_ROUTES);
    routes.truncate(MOST_ROUTES);
    NodeNetworkStatusStatus {
        interfaces,
        routes,
        capabilities: Some(capabilities(inventory)),
        last_updated: None,
        conditions: Conditions(vec![ready(excess)]),
    }
}

/// Links that the kernel makes with the module of a tunnel; they say nothing about the node as long as they are down.
const FALLBACK_TUNNELS: [&str; 9] = [
    "erspan0", "gre0", "gretap0", "ip6_vti0", "ip6gre0", "ip6tnl0", "ip_vti0", "sit0", "tunl0",
];

/// The host's own interfaces, and uplinks that the router has. What Selvedge made in the router follows from the config.
fn is_of_node(interface: &Interface) -> bool {
    match interface.id.domain {
        Domain::Host => {
            let name = interface.id.name.as_str();
            let is_unused =
                FALLBACK_TUNNELS.contains(&name) && interface.state == InterfaceState::Down;
            !is_unused && !POD_BRIDGES.contains(&name)
        }
        Domain::Router => interface.owner == Owner::Moved,
    }
}

fn interface(seen: &Interface, namespace: &str) -> NodeInterface {
    let (parent, vlan_id) = match &seen.kind {
        Kind::Vlan { parent, id } => (parent.clone(), VlanId::try_from(i64::from(*id)).ok()),
        _ => (None, None),
    };
    let kind = interface_type(&seen.kind);
    // A VRF has members, too, but is made of routes.
    let has_members = matches!(kind, InterfaceType::Bond | InterfaceType::Bridge);
    let members = seen.members.iter().filter(|_| has_members);
    let addresses = seen.addresses.iter().filter(|it| !is_local(it));
    NodeInterface {
        name: seen.id.name.clone(),
        namespace: (seen.id.domain == Domain::Router).then(|| namespace.to_owned()),
        mac: seen.mac,
        mtu: Some(seen.mtu),
        state: match seen.state {
            InterfaceState::Up => LinkState::Up,
            InterfaceState::Down => LinkState::Down,
            InterfaceState::Unknown => LinkState::Unknown,
        },
        kind: Some(kind),
        members: members.cloned().collect(),
        parent,
        vlan_id,
        addresses: addresses.map(|address| HostCidr::new(*address)).collect(),
    }
}

fn interface_type(kind: &Kind) -> InterfaceType {
    match kind {
        Kind::Loopback => InterfaceType::Loopback,
        Kind::Vrf { .. } => InterfaceType::Vrf,
        Kind::Bridge => InterfaceType::Bridge,
        Kind::Vxlan { .. } => InterfaceType::Vxlan,
        Kind::Vlan { .. } => InterfaceType::Vlan,
        Kind::Veth { .. } => InterfaceType::Veth,
        Kind::Dummy => InterfaceType::Dummy,
        Kind::Gre(_) => InterfaceType::Tunnel,
        Kind::Other(word) => match word.as_str() {
            "bond" | "team" => InterfaceType::Bond,
            "bridge" => InterfaceType::Bridge,
            "vxlan" => InterfaceType::Vxlan,
            "ipip" | "ip6tnl" | "sit" | "gre" | "gretap" | "ip6gre" | "ip6gretap" | "vti"
            | "geneve" | "wireguard" => InterfaceType::Tunnel,
            // A link without a kind of its own is a device of a driver.
            "ether" | "infiniband" => InterfaceType::Physical,
            _ => InterfaceType::Virtual,
        },
    }
}

fn route(route: &HostRoute) -> NodeRoute {
    NodeRoute {
        destination: Prefix::of(route.destination),
        gateway: route.gateway,
        interface: route.device.clone(),
        table: Some(match route.table {
            TABLE_MAIN => "main".to_owned(),
            253 => "default".to_owned(),
            number => number.to_string(),
        }),
    }
}

/// Whether something is of its link alone.
fn is_local(net: &IpNet) -> bool {
    match net.addr() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
    }
}

fn capabilities(inventory: &Inventory) -> Capabilities {
    let present = inventory.kernel.iter().filter(|it| it.missing.is_none());
    let mut missing: Vec<MissingCapability> = inventory
        .kernel
        .iter()
        .filter_map(|capability| {
            Some(MissingCapability {
                name: capability.name.to_owned(),
                message: capability.missing.clone()?,
            })
        })
        .collect();
    missing.extend(inventory.frr_version.as_ref().err().map(|why| {
        let (name, message) = ("frr".to_owned(), why.clone());
        MissingCapability { name, message }
    }));
    Capabilities {
        kernel_version: inventory.kernel_version.clone(),
        frr_version: inventory.frr_version.as_ref().ok().cloned(),
        kernel: present.map(|it| it.name.to_owned()).collect(),
        missing,
    }
}

fn ready(excess: usize) -> Condition {
    let message = match excess {
        0 => "Agent reported network status".to_owned(),
        excess => format!("Agent reported network status; {excess} more routes are left out"),
    };
    Condition {
        kind: "Ready".to_owned(),
        status: ConditionStatus::True,
        observed_generation: None,
        last_transition_time: None,
        reason: "Reported".to_owned(),
        message,
    }
}

#[cfg(test)]
mod tests {
    use linux::LinkId;
    use serde_json::json;

    use super::*;

    fn seen(id: LinkId, kind: Kind, owner: Owner) -> Interface {
        Interface {
            id,
            owner,
            kind,
            mac: None,
            mtu: 9000,
            state: InterfaceState::Up,
            master: None,
            members: BTreeSet::new(),
            addresses: BTreeSet::new(),
        }
    }

    fn to(destination: &str, device: &str, gateway: Option<&str>) -> HostRoute {
        HostRoute {
            gateway: gateway.map(|gateway| gateway.parse().unwrap()),
            destination: destination.parse().unwrap(),
            device: device.to_owned(),
            table: 254,
            metric: 0,
            protocol: 4,
            source: None,
            on_link: false,
            mtu: None,
            weight: 0,
            more: Vec::new(),
        }
    }

    #[test]
    fn a_report_has_the_shape_of_the_source_and_no_pods() {
        let ether = || Kind::Other("ether".to_owned());
        let mut bond = seen(
            LinkId::host("bond0"),
            Kind::Other("bond".to_owned()),
            Owner::Foreign,
        );
        bond.members = ["ens5", "ens6", "gone"].map(str::to_owned).into();
        bond.addresses = ["10.0.0.1/24", "fe80::1/64"]
            .map(|text| text.parse().unwrap())
            .into();
        let vlan = Kind::Vlan {
            parent: Some("bond0".to_owned()),
            id: 234,
        };
        let inventory = Inventory {
            interfaces: vec![
                seen(LinkId::router("eth9"), ether(), Owner::Moved),
                seen(LinkId::router("vx.100"), Kind::Bridge, Owner::Ours),
                seen(LinkId::host("vlan.234"), vlan, Owner::Ours),
                bond,
                seen(LinkId::host("ens5"), ether(), Owner::Foreign),
                seen(LinkId::host("ens6"), ether(), Owner::Foreign),
                seen(LinkId::host("cni0"), Kind::Bridge, Owner::Foreign),
                Interface {
                    state: InterfaceState::Down,
                    ..seen(
                        LinkId::host("gre0"),
                        Kind::Other("gre".to_owned()),
                        Owner::Foreign,
                    )
                },
            ],
            routes: vec![
                to("0.0.0.0/0", "bond0", Some("10.0.0.254")),
                to("fe80::/64", "bond0", None),
                to("10.244.0.7/32", "cali12345", None),
            ],
            kernel: vec![
                Capability {
                    name: "vrf",
                    missing: None,
                },
                Capability {
                    name: "flower",
                    missing: Some("No such file or directory".to_owned()),
                },
            ],
            kernel_version: Some("6.12.41".to_owned()),
            frr_version: Ok("10.3".to_owned()),
        };
        let status = serde_json::to_value(status(&inventory, "selvedge")).unwrap();
        let physical =
            |name: &str| json!({"name": name, "mtu": 9000, "state": "up", "type": "physical"});
        assert_eq!(
            status["interfaces"],
            json!([
                {"name": "bond0", "mtu": 9000, "state": "up", "type": "bond", "members": ["ens5", "ens6"],
                 "addresses": ["10.0.0.1/24"]},
                physical("ens5"),
                physical("ens6"),
                {"name": "vlan.234", "mtu": 9000, "state": "up", "type": "vlan", "parent": "bond0", "vlanID": 234},
                {"name": "eth9", "namespace": "selvedge", "mtu": 9000, "state": "up", "type": "physical"},
            ])
        );
        assert_eq!(
            status["routes"],
            json!([{"destination": "0.0.0.0/0", "gateway": "10.0.0.254", "interface": "bond0", "table": "main"}])
        );
        assert_eq!(
            status["capabilities"],
            json!({"kernelVersion": "6.12.41", "frrVersion": "10.3", "kernel": ["vrf"],
                   "missing": [{"name": "flower", "message": "No such file or directory"}]})
        );
    }

    #[test]
    fn a_node_with_many_routes_reports_some_and_says_so() {
        let interfaces = vec![seen(
            LinkId::host("eth0"),
            Kind::Other("ether".to_owned()),
            Owner::Foreign,
        )];
        let routes =
            (0..1200_u32).map(|i| to(&format!("10.{}.{}.0/24", i / 256, i % 256), "eth0", None));
        let inventory = Inventory {
            interfaces,
            routes: routes.collect(),
            kernel: Vec::new(),
            kernel_version: None,
            frr_version: Err("FRR is not installed".to_owned()),
        };
        let status = status(&inventory, "selvedge");
        assert_eq!(status.routes.len(), MOST_ROUTES);
        let message = &status.conditions.0[0].message;
        assert!(message.contains("200 more routes"), "{message}");
        let missing = &status.capabilities.unwrap().missing;
        assert_eq!(missing[0].name, "frr");
    }
}
