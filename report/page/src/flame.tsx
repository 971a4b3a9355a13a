// The zoomable flame graph, root at the top.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ALL, type Box, type FlameTree, children, flameTree, layout } from "./flameTree";
import { percent, plural, time } from "./format";
import { type Detail, type FrameNames, HEADING, OPERATOR, STAGE } from "./generated/model";
import { Empty, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { changed, go } from "./route";
import { stageName } from "./stages";

/** Frames narrower than this part of the width are not drawn. */
const NARROWEST = 0.0012;

interface Label {
  text: string;
  title: string;
  kind: string;
}

export function FlameTab({ detail, source, route }: TabProps) {
  const full = route.options.get("level") === "full";
  const names = useLoaded<FrameNames | null>(
    () => (full ? source.load("frames") : Promise.resolve(null)),
    [source, full],
  );
  const flame = full ? detail.frames : detail.operators;
  const tree = useMemo(() => flameTree(flame), [flame]);
  if (names instanceof Error) return <Empty>The frames cannot be read: {names.message}</Empty>;
  if (names === undefined) return <Empty>Unpacking …</Empty>;
  const levels = (
    <div class="tools" role="group" aria-label="Level">
      <a class="choice" href={changed(route, { level: null, zoom: null })} aria-current={!full}>
        Operators
      </a>
      <a class="choice" href={changed(route, { level: "full", zoom: null })} aria-current={full}>
        All frames
      </a>
      <Legend full={full} />
    </div>
  );
  if (tree.size === 0)
    return (
      <>
        {levels}
        <Empty>Nothing was sampled.</Empty>
      </>
    );
  const asked = Number(route.options.get("zoom") ?? ALL);
  const zoom = Number.isInteger(asked) && asked >= 0 && asked < tree.size ? asked : ALL;
  const setZoom = (at: number) => go(changed(route, { zoom: at === ALL ? null : at }));
  return (
    <>
      {levels}
      <Graph
        key={full ? "full" : "operators"}
        tree={tree}
        label={(at) => labelOf(detail, names, tree, at)}
        zoom={zoom}
        setZoom={setZoom}
      />
      <p class="hint">
        <kbd>↑</kbd> <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd> choose <kbd>Enter</kbd> zoom <kbd>Esc</kbd> whole graph.
        Widths are CPU time; of siblings the widest comes first.
      </p>
    </>
  );
}

function Legend({ full }: { full: boolean }) {
  const kinds: [string, string][] = full
    ? [
        ["operator", "operator"],
        ["generated", "generated code"],
        ["java", "Java"],
        ["interpreted", "interpreted"],
        ["native", "native"],
        ["kernel", "kernel"],
      ]
    : [
        ["stage", "stage"],
        ["operator", "operator"],
        ["heading", "no operator"],
      ];
  return (
    <span class="legend">
      {kinds.map(([kind, text]) => (
        <span key={kind}>
          <span class={`key k-${kind}`} /> {text}
        </span>
      ))}
    </span>
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
  // After a zoom the frame zoomed to has the focus, if the graph had it.
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
      <Told tree={tree} at={told} label={label(told)} />
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
  around: boolean;
  current: boolean;
  enter: () => void;
  zoom: () => void;
}) {
  const { box, label } = props;
  return (
    <div
      class={`frame k-${label.kind} ${props.around ? "around" : ""}`}
      role="treeitem"
      aria-level={box.row + 1}
      aria-label={label.text}
      aria-selected={props.current}
      data-frame={box.at}
      tabIndex={props.current ? 0 : -1}
      style={{ left: `${box.left * 100}%`, width: `${box.width * 100}%`, top: `${box.row * 20}px` }}
      onMouseEnter={props.enter}
      onClick={props.zoom}
    >
      {box.width > 0.015 ? label.text : ""}
    </div>
  );
}

/** What the chosen frame is, in full. */
function Told({ tree, at, label }: { tree: FlameTree; at: number; label: Label }) {
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
  if (at === ALL) return { text: "all", title: "all", kind: "all" };
  const of = tree.flame.of[at]!;
  switch (tree.flame.kind[at]) {
    case STAGE: {
      const stage = detail.stages[of];
      const text = stage ? `stage ${stageName(stage)}` : "stage";
      return { text, title: stage?.name ? `${text}: ${stage.name}` : text, kind: "stage" };
    }
    case HEADING: {
      const text = `[${detail.headings[of]?.name ?? ""}]`;
      return { text, title: text, kind: "heading" };
    }
    case OPERATOR: {
      const node = detail.nodes[of];
      const text = node?.detail || node?.operator || "";
      return { text, title: `${text}${node ? ` (node ${node.id})` : ""}`, kind: "operator" };
    }
    default: {
      const text = names?.names[of] ?? "";
      return { text: shortened(text), title: text, kind: names?.kinds[names.kind[of] ?? 0] || "unknown" };
    }
  }
}

/** `org.apache.spark.Foo.bar` → `Foo.bar`; what else it is stays. */
function shortened(name: string): string {
  return name.replace(/^(?:[a-z][\w$]*\.)+(?=[A-Z])/, "");
}
