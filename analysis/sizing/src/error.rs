//! Why there is no answer.

use thiserror::Error;

/// What is said instead of an answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SizingError {
    /// Too few runs, or runs that do not differ where they must.
    #[error("{0}")]
    MissingRuns(String),
    /// Runs of several jobs.
    #[error("these are runs of {} applications: {}; a profile describes one: choose it with --app", .0.len(), .0.join(", "))]
    SeveralApplications(Vec<String>),
    /// No run has this name.
    #[error("no run of application {wanted}; the applications are: {}", known.join(", "))]
    NoApplication {
        /// The name asked for.
        wanted: String,
        /// Those that are there.
        known: Vec<String>,
    },
    /// A question far outside the data.
    #[error(
        "{value} {what} are {factor:.1} times outside the runs of the profile ({least} to {most}), where the job may behave \
             differently. Add a run nearer to it and fit again"
    )]
    TooFar {
        /// Which variable.
        what: &'static str,
        /// What it was asked to be.
        value: String,
        /// By which factor it is outside.
        factor: f64,
        /// The least of the runs.
        least: String,
        /// The most.
        most: String,
    },
    /// A variable that was the same in all runs.
    #[error(
        "all runs of the profile have {known} {what}, so {value} cannot be predicted. Add runs with other values and fit again"
    )]
    NeverVaried {
        /// Which variable.
        what: &'static str,
        /// What it always was.
        known: String,
        /// What it was asked to be.
        value: String,
    },
    /// Not a number above zero.
    #[error("{what} must be above zero, and is {value}")]
    Amount {
        /// What it should be.
        what: String,
        /// What it is.
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
        /// What has it.
        cluster: String,
        /// What that costs.
        cost: String,
        /// Fewest slots tried.
        least: f64,
        /// Most slots tried.
        most: f64,
    },
    /// A budget for which nothing can be had.
    #[error(
        "no cluster costs {budget} or less. The cheapest is {cluster}, which takes {seconds:.1} s and costs {cost}"
    )]
    NoBudget {
        /// The budget.
        budget: String,
        /// The cheapest cluster.
        cluster: String,
        /// How long it takes.
        seconds: f64,
        /// What it costs.
        cost: String,
    },
    /// No offer of the prices fits into the range that the profile knows.
    #[error(
        "no cluster of these machines has {least:.0} to {most:.0} slots, the range of the profile"
    )]
    NoMachines {
        /// Fewest slots.
        least: f64,
        /// Most slots.
        most: f64,
    },
    /// A file that cannot be read or does not say what it must.
    #[error("{file}: {why}")]
    File {
        /// Its path.
        file: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The solver did not end.
    #[error("the solver found no solution ({0})")]
    Solver(String),
}
