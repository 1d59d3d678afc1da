import { QueryClient } from "@tanstack/react-query";
import { asApiError } from "./api";

const MOST_TRIES = 2;

/** Only failures that may pass are tried again; a refused key or a wrong field is shown at once. */
export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (failures, error) => failures < MOST_TRIES && asApiError(error).isTemporary,
        retryDelay: (attempt) => 500 * 2 ** attempt,
      },
      mutations: { retry: false },
    },
  });
}
