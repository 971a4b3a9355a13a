//! The JVM's own threads: garbage collection, compilation, safepoints. They run no Java and are not announced; the
//! kernel counts their CPU time exactly, so they need no sampler.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use unfuse_format::{GARBAGE_COLLECTION as GC, JIT_COMPILATION as JIT, VM_OPERATIONS as VM};

/// HotSpot's names of its threads (the kernel keeps 15 bytes) and their work.
const NAMES: [(&str, &str); 19] = [
    ("GC Thread", GC),
    ("ParGC Thread", GC),
    ("G1 ", GC),
    ("ZWorker", GC),
    ("ZDriver", GC),
    ("ZDirector", GC),
    ("ZStat", GC),
    ("ZUncommit", GC),
    ("ZUnmapper", GC),
    ("XWorker", GC),
    ("XDriver", GC),
    ("Shenandoah", GC),
    ("Concurrent Mark", GC),
    ("C1 Compiler", JIT),
    ("C2 Compiler", JIT),
    ("JVMCI", JIT),
    ("Sweeper thread", JIT),
    ("VM Thread", VM),
    ("VM Periodic", VM),
];

/// CPU time of an internal thread since the last call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ThreadUsage {
    pub(super) tid: u32,
    /// Its name.
    pub(super) thread: String,
    /// Its work.
    pub(super) work: &'static str,
    pub(super) ns: u64,
    /// As many samples as a sampler would have taken.
    pub(super) samples: u64,
}

/// The state of all internal threads.
#[derive(Debug, Default)]
pub(super) struct InternalThreads {
    seen: HashMap<u32, Option<Thread>>,
}

#[derive(Debug)]
struct Thread {
    name: String,
    work: &'static str,
    ns: u64,
    /// CPU time that is not a whole sample yet, ns.
    rest: u64,
}

impl InternalThreads {
    /// The work of a thread that was seen at the last look; none of one that is not the JVM's own.
    pub(super) fn work_of(&self, tid: u32) -> Option<&'static str> {
        self.seen.get(&tid)?.as_ref().map(|thread| thread.work)
    }

    /// Reads all threads under `/proc/PID/task`. Threads that have ended are dropped, with their CPU time since the
    /// last call.
    pub(super) fn look(&mut self, tasks: &Path, period_ns: u64) -> Vec<ThreadUsage> {
        let Ok(entries) = fs::read_dir(tasks) else {
            return Vec::new();
        };
        let mut alive = HashMap::new();
        let mut used = Vec::new();
        for entry in entries.flatten() {
            let Some(tid) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let mut known = match self.seen.remove(&tid) {
                Some(known) => known,
                None => internal(&entry.path()),
            };
            if let Some(thread) = &mut known
                && let Some(ns) = cpu_ns(&entry.path())
            {
                let more = ns.saturating_sub(thread.ns);
                thread.ns = ns;
                thread.rest += more;
                if more > 0 {
                    used.push(ThreadUsage {
                        tid,
                        thread: thread.name.clone(),
                        work: thread.work,
                        ns: more,
                        samples: thread.rest / period_ns,
                    });
                    thread.rest %= period_ns;
                }
            }
            alive.insert(tid, known);
        }
        self.seen = alive;
        used
    }
}

/// The thread, if it is one of the JVM's own.
fn internal(task: &Path) -> Option<Thread> {
    let name = fs::read_to_string(task.join("comm")).ok()?;
    let name = name.trim_end();
    let (_, work) = NAMES.iter().find(|(prefix, _)| name.starts_with(prefix))?;
    Some(Thread {
        // With its number, each thread would have a row.
        name: name.split('#').next().unwrap_or(name).to_owned(),
        work,
        ns: 0,
        rest: 0,
    })
}

/// Time on a CPU, the first number of `schedstat`.
fn cpu_ns(task: &Path) -> Option<u64> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(dir: &Path, tid: u32, name: &str, ns: u64) {
        let task = dir.join(tid.to_string());
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("comm"), format!("{name}\n")).unwrap();
        fs::write(task.join("schedstat"), format!("{ns} 17 3\n")).unwrap();
    }

    #[test]
    fn only_the_jvms_own_threads_count_and_samples_add_up() {
        let dir = tempfile::tempdir().unwrap();
        thread(dir.path(), 1, "java", 1_000_000_000);
        thread(dir.path(), 2, "GC Thread#3", 7_000_000);
        thread(dir.path(), 3, "C2 CompilerThre", 12_000_000);
        thread(dir.path(), 4, "Zookeeper", 12_000_000);
        let mut threads = InternalThreads::default();
        let mut first = threads.look(dir.path(), 5_000_000);
        first.sort_by_key(|used| used.tid);
        assert_eq!(first.len(), 2);
        assert_eq!((first[0].thread.as_str(), first[0].work), ("GC Thread", GC));
        assert_eq!((first[0].ns, first[0].samples), (7_000_000, 1));
        assert_eq!((first[1].work, first[1].samples), (JIT, 2));
        assert!(threads.look(dir.path(), 5_000_000).is_empty());
        thread(dir.path(), 2, "GC Thread#3", 10_000_000);
        let second = threads.look(dir.path(), 5_000_000);
        assert_eq!((second[0].ns, second[0].samples), (3_000_000, 1));
    }
}
