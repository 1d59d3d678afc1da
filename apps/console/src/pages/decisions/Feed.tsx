import { useMemo } from "react";
import { useAddress } from "../../address";
import { useEvents } from "../../data/memories";
import { ChosenUser, Empty, Failure, Rows, useKeys, VirtualList } from "../../shared";
import { OUTCOMES, outcomeOf, TONES, type Outcome } from "./outcomes";
import { Write } from "./Write";

/** A user's newest writes as they are decided, each with the writer's steps, reasons and cost. */
export function Feed({ user }: { user: string }) {
  const [address, change] = useAddress();
  const events = useEvents({ user }, { live: true });
  const all = useMemo(() => (events.data?.events ?? []).map((event) => ({ event, outcome: outcomeOf(event) })), [events.data]);
  const only = OUTCOMES.find((outcome) => outcome === address.outcome);
  const shown = only ? all.filter(({ outcome }) => outcome === only) : all;
  const at = shown.findIndex(({ event }) => event.event_id === address.event);
  const go = (step: number) => {
    const next = shown[Math.min(shown.length - 1, Math.max(0, at + step))];
    if (next) change({ event: next.event.event_id }, { replace: Boolean(address.event) });
  };
  useKeys({ j: () => go(1), ArrowDown: () => go(1), k: () => go(at < 0 ? 1 : -1), ArrowUp: () => go(at < 0 ? 1 : -1), Escape: address.event ? () => change({ event: undefined }) : undefined });
  const toggle = (id: string) => change({ event: id === address.event ? undefined : id }, { replace: true });
  return (
    <div className="page full">
      <div className="page-head">
        <div className="row">
          <h1>Decisions</h1>
          <ChosenUser user={user} />
        </div>
        <Filters all={all.map(({ outcome }) => outcome)} only={only} onOnly={(outcome) => change({ outcome, event: undefined }, { replace: true })} />
      </div>
      <section className="card feed" aria-label="Writes, newest first">
        {events.isError && !events.data ? (
          <Failure error={events.error} onRetry={() => void events.refetch()} />
        ) : events.isPending ? (
          <Rows />
        ) : shown.length === 0 ? (
          <Empty title={only ? `Nothing ${only}` : "No writes yet"}>
            <p>{only ? "No write of this user that is kept came to this." : "Writes appear here within seconds of a chat or an add, and stay for some days."}</p>
          </Empty>
        ) : (
          <VirtualList items={shown} idOf={({ event }) => event.event_id} label="Writes, newest first" rowPx={76} current={at}>
            {({ event, outcome }) => <Write event={event} outcome={outcome} isOpen={event.event_id === address.event} onToggle={() => toggle(event.event_id)} />}
          </VirtualList>
        )}
      </section>
      {events.isError && events.data && <p className="notice warn">The newest state could not be read; trying again. {events.error.message}</p>}
    </div>
  );
}

function Filters({ all, only, onOnly }: { all: readonly Outcome[]; only: Outcome | undefined; onOnly: (outcome: Outcome | undefined) => void }) {
  return (
    <div className="row wrap" role="group" aria-label="Show">
      <button type="button" className="button small" aria-pressed={!only} onClick={() => onOnly(undefined)}>
        All <span className="number faint">{all.length}</span>
      </button>
      {OUTCOMES.map((outcome) => (
        <button key={outcome} type="button" className="button small" aria-pressed={only === outcome} onClick={() => onOnly(only === outcome ? undefined : outcome)}>
          <span className={`mark ${TONES[outcome]}`} aria-hidden="true" />
          {outcome} <span className="number faint">{all.filter((one) => one === outcome).length}</span>
        </button>
      ))}
    </div>
  );
}
