import { useQuery } from "@tanstack/react-query";
import { gatewayUrl } from "../api";

interface Readiness {
  status: string;
  dependencies?: Record<string, string>;
  warnings?: Record<string, string>;
}

/** Whether the gateway and what it depends on are available. `/readyz` answers 503 with the same body. */
export function useReadiness() {
  return useQuery({
    queryKey: ["readyz"],
    queryFn: async ({ signal }): Promise<Readiness> => {
      const response = await fetch(gatewayUrl("/readyz"), { signal });
      return (await response.json()) as Readiness;
    },
    refetchInterval: 10_000,
    retry: false,
  });
}

export function StackState() {
  const { data, isError } = useReadiness();
  if (!data && !isError) return <span className="stack-state" />;
  const down = Object.entries(data?.dependencies ?? {}).filter(([, state]) => state !== "ok");
  const text = isError ? "The gateway does not answer" : down.length ? `Down: ${down.map(([name]) => name).join(", ")}` : (Object.values(data?.warnings ?? {})[0] ?? "Ready");
  const tone = isError || down.length ? "bad" : data?.warnings ? "warn" : "good";
  return (
    <span className={`stack-state ${tone}`} role="status" title={down.map(([name, state]) => `${name}: ${state}`).join("\n") || text}>
      <span className="lamp" />
      <span className="stack-text">{tone === "warn" ? "Warning" : text}</span>
    </span>
  );
}
