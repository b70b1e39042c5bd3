//! Ring 1, stories: each directory of `tests/cases` is an input and everything that must come of it.
//!
//! `UPDATE_CASES=1 cargo test -p selvedge --test rings ring1_cases` writes what comes of it now; read it before you keep it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use compiler::{Compiler, Insertion, Kind, ObjectRef, Snapshot, compile, lower::LowLevelObject};
use frr::FrrVersion;
use serde_json::{Value, json};

use crate::support::{repository, selvedge};

/// Files that people write; all others are made.
const WRITTEN: [&str; 2] = ["README.md", "input.yaml"];

#[test]
fn every_story_ends_as_it_is_told() -> anyhow::Result<()> {
    let update = std::env::var_os("UPDATE_CASES").is_some();
    let mut wrong = Vec::new();
    let mut told = 0;
    for entry in fs::read_dir(repository("tests/cases"))? {
        let folder = entry?.path();
        let story = Story::read(&folder)?;
        let made = story.made()?;
        if update {
            story.write(&made)?;
        }
        wrong.extend(story.differences(&made)?);
        told += 1;
    }
    eprintln!("{told} stories");
    assert!(told > 20, "stories are missing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

#[test]
fn every_story_ends_the_same_when_its_objects_come_one_by_one_or_leave_and_return()
-> anyhow::Result<()> {
    for entry in fs::read_dir(repository("tests/cases"))? {
        let story = Story::read(&entry?.path())?;
        let objects = story.objects();
        let mut compiler = Compiler::default();
        let mut snapshot = Snapshot::default();
        for document in objects.values() {
            snapshot.insert(document);
            compiler.insert(document);
            compiler.compile();
        }
        let told = compile(&snapshot);
        let folder = story.folder.display();
        anyhow::ensure!(*compiler.compile().1 == told, "{folder}: one by one");
        for (subject, document) in objects {
            compiler.remove(&subject);
            compiler.compile();
            compiler.insert(document);
            anyhow::ensure!(
                *compiler.compile().1 == told,
                "{folder}: {subject} left and returned"
            );
        }
    }
    Ok(())
}

/// A field that no story has could mean anything.
#[test]
fn every_field_of_an_frrconfiguration_is_in_a_story() -> anyhow::Result<()> {
    let crds = String::from_utf8(selvedge(&["crds"], "")?.stdout)?;
    let crds: Vec<Value> = serde_saphyr::from_multiple(&crds)?;
    let is_it = |crd: &&Value| crd["spec"]["names"]["kind"] == "FRRConfiguration";
    let crd = crds.iter().find(is_it).expect("the kind is served");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut fields = Vec::new();
    leaves(schema, "", &mut fields);
    assert!(fields.len() > 50, "{fields:?}");

    let mut told = BTreeSet::new();
    for entry in fs::read_dir(repository("tests/cases"))? {
        for document in Story::read(&entry?.path())?.documents {
            if document["kind"] == "FRRConfiguration" {
                values(&document["spec"], "", &mut told);
            }
        }
    }
    fields.retain(|field| !told.contains(field));
    assert_eq!(fields, [""; 0], "fields without a story");
    Ok(())
}

/// The fields of a schema that have no fields themselves.
fn leaves(schema: &Value, path: &str, found: &mut Vec<String>) {
    if let Some(fields) = schema["properties"].as_object() {
        for (name, field) in fields {
            leaves(field, &format!("{path}.{name}"), found);
        }
    } else if schema["items"].is_object() {
        leaves(&schema["items"], path, found);
    } else {
        found.push(path.to_owned());
    }
}

/// The paths of all values of a document.
fn values(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.insert(path.to_owned());
            for (name, field) in fields {
                values(field, &format!("{path}.{name}"), found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| values(item, path, found)),
        _ => {
            found.insert(path.to_owned());
        }
    }
}

struct Story {
    folder: PathBuf,
    documents: Vec<Value>,
    snapshot: Snapshot,
    unknown: Vec<String>,
}

impl Story {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let readme = fs::read_to_string(folder.join("README.md")).map_err(|error| {
            anyhow::anyhow!(
                "{}: a story says in README.md what it tells: {error}",
                folder.display()
            )
        })?;
        anyhow::ensure!(
            !readme.trim().is_empty(),
            "{}: README.md is empty",
            folder.display()
        );
        let text = fs::read_to_string(folder.join("input.yaml"))?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        let mut story = Self {
            folder: folder.to_owned(),
            documents,
            snapshot: Snapshot::default(),
            unknown: Vec::new(),
        };
        for document in &story.documents {
            match story.snapshot.insert(document) {
                Insertion::Object(_) => {}
                Insertion::Foreign(said)
                | Insertion::Misplaced { message: said, .. }
                | Insertion::Unknown(said) => story.unknown.push(said),
            }
        }
        Ok(story)
    }

    /// Its objects, each as it was written last.
    fn objects(&self) -> BTreeMap<ObjectRef, &Value> {
        let documents = self.documents.iter();
        let objects = documents.filter_map(|document| match Snapshot::default().insert(document) {
            Insertion::Object(subject) => Some((subject, document)),
            Insertion::Foreign(_) | Insertion::Misplaced { .. } | Insertion::Unknown(_) => None,
        });
        objects.collect()
    }

    /// Every file that comes of the input, by its path in the story's folder.
    fn made(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let compilation = compile(&self.snapshot);
        let mut files = BTreeMap::new();
        let mut confs = BTreeMap::new();
        let mut put = |name: String, documents: &[Value]| -> anyhow::Result<()> {
            if !documents.is_empty() {
                files.insert(name, yaml(documents)?);
            }
            Ok(())
        };
        let mut problems: Vec<Value> = self
            .unknown
            .iter()
            .map(|message| json!({"unknown": message}))
            .collect();
        problems.extend(
            compilation
                .problems
                .iter()
                .map(serde_json::to_value)
                .collect::<Result<Vec<_>, _>>()?,
        );
        put("problems.yaml".to_owned(), &problems)?;
        let low: Vec<Value> = compilation.objects.iter().map(low_level).collect();
        put("lowlevel.yaml".to_owned(), &low)?;
        let platform = compilation.platform.values();
        let platform: Vec<Value> = platform.map(|object| object.manifest()).collect();
        put("platform.yaml".to_owned(), &platform)?;
        put("status.yaml".to_owned(), &self.statuses())?;
        let removals = compilation.removals.iter();
        let removals: Vec<Value> = removals
            .map(|(node, removal)| json!({"node": node, "needsApproval": removal}))
            .collect();
        put("approvals.yaml".to_owned(), &removals)?;
        for (node, config) in &compilation.nodes {
            let mut spec = config.spec("");
            put(
                format!("nodes/{node}.yaml"),
                &[serde_json::to_value(&spec)?],
            )?;
            "the revision".clone_into(&mut spec.revision);
            let conf = frr::desired(&spec, &frr::hidden(&spec), FrrVersion::NEWEST)
                .map_err(|refused| anyhow::anyhow!("{}: {refused:?}", self.folder.display()))?;
            let kernel = linux::desired(&spec)
                .map_err(|refused| anyhow::anyhow!("{}: {refused:?}", self.folder.display()))?;
            anyhow::ensure!(
                kernel.unmirrored.is_empty(),
                "{}: {:?}",
                self.folder.display(),
                kernel.unmirrored
            );
            if spec.underlay.is_some() {
                confs.insert(
                    format!("nodes/{node}.frr.conf"),
                    frr::print(&conf, FrrVersion::NEWEST, &spec.revision),
                );
            }
        }
        files.extend(confs);
        Ok(files)
    }

    /// The spec of an object whose status has the one in effect.
    fn spec(&self, ObjectRef { kind, key }: &ObjectRef) -> Option<Value> {
        macro_rules! spec_of {
            ($($kind:ident: $field:ident),+) => {
                match kind {
                    $(Kind::$kind => self.snapshot.$field.get(key).map(|object| json!(object.spec)),)+
                    _ => None,
                }
            };
        }
        spec_of!(
            Vrf: vrfs, Network: networks, Destination: destinations, Layer2Attachment: layer2_attachments, Inbound: inbounds,
            Outbound: outbounds, BgpNeighbor: bgp_neighbors, PodNetwork: pod_networks, Collector: collectors,
            TrafficMirror: traffic_mirrors, FrrConfiguration: frr_configurations
        )
    }

    /// The statuses of all objects before any node has answered. A spec that is in effect as it is written is not repeated.
    fn statuses(&self) -> Vec<Value> {
        let mut unanswered = self.snapshot.clone();
        for config in unanswered.node_network_configs.values_mut() {
            config.status = None;
        }
        let statuses = compiler::statuses(&unanswered);
        let written = statuses.iter().map(|(subject, status)| {
            let mut status = status.to_value();
            let in_effect = status.get("inEffect");
            if in_effect.is_some() && in_effect == self.spec(subject).as_ref() {
                status
                    .as_object_mut()
                    .map(|fields| fields.remove("inEffect"));
            }
            json!({"object": subject, "status": status})
        });
        written.collect()
    }

    fn write(&self, made: &BTreeMap<String, String>) -> anyhow::Result<()> {
        for name in self.present()?.difference(&made.keys().cloned().collect()) {
            fs::remove_file(self.folder.join(name))?;
        }
        for (name, text) in made {
            let path = self.folder.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(path, text)?;
        }
        Ok(())
    }

    /// The files that a story holds besides what people wrote.
    fn present(&self) -> anyhow::Result<BTreeSet<String>> {
        let mut present = BTreeSet::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    present.insert(path.strip_prefix(&self.folder)?.display().to_string());
                }
            }
        }
        for name in WRITTEN {
            present.remove(name);
        }
        Ok(present)
    }

    fn differences(&self, made: &BTreeMap<String, String>) -> anyhow::Result<Vec<String>> {
        let mut differences = Vec::new();
        for name in self.present()?.union(&made.keys().cloned().collect()) {
            let told = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
            let comes = made.get(name).cloned().unwrap_or_default();
            if told != comes {
                let path = self.folder.join(name);
                differences.push(format!(
                    "{}\n{}",
                    path.display(),
                    first_difference(&told, &comes)
                ));
            }
        }
        Ok(differences)
    }
}

fn first_difference(told: &str, comes: &str) -> String {
    let (mut told, mut comes) = (told.lines(), comes.lines());
    for number in 1.. {
        match (told.next(), comes.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => {
                let or_none = |line: Option<&str>| {
                    line.map_or_else(|| "nothing".to_owned(), |line| format!("{line:?}"))
                };
                return format!(
                    "line {number}: told {}, comes {}",
                    or_none(one),
                    or_none(other)
                );
            }
        }
    }
    String::new()
}

fn low_level(object: &LowLevelObject) -> Value {
    json!({
        "kind": object.kind().to_string(),
        "name": object.name(),
        "source": object.source(),
        "spec": object.spec(),
    })
}

fn yaml(documents: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for document in documents {
        let document = serde_saphyr::to_string(document)?;
        text.extend(["---\n", document.trim_end(), "\n"]);
    }
    Ok(text)
}
