//! What `Churn.java` says about itself.

use std::path::Path;

use crate::{compile, is, run, samples, top, unfuse};

/// Classes that came and went, each with the CPU time it had.
#[derive(Debug)]
pub struct Churned(Vec<(String, f64)>);

impl Churned {
    /// Runs the program under `unfuse run`, with options of its own and of the JVM, and compares it with
    /// its profile.
    ///
    /// # Panics
    /// If it fails.
    pub fn profiled(
        home: &Path,
        options: &[&str],
        jvm: &[&str],
        milliseconds: u32,
    ) -> (Self, Compared) {
        let dir = tempfile::tempdir().expect("a directory");
        compile(home, "Churn.java", dir.path());
        let profile = dir.path().join("profile");
        let mut command = unfuse();
        command
            .args(["run", "--rate", "1000", "--out"])
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

    /// Reads the program's output: `NAME FROM UNTIL`.
    ///
    /// # Panics
    /// If it is something else.
    pub fn read(output: &[u8]) -> Self {
        let text = String::from_utf8_lossy(output).into_owned();
        let ran = text.lines().filter(|line| line.starts_with("Gen"));
        Self(
            ran.map(|line| {
                let mut words = line.split(' ');
                let name = words.next().expect("a name").to_owned();
                let mut time = || {
                    words
                        .next()
                        .and_then(|w| w.parse::<f64>().ok())
                        .expect("a time")
                };
                let (from, until) = (time(), time());
                (name, (until - from) / 1e9)
            })
            .collect(),
        )
    }

    /// How many classes ran.
    pub fn classes(&self) -> usize {
        self.0.len()
    }

    /// The truth beside what the profile says.
    pub fn compare(&self, profile: &Path) -> Compared {
        let rows = top(profile, &["--by", "method"]);
        let whole: f64 = self.0.iter().map(|(_, s)| s).sum();
        let kinds = (0..8).map(|kind| {
            let name = format!("Gen{kind}");
            let ran = self.0.iter().filter(|(n, _)| *n == name);
            let ran: f64 = ran.map(|(_, s)| s).sum();
            let samples = samples(&rows, |row| is(row, &format!("{name}.run")));
            (name, ran / whole, samples as f64)
        });
        Compared {
            kinds: kinds.collect(),
            all: samples(&rows, |_| true) as f64,
        }
    }
}

/// The eight kinds of class, and the samples of all there is.
#[derive(Debug)]
pub struct Compared {
    kinds: Vec<(String, f64, f64)>,
    /// Samples of the whole profile.
    pub all: f64,
}

impl Compared {
    /// For each kind: its name, its share of the classes' CPU time, its samples.
    pub fn kinds(&self) -> &[(String, f64, f64)] {
        &self.kinds
    }

    /// Samples of all kinds together.
    pub fn named(&self) -> f64 {
        self.kinds.iter().map(|(_, _, samples)| samples).sum()
    }

    /// # Panics
    /// If a class has not the share of the samples that it had of the time.
    pub fn check(&self, what: &str) {
        for (name, truth, samples) in &self.kinds {
            let seen = samples / self.named();
            assert!(
                (seen - truth).abs() < 0.04,
                "{what}: {name} ran {truth:.3} of the time and has {seen:.3} of the samples"
            );
        }
        // The rest compiles the classes, interprets them and is the JVM's own.
        assert!(self.named() > 0.5 * self.all, "{what}: {self:?}");
    }
}
