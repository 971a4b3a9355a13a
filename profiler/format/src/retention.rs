//! Retention: how large and how old a profile directory may become.
//!
//! A writer with limits writes in *generations*, a tenth of a limit each; their number is in the names of its
//! segments (`HOST-PID-gGENERATION-NUMBER.parquet`). Deletion goes by writer and generation, oldest first: the
//! samples of a generation, and after them all else of the generation *before* it. So stacks (and plans, stages, …)
//! outlive the samples of their own generation by one: a sampler that has not heard of a new generation yet may
//! still name stacks of the last one.
//!
//! Generations that a living writer may still write to are never deleted. Tables of [`Lifetime::Profile`] and `sources/`
//! are kept (they are bounded by the distinct texts, and a text that Spark has cached is not handed over again) and do
//! not count.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use unfuse_files::{Directory, Kind};

use crate::{Lifetime, LiveMarker, ProfileDir, TableId, units};

/// Into how many generations the limits are cut.
const GENERATIONS: u32 = 10;
/// The least that a profile is kept within.
const LEAST_BYTES: u64 = 64 << 10;
/// The least that samples are kept for.
const LEAST_AGE: Duration = Duration::from_secs(10);

/// Tables whose segments live so long.
fn tables(lifetime: Lifetime) -> impl Iterator<Item = TableId> {
    let all = TableId::ALL.iter().copied();
    all.filter(move |table| table.lifetime() == lifetime)
}

/// The limits; none set keeps everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Size of the directory without its sources, bytes.
    pub bytes: Option<u64>,
    /// Age of the samples.
    pub age: Option<Duration>,
}

impl Retention {
    /// Whether anything is ever deleted.
    pub fn is_limited(&self) -> bool {
        self.bytes.is_some() || self.age.is_some()
    }

    /// Whether a generation of this size and age has enough, in a directory with so many writers.
    pub fn is_full(&self, bytes: u64, age: Duration, writers: usize) -> bool {
        let parts = u64::from(GENERATIONS) * writers.max(1) as u64;
        self.bytes.is_some_and(|limit| bytes >= limit / parts)
            || self.age.is_some_and(|limit| age >= limit / GENERATIONS)
    }

    /// A limit of the size such as `2GB`, bytes.
    ///
    /// # Errors
    /// It is no size, or too small for a profile.
    pub fn size_limit(text: &str) -> Result<u64, String> {
        let bytes = units::parse_size(text)?;
        if bytes < LEAST_BYTES {
            return Err("a size of at least 64KB is expected, such as 2GB".to_owned());
        }
        Ok(bytes)
    }

    /// A limit of the age such as `7d`.
    ///
    /// # Errors
    /// It is no duration, or too short.
    pub fn age_limit(text: &str) -> Result<Duration, String> {
        let age = units::parse_duration(text)?;
        if age < LEAST_AGE {
            return Err("a duration of at least 10s is expected, such as 7d".to_owned());
        }
        Ok(age)
    }

    /// Deletes what is beyond the limits; returns the bytes freed. Several writers may do this at once.
    pub fn enforce(&self, dir: &ProfileDir) -> u64 {
        if !self.is_limited() {
            return 0;
        }
        let (mut size, units) = survey(dir, &LiveMarker::at_work(dir));
        let now = SystemTime::now();
        let mut freed = 0;
        for unit in units {
            let age = now.duration_since(unit.written).unwrap_or_default();
            let too_old = self.age.is_some_and(|limit| age > limit);
            // A tenth is left for what comes until the next look.
            let too_much = self
                .bytes
                .is_some_and(|limit| size > limit / u64::from(GENERATIONS) * 9);
            if !too_old && !too_much {
                break;
            }
            for file in &unit.files {
                // Another writer may have been faster.
                let _ = file.folder.remove(&file.name);
                size = size.saturating_sub(file.bytes);
                freed += file.bytes;
            }
        }
        freed
    }
}

/// The names of a writer's segments in one of its generations.
pub fn generation_name(writer: &str, generation: u32) -> String {
    format!("{writer}-g{generation:05}")
}

/// The first generation that a new writer of this name may use: a pid comes round again.
pub fn first_generation(dir: &ProfileDir, writer: &str) -> u32 {
    tables(Lifetime::Generation)
        .flat_map(|table| files(dir, table))
        .filter(|file| file.writer == writer)
        // One is left out, so that nothing of the other writer is taken for a late part of this one.
        .map(|file| file.generation + 2)
        .max()
        .unwrap_or(0)
}

