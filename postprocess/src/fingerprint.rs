//! Identifies runs of the same query: a stable hash of the description and the plan, without the parts that differ
//! between runs (expression ids, plan ids, addresses, paths).

use std::fmt;

use crate::plan::Plan;
use crate::query_name::is_connect_request;

/// A hash that is equal for executions of the same query with the same plan, in any run of any application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a description and the plan's operators. Literals and numbers of partitions count.
    pub fn new(description: &str, plan: Option<&Plan>) -> Self {
        let mut hash = Fnv::default();
        hash.text(&normalised(description));
        let nodes = plan.map_or(&[][..], |plan| &plan.nodes[..plan.planned]);
        for node in nodes {
            hash.text(&normalised(&node.operator));
            hash.text(&normalised(&node.detail));
            hash.number(node.parent.map_or(u64::MAX, |parent| parent as u64));
        }
        Self(hash.0)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// FNV-1a, 64 bits: the same on every machine and in every release.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn number(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    /// Hashes a text with its length, so that texts cannot run into each other.
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }
}

/// A text of a plan, or a description, without the parts that differ between runs:
/// `a#12L` → `a#`, `plan_id=7` → `plan_id=`, `file:/x/y` → `file:`, `Foo@1f3c` → `Foo@`,
/// `ShuffleQueryStage 3` → `ShuffleQueryStage`, `RDD[5]` → `RDD[]`. Nothing is left of a request of Spark Connect.
pub fn normalised(text: &str) -> String {
    if is_connect_request(text) {
        return String::new();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(offset) = rest.find(['#', '@', '=', ':', ' ', '[', '(']) {
        let (before, mark) = (&rest[..offset], rest.as_bytes()[offset]);
        out.push_str(before);
        out.push(char::from(mark));
        rest = &rest[offset + 1..];
        let cut = match mark {
            b'#' => {
                let digits = count(rest, |c| c.is_ascii_digit());
                digits + usize::from(digits > 0 && rest[digits..].starts_with('L'))
            }
            b'@' => count(rest, |c| c.is_ascii_hexdigit()),
            b'=' if out.ends_with("plan_id=") => count(rest, |c| c.is_ascii_digit()),
            // A path after a scheme.
            b':' if rest.starts_with('/')
                && before.ends_with(|c: char| c.is_ascii_alphanumeric()) =>
            {
                count(rest, |c| {
                    !c.is_whitespace() && !matches!(c, ',' | ']' | ')')
                })
            }
            b' ' if out.ends_with("QueryStage ") => count(rest, |c| c.is_ascii_digit()),
            b'[' if out.ends_with("RDD[") => count(rest, |c| c.is_ascii_digit()),
            // Codegen stages are numbered as they are planned.
            b'(' if out.ends_with("WholeStageCodegen (") => count(rest, |c| c.is_ascii_digit()),
            _ => 0,
        };
        rest = &rest[cut..];
    }
    out.push_str(rest);
    out
}

/// Number of leading bytes whose characters fit.
fn count(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unfuse_format::PlanRow;

    fn plan(details: &[&str]) -> Plan {
        let rows = details.iter().enumerate().map(|(index, detail)| PlanRow {
            node: index as i32,
            parent: (index as i32).checked_sub(1),
            operator: "Scan".into(),
            detail: (*detail).into(),
            ..PlanRow::default()
        });
        Plan::from_rows(rows.collect())
    }

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        for (text, expected) in [
            ("Filter (a#12L > 5)", "Filter (a# > 5)"),
            (
                "Exchange hash(a#3, 200), [plan_id=77]",
                "Exchange hash(a#, 200), [plan_id=]",
            ),
            (
                "Location: X(1 paths)[file:/tmp/x-1/y], P: []",
                "Location: X(1 paths)[file:], P: []",
            ),
            ("ShuffleQueryStage 3", "ShuffleQueryStage "),
            (
                "Scan ExistingRDD MapPartitionsRDD[5] at x",
                "Scan ExistingRDD MapPartitionsRDD[] at x",
            ),
            ("com.x.Foo@1f3c, b", "com.x.Foo@, b"),
            ("WholeStageCodegen (3)", "WholeStageCodegen ()"),
            (
                "Spark Connect - session_id: \"eda7\"\nplan {\n  root {\n    common {\n      plan_id: 3",
                "",
            ),
        ] {
            assert_eq!(normalised(text), expected);
        }
    }

    #[test]
    fn runs_of_a_query_are_equal_and_other_queries_differ() {
        let of = |details: &[&str]| Fingerprint::new("q", Some(&plan(details)));
        assert_eq!(of(&["a#1 = b#2", "c#3"]), of(&["a#7 = b#8", "c#9"]));
        assert_ne!(of(&["a#1 > 5"]), of(&["a#1 > 6"]));
        assert_ne!(of(&["a", "b"]), of(&["ab", ""]));
        assert_ne!(Fingerprint::new("q", None), Fingerprint::new("r", None));
        // It is stored, so it must not change.
        assert_eq!(Fingerprint::new("q", None).to_string(), "529a5ddc8ff586ef");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([#@=: \\[(]|[a-zé0-9L/]|plan_id=|QueryStage |RDD\\[){0,30}") {
            prop_assert!(normalised(&text).len() <= text.len());
        }
    }
}
