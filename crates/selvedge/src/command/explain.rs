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

use super::compile::unknown_node;
use crate::{
    args::{Ask, Format},
    input::World,
    output::{self, Style, Verdict, styled},
};

/// How many elements are explained before the rest is only named.
const EXPLAINED: usize = 12;

pub(super) fn run(args: &Ask) -> anyhow::Result<Verdict> {
    let world = super::world(&args.input)?;
    let compilation = compile(&world.snapshot);
    let asked = match line::asked(args, &world, &compilation)? {
        Some(asked) => asked,
        None => asked(args, &world, &compilation)?,
    };
    if asked.found.is_empty() {
        output::note(&format!(
            "{} is not on {}; selvedge why-not says what stands in the way",
            asked.question, args.node
        ));
        return Ok(Verdict::Problems);
    }
    if args.output == Format::Table {
        output::text(&story(&world, &asked, &args.node));
    } else {
        output::documents(args.output, &[exact(&world, &asked, &args.node)])?;
    }
    Ok(Verdict::Fine)
}

/// A question and its answers.
pub(super) struct Asked {
    pub(super) thing: Query,
    /// The question in words.
    question: String,
    /// All that the node has.
    pub(super) elements: Elements,
    /// What the question is about, each with who asks for it.
    pub(super) found: Vec<(Element, Vec<Claim>)>,
}

/// Reads the question and finds what it is about.
pub(super) fn asked(args: &Ask, world: &World, compilation: &Compilation) -> anyhow::Result<Asked> {
    let thing = Query::parse(&args.thing.join(" "))?.resolved(&world.snapshot, compilation);
    let config = known(&args.node, world, compilation)?;
    let elements = elements(&config.content());
    let trace = Trace::new(&world.snapshot, compilation);
    let claims = |element: &Element| trace.claims(&args.node, element);
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

/// The config of a node that is in the input; what could not be read is said beside the answer.
pub(super) fn known<'a>(
    node: &str,
    world: &World,
    compilation: &'a Compilation,
) -> anyhow::Result<&'a NodeConfig> {
    for (origin, message) in &world.unknown {
        output::note(&format!(
            "{}: {origin}: {message}",
            styled(Style::Red, "error")
        ));
    }
    let config = compilation.nodes.get(node);
    let config = config.map(|config| &**config);
    config.ok_or_else(|| anyhow::anyhow!("{}", unknown_node(node, compilation)))
}

/// The elements that an object asks for, or has a part in.
fn of_object(
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

fn story(world: &World, asked: &Asked, node: &str) -> String {
    let heading = format!("{} on {node}", asked.question);
    let mut text = vec![format!("{}\n", styled(Style::Bold, &heading))];
    for (element, claims) in asked.found.iter().take(EXPLAINED) {
        text.push(format!(
            "\n{}\n",
            styled(Style::Green, &element.to_string())
        ));
        let is = asked.elements.get(element).map(summary).unwrap_or_default();
        if !is.is_empty() {
            text.push(format!("  {}\n", styled(Style::Dim, &is)));
        }
        for claim in claims {
            text.push(of_claim(world, claim));
        }
    }
    let rest = asked.found.iter().skip(EXPLAINED);
    let rest: Vec<String> = rest.map(|(element, _)| format!("  {element}\n")).collect();
    if !rest.is_empty() {
        text.push(format!("\nand {} more; ask for one of them:\n", rest.len()));
        text.extend(rest);
    }
    text.concat()
}

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
            "refused".to_owned()
        }
        other => plain(other).unwrap_or_default(),
    }
}

/// Who asks, and by which fields: the fields of each low-level object, and what is behind each of them.
fn of_claim(world: &World, claim: &Claim) -> String {
    let mut text = vec![format!("  asked for by {}\n", claim.by)];
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
        let place = origin.map(crate::input::Origin::place).unwrap_or_default();
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

fn exact(world: &World, asked: &Asked, node: &str) -> Value {
    let of_element = |(element, claims): &(Element, Vec<Claim>)| {
        json!({
            "element": element,
            "text": element.to_string(),
            "value": asked.elements.get(element),
            "claims": claims.iter().map(|claim| placed(world, claim)).collect::<Vec<_>>(),
        })
    };
    json!({
        "node": node,
        "question": asked.question,
        "elements": asked.found.iter().map(of_element).collect::<Vec<_>>(),
    })
}

/// A claim as a value, with the places of people's objects.
fn placed(world: &World, claim: &Claim) -> Value {
    let of_field = |field: &Field| {
        let mut value = json!({"object": field.object, "field": field.path});
        if let (Some(fields), Some(origin)) =
            (value.as_object_mut(), world.origins.get(&field.object))
        {
            fields.insert("place".to_owned(), origin.place().into());
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
