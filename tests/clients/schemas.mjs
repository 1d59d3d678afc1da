// Reads what the gateway sent with the zod schemas in the published sources of Vercel's AI SDK. The argument is a file
// of JSON lines: {"name", "api", "streamed", "body"}. Prints the fields that the schemas read, and each failure.
import { readFileSync, realpathSync } from "node:fs";
import { registerHooks, stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";

const sources = /\/@ai-sdk\/[a-z-]+\/src\//;
const unexported = { "openai-compatible-chat-language-model.ts": "OpenAICompatibleChatResponseSchema, chunkBaseSchema" };
registerHooks({
  resolve: (name, context, next) =>
    sources.test(context.parentURL ?? "") && name.startsWith(".") && !name.endsWith(".ts")
      ? next(`${name}.ts`, context)
      : next(name, context),
  load(url, context, next) {
    if (!sources.test(url)) return next(url, context);
    const code = stripTypeScriptTypes(readFileSync(fileURLToPath(url), "utf8"), { mode: "transform" });
    const more = unexported[url.split("/").at(-1)];
    return { format: "module", shortCircuit: true, source: more ? `${code}\nexport { ${more} };` : code };
  },
});

const packages = realpathSync(new URL("node_modules/@ai-sdk", import.meta.url));
const from = (path) => import(`${packages}/${path}`);
const { asSchema } = await import("@ai-sdk/provider-utils");
const openai = await from("openai/src/chat/openai-chat-api.ts");
const responses = await from("openai/src/responses/openai-responses-api.ts");
const openaiError = await from("openai/src/openai-error.ts");
const anthropic = await from("anthropic/src/anthropic-messages-api.ts");
const anthropicError = await from("anthropic/src/anthropic-error.ts");
const compatible = await from("openai-compatible/src/chat/openai-compatible-chat-language-model.ts");
const compatibleError = await from("openai-compatible/src/openai-compatible-error.ts");

const schemas = {
  chat: {
    whole: [openai.openaiChatResponseSchema, compatible.OpenAICompatibleChatResponseSchema],
    event: [openai.openaiChatChunkSchema, compatible.chunkBaseSchema().or(compatibleError.openaiCompatibleErrorDataSchema)],
    error: [openaiError.openaiErrorDataSchema(), compatibleError.openaiCompatibleErrorDataSchema],
  },
  responses: {
    whole: [responses.openaiResponsesResponseSchema],
    event: [responses.openaiResponsesChunkSchema],
    error: [openaiError.openaiErrorDataSchema()],
  },
  messages: {
    whole: [anthropic.anthropicMessagesResponseSchema],
    event: [anthropic.anthropicMessagesChunkSchema],
    error: [anthropicError.anthropicErrorDataSchema],
  },
};

// The fields of a body that are in what a schema has read of it; the others it leaves out.
const read = (body, parsed) => {
  if (body === null || typeof body !== "object" || parsed === null || typeof parsed !== "object") return 0;
  const keys = Object.keys(body).filter((key) => key in parsed);
  const inside = keys.map((key) => read(body[key], parsed[key]));
  return (Array.isArray(body) ? 0 : keys.length) + inside.reduce((sum, count) => sum + count, 0);
};

const found = { bodies: 0, fields: 0, failures: {} };
for (const line of readFileSync(process.argv[2], "utf8").trim().split("\n")) {
  const { name, api, streamed, body } = JSON.parse(line);
  const isError = !streamed && body.error != null && body.object !== "response";
  found.bodies += 1;
  for (const schema of schemas[api][isError ? "error" : streamed ? "event" : "whole"]) {
    const result = await asSchema(schema).validate(body);
    if (result.success) found.fields += read(body, result.value);
    else found.failures[`${api}, ${name}: ${body.type ?? body.object}`] = String(result.error.message).slice(0, 600);
  }
}
console.log(JSON.stringify(found));
