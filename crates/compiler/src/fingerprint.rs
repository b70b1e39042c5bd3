//! Fingerprints: of values as their serialisation gives them, without a text in between.

use std::sync::OnceLock;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// What tells a value from every other of its type.
pub(crate) type Digest = [u8; 32];

/// The fingerprint of a value beside it, made when it is asked for first: not everything that is compiled is published.
/// It says nothing that the value does not, so that two of them are equal wherever the values are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deferred(OnceLock<Digest>);

impl Deferred {
    /// The fingerprint, which is always made of the same value.
    pub(crate) fn get(&self, make: impl FnOnce() -> Digest) -> Digest {
        *self.0.get_or_init(make)
    }
}

impl PartialEq for Deferred {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Deferred {}

/// The fingerprint of a value.
pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Digest {
    // MessagePack with the names of fields: one that is left out makes no other look like it.
    let mut bytes = Vec::with_capacity(512);
    if let Err(error) = rmp_serde::encode::write_named(&mut bytes, value) {
        unreachable!("what is written into memory cannot fail: {error}")
    }
    Sha256::digest(&bytes).into()
}

/// The fingerprint of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// The fingerprint of several fingerprints and names, in their order.
pub(crate) fn of_parts<'a>(parts: impl Iterator<Item = (&'a str, Digest)>) -> Digest {
    let mut hasher = Sha256::new();
    for (name, digest) in parts {
        hasher.update(name.len().to_be_bytes());
        hasher.update(name);
        hasher.update(digest);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    struct Pair {
        #[serde(skip_serializing_if = "Option::is_none")]
        first: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        second: Option<u8>,
        #[serde(flatten)]
        further: BTreeMap<String, Vec<String>>,
    }

    #[test]
    fn values_that_differ_have_different_fingerprints() {
        let pair = |first, second, further: &[(&str, &[&str])]| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let further = further.iter();
            let further = further.map(|(key, values)| ((*key).to_owned(), texts(values)));
            of(&Pair {
                first,
                second,
                further: further.collect(),
            })
        };
        let values: [Digest; 9] = [
            pair(None, None, &[]),
            pair(Some(1), None, &[]),
            pair(None, Some(1), &[]),
            pair(Some(1), Some(1), &[]),
            pair(None, None, &[("a", &[])]),
            pair(None, None, &[("a", &["b", "c"])]),
            pair(None, None, &[("a", &["bc"])]),
            pair(None, None, &[("a", &["b"]), ("c", &[])]),
            pair(None, None, &[("ab", &[])]),
        ];
        for (place, one) in values.iter().enumerate() {
            assert!(values.iter().skip(place + 1).all(|other| one != other));
        }
    }

    #[test]
    fn the_same_value_has_the_same_fingerprint() {
        assert_eq!(of(&("a", 1_u32, [true])), of(&("a", 1_u32, [true])));
    }
}
