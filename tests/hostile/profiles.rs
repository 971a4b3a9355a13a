//! Profile directories: a real one with hostile files in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use unfuse_format::{FrameKind, RecordSourceKind};

use arrow_schema::DataType;
use serde_json::{Map, Value, json};
use unfuse_format::*;
use unfuse_tests::root;

use crate::check::Case;
use crate::{NAME, SECRET, parquet, secret};

/// The profile whose records are in the file that no command names.
const NAMES_FILE: &str = "names-file";

/// A time in 2023, ms.
const NOW_MS: i64 = 1_700_000_000_000;

/// A profile on disk.
pub(crate) struct Hostile {
    name: String,
    path: PathBuf,
    /// Whether it still contains the real profile. If so, commands must read that.
    has_good_rows: bool,
}

/// All profiles.
pub(crate) fn make(dir: &Path) -> Vec<Hostile> {
    let mut profiles = with_segments(dir);
    profiles.extend(with_files(dir));
    profiles.extend(alone(dir));
    profiles
}

/// A copy of the real profile with a change.
fn beside(dir: &Path, name: &str, change: &dyn Fn(&Path)) -> Hostile {
    let path = dir.join(name);
    copy(&root().join("cli/tests/fixtures/canonical"), &path);
    shorten(&path);
    change(&path);
    Hostile {
        name: name.to_owned(),
        path,
        has_good_rows: true,
    }
}

/// Adds a segment to a table of a profile.
fn segment_of(table: &str, write: fn(&Path)) -> impl Fn(&Path) {
    let table = table.to_owned();
    move |profile: &Path| {
        let folder = profile.join(&table);
        fs::create_dir_all(&folder).expect("a folder");
        write(&folder.join("evil-1-00000.parquet"));
    }
}

/// A real profile with one hostile segment.
fn with_segments(dir: &Path) -> Vec<Hostile> {
    let with = |name: &str, change: &dyn Fn(&Path)| beside(dir, name, change);
    vec![
        with(
            "many-rows",
            &segment_of("samples", |path| parquet::many_rows(path, "count")),
        ),
        with(
            "many-tasks",
            &segment_of("tasks", |path| parquet::many_rows(path, "launched_ms")),
        ),
        with(
            "long-texts",
            &segment_of("samples", |path| {
                parquet::long_text_in_each_row(path, "thread")
            }),
        ),
        with(
            "long-plans",
            &segment_of("executions", |path| {
                parquet::long_text_in_each_row(path, "description")
            }),
        ),
        with(
            "endless-list",
            &segment_of("stacks", parquet::one_endless_list),
        ),
        with(
            "lying-page",
            &segment_of("samples", |path| parquet::lying_page(path, "count")),
        ),
        with(
            "endless-footer",
            &segment_of("stacks", parquet::endless_footer),
        ),
        with("deep-schema", &segment_of("stacks", parquet::deep_schema)),
        with(
            "endless-group",
            &segment_of("stacks", parquet::endless_group),
        ),
        with(
            "endless-booleans",
            &segment_of("samples", parquet::endless_booleans),
        ),
        with(
            "many-booleans",
            &segment_of("samples", parquet::many_booleans),
        ),
        with(
            "endless-row-groups",
            &segment_of("samples", parquet::endless_row_groups),
        ),
        with(
            "shared-pages",
            &segment_of("samples", |path| parquet::shared_pages(path, "count")),
        ),
        with(
            "pages-of-nothing",
            &segment_of("samples", |path| parquet::pages_of_nothing(path, "count")),
        ),
        with(
            "no-parquet",
            &segment_of("samples", |path| {
                fs::write(path, "PAR1 no").expect("written")
            }),
        ),
        with(
            "wrong-columns",
            &segment_of("stages", |path| {
                parquet::long_text_in_each_row(path, "stage")
            }),
        ),
    ]
}

/// A real profile with hostile sources, and with links and names of files outside it.
fn with_files(dir: &Path) -> Vec<Hostile> {
    let with = |name: &str, change: &dyn Fn(&Path)| beside(dir, name, change);
    vec![
        with("sources", &sources),
        with("links", &|profile| links(profile, dir)),
        with(NAMES_FILE, &|profile| names_file(profile, &secret(dir))),
        with("names-pipe", &|profile| {
            let path = dir.join("pipe");
            pipe(&path);
            names_file(profile, &path);
        }),
    ]
}

