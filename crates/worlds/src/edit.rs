//! Edits of single objects, as people make them in a cluster that runs.

use std::net::IpAddr;

use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

/// How an object of a running cluster is edited.
#[derive(Clone, Debug)]
pub enum Edit {
    /// It becomes what it is in another world.
    Replace(Index),
    /// A field becomes that of another object of its kind.
    Copy(Index, Index, Index),
    /// A field becomes something that cannot be meant.
    Spoil(Index, Index, u8),
    /// It comes new from another world, as it is there or with such a field.
    Create(Index, Option<(Index, u8)>),
}

/// An edit of one object.
pub fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<Index>;
    prop_oneof![
        1 => index().prop_map(Edit::Replace),
        5 => (index(), index(), index()).prop_map(|(one, other, field)| Edit::Copy(one, other, field)),
        2 => (index(), index(), any::<u8>()).prop_map(|(one, field, how)| Edit::Spoil(one, field, how)),
        2 => (index(), prop::option::of((index(), any::<u8>()))).prop_map(|(one, how)| Edit::Create(one, how)),
    ]
}

/// The paths of all values of a document that are neither lists nor objects.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{path}/{}", name.replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                leaves(value, &format!("{path}/{place}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.push(path.to_owned());
        }
    }
}

fn leaves_of(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    leaves(&document["spec"], "/spec", &mut found);
    found
}

/// The object as it is edited; nothing where that cannot be done.
pub fn edited(edit: &Edit, written: &[Value], other: &[Value]) -> Option<Value> {
    if written.is_empty() {
        return None;
    }
    match edit {
        Edit::Replace(one) => {
            let one = one.get(written);
            let same = |other: &&Value| is_same(one, other);
            let mut new = other.iter().find(same)?.clone();
            new["metadata"] = one["metadata"].clone();
            if let Some(status) = one.get("status") {
                new["status"] = status.clone();
            }
            Some(new)
        }
        Edit::Copy(one, another, field) => {
            let one = one.get(written);
            let of_kind = |other: &&Value| other["kind"] == one["kind"];
            let like: Vec<&Value> = written.iter().chain(other).filter(of_kind).collect();
            let another = another.get(&like);
            let fields = leaves_of(another);
            if fields.is_empty() {
                return None;
            }
            let field = field.get(&fields);
            let mut new = one.clone();
            *new.pointer_mut(field)? = another.pointer(field)?.clone();
            Some(new)
        }
        Edit::Spoil(one, field, how) => spoiled(one.get(written), *field, *how),
        Edit::Create(one, how) => {
            if other.is_empty() {
                return None;
            }
            let mut new = one.get(other).clone();
            new["metadata"]["name"] = json!(format!("new-{}", new["metadata"]["name"].as_str()?));
            new["metadata"]["creationTimestamp"] = json!("2026-03-01T00:00:00Z");
            match how {
                Some((field, how)) => spoiled(&new, *field, *how),
                None => Some(new),
            }
        }
    }
}

/// Whether two documents are of one object.
fn is_same(one: &Value, other: &Value) -> bool {
    let name = |document: &Value| {
        let metadata = &document["metadata"];
        [&document["kind"], &metadata["namespace"], &metadata["name"]].map(Clone::clone)
    };
    name(one) == name(other)
}

/// The object with something in one of its fields that cannot be meant.
fn spoiled(one: &Value, field: Index, how: u8) -> Option<Value> {
    let mut new = one.clone();
    let fields = leaves_of(&new);
    if fields.is_empty() {
        return None;
    }
    let nonsense = [
        json!("no-such"),
        json!(0),
        json!(-1),
        json!({}),
        json!(null),
    ];
    let field: &String = field.get(&fields);
    let value = new.pointer_mut(field)?;
    let place = usize::from(how);
    let unfit = unfit(value.as_str().unwrap_or_default());
    *value = match unfit.get(place % unfit.len().max(1)) {
        Some(unfit) if place % 2 == 0 => json!(unfit),
        Some(_) | None => nonsense[place % nonsense.len()].clone(),
    };
    Some(new)
}

/// Values of the same form that are well formed and cannot work, where it is an address, a network or a MAC address.
fn unfit(text: &str) -> &'static [&'static str] {
    let address = text.split('/').next().unwrap_or_default();
    let is_address = address.parse::<IpAddr>().is_ok();
    if is_address && address.len() < text.len() {
        &[
            "127.0.0.0/24",
            "224.0.0.0/24",
            "169.254.128.0/25",
            "0.0.0.0/0",
            "fe80::/64",
            "10.0.0.255/24",
            "10.0.0.1/32",
        ]
    } else if is_address {
        &[
            "0.0.0.0",
            "127.0.0.1",
            "224.0.0.1",
            "169.254.128.1",
            "fe80::1",
        ]
    } else if text.len() == 17 && text.split(':').count() == 6 {
        &["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"]
    } else {
        &[]
    }
}
