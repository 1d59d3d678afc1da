import { expect, test } from "vitest";
import type { MemoryEvent } from "../../data/memories";
import { outcomeOf } from "./outcomes";

function event(status: MemoryEvent["status"], ...actions: NonNullable<MemoryEvent["decisions"]>[number]["action"][]): MemoryEvent {
  return { event_id: "evt_1", status, user_id: "ann", created_at: "2026-05-01T00:00:00Z", decisions: actions.map((action) => ({ action })) } as MemoryEvent;
}

test.each([
  [event("queued"), "waiting"],
  [event("in_progress", "search"), "waiting"],
  [event("failed", "invalid"), "failed"],
  [event("kept_verbatim", "invalid", "invalid"), "kept"],
  [event("completed", "search", "add"), "added"],
  [event("completed", "buffer"), "buffered"],
  [event("completed", "search", "ignore"), "ignored"],
] as const)("a write's outcome is that of its last decision that counts", (write, outcome) => {
  expect(outcomeOf(write)).toBe(outcome);
});
