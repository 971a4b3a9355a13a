//! The output of `Churn.java`, and its comparison with a profile.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use unfuse_format::{Frame, ProfileDir, SampleKind, SampleRow, StackId, StackRow};

use crate::{compile, is, run, samples, top, unfuse};

/// Allowed difference between the clocks of the profile and of the program, ns. A class runs for three times as long, and earlier
/// code at its address ran long before.
const CLOCKS_NS: i64 = 20_000_000;

/// Samples a second of CPU time.
const RATE: u32 = 1000;

/// A class that was loaded, ran and was dropped.
#[derive(Debug)]
struct Class {
    name: String,
    /// Its CPU time, s.
    cpu_s: f64,
    /// When it ran, ns since the epoch.
    ran: (i64, i64),
}

impl Class {
    fn runs_at(&self, ns: i64) -> bool {
        (self.ran.0..self.ran.1).contains(&ns)
    }
}

/// The classes that were loaded, ran and were dropped.
#[derive(Debug)]
pub struct ChurnedClasses(Vec<Class>);

impl ChurnedClasses {
    /// Runs the program under `unfuse run`, with options of that and of the JVM, and compares its output with the profile.
    ///
    /// # Panics
    /// If it fails.
    pub fn profiled(
        home: &Path,
        options: &[&str],
        jvm: &[&str],
        milliseconds: u32,
    ) -> (Self, ClassComparison) {
        let dir = tempfile::tempdir().expect("a directory");
        compile(home, "Churn.java", dir.path());
        let profile = dir.path().join("profile");
        let mut command = unfuse();
        command
            .args(["run", "--rate", &RATE.to_string(), "--out"])
            .arg(&profile)
            .args(options)
            .arg("--")
            .arg(home.join("bin/java"))
            .args(jvm)
            .arg("-cp")
            .arg(dir.path())
            .args(["Churn", &milliseconds.to_string()]);
        let ran = Self::read(&run(&mut command).stdout);
        let compared = ran.compare(&profile);
        (ran, compared)
    }

    /// Reads the program's output: `NAME CPU-BEFORE CPU-AFTER BEGUN ENDED`.
    ///
    /// # Panics
    /// If the output has another form.
    pub fn read(output: &[u8]) -> Self {
        let text = String::from_utf8_lossy(output).into_owned();
        let ran = text.lines().filter(|line| line.starts_with('G'));
        Self(
            ran.map(|line| {
                let (name, times) = line.split_once(' ').expect("a name");
                let times: Vec<i64> = times
                    .split(' ')
                    .map(|time| time.parse().expect("a time"))
                    .collect();
                let [from, until, begun, ended] = times[..].try_into().expect("four times");
                Class {
                    name: name.to_owned(),
                    cpu_s: (until - from) as f64 / 1e9,
                    ran: (begun, ended),
                }
            })
            .collect(),
        )
    }

    /// How many classes ran.
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// Compares the program's output with the profile.
    ///
    /// # Panics
    /// If a sample names a class that did not run at its time, or on another thread.
    pub fn compare(&self, profile: &Path) -> ClassComparison {
        self.check_times(profile);
        let rows = top(profile, &["--by", "method"]);
        let whole: f64 = self.0.iter().map(|class| class.cpu_s).sum();
        let kinds = (0..8).map(|kind| {
            let name = format!("G{kind}_");
            let ran = self.0.iter().filter(|class| class.name.starts_with(&name));
            let ran: f64 = ran.map(|class| class.cpu_s).sum();
            let samples = samples(&rows, |row| is(row, &name) && is(row, ".run"));
            (name, ran / whole, samples as f64)
        });
        ClassComparison {
            kinds: kinds.collect(),
            cpu_s: whole,
            all: samples(&rows, |_| true) as f64,
        }
    }

    /// Checks that no class has a sample outside the time when it ran. Names are unique, and a row has the times of the
    /// first and the last sample of one stack, so this checks every sample.
    fn check_times(&self, profile: &Path) {
        let classes: HashMap<&str, &Class> = self
            .0
            .iter()
            .map(|class| (class.name.as_str(), class))
            .collect();
        let dir = ProfileDir::open(profile).expect("a profile");
        let stacks = dir.read::<StackRow>().expect("stacks").rows;
        let frames: HashMap<StackId, Vec<Arc<Frame>>> = stacks
            .into_iter()
            .map(|row| (row.stack, row.frames))
            .collect();
        let rows = dir.read::<SampleRow>().expect("samples").rows;
        let (mut checked, mut wrong, mut descriptions) = (0, 0, Vec::new());
        for row in rows.iter().filter(|row| row.kind == SampleKind::Cpu) {
            let frames = &frames[&row.stack];
            let named: BTreeSet<&str> = frames.iter().map(|frame| frame.class.as_str()).collect();
            for class in named.into_iter().filter_map(|name| classes.get(name)) {
                let (begun, ended) = class.ran;
                let fits = row.thread == "main"
                    && row.start_ns >= begun - CLOCKS_NS
                    && row.end_ns <= ended + CLOCKS_NS;
                if !fits {
                    let methods = frames.iter().map(|f| (f.kind, &f.class, &f.method));
                    let others = self.0.iter().filter(|other| other.runs_at(row.start_ns));
                    wrong += row.count;
                    descriptions.push(format!(
                        "{class:?}, on main: {} samples from {} to {} on {}, while {:?} ran: {:?}",
                        row.count,
                        row.start_ns,
                        row.end_ns,
                        row.thread,
                        others.collect::<Vec<_>>(),
                        methods.collect::<Vec<_>>()
                    ));
                }
                checked += row.count;
            }
        }
        assert!(checked > 0, "no sample names any of the classes");
        assert_eq!(wrong, 0, "of {checked}: {descriptions:#?}");
    }
}

/// Times and samples of the eight kinds of class, and of the whole profile.
#[derive(Debug)]
pub struct ClassComparison {
    kinds: Vec<(String, f64, f64)>,
    /// CPU time of all classes together, s.
    cpu_s: f64,
    /// Samples of the whole profile.
    pub all: f64,
}

impl ClassComparison {
    /// For each kind: its name, its share of the classes' CPU time, its samples.
    pub fn kinds(&self) -> &[(String, f64, f64)] {
        &self.kinds
    }

    /// Samples of all kinds together.
    pub fn named(&self) -> f64 {
        self.kinds.iter().map(|(_, _, samples)| samples).sum()
    }

    /// # Panics
    /// If the share of samples of a kind differs from its share of the time, or if too many samples name no class.
    pub fn check(&self, what: &str) {
        for (name, truth, samples) in &self.kinds {
            let seen = samples / self.named();
            assert!(
                (seen - truth).abs() < 0.04,
                "{what}: {name} ran {truth:.3} of the time and has {seen:.3} of the samples"
            );
        }
        let taken = self.cpu_s * f64::from(RATE);
        assert!(self.named() > 0.7 * taken, "{what}: {self:?}");
    }
}
