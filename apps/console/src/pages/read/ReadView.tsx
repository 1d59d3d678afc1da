import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useAddress } from "../../address";
import { plain } from "../../api";
import { Failure, Loading } from "../../shared";
import { Icon } from "../../layout/Icon";
import { Answers } from "./Answers";
import { nameOf } from "./document";
import { DocumentView } from "./DocumentView";
import { outputsOf, titleOf } from "./formats";
import { isOver, type LongRead } from "./log";
import { Passes } from "./Passes";
import { ReadHead } from "./ReadHead";
import type { Session } from "./session";
import { Steps } from "./Steps";
import { useSession } from "./useSession";

const REFRESH_MS = 2_000;

/** One read: live while it runs, then its answer with evidence. */
export function ReadView({ readId }: { readId: string }) {
  const session = useSession(readId);
  const read = useRecord(readId, session);
  return (
    <div className="page">
      <Link to="/read" className="row soft back-link">
        <Icon name="back" size={16} /> All reads
      </Link>
      {session?.error && <Failure error={session.error} small={read !== null} />}
      {session && read ? <Shown session={session} read={read} /> : !session?.error && <Loading what="the read" />}
    </div>
  );
}

/** The newest record: events carry it at the start and the end; in between it is asked for, for costs and sub-answers. */
function useRecord(readId: string, session: Session | null): LongRead | null {
  const known = session?.log.read ?? null;
  const { data } = useQuery({
    queryKey: ["read", readId],
    queryFn: ({ signal }) => plain<LongRead>("get", "/v1/long-read/{read_id}", { path: { read_id: readId }, signal }),
    enabled: known !== null && !isOver(known.status),
    refetchInterval: REFRESH_MS,
    retry: false,
  });
  if (known && isOver(known.status)) return known;
  return data ?? known;
}

function Shown({ session, read }: { session: Session; read: LongRead }) {
  const [{ view, q }, setAddress] = useAddress();
  const outputs = outputsOf(read);
  const index = Math.min(Math.max(0, Number(q) || 0), outputs.length - 1);
  const isShown = view === "document" || view === "memory" ? view : isOver(read.status) && outputs.some(({ evidence }) => evidence.length > 0) ? "document" : "memory";
  return (
    <>
      <ReadHead session={session} read={read} title={titleOf(read, nameOf(read))} />
      <div className="read-columns">
        <div className="stack read-side">
          <Answers session={session} read={read} outputs={outputs} index={index} />
          <Passes session={session} outputs={outputs} />
        </div>
        <section className="card read-main" aria-label={isShown === "memory" ? "Memory, chunk by chunk" : "Document"}>
          <div className="row between read-tabs">
            <div className="segments" role="group" aria-label="View">
              <Tab name="Memory" isOn={isShown === "memory"} onPick={() => setAddress({ view: "memory" }, { replace: true })} />
              <Tab name="Document" isOn={isShown === "document"} onPick={() => setAddress({ view: "document" }, { replace: true })} />
            </div>
            <span className="faint wide-only">
              <kbd>j</kbd> <kbd>k</kbd> next, previous
            </span>
          </div>
          {isShown === "memory" ? <Steps session={session} several={outputs.length > 1} /> : <DocumentView read={read} evidence={outputs[index]?.evidence ?? []} />}
        </section>
      </div>
    </>
  );
}

function Tab({ name, isOn, onPick }: { name: string; isOn: boolean; onPick: () => void }) {
  return (
    <button type="button" className={isOn ? "segment is-on" : "segment"} aria-pressed={isOn} onClick={onPick}>
      {name}
    </button>
  );
}
