//! What waits in a spool, which must not fill the disk when nobody takes it away.

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

/// Segments of samples that were written and may still be there, oldest first.
#[derive(Debug)]
pub(super) struct Spool {
    limit: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    path: PathBuf,
    bytes: u64,
    samples: u64,
}

impl Spool {
    /// A spool that keeps at most `limit` bytes of samples.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
        }
    }

    /// A new segment. Removes the oldest where there are too many; returns how many samples went with them.
    pub(super) fn add(&mut self, path: PathBuf, samples: u64) -> u64 {
        self.waiting.retain(|segment| segment.path.exists());
        let bytes = fs::metadata(&path).map_or(0, |file| file.len());
        self.waiting.push_back(Waiting {
            path,
            bytes,
            samples,
        });
        let mut kept: u64 = self.waiting.iter().map(|segment| segment.bytes).sum();
        let mut lost = 0;
        while kept > self.limit
            && let Some(oldest) = self.waiting.pop_front()
        {
            kept -= oldest.bytes;
            if fs::remove_file(&oldest.path).is_ok() {
                lost += oldest.samples;
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_samples_go_first_and_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(25);
        let write = |name: &str| {
            let path = dir.path().join(name);
            fs::write(&path, [0; 10]).unwrap();
            path
        };
        let (first, second) = (write("1"), write("2"));
        assert_eq!(spool.add(first.clone(), 100), 0);
        assert_eq!(spool.add(second.clone(), 200), 0);
        assert_eq!(spool.add(write("3"), 300), 100);
        assert!(!first.exists() && second.exists());
        // What was taken away meanwhile is not lost.
        fs::remove_file(&second).unwrap();
        assert_eq!(spool.add(write("4"), 400), 0);
    }
}
