//! Ring 6, rollouts: three agents on one fabric, each with the account of its own node, under an operator with its deployed role.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use lab::{
    control_plane::ControlPlane,
    fabric::Fabric,
    host::{Running, Signal},
    parts::{self, ClusterApiVersion, Kubernetes, Tree},
};
use serde_json::{Value, json};

use crate::{
    data::{self, text},
    ring5::programs::{NAMESPACES, Program},
    support::{
        AGENT, Daemon, IN_CLUSTER_IPAM, SELVEDGE, account_kubeconfig, apply_roles, install_crds,
        progress, without_workloads,
    },
};

/// How long a rollout over all nodes may take.
const PATIENCE: Duration = Duration::from_mins(3);
const NODES: [(&str, &str); 3] = [("n1", "leaf1"), ("n2", "leaf2"), ("n3", "leaf2")];
const CANARY: &str = "n1";
const TCAAS: &str = "network.t-caas.telekom.com/v1alpha1";

/// What the examples take for granted: the settings of the cluster, a pool, and the attachment that is mirrored.
const AROUND: &str = "
apiVersion: selvedge.dev/v1alpha1
kind: Settings
metadata: {name: default}
spec:
  bgp: {workloadAS: 64999}
  trunk: {addresses: ['2001:db8:1::193/127', '2001:db8:1::195/127']}
  health: {confirmDeadline: 15s}
  rollout: {soakTime: 0s, maxRemoval: 100%}
---
apiVersion: ipam.cluster.x-k8s.io/v1alpha2
kind: InClusterIPPool
metadata: {name: mirror-source-ips, namespace: selvedge-system}
spec: {addresses: [10.99.0.1-10.99.0.9], prefix: 24}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {name: vlan100}
spec: {vlan: 100, vni: 10101, ipv4: {cidr: 203.0.113.128/25}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: vlan100}
spec:
  networkRef: vlan100
  destinations: {matchLabels: {network.t-caas.telekom.com/zone: secure}}
  interfaceName: vlan100
";

/// A cluster of three nodes behind two leaves.
struct World {
    // The order of the fields is the order in which they end.
    agents: Vec<Running>,
    operator: Daemon,
    _account: tempfile::NamedTempFile,
    plane: ControlPlane,
    fabric: Fabric,
}

impl World {
    fn start() -> anyhow::Result<Self> {
        parts::prepare_machine(&progress)?;
        let tree = Tree::for_guests(&progress)?;
        let kubernetes = Kubernetes::prepare(&progress)?;
        let builder = Fabric::builder().leaf("leaf1", 64512).leaf("leaf2", 64513);
        let fabric = NODES
            .iter()
            .fold(builder, |builder, (node, leaf)| builder.node(node, &[leaf]))
            .start(&tree, &progress)?;
        let plane = ControlPlane::builder(&kubernetes)
            .inside(fabric.namespace(), fabric.control_plane_address())
            .start()?;
        install_crds(&plane)?;
        let programs = [
            Program::MetalLb,
            Program::Coil,
            Program::Calico,
            Program::Sriov,
            Program::Ipam(ClusterApiVersion::V1Beta2),
            Program::InClusterIpam,
        ];
        for program in programs {
            let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
            plane.kubectl(&apply, &program.definitions()?)?;
        }
        plane.kubectl(&["apply", "-f", "-"], NAMESPACES)?;
        apply_roles(&plane)?;
        let roles = without_workloads(AGENT);
        for manifests in [&roles, IN_CLUSTER_IPAM] {
            plane.kubectl(&["apply", "--server-side", "-f", "-"], manifests)?;
        }
        let established = ["wait", "--for=condition=Established", "crd", "--all"];
        plane.kubectl(&established, "")?;
        let account = account_kubeconfig(&plane, "selvedge-operator", &[])?;
        let kubeconfig = account.path().display().to_string();
        let arguments = ["operator", "--in-cluster-ipam", "--kubeconfig", &kubeconfig];
        let operator = Daemon::start(fabric.namespace(), &arguments)?;
        let mut world = Self {
            agents: Vec::new(),
            operator,
            _account: account,
            plane,
            fabric,
        };
        world.fabric.hand_in(SELVEDGE.as_ref())?;
        for (node, _) in NODES {
            let agent = world.join(node)?;
            world.agents.push(agent);
        }
        Ok(world)
    }

