import { isOpen, type MemoryEvent } from "../../data/memories";

/** What a write came to, by its last decision that counts; a filter of the feed. */
export const OUTCOMES = ["waiting", "added", "buffered", "ignored", "kept", "failed"] as const;
export type Outcome = (typeof OUTCOMES)[number];

export function outcomeOf(event: MemoryEvent): Outcome {
  if (event.status === "failed") return "failed";
  if (event.status === "kept_verbatim") return "kept";
  if (isOpen(event)) return "waiting";
  const actions = (event.decisions ?? []).map(({ action }) => action);
  if (event.memories?.length || actions.includes("add")) return "added";
  return actions.includes("buffer") ? "buffered" : "ignored";
}

export const TONES: Record<Outcome, string> = { waiting: "warn", added: "good", buffered: "violet", ignored: "", kept: "warn", failed: "bad" };
export const ACTION_TONES: Record<string, string> = { add: "good", search: "accent", relate: "accent", buffer: "violet", ignore: "", invalid: "bad" };
