//! Event logs.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::check::Case;
use crate::{NAME, secret};

/// Size of the text that a bomb unpacks to, bytes.
const BOMB: usize = 2 << 30;

pub(crate) fn cases(dir: &Path) -> Vec<Case> {
    let mut logs = vec![
        written(dir, "one-line.zstd", |path| {
            zstd_of(path, &[b' '; 1 << 20], BOMB)
        }),
        written(dir, "tasks.zstd", |path| {
            let line = format!("{}\n", task_end(1));
            zstd_of(path, line.repeat(1000).as_bytes(), BOMB);
        }),
        written(dir, "nested", |path| {
            let nested = "{\"a\":[".repeat(1 << 20);
            text(
                path,
                &[format!(
                    "{{\"Event\":\"SparkListenerTaskEnd\",\"x\":{nested}"
                )],
            );
        }),
        written(dir, "long-lists", |path| {
            let list = format!("[{}1]", "1,".repeat(7 << 20));
            let ids = format!(
                "{{\"Event\":\"SparkListenerJobStart\",\"Job ID\":1,\"Submission Time\":1,\"Stage Infos\":[],\"Stage IDs\":{list}}}"
            );
            let rdds = format!("[{}{{\"RDD ID\":1}}]", "{\"RDD ID\":1},".repeat(1 << 20));
            let stage = format!(
                "{{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":{{\"Stage ID\":1,\"Stage Attempt ID\":0,\"Stage Name\":\"x\",\"Number of Tasks\":1,\"RDD Info\":{rdds},\"Parent IDs\":{list}}}}}"
            );
            text(path, &[ids, stage, task_end(1)]);
        }),
        written(dir, "plans", |path| {
            let start = |sql: i64, plan: &str| {
                format!(
                    "{{\"Event\":\"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart\",\"executionId\":{sql},\"description\":{},\"time\":1,\"sparkPlanInfo\":{plan}}}",
                    name()
                )
            };
            let deep = format!(
                "{}{}",
                "{\"nodeName\":\"WholeStageCodegen (1)\",\"children\":[".repeat(200_000),
                "]}".repeat(200_000)
            );
            let wide = format!("{{\"children\":[{}{{}}]}}", "{},".repeat(4 << 20));
            let app = format!(
                "{{\"Event\":\"SparkListenerApplicationStart\",\"App Name\":\"{}\",\"App ID\":\"{}\",\"Timestamp\":1}}",
                "n".repeat(1 << 20),
                "i".repeat(8 << 20)
            );
            text(
                path,
                &[app, start(1, &deep), start(2, &wide), stage(1), task_end(1)],
            );
        }),
        written(dir, "extremes", |path| {
            let numbers = [i64::MAX, i64::MIN, -1, 0, 1];
            let lines = numbers
                .iter()
                .flat_map(|number| [task_end(*number), task_end(*number), stage(*number)]);
            text(path, &lines.collect::<Vec<_>>());
        }),
        written(dir, "names", |path| {
            text(path, &[stage(1), task_end(1), "{\u{1b}[2J".to_owned()])
        }),
        written(dir, "garbage", |path| {
            fs::write(path, [0x28, 0xb5, 0x2f, 0xfd, 1, 2, 3]).expect("written")
        }),
        PathBuf::from("/dev/zero"),
    ];
    let pipe = dir.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    logs.push(pipe.clone());
    let rolling = dir.join("eventlog_v2_app");
    fs::create_dir(&rolling).expect("a directory");
    symlink(secret(dir), rolling.join("events_1_app")).expect("a link");
    symlink(&pipe, rolling.join("events_2_app")).expect("a link");
    text(&rolling.join("events_3_app"), &[stage(1), task_end(1)]);
    logs.push(rolling);
    logs.iter().flat_map(|log| commands(log, dir)).collect()
}

fn commands(log: &Path, dir: &Path) -> Vec<Case> {
    let path = log.to_string_lossy().into_owned();
    let name = log
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let page = dir
        .join(format!("{name}.html"))
        .to_string_lossy()
        .into_owned();
    let out = dir
        .join(format!("{name}.toml"))
        .to_string_lossy()
        .into_owned();
    [
        vec!["skew", &path],
        vec!["skew", &path, "--json"],
        vec!["what-if", &path],
        vec!["why", &path],
        vec!["plan", &path, "--all"],
        vec!["blame", &path],
        vec!["report", &path, "-o", &page],
        vec!["size", "fit", &path, "-o", &out],
    ]
    .iter()
    .map(|arguments| Case::new(&name, arguments))
    .collect()
}

fn written(dir: &Path, name: &str, write: impl FnOnce(&Path)) -> PathBuf {
    let path = dir.join(name);
    write(&path);
    path
}

fn text(path: &Path, lines: &[String]) {
    let start = "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.0.0\"}\n";
    fs::write(path, format!("{start}{}\n", lines.join("\n"))).expect("written");
}

/// Writes this number of bytes of a repeated text, compressed.
fn zstd_of(path: &Path, part: &[u8], bytes: usize) {
    let file = fs::File::create(path).expect("created");
    let mut packed = zstd::Encoder::new(file, 1).expect("an encoder");
    packed
        .write_all(b"{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.0.0\"}\n")
        .expect("written");
    for _ in 0..bytes / part.len() {
        packed.write_all(part).expect("written");
    }
    packed.finish().expect("finished");
}

fn name() -> String {
    serde_json::to_string(NAME).expect("JSON")
}

fn stage(number: i64) -> String {
    let id = number.clamp(-1, i64::from(i32::MAX));
    format!(
        "{{\"Event\":\"SparkListenerStageSubmitted\",\"Stage Info\":{{\"Stage ID\":{id},\"Stage Attempt ID\":0,\"Stage Name\":{},\
         \"Number of Tasks\":{id},\"Submission Time\":{number},\"RDD Info\":[],\"Parent IDs\":[]}}}}",
        name()
    )
}

fn task_end(number: i64) -> String {
    let id = number.clamp(-1, i64::from(i32::MAX));
    format!(
        "{{\"Event\":\"SparkListenerTaskEnd\",\"Stage ID\":{id},\"Stage Attempt ID\":0,\"Task Type\":\"ResultTask\",\
         \"Task End Reason\":{{\"Reason\":\"Success\"}},\"Task Info\":{{\"Task ID\":{number},\"Index\":{id},\"Attempt\":0,\
         \"Launch Time\":{number},\"Executor ID\":{0},\"Host\":{0},\"Locality\":\"ANY\",\"Speculative\":false,\
         \"Finish Time\":{number}}},\"Task Metrics\":{{\"Executor Run Time\":{number},\"Executor CPU Time\":{number},\
         \"JVM GC Time\":{number},\"Result Size\":{number},\"Memory Bytes Spilled\":{number},\"Disk Bytes Spilled\":{number},\
         \"Input Metrics\":{{\"Bytes Read\":{number},\"Records Read\":{number}}},\
         \"Shuffle Read Metrics\":{{\"Remote Bytes Read\":{number},\"Local Bytes Read\":{number},\"Fetch Wait Time\":{number},\
         \"Total Records Read\":{number}}}}}}}",
        name()
    )
}
