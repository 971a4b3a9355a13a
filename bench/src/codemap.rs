//! The code map against two ordinary structures, in one run, while a writer writes.

use std::hint::black_box;
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Result;
use crossbeam_skiplist::SkipMap;
use unfuse_codemap::{CodeMap, CodeRange, FrameRec, Kind, Lookup, Method, PcRec, Resolved};

use crate::report;

const SIZE: u64 = 0x400;
const LOOK_UPS: u64 = 300_000;

/// What holds ranges of code.
trait Ranges: Sync {
    fn insert(&self, slot: u64, time: u64);
    fn unload(&self, slot: u64, time: u64);
    fn find(&self, pc: u64) -> bool;
}

struct Ours(CodeMap);

impl Ranges for Ours {
    fn insert(&self, slot: u64, time: u64) {
        let _ = self.0.writer().insert(&CodeRange {
            start: slot * SIZE,
            size: SIZE as u32 - 0x40,
            load_time: time,
            kind: Kind::Java,
            frame_words: 0,
            sparse: false,
            methods: &[Method {
                class: "a.B",
                name: "c",
                signature: "()V",
                file: "B.java",
            }],
            frames: &[FrameRec {
                parent: FrameRec::OUTERMOST,
                method: 0,
                bci: 0,
                line: 1,
            }],
            pcs: &[
                PcRec {
                    offset: 0x40,
                    frame: 0,
                },
                PcRec {
                    offset: 0x100,
                    frame: 0,
                },
                PcRec {
                    offset: 0x300,
                    frame: 0,
                },
            ],
        });
    }

    fn unload(&self, slot: u64, time: u64) {
        self.0.writer().unload(slot * SIZE, time);
        self.0.writer().maintain(time);
    }

    fn find(&self, pc: u64) -> bool {
        black_box(self.0.reader().find(pc, u64::MAX / 2, true)).is_some()
    }
}

struct Skip(SkipMap<u64, u64>);

impl Ranges for Skip {
    fn insert(&self, slot: u64, _: u64) {
        self.0.insert(slot * SIZE, slot * SIZE + SIZE - 0x40);
    }

    fn unload(&self, slot: u64, _: u64) {
        self.0.remove(&(slot * SIZE));
    }

    fn find(&self, pc: u64) -> bool {
        let entry = self.0.upper_bound(std::ops::Bound::Included(&pc));
        black_box(entry).is_some_and(|entry| pc < *entry.value())
    }
}

struct Sorted(RwLock<Vec<(u64, u64)>>);

impl Ranges for Sorted {
    fn insert(&self, slot: u64, _: u64) {
        let mut ranges = self.0.write().expect("no writer panics");
        let range = (slot * SIZE, slot * SIZE + SIZE - 0x40);
        match ranges.last() {
            Some(last) if *last >= range => {
                let at = ranges.partition_point(|other| *other < range);
                ranges.insert(at, range);
            }
            _ => ranges.push(range),
        }
    }

    fn unload(&self, slot: u64, _: u64) {
        let mut ranges = self.0.write().expect("no writer panics");
        let at = ranges.partition_point(|other| other.0 < slot * SIZE);
        if ranges.get(at).is_some_and(|range| range.0 == slot * SIZE) {
            ranges.remove(at);
        }
    }

    fn find(&self, pc: u64) -> bool {
        let ranges = self.0.read().expect("no writer panics");
        let after = ranges.partition_point(|range| range.0 <= pc);
        black_box(after.checked_sub(1).and_then(|at| ranges.get(at)))
            .is_some_and(|range| pc < range.1)
    }
}

/// ns for an insert (while filling), and for a look-up while a writer loads and unloads; the writer's
/// operations a second.
fn run(ranges: &dyn Ranges, count: u64) -> (f64, f64, f64) {
    let begun = Instant::now();
    for slot in 0..count {
        ranges.insert(slot, slot + 1);
    }
    let insert = begun.elapsed().as_nanos() as f64 / count as f64;
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut find = 0.0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut time = 1 << 40;
            while !stop.load(Ordering::Relaxed) {
                // A JIT at work: far faster than any real one.
                let slot = count + time % 64;
                time += 1;
                ranges.insert(slot, time);
                ranges.unload(slot, time);
                written.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
        });
        let begun = Instant::now();
        let mut hits = 0;
        let mut x = 1u64;
        for _ in 0..LOOK_UPS {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            hits += u64::from(ranges.find((x >> 33) % count * SIZE + 0x80));
        }
        find = begun.elapsed().as_nanos() as f64 / LOOK_UPS as f64;
        let seconds = begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(hits, LOOK_UPS, "every address looked up is in a range");
        written.store(
            (written.load(Ordering::Relaxed) as f64 / seconds) as u64,
            Ordering::Relaxed,
        );
    });
    (insert, find, written.into_inner() as f64)
}

/// Measures and writes `codemap.md`.
pub fn measure(results: &Path) -> Result<()> {
    let mut body = String::from(
        "Median of five runs, each structure in turn. Look-ups are of random addresses while another thread \
         inserts and unloads; ours finds the record *at a time* and the described pc in it, the others only \
         the range.\n\n| ranges | structure | insert, ns | look-up, ns | writer, ops/s |\n|---|---|---|---|---|\n",
    );
    for count in [10_000u64, 100_000, 1_000_000] {
        let mut runs: [Vec<(f64, f64, f64)>; 3] = Default::default();
        for _ in 0..5 {
            let map = CodeMap::create(1 << 30)?;
            runs[0].push(run(&Ours(map), count));
            runs[1].push(run(&Skip(SkipMap::new()), count));
            runs[2].push(run(&Sorted(RwLock::default()), count));
        }
        for (name, runs) in ["code map", "crossbeam-skiplist", "sorted array, RwLock"]
            .iter()
            .zip(&runs)
        {
            let of = |part: fn(&(f64, f64, f64)) -> f64| {
                report::median(&mut runs.iter().map(part).collect::<Vec<_>>())
            };
            body += &format!(
                "| {count} | {name} | {:.0} | {:.0} | {:.0} |\n",
                of(|r| r.0),
                of(|r| r.1),
                of(|r| r.2)
            );
        }
    }
    body += &format!(
        "\nDecoding the names of a record found takes {:.0} ns more.\n\n",
        decode_ns()?
    );
    report::write(results, "codemap", "unfuse-bench codemap", &body)
}

fn decode_ns() -> Result<f64> {
    let ours = Ours(CodeMap::create(64 << 20)?);
    for slot in 0..10_000 {
        ours.insert(slot, 1);
    }
    let mut found = Resolved::default();
    let time = |work: &mut dyn FnMut(u64)| {
        let begun = Instant::now();
        (0..100_000u64).for_each(|i| work(i * 7919 % 10_000 * SIZE + 0x80));
        begun.elapsed().as_nanos() as f64 / 100_000.0
    };
    let find = time(&mut |pc| assert!(ours.find(pc)));
    let resolve = time(&mut |pc| {
        assert_eq!(
            ours.0.reader().resolve(pc, 9, true, &mut found),
            Lookup::Found
        )
    });
    Ok(resolve - find)
}
