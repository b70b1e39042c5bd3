//! Ring 2: compiling again and again is compiling everything each time, whatever changes in between.

use proptest::sample::Index;
use worlds::varied;

use super::*;

/// A change of a cluster.
#[derive(Clone, Debug)]
enum Step {
    /// An object becomes what it is in another world.
    Put(Index),
    /// An object goes.
    Remove(Index),
    /// What was compiled is published: generated objects, configs of nodes, statuses.
    Publish,
    /// The statuses of objects are lost.
    Forget,
    /// A node says which devices it has.
    Report(u8, bool),
    /// Nodes report that they have applied their config, or have not.
    Answer(bool),
    /// The revision is stored.
    Store,
}

/// Steps, and whether a compile follows each.
fn steps() -> impl Strategy<Value = Vec<(Step, bool)>> {
    let step = prop_oneof![
        8 => any::<Index>().prop_map(Step::Put),
        4 => any::<Index>().prop_map(Step::Remove),
        3 => Just(Step::Publish),
        1 => Just(Step::Forget),
        1 => (0_u8..5, any::<bool>()).prop_map(|(node, has)| Step::Report(node, has)),
        1 => any::<bool>().prop_map(Step::Answer),
        1 => Just(Step::Store),
    ];
    prop::collection::vec((step, prop::bool::weighted(0.8)), 1..12)
}

/// The objects of a cluster, as they were written.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) compiler: Compiler,
    documents: BTreeMap<ObjectRef, Value>,
}

impl Cluster {
    pub(super) fn put(&mut self, document: &Value) {
        if let Insertion::Object(subject) = self.compiler.insert(document) {
            self.documents.insert(subject, document.clone());
        }
    }

    pub(super) fn remove(&mut self, subject: &ObjectRef) {
        self.compiler.remove(subject);
        self.documents.remove(subject);
    }

    pub(super) fn publish(&mut self) {
        let statuses = self.compiler.statuses().clone();
        let (_, compilation) = self.compiler.compile();
        let made: Vec<Value> = [told(compilation), generated(compilation)].concat();
        let is_ours = |subject: &&ObjectRef| {
            let document = &self.documents[*subject];
            let is_owned = document["metadata"].get("ownerReferences").is_some();
            subject.kind == Kind::NodeNetworkConfig || is_owned
        };
        let old: Vec<ObjectRef> = self.documents.keys().filter(is_ours).cloned().collect();
        for subject in old {
            self.remove(&subject);
        }
        for document in made {
            self.put(&document);
        }
        for (subject, status) in statuses {
            if let Some(mut document) = self.documents.get(&subject).cloned() {
                document["status"] = status.to_value();
                self.put(&document);
            }
        }
    }

    fn forget(&mut self) {
        for mut document in self.documents.clone().into_values() {
            if let Some(fields) = document.as_object_mut() {
                fields.remove("status");
            }
            self.put(&document);
        }
    }

    pub(super) fn answer(&mut self, have: bool) {
        let configs = self.documents.iter();
        let configs = configs.filter(|(subject, _)| subject.kind == Kind::NodeNetworkConfig);
        for mut document in configs.map(|(_, one)| one.clone()).collect::<Vec<_>>() {
            let revision = document["spec"]["revision"].clone();
            let status = if have { "provisioned" } else { "invalid" };
            document["status"] = json!({"configStatus": status, "observedRevision": revision});
            self.put(&document);
        }
    }

    /// The object of a document as it is now, with its status.
    pub(super) fn document_like(&self, document: &Value) -> Option<Value> {
        let Insertion::Object(subject) = Snapshot::default().insert(document) else {
            return None;
        };
        self.documents.get(&subject).cloned()
    }

    /// What the author of an object has done wrong.
    pub(super) fn mistakes(&mut self, subject: &ObjectRef) -> Vec<Problem> {
        let (_, compilation) = self.compiler.compile();
        let problems = compilation.problems.iter();
        let mistakes = problems.filter(|one| one.subject == *subject && one.kind.is_mistake());
        mistakes.cloned().collect()
    }

    pub(super) fn store(&mut self) {
        let (_, compilation) = self.compiler.compile();
        let spec = serde_json::to_value(compilation.revision.spec(&compilation.objects))
            .expect("a spec is JSON");
        let name = revision::object_name(&compilation.revision.fingerprint);
        let metadata = json!({"name": name, "creationTimestamp": "2026-02-01T00:00:00Z"});
        self.put(&object(TCAAS, "NetworkConfigRevision", metadata, spec));
    }

