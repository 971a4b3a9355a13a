//! Tables of runs and of prices, profiles of jobs, and the agent's options.

use std::fs;
use std::path::{Path, PathBuf};

use crate::check::Case;
use crate::{NAME, jobs};

fn file(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, text).expect("written");
    path
}

/// TOML with nested lists that do not end.
fn deep() -> String {
    format!("a = {}", "[".repeat(1 << 20))
}

/// Tables of runs.
fn runs(dir: &Path) -> Vec<PathBuf> {
    let toml_name = toml_text(NAME);
    let dotted = format!("{}x = 1", "a.".repeat(1 << 20));
    vec![
        file(
            dir,
            "names.csv",
            &format!(
                "workload,cpu,seconds\n\"{0}\",1,2\n\"{0}\",2,1\n",
                NAME.replace('"', "\"\"")
            ),
        ),
        file(
            dir,
            "extremes.csv",
            "cpu,seconds\n1e308,1e308\n1e-308,1e-308\n1,NaN\n",
        ),
        file(dir, "infinite.csv", "cpu,seconds\ninf,1\n1,inf\n"),
        file(dir, "wrong.csv", &format!("cpu,seconds,{NAME}\n1,2,3\n")),
        file(dir, "deep.toml", &deep()),
        file(dir, "dotted.toml", &dotted),
        file(
            dir,
            "names.toml",
            &format!(
                "[base]\ncpu = 1\ndisk = {toml_name}\n[[runs]]\ncpu = 1\nseconds = [1, 2]\nworkload = {toml_name}\n"
            ),
        ),
        PathBuf::from("/dev/zero"),
    ]
}

/// Tables of prices.
fn price_lists(dir: &Path) -> Vec<PathBuf> {
    vec![
        file(dir, "deep-prices.toml", &deep()),
        file(dir, "many-prices.toml", &prices(10_000, 1)),
        file(dir, "some-prices.toml", &prices(1_500, 1)),
        file(
            dir,
            "scarce-prices.toml",
            &prices(1_500, 3).replace("spot", "at_most = 700\nspot"),
        ),
        file(
            dir,
            "names-prices.toml",
            &prices(2, 4)
                .replace("type1", "x\\u001b[2Jx")
                .replace("USD", "\\u009b31m"),
        ),
        file(dir, "extreme-prices.toml", &prices(2, u32::MAX)),
        PathBuf::from("/dev/zero"),
    ]
}

/// Profiles of jobs.
fn profiles(dir: &Path) -> Vec<PathBuf> {
    let good = jobs::profile(dir, "job");
    let numbers = |number: &str| {
        let changed = |line: &str| match line.split_once(" = ") {
            Some((key, value)) if key != "version" && value.parse::<f64>().is_ok() => {
                format!("{key} = {number}\n")
            }
            _ => format!("{line}\n"),
        };
        good.lines().map(changed).collect::<String>()
    };
    vec![
        file(dir, "good.toml", &good),
        file(dir, "names-sizing.toml", &jobs::profile(dir, NAME)),
        file(dir, "large-sizing.toml", &numbers("1e308")),
        file(dir, "small-sizing.toml", &numbers("1e-308")),
        file(dir, "negative-sizing.toml", &numbers("-1.0")),
        file(dir, "whole-sizing.toml", &numbers(&i64::MAX.to_string())),
        file(
            dir,
            "tasks-sizing.toml",
            &good.replace(", 1]", ", 4294967295]"),
        ),
        file(
            dir,
            "cycle-sizing.toml",
            &good.replace("after = []", "after = [0]"),
        ),
        file(dir, "deep-sizing.toml", &deep()),
        file(dir, "newer-sizing.toml", "version = 4000000000\n"),
    ]
}

pub(crate) fn cases(dir: &Path) -> Vec<Case> {
    let price_lists = price_lists(dir);
    let mut cases = Vec::new();
    for path in &runs(dir) {
        add(&mut cases, path, &[&["impact"], &["impact", "--json"]]);
        add(&mut cases, path, &[&["size", "fit", "/nowhere", "--runs"]]);
    }
    for profile in &profiles(dir) {
        for prices in &price_lists {
            let (profile, prices) = (text(profile), text(prices));
            let shop = ["--prices", &prices, "--iterations", "1", "--size", "1000"];
            for question in [
                &["cheapest", &profile, "--deadline", "1h"][..],
                &["best", &profile, "--budget", "3"],
                &["curve", &profile],
            ] {
                let arguments = [&["size"], question, &shop].concat();
                cases.push(Case::new(&profile, &arguments));
            }
        }
        add(&mut cases, profile, &[&["size", "predict", "--slots", "4"]]);
    }
    for options in [
        NAME,
        "dir=\u{1b}[2J",
        "map=99999999999999999999",
        &"x=,".repeat(10_000),
    ] {
        let out = text(&dir.join("out"));
        let arguments = [
            "run",
            "--out",
            &out,
            "--agent-options",
            options,
            "--",
            "true",
        ];
        cases.push(Case::new("agent options", &arguments));
    }
    cases
}

/// Commands with the path as the last argument.
fn add(cases: &mut Vec<Case>, path: &Path, commands: &[&[&str]]) {
    let path = text(path);
    for command in commands {
        cases.push(Case::new(&path, &[command, &[path.as_str()][..]].concat()));
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn toml_text(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| format!("\\U{:08x}", u32::from(c)))
        .collect();
    format!("\"{escaped}\"")
}

fn prices(types: u32, slots: u32) -> String {
    let instance = |index: u32| {
        format!(
            "[[instance]]\nname = \"type{index}\"\nslots = {slots}\nspeed = 0.{:02}\non_demand = {}.5\nspot = 0.1\n",
            index % 90 + 10,
            index + 1
        )
    };
    format!(
        "currency = \"USD\"\n{}",
        (0..types).map(instance).collect::<String>()
    )
}
