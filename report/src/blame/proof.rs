//! What came of an experiment on a culprit: the answer of `unfuse blame --prove`.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use unfuse_contention::{LEAST_PAIRS, Proof, Range};

use crate::text::shorten;

/// The longest name of a query, in characters.
const LONGEST: usize = 60;

/// Whether the experiment shows that the culprit slows the victim down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProofVerdict {
    /// The victim progressed faster while the culprit was held back, by more than chance explains (95%).
    Proven,
    /// It may be chance, the culprit could not be held back, or there were too few slices.
    NotShown,
}

/// A query of the experiment.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProofQuery {
    /// The id of its Spark SQL execution.
    pub execution: i64,
    /// Its description.
    pub description: String,
}

impl ProofQuery {
    fn name(&self) -> String {
        format!("query {}", self.execution)
    }

    fn title(&self) -> String {
        shorten(&format!("{}: {}", self.name(), self.description), LONGEST)
    }
}

/// An experiment on a running application: one query was held back in random slices of time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProofAnswer {
    /// The query that may be slowed down.
    pub victim: ProofQuery,
    /// The query that was held back.
    pub culprit: ProofQuery,
    /// The application of both.
    pub application: String,
    /// The result.
    pub verdict: ProofVerdict,
    /// How much faster the victim progressed while the culprit was held back: 0.5 is half as fast again; negative is slower. Null
    /// where it is unknown.
    pub faster: Option<f64>,
    /// Lower end of its 95% interval; null if it has none.
    pub faster_low: Option<f64>,
    /// Upper end of its 95% interval; null if it has none.
    pub faster_high: Option<f64>,
    /// How much sooner the victim would have got as far if the culprit had been held back all the time that both ran, s.
    pub sooner_seconds: Option<f64>,
    /// Lower end of its 95% interval.
    pub sooner_seconds_low: Option<f64>,
    /// Upper end of its 95% interval.
    pub sooner_seconds_high: Option<f64>,
    /// How long both have run so far, without the time in which the culprit was held back, s.
    pub beside_seconds: f64,
    /// Number of pairs of slices that count.
    pub pairs: usize,
    /// How long the culprit was held back in total, s.
    pub held_seconds: f64,
    /// CPUs that the victim's tasks got while the culprit ran as usual (CPU seconds a second).
    pub victim_free_cpus: Option<f64>,
    /// The same while the culprit was held back.
    pub victim_held_cpus: Option<f64>,
    /// CPUs that the culprit's tasks got while it ran as usual.
    pub culprit_free_cpus: Option<f64>,
    /// The same while it was held back.
    pub culprit_held_cpus: Option<f64>,
    /// What else there is to know.
    pub notes: Vec<String>,
    #[serde(skip)]
    proof: Option<Proof>,
}

/// The circumstances of an experiment.
#[derive(Debug)]
pub struct Experiment {
    /// The query that may be slowed down.
    pub victim: ProofQuery,
    /// The query that was held back.
    pub culprit: ProofQuery,
    /// The application of both.
    pub application: String,
    /// How long both have run, without the time in which the culprit was held back, s.
    pub beside_seconds: f64,
    /// How long the culprit was held back in total, s.
    pub held_seconds: f64,
    /// What else there is to know.
    pub notes: Vec<String>,
}

impl ProofAnswer {
    /// The answer of an experiment; `proof` is missing if no pair of slices came about.
    pub fn new(experiment: Experiment, proof: Option<Proof>) -> Self {
        let faster = proof.and_then(|proof| proof.faster);
        let sooner = proof.and_then(|proof| proof.sooner(experiment.beside_seconds));
        let finite = |value: f64| value.is_finite().then_some(value);
        let of = |range: Option<Range>, end: fn(Range) -> f64| range.map(end).and_then(finite);
        Self {
            verdict: match proof.is_some_and(|proof| proof.is_proven()) {
                true => ProofVerdict::Proven,
                false => ProofVerdict::NotShown,
            },
            faster: of(faster, |range| range.value),
            faster_low: of(faster, |range| range.low),
            faster_high: of(faster, |range| range.high),
            sooner_seconds: of(sooner, |range| range.value),
            sooner_seconds_low: of(sooner, |range| range.low),
            sooner_seconds_high: of(sooner, |range| range.high),
            beside_seconds: experiment.beside_seconds,
            pairs: proof.map_or(0, |proof| proof.pairs),
            held_seconds: experiment.held_seconds,
            victim_free_cpus: proof.map(|proof| proof.victim_free_cpus),
            victim_held_cpus: proof.map(|proof| proof.victim_held_cpus),
            culprit_free_cpus: proof.map(|proof| proof.culprit_free_cpus),
            culprit_held_cpus: proof.map(|proof| proof.culprit_held_cpus),
            victim: experiment.victim,
            culprit: experiment.culprit,
            application: experiment.application,
            notes: experiment.notes,
            proof,
        }
    }

