//! Every kind of frame: all code that the JVM runs has a name and its true share of the samples.
//!
//! The programs measure the CPU time of their parts themselves and print it (`Truth.java`).

use std::path::Path;

use unfuse_tests::{ChurnedClasses, compile, jdks, root, run, unfuse};

/// Samples a second of CPU time.
const RATE: f64 = 1000.0;

/// Names of unknown frames.
const NAMELESS: [&str; 4] = ["[unknown]", "[code cache]", "[interpreter]", ""];

/// A program that ran under the profiler.
struct Ran {
    what: String,
    program: String,
    /// Parts and the CPU seconds they had.
    truth: Vec<(String, f64)>,
    /// Seconds that the hypervisor took from this machine meanwhile. The samples' clock counts them as CPU time, the
    /// thread's clock does not.
    stolen: f64,
    /// Frames, root first, and samples.
    stacks: Vec<(Vec<String>, f64)>,
}

/// Runs a program of `tests/programs`.
fn profiled(home: &Path, options: &[&str], program: &str, argument: &str) -> Ran {
    profiled_by(home, "perf", options, program, argument)
}

/// The same with a source of samples.
fn profiled_by(home: &Path, by: &str, options: &[&str], program: &str, argument: &str) -> Ran {
    let dir = tempfile::tempdir().expect("a directory");
    for source in ["Truth.java", &format!("{program}.java")] {
        compile(home, source, dir.path());
    }
    let profile = dir.path().join("profile");
    let mut command = unfuse();
    command
        .args(["run", "--rate", &RATE.to_string(), "--out"])
        .arg(&profile)
        .args(["--agent-options", &format!("threads=all,source={by}"), "--"])
        .arg(home.join("bin/java"))
        .args(options)
        .arg("-cp")
        .arg(dir.path());
    let before = stolen();
    let output = run(command.args([program, argument]));
    let stolen = stolen() - before;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let truth = said.lines().filter_map(|line| {
        let (part, time) = line.strip_prefix("truth ")?.rsplit_once(' ')?;
        Some((part.to_owned(), time.parse::<f64>().ok()? / 1e9))
    });
    Ran {
        what: format!("{program} {options:?} on {}", home.display()),
        program: program.to_owned(),
        truth: truth.collect(),
        stolen,
        stacks: stacks(&profile),
    }
}

/// Seconds that the hypervisor has taken from this machine's CPUs since it started.
fn stolen() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("the kernel's counts");
    let all = text.lines().next().expect("a line of all CPUs");
    let ticks = all.split_whitespace().nth(8).expect("the stolen time");
    ticks.parse::<f64>().expect("a number") / 100.0
}

/// Folded stacks, root first, with their samples.
fn stacks(profile: &Path) -> Vec<(Vec<String>, f64)> {
    let folded = run(unfuse()
        .arg("export")
        .arg(profile)
        .args(["--format", "folded"]));
    let folded = String::from_utf8_lossy(&folded.stdout).into_owned();
    let stacks = folded.lines().map(|line| {
        let (stack, samples) = line.rsplit_once(' ').expect("a stack and its samples");
        let frames = stack.split(';').map(str::to_owned).collect();
        (frames, samples.parse().expect("a number"))
    });
    stacks.collect()
}

/// Whether a part of a folded stack is a place in a source, not a frame.
fn is_place(part: &str) -> bool {
    part.rsplit_once("@L")
        .is_some_and(|(_, line)| line.parse::<u32>().is_ok())
}

impl Ran {
    /// Samples of the stacks that `wanted` accepts.
    fn samples(&self, wanted: impl Fn(&[String]) -> bool) -> f64 {
        let wanted = self.stacks.iter().filter(|(stack, _)| wanted(stack));
        wanted.map(|(_, samples)| samples).sum()
    }

    fn within(&self, part: &str) -> f64 {
        self.samples(|stack| stack.iter().any(|frame| frame == part))
    }

    /// `File.java@Lline` of the line that holds a marker.
    fn marked(&self, marker: &str) -> String {
        let file = format!("{}.java", self.program);
        let text = std::fs::read_to_string(root().join("tests/programs").join(&file))
            .expect("the program");
        let line = text.lines().position(|line| line.ends_with(marker));
        format!("{file}@L{}", line.expect("the marker") + 1)
    }

