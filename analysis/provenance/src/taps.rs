//! The task attempts whose records were followed, and in which order they depend on each other.

use std::collections::{BTreeMap, HashMap};

use unfuse_format::{ProfileDir, RecordSourceRow, RecordTargetRow};

use crate::{ProvenanceError, RecordRef};

/// Application, stage and partition.
type Place = (String, i32, i32);
/// Attempts at the stage and at the task.
type Rank = (i32, i64);

/// A task attempt.
#[derive(Debug, Clone, Default)]
pub struct Tap {
    /// What it read, by the number of the source.
    pub sources: Vec<RecordSourceRow>,
    /// What it made, by the number of the output.
    pub targets: Vec<RecordTargetRow>,
}

impl Tap {
    /// What tables call it.
    fn number(&self) -> Option<i64> {
        let of_target = self.targets.first().map(|row| row.tap);
        of_target.or(self.sources.first().map(|row| row.tap))
    }

    /// The output that the records of a source go into.
    pub(crate) fn output_of(&self, source: &RecordSourceRow) -> i32 {
        match source.output {
            -1 => i32::try_from(self.targets.len()).unwrap_or(0) - 1,
            output => output,
        }
    }

    fn app(&self) -> Option<&str> {
        let of_target = self.targets.first().map(|row| row.app.as_str());
        of_target.or(self.sources.first().map(|row| row.app.as_str()))
    }

    /// Which attempt of its task this is: later ones count more.
    fn rank(&self) -> Rank {
        let (attempt, task) = (
            self.targets.first().map(|row| (row.attempt, row.task)),
            self.sources.first().map(|row| (row.attempt, row.task)),
        );
        attempt.or(task).unwrap_or_default()
    }
}

/// All that count: of attempts at the same task (speculative ones, those of a stage that was run again) the last.
#[derive(Debug, Default)]
pub struct Taps {
    /// In the order of their numbers.
    pub all: Vec<Tap>,
    /// Attempts that were left out for others.
    pub repeated: usize,
    /// Segments that could not be read.
    pub damaged: usize,
    /// Their numbers in the order in which the writers wrote them; the same in all tables.
    pub(crate) order: HashMap<i64, usize>,
}

impl Taps {
    /// Those of an application, or of all.
    ///
    /// # Errors
    /// If there are none, or the profile cannot be read.
    pub fn read(dir: &ProfileDir, app: Option<&str>) -> Result<Self, ProvenanceError> {
        let sources = dir.read::<RecordSourceRow>()?;
        let targets = dir.read::<RecordTargetRow>()?;
        let mut found: BTreeMap<i64, Tap> = BTreeMap::new();
        let mut order = HashMap::new();
        for row in sources.rows {
            let next = order.len();
            order.entry(row.tap).or_insert(next);
            found.entry(row.tap).or_default().sources.push(row);
        }
        for row in targets.rows {
            found.entry(row.tap).or_default().targets.push(row);
        }
        if let Some(app) = app {
            found.retain(|_, tap| tap.app() == Some(app));
        }
        let mut last: BTreeMap<Place, (i64, Rank)> = BTreeMap::new();
        for (number, tap) in &mut found {
            tap.sources.sort_by_key(|row| row.source);
            tap.targets.sort_by_key(|row| row.output);
            let Some(place) = place(tap) else { continue };
            let rank = tap.rank();
            let best = last.entry(place).or_insert((*number, rank));
            if rank > best.1 {
                *best = (*number, rank);
            }
        }
        let of_tasks = found.len();
        let mut taps = Self {
            damaged: sources.problems.len() + targets.problems.len(),
            order,
            ..Self::default()
        };
        let mut numbers: Vec<i64> = last.into_values().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        for number in numbers {
            if let Some(tap) = found.remove(&number) {
                taps.all.push(tap);
            }
        }
        taps.repeated = of_tasks - taps.all.len();
        if taps.all.is_empty() {
            return Err(ProvenanceError::NoRecords(dir.path().display().to_string()));
        }
        Ok(taps)
    }

