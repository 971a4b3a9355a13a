//! Instructions of fixed work, counted by callgrind and compared with those kept in `gate.toml`. Counts do not depend on
//! what else the machine does, so they can tell 2% where times cannot.

mod callgrind;
mod comparison;
mod resolve;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::Args;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use self::callgrind::Counts;
use self::comparison::Comparison;
use crate::synthetic;

/// What was counted when the code was last accepted.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gate.toml");
/// Queries of the made-up profile that commands read.
const QUERIES: usize = 200;

/// Instructions of fixed work, under valgrind, against those kept in bench/gate.toml
#[derive(Debug, Args)]
pub struct Gate {
    /// Keep the counts of this run instead of comparing with the kept ones
    #[arg(long)]
    update: bool,
    /// Resolve addresses and count nothing
    #[arg(long, hide = true)]
    resolve: bool,
}

/// A piece of work: a command line of a program beside this one.
struct Work {
    name: &'static str,
    program: &'static str,
    /// `PROFILE` and `OUT` stand for files in a scratch directory.
    arguments: &'static [&'static str],
}

const WORKS: [Work; 6] = [
    Work {
        name: "resolve a million addresses",
        program: "unfuse-bench",
        arguments: &["gate", "--resolve"],
    },
    Work {
        name: "read a profile and attribute it",
        program: "unfuse",
        arguments: &["top", "PROFILE", "--json"],
    },
    Work {
        name: "fold",
        program: "unfuse",
        arguments: &["export", "PROFILE", "--format", "folded", "-o", "OUT"],
    },
    Work {
        name: "blame",
        program: "unfuse",
        arguments: &["blame", "PROFILE", "--victim", "100", "--json"],
    },
    Work {
        name: "propagate the time of records",
        program: "unfuse",
        arguments: &["skew", "PROFILE", "--json"],
    },
    Work {
        name: "write the report",
        program: "unfuse",
        arguments: &["report", "PROFILE", "-o", "OUT"],
    },
];

impl Gate {
    /// Counts each work and compares; an error if one needs more instructions than is allowed.
    pub fn run(&self) -> Result<()> {
        if self.resolve {
            return resolve::a_million();
        }
        use_one_cpu()?;
        let scratch = tempfile::tempdir()?;
        synthetic::write(&scratch.path().join("PROFILE"), QUERIES, false)?;
        let mut counted = BTreeMap::new();
        for work in &WORKS {
            counted.insert(work.name.to_owned(), work.count(scratch.path())?);
        }
        if self.update {
            let text = format!(
                "# Instructions of fixed work on x86-64, and of the functions with most of them. `unfuse-bench gate` compares,\n\
                 # `unfuse-bench gate --update` writes this file.\n\n{}",
                toml::to_string(&counted)?
            );
            return fs::write(KEPT, text).with_context(|| format!("cannot write {KEPT}"));
        }
        let kept = fs::read_to_string(KEPT).with_context(|| format!("cannot read {KEPT}"))?;
        let kept: BTreeMap<String, Counts> = toml::from_str(&kept)
            .with_context(|| format!("{KEPT} is not as --update writes it"))?;
        let comparisons = WORKS
            .iter()
            .map(|work| Comparison::new(work.name, &counted[work.name], kept.get(work.name)))
            .collect::<Result<Vec<_>>>()?;
        for comparison in &comparisons {
            print!("{comparison}");
        }
        if comparisons.iter().any(Comparison::has_grown) {
            bail!(
                "more instructions than are kept in bench/gate.toml; if they are worth it: unfuse-bench gate --update"
            );
        }
        Ok(())
    }
}

impl Work {
    fn count(&self, scratch: &Path) -> Result<Counts> {
        let program = std::env::current_exe()?.with_file_name(self.program);
        let arguments: Vec<OsString> = self
            .arguments
            .iter()
            .map(|argument| match *argument {
                "PROFILE" | "OUT" => scratch.join(argument).into(),
                other => other.into(),
            })
            .collect();
        callgrind::count(&program, &arguments, &scratch.join("callgrind"))
            .with_context(|| format!("counting “{}”", self.name))
    }
}

/// Programs start as many threads as they may use CPUs; the counts must not depend on the machine's.
fn use_one_cpu() -> Result<()> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let mut first = CpuSet::new();
    for cpu in 0..CpuSet::count() {
        if allowed.is_set(cpu)? {
            first.set(cpu)?;
            break;
        }
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &first)?)
}
