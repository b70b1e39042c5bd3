//! `selvedge explain`

pub(super) mod answer;
mod line;
mod printed;

use std::collections::{BTreeMap, BTreeSet};

use compiler::{Compilation, NodeConfig, ObjectRef, compile};
use explain::{
    element::{Element, Elements, elements},
    provenance::{Claim, Field, Source, Trace},
    query::{self, Query, QueryError},
    why_not::{Obstacle, why_not},
};
use serde_json::{Value, json};

use self::answer::{Answer, Part};
use super::{
    compile::unknown_node,
    elements::lines,
    groups::{groups, named, own_address, own_values, text},
    problems,
};
use crate::{
    args::{Ask, Format},
    input::World,
    names,
    output::{self, Style, Verdict, styled},
    suggest::nearest,
};

pub(super) fn run(args: &Ask) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    // What documents that are not read stand for is in no answer.
    problems::lines(&world, &[]);
    let mut question = args.thing.join(" ");
    let parsed = parse(&question);
    let mut answers = Answers::default();
    if parsed.is_ok() {
        for nodes in nodes(args, &world, &compilation)? {
            let Some(node) = nodes.first() else { continue };
            let mut asked = asked(&args.thing.join(" "), node, &world, &compilation)?;
            if args.output == Format::Table {
                asked.keep_requested();
            }
            question.clone_from(&asked.question);
            answers.add(nodes, &asked);
        }
    }
    if answers.is_empty() && (parsed.is_err() || line::is_statement(args, &compilation)) {
        // What is no other question may be an element as it is printed, or a line of frr.conf, which not every node has.
        for nodes in nodes_of_line(args, &compilation)? {
            let Some(node) = nodes.first() else { continue };
            let printed = printed::asked(&args.thing.join(" "), node, &world, &compilation)?;
            let asked = match printed {
                Some(asked) => Some(asked),
                None => line::asked(args, node, &world, &compilation)?,
            };
            let Some(asked) = asked else { continue };
            question.clone_from(&asked.question);
            answers.add(nodes, &asked);
        }
    }
    if answers.is_empty() {
        if let Some((verdict, text)) = line::without_element(args, &compilation) {
            output::note(&output::wrapped(&text, 2));
            return Ok(verdict);
        }
        parsed?;
        let text = not_found(args.node.as_deref(), &args.thing, &world, &compilation);
        output::note(&output::wrapped(&text, 2));
        return Ok(Verdict::Problems);
    }
    if args.output == Format::Table {
        output::text(&story(&world, &compilation, &question, &answers));
    } else {
        let answers = answers.exact.iter().chain(&answers.around);
        output::stream(
            args.output,
            answers.map(|answer| exact(&world, &compilation, &question, answer)),
        )?;
    }
    Ok(Verdict::Fine)
}

/// The answers of all nodes.
#[derive(Default)]
pub(super) struct Answers {
    exact: Vec<Answer>,
    /// Those that only have a route around the prefix that is asked about, where others have the prefix itself.
    around: Vec<Answer>,
}

impl Answers {
    pub(super) fn add(&mut self, nodes: Vec<String>, asked: &Asked) {
        let answers = if asked.thing.is_named_by(&asked.elements) {
            &mut self.exact
        } else {
            &mut self.around
        };
        answer::add(answers, nodes, asked);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.around.is_empty()
    }

    /// What is the same on some nodes once, with these nodes.
    pub(super) fn sections(&self) -> Vec<(Vec<String>, Vec<Part>)> {
        let mut sections = answer::sections(&self.exact);
        sections.extend(answer::sections(&self.around));
        sections
    }
}

