// The plan as a tree with a time bar on every operator.

import { useState } from "preact/hooks";
import { count, percent, plural, range, time } from "./format";
import type { Cost, Placed, PlanNode, Wait } from "./generated/model";
import { Bar, Empty, arrows } from "./parts";
import type { TabProps } from "./query";
import { changed, go, link } from "./route";
import { keyOf } from "./list";

export function PlanTab({ detail, query, route }: TabProps) {
  const [closed, setClosed] = useState<Set<number>>(new Set());
  const { nodes, headings } = detail;
  const all = query.cost.cpu_ns;
  const waiting = detail.waiting_ns;
  const scale = Math.max(all, waiting ?? 0);
  const columns = waiting === null ? 7 : 8;
  const depths = depthsOf(nodes);
  const parents = new Set(nodes.map((node) => node.parent));
  const hidden = hiddenUnder(nodes, closed);
  const chosen = route.options.get("node");
  const choose = (id: string) => go(changed(route, { node: id === chosen ? null : id }));
  const toggle = (at: number, open: boolean) => {
    const next = new Set(closed);
    if (open) next.delete(at);
    else next.add(at);
    setClosed(next);
  };
  const keys = (event: KeyboardEvent) => {
    const at = Number((event.target as HTMLElement).dataset["node"] ?? NaN);
    const step = { ArrowRight: true, ArrowLeft: false }[event.key];
    if (step === undefined || Number.isNaN(at)) return arrows(event);
    event.preventDefault();
    if (parents.has(at) && closed.has(at) === step) return toggle(at, step);
    // Left on a leaf goes to the parent, right on an open node to its first child.
    const to = step ? nodes.findIndex((node) => node.parent === at) : (nodes[at]?.parent ?? -1);
    if (to >= 0) document.querySelector<HTMLElement>(`[data-node="${to}"]`)?.focus();
  };
  if (nodes.length === 0 && headings.length === 0)
    return (
      <Empty>Nothing was sampled in this query{query.query === null ? "" : ", and no plan of it was recorded"}.</Empty>
    );
  return (
    <>
      <p class="legend">
        <span class="key part" /> its own CPU time
        {nodes.length > 0 && (
          <>
            <span class="key whole" /> with everything below it
          </>
        )}
        {waiting !== null && (
          <>
            <span class="key fetch" /> its own waiting
            {nodes.length > 0 && (
              <>
                <span class="key waiting" /> with everything below it
              </>
            )}
          </>
        )}
        {waiting === null && query.waiting_ns !== null && (
          <>
            <span class="gap" />
            Waits were not recorded; for each stage they are known from Spark:{" "}
            <a href={link(["query", keyOf(query), "stages"])}>
              {time(query.waiting_ns)} in {plural(query.stages, "stage")}
            </a>
          </>
        )}
      </p>
      <table class="plan" role="treegrid" aria-label="Plan" onKeyDown={keys}>
        <thead>
          <tr>
            <th>Operator</th>
            <th class="bars">
              <span class="sr">Time bars</span>
            </th>
            <th class="number" title="CPU time of the operator's own work">
              Self
            </th>
            <th class="number" title="Part of the query's CPU time, and in which range it lies with 95% certainty">
              Share
            </th>
            <th class="number" title="CPU time of the operator and everything below it, across stages">
              Total
            </th>
            {waiting !== null && (
              <th
                class="number"
                title="Time in which the operator itself waited: for disks, other machines, locks, a CPU"
              >
                Waiting
              </th>
            )}
            <th class="number" title="Spark's number of output rows">
              Rows out
            </th>
            <th class="number" title="Stages in which it was sampled">
              Stage
            </th>
          </tr>
        </thead>
        <tbody>
          {nodes.map((node, at) =>
            hidden.has(at) ? null : (
              <NodeRow
                key={node.id}
                node={node}
                at={at}
                depth={depths[at]!}
                all={all}
                scale={scale}
                columns={columns}
                waits={waiting !== null}
                open={parents.has(at) ? !closed.has(at) : undefined}
                chosen={chosen === String(node.id)}
                first={at === 0}
                choose={() => choose(String(node.id))}
                toggle={(open) => toggle(at, open)}
              />
            ),
          )}
          {headings.length > 0 && (
            <tr class="group">
              <th colSpan={columns} scope="rowgroup">
                {nodes.length > 0 ? "Work that no operator does" : "Work outside queries"}
              </th>
            </tr>
          )}
          {headings.map((heading) => (
            <tr key={heading.name} data-row tabIndex={-1} role="row">
              <td class="operator">
                <span class="heading">[{heading.name}]</span>
              </td>
              <Figures
                cost={heading.cost}
                bounds={heading.range}
                all={all}
                scale={scale}
                waits={waiting === null ? undefined : heading.waits}
              />
              <td />
              {waiting !== null && <Waits waits={heading.waits} />}
              <td />
              <td class="number muted">{heading.stages.join(", ")}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td>All</td>
            <td />
            <td class="number strong">{time(all)}</td>
            <td class="number">100%</td>
            <td />
            {waiting !== null && <td class="number strong">{time(waiting)}</td>}
            <td colSpan={2} />
          </tr>
        </tfoot>
      </table>
      <Certainty placed={detail.placed} />
      <p class="hint">
        <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>←</kbd> <kbd>→</kbd> close and open <kbd>Enter</kbd> whole text
      </p>
    </>
  );
}

/** Bounds of a share, 0 to 1. */
type Range = PlanNode["own_range"];

interface FigureProps {
  cost: Cost;
  /** Of its share. */
  bounds: Range;
  all: number;
  /** What a full bar is, ns. */
  scale: number;
  whole?: Cost;
  waits: Wait[] | undefined;
  totalWaiting?: number;
}

const sumOf = (waits: Wait[]): number => waits.reduce((sum, wait) => sum + wait.ns, 0);
const list = (waits: Wait[]): string => waits.map((wait) => `${wait.what} ${time(wait.ns)}`).join(", ");

function Figures({ cost, bounds, all, scale, whole, waits, totalWaiting }: FigureProps) {
  const both = `self ${time(cost.cpu_ns)} (${plural(cost.samples, "sample")})`;
  const title = whole
    ? `${both}, total ${time(whole.cpu_ns)} with everything below (${plural(whole.samples, "sample")})`
    : both;
  return (
    <>
      <td class="bars">
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
      <td class="number muted" title={certainty(bounds)}>
        {percent(cost.cpu_ns, all)}
        {cost.samples > 0 && <small class="range">{range(bounds)}</small>}
      </td>
    </>
  );
}

const certainty = (bounds: Range): string =>
  `With 95% certainty the share is ${range(bounds)}: samples leave that much to chance, and code between the lines of two operators may be of either`;

function waitingTitle(waits: Wait[], total?: number): string {
  const self = `waiting ${time(sumOf(waits))}${waits.length > 0 ? `: ${list(waits)}` : ""}`;
  return total === undefined ? self : `${self}; total ${time(total)} with everything below`;
}

function Waits({ waits }: { waits: Wait[] }) {
  const sum = sumOf(waits);
  return (
    <td class={`number ${sum ? "" : "faint"}`} title={list(waits)}>
      {time(sum)}
    </td>
  );
}

interface NodeProps {
  node: PlanNode;
  at: number;
  depth: number;
  all: number;
  scale: number;
  columns: number;
  waits: boolean;
  open: boolean | undefined;
  chosen: boolean;
  first: boolean;
  choose: () => void;
  toggle: (open: boolean) => void;
}

function NodeRow(props: NodeProps) {
  const { node, depth, open } = props;
  const rest = node.detail.startsWith(node.operator) ? node.detail.slice(node.operator.length).trim() : node.detail;
  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    props.choose();
  };
  return (
    <>
      <tr
        data-row
        data-node={props.at}
        role="row"
        aria-level={depth + 1}
        aria-expanded={open}
        aria-selected={props.chosen}
        tabIndex={props.first || props.chosen ? 0 : -1}
        class={
          node.total.cpu_ns + node.total_waiting_ns === 0
            ? "idle"
            : node.own.cpu_ns + node.waits.length === 0
              ? "passing"
              : ""
        }
        onKeyDown={keys}
        onClick={props.choose}
      >
        <td class="operator">
          <span class="indent" style={{ width: `${Math.min(depth, 30) * 14}px` }} />
          {open === undefined ? (
            <span class="twist" />
          ) : (
            <span
              class="twist"
              role="presentation"
              title={open ? "Close" : "Open"}
              onClick={(event) => {
                event.stopPropagation();
                props.toggle(!open);
              }}
            >
              {open ? "▾" : "▸"}
            </span>
          )}
          <b>{node.operator}</b>
          {node.codegen_stage !== null && (
            <span class="badge" title={`Fused into whole-stage codegen ${node.codegen_stage}`}>
              *{node.codegen_stage}
            </span>
          )}
          {node.replanned && (
            <span class="badge" title="Adaptive planning dropped it from the final plan after it ran">
              re-planned
            </span>
          )}
          <span class="detail">{rest}</span>
        </td>
        <Figures
          cost={node.own}
          bounds={node.own_range}
          whole={node.total}
          all={props.all}
          scale={props.scale}
          waits={props.waits ? node.waits : undefined}
          totalWaiting={node.total_waiting_ns}
        />
        <td class={`number ${node.total.cpu_ns ? "" : "faint"}`}>{time(node.total.cpu_ns)}</td>
        {props.waits && <Waits waits={node.waits} />}
        <td class="number">{node.rows === null ? "" : count(node.rows)}</td>
        <td class="number muted">{node.stages.join(", ")}</td>
      </tr>
      {props.chosen && (
        <tr class="more">
          <td colSpan={props.columns}>
            <pre>{node.detail || node.operator}</pre>
            <p class="muted">
              Node {node.id}. Self {time(node.own.cpu_ns)} ({plural(node.own.samples, "sample")}): only its own code,{" "}
              {range(node.own_range)} of the query's CPU time with 95% certainty. Total {time(node.total.cpu_ns)} (
              {plural(node.total.samples, "sample")}): with all operators below it, in all stages.
            </p>
            {props.waits && (
              <p class="muted">
                Waiting {time(sumOf(node.waits))}
                {node.waits.length > 0 && ` (${list(node.waits)})`}, {time(node.total_waiting_ns)} with all operators
                below it.
              </p>
            )}
          </td>
        </tr>
      )}
    </>
  );
}

export function depthsOf(nodes: PlanNode[]): number[] {
  const depths: number[] = [];
  for (const node of nodes) depths.push(node.parent === null ? 0 : (depths[node.parent] ?? 0) + 1);
  return depths;
}

function hiddenUnder(nodes: PlanNode[], closed: Set<number>): Set<number> {
  const hidden = new Set<number>();
  nodes.forEach((node, at) => {
    if (node.parent !== null && (closed.has(node.parent) || hidden.has(node.parent))) hidden.add(at);
  });
  return hidden;
}

/** How much of the tasks' time is surely of the operators that have it. */
function Certainty({ placed }: { placed: Placed }) {
  const parts: [string, Cost][] = [
    ["proved to be of its operator", placed.proved],
    ["given to an operator by a guess", placed.guessed],
    ["no operator's work", placed.headings],
    ["unattributed", placed.unattributed],
  ];
  const all = parts.reduce((sum, [, cost]) => sum + cost.cpu_ns, 0);
  if (all === 0) return null;
  return (
    <p class="hint" title="By the lines and classes on the stacks; unfuse top --by rule has more">
      CPU time of tasks: {parts.map(([name, cost]) => `${percent(cost.cpu_ns, all)} ${name}`).join(", ")}. Shares say
      where the processor was, not what the query would save without an operator.
    </p>
  );
}
