//! Elements of nodes in few lines: those that differ in a prefix only are one.

use explain::element::Element;

use crate::output;

/// From how many on elements that differ in a prefix only are one line.
const ALIKE: usize = 3;
/// How many prefixes of one line are named.
const PREFIXES: usize = 2;

/// What an element of many of its kind begins with, and its prefix.
pub(super) fn alike(element: &Element) -> Option<(String, &str)> {
    match element {
        Element::Import { vrf, from, prefix } => {
            Some((format!("VRF {vrf} imports from {from}"), prefix))
        }
        Element::DeniedImport { vrf, from, prefix } => {
            Some((format!("VRF {vrf} does not import from {from}"), prefix))
        }
        Element::Export { vrf, prefix } => Some((format!("VRF {vrf} announces"), prefix)),
        Element::DeniedExport { vrf, prefix } => {
            Some((format!("VRF {vrf} does not announce"), prefix))
        }
        Element::Route { vrf, prefix } => Some((format!("VRF {vrf} routes"), prefix)),
        Element::HostRoute { device, prefix } => Some((format!("{device} routes"), prefix)),
        Element::HostNetwork { vrf, prefix } => {
            Some((format!("host router {vrf} originates"), prefix))
        }
        _ => None,
    }
}

/// Several elements that are alike, in words; nothing where they are too few.
pub(super) fn several(elements: &[&Element]) -> Option<String> {
    let (head, _) = alike(elements.first()?)?;
    if elements.len() < ALIKE || output::is_all() {
        return None;
    }
    let prefixes = elements
        .iter()
        .filter_map(|element| Some(alike(element)?.1));
    let shown: Vec<&str> = prefixes.take(PREFIXES).collect();
    let more = match elements.len().saturating_sub(PREFIXES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{head} {} prefixes: {}{more}",
        elements.len(),
        shown.join(", ")
    ))
}

/// Elements with their texts as lines, those that are alike together, in the order of the first of each.
pub(super) fn lines<'a>(elements: impl Iterator<Item = (&'a Element, String)>) -> Vec<String> {
    type Alike<'a> = Vec<(&'a Element, String)>;
    let mut found: Vec<(Option<String>, Alike<'a>)> = Vec::new();
    for (element, text) in elements {
        let key = alike(element).map(|(head, _)| head);
        match found
            .iter_mut()
            .find(|(known, _)| key.is_some() && *known == key)
        {
            Some((_, known)) => known.push((element, text)),
            None => found.push((key, vec![(element, text)])),
        }
    }
    let lines = found.into_iter().flat_map(|(_, alike)| {
        let elements: Vec<&Element> = alike.iter().map(|(element, _)| *element).collect();
        match several(&elements) {
            Some(line) => vec![line],
            None => alike.into_iter().map(|(_, text)| text).collect(),
        }
    });
    lines.collect()
}
