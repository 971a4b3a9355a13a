//! The verdict: where the time of the applications went, which operators cost most, what is unusual, and which command shows more.
//!
//! Numbers are computed first (`time`, `operators`); rules with limits decide which of them become sentences
//! (`rules/verdict.toml`). A sentence on a share has its interval, and is left out if the interval does not support it.

mod measures;
mod operators;
mod text;
mod time;

use std::sync::LazyLock;

use serde::Deserialize;
use unfuse_format::{FormatError, GARBAGE_COLLECTION, JIT_COMPILATION};
use unfuse_postprocess::{Profile, line_work};

use crate::TasksByStage;
use crate::lines::LineTexts;
use crate::model::{
    Cost, HotLine, PartKind, Sentence, SentenceKind, Summary, Verdict, VerdictPart,
};
use crate::text::shorten;
use crate::words;
use measures::{Measure, Measurement, Measures};
use operators::OperatorCost;
use time::Slots;

pub(crate) use operators::NodeCost;
pub use text::{COLUMNS, LINES, render};
pub(crate) use time::{SampledTime, slots_at};

/// Maximum number of operators in sentences.
const MOST_OPERATORS: usize = 3;
/// Maximum number of unusual things in sentences.
const MOST_UNUSUAL: usize = 4;
/// Maximum number of commands in sentences.
const MOST_NEXT: usize = 3;
/// An operator is named if it certainly used at least this part of the CPU time.
const LEAST_SHARE: f64 = 0.05;
/// The first sentence lists the parts of a kind if it has at least this percentage.
const LEAST_LISTED: u32 = 3;
/// Maximum number of parts of a kind in the first sentence.
const MOST_PARTS: usize = 3;

#[derive(Deserialize)]
struct Rules {
    rule: Vec<Rule>,
}

#[derive(Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Rule {
    kind: RuleKind,
    measure: Measure,
    at_least: f64,
    text: String,
    next: Option<String>,
    command: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleKind {
    Certainty,
    Unusual,
}

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules: Rules = toml::from_str(include_str!("../../rules/verdict.toml"))
        .expect("the rules are part of the program, and a test reads them");
    rules.rule
});

/// What one query, or the work outside queries, contributes to the verdict.
#[derive(Debug, Clone, Default)]
pub(crate) struct Digest {
    /// CPU time and waits.
    pub(crate) sampled: SampledTime,
    /// Its operators.
    pub(crate) nodes: Vec<NodeCost>,
}

/// Makes the verdict on a profile. `digests` are in the order of the summary's queries.
///
/// # Errors
/// If tables of the profile cannot be read.
pub(crate) fn verdict(
    profile: &Profile,
    summary: &Summary,
    tasks: &TasksByStage,
    digests: Vec<Digest>,
) -> Result<Verdict, FormatError> {
    let mut sampled = SampledTime::default();
    digests
        .iter()
        .for_each(|digest| sampled.add(&digest.sampled));
    let nodes = digests.into_iter().map(|digest| digest.nodes);
    let operators = operators::operators(&summary.queries, nodes.collect());
    let slots = Slots::from_profile(profile, &summary.applications, tasks)?;
    let parts = time::parts(&sampled, &slots, !profile.waits.is_empty());
    let whole_ns = parts
        .iter()
        .fold(0u64, |sum, part| sum.saturating_add(part.ns));
    let mut verdict = Verdict {
        whole: whole(&slots, &parts),
        whole_ns,
        duration_ms: slots.duration_ms,
        slots: slots.count(),
        parts,
        sentences: Vec::new(),
    };
    let named: Vec<OperatorCost> = named(&operators, summary.total);
    let measures = Measures {
        profile,
        summary,
        slots: &slots,
        parts: &verdict.parts,
        whole_ns,
        named: &named,
    };
    let found = found(&measures);
    let whole = format!("100% is {}: {}.", words::time(whole_ns), verdict.whole);
    let mut sentences = vec![
        sentence(SentenceKind::Time, time_sentence(&verdict, summary)),
        sentence(SentenceKind::Time, whole),
    ];
    let rules = |kind| found.iter().filter(move |(rule, _)| rule.kind == kind);
    sentences.extend(rules(RuleKind::Certainty).map(|(rule, found)| rule.sentence(found)));
    sentences.extend(operator_sentences(profile, summary, &operators, &named));
    let unusual: Vec<_> = rules(RuleKind::Unusual).take(MOST_UNUSUAL).collect();
    if unusual.is_empty() {
        sentences.push(sentence(
            SentenceKind::Unusual,
            "Nothing else stands out.".to_owned(),
        ));
    }
    sentences.extend(unusual.iter().map(|(rule, found)| rule.sentence(found)));
    sentences.extend(next_sentences(summary, &operators, &named, &unusual));
    verdict.sentences = sentences;
    Ok(verdict)
}

