import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useSyncExternalStore } from "react";
import { ApiError, errorIn, eventsOf, send } from "../../api";

export type Mode = "readwrite" | "read" | "write" | "off";

/** What the gateway reports about memory on the last chunk of a reply. */
export interface Use {
  retrieved?: string[];
  pending?: string[];
  write_event_id?: string | null;
  usage?: { recalled_tokens?: number };
  error?: string | null;
}

export interface Turn {
  id: number;
  role: "user" | "assistant";
  text: string;
  user: string;
  isStreaming: boolean;
  memory?: Use | undefined;
  error?: unknown;
}

interface Options {
  model: string;
  user: string;
  mode: Mode;
}

/** The conversation outlives a visit to another page, and ends with the tab. */
let turns: readonly Turn[] = [];
let running: AbortController | null = null;
let nextId = 1;
const listeners = new Set<() => void>();

function set(next: readonly Turn[]): void {
  turns = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useConversation() {
  const shown = useSyncExternalStore(subscribe, () => turns);
  const queries = useQueryClient();
  const start = useCallback(
    async (text: string, options: Options) => {
      await converse(text, options);
      await queries.invalidateQueries({ queryKey: ["memory"] });
    },
    [queries],
  );
  return { turns: shown, isBusy: shown.some(({ isStreaming }) => isStreaming), send: start, stop, clear };
}

function stop(): void {
  running?.abort();
}

function clear(): void {
  stop();
  set([]);
}

async function converse(text: string, { model, user, mode }: Options): Promise<void> {
  const asked: Turn = { id: nextId++, role: "user", text, user, isStreaming: false };
  const reply: Turn = { id: nextId++, role: "assistant", text: "", user, isStreaming: true };
  const before = turns.filter(({ error }) => error === undefined);
  set([...turns, asked, reply]);
  const change = (changes: Partial<Turn>) => set(turns.map((turn) => (turn.id === reply.id ? { ...turn, ...changes } : turn)));
  const messages = [...before, asked].filter(({ text: content }) => content).map(({ role, text: content }) => ({ role, content }));
  const memory = user && mode !== "off" ? { user_id: user, mode } : { mode: "off" };
  running = new AbortController();
  try {
    const response = await send("post", "/v1/chat/completions", { body: { model, messages, stream: true, stream_options: { include_usage: true }, memory }, signal: running.signal });
    let written = "";
    for await (const { event, data } of eventsOf(response)) {
      if (data === "[DONE]") break;
      const chunk = parsed(data);
      if (event === "error" || chunk.error) throw errorIn(chunk, response.status);
      written += chunk.choices?.[0]?.delta?.content ?? "";
      change({ text: written, ...(chunk.memory && { memory: chunk.memory }) });
    }
    change({ isStreaming: false });
  } catch (failure) {
    const stopped = failure instanceof DOMException && failure.name === "AbortError";
    change({ isStreaming: false, error: stopped ? new ApiError("Stopped. Nothing of this reply is remembered.") : failure });
  } finally {
    running = null;
  }
}

interface Chunk {
  choices?: { delta?: { content?: string | null } }[];
  memory?: Use;
  error?: unknown;
}

function parsed(data: string): Chunk {
  try {
    return JSON.parse(data) as Chunk;
  } catch {
    throw new ApiError("The reply could not be read to its end.");
  }
}
