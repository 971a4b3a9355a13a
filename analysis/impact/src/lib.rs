//! Which resource limits a job: impact indicators from its running times at several resource schemes.
//!
//! The model is that of Yang, Du, Meng, Du, Duan: *A Frequency Scaling based Performance Indicator Framework for Big
//! Data Systems*; equations, sections and tables in these docs are that paper's.
//!
//! If the CPUs of a job become twice as fast and it then takes half the time, only the CPU limits it. The shortfall
//! from that is the impact of other resources. A faster disk reduces the shortfall by the disk's impact, a faster
//! network by the network's, and the remainder with both is memory's.
//!
//! Data goes through stages, each with its own type:
//!
//! * [`Table`]: rows from CSV or TOML files, or from a program. [`Runs`]: those of one workload, checked.
//! * [`Indicator`]: CRI, DRI, NRI or MRI with its interval.
//! * [`Analysis`]: the whole analysis of a workload: indicators, the [`Verdict`] and [`Suggestion`]s.
//!
//! ```
//! use unfuse_impact::*;
//!
//! let scheme = |cpu, disk: &str| Scheme { cpu, disk: disk.into(), network: "1Gbps".into() };
//! let run = |cpu, disk, seconds| Run {
//!     scheme: scheme(cpu, disk),
//!     seconds,
//!     utilisation: Utilisation::default(),
//!     counted: CpuCounters::default(),
//! };
//! let runs = Runs::new(
//!     scheme(1.2, "HDD"),
//!     vec![
//!         run(1.2, "HDD", 100.0), run(1.2, "HDD", 102.0),
//!         run(2.4, "HDD", 80.0), run(2.4, "HDD", 79.0),
//!         run(1.2, "SSD", 45.0), run(1.2, "SSD", 44.0),
//!         run(2.4, "SSD", 24.0), run(2.4, "SSD", 23.0),
//!     ],
//! )?;
//! let analysis = Analysis::new(&runs);
//! let disk = analysis.indicator(Resource::Disk).unwrap();
//! assert!((disk.value - 0.52).abs() < 0.01); // CRI rises from 0.43 to 0.94
//! assert_eq!(analysis.verdict, Verdict::Likely(vec![Resource::Disk, Resource::Cpu]));
//! # Ok::<(), InputError>(())
//! ```

mod advice;
mod analysis;
mod error;
mod estimate;
mod indicators;
mod runs;
mod scheme;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

pub use advice::{Suggestion, Thresholds};
pub use analysis::{Analysis, Improvement, MissingIndicator, SchemeTime};
pub use error::{InputError, TableError};
pub use estimate::{CONFIDENCE, Interval, Sample, difference};
pub use indicators::Indicator;
pub use runs::{CpuCounters, Run, Runs, Utilisation};
pub use scheme::{Resource, Scheme};
pub use table::{BASE_FORM, COLUMNS, Row, Table};
pub use verdict::Verdict;
