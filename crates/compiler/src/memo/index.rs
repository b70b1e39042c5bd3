//! Indexes: which sources give a key, kept up to date source by source.
//!
//! "Which Destinations have this label?" is a question to all Destinations. Asked plainly, everybody who asks depends on every
//! Destination. An index is the inverse of "which labels does this Destination have?": a reader depends on the answer for its key alone.

use std::{
    any::Any,
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use super::{Key, Map, Marked, Memo, Registered, Table, View, graph::SlotId};

/// The inverse of what sources give.
pub(crate) trait Index: Registered {
    /// Who gives.
    type Source: Key + Ord;
    /// What is asked for.
    type Key: Key + Ord;
    /// What a source gives under a key.
    type Item: Clone + PartialEq + Send + Sync + 'static;
    /// All sources.
    fn sources(view: &View<'_>) -> Vec<Self::Source>;
    /// What a source gives.
    fn entries(view: &View<'_>, source: &Self::Source) -> Vec<(Self::Key, Self::Item)>;
}

pub(super) struct IndexTable<X: Index>(RefCell<Rows<X>>);

struct Rows<X: Index> {
    /// The slot of the list of sources; absent until it is read.
    sources: Option<SlotId>,
    by_source: Map<X::Source, usize>,
    postings: Map<X::Key, Posting<X>>,
    /// The keys that sources give, kept after the first read of a range.
    sorted: Option<BTreeSet<X::Key>>,
    ranges: BTreeMap<Bounds<X>, Range<X>>,
    members: Vec<Member<X>>,
    free: Vec<usize>,
    /// Answers that have become others and whose readers are not marked yet.
    changed: Vec<SlotId>,
    /// Rows that may give something else now.
    marked: Vec<usize>,
    are_sources_marked: bool,
    is_running: bool,
}

/// The first and the last key of a range; nothing for all keys.
type Bounds<X> = Option<(<X as Index>::Key, <X as Index>::Key)>;

/// What a slot of an index stands for.
enum Member<X: Index> {
    Sources,
    Row(Row<X>),
    Posting(X::Key),
    Has(X::Key),
    Range(Bounds<X>),
    Free,
}

/// What one source gives.
struct Row<X: Index> {
    source: X::Source,
    slot: SlotId,
    entries: Vec<(X::Key, X::Item)>,
}

/// What sources give under one key, sorted by source.
struct Posting<X: Index> {
    items: Vec<(X::Source, X::Item)>,
    shared: Option<Arc<Vec<X::Item>>>,
    slot: Option<SlotId>,
    has_slot: Option<SlotId>,
}

struct Range<X: Index> {
    slot: SlotId,
    keys: Option<Arc<Vec<X::Key>>>,
}

impl<X: Index> Posting<X> {
    /// Whether a source gives something.
    fn is_given(&self) -> bool {
        let shared = self.shared.as_ref();
        !self.items.is_empty() || shared.is_some_and(|shared| !shared.is_empty())
    }

    /// The items, without a copy for each reader.
    fn shared(&mut self) -> Arc<Vec<X::Item>> {
        let items = self.shared.get_or_insert_with(|| {
            let items = self.items.iter().map(|(_, item)| item.clone());
            Arc::new(items.collect())
        });
        Arc::clone(items)
    }
}

impl<X: Index> Default for Posting<X> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            shared: None,
            slot: None,
            has_slot: None,
        }
    }
}

impl<X: Index> Default for IndexTable<X> {
    fn default() -> Self {
        Self(RefCell::new(Rows {
            sources: None,
            by_source: Map::default(),
            postings: Map::default(),
            sorted: None,
            ranges: BTreeMap::new(),
            members: Vec::new(),
            free: Vec::new(),
            changed: Vec::new(),
            marked: Vec::new(),
            are_sources_marked: false,
            is_running: false,
        }))
    }
}

impl<X: Index> IndexTable<X> {
    pub(super) fn who(&self, memo: &Memo, key: &X::Key) -> (SlotId, Arc<Vec<X::Item>>) {
        self.update(memo);
        let mut rows = self.0.borrow_mut();
        if !memo.records {
            let posting = rows.postings.get_mut(key);
            return (
                SlotId::NONE,
                posting.map_or_else(Arc::default, Posting::shared),
            );
        }
        let slot = match rows.postings.get(key).and_then(|posting| posting.slot) {
            Some(slot) => slot,
            None => rows.reader(memo, || Member::Posting(key.clone())),
        };
        let posting = rows.posting(key);
        posting.slot = Some(slot);
        (slot, posting.shared())
    }

