// Groups the runs of the same query into one line of the list.

import type { Query, Summary } from "./generated/model";

export interface Family {
  /** See `familyOf`. */
  key: string;
  /** The runs, most CPU time first. */
  runs: Query[];
  /** The run with the median CPU time, which represents the others. */
  typical: Query;
  /** CPU time of all runs, ns. */
  cpu_ns: number;
  samples: number;
  waiting_ns: number | null;
  failed: number;
}

/** The key of a query's runs in links. Work outside queries has a key of its own in each application. */
export const familyOf = (query: Query): string =>
  query.family === null ? `${query.app}-outside` : String(query.family);

export function familiesOf(queries: Query[]): Family[] {
  const found = new Map<string, Query[]>();
  for (const query of queries) {
    const key = familyOf(query);
    const runs = found.get(key);
    if (runs) runs.push(query);
    else found.set(key, [query]);
  }
  return [...found].map(([key, runs]) => family(key, runs));
}

function family(key: string, runs: Query[]): Family {
  runs.sort((a, b) => b.cost.cpu_ns - a.cost.cpu_ns);
  const waits = runs.flatMap((run) => (run.waiting_ns === null ? [] : [run.waiting_ns]));
  const sum = (of: (run: Query) => number) => runs.reduce((sum, run) => sum + of(run), 0);
  return {
    key,
    runs,
    typical: runs[Math.floor(runs.length / 2)]!,
    cpu_ns: sum((run) => run.cost.cpu_ns),
    samples: sum((run) => run.cost.samples),
    waiting_ns: waits.length === 0 ? null : waits.reduce((a, b) => a + b, 0),
    failed: runs.filter((run) => run.error).length,
  };
}

/** Smallest, median and greatest of the values of several runs. */
export interface Spread {
  low: number;
  median: number;
  high: number;
}

export function spreadOf(values: (number | null)[]): Spread | null {
  const sorted = values.filter((value): value is number => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const middle = sorted.length / 2;
  const median = sorted.length % 2 === 1 ? sorted[Math.floor(middle)]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { low: sorted[0]!, median, high: sorted.at(-1)! };
}

/** The runs of one query by start. */
export const runsOf = (summary: Summary, query: Query): Query[] =>
  query.family === null ? [query] : (summary.families[query.family]?.runs ?? []).map((at) => summary.queries[at]!);
