//! Whether it helps to do what `unfuse blame` suggests.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use unfuse_format::counted;

use super::harm::tool;
use super::nobody::mean;
use super::recorded::{Recorded, has_name, victim_seconds};
use super::server::{Server, Statement, User};
use super::{Contention, MEASURES};
use crate::page::{Figure, Measuring, slug};
use crate::random::Random;
use crate::session::ChildGuard;
use crate::spark::Spark;

const VICTIM: &str = "SELECT count(*) FROM range(0, 64, 1, 8) WHERE length(reflect('Neighbours', 'spin', 75000, 0, id)) > 0";
/// More slots than CPUs, and fewer than tasks.
const SLOTS: u32 = 6;
/// The culprit runs for so long before the victim, ms.
const BEFORE_MS: u64 = 1500;
/// A pool with more weight than the others have, and that weight.
const PREFERRED: (&str, u32) = ("preferred", 4);
/// A program that uses a CPU, and its argument.
const OUTSIDE: [&str; 2] = ["sha256sum", "/dev/zero"];

/// What makes the victim slow.
#[derive(Debug, Clone, Copy)]
enum Culprit {
    /// A query.
    Query(&'static str),
    /// Two processes of [`OUTSIDE`].
    Processes,
}

/// When the culprit runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Beside,
    After,
}

/// How victim and culprit run: their scheduler pools, and when the culprit does.
#[derive(Debug, Clone, Copy)]
struct Way {
    pools: [&'static str; 2],
    when: When,
}

/// A suggestion that can be carried out on one machine.
#[derive(Debug)]
struct Case {
    /// Its name in the answer.
    action: &'static str,
    /// The culprit, for the page.
    about: &'static str,
    /// What is done, for the page.
    act: &'static str,
    culprit: Culprit,
    before: Way,
    acted: Way,
}

const APART: Way = Way {
    pools: ["victim", "culprit"],
    when: When::Beside,
};

const CASES: [Case; 4] = [
    Case {
        action: "delay",
        about: "one stage of eight tasks that compute for 4 s",
        act: "the culprit starts when the victim has ended",
        culprit: Culprit::Query(
            "SELECT count(*) FROM range(0, 8, 1, 8) WHERE length(reflect('Neighbours', 'busy', 4000, 0, id)) > 0",
        ),
        before: APART,
        acted: Way {
            when: When::After,
            ..APART
        },
    },
    Case {
        action: "change-pool",
        about: "150 tasks that hold a slot for 200 ms, in the pool of the victim",
        act: "the culprit has a pool of its own",
        culprit: Culprit::Query(
            "SELECT count(*) FROM range(0, 150, 1, 150) WHERE length(reflect('Neighbours', 'busy', 0, 200, id)) > 0",
        ),
        before: Way {
            pools: ["shared", "shared"],
            ..APART
        },
        acted: Way {
            pools: ["shared", "culprit"],
            ..APART
        },
    },
    Case {
        action: "reprioritise",
        about: "six stages of twelve tasks that compute for 500 ms, in another pool of the same weight",
        act: "the victim runs in a pool of weight 4",
        culprit: Culprit::Query(
            "SELECT a.n, b.n, c.n, d.n, e.n, f.n FROM \
             (SELECT count(*) AS n FROM range(0, 12, 1, 12) WHERE length(reflect('Neighbours', 'busy', 500, 0, id)) > 0) a CROSS JOIN \
             (SELECT count(*) AS n FROM range(1, 13, 1, 12) WHERE length(reflect('Neighbours', 'busy', 500, 0, id)) > 0) b CROSS JOIN \
             (SELECT count(*) AS n FROM range(2, 14, 1, 12) WHERE length(reflect('Neighbours', 'busy', 500, 0, id)) > 0) c CROSS JOIN \
             (SELECT count(*) AS n FROM range(3, 15, 1, 12) WHERE length(reflect('Neighbours', 'busy', 500, 0, id)) > 0) d CROSS JOIN \
             (SELECT count(*) AS n FROM range(4, 16, 1, 12) WHERE length(reflect('Neighbours', 'busy', 500, 0, id)) > 0) e CROSS JOIN \
             (SELECT count(*) AS n FROM range(5, 17, 1, 12) WHERE length(reflect('Neighbours', 'busy', 500, 0, id)) > 0) f",
        ),
        before: APART,
        acted: Way {
            pools: [PREFERRED.0, "culprit"],
            ..APART
        },
    },
    Case {
        action: "look-outside",
        about: "two processes outside Spark that compute",
        act: "they do not run",
        culprit: Culprit::Processes,
        before: APART,
        acted: Way {
            when: When::After,
            ..APART
        },
    },
];

impl Case {
    /// The names of the victim's and the culprit's statements.
    fn names(&self, repeat: u32, way: &str) -> [String; 2] {
        ["victim", "culprit"].map(|who| format!("{repeat}-{}-{way}-{who}", slug(self.action)))
    }

