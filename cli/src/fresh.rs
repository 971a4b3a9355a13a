//! A new profile: where it is, and which commands show it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unfuse_format::{LiveMarker, ProcessRow, ProfileDir, SampleRow, Table, units};
use unfuse_machine as machine;
use unfuse_postprocess::{Profile, completeness};
use unfuse_report::{Report, verdict};

/// How long to wait for the writers after the end of the command or the recording.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest recording.
const LEAST: Duration = Duration::from_millis(1);
/// The longest recording.
const MOST: Duration = Duration::from_secs(7 * 86_400);

/// Largest size of the samples, bytes, at which a new profile is
/// read at once. For a larger one `unfuse top` prints the verdict.
const LARGEST: u64 = 256 << 20;

/// The profile directory without `-o`: a new name in the current directory.
pub fn default_out() -> PathBuf {
    let now = machine::local_time("%Y%m%d-%H%M%S");
    let name = format!("unfuse-{now}");
    // Two runs in one second get two directories.
    (1..)
        .map(|n| {
            if n == 1 {
                name.clone()
            } else {
                format!("{name}-{n}")
            }
        })
        .map(PathBuf::from)
        .find(|path| !path.exists())
        .unwrap_or_else(|| PathBuf::from(name))
}

/// Prints where the profile is and which commands show it.
pub fn tell(dir: &ProfileDir, out: &Path) {
    let out = out.display();
    let processes = dir
        .read::<ProcessRow>()
        .map(|read| read.rows)
        .unwrap_or_default();
    let failures = LiveMarker::failures(dir);
    if processes.is_empty() && !failures.is_empty() {
        // The agent has printed why.
        return;
    }
    if processes.is_empty() {
        crate::say!(
            "unfuse: no JVM was profiled. The command must be java, or start Spark with spark-submit, as pyspark, spark-sql \
             and python with PySpark do; `unfuse doctor` checks this machine"
        );
        return;
    }
    let has_spark = processes.iter().any(|process| !process.app.is_empty());
    let next = if has_spark {
        format!("unfuse top {out}   |   unfuse flame {out} -o flame.svg   |   unfuse source {out}")
    } else {
        format!("unfuse top {out}   |   unfuse flame {out} --level full -o flame.svg")
    };
    for failure in failures {
        crate::say!("unfuse: the profile in {out} is not complete: {failure}");
    }
    let hint = if std::io::stderr().is_terminal() {
        "\nunfuse: next: "
    } else {
        "; next: "
    };
    if has_spark {
        tell_verdict(dir);
    }
    crate::say!("unfuse: profile in {out}{hint}{next}");
}

/// Prints where the time went, if the profile can be read and has samples.
fn tell_verdict(dir: &ProfileDir) {
    let samples = std::fs::read_dir(dir.path().join(SampleRow::NAME));
    let files = samples.into_iter().flatten().flatten();
    let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    if bytes.fold(0, u64::saturating_add) > LARGEST {
        return;
    }
    let Ok(profile) = Profile::open(dir.path()) else {
        return;
    };
    if profile.groups.is_empty() {
        return;
    }
    let summary = Report::new(&profile).and_then(|report| report.summary_with_verdict());
    if let Ok(summary) = summary {
        let text = verdict::render(&summary.verdict, verdict::COLUMNS, verdict::LINES);
        crate::say!("{}", text.trim_end());
    }
}

/// How long a recording lasts.
pub fn recording(text: &str) -> Result<Duration, String> {
    let duration = units::parse_duration(text)?;
    if (LEAST..=MOST).contains(&duration) {
        return Ok(duration);
    }
    Err("a duration from 1ms to 7d is expected, such as 30s".to_owned())
}

/// Prints since when the profile is complete, if that is not its beginning.
pub fn tell_completeness(dir: &ProfileDir) {
    let processes = dir.read::<ProcessRow>().map(|read| read.rows);
    let last = processes
        .unwrap_or_default()
        .into_iter()
        .max_by_key(|process| process.end_ns);
    if let Some(text) = last.as_ref().and_then(completeness) {
        crate::say!("unfuse: {text}");
    }
}
