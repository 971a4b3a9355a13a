// The levels of the contention graph as columns: a choice in one column filters all others.

import { culpritName, resourceName } from "./culprits";
import { count, plural, seconds, share } from "./format";
import type { Paths, QueryContention } from "./generated/model";
import { Bar, arrows } from "./parts";
import { type Route, changed, go } from "./route";

type Level = Exclude<keyof Paths, "seconds" | "weak">;

const LEVELS: [Level, string, string][] = [
  ["stage", "Stage that waited", "Level 1"],
  ["resource", "For what", "Level 2"],
  ["wait", "How and where", "Level 3"],
  ["part", "Because of which stage or operator", "Levels 4 and 5"],
  ["culprit", "Of whom", "Level 6"],
];
function called(level: Level, text: string): string {
  return level === "culprit" ? culpritName(text) : level === "resource" ? resourceName(text) : text;
}

/** Most entries of a column; a hint gives the number of the others. */
const SHOWN = 12;

export function PathColumns({ found, whole, route }: { found: QueryContention; whole: number; route: Route }) {
  const { paths, names } = found;
  const asked = LEVELS.map(([level]) => [level, route.options.get(`at-${level}`)] as const).filter(
    ([, name]) => name !== undefined,
  );
  const fits = (row: number, but: Level | null) =>
    asked.every(([level, name]) => level === but || names[paths[level][row]!] === name);
  const sum = (but: Level | null, of: (row: number, seconds: number) => void) => {
    for (let row = 0; row < paths.seconds.length; row++) if (fits(row, but)) of(row, paths.seconds[row]!);
  };
  let selected = 0;
  sum(null, (_, s) => (selected += s));
  return (
    <>
      <h2>
        Step through
        {asked.length > 0 && (
          <span class="clear">
            {share(selected / Math.max(whole, 1e-9))} of the blocked time, {seconds(selected)}{" "}
            <a href={changed(route, Object.fromEntries(LEVELS.map(([level]) => [`at-${level}`, null])))}>show all</a>
          </span>
        )}
      </h2>
      <div class="levels">
        {LEVELS.map(([level, title, number]) => {
          const sums = new Map<number, number>();
          sum(level, (row, s) => sums.set(paths[level][row]!, (sums.get(paths[level][row]!) ?? 0) + s));
          const entries = [...sums].sort((a, b) => b[1] - a[1]);
          const chosen = route.options.get(`at-${level}`);
          const listed = entries.filter(([name], at) => at < SHOWN || names[name] === chosen);
          return (
            <div class="level" key={level} role="group" aria-label={title} onKeyDown={arrows}>
              <h3 title={`${number} of the graph`}>{title}</h3>
              {listed.map(([name, s]) => {
                const text = names[name]!;
                const shown = level === "culprit" && name === found.own ? "its own other tasks" : called(level, text);
                return (
                  <button
                    type="button"
                    data-row
                    key={name}
                    class="entry"
                    aria-pressed={text === chosen}
                    title={`${shown}: ${seconds(s)}`}
                    onClick={() => go(changed(route, { [`at-${level}`]: text === chosen ? null : text }))}
                  >
                    <span class="what">{shown}</span>
                    <span class="part">{share(s / Math.max(whole, 1e-9))}</span>
                    <Bar part={s} of={whole} />
                  </button>
                );
              })}
              {entries.length > listed.length && (
                <p class="hint">and {count(entries.length - listed.length)} with less</p>
              )}
            </div>
          );
        })}
      </div>
      {paths.weak > 0 && (
        <p class="hint">
          {plural(paths.weak, "weaker path")} {paths.weak === 1 ? "is" : "are"} left out;{" "}
          <code>unfuse blame --graph json</code> has all.
        </p>
      )}
    </>
  );
}
