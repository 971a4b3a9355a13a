//! Runs SQL on an installed Spark, with or without a profiler, and reads the times back.

mod setup;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use unfuse_machine::{run, said};

pub use setup::{AsyncProfiler, FlightRecorder, Marks, Setup};

use crate::random::Random;
use crate::session::{Answer, RefusedQuery, Session};

/// An installed Spark, and the data that its queries read.
pub struct Spark {
    unfuse: PathBuf,
    home: PathBuf,
    data: PathBuf,
    /// The JDK, if it is not the one of the environment.
    java_home: Option<PathBuf>,
    scratch: tempfile::TempDir,
}

/// Queries, and how often they run.
#[derive(Debug, Clone)]
pub struct Work {
    /// Warm-up rounds, which run first and are not reported.
    pub warm_up: u32,
    /// Rounds that count.
    pub rounds: u32,
    /// SQL by name.
    pub queries: BTreeMap<String, String>,
    /// What the JVM needs for the queries.
    pub setup: Setup,
}

/// The profiler, or other tool, of a JVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// No tool.
    None,
    /// unfuse's agent with its options (`rate=200`), and Spark settings (`key=value`).
    Unfuse(String, Vec<String>),
    /// The Spark plugin, and Spark settings (`key=value`).
    Plugin(Vec<String>),
    /// Other Java options and Spark settings (`key=value`).
    Other {
        /// For the driver's JVM.
        java: Vec<String>,
        /// For Spark.
        conf: Vec<String>,
    },
}

/// The results of a run.
pub struct Run {
    /// Queries that failed.
    pub failed: Vec<RefusedQuery>,
    /// The profile, if unfuse made one.
    pub profile: PathBuf,
    /// Spark's event log.
    pub event_log: PathBuf,
}

impl Work {
    /// Numbers of all rounds; those of the warm-up are negative.
    pub fn numbers(&self) -> std::ops::Range<i32> {
        -self.warm_up.cast_signed()..self.rounds.cast_signed()
    }
}

impl Spark {
    /// Installs Spark 4.3 and TPC-H data of a scale factor, unless they are installed.
    pub fn install(scale: &str) -> Result<Self> {
        Self::install_with("4.3", "--tpch", scale)
    }

    /// Installs a version of Spark, which runs on the given JDK, with TPC-H data of scale factor 1.
    pub fn install_version(version: &str, java_home: Option<PathBuf>) -> Result<Self> {
        let spark = Self::install_with(version, "--tpch", "1")?;
        Ok(Self { java_home, ..spark })
    }

    /// The same with TPC-DS data.
    pub fn install_tpcds(scale: &str) -> Result<Self> {
        Self::install_with("4.3", "--tpcds", scale)
    }

    fn install_with(version: &str, data: &str, scale: &str) -> Result<Self> {
        let unfuse = std::env::current_exe()?.with_file_name("unfuse");
        Ok(Self {
            home: set_up(&unfuse, &["--spark", version])?,
            data: set_up(&unfuse, &[data, scale])?,
            java_home: None,
            scratch: tempfile::tempdir()?,
            unfuse,
        })
    }

    /// The directory of a JDK of this machine with a release; else of the runtime that is installed for it.
    pub fn jdk(release: &str) -> Result<PathBuf> {
        let known = unfuse_machine::javas().into_iter();
        let mut known = known.filter(|java| java.release.to_string() == release);
        let home = |java: unfuse_machine::Java| {
            let program = java.program.canonicalize().ok()?;
            Some(program.parent()?.parent()?.to_owned())
        };
        if let Some(home) = known.find_map(home) {
            return Ok(home);
        }
        let unfuse = std::env::current_exe()?.with_file_name("unfuse");
        set_up(&unfuse, &["--jdk", release])
    }

