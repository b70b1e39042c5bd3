//! Laws of the memo: whatever is set and taken away, every answer is that of a memo which has just been made.

use std::{cell::Cell as Count, collections::BTreeMap, sync::Arc};

use proptest::prelude::*;

use super::{Index, Input, Memo, Part, Parts, Query, View, tables};

/// A cell says a number, labels, and what it is summed up from.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    number: i64,
    labels: Vec<u8>,
    reads: Vec<Read>,
}

#[derive(Clone, Debug, PartialEq)]
enum Read {
    Cell(u8),
    Labelled(u8),
    HasLabel(u8),
    Labels(u8, u8),
    SameNumber,
    Peers(usize),
    AllLabels,
    Total,
    All,
}

struct Cells;
impl Input for Cells {
    type Key = u8;
    type Value = Arc<Cell>;
    fn differing(before: &Arc<Cell>, now: &Arc<Cell>) -> Parts {
        [
            before.number != now.number,
            before.labels != now.labels,
            before.reads != now.reads,
        ]
    }
}

struct Number;
impl Part for Number {
    type Of = Cells;
    type Value = i64;
    const PART: usize = 0;
    fn of(cell: &Arc<Cell>) -> i64 {
        cell.number
    }
}

struct Labels;
impl Part for Labels {
    type Of = Cells;
    type Value = Vec<u8>;
    const PART: usize = 1;
    fn of(cell: &Arc<Cell>) -> Vec<u8> {
        cell.labels.clone()
    }
}

struct Reads;
impl Part for Reads {
    type Of = Cells;
    type Value = Vec<Read>;
    const PART: usize = 2;
    fn of(cell: &Arc<Cell>) -> Vec<Read> {
        cell.reads.clone()
    }
}

struct ByLabel;
impl Index for ByLabel {
    type Source = u8;
    type Key = u8;
    type Item = u8;
    fn sources(view: &View<'_>) -> Vec<u8> {
        view.keys::<Cells>().to_vec()
    }
    fn entries(view: &View<'_>, source: &u8) -> Vec<(u8, u8)> {
        let labels = view.part::<Labels>(source).unwrap_or_default();
        labels.into_iter().map(|label| (label, *source)).collect()
    }
}

/// Cells by what they come to in the lowest layer, which is itself computed.
struct ByNumber;
impl Index for ByNumber {
    type Source = u8;
    type Key = i64;
    type Item = u8;
    fn sources(view: &View<'_>) -> Vec<u8> {
        view.keys::<Cells>().to_vec()
    }
    fn entries(view: &View<'_>, source: &u8) -> Vec<(i64, u8)> {
        vec![(view.get::<Sum>(&(0, *source)), *source)]
    }
}

/// Cells by how many others have a label: an index whose rows read another one.
struct ByPeers;
impl Index for ByPeers {
    type Source = u8;
    type Key = usize;
    type Item = u8;
    fn sources(view: &View<'_>) -> Vec<u8> {
        view.keys::<Cells>().to_vec()
    }
    fn entries(view: &View<'_>, source: &u8) -> Vec<(usize, u8)> {
        vec![(view.who::<ByLabel>(&(source % 4)).len(), *source)]
    }
}

thread_local! {
    static COMPUTED: Count<usize> = const { Count::new(0) };
}

/// What a cell comes to in a layer: its number, and what it reads of the layer below.
struct Sum;
impl Query for Sum {
    type Key = (u8, u8);
    type Value = i64;
    fn compute(view: &View<'_>, (layer, key): &(u8, u8)) -> i64 {
        COMPUTED.set(COMPUTED.get() + 1);
        let own = view.part::<Number>(key).unwrap_or(0).rem_euclid(3);
        if *layer == 0 {
            return own;
        }
        let below = |key: u8| view.get::<Self>(&(layer - 1, key));
        let sum = |read: &Read| match read {
            Read::Cell(key) => below(*key),
            Read::Labelled(label) => view
                .who::<ByLabel>(label)
                .iter()
                .map(|key| below(*key))
                .sum(),
            Read::HasLabel(label) => i64::from(view.has::<ByLabel>(label)),
            Read::Labels(first, last) => {
                let labels = view.keys_in::<ByLabel>(first, last);
                labels.iter().map(|label| i64::from(*label)).sum()
            }
            Read::SameNumber => view
                .who::<ByNumber>(&own)
                .iter()
                .map(|key| i64::from(*key))
                .sum(),
            Read::Peers(count) => {
                let peers = view.who::<ByPeers>(count);
                peers.iter().map(|key| below(*key)).sum()
            }
            Read::AllLabels => {
                let labels = view.all_keys::<ByLabel>();
                labels.iter().map(|label| i64::from(*label)).sum()
            }
            Read::Total => view.get::<Total>(&()),
            Read::All => i64::try_from(view.keys::<Cells>().len()).unwrap_or(0),
        };
        let reads = view.part::<Reads>(key).unwrap_or_default();
        // Small numbers, so that different reads often come to the same.
        (own + reads.iter().map(sum).sum::<i64>()).rem_euclid(5)
    }
}

