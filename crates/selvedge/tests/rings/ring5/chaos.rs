//! The operator is killed again and again while intents come, change and go: at the end the cluster is as if it had never been.

use std::{
    collections::{BTreeMap, BTreeSet},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    cluster::{Cluster, TCAAS, object, start_operator},
    fleet::{Behaviour, Fleet},
    fleet_rollout::{FABRIC, name, newest, nodes, settings},
    intents::defaults,
    programs::{Program, Programs},
    server::{Mode, Server, with_server, within},
};
use crate::{
    data::{self, text},
    support::{Daemon, OWN_NAMESPACE, selvedge},
};

const KILLS: u64 = 100;
const SEED: u64 = 0x5e1f_ed9e;
const NODES: usize = 6;
const TENANTS: usize = 10;
const QUICK: [&str; 6] = [
    "--lease-duration",
    "3s",
    "--renew-deadline",
    "2s",
    "--retry-period",
    "1s",
];
/// How long an operator may take to lead, and the cluster to become quiet.
const PATIENCE: Duration = Duration::from_mins(1);
/// Nothing is written for so long in a quiet cluster.
const QUIET: Duration = Duration::from_secs(5);
const GENERATED: [&str; 3] = [
    "Layer2NetworkConfiguration",
    "VRFRouteConfiguration",
    "BGPPeering",
];
const INTENTS: [&str; 5] = [
    "VRF",
    "Destination",
    "Network",
    "Layer2Attachment",
    "Inbound",
];

/// Numbers that are the same in every run (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn milliseconds(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }
}

/// Tenants that come, change and go.
struct Tenants<'a> {
    server: &'a Server,
    present: [bool; TENANTS],
    changes: usize,
}

impl Tenants<'_> {
    fn change(&mut self, random: &mut Random) -> anyhow::Result<()> {
        let index = random.below(u64::try_from(TENANTS)?);
        let (name, vlan) = (format!("t{index}"), 300 + index);
        let is_present = &mut self.present[usize::try_from(index)?];
        let network = json!({
            "apiVersion": TCAAS, "kind": "Network", "metadata": {"name": name},
            "spec": {"ipv4": {"cidr": format!("10.9.{index}.0/24")}, "vlan": vlan, "vni": 20_000 + vlan},
        });
        let attachment = json!({
            "apiVersion": TCAAS, "kind": "Layer2Attachment", "metadata": {"name": name},
            "spec": {
                "networkRef": name, "interfaceName": name,
                "destinations": {"matchLabels": {"zone": "secure"}},
            },
        });
        let services = json!({
            "apiVersion": TCAAS, "kind": "Network", "metadata": {"name": format!("{name}-services")},
            "spec": {"ipv4": {"cidr": format!("10.8.{index}.0/28")}},
        });
        let inbound = json!({
            "apiVersion": TCAAS, "kind": "Inbound", "metadata": {"name": name},
            "spec": {
                "networkRef": format!("{name}-services"), "count": 1 + random.below(3),
                "destinations": {"matchLabels": {"zone": "secure"}}, "advertisement": {"type": "bgp"},
            },
        });
        match (*is_present, random.below(4)) {
            (false, _) => {
                for object in [&network, &attachment, &services, &inbound] {
                    let answer = self.server.create(object, Mode::Real)?;
                    answer.map_err(|refusal| anyhow::anyhow!("{}", refusal.message))?;
                }
                *is_present = true;
            }
            (true, 0) => {
                for object in [&attachment, &network, &inbound, &services] {
                    self.server.delete(object)?;
                }
                *is_present = false;
            }
            (true, 1) => {
                let change = json!({"spec": {"count": inbound["spec"]["count"]}});
                self.server.edit(&inbound, &change)?;
            }
            (true, _) => {
                let mtu = 1300 + random.below(200);
                let change = json!({"spec": {"mtu": mtu}});
                self.server.edit(&attachment, &change)?;
            }
        }
        self.changes += 1;
        Ok(())
    }
}

