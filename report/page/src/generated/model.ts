// Made from the Rust types of the report's blocks; a test in report/src/typescript.rs compares them.

/**
 * A suggestion.
 */
export type Advice = { 
/**
 * `move`, `delay`, `reprioritise`, `change-pool` or `look-outside`.
 */
action: string, text: string, responsibility: number, seconds: number, };

/**
 * A Spark application, or JVMs without Spark.
 */
export type Application = { 
/**
 * Spark application id; empty outside Spark.
 */
id: string, 
/**
 * Its name.
 */
name: string, 
/**
 * Spark version.
 */
spark: string, 
/**
 * Profiled JVMs.
 */
processes: number, 
/**
 * Samples a second and thread that were asked for.
 */
rate_hz: number, 
/**
 * First and last time it was seen, ms since the epoch.
 */
started_ms: number, 
/**
 * The last one.
 */
ended_ms: number, };

/**
 * What simpler methods say.
 */
export type Baselines = { 
/**
 * Naive-Overlap: seconds that each query ran at the same time.
 */
naive_overlap: Array<[string, number]>, 
/**
 * Deep-Overlap: seconds of overlap of all pairs of tasks on a host.
 */
deep_overlap: Array<[string, number]>, 
/**
 * Blocked-time analysis: seconds the victim was blocked on IO and network, whoever caused it.
 */
blocked_io_network: number, };

/**
 * One line of a ranking.
 */
export type Blame = { name: string, 
/**
 * Degree of responsibility: the part of the victims' blocked time, 0 to 1 for each.
 */
responsibility: number, seconds: number, 
/**
 * How its victims waited, strongest first.
 */
how: Array<string>, 
/**
 * Its operators by their part of the CPU time, where they are known.
 */
operators?: Array<[string, number]>, };

/**
 * Details of several queries.
 */
export type Bundle = { 
/**
 * Their details, without flame graphs.
 */
details: Array<Detail>, 
/**
 * The flame graphs of each: of operators by plan, of operators by code, of all frames.
 */
flames: Array<[Stacks, Stacks, Stacks]>, 
/**
 * The frames of all flame graphs.
 */
frames: BundleFrames, };

/**
 * Frames, each with its caller. Columns.
 */
export type BundleFrames = { 
/**
 * How far before the frame its caller is; 0 for roots.
 */
caller: Array<number>, 
/**
 * As in [`Flame`].
 */
kind: Array<number>, 
/**
 * As in [`Flame`].
 */
of: Array<number>, };

/**
 * Why a task takes longer than its like.
 */
export type Cause = "data" | "computation" | "data-or-computation" | "garbage-collection" | "fetch-wait" | "shuffle-write" | "spill" | "warm-up" | "host" | "executor" | "locality" | "start";

/**
 * Time by cause.
 */
export type CausePart = { 
/**
 * The cause.
 */
cause: Cause, 
/**
 * Of a task: how much longer it took for it; of a stage: how much sooner it ended without it; ms.
 */
ms: number, };

/**
 * This profile beside another one, per query.
 */
export type Comparison = { 
/**
 * The other profile's directory.
 */
before: string, 
/**
 * All samples of the other profile.
 */
before_total: Cost, 
/**
 * Queries of both.
 */
pairs: Array<Pair>, 
/**
 * Queries of the other profile only.
 */
only_before: Array<Unmatched>, 
/**
 * Queries of this profile only.
 */
only_after: Array<Unmatched>, };

/**
 * All queries together.
 */
export type Contention = { victims: Array<Victim>, culprits: Array<Blame>, resources: Array<Blame>, hosts: Array<Blame>, suggestions: Array<Advice>, 
/**
 * Positions in the report's list by query number.
 */
places: { [key in number]: number }, notes: Array<string>, };

/**
 * Samples and CPU time.
 */
export type Cost = { 
/**
 * CPU time, ns.
 */
cpu_ns: number, 
/**
 * Number of samples.
 */
samples: number, };

/**
 * Everything about one query.
 */
