//! The generations of a writer whose profile is limited, see `unfuse_format::Retention`.

use std::time::{Duration, Instant};

use unfuse_format::{LiveMarker, ProfileDir, Retention, first_generation, generation_name};

/// Shortest generation: samplers must see each one.
const SHORTEST: Duration = Duration::from_secs(15);
/// Maximum time for which rows wait in memory, in a profile that has grown for hours: many small segments take more
/// space than a few large ones.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub(super) struct Generations {
    limits: Retention,
    dir: ProfileDir,
    writer: String,
    /// Number of the first generation in file names.
    first: u32,
    number: u64,
    started: Instant,
    began: Instant,
    /// Bytes of all generations before this one.
    before: u64,
}

impl Generations {
    pub(super) fn new(limits: Retention, dir: ProfileDir, writer: &str) -> Self {
        let first = if limits.is_limited() {
            first_generation(&dir, writer)
        } else {
            0
        };
        Self {
            limits,
            dir,
            writer: writer.to_owned(),
            first,
            number: 0,
            started: Instant::now(),
            began: Instant::now(),
            before: 0,
        }
    }

    /// Counted from 0.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The name in segments of this generation; `None` if nothing is deleted.
    pub(super) fn name(&self) -> Option<String> {
        let number = self.first.wrapping_add(self.number as u32);
        self.limits
            .is_limited()
            .then(|| generation_name(&self.writer, number))
    }

    /// How long rows wait in memory: longer as the profile gets older.
    pub(super) fn flush_every(&self, usual: Duration) -> Duration {
        if self.limits.is_limited() {
            (self.started.elapsed() / 20).clamp(usual, LONGEST_WAIT)
        } else {
            usual
        }
    }

    /// Begins the next generation if this one is large enough; `written` are the bytes of all so far.
    pub(super) fn advance(&mut self, written: u64) -> bool {
        let age = self.began.elapsed();
        if !self.limits.is_limited() || age < SHORTEST {
            return false;
        }
        let writers = LiveMarker::at_work(&self.dir).len();
        if !self.limits.is_full(written - self.before, age, writers) {
            return false;
        }
        self.number += 1;
        self.began = Instant::now();
        self.before = written;
        true
    }
}
