//! The error of this crate.

use thiserror::Error;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SizingError {
    /// Too few runs, or runs that do not vary as required.
    #[error("{0}")]
    MissingRuns(String),
    /// Runs of several jobs.
    #[error("these are runs of {} applications: {}; a profile describes one: choose it with --app", .0.len(), .0.join(", "))]
    SeveralApplications(Vec<String>),
    /// No run has this name.
    #[error("no run of application {wanted}; the applications are: {}", known.join(", "))]
    NoApplication {
        /// The requested name.
        wanted: String,
        /// The existing names.
        known: Vec<String>,
    },
    /// A question far outside the runs.
    #[error(
        "{value} {what} are {factor:.1} times outside the runs of the profile ({least} to {most}), where the job may behave \
             differently. Add a run nearer to it and fit again"
    )]
    TooFar {
        /// The variable.
        what: &'static str,
        /// Its requested value.
        value: String,
        /// The factor by which it is outside.
        factor: f64,
        /// The least value of the runs.
        least: String,
        /// The greatest value of the runs.
        most: String,
    },
    /// A variable that does not vary between runs.
    #[error(
        "all runs of the profile have {known} {what}, so {value} cannot be predicted. Add runs with other values and fit again"
    )]
    NeverVaried {
        /// The variable.
        what: &'static str,
        /// Its only value.
        known: String,
        /// Its requested value.
        value: String,
    },
    /// Not a number above zero.
    #[error("{what} must be above zero, and is {value}")]
    Amount {
        /// The name of the number.
        what: String,
        /// Its value.
        value: f64,
    },
    /// A deadline that no cluster meets.
    #[error(
        "no cluster meets a deadline of {deadline:.1} s. The best possible is {seconds:.1} s, with {cluster} \
             ({cost}); clusters of {least:.0} to {most:.0} slots were tried, the range of the profile"
    )]
    NoCluster {
        /// The deadline, s.
        deadline: f64,
        /// The shortest time.
        seconds: f64,
        /// The cluster with this time.
        cluster: String,
        /// The cost there.
        cost: String,
        /// Fewest slots tried.
        least: f64,
        /// Most slots tried.
        most: f64,
    },
    /// A budget that no cluster is within.
    #[error(
        "no cluster costs {budget} or less. The cheapest is {cluster}, which takes {seconds:.1} s and costs {cost}"
    )]
    NoBudget {
        /// The budget.
        budget: String,
        /// The cheapest cluster.
        cluster: String,
        /// The time there, s.
        seconds: f64,
        /// The cost there.
        cost: String,
    },
    /// No cluster of the prices is in the range of the profile.
    #[error(
        "no cluster of these machines has {least:.0} to {most:.0} slots, the range of the profile"
    )]
    NoMachines {
        /// Fewest slots.
        least: f64,
        /// Most slots.
        most: f64,
    },
    /// A file that cannot be read or is invalid.
    #[error("{file}: {why}")]
    File {
        /// Its path.
        file: String,
        /// The reason, and what to do.
        why: String,
    },
    /// The solver did not converge.
    #[error("the solver found no solution ({0})")]
    Solver(String),
}
