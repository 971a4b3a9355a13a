// The plan as a graph: data flows downwards, scans are on top, as in the Spark UI.

import { useMemo, useRef, useState } from "preact/hooks";
import { percent, plural, time } from "./format";
import { brief, rest } from "./operators";
import { Bar } from "./parts";
import { type Place, type Shown, placesOf } from "./planShape";

/** Sizes of a node and of the gaps between nodes, px. */
const WIDTH = 190;
const HEIGHT = 66;
const GAP_X = 22;
const GAP_Y = 44;
const MARGIN = 6;

interface GraphProps {
  shown: Shown[];
  /** The query's CPU time, ns. */
  all: number;
  chosen: string | undefined;
  choose: (id: string) => void;
}

export function PlanGraph({ shown, all, chosen, choose }: GraphProps) {
  const { places, width, height } = useMemo(() => placesOf(shown), [shown]);
  const start = Math.max(
    0,
    shown.findIndex(({ node }) => String(node.id) === chosen),
  );
  const [focused, setFocused] = useState(start);
  const graph = useRef<HTMLDivElement>(null);
  const current = focused < shown.length ? focused : 0;
  const left = (place: Place) => MARGIN + place.x * (WIDTH + GAP_X);
  const top = (place: Place) => MARGIN + place.y * (HEIGHT + GAP_Y);
  const [wide, high] = [width * (WIDTH + GAP_X) - GAP_X + 2 * MARGIN, height * (HEIGHT + GAP_Y) - GAP_Y + 2 * MARGIN];
  const focus = (index: number | null | undefined) => {
    if (index === null || index === undefined) return;
    setFocused(index);
    graph.current?.querySelector<HTMLElement>(`[data-index="${index}"]`)?.focus();
  };
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = shown.map((_, index) => index).filter((index) => places[index]!.y === places[current]!.y);
    row.sort((a, b) => places[a]!.x - places[b]!.x);
    const moves: Record<string, () => number | null | undefined> = {
      ArrowUp: () => shown[current]!.children[0],
      ArrowDown: () => shown[current]!.parent,
      ArrowLeft: () => row[row.indexOf(current) - 1],
      ArrowRight: () => row[row.indexOf(current) + 1],
      Home: () => 0,
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    focus(move());
  };
  return (
    <div class="scroll graphs">
      <div
        ref={graph}
        class="graph"
        role="group"
        aria-label="Plan as a graph"
        style={{ width: `${wide}px`, height: `${high}px` }}
        onKeyDown={keys}
      >
        <svg width={wide} height={high} aria-hidden="true">
          {shown.map(({ parent, node }, index) =>
            parent === null ? null : (
              <Edge
                key={node.id}
                from={{ x: left(places[index]!) + WIDTH / 2, y: top(places[index]!) + HEIGHT }}
                to={{ x: left(places[parent]!) + WIDTH / 2, y: top(places[parent]!) }}
                rows={node.rows}
              />
            ),
          )}
        </svg>
        {shown.map((one, index) => (
          <Box
            key={one.node.id}
            of={one}
            into={one.parent === null ? undefined : shown[one.parent]}
            all={all}
            at={{ x: left(places[index]!), y: top(places[index]!) }}
            index={index}
            current={index === current}
            chosen={String(one.node.id) === chosen}
            choose={() => {
              setFocused(index);
              choose(String(one.node.id));
            }}
          />
        ))}
      </div>
    </div>
  );
}

/** An edge; its width grows with the number of digits in its number of rows. */
function Edge({ from, to, rows }: { from: Place; to: Place; rows: number | null }) {
  // The label is on the side from which the edge turns away.
  const aside = to.x > from.x + 1;
  const middle = (from.y + to.y) / 2;
  const thick = rows === null ? 1 : 1 + Math.log10(Math.max(1, rows)) / 1.5;
  return (
    <g>
      <path
        d={`M${from.x},${from.y} C${from.x},${middle} ${to.x},${middle} ${to.x},${to.y}`}
        stroke-width={thick.toFixed(1)}
      />
      {rows !== null && (
        <text x={from.x + (aside ? -6 : 6)} y={from.y + 16} text-anchor={aside ? "end" : "start"}>
          {plural(rows, "row")}
        </text>
      )}
    </g>
  );
}

function Box(props: {
  of: Shown;
  into: Shown | undefined;
  all: number;
  at: Place;
  index: number;
  current: boolean;
  chosen: boolean;
  choose: () => void;
}) {
  const { node } = props.of;
  const self = time(node.own.cpu_ns);
  const part = percent(node.own.cpu_ns, props.all);
  const more = [
    node.rows === null ? "" : `${plural(node.rows, "row")} out`,
    props.into ? `into ${props.into.node.operator}` : "",
  ].filter(Boolean);
  return (
    <button
      type="button"
      class={`box ${node.own.cpu_ns === 0 ? "idle" : ""}`}
      data-index={props.index}
      aria-pressed={props.chosen}
      tabIndex={props.current ? 0 : -1}
      title={brief(node.detail) || node.operator}
      style={{ left: `${props.at.x}px`, top: `${props.at.y}px`, width: `${WIDTH}px`, height: `${HEIGHT}px` }}
      onClick={props.choose}
    >
      <i class={`strip o-${node.kind}`} />
      <b>{node.operator}</b> <span class="detail">{rest(node)}</span>{" "}
      <span class="figure">
        <span>{node.own.cpu_ns === 0 ? "no samples" : self}</span> <span>{part}</span>
      </span>{" "}
      {more.length > 0 && <span class="sr">{more.join(", ")}</span>}
      <Bar part={node.own.cpu_ns} of={props.all} />
    </button>
  );
}
