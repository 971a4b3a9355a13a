//! Reads a run from an event log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use unfuse_eventlog as log;
use unfuse_eventlog::{Event, EventLog, Outcome};

use super::retries::Sizes;
use crate::{Run, RunningTask, Stage, Task};

/// Maximum number of task attempts from a log.
const MOST_TASKS: usize = 10_000_000;

/// Reads a log to its end. It keeps a row for each task attempt, and little else. A note reports attempts beyond the
/// limit.
pub fn from_event_log(log: &mut EventLog) -> Run {
    up_to(MOST_TASKS, log)
}

fn up_to(most: usize, log: &mut EventLog) -> Run {
    let mut reader = Reader {
        most,
        ..Reader::default()
    };
    for event in log.by_ref() {
        reader.take(event);
    }
    let mut run = reader.finish();
    run.notes.splice(0..0, log.damage().notes());
    run
}

#[derive(Default)]
struct Reader {
    /// Maximum number of ended task attempts, and of running ones.
    most: usize,
    /// Number of ended attempts.
    kept: usize,
    left_out: u64,
    app: Option<Arc<str>>,
    ended: bool,
    stages: BTreeMap<i32, Stage>,
    sizes: Sizes<i32>,
    /// Task attempts that have started and not ended, with their stages.
    running: HashMap<i64, (i32, RunningTask)>,
    descriptions: HashMap<i64, String>,
    now_ms: i64,
}

impl Reader {
    fn take(&mut self, event: Event) {
        match event {
            Event::ApplicationStart(start) => {
                self.app = Some(start.id.unwrap_or(start.name).into());
                self.see(start.time_ms);
            }
            Event::ApplicationEnd(at) => {
                self.ended = true;
                self.see(at);
            }
            Event::SqlStart(start) => {
                self.see(start.time_ms);
                self.descriptions.insert(start.sql, start.description);
            }
            Event::StageSubmitted(info) => self.submitted(info),
            Event::StageCompleted(info) => self.completed(&info),
            Event::TaskStart(task) => {
                self.see(task.launched_ms);
                if self.running.len() == self.most {
                    self.left_out += 1;
                    return;
                }
                let running = RunningTask {
                    index: task.partition.unwrap_or(task.index),
                    stage_attempt: task.stage_attempt,
                    launched_ms: task.launched_ms,
                    executor: task.executor,
                    host: task.host,
                };
                self.running.insert(task.task, (task.stage, running));
            }
            Event::TaskEnd(end) => self.ended(*end),
            Event::JobEnd(end) => self.see(end.time_ms),
            _ => {}
        }
    }

    fn see(&mut self, at_ms: i64) {
        self.now_ms = self.now_ms.max(at_ms);
    }

    fn submitted(&mut self, info: log::Stage) {
        self.see(info.submitted_ms.unwrap_or(0));
        self.sizes.take(info.stage, info.attempt, info.tasks.into());
        let stage = self.stages.entry(info.stage).or_default();
        stage.stage = info.stage;
        stage.name = info.name;
        stage.sql = info.properties.sql.or(stage.sql);
        stage.description = info.properties.description.unwrap_or_default();
        stage.submitted_ms = stage.submitted_ms.or(info.submitted_ms);
        stage.completed_ms = None;
    }

    fn completed(&mut self, info: &log::Stage) {
        self.see(info.completed_ms.unwrap_or(0));
        let stage = self.stages.entry(info.stage).or_default();
        stage.stage = info.stage;
        stage.submitted_ms = stage.submitted_ms.or(info.submitted_ms);
        stage.completed_ms = info.completed_ms;
        if stage.name.is_empty() {
            stage.name.clone_from(&info.name);
        }
    }

    fn ended(&mut self, end: log::TaskEnd) {
        self.see(end.finished_ms);
        self.running.remove(&end.task.task);
        // Its first end was a separate event.
        if end.outcome == Outcome::Resubmitted {
            return;
        }
        if self.kept == self.most {
            self.left_out += 1;
            return;
        }
        self.kept += 1;
        let stage = self.stages.entry(end.task.stage).or_default();
        stage.stage = end.task.stage;
        stage.attempts.push(task(end));
    }

