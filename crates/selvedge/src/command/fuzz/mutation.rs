//! How a good document is made a bad one.

use serde_json::{Map, Value, json};

/// Random numbers that depend on the seed alone.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`.
    pub(super) fn throw(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides.max(1)).expect("a number");
        usize::try_from(self.next() % sides).expect("a number")
    }

    pub(super) fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        all.get(self.throw(all.len())).expect("there is one")
    }
}

/// Texts that are nothing where they stand, or more than one expects.
const TEXTS: &[&str] = &[
    "",
    " ",
    "0",
    "-1",
    "null",
    "true",
    "~",
    "1e9",
    "\u{0}",
    "\u{feff}",
    "ä🧵\u{202e}b",
    "a/b",
    "../..",
    "%s%n",
    "'; --",
    "\n!\n",
    "--- a",
    "10.0.0.0/33",
    "10.0.0.1/0",
    "0.0.0.0/0",
    "::/0",
    "::",
    "255.255.255.255/32",
    "10.0.0.0",
    "fe80::1%eth0",
    "ffff::/128",
    "1:1",
    "4294967296:1",
    "*:1",
    "65535:65535",
    "00:00:00:00:00:00",
    "ff:ff:ff:ff:ff:ff",
    "default",
    "cluster",
    "lo",
    "hbn",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "2026-01-01T00:00:00Z",
    "9999-99-99T99:99:99Z",
    "10.0.0.0/31",
    "10.0.0.0/32",
    "fd00::/127",
    "fd00::/128",
    "0.0.0.0/1",
    "999999999999999999999999",
    "100%",
    "-5%",
    "1000000%",
];

/// Unusual texts and numbers.
fn strange(dice: &mut Dice) -> Value {
    match dice.throw(12) {
        0 => Value::Null,
        1 => json!(dice.throw(2) == 0),
        2 => json!(dice.one_of(&[
            0_i64,
            1,
            -1,
            2,
            255,
            256,
            4094,
            4095,
            65535,
            65536,
            16_777_215,
            16_777_216,
            i64::MAX,
            i64::MIN
        ])),
        3 => json!(dice.one_of(&[u64::MAX, 4_294_967_295, 4_294_967_296])),
        4 => json!(dice.one_of(&[0.5, -0.0, 1e308, 1e-308])),
        5 => json!([]),
        6 => json!({}),
        7 => json!([null, "", 0]),
        8 => {
            let mut deep = json!("x");
            for _ in 0..dice.throw(60) {
                deep = if dice.throw(2) == 0 {
                    json!([deep])
                } else {
                    json!({"a": deep})
                };
            }
            deep
        }
        9 => json!("x".repeat(dice.throw(70_000))),
        _ => json!(dice.one_of(TEXTS)),
    }
}

/// A value somewhere inside; the further down the more likely.
fn inside<'a>(value: &'a mut Value, dice: &mut Dice) -> &'a mut Value {
    let size = match &*value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if size == 0 || dice.throw(5) == 0 {
        return value;
    }
    let place = dice.throw(size);
    match value {
        Value::Object(fields) => inside(fields.values_mut().nth(place).expect("it is there"), dice),
        Value::Array(items) => inside(items.get_mut(place).expect("it is there"), dice),
        _ => unreachable!("only what has parts has a size"),
    }
}

/// Any value of any manifest.
fn borrowed(manifests: &[(String, Vec<Value>)], dice: &mut Dice) -> Value {
    let (_, documents) = dice.one_of(manifests);
    if documents.is_empty() {
        return Value::Null;
    }
    let mut document = dice.one_of(documents).clone();
    inside(&mut document, dice).clone()
}