export type Detail = { 
/**
 * The plan's nodes, parents before children.
 */
nodes: Array<PlanNode>, 
/**
 * Work that no operator does.
 */
headings: Array<Heading>, 
/**
 * What is known of whose the tasks' CPU time is.
 */
placed: Placed, 
/**
 * Stage attempts in order.
 */
stages: Array<Stage>, 
/**
 * Finished task attempts, stage by stage.
 */
tasks: Tasks, 
/**
 * Time that its tasks waited, ns; none where waits were not recorded.
 */
waiting_ns: number | null, 
/**
 * Flame graph of operators in the order of the plan: each below the operator that takes its rows, with the plan's root first,
 * whatever the stage. Headings are roots.
 */
operators: Flame, 
/**
 * Flame graph of operators in the order of the code: stages first, then operators as the code calls them.
 */
operators_by_code: Flame, 
/**
 * Flame graph of all frames.
 */
frames: Flame, 
/**
 * Generated sources with samples, most first.
 */
sources: Array<HotSource>, };

/**
 * A place in the page.
 */
export type Evidence = { 
/**
 * Position in the list of queries; none for a page about all queries.
 */
query: number | null, 
/**
 * The tab: `plan`, `stages`, `flame`, `source`, `contention`, `skew`.
 */
tab: string, 
/**
 * Index of the plan node.
 */
node: number | null, };

/**
 * Runs of one query: the same application name, description and plan.
 */
export type Family = { 
/**
 * What to call it, as [`QuerySummary::name`].
 */
name: string, 
/**
 * See [`unfuse_postprocess::Fingerprint`].
 */
fingerprint: string, 
/**
 * Positions of its runs in the list of queries, by start.
 */
runs: Array<number>, 
/**
 * How many of the runs failed.
 */
failed: number, 
/**
 * Shortest, median and longest run, ms; none where no run ended.
 */
duration_ms: [number, number, number] | null, 
/**
 * CPU time of the median run, ns.
 */
median_cpu_ns: number, 
/**
 * All runs.
 */
cost: Cost, };

/**
 * A flame graph: frames in pre-order, widest sibling first, with what ends in each.
 */
export type Flame = { 
/**
 * 0 for roots.
 */
depth: Array<number>, 
/**
 * What `of` counts: see [`FlameKind`].
 */
kind: Array<number>, 
/**
 * Index into stages, headings or nodes of the query, or into [`FrameNames`].
 */
of: Array<number>, 
/**
 * CPU time of stacks that end here, ns.
 */
cpu_ns: Array<number>, 
/**
 * Samples of stacks that end here.
 */
samples: Array<number>, };

/**
 * Names of frames, shared by all queries.
 */
export type FrameNames = { 
/**
 * Methods, functions; generated code with lines.
 */
names: Array<string>, 
/**
 * `java`, `generated`, `native`, `kernel` …, an index into `kinds` each.
 */
kind: Array<number>, 
/**
 * The kinds.
 */
kinds: Array<string>, };

/**
 * A task that runs still, and has for longer than chance makes one of its stage take. What it took in the end can only be more.
 */
export type Hanging = { 
/**
 * Which of the stage's tasks: the partition where that is known.
 */
index: number, 
/**
 * The executor.
 */
executor: string, 
/**
 * The host.
 */
host: string, 
/**
 * For how long it has run, ms.
 */
running_ms: number, 
/**
 * How many times as long as the typical task that ended.
 */
times_typical: number, };

/**
 * Work that no operator does.
 */
export type Heading = { 
/**
 * What it is.
 */
name: string, 
/**
 * How much.
 */
cost: Cost, 
/**
 * Bounds of its share of the query's CPU time.
 */
range: [number, number], 
/**
 * What it waited for, longest first.
 */
waits: Array<Wait>, 
/**
 * Stages with samples or waits of it.
 */
stages: Array<number>, };

/**
 * A line of code where an operator's own CPU time was sampled.
 */
export type HotLine = { 
/**
 * Hash of the generated source; none for a line of a class that was not generated.
 */
hash: string | null, 
/**
 * `generated.java:212`, `TimSort.java:355`.
 */
place: string, 
/**
 * Line number, 0 where it is unknown.
 */
line: number, 
/**
 * Text of the line of generated code, empty where it is unknown; else the method. At most 120 characters.
 */
text: string, 
/**
 * The method that the line's samples are in most, if it is another one than that of the line.
 */
callee: string | null, 
/**
 * What was sampled there.
 */
cost: Cost, };

/**
 * A generated source with samples of one query.
 */
