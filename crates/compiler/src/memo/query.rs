//! Queries: plain functions of a key.

use std::{
    any::{Any, TypeId},
    cell::RefCell,
    hash::{BuildHasher, Hash},
};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use super::{Key, Marked, Memo, Registered, Table, Value, View, graph::SlotId};

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
    /// The places of the keys among the entries: each key is in memory once.
    places: HashTable<Place>,
    entries: Vec<Option<Entry<Q>>>,
    free: Vec<usize>,
}

/// The place of a key among the entries. Its hash is kept: a table that grows need not look at every key in memory again.
#[derive(Clone, Copy)]
struct Place {
    hash: u64,
    local: u32,
}

struct Entry<Q: Query> {
    key: Q::Key,
    slot: SlotId,
    /// Absent until it is computed.
    value: Option<Q::Value>,
}

impl<Q: Query> Clone for Entry<Q> {
    fn clone(&self) -> Self {
        Self {
            key: self.key.clone(),
            slot: self.slot,
            value: self.value.clone(),
        }
    }
}

impl<Q: Query> Clone for Answers<Q> {
    fn clone(&self) -> Self {
        Self {
            places: self.places.clone(),
            entries: self.entries.clone(),
            free: self.free.clone(),
        }
    }
}

impl<Q: Query> Default for QueryTable<Q> {
    fn default() -> Self {
        Self(RefCell::new(Answers {
            places: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
        }))
    }
}

impl<Q: Query> QueryTable<Q> {
    pub(super) fn get(&self, memo: &Memo, key: &Q::Key) -> (SlotId, Q::Value) {
        let hash = hash(key);
        if !memo.records {
            return (SlotId::NONE, self.get_once(memo, key, hash));
        }
        let known = {
            let answers = self.0.borrow();
            let known = answers.find(key, hash);
            if let Some((local, entry)) = known
                && memo.graph.borrow().is_current(entry.slot)
            {
                return (entry.slot, answers.value(local));
            }
            known.map(|(local, entry)| (entry.slot, local))
        };
        let (slot, local) = known.unwrap_or_else(|| {
            let mut answers = self.0.borrow_mut();
            answers.insert(key, hash, |local| memo.new_slot::<Q>(local))
        });
        memo.refresh(slot);
        (slot, self.0.borrow().value(local))
    }

    fn get_once(&self, memo: &Memo, key: &Q::Key, hash: u64) -> Q::Value {
        let known = {
            let answers = self.0.borrow();
            let known = answers.find(key, hash);
            known.map(|(_, entry)| entry.value.clone())
        };
        let local = match known {
            Some(Some(value)) => return value,
            Some(None) => unreachable!("{} depends on itself", Q::NAME),
            None => self.0.borrow_mut().insert(key, hash, |_| SlotId::NONE).1,
        };
        let value = Q::compute(&View { memo }, key);
        self.0.borrow_mut().set(local, value.clone());
        value
    }

    /// The key of an entry that has not been dropped.
    pub(super) fn key(&self, local: usize) -> Option<Q::Key> {
        let answers = self.0.borrow();
        answers.entry(local).map(|entry| entry.key.clone())
    }

    /// The slots of all keys that were asked for, in no order.
    pub(super) fn slots(&self) -> Vec<SlotId> {
        let answers = self.0.borrow();
        let entries = answers.entries.iter().flatten();
        entries.map(|entry| entry.slot).collect()
    }
}

impl<Q: Query> Answers<Q> {
    fn entry(&self, local: usize) -> Option<&Entry<Q>> {
        self.entries.get(local).and_then(Option::as_ref)
    }

    fn find(&self, key: &Q::Key, hash: u64) -> Option<(usize, &Entry<Q>)> {
        let is_it = |place: &Place| {
            let has_key = |entry: &Entry<Q>| entry.key == *key;
            place.hash == hash && self.entry(place.local as usize).is_some_and(has_key)
        };
        let local = self.places.find(hash, is_it)?.local as usize;
        Some((local, self.entry(local)?))
    }

    fn value(&self, local: usize) -> Q::Value {
        match self.entry(local).and_then(|entry| entry.value.clone()) {
            Some(value) => value,
            None => unreachable!("{} has been computed", Q::NAME),
        }
    }

    /// Sets a value; true if it is another now.
    fn set(&mut self, local: usize, value: Q::Value) -> bool {
        match self.entries.get_mut(local).and_then(Option::as_mut) {
            Some(entry) if entry.value.as_ref() == Some(&value) => false,
            Some(entry) => {
                entry.value = Some(value);
                true
            }
            None => unreachable!("{} has not been dropped", Q::NAME),
        }
    }

    fn insert(
        &mut self,
        key: &Q::Key,
        hash: u64,
        slot: impl FnOnce(usize) -> SlotId,
    ) -> (SlotId, usize) {
        let local = self.free.pop().unwrap_or(self.entries.len());
        let Ok(number) = u32::try_from(local) else {
            unreachable!("four billion values do not fit into memory")
        };
        let slot = slot(local);
        let entry = Some(Entry {
            key: key.clone(),
            slot,
            value: None,
        });
        match self.entries.get_mut(local) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        let place = Place {
            hash,
            local: number,
        };
        self.places.insert_unique(place.hash, place, |one| one.hash);
        (slot, local)
    }
}

fn hash(key: &impl Hash) -> u64 {
    FxBuildHasher.hash_one(key)
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
        self.0.borrow_mut().set(local, value)
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

    fn flush(&self, _memo: &Memo) {}

    fn forget(&self, local: usize) {
        let mut answers = self.0.borrow_mut();
        let entry = answers.entries.get_mut(local).and_then(Option::take);
        if let Some(entry) = entry {
            let is_it = |place: &Place| place.local as usize == local;
            if let Ok(place) = answers.places.find_entry(hash(&entry.key), is_it) {
                place.remove();
            }
            answers.free.push(local);
        }
    }

    fn copy(&self) -> Box<dyn Table> {
        Box::new(Self(self.0.clone()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
