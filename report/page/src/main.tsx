// The page: the list of queries, one query, contention or skew of all, or the comparison, as the URL's hash says.

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { ComparisonView } from "./compare";
import { ContentionView } from "./contention";
import { moment, plural, time } from "./format";
import { List, keyOf } from "./list";
import type { Summary } from "./generated/model";
import { Empty, useLoaded } from "./parts";
import { QueryView } from "./query";
import { go, link, useRoute } from "./route";
import { SkewView } from "./skew";
import { type DataSource, embedded, fetched } from "./source";

function Page({ source }: { source: DataSource }) {
  const route = useRoute();
  const summary = useLoaded(() => source.load("summary"), [source]);
  useEffect(() => {
    window.addEventListener("keydown", globalKeys);
    return () => window.removeEventListener("keydown", globalKeys);
  }, []);
  useEffect(() => {
    if (summary && !(summary instanceof Error))
      document.title = `unfuse: ${summary.applications.map((app) => app.name || app.id).find(Boolean) ?? summary.profile}`;
  }, [summary]);
  if (!summary) return null;
  if (summary instanceof Error) return <Empty>This report cannot be read: {summary.message}</Empty>;
  const [view, key] = route.path;
  const query = view === "query" ? summary.queries.findIndex((query) => keyOf(query) === key) : -1;
  return (
    <>
      <Header summary={summary} view={view ?? ""} />
      <main>
        {query >= 0 ? (
          <QueryView key={query} source={source} summary={summary} at={query} route={route} />
        ) : view === "compare" && summary.compared ? (
          <ComparisonView source={source} route={route} />
        ) : view === "contention" && summary.contention ? (
          <ContentionView source={source} summary={summary} />
        ) : view === "skew" && summary.skew ? (
          <SkewView source={source} summary={summary} route={route} />
        ) : view === "query" ? (
          <Empty>
            This report has no such query. <a href="#/">All queries</a>
          </Empty>
        ) : (
          <List summary={summary} route={route} />
        )}
      </main>
      <footer>
        {summary.notes.map((note) => (
          <p key={note}>Note: {note}.</p>
        ))}
        <p>unfuse {summary.unfuse}</p>
      </footer>
    </>
  );
}

function Header({ summary, view }: { summary: Summary; view: string }) {
  const apps = summary.applications;
  const app = apps[0];
  return (
    <header>
      <div class="brand">
        <a href="#/" class="logo" title="All queries">
          unfuse
        </a>
        <strong>{apps.length === 1 ? app?.name || app?.id || "JVM" : plural(apps.length, "application")}</strong>
        {apps.length === 1 && app?.spark && <span class="muted">Spark {app.spark}</span>}
        {apps.length === 1 && app && app.started_ms > 0 && <span class="muted">{moment(app.started_ms)}</span>}
        <span class="muted path" title={summary.profile}>
          <bdi>{summary.profile}</bdi>
        </span>
      </div>
      <div class="figures">
        <span>
          <b>{time(summary.total.cpu_ns)}</b> CPU
        </span>
        <span>
          {plural(summary.total.samples, "sample")}
          {apps.length === 1 && app && app.rate_hz > 0 ? ` at ${app.rate_hz} Hz` : ""}
        </span>
        <nav aria-label="Views">
          <a href="#/" aria-current={["contention", "skew", "compare"].includes(view) ? undefined : "page"}>
            Queries
          </a>
          {summary.contention && (
            <a href={link(["contention"])} aria-current={view === "contention" ? "page" : undefined}>
              Contention
            </a>
          )}
          {summary.skew && (
            <a href={link(["skew"])} aria-current={view === "skew" ? "page" : undefined}>
              Skew
            </a>
          )}
          {summary.compared && (
            <a href={link(["compare"])} aria-current={view === "compare" ? "page" : undefined}>
              Comparison
            </a>
          )}
        </nav>
      </div>
    </header>
  );
}

/** `/` goes to the filter, from anywhere. */
function globalKeys(event: KeyboardEvent): void {
  const typing = (event.target as HTMLElement).tagName === "INPUT";
  const filter = document.getElementById("filter") as HTMLInputElement | null;
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    if (filter) filter.select();
    else go("#/");
    if (!filter) setTimeout(() => document.getElementById("filter")?.focus(), 50);
  } else if (event.key === "Escape" && typing) {
    (event.target as HTMLElement).blur();
  }
}

const root = document.getElementById("page")!;
root.textContent = "";
render(<Page source={document.getElementById("block-summary") ? embedded(document) : fetched(".")} />, root);
