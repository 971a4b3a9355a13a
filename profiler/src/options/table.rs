//! Every option of the agent: name, values, meaning and setter.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use unfuse_format::{Retention, is_uri, units};

use super::{KeptRecords, Options, Regions, Tab};
use crate::config::{PythonDetail, SourceChoice, Threads};
use crate::share::TaskShare;

/// An option of the agent.
pub struct AgentOption {
    /// Its name, before the `=`.
    pub name: &'static str,
    /// Its values, for documentation.
    pub values: &'static str,
    /// Its default, for documentation.
    pub default: &'static str,
    /// Its meaning, in a sentence or two.
    pub meaning: &'static str,
    /// What applies if the value is invalid, for the message.
    pub(super) otherwise: &'static str,
    /// Sets it, or returns what is expected.
    pub(super) set: fn(&mut Options, &str) -> Result<(), String>,
}

const DEFAULT: &str = "using the default";
const NOTHING_DELETED: &str = "nothing is deleted for it";

/// The options, in the order of their documentation.
pub const OPTIONS: &[AgentOption] = &[
    AgentOption {
        name: "dir",
        values: "a directory, or a URI such as `hdfs://…` or `s3a://…`",
        default: "`unfuse-profile`",
        meaning: "Where to write the profile. With a URI, files go to a local spool first, and Spark's plugin copies them.",
        otherwise: DEFAULT,
        set: |options, value| {
            let dir = expect(value, |value| !value.is_empty(), "a directory")?;
            if is_uri(dir) {
                options.config.uri = Some(dir.to_owned());
            } else {
                options.config.dir = PathBuf::from(dir);
            }
            Ok(())
        },
    },
    AgentOption {
        name: "spools",
        values: "a directory",
        default: "the directory for temporary files",
        meaning: "Where to make the spools of profiles with a URI.",
        otherwise: DEFAULT,
        set: |options, value| {
            let dir = expect(value, |value| !value.is_empty(), "a directory")?;
            options.config.spools = Some(PathBuf::from(dir));
            Ok(())
        },
    },
    AgentOption {
        name: "rate",
        values: "0 to 10000",
        default: "200",
        meaning: "Samples for each second of a thread's CPU time. 0 takes no samples and records only plans, stages and tasks.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.config.rate_hz = number(value, 0..=10_000, "a number from 0 to 10000")?;
            Ok(())
        },
    },
    AgentOption {
        name: "waits",
        values: "`on`, `off`",
        default: "`on`",
        meaning: "Whether to record how long threads wait (perf_event only).",
        otherwise: DEFAULT,
        set: |options, value| {
            options.config.waits = switch(value)?;
            Ok(())
        },
    },
    AgentOption {
        name: "threads",
        values: "`auto`, `all`, `task`",
        default: "`auto`",
        meaning: "Which threads to sample: `all` Java threads, or `task`: those that run Spark tasks. `auto` samples all threads until the JVM runs its first Spark task, then those that run tasks.",
        otherwise: DEFAULT,
        set: |options, value| {
            let choices = [
                ("auto", Threads::Auto),
                ("all", Threads::All),
                ("task", Threads::Task),
            ];
            options.config.threads = choose(value, &choices)?;
            Ok(())
        },
    },
    AgentOption {
        name: "tasks",
        values: "a fraction such as `1/10` or `0.1`",
        default: "`1`",
        meaning: "The share of Spark's tasks to sample, drawn at random. Their samples also count for the other tasks.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.config.tasks = TaskShare::parse(value)?;
            Ok(())
        },
    },
    AgentOption {
        name: "keep",
        values: "a size such as `2GB`",
        default: "no limit",
        meaning: "Maximum size of the profile directory; the oldest samples are deleted first. Local directories only.",
        otherwise: NOTHING_DELETED,
        set: |options, value| {
            options.config.retention.bytes = Some(Retention::size_limit(value)?);
            Ok(())
        },
    },
    AgentOption {
        name: "keep_for",
        values: "a duration such as `12h` or `7d`",
        default: "no limit",
        meaning: "Maximum age of samples; older ones are deleted. Local directories only.",
        otherwise: NOTHING_DELETED,
        set: |options, value| {
            options.config.retention.age = Some(Retention::age_limit(value)?);
            Ok(())
        },
    },
    AgentOption {
        name: "source",
        values: "`auto`, `perf`, `timer`",
        default: "`auto`",
        meaning: "How to take samples: by perf_event (`perf`), by a CPU timer of each thread (`timer`), or `auto`: by perf_event if the kernel allows it.",
        otherwise: DEFAULT,
        set: |options, value| {
            let choices = [
                ("auto", SourceChoice::Auto),
                ("perf", SourceChoice::Perf),
                ("timer", SourceChoice::Timer),
            ];
            options.config.source = choose(value, &choices)?;
            Ok(())
        },
    },
    AgentOption {
        name: "regions",
        values: "`plain`, `exact`",
        default: "`plain`",
        meaning: "`exact` separates the operators of fused code where the compiler would merge their expressions \
                  (docs/accuracy.md, JDK 17 and later).",
        otherwise: DEFAULT,
        set: |options, value| {
            options.regions = choose(
                value,
                &[("plain", Regions::Plain), ("exact", Regions::Exact)],
            )?;
            Ok(())
        },
    },
    AgentOption {
        name: "python",
        values: "`lines`, `total`, `off`",
        default: "`lines`",
        meaning: "What to record of the Python processes that work for tasks: `lines` samples their functions and lines, `total` \
                  only sums their CPU time (docs/python.md).",
        otherwise: DEFAULT,
        set: |options, value| {
            let choices = [
                ("lines", PythonDetail::Lines),
                ("total", PythonDetail::Total),
                ("off", PythonDetail::Off),
            ];
            options.config.python = choose(value, &choices)?;
            Ok(())
        },
    },
    AgentOption {
        name: "records",
        values: "`off`, `on`, `redacted`",
        default: "`off`",
        meaning: "Follows each record through the tasks; `unfuse run --records` sets it. `redacted` keeps no contents.",
        otherwise: DEFAULT,
        set: |options, value| {
            let choices = [
                ("off", None),
                ("on", Some(KeptRecords::Content)),
                ("redacted", Some(KeptRecords::Redacted)),
            ];
            options.records = choose(value, &choices)?;
            Ok(())
        },
    },
    AgentOption {
        name: "executors",
        values: "`on`, `off`",
        default: "`off`; `on` by `unfuse run`",
        meaning: "Whether the executors that this driver starts get the agent too.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.executors = switch(value)?;
            Ok(())
        },
    },
    AgentOption {
        name: "spark",
        values: "`on`, `off`",
        default: "`on`",
        meaning: "`off` changes no class of Spark: the profile has Java methods, but no operators and no tasks.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.without_spark = !switch(value)?;
            Ok(())
        },
    },
    AgentOption {
        name: "ui",
        values: "`on`, `off`, `only`",
        default: "`on`",
        meaning: "The tab *Operators* in Spark's web UI. `only` shows the tab of a History Server and profiles nothing.",
        otherwise: DEFAULT,
        set: |options, value| {
            let choices = [("on", Tab::On), ("off", Tab::Off), ("only", Tab::Only)];
            options.tab = choose(value, &choices)?;
            Ok(())
        },
    },
    AgentOption {
        name: "contention",
        values: "a duration from `1s` to `10m`, or `off`",
        default: "`off`",
        meaning: "How often the driver computes what others cost its running queries, for Spark's metrics and listeners \
                  (docs/spark-metrics.md). It runs `unfuse blame` for it.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.contention = interval(
                value,
                CONTENTION,
                "a duration such as 10s, from 1s to 10m, or off is expected",
            )?;
            Ok(())
        },
    },
    AgentOption {
        name: "heartbeat",
        values: "a duration from `100ms` to `10m`, or `off`",
        default: "`2s`",
        meaning: "How often to record the use of resources by tasks and the host, for `unfuse blame`.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.config.heartbeat = interval(
                value,
                HEARTBEATS,
                "a duration such as 2s or 500ms, from 100ms to 10m, or off is expected",
            )?;
            Ok(())
        },
    },
    AgentOption {
        name: "switches",
        values: "`on`, `off`",
        default: "`off`",
        meaning: "Whether to record which threads of the host run while tasks wait for a CPU, with which `unfuse blame` counts \
                  instead of estimating. Needs root or CAP_PERFMON, and heartbeats.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.config.switches = switch(value)?;
            Ok(())
        },
    },
    AgentOption {
        name: "map",
        values: "4 to 16384",
        default: "256",
        meaning: "Virtual size of the table of compiled code, MiB.",
        otherwise: DEFAULT,
        set: |options, value| {
            options.config.map_mib = number(value, 4..=16_384, "a number of MiB from 4 to 16384")?;
            Ok(())
        },
    },
];

