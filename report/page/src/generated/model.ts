// Made from the Rust types of the report's blocks; a test in report/src/typescript.rs compares them.

/**
 * A suggestion.
 */
export type Advice = { 
/**
 * `move`, `delay`, `reprioritise`, `change-pool` or `look-outside`.
 */
action: string, text: string, responsibility: number, seconds: number, 
/**
 * How much sooner the one victim would end without the culprit, s, by a replay of its tasks; unknown if there are several
 * victims, or only a part of the waits counts. Those of several culprits do not add up.
 */
victim_seconds?: number, 
/**
 * Lower end of its 95% interval.
 */
victim_seconds_low?: number, 
/**
 * Upper end.
 */
victim_seconds_high?: number, };

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
 * Requested samples a second and thread.
 */
rate_hz: number, 
/**
 * First time it was seen, ms since the epoch.
 */
started_ms: number, 
/**
 * Last time it was seen, ms since the epoch.
 */
ended_ms: number, };

/**
 * The results of simpler methods.
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
 * Blocked-time analysis: seconds for which the victim was blocked on IO and network, whoever caused it.
 */
blocked_io_network: number, };

/**
 * One line of a ranking.
 */
export type Blame = { name: string, 
/**
 * What the culprit is; nothing if the row is not a culprit's.
 */
kind?: CulpritKind, 
/**
 * Degree of responsibility: the part of the victims' blocked time, 0 to 1 for each victim.
 */
responsibility: number, seconds: number, 
/**
 * Whether most of it is waits for a CPU, and for most of these the kernel recorded who ran meanwhile. If not, waits are shared
 * out by use.
 */
exact: boolean, 
/**
 * The kinds of waits of its victims, strongest first.
 */
how: Array<string>, 
/**
 * Its operators with their part of the CPU time, 0 to 1; empty if unknown.
 */
operators?: Array<[string, number]>, 
/**
 * How much sooner the one victim would end without the culprit, s, by a replay of its tasks; unknown if there are several
 * victims, or only a part of the waits counts. Those of several culprits do not add up.
 */
victim_seconds?: number, 
/**
 * Lower end of its 95% interval.
 */
victim_seconds_low?: number, 
/**
 * Upper end.
 */
victim_seconds_high?: number, };

/**
 * Details of several queries.
 */
export type Bundle = { 
/**
 * The details without flame graphs.
 */
details: Array<Detail>, 
/**
 * The flame graphs of each query: operators by plan, operators by code, all frames.
 */
flames: Array<[Stacks, Stacks, Stacks]>, 
/**
 * The frames of all flame graphs.
 */
frames: BundleFrames, };

/**
 * Frames with their callers, as columns.
 */
export type BundleFrames = { 
/**
 * Distance to the caller, which comes before the frame; 0 for roots.
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
 * Why a task is slower than the others.
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
 * For a task: how much longer it took because of it; for a stage: how much earlier it would have ended without it;
 * ms.
 */
ms: number, };

/**
 * The comparison of this profile with an earlier one, by query.
 */
export type Comparison = { 
/**
 * The earlier profile's directory.
 */
before: string, 
/**
 * All samples of the earlier profile.
 */
before_total: Cost, 
/**
 * Queries in both profiles.
 */
pairs: Array<Pair>, 
/**
 * Queries in the earlier profile only.
 */
only_before: Array<UnmatchedQuery>, 
/**
 * Queries in this profile only.
 */
only_after: Array<UnmatchedQuery>, };

/**
 * All queries together.
 */
