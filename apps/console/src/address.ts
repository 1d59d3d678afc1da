import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback } from "react";
import type { Search } from "./router";

/** The values in the page's address, and a function that changes some of them; undefined removes one. */
export function useAddress(): [Search, (changes: Search | Record<string, undefined>, options?: { replace?: boolean }) => void] {
  const search: Search = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (changes: Search | Record<string, undefined>, options: { replace?: boolean } = {}) => {
      void navigate({ to: ".", search: (now: Search) => ({ ...now, ...changes }), replace: options.replace ?? false });
    },
    [navigate],
  );
  return [search, change];
}
