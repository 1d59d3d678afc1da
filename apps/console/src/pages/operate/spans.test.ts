import { expect, test } from "vitest";
import { money, spentByModel, timesOf, type Entry } from "./spans";

const entry = (at: number, model: string, cost: number | null): Entry => ({ at, model, calls: 1, input_tokens: 100, output_tokens: 20, cost });

test("a span's last step holds the moment", () => {
  const times = timesOf("day", 86_400 * 3 + 1);
  expect([times.length, times[0], times.at(-1)]).toEqual([24, 86_400 * 2 + 3_600, 86_400 * 3]);
});

test("steps without calls are zero, and each model has its own sums", () => {
  const spent = spentByModel([entry(0, "b", 0.5), entry(7_200, "b", 0.25), entry(0, "a", null)], [0, 3_600, 7_200]);
  expect(spent.map(({ model, calls, cost }) => [model, calls, cost])).toEqual([
    ["a", 1, null],
    ["b", 2, 0.75],
  ]);
  expect(spent[1]?.tokens).toEqual([120, 0, 120]);
  expect(spent[1]?.costs).toEqual([0.5, 0, 0.25]);
  expect(spent[0]?.costs).toEqual([null, null, null]);
});

test("a small cost keeps two figures", () => {
  expect([money(null), money(0), money(0.0000306), money(0.123), money(12.345)]).toEqual(["unknown", "0", "0.000031", "0.12", "12.35"]);
});