/// Reads a question; where it begins with the name of a kind that is nearly one, the error says which is meant.
pub(super) fn parse(text: &str) -> anyhow::Result<Query> {
    Query::parse(text).map_err(|error| {
        let (kind, value) = text.split_once(['/', ' ']).unwrap_or((text, ""));
        let near = nearest(kind, query::kinds().into_iter());
        match near.filter(|_| matches!(error, QueryError::Unknown(_)) && !value.is_empty()) {
            Some(near) => {
                let separator = text.get(kind.len()..=kind.len()).unwrap_or_default();
                anyhow::anyhow!(
                    "no kind is called {kind:?}; did you mean {near}{separator}{value}?"
                )
            }
            None => error.into(),
        }
    })
}

/// What to say of a question whose answer is nothing.
pub(super) fn not_found(
    node: Option<&str>,
    words: &[String],
    world: &World,
    compilation: &Compilation,
) -> String {
    let question = words.join(" ");
    if compilation.nodes.contains_key(&question) {
        return format!(
            "{question} is a node; selvedge compile --what nodes --node {question} prints its config"
        );
    }
    let asked_node = node.or_else(|| compilation.nodes.keys().next().map(String::as_str));
    let query = Query::parse(&question).map(|query| query.resolved(&world.snapshot, compilation));
    let (Some(asked_node), Ok(query)) = (asked_node, query) else {
        return format!("{question} is on no node");
    };
    let trace = Trace::new(&world.snapshot, compilation);
    let obstacles = why_not(&trace, asked_node, &query, &[], &Elements::new());
    let undefined = obstacles.first();
    let undefined = undefined.filter(|one| matches!(one, Obstacle::NotDefined { .. }));
    if let Some(undefined) = undefined {
        let hint = undefined.remedy();
        let hint = hint.map_or_else(String::new, |hint| format!("\n  hint: {hint}"));
        return format!("{undefined}{hint}");
    }
    let place = node.unwrap_or("any node");
    format!("{query} is not on {place}; selvedge why-not shows the reason")
}

