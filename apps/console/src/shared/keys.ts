import { useEffect, useRef } from "react";

/** Call the handler of a pressed key. Inside a field only Escape counts; keys with Ctrl, Alt or Meta are the browser's. */
export function useKeys(handlers: Record<string, (() => void) | undefined>): void {
  const latest = useRef(handlers);
  useEffect(() => {
    latest.current = handlers;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const target = event.target as HTMLElement;
      const writes = target.matches("input, textarea, select, [contenteditable]");
      if (writes && event.key !== "Escape") return;
      const handler = latest.current[event.key];
      if (!handler) return;
      event.preventDefault();
      if (writes) target.blur();
      handler();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
