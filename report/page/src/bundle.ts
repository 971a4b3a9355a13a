// Extracts the details of a query from a block that several queries share.

import type { Bundle, BundleFrames, Detail, Flame, Stacks } from "./generated/model";

/** The details of the query at an index of a bundle. */
export function detailOf(bundle: Bundle, at: number): Detail {
  const [operators, byCode, frames] = bundle.flames[at]!;
  return {
    ...bundle.details[at]!,
    operators: flameOf(operators, bundle.frames),
    operators_by_code: flameOf(byCode, bundle.frames),
    frames: flameOf(frames, bundle.frames),
  };
}

/** Builds a flame graph from its stacks, which are in the order of the graph. */
function flameOf(stacks: Stacks, frames: BundleFrames): Flame {
  const flame: Flame = { depth: [], kind: [], of: [], cpu_ns: [], samples: [] };
  let open: number[] = [];
  stacks.leaf.forEach((leaf, index) => {
    const stack = stackOf(leaf, frames);
    const common = stack.findIndex((frame, depth) => frame !== open[depth]);
    for (let depth = common; depth < stack.length; depth++) {
      const own = depth === stack.length - 1;
      flame.depth.push(depth);
      flame.kind.push(frames.kind[stack[depth]!]!);
      flame.of.push(frames.of[stack[depth]!]!);
      flame.cpu_ns.push(own ? stacks.cpu[index]! * stacks.unit_ns : 0);
      flame.samples.push(own ? stacks.samples[index]! : 0);
    }
    open = stack;
  });
  return flame;
}

/** A frame and its callers, root first. */
function stackOf(leaf: number, frames: BundleFrames): number[] {
  const stack = [leaf];
  for (let at = leaf, up = frames.caller[at]!; up > 0; up = frames.caller[at]!) stack.push((at -= up));
  return stack.reverse();
}
