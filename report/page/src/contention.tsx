// Who slowed a query down: its blocked time, its paths and the results of simpler methods.

import type { ComponentChildren } from "preact";
import { PathColumns } from "./contentionPaths";
import { called, Suggestions, Ways, tab } from "./contentionParts";
import { ContentionTime, colours } from "./contentionTime";
import { culpritName } from "./culprits";
import { plural, seconds, share } from "./format";
import type { QueryContention } from "./generated/model";
import { Bar, Empty, Name, useLoaded } from "./parts";
import type { TabProps } from "./query";

export function ContentionTab({ source, summary, at, route }: TabProps) {
  const found = useLoaded(() => source.load(`contention-${at}`), [source, at]);
  if (found === undefined) return <Empty>Unpacking …</Empty>;
  if (found instanceof Error) return <Empty>Contention cannot be read: {found.message}</Empty>;
  const { victim } = found;
  const apart: [string, number][] = [
    ["its own other tasks", victim.by_itself_seconds],
    ["garbage collection", victim.by_gc_seconds],
    ["the JVM's own work", victim.by_jvm_seconds],
    ["its own CPU limit", victim.by_own_limit_seconds],
    ["the hypervisor", victim.by_hypervisor_seconds],
    ["unknown causes", victim.by_unknown_seconds],
  ];
  const places = new Map(found.places.map(([name, at]) => [found.names[name]!, at]));
  const name = (text: string) => called(summary, places.get(text)) ?? culpritName(text);
  const colour = colours(found);
  const to = (name: string) => {
    const place = places.get(name);
    return place === undefined || place === at || !summary.queries[place]?.contention ? undefined : tab(summary, place);
  };
  return (
    <div class="contention">
      <p class="lead">
        {plural(victim.stages.length, "stage")} ({victim.stages.join(", ")}) decided how long it took. Their{" "}
        {plural(victim.tasks, "task")} ran {seconds(victim.task_seconds)}, all added up, and could not proceed for{" "}
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
            <th class="bars wide">
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
                  <Name href={to(row.name)}>{name(row.name)}</Name>
                )}
                <Ways row={row} />
              </td>
              <td class="bars wide">
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
      <Simpler found={found} to={to} name={name} />
    </div>
  );
}

/** The results of simpler methods: two measures of overlap, and blocked-time analysis. */
function Simpler(props: {
  found: QueryContention;
  to: (name: string) => string | undefined;
  name: (name: string) => string;
}) {
  const { found, to } = props;
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
                  <Name href={to(name)}>{props.name(name)}</Name>
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
          The query with the longest overlap need not use what this one waits for: here, the overlaps name another query
          than the blame does.
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
