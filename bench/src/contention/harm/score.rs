//! What each method says, against the truth by leaving neighbours out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use unfuse_contention::Culprit;
use unfuse_format::counted;

use super::{Contention, Panel, Trial, neighbours};
use crate::page::{Figure, slug};
use crate::stats;

/// The methods that rank neighbours, by anything that grows with the harm.
const METHODS: [&str; 5] = [
    "blame",
    "blame by use",
    "CPU seconds beside the victim",
    "overlap of queries",
    "overlap of tasks",
];
/// An estimate is right if it is off by at most this part of the truth, or its interval holds the truth.
const RIGHT: f64 = 0.2;

/// What is said about one neighbour in one run.
pub(super) struct Said {
    /// By each method.
    pub(super) scores: [f64; METHODS.len()],
    /// How much sooner the victim would end without it: likely, low and high, s.
    pub(super) sooner: [f64; 3],
    /// The same without what the kernel counted, s.
    pub(super) sooner_by_use: [f64; 3],
}

/// How long a victim took in one run.
#[derive(Clone, Copy)]
pub(super) struct VictimTime {
    /// Its SQL execution, which is what blame is about, s.
    pub(super) execution_s: f64,
    /// Its statement, as its client measured it: also analysis and planning before the execution begins, s.
    pub(super) client_s: f64,
}

/// A run with what is said about its neighbours.
struct Scored {
    trial: Trial,
    said: Vec<(usize, Said)>,
}

