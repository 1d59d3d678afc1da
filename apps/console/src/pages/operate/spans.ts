/** What a tenant has spent over a span of time, in steps of equal length. */
import type { Schema } from "../../api";

export type Entry = Schema["UsageEntry"];

const HOUR_S = 3_600;
const DAY_S = 86_400;

export const SPANS = {
  day: { label: "24 hours", by: "hour", stepS: HOUR_S, steps: 24 },
  week: { label: "7 days", by: "hour", stepS: HOUR_S, steps: 168 },
  month: { label: "35 days", by: "day", stepS: DAY_S, steps: 35 },
} as const;
export type Span = keyof typeof SPANS;

/** The beginnings of the span's steps, the last of which holds the moment `nowS`. */
export function timesOf(span: Span, nowS: number): number[] {
  const { stepS, steps } = SPANS[span];
  const last = Math.floor(nowS / stepS) * stepS;
  return Array.from({ length: steps }, (_, index) => last - (steps - 1 - index) * stepS);
}

export interface ModelSpent {
  model: string;
  calls: number;
  input: number;
  output: number;
  /** Null where a step has no price. */
  cost: number | null;
  /** One number per step; a step without calls has 0. */
  tokens: number[];
  costs: (number | null)[];
}

/** The sums of each model, and its steps at these times. */
export function spentByModel(entries: readonly Entry[], times: readonly number[]): ModelSpent[] {
  const models = [...new Set(entries.map(({ model }) => model))].sort((one, other) => one.localeCompare(other));
  return models.map((model) => spentBy(model, entries.filter((entry) => entry.model === model), times));
}

function spentBy(model: string, entries: readonly Entry[], times: readonly number[]): ModelSpent {
  const steps = new Map(entries.map((entry) => [entry.at, entry]));
  const sum = (value: (entry: Entry) => number) => entries.reduce((total, entry) => total + value(entry), 0);
  const priced = entries.every(({ cost }) => typeof cost === "number");
  return {
    model,
    calls: sum(({ calls }) => calls),
    input: sum(({ input_tokens: tokens }) => tokens),
    output: sum(({ output_tokens: tokens }) => tokens),
    cost: priced ? sum(({ cost }) => cost ?? 0) : null,
    tokens: times.map((at) => (steps.get(at)?.input_tokens ?? 0) + (steps.get(at)?.output_tokens ?? 0)),
    costs: times.map((at) => (priced ? (steps.get(at)?.cost ?? 0) : null)),
  };
}

const MONEY = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });
const CENTS = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 });

/** The cost in the operator's currency; a small one keeps two figures instead of becoming 0. */
export function money(cost: number | null): string {
  if (cost === null) return "unknown";
  return (cost < 1 ? CENTS : MONEY).format(cost);
}
