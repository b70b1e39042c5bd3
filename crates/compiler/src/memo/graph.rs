//! Which value was computed from which, and which of them are current.
#![expect(
    clippy::indexing_slicing,
    reason = "slots are numbered here, and a number is given to nobody before its slot is there"
)]

use super::Computed;

/// The place of a value in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

impl SlotId {
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
    table: usize,
    local: usize,
    state: State,
    /// The pass in which the value became another.
    changed_in: u32,
    /// The pass in which it was last found to be current.
    verified_in: u32,
    /// The pass in which it was last asked for from outside.
    asked_in: u32,
    /// The computation that last read it.
    seen_by: u32,
    /// How often others read it.
    readers: u32,
    /// How many of `read_by` do not read it any more.
    stale: u32,
    reads: Vec<SlotId>,
    /// Who reads it, and some who did.
    read_by: Vec<SlotId>,
}

/// Where a value stands when somebody wants it.
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
    /// Values that were asked for from outside.
    roots: Vec<SlotId>,
    /// Values that lost their last reader.
    unread: Vec<SlotId>,
    /// Passes are counted from one, so that nothing is verified in pass 0.
    pass: u32,
    /// Whether something was asked for since the last input was set.
    is_asked: bool,
    /// Numbers of comparisons between old and new reads; they count down where computations count up.
    comparisons: u32,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The first input that is set after something was asked for begins a pass.
    pub(super) fn begin_pass(&mut self) {
        if self.is_asked || self.pass == 0 {
            self.pass += 1;
            self.is_asked = false;
        }
    }

    pub(super) fn insert(&mut self, table: usize, local: usize) -> SlotId {
        let slot = Slot {
            table,
            local,
            state: State::New,
            changed_in: self.pass,
            verified_in: 0,
            asked_in: 0,
            seen_by: 0,
            readers: 0,
            stale: 0,
            reads: Vec::new(),
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
        let pass = self.pass;
        let slot = &mut self.slots[slot.place()];
        slot.state = State::Current;
        slot.verified_in = pass;
    }

    /// Notes a read; false if this computation has read the value before.
    pub(super) fn see(&mut self, slot: SlotId, computation: u32) -> bool {
        let slot = &mut self.slots[slot.place()];
        let is_first = slot.seen_by != computation;
        slot.seen_by = computation;
        is_first
    }

    pub(super) fn begin(&mut self, slot: SlotId) -> Begun {
        self.is_asked = true;
        let slot = &mut self.slots[slot.place()];
        let (table, local) = (slot.table, slot.local);
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
            State::Free => unreachable!("a value that was dropped is read by nobody"),
        }
    }

    pub(super) fn end(&mut self, slot: SlotId, computed: &Computed) {
        let pass = self.pass;
        let slot = &mut self.slots[slot.place()];
        slot.state = State::Current;
        slot.verified_in = pass;
        if matches!(computed, Computed::Changed) {
            slot.changed_in = pass;
        }
    }

    pub(super) fn read_at(&self, slot: SlotId, place: usize) -> Option<SlotId> {
        self.slots[slot.place()].reads.get(place).copied()
    }

    /// Whether a value became another after another one was verified.
    pub(super) fn is_newer(&self, read: SlotId, reader: SlotId) -> bool {
        self.slots[read.place()].changed_in > self.slots[reader.place()].verified_in
    }

    pub(super) fn set_changed(&mut self, slot: SlotId) {
        let pass = self.pass;
        self.slots[slot.place()].changed_in = pass;
    }

    /// Notes that a value is asked for from outside; says whether it became another in this pass.
    pub(super) fn root(&mut self, id: SlotId) -> bool {
        let pass = self.pass;
        let slot = &mut self.slots[id.place()];
        if slot.asked_in == 0 {
            self.roots.push(id);
        }
        slot.asked_in = pass;
        slot.changed_in == pass
    }

    /// Puts what a computation read in the place of what it read before.
    pub(super) fn set_reads(&mut self, id: SlotId, reads: Vec<SlotId>) {
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
        if slot.state != State::Current {
            return None;
        }
        slot.state = State::Marked;
        Some((id, slot.table, slot.local))
    }

    /// Marks those who read a value; gives those that were not marked before.
    pub(super) fn mark_readers(&mut self, id: SlotId) -> Vec<(SlotId, usize, usize)> {
        self.drop_stale_readers(id);
        let read_by = std::mem::take(&mut self.slots[id.place()].read_by);
        let marked = read_by.iter().filter_map(|reader| self.mark(*reader));
        let marked = marked.collect();
        self.slots[id.place()].read_by = read_by;
        marked
    }

    /// Forgets those who do not read a value any more, once they are many.
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

    /// Drops what nobody needs, and tells each value's table.
    pub(super) fn sweep(&mut self, forget: impl Fn(usize, usize)) {
        let pass = self.pass;
        let roots = std::mem::take(&mut self.roots);
        for root in roots {
            let slot = &mut self.slots[root.place()];
            if slot.asked_in == pass {
                self.roots.push(root);
            } else {
                slot.asked_in = 0;
                self.unread.push(root);
            }
        }
        while let Some(id) = self.unread.pop() {
            let slot = &mut self.slots[id.place()];
            let is_needed = slot.readers > 0 || slot.asked_in != 0;
            if is_needed || slot.state == State::Free {
                continue;
            }
            forget(slot.table, slot.local);
            self.retire(id);
        }
    }

    /// Frees the place of a value, and lets go of what it read.
    pub(super) fn retire(&mut self, id: SlotId) {
        let slot = &mut self.slots[id.place()];
        slot.state = State::Free;
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
