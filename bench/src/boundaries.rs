//! Arithmetic that is written inline into one operator of a fused pipeline at a time, and the operators at which it appears.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use regex::Regex;
use serde::Deserialize;
use unfuse_postprocess::{By, Profile, Selection, Totals};

use crate::event_log::executions;
use crate::page::{ATTRIBUTION, Figure, Measuring, slug};
use crate::random::Random;
use crate::session::Answer;
use crate::spark::{Setup, Spark, Tool};
use crate::stats;

/// Inline arithmetic in one operator of a fused pipeline at a time, and where its time appears
#[derive(Debug, Args)]
pub struct Boundaries {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// Runs of each query in a JVM that count, after two to warm up
    #[arg(long, default_value_t = 8)]
    pub runs: u32,
    /// JVMs for each setting of `regions`, at most
    #[arg(long, default_value_t = 6)]
    pub jvms: u32,
    /// No more JVMs once the intervals of all shares at other operators are within this, % of the added time
    #[arg(long, default_value_t = 0.5)]
    pub within: f64,
    /// Steps of arithmetic that are added for each row
    #[arg(long, default_value_t = 60)]
    pub steps: u32,
    /// Only these queries, such as broadcast,generate
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Only these places, such as Filter,BroadcastHashJoin.key
    #[arg(long, value_delimiter = ',')]
    pub places: Vec<String>,
    /// More settings of Spark, key=value
    #[arg(long)]
    pub conf: Vec<String>,
}

const WARM_UP: i32 = 2;
/// Settings of the agent's option `regions`.
const SETTINGS: [&str; 2] = ["plain", "exact"];
/// What no operator does: reading the plan, compiling it, sending results.
const HEADINGS: &str = "[headings]";
/// An operator as it is in the base query.
const BASE: &str = "base";

static PLACE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{([\w.]+):([^{}]+)\}").expect("a constant pattern"));

/// The file `boundaries.toml`.
#[derive(Deserialize)]
struct Shapes {
    query: Vec<Shape>,
}

/// A query with places where work can be added.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    name: String,
    sql: String,
}

/// How the steps of the added arithmetic depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// Each on the one before.
    Dependent,
    /// On none: a processor computes several at a time.
    Independent,
}

/// One altered query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Variant {
    shape: String,
    place: String,
    work: Work,
}

/// CPU time of each operator in one run of a query.
type Run = BTreeMap<String, Time>;

/// CPU time, s, and the bounds that unfuse gives it.
#[derive(Debug, Clone, Copy, Default)]
struct Time {
    s: f64,
    low_s: f64,
    high_s: f64,
}

/// Differences of one altered query to the base query, a value for each run.
#[derive(Default)]
struct Differences {
    added: Vec<f64>,
    operators: BTreeMap<String, Vec<f64>>,
    /// Differences of single operators whose bounds hold what was added to them, and all of them.
    held: (usize, usize),
}