    fn take(&mut self, step: &Step, other: &[Value]) {
        match step {
            Step::Put(one) if !other.is_empty() => self.put(one.get(other)),
            Step::Remove(one) if !self.documents.is_empty() => {
                let subjects: Vec<ObjectRef> = self.documents.keys().cloned().collect();
                self.remove(one.get(&subjects));
            }
            Step::Put(_) | Step::Remove(_) => {}
            Step::Publish => self.publish(),
            Step::Forget => self.forget(),
            Step::Report(node, has) => {
                let device = if *has { "bond0" } else { "eth7" };
                let status = json!({"interfaces": [{"name": device}]});
                let mut report = object(
                    TCAAS,
                    "NodeNetworkStatus",
                    json!({"name": format!("n{node}")}),
                    json!({}),
                );
                report["status"] = status;
                self.put(&report);
            }
            Step::Answer(have) => self.answer(*have),
            Step::Store => self.store(),
        }
    }
}

proptest! {
    #![proptest_config(laws(192))]

    #[test]
    fn compiling_after_a_change_is_compiling_everything(world in varied(), other in varied(), steps in steps()) {
        let mut cluster = Cluster::default();
        for document in &world {
            cluster.put(document);
        }
        cluster.compiler.compile();
        for (step, compiles) in steps {
            cluster.take(&step, &other);
            if compiles {
                let (snapshot, quick) = cluster.compiler.compile();
                let full = compile(snapshot);
                prop_assert_eq!(differences(&full, quick), Vec::<String>::new());
                prop_assert_eq!(&full, quick);
                let mut anew = Compiler::new(snapshot.clone());
                prop_assert_eq!(anew.writes(), cluster.compiler.writes());
                prop_assert_eq!(anew.statuses(), cluster.compiler.statuses());
            }
        }
    }
}

#[test]
fn a_node_that_answers_changes_its_progress_and_no_config() {
    let mut cluster = Cluster::default();
    let metadata = json!({"name": "n0"});
    cluster.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
    cluster.publish();
    let before = cluster.compiler.compile().1.nodes.clone();
    assert_eq!(
        cluster.compiler.progress()["n0"],
        rollout::Progress::Ongoing
    );
    cluster.answer(true);
    let after = &cluster.compiler.compile().1.nodes;
    assert!(
        Arc::ptr_eq(&before["n0"], &after["n0"]),
        "the config is not made again"
    );
    assert_eq!(cluster.compiler.progress()["n0"], rollout::Progress::Ready);
}

#[test]
fn a_document_that_says_the_same_is_no_change() {
    let mut cluster = Cluster::default();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n0", "resourceVersion": "1"}});
    cluster.put(&node);
    cluster.compiler.compile();
    let mut heartbeat = node;
    heartbeat["metadata"]["resourceVersion"] = json!("2");
    heartbeat["status"] = json!({"conditions": [{"type": "Ready", "lastHeartbeatTime": "now"}]});
    cluster.put(&heartbeat);
    assert!(!cluster.compiler.has_changed());
}

fn tcaas(kind: &str, name: &str, created: &str, spec: &Value) -> Value {
    let mut metadata = json!({"name": name});
    if !created.is_empty() {
        metadata["creationTimestamp"] = json!(created);
    }
    json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    })
}

/// Puts documents in one after the other; after each, everything must be as if all had come at once.
fn assert_same_as_at_once(documents: &[Value]) {
    let mut compiler = Compiler::default();
    for document in documents {
        compiler.insert(document);
        assert_is_fresh(&mut compiler);
    }
}

fn assert_is_fresh(compiler: &mut Compiler) {
    let mut fresh = Compiler::new(compiler.snapshot().clone());
    assert_eq!(compiler.compile().1, fresh.compile().1);
    assert_eq!(compiler.statuses(), fresh.statuses());
    assert_eq!(compiler.writes(), fresh.writes());
    assert_eq!(*compiler.compile().1, compile(fresh.snapshot()));
}

