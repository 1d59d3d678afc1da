/** Prometheus's text format, and what the console reads from it. */

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

export interface Tokens {
  input: number;
  output: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*$/;
const LABEL = /\s*([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)/gy;
const ESCAPES: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

/** Return the samples in order. Comments and lines that are not in the format are left out. */
export function samplesOf(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split(/\r?\n/)) {
    const [, name, inside, number] = LINE.exec(line) ?? [];
    const labels = inside === undefined ? {} : labelsOf(inside);
    const value = numberOf(number);
    if (name && labels && value !== null) samples.push({ name, labels, value });
  }
  return samples;
}

function labelsOf(text: string): Record<string, string> | null {
  const labels: Record<string, string> = Object.create(null) as Record<string, string>;
  let end = 0;
  LABEL.lastIndex = 0;
  for (let found = LABEL.exec(text); found; found = LABEL.exec(text)) {
    labels[found[1] as string] = (found[2] as string).replace(/\\[\\"n]/g, (escape) => ESCAPES[escape] as string);
    end = LABEL.lastIndex;
  }
  return end === text.length ? labels : null;
}

function numberOf(text: string | undefined): number | null {
  if (text === "+Inf" || text === "Inf") return Number.POSITIVE_INFINITY;
  if (text === "-Inf") return Number.NEGATIVE_INFINITY;
  if (text === "NaN") return Number.NaN;
  const value = text ? Number(text) : Number.NaN;
  return Number.isNaN(value) ? null : value;
}

/** The sum of the samples with this name and these labels; null if there is none, or none with a value. */
export function sumOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number | null {
  const wanted = Object.entries(labels);
  const found = samples.filter((sample) => sample.name === name && !Number.isNaN(sample.value) && wanted.every(([label, value]) => sample.labels[label] === value));
  return found.length === 0 ? null : found.reduce((sum, sample) => sum + sample.value, 0);
}

/** Tokens that each model has read and written since the gateway began. */
export function tokensByModel(samples: readonly Sample[]): Map<string, Tokens> {
  const found = new Map<string, Tokens>();
  for (const { name, labels, value } of samples) {
    if (name !== "gen_ai_client_token_usage_sum" || (labels.type !== "input" && labels.type !== "output")) continue;
    const tokens = found.get(labels.model ?? "") ?? { input: 0, output: 0 };
    tokens[labels.type] += value;
    found.set(labels.model ?? "", tokens);
  }
  return found;
}

export interface Reading {
  /** Seconds since the epoch. */
  atS: number;
  tokens: ReadonlyMap<string, Tokens>;
}

/** Tokens per minute of a model between readings. A counter that fell began again at zero: its process restarted. */
export function ratesOf(readings: readonly Reading[], model: string): (number | null)[] {
  return readings.map(({ atS, tokens }, index) => {
    const before = readings[index - 1];
    if (!before || atS <= before.atS) return null;
    const now = total(tokens.get(model));
    const last = total(before.tokens.get(model));
    return ((now < last ? now : now - last) / (atS - before.atS)) * 60;
  });
}

function total(tokens: Tokens | undefined): number {
  return (tokens?.input ?? 0) + (tokens?.output ?? 0);
}