export type HotSource = { 
/**
 * Its hash; the text is a block of its own.
 */
hash: string, 
/**
 * What ended in it and what it called outside generated code.
 */
cost: Cost, 
/**
 * Lines with samples: number, ns, samples.
 */
lines: Array<[number, number, number]>, 
/**
 * Node by region id.
 */
nodes: Array<number>, };

/**
 * What is counted of a task's data.
 */
export type Measure = "read-records" | "read-bytes" | "written-records" | "written-bytes";

/**
 * A query of both profiles. Costs are means of its runs.
 */
export type Pair = { 
/**
 * Text or call site.
 */
description: string, 
/**
 * Fingerprint in this profile.
 */
fingerprint: string, 
/**
 * Whether only the descriptions are equal and the plans differ.
 */
replanned: boolean, 
/**
 * Runs in the other profile.
 */
before_runs: number, 
/**
 * Runs in this profile.
 */
after_runs: number, 
/**
 * CPU time of a run before, ns.
 */
before_ns: number, 
/**
 * CPU time of a run after, ns.
 */
after_ns: number, 
/**
 * Operators and headings.
 */
rows: Array<PairRow>, };

/**
 * An operator or heading in both profiles.
 */
export type PairRow = { 
/**
 * Name of the operator or heading.
 */
name: string, 
/**
 * The operator as the plan prints it.
 */
detail: string, 
/**
 * Whether it is a heading.
 */
heading: boolean, 
/**
 * Depth in the plan.
 */
depth: number, 
/**
 * Own CPU time of a run before, ns; none where that plan does not have it.
 */
before_ns: number | null, 
/**
 * And after.
 */
after_ns: number | null, 
/**
 * Own CPU time for each row that the operator got, or that it put out if it got none, ns; none where the rows are unknown.
 */
before_ns_per_row: number | null, 
/**
 * And after.
 */
after_ns_per_row: number | null, };

/**
 * Kinds of time.
 */
export type PartKind = "operators" | "tasks" | "waiting" | "unknown" | "scheduling" | "beside" | "idle";

/**
 * Paths from culprits to the victim, strongest first; a column each.
 */
export type Paths = { stage: Array<number>, resource: Array<number>, 
/**
 * How and where.
 */
wait: Array<number>, 
/**
 * Stage, or operator of a stage, of the culprit.
 */
part: Array<number>, culprit: Array<number>, seconds: Array<number>, 
/**
 * How many were left out.
 */
weak: number, };

/**
 * CPU time for each row, ns.
 */
export type PerRow = { 
/**
 * CPU time divided by rows.
 */
ns: number, 
/**
 * Lower bound, as of [`Node::own_range`].
 */
low: number, 
/**
 * Upper bound.
 */
high: number, };

/**
 * CPU time of tasks by what the rule is worth that placed it, see [`unfuse_postprocess::Standing`].
 */
export type Placed = { 
/**
 * Of the operators that it was given to.
 */
proved: Cost, 
/**
 * Of operators, possibly of others.
 */
guessed: Cost, 
/**
 * No operator's.
 */
headings: Cost, 
/**
 * Not known whose.
 */
unattributed: Cost, };

/**
 * Where the details of each query are. Columns, a position for each query of the list.
 */
export type Places = { 
/**
 * The bundle's number.
 */
bundle: Array<number>, 
/**
 * The position in it.
 */
at: Array<number>, };

/**
 * A node of the plan.
 */
export type PlanNode = { 
/**
 * Its number in the plan.
 */
id: number, 
/**
 * Index of its parent.
 */
parent: number | null, 
/**
 * Name.
 */
operator: string, 
/**
 * What it does.
 */
kind: "scan" | "filter" | "project" | "aggregate" | "join" | "exchange" | "sort" | "window" | "generate" | "python" | "write" | "other", 
/**
 * Whether it hands rows on and does no work of its own.
 */
passes: boolean, 
/**
 * The operator as the plan prints it.
 */
detail: string, 
/**
 * Codegen stage it is fused into.
 */
codegen_stage: number | null, 
/**
 * Whether adaptive planning dropped it after it ran.
 */
replanned: boolean, 
/**
 * Its own work.
 */
own: Cost, 
/**
 * Bounds of its own share of the query's CPU time.
 */
own_range: [number, number], 
/**
 * Its own and that of everything below it.
 */
total: Cost, 
/**
 * What it waited for itself, longest first.
 */
waits: Array<Wait>, 
/**
 * How long it and everything below it waited, ns.
 */
total_waiting_ns: number, 
/**
 * Stages in which it has samples or waits.
 */
stages: Array<number>, 
/**
 * Rows it put out: by its metric, or as many as it got where the operator does not change the number.
 */
rows: number | null, 
/**
 * Rows it got: those that its inputs put out.
 */
rows_in: number | null, 
/**
 * Its own CPU time for each row that it put out; none where these are unknown or 0.
 */
ns_per_row_out: PerRow | null, 
/**
 * Its own CPU time for each row that it got.
 */
ns_per_row_in: PerRow | null, 
/**
 * The lines where its own CPU time was sampled most: at most 3, each with at least 1% of the query's CPU time.
 */
hot_lines: Array<HotLine>, };

