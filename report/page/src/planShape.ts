// The plan without the nodes that only pass rows on, and the places of its nodes in the graph.

import type { Cost, PlanNode } from "./generated/model";
import { passesOn } from "./operators";

/** A node that is shown. */
export interface Shown {
  node: PlanNode;
  /** Its index in the query's nodes. */
  at: number;
  /** Index of its parent among those shown. */
  parent: number | null;
  depth: number;
  /** Indices of its children among those shown. */
  children: number[];
}

export interface Shape {
  shown: Shown[];
  /** Number of nodes left out. `cost` and `waiting_ns` are their own. */
  hidden: number;
  cost: Cost;
  waiting_ns: number;
}

export function shapeOf(nodes: PlanNode[], all: boolean): Shape {
  const shape: Shape = { shown: [], hidden: 0, cost: { cpu_ns: 0, samples: 0 }, waiting_ns: 0 };
  /** For each node of the plan: the position of the first shown node on the way from it to the root. */
  const nearest: (number | null)[] = [];
  nodes.forEach((node, at) => {
    const parent = node.parent === null ? null : (nearest[node.parent] ?? null);
    if (!all && passesOn(node)) {
      nearest.push(parent);
      shape.hidden++;
      shape.cost.cpu_ns += node.own.cpu_ns;
      shape.cost.samples += node.own.samples;
      shape.waiting_ns += node.waits.reduce((sum, wait) => sum + wait.ns, 0);
      return;
    }
    nearest.push(shape.shown.length);
    const above = parent === null ? undefined : shape.shown[parent];
    above?.children.push(shape.shown.length);
    shape.shown.push({ node, at, parent, depth: above ? above.depth + 1 : 0, children: [] });
  });
  return shape;
}

/** The indices of the nodes below a closed node. */
export function hiddenUnder(shown: Shown[], closed: Set<number>): Set<number> {
  const hidden = new Set<number>();
  shown.forEach(({ parent }, index) => {
    if (parent !== null && (closed.has(shown[parent]!.at) || hidden.has(parent))) hidden.add(index);
  });
  return hidden;
}

/** A node's place in the graph: column and row, in units of a node. Scans are on top, as in the Spark UI. */
export interface Place {
  x: number;
  y: number;
}

/** Leaves are side by side; every other node is centred below its children. */
export function placesOf(shown: Shown[]): { places: Place[]; width: number; height: number } {
  const deepest = shown.reduce((most, { depth }) => Math.max(most, depth), 0);
  const places: Place[] = shown.map(({ depth }) => ({ x: 0, y: deepest - depth }));
  // Nodes are in depth-first order, so a loop from the end meets the rightmost leaf first.
  let leaves = 0;
  for (let index = shown.length - 1; index >= 0; index--) {
    const { children } = shown[index]!;
    if (children.length === 0) places[index]!.x = -leaves++;
    else places[index]!.x = (places[children[0]!]!.x + places[children.at(-1)!]!.x) / 2;
  }
  for (const place of places) place.x += Math.max(0, leaves - 1);
  return { places, width: Math.max(1, leaves), height: deepest + 1 };
}
