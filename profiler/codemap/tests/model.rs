//! The map against a simple model, under threads, across processes, and full. `src/reader.rs` tests it on garbage.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use unfuse_codemap::{
    CodeMap, CodeRange, FrameRec, Kind, Lookup, Mark, MarkKind, Method, PcRec, Resolution,
};

/// Inserts a range whose names tell its start and load time, so that a mixed-up record shows.
fn insert(map: &CodeMap, start: u64, size: u32, load_time: u64) -> bool {
    let class = format!("C{start:x}");
    let name = format!("m{}", load_time as u32);
    map.writer()
        .insert(&CodeRange {
            start,
            size,
            load_time,
            kind: Kind::Java,
            frame_words: 0,
            sparse: false,
            methods: &[
                Method {
                    class: &class,
                    name: &name,
                    signature: "()V",
                    file: "C.java",
                },
                Method {
                    class: &class,
                    name: "inlined",
                    signature: "()I",
                    file: "C.java",
                },
            ],
            frames: &[
                FrameRec {
                    parent: FrameRec::OUTERMOST,
                    method: 0,
                    bci: 3,
                    line: 10,
                },
                FrameRec {
                    parent: 0,
                    method: 1,
                    bci: 4,
                    line: load_time as u32,
                },
            ],
            pcs: &[
                PcRec {
                    offset: size / 2,
                    frame: 0,
                },
                PcRec {
                    offset: size,
                    frame: 1,
                },
            ],
        })
        .is_ok()
}

fn check(found: &Resolution, pc: u64) {
    assert!(
        (found.code_start..found.code_end).contains(&pc),
        "{found:?} does not contain {pc:x}"
    );
    let outer = &found.frames[0];
    assert_eq!(outer.class, format!("C{:x}", found.code_start), "{found:?}");
    if let Some(inner) = found.frames.get(1) {
        assert_eq!(
            (inner.class.as_str(), inner.method.as_str()),
            (outer.class.as_str(), "inlined")
        );
        assert_eq!(outer.method, format!("m{}", inner.line), "{found:?}");
        assert!(inner.inlined && !outer.inlined);
    }
}

#[derive(Debug, Clone, Copy)]
struct Range {
    start: u64,
    end: u64,
    load: u64,
    unload: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// Live ranges never overlap (a new one ends those under it), and every look-up at a time finds
    /// what the model says was there.
    #[test]
    fn look_ups_agree_with_a_list(
        steps in proptest::collection::vec((0u64..40, 1u32..6, any::<bool>()), 1..60),
        probes in proptest::collection::vec((0u64..50, 0u64..70), 1..80),
    ) {
        let map = CodeMap::create(4 << 20).unwrap();
        let mut model: Vec<Range> = Vec::new();
        for (time, (slot, size, load)) in steps.iter().enumerate() {
            let (start, time) = (0x1000 + slot * 16, time as u64 + 1);
            if *load {
                let end = start + u64::from(*size) * 16;
                for other in model.iter_mut().filter(|o| o.unload == u64::MAX && o.start < end && start < o.end) {
                    other.unload = time;
                }
                prop_assert!(insert(&map, start, size * 16, time));
                model.push(Range { start, end, load: time, unload: u64::MAX });
            } else {
                let live = model.iter_mut().find(|o| o.unload == u64::MAX && o.start == start);
                prop_assert_eq!(map.writer().unload(start, time), live.is_some());
                if let Some(live) = live { live.unload = time; }
            }
        }
        let mut found = Resolution::default();
        for (slot, time) in probes {
            let pc = 0x1000 + slot * 16 + 5;
            let truth = model.iter().find(|o| o.load <= time && time < o.unload && o.start <= pc && pc < o.end);
            let answer = map.reader().resolve(pc, time, true, &mut found);
            if let Some(truth) = truth {
                prop_assert_eq!(answer, Lookup::Found);
                prop_assert_eq!((found.code_start, found.valid_from, found.valid_to), (truth.start, truth.load, truth.unload));
                check(&found, pc);
            } else if answer == Lookup::Found {
                // Nothing was there: only a load that came late may answer.
                prop_assert!(found.valid_from <= time);
                let late = model.iter().filter(|o| o.load > time && o.start <= pc && pc < o.end).map(|o| o.load).min();
                prop_assert_eq!(Some(found.frames[0].method.clone()), late.map(|load| format!("m{load}")));
            }
        }
    }

    #[test]
    fn pcs_are_described_up_to_and_including(offset in 0u64..64) {
        let map = CodeMap::create(4 << 20).unwrap();
        insert(&map, 0x4000, 64, 1);
        let mut found = Resolution::default();
        map.reader().resolve(0x4000 + offset, 2, true, &mut found);
        prop_assert_eq!(found.frames.len(), if offset < 32 { 1 } else { 2 });
        map.reader().resolve(0x4000 + offset, 2, false, &mut found);
        prop_assert_eq!(found.frames.len(), if offset <= 32 { 1 } else { 2 });
    }
}

