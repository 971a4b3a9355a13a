//! The answer as text.

use std::fmt::Write;

use super::Rank;
use super::answer::{Answer, Baselines, Row, Scope, Victim};
use crate::text::{list, shorten};

/// Columns of the text.
const WIDTH: usize = 110;
/// A victim that would end by less than this part of its time sooner was not slowed down.
const LEAST_HARM: f64 = 0.02;

/// The answer as text for a terminal; `by` is the key of the ranking.
pub fn render(answer: &Answer, by: Rank) -> String {
    let mut text = String::new();
    match answer.victims.as_slice() {
        [one] if answer.one_victim => {
            let _ = writeln!(text, "{}", shorten(&one.label, WIDTH));
            if one.stages.is_empty() {
                text += "Nothing was recorded of this query, so its waits are unknown.\n";
                notes(&mut text, answer);
                return text;
            }
            about(&mut text, one, &answer.scope);
            harm(&mut text, one, &answer.ranked);
            text.push('\n');
        }
        several => overview(&mut text, several),
    }
    ranking(&mut text, answer, by);
    if !answer.suggestions.is_empty() {
        text += "\nWhat may help (heuristics, not tried):\n";
        for advice in &answer.suggestions {
            let sooner = advice.sooner.known().map(|[seconds, low, high]| {
                format!(" (it ends at most {seconds:.1} s sooner, {low:.1} to {high:.1} s)")
            });
            let sooner = sooner.unwrap_or_default();
            let _ = writeln!(
                text,
                "  {:>4.0}%  {}{sooner}",
                100.0 * advice.responsibility,
                advice.text
            );
        }
    }
    if let Some(baselines) = &answer.baselines {
        compared(&mut text, baselines);
    }
    notes(&mut text, answer);
    text
}

fn notes(text: &mut String, answer: &Answer) {
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
}

fn about(text: &mut String, victim: &Victim, scope: &Scope) {
    let one_task = victim.tasks == 1;
    let tasks = match victim.tasks {
        1 => "1 task".to_owned(),
        tasks => format!("{tasks} tasks"),
    };
    let stages = list(&victim.stages);
    let tasks = match (scope.all_stages, victim.stages.len()) {
        (true, _) => format!("All its stages ({stages}): {tasks}"),
        (false, 1) => format!("Its critical path is stage {stages}: {tasks}"),
        (false, _) => format!("Its critical path is stages {stages}: {tasks}"),
    };
    let ran = format!(
        "ran {:.1} s. {tasks} ran {:.1} s{}{} and {} blocked for {:.1} s ({}). {}.",
        victim.ran_seconds,
        victim.task_seconds,
        if one_task { "" } else { " in total" },
        if scope.window { " in the window" } else { "" },
        if one_task { "was" } else { "were" },
        victim.blocked_seconds,
        waiting(scope),
        parts(victim)
    );
    paragraph(text, &ran);
    // Below 1% it is not worth a sentence.
    if victim.counted_seconds > 0.01 * victim.queued_seconds {
        let part = 100.0 * (victim.counted_seconds / victim.queued_seconds).min(1.0);
        let counted = format!(
            "For {part:.0}% of its waits for a CPU ({:.1} s), the kernel recorded who had the CPU; the others are shared out by use.",
            victim.queued_seconds
        );
        paragraph(text, &counted);
    }
}

/// Who slowed the victim down most, in seconds of the victim.
fn harm(text: &mut String, victim: &Victim, rows: &[Row]) {
    let known = rows
        .iter()
        .filter_map(|row| Some((row, row.sooner.known()?)));
    let Some((row, [seconds, low, high])) = known.max_by(|(_, a), (_, b)| a[0].total_cmp(&b[0]))
    else {
        return;
    };
    let name = shorten(&row.name, 60);
    let start = match high < LEAST_HARM * victim.ran_seconds {
        true => "No single culprit slowed it down much: without",
        false => "Without",
    };
    paragraph(
        text,
        &format!("{start} {name}, it would end {seconds:.1} s sooner ({low:.1} to {high:.1} s)."),
    );
}

