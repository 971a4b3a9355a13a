// The data of one plan node, in the rows of the tree and below the graph.

import { count, perRow, percent, plural, range, time } from "./format";
import type { Cost, HotLine, PerRow, PlanNode, Wait } from "./generated/model";
import { Bar } from "./parts";
import { link } from "./route";

/** Bounds of a share, 0 to 1. */
export type Range = PlanNode["own_range"];

export const sumOf = (waits: Wait[]): number => waits.reduce((sum, wait) => sum + wait.ns, 0);
export const listOf = (waits: Wait[]): string => waits.map((wait) => `${wait.what} ${time(wait.ns)}`).join(", ");

interface FigureProps {
  cost: Cost;
  /** Bounds of its share. */
  bounds?: Range;
  all: number;
  /** The time of a full bar, ns. */
  scale: number;
  whole?: Cost;
  waits: Wait[] | undefined;
  totalWaiting?: number;
}

export function Figures({ cost, bounds, all, scale, whole, waits, totalWaiting }: FigureProps) {
  const both = `self ${time(cost.cpu_ns)} (${plural(cost.samples, "sample")})`;
  const title = whole
    ? `${both}, total ${time(whole.cpu_ns)} with everything below (${plural(whole.samples, "sample")})`
    : both;
  return (
    <>
      <td class="bars wide">
        <Bar part={cost.cpu_ns} whole={whole?.cpu_ns} of={scale} title={title} />
        {waits && (
          <Bar
            kind="waits"
            part={sumOf(waits)}
            whole={totalWaiting}
            of={scale}
            title={waitingTitle(waits, totalWaiting)}
          />
        )}
      </td>
      <td class={`number ${cost.cpu_ns ? "strong" : "faint"}`} title={title}>
        {time(cost.cpu_ns)}
      </td>
      <td class="number muted" title={bounds && certainty(bounds)}>
        {percent(cost.cpu_ns, all)}
        {bounds && cost.samples > 0 && <small class="range">{range(bounds)}</small>}
      </td>
    </>
  );
}

const certainty = (bounds: Range): string =>
  `With 95% certainty the share is ${range(bounds)}: samples leave that much to chance, and code between the lines of two operators may belong to either`;

function waitingTitle(waits: Wait[], total?: number): string {
  const self = `waiting ${time(sumOf(waits))}${waits.length > 0 ? `: ${listOf(waits)}` : ""}`;
  return total === undefined ? self : `${self}; total ${time(total)} with everything below`;
}

export function Waits({ waits }: { waits: Wait[] }) {
  const sum = sumOf(waits);
  return (
    <td class={`number wide ${sum ? "" : "faint"}`} title={listOf(waits)}>
      {time(sum)}
    </td>
  );
}

/** The query of the nodes: its key in links, and its CPU time, ns. */
export interface Where {
  query: string;
  all: number;
}

const sourceOf = ({ hash, line }: HotLine, { query }: Where): string | undefined =>
  hash === null ? undefined : link(["query", query, "source"], { source: hash, line: line || undefined });

/** Lines on which an operator spends its time, each a link to its source. */
export function HotLines({ of, where, tab }: { of: HotLine[]; where: Where; tab?: number }) {
  return (
    <>
      {of.map((line) => {
        const place = sourceOf(line, where);
        const code = [line.text, line.callee && `→ ${line.callee}`].filter(Boolean).join(" ");
        const text = `${line.place}${line.text && `\n${line.text}`}${line.callee ? `\ncalls ${line.callee}` : ""}`;
        return (
          <span class="hotline" key={line.place} title={text}>
            <span class="part">{percent(line.cost.cpu_ns, where.all)}</span>
            {place ? (
              <a href={place} tabIndex={tab} onClick={(event) => event.stopPropagation()}>
                {line.place}
              </a>
            ) : (
              <span class="place">{line.place}</span>
            )}
            <code>{code}</code>
          </span>
        );
      })}
    </>
  );
}

/** Rows out; also rows in, if their number differs. */
export function Rows({ node }: { node: PlanNode }) {
  const other = node.rows_in !== null && node.rows_in !== node.rows;
  return (
    <td class="number wide">
      {node.rows !== null && count(node.rows)}
      {other && <small class="below">{count(node.rows_in!)} in</small>}
    </td>
  );
}

/** CPU time per row out; also per row in, if their number differs. The tooltip has the intervals. */
export function RowCost({ node }: { node: PlanNode }) {
  // Without samples, the time is unknown; it need not be less than that of other operators.
  if (node.own.samples === 0) return <td class="number wide" />;
  const out = node.ns_per_row_out;
  const other = node.ns_per_row_in !== null && node.rows_in !== node.rows ? node.ns_per_row_in : null;
  return (
    <td class="number wide" title={costTitle(node)}>
      {out && perRow(out.ns)}
      {other && <small class="below">{perRow(other.ns)} in</small>}
    </td>
  );
}

const inside = (of: PerRow): string => `${perRow(of.ns)} (${perRow(of.low)} to ${perRow(of.high)})`;

function costTitle({ ns_per_row_out: out, ns_per_row_in: into }: PlanNode): string | undefined {
  const parts = [out && `${inside(out)} for each row out`, into && `${inside(into)} for each row in`].filter(Boolean);
  return parts.length > 0 ? `${parts.join(", ")}, with 95% certainty` : undefined;
}

/** The whole text of a node, and sentences with its figures. */
export function Details({ node, waits, where }: { node: PlanNode; waits: boolean; where: Where }) {
  const cost = node.own.samples > 0 ? costTitle(node) : undefined;
  return (
    <>
      <pre>{node.detail || node.operator}</pre>
      <p class="muted">
        Node {node.id}. Self {time(node.own.cpu_ns)} ({plural(node.own.samples, "sample")}): only its own code,{" "}
        {range(node.own_range)} of the query's CPU time with 95% certainty. Total {time(node.total.cpu_ns)} (
        {plural(node.total.samples, "sample")}): with all operators below it, in all stages.
        {node.rows !== null && ` ${plural(node.rows, "row")} out`}
        {node.rows_in !== null && `${node.rows === null ? " " : ", "}${plural(node.rows_in, "row")} in`}
        {(node.rows !== null || node.rows_in !== null) && "."}
        {cost && ` CPU time per row: ${cost}.`}
      </p>
      <HotLines of={node.hot_lines} where={where} />
      {waits && (
        <p class="muted">
          Waiting {time(sumOf(node.waits))}
          {node.waits.length > 0 && ` (${listOf(node.waits)})`}, {time(node.total_waiting_ns)} with all operators below
          it.
        </p>
      )}
    </>
  );
}