export type Contention = { victims: Array<Victim>, culprits: Array<Blame>, resources: Array<Blame>, hosts: Array<Blame>, suggestions: Array<Advice>, 
/**
 * Positions in the report's list, by query number.
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
 * CPU time of tasks by what its attribution proves, see [`unfuse_postprocess::Standing`].
 */
export type CostByStanding = { 
/**
 * Time of the operators to which it is attributed.
 */
proved: Cost, 
/**
 * Time of operators, possibly of others.
 */
guessed: Cost, 
/**
 * Time of headings.
 */
headings: Cost, 
/**
 * Time with an unknown owner.
 */
unattributed: Cost, };

/**
 * What a culprit is.
 */
export type CulpritKind = "query" | "gc" | "jvm" | "process" | "hypervisor" | "own-limit" | "self" | "nobody";

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
 * How certain the attribution of the tasks' CPU time is.
 */
placed: CostByStanding, 
/**
 * Stage attempts in order.
 */
stages: Array<Stage>, 
/**
 * Finished task attempts, stage by stage.
 */
tasks: Tasks, 
/**
 * Time that its tasks waited, ns; none if waits were not recorded.
 */
waiting_ns: number | null, 
/**
 * Flame graph of operators in the order of the plan: each operator is below the one that takes its rows, in
 * whatever stage; the plan's root is first. Headings are roots.
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
 * Position in the list of queries; none for a page on all queries.
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
 * Its name, as [`QuerySummary::name`].
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
 * Number of failed runs.
 */
failed: number, 
/**
 * Shortest, median and longest run, ms; none if no run ended.
 */
duration_ms: [number, number, number] | null, 
/**
 * CPU time of the median run, ns.
 */
median_cpu_ns: number, 
/**
 * Cost of all runs.
 */
cost: Cost, };

/**
 * A flame graph: frames in pre-order, widest sibling first, with the cost of the stacks that end in each.
 */
export type Flame = { 
/**
 * 0 for roots.
 */
depth: Array<number>, 
/**
 * What `of` refers to, see [`FlameKind`].
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
 * Methods and functions; generated code with lines.
 */
names: Array<string>, 
/**
 * Index into `kinds`: `java`, `generated`, `native`, `kernel` …
 */
kind: Array<number>, 
/**
 * The kinds.
 */
kinds: Array<string>, };

/**
 * A task that still runs, for longer than chance explains. Its final time can only be longer.
 */
export type HangingTask = { 
/**
 * Number of the task in the stage: the partition, if known.
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
 * Its running time so far, ms.
 */
running_ms: number, 
/**
 * Its running time divided by that of a typical ended task.
 */
times_typical: number, };

/**
 * Work that no operator does.
 */
export type Heading = { 
/**
 * Its name.
 */
name: string, 
/**
 * Its cost.
 */
cost: Cost, 
/**
 * Bounds of its share of the query's CPU time.
 */
range: [number, number], 
/**
 * Its waits, longest first.
 */
waits: Array<Wait>, 
/**
 * Stages in which it has samples or waits.
 */
stages: Array<number>, };

/**
 * A line of code where an operator's own CPU time was sampled.
 */
export type HotLine = { 
/**
 * Hash of the generated source; none for other classes.
 */
hash: string | null, 
/**
 * `generated.java:212`, `TimSort.java:355`.
 */
place: string, 
/**
 * Line number; 0 if unknown.
 */
line: number, 
/**
 * For generated code the text of the line, empty if unknown; else the method. At most 120 characters.
 */
text: string, 
/**
 * The method called from the line that has most of its samples, if not the line itself.
 */
callee: string | null, 
/**
 * Cost of the line.
 */
cost: Cost, };

/**
 * A generated source with samples of one query.
 */
export type HotSource = { 
/**
 * Its hash; another block has the text.
 */
hash: string, 
/**
 * Cost of stacks that end in it or in code outside generated code that it called.
 */
cost: Cost, 
/**
 * Lines with samples: number, CPU time in ns, samples.
 */
lines: Array<[number, number, number]>, 
/**
 * Index of the plan node, by region id.
 */
nodes: Array<number>, };

/**
 * A measure of a task's data.
 */
export type Measure = "read-records" | "read-bytes" | "written-records" | "written-bytes";

/**
 * A query in both profiles. Costs are means of its runs.
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
 * Whether the plans differ, and only the descriptions are equal.
 */
