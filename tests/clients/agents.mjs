// OpenAI's Agents SDK on one of our APIs. The arguments are the gateway and the API.
import assert from "node:assert/strict";
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";

const [gateway, api] = process.argv.slice(2);
setTracingDisabled(true);
const headers = { "X-Memory-User-Id": "ada" };
const openAIClient = new OpenAI({ baseURL: `${gateway}/v1`, apiKey: "unused", defaultHeaders: headers, maxRetries: 0 });
const runner = new Runner({ modelProvider: new OpenAIProvider({ openAIClient, useResponses: api === "responses" }) });
const weather = tool({
  name: "weather",
  description: "The weather.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => `Rain in ${city}.`,
});

const agent = new Agent({ name: "Assistant", instructions: "Be brief.", model: "fake-model" });
const first = await runner.run(agent, "My code is 482.");
assert.equal(first.finalOutput, "Hello.");
const again = [...first.history, { role: "user", content: "Again?" }];
assert.equal((await runner.run(agent, again)).finalOutput, "Hello.");

const streamed = await runner.run(agent, "Hi.", { stream: true });
let text = "";
for await (const piece of streamed.toTextStream()) text += piece;
assert.equal(text, "Hello.");

const told = await runner.run(agent.clone({ tools: [weather] }), "How is it?");
assert.equal(told.finalOutput, "It rains.");
console.log("done");
