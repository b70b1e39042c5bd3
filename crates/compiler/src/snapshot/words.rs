//! What a reader says of a value that does not fit, in words of YAML: the reader itself names types of this program.

use serde_json::Value;

/// What a value is, in words of YAML.
pub fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// What is said of a value that is not to be shown and is no text.
pub const SECRET: &str = "must be text, in quotes where it looks like a number";

/// What is said of a value that is not of the wanted form, with what to do where that is known.
pub fn misfit(wanted: &str, value: &Value) -> String {
    if let Value::Number(number) = value
        && is_number(wanted)
    {
        let is_huge = number.as_f64().is_some_and(|number| number.abs() >= HUGE);
        // How it is written is not known any more: 100.0 may have been 1e2 or 0144.
        return if number.is_f64() && is_huge {
            format!("must be {wanted}: the number is too large")
        } else if number.is_f64() {
            format!(
                "must be {wanted} in decimal digits, without fraction, exponent or leading zero"
            )
        } else {
            format!("must be {wanted}, not {number}")
        };
    }
    let remedy = match value {
        Value::String(text) if is_number(wanted) && is_whole(text) => ": remove the quotes",
        Value::String(text) if wanted == "true or false" && text.parse::<bool>().is_ok() => {
            ": remove the quotes"
        }
        Value::Number(_)
            if !["a map", "a list", "true or false"].contains(&wanted) && !is_number(wanted) =>
        {
            ": put it in quotes"
        }
        Value::Bool(_) if !["a map", "a list"].contains(&wanted) && !is_number(wanted) => {
            ": put it in quotes; without them, YAML reads y, yes, on, n, no and off like true and false"
        }
        _ => "",
    };
    let own = match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => format!(" ({value})"),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    };
    format!("must be {wanted}, not {}{own}{remedy}", shape(value))
}

/// From here on, whole numbers are not read as such.
const HUGE: f64 = 9.2e18;

/// Whether a number is wanted.
fn is_number(wanted: &str) -> bool {
    const NUMBERS: [&str; 7] = [
        "a whole number",
        "a number",
        "a VXLAN network identifier",
        "a VLAN ",
        "an AS number",
        "an MTU",
        "a sequence number",
    ];
    NUMBERS.iter().any(|number| wanted.starts_with(number))
}

/// Whether a text is a whole number as YAML reads it.
fn is_whole(text: &str) -> bool {
    let has_zero = text.len() > 1 && text.starts_with('0');
    text.parse::<i64>().is_ok() && !has_zero && !text.starts_with('+')
}

/// A message of the reader about the value that it stands at.
pub(super) fn worded(message: &str, value: Option<&Value>) -> String {
    if let Some((given, wanted)) = split(message, "invalid type: ") {
        let wanted = of_type(wanted);
        return match value.filter(|value| is_meant(given, value)) {
            Some(value) => misfit(&wanted, value),
            None => format!("must be {wanted}, not {}", quoted(given)),
        };
    }
    if let Some((given, wanted)) = split(message, "invalid value: ") {
        return format!("must be {}, not {}", of_type(wanted), quoted(given));
    }
    if let Some((number, wanted)) = split(message, "invalid length ") {
        return format!("must be {}, not {number} entries", of_type(wanted));
    }
    if let Some((given, wanted)) = split(message, "unknown variant ") {
        let wanted = wanted.strip_prefix("one of ").unwrap_or(wanted);
        let (given, wanted) = (given.replace('`', "\""), wanted.replace('`', ""));
        return format!("{given} is not a valid value; write one of {wanted}");
    }
    if message.starts_with("data did not match any variant") {
        let own = value.map(shape).unwrap_or_default();
        return format!("has none of its valid forms: it is {own}");
    }
    // A reader of text quotes what it reads, and a number is written without quotes.
    if let Some(Value::Number(number)) = value
        && let Some(rest) = message.strip_prefix(&format!("\"{number}\""))
    {
        return format!("{number}{rest}");
    }
    message.to_owned()
}

fn split<'a>(message: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    message.strip_prefix(start)?.split_once(", expected ")
}

/// Whether the message is about this value, and not about one inside or around it.
fn is_meant(given: &str, value: &Value) -> bool {
    let word = given.split(' ').next().unwrap_or_default();
    match value {
        Value::Null => matches!(word, "null" | "unit" | "Option"),
        Value::Bool(_) => word == "boolean",
        Value::Number(_) => matches!(word, "integer" | "floating"),
        Value::String(text) => word == "string" && given.contains(text.as_str()),
        Value::Array(_) => word == "sequence",
        Value::Object(_) => word == "map",
    }
}

