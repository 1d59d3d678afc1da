import { useMemo, useRef } from "react";
import type { Item, Space } from "../../data/memories";

interface Place {
  agent: string | undefined;
  run: string | undefined;
  count: number;
}

/** The namespaces of these items, the fullest first. */
export function placesOf(items: readonly Item[]): Place[] {
  const places = new Map<string, Place>();
  for (const { agent_id, run_id } of items) {
    const name = `${agent_id ?? ""}\n${run_id ?? ""}`;
    const place = places.get(name);
    if (place) place.count += 1;
    else places.set(name, { agent: agent_id ?? undefined, run: run_id ?? undefined, count: 1 });
  }
  return [...places.values()].sort((a, b) => b.count - a.count);
}

function labelOf({ agent, run }: Omit<Place, "count">): string {
  const parts = [agent && `agent ${agent}`, run && `run ${run}`].filter(Boolean);
  return parts.join(", ") || "the user's own";
}

/** Chooses one of the namespaces that the loaded memories lie in; nothing to choose is not shown. */
export function Namespaces({ items, space, onChoose }: { items: readonly Item[]; space: Space; onChoose: (agent: string | undefined, run: string | undefined) => void }) {
  const known = useRef<Place[]>([]);
  const isChosen = Boolean(space.agent || space.run);
  const found = useMemo(() => placesOf(items), [items]);
  const places = isChosen ? known.current : found; // eslint-disable-line react-hooks/refs -- the list before the choice
  if (!isChosen) known.current = places; // eslint-disable-line react-hooks/refs -- see above
  const named = places.filter(({ agent, run }) => agent || run);
  if (!named.length && !isChosen) return null;
  const chosen = named.findIndex(({ agent, run }) => agent === space.agent && run === space.run);
  return (
    <select
      className="namespaces"
      aria-label="Namespace"
      value={isChosen ? (chosen < 0 ? "given" : String(chosen)) : ""}
      onChange={(event) => {
        const place = named[Number(event.target.value)];
        onChoose(event.target.value === "" ? undefined : place?.agent, event.target.value === "" ? undefined : place?.run);
      }}
    >
      <option value="">All namespaces</option>
      {isChosen && chosen < 0 && <option value="given">{labelOf({ agent: space.agent, run: space.run })}</option>}
      {named.map((place, index) => (
        <option key={labelOf(place)} value={index}>
          {labelOf(place)} ({place.count})
        </option>
      ))}
    </select>
  );
}