/**
 * A line of the list.
 */
export type Query = { 
/**
 * Index into the applications.
 */
app: number, 
/**
 * SQL execution id; none for work outside queries.
 */
query: number | null, 
/**
 * What to call it: one line of at most 100 characters, see [`unfuse_postprocess::query_name`].
 */
name: string, 
/**
 * Text or call site, whole.
 */
description: string, 
/**
 * Index into the families; none for work outside queries.
 */
family: number | null, 
/**
 * Start, ms since the epoch.
 */
started_ms: number | null, 
/**
 * How long it ran; none where it did not end.
 */
duration_ms: number | null, 
/**
 * Why it failed.
 */
error: string | null, 
/**
 * CPU time and samples.
 */
cost: Cost, 
/**
 * Time in which its tasks ran and used no CPU, ns; none where no task metrics came.
 */
waiting_ns: number | null, 
/**
 * Stage attempts.
 */
stages: number, 
/**
 * Finished task attempts.
 */
tasks: number, 
/**
 * See [`unfuse_postprocess::Fingerprint`].
 */
fingerprint: string, 
/**
 * Whether it is known who slowed it down.
 */
contention: boolean, 
/**
 * Whether it has slow tasks or slow records.
 */
skew: boolean, };

/**
 * One victim.
 */
export type QueryContention = { victim: Victim, culprits: Array<Blame>, suggestions: Array<Advice>, baselines: Baselines, timeline: Timeline, paths: Paths, 
/**
 * What the columns of `timeline` and `paths` mean.
 */
names: Array<string>, 
/**
 * Names of culprits that are queries: theirs, and their positions in the report's list.
 */
places: Array<[number, number]>, 
/**
 * The victim's own name.
 */
own: number, };

/**
 * A line of code.
 */
export type RecordLine = { line: string, share: number, };

/**
 * Where a record is.
 */
export type RecordPlace = { app: string, stage: number, task: number, partition: number, 
/**
 * `file`, `other`, `shuffle` or `cached`.
 */
kind: string, rdd: string, position: number, file: string | null, 
/**
 * Of its line in the file, bytes.
 */
offset: number | null, 
/**
 * In the part of the file that begins at `file_start` bytes, from 0.
 */
row: number | null, file_start: number, content: string | null, cut: boolean, };

/**
 * All about records.
 */
export type Records = { 
/**
 * Records of the program's inputs.
 */
inputs: number, 
/**
 * Records of its results.
 */
results: number, 
/**
 * Task attempts that were followed and count.
 */
tasks: number, 
/**
 * Records that took longest where they were read, the slowest first.
 */
slow_records: Array<SlowRecord>, 
/**
 * Results that took longest from the first input on, the slowest first.
 */
slow_results: Array<SlowResult>, };

/**
 * A sentence of the verdict.
 */
export type Sentence = { 
/**
 * What it is about.
 */
kind: SentenceKind, 
/**
 * Plain text in one line.
 */
text: string, 
/**
 * Where the page shows more.
 */
evidence: Evidence | null, 
/**
 * The command that shows more.
 */
command: string | null, };

/**
 * What a sentence is about.
 */
export type SentenceKind = "time" | "certainty" | "operator" | "unusual" | "next";

/**
 * Everything that is said.
 */
