//! `selvedge explain`

mod line;

use std::collections::{BTreeMap, BTreeSet};

use compiler::{Compilation, NodeConfig, ObjectRef, compile};
use explain::{
    element::{Element, Elements, elements},
    provenance::{Claim, Field, Source, Trace},
    query::Query,
};
use serde_json::{Value, json};

use super::{
    compile::unknown_node,
    elements::lines,
    groups::{groups, named},
};
use crate::{
    args::{Ask, Format},
    input::World,
    output::{self, Style, Verdict, styled},
};

pub(super) fn run(args: &Ask) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    unread(&world);
    let mut answers: Vec<(Vec<String>, Asked)> = Vec::new();
    let mut question = args.thing.join(" ");
    for nodes in nodes(args, &world, &compilation)? {
        let Some(node) = nodes.first() else { continue };
        let asked = match line::asked(args, node, &world, &compilation)? {
            Some(asked) => asked,
            None => asked(args, node, &world, &compilation)?,
        };
        question.clone_from(&asked.question);
        if asked.found.is_empty() {
            continue;
        }
        let same = answers.iter_mut().find(|(_, known)| {
            let values = |one: &Asked| -> Vec<Option<Value>> {
                let found = one.found.iter();
                found
                    .map(|(element, _)| one.elements.get(element).cloned())
                    .collect()
            };
            known.found == asked.found && values(known) == values(&asked)
        });
        match same {
            Some((known, _)) => known.extend(nodes),
            None => answers.push((nodes, asked)),
        }
    }
    if answers.is_empty() {
        let place = args.node.as_deref().unwrap_or("any node");
        output::note(&format!(
            "{question} is not on {place}; selvedge why-not shows the reason"
        ));
        return Ok(Verdict::Problems);
    }
    if args.output == Format::Table {
        let most = if output::is_all() {
            usize::MAX
        } else {
            ANSWERS
        };
        for (place, (nodes, asked)) in answers.iter().take(most).enumerate() {
            let between = if place == 0 { "" } else { "\n" };
            let story = story(&world, asked, nodes);
            output::text(&format!("{between}{}", output::wrapped(&story, 4)));
        }
        let rest = answers.iter().skip(most);
        let rest: Vec<String> = rest.flat_map(|(nodes, _)| nodes.iter().cloned()).collect();
        if !rest.is_empty() {
            let text = format!(
                "\nother answers on {}; use --node NAME or --all\n",
                named(&rest)
            );
            output::text(&output::wrapped(&text, 2));
        }
    } else {
        let answers = answers.iter();
        output::stream(
            args.output,
            answers.map(|(nodes, asked)| exact(&world, asked, nodes)),
        )?;
    }
    Ok(Verdict::Fine)
}

/// How many different answers are shown for nodes of which none is named.
const ANSWERS: usize = 2;

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
    anyhow::ensure!(
        !compilation.nodes.is_empty(),
        "no Node in the input; add Node objects to it"
    );
    let query = Query::parse(&args.thing.join(" ")).ok();
    let query = query.map(|query| query.resolved(&world.snapshot, compilation));
    Ok(groups(compilation, query.as_ref()))
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