    /// Makes a machine of the fabric a node of the cluster. Its agent begins with the account of all agents, as in a pod.
    fn join(&self, node: &str) -> anyhow::Result<Running> {
        self.apply(&json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": {
                "kubernetes.io/hostname": node,
                "node-role.kubernetes.io/worker": "",
                "node.kubernetes.io/worker-group": "wg1",
            }},
        }))?;
        let space = self.fabric.at(node)?;
        space.script(
            "for nic in bond0 bond2; do ip link add $nic mtu 9000 type dummy && ip link set $nic up; done",
        )?;
        let bound = ["--bound-object-kind=Node", "--bound-object-name", node];
        let account = account_kubeconfig(&self.plane, "selvedge-agent", &bound)?;
        let kubeconfig = self.fabric.hand_in(account.path())?;
        let agent = ["/share/selvedge", "agent", "--own-account", "--node", node];
        Ok(space.start(&[&agent[..], &["--kubeconfig", &kubeconfig]].concat())?)
    }

    /// How a node is plugged in, by this NIC if it is given one.
    fn underlay(&self, node: &str, leaf: &str, nic: Option<&str>) -> anyhow::Result<Value> {
        let link = self.fabric.link(node, leaf)?;
        let (near, far) = link.seen_from(node).context("the link has two ends")?;
        Ok(json!({
            "apiVersion": "openpe.openperouter.github.io/v1alpha1", "kind": "Underlay",
            "metadata": {"name": node, "namespace": "default"},
            "spec": {
                "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": node}},
                "asn": 64514,
                "nics": [nic.unwrap_or(&near.interface)],
                "evpn": {"vtepcidr": "100.65.0.0/24"},
                "neighbors": [{"type": "external", "address": far.ipv4.addr(), "connectTime": "1s"}],
            },
        }))
    }

    fn apply(&self, objects: &Value) -> anyhow::Result<()> {
        let manifests = match objects {
            Value::Array(items) => json!({"apiVersion": "v1", "kind": "List", "items": items}),
            one => one.clone(),
        };
        let apply = ["apply", "--validate=strict", "-f", "-"];
        self.plane.kubectl(&apply, &manifests.to_string())?;
        Ok(())
    }

    fn get(&self, what: &[&str]) -> anyhow::Result<Value> {
        let arguments = [&["get", "--output=json"], what].concat();
        Ok(serde_json::from_str(&self.plane.kubectl(&arguments, "")?)?)
    }

    fn list(&self, what: &[&str]) -> anyhow::Result<Vec<Value>> {
        Ok(serde_json::from_value(self.get(what)?["items"].take())?)
    }

    /// The configs of all nodes, by node.
    fn configs(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let configs = self.list(&["nodenetworkconfigs"])?.into_iter();
        Ok(configs
            .map(|config| (text(&config, "/metadata/name").to_owned(), config))
            .collect())
    }

    /// What the API server has counted of writes to the specs of all nodes but the canary.
    fn generations(&self) -> anyhow::Result<BTreeMap<String, Value>> {
        let mut configs = self.configs()?;
        configs.remove(CANARY);
        anyhow::ensure!(configs.len() == NODES.len() - 1, "all nodes have a config");
        for config in configs.values_mut() {
            *config = json!([config["metadata"]["generation"], config["spec"]]);
        }
        Ok(configs)
    }

    /// The newest revision.
    fn revision(&self) -> anyhow::Result<Value> {
        let revisions = self.list(&["networkconfigrevisions"])?;
        let sequence = |one: &Value| one["status"]["sequence"].as_u64();
        let newest = revisions.into_iter().max_by_key(sequence);
        newest.context("there is no revision")
    }

    /// Waits until something is so; else says how all nodes and programs are.
    fn until<T>(
        &self,
        what: &str,
        mut probe: impl FnMut() -> anyhow::Result<Result<T, String>>,
    ) -> anyhow::Result<T> {
        let mut last = String::new();
        let found = Fabric::eventually(PATIENCE, || match probe() {
            Ok(Ok(found)) => Some(found),
            Ok(Err(not)) => {
                last = not;
                None
            }
            Err(error) => {
                last = format!("{error:#}");
                None
            }
        });
        found.with_context(|| format!("not so: {what}\n{last}\n{}", self.diagnosis()))
    }

    /// Waits until every node has confirmed what it was told, the newest revision is complete, and every object says that it is ready.
    fn converged(&self, what: &str) -> anyhow::Result<()> {
        let start = Instant::now();
        self.until(what, || {
            let configs = self.configs()?;
            let of_node = |(node, config): (&String, &Value)| {
                let (told, status) = (&config["spec"]["revision"], &config["status"]);
                let is_confirmed = status["configStatus"] == "provisioned"
                    && status["observedRevision"] == *told
                    && status["confirmedRevision"] == *told
                    && status["observedGeneration"] == config["metadata"]["generation"];
                (!is_confirmed).then(|| format!("{node}: {told} {status}"))
            };
            let mut open: Vec<String> = configs.iter().filter_map(of_node).collect();
            if configs.len() != NODES.len() {
                open.push(format!("{} nodes have a config", configs.len()));
            }
            let phase = self.revision()?["status"]["phase"].clone();
            if phase != "Complete" {
                open.push(format!("the revision is {phase}"));
            }
            open.extend(self.unready()?);
            Ok(if open.is_empty() {
                Ok(())
            } else {
                Err(open.join("\n"))
            })
        })?;
        eprintln!("{what}: {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    /// What objects say that are not ready, or have not been looked at.
    fn unready(&self) -> anyhow::Result<Vec<String>> {
        let kinds = "vrfs,networks.network.t-caas.telekom.com,destinations,layer2attachments,inbounds,outbounds,bgpneighbors,\
            podnetworks.network.t-caas.telekom.com,collectors,trafficmirrors,underlays,settings";
        let objects = self.list(&[kinds, "--all-namespaces"])?;
        let of_object = |object: &Value| {
            let ready = condition(object, "Ready");
            let is_ready = ready["status"] == "True"
                && ready["observedGeneration"] == object["metadata"]["generation"];
            (!is_ready).then(|| format!("{}: {}", data::name(object), object["status"]))
        };
        Ok(objects.iter().filter_map(of_object).collect())
    }

    /// Waits until a new revision has failed on the canary and the canary has what it had; its message.
    fn failed(&self, before: &Value) -> anyhow::Result<String> {
        let start = Instant::now();
        let good = before["spec"]["revision"].clone();
        let message = self.until("the canary has taken the change back", || {
            let revision = self.revision()?;
            let status = &revision["status"];
            if revision["metadata"]["name"] == before["metadata"]["name"]
                || status["phase"] != "Failed"
            {
                return Ok(Err(status.to_string()));
            }
            assert_eq!(status["isInvalid"], true, "{status}");
            assert_eq!(status["failedNode"], CANARY, "{status}");
            let config = &self.configs()?[CANARY];
            let is_back = config["spec"]["revision"] == good
                && config["status"]["configStatus"] == "provisioned"
                && config["status"]["confirmedRevision"] == good;
            Ok(if is_back {
                Ok(text(status, "/failedMessage").to_owned())
            } else {
                Err(config["status"].to_string())
            })
        })?;
        eprintln!("taken back: {:.1} s", start.elapsed().as_secs_f64());
        Ok(message)
    }

    fn diagnosis(&self) -> String {
        let agents = self
            .agents
            .iter()
            .map(|agent| format!("{}{}", agent.stdout(), agent.stderr()));
        let operator = self.operator.log().unwrap_or_default();
        let logs: Vec<String> = agents.chain([operator]).collect();
        logs.join("\n---\n")
    }
}

fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut own = conditions.into_iter().flatten();
    let own = own.find(|one| one["type"] == kind);
    own.cloned().unwrap_or_default()
}

