//! `unfuse source`: generated code and Python files with the share of samples beside each line.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use unfuse_format::counted;
use unfuse_postprocess::plain::{self, Form};
use unfuse_postprocess::{AnnotatedLine, AnnotatedSource, annotated};

use super::Input;
use crate::output::write_plain_to;

/// Lines without samples that are printed around a line with samples.
const CONTEXT: usize = 4;

/// Show generated code with operator and share of samples beside each line, and the hot lines of Python files
#[derive(Debug, Args)]
pub struct Source {
    #[command(flatten)]
    input: Input,
    /// Print every line, also those far from lines with samples
    #[arg(long)]
    all: bool,
}

impl Source {
    /// Prints the sources, those with most samples first.
    pub fn execute(self) -> Result<ExitCode> {
        let (profile, selection) = self.input.open()?;
        let sources = annotated(&profile, selection)?;
        if sources.is_empty() {
            bail!(
                "no sample is in generated code or Python; `unfuse top DIR --by method` lists methods instead"
            );
        }
        write_plain_to(None, Form::Text, |out| {
            for source in &sources {
                self.print(source, out)?;
            }
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, source: &AnnotatedSource, out: &mut dyn Write) -> Result<()> {
        let share = |value: u64| 100.0 * value as f64 / source.of.value.max(1) as f64;
        let queries: Vec<String> = source.queries.iter().map(ToString::to_string).collect();
        let stored = match source.hash.as_str() {
            "" => String::new(),
            hash => format!(" (sources/{hash}.java)"),
        };
        writeln!(
            out,
            "== {}{stored}, queries {}: {:.1}% of samples",
            source.class,
            if queries.is_empty() {
                "-".to_owned()
            } else {
                queries.join(", ")
            },
            share(source.weight.value),
        )?;
        let mut cut = 0;
        let mut before: Option<&str> = None;
        for (index, line) in source.lines.iter().enumerate() {
            if !self.all && !is_near_hot(&source.lines, index) {
                cut += 1;
                continue;
            }
            if cut > 0 {
                writeln!(out, "{:>9}  {:<24} … {}", "", "", without_samples(cut))?;
                cut = 0;
                before = None;
            }
            let operator = line.operator.as_deref();
            // The operator's name where its region begins, a bar where it goes on.
            let gutter = match operator {
                Some(name) if operator != before => name,
                Some(_) => "|",
                None => "",
            };
            before = operator;
            let percent = if line.weight.samples > 0 {
                format!("{:>6.2}%", share(line.weight.value))
            } else {
                String::new()
            };
            let gutter: String = plain::line(gutter).chars().take(24).collect();
            writeln!(
                out,
                "{percent:>8}  {gutter:<24} {:>5}  {}",
                line.number, line.text
            )?;
        }
        if cut > 0 {
            writeln!(out, "{:>9}  {:<24} … {}", "", "", without_samples(cut))?;
        }
        writeln!(out)?;
        Ok(())
    }
}

fn without_samples(lines: usize) -> String {
    format!("{} without samples", counted(lines, "line"))
}

fn is_near_hot(lines: &[AnnotatedLine], index: usize) -> bool {
    let near = &lines[index.saturating_sub(CONTEXT)..lines.len().min(index + CONTEXT + 1)];
    near.iter().any(|line| line.weight.samples > 0)
}
