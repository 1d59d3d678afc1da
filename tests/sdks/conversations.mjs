// Conversations and background responses by the TypeScript SDK; the gateway is the first argument. The engine says in
// turn what test_typescript.py has it say.
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "unused", maxRetries: 0 });
const model = "m";

// A conversation: made, continued twice, listed by pages, changed, an item deleted, deleted.
const conversation = await client.conversations.create({
  items: [{ type: "message", role: "user", content: "My dog is called Rex." }],
  metadata: { topic: "dogs" },
});
for (const [input, said] of [["Its name?", "Rex."], ["What is it?", "A dog."]]) {
  const answer = await client.responses.create({ model, input, conversation: conversation.id });
  assert.deepEqual([answer.output_text, answer.conversation.id], [said, conversation.id]);
}
const texts = [];
for await (const item of client.conversations.items.list(conversation.id, { order: "asc", limit: 2 })) {
  texts.push(item.content[0].text);
}
assert.deepEqual(texts, ["My dog is called Rex.", "Its name?", "Rex.", "What is it?", "A dog."]);
const changed = await client.conversations.update(conversation.id, { metadata: { topic: "names" } });
assert.deepEqual(await client.conversations.retrieve(conversation.id), changed);
const newest = await client.conversations.items.list(conversation.id, { limit: 1 });
await client.conversations.items.delete(newest.data[0].id, { conversation_id: conversation.id });
assert.equal((await client.conversations.delete(conversation.id)).deleted, true);
await assert.rejects(client.conversations.retrieve(conversation.id), OpenAI.NotFoundError);

// A background response: queued, followed to its end, followed again from the middle, got.
const types = [];
let last;
for await (const event of await client.responses.create({ model, input: "Go.", background: true, stream: true })) {
  types.push(event.type);
  last = event;
}
assert.deepEqual(types.slice(0, 3), ["response.created", "response.queued", "response.in_progress"]);
assert.equal(last.type, "response.completed");
const again = [];
const from = types.length - 3;
for await (const event of await client.responses.retrieve(last.response.id, { stream: true, starting_after: from })) {
  again.push(event.type);
}
assert.deepEqual(again, types.slice(-2));
assert.equal((await client.responses.retrieve(last.response.id)).output_text, "Later.");

let queued = await client.responses.create({ model, input: "Go.", background: true });
assert.equal(queued.status, "queued");
while (["queued", "in_progress"].includes(queued.status)) queued = await client.responses.retrieve(queued.id);
assert.deepEqual([queued.status, queued.output_text], ["completed", "Later."]);
assert.equal((await client.responses.cancel(queued.id)).status, "completed");
console.log("done");
