//! Arithmetic written inline into operators of a fused pipeline, with constants that no other operator has. So the
//! machine instruction at a sample's address says which operator wrote it.

mod operands;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use unfuse_format::INSTRUCTION;
use unfuse_postprocess::{Attribution, Attributor, Owner, Profile, Rule};

use crate::boundaries::SETTINGS;
use crate::boundaries::shapes::{Shapes, Work};
use crate::boundaries::turns::Turns;
use crate::page::{ATTRIBUTION, Figure, Measuring, slug};
use crate::spark::Spark;
use crate::stats;

/// Inline arithmetic in operators of fused pipelines, and to which operator each instruction's samples go
#[derive(Debug, Args)]
pub struct Instructions {
    /// Samples a second of CPU time
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// Runs of each query that count, after two to warm up
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Steps of arithmetic that are added for each row at one place, while the others have few
    #[arg(long, default_value_t = 60)]
    pub many: u32,
    /// Steps at those others
    #[arg(long, default_value_t = 4)]
    pub few: u32,
    /// Steps at each place of queries in which all places have the same number
    #[arg(long, default_value_t = 16)]
    pub equal: u32,
    /// Only these queries of bench/assets/boundaries.toml, such as broadcast,generate
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

/// A place with fewer samples cannot be the one with the lowest share.
const ENOUGH: u64 = 100;

/// A query with arithmetic at all of its places.
struct Query {
    /// The name of its runs.
    name: String,
    shape: String,
    work: Work,
    sql: String,
    /// The places, each by its number in the constants, with its number of steps.
    places: Vec<(String, u32)>,
}

/// A place in a query, with one kind of work.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    query: String,
    place: String,
    work: Work,
    steps: u32,
}

/// Samples at the instructions of one place.
#[derive(Default)]
struct Samples {
    all: u64,
    /// Those whose possible operators, by their range, include the one that wrote the instruction.
    possible: u64,
    /// Those attributed by the guess between two described lines.
    guessed: u64,
    /// By the operator or heading to which they were attributed.
    given: BTreeMap<String, u64>,
}

