// The MCP SDK: memories by tools over streamable HTTP. The arguments are the gateway and a key.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [gateway, key] = process.argv.slice(2);
const client = new Client({ name: "tests", version: "1" });
const requestInit = { headers: { Authorization: `Bearer ${key}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway}/mcp`), { requestInit }));
const call = async (name, given) => {
  const result = await client.callTool({ name, arguments: given });
  assert.ok(!result.isError, JSON.stringify(result.content));
  return result.content[0].text;
};

const names = (await client.listTools()).tools.map((tool) => tool.name);
assert.ok(["memory_add", "memory_search", "long_read"].every((name) => names.includes(name)), String(names));
await call("memory_add", { user_id: "ada", text: "My code is 482.", infer: false });
assert.match(await call("memory_search", { user_id: "ada", query: "code", top_k: "3" }), /482/);
await client.close();
console.log("done");
