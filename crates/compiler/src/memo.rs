//! Values that are computed once and again only when something they were computed from has changed.
//!
//! ```text
//! Input ──read──► Query ──read──► Query ──► …      a query is a plain function of a key
//!                   │ ▲
//!                   ▼ │                            it reads through a View, and the View records each read
//!                  Index                           an index answers "which sources give this key?"
//! ```
//!
//! A query cannot read anything but through its [`View`], so no dependency can be forgotten: what was read is what is recorded. When
//! an input changes, the values that depend on it are marked. A marked value is taken again if none of its reads has another value
//! now; else it is computed again, and if it comes out equal, its readers are not.
//!
//! Almost everything depends on the few values that are computed from all objects, and these seldom change. Marks stop at them: such a
//! barrier (a query without a key, an index) is brought up to date before anything else is asked for, and only if it has changed are
//! its readers marked.
//!
//! Nothing here knows what is computed.

mod graph;
mod index;
mod input;
mod query;
#[cfg(test)]
mod tests;

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    hash::Hash,
    sync::Arc,
};

use self::graph::{Count, Graph, SlotId};
pub(crate) use self::{
    index::Index,
    input::{Input, Part, Parts},
    query::Query,
};

/// What values are looked up by.
pub(crate) trait Key: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static {}
impl<K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static> Key for K {}

/// What is computed. Large values are shared (`Arc`), so that a copy is cheap and an unchanged part is compared by its address.
pub(crate) trait Value: Clone + PartialEq + Send + 'static {}
impl<V: Clone + PartialEq + Send + 'static> Value for V {}

/// The place of an input, query or index among all tables; see [`tables`].
pub(crate) trait Registered: 'static {
    /// Its place.
    const PLACE: usize;
    /// Its name, for messages to developers.
    const NAME: &'static str;
}

/// Only looked up, never walked: its order means nothing.
type Map<K, V> = rustc_hash::FxHashMap<K, V>;

/// One table: the values of an input, a query or an index.
pub(crate) trait Table: Send {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Computes a value again. True if the value is another now.
    fn compute(&self, memo: &Memo, slot: SlotId, local: usize) -> bool;
    /// Whether marks stop at its values.
    fn is_barrier(&self) -> bool;
    /// Notes that something this value was computed from may have changed; says whether marks go on to its readers.
    fn mark(&self, local: usize) -> Marked;
    /// Brings up to date what marks stopped at.
    fn flush(&self, memo: &Memo);
    /// Drops a value that nothing reads any more.
    fn forget(&self, local: usize);
    /// A copy.
    fn copy(&self) -> Box<dyn Table>;
    /// The table with its type.
    fn as_any(&self) -> &dyn Any;
}

/// Where marks go from a marked value.
pub(crate) enum Marked {
    /// To its readers.
    Onwards,
    /// Nowhere before the value is computed again.
    Barrier,
    /// Nowhere before the index is up to date.
    Index,
}

/// What marks stopped at.
enum Suspect {
    Value(SlotId),
    Index(usize),
}

/// All values.
pub(crate) struct Memo {
    graph: RefCell<Graph>,
    tables: Vec<Box<dyn Table>>,
    /// The reads of the computations under way, the innermost last.
    frames: RefCell<Vec<Frame>>,
    frames_begun: Cell<Count>,
    /// Whether reads are recorded, so that inputs can change.
    records: bool,
    /// Whether something was asked for whose reads are not recorded.
    is_fixed: Cell<bool>,
    /// Barriers that may have changed.
    suspects: RefCell<Vec<Suspect>>,
}

/// The reads of one computation, in their order, each with when it was read.
struct Frame {
    serial: Count,
    reads: Vec<(SlotId, Count)>,
}

/// What queries read through.
pub(crate) struct View<'m> {
    memo: &'m Memo,
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memo")
            .field("values", &self.graph.borrow().len())
            .finish_non_exhaustive()
    }
}

