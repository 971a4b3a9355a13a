// The frames of a flame graph with their totals, and the choice of frames to draw.

import type { Flame } from "./generated/model";

export interface FlameTree {
  flame: Flame;
  size: number;
  /** For each frame: its parent (-1 for roots), the end of its subtree, its totals. */
  parent: Int32Array;
  end: Int32Array;
  cpu: Float64Array;
  samples: Float64Array;
  all: { cpu: number; samples: number };
}

/** A frame's place: its row, and its left edge and width as parts of the graph's width. */
export interface Box {
  at: number;
  row: number;
  left: number;
  width: number;
}

/** The virtual root above all roots. */
export const ALL = -1;

export function flameTree(flame: Flame): FlameTree {
  const size = flame.depth.length;
  const parent = new Int32Array(size);
  const end = new Int32Array(size);
  const cpu = Float64Array.from(flame.cpu_ns);
  const samples = Float64Array.from(flame.samples);
  const open: number[] = [];
  for (let at = 0; at < size; at++) {
    while (open.length > flame.depth[at]!) end[open.pop()!] = at;
    parent[at] = open.at(-1) ?? ALL;
    open.push(at);
  }
  for (const at of open) end[at] = size;
  const all = { cpu: 0, samples: 0 };
  for (let at = size - 1; at >= 0; at--) {
    const up = parent[at]!;
    if (up === ALL) {
      all.cpu += cpu[at]!;
      all.samples += samples[at]!;
    } else {
      cpu[up]! += cpu[at]!;
      samples[up]! += samples[at]!;
    }
  }
  return { flame, size, parent, end, cpu, samples, all };
}

export function children(tree: FlameTree, of: number): number[] {
  const found: number[] = [];
  const last = of === ALL ? tree.size : tree.end[of]!;
  for (let at = of + 1; at < last; at = tree.end[at]!) found.push(at);
  return found;
}

/** The frames to draw for a zoomed frame: it and its ancestors over the whole width, and its
 *  descendants that are at least `narrowest` wide. */
export function layout(tree: FlameTree, zoom: number, narrowest: number): Box[] {
  const boxes: Box[] = [];
  const around: number[] = [];
  for (let at = zoom; at !== ALL; at = tree.parent[at]!) around.unshift(at);
  boxes.push({ at: ALL, row: 0, left: 0, width: 1 });
  around.forEach((at, index) => boxes.push({ at, row: index + 1, left: 0, width: 1 }));
  const whole = zoom === ALL ? tree.all.cpu : tree.cpu[zoom]!;
  const below = (of: number, row: number, left: number) => {
    for (const at of children(tree, of)) {
      const width = whole > 0 ? tree.cpu[at]! / whole : 0;
      // Siblings are in descending order of width.
      if (width < narrowest) break;
      boxes.push({ at, row, left, width });
      below(at, row + 1, left);
      left += width;
    }
  };
  below(zoom, around.length + 1, 0);
  return boxes;
}
