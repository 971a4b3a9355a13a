// Slow records and results of a run that followed records: their content, place and cost.

import { count, plural, seconds, share } from "./format";
import type { RecordPlace, Records, SlowRecord, SlowResult } from "./generated/model";
import { Bar, Empty, Zero } from "./parts";
import { type Route, changed } from "./route";

/** Entries shown of each list; a link shows the rest. */
const SHOWN = 5;

export function RecordLists({ of, route, all }: { of: Records; route: Route; all?: string }) {
  const long = route.options.get("records") === "all";
  const shown = <T,>(list: T[]): T[] => (long ? list : list.slice(0, SHOWN));
  const most = Math.max(of.slow_records.length, of.slow_results.length);
  if (all && most === 0) return null;
  return (
    <>
      <h2>
        Slow records{" "}
        <span class="muted clear">
          {all ? (
            <>
              of this query, among <a href={all}>the slowest of all</a>
            </>
          ) : (
            <>
              {plural(of.results, "result")} of {plural(of.inputs, "input")}, followed through{" "}
              {plural(of.tasks, "task")}
            </>
          )}
        </span>
      </h2>
      <SlowRecords of={shown(of.slow_records)} />
      {of.slow_results.length > 0 && <h2>Slow results</h2>}
      <SlowResults of={shown(of.slow_results)} />
      {most > SHOWN && (
        <p class="hint">
          <a href={changed(route, { records: long ? null : "all" })}>
            {long ? "Only the slowest" : `Up to ${most} of each`}
          </a>
        </p>
      )}
    </>
  );
}

function SlowRecords({ of }: { of: SlowRecord[] }) {
  if (of.length === 0) return <Empty>None is known.</Empty>;
  return (
    <table class="records" aria-label="Slow records">
      <thead>
        <tr>
          <th class="number" title="Time of its task's code because of it">
            Took
          </th>
          <th class="bars wide">Of its task</th>
          <th
            class="number wide"
            title="How much sooner its stage would have ended without it, if no task had to wait for a slot"
          >
            Saves
          </th>
          <th>Record, where it took longest, and the code that ran meanwhile</th>
        </tr>
      </thead>
      <tbody>
        {of.map((record, at) => (
          <tr key={at}>
            <td class="number strong">{seconds(record.seconds)}</td>
            <td class="bars wide">
              {record.share_of_task !== null && (
                <>
                  {share(record.share_of_task)}
                  <Bar part={record.share_of_task} of={1} kind="slow" />
                </>
              )}
            </td>
            <td class="number wide">
              {record.saves_seconds !== null && <Zero n={record.saves_seconds} as={seconds} />}
            </td>
            <td>
              <Content of={record.at} />
              <span class="where">{where(record.at)}</span>
              {record.lines.length > 0 && (
                <ul class="hot" aria-label="Code that ran meanwhile">
                  {record.lines.map(({ line, share: part }) => (
                    <li key={line}>
                      <span class="part">{share(part)}</span> <code>{line}</code>
                    </li>
                  ))}
                </ul>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function SlowResults({ of }: { of: SlowResult[] }) {
  if (of.length === 0) return null;
  return (
    <table class="records" aria-label="Slow results">
      <thead>
        <tr>
          <th class="number" title="From the first input on, along the slowest way">
            Took
          </th>
          <th class="bars wide">Of it, the slowest step</th>
          <th class="number wide" title="Inputs that it came from, at most">
            Inputs
          </th>
          <th>Result, and the slowest way to it</th>
        </tr>
      </thead>
      <tbody>
        {of.map((result, at) => (
          <Result key={at} of={result} />
        ))}
      </tbody>
    </table>
  );
}

function Result({ of }: { of: SlowResult }) {
  const [input, step] = [of.expensive_input, of.slowest_step];
  const same =
    input.stage === step.stage &&
    input.task === step.task &&
    input.position === step.position &&
    input.rdd === step.rdd;
  const part = of.slowest_step_seconds / Math.max(of.seconds, 1e-9);
  return (
    <tr>
      <td class="number strong">{seconds(of.seconds)}</td>
      <td class="bars wide">
        {share(part)}
        <Bar part={part} of={1} kind="slow" />
      </td>
      <td class="number wide">{count(of.inputs)}</td>
      <td>
        <Content of={of} />
        <span class="where">
          stage {of.stage}, partition {of.partition}
        </span>
        <dl class="way">
          <dt>{same ? "because of" : "slowest step"}</dt>
          <dd>
            {seconds(of.slowest_step_seconds)} <Content of={step} />
            <span class="where">{where(step)}</span>
          </dd>
          {!same && (
            <>
              <dt>way begins with</dt>
              <dd>
                {seconds(of.expensive_input_seconds)} <Content of={input} />
                <span class="where">{where(input)}</span>
              </dd>
            </>
          )}
        </dl>
      </td>
    </tr>
  );
}

/** The content of a record on one line, or the position of the record if its content was not kept. */
export function Content({ of }: { of: { content: string | null; cut: boolean; position: number } }) {
  if (of.content === null)
    return <span class="muted">{of.position < 0 ? "made of several records" : `record ${count(of.position)}`}</span>;
  // Isolated, because a right-to-left text would reorder the text beside it.
  return (
    <bdi class="content">
      {of.content.replace(/\p{Cc}/gu, " ")}
      {of.cut && "…"}
    </bdi>
  );
}

function where(at: RecordPlace): string {
  const place = `stage ${at.stage}, partition ${at.partition}, `;
  if (at.file !== null && at.offset !== null) return `${place}${at.file} at byte ${at.offset}`;
  if (at.file !== null && at.row !== null)
    return `${place}${at.file} row ${at.row}${at.file_start > 0 ? ` behind byte ${at.file_start}` : ""}`;
  if (at.position < 0) return `${place}behind all that was read before`;
  const from = { shuffle: " of a shuffle", cached: " of a cache" }[at.kind] ?? "";
  return `${place}record ${at.position} of what it read${from}`;
}
