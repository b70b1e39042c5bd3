//! How problems are shown: place, object, field, what is wrong and what to do. One cause is one error: what follows from it is folded, and
//! equal problems of many objects are one line.

mod cause;
mod hint;

use std::collections::{BTreeMap, BTreeSet};

use compiler::{Compilation, ObjectRef, Problem, Severity, problem};
use serde_json::{Value, json};

use self::cause::Causes;
use crate::{
    args::Format,
    input::{At, Unread, World},
    names,
    output::{self, Style, Verdict, counted, styled},
    rules::{self, DUPLICATE_OF},
};

/// From how many objects on equal problems are one line.
const ALIKE: usize = 3;
/// How many missing names are compared with those that exist: with thousands of both, the comparison takes minutes.
const COMPARED: usize = 500;
/// The most columns that the names of the others take.
const NAMES: usize = 160;

/// One problem as it is shown.
#[derive(Clone, Debug)]
pub(super) struct Diagnostic {
    pub(super) severity: Severity,
    reason: String,
    object: Option<ObjectRef>,
    field: String,
    message: String,
    /// The message without the name of the object, where it begins with that.
    nameless: String,
    hint: Option<String>,
    at: Option<At>,
    /// Other places that it is about, such as the first of two copies.
    related: Vec<(String, At)>,
    /// What it follows from.
    pub(super) cause: Option<String>,
}

/// All problems of a world, in the order in which they are shown.
pub(super) fn diagnostics(world: &World, problems: &[Problem]) -> Vec<Diagnostic> {
    let causes = Causes::of(world, problems);
    let unknown = world.unknown.iter();
    let unknown = unknown.map(|one| of_unread(one, Severity::Error, "Unreadable"));
    let misplaced = world.misplaced.iter();
    let misplaced = misplaced.map(|one| of_unread(one, Severity::Warning, "NoEffect"));
    let mut compared = 0;
    let known = problems.iter().map(|problem| {
        let cause = causes.behind(problem);
        // A missing name is compared with all names of its kind.
        let is_compared = matches!(problem.kind, problem::Kind::MissingReference { .. });
        compared += usize::from(is_compared);
        of_problem(world, problem, cause, !is_compared || compared <= COMPARED)
    });
    let mut all: Vec<Diagnostic> = unknown.chain(misplaced).chain(known).collect();
    // As one reads: errors first, and those of a file from its top; of what cannot be read first of all.
    let place = |one: &Diagnostic| (one.severity, one.object.is_some(), one.at.clone());
    all.sort_by_cached_key(place);
    all
}

fn of_unread(unread: &Unread, severity: Severity, reason: &str) -> Diagnostic {
    Diagnostic {
        severity,
        reason: reason.to_owned(),
        object: None,
        field: String::new(),
        message: unread.message.clone(),
        nameless: unread.nameless().to_owned(),
        hint: unread.hint.clone(),
        at: Some(unread.at.clone()),
        related: unread
            .first
            .iter()
            .map(|at| ("first".to_owned(), at.clone()))
            .collect(),
        cause: None,
    }
}

fn of_problem(
    world: &World,
    problem: &Problem,
    cause: Option<String>,
    has_hint: bool,
) -> Diagnostic {
    let origin = world.origins.get(&problem.subject);
    let mut diagnostic = Diagnostic {
        severity: problem.severity(),
        reason: problem.kind.reason().to_owned(),
        object: Some(problem.subject.clone()),
        field: problem.field.clone(),
        nameless: problem.kind.to_string(),
        message: problem.kind.to_string(),
        hint: has_hint
            .then(|| hint::of(world, problem))
            .flatten()
            .or_else(|| problem.kind.remedy()),
        at: origin.map(|origin| origin.at(&problem.field)),
        related: Vec::new(),
        cause,
    };
    if let (problem::Kind::RuleBroken { message }, Some(origin)) = (&problem.kind, origin) {
        if let Some((first, _)) = message
            .strip_prefix(DUPLICATE_OF)
            .and_then(|rest| rest.split_once(": "))
        {
            let first = origin.at(first);
            diagnostic.related.push(("first".to_owned(), first));
        } else if let Some(field) = named_field(world, problem, message) {
            diagnostic.at = Some(origin.at(&field));
        } else if problem.field.is_empty() && message.contains("its name must") {
            diagnostic.at = Some(origin.at("metadata.name"));
        }
    }
    let copies = world.copies.get(&problem.subject);
    if let (problem::Kind::Duplicate, Some([copy, ..])) = (&problem.kind, copies.map(Vec::as_slice))
    {
        let has_namespace = copy.has("metadata.namespace");
        if has_namespace && !problem.subject.kind.is_namespaced() {
            let kind = problem.subject.kind;
            diagnostic.hint = Some(format!(
                "objects of kind {kind} are in no namespace: give one of the two another name"
            ));
        }
        let first = diagnostic.at.replace(copy.at("metadata.name"));
        if let Some(origin) = origin.filter(|_| first.is_some()) {
            let first = origin.at("metadata.name");
            diagnostic.related.push(("first".to_owned(), first));
        }
    }
    if let Some(rival) = problem.kind.rival()
        && let Some(origin) = world.origins.get(rival)
    {
        // Most fields of one name in two kinds have one meaning.
        let (parent, name) = problem.field.rsplit_once('.').unwrap_or_default();
        let has_field =
            rival.kind == problem.subject.kind || rules::fields(rival.kind, parent).contains(&name);
        let field = if has_field {
            problem.field.as_str()
        } else {
            "metadata.name"
        };
        diagnostic
            .related
            .push((rival.to_string(), origin.at(field)));
    }
    diagnostic
}

