// Where the data comes from: blocks inside this page, or a server that has them as JSON files.

import type {
  Comparison,
  Contention,
  Detail,
  FrameNames,
  QueryContention,
  Skew,
  Source,
  Summary,
} from "./generated/model";

interface Blocks {
  summary: Summary;
  frames: FrameNames;
  comparison: Comparison;
  contention: Contention;
  [contended: `contention-${number}`]: QueryContention;
  skew: Skew;
  [skewed: `skew-${number}`]: Skew;
  [query: `query-${number}`]: Detail;
  [source: `source-${string}`]: Source;
}

export interface DataSource {
  /** The block of a name; fails where there is none. */
  load<N extends keyof Blocks & string>(name: N): Promise<Blocks[N]>;
}

/** Blocks in `<script id="block-NAME">`: JSON, deflated, in base64. */
export function embedded(page: Document): DataSource {
  return remembering(async (name) => {
    const id = `block-${name}`;
    // Blocks behind the script are still being read when it starts.
    if (!page.getElementById(id) && page.readyState === "loading") await parsed(page);
    const text = page.getElementById(id)?.textContent;
    if (!text) throw new Error(`this report has no ${name}`);
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).json();
  });
}

/** `BASE/NAME.json`. */
export function fetched(base: string): DataSource {
  return remembering(async (name) => {
    const response = await fetch(`${base}/${encodeURIComponent(name)}.json`);
    if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
    return response.json();
  });
}

/** Blocks kept: going back must not unpack again what was just looked at. */
const KEPT = 24;

function remembering(load: (name: string) => Promise<unknown>): DataSource {
  const known = new Map<string, Promise<unknown>>();
  return {
    load(name) {
      const found = known.get(name) ?? load(name);
      known.delete(name);
      known.set(name, found);
      for (const oldest of known.keys()) {
        if (known.size <= KEPT) break;
        known.delete(oldest);
      }
      return found as Promise<never>;
    },
  };
}

function parsed(page: Document): Promise<void> {
  return new Promise((resolve) => page.addEventListener("DOMContentLoaded", () => resolve(), { once: true }));
}
