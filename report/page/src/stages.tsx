// Stage attempts with CPU and waiting, and their tasks.

import { useMemo } from "preact/hooks";
import { bytes, clock, count, moment, plural, time, timeMs } from "./format";
import type { Stage, Tasks } from "./generated/model";
import { Empty, Pages, SortHead, Zero, arrows, onEnter } from "./parts";
import type { TabProps } from "./query";
import { type Route, changed, go } from "./route";

export const stageName = (stage: Stage): string => `${stage.stage}${stage.attempt > 0 ? `.${stage.attempt}` : ""}`;

export function StagesTab({ detail, route }: TabProps) {
  const { stages, tasks } = detail;
  if (stages.length === 0) return <Empty>It ran no stage.</Empty>;
  const chosen = stages.findIndex((stage) => stageName(stage) === route.options.get("stage"));
  const choose = (at: number) =>
    go(changed(route, { stage: at === chosen ? null : stageName(stages[at]!), page: null }));
  const most = Math.max(1, ...stages.map((stage) => stage.metrics?.run_ns ?? 0));
  return (
    <>
      <p class="legend">
        <span class="key part" /> CPU <span class="key fetch" /> waiting for shuffle blocks <span class="key waiting" />{" "}
        other waiting
        <span class="gap" />
        Sums over its tasks: run time without CPU time is waiting (blocks, files, locks, GC, Python, other processes on
        the cores).
      </p>
      <div class="scroll">
        <table class="stages" onKeyDown={arrows}>
          <thead>
            <tr>
              <th class="number">Stage</th>
              <th>State</th>
              <th class="number" title="Finished tasks, of those planned">
                Tasks
              </th>
              <th class="number" title="From submission to completion">
                Duration
              </th>
              <th class="bars">Run time</th>
              <th class="number" title="CPU time of its tasks, from samples">
                CPU
              </th>
              <th class="number" title="Run time of its tasks without CPU time">
                Waiting
              </th>
              <th class="number" title="Blocked on shuffle fetches, part of the waiting">
                Fetch
              </th>
              <th class="number" title="GC pauses of the JVM while its tasks ran, counted for each task">
                GC
              </th>
              <th class="number" title="Shortest, median and longest task">
                Task min · median · max
              </th>
              <th class="number">Input</th>
              <th class="number">Shuffle read</th>
              <th class="number">Shuffle write</th>
              <th class="number">Spilled</th>
            </tr>
          </thead>
          <tbody>
            {stages.map((stage, at) => (
              <StageRow
                key={stageName(stage)}
                stage={stage}
                most={most}
                chosen={at === chosen}
                choose={() => choose(at)}
                first={at === 0}
              />
            ))}
          </tbody>
        </table>
      </div>
      <TaskTable tasks={tasks} stages={stages} only={chosen} route={route} />
    </>
  );
}

function StageRow(props: { stage: Stage; most: number; chosen: boolean; first: boolean; choose: () => void }) {
  const { stage } = props;
  const m = stage.metrics;
  const duration =
    stage.completed_ms !== null && stage.submitted_ms !== null ? stage.completed_ms - stage.submitted_ms : null;
  const state = stage.failure ? "failed" : stage.completed_ms === null ? "unfinished" : "done";
  return (
    <>
      <tr
        data-row
        tabIndex={props.first || props.chosen ? 0 : -1}
        aria-selected={props.chosen}
        onClick={props.choose}
        onKeyDown={onEnter(props.choose)}
        title={`${stage.name}${stage.submitted_ms ? `, submitted ${moment(stage.submitted_ms)}` : ""}. Enter shows its tasks only.`}
      >
        <td class="number strong">{stageName(stage)}</td>
        <td>
          {state === "done" ? (
            <span class="muted">done</span>
          ) : (
            <span class={`badge ${state === "failed" ? "bad" : ""}`}>{state}</span>
          )}
        </td>
        <td class="number">
          {m ? count(m.finished) : 0}
          <span class="muted"> / {count(stage.tasks)}</span>
          {m && m.failed > 0 && <span class="badge bad">{count(m.failed)} failed</span>}
        </td>
        <td class="number">{duration === null ? "" : timeMs(duration)}</td>
        <td class="bars">{m && <RunBar stage={stage} most={props.most} />}</td>
        <td class={`number ${stage.cost.cpu_ns ? "strong" : "faint"}`} title={plural(stage.cost.samples, "sample")}>
          {time(stage.cost.cpu_ns)}
        </td>
        <td class="number">{m ? time(m.waiting_ns) : ""}</td>
        <td class="number">{m ? <Zero n={m.fetch_wait_ns} as={time} /> : ""}</td>
        <td class="number">{m ? <Zero n={m.gc_ns} as={time} /> : ""}</td>
        <td class="number">{m ? m.task_ms.map(timeMs).join(" · ") : ""}</td>
        <td class="number">{m ? <Zero n={m.input_bytes} as={bytes} /> : ""}</td>
        <td class="number">{m ? <Zero n={m.shuffle_read_bytes} as={bytes} /> : ""}</td>
        <td class="number">{m ? <Zero n={m.shuffle_write_bytes} as={bytes} /> : ""}</td>
        <td class="number">{m ? <Zero n={m.spilled_bytes} as={bytes} /> : ""}</td>
      </tr>
      {stage.failure && (
        <tr class="more">
          <td colSpan={14}>
            <pre class="error">{stage.failure}</pre>
          </td>
        </tr>
      )}
    </>
  );
}

