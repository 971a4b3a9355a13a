// A victim's blocked time in the course of its run, stacked by culprit or resource.

import { culpritName, resourceName } from "./culprits";
import { seconds, share } from "./format";
import { arrowsAcross } from "./parts";
import type { QueryContention } from "./generated/model";
import { type Route, changed, go } from "./route";

/** Number of colours for culprits; the remaining culprits share one more. */
const COLOURS = 7;

/** The class of a culprit's colour, by its rank. */
export function colours(found: QueryContention): (name: string) => string {
  const ranked = found.culprits
    .map((row) => row.name)
    .filter((name) => name !== found.names[found.own] && name !== "Unknown");
  return (name) => {
    if (name === found.names[found.own]) return "c-own";
    if (name === "Unknown") return "c-unknown";
    const at = ranked.indexOf(name);
    return at >= 0 && at < COLOURS ? `c${at}` : "c-other";
  };
}

interface Part {
  name: string;
  seconds: number;
  colour: string;
}

const RESOURCES = ["CPU", "memory", "IO", "network", "slots"];

/** The parts of each slice, in descending order of their sums over all slices. */
function stacks(found: QueryContention, by: "culprit" | "resource", colour: (name: string) => string): Part[][] {
  const { timeline: t, names } = found;
  const slices: Map<string, number>[] = Array.from({ length: Math.max(0, t.bounds.length - 1) }, () => new Map());
  const sums = new Map<string, number>();
  for (let row = 0; row < t.seconds.length; row++) {
    const name = names[t[by][row]!]!;
    const slice = slices[t.slice[row]!]!;
    slice.set(name, (slice.get(name) ?? 0) + t.seconds[row]!);
    sums.set(name, (sums.get(name) ?? 0) + t.seconds[row]!);
  }
  const paint = by === "culprit" ? colour : (name: string) => `c${Math.max(0, RESOURCES.indexOf(name))}`;
  const order = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return slices.map((slice) =>
    order
      .filter((name) => (slice.get(name) ?? 0) > 0)
      .map((name) => ({ name, seconds: slice.get(name)!, colour: paint(name) })),
  );
}

const total = (parts: Part[]): number => parts.reduce((sum, part) => sum + part.seconds, 0);

/** Quotes a text for a shell. */
const quoted = (text: string): string => (/^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);

/** The options `--since` and `--until` for a period, widened to whole seconds. */
function period(originMs: number, from: number, to: number): string {
  const moment = (second: number) => new Date(1000 * second).toISOString().replace(/\.\d+Z$/, "Z");
  const [first, last] = [Math.floor(originMs / 1000 + from), Math.ceil(originMs / 1000 + to)];
  return `--since ${moment(first)} --until ${moment(last)}`;
}

export function ContentionTime(props: {
  found: QueryContention;
  colour: (name: string) => string;
  route: Route;
  dir: string;
}) {
  const { found, route } = props;
  const by = route.options.get("by") === "resource" ? "resource" : "culprit";
  const relative = route.options.get("scale") === "share";
  const slices = stacks(found, by, props.colour);
  if (slices.length === 0) return null;
  const bounds = found.timeline.bounds;
  const most = Math.max(...slices.map(total), 1e-9);
  const asked = Number(route.options.get("slice") ?? -1);
  const chosen = slices[asked] ? asked : -1;
  const own = found.victim.label;
  const shown = (name: string) =>
    by === "resource" ? resourceName(name) : name === own ? "its own other tasks" : culpritName(name);
  const at = (s: number) => `${s.toFixed(s < 100 ? 1 : 0)} s`;
  const title = (slice: number) => {
    const parts = slices[slice]!;
    return [
      `${at(bounds[slice]!)} to ${at(bounds[slice + 1]!)}: blocked for ${seconds(total(parts))}`,
      ...parts.slice(0, 8).map((part) => `${seconds(part.seconds)}  ${shown(part.name)}`),
    ].join("\n");
  };
  const choice = (label: string, options: Record<string, string | null>, active: boolean) => (
    <a class="choice" href={changed(route, options)} aria-current={active ? "true" : undefined}>
      {label}
    </a>
  );
  const sums = new Map<string, Part>();
  for (const part of slices.flat())
    sums.set(part.name, { ...part, seconds: part.seconds + (sums.get(part.name)?.seconds ?? 0) });
  const legend = [...sums.values()].filter((part) => part.colour !== "c-other").sort((a, b) => b.seconds - a.seconds);
  return (
    <figure class="time" aria-label="Blocked time over the query's time">
      <figcaption class="tools">
        <b>Blocked time, and because of whom</b>
        {choice("by culprit", { by: null }, by === "culprit")}
        {choice("by resource", { by: "resource" }, by === "resource")}
        <span class="gap" />
        {choice("seconds", { scale: null }, !relative)}
        {choice("share", { scale: "share" }, relative)}
      </figcaption>
      <div class="chart">
        <span class="axis top">{relative ? "100%" : seconds(most)}</span>
        <span class="axis zero">0</span>
        <div class="columns" onKeyDown={arrowsAcross}>
          {slices.map((parts, slice) => {
            const whole = total(parts);
            const height = (part: Part) => ({
              height: `${(100 * part.seconds) / (relative ? Math.max(whole, 1e-9) : most)}%`,
            });
            return (
              <button
                type="button"
                key={slice}
                data-column
                class="column"
                title={title(slice)}
                aria-label={title(slice)}
                aria-pressed={slice === chosen}
                tabIndex={slice === (chosen < 0 ? 0 : chosen) ? 0 : -1}
                onClick={() => go(changed(route, { slice: slice === chosen ? null : slice }))}
              >
                {parts.map((part) => (
                  <span key={part.name} class={part.colour} style={height(part)} />
                ))}
              </button>
            );
          })}
        </div>
        <div class="ticks">
          <span>{at(bounds[0]!)}</span>
          <span class="muted">since the first task</span>
          <span>{at(bounds[bounds.length - 1]!)}</span>
        </div>
      </div>
      <p class="legend">
        {legend.map(({ name, colour }) => (
          <span class="entry" key={name} title={shown(name)}>
            <span class={`key ${colour}`} /> {shown(name)}
          </span>
        ))}
        {sums.size > legend.length && (
          <span class="entry">
            <span class="key c-other" /> others
          </span>
        )}
      </p>
      {slices[chosen] && (
        <div class="slice">
          <b>
            {at(bounds[chosen]!)} to {at(bounds[chosen + 1]!)}
          </b>
          : blocked for {seconds(total(slices[chosen]))}.{" "}
          {slices[chosen].slice(0, 6).map((part, n) => (
            <span key={part.name}>
              {n > 0 && ", "}
              {shown(part.name)} {share(part.seconds / Math.max(1e-9, total(slices[chosen]!)))}
            </span>
          ))}
          <pre>
            unfuse blame {quoted(props.dir)} --victim {quoted(found.victim.name)}{" "}
            {period(found.timeline.origin_ms, bounds[chosen]!, bounds[chosen + 1]!)}
          </pre>
        </div>
      )}
    </figure>
  );
}
