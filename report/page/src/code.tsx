// Generated source with the CPU time of its lines and their operators.

import { useEffect, useMemo, useState } from "preact/hooks";
import { percent, plural, time } from "./format";
import type { Detail, HotSource, Source } from "./generated/model";
import { Empty, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { changed, go } from "./route";

/** Cold lines shown around hot ones. */
const CONTEXT = 4;
/** Hot lines listed above the text. */
const HOTTEST = 8;

export function CodeTab({ detail, source, query, route }: TabProps) {
  const wanted = route.options.get("source");
  const hot = detail.sources.find((one) => one.hash === wanted) ?? detail.sources[0];
  const text = useLoaded(
    () => (hot ? source.load(`source-${hot.hash}`) : Promise.reject(new Error("none"))),
    [source, hot?.hash],
  );
  if (!hot) return <Empty>No sample of this query is in generated code.</Empty>;
  return (
    <>
      <div class="tools">
        <label>
          Generated class{" "}
          <select
            value={hot.hash}
            onChange={(event) => go(changed(route, { source: event.currentTarget.value, line: null }))}
          >
            {detail.sources.map((one, at) => (
              <option key={one.hash} value={one.hash}>
                {at + 1}. {nameOf(detail, one)}: {time(one.cost.cpu_ns)} (
                {percent(one.cost.cpu_ns, query.cost.cpu_ns) || "0%"})
              </option>
            ))}
          </select>
        </label>
        <span class="muted">sources/{hot.hash}.java</span>
      </div>
      {text === undefined ? (
        <Empty>Unpacking …</Empty>
      ) : text instanceof Error ? (
        <Empty>The profile has no text of this class.</Empty>
      ) : (
        <Code
          key={hot.hash}
          detail={detail}
          hot={hot}
          source={text}
          all={query.cost.cpu_ns}
          line={Number(route.options.get("line") ?? 0)}
        />
      )}
    </>
  );
}

/** The operator of the first plan node in the source, such as `WholeStageCodegen (3)`; without a node, the hash. */
function nameOf(detail: Detail, hot: HotSource): string {
  const root = hot.nodes.map((at) => detail.nodes[at]).find(Boolean);
  return root ? root.operator : hot.hash;
}

interface Region {
  operator: string;
  detail: string;
  produces: boolean;
  id: number;
}

interface CodeProps {
  detail: Detail;
  hot: HotSource;
  source: Source;
  all: number;
  /** The line to scroll to; 0 for none. */
  line: number;
}

function Code({ detail, hot, source, all, line: wanted }: CodeProps) {
  const [whole, setWhole] = useState(false);
  const lines = useMemo(() => source.text.split(/\r?\n/), [source]);
  const regions = useMemo(() => regionsOf(detail, hot, source, lines.length), [detail, hot, source]);
  const depths = useMemo(() => depthsOf(lines), [lines]);
  const costs = useMemo(() => new Map(hot.lines.map(([line, cpu, samples]) => [line, { cpu, samples }])), [hot]);
  const hottest = useMemo(() => [...hot.lines].sort((a, b) => b[1] - a[1]).slice(0, HOTTEST), [hot]);
  const most = hottest[0]?.[1] ?? 1;
  const shown = useMemo(() => visible(lines.length, hot, whole), [lines, hot, whole]);
  const jump = (line: number) => {
    const row = document.getElementById(`line-${line}`);
    row?.scrollIntoView({ block: "center" });
    row?.focus({ preventScroll: true });
  };
  useEffect(() => jump(wanted), [wanted]);
  return (
    <>
      <div class="hottest" role="group" aria-label="Hottest lines">
        <span class="muted">Hottest lines</span>
        {hottest.map(([line, cpu]) => (
          <button key={line} type="button" onClick={() => jump(line)} title={lines[line - 1]?.trim()}>
            {line === 0 ? "no line" : line} <b>{percent(cpu, all)}</b>
          </button>
        ))}
        <label class="all">
          <input type="checkbox" checked={whole} onChange={(event) => setWhole(event.currentTarget.checked)} /> all{" "}
          {plural(lines.length, "line")}
        </label>
      </div>
      <div class="scroll">
        <table class="code" aria-label={`Source of ${source.class}`}>
          <thead>
            <tr>
              <th class="number wide">CPU</th>
              <th class="number">Share</th>
              <th class="wide">Operator</th>
              <th class="number">Line</th>
              <th>{source.class}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((range) =>
              range.cut ? (
                <tr key={`cut-${range.from}`} class="cut">
                  <td class="wide" />
                  <td />
                  <td class="wide" />
                  <td class="number">⋮</td>
                  <td>{plural(range.to - range.from + 1, "line")} without samples</td>
                </tr>
              ) : (
                lines.slice(range.from - 1, range.to).map((text, index) => {
                  const line = range.from + index;
                  const cost = costs.get(line);
                  const region = regions[line];
                  const before = line > range.from ? regions[line - 1] : undefined;
                  const heat = cost ? Math.max(0.08, cost.cpu / most) : 0;
                  return (
                    <tr
                      key={line}
                      id={`line-${line}`}
                      tabIndex={cost ? -1 : undefined}
                      class={cost ? `hot h${Math.ceil(heat * 5)}` : ""}
                    >
                      <td class="number wide" title={cost && plural(cost.samples, "sample")}>
                        {cost ? time(cost.cpu) : ""}
                      </td>
                      <td class="number muted">{cost ? percent(cost.cpu, all) : ""}</td>
                      <td
                        class={`region wide ${region ? `r${region.id % 6}` : ""}`}
                        title={region && `${region.detail} (${region.produces ? "produces" : "consumes"} rows)`}
                      >
                        {region && region !== before ? `${region.produces ? "+" : "<"} ${region.operator}` : ""}
                      </td>
                      <td class="number line">{line}</td>
                      <td
                        class={`text ${MARKER.test(text) ? "marker" : ""}`}
                        style={{ paddingLeft: `${8 + 14 * depths[line - 1]!}px` }}
                      >
                        <code>{text.trimStart()}</code>
                      </td>
                    </tr>
                  );
                })
              ),
            )}
          </tbody>
        </table>
      </div>
      <p class="hint">
        A sample counts at its innermost line of generated code, with what that line called. <code>+</code> code that
        produces rows, <code>&lt;</code> code that consumes one.
      </p>
    </>
  );
}