    /// The places of task attempts by their numbers.
    pub(crate) fn places(&self) -> HashMap<i64, u32> {
        let numbers = self.all.iter().map(Tap::number).zip(0..);
        numbers
            .filter_map(|(number, place)| Some((number?, place)))
            .collect()
    }

    /// How many records were read that went into something.
    pub(crate) fn records(&self) -> u64 {
        let of_tap = |tap: &Tap| {
            let has = |output: i32| tap.targets.iter().any(|row| row.output == output);
            let sources = tap.sources.iter().filter(|row| has(tap.output_of(row)));
            sources.fold(0, |sum: u64, row| {
                sum.saturating_add(u64::try_from(row.count).unwrap_or(0))
            })
        };
        self.all.iter().map(of_tap).fold(0, u64::saturating_add)
    }

    /// How records are named in the tables.
    pub(crate) fn number(&self, record: RecordRef) -> Option<i64> {
        self.all.get(usize::try_from(record.tap).ok()?)?.number()
    }

    /// The source that a record was read from.
    pub fn source(&self, record: RecordRef) -> Option<&RecordSourceRow> {
        let tap = self.all.get(usize::try_from(record.tap).ok()?)?;
        tap.sources.iter().find(|row| row.source == record.source)
    }

    /// Of each task attempt and output, how many links are before it. Each link belongs to one application.
    pub(crate) fn levels(&self) -> Vec<Vec<u32>> {
        let mut of_link: HashMap<(String, String), u32> = HashMap::new();
        let mut levels: Vec<Vec<u32>> = self
            .all
            .iter()
            .map(|tap| vec![0; tap.targets.len()])
            .collect();
        // As many rounds as there are links one after the other; what is damaged may go round in circles.
        for _ in 0..=LinkNumbers::of(self).0.len() {
            let mut changed = false;
            for (tap, levels) in self.all.iter().zip(&mut levels) {
                for (target, level) in tap.targets.iter().zip(levels.iter_mut()) {
                    let sources = tap.sources.iter();
                    let own = sources.filter(|source| tap.output_of(source) == target.output);
                    let before = own
                        .flat_map(|source| source.links.iter().map(|link| (&source.app, link)))
                        .filter_map(|(app, link)| of_link.get(&(app.clone(), link.clone())))
                        .max();
                    let now = before.map_or(0, |before| before + 1);
                    let key = (target.app.clone(), target.link.clone());
                    // Who reads it may have come before.
                    changed |= now > *level || of_link.get(&key).is_none_or(|link| now > *link);
                    let link = of_link.entry(key).or_insert(now);
                    *level = now.max(*level);
                    *link = now.max(*link);
                }
            }
            if !changed {
                break;
            }
        }
        levels
    }
}

/// Numbers of the shuffles and caches that records went into; each belongs to one application.
pub(crate) struct LinkNumbers(HashMap<(String, String), u32>);

impl LinkNumbers {
    pub(crate) fn of(taps: &Taps) -> Self {
        let mut numbers = HashMap::new();
        for target in taps.all.iter().flat_map(|tap| &tap.targets) {
            if target.link != "result" {
                let next = numbers.len() as u32;
                let key = (target.app.clone(), target.link.clone());
                numbers.entry(key).or_insert(next);
            }
        }
        Self(numbers)
    }

    /// None for results, and for what nobody wrote.
    pub(crate) fn get(&self, app: &str, link: &str) -> Option<u32> {
        let key = (app.to_owned(), link.to_owned());
        self.0.get(&key).copied()
    }
}

/// The task that an attempt was at.
fn place(tap: &Tap) -> Option<Place> {
    let of_target = tap.targets.first();
    let of_source = tap.sources.first();
    of_target
        .map(|row| (row.app.clone(), row.stage, row.partition))
        .or(of_source.map(|row| (row.app.clone(), row.stage, row.partition)))
}