/// Ends the writers even if the reader's assertion fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Writers load and unload at full speed, with recycling; readers see whole records only.
#[test]
fn readers_never_see_a_torn_record() {
    const SECOND: u64 = 1_000_000_000;
    const SLOTS: u64 = 50;
    let start_of = |writer: u64, slot: u64| 0x10_000 * (writer + 1) + slot * 0x100;
    let map = CodeMap::create(3 << 20).unwrap();
    let stop = AtomicBool::new(false);
    // Where in its time each writer is: whoever looks anywhere else mostly finds nothing.
    let loaded = [const { AtomicU64::new(0) }; 2];
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (map, stop, loaded) = (&map, &stop, &loaded[writer as usize]);
            scope.spawn(move || {
                // Time runs fast here, so that blocks are recycled all the time.
                let mut loads = 0;
                while !stop.load(Ordering::Relaxed) {
                    for slot in 0..SLOTS {
                        let (start, time) = (start_of(writer, slot), (loads + 1) * SECOND);
                        insert(map, start, 0x80 + (slot as u32 % 5) * 8, time);
                        loads += 1;
                        loaded.store(loads, Ordering::Relaxed);
                        map.writer().unload(start, time + 1);
                        map.writer().maintain(time);
                    }
                    // Still thousands of times what a JIT does, but a look-up gets through at times.
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
        scope.spawn(|| {
            let _stop = StopOnDrop(&stop);
            let mut found = Resolution::default();
            let mut hits = 0u64;
            let mut round = 0u64;
            // A busy machine gets the time it needs.
            let enough = |hits| cfg!(miri) || hits > 1000 && map.stats().recycled > 1000;
            while begun.elapsed() < Duration::from_secs(3) || !enough(hits) {
                assert!(
                    begun.elapsed() < Duration::from_secs(120),
                    "only {hits} look-ups found anything: {:?}",
                    map.stats()
                );
                round += 1;
                let writer = round % 2;
                let loads = loaded[writer as usize].load(Ordering::Relaxed);
                let last = start_of(writer, loads.saturating_sub(1) % SLOTS);
                let any = start_of(writer, round * 7 % SLOTS);
                // Whatever the time, an answer is whole.
                for (start, time) in [
                    (last, loads * SECOND),
                    (any, 0),
                    (any, round * SECOND),
                    (any, loads * SECOND),
                    (any, u64::MAX / 2),
                ] {
                    let pc = start + round % 0x80;
                    if map.reader().resolve(pc, time, true, &mut found) == Lookup::Found {
                        check(&found, pc);
                        hits += 1;
                    }
                }
            }
        });
    });
}

/// The reader is another process, as samplers are.
#[test]
#[cfg_attr(miri, ignore = "forks")]
fn another_process_reads_while_this_one_writes() {
    let map = CodeMap::create(8 << 20).unwrap();
    // SAFETY: the child only reads the map and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(|| {
            let (mut found, mut last) = (Resolution::default(), 0);
            while last < 2000 {
                let pc = 0x1000 + last * 0x100 + 1;
                if map.reader().resolve(pc, last + 1, true, &mut found) == Lookup::Found {
                    check(&found, pc);
                    last += 1;
                }
            }
        });
        // SAFETY: ends the child without the test harness's exit handlers.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    for slot in 0..2000 {
        insert(&map, 0x1000 + slot * 0x100, 0x80, slot + 1);
    }
    let mut status = 0;
    // SAFETY: waits for the child forked above.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0, "the reading process failed");
}

#[test]
#[cfg_attr(miri, ignore = "fills a map, which takes long")]
fn a_full_map_counts_and_keeps_what_it_has() {
    let map = CodeMap::create(0).unwrap();
    let mut kept = 0;
    while insert(&map, 0x1000 + kept * 0x100, 0x80, kept + 1) {
        kept += 1;
    }
    assert!(!insert(&map, 0x1000 + kept * 0x100, 0x80, kept + 1));
    assert_eq!(map.stats().dropped_full, 2);
    let mut found = Resolution::default();
    for slot in 0..kept {
        let pc = 0x1000 + slot * 0x100;
        assert_eq!(
            map.reader().resolve(pc, u64::MAX / 2, true, &mut found),
            Lookup::Found
        );
        check(&found, pc);
    }
    // Code that does not fit still ends what was at its place: no answer is better than a wrong one.
    assert!(!insert(&map, 0x1000, 0x80, kept + 5));
    let old = |time| {
        map.reader()
            .resolve(0x1010, time, true, &mut Resolution::default())
    };
    assert_eq!(old(kept + 4), Lookup::Found);
    assert_ne!(old(kept + 6), Lookup::Found);
    // When old code has gone, there is room again.
    let later = 100_000_000_000;
    for slot in 0..kept {
        map.writer().unload(0x1000 + slot * 0x100, kept + 10);
    }
    for _ in 0..kept {
        map.writer().maintain(later);
    }
    assert!(
        insert(&map, 0x9_0000_0000, 0x80, later),
        "recycled blocks are used"
    );
}

