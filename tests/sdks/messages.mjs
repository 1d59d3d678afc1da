// The Messages API by the TypeScript SDK; the gateway is the first argument. The engine follows test_typescript.py.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "unused", maxRetries: 0 });
const asked = { model: "fake-model", max_tokens: 100, messages: [{ role: "user", content: "Hi." }] };
const memory = { memory: { user_id: "u1" } };
const tools = [{ name: "weather", input_schema: { type: "object", properties: { city: { type: "string" } } } }];

const answer = await client.messages.create({ ...asked, ...memory });
assert.deepEqual(answer.content.map((block) => block.text), ["Hello."]);
assert.equal(answer.stop_reason, "end_turn");
assert.match(answer.memory.write_event_id, /^evt_/);
assert.match(answer._request_id, /^req_/);

const texts = [];
const stream = client.messages.stream({ ...asked, ...memory });
stream.on("text", (text) => texts.push(text));
const streamed = await stream.finalMessage();
assert.deepEqual(texts, ["Hel", "lo."]);
assert.deepEqual([streamed.usage.input_tokens, streamed.usage.output_tokens], [7, 3]);

const called = await client.messages.stream({ ...asked, tools }).finalMessage();
const [call] = called.content;
assert.deepEqual([call.type, call.input, called.stop_reason], ["tool_use", { city: "Oslo" }, "tool_use"]);
const result = { type: "tool_result", tool_use_id: call.id, content: "Rain." };
const messages = [...asked.messages, { role: "assistant", content: called.content }, { role: "user", content: [result] }];
const told = await client.messages.create({ ...asked, tools, messages });
assert.equal(told.content[0].text, "Rain.");

await assert.rejects(client.messages.create(asked), (error) => {
  assert.ok(error instanceof Anthropic.RateLimitError);
  assert.equal(error.error.error.type, "rate_limit_error");
  return true;
});
const counted = await client.messages.countTokens({ model: asked.model, messages: asked.messages });
assert.ok(counted.input_tokens > 0);

const abandoned = await client.messages.create({ ...asked, stream: true });
for await (const event of abandoned) {
  if (event.type === "content_block_delta") break;
}
console.log("done");
