// What the report holds; mirrors postprocess/src/report/model.rs. Times are whole ns or ms.

export interface Cost {
  cpu_ns: number;
  samples: number;
}

export interface Summary {
  unfuse: string;
  profile: string;
  total: Cost;
  applications: Application[];
  queries: Query[];
  notes: string[];
  compared: boolean;
  contention: boolean;
  skew: boolean;
}

export interface Application {
  id: string;
  name: string;
  spark: string;
  processes: number;
  rate_hz: number;
  started_ms: number;
  ended_ms: number;
}

export interface Query {
  app: number;
  query: number | null;
  description: string;
  started_ms: number | null;
  duration_ms: number | null;
  error: string | null;
  cost: Cost;
  waiting_ns: number | null;
  stages: number;
  tasks: number;
  fingerprint: string;
  contention: boolean;
  skew: boolean;
}

export interface Detail {
  nodes: PlanNode[];
  headings: Heading[];
  placed: Placed;
  stages: Stage[];
  tasks: Tasks;
  waiting_ns: number | null;
  operators: Flame;
  frames: Flame;
  sources: HotSource[];
}

export interface PlanNode {
  id: number;
  parent: number | null;
  operator: string;
  detail: string;
  codegen_stage: number | null;
  replanned: boolean;
  own: Cost;
  own_range: Range;
  total: Cost;
  waits: Wait[];
  total_waiting_ns: number;
  stages: number[];
  rows: number | null;
}

/** Bounds of a share, 0 to 1. */
export type Range = [number, number];

export interface Heading {
  name: string;
  cost: Cost;
  range: Range;
  waits: Wait[];
  stages: number[];
}

/** CPU time of tasks, by what is known of whose it is. */
export interface Placed {
  proved: Cost;
  guessed: Cost;
  headings: Cost;
  unattributed: Cost;
}

/** Longest first. */
export interface Wait {
  what: string;
  ns: number;
}

export interface Stage {
  stage: number;
  attempt: number;
  name: string;
  tasks: number;
  submitted_ms: number | null;
  completed_ms: number | null;
  failure: string | null;
  cost: Cost;
  metrics: StageMetrics | null;
}

export interface StageMetrics {
  finished: number;
  failed: number;
  task_ms: [number, number, number];
  run_ns: number;
  cpu_ns: number;
  waiting_ns: number;
  fetch_wait_ns: number;
  gc_ns: number;
  input_bytes: number;
  shuffle_read_bytes: number;
  shuffle_write_bytes: number;
  spilled_bytes: number;
}

/** A column each, a position a task. */
export interface Tasks {
  stage: number[];
  index: number[];
  attempt: number[];
  executor: number[];
  launched_ms: number[];
  duration_ms: number[];
  cpu_ms: number[];
  waiting_ms: number[];
  gc_ms: number[];
  read_bytes: number[];
  written_bytes: number[];
  spilled_bytes: number[];
  status: number[];
  executors: string[];
  statuses: string[];
}

/** Frames in pre-order, widest sibling first, with what ends in each. */
export interface Flame {
  depth: number[];
  kind: number[];
  of: number[];
  cpu_ns: number[];
  samples: number[];
}

export const STAGE = 0;
export const HEADING = 1;
export const OPERATOR = 2;

export interface FrameNames {
  names: string[];
  kind: number[];
  kinds: string[];
}

export interface HotSource {
  hash: string;
  cost: Cost;
  /** Number, ns, samples. */
  lines: [number, number, number][];
  nodes: number[];
}

/** Regions: first line, last line, region id, whether it produces. */
export interface Source {
  class: string;
  text: string;
  regions: [number, number, number, boolean][];
}

export interface Comparison {
  before: string;
  before_total: Cost;
  pairs: Pair[];
  only_before: Unmatched[];
  only_after: Unmatched[];
}

export interface Pair {
  description: string;
  fingerprint: string;
  replanned: boolean;
  before_runs: number;
  after_runs: number;
  before_ns: number;
  after_ns: number;
  rows: PairRow[];
}

export interface PairRow {
  name: string;
  detail: string;
  heading: boolean;
  depth: number;
  before_ns: number | null;
  after_ns: number | null;
}

export interface Unmatched {
  description: string;
  fingerprint: string;
  runs: number;
  cpu_ns: number;
}

// Who slowed whom down; mirrors cli/src/commands/blame/page.rs and answer.rs. Seconds.

export interface Contention {
  victims: Victim[];
  culprits: Blame[];
  resources: Blame[];
  hosts: Blame[];
  suggestions: Advice[];
  /** Positions in the list by query number. */
  places: Record<string, number>;
  notes: string[];
}

