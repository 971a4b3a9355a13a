// Texts for the causes of slow tasks and for the measures of their data; docs/skew.md explains each.

import { bytes, count } from "./format";
import type { Cause, Measure, TaskVerdict } from "./generated/model";

interface Words {
  name: string;
  means: string;
}

export const CAUSES: Record<Cause, Words> = {
  data: { name: "data skew", means: "they have more records or bytes, in proportion to their time" },
  computation: { name: "computation skew", means: "they take longer for as much data: some records are expensive" },
  "data-or-computation": {
    name: "data or computation skew",
    means: "they take longer, and Spark counted no data of that stage",
  },
  "garbage-collection": { name: "garbage collection", means: "they ran while their JVM collected garbage" },
  "fetch-wait": { name: "shuffle fetch wait", means: "they waited for blocks of a shuffle" },
  "shuffle-write": { name: "slow shuffle write", means: "they waited for the disk they write to" },
  spill: { name: "spill", means: "they spilled more to disk" },
  "warm-up": {
    name: "warm-up",
    means: "they are the first tasks of a stage on an executor: code is loaded and compiled, broadcasts are fetched",
  },
  host: { name: "slow host", means: "they are those of one host" },
  executor: { name: "slow executor", means: "they are those of one executor" },
  locality: { name: "remote data", means: "they had their data on another machine" },
  start: { name: "slow start", means: "they took longer before they ran, or after" },
};

const RUNNING: Words = { name: "tasks still run", means: "they still run, for far longer than the others took" };

/** Why a stage is slow. A stage that has no slow task yet waits for running tasks. */
export const whySlow = (verdict: TaskVerdict): Words =>
  typeof verdict === "object" ? CAUSES[verdict.skewed] : RUNNING;

export const MEASURES: Record<Measure, { name: string; as: (amount: number) => string }> = {
  "read-records": { name: "Records read", as: count },
  "read-bytes": { name: "Bytes read", as: bytes },
  "written-records": { name: "Records written", as: count },
  "written-bytes": { name: "Bytes written", as: bytes },
};

/** A probability in percent; at most 99%, as no result is certain. */
export const sure = (probability: number): string => `${Math.min(99, Math.floor(100 * probability))}%`;