/// Wraps a paragraph between words.
fn paragraph(text: &mut String, words: &str) {
    let mut used = 0;
    for word in words.split(' ') {
        let length = word.chars().count();
        if used > 0 {
            let fits = used + 1 + length <= WIDTH;
            text.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        text.push_str(word);
        used += length;
    }
    text.push('\n');
}

/// The waits that the blocked time consists of.
fn waiting(scope: &Scope) -> String {
    let what = match scope.resources.as_slice() {
        [] => "with waits for slots".to_owned(),
        only => format!("waits for {}", only.join(", ")),
    };
    let on = match scope.hosts.as_slice() {
        [] => String::new(),
        hosts => format!(", on {}", list(hosts)),
    };
    format!("{what}{on}")
}

/// The parts of the blocked time by cause, as far as they are visible in tenths of seconds.
fn parts(victim: &Victim) -> String {
    let parts = [
        ("its own other tasks", victim.by_itself_seconds),
        ("garbage collection", victim.by_gc_seconds),
        ("the JVM's own work", victim.by_jvm_seconds),
        ("its own CPU limit", victim.by_own_limit_seconds),
        ("the hypervisor", victim.by_hypervisor_seconds),
        ("unknown", victim.by_unknown_seconds),
    ];
    let parts = parts.iter().filter(|(_, seconds)| *seconds >= 0.05);
    let parts = parts.map(|(who, seconds)| format!(", {who} {seconds:.1} s"));
    format!(
        "Blocked by: others {:.1} s{}",
        victim.by_others_seconds,
        parts.collect::<String>()
    )
}

fn overview(text: &mut String, victims: &[Victim]) {
    let _ = writeln!(
        text,
        "  ran s  blocked s  by others  query  <-  its main culprit"
    );
    for victim in victims.iter().filter(|victim| victim.blocked_seconds > 0.0) {
        let culprit = victim.main_culprit.as_deref().unwrap_or("no other");
        let _ = writeln!(
            text,
            "{:>7.1}  {:>9.1}  {:>9.1}  {}  <-  {}",
            victim.ran_seconds,
            victim.blocked_seconds,
            victim.by_others_seconds,
            shorten(&victim.label, 34),
            shorten(culprit, 34),
        );
    }
    text.push('\n');
}

fn ranking(text: &mut String, answer: &Answer, by: Rank) {
    let whose = match (by, answer.one_victim) {
        (Rank::Culprit, true) => "culprit",
        (Rank::Culprit, false) => "culprit",
        (Rank::Stage, _) => "culprit stage",
        (Rank::Operator, _) => "culprit operator",
        (Rank::Resource, _) => "resource",
        (Rank::Kind, _) => "kind of wait",
        (Rank::Host, _) => "host",
    };
    let head = if answer.one_victim { "share" } else { "  DOR" };
    if answer.ranked.is_empty() {
        let blocked: f64 = answer.victims.iter().map(|v| v.blocked_seconds).sum();
        text.push_str(match (blocked > 0.0, answer.waits_known) {
            (true, _) => "None of the selected culprits is to blame: others are.\n",
            (false, true) => "No task waited for anything in the selected part.\n",
            (false, false) => {
                "This profile has no data about waits, so contention cannot be analysed.\n"
            }
        });
        return;
    }
    let has_sooner = answer.ranked.iter().any(|row| row.sooner.known().is_some());
    let sooner = if has_sooner {
        "        ends sooner by, s"
    } else {
        ""
    };
    let _ = writeln!(text, "  {head}  blocked s{sooner}  {whose}");
    for row in &answer.ranked {
        // For several victims the parts do not add up to 1.
        let share = match answer.one_victim {
            true => format!("{:>6.1}%", 100.0 * row.responsibility),
            false => format!("{:>7.2}", row.responsibility),
        };
        let name = shorten(&row.name, WIDTH - 22 - sooner.len());
        let seconds = if has_sooner {
            self::sooner(row)
        } else {
            String::new()
        };
        let _ = writeln!(text, "{share}  {:>9.1}{seconds}  {name}", row.seconds);
        details(text, row, 20 + sooner.len());
    }
}

/// How much sooner the victim would end, with the interval.
fn sooner(row: &Row) -> String {
    let text = row
        .sooner
        .known()
        .map(|[seconds, low, high]| format!("{seconds:.1} ({low:.1} to {high:.1})"));
    format!("{:>25}", text.unwrap_or_else(|| "-".to_owned()))
}

/// Lines under a row, indented by so many columns.
fn details(text: &mut String, row: &Row, indent: usize) {
    let mut add = |line: &str| {
        let _ = writeln!(
            text,
            "{:indent$}  {}",
            "",
            shorten(line, WIDTH - 2 - indent)
        );
    };
    if !row.how.is_empty() {
        add(&row.how.join(", "));
    }
    if !row.operators.is_empty() {
        let operators: Vec<String> = row
            .operators
            .iter()
            .map(|(operator, share)| format!("{operator} {:.0}%", 100.0 * share))
            .collect();
        add(&format!("CPU by its operators: {}", operators.join(", ")));
    }
}

fn compared(text: &mut String, baselines: &Baselines) {
    let first = |rows: &[(String, f64)]| {
        rows.first().map_or_else(
            || "none".to_owned(),
            |(name, seconds)| format!("{} ({seconds:.1} s)", shorten(name, 60)),
        )
    };
    text.push_str("\nSimpler methods, for comparison:\n");
    let _ = writeln!(
        text,
        "  longest overlap of queries:  {}",
        first(&baselines.naive_overlap)
    );
    let _ = writeln!(
        text,
        "  most overlap of tasks:       {}",
        first(&baselines.deep_overlap)
    );
    let _ = writeln!(
        text,
        "  blocked-time analysis:       {:.1} s of IO and network, from any cause",
        baselines.blocked_io_network
    );
}
