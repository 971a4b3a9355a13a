//! The agent's options, `key=value,key=value`: their values ([`Options`]), and their list ([`OPTIONS`]).

mod plugin;
mod table;

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use unfuse_format::Retention;

use crate::config::Config;
use table::INTERNAL;

pub use plugin::{PLUGIN_LIMITS, PluginLimit};
pub use table::{AgentOption, OPTIONS};

/// The parsed options.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Settings of the profiler.
    pub config: Config,
    /// Whether executors that the driver starts get the agent.
    pub executors: bool,
    /// Whether Spark stays unpatched, without operators and tasks.
    pub without_spark: bool,
    /// Whether Spark's web pages get a tab with the profile.
    pub tab: Tab,
    /// The invitation of the recorder that loaded the agent into a running JVM.
    pub attach: Option<String>,
    /// The spool that this recorder has made for a profile with a URI.
    pub spool: Option<PathBuf>,
    /// Whether Spark's plugin has loaded the agent, which stays until the JVM ends.
    pub plugin: bool,
    /// Whether such a JVM keeps its compiled code, which has no lines.
    pub keep_code: bool,
    /// Whether records are traced through tasks.
    pub records: Option<KeptRecords>,
    /// How exactly compiled code separates operators.
    pub regions: Regions,
    /// Time between two answers about contention for Spark's metrics; none without them.
    pub contention: Option<Duration>,
    /// Errors; the other options are valid.
    pub complaints: Vec<String>,
}

/// What is kept of traced records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptRecords {
    /// Times and places, and the begin of the content of the slowest ones.
    Content,
    /// Times and places only.
    Redacted,
}

/// How compiled code separates operators.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Regions {
    /// Each number that an operator computes is an expression of its own and cannot become a part of the next
    /// operator's.
    Exact,
    /// Generated classes are loaded as Spark compiled them.
    #[default]
    Plain,
}

/// The tab in Spark's web pages.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    /// Shown in a profiled JVM.
    #[default]
    On,
    /// Not shown.
    Off,
    /// Shown in a JVM that is not profiled.
    Only,
}

impl Options {
    /// Parses an option string. Never fails: an invalid option keeps its default and is reported.
    pub fn parse(text: &str) -> Self {
        let mut options = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            if let Err(complaint) = options.set(part) {
                options.complaints.push(complaint);
            }
        }
        if options.config.uri.is_some() && options.config.retention.is_limited() {
            options.config.retention = Retention::default();
            options.complaints.push(
                "options keep and keep_for hold for local directories only; nothing is deleted for them"
                    .to_owned(),
            );
        }
        options
    }

    /// Parses the options of an agent that Spark's plugin loads into its running JVM. Some values need an agent that is
    /// loaded when the JVM starts, see [`PLUGIN_LIMITS`].
    pub fn parse_for_plugin(text: &str) -> Self {
        let mut options = Self::parse(text);
        options.plugin = true;
        // The JVM has compiled no generated code of Spark yet.
        options.keep_code = true;
        for limit in PLUGIN_LIMITS {
            if (limit.replace)(&mut options) {
                let PluginLimit { value, instead, .. } = limit;
                options
                    .complaints
                    .push(format!("option {value} needs -agentpath; {instead}"));
            }
        }
        options
    }

    fn set(&mut self, part: &str) -> Result<(), String> {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let mut all = OPTIONS.iter().chain(INTERNAL);
        let Some(option) = all.find(|option| option.name == key) else {
            let names: Vec<_> = OPTIONS.iter().map(|option| option.name).collect();
            return Err(format!(
                "unknown option {key:?} ignored; there are: {}",
                names.join(", ")
            ));
        };
        (option.set)(self, value)
            .map_err(|expected| format!("option {key}={value}: {expected}; {}", option.otherwise))
    }

    /// CPU time between two samples of a thread, ns; 0 without samples.
    pub fn period_ns(&self) -> u64 {
        1_000_000_000u64
            .checked_div(u64::from(self.config.rate_hz))
            .unwrap_or(0)
    }
}