fn sentence(kind: SentenceKind, text: String) -> Sentence {
    Sentence {
        kind,
        text,
        evidence: None,
        command: None,
    }
}

/// What all parts add up to, in words.
fn whole(slots: &Slots, parts: &[VerdictPart]) -> String {
    let has = |kind| parts.iter().any(|part| part.kind == kind);
    let of_tasks = match slots.slot_ns {
        Some(_) => "the time of all task slots",
        None => "the time of all tasks",
    };
    let ran = [
        PartKind::Operators,
        PartKind::Tasks,
        PartKind::Waiting,
        PartKind::Idle,
    ];
    match (ran.into_iter().any(has), has(PartKind::Beside)) {
        (true, true) => format!("{of_tasks}, and the CPU time of other threads"),
        (true, false) => of_tasks.to_owned(),
        (false, _) => "the CPU time of all threads".to_owned(),
    }
}

/// Operators that certainly have a high cost, most first.
fn named(operators: &[OperatorCost], total: Cost) -> Vec<OperatorCost> {
    let costs = |operator: &&OperatorCost| {
        let (low, _) = operator.evidence.bounds(total.cpu_ns, total.samples);
        low >= LEAST_SHARE
    };
    let named = operators.iter().take(MOST_OPERATORS).filter(costs);
    named.cloned().collect()
}