export interface Advice {
  action: string;
  text: string;
  responsibility: number;
  seconds: number;
}

export interface Victim {
  query: number;
  /** What `unfuse blame --victim` takes. */
  name: string;
  label: string;
  ran_seconds: number;
  /** `7.1` is the second attempt of stage 7. */
  stages: string[];
  tasks: number;
  task_seconds: number;
  blocked_seconds: number;
  /** Of other queries and processes outside Spark. This and the next four add up to the blocked time. */
  by_others_seconds: number;
  by_itself_seconds: number;
  by_gc_seconds: number;
  by_jvm_seconds: number;
  by_unknown_seconds: number;
  main_culprit: string | null;
}

export interface Blame {
  name: string;
  /** The part of the victims' blocked time, 0 to 1 for each. */
  responsibility: number;
  seconds: number;
  how: string[];
  operators?: [string, number][];
}

export interface QueryContention {
  victim: Victim;
  culprits: Blame[];
  suggestions: Advice[];
  baselines: { naive_overlap: [string, number][]; deep_overlap: [string, number][]; blocked_io_network: number };
  timeline: Timeline;
  paths: Paths;
  names: string[];
  /** Names of culprits that are queries, and their positions in the list. */
  places: [number, number][];
  own: number;
}

/** A column each, a position for each culprit and resource of each slice; all but seconds and bounds are names. */
export interface Timeline {
  bounds: number[];
  slice: number[];
  resource: number[];
  culprit: number[];
  seconds: number[];
}

/** A column each, strongest path first. */
export interface Paths {
  stage: number[];
  resource: number[];
  wait: number[];
  part: number[];
  culprit: number[];
  seconds: number[];
  weak: number;
}

// Which tasks and records are slow; mirrors cli/src/commands/skew/answer.rs, page.rs and records.rs, and what analysis/skew finds.

export interface Skew {
  stages: number;
  skewed: number;
  /** Of an application that runs, which profiles do not tell: stages that wait for a task that runs still. */
  hanging: number;
  too_few: number;
  saved_seconds: number;
  findings: SkewedStage[];
  records?: Records;
  notes: string[];
}

export type Cause =
  | "data"
  | "computation"
  | "data-or-computation"
  | "garbage-collection"
  | "fetch-wait"
  | "shuffle-write"
  | "spill"
  | "warm-up"
  | "host"
  | "executor"
  | "locality"
  | "start";

export type Measure = "read-records" | "read-bytes" | "written-records" | "written-bytes";

export interface CausePart {
  cause: Cause;
  ms: number;
}

export interface SkewedStage {
  app: string;
  stage: number;
  name: string;
  sql: number | null;
  description: string;
  verdict: { skewed: Cause };
  sure: number;
  counted: number;
  uncounted: number;
  running: number;
  longest_running_ms: number;
  hanging: { index: number; executor: string; host: string; running_ms: number; times_typical: number }[];
  typical_ms: number;
  slowest_ms: number;
  slots: number;
  stage_ms: number;
  saved_ms: number;
  measure: Measure | null;
  parts: CausePart[];
  /** Slowest first; none in the list of all. */
  tasks: SlowTask[];
  next?: string;
  times?: TaskTimes;
}

export interface SlowTask {
  index: number;
  task: number;
  executor: string;
  host: string;
  duration_ms: number;
  slower_ms: number;
  slower_cpu_ms: number;
  /** It has, and a typical one. */
  amount: [number, number] | null;
  spilled_bytes: number;
  sure: number;
  parts: CausePart[];
}

/** A column each, a position for each group of `of` tasks: the slowest of them. */
export interface TaskTimes {
  of: number;
  index: number[];
  ms: number[];
  slower_ms: number[];
}

export interface Records {
  inputs: number;
  results: number;
  tasks: number;
  slow_records: SlowRecord[];
  slow_results: SlowResult[];
}

export interface SlowRecord {
  at: RecordPlace;
  seconds: number;
  share_of_task: number | null;
  saves_seconds: number | null;
  lines: { line: string; share: number }[];
}

export interface SlowResult {
  app: string;
  stage: number;
  partition: number;
  position: number;
  content: string | null;
  cut: boolean;
  seconds: number;
  inputs: number;
  expensive_input: RecordPlace;
  expensive_input_seconds: number;
  slowest_step: RecordPlace;
  slowest_step_seconds: number;
}

export interface RecordPlace {
  app: string;
  stage: number;
  task: number;
  partition: number;
  kind: string;
  rdd: string;
  position: number;
  file: string | null;
  offset: number | null;
  row: number | null;
  file_start: number;
  content: string | null;
  cut: boolean;
}
