//! Which value was computed from which, and which of them are current.
#![expect(
    clippy::indexing_slicing,
    reason = "slots are numbered here, and a number is returned only after its slot exists"
)]

/// Counts what happens to a memo. Never does one live long enough to use up the numbers: with 32 bits a change would be lost after some weeks.
pub(super) type Count = u64;

/// The place of a value in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

impl SlotId {
    /// The place of what is read without being recorded.
    pub(super) const NONE: Self = Self(u32::MAX);

    fn place(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not computed yet.
    New,
    /// The value of the inputs as they are.
    Current,
    /// Something below has changed.
    Marked,
    /// Being computed.
    Running,
    /// Of no use any more.
    Free,
}

/// A value's place in the graph.
#[derive(Clone, Debug)]
struct Slot {
    table: u16,
    local: u32,
    state: State,
    /// When the value became another.
    changed_at: Count,
    /// When it was last found to be current.
    verified_at: Count,
    /// Whether it is needed from outside.
    is_root: bool,
    /// Whether it is among the marked roots.
    is_listed: bool,
    /// Whether something it read has changed since it was read.
    is_unstable: bool,
    /// The computation that last read it.
    seen_by: Count,
    /// How often others read it.
    readers: u32,
    /// How many of `read_by` do not read it any more.
    stale: u32,
    reads: Box<[SlotId]>,
    /// Who reads it, and some who did.
    read_by: Vec<SlotId>,
}

impl Slot {
    /// The table of the value, and its number there.
    fn address(&self) -> (usize, usize) {
        (usize::from(self.table), self.local as usize)
    }
}

/// The state of a value when it is requested.
pub(super) enum Begun {
    Current,
    Running { table: usize },
    New { table: usize, local: usize },
    Marked { table: usize, local: usize },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    slots: Vec<Slot>,
    free: Vec<SlotId>,
    /// Values that are needed from outside and were marked.
    marked_roots: Vec<SlotId>,
    /// Values that lost their last reader.
    unread: Vec<SlotId>,
    /// Counts changes of inputs and barriers.
    now: Count,
    /// Numbers of comparisons between old and new reads; they count down where computations count up.
    comparisons: Count,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, table: usize, local: usize) -> SlotId {
        let (Ok(table), Ok(local)) = (u16::try_from(table), u32::try_from(local)) else {
            unreachable!("four billion values do not fit into memory")
        };
        let slot = Slot {
            table,
            local,
            state: State::New,
            changed_at: self.now,
            verified_at: 0,
            is_root: false,
            is_listed: false,
            is_unstable: false,
            seen_by: 0,
            readers: 0,
            stale: 0,
            reads: Box::default(),
            read_by: Vec::new(),
        };
        if let Some(id) = self.free.pop() {
            self.slots[id.place()] = slot;
            return id;
        }
        let Ok(number) = u32::try_from(self.slots.len()) else {
            unreachable!("four billion values do not fit into memory")
        };
        self.slots.push(slot);
        SlotId(number)
    }

    /// An input's value is current by itself.
    pub(super) fn set_current(&mut self, slot: SlotId) {
        let now = self.now;
        let slot = &mut self.slots[slot.place()];
        slot.state = State::Current;
        slot.verified_at = now;
    }

    /// Notes a read, and gives when it was; nothing if this computation has read the value before.
    pub(super) fn see(&mut self, slot: SlotId, computation: Count) -> Option<Count> {
        let now = self.now;
        let slot = &mut self.slots[slot.place()];
        let is_first = slot.seen_by != computation;
        slot.seen_by = computation;
        is_first.then_some(now)
    }

    pub(super) fn begin(&mut self, slot: SlotId) -> Begun {
        let slot = &mut self.slots[slot.place()];
        let (table, local) = slot.address();
        match slot.state {
            State::Current => Begun::Current,
            State::Running => Begun::Running { table },
            State::New => {
                slot.state = State::Running;
                Begun::New { table, local }
            }
            State::Marked => {
                slot.state = State::Running;
                Begun::Marked { table, local }
            }
            State::Free => unreachable!("a dropped value has no readers"),
        }
    }

    /// Notes that a value was found to be that of its reads. False where one of them has changed since it was looked at.
    pub(super) fn end_verified(&mut self, id: SlotId) -> bool {
        let slot = &self.slots[id.place()];
        let is_old = |read: &SlotId| {
            let read = &self.slots[read.place()];
            read.state == State::Marked || read.changed_at > slot.verified_at
        };
        let is_unstable = slot.reads.iter().any(is_old);
        self.end(id, is_unstable)
    }

    /// Notes that a value was computed, and whether it is another. False where something it read has changed since it was read.
    pub(super) fn end_computed(&mut self, id: SlotId, has_changed: bool) -> bool {
        if has_changed {
            self.now += 1;
            let now = self.now;
            self.slots[id.place()].changed_at = now;
        }
        let is_unstable = self.slots[id.place()].is_unstable;
        self.end(id, is_unstable)
    }

    fn end(&mut self, id: SlotId, is_unstable: bool) -> bool {
        let now = self.now;
        let slot = &mut self.slots[id.place()];
        slot.is_unstable = false;
        if is_unstable {
            // It is looked at once more.
            slot.state = State::Marked;
        } else {
            slot.state = State::Current;
            slot.verified_at = now;
        }
        !is_unstable
    }

    /// Whether a value is that of the inputs as they are.
    pub(super) fn is_current(&self, slot: SlotId) -> bool {
        self.slots[slot.place()].state == State::Current
    }

    /// Whether a value is there and marked.
    pub(super) fn is_marked(&self, slot: SlotId) -> bool {
        self.slots[slot.place()].state == State::Marked
    }

