// How long a query would take with other slots, or without some waits: the replay of its tasks, of which the report has each
// combination.

import { plural, seconds } from "./format";
import type { QueryWhatIf } from "./generated/model";
import { Copied, Empty, useLoaded } from "./parts";
import type { TabProps } from "./query";
import { changed, replace } from "./route";

export function WhatIfTab({ source, at, route }: TabProps) {
  const model = useLoaded(() => source.load(`what-if-${at}`), [source, at]);
  if (model === undefined) return <Empty>Unpacking …</Empty>;
  if (model instanceof Error) return <Empty>The answer cannot be read: {model.message}</Empty>;
  const slot = chosenSlots(model, route.options.get("slots"));
  const on = new Set((route.options.get("with") ?? "").split(" "));
  const bits = model.switches.reduce((bits, { change }, bit) => (on.has(change) ? bits | (1 << bit) : bits), 0);
  const set = (options: Record<string, string | number | null>) => replace(changed(route, options));
  const toggle = (change: string) => {
    const next = model.switches.map((one) => one.change).filter((one) => on.has(one) !== (one === change));
    set({ with: next.join(" ") || null });
  };
  const now = secondsOf(model, 0, model.recorded);
  const then = secondsOf(model, bits, slot);
  const changes = [
    ...(slot === model.recorded ? [] : [`slots=${model.slots[slot]}`]),
    ...model.switches.filter(({ change }) => on.has(change)).map(({ change }) => change),
  ];
  return (
    <section class="whatif" aria-label="What if">
      <p class="lead" role="status">
        {changes.length === 0
          ? `It takes ${seconds(now)}. Choose what would be different.`
          : `It would take ${seconds(then)} instead of ${seconds(now)}${difference(now, then)}.`}
      </p>
      {!model.reliable && (
        <p class="hint">
          Not reliable: the replay of the unchanged run is far from the measured {seconds(model.measured_s)}.
        </p>
      )}
      <div class="bars" aria-hidden="true">
        <Bar what="now" of={now} most={Math.max(now, then)} kind="v-unknown" />
        <Bar
          what="then"
          of={then}
          most={Math.max(now, then)}
          kind={then === now ? "v-unknown" : then > now ? "w-more" : "w-less"}
        />
      </div>
      <label class="slots">
        Slots
        <input
          type="range"
          min={0}
          max={model.slots.length - 1}
          step={1}
          value={slot}
          list="whatif-slots"
          aria-valuetext={plural(model.slots[slot]!, "slot")}
          onInput={(event) => {
            const chosen = Number(event.currentTarget.value);
            set({ slots: chosen === model.recorded ? null : model.slots[chosen]! });
          }}
        />
        <output>
          {model.slots[slot]}
          {slot === model.recorded && <span class="how"> as recorded</span>}
        </output>
      </label>
      <datalist id="whatif-slots">
        {model.slots.map((_, at) => (
          <option key={at} value={at} />
        ))}
      </datalist>
      {model.switches.map(({ change, what }, bit) => (
        <label key={change} class="switch">
          <input type="checkbox" checked={on.has(change)} onChange={() => toggle(change)} />
          <span>{what}</span>
          <span class="how">{alone(model, bit, now)}</span>
        </label>
      ))}
      <p class="hint">
        These times come from a replay of this run's tasks. Savings of several changes do not add up. This command adds
        ranges, operators and neighbours:
      </p>
      <Copied text={[model.command, ...changes].join(" ")} />
    </section>
  );
}

function Bar({ what, of, most, kind }: { what: string; of: number; most: number; kind: string }) {
  return (
    <>
      <span class="muted">{what}</span>
      <span class="track">
        <span class={kind} style={{ width: `${most > 0 ? (100 * of) / most : 0}%` }} />
      </span>
      <span class="number">{seconds(of)}</span>
    </>
  );
}

/** The position of the chosen number of slots; that of the recorded one if none is chosen. */
function chosenSlots(model: QueryWhatIf, text: string | undefined): number {
  const at = text === undefined ? -1 : model.slots.indexOf(Number(text));
  return at < 0 ? model.recorded : at;
}

function secondsOf(model: QueryWhatIf, bits: number, slot: number): number {
  return model.seconds[bits * model.slots.length + slot] ?? 0;
}

/** What a change saves by itself. */
function alone(model: QueryWhatIf, bit: number, now: number): string {
  return `saves ${seconds(Math.max(0, now - secondsOf(model, 1 << bit, model.recorded)))} by itself`;
}

function difference(now: number, then: number): string {
  const part = Math.round((100 * Math.abs(then - now)) / (now || 1));
  if (part === 0) return ", as long as now";
  return `, ${part}% ${then < now ? "shorter" : "longer"}`;
}
