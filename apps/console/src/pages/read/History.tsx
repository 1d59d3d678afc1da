import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api";
import { Empty, Failure, Moment, Rows, VirtualList, quantity } from "../../shared";
import { nameOf } from "./document";
import { statusOf, titleOf } from "./formats";
import { isOver, type LongRead } from "./log";

const PAGE = 30;
const REFRESH_MS = 4_000;

/** The tenant's reads, newest first. */
export function History() {
  const reads = useInfiniteQuery({
    queryKey: ["reads"],
    queryFn: ({ pageParam, signal }) => api.get("/v1/long-read", { query: { limit: PAGE, after: pageParam }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => (page.has_more ? (page.last_id ?? undefined) : undefined),
    refetchInterval: ({ state }) => (state.data?.pages.some((page) => page.data.some((read) => !isOver(read.status))) ? REFRESH_MS : false),
  });
  const all = reads.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <section className="card read-history" id="history" aria-labelledby="history-name">
      <h2 id="history-name">Earlier reads</h2>
      {reads.isPending && <Rows />}
      {reads.isError && <Failure error={reads.error} onRetry={() => void reads.refetch()} />}
      {reads.isSuccess && all.length === 0 && (
        <Empty title="No reads yet">
          <p>Reads appear here, and stay for seven days after they end unless the operator chose otherwise.</p>
        </Empty>
      )}
      {all.length > 0 && (
        <VirtualList items={all} idOf={(read) => read.id} label="Reads" rowPx={76} onEnd={() => void (reads.hasNextPage && !reads.isFetchingNextPage && reads.fetchNextPage())}>
          {(read) => <Row read={read} />}
        </VirtualList>
      )}
    </section>
  );
}

function Row({ read }: { read: LongRead }) {
  const name = nameOf(read);
  const { label, tone } = statusOf(read.status);
  const { chunks_done: done, chunks_total: total } = read.progress;
  return (
    <Link to="/read" search={{ read: read.id }} className="read-row">
      <span className="row between">
        <strong className="clip">{titleOf(read, name)}</strong>
        <span className={`tag ${tone}`}>{label}</span>
      </span>
      <span className="faint clip">
        {name && `${name} · `}
        <Moment at={read.created_at} /> · {isOver(read.status) ? quantity(total, "chunk") : `${done} of ${quantity(total, "chunk")}`}
      </span>
    </Link>
  );
}
