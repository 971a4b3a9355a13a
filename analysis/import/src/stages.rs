//! Stage attempts, and which stages they read from.

use std::collections::{HashMap, HashSet};

use unfuse_eventlog::{JobStart, Stage};
use unfuse_format::{Accumulator, StageRow};

/// RDDs of a stage that a row names.
const MOST_RDDS: usize = 100;
/// In the tags of a job of Spark Connect, what comes before the user's name.
const CONNECT_USER: &str = "SparkConnect_OperationTag_User_";

/// What later events of a stage need of earlier ones.
#[derive(Default)]
pub(crate) struct Stages {
    /// The last RDD of each stage that a job has, whether it runs or is skipped.
    last_rdd: HashMap<i32, i32>,
    /// Stages that others read from.
    parents: HashSet<i32>,
    /// The stage that ran to write the shuffle of an RDD.
    writers: HashMap<i32, i32>,
    /// Stages that ran.
    ran: HashSet<i32>,
    /// Of attempts that run: their queries and pools.
    running: HashMap<(i32, i32), (Option<i64>, String)>,
}

impl Stages {
    pub(crate) fn job(&mut self, start: &JobStart) {
        for stage in &start.infos {
            self.parents.extend(&stage.parents);
            if let Some(rdd) = last_rdd(stage) {
                self.last_rdd.insert(stage.stage, rdd);
            }
        }
    }

    pub(crate) fn submitted(&mut self, app: String, stage: Stage) -> StageRow {
        self.ran.insert(stage.stage);
        if let Some(rdd) = last_rdd(&stage).filter(|_| self.parents.contains(&stage.stage)) {
            self.writers.entry(rdd).or_insert(stage.stage);
        }
        let properties = &stage.properties;
        let execution = properties.sql;
        let pool = properties.pool.clone().unwrap_or_default();
        self.running
            .insert((stage.stage, stage.attempt), (execution, pool.clone()));
        let names = stage
            .rdds
            .iter()
            .map(|rdd| rdd.scope.as_ref().unwrap_or(&rdd.name));
        let mut rdds: Vec<String> = names.cloned().collect();
        rdds.dedup();
        rdds.truncate(MOST_RDDS);
        StageRow {
            pool,
            user: connect_user(properties.tags.as_deref().unwrap_or_default()).to_owned(),
            rdds,
            packages: packages(&stage.details),
            parents: self.parents(&stage.parents),
            ..row(app, stage, execution)
        }
    }

    pub(crate) fn completed(&mut self, app: String, stage: Stage) -> StageRow {
        let submitted = self.running.remove(&(stage.stage, stage.attempt));
        let (execution, pool) = submitted.unwrap_or_default();
        StageRow {
            pool,
            ..row(app, stage, execution)
        }
    }

    /// Parents by the ids under which they ran: a job gives a new id to the stage of a shuffle that was written before.
    fn parents(&self, ids: &[i32]) -> Vec<i32> {
        let writer = |id: &i32| {
            let rdd = self.last_rdd.get(id).filter(|_| !self.ran.contains(id))?;
            self.writers.get(rdd).copied()
        };
        let mut parents: Vec<i32> = ids.iter().map(|id| writer(id).unwrap_or(*id)).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }
}

/// What both rows of an attempt have.
fn row(app: String, stage: Stage, execution: Option<i64>) -> StageRow {
    let scopes = stage.rdds.iter().filter_map(|rdd| rdd.scope.as_deref());
    let scopes = each_once(scopes);
    let accumulators = stage.metrics.into_iter();
    StageRow {
        app,
        stage: stage.stage,
        attempt: stage.attempt,
        execution,
        name: stage.name,
        tasks: i32::try_from(stage.tasks).unwrap_or(i32::MAX),
        submitted_ms: stage.submitted_ms,
        completed_ms: stage.completed_ms,
        failure: stage.failure,
        scopes,
        accumulators: accumulators
            .map(|(id, value)| Accumulator { id, value })
            .collect(),
        ..StageRow::default()
    }
}

/// The RDD that a stage computes; Spark gives those that others come from smaller ids.
fn last_rdd(stage: &Stage) -> Option<i32> {
    stage.rdds.iter().map(|rdd| rdd.rdd).max()
}

/// Packages of the methods in a stack; each line is like `org.apache.spark.rdd.RDD.count(RDD.scala:1296)`.
fn packages(stack: &str) -> Vec<String> {
    each_once(stack.lines().filter_map(|line| {
        let (class, _) = line.split('(').next()?.trim().rsplit_once('.')?;
        let (package, _) = class.rsplit_once('.')?;
        Some(package)
    }))
}

/// The different texts, in the order in which they first come.
fn each_once<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    let first = texts.filter(|text| seen.insert(*text));
    first.map(str::to_owned).collect()
}

/// The user in the tag `SparkConnect_OperationTag_User_NAME_Session_…`.
fn connect_user(tags: &str) -> &str {
    let after = tags.split_once(CONNECT_USER).map(|(_, after)| after);
    after
        .and_then(|after| after.split_once("_Session_"))
        .map_or("", |(user, _)| user)
}

#[cfg(test)]
mod tests {
    use unfuse_eventlog::{Properties, Rdd};

    use super::*;

    #[test]
    fn packages_are_those_of_the_methods() {
        let stack = "org.apache.spark.rdd.RDD.count(RDD.scala:1)\njob.Main$.main(Main.scala:2)\njob.Main.main(Main.scala)\nx\n";
        assert_eq!(packages(stack), ["org.apache.spark.rdd", "job"]);
    }

    #[test]
    fn a_skipped_stage_stands_for_the_one_that_wrote_its_shuffle() {
        let rdd = |rdd| Rdd {
            rdd,
            name: String::new(),
            scope: None,
            call_site: String::new(),
            parents: Vec::new(),
            partitions: 1,
            cached_partitions: 0,
            persisted: false,
        };
        let stage = |stage, last, parents: &[i32]| Stage {
            stage,
            rdds: vec![rdd(last)],
            parents: parents.to_vec(),
            ..Stage::default()
        };
        let job = |infos: &[Stage]| JobStart {
            job: 0,
            time_ms: 1,
            stages: Vec::new(),
            infos: infos.to_vec(),
            properties: Properties::default(),
        };
        let mut stages = Stages::default();
        let mut parents = |infos: &[Stage], runs: &[usize]| -> Vec<i32> {
            stages.job(&job(infos));
            let rows = runs
                .iter()
                .map(|at| stages.submitted(String::new(), infos[*at].clone()));
            rows.last().expect("a stage").parents
        };
        // A result of RDD 1, then a shuffle of it, then another job that reads the same shuffle.
        assert_eq!(parents(&[stage(0, 1, &[])], &[0]), [0; 0]);
        assert_eq!(
            parents(&[stage(1, 1, &[]), stage(2, 2, &[1])], &[0, 1]),
            [1]
        );
        assert_eq!(parents(&[stage(3, 1, &[]), stage(4, 3, &[3])], &[1]), [1]);
    }

    #[test]
    fn spark_connect_names_its_user() {
        assert_eq!(
            connect_user("a,SparkConnect_OperationTag_User_ann_Session_1"),
            "ann"
        );
        assert_eq!(connect_user("a"), "");
    }
}