    /// Checks that nearly all samples have a leaf and callers with names.
    fn check_names(&self) {
        let all = self.samples(|_| true);
        let nameless = |part: &String| NAMELESS.contains(&part.as_str());
        let leaves =
            self.samples(|stack| stack.iter().rfind(|p| !is_place(p)).is_some_and(nameless));
        let anywhere = self.samples(|stack| stack.iter().any(nameless));
        let mut worst: Vec<_> = self
            .stacks
            .iter()
            .filter(|(s, _)| s.iter().any(nameless))
            .collect();
        worst.sort_by(|a, b| b.1.total_cmp(&a.1));
        worst.truncate(3);
        eprintln!(
            "{}: {leaves} leaves of {all} without a name, {anywhere} with one somewhere",
            self.what
        );
        // Known: on JDK 25, the interpreted caller of this stub has no name, because its frame is not found.
        let is_stub = |part: &String| part == "sha512_implCompress";
        let known =
            self.samples(|stack| stack.iter().any(nameless) && stack.last().is_some_and(is_stub));
        assert!(
            leaves <= 0.02 * all && anywhere - known <= 0.03 * all && known <= 0.03 * all,
            "{}: {leaves} leaves of {all} have no name, {anywhere} stacks have such a frame: {worst:?}",
            self.what
        );
    }

    /// Checks that the parts have samples in proportion to their CPU time. At least the share `least` of the
    /// expected samples must be found. One tick stands for up to `at_once` samples.
    fn check_shares(&self, least: f64, at_once: f64) {
        assert!(self.truth.len() > 1, "{}: no truth", self.what);
        let whole: f64 = self.truth.iter().map(|(_, time)| time).sum();
        let parts: Vec<_> = self
            .truth
            .iter()
            .map(|(part, time)| {
                let place = part.starts_with("HOT ").then(|| self.marked(part));
                let samples = self.within(place.as_deref().unwrap_or(part));
                (part, time / whole, samples)
            })
            .collect();
        let found: f64 = parts.iter().map(|(_, _, samples)| samples).sum();
        let expected = whole * RATE;
        eprintln!(
            "{}: {found} of {expected:.0} samples: {parts:.3?}",
            self.what
        );
        // The sampler regulates its rate. Samples whose callchain cannot be repaired are missing here.
        assert!(
            (least..1.07 + self.stolen / whole).contains(&(found / expected)),
            "{}: {found} samples in {parts:?}, truly {expected:.0}",
            self.what
        );
        for (part, truth, samples) in &parts {
            // Four standard deviations of the sampling, and the cost of reading the clocks.
            let tolerance = 4.0 * (truth * (1.0 - truth) * at_once / found).sqrt() + 0.01;
            let seen = samples / found;
            assert!(
                (seen - truth).abs() < tolerance,
                "{}: {part} had {truth:.3} of the time and has {seen:.3} of the samples",
                self.what
            );
        }
    }

    /// Checks that at least this share of the samples in `part` has a frame that `wanted` accepts.
    fn check_within(&self, part: &str, share: f64, wanted: impl Fn(&str) -> bool) {
        let all = self.within(part);
        let found = self.samples(|stack| {
            let mut frames = stack.iter().skip_while(|frame| *frame != part);
            frames.any(|frame| wanted(frame))
        });
        eprintln!(
            "{}: {found} of {all} in {part} as they should be",
            self.what
        );
        assert!(
            all > 30.0 && found >= share * all,
            "{}: {found} of {all} samples in {part}",
            self.what
        );
    }
}

/// HotSpot discards and recompiles code after two kinds of wrong assumption.
#[test]
fn deoptimised_and_recompiled_code() {
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseG1GC"], "Deopt", "2000");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
        for (part, marker) in [
            ("Deopt.areas", "HOT areas"),
            ("Deopt.branches", "HOT branches"),
        ] {
            let line = ran.marked(marker);
            ran.check_within(part, 0.8, |frame| frame == line);
        }
    }
}

#[test]
fn on_stack_replacement_in_main() {
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseSerialGC"], "Osr", "20000000");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
    }
}

#[test]
fn hidden_classes_lambdas_and_method_handles() {
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseParallelGC"], "Hidden", "2000");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
        // HotSpot's own name of the hidden class, in interpreted and in compiled code.
        ran.check_within("Hidden.hidden", 0.9, |frame| {
            frame.starts_with("Hidden$Template.0x") && frame.ends_with(".spin")
        });
        ran.check_within("Hidden.handles", 0.5, |frame| frame.contains("LambdaForm"));
    }
}

/// Such calls go through vtable and itable stubs.
#[test]
fn calls_with_many_receivers() {
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseZGC"], "Calls", "2000");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
        for (part, marker) in [
            ("Calls.byClass", "HOT class"),
            ("Calls.byInterface", "HOT interface"),
        ] {
            let line = ran.marked(marker);
            ran.check_within(part, 0.8, |frame| frame == line);
        }
        ran.check_within("Calls.byInterface", 0.05, |frame| frame == "itable stub");
    }
}

/// CPU timers tick every few milliseconds: fewer samples, but the same callers.
#[test]
fn calls_by_cpu_timers() {
    for home in jdks() {
        let ran = profiled_by(&home, "timer", &["-XX:+UseSerialGC"], "Calls", "2000");
        // A tick stands for several samples.
        ran.check_shares(0.85, 6.0);
    }
}