function RunBar({ stage, most }: { stage: Stage; most: number }) {
  const m = stage.metrics!;
  const fetch = Math.min(m.fetch_wait_ns, m.waiting_ns);
  const width = (n: number) => ({ width: `${(100 * n) / most}%` });
  const title = `run ${time(m.run_ns)}: CPU ${time(m.cpu_ns)}, waiting ${time(m.waiting_ns)}, of this for shuffle blocks ${time(m.fetch_wait_ns)} (Spark's task metrics)`;
  return (
    <span class="bar row" title={title}>
      <span class="part" style={width(Math.min(m.cpu_ns, m.run_ns))} />
      <span class="fetch" style={width(fetch)} />
      <span class="waiting" style={width(m.waiting_ns - fetch)} />
    </span>
  );
}

const PAGE = 50;
const ORDERS: Record<string, (tasks: Tasks) => number[]> = {
  duration: (tasks) => tasks.duration_ms,
  cpu: (tasks) => tasks.cpu_ms,
  waiting: (tasks) => tasks.waiting_ms,
  gc: (tasks) => tasks.gc_ms,
  read: (tasks) => tasks.read_bytes,
  written: (tasks) => tasks.written_bytes,
};

function TaskTable({ tasks, stages, only, route }: { tasks: Tasks; stages: Stage[]; only: number; route: Route }) {
  const wanted = route.options.get("tasks") ?? "duration";
  const sort = wanted in ORDERS ? wanted : "duration";
  const order = useMemo(() => {
    const key = ORDERS[sort]!(tasks);
    return [...tasks.index.keys()]
      .filter((at) => only < 0 || tasks.stage[at] === only)
      .sort((a, b) => key[b]! - key[a]!);
  }, [tasks, sort, only]);
  if (tasks.index.length === 0) return <Empty>No finished task was recorded.</Empty>;
  const page = Math.min(
    Math.max(0, Math.ceil(order.length / PAGE) - 1),
    Math.max(0, Number(route.options.get("page") ?? 1) - 1 || 0),
  );
  const by = (name: string) => go(changed(route, { tasks: name === "duration" ? null : name, page: null }));
  const longest = Math.max(
    1,
    ...order.slice(0, 1).map(() => order.reduce((most, at) => Math.max(most, tasks.duration_ms[at]!), 1)),
  );
  return (
    <>
      <h2>
        {only < 0
          ? `${plural(order.length, "task")} of all stages`
          : `${plural(order.length, "task")} of stage ${stageName(stages[only]!)}`}
        {only >= 0 && (
          <a class="clear" href={changed(route, { stage: null, page: null })}>
            all stages
          </a>
        )}
      </h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Tasks">
        <table class="tasks">
          <thead>
            <tr>
              <th class="number">Stage</th>
              <th class="number">Task</th>
              <th>Executor</th>
              <th class="number">Launched</th>
              <th class="bars">
                <span class="sr">Duration bar</span>
              </th>
              <SortHead by="duration" now={sort} go={by}>
                Duration
              </SortHead>
              <SortHead by="cpu" now={sort} go={by} title="CPU time of the task's thread, Spark's metric">
                CPU
              </SortHead>
              <SortHead by="waiting" now={sort} go={by}>
                Waiting
              </SortHead>
              <SortHead by="gc" now={sort} go={by}>
                GC
              </SortHead>
              <SortHead by="read" now={sort} go={by} title="From input and shuffle">
                Read
              </SortHead>
              <SortHead by="written" now={sort} go={by} title="To output and shuffle">
                Written
              </SortHead>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {order.slice(page * PAGE, (page + 1) * PAGE).map((at) => {
              const status = tasks.statuses[tasks.status[at]!] ?? "";
              return (
                <tr key={at}>
                  <td class="number">{stageName(stages[tasks.stage[at]!]!)}</td>
                  <td class="number">
                    {tasks.index[at]}
                    {tasks.attempt[at]! > 0 ? `.${tasks.attempt[at]}` : ""}
                  </td>
                  <td class="muted">{tasks.executors[tasks.executor[at]!]}</td>
                  <td class="number muted" title={moment(tasks.launched_ms[at]!)}>
                    {clock(tasks.launched_ms[at]!)}
                  </td>
                  <td class="bars">
                    <span class="bar row">
                      <span
                        class="part"
                        style={{ width: `${(100 * Math.min(tasks.cpu_ms[at]!, tasks.duration_ms[at]!)) / longest}%` }}
                      />
                      <span
                        class="waiting"
                        style={{
                          width: `${(100 * Math.max(0, tasks.duration_ms[at]! - tasks.cpu_ms[at]!)) / longest}%`,
                        }}
                      />
                    </span>
                  </td>
                  <td class="number strong">{timeMs(tasks.duration_ms[at]!)}</td>
                  <td class="number">{timeMs(tasks.cpu_ms[at]!)}</td>
                  <td class="number">
                    <Zero n={tasks.waiting_ms[at]!} as={timeMs} />
                  </td>
                  <td class="number">
                    <Zero n={tasks.gc_ms[at]!} as={timeMs} />
                  </td>
                  <td class="number">
                    <Zero n={tasks.read_bytes[at]!} as={bytes} />
                  </td>
                  <td class="number">
                    <Zero n={tasks.written_bytes[at]!} as={bytes} />
                  </td>
                  <td>
                    {status === "SUCCESS" ? (
                      <span class="muted">done</span>
                    ) : (
                      <span class={`badge ${/FAIL/i.test(status) ? "bad" : ""}`}>{status.toLowerCase()}</span>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <Pages
        page={page}
        size={PAGE}
        of={order.length}
        what="tasks"
        go={(to) => go(changed(route, { page: to === 0 ? null : to + 1 }))}
      />
    </>
  );
}
