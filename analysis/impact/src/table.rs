//! Tables of runs in files: CSV with a row for each run, or TOML with a list of times for each scheme (docs/impact.md
//! describes both).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unfuse_files::read_given_text;

use crate::{CpuCounters, InputError, Run, Runs, Scheme, TableError, Utilisation};

/// The largest table that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// Columns of CSV files; `cpu` and `seconds` are required.
pub const COLUMNS: &str =
    "workload, cpu, disk, network, seconds, cpu_util, disk_util, network_util, ipc, stalled";

/// The syntax of a base scheme.
pub const BASE_FORM: &str = "CPU/DISK/NETWORK, such as 1.2/HDD/1Gbps";

/// One run, as a row of a CSV file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The workload; empty if there is only one.
    #[serde(default)]
    pub workload: String,
    /// Speed of the CPUs.
    pub cpu: f64,
    /// The disk.
    #[serde(default)]
    pub disk: String,
    /// The network.
    #[serde(default)]
    pub network: String,
    /// Its running time, s.
    pub seconds: f64,
    /// CPU utilisation, 0 to 1.
    pub cpu_util: Option<f64>,
    /// Disk utilisation, 0 to 1.
    pub disk_util: Option<f64>,
    /// Network utilisation, 0 to 1.
    pub network_util: Option<f64>,
    /// Instructions for each cycle.
    pub ipc: Option<f64>,
    /// The part of stalled cycles, 0 to 1.
    pub stalled: Option<f64>,
}

/// The content of a TOML file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    base: FileScheme,
    #[serde(default)]
    runs: Vec<FileRuns>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileScheme {
    cpu: f64,
    #[serde(default)]
    disk: String,
    #[serde(default)]
    network: String,
}

/// Repetitions at one scheme.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRuns {
    #[serde(default)]
    workload: String,
    cpu: f64,
    #[serde(default)]
    disk: String,
    #[serde(default)]
    network: String,
    seconds: Vec<f64>,
    cpu_util: Option<f64>,
    disk_util: Option<f64>,
    network_util: Option<f64>,
    ipc: Option<f64>,
    stalled: Option<f64>,
}

/// Rows with a base scheme.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The base scheme: as requested, or that of the first row.
    pub base: Scheme,
    /// The rows, in the order of the file.
    pub rows: Vec<Row>,
    path: PathBuf,
}

impl Table {
    /// Reads a table: TOML if its name ends in `.toml`, else CSV. `base` replaces the file's own.
    ///
    /// # Errors
    /// [`TableError`] with the file and, for invalid CSV and TOML, the line.
    pub fn read(path: &Path, base: Option<Scheme>) -> Result<Table, TableError> {
        let failed = |reason: String| TableError::File {
            path: path.to_owned(),
            reason,
        };
        let text = read_given_text(path, LARGEST).map_err(|e| failed(e.to_string()))?;
        Self::parse(&text, path, base)
    }

    /// Parses a table; `path` decides the format, and is for errors.
    ///
    /// # Errors
    /// As [`Table::read`].
    pub fn parse(text: &str, path: &Path, base: Option<Scheme>) -> Result<Table, TableError> {
        let failed = |reason: String| TableError::File {
            path: path.to_owned(),
            reason,
        };
        let is_toml = path
            .extension()
            .is_some_and(|extension| extension == "toml");
        let (own, rows) = if is_toml {
            let file: File = toml::from_str(text).map_err(|e| failed(e.to_string()))?;
            (Some(file.base()), file.rows())
        } else {
            (None, csv_rows(text).map_err(failed)?)
        };
        let base = base.or(own).or_else(|| rows.first().map(Row::scheme));
        let Some(base) = base.filter(|_| !rows.is_empty()) else {
            return Err(TableError::Empty(path.to_owned()));
        };
        Ok(Table {
            base,
            rows,
            path: path.to_owned(),
        })
    }

    /// The checked runs of each workload. The name is empty if there is only one.
    ///
    /// # Errors
    /// [`TableError::Impossible`] for the first workload with impossible runs.
    pub fn workloads(&self) -> Result<BTreeMap<String, Runs>, TableError> {
        let mut runs: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        for row in &self.rows {
            runs.entry(row.workload.clone())
                .or_default()
                .push(row.run());
        }
        let checked = |(workload, runs): (String, Vec<Run>)| {
            let base = self.base.clone();
            match Runs::new(base, runs) {
                Ok(runs) => Ok((workload, runs)),
                Err(reason) => Err(self.impossible(workload, reason)),
            }
        };
        runs.into_iter().map(checked).collect()
    }

    fn impossible(&self, workload: String, reason: InputError) -> TableError {
        TableError::Impossible {
            path: self.path.clone(),
            workload,
            reason: Box::new(reason),
        }
    }
}

impl Row {
    /// Its resources.
    pub fn scheme(&self) -> Scheme {
        Scheme {
            cpu: self.cpu,
            disk: self.disk.clone(),
            network: self.network.clone(),
        }
    }

    fn run(&self) -> Run {
        Run {
            scheme: self.scheme(),
            seconds: self.seconds,
            utilisation: Utilisation {
                cpu: self.cpu_util,
                disk: self.disk_util,
                network: self.network_util,
            },
            counted: CpuCounters {
                ipc: self.ipc,
                stalled: self.stalled,
            },
        }
    }
}

impl File {
    fn base(&self) -> Scheme {
        Scheme {
            cpu: self.base.cpu,
            disk: self.base.disk.clone(),
            network: self.base.network.clone(),
        }
    }

    fn rows(self) -> Vec<Row> {
        let rows = |runs: FileRuns| {
            let row = Row {
                workload: runs.workload,
                cpu: runs.cpu,
                disk: runs.disk,
                network: runs.network,
                seconds: 0.0,
                cpu_util: runs.cpu_util,
                disk_util: runs.disk_util,
                network_util: runs.network_util,
                ipc: runs.ipc,
                stalled: runs.stalled,
            };
            let with = move |seconds| Row {
                seconds,
                ..row.clone()
            };
            runs.seconds.into_iter().map(with)
        };
        self.runs.into_iter().flat_map(rows).collect()
    }
}

fn csv_rows(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let rows: Result<Vec<Row>, csv::Error> = reader.deserialize().collect();
    rows.map_err(|e| format!("{e}; the columns are {COLUMNS}"))
}

/// `1.2/HDD/1Gbps`, as [`Scheme`] prints it. Disk and network may be omitted.
impl std::str::FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('/').map(str::trim);
        let cpu = parts.next().unwrap_or_default();
        let cpu = cpu
            .parse()
            .map_err(|_| format!("{cpu:?} is no number; a scheme is {BASE_FORM}"))?;
        let (disk, network) = (parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(format!(
                "{text:?} has too many parts; a scheme is {BASE_FORM}"
            ));
        }
        Ok(Scheme {
            cpu,
            disk: disk.unwrap_or_default().to_owned(),
            network: network.unwrap_or_default().to_owned(),
        })
    }
}
