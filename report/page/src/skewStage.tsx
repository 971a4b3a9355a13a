// One stage that waits for slow tasks: the time of each task, the causes of slow tasks, and advice.

import { CAUSES, MEASURES, sure, whySlow } from "./causes";
import { bytes, change, count, plural, seconds, timeMs } from "./format";
import type { CausePart, Records, SkewedStage, SlowTask, TaskTimes } from "./generated/model";
import { Bar, Marked, arrows, arrowsAcross } from "./parts";
import { Content } from "./records";
import { type Route, changed, go, link } from "./route";

/** Most slow tasks that are listed one by one. */
const SHOWN = 20;
/** Greatest width of a task's column in the chart, px. */
const WIDEST = 48;
/** Causes that account for a smaller part are left out. */
const LEAST = 0.01;

export function StageSkew(props: { of: SkewedStage; records: Records | undefined; route: Route; dir: string }) {
  const { of: stage, route } = props;
  const several = worth(stage.parts, stage.saved_ms).length > 1;
  return (
    <section aria-label={`Stage ${stage.stage}`}>
      <h2>
        Stage {stage.stage}: {whySlow(stage.verdict).name}
      </h2>
      <p class="legend">
        {plural(stage.counted, "task")} on {plural(stage.slots, "slot")} took {timeMs(stage.stage_ms)}; a typical one{" "}
        {timeMs(stage.typical_ms)}, the slowest {timeMs(stage.slowest_ms)}
        {stage.uncounted > 0 && <>; {count(stage.uncounted)} more attempts failed, were killed or done again</>}.
        {stage.running > 0 && (
          <>
            {" "}
            {plural(stage.running, "task")} ran still, the longest for {timeMs(stage.longest_running_ms)}.
          </>
        )}
        {several && <> Sooner without each cause alone: {inWords(stage.parts, stage.saved_ms)}.</>}{" "}
        <a href={link(["query", route.path[1] ?? "", "stages"], { stage: stage.stage })}>All its tasks</a>
      </p>
      {stage.times && <Chart of={stage.times} typical={stage.typical_ms} route={route} />}
      {stage.next && (
        <p>
          <b>Next:</b> <Marked>{stage.next}</Marked>.
        </p>
      )}
      <SlowTasks {...props} />
    </section>
  );
}

const worth = (parts: CausePart[], of: number): CausePart[] => parts.filter((part) => part.ms >= LEAST * of);

function inWords(parts: CausePart[], of: number): string {
  return worth(parts, of)
    .map((part) => `${CAUSES[part.cause].name} ${timeMs(part.ms)}`)
    .join(", ");
}

function Chart({ of: times, typical, route }: { of: TaskTimes; typical: number; route: Route }) {
  const most = Math.max(...times.ms, 1);
  const chosen = times.index.findIndex((index) => String(index) === route.options.get("task"));
  const height = (ms: number) => ({ height: `${(100 * ms) / most}%` });
  const title = (at: number) => {
    const [index, ms, slower] = [times.index[at]!, times.ms[at]!, times.slower_ms[at]!];
    const which = times.of > 1 ? `Task ${index}, the slowest of ${times.of} beside each other,` : `Task ${index}`;
    return `${which} took ${timeMs(ms)}${slower > 0 ? `: ${timeMs(slower)} more than a typical one` : ""}`;
  };
  return (
    <figure class="time small" aria-label="What each task took">
      <figcaption class="tools">
        <b>What each task took</b>
        <span class="legend">
          <span>
            <span class="key before" /> time
          </span>
          <span>
            <span class="key c0" /> of slow tasks, what is beyond a typical one
          </span>
          <span>
            <span class="key typical" /> typical, {timeMs(typical)}
          </span>
          {times.of > 1 && <span>each column is the slowest of {times.of} tasks</span>}
        </span>
      </figcaption>
      <div class="chart" style={{ maxWidth: `${WIDEST * times.ms.length}px` }}>
        <span class="axis top">{timeMs(most)}</span>
        <span class="axis zero">0</span>
        <div class="columns" onKeyDown={arrowsAcross}>
          {times.ms.map((ms, at) => (
            <button
              type="button"
              key={at}
              data-column
              class="column"
              title={title(at)}
              aria-label={title(at)}
              aria-pressed={at === chosen}
              tabIndex={at === Math.max(0, chosen) ? 0 : -1}
              onClick={() => go(changed(route, { task: at === chosen ? null : times.index[at]! }))}
            >
              <span class="c-other" style={height(Math.max(0, ms - times.slower_ms[at]!))} />
              <span class="c0" style={height(Math.min(ms, times.slower_ms[at]!))} />
            </button>
          ))}
          <span class="typical" style={{ bottom: `${(100 * typical) / most}%` }} />
        </div>
        <div class="ticks">
          <span>task {times.index[0]}</span>
          <span>task {times.index[times.index.length - 1]}</span>
        </div>
      </div>
      {chosen >= 0 && <p class="slice">{title(chosen)}.</p>}
    </figure>
  );
}