impl Boundaries {
    /// Measures and writes `boundaries.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "boundaries", &ATTRIBUTION)?;
        let shapes = self.shapes()?;
        let spark = Spark::install("1")?;
        let bar = ProgressBar::new(u64::from(self.jvms) * SETTINGS.len() as u64).with_style(
            ProgressStyle::with_template("[{bar:24}] JVM {pos} of {len}, {msg}, {elapsed}")?,
        );
        let mut measured: BTreeMap<&str, BTreeMap<Variant, Differences>> = BTreeMap::new();
        for jvm in 0..self.jvms {
            for setting in SETTINGS {
                bar.set_message(format!("regions={setting}"));
                let runs = self.run(&spark, &shapes, setting, u64::from(jvm))?;
                add(measured.entry(setting).or_default(), &shapes, &runs);
                bar.inc(1);
            }
            let widest = measured
                .values()
                .flat_map(BTreeMap::iter)
                .filter_map(|(variant, differences)| differences.most(variant))
                .fold(0.0, |widest, (_, (_, half))| f64::max(widest, half));
            if widest <= self.within / 100.0 {
                break;
            }
        }
        bar.finish_and_clear();
        page.finish(self.runs, figures(&measured), &self.body(&measured))
    }

    fn shapes(&self) -> Result<Vec<Shape>> {
        let shapes: Shapes = toml::from_str(include_str!("../assets/boundaries.toml"))?;
        let is_wanted = |shape: &Shape| self.only.is_empty() || self.only.contains(&shape.name);
        let wanted: Vec<Shape> = shapes.query.into_iter().filter(is_wanted).collect();
        if wanted.is_empty() {
            bail!("--only names no query of bench/assets/boundaries.toml");
        }
        Ok(wanted)
    }

    /// Runs all queries in turn in one JVM. The runs that count, by query.
    fn run(
        &self,
        spark: &Spark,
        shapes: &[Shape],
        setting: &str,
        seed: u64,
    ) -> Result<BTreeMap<String, Vec<Run>>> {
        // Adaptive execution could choose another join than the hint asks for; with ANSI each step is a call that checks it.
        let conf = [
            "spark.sql.adaptive.enabled=false",
            "spark.sql.ansi.enabled=false",
        ];
        let tool = Tool::Unfuse(
            format!("rate={},regions={setting}", self.rate),
            conf.map(str::to_owned)
                .into_iter()
                .chain(self.conf.iter().cloned())
                .collect(),
        );
        let mut queries: Vec<(String, String)> = Vec::new();
        for shape in shapes {
            queries.push((format!("{}/{BASE}", shape.name), shape.text(None)));
            let variants = shape.variants();
            let is_wanted =
                |variant: &Variant| self.places.is_empty() || self.places.contains(&variant.place);
            for variant in variants.into_iter().filter(is_wanted) {
                queries.push((variant.name(), shape.text(Some((&variant, self.steps)))));
            }
        }
        let mut session = spark.start(&Setup::default(), &tool)?;
        let mut random = Random(seed);
        for round in -WARM_UP..self.runs.cast_signed() {
            random.shuffle(&mut queries);
            for (name, sql) in &queries {
                if let Answer::Failed(why) = session.ask(name, sql, round)? {
                    bail!("{} failed: {}", why.query, why.reason);
                }
            }
        }
        let (profile, event_log) = session.finish()?;
        let profile = Profile::open(&profile)?;
        let mut runs: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        for execution in executions(&event_log)? {
            let Some((name, round)) = execution.description.rsplit_once(' ') else {
                continue;
            };
            if round.starts_with('-') {
                continue;
            }
            let selection = Selection {
                query: Some(execution.id),
                ..Selection::default()
            };
            let mut run = Run::new();
            let totals = Totals::of(&profile, selection, By::Operator);
            let bound = |share: Option<f64>| share.unwrap_or_default() * totals.cpu_seconds;
            for row in totals.rows {
                let to = if row.heading {
                    HEADINGS.to_owned()
                } else {
                    row.operator
                };
                let time = run.entry(to).or_default();
                time.s += row.cpu_seconds;
                time.low_s += bound(row.share_low);
                time.high_s += bound(row.share_high);
            }
            runs.entry(name.to_owned()).or_default().push(run);
        }
        Ok(runs)
    }

    fn body(&self, measured: &BTreeMap<&str, BTreeMap<Variant, Differences>>) -> String {
        let mut body = format!(
            "{} steps of arithmetic a row, written inline into one operator at a time; local[2], Spark 4.3, {} Hz, not ANSI; \
             all queries take turns in random order in one JVM. *added*: CPU time of the altered query less that of the base query of the same turn. \
             *at the altered*: the part of it that the altered operator shows; above 100% it does work meanwhile that others did before, so that \
             without it less would be saved than its share says. *under headings*: the part of it that no operator does, such as reading and compiling the larger plan. \
             *at others*: the operator that was not altered and shows the most of it, with its 95% interval. *Others show less*: the sum of what \
             other operators lose, which is work that the processor now does while it waits for the added arithmetic. Steps of dependent work each need the one \
             before; of independent work a processor computes several steps at once. *Ranges that hold the truth*: of each operator, in each run, the difference \
             of its ranges in `unfuse top --json` should hold what was added to it, which is 0 for all but one.\n\n",
            self.steps, self.rate
        );
        for (setting, variants) in measured {
            let _ = writeln!(
                body,
                "### regions={setting}\n\n| query | altered | work | runs | added, s | at the altered, % | under headings, % | at others, the most, % | others show less, % | ranges that hold the truth, % |\n|---|---|---|---|---|---|---|---|---|---|"
            );
            for (variant, differences) in variants {
                body += &differences.row(variant);
            }
            body.push('\n');
        }
        body
    }
}

