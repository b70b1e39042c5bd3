//! Whether fields that are named behind an element matter: each is changed, and the element must change with it.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{mutation::mutations, of_node, *};

/// A world, with the element that is asked about.
struct Asked<'a> {
    world: Vec<Value>,
    node: &'a str,
    element: &'a Element,
    value: &'a Value,
}

impl Asked<'_> {
    /// Whether the element is as it was, and who asks for it.
    fn ask(&self, world: &[Value]) -> (bool, Vec<Claim>) {
        let snapshot = snapshot(world);
        let compilation = compile(&snapshot);
        let is_same = of_node(&compilation, self.node).get(self.element) == Some(self.value);
        let claims = Trace::new(&snapshot, &compilation).claims(self.node, self.element);
        (is_same, claims)
    }

    /// The world without another field that asks for the same. It can be left out when the element stays, and is still said to come
    /// from this one.
    fn without_another(&self, field: &Field, claims: &[Claim]) -> Option<Vec<Value>> {
        let others = claims.iter().flat_map(Claim::fields);
        let others = others.filter(|other| *other != field);
        let mut worlds = others.flat_map(|other| {
            let worlds = mutations(&self.world, other).into_iter();
            worlds.map(move |world| (other, world))
        });
        let found = worlds.find(|(other, world)| {
            let (is_same, claims) = self.ask(world);
            is_same && names(&claims, field) && !names(&claims, other)
        });
        found.map(|(_, world)| world)
    }

    /// A field that is named matters: when it changes, the element changes, or is requested by other objects than by this field;
    /// at the latest when no other field says the same. For an overlap another may be named instead.
    fn matters(mut self, field: &Field) -> Result<(), TestCaseError> {
        loop {
            let (_, claims) = self.ask(&self.world);
            let by = |claim: &&Claim| claim.fields().contains(field);
            let authors: BTreeSet<&ObjectRef> =
                claims.iter().filter(by).map(|claim| &claim.by).collect();
            let is_lost = |world: &Vec<Value>| {
                let (is_same, claims) = self.ask(world);
                !is_same
                    || !claims.iter().any(|claim| authors.contains(&claim.by))
                    || (is_steered(self.element) && !names(&claims, field))
            };
            let worlds = mutations(&self.world, field);
            prop_assert!(
                !worlds.is_empty(),
                "{field}, behind {}, cannot be changed",
                self.element
            );
            if worlds.iter().any(is_lost) {
                return Ok(());
            }
            let Some(world) = self.without_another(field, &claims) else {
                return Err(TestCaseError::fail(format!(
                    "changing {field} leaves {} on {} as it is\n{}",
                    self.element,
                    self.node,
                    json!(self.world)
                )));
            };
            self.world = world;
        }
    }
}

/// Whether an element is there because prefixes overlap. One overlap is named, and when it goes another one may be.
fn is_steered(element: &Element) -> bool {
    match element {
        Element::Steering { .. } => true,
        Element::Vrf { vrf } | Element::Table { vrf } | Element::Import { vrf, .. } => {
            vrf.starts_with("s-")
        }
        _ => false,
    }
}

fn names(claims: &[Claim], field: &Field) -> bool {
    claims.iter().any(|claim| claim.fields().contains(field))
}

/// Every field that is named behind an element matters.
pub(super) fn all_matter(
    world: &[Value],
    (node, element, value): &(String, Element, Value),
) -> Result<(), TestCaseError> {
    let asked = || Asked {
        world: world.to_vec(),
        node,
        element,
        value,
    };
    let (_, claims) = asked().ask(world);
    let named: BTreeSet<&Field> = claims.iter().flat_map(Claim::fields).collect();
    prop_assert!(!named.is_empty(), "nothing requests {element} on {node}");
    for field in named {
        asked().matters(field)?;
    }
    Ok(())
}