/// The examples of the document on intents in one cluster: each object once, as its own section has it, with what it refers to.
fn world_of_the_examples() -> anyhow::Result<Vec<Value>> {
    let examples = data::examples()?;
    let is_plain = |file: &str| file.starts_with("000/") && !file.contains("-variant-");
    let examples = examples.iter().filter(|example| is_plain(&example.file));
    let mut objects = BTreeMap::new();
    let mut names = Vec::new();
    let mut own = Vec::new();
    for example in examples {
        names.extend(example.refers.iter());
        // Those with a status show what Selvedge writes.
        let inputs = example.objects()?.into_iter();
        own.extend(inputs.filter(|object| object["status"].is_null()));
    }
    let referred = data::referred()?.into_iter();
    let referred = referred.filter(|object| {
        text(object, "/apiVersion") == TCAAS && names.contains(&&data::name(object))
    });
    let around: Vec<Value> = serde_saphyr::from_multiple(AROUND)?;
    for object in referred.chain(own).chain(around) {
        objects.insert(data::name(&object), object);
    }
    Ok(objects.into_values().collect())
}

/// A tenant that wants the address of the API server routed into its own VLAN, and a harmless variant.
fn greedy_tenant(prefix: &str) -> anyhow::Result<Value> {
    let manifests = format!(
        "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Network
metadata: {{name: greedy}}
spec: {{vlan: 700, ipv4: {{cidr: 198.18.7.0/24}}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {{name: greedy, labels: {{zone: greedy}}}}
spec: {{nextHop: {{ipv4: 198.18.7.254}}, prefixes: [{prefix}]}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {{name: greedy}}
spec:
  networkRef: greedy
  interfaceRef: bond2
  destinations: {{matchLabels: {{zone: greedy}}}}
  nodeIPs: {{enabled: true}}
"
    );
    Ok(Value::Array(serde_saphyr::from_multiple(&manifests)?))
}

#[test]
fn three_nodes_take_all_intents_at_once_and_a_bad_change_ends_at_the_canary() -> anyhow::Result<()>
{
    let world = World::start()?;
    let mut objects = world_of_the_examples()?;
    for (node, leaf) in NODES {
        objects.push(world.underlay(node, leaf, None)?);
    }
    let kinds = ["TrafficMirror", "Collector", "BGPNeighbor", "Outbound"];
    for kind in kinds {
        let has_kind = objects.iter().any(|object| object["kind"] == kind);
        assert!(has_kind, "the examples have a {kind}");
    }
    world.apply(&Value::Array(objects))?;
    world.converged("all intents at once")?;

    a_change_that_cuts_the_canary_off_ends_there(&world).with_context(|| world.diagnosis())?;
    a_mistyped_nic_ends_at_the_canary(&world).with_context(|| world.diagnosis())?;
    a_machine_that_is_given_back_frees_its_addresses(&world).with_context(|| world.diagnosis())
}

fn a_change_that_cuts_the_canary_off_ends_there(world: &World) -> anyhow::Result<()> {
    let (before, others) = (world.revision()?, world.generations()?);
    let api_server = format!("{}/32", world.fabric.control_plane_address());
    world.apply(&greedy_tenant(&api_server)?)?;
    let message = world.failed(&before)?;
    assert!(message.contains("API server"), "{message}");
    world.until("the tenant is told", || {
        let intent = world.get(&["layer2attachment", "greedy"])?;
        let ready = condition(&intent, "Ready");
        let is_told = ready["status"] == "False"
            && ready["reason"] == "NodeFailed"
            && text(&ready, "/message").contains(CANARY);
        Ok(is_told.then_some(()).ok_or_else(|| ready.to_string()))
    })?;
    assert_eq!(world.generations()?, others, "no second node is touched");

    world.apply(&greedy_tenant("198.18.8.0/24")?)?;
    world.converged("the corrected change")?;
    for (node, _) in NODES {
        let routes = ["ip", "route", "show", "198.18.8.0/24"];
        let routes = world.fabric.at(node)?.run(&routes)?;
        assert!(routes.contains("198.18.7.254"), "{node}: {routes}");
    }
    Ok(())
}

fn a_mistyped_nic_ends_at_the_canary(world: &World) -> anyhow::Result<()> {
    let (before, others) = (world.revision()?, world.generations()?);
    let pause = |pause: bool| -> anyhow::Result<()> {
        let patch = json!({"spec": {"rollout": {"pause": pause}}}).to_string();
        let patch = [
            "patch",
            "settings.selvedge.dev",
            "default",
            "--type=merge",
            "-p",
            &patch,
        ];
        world.plane.kubectl(&patch, "")?;
        Ok(())
    };
    let edited = |nic: Option<&str>| -> anyhow::Result<Value> {
        let mut underlays = Vec::new();
        for (node, leaf) in NODES {
            let mut underlay = world.underlay(node, leaf, nic.filter(|_| node == CANARY))?;
            underlay["spec"]["neighbors"][0]["connectTime"] = json!("2s");
            underlays.push(underlay);
        }
        Ok(Value::Array(underlays))
    };
    // All Underlays are one change.
    pause(true)?;
    world.apply(&edited(Some("eth11"))?)?;
    world.until("the change is compiled", || {
        let revision = world.revision()?;
        let is_new = revision["metadata"]["name"] != before["metadata"]["name"];
        Ok(is_new.then_some(()).ok_or_else(String::new))
    })?;
    pause(false)?;
    let message = world.failed(&before)?;
    assert!(message.contains("eth11"), "{message}");
    assert_eq!(world.generations()?, others, "no second node is touched");
    world.apply(&edited(None)?)?;
    world.converged("the corrected NIC")
}

fn a_machine_that_is_given_back_frees_its_addresses(world: &World) -> anyhow::Result<()> {
    let (last, leaf) = NODES[2];
    let claim = format!("mirror-lo.mir-{last}");
    let claims = || world.plane.kubectl(&["get", "ipaddressclaims", "-A"], "");
    anyhow::ensure!(claims()?.contains(&claim), "there are {}", claims()?);
    world.plane.kubectl(&["delete", "node", last], "")?;
    // The machine still announces its addresses.
    std::thread::sleep(Duration::from_secs(3));
    anyhow::ensure!(world.configs()?.contains_key(last), "its config stays");
    anyhow::ensure!(claims()?.contains(&claim), "left are {}", claims()?);

    let agent = &world.agents[2];
    agent.signal(Signal::TERM);
    agent.wait(PATIENCE)?;
    let account = account_kubeconfig(&world.plane, &format!("selvedge-agent-{last}"), &[])?;
    let kubeconfig = world.fabric.hand_in(account.path())?;
    let (node, link) = (world.fabric.at(last)?, world.fabric.link(last, leaf)?);
    let (near, _) = link.seen_from(last).context("the link has two ends")?;
    let is_the_routers = format!("ip -n selvedge link show {}", near.interface);
    node.script(&is_the_routers).context("before")?;
    let cleanup = ["/share/selvedge", "agent", "cleanup", "--node", last];
    node.run(&[&cleanup[..], &["--kubeconfig", &kubeconfig]].concat())?;
    let addresses = node.run(&["ip", "-brief", "address", "show", &near.interface])?;
    assert!(addresses.contains(&near.ipv4.to_string()), "{addresses}");
    world.until("its config and its claim are gone", || {
        let is_gone = !world.configs()?.contains_key(last) && !claims()?.contains(&claim);
        Ok(is_gone.then_some(()).ok_or_else(String::new))
    })
}
