//! The result pages. A page shows what was measured, when, where and how, with all earlier measurements of it.
//!
//! The data of a page is `NAME.json`. The program makes `NAME.md` from it and from the aims ([`crate::aims`]).

mod render;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use chrono::DateTime;
use serde::{Deserialize, Serialize};

use crate::stats;

pub(crate) use render::after_number;
pub use render::{aim_and_verdict, index};

/// All measurements of a page.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The name of the page and of its files.
    pub name: String,
    /// Files and directories of the measured code, relative to the repository. The page is out of
    /// date if commits after its own changed them.
    pub measures: Vec<String>,
    /// All measurements, in the order in which they were made.
    pub measurements: Vec<Measurement>,
}

/// One measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// Day of its start, UTC: `2026-11-23`.
    pub date: String,
    /// The commit that was checked out.
    pub commit: Commit,
    /// The machine that it ran on.
    pub machine: Machine,
    /// The command line, quoted for a shell.
    pub command: String,
    /// Number of runs, if the measurement recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Load average of the last minute at its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Whether it measured only a part of the page's figures. Such a measurement is never the page's headline.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// A remark for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The measured figures.
    pub figures: Vec<Figure>,
    /// The rest of the page in Markdown, by lines. A new complete measurement clears it in all earlier ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<String>,
}

/// A commit, and whether the measured code was exactly that commit's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// Its hash, shortened; `unknown` outside a repository.
    pub id: String,
    /// Whether the code was the commit's.
    pub state: State,
}

/// How a measured commit is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No file differed from the commit.
    Clean,
    /// The code had uncommitted changes.
    Uncommitted,
    /// The measurement did not record its commit. This is the commit that added the figures.
    AddedBy,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// CPUs that the process may use.
    pub cores: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Main memory, MiB; older measurements did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
}

/// A measured number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The name in aims and documents. It is unique in its measurement, and the same in all measurements of a page.
    pub name: String,
    /// A description for the reader.
    pub what: String,
    /// The value in `unit`.
    pub value: f64,
    /// 95% confidence interval; the value twice if it cannot vary (a count, a size); `None` if it was measured once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Unit of value and interval; empty for ratios.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Digits after the point that are shown.
    pub digits: usize,
}

impl Figure {
    /// A figure that was measured once.
    pub fn new(name: &str, what: &str, value: f64, unit: &str, digits: usize) -> Self {
        Self {
            name: name.to_owned(),
            what: what.to_owned(),
            value,
            interval: None,
            unit: unit.to_owned(),
            digits,
        }
    }

    /// The same figure with an interval. Drops an interval that is not bounded.
    pub fn within(self, interval: Option<[f64; 2]>) -> Self {
        let interval = interval.filter(|ends| ends.iter().all(|end| end.is_finite()));
        Self { interval, ..self }
    }

    /// The same figure, for a value that cannot vary: a count, a size.
    pub fn exact(self) -> Self {
        let interval = Some([self.value; 2]);
        Self { interval, ..self }
    }

    /// The same figure, for a value that is never negative: cuts the interval off at 0.
    pub fn not_negative(self) -> Self {
        let interval = self.interval.map(|[low, high]| [low.max(0.0), high]);
        Self { interval, ..self }
    }

    /// The mean of several runs with Student's interval.
    pub fn from_runs(name: &str, what: &str, runs: &[f64], unit: &str, digits: usize) -> Self {
        let (mean, half) = stats::mean_and_half_width(runs);
        Self::new(name, what, mean, unit, digits).within(Some([mean - half, mean + half]))
    }

    /// The part of all trials in which something held, %, with its interval.
    pub fn from_counts(name: &str, what: &str, (part, all): (usize, usize)) -> Self {
        let (share, ends) = stats::share(part as f64, all as f64);
        let what = format!("{what} ({part} of {all})");
        let ends = ends.map(|end| 100.0 * end);
        Self::new(name, &what, 100.0 * share, "%", 0).within(Some(ends))
    }

    /// The geometric mean of ratios, given as logarithms, with its interval.
    pub fn from_logs(name: &str, what: &str, logs: &[f64]) -> Self {
        let (mean, interval) = stats::geometric(logs);
        Self::new(name, what, mean, "", 3).within(interval)
    }
}

/// Paths of the code that decides to which operator a sample is attributed.
pub const ATTRIBUTION: [&str; 4] = [
    "postprocess/src",
    "spark-patches/src",
    "profiler",
    "jvmti-agent/src",
];