impl Shape {
    /// The query with the work in one place, or nowhere.
    fn text(&self, altered: Option<(&Variant, u32)>) -> String {
        let replaced = PLACE.replace_all(&self.sql, |found: &regex::Captures<'_>| {
            let value = found[2].to_owned();
            match altered {
                Some((variant, steps)) if variant.place == found[1] => {
                    variant.work.added_to(&value, steps)
                }
                _ => value,
            }
        });
        replaced.into_owned()
    }

    /// Every place, with each kind of work.
    fn variants(&self) -> Vec<Variant> {
        let places: BTreeSet<&str> = PLACE
            .captures_iter(&self.sql)
            .filter_map(|found| Some(found.get(1)?.as_str()))
            .collect();
        let variant = |place: &str, work| Variant {
            shape: self.name.clone(),
            place: place.to_owned(),
            work,
        };
        places
            .into_iter()
            .flat_map(|place| [Work::Dependent, Work::Independent].map(|work| variant(place, work)))
            .collect()
    }
}

impl Work {
    /// The value, by way of arithmetic whose result would count only in rows from 2⁴⁰ on.
    fn added_to(self, value: &str, steps: u32) -> String {
        let work = match self {
            Self::Dependent => (1..=steps).fold(format!("({value})"), |so_far, step| {
                format!("(({so_far} * {}L) ^ {step}L)", 2 * step + 1)
            }),
            Self::Independent => {
                let terms: Vec<String> = (1..=steps)
                    .map(|step| format!("((({value}) * {}L) ^ {step}L)", 2 * step + 1))
                    .collect();
                terms.join(" ^ ")
            }
        };
        format!("({value} + (({work}) & shiftright(id, 40)))")
    }

    fn name(self) -> &'static str {
        match self {
            Self::Dependent => "dependent",
            Self::Independent => "independent",
        }
    }
}

impl Variant {
    /// The name of its runs.
    fn name(&self) -> String {
        format!("{}/{}/{}", self.shape, self.place, self.work.name())
    }

    /// The altered operator.
    fn operator(&self) -> &str {
        self.place.split('.').next().unwrap_or_default()
    }
}

/// Compares the runs of one JVM, turn by turn.
fn add(
    into: &mut BTreeMap<Variant, Differences>,
    shapes: &[Shape],
    runs: &BTreeMap<String, Vec<Run>>,
) {
    let none = Vec::new();
    for shape in shapes {
        let base = runs.get(&format!("{}/{BASE}", shape.name)).unwrap_or(&none);
        for variant in shape.variants() {
            let Some(altered) = runs.get(&variant.name()) else {
                continue;
            };
            let operator = variant.operator().to_owned();
            let differences = into.entry(variant).or_default();
            for (base, altered) in base.iter().zip(altered) {
                differences.add(base, altered);
                differences.check(base, altered, &operator);
            }
        }
    }
}

impl Differences {
    fn add(&mut self, base: &Run, altered: &Run) {
        let runs = self.added.len();
        let sum = |run: &Run| run.values().map(|time| time.s).sum::<f64>();
        self.added.push(sum(altered) - sum(base));
        let names: BTreeSet<&String> = base.keys().chain(altered.keys()).collect();
        for name in names {
            let time = |run: &Run| run.get(name).copied().unwrap_or_default().s;
            let of = self.operators.entry(name.clone()).or_default();
            of.resize(runs, 0.0);
            of.push(time(altered) - time(base));
        }
        for of in self.operators.values_mut() {
            of.resize(runs + 1, 0.0);
        }
    }

