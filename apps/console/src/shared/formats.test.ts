import { expect, test } from "vitest";
import { parseSearch, writtenSearch } from "../router";
import { ago } from "./Moment";
import { quantity } from "./Quantity";

test("a number has its unit in the right number", () => {
  expect(quantity(1, "memory", "memories")).toBe("1 memory");
  expect(quantity(12_000, "memory", "memories")).toMatch(/^12.000 memories$/);
});

test("a recent time is relative, an old one a date", () => {
  const now = new Date("2026-05-07T12:00:00Z");
  expect(ago(new Date("2026-05-07T11:58:00Z"), now)).toBe("2 minutes ago");
  expect(ago(new Date("2025-01-02T12:00:00Z"), now)).toContain("2025");
});

test("values in an address stay texts", () => {
  const search = { user: "42", q: "a&b=c d", item: "true" };
  expect(parseSearch(writtenSearch(search))).toEqual(search);
  expect(writtenSearch({ user: undefined, q: "" })).toBe("");
});