/// A page to which a measurement is being added.
#[derive(Debug)]
pub struct Measuring {
    results: PathBuf,
    page: Page,
    measurement: Measurement,
}

impl Measuring {
    /// Records the conditions of a measurement: commit, machine, date, command and load. `name` is the name of the page and of
    /// its files. `measures` are the paths of the measured code, relative to the repository.
    ///
    /// # Errors
    /// If the page's earlier measurements cannot be read.
    pub fn begin(results: &Path, name: &str, measures: &[&str]) -> Result<Self> {
        let mut page = match Page::read(results, name)? {
            Some(page) => page,
            None => Page {
                name: name.to_owned(),
                measures: Vec::new(),
                measurements: Vec::new(),
            },
        };
        page.measures = measures.iter().map(|path| (*path).to_owned()).collect();
        let measurement = Measurement {
            date: today()?,
            commit: commit(),
            machine: machine(),
            command: command()?,
            runs: None,
            load: load(),
            partial: false,
            note: cfg!(debug_assertions)
                .then(|| "Made with a debug build: its times are meaningless.".to_owned()),
            figures: Vec::new(),
            body: Vec::new(),
        };
        Ok(Self {
            results: results.to_owned(),
            page,
            measurement,
        })
    }

    /// Writes the page with the figures so far, as a partial measurement, so that an interrupted run keeps them. A later call
    /// of this function or of [`Self::finish`] replaces them.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn keep(&self, runs: u32, figures: &[Figure], body: &str, note: &str) -> Result<()> {
        let mut page = self.page.clone();
        page.add(Measurement {
            runs: Some(runs),
            partial: true,
            note: Some(note.to_owned()),
            figures: figures.to_vec(),
            body: body.trim_end().lines().map(str::to_owned).collect(),
            ..self.measurement.clone()
        })?;
        fs::create_dir_all(&self.results)?;
        page.write(&self.results)
    }

    /// Adds the measurement to the page and writes the page. The previous headline becomes a line of the history.
    ///
    /// # Errors
    /// If two figures have the same name, or a file cannot be written.
    pub fn finish(mut self, runs: u32, figures: Vec<Figure>, body: &str) -> Result<()> {
        self.measurement.runs = Some(runs);
        self.measurement.figures = figures;
        self.measurement.body = body.trim_end().lines().map(str::to_owned).collect();
        self.page.add(self.measurement)?;
        fs::create_dir_all(&self.results)?;
        self.page.write(&self.results)?;
        print!("{body}");
        let path = path_of(&self.results, &self.page.name, "md");
        println!(
            "\nwritten to {}; `unfuse-bench pages --update` puts its figures into the documents",
            path.display()
        );
        Ok(())
    }
}

/// The file of a page. A page's name may contain dots: `marked-spark-3.5`.
pub fn path_of(results: &Path, name: &str, extension: &str) -> PathBuf {
    results.join(format!("{name}.{extension}"))
}

impl Page {
    /// Reads a page; `None` if there is none.
    ///
    /// # Errors
    /// If the file is not a result page, with the reason.
    pub fn read(results: &Path, name: &str) -> Result<Option<Self>> {
        let path = path_of(results, name, "json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let page: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a result page", path.display()))?;
        if page.name != name {
            bail!("{} holds the page {:?}", path.display(), page.name);
        }
        Ok(Some(page))
    }

    /// All pages of a directory, sorted by name.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read_all(results: &Path) -> Result<Vec<Self>> {
        let entries = fs::read_dir(results)
            .with_context(|| format!("cannot read the results in {}", results.display()))?;
        let mut names = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|kind| kind == "json")
                && let Some(name) = path.file_stem().and_then(|name| name.to_str())
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        let pages: Result<Vec<Option<Self>>> =
            names.iter().map(|name| Self::read(results, name)).collect();
        Ok(pages?.into_iter().flatten().collect())
    }

    /// Writes the page's data, and its Markdown.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, results: &Path) -> Result<()> {
        let data = serde_json::to_string_pretty(self)? + "\n";
        for (extension, text) in [("json", data), ("md", self.markdown()?)] {
            let path = path_of(results, &self.name, extension);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// The newest complete measurement: the page's headline.
    pub fn headline(&self) -> Option<&Measurement> {
        self.measurements.iter().rev().find(|one| !one.partial)
    }

    /// A figure of the headline.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.headline()?.figure(name)
    }

    /// Appends a measurement.
    fn add(&mut self, measurement: Measurement) -> Result<()> {
        let mut names: Vec<&str> = measurement
            .figures
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("two figures of {} are called {}", self.name, twice[0]);
        }
        if !measurement.partial {
            for earlier in &mut self.measurements {
                earlier.body.clear();
            }
        }
        self.measurements.push(measurement);
        Ok(())
    }
}

