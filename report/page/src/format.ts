// Formats numbers for display. Columns are right-aligned, so units are short.

/** `3.53 s`, `58 ms`, `2 m 05 s`. */
export function time(ns: number): string {
  const ms = ns / 1e6;
  if (ms === 0) return "0";
  if (ms < 0.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  const s = ms / 1000;
  if (s < 99.95) return `${s.toFixed(s < 9.995 ? 2 : 1)} s`;
  const whole = Math.round(s);
  const two = (n: number) => String(n).padStart(2, "0");
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} m`;
}

export const timeMs = (ms: number): string => time(ms * 1e6);
export const seconds = (s: number): string => time(s * 1e9);

/** The time per row: `0.8 ns`, `120 ns`, `3.4 µs`. */
export function perRow(ns: number): string {
  const digits = (n: number) => n.toFixed(n < 9.95 ? 1 : 0);
  if (ns < 0.05) return "<0.1 ns";
  if (ns < 999.5) return `${digits(ns)} ns`;
  return ns < 999_500 ? `${digits(ns / 1e3)} µs` : time(ns);
}

/** A difference, always with its sign. */
export function change(ns: number): string {
  return ns === 0 ? "0" : `${ns > 0 ? "+" : "−"}${time(Math.abs(ns))}`;
}

export function percent(part: number, whole: number): string {
  if (whole <= 0 || part === 0) return "";
  const value = (100 * part) / whole;
  return value < 0.05 ? "<0.1%" : `${value.toFixed(1)}%`;
}

/** The percentage of a part from 0 to 1. */
export const share = (part: number): string => (part > 0 && part < 0.0005 ? "<0.1%" : `${(100 * part).toFixed(1)}%`);

/** `29.0–33.5%`: bounds of a share. */
export const range = ([low, high]: [number, number]): string => `${(100 * low).toFixed(1)}–${(100 * high).toFixed(1)}%`;

export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1023.5 && at < units.length - 1) {
    n /= 1024;
    at++;
  }
  return `${at === 0 || n >= 99.5 ? n.toFixed(0) : n.toFixed(1)} ${units[at]}`;
}

/** `1,234,567`; the separator does not depend on the reader's locale. */
export const count = (n: number): string => n.toLocaleString("en-US");

const two = (n: number) => String(n).padStart(2, "0");

/** `2026-11-21 11:04:59`, local time. */
export function moment(ms: number | null): string {
  if (ms === null || ms <= 0) return "";
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(ms)}`;
}

export function clock(ms: number): string {
  const d = new Date(ms);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export const plural = (n: number, what: string): string =>
  `${count(n)} ${n === 1 ? what : `${what}s`.replace(/([^aeiou])ys$/, "$1ies")}`;

/** Shortens a text for a tooltip; the query's own page has the whole text. */
export const clipped = (text: string): string => (text.length > 1000 ? `${text.slice(0, 1000)} …` : text);
