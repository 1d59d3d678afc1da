import { memo } from "react";
import type { Schema } from "../../api";
import type { Hit, Item } from "../../data/memories";
import { Moment } from "../../shared";
import { Explain } from "./Explain";

export const TYPE_NAMES: Record<Item["memory_type"], string> = { LongTermMemory: "Long term", UserMemory: "User", KeptTurn: "Kept turn", RawTurn: "Raw turn" };

interface Props {
  item: Item;
  hit: Hit | undefined;
  isOpen: boolean;
  onOpen: (id: string) => void;
}

/** A memory in a list; it is drawn again only when something of it changed, not at every step of scrolling. */
export const ItemRow = memo(function ItemRow({ item, hit, isOpen, onOpen }: Props) {
  const isOver = Boolean(item.valid_to);
  return (
    <button type="button" className={`list-row memory-row ${isOpen ? "is-open" : ""} ${isOver ? "is-over" : ""}`} aria-current={isOpen || undefined} onClick={() => onOpen(item.id)}>
      <span className="memory-text text">{item.memory}</span>
      <span className="row wrap faint memory-meta">
        <span className="tag">{TYPE_NAMES[item.memory_type]}</span>
        {(item.version ?? 1) > 1 && <span className="tag accent">version {item.version}</span>}
        {isOver && <span className="tag">superseded</span>}
        {item.status === "deleted" && <span className="tag bad">deleted</span>}
        {item.agent_id && <span className="tag violet">agent {item.agent_id}</span>}
        {item.run_id && <span className="tag violet">run {item.run_id}</span>}
        {item.tags?.slice(0, 4).map((tag) => (
          <span key={tag} className="tag">
            #{tag}
          </span>
        ))}
        <Moment at={item.valid_from} />
      </span>
      {hit && <Explain hit={hit} />}
    </button>
  );
});

const WAITS: Record<string, string> = { queued: "queued", in_progress: "being decided", buffered: "waits for more context" };

export function TurnRow({ turn, status }: { turn: Schema["Source"] | Schema["PendingTurn"]; status: string }) {
  return (
    <div className="turn">
      <span className="turn-role">{turn.name ?? turn.role}</span>
      <span className="text grow">{turn.content}</span>
      <span className="tag warn">{WAITS[status] ?? status}</span>
    </div>
  );
}