/// The same without compilers: all frames are interpreted.
#[test]
fn interpreted_calls() {
    for home in jdks() {
        let ran = profiled(&home, &["-Xint"], "Calls", "1500");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
    }
}

/// Classes are loaded and unloaded while most code is interpreted. The JVM reuses their metadata, so a `Method*`
/// soon belongs to another class.
#[test]
fn interpreted_methods_of_classes_that_come_and_go() {
    for home in jdks() {
        let dir = tempfile::tempdir().expect("a directory");
        compile(&home, "Churn.java", dir.path());
        let profile = dir.path().join("profile");
        let mut command = unfuse();
        command
            .args(["run", "--rate", &RATE.to_string(), "--out"])
            .arg(&profile)
            .arg("--")
            .arg(home.join("bin/java"))
            .args(["-XX:ReservedCodeCacheSize=3m", "-XX:-SegmentedCodeCache"])
            .args(["-XX:CompileThresholdScaling=0.05", "-cp"])
            .arg(dir.path());
        let output = run(command.args(["Churn", "7000"]));
        let ran = ChurnedClasses::read(&output.stdout);
        let compared = ran.compare(&profile);
        eprintln!("{}: {compared:.3?}", home.display());
        for (name, truth, samples) in compared.kinds() {
            let seen = samples / compared.named();
            assert!(
                (seen - truth).abs() < 0.05,
                "{}: {name} ran {truth:.3} of the time and has {seen:.3} of the samples",
                home.display()
            );
        }
        let stacks = stacks(&profile).into_iter();
        let nameless =
            stacks.filter(|(stack, _)| stack.iter().any(|part| NAMELESS.contains(&part.as_str())));
        let nameless: f64 = nameless.map(|(_, samples)| samples).sum();
        eprintln!("{nameless} without a name somewhere");
        assert!(
            nameless < 0.08 * compared.all,
            "{}: {nameless} of {compared:?}",
            home.display()
        );
    }
}

#[test]
fn intrinsics_and_stubs() {
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseG1GC"], "Stubs", "3000");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
    }
}

#[test]
fn native_libraries() {
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseSerialGC"], "Natives", "2000");
        ran.check_names();
        ran.check_shares(0.93, 1.0);
        for part in ["Natives.deflate", "Natives.inflate"] {
            ran.check_within(part, 0.8, |frame| {
                frame.starts_with("[libz") || frame.contains("flate") && !frame.contains('.')
            });
        }
    }
}

/// Frame links that earlier calls left on the stack must not become callers of native code that libjvm calls.
#[test]
fn callers_of_the_clock() {
    const NATIVE: &str = "sun.management.ThreadImpl.getThreadTotalCpuTime0";
    for home in jdks() {
        let ran = profiled(&home, &["-XX:+UseSerialGC"], "Leftovers", "500");
        let all = ran.within(NATIVE);
        let wrong = ran.samples(|stack| {
            let mut callees = stack.iter().skip_while(|frame| *frame != NATIVE);
            callees.any(|frame| frame.starts_with("Leftovers."))
        });
        eprintln!("{}: {wrong} of {all} have callers that returned", ran.what);
        assert!(
            all > 100.0 && wrong == 0.0,
            "{}: {wrong} of {all}",
            ran.what
        );
    }
}

#[test]
fn exceptions_and_locks() {
    for home in jdks() {
        for mode in ["-XX:+UseParallelGC", "-XX:TieredStopAtLevel=1"] {
            let ran = profiled(&home, &[mode], "Throws", "1200");
            ran.check_names();
            ran.check_shares(0.93, 1.0);
        }
    }
}

/// Virtual threads run on carriers, and the profiler samples these. Older JDKs run platform threads.
#[test]
fn virtual_threads() {
    for home in jdks() {
        let ran = profiled(&home, &[], "Virtual", "400");
        ran.check_names();
        let parts = ["once", "twice"].map(|part| {
            let line = ran.marked(&format!("HOT {part}"));
            let part = format!("Virtual.{part}");
            ran.check_within(&part, 0.9, |frame| frame == line);
            ran.within(&part)
        });
        let ratio = parts[1] / parts[0];
        eprintln!("{}: {ratio}", ran.what);
        assert!((1.6..2.4).contains(&ratio), "{}: {parts:?}", ran.what);
        // Their caller is on the same stack.
        for part in ["Virtual.once", "Virtual.twice"] {
            let called = ran.samples(|stack| {
                let mut frames = stack.iter().skip_while(|frame| *frame != "Virtual.work");
                frames.any(|frame| frame == part)
            });
            assert!(called > 0.97 * ran.within(part), "{}: {called}", ran.what);
        }
    }
}
