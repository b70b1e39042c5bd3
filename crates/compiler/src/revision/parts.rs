//! A revision that is too large for one object of the API server: its low-level objects are stored in parts.
//!
//! An object goes into a part by the hash of its name, and a part is named by the hash of its content. So most parts of two revisions that
//! follow each other are the same, and only those that differ are written.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use api::tcaas::{
    BgpRevision, Layer2Revision, NetworkConfigRevisionPartSpec, NetworkConfigRevisionSpec,
    RevisionEntry, VrfRevision,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use miniz_oxide::{deflate::compress_to_vec_zlib, inflate::decompress_to_vec_zlib_with_limit};
use serde::{Deserialize, Serialize};

use crate::{
    fingerprint,
    memo::Query,
    names,
    snapshot::{Key, kinds},
    view::View,
};

/// Content that takes less as JSON is in the revision itself. etcd refuses objects of more than 1.5 MiB.
const INLINE: usize = 512 * 1024;
/// How much content a part has, about, before it is compressed.
const PART: usize = 256 * 1024;
/// The most that a part may have. A part that another program created must not exhaust the memory.
const LARGEST: usize = 64 * 1024 * 1024;
/// Of ten levels: speed matters more than size, because a new revision waits for it.
const LEVEL: u8 = 3;
/// How many hexadecimal digits of the hash are the name of a part.
const NAME_DIGITS: usize = 32;

/// What a part has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Content<'a> {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layer2: Vec<Cow<'a, Layer2Revision>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    vrf: Vec<Cow<'a, VrfRevision>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bgp: Vec<Cow<'a, BgpRevision>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    underlay: Vec<Cow<'a, RevisionEntry>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    l3vni: Vec<Cow<'a, RevisionEntry>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    l2vni: Vec<Cow<'a, RevisionEntry>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passthrough: Vec<Cow<'a, RevisionEntry>>,
}

/// What a content has of one kind.
type Entries<'c, 'a> = &'c mut Vec<Cow<'a, RevisionEntry>>;

impl<'a> Content<'a> {
    /// The objects of each kind that has namespaces, of this content and of a whole revision.
    fn entries(&mut self) -> [Entries<'_, 'a>; 4] {
        let Self {
            layer2: _,
            vrf: _,
            bgp: _,
            underlay,
            l3vni,
            l2vni,
            passthrough,
        } = self;
        [underlay, l3vni, l2vni, passthrough]
    }
}

/// A revision as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The revision, which names its parts.
    pub spec: NetworkConfigRevisionSpec,
    /// The parts that are not stored yet, by name.
    pub parts: BTreeMap<String, NetworkConfigRevisionPartSpec>,
}

/// A revision as it is stored, with those of its parts that are not stored yet.
pub fn stored(whole: NetworkConfigRevisionSpec, is_stored: impl Fn(&str) -> bool) -> Stored {
    let size = json(&whole).len();
    let mut parts = BTreeMap::new();
    if size < INLINE {
        return Stored { spec: whole, parts };
    }
    let count = size.div_ceil(PART).next_power_of_two();
    let mut contents = vec![Content::default(); count];
    let place = |name: &str| {
        let digest = fingerprint::of(name);
        let [a, b, c, d, ..] = digest;
        usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(0) % count
    };
    for one in &whole.layer2 {
        if let Some(content) = contents.get_mut(place(&one.name)) {
            content.layer2.push(Cow::Borrowed(one));
        }
    }
    for one in &whole.vrf {
        if let Some(content) = contents.get_mut(place(&one.name)) {
            content.vrf.push(Cow::Borrowed(one));
        }
    }
    for one in &whole.bgp {
        if let Some(content) = contents.get_mut(place(&one.name)) {
            content.bgp.push(Cow::Borrowed(one));
        }
    }
    let entries = [
        &whole.underlay,
        &whole.l3vni,
        &whole.l2vni,
        &whole.passthrough,
    ];
    for (kind, all) in entries.into_iter().enumerate() {
        for one in all {
            let content = contents.get_mut(place(&one.name));
            if let Some(list) = content.and_then(|it| it.entries().into_iter().nth(kind)) {
                list.push(Cow::Borrowed(one));
            }
        }
    }
    let mut named = Vec::new();
    for content in contents {
        let bytes = json(&content);
        let name = name(&bytes);
        if !is_stored(&name) {
            let data = STANDARD.encode(compress_to_vec_zlib(&bytes, LEVEL));
            parts.insert(name.clone(), NetworkConfigRevisionPartSpec { data });
        }
        named.push(name);
    }
    let spec = NetworkConfigRevisionSpec {
        parts: named,
        layer2: Vec::new(),
        vrf: Vec::new(),
        bgp: Vec::new(),
        underlay: Vec::new(),
        l3vni: Vec::new(),
        l2vni: Vec::new(),
        passthrough: Vec::new(),
        revision: whole.revision,
        settings: whole.settings,
    };
    Stored { spec, parts }
}

