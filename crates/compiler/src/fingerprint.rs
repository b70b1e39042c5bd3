//! Fingerprints: of values as their serialisation gives them, without a text in between.
//!
//! Everything is written with its length or between marks, so that no two values are written alike.

use serde::{Serialize, ser};
use sha2::{Digest as _, Sha256};

/// What tells one value from every other.
pub(crate) type Digest = [u8; 32];

/// The fingerprint of a value.
pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Digest {
    let mut writer = Writer(Vec::with_capacity(512));
    if value.serialize(&mut writer).is_err() {
        unreachable!("what is written into memory cannot fail")
    }
    Sha256::digest(&writer.0).into()
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

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Never(String);

impl ser::Error for Never {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Done = Result<(), Never>;

struct Writer(Vec<u8>);

impl Writer {
    fn mark(&mut self, mark: u8) {
        self.0.push(mark);
    }

    fn bytes(&mut self, mark: u8, bytes: &[u8]) {
        self.mark(mark);
        self.0.extend(bytes.len().to_be_bytes());
        self.0.extend(bytes);
    }

    fn number(&mut self, mark: u8, bytes: &[u8]) {
        self.mark(mark);
        self.0.extend(bytes);
    }
}

impl<'a> ser::Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    fn is_human_readable(&self) -> bool {
        false
    }
    fn serialize_bool(self, v: bool) -> Done {
        self.number(b'b', &[u8::from(v)]);
        Ok(())
    }
    fn serialize_i8(self, v: i8) -> Done {
        self.serialize_i64(v.into())
    }
    fn serialize_i16(self, v: i16) -> Done {
        self.serialize_i64(v.into())
    }
    fn serialize_i32(self, v: i32) -> Done {
        self.serialize_i64(v.into())
    }
    fn serialize_i64(self, v: i64) -> Done {
        self.number(b'i', &v.to_be_bytes());
        Ok(())
    }
    fn serialize_i128(self, v: i128) -> Done {
        self.number(b'I', &v.to_be_bytes());
        Ok(())
    }
    fn serialize_u8(self, v: u8) -> Done {
        self.serialize_u64(v.into())
    }
    fn serialize_u16(self, v: u16) -> Done {
        self.serialize_u64(v.into())
    }
    fn serialize_u32(self, v: u32) -> Done {
        self.serialize_u64(v.into())
    }
    fn serialize_u64(self, v: u64) -> Done {
        self.number(b'u', &v.to_be_bytes());
        Ok(())
    }
    fn serialize_u128(self, v: u128) -> Done {
        self.number(b'U', &v.to_be_bytes());
        Ok(())
    }
    fn serialize_f32(self, v: f32) -> Done {
        self.serialize_f64(v.into())
    }
    fn serialize_f64(self, v: f64) -> Done {
        self.number(b'f', &v.to_be_bytes());
        Ok(())
    }
    fn serialize_char(self, v: char) -> Done {
        self.serialize_u32(v.into())
    }
    fn serialize_str(self, v: &str) -> Done {
        self.bytes(b's', v.as_bytes());
        Ok(())
    }
    fn serialize_bytes(self, v: &[u8]) -> Done {
        self.bytes(b'y', v);
        Ok(())
    }
    fn serialize_none(self) -> Done {
        self.number(b'n', &[]);
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Done {
        self.mark(b'o');
        value.serialize(self)
    }
    fn serialize_unit(self) -> Done {
        self.number(b'0', &[]);
        Ok(())
    }
    fn serialize_unit_struct(self, name: &'static str) -> Done {
        self.serialize_str(name)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Done {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Done {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Done {
        self.bytes(b'v', variant.as_bytes());
        value.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, Never> {
        Ok(Inside::begin(self, b'['))
    }
    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, Never> {
        Ok(Inside::begin(self, b'['))
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Never> {
        Ok(Inside::begin(self, b'['))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Never> {
        self.bytes(b'v', variant.as_bytes());
        Ok(Inside::begin(self, b'['))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, Never> {
        Ok(Inside::begin(self, b'{'))
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Never> {
        Ok(Inside::begin(self, b'{'))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Never> {
        self.bytes(b'v', variant.as_bytes());
        Ok(Inside::begin(self, b'{'))
    }
}

/// Between a first and a last mark.
struct Inside<'a>(&'a mut Writer);

impl<'a> Inside<'a> {
    fn begin(writer: &'a mut Writer, mark: u8) -> Self {
        writer.mark(mark);
        Self(writer)
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        value.serialize(&mut *self.0)
    }

    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Done {
        self.0.bytes(b'k', name.as_bytes());
        self.value(value)
    }

    fn finish(self) {
        self.0.number(b'.', &[]);
    }
}

impl ser::SerializeSeq for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTuple for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleStruct for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeTupleVariant for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Done {
        self.0.mark(b'k');
        self.value(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Done {
        self.value(value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeStruct for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.field(name, value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

impl ser::SerializeStructVariant for Inside<'_> {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Done {
        self.field(name, value)
    }
    fn end(self) -> Done {
        self.finish();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn values_that_differ_have_different_fingerprints() {
        let values: [Digest; 9] = [
            of(&("ab", "c")),
            of(&("a", "bc")),
            of(&vec!["ab", "c"][..1]),
            of(&vec![vec![1_u8], vec![2]]),
            of(&vec![vec![1_u8, 2]]),
            of(&Some(1_u8)),
            of(&None::<u8>),
            of(&BTreeMap::from([("a", 1_u8)])),
            of(&BTreeMap::from([("a", Some(1_u8))])),
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
