// Vercel's AI SDK with its defaults, on one of our three APIs. The arguments are the gateway and the provider.
import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

globalThis.AI_SDK_LOG_WARNINGS = false;
const [gateway, provider] = process.argv.slice(2);
const options = { baseURL: `${gateway}/v1`, apiKey: "unused", headers: { "X-Memory-User-Id": "ada" } };
const model = {
  anthropic: () => createAnthropic(options)("fake-model"),
  responses: () => createOpenAI(options)("fake-model"),
  chat: () => createOpenAI(options).chat("fake-model"),
  compatible: () => createOpenAICompatible({ name: "memloop", includeUsage: true, ...options })("fake-model"),
}[provider]();
const asked = { model, maxRetries: 0 };
const said = (content) => ({ role: "user", content });

const first = await generateText({ ...asked, messages: [said("My code is 482.")] });
assert.equal(first.text, "Hello.");
const messages = [said("My code is 482."), ...first.response.messages, said("Again?")];
assert.equal((await generateText({ ...asked, messages })).text, "Hello.");

const streamed = streamText({ ...asked, prompt: "Hi." });
const pieces = [];
for await (const piece of streamed.textStream) pieces.push(piece);
assert.equal(pieces.join(""), "Hello.");
assert.equal((await streamed.usage).outputTokens, 3);

const inputSchema = z.object({ city: z.string() });
const weather = tool({ description: "The weather.", inputSchema, execute: async ({ city }) => `Rain in ${city}.` });
const told = await generateText({ ...asked, prompt: "How is it?", tools: { weather }, stopWhen: stepCountIs(3) });
assert.deepEqual([told.text, told.steps.length], ["It rains.", 2]);
console.log("done");
