//! Many names as one: `dc1-r[1-3]-w[01-10]`.

use std::collections::{BTreeMap, BTreeSet};

/// A part of a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Text(String),
    /// Numbers that are written with so many digits.
    Numbers(BTreeSet<(usize, u64)>),
}

/// Names with what differs in brackets, joined by commas. The names are in the result and no others.
pub(crate) fn folded(names: &[String]) -> String {
    folds(names).join(", ")
}

/// The same, each fold for itself.
pub(crate) fn folds(names: &[String]) -> Vec<String> {
    let folds = folds_with_members(names).into_iter();
    folds.map(|(fold, _)| fold).collect()
}

/// The folds, each with the number of its names.
fn folds_with_members(names: &[String]) -> Vec<(String, usize)> {
    let names: BTreeSet<&String> = names.iter().collect();
    // Names of the same form can be folded into each other.
    let mut forms: BTreeMap<Vec<Option<String>>, Vec<Vec<Part>>> = BTreeMap::new();
    for name in names {
        let parts = parts(name);
        let form = parts.iter().map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::Numbers(_) => None,
        });
        forms.entry(form.collect()).or_default().push(parts);
    }
    let mut found = Vec::new();
    for (form, mut names) in forms {
        // The last number changes fastest: it is folded first.
        for place in (0..form.len()).rev() {
            if form.get(place).is_some_and(Option::is_none) {
                names = folded_at(place, names);
            }
        }
        found.extend(names);
    }
    found.sort();
    let members = |parts: &[Part]| {
        let numbers = parts.iter().map(|part| match part {
            Part::Text(_) => 1,
            Part::Numbers(numbers) => numbers.len(),
        });
        numbers.product()
    };
    let folds = found.iter();
    folds
        .map(|parts| (written(parts), members(parts)))
        .collect()
}

/// Names folded into so many columns: every name where there is room, else the first folds and the number of all other names. A name is
/// never broken; where even the first fold is wider, it is shown alone, cut at its end.
pub(crate) fn brief(names: &[String], columns: usize) -> String {
    let all = folded(names);
    let is_one = matches!(names, [_]);
    if is_one || crate::output::is_all() || all.chars().count() <= columns {
        return all;
    }
    let members = folds_with_members(names);
    let total: usize = members.iter().map(|(_, number)| number).sum();
    let mut shown = String::new();
    let mut number = 0;
    for (fold, of_fold) in &members {
        let mut fold = fold.clone();
        let separator = if shown.is_empty() { "" } else { ", " };
        let after = number + of_fold;
        let more = and_more(total - after);
        let width = |fold: &str| {
            let parts = [shown.as_str(), separator, fold, more.as_str()];
            parts.iter().map(|part| part.chars().count()).sum::<usize>()
        };
        if width(&fold) > columns {
            fold = shortened(&fold);
        }
        if width(&fold) > columns {
            if !shown.is_empty() {
                break;
            }
            fold = cut(&fold, columns.saturating_sub(more.chars().count()));
        }
        shown = format!("{shown}{separator}{fold}");
        number = after;
    }
    format!("{shown}{}", and_more(total - number))
}

/// Names folded into at most so many lines of so many columns: a fold that is wider is shortened, and the last names are only counted.
/// One fold is shown in any case.
pub(crate) fn in_lines(names: &[String], columns: usize, lines: usize) -> String {
    let members = folds_with_members(names);
    if crate::output::is_all() {
        return folded(names);
    }
    let mut rest: usize = members.iter().map(|(_, number)| number).sum();
    let (mut shown, mut best) = (String::new(), None);
    for (fold, number) in members {
        rest -= number;
        if !shown.is_empty() {
            shown.push_str(", ");
        }
        if fold.chars().count() <= columns {
            shown.push_str(&fold);
        } else {
            shown.push_str(&cut(&shortened(&fold), columns));
        }
        let text = format!("{shown}{}", and_more(rest));
        if best.is_none() || lines_of(&text, columns) <= lines {
            best = Some(text);
        }
        if lines_of(&shown, columns) > lines {
            break;
        }
    }
    best.unwrap_or_default()
}

