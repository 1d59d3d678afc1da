// The API by its own types and openapi-fetch; the gateway is the first argument. The engine follows test_typescript.py.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "memloop-types";

const memloop = createClient<paths>({ baseUrl: process.argv[2] });

const searched = await memloop.POST("/v1/memory/search", { body: { user_id: "u1", query: "Where is the key?" } });
assert.ok(searched.data);
const first: components["schemas"]["MemoryItem"] | undefined = searched.data.results[0]?.item;
assert.equal(first, undefined);
assert.equal(searched.data.degraded, false);

const accepted = await memloop.POST("/v1/memory/add", {
  body: { user_id: "u1", messages: [{ role: "user", content: "The key hangs in the boathouse." }] },
});
assert.ok(accepted.data);
assert.match(accepted.data.event_id, /^evt_/);

const missing = await memloop.GET("/v1/memory/events/{event_id}", { params: { path: { event_id: "evt_unknown" } } });
assert.equal(missing.response.status, 404);
assert.equal(missing.error?.error.type, "not_found_error");

// What the API does not take does not compile.
const wrong = () => [
  // @ts-expect-error: a query is text
  memloop.POST("/v1/memory/search", { body: { user_id: "u1", query: 7 } }),
  // @ts-expect-error: there is no such route
  memloop.GET("/v1/memoirs"),
];
assert.equal(typeof wrong, "function");
console.log("done");
