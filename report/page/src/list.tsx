// The queries of the profile, a page at a time: runs of the same query on one line, or every run.

import { type Family, familiesOf, familyOf, spreadOf } from "./families";
import { clipped, count, moment, percent, plural, time, timeMs } from "./format";
import type { Query, Summary } from "./generated/model";
import { Bar, Empty, Pages, SortHead, arrows } from "./parts";
import { type Route, changed, go, link, replace } from "./route";

const PAGE = 50;

/** The sort keys of a line, from its runs. */
const ORDERS: Record<string, (of: Family) => number> = {
  cpu: (of) => of.cpu_ns,
  runs: (of) => of.runs.length,
  waiting: (of) => of.waiting_ns ?? -1,
  duration: (of) => spreadOf(of.runs.map((run) => run.duration_ms))?.median ?? -1,
  started: (of) => Math.max(...of.runs.map((run) => run.started_ms ?? -1)),
};

/** A query's name in links: the application's number and its own. */
export const keyOf = (query: Query): string => `${query.app}-${query.query ?? "outside"}`;

export const titleOf = (query: Query): string =>
  query.query === null ? "Work outside queries" : `Query ${query.query}`;

/** The name of the query, which stands beside its number. */
export const nameOf = (query: Query): string => query.name || query.description || "no description";

export function List({ summary, route }: { summary: Summary; route: Route }) {
  const filter = route.options.get("filter") ?? "";
  const wanted = route.options.get("sort") ?? "cpu";
  const sort = wanted in ORDERS ? wanted : "cpu";
  const asked = route.options.get("runs");
  const [of] = asked ? summary.queries.filter((query) => query.query !== null && familyOf(query) === asked) : [];
  const grouped = asked !== "all" && !of;
  const repeated = familiesOf(summary.queries).some(({ runs }) => runs.length > 1);
  const chosen = of
    ? summary.queries.filter((query) => query.query !== null && familyOf(query) === asked)
    : summary.queries;
  const found = sorted(matching(chosen, summary, filter, grouped), sort);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  const page = Math.min(pages - 1, Math.max(0, Number(route.options.get("page") ?? 1) - 1 || 0));
  const shown = found.slice(page * PAGE, (page + 1) * PAGE);
  const toPage = (to: number) => go(changed(route, { page: to === 0 ? null : to + 1 }));
  const keys = (event: KeyboardEvent) => {
    if (event.key === "PageDown" && page < pages - 1) toPage(page + 1);
    else if (event.key === "PageUp" && page > 0) toPage(page - 1);
    else return arrows(event);
    event.preventDefault();
  };
  // Below the verdict, it is a heading of the second level.
  const Title = asked ? "h1" : "h2";
  const queries = chosen.filter((query) => query.query !== null).length;
  return (
    <section aria-label="Queries" onKeyDown={keys}>
      <Title class="title">
        {of ? (
          <>
            Runs of <span class="normal">{nameOf(of)}</span>{" "}
            <a class="clear" href={changed(route, { runs: null, page: null })}>
              all queries
            </a>
          </>
        ) : (
          "Queries"
        )}
      </Title>
      <div class="tools">
        <input
          id="filter"
          type="search"
          placeholder="Filter by text or number  ( / )"
          aria-label="Filter queries"
          value={filter}
          onInput={(event) => replace(changed(route, { filter: event.currentTarget.value, page: null }))}
        />
        <span class="muted" role="status">
          {filter ? `${count(found.length)} of ` : ""}
          {of ? plural(queries, "run") : plural(queries, "query")}
          {grouped && repeated && !filter && `, ${plural(found.filter(isQuery).length, "different one")}`}
        </span>
        {repeated && !of && (
          <label>
            <input
              type="checkbox"
              checked={!grouped}
              onChange={(event) => go(changed(route, { runs: event.currentTarget.checked ? "all" : null, page: null }))}
            />{" "}
            show all runs
          </label>
        )}
      </div>
      {shown.length === 0 ? (
        <Empty>{filter ? "No query fits the filter." : "The profile has no queries."}</Empty>
      ) : (
        <Table summary={summary} route={route} all={found} shown={shown} sort={sort} runs={grouped && repeated} />
      )}
      <Pages page={page} size={PAGE} of={found.length} what={grouped ? "queries" : "runs"} go={toPage} />
      <p class="hint keys">
        <kbd>/</kbd> filter <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> open <kbd>PgUp</kbd> <kbd>PgDn</kbd> pages
      </p>
    </section>
  );
}

const isQuery = (of: Family): boolean => of.typical.query !== null;

interface TableProps {
  summary: Summary;
  route: Route;
  all: Family[];
  shown: Family[];
  sort: string;
  /** Whether a line may stand for several runs. */
  runs: boolean;
}

