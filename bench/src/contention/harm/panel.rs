//! The panels: victims, and neighbours that differ only in what they do.

use super::super::Part;

/// Neighbours of equal overlap and unequal harm.
pub(super) struct Panel {
    /// The part of the program's argument that measures it.
    part: Part,
    /// The name of its page.
    pub(super) page: &'static str,
    /// What the neighbours have in common and in what they differ, for the page.
    pub(super) about: &'static str,
    pub(super) victims: &'static [Victim],
    pub(super) neighbours: &'static [Neighbour],
    /// Task slots.
    pub(super) slots: u32,
    /// Memory of the driver, which runs the tasks.
    pub(super) heap: &'static str,
    /// Whether the victims read [`Files`](super::files::Files), from a disk that is [slow](super::slow_disk).
    pub(super) reads_files: bool,
}

/// A query that is slowed down.
pub(super) struct Victim {
    pub(super) name: &'static str,
    /// Nothing for a query of TPC-DS.
    pub(super) sql: Option<&'static str>,
}

/// A query that runs beside it.
pub(super) struct Neighbour {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    /// The weight of its scheduler pool; victims have 1.
    pub(super) weight: u32,
    /// Whether it cannot harm.
    pub(super) is_harmless: bool,
}

const fn neighbour(name: &'static str, sql: &'static str) -> Neighbour {
    Neighbour {
        name,
        sql,
        weight: 1,
        is_harmless: false,
    }
}

const fn harmless(name: &'static str, sql: &'static str) -> Neighbour {
    Neighbour {
        is_harmless: true,
        ..neighbour(name, sql)
    }
}

/// A query of TPC-DS, and one that computes as much each time, so that its times hardly vary.
const VICTIMS: &[Victim] = &[
    Victim {
        name: "q67",
        sql: None,
    },
    Victim {
        name: "computes in tasks",
        sql: Some(
            "SELECT count(*) FROM range(0, 64, 1, 8) WHERE length(reflect('Neighbours', 'spin', 75000, 0, id)) > 0",
        ),
    },
];
/// Slots for all tasks, so that they are not scarce.
const ENOUGH: u32 = 48;

const PLAIN: Panel = Panel {
    part: Part::Harm,
    page: "",
    about: "",
    victims: VICTIMS,
    neighbours: &[],
    slots: ENOUGH,
    heap: "3g",
    reads_files: false,
};

