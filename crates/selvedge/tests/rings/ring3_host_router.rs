//! Ring 3, the host's router: what we print and what we type is what every supported FRR then runs, and it means what users of the
//! FRRConfiguration API run today.

#[path = "../../../frr/tests/host/meaning.rs"]
mod meaning;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
};

use api::tcaas::node_network_config::HostRouter;
use frr::{Batch, FrrConfig, FrrVersion, Secrets, diff, host, parse, print};
use lab::{
    host::{Host, LocalHost},
    namespace::Namespace,
    parts::{self, Release, Tree},
    space::{FRR_INSTANCE, Space},
};
use meaning::Meaning;
use serde_json::Value;

use crate::support::{progress, repository};

/// The cases whose text of today is booted besides ours: they have every kind of line.
const BOOTED: [&str; 4] = ["evpn-full", "properties", "imports", "always-block"];

fn file(name: &str) -> anyhow::Result<String> {
    Ok(fs::read_to_string(
        repository("crates/frr/tests/host").join(name),
    )?)
}

fn cases() -> anyhow::Result<Vec<String>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(repository("crates/frr/tests/host"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        cases.extend(name.strip_suffix(".json").map(str::to_owned));
    }
    cases.sort();
    Ok(cases)
}

fn desired(case: &str, version: FrrVersion) -> anyhow::Result<host::Desired> {
    let router: HostRouter = serde_json::from_str(&file(&format!("{case}.json"))?)?;
    Ok(host::desired(&router, &Secrets::new(), version))
}

/// Daemons of one version on this machine's kernel: BGP needs none of the kernel's VRFs to take its configuration.
pub(crate) struct Daemons {
    pub(crate) version: FrrVersion,
    host: Arc<dyn Host>,
}

impl Daemons {
    pub(crate) fn of(release: Release) -> anyhow::Result<Self> {
        let tree = Tree::prepare(release, &progress)?;
        let share = tempfile::tempdir()?;
        let namespace = Arc::new(Namespace::new(share.path())?);
        Ok(Self {
            version: release.frr_version().parse()?,
            host: Arc::new(LocalHost::new(namespace, tree.root(), share)),
        })
    }

    pub(crate) fn boot(&self, conf: &str) -> anyhow::Result<Running> {
        let space = Space::new(&self.host, "host")?;
        space.start_frr(conf)?;
        Ok(Running {
            space,
            version: self.version,
        })
    }
}

/// A running FRR.
pub(crate) struct Running {
    space: Space,
    version: FrrVersion,
}

impl Running {
    fn text(&self) -> anyhow::Result<String> {
        Ok(self.vtysh(&["show running-config"])?)
    }

    fn vtysh(&self, commands: &[&str]) -> Result<String, lab::host::Error> {
        let mut argv = vec!["vtysh", "-N", FRR_INSTANCE];
        for command in commands {
            argv.extend(["-c", command]);
        }
        self.space.run(&argv)
    }

    /// What it runs, with nothing in it that nobody asked for.
    fn config(&self) -> anyhow::Result<FrrConfig> {
        let parsed = parse(&self.text()?, self.version);
        assert_eq!(parsed.unknown, [], "FRR {}", self.version);
        Ok(parsed.config)
    }

    fn becomes(&self, case: &str, wanted: &FrrConfig) -> anyhow::Result<()> {
        let done = self.takes(wanted)?;
        assert_eq!(done, Ok(()), "FRR {}: {case}", self.version);
        Ok(())
    }

    /// Whether it takes this config, by the least change; otherwise what it refuses.
    pub(crate) fn takes(&self, wanted: &FrrConfig) -> anyhow::Result<Result<(), String>> {
        let change = diff(&self.config()?, wanted);
        let batches = change.batches();
        let after = change.batches_after_devices();
        for batch in batches.iter().chain(&after).chain(&change.clear_batches()) {
            let Batch::Commands(commands) = batch else {
                anyhow::bail!("the cases have no passwords");
            };
            let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
            match self.vtysh(&commands) {
                Ok(said) if !said.lines().any(|line| line.starts_with("% Unknown")) => {}
                Ok(said) => return Ok(Err(said)),
                Err(error) => return Ok(Err(format!("{:#}", anyhow::Error::from(error)))),
            }
        }
        let left = diff(&self.config()?, wanted);
        let why = || format!("after\n{change}\nthis is left:\n{left}");
        Ok(if left.is_empty() { Ok(()) } else { Err(why()) })
    }

