import { expect, test } from "vitest";
import { changesOf, countOf, excerptOf, type Piece } from "./words";

const marks = { kept: "", added: "+", removed: "-" };
const drawn = (pieces: readonly Piece[]) => pieces.map(({ change, text }) => `${marks[change]}${text.trim()}`).join("|");
const side = (pieces: readonly Piece[], without: Piece["change"]) =>
  pieces
    .filter(({ change }) => change !== without)
    .map(({ text }) => text)
    .join("");

test("a replaced word is removed and added in its place", () => {
  expect(drawn(changesOf("the code is 482 today", "the code is 517 today"))).toBe("the code is|-482|+517|today");
});

test("equal texts have no change, and a first text is all added", () => {
  expect(drawn(changesOf("a b c", "a b c"))).toBe("a b c");
  expect(drawn(changesOf("", "a b"))).toBe("+a b");
  expect(drawn(changesOf("a b", ""))).toBe("-a b");
  expect(changesOf("", "")).toEqual([]);
});

test("a sentence put in the middle leaves both sides unchanged", () => {
  const before = "Ann lives in Kiel. Ben is a smith.";
  const after = "Ann lives in Kiel. She moved in May. Ben is a smith.";
  expect(drawn(changesOf(before, after))).toBe("Ann lives in Kiel.|+She moved in May.|Ben is a smith.");
});

test("other white space is not a change", () => {
  expect(drawn(changesOf("one two\n\nthree", "one  two three"))).toBe("one  two three");
});

test.each([
  ["a b a b a", "b a b a b"],
  ["x y z", "z y x"],
  ["the cat the dog the cat", "the dog the cat the dog the end"],
  [" begins with space", "begins with space"],
])("both texts can be read back from the pieces: %s → %s", (before, after) => {
  const pieces = changesOf(before, after);
  expect(side(pieces, "removed").split(/\s+/).join(" ").trim()).toBe(after);
  expect(side(pieces, "added").split(/\s+/).join(" ").trim()).toBe(before.trim());
});

test("long texts without a unique word end after a bounded number of steps", () => {
  const before = Array.from({ length: 40_000 }, (_, index) => `w${(index * 7) % 50}`).join(" ");
  const after = Array.from({ length: 40_000 }, (_, index) => `w${(index * 11) % 50}`).join(" ");
  expect(side(changesOf(before, after), "removed").trim()).toBe(after);
});

test("an excerpt keeps a few words around each change", () => {
  const words = Array.from({ length: 50 }, (_, index) => `w${index}`);
  const pieces = changesOf(words.join(" "), words.with(20, "new").join(" "));
  expect(drawn(excerptOf(pieces, 2))).toBe("… w18 w19|-w20|+new|w21 w22 …");
  expect(countOf(pieces)).toEqual({ added: 1, removed: 1 });
});
