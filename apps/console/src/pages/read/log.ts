/** What a read has reported so far. It grows in place, so that a read of 14,000 chunks costs no copies. */
import type { Schema } from "../../api";

export type LongRead = Schema["LongRead"];
export type Progress = Schema["Progress"];

/** One event of a read's stream; the API document leaves streams without a schema. */
export interface ReadEvent {
  type: string;
  sequence_number: number;
  read?: LongRead;
  progress?: Progress;
  chunk?: number;
  memory?: string;
  tokens?: number;
  question?: string;
  question_index?: number;
  segment?: number;
  delta?: string;
  at?: string;
}

/** A chunk that was read. */
export interface Step {
  sequence: number;
  pass: number;
  /** The number of the chunk in the document, from 0. */
  chunk: number;
  tokens: number;
  memory: string;
  /** The memory before the chunk: of the same question, pass and segment. */
  before: string;
  /** The sub-question of a reread. */
  question: string | null;
  questionIndex: number;
  segment: number | null;
}

/** One pass over the document for one question. */
export interface Pass {
  number: number;
  questionIndex: number;
  /** The sub-question; null for the first pass. */
  question: string | null;
  done: number;
  total: number;
}

interface Tick {
  done: number;
  atMs: number;
}

const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "incomplete"]);
const RATE_TICKS = 30;

export function isOver(status: string | undefined): boolean {
  return TERMINAL.has(status ?? "");
}

export class ReadLog {
  /** The read as its last full record has it. */
  read: LongRead | null = null;
  progress: Progress | null = null;
  /** The number of the last event; -1 before the first. */
  last = -1;
  readonly steps: Step[] = [];
  readonly passes: Pass[] = [];
  readonly answers = new Map<number, string>();
  private readonly memories = new Map<string, string>();
  private ticks: Tick[] = [];
  private tickPass = 0;

  /** Take an event in; an event that was taken in before has no effect. */
  take(event: ReadEvent): void {
    if (!Number.isInteger(event.sequence_number) || event.sequence_number <= this.last) return;
    this.last = event.sequence_number;
    if (event.read) this.setRead(event.read);
    if (event.type === "long_read.in_progress") this.restart();
    if (event.type === "long_read.reread.started") this.startPass(event);
    if (event.type === "long_read.chunk.completed") this.addStep(event);
    if (event.type === "long_read.output_text.delta") this.addAnswer(event);
    if (event.progress) this.setProgress(event.progress, event.at);
  }

  setRead(read: LongRead): void {
    if (isOver(this.read?.status) && !isOver(read.status)) return;
    this.read = read;
    if (read.progress.chunks_total > 0 && !this.progress) this.progress = read.progress;
    if (isOver(read.status)) this.progress = read.progress;
  }

  get isOver(): boolean {
    return isOver(this.read?.status);
  }

  /** Seconds until the current pass ends at the pace of its last chunks; null while that is unknown. */
  get remainingS(): number | null {
    const [first, last] = [this.ticks[0], this.ticks.at(-1)];
    if (!this.progress || !first || !last || last.done <= first.done || last.atMs <= first.atMs) return null;
    const perChunkMs = (last.atMs - first.atMs) / (last.done - first.done);
    return ((this.progress.chunks_total - this.progress.chunks_done) * perChunkMs) / 1000;
  }

  /** A worker that took the read over begins again where it was; what it repeats is not published again. */
  private restart(): void {
    this.ticks = [];
  }

  private startPass(event: ReadEvent): void {
    const number = event.progress?.pass ?? this.passes.length + 2;
    this.passes.push({
      number,
      questionIndex: event.question_index ?? 0,
      question: event.question ?? "",
      done: 0,
      total: event.progress?.chunks_total ?? 0,
    });
  }

  private addStep(event: ReadEvent): void {
    const questionIndex = event.question_index ?? 0;
    const question = event.question ?? null;
    const pass = this.passOf(event, questionIndex, question);
    const line = `${questionIndex} ${pass.number} ${event.segment ?? ""}`;
    const memory = event.memory ?? "";
    this.steps.push({
      sequence: event.sequence_number,
      pass: pass.number,
      chunk: event.chunk ?? 0,
      tokens: event.tokens ?? 0,
      memory,
      before: this.memories.get(line) ?? "",
      question,
      questionIndex,
      segment: event.segment ?? null,
    });
    this.memories.set(line, memory);
    pass.done += 1;
  }

  private passOf(event: ReadEvent, questionIndex: number, question: string | null): Pass {
    const found = this.passes.findLast((pass) => pass.questionIndex === questionIndex && pass.question === question);
    if (found) return found;
    const pass = { number: event.progress?.pass ?? 1, questionIndex, question, done: 0, total: event.progress?.chunks_total ?? 0 };
    this.passes.push(pass);
    return pass;
  }

  private addAnswer(event: ReadEvent): void {
    const index = event.question_index ?? 0;
    this.answers.set(index, (this.answers.get(index) ?? "") + (event.delta ?? ""));
  }

  private setProgress(progress: Progress, at: string | undefined): void {
    this.progress = progress;
    if (progress.pass !== this.tickPass) this.ticks = [];
    this.tickPass = progress.pass;
    const atMs = at ? Date.parse(at) : Number.NaN;
    if (!Number.isNaN(atMs)) this.ticks.push({ done: progress.chunks_done, atMs });
    if (this.ticks.length > RATE_TICKS) this.ticks.shift();
  }
}
