import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, asApiError } from "../../api";
import { isOpen } from "../../data/memories";
import { Quantity } from "../../shared";
import { outcomeOf, TONES } from "../decisions/outcomes";
import type { Use } from "./conversation";

const MOST_SHOWN = 20;

/** What was recalled for a reply, and what the writer then made of the turn. */
export function MemoryUse({ use, user }: { use: Use; user: string }) {
  return (
    <div className="memory-use">
      {use.error && <p className="notice warn text">{use.error}</p>}
      <Recalled use={use} user={user} />
      {use.write_event_id && <Stored id={use.write_event_id} user={user} />}
    </div>
  );
}

function Recalled({ use, user }: { use: Use; user: string }) {
  const ids = (use.retrieved ?? []).slice(0, MOST_SHOWN);
  const items = useQueries({
    queries: ids.map((id) => ({
      queryKey: ["recalled", id],
      queryFn: ({ signal }: { signal: AbortSignal }) => api.get("/v1/memory/{item_id}", { path: { item_id: id }, signal }),
      staleTime: Infinity,
    })),
  });
  const pending = use.pending?.length ?? 0;
  if (!ids.length && !pending) return <p className="faint">Nothing was recalled.</p>;
  return (
    <section>
      <h2 className="field-label">
        Recalled <Quantity value={use.retrieved?.length ?? 0} one="memory" many="memories" />
        {pending > 0 && (
          <>
            {" and "}
            <Quantity value={pending} one="undecided turn" />
          </>
        )}
        {use.usage?.recalled_tokens !== undefined && (
          <span className="faint">
            {" · "}
            <Quantity value={use.usage.recalled_tokens} one="token" />
          </span>
        )}
      </h2>
      <ul className="used">
        {ids.map((id, index) => (
          <li key={id}>
            <Link to="/memories" search={{ user, item: id }} className="text">
              {items[index]?.data?.memory ?? (items[index]?.isError ? "This memory is gone" : "…")}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Stored({ id, user }: { id: string; user: string }) {
  const event = useQuery({
    queryKey: ["write", id],
    queryFn: ({ signal }) => api.get("/v1/memory/events/{event_id}", { path: { event_id: id }, signal }),
    refetchInterval: ({ state }) => (state.data && !isOpen(state.data) ? false : 1_000),
  });
  if (event.isError) return <p className="faint">What was stored cannot be shown: {asApiError(event.error).message}</p>;
  if (!event.data) return <p className="faint">The turn is queued for the writer …</p>;
  const outcome = outcomeOf(event.data);
  const reasons = event.data.decisions?.map(({ reason }) => reason).filter(Boolean) ?? [];
  return (
    <section role="status">
      <h2 className="field-label row wrap">
        Then <span className={`tag ${TONES[outcome]}`}>{outcome}</span>
        <Link to="/decisions" search={{ user, event: id }}>
          Decision
        </Link>
      </h2>
      <ul className="used">
        {event.data.memories?.map(({ item }) => (
          <li key={item.id}>
            <Link to="/memories" search={{ user, item: item.id }} className="text">
              {item.memory}
            </Link>
          </li>
        ))}
      </ul>
      {!event.data.memories?.length && reasons.length > 0 && <p className="faint text">{reasons.at(-1)}</p>}
      {event.data.error && <p className="faint text">{event.data.error}</p>}
    </section>
  );
}