replanned: boolean, 
/**
 * Runs in the earlier profile.
 */
before_runs: number, 
/**
 * Runs in this profile.
 */
after_runs: number, 
/**
 * CPU time of a run in the earlier profile, ns.
 */
before_ns: number, 
/**
 * CPU time of a run in this profile, ns.
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
 * Own CPU time of a run in the earlier profile, ns; none if that plan does not have the operator.
 */
before_ns: number | null, 
/**
 * The same in this profile.
 */
after_ns: number | null, 
/**
 * Own CPU time for each row that the operator got or, if it got none, output, ns; none if the number of rows is
 * unknown.
 */
before_ns_per_row: number | null, 
/**
 * The same in this profile.
 */
after_ns_per_row: number | null, };

/**
 * Kinds of time.
 */
export type PartKind = "operators" | "tasks" | "waiting" | "unknown" | "scheduling" | "beside" | "idle";

/**
 * Paths from culprits to the victim, strongest first, as columns with an entry for each path.
 */
export type Paths = { stage: Array<number>, resource: Array<number>, 
/**
 * Kind and host of the wait.
 */
wait: Array<number>, 
/**
 * The culprit's stage, or an operator of it.
 */
part: Array<number>, culprit: Array<number>, seconds: Array<number>, 
/**
 * Number of weaker paths that were left out.
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
 * Lower bound, from [`Node::own_range`].
 */
low: number, 
/**
 * Upper bound.
 */
high: number, };

/**
 * Where the details of each query are, as columns with an entry for each query in the list.
 */
export type Places = { 
/**
 * Number of the bundle.
 */
bundle: Array<number>, 
/**
 * Index in the bundle.
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
 * Whether it passes rows on and does no work of its own.
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
 * Whether adaptive planning removed it after it ran.
 */
replanned: boolean, 
/**
 * Cost of its own work.
 */
own: Cost, 
/**
 * Bounds of its own share of the query's CPU time.
 */
own_range: [number, number], 
/**
 * Its own cost and that of all nodes below it.
 */
total: Cost, 
/**
 * Its own waits, longest first.
 */
waits: Array<Wait>, 
/**
 * Waiting time of itself and all nodes below it, ns.
 */
total_waiting_ns: number, 
/**
 * Stages in which it has samples or waits.
 */
stages: Array<number>, 
/**
 * Rows that it output: by its metric, or as many as it got if the operator does not change the number.
 */
rows: number | null, 
/**
 * Rows that it got, which its inputs output.
 */
rows_in: number | null, 
/**
 * Its own CPU time for each row that it output; none if their number is unknown or 0.
 */
ns_per_row_out: PerRow | null, 
/**
 * Its own CPU time for each row that it got.
 */
ns_per_row_in: PerRow | null, 
/**
 * The lines with most of its own CPU time: at most 3, each with at least 1% of the query's CPU time.
 */
hot_lines: Array<HotLine>, };

/**
 * A query in the list.
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
 * Its name: one line of at most 100 characters, see [`unfuse_postprocess::query_name`].
 */
name: string, 
/**
 * Text or call site, uncut.
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
 * How long it ran, ms; none if it did not end.
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
 * Time in which its tasks ran without using CPU, ns; none without task metrics.
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
 * Whether it has a contention block.
 */
contention: boolean, 
/**
 * Whether it has a block of what would help.
 */
what_if: boolean, 
/**
 * Whether it has slow tasks or slow records.
 */
skew: boolean, };

/**
 * One victim.
 */
export type QueryContention = { victim: Victim, culprits: Array<Blame>, suggestions: Array<Advice>, baselines: Baselines, timeline: Timeline, paths: Paths, 
/**
 * The texts that the columns of `timeline` and `paths` refer to.
 */
names: Array<string>, 
/**
 * Culprits that are queries: the number of their name, and their position in the report's list.
 */
places: Array<[number, number]>, 
/**
 * The number of the victim's own name.
 */
own: number, };

