//! What processes inherit of their children that have ended: the kernel adds the CPU time and the bytes of a child to those
//! of the process that waits for it.

use std::collections::HashMap;

use super::home::Home;
use super::{Scan, Seen, shown_command};

/// Ancestors that are followed from an ended process.
const MOST_ANCESTORS: usize = 64;

/// The name and the home of a process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Child {
    pub(super) command: String,
    pub(super) home: Option<Home>,
}

impl Child {
    pub(super) fn from_seen(seen: &Seen) -> Self {
        Self {
            command: shown_command(&seen.stat),
            home: seen.home.clone(),
        }
    }
}

/// What had been counted of ended processes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Ended {
    pub(super) ticks: u64,
    pub(super) bytes: [u64; 2],
    /// The one that had used the most CPU time.
    pub(super) child: Option<Child>,
    /// Its CPU time, and its process id.
    most_active: (u64, u32),
}

/// A child of each process that may inherit something: one that has ended, or else one that lives, or else the one of before.
pub(super) fn children(
    last: &Scan,
    now: &Scan,
    ended: &HashMap<u32, Ended>,
) -> HashMap<u32, Child> {
    let mut children = HashMap::new();
    for (pid, seen) in &now.processes {
        let before = last.before(*pid, seen);
        let waited = before.map_or(0, |before| before.stat.waited_ticks);
        let known = || before?.child.clone();
        let child = if !ended.contains_key(pid) && seen.stat.waited_ticks == waited {
            known()
        } else {
            // One with the name of its parent may be about to become another program.
            let own = shown_command(&seen.stat);
            let is_other = |child: &Child| child.command != own;
            let ended = ended.get(pid).and_then(|ended| ended.child.clone());
            let living = || {
                let living = now.processes.values().filter(|of| of.stat.parent == *pid);
                let named = living.map(|of| (of.stat.ticks, Child::from_seen(of)));
                let others = named.filter(|(_, child)| is_other(child));
                others
                    .max_by_key(|(ticks, _)| *ticks)
                    .map(|(_, child)| child)
            };
            ended.filter(is_other).or_else(living).or_else(known)
        };
        children.extend(child.map(|child| (*pid, child)));
    }
    children
}

/// What had been counted of processes that have ended, by the nearest ancestor that has not. What that one has used
/// contains that of the descendants that it or they have waited for once more.
pub(super) fn ended_children(last: &Scan, now: &Scan) -> HashMap<u32, Ended> {
    let has_ended = |pid: u32, seen: &Seen| now.before(pid, seen).is_none();
    let mut ended: HashMap<u32, Ended> = HashMap::new();
    for (pid, seen) in &last.processes {
        if !has_ended(*pid, seen) {
            continue;
        }
        let mut heir = seen.stat.parent;
        // No chain is longer, unless readings at different times made it a loop.
        for _ in 0..MOST_ANCESTORS {
            match last.processes.get(&heir) {
                Some(parent) if has_ended(heir, parent) => heir = parent.stat.parent,
                _ => break,
            }
        }
        let counted = seen.stat.ticks.saturating_add(seen.stat.waited_ticks);
        let sum = ended.entry(heir).or_default();
        let activity = (counted, *pid);
        if sum.child.is_none() || activity > sum.most_active {
            sum.most_active = activity;
            sum.child = Some(Child::from_seen(seen));
        }
        sum.ticks = sum.ticks.saturating_add(counted);
        for (sum, bytes) in sum.bytes.iter_mut().zip(seen.bytes.unwrap_or_default()) {
            *sum = sum.saturating_add(bytes);
        }
    }
    ended
}