/// The lines that a text takes that is broken at spaces.
fn lines_of(text: &str, columns: usize) -> usize {
    let (mut lines, mut used) = (1, 0);
    for word in text.split(' ').map(|word| word.chars().count()) {
        if used > 0 && used + 1 + word > columns {
            (lines, used) = (lines + 1, word);
        } else {
            used += word + usize::from(used > 0);
        }
    }
    lines
}

/// The fewest columns that a name is cut to.
const LEAST: usize = 12;

/// A name in so many columns, its end left out.
fn cut(name: &str, columns: usize) -> String {
    let columns = columns.max(LEAST);
    if name.chars().count() <= columns {
        return name.to_owned();
    }
    let start: String = name.chars().take(columns - 1).collect();
    format!("{start}…")
}

fn and_more(number: usize) -> String {
    match number {
        0 => String::new(),
        number => format!(" and {number} more"),
    }
}

/// A fold with the first and the last range of each bracket only: `w[01-09,…,41-49]`.
pub(crate) fn shortened(fold: &str) -> String {
    let mut text = String::new();
    for (place, part) in fold.split('[').enumerate() {
        let (inside, after) = match part.split_once(']') {
            Some(found) if place > 0 => found,
            _ => {
                text.push_str(part);
                continue;
            }
        };
        let ranges: Vec<&str> = inside.split(',').collect();
        match ranges.as_slice() {
            [first, _, .., last] => text = format!("{text}[{first},…,{last}]{after}"),
            _ => text = format!("{text}[{inside}]{after}"),
        }
    }
    text
}

/// Folds names that differ at one place only.
fn folded_at(place: usize, names: Vec<Vec<Part>>) -> Vec<Vec<Part>> {
    let mut alike: BTreeMap<Vec<Part>, BTreeSet<(usize, u64)>> = BTreeMap::new();
    for mut name in names {
        let Some(Part::Numbers(own)) = name.get(place).cloned() else {
            continue;
        };
        if let Some(part) = name.get_mut(place) {
            *part = Part::Text(String::new());
        }
        alike.entry(name).or_default().extend(own);
    }
    let with = |(mut name, numbers): (Vec<Part>, _)| {
        if let Some(part) = name.get_mut(place) {
            *part = Part::Numbers(numbers);
        }
        name
    };
    alike.into_iter().map(with).collect()
}

/// A name taken apart at its numbers.
fn parts(name: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let is_number = rest.starts_with(|c: char| c.is_ascii_digit());
        let end = rest
            .find(|c: char| c.is_ascii_digit() != is_number)
            .unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        parts.push(match part.parse::<u64>() {
            // Without a zero in front, a number has as many digits as it needs.
            Ok(number) if is_number => {
                let digits = if part.starts_with('0') { part.len() } else { 0 };
                Part::Numbers([(digits, number)].into())
            }
            _ => Part::Text(part.to_owned()),
        });
        rest = after;
    }
    parts
}

fn written(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Numbers(numbers) => of_numbers(numbers),
    };
    parts.iter().map(part).collect()
}