    /// What is in effect for a layer 2 VNI, whatever is written.
    fn vni(&self, number: u32) -> anyhow::Result<[Value; 3]> {
        let show = format!("show bgp l2vpn evpn vni {number} json");
        let vni: Value = serde_json::from_str(&self.vtysh(&[&show])?)?;
        Ok(["rd", "importRts", "exportRts"].map(|field| vni[field].clone()))
    }
}

#[test]
fn every_version_goes_from_case_to_case_by_the_least_change() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    let cases = cases()?;
    for release in Release::ALL {
        let daemons = Daemons::of(release)?;
        let version = daemons.version;
        let config = |case: &str| anyhow::Ok(desired(case, version)?.config);
        let boot = |case: &str| daemons.boot(&print(&config(case)?, version, "r"));
        let mut running = boot(&cases[0])?;
        assert!(diff(&running.config()?, &config(&cases[0])?).is_empty());
        // There and back again, so that everything is added and taken back.
        for case in cases.iter().chain(cases.iter().rev()) {
            let wanted = config(case)?;
            let change = diff(&running.config()?, &wanted).router;
            // As a node does it. Older versions go on without a new start.
            if version == FrrVersion::NEWEST && change.needs_fresh_frr(false) {
                running = boot(case)?;
            }
            running.becomes(case, &wanted)?;
        }
    }
    Ok(())
}

#[test]
fn every_version_runs_the_same_from_the_text_of_today_and_from_ours() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    for release in Release::ALL {
        let daemons = Daemons::of(release)?;
        for case in BOOTED {
            let today = daemons.boot(&file(&format!("{case}.today.conf"))?)?;
            let wanted = desired(case, daemons.version)?.config;
            let ours = daemons.boot(&print(&wanted, daemons.version, "r"))?;
            assert_eq!(
                Meaning::of(&ours.text()?),
                Meaning::of(&today.text()?),
                "{case} on FRR {}",
                daemons.version
            );
            let change = diff(&today.config()?, &wanted);
            assert_eq!(change.resets.len(), 0, "{case}: {change}");
        }
    }
    Ok(())
}

#[test]
fn every_version_runs_both_stanzas_of_the_evpn_document_with_the_same_meaning() -> anyhow::Result<()>
{
    parts::prepare_machine(&progress)?;
    for release in Release::ALL {
        let daemons = Daemons::of(release)?;
        let version = daemons.version;
        // Where the version has no wildcard, FRR refuses the document's line, and ours leaves it out and says so.
        let made = desired("document/example", version)?;
        let wildcard = version >= FrrVersion::V10_3;
        assert_eq!(made.unsupported.is_empty(), wildcard, "FRR {version}");
        let document = daemons.boot(&file("document/example.conf")?)?;
        let ours = daemons.boot(&print(&made.config, version, "r"))?;
        let (theirs, own) = (Meaning::of(&document.text()?), Meaning::of(&ours.text()?));
        let more = more_than(&own.lines, &theirs.lines);
        assert_eq!(
            more_than(&theirs.lines, &own.lines),
            [""; 0],
            "FRR {version}"
        );
        let always = [
            "no bgp ebgp-requires-policy",
            "no bgp network import-check",
            "bgp graceful-restart preserve-fw-state",
        ];
        let mut expected: BTreeSet<String> = BTreeSet::new();
        for router in ["router bgp 64512", "router bgp 64512 vrf tenant-red"] {
            expected.extend(always.map(|line| format!("{router} / {line}")));
        }
        let unicast = "router bgp 64512 / address-family ipv4 unicast / neighbor 192.168.1.2";
        expected.extend([
            "log stdout informational".to_owned(),
            "log timestamp precision 3".to_owned(),
            format!("{unicast} route-map 192.168.1.2-in in"),
            format!("{unicast} route-map 192.168.1.2-out out"),
            "router bgp 64512 vrf tenant-red / address-family l2vpn evpn / advertise ipv6 unicast"
                .to_owned(),
        ]);
        if version < FrrVersion::V10_3 {
            let tracking = ["ip", "ipv6"].map(|ip| format!("{ip} nht resolve-via-default"));
            expected.extend(tracking);
        }
        assert_eq!(BTreeSet::from_iter(more), expected, "FRR {version}");
        assert_eq!(ours.vni(1000)?, document.vni(1000)?, "FRR {version}");
        assert_eq!(ours.vni(1000)?[0], "64512:1000");
        let text = ours.text()?;
        assert_eq!(text.contains("route-target import *:999"), wildcard);
    }
    Ok(())
}