/**
 * How long a query would take with changes.
 */
export type QueryWhatIf = { 
/**
 * The measured time, s.
 */
measured_s: number, 
/**
 * Whether the replay of the unchanged run is close to it.
 */
reliable: boolean, 
/**
 * Numbers of slots, the fewest first.
 */
slots: Array<number>, 
/**
 * The position of the recorded one.
 */
recorded: number, 
/**
 * Changes to be switched on, each a bit of a combination, from the lowest.
 */
switches: Array<WhatIfSwitch>, 
/**
 * The time with each combination, s: for combination 0 with each number of slots, then for combination 1, and so on.
 */
seconds: Array<number>, 
/**
 * The command for the ranges.
 */
command: string, };

/**
 * A line of code.
 */
export type RecordLine = { line: string, share: number, };

/**
 * The place of a record.
 */
export type RecordPlace = { app: string, stage: number, task: number, partition: number, 
/**
 * `file`, `other`, `shuffle` or `cached`.
 */
kind: string, rdd: string, position: number, file: string | null, 
/**
 * Offset of its line in the file, bytes.
 */
offset: number | null, 
/**
 * Row in the part of the file that begins at `file_start` bytes, from 0.
 */
row: number | null, file_start: number, content: string | null, cut: boolean, };

/**
 * The analysis of a run's records.
 */
export type Records = { 
/**
 * Number of records in the program's inputs.
 */
inputs: number, 
/**
 * Number of records in its results.
 */
results: number, 
/**
 * Number of task attempts that were traced and count.
 */
tasks: number, 
/**
 * Records that took longest in one place, the slowest first.
 */
slow_records: Array<SlowRecord>, 
/**
 * Results with the longest path from an input, the slowest first.
 */
slow_results: Array<SlowResult>, };

/**
 * A rule by its name.
 */
export type RuleName = "broadcast" | "decimals" | "regular-expressions" | "text-files" | "small-files" | "interpreted-code" | "not-fused" | "tiny-tasks" | "few-tasks" | "python-rows" | "skewed-join" | "pushdown" | "read-again" | "idle-cpus" | "heap";

/**
 * A sentence of the verdict.
 */
export type Sentence = { 
/**
 * Its topic.
 */
kind: SentenceKind, 
/**
 * Plain text in one line.
 */
text: string, 
/**
 * Where the page shows the details.
 */
evidence: Evidence | null, 
/**
 * The command that shows the details.
 */
command: string | null, };

/**
 * The topic of a sentence.
 */
export type SentenceKind = "time" | "certainty" | "operator" | "unusual" | "next";

/**
 * The whole answer.
 */
export type Skew = { 
/**
 * Stages that had tasks.
 */
stages: number, 
/**
 * Number of skewed stages.
 */
skewed: number, 
/**
 * Number of stages that wait for a task that still runs.
 */
hanging: number, 
/**
 * Number of stages with too few tasks to judge.
 */
too_few: number, 
/**
 * Time that the skewed stages would save, s.
 */
saved_seconds: number, 
/**
 * Stages that are skewed or wait for a task that still runs, with the largest saving first; or the requested
 * stage.
 */
findings: Array<SkewedStage>, 
/**
 * The slow records, if records were traced.
 */
records?: Records, 
/**
 * Notes on missing or doubtful data.
 */
notes: Array<string>, };

/**
 * A stage and what to do about it.
 */
