import { expect, test } from "vitest";
import { eventsOf } from "./sse";

function responseOf(...parts: string[]): Response {
  const encoder = new TextEncoder();
  return new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        for (const part of parts) controller.enqueue(encoder.encode(part));
        controller.close();
      },
    }),
  );
}

async function all(response: Response) {
  const found = [];
  for await (const event of eventsOf(response)) found.push(event);
  return found;
}

test("events that arrive in pieces are put together", async () => {
  const events = await all(responseOf("event: a\nda", "ta: 1\n", "\ndata: 2\n\n"));
  expect(events).toEqual([
    { event: "a", data: "1" },
    { event: "message", data: "2" },
  ]);
});

test("heartbeats are skipped, and the last event needs no blank line", async () => {
  expect(await all(responseOf(": heartbeat\n\n", "data: x"))).toEqual([{ event: "message", data: "x" }]);
});

test("a data line that begins with a space keeps all but the first", async () => {
  expect(await all(responseOf("data:  two\ndata: lines\n\n"))).toEqual([{ event: "message", data: " two\nlines" }]);
});