export type Skew = { 
/**
 * Stages that had tasks.
 */
stages: number, 
/**
 * Of them, those that are skewed.
 */
skewed: number, 
/**
 * Of them, those that wait for a task that runs still.
 */
hanging: number, 
/**
 * Of them, those with too few tasks to say.
 */
too_few: number, 
/**
 * What the skewed stages would save, s.
 */
saved_seconds: number, 
/**
 * Stages that are skewed or wait for a task that runs still, those first that would save most; or the one that was asked for.
 */
findings: Array<SkewedStage>, 
/**
 * What its records say, where they were followed.
 */
records?: Records, 
/**
 * What is missing or doubtful.
 */
notes: Array<string>, };

/**
 * A stage with what to do about it.
 */
export type SkewedStage = { 
/**
 * What to do next.
 */
next?: string, 
/**
 * What all its tasks took; only for the page, which draws it.
 */
times?: TaskTimes, 
/**
 * The application's id.
 */
app: string, 
/**
 * The stage's number.
 */
stage: number, 
/**
 * Spark's name for it.
 */
name: string, 
/**
 * The SQL execution it is of.
 */
sql: number | null, 
/**
 * What its job or SQL execution is called.
 */
description: string, 
/**
 * What it is.
 */
verdict: TaskVerdict, 
/**
 * How sure that is, 0 to 1; of skew only.
 */
sure: number, 
/**
 * Tasks that count: each once, in the attempt that counted.
 */
counted: number, 
/**
 * Task attempts that do not count: failed, killed, superseded.
 */
uncounted: number, 
/**
 * Tasks that run still.
 */
running: number, 
/**
 * How long the longest of these has run, ms.
 */
longest_running_ms: number, 
/**
 * Those of them that it waits for, the longest first.
 */
hanging: Array<Hanging>, 
/**
 * The median of the tasks' times, ms.
 */
typical_ms: number, 
/**
 * The longest, ms.
 */
slowest_ms: number, 
/**
 * The most tasks that ran at once.
 */
slots: number, 
/**
 * How long the counted tasks take on so many slots, ms.
 */
stage_ms: number, 
/**
 * How much less, if slow tasks were as fast as typical ones, ms.
 */
saved_ms: number, 
/**
 * What data is measured by here.
 */
measure: Measure | null, 
/**
 * How much less for each cause alone, ms, most first.
 */
parts: Array<CausePart>, 
/**
 * Slow tasks, slowest first.
 */
tasks: Array<SlowTask>, };

/**
 * A record that was slow in one place.
 */
export type SlowRecord = { at: RecordPlace, 
/**
 * Time of its task's code because of it.
 */
seconds: number, 
/**
 * Part of its task's run time.
 */
share_of_task: number | null, 
/**
 * How much sooner its stage would have ended without, its tasks on as many slots as it had. None of a task that does not count.
 */
saves_seconds: number | null, 
/**
 * Code that ran meanwhile, the hottest first.
 */
lines: Array<RecordLine>, };

/**
 * A result and the slowest way to it.
 */
export type SlowResult = { app: string, stage: number, partition: number, position: number, content: string | null, cut: boolean, 
/**
 * End-to-end latency.
 */
seconds: number, 
/**
 * How many inputs it came from, at most: those that it came from on several ways count more than once.
 */
inputs: number, 
/**
 * The input that the slowest way begins with, and its time there.
 */
expensive_input: RecordPlace, expensive_input_seconds: number, 
/**
 * The step of the way that took most.
 */
slowest_step: RecordPlace, slowest_step_seconds: number, };

/**
 * A task that is slow beyond chance.
 */
export type SlowTask = { 
/**
 * Which of the stage's tasks: the partition where that is known.
 */
index: number, 
/**
 * Its attempt's id in the application.
 */
task: number, 
/**
 * The executor.
 */
executor: string, 
/**
 * The host.
 */
host: string, 
/**
 * What it took, ms.
 */
duration_ms: number, 
/**
 * What it took beyond a typical task of the stage, ms.
 */
slower_ms: number, 
/**
 * How much more CPU time than a typical task its thread used, ms; Python workers are not in it.
 */
slower_cpu_ms: number, 
/**
 * How much it has of what the stage's data is measured by, and a typical task of it.
 */
amount: [number, number] | null, 
/**
 * Bytes it spilled to disk.
 */
spilled_bytes: number, 
/**
 * How sure the first of the parts is, 0 to 1.
 */
sure: number, 
/**
 * Why, most first. They can exceed what it is slower by, where other things made it faster.
 */
parts: Array<CausePart>, };

