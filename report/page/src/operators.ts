// Operators for display: their texts without Spark's expression ids, and their kinds with colours.

import type { PlanNode } from "./generated/model";

/** The class of a kind's colour, and its name in a legend. */
export const KINDS: [kind: string, name: string][] = [
  ["scan", "scan"],
  ["filter", "filter"],
  ["project", "project"],
  ["aggregate", "aggregate"],
  ["join", "join"],
  ["exchange", "exchange"],
  ["sort", "sort"],
  ["window", "window"],
  ["generate", "generate"],
  ["python", "Python"],
  ["write", "write"],
  ["other", "other"],
];

/** Removes the ids by which Spark distinguishes equal names: `l_quantity#4L` → `l_quantity`. */
export const brief = (text: string): string => text.replace(/#\d+L?\b/g, "");

/** The text of a plan node after its name. */
export function rest(node: { operator: string; detail: string }): string {
  const { operator, detail } = node;
  const text = detail.startsWith(operator) ? detail.slice(operator.length) : detail.replace(/^FileScan \w+ /, "");
  return brief(text).trim();
}

/** Whether a node only passes rows on. */
export const passesOn = (node: PlanNode): boolean => node.passes;