    /// Its outcomes.
    fn of<'a>(&self, outcomes: &'a [Outcome]) -> impl Iterator<Item = &'a Outcome> {
        let action = self.action;
        outcomes
            .iter()
            .filter(move |outcome| outcome.case.action == action)
    }

    fn run(&self, server: &Server, way: Way, names: &[String; 2]) -> Result<()> {
        let [victim, culprit] = names;
        let mut first = Statement::new(victim, VICTIM);
        let mut users = Vec::new();
        let mut processes = Vec::new();
        match (self.culprit, way.when) {
            (Culprit::Query(sql), When::Beside) => {
                first = first.after(culprit, BEFORE_MS);
                users.push(Statement::new(culprit, sql).until_end_of(victim));
            }
            (Culprit::Query(sql), When::After) => {
                users.push(Statement::new(culprit, sql).after_end_of(victim));
            }
            (Culprit::Processes, When::Beside) => {
                processes = [(); 2]
                    .map(|()| outside())
                    .into_iter()
                    .collect::<Result<_>>()?;
            }
            (Culprit::Processes, When::After) => {}
        }
        users.push(first);
        let user = |statement: Statement| User {
            name: way.pools[usize::from(statement.name == *culprit)].to_owned(),
            statements: vec![statement],
        };
        server.run(&users.into_iter().map(user).collect::<Vec<User>>())?;
        drop(processes);
        Ok(())
    }
}

fn outside() -> Result<ChildGuard> {
    let [program, argument] = OUTSIDE;
    let mut command = Command::new(program);
    let command = command.arg(argument).stdout(Stdio::null());
    Ok(ChildGuard(command.spawn().context("cannot run sha256sum")?))
}

/// What came of a suggestion.
struct Outcome {
    case: &'static Case,
    /// The victim's time before and after, s.
    times_s: [f64; 2],
    /// The most that was promised: likely, low, high, s; nothing if the action was not suggested.
    said_s: Option<[f64; 3]>,
}

impl Outcome {
    fn saved_s(&self) -> f64 {
        self.times_s[0] - self.times_s[1]
    }

    /// Whether no more was saved than was promised as the most.
    fn is_within(&self) -> bool {
        let most = self.said_s.map(|[likely, _, high]| high.max(1.2 * likely));
        most.is_some_and(|most| self.saved_s() <= most)
    }
}