    /// The answer as text for a terminal.
    pub fn render(&self) -> String {
        let (victim, culprit) = (self.victim.title(), self.culprit.title());
        let mut text = String::new();
        let known = self
            .proof
            .as_ref()
            .filter(|proof| proof.pairs >= LEAST_PAIRS);
        let range = known.and_then(|proof| Some((proof, proof.faster?)));
        let percent = |faster: Range| {
            let [value, low, high] =
                [faster.value, faster.low, faster.high].map(|part| 100.0 * part);
            format!("{value:.0}% faster ({low:.0} to {high:.0}%)")
        };
        let _ = match (self.verdict, range) {
            (ProofVerdict::Proven, Some((proof, faster))) => {
                let sooner = proof.sooner(self.beside_seconds).unwrap_or(faster);
                writeln!(
                    text,
                    "Proven: {victim}\n  progresses {} while this query is held back: {culprit}\n  That is {:.1} s ({:.1} to {:.1} s) \
                     of the {:.1} s in which both have run so far.",
                    percent(faster),
                    sooner.value,
                    sooner.low,
                    sooner.high,
                    self.beside_seconds
                )
            }
            (_, known) => {
                let why = match known {
                    None => format!(
                        "There were {} pairs of slices in which both queries ran tasks, and {LEAST_PAIRS} are needed.",
                        self.pairs
                    ),
                    Some((proof, _)) if !proof.was_held_back() => format!(
                        "{} got {:.2} CPUs as usual and {:.2} while it was held back, so there was nothing to hold back.",
                        self.culprit.name(),
                        proof.culprit_free_cpus,
                        proof.culprit_held_cpus
                    ),
                    Some((_, faster)) if faster.high < 0.0 => format!(
                        "{} progressed {:.0}% slower ({:.0} to {:.0}%): other processes took the CPUs, or it waited for a thread \
                         that was held back.",
                        self.victim.name(),
                        -100.0 * faster.value,
                        -100.0 * faster.high,
                        -100.0 * faster.low
                    ),
                    Some((_, faster)) => format!(
                        "{} progressed {}, which can be chance.",
                        self.victim.name(),
                        percent(faster)
                    ),
                };
                writeln!(
                    text,
                    "Not shown: that {culprit}\n  slows this query down: {victim}\n  {why}"
                )
            }
        };
        if let Some(proof) = &self.proof {
            let _ = writeln!(
                text,
                "{} pairs of slices; {} was held back for {:.1} s in total.\n\n  CPUs that it got  as usual  held back\n  {:16}  {:8.2}  {:9.2}\n  {:16}  {:8.2}  {:9.2}",
                proof.pairs,
                self.culprit.name(),
                self.held_seconds,
                self.victim.name(),
                proof.victim_free_cpus,
                proof.victim_held_cpus,
                self.culprit.name(),
                proof.culprit_free_cpus,
                proof.culprit_held_cpus
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use unfuse_contention::{ProofPair, ProofSlice};

    use super::*;

    fn answer(victim_held: f64, culprit_held: f64, pairs: usize) -> ProofAnswer {
        let slice = |victim, culprit| ProofSlice {
            seconds: 1.0,
            victim_cpu_s: victim,
            culprit_cpu_s: culprit,
        };
        let pair = ProofPair {
            free: slice(1.0, 1.0),
            held: slice(victim_held, culprit_held),
        };
        let query = |execution, description: &str| ProofQuery {
            execution,
            description: description.to_owned(),
        };
        let experiment = Experiment {
            victim: query(3, "victim"),
            culprit: query(2, "culprit"),
            application: "app".to_owned(),
            beside_seconds: 30.0,
            held_seconds: pairs as f64,
            notes: Vec::new(),
        };
        ProofAnswer::new(experiment, Proof::from_pairs(&vec![pair; pairs]))
    }

    #[test]
    fn the_text_says_what_was_seen() {
        let proven = answer(1.5, 0.1, 8);
        let text = proven.render();
        assert!(
            text.contains("progresses 50% faster (50 to 50%)")
                && text.contains("10.0 s (10.0 to 10.0 s) of the 30.0 s"),
            "{text}"
        );
        let text = answer(1.0, 0.1, 8).render();
        assert!(
            text.starts_with("Not shown") && text.contains("can be chance"),
            "{text}"
        );
        let text = answer(1.5, 1.0, 8).render();
        assert!(text.contains("nothing to hold back"), "{text}");
        let text = answer(0.5, 0.1, 8).render();
        assert!(text.contains("query 3 progressed 50% slower ("), "{text}");
        let few = answer(1.5, 0.1, 5);
        let text = few.render();
        assert!(
            text.contains("5 pairs") && few.faster_low.is_none(),
            "{text}"
        );
        let none = answer(1.5, 0.1, 0);
        assert!(none.render().contains("There were 0 pairs"));
        assert_eq!(none.verdict, ProofVerdict::NotShown);
    }
}