/**
 * The text of a generated source.
 */
export type Source = { 
/**
 * The generated class.
 */
class: string, 
/**
 * The text as it was compiled.
 */
text: string, 
/**
 * Runs of lines with one innermost region: first line, last line, region id, whether it produces.
 */
regions: Array<[number, number, number, boolean]>, };

/**
 * A flame graph as the stacks that end in it, in its order. Columns.
 */
export type Stacks = { 
/**
 * The innermost frame of each, an index into the bundle's frames.
 */
leaf: Array<number>, 
/**
 * CPU time in units.
 */
cpu: Array<number>, 
/**
 * The unit, ns.
 */
unit_ns: number, 
/**
 * Samples.
 */
samples: Array<number>, };

/**
 * A stage attempt.
 */
export type Stage = { 
/**
 * Stage id.
 */
stage: number, 
/**
 * Attempt number.
 */
attempt: number, 
/**
 * Spark's name for it.
 */
name: string, 
/**
 * Tasks it should have.
 */
tasks: number, 
/**
 * Submission, ms since the epoch.
 */
submitted_ms: number | null, 
/**
 * Completion, ms since the epoch.
 */
completed_ms: number | null, 
/**
 * Why it failed.
 */
failure: string | null, 
/**
 * What was sampled in its tasks.
 */
cost: Cost, 
/**
 * Sums over its finished tasks; none where no task metrics came.
 */
metrics: StageMetrics | null, };

/**
 * Sums of Spark's task metrics.
 */
export type StageMetrics = { 
/**
 * Finished task attempts.
 */
finished: number, 
/**
 * Of these, how many did not succeed.
 */
failed: number, 
/**
 * Shortest, median and longest task, ms.
 */
task_ms: [number, number, number], 
/**
 * Executor run time, ns.
 */
run_ns: number, 
/**
 * Executor CPU time of the task threads, ns.
 */
cpu_ns: number, 
/**
 * Run time without CPU time, ns.
 */
waiting_ns: number, 
/**
 * Part of the waiting: blocked on shuffle fetches, ns.
 */
fetch_wait_ns: number, 
/**
 * JVM-wide GC pauses while its tasks ran, ns.
 */
gc_ns: number, 
/**
 * Bytes read from input.
 */
input_bytes: number, 
/**
 * Shuffle bytes read.
 */
shuffle_read_bytes: number, 
/**
 * Shuffle bytes written.
 */
shuffle_write_bytes: number, 
/**
 * Bytes spilled to disk.
 */
spilled_bytes: number, };

/**
 * The first thing the page shows: everything but the details.
 */
export type Summary = { 
/**
 * The unfuse that made the report.
 */
unfuse: string, 
/**
 * The profile directory.
 */
profile: string, 
/**
 * All samples.
 */
total: Cost, 
/**
 * Applications and other JVMs, by start.
 */
applications: Array<Application>, 
/**
 * Queries, most CPU first; work outside queries at the end.
 */
queries: Array<Query>, 
/**
 * Queries with their runs, most CPU first.
 */
families: Array<Family>, 
/**
 * Where the time went, what is unusual, and what to look at next.
 */
verdict: Verdict, 
/**
 * What is not in the numbers.
 */
notes: Array<string>, 
/**
 * Whether there is a comparison.
 */
compared: boolean, 
/**
 * Whether it is known who slowed whom down.
 */
contention: boolean, 
/**
 * Whether stages were searched for slow tasks.
 */
skew: boolean, };

/**
 * What the tasks of a stage took, in the order of their numbers: a position for each column, which is the slowest of the tasks in it.
 */
export type TaskTimes = { 
/**
 * Tasks in a column; the last may have fewer.
 */
of: number, 
/**
 * The task's number.
 */
index: Array<number>, 
/**
 * What it took, ms.
 */
ms: Array<number>, 
/**
 * Of it, what is beyond a typical task, ms; 0 of tasks that are not slow.
 */
slower_ms: Array<number>, };

/**
 * What a stage's tasks are found to be.
 */
export type TaskVerdict = "even" | { "skewed": Cause } | "too-few";

/**
 * Task attempts, a column each: they are many.
 */
