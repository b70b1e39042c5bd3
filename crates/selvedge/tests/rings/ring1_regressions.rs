//! Ring 1: `docs/regressions.md` is complete, and what it names is there.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::support::repository;

/// The known regressions of the compile, of addresses, of routing by source and of mirrors.
const NUMBERS: std::ops::RangeInclusive<u32> = 18..=51;

/// Those that nothing keeps yet.
const OPEN: &[u32] = &[];

#[test]
fn every_known_regression_is_kept_by_something_that_is_there() -> anyhow::Result<()> {
    let rows = rows()?;
    let numbers: BTreeSet<u32> = rows.keys().copied().collect();
    assert_eq!(numbers, NUMBERS.collect(), "each number has a row");
    let open = rows.iter().filter(|(_, names)| names.is_empty());
    let open: Vec<u32> = open.map(|(number, _)| *number).collect();
    assert_eq!(open, OPEN, "a row without a test");
    let mut sources = String::new();
    read_sources(&repository("crates"), &mut sources)?;
    for (number, names) in &rows {
        for name in names {
            let story = repository("tests/cases").join(name).join("README.md");
            if name.contains('-') {
                let told = fs::read_to_string(&story)?;
                let own = format!("R{number}");
                let words = told.split(|letter: char| !letter.is_alphanumeric());
                assert!(
                    words.into_iter().any(|word| word == own),
                    "{name} does not say that it keeps {own}"
                );
            } else {
                let function = format!("fn {name}(");
                assert!(sources.contains(&function), "R{number}: {name} is nowhere");
            }
        }
    }
    Ok(())
}

/// The names in each row, by its number.
fn rows() -> anyhow::Result<BTreeMap<u32, Vec<String>>> {
    let text = fs::read_to_string(repository("docs/regressions.md"))?;
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| R")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number: u32 = cells[1].trim_start_matches('R').parse()?;
        let names = cells[3].split('`').skip(1).step_by(2).map(str::to_owned);
        let claim = cells[2];
        anyhow::ensure!(!claim.is_empty(), "R{number} says nothing");
        let before = rows.insert(number, names.collect());
        anyhow::ensure!(before.is_none(), "R{number} has two rows");
    }
    Ok(rows)
}

fn read_sources(folder: &Path, sources: &mut String) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_sources(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}