export type SkewedStage = { 
/**
 * What to do next.
 */
next?: string, 
/**
 * The times of all its tasks; only for the page, which draws them.
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
 * Its SQL execution.
 */
sql: number | null, 
/**
 * Description of its job or SQL execution.
 */
description: string, 
/**
 * The verdict.
 */
verdict: TaskVerdict, 
/**
 * Certainty of the verdict, 0 to 1; only for skew.
 */
sure: number, 
/**
 * Number of tasks that count: each once, in the attempt that counted.
 */
counted: number, 
/**
 * Number of task attempts that do not count: failed, killed, superseded.
 */
uncounted: number, 
/**
 * Number of tasks that still run.
 */
running: number, 
/**
 * Running time of the longest of these, ms.
 */
longest_running_ms: number, 
/**
 * Those of them that the stage waits for, the longest first.
 */
hanging: Array<HangingTask>, 
/**
 * The median of the tasks' times, ms.
 */
typical_ms: number, 
/**
 * The longest of the tasks' times, ms.
 */
slowest_ms: number, 
/**
 * The maximum number of tasks that ran at once.
 */
slots: number, 
/**
 * The time of the counted tasks on these slots, ms.
 */
stage_ms: number, 
/**
 * The time saved if slow tasks were as fast as typical ones, ms.
 */
saved_ms: number, 
/**
 * The measure of data.
 */
measure: Measure | null, 
/**
 * The time saved without each cause alone, ms, most first.
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
 * Time of its task's code for this record, s.
 */
seconds: number, 
/**
 * Part of its task's run time, 0 to 1.
 */
share_of_task: number | null, 
/**
 * How much sooner its stage would have ended without the record, on the same slots, s; none if the task does not
 * count.
 */
saves_seconds: number | null, 
/**
 * Code that ran for it, the hottest first.
 */
lines: Array<RecordLine>, };

/**
 * A result and the slowest path to it.
 */
export type SlowResult = { app: string, stage: number, partition: number, position: number, content: string | null, cut: boolean, 
/**
 * End-to-end latency, s.
 */
seconds: number, 
/**
 * Number of inputs that it came from, at most: an input on several paths counts several times.
 */
inputs: number, 
/**
 * The input at which the slowest path begins, with its time there.
 */
expensive_input: RecordPlace, expensive_input_seconds: number, 
/**
 * The slowest step of the path.
 */
slowest_step: RecordPlace, slowest_step_seconds: number, };

/**
 * A task that is slow beyond chance.
 */
export type SlowTask = { 
/**
 * Number of the task in the stage: the partition, if known.
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
 * Its duration, ms.
 */
duration_ms: number, 
/**
 * Its time beyond a typical task's of the stage, ms.
 */
slower_ms: number, 
/**
 * CPU time of its thread beyond a typical task's, ms; without Python workers.
 */
slower_cpu_ms: number, 
/**
 * Its amount in the stage's measure of data, and that of a typical task.
 */
amount: [number, number] | null, 
/**
 * Bytes that it spilled to disk.
 */
spilled_bytes: number, 
/**
 * Certainty of the first part, 0 to 1.
 */
sure: number, 
/**
 * Causes, most first. Their sum can exceed `slower_ms` if other effects made it faster.
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
 * Ranges of lines with the same innermost region: first line, last line, region id, whether it produces.
 */
regions: Array<[number, number, number, boolean]>, };

/**
 * A flame graph as the stacks that end in it, in its order, as columns.
 */
