use std::{fs, path::Path};

use serde_json::Value;

use super::read;

/// What the full reader makes of a document.
fn full(text: &str) -> Option<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).ok()?;
    match documents.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

fn agrees(text: &str) -> bool {
    let Some(value) = read(text) else {
        return false;
    };
    assert_eq!(Some(value), full(text), "{text}");
    true
}

#[test]
fn what_is_plain_is_read_as_the_full_reader_reads_it() {
    let texts = [
        "a: 1\nb: text # a remark\nc: \"1\"\nd: 'x y'\ne:\n",
        "a:\n  b:\n    c: true\n  d: false\nx: null\n",
        "list:\n- a: 1\n  b: 2\n-   c: 3\n    d:\n      e: 4\n- x\n- - y\n  - z\n-\n  q: 1\n",
        "list:\n  - 10.0.0.1\n  - 10.0.0.0/24\n  - -5\n  - 0\nafter: x\n",
        "{a: 1, b: [x, \"y\", {c: d}], e: {}, f: []}\n",
        "a: {matchLabels: {kubernetes.io/hostname: n1}}\n# remark\n\nb: http://x/y:1\n",
        "a: x#y\nb: x y z\nkey-with.dots/and-slash: v\n",
        "- a\n- b\n",
        "a: \"x\" # remark\nb: [1] # remark\n",
    ];
    let read = texts.iter().filter(|text| agrees(text)).count();
    assert_eq!(read, texts.len());
}

#[test]
fn what_is_unusual_is_left_to_the_full_reader() {
    let texts = [
        "a: 1\na: 2\n",
        "a: \"x\\n\"\n",
        "a: 'it''s'\n",
        "a: |\n  text\n",
        "a: first\n  second\n",
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: yes\nb: No\n",
        "\ta: 1\n",
        "a:\tb\n",
        "a: b: c\n",
        "a: {b: 1\n  }\n",
        "a: 012\n",
        "a: 1.5\n",
        "a: 0x10\n",
        "true: 1\n",
        "a: [x,]\n",
        "a:\n    b: 1\n  c: 2\n",
        "a: 1\n  b: 2\n",
        "- a\nb: 1\n",
        "a: \"x\" y\n",
        "a: {b: 1}x\n",
        "? a\n: b\n",
        "a: @x\n",
        "a: 64500:1\n",
        "%YAML 1.2\n",
        "ü: 1\n",
        "a: ü\n",
        "<<: {a: 1}\n",
        "[a]: 1\n",
        "{a: 1}: 2\n",
        "a: {b}\n",
        "a: {b: }\n",
        "a: \"x\n",
        "",
    ];
    for text in texts {
        // Left alone, or read alike.
        agrees(text);
    }
    assert_eq!(read("a: 1\na: 2\n"), None);
    assert_eq!(read("a: 1\n  b: 2\n"), None);
}

#[test]
fn every_manifest_of_the_tests_is_read_alike_and_most_are_plain() {
    let mut files = Vec::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    for directory in ["cases", "seeds", "rules", "platform"] {
        collect(&tests.join(directory), &mut files);
    }
    collect(&tests.join("../examples"), &mut files);
    let (mut plain, mut all) = (0, 0);
    for text in files {
        for part in super::super::split::parts(&text) {
            let document = text.get(part.bytes).expect("it is in the text");
            plain += usize::from(agrees(document));
            all += 1;
        }
    }
    assert!(all > 1_000, "{all} documents");
    assert!(plain * 10 > all * 6, "{plain} of {all} are plain");
}

fn collect(directory: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("a directory can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            texts.push(fs::read_to_string(&path).expect("a manifest can be read"));
        }
    }
}
