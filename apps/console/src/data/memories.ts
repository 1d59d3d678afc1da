import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, send, type Schema } from "../api";

export type Item = Schema["MemoryItem"];
export type Hit = Schema["SearchHit"];
export type MemoryEvent = Schema["MemoryEvent"];
export type Version = Schema["ItemVersion"];
export type Verdict = Schema["Feedback"]["verdict"];
export interface Space {
  user: string;
  agent?: string | undefined;
  run?: string | undefined;
}

const PAGE = 200;
const MOST_HITS = 50;
const EVENTS = 200;

const named = ({ user, agent, run }: Space) => ({ user_id: user, agent_id: agent, run_id: run });
const inBody = ({ user, agent, run }: Space) => ({ user_id: user, ...(agent && { agent_id: agent }), ...(run && { run_id: run }) });

export function useItems(space: Space, enabled: boolean) {
  return useInfiniteQuery({
    queryKey: ["memory", "items", space],
    queryFn: ({ pageParam, signal }) => api.get("/v1/memory", { query: { ...named(space), cursor: pageParam, limit: PAGE }, signal }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor || undefined,
    enabled,
  });
}

export interface Asked {
  query: string;
  raw: boolean;
  history: boolean;
}

export function useSearch(space: Space, asked: Asked) {
  return useQuery({
    queryKey: ["memory", "search", space, asked],
    queryFn: ({ signal }) =>
      api.post("/v1/memory/search", {
        body: { query: asked.query, ...inBody(space), top_k: MOST_HITS, explain: true, include_raw: asked.raw, latest_only: !asked.history },
        signal,
      }),
    enabled: asked.query !== "",
    placeholderData: (before) => before,
  });
}

export function useHistory(id: string) {
  return useQuery({
    queryKey: ["memory", "history", id],
    queryFn: ({ signal }) => api.get("/v1/memory/{item_id}/history", { path: { item_id: id }, signal }),
  });
}

/** A user's newest writes; asked for again and again while any of them is unfinished or `live` is set. */
export function useEvents(space: Space, { live = false, enabled = true }: { live?: boolean; enabled?: boolean } = {}) {
  return useQuery({
    queryKey: ["memory", "events", space],
    queryFn: ({ signal }) => api.get("/v1/memory/events", { query: { ...named(space), limit: EVENTS }, signal }),
    refetchInterval: ({ state }) => (live || state.data?.events.some(isOpen) ? 2_000 : false),
    enabled,
  });
}

export function isOpen(event: MemoryEvent): boolean {
  return event.status === "queued" || event.status === "in_progress";
}

export function useBuffers(user: string) {
  return useQuery({
    queryKey: ["memory", "buffers", user],
    queryFn: ({ signal }) => api.get("/v1/memory/buffers", { query: { user_id: user }, signal }),
  });
}

/** What changes memories; each refreshes everything that shows them. */
export function useChange<T, R>(change: (value: T) => Promise<R>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSettled: () => Promise.all([queries.invalidateQueries({ queryKey: ["memory"] }), queries.invalidateQueries({ queryKey: ["entities"] })]),
  });
}

export const edited = ({ item, memory }: { item: Item; memory: string }) =>
  api.patch("/v1/memory/{item_id}", { path: { item_id: item.id }, body: { memory }, headers: { "If-Match": String(item.version ?? 1) } });
export const deleted = (id: string) => api.delete("/v1/memory/{item_id}", { path: { item_id: id } });
export const recovered = (id: string) => api.post("/v1/memory/{item_id}/recover", { path: { item_id: id } });
export const judged = ({ id, feedback }: { id: string; feedback: Verdict | null }) => api.post("/v1/memory/{item_id}/feedback", { path: { item_id: id }, body: { feedback } });
export const erased = (space: Space) => api.delete("/v1/memory", { query: named(space) });
export const settled = (space: Space) => api.post("/v1/memory/buffers/flush", { body: inBody(space) });
export const retried = (id: string) => api.post("/v1/memory/events/{event_id}/retry", { path: { event_id: id } });
export const redecided = (id: string) => api.post("/v1/memory/events/{event_id}/redecide", { path: { event_id: id } });
export const imported = async (file: Blob): Promise<Schema["Imported"]> =>
  (await send("post", "/v1/memory/import", { body: file, headers: { "Content-Type": "application/jsonl" } })).json();
export const exported = async (space: Space): Promise<Blob> =>
  (await send("post", "/v1/memory/export", { body: { ...inBody(space), include_raw: true } })).blob();
