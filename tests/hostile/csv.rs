//! CSV files of any engine, for `unfuse blame`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::check::Case;
use crate::{NAME, secret};

const HEAD: &str = "host,query,stage,attempt,task,kind,start_ns,end_ns,units,blocked_ns\n";

/// Folders of CSV files under one directory.
struct Inputs<'a> {
    dir: &'a Path,
    folders: Vec<PathBuf>,
}

impl Inputs<'_> {
    fn add(&mut self, name: &str, files: &[(&str, Vec<u8>)]) {
        let folder = self.dir.join(name);
        fs::create_dir(&folder).expect("a directory");
        for (file, bytes) in files {
            fs::write(folder.join(file), bytes).expect("written");
        }
        self.folders.push(folder);
    }
}

fn intervals(rows: &[String]) -> (&'static str, Vec<u8>) {
    (
        "intervals.csv",
        format!("{HEAD}{}\n", rows.join("\n")).into_bytes(),
    )
}

fn quoted() -> String {
    format!("\"{}\"", NAME.replace('"', "\"\""))
}

/// A row with the hostile name in all columns of names.
fn named_row() -> String {
    let quoted = quoted();
    format!("{quoted},{quoted},1,0,{quoted},cpu,0,1000000000,1,1000000")
}

pub(crate) fn cases(dir: &Path) -> Vec<Case> {
    let mut inputs = Inputs {
        dir,
        folders: Vec::new(),
    };
    rows(&mut inputs);
    files(&mut inputs);
    let mut inputs = inputs.folders;
    let linked = dir.join("link");
    fs::create_dir(&linked).expect("a directory");
    symlink("/dev/zero", linked.join("intervals.csv")).expect("a link");
    inputs.push(linked);
    let secret_rows = dir.join("secret");
    fs::create_dir(&secret_rows).expect("a directory");
    let pipe = secret_rows.join("intervals.csv");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(pipe)
            .status()
            .expect("mkfifo")
            .success()
    );
    secret(dir);
    inputs.push(secret_rows);
    inputs.iter().flat_map(|input| commands(input)).collect()
}

/// Times, stages, names and amounts that no engine writes.
fn rows(inputs: &mut Inputs<'_>) {
    let most = i64::MAX;
    let latest = 4_000_000_000_000_000_000i64;
    let numbers = [0, 1, -1, i64::MIN, most - 1, most, latest];
    let late: Vec<String> = numbers
        .iter()
        .map(|end| format!("h,1,1,0,t,cpu,0,{end},1,{end}"))
        .collect();
    for (index, row) in late.iter().enumerate() {
        inputs.add(
            &format!("time-{index}"),
            &[intervals(std::slice::from_ref(row))],
        );
    }
    inputs.add(
        "near-the-end",
        &[intervals(&[format!(
            "h,1,1,0,t,cpu,{},{latest},1,1",
            latest - 2
        )])],
    );
    let chained =
        [1, 2, 3].map(|stage| format!("h,1,{stage},0,t{stage},cpu,0,3900000000000000000,1,1"));
    let stages = b"query,stage,attempt,parents\n1,2,0,1\n1,3,0,2\n".to_vec();
    inputs.add(
        "chained-stages",
        &[intervals(&chained), ("stages.csv", stages)],
    );
    let cycle = b"query,stage,attempt,parents\n1,2,0,1\n1,1,0,2\n".to_vec();
    inputs.add("cycle", &[intervals(&chained), ("stages.csv", cycle)]);
    let quoted = quoted();
    let named = named_row();
    let other = format!("{quoted},2,1,0,{quoted},cpu,0,1000000000,1,1000000");
    let queries = format!("query,label,user,pool,weight\n{quoted},{quoted},{quoted},{quoted},1\n");
    inputs.add(
        "names",
        &[
            intervals(&[named.clone(), other]),
            ("queries.csv", queries.into_bytes()),
        ],
    );
    inputs.add("wrong-word", &[intervals(&[named.replace("cpu", &quoted)])]);
    let amounts = ["NaN", "inf", "-1", "1e308", "1e-320"];
    for amount in amounts {
        inputs.add(
            &format!("amount-{amount}"),
            &[intervals(&[format!("h,1,1,0,t,cpu,0,1000,{amount},1")])],
        );
    }
}

/// Files that are long, that are not text, or that name hosts without tasks.
fn files(inputs: &mut Inputs<'_>) {
    let overlapping: Vec<String> = (0..40_000)
        .map(|task| {
            format!(
                "h,{},1,0,t{task},cpu,{task},{},1,1",
                task % 50,
                1_000_000 + task
            )
        })
        .collect();
    inputs.add("overlapping", &[intervals(&overlapping)]);
    inputs.add(
        "long-field",
        &[(
            "intervals.csv",
            [HEAD.as_bytes(), &[b'x'; 32 << 20]].concat(),
        )],
    );
    inputs.add(
        "open-quote",
        &[(
            "intervals.csv",
            [HEAD.as_bytes(), b"\"", &[b'\n'; 8 << 20]].concat(),
        )],
    );
    inputs.add(
        "no-text",
        &[(
            "intervals.csv",
            [HEAD.as_bytes(), &[0xff, 0, 0x1b, b'\n']].concat(),
        )],
    );
    inputs.add(
        "hosts",
        &[
            intervals(&[named_row()]),
            (
                "hosts.csv",
                format!(
                    "host,resource,start_ns,end_ns,units,capacity\nh,{},0,{},1,1\n",
                    quoted(),
                    i64::MAX
                )
                .into_bytes(),
            ),
        ],
    );
}

fn commands(input: &Path) -> Vec<Case> {
    let path = input.to_string_lossy().into_owned();
    let name = input
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    [
        vec!["blame", &path],
        vec![
            "blame", &path, "--json", "--stages", "all", "--split", "window",
        ],
        vec!["blame", &path, "--window", "-900000000..900000000"],
        vec!["blame", &path, "--graph", "graphml"],
        vec!["blame", &path, "--graph", "cypher"],
    ]
    .iter()
    .map(|arguments| Case::new(&name, arguments))
    .collect()
}
