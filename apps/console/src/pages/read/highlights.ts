/** Where evidence lies in a document, as marks that never overlap. */
import type { Schema } from "../../api";

export type Evidence = Schema["Evidence"];

export interface Mark {
  /** In UTF-16 units of the document's text. */
  start: number;
  end: number;
  /** Indices of the evidence that covers the whole mark. */
  evidence: readonly number[];
}

export interface Block {
  start: number;
  end: number;
}

export interface Run {
  text: string;
  evidence: readonly number[];
}

const SURROGATE = /[\uD800-\uDBFF][\uDC00-\uDFFF]/;

/**
 * Cut the spans of the evidence into marks in document order. Where spans overlap, a mark names each of them.
 *
 * The API counts characters (code points). A span outside the text is clipped, an empty or inverted one left out.
 */
export function marksOf(evidence: readonly Evidence[], text: string): Mark[] {
  const spans = spansOf(evidence, text);
  const edges = spans.flatMap(({ start, end, index }) => [
    { at: start, index, opens: true },
    { at: end, index, opens: false },
  ]);
  edges.sort((one, other) => one.at - other.at);
  const open = new Set<number>();
  const marks: Mark[] = [];
  let from = 0;
  for (const edge of edges) {
    if (open.size > 0 && edge.at > from) marks.push({ start: from, end: edge.at, evidence: [...open].sort((one, other) => one - other) });
    from = edge.at;
    if (edge.opens) open.add(edge.index);
    else open.delete(edge.index);
  }
  return marks;
}

interface Span {
  index: number;
  start: number;
  end: number;
}

function spansOf(evidence: readonly Evidence[], text: string): Span[] {
  const found: Span[] = [];
  evidence.forEach(({ supported, start, end }, index) => {
    if (!supported || !Number.isFinite(start) || !Number.isFinite(end)) return;
    found.push({ index, start: Math.max(0, start as number), end: Math.max(0, end as number) });
  });
  const units = unitsOf(
    found.flatMap(({ start, end }) => [start, end]),
    text,
  );
  return found.map((span) => ({ ...span, start: units(span.start), end: units(span.end) })).filter(({ start, end }) => start < end);
}

/** A function from positions in code points to positions in UTF-16 units, for the given positions. */
function unitsOf(positions: readonly number[], text: string): (position: number) => number {
  const clip = (position: number) => Math.min(position, text.length);
  if (!SURROGATE.test(text)) return clip;
  const known = new Map<number, number>();
  let unit = 0;
  let point = 0;
  for (const position of [...new Set(positions)].sort((one, other) => one - other)) {
    while (point < position && unit < text.length) {
      unit += (text.codePointAt(unit) as number) > 0xffff ? 2 : 1;
      point++;
    }
    known.set(position, unit);
  }
  return (position) => known.get(position) ?? text.length;
}

/** Cut a text at line ends into blocks of about `size` units, so that only those in view are drawn. */
export function blocksOf(text: string, size = 1200): Block[] {
  const blocks: Block[] = [];
  for (let start = 0; start < text.length; ) {
    const end = blockEnd(text, start, size);
    blocks.push({ start, end });
    start = end;
  }
  return blocks;
}

function blockEnd(text: string, start: number, size: number): number {
  if (text.length - start <= size * 1.5) return text.length;
  for (const stop of ["\n", " "]) {
    const found = text.lastIndexOf(stop, start + size);
    if (found > start + size / 4) return found + 1;
  }
  const end = start + size;
  const unit = text.charCodeAt(end);
  return unit >= 0xdc00 && unit <= 0xdfff ? end + 1 : end;
}

/** The index of the block that holds a position. */
export function blockAt(blocks: readonly Block[], position: number): number {
  return firstFrom(blocks.length, (index) => (blocks[index] as Block).end > position);
}

/** The text of a block in runs, each with the evidence that covers it. */
export function runsOf(text: string, block: Block, marks: readonly Mark[]): Run[] {
  const runs: Run[] = [];
  let at = block.start;
  for (let index = firstFrom(marks.length, (number) => (marks[number] as Mark).end > block.start); index < marks.length; index++) {
    const mark = marks[index] as Mark;
    if (mark.start >= block.end) break;
    const start = Math.max(mark.start, block.start);
    const end = Math.min(mark.end, block.end);
    if (start > at) runs.push({ text: text.slice(at, start), evidence: [] });
    runs.push({ text: text.slice(start, end), evidence: mark.evidence });
    at = end;
  }
  if (at < block.end) runs.push({ text: text.slice(at, block.end), evidence: [] });
  return runs;
}

/** The first of `count` numbers that fits, where all after it fit too. */
function firstFrom(count: number, fits: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