impl Clone for Memo {
    fn clone(&self) -> Self {
        self.flush();
        Self {
            graph: self.graph.clone(),
            tables: self.tables.iter().map(|table| table.copy()).collect(),
            frames: RefCell::default(),
            // Values remember which computation has read them.
            frames_begun: self.frames_begun.clone(),
            records: self.records,
            is_fixed: self.is_fixed.clone(),
            suspects: RefCell::default(),
        }
    }
}

impl Memo {
    /// A memo of these tables, each at the place that it is registered for.
    pub(crate) fn new(tables: Vec<Box<dyn Table>>) -> Self {
        Self {
            graph: RefCell::default(),
            tables,
            frames: RefCell::default(),
            frames_begun: Cell::new(0),
            records: true,
            is_fixed: Cell::new(false),
            suspects: RefCell::default(),
        }
    }

    /// A memo whose inputs do not change once something was asked for: it records no reads.
    pub(crate) fn once(tables: Vec<Box<dyn Table>>) -> Self {
        Self {
            records: false,
            ..Self::new(tables)
        }
    }

    /// Sets the first values of an input, which come in the order of their keys.
    pub(crate) fn fill<'a, I: Input>(
        &mut self,
        sorted: impl ExactSizeIterator<Item = (&'a I::Key, I::Value)>,
    ) {
        self.table::<I, input::InputTable<I>>().fill(sorted);
    }

    /// Sets an input, or takes it away.
    pub(crate) fn set<I: Input>(&mut self, key: &I::Key, value: Option<I::Value>) {
        assert!(
            !self.is_fixed.get(),
            "no reads were recorded, so inputs are fixed"
        );
        let changed = self.table::<I, input::InputTable<I>>().set(key, value);
        for slot in changed {
            self.changed(slot);
        }
    }

    /// Requests a value from outside: it is kept until it is released.
    pub(crate) fn root<Q: Query>(&self, key: &Q::Key) -> Q::Value {
        self.flush();
        let (slot, value) = self.table::<Q, query::QueryTable<Q>>().get(self, key);
        if self.records {
            self.graph.borrow_mut().root(slot);
        }
        value
    }

    /// Says that no value of a query is needed from outside any more.
    pub(crate) fn unroot_all<Q: Query>(&self) {
        if !self.records {
            return;
        }
        for slot in self.table::<Q, query::QueryTable<Q>>().slots() {
            self.graph.borrow_mut().unroot(slot);
        }
    }

    /// Says that nothing is needed from outside any more.
    pub(crate) fn unroot_everything(&mut self) {
        self.graph.get_mut().unroot_everything();
    }

    /// The values that were asked for from outside and may be others now, since this was asked last.
    pub(crate) fn marked<Q: Query>(&self) -> Vec<Q::Key> {
        self.flush();
        let marked = self.graph.borrow_mut().take_marked(Q::PLACE);
        let table = self.table::<Q, query::QueryTable<Q>>();
        marked
            .into_iter()
            .filter_map(|local| table.key(local))
            .collect()
    }

