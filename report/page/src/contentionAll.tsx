// Who slowed whom down, of all queries together.

import { called, Suggestions, Ways, tab } from "./contentionParts";
import { culpritName, resourceName } from "./culprits";
import { count, plural, seconds } from "./format";
import type { Blame, Contention, Summary, Victim } from "./generated/model";
import { Bar, Empty, Name, Notes, arrows, useLoaded } from "./parts";
import type { DataSource } from "./source";

export function ContentionView({ source, summary }: { source: DataSource; summary: Summary }) {
  const all = useLoaded(() => source.load("contention"), [source]);
  if (all === undefined) return <Empty>Unpacking …</Empty>;
  if (all instanceof Error) return <Empty>Contention cannot be read: {all.message}</Empty>;
  if (all.victims.length === 0)
    return (
      <section aria-label="Contention">
        <h1>Who slowed whom down</h1>
        <p class="lead">No task had to wait for anything that others could have taken.</p>
      </section>
    );
  return (
    <section aria-label="Contention">
      <h1>Who slowed whom down</h1>
      <Most all={all} summary={summary} />
      <p class="legend">
        The blocked time of a query is the time in which its tasks could not proceed. It is attributed to those who used
        what the tasks waited for, on the same host at the same time. A share of 1 is all the blocked time of one query.
      </p>
      <div class="side">
        <Ranking
          title="Who made others wait"
          head="Culprit"
          rows={all.culprits}
          link={linkOf(all, summary)}
          called={namesOf(all, summary)}
        />
        <div>
          <Ranking title="What they waited for" head="Resource" rows={all.resources} called={resourceName} />
          <Ranking title="Where" head="Host" rows={all.hosts} />
        </div>
      </div>
      <Victims all={all} summary={summary} />
      <Suggestions of={all.suggestions} />
      <Notes of={all.notes} but={summary.notes} />
    </section>
  );
}

/** A culprit stands out if it accounts for at least this part of the time blocked by others. */
const LARGE = 0.2;

/** The main findings in a paragraph. */
function Most({ all, summary }: { all: Contention; summary: Summary }) {
  const blocked = all.victims.reduce((sum, victim) => sum + victim.blocked_seconds, 0);
  const by = (rows: Blame[]) => [...rows].sort((a, b) => b.seconds - a.seconds)[0];
  const culprit = by(all.culprits.filter(({ name }) => name !== "Unknown"));
  const resource = by(all.resources);
  const name = namesOf(all, summary);
  const others = all.victims.reduce((sum, victim) => sum + victim.by_others_seconds, 0);
  return (
    <p class="lead">
      Tasks of {plural(all.victims.length, "query")} could not proceed for <b>{seconds(blocked)}</b>; others account for{" "}
      <b>{seconds(others)}</b> of it.
      {culprit && (
        <>
          {culprit.seconds < LARGE * others && " No culprit stands out."} First among the culprits:{" "}
          <b>{name(culprit.name)}</b> with {seconds(culprit.seconds)}.
        </>
      )}
      {resource && <> Tasks waited most for {resourceName(resource.name)}.</>}
    </p>
  );
}

/** Explains why there is no answer. */
export function NoContention() {
  return (
    <section aria-label="Contention">
      <h1>Who slowed whom down</h1>
      <p class="lead">
        This profile has no record of the resources that each task used, so the report cannot say who slowed whom down.
        If there is a record that could not be read, a note below says so.
      </p>
    </section>
  );
}

/** Finds the contention tab of a query by the query's label. */
function linkOf(all: Contention, summary: Summary): (name: string) => string | undefined {
  const places = new Map(all.victims.map((victim) => [victim.label, all.places[victim.query]]));
  return (name) => {
    const at = places.get(name);
    return at === undefined || !summary.queries[at]?.contention ? undefined : tab(summary, at);
  };
}

interface RankingProps {
  title: string;
  head: string;
  rows: Blame[];
  link?: (name: string) => string | undefined;
  called?: (name: string) => string;
}

