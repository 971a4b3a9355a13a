//! Runs a command under limits, and checks all its output.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use unfuse_tests::unfuse;

use crate::SECRET;

/// The output of a command: pairs of a destination and its text.
type Said = Vec<(&'static str, String)>;

/// Address space, KiB.
const MEMORY_KIB: u64 = 1 << 20;
/// CPU time, s.
const CPU_S: u64 = 20;
/// Elapsed time. A command that waits, for example for a pipe, uses no CPU time. The limit allows for loaded machines.
const PATIENCE: Duration = Duration::from_secs(120);
/// Commands that run at the same time.
const AT_ONCE: usize = 2;

/// A command on an input.
pub(crate) struct Case {
    /// The input, for messages.
    pub(crate) input: String,
    /// Arguments of `unfuse`.
    pub(crate) arguments: Vec<String>,
    /// A text file that it writes.
    pub(crate) writes: Option<PathBuf>,
    /// Whether it must succeed, because only a part of the input is hostile.
    pub(crate) succeeds: bool,
}

impl Case {
    pub(crate) fn new(input: &str, arguments: &[&str]) -> Self {
        Self {
            input: input.to_owned(),
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
            writes: None,
            succeeds: false,
        }
    }

    /// What is wrong with its end and its output.
    fn failures(&self) -> Vec<String> {
        let (status, said) = match self.run() {
            Ok(ended) => ended,
            Err(why) => return vec![why],
        };
        let mut failures = Vec::new();
        match status.code() {
            None => failures.push(format!("signal {:?}", status.signal())),
            Some(0) => {}
            Some(1 | 2) if !self.succeeds => {}
            Some(code) => failures.push(format!("exit code {code}")),
        }
        if status.code().is_some_and(|code| code != 0) && said[1].1.trim().is_empty() {
            failures.push("it failed without a message".to_owned());
        }
        for (whence, text) in &said {
            for panic in [
                "panicked at",
                "internal error",
                "overflowed its stack",
                SECRET,
            ] {
                if text.contains(panic) {
                    failures.push(format!("{panic:?} in {whence}"));
                }
            }
            if let Some(c) = text.chars().find(|c| is_control(*c)) {
                failures.push(format!("{c:?} in {whence}"));
            }
        }
        if !failures.is_empty() {
            let said: String = said[1].1.chars().take(600).collect();
            failures.push(said.escape_debug().to_string());
        }
        failures
    }

    /// Runs it. Returns its exit status and its output: standard output, standard error and its file.
    fn run(&self) -> Result<(std::process::ExitStatus, Said), String> {
        let dir = tempfile::tempdir().expect("a directory");
        let (out, err) = (dir.path().join("out"), dir.path().join("err"));
        let file = |path| Stdio::from(std::fs::File::create(path).expect("a file"));
        let limits = format!("ulimit -v {MEMORY_KIB} -t {CPU_S} -c 0 && exec \"$0\" \"$@\"");
        let mut child = Command::new("bash")
            .args(["-c", &limits])
            .arg(unfuse().get_program())
            .args(&self.arguments)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err))
            .spawn()
            .expect("bash runs");
        let until = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            if Instant::now() > until {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it runs for more than {} s", PATIENCE.as_secs()));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let mut said = Vec::new();
        let files = [
            ("stdout", Some(&out)),
            ("stderr", Some(&err)),
            ("file", self.writes.as_ref()),
        ];
        for (whence, path) in files {
            let bytes = path
                .and_then(|path| std::fs::read(path).ok())
                .unwrap_or_default();
            let text =
                String::from_utf8(bytes).map_err(|e| format!("{whence} is no UTF-8: {e}"))?;
            said.push((whence, text));
        }
        Ok((status, said))
    }
}

/// Whether a character is a control character or changes the direction of text. The test has its own copy on purpose: it
/// must not check the program by the program's code.
fn is_control(c: char) -> bool {
    let allowed = matches!(c, '\n' | '\t');
    let controls = matches!(u32::from(c), 0..=0x1f | 0x7f..=0x9f);
    let direction = matches!(u32::from(c), 0x202a..=0x202e | 0x2066..=0x2069);
    !allowed && (controls || direction)
}

/// Runs all cases.
///
/// # Panics
/// If a case fails. The message has all failures.
pub(crate) fn check_all(cases: &[Case]) {
    assert!(!cases.is_empty());
    let next = Mutex::new(cases.iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(case) = next.lock().expect("no panic").next() else {
                        return;
                    };
                    let found = case.failures();
                    if !found.is_empty() {
                        let command = case.arguments.join(" ").escape_debug().to_string();
                        let text = format!(
                            "{}: unfuse {command}\n    {}",
                            case.input,
                            found.join("\n    ")
                        );
                        failures.lock().expect("no panic").push(text);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(
        failures.is_empty(),
        "{} of {} commands:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}