/// The rules that apply; for each measure only the first.
fn found(measures: &Measures<'_>) -> Vec<(&'static Rule, Measurement)> {
    let mut applied: Vec<(&'static Rule, Measurement)> = Vec::new();
    for rule in RULES.iter() {
        if applied
            .iter()
            .any(|(known, _)| known.measure == rule.measure)
        {
            continue;
        }
        let found = measures.evaluate(rule.measure);
        if let Some(found) = found.filter(|found| found.value >= rule.at_least) {
            applied.push((rule, found));
        }
    }
    applied
}

impl Rule {
    fn sentence(&self, found: &Measurement) -> Sentence {
        let kind = match self.kind {
            RuleKind::Certainty => SentenceKind::Certainty,
            RuleKind::Unusual => SentenceKind::Unusual,
        };
        // The subject may contain any text, so it is inserted last.
        let text = self
            .text
            .replace("{time}", &words::time(found.ns))
            .replace("{percent}", &words::percent(found.part))
            .replace("{value}", &found.shown)
            .replace("{subject}", &found.subject);
        let text = match text.split_at_checked(1) {
            Some((first, rest)) => first.to_uppercase() + rest,
            None => text,
        };
        Sentence {
            evidence: found.evidence.clone(),
            ..sentence(kind, text)
        }
    }
}

/// How the applications spent their time, in percentages that add up to 100.
fn time_sentence(verdict: &Verdict, summary: &Summary) -> String {
    let groups = groups(&verdict.parts);
    let sums: Vec<u64> = groups.iter().map(|(_, _, ns)| *ns).collect();
    let percentages = words::percentages(&sums, verdict.whole_ns, 100);
    let mut texts: Vec<String> = Vec::new();
    for ((name, parts, ns), percent) in groups
        .iter()
        .zip(percentages)
        .filter(|(_, percent)| *percent > 0)
    {
        let inner: Vec<u64> = parts.iter().map(|(_, ns)| *ns).collect();
        let inner = words::percentages(&inner, *ns, percent);
        let inner = parts.iter().zip(inner).filter(|(_, percent)| *percent > 0);
        let inner: Vec<String> = inner
            .map(|((name, _), percent)| format!("{name} {percent}%"))
            .collect();
        texts.push(match percent < LEAST_LISTED || inner.is_empty() {
            true => format!("{percent}% {name}"),
            false => format!("{percent}% {name} ({})", inner.join(", ")),
        });
    }
    let applications = summary
        .applications
        .iter()
        .filter(|app| !app.id.is_empty())
        .count();
    let time = words::time(verdict.duration_ms.saturating_mul(1_000_000));
    let ran = match (applications, verdict.slots) {
        (0, _) => format!(
            "The JVMs used {} of CPU time",
            words::time(verdict.whole_ns)
        ),
        (1, Some(slots)) => format!("The application ran {time} on {}", slots_text(slots)),
        (1, None) => format!("The application ran {time}"),
        (several, Some(slots)) => format!(
            "{} ran {time} in all on {}",
            words::count(several, "application"),
            slots_text(slots)
        ),
        (several, None) => format!("{} ran {time} in all", words::count(several, "application")),
    };
    if texts.is_empty() {
        return format!("{ran}; nothing was sampled.");
    }
    format!("{ran}: {}.", texts.join(", "))
}

fn slots_text(slots: f64) -> String {
    let whole = slots.round();
    if (slots - whole).abs() < 0.05 * slots {
        words::count(whole.max(1.0) as usize, "slot")
    } else {
        format!("{slots:.1} slots on average")
    }
}

/// A group of parts in the first sentence: its name, its named parts, and the sum, ns.
type PartGroup = (String, Vec<(String, u64)>, u64);

/// Groups parts for the first sentence: JIT compilation and garbage collection on their own, others by kind.
fn groups(parts: &[VerdictPart]) -> Vec<PartGroup> {
    let mut groups: Vec<PartGroup> = Vec::new();
    for part in parts {
        let alone = [JIT_COMPILATION, GARBAGE_COLLECTION].contains(&part.name.as_str());
        let (name, is_listed) = match part.kind {
            PartKind::Operators => ("CPU in operators", false),
            PartKind::Tasks => ("CPU in other work of tasks", true),
            PartKind::Waiting => ("waiting", true),
            PartKind::Beside if alone => (part.name.as_str(), false),
            PartKind::Beside => ("CPU of other threads", true),
            PartKind::Unknown | PartKind::Scheduling | PartKind::Idle => {
                (part.name.as_str(), false)
            }
        };
        let index = groups.iter().position(|(known, _, _)| known == name);
        let index = index.unwrap_or_else(|| {
            groups.push((name.to_owned(), Vec::new(), 0));
            groups.len() - 1
        });
        let (_, named, sum) = &mut groups[index];
        time::add(sum, part.ns);
        if is_listed {
            named.push((part.name.clone(), part.ns));
        }
    }
    for (_, named, _) in &mut groups {
        let rest = named.split_off(named.len().min(MOST_PARTS));
        let other = named.iter().position(|(name, _)| name == "other");
        let ns = rest
            .iter()
            .fold(0u64, |sum, (_, ns)| sum.saturating_add(*ns));
        match other {
            Some(index) => time::add(&mut named[index].1, ns),
            None if ns > 0 => named.push(("other".to_owned(), ns)),
            None => {}
        }
    }
    groups
}

fn operator_sentences(
    profile: &Profile,
    summary: &Summary,
    operators: &[OperatorCost],
    named: &[OperatorCost],
) -> Vec<Sentence> {
    let total = summary.total;
    let range = |operator: &OperatorCost| {
        let (low, high) = operator.evidence.bounds(total.cpu_ns, total.samples);
        let share = operator.cost.cpu_ns as f64 / total.cpu_ns.max(1) as f64;
        format!(
            "{:.1}% ({:.1} to {:.1}%)",
            100.0 * share,
            100.0 * low,
            100.0 * high
        )
    };
    if named.is_empty() {
        return match operators.first() {
            Some(operator) => vec![Sentence {
                evidence: Some(operator.evidence_link()),
                ..sentence(
                    SentenceKind::Operator,
                    format!(
                        "No operator stands out: the most that one used is {} of the CPU time, by {}.",
                        range(operator),
                        place(summary, operator)
                    ),
                )
            }],
            None if total.samples > 0 => vec![sentence(
                SentenceKind::Operator,
                "No SQL operator used CPU time.".to_owned(),
            )],
            None => Vec::new(),
        };
    }
    let wanted = named
        .iter()
        .filter_map(|operator| operator.hot_line.as_ref());
    let texts = LineTexts::from_lines(profile, wanted);
    let of = |operator: &OperatorCost| {
        let mut text = format!(
            "{} used {} of the CPU time",
            place(summary, operator),
            range(operator)
        );
        if let Some((cost, rows)) = operator.per_row(total) {
            text += &format!(", {} per {rows} row", words::row_time(cost.ns));
        }
        if let Some(line) = &operator.hot_line {
            text += &hottest(line, &texts, operator.cost);
        }
        Sentence {
            evidence: Some(operator.evidence_link()),
            ..sentence(SentenceKind::Operator, text + ".")
        }
    };
    named.iter().map(of).collect()
}

/// `HashAggregate (node 10 of “…”, 8 runs)`.
fn place(summary: &Summary, operator: &OperatorCost) -> String {
    let family = &summary.families[operator.family];
    let runs = match family.runs.len() {
        1 => String::new(),
        several => format!(", {}", words::count(several, "run")),
    };
    let (name, id) = (shorten(&family.name, 40), operator.id);
    format!(
        "{} (node {id} of “{name}”{runs})",
        shorten(&operator.operator, 40)
    )
}

/// The line with the most CPU time, if its part is large enough.
fn hottest(line: &HotLine, texts: &LineTexts, whole: Cost) -> String {
    let part = line.cost.cpu_ns as f64 / whole.cpu_ns.max(1) as f64;
    let callee = line.callee.as_deref();
    let (code, work) = match &line.hash {
        Some(hash) => {
            let code = texts.text(hash, line.line);
            (code, line_work(code, callee.unwrap_or_default()))
        }
        None => {
            let method = line.text.as_str();
            (method, line_work("", callee.unwrap_or(method)))
        }
    };
    let work = work.map_or_else(String::new, |work| format!(" ({work}):"));
    let code = match code {
        "" => String::new(),
        code => format!(" `{}`", shorten(code, 40)),
    };
    let mut text = match line.line {
        0 => format!("; hottest method{work}{code}"),
        _ => format!("; hottest line{work} {}{code}", line.place),
    };
    if let Some(callee) = callee {
        text += &format!(", in {}", shorten(callee, 60));
    }
    text + &format!(" ({})", words::percent(part))
}

/// Commands that show more: on the operator with the highest cost, and on what is unusual.
fn next_sentences(
    summary: &Summary,
    operators: &[OperatorCost],
    named: &[OperatorCost],
    unusual: &[&(&'static Rule, Measurement)],
) -> Vec<Sentence> {
    let dir = words::shell(&summary.profile);
    let mut next: Vec<Sentence> = Vec::new();
    if let Some(operator) = named.first() {
        let query = summary.queries[operator.place.0].query.unwrap_or_default();
        let is_generated = operator
            .hot_line
            .as_ref()
            .is_some_and(|line| line.hash.is_some());
        let command = match is_generated {
            true => format!("unfuse source {dir} --query {query}"),
            false => format!("unfuse top {dir} --by line --query {query}"),
        };
        next.push(Sentence {
            evidence: None,
            command: Some(command),
            ..sentence(
                SentenceKind::Next,
                format!("See the lines of {}", shorten(&operator.operator, 40)),
            )
        });
    }
    if operators.is_empty() && summary.total.samples > 0 {
        next.push(Sentence {
            command: Some(format!("unfuse top {dir} --by line")),
            ..sentence(
                SentenceKind::Next,
                "See the lines that used most".to_owned(),
            )
        });
    }
    for (rule, found) in unusual {
        let (Some(text), Some(command)) = (&rule.next, &rule.command) else {
            continue;
        };
        let command = command.replace("DIR", &dir);
        if next
            .iter()
            .all(|known| known.command.as_ref() != Some(&command))
        {
            next.push(Sentence {
                evidence: found.evidence.clone(),
                command: Some(command),
                ..sentence(SentenceKind::Next, text.clone())
            });
        }
    }
    next.truncate(MOST_NEXT);
    next
}

#[cfg(test)]
mod tests;