function Table({ summary, route, all, shown, sort, runs }: TableProps) {
  const apps = summary.applications.length > 1;
  const order = (by: string) => go(changed(route, { sort: by === "cpu" ? null : by, page: null }));
  // The bars compare queries. Work outside queries may take longer than any query, so it does not set the scale.
  const most = Math.max(1, ...all.filter((of) => isQuery(of) || all.length === 1).map((of) => of.cpu_ns));
  return (
    <table class="list">
      <thead>
        <tr>
          <th>Query</th>
          {apps && <th class="wide">Application</th>}
          <th class="bars wide">
            <span class="sr">CPU bar</span>
          </th>
          <SortHead by="cpu" now={sort} go={order} title="CPU time of all its threads, from samples">
            CPU
          </SortHead>
          <th class="number" title="Part of the profile's CPU time">
            Share
          </th>
          {runs && (
            <>
              <SortHead by="runs" now={sort} go={order} title="How often the query ran: equal plans, or equal texts">
                Runs
              </SortHead>
              <th class="number wide" title="CPU time of a run: the median, and the least and the most">
                CPU of a run
              </th>
            </>
          )}
          <SortHead
            wide
            by="waiting"
            now={sort}
            go={order}
            title="Run time of its tasks without their CPU time, from Spark's task metrics"
          >
            Waiting
          </SortHead>
          <SortHead
            wide
            by="duration"
            now={sort}
            go={order}
            title={runs ? "From start to end of a run, the median" : "From start to end"}
          >
            Duration
          </SortHead>
          {!runs && (
            <>
              <th class="number wide">Stages</th>
              <th class="number wide">Tasks</th>
            </>
          )}
          <SortHead wide by="started" now={sort} go={order} title={runs ? "The last run" : undefined}>
            Started
          </SortHead>
        </tr>
      </thead>
      <tbody>
        {shown.map((of) => (
          <Row
            key={`${of.key} ${of.runs.length > 1 ? "" : keyOf(of.typical)}`}
            of={of}
            summary={summary}
            most={most}
            apps={apps}
            runs={runs}
          />
        ))}
      </tbody>
    </table>
  );
}

function Row(props: { of: Family; summary: Summary; most: number; apps: boolean; runs: boolean }) {
  const { of, summary, runs } = props;
  const query = of.typical;
  const several = of.runs.length > 1;
  const open = link(["query", keyOf(query), "plan"]);
  const app = summary.applications[query.app];
  const unfinished = of.runs.filter((run) => run.query !== null && run.duration_ms === null).length;
  const name = nameOf(query);
  const cpu = spreadOf(of.runs.map((run) => run.cost.cpu_ns))!;
  const duration = spreadOf(of.runs.map((run) => run.duration_ms));
  return (
    <tr class={query.query === null ? "aside" : of.cpu_ns === 0 ? "idle" : ""} onClick={() => go(open)}>
      <td class="text">
        <a data-row href={open} onClick={(event) => event.stopPropagation()}>
          {query.query !== null && !several && <b class="id">{query.query}</b>}
          <span
            class="name"
            title={several ? `${name}\nOpens the run with the median CPU time` : clipped(query.description)}
          >
            {name}
          </span>
        </a>
        {of.failed > 0 && (
          <span class="badge bad" title={of.runs.find((run) => run.error)?.error ?? ""}>
            {several ? `${count(of.failed)} failed` : "failed"}
          </span>
        )}
        {unfinished > of.failed && (
          <span class="badge" title="It did not end while it was profiled">
            {several ? `${count(unfinished)} unfinished` : "unfinished"}
          </span>
        )}
      </td>
      {props.apps && (
        <td class="muted app wide" title={app?.id}>
          {app?.name || app?.id || "JVM"}
        </td>
      )}
      <td class="bars wide">
        <Bar part={of.cpu_ns} of={props.most} />
      </td>
      <td class="number strong" title={plural(of.samples, "sample")}>
        {time(of.cpu_ns)}
      </td>
      <td class="number muted">{percent(of.cpu_ns, summary.total.cpu_ns)}</td>
      {runs && (
        <>
          <td class="number">
            {several ? (
              <a href={link([], { runs: of.key })} onClick={(event) => event.stopPropagation()}>
                {plural(of.runs.length, "run")}
              </a>
            ) : query.query === null ? (
              ""
            ) : (
              "1 run"
            )}
          </td>
          <td class="number wide">
            {several && cpu.high > 0 ? (
              <>
                {time(cpu.median)}
                <small class="range">
                  {time(cpu.low)} to {time(cpu.high)}
                </small>
              </>
            ) : (
              ""
            )}
          </td>
        </>
      )}
      <td class="number wide">{of.waiting_ns === null ? "" : time(of.waiting_ns)}</td>
      <td class="number wide">{duration === null ? "" : timeMs(duration.median)}</td>
      {!runs && (
        <>
          <td class="number wide">{count(query.stages)}</td>
          <td class="number wide">{count(query.tasks)}</td>
        </>
      )}
      <td class="number muted wide">{moment(Math.max(...of.runs.map((run) => run.started_ms ?? 0)))}</td>
    </tr>
  );
}

/** The lines of the runs that match the filter. */
function matching(queries: Query[], summary: Summary, filter: string, grouped: boolean): Family[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (query: Query) =>
    `${query.query ?? ""} ${query.name} ${query.description} ${summary.applications[query.app]?.name ?? ""} ${query.error ? "failed" : ""}`.toLowerCase();
  const fits = (query: Query) => words.every((word) => text(query).includes(word));
  const found = words.length ? queries.filter(fits) : queries;
  return grouped ? familiesOf(found) : found.flatMap((query) => familiesOf([query]));
}

/** Sorts the lines; work outside queries stays at the end. */
function sorted(lines: Family[], sort: string): Family[] {
  const order = ORDERS[sort]!;
  const keyed = lines.map((of) => ({ of, outside: isQuery(of) ? 0 : 1, key: order(of) }));
  return keyed.sort((a, b) => a.outside - b.outside || b.key - a.key).map(({ of }) => of);
}
