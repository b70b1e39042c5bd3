//! Ring 2: addresses, node IPs and VNIs over a long time, with statuses and configs carried from each compile to the next.

use std::net::IpAddr;

use super::*;

/// A change: the number of an entry, and its new value.
#[derive(Clone, Debug)]
enum Change {
    /// An Inbound wants so many addresses; none means that it goes.
    Inbound(u8, u32),
    /// An Outbound, in the same way.
    Outbound(u8, u32),
    /// An attachment, with its Network, which has its VNI from the range and gives nodes addresses, comes or goes.
    Attachment(u8, bool),
    /// A node comes or goes.
    Node(u8, bool),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0_u8..6, 0_u32..6).prop_map(|(one, count)| Change::Inbound(one, count)),
        2 => (0_u8..1, 0_u32..4).prop_map(|(one, count)| Change::Outbound(one, count)),
        2 => (0_u8..5, any::<bool>()).prop_map(|(one, here)| Change::Attachment(one, here)),
        2 => (0_u8..6, any::<bool>()).prop_map(|(one, here)| Change::Node(one, here)),
    ]
}

fn named(kind: &str, number: u8, spec: Value) -> Value {
    object(
        TCAAS,
        kind,
        json!({"name": format!("{}{number}", kind.to_lowercase())}),
        spec,
    )
}

impl Change {
    /// The objects that are applied, and those that go.
    fn objects(&self) -> (Vec<Value>, bool) {
        let destinations = json!({"matchLabels": {"zone": "z1"}});
        match *self {
            Self::Inbound(one, count) => {
                let spec = json!({"networkRef": "shared", "count": count.max(1), "destinations": destinations});
                (vec![named("Inbound", one, spec)], count > 0)
            }
            Self::Outbound(one, count) => {
                let spec = json!({"networkRef": "shared", "count": count.max(1), "destinations": destinations});
                (vec![named("Outbound", one, spec)], count > 0)
            }
            Self::Attachment(one, here) => {
                let network = json!({"ipv4": {"cidr": format!("10.9.{one}.0/29")}, "ipv6": {"cidr": format!("fd00:{one}::/64")}, "vlan": 100 + u16::from(one)});
                let attachment = json!({
                    "networkRef": format!("network{one}"), "interfaceName": format!("i{one}"), "destinations": destinations,
                    "nodeIPs": {"enabled": true},
                });
                (
                    vec![
                        named("Network", one, network),
                        named("Layer2Attachment", one, attachment),
                    ],
                    here,
                )
            }
            Self::Node(one, here) => {
                let metadata = json!({"name": format!("n{one}")});
                (
                    vec![json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata})],
                    here,
                )
            }
        }
    }
}

/// What never changes.
fn ground() -> Vec<Value> {
    let underlay = json!({
        "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/28"},
        "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
    });
    let settings = json!({"l2VniRange": {"first": 200, "last": 203}});
    vec![
        object(
            "openpe.openperouter.github.io/v1alpha1",
            "Underlay",
            json!({"name": "u", "namespace": "default"}),
            underlay,
        ),
        object(
            "selvedge.dev/v1alpha1",
            "Settings",
            json!({"name": "default"}),
            settings,
        ),
        object(
            TCAAS,
            "VRF",
            json!({"name": "v"}),
            json!({"vrf": "v1", "vni": 1, "routeTarget": "1:1"}),
        ),
        object(
            TCAAS,
            "Destination",
            json!({"name": "d", "labels": {"zone": "z1"}}),
            json!({"vrfRef": "v", "prefixes": ["192.0.2.0/24"]}),
        ),
        object(
            TCAAS,
            "Network",
            json!({"name": "shared"}),
            json!({"ipv4": {"cidr": "10.8.0.0/28"}}),
        ),
    ]
}

/// Who has what: services and nodes their addresses, Networks their VNI.
type Holdings = BTreeMap<String, BTreeSet<String>>;

fn holdings(compilation: &Compilation) -> Holdings {
    let mut all = Holdings::new();
    for (subject, service) in services_of(compilation) {
        let own = lower::plain(&service.addresses).map(|one: IpAddr| format!("shared {one}"));
        all.insert(subject.to_string(), own.collect());
    }
    for (subject, nodes) in &compilation.node_addresses {
        for (node, own) in &**nodes {
            let own = own.iter().map(|one| format!("{subject} {one}"));
            all.insert(format!("{subject} on {node}"), own.collect());
        }
    }
    for (key, vni) in compilation.network_vnis.iter() {
        all.insert(
            format!("VNI of {key:?}"),
            [format!("VNI {}", vni.get())].into(),
        );
    }
    all
}