/// The options as a Markdown table: a part of docs/options.md.
pub fn describe_options() -> String {
    let mut text = "| option | values | default | what it does |\n|---|---|---|---|\n".to_owned();
    for option in OPTIONS {
        let AgentOption {
            name,
            values,
            default,
            meaning,
            ..
        } = option;
        let _ = writeln!(text, "| `{name}` | {values} | {default} | {meaning} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{SourceChoice, Threads};
    use crate::share::TaskShare;

    #[test]
    fn options_are_read() {
        let options = Options::parse(
            "dir=/tmp/p,rate=20,threads=task,source=timer,map=64,executors=on,spark=off,ui=only,waits=off",
        );
        assert_eq!(options.config.dir, PathBuf::from("/tmp/p"));
        assert_eq!(options.config.rate_hz, 20);
        assert_eq!(options.config.threads, Threads::Task);
        assert_eq!(options.config.source, SourceChoice::Timer);
        assert_eq!(options.config.map_mib, 64);
        assert!(options.executors && options.without_spark && options.complaints.is_empty());
        assert_eq!(options.tab, Tab::Only);
        assert!(!options.config.waits && Options::parse("").config.waits);
        assert_eq!(options.period_ns(), 50_000_000);
        assert_eq!(options.regions, Regions::Plain);
        assert_eq!(Options::parse("regions=exact").regions, Regions::Exact);
    }

    #[test]
    fn what_is_wrong_is_said_and_the_rest_holds() {
        let options = Options::parse("colour=red,rate=fast,dir=/tmp/p");
        assert_eq!(options.config.rate_hz, 200);
        assert_eq!(options.config.dir, PathBuf::from("/tmp/p"));
        assert_eq!(options.complaints.len(), 2);
        assert!(options.complaints[0].contains("colour") && options.complaints[0].contains("rate"));
        assert!(options.complaints[1].contains("rate=fast"));
    }

    #[test]
    fn limits_are_read_and_wrong_ones_delete_nothing() {
        let options = Options::parse("keep=2GB,keep_for=7d");
        assert_eq!(options.config.retention.bytes, Some(2 << 30));
        assert_eq!(
            options.config.retention.age,
            Some(std::time::Duration::from_secs(7 * 86_400))
        );
        assert_eq!(
            Ok(Options::parse("tasks=1/8").config.tasks),
            TaskShare::parse("0.125")
        );
        assert!(Options::parse("tasks=3").complaints[0].contains("a fraction such as 1/10"));
        let options = Options::parse("keep=2,keep_for=soon");
        assert_eq!(options.config.retention, Retention::default());
        assert!(options.complaints[0].contains("keep=2: a size of at least 64KB"));
        assert!(options.complaints[1].contains("keep_for=soon: a duration such as 30s"));
    }

    #[test]
    fn heartbeats_have_limits() {
        let of = |text: &str| Options::parse(text).config.heartbeat;
        assert_eq!(of(""), Some(Duration::from_secs(2)));
        assert_eq!(of("heartbeat=500ms"), Some(Duration::from_millis(500)));
        assert_eq!(of("heartbeat=1m"), Some(Duration::from_secs(60)));
        assert_eq!(of("heartbeat=off"), None);
        for wrong in [
            "heartbeat=1ms",
            "heartbeat=0",
            "heartbeat=s",
            "heartbeat=",
            "heartbeat=99h",
        ] {
            assert_eq!(of(wrong), Some(Duration::from_secs(2)));
            assert!(Options::parse(wrong).complaints[0].contains("such as 2s"));
        }
    }

    #[test]
    fn contention_is_off_unless_asked_for() {
        let of = |text: &str| Options::parse(text).contention;
        assert_eq!(of(""), None);
        assert_eq!(of("contention=off"), None);
        assert_eq!(of("contention=10s"), Some(Duration::from_secs(10)));
        let wrong = Options::parse("contention=500ms");
        assert_eq!(wrong.contention, None);
        assert!(wrong.complaints[0].contains("from 1s to 10m"));
    }

    #[test]
    fn the_plugin_replaces_what_it_cannot_do() {
        let asked = "regions=exact,ui=only,rate=50";
        let options = Options::parse_for_plugin(asked);
        let expected = Options {
            plugin: true,
            keep_code: true,
            complaints: options.complaints.clone(),
            ..Options::parse("rate=50")
        };
        assert_eq!(options, expected);
        assert_eq!(options.complaints.len(), PLUGIN_LIMITS.len());
        for (limit, complaint) in PLUGIN_LIMITS.iter().zip(&options.complaints) {
            assert!(asked.contains(limit.value), "{}", limit.value);
            assert!(complaint.contains(limit.value), "{complaint}");
        }
        let usual = Options::parse_for_plugin("regions=plain,source=perf,ui=off");
        assert_eq!(usual.complaints, Vec::<String>::new());
    }

    #[test]
    fn a_uri_is_no_local_path() {
        for uri in [
            "hdfs://nn:8020/p",
            "s3a://bucket/p",
            "file:/tmp/p",
            "file:///tmp/p",
        ] {
            let options = Options::parse(&format!("dir={uri},spools=/scratch"));
            assert_eq!(options.config.uri.as_deref(), Some(uri));
            assert_eq!(options.config.spools, Some(PathBuf::from("/scratch")));
        }
        let options = Options::parse("keep=2GB,dir=hdfs://nn:8020/p");
        assert_eq!(options.config.retention, Retention::default());
        assert!(options.complaints[0].contains("local directories only"));
        for path in ["/tmp/p", "p", "./odd:/p", "/a:/b"] {
            assert_eq!(Options::parse(&format!("dir={path}")).config.uri, None);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = Options::parse(&text).period_ns();
        }
    }
}