    pub(super) fn read_at(&self, slot: SlotId, place: usize) -> Option<SlotId> {
        self.slots[slot.place()].reads.get(place).copied()
    }

    /// Whether a value became another after another one was verified.
    pub(super) fn is_newer(&self, read: SlotId, reader: SlotId) -> bool {
        self.slots[read.place()].changed_at > self.slots[reader.place()].verified_at
    }

    pub(super) fn set_changed(&mut self, slot: SlotId) {
        self.now += 1;
        let now = self.now;
        self.slots[slot.place()].changed_at = now;
    }

    /// Notes that a value is needed from outside.
    pub(super) fn root(&mut self, id: SlotId) {
        self.slots[id.place()].is_root = true;
    }

    /// Notes that a value is not needed from outside any more.
    pub(super) fn unroot(&mut self, id: SlotId) {
        self.slots[id.place()].is_root = false;
        self.unread.push(id);
    }

    /// Notes that nothing is needed from outside any more.
    pub(super) fn unroot_everything(&mut self) {
        self.marked_roots.clear();
        for (slot, number) in self.slots.iter_mut().zip(0..) {
            slot.is_listed = false;
            if std::mem::replace(&mut slot.is_root, false) {
                self.unread.push(SlotId(number));
            }
        }
    }

    /// The local numbers of the roots of a table that were marked since this was asked last.
    pub(super) fn take_marked(&mut self, table: usize) -> Vec<usize> {
        let mut marked = Vec::new();
        let slots = &mut self.slots;
        self.marked_roots.retain(|id| {
            let slot = &mut slots[id.place()];
            let (of, local) = slot.address();
            let is_of_table = of == table;
            if is_of_table {
                slot.is_listed = false;
                if slot.is_root {
                    marked.push(local);
                }
            }
            !is_of_table
        });
        marked
    }

    /// Puts what a computation read in the place of what it read before.
    pub(super) fn set_reads(&mut self, id: SlotId, reads: &[(SlotId, Count)]) {
        let is_old = |(read, at): &(SlotId, Count)| {
            let read = &self.slots[read.place()];
            read.state == State::Marked || read.changed_at > *at
        };
        let is_unstable = reads.iter().any(is_old);
        self.slots[id.place()].is_unstable = is_unstable;
        let reads: Box<[SlotId]> = reads.iter().map(|(read, _)| *read).collect();
        if self.slots[id.place()].reads == reads {
            return;
        }
        let before = std::mem::take(&mut self.slots[id.place()].reads);
        self.comparisons = self.comparisons.wrapping_sub(1);
        let comparison = self.comparisons;
        for read in &before {
            let read = &mut self.slots[read.place()];
            read.seen_by = comparison;
            read.readers -= 1;
            read.stale += 1;
        }
        for read in &reads {
            let read = &mut self.slots[read.place()];
            read.readers += 1;
            if read.seen_by == comparison {
                read.stale = read.stale.saturating_sub(1);
            } else {
                read.read_by.push(id);
            }
        }
        for read in before {
            if self.slots[read.place()].readers == 0 {
                self.unread.push(read);
            }
        }
        self.slots[id.place()].reads = reads;
    }

    /// Marks one value, and gives its place; nothing if it is marked already.
    pub(super) fn mark(&mut self, id: SlotId) -> Option<(SlotId, usize, usize)> {
        let slot = &mut self.slots[id.place()];
        // What read nothing depends on nothing: it is here by a reader that is no more.
        if slot.state != State::Current || slot.reads.is_empty() {
            return None;
        }
        slot.state = State::Marked;
        if slot.is_root && !slot.is_listed {
            slot.is_listed = true;
            self.marked_roots.push(id);
        }
        let (table, local) = self.slots[id.place()].address();
        Some((id, table, local))
    }

    /// Marks the readers of a value; returns those that were not marked before.
    pub(super) fn mark_readers(&mut self, id: SlotId) -> Vec<(SlotId, usize, usize)> {
        self.drop_stale_readers(id);
        let read_by = std::mem::take(&mut self.slots[id.place()].read_by);
        let marked = read_by.iter().filter_map(|reader| self.mark(*reader));
        let marked = marked.collect();
        self.slots[id.place()].read_by = read_by;
        marked
    }

    /// Removes former readers of a value, once there are many.
    fn drop_stale_readers(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.place()];
        if slot.stale < 32 || (slot.stale as usize) * 2 < slot.read_by.len() {
            return;
        }
        slot.stale = 0;
        let mut read_by = std::mem::take(&mut slot.read_by);
        read_by.sort_unstable_by_key(|reader| reader.0);
        read_by.dedup();
        read_by.retain(|reader| self.slots[reader.place()].reads.contains(&id));
        self.slots[id.place()].read_by = read_by;
    }

    /// Drops values without readers, and notifies each value's table.
    pub(super) fn sweep(&mut self, forget: impl Fn(usize, usize)) {
        while let Some(id) = self.unread.pop() {
            let slot = &mut self.slots[id.place()];
            let is_needed = slot.readers > 0 || slot.is_root;
            if is_needed || slot.state == State::Free {
                continue;
            }
            let (table, local) = slot.address();
            forget(table, local);
            self.retire(id);
        }
    }

    /// Frees the slot of a value, and releases its reads.
    pub(super) fn retire(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.place()];
        slot.state = State::Free;
        if slot.is_listed {
            slot.is_listed = false;
            self.marked_roots.retain(|root| *root != id);
        }
        let slot = &mut self.slots[id.place()];
        let reads = std::mem::take(&mut slot.reads);
        self.free.push(id);
        for read in reads {
            let slot = &mut self.slots[read.place()];
            slot.readers -= 1;
            slot.stale += 1;
            if slot.readers == 0 {
                self.unread.push(read);
            }
        }
    }
}
