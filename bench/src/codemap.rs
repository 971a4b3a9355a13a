//! Compares the code map with two common structures in one run, while another thread writes.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use crossbeam_skiplist::SkipMap;
use unfuse_codemap::{CodeMap, CodeRange, FrameRec, Kind, Lookup, Method, PcRec, Resolution};

use crate::page::{Figure, Measuring};
use crate::stats;

const SIZE: u64 = 0x400;
const LOOK_UPS: u64 = 300_000;
/// Upper bound for the time of a series of look-ups, however long a lock blocks them.
const LONGEST: Duration = Duration::from_secs(2);

/// Code map: insert and look up, against a skip list of pointers and a sorted array behind a lock
#[derive(Debug, Args)]
pub struct Codemap {
    /// Runs
    #[arg(long, default_value_t = 5)]
    pub runs: u32,
}

/// A structure that holds ranges of code.
trait Ranges: Sync {
    fn insert(&self, slot: u64, time: u64);
    fn unload(&self, slot: u64, time: u64);
    fn find(&self, pc: u64) -> bool;
}

struct Ours(CodeMap);

impl Ranges for Ours {
    fn insert(&self, slot: u64, time: u64) {
        let inserted = self.0.writer().insert(&CodeRange {
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
        assert!(inserted.is_ok(), "the map has room");
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

struct SortedRanges(RwLock<Vec<(u64, u64)>>);

impl Ranges for SortedRanges {
    fn insert(&self, slot: u64, _: u64) {
        let mut ranges = self.0.write().expect("no writer panics");
        let range = (slot * SIZE, slot * SIZE + SIZE - 0x40);
        match ranges.last() {
            Some(last) if *last >= range => {
                let position = ranges.partition_point(|other| *other < range);
                ranges.insert(position, range);
            }
            _ => ranges.push(range),
        }
    }

    fn unload(&self, slot: u64, _: u64) {
        let mut ranges = self.0.write().expect("no writer panics");
        let position = ranges.partition_point(|other| other.0 < slot * SIZE);
        if ranges
            .get(position)
            .is_some_and(|range| range.0 == slot * SIZE)
        {
            ranges.remove(position);
        }
    }

    fn find(&self, pc: u64) -> bool {
        let ranges = self.0.read().expect("no writer panics");
        let after = ranges.partition_point(|range| range.0 <= pc);
        black_box(
            after
                .checked_sub(1)
                .and_then(|position| ranges.get(position)),
        )
        .is_some_and(|range| pc < range.1)
    }
}

/// The work of the other thread during the look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// Nothing.
    Idle,
    /// Loads and unloads a range every 100 µs: far faster than any JIT.
    Paced,
    /// Loads and unloads without a pause.
    Busy,
}

const WRITERS: [Writer; 3] = [Writer::Idle, Writer::Paced, Writer::Busy];
const STRUCTURES: [&str; 3] = ["code map", "crossbeam-skiplist", "sorted array, RwLock"];

/// Times of look-ups and writes beside one kind of writer.
#[derive(Debug, Clone, Copy, Default)]
struct Took {
    /// Mean time of a look-up, ns.
    find: f64,
    /// Percentiles of look-ups that are timed one by one, ns: 50, 99, 99.9, and the longest.
    percentiles: [f64; 4],
    /// Time of the writer for a load and an unload, ns, without its pauses; 0 if it writes nothing.
    write: f64,
}

/// One run of one structure.
struct Run {
    /// An insert while filling, ns.
    insert: f64,
    /// Look-ups, by writer.
    beside: [Took; 3],
}

/// Fills the structure, then looks up addresses beside each writer.
fn run(ranges: &dyn Ranges, count: u64) -> Run {
    let begun = Instant::now();
    for slot in 0..count {
        ranges.insert(slot, slot + 1);
    }
    let insert = begun.elapsed().as_nanos() as f64 / count as f64;
    Run {
        insert,
        beside: WRITERS.map(|writer| beside(ranges, count, writer)),
    }
}

fn beside(ranges: &dyn Ranges, count: u64, writer: Writer) -> Took {
    let stop = AtomicBool::new(false);
    let mut took = Took::default();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(ranges, count, writer, &stop));
        let mut addresses = Addresses { x: 1, count };
        let (begun, mut found) = (Instant::now(), 0u64);
        // Look-ups that wait for the writer may take long.
        while found < LOOK_UPS && begun.elapsed() < LONGEST {
            for _ in 0..100 {
                assert!(
                    ranges.find(addresses.next()),
                    "every address looked up is in a range"
                );
            }
            found += 100;
        }
        took.find = begun.elapsed().as_nanos() as f64 / found as f64;
        took.percentiles = percentiles(ranges, &mut addresses);
        stop.store(true, Ordering::Relaxed);
        took.write = writing
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    took
}

/// Loads and unloads ranges above those that are looked up. Returns the time of a pair, ns.
fn write(ranges: &dyn Ranges, count: u64, writer: Writer, stop: &AtomicBool) -> f64 {
    let (begun, mut busy, mut pairs) = (Instant::now(), Duration::ZERO, 0u64);
    while writer != Writer::Idle && !stop.load(Ordering::Relaxed) {
        // Reuses addresses after a while, as code does.
        let slot = count + pairs % (1 << 16);
        let now = Instant::now();
        let time = (1 << 40) + (now - begun).as_nanos() as u64;
        ranges.insert(slot, time);
        ranges.unload(slot, time);
        busy += now.elapsed();
        pairs += 1;
        if writer == Writer::Paced {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    busy.as_nanos() as f64 / pairs.max(1) as f64
}

fn percentiles(ranges: &dyn Ranges, addresses: &mut Addresses) -> [f64; 4] {
    let clock = median_of(1000, || {
        let begun = Instant::now();
        begun.elapsed().as_nanos() as f64
    });
    let begun = Instant::now();
    let mut each: Vec<f64> = (0..LOOK_UPS)
        .take_while(|_| begun.elapsed() < LONGEST)
        .map(|_| {
            let address = addresses.next();
            let begun = Instant::now();
            ranges.find(address);
            begun.elapsed().as_nanos() as f64 - clock
        })
        .collect();
    each.sort_by(f64::total_cmp);
    let percentile = |part: f64| each[((each.len() - 1) as f64 * part) as usize];
    [
        percentile(0.5),
        percentile(0.99),
        percentile(0.999),
        percentile(1.0),
    ]
}

fn median_of(times: usize, of: impl Fn() -> f64) -> f64 {
    stats::median(&mut (0..times).map(|_| of()).collect::<Vec<f64>>())
}

/// Random addresses within the ranges of some slots.
struct Addresses {
    x: u64,
    count: u64,
}

impl Addresses {
    fn next(&mut self) -> u64 {
        self.x = self
            .x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.x >> 33) % self.count * SIZE + 0x80
    }
}

impl Codemap {
    /// Measures and writes `codemap.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "codemap", &["profiler/codemap/src"])?;
        let mut body = format!(
            "{} runs, each structure in turn; means over the runs, the longest of all. Look-ups are of random addresses while \
             another thread does nothing, inserts and unloads a range every 100 µs (*paced*), or does so without a pause (*busy*). \
             The code map finds the record *at a time* and the described pc in it, the others only the range. Percentiles are of \
             look-ups that are timed one by one, without the time to read the clock; if more threads are runnable than the machine has CPUs, the longest include time in which the reader had no CPU.\n\n\
             | ranges | structure | insert, ns | writer | look-up, ns | median | 99% | 99.9% | longest | insert and unload, ns |\n\
             |---|---|---|---|---|---|---|---|---|---|\n",
            self.runs
        );
        let mut figures = Vec::new();
        for (count, name) in [(10_000u64, "10k"), (100_000, "100k"), (1_000_000, "1m")] {
            let mut runs: [Vec<Run>; 3] = Default::default();
            for _ in 0..self.runs {
                let map = CodeMap::create(1 << 30)?;
                runs[0].push(run(&Ours(map), count));
                runs[1].push(run(&Skip(SkipMap::new()), count));
                runs[2].push(run(&SortedRanges(RwLock::default()), count));
            }
            for (structure, runs) in STRUCTURES.iter().zip(&runs) {
                rows(&mut body, count, structure, runs);
            }
            figures.extend(figures_of(name, count, &runs));
        }
        let decode = decode_ns()?;
        figures.push(Figure::new(
            "decode",
            "decoding the names of a record found",
            decode,
            "ns",
            0,
        ));
        page.finish(self.runs, figures, &body)
    }
}

fn rows(body: &mut String, count: u64, structure: &str, runs: &[Run]) {
    let mean = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    for (index, writer) in ["idle", "paced", "busy"].iter().enumerate() {
        let part = |which: usize| mean(&|run| run.beside[index].percentiles[which]);
        let longest = runs
            .iter()
            .map(|run| run.beside[index].percentiles[3])
            .fold(0.0, f64::max);
        let _ = writeln!(
            body,
            "| {count} | {structure} | {:.0} | {writer} | {:.0} | {:.0} | {:.0} | {:.0} | {longest:.0} | {:.0} |",
            mean(&|run| run.insert),
            mean(&|run| run.beside[index].find),
            part(0),
            part(1),
            part(2),
            mean(&|run| run.beside[index].write),
        );
    }
}

/// Figures of all structures with `count` ranges.
fn figures_of(name: &str, count: u64, runs: &[Vec<Run>; 3]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |key: &str, what: &str, of: &dyn Fn(&Run) -> f64, which: usize| {
        let values: Vec<f64> = runs[which].iter().map(of).collect();
        let (key, what) = (format!("{key}_{name}"), format!("{what}, {count} ranges"));
        figures.push(Figure::from_runs(&key, &what, &values, "ns", 0));
    };
    add("insert", "insert", &|run| run.insert, 0);
    add(
        "look_up",
        "look-up, writer paced",
        &|run| run.beside[1].find,
        0,
    );
    add(
        "look_up_busy",
        "look-up, writer busy",
        &|run| run.beside[2].find,
        0,
    );
    add(
        "median_busy",
        "median of single look-ups, writer busy",
        &|run| run.beside[2].percentiles[0],
        0,
    );
    add(
        "p999_busy",
        "99.9% of look-ups take less, writer busy",
        &|run| run.beside[2].percentiles[2],
        0,
    );
    add(
        "write_busy",
        "insert and unload, writer busy",
        &|run| run.beside[2].write,
        0,
    );
    add(
        "skiplist",
        "crossbeam-skiplist: look-up, writer paced",
        &|run| run.beside[1].find,
        1,
    );
    add(
        "skiplist_busy",
        "crossbeam-skiplist: look-up, writer busy",
        &|run| run.beside[2].find,
        1,
    );
    add(
        "sorted",
        "sorted array, RwLock: look-up, writer paced",
        &|run| run.beside[1].find,
        2,
    );
    add(
        "sorted_busy",
        "sorted array, RwLock: look-up, writer busy",
        &|run| run.beside[2].find,
        2,
    );
    figures
}

fn decode_ns() -> Result<f64> {
    let ours = Ours(CodeMap::create(64 << 20)?);
    for slot in 0..10_000 {
        ours.insert(slot, 1);
    }
    let mut found = Resolution::default();
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
