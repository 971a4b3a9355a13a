//! Adds another profiler's samples to a profile of unfuse, so that the same rules attribute both.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use unfuse_format::{
    CodegenRow, Frame, FrameKind, ProfileDir, SampleKind, SampleRow, SegmentWriter, StackRow,
};

use crate::event_log::Execution;

/// Generated code of an execution: the end of the class name (`ForCodegenStageN`), and the hash of the text.
type Sources = HashMap<String, String>;

/// Adds folded stacks as samples of the execution's stage. Their frames are `package.Class.method:line`, as the converter of
/// async-profiler's recordings prints them. Samples of the JVM itself and of other stages are left out.
///
/// # Errors
/// If the profile cannot be read or written.
pub fn add(profile: &Path, executions: &[(Execution, String)]) -> Result<()> {
    let dir = ProfileDir::open(profile)?;
    let mut generated: HashMap<i64, (String, Sources)> = HashMap::new();
    for row in dir.read::<CodegenRow>()?.rows {
        let Some(execution) = row.execution else {
            continue;
        };
        let (_, sources) = generated
            .entry(execution)
            .or_insert_with(|| (row.app.clone(), Sources::new()));
        sources.insert(format!("ForCodegenStage{}", row.codegen_stage), row.hash);
    }
    let mut samples = SegmentWriter::<SampleRow>::new(&dir, "foreign");
    let mut stacks = SegmentWriter::<StackRow>::new(&dir, "foreign");
    for (execution, folded) in executions {
        let (app, sources) = generated
            .get(&execution.id)
            .with_context(|| format!("no generated code of execution {}", execution.id))?;
        for (stack, count) in of_stage(folded) {
            let row =
                StackRow::from_frames(stack.split(';').map(|text| frame(text, sources)).collect());
            samples.push(SampleRow {
                app: app.clone(),
                stage: Some(execution.stage),
                stage_attempt: Some(0),
                kind: SampleKind::Cpu,
                stack: row.stack,
                count,
                ..SampleRow::default()
            });
            stacks.push(row);
        }
    }
    samples.flush()?;
    stacks.flush()?;
    Ok(())
}

/// Stacks and samples of the stage that runs the canonical query's pipeline. Of the query's stages, it is the only one whose
/// tasks write a shuffle.
pub fn of_stage(folded: &str) -> impl Iterator<Item = (&str, u64)> {
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    lines
        .filter(|(stack, _)| stack.contains("ShuffleMapTask.runTask"))
        .filter_map(|(stack, count)| Some((stack, count.parse().ok()?)))
}

/// Splits `package.Class.method` or `package.Class.method:line`; `None` for a frame that is not Java. Drops the mark of its
/// compilation (`_[j]`).
fn split(frame: &str) -> Option<(&str, &str, u32)> {
    let frame = frame.split("_[").next().unwrap_or(frame);
    let (name, line) = match frame.rsplit_once(':') {
        Some((name, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, line.parse().unwrap_or(0))
        }
        _ => (frame, 0),
    };
    let (class, method) = name.rsplit_once('.')?;
    Some((class, method, line))
}

fn frame(text: &str, sources: &Sources) -> Frame {
    let Some((class, method, line)) = split(text) else {
        return Frame {
            kind: FrameKind::Native,
            method: text.to_owned(),
            bci: -1,
            ..Frame::default()
        };
    };
    let hash = class
        .contains("GeneratedClass$")
        .then(|| sources.iter().find(|(ending, _)| class.ends_with(*ending)))
        .flatten();
    Frame {
        kind: FrameKind::Java,
        class: class.to_owned(),
        method: method.to_owned(),
        file: hash.map_or_else(String::new, |(_, hash)| format!("generated_{hash}.java")),
        line,
        bci: -1,
        ..Frame::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_the_converter_are_taken_apart() {
        assert_eq!(split("a.B$C.run:17_[j]"), Some(("a.B$C", "run", 17)));
        assert_eq!(split("a.B.run_[0]"), Some(("a.B", "run", 0)));
        assert_eq!(split("PhaseChaitin::Register_Allocate"), None);
    }

    #[test]
    fn only_the_stage_that_writes_a_shuffle_counts() {
        let task = "x.ShuffleMapTask.runTask:9_[j]";
        let folded =
            format!("{task};a.B.next:3_[j] 5\nx.ResultTask.runTask;a.B.next 7\n{task} 1\n");
        let stacks: Vec<(&str, u64)> = of_stage(&folded).collect();
        let inner = format!("{task};a.B.next:3_[j]");
        assert_eq!(stacks, [(inner.as_str(), 5), (task, 1)]);
    }
}
