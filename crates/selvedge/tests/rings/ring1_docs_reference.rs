//! Ring 1: the pages of `docs/reference` are generated, and up to date.
//!
//! `UPDATE_DOCS=1 cargo test -p selvedge --test rings -- ring1_docs` writes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use compiler::{
    problem,
    snapshot::{Kind, ObjectRef},
};
use serde_json::{Map, Value};

use crate::{
    data,
    support::{SELVEDGE, repository},
};

/// First line of every generated page.
const GENERATED: &str =
    "<!-- Generated: UPDATE_DOCS=1 cargo test -p selvedge --test rings -- ring1_docs -->\n\n";

/// Kinds whose objects only Selvedge writes.
const READ_ONLY: [&str; 6] = [
    "BGPSessionState",
    "FRRNodeState",
    "NetworkConfigRevision",
    "NetworkConfigRevisionPart",
    "NodeNetworkConfig",
    "NodeNetworkStatus",
];

fn text(object: &Value, pointer: &str) -> String {
    data::text(object, pointer).to_owned()
}

#[test]
fn the_reference_pages_are_those_of_this_program() -> anyhow::Result<()> {
    let mut pages = BTreeMap::new();
    let mut kinds = String::new();
    for definition in api::crds::all() {
        let definition = serde_json::to_value(definition)?;
        let page = kind_page(&definition)?;
        let name = page_name(&definition);
        let kind = text(&definition, "/spec/names/kind");
        let group = text(&definition, "/spec/group");
        let about = schema(&definition)?["description"].as_str();
        let about = about.and_then(|about| about.split(". ").next());
        let about = about.unwrap_or_default().trim_end_matches('.');
        writeln!(
            kinds,
            "| [{kind}]({name}) | `{group}` | {} |",
            escaped(about)
        )?;
        pages.insert(name, page);
    }
    let index = format!(
        "{GENERATED}# Kinds\n\n| kind | group | purpose |\n|---|---|---|\n{kinds}\n\
         `kubectl explain KIND.spec` and `selvedge crds` have the same texts.\n"
    );
    pages.insert("kinds.md".to_owned(), index);
    pages.insert("problems.md".to_owned(), problems_page()?);
    pages.insert("cli.md".to_owned(), cli_page()?);
    keep(&repository("docs/adr/README.md"), &records_page()?)?;
    let folder = repository("docs/reference");
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    if update {
        fs::create_dir_all(&folder)?;
        for old in data::listed(&folder)? {
            fs::remove_file(old)?;
        }
        for name in pages.keys() {
            fs::write(folder.join(name), "")?;
        }
    }
    let present: BTreeSet<PathBuf> = data::listed(&folder)?.into_iter().collect();
    let wanted = pages.keys().map(|name| folder.join(name)).collect();
    assert_eq!(present, wanted, "the pages of docs/reference");
    for (name, page) in &pages {
        keep(&folder.join(name), page)?;
    }
    Ok(())
}

/// Compares a page with what it must be, or writes it.
pub(crate) fn keep(path: &Path, page: &str) -> anyhow::Result<()> {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, page)?;
    }
    let stored = fs::read_to_string(path).unwrap_or_default();
    anyhow::ensure!(
        stored == page,
        "{} is out of date: run the tests with UPDATE_DOCS=1",
        path.display()
    );
    Ok(())
}

/// The list of the architecture decision records.
fn records_page() -> anyhow::Result<String> {
    let mut page = format!("{GENERATED}# Architecture decision records\n\n");
    for path in data::listed(&repository("docs/adr"))? {
        let name = path.file_name().context("a file has a name")?;
        let name = name.to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        let record = fs::read_to_string(&path)?;
        let title = record.lines().next().unwrap_or_default();
        let title = title.trim_start_matches('#').trim();
        writeln!(page, "- [{title}]({name})")?;
    }
    Ok(page)
}

/// The page of a kind; two groups have a `PodNetwork`.
fn page_name(definition: &Value) -> String {
    let kind = text(definition, "/spec/names/kind").to_lowercase();
    let group = text(definition, "/spec/group");
    match group.as_str() {
        "multinetwork.networking.x-k8s.io" => format!("multinetwork-{kind}.md"),
        _ => format!("{kind}.md"),
    }
}

fn schema(definition: &Value) -> anyhow::Result<&Value> {
    definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema")
        .context("a definition has a schema")
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace("\n\n", "<br>")
}

