//! Rewrites the corpus after a change of a format: `cargo run -p unfuse-fuzz --bin corpus`. Leaves other files, such as inputs
//! that crashed, unchanged.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use unfuse_format::{
    CodegenRow, ExecutionRow, Frame, FrameKind, PlanRow, ProcessRow, ProfileDir, SampleRow,
    SegmentWriter, SourceRow, StackId, StackRow, StageRow, Table,
};
use unfuse_fuzz::corpus_dir;
use unfuse_profiler::wire::{
    self, Tally, TaskAttempt, ToManager, ToWriter, WireFrame, WireSamples, WireStack, WireStacks,
};
use unfuse_sizing::{Category, Phases, Point, Profile, Run, Stage, Times};

/// The stage of the recorded profile from which the segments are made, and the number of its samples in them.
const STAGE: i32 = 7;
const SAMPLES: usize = 12;

fn main() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cli/tests/fixtures/canonical");
    records();
    options();
    messages();
    events();
    regions(&recorded);
    segments(&recorded);
    event_logs();
    task_records();
    contention();
    runs();
    sizing();
}

fn save(target: &str, name: &str, bytes: &[u8]) {
    let dir = corpus_dir(target);
    fs::create_dir_all(&dir).expect("the corpus's folder");
    fs::write(dir.join(name), bytes).expect("a file of the corpus");
}