/// Makes one thing wrong.
pub(super) fn mutate(world: &mut Vec<Value>, manifests: &[(String, Vec<Value>)], dice: &mut Dice) {
    if world.is_empty() {
        world.push(strange(dice));
    }
    let place = dice.throw(world.len());
    match dice.throw(16) {
        0 => {
            world.remove(place);
        }
        1 => world.push(world[place].clone()),
        2 => world.insert(place, strange(dice)),
        3 => {
            let kind = kind(manifests, dice);
            if let Some(document) = world[place].as_object_mut() {
                document.insert("kind".to_owned(), kind);
            }
        }
        4 => {
            let other = dice.throw(world.len());
            let spec = world[other].get("spec").cloned().unwrap_or_default();
            if let Some(document) = world[place].as_object_mut() {
                document.insert("spec".to_owned(), spec);
            }
        }
        5 => {
            let (metadata, strange) = (
                json!({"name": strange(dice), "labels": strange(dice)}),
                strange(dice),
            );
            if let Some(document) = world[place].as_object_mut() {
                document.insert("metadata".to_owned(), metadata);
                document.insert("status".to_owned(), strange);
            }
        }
        _ => wrong_inside(&mut world[place], manifests, dice),
    }
}

fn kind(manifests: &[(String, Vec<Value>)], dice: &mut Dice) -> Value {
    let (_, documents) = dice.one_of(manifests);
    let first = documents.first();
    first.map_or(Value::Null, |document| document["kind"].clone())
}

fn wrong_inside(document: &mut Value, manifests: &[(String, Vec<Value>)], dice: &mut Dice) {
    let value = inside(document, dice);
    match dice.throw(9) {
        0 => *value = Value::Null,
        1 => *value = json!([value.take()]),
        2 => *value = json!({"a": value.take()}),
        3 => *value = json!(value.to_string()),
        4 => *value = borrowed(manifests, dice),
        5 => {
            if let Value::Array(items) = value {
                let more: Vec<Value> = items
                    .iter()
                    .cycle()
                    .take(items.len() * (2 + dice.throw(40)))
                    .cloned()
                    .collect();
                *items = more;
            } else {
                *value = strange(dice);
            }
        }
        6 => {
            if let Value::Object(fields) = value {
                swapped(fields, dice);
            } else {
                *value = strange(dice);
            }
        }
        _ => *value = strange(dice),
    }
}

/// Values under each other's names; sometimes one is lost, or one more is there.
fn swapped(fields: &mut Map<String, Value>, dice: &mut Dice) {
    let names: Vec<String> = fields.keys().cloned().collect();
    if names.is_empty() {
        fields.insert("spec".to_owned(), strange(dice));
        return;
    }
    let (one, other) = (dice.one_of(&names).clone(), dice.one_of(&names).clone());
    let (a, b) = (fields.remove(&one), fields.remove(&other));
    match dice.throw(4) {
        0 => {}
        1 => {
            fields.insert(one, strange(dice));
        }
        _ => {
            fields.extend(b.map(|b| (one, b)));
            fields.extend(a.map(|a| (other, a)));
        }
    }
}

/// A text with pieces lost, doubled or strange.
pub(super) fn torn(text: &str, dice: &mut Dice) -> String {
    let pieces = [
        "\u{0}",
        "\t",
        "{",
        "}",
        "[",
        "]",
        ":",
        "- ",
        "---\n",
        "...\n",
        "&a",
        "*a",
        "!!binary ",
        "!t ",
        "|",
        ">",
        "%YAML 9.9\n",
        "\"",
        "'",
        "#",
        "\u{feff}",
        "\r",
        "<<: ",
        "? ",
        "\u{10ffff}",
        "0x",
        "1e999",
    ];
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.throw(8) {
        if bytes.is_empty() {
            break;
        }
        let from = dice.throw(bytes.len());
        let to = (from + dice.throw(40)).min(bytes.len());
        match dice.throw(5) {
            0 => {
                bytes.drain(from..to);
            }
            1 => {
                let twice = bytes[from..to].to_vec();
                bytes.splice(from..from, twice);
            }
            2 => bytes[from] = u8::try_from(dice.throw(256)).expect("a byte"),
            3 => bytes.truncate(from),
            _ => {
                let piece = dice.one_of(&pieces).bytes();
                bytes.splice(from..from, piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
