//! Where what one task made meets what another one reads: by id, a bucket at a time.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::Reach;
use crate::buckets::{Buckets, bucket_of};

/// A record on its way through a shuffle or a cache.
#[derive(Serialize, Deserialize)]
struct OnTheWay {
    link: u32,
    id: i64,
    reach: Reach,
}

/// A record that a task read, looked for by its id.
#[derive(Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) link: u32,
    pub(super) id: i64,
    pub(super) group: usize,
    pub(super) place: u32,
    pub(super) source: i32,
    pub(super) position: i64,
}

/// What it came from.
#[derive(Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) place: u32,
    pub(super) source: i32,
    pub(super) position: i64,
    pub(super) linked: Linked,
}

/// The records of one id: the slowest way to any, and how many were read for it.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Linked {
    pub(super) reach: Reach,
    pub(super) count: u64,
}

impl Linked {
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            reach: self.reach.or(&other.reach),
            count: self.count + other.count,
        }
    }
}

pub(super) struct Links {
    on_the_way: Buckets<OnTheWay>,
}

impl Links {
    /// For so many buckets, which may have so many bytes in memory.
    pub(super) fn new(buckets: usize, memory: usize) -> Self {
        Self {
            on_the_way: Buckets::new(buckets, memory),
        }
    }

    pub(super) fn buckets(&self) -> usize {
        self.on_the_way.len()
    }

    pub(super) fn put(&mut self, link: u32, id: i64, reach: &Reach) -> std::io::Result<()> {
        let bucket = bucket_of(id, self.buckets());
        let reach = *reach;
        self.on_the_way.put(bucket, &OnTheWay { link, id, reach })
    }

    /// Finds what is wanted.
    pub(super) fn meet(
        &mut self,
        wanted: &mut Buckets<Wanted>,
        found: &mut Buckets<Found>,
    ) -> std::io::Result<()> {
        for bucket in 0..self.buckets() {
            let mut here: HashMap<(u32, i64), Linked> = HashMap::new();
            for row in self.on_the_way.rows(bucket)? {
                let OnTheWay { link, id, reach } = row?;
                let one = Linked { reach, count: 1 };
                here.entry((link, id))
                    .and_modify(|before| *before = before.or(one))
                    .or_insert(one);
            }
            self.on_the_way.seek_end(bucket)?;
            for row in wanted.rows(bucket)? {
                let row = row?;
                if let Some(linked) = here.get(&(row.link, row.id)) {
                    let of = Found {
                        place: row.place,
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
