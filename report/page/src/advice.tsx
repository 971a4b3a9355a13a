// What to change so that queries take less time: the first suggestions below the verdict, and all of them in a view.

import { plural, seconds } from "./format";
import type { Query, Suggestion, Summary } from "./generated/model";
import { keyOf, nameOf, titleOf } from "./list";
import { Copied, Empty, Marked, Notes } from "./parts";
import { link } from "./route";

/** Suggestions below the verdict. */
const FIRST = 3;

/** The first suggestions, or nothing. */
export function FirstAdvice({ summary }: { summary: Summary }) {
  const advice = summary.advice?.all ?? [];
  if (advice.length === 0) return null;
  return (
    <section class="answer a-advice">
      <h2>What would help</h2>
      <ul>
        {advice.slice(0, FIRST).map((one) => (
          <li key={`${one.app} ${one.query} ${one.title}`}>
            <p>
              <Marked>{capital(one.title)}</Marked>: <Saves of={one} />.{" "}
              <a href={link(["advice"])}>See how, and what can go wrong</a>
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function AdviceView({ summary }: { summary: Summary }) {
  const advice = summary.advice?.all;
  return (
    <section aria-label="Advice">
      <h1>What would help</h1>
      {advice === undefined ? (
        <p class="lead">There is no advice on a part of the time, or without a SQL query that ended well.</p>
      ) : advice.length === 0 ? (
        <Empty>Nothing that unfuse knows a change for stands out.</Empty>
      ) : (
        <>
          <p class="lead">
            {plural(advice.length, "suggestion")}, what saves most first. The savings are predictions from one run, and
            do not add up.
          </p>
          <ol class="suggestions">
            {advice.map((one) => (
              <Advice key={`${one.app} ${one.query} ${one.title}`} of={one} summary={summary} />
            ))}
          </ol>
        </>
      )}
      <Notes of={summary.advice?.notes ?? []} but={summary.notes} />
    </section>
  );
}

function Advice({ of, summary }: { of: Suggestion; summary: Summary }) {
  const query = queryOf(of, summary);
  return (
    <li>
      <h2>
        <Marked>{capital(of.title)}</Marked>
      </h2>
      <p>
        <Saves of={of} />
        {query && (
          <>
            {" of "}
            <a href={link(["query", keyOf(query), "plan"])}>{titleOf(query).toLowerCase()}</a>{" "}
            <span class="muted">{nameOf(query)}</span>
          </>
        )}
      </p>
      <dl>
        <dt>Why</dt>
        <dd>{of.why}</dd>
        <dt>What to do</dt>
        <dd>{of.action}</dd>
        <dt>Risk</dt>
        <dd>{of.risk}</dd>
      </dl>
      <Copied text={of.command} />
    </li>
  );
}

function Saves({ of }: { of: Suggestion }) {
  return (
    <>
      saves <b>{seconds(of.saves_s)}</b>{" "}
      <span class="muted">
        ({seconds(of.saves_low_s)} to {seconds(of.saves_high_s)}) of {seconds(of.measured_s)}
        {of.runs > 1 && `, in each of ${plural(of.runs, "run")}`}
      </span>
    </>
  );
}

const queryOf = (of: Suggestion, summary: Summary): Query | undefined =>
  summary.queries.find((query) => query.query === of.query && summary.applications[query.app]?.id === of.app);

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
