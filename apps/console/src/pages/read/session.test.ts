import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReadLog, type LongRead, type ReadEvent } from "./log";
import { follow, readHere, type Session } from "./session";

vi.setConfig({ testTimeout: 30_000 });
const fetched = vi.fn<typeof fetch>();

beforeEach(() => vi.stubGlobal("fetch", fetched));
afterEach(() => {
  vi.unstubAllGlobals();
  fetched.mockReset();
});

const record = (status: LongRead["status"], done = 0): LongRead => ({
  id: "lr_1",
  object: "long_read",
  status,
  created_at: 0,
  model: "tiny",
  strategy: "memreread",
  service_tier: "default",
  progress: { chunks_done: done, chunks_total: 3, pass: 1, passes_max: 3 },
  output_text: "",
  memory: "",
  subquestions: [],
  evidence: [],
  outputs: [],
  usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0, llm_calls: 0 },
  degradations: { kept: 0, truncated: 0, unusable: 0 },
});
const chunk = (sequence: number, number: number, memory: string, more: Partial<ReadEvent> = {}): ReadEvent => ({
  type: "long_read.chunk.completed",
  sequence_number: sequence,
  chunk: number,
  tokens: 100,
  memory,
  progress: { chunks_done: number + 1, chunks_total: 3, pass: 1, passes_max: 3 },
  at: new Date(sequence * 2000).toISOString(),
  ...more,
});
const begun: ReadEvent = { type: "long_read.in_progress", sequence_number: 0, read: record("in_progress") };
const done: ReadEvent = { type: "long_read.completed", sequence_number: 4, read: record("completed", 3) };

const streamOf = (...events: ReadEvent[]) => new Response(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
const over = (session: Session) => vi.waitFor(() => expect(session.log.isOver).toBe(true), 20_000);

/** Answers streams with these events in turn, and other requests with the record. */
function serve(streams: (() => Response)[], read = record("in_progress")): string[] {
  const asked: string[] = [];
  fetched.mockImplementation((input) => {
    const address = String(input);
    if (!address.includes("stream=true")) return Promise.resolve(Response.json(read));
    asked.push(new URL(address).searchParams.get("starting_after") ?? "");
    const next = streams.shift();
    return next ? Promise.resolve(next()) : Promise.reject(new TypeError("Failed to fetch"));
  });
  return asked;
}

test("a stream that breaks is resumed after its last event", async () => {
  const asked = serve([() => streamOf(begun, chunk(1, 0, "a"), chunk(2, 1, "a b")), () => streamOf(chunk(3, 2, "a b c"), done)]);
  const session = follow("lr_1");
  await over(session);
  expect(asked).toEqual(["-1", "2"]);
  expect(session.log.steps.map((step) => step.memory)).toEqual(["a", "a b", "a b c"]);
});

test("events that arrive twice are taken in once", async () => {
  serve([() => streamOf(begun, chunk(1, 0, "a")), () => streamOf(begun, chunk(1, 0, "a"), chunk(2, 1, "a b"), done)]);
  const session = follow("lr_1");
  await over(session);
  expect(session.log.steps).toHaveLength(2);
});

test("a gateway that is away for a moment is asked again from the same place", async () => {
  const away = () => Response.json({ error: { message: "Down.", code: "unavailable" } }, { status: 503 });
  const asked = serve([() => streamOf(begun, chunk(1, 0, "a")), away, () => streamOf(done)]);
  const session = follow("lr_1");
  await over(session);
  expect(asked).toEqual(["-1", "1", "1"]);
});

test("a read that is gone ends the following with the API's error", async () => {
  fetched.mockResolvedValue(Response.json({ error: { message: "There is no long read 'lr_1'.", code: "not_found" } }, { status: 404 }));
  const session = follow("lr_1");
  await vi.waitFor(() => expect(session.error?.status).toBe(404), 20_000);
  expect(fetched).toHaveBeenCalledTimes(1);
});

test("a read in this tab is named by its first event, and its broken stream ends with its record", async () => {
  fetched.mockImplementation((_, options) => Promise.resolve(options?.method === "POST" ? streamOf(begun, chunk(1, 0, "a")) : Response.json(record("cancelled", 1))));
  expect(await readHere({ question: "Who?" })).toBe("lr_1");
});

test("a read in this tab that is refused rejects with the reason", async () => {
  fetched.mockResolvedValue(Response.json({ error: { message: "The document is empty.", code: "empty_document" } }, { status: 422 }));
  await expect(readHere({ question: "Who?" })).rejects.toMatchObject({ code: "empty_document" });
});

test("each chunk knows the memory before it: of its question, pass and segment", () => {
  const log = new ReadLog();
  log.take(chunk(1, 0, "left", { segment: 0 }));
  log.take(chunk(2, 2, "right", { segment: 1 }));
  log.take(chunk(3, 1, "left more", { segment: 0 }));
  expect(log.steps.map((step) => step.before)).toEqual(["", "", "left"]);
});

test("a reread is a pass of its own below its question", () => {
  const log = new ReadLog();
  log.take(chunk(0, 0, "a"));
  log.take({ type: "long_read.reread.started", sequence_number: 1, question: "Who?", progress: { pass: 2, chunks_done: 0, chunks_total: 3, passes_max: 3 } });
  log.take(chunk(2, 0, "b", { question: "Who?", progress: { pass: 2, chunks_done: 1, chunks_total: 3, passes_max: 3 } }));
  expect(log.passes.map(({ number, question, done: read }) => [number, question, read])).toEqual([
    [1, null, 1],
    [2, "Who?", 1],
  ]);
  expect(log.steps[1]?.before).toBe("");
});

test("the remaining time follows from the pace of the chunks", () => {
  const log = new ReadLog();
  log.take(chunk(1, 0, "a"));
  expect(log.remainingS).toBeNull();
  log.take(chunk(2, 1, "a"));
  expect(log.remainingS).toBeCloseTo(2);
});

test("14,000 events are taken in without copies of what came before", () => {
  const log = new ReadLog();
  for (let number = 0; number < 14_000; number++) log.take(chunk(number, number, `memory ${number}`));
  expect(log.steps).toHaveLength(14_000);
  expect(log.passes).toHaveLength(1);
});
