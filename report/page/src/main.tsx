// The page. The URL's hash selects the view: the list of queries, one query, contention, skew or the comparison.

import { render } from "preact";
import { useEffect } from "preact/hooks";
import { AdviceView } from "./advice";
import { ComparisonView } from "./compare";
import { ContentionView, NoContention } from "./contentionAll";
import { moment, plural, time } from "./format";
import { List, keyOf, titleOf } from "./list";
import type { Summary } from "./generated/model";
import { Empty, Notes, useLoaded } from "./parts";
import { QueryView } from "./query";
import { type Route, go, link, useFreshView, useRoute } from "./route";
import { NoSkew, SkewView } from "./skew";
import { type DataSource, embedded, fetched } from "./source";
import { VerdictView } from "./verdict";

function Page({ source }: { source: DataSource }) {
  const route = useRoute();
  const summary = useLoaded(() => source.load("summary"), [source]);
  useEffect(() => {
    window.addEventListener("keydown", globalKeys);
    return () => window.removeEventListener("keydown", globalKeys);
  }, []);
  useFreshView(
    summary && !(summary instanceof Error)
      ? `${route.path.slice(0, 2).join("/")} ${route.options.get("runs") ?? ""}`
      : "",
  );
  useEffect(() => {
    if (summary && !(summary instanceof Error)) document.title = titleOfPage(summary, route);
  }, [summary, route]);
  if (!summary) return null;
  if (summary instanceof Error) return <Empty>This report cannot be read: {summary.message}</Empty>;
  const [view, key] = route.path;
  const query = view === "query" ? summary.queries.findIndex((query) => keyOf(query) === key) : -1;
  return (
    <>
      <Header summary={summary} view={view ?? ""} />
      <main tabIndex={-1}>
        {query >= 0 ? (
          <QueryView key={query} source={source} summary={summary} at={query} route={route} />
        ) : view === "compare" && summary.compared ? (
          <ComparisonView source={source} route={route} />
        ) : view === "contention" ? (
          summary.contention ? (
            <ContentionView source={source} summary={summary} />
          ) : (
            <NoContention />
          )
        ) : view === "skew" ? (
          summary.skew ? (
            <SkewView source={source} summary={summary} route={route} />
          ) : (
            <NoSkew />
          )
        ) : view === "advice" ? (
          <AdviceView summary={summary} />
        ) : view === "query" ? (
          <Empty>
            This report has no such query. <a href="#/">All queries</a>
          </Empty>
        ) : (
          <>
            {!route.options.get("runs") && <VerdictView summary={summary} />}
            <List summary={summary} route={route} />
          </>
        )}
      </main>
      <footer>
        <Notes of={summary.notes} />
        <p>unfuse {summary.unfuse}</p>
      </footer>
    </>
  );
}

/** The title of the browser tab: the view and the application. */
function titleOfPage(summary: Summary, route: Route): string {
  const app = summary.applications.map((app) => app.name || app.id).find(Boolean) ?? summary.profile;
  const [view, key] = route.path;
  const query = view === "query" ? summary.queries.find((query) => keyOf(query) === key) : undefined;
  const place = query
    ? titleOf(query)
    : { contention: "Contention", skew: "Skew", advice: "Advice", compare: "Comparison" }[view ?? ""];
  return [place, `unfuse: ${app}`].filter(Boolean).join(" - ");
}

function Header({ summary, view }: { summary: Summary; view: string }) {
  const apps = summary.applications;
  const app = apps.length === 1 ? apps[0] : undefined;
  const views: [view: string, name: string, there: boolean][] = [
    ["", "Queries", true],
    ["contention", "Contention", true],
    ["skew", "Skew", true],
    ["advice", "Advice", true],
    ["compare", "Comparison", summary.compared],
  ];
  const current = views.some(([name]) => name === view) ? view : "";
  return (
    <header>
      <div class="brand">
        <a href="#/" class="logo" title="All queries">
          unfuse
        </a>
        <strong>{apps.length === 1 ? app?.name || app?.id || "JVM" : plural(apps.length, "application")}</strong>
      </div>
      <nav aria-label="Views">
        {views
          .filter(([, , there]) => there)
          .map(([name, text]) => (
            <a key={name} href={link([name].filter(Boolean))} aria-current={current === name ? "page" : undefined}>
              {text}
            </a>
          ))}
      </nav>
      <div class="facts">
        {app?.spark && <span>Spark {app.spark}</span>}
        {app && app.started_ms > 0 && <span>{moment(app.started_ms)}</span>}
        <span>{time(summary.total.cpu_ns)} CPU</span>
        <span>
          {plural(summary.total.samples, "sample")}
          {app && app.rate_hz > 0 ? ` at ${app.rate_hz} Hz` : ""}
        </span>
        <span class="path" title={summary.profile}>
          <bdi>{summary.profile}</bdi>
        </span>
      </div>
    </header>
  );
}

/** `/` moves the focus to the filter, from every view. */
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
