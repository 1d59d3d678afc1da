// Chat completions and the Responses API by the TypeScript SDK; the gateway is the first argument. The engine follows
// test_typescript.py.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "unused", maxRetries: 0 });
const model = "fake-model";
const memory = { memory: { user_id: "u1" } };
const parameters = { type: "object", properties: { city: { type: "string" } } };

// Chat completions: JSON, a stream, a tool, an error, a token count of the stream.
const messages = [{ role: "user", content: "Hi." }];
const chat = await client.chat.completions.create({ model, messages, ...memory });
assert.equal(chat.choices[0].message.content, "Hello.");
assert.match(chat.memory.write_event_id, /^evt_/);

const runner = client.chat.completions.stream({ model, messages, ...memory, stream_options: { include_usage: true } });
assert.equal(await runner.finalContent(), "Hello.");
assert.equal((await runner.totalUsage()).total_tokens, 10);

const tools = [{ type: "function", function: { name: "weather", parameters } }];
const asked = await client.chat.completions.create({ model, messages, tools });
assert.equal(asked.choices[0].message.tool_calls[0].function.arguments, '{"city": "Oslo"}');

await assert.rejects(client.chat.completions.create({ model, messages }), (error) => {
  assert.ok(error instanceof OpenAI.RateLimitError);
  return true;
});

// Responses: JSON, stored and continued, a stream, tools of every kind, an error, deletion.
const first = await client.responses.create({ model, input: "Hi.", ...memory });
assert.equal(first.output_text, "Hello.");
assert.match(first.memory.write_event_id, /^evt_/);
const second = await client.responses.create({ model, input: "And?", previous_response_id: first.id });
assert.equal(second.previous_response_id, first.id);
assert.equal((await client.responses.retrieve(second.id)).output_text, "Hello.");
const items = await client.responses.inputItems.list(second.id);
assert.deepEqual(items.data.map((item) => item.content[0].text), ["And?"]);

const texts = [];
const stream = client.responses.stream({ model, input: "Hi.", store: false });
stream.on("response.output_text.delta", (event) => texts.push(event.delta));
const streamed = await stream.finalResponse();
assert.deepEqual([texts.join(""), streamed.output_text, streamed.usage.total_tokens], ["Hello.", "Hello.", 10]);

const offered = [
  { type: "function", name: "weather", parameters, strict: false },
  { type: "custom", name: "note", description: "Keeps a note." },
];
const called = await client.responses.create({ model, input: "Note it.", tools: offered });
assert.deepEqual(called.output.map((item) => item.type), ["function_call", "custom_tool_call"]);
assert.equal(called.output[1].input, "Rain.");
const outputs = [
  { type: "function_call_output", call_id: called.output[0].call_id, output: "Rain." },
  { type: "custom_tool_call_output", call_id: called.output[1].call_id, output: "kept" },
];
const told = await client.responses.create({ model, input: outputs, tools: offered, previous_response_id: called.id });
assert.equal(told.output_text, "Hello.");

await assert.rejects(client.responses.create({ model, input: "Hi.", prompt: { id: "p" } }), (error) => {
  assert.ok(error instanceof OpenAI.BadRequestError);
  assert.equal(error.param, "prompt");
  return true;
});
await client.responses.delete(first.id);
await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);

const abandoned = await client.responses.create({ model, input: "Hi.", stream: true });
for await (const event of abandoned) {
  if (event.type === "response.output_text.delta") break;
}
console.log("done");
