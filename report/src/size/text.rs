//! Answers as text.

use std::fmt::Write;
use std::path::Path;

use unfuse_format::counted;
use unfuse_sizing::{Model, Range, Tariff};

use super::{Answer, Curve, FitAnswer, Job, PredictionAnswer};
use crate::text::shorten;

/// Columns of the text.
const WIDTH: usize = 110;
/// Kinds of unit tasks shown.
const UNITS: usize = 8;
/// Rows of a curve shown.
const ROWS: usize = 30;

/// A fit as text for a terminal.
pub fn render_fit(fitted: &FitAnswer<'_>) -> String {
    let mut text = String::new();
    let ranges = &fitted.ranges;
    let _ = writeln!(
        text,
        "{} ({}): {} runs with {} slots, {} iterations, {} of input\n",
        shorten(fitted.application, 40),
        fitted.category,
        fitted.runs,
        range(ranges.slots, number),
        range(ranges.iterations, number),
        range(ranges.bytes, bytes),
    );
    closed_form(&mut text, fitted);
    unit_tasks(&mut text, fitted);
    models(&mut text, fitted);
    let _ = writeln!(text, "\nwritten to {}", fitted.profile);
    for log in &fitted.left_out {
        let _ = writeln!(text, "note: {} is left out: {}", log.log, log.why);
    }
    notes(&mut text, &fitted.notes);
    text
}

/// The coefficients and where they come from.
fn closed_form(text: &mut String, fitted: &FitAnswer<'_>) {
    let (form, base) = (fitted.closed_form, fitted.baselines);
    let _ = writeln!(
        text,
        "closed form, in seconds, s in units of {}:",
        bytes(form.base_bytes)
    );
    let _ = writeln!(
        text,
        "  T = {:.2} + {:.4} n·iter + {:.3} iter·s/n + {:.3} s/n",
        form.preparation + form.initialization,
        form.sharing,
        form.execution,
        form.communication
    );
    let coefficient =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let _ = writeln!(
        text,
        "  T_init {:.2}   T_prep {:.2}   T_vs baseline {:.2}, coeff {}   T_commn baseline {:.2}, cf {}",
        form.initialization,
        form.preparation,
        base.sharing,
        coefficient(base.sharing_coefficient),
        base.communication,
        coefficient(base.communication_coefficient),
    );
}

/// The kinds of tasks with most time.
fn unit_tasks(text: &mut String, fitted: &FitAnswer<'_>) {
    text.push_str("\n    tasks    mean s  unit task\n");
    for unit in fitted.unit_tasks.iter().take(UNITS) {
        let _ = writeln!(
            text,
            "{:>9}  {:>8.3}  {}",
            unit.tasks,
            unit.mean_seconds,
            shorten(&unit.name, 80)
        );
    }
    if fitted.unit_tasks.len() > UNITS {
        let _ = writeln!(
            text,
            "           … {}",
            counted(fitted.unit_tasks.len() - UNITS, "more kind")
        );
    }
}

/// How well each model fits.
fn models(text: &mut String, fitted: &FitAnswer<'_>) {
    let held = fitted.validation.held_out.len();
    let _ = writeln!(
        text,
        "\n  mean error of the fit     of {}",
        counted(held, "held-out run")
    );
    for fits in &fitted.models {
        let held_out = fits
            .held_out_error
            .map_or_else(|| "unknown".to_owned(), percent);
        let mark = if fits.model == fitted.chosen {
            "  <- is used"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "{:>23}  {held_out:>22}  {}{mark}",
            percent(fits.fit_error),
            fits.model
        );
    }
}

/// A prediction as text for a terminal.
pub fn render_prediction(job: &Job, predicted: &PredictionAnswer) -> String {
    let mut text = String::new();
    let prediction = &predicted.prediction;
    let point = &prediction.at;
    let on = match &predicted.cluster {
        Some(cluster) => format!("{cluster} ({})", counted(number(point.slots), "slot")),
        None => counted(number(point.slots), "slot"),
    };
    let _ = writeln!(
        text,
        "{} with {} over {} on {on}:",
        shorten(&job.profile.application, 40),
        counted(number(point.iterations), "iteration"),
        bytes(point.bytes)
    );
    let _ = writeln!(
        text,
        "{:.1} s, between {:.1} and {:.1} s in 95 of 100 runs (by the {})",
        prediction.seconds, prediction.low, prediction.high, prediction.model
    );
    if let Some(terms) = &prediction.terms {
        let _ = writeln!(
            text,
            "T_init + T_prep {:.1} s, T_vs {:.1} s, T_commn {:.1} s, T_exec {:.1} s",
            terms.constant, terms.sharing, terms.communication, terms.execution
        );
    }
    if let Some(chance) = &predicted.deadline {
        let _ = writeln!(
            text,
            "{} a deadline of {:.1} s, with {} of being in time",
            if chance.in_time { "meets" } else { "misses" },
            chance.deadline,
            likelihood(chance.probability)
        );
    }
    error_of(&mut text, job);
    notes(&mut text, &prediction.notes);
    text
}