function SlowTasks({
  of: stage,
  records,
  route,
  dir,
}: {
  of: SkewedStage;
  records: Records | undefined;
  route: Route;
  dir: string;
}) {
  const measure = stage.measure && MEASURES[stage.measure];
  const shown = stage.tasks.slice(0, SHOWN);
  const most = Math.max(...shown.map((task) => task.duration_ms), 1);
  return (
    <>
      <table class="blame" aria-label="Slow tasks" onKeyDown={arrows}>
        <thead>
          <tr>
            <th class="number">Slow task</th>
            <th>Because of</th>
            <th class="bars wide">
              <span class="sr">Bar of what it took longer</span>
            </th>
            <th class="number" title="What it took beyond a typical task of the stage">
              Slower by
            </th>
            <th class="number wide">Took</th>
            <th class="number" title="Probability that it is not chance, and for this reason">
              Sure
            </th>
            {measure && (
              <th class="number wide" title="What it has of what the stage's data is measured by, and a typical task">
                {measure.name}
              </th>
            )}
            <th
              class="number wide"
              title="CPU time of its thread beyond a typical task's; Python workers are not in it"
            >
              More CPU
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((task) => {
            const asked = String(task.index) === route.options.get("task");
            return (
              <tr key={task.task} aria-selected={asked}>
                <td class="number">
                  <a data-row class="strong" href={changed(route, { task: asked ? null : task.index })}>
                    {task.index}
                  </a>
                </td>
                <td class="text">
                  <span class="name" title={inWords(task.parts, task.slower_ms)}>
                    {inWords(task.parts, task.slower_ms)}
                  </span>
                  <span class="how">
                    executor {task.executor} on {task.host}
                    {task.spilled_bytes > 0 && `, spilled ${bytes(task.spilled_bytes)}`}
                  </span>
                  <ItsRecord of={task} records={records} stage={stage.stage} />
                </td>
                <td class="bars wide">
                  <Bar part={task.slower_ms} whole={task.duration_ms} of={most} kind="slow" />
                </td>
                <td class="number strong">{timeMs(task.slower_ms)}</td>
                <td class="number wide">{timeMs(task.duration_ms)}</td>
                <td class="number">{sure(task.sure)}</td>
                {measure && (
                  <td class="number wide">
                    {task.amount && (
                      <>
                        {measure.as(task.amount[0])} <span class="muted">typical {measure.as(task.amount[1])}</span>
                      </>
                    )}
                  </td>
                )}
                <td class="number wide">{change(1e6 * task.slower_cpu_ms)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {stage.tasks.length > SHOWN && (
        <p class="hint">
          {count(stage.tasks.length - SHOWN)} more are not shown:{" "}
          <code>
            unfuse skew {dir} --stage {stage.stage} --limit {stage.tasks.length}
          </code>{" "}
          has them.
        </p>
      )}
    </>
  );
}

/** The record that took most of a task's time, if it is one of the slow ones. */
function ItsRecord({ of: task, records, stage }: { of: SlowTask; records: Records | undefined; stage: number }) {
  const record = records?.slow_records.find(({ at }) => at.task === task.task && at.stage === stage);
  if (!record) return null;
  return (
    <span class="how">
      {seconds(record.seconds)} for <Content of={record.at} />
    </span>
  );
}