/// Something that is computed from all cells and seldom changes.
struct Total;
impl Query for Total {
    type Key = ();
    type Value = i64;
    fn compute(view: &View<'_>, (): &()) -> i64 {
        let keys = view.keys::<Cells>();
        let sum: i64 = keys.iter().map(|key| view.get::<Sum>(&(0, *key))).sum();
        let same = view.who::<ByNumber>(&1).len() + view.who::<ByPeers>(&1).len();
        (sum + i64::try_from(same).unwrap_or(0)).rem_euclid(2)
    }
}

impl super::Registered for Cells {
    const PLACE: usize = 0;
    const NAME: &'static str = "Cells";
}

tables! {
    from 1;
    queries { Sum: Sum, Total: Total, }
    indexes { ByLabel: ByLabel, ByNumber: ByNumber, ByPeers: ByPeers, }
}

fn memo() -> Memo {
    let mut all = vec![super::input_table::<Cells>()];
    all.extend(tables());
    Memo::new(all)
}

fn read() -> impl Strategy<Value = Read> {
    prop_oneof![
        (0_u8..6).prop_map(Read::Cell),
        (0_u8..4).prop_map(Read::Labelled),
        (0_u8..4).prop_map(Read::HasLabel),
        (0_u8..4, 0_u8..4).prop_map(|(first, last)| Read::Labels(first, last)),
        Just(Read::SameNumber),
        (0_usize..3).prop_map(Read::Peers),
        Just(Read::AllLabels),
        Just(Read::Total),
        Just(Read::All),
    ]
}

fn cell() -> impl Strategy<Value = Cell> {
    (
        0_i64..9,
        prop::collection::vec(0_u8..4, 0..3),
        prop::collection::vec(read(), 0..4),
    )
        .prop_map(|(number, labels, reads)| Cell {
            number,
            labels,
            reads,
        })
}

