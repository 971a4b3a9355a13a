// Parts that the page of all queries and the tab of one query share.

import { worded } from "./culprits";
import { count, plural, share } from "./format";
import type { Advice, Blame, Summary } from "./generated/model";
import { keyOf, nameOf, titleOf } from "./list";
import { Marked } from "./parts";
import { link } from "./route";

/** Link to the contention tab of a query. */
export const tab = (summary: Summary, at: number): string => link(["query", keyOf(summary.queries[at]!), "contention"]);

/** The name of a query in the list, after its number unless the name stands for several runs. */
export function called(summary: Summary, at: number | undefined, several = false): string | undefined {
  const query = at === undefined ? undefined : summary.queries[at];
  if (!query || query.query === null) return undefined;
  return several ? nameOf(query) : `${titleOf(query)}, ${nameOf(query)}`;
}

export function Ways({ row }: { row: Blame }) {
  const operators = row.operators?.map(([name, part]) => `${name} ${share(part)}`) ?? [];
  return (
    <>
      {row.how.length > 0 && <span class="how">{row.how.map(worded).join(", ")}</span>}
      {operators.length > 0 && <span class="how">CPU by its operators: {operators.join(", ")}</span>}
    </>
  );
}

export function Suggestions({ of }: { of: Advice[] }) {
  if (of.length === 0) return null;
  return (
    <>
      <h2>
        What could be done{" "}
        <span class="muted clear">rules of thumb; nothing was tried. The share is a part of the blocked time</span>
      </h2>
      <ul class="advice">
        {rulesOf(of).map(({ text, parts, more }) => (
          <li key={text}>
            <b>{between(parts)}</b> <Marked>{text}</Marked>
            {more.length > 0 && (
              <details>
                <summary>{count(more.length)} more like it</summary>
                <ul>
                  {more.map((other) => (
                    <li key={other}>
                      <Marked>{other}</Marked>
                    </li>
                  ))}
                </ul>
              </details>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** A piece of advice, and the parts of its victims' blocked time that it applies to. */
interface Rule {
  text: string;
  parts: number[];
  /** Texts of the same advice for other queries. */
  more: string[];
}

/** Merges advice that differs only in its queries into one rule. */
function rulesOf(advice: Advice[]): Rule[] {
  const rules = new Map<string, { victims: string[]; texts: string[]; parts: number[] }>();
  for (const { action, text, responsibility } of advice) {
    // Advice about causes outside Spark begins with the name of the victim.
    const cut = action === "look-outside" ? text.indexOf(": ") + 2 : 0;
    const rule = text.slice(cut).replace(/\bquery \S*[^\s,:;)]/g, "query");
    const known = rules.get(rule) ?? { victims: [], texts: [], parts: [] };
    if (cut > 2) known.victims.push(text.slice(0, cut - 2));
    known.texts.push(text.slice(cut));
    known.parts.push(responsibility);
    rules.set(rule, known);
  }
  return [...rules.values()].slice(0, RULES).map(({ victims, texts, parts }) => {
    const who = victims.length > 1 ? plural(victims.length, "query") : victims[0];
    return who ? { text: `${who}: ${texts[0]}`, parts, more: [] } : { text: texts[0]!, parts, more: texts.slice(1) };
  });
}

/** Most rules that are shown. */
const RULES = 20;

const between = (parts: number[]): string => {
  const [low, high] = [share(Math.min(...parts)), share(Math.max(...parts))];
  return low === high ? low : `${low} to ${high}`;
};
