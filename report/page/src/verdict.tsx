// The answer on top of the first page: where the time went, what is unusual, what to look at next.

import { FirstAdvice } from "./advice";
import { percent, time, timeMs } from "./format";
import type { Evidence, PartKind, Sentence, SentenceKind, Summary, Verdict, VerdictPart } from "./generated/model";
import { keyOf, titleOf } from "./list";
import { Copied, Marked } from "./parts";
import { link } from "./route";

/** Kinds of time, in the order of the bar. */
const KINDS: [PartKind, string][] = [
  ["operators", "CPU time of operators"],
  ["tasks", "other CPU time of tasks"],
  ["waiting", "tasks waited"],
  ["unknown", "tasks ran, the reason is unknown"],
  ["scheduling", "tasks started or ended"],
  ["beside", "CPU time of other threads"],
  ["idle", "slots without a task"],
];

/** Headings, and the kinds of sentences below each. */
const HEADS: [SentenceKind[], string][] = [
  [["operator"], "What costs most"],
  [["unusual"], "What is unusual"],
  [["next"], "What to look at next"],
  [["certainty"], "How sure this is"],
];

export function VerdictView({ summary }: { summary: Summary }) {
  const { verdict } = summary;
  // Further sentences of this kind repeat the caption of the bar.
  const lead = verdict.sentences.filter((sentence) => sentence.kind === "time").slice(0, 1);
  const quiet = !verdict.sentences.some(({ kind }) => kind === "operator" || kind === "unusual");
  return (
    <section class="verdict" aria-labelledby="verdict">
      <h1 id="verdict">Where the time went</h1>
      {lead.map((sentence) => (
        <VerdictSentence key={sentence.text} of={sentence} summary={summary} lead />
      ))}
      <PartBar verdict={verdict} />
      {quiet && <p class="lead">Nothing stands out.</p>}
      <div class="answers">
        {HEADS.map(([kinds, head]) => {
          const found = verdict.sentences.filter(({ kind }) => kinds.includes(kind));
          if (found.length === 0) return null;
          return (
            <section key={head} class={`answer a-${kinds[0]}`}>
              <h2>{head}</h2>
              <ul>
                {found.map((sentence) => (
                  <li key={sentence.text}>
                    <VerdictSentence of={sentence} summary={summary} />
                  </li>
                ))}
              </ul>
            </section>
          );
        })}
        <FirstAdvice summary={summary} />
      </div>
    </section>
  );
}

interface Kind {
  kind: PartKind;
  name: string;
  parts: VerdictPart[];
  ns: number;
}

function PartBar({ verdict }: { verdict: Verdict }) {
  const whole = verdict.parts.reduce((sum, { ns }) => sum + ns, 0);
  if (whole === 0) return null;
  const kinds: Kind[] = KINDS.map(([kind, name]) => {
    const parts = verdict.parts.filter((part) => part.kind === kind && part.ns > 0).sort((a, b) => b.ns - a.ns);
    return { kind, name, parts, ns: parts.reduce((sum, { ns }) => sum + ns, 0) };
  }).filter(({ ns }) => ns > 0);
  const words = kinds.map(({ name, ns }) => `${name} ${time(ns)}, ${percent(ns, whole)}`);
  return (
    <figure class="parts" aria-label="Parts of the time">
      <figcaption>
        <b>{time(whole)}</b>: {verdict.whole}
        {verdict.duration_ms > 0 && <span class="muted"> in {timeMs(verdict.duration_ms)}</span>}
      </figcaption>
      <div class="partbar" role="img" aria-label={words.join("; ")}>
        {kinds.map(({ kind, name, ns }) => (
          <span
            key={kind}
            class={`v-${kind}`}
            style={{ width: `${(100 * ns) / whole}%` }}
            title={`${name}: ${time(ns)}, ${percent(ns, whole)}`}
          />
        ))}
      </div>
      <ul class="partlist">
        {kinds.map(({ kind, name, parts, ns }) => (
          <li key={kind}>
            <span class={`key v-${kind}`} />
            <span>
              {name} <b>{time(ns)}</b> <span class="muted">{percent(ns, whole)}</span>
              <Inside parts={parts} />
            </span>
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** The parts of a kind, if they add something to its name. */
function Inside({ parts }: { parts: VerdictPart[] }) {
  const named = parts.filter(({ name, kind }) => name !== "other" && kind !== "operators" && kind !== "idle");
  if (named.length === 0) return null;
  const shown = named.slice(0, 4);
  const left = parts.length - shown.length;
  return (
    <span class="how">
      {shown.map(({ name, ns }) => (parts.length === 1 ? name : `${name} ${time(ns)}`)).join(", ")}
      {left > 0 && ", and other"}
    </span>
  );
}

/** A sentence, a link to its evidence in the report, and the command that shows more. */
function VerdictSentence({ of, summary, lead }: { of: Sentence; summary: Summary; lead?: boolean }) {
  return (
    <div class={lead ? "told-lead" : ""}>
      <p class={lead ? "lead" : ""}>
        <Marked>{of.text}</Marked> {of.evidence && <Proof of={of.evidence} summary={summary} />}
      </p>
      {of.command && <Copied text={of.command} />}
    </div>
  );
}

const TABS: Record<string, string> = {
  plan: "plan",
  stages: "stages",
  flame: "flame graph",
  source: "source",
  contention: "contention",
  skew: "skew",
};

function Proof({ of, summary }: { of: Evidence; summary: Summary }) {
  const tab = of.tab === "code" ? "source" : of.tab;
  const what = TABS[tab];
  if (!what) return null;
  if (of.query === null) {
    return tab === "contention" || tab === "skew" ? <a href={link([tab])}>See {what} of all queries</a> : null;
  }
  const query = summary.queries[of.query];
  if (!query) return null;
  const place = query.query === null ? "of the work outside queries" : `of ${titleOf(query).toLowerCase()}`;
  return (
    <a href={link(["query", keyOf(query), tab], { node: of.node ?? undefined })}>
      See {what} {place}
    </a>
  );
}