/// The node that is asked about; or all, in groups of those that have the same.
pub(super) fn nodes(
    args: &Ask,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Vec<Vec<String>>> {
    if let Some(node) = &args.node {
        known(node, compilation)?;
        return Ok(vec![vec![node.clone()]]);
    }
    of_all_nodes(&args.thing.join(" "), world, compilation)
}

/// All nodes, in groups of those that have the same answer to a question.
pub(super) fn of_all_nodes(
    question: &str,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Vec<Vec<String>>> {
    anyhow::ensure!(
        !compilation.nodes.is_empty(),
        "no Node in the input; add Node objects to it"
    );
    let query = Query::parse(question).ok();
    let query = query.map(|query| query.resolved(&world.snapshot, compilation));
    Ok(groups(compilation, query.as_ref()))
}

/// The same for a question that is a line of frr.conf or an element: one with an address that a single node has is on this node alone.
fn nodes_of_line(args: &Ask, compilation: &Compilation) -> anyhow::Result<Vec<Vec<String>>> {
    if let Some(node) = &args.node {
        known(node, compilation)?;
        return Ok(vec![vec![node.clone()]]);
    }
    let own = own_address(compilation, &args.thing.join(" "));
    Ok(groups(compilation, own.as_ref()))
}

/// A question and its answers.
pub(super) struct Asked {
    pub(super) thing: Query,
    /// The question in words.
    pub(super) question: String,
    /// All that the node has.
    pub(super) elements: Elements,
    /// What the question is about, each with who asks for it.
    pub(super) found: Vec<(Element, Vec<Claim>)>,
}

impl Asked {
    /// Of an object that requests elements itself, leaves out those that only others request, although they use its fields.
    pub(super) fn keep_requested(&mut self) {
        let Query::Object(object) = &self.thing else {
            return;
        };
        let is_own = |(_, claims): &(Element, Vec<Claim>)| {
            let mut claims = claims.iter();
            claims.any(|claim| claim.by == *object)
        };
        if !output::is_all() && self.found.iter().any(is_own) {
            self.found.retain(is_own);
        }
    }
}

/// Reads the question and finds what it is about.
pub(super) fn asked(
    question: &str,
    node: &str,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Asked> {
    let thing = parse(question)?.resolved(&world.snapshot, compilation);
    let config = known(node, compilation)?;
    let elements = elements(&config.content());
    let trace = Trace::new(&world.snapshot, compilation);
    let claims = |element: &Element| trace.claims(node, element);
    let mut found: Vec<(Element, Vec<Claim>)> = thing
        .elements(&elements)
        .into_iter()
        .map(|one| (one.clone(), claims(&one)))
        .collect();
    match &thing {
        Query::Object(object) => found = of_objects(&[object], &elements, claims),
        Query::Name(name) if found.is_empty() => {
            let objects = world.origins.keys();
            let named: Vec<&ObjectRef> = objects
                .filter(|object| *object.key.name == **name)
                .collect();
            found = of_objects(&named, &elements, claims);
        }
        _ => {}
    }
    Ok(Asked {
        question: thing.to_string(),
        thing,
        elements,
        found,
    })
}

/// The config of a node that is in the input.
pub(super) fn known<'a>(
    node: &str,
    compilation: &'a Compilation,
) -> anyhow::Result<&'a NodeConfig> {
    let config = compilation.nodes.get(node);
    let config = config.map(|config| &**config);
    config.ok_or_else(|| anyhow::anyhow!("{}", unknown_node(node, compilation)))
}

/// The elements that one of these objects asks for, or has a part in.
fn of_objects(
    objects: &[&ObjectRef],
    elements: &Elements,
    claims: impl Fn(&Element) -> Vec<Claim>,
) -> Vec<(Element, Vec<Claim>)> {
    let mut found = Vec::new();
    for element in elements.keys() {
        let mut claims = claims(element);
        claims.retain(|claim| {
            let mut fields = claim.fields().into_iter();
            objects.contains(&&claim.by) || fields.any(|field| objects.contains(&&field.object))
        });
        if !claims.is_empty() {
            found.push((element.clone(), claims));
        }
    }
    found
}

/// How much of an answer is shown.
#[derive(Clone, Copy, Debug)]
enum Detail {
    /// Each element with so many of the claims behind it, field by field.
    Fields(usize),
    /// Elements by the objects that request them, so many of each named.
    Requesters(usize),
}

/// From the most that is shown to the least: the first that fits a screen is taken.
const DETAILS: [Detail; 7] = [
    Detail::Fields(usize::MAX),
    Detail::Fields(1),
    Detail::Requesters(12),
    Detail::Requesters(8),
    Detail::Requesters(5),
    Detail::Requesters(3),
    Detail::Requesters(2),
];

fn story(world: &World, compilation: &Compilation, question: &str, answers: &Answers) -> String {
    let sections = answers.sections();
    let all: BTreeSet<&String> = sections.iter().flat_map(|(nodes, _)| nodes).collect();
    let all: Vec<String> = all.into_iter().cloned().collect();
    let heading = format!("{question} on {}", named(&all));
    let heading = format!("{}\n", styled(Style::Bold, &heading));
    let whole = |detail: Detail| {
        let mut text = vec![heading.clone()];
        for (nodes, parts) in &sections {
            if nodes.len() < all.len() {
                let place = format!("on {}", named(nodes));
                text.push(format!("\n{}\n", styled(Style::Bold, &place)));
            }
            let told = Told {
                world,
                compilation,
                nodes,
            };
            text.push(told.section(parts, detail));
        }
        if matches!(detail, Detail::Requesters(_)) {
            let end = "\nto see the fields behind an element, explain it alone, or use --all\n";
            text.push(end.to_owned());
        }
        output::wrapped(&text.concat(), 4)
    };
    let fits = |text: &String| output::is_all() || text.lines().count() < output::ROWS;
    let mut least = String::new();
    for detail in DETAILS {
        least = whole(detail);
        if fits(&least) {
            return least;
        }
    }
    output::capped(&least, output::ROWS - 1)
}

/// What is said of nodes that have the same.
struct Told<'a> {
    world: &'a World,
    compilation: &'a Compilation,
    nodes: &'a [String],
}

