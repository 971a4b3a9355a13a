//! The answer as text.

use std::fmt::Write;

use unfuse_format::counted;
use unfuse_impact::{Analysis, Indicator, Interval, Resource, Verdict};

use super::answer::{Answer, Query, Workload};
use super::operators::at_base;
use crate::text::shorten;

/// Columns of the text.
const WIDTH: usize = 110;

/// The answer as text for a terminal, with at most `top` operators of each query.
pub fn render(answer: &Answer, top: usize) -> String {
    let mut text = String::new();
    for workload in &answer.workloads {
        write_workload(&mut text, workload);
    }
    if answer.workloads.len() > 1 {
        means(&mut text, &answer.workloads);
    }
    for query in &answer.queries {
        write_query(&mut text, query, top);
    }
    for note in &answer.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn write_workload(text: &mut String, workload: &Workload) {
    let analysis = &workload.analysis;
    if !workload.name.is_empty() {
        let _ = writeln!(text, "{}", workload.name);
    }
    let _ = writeln!(text, "{}\n", verdict(analysis));
    text.push_str("impact                95% interval      of\n");
    for indicator in &analysis.indicators {
        let _ = writeln!(
            text,
            "{} {:>6.2}   {:>16}      {}{}",
            indicator.resource.indicator(),
            rounded(indicator.value),
            interval(indicator.interval, 2),
            indicator.resource.name(),
            upgrade(indicator, analysis),
        );
        if let Some(why) = &indicator.outside {
            let _ = writeln!(text, "    outside 0 to 1: {why}");
        }
    }
    for missing in &analysis.missing {
        let name = missing.resource.indicator();
        let _ = writeln!(text, "{name}      -   {}", missing.why);
    }
    schemes(text, analysis);
    used(text, analysis);
    if !analysis.suggestions.is_empty() {
        text.push_str("\nWhat the paper suggests (not tried):\n");
        for advice in &analysis.suggestions {
            let _ = writeln!(text, "  {} (section {})", advice.text, advice.section);
        }
    }
    for note in &analysis.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text.push('\n');
}

/// Running times.
fn schemes(text: &mut String, analysis: &Analysis) {
    text.push_str("\n  cpu  disk        network     runs  seconds      95% interval  speed-up   CPI  at most\n");
    for time in &analysis.schemes {
        let scheme = &time.scheme;
        let cpi = analysis.improvements.iter().find(|i| i.scheme == *scheme);
        let last = match cpi {
            Some(i) => format!("  {:>4.2}  {:>7.2}", rounded(i.cpi), i.bound),
            None if *scheme == analysis.base => "  (base)".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(
            text,
            "{:>5}  {:<10}  {:<10}  {:>4}  {:>7.2}  {:>16}  {:>7.2}×{last}",
            scheme.cpu,
            shorten(&scheme.disk, 10),
            shorten(&scheme.network, 10),
            time.runs,
            time.seconds,
            interval(time.interval, 2),
            time.speedup,
        );
    }
}

/// Utilisation of resources, and the processor's counters.
fn used(text: &mut String, analysis: &Analysis) {
    let used = analysis.utilisation;
    let parts = [
        ("CPU", used.cpu),
        ("disk", used.disk),
        ("network", used.network),
    ];
    let known = parts
        .iter()
        .filter_map(|(what, part)| Some(format!("{what} {:.0}%", 100.0 * (*part)?)));
    let known: Vec<String> = known.collect();
    if !known.is_empty() {
        let known = known.join(", ");
        let _ = writeln!(text, "\nutilisation at the base scheme: {known}");
    }
    let counted = analysis.schemes.iter().filter_map(|time| {
        let ipc = time.counted.ipc?;
        let stalled = time.counted.stalled;
        let stalled = stalled.map_or_else(String::new, |part| {
            format!(", {:.0}% stalled", 100.0 * part)
        });
        Some(format!("  {ipc:.2}{stalled} at {}", time.scheme))
    });
    let counted: Vec<String> = counted.collect();
    if !counted.is_empty() {
        let _ = writeln!(text, "\ninstructions per cycle:\n{}", counted.join("\n"));
    }
}

/// As in table 1 of the paper.
fn means(text: &mut String, workloads: &[Workload]) {
    let _ = write!(text, "mean of {}:", counted(workloads.len(), "workload"));
    for resource in Resource::ALL {
        let values: Vec<f64> = workloads
            .iter()
            .filter_map(|workload| Some(workload.analysis.indicator(resource)?.value))
            .collect();
        if values.len() == workloads.len() {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let _ = write!(text, "  {} {:.2}", resource.indicator(), rounded(mean));
        }
    }
    text.push('\n');
}

fn write_query(text: &mut String, query: &Query, top: usize) {
    let _ = writeln!(
        text,
        "query {}  {}",
        &query.fingerprint[..query.fingerprint.len().min(8)],
        shorten(&query.description, WIDTH - 16)
    );
    let resources: Vec<Resource> = Resource::ALL
        .into_iter()
        .filter(|resource| {
            let all = query.operators.iter().map(|operator| &operator.analysis);
            all.chain(&query.analysis)
                .any(|a| a.indicator(*resource).is_some())
        })
        .collect();
    let _ = write!(text, "       s");
    for resource in &resources {
        let _ = write!(
            text,
            "  {:>5}  {:>14}",
            resource.indicator(),
            "95% interval"
        );
    }
    text.push_str("  limited by            what\n");
    if let Some(analysis) = &query.analysis {
        row(
            text,
            analysis,
            &resources,
            "the query, from its start to its end",
        );
    }
    for operator in query.operators.iter().take(top) {
        let name = if operator.detail.is_empty() {
            &operator.operator
        } else {
            &operator.detail
        };
        row(text, &operator.analysis, &resources, name);
    }
    if query.operators.len() > top {
        let _ = writeln!(
            text,
            "        … {} (--limit)",
            counted(query.operators.len() - top, "more operator")
        );
    }
    text.push_str("The time of an operator is the sum over its tasks at the base scheme, running and waiting.\n\n");
}

fn row(text: &mut String, analysis: &Analysis, resources: &[Resource], name: &str) {
    let _ = write!(text, "{:>8.2}", at_base(analysis));
    for resource in resources {
        let _ = match analysis.indicator(*resource) {
            Some(one) => {
                let about = interval(one.interval, 2);
                write!(text, "  {:>5.2}  {about:>14}", rounded(one.value))
            }
            None => write!(text, "  {:>5}  {:>14}", "-", ""),
        };
    }
    let limit = match &analysis.verdict {
        Verdict::Sure(one) | Verdict::OfMeasured(one) => one.name().to_owned(),
        Verdict::Likely(several) => names(several, " or "),
        Verdict::Single(one) => format!("{}?", one.name()),
        Verdict::Nothing => "unknown".to_owned(),
    };
    let room = WIDTH.saturating_sub(32 + 23 * resources.len()).max(40);
    let _ = writeln!(text, "  {limit:<20}  {}", shorten(name, room));
}

fn verdict(analysis: &Analysis) -> String {
    match &analysis.verdict {
        Verdict::Sure(one) => format!("The bottleneck is the {}.", one.name()),
        Verdict::OfMeasured(one) => {
            let missing: Vec<Resource> = analysis.missing.iter().map(|m| m.resource).collect();
            format!(
                "The bottleneck is the {}, or what was not measured: {}.",
                one.name(),
                names(&missing, ", ")
            )
        }
        Verdict::Likely(several) => format!(
            "The bottleneck is one of {}: these runs cannot separate them. More repetitions may.",
            names(several, ", ")
        ),
        Verdict::Single(one) => format!(
            "The bottleneck may be the {}. Single runs cannot exclude chance: repeat them.",
            one.name()
        ),
        Verdict::Nothing => {
            "No bottleneck found: no indicator is above 0 with 95% certainty. More repetitions may show one."
                .to_owned()
        }
    }
}

fn names(resources: &[Resource], between: &str) -> String {
    let names: Vec<&str> = resources.iter().map(|resource| resource.name()).collect();
    names.join(between)
}

/// The upgrade that an indicator is about, if there is one.
fn upgrade(indicator: &Indicator, analysis: &Analysis) -> String {
    let (scheme, base) = (&indicator.at, &analysis.base);
    match (scheme.disk != base.disk, scheme.network != base.network) {
        (false, false) => String::new(),
        (true, false) => format!(" (with {})", scheme.disk),
        (false, true) => format!(" (with {})", scheme.network),
        (true, true) => format!(" (left with {} and {})", scheme.disk, scheme.network),
    }
}

fn interval(interval: Option<Interval>, digits: usize) -> String {
    interval.map_or_else(
        || "-".to_owned(),
        |interval| {
            format!(
                "{:.digits$} to {:.digits$}",
                rounded(interval.low),
                rounded(interval.high)
            )
        },
    )
}

/// Avoids a minus sign before a value that is shown as zero.
fn rounded(value: f64) -> f64 {
    if value.abs() < 0.005 { 0.0 } else { value }
}
