//! Counts of a program's instructions, by valgrind's tool callgrind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// The C library copies and fills memory in a way of its own for each processor and size of its caches; with these bounds,
/// which no copy reaches, it has one way.
const TUNABLES: &str = "glibc.cpu.x86_rep_movsb_threshold=0x10000000:glibc.cpu.x86_rep_stosb_threshold=0x10000000:\
     glibc.cpu.x86_non_temporal_threshold=0x10000000";
/// Functions with a smaller part of all instructions are not kept.
const SMALLEST_PART: f64 = 0.005;

/// Instructions of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Of all functions.
    pub instructions: u64,
    /// Of each function without those that it calls, where they are at least half a percent of all.
    pub functions: BTreeMap<String, u64>,
}

/// Runs a program under callgrind, which writes to `output`.
pub fn count(program: &Path, arguments: &[OsString], output: &Path) -> Result<Counts> {
    let mut out_file = OsString::from("--callgrind-out-file=");
    out_file.push(output);
    let run = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--compress-strings=no",
            "--compress-pos=no",
        ])
        .env("GLIBC_TUNABLES", TUNABLES)
        .arg(out_file)
        .arg(program)
        .args(arguments)
        .output()
        .context("cannot run valgrind (Debian: apt-get install valgrind)")?;
    if !run.status.success() {
        bail!(
            "{} failed under valgrind: {}",
            program.display(),
            String::from_utf8_lossy(&run.stderr)
        );
    }
    parse(&fs::read_to_string(output)?)
}

/// The counts in a file of callgrind whose names and positions are not compressed.
fn parse(text: &str) -> Result<Counts> {
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut function, mut called) = ("", false);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            function = name;
        } else if line.starts_with("calls=") {
            called = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit()) {
            // The line after a call has the instructions of the called function.
            if !std::mem::take(&mut called) {
                let (_, instructions) = line.split_once(' ').context("a line without a count")?;
                *functions.entry(function).or_default() += instructions.parse::<u64>()?;
            }
        }
    }
    let instructions = functions.values().sum();
    ensure!(instructions > 0, "callgrind counted nothing");
    let mut counts = Counts {
        instructions,
        ..Counts::default()
    };
    for (name, count) in functions {
        *counts
            .functions
            .entry(without_hash(name).to_owned())
            .or_default() += count;
    }
    counts
        .functions
        .retain(|_, count| *count as f64 >= SMALLEST_PART * instructions as f64);
    Ok(counts)
}

/// A demangled name without the compiler's hash, which changes with each build.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => {
            rest
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "version: 1\nevents: Ir\n\nob=/bin/work\nfl=work.rs\nfn=work::main::h0123456789abcdef\n10 400\n11 100\n\
                        cfn=work::sum::haaaaaaaaaaaaaaaa\ncalls=3 20\n12 9000\n13 2\n\nfi=other.rs\nfn=work::sum::haaaaaaaaaaaaaaaa\n\
                        20 9000\nfn=start\n1 1\n\ntotals: 9503\n";

    #[test]
    fn calls_count_once_and_small_functions_are_left_out() {
        let counts = parse(FILE).expect("a file of callgrind");
        assert_eq!(counts.instructions, 9503);
        let functions = [
            ("work::main".to_owned(), 502),
            ("work::sum".to_owned(), 9000),
        ];
        assert_eq!(counts.functions, BTreeMap::from(functions));
    }

    #[test]
    fn what_is_no_count_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("fn=a\n12\n").is_err());
        assert!(parse("fn=a\n12 x\n").is_err());
    }
}