    /// Reads from outside: nothing is recorded.
    pub(crate) fn view(&self) -> View<'_> {
        self.flush();
        View { memo: self }
    }

    /// Drops every value that is neither needed from outside nor read by any other.
    pub(crate) fn sweep(&mut self) {
        let Self { graph, tables, .. } = self;
        graph.get_mut().sweep(|table, local| {
            if let Some(table) = tables.get(table) {
                table.forget(local);
            }
        });
    }

    /// For how many keys a query was asked.
    #[cfg(test)]
    pub(crate) fn count<Q: Query>(&self) -> usize {
        self.table::<Q, query::QueryTable<Q>>().slots().len()
    }

    /// How many values there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.graph.borrow().len()
    }

    fn table<R: Registered, T: Table + 'static>(&self) -> &T {
        let table = self.tables.get(R::PLACE);
        match table.and_then(|table| table.as_any().downcast_ref::<T>()) {
            Some(table) => table,
            None => unreachable!("{} is not where it is registered", R::NAME),
        }
    }

    fn new_slot<R: Registered>(&self, local: usize) -> SlotId {
        self.graph.borrow_mut().insert(R::PLACE, local)
    }

    /// Notes that the computation under way reads a value.
    fn record(&self, slot: SlotId) {
        if !self.records {
            return;
        }
        let mut frames = self.frames.borrow_mut();
        if let Some(frame) = frames.last_mut()
            && let Some(now) = self.graph.borrow_mut().see(slot, frame.serial)
        {
            frame.reads.push((slot, now));
        }
    }

    /// Runs a computation and gives what it read.
    fn recording<T>(&self, compute: impl FnOnce(&View<'_>) -> T) -> (T, Vec<(SlotId, Count)>) {
        let serial = self.frames_begun.get() + 1;
        self.frames_begun.set(serial);
        let reads = Vec::new();
        self.frames.borrow_mut().push(Frame { serial, reads });
        let value = compute(&View { memo: self });
        let frame = self.frames.borrow_mut().pop();
        (value, frame.map(|frame| frame.reads).unwrap_or_default())
    }

    /// Brings up to date what marks stopped at. Then everything that may be another is marked.
    fn flush(&self) {
        if !self.records {
            self.is_fixed.set(true);
        }
        loop {
            let suspect = self.suspects.borrow_mut().pop();
            match suspect {
                Some(Suspect::Value(slot)) => {
                    let is_marked = self.graph.borrow().is_marked(slot);
                    if is_marked {
                        self.refresh(slot);
                    }
                }
                Some(Suspect::Index(table)) => {
                    if let Some(table) = self.tables.get(table) {
                        table.flush(self);
                    }
                }
                None => return,
            }
        }
    }

    /// Makes sure that a value is that of the inputs as they are.
    fn refresh(&self, slot: SlotId) {
        // Once more where something it read has changed in the meantime.
        while !self.refresh_once(slot) {}
    }

    fn refresh_once(&self, slot: SlotId) -> bool {
        let state = self.graph.borrow_mut().begin(slot);
        let (table, local) = match state {
            graph::Begun::Current => return true,
            graph::Begun::Running { table } => {
                let name = self.tables.get(table).map_or("?", |table| table.name());
                unreachable!("{name} depends on itself")
            }
            graph::Begun::New { table, local } => (table, local),
            graph::Begun::Marked { table, local } => {
                if !self.has_changed_reads(slot) {
                    return self.graph.borrow_mut().end_verified(slot);
                }
                (table, local)
            }
        };
        let Some(table) = self.tables.get(table) else {
            unreachable!("every value is of a table")
        };
        let has_changed = table.compute(self, slot, local);
        let is_current = self.graph.borrow_mut().end_computed(slot, has_changed);
        // The readers of all others were marked with them.
        if has_changed && table.is_barrier() {
            self.mark_readers(slot);
        }
        is_current
    }

    /// Whether something that a value was computed from is another now. Reads are looked at in their order: what was read later may
    /// have been read only because of what was read before.
    fn has_changed_reads(&self, slot: SlotId) -> bool {
        let mut place = 0;
        loop {
            let read = self.graph.borrow().read_at(slot, place);
            let Some(read) = read else { return false };
            self.refresh(read);
            if self.graph.borrow().is_newer(read, slot) {
                return true;
            }
            place += 1;
        }
    }

    /// Notes that an input, or an answer of an index, is another.
    fn changed(&self, slot: SlotId) {
        self.graph.borrow_mut().set_changed(slot);
        self.mark_readers(slot);
    }

    /// Marks everything that depends on a value, as far as the next barriers.
    fn mark_readers(&self, slot: SlotId) {
        let mut marked = self.graph.borrow_mut().mark_readers(slot);
        while let Some((slot, place, local)) = marked.pop() {
            let Some(table) = self.tables.get(place) else {
                continue;
            };
            match table.mark(local) {
                Marked::Onwards => marked.extend(self.graph.borrow_mut().mark_readers(slot)),
                Marked::Barrier => self.suspects.borrow_mut().push(Suspect::Value(slot)),
                Marked::Index => self.suspects.borrow_mut().push(Suspect::Index(place)),
            }
        }
    }
}