impl Told<'_> {
    fn section(&self, parts: &[Part], detail: Detail) -> String {
        // Elements of the same origin are explained once.
        let mut groups: Vec<(Vec<&Part>, &Vec<Claim>)> = Vec::new();
        for part in parts {
            let is_same = |(known, claims): &&mut (Vec<&Part>, &Vec<Claim>)| {
                let nodes = known.first().map(|known| &known.nodes);
                **claims == part.claims && nodes == Some(&part.nodes)
            };
            match groups.iter_mut().find(is_same) {
                Some((parts, _)) => parts.push(part),
                None => groups.push((vec![part], &part.claims)),
            }
        }
        match detail {
            Detail::Fields(most) => self.with_fields(&groups, most),
            Detail::Requesters(named) => self.by_requester(&groups, named),
        }
    }

    /// Elements with so many of the claims behind each, field by field.
    fn with_fields(&self, groups: &[(Vec<&Part>, &Vec<Claim>)], most: usize) -> String {
        let mut text = Vec::new();
        for (parts, claims) in groups {
            text.push("\n".to_owned());
            for (name, is) in parts.iter().flat_map(|part| self.values(part)) {
                text.push(format!("{}\n", styled(Style::Green, &name)));
                if !is.is_empty() {
                    text.push(format!("  {}\n", styled(Style::Dim, &is)));
                }
            }
            for claim in claims.iter().take(most) {
                let nodes = parts.first().and_then(|part| part.nodes.get(&claim.by));
                text.push(of_claim(self.world, claim, nodes.copied()));
            }
            let others = claims.iter().skip(most).map(|claim| &claim.by);
            let others: BTreeSet<&ObjectRef> = others.collect();
            if !others.is_empty() {
                text.push(format!("  also requested by {}\n", objects(&others)));
            }
        }
        text.concat()
    }

    /// An element in words with what it is; of one node alone as it is there.
    fn values(&self, part: &Part) -> Vec<(String, String)> {
        if let [_] = self.nodes {
            let exact = part.exact.iter();
            let exact = exact.map(|(element, value)| (element.to_string(), summary(value)));
            return exact.collect();
        }
        let mut is = summary(&part.common);
        let own = part.own_fields().join(", ");
        if !own.is_empty() {
            let separator = if is.is_empty() { "" } else { ", " };
            is = format!("{is}{separator}different on each node: {own}");
        }
        vec![(self.text(part), is)]
    }

    fn text(&self, part: &Part) -> String {
        text(self.compilation, &part.element, self.nodes)
    }

    /// Elements by the objects that request them, each with its place.
    fn by_requester(&self, groups: &[(Vec<&Part>, &Vec<Claim>)], most: usize) -> String {
        type Requesters<'a> = BTreeMap<&'a ObjectRef, Option<usize>>;
        let mut found: Vec<(Requesters<'_>, Vec<&Part>)> = Vec::new();
        for (parts, claims) in groups {
            let nodes = parts.first().map(|part| &part.nodes);
            let by = claims.iter().map(|claim| {
                let number = nodes.and_then(|nodes| nodes.get(&claim.by));
                (&claim.by, number.copied())
            });
            let by: Requesters<'_> = by.collect();
            match found.iter_mut().find(|(known, _)| *known == by) {
                Some((_, known)) => known.extend(parts.iter().copied()),
                None => found.push((by, parts.clone())),
            }
        }
        let mut text = Vec::new();
        for (by, parts) in found {
            text.push("\n".to_owned());
            let parts = parts.into_iter();
            let lines = lines(parts.map(|part| (&part.element, self.text(part))));
            for line in lines.iter().take(most) {
                text.push(format!("{}\n", styled(Style::Green, line)));
            }
            if let Some(more) = lines.len().checked_sub(most).filter(|more| *more > 0) {
                text.push(format!("and {more} more\n"));
            }
            for (object, nodes) in by.iter().take(most) {
                let origin = self.world.origins.get(object);
                let place = origin.map(|origin| origin.at("").to_string());
                let place = styled(Style::Dim, &place.unwrap_or_default());
                let on = on_nodes(*nodes);
                let line = format!("  requested by {object}{on}  {place}");
                text.push(format!("{}\n", line.trim_end()));
            }
            let others: BTreeSet<&ObjectRef> = by.into_keys().skip(most).collect();
            if !others.is_empty() {
                text.push(format!("  also requested by {}\n", objects(&others)));
            }
        }
        text.concat()
    }
}