/// Records as the kernel writes them for the sample type that `perf_event::event` requests.
fn records() {
    const SAMPLE: u32 = 9;
    const LOST: u32 = 2;
    const LOST_SAMPLES: u32 = 13;
    const USER: u16 = 2;
    let record = |kind: u32, words: &[u64]| -> Vec<u8> {
        let size = 8 + 8 * words.len() as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(USER.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    };
    let (user, stack) = (-512i64 as u64, 0x7f12_3456_7000u64);
    let head = [77, 0x7f00_1234, 42 << 32 | 42, 1_000_000_007, 5_000_000];
    let chain = [4, user, 0x7f00_1234, 0x7f00_2234, 0x7f00_3234];
    let registers = [2, 0x7f00_8888, stack + 16, stack, 0x7f00_9999];
    let copied = [32, 1, stack + 32, stack + 24, 0x7f00_2234, 24];
    let whole = [&head[..], &chain, &registers, &copied].concat();
    let bare = [&head[..], &[0, 0, 0]].concat();
    save("record", "sample", &record(SAMPLE, &whole));
    save("record", "sample-without-stack", &record(SAMPLE, &bare));
    const SWITCH: u32 = 14;
    save(
        "record",
        "switch",
        &record(SWITCH, &[42 << 32 | 42, 1_000_000_007, 77]),
    );
    save("record", "lost", &record(LOST, &[7, 3]));
    save("record", "lost-samples", &record(LOST_SAMPLES, &[5]));
}

fn options() {
    let all = "dir=/tmp/profile,rate=200,threads=task,source=timer,map=64,executors=on";
    save("options", "all", all.as_bytes());
    save(
        "options",
        "wrong",
        b"colour=red,rate=fast,dir=,map=3,threads",
    );
    save("options", "empty-parts", b",,rate=0,,");
}

/// Events of every kind as text, and the beginnings of logs in Spark's codecs.
fn event_logs() {
    let task = r#""Stage ID":7,"Stage Attempt ID":0,"Task Info":{"Task ID":12,"Index":0,"Attempt":0,"Partition ID":0,"Launch Time":5,"Executor ID":"1","Host":"h","Locality":"ANY","Speculative":false,"Getting Result Time":0,"Finish Time":9}"#;
    let stage = r#""Stage Info":{"Stage ID":7,"Stage Attempt ID":0,"Stage Name":"count","Number of Tasks":1,"RDD Info":[{"RDD ID":2,"Name":"R","Scope":"{\"id\":\"0\",\"name\":\"Exchange\"}","Parent IDs":[1],"Storage Level":{"Use Disk":false,"Use Memory":true},"Number of Partitions":1}],"Parent IDs":[6],"Submission Time":4}"#;
    let lines = [
        r#"{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}"#.to_owned(),
        r#"{"Event":"SparkListenerApplicationStart","App Name":"job","App ID":"app","Timestamp":1,"User":"me"}"#.to_owned(),
        r#"{"Event":"SparkListenerEnvironmentUpdate","JVM Information":{"Java Version":"17"},"Spark Properties":{"spark.master":"local"}}"#.to_owned(),
        r#"{"Event":"SparkListenerExecutorAdded","Timestamp":2,"Executor ID":"1","Executor Info":{"Host":"h","Total Cores":2}}"#.to_owned(),
        r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart","executionId":1,"description":"q","sparkPlanInfo":{"children":[{"children":[]}]},"time":3}"#.to_owned(),
        r#"{"Event":"SparkListenerJobStart","Job ID":1,"Submission Time":3,"Stage IDs":[6,7],"Properties":{"spark.sql.execution.id":"1","spark.scheduler.pool":"p"}}"#.to_owned(),
        format!(r#"{{"Event":"SparkListenerStageSubmitted",{stage},"Properties":{{}}}}"#),
        format!(r#"{{"Event":"SparkListenerTaskStart",{task}}}"#),
        format!(r#"{{"Event":"SparkListenerTaskEnd","Task Type":"ResultTask","Task End Reason":{{"Reason":"TaskKilled","Kill Reason":"x"}},"Task Metrics":{{"Executor Run Time":4,"Shuffle Read Metrics":{{"Local Bytes Read":-1}}}},{task}}}"#),
        format!(r#"{{"Event":"SparkListenerStageCompleted",{stage}}}"#),
        r#"{"Event":"SparkListenerJobEnd","Job ID":1,"Completion Time":9,"Job Result":{"Result":"JobFailed","Exception":{"Message":"m"}}}"#.to_owned(),
        r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd","executionId":1,"time":9,"errorMessage":""}"#.to_owned(),
        r#"{"Event":"SparkListenerExecutorRemoved","Timestamp":9,"Executor ID":"1","Removed Reason":"r"}"#.to_owned(),
        r#"{"Event":"SparkListenerApplicationEnd","Timestamp":10}"#.to_owned(),
    ];
    save("eventlog", "application", lines.join("\n").as_bytes());
    const HEAD: usize = 3000;
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../analysis/eventlog/tests/fixtures");
    for name in ["small-lz4", "small-snappy", "small-lzf", "killed-4.3"] {
        let entry = fs::read_dir(logs.join(name)).expect("a fixture").next();
        let path = entry.expect("a log").expect("an entry").path();
        let bytes = fs::read(path).expect("its bytes");
        save("eventlog", name, &bytes[..bytes.len().min(HEAD)]);
    }
}

fn messages() {
    let save = |name: &str, packet: std::io::Result<Vec<u8>>| {
        save("wire", name, &packet.expect("a message has a packet"));
    };
    let thread = "Executor task launch worker for task 0.0 in stage 7.0".to_owned();
    let profile = ToManager::Profile {
        tid: 4711,
        name: thread.clone(),
        task: true,
        slot: Some(3),
    };
    save("profile", wire::encode(&profile));
    save(
        "ended",
        wire::encode(&ToManager::Ended {
            tid: 4711,
            cpu_ns: 20_000_000,
        }),
    );
    save("tasks-only", wire::encode(&ToManager::TasksOnly));
    let frame = Frame {
        kind: FrameKind::Java,
        class: "java.util.HashMap".into(),
        method: "get".into(),
        signature: "(Ljava/lang/Object;)Ljava/lang/Object;".into(),
        file: "HashMap.java".into(),
        line: 556,
        bci: -1,
        inlined: true,
        line_before: 6,
    };
    let piece = [WireFrame { frame, address: 0 }, WireFrame::default()];
    let stacks = || WireStacks {
        pieces: vec![piece.clone().into()],
        stacks: vec![WireStack {
            id: StackId(-7),
            pieces: vec![0, 0],
        }],
    };
    let message: ToWriter = ToWriter::Stacks(stacks());
    save("stacks", wire::encode(&message));
    let task = Some(TaskAttempt {
        stage: STAGE,
        stage_attempt: 0,
        task: 12,
    });
    let row = WireSamples {
        task,
        stack: StackId(-7),
        waiting: true,
        first: 1,
        last: 2,
        count: 3,
        weight_ns: 15_000_000,
    };
    let samples: ToWriter = ToWriter::Samples {
        tid: 4711,
        thread,
        generation: 0,
        stacks: stacks(),
        rows: vec![row],
        tally: Tally::default(),
    };
    save("samples", wire::encode(&samples));
}

fn events() {
    let stream = [
        r#"{"type":"app","app":"local-1","name":"job","spark":"4.0.1","executor":"driver"}"#,
        r#"{"type":"source","hash":"00aa","text":"class G {}","class":"G","codegen_stage":1}"#,
        r#"{"type":"plan","execution":1,"version":2,"time":5,"description":"count","nodes":[{"node":0,"operator":"Sort","detail":"Sort [a]","metrics":[{"id":4,"name":"rows","kind":"sum"}]},{"node":1,"parent":0,"operator":"Scan"}]}"#,
        r#"{"type":"codegen","execution":1,"codegen_stage":1,"hash":"00aa","nodes":[{"region":0,"operator":"Sort","detail":""}]}"#,
        r#"{"type":"stage","stage":7,"attempt":0,"submitted":1,"completed":2,"accumulators":[{"id":4,"value":"9"}],"scopes":["Sort"]}"#,
        r#"{"type":"task","stage":7,"task":12,"index":0,"status":"SUCCESS","cpu_ns":5}"#,
        r#"{"type":"execution_end","execution":1,"time":9,"error":null}"#,
    ];
    let framed = |text: &str| [&(text.len() as u32).to_ne_bytes()[..], text.as_bytes()].concat();
    save("events", "application", &stream.map(framed).concat());
    // Events with parts of wrong types.
    let odd = r#"{"type":"plan","execution":1,"nodes":[1,null,"text",[2]]}"#;
    save("events", "odd-nodes", &framed(odd));
}

fn regions(recorded: &Path) {
    for hash in ["6558c47aec82c41d", "b2f7b5123850d309", "c19d6633cb17d8e4"] {
        let name = format!("{hash}.java");
        let text = fs::read(recorded.join("sources").join(&name)).expect("a recorded source");
        save("regions", &name, &text);
    }
}

/// One segment of each table, with some samples of a stage and the rows of other tables that belong to them.
fn segments(recorded: &Path) {
    let dir = ProfileDir::open(recorded).expect("the recorded profile");
    let samples: Vec<SampleRow> = rows(&dir, |row: &SampleRow| row.stage == Some(STAGE));
    let mut samples = samples[..SAMPLES].to_vec();
    let mut stacks: Vec<StackRow> = rows(&dir, |row: &StackRow| {
        samples.iter().any(|sample| sample.stack == row.stack)
    });
    // One more sample, in a source whose text is the input of the target.
    let stack = StackId(1);
    let frame = Frame {
        file: "generated_anything.java".to_owned(),
        line: 1,
        ..Frame::default()
    };
    let frames = vec![frame.into()];
    stacks.push(StackRow { stack, frames });
    samples.push(SampleRow {
        stack,
        ..samples[0].clone()
    });
    let stages: Vec<StageRow> = rows(&dir, |row: &StageRow| row.stage == STAGE);
    let query = stages.iter().find_map(|row| row.execution);
    let plans: Vec<PlanRow> = rows(&dir, |row: &PlanRow| Some(row.execution) == query);
    let last = plans.iter().map(|row| row.version).max();
    let last_plan = |row: &PlanRow| Some(row.execution) == query && Some(row.version) == last;
    odd_segments(&samples[0], &plans[0]);
    segment(samples);
    segment(stacks);
    segment(stages);
    segment(rows(&dir, last_plan));
    segment(rows(&dir, |row: &CodegenRow| row.execution == query));
    segment(rows(&dir, |row: &ExecutionRow| {
        Some(row.execution) == query
    }));
    segment(rows(&dir, |_: &SourceRow| true));
    segment(rows(&dir, |row: &ProcessRow| row.samples > 0));
}

fn rows<T: Table>(dir: &ProfileDir, wanted: impl Fn(&T) -> bool) -> Vec<T> {
    let rows = dir.read::<T>().expect("a recorded table").rows;
    rows.into_iter().filter(wanted).collect()
}

/// Valid segments with values that no writer intends.
fn odd_segments(sample: &SampleRow, node: &PlanRow) {
    let endless = SampleRow {
        count: u64::MAX,
        weight_ns: u64::MAX,
        ..sample.clone()
    };
    save_segment("odd-counts", vec![endless.clone(), endless]);
    let node = PlanRow {
        node: i32::MAX,
        parent: Some(i32::MAX),
        version: i32::MAX,
        ..node.clone()
    };
    save_segment("odd-node", vec![node]);
    let files = [
        "generated_../../up.java",
        "generated_nul\0.java",
        "generated_.java",
        &format!("generated_{}.java", "long".repeat(100)),
    ];
    let frames = files.map(|file| {
        Arc::new(Frame {
            file: file.to_owned(),
            ..Frame::default()
        })
    });
    let stack = sample.stack;
    save_segment(
        "odd-files",
        vec![StackRow {
            stack,
            frames: frames.into(),
        }],
    );
}

fn segment<T: Table>(rows: Vec<T>) {
    save_segment(T::NAME, rows);
}

fn save_segment<T: Table>(name: &str, rows: Vec<T>) {
    let tmp = unfuse_fuzz::private_dir();
    let dir = ProfileDir::create(tmp.path()).expect("a profile directory");
    let mut writer = SegmentWriter::new(&dir, "corpus");
    for row in rows {
        writer.push(row);
    }
    writer.flush().expect("a segment is written");
    let path = tmp.path().join(T::NAME).join("corpus-00000.parquet");
    let bytes = fs::read(path).expect("a segment");
    save("profile", &format!("{name}.parquet"), &bytes);
}

/// A file as `RecordFile` of the Java module writes it: records of two sources, and outputs that come from one record, from the
/// same record again, and from a record of each source.
fn task_records() {
    let block = |kind: u8, number: u32, rows: &[u8]| {
        let head = [
            &[kind],
            &number.to_le_bytes()[..],
            &(rows.len() as u32).to_le_bytes(),
        ];
        [head.concat(), rows.to_vec()].concat()
    };
    let input = |ns: u8, id: u64| [&[ns][..], &id.to_le_bytes()].concat();
    let output = |key: u64, read: &[[u8; 3]]| {
        let ids = [key.to_le_bytes(), [0; 8]].concat();
        let ranges = [&[0, read.len() as u8], read.as_flattened(), &[9, 4]].concat();
        [ids, ranges].concat()
    };
    let inputs = [input(5, 0), input(7, 40)].concat();
    let outputs = [
        output(1, &[[0, 0, 1]]),
        output(2, &[]),
        output(3, &[[0, 1, 1], [1, 0, 1]]),
    ]
    .concat();
    let file = [
        b"UNFREC2\n".to_vec(),
        block(1, 0, &inputs),
        block(1, 1, &input(3, 9)),
        block(2, 0, &outputs),
    ];
    save("task_records", "two-sources", &file.concat());
}

/// CSV files as docs/contention.md shows them.
fn contention() {
    let intervals = "host,query,stage,attempt,task,kind,start_ns,end_ns,units,blocked_ns\n\
        a,1,0,0,t1,cpu,0,4000000000,2.0,1000000000\n\
        a,2,0,0,t2,cpu,0,4000000000,2.0,500000000\n\
        a,1,1,0,t3,io-read,4000000000,6000000000,1e6,1500000000\n\
        a,2,1,0,t4,io-read,4000000000,6000000000,3e6,0\n";
    let hosts = "host,resource,start_ns,end_ns,units,capacity\na,CPU,0,6000000000,8,2\n";
    let queries = "query,label,user,pool,weight\n1,the slow one,eve,fair,1\n2,,bob,,2\n";
    let stages = "query,stage,attempt,parents\n1,1,0,0\n2,1,0,0\n";
    let all = [intervals, hosts, queries, stages].join("\0");
    save("contention_csv", "all", all.as_bytes());
    save("contention_csv", "intervals", intervals.as_bytes());
}

/// Tables of runs as docs/impact.md shows them.
fn runs() {
    let csv = "workload,cpu,disk,network,seconds,cpu_util,disk_util,network_util,ipc,stalled\n\
        sort,1.2,HDD,1Gbps,100,0.6,0.2,0.1,1.1,0.3\nsort,1.2,HDD,1Gbps,104,,,,,\n\
        sort,2.4,HDD,1Gbps,70,,,,,\nsort,1.2,SSD,1Gbps,90,,,,,\nsort,1.2,SSD,10Gbps,85,,,,,\nsort,2.4,SSD,10Gbps,50,,,,,\n";
    let toml = "[base]\ncpu = 1.2\ndisk = 'HDD'\nnetwork = '1Gbps'\n\
        [[runs]]\ncpu = 1.2\ndisk = 'HDD'\nnetwork = '1Gbps'\nseconds = [100, 104]\ncpu_util = 0.6\n\
        [[runs]]\ncpu = 2.4\ndisk = 'HDD'\nnetwork = '1Gbps'\nseconds = [70]\n\
        [[runs]]\ncpu = 1.2\ndisk = 'SSD'\nnetwork = '1Gbps'\nseconds = [90, 91]\n";
    save("impact_runs", "csv", csv.as_bytes());
    save("impact_runs", "toml", toml.as_bytes());
}

/// Prices as docs/sizing.md shows them, and a profile of runs that equation 8 describes.
fn sizing() {
    let prices = "currency = \"USD\"\n\
        [[instance]]\nname = \"small\"\nslots = 1\non_demand = 0.10\nspot = 0.03\nat_most = 6\n\
        [[instance]]\nname = \"large\"\nslots = 4\nspeed = 0.95\non_demand = 0.44\n";
    save("prices", "two", prices.as_bytes());
    let given = "log,iterations,bytes\nrun-1,2,1e6\nrun-2,4,\n";
    save("sizing_tables", "runs", given.as_bytes());
    let mut runs = Vec::new();
    for slots in [2.0, 4.0, 8.0] {
        for (iterations, bytes) in [(2.0, 1e6), (2.0, 4e6), (6.0, 1e6), (6.0, 4e6)] {
            let tasks = vec![1.0; (6.0 * bytes / 1e6) as usize];
            let work: f64 = tasks.iter().sum();
            runs.push(Run {
                log: format!("{slots}-{iterations}-{bytes}"),
                application: "job".to_owned(),
                category: Category::Core,
                at: Point {
                    slots,
                    iterations,
                    bytes,
                },
                seconds: 3.0 + iterations * work / slots,
                phases: Phases {
                    preparation: 3.0,
                    execution: iterations * work / slots,
                    ..Phases::default()
                },
                stages: vec![Stage {
                    class: "step".to_owned(),
                    unit: "step".to_owned(),
                    after: Vec::new(),
                    times: Times::from_seconds(&tasks),
                }],
            });
        }
    }
    let profile = Profile::fit(runs).expect("enough runs");
    save(
        "sizing_tables",
        "profile",
        profile.to_toml().expect("TOML").as_bytes(),
    );
}