    pub(super) fn has(&self, memo: &Memo, key: &X::Key) -> (SlotId, bool) {
        self.update(memo);
        let mut rows = self.0.borrow_mut();
        if !memo.records {
            return (SlotId::NONE, rows.postings.contains_key(key));
        }
        let slot = match rows.postings.get(key).and_then(|posting| posting.has_slot) {
            Some(slot) => slot,
            None => rows.reader(memo, || Member::Has(key.clone())),
        };
        let posting = rows.posting(key);
        posting.has_slot = Some(slot);
        let has = !posting.items.is_empty();
        (slot, has)
    }

    pub(super) fn keys_in(
        &self,
        memo: &Memo,
        bounds: Option<(&X::Key, &X::Key)>,
    ) -> (SlotId, Arc<Vec<X::Key>>) {
        self.update(memo);
        let mut rows = self.0.borrow_mut();
        let bounds = bounds.map(|(first, last)| (first.clone(), last.clone()));
        let known = rows.ranges.get(&bounds);
        let known = known.map(|range| (range.slot, range.keys.clone()));
        let (slot, keys) =
            known.unwrap_or_else(|| (rows.reader(memo, || Member::Range(bounds.clone())), None));
        let keys = keys.unwrap_or_else(|| {
            let sorted = rows.sorted();
            let given = match &bounds {
                Some((first, last)) if first <= last => {
                    Some(sorted.range(first.clone()..=last.clone()))
                }
                Some(_) => None,
                None => Some(sorted.range(..)),
            };
            Arc::new(given.into_iter().flatten().cloned().collect())
        });
        let cached = Some(Arc::clone(&keys));
        rows.ranges.insert(bounds, Range { slot, keys: cached });
        (slot, keys)
    }

    /// Brings the index up to date: looks at the rows that may give something else.
    fn update(&self, memo: &Memo) {
        {
            let mut rows = self.0.borrow_mut();
            if rows.is_running {
                unreachable!("{} depends on itself", X::NAME)
            }
            if rows.sources.is_some() && !rows.are_sources_marked && rows.marked.is_empty() {
                return;
            }
            rows.is_running = true;
            if rows.sources.is_none() && memo.records {
                let local = rows.member(Member::Sources);
                rows.sources = Some(memo.new_slot::<X>(local));
                rows.are_sources_marked = true;
            }
        }
        if !memo.records {
            return self.fill_once(memo);
        }
        let sources = {
            let mut rows = self.0.borrow_mut();
            let is_marked = mem::take(&mut rows.are_sources_marked);
            rows.sources.filter(|_| is_marked)
        };
        if let Some(slot) = sources {
            memo.refresh(slot);
        }
        let marked = mem::take(&mut self.0.borrow_mut().marked);
        for local in marked {
            let slot = match self.0.borrow().members.get(local) {
                Some(Member::Row(row)) => Some(row.slot),
                _ => None,
            };
            if let Some(slot) = slot {
                memo.refresh(slot);
            }
        }
        let changed = {
            let mut rows = self.0.borrow_mut();
            rows.is_running = false;
            mem::take(&mut rows.changed)
        };
        for slot in changed {
            memo.changed(slot);
        }
    }

    /// Asks all sources what they give, once and for all.
    fn fill_once(&self, memo: &Memo) {
        let view = View { memo };
        for source in sorted(X::sources(&view)) {
            for (key, item) in once(X::entries(&view, &source)) {
                let mut rows = self.0.borrow_mut();
                let posting = rows.postings.entry(key).or_default();
                // No row will be replaced, so the sources are not needed again.
                let items = posting.shared.get_or_insert_with(Arc::default);
                Arc::make_mut(items).push(item);
            }
        }
        let mut rows = self.0.borrow_mut();
        rows.sources = Some(SlotId::NONE);
        rows.is_running = false;
    }

    /// Asks which sources there are, and makes a row for each new one.
    fn list_sources(&self, memo: &Memo, slot: SlotId) {
        let (sources, reads) = memo.recording(X::sources);
        memo.graph.borrow_mut().set_reads(slot, &reads);
        let sources = sorted(sources);
        let mut rows = self.0.borrow_mut();
        let rows = &mut *rows;
        let is_gone = |member: &Member<X>| match member {
            Member::Row(row) => sources.binary_search(&row.source).is_err(),
            Member::Sources
            | Member::Posting(_)
            | Member::Has(_)
            | Member::Range(_)
            | Member::Free => false,
        };
        let gone = rows.members.iter().enumerate();
        let gone: Vec<usize> = gone
            .filter_map(|(local, member)| is_gone(member).then_some(local))
            .collect();
        for local in gone {
            let Some(member) = rows.members.get_mut(local) else {
                continue;
            };
            if let Member::Row(row) = mem::replace(member, Member::Free) {
                rows.by_source.remove(&row.source);
                rows.free.push(local);
                rows.replace(&row.source, &row.entries, &[]);
                memo.graph.borrow_mut().retire(row.slot);
            }
        }
        rows.by_source.reserve(sources.len());
        for source in sources {
            if rows.by_source.contains_key(&source) {
                continue;
            }
            let local = rows.member(Member::Free);
            let slot = memo.new_slot::<X>(local);
            let row = Row {
                source: source.clone(),
                slot,
                entries: Vec::new(),
            };
            if let Some(member) = rows.members.get_mut(local) {
                *member = Member::Row(row);
            }
            rows.by_source.insert(source, local);
            rows.marked.push(local);
        }
    }