/// The most columns that the objects of one kind take in a row.
const OBJECTS: usize = 40;

/// Objects in a few words, those of one kind together.
pub(super) fn objects(objects: &BTreeSet<&ObjectRef>) -> String {
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for object in objects {
        let of_kind = kinds.entry(object.kind.to_string()).or_default();
        of_kind.push(object.key.to_string());
    }
    let kinds = kinds.iter().map(|(kind, keys)| {
        let keys = names::brief(keys, OBJECTS);
        format!("{kind} {keys}")
    });
    kinds.collect::<Vec<_>>().join(", ")
}

/// What an element is, in a few words: its fields; … stands for those that do not fit a few words.
fn summary(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| name.as_str() != "name");
            let words = fields.filter_map(|(name, value)| match value {
                Value::Object(inner) if name == "devices" => {
                    let devices: Vec<String> = inner.values().filter_map(plain).collect();
                    Some(format!("devices {}", devices.join(" ")))
                }
                Value::Null => None,
                Value::Array(items) if items.is_empty() => None,
                value => {
                    let text = plain(value).unwrap_or_else(|| "…".to_owned());
                    Some(format!("{name} {text}").trim_end().to_owned())
                }
            });
            words.collect::<Vec<_>>().join(", ")
        }
        Value::Array(rules) if rules.iter().any(|rule| rule["type"] == "reject") => {
            "rejected".to_owned()
        }
        other => plain(other).unwrap_or_default(),
    }
}

/// How many fields of an inner object are shown.
const INNER: usize = 4;

