//! What an API server would refuse of an object that can be read, or say of it.

use compiler::{ObjectRef, Problem, Snapshot, problem, snapshot::REQUIRED};
use serde_json::{Map, Value};

use super::{World, null::below};
use crate::rules;

impl World {
    /// Adds what rules of its kind the object breaks, except where the reader has already said so: in its problems from `known` on.
    pub(super) fn check_rules(&mut self, object: &ObjectRef, document: &Value, known: usize) {
        let mut said = self.snapshot.unreadable.split_off(known);
        let is_unreadable =
            |problem: &Problem| matches!(problem.kind, problem::Kind::Unreadable { .. });
        let is_readable = !said.iter().any(is_unreadable);
        let broken = self.rules.broken(object, document, None, is_readable);
        let is_said = |problem: &Problem| said.iter().any(|said| said.field == problem.field);
        let (_, new): (Vec<_>, Vec<_>) = broken.into_iter().partition(is_said);
        // The reader looks into a list for the fields of a map, and into a spec that is not there; the error around them is enough.
        said.retain(|said| {
            let is_around = |problem: &Problem| {
                let inside = said.field.strip_prefix(&problem.field);
                let message = problem.kind.to_string();
                let is_all = message == REQUIRED || message.starts_with("must be a map");
                is_all && inside.is_some_and(|inside| inside.starts_with(['[', '.']))
            };
            !is_unreadable(said) || !new.iter().any(is_around)
        });
        self.snapshot.unreadable.extend(said);
        self.snapshot.unreadable.extend(new);
    }

    /// Adds fields that are null and that no kind of this name has: another value would not be accepted.
    pub(super) fn check_nulls(&mut self, object: &ObjectRef, nulls: &[(String, String)]) {
        for (parent, name) in nulls {
            let fields = rules::fields(object.kind, parent);
            if fields.is_empty() || fields.contains(&name.as_str()) {
                continue;
            }
            let field = below(parent, name);
            let problem = Problem::new(object.clone(), field, problem::Kind::UnknownField);
            self.snapshot.unreadable.push(problem);
        }
    }

    /// Adds fields that no object of Kubernetes has: of the metadata, and, for kinds that others define, of the object itself.
    pub(super) fn check_names(&mut self, object: &ObjectRef, document: &Value) {
        let unknown_in = |parent: &str, value: Option<&Value>| -> Vec<String> {
            let known = rules::fields(object.kind, parent);
            let fields = value
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys);
            let unknown = fields.filter(|name| !known.contains(&name.as_str()));
            unknown.map(|name| below(parent, name)).collect()
        };
        let mut unknown = unknown_in("metadata", document.get("metadata"));
        if object.kind.is_borrowed() {
            unknown.extend(unknown_in("", Some(document)));
        }
        for field in unknown {
            let problem = Problem::new(object.clone(), field, problem::Kind::UnknownField);
            self.snapshot.unreadable.push(problem);
        }
    }

    /// Adds what the API server would refuse of objects that are there before: changes of fields that cannot be changed. The rules are those
    /// of the definitions that it gets.
    pub(crate) fn check_changes(&mut self, before: &Snapshot) {
        let mut refused = Vec::new();
        for object in self.origins.keys() {
            if !self.rules.compare(object.kind) || before.meta(object).is_none() {
                continue;
            }
            let documents = (before.document(object), self.snapshot.document(object));
            let (Some(was), Some(becomes)) = documents else {
                continue;
            };
            if was.get("spec") != becomes.get("spec") {
                refused.extend(self.rules.broken(object, &becomes, Some(&was), true));
            }
        }
        refused.retain(|problem| !self.snapshot.unreadable.contains(problem));
        self.snapshot.unreadable.extend(refused);
    }
}
