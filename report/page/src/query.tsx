// One query: its figures, and tabs for plan, wall time, what would help, stages, flame graph, source, contention, skew and comparison.

import { CodeTab } from "./code";
import { PairTable } from "./compare";
import { ContentionTab } from "./contention";
import { FlameTab } from "./flame";
import { count, moment, percent, time, timeMs } from "./format";
import { familyOf, runsOf } from "./families";
import { keyOf, nameOf, titleOf } from "./list";
import type { Detail, Query, Summary } from "./generated/model";
import { Empty, useLoaded } from "./parts";
import { PlanTab } from "./plan";
import { type Route, go, link } from "./route";
import { SkewTab } from "./skew";
import type { DataSource } from "./source";
import { StagesTab } from "./stages";
import { WallTimeTab } from "./wallTime";
import { WhatIfTab } from "./whatIf";

export interface TabProps {
  detail: Detail;
  query: Query;
  summary: Summary;
  at: number;
  source: DataSource;
  route: Route;
}

const TABS: Record<string, string> = {
  plan: "Plan",
  time: "Wall time",
  whatif: "What if",
  stages: "Stages and tasks",
  flame: "Flame graph",
  source: "Source",
  contention: "Contention",
  skew: "Skew",
  compare: "Comparison",
};

export function QueryView(props: { source: DataSource; summary: Summary; at: number; route: Route }) {
  const { source, summary, at, route } = props;
  const query = summary.queries[at]!;
  const detail = useLoaded(() => source.load(`query-${at}`), [source, at]);
  const there: Record<string, boolean> = {
    compare: summary.compared,
    contention: query.contention,
    whatif: query.what_if,
    skew: summary.skew,
  };
  const tabs = Object.keys(TABS).filter((tab) => there[tab] ?? true);
  const wanted = route.path[2] ?? "plan";
  const tab = tabs.includes(wanted) ? wanted : "plan";
  const open = (name: string) => link(["query", keyOf(query), name]);
  const keys = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length]!;
    go(open(next));
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <article aria-label={titleOf(query)}>
      <nav class="crumbs" aria-label="Place">
        <a href="#/">Queries</a> › {titleOf(query)}
      </nav>
      <Head query={query} summary={summary} tab={tab} />
      <div role="tablist" class="tabs" aria-label="Views of the query" onKeyDown={keys}>
        {tabs.map((name) => (
          <a
            key={name}
            id={`tab-${name}`}
            role="tab"
            href={open(name)}
            aria-selected={name === tab}
            tabIndex={name === tab ? 0 : -1}
          >
            {TABS[name]}
          </a>
        ))}
      </div>
      <div role="tabpanel" aria-labelledby={`tab-${tab}`}>
        {detail === undefined ? (
          <Empty>Unpacking …</Empty>
        ) : detail instanceof Error ? (
          <Empty>The details cannot be read: {detail.message}</Empty>
        ) : (
          <Tab name={tab} detail={detail} query={query} summary={summary} at={at} source={source} route={route} />
        )}
      </div>
    </article>
  );
}

function Tab(props: TabProps & { name: string }) {
  switch (props.name) {
    case "time":
      return <WallTimeTab {...props} />;
    case "whatif":
      return <WhatIfTab {...props} />;
    case "stages":
      return <StagesTab {...props} />;
    case "flame":
      return <FlameTab {...props} />;
    case "source":
      return <CodeTab {...props} />;
    case "contention":
      return <ContentionTab {...props} />;
    case "skew":
      return <SkewTab {...props} />;
    case "compare":
      return <CompareTab {...props} />;
    default:
      return <PlanTab {...props} />;
  }
}

function Head({ query, summary, tab }: { query: Query; summary: Summary; tab: string }) {
  const figures: [string, string, string][] = [
    ["CPU", time(query.cost.cpu_ns), "CPU time of all its threads, from samples"],
    ["of the profile", percent(query.cost.cpu_ns, summary.total.cpu_ns) || "0%", "Part of the profile's CPU time"],
    [
      "waiting",
      query.waiting_ns === null ? "not known" : time(query.waiting_ns),
      "Run time of its tasks without their CPU time, from Spark's task metrics",
    ],
    ["duration", query.duration_ms === null ? "not known" : timeMs(query.duration_ms), "From start to end"],
    ["started", moment(query.started_ms) || "not known", ""],
  ];
  if (query.query === null) figures.splice(3, 2);
  return (
    <>
      <h1>
        {titleOf(query)}
        {query.query !== null && <span class="description"> {nameOf(query)}</span>}
      </h1>
      {query.query !== null && query.description !== nameOf(query) && <WholeText of={query.description} />}
      <Runs query={query} summary={summary} tab={tab} />
      {query.error && (
        <pre class="error" role="alert">
          {query.error}
        </pre>
      )}
      <dl class="stats">
        {figures.map(([name, value, title]) => (
          <div key={name} title={title}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
        <div>
          <dt>{query.stages === 1 ? "stage" : "stages"}</dt>
          <dd>{count(query.stages)}</dd>
        </div>
        <div>
          <dt>{query.tasks === 1 ? "task" : "tasks"}</dt>
          <dd>{count(query.tasks)}</dd>
        </div>
        <div>
          <dt>samples</dt>
          <dd>{count(query.cost.samples)}</dd>
        </div>
      </dl>
    </>
  );
}

/** The text from which the query's name was made. */
function WholeText({ of }: { of: string }) {
  if (of.length <= 120 && !of.includes("\n")) return <p class="crumbs">{of}</p>;
  return (
    <details class="textof">
      <summary>Text of the query</summary>
      <pre>{of}</pre>
    </details>
  );
}

/** Links to the other runs of the query. */
function Runs({ query, summary, tab }: { query: Query; summary: Summary; tab: string }) {
  const runs = runsOf(summary, query);
  if (runs.length < 2) return null;
  const at = runs.indexOf(query);
  const to = (text: string, run: Query | undefined) => run && <a href={link(["query", keyOf(run), tab])}>{text}</a>;
  return (
    <nav class="runs" aria-label="Runs of the query">
      <span>
        Run {count(at + 1)} of {count(runs.length)}
      </span>
      {to("‹ previous run", runs[at - 1])}
      {to("next run ›", runs[at + 1])}
      <a href={link([], { runs: familyOf(query) })}>all runs</a>
    </nav>
  );
}

function CompareTab({ query, source }: TabProps) {
  const comparison = useLoaded(() => source.load("comparison"), [source]);
  if (comparison === undefined) return <Empty>Unpacking …</Empty>;
  if (comparison instanceof Error) return <Empty>The comparison cannot be read: {comparison.message}</Empty>;
  const pair = comparison.pairs.find((pair) => pair.fingerprint === query.fingerprint);
  if (!pair)
    return (
      <Empty>
        The other profile has no such query. <a href={link(["compare"])}>All of the comparison</a>
      </Empty>
    );
  return <PairTable pair={pair} />;
}