/// A stored revision with the content of its parts; nothing if one of them is not there, or is not what it must be.
pub fn whole(
    stored: &Arc<NetworkConfigRevisionSpec>,
    part: impl Fn(&str) -> Option<Arc<NetworkConfigRevisionPartSpec>>,
) -> Option<Arc<NetworkConfigRevisionSpec>> {
    if stored.parts.is_empty() {
        return Some(Arc::clone(stored));
    }
    let mut whole = NetworkConfigRevisionSpec::clone(stored);
    for wanted in &stored.parts {
        let compressed = STANDARD.decode(&part(wanted)?.data).ok()?;
        let bytes = decompress_to_vec_zlib_with_limit(&compressed, LARGEST).ok()?;
        if name(&bytes) != *wanted {
            return None;
        }
        let content: Content<'static> = serde_json::from_slice(&bytes).ok()?;
        let Content {
            layer2,
            vrf,
            bgp,
            underlay,
            l3vni,
            l2vni,
            passthrough,
        } = content;
        whole.layer2.extend(layer2.into_iter().map(Cow::into_owned));
        whole.vrf.extend(vrf.into_iter().map(Cow::into_owned));
        whole.bgp.extend(bgp.into_iter().map(Cow::into_owned));
        for (all, entries) in [
            (&mut whole.underlay, underlay),
            (&mut whole.l3vni, l3vni),
            (&mut whole.l2vni, l2vni),
            (&mut whole.passthrough, passthrough),
        ] {
            all.extend(entries.into_iter().map(Cow::into_owned));
        }
    }
    whole.parts.clear();
    for all in [
        &mut whole.underlay,
        &mut whole.l3vni,
        &mut whole.l2vni,
        &mut whole.passthrough,
    ] {
        all.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
    }
    whole.layer2.sort_by(|one, other| one.name.cmp(&other.name));
    whole.vrf.sort_by(|one, other| one.name.cmp(&other.name));
    whole.bgp.sort_by(|one, other| one.name.cmp(&other.name));
    Some(Arc::new(whole))
}

/// The content of a stored revision, which is read once.
pub(crate) struct Whole;
impl Query for Whole {
    type Key = Key;
    type Value = Option<Arc<NetworkConfigRevisionSpec>>;
    fn compute(view: &View<'_>, key: &Key) -> Self::Value {
        let stored = view.spec::<kinds::NetworkConfigRevision>(key)?;
        whole(&stored, |name| {
            view.spec::<kinds::NetworkConfigRevisionPart>(&Key::named(name))
        })
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value)
        .unwrap_or_else(|error| unreachable!("a part of a revision is JSON: {error}"))
}