    /// Counts the operators whose bounds hold the truth, which is that only one was altered.
    fn check(&mut self, base: &Run, altered: &Run, operator: &str) {
        let operators = |run: &Run| {
            let operators = run.iter().filter(|(name, _)| name.as_str() != HEADINGS);
            operators.map(|(_, time)| time.s).sum::<f64>()
        };
        let added = operators(altered) - operators(base);
        for (name, before) in base.iter().filter(|(name, _)| name.as_str() != HEADINGS) {
            let after = altered.get(name).copied().unwrap_or_default();
            let truth = if name == operator { added } else { 0.0 };
            let bounds = after.low_s - before.high_s..=after.high_s - before.low_s;
            self.held.0 += usize::from(bounds.contains(&truth));
            self.held.1 += 1;
        }
    }

    /// Mean of values as a part of the mean of the added time, and half the width of its 95% interval.
    fn part(&self, values: &[f64]) -> (f64, f64) {
        let (added, _) = stats::mean_and_half_width(&self.added);
        let share = stats::mean_and_half_width(values).0 / added;
        // Of a ratio of means: what is left of each run when the ratio is taken out.
        let left: Vec<f64> = values
            .iter()
            .zip(&self.added)
            .map(|(value, added)| value - share * added)
            .collect();
        (share, stats::mean_and_half_width(&left).1 / added)
    }

    /// The operator that was not altered and shows the most of the added time, with that part and half the width of its interval.
    fn most<'a>(&'a self, variant: &'a Variant) -> Option<(&'a str, (f64, f64))> {
        self.others(variant)
            .map(|(name, values)| (name.as_str(), self.part(values)))
            .max_by(|a, b| a.1.0.total_cmp(&b.1.0))
    }

    /// By how much all operators that show less than before do so, as a part of the added time.
    fn less(&self, variant: &Variant) -> f64 {
        let parts = self.others(variant).map(|(_, values)| self.part(values).0);
        parts
            .filter(|part| *part < 0.0)
            .fold(0.0, |sum, part| sum - part)
    }

    fn others<'a>(
        &'a self,
        variant: &'a Variant,
    ) -> impl Iterator<Item = (&'a String, &'a Vec<f64>)> {
        let altered = variant.operator();
        self.operators
            .iter()
            .filter(move |(name, _)| name.as_str() != altered && name.as_str() != HEADINGS)
    }

    fn row(&self, variant: &Variant) -> String {
        let percent = |(share, half): (f64, f64)| {
            format!(
                "{:+.1} ({:+.1} to {:+.1})",
                100.0 * share,
                100.0 * (share - half),
                100.0 * (share + half)
            )
        };
        let part_of = |name: &str| {
            let values = self.operators.get(name);
            values.map_or_else(String::new, |values| percent(self.part(values)))
        };
        let (added, half) = stats::mean_and_half_width(&self.added);
        format!(
            "| {} | {} | {} | {} | {added:.2} ± {half:.2} | {} | {} | {} | {:.1} | {:.0} |\n",
            variant.shape,
            variant.place,
            variant.work.name(),
            self.added.len(),
            part_of(variant.operator()),
            part_of(HEADINGS),
            self.most(variant)
                .map_or_else(String::new, |(name, part)| format!(
                    "{name} {}",
                    percent(part)
                )),
            100.0 * self.less(variant),
            100.0 * stats::share(self.held.0 as f64, self.held.1 as f64).0,
        )
    }
}

