//! Small programs of which loom runs every interleaving of up to a few preemptions, with every value
//! that a load may return. `make test-loom`.
//!
//! loom's limits: it keeps each thread's own order, so a load does not see a store that comes later.
//! Accesses that are SeqCst count as AcqRel, with which the writers' `active` counter would do: only
//! read-modify-writes change it. A failed compare-exchange sees the newest value, and a plain store is
//! not ordered after a read-modify-write it races with. A word keeps its last 7 values.

use std::sync::Arc;

use loom::thread;

use crate::arena::{Words, header};
use crate::block::{LEVELS, MARK, Node};
use crate::index::{Index, SCAN, SLOT_BITS};
use crate::key::Key;
use crate::{CodeMap, CodeRange, FrameRec, Kind, Lookup, Mark, MarkKind, PcRec, Resolution};

/// Long enough after the first records' ends for them to be recycled.
const LATER: u64 = 100_000_000_000;

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 20_000;
    builder.check(model);
}

/// A map with one record for each start, loaded at 1.
fn map_of(starts: &[u64]) -> Arc<CodeMap> {
    let map = CodeMap::create(0).unwrap();
    for start in starts {
        insert(&map, *start, 1);
    }
    Arc::new(map)
}

/// Inserts a record of 16 bytes whose line tells its start and load time.
fn insert(map: &CodeMap, start: u64, load_time: u64) {
    let range = CodeRange {
        start,
        size: 16,
        load_time,
        kind: Kind::Java,
        frame_words: 0,
        sparse: false,
        methods: &[],
        frames: &[FrameRec {
            parent: FrameRec::OUTERMOST,
            method: 0,
            bci: 0,
            line: line_of(start, load_time),
        }],
        pcs: &[PcRec {
            offset: 16,
            frame: 0,
        }],
    };
    map.writer().insert(&range).unwrap();
}

fn node(map: &CodeMap, offset: usize) -> Node<'_> {
    Node {
        words: map.words(),
        offset,
    }
}

fn line_of(start: u64, load_time: u64) -> u32 {
    start as u32 + load_time as u32
}

/// Looks a record up; what is found must be whole.
fn look_up(map: &CodeMap, pc: u64, time: u64) -> Option<u64> {
    let mut found = Resolution::default();
    match map.reader().resolve(pc, time, true, &mut found) {
        Lookup::Found => {
            let [frame] = &found.frames[..] else {
                panic!("{found:?}");
            };
            assert_eq!(found.code_end, found.code_start + 16, "{found:?}");
            assert!(
                (found.code_start..found.code_end).contains(&pc),
                "{found:?}"
            );
            assert_eq!(
                frame.line,
                line_of(found.code_start, found.valid_from),
                "{found:?}"
            );
            Some(found.code_start)
        }
        Lookup::NotFound => None,
        Lookup::Torn => panic!("there is one reclaim, and more tries"),
    }
}

/// The list holds just these starts, on every level in order, and the index agrees with it.
fn assert_whole(map: &CodeMap, starts: &[u64]) {
    let words = map.words();
    let load = |word: &crate::sync::AtomicU64| word.load(crate::sync::Ordering::Acquire);
    let level = |level: usize| {
        let mut offset = load(&words[header::HEAD + level]);
        let mut nodes = Vec::new();
        while offset != 0 {
            assert_eq!(offset & MARK, 0, "an unlinked node is still there");
            let node = node(map, offset as usize);
            nodes.push(node);
            offset = load(node.next(level));
        }
        assert!(
            nodes.is_sorted_by(|one, other| Key::from_node(*one).is_before(Key::from_node(*other)))
        );
        nodes
    };
    let all = level(0);
    let mut there: Vec<u64> = all.iter().map(|node| node.start()).collect();
    there.reverse();
    assert_eq!(there, starts);
    for higher in 1..LEVELS {
        let tall = all.iter().filter(|node| node.height() > higher);
        assert!(
            tall.map(|node| node.offset)
                .eq(level(higher).iter().map(|node| node.offset))
        );
    }
    let slot = |address: u64| address >> SLOT_BITS;
    for address in (0xe00..0x1600).step_by(1 << SLOT_BITS) {
        let first = all.iter().find(|node| slot(node.start()) <= slot(address));
        let in_reach = first.filter(|node| slot(node.start()) + SCAN > slot(address));
        let near = Index::new(words).near(address);
        assert_eq!(near, in_reach.map(|node| node.offset as u64), "{address:x}");
    }
}

#[test]
fn neighbours_inserted_at_once_are_both_there() {
    for (there, one, other) in [
        (&[][..], 0x1000, 0x1010),
        (&[0x1000][..], 0x1010, 0x1020),
        (&[0x1000, 0x1020][..], 0x1010, 0x1200),
    ] {
        explore(2, move || {
            let map = map_of(there);
            let writer = {
                let map = map.clone();
                thread::spawn(move || insert(&map, one, 1))
            };
            insert(&map, other, 1);
            writer.join().unwrap();
            let mut starts = [there, &[one, other]].concat();
            starts.sort();
            assert_whole(&map, &starts);
            assert_eq!(look_up(&map, one, 2), Some(one));
            assert_eq!(look_up(&map, other, 2), Some(other));
        });
    }
}

/// The record at 0x1040 is recycled while another comes before, after, or in place of it.
#[test]
fn a_record_inserted_beside_one_being_recycled_is_there() {
    for (rest, new) in [
        (&[][..], 0x1000),
        (&[][..], 0x1080),
        (&[0x1000][..], 0x1020),
        (&[0x1000][..], 0x1040),
        (&[0x1080][..], 0x1060),
    ] {
        explore(2, move || {
            let map = map_of(&[rest, &[0x1040]].concat());
            map.writer().unload(0x1040, 2);
            let recycler = {
                let map = map.clone();
                thread::spawn(move || map.writer().maintain(LATER))
            };
            insert(&map, new, 3);
            recycler.join().unwrap();
            let mut starts = [rest, &[new]].concat();
            starts.sort();
            assert_whole(&map, &starts);
            assert_eq!(look_up(&map, new, 4), Some(new));
        });
    }
}

