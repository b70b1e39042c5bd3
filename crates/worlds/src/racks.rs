//! A cluster of racks, as an operator of one would write it: an Underlay for each rack, nodes with labels, and tenants on all or some racks.

use serde_json::{Value, json};

use crate::{TCAAS, object};

const FABRIC: &str = "openpe.openperouter.github.io/v1alpha1";
/// Number of tenants; each has a VRF, two Destinations, and two Networks with an attachment each.
const TENANTS: usize = 12;

/// How the nodes of a cluster are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// By rack and number, as an operator of machines does: `dc1-r1-w01`.
    Numbered,
    /// With random letters at the end, as Cluster API does: `pool-md-0-7f9c2-k8x2b`.
    Random,
    /// By address and domain, as clouds do: `ip-10-1-0-7.eu-central-1.compute.internal`.
    Addresses,
}

impl Names {
    fn of(self, rack: usize, worker: usize) -> String {
        match self {
            Self::Numbered => format!("dc1-r{rack}-w{worker:02}"),
            Self::Random => {
                const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
                // Multiplication by a prime spreads neighbours far apart.
                let mut number = (rack * 1_000 + worker) * 7_368_787;
                let mut letters = String::new();
                for _ in 0..8 {
                    let letter = LETTERS.get(number % LETTERS.len()).copied();
                    letters.push(char::from(letter.unwrap_or(b'b')));
                    number /= LETTERS.len();
                    number += 5_303 * (rack + worker);
                }
                let (set, own) = letters.split_at(3);
                format!("kubadm-md-0-7f9c{set}-{own}")
            }
            Self::Addresses => format!(
                "ip-10-{rack}-{}-{}.eu-central-1.compute.internal",
                worker / 10,
                worker * 7 % 251
            ),
        }
    }
}

/// A cluster in racks of so many workers each; the objects by the file that they would stand in.
pub fn racks(racks: usize, workers: usize, names: Names) -> Vec<(&'static str, Vec<Value>)> {
    vec![
        ("nodes.yaml", nodes(racks, workers, names)),
        ("fabric.yaml", fabric(racks)),
        ("tenants.yaml", tenants()),
        ("services.yaml", services()),
    ]
}

/// The labels of the nodes of a rack.
fn rack_of(rack: usize) -> Value {
    json!({"topology.example.com/rack": format!("r{rack}")})
}

fn nodes(racks: usize, workers: usize, names: Names) -> Vec<Value> {
    let mut found = Vec::new();
    for rack in 1..=racks {
        for worker in 1..=workers {
            let name = names.of(rack, worker);
            let pool = if worker % 10 == 0 { "edge" } else { "compute" };
            let labels = json!({
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.example.com/rack": format!("r{rack}"),
                "node.example.com/pool": pool,
            });
            let metadata = json!({"name": name, "labels": labels});
            found.push(json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
        }
    }
    found
}

fn fabric(racks: usize) -> Vec<Value> {
    let settings = json!({
        "l2VniRange": {"first": 20_000, "last": 29_999},
        "rollout": {"maxUnavailable": "10%"},
    });
    let mut found = vec![object(
        "selvedge.dev/v1alpha1",
        "Settings",
        json!({"name": "default"}),
        settings,
    )];
    for rack in 1..=racks {
        let spec = json!({
            "nodeSelector": {"matchLabels": rack_of(rack)},
            "asn": 64_600 + rack,
            "routeridcidr": "10.255.0.0/16",
            "nics": ["eth1", "eth2"],
            "evpn": {"vtepcidr": "100.65.0.0/16"},
            "neighbors": [
                {"asn": 64_512, "address": format!("192.168.{rack}.1")},
                {"asn": 64_512, "address": format!("192.168.{rack}.2")},
            ],
        });
        let metadata = json!({"name": format!("rack-{rack}"), "namespace": "selvedge-system"});
        found.push(object(FABRIC, "Underlay", metadata, spec));
    }
    found
}

fn tenants() -> Vec<Value> {
    const NAMES: [&str; TENANTS] = [
        "billing", "charging", "metering", "mail", "portal", "sensors", "voice", "logs", "backup",
        "tracing", "storage", "video",
    ];
    let mut found = Vec::new();
    for (number, tenant) in NAMES.into_iter().enumerate() {
        let spec = json!({
            "vrf": tenant,
            "vni": 10_100 + number,
            "routeTarget": format!("64500:{}", 10_100 + number),
        });
        found.push(object(TCAAS, "VRF", json!({"name": tenant}), spec));
        for (place, what) in ["backbone", "partners"].into_iter().enumerate() {
            let metadata =
                json!({"name": format!("{tenant}-{what}"), "labels": {"tenant": tenant}});
            let prefixes = [
                format!("172.{}.{}.0/24", 16 + number, place),
                format!("2001:db8:{number}:{place}::/64"),
            ];
            let spec = json!({"vrfRef": tenant, "prefixes": prefixes});
            found.push(object(TCAAS, "Destination", metadata, spec));
        }
        for (place, what) in ["front", "back"].into_iter().enumerate() {
            let name = format!("{tenant}-{what}");
            let segment = number * 2 + place;
            let network = json!({
                "ipv4": {"cidr": format!("10.{}.0.0/20", 100 + segment)},
                "ipv6": {"cidr": format!("fd00:{segment}::/64")},
                "vlan": 200 + segment,
                "vni": 20_000 + segment,
            });
            found.push(object(TCAAS, "Network", json!({"name": name}), network));
            let mut spec = json!({
                "networkRef": name,
                "interfaceName": format!("s{}", 200 + segment),
                "mtu": 1500,
                "destinations": {"matchLabels": {"tenant": tenant}},
            });
            // The last tenants have racks and nodes of their own; on the edge, nodes have addresses.
            if number == TENANTS - 1 {
                spec["nodeSelector"] = json!({"matchLabels": {"node.example.com/pool": "edge"}});
                // Two devices of a node cannot both lead to a Destination.
                if what == "front" {
                    spec["nodeIPs"] = json!({"enabled": true});
                }
            } else if number == TENANTS - 3 && what == "back" {
                spec["nodeSelector"] = json!({"matchLabels": rack_of(2)});
            } else if number == TENANTS - 2 {
                spec["nodeSelector"] = json!({"matchLabels": rack_of(1)});
            }
            found.push(object(
                TCAAS,
                "Layer2Attachment",
                json!({"name": name}),
                spec,
            ));
        }
    }
    found
}

fn services() -> Vec<Value> {
    let mut found = Vec::new();
    for tenant in ["billing", "portal"] {
        let place = if tenant == "billing" { 0 } else { 64 };
        let network = json!({
            "ipv4": {"cidr": format!("198.51.100.{place}/26")},
            "ipv6": {"cidr": format!("2001:db8:ff:{place}::/64")},
        });
        let name = format!("{tenant}-vips");
        found.push(object(TCAAS, "Network", json!({"name": name}), network));
        let spec = json!({
            "networkRef": name, "count": 8, "poolName": name,
            "destinations": {"matchLabels": {"tenant": tenant}},
            "advertisement": {"type": "bgp"},
        });
        found.push(object(TCAAS, "Inbound", json!({"name": name}), spec));
    }
    found
}
