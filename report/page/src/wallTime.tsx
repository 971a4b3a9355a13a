// Where the wall time of a query went, and what made it differ from other runs: parts that add up, as a waterfall.

import type { ComponentChildren } from "preact";
import { change, plural, seconds } from "./format";
import type { Query, Summary, WallTimeChange, WallTimeKind, WallTimePart } from "./generated/model";
import { keyOf } from "./list";
import { Copied, Empty, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { link } from "./route";

/** Colours of the parts, which are those of the verdict. */
const COLOURS: Record<WallTimeKind, string> = {
  operator: "v-operators",
  python: "v-operators",
  task: "v-tasks",
  contention: "v-waiting",
  gc: "v-waiting",
  waiting: "v-waiting",
  spill: "v-waiting",
  skew: "v-idle",
  few_tasks: "v-idle",
  scheduling: "v-scheduling",
  driver: "v-beside",
  failed_tasks: "v-unknown",
  unknown: "v-unknown",
  remainder: "v-unknown",
  // These are parts of differences, which have two colours of their own.
  data: "v-unknown",
  another_plan: "v-unknown",
  codegen: "v-unknown",
  slots: "v-unknown",
  memory: "v-unknown",
};

/** A row of the table, with the ends of its bar in s. */
interface Row {
  what: string;
  href?: string | undefined;
  amount: string;
  range: string;
  from: number;
  to: number;
  colour: string;
  note?: string;
}

export function WallTimeTab({ source, at: index, query, summary }: TabProps) {
  const wall = useLoaded(() => source.load(`wall-time-${index}`), [source, index]);
  if (wall === undefined) return <Empty>Unpacking …</Empty>;
  if (wall instanceof Error) return <Empty>The wall time cannot be read: {wall.message}</Empty>;
  if (!wall)
    return (
      <Empty>
        {query.query === null
          ? "Only SQL queries have a wall time of their own."
          : query.error || query.duration_ms === null
            ? "Where the wall time went is known of queries that ended well."
            : "A report about a part of the time (--since, --until) does not know where the wall time of its queries went."}
      </Empty>
    );
  const to = (part: WallTimePart) => evidence(part, query, summary);
  let at = 0;
  const rows = wall.parts.map((part): Row => {
    const from = at;
    at += part.seconds;
    const { seconds_low: low, seconds_high: high } = part;
    return {
      what: part.what,
      href: to(part),
      amount: seconds(Math.max(0, part.seconds)),
      range: high - low >= 0.005 ? `${seconds(Math.max(0, low))} to ${seconds(high)}` : "",
      from,
      to: at,
      colour: COLOURS[part.kind],
    };
  });
  const commands = [...(wall.change?.parts ?? []), ...wall.parts].map((part) => part.command);
  const command = commands.find((command) => command !== null);
  return (
    <section class="walltime" aria-label="Wall time">
      {wall.change && <Change of={wall.change} now={wall.wall_s} to={to} />}
      <h2>Where its {seconds(wall.wall_s)} went</h2>
      <Waterfall rows={rows} least={0} last={["wall time", seconds(wall.wall_s)]} name="Parts of the wall time" />
      {command && (
        <>
          <p class="hint">To see more:</p>
          <Copied text={command} />
        </>
      )}
    </section>
  );
}

function Change({ of, now, to }: { of: WallTimeChange; now: number; to: (part: WallTimePart) => string | undefined }) {
  const difference = now - of.wall_s;
  const runs = of.profile !== null && of.queries.length > 1 ? `, the mean of ${plural(of.queries.length, "run")}` : "";
  let at = of.wall_s;
  const rows = of.parts.map((part): Row => {
    const from = at;
    at += part.seconds;
    const { seconds_low: low, seconds_high: high, before_s: old, after_s: later } = part;
    const chance = low * high <= 0;
    return {
      what: part.what,
      href: to(part),
      amount: change(1e9 * part.seconds),
      range: high - low >= 0.005 ? `${change(1e9 * low)} to ${change(1e9 * high)}` : "",
      from,
      to: at,
      colour: part.seconds > 0 ? "w-more" : "w-less",
      note: [
        old !== null && later !== null && `${seconds(Math.max(0, old))} before, ${seconds(Math.max(0, later))} now`,
        chance && part.kind !== "remainder" && "may be chance",
      ]
        .filter(Boolean)
        .join("; "),
    };
  });
  // A difference is small beside the whole: the bars of both runs are cut on the left, so that its parts are seen.
  const ends = [of.wall_s, now, ...rows.map((row) => row.to)];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const least = Math.max(0, low - (high - low) / 4);
  const before: Row = {
    what: of.profile === null ? "the median run" : "before",
    amount: seconds(of.wall_s),
    range: "",
    from: least,
    to: of.wall_s,
    colour: "v-unknown",
  };
  return (
    <>
      <h2>
        {Math.abs(difference) < 0.0005
          ? "As long as "
          : `${seconds(Math.abs(difference))} ${difference > 0 ? "longer" : "shorter"} than `}
        {of.profile === null ? `the median run (query ${of.queries[0]})` : "before"}
      </h2>
      <p class="crumbs">
        {seconds(now)} now, {seconds(of.wall_s)} {of.profile === null ? "in the median run" : `in ${of.profile}${runs}`}
        . The parts add up to the difference.{least > 0 && ` The bars begin at ${seconds(least)}.`}
      </p>
      <Waterfall rows={[before, ...rows]} least={least} last={["now", seconds(now)]} name="Parts of the difference">
        <span class="v-unknown" style={{ left: 0, width: `${(100 * (now - least)) / (high - least || 1)}%` }} />
      </Waterfall>
    </>
  );
}

interface WaterfallProps {
  rows: Row[];
  /** Where the bars begin, s. */
  least: number;
  /** The sum: what it is, and how long. */
  last: [string, string];
  name: string;
  /** The bar of the sum. */
  children?: ComponentChildren;
}

function Waterfall({ rows, least, last, name, children }: WaterfallProps) {
  const ends = rows.flatMap((row) => [row.from, row.to]);
  const room = Math.max(...ends, least + 1e-9) - least;
  const place = ({ from, to }: Row) => ({
    left: `${(100 * (Math.min(from, to) - least)) / room}%`,
    width: `${(100 * Math.abs(to - from)) / room}%`,
  });
  return (
    <table class="waterfall" aria-label={name}>
      <thead>
        <tr>
          <th class="number">Time</th>
          <th class="wide" title="95% interval, by samples and by what differs between runs">
            Range
          </th>
          <th>What</th>
          <th class="fall">
            <span class="sr">Bars, each of which begins where the one above ends</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={at}>
            <td class="number strong">{row.amount}</td>
            <td class="muted wide range">{row.range}</td>
            <td class="what">
              {row.href ? <a href={row.href}>{row.what}</a> : row.what}
              {row.note && <span class="how">{row.note}</span>}
            </td>
            <td class="fall">
              <span class="track">
                <span class={row.colour} style={place(row)} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <td class="number strong">{last[1]}</td>
          <td class="wide" />
          <td>{last[0]}</td>
          <td class="fall">{children && <span class="track">{children}</span>}</td>
        </tr>
      </tfoot>
    </table>
  );
}

/** Where the page shows more of a part. */
function evidence(part: WallTimePart, query: Query, summary: Summary): string | undefined {
  const tab = (name: string, options = {}) => link(["query", keyOf(query), name], options);
  switch (part.kind) {
    case "operator":
    case "python": {
      const node = /\((\d+)\)$/.exec(part.what)?.[1];
      return node && tab("plan", { node });
    }
    case "contention":
      return query.contention ? tab("contention") : undefined;
    case "skew":
      return summary.skew ? tab("skew") : undefined;
    case "few_tasks":
    case "spill":
    case "failed_tasks":
    case "scheduling":
      return tab("stages");
    case "another_plan":
    case "codegen":
    case "data":
      return summary.compared ? tab("compare") : undefined;
    default:
      return undefined;
  }
}
