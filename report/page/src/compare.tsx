// This profile compared with another one.

import { change, perRow, percent, plural, time } from "./format";
import type { Comparison, Pair, UnmatchedQuery } from "./generated/model";
import { rest } from "./operators";
import { Bar, Empty, arrows, useLoaded } from "./parts";
import { type Route, go, link } from "./route";
import type { DataSource } from "./source";

export function ComparisonView({ source, route }: { source: DataSource; route: Route }) {
  const comparison = useLoaded(() => source.load("comparison"), [source]);
  if (comparison === undefined) return <Empty>Unpacking …</Empty>;
  if (comparison instanceof Error) return <Empty>The comparison cannot be read: {comparison.message}</Empty>;
  const pair = comparison.pairs.find((pair) => pair.fingerprint === route.path[1]);
  return pair ? (
    <article>
      <nav class="crumbs" aria-label="Place">
        <a href={link(["compare"])}>Comparison</a> › {pair.description || "no description"}
      </nav>
      <h1>{pair.description || "no description"}</h1>
      <PairTable pair={pair} />
    </article>
  ) : (
    <All comparison={comparison} />
  );
}

function All({ comparison }: { comparison: Comparison }) {
  const most = Math.max(1, ...comparison.pairs.flatMap((pair) => [pair.before_ns, pair.after_ns]));
  return (
    <section aria-label="Comparison" onKeyDown={arrows}>
      <h1>What changed</h1>
      <p class="legend">
        Before: <code>{comparison.before}</code>, {time(comparison.before_total.cpu_ns)} CPU in all. Runs with the same
        description and plan are one query. Times are means of a run.
      </p>
      {comparison.pairs.length === 0 ? (
        <Empty>No query is in both profiles.</Empty>
      ) : (
        <table class="list">
          <thead>
            <tr>
              <th>Query</th>
              <th class="number wide" title="Before → after">
                Runs
              </th>
              <th class="bars wide">
                <span class="sr">Bars of before and after</span>
              </th>
              <th class="number">Before</th>
              <th class="number">After</th>
              <th class="number">Δ</th>
              <th class="number wide">Δ%</th>
            </tr>
          </thead>
          <tbody>
            {comparison.pairs.map((pair) => {
              const open = link(["compare", pair.fingerprint]);
              return (
                <tr key={pair.fingerprint} onClick={() => go(open)}>
                  <td class="text">
                    <a data-row href={open} onClick={(event) => event.stopPropagation()}>
                      <span>{pair.description || "work outside queries"}</span>
                    </a>
                    {pair.replanned && (
                      <span class="badge" title="Equal descriptions; the plans differ">
                        other plan
                      </span>
                    )}
                  </td>
                  <td class="number muted wide">
                    {pair.before_runs} → {pair.after_runs}
                  </td>
                  <td class="bars wide">
                    <Two before={pair.before_ns} after={pair.after_ns} of={most} />
                  </td>
                  <Delta before={pair.before_ns} after={pair.after_ns} />
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
      <Only title="Only before" queries={comparison.only_before} />
      <Only title="Only now" queries={comparison.only_after} />
    </section>
  );
}

function Only({ title, queries }: { title: string; queries: UnmatchedQuery[] }) {
  if (queries.length === 0) return null;
  return (
    <>
      <h2>{title}</h2>
      <table class="list">
        <thead>
          <tr>
            <th>Query</th>
            <th class="number">Runs</th>
            <th class="number">CPU of a run</th>
          </tr>
        </thead>
        <tbody>
          {queries.map((query) => (
            <tr key={query.fingerprint}>
              <td class="text">
                <span>{query.description || "no description"}</span>
              </td>
              <td class="number">{query.runs}</td>
              <td class="number strong">{time(query.cpu_ns)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

/** Compares the operators of one query. */
export function PairTable({ pair }: { pair: Pair }) {
  const shown = pair.rows.filter((row) => row.before_ns || row.after_ns);
  const idle = pair.rows.length - shown.length;
  const most = Math.max(1, ...pair.rows.flatMap((row) => [row.before_ns ?? 0, row.after_ns ?? 0]));
  return (
    <>
      <p class="legend">
        <span class="key before" /> before, mean of {plural(pair.before_runs, "run")} <span class="key part" /> after,
        mean of {plural(pair.after_runs, "run")}
        {pair.replanned && (
          <>
            <span class="gap" />
            The plans differ; operators are matched by their text.
          </>
        )}
      </p>
      <table class="plan compare">
        <thead>
          <tr>
            <th>Operator</th>
            <th class="bars wide">
              <span class="sr">Bars of before and after</span>
            </th>
            <th class="number">Before</th>
            <th class="number">After</th>
            <th class="number">Δ self</th>
            <th class="number wide">Δ%</th>
            <th class="number wide" title="Its own CPU time for each row that it got, or put out if it got none">
              CPU per row
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row, at) => (
            <tr key={at} title={row.detail}>
              <td class="operator">
                <span class="indent" style={{ width: `${Math.min(row.depth, 30) * 14}px` }} />
                {row.heading ? (
                  <span class="heading">[{row.name}]</span>
                ) : (
                  <>
                    <b>{row.name}</b>
                    <span class="detail">{rest({ operator: row.name, detail: row.detail })}</span>
                  </>
                )}
              </td>
              <td class="bars wide">
                <Two before={row.before_ns ?? 0} after={row.after_ns ?? 0} of={most} />
              </td>
              <Delta before={row.before_ns} after={row.after_ns} />
              <td class="number muted wide">
                {row.before_ns_per_row !== null &&
                  row.after_ns_per_row !== null &&
                  `${perRow(row.before_ns_per_row)} → ${perRow(row.after_ns_per_row)}`}
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td>All</td>
            <td class="wide" />
            <Delta before={pair.before_ns} after={pair.after_ns} />
            <td class="wide" />
          </tr>
        </tfoot>
      </table>
      {idle > 0 && <p class="hint">{plural(idle, "operator")} without samples in both profiles: not shown.</p>}
    </>
  );
}

function Two({ before, after, of }: { before: number; after: number; of: number }) {
  return (
    <span class="two" title={`before ${time(before)}, after ${time(after)}`}>
      <Bar kind="before" part={before} of={of} />
      <Bar part={after} of={of} />
    </span>
  );
}

function Delta({ before, after }: { before: number | null; after: number | null }) {
  const delta = (after ?? 0) - (before ?? 0);
  const cell = (ns: number | null) => (
    <td class={`number ${ns ? "" : "faint"}`}>{ns === null ? "not there" : time(ns)}</td>
  );
  const share = before ? percent(Math.abs(delta), before) : "";
  return (
    <>
      {cell(before)}
      {cell(after)}
      <td class={`number strong ${delta > 0 ? "worse" : delta < 0 ? "better" : "faint"}`}>{change(delta)}</td>
      <td class="number muted wide">{share && `${delta > 0 ? "+" : "−"}${share}`}</td>
    </>
  );
}