/** Names of culprits: queries have their names from the list, other culprits are described in words. */
function namesOf(all: Contention, summary: Summary): (name: string) => string {
  const places = new Map(all.victims.map((victim) => [victim.label, all.places[victim.query]]));
  return (name) => called(summary, places.get(name)) ?? culpritName(name);
}

function Ranking(props: RankingProps) {
  const most = Math.max(...props.rows.map((row) => row.responsibility), 1e-9);
  return (
    <div>
      <h2>{props.title}</h2>
      <table class="blame">
        <thead>
          <tr>
            <th>{props.head}</th>
            <th class="bars wide">
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
                <Name href={props.link?.(row.name)}>{props.called?.(row.name) ?? row.name}</Name>
                <Ways row={row} />
              </td>
              <td class="bars wide">
                <Bar part={row.responsibility} of={most} />
              </td>
              <td class="number strong">{row.responsibility.toFixed(2)}</td>
              <td class="number">{seconds(row.seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {props.rows.length === 0 && <Empty>None.</Empty>}
    </div>
  );
}

/** The blocked runs of a query; `first` was blocked longest. */
interface Waited {
  first: Victim;
  at: number | undefined;
  runs: number;
  blocked: number;
  others: number;
  ran: number;
  culprits: string[];
}

function grouped(all: Contention, summary: Summary): Waited[] {
  const found = new Map<string, Waited>();
  for (const victim of all.victims) {
    const at = all.places[victim.query];
    const family = at === undefined ? null : (summary.queries[at]?.family ?? null);
    const key = family === null ? `query ${victim.query}` : `family ${family}`;
    const none: Waited = { first: victim, at, runs: 0, blocked: 0, others: 0, ran: 0, culprits: [] };
    const waited = found.get(key) ?? none;
    found.set(key, waited);
    waited.runs++;
    waited.blocked += victim.blocked_seconds;
    waited.others += victim.by_others_seconds;
    waited.ran += victim.ran_seconds;
    if (victim.main_culprit) waited.culprits.push(victim.main_culprit);
  }
  return [...found.values()].sort((a, b) => b.blocked - a.blocked);
}

/** The most frequent name. */
function most(names: string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

function Victims({ all, summary }: { all: Contention; summary: Summary }) {
  const waited = grouped(all, summary);
  const name = namesOf(all, summary);
  const longest = Math.max(...waited.map(({ blocked }) => blocked), 1e-9);
  const shown = waited.slice(0, 200);
  return (
    <>
      <h2>{plural(all.victims.length, "query")} had to wait</h2>
      <table class="blame" onKeyDown={arrows}>
        <thead>
          <tr>
            <th>Query</th>
            <th class="number">Runs</th>
            <th class="bars wide">
              <span class="sr">Blocked bar</span>
            </th>
            <th
              class="number"
              title="Time in which the tasks of the stages that decided how long it took could not proceed"
            >
              Blocked
            </th>
            <th class="number wide" title="What of it other queries and processes outside Spark account for">
              By others
            </th>
            <th class="number wide" title="From its first stage to its last">
              Ran
            </th>
            <th class="wide">Mostly delayed by</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ first, at, runs, blocked, others, ran, culprits }) => {
            const query = called(summary, at, runs > 1) ?? first.label;
            const culprit = most(culprits);
            return (
              <tr key={first.query}>
                <td class="text">
                  <Name
                    href={at === undefined ? undefined : tab(summary, at)}
                    title={runs > 1 ? `${query}\nOpens the run that waited longest` : query}
                  >
                    {query}
                  </Name>
                </td>
                <td class="number">{count(runs)}</td>
                <td class="bars wide">
                  <Bar part={others} whole={blocked} of={longest} />
                </td>
                <td class="number strong">{seconds(blocked)}</td>
                <td class="number wide">{seconds(others)}</td>
                <td class="number muted wide">{seconds(ran)}</td>
                <td class="text wide">{culprit && <Name href={undefined}>{name(culprit)}</Name>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {shown.length < waited.length && (
        <p class="hint">{plural(waited.length - shown.length, "query")} with less blocked time are not shown.</p>
      )}
    </>
  );
}
