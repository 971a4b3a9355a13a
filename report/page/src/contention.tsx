// Who slowed whom down: all queries together, and one victim with its time, its paths and what simpler methods say.

import type { ComponentChildren } from "preact";
import { ContentionTime, colours } from "./contentionTime";
import { PathColumns } from "./contentionPaths";
import { count, plural, seconds, share } from "./format";
import { keyOf } from "./list";
import type { Advice, Blame, Contention, QueryContention, Summary } from "./generated/model";
import { Bar, Empty, Name, arrows, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { link } from "./route";
import type { DataSource } from "./source";

const tab = (summary: Summary, at: number): string => link(["query", keyOf(summary.queries[at]!), "contention"]);

export function ContentionView({ source, summary }: { source: DataSource; summary: Summary }) {
  const all = useLoaded(() => source.load("contention"), [source]);
  if (all === undefined) return <Empty>Unpacking …</Empty>;
  if (all instanceof Error) return <Empty>Contention cannot be read: {all.message}</Empty>;
  if (all.victims.length === 0) return <Empty>No task had to wait for anything that others could have taken.</Empty>;
  return (
    <section aria-label="Contention">
      <p class="legend">
        Time in which tasks could not go on, shared out among those who used what they waited for, on the same host at
        the same time. A share of 1 is all the blocked time of one query.
      </p>
      <div class="side">
        <Ranking title="Who made others wait" head="Culprit" rows={all.culprits} link={linkOf(all, summary)} />
        <div>
          <Ranking title="What they waited for" head="Resource" rows={all.resources} />
          <Ranking title="Where" head="Host" rows={all.hosts} />
        </div>
      </div>
      <Victims all={all} summary={summary} />
      <Suggestions of={all.suggestions} />
      {all.notes.map((note) => (
        <p class="hint" key={note}>
          Note: {note}.
        </p>
      ))}
    </section>
  );
}

/** The tab of the query that is called so. */
function linkOf(all: Contention, summary: Summary): (name: string) => string | undefined {
  const places = new Map(all.victims.map((victim) => [victim.label, all.places[victim.query]]));
  return (name) => {
    const at = places.get(name);
    return at === undefined || !summary.queries[at]?.contention ? undefined : tab(summary, at);
  };
}

function Ranking(props: { title: string; head: string; rows: Blame[]; link?: (name: string) => string | undefined }) {
  const most = Math.max(...props.rows.map((row) => row.responsibility), 1e-9);
  return (
    <div>
      <h2>{props.title}</h2>
      <table class="blame">
        <thead>
          <tr>
            <th>{props.head}</th>
            <th class="bars">
              <span class="sr">Share bar</span>
            </th>
            <th class="number" title="Degree of responsibility, summed over the victims">
              Share
            </th>
            <th class="number">Blocked</th>
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={row.name}>
              <td class="text">
                <Name href={props.link?.(row.name)}>{row.name}</Name>
                <Ways row={row} />
              </td>
              <td class="bars">
                <Bar part={row.responsibility} of={most} />
              </td>
              <td class="number strong">{row.responsibility.toFixed(2)}</td>
              <td class="number">{seconds(row.seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {props.rows.length === 0 && <Empty>Nobody.</Empty>}
    </div>
  );
}

function Ways({ row }: { row: Blame }) {
  const operators = row.operators?.map(([name, part]) => `${name} ${share(part)}`) ?? [];
  return (
    <>
      {row.how.length > 0 && <span class="how">{row.how.join(", ")}</span>}
      {operators.length > 0 && <span class="how">CPU by its operators: {operators.join(", ")}</span>}
    </>
  );
}

function Victims({ all, summary }: { all: Contention; summary: Summary }) {
  const most = Math.max(...all.victims.map((victim) => victim.blocked_seconds), 1e-9);
  const shown = all.victims.slice(0, 200);
  return (
    <>
      <h2>{plural(all.victims.length, "query")} had to wait</h2>
      <table class="blame" onKeyDown={arrows}>
        <thead>
          <tr>
            <th>Query</th>
            <th class="bars">
              <span class="sr">Blocked bar</span>
            </th>
            <th
              class="number"
              title="Time in which the tasks of the stages that decided how long it took could not go on"
            >
              Blocked
            </th>
            <th class="number" title="What of it other queries and processes outside Spark account for">
              By others
            </th>
            <th class="number" title="From its first stage to its last">
              Ran
            </th>
            <th>Mostly delayed by</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((victim) => {
            const at = all.places[victim.query];
            return (
              <tr key={victim.query}>
                <td class="text">
                  <Name href={at === undefined ? undefined : tab(summary, at)}>{victim.label}</Name>
                </td>
                <td class="bars">
                  <Bar part={victim.by_others_seconds} whole={victim.blocked_seconds} of={most} />
                </td>
                <td class="number strong">{seconds(victim.blocked_seconds)}</td>
                <td class="number">{seconds(victim.by_others_seconds)}</td>
                <td class="number muted">{seconds(victim.ran_seconds)}</td>
                <td class="text">{victim.main_culprit && <Name href={undefined}>{victim.main_culprit}</Name>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {shown.length < all.victims.length && (
        <p class="hint">{count(all.victims.length - shown.length)} with less are not shown.</p>
      )}
    </>
  );
}

export function ContentionTab({ source, summary, at, route }: TabProps) {
  const found = useLoaded(() => source.load(`contention-${at}`), [source, at]);
  if (found === undefined) return <Empty>Unpacking …</Empty>;
  if (found instanceof Error) return <Empty>Contention cannot be read: {found.message}</Empty>;
  const { victim } = found;
  const apart: [string, number][] = [
    ["its own other tasks", victim.by_itself_seconds],
    ["garbage collection", victim.by_gc_seconds],
    ["the JVM's own work", victim.by_jvm_seconds],
    ["nobody known", victim.by_unknown_seconds],
  ];
  const places = new Map(found.places.map(([name, at]) => [found.names[name]!, at]));
  const colour = colours(found);
  const to = (name: string) => {
    const place = places.get(name);
    return place === undefined || place === at || !summary.queries[place]?.contention ? undefined : tab(summary, place);
  };
  return (
    <div class="contention">
      <p class="legend">
        {plural(victim.stages.length, "stage")} ({victim.stages.join(", ")}) decided how long it took. Their{" "}
        {plural(victim.tasks, "task")} ran {seconds(victim.task_seconds)}, all added up, and could not go on for{" "}
        <b>{seconds(victim.blocked_seconds)}</b>, waiting for slots included. Others account for{" "}
        <b>{seconds(victim.by_others_seconds)}</b>
        {apart
          .filter(([, s]) => s >= 0.0005)
          .map(([who, s]) => `, ${who} for ${seconds(s)}`)
          .join("")}
        .
      </p>
      <ContentionTime found={found} colour={colour} route={route} dir={summary.profile} />
      <h2>Who made it wait</h2>
      <table class="blame">
        <thead>
          <tr>
            <th>Culprit</th>
            <th class="bars">
              <span class="sr">Share bar</span>
            </th>
            <th class="number" title="Degree of responsibility: part of the blocked time">
              Share
            </th>
            <th class="number">Blocked</th>
          </tr>
        </thead>
        <tbody>
          {found.culprits.map((row) => (
            <tr key={row.name}>
              <td class="text">
                <span class={`key ${colour(row.name)}`} />{" "}
                {row.name === victim.label ? (
                  <span class="name">its own other tasks</span>
                ) : (
                  <Name href={to(row.name)}>{row.name}</Name>
                )}
                <Ways row={row} />
              </td>
              <td class="bars">
                <Bar part={row.responsibility} of={1} />
              </td>
              <td class="number strong">{share(row.responsibility)}</td>
              <td class="number">{seconds(row.seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <PathColumns found={found} whole={victim.blocked_seconds} route={route} />
      <Suggestions of={found.suggestions} />
      <Simpler found={found} to={to} />
    </div>
  );
}

function Suggestions({ of }: { of: Advice[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <h2>
        What could be done <span class="muted clear">heuristics; whether it helps was not tried</span>
      </h2>
      <ul class="advice">
        {of.map((advice) => (
          <li key={advice.text}>
            <b>{share(advice.responsibility)}</b> {advice.text}
          </li>
        ))}
      </ul>
    </>
  );
}

/** What methods say that only look at who ran at the same time. */
function Simpler({ found, to }: { found: QueryContention; to: (name: string) => string | undefined }) {
  const { baselines, victim } = found;
  const overlap = new Map(baselines.naive_overlap);
  const deep = new Map(baselines.deep_overlap);
  const blame = new Map(found.culprits.map((row) => [row.name, row.responsibility]));
  const first = (of: Map<string, number>) =>
    [...of]
      .filter(([name]) => name !== victim.label)
      .sort((a, b) => b[1] - a[1])
      .map(([name]) => name);
  const names = [...new Set([...first(blame), ...first(deep), ...first(overlap)])]
    .filter((name) => overlap.has(name))
    .slice(0, 10);
  const blamed = first(blame).find((name) => overlap.has(name));
  const [longest] = first(overlap);
  const [most] = first(deep);
  const best = (name: string, of: string | undefined): string => (name === of ? "number strong" : "number");
  const wrong = [longest, most].filter((name) => name !== undefined && name !== blamed);
  return (
    <>
      <h2>What simpler methods would say</h2>
      {names.length === 0 ? (
        <Empty>No other query ran at the same time.</Empty>
      ) : (
        <table class="blame">
          <thead>
            <tr>
              <th>Query</th>
              <th class="number" title="Part of the blocked time, as above">
                Blame
              </th>
              <th class="number" title="How long both queries ran at the same time (Naive-Overlap)">
                Overlap of queries
              </th>
              <th class="number" title="Overlap of all pairs of tasks on one host (Deep-Overlap)">
                Overlap of tasks
              </th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <td class="text">
                  <Name href={to(name)}>{name}</Name>
                </td>
                <td class={best(name, blamed)}>{share(blame.get(name) ?? 0)}</td>
                <td class={best(name, longest)}>{seconds(overlap.get(name) ?? 0)}</td>
                <td class={best(name, most)}>{seconds(deep.get(name) ?? 0)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {blamed !== undefined && wrong.length > 0 && (
        <Why>
          Who runs longest beside a query need not use what it waits for: the overlaps point at another query than the
          blame does.
        </Why>
      )}
      <Why>
        Blocked-time analysis would say {seconds(baselines.blocked_io_network)} of waiting for disks and network, and
        not because of whom.
      </Why>
    </>
  );
}

const Why = ({ children }: { children: ComponentChildren }) => <p class="hint">{children}</p>;