    /// The same data with each row of `lineitem` repeated `times` times: the table is a directory of links to one file.
    ///
    /// # Errors
    /// If the links cannot be made.
    pub fn repeat_lineitem(self, times: u32) -> Result<Self> {
        const TABLE: &str = "lineitem.parquet";
        let data = self.scratch().join("data");
        let repeated = data.join(TABLE);
        fs::create_dir_all(&repeated)?;
        for entry in fs::read_dir(&self.data)? {
            let path = entry?.path();
            match path.file_name() {
                Some(name) if name == TABLE => {}
                Some(name) => symlink(&path, data.join(name))?,
                None => {}
            }
        }
        for copy in 0..times {
            let link = repeated.join(format!("{copy}.parquet"));
            symlink(self.data.join(TABLE), link)?;
        }
        Ok(Self { data, ..self })
    }

    /// The Java option that loads the agent of `SplitAll.java`. It makes Spark put the consume code of every operator into
    /// a method of its own.
    ///
    /// # Errors
    /// If the agent cannot be compiled.
    pub fn split_all(&self) -> Result<String> {
        let dir = tempfile::tempdir_in(&self.scratch)?.keep();
        let source = ("SplitAll.java", include_str!("../assets/SplitAll.java"));
        let jar = self.jar(&[source], &dir, "Premain-Class: SplitAll\n")?;
        Ok(format!("-javaagent:{}", jar.display()))
    }

    /// A directory that is removed when this is dropped.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// The directory of the data: a Parquet file or folder for each table.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The queries that belong to the data, by name.
    pub fn queries_of_data(&self) -> Result<BTreeMap<String, String>> {
        let path = self.data.join("queries.json");
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    }

    /// Runs the work in a new JVM with two task threads.
    ///
    /// # Errors
    /// If the job or a query fails, with the end of Spark's log or its message.
    pub fn run(&self, work: &Work, tool: &Tool) -> Result<Run> {
        let run = self.run_what_can(work, tool)?;
        if let Some(failed) = run.failed.first() {
            bail!("{} failed: {}", failed.query, failed.reason);
        }
        Ok(run)
    }

    /// The same, but queries may fail.
    ///
    /// # Errors
    /// If the job fails; the error has the end of Spark's log.
    pub fn run_what_can(&self, work: &Work, tool: &Tool) -> Result<Run> {
        let mut session = self.start(&work.setup, tool)?;
        let mut failed = Vec::new();
        let mut queries: Vec<_> = work.queries.iter().collect();
        let mut random = Random(1);
        for round in work.numbers() {
            // Shuffles, so that no query always runs last, when the JVM is warmest.
            random.shuffle(&mut queries);
            for (query, sql) in &queries {
                if let Answer::Refused(why) = session.ask(query, sql, round)? {
                    failed.push(why);
                }
            }
        }
        let (profile, event_log) = session.finish()?;
        Ok(Run {
            failed,
            profile,
            event_log,
        })
    }

    /// Starts a JVM with two task threads that waits for queries.
    ///
    /// # Errors
    /// If it does not start; the error has the end of Spark's log.
    pub fn start(&self, setup: &Setup, tool: &Tool) -> Result<Session> {
        let dir = tempfile::Builder::new()
            .prefix("run-")
            .tempdir_in(&self.scratch)?
            .keep();
        let (profile, events) = (dir.join("profile"), dir.join("events"));
        fs::create_dir(&events)?;
        fs::write(dir.join("job.py"), include_str!("../assets/job.py"))?;
        fs::write(dir.join("setup.json"), serde_json::to_vec(setup)?)?;
        let mut command = self.submit(tool, &profile);
        if setup.spin {
            let source = ("Spin.java", include_str!("../assets/Spin.java"));
            let jar = self.jar(&[source], &dir, "")?;
            command.arg("--jars").arg(jar);
        }
        if setup.marks.is_some() {
            let sources = [
                ("Marks.java", include_str!("../assets/Marks.java")),
                (
                    "MarkedTable.java",
                    include_str!("../assets/MarkedTable.java"),
                ),
            ];
            let jar = self.jar(&sources, &dir, "")?;
            command.arg("--driver-class-path").arg(jar);
        }
        command
            .args(["--master", "local[2]", "--driver-memory", "2g"])
            .args(["--conf", "spark.ui.enabled=false"])
            .args(["--conf", "spark.log.level=ERROR"])
            .args(["--conf", "spark.eventLog.enabled=true"])
            .arg("--conf")
            .arg(format!("spark.eventLog.dir=file://{}", events.display()))
            .args(["--conf", "spark.eventLog.compress=false"])
            .args(["--conf", "spark.eventLog.rolling.enabled=false"])
            .args(
                setup
                    .settings
                    .iter()
                    .flat_map(|setting| ["--conf", setting]),
            )
            .arg(dir.join("job.py"))
            .arg(&self.data)
            .arg(dir.join("setup.json"));
        Session::start(command, dir)
    }

