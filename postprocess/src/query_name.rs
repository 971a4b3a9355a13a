//! Names a query in one line, by its description or its plan.

use std::sync::LazyLock;

use regex::Regex;

use crate::collect::is_subquery;
use crate::operator::{Operator, OperatorKind};
use crate::plain::shorten;
use crate::plan::{Plan, PlanNode};

/// Most characters of a name.
pub const LONGEST_NAME: usize = 100;

/// What a query is called of which nothing is known.
pub(crate) const UNNAMED: &str = "query without a description";

/// Tables that a phrase names; the others are counted.
const MOST_TABLES: usize = 4;
/// Steps that a phrase names: the last ones.
const MOST_STEPS: usize = 3;
/// Keys of a step that a phrase names.
const MOST_KEYS: usize = 2;

/// `save at NativeMethodAccessorImpl.java:0`, `collect at /home/me/my job.py:12`, `count at <console>:23`.
static CALL_SITE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\S+ at (?:[^\n:]*[^\s:]\.\w{1,10}|<[^<>\n]*>):\d+$").expect("a constant pattern")
});
static PATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[a-z][a-z0-9+.-]*:/+([^\s,\])]+)").expect("a constant pattern")
});
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([A-Za-z_][\w.]*)#\d+").expect("a constant pattern"));
static LIMIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"limit=(\d+)|Limit (\d+)").expect("a constant pattern"));

/// A name in one line, of at most [`LONGEST_NAME`] characters and without control characters: the description, which
/// Spark takes from the job's description or the SQL text. If the description only says where the query came from, the
/// name says what the plan does.
pub fn query_name(description: &str, plan: Option<&Plan>) -> String {
    let said = shorten(description, LONGEST_NAME);
    if !said.is_empty() && !is_origin(description) {
        return said;
    }
    match plan.and_then(phrase) {
        Some(phrase) if !phrase.is_empty() => shorten(&phrase, LONGEST_NAME),
        _ if said.is_empty() => UNNAMED.to_owned(),
        _ => said,
    }
}

/// Whether a description only says where the query came from: the place where Spark was called, as for DataFrame
/// queries, or the request of a client of Spark Connect.
pub fn is_origin(description: &str) -> bool {
    // Longer ones are SQL texts.
    description.len() < 1000
        && (CALL_SITE.is_match(description.trim()) || is_connect_request(description))
}

/// Whether a description is Spark's for a request of Spark Connect: the beginning of the request, with the session and
/// numbers that differ for each, but without the query. Of an event log, only the first two words are kept.
pub(crate) fn is_connect_request(description: &str) -> bool {
    description == "Spark Connect" || description.starts_with("Spark Connect - session_id: ")
}

/// What a part of a plan does.
#[derive(Debug, Default)]
struct Flow {
    /// Its inputs, each with the symbol that joins it to those before.
    tables: Vec<(&'static str, String)>,
    /// Number of tables that are not named.
    more: usize,
    /// What happens to the rows, in this order.
    steps: Vec<(OperatorKind, String)>,
}

impl Flow {
    fn from_table(table: String) -> Self {
        Self {
            tables: vec![("", table)],
            ..Self::default()
        }
    }

    /// Joins two inputs. The steps before the join are dropped.
    fn joined(mut self, sign: &'static str, other: Self) -> Self {
        self.steps.clear();
        self.more += other.more;
        for (index, (own, table)) in other.tables.into_iter().enumerate() {
            if self.tables.len() < MOST_TABLES {
                self.tables
                    .push((if index == 0 { sign } else { own }, table));
            } else {
                self.more += 1;
            }
        }
        self
    }

    fn then(&mut self, kind: OperatorKind, step: String) {
        // A partial and a final step are one; filters count only if nothing else happens.
        if let Some((last, _)) = self.steps.last()
            && (*last == kind || *last == OperatorKind::Filter)
        {
            self.steps.pop();
        }
        self.steps.push((kind, step));
        if self.steps.len() > MOST_STEPS {
            self.steps.remove(0);
        }
    }

