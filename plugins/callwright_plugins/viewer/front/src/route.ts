/** Where the reader is: the part of the address after `#`, so that every state of a page has a link. */

import { useEffect, useState } from "preact/hooks";

export type Place = "rows" | "curves" | "compare" | "lab" | "synthesis";

export interface Route {
  source: string;
  place: Place;
  /** The filter (`q`), the order (`sort`), the grouping (`by`), the open row (`n`), and what else a page needs. */
  asked: Record<string, string>;
}

export function readRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [source = "", place = "rows"] = path.split("/").map(decodeURIComponent);
  return { source, place: place as Place, asked: Object.fromEntries(new URLSearchParams(query)) };
}

export function href(route: Route): string {
  const asked = new URLSearchParams(Object.entries(route.asked).filter(([, value]) => value !== ""));
  const query = asked.toString();
  return `#/${encodeURIComponent(route.source)}/${route.place}${query ? `?${query}` : ""}`;
}

/** Go there. `replace` leaves no trace in the history: for moving through rows and typing. */
export function go(route: Route, replace = false): void {
  if (replace) {
    history.replaceState(null, "", href(route));
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href(route);
  }
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return readRoute(hash);
}
