//! The agent's options: `key=value,key=value`.

use std::path::PathBuf;

use unfuse_profiler::{Config, SampleSource, Threads};

/// What the option string said.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Settings of the profiler.
    pub config: Config,
    /// Whether executors that the driver starts get the agent too.
    pub executors: bool,
    /// The name of the recorder that has loaded the agent into a running JVM.
    pub attach: Option<String>,
    /// Whether such a JVM may keep the code it has compiled, whose lines are not described.
    pub keep_code: bool,
    /// What was not understood; the rest holds.
    pub complaints: Vec<String>,
}

const KNOWN: &str = "dir, spools, rate, threads, source, map, executors";

impl Options {
    /// Parses an option string. Never fails: what is wrong is left at its default and reported.
    pub fn parse(text: &str) -> Self {
        let mut options = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            if let Err(complaint) = options.set(part) {
                options.complaints.push(complaint);
            }
        }
        options
    }

    fn set(&mut self, part: &str) -> Result<(), String> {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let wrong = |expected: &str| format!("option {key}={value}: {expected}; using the default");
        match key {
            "dir" if is_uri(value) => self.config.uri = Some(value.to_owned()),
            "dir" if !value.is_empty() => self.config.dir = PathBuf::from(value),
            "spools" if !value.is_empty() => self.config.spools = Some(PathBuf::from(value)),
            "dir" | "spools" => return Err(wrong("a directory is expected")),
            "rate" => {
                let rate = value.parse().ok().filter(|rate| *rate <= 10_000);
                self.config.rate_hz =
                    rate.ok_or_else(|| wrong("a number from 0 to 10000 is expected"))?;
            }
            "threads" => {
                self.config.threads = match value {
                    "auto" => Threads::Auto,
                    "all" => Threads::All,
                    "task" => Threads::Task,
                    _ => return Err(wrong("auto, all or task is expected")),
                }
            }
            "source" => {
                self.config.source = match value {
                    "auto" => SampleSource::Auto,
                    "perf" => SampleSource::Perf,
                    "timer" => SampleSource::Timer,
                    _ => return Err(wrong("auto, perf or timer is expected")),
                }
            }
            "map" => {
                let mib = value.parse().ok().filter(|mib| (4..=16_384).contains(mib));
                self.config.map_mib =
                    mib.ok_or_else(|| wrong("MiB from 4 to 16384 are expected"))?;
            }
            "executors" => {
                self.executors = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong("on or off is expected")),
                }
            }
            // Not for users: `unfuse record` says these.
            "attach" => self.attach = Some(value.to_owned()),
            "keep-code" => self.keep_code = value == "on",
            _ => {
                return Err(format!(
                    "unknown option {key:?} ignored; there are: {KNOWN}"
                ));
            }
        }
        Ok(())
    }

    /// Ns of CPU time between two samples of a thread, 0 where none are taken.
    pub fn period_ns(&self) -> u64 {
        1_000_000_000u64
            .checked_div(u64::from(self.config.rate_hz))
            .unwrap_or(0)
    }
}

/// Whether a directory is named by a URI (`hdfs://…`, `s3a://…`, `file:/…`), which Hadoop understands.
fn is_uri(dir: &str) -> bool {
    dir.split_once(":/").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn options_are_read() {
        let options =
            Options::parse("dir=/tmp/p,rate=20,threads=task,source=timer,map=64,executors=on");
        assert_eq!(options.config.dir, PathBuf::from("/tmp/p"));
        assert_eq!(options.config.rate_hz, 20);
        assert_eq!(options.config.threads, Threads::Task);
        assert_eq!(options.config.source, SampleSource::Timer);
        assert_eq!(options.config.map_mib, 64);
        assert!(options.executors && options.complaints.is_empty());
        assert_eq!(options.period_ns(), 50_000_000);
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
