import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAddress } from "../../address";
import { api } from "../../api";
import { Cost, Dialog, Failure, Moment, quantity } from "../../shared";
import { nameOf } from "./document";
import { duration, statusOf } from "./formats";
import { isOver, type LongRead } from "./log";
import type { Session } from "./session";

/** What is read, how far it is, and the way to stop it. */
export function ReadHead({ session, read, title }: { session: Session; read: LongRead; title: string }) {
  const { label, tone } = statusOf(read.status);
  const name = nameOf(read);
  return (
    <header className="stack read-head">
      <div className="row between wrap">
        <h1 className="text read-title">{title}</h1>
        <div className="row">
          <span className={`tag ${tone}`}>{label}</span>
          <Actions session={session} read={read} />
        </div>
      </div>
      <p className="faint row wrap">
        {name && <span className="text">{name}</span>}
        <span className="mono">{read.model}</span>
        <span>{read.strategy === "memreread" ? "with rereads" : "one pass"}</span>
        <span>
          began <Moment at={read.created_at} />
        </span>
        <Cost usage={read.usage} />
      </p>
      {!isOver(read.status) && <Going session={session} read={read} />}
      <Trouble read={read} />
    </header>
  );
}

function Going({ session, read }: { session: Session; read: LongRead }) {
  const progress = session.log.progress ?? read.progress;
  const { chunks_done: done, chunks_total: total, pass, passes_max: passes } = progress;
  if (total === 0) return <p className="soft">{read.status === "queued" ? "Waiting for a worker." : "Cutting the document into chunks."}</p>;
  const remaining = session.log.remainingS;
  return (
    <div className="stack tight">
      <progress value={done} max={total} aria-label="Chunks read in this pass" />
      <p className="soft row between wrap number">
        <span>
          {done.toLocaleString()} of {quantity(total, "chunk")}
          {passes > 1 && ` · pass ${pass} of at most ${passes}`}
        </span>
        <span>{remaining === null ? "" : `about ${duration(remaining)} left${passes > 1 ? " in this pass" : ""}`}</span>
      </p>
    </div>
  );
}

const REASONS: Record<string, string> = {
  max_llm_calls: "The read used up its model calls. The answer comes from the memory so far.",
  deadline: "The read reached its deadline. The answer comes from the memory so far.",
};

function Trouble({ read }: { read: LongRead }) {
  const { kept, truncated, unusable } = read.degradations;
  const weak = [kept && `${quantity(kept, "empty reply", "empty replies")}: the memory before was kept`, truncated && `${quantity(truncated, "reply", "replies")} cut at the token limit`, unusable && `${quantity(unusable, "unreadable verdict")}`].filter(Boolean);
  return (
    <>
      {read.error && (
        <p className="notice bad text" role="alert">
          {read.error.message}
        </p>
      )}
      {read.incomplete_details && <p className="notice warn">{REASONS[read.incomplete_details.reason]}</p>}
      {weak.length > 0 && <p className="notice warn">Weak replies of the model: {weak.join(", ")}.</p>}
    </>
  );
}

function Actions({ session, read }: { session: Session; read: LongRead }) {
  const queries = useQueryClient();
  const [, setAddress] = useAddress();
  const [asks, setAsks] = useState(false);
  const path = { read_id: read.id };
  const cancel = useMutation({
    mutationFn: () => api.post("/v1/long-read/{read_id}/cancel", { path }),
    onSuccess: (cancelled) => {
      session.log.setRead(cancelled);
      void queries.invalidateQueries({ queryKey: ["read", read.id] });
    },
  });
  const remove = useMutation({
    mutationFn: () => api.delete("/v1/long-read/{read_id}", { path }),
    onSuccess: () => {
      session.stop();
      void queries.invalidateQueries({ queryKey: ["reads"] });
      setAddress({ read: undefined, view: undefined, q: undefined, at: undefined, step: undefined }, { replace: true });
    },
  });
  const failed = cancel.error ?? remove.error;
  return (
    <>
      {isOver(read.status) ? (
        <button type="button" className="button small danger" onClick={() => setAsks(true)}>
          Delete
        </button>
      ) : (
        <button type="button" className="button small danger" disabled={cancel.isPending || cancel.isSuccess} onClick={() => cancel.mutate()}>
          {cancel.isPending || cancel.isSuccess ? "Cancelling …" : "Cancel the read"}
        </button>
      )}
      {failed && <Failure error={failed} small />}
      {asks && (
        <Dialog title="Delete this read?" onClose={() => setAsks(false)}>
          <p>The answer, the memory and all events of this read are deleted. The uploaded file stays.</p>
          <div className="row end">
            <button type="button" className="button" onClick={() => setAsks(false)}>
              Keep it
            </button>
            <button type="button" className="button danger solid" disabled={remove.isPending} onClick={() => remove.mutate()}>
              Delete
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