export type Tasks = { 
/**
 * Index into the stages.
 */
stage: Array<number>, 
/**
 * Index in the stage.
 */
index: Array<number>, 
/**
 * Attempt number.
 */
attempt: Array<number>, 
/**
 * Index into `executors`.
 */
executor: Array<number>, 
/**
 * Launch, ms since the epoch.
 */
launched_ms: Array<number>, 
/**
 * From launch to finish, ms.
 */
duration_ms: Array<number>, 
/**
 * CPU time, ms.
 */
cpu_ms: Array<number>, 
/**
 * Run time without CPU time, ms.
 */
waiting_ms: Array<number>, 
/**
 * GC pauses, ms.
 */
gc_ms: Array<number>, 
/**
 * Input and shuffle bytes read.
 */
read_bytes: Array<number>, 
/**
 * Output and shuffle bytes written.
 */
written_bytes: Array<number>, 
/**
 * Bytes spilled to disk.
 */
spilled_bytes: Array<number>, 
/**
 * Index into `statuses`.
 */
status: Array<number>, 
/**
 * Executor and host.
 */
executors: Array<string>, 
/**
 * `SUCCESS`, `FAILED` …
 */
statuses: Array<string>, };

/**
 * Blocked seconds over time: a column each, a position for each culprit and resource of each slice.
 */
export type Timeline = { 
/**
 * When the first task of all began, ms since the epoch.
 */
origin_ms: number, 
/**
 * Bounds, s since then; one more than there are slices.
 */
bounds: Array<number>, slice: Array<number>, resource: Array<number>, culprit: Array<number>, seconds: Array<number>, };

/**
 * A query of one profile only.
 */
export type Unmatched = { 
/**
 * Text or call site.
 */
description: string, 
/**
 * Its fingerprint.
 */
fingerprint: string, 
/**
 * How often it ran.
 */
runs: number, 
/**
 * CPU time of a run, ns.
 */
cpu_ns: number, };

/**
 * Where the time went, in numbers and in sentences.
 */
export type Verdict = { 
/**
 * What the parts add up to: `time of 2 slots and CPU time of other threads`.
 */
whole: string, 
/**
 * How much that is, ns.
 */
whole_ns: number, 
/**
 * How long the applications ran, ms.
 */
duration_ms: number, 
/**
 * Task slots, on average; none where unknown.
 */
slots: number | null, 
/**
 * Where it went, in the order of their kinds. They add up to the whole.
 */
parts: Array<VerdictPart>, 
/**
 * What to say of it, most important first.
 */
sentences: Array<Sentence>, };

/**
 * A part of the time.
 */
export type VerdictPart = { 
/**
 * What it is: `operators`, `disk read`, `JIT compilation` …
 */
name: string, 
/**
 * What kind of time it is.
 */
kind: PartKind, 
/**
 * How much, ns.
 */
ns: number, };

/**
 * A query that was slowed down.
 */
export type Victim = { 
/**
 * Its number; made up where a name of a CSV file is none.
 */
query: number, 
/**
 * What `--victim` takes.
 */
name: string, label: string, 
/**
 * From its first stage to its last, s.
 */
ran_seconds: number, 
/**
 * The stages that count, `7.1` for the second attempt of stage 7.
 */
stages: Array<string>, 
/**
 * How many tasks they had.
 */
tasks: number, 
/**
 * Time of these tasks, s.
 */
task_seconds: number, 
/**
 * Of it, and of tasks that waited for a slot, the time in which they could not go on, s.
 */
blocked_seconds: number, 
/**
 * Of it, what other queries and processes outside Spark account for, s. This and the next four add up to it.
 */
by_others_seconds: number, 
/**
 * What its own other tasks account for, s.
 */
by_itself_seconds: number, 
/**
 * What garbage collection accounts for, s.
 */
by_gc_seconds: number, 
/**
 * What else the JVMs did outside tasks, s.
 */
by_jvm_seconds: number, 
/**
 * What nobody known accounts for, s.
 */
by_unknown_seconds: number, 
/**
 * Who most of it is put down to, other than itself.
 */
main_culprit: string | null, };

/**
 * Waiting for one thing.
 */
export type Wait = { 
/**
 * What for.
 */
what: string, 
/**
 * How long, ns.
 */
ns: number, };

export const STAGE = 0;

export const HEADING = 1;

export const OPERATOR = 2;