    /// Asks what a source gives, and puts it in the place of what it gave.
    fn fill_row(&self, memo: &Memo, slot: SlotId, source: &X::Source, local: usize) {
        let (entries, reads) = memo.recording(|view| X::entries(view, source));
        let entries = once(entries);
        memo.graph.borrow_mut().set_reads(slot, &reads);
        let mut rows = self.0.borrow_mut();
        let rows = &mut *rows;
        let before = match rows.members.get_mut(local) {
            Some(Member::Row(row)) => mem::take(&mut row.entries),
            _ => Vec::new(),
        };
        rows.replace(source, &before, &entries);
        if let Some(Member::Row(row)) = rows.members.get_mut(local) {
            row.entries = entries;
        }
    }
}

/// Sources in their order, each once.
fn sorted<S: Ord>(mut sources: Vec<S>) -> Vec<S> {
    sources.sort_unstable();
    sources.dedup();
    sources
}

/// Entries sorted by key, nothing twice.
fn once<K: Ord, V: PartialEq>(mut entries: Vec<(K, V)>) -> Vec<(K, V)> {
    if entries.len() < 2 {
        return entries;
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut unique: Vec<(K, V)> = Vec::with_capacity(entries.len());
    for (key, item) in entries {
        if !under(&unique, &key).iter().any(|(_, other)| *other == item) {
            unique.push((key, item));
        }
    }
    unique
}

/// What stands under a key.
fn under<'a, K: Ord, V>(sorted: &'a [(K, V)], key: &K) -> &'a [(K, V)] {
    let first = sorted.partition_point(|(other, _)| other < key);
    let rest = sorted.get(first..).unwrap_or_default();
    let count = rest.iter().take_while(|(other, _)| other == key).count();
    rest.get(..count).unwrap_or_default()
}

impl<X: Index> Rows<X> {
    fn member(&mut self, member: Member<X>) -> usize {
        if let Some(local) = self.free.pop() {
            if let Some(place) = self.members.get_mut(local) {
                *place = member;
            }
            return local;
        }
        self.members.push(member);
        self.members.len() - 1
    }

    /// The keys that sources give.
    fn sorted(&mut self) -> &BTreeSet<X::Key> {
        let postings = &self.postings;
        self.sorted.get_or_insert_with(|| {
            let given = postings.iter().filter(|(_, one)| one.is_given());
            given.map(|(key, _)| key.clone()).collect()
        })
    }

    /// A slot for a reader of an answer. The answer is current whenever the index is.
    fn reader(&mut self, memo: &Memo, member: impl FnOnce() -> Member<X>) -> SlotId {
        if !memo.records {
            return SlotId::NONE;
        }
        let local = self.member(member());
        let slot = memo.new_slot::<X>(local);
        memo.graph.borrow_mut().set_current(slot);
        slot
    }

    fn posting(&mut self, key: &X::Key) -> &mut Posting<X> {
        if !self.postings.contains_key(key) {
            self.postings.insert(key.clone(), Posting::default());
        }
        match self.postings.get_mut(key) {
            Some(posting) => posting,
            None => unreachable!("it was put there"),
        }
    }

    /// Puts what a source gives now in the place of what it gave, and notes whose answers that changes.
    fn replace(
        &mut self,
        source: &X::Source,
        before: &[(X::Key, X::Item)],
        now: &[(X::Key, X::Item)],
    ) {
        for (key, item) in before {
            if under(now, key).iter().any(|(_, other)| other == item) {
                continue;
            }
            let posting = self.posting(key);
            let place = posting
                .items
                .iter()
                .position(|(other, known)| other == source && known == item);
            if let Some(place) = place {
                posting.items.remove(place);
                let is_last = posting.items.is_empty();
                self.note_change(key, is_last);
            }
        }
        for (key, item) in now {
            if under(before, key).iter().any(|(_, other)| other == item) {
                continue;
            }
            let posting = self.posting(key);
            let place = posting.items.partition_point(|(other, _)| other <= source);
            let is_first = posting.items.is_empty();
            let given = (source.clone(), item.clone());
            posting.items.insert(place, given);
            self.note_change(key, is_first);
        }
    }

