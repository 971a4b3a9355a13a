// Which stages wait for slow tasks, and which records are slow: of all queries together, and of one with its tasks.

import { sure, whySlow } from "./causes";
import { count, plural, seconds, timeMs } from "./format";
import { keyOf, nameOf, titleOf } from "./list";
import type { Query, Skew, SkewedStage, Summary } from "./generated/model";
import { Bar, Copied, Empty, Notes, arrows, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { RecordLists } from "./records";
import { type Route, changed, link } from "./route";
import { StageSkew } from "./skewStage";
import type { DataSource } from "./source";

export function SkewView({ source, summary, route }: { source: DataSource; summary: Summary; route: Route }) {
  const all = useLoaded(() => source.load("skew"), [source]);
  if (all === undefined) return <Empty>Unpacking …</Empty>;
  if (all instanceof Error) return <Empty>Skew cannot be read: {all.message}</Empty>;
  const queries = new Map(
    summary.queries.map((query) => [`${summary.applications[query.app]?.id} ${query.query}`, query]),
  );
  const queryOf = (stage: SkewedStage) => queries.get(`${stage.app} ${stage.sql}`);
  const place = (stage: SkewedStage) => {
    const query = queryOf(stage);
    return query && link(["query", keyOf(query), "skew"], { stage: stage.stage });
  };
  const left = all.skewed - all.findings.length;
  return (
    <section aria-label="Skew">
      <h1>Which tasks are slow</h1>
      <Sentence of={all} />
      {all.findings.length > 0 && <Stages of={all.findings} to={place} queryOf={queryOf} />}
      {left > 0 && (
        <p class="hint">
          {plural(left, "stage")} that would save less {left === 1 ? "is" : "are"} shown with{" "}
          {left === 1 ? "its" : "their"} queries only.
        </p>
      )}
      {all.records ? (
        <RecordLists of={all.records} route={route} />
      ) : (
        <>
          <p>This run did not follow records. To find out which records are slow, run the job again with:</p>
          <Copied text="unfuse run --records -- COMMAND" />
        </>
      )}
      <Notes of={all.notes} but={summary.notes} />
    </section>
  );
}

/** Explains why there is no answer. */
export function NoSkew() {
  return (
    <section aria-label="Skew">
      <h1>Which tasks are slow</h1>
      <p class="lead">
        This profile has no finished tasks, so the report cannot say which are slow. If there is a record that could not
        be read, a note below says so.
      </p>
    </section>
  );
}

export function SkewTab(props: TabProps) {
  if (props.query.skew) return <QuerySkew {...props} />;
  return (
    <p class="lead">
      None of its stages is found to wait for slow tasks. <a href={link(["skew"])}>Skew of all queries</a>
    </p>
  );
}

function QuerySkew({ source, summary, at, route }: TabProps) {
  const skew = useLoaded(() => source.load(`skew-${at}`), [source, at]);
  if (skew === undefined) return <Empty>Unpacking …</Empty>;
  if (skew instanceof Error) return <Empty>Skew cannot be read: {skew.message}</Empty>;
  const number = route.options.get("stage");
  const chosen = skew.findings.find((stage) => String(stage.stage) === number) ?? skew.findings[0];
  return (
    <div class="skew">
      <Sentence of={skew} />
      {chosen && (
        <>
          <Stages
            of={skew.findings}
            chosen={chosen}
            to={(stage) => changed(route, { stage: stage.stage, task: null })}
          />
          <StageSkew of={chosen} records={skew.records} route={route} dir={summary.profile} />
        </>
      )}
      {skew.records && <RecordLists of={skew.records} route={route} all={link(["skew"])} />}
    </div>
  );
}

function Sentence({ of }: { of: Skew }) {
  const few = of.too_few > 0 && (
    <>
      ; {count(of.too_few)} {of.too_few === 1 ? "has" : "have"} too few tasks to say
    </>
  );
  if (of.stages > 0 && of.too_few === of.stages)
    return (
      <p class="lead">None of {plural(of.stages, "stage")} has enough tasks to say whether some of them are slow.</p>
    );
  if (of.skewed === 0)
    return (
      <p class="lead">
        None of {plural(of.stages, "stage")} waits for slow tasks{few}.
      </p>
    );
  return (
    <p class="lead">
      <b>
        {count(of.skewed)} of {plural(of.stages, "stage")}
      </b>{" "}
      {of.skewed === 1 ? "waits" : "wait"} for slow tasks; alone, {of.skewed === 1 ? "it" : "they"} would end{" "}
      <b>{seconds(of.saved_seconds)}</b> sooner if these were like the others{few}.
    </p>
  );
}

interface StagesProps {
  of: SkewedStage[];
  chosen?: SkewedStage;
  to: (stage: SkewedStage) => string | undefined;
  /** Finds the query of a stage, if the table has stages of several queries. */
  queryOf?: (stage: SkewedStage) => Query | undefined;
}

function Stages({ of, chosen, to, queryOf }: StagesProps) {
  const most = Math.max(...of.map((stage) => stage.stage_ms), 1);
  return (
    <table class="blame" onKeyDown={arrows}>
      <thead>
        <tr>
          <th class="number">Stage</th>
          <th>Why it waits</th>
          <th class="bars wide">
            <span class="sr">Bar of what it would save</span>
          </th>
          <th
            class="number"
            title="How much sooner the stage would have ended if its slow tasks had been like the others"
          >
            Saves
          </th>
          <th class="number wide" title="How long its tasks take on the slots it had">
            Of
          </th>
          <th class="number" title="Probability that it is not chance">
            Sure
          </th>
          <th class="number wide">Tasks</th>
          <th class="number wide" title="The median of its tasks">
            Typical
          </th>
          <th class="number wide">Slowest</th>
        </tr>
      </thead>
      <tbody>
        {of.map((stage) => {
          const why = whySlow(stage.verdict);
          const query = queryOf?.(stage);
          const place = queryOf
            ? [query && titleOf(query), ...new Set([query ? nameOf(query) : stage.description, stage.name])]
            : [stage.name];
          return (
            <tr key={`${stage.app} ${stage.stage}`} aria-selected={stage === chosen}>
              <td class="number strong">{stage.stage}</td>
              <td class="text">
                <a
                  data-row
                  class="name"
                  href={to(stage)}
                  title={`Slow tasks: ${why.means}`}
                  aria-current={stage === chosen ? "true" : undefined}
                >
                  {why.name}
                </a>
                <span class="how" title={stage.description || stage.name}>
                  {place.filter(Boolean).join(", ")}
                </span>
              </td>
              <td class="bars wide">
                <Bar part={stage.saved_ms} whole={stage.stage_ms} of={most} kind="slow" />
              </td>
              <td class="number strong">{timeMs(stage.saved_ms)}</td>
              <td class="number wide">{timeMs(stage.stage_ms)}</td>
              <td class="number">{sure(stage.sure)}</td>
              <td class="number wide">{count(stage.counted)}</td>
              <td class="number muted wide">{timeMs(stage.typical_ms)}</td>
              <td class="number muted wide">{timeMs(stage.slowest_ms)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
