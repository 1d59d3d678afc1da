import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api, send, setApiKey } from ".";

const fetched = vi.fn<typeof fetch>();

beforeEach(() => {
  document.head.innerHTML = '<base href="http://127.0.0.1/team/console/">'; // eslint-disable-line no-restricted-syntax -- a test's own text
  vi.stubGlobal("fetch", fetched);
  fetched.mockResolvedValue(Response.json({ ok: true }));
});
afterEach(() => {
  vi.unstubAllGlobals();
  fetched.mockReset();
  setApiKey(null);
});

test("a request goes to the gateway above the console, below any prefix", async () => {
  await api.get("/v1/memory/{item_id}", { path: { item_id: "a/b" }, query: { user_id: "ann", cursor: undefined } });
  expect(fetched.mock.calls[0]?.[0]).toBe("http://127.0.0.1/team/v1/memory/a%2Fb?user_id=ann");
});

test("the key is sent in a header and never in the address", async () => {
  setApiKey("secret");
  await send("get", "/v1/models");
  const [address, options] = fetched.mock.calls[0] ?? [];
  expect(new Headers(options?.headers).get("Authorization")).toBe("Bearer secret");
  expect(String(address)).not.toContain("secret");
});

test("an error carries the fields of the API's error object", async () => {
  const body = { error: { message: "No scope.", type: "permission_error", param: null, code: "permission_denied" } };
  fetched.mockResolvedValue(Response.json(body, { status: 403, headers: { "x-request-id": "req_1" } }));
  await expect(send("get", "/v1/models")).rejects.toMatchObject({ status: 403, code: "permission_denied", message: "No scope.", requestId: "req_1" });
});

test("a proxy's page instead of JSON is still an error with its status", async () => {
  fetched.mockResolvedValue(new Response("<h1>Bad gateway</h1>", { status: 502 }));
  await expect(send("get", "/v1/models")).rejects.toMatchObject({ status: 502, isTemporary: true });
});

test("without a response the error names the gateway", async () => {
  fetched.mockRejectedValue(new TypeError("Failed to fetch"));
  await expect(send("get", "/v1/models")).rejects.toMatchObject({ status: 0, code: "unreachable" });
});
