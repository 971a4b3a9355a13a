//! Shares in a made-up profile whose samples are between the lines of fused operators.

use unfuse_format::{
    CodegenRow, Frame, FrameKind, PlanRow, ProfileDir, RegionNode, SampleKind, SampleRow,
    SegmentWriter, SourceRow, StackRow, StageRow, Table,
};
use unfuse_postprocess::{By, Profile, Selection, Total, Totals};

const APP: &str = "app";
const HASH: &str = "0123456789abcdef";
/// Lines 2 and 9 are of the range, 4 of the projection, 6 of the sampling; 1 and 10 have no operator. Line 13 is of the sampling, 15
/// to 17 of the projection, and 19 is the sampling's call.
const TEXT: &str = "for (int i = 0; i < n;) {
/* BeginCodeRegion(PRODUCE_3) */ i++;
/* BeginCodeRegion(CONSUME_2) */
y = x * x;
/* BeginCodeRegion(CONSUME_1) */
if (y > z) n++;
/* EndCodeRegion(CONSUME_1) */
/* EndCodeRegion(CONSUME_2) */
x++;
/* EndCodeRegion(PRODUCE_3) */ }
private void step() {
/* BeginCodeRegion(CONSUME_1) */
if (sampler.sample() != 0) {
/* BeginCodeRegion(PRODUCE_2) */
long a = -1L;
a = x * 3L ^ x;
long b = a * 5L ^ x;
/* EndCodeRegion(PRODUCE_2) */
sample_doConsume_0(b);
/* EndCodeRegion(CONSUME_1) */ }";
/// By region.
const OPERATORS: [&str; 4] = ["WholeStageCodegen (1)", "Sample", "Project", "Range"];

fn write<T: Table>(dir: &ProfileDir, rows: Vec<T>) {
    let mut segment = SegmentWriter::new(dir, "test-1");
    rows.into_iter().for_each(|row| segment.push(row));
    segment.flush().expect("written");
}

/// The operators' totals of samples: number, line, and the line that was described before.
fn totals(samples: &[(u64, u32, u32)]) -> Vec<Total> {
    let home = tempfile::tempdir().expect("a directory");
    let dir = ProfileDir::create(&home.path().join("profile")).expect("a profile");
    dir.save_source(HASH, TEXT).expect("saved");
    let stack = |line, line_before| {
        StackRow::from_frames(vec![Frame {
            kind: FrameKind::Java,
            class: "GeneratedClass$GeneratedIteratorForCodegenStage1".to_owned(),
            method: "loop".to_owned(),
            file: format!("generated_{HASH}.java"),
            line,
            line_before,
            ..Frame::default()
        }])
    };
    let sample = |&(count, line, before): &(u64, u32, u32)| SampleRow {
        app: APP.to_owned(),
        kind: SampleKind::Cpu,
        stage: Some(3),
        stage_attempt: Some(0),
        task: Some(1),
        stack: stack(line, before).stack,
        count,
        weight_ns: count,
        ..SampleRow::default()
    };
    write(&dir, samples.iter().map(sample).collect());
    let stacks = samples
        .iter()
        .map(|(_, line, before)| stack(*line, *before));
    write(&dir, stacks.collect());
    let source = SourceRow {
        app: APP.to_owned(),
        hash: HASH.to_owned(),
        ..SourceRow::default()
    };
    write(&dir, vec![source]);
    let region = |(index, operator): (usize, &&str)| RegionNode {
        region: index as i32,
        operator: (*operator).to_owned(),
        detail: (*operator).to_owned(),
    };
    let codegen = CodegenRow {
        app: APP.to_owned(),
        execution: Some(7),
        codegen_stage: 1,
        hash: HASH.to_owned(),
        nodes: OPERATORS.iter().enumerate().map(region).collect(),
    };
    write(&dir, vec![codegen]);
    let node = |(index, operator): (usize, &&str)| PlanRow {
        app: APP.to_owned(),
        execution: 7,
        node: index as i32,
        parent: (index > 0).then(|| index as i32 - 1),
        operator: (*operator).to_owned(),
        detail: (*operator).to_owned(),
        codegen_stage: Some(1),
        region: Some(index as i32),
        ..PlanRow::default()
    };
    write(&dir, OPERATORS.iter().enumerate().map(node).collect());
    let stage = StageRow {
        app: APP.to_owned(),
        stage: 3,
        execution: Some(7),
        ..StageRow::default()
    };
    write(&dir, vec![stage]);
    let profile = Profile::open(dir.path()).expect("a profile");
    Totals::new(&profile, Selection::default(), By::Operator).rows
}

/// Share of an operator with its bounds.
fn share(rows: &[Total], operator: &str) -> (f64, f64, f64) {
    let row = rows.iter().find(|row| row.operator == operator);
    let row = row.unwrap_or_else(|| panic!("{operator} of {rows:?}"));
    let (low, high) = (
        row.share_low.unwrap_or(-1.0),
        row.share_high.unwrap_or(-1.0),
    );
    assert!(low <= row.share && row.share <= high, "{row:?}");
    (row.share, low, high)
}

#[test]
fn samples_on_described_code_leave_only_chance() {
    let rows = totals(&[(500, 6, 0), (500, 2, 0)]);
    let (share, low, high) = share(&rows, "Sample");
    assert_eq!(share, 0.5);
    assert!(low > 0.46 && high < 0.54);
    assert!(rows.iter().all(|row| row.operator != "Project"));
}

#[test]
fn code_between_two_operators_may_be_of_all_that_stand_between_them() {
    let rows = totals(&[(400, 6, 2), (600, 2, 0)]);
    let (given, low, high) = share(&rows, "Sample");
    assert_eq!(given, 0.4);
    assert!(low == 0.0 && high < 0.44);
    let (given, low, high) = share(&rows, "Project");
    assert_eq!(given, 0.0);
    assert!(low == 0.0 && (0.4..0.44).contains(&high));
    let (given, low, high) = share(&rows, "Range");
    assert_eq!(given, 0.6);
    assert!(low > 0.56 && high > 0.99);
}

#[test]
fn code_before_a_jump_back_may_be_of_its_two_ends() {
    let rows = totals(&[(400, 2, 6), (600, 6, 0)]);
    let (_, low, _) = share(&rows, "Range");
    assert_eq!(low, 0.0);
    assert!(rows.iter().all(|row| row.operator != "Project"));
}

#[test]
fn code_before_a_call_computes_its_arguments() {
    let rows = totals(&[(400, 19, 13), (600, 6, 0)]);
    let (given, low, high) = share(&rows, "Project");
    assert_eq!(given, 0.4);
    assert!(low == 0.0 && high < 0.44);
    let (given, _, high) = share(&rows, "Sample");
    assert_eq!(given, 0.6);
    assert!(high > 0.99);
}

#[test]
fn code_that_was_moved_up_is_of_the_lines_below() {
    // Without a loop, nothing leads back to line 13.
    let rows = totals(&[(400, 13, 19), (600, 6, 0)]);
    assert_eq!(share(&rows, "Project").0, 0.4);
}

#[test]
fn lines_of_one_operator_may_surround_others() {
    let rows = totals(&[(400, 9, 2), (600, 4, 0)]);
    let (_, low, _) = share(&rows, "Range");
    assert_eq!(low, 0.0);
    let (_, _, high) = share(&rows, "Project");
    assert!(high > 0.99);
}

#[test]
fn neighbouring_lines_of_one_operator_leave_no_doubt() {
    let rows = totals(&[(400, 4, 3), (600, 6, 0)]);
    let (_, low, _) = share(&rows, "Project");
    assert!(low > 0.36);
}