fn of_numbers(numbers: &BTreeSet<(usize, u64)>) -> String {
    // 01 to 09 are written with a zero, 10 to 99 are not: both have two digits.
    let zeros = numbers.iter().map(|(digits, _)| *digits).max().unwrap_or(0);
    let text = |number: u64| format!("{number:0zeros$}");
    let is_padded = |(digits, number): &(usize, u64)| {
        *digits == zeros || (*digits == 0 && number.to_string().len() >= zeros)
    };
    if !numbers.iter().all(is_padded) {
        let all = numbers
            .iter()
            .map(|(digits, number)| format!("{number:0digits$}"));
        return format!("[{}]", all.collect::<Vec<_>>().join(","));
    }
    let numbers: BTreeSet<u64> = numbers.iter().map(|(_, number)| *number).collect();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let range = |(first, last): &(u64, u64)| {
        if first == last {
            text(*first)
        } else {
            format!("{}-{}", text(*first), text(*last))
        }
    };
    match ranges.as_slice() {
        [(one, same)] if one == same => text(*one),
        ranges => format!(
            "[{}]",
            ranges.iter().map(range).collect::<Vec<_>>().join(",")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        folded(&names)
    }

    #[test]
    fn racks_and_workers_are_one_name() {
        let mut names = Vec::new();
        for rack in 1..=3 {
            for worker in 1..=10 {
                names.push(format!("dc1-r{rack}-w{worker:02}"));
            }
        }
        assert_eq!(
            folded(&names),
            "dc[1]-r[1-3]-w[01-10]".replace("[1]-", "1-")
        );
        names.remove(0);
        assert_eq!(folded(&names), "dc1-r1-w[02-10], dc1-r[2-3]-w[01-10]");
    }

    #[test]
    fn names_without_a_fold_are_counted_and_never_broken() {
        let names: Vec<String> = ["b2x", "c9k", "d7q", "fz4"]
            .map(|end| format!("pool-{end}"))
            .to_vec();
        let all = "pool-b2x, pool-c9k, pool-d7q, pool-fz4";
        assert_eq!(brief(&names, all.len()), all);
        assert_eq!(brief(&names, 30), "pool-b2x, pool-c9k and 2 more");
        assert_eq!(brief(&names, 3), "pool-b2x and 3 more");
        let ranges: Vec<String> = [1, 3, 5, 7, 9].map(|worker| format!("w{worker}")).to_vec();
        assert_eq!(brief(&ranges, 9), "w[1,…,9]");
    }

    #[test]
    fn names_in_lines_keep_every_fold_while_there_are_lines() {
        let mut names: Vec<String> = (1..=9).map(|number| format!("r1-w{number}")).collect();
        names.extend([1, 3, 5, 7, 9].map(|number| format!("r2-w{number}")));
        let all = "r1-w[1-9], r2-w[1,3,5,7,9]";
        assert_eq!(in_lines(&names, 15, 2), all);
        assert_eq!(in_lines(&names, 14, 2), "r1-w[1-9], r2-w[1,…,9]");
        assert_eq!(in_lines(&names, 14, 1), "r1-w[1-9] and 5 more");
        names.push("zone-b7k".to_owned());
        assert_eq!(in_lines(&names, 15, 2), "r1-w[1-9] and 6 more");
        assert_eq!(in_lines(&names, 15, 3), format!("{all}, zone-b7k"));
        // Short names share a line.
        let short: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        assert_eq!(in_lines(&short, 7, 2), "a, b, c, d, e");
        assert_eq!(in_lines(&short, 12, 1), "a and 4 more");
    }

    #[test]
    fn a_fold_of_many_ranges_is_shortened() {
        assert_eq!(shortened("r1-w[01-09,11-19,21-29]"), "r1-w[01-09,…,21-29]");
        assert_eq!(shortened("r[1-2]-w[1,3]"), "r[1-2]-w[1,3]");
        assert_eq!(shortened("n1"), "n1");
    }

    #[test]
    fn names_that_have_nothing_in_common_stay_as_they_are() {
        assert_eq!(of(&["a", "b"]), "a, b");
        assert_eq!(of(&["n1"]), "n1");
        assert_eq!(of(&["n1", "n2", "n4", "m1"]), "m1, n[1-2,4]");
        assert_eq!(of(&["n9", "n10", "n11"]), "n[9-11]");
        assert_eq!(of(&["n1", "n01"]), "n[1,01]");
        assert_eq!(of(&["n099", "n100"]), "n[099-100]");
        assert_eq!(of(&[]), "");
    }
}
