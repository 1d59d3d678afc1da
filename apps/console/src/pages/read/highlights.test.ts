import { expect, test } from "vitest";
import { blockAt, blocksOf, marksOf, runsOf, type Evidence } from "./highlights";

const span = (start: number, end: number, supported = true): Evidence => ({ statement: "s", source: "memory", supported, similar: false, start, end });
const TEXT = "0123456789";

test("spans that overlap become marks that do not, each with all its evidence", () => {
  expect(marksOf([span(2, 6), span(4, 8)], TEXT)).toEqual([
    { start: 2, end: 4, evidence: [0] },
    { start: 4, end: 6, evidence: [0, 1] },
    { start: 6, end: 8, evidence: [1] },
  ]);
});

test("equal and nested spans keep both", () => {
  expect(marksOf([span(1, 9), span(3, 5), span(3, 5)], TEXT).map(({ evidence }) => evidence)).toEqual([[0], [0, 1, 2], [0]]);
});

test("spans that touch stay apart", () => {
  expect(marksOf([span(0, 3), span(3, 6)], TEXT).map(({ evidence }) => evidence)).toEqual([[0], [1]]);
});

test.each([
  ["beyond the end", span(8, 400), [{ start: 8, end: 10, evidence: [0] }]],
  ["before the start", span(-5, 2), [{ start: 0, end: 2, evidence: [0] }]],
  ["wholly outside", span(50, 60), []],
  ["empty", span(4, 4), []],
  ["inverted", span(6, 2), []],
  ["not a number", span(Number.NaN, 3), []],
  ["without support", span(2, 4, false), []],
])("a span that is %s", (_, evidence, marks) => {
  expect(marksOf([evidence], TEXT)).toEqual(marks);
});

test("a statement without a place has no mark", () => {
  expect(marksOf([{ statement: "s", source: "memory", supported: false, similar: false }], TEXT)).toEqual([]);
});

test("positions count characters, not halves of an emoji", () => {
  const text = "🙂🙂 code 482 🙂 end";
  const [mark] = marksOf([span(8, 11)], text);
  expect(text.slice(mark?.start, mark?.end)).toBe("482");
});

test("blocks cover a text without a gap and never cut an emoji", () => {
  for (const text of ["", "a", `${"word ".repeat(900)}\n`.repeat(3), "🙂".repeat(3001), "x".repeat(5000)]) {
    const blocks = blocksOf(text, 100);
    expect(blocks.map(({ start, end }) => text.slice(start, end)).join("")).toBe(text);
    for (const { start, end } of blocks) expect(text.slice(start, end)).not.toMatch(/\p{Surrogate}/u);
  }
});

test("a mark across blocks is drawn in each", () => {
  const text = "a".repeat(500);
  const blocks = blocksOf(text, 100);
  const marks = marksOf([span(90, 210)], text);
  const drawn = blocks.map((block) => runsOf(text, block, marks));
  expect(drawn.flat().map((run) => run.text).join("")).toBe(text);
  const marked = drawn.flat().filter((run) => run.evidence.length > 0);
  expect(marked.map((run) => run.text).join("")).toHaveLength(120);
  expect(blockAt(blocks, 90)).toBe(0);
  expect(blockAt(blocks, 210)).toBe(2);
});