    fn text(self) -> String {
        let mut text = String::new();
        for (sign, table) in &self.tables {
            if !sign.is_empty() {
                text += &format!(" {sign} ");
            }
            text += table;
        }
        if self.more > 0 {
            text += &format!(" and {} more", self.more);
        }
        for (_, step) in self.steps {
            text += " → ";
            text += &step;
        }
        text
    }
}

/// `lineitem ⋈ supplier → aggregate by expression`; none for a plan without nodes.
fn phrase(plan: &Plan) -> Option<String> {
    let nodes = &plan.nodes[..plan.planned.min(plan.nodes.len())];
    let mut inputs: Vec<Vec<Flow>> = Vec::new();
    inputs.resize_with(nodes.len(), Vec::new);
    let mut root = None;
    // Children come after their parent.
    for (index, node) in nodes.iter().enumerate().rev() {
        let mut children = std::mem::take(&mut inputs[index]);
        children.reverse();
        let flow = flow(node, children);
        match node.parent {
            Some(parent) if !is_subquery(&node.operator) => inputs[parent].push(flow),
            Some(_) => {}
            None => root = Some(flow),
        }
    }
    root.map(Flow::text)
}

fn flow(node: &PlanNode, inputs: Vec<Flow>) -> Flow {
    let kind = Operator::from_name(&node.operator).kind;
    let sign = match kind {
        OperatorKind::Join => "⋈",
        _ if node.operator == "Union" => "∪",
        _ => "+",
    };
    let joined = |a: Flow, b: Flow| a.joined(sign, b);
    let Some(mut flow) = inputs.into_iter().reduce(joined) else {
        return Flow::from_table(table_name(node));
    };
    if let Some(step) = step(node, kind) {
        flow.then(kind, step);
    }
    flow
}

/// The source of a node without an input: a table, or the name of its files without what follows a dot.
pub fn table_name(node: &PlanNode) -> String {
    let (operator, detail) = (node.operator.as_str(), node.detail.as_str());
    let named = operator
        .split_whitespace()
        .nth(match operator.split(' ').next() {
            Some("Scan") => 2,
            Some("BatchScan") => 1,
            _ => usize::MAX,
        });
    if let Some(name) = named.filter(|name| name.contains('.') && !name.contains('/')) {
        return last(name, '.').to_owned();
    }
    if let Some(path) = PATH.captures(detail).and_then(|found| found.get(1)) {
        return file_name(path.as_str());
    }
    match operator.split_whitespace().collect::<Vec<_>>()[..] {
        ["Scan", "ExistingRDD", ..] => "RDD".to_owned(),
        ["Scan", "In-memory", "table", name, ..] => name.to_owned(),
        ["Scan", format, ..] => format.to_owned(),
        ["BatchScan", name, ..] => name.to_owned(),
        ["LocalTableScan", ..] => "local rows".to_owned(),
        ["InMemoryTableScan", ..] => "cached table".to_owned(),
        ["OneRowRelation", ..] => "one row".to_owned(),
        ["Range", ..] => "range".to_owned(),
        ["Execute", command, ..] => command.trim_end_matches("Command").to_owned(),
        _ => operator.to_owned(),
    }
}

/// `lineitem` from `data/tpch/lineitem.parquet`, even if Spark cut the end off.
fn file_name(path: &str) -> String {
    let whole = path.trim_end_matches('/');
    let name = last(whole, '/');
    let stem = name.split('.').next().unwrap_or(name);
    let is_cut = whole.ends_with("...") && name.trim_end_matches('.') == stem;
    match (stem, is_cut) {
        ("", _) => name.to_owned(),
        (stem, true) => format!("{stem}…"),
        (stem, false) => stem.to_owned(),
    }
}

fn last(text: &str, separator: char) -> &str {
    text.rsplit(separator).next().unwrap_or(text)
}

/// The step of a node; `None` if it is not worth naming.
fn step(node: &PlanNode, kind: OperatorKind) -> Option<String> {
    let detail = node.detail.as_str();
    let limit = || {
        let found = LIMIT.captures(detail)?;
        let number = found.get(1).or(found.get(2))?;
        Some(number.as_str().to_owned())
    };
    Some(match kind {
        OperatorKind::Aggregate => by("aggregate", keys(detail, "keys=[")),
        OperatorKind::Sort if node.operator == "TakeOrderedAndProject" => {
            let top = format!("top {}", limit().unwrap_or_default());
            by(top.trim_end(), keys(detail, "orderBy=["))
        }
        // A sort that does not order all rows serves another operator.
        OperatorKind::Sort if detail.contains("], true,") => by("sort", keys(detail, "Sort [")),
        OperatorKind::Window => "window".to_owned(),
        OperatorKind::Generate => {
            let function = detail.strip_prefix("Generate ")?.split('(').next()?;
            function.to_owned()
        }
        OperatorKind::Python => "Python".to_owned(),
        OperatorKind::Filter if node.operator.contains("Limit") => format!("limit {}", limit()?),
        OperatorKind::Filter if node.operator == "Filter" => "filter".to_owned(),
        OperatorKind::Write if !detail.contains("noop") => {
            let path = PATH.captures(detail).and_then(|found| found.get(1));
            match path.map(|path| file_name(path.as_str())) {
                Some(name) => format!("write {name}"),
                None => "write".to_owned(),
            }
        }
        _ => return None,
    })
}

fn by(what: &str, keys: String) -> String {
    if keys.is_empty() {
        what.to_owned()
    } else {
        format!("{what} by {keys}")
    }
}

/// The columns in the list that begins with `mark`.
fn keys(detail: &str, mark: &str) -> String {
    let Some((_, list)) = detail.split_once(mark) else {
        return String::new();
    };
    let mut depth = 1;
    let end = list.find(|c| {
        depth += match c {
            '[' => 1,
            ']' => -1,
            _ => 0,
        };
        depth == 0
    });
    let list = &list[..end.unwrap_or(list.len())];
    let names = ATTRIBUTE
        .captures_iter(list)
        .filter_map(|found| found.get(1));
    let names = names.map(|name| match name.as_str() {
        "_groupingexpression" => "expression",
        name => name,
    });
    let mut names: Vec<&str> = names.take(MOST_KEYS + 1).collect();
    names.dedup();
    if names.len() > MOST_KEYS {
        names[MOST_KEYS] = "…";
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unfuse_format::PlanRow;

    use super::*;
    use crate::plain::is_obeyed;

    fn plan(rows: &[(Option<i32>, &str, &str)]) -> Plan {
        let rows = rows.iter().enumerate();
        let rows = rows.map(|(node, (parent, operator, detail))| PlanRow {
            node: node as i32,
            parent: *parent,
            operator: (*operator).into(),
            detail: (*detail).into(),
            ..PlanRow::default()
        });
        Plan::from_rows(rows.collect())
    }

    fn scan(parent: i32, path: &str) -> (Option<i32>, &'static str, String) {
        let detail = format!(
            "FileScan parquet [a#1] Batched: true, Location: InMemoryFileIndex(1 paths)[file:{path}, PartitionFilters: []"
        );
        (Some(parent), "Scan parquet ", detail)
    }

    #[test]
    fn only_origins_are_no_names() {
        for site in [
            "save at NativeMethodAccessorImpl.java:0",
            "collect at /home/me/my job.py:12",
            "count at <console>:23",
            "$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768",
            "Spark Connect",
            "Spark Connect - session_id: \"eda7\"\nplan {\n  root {\n    common {\n      plan_id: 3\n...",
        ] {
            assert!(is_origin(site), "{site}");
        }
        for text in [
            "",
            "load at 5:30",
            "nightly load at site a.b: 5",
            "SELECT 1",
        ] {
            assert!(!is_origin(text), "{text}");
        }
    }

    #[test]
    fn a_cached_table_has_its_name() {
        for (operator, expected) in [
            ("Scan In-memory table sales", "sales"),
            ("InMemoryTableScan", "cached table"),
        ] {
            let plan = plan(&[(None, operator, "")]);
            assert_eq!(table_name(&plan.nodes[0]), expected);
        }
    }

    #[test]
    fn a_description_is_the_name_in_one_line() {
        assert_eq!(query_name("SELECT *\n\tFROM t", None), "SELECT * FROM t");
        let long = query_name(&"x, ".repeat(40_000), None);
        assert_eq!(long.chars().count(), LONGEST_NAME);
        assert!(long.ends_with('…'));
        assert_eq!(query_name("", None), "query without a description");
        assert_eq!(
            query_name("a\u{202e}b\u{1b}[2J", None),
            r"a\u{202e}b\u{1b}[2J"
        );
    }

    #[test]
    fn a_plan_says_what_it_does() {
        let left = scan(5, "/data/lineitem.parq...");
        let right = scan(6, "/data/supplier.parquet]");
        let plan = plan(&[
            (
                None,
                "OverwriteByExpression",
                "OverwriteByExpression noop-table NoopWrite",
            ),
            (
                Some(0),
                "AdaptiveSparkPlan",
                "AdaptiveSparkPlan isFinalPlan=true",
            ),
            (
                Some(1),
                "HashAggregate",
                "HashAggregate(keys=[_groupingexpression#72L], functions=[avg(x#1)])",
            ),
            (
                Some(2),
                "Exchange",
                "Exchange hashpartitioning(_groupingexpression#72L, 200)",
            ),
            (
                Some(3),
                "HashAggregate",
                "HashAggregate(keys=[_groupingexpression#72L], functions=[partial_avg(x#1)])",
            ),
            (
                Some(4),
                "BroadcastHashJoin",
                "BroadcastHashJoin [l#1], [s#2], Inner",
            ),
            (
                Some(5),
                "TakeOrderedAndProject",
                "TakeOrderedAndProject(limit=10, orderBy=[s_acctbal#21 DESC NULLS LAST])",
            ),
            (left.0, left.1, &left.2),
            (right.0, right.1, &right.2),
        ]);
        let name = query_name("save at NativeMethodAccessorImpl.java:0", Some(&plan));
        // The children of the join are in the order of the plan.
        assert_eq!(name, "supplier ⋈ lineitem → aggregate by expression");
    }

    #[test]
    fn tables_are_named_as_the_plan_can() {
        let name =
            |operator: &str, detail: &str| query_name("", Some(&plan(&[(None, operator, detail)])));
        assert_eq!(
            name(
                "Scan parquet spark_catalog.default.orders",
                "FileScan parquet"
            ),
            "orders"
        );
        assert_eq!(
            name("BatchScan lake.db.events", "BatchScan lake.db.events[a#1]"),
            "events"
        );
        assert_eq!(
            name(
                "Scan csv ",
                "FileScan csv Location: X(1 paths)[hdfs://host/a/b.csv]"
            ),
            "b"
        );
        assert_eq!(
            name("Scan csv ", "Location: X(1 paths)[file:/a/ord..., Part"),
            "ord…"
        );
        assert_eq!(name("Range", "Range (0, 10, step=1, splits=2)"), "range");
        assert_eq!(name("Execute ShowTablesCommand", ""), "ShowTables");
    }

    proptest! {
        #[test]
        fn names_are_bounded(
            description in "[\u{0}-\u{ff}\u{2020}-\u{2070}a-z ]{0,200}",
            rows in prop::collection::vec((prop::option::of(0i32..20), "(Scan x|Union|Filter|HashAggregate|Sort|[a-z\u{0}]{0,9})", "([\u{0}-\u{ff}]|keys=\\[|a#1|file:/|\\]){0,40}"), 0..20),
        ) {
            let rows: Vec<(Option<i32>, &str, &str)> = rows.iter().map(|(a, b, c)| (*a, b.as_str(), c.as_str())).collect();
            for text in [description.as_str(), "count at <console>:23"] {
                let name = query_name(text, Some(&plan(&rows)));
                prop_assert!(name.chars().count() <= LONGEST_NAME && !name.is_empty());
                prop_assert!(!name.contains(is_obeyed), "{name:?}");
            }
        }
    }
}
