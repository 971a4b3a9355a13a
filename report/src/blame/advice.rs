//! Suggestions against contention.

use std::collections::BTreeSet;

use unfuse_contention::{
    Explanation, KnownProcess, QueryId, StageId, Suggestion, Thresholds, Workload, suggestions,
};

use super::answer::{Advice, Sooner};
use super::names::title;
use crate::text::list;

/// The first suggestions that follow from paths.
pub(super) fn advice_on(workload: &Workload, paths: &[Explanation], k: usize) -> Vec<Advice> {
    let suggestions = suggestions(workload, paths, &Thresholds::default());
    let first = suggestions.iter().take(k);
    first
        .map(|suggestion| advice(workload, suggestion))
        .collect()
}

fn advice(workload: &Workload, suggestion: &Suggestion) -> Advice {
    let evidence = suggestion.evidence();
    let victim = title(workload, evidence.victim);
    let (action, text) = match suggestion {
        Suggestion::Move { culprit, host, .. } => (
            "move",
            format!(
                "keep {} or {victim} away from {}: most of the blocked time is there",
                title(workload, *culprit),
                workload.host_name(*host)
            ),
        ),
        Suggestion::Delay { stage, until, .. } => ("delay", delay(workload, *stage, until, victim)),
        Suggestion::Reprioritise {
            culprit, weight, ..
        } => (
            "reprioritise",
            format!(
                "give {}, in which {victim} runs, a weight above {weight} (fairscheduler.xml, with spark.scheduler.mode=FAIR): \
                 {} in {} has the same weight and uses resources all the time",
                pool_of(workload, evidence.victim),
                title(workload, *culprit),
                pool_of(workload, *culprit)
            ),
        ),
        Suggestion::ChangePool { culprit, pool, .. } => (
            "change-pool",
            format!(
                "give {} a pool of its own (spark.scheduler.pool, with spark.scheduler.mode=FAIR): it shares {} with {victim}",
                title(workload, *culprit),
                pool_name(pool)
            ),
        ),
        Suggestion::LookOutside { process, .. } => {
            let what = match process {
                KnownProcess::Outside(_) => format!(
                    "{} uses what it waits for: run it elsewhere, at another time, or with less of the resource",
                    workload.process_name(*process)
                ),
                _ => outside(*process).to_owned(),
            };
            ("look-outside", format!("{victim}: {what}"))
        }
    };
    Advice {
        action,
        text,
        responsibility: evidence.responsibility,
        seconds: evidence.seconds,
        sooner: Sooner::default(),
        culprit: evidence.paths.first().map(|path| path.culprit),
    }
}

fn delay(workload: &Workload, stage: StageId, until: &BTreeSet<StageId>, victim: &str) -> String {
    let culprit = title(workload, stage.query);
    let application = |id: &StageId| workload.query(id.query).map(|query| &query.application);
    // One program that runs both can make stages wait for each other. Two programs can only be started one after the
    // other.
    if until.first().and_then(application) != application(&stage) {
        return format!("run {culprit} after {victim}");
    }
    let until: Vec<String> = until.iter().map(|stage| stage.number()).collect();
    format!(
        "run {culprit} after {victim}, or at least its {} after {} {} of {victim}",
        stage.name(),
        if until.len() == 1 { "stage" } else { "stages" },
        list(&until)
    )
}

fn pool_of(workload: &Workload, query: QueryId) -> String {
    pool_name(workload.query(query).map_or("", |query| &query.pool))
}

fn pool_name(pool: &str) -> String {
    match pool {
        "" => "the default pool".to_owned(),
        pool => format!("pool {pool}"),
    }
}

fn outside(process: KnownProcess) -> &'static str {
    match process {
        KnownProcess::Gc | KnownProcess::GcFor(_) => {
            "garbage collection stops the tasks: more heap or fewer objects help; another order of the queries does not"
        }
        KnownProcess::Jit => {
            "just-in-time compilation uses the CPUs: a JVM that has run for a while compiles less; another order of the queries does not help"
        }
        KnownProcess::Jvm => {
            "the JVM's other work outside tasks uses the resource: the driver's planning and scheduling, and in profiles of earlier versions also compilation"
        }
        KnownProcess::ExternalCpu => "processes outside Spark use the CPUs: see `top` on the host",
        KnownProcess::Outside(_) => "a process outside Spark uses the resource",
        KnownProcess::OwnLimit => {
            "the CPU limit of its own container (control group) holds the tasks back: a higher limit helps; another order of the queries does not"
        }
        KnownProcess::Hypervisor => {
            "the hypervisor gives the CPUs to other machines: another machine, or another kind of machine, helps"
        }
        KnownProcess::ExternalIo => {
            "processes outside Spark use the disks: see `iotop` on the host"
        }
        KnownProcess::ExternalNetwork => {
            "network traffic other than shuffles: remote files, broadcasts, or processes outside Spark (see `nethogs` on the host)"
        }
    }
}