/// Code of the same sizes that comes and goes for ever needs no more memory for it.
#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn a_map_under_churn_stops_growing() {
    const SECOND: u64 = 1_000_000_000;
    let map = CodeMap::create(64 << 20).unwrap();
    let mut used = 0;
    for round in 0..200 {
        // A burst every ten seconds, in a place of its own each time, as garbage collections make them.
        let time = (round + 1) * 10 * SECOND;
        let start = 0x10_0000 * (1 + round % 7);
        let slots = || (0..500).map(|slot| start + slot * 0x400);
        for (slot, start) in slots().enumerate() {
            assert!(insert(&map, start, 0x80 + 0x40 * (slot as u32 % 9), time));
        }
        for start in slots() {
            assert!(map.writer().unload(start, time + SECOND));
            map.writer().maintain(time + SECOND);
        }
        if round == 20 {
            used = map.stats().used_bytes;
        }
    }
    let stats = map.stats();
    assert!(stats.inserted - stats.recycled < 5000, "{stats:?}");
    assert!(stats.used_bytes <= used + used / 20, "{used}: {stats:?}");
}

/// Equal start and load time: each record must be unlinked before its block is used again.
#[test]
fn records_with_equal_keys_are_recycled_one_by_one() {
    let map = CodeMap::create(4 << 20).unwrap();
    // Its lower half, which the names tell, is 0 too: the new records fit the old blocks.
    let later = 100 << 32;
    for _ in 0..20 {
        insert(&map, 0x9000, 0x80, 0);
    }
    map.writer().maintain(later);
    map.writer().maintain(later);
    assert_eq!(map.stats().recycled, 19);
    for slot in 0..30 {
        insert(&map, 0x10_000 + slot * 0x100, 0x80, later);
    }
    assert!(insert(&map, 0x5000, 0x80, later), "the list has an end");
    let mut found = Resolution::default();
    for pc in (0..30)
        .map(|slot| 0x10_000 + slot * 0x100)
        .chain([0x9000, 0x5000])
    {
        let answer = map.reader().resolve(pc, later, true, &mut found);
        assert_eq!((answer, found.code_start), (Lookup::Found, pc));
        check(&found, pc);
    }
}

/// An answer from a load that came late holds only as far back as a look-up would give it.
#[test]
fn a_late_load_answers_only_for_a_bounded_time() {
    let map = CodeMap::create(0).unwrap();
    let (second, load) = (1_000_000_000, 100_000_000_000);
    insert(&map, 0x4000, 0x80, load);
    let mut found = Resolution::default();
    let mut resolve_at = |time| map.reader().resolve(0x4000, time, true, &mut found);
    assert_eq!(resolve_at(load - 11 * second), Lookup::NotFound);
    assert_eq!(resolve_at(load - 9 * second), Lookup::Found);
    assert_eq!(found.valid_from, load - 10 * second);
}

#[test]
#[cfg_attr(miri, ignore = "fills a map, which takes long")]
fn a_full_map_makes_room_of_old_code_by_itself() {
    let map = CodeMap::create(0).unwrap();
    let mut kept = 0;
    while insert(&map, 0x1000 + kept * 0x100, 0x80, kept + 1) {
        kept += 1;
    }
    for slot in 0..100 {
        map.writer().unload(0x1000 + slot * 0x100, kept + 10);
    }
    assert!(insert(&map, 0x9_0000_0000, 0x80, 100_000_000_000));
}

#[test]
#[cfg_attr(miri, ignore = "the ring is smaller there")]
fn marks_come_in_order_and_a_slow_reader_learns_what_it_missed() {
    let map = CodeMap::create(0).unwrap();
    let mut cursor = map.marks().reader();
    let mark = |task| Mark {
        time: task as u64,
        tid: 7,
        kind: MarkKind::Start,
        stage: -1,
        stage_attempt: 2,
        task,
        execution: -1,
    };
    for task in 0..10 {
        map.marks().push(&mark(task));
    }
    for task in 0..10 {
        assert_eq!(map.marks().next(&mut cursor), Some(mark(task)));
    }
    assert_eq!(map.marks().next(&mut cursor), None);
    for task in 0..20_000 {
        map.marks().push(&mark(task));
    }
    let first = map.marks().next(&mut cursor).unwrap();
    assert_eq!(cursor.lost, first.task as u64);
    assert_eq!(20_000 - first.task, 16_384);
}