/// The world as the API server has it, by kind and name.
type Store = BTreeMap<(String, String), Value>;

fn name(document: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&document["kind"]), text(&document["metadata"]["name"]))
}

/// Publishes and reports what was compiled, as the operator and the nodes do.
fn settle(store: &mut Store, compiler: &mut Compiler) -> Compilation {
    let compilation = compiler.compile().1.clone();
    let statuses = compiler.statuses().clone();
    for (subject, status) in &statuses {
        let key = (subject.kind.to_string(), subject.key.name.to_string());
        if let Some(document) = store.get_mut(&key) {
            document["status"] = status.to_value();
            compiler.insert(document);
        }
    }
    for document in told(&compilation) {
        compiler.insert(&document);
        store.insert(name(&document), document);
    }
    compilation
}

proptest! {
    #![proptest_config(laws(12))]

    /// No two holders have the same; a holder that stays keeps what it still requests; a request for a free address is served; and when all have
    /// gone, all of it is there for the next.
    #[test]
    fn over_a_long_time_nothing_is_given_twice_lost_or_moved(changes in prop::collection::vec(change(), 80..120)) {
        let (mut store, mut compiler) = (Store::new(), Compiler::default());
        for document in ground() {
            compiler.insert(&document);
            store.insert(name(&document), document);
        }
        let mut before = Holdings::new();
        for change in &changes {
            let (documents, stay) = change.objects();
            for mut document in documents {
                let key = name(&document);
                if let Some(there) = store.get(&key).filter(|_| stay) {
                    document["status"] = there["status"].clone();
                }
                if stay {
                    compiler.insert(&document);
                    store.insert(key, document);
                } else if store.remove(&key).is_some()
                    && let Insertion::Object(gone) = Snapshot::default().insert(&document)
                {
                    compiler.remove(&gone);
                    if key.0 == "Node" {
                        compiler.remove(&ObjectRef::named(Kind::NodeNetworkConfig, &key.1));
                        store.remove(&("NodeNetworkConfig".to_owned(), key.1));
                    }
                }
            }
            let configs = compiler.snapshot().node_network_configs.values();
            let told = configs.flat_map(|config| config.spec.layer2s.values().map(|one| one.vni.get()));
            let told: BTreeSet<String> = told.map(|vni| format!("VNI {vni}")).collect();
            let now = holdings(&settle(&mut store, &mut compiler));
            let mut holders = BTreeMap::new();
            for (holder, own) in &now {
                for one in own {
                    prop_assert_eq!(holders.insert(one, holder), None, "{} after {:?}", one, change);
                }
            }
            // A VNI that nodes still use is allocated to no other Network.
            let had: BTreeMap<&String, &String> = before.iter().flat_map(|(holder, own)| own.iter().map(move |one| (one, holder))).collect();
            for (one, holder) in holders.into_iter().filter(|(one, _)| told.contains(*one)) {
                prop_assert!(had.get(one).is_none_or(|had| *had == holder), "{} went to {} after {:?}", one, holder, change);
            }
            for (holder, had) in &before {
                if let Some(has) = now.get(holder) {
                    let fewer = had.len().min(has.len());
                    prop_assert!(had.intersection(has).count() == fewer, "{} moved from {:?} to {:?} after {:?}", holder, had, has, change);
                }
            }
            before = now;
        }
        // All are deleted, twice: the allocations of the last configs of nodes are released as well.
        let gone: Vec<Value> = store.values().filter(|one| ["Inbound", "Outbound", "Layer2Attachment"].iter().any(|kind| one["kind"] == *kind)).cloned().collect();
        for document in gone {
            store.remove(&name(&document));
            if let Insertion::Object(gone) = Snapshot::default().insert(&document) {
                compiler.remove(&gone);
            }
        }
        settle(&mut store, &mut compiler);
        let all = named("Inbound", 9, json!({"networkRef": "shared", "count": 14, "destinations": {"matchLabels": {"zone": "z1"}}}));
        compiler.insert(&all);
        store.insert(name(&all), all);
        let now = holdings(&settle(&mut store, &mut compiler));
        prop_assert_eq!(now["Inbound inbound9"].len(), 14, "{:?}", now);
    }
}