    /// Spark's jars, for a class path.
    pub fn jars(&self) -> Result<PathBuf> {
        let lib = fs::read_dir(self.home.join("venv/lib"))?
            .next()
            .context("an empty virtual environment")??
            .path();
        Ok(lib.join("site-packages/pyspark/jars/*"))
    }

    /// Builds the jar of a program for Spark, from names and texts of its sources and lines of its manifest.
    fn jar(&self, sources: &[(&str, &str)], dir: &Path, manifest: &str) -> Result<PathBuf> {
        let jar = dir.join(sources[0].0).with_extension("jar");
        let classes = jar.with_extension("classes");
        fs::create_dir(&classes)?;
        self.compile(sources, &classes)?;
        let attributes = jar.with_extension("mf");
        fs::write(&attributes, manifest)?;
        let mut pack = Command::new("jar");
        pack.arg("cfm").arg(&jar).arg(&attributes);
        pack.arg("-C").arg(&classes).arg(".");
        run(&mut pack).context("a JDK is needed")?;
        Ok(jar)
    }

    /// Compiles a program for Spark into a directory. `sources` has the name and the text of each source.
    ///
    /// # Errors
    /// If the compiler fails; the error has its last lines.
    pub fn compile(&self, sources: &[(&str, &str)], into: &Path) -> Result<()> {
        let mut compile = Command::new("javac");
        compile.arg("-nowarn").arg("-cp").arg(self.jars()?);
        compile.arg("-d").arg(into);
        for (name, text) in sources {
            let source = into.join(name);
            fs::write(&source, text)?;
            compile.arg(source);
        }
        run(&mut compile).context("a JDK is needed")
    }

    /// The program `unfuse` in the directory of this program.
    pub fn unfuse(&self) -> Command {
        Command::new(&self.unfuse)
    }

