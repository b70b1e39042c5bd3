//! Queries: plain functions of a key.

use std::{
    any::{Any, TypeId},
    cell::RefCell,
};

use super::{Key, Map, Marked, Memo, Registered, Table, Value, View, graph::SlotId};

/// A value that is computed from others.
pub(crate) trait Query: Registered {
    /// What is asked for.
    type Key: Key;
    /// The answer.
    type Value: Value;
    /// Computes the answer, from nothing but the key and what is read through the view.
    fn compute(view: &View<'_>, key: &Self::Key) -> Self::Value;
    /// Whether marks stop at its values: much depends on them, and they seldom change. What has no key is computed from all of something.
    fn is_barrier() -> bool {
        TypeId::of::<Self::Key>() == TypeId::of::<()>()
    }
}

/// The answers of a query.
pub(super) struct QueryTable<Q: Query>(RefCell<Answers<Q>>);

struct Answers<Q: Query> {
    places: Map<Q::Key, (SlotId, usize)>,
    entries: Vec<Option<Entry<Q>>>,
    free: Vec<usize>,
    /// The answers of a memo that records nothing; nothing while one is computed.
    once: Map<Q::Key, Option<Q::Value>>,
}

struct Entry<Q: Query> {
    key: Q::Key,
    /// Absent until it is computed.
    value: Option<Q::Value>,
}

impl<Q: Query> Default for QueryTable<Q> {
    fn default() -> Self {
        Self(RefCell::new(Answers {
            places: Map::default(),
            entries: Vec::new(),
            free: Vec::new(),
            once: Map::default(),
        }))
    }
}

impl<Q: Query> QueryTable<Q> {
    pub(super) fn get(&self, memo: &Memo, key: &Q::Key) -> (SlotId, Q::Value) {
        if !memo.records {
            return (SlotId::NONE, self.get_once(memo, key));
        }
        let known = {
            let answers = self.0.borrow();
            let known = answers.places.get(key).copied();
            if let Some((slot, local)) = known
                && memo.graph.borrow().is_current(slot)
            {
                return (slot, answers.value(local));
            }
            known
        };
        let (slot, local) = known.unwrap_or_else(|| self.0.borrow_mut().insert(memo, key));
        memo.refresh(slot);
        (slot, self.0.borrow().value(local))
    }

    fn get_once(&self, memo: &Memo, key: &Q::Key) -> Q::Value {
        let known = self.0.borrow().once.get(key).cloned();
        match known {
            Some(Some(value)) => return value,
            Some(None) => unreachable!("{} depends on itself", Q::NAME),
            None => self.0.borrow_mut().once.insert(key.clone(), None),
        };
        let value = Q::compute(&View { memo }, key);
        if let Some(place) = self.0.borrow_mut().once.get_mut(key) {
            *place = Some(value.clone());
        }
        value
    }

    /// The key of an entry that has not been dropped.
    pub(super) fn key(&self, local: usize) -> Option<Q::Key> {
        let answers = self.0.borrow();
        let entry = answers.entries.get(local).and_then(Option::as_ref);
        entry.map(|entry| entry.key.clone())
    }

    /// The slots of all keys that were asked for, in no order.
    pub(super) fn slots(&self) -> Vec<SlotId> {
        let answers = self.0.borrow();
        answers.places.values().map(|(slot, _)| *slot).collect()
    }
}

impl<Q: Query> Answers<Q> {
    fn value(&self, local: usize) -> Q::Value {
        let entry = self.entries.get(local).and_then(Option::as_ref);
        match entry.and_then(|entry| entry.value.clone()) {
            Some(value) => value,
            None => unreachable!("{} has been computed", Q::NAME),
        }
    }

    fn insert(&mut self, memo: &Memo, key: &Q::Key) -> (SlotId, usize) {
        let local = self.free.pop().unwrap_or(self.entries.len());
        let slot = memo.new_slot::<Q>(local);
        self.places.insert(key.clone(), (slot, local));
        let entry = Some(Entry {
            key: key.clone(),
            value: None,
        });
        match self.entries.get_mut(local) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        (slot, local)
    }
}

impl<Q: Query> Table for QueryTable<Q> {
    fn name(&self) -> &'static str {
        Q::NAME
    }

    fn compute(&self, memo: &Memo, slot: SlotId, local: usize) -> bool {
        let Some(key) = self.key(local) else {
            unreachable!("{} has not been dropped", Q::NAME)
        };
        let (value, reads) = memo.recording(|view| Q::compute(view, &key));
        memo.graph.borrow_mut().set_reads(slot, &reads);
        let mut answers = self.0.borrow_mut();
        let entry = answers.entries.get_mut(local).and_then(Option::as_mut);
        let known = entry.map(|entry| &mut entry.value);
        match known {
            Some(Some(known)) if *known == value => false,
            Some(known) => {
                *known = Some(value);
                true
            }
            None => unreachable!("{} has not been dropped", Q::NAME),
        }
    }

    fn is_barrier(&self) -> bool {
        Q::is_barrier()
    }

    fn mark(&self, _local: usize) -> Marked {
        if self.is_barrier() {
            Marked::Barrier
        } else {
            Marked::Onwards
        }
    }

    fn settle(&self, _memo: &Memo) {}

    fn forget(&self, local: usize) {
        let mut answers = self.0.borrow_mut();
        let entry = answers.entries.get_mut(local).and_then(Option::take);
        if let Some(entry) = entry {
            answers.places.remove(&entry.key);
            answers.free.push(local);
        }
    }

    fn copy(&self) -> Box<dyn Table> {
        let answers = self.0.borrow();
        let copy = |entry: &Entry<Q>| Entry {
            key: entry.key.clone(),
            value: entry.value.clone(),
        };
        let entries = answers.entries.iter().map(|entry| entry.as_ref().map(copy));
        Box::new(Self(RefCell::new(Answers {
            places: answers.places.clone(),
            entries: entries.collect(),
            free: answers.free.clone(),
            once: answers.once.clone(),
        })))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
