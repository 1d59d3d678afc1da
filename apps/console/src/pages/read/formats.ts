import { quantity } from "../../shared/Quantity";
import type { LongRead } from "./log";

export type Output = LongRead["outputs"][number];

const UNITS = [
  [3600, "h"],
  [60, "min"],
  [1, "s"],
] as const;

/** `2 h 5 min`, `40 s`: the two largest units. */
export function duration(seconds: number): string {
  let rest = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 && parts.length < 2) parts.push(`${count} ${unit}`);
    else if (parts.length > 0) break;
  }
  return parts.join(" ") || "0 s";
}

const BYTES = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** A size with its unit: `12.3 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return quantity(bytes, "byte");
  const steps = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${BYTES.format(bytes / 1000 ** steps)} ${["", "kB", "MB", "GB"][steps]}`;
}

/** The result of each question; a read of a single question that the console did not start has no question's text. */
export function outputsOf(read: LongRead): Output[] {
  if (read.outputs.length > 0) return read.outputs;
  return [{ question: "", output_text: read.output_text, memory: read.memory, subquestions: read.subquestions, evidence: read.evidence }];
}

const STATUS: Record<LongRead["status"], { label: string; tone: string }> = {
  queued: { label: "Waiting", tone: "" },
  in_progress: { label: "Reading", tone: "accent" },
  completed: { label: "Done", tone: "good" },
  failed: { label: "Failed", tone: "bad" },
  cancelled: { label: "Cancelled", tone: "warn" },
  incomplete: { label: "Incomplete", tone: "warn" },
};

export function statusOf(status: LongRead["status"]): { label: string; tone: string } {
  return STATUS[status];
}

/** What to call a read in a list: its first question, else its document, else its id. */
export function titleOf(read: LongRead, name: string): string {
  return outputsOf(read)[0]?.question || name || read.id;
}
