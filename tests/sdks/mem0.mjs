// mem0's TypeScript client: every method works as the Python client's does, or reports that it is not served. The
// arguments are the gateway, two tenants' keys, and the filters of the Python client's tests with what they find.
import assert from "node:assert/strict";
import { MemoryClient } from "mem0ai";

const [host, aliceKey, bobKey, table] = process.argv.slice(2);
const alice = new MemoryClient({ apiKey: aliceKey, host });
const bob = new MemoryClient({ apiKey: bobKey, host });
const nobody = "00000000-0000-0000-0000-000000000000";
const tea = [{ role: "user", content: "I like green tea." }];

const added = async (text, options = {}) => {
  const said = [{ role: "user", content: text }];
  const answer = await alice.add(said, { userId: "ann", infer: false, ...options });
  assert.equal(answer.status, "SUCCEEDED");
  return answer.results[0].id;
};
const listed = async (client, filters) => (await client.getAll({ filters })).results.map((one) => one.memory).sort();
const emptied = () => alice.deleteAll({ userId: "*" });

// The memory writer decides; an add that waits answers its results.
const queued = await alice.add(tea, { userId: "ann" });
assert.equal(queued.status, "PENDING");
const waited = await alice.add(tea, { userId: "ann", asyncMode: false });
assert.deepEqual(waited.results.map((one) => one.memory), ["Ann drinks green tea."]);
await emptied();

// One memory through its life.
const id = await added("Tea at five.", { metadata: { rank: 1 }, expirationDate: "2999-01-31" });
const got = await alice.get(id);
assert.deepEqual([got.memory, got.userId, got.metadata], ["Tea at five.", "ann", { rank: 1 }]);
assert.equal((await alice.search("tea", { filters: { user_id: "ann" }, topK: 1 })).results[0].id, id);
assert.equal((await alice.feedback({ memoryId: id, feedback: "POSITIVE", feedbackReason: "true" })).feedback, "POSITIVE");
assert.equal((await alice.update(id, { text: "Tea at six." })).memory, "Tea at six.");
await alice.batchUpdate([{ memoryId: id, text: "Tea at seven." }]);
const steps = await alice.history(id);
assert.deepEqual(steps.map((step) => [step.event, step.newMemory]), [
  ["ADD", "Tea at five."],
  ["UPDATE", "Tea at six."],
  ["UPDATE", "Tea at seven."],
]);
await alice.delete(id);
assert.deepEqual(await listed(alice, { user_id: "ann" }), []);
const other = await added("Milk.");
await alice.batchDelete([other]);
assert.deepEqual(await listed(alice, { user_id: "ann" }), []);

// The filter grammar.
await added("Ann.", { metadata: { rank: 1 } });
await added("Ann at work.", { agentId: "work", metadata: { rank: 2 } });
await added("Ann at home.", { agentId: "home" });
await added("Bob at work.", { userId: "bob", agentId: "work" });
for (const [name, [filters, texts]] of Object.entries(JSON.parse(table))) {
  assert.deepEqual(await listed(alice, filters), texts, name);
  const found = await alice.search("Ann at work", { filters });
  assert.deepEqual(found.results.map((one) => one.memory).sort(), texts, name);
}
const page = await alice.getAll({ filters: { user_id: "ann" }, page: 1, pageSize: 2 });
assert.deepEqual([page.count, page.results.length], [3, 2]);

// Tenants are apart, users are listed and deleted.
assert.deepEqual(await listed(bob, { user_id: "*" }), []);
const users = (await alice.users()).results.filter((one) => one.type === "user").map((one) => one.name);
assert.deepEqual(users.sort(), ["ann", "bob"]);
await alice.deleteUsers({ userId: "bob" });
await alice.deleteAll({ userId: "ann", agentId: "home" });
assert.deepEqual(await listed(alice, { user_id: "*" }), ["Ann at work.", "Ann."]);
await alice.deleteUsers();
assert.deepEqual((await alice.users()).results, []);

// Refusals are the client's own errors.
await assert.rejects(alice.get(nobody), (error) => error.constructor.name === "MemoryNotFoundError");
await assert.rejects(alice.add(tea, {}), (error) => error.statusCode === 422 || /422/.test(String(error.errorCode)));
const wrong = new MemoryClient({ apiKey: "wrong", host });
await assert.rejects(wrong.users(), (error) => error.constructor.name === "AuthenticationError");

// What is not served is refused by name, never ignored.
const unserved = {
  getProject: [{ fields: [] }],
  updateProject: [{ customInstructions: "Be brief." }],
  getWebhooks: [{ projectId: "p" }],
  createWebhook: [{ projectId: "p", name: "w", webhookUrl: "https://example.org", eventTypes: ["memory_add"] }],
  updateWebhook: [{ webhookId: "1", name: "w" }],
  deleteWebhook: [{ webhookId: "1" }],
  getProfile: [{ userId: "ann" }],
  generateProfile: [{ userId: "ann" }],
  getProfileSettings: [],
  updateProfileSettings: [{ enabled: true }],
  sampleProfiles: [{}],
  getProfileJob: ["job"],
  createMemoryExport: [{ schema: {}, filters: { user_id: "ann" } }],
  getMemoryExport: [{ memoryExportId: "e" }],
};
for (const [method, options] of Object.entries(unserved)) {
  await assert.rejects(alice[method](...options), (error) => /501/.test(`${error.errorCode} ${error.message}`), method);
}

// Every public method has been called.
const served = ["add", "get", "getAll", "search", "update", "delete", "deleteAll", "history", "users", "deleteUsers", "feedback"];
const known = [...served, "batchUpdate", "batchDelete", "ping", "deleteUser", ...Object.keys(unserved)];
const methods = Object.getOwnPropertyNames(MemoryClient.prototype).filter((name) => !name.startsWith("_"));
assert.deepEqual(methods.filter((name) => !known.includes(name)), ["constructor"]);
console.log("done");