/// Ways in which an object that the last revision has can break.
#[test]
fn an_object_that_breaks_in_another_way_is_still_as_it_was() {
    let good = json!({"vrf": "ext", "vni": 10200, "routeTarget": "64500:10200", "seq": 10});
    let with = |field: &str, value: Value| {
        let mut spec = good.clone();
        spec[field] = value;
        spec
    };
    let nothing = json!({"matchExpressions": [{"key": "x", "operator": "In", "values": []}]});
    let specs = [
        good.clone(),
        with("nodeSelector", nothing),
        with("vni", json!(99_999_999)),
    ];
    let revision = json!({"revision": "aaaaaaaaaa", "vrf": [{"name": "ext", "spec": good}]});
    let revision = tcaas(
        "NetworkConfigRevision",
        "aaaaaaaaaa",
        "2026-03-01T00:00:00Z",
        &revision,
    );
    for created in ["2026-01-01T00:00:00Z", ""] {
        let ext = |spec| tcaas("VRFRouteConfiguration", "ext", created, spec);
        for one in &specs {
            for other in &specs {
                assert_same_as_at_once(&[revision.clone(), ext(one), ext(other), ext(one)]);
            }
        }
    }
}

/// Two nodes whose traffic is mirrored from a loopback with an address of a pool.
fn mirrored(pool: &Value) -> Vec<Value> {
    let node = |name| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    let own = |kind: &str, name: &str, spec: Value| tcaas(kind, name, "", &spec);
    let mut destination = own(
        "Destination",
        "d",
        json!({"vrfRef": "v", "prefixes": ["192.0.2.0/24"]}),
    );
    destination["metadata"]["labels"] = json!({"zone": "z"});
    let loopbacks = json!([{"name": "lo.mir", "poolRef": pool}]);
    vec![
        node("n1"),
        node("n3"),
        json!({
            "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay",
            "metadata": {"name": "u", "namespace": "default"},
            "spec": {
                "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": "100.65.0.0/24"},
                "neighbors": [{"asn": 64512, "address": "192.168.11.2"}],
            },
        }),
        own(
            "VRF",
            "v",
            json!({"vrf": "v", "vni": 100, "routeTarget": "1:100"}),
        ),
        destination,
        own(
            "VRF",
            "m",
            json!({"vrf": "mirror", "vni": 99001, "routeTarget": "1:99001", "loopbacks": loopbacks}),
        ),
        own(
            "Network",
            "n",
            json!({"ipv4": {"cidr": "203.0.113.0/24"}, "vlan": 100, "vni": 10101}),
        ),
        own(
            "Layer2Attachment",
            "a",
            json!({"networkRef": "n", "destinations": {"matchLabels": {"zone": "z"}}}),
        ),
        own(
            "Collector",
            "c",
            json!({"address": "192.0.2.100", "key": 1, "mirrorVRF": {"name": "m"}, "protocol": "l3gre"}),
        ),
        own(
            "TrafficMirror",
            "t",
            json!({"collector": "c", "direction": "ingress", "source": {"kind": "Layer2Attachment", "name": "a"}}),
        ),
    ]
}

#[test]
fn a_claim_that_two_nodes_have_stays_with_the_other() {
    let pool = json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p"});
    let mut documents = mirrored(&pool);
    documents.push(json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim",
        "metadata": {
            "name": "mirror-lo.mir-n3", "namespace": "selvedge-system",
            "annotations": {"selvedge.dev/generated-from": "NodeNetworkConfig/n1"},
        },
        "spec": {"poolRef": pool},
    }));
    let mut compiler = Compiler::default();
    let mut claim = None;
    for document in &documents {
        if let Insertion::Object(subject) = compiler.insert(document) {
            claim = Some(subject);
        }
        assert_is_fresh(&mut compiler);
    }
    let claim = claim.expect("the claim is an object of ours");
    compiler.remove(&claim);
    assert_is_fresh(&mut compiler);
    let names: Vec<&String> = compiler
        .compile()
        .1
        .platform
        .keys()
        .map(|one| &one.3)
        .collect();
    assert_eq!(names, ["mirror-lo.mir-n1", "mirror-lo.mir-n3"]);
}

