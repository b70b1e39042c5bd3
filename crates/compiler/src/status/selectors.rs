//! Who selects which Destinations, whether or not anything else is wrong with them.

use std::collections::BTreeMap;

use api::meta::LabelSelector;

use crate::{
    lower::Lowered,
    snapshot::{Key, Kind, ObjectRef, Objects, Snapshot},
};

/// Whether an object is of a kind that can select Destinations, and selects none.
pub(super) fn has_none(snapshot: &Snapshot, subject: &ObjectRef) -> bool {
    fn none<S, T>(
        objects: &Objects<S, T>,
        key: &Key,
        selector: impl Fn(&S) -> Option<&LabelSelector>,
    ) -> bool {
        let object = objects.get(key);
        object.is_some_and(|object| selector(&object.spec).is_none())
    }
    let key = &subject.key;
    match subject.kind {
        Kind::Layer2Attachment => none(&snapshot.layer2_attachments, key, |spec| {
            spec.destinations.as_ref()
        }),
        Kind::Inbound => none(&snapshot.inbounds, key, |spec| spec.destinations.as_ref()),
        Kind::Outbound => none(&snapshot.outbounds, key, |spec| spec.destinations.as_ref()),
        Kind::PodNetwork => none(&snapshot.pod_networks, key, |spec| {
            spec.destinations.as_ref()
        }),
        _ => false,
    }
}

/// How many objects select each Destination.
pub(super) fn counts<'a>(snapshot: &'a Snapshot, lowered: &Lowered) -> BTreeMap<&'a str, u32> {
    let attachments = snapshot.layer2_attachments.values();
    let attachments = attachments.map(|one| &one.spec.destinations);
    let inbounds = snapshot.inbounds.values().map(|one| &one.spec.destinations);
    let outbounds = snapshot.outbounds.values();
    let outbounds = outbounds.map(|one| &one.spec.destinations);
    let pods = snapshot.pod_networks.values();
    let pods = pods.map(|one| &one.spec.destinations);
    // Many objects have the same selector, which is asked once.
    let mut selectors: BTreeMap<String, (&LabelSelector, u32)> = BTreeMap::new();
    let all = attachments.chain(inbounds).chain(outbounds).chain(pods);
    for selector in all.flatten().filter(|selector| selector.check().is_ok()) {
        let text = serde_json::to_string(selector).unwrap_or_default();
        let (_, users) = selectors.entry(text).or_insert((selector, 0));
        *users = users.saturating_add(1);
    }
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (selector, users) in selectors.values() {
        for key in lowered.chosen(snapshot, selector) {
            let count = counts.entry(&key.name).or_default();
            *count = count.saturating_add(*users);
        }
    }
    counts
}