impl View<'_> {
    /// The value of a query.
    pub(crate) fn get<Q: Query>(&self, key: &Q::Key) -> Q::Value {
        let (slot, value) = self
            .memo
            .table::<Q, query::QueryTable<Q>>()
            .get(self.memo, key);
        self.memo.record(slot);
        value
    }

    /// A part of an input; its absence is recorded as a read as well.
    pub(crate) fn part<P: Part>(&self, key: &<P::Of as Input>::Key) -> Option<P::Value> {
        let table = self.memo.table::<P::Of, input::InputTable<P::Of>>();
        let (slot, value) = table.part::<P>(self.memo, key);
        self.memo.record(slot);
        value
    }

    /// The keys of all inputs of a kind, sorted.
    pub(crate) fn keys<I: Input>(&self) -> Arc<Vec<I::Key>> {
        let table = self.memo.table::<I, input::InputTable<I>>();
        let (slot, keys) = table.keys(self.memo);
        self.memo.record(slot);
        keys
    }

    /// What all sources give under a key, sorted by source.
    pub(crate) fn who<X: Index>(&self, key: &X::Key) -> Arc<Vec<X::Item>> {
        let table = self.memo.table::<X, index::IndexTable<X>>();
        let (slot, items) = table.who(self.memo, key);
        self.memo.record(slot);
        items
    }

    /// Whether any source gives a key.
    pub(crate) fn has<X: Index>(&self, key: &X::Key) -> bool {
        let table = self.memo.table::<X, index::IndexTable<X>>();
        let (slot, has) = table.has(self.memo, key);
        self.memo.record(slot);
        has
    }

    /// The keys of a range that sources give, sorted.
    pub(crate) fn keys_in<X: Index>(&self, first: &X::Key, last: &X::Key) -> Arc<Vec<X::Key>> {
        let table = self.memo.table::<X, index::IndexTable<X>>();
        let (slot, keys) = table.keys_in(self.memo, Some((first, last)));
        self.memo.record(slot);
        keys
    }

    /// All keys that sources give, sorted.
    pub(crate) fn all_keys<X: Index>(&self) -> Arc<Vec<X::Key>> {
        let table = self.memo.table::<X, index::IndexTable<X>>();
        let (slot, keys) = table.keys_in(self.memo, None);
        self.memo.record(slot);
        keys
    }
}

/// Gives queries and indexes their places, which begin after those of the inputs, and makes their tables.
macro_rules! tables {
    (from $first:expr; queries { $($query:ident: $query_type:ty,)* } indexes { $($index:ident: $index_type:ty,)* }) => {
        #[allow(clippy::enum_variant_names, clippy::allow_attributes, reason = "each is called as what it is the place of")]
        enum Place { $($query,)* $($index,)* }
        $(impl $crate::memo::Registered for $query_type {
            const PLACE: usize = $first + Place::$query as usize;
            const NAME: &'static str = stringify!($query);
        })*
        $(impl $crate::memo::Registered for $index_type {
            const PLACE: usize = $first + Place::$index as usize;
            const NAME: &'static str = stringify!($index);
        })*
        /// The tables, in the order of their places.
        fn tables() -> Vec<Box<dyn $crate::memo::Table>> {
            vec![
                $($crate::memo::query_table::<$query_type>(),)*
                $($crate::memo::index_table::<$index_type>(),)*
            ]
        }
    };
}
pub(crate) use tables;

/// An empty table of an input.
pub(crate) fn input_table<I: Input>() -> Box<dyn Table> {
    Box::new(input::InputTable::<I>::default())
}

/// An empty table of a query.
pub(crate) fn query_table<Q: Query>() -> Box<dyn Table> {
    Box::new(query::QueryTable::<Q>::default())
}

/// An empty table of an index.
pub(crate) fn index_table<X: Index>() -> Box<dyn Table> {
    Box::new(index::IndexTable::<X>::default())
}