pub(super) const PANELS: [Panel; 8] = [
    Panel {
        page: "contention-harm",
        about: "Each has eight tasks that run all the time, so neither overlap of queries nor overlap of tasks can separate them. \
            One computes, one computes for some ms and then sleeps for 150 ms, one sleeps.",
        neighbours: &[
            neighbour(
                "computes",
                "SELECT sum(hash(id, id * 3, id % 17)) FROM range(0, 4000000000000, 1, 8)",
            ),
            neighbour(
                "computes a little",
                "SELECT count(*) FROM range(0, 40000000, 1, 8) WHERE length(sha2(repeat(cast(id AS string), 3000), 512)) > 0 \
                 AND (id % 50 != 0 OR length(reflect('java.lang.Thread', 'sleep', 150L)) > 0)",
            ),
            harmless(
                "sleeps",
                "SELECT count(*) FROM range(0, 4000000, 1, 8) WHERE length(reflect('java.lang.Thread', 'sleep', 50L)) > 0",
            ),
        ],
        ..PLAIN
    },
    Panel {
        part: Part::HarmDuty,
        page: "contention-harm-duty",
        about: "Each has two tasks, as many as there are CPUs. They compute 100%, 25% and 0% of the time, in turns of 80 ms.",
        neighbours: &[
            neighbour(
                "computes",
                "SELECT count(*) FROM range(0, 1000000, 1, 2) WHERE length(reflect('Neighbours', 'busy', 80, 0, id)) > 0",
            ),
            neighbour(
                "computes a quarter",
                "SELECT count(*) FROM range(0, 1000000, 1, 2) WHERE length(reflect('Neighbours', 'busy', 20, 60, id)) > 0",
            ),
            harmless(
                "sleeps",
                "SELECT count(*) FROM range(0, 1000000, 1, 2) WHERE length(reflect('Neighbours', 'busy', 0, 80, id)) > 0",
            ),
        ],
        ..PLAIN
    },
    Panel {
        part: Part::HarmAllocation,
        page: "contention-harm-allocation",
        about: "Each has four tasks. Two of them are busy for 10 ms and then sleep for 20 ms: one allocates in this time, and keeps the \
            last 100 MB in each task, and one computes. The third one sleeps. The heap has 3 GB.",
        neighbours: &[
            neighbour(
                "allocates",
                "SELECT count(*) FROM range(0, 4000000, 1, 4) WHERE length(reflect('Neighbours', 'allocate', 10, 100, 20, id)) > 0",
            ),
            neighbour(
                "computes",
                "SELECT count(*) FROM range(0, 4000000, 1, 4) WHERE length(reflect('Neighbours', 'busy', 10, 20, id)) > 0",
            ),
            harmless(
                "sleeps",
                "SELECT count(*) FROM range(0, 4000000, 1, 4) WHERE length(reflect('Neighbours', 'busy', 0, 30, id)) > 0",
            ),
        ],
        heap: "3g",
        ..PLAIN
    },
    Panel {
        part: Part::HarmLocks,
        page: "contention-harm-locks",
        about: "Each has one task, which takes a lock for 20 ms, in which it computes for 4 ms and sleeps for 16 ms, and then leaves it \
            for 5 ms. One takes the locks that the victims need (a monitor and a ReentrantLock), the bystander one of its own. The third \
            one takes a lock of its own and only sleeps. Victims have four tasks, which take their lock for 2 ms for each row.",
        victims: &[
            Victim {
                name: "lock",
                sql: Some(
                    "SELECT count(*) FROM range(0, 600, 1, 4) WHERE length(reflect('Locks', 'hold', 'lock', 2, 0, id)) > 0",
                ),
            },
            Victim {
                name: "monitor",
                sql: Some(
                    "SELECT count(*) FROM range(0, 600, 1, 4) WHERE length(reflect('Locks', 'hold', 'monitor', 2, 0, id)) > 0",
                ),
            },
        ],
        neighbours: &[
            neighbour(
                "holds the lock",
                "SELECT count(*) FROM range(0, 1000000, 1, 1) WHERE length(reflect('Locks', 'holdOften', 'lock monitor', 4, 16, id)) > 0",
            ),
            neighbour(
                "holds another lock",
                "SELECT count(*) FROM range(0, 1000000, 1, 1) WHERE length(reflect('Locks', 'holdOften', 'other', 4, 16, id)) > 0",
            ),
            harmless(
                "sleeps in a lock",
                "SELECT count(*) FROM range(0, 1000000, 1, 1) WHERE length(reflect('Locks', 'holdOften', 'third', 0, 20, id)) > 0",
            ),
        ],
        ..PLAIN
    },
    Panel {
        part: Part::HarmWeights,
        page: "contention-harm-weights",
        about: "Each has more tasks than the six slots, of 200 ms. Two compute; the scheduler pool of one of them has the weight 4, the \
            others have 1, as has the victim's. The third one sleeps, but its tasks take slots.",
        neighbours: &[
            Neighbour {
                weight: 4,
                ..neighbour(
                    "computes, weight 4",
                    "SELECT count(*) FROM range(0, 3000, 1, 3000) WHERE length(reflect('Neighbours', 'busy', 200, 0, id)) > 0",
                )
            },
            neighbour(
                "computes, weight 1",
                "SELECT count(*) FROM range(0, 3000, 1, 3000) WHERE length(reflect('Neighbours', 'busy', 200, 0, id)) > 0",
            ),
            neighbour(
                "sleeps, weight 1",
                "SELECT count(*) FROM range(0, 3000, 1, 3000) WHERE length(reflect('Neighbours', 'busy', 0, 200, id)) > 0",
            ),
        ],
        slots: 6,
        ..PLAIN
    },
    Panel {
        part: Part::HarmSleeper,
        page: "contention-harm-sleeper",
        about: "Each has eight tasks. One computes until 2.5 s after the victim's start, one sleeps as long as the victim runs, one sleeps \
            until 2.5 s after its start. So the one that harms overlaps less than one that does not.",
        neighbours: &[
            neighbour(
                "computes for a short time",
                "SELECT count(*) FROM range(0, 8, 1, 8) WHERE length(reflect('Neighbours', 'busy', 4000, 0, id)) > 0",
            ),
            harmless(
                "sleeps for long",
                "SELECT count(*) FROM range(0, 4000000, 1, 8) WHERE length(reflect('Neighbours', 'busy', 0, 80, id)) > 0",
            ),
            harmless(
                "sleeps for a short time",
                "SELECT count(*) FROM range(0, 8, 1, 8) WHERE length(reflect('Neighbours', 'busy', 0, 4000, id)) > 0",
            ),
        ],
        ..PLAIN
    },
    Panel {
        part: Part::HarmCache,
        page: "contention-harm-cache",
        about: "Each has four tasks. Two read text files again and again: one a file of 1 GiB that is dropped from the page \
            cache every second, as is that of the victims, which read theirs once (1 GiB), the other one a file that stays in the page \
            cache. The third one sleeps. The server may read 200 MB a second from the disk (a control group).",
        victims: &[
            Victim {
                name: "counts lines",
                sql: Some("SELECT count(*) FROM text.`{victim}`"),
            },
            Victim {
                name: "finds lines",
                sql: Some("SELECT count(*) FROM text.`{victim}` WHERE value LIKE '%77%'"),
            },
        ],
        neighbours: &[
            neighbour(
                "reads the disk",
                "SELECT count(*) FROM (SELECT /*+ COALESCE(4) */ value FROM text.`{disk}`)",
            ),
            neighbour(
                "reads the page cache",
                "SELECT count(*) FROM (SELECT /*+ COALESCE(4) */ value FROM text.`{cache}`)",
            ),
            harmless(
                "sleeps",
                "SELECT count(*) FROM range(0, 4000000, 1, 4) WHERE length(reflect('Neighbours', 'busy', 0, 80, id)) > 0",
            ),
        ],
        reads_files: true,
        ..PLAIN
    },
    Panel {
        part: Part::HarmStages,
        page: "contention-harm-stages",
        about: "The victim has two stages at the same time: tasks of the critical one wait for 3 s (for something outside) and then \
            compute, tasks of the other one compute at once and have time enough. Each neighbour has eight tasks. The early one computes \
            all the time until the critical stage begins to compute, and then sleeps. The late one sleeps until then, and computes for a \
            quarter of the time after it. The third one sleeps.",
        victims: &[
            Victim {
                name: "short",
                sql: Some(
                    "SELECT a.m, b.m FROM (SELECT count(*) AS m FROM range(0, 2, 1, 2) WHERE length(reflect('Neighbours', 'spin', 400000, 3000, id)) > 0) a \
                     CROSS JOIN (SELECT count(*) AS m FROM range(0, 2, 1, 2) WHERE length(reflect('Neighbours', 'spin', 100000, 0, id)) > 0) b",
                ),
            },
            Victim {
                name: "long",
                sql: Some(
                    "SELECT a.m, b.m FROM (SELECT count(*) AS m FROM range(0, 2, 1, 2) WHERE length(reflect('Neighbours', 'spin', 800000, 3000, id)) > 0) a \
                     CROSS JOIN (SELECT count(*) AS m FROM range(0, 2, 1, 2) WHERE length(reflect('Neighbours', 'spin', 100000, 0, id)) > 0) b",
                ),
            },
        ],
        neighbours: &[
            neighbour(
                "computes early",
                "SELECT count(*) FROM range(0, 80000, 1, 8) WHERE length(reflect('Neighbours', 'busy', if(id % 10000 = 0, 4500, 0), if(id % 10000 = 0, 0, 80), id)) > 0",
            ),
            neighbour(
                "computes late",
                "SELECT count(*) FROM range(0, 80000, 1, 8) WHERE length(reflect('Neighbours', 'busy', if(id % 10000 = 0, 0, 20), if(id % 10000 = 0, 4500, 60), id)) > 0",
            ),
            harmless(
                "sleeps",
                "SELECT count(*) FROM range(0, 4000000, 1, 8) WHERE length(reflect('Neighbours', 'busy', 0, 80, id)) > 0",
            ),
        ],
        ..PLAIN
    },
];

impl Panel {
    /// The panel that a part of the experiment measures.
    pub(super) fn of(part: Part) -> Option<&'static Self> {
        PANELS.iter().find(|panel| panel.part == part)
    }

    /// All subsets of the neighbours, as bits.
    pub(super) fn subsets(&self) -> u8 {
        1 << self.neighbours.len()
    }
}