/// The ranges that hold the truth and, for each setting and kind of work, the largest part at other operators, and how far the altered operator's
/// growth is from what was added.
fn figures(measured: &BTreeMap<&str, BTreeMap<Variant, Differences>>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (setting, variants) in measured {
        let held = variants.values().fold((0, 0), |(held, all), differences| {
            (held + differences.held.0, all + differences.held.1)
        });
        let (share, [low, high]) = stats::share(held.0 as f64, held.1 as f64);
        figures.push(
            Figure::new(
                &slug(&format!("{setting}_held")),
                &format!("regions={setting}: ranges that hold the truth"),
                100.0 * share,
                "%",
                1,
            )
            .within(Some([100.0 * low, 100.0 * high])),
        );
        for work in [Work::Dependent, Work::Independent] {
            let most = variants
                .iter()
                .filter(|(variant, _)| variant.work == work)
                .filter_map(|(variant, differences)| Some((variant, differences.most(variant)?)))
                .max_by(|a, b| a.1.1.0.total_cmp(&b.1.1.0));
            let parts = variants.iter().filter(|(variant, _)| variant.work == work);
            let parts = parts.filter_map(|(variant, differences)| {
                let values = differences.operators.get(variant.operator())?;
                Some((variant, differences.part(values)))
            });
            let furthest =
                parts.max_by(|(_, a), (_, b)| (a.0 - 1.0).abs().total_cmp(&(b.0 - 1.0).abs()));
            if let Some((variant, (share, half))) = furthest {
                figures.push(
                    Figure::new(
                        &slug(&format!("{setting}_{}_altered", work.name())),
                        &format!(
                            "regions={setting}: {} work at the operator that was altered, the furthest from 100% ({} of {})",
                            work.name(),
                            variant.place,
                            variant.shape
                        ),
                        100.0 * share,
                        "% of the added time",
                        1,
                    )
                    .within(Some([100.0 * (share - half), 100.0 * (share + half)])),
                );
            }
            let Some((variant, (name, (share, half)))) = most else {
                continue;
            };
            figures.push(
                Figure::new(
                    &slug(&format!("{setting}_{}", work.name())),
                    &format!(
                        "regions={setting}: {} work at an operator that was not altered, the most ({} of {}, at {name})",
                        work.name(),
                        variant.place,
                        variant.shape
                    ),
                    100.0 * share,
                    "% of the added time",
                    1,
                )
                .within(Some([100.0 * (share - half), 100.0 * (share + half)])),
            );
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_added_in_one_place_only() {
        let shape = Shape {
            name: "shape".to_owned(),
            sql: "SELECT {Project:a} FROM t WHERE {Filter:b + 1} > 0".to_owned(),
        };
        assert_eq!(shape.text(None), "SELECT a FROM t WHERE b + 1 > 0");
        let variants = shape.variants();
        assert_eq!(variants.len(), 4);
        assert_eq!(
            shape.text(Some((&variants[0], 1))),
            "SELECT a FROM t WHERE (b + 1 + (((((b + 1) * 3L) ^ 1L)) \
             & shiftright(id, 40))) > 0"
        );
    }

    #[test]
    fn parts_are_of_the_added_time() {
        let mut differences = Differences::default();
        for noise in [0.0, 0.1, -0.1] {
            let time = |s| Time {
                s,
                low_s: s - 0.06,
                high_s: s + 0.06,
            };
            let run = |filter: f64, join: f64| {
                Run::from([
                    ("Filter".to_owned(), time(filter)),
                    ("Join".to_owned(), time(join)),
                ])
            };
            let (base, altered) = (run(1.0, 2.0), run(1.9 + noise, 2.1));
            differences.add(&base, &altered);
            differences.check(&base, &altered, "Filter");
        }
        assert_eq!(differences.held, (6, 6));
        let variant = Variant {
            shape: String::new(),
            place: "Filter.one".to_owned(),
            work: Work::Dependent,
        };
        let (name, (share, half)) = differences.most(&variant).expect("another operator");
        assert_eq!(name, "Join");
        assert!((share - 0.1).abs() < 1e-9 && half < 0.05, "{share} {half}");
        assert_eq!(differences.less(&variant), 0.0);
    }
}
