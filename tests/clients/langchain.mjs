// LangChain.js on one of our APIs. The arguments are the gateway and the class of the model.
import assert from "node:assert/strict";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

const [gateway, name] = process.argv.slice(2);
const defaultHeaders = { "X-Memory-User-Id": "ada" };
const asked = { model: "fake-model", apiKey: "unused", maxRetries: 0 };
const openai = { ...asked, configuration: { baseURL: `${gateway}/v1`, defaultHeaders } };
const model = {
  ChatOpenAI: () => new ChatOpenAI(openai),
  "ChatOpenAI, Responses": () => new ChatOpenAI({ ...openai, useResponsesApi: true }),
  ChatAnthropic: () => new ChatAnthropic({ ...asked, anthropicApiUrl: gateway, clientOptions: { defaultHeaders } }),
}[name]();

const first = new HumanMessage("My code is 482.");
const answer = await model.invoke([first]);
assert.equal(answer.text, "Hello.");
assert.equal((await model.invoke([first, answer, new HumanMessage("Again?")])).text, "Hello.");

let streamed = "";
for await (const piece of await model.stream("Hi.")) streamed += piece.text;
assert.equal(streamed, "Hello.");

const schema = z.object({ city: z.string() });
const weather = tool(({ city }) => `Rain in ${city}.`, { name: "weather", description: "The weather.", schema });
const bound = model.bindTools([weather]);
const question = new HumanMessage("How is it?");
const called = await bound.invoke([question]);
const [call] = called.tool_calls;
assert.deepEqual([call.name, call.args], ["weather", { city: "Oslo" }]);
const result = new ToolMessage({ content: await weather.invoke(call.args), tool_call_id: call.id });
assert.equal((await bound.invoke([question, called, result])).text, "It rains.");
console.log("done");
