//! CPU time of Python processes that work for Spark's tasks.

use serde_json::Value;
use unfuse_format::{FrameKind, ProcessRow, SampleRow, StackRow};

use super::tables::{frame, sample_of};

/// The sample of a task whose Python processes used CPU time, below the code of Spark that talks to them. `rest` is the
/// time, ns, that was not a whole sample before. Empty if the event is invalid.
pub(super) fn rows(
    process: &ProcessRow,
    event: &Value,
    rest: &mut u64,
) -> Option<(StackRow, SampleRow)> {
    let ns = event["ns"].as_u64()?;
    let period = 1_000_000_000u64.checked_div(u64::from(process.rate_hz))?;
    *rest = rest.saturating_add(ns);
    let count = *rest / period;
    *rest %= period;
    let stack = StackRow::from_frames(vec![
        frame(
            FrameKind::Java,
            "org.apache.spark.api.python.BasePythonRunner",
            "compute",
        ),
        frame(FrameKind::Native, "", "Python worker process"),
    ]);
    let ms = |key: &str| event[key].as_i64().unwrap_or(0).saturating_mul(1_000_000);
    let number = |key: &str| {
        event[key]
            .as_i64()
            .and_then(|number| i32::try_from(number).ok())
    };
    let sample = SampleRow {
        thread: "Python worker".to_owned(),
        stage: Some(number("stage")?),
        stage_attempt: Some(number("attempt")?),
        task: Some(event["task"].as_i64()?),
        start_ns: ms("start"),
        end_ns: ms("end"),
        stack: stack.stack,
        count,
        weight_ns: ns,
        ..sample_of(process)
    };
    Some((stack, sample))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_samples_add_up() {
        let process = ProcessRow {
            rate_hz: 100,
            ..ProcessRow::default()
        };
        let event =
            json!({"stage": 3, "attempt": 0, "task": 7, "start": 1, "end": 2, "ns": 14_000_000});
        let mut rest = 0;
        let counts: Vec<u64> = (0..5)
            .map(|_| rows(&process, &event, &mut rest).unwrap().1.count)
            .collect();
        assert_eq!(counts, [1, 1, 2, 1, 2]);
        assert!(rows(&process, &json!({"ns": 5}), &mut rest).is_none());
    }
}