/// Two records of a slot end, one after the other is recycled, its block is used again at once, and
/// meanwhile a record comes between their neighbours.
#[test]
fn a_block_used_again_does_not_disturb_an_insert() {
    for new in [0x1020, 0x1060] {
        explore(2, move || {
            let map = map_of(&[0xff0, 0x1040]);
            let recycler = {
                let map = map.clone();
                thread::spawn(move || {
                    map.writer().unload(0x1040, 2);
                    map.writer().maintain(LATER);
                    map.writer().maintain(LATER);
                    insert(&map, 0x1080, LATER);
                })
            };
            insert(&map, new, 3);
            recycler.join().unwrap();
            let mut starts = [0xff0, new, 0x1080];
            starts.sort();
            assert_whole(&map, &starts);
            assert_eq!(look_up(&map, new, LATER), Some(new));
            assert_eq!(look_up(&map, 0x1080, LATER), Some(0x1080));
        });
    }
}

#[test]
fn two_recyclers_free_each_block_once() {
    explore(2, || {
        let map = map_of(&[0x1000, 0x1020, 0x1040]);
        map.writer().unload(0x1020, 2);
        map.writer().unload(0x1040, 2);
        let other = {
            let map = map.clone();
            thread::spawn(move || map.writer().maintain(LATER))
        };
        map.writer().maintain(LATER);
        other.join().unwrap();
        map.writer().maintain(LATER);
        map.writer().maintain(LATER);
        assert_whole(&map, &[0x1000]);
        assert_eq!(map.stats().recycled, 2);
    });
}

/// It may be found, and so ended, before its insert is done.
#[test]
fn a_record_ended_while_it_is_inserted_goes_whole() {
    explore(2, || {
        let map = map_of(&[]);
        let writer = {
            let map = map.clone();
            thread::spawn(move || insert(&map, 0x1000, 1))
        };
        let ended = map.writer().unload(0x1000, 2);
        map.writer().maintain(LATER);
        writer.join().unwrap();
        map.writer().maintain(LATER);
        assert_whole(&map, if ended { &[] } else { &[0x1000] });
    });
}

/// A block is recycled and used again while it is being read.
///
/// The reader only loads, so it need not be interrupted: run last, with all the values that each load
/// may still return, it sees all it could see. It loads a few words here; a whole look-up has too many.
#[test]
fn a_reader_never_returns_a_torn_record() {
    for through_index in [false, true] {
        explore(0, move || {
            let map = map_of(&[0x1000]);
            map.writer().unload(0x1000, 2);
            // The threads run in the order they are started. One frees the block, another uses it.
            let recycler = {
                let map = map.clone();
                thread::spawn(move || {
                    map.writer().maintain(LATER);
                    map.writer().maintain(LATER);
                })
            };
            let writer = {
                let map = map.clone();
                thread::spawn(move || {
                    recycler.join().unwrap();
                    insert(&map, 0x1100, LATER);
                })
            };
            let reader = {
                let map = map.clone();
                thread::spawn(move || {
                    map.reader().validated(|_| {
                        let offset = if through_index {
                            Index::new(map.words()).near(0x1100)?
                        } else {
                            map.words().acquire(header::HEAD)
                        };
                        let found = (offset != 0).then(|| node(&map, offset as usize))?;
                        Some((found.start(), found.load_time(), found.unload_time()))
                    })
                })
            };
            let found = reader.join().unwrap();
            let found = found.expect("there is one reclaim, and more tries");
            let (old, new) = ((0x1000, 1, 2), (0x1100, LATER, u64::MAX));
            assert!(
                found.is_none_or(|found| found == old || found == new),
                "{found:x?}"
            );
            writer.join().unwrap();
            assert_whole(&map, &[0x1100]);
            assert_eq!(map.stats().recycled, 1);
        });
    }
}

fn mark(task: i64) -> Mark {
    Mark {
        time: task as u64,
        tid: task as u32,
        kind: MarkKind::End,
        stage: task as i32,
        stage_attempt: task as i32,
        task,
        execution: task,
    }
}

/// The ring has two places here, and gives up a mark that is not finished when both are taken.
#[test]
fn marks_are_read_whole_and_once_or_counted_as_lost() {
    explore(2, || {
        let map = map_of(&[]);
        let mut cursor = map.marks().reader();
        let pushers = [1, 2].map(|first| {
            let map = map.clone();
            thread::spawn(move || {
                map.marks().push(&mark(first));
                if first == 1 {
                    map.marks().push(&mark(3));
                }
            })
        });
        let mut got = Vec::new();
        for _ in 0..2 {
            got.extend(map.marks().next(&mut cursor));
        }
        for pusher in pushers {
            pusher.join().unwrap();
        }
        // Two more, so that what found no place is overtaken and counted.
        for task in [4, 5] {
            map.marks().push(&mark(task));
        }
        got.extend(std::iter::from_fn(|| map.marks().next(&mut cursor)));
        let mut tasks: Vec<i64> = got.iter().map(|mark| mark.task).collect();
        assert!(got.iter().all(|got| *got == mark(got.task)), "{got:?}");
        assert_eq!(tasks.len() as u64 + cursor.lost, 5, "{tasks:?}");
        tasks.sort();
        tasks.dedup();
        assert_eq!(tasks.len(), got.len(), "read twice");
    });
}
