import { expect, test } from "vitest";
import type { Evidence } from "./highlights";
import { answerRuns, statementsOf } from "./statements";

const entry = (statement: string, supported = true, source: Evidence["source"] = "output_text"): Evidence => ({ statement, source, supported, similar: false, ...(supported && { start: 0, end: 3 }) });

test("the places of a statement are gathered", () => {
  const statements = statementsOf([entry("A."), entry("B.", false), entry("A."), entry("A.", true, "memory")]);
  expect(statements.map(({ text, source, places, supported }) => [text, source, places, supported])).toEqual([
    ["A.", "output_text", [0, 2], true],
    ["B.", "output_text", [], false],
    ["A.", "memory", [3], true],
  ]);
});

test("an answer is cut at its statements, and no text is lost", () => {
  const statements = statementsOf([entry("The code is 482."), entry("It is new.", false), entry("Not in the text.")]);
  const runs = answerRuns("Well. The code is 482. It is new. Bye.", statements);
  expect(runs.map(({ text }) => text).join("")).toBe("Well. The code is 482. It is new. Bye.");
  expect(runs.filter(({ statement }) => statement).map(({ text, statement }) => [text, statement?.supported])).toEqual([
    ["The code is 482.", true],
    ["It is new.", false],
  ]);
});

test("a statement without support names the sentence that is similar", () => {
  const similar: Evidence = { ...entry("She bought it.", false), similar: true, similarity: 0.81, start: 4, end: 20, text: "It was bought by her." };
  expect(statementsOf([similar, entry("A.")]).map((statement) => [statement.supported, statement.similar])).toEqual([
    [false, "It was bought by her."],
    [true, null],
  ]);
});
