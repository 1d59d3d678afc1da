/** What a new text changes in an old one, by words. */

export type Change = "kept" | "added" | "removed";

export interface Piece {
  change: Change;
  text: string;
}

/** A stretch of both texts, in words: from the starts to before the ends. */
interface Stretch {
  old: readonly [number, number];
  now: readonly [number, number];
  level: number;
}

const MOST_LEVELS = 24;

/**
 * Return the pieces of both texts in reading order, removed words before the added ones.
 *
 * Words that occur once in both texts anchor the comparison (a patience diff); the stretches between anchors are
 * compared alike. A level takes O(n log n) for n words, and there are at most 24 levels, whatever the texts are.
 */
export function changesOf(before: string, after: string): Piece[] {
  const old = wordsOf(before);
  const now = wordsOf(after);
  const partners = partnersOf(old.map(bare), now.map(bare));
  const pieces: Piece[] = [];
  let added: string[] = [];
  let at = 0;
  const close = (end: number) => {
    put(pieces, "removed", old.slice(at, end));
    put(pieces, "added", added);
    at = end;
    added = [];
  };
  now.forEach((word, index) => {
    const partner = partners[index] ?? -1;
    if (partner < 0) return added.push(word);
    close(partner);
    at = partner + 1;
    return put(pieces, "kept", [word]);
  });
  close(old.length);
  return pieces;
}

/** The number of words that were added and removed. */
export function countOf(pieces: readonly Piece[]): { added: number; removed: number } {
  const count = { added: 0, removed: 0 };
  for (const { change, text } of pieces) if (change !== "kept") count[change] += wordsOf(text).length;
  return count;
}

/** The changed pieces with at most `words` unchanged words on each side; an ellipsis stands for the rest. */
export function excerptOf(pieces: readonly Piece[], words: number): Piece[] {
  return pieces.flatMap((piece, index) => {
    if (piece.change !== "kept") return [piece];
    const all = wordsOf(piece.text);
    const head = index === 0 ? 0 : words;
    const tail = index === pieces.length - 1 ? 0 : words;
    if (all.length <= head + tail) return [piece];
    const text = `${all.slice(0, head).join("")}… ${all.slice(all.length - tail, all.length).join("")}`;
    return [{ change: "kept", text }];
  });
}

/** Words with the white space behind them, the last one too; white space at the start is an entry of its own. */
function wordsOf(text: string): string[] {
  return (/\s$/.test(text) ? text : `${text} `).match(/\S+\s+|^\s+(?=\S)/g) ?? [];
}

function bare(word: string): string {
  return word.trim();
}

function put(pieces: Piece[], change: Change, words: readonly string[]): void {
  if (words.length === 0) return;
  const last = pieces.at(-1);
  if (last?.change === change) last.text += words.join("");
  else pieces.push({ change, text: words.join("") });
}

/** For each new word the index of the old word that it continues, or -1. Partners ascend. */
function partnersOf(old: readonly string[], now: readonly string[]): Int32Array {
  const partners = new Int32Array(now.length).fill(-1);
  const waiting: Stretch[] = [{ old: [0, old.length], now: [0, now.length], level: 0 }];
  for (let stretch = waiting.pop(); stretch; stretch = waiting.pop()) {
    const inner = withoutEnds(stretch, old, now, partners);
    if (inner.old[0] === inner.old[1] || inner.now[0] === inner.now[1] || inner.level >= MOST_LEVELS) continue;
    waiting.push(...between(inner, anchorsOf(inner, old, now)));
  }
  return partners;
}

/** Match equal words at both ends; return what lies between. */
function withoutEnds(stretch: Stretch, old: readonly string[], now: readonly string[], partners: Int32Array): Stretch {
  let [oldStart, oldEnd] = stretch.old;
  let [nowStart, nowEnd] = stretch.now;
  while (oldStart < oldEnd && nowStart < nowEnd && old[oldStart] === now[nowStart]) partners[nowStart++] = oldStart++;
  while (oldStart < oldEnd && nowStart < nowEnd && old[oldEnd - 1] === now[nowEnd - 1]) partners[--nowEnd] = --oldEnd;
  return { old: [oldStart, oldEnd], now: [nowStart, nowEnd], level: stretch.level };
}

/** Pairs (old, new) of words that occur once on each side, in an order that ascends on both. */
function anchorsOf(stretch: Stretch, old: readonly string[], now: readonly string[]): [number, number][] {
  const inOld = onceIn(old, stretch.old);
  const inNow = onceIn(now, stretch.now);
  const pairs: [number, number][] = [];
  for (const [word, index] of inNow) {
    const partner = inOld.get(word) ?? -1;
    if (index >= 0 && partner >= 0) pairs.push([partner, index]);
  }
  return ascending(pairs.sort((one, other) => one[1] - other[1]));
}

/** Where each word of the stretch is; -1 for a word that occurs more than once. */
function onceIn(words: readonly string[], [start, end]: readonly [number, number]): Map<string, number> {
  const found = new Map<string, number>();
  for (let index = start; index < end; index++) {
    const word = words[index] as string;
    found.set(word, found.has(word) ? -1 : index);
  }
  return found;
}

/** The longest subsequence whose old indices ascend. */
function ascending(pairs: readonly [number, number][]): [number, number][] {
  const tails: number[] = [];
  const previous = new Int32Array(pairs.length).fill(-1);
  pairs.forEach(([old], index) => {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((pairs[tails[middle] as number] as [number, number])[0] < old) low = middle + 1;
      else high = middle;
    }
    previous[index] = low > 0 ? (tails[low - 1] as number) : -1;
    tails[low] = index;
  });
  const chain: [number, number][] = [];
  for (let index = tails.at(-1) ?? -1; index >= 0; index = previous[index] as number) chain.push(pairs[index] as [number, number]);
  return chain.reverse();
}

/** The stretches between the anchors. Each begins with its anchor, which its first comparison matches. */
function between(stretch: Stretch, anchors: readonly [number, number][]): Stretch[] {
  if (anchors.length === 0) return [];
  const [old, now] = [stretch.old[0], stretch.now[0]];
  const bounds: readonly (readonly [number, number])[] = [[old, now], ...anchors, [stretch.old[1], stretch.now[1]]];
  return bounds.slice(0, -1).map((bound, index) => {
    const next = bounds[index + 1] as readonly [number, number];
    return { old: [bound[0], next[0]], now: [bound[1], next[1]], level: stretch.level + 1 };
  });
}
