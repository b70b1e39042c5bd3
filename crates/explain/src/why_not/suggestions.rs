//! Names that are similar to one that nothing has.

use compiler::snapshot::{ObjectRef, Snapshot};

use super::referrers::objects;
use crate::{provenance::Trace, query::Query};

/// Suggestions for a query that nothing matches: names of objects and of what the node has, or other VLANs.
pub(super) fn of(trace: &Trace<'_>, node: &str, query: &Query) -> Vec<String> {
    let snapshot = trace.snapshot;
    let vrfs = || {
        let names = snapshot.vrfs.values().map(|vrf| vrf.spec.vrf.to_string());
        names.map(|name| (name.clone(), format!("VRF {name}")))
    };
    let config = trace.compilation.nodes.get(node);
    let devices = config
        .into_iter()
        .flat_map(|config| config.shared.host_devices.keys());
    let devices = devices.map(|name| (name.clone(), format!("interface {name}")));
    let named = |object: ObjectRef| (object.key.name.to_string(), object.to_string());
    match query {
        Query::Object(object) => {
            let of_kind = objects(snapshot).into_iter();
            let of_kind = of_kind.filter(|known| known.kind == object.kind);
            similar(&object.key.name, of_kind.map(named))
        }
        Query::Name(name) => {
            let objects = objects(snapshot).into_iter().map(named);
            similar(name, objects.chain(vrfs()).chain(devices))
        }
        Query::Vrf(name) => similar(name, vrfs()),
        Query::Interface(name) => similar(name, devices),
        Query::Vlan(vlan) => other_vlans(snapshot, *vlan),
        _ => Vec::new(),
    }
}

fn other_vlans(snapshot: &Snapshot, vlan: u16) -> Vec<String> {
    let networks = snapshot.networks.iter();
    let mut vlans: Vec<(u16, String)> = networks
        .filter_map(|(key, network)| {
            let own = network.spec.vlan?.get();
            Some((own.abs_diff(vlan), format!("VLAN {own} (Network {key})")))
        })
        .collect();
    vlans.sort();
    vlans.into_iter().map(|(_, text)| text).take(NEAR).collect()
}

/// How many similar names are shown.
const NEAR: usize = 5;

/// The texts of those names that are similar to this one, the most similar first.
pub(super) fn similar(name: &str, known: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = known
        .map(|(known, text)| (distance(name, &known), text))
        .filter(|(distance, _)| *distance <= 2.max(name.len() / 3))
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().map(|(_, text)| text).take(NEAR).collect()
}

/// How many letters must be added, taken away or changed to come from one name to the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (place, letter) in one.chars().enumerate() {
        let mut next = vec![place + 1];
        let pairs = row.iter().zip(row.iter().skip(1));
        for ((diagonal, above), other) in pairs.zip(other.chars()) {
            let left = next.last().copied().unwrap_or_default();
            let changed = diagonal + usize::from(letter != other);
            next.push(changed.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