/// A value in a few words, where it fits them.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Array(items) => {
            if items.iter().any(Value::is_object) {
                return None;
            }
            let items: Option<Vec<String>> = items.iter().map(plain).collect();
            items
                .filter(|items| !items.is_empty())
                .map(|items| items.join(" "))
        }
        Value::Object(fields) if fields.len() <= INNER => {
            let fields = fields
                .iter()
                .map(|(name, value)| Some(format!("{name} {}", plain(value)?)));
            let fields: Option<Vec<String>> = fields.collect();
            Some(fields?.join(" "))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// How many of the nodes an object is for, where it is not for all.
fn on_nodes(nodes: Option<usize>) -> String {
    nodes.map_or_else(String::new, |nodes| {
        format!(" on {}", output::counted(nodes, "node"))
    })
}

/// Who asks, and by which fields: the fields of each low-level object, and what is behind each of them.
fn of_claim(world: &World, claim: &Claim, nodes: Option<usize>) -> String {
    let on = on_nodes(nodes);
    let mut text = vec![format!("  requested by {}{on}\n", claim.by)];
    let mut objects: BTreeMap<(bool, &ObjectRef), Vec<&Source>> = BTreeMap::new();
    let is_own = |field: &Field| field.object == claim.by;
    let of_claim = claim.sources.iter();
    let of_claim =
        of_claim.filter(|source| is_own(&source.field) || source.behind.iter().any(is_own));
    let own: BTreeSet<&ObjectRef> = of_claim.map(|source| &source.field.object).collect();
    for source in &claim.sources {
        let is_other = !own.contains(&source.field.object);
        let of_object = objects.entry((is_other, &source.field.object)).or_default();
        of_object.push(source);
    }
    let fields = claim.sources.iter().flat_map(|source| {
        let own = source.behind.is_empty().then_some(&source.field);
        source.behind.iter().chain(own)
    });
    let width = fields.map(|field| field.to_string().chars().count()).max();
    let width = width.unwrap_or_default();
    let with_place = |field: &Field| {
        let origin = world.origins.get(&field.object);
        let place = origin.map(|origin| origin.at(&field.path).to_string());
        let place = place.unwrap_or_default();
        let place = styled(Style::Dim, &place);
        let line = format!("{:width$}  {place}", field.to_string());
        line.trim_end().to_owned()
    };
    for ((is_other, object), sources) in objects {
        let is_generated = sources.iter().any(|source| !source.behind.is_empty());
        if is_generated {
            let how = if is_other { "because of" } else { "through" };
            text.push(format!("    {how} {object}\n"));
        }
        let paths = sources
            .iter()
            .map(|source| source.field.path.chars().count());
        let paths = paths.max().unwrap_or_default();
        for source in sources {
            if source.behind.is_empty() {
                text.push(format!("    ← {}\n", with_place(&source.field)));
            }
            for (place, field) in source.behind.iter().enumerate() {
                let path = if place == 0 {
                    source.field.path.as_str()
                } else {
                    ""
                };
                text.push(format!("      {path:paths$} ← {}\n", with_place(field)));
            }
        }
    }
    text.concat()
}

fn exact(world: &World, compilation: &Compilation, question: &str, answer: &Answer) -> Value {
    let claims = |part: &Part| -> Vec<Value> {
        let claims = part.claims.iter();
        claims.map(|claim| placed(world, claim)).collect()
    };
    let nodes = answer.nodes.as_slice();
    let of_part = |part: &Part| -> Vec<Value> {
        if let [_] = nodes {
            let exact = part.exact.iter().map(|(element, value)| {
                json!({
                    "element": element,
                    "text": element.to_string(),
                    "value": value,
                    "claims": claims(part),
                })
            });
            return exact.collect();
        }
        let mut value = json!({
            "element": part.element,
            "text": text(compilation, &part.element, nodes),
            "value": part.common,
            "claims": claims(part),
        });
        let own = own_values(compilation, &part.element, nodes);
        if let (Some(fields), Some(own)) = (value.as_object_mut(), own) {
            fields.insert("ofNodes".to_owned(), own.into());
        }
        vec![value]
    };
    let mut value = json!({
        "nodes": nodes,
        "question": question,
        "elements": answer.parts.iter().flat_map(of_part).collect::<Vec<_>>(),
    });
    if let (Some(fields), [node]) = (value.as_object_mut(), nodes) {
        fields.insert("node".to_owned(), node.as_str().into());
    }
    value
}

/// A claim as a value, with the places of people's objects.
fn placed(world: &World, claim: &Claim) -> Value {
    let of_field = |field: &Field| {
        let mut value = json!({"object": field.object, "field": field.path});
        if let (Some(fields), Some(origin)) =
            (value.as_object_mut(), world.origins.get(&field.object))
        {
            let at = origin.at(&field.path);
            fields.insert("place".to_owned(), at.to_string().into());
            fields.extend(at.fields());
        }
        value
    };
    let of_source = |source: &Source| {
        let mut value = of_field(&source.field);
        if let Some(fields) = value.as_object_mut().filter(|_| !source.behind.is_empty()) {
            let behind: Vec<Value> = source.behind.iter().map(of_field).collect();
            fields.insert("behind".to_owned(), behind.into());
        }
        value
    };
    let sources: Vec<Value> = claim.sources.iter().map(of_source).collect();
    json!({"by": claim.by, "sources": sources})
}
