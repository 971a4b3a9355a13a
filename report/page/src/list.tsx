// Every query of the profile, a page at a time.

import { count, moment, percent, plural, time, timeMs } from "./format";
import type { Query, Summary } from "./generated/model";
import { Bar, Empty, Pages, SortHead, arrows } from "./parts";
import { type Route, changed, go, link, replace } from "./route";

const PAGE = 50;

const ORDERS: Record<string, (query: Query) => number> = {
  cpu: (query) => query.cost.cpu_ns,
  waiting: (query) => query.waiting_ns ?? -1,
  duration: (query) => query.duration_ms ?? -1,
  started: (query) => query.started_ms ?? -1,
};

/** A query's name in links: the application's number and its own. */
export const keyOf = (query: Query): string => `${query.app}-${query.query ?? "outside"}`;

export const titleOf = (query: Query): string => (query.query === null ? "Outside queries" : `Query ${query.query}`);

export function List({ summary, route }: { summary: Summary; route: Route }) {
  const filter = route.options.get("filter") ?? "";
  const wanted = route.options.get("sort") ?? "cpu";
  const sort = wanted in ORDERS ? wanted : "cpu";
  const found = selected(summary, filter, sort);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  const page = Math.min(pages - 1, Math.max(0, Number(route.options.get("page") ?? 1) - 1 || 0));
  const shown = found.slice(page * PAGE, (page + 1) * PAGE);
  // Work outside queries may be more than any query; the bars compare queries.
  const compared = summary.queries.some((query) => query.query !== null && query.cost.cpu_ns > 0);
  const most = summary.queries.reduce(
    (most, query) => (compared && query.query === null ? most : Math.max(most, query.cost.cpu_ns)),
    1,
  );
  const apps = summary.applications.length > 1;
  const order = (by: string) => go(changed(route, { sort: by === "cpu" ? null : by, page: null }));
  const toPage = (to: number) => go(changed(route, { page: to === 0 ? null : to + 1 }));
  const keys = (event: KeyboardEvent) => {
    if (event.key === "PageDown" && page < pages - 1) toPage(page + 1);
    else if (event.key === "PageUp" && page > 0) toPage(page - 1);
    else return arrows(event);
    event.preventDefault();
  };
  return (
    <section aria-label="Queries" onKeyDown={keys}>
      <div class="tools">
        <input
          id="filter"
          type="search"
          placeholder="Filter by text or number  ( / )"
          aria-label="Filter queries"
          value={filter}
          onInput={(event) => replace(changed(route, { filter: event.currentTarget.value, page: null }))}
        />
        <span class="muted">
          {filter ? `${count(found.length)} of ` : ""}
          {plural(summary.queries.filter((query) => query.query !== null).length, "query")}
        </span>
      </div>
      {shown.length === 0 ? (
        <Empty>{filter ? "No query fits the filter." : "No queries in this profile."}</Empty>
      ) : (
        <table class="list">
          <thead>
            <tr>
              <th>Query</th>
              {apps && <th>Application</th>}
              <th class="bars">
                <span class="sr">CPU bar</span>
              </th>
              <SortHead by="cpu" now={sort} go={order} title="CPU time of all its threads, from samples">
                CPU
              </SortHead>
              <th class="number" title="Part of the profile's CPU time">
                Share
              </th>
              <SortHead
                by="waiting"
                now={sort}
                go={order}
                title="Run time of its tasks without their CPU time, from Spark's task metrics"
              >
                Waiting
              </SortHead>
              <SortHead by="duration" now={sort} go={order} title="From start to end">
                Duration
              </SortHead>
              <th class="number">Stages</th>
              <th class="number">Tasks</th>
              <SortHead by="started" now={sort} go={order}>
                Started
              </SortHead>
            </tr>
          </thead>
          <tbody>
            {shown.map((query) => (
              <Row key={keyOf(query)} query={query} summary={summary} most={most} apps={apps} />
            ))}
          </tbody>
        </table>
      )}
      <Pages page={page} size={PAGE} of={found.length} what="queries" go={toPage} />
      <p class="hint">
        <kbd>/</kbd> filter <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> open <kbd>PgUp</kbd> <kbd>PgDn</kbd> pages
      </p>
    </section>
  );
}

function Row(props: { query: Query; summary: Summary; most: number; apps: boolean }) {
  const { query, summary } = props;
  const open = link(["query", keyOf(query), "plan"]);
  const app = summary.applications[query.app];
  return (
    <tr class={query.query === null ? "aside" : ""} onClick={() => go(open)}>
      <td class={`text ${query.error || (query.query !== null && query.duration_ms === null) ? "badged" : ""}`}>
        <a data-row href={open} onClick={(event) => event.stopPropagation()}>
          {query.query !== null && <b class="id">{query.query}</b>}
          <span title={query.description}>{query.description || "no description"}</span>
        </a>
        {query.error && (
          <span class="badge bad" title={query.error}>
            failed
          </span>
        )}
        {query.query !== null && query.duration_ms === null && (
          <span class="badge" title="It did not end while it was profiled">
            unfinished
          </span>
        )}
      </td>
      {props.apps && (
        <td class="muted app" title={app?.id}>
          {app?.name || app?.id || "JVM"}
        </td>
      )}
      <td class="bars">
        <Bar part={query.cost.cpu_ns} of={props.most} />
      </td>
      <td class="number strong" title={plural(query.cost.samples, "sample")}>
        {time(query.cost.cpu_ns)}
      </td>
      <td class="number muted">{percent(query.cost.cpu_ns, summary.total.cpu_ns)}</td>
      <td class="number">{query.waiting_ns === null ? "" : time(query.waiting_ns)}</td>
      <td class="number">{query.duration_ms === null ? "" : timeMs(query.duration_ms)}</td>
      <td class="number">{count(query.stages)}</td>
      <td class="number">{count(query.tasks)}</td>
      <td class="number muted">{moment(query.started_ms)}</td>
    </tr>
  );
}

function selected(summary: Summary, filter: string, sort: string): Query[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (query: Query) =>
    `${query.query ?? ""} ${query.description} ${summary.applications[query.app]?.name ?? ""} ${query.error ? "failed" : ""}`.toLowerCase();
  const found = words.length
    ? summary.queries.filter((query) => words.every((word) => text(query).includes(word)))
    : [...summary.queries];
  const order = ORDERS[sort]!;
  // Work outside queries stays at the end.
  const rank = (query: Query) => (query.query === null ? 1 : 0);
  return found.sort((a, b) => rank(a) - rank(b) || order(b) - order(a));
}