#[test]
fn an_object_that_two_layers_of_intents_would_have_is_that_of_the_lower() {
    let pool = json!({"apiGroup": "ipam.cluster.x-k8s.io", "kind": "InClusterIPPool", "name": "p"});
    let mut documents = mirrored(&pool);
    let spec = json!({"vrf": "mirror", "vni": 99001, "routeTarget": "1:99001", "seq": 1000});
    let mut stored = tcaas("VRFRouteConfiguration", "collector-c-mirror", "", &spec);
    stored["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "network.t-caas.telekom.com/v1alpha1", "kind": "TrafficMirror",
        "name": "e", "controller": true, "uid": "u",
    }]);
    let broken = json!({"collector": "c", "direction": "ingress", "source": {"kind": "Outbound", "name": "gone"}});
    documents.extend([tcaas("TrafficMirror", "e", "", &broken), stored]);
    let mut compiler = Compiler::default();
    for document in &documents {
        compiler.insert(document);
        assert_is_fresh(&mut compiler);
    }
    let (_, compilation) = compiler.compile();
    let name = "collector-c-mirror";
    let object = compilation
        .objects
        .any(Kind::VrfRouteConfiguration, name)
        .map(|one| one.source().to_string());
    assert_eq!(object.as_deref(), Some("Collector c"));
}

#[test]
fn an_object_that_cannot_be_read_keeps_its_age() {
    let spec = json!({"vrf": "ext", "vni": 10200, "routeTarget": "64500:10200", "seq": 10});
    let revision = json!({"revision": "aaaaaaaaaa", "vrf": [{"name": "ext", "spec": spec}]});
    let created = "2026-03-01T00:00:00Z";
    let mut broken = tcaas(
        "VRFRouteConfiguration",
        "ext",
        "2026-01-01T00:00:00Z",
        &spec,
    );
    broken["spec"]["vni"] = json!("none");
    let mut compiler = Compiler::default();
    compiler.insert(&tcaas(
        "NetworkConfigRevision",
        "aaaaaaaaaa",
        created,
        &revision,
    ));
    compiler.insert(&broken);
    assert_is_fresh(&mut compiler);
    let (_, compilation) = compiler.compile();
    let kept = compilation
        .objects
        .get::<api::tcaas::VrfRouteConfigurationSpec>("ext");
    let created = kept.and_then(|kept| kept.created.as_deref());
    assert_eq!(created, Some("2026-01-01T00:00:00Z"));
}

#[test]
fn an_underlay_that_is_compiled_as_it_was_is_no_second_one_beside_itself() {
    let underlay = |name: &str, created: &str, pool: &str| {
        let spec = json!({
            "asn": 64514, "nics": ["eth1"], "evpn": {"vtepcidr": pool},
            "neighbors": [{"asn": 64512, "address": "192.0.2.1"}],
        });
        let metadata = json!({"name": name, "namespace": "default", "creationTimestamp": created});
        let version = "openpe.openperouter.github.io/v1alpha1";
        object(version, "Underlay", metadata, spec)
    };
    let routing = json!({
        "vrf": "v9", "vni": 9, "routeTarget": "1:9", "seq": 1,
        "nodeSelector": {"matchLabels": {"group": "g0"}},
    });
    let segment = json!({
        "id": 101, "vni": 701, "mtu": 1500, "vrf": "v9", "anycastGateways": ["10.21.0.1/24"],
    });
    let mut cluster = Cluster::default();
    for (name, group) in [("n1", "g0"), ("n2", "g0"), ("n3", "g2")] {
        let metadata = json!({"name": name, "labels": {"group": group}});
        cluster.put(&json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}));
    }
    // It has addresses for two of the nodes.
    cluster.put(&underlay("u0", "2026-01-02T00:00:00Z", "100.66.0.0/30"));
    let name = json!({"name": "segment"});
    cluster.put(&object(TCAAS, "Layer2NetworkConfiguration", name, segment));
    let name = json!({"name": "routing"});
    cluster.put(&object(TCAAS, "VRFRouteConfiguration", name, routing));
    cluster.compiler.compile();
    cluster.put(&underlay("u1", "2026-01-02T00:00:00Z", "100.65.0.0/29"));
    cluster.publish();
    cluster.store();
    // This would stop the segment on a node without the VRF.
    let mut edited = underlay("u0", "2026-01-03T00:00:00Z", "100.65.0.0/29");
    edited["spec"]["nodeSelector"] = json!({"matchLabels": {"group": "g2"}});
    cluster.put(&edited);
    let (snapshot, quick) = cluster.compiler.compile();
    let differences = differences(&compile(snapshot), quick);
    assert_eq!(differences, Vec::<String>::new());
}
