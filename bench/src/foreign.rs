//! Another profiler's samples, put into a profile of ours: then both are attributed by the same rules.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use unfuse_format::{CodegenRow, Frame, ProfileDir, SampleRow, SegmentWriter, StackRow};

use crate::event_log::Execution;

/// Generated code of an execution: class name ending (`ForCodegenStageN`) and the text's hash.
type Sources = HashMap<String, String>;

/// Adds folded stacks whose frames are `package.Class.method:line` (as the converter of async-profiler's
/// recordings prints them) as samples of the execution's stage. Only stacks of its pipeline count, the
/// generated class with most samples; what the JVM or other stages did meanwhile does not.
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
        for (stack, count) in pipeline(folded) {
            let row = StackRow::of(stack.split(';').map(|text| frame(text, sources)).collect());
            samples.push(SampleRow {
                app: app.clone(),
                stage: Some(execution.stage),
                stage_attempt: Some(0),
                kind: "cpu".to_owned(),
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

/// Stacks and samples of the generated class that has most of them.
pub fn pipeline(folded: &str) -> Vec<(&str, u64)> {
    let mut by_class: HashMap<&str, Vec<(&str, u64)>> = HashMap::new();
    for line in folded.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else {
            continue;
        };
        let innermost = stack
            .rsplit(';')
            .find_map(|frame| split(frame).filter(|(class, ..)| is_pipeline(class)));
        if let (Some((class, ..)), Ok(count)) = (innermost, count.parse()) {
            by_class.entry(class).or_default().push((stack, count));
        }
    }
    let samples = |stacks: &Vec<(&str, u64)>| stacks.iter().map(|(_, count)| count).sum::<u64>();
    by_class
        .into_values()
        .max_by_key(samples)
        .unwrap_or_default()
}

fn is_pipeline(class: &str) -> bool {
    class.contains("GeneratedIteratorForCodegenStage")
}

/// `package.Class.method` with or without `:line`, apart; none for what is no Java frame. How it was
/// compiled (`_[j]`) is left out.
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
            kind: "native".to_owned(),
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
        kind: "java".to_owned(),
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
    fn the_pipeline_is_the_class_with_most_samples() {
        let stage =
            |number: u32| format!("x.GeneratedClass$GeneratedIteratorForCodegenStage{number}");
        let (one, two) = (stage(1), stage(2));
        let folded = format!(
            "{one}.next:3_[j] 5\n{two}.next:4_[j];java.lang.Math.abs:9_[i] 7\n{one}.next:5_[j] 1\n"
        );
        let stacks = pipeline(&folded);
        assert_eq!(
            stacks,
            [(
                format!("{two}.next:4_[j];java.lang.Math.abs:9_[i]").as_str(),
                7
            )]
        );
    }
}