    fn finish(mut self) -> Run {
        for (stage, running) in self.running.into_values() {
            // In an ended application, the events of their ends were lost.
            if let Some(stage) = self.stages.get_mut(&stage)
                && stage.completed_ms.is_none()
                && !self.ended
            {
                stage.running.push(running);
            }
        }
        let app = self.app.unwrap_or_else(|| "".into());
        let mut stages: Vec<Stage> = self.stages.into_values().collect();
        stages.retain(|stage| !stage.attempts.is_empty() || !stage.running.is_empty());
        for stage in &mut stages {
            stage.app = Arc::clone(&app);
            stage.now_ms = self.now_ms;
            stage.running.sort_unstable();
            stage.mark_first();
            let of_sql = stage.sql.and_then(|sql| self.descriptions.get(&sql));
            if let (true, Some(text)) = (stage.description.is_empty(), of_sql) {
                stage.description.clone_from(text);
            }
        }
        let mut notes = Vec::new();
        if self.left_out > 0 {
            notes.push(format!(
                "the log has more than {} task attempts, which is the limit: the last {} of them were left out",
                self.most, self.left_out
            ));
        }
        if !self.ended {
            notes.push(
                "the log has no end of the application: it still runs, or its driver was killed"
                    .into(),
            );
        }
        let mut run = Run { stages, notes };
        self.sizes.settle(&mut run, |stage| stage.stage);
        run
    }
}

fn task(end: log::TaskEnd) -> Task {
    let metrics = end.metrics.unwrap_or_default();
    Task {
        stage_attempt: end.task.stage_attempt,
        index: end.task.index,
        partition: end.task.partition,
        task: end.task.task,
        executor: end.task.executor,
        host: end.task.host,
        locality: end.task.locality,
        first: false,
        // A task without metrics cannot be judged.
        succeeded: end.outcome == Outcome::Success && end.metrics.is_some(),
        launched_ms: end.task.launched_ms,
        finished_ms: end.finished_ms,
        run_ms: metrics.run_ms,
        cpu_ns: metrics.cpu_ns,
        gc_ms: metrics.gc_ms,
        fetch_wait_ms: metrics.fetch_wait_ms,
        shuffle_write_ns: metrics.shuffle_write_ns,
        read_bytes: metrics
            .input_bytes
            .saturating_add(metrics.shuffle_read_bytes()),
        read_records: metrics
            .input_records
            .saturating_add(metrics.shuffle_read_records),
        written_bytes: metrics
            .output_bytes
            .saturating_add(metrics.shuffle_write_bytes),
        written_records: metrics
            .output_records
            .saturating_add(metrics.shuffle_write_records),
        spilled_bytes: metrics.disk_spilled_bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::io::Cursor;
    use std::path::Path;

    use super::*;

    /// The run of a log with `ended` tasks that end, followed by `running` tasks that do not.
    fn run(most: usize, ended: u32, running: u32) -> Run {
        let mut text =
            "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"4.0.0\"}\n".to_owned();
        let mut event = |name: &str, task: u32, more: &str| {
            let task = format!(
                r#""Task Info":{{"Task ID":{task},"Index":{task},"Attempt":0,"Launch Time":1000,"Finish Time":2000,"Executor ID":"1","Host":"h","Locality":"ANY"}}"#
            );
            writeln!(
                text,
                r#"{{"Event":"SparkListenerTask{name}","Stage ID":0,"Stage Attempt ID":0,{more}{task}}}"#
            )
            .unwrap();
        };
        for task in 0..ended {
            event("Start", task, "");
            let reason = r#""Task Type":"ResultTask","Task End Reason":{"Reason":"Success"},"#;
            event("End", task, reason);
        }
        for task in ended..ended + running {
            event("Start", task, "");
        }
        let mut log = EventLog::from_reader(Cursor::new(text), Path::new("log")).unwrap();
        let run = up_to(most, &mut log);
        assert!(log.damage().is_none(), "{:?}", log.damage());
        run
    }

    fn attempts(run: &Run) -> (usize, usize) {
        let stage = &run.stages[0];
        (stage.attempts.len(), stage.running.len())
    }

    #[test]
    fn task_attempts_beyond_the_limit_are_left_out_and_noted() {
        let all = run(3, 3, 3);
        assert_eq!(attempts(&all), (3, 3));
        assert!(!all.notes.iter().any(|note| note.contains("limit")));
        let too_many = run(3, 5, 4);
        assert_eq!(attempts(&too_many), (3, 3));
        let expected = "more than 3 task attempts, which is the limit: the last 3 of them";
        let notes = &too_many.notes;
        assert!(
            notes.iter().any(|note| note.contains(expected)),
            "{notes:?}"
        );
    }
}
