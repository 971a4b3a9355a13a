//! Joins the outputs of tasks with the inputs of others, by id, one bucket at a time.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::RecordPath;
use crate::buckets::{Buckets, bucket_of};

/// A record in a shuffle or a cache.
#[derive(Serialize, Deserialize)]
struct SentRecord {
    link: u32,
    id: i64,
    path: RecordPath,
}

/// A record that a task read, to be found by its id.
#[derive(Serialize, Deserialize)]
pub(super) struct Lookup {
    pub(super) link: u32,
    pub(super) id: i64,
    pub(super) group: usize,
    pub(super) trace: u32,
    pub(super) source: i32,
    pub(super) position: i64,
}

/// The path to it.
#[derive(Serialize, Deserialize)]
pub(super) struct Match {
    pub(super) trace: u32,
    pub(super) source: i32,
    pub(super) position: i64,
    pub(super) linked: Upstream,
}

/// The records with one id: the slowest path to any of them, and the number read for it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Upstream {
    pub(super) path: RecordPath,
    pub(super) count: u64,
}

impl Upstream {
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            path: self.path.or(&other.path),
            count: self.count + other.count,
        }
    }
}

pub(super) struct Links {
    on_the_way: Buckets<SentRecord>,
}

impl Links {
    /// Links with `buckets` buckets, which may use `memory` bytes in memory.
    pub(super) fn new(buckets: usize, memory: usize) -> Self {
        Self {
            on_the_way: Buckets::new(buckets, memory),
        }
    }

    pub(super) fn buckets(&self) -> usize {
        self.on_the_way.len()
    }

    pub(super) fn put(&mut self, link: u32, id: i64, path: &RecordPath) -> std::io::Result<()> {
        let bucket = bucket_of(id, self.buckets());
        let path = *path;
        self.on_the_way.put(bucket, &SentRecord { link, id, path })
    }

    /// Finds the records to look up.
    pub(super) fn meet(
        &mut self,
        wanted: &mut Buckets<Lookup>,
        found: &mut Buckets<Match>,
    ) -> std::io::Result<()> {
        for bucket in 0..self.buckets() {
            let mut here: HashMap<(u32, i64), Upstream> = HashMap::new();
            for row in self.on_the_way.rows(bucket)? {
                let SentRecord { link, id, path } = row?;
                let one = Upstream { path, count: 1 };
                here.entry((link, id))
                    .and_modify(|before| *before = before.or(one))
                    .or_insert(one);
            }
            self.on_the_way.seek_end(bucket)?;
            for row in wanted.rows(bucket)? {
                let row = row?;
                if let Some(linked) = here.get(&(row.link, row.id)) {
                    let of = Match {
                        trace: row.trace,
                        source: row.source,
                        position: row.position,
                        linked: *linked,
                    };
                    found.put(row.group, &of)?;
                }
            }
        }
        Ok(())
    }
}