/// The lines of one that the other does not have, with the blocks they stand in.
fn more_than(
    one: &BTreeMap<Vec<String>, BTreeSet<String>>,
    other: &BTreeMap<Vec<String>, BTreeSet<String>>,
) -> Vec<String> {
    let mut more = Vec::new();
    for (path, lines) in one {
        for line in lines {
            if !other.get(path).is_some_and(|lines| lines.contains(line)) {
                let mut words = path.clone();
                words.push(line.clone());
                more.push(words.join(" / "));
            }
        }
    }
    more
}

/// The route target that FRR derives takes effect beside others, from the file and from a change (all versions forget it otherwise).
#[test]
fn every_route_target_takes_effect_on_every_version() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    let with = |targets: &[&str], version| -> anyhow::Result<FrrConfig> {
        let mut router: Value = serde_json::from_str(&file("evpn-l2vnis.json")?)?;
        router["routers"]["default"]["l2vnis"] =
            serde_json::json!([{"vni": 1000, "importRTs": targets, "exportRTs": targets}]);
        let router: HostRouter = serde_json::from_value(router)?;
        Ok(host::desired(&router, &Secrets::new(), version).config)
    };
    let sets: [&[&str]; 7] = [
        &["64512:1000", "64512:1001"],
        &["64512:1000"],
        &["64512:1000", "64512:7"],
        &["64512:7"],
        &["64512:7", "64512:8"],
        &["64512:1000", "64512:8"],
        &[],
    ];
    for release in Release::ALL {
        let daemons = Daemons::of(release)?;
        let version = daemons.version;
        let running = daemons.boot(&print(&with(sets[0], version)?, version, "r"))?;
        for targets in sets {
            running.becomes(&format!("{targets:?}"), &with(targets, version)?)?;
            // The VNI of which nothing is said is not there without a device.
            if targets == ["64512:1000"] || targets.is_empty() {
                continue;
            }
            let mut wanted: Vec<&str> = targets.to_vec();
            wanted.sort_unstable();
            let [_, imports, exports] = running.vni(1000)?;
            for effective in [imports, exports] {
                let mut effective: Vec<&str> = effective
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                effective.sort_unstable();
                assert_eq!(effective, wanted, "FRR {version}");
            }
        }
    }
    Ok(())
}

/// What crashed the tool that users have today: a neighbor's route maps go, and another family comes.
#[test]
fn every_version_takes_a_neighbor_from_unicast_to_evpn_and_back() -> anyhow::Result<()> {
    parts::prepare_machine(&progress)?;
    for release in Release::ALL {
        let daemons = Daemons::of(release)?;
        let version = daemons.version;
        let unicast = desired("one-session", version)?.config;
        let evpn = desired("evpn-only-neighbor", version)?.config;
        let running = daemons.boot(&print(&unicast, version, "r"))?;
        for wanted in [&evpn, &unicast, &evpn] {
            running.becomes("unicast and evpn", wanted)?;
        }
        let daemons = running.vtysh(&["show daemons"])?;
        assert!(
            daemons.contains("bgpd") && daemons.contains("zebra"),
            "{daemons}"
        );
    }
    Ok(())
}