/// Profiles without the real one in them.
fn alone(dir: &Path) -> Vec<Hostile> {
    let only = |name: &str, change: &dyn Fn(&Path)| {
        let path = dir.join(name);
        fs::create_dir(&path).expect("a directory");
        fs::write(path.join("unfuse.json"), "{\"format\":1}").expect("written");
        change(&path);
        Hostile {
            name: name.to_owned(),
            path,
            has_good_rows: false,
        }
    };
    vec![
        only("extremes", &|profile| tables(profile, Values::Extreme)),
        only("names", &|profile| tables(profile, Values::Sane)),
        only("overlapping-tasks", &overlapping),
        only("deep", &deep),
        only("deep-manifest", &|profile| {
            let nested = "[".repeat(1 << 20);
            fs::write(profile.join("unfuse.json"), nested).expect("written");
        }),
        only("long-manifest", &|profile| {
            let file = fs::File::create(profile.join("unfuse.json")).expect("created");
            file.set_len(3 << 30).expect("a sparse file");
        }),
    ]
}

/// Every command that reads a profile.
pub(crate) fn commands(profile: &Hostile, dir: &Path) -> Vec<Case> {
    let path = profile.path.to_string_lossy().into_owned();
    let mut cases = Vec::new();
    let mut add = |arguments: &[&str], file: Option<&str>, succeeds: bool| {
        let mut case = Case::new(&profile.name, arguments);
        case.succeeds = succeeds && profile.has_good_rows;
        if let Some(name) = file {
            let out = dir.join(format!("{}-{name}", profile.name));
            case.arguments
                .extend(["-o".to_owned(), out.to_string_lossy().into_owned()]);
            case.writes = Some(out).filter(|_| !name.ends_with(".pb"));
        }
        cases.push(case);
    };
    for by in ["operator", "line", "thread"] {
        add(&["top", &path, "--by", by], None, true);
    }
    add(&["top", &path, "--json", "--kind", "wall"], None, true);
    add(&["report", &path], Some("report.html"), true);
    add(&["flame", &path], Some("flame.svg"), true);
    add(&["flame", &path, "--level", "full"], Some("full.svg"), true);
    add(&["source", &path, "--all"], None, true);
    add(&["history", "--in", &path], None, true);
    add(&["history", "--in", &path, "--json"], None, true);
    for format in ["folded", "speedscope", "firefox", "json"] {
        add(&["export", &path, "--format", format], None, true);
    }
    for format in ["pprof", "otlp"] {
        add(
            &["export", &path, "--format", format],
            Some("profile.pb"),
            true,
        );
    }
    for form in ["--junit", "--markdown"] {
        let arguments = ["check", &path, "--against", &path, form, "-"];
        add(&arguments, None, false);
    }
    add(&["check", &path, "--against", &path, "--json"], None, false);
    add(&["blame", &path], None, false);
    add(
        &[
            "blame",
            &path,
            "--json",
            "--stages",
            "all",
            "--blocked",
            "paper",
        ],
        None,
        false,
    );
    for format in ["json", "graphml", "cypher"] {
        add(&["blame", &path, "--graph", format], None, false);
    }
    add(&["skew", &path], None, false);
    add(&["what-if", &path], None, false);
    add(&["what-if", &path, "gc=0", "skew=0", "--json"], None, false);
    // `--read-inputs` asks for the contents of this file.
    if profile.name != NAMES_FILE {
        add(&["skew", &path, "--json", "--read-inputs"], None, false);
    }
    add(&["size", "fit", &path], Some("sizing.toml"), false);
    add(&["impact", "--profiles", &path, &path], None, false);
    cases
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

/// Keeps only the beginning of the real profile, because every command reads it once for each hostile profile.
fn shorten(profile: &Path) {
    for table in ["samples", "stacks"] {
        for number in 2..6 {
            let segment = format!("{table}/vm-2731-{number:05}.parquet");
            fs::remove_file(profile.join(segment)).expect("a segment of the real profile");
        }
    }
}

/// Replaces the sources of the real profile by texts with regions and methods that do not end.
fn sources(profile: &Path) {
    let begin = "/* BeginCodeRegion(PRODUCE_1) */\n".repeat(1024);
    let end = "/* EndCodeRegion(PRODUCE_1) */\n/* BeginCodeRegion(PRODUCE_1) */\n".repeat(4096);
    let helpers = "private void a() {\n".repeat(1 << 14);
    let text = format!("{begin}{end}{helpers}{NAME}{}", "\n".repeat(1 << 20));
    let sources = fs::read_dir(profile.join("sources")).expect("sources");
    for (index, entry) in sources.flatten().enumerate() {
        // The other texts are short, with nested regions only.
        let text = if index == 0 {
            text.as_str()
        } else {
            &text[..2048]
        };
        fs::write(entry.path(), text).expect("written");
    }
}

/// Puts links and pipes in all folders for files, and a link in place of a source.
fn links(profile: &Path, dir: &Path) {
    let secret = secret(dir);
    for table in fs::read_dir(profile).expect("a profile").flatten() {
        if table.path().is_dir() {
            symlink(&secret, table.path().join("link-1-00000.parquet")).expect("a link");
            pipe(&table.path().join("pipe-1-00000.parquet"));
        }
    }
    let sources = fs::read_dir(profile.join("sources")).expect("sources");
    let first = sources.flatten().next().expect("a source").path();
    fs::remove_file(&first).expect("removed");
    symlink(&secret, &first).expect("a link");
}

/// Makes a pipe. Opening it blocks for ever.
fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo").success());
}