/// Options that `unfuse record`, the Spark plugin and `unfuse-bench` pass; not for users.
pub(super) const INTERNAL: &[AgentOption] = &[
    internal("attach", |options, value| {
        options.attach = Some(value.to_owned());
        Ok(())
    }),
    internal("spool", |options, value| {
        options.spool = Some(PathBuf::from(value));
        Ok(())
    }),
    internal("plugin", |options, value| {
        options.plugin = switch(value)?;
        Ok(())
    }),
    internal("instructions", |options, value| {
        options.config.instructions = switch(value)?;
        Ok(())
    }),
    internal("keep-code", |options, value| {
        options.keep_code = switch(value)?;
        Ok(())
    }),
];

/// An option without documentation.
const fn internal(
    name: &'static str,
    set: fn(&mut Options, &str) -> Result<(), String>,
) -> AgentOption {
    AgentOption {
        name,
        values: "",
        default: "",
        meaning: "",
        otherwise: "",
        set,
    }
}

/// The value, if it is valid.
fn expect<'a>(
    value: &'a str,
    is_good: impl Fn(&str) -> bool,
    expected: &str,
) -> Result<&'a str, String> {
    match is_good(value) {
        true => Ok(value),
        false => Err(format!("{expected} is expected")),
    }
}

/// One of several words.
fn choose<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let chosen = choices.iter().find(|(word, _)| *word == value);
    chosen.map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        match words.split_last() {
            Some((last, rest)) => format!("{} or {last} is expected", rest.join(", ")),
            None => String::new(),
        }
    })
}

fn switch(value: &str) -> Result<bool, String> {
    choose(value, &[("on", true), ("off", false)])
}

fn number(value: &str, range: RangeInclusive<u32>, expected: &str) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("{expected} is expected"))
}

/// Allowed intervals of heartbeats.
const HEARTBEATS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(600);

/// Allowed intervals of answers about contention.
const CONTENTION: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

/// An interval; `None` for `off`.
fn interval(
    text: &str,
    allowed: RangeInclusive<Duration>,
    expected: &str,
) -> Result<Option<Duration>, String> {
    if text == "off" {
        return Ok(None);
    }
    units::parse_duration(text)
        .ok()
        .filter(|duration| allowed.contains(duration))
        .map(Some)
        .ok_or_else(|| expected.to_owned())
}
