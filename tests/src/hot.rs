//! The CPU times that `Hot.java` writes, and its profile.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use unfuse_format::{ProcessRow, ProfileDir};

use crate::{PATIENCE, is, marked, samples, top};

/// Allowed difference of a share of samples, in standard deviations. By chance, one test in 15,000 exceeds it.
const DEVIATIONS: f64 = 4.0;
/// Further allowed difference: the profile begins and ends between two entries of the truth.
const EDGES: f64 = 0.01;

/// The CPU time that `Hot.sum` and `Hot.mix` had, in a file that the program writes as it runs.
#[derive(Debug)]
pub struct HotTruth {
    file: PathBuf,
    /// Most samples that one tick stands for.
    of_one_look: f64,
}

impl HotTruth {
    /// A file in a directory. Removes files of an earlier run.
    pub fn in_dir(dir: &Path) -> Self {
        let truth = Self {
            file: dir.join("truth"),
            of_one_look: 1.0,
        };
        for file in [truth.file.clone(), truth.stop_file()] {
            let _ = std::fs::remove_file(file);
        }
        truth
    }

    fn stop_file(&self) -> PathBuf {
        self.file.with_extension("stop")
    }

    /// The same for samples of CPU timers, whose ticks may stand for several samples.
    pub fn by_ticks(self) -> Self {
        Self {
            of_one_look: 6.0,
            ..self
        }
    }

    /// The JVM's option that makes the program write the file.
    pub fn option(&self) -> String {
        format!("-Dtruth={}", self.file.display())
    }

    /// Ends the program.
    ///
    /// # Panics
    /// If the file that ends it cannot be made.
    pub fn stop(&self) {
        std::fs::write(self.stop_file(), "").expect("a directory that can be written");
    }

    /// Waits until the program has run for a second of CPU time. Then it is compiled, on a busy machine too.
    ///
    /// # Panics
    /// If it takes more than [`PATIENCE`].
    pub fn wait_until_warm(&self) {
        self.wait_for(Duration::from_secs(1));
    }

    /// Waits until the program has had this much CPU time.
    ///
    /// # Panics
    /// If it takes more than [`PATIENCE`].
    pub fn wait_for(&self, cpu: Duration) {
        let until = Instant::now() + PATIENCE;
        while self.cpu() <= cpu {
            assert!(Instant::now() < until, "the program does not run");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// CPU time that the program has had by now.
    pub fn cpu(&self) -> Duration {
        let last = self.entries().pop().unwrap_or_default();
        Duration::from_nanos((last[1] + last[2]).cast_unsigned())
    }

    /// Times, and the CPU time of both methods until then. Empty if there is no file yet.
    fn entries(&self) -> Vec<[i64; 3]> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        // The last line may be half written.
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .map(|line| {
                let mut numbers = line
                    .split_whitespace()
                    .map(|number| number.parse::<i64>().expect("a number"));
                [(); 3].map(|()| numbers.next().expect("three numbers"))
            })
            .collect()
    }

    /// `sum`'s share of the CPU time of both while a profile was recorded.
    fn share(&self, profile: &Path) -> f64 {
        let processes = ProfileDir::open(profile).and_then(|dir| dir.read::<ProcessRow>());
        let processes = processes.expect("a profile").rows;
        let start = processes.iter().map(|process| process.start_ns).min();
        let end = processes.iter().map(|process| process.end_ns).max();
        let mut entries = self.entries();
        entries.retain(|entry| Some(entry[0]) >= start && Some(entry[0]) <= end);
        let (first, last) = (entries[0], entries[entries.len() - 1]);
        let [sum, mix] = [1, 2].map(|index| (last[index] - first[index]) as f64);
        assert!(sum + mix > 0.0, "the program did nothing meanwhile");
        sum / (sum + mix)
    }

    /// Checks that the shares of samples are those of CPU time, within the error for this number of samples.
    ///
    /// # Panics
    /// If they are not, or are too few.
    pub fn check_ratio(&self, profile: &Path, (sum, mix): (u64, u64), what: &str) {
        let (truth, all) = (self.share(profile), (sum + mix) as f64);
        let seen = sum as f64 / all;
        let deviation = (truth * (1.0 - truth) * self.of_one_look / all).sqrt();
        let allowed = DEVIATIONS * deviation + EDGES;
        assert!(allowed < 0.2, "{what}: only {all} samples");
        assert!(
            (seen - truth).abs() < allowed,
            "{what}: sum has {seen:.3} of {all} samples and {truth:.3} of the CPU time, {allowed:.3} is allowed"
        );
    }
}

/// Samples of the program's own thread. Other work of the JVM, such as compiling, depends on how busy the machine is.
pub fn of_main(profile: &Path) -> f64 {
    let rows = top(profile, &["--by", "thread"]);
    samples(&rows, |row| row["operator"] == "main") as f64
}

/// Checks that the two methods of `Hot.java` have nearly all samples of its thread, with shares like those of CPU time, and
/// that their hot lines have at least the part `in_lines` of these samples.
///
/// # Panics
/// If not.
pub fn check_hot(profile: &Path, truth: &HotTruth, in_lines: f64, what: &str) {
    let rows = top(profile, &["--by", "line"]);
    let of = |method: &str| samples(&rows, |row| is(row, &format!("Hot.{method}(")));
    let counts = (of("sum"), of("mix"));
    let all = of_main(profile);
    let named = (counts.0 + counts.1) as f64;
    assert!(named > 0.85 * all, "{what}: {counts:?} of {all}");
    let hot = |method: &str| {
        let line = marked("Hot.java", &format!("HOT {method}"));
        samples(&rows, |row| {
            is(row, &format!("Hot.{method}")) && is(row, &line)
        })
    };
    let hot = (hot("sum") + hot("mix")) as f64;
    assert!(
        hot > in_lines * all,
        "{what}: {hot} of {all} in the hot lines"
    );
    truth.check_ratio(profile, counts, what);
}
