//! The answer for CI servers, in the form of JUnit: a test case for each query.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use unfuse_postprocess::plain::{shorten, xml};

use super::answer::{Answer, MissingQuery, Query, Status};
use super::text::{besides, headline, measure, percent, range, word};

/// The longest text of an attribute, in characters.
const ROOM: usize = 200;

/// The answer as an XML file. A query that is slower or failed is a failure; a query that only one side has is skipped.
pub fn junit(answer: &Answer) -> String {
    let mut names = Names::default();
    let mut cases = String::new();
    let (mut failures, mut skipped) = (0usize, 0usize);
    for query in &answer.queries {
        failures += usize::from(query.status <= Status::Regression);
        cases += &case(query, &mut names);
    }
    for query in &answer.only_now {
        match &query.error {
            Some(error) => {
                failures += 1;
                let failure = failure("failed", error, "");
                cases += &element(&names.open(&query.application, &query.name), &failure);
            }
            None => {
                skipped += 1;
                cases += &skip(query, "it was not there before", &mut names);
            }
        }
    }
    for query in &answer.only_before {
        skipped += 1;
        cases += &skip(query, "it is not there now", &mut names);
    }
    let tests = answer.queries.len() + answer.only_now.len() + answer.only_before.len();
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"unfuse check\" {counts}>\n  <testsuite name=\"unfuse \
         check\" {counts}>\n{cases}    <system-out>{}</system-out>\n  </testsuite>\n</testsuites>\n",
        attribute(&headline(answer))
    )
}

fn case(query: &Query, names: &mut Names) -> String {
    let wall = query
        .comparisons
        .iter()
        .find(|of| of.measure == super::Measure::Wall);
    let time = wall.map_or_else(String::new, |wall| {
        format!(" time=\"{:.3}\"", wall.seconds.now)
    });
    let open = format!("{}{time}", names.open(&query.application, &query.name));
    let mut text = String::new();
    for comparison in query
        .comparisons
        .iter()
        .filter(|of| of.status != Status::Ok)
    {
        let _ = writeln!(
            text,
            "{}: {} {} ({}){}",
            word(comparison.status),
            measure(comparison),
            percent(comparison.seconds.change),
            range(&comparison.seconds),
            besides(comparison)
        );
    }
    if let Some(plan) = &query.plan {
        text += plan;
        text.push('\n');
    }
    let inside = match (&query.error, query.comparisons.first()) {
        (Some(error), _) => failure("failed", error, &text),
        (None, Some(worst)) if worst.status == Status::Regression => {
            let change = percent(worst.seconds.change);
            failure("regression", &format!("{} {change}", measure(worst)), &text)
        }
        _ if text.is_empty() => String::new(),
        _ => format!("      <system-out>{}</system-out>\n", lines(&text)),
    };
    element(&open, &inside)
}

fn element(open: &str, inside: &str) -> String {
    match inside {
        "" => format!("    <{open}/>\n"),
        inside => format!("    <{open}>\n{inside}    </testcase>\n"),
    }
}

fn failure(kind: &str, message: &str, text: &str) -> String {
    let message = attribute(message);
    format!(
        "      <failure type=\"{kind}\" message=\"{message}\">{}</failure>\n",
        lines(text)
    )
}

fn skip(query: &MissingQuery, why: &str, names: &mut Names) -> String {
    let open = names.open(&query.application, &query.name);
    element(&open, &format!("      <skipped message=\"{why}\"/>\n"))
}

/// Names of test cases. Servers take cases with the same name for one.
#[derive(Default)]
struct Names(BTreeMap<(String, String), usize>);

impl Names {
    /// The begin of a case.
    fn open(&mut self, application: &str, name: &str) -> String {
        let [class, name] = [application, name].map(attribute);
        let seen = self.0.entry((class.clone(), name.clone())).or_default();
        *seen += 1;
        let number = if *seen > 1 {
            format!(" ({seen})")
        } else {
            String::new()
        };
        format!("testcase classname=\"{class}\" name=\"{name}{number}\"")
    }
}

/// In one line, without characters that a terminal obeys.
fn attribute(text: &str) -> String {
    xml(&shorten(text, ROOM))
}

/// The same in each line.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(attribute).collect();
    lines.join("\n")
}