fn kind_page(definition: &Value) -> anyhow::Result<String> {
    let schema = schema(definition)?;
    let names = &definition["spec"]["names"];
    let kind = text(names, "/kind");
    let group = text(definition, "/spec/group");
    let version = text(definition, "/spec/versions/0/name");
    let mut page = format!("{GENERATED}# {kind}\n\n");
    let about = schema["description"].as_str().unwrap_or_default();
    writeln!(page, "{about}\n")?;
    writeln!(page, "| | |\n|---|---|")?;
    writeln!(page, "| apiVersion | `{group}/{version}` |")?;
    let scope = text(definition, "/spec/scope").to_lowercase();
    writeln!(page, "| scope | {scope} |")?;
    let mut resources = format!("`{}`", text(names, "/plural"));
    let short = names["shortNames"].as_array().into_iter().flatten();
    for name in short.filter_map(Value::as_str) {
        write!(resources, ", `{name}`")?;
    }
    writeln!(page, "| kubectl | {resources} |")?;
    let author = if READ_ONLY.contains(&kind.as_str()) {
        "Selvedge; read-only for users"
    } else {
        "users"
    };
    writeln!(page, "| written by | {author} |")?;
    let mut seen = BTreeMap::new();
    for part in ["spec", "status"] {
        let fields = &schema["properties"][part];
        let mut rows = String::new();
        rows_of(part, fields, &mut rows, &mut seen)?;
        if !rows.is_empty() {
            write!(
                page,
                "\n## {part}\n\n| field | type | description |\n|---|---|---|\n{rows}"
            )?;
        }
        let mut rules = String::new();
        rules_of(part, fields, &mut rules, &mut BTreeSet::new())?;
        if !rules.is_empty() {
            write!(page, "\n### Rules of {part}\n\n{rules}")?;
        }
    }
    Ok(page)
}

/// Large objects that a page has more than once are described at their first place.
const LARGE: usize = 2;

fn rows_of(
    path: &str,
    schema: &Value,
    rows: &mut String,
    seen: &mut BTreeMap<String, String>,
) -> anyhow::Result<()> {
    let properties = schema["properties"].as_object();
    let required: BTreeSet<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in properties.into_iter().flatten() {
        let path = format!("{path}.{name}");
        let mut inner = field;
        let mut suffix = String::new();
        loop {
            if inner["items"].is_object() {
                suffix.push_str("[]");
                inner = &inner["items"];
            } else if inner["additionalProperties"].is_object() {
                suffix.push_str(".*");
                inner = &inner["additionalProperties"];
            } else {
                break;
            }
        }
        let mut about = escaped(field["description"].as_str().unwrap_or_default());
        if required.contains(name.as_str()) {
            about.insert_str(0, "**Required.** ");
        }
        let inner_path = format!("{path}{suffix}");
        let count = inner["properties"].as_object().map_or(0, Map::len);
        let mut first = None;
        if count >= LARGE {
            let shape = serde_json::to_string(&inner["properties"])?;
            first = seen.get(&shape).cloned();
            seen.entry(shape).or_insert_with(|| inner_path.clone());
        }
        if let Some(first) = &first {
            write!(about, " Fields: see `{first}`.")?;
        }
        writeln!(rows, "| `{path}` | {} | {about} |", type_of(field))?;
        if first.is_none() {
            rows_of(&inner_path, inner, rows, seen)?;
        }
    }
    Ok(())
}

fn type_of(schema: &Value) -> String {
    if schema["items"].is_object() {
        return format!("list of {}", type_of(&schema["items"]));
    }
    if schema["additionalProperties"].is_object() {
        return format!("map of {}", type_of(&schema["additionalProperties"]));
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values
            .iter()
            .map(|value| format!("`{}`", value.to_string().replace('"', "")));
        return values
            .filter(|value| value != "``")
            .collect::<Vec<_>>()
            .join(", ");
    }
    let kind = text(schema, "/type");
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!("{kind}, {least}–{most}"),
        (Some(0.0) | None, None) => kind,
        (Some(least), None) => format!("{kind}, at least {least}"),
        (None, Some(most)) => format!("{kind}, at most {most}"),
    }
}

