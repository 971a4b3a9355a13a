//! Compares the paper's tables with its equations. The result is the part of docs/sizing.md between the marks;
//! `UNFUSE_WRITE_DOCS=1 cargo test -p unfuse-sizing --test paper` writes it there.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use unfuse_sizing::{Category, ClosedForm, Phases, Point, Run};

const DOC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sizing.md");
const MARKS: [&str; 2] = [
    "<!-- made by the test paper.rs -->\n",
    "<!-- until here -->\n",
];
/// Estimates are printed to two or one digits after the point, some parts to one.
const ROUNDING: f64 = 0.1;
/// T_init + T_prep and coeff × T_vs^baseline of table II, s.
const CONSTANT: f64 = 20.0 + 13.0;
const SHARING: f64 = 0.004 * 15.0;

#[derive(Deserialize)]
struct Step {
    iterations: f64,
    nodes: f64,
    sharing: f64,
    communication: f64,
    execution: f64,
    computation: f64,
    estimated: f64,
    recorded: f64,
}

#[derive(Deserialize)]
struct Scheduled {
    deadline: f64,
    mode: String,
    application: String,
    iterations: f64,
    nodes: f64,
    estimated: f64,
    recorded: f64,
}

#[derive(Deserialize)]
struct Stable {
    category: String,
    mode: String,
    deviation: f64,
    variance: f64,
}

#[derive(Deserialize)]
struct Budgeted {
    budget: f64,
    mode: String,
    application: String,
    nodes: f64,
    estimated: f64,
    recorded: f64,
}

