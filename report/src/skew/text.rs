//! The answer as text.

use std::fmt::Write;

use unfuse_skew::{Finding, HangingTask, Measure, SlowTask, Verdict};

use super::answer::{Answer, SkewedStage, is_skewed};
use super::records_text;
use crate::text::shorten;
use unfuse_format::counted;

/// Columns of the text.
pub(super) const WIDTH: usize = 110;
/// A smaller part of a task's time is not shown.
const LEAST: f64 = 0.01;

/// The answer as text for a terminal.
pub fn render(answer: &Answer) -> String {
    let mut text = String::new();
    if !answer.one_stage {
        overview(&mut text, answer);
    }
    for skewed in &answer.findings {
        about(&mut text, skewed, answer.top);
    }
    if let Some(records) = &answer.records {
        records_text::render(&mut text, records);
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn overview(text: &mut String, answer: &Answer) {
    if answer.skewed == 0 && answer.hanging == 0 {
        let _ = write!(text, "No slow tasks in {}", counted(answer.stages, "stage"));
    } else if answer.skewed == 0 {
        let _ = write!(
            text,
            "In {} of {} a task still runs, for much longer than the others took",
            answer.hanging,
            counted(answer.stages, "stage")
        );
    } else {
        let _ = write!(
            text,
            "Slow tasks delay {} of {} by {} in total",
            answer.skewed,
            counted(answer.stages, "stage"),
            seconds(1e3 * answer.saved_seconds)
        );
    }
    if answer.skewed > 0 && answer.hanging > 0 {
        let _ = write!(
            text,
            "; in {} a task still runs, for much longer than the others took",
            answer.hanging
        );
    }
    match answer.too_few {
        0 => text.push_str(".\n"),
        1 => text.push_str("; 1 has too few tasks to judge.\n"),
        few => {
            let _ = writeln!(text, "; {few} have too few tasks to judge.");
        }
    }
    if answer.findings.is_empty() {
        return;
    }
    text.push_str("\n    saves  of         sure  stage  cause and place\n");
    for SkewedStage { finding, .. } in &answer.findings {
        // The cost of a task that still runs is unknown.
        let (saves, sure) = match is_skewed(finding) {
            true => (seconds(finding.saved_ms), percent(finding.sure)),
            false => ("-".to_owned(), "-".to_owned()),
        };
        let _ = writeln!(
            text,
            "{saves:>9}  {:<9}  {sure:>4}  {:>5}  {}",
            seconds(finding.stage_ms),
            finding.stage,
            shorten(&format!("{}: {}", why(finding), place(finding)), WIDTH - 36),
        );
    }
    if answer.omitted > 0 {
        let _ = writeln!(text, "{:36}… {} more (--limit)", "", answer.omitted);
    }
    text.push('\n');
}

fn about(text: &mut String, skewed: &SkewedStage, top: usize) {
    let finding = &skewed.finding;
    let head = format!("stage {}: {}", finding.stage, place(finding));
    let _ = writeln!(text, "{}", shorten(&head, WIDTH));
    let mut line = format!(
        "  {}. {} on {} took {}; a typical task {}, the slowest {}",
        verdict(finding),
        counted(finding.counted, "task"),
        counted(finding.slots, "slot"),
        seconds(finding.stage_ms),
        seconds(finding.typical_ms),
        seconds(finding.slowest_ms),
    );
    if finding.uncounted > 0 {
        let _ = write!(
            line,
            "; {} failed, were killed or ran again",
            counted(finding.uncounted, "more attempt")
        );
    }
    let _ = writeln!(text, "{line}.");
    if finding.running > 0 {
        let _ = writeln!(
            text,
            "  {} still running, the longest for {}.",
            counted(finding.running, "task"),
            seconds(finding.longest_running_ms)
        );
    }
    for task in finding.hanging.iter().take(top) {
        let _ = writeln!(
            text,
            "  {} on executor {} of {}, {:.0} times as long as a typical task took. Its cause is unknown until it ends.",
            running(task),
            task.executor,
            task.host,
            task.times_typical
        );
    }
    if finding.parts.len() > 1 {
        let parts = finding
            .parts
            .iter()
            .take_while(|part| part.ms >= LEAST * finding.saved_ms);
        let parts: Vec<String> = parts
            .map(|part| format!("{} {}", part.cause.name(), seconds(part.ms)))
            .collect();
        let _ = writeln!(
            text,
            "  Saved if one cause alone were removed: {}.",
            parts.join(", ")
        );
    }
    if !finding.tasks.is_empty() {
        text.push_str("     task       took     slower  sure  for\n");
    }
    for task in finding.tasks.iter().take(top) {
        slow(text, finding, task);
    }
    if finding.tasks.len() > top {
        let _ = writeln!(
            text,
            "{:35}… {} more (--limit)",
            "",
            finding.tasks.len() - top
        );
    }
    if let Some(next) = &skewed.next {
        let _ = writeln!(text, "  Next: {next}.");
    }
    text.push('\n');
}

fn slow(text: &mut String, finding: &Finding, task: &SlowTask) {
    let parts = task
        .parts
        .iter()
        .filter(|part| part.ms >= LEAST * task.slower_ms);
    let mut parts: Vec<String> = parts
        .map(|part| format!("{} {}", part.cause.name(), seconds(part.ms)))
        .collect();
    if let (Some(measure), Some((has, typical))) = (finding.measure, task.amount) {
        parts.push(format!(
            "{} {} (typical {})",
            amount(measure, has),
            measure.name(),
            amount(measure, typical)
        ));
    }
    let _ = writeln!(
        text,
        "  {:>7}  {:>9}  {:>9}  {:>4}  {}",
        task.index,
        seconds(task.duration_ms),
        seconds(task.slower_ms),
        percent(task.sure),
        shorten(&parts.join("; "), WIDTH - 39),
    );
    let mut place = format!("executor {} on {}", task.executor, task.host);
    // Plus zero, to avoid a minus zero.
    let cpu = (task.slower_cpu_ms / 100.0).round() / 10.0 + 0.0;
    let _ = write!(place, ", CPU time {cpu:+.1} s");
    if task.spilled_bytes > 0 {
        let _ = write!(
            place,
            ", spilled {}B",
            amount(Measure::ReadBytes, task.spilled_bytes as f64)
        );
    }
    let _ = writeln!(text, "{:39}{}", "", shorten(&place, WIDTH - 39));
}

fn running(task: &HangingTask) -> String {
    let (index, time) = (task.index, seconds(task.running_ms));
    format!("Task {index} has been running for {time}")
}

fn why(finding: &Finding) -> String {
    let Some(task) = finding.hanging.first() else {
        return verdict(finding);
    };
    match finding.verdict {
        Verdict::Skewed(cause) => format!("{}. {}", cause.name(), running(task)),
        _ => running(task),
    }
}

fn verdict(finding: &Finding) -> String {
    match finding.verdict {
        Verdict::Even if finding.tasks.is_empty() => "its tasks are alike".into(),
        Verdict::Even => "slow tasks cost little".into(),
        Verdict::TooFew => "too few tasks to judge".into(),
        Verdict::Skewed(cause) => cause.name().into(),
    }
}

fn place(finding: &Finding) -> String {
    let name = match (finding.description.as_str(), finding.name.as_str()) {
        ("", name) => name.to_owned(),
        (description, "") => description.to_owned(),
        // The call site is the name of a query without a description.
        (description, name) if description == name => name.to_owned(),
        (description, name) => format!("{description} ({name})"),
    };
    match finding.sql {
        Some(sql) => format!("query {sql}, {name}"),
        None => name,
    }
}

pub(super) fn seconds(ms: f64) -> String {
    if ms < 9.95 {
        format!("{ms:.1} ms")
    } else if ms < 999.5 {
        format!("{ms:.0} ms")
    } else if ms < 99_950.0 {
        format!("{:.1} s", ms / 1e3)
    } else {
        format!("{:.0} s", ms / 1e3)
    }
}

/// At most 99%, because a test is never certain.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0}%", (100.0 * share).floor().min(99.0))
}

fn amount(measure: Measure, amount: f64) -> String {
    const MIB: f64 = 1024.0 * 1024.0;
    match measure {
        Measure::ReadRecords | Measure::WrittenRecords => format!("{amount:.0}"),
        Measure::ReadBytes | Measure::WrittenBytes if amount >= MIB => {
            format!("{:.1} Mi", amount / MIB)
        }
        Measure::ReadBytes | Measure::WrittenBytes => format!("{:.1} Ki", amount / 1024.0),
    }
}
