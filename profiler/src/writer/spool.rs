//! Limits a spool, which must not fill the disk if its files are not removed.

use std::collections::VecDeque;

use unfuse_format::{ProfileDir, SampleRow};

/// Segments of samples that may still exist, oldest first.
#[derive(Debug)]
pub(super) struct SpoolLimit {
    dir: ProfileDir,
    limit: u64,
    waiting: VecDeque<WaitingSegment>,
}

#[derive(Debug)]
struct WaitingSegment {
    name: String,
    bytes: u64,
    samples: u64,
}

impl SpoolLimit {
    /// A spool that keeps at most `limit` bytes of samples.
    pub(super) fn new(dir: ProfileDir, limit: u64) -> Self {
        Self {
            dir,
            limit,
            waiting: VecDeque::new(),
        }
    }

    /// Adds a segment. Removes the oldest ones beyond the limit; returns the number of samples in them.
    pub(super) fn add(&mut self, name: String, samples: u64) -> u64 {
        let Ok(folder) = self.dir.folder_of::<SampleRow>() else {
            return 0;
        };
        let bytes = |name: &str| folder.about(name).map(|about| about.bytes);
        self.waiting.retain(|segment| bytes(&segment.name).is_ok());
        let bytes = bytes(&name).unwrap_or(0);
        self.waiting.push_back(WaitingSegment {
            name,
            bytes,
            samples,
        });
        let mut kept: u64 = self.waiting.iter().map(|segment| segment.bytes).sum();
        let mut lost = 0;
        while kept > self.limit
            && let Some(oldest) = self.waiting.pop_front()
        {
            kept -= oldest.bytes;
            if folder.remove(&oldest.name).is_ok() {
                lost += oldest.samples;
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use unfuse_format::Table;

    use super::*;

    #[test]
    fn the_oldest_samples_go_first_and_are_counted() {
        let home = tempfile::tempdir().unwrap();
        let dir = ProfileDir::create(&home.path().join("spool")).unwrap();
        let samples = dir.path().join(SampleRow::NAME);
        fs::create_dir(&samples).unwrap();
        let mut spool = SpoolLimit::new(dir, 25);
        let write = |name: &str| {
            fs::write(samples.join(name), [0; 10]).unwrap();
            name.to_owned()
        };
        assert_eq!(spool.add(write("1"), 100), 0);
        assert_eq!(spool.add(write("2"), 200), 0);
        assert_eq!(spool.add(write("3"), 300), 100);
        assert!(!samples.join("1").exists() && samples.join("2").exists());
        // Segments that were removed meanwhile are not lost.
        fs::remove_file(samples.join("2")).unwrap();
        assert_eq!(spool.add(write("4"), 400), 0);
    }
}