    /// Records a session's busy JVM for five seconds: `unfuse record` attaches to it, and detaches at the end.
    ///
    /// # Errors
    /// If `unfuse record` or a query fails.
    pub fn record(&self, session: &mut Session, work: &Work) -> Result<()> {
        let dir = tempfile::tempdir_in(&self.scratch)?;
        let mut record = self.unfuse();
        record
            .args(["record", "--for", "5s", "--pid"])
            .arg(session.pid().to_string())
            .arg("--out")
            .arg(dir.path().join("recorded"));
        std::thread::scope(|scope| {
            let recording = scope.spawn(|| run(&mut record));
            for (query, sql) in work.queries.iter().cycle() {
                if recording.is_finished() {
                    break;
                }
                if let Answer::Refused(why) = session.ask(query, sql, i32::MIN)? {
                    bail!("{} failed: {}", why.query, why.reason);
                }
            }
            recording
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The JSON output of a command of `unfuse` for a profile, with options and other arguments that come after it.
    ///
    /// # Errors
    /// If `unfuse` fails; the error has the last lines of its output.
    pub fn ask(
        &self,
        command: &str,
        profile: &Path,
        options: &[&str],
    ) -> Result<serde_json::Value> {
        let mut unfuse = self.unfuse();
        unfuse.arg(command).arg(profile).args(options).arg("--json");
        Ok(serde_json::from_str(&said(&mut unfuse)?)?)
    }

    /// `spark-submit` with a tool. unfuse writes its profile to `profile`.
    pub fn submit(&self, tool: &Tool, profile: &Path) -> Command {
        let bin = self.home.join("venv/bin");
        let submit = bin.join("spark-submit");
        let mut command = match tool {
            Tool::None | Tool::Other { .. } => Command::new(submit),
            Tool::Plugin(_) => {
                let jar = self.unfuse.with_file_name("unfuse-spark.jar");
                let mut command = Command::new(submit);
                command.arg("--jars").arg(jar);
                command.args(["--conf", "spark.plugins=io.unfuse.spark.UnfusePlugin"]);
                let dir = format!("spark.unfuse.dir={}", profile.display());
                command.arg("--conf").arg(dir);
                command
            }
            // Loads the agent directly, without `unfuse run`, because these are the agent's own options.
            Tool::Unfuse(options, _) => {
                let agent = self.unfuse.with_file_name("libunfuse.so");
                let mut command = Command::new(submit);
                command.arg("--conf").arg(format!(
                    "spark.driver.extraJavaOptions=-agentpath:{}=dir={},{options}",
                    agent.display(),
                    profile.display()
                ));
                command
            }
        };
        if let Tool::Other { java, .. } = tool
            && !java.is_empty()
        {
            command
                .arg("--conf")
                .arg(format!("spark.driver.extraJavaOptions={}", java.join(" ")));
        }
        if let Tool::Unfuse(_, conf) | Tool::Plugin(conf) | Tool::Other { conf, .. } = tool {
            for setting in conf {
                command.arg("--conf").arg(setting);
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("PYSPARK_PYTHON", bin.join("python"))
            .env_remove("SPARK_HOME");
        if let Some(home) = &self.java_home {
            command.env("JAVA_HOME", home);
        }
        command
    }
}

/// Runs `unfuse setup`; returns the directory that it prints last.
fn set_up(unfuse: &Path, options: &[&str]) -> Result<PathBuf> {
    let mut setup = Command::new(unfuse);
    let output = setup
        .arg("setup")
        .args(options)
        .output()
        .with_context(|| format!("cannot run {}; `make build` first", unfuse.display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().map(PathBuf::from);
    last.context("unfuse setup prints a path")
}

/// TPC-H queries by name (`q01` …), with the specification's validation parameters.
pub fn tpch_queries() -> BTreeMap<String, String> {
    statements(include_str!("../assets/tpch.sql"))
}

/// The statements of a file, see [`statements`].
///
/// # Errors
/// If it cannot be read.
pub fn statements_of(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the queries of {}", path.display()))?;
    Ok(statements(&text))
}

/// Parses statements by name. A line `-- NAME` precedes each.
fn statements(text: &str) -> BTreeMap<String, String> {
    format!("\n{text}")
        .split("\n-- ")
        .filter_map(|part| {
            let (name, sql) = part.split_once('\n')?;
            let sql = sql.trim().trim_end_matches(';');
            (!sql.is_empty()).then(|| (name.trim().to_owned(), sql.to_owned()))
        })
        .collect()
}

/// The thesis's listing 3.1: scan, filter, join, aggregate.
#[derive(Debug, Clone, Copy)]
pub struct Canonical<'a> {
    /// Number of suppliers on the join's small side.
    pub suppliers: u32,
    /// The condition of the join.
    pub condition: &'a str,
    /// The predicate of the filter.
    pub predicate: &'a str,
    /// The grouping key.
    pub group: &'a str,
}

impl Canonical<'static> {
    /// All suppliers of scale factor 1, and a filter that keeps six of seven rows.
    pub const REFERENCE: Self = Self {
        suppliers: 10_000,
        condition: "l_suppkey = s_suppkey",
        predicate: "l_commitdate > DATE '1993-01-01'",
        group: "(l_suppkey * 100) + s_nationkey",
    };
}

impl Canonical<'_> {
    /// The text of the query.
    pub fn sql(&self) -> String {
        let Self {
            suppliers,
            condition,
            predicate,
            group,
        } = self;
        format!(
            "SELECT {group}, AVG(l_extendedprice), SUM(l_quantity), AVG(l_extendedprice), AVG(l_discount)
FROM lineitem JOIN (SELECT * FROM supplier ORDER BY s_acctbal DESC LIMIT {suppliers}) ON {condition}
WHERE {predicate} GROUP BY {group}"
        )
    }
}