fn rules_of(
    path: &str,
    schema: &Value,
    rules: &mut String,
    seen: &mut BTreeSet<String>,
) -> anyhow::Result<()> {
    let own = schema["x-kubernetes-validations"].as_array();
    for rule in own.into_iter().flatten() {
        let line = format!("- `{path}`: {}\n", text(rule, "/message"));
        if seen.insert(line.clone()) {
            rules.push_str(&line);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        rules_of(&format!("{path}.{name}"), field, rules, seen)?;
    }
    for nested in ["items", "additionalProperties"] {
        if schema[nested].is_object() {
            rules_of(&format!("{path}[]"), &schema[nested], rules, seen)?;
        }
    }
    Ok(())
}

/// What the stories show of one reason.
#[derive(Default)]
struct Shown {
    severity: String,
    kinds: BTreeSet<String>,
    /// The shortest message with its remedy, and the story it is from.
    example: Option<(String, String, String)>,
}

fn problems_page() -> anyhow::Result<String> {
    let mut shown: BTreeMap<String, Shown> = BTreeMap::new();
    for story in data::listed(&repository("tests/cases"))? {
        let file = story.join("problems.yaml");
        if !file.is_file() {
            continue;
        }
        let name = story.file_name().context("a story has a name")?;
        for problem in data::objects(&file)? {
            let entry = shown.entry(text(&problem, "/reason")).or_default();
            entry.severity = text(&problem, "/severity");
            let kind = text(&problem, "/object");
            let kind = kind.split('/').next().unwrap_or_default();
            entry.kinds.insert(kind.to_owned());
            let remedy = problem["remedy"].as_str().unwrap_or_default();
            let example = (
                text(&problem, "/message"),
                remedy.to_owned(),
                name.to_string_lossy().into_owned(),
            );
            let is_shorter = |old: &(String, String, String)| example.0.len() < old.0.len();
            if entry.example.as_ref().is_none_or(is_shorter) {
                entry.example = Some(example);
            }
        }
    }
    let mut page = format!(
        "{GENERATED}# Problems\n\n\
         A problem is attached to one object. Its reason is the `reason` of the condition `Ready`, the field `reason` of \
         `selvedge validate -o json`, and a label of the metrics.\n\
         An **error** rejects the object, or the part that the field configures; the object keeps its last valid state. \
         A **warning** rejects nothing.\n\n"
    );
    let samples = samples()?;
    for (reason, cause, template) in kinds_of_problems()? {
        writeln!(page, "## {reason}\n\n{cause}\n")?;
        let own = REMEDIES.iter().find(|(own, _)| *own == reason);
        let own = own.map_or(String::new(), |(_, remedy)| (*remedy).to_owned());
        let Some(Shown {
            severity,
            kinds,
            example: Some((message, remedy, story)),
        }) = shown.get(&reason)
        else {
            let sample = samples.iter().find(|sample| sample.reason() == reason);
            let sample = sample
                .with_context(|| format!("no story has {reason} ({template}): add a sample"))?;
            writeln!(page, "- Severity: {}", sample.severity())?;
            writeln!(
                page,
                "- Example: `{}`",
                sample.to_string().replace('`', "'")
            )?;
            let remedy = sample.remedy().unwrap_or(own);
            anyhow::ensure!(!remedy.is_empty(), "{reason} has no remedy");
            writeln!(page, "- Remedy: {}\n", escaped(&remedy))?;
            continue;
        };
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        writeln!(page, "- Severity: {severity}")?;
        writeln!(page, "- Seen on: {}", kinds.join(", "))?;
        writeln!(page, "- Example: `{}`", message.replace('`', "'"))?;
        let remedy = if remedy.is_empty() { &own } else { remedy };
        anyhow::ensure!(!remedy.is_empty(), "{reason} has no remedy");
        writeln!(page, "- Remedy: {}", escaped(remedy))?;
        writeln!(
            page,
            "- Manifests: [tests/cases/{story}](../../tests/cases/{story}/input.yaml)\n"
        )?;
    }
    Ok(page)
}

/// Remedies of reasons whose message itself says what to change.
const REMEDIES: [(&str, &str); 4] = [
    (
        "Unreadable",
        "correct the value at the named place; `kubectl explain` shows the type of each field",
    ),
    (
        "RuleBroken",
        "change the fields in the message so that the rule holds",
    ),
    (
        "NotCompiledYet",
        "remove the field; keeping it for a later version changes nothing",
    ),
    (
        "NoEffect",
        "remove the field, or change what the message names",
    ),
];

/// Problems that no story has.
fn samples() -> anyhow::Result<Vec<problem::Kind>> {
    let object = ObjectRef::named;
    Ok(vec![
        problem::Kind::FrrTooOld {
            node: "worker-1".to_owned(),
            version: "8.4".to_owned(),
            what: "IPv6 VTEPs",
            needed: "10.7",
        },
        problem::Kind::DestinationLeftOut {
            destination: object(Kind::Destination, "meters"),
            why: "VRF m2m-enc does not exist".to_owned(),
        },
        problem::Kind::AddressKept {
            address: "100.64.0.7".parse()?,
            node: "worker-1".to_owned(),
            claim: "mirror-lo.mir-worker-1".to_owned(),
            pool: "InClusterIPPool mirrors".to_owned(),
        },
        problem::Kind::TunnelToItself {
            address: "100.64.0.7".parse()?,
            node: "worker-1".to_owned(),
        },
        problem::Kind::DeletedKept {
            by: Box::new(object(Kind::Layer2Attachment, "web")),
            others: 1,
        },
        problem::Kind::NameGenerated {
            by: Box::new(object(Kind::Layer2Attachment, "web")),
        },
        problem::Kind::NeverAnnounced {
            network: "169.254.100.8/30".parse()?,
            other: "169.254.100.0/24".parse()?,
            field: "Settings.spec.bgp.workloadCIDRs",
        },
        problem::Kind::NoEvpnNeighbor,
        problem::Kind::NotCompiledKept {
            what: "a session with VPN address families alone",
        },
        problem::Kind::VtepFamilies {
            other: object(Kind::Underlay, "rack-b"),
            vni: 10_234_i64.try_into()?,
            others: 0,
        },
    ])
}

/// Name, documentation and message of every kind of problem, in the order of the source.
fn kinds_of_problems() -> anyhow::Result<Vec<(String, String, String)>> {
    let source = fs::read_to_string(repository("crates/compiler/src/problem.rs"))?;
    let start = source.find("pub enum Kind {").context("the kinds")?;
    let body = source.get(start..).unwrap_or_default();
    let body = body.split("\n}\n").next().unwrap_or_default();
    let (mut kinds, mut cause, mut message) = (Vec::new(), String::new(), String::new());
    let mut in_message = false;
    for line in body.lines().skip(1) {
        let Some(line) = line
            .strip_prefix("    ")
            .filter(|it| !it.starts_with("    "))
        else {
            if in_message {
                message.push_str(line.trim());
            }
            continue;
        };
        if let Some(doc) = line.strip_prefix("/// ") {
            cause.push_str(if cause.is_empty() { "" } else { " " });
            cause.push_str(doc);
        } else if let Some(text) = line.strip_prefix("#[error(") {
            text.trim_end_matches(")]").clone_into(&mut message);
            in_message = !line.ends_with(")]");
        } else if line.starts_with(char::is_uppercase) {
            let name = line.split(|c: char| !c.is_alphanumeric()).next();
            let template = message.split('"').nth(1).unwrap_or_default().to_owned();
            let name = name.unwrap_or_default().to_owned();
            kinds.push((name, std::mem::take(&mut cause), template));
            message.clear();
        } else {
            in_message = false;
        }
    }
    anyhow::ensure!(kinds.len() > 90, "{} kinds of problems", kinds.len());
    Ok(kinds)
}

fn cli_page() -> anyhow::Result<String> {
    let mut page = format!("{GENERATED}# Command line\n");
    help("selvedge", &[], &mut page)?;
    Ok(page)
}

fn help(title: &str, arguments: &[String], page: &mut String) -> anyhow::Result<()> {
    let output = Command::new(SELVEDGE)
        .args(arguments)
        .arg("--help")
        .env_remove("COLUMNS")
        .env_remove("NODE_NAME")
        .env_remove("POD_NAMESPACE")
        .env("NO_COLOR", "1")
        .output()?;
    let shown = String::from_utf8(output.stdout)?;
    let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
    write!(
        page,
        "\n## {title}\n\n```text\n{}\n```\n",
        shown.join("\n").trim_end()
    )?;
    let commands = shown
        .iter()
        .skip_while(|line| **line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    for line in commands {
        // A continued description is indented further than the names.
        let name = line.strip_prefix("  ").filter(|it| !it.starts_with(' '));
        let Some(name) = name.and_then(|line| line.split_whitespace().next()) else {
            continue;
        };
        if name != "help" {
            let mut inner = arguments.to_vec();
            inner.push(name.to_owned());
            help(&format!("{title} {name}"), &inner, page)?;
        }
    }
    Ok(())
}