fn name(content: &[u8]) -> String {
    let mut name = names::hex(&fingerprint::of_bytes(content));
    name.truncate(NAME_DIGITS);
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(segments: u32, mtu: u32) -> NetworkConfigRevisionSpec {
        let segment = |id: u32| {
            let mtu = if id == 7 { mtu } else { 1500 };
            // A description of its own makes it as large as real ones are.
            let selector = json!({"matchLabels": {"example.com/group": format!("{id:0300}")}});
            json!({
                "name": format!("segment-{id:05}"),
                "spec": {"id": 2 + id % 4000, "mtu": mtu, "vni": 10_000 + id, "nodeSelector": selector},
            })
        };
        let layer2: Vec<_> = (0..segments).map(segment).collect();
        let peer = json!({"peeringVlan": {"name": "segment-00001"}, "remoteASN": 65511});
        let spec = json!({
            "revision": "0123456789abcdef", "layer2": layer2,
            "vrf": [{"name": "a", "spec": {"vrf": "a", "seq": 1}}],
            "bgp": [{"name": "b", "spec": peer}],
        });
        serde_json::from_value(spec).expect("a revision")
    }

    fn read(stored: &Stored) -> Option<Arc<NetworkConfigRevisionSpec>> {
        let part = |name: &str| stored.parts.get(name).cloned().map(Arc::new);
        whole(&Arc::new(stored.spec.clone()), part)
    }

    #[test]
    fn a_small_revision_is_stored_as_it_is() {
        let small = revision(100, 1500);
        let kept = stored(small.clone(), |_| false);
        assert_eq!((&kept.spec, kept.parts.len()), (&small, 0));
        assert_eq!(read(&kept).as_deref(), Some(&small));
    }

    #[test]
    fn a_large_revision_is_read_back_as_it_was_and_each_part_fits_into_an_object() {
        let large = revision(5000, 1500);
        let kept = stored(large.clone(), |_| false);
        assert!(kept.parts.len() >= 8, "{}", kept.parts.len());
        let largest = kept.parts.values().map(|part| part.data.len()).max();
        assert!(largest < Some(INLINE), "{largest:?}");
        assert!(json(&kept.spec).len() < 10_000);
        assert_eq!(read(&kept).as_deref(), Some(&large));
    }

    #[test]
    fn objects_of_the_fabric_are_in_the_parts_and_parts_without_them_can_be_read() {
        let entries = |prefix: &str, count: u32| -> Vec<_> {
            let entry = |number: u32| {
                json!({
                    "name": format!("{prefix}-{number:05}"), "namespace": format!("ns{}", number / 3000),
                    "spec": {"asn": 64512, "description": format!("{number:0250}")},
                })
            };
            (0..count).map(entry).collect()
        };
        let spec = json!({
            "revision": "0123456789abcdef", "underlay": entries("node", 5000), "l3vni": entries("red", 3),
            "l2vni": entries("blue", 10), "passthrough": entries("host", 2),
            "layer2": [{"name": "a", "spec": {"id": 2, "mtu": 1500, "vni": 10_000}}],
        });
        let large: NetworkConfigRevisionSpec = serde_json::from_value(spec).expect("a revision");
        let kept = stored(large.clone(), |_| false);
        assert!(json(&kept.spec).len() < 10_000, "etcd takes 1.5 MiB");
        assert_eq!(read(&kept).as_deref(), Some(&large));
        // An earlier version left them in the revision.
        let of_before = NetworkConfigRevisionSpec {
            underlay: Vec::new(),
            ..revision(5000, 1500)
        };
        let mut of_before = stored(of_before, |_| false);
        of_before.spec.underlay = large.underlay.clone();
        let underlays = read(&of_before).map(|whole| whole.underlay.len());
        assert_eq!(underlays, Some(5000));
    }

    #[test]
    fn a_change_of_one_object_writes_one_part() {
        let before = stored(revision(5000, 1500), |_| false);
        let is_stored = |name: &str| before.parts.contains_key(name);
        let after = stored(revision(5000, 1400), is_stored);
        assert_eq!(after.parts.len(), 1);
        assert_eq!(stored(revision(5000, 1500), is_stored).parts.len(), 0);
    }

    #[test]
    fn a_part_that_is_missing_or_another_makes_the_revision_unreadable() {
        let mut kept = stored(revision(5000, 1500), |_| false);
        let names: Vec<String> = kept.parts.keys().cloned().collect();
        let part = kept.parts.remove(&names[0]).expect("a part");
        assert_eq!(read(&kept), None);
        let data = kept.parts[&names[1]].data.clone();
        let other = NetworkConfigRevisionPartSpec { data };
        kept.parts.insert(names[0].clone(), other);
        assert_eq!(read(&kept), None, "it is named after its content");
        let broken = NetworkConfigRevisionPartSpec {
            data: "no base64".to_owned(),
        };
        kept.parts.insert(names[0].clone(), broken);
        assert_eq!(read(&kept), None);
        kept.parts.insert(names[0].clone(), part);
        assert!(read(&kept).is_some());
    }
}
