import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { useAddress } from "../../address";
import { Empty, Failure, Loading, quantity, useKeys, VirtualList } from "../../shared";
import { textOf } from "./document";
import { blockAt, blocksOf, marksOf, runsOf, type Block, type Evidence } from "./highlights";
import type { LongRead } from "./log";

interface Props {
  read: LongRead;
  evidence: readonly Evidence[];
}

/** The document with its evidence marked. */
export function DocumentView({ read, evidence }: Props) {
  const document = useQuery({
    queryKey: ["read-text", read.id],
    queryFn: ({ signal }) => textOf(read, signal),
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  if (document.isPending) return <Loading what="the document" />;
  if (document.isError) return <Failure error={document.error} onRetry={() => void document.refetch()} />;
  if (document.data === null) return <Excerpts evidence={evidence} />;
  return <Marked text={document.data} evidence={evidence} />;
}

function Marked({ text, evidence }: { text: string; evidence: readonly Evidence[] }) {
  const [{ at }, setAddress] = useAddress();
  const blocks = useMemo(() => blocksOf(text), [text]);
  const marks = useMemo(() => marksOf(evidence, text), [evidence, text]);
  const chosen = at === undefined ? -1 : Number(at);
  const places = useMemo(() => [...new Set(marks.flatMap((mark) => mark.evidence))], [marks]);
  const mark = marks.find(({ evidence: covers }) => covers.includes(chosen)) ?? (chosen < 0 ? marks[0] : undefined);
  const step = (by: number) => {
    const index = places.indexOf(chosen);
    const next = places[index < 0 ? (by > 0 ? 0 : places.length - 1) : (index + by + places.length) % places.length];
    if (next !== undefined) setAddress({ at: String(next) }, { replace: true });
  };
  useKeys({ j: () => step(1), k: () => step(-1) });
  return (
    <>
      <div className="row between read-bar">
        <span className="faint number">{quantity(places.length, "marked place")}</span>
        {places.length > 0 && (
          <span className="row">
            <button type="button" className="button small" onClick={() => step(-1)}>
              Previous
            </button>
            <button type="button" className="button small" onClick={() => step(1)}>
              Next
            </button>
          </span>
        )}
      </div>
      <div className="read-list document">
        <VirtualList items={blocks} idOf={idOf} label="Document" rowPx={220} current={mark ? Math.min(blockAt(blocks, mark.start), blocks.length - 1) : undefined}>
          {(block) => <BlockText text={text} block={block} marks={marks} chosen={chosen} evidence={evidence} />}
        </VirtualList>
      </div>
    </>
  );
}

function idOf(block: Block): string {
  return String(block.start);
}

function BlockText({ text, block, marks, chosen, evidence }: { text: string; block: Block; marks: ReturnType<typeof marksOf>; chosen: number; evidence: readonly Evidence[] }) {
  return (
    <p className="text block">
      {runsOf(text, block, marks).map((run, index) =>
        run.evidence.length === 0 ? (
          <span key={index}>{run.text}</span>
        ) : (
          <Mark key={index} isChosen={run.evidence.includes(chosen)} title={[...new Set(run.evidence.map((number) => evidence[number]?.statement))].join("\n")}>
            {run.text}
          </Mark>
        ),
      )}
    </p>
  );
}

/** A marked place. The chosen one comes into view: its block alone may be taller than the window. */
function Mark({ isChosen, title, children }: { isChosen: boolean; title: string; children: string }) {
  const place = useRef<HTMLElement>(null);
  useEffect(() => {
    if (!isChosen) return;
    const drawn = requestAnimationFrame(() => place.current?.scrollIntoView({ block: "center" }));
    return () => cancelAnimationFrame(drawn);
  }, [isChosen]);
  return (
    <mark ref={place} className={isChosen ? "is-chosen" : undefined} title={title}>
      {children}
    </mark>
  );
}

/** Evidence by itself, for a document that the page cannot show. */
function Excerpts({ evidence }: { evidence: readonly Evidence[] }) {
  const found = evidence.filter(({ supported, text }) => supported && text);
  if (found.length === 0) {
    return (
      <Empty title="The document is not here">
        <p>This read did not begin in this console, or the document is too long to show. Its evidence appears here when there is any.</p>
      </Empty>
    );
  }
  return (
    <div className="read-list">
      <VirtualList items={found} idOf={(entry) => `${entry.start} ${entry.statement}`} label="Evidence" rowPx={96}>
        {(entry) => (
          <blockquote className="step">
            <p className="text">
              <mark>{entry.text}</mark>
            </p>
            <p className="faint">
              Chunk {(entry.chunk ?? 0) + 1} · {entry.statement}
            </p>
          </blockquote>
        )}
      </VirtualList>
    </div>
  );
}
