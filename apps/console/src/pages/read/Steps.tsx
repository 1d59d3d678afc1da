import { memo, useMemo, useState } from "react";
import { useAddress } from "../../address";
import { Empty, quantity, useKeys, VirtualList } from "../../shared";
import type { Step } from "./log";
import type { Session } from "./session";
import { changesOf, countOf, excerptOf, type Piece } from "./words";

const AROUND = 12;

/** The memory after each chunk, with what the chunk changed. Only the rows in view are compared and drawn. */
export function Steps({ session, several }: { session: Session; several: boolean }) {
  const { steps } = session.log;
  const [{ step: chosen }, setAddress] = useAddress();
  const [follows, setFollows] = useState(true);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const chosenIndex = chosen === undefined ? -1 : steps.findIndex((step) => step.sequence === Number(chosen));
  const isLive = !session.log.isOver;
  const current = chosenIndex >= 0 ? chosenIndex : isLive && follows ? steps.length - 1 : undefined;
  const choose = (index: number) => {
    const step = steps[Math.min(Math.max(0, index), steps.length - 1)];
    if (step) setAddress({ step: String(step.sequence) }, { replace: true });
  };
  const toggle = (sequence: number) => setOpen((now) => new Set(now.has(sequence) ? [...now].filter((other) => other !== sequence) : [...now, sequence]));
  useKeys({
    j: () => choose(chosenIndex < 0 ? 0 : chosenIndex + 1),
    k: () => choose(chosenIndex < 0 ? steps.length - 1 : chosenIndex - 1),
    o: chosenIndex < 0 ? undefined : () => toggle((steps[chosenIndex] as Step).sequence),
  });
  if (steps.length === 0) {
    return (
      <Empty title={isLive ? "No chunk has been read yet" : "No chunk was read"}>
        {isLive && <p>The memory appears here after each chunk, with its changes marked.</p>}
      </Empty>
    );
  }
  return (
    <>
      <div className="row between read-bar">
        <span className="faint number">{quantity(steps.length, "step")}</span>
        {isLive && (
          <label className="check">
            <input type="checkbox" checked={follows && chosenIndex < 0} onChange={(event) => (setFollows(event.target.checked), setAddress({ step: undefined }, { replace: true }))} />
            Follow the newest
          </label>
        )}
      </div>
      <div className="read-list">
        <VirtualList items={steps} idOf={idOf} label="Memory after each chunk" rowPx={112} current={current}>
          {(step, index) => <StepRow step={step} isChosen={index === chosenIndex} isOpen={open.has(step.sequence)} several={several} onToggle={() => toggle(step.sequence)} />}
        </VirtualList>
      </div>
    </>
  );
}

function idOf(step: Step): string {
  return String(step.sequence);
}

interface RowProps {
  step: Step;
  isChosen: boolean;
  isOpen: boolean;
  several: boolean;
  onToggle: () => void;
}

const StepRow = memo(
  function StepRow({ step, isChosen, isOpen, several, onToggle }: RowProps) {
    const pieces = useMemo(() => changesOf(step.before, step.memory), [step]);
    const { added, removed } = countOf(pieces);
    const isSame = added + removed === 0;
    return (
      <article className={isChosen ? "step is-chosen" : "step"} aria-label={`Chunk ${step.chunk + 1}`}>
        <header className="row wrap">
          <strong className="number">Chunk {(step.chunk + 1).toLocaleString()}</strong>
          {step.pass > 1 && <span className="tag violet">Reread {step.pass - 1}</span>}
          {several && <span className="tag">Question {step.questionIndex + 1}</span>}
          {step.segment !== null && <span className="tag">Segment {step.segment + 1}</span>}
          <span className="faint number">{quantity(step.tokens, "token")}</span>
          <span className="grow" />
          <span className="faint number" aria-label={`${quantity(added, "word")} added, ${quantity(removed, "word")} removed`}>
            {isSame ? "unchanged" : `+${added} −${removed}`}
          </span>
          {step.memory && (
            <button type="button" className="button quiet small" aria-expanded={isOpen} onClick={onToggle}>
              {isOpen ? "Changes" : "Whole memory"}
            </button>
          )}
        </header>
        {step.question !== null && <p className="faint text">{step.question}</p>}
        {(isOpen || !isSame) && <Changes pieces={isOpen ? pieces : excerptOf(pieces, AROUND)} isClipped={!isOpen} />}
      </article>
    );
  },
  (before, after) => before.step === after.step && before.isChosen === after.isChosen && before.isOpen === after.isOpen && before.several === after.several,
);

function Changes({ pieces, isClipped }: { pieces: readonly Piece[]; isClipped: boolean }) {
  return (
    <p className={isClipped ? "text changes is-clipped" : "text changes"}>
      {pieces.map(({ change, text }, index) => (change === "added" ? <ins key={index}>{text}</ins> : change === "removed" ? <del key={index}>{text}</del> : <span key={index}>{text}</span>))}
    </p>
  );
}