impl Instructions {
    /// Measures and writes `instructions.md`.
    pub fn measure(&self, results: &Path) -> Result<()> {
        let page = Measuring::begin(results, "instructions", &ATTRIBUTION)?;
        let queries = self.queries()?;
        let spark = Spark::install("1")?;
        let bar = ProgressBar::new(SETTINGS.len() as u64).with_style(ProgressStyle::with_template(
            "[{bar:24}] JVM {pos} of {len}, {msg}, {elapsed}",
        )?);
        let mut measured = BTreeMap::new();
        for setting in SETTINGS {
            bar.set_message(format!("regions={setting}"));
            measured.insert(setting, self.run(&spark, &queries, setting)?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        page.finish(self.runs, figures(&measured), &self.body(&measured))
    }

    fn queries(&self) -> Result<Vec<Query>> {
        let mut queries = Vec::new();
        for shape in Shapes::wanted(&self.only)? {
            let all: Vec<&str> = shape.places().into_iter().collect();
            let with_many = |most: &str| -> Vec<(&str, u32)> {
                let steps = |place: &str| if place == most { self.many } else { self.few };
                all.iter().map(|place| (*place, steps(place))).collect()
            };
            let equal = all.iter().map(|place| (*place, self.equal)).collect();
            let mut all_steps = vec![("equal", equal)];
            all_steps.extend(all.iter().map(|most| (*most, with_many(most))));
            for (name, places) in all_steps {
                for work in [Work::Dependent, Work::Independent] {
                    queries.push(Query {
                        name: format!("{}/{name}/{}", shape.name, work.name()),
                        shape: shape.name.clone(),
                        work,
                        sql: shape.altered_in(&places, work, operands::operands),
                        places: places
                            .iter()
                            .map(|(place, steps)| ((*place).to_owned(), *steps))
                            .collect(),
                    });
                }
            }
        }
        Ok(queries)
    }

    /// Runs all queries in turn in one JVM. Returns the samples of each place in the runs that count.
    fn run(
        &self,
        spark: &Spark,
        queries: &[Query],
        setting: &str,
    ) -> Result<BTreeMap<Place, Samples>> {
        let options = format!("rate={},regions={setting},instructions=on", self.rate);
        let texts = queries
            .iter()
            .map(|query| (query.name.clone(), query.sql.clone()));
        let mut texts: Vec<(String, String)> = texts.collect();
        let turns = Turns::record(spark, options, &[], &mut texts, self.runs, 0)?;
        let runs = turns.runs.iter().filter_map(|(execution, name)| {
            let query = queries.iter().find(|query| query.name == *name)?;
            Some((*execution, query))
        });
        Ok(samples(&turns.profile, &runs.collect()))
    }

    fn body(&self, measured: &BTreeMap<&str, BTreeMap<Place, Samples>>) -> String {
        let mut body = format!(
            "Steps of arithmetic for each row, written inline into operators of a fused pipeline, with constants that no other place has: \
             {} at one place and {} at all others, or {} at each place; \
             local[2], Spark 4.3, {} Hz, not ANSI. The machine instruction at a sample's address has such a constant, or it does not count here. \
             So for each sample the operator that wrote the instruction is known, and nothing is compared between runs. \
             *right*: samples at instructions of this place that were attributed to its operator, with Wilson's 95% interval. *possible*: those \
             whose range (`share_low`, `share_high`) allows for the operator. *by guess*: those attributed by the rule \
             *arithmetic between two lines*; without it they would be at another operator. Steps of dependent work each need the one before; of independent \
             work a processor computes several steps at once.\n\n",
            self.many, self.few, self.equal, self.rate
        );
        for (setting, places) in measured {
            let _ = writeln!(
                body,
                "### regions={setting}\n\n| query | place | work | steps | samples | right, % | possible, % | by guess, % | given to others |\n|---|---|---|---|---|---|---|---|---|"
            );
            for (place, samples) in places {
                body += &samples.row(place);
            }
            body.push('\n');
        }
        body
    }
}

/// The samples at marked instructions, by place.
fn samples(profile: &Profile, runs: &BTreeMap<i64, &Query>) -> BTreeMap<Place, Samples> {
    let mut found: BTreeMap<Place, Samples> = BTreeMap::new();
    let mut attributor = Attributor::new(profile);
    for (group, weight) in &profile.groups {
        let query = group.query.and_then(|query| runs.get(&query));
        let frames = profile.stacks.get(&group.stack);
        let innermost = frames.and_then(|frames| frames.last());
        let Some((query, innermost)) = query.zip(innermost) else {
            continue;
        };
        if innermost.method != INSTRUCTION {
            continue;
        }
        let place = operands::marked(&bytes(&innermost.signature));
        let Some((place, steps)) = place.and_then(|place| query.places.get(place)) else {
            continue;
        };
        let attribution = attributor.attribute(group);
        let place = Place {
            query: query.shape.clone(),
            place: place.clone(),
            work: query.work,
            steps: *steps,
        };
        let operator = place.operator().to_owned();
        let samples = found.entry(place).or_default();
        let given = given(profile, &attribution);
        samples.all += weight.samples;
        if attribution.rule == Rule::BetweenLines {
            samples.guessed += weight.samples;
        }
        if given == operator || others(profile, &attribution).any(|other| other == operator) {
            samples.possible += weight.samples;
        }
        *samples.given.entry(given).or_default() += weight.samples;
    }
    found
}

/// Bytes from hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

/// The operator or heading to which a sample was attributed.
fn given(profile: &Profile, attribution: &Attribution) -> String {
    match &attribution.owner {
        Owner::Heading(heading) => format!("[{heading}]"),
        Owner::Node(execution, node) => {
            let plan = profile.plans.get(execution);
            plan.map_or_else(String::new, |plan| plan.nodes[*node].operator.clone())
        }
    }
}

/// The other operators that a sample's range allows for.
fn others<'a>(profile: &'a Profile, attribution: &'a Attribution) -> impl Iterator<Item = &'a str> {
    let execution = attribution.execution.as_ref();
    let plan = execution.and_then(|execution| profile.plans.get(execution));
    let nodes = plan.into_iter().flat_map(|plan| {
        let nodes = attribution.also.iter();
        nodes.filter_map(|node| plan.nodes.get(*node))
    });
    nodes.map(|node| node.operator.as_str())
}

impl Place {
    /// The operator that writes its instructions.
    fn operator(&self) -> &str {
        self.place.split('.').next().unwrap_or_default()
    }
}

impl Samples {
    fn right(&self, place: &Place) -> u64 {
        self.given.get(place.operator()).copied().unwrap_or(0)
    }

    fn row(&self, place: &Place) -> String {
        let (share, [low, high]) = stats::share(self.right(place) as f64, self.all as f64);
        let mut others: Vec<(&String, &u64)> = self
            .given
            .iter()
            .filter(|(name, _)| *name != place.operator())
            .collect();
        others.sort_by_key(|(_, samples)| std::cmp::Reverse(**samples));
        let others: Vec<String> = others
            .iter()
            .map(|(name, samples)| format!("{name} {samples}"))
            .collect();
        format!(
            "| {} | {} | {} | {} | {} | {:.1} ({:.1} to {:.1}) | {:.1} | {:.1} | {} |\n",
            place.query,
            place.place,
            place.work.name(),
            place.steps,
            self.all,
            100.0 * share,
            100.0 * low,
            100.0 * high,
            100.0 * stats::share(self.possible as f64, self.all as f64).0,
            100.0 * stats::share(self.guessed as f64, self.all as f64).0,
            others.join(", ").replace('|', "\\|")
        )
    }
}

/// For each setting and kind of work: the share of right samples of all places, the lowest share of a place, and the
/// share of samples whose range allows for the right operator.
fn figures(measured: &BTreeMap<&str, BTreeMap<Place, Samples>>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (setting, places) in measured {
        for work in [Work::Dependent, Work::Independent] {
            let of = || places.iter().filter(|(place, _)| place.work == work);
            let sum = |value: fn(&Place, &Samples) -> u64| -> u64 {
                of().map(|(place, samples)| value(place, samples)).sum()
            };
            let all = sum(|_, samples| samples.all);
            let lowest = of()
                .filter(|(_, samples)| samples.all >= ENOUGH)
                .map(|(place, samples)| {
                    let share = stats::share(samples.right(place) as f64, samples.all as f64);
                    (place, share)
                })
                .min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
            let Some((place, lowest)) = lowest else {
                continue;
            };
            let mut figure = |name: &str, what: &str, (share, [low, high]): (f64, [f64; 2])| {
                let name = slug(&format!("{setting}_{}_{name}", work.name()));
                let title = format!("regions={setting}: {} work, {what}", work.name());
                let figure = Figure::new(&name, &title, 100.0 * share, "%", 1);
                figures.push(figure.within(Some([100.0 * low, 100.0 * high])));
            };
            figure(
                "right",
                "samples on the operator that wrote the instruction",
                stats::share(
                    sum(|place, samples| samples.right(place)) as f64,
                    all as f64,
                ),
            );
            figure(
                "lowest",
                &format!(
                    "the same at the place with the lowest share, of those with {ENOUGH} samples ({} of {}, {} steps)",
                    place.place, place.query, place.steps
                ),
                lowest,
            );
            figure(
                "possible",
                "samples whose range allows for that operator",
                stats::share(sum(|_, samples| samples.possible) as f64, all as f64),
            );
            figure(
                "guessed",
                "samples attributed by the rule \"arithmetic between two lines\"",
                stats::share(sum(|_, samples| samples.guessed) as f64, all as f64),
            );
        }
    }
    figures
}
