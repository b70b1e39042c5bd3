//! Why bytes are no text.

use std::str::Utf8Error;

use super::{Fault, Place};

/// How files begin that are not text, and what they are.
const FORMS: [(&[u8], &str, &str); 8] = [
    (
        b"\x1f\x8b",
        "compressed (gzip)",
        "unpack it first, such as with gunzip",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "compressed (Zstandard)",
        "unpack it first, such as with unzstd",
    ),
    (
        b"\xfd7zXZ",
        "compressed (xz)",
        "unpack it first, such as with unxz",
    ),
    (
        b"BZh",
        "compressed (bzip2)",
        "unpack it first, such as with bunzip2",
    ),
    (
        b"PK\x03\x04",
        "an archive (zip)",
        "unpack it first, such as with unzip",
    ),
    (b"\x7fELF", "a program", "name a file with manifests"),
    (b"\xff\xfe", "text in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "text in UTF-16", "save it as UTF-8"),
];

/// What is wrong with bytes that are not UTF-8.
pub(in crate::input) fn of_bytes(bytes: &[u8], error: Utf8Error) -> Fault {
    let of_all = |message: String, hint: &str| Fault {
        place: None,
        message,
        hint: Some(hint.to_owned()),
        first: None,
    };
    let known = FORMS.iter().find(|(start, ..)| bytes.starts_with(start));
    if let Some((_, what, hint)) = known {
        return of_all(format!("the file is {what}, not text in UTF-8"), hint);
    }
    let (before, rest) = bytes.split_at(error.valid_up_to());
    if before.contains(&0) {
        let message = "the file is not text".to_owned();
        return of_all(message, "manifests are YAML or JSON in UTF-8");
    }
    let before = String::from_utf8_lossy(before);
    let line = before.split('\n').count();
    let column = before.rsplit('\n').next().unwrap_or_default();
    let place = Place {
        line,
        column: column.chars().count() + 1,
    };
    let byte = rest.first().copied().unwrap_or_default();
    Fault::at(
        place,
        format!("the byte 0x{byte:02X} is not UTF-8"),
        "save the file as UTF-8; it seems to be in another encoding, such as ISO 8859-1",
    )
}