/// All runs.
pub(super) struct Scores {
    panel: &'static Panel,
    /// Times of each victim's SQL execution beside each subset, s.
    times: BTreeMap<(&'static str, u8), Vec<f64>>,
    /// Its times as its client measured them, s.
    client_times: BTreeMap<(&'static str, u8), Vec<f64>>,
    scored: Vec<Scored>,
    /// How far the division of waits for CPUs by use is from what the kernel counted, 0 to 1, and which part it counted, 0 to 1.
    comparisons: Vec<(f64, f64)>,
}

/// How much longer a victim takes with a neighbour than without it.
#[derive(Clone, Copy)]
struct Harm {
    /// Difference of the means, s.
    s: f64,
    /// Half of its 95% confidence interval, s; unbounded if there is one run.
    half_s: f64,
}

impl Scores {
    pub(super) fn new(panel: &'static Panel) -> Self {
        Self {
            panel,
            times: BTreeMap::new(),
            client_times: BTreeMap::new(),
            scored: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, trial: Trial, time: VictimTime, said: Vec<(usize, Said)>) {
        let key = (trial.victim, trial.subset);
        self.times.entry(key).or_default().push(time.execution_s);
        let of_client = self.client_times.entry(key).or_default();
        of_client.push(time.client_s);
        self.scored.push(Scored { trial, said });
    }

    /// Compares how the waits of a run for CPUs are divided, in seconds by culprit: as counted, with the counted seconds, and by use.
    pub(super) fn compare(
        &mut self,
        (counted, counted_s): (BTreeMap<Culprit, f64>, f64),
        by_use: &BTreeMap<Culprit, f64>,
    ) {
        let [all, all_by_use] = [&counted, by_use].map(|of| of.values().sum::<f64>());
        if all > 0.0 && all_by_use > 0.0 {
            let culprits: BTreeSet<&Culprit> = counted.keys().chain(by_use.keys()).collect();
            let share = |of: &BTreeMap<Culprit, f64>, culprit: &Culprit| {
                of.get(culprit).copied().unwrap_or(0.0)
            };
            let apart = culprits.into_iter().map(|culprit| {
                (share(&counted, culprit) / all - share(by_use, culprit) / all_by_use).abs()
            });
            let distance = apart.sum::<f64>() / 2.0;
            self.comparisons.push((distance, counted_s / all));
        }
    }

    /// Mean time of a victim beside a subset, and half of its interval, s.
    fn time(&self, victim: &'static str, subset: u8) -> (f64, f64) {
        let its = self.times.iter().filter(|((of, _), _)| *of == victim);
        let groups: Vec<&[f64]> = its.map(|(_, times)| times.as_slice()).collect();
        let times = self.times.get(&(victim, subset));
        stats::mean_among(&groups, times.map_or(&[][..], Vec::as_slice))
    }

    fn harm(&self, victim: &'static str, subset: u8, neighbour: usize) -> Harm {
        self.longer(victim, subset, subset & !(1 << neighbour))
    }

    /// How much longer a victim takes beside a subset than beside another one.
    fn longer(&self, victim: &'static str, subset: u8, other: u8) -> Harm {
        let (with, half_with) = self.time(victim, subset);
        let (without, half_without) = self.time(victim, other);
        Harm {
            s: with - without,
            half_s: half_with.hypot(half_without),
        }
    }

    /// The neighbour that harms a victim most; none if there is no second one, or noise could be the difference.
    fn worst(&self, victim: &'static str, subset: u8) -> Option<usize> {
        let harm = |number| (number, self.harm(victim, subset, number));
        let mut all: Vec<(usize, Harm)> = neighbours(subset).map(harm).collect();
        all.sort_by(|(_, a), (_, b)| b.s.total_cmp(&a.s));
        let [(worst, first), (_, second), ..] = all[..] else {
            return None;
        };
        (first.s - second.s > first.half_s.hypot(second.half_s)).then_some(worst)
    }

    /// Runs in which a method ranks the worst neighbour first, and all runs that have one.
    fn hits(&self, method: usize) -> (usize, usize) {
        let (mut hits, mut all) = (0, 0);
        for Scored { trial, said } in &self.scored {
            let Some(worst) = self.worst(trial.victim, trial.subset) else {
                continue;
            };
            let score = |(_, said): &&(usize, Said)| said.scores[method];
            let first = said.iter().max_by(|a, b| score(a).total_cmp(&score(b)));
            hits += usize::from(first.is_some_and(|(number, _)| *number == worst));
            all += 1;
        }
        (hits, all)
    }

    /// What was said about neighbours, with the truth.
    fn pairs(&self) -> impl Iterator<Item = (Trial, usize, &Said, Harm)> {
        self.scored.iter().flat_map(|Scored { trial, said }| {
            said.iter().map(|(number, said)| {
                let harm = self.harm(trial.victim, trial.subset, *number);
                (*trial, *number, said, harm)
            })
        })
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let of_method = |(index, method): (usize, &&str)| {
            let name = format!("first_{}", slug(method));
            let what = format!("runs in which the neighbour that harms most is first: {method}");
            Figure::from_counts(&name, &what, self.hits(index))
        };
        let mut figures: Vec<Figure> = METHODS.iter().enumerate().map(of_method).collect();
        figures.extend(self.seconds("", "", |said| said.sooner));
        figures.extend(self.seconds("_by_use", "by use: ", |said| said.sooner_by_use));
        figures.push(Figure::from_counts(
            "mean_seconds_right",
            "harmful neighbours (means over all subsets) of which the same holds",
            self.right_means(),
        ));
        let (distances, parts): (Vec<f64>, Vec<f64>) = self.comparisons.iter().copied().unzip();
        let what = "distance of the shares of waits for CPUs by use from those with what the kernel counted (half the sum of the differences, 0 to 1)";
        figures.push(Figure::from_runs("distance", what, &distances, "", 3).not_negative());
        let parts: Vec<f64> = parts.iter().map(|part| 100.0 * part).collect();
        let what = "part of the waits for CPUs that the kernel counted";
        figures.push(Figure::from_runs("counted", what, &parts, "%", 0));
        let are_harmless = |number: usize| self.panel.neighbours[number].is_harmless;
        let harmless = self.pairs().filter(|(_, number, ..)| are_harmless(*number));
        let accused = harmless.filter_map(|(trial, _, said, _)| {
            let slower = self.slower(trial);
            (slower.s > slower.half_s).then(|| 100.0 * said.sooner[0] / slower.s)
        });
        let accused: Vec<f64> = accused.collect();
        let what = "false accusation: seconds said of a neighbour that only sleeps, of the slow-down by all, if that is above its noise";
        figures.push(Figure::from_runs("accused", what, &accused, "%", 1).not_negative());
        // Without a harmful neighbour, some of them are not known.
        figures.retain(|figure| figure.value.is_finite());
        figures
    }

    /// How good the seconds are that are said of harmful neighbours, as two figures with these ends of their names and beginnings of
    /// their texts.
    fn seconds(&self, end: &str, begin: &str, sooner: fn(&Said) -> [f64; 3]) -> [Figure; 2] {
        let harmful = || {
            let all = self.pairs().filter(|(.., harm)| harm.s > harm.half_s);
            all.map(|(_, _, said, harm)| (sooner(said), harm.s))
        };
        let right = harmful().filter(|(said, harm_s)| is_right(*harm_s, *said));
        let errors = harmful().map(|([said_s, ..], harm_s)| (said_s - harm_s).abs() / harm_s);
        let mut errors: Vec<f64> = errors.collect();
        let of = "seconds said of harmful neighbours";
        [
            Figure::from_counts(
                &format!("seconds_right{end}"),
                &format!("{begin}{of} that are within 20% of the truth or whose interval holds it"),
                (right.count(), harmful().count()),
            ),
            Figure::new(
                &format!("error{end}"),
                &format!("{begin}median error of the {of}"),
                100.0 * stats::median(&mut errors),
                "%",
                0,
            ),
        ]
    }

    /// Of how many harmful neighbours the seconds said are right, and of how many there are: both the truth and what is said are means
    /// over all subsets that have the neighbour, which have less noise.
    fn right_means(&self) -> (usize, usize) {
        let (mut right, mut all) = (0, 0);
        for victim in self.victims() {
            for number in 0..self.panel.neighbours.len() {
                let with = (0..self.panel.subsets()).filter(|subset| subset & 1 << number != 0);
                let harms: Vec<Harm> = with
                    .map(|subset| self.harm(victim, subset, number))
                    .collect();
                let count = harms.len() as f64;
                let s = harms.iter().map(|harm| harm.s).sum::<f64>() / count;
                let squares: f64 = harms.iter().map(|harm| harm.half_s.powi(2)).sum();
                if s <= squares.sqrt() / count {
                    continue;
                }
                let of = |at: usize| self.mean_said(victim, None, number, |said| said.sooner[at]);
                right += usize::from(is_right(s, [of(0), of(1), of(2)]));
                all += 1;
            }
        }
        (right, all)
    }

    /// The mean of what was said about a neighbour, in all runs of a victim or in those beside one subset.
    fn mean_said(
        &self,
        victim: &'static str,
        subset: Option<u8>,
        neighbour: usize,
        value: impl Fn(&Said) -> f64,
    ) -> f64 {
        let its = self.pairs().filter(|(trial, other, ..)| {
            (trial.victim, *other) == (victim, neighbour)
                && subset.is_none_or(|subset| trial.subset == subset)
        });
        let values: Vec<f64> = its.map(|(_, _, said, _)| value(said)).collect();
        stats::mean_and_half_width(&values).0
    }

    /// By how much all neighbours together slow a victim down, s.
    fn slower(&self, trial: Trial) -> Harm {
        self.longer(trial.victim, trial.subset, 0)
    }

    pub(super) fn body(&self, asked: &Contention) -> String {
        let mut body = format!(
            "Three neighbours, which start 1.5 s before the victim and are cancelled when it has ended. {} Victims ({}) are on a warm \
             Thrift server of Spark 4.3 (local[{}]) with TPC-DS SF {}; each ran beside every subset of the neighbours, {} a subset, in \
             random order. The truth is the \
             difference of the mean times of the victim's SQL execution with and without a neighbour. Its client's time has also the \
             analysis and planning of the statement before the execution begins. A run counts for the first figures if one \
             neighbour harms more than the next by more than the noise of these means: all times of a victim are taken to vary by the same \
             share. A neighbour is harmful if its truth is above 0 by more than this noise. Recorded with `switches=on`; *blame by use* is \
             the answer without what the kernel counted.\n\n\
             | victim | beside | its execution, s | its client's time, s | neighbour | truth, s | blame: sooner, s | interval, s | by use: sooner, s | {} |\n|---|---|---|---|---|---|---|---|---|{}\n",
            self.panel.about,
            self.victims().collect::<Vec<_>>().join(", "),
            self.panel.slots,
            asked.scale,
            counted(asked.runs, "run"),
            METHODS.map(|method| format!("{method}, s")).join(" | "),
            "---|".repeat(METHODS.len()),
        );
        for victim in self.victims() {
            for subset in 0..self.panel.subsets() {
                self.rows(&mut body, victim, subset);
            }
        }
        body
    }

    fn victims(&self) -> impl Iterator<Item = &'static str> {
        self.panel.victims.iter().map(|victim| victim.name)
    }

    /// The rows of a victim beside a subset: one for each neighbour, with the means of its runs.
    fn rows(&self, body: &mut String, victim: &'static str, subset: u8) {
        let (time, half) = self.time(victim, subset);
        let beside: Vec<&str> = neighbours(subset)
            .map(|number| self.panel.neighbours[number].name)
            .collect();
        let beside = if beside.is_empty() {
            "nobody".to_owned()
        } else {
            beside.join("; ")
        };
        let of_client = self.client_times.get(&(victim, subset));
        let (client, _) = stats::mean_and_half_width(of_client.map_or(&[][..], Vec::as_slice));
        let time = with_half(time, half);
        let start = format!("| {victim} | {beside} | {time} | {client:.2}");
        if subset == 0 {
            let _ = writeln!(body, "{start}{}", " | -".repeat(5 + METHODS.len()) + " |");
        }
        for number in neighbours(subset) {
            let of =
                |value: &dyn Fn(&Said) -> f64| self.mean_said(victim, Some(subset), number, value);
            let truth = self.harm(victim, subset, number);
            let scores: [f64; METHODS.len()] =
                std::array::from_fn(|method| of(&|said| said.scores[method]));
            let _ = writeln!(
                body,
                "{start} | {} | {} | {:.2} | {:.2} to {:.2} | {:.2} | {} |",
                self.panel.neighbours[number].name,
                with_half(truth.s, truth.half_s),
                of(&|said| said.sooner[0]),
                of(&|said| said.sooner[1]),
                of(&|said| said.sooner[2]),
                of(&|said| said.sooner_by_use[0]),
                scores.map(|score| format!("{score:.2}")).join(" | "),
            );
        }
    }
}

/// Whether an estimate is right.
fn is_right(truth_s: f64, [said_s, low, high]: [f64; 3]) -> bool {
    (low..=high).contains(&truth_s) || (said_s - truth_s).abs() <= RIGHT * truth_s
}

fn with_half(value: f64, half: f64) -> String {
    match half.is_finite() {
        true => format!("{value:.2} ± {half:.2}"),
        false => format!("{value:.2}"),
    }
}
