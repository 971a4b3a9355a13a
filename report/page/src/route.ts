// The state of the page in the URL's hash: `#/query/0-3/flame?level=full&zoom=17`.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Route {
  path: string[];
  options: Map<string, string>;
}

export function parse(hash: string): Route {
  const [path = "", options = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decode),
    options: new Map(new URLSearchParams(options)),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The hash of a place. Options that are empty are left out. */
export function link(
  path: (string | number)[],
  options: Record<string, string | number | null | undefined> = {},
): string {
  const kept = Object.entries(options).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${query ? `?${query}` : ""}`;
}

/** The hash of a route with some options changed. */
export function changed(route: Route, options: Record<string, string | number | null>): string {
  return link(route.path, { ...Object.fromEntries(route.options), ...options });
}

/** Navigates with a new entry in the history, so that the back button returns. */
export function go(hash: string): void {
  if (hash !== location.hash) location.hash = hash;
}

/** Navigates without a new entry in the history: the back button must not undo single letters of a filter. */
export function replace(hash: string): void {
  history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}

/** The last scroll position of each place, by hash. */
const scrolled = new Map<string, number>();

/** Scrolls a new view to its top or its last position. Moves the focus into it, as the focused element is gone. */
export function useFreshView(view: string): void {
  const shown = useRef<string>(undefined);
  useEffect(() => {
    // The browser would restore the position before the new view is drawn, limited by the height of the old one.
    history.scrollRestoration = "manual";
    const keep = () => scrolled.set(location.hash, scrollY);
    window.addEventListener("scroll", keep, { passive: true });
    return () => window.removeEventListener("scroll", keep);
  }, []);
  useLayoutEffect(() => {
    if (shown.current !== undefined && shown.current !== view) {
      document.querySelector("main")?.focus({ preventScroll: true });
      scrollTo(0, scrolled.get(location.hash) ?? 0);
    }
    shown.current = view;
  }, [view]);
}
