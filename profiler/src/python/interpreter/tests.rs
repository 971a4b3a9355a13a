use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::{ProcState, Process};

use super::*;

const PROGRAM: &str = include_str!("program.py");
/// Number of stacks that are compared for each version.
const STACKS: usize = 60;

/// The interpreters of this machine, with the versions that can be read. `python3` must be one of them.
fn interpreters() -> Vec<String> {
    let numbered = (9..=13).map(|minor| (format!("python3.{minor}"), format!("3.{minor}")));
    let named = numbered.chain([("python3".to_owned(), String::new())]);
    let found: BTreeSet<String> = named
        .filter_map(|(name, version)| path(&name, &version))
        .collect();
    assert!(path("python3", "").is_some(), "python3 is needed");
    eprintln!("interpreters: {found:?}");
    found.into_iter().collect()
}

/// The program that this command runs: it may be a script that looks for a version.
fn path(name: &str, version: &str) -> Option<String> {
    let mut command = Command::new(name);
    if !version.is_empty() {
        command.env("PYENV_VERSION", version);
    }
    let output = command
        .args(["-c", "import sys; print(sys.executable)"])
        .stderr(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// A process that runs the program.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    _program: tempfile::NamedTempFile,
}

impl Running {
    fn start(python: &str, arguments: &[&str]) -> Self {
        let mut program = tempfile::NamedTempFile::new().unwrap();
        program.write_all(PROGRAM.as_bytes()).unwrap();
        let mut child = Command::new(python)
            .arg(program.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{python}");
        Self {
            child,
            output,
            _program: program,
        }
    }

    fn open(&self) -> Interpreter {
        let pid = self.child.id();
        // A process that runs on changes what is read, so a worker is tried several times too.
        let tries = (0..5).map(|_| Interpreter::open(pid, Born::of(pid).unwrap()));
        tries.flatten().next().expect("an interpreter")
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    fn stop(&self) {
        self.send(Signal::SIGSTOP);
        let until = Instant::now() + Duration::from_secs(60);
        let process = Process::new(self.child.id().cast_signed()).unwrap();
        while process.stat().unwrap().state().unwrap() != ProcState::Stopped {
            assert!(Instant::now() < until, "it stops");
        }
    }

    /// The stack at which it stopped, outermost first: name, file and line as the interpreter prints them, without frames
    /// of the interpreter itself and one that has no code yet. `None` if printing ends the interpreter: `faulthandler` can
    /// read a frame that is half made.
    fn printed(&mut self) -> Option<Vec<(String, String, u32)>> {
        self.send(Signal::SIGUSR1);
        self.send(Signal::SIGCONT);
        let mut calls = Vec::new();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            if !line.ends_with('\n') {
                let ended = self.child.wait().unwrap();
                assert_eq!(ended.signal(), Some(Signal::SIGSEGV as i32), "{line}");
                return None;
            }
            if line.starts_with("  File ???") || line.contains("File \"<shim>\"") {
                continue;
            }
            let Some(frame) = line.trim_end().strip_prefix("  File \"") else {
                assert!(line.starts_with("Stack (most recent"), "{line}");
                continue;
            };
            let (file, rest) = frame.split_once("\", line ").unwrap();
            let (number, name) = rest.split_once(" in ").unwrap();
            // A frame that begins has no line.
            let number = number.parse().unwrap_or(0);
            calls.insert(0, (name.to_owned(), file.to_owned(), number));
            if name == "<module>" && !file.starts_with("datei") {
                return Some(calls);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text as `faulthandler` prints it.
fn escaped(text: &str) -> String {
    let escape = |character: char| match u32::from(character) {
        ..=0x7e => character.to_string(),
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    };
    text.chars().map(escape).collect()
}

fn as_printed(calls: &[Call]) -> Vec<(String, String, u32)> {
    let printed = calls.iter().map(|call| {
        // CPython prints names without those of the functions around them.
        let name = call.function.name.rsplit('.').next().unwrap_or_default();
        (escaped(name), escaped(&call.function.file), call.line)
    });
    printed.collect()
}

#[test]
fn stacks_and_lines_are_those_that_the_interpreter_prints() {
    for python in interpreters() {
        let mut running = Running::start(&python, &[]);
        let mut interpreter = running.open();
        let (mut seen, mut ended) = (BTreeSet::new(), 0);
        for round in 0..STACKS {
            std::thread::sleep(Duration::from_micros(1_300 + 37 * round as u64));
            running.stop();
            let stack = interpreter.stack();
            let Some(printed) = running.printed() else {
                ended += 1;
                assert!(ended < STACKS / 10, "{python} ends too often");
                running = Running::start(&python, &[]);
                interpreter = running.open();
                continue;
            };
            let stack = stack.unwrap_or_else(|| panic!("{python}: no stack at {printed:?}"));
            assert_eq!(as_printed(&stack), printed, "{python}");
            seen.extend(stack.into_iter().map(|call| call.function.name.clone()));
        }
        assert!(seen.len() > 8, "{python}: {seen:?}");
    }
}

#[test]
fn most_stacks_of_a_running_process_are_whole() {
    for python in interpreters() {
        let running = Running::start(&python, &[]);
        let mut interpreter = running.open();
        let stacks: Vec<_> = (0..300)
            .map(|_| {
                std::thread::sleep(Duration::from_micros(500));
                interpreter.stack()
            })
            .collect();
        let whole = stacks.iter().flatten().count();
        assert!(whole > 250, "{python}: {whole} of 300");
        for stack in stacks.iter().flatten() {
            let root = stack.first().unwrap();
            assert_eq!(root.function.name, "<module>");
            assert!(stack.iter().all(|call| call.line < 10_000), "{stack:?}");
        }
    }
}

#[test]
fn the_thread_that_holds_the_lock_is_read_and_deep_stacks_keep_their_innermost_part() {
    for python in interpreters() {
        let running = Running::start(&python, &["thread"]);
        let mut interpreter = running.open();
        let computes = |stack: &Vec<Call>| {
            let has = |name: &str| stack.iter().any(|call| call.function.name == name);
            has("rounds") && has("Thread._bootstrap") | has("_bootstrap")
        };
        let stacks: Vec<_> = (0..100)
            .map(|_| {
                std::thread::sleep(Duration::from_micros(700));
                interpreter.stack()
            })
            .collect();
        let computing = stacks.iter().flatten().filter(|stack| computes(stack));
        let computing = computing.count();
        assert!(computing > 80, "{python}: {computing}");

        let deep = Running::start(&python, &["deep"]);
        let mut interpreter = deep.open();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            deep.stop();
            let stack = interpreter.stack().unwrap();
            deep.send(Signal::SIGCONT);
            assert!(stack.len() <= MOST_FRAMES);
            if stack.len() == MOST_FRAMES && stack.iter().all(|c| c.function.name != "<module>") {
                break;
            }
            assert!(Instant::now() < until, "{python}");
        }
    }
}