/// Adds two records of the first lines of a file on the reader's machine. The profile has the content of one of them:
/// otherwise `--read-inputs` would not look for the other.
fn names_file(profile: &Path, file: &Path) {
    const TASK_KEY: TaskKey = TaskKey(7);
    let dir = ProfileDir::open(profile).expect("a profile");
    let mut sources = SegmentWriter::<RecordSourceRow>::new(&dir, "evil-1");
    sources.push(RecordSourceRow {
        task_key: TASK_KEY,
        kind: RecordSourceKind::File,
        name: "in.txt HadoopRDD[0]".to_owned(),
        count: 2,
        timed: true,
        output: -1,
        files: vec![format!("file:{}", file.display())],
        file_starts: vec![0],
        file_positions: vec![0],
        ..RecordSourceRow::default()
    });
    sources.flush().expect("written");
    let mut targets = SegmentWriter::<RecordTargetRow>::new(&dir, "evil-1");
    targets.push(RecordTargetRow {
        task_key: TASK_KEY,
        link: "result".to_owned(),
        count: 1,
        ..RecordTargetRow::default()
    });
    targets.flush().expect("written");
    let mut read = SegmentWriter::<RecordInRow>::new(&dir, "evil-1");
    let mut texts = SegmentWriter::<RecordTextRow>::new(&dir, "evil-1");
    for (position, text) in [(0, None), (1, Some("kept"))] {
        let ns = 1_000_000_000;
        read.push(RecordInRow {
            task_key: TASK_KEY,
            position,
            id: position * (SECRET.len() as i64 + 1),
            ns,
            ..RecordInRow::default()
        });
        texts.push(RecordTextRow {
            task_key: TASK_KEY,
            output: -1,
            position,
            ns,
            text: text.map(str::to_owned),
            ..RecordTextRow::default()
        });
    }
    read.flush().expect("written");
    texts.flush().expect("written");
    let mut made = SegmentWriter::<RecordOutRow>::new(&dir, "evil-1");
    made.push(RecordOutRow {
        task_key: TASK_KEY,
        ns: 2_000_000_000,
        count: 2,
        ..RecordOutRow::default()
    });
    made.flush().expect("written");
}

/// The numbers in rows.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Sane,
    /// Rows for each extreme of each column of numbers; the other columns are sane.
    Extreme,
}

/// Writes every table, with names that a terminal would interpret.
fn tables(profile: &Path, values: Values) {
    let dir = ProfileDir::open(profile).expect("a profile");
    macro_rules! write_tables {
        ($({ $($id:ident $name:ident: $row:ty => $lifetime:ident,)+ })+) => {
            $($(write_rows::<$row>(&dir, values);)+)+
        };
    }
    unfuse_format::every_table!(write_tables);
}

fn write_rows<T: Table>(dir: &ProfileDir, values: Values) {
    let fields = T::fields();
    let sane: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name().clone(), sane(field.name(), field.data_type())))
        .collect();
    let mut rows = vec![sane.clone(); 4];
    if values == Values::Extreme {
        for field in &fields {
            for extreme in extremes(field.data_type()) {
                let mut row = sane.clone();
                row.insert(field.name().clone(), extreme);
                // Twice, so that the sum overflows.
                rows.extend([row.clone(), row]);
            }
        }
    }
    let mut segments = SegmentWriter::<T>::new(dir, "evil-1");
    for row in rows {
        let row = Value::Object(row);
        segments.push(serde_json::from_value(row).unwrap_or_else(|e| panic!("{}: {e}", T::NAME)));
    }
    segments.flush().expect("written");
}

