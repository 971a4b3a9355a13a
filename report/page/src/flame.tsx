// The zoomable flame graph, root at the top.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ALL, type Box, type FlameTree, children, flameTree, layout } from "./flameTree";
import { percent, plural, time } from "./format";
import { type Detail, type Flame, type FrameNames, HEADING, OPERATOR, STAGE } from "./generated/model";
import { KINDS, brief, rest } from "./operators";
import { Empty, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { changed, go } from "./route";
import { stageName } from "./stages";

/** Frames narrower than this part of the width are not drawn. */
const NARROWEST = 0.0012;

interface Label {
  text: string;
  /** Further text for a wide frame. */
  more?: string;
  title: string;
  /** The CSS class of its colour. */
  kind: string;
}

/** The graphs: operators in the order of the plan, operators in the order of the code, all frames. */
const GRAPHS: Record<string, { name: string; title: string; of: (detail: Detail) => Flame }> = {
  plan: {
    name: "By plan",
    title: "Each operator stands on the one that takes its rows, as in the plan",
    of: (detail) => detail.operators,
  },
  code: {
    name: "By code",
    title: "Stages, and in them operators as their code calls each other",
    of: (detail) => detail.operators_by_code,
  },
  frames: {
    name: "All frames",
    title: "Every method and function, with operators between",
    of: (detail) => detail.frames,
  },
};

export function FlameTab({ detail, source, route }: TabProps) {
  const asked = route.options.get("level") === "full" ? "frames" : (route.options.get("order") ?? "plan");
  const order = asked in GRAPHS ? asked : "plan";
  const full = order === "frames";
  const names = useLoaded<FrameNames | null>(
    () => (full ? source.load("frames") : Promise.resolve(null)),
    [source, full],
  );
  const flame = GRAPHS[order]!.of(detail);
  const tree = useMemo(() => flameTree(flame), [flame]);
  if (names instanceof Error) return <Empty>The frames cannot be read: {names.message}</Empty>;
  if (names === undefined) return <Empty>Unpacking …</Empty>;
  const levels = (
    <div class="tools">
      <span class="choices" role="group" aria-label="Order of the graph">
        {Object.entries(GRAPHS).map(([name, { name: text, title }]) => (
          <a
            key={name}
            class="choice"
            title={title}
            href={changed(route, { order: name === "plan" ? null : name, level: null, zoom: null })}
            aria-current={name === order ? "true" : undefined}
          >
            {text}
          </a>
        ))}
      </span>
      <Legend detail={detail} flame={flame} full={full} />
    </div>
  );
  if (tree.size === 0)
    return (
      <>
        {levels}
        <Empty>Nothing was sampled.</Empty>
      </>
    );
  const at = Number(route.options.get("zoom") ?? ALL);
  const zoom = Number.isInteger(at) && at >= 0 && at < tree.size ? at : ALL;
  const setZoom = (at: number) => go(changed(route, { zoom: at === ALL ? null : at }));
  return (
    <>
      {levels}
      <Graph key={order} tree={tree} label={(at) => labelOf(detail, names, tree, at)} zoom={zoom} setZoom={setZoom} />
      <p class="hint">
        {GRAPHS[order]!.title}. The width is CPU time; of neighbours the widest comes first. <kbd>↑</kbd> <kbd>↓</kbd>{" "}
        <kbd>←</kbd> <kbd>→</kbd> choose <kbd>Enter</kbd> zoom <kbd>Esc</kbd> whole graph
      </p>
    </>
  );
}

const FRAMES: [string, string][] = [
  ["k-generated", "generated code"],
  ["k-java", "Java"],
  ["k-interpreted", "interpreted"],
  ["k-python", "Python"],
  ["k-native", "native"],
  ["k-kernel", "kernel"],
];

/** The kinds of frames in the graph, with their colours. */
function Legend({ detail, flame, full }: { detail: Detail; flame: Flame; full: boolean }) {
  const operators = new Set<string>();
  const other = new Set<number>();
  flame.kind.forEach((kind, at) => {
    if (kind === OPERATOR) operators.add(detail.nodes[flame.of[at]!]?.kind ?? "other");
    else other.add(kind);
  });
  const kinds: [string, string][] = [
    ...KINDS.filter(([kind]) => operators.has(kind)).map(([kind, name]): [string, string] => [`o-${kind}`, name]),
    ...(other.has(STAGE) ? [["k-stage", "stage"] as [string, string]] : []),
    ...(other.has(HEADING) ? [["k-heading", "no operator"] as [string, string]] : []),
    ...(full ? FRAMES : []),
  ];
  return (
    <span class="legend">
      {kinds.map(([kind, text]) => (
        <span key={kind}>
          <span class={`key ${kind}`} /> {text}
        </span>
      ))}
    </span>
  );
}

/** The time axis above the graph. */
function Axis({ ns }: { ns: number }) {
  return (
    <div class="seconds" aria-hidden="true">
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <span key={part} style={{ left: `${100 * part}%` }} class={part === 0 ? "first" : part === 1 ? "last" : ""}>
          {time(part * ns)}
        </span>
      ))}
    </div>
  );
}