/// The field below that of a broken rule that its message begins with, such as `ipv4.cidr must be …`.
fn named_field(world: &World, problem: &Problem, message: &str) -> Option<String> {
    let (word, _) = message.split_once(' ')?;
    let first = word.split(['.', '[']).next()?;
    let fields = rules::fields(problem.subject.kind, &problem.field);
    let is_there = fields.contains(&first);
    // A field of the object itself is written out.
    let path = match problem.field.as_str() {
        "" => word.to_owned(),
        parent => format!("{parent}.{word}"),
    };
    let is_there = is_there && world.origins.contains_key(&problem.subject);
    is_there.then_some(path)
}

/// How many there are of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) errors: usize,
    pub(super) warnings: usize,
    /// Problems that follow from others and are not shown.
    pub(super) hidden: usize,
}

impl Counts {
    /// The counts of all problems.
    pub(super) fn of(diagnostics: &[Diagnostic]) -> Self {
        let mut counts = Self::default();
        for one in diagnostics {
            match (is_hidden(one), one.severity) {
                (true, _) => counts.hidden += 1,
                (false, Severity::Error) => counts.errors += 1,
                (false, Severity::Warning) => counts.warnings += 1,
            }
        }
        counts
    }

    /// The errors and warnings in words; empty where there are none.
    pub(super) fn words(self) -> String {
        let mut words = Vec::new();
        if self.errors > 0 {
            words.push(counted(self.errors, "error"));
        }
        if self.warnings > 0 {
            words.push(counted(self.warnings, "warning"));
        }
        words.join(", ")
    }

    /// What is not shown, in words; empty where all is.
    pub(super) fn hidden_words(self) -> String {
        match self.hidden {
            0 => String::new(),
            hidden => format!("; {}", hidden_line(hidden)),
        }
    }
}

fn is_hidden(diagnostic: &Diagnostic) -> bool {
    diagnostic.cause.is_some() && !output::is_all()
}

/// Prints every problem to where people look, and gives whether there is an error among them.
pub(super) fn show(
    format: Format,
    world: &World,
    compilation: &Compilation,
) -> anyhow::Result<bool> {
    if format == Format::Table {
        beside(world, compilation);
    } else {
        output::documents(format, &values(world, &compilation.problems))?;
    }
    Ok(has_errors(world, compilation))
}

/// Prints problems beside an answer: errors and warnings of what was read. An answer from input with errors is not complete.
pub(super) fn beside(world: &World, compilation: &Compilation) -> Verdict {
    without_nodes(world);
    let hidden = lines(world, &compilation.problems).hidden;
    if hidden > 0 {
        output::note(&hidden_line(hidden));
    }
    if has_errors(world, compilation) {
        Verdict::Problems
    } else {
        Verdict::Fine
    }
}

/// Says that there is no Node in the input, where that is so.
pub(super) fn without_nodes(world: &World) {
    if world.has_no_node() {
        let line = "no Node in the input: what the objects become on nodes is not checked";
        output::note(&output::wrapped(line, 4));
    }
}

/// Whether something is wrong with what was read.
pub(super) fn has_errors(world: &World, compilation: &Compilation) -> bool {
    compilation.has_errors() || !world.unknown.is_empty()
}

/// How many problems are not shown, in words.
pub(super) fn hidden_line(hidden: usize) -> String {
    let them = if hidden == 1 { "it" } else { "them" };
    format!(
        "{} hidden, --all shows {them}",
        counted(hidden, "follow-up")
    )
}

/// Prints documents that are not read, and problems; and counts them.
pub(super) fn lines(world: &World, problems: &[Problem]) -> Counts {
    let diagnostics = diagnostics(world, problems);
    let shown = diagnostics.iter().filter(|one| !is_hidden(one));
    for group in alike(shown.collect()) {
        output::note(&output::wrapped(&brief(&of_group(&group)), 4));
    }
    Counts::of(&diagnostics)
}

/// The longest word that is shown as it is: the longest name of an object, in quotes.
const WORD: usize = 255;
/// What is shown of a longer word.
const START: usize = 60;

/// A text whose longest words are cut.
fn brief(text: &str) -> String {
    if output::is_all() {
        return text.to_owned();
    }
    let word = |word: &str| match word.char_indices().nth(START) {
        Some((end, _)) if word.chars().count() > WORD => {
            let quote = if word.starts_with('"') { "\"" } else { "" };
            let start = word.get(..end).unwrap_or_default();
            let last = word.chars().last().filter(|last| last.is_whitespace());
            format!(
                "{start}…{quote}{}",
                last.map(String::from).unwrap_or_default()
            )
        }
        _ => word.to_owned(),
    };
    text.split_inclusive([' ', '\n']).map(word).collect()
}

