import { expect, test } from "vitest";
import { ratesOf, samplesOf, sumOf, tokensByModel } from "./metrics";

const TEXT = `# HELP gen_ai_client_token_usage Tokens of one engine call.
# TYPE gen_ai_client_token_usage histogram
gen_ai_client_token_usage_bucket{type="input",operation="chat",model="m",le="+Inf"} 3.0
gen_ai_client_token_usage_sum{type="input",operation="chat",model="m"} 120.0
gen_ai_client_token_usage_sum{type="input",operation="read",model="m"} 80
gen_ai_client_token_usage_sum{type="output",operation="chat",model="m"} 1.5e1
gateway_fullness_ratio 0.25
job_dead_letters NaN
gateway_active_requests{lane="interactive"} 2.0 1700000000000
`;

test("names, labels and values are read; comments are not", () => {
  const samples = samplesOf(TEXT);
  expect(samples).toHaveLength(7);
  expect(samples[0]).toEqual({ name: "gen_ai_client_token_usage_bucket", labels: { type: "input", operation: "chat", model: "m", le: "+Inf" }, value: 3 });
  expect(sumOf(samples, "gateway_active_requests", { lane: "interactive" })).toBe(2);
  expect(sumOf(samples, "gateway_fullness_ratio")).toBe(0.25);
});

test("a value that is not a number counts as none", () => {
  expect(sumOf(samplesOf(TEXT), "job_dead_letters")).toBeNull();
  expect(sumOf(samplesOf(TEXT), "missing")).toBeNull();
});

test("escapes, commas and braces in a label's value are part of it", () => {
  const [sample] = samplesOf(String.raw`a{x="q\"u,o}t\\e\n",y=""} +Inf`);
  expect(sample?.labels).toEqual({ x: 'q"u,o}t\\e\n', y: "" });
  expect(sample?.value).toBe(Number.POSITIVE_INFINITY);
});

test("lines that are not in the format are left out, and do not hide the others", () => {
  const samples = samplesOf('<html>\nbroken{x="1 2\nfine 1\nno_value\nwords one\n{} 3\n__proto__{__proto__="x"} 1\r\n');
  expect(samples.map(({ name }) => name)).toEqual(["fine", "__proto__"]);
});

test("tokens are summed by model over all operations", () => {
  expect([...tokensByModel(samplesOf(TEXT))]).toEqual([["m", { input: 200, output: 15 }]]);
});

test("rates are per minute, and a restart of the process does not make them negative", () => {
  const reading = (atS: number, input: number) => ({ atS, tokens: new Map([["m", { input, output: 0 }]]) });
  expect(ratesOf([reading(0, 100), reading(30, 150), reading(60, 20)], "m")).toEqual([null, 100, 40]);
  expect(ratesOf([reading(0, 1), reading(0, 2)], "m")).toEqual([null, null]);
});
