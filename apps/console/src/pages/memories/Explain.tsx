import type { Hit } from "../../data/memories";

const NAMES: Record<string, string> = {
  dense: "meaning",
  sparse: "words",
  speaker: "speaker named",
  date: "time named",
  neighbour: "turns beside it",
  session: "same session",
  rerank: "reranker",
  asking: "only asks",
};

export interface Share {
  name: string;
  label: string;
  value: number;
  rank: number | undefined;
}

/** The parts of a score, largest first; ranks and raw scores of the rankings are no parts of it. */
export function sharesOf(breakdown: Record<string, number>): Share[] {
  return Object.entries(breakdown)
    .filter(([name, value]) => !/_(rank|score)$/.test(name) && value !== 0)
    .map(([name, value]) => ({ name, label: NAMES[name] ?? name, value, rank: breakdown[`${name}_rank`] }))
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}

/** The score as a bar of its parts: which ranking and which boost gave what. */
export function Explain({ hit }: { hit: Hit }) {
  const shares = sharesOf(hit.score_breakdown ?? {});
  const whole = Math.max(1, shares.reduce((sum, { value }) => sum + Math.max(0, value), 0));
  return (
    <span className="explain">
      <span className="explain-bar" aria-hidden="true">
        {shares.map(({ name, value }) => value > 0 && <span key={name} className={`share share-${name}`} style={{ width: `${(100 * value) / whole}%` }} />)}
      </span>
      <span className="explain-parts">
        <strong className="number">{hit.score.toFixed(3)}</strong>
        {shares.map(({ name, label, value, rank }) => (
          <span key={name} className="explain-part">
            <span className={`swatch share-${name}`} aria-hidden="true" />
            {label} <span className="number">{value > 0 ? "+" : "−"}{Math.abs(value).toFixed(3)}</span>
            {rank !== undefined && <span className="rank"> rank {rank}</span>}
          </span>
        ))}
      </span>
    </span>
  );
}