fn sane(name: &str, kind: &DataType) -> Value {
    match kind {
        DataType::Boolean => json!(true),
        DataType::Float32 | DataType::Float64 => json!(0.5),
        DataType::Utf8 | DataType::LargeUtf8 => match name {
            // Columns that join tables.
            "app" | "executor" | "host" => json!(format!("{name}{NAME}")),
            "hash" => json!("anything"),
            "status" => json!("SUCCESS"),
            _ => json!(NAME),
        },
        DataType::List(item) => json!([sane(item.name(), item.data_type())]),
        DataType::Struct(fields) => fields
            .iter()
            .map(|field| (field.name().clone(), sane(field.name(), field.data_type())))
            .collect::<Map<_, _>>()
            .into(),
        _ => match name {
            "start_ns" => json!(NOW_MS * 1_000_000),
            "end_ns" => json!((NOW_MS + 1000) * 1_000_000),
            "launched_ms" | "since_ms" | "submitted_ms" | "started_ms" => json!(NOW_MS),
            "finished_ms" | "completed_ms" | "ended_ms" => json!(NOW_MS + 1000),
            _ => json!(1),
        },
    }
}

fn extremes(kind: &DataType) -> Vec<Value> {
    match kind {
        DataType::Int32 => vec![json!(i32::MIN), json!(i32::MAX), json!(-1)],
        DataType::Int64 => vec![json!(i64::MIN), json!(i64::MAX), json!(-1)],
        DataType::UInt32 => vec![json!(u32::MAX), json!(0)],
        DataType::UInt64 => vec![json!(u64::MAX), json!(0)],
        DataType::Float64 => vec![json!(f64::MAX), json!(-1.0), json!(1e-300)],
        DataType::List(item) => {
            let items = extremes(item.data_type()).into_iter();
            items.map(|item| json!([item.clone(), item])).collect()
        }
        DataType::Struct(fields) => fields
            .iter()
            .flat_map(|field| {
                extremes(field.data_type()).into_iter().map(|extreme| {
                    let mut of = sane("", kind);
                    of[field.name()] = extreme;
                    of
                })
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// A stack and a plan that are deeper than those of any program.
fn deep(profile: &Path) {
    const DEPTH: i32 = 50_000;
    let dir = ProfileDir::open(profile).expect("a profile");
    let frame = |line: i32| Frame {
        kind: FrameKind::Java,
        class: "Deep".to_owned(),
        method: "down".to_owned(),
        line: line.cast_unsigned(),
        ..Frame::default()
    };
    let stack = StackRow::from_frames((0..DEPTH).map(frame).collect());
    let mut samples = SegmentWriter::<SampleRow>::new(&dir, "evil-1");
    samples.push(SampleRow {
        stack: stack.stack,
        stage: Some(0),
        stage_attempt: Some(0),
        count: 1,
        weight_ns: 1,
        ..SampleRow::default()
    });
    samples.flush().expect("written");
    let mut stacks = SegmentWriter::<StackRow>::new(&dir, "evil-1");
    stacks.push(stack);
    stacks.flush().expect("written");
    let mut stages = SegmentWriter::<StageRow>::new(&dir, "evil-1");
    stages.push(StageRow {
        execution: Some(1),
        ..StageRow::default()
    });
    stages.flush().expect("written");
    let mut plans = SegmentWriter::<PlanRow>::new(&dir, "evil-1");
    for node in 0..DEPTH {
        plans.push(PlanRow {
            execution: 1,
            node,
            parent: node.checked_sub(1).filter(|parent| *parent >= 0),
            operator: "Project".to_owned(),
            ..PlanRow::default()
        });
    }
    plans.flush().expect("written");
}

/// Tens of thousands of tasks that all run at the same time.
fn overlapping(profile: &Path) {
    const TASKS: i64 = 40_000;
    let dir = ProfileDir::open(profile).expect("a profile");
    let mut stages = SegmentWriter::<StageRow>::new(&dir, "evil-1");
    stages.push(StageRow {
        execution: Some(1),
        submitted_ms: Some(NOW_MS),
        completed_ms: Some(NOW_MS + 100_000),
        ..StageRow::default()
    });
    stages.flush().expect("written");
    let mut tasks = SegmentWriter::<TaskRow>::new(&dir, "evil-1");
    let mut intervals = SegmentWriter::<IntervalRow>::new(&dir, "evil-1");
    for task in 0..TASKS {
        let (launched, finished) = (NOW_MS + task, NOW_MS + 50_000 + task);
        tasks.push(TaskRow {
            task,
            launched_ms: launched,
            finished_ms: finished,
            run_ms: 50_000,
            ..TaskRow::default()
        });
        for kind in ["cpu", "io-read", "lock"] {
            intervals.push(IntervalRow {
                task,
                kind: kind.to_owned(),
                start_ns: launched * 1_000_000,
                end_ns: finished * 1_000_000,
                units: 1.0,
                blocked_ns: 1_000_000,
                ..IntervalRow::default()
            });
        }
    }
    tasks.flush().expect("written");
    intervals.flush().expect("written");
}