    /// Records that the sources of a key have changed, and whether the key became present or absent.
    fn note_change(&mut self, key: &X::Key, comes_or_goes: bool) {
        let Some(posting) = self.postings.get_mut(key) else {
            return;
        };
        posting.shared = None;
        self.changed.extend(posting.slot);
        if comes_or_goes {
            if let Some(sorted) = &mut self.sorted {
                if posting.items.is_empty() {
                    sorted.remove(key);
                } else {
                    sorted.insert(key.clone());
                }
            }
            self.changed.extend(posting.has_slot);
            let around = self.ranges.iter_mut();
            let around = around.filter(|(bounds, _)| {
                let bounds = bounds.as_ref();
                bounds.is_none_or(|(first, last)| first <= key && key <= last)
            });
            for (_, range) in around {
                range.keys = None;
                self.changed.push(range.slot);
            }
        }
        if posting.items.is_empty() && posting.slot.is_none() && posting.has_slot.is_none() {
            self.postings.remove(key);
        }
    }
}

impl<X: Index> Table for IndexTable<X> {
    fn name(&self) -> &'static str {
        X::NAME
    }

    fn compute(&self, memo: &Memo, slot: SlotId, local: usize) -> bool {
        let row = match self.0.borrow().members.get(local) {
            Some(Member::Row(row)) => Some(row.source.clone()),
            _ => None,
        };
        match row {
            Some(source) => self.fill_row(memo, slot, &source, local),
            None => self.list_sources(memo, slot),
        }
        // Rows have no readers: reads are recorded with the answers.
        false
    }

    /// Its answers are noted one by one.
    fn is_barrier(&self) -> bool {
        false
    }

    /// Which key a row will give is not known before it is asked.
    fn mark(&self, local: usize) -> Marked {
        let mut rows = self.0.borrow_mut();
        match rows.members.get(local) {
            Some(Member::Sources) => rows.are_sources_marked = true,
            Some(Member::Row(_)) => rows.marked.push(local),
            _ => return Marked::Onwards,
        }
        Marked::Index
    }

    fn flush(&self, memo: &Memo) {
        self.update(memo);
    }

    fn forget(&self, local: usize) {
        let mut rows = self.0.borrow_mut();
        let rows = &mut *rows;
        let Some(member) = rows.members.get_mut(local) else {
            return;
        };
        match mem::replace(member, Member::Free) {
            Member::Posting(key) => {
                rows.posting(&key).slot = None;
                rows.drop_empty(&key);
            }
            Member::Has(key) => {
                rows.posting(&key).has_slot = None;
                rows.drop_empty(&key);
            }
            Member::Range(bounds) => {
                rows.ranges.remove(&bounds);
            }
            // The graph drops only values that were read.
            other @ (Member::Sources | Member::Row(_) | Member::Free) => {
                *member = other;
                return;
            }
        }
        rows.free.push(local);
    }

    fn copy(&self) -> Box<dyn Table> {
        let rows = self.0.borrow();
        let postings = rows.postings.iter().map(|(key, posting)| {
            let posting = Posting {
                items: posting.items.clone(),
                shared: posting.shared.clone(),
                slot: posting.slot,
                has_slot: posting.has_slot,
            };
            (key.clone(), posting)
        });
        let ranges = rows.ranges.iter().map(|(bounds, range)| {
            let range = Range {
                slot: range.slot,
                keys: range.keys.clone(),
            };
            (bounds.clone(), range)
        });
        let members = rows.members.iter().map(|member| match member {
            Member::Sources => Member::Sources,
            Member::Row(row) => Member::Row(Row {
                source: row.source.clone(),
                slot: row.slot,
                entries: row.entries.clone(),
            }),
            Member::Posting(key) => Member::Posting(key.clone()),
            Member::Has(key) => Member::Has(key.clone()),
            Member::Range(bounds) => Member::Range(bounds.clone()),
            Member::Free => Member::Free,
        });
        Box::new(Self(RefCell::new(Rows {
            sources: rows.sources,
            by_source: rows.by_source.clone(),
            postings: postings.collect(),
            sorted: rows.sorted.clone(),
            ranges: ranges.collect(),
            members: members.collect(),
            free: rows.free.clone(),
            changed: Vec::new(),
            marked: rows.marked.clone(),
            are_sources_marked: rows.are_sources_marked,
            is_running: false,
        })))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<X: Index> Rows<X> {
    fn drop_empty(&mut self, key: &X::Key) {
        let is_empty = self.postings.get(key).is_some_and(|posting| {
            posting.items.is_empty() && posting.slot.is_none() && posting.has_slot.is_none()
        });
        if is_empty {
            self.postings.remove(key);
        }
    }
}