impl Measurement {
    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// Converts a title to a part of a figure's name: letters and digits, with `_` between words.
pub fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    words.join("_")
}

fn today() -> Result<String> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let now =
        DateTime::from_timestamp(seconds.cast_signed(), 0).context("a clock before 262143")?;
    Ok(now.format("%Y-%m-%d").to_string())
}

/// The commit that is checked out in the working directory. Changes to documents do not count, because they are not measured.
fn commit() -> Commit {
    let git = |arguments: &[&str]| -> Option<String> {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let changed = ["status", "--porcelain", "--", ":/", ":!/docs", ":!/*.md"];
    match (git(&["rev-parse", "--short=7", "HEAD"]), git(&changed)) {
        (Some(id), Some(changes)) => Commit {
            id,
            state: if changes.is_empty() {
                State::Clean
            } else {
                State::Uncommitted
            },
        },
        _ => Commit {
            id: "unknown".to_owned(),
            state: State::Uncommitted,
        },
    }
}

fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(['\t', ' ', ':']).trim().to_owned())
    };
    let kib = after(&read("/proc/meminfo"), "MemTotal");
    let kib = kib.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
    Machine {
        cpu: after(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        memory_mib: kib.map(|kib| kib / 1024),
    }
}

fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The command line, with the program's name instead of its path.
fn command() -> Result<String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words = std::iter::once("unfuse-bench").chain(arguments.iter().map(String::as_str));
    shlex::try_join(words).context("the command line holds a NUL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page {
            name: "codemap".to_owned(),
            measures: Vec::new(),
            measurements: Vec::new(),
        }
    }

    fn measurement(date: &str, value: f64, partial: bool) -> Measurement {
        Measurement {
            date: date.to_owned(),
            commit: Commit {
                id: format!("of-{date}"),
                state: State::Uncommitted,
            },
            machine: machine(),
            command: "unfuse-bench codemap".to_owned(),
            runs: Some(3),
            load: Some(0.5),
            partial,
            note: None,
            figures: vec![
                Figure::new("look_up_100k", "look-up", value, "ns", 0)
                    .within(Some([value - 1.0, value + 1.0])),
            ],
            body: vec![format!("the details of {date}")],
        }
    }

    #[test]
    fn a_new_measurement_moves_the_old_one_into_the_history() -> Result<()> {
        let mut page = page();
        for (date, value) in [("2026-01-01", 250.0), ("2026-01-02", 150.0)] {
            page.add(measurement(date, value, false))?;
        }
        page.add(measurement("2026-01-03", 100.0, true))?;
        let text = page.markdown()?;
        let (now, history) = text.split_once("## History").context("a history")?;
        for said in [
            "`unfuse-bench codemap`, 3 runs",
            "2026-01-02, commit of-2026-01-02 with uncommitted changes",
            "Load average: 0.50",
            "| look-up | 150 ns (149 to 151) | at most 200 ns (issue 2) | met |",
        ] {
            assert!(now.contains(said), "{said} is not in {now}");
        }
        assert!(!now.contains("250 ns") && !now.contains("100 ns"), "{now}");
        let part = history.find("100 ns (99 to 101)").context("a part")?;
        let older = history
            .find("250 ns (249 to 251)")
            .context("an older one")?;
        assert!(part < older && !history.contains("150 ns"), "{history}");
        Ok(())
    }

    #[test]
    fn a_page_is_read_as_it_was_written() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let mut page = page();
        page.add(measurement("2026-01-01", 250.0, false))?;
        page.write(dir.path())?;
        let read = Page::read_all(dir.path())?;
        assert_eq!(read[0].markdown()?, page.markdown()?);
        assert!(Page::read(dir.path(), "another")?.is_none());
        Ok(())
    }

    #[test]
    fn figures_have_names_of_their_own() {
        let mut twice = measurement("2026-01-01", 1.0, false);
        twice.figures.push(twice.figures[0].clone());
        assert!(page().add(twice).is_err());
        assert_eq!(slug("unfuse, 200 Hz"), "unfuse_200_hz");
    }
}
