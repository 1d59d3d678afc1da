import { judged, useChange, type Item, type Verdict } from "../../data/memories";
import { Failure } from "../../shared";

const VERDICTS: Record<Verdict, { label: string; effect: string }> = {
  helpful: { label: "Helpful", effect: "Searches raise it a little." },
  outdated: { label: "Outdated", effect: "Searches lower it." },
  wrong: { label: "Wrong", effect: "Searches leave it out." },
};

/** A verdict on a memory; a second press takes it back. */
export function Feedback({ item }: { item: Item }) {
  const judge = useChange(judged);
  const given = item.feedback?.verdict;
  return (
    <div className="row wrap" role="group" aria-label="Feedback">
      {(Object.keys(VERDICTS) as Verdict[]).map((verdict) => (
        <button key={verdict} type="button" className="button" aria-pressed={verdict === given} title={VERDICTS[verdict].effect} disabled={judge.isPending} onClick={() => judge.mutate({ id: item.id, feedback: verdict === given ? null : verdict })}>
          {VERDICTS[verdict].label}
        </button>
      ))}
      {given && <span className="faint">{VERDICTS[given].effect}</span>}
      {judge.isError && <Failure small error={judge.error} />}
    </div>
  );
}