/// The best cluster as text for a terminal.
pub fn render_offer(job: &Job, answer: &Answer) -> String {
    let mut text = String::new();
    let offer = &answer.offer.offer;
    let _ = writeln!(
        text,
        "{} ({}{})",
        offer.cluster,
        counted(number(offer.slots), "slot"),
        tariff(answer.tariff)
    );
    let _ = writeln!(
        text,
        "{:.1} s, between {:.1} and {:.1} s in 95 of 100 runs (by the {})",
        offer.seconds, answer.offer.low, answer.offer.high, answer.model
    );
    let _ = writeln!(
        text,
        "costs {} {} for the run, {} an hour",
        money(offer.cost),
        answer.currency,
        money(offer.per_hour)
    );
    if let Some(chance) = &answer.deadline {
        let _ = writeln!(
            text,
            "ends before {:.1} s with {}",
            chance.deadline,
            likelihood(chance.probability)
        );
    }
    if let Some(bound) = &answer.bound {
        let _ = writeln!(
            text,
            "lower bound of the cost: {} {} (interior point, {:.2} slots)",
            money(bound.least_cost),
            answer.currency,
            bound.slots
        );
    }
    error_of(&mut text, job);
    notes(&mut text, &answer.notes);
    text
}

/// A curve as text for a terminal; `plot` is the file with its plot.
pub fn render_curve(job: &Job, curve: &Curve, plot: Option<&Path>) -> String {
    let mut text = format!(
        "   time s   95 of 100 within    cost {:<4} slots  cluster{}\n",
        curve.currency,
        tariff(curve.tariff)
    );
    for priced in curve.offers.iter().take(ROWS) {
        let offer = &priced.offer;
        let within = format!("{:.1} to {:.1}", priced.low, priced.high);
        let _ = writeln!(
            text,
            "{:>9.1}  {within:>17}  {:>10}  {:>5}  {}",
            offer.seconds,
            money(offer.cost),
            number(offer.slots),
            shorten(&offer.cluster.to_string(), WIDTH - 50)
        );
    }
    if curve.offers.len() > ROWS {
        let _ = writeln!(
            text,
            "          … {} more (--json has all)",
            curve.offers.len() - ROWS
        );
    }
    if let Some(path) = plot {
        let _ = writeln!(text, "drawn in {}", path.display());
    }
    error_of(&mut text, job);
    notes(&mut text, &curve.notes);
    text
}

fn error_of(text: &mut String, job: &Job) {
    let model: Model = job.model;
    if let Some(error) = job.profile.validation.mean_error(model) {
        let rows = job.profile.validation.held_out.len();
        let _ = writeln!(
            text,
            "note: the {model} was {} off on average, over {}",
            percent(error),
            counted(rows, "held-out run")
        );
    }
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "note: {note}");
    }
}

fn tariff(tariff: Tariff) -> &'static str {
    match tariff {
        Tariff::OnDemand => "",
        Tariff::Spot => ", spot",
    }
}

fn range(range: Range, say: fn(f64) -> String) -> String {
    if range.is_point() {
        return say(range.most);
    }
    format!("{} to {}", say(range.least), say(range.most))
}

fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn bytes(value: f64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = units
        .iter()
        .find(|(shift, _)| value >= f64::from(1u32 << shift));
    match fits {
        Some((shift, unit)) => format!("{:.1} {unit}", value / f64::from(1u32 << shift)),
        None => counted(format!("{:.0}", value), "byte"),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

/// At most 99%, because nothing is certain.
fn likelihood(probability: f64) -> String {
    match 100.0 * probability {
        sure if sure > 99.0 => "a chance above 99%".to_owned(),
        never if never < 1.0 => "a chance below 1%".to_owned(),
        percent => format!("a chance of {percent:.0}%"),
    }
}

/// Small jobs cost fractions of a cent.
fn money(amount: f64) -> String {
    if amount >= 1.0 {
        format!("{amount:.2}")
    } else {
        format!("{amount:.4}")
    }
}