struct Segment {
    folder: Directory,
    name: String,
    writer: String,
    /// 0 for the segments of a writer without limits.
    generation: u32,
    bytes: u64,
    written: SystemTime,
}

/// What is deleted at once.
struct Unit {
    written: SystemTime,
    /// Samples first.
    files: Vec<Segment>,
}

fn files(dir: &ProfileDir, table: TableId) -> Vec<Segment> {
    let Ok(folder) = dir.folder(table.name()) else {
        return Vec::new();
    };
    let names = folder.names().unwrap_or_default().into_iter();
    names
        .filter_map(|name| {
            let name = name.into_string().ok()?;
            let (writer, generation) = parse(&name)?;
            let about = folder.about(&name).ok()?;
            (about.kind == Kind::File).then(|| Segment {
                folder: folder.clone(),
                writer: writer.to_owned(),
                generation,
                bytes: about.bytes,
                written: about.modified,
                name: name.clone(),
            })
        })
        .collect()
}

/// Writer and generation of a segment's file name.
fn parse(name: &str) -> Option<(&str, u32)> {
    let (rest, _) = name.strip_suffix(".parquet")?.rsplit_once('-')?;
    let generation = rest
        .rsplit_once("-g")
        .and_then(|(writer, number)| Some((writer, number.parse().ok()?)));
    Some(generation.unwrap_or((rest, 0)))
}

