//! `unfuse history`: the same query over days.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use chrono::DateTime;
use clap::Args;
use unfuse_format::ProfileDir;
use unfuse_postprocess::{self as postprocess, Profile, histories, median};

use super::open;
use crate::output::{form, write_plain_to};
use crate::remote;
use unfuse_report::text::shorten;

/// The part of a query's CPU time below which an operator is not shown.
const LEAST: f64 = 0.002;

/// List queries with their runs, or compare the runs of one query over days and profiles
#[derive(Debug, Args)]
pub struct History {
    /// The query, or the beginning of its fingerprint; all queries are listed without
    #[arg(value_name = "FINGERPRINT")]
    fingerprint: Option<String>,
    /// Profile directories or their URIs, or local directories that hold some
    #[arg(long = "in", value_name = "DIR", num_args = 1.., default_value = ".")]
    dirs: Vec<PathBuf>,
    /// Print JSON: the query's runs with their operators, or an array of queries
    #[arg(long)]
    json: bool,
    /// Rows to show (text only); of runs the latest
    #[arg(long, default_value_t = 40, value_name = "N")]
    limit: usize,
}

impl History {
    /// Prints the table.
    pub fn execute(self) -> Result<ExitCode> {
        let profiles = self.profiles()?;
        let mut known = histories(&profiles);
        let Some(wanted) = &self.fingerprint else {
            return self.print(&known, || list(&known, self.limit));
        };
        let wanted = wanted.to_lowercase();
        let wanted = |history: &postprocess::History| history.fingerprint.starts_with(&wanted);
        known.retain(wanted);
        match known.as_slice() {
            [one] => self.print(one, || runs(one, self.limit)),
            [] => bail!("no query has that fingerprint; `unfuse history` lists them all"),
            several => bail!(
                "{} queries have fingerprints that begin so; give more of it",
                several.len()
            ),
        }
    }

    fn print(
        &self,
        data: &(impl serde::Serialize + ?Sized),
        text: impl FnOnce() -> String,
    ) -> Result<ExitCode> {
        write_plain_to(None, form(self.json), |out| {
            if self.json {
                serde_json::to_writer_pretty(&mut *out, data)?;
                return Ok(writeln!(out)?);
            }
            Ok(out.write_all(text().as_bytes())?)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    fn profiles(&self) -> Result<Vec<Profile>> {
        let mut profiles = Vec::new();
        for dir in &self.dirs {
            for profile in found(dir)? {
                profiles.push(open(&profile)?);
            }
        }
        if profiles.is_empty() {
            let dirs: Vec<String> = self
                .dirs
                .iter()
                .map(|dir| dir.display().to_string())
                .collect();
            bail!(
                "no profile in {}; name profile directories with --in",
                dirs.join(", ")
            );
        }
        Ok(profiles)
    }
}

/// The profile that a directory is, or those in it.
fn found(dir: &Path) -> Result<Vec<PathBuf>> {
    if remote::is_uri(dir) || ProfileDir::is_at(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    let entries = dir
        .read_dir()
        .with_context(|| format!("cannot read {}", dir.display()))?;
    let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    inside.retain(|dir| ProfileDir::is_at(dir));
    inside.sort();
    Ok(inside)
}

/// All queries, a line each.
fn list(histories: &[postprocess::History], limit: usize) -> String {
    let mut text =
        "fingerprint        runs  median cpu s    last  vs median  last run (UTC)    query\n"
            .to_owned();
    for history in histories.iter().take(limit) {
        let Some(last) = history.runs.last() else {
            continue;
        };
        let usual = history.median_cpu_s();
        let _ = writeln!(
            text,
            "{}  {:>5}  {usual:>12.2}  {:>6.2}  {:>9}  {}  {}",
            history.fingerprint,
            history.runs.len(),
            last.cpu_s,
            change(last.cpu_s, usual),
            time(last.started_ms),
            shorten(&history.description, 60),
        );
    }
    if histories.len() > limit {
        let _ = writeln!(text, "… {} more queries (--limit)", histories.len() - limit);
    }
    text
}

/// One query: its runs, then its operators over them.
fn runs(history: &postprocess::History, limit: usize) -> String {
    let usual = history.median_cpu_s();
    let mut text = format!(
        "{}  {}\n{} runs, median {usual:.2} s of CPU time\n\n",
        history.fingerprint,
        shorten(&history.description, 100),
        history.runs.len()
    );
    let skipped = history.runs.len().saturating_sub(limit);
    text +=
        "started (UTC)     duration s   cpu s  vs median  application                    query\n";
    if skipped > 0 {
        let _ = writeln!(text, "… {skipped} earlier runs (--limit)");
    }
    for run in &history.runs[skipped..] {
        let duration = run
            .duration_ms
            .map_or_else(|| "-".to_owned(), |ms| format!("{:.1}", ms as f64 / 1000.0));
        let failed = run
            .error
            .as_ref()
            .map_or_else(String::new, |e| format!("failed: {}", shorten(e, 40)));
        let line = format!(
            "{}  {duration:>10}  {:>6.2}  {:>9}  {:<29}  {:>5}  {failed}",
            time(run.started_ms),
            run.cpu_s,
            change(run.cpu_s, usual),
            run.app,
            run.query,
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text += "\nmedian cpu s    last  vs median  over the runs         operator\n";
    for (part, times) in &history.operators() {
        let median = median(&mut times.clone());
        let last = times.last().copied().unwrap_or_default();
        if median.max(last) < LEAST * usual {
            continue;
        }
        let node = part
            .node
            .map_or_else(String::new, |node| format!("({node})"));
        let name = if part.detail.is_empty() {
            &part.operator
        } else {
            &part.detail
        };
        let _ = writeln!(
            text,
            "{median:>12.2}  {last:>6.2}  {:>9}  {:<20}  {}",
            change(last, median),
            trend(times, 20),
            shorten(format!("{node} {name}").trim_start(), 60)
        );
    }
    text
}

fn change(value: f64, usual: f64) -> String {
    if usual <= 0.0 {
        return "-".to_owned();
    }
    format!("{:+.0}%", 100.0 * (value / usual - 1.0))
}

fn time(ms: Option<i64>) -> String {
    ms.and_then(DateTime::from_timestamp_millis).map_or_else(
        || format!("{:16}", "-"),
        |time| time.format("%Y-%m-%d %H:%M").to_string(),
    )
}

/// The last values as bars, from 0 to the largest of all.
fn trend(values: &[f64], most: usize) -> String {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let bars = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    values[values.len().saturating_sub(most)..]
        .iter()
        .map(|value| {
            if largest > 0.0 {
                bars[((value / largest * 8.0).ceil() as usize).clamp(1, 8) - 1]
            } else {
                bars[0]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trends_go_from_zero_to_the_largest() {
        assert_eq!(trend(&[0.0, 1.0, 4.0, 8.0], 20), "▁▁▄█");
        assert_eq!(trend(&[8.0, 1.0], 1), "▁");
        assert_eq!(trend(&[0.0], 5), "▁");
        assert_eq!(trend(&[], 5), "");
    }

    #[test]
    fn changes_are_against_what_is_usual() {
        assert_eq!(change(3.0, 2.0), "+50%");
        assert_eq!(change(1.0, 0.0), "-");
    }
}