/// What the reader has found, without its names of types.
fn quoted(given: &str) -> String {
    let types = [
        ("string ", ""),
        ("integer ", ""),
        ("floating point ", ""),
        ("boolean ", ""),
        ("character ", ""),
        ("sequence", "a list"),
        ("map", "a map"),
        ("null", "empty"),
        ("unit value", "empty"),
    ];
    let found = types.iter().find(|(name, _)| given.starts_with(name));
    let text = match found {
        Some((name, word)) => format!("{word}{}", given.strip_prefix(name).unwrap_or_default()),
        None => given.to_owned(),
    };
    text.replace('`', "")
}

/// What the reader wants: words of our own values as they are, types of this program as what they are in YAML.
fn of_type(wanted: &str) -> String {
    let number = |most: u64| format!("a whole number from 0 to {most}");
    let is = |start: &[&str]| start.iter().any(|start| wanted.starts_with(start));
    match wanted {
        "u8" => number(u8::MAX.into()),
        "u16" => number(u16::MAX.into()),
        "u32" => number(u32::MAX.into()),
        "u64" | "usize" | "u128" => "a whole number of at least 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" | "a character" => "text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "unit" => "empty".to_owned(),
        "string or map" => "text or a map".to_owned(),
        _ if is(&["tuple", "an array", "a tuple"]) => "a list".to_owned(),
        _ if is(&["struct", "internally tagged enum", "adjacently tagged enum"]) => {
            "a map".to_owned()
        }
        _ if is(&["enum", "variant"]) => "one of the values of this field".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn messages_speak_of_yaml_and_say_what_to_do() {
        let cases = [
            (
                "invalid type: floating point `100.5`, expected a VLAN ID (1–4094)",
                json!(100.5),
                "must be a VLAN ID (1–4094) in decimal digits, without fraction, exponent or leading zero",
            ),
            (
                "invalid type: floating point `1e23`, expected a VLAN ID (1–4094)",
                json!(1e23),
                "must be a VLAN ID (1–4094): the number is too large",
            ),
            (
                "\"4095\" is not a VLAN ID (1–4094)",
                json!(4095),
                "4095 is not a VLAN ID (1–4094)",
            ),
            (
                "invalid type: boolean `true`, expected a string",
                json!(true),
                "must be text, not true or false (true): put it in quotes; without them, YAML reads y, yes, on, n, no and off like true and false",
            ),
            (
                "invalid type: string \"100.5\", expected a VLAN ID (1–4094)",
                json!("100.5"),
                "must be a VLAN ID (1–4094), not text (\"100.5\")",
            ),
            (
                "invalid type: string \"2\", expected u32",
                json!("2"),
                "must be a whole number from 0 to 4294967295, not text (\"2\"): remove the quotes",
            ),
            (
                "invalid type: integer `64701`, expected a string",
                json!(64701),
                "must be text, not a number (64701): put it in quotes",
            ),
            (
                "invalid type: map, expected a sequence",
                json!({}),
                "must be a list, not a map",
            ),
            (
                "invalid type: sequence, expected struct ClusterVrf",
                json!([]),
                "must be a map, not a list",
            ),
            (
                "invalid type: null, expected a string",
                json!(null),
                "must be text, not empty",
            ),
            (
                "invalid type: string \"many\", expected a VLAN ID (1–4094)",
                json!("many"),
                "must be a VLAN ID (1–4094), not text (\"many\")",
            ),
        ];
        check(&cases);
    }

    #[test]
    fn messages_about_lists_and_choices_say_what_to_do() {
        let cases = [
            // The path is that of the list, and the message is about what is in it.
            (
                "invalid type: string \"a\", expected struct Trunk",
                json!(["a"]),
                "must be a map, not \"a\"",
            ),
            (
                "invalid value: integer `-1`, expected u16",
                json!(-1),
                "must be a whole number from 0 to 65535, not -1",
            ),
            (
                "unknown variant `TCP`, expected one of `tcp`, `udp`",
                json!("TCP"),
                "\"TCP\" is not a valid value; write one of tcp, udp",
            ),
            (
                "data did not match any variant of untagged enum Port",
                json!([]),
                "has none of its valid forms: it is a list",
            ),
            (
                "\"10.0.0.0/33\" is not a network",
                json!("10.0.0.0/33"),
                "\"10.0.0.0/33\" is not a network",
            ),
        ];
        check(&cases);
    }

    fn check(cases: &[(&str, Value, &str)]) {
        for (message, value, words) in cases {
            assert_eq!(worded(message, Some(value)), *words);
        }
    }
}
