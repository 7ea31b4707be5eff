/** Keys: the handler that was rendered last answers, so that two keys in a row meet the page as it is. */

import { useLayoutEffect, useRef } from "preact/hooks";

export function useKeys(handle: (event: KeyboardEvent) => void): void {
  const latest = useRef(handle);
  latest.current = handle;
  // Before the page is painted: who sees what a key is about may press it.
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (!event.ctrlKey && !event.metaKey && !event.altKey && !typing) latest.current(event);
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}
