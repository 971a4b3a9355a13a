//! Pages as Markdown.

use std::fmt::{self, Write};

use anyhow::{Context, Result};

use super::{Commit, Figure, Machine, Measurement, Page, State};
use crate::aims::{AIMS, Aim};

impl Page {
    /// The page in Markdown: how the headline was measured, its figures beside their
    /// aims, the details, all other measurements.
    ///
    /// If there is no complete measurement, the newest partial one is the headline.
    ///
    /// # Errors
    /// If there is no measurement.
    pub fn markdown(&self) -> Result<String> {
        let headline = self
            .headline()
            .or_else(|| self.measurements.last())
            .with_context(|| format!("the page {} has no measurement", self.name))?;
        let mut text = format!(
            "<!-- Made from {name}.json and bench/aims.toml by `unfuse-bench pages --update`. -->\n\n# {name}\n\n{head}\n",
            name = self.name,
            head = headline.head(),
        );
        if let Some(note) = &headline.note {
            let _ = writeln!(text, "\n{note}");
        }
        text += "\n## Figures\n\nIntervals are 95% confidence intervals. An aim is *met* or *missed* only if the whole interval is on one side of the limit.\n\n";
        text += "| figure | measured | aim | verdict |\n|---|---|---|---|\n";
        for figure in &headline.figures {
            let _ = writeln!(text, "{}", row(&self.name, figure));
        }
        for aim in AIMS.iter().filter(|aim| aim.page == self.name) {
            if headline.figure(&aim.figure).is_none() {
                let limit = aim.text("");
                let _ = writeln!(
                    text,
                    "| {} | not measured | {limit} ({}) | not shown |",
                    aim.figure, aim.source
                );
            }
        }
        let _ = writeln!(
            text,
            "\n## Details\n\n{}",
            headline.body.join("\n").trim_end()
        );
        text += "\n## History\n\n";
        let others: Vec<&Measurement> = self
            .measurements
            .iter()
            .rev()
            .filter(|one| !std::ptr::eq(*one, headline))
            .collect();
        if others.is_empty() {
            text += "No other measurement of this page is known.\n";
        } else {
            text += "Every other measurement of this page, the newest first.\n\n";
        }
        for other in others {
            let _ = writeln!(text, "{}", other.line());
        }
        Ok(text)
    }
}

/// A figure as a row of a table: description, figure, aim and verdict.
fn row(page: &str, figure: &Figure) -> String {
    let (aim, verdict) = aim_and_verdict(page, figure);
    format!("| {} | {figure} | {aim} | {verdict} |", figure.what)
}

/// The aim of a figure with its source, and the verdict.
pub fn aim_and_verdict(page: &str, figure: &Figure) -> (String, String) {
    match Aim::find(page, &figure.name) {
        Some(aim) => (
            format!("{} ({})", aim.text(&figure.unit), aim.source),
            aim.verdict(figure).to_string(),
        ),
        None => (String::new(), String::new()),
    }
}

/// The index of all pages, with all aims and the figures that were measured for them.
pub fn index(pages: &[Page]) -> String {
    let mut text = String::from(
        "<!-- Made from the pages' data and bench/aims.toml by `unfuse-bench pages --update`. -->\n\n# What was measured\n\n\
         Each page shows how it was made, and keeps all earlier measurements. `unfuse-bench pages` lists pages that are \
         older than the code that they measure; `make bench` makes all of them again. An aim is *met* or *missed* only if the whole \
         95% confidence interval is on one side of the limit.\n\n\
         | page | measured | commit | machine | other measurements |\n|---|---|---|---|---|\n",
    );
    for page in pages {
        if let Some(headline) = page.headline() {
            let _ = writeln!(
                text,
                "| [{name}]({name}.md) | {} | {} | {} | {} |",
                headline.date,
                headline.commit,
                headline.machine.cpu,
                page.measurements.len() - 1,
                name = page.name,
            );
        }
    }
    text += "\n## Aims\n\n| page | figure | measured | aim | verdict |\n|---|---|---|---|---|\n";
    for aim in AIMS.iter() {
        let page = pages.iter().find(|page| page.name == aim.page);
        let _ = match page.and_then(|page| page.figure(&aim.figure)) {
            Some(figure) => writeln!(
                text,
                "| [{page}]({page}.md) {}",
                row(&aim.page, figure),
                page = aim.page
            ),
            None => writeln!(
                text,
                "| {} | {} | not measured | {} ({}) | not shown |",
                aim.page,
                aim.figure,
                aim.text(""),
                aim.source
            ),
        };
    }
    text
}

impl Measurement {
    /// How the measurement was made.
    fn head(&self) -> String {
        let runs = self.runs.map_or_else(
            || "number of runs: see below".to_owned(),
            |runs| format!("{runs} {}", if runs == 1 { "run" } else { "runs" }),
        );
        let load = self.load.map_or_else(
            || "not recorded".to_owned(),
            |load| format!("{load:.2} at its start"),
        );
        format!(
            "* Made by `{}`, {runs}\n* On {}, {}\n* Machine: {}\n* Load average: {load}",
            self.command, self.date, self.commit, self.machine
        )
    }

    /// The measurement as a line of the history.
    fn line(&self) -> String {
        let figures: Vec<String> = self
            .figures
            .iter()
            .map(|figure| format!("{}: {figure}", figure.what))
            .collect();
        let mut line = format!("* {}, {}, `{}`", self.date, self.commit, self.command);
        if let Some(runs) = self.runs {
            let _ = write!(line, ", {runs} {}", if runs == 1 { "run" } else { "runs" });
        }
        let _ = write!(line, ", {}", self.machine.cpu);
        if let Some(load) = self.load {
            let _ = write!(line, ", load {load:.2}");
        }
        if self.partial {
            line += ", a part of the figures only";
        }
        let _ = write!(line, ". {}.", figures.join("; "));
        if let Some(note) = &self.note {
            let _ = write!(line, " {note}");
        }
        line
    }
}

/// A unit after a number: with a space, except for the percent sign.
pub(crate) fn after_number(unit: &str) -> String {
    match unit {
        "" => String::new(),
        percent if percent.starts_with('%') => percent.to_owned(),
        unit => format!(" {unit}"),
    }
}

impl fmt::Display for Figure {
    /// Value, interval and unit: `1.081 (1.032 to 1.132)`, `232 ns (no interval)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.digits;
        write!(f, "{:.digits$}", self.value)?;
        f.write_str(&after_number(&self.unit))?;
        match self.interval {
            None => f.write_str(" (no interval)"),
            Some([low, high]) if low == high => Ok(()),
            Some([low, high]) => write!(f, " ({low:.digits$} to {high:.digits$})"),
        }
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            State::Clean => write!(f, "commit {}", self.id),
            State::Uncommitted => write!(f, "commit {} with uncommitted changes", self.id),
            State::AddedBy if self.id == "unknown" => f.write_str("commit unknown"),
            State::AddedBy => write!(f, "added by commit {} (its own was not recorded)", self.id),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cores of {}, Linux {}",
            self.cores, self.cpu, self.kernel
        )?;
        match self.memory_mib {
            Some(mib) => write!(f, ", {mib} MiB of memory"),
            None => f.write_str(", memory not recorded"),
        }
    }
}
