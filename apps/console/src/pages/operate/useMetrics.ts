import { useQuery } from "@tanstack/react-query";
import { gatewayUrl } from "../../api";
import { samplesOf, tokensByModel, type Reading, type Sample } from "./metrics";

const EVERY_MS = 5_000;
const MOST_READINGS = 720;

/** Readings since the page was loaded: an hour at the pace of one every five seconds. */
const readings: Reading[] = [];

export interface Metrics {
  /** Null where the gateway serves its metrics on a port of its own. */
  samples: Sample[] | null;
  readings: readonly Reading[];
}

/** The gateway's metrics, read again every five seconds. */
export function useMetrics() {
  return useQuery({
    queryKey: ["metrics"],
    queryFn: async ({ signal }): Promise<Metrics> => {
      const response = await fetch(gatewayUrl("/metrics"), { signal });
      if (!response.ok) return { samples: null, readings: [] };
      const samples = samplesOf(await response.text());
      readings.push({ atS: Date.now() / 1000, tokens: tokensByModel(samples) });
      if (readings.length > MOST_READINGS) readings.shift();
      return { samples, readings: [...readings] };
    },
    refetchInterval: EVERY_MS,
    structuralSharing: false,
    retry: false,
  });
}
