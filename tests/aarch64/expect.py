#!/usr/bin/env python3
"""Fails unless most samples of a profile's main thread have the frames that are wanted, in this order.

Usage: expect.py FOLDED PERCENT FRAME…, where FOLDED has the stacks of `unfuse export --format folded`."""
import sys


def has(stack, wanted):
    """Whether the frames are in the stack, in this order."""
    rest = iter(stack)
    return all(any(frame == part for part in rest) for frame in wanted)


def main(path, percent, *wanted):
    total = found = 0
    leaves = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, samples = line.rsplit(" ", 1)
            frames = [part for part in stack.split(";") if "@L" not in part]
            if frames[0] != "main":
                continue
            total += int(samples)
            found += int(samples) * has(frames, wanted)
            leaves[frames[-1]] = leaves.get(frames[-1], 0) + int(samples)
    most = sorted(leaves.items(), key=lambda leaf: -leaf[1])[:6]
    print(f"  {found} of {total} samples of main have {' → '.join(wanted)}; the leaves with most: {most}")
    if total == 0 or 100 * found < float(percent) * total:
        sys.exit(f"  expected {percent}% of the samples")


main(*sys.argv[1:])