/// A text without what differs between equal mistakes in several objects: the values and numbers in it.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut quoted = false;
    for character in text.chars() {
        if character == '"' {
            quoted = !quoted;
        }
        let is_value = quoted || character.is_ascii_digit();
        // One mark stands for a value of any length.
        if !is_value {
            shape.push(character);
        } else if !shape.ends_with('#') {
            shape.push('#');
        }
    }
    shape
}

/// Problems that differ in nothing but their object and its values, together, also of objects of several kinds; in the order of the first of each.
fn alike<'a>(diagnostics: Vec<&'a Diagnostic>) -> Vec<Vec<&'a Diagnostic>> {
    let mut groups: Vec<Vec<&Diagnostic>> = Vec::new();
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for one in diagnostics {
        if output::is_all() {
            groups.push(vec![one]);
            continue;
        }
        let hint = one.hint.as_deref().map(shape);
        let key = (
            one.object.is_some(),
            shape(&one.field),
            shape(&one.nameless),
            hint,
        );
        let place = *known.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let mut found: Vec<Vec<&'a Diagnostic>> = Vec::new();
    for group in groups {
        if group.len() >= ALIKE {
            found.push(group);
        } else {
            found.extend(group.into_iter().map(|one| vec![one]));
        }
    }
    found
}

fn of_group(group: &[&Diagnostic]) -> String {
    let Some((first, others)) = group.split_first() else {
        return String::new();
    };
    let text = first.text();
    if others.is_empty() {
        return text;
    }
    let objects = others.iter().filter_map(|one| one.object.as_ref());
    let (thing, names) = match &first.object {
        Some(object) if objects.clone().all(|other| other.kind == object.kind) => {
            let names: Vec<String> = objects.map(|other| other.key.to_string()).collect();
            (object.kind.to_string(), names::brief(&names, NAMES))
        }
        Some(_) => ("object".to_owned(), kinds(objects)),
        None => {
            let places = others.iter().filter_map(|one| one.at.as_ref());
            let files: BTreeSet<String> = places.map(|at| at.file.to_string()).collect();
            let files: Vec<String> = files.into_iter().collect();
            ("document".to_owned(), names::brief(&files, NAMES))
        }
    };
    let number = counted(others.len(), &format!("more {thing}"));
    format!("{text}\n  also: {number}: {names}; --all shows them")
}

/// How many objects there are of each kind.
fn kinds<'a>(objects: impl Iterator<Item = &'a ObjectRef>) -> String {
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    for object in objects {
        *kinds.entry(object.kind).or_default() += 1;
    }
    let kinds = kinds.into_iter();
    let kinds = kinds.map(|(kind, number)| counted(number, kind.into()));
    kinds.collect::<Vec<_>>().join(", ")
}

impl Diagnostic {
    /// The problem in words.
    pub(super) fn text(&self) -> String {
        let severity = match self.severity {
            Severity::Error => styled(Style::Red, "error"),
            Severity::Warning => styled(Style::Yellow, "warning"),
        };
        let mut text = format!("{severity}: ");
        if let Some(at) = &self.at {
            text = format!("{text}{at}: ");
        }
        if let Some(object) = &self.object {
            text.push_str(&object.to_string());
            if !self.field.is_empty() {
                text = format!("{text} {}", self.field);
            }
            text.push_str(": ");
        }
        text.push_str(&self.message);
        for (what, at) in &self.related {
            text = format!("{text}\n  {what}: {at}");
        }
        if let Some(hint) = &self.hint {
            text = format!("{text}\n  hint: {hint}");
        }
        if let Some(cause) = &self.cause {
            text = format!("{text}\n  follows from: {cause}");
        }
        text
    }

    fn value(&self) -> Value {
        let mut value = json!({
            "severity": self.severity,
            "reason": self.reason,
            "message": self.message,
        });
        let mut set = |name: &str, text: Value| {
            if let Some(fields) = value.as_object_mut().filter(|_| !text.is_null()) {
                fields.insert(name.to_owned(), text);
            }
        };
        set("object", json!(self.object));
        if !self.field.is_empty() {
            set("field", json!(self.field));
        }
        set("remedy", json!(self.hint));
        set("followsFrom", json!(self.cause));
        for (name, part) in self.at.iter().flat_map(At::fields) {
            set(&name, part);
        }
        if !self.related.is_empty() {
            let related = self.related.iter().map(|(what, at)| {
                let mut fields = at.fields();
                fields.insert("what".to_owned(), what.as_str().into());
                Value::Object(fields)
            });
            set("related", related.collect());
        }
        value
    }
}

/// Problems as values, each with its place.
pub(super) fn values(world: &World, problems: &[Problem]) -> Vec<Value> {
    let diagnostics = diagnostics(world, problems);
    diagnostics.iter().map(Diagnostic::value).collect()
}

/// One problem in words, with its place.
pub(super) fn line(world: &World, problem: &Problem) -> String {
    of_problem(world, problem, None, true).text()
}