function Graph(props: { tree: FlameTree; label: (at: number) => Label; zoom: number; setZoom: (at: number) => void }) {
  const { tree, label, zoom } = props;
  const [at, setAt] = useState(zoom);
  const [hovered, setHovered] = useState<number>();
  const graph = useRef<HTMLDivElement>(null);
  const boxes = useMemo(() => layout(tree, zoom, NARROWEST), [tree, zoom]);
  const rows = Math.max(...boxes.map((box) => box.row)) + 1;
  const drawn = useMemo(() => new Set(boxes.map((box) => box.at)), [boxes]);
  const current = drawn.has(at) ? at : zoom;
  const focused = () => graph.current?.contains(document.activeElement) ?? false;
  const focus = (next: number) => {
    setAt(next);
    graph.current?.querySelector<HTMLElement>(`[data-frame="${next}"]`)?.focus();
  };
  // After a zoom, the zoomed frame gets the focus if the graph or no element had it.
  useEffect(() => {
    setAt(zoom);
    if (focused() || document.activeElement === document.body)
      graph.current?.querySelector<HTMLElement>(`[data-frame="${zoom}"]`)?.focus({ preventScroll: true });
  }, [zoom]);
  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const up = current === ALL ? ALL : tree.parent[current]!;
    const beside = (step: number) => {
      const all = children(tree, up).filter((child) => drawn.has(child));
      return current === ALL ? ALL : (all[all.indexOf(current) + step] ?? current);
    };
    const moves: Record<string, () => void> = {
      ArrowDown: () => {
        const first = children(tree, current)[0];
        if (first !== undefined && drawn.has(first)) focus(first);
      },
      ArrowUp: () => focus(up),
      ArrowLeft: () => focus(beside(-1)),
      ArrowRight: () => focus(beside(1)),
      Home: () => focus(ALL),
      Enter: () => props.setZoom(current),
      " ": () => props.setZoom(current),
      Escape: () => props.setZoom(ALL),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  const told = hovered ?? current;
  return (
    <>
      <ChosenFrame tree={tree} at={told} label={label(told)} />
      <Axis ns={zoom === ALL ? tree.all.cpu : tree.cpu[zoom]!} />
      <div
        ref={graph}
        class="flame"
        role="tree"
        aria-label="Flame graph"
        style={{ height: `${rows * 20}px` }}
        onKeyDown={keys}
        onMouseLeave={() => setHovered(undefined)}
      >
        {boxes.map((box) => (
          <Frame
            key={box.at}
            box={box}
            label={label(box.at)}
            ns={box.at === ALL ? tree.all.cpu : tree.cpu[box.at]!}
            around={box.row <= depth(tree, zoom) && zoom !== ALL && box.at !== zoom}
            current={box.at === current}
            enter={() => setHovered(box.at)}
            zoom={() => props.setZoom(box.at)}
          />
        ))}
      </div>
    </>
  );
}

const depth = (tree: FlameTree, at: number) => (at === ALL ? 0 : tree.flame.depth[at]! + 1);

function Frame(props: {
  box: Box;
  label: Label;
  ns: number;
  around: boolean;
  current: boolean;
  enter: () => void;
  zoom: () => void;
}) {
  const { box, label } = props;
  return (
    <div
      class={`frame ${label.kind} ${props.around ? "around" : ""}`}
      role="treeitem"
      aria-level={box.row + 1}
      aria-label={[label.text, time(props.ns), label.more].filter(Boolean).join(" ")}
      aria-selected={props.current}
      data-frame={box.at}
      tabIndex={props.current ? 0 : -1}
      style={{ left: `${box.left * 100}%`, width: `${box.width * 100}%`, top: `${box.row * 20}px` }}
      onMouseEnter={props.enter}
      onClick={props.zoom}
    >
      {box.width > 0.015 && (
        <>
          {label.text} {box.width > 0.06 && <b>{time(props.ns)}</b>}{" "}
          {box.width > 0.2 && label.more && <span class="detail">{label.more}</span>}
        </>
      )}
    </div>
  );
}

/** The full name and the figures of the chosen frame. */
function ChosenFrame({ tree, at, label }: { tree: FlameTree; at: number; label: Label }) {
  const cpu = at === ALL ? tree.all.cpu : tree.cpu[at]!;
  const samples = at === ALL ? tree.all.samples : tree.samples[at]!;
  const own = at === ALL ? 0 : tree.flame.cpu_ns[at]!;
  return (
    <div class="told" aria-live="polite">
      <span class="name" title={label.title}>
        {label.title}
      </span>
      <span class="figures">
        total <b>{time(cpu)}</b> ({percent(cpu, tree.all.cpu) || "0%"}) · self <b>{time(own)}</b> ·{" "}
        {plural(samples, "sample")}
      </span>
    </div>
  );
}

function labelOf(detail: Detail, names: FrameNames | null, tree: FlameTree, at: number): Label {
  if (at === ALL) return { text: "all", title: "all", kind: "k-all" };
  const of = tree.flame.of[at]!;
  switch (tree.flame.kind[at]) {
    case STAGE: {
      const stage = detail.stages[of];
      const text = stage ? `stage ${stageName(stage)}` : "stage";
      return { text, title: stage?.name ? `${text}: ${stage.name}` : text, kind: "k-stage" };
    }
    case HEADING: {
      const text = `[${detail.headings[of]?.name ?? ""}]`;
      return { text, title: text, kind: "k-heading" };
    }
    case OPERATOR: {
      const node = detail.nodes[of];
      if (!node) return { text: "operator", title: "operator", kind: "o-other" };
      const title = `${brief(node.detail || node.operator)} (node ${node.id})`;
      return { text: node.operator, more: rest(node), title, kind: `o-${node.kind}` };
    }
    default: {
      const text = names?.names[of] ?? "";
      return { text: shortened(text), title: text, kind: `k-${names?.kinds[names.kind[of] ?? 0] || "unknown"}` };
    }
  }
}

/** `org.apache.spark.Foo.bar` → `Foo.bar`; keeps other names as they are. */
function shortened(name: string): string {
  return name.replace(/^(?:[a-z][\w$]*\.)+(?=[A-Z])/, "");
}
