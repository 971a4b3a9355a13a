// The plan as a tree with a time bar on every operator.

import { useState } from "preact/hooks";
import { percent, plural, time } from "./format";
import type { Detail } from "./generated/model";
import { rest } from "./operators";
import { arrows } from "./parts";
import { Details, Figures, HotLines, RowCost, Rows, Waits, type Where } from "./planNode";
import { type Shape, type Shown, hiddenUnder } from "./planShape";

interface TreeProps {
  detail: Detail;
  shape: Shape;
  where: Where;
  /** Id of the node whose whole text is shown. */
  chosen: string | undefined;
  choose: (id: string) => void;
  /** Link to the plan with the nodes that only pass rows on. */
  showAll: string;
}

/** Most hot lines beside an operator, and the least part of the query's CPU time that each of them has. */
const HOT = 2;
const WARM = 0.02;

export function PlanTree({ detail, shape, where, chosen, choose, showAll }: TreeProps) {
  const [closed, setClosed] = useState<Set<number>>(new Set());
  const { headings, waiting_ns: waiting } = detail;
  const { shown } = shape;
  const { all } = where;
  const scale = Math.max(all, waiting ?? 0);
  const columns = waiting === null ? 8 : 9;
  const hidden = hiddenUnder(shown, closed);
  const toggle = (at: number, open: boolean) => {
    const next = new Set(closed);
    if (open) next.delete(at);
    else next.add(at);
    setClosed(next);
  };
  const keys = (event: KeyboardEvent) => {
    const at = Number((event.target as HTMLElement).dataset["node"] ?? NaN);
    const index = shown.findIndex((one) => one.at === at);
    const step = { ArrowRight: true, ArrowLeft: false }[event.key];
    if (step === undefined || index < 0) return arrows(event);
    event.preventDefault();
    const { children, parent } = shown[index]!;
    if (children.length > 0 && closed.has(at) === step) return toggle(at, step);
    // Left on a leaf or a closed node moves to the parent, right on an open node to its first child.
    const to = step ? children[0] : (parent ?? undefined);
    if (to !== undefined) document.querySelector<HTMLElement>(`[data-node="${shown[to]!.at}"]`)?.focus();
  };
  return (
    <table class="plan" role="treegrid" aria-label="Plan" onKeyDown={keys}>
      <Head waits={waiting !== null} />
      <tbody>
        {shown.map((one, index) =>
          hidden.has(index) ? null : (
            <NodeRow
              key={one.node.id}
              of={one}
              where={where}
              scale={scale}
              columns={columns}
              waits={waiting !== null}
              open={one.children.length > 0 ? !closed.has(one.at) : undefined}
              chosen={chosen === String(one.node.id)}
              first={index === 0}
              choose={() => choose(String(one.node.id))}
              toggle={(open) => toggle(one.at, open)}
            />
          ),
        )}
        {(headings.length > 0 || shape.cost.cpu_ns > 0) && (
          <tr class="group">
            <th colSpan={columns} scope="rowgroup">
              {shown.length > 0 ? "Work that no operator above does" : "Work outside queries"}
            </th>
          </tr>
        )}
        {shape.cost.cpu_ns > 0 && (
          <tr data-row tabIndex={-1}>
            <td class="operator">
              <a class="heading" href={showAll}>
                {plural(shape.hidden, "node")} that only hand rows on
              </a>
            </td>
            <Figures cost={shape.cost} all={all} scale={scale} waits={waiting === null ? undefined : []} />
            <td class="wide" />
            {waiting !== null && <td class="number wide">{time(shape.waiting_ns)}</td>}
            <td class="wide" colSpan={3} />
          </tr>
        )}
        {headings.map((heading) => (
          <tr key={heading.name} data-row tabIndex={-1}>
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
            <td class="wide" />
            {waiting !== null && <Waits waits={heading.waits} />}
            <td class="wide" colSpan={2} />
            <td class="number muted wide">{heading.stages.join(", ")}</td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr>
          <td>All</td>
          <td class="wide" />
          <td class="number strong">{time(all)}</td>
          <td class="number">{percent(all, all)}</td>
          <td class="wide" />
          {waiting !== null && <td class="number strong wide">{time(waiting)}</td>}
          <td colSpan={3} class="wide" />
        </tr>
      </tfoot>
    </table>
  );
}

function Head({ waits }: { waits: boolean }) {
  return (
    <thead>
      <tr>
        <th>Operator</th>
        <th class="bars wide">
          <span class="sr">Time bars</span>
        </th>
        <th class="number" title="CPU time of the operator's own work">
          Self
        </th>
        <th class="number" title="Part of the query's CPU time, and in which range it lies with 95% certainty">
          Share
        </th>
        <th class="number wide" title="CPU time of the operator and everything below it, across stages">
          Total
        </th>
        {waits && (
          <th
            class="number wide"
            title="Time in which the operator itself waited: for disks, other machines, locks, a CPU"
          >
            Waiting
          </th>
        )}
        <th class="number wide" title="Spark's number of output rows">
          Rows out
        </th>
        <th
          class="number wide"
          title="The operator's own CPU time for each row out; below it for each row in, where these are other numbers"
        >
          CPU per row
        </th>
        <th class="number wide" title="Stages in which it was sampled">
          Stage
        </th>
      </tr>
    </thead>
  );
}

interface NodeProps {
  of: Shown;
  where: Where;
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
  const { open } = props;
  const { node, at, depth } = props.of;
  const keys = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    props.choose();
  };
  const idle = node.total.cpu_ns + node.total_waiting_ns === 0;
  const hot = node.hot_lines.filter(({ cost }) => cost.cpu_ns >= WARM * props.where.all).slice(0, HOT);
  const passing = node.own.cpu_ns + node.waits.length === 0;
  return (
    <>
      <tr
        data-row
        data-node={at}
        aria-level={depth + 1}
        aria-expanded={open}
        aria-selected={props.chosen}
        tabIndex={props.first || props.chosen ? 0 : -1}
        class={idle ? "idle" : passing ? "passing" : ""}
        onKeyDown={keys}
        onClick={props.choose}
      >
        <td class="operator" title={node.detail} style={{ "--depth": String(Math.min(depth, 30)) }}>
          <span class="indent" />
          <Twist open={open} toggle={props.toggle} />
          <span class={`dot o-${node.kind}`} />
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
          <span class="detail">{rest(node)}</span>
          {hot.length > 0 && (
            <span class="hotlines">
              <HotLines of={hot} where={props.where} tab={-1} />
            </span>
          )}
        </td>
        <Figures
          cost={node.own}
          bounds={node.own_range}
          whole={node.total}
          all={props.where.all}
          scale={props.scale}
          waits={props.waits ? node.waits : undefined}
          totalWaiting={node.total_waiting_ns}
        />
        <td class={`number wide ${node.total.cpu_ns ? "" : "faint"}`}>{time(node.total.cpu_ns)}</td>
        {props.waits && <Waits waits={node.waits} />}
        <Rows node={node} />
        <RowCost node={node} />
        <td class="number muted wide">{node.stages.join(", ")}</td>
      </tr>
      {props.chosen && (
        <tr class="more">
          <td colSpan={props.columns}>
            <Details node={node} waits={props.waits} where={props.where} />
          </td>
        </tr>
      )}
    </>
  );
}

/** Closes and opens a subtree by mouse; the arrow keys do it by keyboard. */
function Twist({ open, toggle }: { open: boolean | undefined; toggle: (open: boolean) => void }) {
  if (open === undefined) return <span class="twist" />;
  return (
    <span
      class="twist"
      role="presentation"
      title={open ? "Close" : "Open"}
      onClick={(event) => {
        event.stopPropagation();
        toggle(!open);
      }}
    >
      {open ? "▾" : "▸"}
    </span>
  );
}
