import { Link } from "@tanstack/react-router";
import type { Schema } from "../../api";
import { redecided, retried, useChange, type MemoryEvent } from "../../data/memories";
import { Icon } from "../../layout/Icon";
import { Cost, Failure, Moment, Quantity } from "../../shared";
import { ACTION_TONES, TONES, type Outcome } from "./outcomes";

interface Props {
  event: MemoryEvent;
  outcome: Outcome;
  isOpen: boolean;
  onToggle: () => void;
}

/** One write: a line with its outcome and cost, which opens to the writer's steps. */
export function Write({ event, outcome, isOpen, onToggle }: Props) {
  return (
    <article className={`write ${isOpen ? "is-open" : ""}`}>
      <button type="button" className="write-line" aria-expanded={isOpen} onClick={onToggle}>
        <span className={`tag ${TONES[outcome]} write-outcome`}>{outcome}</span>
        <span className="write-text">
          <span className="text clip-2">{headlineOf(event)}</span>
          <span className="row wrap faint">
            <Steps event={event} />
            <Moment at={event.created_at} />
          </span>
        </span>
        <span className="write-cost">{event.usage && (event.usage.llm_calls ?? 0) > 0 && <Cost usage={event.usage} />}</span>
      </button>
      {isOpen && <Opened event={event} />}
    </article>
  );
}

function headlineOf(event: MemoryEvent): string {
  if (event.error && event.status !== "kept_verbatim") return event.error;
  const kept = event.memories?.map(({ item }) => item.memory) ?? [];
  if (kept.length) return kept.join(" · ");
  const reasons = event.decisions?.map(({ reason }) => reason).filter(Boolean) ?? [];
  if (reasons.length) return reasons.at(-1) ?? "";
  return event.status === "queued" ? "Waits for a worker" : event.status === "in_progress" ? "The writer is deciding" : "Nothing was kept";
}

function Steps({ event }: { event: MemoryEvent }) {
  return (
    <>
      {event.decisions?.map(({ action }, index) => (
        <span key={index} className="step">
          {index > 0 && <span aria-hidden="true">→ </span>}
          {action}
        </span>
      ))}
    </>
  );
}

const OUTCOME_NAMES: Record<Schema["Written"]["outcome"], string> = { inserted: "new", touched: "confirmed", superseded: "new version" };

function Opened({ event }: { event: MemoryEvent }) {
  const retry = useChange(retried);
  const again = useChange(redecided);
  return (
    <div className="write-more">
      {event.status === "failed" && (
        <div className="notice bad">
          <p className="text">{event.error ?? "The write failed."}</p>
          <p className="soft">
            It was given up after <Quantity value={event.attempts ?? 0} one="attempt" />. The turns are kept and can be decided again.
          </p>
          <button type="button" className="button" disabled={retry.isPending} onClick={() => retry.mutate(event.event_id)}>
            <Icon name="again" size={16} /> Put back
          </button>
        </div>
      )}
      {event.status === "kept_verbatim" && (
        <div className="notice warn">
          <p className="text">{event.error ?? "The writer decided nothing."}</p>
          <p className="soft">What was said is remembered word for word. A writer that works can decide on it again.</p>
          <button type="button" className="button" disabled={again.isPending} onClick={() => again.mutate(event.event_id)}>
            <Icon name="again" size={16} /> Decide again
          </button>
        </div>
      )}
      {again.isError && <Failure small error={again.error} />}
      {retry.isError && <Failure small error={retry.error} />}
      {event.status !== "failed" && event.status !== "kept_verbatim" && event.error && <p className="notice warn text">{event.error}</p>}
      <ol className="steps">
        {event.decisions?.map((decision, index) => (
          <Decision key={index} decision={decision} />
        ))}
      </ol>
      {event.memories && event.memories.length > 0 && (
        <ul className="stack tight" aria-label="What was stored">
          {event.memories.map(({ item, outcome }) => (
            <li key={item.id} className="row">
              <span className="tag good">{OUTCOME_NAMES[outcome]}</span>
              <Link to="/memories" search={{ user: event.user_id, item: item.id }} className="text">
                {item.memory}
              </Link>
            </li>
          ))}
        </ul>
      )}
      <p className="faint">
        Queued <Moment at={event.created_at} exact />
        {event.completed_at && (
          <>
            {", ended "}
            <Moment at={event.completed_at} exact />
          </>
        )}
        . <span className="mono text">{event.event_id}</span>
      </p>
    </div>
  );
}

function Decision({ decision }: { decision: Schema["DecisionRecord"] }) {
  const { action, reason, reasoning, query, note, reply, parse_path } = decision;
  return (
    <li className="stack tight">
      <div className="row wrap">
        <span className={`tag ${ACTION_TONES[action] ?? ""}`}>{action}</span>
        {query && <span className="text">for &ldquo;{query}&rdquo;</span>}
        {reason && <span className="text">{reason}</span>}
        {parse_path === "fallback" && <span className="tag warn">read from text, not from a tool call</span>}
      </div>
      {note && <p className="faint text">{note}</p>}
      {reasoning && <p className="reasoning text soft">{reasoning}</p>}
      {reply && (
        <p className="reasoning text soft">
          The writer replied: <q>{reply}</q>
        </p>
      )}
    </li>
  );
}