/// Carries out all suggestions and writes `contention-act.md`.
pub fn measure(asked: &Contention, spark: &Spark, results: &Path) -> Result<()> {
    if asked.runs < 2 {
        bail!("at least 2 --runs are needed, for the noise of the victim's time");
    }
    let page = Measuring::begin(results, "contention-act", &MEASURES)?;
    let preferred = (PREFERRED.0.to_owned(), PREFERRED.1);
    let server = Server::start(spark, &tool(spark, &[preferred])?, SLOTS, "2g")?;
    for case in &CASES {
        case.run(&server, case.before, &case.names(u32::MAX, "warm-up"))?;
    }
    let bar = ProgressBar::new(u64::from(asked.runs) * CASES.len() as u64);
    let bar = bar.with_style(ProgressStyle::with_template(
        "[{bar:24}] {pos} of {len} suggestions carried out, {elapsed}",
    )?);
    let mut random = Random(asked.seed);
    for repeat in 0..asked.runs {
        let mut cases: Vec<&Case> = CASES.iter().collect();
        random.shuffle(&mut cases);
        for case in cases {
            let mut ways = [("before", case.before), ("acted", case.acted)];
            random.shuffle(&mut ways);
            for (name, way) in ways {
                case.run(&server, way, &case.names(repeat, name))?;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let recorded = Recorded::from_server(server)?;
    let mut outcomes = Vec::new();
    for case in &CASES {
        for repeat in 0..asked.runs {
            let [before, acted] = ["before", "acted"].map(|way| case.names(repeat, way));
            outcomes.push(Outcome {
                case,
                times_s: [recorded.time(&before[0])?, recorded.time(&acted[0])?],
                said_s: said(spark, &recorded, case, &before)?,
            });
        }
    }
    page.finish(asked.runs, figures(&outcomes), &body(asked, &outcomes))
}

/// The seconds that `unfuse blame` promises the victim for the action of a case, at most.
fn said(
    spark: &Spark,
    recorded: &Recorded,
    case: &Case,
    [victim, culprit]: &[String; 2],
) -> Result<Option<[f64; 3]>> {
    let answer = recorded.blame(spark, victim)?;
    let culprit = match case.culprit {
        Culprit::Query(_) => format!("query {}", recorded.name(culprit)?),
        Culprit::Processes => OUTSIDE[0].to_owned(),
    };
    let rows = answer["suggestions"].as_array().into_iter().flatten();
    let mut rows = rows.filter(|row: &&Value| {
        let text = row["text"].as_str().unwrap_or_default();
        row["action"] == case.action && has_name(text, &culprit)
    });
    Ok(rows.next().map(victim_seconds))
}

fn figures(outcomes: &[Outcome]) -> Vec<Figure> {
    let count = |is: &dyn Fn(&Outcome) -> bool| {
        let count = outcomes.iter().filter(|outcome| is(outcome)).count();
        (count, outcomes.len())
    };
    let mut figures = vec![
        Figure::from_counts(
            "suggested",
            "runs in which the action is suggested, about the one that does harm",
            count(&|outcome| outcome.said_s.is_some()),
        ),
        Figure::from_counts(
            "helped",
            "runs in which the victim was faster after it",
            count(&|outcome| outcome.saved_s() > 0.0),
        ),
        Figure::from_counts(
            "within",
            "runs in which it saved no more than was said to be the most, or 20% more",
            count(&Outcome::is_within),
        ),
    ];
    for case in &CASES {
        let saved: Vec<f64> = case
            .of(outcomes)
            .map(|outcome| 100.0 * outcome.saved_s() / outcome.times_s[0])
            .collect();
        let name = format!("saved_{}", slug(case.action).replace('-', "_"));
        let what = format!("of the victim's time, saved by `{}`", case.action);
        figures.push(Figure::from_runs(&name, &what, &saved, "%", 1));
    }
    figures
}

fn body(asked: &Contention, outcomes: &[Outcome]) -> String {
    let mut body = format!(
        "A victim that computes in eight tasks runs beside a culprit, which started {:.1} s before it, on a warm Thrift server of \
         Spark 4.3 (local[{SLOTS}], fair scheduling). `unfuse blame` makes suggestions about this run. Then the victim runs as \
         suggested; {} of both, in random order. *Said* is the most that can be expected, as the answer says: how much sooner the \
         victim would end without the culprit. Moving to another host needs a second one, so it is not tried. Times are those of SQL \
         executions, means with 95% intervals.\n\n\
         | suggestion | the culprit | what is done | victim, s | afterwards, s | saved, s | said, s | range | suggested |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        BEFORE_MS as f64 / 1e3,
        counted(asked.runs, "run"),
    );
    for case in &CASES {
        let shown = |value: &dyn Fn(&Outcome) -> Option<f64>| {
            mean(&case.of(outcomes).filter_map(value).collect::<Vec<f64>>())
        };
        let said = |at: usize| shown(&|outcome: &Outcome| Some(outcome.said_s?[at]));
        let _ = writeln!(
            body,
            "| {} | {} | {} | {} | {} | {} | {} | {} to {} | {} of {} |",
            case.action,
            case.about,
            case.act,
            shown(&|outcome| Some(outcome.times_s[0])),
            shown(&|outcome| Some(outcome.times_s[1])),
            shown(&|outcome| Some(outcome.saved_s())),
            said(0),
            said(1),
            said(2),
            case.of(outcomes)
                .filter(|outcome| outcome.said_s.is_some())
                .count(),
            case.of(outcomes).count(),
        );
    }
    body
}