/// What happens to a memo.
#[derive(Clone, Debug)]
enum Step {
    Set(u8, Cell),
    Remove(u8),
    Ask(Vec<(u8, u8)>),
    Unroot,
    Sweep,
    Copy,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u8..6, cell()).prop_map(|(key, cell)| Step::Set(key, cell)),
        2 => (0_u8..6).prop_map(Step::Remove),
        4 => prop::collection::vec((0_u8..4, 0_u8..6), 1..6).prop_map(Step::Ask),
        1 => Just(Step::Unroot),
        1 => Just(Step::Sweep),
        1 => Just(Step::Copy),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_is_that_of_a_new_memo(steps in prop::collection::vec(step(), 1..40)) {
        let mut old = memo();
        let mut cells = BTreeMap::new();
        let mut known: BTreeMap<(u8, u8), i64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Set(key, cell) => {
                    let cell = Arc::new(cell);
                    cells.insert(key, Arc::clone(&cell));
                    old.set::<Cells>(&key, Some(cell));
                }
                Step::Remove(key) => {
                    cells.remove(&key);
                    old.set::<Cells>(&key, None);
                }
                Step::Ask(keys) => {
                    let mut new = memo();
                    for (key, cell) in &cells {
                        new.set::<Cells>(key, Some(Arc::clone(cell)));
                    }
                    // Roots that are not marked have the values that they had.
                    for key in old.marked::<Sum>() {
                        known.insert(key, old.root::<Sum>(&key));
                    }
                    for (key, value) in &known {
                        prop_assert_eq!(*value, new.root::<Sum>(key), "{:?}", key);
                    }
                    for key in keys {
                        let value = old.root::<Sum>(&key);
                        prop_assert_eq!(value, new.root::<Sum>(&key), "{:?}", key);
                        known.insert(key, value);
                    }
                }
                Step::Unroot => {
                    old.unroot_all::<Sum>();
                    known.clear();
                }
                Step::Sweep => old.sweep(),
                Step::Copy => old = old.clone(),
            }
        }
    }

    #[test]
    fn what_nobody_asks_for_is_dropped(steps in prop::collection::vec((0_u8..6, cell()), 1..20)) {
        let mut memo = memo();
        for (key, cell) in steps {
            memo.set::<Cells>(&key, Some(Arc::new(cell)));
            for key in 0..6 {
                memo.root::<Sum>(&(3, key));
            }
            memo.sweep();
        }
        let busy = memo.len();
        memo.set::<Cells>(&0, None);
        memo.root::<Sum>(&(0, 7));
        memo.unroot_all::<Sum>();
        memo.root::<Sum>(&(0, 7));
        memo.sweep();
        // What is left are the rows of the indexes with what they read, and the one root.
        prop_assert!(memo.len() <= busy.min(6 * 8 + 12), "{} of {busy}", memo.len());
    }
}

fn plain(number: i64, reads: Vec<Read>) -> Arc<Cell> {
    let labels = Vec::new();
    Arc::new(Cell {
        number,
        labels,
        reads,
    })
}

fn computed(of: impl FnOnce()) -> usize {
    COMPUTED.set(0);
    of();
    COMPUTED.get()
}

#[test]
fn only_what_read_a_changed_part_is_computed_again() {
    let mut memo = memo();
    memo.set::<Cells>(&0, Some(plain(1, vec![Read::Cell(1)])));
    memo.set::<Cells>(&1, Some(plain(1, Vec::new())));
    memo.set::<Cells>(&2, Some(plain(1, Vec::new())));
    let ask = |memo: &Memo| {
        memo.root::<Sum>(&(1, 0));
        memo.root::<Sum>(&(1, 2));
    };
    ask(&memo);
    memo.set::<Cells>(&2, Some(plain(2, Vec::new())));
    assert_eq!(computed(|| ask(&memo)), 1, "the other reads nothing of it");
    let labels = vec![1];
    let reads = vec![Read::Cell(1)];
    memo.set::<Cells>(
        &0,
        Some(Arc::new(Cell {
            number: 1,
            labels,
            reads,
        })),
    );
    assert_eq!(computed(|| ask(&memo)), 0, "its labels have no reader");
}

#[test]
fn a_value_that_comes_out_equal_wakes_nobody() {
    let mut memo = memo();
    memo.set::<Cells>(&0, Some(plain(0, vec![Read::Cell(1)])));
    memo.set::<Cells>(&1, Some(plain(1, Vec::new())));
    memo.root::<Sum>(&(3, 0));
    memo.set::<Cells>(&1, Some(plain(4, Vec::new())));
    let again = computed(|| {
        memo.root::<Sum>(&(3, 0));
    });
    assert_eq!(
        again, 1,
        "1 and 4 come to the same, so only the cell itself is looked at"
    );
}

#[test]
fn a_reader_of_one_key_does_not_depend_on_the_others() {
    let mut memo = memo();
    let labelled = |number, label| {
        Some(Arc::new(Cell {
            number,
            labels: vec![label],
            reads: Vec::new(),
        }))
    };
    memo.set::<Cells>(&0, Some(plain(0, vec![Read::Labelled(1)])));
    memo.set::<Cells>(&1, labelled(1, 1));
    memo.root::<Sum>(&(1, 0));
    memo.set::<Cells>(&2, labelled(1, 2));
    assert_eq!(
        computed(|| {
            memo.root::<Sum>(&(1, 0));
        }),
        0
    );
    memo.set::<Cells>(&2, labelled(1, 1));
    assert_eq!(memo.root::<Sum>(&(1, 0)), 2, "it has the label now");
}