/** The innermost region of every line. Adjacent lines of a region share one object. */
function regionsOf(detail: Detail, hot: HotSource, source: Source, count: number): (Region | undefined)[] {
  const regions = new Array<Region | undefined>(count + 1).fill(undefined);
  for (const [from, to, id, produces] of source.regions) {
    const node = detail.nodes[hot.nodes[id] ?? -1];
    if (node) regions.fill({ operator: node.operator, detail: node.detail, produces, id }, from, to + 1);
  }
  return regions;
}

const MARKER = /^\s*\/\* (Begin|End)CodeRegion\(/;

/** The number of open braces at each line. It replaces the indentation, which the compiled text lacks. */
function depthsOf(lines: string[]): number[] {
  let depth = 0;
  return lines.map((line) => {
    const code = line.replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\/\/.*|\/\*.*?\*\//g, "");
    const closing = /^\s*\}/.test(code) ? 1 : 0;
    const at = Math.max(0, depth - closing);
    depth = Math.max(0, depth + (code.split("{").length - code.split("}").length));
    return Math.min(at, 24);
  });
}

interface Range {
  from: number;
  to: number;
  cut: boolean;
}

/** Ranges of lines near hot lines, and the ranges cut out between them. */
function visible(count: number, hot: HotSource, whole: boolean): Range[] {
  if (whole) return [{ from: 1, to: count, cut: false }];
  const ranges: Range[] = [];
  let next = 1;
  const cut = (to: number) => to >= next && ranges.push({ from: next, to, cut: true });
  for (const [line] of [...hot.lines].sort((a, b) => a[0] - b[0])) {
    if (line === 0) continue;
    const [from, to] = [Math.max(1, line - CONTEXT), Math.min(count, line + CONTEXT)];
    const last = ranges.at(-1);
    if (last && !last.cut && from <= last.to + 1) last.to = Math.max(last.to, to);
    else {
      cut(from - 1);
      ranges.push({ from, to, cut: false });
    }
    next = to + 1;
  }
  cut(count);
  return ranges;
}