/// Reads the question and finds what it is about.
pub(super) fn asked(
    args: &Ask,
    node: &str,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<Asked> {
    let thing = Query::parse(&args.thing.join(" "))?.resolved(&world.snapshot, compilation);
    let config = known(node, compilation)?;
    let elements = elements(&config.content());
    let trace = Trace::new(&world.snapshot, compilation);
    let claims = |element: &Element| trace.claims(node, element);
    let found = match &thing {
        Query::Object(object) => of_object(object, &elements, claims),
        Query::Name(name) => {
            let found = thing.elements(&elements);
            if found.is_empty() {
                let mut objects = world.origins.keys();
                let named = objects.find(|object| *object.key.name == **name);
                named.map_or_else(Vec::new, |object| of_object(object, &elements, claims))
            } else {
                found
                    .into_iter()
                    .map(|one| (one.clone(), claims(&one)))
                    .collect()
            }
        }
        thing => {
            let found = thing.elements(&elements).into_iter();
            found.map(|one| (one.clone(), claims(&one))).collect()
        }
    };
    Ok(Asked {
        question: thing.to_string(),
        thing,
        elements,
        found,
    })
}

/// Prints which documents are not read: what they stand for is in no answer.
pub(super) fn unread(world: &World) {
    for one in &world.unknown {
        let line = format!("{}: {one}", styled(Style::Red, "error"));
        output::note(&output::wrapped(&line, 4));
    }
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

/// The elements that an object asks for, or has a part in.
pub(super) fn of_object(
    object: &ObjectRef,
    elements: &Elements,
    claims: impl Fn(&Element) -> Vec<Claim>,
) -> Vec<(Element, Vec<Claim>)> {
    let mut found = Vec::new();
    for element in elements.keys() {
        let mut claims = claims(element);
        claims.retain(|claim| {
            claim.by == *object || claim.fields().iter().any(|field| field.object == *object)
        });
        if !claims.is_empty() {
            found.push((element.clone(), claims));
        }
    }
    found
}

fn story(world: &World, asked: &Asked, nodes: &[String]) -> String {
    let heading = format!("{} on {}", asked.question, named(nodes));
    let mut text = vec![format!("{}\n", styled(Style::Bold, &heading))];
    // Elements of the same origin are explained once.
    let mut groups: Vec<(Vec<&Element>, &Vec<Claim>)> = Vec::new();
    for (element, claims) in &asked.found {
        match groups.iter_mut().find(|(_, known)| *known == claims) {
            Some((elements, _)) => elements.push(element),
            None => groups.push((vec![element], claims)),
        }
    }
    // Of an object that configures much, what each part is matters more than every field behind it.
    let fits = |body: &String| output::is_all() || body.lines().count() <= ROWS;
    let bodies = [usize::MAX, CLAIMS].into_iter();
    let mut bodies = bodies.map(|claims| with_fields(world, asked, &groups, claims));
    let body = bodies.find(fits);
    text.push(body.unwrap_or_else(|| by_requester(world, &groups)));
    text.concat()
}

/// The lines of an answer that shows all fields.
const ROWS: usize = 40;
/// How many claims of one element are shown with their fields where all are too many.
const CLAIMS: usize = 1;

/// Elements with so many of the claims behind each, field by field.
fn with_fields(
    world: &World,
    asked: &Asked,
    groups: &[(Vec<&Element>, &Vec<Claim>)],
    most: usize,
) -> String {
    let mut text = Vec::new();
    for (elements, claims) in groups {
        text.push("\n".to_owned());
        for element in elements {
            text.push(format!("{}\n", styled(Style::Green, &element.to_string())));
            let is = asked.elements.get(element).map(summary).unwrap_or_default();
            if !is.is_empty() {
                text.push(format!("  {}\n", styled(Style::Dim, &is)));
            }
        }
        for claim in claims.iter().take(most) {
            text.push(of_claim(world, claim));
        }
        let others = claims.iter().skip(most).map(|claim| claim.by.to_string());
        let others: Vec<String> = others.collect();
        if !others.is_empty() {
            text.push(format!("  also requested by {}\n", others.join(", ")));
        }
    }
    text.concat()
}

/// Elements by the objects that request them, each with its place.
fn by_requester(world: &World, groups: &[(Vec<&Element>, &Vec<Claim>)]) -> String {
    let mut found: Vec<(BTreeSet<&ObjectRef>, Vec<&Element>)> = Vec::new();
    for (elements, claims) in groups {
        let by: BTreeSet<&ObjectRef> = claims.iter().map(|claim| &claim.by).collect();
        match found.iter_mut().find(|(known, _)| *known == by) {
            Some((_, known)) => known.extend(elements.iter().copied()),
            None => found.push((by, elements.clone())),
        }
    }
    let mut text = Vec::new();
    for (by, elements) in found {
        text.push("\n".to_owned());
        let elements = lines(elements.into_iter());
        for element in elements.iter().take(NAMED) {
            text.push(format!("{}\n", styled(Style::Green, element)));
        }
        if let Some(more) = elements.len().checked_sub(NAMED).filter(|more| *more > 0) {
            text.push(format!("and {more} more\n"));
        }
        for object in by.iter().take(NAMED) {
            let place = world
                .origins
                .get(object)
                .map(|origin| origin.at("").to_string());
            let place = styled(Style::Dim, &place.unwrap_or_default());
            text.push(format!("  requested by {object}  {place}\n"));
        }
    }
    text.push("\nsee the fields of one element: explain it alone, or use --all\n".to_owned());
    text.concat()
}

/// How many names are shown in a row of many.
const NAMED: usize = 12;

/// What an element is, in a few words: its plain fields.
fn summary(value: &Value) -> String {
    fn plain(value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Array(items) => {
                let items: Option<Vec<String>> = items.iter().map(plain).collect();
                items
                    .filter(|items| !items.is_empty())
                    .map(|items| items.join(" "))
            }
            Value::Null | Value::Object(_) => None,
        }
    }
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| name.as_str() != "name");
            let words = fields.filter_map(|(name, value)| match value {
                Value::Object(inner) if name == "devices" => {
                    let devices: Vec<String> = inner.values().filter_map(plain).collect();
                    Some(format!("devices {}", devices.join(" ")))
                }
                value => plain(value).map(|value| format!("{name} {value}")),
            });
            words.collect::<Vec<_>>().join(", ")
        }
        Value::Array(rules) if rules.iter().any(|rule| rule["type"] == "reject") => {
            "rejected".to_owned()
        }
        other => plain(other).unwrap_or_default(),
    }
}

/// Who asks, and by which fields: the fields of each low-level object, and what is behind each of them.
fn of_claim(world: &World, claim: &Claim) -> String {
    let mut text = vec![format!("  requested by {}\n", claim.by)];
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

fn exact(world: &World, asked: &Asked, nodes: &[String]) -> Value {
    let of_element = |(element, claims): &(Element, Vec<Claim>)| {
        json!({
            "element": element,
            "text": element.to_string(),
            "value": asked.elements.get(element),
            "claims": claims.iter().map(|claim| placed(world, claim)).collect::<Vec<_>>(),
        })
    };
    let mut value = json!({
        "nodes": nodes,
        "question": asked.question,
        "elements": asked.found.iter().map(of_element).collect::<Vec<_>>(),
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
            fields.insert("file".to_owned(), json!(at.file));
            if let Some(place) = at.place {
                fields.insert("line".to_owned(), place.line.into());
                fields.insert("column".to_owned(), place.column.into());
            }
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