/// The size of everything, and what may be deleted, oldest first.
fn survey(dir: &ProfileDir, at_work: &HashSet<String>) -> (u64, Vec<Unit>) {
    let mut size = 0;
    // By writer and generation: samples, and the rest.
    let mut writers: HashMap<String, BTreeMap<u32, [Vec<Segment>; 2]>> = HashMap::new();
    for table in tables(Lifetime::Generation) {
        for file in files(dir, table) {
            size += file.bytes;
            let generations = writers.entry(file.writer.clone()).or_default();
            let parts = generations.entry(file.generation).or_default();
            parts[usize::from(table != TableId::Samples)].push(file);
        }
    }
    let mut last_words: HashMap<String, Vec<Segment>> = HashMap::new();
    for file in tables(Lifetime::Latest).flat_map(|table| files(dir, table)) {
        size += file.bytes;
        last_words
            .entry(file.writer.clone())
            .or_default()
            .push(file);
    }
    let mut units = Vec::new();
    for (writer, generations) in writers {
        let lives = at_work.contains(&writer);
        let newest = generations.keys().max().copied().unwrap_or(0);
        let mut late = Vec::new();
        let mut written = SystemTime::UNIX_EPOCH;
        for (generation, [mut samples, rest]) in generations {
            if lives && generation == newest {
                break;
            }
            let youngest = samples.iter().chain(&rest).map(|file| file.written).max();
            // In the order of generations also where clocks are set back.
            written = written.max(youngest.unwrap_or(written));
            samples.append(&mut late);
            late = rest;
            units.push(Unit {
                written,
                files: samples,
            });
        }
        if !lives {
            late.extend(last_words.remove(&writer).unwrap_or_default());
            units.push(Unit {
                written,
                files: late,
            });
        }
        last_words.remove(&writer);
    }
    // Of writers that have nothing else.
    for (writer, files) in last_words {
        let youngest = files.iter().map(|file| file.written).max();
        if let Some(written) = youngest.filter(|_| !at_work.contains(&writer)) {
            units.push(Unit { written, files });
        }
    }
    // Stable: the units of a writer stay in their order.
    units.sort_by_key(|unit| unit.written);
    (size, units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, SampleRow, SegmentWriter, StackId, StackRow};

    fn dir(home: &tempfile::TempDir) -> ProfileDir {
        ProfileDir::create(&home.path().join("profile")).unwrap()
    }

    /// A segment of samples and one of stacks, all of one stack; names differ enough not to be compressed away.
    fn write(dir: &ProfileDir, writer: &str, stack: i64, new_stack: bool) {
        let mut samples = SegmentWriter::new(dir, writer);
        let mut stacks = SegmentWriter::new(dir, writer);
        for tid in 0..50 {
            samples.push(SampleRow {
                stack: StackId(stack),
                tid,
                thread: format!("{:x}", u64::from(tid).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                ..SampleRow::default()
            });
        }
        if new_stack {
            stacks.push(StackRow {
                stack: StackId(stack),
                frames: vec![Frame::default().into()],
            });
        }
        stacks.flush().unwrap();
        samples.flush().unwrap();
    }

    fn stacks_of(dir: &ProfileDir) -> (HashSet<i64>, HashSet<i64>) {
        let samples = dir.read::<SampleRow>().unwrap().rows;
        let stacks = dir.read::<StackRow>().unwrap().rows;
        (
            samples.iter().map(|row| row.stack.0).collect(),
            stacks.iter().map(|row| row.stack.0).collect(),
        )
    }

    #[test]
    fn sizes_and_ages_are_read() {
        assert_eq!(Retention::size_limit("2GB"), Ok(2 << 30));
        assert_eq!(Retention::size_limit("1.5g"), Ok(3 << 29));
        assert_eq!(Retention::size_limit("500MiB"), Ok(500 << 20));
        assert_eq!(
            Retention::age_limit("7d"),
            Ok(Duration::from_secs(7 * 86_400))
        );
        assert_eq!(Retention::age_limit("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "2", "GB", "-1GB", "2XB", "1KB", "1.2.3GB", "9e9GB", "é"] {
            assert!(Retention::size_limit(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "7", "d", "-1d", "7 d", "1s", "7days", "99999999999d"] {
            assert!(Retention::age_limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_have_writer_and_generation() {
        assert_eq!(parse("web-1-77-00003.parquet"), Some(("web-1-77", 0)));
        assert_eq!(parse("web-g1-77-00003.parquet"), Some(("web-g1-77", 0)));
        let name = format!("{}-00003.parquet", generation_name("web-g1-77", 12));
        assert_eq!(parse(&name), Some(("web-g1-77", 12)));
        assert_eq!(parse("web-1-77-00003.tmp"), None);
    }

    #[test]
    fn the_oldest_go_first_and_every_sample_keeps_its_stack() {
        let home = tempfile::tempdir().unwrap();
        let dir = dir(&home);
        let live = LiveMarker::hold(&dir, "h-1").unwrap();
        let limits = Retention {
            bytes: Some(200 << 10),
            age: None,
        };
        for generation in 0..60u32 {
            let name = generation_name("h-1", generation);
            write(&dir, &name, i64::from(generation), true);
            // Late samples of the last generation's stack.
            write(&dir, &name, i64::from(generation) - 1, false);
            limits.enforce(&dir);
            let (size, _) = survey(&dir, &HashSet::new());
            assert!(size <= 200 << 10, "{size} in generation {generation}");
            let (used, there) = stacks_of(&dir);
            let missing: Vec<_> = used.difference(&there).filter(|id| **id >= 0).collect();
            assert!(missing.is_empty(), "{missing:?}");
            assert!(used.contains(&i64::from(generation)));
        }
        let (used, _) = stacks_of(&dir);
        assert!(used.len() > 5 && !used.contains(&10), "{used:?}");
        drop(live);
        // Nobody writes any more: everything may go.
        let none = Retention {
            bytes: Some(1),
            age: None,
        };
        none.enforce(&dir);
        assert_eq!(survey(&dir, &HashSet::new()).0, 0);
    }

    #[test]
    fn the_old_go_and_a_living_writer_keeps_its_last_generation() {
        let home = tempfile::tempdir().unwrap();
        let dir = dir(&home);
        let _live = LiveMarker::hold(&dir, "h-2").unwrap();
        for writer in ["h-1", "h-2"] {
            write(&dir, &generation_name(writer, 3), 3, true);
            write(&dir, &generation_name(writer, 4), 4, true);
        }
        write(&dir, "h-3", 5, true);
        let limits = Retention {
            bytes: None,
            age: Some(Duration::ZERO),
        };
        std::thread::sleep(Duration::from_millis(20));
        limits.enforce(&dir);
        let (used, there) = stacks_of(&dir);
        assert_eq!(used, HashSet::from([4]));
        assert_eq!(there, HashSet::from([3, 4]), "one generation more");
        assert_eq!(first_generation(&dir, "h-2"), 6);
        assert_eq!(first_generation(&dir, "h-1"), 0);
    }
}