export type Stacks = { 
/**
 * The innermost frame of each stack, an index into the bundle's frames.
 */
leaf: Array<number>, 
/**
 * CPU time, in `unit_ns`.
 */
cpu: Array<number>, 
/**
 * The unit, ns.
 */
unit_ns: number, 
/**
 * Number of samples.
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
 * Number of its tasks.
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
 * Samples in its tasks.
 */
cost: Cost, 
/**
 * Sums over its finished tasks; none without task metrics.
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
 * Finished task attempts that did not succeed.
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
 * Part of `waiting_ns`: blocked on shuffle fetches, ns.
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
 * A suggestion.
 */
export type Suggestion = { 
/**
 * The rule.
 */
rule: RuleName, 
/**
 * Id of the application.
 */
app: string, 
/**
 * The SQL execution: the median of the runs of the query.
 */
query: number, 
/**
 * What to call the query.
 */
name: string, 
/**
 * Number of its runs.
 */
runs: number, 
/**
 * What to change.
 */
title: string, 
/**
 * The evidence.
 */
why: string, 
/**
 * The setting, hint or rewrite.
 */
action: string, 
/**
 * What can go wrong.
 */
risk: string, 
/**
 * The command that shows the evidence.
 */
command: string, 
/**
 * The time of the tasks that it is about, as a share of all their time, 0 to 1.
 */
share: number, 
/**
 * The measured time of this run, s.
 */
measured_s: number, 
/**
 * The time after the changes.
 */
then_s: number, 
/**
 * Lower end of its 95% interval.
 */
then_low_s: number, 
/**
 * Upper end.
 */
then_high_s: number, 
/**
 * The replay of the unchanged run less that; below 0 if the run gets longer.
 */
saves_s: number, 
/**
 * Lower end of its 95% interval.
 */
saves_low_s: number, 
/**
 * Upper end.
 */
saves_high_s: number, };

/**
 * What to change, as `unfuse advise` suggests it.
 */
export type Suggestions = { 
/**
 * The change that saves most first.
 */
all: Array<Suggestion>, 
/**
 * What the answer does not know.
 */
notes: Array<string>, };

/**
 * The first block of the page: everything except details.
 */
export type Summary = { 
/**
 * The version of unfuse that made the report.
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
 * Where the time went, what is unusual, and what to do next.
 */
verdict: Verdict, 
/**
 * What to change, the change that saves most first; none if only a part of the time was asked for.
 */
advice: Suggestions | null, 
/**
 * Notes on missing data.
 */
notes: Array<string>, 
/**
 * Whether there is a comparison.
 */
compared: boolean, 
/**
 * Whether contention was analysed.
 */
contention: boolean, 
/**
 * Whether skew was analysed.
 */
skew: boolean, };

/**
 * Times of a stage's tasks, in the order of their numbers: an entry for each column, which is the slowest of its
 * tasks.
 */
export type TaskTimes = { 
/**
 * Number of tasks in a column; the last column may have fewer.
 */
of: number, 
/**
 * The task's number.
 */
index: Array<number>, 
/**
 * Its duration, ms.
 */
ms: Array<number>, 
/**
 * Its time beyond a typical task's, ms; 0 for tasks that are not slow.
 */
slower_ms: Array<number>, };

/**
 * The verdict on a stage's tasks.
 */
export type TaskVerdict = "even" | { "skewed": Cause } | "too-few";

/**
 * Task attempts as columns, because there are many.
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
 * Blocked seconds over time, as columns with an entry for each culprit and resource of each slice.
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
 * A query in only one of the profiles.
 */
export type UnmatchedQuery = { 
/**
 * Text or call site.
 */
description: string, 
/**
 * Its fingerprint.
 */
fingerprint: string, 
/**
 * Number of runs.
 */
runs: number, 
/**
 * CPU time of a run, ns.
 */
cpu_ns: number, };

/**
 * Where the time went, in numbers and sentences.
 */
export type Verdict = { 
/**
 * What the parts add up to, in words: `time of 2 slots and CPU time of other threads`.
 */
whole: string, 
/**
 * The sum of the parts, ns.
 */
whole_ns: number, 
/**
 * Running time of the applications, ms.
 */
duration_ms: number, 
/**
 * Average number of task slots; none if unknown.
 */
slots: number | null, 
/**
 * The parts of the time, in the order of their kinds. They add up to the whole.
 */
parts: Array<VerdictPart>, 
/**
 * Sentences, most important first.
 */
sentences: Array<Sentence>, };

/**
 * A part of the time.
 */
export type VerdictPart = { 
/**
 * Its name: `operators`, `disk read`, `JIT compilation` …
 */
name: string, 
/**
 * Its kind.
 */
kind: PartKind, 
/**
 * The time, ns.
 */
ns: number, };

/**
 * A query that was slowed down.
 */
export type Victim = { 
/**
 * Its number; invented if its name in a CSV file is not a number.
 */
query: number, 
/**
 * The value for `--victim`.
 */
name: string, label: string, 
/**
 * From its first stage to its last, s.
 */
ran_seconds: number, 
/**
 * The stages that count; `7.1` is the second attempt of stage 7.
 */
stages: Array<string>, 
/**
 * Number of their tasks.
 */
tasks: number, 
/**
 * Time of these tasks, s.
 */
task_seconds: number, 
/**
 * Time in which these tasks were blocked or waited for a slot, s.
 */
blocked_seconds: number, 
/**
 * Blocked time caused by other queries and processes outside Spark, s. The following six add up to
 * `blocked_seconds` with it.
 */
by_others_seconds: number, 
/**
 * Blocked time caused by its own other tasks, s.
 */
by_itself_seconds: number, 
/**
 * Blocked time caused by garbage collection, s.
 */
by_gc_seconds: number, 
/**
 * Blocked time caused by other work of the JVMs outside tasks, s.
 */
by_jvm_seconds: number, 
/**
 * Blocked time caused by the CPU limit of the JVM's own control group, s.
 */
by_own_limit_seconds: number, 
/**
 * Blocked time caused by the hypervisor, s.
 */
by_hypervisor_seconds: number, 
/**
 * Blocked time with an unknown cause, s.
 */
by_unknown_seconds: number, 
/**
 * Run-queue waits among the blocked time, s.
 */
queued_seconds: number, 
/**
 * The part of them whose causes the kernel recorded, s; the others are shared out by use.
 */
counted_seconds: number, 
/**
 * The culprit with the largest part, other than the query itself.
 */
main_culprit: string | null, };

/**
 * A sum of waits with one reason.
 */
export type Wait = { 
/**
 * The reason.
 */
what: string, 
/**
 * The time, ns.
 */
ns: number, };

/**
 * Where the wall time of a query went.
 */
export type WallTime = { 
/**
 * Wall time, s.
 */
wall_s: number, 
/**
 * Largest first. They add up to the wall time.
 */
parts: Array<WallTimePart>, 
/**
 * What made it differ from other runs; null if there are none to compare with.
 */
change: WallTimeChange | null, };

/**
 * What made the wall time of a query differ from that of other runs.
 */
export type WallTimeChange = { 
/**
 * The earlier profile; null for the median run of the same profile.
 */
profile: string | null, 
/**
 * SQL execution ids of the other runs.
 */
queries: Array<number>, 
/**
 * Mean wall time of the other runs, s.
 */
wall_s: number, 
/**
 * Largest first. They add up to the difference.
 */
parts: Array<WallTimePart>, };

/**
 * What the parts of an answer are about.
 */
export type WallTimeKind = "data" | "another_plan" | "codegen" | "slots" | "memory" | "operator" | "python" | "task" | "contention" | "gc" | "waiting" | "spill" | "skew" | "few_tasks" | "scheduling" | "failed_tasks" | "driver" | "unknown" | "remainder";

/**
 * A part of the wall time, or of the difference.
 */
export type WallTimePart = { 
/**
 * What it is about.
 */
kind: WallTimeKind, 
/**
 * What took the time.
 */
what: string, 
/**
 * s; below 0 where it takes less than before.
 */
seconds: number, 
/**
 * Lower end of the 95% interval, by samples and, where there are several runs, by these.
 */
seconds_low: number, 
/**
 * Its upper end.
 */
seconds_high: number, 
/**
 * What it took before, s; null without a comparison, and for parts that have no time of their own.
 */
before_s: number | null, 
/**
 * What it takes now.
 */
after_s: number | null, 
/**
 * The command that shows more.
 */
command: string | null, };

/**
 * A change that can be switched on.
 */
export type WhatIfSwitch = { 
/**
 * As `unfuse what-if` takes it.
 */
change: string, 
/**
 * What it means.
 */
what: string, };

export const STAGE = 0;

export const HEADING = 1;

export const OPERATOR = 2;