fn leads(operator: &Daemon) -> anyhow::Result<bool> {
    Ok(operator.log()?.contains("this operator leads"))
}

/// Gives back the Lease of an operator that is known to be dead.
fn release(server: &Server) -> anyhow::Result<()> {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "selvedge-operator", "namespace": OWN_NAMESPACE},
    });
    if server.get(&lease)?.is_some() {
        server.delete(&lease)?;
    }
    Ok(())
}

/// Changes tenants while operators are started and killed; how many of these led.
fn storm(tenants: &mut Tenants<'_>, random: &mut Random) -> anyhow::Result<u64> {
    let server = tenants.server;
    let mut leaders = 0;
    for kill in 0..KILLS {
        let operator = start_operator(server.operator_kubeconfig(), &QUICK)?;
        // Some are killed while they start; most at a moment at which they write.
        if random.below(4) > 0 {
            within(PATIENCE, "the operator leads", || {
                Ok(leads(&operator)?.then_some(()))
            })?;
        }
        // Half of them have written before: everything is listed first, and how long that takes depends on the machine.
        if random.below(2) > 0 {
            within(PATIENCE, "the operator has written", || {
                let log = operator.log()?;
                Ok(log.contains("INFO pass revision").then_some(()))
            })?;
        }
        let end = Instant::now() + random.milliseconds(1000);
        while Instant::now() < end {
            tenants.change(random)?;
            thread::sleep(random.milliseconds(200));
        }
        leaders += u64::from(leads(&operator)?);
        drop(operator);
        // Now and then the next one has to wait until the Lease is over.
        if kill % 20 != 0 {
            release(server)?;
        }
    }
    Ok(leaders)
}

fn until_quiet(cluster: &Cluster<'_>) -> anyhow::Result<()> {
    let mut last = (Vec::new(), Instant::now());
    within(PATIENCE * 2, "the cluster is quiet", || {
        let versions = cluster.versions()?;
        if versions != last.0 {
            last = (versions, Instant::now());
        }
        let is_complete = newest(cluster)?["status"]["phase"] == "Complete";
        Ok((is_complete && last.1.elapsed() >= QUIET).then_some(()))
    })
}

/// The specs of documents, by `kind/name`.
type Specs = BTreeMap<String, Value>;

fn specs(documents: &[Value]) -> Specs {
    let of = |document: &Value| {
        let mut spec = document["spec"].clone();
        // It names the revision in which this node changed last.
        if document["kind"] == "NodeNetworkConfig" {
            spec["revision"].take();
        }
        (data::name(document), spec)
    };
    documents.iter().map(of).collect()
}

/// What the intents of the cluster compile into where nothing is stored but what their statuses hold: an address that a node still announced
/// when its intent was created again stays withheld, so that not every address is the lowest.
fn compiled(server: &Server, what: &str) -> anyhow::Result<Vec<Value>> {
    let mut documents = server.list("v1", "Node")?;
    documents.extend(server.list("selvedge.dev/v1alpha1", "Settings")?);
    documents.extend(server.list("openpe.openperouter.github.io/v1alpha1", "Underlay")?);
    for kind in INTENTS {
        documents.extend(server.list(TCAAS, kind)?);
    }
    for document in &mut documents {
        document["metadata"]["managedFields"].take();
    }
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    let arguments = ["compile", "-f", "-", "--what", what, "-o", "json"];
    let output = selvedge(&arguments, &text.join("\n---\n"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).context(said)
}

fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    let conditions = status["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        if let Some(fields) = condition.as_object_mut() {
            fields.remove("lastTransitionTime");
        }
    }
    status
}

