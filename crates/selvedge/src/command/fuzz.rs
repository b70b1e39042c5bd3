//! Ring 1: whatever is in a file, `validate`, `compile` and `render` come to an end and say something; they never panic.
//!
//! The words are those of the stories and of the source documents' examples, put together wrongly. `PROPTEST_CASES` asks for more.

mod mutation;

use std::{
    cell::RefCell,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use compiler::compile;
use frr::FrrVersion;
use proptest::prelude::*;
use serde_json::Value;

use self::mutation::Dice;
use super::{
    compile::{documents, summary},
    problems,
};
use crate::{args::What, input::World};

/// The manifests of all stories and examples, as text and as documents.
fn manifests() -> &'static [(String, Vec<Value>)] {
    static MANIFESTS: OnceLock<Vec<(String, Vec<Value>)>> = OnceLock::new();
    MANIFESTS.get_or_init(|| {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
        let mut files = Vec::new();
        for directory in ["cases", "seeds"] {
            collect(&tests.join(directory), &mut files);
        }
        let read = |file: PathBuf| {
            let text = fs::read_to_string(&file).expect("a manifest can be read");
            let documents = serde_saphyr::from_multiple(&text).expect("a manifest is YAML");
            (text, documents)
        };
        files.into_iter().map(read).collect()
    })
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(directory).expect("a directory can be listed");
    let mut entries: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    entries.sort();
    for entry in entries {
        let is_input = entry.file_name().is_some_and(|name| name == "input.yaml");
        let is_example = directory
            .components()
            .any(|part| part.as_os_str() == "seeds");
        if entry.is_dir() {
            collect(&entry, files);
        } else if is_input || (is_example && entry.extension().is_some_and(|end| end == "yaml")) {
            files.push(entry);
        }
    }
}

thread_local! {
    /// The last world: it knows the rules of the kinds, which take longer to read than any manifest.
    static WORLD: RefCell<World> = RefCell::default();
}

/// Shows the text that was read when something panicked.
struct Read<'a>(&'a str);

impl Drop for Read<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "a failing test shows what it read")]
            {
                eprintln!("--- this text was read:\n{}\n---", self.0);
            }
        }
    }
}

/// All that the commands make of a text, as far as it does not reach the terminal.
fn everything(text: &str) {
    let _read = Read(text);
    let mut world = WORLD.take().emptied();
    world.add("fuzz.yaml", text);
    let compilation = compile(&world.snapshot);
    problems::values(&world, &compilation.problems);
    for problem in compilation.problems.iter() {
        problems::line(&world, problem);
    }
    summary(&compilation);
    documents(What::All, &world, &compilation).for_each(drop);
    for config in compilation.nodes.values() {
        let spec = config.spec("");
        if let Ok(config) = frr::desired(&spec, &frr::hidden(&spec), FrrVersion::NEWEST) {
            frr::print(&config, FrrVersion::NEWEST, "");
        }
        drop(linux::desired(&spec));
    }
    WORLD.set(world);
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        max_shrink_iters: 0,
        ..worlds::laws(cases)
    }
}

proptest! {
    #![proptest_config(config(120))]

    #[test]
    fn documents_with_wrong_values_are_refused_and_never_panic(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let mut world = dice.one_of(manifests()).1.clone();
        if dice.throw(4) == 0 {
            world.extend(dice.one_of(manifests()).1.iter().cloned());
        }
        for _ in 0..=dice.throw(6) {
            mutation::mutate(&mut world, manifests(), &mut dice);
        }
        let texts: Vec<String> = world.iter().map(Value::to_string).collect();
        everything(&texts.join("\n---\n"));
    }

    #[test]
    fn text_that_is_no_manifest_is_refused_and_never_panics(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let text = &dice.one_of(manifests()).0;
        everything(&mutation::torn(text, &mut dice));
    }
}

#[test]
fn nesting_without_end_is_refused() {
    for (open, depth) in [
        ("[", 200_000),
        ("{\"a\":", 200_000),
        ("- ", 100_000),
        ("a:\n ", 10_000),
    ] {
        everything(&open.repeat(depth));
    }
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [50, 100, 1_000, 100_000] {
        everything(&format!(
            "{{\"apiVersion\":\"network.t-caas.telekom.com/v1alpha1\",\"kind\":\"Network\",\"metadata\":{{\"name\":\"a\"}},\"spec\":{}}}",
            nested(depth)
        ));
        everything(&format!("kind: List\nitems: {}", nested(depth)));
    }
}

#[test]
fn a_text_that_grows_when_it_is_read_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..8 {
        let before = level - 1;
        let ten = vec![format!("*a{before}"); 10].join(", ");
        text = format!("{text}a{level}: &a{level} [{ten}]\n");
    }
    everything(&text);
}