fn table<T: DeserializeOwned>(number: u32) -> Vec<T> {
    let path = format!(
        "{}/tests/paper/table-{number}.csv",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut rows = csv::Reader::from_path(path).expect("a table");
    rows.deserialize().map(|row| row.expect("a row")).collect()
}

fn agrees(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDING + 1e-9
}

fn count<T>(rows: &[T], holds: impl Fn(&T) -> bool) -> usize {
    rows.iter().filter(|row| holds(row)).count()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn run(nodes: f64, iterations: f64, seconds: f64) -> Run {
    Run {
        log: String::new(),
        application: "ALS".into(),
        category: Category::MLlib,
        at: Point {
            slots: nodes,
            iterations,
            bytes: 1.0,
        },
        seconds,
        phases: Phases::default(),
        stages: Vec::new(),
    }
}

/// Equation 8 fitted freely: mean relative error, and the number of rows that agree with the paper's.
fn equation_8(runs: &[Run]) -> (f64, usize) {
    let form = ClosedForm::fit(&runs.iter().collect::<Vec<_>>()).expect("a fit");
    let error = mean(
        runs.iter()
            .map(|run| (form.seconds(&run.at) / run.seconds - 1.0).abs()),
    );
    (
        error,
        count(runs, |run| agrees(form.seconds(&run.at), run.seconds)),
    )
}

/// K and b of T = K + b·iter/n², by the median of all pairs' slopes, which is robust against single misprints.
fn square(rows: &[(f64, f64, f64)]) -> (f64, f64) {
    let x = |(iterations, nodes, _): &(f64, f64, f64)| iterations / (nodes * nodes);
    let mut slopes = Vec::new();
    for (index, a) in rows.iter().enumerate() {
        for b in &rows[index + 1..] {
            if (x(a) - x(b)).abs() > 1e-9 {
                slopes.push((a.2 - b.2) / (x(a) - x(b)));
            }
        }
    }
    let slope = median(slopes);
    (
        median(rows.iter().map(|row| row.2 - slope * x(row)).collect()),
        slope,
    )
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn steps(text: &mut String) {
    let rows: Vec<Step> = table(3);
    assert_eq!(rows.len(), 16);
    let sharing = |row: &Step| SHARING * row.iterations * row.nodes;
    let computation = |row: &Step| row.communication + row.execution;
    let total = |row: &Step| CONSTANT + row.sharing + row.computation;
    let first = &rows[0];
    let execution =
        |row: &Step| first.execution * row.iterations / first.iterations * first.nodes / row.nodes;
    let communication = |row: &Step| first.communication * first.nodes / row.nodes;
    text.push_str(
        "**Table III** (ALS, standalone). T_Init + T_prep and coeff × T_vs^baseline are those of table II. \"By the equations\" scales \
         the printed parts of the first row by iter and n.\n\n\
         | iter | n | T_vs printed | eq. 1 | T_commn/n printed | eq. 2, 6 | T_exec/n printed | eq. 5, 6 | T_comp printed | its sum | T_Est printed | eq. 3 | T_Rec |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in &rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {} | {:.1} | {} | {:.1} | {} | {:.2} | {} | {:.2} | {} |",
            row.iterations,
            row.nodes,
            row.sharing,
            sharing(row),
            row.communication,
            communication(row),
            row.execution,
            execution(row),
            row.computation,
            computation(row),
            row.estimated,
            total(row),
            row.recorded
        );
    }
    let estimates: Vec<Run> = rows
        .iter()
        .map(|row| run(row.nodes, row.iterations, row.estimated))
        .collect();
    let recorded: Vec<Run> = rows
        .iter()
        .map(|row| run(row.nodes, row.iterations, row.recorded))
        .collect();
    let (of_estimates, as_printed) = equation_8(&estimates);
    let (of_recorded, _) = equation_8(&recorded);
    let error = mean(
        rows.iter()
            .map(|row| (row.estimated / row.recorded - 1.0).abs()),
    );
    let _ = writeln!(
        text,
        "\n* Equation 1 gives the printed T_vs in {} of 16 rows.\n\
         * T_comp is the sum of its parts (equation 6) in {} rows; T_Est is the sum of the four terms (equation 3) in {}. The \
         others are misprints or were not computed from the row.\n\
         * T_exec/n follows equation 5 in {} rows: it halves where n goes from 10 to 15 and from 15 to 20, and grows as 2, 3, 4, 6 with iterations 5 to 20.\n\
         * T_commn/n follows equation 2, which has no iterations, in {} of 16 rows.\n\
         * So no factors of equation 8 give these estimates: the best fit is {:.1}% from them on average, and prints {as_printed} rows \
         as they are printed. To the recorded times equation 8 fits with {:.1}%.\n\
         * The estimates are {:.1}% from the recorded times on average; figure 3(i) says 9.4% for this application and mode.\n",
        count(&rows, |row| agrees(sharing(row), row.sharing)),
        count(&rows, |row| agrees(computation(row), row.computation)),
        count(&rows, |row| agrees(total(row), row.estimated)),
        count(&rows, |row| agrees(execution(row), row.execution)),
        count(&rows, |row| agrees(communication(row), row.communication)),
        100.0 * of_estimates,
        100.0 * of_recorded,
        100.0 * error,
    );
}

/// By application and mode.
type Estimates = BTreeMap<(String, String), Vec<(f64, f64, f64)>>;

/// Estimates of tables IV and VI by mode and application: (iterations, nodes, estimate).
fn estimates() -> Estimates {
    let mut all = Estimates::new();
    for row in table::<Scheduled>(4) {
        let of = all.entry((row.application, row.mode)).or_default();
        of.push((row.iterations, row.nodes, row.estimated));
    }
    // Table VI has no iterations; those of the first column of table IV fit.
    for row in table::<Budgeted>(6) {
        let of = all.entry((row.application, row.mode)).or_default();
        of.push((5.0, row.nodes, row.estimated));
    }
    all
}

/// K and b of K + b·iter/n² by application and mode; writes a row of the first table for each.
fn formulas(text: &mut String) -> BTreeMap<(String, String), (f64, f64)> {
    let mut formulas: BTreeMap<(String, String), (f64, f64)> = BTreeMap::new();
    for ((application, mode), all) in estimates() {
        let runs: Vec<Run> = all
            .iter()
            .map(|(iterations, nodes, time)| run(*nodes, *iterations, *time))
            .collect();
        let (error, as_printed) = equation_8(&runs);
        let (constant, shared) = square(&all);
        let of = |(iterations, nodes, _): &(f64, f64, f64)| {
            constant + shared * iterations / (nodes * nodes)
        };
        let square_error = mean(all.iter().map(|row| (of(row) / row.2 - 1.0).abs()));
        let _ = writeln!(
            text,
            "| {application} | {mode} | {} | {:.2}% | {as_printed} | {constant:.2} | {shared:.2} | {:.2}% | {} |",
            all.len(),
            100.0 * error,
            100.0 * square_error,
            count(&all, |row| agrees(of(row), row.2)),
        );
        formulas.insert((application, mode), (constant, shared));
    }
    formulas
}

fn schedules(text: &mut String) {
    let rows: Vec<Scheduled> = table(4);
    assert_eq!(rows.len(), 50);
    text.push_str(
        "**Tables IV and VI.** Their estimates follow no sum of 1, n·iter and iter/n (equation 8 for one size), but K + b·iter/n²: both the division by \
         n (equation 6) and another one, and no T_vs.\n\n\
         | application | mode | estimates | equation 8, fitted: mean error | printed so | K, s | b, s | K + b·iter/n²: mean error | printed so |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    let formulas = formulas(text);
    // With one type of machine, objective 9 is n·T.
    let cheapest = |row: &Scheduled| {
        let (constant, shared) = formulas[&(row.application.clone(), row.mode.clone())];
        let time = |n: f64| constant + shared * row.iterations / (n * n);
        let in_time = (1..=1000)
            .map(f64::from)
            .filter(|n| time(*n) < row.deadline);
        in_time.min_by(|a, b| (a * time(*a)).total_cmp(&(b * time(*b))))
    };
    let same = |a: &Scheduled, b: &Scheduled| {
        a.mode == b.mode
            && a.application == b.application
            && a.nodes == b.nodes
            && a.iterations == b.iterations
    };
    let differing: Vec<String> = rows
        .iter()
        .enumerate()
        .flat_map(|(index, a)| rows[index + 1..].iter().map(move |b| (a, b)))
        .filter(|(a, b)| same(a, b) && !agrees(a.estimated, b.estimated))
        .map(|(a, b)| {
            format!(
                "{} {} with {} iterations on {} nodes {} and {} s",
                a.application, a.mode, a.iterations, a.nodes, a.estimated, b.estimated
            )
        })
        .collect();
    let in_time = count(&rows, |row| row.recorded <= row.deadline);
    let _ = writeln!(
        text,
        "\n* The deadline was met in {in_time} of the {} recorded times of table IV, {:.0}%; the paper says about 98%. Of the \
         estimates {} are not below the deadline, which the constraint T_Est < SLO asks for.\n\
         * {} of the {} cluster sizes are those that K + b·iter/n² makes the cheapest below the deadline (objective 9); {} are larger and {} smaller, some by rounding.\n\
         * The same question has two answers: {}.\n\
         * The estimates of table IV are {:.1}% from the recorded times on average.\n",
        rows.len(),
        100.0 * in_time as f64 / rows.len() as f64,
        count(&rows, |row| row.estimated >= row.deadline),
        count(&rows, |row| cheapest(row) == Some(row.nodes)),
        rows.len(),
        count(&rows, |row| cheapest(row).is_some_and(|n| row.nodes > n)),
        count(&rows, |row| cheapest(row).is_none_or(|n| row.nodes < n)),
        if differing.is_empty() {
            "nowhere".to_owned()
        } else {
            differing.join("; ")
        },
        100.0
            * mean(
                rows.iter()
                    .map(|row| (row.estimated / row.recorded - 1.0).abs())
            ),
    );
    budgets(text, &formulas);
}

fn budgets(text: &mut String, formulas: &BTreeMap<(String, String), (f64, f64)>) {
    let rows: Vec<Budgeted> = table(6);
    assert_eq!(rows.len(), 20);
    let price = |row: &Budgeted| row.budget * 3600.0 / (row.nodes * row.estimated);
    let mut prices: Vec<f64> = rows.iter().map(price).collect();
    prices.sort_by(f64::total_cmp);
    let middle = prices[prices.len() / 2];
    let affordable = |row: &Budgeted, price: f64| {
        let (constant, shared) = formulas[&(row.application.clone(), row.mode.clone())];
        let cost = |n: f64| price * n * (constant + shared * 5.0 / (n * n)) / 3600.0;
        (1..=1000).map(f64::from).rfind(|n| cost(*n) <= row.budget)
    };
    // The hourly price, in tenths of a cent, for which most rows are the largest cluster within the budget.
    let fits = |price: f64| count(&rows, |row| affordable(row, price) == Some(row.nodes));
    let (best, tenths) = (200..800)
        .map(|tenths| (fits(f64::from(tenths) / 1000.0), tenths))
        .max_by_key(|(rows, tenths)| (*rows, -tenths))
        .expect("prices");
    let _ = writeln!(
        text,
        "* Table VI names no price. By equation 9 its rows spend their budget at {:.3} to {:.3} $ an hour and node, in the middle {middle:.3}. With {:.3} \
         most rows, {best} of {}, are the largest cluster that the budget buys.\n\
         * Its estimates are {:.1}% from the recorded times on average.\n",
        prices[0],
        prices[prices.len() - 1],
        f64::from(tenths) / 1000.0,
        rows.len(),
        100.0
            * mean(
                rows.iter()
                    .map(|row| (row.estimated / row.recorded - 1.0).abs())
            ),
    );
}

fn other(text: &mut String) {
    let rows: Vec<Stable> = table(5);
    assert_eq!(rows.len(), 8);
    let off: Vec<String> = rows
        .iter()
        .filter(|row| (row.deviation * row.deviation / row.variance - 1.0).abs() > 0.01)
        .map(|row| format!("{} {}", row.category, row.mode))
        .collect();
    let _ = writeln!(
        text,
        "**Table V.** The variance is the square of the standard deviation, to a hundredth of it, in {} of {} cells{}. What it is the mean of is not said: the means \
         (1 to 53) are no completion times of the other tables in seconds.\n",
        rows.len() - off.len(),
        rows.len(),
        if off.is_empty() {
            String::new()
        } else {
            format!(" (not in {})", off.join(", "))
        },
    );
    // Figure 3(i), by application: standalone, YARN.
    let errors = [0.019, 0.012, 0.036, 0.087, 0.020, 0.086, 0.094, 0.126];
    let average = mean(errors.iter().copied());
    let deviation = (errors.iter().map(|e| (e - average).powi(2)).sum::<f64>() / 7.0).sqrt();
    // Student's t of 7 degrees of freedom, 95%.
    let half = 2.365 * deviation / 8f64.sqrt();
    let _ = writeln!(
        text,
        "**Figure 3(i).** The mean of the eight errors is {average:.3}, as printed. Its 95% confidence interval is {:.3} to {:.3}; printed is 0.056 to 0.062.\n\n\
         **Introduction.** 30 machines for 40 hours at 0.1403 $ are {:.2} $ (printed 168.45); 10 for 60 hours are {:.2} $ (printed 84.18).",
        average - half,
        average + half,
        30.0 * 40.0 * 0.1403,
        10.0 * 60.0 * 0.1403,
    );
}

#[test]
fn the_document_says_what_the_tables_say() {
    let mut text = String::new();
    steps(&mut text);
    schedules(&mut text);
    other(&mut text);
    let document = fs::read_to_string(DOC).expect("docs/sizing.md");
    let (before, rest) = document.split_once(MARKS[0]).expect("the first mark");
    let (there, after) = rest.split_once(MARKS[1]).expect("the second mark");
    if std::env::var_os("UNFUSE_WRITE_DOCS").is_some() {
        fs::write(
            DOC,
            format!("{before}{}{text}{}{after}", MARKS[0], MARKS[1]),
        )
        .expect("docs/sizing.md");
        return;
    }
    assert_eq!(
        there, text,
        "docs/sizing.md is not what the tables say; see the first lines of this file"
    );
}
