// What the page shows, kept in the URL's hash: `#/query/0-3/flame?level=full&zoom=17`.

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

/** The route now, with some options changed. */
export function changed(route: Route, options: Record<string, string | number | null>): string {
  return link(route.path, { ...Object.fromEntries(route.options), ...options });
}

/** Goes there; the back button leads back. */
export function go(hash: string): void {
  if (hash !== location.hash) location.hash = hash;
}

/** Goes there in place of where we are: for typing, which is no place to come back to. */
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

/** Where each place was scrolled to when it was left. */
const scrolled = new Map<string, number>();

/** Begins another view at its top, or where it was left, and moves the focus into it: what had the focus is gone. */
export function useFreshView(view: string): void {
  const shown = useRef<string>(undefined);
  useEffect(() => {
    // The browser would do it before the view is there, as far as the one before reaches.
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
