//! Changes one field of one document: to another valid value of its kind, or away. The document can be read afterwards: that an
//! object goes as a whole says nothing about its field.

use compiler::snapshot::ObjectRef;
use serde_json::{Map, Value, json};

use crate::{provenance::Field, tests::snapshot};

/// Whether a document is this object.
pub(super) fn is(document: &Value, object: &ObjectRef) -> bool {
    document["kind"] == object.kind.to_string() && document["metadata"]["name"] == *object.key.name
}

/// The world with one field changed, in every way that its value can be.
pub(super) fn mutations(world: &[Value], field: &Field) -> Vec<Vec<Value>> {
    let Some(place) = world
        .iter()
        .position(|document| is(document, &field.object))
    else {
        return Vec::new();
    };
    let steps = steps(&field.path);
    // What is not written is what holds anyway; writing something else is a change of it too.
    let value = at(&world[place], &steps).cloned().unwrap_or(Value::Null);
    let mut values: Vec<Option<Value>> =
        others(&field.path, &value).into_iter().map(Some).collect();
    if !value.is_null() {
        values.push(None);
    }
    let with = |(steps, value): (&[Step], Option<Value>)| {
        let mut world = world.to_vec();
        put(&mut world[place], steps, value);
        world
    };
    let mut changes: Vec<(&[Step], Option<Value>)> = Vec::new();
    changes.extend(values.into_iter().map(|value| (steps.as_slice(), value)));
    // A network goes with what it stands in.
    if let [around @ .., Step::Name(name)] = steps.as_slice()
        && name == "cidr"
    {
        changes.push((around, None));
    }
    let mut worlds: Vec<Vec<Value>> = changes.into_iter().map(with).collect();
    // The whole spec stands for the object itself, which is enough for some elements to be there.
    if field.path == "spec" {
        let mut world = world.to_vec();
        world.remove(place);
        worlds.push(world);
    }
    let can_be_read = |changed: &Vec<Value>| {
        let unreadable = snapshot(changed).unreadable;
        !unreadable.iter().any(|one| one.subject == field.object)
    };
    worlds.retain(can_be_read);
    worlds
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Name(String),
    Place(usize),
}

/// `spec.a[0].b` in steps; a name in quotes may hold dots.
fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = quoted.split_once("\"]").expect("a closed bracket");
            steps.push(Step::Name(name.to_owned()));
            rest = after;
        } else if let Some(place) = rest.strip_prefix('[') {
            let (place, after) = place.split_once(']').expect("a closed bracket");
            steps.push(Step::Place(place.parse().expect("a place in a list")));
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            steps.push(Step::Name(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    steps
}

fn at<'a>(document: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(document, |value, step| match step {
        Step::Name(name) => value.get(name),
        Step::Place(place) => value.get(place),
    })
}

fn put(document: &mut Value, steps: &[Step], value: Option<Value>) {
    let [inner @ .., last] = steps else { return };
    let mut parent = document;
    for step in inner {
        parent = match step {
            Step::Name(name) => &mut parent[name.as_str()],
            Step::Place(place) => &mut parent[*place],
        };
    }
    if parent.is_null() {
        *parent = Value::Object(Map::new());
    }
    match (last, value) {
        (Step::Name(name), Some(value)) => parent[name.as_str()] = value,
        (Step::Place(place), Some(value)) => parent[*place] = value,
        (Step::Name(name), None) => {
            parent.as_object_mut().expect("fields").remove(name);
        }
        (Step::Place(place), None) => {
            parent.as_array_mut().expect("a list").remove(*place);
        }
    }
}

/// Other values of the kind that this one is of.
fn others(path: &str, value: &Value) -> Vec<Value> {
    match value {
        Value::Null if path.ends_with("routeridcidr") => vec![json!("10.250.0.0/24")],
        Value::Null if path.ends_with("mtu") => vec![json!(4000)],
        Value::Bool(flag) => vec![json!(!flag)],
        Value::Number(number) => vec![json!(number.as_u64().expect("a natural number") + 170)],
        Value::String(text) => other_text(text),
        Value::Array(items) => {
            let first = items.first().map(|first| others(path, first));
            let with = |first| {
                let mut items = items.clone();
                items[0] = first;
                Value::Array(items)
            };
            first.unwrap_or_default().into_iter().map(with).collect()
        }
        Value::Object(fields) if fields.contains_key("name") => {
            let mut fields = fields.clone();
            fields.insert("name".to_owned(), json!("missing"));
            vec![Value::Object(fields)]
        }
        Value::Object(fields) if fields.contains_key("matchLabels") => {
            vec![json!({"matchLabels": {"nowhere": "to-be-found"}})]
        }
        Value::Null | Value::Object(_) => Vec::new(),
    }
}

fn other_text(text: &str) -> Vec<Value> {
    for (one, other) in [("ingress", "egress"), ("l3gre", "l2gre")] {
        if text == one || text == other {
            return vec![json!(if text == one { other } else { one })];
        }
    }
    if let Ok(net) = text.parse::<ipnet::Ipv4Net>() {
        // Of a gateway the host part stays.
        let host = u32::from(net.addr()) & u32::from(net.hostmask());
        // Two, because another field may have got the first one.
        let other = |second: u8| {
            let network = std::net::Ipv4Addr::new(172, second, 0, 0);
            let network = u32::from(network) & u32::from(net.netmask());
            let address = std::net::Ipv4Addr::from(network | host);
            json!(format!("{address}/{}", net.prefix_len()))
        };
        return vec![other(29), other(30)];
    }
    if let Ok(net) = text.parse::<ipnet::Ipv6Net>() {
        let host = u128::from(net.addr()) & u128::from(net.hostmask());
        let network = (0xfd29_u128 << 112) & u128::from(net.netmask());
        let address = std::net::Ipv6Addr::from(network | host);
        return vec![json!(format!("{address}/{}", net.prefix_len()))];
    }
    match text.parse() {
        Ok(std::net::IpAddr::V4(_)) => return vec![json!("172.29.0.9")],
        Ok(std::net::IpAddr::V6(_)) => return vec![json!("fd29::9")],
        Err(_) => {}
    }
    if let Some(seconds) = text
        .strip_suffix('s')
        .and_then(|text| text.parse::<u32>().ok())
    {
        return vec![
            json!(format!("{}s", seconds + 1)),
            json!(format!("{}s", seconds - 1)),
        ];
    }
    if let Some((left, right)) = text.split_once(':')
        && let (Ok(_), Ok(right)) = (left.parse::<u32>(), right.parse::<u32>())
    {
        return vec![json!(format!("{left}:{}", right + 170))];
    }
    if text.matches(':').count() == 5 {
        return vec![json!("02:66:66:66:66:66")];
    }
    if let Ok(number) = text.parse::<u32>() {
        return vec![json!((number + 1).to_string())];
    }
    vec![json!("missing")]
}
