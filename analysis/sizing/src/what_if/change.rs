//! What could be different.

use std::fmt;
use std::str::FromStr;

/// Most slots or executors of a question.
const MOST_SLOTS: usize = 1_000_000;

/// One difference to the recorded run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// So many slots.
    Slots(usize),
    /// So many executors, with as many slots each as recorded.
    Executors(usize),
    /// A slot for each task.
    EndlessSlots,
    /// Each task takes the mean time of its stage.
    NoSkew,
    /// No garbage collection.
    NoGc,
    /// No waits for disks.
    EndlessDisk,
    /// No waits for shuffle blocks and the network.
    EndlessNetwork,
    /// No waits for a CPU.
    NoCpuWait,
    /// Python workers are so many times as fast.
    Python(f64),
    /// A plan node is so many times as fast.
    Operator {
        /// Its number in the plan.
        node: i32,
        /// How many times as fast; infinite for no time at all.
        times: f64,
    },
    /// A query did not run at the same time.
    WithoutQuery(i64),
    /// A scan reads cached rows instead of files: the meaning of `cache=TABLE` for each scan of the table.
    CachedScan {
        /// Its number in the plan.
        node: i32,
        /// The share of its CPU time that reading the cached rows takes.
        remaining: f64,
    },
}

/// The changes, for messages.
const KNOWN: &str = "slots=N, executors=N, cores=inf, skew=0, gc=0, disk=inf, network=inf, cpu-wait=0, python=5x, \
     operator:NODE=2x, cache=TABLE and without-query=N";

impl Change {
    /// Whether it says how many slots there are.
    pub fn is_about_slots(&self) -> bool {
        matches!(
            self,
            Self::Slots(_) | Self::Executors(_) | Self::EndlessSlots
        )
    }

    /// Whether both cannot hold at once: they say the same thing of the same subject.
    pub fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Operator { node, .. } | Self::CachedScan { node, .. },
                Self::Operator { node: other, .. } | Self::CachedScan { node: other, .. },
            ) => node == other,
            (Self::WithoutQuery(query), Self::WithoutQuery(other)) => query == other,
            _ => {
                let same = std::mem::discriminant(self) == std::mem::discriminant(other);
                same || (self.is_about_slots() && other.is_about_slots())
            }
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shown: String = text.chars().take(60).collect();
        let unknown = || format!("{shown:?} is no change; the changes are {KNOWN}");
        let (what, value) = text.split_once('=').ok_or_else(unknown)?;
        let only = |expected: &str, change: Self| {
            if value == expected {
                return Ok(change);
            }
            Err(format!("{shown:?}: {what} can only be {expected}"))
        };
        if let Some(node) = what.strip_prefix("operator:") {
            let node = node.parse().map_err(|_| {
                format!("{shown:?}: an operator is the number of a node in the plan, as in operator:11=2x")
            })?;
            let times = times(value, &shown)?;
            return Ok(Self::Operator { node, times });
        }
        match what {
            "slots" => count(value, &shown).map(Self::Slots),
            "executors" => count(value, &shown).map(Self::Executors),
            "cores" => only("inf", Self::EndlessSlots),
            "skew" => only("0", Self::NoSkew),
            "gc" => only("0", Self::NoGc),
            "disk" => only("inf", Self::EndlessDisk),
            "network" => only("inf", Self::EndlessNetwork),
            "cpu-wait" => only("0", Self::NoCpuWait),
            "python" => times(value, &shown).map(Self::Python),
            "without-query" => value.parse().map(Self::WithoutQuery).map_err(|_| {
                format!(
                    "{shown:?}: a query is the id of a Spark SQL execution, as in without-query=7"
                )
            }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = |times: f64| {
            if times.is_infinite() {
                return "inf".to_owned();
            }
            format!("{times}x")
        };
        match self {
            Self::Slots(slots) => write!(out, "slots={slots}"),
            Self::Executors(executors) => write!(out, "executors={executors}"),
            Self::EndlessSlots => out.write_str("cores=inf"),
            Self::NoSkew => out.write_str("skew=0"),
            Self::NoGc => out.write_str("gc=0"),
            Self::EndlessDisk => out.write_str("disk=inf"),
            Self::EndlessNetwork => out.write_str("network=inf"),
            Self::NoCpuWait => out.write_str("cpu-wait=0"),
            Self::Python(factor) => write!(out, "python={}", times(*factor)),
            Self::Operator {
                node,
                times: factor,
            } => {
                write!(out, "operator:{node}={}", times(*factor))
            }
            Self::WithoutQuery(query) => write!(out, "without-query={query}"),
            Self::CachedScan { node, .. } => write!(out, "cached rows in node {node}"),
        }
    }
}

fn count(value: &str, shown: &str) -> Result<usize, String> {
    let count = value.parse().ok();
    count
        .filter(|count| (1..=MOST_SLOTS).contains(count))
        .ok_or_else(|| format!("{shown:?}: the number must be 1 to {MOST_SLOTS}"))
}

/// `2x`, `1.5x` or `inf`.
fn times(value: &str, shown: &str) -> Result<f64, String> {
    if value == "inf" {
        return Ok(f64::INFINITY);
    }
    let times = value
        .strip_suffix('x')
        .and_then(|times| times.parse::<f64>().ok());
    times
        .filter(|times| times.is_finite() && *times >= 1.0)
        .ok_or_else(|| {
            format!("{shown:?}: say how many times as fast it becomes, 1 or more, as in 2x or 1.5x, or inf")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_written() {
        for text in [
            "slots=4",
            "executors=20",
            "cores=inf",
            "skew=0",
            "gc=0",
            "disk=inf",
            "network=inf",
            "cpu-wait=0",
            "python=5x",
            "operator:11=2x",
            "operator:11=1.5x",
            "operator:0=inf",
            "without-query=7",
        ] {
            let change: Change = text.parse().expect(text);
            assert_eq!(change.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_change_is_refused_with_its_text() {
        for text in [
            "",
            "slots",
            "slots=0",
            "slots=-1",
            "slots=1e9",
            "slots=two",
            "executors=99999999999999999999",
            "cores=4",
            "skew=1",
            "gc=inf",
            "disk=0",
            "python=0x",
            "python=5",
            "python=NaNx",
            "operator:x=2x",
            "operator:11=0.5x",
            "operator:11",
            "operator=2x",
            "without-query=q",
            "cache=lineitem",
            "memory=2x",
            "=",
        ] {
            let error = text.parse::<Change>().expect_err(text);
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
        let long = "x".repeat(10_000).parse::<Change>().expect_err("no change");
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn two_numbers_of_slots_exclude_each_other() {
        let excludes = |a: &str, b: &str| {
            let [a, b]: [Change; 2] = [a, b].map(|text| text.parse().expect(text));
            a.excludes(&b)
        };
        assert!(excludes("slots=4", "executors=2"));
        assert!(excludes("slots=4", "cores=inf"));
        assert!(excludes("gc=0", "gc=0"));
        assert!(excludes("operator:1=2x", "operator:1=3x"));
        assert!(!excludes("operator:1=2x", "operator:2=2x"));
        assert!(!excludes("gc=0", "disk=inf"));
        assert!(!excludes("without-query=1", "without-query=2"));
    }
}
