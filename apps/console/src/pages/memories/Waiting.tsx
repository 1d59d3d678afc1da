import { isOpen, settled, useBuffers, useChange, type MemoryEvent, type Space } from "../../data/memories";
import { Failure, Quantity } from "../../shared";
import { TurnRow } from "./rows";

/** Turns without a decision: writes in the queue, and buffers that wait for more context. */
export function Waiting({ space, events }: { space: Space; events: readonly MemoryEvent[] }) {
  const buffers = useBuffers(space.user);
  const settle = useChange(settled);
  const open = events.filter(isOpen);
  const held = (buffers.data?.buffers ?? []).filter(({ turns }) => turns.length > 0);
  if (!open.length && !held.length) return null;
  return (
    <div className="waiting">
      <h2 className="list-title row between">
        <span>Not decided yet</span>
        {held.length > 0 && (
          <button type="button" className="button small" disabled={settle.isPending} onClick={() => settle.mutate(space)}>
            Settle now
          </button>
        )}
      </h2>
      {open.length > 0 && (
        <p className="soft pad">
          <Quantity value={open.length} one="write" /> in the queue
        </p>
      )}
      {held.map((buffer, index) => (
        <div key={index}>
          {buffer.turns.slice(-5).map((turn, number) => (
            <TurnRow key={number} turn={turn} status="buffered" />
          ))}
          {buffer.reason && <p className="faint pad">Why: {buffer.reason}</p>}
        </div>
      ))}
      {settle.isError && <Failure small error={settle.error} />}
    </div>
  );
}
