import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api } from "../../api";
import { Failure, quantity } from "../../shared";

const SETTLED_AFTER_MS = 600;

/** What the read costs at most; asked again when the fields have not changed for a moment. */
export function EstimateLine({ document, fields }: { document: { text: string } | { file_id: string } | null; fields: Record<string, unknown> }) {
  const now = document && JSON.stringify({ ...fields, document });
  const settled = useSettled(now);
  const estimate = useQuery({
    queryKey: ["estimate", settled],
    queryFn: ({ signal }) => api.post("/v1/long-read/estimate", { body: settled ?? "", headers: { "Content-Type": "application/json" }, signal }),
    enabled: settled !== null,
    retry: false,
    gcTime: 0,
  });
  if (!document) return null;
  if (estimate.isError) return <Failure error={estimate.error} small />;
  const found = settled === now ? estimate.data : undefined;
  return (
    <dl className="figures" aria-label="Cost at most" aria-busy={!found}>
      <Figure name="Document" value={found && quantity(found.document_tokens, "token")} />
      <Figure name="Chunks" value={found && quantity(found.chunks, "chunk")} />
      <Figure name="Model calls" value={found && `≤ ${quantity(found.max_llm_calls, "call")}`} />
      <Figure name="Input" value={found && `≤ ${quantity(found.max_input_tokens, "token")}`} />
      <Figure name="Output" value={found && `≤ ${quantity(found.max_output_tokens, "token")}`} />
    </dl>
  );
}

function Figure({ name, value }: { name: string; value: string | undefined }) {
  return (
    <div>
      <dt className="faint">{name}</dt>
      <dd className="number">{value ?? "…"}</dd>
    </div>
  );
}

/** The value once it has not changed for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), SETTLED_AFTER_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
