// The plan of a query: as a tree or as a graph, with the CPU time and waiting of every operator.

import { useMemo } from "preact/hooks";
import { percent, plural, time } from "./format";
import type { Cost, CostByStanding } from "./generated/model";
import { Empty } from "./parts";
import { PlanGraph } from "./planGraph";
import { Details } from "./planNode";
import { shapeOf } from "./planShape";
import { PlanTree } from "./planTree";
import type { TabProps } from "./query";
import { changed, go, link } from "./route";
import { keyOf } from "./list";

export function PlanTab({ detail, query, route }: TabProps) {
  const { nodes, headings } = detail;
  const everything = route.options.get("nodes") === "all";
  const graph = route.options.get("view") === "graph" && nodes.length > 0;
  const shape = useMemo(() => shapeOf(nodes, everything), [nodes, everything]);
  const chosen = route.options.get("node");
  const choose = (id: string) => go(changed(route, { node: id === chosen ? null : id }));
  const all = query.cost.cpu_ns;
  if (nodes.length === 0 && headings.length === 0)
    return (
      <Empty>Nothing was sampled in this query{query.query === null ? "" : ", and no plan of it was recorded"}.</Empty>
    );
  const waits = detail.waiting_ns !== null;
  const where = { query: keyOf(query), all };
  const selected = shape.shown.find(({ node }) => String(node.id) === chosen);
  const passing = everything ? shapeOf(nodes, false).hidden : shape.hidden;
  return (
    <>
      {nodes.length > 0 && (
        <div class="tools">
          <span class="choices" role="group" aria-label="View of the plan">
            <a class="choice" href={changed(route, { view: null })} aria-current={graph ? undefined : "true"}>
              Tree
            </a>
            <a class="choice" href={changed(route, { view: "graph" })} aria-current={graph ? "true" : undefined}>
              Graph
            </a>
          </span>
          {passing > 0 && (
            <label>
              <input
                type="checkbox"
                checked={everything}
                onChange={(event) => go(changed(route, { nodes: event.currentTarget.checked ? "all" : null }))}
              />{" "}
              show {plural(passing, "node")} that only hand rows on
            </label>
          )}
          {!graph && <Legend nodes={nodes.length > 0} waits={waits} />}
        </div>
      )}
      {!waits && query.waiting_ns !== null && (
        <p class="legend">
          Waits of operators were not recorded. Spark's metrics know them for each stage:{" "}
          <a href={link(["query", keyOf(query), "stages"])}>
            {time(query.waiting_ns)} in {plural(query.stages, "stage")}
          </a>
          .
        </p>
      )}
      {graph ? (
        <>
          <PlanGraph shown={shape.shown} all={all} chosen={chosen} choose={choose} />
          {selected && (
            <div class="slice pinned" role="status">
              <Details node={selected.node} waits={waits} where={where} />
            </div>
          )}
          <p class="hint">
            Data flows downwards. Each box has the operator's own CPU time and its share of the query. <kbd>↑</kbd>{" "}
            <kbd>↓</kbd> <kbd>←</kbd> <kbd>→</kbd> choose <kbd>Enter</kbd> whole text
          </p>
        </>
      ) : (
        <>
          <PlanTree
            detail={detail}
            shape={shape}
            where={where}
            chosen={chosen}
            choose={choose}
            showAll={changed(route, { nodes: "all" })}
          />
          <p class="hint">
            <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>←</kbd> <kbd>→</kbd> close and open <kbd>Enter</kbd> whole text
          </p>
        </>
      )}
      <Certainty placed={detail.placed} />
    </>
  );
}

function Legend({ nodes, waits }: { nodes: boolean; waits: boolean }) {
  return (
    <span class="legend">
      <span>
        <span class="key part" /> its own CPU time
      </span>
      {nodes && (
        <span>
          <span class="key whole" /> with everything below it
        </span>
      )}
      {waits && (
        <span>
          <span class="key fetch" /> its own waiting
        </span>
      )}
      {waits && nodes && (
        <span>
          <span class="key waiting" /> with everything below it
        </span>
      )}
    </span>
  );
}

/** How much of the tasks' CPU time is proved to belong to its operator. */
function Certainty({ placed }: { placed: CostByStanding }) {
  const parts: [string, Cost][] = [
    ["proved to belong to its operator", placed.proved],
    ["attributed to an operator by a guess", placed.guessed],
    ["work of no operator", placed.headings],
    ["unattributed", placed.unattributed],
  ];
  const all = parts.reduce((sum, [, cost]) => sum + cost.cpu_ns, 0);
  if (all === 0) return null;
  const known = parts.filter(([, cost]) => cost.cpu_ns > 0);
  return (
    <p class="hint" title="By the lines and classes on the stacks; unfuse top --by rule has more">
      CPU time of tasks: {known.map(([name, cost]) => `${percent(cost.cpu_ns, all)} ${name}`).join(", ")}. A share says
      where the processor was, not what the query would save without the operator.
    </p>
  );
}