/// Compares what other programs got with what a new compiler makes of the intents, and looks for what belongs to nothing.
fn compare_beside(cluster: &Cluster<'_>, programs: &Programs<'_>) -> anyhow::Result<()> {
    let server = cluster.server;
    let mut expected = compiled(server, "platform")?;
    for object in &mut expected {
        let defaults = defaults(text(object, "/kind"));
        if let (Some(spec), Value::Object(defaults)) = (object["spec"].as_object_mut(), defaults) {
            spec.extend(defaults);
        }
    }
    let stored = programs.ours()?;
    assert!(!stored.is_empty(), "no tenant is left");
    assert_eq!(specs(&stored), specs(&expected));
    let parts = cluster.names("NetworkConfigRevisionPart")?;
    assert_eq!(parts, [""; 0], "no revision is large");
    let accounts = server.list("v1", "ServiceAccount")?.into_iter();
    let accounts = accounts.map(|account| text(&account, "/metadata/name").to_owned());
    let accounts: BTreeSet<String> = accounts
        .filter(|name| name.starts_with("selvedge-agent-"))
        .collect();
    let nodes = (0..NODES).map(|index| format!("selvedge-agent-{}", name(index)));
    assert_eq!(accounts, nodes.collect());
    Ok(())
}

/// Compares everything that is stored with what a new compiler makes of the intents.
fn compare(cluster: &Cluster<'_>) -> anyhow::Result<()> {
    let server = cluster.server;
    let mut stored = Vec::new();
    for kind in GENERATED {
        stored.extend(cluster.all(kind)?);
    }
    assert_eq!(specs(&stored), specs(&compiled(server, "lowlevel")?));
    let configs = cluster.all("NodeNetworkConfig")?;
    assert_eq!(specs(&configs), specs(&compiled(server, "nodes")?));
    let newest = newest(cluster)?;
    let revision = specs(&compiled(server, "revision")?);
    assert_eq!(specs(&[newest]), revision);
    let kept = cluster.names("NetworkConfigRevision")?;
    assert!(kept.len() <= 10, "{kept:?}");

    let kubeconfig = server.plane.kubeconfig("admin")?.display().to_string();
    let arguments = ["compile", "--kubeconfig", &kubeconfig, "--what", "status"];
    let output = selvedge(&[&arguments[..], &["-o", "json"]].concat(), "")?;
    let statuses: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    assert!(statuses.len() > 5, "{statuses:?}");
    for expected in &statuses {
        if expected["apiVersion"] != TCAAS {
            continue;
        }
        let found = server.get(&object(
            text(expected, "/kind"),
            text(expected, "/metadata/name"),
        ))?;
        let found = found.with_context(|| data::name(expected))?;
        assert_eq!(
            without_times(&found["status"]),
            without_times(&expected["status"]),
            "{}",
            data::name(expected)
        );
    }
    Ok(())
}

#[test]
fn an_operator_that_is_killed_a_hundred_times_leaves_what_a_fresh_compile_makes()
-> anyhow::Result<()> {
    with_server(|server| {
        let programs = Programs::new(server)?;
        programs.install(Program::MetalLb)?;
        server.apply(&settings(Duration::from_mins(1)))?;
        server.apply(FABRIC)?;
        server.apply(&nodes(NODES))?;
        let fleet = (0..NODES).map(|index| (name(index), Behaviour::Healthy));
        let _fleet = Fleet::start(server, fleet)?;
        let (start, mut random) = (Instant::now(), Random(SEED));
        let mut tenants = Tenants {
            server,
            present: Default::default(),
            changes: 0,
        };
        let leaders = storm(&mut tenants, &mut random)?;
        let changes = tenants.changes;
        eprintln!(
            "{KILLS} operators killed, {leaders} of which led; {changes} changes in {:?}",
            start.elapsed()
        );
        assert!(leaders >= KILLS / 2 && changes >= 100, "nothing was tried");
        let cluster = &Cluster { server };
        let _operator = start_operator(server.operator_kubeconfig(), &QUICK)?;
        until_quiet(cluster).expect("it comes to an end");
        compare(cluster).expect("everything can be read");
        compare_beside(cluster, &programs).expect("everything can be read");
        let sequence = newest(cluster)?["status"]["sequence"].as_u64();
        assert!(sequence > Some(20), "{sequence:?} revisions");
        Ok(())
    })
}
