// The source of the data: blocks inside this page, or a server that has them as JSON files.

import { detailOf } from "./bundle";
import type {
  Bundle,
  Comparison,
  Contention,
  Detail,
  FrameNames,
  Places,
  QueryContention,
  QueryWhatIf,
  Skew,
  Source,
  Summary,
  WallTime,
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
  [query: `wall-time-${number}`]: WallTime | null;
  [query: `what-if-${number}`]: QueryWhatIf;
  [source: `source-${string}`]: Source;
}

export interface DataSource {
  /** Loads a block by name; fails if there is none. */
  load<N extends keyof Blocks & string>(name: N): Promise<Blocks[N]>;
}

type Load = (name: string) => Promise<unknown>;

/** Blocks in `<script id="block-NAME">`: JSON, deflated, in base64. */
export function embedded(page: Document): DataSource {
  return from(async (name) => {
    const id = `block-${name}`;
    // The script starts before the blocks after it are parsed. A block with no successor may be incomplete.
    if (!page.getElementById(id)?.nextSibling && page.readyState === "loading") await parsed(page);
    const text = page.getElementById(id)?.textContent;
    if (!text) throw new Error(`this report has no ${name}`);
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Response(stream).json();
  });
}

/** `BASE/NAME.json`. */
export function fetched(base: string): DataSource {
  return from(async (name) => {
    const response = await fetch(`${base}/${encodeURIComponent(name)}.json`);
    if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}`);
    return response.json();
  });
}

/** Most blocks kept in memory, so that going back does not unpack a recent block again. */
const KEPT = 24;
/** The same for blocks that several queries share, which are larger. */
const SHARED_KEPT = 4;

function from(load: Load): DataSource {
  return { load: remembering(KEPT, unbundling(load)) as DataSource["load"] };
}

/** Extracts what belongs to a query from the blocks that it shares with others. */
function unbundling(load: Load): Load {
  const shared = remembering(SHARED_KEPT, load);
  return async (name) => {
    const [, kind, query] = /^(query|wall-time)-(\d+)$/.exec(name) ?? [];
    if (query === undefined) return load(name);
    const places = (await shared("places")) as Places;
    const [number, at] = [places.bundle[Number(query)], places.at[Number(query)]];
    if (number === undefined || at === undefined) throw new Error(`this report has no ${name}`);
    if (kind === "wall-time") return ((await shared(`wall-times-${number}`)) as (WallTime | null)[])[at] ?? null;
    return detailOf((await shared(`details-${number}`)) as Bundle, at);
  };
}

function remembering(kept: number, load: Load): Load {
  const known = new Map<string, Promise<unknown>>();
  return (name) => {
    const found = known.get(name) ?? load(name);
    known.delete(name);
    known.set(name, found);
    for (const oldest of known.keys()) {
      if (known.size <= kept) break;
      known.delete(oldest);
    }
    return found;
  };
}

function parsed(page: Document): Promise<void> {
  return new Promise((resolve) => page.addEventListener("DOMContentLoaded", () => resolve(), { once: true }));
}
