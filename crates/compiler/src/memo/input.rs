//! Inputs: values that are set from outside, in parts that are read each on its own.

use std::{any::Any, cell::RefCell, sync::Arc};

use super::{Key, Map, Marked, Memo, Registered, Table, Value, graph::SlotId};

/// How many parts a value can have.
const PARTS: usize = 3;

/// Which parts of a value differ.
pub(crate) type Parts = [bool; PARTS];

/// Values that are set from outside.
pub(crate) trait Input: Registered {
    /// What they are set under.
    type Key: Key + Ord;
    /// A value, with all its parts.
    type Value: Clone + Send + 'static;
    /// Which parts of two values differ.
    fn differing(before: &Self::Value, now: &Self::Value) -> Parts;
}

/// One part of an input: a reader of it depends on nothing else of the input.
pub(crate) trait Part {
    /// The input.
    type Of: Input;
    /// What a reader gets.
    type Value: Value;
    /// The part's place among those of [`Input::differing`].
    const PART: usize;
    /// The part of a value.
    fn of(value: &<Self::Of as Input>::Value) -> Self::Value;
}

pub(super) struct InputTable<I: Input>(RefCell<Values<I>>);

struct Values<I: Input> {
    entries: Map<I::Key, Entry<I>>,
    /// The keys of the entries, and the part, by local number of a slot. The first is that of all keys.
    slots: Vec<Option<(I::Key, usize)>>,
    free: Vec<usize>,
    keys: Option<Arc<Vec<I::Key>>>,
    keys_slot: Option<SlotId>,
}

struct Entry<I: Input> {
    value: Option<I::Value>,
    /// The slots of the parts that were read.
    slots: [Option<SlotId>; PARTS],
}

impl<I: Input> Clone for Entry<I> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            slots: self.slots,
        }
    }
}

impl<I: Input> Default for InputTable<I> {
    fn default() -> Self {
        Self(RefCell::new(Values {
            entries: Map::default(),
            slots: vec![None],
            free: Vec::new(),
            keys: None,
            keys_slot: None,
        }))
    }
}

impl<I: Input> InputTable<I> {
    /// Sets the first values, which come in the order of their keys.
    pub(super) fn fill<'a>(&self, sorted: impl ExactSizeIterator<Item = (&'a I::Key, I::Value)>) {
        let mut values = self.0.borrow_mut();
        values.entries.reserve(sorted.len());
        let mut keys = Vec::with_capacity(sorted.len());
        for (key, value) in sorted {
            let (value, slots) = (Some(value), [None; PARTS]);
            values.entries.insert(key.clone(), Entry { value, slots });
            keys.push(key.clone());
        }
        values.keys = Some(Arc::new(keys));
    }

    /// Sets a value; gives what that changes for readers.
    pub(super) fn set(&self, key: &I::Key, value: Option<I::Value>) -> Vec<SlotId> {
        let mut values = self.0.borrow_mut();
        let values = &mut *values;
        let Some(entry) = values.entries.get_mut(key) else {
            if value.is_some() {
                let slots = [None; PARTS];
                values.entries.insert(key.clone(), Entry { value, slots });
                values.keys = None;
                return values.keys_slot.into_iter().collect();
            }
            return Vec::new();
        };
        let differing = match (&entry.value, &value) {
            (Some(before), Some(now)) => I::differing(before, now),
            (None, None) => [false; PARTS],
            _ => [true; PARTS],
        };
        let mut changed = Vec::new();
        if entry.value.is_some() != value.is_some() {
            values.keys = None;
            changed.extend(values.keys_slot);
        }
        for (slot, differs) in entry.slots.iter().zip(differing) {
            changed.extend(slot.filter(|_| differs));
        }
        entry.value = value;
        if entry.value.is_none() && entry.slots == [None; PARTS] {
            values.entries.remove(key);
        }
        changed
    }

    pub(super) fn part<P: Part<Of = I>>(
        &self,
        memo: &Memo,
        key: &I::Key,
    ) -> (SlotId, Option<P::Value>) {
        let mut values = self.0.borrow_mut();
        let values = &mut *values;
        if !memo.records {
            let entry = values.entries.get(key);
            let value = entry.and_then(|entry| entry.value.as_ref());
            return (SlotId::NONE, value.map(P::of));
        }
        if let Some(entry) = values.entries.get(key)
            && let Some(slot) = entry.slots.get(P::PART).copied().flatten()
        {
            return (slot, entry.value.as_ref().map(P::of));
        }
        let local = values.free.pop().unwrap_or(values.slots.len());
        let slot = memo.new_slot::<I>(local);
        memo.graph.borrow_mut().set_current(slot);
        let place = Some((key.clone(), P::PART));
        match values.slots.get_mut(local) {
            Some(free) => *free = place,
            None => values.slots.push(place),
        }
        let absent = Entry {
            value: None,
            slots: [None; PARTS],
        };
        let entry = values.entries.entry(key.clone()).or_insert(absent);
        if let Some(place) = entry.slots.get_mut(P::PART) {
            *place = Some(slot);
        }
        (slot, entry.value.as_ref().map(P::of))
    }

    pub(super) fn keys(&self, memo: &Memo) -> (SlotId, Arc<Vec<I::Key>>) {
        let mut values = self.0.borrow_mut();
        let slot = *values.keys_slot.get_or_insert_with(|| {
            let slot = memo.new_slot::<I>(0);
            memo.graph.borrow_mut().set_current(slot);
            slot
        });
        if let Some(keys) = &values.keys {
            return (slot, Arc::clone(keys));
        }
        #[expect(clippy::iter_over_hash_type, reason = "the keys are sorted")]
        let mut keys: Vec<I::Key> = {
            let mut keys = Vec::new();
            for (key, entry) in &values.entries {
                if entry.value.is_some() {
                    keys.push(key.clone());
                }
            }
            keys
        };
        keys.sort_unstable();
        let keys = Arc::new(keys);
        values.keys = Some(Arc::clone(&keys));
        (slot, keys)
    }
}

impl<I: Input> Table for InputTable<I> {
    fn name(&self) -> &'static str {
        I::NAME
    }

    fn compute(&self, _memo: &Memo, _slot: SlotId, _local: usize) -> bool {
        unreachable!("{} is set, not computed", I::NAME)
    }

    fn is_barrier(&self) -> bool {
        false
    }

    fn mark(&self, _local: usize) -> Marked {
        Marked::Onwards
    }

    fn flush(&self, _memo: &Memo) {}

    fn forget(&self, local: usize) {
        let mut values = self.0.borrow_mut();
        let values = &mut *values;
        if local == 0 {
            values.keys_slot = None;
            return;
        }
        let Some((key, part)) = values.slots.get_mut(local).and_then(Option::take) else {
            return;
        };
        values.free.push(local);
        if let Some(entry) = values.entries.get_mut(&key) {
            if let Some(slot) = entry.slots.get_mut(part) {
                *slot = None;
            }
            if entry.value.is_none() && entry.slots == [None; PARTS] {
                values.entries.remove(&key);
            }
        }
    }

    fn copy(&self) -> Box<dyn Table> {
        let values = self.0.borrow();
        Box::new(Self(RefCell::new(Values {
            entries: values.entries.clone(),
            slots: values.slots.clone(),
            free: values.free.clone(),
            keys: values.keys.clone(),
            keys_slot: values.keys_slot,
        })))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
