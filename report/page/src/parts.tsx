// Small components that several views share.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count } from "./format";

/** The result of a promise; `undefined` while it is pending. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): T | Error | undefined {
  const [state, setState] = useState<{ keys: unknown[]; value: T | Error }>();
  useEffect(() => {
    let current = true;
    const set = (value: T | Error) => current && setState({ keys, value });
    load().then(set, (e: unknown) => set(e instanceof Error ? e : new Error(String(e))));
    return () => {
      current = false;
    };
  }, keys);
  return state && state.keys.every((key, at) => key === keys[at]) ? state.value : undefined;
}

/** A bar for `part` over a bar for `whole`, if there is one; `of` is the value of the full width. */
export function Bar(props: { part: number; whole?: number; of: number; title?: string; kind?: string }) {
  const width = (n: number) => ({ width: `${props.of > 0 ? Math.min(100, (100 * n) / props.of) : 0}%` });
  return (
    <span class={`bar ${props.kind ?? ""}`} title={props.title}>
      {props.whole !== undefined && <span class="whole" style={width(props.whole)} />}
      <span class="part" style={width(props.part)} />
    </span>
  );
}

/** A number, in grey if it is zero. */
export function Zero({ n, as }: { n: number; as: (n: number) => string }) {
  return n === 0 ? <span class="faint">0</span> : <>{as(n)}</>;
}

/** The name of a row, as a link if it has a target. */
export function Name({ href, title, children }: { href: string | undefined; title?: string; children: string }) {
  return href ? (
    <a data-row class="name" href={href} title={title ?? children}>
      {children}
    </a>
  ) : (
    <span class="name" title={children}>
      {children}
    </span>
  );
}

export function Empty(props: { children: ComponentChildren }) {
  return <p class="empty">{props.children}</p>;
}

/** Makes a handler that moves the focus among elements of a list with two keys, Home and End. */
function moving(selector: string, back: string, on: string) {
  return (event: KeyboardEvent): void => {
    const items = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(selector)];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const to = { [on]: at + 1, [back]: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    const item = items[Math.max(0, Math.min(items.length - 1, to))];
    if (!item || (event.target as HTMLElement).tagName === "INPUT") return;
    event.preventDefault();
    item.focus();
  };
}

/** Moves the focus among elements with `data-row`, one below the other. */
export const arrows = moving("[data-row]", "ArrowUp", "ArrowDown");

/** Moves the focus among elements with `data-column`, side by side. */
export const arrowsAcross = moving("[data-column]", "ArrowLeft", "ArrowRight");

/** Handles Enter and Space on an element that is not a link. */
export function onEnter(act: () => void) {
  return (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    act();
  };
}

export function Pages(props: { page: number; size: number; of: number; what: string; go: (page: number) => void }) {
  const last = Math.max(0, Math.ceil(props.of / props.size) - 1);
  if (last === 0) return null;
  const first = props.page * props.size;
  return (
    <nav class="pages" aria-label={`Pages of ${props.what}`}>
      <button type="button" disabled={props.page === 0} onClick={() => props.go(props.page - 1)}>
        ‹ Previous
      </button>
      <span>
        {count(first + 1)}–{count(Math.min(props.of, first + props.size))} of {count(props.of)} {props.what}
      </span>
      <button type="button" disabled={props.page >= last} onClick={() => props.go(props.page + 1)}>
        Next ›
      </button>
    </nav>
  );
}

/** The head of a column, which sorts the table by this column. */
export function SortHead(props: {
  by: string;
  now: string;
  go: (by: string) => void;
  title?: string;
  /** Whether a narrow window hides the column. */
  wide?: boolean;
  children: ComponentChildren;
}) {
  const active = props.by === props.now;
  return (
    <th class={`number ${props.wide ? "wide" : ""}`} aria-sort={active ? "descending" : "none"} title={props.title}>
      <button type="button" class="sort" onClick={() => props.go(props.by)}>
        {props.children}
        <span aria-hidden="true">{active ? " ▾" : ""}</span>
      </button>
    </th>
  );
}

/** A command, and a button that copies it. */
export function Copied({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const code = useRef<HTMLElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Without permission to write to the clipboard, the page can still copy a selection.
      getSelection()?.selectAllChildren(code.current!);
      document.execCommand("copy");
    }
    setDone(true);
    setTimeout(() => setDone(false), 2000);
  };
  return (
    <span class="command">
      <code ref={code}>{text}</code>
      <button type="button" onClick={copy} aria-label={`Copy the command ${text}`}>
        {done ? "copied" : "copy"}
      </button>
      <span class="sr" role="status">
        {done ? "copied" : ""}
      </span>
    </span>
  );
}

/** A text with code between backticks. */
export function Marked({ children }: { children: string }) {
  return <>{children.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}</>;
}

/** Notes about missing data, each once, without those in `but`. */
export function Notes({ of, but = [] }: { of: string[]; but?: string[] }) {
  return (
    <>
      {[...new Set(of)]
        .filter((note) => !but.includes(note))
        .map((note) => (
          <p class="hint" key={note}>
            Note: {note}.
          </p>
        ))}
    </>
  );
}
